"""Privacy loss distributions on a grid: how privacy profiles compose, with every error on the safe side.

**From a profile to a distribution.** Let h(γ) = sup over events of P(S) − γQ(S), γ = e^ε, bound both
directions of a neighbouring pair. h is convex and nonincreasing, being a supremum of such functions of γ.
Given upper bounds δ_i at finitely many γ_i ≥ 1, h therefore lies below the largest convex function under
those points, H. For γ < 1 the other direction gives h(γ) ≤ 1 − γ + γH(1/γ). The function so made of two
halves is convex if H(1) is at most δ_i + (1 − δ_i) tanh(ε_i/2) for all i, which (ε_i, δ_i)-DP in both
directions implies for the total variation (Kairouz, Oh, Viswanath, ICML 2015). Any such function is the
profile of a pair of distributions, and a pair with a larger profile dominates under adaptive composition
(Zhu, Dong, Wang, *Optimal Accounting of Differential Privacy via Characteristic Function*, AISTATS
2022). Its loss log dP/dQ has, under P,

    mass γ_i · (jump of H′ at γ_i) at loss ε_i,  e^{−ε_i} times that at −ε_i,  lim H at +∞,  the rest at 0.

**Onto a grid.** A mass w at loss ε between grid losses g and g + d is split into two that keep its weight
under P and under Q: H is replaced by chords, which lie above (Doroshenko et al., *Connect the Dots*, PETS
2022). Written as a split of masses nothing is subtracted, so small masses keep their relative accuracy.

**Composition** convolves masses. It is done directly where affordable (sums of positive numbers: relative
errors only) and by one Fourier transform otherwise (`_convolved`), whose error is bounded and *added* to δ;
exponential tilting keeps that error small beside even a small δ.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy._convolved import Moments, convolved

LARGEST = 600.0
"""Losses above this are not told apart from infinite ones: e^ε must fit in a double."""

_DIRECT = 1 << 24  # multiplications worth doing directly: about 10 ms
_TAIL = 1e-30  # mass per composition that may be dropped at each end, and is counted as error
_RARE = 1e-17  # mass outside the window of a transform, per factor: well below its rounding


def default_step(*profiles: FloatArray) -> float:
    """A grid that a few given points fall on exactly, if there is one; else 1024 to 32768 cells.

    >>> default_step(np.array([0.0, 0.5]))
    0.5
    >>> default_step(np.array([0.0, 0.5, 0.75]))
    0.25
    """
    points = np.concatenate(profiles)
    points = np.unique(points[(points > 0) & (points <= LARGEST)])
    if points.size == 0:
        return 1.0
    top = float(points[-1])
    if points.size <= 8:
        for cells in range(1, 65):
            place = points / top * cells
            if np.all(np.abs(place - np.round(place)) < 1e-13 * cells):
                return top / cells
    return top / float(np.clip(math.ceil(top / 1e-4), 1024, 32768))


def _lower_hull(x: FloatArray, y: FloatArray) -> list[int]:
    """Indices of the points on the largest convex function below them (Andrew's monotone chain)."""
    rise, run = np.diff(y), np.diff(x)
    if (rise[:-1] * run[1:] < rise[1:] * run[:-1]).all():  # all of them, as is usual
        return list(range(x.size))
    keep: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    for i in range(len(xs)):
        while len(keep) >= 2:
            a, b = keep[-2], keep[-1]
            if (ys[b] - ys[a]) * (xs[i] - xs[b]) < (ys[i] - ys[b]) * (xs[b] - xs[a]):
                break
            keep.pop()
        keep.append(i)
    return keep


@dataclass(frozen=True, eq=False)
class LossGrid:
    """Masses of the loss at l = (low + i)·step under P, times e^{tilt·l − log_scale}; and at +∞, untilted.

    Still to be added to a δ computed from them: `relative` times it, and what the tilted mass `absolute` can
    amount to.
    """

    step: float
    low: int
    masses: FloatArray
    infinite: float
    relative: float
    absolute: float = 0.0
    tilt: float = 0.0
    log_scale: float = 0.0

    @classmethod
    def from_profile(cls, epsilons: FloatArray, deltas: FloatArray, step: float) -> LossGrid:
        """The symmetric pair that dominates every mechanism with this profile; epsilons[0] must be 0."""
        keep = epsilons <= LARGEST  # dropping points is sound: the profile is then constant from the last one kept
        eps, delta = epsilons[keep], deltas[keep].copy()
        total_variation = np.min(delta + (1 - delta) * np.tanh(eps / 2)) * (1 + 8 * UNIT)
        delta[0] = max(min(delta[0], total_variation), delta[-1])
        gap = np.expm1(eps)  # γ − 1
        hull = _lower_hull(gap, delta)
        eps, delta, gap = eps[hull], delta[hull], gap[hull]
        slopes = np.append(np.diff(delta) / np.diff(gap), 0.0)
        atoms = eps[1:]
        weights = np.exp(atoms) * np.maximum(np.diff(slopes), 0.0)
        infinite = float(delta[-1])
        rest = max(0.0, 1 - infinite - float(np.sum(weights * (1 + np.exp(-atoms)))))

        cells = math.ceil(float(atoms[-1]) / step) + 1 if atoms.size else 0
        up = np.zeros(cells + 1)  # masses at 0, step, …, from the atoms at positive losses
        below = np.minimum(np.floor(atoms / step).astype(np.int64), cells - 1)
        part = np.clip(atoms - below * step, 0.0, step)
        np.add.at(up, below, weights * np.exp(-part) * np.expm1(part - step) / math.expm1(-step))
        np.add.at(up, below + 1, weights * np.expm1(-part) / math.expm1(-step))
        used = np.flatnonzero(up)
        up = up[: used[-1] + 1] if used.size else up[:1]
        mirrored = up * np.exp(-step * np.arange(up.size))
        masses = np.concatenate([mirrored[:0:-1], [rest + 2 * up[0]], up[1:]])
        return cls(step, 1 - up.size, masses, infinite, 8 * UNIT * (eps.size + 8))

    @functools.cached_property
    def losses(self) -> FloatArray:
        """The finite losses that carry mass."""
        return np.arange(self.low, self.low + self.masses.size).astype(np.float64) * self.step

    @functools.cached_property
    def _log_masses(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.masses)

    def cumulant(self, tilt: float) -> tuple[float, float]:
        """log Σ p e^{tilt·l} of an untilted grid, and its derivative, the mean loss after tilting."""
        losses = self.losses
        exponents = self._log_masses + tilt * losses
        largest = float(np.max(exponents))
        weights = np.exp(exponents - largest)
        total = float(np.sum(weights))
        return largest + math.log(total), float(np.sum(weights * losses)) / total

    def tilted(self, tilt: float) -> LossGrid:
        """The same distribution, its masses weighted towards large losses."""
        log_scale, _ = self.cumulant(tilt)
        with np.errstate(under="ignore"):
            masses = np.exp(self._log_masses + tilt * self.losses - log_scale)
        # the exponent has a rounding error of a few units times its size
        size = abs(log_scale) + tilt * self.step * max(abs(self.low), abs(self.top))
        relative = self.relative + 8 * UNIT * (size + 50)
        lost = 1e-300 * masses.size  # what underflowed
        return replace(self, masses=masses, relative=relative, absolute=lost, tilt=tilt, log_scale=log_scale)

    def compose(self, other: LossGrid) -> LossGrid | None:
        """The loss of seeing both: losses add, so masses convolve. Both must have the same step and tilt.

        Directly; None if that takes too many multiplications.
        """
        a, b = self.masses, other.masses
        if a.size * b.size > _DIRECT:
            return None
        masses = np.convolve(a, b)
        relative, absolute = self.relative + other.relative, self.absolute + other.absolute
        relative += 2 * UNIT * min(a.size, b.size)
        # the lightest tails are dropped and counted as error
        above = int(np.searchsorted(np.cumsum(masses[::-1]), _TAIL, side="right"))
        below = int(np.searchsorted(np.cumsum(masses), _TAIL, side="right"))
        above = min(above, masses.size - 1)
        below = min(below, masses.size - 1 - above)
        if above or below:
            absolute += 2.5 * _TAIL
        return LossGrid(
            self.step,
            self.low + other.low + below,
            masses[below : masses.size - above],
            self.infinite + other.infinite - self.infinite * other.infinite,
            relative,
            absolute,
            self.tilt,
            self.log_scale + other.log_scale,
        )

    def power(self, times: int) -> LossGrid | None:
        """Composed with itself, by repeated squaring; None if that takes too many multiplications."""
        result: LossGrid | None = None
        square: LossGrid | None = self
        while square is not None:
            if times & 1:
                result = square if result is None else result.compose(square)
                if result is None:
                    return None
            times >>= 1
            if not times:
                return result
            square = square.compose(square)
        return None

    @property
    def top(self) -> int:
        """The index of the largest finite loss, at least 0."""
        return max(0, self.low + self.masses.size - 1)

    def deltas(self, count: int) -> FloatArray:
        """δ at 0, step, …, (count − 1)·step.

        With W_j = Σ_{i ≥ j} p_i e^{−(i−j)d}, δ at jd is (1 − e^{−d}) Σ_{i > j} W_i: only positive terms.
        A tilted mass counts e^{log_scale − tilt·l}, so an error of tilted mass counts at most that at l = ε.
        """
        from scipy.signal import lfilter

        positive = np.zeros(max(count, self.top + 1))
        start = max(1 - self.low, 0)  # losses ≤ 0 add nothing at ε ≥ 0
        positive[self.low + start : self.low + self.masses.size] = self.masses[start:]
        weight = np.zeros_like(positive)
        with np.errstate(under="ignore"):
            # where the weight is beyond e^100 this tilt says nothing, and the result is cut to 1 below
            exponent = self.log_scale - self.tilt * self.step * np.arange(positive.size)
            weight = np.exp(np.minimum(exponent, 100.0))
            decayed = lfilter([1.0], [1.0, -math.exp(-self.step)], (positive * weight)[::-1])
        sums = np.cumsum(decayed)[::-1] * -math.expm1(-self.step)
        finite = np.append(sums[1:], 0.0)[:count]
        relative = self.relative + 8 * UNIT * (positive.size + abs(self.log_scale) + np.max(np.abs(exponent)))
        out = finite * (1 + relative) + self.infinite * (1 + 8 * UNIT) + self.absolute * weight[:count] * 1.001
        return np.where(exponent[:count] > 100.0, 1.0, np.minimum(out, 1.0))


class Composition:
    """Several distributions composed, each a number of times, so that δ is accurate wherever it is looked at.

    One transform has an error relative to the *largest* masses, which drowns a small δ. Tilting by e^{sl}
    commutes with composition and makes any chosen part of the tail the largest. So besides s = 0, tilts are
    computed that centre the result where δ is about 1e-5, 1e-10, … (Chernoff's bound names them). Each gives
    an upper bound at every ε; the least of them holds.
    """

    _LEVELS = tuple(10.0**-power for power in (5, 10, 17, 27))

    def __init__(self, *parts: tuple[LossGrid, int]) -> None:
        directly = self._directly(parts)
        if directly is not None:
            self.grids = [directly]
            return
        step = parts[0][0].step
        moments = Moments([(grid.masses, grid.low, times) for grid, times in parts])
        tilts = [0.0, *(tilt / step for tilt in self._tilts(moments))]
        self.grids = [self._combine(parts, tilt, moments) for tilt in tilts]

    @staticmethod
    def _directly(parts: tuple[tuple[LossGrid, int], ...]) -> LossGrid | None:
        """Without a transform, if that is quick, or if nothing finite is left."""
        result: LossGrid | None = None
        if any(not grid.masses.any() for grid, _ in parts):
            grid = parts[0][0]
            return replace(grid, low=0, masses=np.zeros(1), infinite=_together(parts))
        for grid, times in parts:
            power = grid.power(times)
            if power is None:
                return None
            result = power if result is None else result.compose(power)
            if result is None:
                return None
        return result

    @staticmethod
    def _combine(parts: tuple[tuple[LossGrid, int], ...], tilt: float, moments: Moments) -> LossGrid:
        """By a transform, over the window in which the tilted law lies."""
        step = parts[0][0].step
        tilted = [(grid.tilted(tilt) if tilt else grid, times) for grid, times in parts]
        log_scale = sum(times * grid.log_scale for grid, times in tilted)
        rare = max(_TAIL, _RARE * sum(times for _, times in parts))
        first, last = moments.window(tilt * step, log_scale, min(rare, 1e-6))
        masses, wrong = convolved([(grid.masses, grid.low, times) for grid, times in tilted], first, last)
        return LossGrid(
            step,
            first,
            masses,
            _together(parts),
            sum(times * grid.relative for grid, times in tilted),
            sum(times * grid.absolute for grid, times in tilted) + wrong + 2.5 * rare,
            tilt,
            log_scale,
        )

    def _tilts(self, moments: Moments) -> list[float]:
        """Per cell of the grid. Chernoff's bound at the mean of the tilted law grows with the tilt."""
        tilts: list[float] = []
        low, high = 0.0, 1.0
        while high > 1e-12 and moments.exponent(high) > -math.log(self._LEVELS[-1]):
            high /= 2
        for level in self._LEVELS:
            aim = -math.log(level)
            while moments.exponent(high) < aim:
                high *= 2
                if high > 1e4:  # the tail ends before: its last atom is heavier than the level
                    return tilts
            left, right = low, high
            for _ in range(20):  # any tilt is sound, so a rough one will do
                middle = 0.5 * (left + right)
                left, right = (middle, right) if moments.exponent(middle) < aim else (left, middle)
            tilts.append(right)
            low = left
        return tilts

    @property
    def top(self) -> int:
        """The index beyond which no distribution has finite losses."""
        return max(grid.top for grid in self.grids)

    def deltas(self, count: int) -> FloatArray:
        """The least bound at each of 0, step, …, (count − 1)·step."""
        return functools.reduce(np.minimum, [grid.deltas(count) for grid in self.grids])


def _together(parts: tuple[tuple[LossGrid, int], ...]) -> float:
    """The mass at +∞ of all parts together."""
    with np.errstate(divide="ignore"):
        return -math.expm1(float(sum(times * np.log1p(-grid.infinite) for grid, times in parts)))
