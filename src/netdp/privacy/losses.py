"""Privacy loss distributions on a grid: how privacy profiles compose, with every error on the safe side.

A profile is turned into masses of the loss log dP/dQ, which are split onto a grid upwards; composition convolves them, directly
where affordable and else by one Fourier transform on a window that holds all but 2τ. The error of the transform is bounded and
added to δ; exponential tilting keeps it small beside even a small δ. Proofs: docs/proofs/privacy.md#loss-distributions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from netdp.numerics.arrays import UNIT, FloatArray

Part = tuple[FloatArray, int, int]
"""Masses, the place of the first of them, how often they count."""

_SINGLE = 48  # places around 0 that have a point of their own in K

_RATIO = 1.02  # of points further out

_NOTHING = -100.0  # logarithm of a factor that is as good as zero


class Moments:
    """log Σ p e^{ti}, from above, for many t at once: what says where a sum of many lies."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = [(*_fewer(masses, first), times) for masses, first, times in parts]

    def logs(self, t: FloatArray) -> FloatArray:
        """K(t) at each t."""
        total = np.zeros(len(t))
        for places, logs, times in self.parts:
            exponents = t[:, None] * places + logs
            largest = exponents.max(axis=1)
            total += times * (largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1)))
        return total

    def exponent(self, t: float) -> float:
        """t·K′(t) − K(t), about: −log of the bound at the mean of the law tilted by t."""
        total = 0.0
        for places, logs, times in self.parts:
            exponents = t * places + logs
            largest = float(exponents.max())
            weights = np.exp(exponents - largest)
            mass = float(weights.sum())
            total += times * (t * float((weights * places).sum()) / mass - largest - math.log(mass))
        return total

    def window(self, tilt: float, log_scale: float, rare: float) -> tuple[int, int]:
        """First and last place between which all but 2·rare of e^{tilt·i − log_scale}·c lies."""
        full = [sum(times * int(places[end]) for places, _, times in self.parts) for end in (0, -1)]
        lost = -math.log(rare) + 1e-3  # far above the rounding of K
        if float(self.logs(np.array([tilt]))[0]) - log_scale + lost <= 0:  # all of it is rare: any place will do
            place = min(max(0, full[0]), full[1])
            return place, place
        spread = max(1.0, self._spread(tilt))
        near = math.sqrt(2 * lost) / spread
        ends = []
        for sign in (-1.0, 1.0):
            t = near * np.geomspace(1e-3, 1e3, 41)
            for _ in range(2):
                ends_at = (self.logs(tilt + sign * t) - log_scale + lost) / t  # sign·place
                best = int(np.argmin(ends_at))
                t = np.geomspace(t[max(best - 1, 0)], t[min(best + 1, len(t) - 1)], 9)
            ends.append(sign * float(ends_at[best]))
        first = math.floor(min(max(ends[0], full[0]), full[1]))
        last = math.ceil(max(min(ends[1], full[1]), full[0]))
        return min(first, last), max(first, last)

    def _spread(self, tilt: float) -> float:
        """The standard deviation of the tilted sum, about."""
        total = 0.0
        for places, logs, times in self.parts:
            weights = np.exp(tilt * places + logs - np.max(tilt * places + logs))
            weights /= weights.sum()
            mean = float(weights @ places)
            total += times * float(weights @ (places - mean) ** 2)
        return math.sqrt(total)


def _fewer(masses: FloatArray, first: int) -> tuple[FloatArray, FloatArray]:
    """Places and logarithms of masses, neighbouring masses put together: the total and the mean are kept."""
    last = first + masses.size - 1
    reach = max(abs(first), abs(last), _SINGLE + 1)
    count = math.ceil(math.log(reach / _SINGLE) / math.log(_RATIO)) + 2
    far = np.unique(np.round(np.geomspace(_SINGLE, reach, count)).astype(np.int64))
    knots = np.unique(np.concatenate([-far, np.arange(-_SINGLE, _SINGLE + 1), far, [first, last]]))
    knots = knots[(knots >= first) & (knots <= last)]
    together: FloatArray = masses
    if knots.size < masses.size:
        places = np.arange(first, last + 1)
        left = np.minimum(np.searchsorted(knots, places, side="right") - 1, knots.size - 2)
        share = (places - knots[left]) / (knots[left + 1] - knots[left])
        below = np.bincount(left, weights=masses * (1 - share), minlength=knots.size)
        above = np.bincount(left + 1, weights=masses * share, minlength=knots.size)
        together = np.asarray(below + above, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return knots.astype(np.float64), np.log(together * (1 + 1e-12))


def convolved(parts: Sequence[Part], first: int, last: int) -> tuple[FloatArray, float]:
    """Masses at `first` … `last` of all parts together, and how much all their errors can add up to.

    What lies outside of the window wraps around: it may be added somewhere, and is missing where it belongs.

    >>> coin = np.array([0.5, 0.5])
    >>> masses, wrong = convolved([(coin, 0, 4)], 0, 4)
    >>> (masses * 16).round(9).tolist(), wrong < 1e-12
    ([1.0, 4.0, 6.0, 4.0, 1.0], True)
    """
    from scipy import fft

    size = last - first + 1
    length = int(fft.next_fast_len(max(size, 2), real=True))
    turns = max(2 + masses.size // length for masses, _, _ in parts)
    each = 8 * math.log2(length) + 4 + turns
    spectra: list[tuple[npt.NDArray[np.complex128], int]] = []
    log_size, share = np.zeros(length // 2 + 1), np.zeros(length // 2 + 1)
    for masses, start, times in parts:
        folded = _folded(masses, start % length, length)
        spectrum = fft.rfft(folded)
        wrong = each * UNIT * float(folded.sum())
        modulus = np.abs(spectrum) + wrong
        log_size += times * np.log(modulus)
        share += times * wrong / modulus
        spectra.append((spectrum, times))
    telling = np.flatnonzero(log_size > _NOTHING)
    product = np.ones(telling.size, dtype=np.complex128)
    with np.errstate(under="ignore"):
        for spectrum, times in spectra:
            product *= raised(spectrum[telling], times)
        errors = np.exp(log_size[telling]) * share[telling]
    whole = np.zeros(length // 2 + 1, dtype=np.complex128)
    whole[telling] = product
    # half of the spectrum stands for all of it
    error = math.sqrt(2 * float(errors @ errors)) * (1 + 1e-6) + math.sqrt(length) * math.exp(_NOTHING)
    error += each * UNIT * math.sqrt(2 * float(np.sum(product.real**2 + product.imag**2)))
    found = np.maximum(fft.irfft(whole, length), 0.0)
    return np.roll(found, -(first % length))[:size], error


def _folded(masses: FloatArray, start: int, length: int) -> FloatArray:
    """Masses from place `start` on, wrapped around a circle of `length`."""
    turns = -(-(start + masses.size) // length)
    line = np.zeros(turns * length)
    line[start : start + masses.size] = masses
    return np.asarray(line if turns == 1 else line.reshape(turns, length).sum(axis=0))


def raised(base: npt.NDArray[np.complex128], times: int) -> npt.NDArray[np.complex128]:
    """The power of every number, by repeated squaring: times − 1 products as far as rounding is concerned."""
    result: npt.NDArray[np.complex128] | None = None
    while True:
        if times & 1:
            result = base if result is None else result * base
        times >>= 1
        if not times:
            assert result is not None
            return result
        base = base * base


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


def hull_of(epsilons: FloatArray, deltas: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The points (ε, δ) of the symmetric pair that dominates every mechanism with this profile; epsilons[0] must be 0."""
    keep = epsilons <= LARGEST  # dropping points is sound: the profile is then constant from the last one kept
    eps, delta = epsilons[keep], deltas[keep].copy()
    total_variation = np.min(delta + (1 - delta) * np.tanh(eps / 2)) * (1 + 8 * UNIT)
    delta[0] = max(min(delta[0], total_variation), delta[-1])
    hull = _lower_hull(np.expm1(eps), delta)
    return eps[hull], delta[hull]


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
        eps, delta = hull_of(epsilons, deltas)
        slopes = np.append(np.diff(delta) / np.diff(np.expm1(eps)), 0.0)
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
