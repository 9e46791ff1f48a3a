"""Gaussian noise on very fine grids: exact draws with deviations up to 2⁵⁸ steps, and how far from a rounded real Gaussian.

The law is that of `netdp.mechanisms.discrete_gaussian`, ∝ e^{−x²/2v} on the whole numbers, and so is the rejection
(Canonne, Kamath, Steinke 2020): with t = 2^j > √v, Y = ±(U + t·V) from the discrete Laplace law ∝ e^{−|y|/t} is kept with
probability exp(−(|Y| − v/t)²/2v). There numbers are so small that every coin can be prepared; here they have 60 bits.

**Coins, fast and exact.** A coin with probability e^{−p/q} shows heads if a uniform number, given by its binary digits, is
below e^{−p/q}. Its first 64 digits are one random word. Computed in doubles, word/2⁶⁴ and e^{−p/q} are wrong by less than
2⁻³⁰ together (below), so where they are further apart than 2⁻²⁹ the comparison is already decided; otherwise, once in
some 10⁸ coins, it is made in whole numbers, digit by digit, with `exp_floor`. So what is drawn has the stated law exactly
if the words are uniform and independent.

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
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count

from .discrete_gaussian import Words, exp_floor, kept_until_full

FINEST_VARIANCE = 2**116
"""No larger parameter is drawn: deviations up to 2⁵⁸ steps, so that 2⁶³ is 32 of them away."""

_MARGIN = 2.0**-29
_FAR = 16  # multiples of t: beyond, doubles decide nothing
_LONGEST = 2048


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
        heads = _flips(start / float(t), lambda i: (int(start[i]), t), words)
        start, minus = start[heads], minus[heads]
        laps = _laps(len(start), words)
        alive = ~(minus & (start == 0) & (laps == 0))  # zero has one sign only
        start, minus, laps = start[alive], minus[alive], laps[alive]
        exponent = (start + float(t) * laps - v / t) ** 2 / (2.0 * float(v))
        exponent[laps >= _FAR] = np.inf

        def exact(i: int) -> tuple[int, int]:
            return ((int(start[i]) + t * int(laps[i])) * t - v) ** 2, 2 * v * t * t

        heads = _flips(exponent, exact, words)
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
        going = going[_flips(np.ones(len(going)), lambda i: (1, 1), words)]
        laps[going] += 1
    raise NetdpError(f"{_LONGEST} heads in a row: the source of random words is broken")  # not in any lifetime


def _flips(exponents: FloatArray, exact: Callable[[int], tuple[int, int]], words: Words) -> npt.NDArray[np.bool_]:
    """One coin for every exponent y: heads with probability e^{−y}, y = p/q exactly with (p, q) = exact(i)."""
    drawn = words(len(exponents))
    place = drawn * 2.0**-64
    chance = np.exp(-exponents)
    heads = place < chance
    for i in np.flatnonzero(np.abs(place - chance) <= _MARGIN).tolist():
        heads[i] = below_exp(int(drawn[i]), *exact(i), words)
    return heads


def below_exp(word: int, p: int, q: int, words: Words) -> bool:
    """Whether the number with these first 64 binary digits, and the next ones from `words`, is below e^{−p/q}.

    >>> below_exp(2**63, 1, 1, lambda size: np.zeros(size, dtype=np.uint64)), below_exp(2**62, 1, 1, None)
    (False, True)
    """
    if p == 0:
        return True
    bits = 64
    while True:
        digits = exp_floor(p, q, bits) & (2**64 - 1)
        if word != digits:
            return word < digits
        word, bits = int(words(1)[0]), bits + 64  # e^{−p/q} is irrational, so this ends


def rounding_distance(variance: int) -> float:
    """A bound on the total variation distance between N(0, v), rounded, and the discrete Gaussian of parameter v: 1/(24v).

    >>> rounding_distance(2**80) < 1e-25
    True
    """
    return 1.0 / (24.0 * count("variance", variance)) * (1 + 1e-15)
