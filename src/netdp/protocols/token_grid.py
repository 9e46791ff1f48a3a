"""Tokens that hold whole numbers: what walks and public paths have in common on a grid.

A value is its number of grid steps, ⌊x/g + ½⌋; the noise of a visit is a discrete Gaussian whose variance, in squared steps,
is σ²/g² rounded up; closing noise has `closing` times that, rounded up again. A token only adds, so nothing is rounded after
that. All contributions of all tokens together stay below 2⁶², so that sums are 64-bit numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT
from netdp.numerics.checks import count

from .grid import grid_distance, grid_step, power_below, squared_steps

FINEST = 2**40
"""The largest variance, in squared steps, that the exact sampler draws."""
ROOM = 2**62
"""All contributions together stay below this: a token is a 64-bit number."""
LARGEST_NOISE = 2**33
"""No draw of the sampler is larger."""


class TokenGrid:
    """Fields `grid` and `dimension` of a protocol whose tokens add contributions with noise at every visit."""

    sigma: float
    sensitivity: float
    grid: float | None
    dimension: int

    @property
    def visits(self) -> int:
        """How many contributions the tokens collect, all together."""
        raise NotImplementedError

    def _settle_grid(self) -> None:
        """Check and fix `grid` and `dimension`."""
        object.__setattr__(self, "grid", grid_step(self.grid))
        object.__setattr__(self, "dimension", count("dimension", self.dimension))
        if self.grid is None:
            return
        law = getattr(self, "law", "gaussian")
        if law != "gaussian":
            raise InvalidValue(
                f"law={law!r} with grid={self.grid!r}: on a grid noise is discrete Gaussian; leave one out"
            )
        step = self.grid
        if self.sigma < step:
            raise InvalidValue(
                f"sigma={self.sigma:g} is less than one step of the grid {step:g}; give a grid of at most "
                f"{power_below(self.sigma)!r}"
            )
        if max(self.variance, self.closing_variance) > FINEST or self.sensitivity / step > 2**40:
            raise InvalidValue(
                f"the grid {step:g} is too fine for sigma={self.sigma:g} and sensitivity={self.sensitivity:g}: a noise, the "
                "closing one included, may have a deviation of 2²⁰ steps, Δ 2⁴⁰ steps; give a coarser grid"
            )
        if self.most_steps < 2 * self.sensitivity / step:
            raise InvalidValue(
                f"{self.visits:,} contributions of {self.sensitivity / step:.1e} grid steps do not fit into a 64-bit token; "
                "give a coarser grid"
            )

    @property
    def step(self) -> float:
        """The step of the grid; refuses where there is none."""
        if self.grid is None:
            raise InvalidValue(
                f"this {type(self).__name__} is in real numbers and has no grid; state grid=, a power of two"
            )
        return self.grid

    @property
    def variance(self) -> int:
        """The variance of the noise of one visit in squared grid steps, rounded up."""
        return squared_steps(Fraction(self.sigma) ** 2, self.step)

    @property
    def closing_variance(self) -> int:
        """The variance of the closing noise in squared grid steps, rounded up; 0 if there is none."""
        return math.ceil(Fraction(getattr(self, "closing", 0.0)) * self.variance)

    @property
    def most_steps(self) -> int:
        """The largest number of grid steps that a value may have, so that tokens stay 64-bit numbers."""
        return ROOM // (self.visits + 2) - 2 * LARGEST_NOISE

    @property
    def distance(self) -> float:
        """How far apart, in grid steps and L2 norm, two values of one contribution can be after rounding."""
        return grid_distance(self.sensitivity, self.step, self.dimension)

    @property
    def in_real_numbers(self) -> Any:
        """The same protocol measured in grid steps, with Gaussian noise of no larger variance, on no grid."""
        this: Any = self
        below = math.sqrt(self.variance) * (1 - 4 * UNIT)
        return this.replace(sigma=below, sensitivity=float(self.distance), grid=None, dimension=1)

    def _gridded(self) -> str:
        return "" if self.grid is None else f"; whole numbers on a grid of {self.grid:g}"
