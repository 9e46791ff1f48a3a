"""Gaussian noise for numbers or vectors with an L2 bound, as an (ε₀, δ₀) randomizer: on real numbers, and on a grid.

Every value lies within Δ/2 of a centre in L2 norm, so one report is as telling as N(0, 1) against N(μ, 1) with μ = Δ/σ; any
single point (ε₀, δ₀) of that profile is a true statement, and `epsilon0` says which one is stated. `Gaussian` draws in floating
point, for simulation only. `GridGaussian` is the same randomizer in whole numbers, with the profile of what is really drawn,
and what `collect` and the peers use. Margins: docs/proofs/mechanisms.md#gaussian-noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.mechanisms.base import (
    InBall,
    InBallOnGrid,
    even_steps,
    finite,
    generator,
    local_loss,
    positive,
    step_of,
    whole,
)
from netdp.mechanisms.discrete_gaussian import SUMMED_UP_TO, rounded_delta, shift_delta
from netdp.mechanisms.fine_gaussian import FINEST_VARIANCE, FineGaussian
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.gaussian import gaussian_epsilon, gaussian_mu
from netdp.privacy.profile import ProfileCurve


@dataclass(frozen=True)
class Gaussian(InBall):
    """Noise N(0, σ²) on each coordinate.

    Parameters
    ----------
    sigma : standard deviation.
    sensitivity : Δ, the largest L2 distance of two values. Values must lie within Δ/2 of the centre.
    dimension : how many numbers a value has.
    centre : the same in every coordinate.
    epsilon0 : where on the curve the pair (ε₀, δ₀) is stated.

    >>> mechanism = Gaussian.calibrated(epsilon0=1.0, delta0=1e-6)
    >>> round(mechanism.sigma, 4), mechanism.delta0 <= 1e-6, mechanism.replace(epsilon0=2.0).delta0 < 1e-15
    (4.2247, True, True)
    """

    order: ClassVar[int] = 2
    sigma: float
    sensitivity: float = 1.0
    dimension: int = 1
    centre: float = 0.0
    epsilon0: float = 1.0

    def __post_init__(self) -> None:
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        object.__setattr__(self, "dimension", whole("dimension", self.dimension, least=1))
        object.__setattr__(self, "centre", finite("centre", self.centre))
        object.__setattr__(self, "epsilon0", local_loss(self.epsilon0))

    @classmethod
    def calibrated(
        cls, epsilon0: float, delta0: float, sensitivity: float = 1.0, dimension: int = 1, centre: float = 0.0
    ) -> Self:
        """The least noise that is (ε₀, δ₀)-DP, by the exact trade-off."""
        loss, width = local_loss(epsilon0), positive("sensitivity", sensitivity)
        failure = finite("delta0", delta0)
        if not 0 < failure < 1:
            raise InvalidValue(f"delta0 must lie in (0, 1), got {delta0!r}; Gaussian noise is never pure DP")
        # built once to learn how much wider than Δ the ball is allowed to be by rounding
        reach = cls(1.0, width, dimension, centre, loss)._width
        return cls(reach / float(gaussian_mu(loss, failure)) * (1 + 8 * UNIT), width, dimension, centre, loss)

    def replace(self, *, epsilon0: float) -> Self:
        """The same noise, stated at another point of its curve."""
        return type(self)(self.sigma, self.sensitivity, self.dimension, self.centre, epsilon0)

    @property
    def _width(self) -> float:
        return self.sensitivity + 2 * self._rounding

    @property
    def mu(self) -> float:
        """μ = Δ/σ."""
        return self._width / self.sigma * (1 + 4 * UNIT)

    @property
    def curve(self) -> GaussianCurve:
        """The exact profile."""
        return GaussianCurve(self.mu)

    def delta0_at(self, epsilon0: float) -> float:
        """The exact δ₀ at ε₀, rounded up."""
        asked = finite("epsilon0", epsilon0)
        if asked < 0:
            raise InvalidValue(f"epsilon0 must be a finite number ≥ 0, got {epsilon0!r}")
        return float(self.curve.delta(asked))

    @property
    def delta0(self) -> float:
        """δ₀ at the stated ε₀."""
        return self.delta0_at(self.epsilon0)

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[Any]:
        """One report per user: the value with noise."""
        data = self.check(values)
        return np.asarray(data + self.sigma * generator(rng).standard_normal(data.shape))

    def squared_error(self, reports: int) -> float:
        """σ²·dimension/n."""
        return self.sigma**2 * self.dimension / whole("reports", reports, least=1)


STEPS = 2**24

_FINE = 2**25  # a deviation from which on grids cost nothing that could be seen

_INFLATED = 1e-6  # more noise than on real numbers, relatively, so that the grid's own profile lies below theirs

_LEAST_DELTA = 1e-30  # down to where the curve is given


@dataclass(frozen=True)
class GridGaussian(InBallOnGrid, Gaussian):
    """Noise of deviation σ on each coordinate, in whole steps of Δ/`steps`; reports are whole numbers.

    >>> from netdp.mechanisms.discrete_gaussian import words_from
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
            candidate = replace(cls.of(ideal), sigma=ideal.sigma * (1 + inflated))
            if candidate.delta0 <= delta0:
                return candidate
        raise InvalidValue(
            f"no grid of up to 2³⁰ steps is fine enough for ε₀ = {epsilon0:g}, δ₀ = {delta0:g}; state GridGaussian(sigma, …) "
            "with more noise, and read delta0"
        )

    def replace(self, *, epsilon0: float) -> Self:
        """The same noise, stated at another point of its curve."""
        return replace(self, epsilon0=epsilon0)

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
        delta = rounded_delta(self.variance, float(self.steps), self.dimension, eps)
        if self.dimension == 1 and self.variance <= SUMMED_UP_TO:
            delta = np.minimum(delta, shift_delta(self.variance, self.steps, eps))
        return delta

    def delta0_at(self, epsilon0: float) -> float:
        """The bound on δ₀ at this very ε₀, where the curve may read a chord."""
        return min(super().delta0_at(epsilon0), float(self.delta_at(epsilon0)[0]))

    @cached_property
    def curve(self) -> ProfileCurve:  # type: ignore[override]  # on real numbers it has a name; here it is a table
        """The profile at some thousand points, the stated ε₀ among them, and chords between them."""
        last = float(gaussian_epsilon(self.mu, _LEAST_DELTA))  # not ε₀: a large one would thin out the points
        epsilons = np.unique(np.concatenate([np.linspace(0.0, last, 4097), [self.epsilon0]]))
        return ProfileCurve(epsilons, np.minimum.accumulate(self.delta_at(epsilons)))

    @property
    def noise(self) -> FineGaussian:
        """The law of the noise, in steps."""
        return FineGaussian(self.variance)

    @property
    def furthest(self) -> int:
        """No honest report holds a number further from zero, in steps, but for one in 10³⁰: the ball and 12 deviations."""
        return 12 * (math.isqrt(self.variance) + 1) + self.steps // 2
