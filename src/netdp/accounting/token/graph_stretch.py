"""The energy of a walk on a graph, stretch by stretch (docs/guarantees.md#walk-energy).

Tell the path. A *stretch* is what lies between two visits of the observers. If u contributes k times in it, followed by gaps
l₁ … l_k (to the next visit of u, the last to O), D = l₁ + … + l_k:

**Sums.** The stretch shows the sum, shifted by kΔ, in the noise of all its m ≥ D steps: energy k²/m exactly. With one
observer v the stretches are independent once v has been visited, m counts the steps before u's first visit too, and the told
loss is exact. With several observers the steps before u's first visit depend on where the stretch began; leave their noise
out: k²/D, and everything after u's first visit is independent of the past.

**Descent** (steps that do not expand). By iteration, a shift of ηΔ that arises at each of u's steps can be worked off by the
noise of that step and of all later ones, before O looks: a schedule a_t ≥ 0 with a₁ + … + a_t ≤ (u's visits so far), all
worked off at the end, has energy Σa_t². The best one is a taut string, the greatest convex minorant of the staircase of u's
visits: k²/D if u comes evenly, 1/l for one visit by itself, never more than Σ1/l_i. Let the string touch the staircase at the last
visit: energy Σ_faces j²/S + 1/l_k, a face being j gaps of sum S that the string crosses in one straight line.

*Theorem (Spitzer; Abramson, Pitman, Ross, Uribe Bravo).* The gaps l₁ … l_{k−1} are independent with one law. The faces of the
minorant of k − 1 such gaps have the lengths of the cycles of a random permutation, and given these, S is a sum of as many
independent gaps. So with b the (defective) law of a gap that ends at u, b^{*j} its j-fold convolution,

    Σ_k E[e^{sE}z^{l₁+…+l_{k−1}}; k − 1 returns]  =  exp( Σ_j (1/j)·Σ_m b^{*j}(m)·e^{sj²/m}·z^m ).

Where several faces have one slope, j²/S adds up to that of their union, so it does not matter how ties are broken.

**The release** cuts the last stretch short. It is counted as it is: with the noise up to the release and the closing noise.

**How it is computed.** b^{*j} by Fourier transforms, on a circle where what wraps around is below 10⁻⁹ of itself. It adds mass
≥ 0. Counts above 25 are put together in bins of 4 %, at the largest count. Rounding may move a total mass `wrong` (ℓ₁ ≤ √M·ℓ₂).
That mass, that of more than K visits, and that of the largest energies of which as much is left, or 10⁻¹³, are the event B:
told, and added to δ for every stretch that is expected.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from netdp.numerics.arrays import UNIT, FloatArray

from .graph_energy import Moments, moments_of, series_coefficient
from .graph_laws import Laws

_RARE = 1e-13
_WRAPPED = 1e-9
_EXACT = 25  # counts that have a bin of their own
_RATIO = 1.04
_MOST_CELLS = 1 << 23
_MOST_WORK = 1 << 29
_TOP = 700.0  # e to the power of more is too large a number; such s are left out


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
        ends.append(min(most, max(ends[-1] + 1, math.floor(ends[-1] * _RATIO))))
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
    """Masses with their energies, rare and doubtful ones taken out: `moment(s)` sums mass·e^{s·energy} for every length."""

    mass: FloatArray
    energy: FloatArray
    outside: float

    @classmethod
    def of(cls, counts: Counts, noises: FloatArray) -> Energies:
        """`noises[t]`: how many noises cover a stretch of t steps; a count is at most the steps, where that is less."""
        steps = np.arange(counts.mass.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            energy = np.minimum(counts.counts[:, None], steps + 1.0) ** 2 / noises
        energy = np.where(counts.mass > 0, energy, 0.0)
        order = np.argsort(energy, axis=None)[::-1]
        beyond = np.cumsum(counts.mass.ravel()[order])
        cut = int(np.searchsorted(beyond, _RARE + counts.wrong))
        mass = counts.mass.copy()
        outside = float(beyond[cut - 1]) if cut else 0.0
        mass.ravel()[order[:cut]] = 0.0
        energy.ravel()[order[:cut]] = 0.0
        return cls(mass, energy, outside + counts.wrong)

    @functools.cached_property
    def largest(self) -> float:
        """The largest energy of all."""
        return float(self.energy.max(initial=0.0))

    def moment(self, s: float) -> FloatArray:
        """Σ mass·e^{s·energy}, for every length; s·largest must be at most 700."""
        return np.asarray((self.mass * np.exp(s * self.energy)).sum(axis=0))


def _beyond(laws: Laws, steps: int) -> float:
    """More than the most visits in one stretch."""
    q = min(float(laws.returns.sum()) * laws.grown, 1.0)
    return 0.0 if _most(laws, steps) > steps else q ** _most(laws, steps)


def gap_moments(laws: Laws, steps: int, closing: float) -> Moments:
    """Any observers, sums or descent: 1/l for every visit, and 1/(1 + closing) once for the release.

    Laws that stop short of the walk will do. What would come later is taken to come at their last step: sooner visits, and
    more of them, only add to the energy counted here.
    """
    last, most = steps - 1, laws.horizon
    t = np.arange(most + 1)
    left = float(laws.left[-1]) * laws.grown
    back = [law * laws.grown for law in laws.back]
    for law in back:
        law[-1] += max(0.0, 1.0 - float(law.sum())) + 4 * most * UNIT
    away = [np.append(np.cumsum(law[::-1])[::-1][1:], 0.0) for law in back]
    first = laws.first * laws.grown
    rest = max(0.0, 1.0 - float(first[:steps].sum())) + 4 * most * UNIT  # not in the walk, or not in the laws
    never = rest if most >= last else 0.0
    if most < last:
        first[-1] += rest
    shortest = min(_earliest(laws.gaps), most)

    def log_moment(s: float) -> float:
        if s > _TOP * shortest:
            return math.inf
        weight = np.exp(s / np.maximum(t, shortest))
        returns = laws.returns * laws.grown * weight
        returns[-1] += left * weight[-1]
        ends = [law * laws.grown * weight for law in laws.ends]
        gaps = np.sum([returns, *ends], axis=0)
        later = np.append(np.cumsum(gaps[::-1])[::-1][1:], 0.0)
        above = [[first, later], *([first, one, gone] for one, gone in zip(ends, away, strict=True))]
        kernel = [[returns], *([one, law] for one, law in zip(ends, back, strict=True))]
        found = series_coefficient(above, kernel, last) + s / (1.0 + closing)
        return math.inf if not math.isfinite(found) else math.log(math.exp(min(found, 600.0)) + never)

    return moments_of(log_moment)


def visit_moments(laws: Laws, steps: int) -> Moments:
    """Local DP: 1 for every visit; laws without observers."""
    last, most = steps - 1, laws.horizon
    returns = laws.returns * laws.grown
    returns[-1] += float(laws.left[-1]) * laws.grown
    later = np.append(np.cumsum(returns[::-1])[::-1][1:], 0.0)
    first = laws.first * laws.grown
    rest = max(0.0, 1.0 - float(first[:steps].sum())) + 4 * most * UNIT  # not in the walk, or not in the laws
    never = rest if most >= last else 0.0
    if most < last:
        first[-1] += rest

    def log_moment(s: float) -> float:
        if s > _TOP:
            return math.inf
        found = series_coefficient([[first, later * math.exp(s)]], [[returns * math.exp(s)]], last)
        return math.inf if not math.isfinite(found) else math.log(math.exp(min(found, 600.0)) + never)

    return moments_of(log_moment)


def _never_back(back: FloatArray) -> FloatArray:
    """P(u has not come after a steps), a = 0 …; from the law of when it comes."""
    return np.asarray(np.maximum(1.0 - np.cumsum(back), 0.0) + 4 * len(back) * UNIT)


def sum_moments(laws: Laws, steps: int, closing: float, expected: float) -> Moments:
    """Sums, any observers: k²/D. `steps` of the walk; `expected`: at least the mean number of u's visits."""
    last = steps - 1
    t = np.arange(steps, dtype=np.float64)
    ended = [Energies.of(visits_by_length(laws, last, end), np.maximum(t, 1.0)) for end in laws.ends]
    cut = Energies.of(visits_by_length(laws, last, laws.left), t + 1.0 + closing)
    outside = expected * (sum(part.outside for part in ended) + _beyond(laws, last)) + cut.outside
    return _renewed(laws, last, ended, cut, outside, None)


def visits_law(laws: Laws, steps: int) -> tuple[FloatArray, FloatArray, float]:
    """How often u is visited in all: counts, their probabilities, and what is left out. Laws without observers."""
    counts = visits_by_length(laws, steps - 1, laws.first, laws.left)
    return np.minimum(counts.counts, steps), counts.mass[:, -1], counts.wrong + _beyond(laws, steps - 1)


def _renewed(
    laws: Laws, last: int, ended: list[Energies], cut: Energies, outside: float, growth: Energies | None
) -> Moments:
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
        found = series_coefficient(above, kernel, last, grow)
        return math.inf if not math.isfinite(found) else math.log(math.exp(min(found, 600.0)) + never)

    return moments_of(log_moment, outside)


def descent_moments(laws: Laws, steps: int, closing: float, expected: float) -> Moments:
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
    return _renewed(laws, last, ended, cut, expected * rare + cut.outside, faces)


def single_sum_moments(
    P: Any, start: FloatArray, target: int, observer: int, laws: Laws, steps: int, closing: float, expected: float
) -> Moments:
    """Sums, one observer: k²/m with all the noise of the stretch, also before u's first visit. Exact but for bins.

    expected : at least the mean number of visits to u and to the observer together.
    """
    from .graph_kernels import first_hits

    last = steps - 1
    backwards = P.T.tocsr()
    n = P.shape[0]
    mark = np.full(n, -1, dtype=np.int64)
    mark[target], mark[observer] = 0, 1
    transposed = backwards.indptr, backwards.indices, backwards.data
    opened, nobody = first_hits(*transposed, np.asarray(start, dtype=np.float64), mark, 2, last)
    step = np.asarray(P[[observer]].toarray())[0]
    hits, left = first_hits(*transposed, step, mark, 2, last)
    entered, empty = (np.concatenate([[0.0], law[:last]]) for law in hits)
    quiet = np.concatenate([[1.0], left[:last]])
    t = np.arange(steps, dtype=np.float64)
    between = np.maximum(t - 1.0, 1.0)
    whole = Energies.of(visits_by_length(laws, last, entered, laws.ends[0]), between)
    early = Energies.of(visits_by_length(laws, last, opened[0], laws.ends[0]), np.maximum(t, 1.0))
    late = Energies.of(visits_by_length(laws, last, entered, laws.left), np.maximum(t + closing, 1.0))
    only = Energies.of(visits_by_length(laws, last, opened[0], laws.left), t + 1.0 + closing)
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
        found = series_coefficient(above, kernel, last)
        alone = float(only.moment(s)[last]) + float(nobody[last]) * grown
        return math.inf if not math.isfinite(found) else math.log(math.exp(min(found, 600.0)) + alone)

    return moments_of(log_moment, outside)
