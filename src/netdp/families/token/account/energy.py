"""The energy of a random path on a graph, its exponential moments, and the privacy profile that follows from them.

Given the path of a token the observers see at most a Gaussian shift of μ² = E·(Δ/σ)²; the energy E depends on the path only, so
δ(ε) ≤ min_s κ(s, ε)·E[e^{sE(Δ/σ)²}], with no bound on the number of visits (`profile`). The moments solve a renewal equation:
they are coefficients of a power series (`series_coefficient`) made of the times at which the walk comes to u and to the observers
(`laws`). There are moments for gaps, for sums and descents stretch by stretch, and against any f users (`moments_against_any`).

Proofs: docs/proofs/token.md#walk-energy and #token-coalitions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from netdp.families.token.kernels import least_products
from netdp.families.token.walk import stationary
from netdp.graphs.graph import Graph
from netdp.graphs.transitions import Transition, transition_matrix
from netdp.numerics.arrays import UNIT, FloatArray, frozen
from netdp.privacy.gaussian_kernels import mean_delta
from netdp.privacy.profile import ProfileCurve

_KAPPA_RATIO = 1.015  # of neighbouring x, in κ

_SCALES = 1.5  # of neighbouring grids

_ALONE = np.ones(1)

_AGAIN = 1e-8  # what the coefficients M further on may add

_LARGEST = 250.0  # logarithms of moments beyond this are of no use

_SMALLEST = 1e-300  # stands for 0 under a logarithm

_TOP = 700.0  # e to the power of more is too large a number; such s are left out

_FADED = 46.0  # −log δ: beyond that a table of moments ends

_FOURIER = 1e-13  # of the whole: what a fast Fourier transform may be wrong by

_WRAPPED = 1e-9  # what wraps around in the convolutions of gaps, of itself

_RARE = 1e-13  # the largest energies of this probability are told and added to δ

_EXACT = 25  # counts of visits that have a bin of their own

_COUNT_RATIO = 1.04  # of the counts at the two ends of a bin

_MOST_CELLS, _MOST_WORK = 1 << 23, 1 << 29  # of the tables of stretches: up to which they are worth their time


@dataclass(frozen=True, eq=False)
class EnergyMoments:
    """E[e^{sE}; not B] at some s, as logarithms, and P(B)."""

    s: FloatArray
    logs: FloatArray
    outside: float = 0.0

    def repeated(self, times: int) -> EnergyMoments:
        """So many independent walks."""
        return EnergyMoments(self.s, self.logs * times, self.outside * times)


Terms = Sequence[Sequence[FloatArray]]
"""A sum of products of power series."""


class Cover(Protocol):
    """What hides contributions, where it is not Gaussian noise: the moments of the loss of one among g others, falling with g."""

    @property
    def largest(self) -> float:
        """The loss of a contribution that nothing hides: no logarithm at s is above s times that."""

    def logs(self, s: float) -> FloatArray:
        """The logarithms of E[e^{s·loss}], g = 0, 1, …"""

    def shared(self, counts: FloatArray, responses: FloatArray) -> Callable[[float], FloatArray]:
        """The same for several among so many in all."""


def series_coefficient(above: Terms, kernel: Terms, place: int, growth: FloatArray | None = None) -> float:
    """The logarithm of the coefficient `place` of e^{g}·above/(1 − e^{g}·kernel), g the series `growth`; from above.

    All coefficients given must be ≥ 0.

    >>> one = np.array([1.0])
    >>> round(math.exp(series_coefficient([[one]], [[np.array([0.0, 0.5])]], 5)) * 32, 6)      # 1/(1 − z/2): 2⁻⁵
    1.0
    >>> round(math.exp(series_coefficient([[one]], [], 4, np.array([0.0, 1.0]))) * 24, 6)      # e^z: 1/4!
    1.0
    """
    length = 1 << math.ceil(math.log2(4 * (place + 1)))
    grow = np.zeros(1) if growth is None else growth[: place + 1]
    with np.errstate(under="ignore", over="ignore"):
        rate = _rate(kernel, grow, place, 0.05 / length)
        if not math.isfinite(rate):
            return math.inf
        rate -= math.log(_AGAIN) / length
        kernel_at, above_at, grown = (_at(terms, rate, place) for terms in (kernel, above, [[grow]]))
        factor = math.exp(grown) if grown < _LARGEST else math.inf
        gap = 1.0 - factor * kernel_at
        whole = factor * above_at / gap
    if not (gap > 1e-9 and math.isfinite(whole)):
        return math.inf
    ways = np.exp(_on_circle([[grow]], rate, place, length))
    spectrum = ways * _on_circle(above, rate, place, length) / (1.0 - ways * _on_circle(kernel, rate, place, length))
    found = float(np.fft.irfft(spectrum, length)[place])
    wrong = 64 * UNIT * (math.log2(length) + 4 + grown) * whole / gap
    return math.log(max(found + wrong, wrong, _SMALLEST)) + rate * place + 1e-9


def _damped(part: FloatArray, rate: float, place: int) -> FloatArray:
    kept = part[: place + 1]
    return np.asarray(kept * np.exp(-rate * np.arange(len(kept))))


def _at(terms: Terms, rate: float, place: int) -> float:
    """The sum of products at z = e^{−rate}."""
    return math.fsum(math.prod(float(_damped(part, rate, place).sum()) for part in term) for term in terms)


def _on_circle(terms: Terms, rate: float, place: int, length: int) -> npt.NDArray[np.complex128]:
    """The same at the `length` points of the circle of this radius."""
    total = np.zeros(length // 2 + 1, dtype=np.complex128)
    for term in terms:
        total += np.prod([np.fft.rfft(_damped(part, rate, place), length) for part in term], axis=0)
    return total


def _rate(kernel: Terms, grow: FloatArray, place: int, within: float) -> float:
    """The rate r ≥ 0 at which e^{g}·kernel is 1 at z = e^{−r}, or a little more, `within`; 0 if it is below 1 anyway."""

    def over(rate: float) -> bool:
        grown = _at([[grow]], rate, place)
        return grown > _LARGEST or math.exp(grown) * _at(kernel, rate, place) > 1.0

    if not over(0.0):
        return 0.0
    low, high = 0.0, 1.0 / (place + 1)
    while over(high):
        low, high = high, 2.0 * high
        if high > 100.0:
            return math.inf
    while high - low > within:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if over(middle) else (low, middle)
    return high


def moments_of(log_moment: Callable[[float], float], outside: float = 0.0) -> EnergyMoments:
    """Moments at some twenty s around the one where E[e^{sE}] = e; any s would be sound."""
    s = 1.0
    for _ in range(60):
        found = log_moment(s)
        if 0.4 < found < 2.5:
            break
        s *= 0.25 if found > 2.5 else 2.5
    points, logs = [], []
    for one in s * np.geomspace(1 / 12, 40, 22):
        found = log_moment(float(one))
        if not found < _LARGEST:
            break
        points.append(float(one))
        logs.append(found)
    return EnergyMoments(np.array(points), np.array(logs), outside)


def profile(moments: EnergyMoments, mu: float, tokens: int = 1) -> ProfileCurve:
    """δ(ε) from the moments of the energy of one token, μ = Δ/σ."""
    together = moments.repeated(tokens)
    useful = np.isfinite(together.logs) & (together.logs < _LARGEST)
    if not useful.any():
        return ProfileCurve([0.0], [1.0])
    s, logs = together.s[useful] / mu**2, np.maximum(together.logs[useful], 0.0)
    # where the energy lies, about: for a choice of points only
    usual = max(float(np.min(logs / s)), 1e-12)
    eps, x, log_delta = _gaussians(math.ceil(math.log(usual) / math.log(_SCALES)))
    best = least_products(log_delta, np.concatenate([[0.0], x[:-1]]), float(x[-1]), s, logs)
    return _table(eps, best, together.outside)


def _table(eps: FloatArray, logs: FloatArray, outside: float) -> ProfileCurve:
    """δ at these ε from its logarithms, with what is left out of the moments."""
    delta = np.minimum(np.exp(np.minimum(logs, 0.0)) * (1 + 1e-9) + outside, 1.0)
    return ProfileCurve(eps, np.minimum.accumulate(delta))


def loss_profile(moments: EnergyMoments, tokens: int = 1) -> ProfileCurve:
    """δ(ε) from the moments E[e^{s·loss}] of one token: (1 − e^{−x})₊ is at most s^s/(1+s)^{1+s}·e^{sx}."""
    together = moments.repeated(tokens)
    useful = np.isfinite(together.logs) & (together.logs < _LARGEST)
    if not useful.any():
        return ProfileCurve([0.0], [1.0])
    s, logs = together.s[useful], np.maximum(together.logs[useful], 0.0)
    heights = logs + s * np.log(s) - (1 + s) * np.log1p(s)
    top = max(float(np.min((heights + _FADED) / s)), 1e-9)
    eps = np.union1d(np.linspace(0.0, top, 1200), np.geomspace(top * 1e-4, top, 200))
    best = np.min(heights - eps[:, None] * s, axis=1)
    return _table(eps, best, together.outside)


@functools.lru_cache(maxsize=32)
def _gaussians(scale: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """ε, x and log δ_Gauss(√x; ε) at all of them, rows for ε, where losses of the size 1.5^scale matter."""
    usual = _SCALES**scale
    top = 4.0 * (usual + math.sqrt(80.0 * usual))
    eps = np.concatenate([[0.0], np.geomspace(top * 1e-4, top, 480)])
    x = np.geomspace(usual * 1e-2, usual * 300.0, math.ceil(math.log(3e4) / math.log(_KAPPA_RATIO)))
    with np.errstate(divide="ignore"):
        log_delta = np.log(np.stack([mean_delta(one, _ALONE, eps) for one in np.sqrt(x)[:, None]], axis=1))
    return frozen(eps), frozen(x), frozen(log_delta)


@dataclass(frozen=True, eq=False)
class Laws:
    """All arrays run over steps 0 … horizon.

    returns   P(the gap ends at u after l steps)
    ends      (observers, ·) P(the gap ends at this observer after l steps)
    left      P(the gap is longer than a)
    back      (observers, ·) from this observer, P(u comes after l steps)
    first     from the start of the walk, P(u comes after l steps): 0 means that the walk starts there
    """

    returns: FloatArray
    ends: FloatArray
    left: FloatArray
    back: FloatArray
    first: FloatArray
    grown: float

    @property
    def horizon(self) -> int:
        """How many steps were computed."""
        return len(self.left) - 1

    @property
    def gaps(self) -> FloatArray:
        """P(the gap is l), for l = 0 … horizon, whatever ends it."""
        return np.asarray(self.returns + self.ends.sum(axis=0))


def laws(P: Any, start: FloatArray, target: int, observers: tuple[int, ...], horizon: int) -> Laws:
    """The laws for one target.

    `laws_of_each` has what depends on the observer for every other user in turn.

    >>> from netdp import graphs
    >>> from netdp.graphs.transitions import transition_matrix
    >>> found = laws(transition_matrix(graphs.ring(4)), np.full(4, 0.25), 0, (2,), 4)
    >>> found.returns.tolist(), found.ends.tolist(), found.back[0].tolist()
    ([0.0, 0.0, 0.5, 0.0, 0.0], [[0.0, 0.0, 0.5, 0.0, 0.0]], [0.0, 0.0, 0.5, 0.0, 0.25])
    """
    from netdp.families.token.kernels import times_to

    backwards = P.T.tocsr()
    # the first step from u, then absorbed at u and at O
    hits, left = _absorbed(backwards, P[[target]].toarray()[0], (target, *observers), horizon - 1)
    zero = np.zeros((1 + len(observers), 1))
    hits = np.hstack([zero, hits])
    left = np.concatenate([[1.0], left])
    back = times_to(P.indptr, P.indices, P.data, target, np.array(observers, dtype=np.int64), horizon)
    first, _ = _absorbed(backwards, start, (target,), horizon)
    degree = int(max(np.diff(P.indptr).max(), np.diff(backwards.indptr).max()))
    grown = 1.0 + 3.0 * (horizon + 2) * (degree + 2) * UNIT
    return Laws(hits[0], hits[1:], left, back, first[0], grown)


def laws_of_each(P: Any, target: int, horizon: int) -> tuple[FloatArray, FloatArray]:
    """`ends` and `back` of `laws` for every user but the target as the only observer, a row each: the same numbers.

    What they share, the walk backwards and all times to the target, is computed once.
    """
    from netdp.families.token.kernels import times_to

    n = P.shape[0]
    others = np.delete(np.arange(n, dtype=np.int64), target)
    backwards, step = P.T.tocsr(), P[[target]].toarray()[0]
    ends = np.zeros((n - 1, horizon + 1))
    for row, observer in enumerate(others.tolist()):
        hits, _ = _absorbed(backwards, step, (target, observer), horizon - 1)
        ends[row, 1:] = hits[1]
    return ends, times_to(P.indptr, P.indices, P.data, target, others, horizon)


def _absorbed(backwards: Any, law: Any, marked: tuple[int, ...], horizon: int) -> tuple[FloatArray, FloatArray]:
    """From this law: P(the first of the marked users is the j-th and comes after t steps), P(none within t steps).

    backwards : the transposed transition matrix
    """
    from netdp.families.token.kernels import first_hits

    mark = np.full(backwards.shape[0], -1, dtype=np.int64)
    mark[list(marked)] = np.arange(len(marked))
    start = np.asarray(law, dtype=np.float64)
    matrix = backwards.indptr, backwards.indices, backwards.data
    hits, left = first_hits(*matrix, start, mark, len(marked), horizon)
    return hits, left


def _arrival(laws: Laws, steps: int) -> tuple[FloatArray, float]:
    """When u is visited first, and the probability that it never is. Laws that stop short: what is left comes at their end."""
    first = laws.first * laws.grown
    rest = max(0.0, 1.0 - float(first[:steps].sum())) + 4 * laws.horizon * UNIT  # not in the walk, or not in the laws
    if laws.horizon >= steps - 1:
        return first, rest
    first[-1] += rest
    return first, 0.0


def _return_law(laws: Laws) -> FloatArray:
    """When u is visited again, laws without observers; what is left comes at their end."""
    returns = laws.returns * laws.grown
    returns[-1] += float(laws.left[-1]) * laws.grown
    return returns


def _later(law: FloatArray) -> FloatArray:
    """What comes after each step."""
    return np.append(np.cumsum(law[::-1])[::-1][1:], 0.0)


def _log_plus(log_moment: float, more: float) -> float:
    """log(e^log_moment + more); infinite stays so."""
    return math.inf if not math.isfinite(log_moment) else math.log(math.exp(min(log_moment, 600.0)) + more)


@functools.lru_cache(maxsize=1024)
def moments_against_any(
    graph: Graph,
    walk: str | Transition,
    steps: int,
    closing: float,
    target: int,
    colluders: int,
    cover: Cover | None = None,
) -> EnergyMoments:
    """E[e^{sE}] of one walk about `target`, at most, against any so many others."""
    from scipy.signal import fftconvolve  # slow to load

    P, start = transition_matrix(graph, walk), np.asarray(stationary(graph, walk), dtype=np.float64)
    most = min(steps, 8 * graph.n)
    alone = laws(P, start, target, (), most)
    hit, back = (part * alone.grown for part in laws_of_each(P, target, most))
    together = fftconvolve(hit, back, axes=1)[:, : most + 1]
    missing = (
        np.clip(1.0 - np.cumsum(back, axis=1)[:, ::-1], 0.0, 1.0) + 4 * most * UNIT
    )  # P_o(τ_u > most − l), l = 0 …
    t, last = np.arange(most + 1, dtype=np.float64), steps - 1
    first, never = _arrival(alone, steps)
    returns = _return_law(alone)

    def log_moment(s: float) -> float:
        weights = _gap_weights(s, t, 1, closing, cover)
        if weights is None:
            return math.inf
        weight, released = weights
        heavy = hit * weight
        size = heavy.sum(axis=1, keepdims=True)
        more = fftconvolve(heavy, back, axes=1)[:, : most + 1] - weight * together + _FOURIER * size
        more[:, -1] += (hit * (weight - weight[-1]) * missing).sum(axis=1)
        more = np.maximum(more, 0.0)
        top = np.sort(more, axis=0)[max(0, len(more) - colluders) :].sum(axis=0)
        kernel = returns * weight + top
        return _log_plus(series_coefficient([[first, _later(kernel)]], [[kernel]], last) + released, never)

    return moments_of(log_moment)


@dataclass(frozen=True, eq=False)
class Counts:
    """How a stretch may go: mass[i, t] = P(between the last bin's count and counts[i] visits, t steps)."""

    mass: FloatArray
    counts: FloatArray
    wrong: float


def affordable(laws: Laws, steps: int) -> bool:
    """Whether the tables of this module are worth their time."""
    most = _most(laws, steps)
    length = _length(steps)
    return most * length <= _MOST_WORK and len(_ends(most)) * steps <= _MOST_CELLS


def _most(laws: Laws, steps: int) -> int:
    """Visits in one stretch beyond which 10⁻¹⁷ is left."""
    q = min(float(laws.returns.sum()) * laws.grown, 1.0)
    return steps + 1 if q >= 1 else min(steps + 1, 1 + math.ceil(math.log(1e-17) / math.log(max(q, 1e-300))))


def _length(steps: int) -> int:
    return 1 << math.ceil(math.log2(8 * (steps + 1)))


def _ends(most: int) -> list[int]:
    """The largest count of every bin."""
    ends = list(range(1, min(most, _EXACT) + 1))
    while ends[-1] < most:
        ends.append(min(most, max(ends[-1] + 1, math.floor(ends[-1] * _COUNT_RATIO))))
    return ends


def visits_by_length(laws: Laws, steps: int, *around: FloatArray, per_count: bool = False) -> Counts:
    """Masses of b^{*(k−1)} ⋆ around, in bins of k; `per_count`: of b^{*k}/k instead."""
    length, most = _length(steps), _most(laws, steps)
    rate = -math.log(_WRAPPED) / length
    damping = np.exp(-rate * np.arange(steps + 1))

    def spectrum(law: FloatArray) -> Any:
        return np.fft.rfft(law[: steps + 1] * damping[: len(law)], length)

    B, power = spectrum(laws.returns), np.ones(length // 2 + 1, dtype=np.complex128)
    for law in around:
        power = power * spectrum(law)
    ends = _ends(most)
    mass, wrong = np.zeros((len(ends), steps + 1)), 0.0
    undamped = 1.0 / damping
    k = 0
    shortest = sum(_earliest(law) for law in around)
    for row, end in enumerate(ends):
        total = np.zeros_like(power)
        # ℓ₁ ≤ √M·ℓ₂, ℓ₂ by Parseval from half of the spectrum; it does not grow with k, as |B| ≤ 1
        first = power * B if per_count else power
        norm = math.sqrt(2.0 * float((first.real**2).sum() + (first.imag**2).sum()))
        share = (end - k) / (k + 1) if per_count else end - k
        wrong += 6 * UNIT * (math.log2(length) + end) * norm * share
        least = shortest + (k + per_count) * _earliest(laws.returns)
        while k < end:
            k += 1
            if per_count:
                power = power * B
                total += power / k
            else:
                total += power
                power = power * B
        found = np.fft.irfft(total, length)[: steps + 1]
        found[:least] = 0.0  # so short a stretch cannot have so many visits
        mass[row] = np.maximum(found, 0.0) * undamped
    return Counts(mass * laws.grown, np.array(ends, dtype=np.float64), wrong * float(undamped[-1]))


def _earliest(law: FloatArray) -> int:
    """The first step that has any probability; beyond all steps if none has."""
    found = np.flatnonzero(law)
    return int(found[0]) if found.size else len(law)


@dataclass(frozen=True, eq=False)
class Energies:
    """Masses with their energies, rare and doubtful ones taken out: `moment(s)` sums mass·e^{s·energy} for every length.

    logs      s·energy of every mass, or the logarithm of the mean of e^{s·energy}; `largest` times s is the most there is
    """

    mass: FloatArray
    logs: Callable[[float], FloatArray]
    largest: float
    outside: float

    @classmethod
    def of(cls, counts: Counts, noises: FloatArray, cover: Cover | None = None) -> Energies:
        """`noises[t]`: how many noises cover a stretch of t steps; a count is at most the steps, where that is less.

        cover : what hides contributions, if it is not noise; `noises[t]` is then how many contributions a stretch has.
        """
        steps = np.arange(counts.mass.shape[1])
        times = np.minimum(counts.counts[:, None], steps + 1.0)
        if cover is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                energy = times**2 / noises
        else:
            logs = cover.shared(times, noises)
            energy = logs(1.0 / cover.largest)  # which of them are told is free to choose
        energy = np.where(counts.mass > 0, energy, 0.0)
        order = np.argsort(energy, axis=None)[::-1]
        beyond = np.cumsum(counts.mass.ravel()[order])
        cut = int(np.searchsorted(beyond, _RARE + counts.wrong))
        mass = counts.mass.copy()
        outside = float(beyond[cut - 1]) if cut else 0.0
        mass.ravel()[order[:cut]] = 0.0
        energy.ravel()[order[:cut]] = 0.0
        outside += counts.wrong
        if cover is None:
            return cls(mass, lambda s: s * energy, float(energy.max(initial=0.0)), outside)
        kept = mass > 0
        largest = cover.largest * float(np.max(times, where=kept, initial=0.0))
        return cls(mass, lambda s: np.where(kept, logs(s), 0.0), largest, outside)

    def moment(self, s: float) -> FloatArray:
        """Σ mass·e^{s·energy}, for every length; s·largest must be at most 700."""
        return np.asarray((self.mass * np.exp(self.logs(s))).sum(axis=0))


def _beyond(laws: Laws, steps: int) -> float:
    """More than the most visits in one stretch."""
    q = min(float(laws.returns.sum()) * laws.grown, 1.0)
    return 0.0 if _most(laws, steps) > steps else q ** _most(laws, steps)


def gap_moments(laws: Laws, steps: int, closing: float, cover: Cover | None = None) -> EnergyMoments:
    """Any observers, sums or descent: 1/l for every visit, and 1/(1 + closing) once for the release.

    cover : what hides contributions, if it is not noise: l − 1 others, and nothing at the release.

    Laws that stop short of the walk will do. What would come later is taken to come at their last step: sooner visits, and
    more of them, only add to the energy counted here.
    """
    last, most = steps - 1, laws.horizon
    t = np.arange(most + 1, dtype=np.float64)
    left = float(laws.left[-1]) * laws.grown
    back = [law * laws.grown for law in laws.back]
    for law in back:
        law[-1] += max(0.0, 1.0 - float(law.sum())) + 4 * most * UNIT
    away = [_later(law) for law in back]
    first, never = _arrival(laws, steps)
    shortest = min(_earliest(laws.gaps), most)

    def log_moment(s: float) -> float:
        weights = _gap_weights(s, t, shortest, closing, cover)
        if weights is None:
            return math.inf
        weight, released = weights
        returns = laws.returns * laws.grown * weight
        returns[-1] += left * weight[-1]
        ends = [law * laws.grown * weight for law in laws.ends]
        gaps = np.sum([returns, *ends], axis=0)
        above = [[first, _later(gaps)], *([first, one, gone] for one, gone in zip(ends, away, strict=True))]
        kernel = [[returns], *([one, law] for one, law in zip(ends, back, strict=True))]
        return _log_plus(series_coefficient(above, kernel, last) + released, never)

    return moments_of(log_moment)


def _gap_weights(
    s: float, gaps: FloatArray, shortest: int, closing: float, cover: Cover | None
) -> tuple[FloatArray, float] | None:
    """The moment of a contribution for every gap, no gap being shorter than `shortest`, and the logarithm of the release's; None
    where they are too large for numbers.
    """
    if cover is None:
        return None if s > _TOP * shortest else (np.exp(s / np.maximum(gaps, shortest)), s / (1.0 + closing))
    if s * cover.largest > _TOP:
        return None
    logs = cover.logs(s)
    others = np.clip(np.maximum(gaps, shortest) - 1, 0, len(logs) - 1).astype(np.int64)
    return np.exp(logs[others]), float(logs[0])


def visit_moments(laws: Laws, steps: int) -> EnergyMoments:
    """Local DP: 1 for every visit; laws without observers."""
    first, never = _arrival(laws, steps)
    returns = _return_law(laws)
    later = _later(returns)

    def log_moment(s: float) -> float:
        if s > _TOP:
            return math.inf
        found = series_coefficient([[first, later * math.exp(s)]], [[returns * math.exp(s)]], steps - 1)
        return _log_plus(found, never)

    return moments_of(log_moment)


def _never_back(back: FloatArray) -> FloatArray:
    """P(u has not come after a steps), a = 0 …; from the law of when it comes."""
    return np.asarray(np.maximum(1.0 - np.cumsum(back), 0.0) + 4 * len(back) * UNIT)


def sum_moments(laws: Laws, steps: int, closing: float, expected: float, cover: Cover | None = None) -> EnergyMoments:
    """Sums, any observers: k²/D. `steps` of the walk; `expected`: at least the mean number of u's visits.

    cover : a histogram: k contributions among D, where nothing is added at the release.
    """
    last = steps - 1
    t = np.arange(steps, dtype=np.float64)
    ended = [Energies.of(visits_by_length(laws, last, end), np.maximum(t, 1.0), cover) for end in laws.ends]
    cut = Energies.of(visits_by_length(laws, last, laws.left), t + 1.0 + closing, cover)
    outside = expected * (sum(part.outside for part in ended) + _beyond(laws, last)) + cut.outside
    return _renewal_moments(laws, last, ended, cut, outside, None)


def visits_law(laws: Laws, steps: int) -> tuple[FloatArray, FloatArray, float]:
    """How often u is visited in all: counts, their probabilities, and what is left out. Laws without observers."""
    counts = visits_by_length(laws, steps - 1, laws.first, laws.left)
    return np.minimum(counts.counts, steps), counts.mass[:, -1], counts.wrong + _beyond(laws, steps - 1)


def _renewal_moments(
    laws: Laws, last: int, ended: list[Energies], cut: Energies, outside: float, growth: Energies | None
) -> EnergyMoments:
    """All stretches of a walk, u's first visit in each of them being where it starts afresh."""
    back = [law * laws.grown for law in laws.back]
    away = [_never_back(law) for law in laws.back]
    first = laws.first * laws.grown
    never = max(1.0 - float(laws.first[: last + 1].sum()), 0.0) + 4 * last * UNIT

    largest = max(part.largest for part in [*ended, cut, *([] if growth is None else [growth])])

    def log_moment(s: float) -> float:
        if s * largest > _TOP:
            return math.inf
        shown = [part.moment(s) for part in ended]
        final = cut.moment(s)
        grow = None if growth is None else growth.moment(s)
        above = [[first, final], *([first, one, gone] for one, gone in zip(shown, away, strict=True))]
        kernel = [[one, law] for one, law in zip(shown, back, strict=True)]
        return _log_plus(series_coefficient(above, kernel, last, grow), never)

    return moments_of(log_moment, outside)


def descent_moments(laws: Laws, steps: int, closing: float, expected: float) -> EnergyMoments:
    """Descent, any observers: the taut string."""
    last = steps - 1
    t = np.arange(steps, dtype=np.float64)
    faces = Energies.of(visits_by_length(laws, last, per_count=True), np.maximum(t, 1.0))
    ones = np.ones(1)
    ended = [
        Energies.of(Counts(law[None, : last + 1] * laws.grown, ones, 0.0), np.maximum(t, 1.0)) for law in laws.ends
    ]
    cut = Energies.of(Counts(laws.left[None, : last + 1] * laws.grown, ones, 0.0), t + 1.0 + closing)
    rare = sum(part.outside for part in ended) + faces.outside + _beyond(laws, last)
    return _renewal_moments(laws, last, ended, cut, expected * rare + cut.outside, faces)


def single_sum_moments(
    P: Any,
    start: FloatArray,
    target: int,
    observer: int,
    laws: Laws,
    steps: int,
    closing: float,
    expected: float,
    cover: Cover | None = None,
) -> EnergyMoments:
    """Sums, one observer: k²/m with all the noise of the stretch, also before u's first visit. Exact but for bins.

    expected : at least the mean number of visits to u and to the observer together.
    """
    last, backwards = steps - 1, P.T.tocsr()
    opened, nobody = _absorbed(backwards, start, (target, observer), last)
    hits, left = _absorbed(backwards, P[[observer]].toarray()[0], (target, observer), last)
    entered, empty = (np.concatenate([[0.0], law[:last]]) for law in hits)
    quiet = np.concatenate([[1.0], left[:last]])
    t = np.arange(steps, dtype=np.float64)
    between = np.maximum(t - 1.0, 1.0)
    whole = Energies.of(visits_by_length(laws, last, entered, laws.ends[0]), between, cover)
    early = Energies.of(visits_by_length(laws, last, opened[0], laws.ends[0]), np.maximum(t, 1.0), cover)
    late = Energies.of(visits_by_length(laws, last, entered, laws.left), np.maximum(t + closing, 1.0), cover)
    only = Energies.of(visits_by_length(laws, last, opened[0], laws.left), t + 1.0 + closing, cover)
    rare = whole.outside + _beyond(laws, last)
    outside = (expected + 2) * rare + early.outside + late.outside + only.outside
    grown = laws.grown

    largest = max(part.largest for part in (whole, early, late, only))

    def log_moment(s: float) -> float:
        if s * largest > _TOP:
            return math.inf
        begun = early.moment(s) + opened[1] * grown
        above = [[begun, late.moment(s) + quiet * grown]]
        kernel = [[whole.moment(s) + empty * grown]]
        alone = float(only.moment(s)[last]) + float(nobody[last]) * grown
        return _log_plus(series_coefficient(above, kernel, last), alone)

    return moments_of(log_moment, outside)
