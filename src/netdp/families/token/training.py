"""Learning by a token on a random walk or round a ring, run: what is accounted is what runs.

The token carries the model θ. At each step its holder u takes one noisy step and passes it on:

    θ ← Π(θ − η(g_u(θ) + Z)),   Z ~ N(0, σ²I).

g_u is the mean over u's rows of their gradients, each clipped to norm L *before* the noise (netdp.models.parties), so two
users' gradients differ by at most 2L and a step η ≤ 2/β does not expand (β ≤ max‖x‖²/4, less if L is small). On a walk users are
drawn uniformly, by weight, or along a graph, where the last holder adds the closing noise; several tokens walk independently, each
with a model of its own, and what is kept is their mean. On a ring the path is 0, 1, …, n−1, K times over.

**Baselines.** Local and central DP-SGD are the same algorithm with another σ: a curator draws a user in each step too, and
hides which. Give `train_walk` the same protocol with that σ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from netdp.engines.maps import map_items
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.ring import RingDescent
from netdp.families.token.simulate import walk_path
from netdp.families.token.steps import visited
from netdp.families.token.walk import WalkDescent
from netdp.mechanisms.discrete_gaussian import words_from
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.models.parties import LogisticParties, ModelParties, Rows, accuracy, loss
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import between, count
from netdp.protocols.grid import Draw
from netdp.protocols.simulation import trainers

AFTER_CAP = ("noise", "nothing")

_CHUNK = 8192  # steps whose noise is drawn at once


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


@trainers.register
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
    _check_data(protocol, data, "train_walk", WalkDescent)
    if after_cap not in AFTER_CAP:
        raise InvalidValue(f"unknown after_cap {after_cap!r}; choose one of {', '.join(AFTER_CAP)}")
    walks = [draws(protocol, seed, token) for token in range(protocol.tokens)]
    if protocol.grid is not None or protocol.batch is not None:
        return _visit_by_visit(protocol, data, walks, watch_every, test)
    cap = -1 if protocol.contributions is None else protocol.contributions
    return _train(protocol, data, walks, cap, after_cap == "nothing", protocol.closing, watch_every, test)


def _train(
    protocol: WalkDescent | RingDescent,
    data: LogisticParties | ModelParties,
    walks: list[tuple[IntArray, np.random.Generator]],
    cap: int,
    forward: bool,
    closing: float,
    watch_every: int | None,
    test: Rows | None,
) -> WalkTrained:
    """All tokens along their paths, each with a generator of its own; cap and forward as in `walk_steps`."""
    every = protocol.steps if watch_every is None else count("watch_every", watch_every)
    take = stepper(protocol, data)
    models = np.tile(starting_model(data), (len(walks), 1))
    used = np.zeros((len(walks), data.n), dtype=np.int64)
    seen: list[tuple[int, float, float]] = []
    done = 0
    while done < protocol.steps:
        end = min(done + _CHUNK, protocol.steps, (done // every + 1) * every)
        for token, (path, noises) in enumerate(walks):
            noise = protocol.sigma * noises.standard_normal((end - done, data.d))
            take(path[done:end], noise, models[token], used[token], cap, forward)
        done = end
        if watch_every is not None and (done % every == 0 or done == protocol.steps):
            model = models.mean(axis=0)
            seen.append((done, loss(data, model), np.nan if test is None else share_of_right(data, model, test)))
    if closing:
        last = protocol.step * protocol.sigma * float(np.sqrt(closing))
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
    from netdp.families.token.kernels import walk_steps

    prepared, gradient = _prepare(data, protocol.clip), np.empty(data.d)

    def logistic(path: IntArray, noise: FloatArray, model: FloatArray, used: IntArray, cap: int, forward: bool) -> None:
        walk_steps(*prepared, path, noise, model, gradient, used, protocol.step, cap, forward, radius)

    return logistic


def starting_model(data: LogisticParties | ModelParties) -> FloatArray:
    """The public model that the token starts with."""
    return data.start() if isinstance(data, ModelParties) else np.zeros(data.d)


def share_of_right(data: LogisticParties | ModelParties, model: FloatArray, test: Rows) -> float:
    """The share of the test rows that the model has right."""
    if isinstance(data, ModelParties):
        return float(data.model.correct(model, test.X, test.y).mean())
    return accuracy(model, test.X, test.y)


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


def _check_data(
    protocol: WalkDescent | RingDescent, data: LogisticParties | ModelParties, name: str, kind: type
) -> None:
    """Refuse another protocol than this function runs, and data that are not those of its users."""
    if not isinstance(protocol, kind) or not isinstance(data, LogisticParties | ModelParties):
        raise InvalidValue(
            f"{name} runs a {kind.__name__} on LogisticParties or ModelParties, "
            f"got {protocol!r} and {type(data).__name__}"
        )
    if data.n != protocol.n:
        raise InvalidValue(
            f"the protocol has {protocol.n} users and the data {data.n}; deal the rows out to {protocol.n}"
        )
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


def _visit_by_visit(
    protocol: WalkDescent,
    data: LogisticParties | ModelParties,
    walks: list[tuple[IntArray, np.random.Generator]],
    watch_every: int | None,
    test: Rows | None,
) -> WalkTrained:
    """In whole numbers as peers add them up (noise from NumPy's words), or of a few rows at a time."""
    if not isinstance(data, ModelParties):
        raise InvalidValue(
            "a walk in whole numbers, or of batches, is run on ModelParties(model, Xs, ys); LogisticParties are for "
            "real numbers and "
            "all rows"
        )
    if protocol.contributions is not None or protocol.radius is not None or watch_every is not None or test is not None:
        raise Unsupported(
            "contributions, radius, watch_every and test: of a walk in whole numbers, or of batches, the released "
            "models are all there "
            "is; leave them out"
        )
    used, released = np.zeros(data.n, dtype=np.int64), []
    for path, noises in walks:
        drawn, rows = discrete(noises), np.random.default_rng(noises.integers(2**63))
        start = starting_model(data)
        state: Any = start if protocol.grid is None else protocol.start(start)
        for u in path.tolist():
            own = data if protocol.batch is None else data.draw_batch(protocol.batch, rows)
            used[u] += 1
            if protocol.grid is None:
                noise = protocol.sigma * noises.standard_normal(data.d)
                state = state - protocol.step * (own.gradient(state, u, protocol.clip) + noise)
                continue
            steps = protocol.in_steps(own.gradient(protocol.model(state), u, protocol.clip))
            state = visited(state, -steps, drawn(protocol.variance, data.d))
        if protocol.grid is not None:
            if protocol.closing_variance:
                state = visited(state, np.zeros_like(state), drawn(protocol.closing_variance, data.d))
            state = protocol.model(state)
        elif protocol.closing:
            state = state + protocol.step * protocol.sigma * math.sqrt(protocol.closing) * noises.standard_normal(
                data.d
            )
        released.append(state)
    models, nothing = np.array(released), np.zeros(0)
    return WalkTrained(models.mean(axis=0), used, np.zeros(0, dtype=np.int64), nothing, nothing, models)


def discrete(noises: np.random.Generator) -> Draw:
    """Discrete Gaussians of any parameter, from NumPy's words: for simulation."""
    words = words_from(noises)
    return lambda variance, size: FineGaussian(variance).sample((size,), words)


@trainers.register
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
    _check_data(protocol, data, "train_ring", RingDescent)
    path = np.tile(np.arange(protocol.n), protocol.rounds)
    return _train(protocol, data, [(path, np.random.default_rng(seed))], -1, False, 0.0, watch_every, test)


def replaced_tokens(
    protocol: WalkDescent,
    data: LogisticParties,
    deviators: Iterable[int],
    replacement: FloatArray,
    seed: int,
    *,
    chance: float = 1.0,
) -> tuple[FloatArray, IntArray]:
    """The models of all tokens (k, d) if whoever of the deviators holds one puts `replacement` in its place, and how
    often each was.

    They do so at every visit, or with probability `chance`. For walks on the complete graph. What a deviator does
    not touch goes on as prescribed: honest steps pull the model back, as far as
    they come before the end or the next replacement.

    >>> rows = np.random.default_rng(0).standard_normal((60, 2)) / 4
    >>> data = LogisticParties.deal(rows, np.where(rows[:, 0] > 0, 1.0, -1.0), 20)
    >>> walk = WalkDescent(20, steps=40, sigma=0.01, step=1.0, clip=0.2, tokens=5)
    >>> models, met = replaced_tokens(walk, data, [3], np.array([-50.0, 0.0]), seed=1)
    >>> met.tolist(), bool((models[met > 0, 0] < -30).all()), bool((models[met == 0, 0] > 0).all())
    ([3, 0, 2, 2, 3], True, True)
    """
    if protocol.graph is not None or protocol.weights is not None:
        raise Unsupported(
            "replaced tokens are simulated on the complete graph with uniform draws; leave out graph and weights"
        )
    from netdp.families.token.kernels import walk_steps

    if protocol.contributions is not None:
        raise Unsupported(f"contributions={protocol.contributions}: replaced tokens are simulated without a cap")
    often = between("chance", chance, 0.0, 1.0)
    who = np.asarray(list(deviators), dtype=np.int64)
    aim = np.asarray(replacement, dtype=np.float64)
    prepared = _prepare(data, protocol.clip)
    models, met = np.zeros((protocol.tokens, data.d)), np.zeros(protocol.tokens, dtype=np.int64)
    for k in range(protocol.tokens):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,)))
        path = rng.integers(0, protocol.n, protocol.steps)
        hits = np.flatnonzero(np.isin(path, who))
        if often < 1:
            hits = hits[rng.random(len(hits)) < often]
        met[k] = len(hits)
        first = int(hits[-1]) + 1 if len(hits) else 0
        model = aim.copy() if len(hits) else np.zeros(data.d)
        left = path[first:]
        if len(left):
            noise = protocol.sigma * rng.standard_normal((len(left), data.d))
            used, gradient = np.zeros(data.n, dtype=np.int64), np.empty(data.d)
            walk_steps(*prepared, left, noise, model, gradient, used, protocol.step, -1, False, protocol.radius or 0.0)
        models[k] = model
    return models, met
