"""Learning by a token on a random walk: what is accounted is what runs.

The token carries the model θ. At each of T steps a user u, drawn uniformly or by weight, takes one noisy step and passes
the token on:

    θ ← Π(θ − η(g_u(θ) + Z)),   Z ~ N(0, σ²I).

g_u is the mean over u's rows of their gradients, each clipped to norm L *before* the noise (netdp.simulate.logistic), so two
users' gradients differ by at most 2L and a step η ≤ 2/β does not expand (β ≤ max‖x‖²/4, less if L is small). A user that has
contributed `protocol.contributions` times to a token adds noise only. On a graph the token moves to a random neighbour instead,
and the last holder adds the closing noise. Several tokens walk independently of each other, each with a model of its own from
θ = 0; all of them are released, and what is kept is their mean.

**Baselines.** Local and central DP-SGD are the same algorithm with another σ: a curator draws a user in each step too, and
hides which. Give `train_walk` the same protocol with that σ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from netdp.engine import map_items
from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count
from netdp.protocols.ring_descent import RingDescent
from netdp.protocols.walk import WalkDescent

from .logistic import LogisticParties, accuracy, objective
from .model_parties import ModelParties
from .tokens import walk_path


class Rows(Protocol):
    """Rows to test a model on, such as `netdp.learn.Table`: X (rows, d) and y in {−1, +1}."""

    @property
    def X(self) -> FloatArray: ...  # noqa: N802
    @property
    def y(self) -> FloatArray: ...


AFTER_CAP = ("noise", "nothing")
# Steps whose noise is drawn at once: a few megabytes.
_CHUNK = 8192


@dataclass(frozen=True, eq=False)
class WalkTrained:
    """What is left after the last step.

    model          (d,): θ; of several tokens, the mean of their models
    contributions  (n,): how often each user contributed a gradient, all tokens together
    steps          (w,): after how many steps the run was watched
    objective      (w,): the mean logistic loss over all users' rows, unclipped
    accuracy       (w,): the share of the test rows on the right side; empty without a test set
    models         (tokens, d): the released models, one per token

    The history belongs to a simulation: nobody sees it in the protocol, and no loss is stated for publishing it.
    """

    model: FloatArray
    contributions: IntArray
    steps: IntArray
    objective: FloatArray
    accuracy: FloatArray
    models: FloatArray

    def __str__(self) -> str:
        used = self.contributions
        said = (
            f"a model of {len(self.model)} numbers, of length {np.linalg.norm(self.model):.3g}, after {used.sum():,} contributions "
            f"of {len(used):,} users ({used.min()} to {used.max()} each)"
        )
        if len(self.objective):
            said += f"; loss {self.objective[-1]:.3g}"
        if len(self.accuracy):
            said += f", accuracy {self.accuracy[-1]:.3f}"
        return said


def train_walk(
    protocol: WalkDescent,
    data: LogisticParties | ModelParties,
    seed: int | np.random.SeedSequence,
    *,
    watch_every: int | None = None,
    test: Rows | None = None,
    after_cap: str = "noise",
) -> WalkTrained:
    """Run the protocol from θ = 0 on the users' data; the same seed gives the same run, watched or not.

    Any model with `ModelParties`, from its public start; logistic regression is fastest with `LogisticParties`.
    `after_cap="nothing"` lets a user that has used up its contributions pass the token on untouched. That is fine under local
    DP, where the contributions are public anyway; the losses of `netdp.account` are about "noise".

    >>> rows, labels = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    >>> users = LogisticParties.of([rows[:2], rows[2:]], [labels[:2], labels[2:]])
    >>> run = train_walk(WalkDescent(2, steps=200, sigma=0.01, step=1.0), users, seed=0)
    >>> bool(run.model[0] > 1 and run.model[1] < -1), int(run.contributions.sum())
    (True, 200)
    """
    _check(protocol, data, after_cap)
    every = protocol.steps if watch_every is None else count("watch_every", watch_every)
    take = stepper(protocol, data)
    walks = [draws(protocol, seed, token) for token in range(protocol.tokens)]
    models = np.tile(first_of(data), (protocol.tokens, 1))
    used = np.zeros((protocol.tokens, data.n), dtype=np.int64)
    cap = -1 if protocol.contributions is None else protocol.contributions
    seen: list[tuple[int, float, float]] = []
    done = 0
    while done < protocol.steps:
        end = min(done + _CHUNK, protocol.steps, (done // every + 1) * every)
        for token, (path, noises) in enumerate(walks):
            noise = protocol.sigma * noises.standard_normal((end - done, data.d))
            take(path[done:end], noise, models[token], used[token], cap, after_cap == "nothing")
        done = end
        if watch_every is not None and (done % every == 0 or done == protocol.steps):
            model = models.mean(axis=0)
            seen.append((done, loss(data, model), np.nan if test is None else share_right(data, model, test)))
    if protocol.closing:
        last = protocol.step * protocol.sigma * float(np.sqrt(protocol.closing))
        models += last * np.array([noises.standard_normal(data.d) for _, noises in walks])
    return WalkTrained(
        models.mean(axis=0),
        used.sum(axis=0),
        np.array([step for step, _, _ in seen], dtype=np.int64),
        np.array([value for _, value, _ in seen]),
        np.array([share for _, _, share in seen if test is not None]),
        models,
    )


def train_walks(
    protocol: WalkDescent,
    data: LogisticParties | ModelParties,
    seeds: Iterable[int | np.random.SeedSequence],
    *,
    watch_every: int | None = None,
    test: Rows | None = None,
    after_cap: str = "noise",
    workers: int | None = None,
) -> tuple[WalkTrained, ...]:
    """`train_walk` for several seeds, side by side on all cores; the results do not depend on `workers`."""
    one = partial(train_walk, protocol, data, watch_every=watch_every, test=test, after_cap=after_cap)
    return tuple(map_items(one, seeds, frees_lock=True, workers=workers))


def draws(
    protocol: WalkDescent, seed: int | np.random.SeedSequence, token: int = 0
) -> tuple[IntArray, np.random.Generator]:
    """The path of a token, and the generator of its noise: from two streams, so that neither depends on chunks."""
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    # Children by key instead of spawn(), which would count up in the caller's object.
    streams = [
        np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, child)))
        for child in (2 * token, 2 * token + 1)
    ]
    if protocol.graph is not None:
        return walk_path(protocol, streams[0]).astype(np.int64), streams[1]
    if protocol.weights is not None:
        return streams[0].choice(protocol.n, protocol.steps, p=protocol.chances), streams[1]
    return streams[0].integers(0, protocol.n, protocol.steps), streams[1]


Step = Callable[[IntArray, FloatArray, FloatArray, IntArray, int, bool], None]


def stepper(protocol: WalkDescent | RingDescent, data: LogisticParties | ModelParties) -> Step:
    """A function that takes the steps along a path, in place: (path, noise, model, used, cap, forward), see `walk_steps`."""
    radius = protocol.radius or 0.0
    if isinstance(data, ModelParties):

        def any_model(
            path: IntArray, noise: FloatArray, model: FloatArray, used: IntArray, cap: int, forward: bool
        ) -> None:
            data.walk(
                path,
                noise,
                model,
                used,
                step=protocol.step,
                clip=protocol.clip,
                cap=cap,
                forward=forward,
                radius=radius,
            )

        return any_model
    from .walk_descent_kernels import walk_steps

    prepared, gradient = _prepare(data, protocol.clip), np.empty(data.d)

    def logistic(path: IntArray, noise: FloatArray, model: FloatArray, used: IntArray, cap: int, forward: bool) -> None:
        walk_steps(*prepared, path, noise, model, gradient, used, protocol.step, cap, forward, radius)

    return logistic


def first_of(data: LogisticParties | ModelParties) -> FloatArray:
    """The public model that the token starts with."""
    return data.start() if isinstance(data, ModelParties) else np.zeros(data.d)


def share_right(data: LogisticParties | ModelParties, model: FloatArray, test: Rows) -> float:
    """The share of the test rows that the model has right."""
    if isinstance(data, ModelParties):
        return float(data.model.correct(model, test.X, test.y).mean())
    return accuracy(model, test.X, test.y)


def loss(data: LogisticParties | ModelParties, model: FloatArray) -> float:
    """The mean loss over all rows of all users."""
    if isinstance(data, ModelParties):
        return data.risk(model)
    own = data.weight > 0
    return objective(model, data.X[own], data.y[own])


def _prepare(data: LogisticParties, clip: float) -> tuple[FloatArray, IntArray, FloatArray]:
    """Rows times labels, how many of them count, and the cap on a row's factor; see `walk_steps`."""
    own = data.weight > 0
    rows = own.sum(axis=1)
    order = np.argsort(~own, axis=1, kind="stable")
    weight = np.take_along_axis(data.weight, order, axis=1)
    if not np.allclose(np.where(np.arange(own.shape[1]) < rows[:, None], weight * rows[:, None], 1.0), 1.0):
        raise InvalidValue("the rows of a user must weigh the same; deal them out with LogisticParties.deal or .of")
    signed = np.ascontiguousarray(np.take_along_axis(data.X * data.y[:, :, None], order[:, :, None], axis=1))
    length = np.sqrt((signed**2).sum(axis=2))
    return signed, rows, clip / np.where(length > 0, length, 1.0)


def _check(protocol: WalkDescent, data: LogisticParties | ModelParties, after_cap: str) -> None:
    if not isinstance(protocol, WalkDescent) or not isinstance(data, LogisticParties | ModelParties):
        raise InvalidValue(
            "train_walk runs a WalkDescent on LogisticParties or ModelParties, "
            f"got {protocol!r} and {type(data).__name__}"
        )
    if data.n != protocol.n:
        raise InvalidValue(
            f"the protocol has {protocol.n} users and the data {data.n}; deal the rows out to {protocol.n}"
        )
    if after_cap not in AFTER_CAP:
        raise InvalidValue(f"unknown after_cap {after_cap!r}; choose one of {', '.join(AFTER_CAP)}")
    check_step(protocol, data)


def check_step(protocol: WalkDescent | RingDescent, data: LogisticParties | ModelParties) -> None:
    """Refuse a step that may stretch distances further than the protocol's certified loss assumes."""
    needed = data.expansion(protocol.step, protocol.clip)
    if not needed <= protocol.expansion * (1 + 1e-12):
        longest = (
            f"at most {2.0 / data.smoothness(protocol.clip):.4g}"
            if isinstance(data, LogisticParties)
            else f"it may stretch distances by {needed:.4g}; shorten it"
        )
        raise InvalidValue(
            f"step {protocol.step!r} is too long for these rows: {longest}, or state expansion={needed:.4g} in the protocol"
        )
