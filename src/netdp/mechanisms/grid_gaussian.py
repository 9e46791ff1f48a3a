"""Gaussian noise on a grid: the randomizer `Gaussian` in whole numbers, with the exact profile of what is drawn.

A value becomes a vector of whole numbers in the L2 ball of radius D/2 steps around the centre (`grid`), and every coordinate
gets discrete Gaussian noise of parameter v (`discrete_gaussian`; the sampler is that of `fine_gaussian`). Two values are at most D
steps apart, so the profile of a report is bounded by `rounded_delta(v, D, d, ε)`, and for single numbers and v ≤ 2³² it is
`shift_delta(v, D, ε)`, exactly. On fine grids both are the profile of N(0, 1) against N(D/√v, 1) but for terms of order
(√d + 30)²/24v in ε: on the grids that `of` chooses, below 10⁻¹⁰.

v is (σ/g)² rounded up, g = Δ/D the step; both are compared as fractions, so no rounding makes it smaller. The curve states
the profile at some thousand points and reads chords between them, which lie above it. See docs/guarantees.md#finite-precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.privacy import ProfileCurve, gaussian_epsilon

from .base import generator, whole
from .discrete_gaussian import SUMMED_UP_TO, Words, rounded_delta, shift_delta, words_from
from .fine_gaussian import FINEST_VARIANCE, FineGaussian
from .gaussian import Gaussian
from .grid import even_steps, on_the_grid, step_of

STEPS = 2**24
_FINE = 2**25  # a deviation from which on grids cost nothing that could be seen
_INFLATED = 1e-6  # more noise than on real numbers, relatively, so that the grid's own profile lies below theirs
_LEAST_DELTA = 1e-30  # down to where the curve is given


@dataclass(frozen=True)
class GridGaussian(Gaussian):
    """Noise of deviation σ on each coordinate, in whole steps of Δ/`steps`; reports are whole numbers.

    >>> mechanism = GridGaussian.calibrated(epsilon0=1.0, delta0=1e-6)
    >>> round(mechanism.sigma, 4), mechanism.delta0 <= 1e-6
    (4.2247, True)
    >>> reports = mechanism.report([0.25] * 40_000, words_from(np.random.default_rng(0)))
    >>> reports.dtype, bool(abs(mechanism.estimate(reports)[0] - 0.25) < 0.1)
    (dtype('int64'), True)
    """

    steps: int = STEPS

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "steps", even_steps(self.steps))
        step_of(self.sensitivity, self.steps)
        if self.variance > FINEST_VARIANCE:
            way_out = f"take fewer steps than {self.steps}" if self.steps > 2 else "take less noise"
            raise InvalidValue(
                f"sigma={self.sigma:g} is {self.sigma / self.step:.3g} steps of the grid, more than 2⁵⁸; {way_out}"
            )

    @classmethod
    def of(cls, ideal: Gaussian) -> Self:
        """The same randomizer in whole numbers: noise 10⁻⁶ larger, which covers what the grid adds to the profile."""
        steps, scales = STEPS, ideal.sigma / ideal.sensitivity
        while steps < 2**30 and scales * steps < _FINE:
            steps *= 2
        while steps > 2 and scales * steps > math.isqrt(FINEST_VARIANCE) / 2:
            steps //= 2
        sigma = ideal.sigma * (1 + _INFLATED)
        return cls(sigma, ideal.sensitivity, ideal.dimension, ideal.centre, ideal.epsilon0, steps)

    @classmethod
    def calibrated(
        cls, epsilon0: float, delta0: float, sensitivity: float = 1.0, dimension: int = 1, centre: float = 0.0
    ) -> Self:
        """The least noise that is (ε₀, δ₀)-DP, by the trade-off on real numbers and at most 10⁻⁶ of it more."""
        ideal = Gaussian.calibrated(epsilon0, delta0, sensitivity, dimension, centre)
        for inflated in (0.0, 1e-9, 1e-8, 1e-7, 1e-6):
            found = replace(cls.of(ideal), sigma=ideal.sigma * (1 + inflated))
            if found.delta0 <= delta0:
                return found
        raise InvalidValue(
            f"no grid of up to 2³⁰ steps is fine enough for ε₀ = {epsilon0:g}, δ₀ = {delta0:g}; state GridGaussian(sigma, …) "
            "with more noise, and read delta0"
        )

    def replace(self, *, epsilon0: float) -> Self:
        """The same noise, stated at another point of its curve."""
        return replace(self, epsilon0=epsilon0)

    @property
    def step(self) -> float:
        """g = Δ/steps: what a step of the grid is worth."""
        return self.sensitivity / self.steps

    @cached_property
    def variance(self) -> int:
        """v: the parameter of the noise, in steps²; at least (σ/g)²."""
        return math.ceil((Fraction(self.sigma) * self.steps / Fraction(self.sensitivity)) ** 2)

    @property
    def mu(self) -> float:
        """D/√v: the profile on real numbers that the grid's own comes close to, from above."""
        return self.steps / math.sqrt(self.variance) * (1 + 4 * UNIT)

    def delta_at(self, epsilon: npt.ArrayLike) -> FloatArray:
        """A bound on δ at every ε: exact for single numbers and coarse grids."""
        eps = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        found = rounded_delta(self.variance, float(self.steps), self.dimension, eps)
        if self.dimension == 1 and self.variance <= SUMMED_UP_TO:
            found = np.minimum(found, shift_delta(self.variance, self.steps, eps))
        return found

    def delta0_at(self, epsilon0: float) -> float:
        """The bound on δ₀ at this very ε₀, where the curve may read a chord."""
        return min(super().delta0_at(epsilon0), float(self.delta_at(epsilon0)[0]))

    @cached_property
    def curve(self) -> ProfileCurve:  # type: ignore[override]  # on real numbers it has a name; here it is a table
        """The profile at some thousand points, the stated ε₀ among them, and chords between them."""
        last = float(gaussian_epsilon(self.mu, _LEAST_DELTA))  # not ε₀: a large one would thin out the points
        epsilons = np.unique(np.concatenate([np.linspace(0.0, last, 4097), [self.epsilon0]]))
        return ProfileCurve(epsilons, np.minimum.accumulate(self.delta_at(epsilons)))

    def quantised(self, values: npt.ArrayLike) -> IntArray:
        """The values in whole steps from the centre, (users, dimension)."""
        return on_the_grid(self.check(values), self.centre, self.step, self.steps // 2, order=2)

    @property
    def width(self) -> int:
        """How many whole numbers a report is."""
        return self.dimension

    def report(self, values: npt.ArrayLike, words: Words) -> IntArray:
        """One report per user, (users, dimension) whole numbers, drawn exactly: what leaves a party."""
        steps = self.quantised(values)
        return steps + FineGaussian(self.variance).sample(steps.shape, words)

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """One report per user, from the words of a NumPy generator: for simulation, as these are predictable."""
        return self.report(values, words_from(generator(rng)))

    def readable(self, reports: IntArray) -> npt.NDArray[np.bool_]:
        """Which of these rows of whole numbers can be reports: the ball and 12 deviations, which one in 10³⁰ exceeds."""
        most = 12 * (math.isqrt(self.variance) + 1) + self.steps // 2
        return np.asarray(((reports <= most) & (reports >= -most)).all(axis=-1) & (reports.shape[-1] == self.width))

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """The mean of the reports, back in the units of the values."""
        return np.asarray(super().estimate(reports) * self.step + self.centre)

    def squared_error(self, reports: int) -> float:
        """The variance of the noise over n, and half a step of rounding in every number; vectors at the rim have up to two."""
        return (self.variance / whole("reports", reports, least=1) + 0.25) * self.step**2 * self.dimension
