"""How unlikely numbers are that should be uniform, or should be noise of a known size: tests that err on the safe side.

An audit calls a sound system wrong with a stated probability at most, its *doubt*. All tests here keep to that for any number of
numbers (`netdp.audit.samples`: bounds, not limits); where one looks at many things, the doubt is shared among them.

**Uniform modulo 2ᵏ.** Counted are: the highest four and the lowest four bits; remainders modulo 3, 5 and 7; every bit; and every
bit against the next higher one. (Numbers that are small around 0, positive or negative, have high bits that all agree: each bit
alone looks like a fair coin, two together do not.)

**Noise of variance V.** Σ r²/V of N independent numbers is χ² with N degrees of freedom. Discrete Gaussians of a deviation of
some steps and their sums differ from real ones by less than e^{−2π²V}, in the law of a sum of N squares by N times that.

**Small by chance.** N numbers that are uniform modulo q all lie within ±b with probability ((2b + 1)/q)ᴺ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netdp.audit.samples import of_counts, of_each
from netdp.numerics.arrays import FloatArray

Words = npt.NDArray[np.uint64]

DOUBT = 1e-6
"""With which probability, at most, a check of a sound system fails."""

FEWEST = 40
"""Fewer numbers than this tell nothing of their law at such a doubt."""

_REMAINDERS = (3, 5, 7)

_BITS = 4


def uneven(numbers: Words, modulus: int, doubt: float = DOUBT) -> str | None:
    """Why these cannot be uniform modulo a power of two, in words; None if they may be.

    >>> words = np.random.default_rng(0).integers(0, 2**32, 500, dtype=np.uint64)
    >>> uneven(words, 2**32), uneven(words & np.uint64(0xFFFF), 2**32)
    (None, 'the highest 4 bits are 0 in 500 of 500 numbers')
    """
    n, bits = len(numbers), modulus.bit_length() - 1
    if n < FEWEST:
        return None
    found: list[tuple[float, str]] = []
    few = min(_BITS, bits)
    for words, cell, share in (
        (f"the highest {few} bits are", numbers >> np.uint64(bits - few), np.full(1 << few, 0.5**few)),
        (f"the lowest {few} bits are", numbers & np.uint64((1 << few) - 1), np.full(1 << few, 0.5**few)),
        *((f"the remainder modulo {m} is", numbers % np.uint64(m), _shares(modulus, m)) for m in _REMAINDERS),
    ):
        counts = np.bincount(cell.astype(np.int64), minlength=len(share))
        odd = int(np.argmax(np.abs(counts - n * share)))
        found.append((of_counts(counts, share), f"{words} {odd} in {int(counts[odd]):,} of {n:,} numbers"))
    each = np.array([int(((numbers >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(bits)])
    turned = numbers ^ (numbers >> np.uint64(1))
    differ = np.array([int(((turned >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(bits - 1)])
    for what, ones in (("bit {0} is set", each), ("bits {0} and {1} differ", differ)):
        chances = of_each(ones, n, 0.5)
        odd = int(np.argmin(chances))
        words = f"{what.format(odd, odd + 1)} in {int(ones[odd]):,} of {n:,} numbers"
        found.append((float(chances[odd]) * len(ones), words))
    chance, words = min(found)
    return words if chance <= doubt / len(found) else None


def _shares(modulus: int, m: int) -> FloatArray:
    """Of each remainder modulo m, its share of 0 … modulus − 1."""
    return np.array([((modulus - 1 - rest) // m + 1) / modulus for rest in range(m)])


@dataclass(frozen=True)
class Squares:
    """Numbers that should be noise, against the variance that they should have: N of them, and their Σ r²/V.

    >>> Squares(100, 100.0).low > 0.4, Squares(100, 25.0).low < 1e-10
    (True, True)
    """

    count: int
    squares: float

    @staticmethod
    def of(parts: Sequence[tuple[npt.ArrayLike, float]]) -> Squares:
        """Of (numbers, their variance)."""
        arrays = [(np.asarray(numbers, dtype=np.float64), variance) for numbers, variance in parts]
        return Squares(
            sum(one.size for one, _ in arrays), sum(float(np.square(one).sum()) / variance for one, variance in arrays)
        )

    @property
    def ratio(self) -> float:
        """The deviation as a share of what it should be."""
        return math.sqrt(self.squares / self.count) if self.count else math.nan

    @property
    def low(self) -> float:
        """How likely so little noise, or less, is."""
        from scipy.special import gammainc

        return float(gammainc(self.count / 2, self.squares / 2)) if self.count else 1.0

    @property
    def high(self) -> float:
        """How likely so much noise, or more, is."""
        from scipy.special import gammaincc

        return float(gammaincc(self.count / 2, self.squares / 2)) if self.count else 1.0

    def at_most(self, doubt: float) -> float:
        """The deviation as a share of what it should be is no larger than this, but for the doubt.

        >>> round(Squares(1000, 1000.0).at_most(0.01), 3)
        1.055
        """
        from scipy.special import gammaincinv

        return math.sqrt(self.squares / (2 * float(gammaincinv(self.count / 2, doubt)))) if self.count else math.inf


def chance_of_small(bound: float, modulus: int, count: int) -> float:
    """The logarithm of the chance that so many uniform numbers all lie within ±bound, modulo a power of two.

    >>> chance_of_small(2.0**31, 2**32, 5), chance_of_small(100.0, 2**32, 4) < -60
    (0.0, True)
    """
    return min(0.0, count * math.log(min(1.0, (2 * bound + 1) / modulus)))
