"""Tokens, run: rings, walks on the complete graph and on any graph, sums and histograms.

Values are (n,) or (n, d), the same at every visit. **Values over time** are (periods, n, d), labels (periods, n): on a ring one
period per round; on a path or a walk of T steps, step t = 0 … T−1 is in period ⌊t·periods/T⌋. A user adds what it holds in that
period, by the number of the step, which is public, and *not* by how often it was visited: that would give away the secret of
the path (docs/proofs/token.md#values-over-time). A meter that is read every hour:

>>> hours = np.array([[[0.2], [0.4], [0.9]], [[0.2], [0.1], [0.6]]])           # 2 hours, 3 households, 1 number
>>> from netdp.protocols import simulate
>>> run = simulate(WalkSum(3, steps=60_000, sigma=1.0, sender="hidden"), hours, seed=0)
>>> round(float(run.estimates[0, 0]), 1)                                     # the mean over hours and households
0.4

Histograms take labels 0 … L−1 of shape (n,), or (periods, n).

**What is read at the end** (`Run.estimates`, the same row for everybody):

    RingSum         the token over rounds·n: the mean of all contributions; on a grid whole numbers are added
    SecretRingSum   the same; `Run.protocol` is the sum along the path that was drawn
    PathSum         the tokens over the number of contributing steps, which is public as the paths are: the mean of the
                    contributions on the paths
    WalkSum         the tokens over the *expected* number of contributing steps: an unbiased estimate of the mean; with
                    weights of the mean with these weights; on a grid whole numbers are added, as on paths and graphs
    GraphWalkSum    the tokens over steps·tokens: the mean (Metropolis) or the mean weighted by where the walk is in the long
                    run (simple walk: by degree)
    RingHistogram   unbiased shares among all rounds·n contributions
    WalkHistogram   unbiased shares; with weights the shares among users counted by weight

Why these estimates are unbiased: docs/proofs/token.md#token-error. Paths, orders, answers and blankets come from a stream of their
own, so the Gaussian noise of a run does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.path import PathSum, UserArray, first_visits
from netdp.families.token.ring import (
    RingHistogram,
    RingSum,
    SecretRingSum,
    ring_draw,
    ring_mean,
    ring_noises,
    ring_steps,
)
from netdp.families.token.steps import debiased, refuse_pure_chance, shares, walk_values
from netdp.families.token.views import TokenTranscript, path_sum, ring_path
from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
from netdp.graphs.transitions import Transition
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols.grid import Draw, held_on_the_grid
from netdp.protocols.simulation import Normal, Run, Values, execute, hindsight, observers_of, unit_noise

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
    draw: Any = complete_path if isinstance(protocol, WalkSum) else walk_path
    return path_sum(protocol, tuple(draw(protocol, rng) for _ in range(protocol.tokens)))


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
    if protocol.grid is not None:
        token, seen = ring_integers(protocol, ring_on_the_grid(protocol, data, values.bounds), seed, observers)
        return token_run(protocol, ring_mean(protocol, token), (path,), seed, seen)
    noise = protocol.hop_noise, protocol.closing_noise
    release, kept = _carry_round(path, data, noise, unit_noise(protocol.law, normal), observers)
    return token_run(protocol, release.sum(axis=0) / len(path), (path,), seed, kept)


def _carry_round(
    path: UserArray, data: FloatArray, noise: tuple[FloatArray, float], normal: Normal, observers: tuple[int, ...]
) -> tuple[FloatArray, TokenRecord | None]:
    """One token that visits all n users once in every round; data (rounds, n, d)."""
    n = data.shape[1]

    def added(_: int, first: int, last: int) -> FloatArray:
        return np.asarray(data[np.arange(first, last) // n, path[first:last]])

    return carry(n, (path,), added, (noise,), data.shape[2], normal, observers)


def ring_on_the_grid(protocol: RingSum, data: FloatArray, bounds: Any) -> IntArray:
    """The values of every round in grid steps, (rounds, n, d), held to what the privacy rests on."""
    return held_on_the_grid(protocol, data, bounds, ring_steps)


def ring_integers(
    protocol: RingSum, integers: IntArray, seed: int, observers: tuple[int, ...]
) -> tuple[IntArray, TokenRecord | None]:
    """The released token, (d,) whole numbers, and the record; noise from a stream of its own."""
    (rounds, n, d), path = integers.shape, ring_path(protocol)
    draw = pooled(protocol, d, seed)
    noises, closing = np.empty((rounds, n, d), dtype=np.int64), np.zeros(d, dtype=np.int64)
    for u in range(n):
        noises[:, u], last = ring_noises(protocol, u, d, draw)
        closing += last
    return _along_in_integers(
        0, path, integers.reshape(-1, d), noises.reshape(-1, d), closing, protocol.step, observers
    )


def _along_in_integers(
    token: int,
    path: UserArray,
    given: IntArray,
    noise: IntArray,
    closing: IntArray,
    step: float,
    observers: tuple[int, ...],
) -> tuple[IntArray, TokenRecord | None]:
    """One token along its path, what every step adds being known: as released, (d,) whole numbers, and the record.

    What `netdp.families.token.steps` does visit by visit, all visits at once: nothing is rounded, so the order does not matter.
    """
    running = np.cumsum(given + noise, axis=0)  # below 2⁶²: `most_steps`
    release = running[-1] + closing
    if not observers:
        return release, None
    watched, unknown = np.isin(path, observers), np.full((1, given.shape[1]), np.nan)
    at = np.flatnonzero(watched)

    def real(numbers: IntArray) -> FloatArray:
        return np.asarray(numbers * step, dtype=np.float64)

    return release, TokenRecord(
        observers=observers,
        visits=np.column_stack([np.full(len(at), token), at, path[at]]).astype(np.int64),
        arrivals=real(np.where(at[:, None] > 0, running[at - 1], 0)),
        contributions=real(given[at]),
        noises=real(noise[at]),
        starts=np.zeros_like(unknown) if watched[0] else unknown,
        closings=real(closing[None]) if watched[-1] else unknown,
        release=real(release[None]),
    )


def pooled(protocol: RingSum, columns: int, seed: int) -> Draw:
    """A draw from as many discrete Gaussians as a run takes, made at once: the sampler is fast in bulk only."""
    words = words_from(stream(seed))
    if protocol.law == "laplace":
        return ring_draw(protocol, words)
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


@hindsight.register
def _drawn_walk(protocol: WalkSum | GraphWalkSum) -> str:
    return "for the walk that was drawn, as if everybody knew it"


@execute.register
def _walk_sum(protocol: WalkSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    contributing = protocol.tokens * expected_contributing(protocol)
    return _along(protocol, draw_paths(protocol, seed), contributing, values, seed, normal, record)


@execute.register
def _graph_walk_sum(protocol: GraphWalkSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    if protocol.contributions is not None:
        raise Unsupported(
            f"{_CAPPED.format(protocol.contributions)}, or run it on a public path: "
            "simulate(netdp.families.token.simulate.draw_paths(protocol, seed), values, seed)"
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

    def added(k: int, first: int, last: int) -> FloatArray:
        path = drawn.paths[k]
        given = data[period_of(np.arange(first, last), len(path), len(data)), path[first:last]]
        if drawn.contributions is not None:
            given[~drawn.carries[k][first:last]] = 0.0
        return given

    closing = drawn.sigma * float(np.sqrt(drawn.closing))
    noise = tuple((np.broadcast_to(drawn.sigma, len(path)), closing) for path in drawn.paths)
    release, kept = carry(drawn.n, drawn.paths, added, noise, data.shape[2], unit_noise(drawn.law, normal), observers)
    return token_run(drawn, release.sum(axis=0) / contributing, drawn.paths, seed, kept)


def walk_integers(
    drawn: PathSum, integers: IntArray, seed: int, observers: tuple[int, ...]
) -> tuple[IntArray, TokenRecord | None]:
    """The sum of the released tokens, (d,) whole numbers, and the record; noise from a stream of its own."""
    periods, _, d = integers.shape
    words = words_from(np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[1]))
    each, last = DiscreteGaussian(drawn.variance), drawn.closing_variance
    releases, records = [], []
    for k, path in enumerate(drawn.paths):
        given = integers[period_of(np.arange(len(path)), len(path), periods), path]
        given[~drawn.carries[k]] = 0
        noise = each.sample((len(path), d), words)
        closing = DiscreteGaussian(last).sample((d,), words) if last else np.zeros(d, dtype=np.int64)
        release, record = _along_in_integers(k, path, given, noise, closing, drawn.step, observers)
        releases.append(release)
        records.append(record)
    return np.sum(releases, axis=0, dtype=np.int64), _join_records(records)


def carry(
    n: int,
    paths: tuple[UserArray, ...],
    added: Callable[[int, int, int], FloatArray],
    noises: tuple[tuple[FloatArray, float], ...],
    d: int,
    normal: Normal,
    observers: tuple[int, ...],
) -> tuple[FloatArray, TokenRecord | None]:
    """Every token to its release, (tokens, d), and the record.

    `added(k, first, last)`: what the steps first … last−1 of token k add; `noises`: per token the standard deviation of
    the noise of every step, and of the closing noise.
    """
    watched = np.zeros(n, dtype=bool)
    watched[list(observers)] = True
    release, starts = np.zeros((len(paths), d)), np.full((len(paths), d), np.nan)
    closings = np.full((len(paths), d), np.nan)
    visits = [np.empty((0, 3), dtype=np.int64)]
    arrivals, contributions, kept_noises = ([np.empty((0, d))] for _ in range(3))
    size = max(1, _AT_ONCE // d)
    for k, (path, (scales, closing)) in enumerate(zip(paths, noises, strict=True)):
        token = release[k]
        for first in range(0, len(path), size):
            last = min(first + size, len(path))
            given = added(k, first, last)
            noise = normal((last - first, d)) * scales[first:last, None]
            running = np.cumsum(given + noise, axis=0)
            if observers and len(at := np.flatnonzero(watched[path[first:last]])):
                before = np.where(at[:, None] > 0, running[at - 1], 0.0)
                visits.append(np.column_stack([np.full(len(at), k), at + first, path[at + first]]).astype(np.int64))
                arrivals.append(token + before)
                contributions.append(given[at])
                kept_noises.append(noise[at])
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
        contributions=np.vstack(contributions),
        noises=np.vstack(kept_noises),
        starts=starts,
        closings=closings,
        release=release.copy(),
    )


@execute.register
def _ring_histogram(protocol: RingHistogram, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    labels = _labels(values.labels(), protocol.n, protocol.domain, protocol.rounds)
    refuse_pure_chance(protocol)
    observers = observers_of(protocol, record)
    rng, path, L = stream(seed), ring_path(protocol), protocol.domain
    truth = np.broadcast_to(labels, (protocol.rounds, protocol.n)).ravel()
    start = _random_elements(protocol, protocol.blanket, rng)
    answers = _answers(protocol, truth, protocol.gamma, rng)
    closing = _random_elements(protocol, protocol.closing_blanket, rng)
    everywhere = np.ones(len(path), dtype=bool)
    heap, kept = _collect(path, truth, everywhere, answers, L, start, closing, observers)
    return token_run(protocol, shares(protocol, heap), (path,), seed, kept)


@execute.register
def _walk_histogram(protocol: WalkHistogram, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    labels = np.atleast_2d(_labels(values.labels(), protocol.n, protocol.domain, None))
    if len(labels) > 1 and protocol.contributions is not None:
        raise Unsupported(
            f"contributions={protocol.contributions}: with a cap early periods count more; give one period"
        )
    if protocol.graph is not None and protocol.contributions is not None:
        raise Unsupported(_CAPPED.format(protocol.contributions))
    refuse_pure_chance(protocol)
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
    estimate = debiased(protocol, heap, contributing, random) / contributing
    return token_run(protocol, estimate, tuple(paths), seed, _join_records(records))


def _join_records(records: list[TokenRecord | None]) -> TokenRecord | None:
    """The records of several tokens as one, token by token."""
    kept = [record for record in records if record is not None]
    if len(kept) < 2:
        return kept[0] if kept else None
    parts = ("visits", "arrivals", "contributions", "noises", "starts", "closings", "release")
    return TokenRecord(kept[0].observers, *(np.vstack([getattr(record, part) for record in kept]) for part in parts))


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
    from netdp.families.token.kernels import walk_along, walk_on

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


def draw_orders(protocol: SecretRingSum, seed: int) -> PathSum:
    """The orders that `simulate` with this seed draws, one after the other, as a protocol on a public path.

    >>> draw_orders(SecretRingSum(4, rounds=2, sigma=2.0), seed=1).paths[0].reshape(2, 4).tolist()
    [[3, 1, 0, 2], [3, 0, 1, 2]]
    """
    rng = stream(seed)
    path = np.concatenate([rng.permutation(protocol.n) for _ in range(protocol.rounds)]).astype(np.int32)
    return PathSum(protocol.n, (path,), protocol.hop_noise, sensitivity=protocol.sensitivity)


@execute.register
def _secret_ring(protocol: SecretRingSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    data = every_round(protocol, values)
    observers = observers_of(protocol, record)
    drawn = draw_orders(protocol, seed)
    path = drawn.paths[0]
    noise = np.broadcast_to(protocol.hop_noise, len(path)), 0.0
    release, kept = _carry_round(path, data, noise, normal, observers)
    return token_run(drawn, release[0] / len(path), drawn.paths, seed, kept)
