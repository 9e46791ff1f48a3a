"""Laplace noise on whole numbers: an exact sampler, and its exact privacy.

The discrete Laplace law with rate r > 0 puts mass (1 − e^{−r})/(1 + e^{−r})·e^{−r|x|} on every whole number x (Ghosh,
Roughgarden, Sundararajan 2012, "geometric mechanism"). Its variance is 2e^{−r}/(1 − e^{−r})² ≤ 2/r².

**The draw** uses whole numbers only; r = a/b is any fraction. Let t = 2^j be the largest power of two with t·r ≤ 1, or 1.
U uniform on 0 … t−1 is kept with probability e^{−rU}; V counts how many coins e^{−rt} in a row show heads. U + tV is then
geometric, P ∝ e^{−r(U+tV)}; with a random sign, −0 being drawn anew, it is the stated law (Canonne, Kamath, Steinke 2020
have r = 1/t). The exponents rU ≤ 1 are computed with relative errors of a few 2⁻⁵³, so the coins are exact
(`netdp.mechanisms.coins`).

**Privacy.** A vector of whole numbers with such noise in every coordinate, moved by one step in one coordinate: every
probability changes by a factor within e^{±r}. So for an event S whose probability is h, one step leaves at least
g(h) = max(e^{−r}h, 1 − e^r(1 − h)), and D steps, each in any coordinate, at least g applied D times, g being increasing.
g is convex with one kink, at h = F(0) = 1/(1 + e^{−r}), and its D-th iterate is linear between the points F(0), …, F(D − 1)
that reach the kink, F the distribution function. For a single number shifted by D the half-lines {x ≤ m} attain it at
h = F(m) for every m, as F(m − 1) = g(F(m)). So *vectors at an L1 distance of D steps are no easier to tell apart than numbers
D steps apart*, at any ε, and

    δ(ε) = max_m F(m) − e^ε F(m − D) = max_{0≤m<D} 1 − [e^{−r(m+1)} + e^{ε−r(D−m)}]/(1 + e^{−r}),      0 from ε₀ = rD on.

The bracket is smallest at m = (D − 1)/2 − ε/2r, rounded to one of its neighbours, and never below 2e^{−r/2 + (ε−ε₀)/2}: so
δ(ε) ≤ 1 − e^{(ε−ε₀)/2}/cosh(r/2), the profile on real numbers and at most r²/8 more. See docs/guarantees.md#finite-precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError
from netdp.numerics.arrays import UNIT, FloatArray, IntArray

from .coins import flips
from .discrete_gaussian import Coin, Words, kept_until_full

LEAST_RATE = Fraction(1, 2**52)
"""No smaller rate is drawn, so that a draw fits into 62 bits unless the words are broken."""
LARGEST_RATE = 50
_LONGEST = 1024  # laps of at least half a unit of the exponent each: more have a chance below e^−512


@dataclass(frozen=True)
class DiscreteLaplace:
    """The law ∝ e^{−r|x|} on the whole numbers, r = `rate` a fraction from 2⁻⁵² to 50.

    >>> from netdp.mechanisms.discrete_gaussian import words_from
    >>> noise = DiscreteLaplace(Fraction(1, 3)).sample((2, 50_000), words_from(np.random.default_rng(0)))
    >>> noise.shape, noise.dtype, round(float(noise.var())), round(DiscreteLaplace(Fraction(1, 3)).variance, 2)
    ((2, 50000), dtype('int64'), 18, 17.83)
    """

    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _fraction(self.rate))
        if not LEAST_RATE <= self.rate <= LARGEST_RATE:
            raise InvalidValue(
                f"rate must lie between 2⁻⁵² and {LARGEST_RATE}, got {float(self.rate):.3g}; use "
                + ("a coarser grid" if self.rate < LEAST_RATE else "a finer grid, or more noise")
            )

    @property
    def variance(self) -> float:
        """2e^{−r}/(1 − e^{−r})² = 1/(2·sinh²(r/2))."""
        return 0.5 / math.sinh(float(self.rate) / 2) ** 2

    @property
    def lap(self) -> int:
        """t: the largest power of two with t·r ≤ 1, or 1."""
        whole = self.rate.denominator // self.rate.numerator
        return 1 << max(whole.bit_length() - 1, 0)

    def sample(self, shape: tuple[int, ...], words: Words) -> IntArray:
        """Independent draws, from so many words as it takes."""
        return kept_until_full(shape, lambda tries: self._round(tries, words))

    def _round(self, tries: int, words: Words) -> IntArray:
        """What is left of so many proposals."""
        a, b, t = self.rate.numerator, self.rate.denominator, self.lap
        drawn = words(tries)
        minus = (drawn >> np.uint64(63)).astype(bool)
        start = (drawn & np.uint64(t - 1)).astype(np.int64)
        if t > 1:
            kept = flips(start * np.float64(self.rate), lambda i: (int(start[i]) * a, b), words)
            start, minus = start[kept], minus[kept]
        size, going, once = start, np.arange(len(start)), Coin(t * a, b)
        for _ in range(_LONGEST):
            going = going[once.flip(len(going), words)]
            if not going.size:
                break
            size[going] += t
        else:  # not in the lifetime of anything, if the words are random
            raise NetdpError(f"{_LONGEST} heads in a row: the source of random words is broken")
        alive = ~(minus & (size == 0))  # zero has one sign only
        return np.asarray(np.where(minus, -size, size)[alive], dtype=np.int64)

    def shift_delta(self, shift: int, epsilon: npt.ArrayLike) -> FloatArray:
        """δ(ε) of numbers `shift` steps apart, or of vectors at that L1 distance; exact, rounded up.

        >>> DiscreteLaplace(Fraction(1)).shift_delta(1, [0.0, 0.5, 1.0]).round(4).tolist()      # tanh(1/2), as a coin
        [0.4621, 0.2876, 0.0]
        """
        eps = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        rate = float(self.rate)
        best = np.floor((shift - 1) / 2 - np.minimum(eps, rate * shift) / (2 * rate))
        least = np.full(eps.shape, np.inf)
        for m in (best - 1, best, best + 1, best + 2):
            m = np.clip(m, 0, max(shift - 1, 0))
            left = np.exp(-rate * (m + 1)) + np.exp(np.minimum(eps - rate * (shift - m), 700.0))
            least = np.minimum(least, left)
        # exponents are wrong by a few units of at most ε₀ + 50, which is what the last terms cover
        rounding = 8 * UNIT * (2 + rate * shift)
        found = np.maximum(1 - least / (1 + math.exp(-rate)) * (1 - rounding), 0.0)
        most = float(self.rate * shift)
        if Fraction(most) < self.rate * shift:
            most = math.nextafter(most, math.inf)
        above = np.nextafter(found, 2.0)  # near 1 the subtraction itself is what rounds
        return np.asarray(np.where(eps >= most, 0.0, np.minimum(above, 1.0)))


def _fraction(rate: Any) -> Fraction:
    if isinstance(rate, bool) or not isinstance(rate, Fraction | int):
        raise InvalidValue(f"rate must be a Fraction, such as Fraction(1, 3), got {rate!r}: the draw is exact")
    return Fraction(rate)
