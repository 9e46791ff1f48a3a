"""Tokens, run: rings, walks on the complete graph and on any graph, sums and histograms.

Values are (n,) or (n, d), the same at every visit. **Values over time** are (periods, n, d), labels (periods, n): on a ring one
period per round; on a path or a walk of T steps, step t = 0 … T−1 is in period ⌊t·periods/T⌋. A user adds what it holds in that
period, by the number of the step, which is public, and *not* by how often it was visited: that would give away the secret of
the path (docs/guarantees.md#values-over-time). A meter that is read every hour:

>>> hours = np.array([[[0.2], [0.4], [0.9]], [[0.2], [0.1], [0.6]]])           # 2 hours, 3 households, 1 number
>>> from netdp.simulate import simulate
>>> run = simulate(WalkSum(3, steps=60_000, sigma=1.0, sender="hidden"), hours, seed=0)
>>> round(float(run.estimates[0, 0]), 1)                                     # the mean over hours and households
0.4

Histograms take labels 0 … L−1 of shape (n,), or (periods, n).

**What is read at the end** (`Run.estimates`, the same row for everybody):

    RingSum         the token over rounds·n: the mean of all contributions; on a grid whole numbers are added
    PathSum         the tokens over the number of contributing steps, which is public as the paths are: the mean of the
                    contributions on the paths
    WalkSum         the tokens over the *expected* number of contributing steps: an unbiased estimate of the mean; with
                    weights of the mean with these weights; on a grid whole numbers are added, as on paths and graphs
    GraphWalkSum    the tokens over steps·tokens: the mean (Metropolis) or the mean weighted by where the walk is in the long
                    run (simple walk: by degree)
    RingHistogram   unbiased shares among all rounds·n contributions
    WalkHistogram   unbiased shares; with weights the shares among users counted by weight

**Why the expected number.** With a cap on the contributions the realised number C of contributing steps depends on the secret
path, so it is not there to divide by. On the complete graph every user has the same law of visits, Binomial(T, 1/n), so
E[token] = Σ_u x_u·E[min(visits, cap)] = mean·E[C] with E[C] = n·Σ_{k<cap} P(visits > k): dividing by E[C] is exactly
unbiased. On another graph users differ, and a capped walk has no such number: it is refused.

**Histograms.** With N contributions, b random elements besides (the blankets; the answers of users past their cap) and
h the true counts, E[τ_i] = (1−γ)h_i + γN/L + b/L, which is solved for h. On the ring with γn whole and no closing this is
(τ_i − γn(K+1)/L)/(1−γ); the paper prints γ/L for γn(K+1)/L.

Paths, answers and blankets come from a stream of their own, so the Gaussian noise of a run does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Transition
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols.path import PathSum, UserArray, first_visits
from netdp.protocols.ring import Draw, RingHistogram, RingSum, ring_add, ring_mean, ring_noises, ring_steps
from netdp.protocols.walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
from netdp.protocols.walk_steps import walk_values
from netdp.views.token import TokenTranscript, ring_path

from .noise_law import unit_noise
from .on_a_grid import held_on_the_grid
from .run import Normal, Run, Values, execute, observers_of

# Numbers of noise held in memory at once.
_AT_ONCE = 1 << 20
# Bits of unary answers held in memory at once.
_BITS = 50_000_000
_CAPPED = (
    "contributions={}: how many steps of a capped walk on a graph carry data depends on the secret path, so there is no public "
    "number to divide the token by. Leave contributions=None"
)


@dataclass(frozen=True, eq=False)
class TokenRecord:
    """All that the observers hold after a run: enough to mount an attack from it, and nothing they could not know.

    observers      who they are, in increasing order
    visits         (visits, 3) token, step, holder: each time one of them holds a token, token by token
    arrivals       (visits, d) the token as it reached them
    contributions  (visits, d) what they meant to add (0 past their cap)
    noises         (visits, d) the noise they added to it; for histograms, the answer given minus the true one
    starts         (tokens, d) what the token held before step 0; nan where its first holder is no observer
    closings       (tokens, d) what the last holder added before the release; nan where it is no observer
    release        (tokens, d) the tokens as released
    """

    observers: tuple[int, ...]
    visits: IntArray
    arrivals: FloatArray
    contributions: FloatArray
    noises: FloatArray
    starts: FloatArray
    closings: FloatArray
    release: FloatArray


def draw_paths(protocol: WalkSum | GraphWalkSum, seed: int) -> PathSum:
    """The walks that `simulate` with this seed takes, as a protocol on public paths.

    >>> drawn = draw_paths(WalkSum(5, steps=8, sigma=1.0), seed=1)
    >>> drawn.tokens, len(drawn.paths[0])
    (1, 8)
    """
    rng = stream(seed)
    if isinstance(protocol, WalkSum):
        paths = [complete_path(protocol, rng) for _ in range(protocol.tokens)]
        closing = 0.0
    else:
        paths = [walk_path(protocol, rng) for _ in range(protocol.tokens)]
        closing = protocol.closing
    law = getattr(protocol, "law", "gaussian")
    return PathSum(
        protocol.n, tuple(paths), protocol.sigma, closing, protocol.contributions, protocol.sensitivity, law, protocol.grid,
        protocol.dimension,
    )  # fmt: skip


def expected_contributing(protocol: WalkSum | WalkHistogram) -> float:
    """E[number of steps of one token that carry data]: Σ_u Σ_{k<cap} P(Binomial(T, 1/n) > k); T without a cap.

    >>> expected_contributing(WalkSum(2, steps=2, sigma=1.0, contributions=1))     # 2·(1 − 1/4)
    1.5
    """
    if protocol.contributions is None:
        return float(protocol.steps)
    from scipy.stats import binom

    most = np.arange(min(protocol.contributions, protocol.steps))
    if protocol.weights is None:
        return float(protocol.n * binom.sf(most, protocol.steps, 1.0 / protocol.n).sum())
    chances, users = np.unique(protocol.chances, return_counts=True)
    return float(users @ binom.sf(most[None, :], protocol.steps, chances[:, None]).sum(axis=1))


def every_round(protocol: Any, values: Values) -> FloatArray:
    """(rounds, n, d): values that were given for every round, or the same in all."""
    if np.ndim(values.given) != 3:
        once = values.of(protocol)
        return np.broadcast_to(once, (protocol.rounds, *once.shape))
    shape: tuple[int, ...] = np.shape(values.given)
    if shape[:2] != (protocol.rounds, protocol.n):
        raise InvalidValue(f"values of every round must have shape ({protocol.rounds}, {protocol.n}, d), got {shape}")
    return over_time(protocol, values)


def over_time(protocol: Any, values: Values) -> FloatArray:
    """(periods, n, d) values of any number of periods, each held to the sensitivity; (n,) and (n, d) are one period."""
    if np.ndim(values.given) != 3:
        return values.of(protocol)[None]
    periods: Any = values.given
    if len(periods) == 0:
        raise InvalidValue(f"values over time have shape (periods, {protocol.n}, d), got {np.shape(periods)}")
    return np.stack([replace(values, given=period).of(protocol) for period in periods])


def period_of(steps: npt.ArrayLike, length: int, periods: int) -> IntArray:
    """⌊t·periods/T⌋ of every step t of a walk of T steps; refuses more periods than steps.

    >>> period_of(np.arange(7), 7, 3).tolist()
    [0, 0, 0, 1, 1, 2, 2]
    """
    if periods > length:
        raise InvalidValue(f"{periods} periods do not fit into {length} steps; give at most one period per step")
    return np.asarray(steps, dtype=np.int64) * periods // length


@execute.register
def _ring_sum(protocol: RingSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    data = every_round(protocol, values)
    observers = observers_of(protocol, record)
    path = ring_path(protocol)
    n = protocol.n
    if protocol.grid is not None:
        token, seen = carry_integers(protocol, ring_on_the_grid(protocol, data, values.bounds), seed, observers)
        return token_run(protocol, ring_mean(protocol, token), (path,), seed, seen)

    def gifts(_: int, first: int, last: int) -> FloatArray:
        return data[np.arange(first, last) // n, path[first:last]]

    noise = protocol.hop_noise, protocol.closing_noise
    release, kept = carry(n, (path,), gifts, (noise,), data.shape[2], unit_noise(protocol.law, normal), observers)
    return token_run(protocol, release.sum(axis=0) / len(path), (path,), seed, kept)


def ring_on_the_grid(protocol: RingSum, data: FloatArray, bounds: Any) -> IntArray:
    """The values of every round in grid steps, (rounds, n, d), held to what the privacy rests on."""
    return held_on_the_grid(protocol, data, bounds, ring_steps)


def carry_integers(
    protocol: RingSum, integers: IntArray, seed: int, observers: tuple[int, ...]
) -> tuple[IntArray, TokenRecord | None]:
    """The released token, (d,) whole numbers, and the record; noise from a stream of its own."""
    (rounds, n, d), path = integers.shape, ring_path(protocol)
    draw = pooled(protocol, d, seed)
    noises, closing = np.empty((rounds, n, d), dtype=np.int64), np.zeros(d, dtype=np.int64)
    for u in range(n):
        noises[:, u], last = ring_noises(protocol, u, d, draw)
        closing += last
    given, noise = integers.reshape(-1, d), noises.reshape(-1, d)
    token = np.zeros(d, dtype=np.int64)
    watched, arrivals = np.isin(path, observers), []
    for hop, u in enumerate(path.tolist()):
        if watched[hop]:
            arrivals.append(token)
        token = ring_add(token, given[hop] + noise[hop])
        if hop == len(path) - 1 and u == n - 1:
            token = ring_add(token, closing)
    if not observers:
        return token, None
    at = np.flatnonzero(watched)

    def real(numbers: IntArray) -> FloatArray:
        return np.asarray(numbers, dtype=np.float64) * protocol.step

    return token, TokenRecord(
        observers=observers,
        visits=np.column_stack([np.zeros_like(at), at, path[at]]).astype(np.int64),
        arrivals=real(np.array(arrivals).reshape(-1, d)),
        contributions=real(given[at]),
        noises=real(noise[at]),
        starts=np.full((1, d), 0.0 if watched[0] else np.nan),
        closings=real(closing[None]) if watched[-1] else np.full((1, d), np.nan),
        release=real(token[None]),
    )


def pooled(protocol: RingSum, columns: int, seed: int) -> Draw:
    """A draw from as many discrete Gaussians as a run takes, made at once: the sampler is fast in bulk only."""
    words = words_from(stream(seed))
    needed = np.append(protocol.hop_variances, protocol.closing_variance)
    pools = {
        v: iter(DiscreteGaussian(v).sample((times, columns), words))
        for v, times in zip(*(part.tolist() for part in np.unique(needed[needed > 0], return_counts=True)), strict=True)
    }
    return lambda variance, size: next(pools[variance])


@execute.register
def _path_sum(protocol: PathSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    contributing = int(protocol.given.sum())
    return _along(protocol, protocol, contributing, values, seed, normal, record)


@execute.register
def _walk_sum(protocol: WalkSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    contributing = protocol.tokens * expected_contributing(protocol)
    return _along(protocol, draw_paths(protocol, seed), contributing, values, seed, normal, record)


@execute.register
def _graph_walk_sum(protocol: GraphWalkSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    if protocol.contributions is not None:
        raise Unsupported(
            f"{_CAPPED.format(protocol.contributions)}, or run it on a public path: "
            "simulate(netdp.simulate.tokens.draw_paths(protocol, seed), values, seed)"
        )
    contributing = protocol.tokens * protocol.steps
    return _along(protocol, draw_paths(protocol, seed), contributing, values, seed, normal, record)


def _along(
    protocol: PathSum | WalkSum | GraphWalkSum,
    drawn: PathSum,
    contributing: float,
    values: Values,
    seed: int,
    normal: Normal,
    record: Any,
) -> Run:
    """Run tokens along paths and divide by the number of contributions."""
    data, observers = over_time(protocol, values), observers_of(protocol, record)
    if len(data) > 1 and drawn.contributions is not None:
        raise Unsupported(
            f"contributions={drawn.contributions}: with a cap early periods count more than late ones, and by how much depends on "
            "the path; give values over time without a cap"
        )

    if drawn.grid is not None:
        total, seen = walk_integers(drawn, held_on_the_grid(drawn, data, values.bounds, walk_values), seed, observers)
        mean = np.asarray(total * (drawn.step / contributing), dtype=np.float64)
        return token_run(drawn, mean, drawn.paths, seed, seen)

    def gifts(k: int, first: int, last: int) -> FloatArray:
        path = drawn.paths[k]
        added = data[period_of(np.arange(first, last), len(path), len(data)), path[first:last]]
        if drawn.contributions is not None:
            added[~drawn.carries[k][first:last]] = 0.0
        return added

    closing = drawn.sigma * float(np.sqrt(drawn.closing))
    noise = tuple((np.broadcast_to(drawn.sigma, len(path)), closing) for path in drawn.paths)
    release, kept = carry(drawn.n, drawn.paths, gifts, noise, data.shape[2], unit_noise(drawn.law, normal), observers)
    return token_run(drawn, release.sum(axis=0) / contributing, drawn.paths, seed, kept)


def walk_integers(
    drawn: PathSum, integers: IntArray, seed: int, observers: tuple[int, ...]
) -> tuple[IntArray, TokenRecord | None]:
    """The sum of the released tokens, (d,) whole numbers, and the record; noise from a stream of its own.

    What `netdp.protocols.walk_steps` does visit by visit, all visits at once: nothing is rounded, so the order does not matter.
    """
    periods, _, d = integers.shape
    words = words_from(np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[1]))
    each, last = DiscreteGaussian(drawn.variance), drawn.closing_variance
    releases, records = [], []

    def real(numbers: IntArray) -> FloatArray:
        return np.asarray(numbers * drawn.step, dtype=np.float64)

    for k, path in enumerate(drawn.paths):
        given = integers[period_of(np.arange(len(path)), len(path), periods), path]
        given[~drawn.carries[k]] = 0
        noise = each.sample((len(path), d), words)
        closing = DiscreteGaussian(last).sample((d,), words) if last else np.zeros(d, dtype=np.int64)
        running = np.cumsum(given + noise, axis=0)  # below 2⁶²: `most_steps`
        releases.append(running[-1] + closing)
        watched = np.isin(path, observers)
        at = np.flatnonzero(watched)
        arrivals = np.where(at[:, None] > 0, running[at - 1], 0)
        unknown = np.full((1, d), np.nan)
        records.append(
            TokenRecord(
                observers=observers,
                visits=np.column_stack([np.full(len(at), k), at, path[at]]).astype(np.int64),
                arrivals=real(arrivals),
                contributions=real(given[at]),
                noises=real(noise[at]),
                starts=np.zeros((1, d)) if watched[0] else unknown,
                closings=real(closing[None]) if watched[-1] else unknown,
                release=real(releases[-1][None]),
            )
            if observers
            else None
        )
    return np.sum(releases, axis=0, dtype=np.int64), _joined(records)


def carry(
    n: int,
    paths: tuple[UserArray, ...],
    gifts: Callable[[int, int, int], FloatArray],
    noises: tuple[tuple[FloatArray, float], ...],
    d: int,
    normal: Normal,
    observers: tuple[int, ...],
) -> tuple[FloatArray, TokenRecord | None]:
    """Every token to its release, (tokens, d), and the record.

    `gifts(k, first, last)`: what the steps first … last−1 of token k add; `noises`: per token the standard deviation of
    the noise of every step, and of the closing noise.
    """
    watched = np.zeros(n, dtype=bool)
    watched[list(observers)] = True
    release, starts = np.zeros((len(paths), d)), np.full((len(paths), d), np.nan)
    closings = np.full((len(paths), d), np.nan)
    visits = [np.empty((0, 3), dtype=np.int64)]
    arrivals, given, added = ([np.empty((0, d))] for _ in range(3))
    size = max(1, _AT_ONCE // d)
    for k, (path, (scales, closing)) in enumerate(zip(paths, noises, strict=True)):
        token = release[k]
        for first in range(0, len(path), size):
            last = min(first + size, len(path))
            gift = gifts(k, first, last)
            noise = normal((last - first, d)) * scales[first:last, None]
            running = np.cumsum(gift + noise, axis=0)
            if observers and len(at := np.flatnonzero(watched[path[first:last]])):
                before = np.where(at[:, None] > 0, running[at - 1], 0.0)
                visits.append(np.column_stack([np.full(len(at), k), at + first, path[at + first]]).astype(np.int64))
                arrivals.append(token + before)
                given.append(gift[at])
                added.append(noise[at])
            token += running[-1]
        last_noise = closing * normal((d,)) if closing else np.zeros(d)
        token += last_noise
        if watched[path[0]]:
            starts[k] = 0.0
        if watched[path[-1]]:
            closings[k] = last_noise
    if not observers:
        return release, None
    return release, TokenRecord(
        observers=observers,
        visits=np.vstack(visits),
        arrivals=np.vstack(arrivals),
        contributions=np.vstack(given),
        noises=np.vstack(added),
        starts=starts,
        closings=closings,
        release=release.copy(),
    )


@execute.register
def _ring_histogram(protocol: RingHistogram, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    labels = _labels(values.labels(), protocol.n, protocol.domain, protocol.rounds)
    _need_truth(protocol.gamma)
    observers = observers_of(protocol, record)
    rng, path, L = stream(seed), ring_path(protocol), protocol.domain
    truth = np.broadcast_to(labels, (protocol.rounds, protocol.n)).ravel()
    start = _random_elements(protocol, protocol.blanket, rng)
    answers = _answers(protocol, truth, protocol.gamma, rng)
    extra = protocol.closing_blanket
    closing = _random_elements(protocol, extra, rng)
    everywhere = np.ones(len(path), dtype=bool)
    heap, kept = _collect(path, truth, everywhere, answers, L, start, closing, observers)
    random = protocol.blanket + extra
    estimate = debiased(heap, protocol.gamma, len(path), random, _options(protocol)) / len(path)
    return token_run(protocol, estimate, (path,), seed, kept)


@execute.register
def _walk_histogram(protocol: WalkHistogram, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    labels = np.atleast_2d(_labels(values.labels(), protocol.n, protocol.domain, None))
    if len(labels) > 1 and protocol.contributions is not None:
        raise Unsupported(
            f"contributions={protocol.contributions}: with a cap early periods count more; give one period"
        )
    if protocol.graph is not None and protocol.contributions is not None:
        raise Unsupported(_CAPPED.format(protocol.contributions))
    _need_truth(protocol.gamma)
    observers = observers_of(protocol, record)
    rng, L = stream(seed), protocol.domain
    paths: list[UserArray] = []
    heap, records = np.zeros(L), []
    for token in range(protocol.tokens):
        path = complete_path(protocol, rng) if protocol.graph is None else walk_path(protocol, rng)
        period = period_of(np.arange(len(path)), len(path), len(labels))
        carries, truth = first_visits(path, protocol.contributions), labels[period, path]
        answers = _answers(protocol, truth, np.where(carries, protocol.gamma, 1.0), rng)
        collected, kept = _collect(path, truth, carries, answers, L, np.zeros(L), np.zeros(L), observers, token)
        heap += collected
        paths.append(path)
        records.append(kept)
    contributing = protocol.tokens * expected_contributing(protocol)
    random = protocol.tokens * protocol.steps - contributing
    estimate = debiased(heap, protocol.gamma, contributing, random, _options(protocol)) / contributing
    return token_run(protocol, estimate, tuple(paths), seed, _joined(records))


def _joined(records: list[TokenRecord | None]) -> TokenRecord | None:
    """The records of several tokens as one, token by token."""
    kept = [record for record in records if record is not None]
    if len(kept) < 2:
        return kept[0] if kept else None
    parts = ("visits", "arrivals", "contributions", "noises", "starts", "closings", "release")
    return TokenRecord(kept[0].observers, *(np.vstack([getattr(record, part) for record in kept]) for part in parts))


def debiased(
    heap: npt.ArrayLike, gamma: float, contributions: float, random: float, options: int | None = None
) -> FloatArray:
    """Unbiased counts from a heap of randomized answers and `random` uniformly random elements besides.

    `options`: how many values a random answer is drawn from: the size of the domain, or 2 for the bits of unary encoding.

    >>> debiased([60.0, 40.0], gamma=0.5, contributions=80, random=20).tolist()
    [60.0, 20.0]
    """
    counts = np.asarray(heap, dtype=np.float64)
    return np.asarray((counts - (gamma * contributions + random) / (options or counts.shape[-1])) / (1.0 - gamma))


def _options(protocol: RingHistogram | WalkHistogram) -> int:
    return 2 if protocol.response == "unary" else protocol.domain


def _random_elements(protocol: RingHistogram, size: int, rng: np.random.Generator) -> FloatArray:
    """The counts of so many uniformly random elements."""
    if protocol.response == "unary":
        return rng.binomial(size, 0.5, size=protocol.domain).astype(np.float64)
    return np.bincount(rng.integers(protocol.domain, size=size), minlength=protocol.domain).astype(np.float64)


def _answers(
    protocol: RingHistogram | WalkHistogram, truth: IntArray, gamma: Any, rng: np.random.Generator
) -> npt.NDArray[Any]:
    """Randomized responses, random with probability γ: values (steps,), or with unary encoding rows of bits (steps, L)."""
    L = protocol.domain
    if protocol.response == "unary":
        if len(truth) * L > _BITS:
            raise Unsupported(
                f"{len(truth):,} answers of {L:,} bits do not fit into memory at once; simulate a shorter walk or fewer values"
            )
        bits = (rng.random((len(truth), L)) < 0.5).astype(np.int8)
        kept = rng.random((len(truth), L)) >= np.broadcast_to(np.asarray(gamma, dtype=np.float64), len(truth))[:, None]
        own = truth[:, None] == np.arange(L)
        return np.where(kept, own, bits).astype(np.int8)
    chance = rng.random(len(truth)) < gamma
    return np.where(chance, rng.integers(L, size=len(truth)), truth)


def _collect(
    path: UserArray,
    truth: IntArray,
    carries: npt.NDArray[np.bool_],
    answers: npt.NDArray[Any],
    L: int,
    start: FloatArray,
    closing: FloatArray,
    observers: tuple[int, ...],
    token: int = 0,
) -> tuple[FloatArray, TokenRecord | None]:
    """The released heap and the record."""
    unit = np.eye(L)
    bits = answers.ndim == 2
    heap = start + (answers.sum(axis=0, dtype=np.int64) if bits else np.bincount(answers, minlength=L)) + closing
    if not observers:
        return heap, None
    own = np.isin(path, observers)
    at = np.flatnonzero(own)
    place = np.cumsum(own)  # what is added at O's j-th visit is on the token from its (j+1)-th reading on
    if bits:
        table = np.zeros((len(at) + 1, L), dtype=np.int64)
        np.add.at(table, place, answers)
    else:
        table = np.bincount(place * L + answers, minlength=(len(at) + 1) * L).reshape(-1, L)
    meant = unit[truth[at]] * carries[at, None]
    unknown = np.full((1, L), np.nan)
    return heap, TokenRecord(
        observers=observers,
        visits=np.column_stack([np.full(len(at), token), at, path[at]]).astype(np.int64),
        arrivals=start + np.cumsum(table, axis=0)[: len(at)],
        contributions=meant,
        noises=(answers[at] if bits else unit[answers[at]]) - meant,
        starts=start[None] if own[0] else unknown,
        closings=closing[None] if own[-1] else unknown,
        release=heap[None],
    )


def _labels(values: npt.ArrayLike, n: int, domain: int, rounds: int | None) -> IntArray:
    """Labels 0 … L−1 of shape (n,) or (rounds, n), rounds=None: any number of periods; anything else is refused."""
    labels = np.asarray(values)
    fits = labels.shape[-1:] == (n,) and (
        labels.ndim == 1 or (labels.ndim == 2 and len(labels) == (rounds or len(labels)))
    )
    if labels.dtype.kind not in "iu" or not fits or labels.size == 0:
        raise InvalidValue(
            f"a histogram takes whole labels of shape ({n},) or ({rounds or 'periods'}, {n}), one per user, "
            f"got {labels.dtype} of shape {labels.shape}"
        )
    wrong = (labels < 0) | (labels >= domain)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        raise InvalidValue(f"label {int(labels[place])} of user {int(place[-1])} is outside 0 … {domain - 1}")
    return labels.astype(np.int64)


def _need_truth(gamma: float) -> None:
    if gamma >= 1.0:
        raise InvalidValue("gamma=1: every answer is random, so there is nothing to estimate; give gamma below 1")


def token_run(
    protocol: Any, answer: FloatArray, paths: tuple[UserArray, ...], seed: int, record: TokenRecord | None
) -> Run:
    transcript: Any = TokenTranscript(protocol.n, paths)
    kept: Any = record
    return Run(np.broadcast_to(answer, (protocol.n, len(answer))), transcript, seed, protocol, kept)


def stream(seed: int) -> np.random.Generator:
    """A stream of its own beside the noise of the same seed."""
    return np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])


def complete_path(protocol: WalkSum | WalkHistogram, rng: np.random.Generator) -> UserArray:
    """Who is drawn at every step of a walk on the complete graph."""
    if protocol.weights is None:
        return rng.integers(protocol.n, size=protocol.steps, dtype=np.int32)
    return rng.choice(protocol.n, size=protocol.steps, p=protocol.chances).astype(np.int32)


def walk_path(protocol: GraphWalkSum | WalkHistogram | WalkDescent, rng: np.random.Generator) -> UserArray:
    """One walk on the protocol's graph, from its long-run law."""
    from .token_kernels import walk_along, walk_on

    graph = protocol.graph
    assert graph is not None
    path = np.empty(protocol.steps, dtype=np.int32)
    path[0] = holder = int(rng.choice(protocol.n, p=protocol.stationary))
    P = protocol.transition
    for first in range(1, protocol.steps, _AT_ONCE):
        part = path[first : first + _AT_ONCE]
        if isinstance(protocol.walk, Transition):
            holder = walk_along(P.indptr, P.indices, P.data, holder, rng.random(len(part)), part)
            continue
        metropolis = protocol.walk == "metropolis"
        holder = walk_on(graph.indptr, graph.indices, holder, metropolis, rng.random(len(part)), part)
    return path
