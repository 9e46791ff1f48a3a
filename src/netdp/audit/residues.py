"""Lattice attacks: what the residues of whole numbers give away that real numbers would not.

**Averages in exact arithmetic.** Hidden parties hold noisy whole numbers y_i, and somebody sees s = Σ y_i/p_i, p_i coprime. In real
numbers the loss about party j is the factor p_j⁻²/Σ p_i⁻² of local DP's. But s·Πp is a whole number, and modulo p_j it is
(Πp/p_j)·y_j: the residue of y_j is seen as it is. `AverageAttack` takes the likelihood ratio of that residue; where the noise is no
wider than p_j steps it learns as much as under local DP, and the claim in real numbers is refuted. That is why no amplified
claim is made for plain averages on a grid (docs/guarantees.md#masked-sum).

**Sums whose noise lies on a coarser lattice.** If all noise of a sum is a multiple of m grid steps (scaled after it was drawn, or
drawn on another grid), then the sum modulo m is that of the values. `ResidueAttack` lets the target move by one step only and
looks at the residue. Against noise on every step, σ of several steps, the residue says nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from netdp.errors import InvalidValue
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
from netdp.numerics.arrays import FloatArray
from netdp.privacy import GaussianCurve
from netdp.protocols.masked import opened

from .attack import Attack
from .masked import MaskedAttack, component

MODULI = (2, 3)
_REACH = 12


@dataclass(frozen=True)
class AverageAttack(Attack):
    """On s = Σ y_i/p_i, seen once in exact arithmetic; the last party is the target.

    primes   the p_i
    steps    σ of everybody's noise, in grid steps
    shift    how far the target's two values are apart, in grid steps
    """

    words: ClassVar[str] = "the residue of an average of whole numbers, seen in exact arithmetic"
    primes: tuple[int, ...]
    steps: int
    shift: int

    def __post_init__(self) -> None:
        if len(self.primes) < 2 or any(math.gcd(p, q) > 1 for i, p in enumerate(self.primes) for q in self.primes[:i]):
            raise InvalidValue(f"primes must be two or more coprime denominators, got {self.primes}")

    @property
    def size(self) -> int:
        """Trials of a batch."""
        return 20_000

    @property
    def in_real_numbers(self) -> GaussianCurve:
        """What an analysis in real numbers would promise."""
        factor = self.primes[-1] ** -2 / sum(p**-2 for p in self.primes)
        return GaussianCurve(math.sqrt(factor) * self.shift / self.steps)

    @cached_property
    def _table(self) -> FloatArray:
        """Per residue of the target's number: the logarithm of its likelihood ratio."""
        p, reach = self.primes[-1], _REACH * self.steps
        numbers = np.arange(-reach, reach + 1)
        mass = np.exp(-(numbers**2) / (2.0 * self.steps**2))
        without = np.bincount(numbers % p, weights=mass, minlength=p)
        return np.asarray(np.log(np.roll(without, self.shift % p) / without))

    def batch(self, within: bool, seed: int) -> FloatArray:
        words = words_from(np.random.default_rng(seed))
        y = DiscreteGaussian(self.steps**2).sample((len(self.primes), self.size), words)
        y[-1] += self.shift if within else 0
        whole = math.prod(self.primes)
        seen = sum((whole // p) * row for p, row in zip(self.primes, y, strict=True))
        p = self.primes[-1]
        residue = (seen * pow(whole // p, -1, p)) % p
        return np.asarray(self._table[residue])


@dataclass(frozen=True, eq=False)
class ResidueAttack(MaskedAttack):
    """The sum of a masked sum modulo a small number, while the target moves by one grid step."""

    words: ClassVar[str] = "the sum modulo a small number, while the target moves by a single grid step"
    most: ClassVar[int] = 4_000
    modulo: int = 2

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """One step apart: neighbours, as they are within Δ."""
        low, high = np.zeros(self.protocol.dimension), np.zeros(self.protocol.dimension)
        high[0] = self.protocol.step
        return low, high

    def batch(self, within: bool, seed: int) -> FloatArray:
        record = self.run(within, seed)
        total = opened(self.uncovered(record, component(self.protocol, record, self.target)), self.protocol.q)
        first = total.reshape(self.size, -1)[:, 0] - self.steps[0][0]
        return np.where(first % self.modulo == 1, 1.0, -1.0)
