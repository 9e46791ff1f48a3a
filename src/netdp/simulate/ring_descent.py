"""Learning by a token on a ring: what `netdp.accounting` states of `RingDescent` is what runs here.

The step of a user is that of a walk (`walk_descent`): the mean over its rows of their gradients, each clipped to norm L before
the noise. Only the path is another: 0, 1, …, n−1, K times over.
"""

from __future__ import annotations

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.checks import count
from netdp.protocols.ring_descent import RingDescent

from .logistic import LogisticParties
from .model_parties import ModelParties
from .walk_descent import Rows, WalkTrained, check_step, first_of, loss, share_right, stepper

_CHUNK = 8192  # steps whose noise is drawn at once


def train_ring(
    protocol: RingDescent,
    data: LogisticParties | ModelParties,
    seed: int | np.random.SeedSequence,
    *,
    watch_every: int | None = None,
    test: Rows | None = None,
) -> WalkTrained:
    """Run the protocol from θ = 0 on the users' data; the same seed gives the same run, watched or not.

    >>> rows, labels = np.array([[1.0, 0.0], [0.0, 1.0]] * 3), np.array([1.0, -1.0] * 3)
    >>> users = LogisticParties.of([rows[:2], rows[2:4], rows[4:]], [labels[:2], labels[2:4], labels[4:]])
    >>> run = train_ring(RingDescent(3, rounds=70, sigma=0.01, step=1.0), users, seed=0)
    >>> bool(run.model[0] > 1 and run.model[1] < -1), run.contributions.tolist()
    (True, [70, 70, 70])
    """
    _check(protocol, data)
    every = protocol.steps if watch_every is None else count("watch_every", watch_every)
    take = stepper(protocol, data)
    path, noises = np.tile(np.arange(protocol.n), protocol.rounds), np.random.default_rng(seed)
    model, used = first_of(data), np.zeros(data.n, dtype=np.int64)
    seen: list[tuple[int, float, float]] = []
    done = 0
    while done < protocol.steps:
        end = min(done + _CHUNK, protocol.steps, (done // every + 1) * every)
        noise = protocol.sigma * noises.standard_normal((end - done, data.d))
        take(path[done:end], noise, model, used, -1, False)
        done = end
        if watch_every is not None and (done % every == 0 or done == protocol.steps):
            seen.append((done, loss(data, model), np.nan if test is None else share_right(data, model, test)))
    return WalkTrained(
        model,
        used,
        np.array([step for step, _, _ in seen], dtype=np.int64),
        np.array([value for _, value, _ in seen]),
        np.array([share for _, _, share in seen if test is not None]),
        model[None],
    )


def _check(protocol: RingDescent, data: LogisticParties | ModelParties) -> None:
    if not isinstance(protocol, RingDescent) or not isinstance(data, LogisticParties | ModelParties):
        raise InvalidValue(
            "train_ring runs a RingDescent on LogisticParties or ModelParties, "
            f"got {protocol!r} and {type(data).__name__}"
        )
    if data.n != protocol.n:
        raise InvalidValue(
            f"the protocol has {protocol.n} users and the data {data.n}; deal the rows out to {protocol.n}"
        )
    check_step(protocol, data)
