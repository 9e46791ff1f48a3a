"""Laplace noise on a grid: the randomizer `Laplace` in whole numbers, exactly as private as it states.

A value becomes a vector of whole numbers in the L1 ball of radius D/2 steps around the centre (`grid`), and every coordinate
gets discrete Laplace noise of rate r = ε₀/D, an exact fraction (`discrete_laplace`): two values are at most D steps apart,
so a report is ε₀-DP, exactly, if the words are uniform and independent. Rounding to the grid costs no privacy, and at most half a
step, Δ/2D, of accuracy in every number (of vectors at the rim of the ball two steps); the noise is ε₀⁻¹·D steps wide. Proofs:
docs/guarantees.md#finite-precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.privacy import ProfileCurve

from .base import generator, plain, whole
from .discrete_gaussian import Words, words_from
from .discrete_laplace import LEAST_RATE, DiscreteLaplace
from .grid import even_steps, on_the_grid, step_of
from .laplace import Laplace

STEPS = 2**20


@dataclass(frozen=True)
class GridLaplace(Laplace):
    """Laplace noise of scale Δ/ε₀ on each coordinate, in whole steps of Δ/`steps`; reports are whole numbers.

    >>> mechanism = GridLaplace.interval(0.0, 10.0, epsilon0=2.0)
    >>> reports = mechanism.report([3.0] * 40_000, words_from(np.random.default_rng(0)))
    >>> reports.shape, reports.dtype, mechanism.estimate(reports).round(1).tolist(), round(mechanism.squared_error(100), 9)
    ((40000, 1), dtype('int64'), [3.0], 0.5)
    """

    steps: int = STEPS

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "steps", even_steps(self.steps))
        step_of(self.sensitivity, self.steps)
        if Fraction(self.epsilon0) / self.steps < LEAST_RATE:
            way_out = "take fewer steps" if Fraction(self.epsilon0) / 2 >= LEAST_RATE else "take a larger ε₀"
            raise InvalidValue(
                f"epsilon0={self.epsilon0:g} with steps={self.steps} needs noise of more than 2⁵² steps; {way_out} "
                "(for simulation only, Laplace draws in floating point)"
            )

    @classmethod
    def of(cls, ideal: Laplace) -> Self:
        """The same randomizer in whole numbers: the same ε₀, domain and, but for rounding, the same error."""
        steps = STEPS
        while steps > 2 and Fraction(ideal.epsilon0) / steps < LEAST_RATE:
            steps //= 2
        return cls(ideal.sensitivity, ideal.epsilon0, ideal.dimension, ideal.centre, steps)

    @property
    def step(self) -> float:
        """g = Δ/steps: what a step of the grid is worth."""
        return self.sensitivity / self.steps

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """The law of the noise, in steps."""
        return DiscreteLaplace(Fraction(self.epsilon0) / self.steps)

    def profile(self, epsilon: npt.ArrayLike) -> FloatArray:
        """The exact δ(ε), rounded up."""
        asked = plain(epsilon, "epsilon")
        if asked.dtype.kind not in "fiu" or not (asked >= 0).all():
            raise InvalidValue(f"epsilon must be a number ≥ 0, or a list of them, got {epsilon!r}")
        return self.noise.shift_delta(self.steps, asked).reshape(asked.shape)

    @cached_property
    def curve(self) -> ProfileCurve:
        """The exact profile at some thousand points, chords between them."""
        near = self.epsilon0 * np.geomspace(1e-9, 1.0, 1024)
        gaps = np.unique(np.concatenate([near, np.linspace(0.0, self.epsilon0, 1025)]))
        epsilons = np.unique(np.maximum(self.epsilon0 - gaps, 0.0))
        return ProfileCurve(epsilons, np.minimum.accumulate(self.profile(epsilons)))

    def quantised(self, values: npt.ArrayLike) -> IntArray:
        """The values in whole steps from the centre, (users, dimension)."""
        return on_the_grid(self.check(values), self.centre, self.step, self.steps // 2, order=1)

    @property
    def width(self) -> int:
        """How many whole numbers a report is."""
        return self.dimension

    def report(self, values: npt.ArrayLike, words: Words) -> IntArray:
        """One report per user, (users, dimension) whole numbers, drawn exactly: what leaves a party."""
        steps = self.quantised(values)
        return steps + self.noise.sample(steps.shape, words)

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """One report per user, from the words of a NumPy generator: for simulation, as these are predictable."""
        return self.report(values, words_from(generator(rng)))

    @cached_property
    def furthest(self) -> int:
        """No honest report holds a number further from zero, in steps, but for one in e⁶⁴: the ball and 64 scales of noise."""
        return self.steps // 2 + math.ceil(64 / self.noise.rate)

    def readable(self, reports: IntArray) -> npt.NDArray[np.bool_]:
        """Which of these rows of whole numbers can be reports: none of their numbers is beyond `furthest`."""
        fits = reports.shape[-1] == self.width
        return np.asarray(((reports <= self.furthest) & (reports >= -self.furthest)).all(axis=-1) & fits)

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """The mean of the reports, back in the units of the values."""
        return np.asarray(super().estimate(reports) * self.step + self.centre)

    def squared_error(self, reports: int) -> float:
        """The variance of the noise over n, and half a step of rounding in every number; vectors at the rim have up to two."""
        noise = self.noise.variance / whole("reports", reports, least=1)
        return (noise + 0.25) * self.step**2 * self.dimension
