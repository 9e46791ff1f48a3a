"""Gaussian noise on very fine grids: exact draws with deviations up to 2⁵⁸ steps, and how far from a rounded real Gaussian.

The law is that of `netdp.mechanisms.discrete_gaussian`, ∝ e^{−x²/2v} on the whole numbers, and so is the rejection
(Canonne, Kamath, Steinke 2020): with t = 2^j > √v, Y = ±(U + t·V) from the discrete Laplace law ∝ e^{−|y|/t} is kept with
probability exp(−(|Y| − v/t)²/2v). There numbers are so small that every coin can be prepared; here they have 60 bits.

**Coins.** Those with probability e^{−p/q} are decided in doubles where doubles can, and in whole numbers, digit by digit,
where they cannot (`coins.flips`). So what is drawn has the stated law exactly if the words are uniform and independent.

*The error in doubles.* Let y = p/q be the exponent, ŷ what is computed. First coin: y = U/t ≤ 1, two roundings. Last coin: y
= (|Y| − v/t)²/2v; |Y|, v/t and their difference are rounded relatively by a few units u = 2⁻⁵³ of |Y| + v/t ≤ 2(|Y|/t +
1)·t, and t ≤ 2√v, so |ŷ − y| ≤ 2⁶u(|Y|/t + 2)² ≤ 2⁻³⁹ for |Y| ≤ 16t, and e^{−y} moves by no more. (|Y| > 16t: y > 100; that
such Y be kept is decided in whole numbers whenever the word is below 2⁻²⁹, and refused otherwise, as it must be.)

**Close to rounding.** Let R be N(0, v) rounded to the nearest whole number and X the discrete Gaussian of parameter v. At
every x (`discrete_gaussian`, "Vectors") P[R = x] ≥ e^{−1/24v}·P[X = x], so

    TV(R, X) = Σ_x (P[X = x] − P[R = x])₊ ≤ 1 − e^{−1/24v} ≤ 1/(24v).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from netdp.errors import InvalidValue, NetdpError
from netdp.numerics.arrays import IntArray
from netdp.numerics.checks import count

from .coins import flips
from .discrete_gaussian import Coin, Words, kept_until_full

FINEST_VARIANCE = 2**116
"""No larger parameter is drawn: deviations up to 2⁵⁸ steps, so that 2⁶³ is 32 of them away."""

_FAR = 16  # multiples of t: beyond, doubles decide nothing
_LONGEST = 2048
_ONCE = Coin(1, 1)


@dataclass(frozen=True)
class FineGaussian:
    """The law ∝ e^{−x²/2v} on the whole numbers, v = `variance` a whole number from 1 to 2¹¹⁶.

    >>> from netdp.mechanisms.discrete_gaussian import words_from
    >>> noise = FineGaussian(2**100).sample((2, 5000), words_from(np.random.default_rng(0)))
    >>> noise.shape, noise.dtype, round(float((noise / 2.0**50).var()), 1)
    ((2, 5000), dtype('int64'), 1.0)
    """

    variance: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", count("variance", self.variance))
        if self.variance > FINEST_VARIANCE:
            raise InvalidValue(
                f"variance must be at most 2¹¹⁶ (σ of 2⁵⁸ steps), got {self.variance:.3g}; use a coarser grid"
            )

    @property
    def scale(self) -> int:
        """t, the least power of two above √v."""
        return 1 << math.isqrt(self.variance).bit_length()

    def sample(self, shape: tuple[int, ...], words: Words) -> IntArray:
        """Independent draws, from so many words as it takes."""
        return kept_until_full(shape, lambda tries: self._round(tries, words))

    def _round(self, tries: int, words: Words) -> IntArray:
        """What is left of so many proposals."""
        t, v = self.scale, self.variance
        drawn = words(tries)
        start = (drawn & np.uint64(t - 1)).astype(np.int64)
        minus = (drawn >> np.uint64(63)).astype(bool)
        heads = flips(start / float(t), lambda i: (int(start[i]), t), words)
        start, minus = start[heads], minus[heads]
        laps = _laps(len(start), words)
        alive = ~(minus & (start == 0) & (laps == 0))  # zero has one sign only
        start, minus, laps = start[alive], minus[alive], laps[alive]
        exponent = (start + float(t) * laps - v / t) ** 2 / (2.0 * float(v))
        exponent[laps >= _FAR] = np.inf

        def exact(i: int) -> tuple[int, int]:
            return ((int(start[i]) + t * int(laps[i])) * t - v) ** 2, 2 * v * t * t

        heads = flips(exponent, exact, words)
        start, minus, laps = start[heads], minus[heads], laps[heads]
        if t * (int(laps.max(initial=0)) + 1) > 2**63:  # beyond 32 deviations
            raise NetdpError("a draw does not fit into 64 bits: the source of random words is broken")
        size = start + t * laps
        return np.asarray(np.where(minus, -size, size), dtype=np.int64)


def _laps(size: int, words: Words) -> IntArray:
    """How many heads in a row a coin of probability 1/e shows."""
    laps = np.zeros(size, dtype=np.int64)
    going = np.arange(size)
    for _ in range(_LONGEST):
        if not going.size:
            return laps
        going = going[_ONCE.flip(len(going), words)]
        laps[going] += 1
    raise NetdpError(f"{_LONGEST} heads in a row: the source of random words is broken")  # not in any lifetime


def rounding_distance(variance: int) -> float:
    """A bound on the total variation distance between N(0, v), rounded, and the discrete Gaussian of parameter v: 1/(24v).

    >>> rounding_distance(2**80) < 1e-25
    True
    """
    return 1.0 / (24.0 * count("variance", variance)) * (1 + 1e-15)
