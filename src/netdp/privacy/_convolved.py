"""High powers of distributions on a grid, under convolution: one Fourier transform, and where the sum can lie.

Masses p_j ≥ 0 on the whole numbers, p_j counted k_j times: what is wanted is c = p₁^{*k₁} * p₂^{*k₂} * … on a window.

**The window.** With K(t) = Σ k_j log Σ_i p_j(i)e^{ti}, c has mass at most e^{K(t) − tb} at or above b (t > 0), and at most
e^{K(t) − ta} at or below a (t < 0). So b = (K(t) + log 1/τ)/t leaves at most τ above it, for every t; the best of some is taken.
K is bounded from above on fewer points: a mass between two of them is split so that its mean stays, and e^{ti} is convex, so the
chord lies above it, whatever the sign of t.

**Wrapped around.** A cyclic convolution of length N, at least that of the window, gives c(i) + c(i ± N) + … ≥ c(i). So nothing in
the window is too small but for rounding, and what lies outside of it is at most 2τ.

**Rounding.** u is the unit of rounding. A transform is a product of log₂N sparse stages whose entries have modulus one; each
output takes every input along one path, so its error is at most 8u·log₂N·Σp (Higham, *Accuracy and Stability of Numerical
Algorithms*, 2002, proof of Theorem 24.2: componentwise, before norms are taken). A product of complex numbers adds at most 3u. So
every factor P_j is known to within w_j = (8 log₂N + 4 + r)u·Σp_j, r the turns in which p_j is wound around the circle, and with
m_j = |P_j| + w_j the product of all is known to within

    C = (Π m_j^{k_j})·Σ_j k_j w_j/m_j         at every frequency.

By Cauchy–Schwarz and Parseval the absolute errors of the masses add up to at most ‖C‖₂, and the transform back adds
8u·log₂N times the 2-norm of what it is given. Frequencies at which Π m_j^{k_j} < e^−100 are set to zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
                found = (self.logs(tilt + sign * t) - log_scale + lost) / t  # sign·place
                best = int(np.argmin(found))
                t = np.geomspace(t[max(best - 1, 0)], t[min(best + 1, len(t) - 1)], 9)
            ends.append(sign * float(found[best]))
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
            product *= _power(spectrum[telling], times)
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


def _power(base: npt.NDArray[np.complex128], times: int) -> npt.NDArray[np.complex128]:
    """By repeated squaring: times − 1 products as far as rounding is concerned."""
    result: npt.NDArray[np.complex128] | None = None
    while True:
        if times & 1:
            result = base if result is None else result * base
        times >>= 1
        if not times:
            assert result is not None
            return result
        base = base * base
