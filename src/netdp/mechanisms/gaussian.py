"""Gaussian noise for numbers or vectors with an L2 bound, as an (ε₀, δ₀) randomizer.

Every value lies within Δ/2 of a centre in L2 norm, so two values of a user differ by at most Δ, and one report is exactly as
telling as N(0, 1) against N(μ, 1) with μ = Δ/σ: the noise looks the same in every direction, so only the length of the
difference matters. The profile is `GaussianCurve(μ)`; any single point (ε₀, δ₀) of it is a true statement, and `epsilon0`
says which one is stated.

**The draw is for simulation only.** All this is true of noise on real numbers. `randomize` adds doubles: which sums can
come out depends on the value, and whoever sees all digits of a report can tell values apart (see `base`). `GridGaussian` is the
same randomizer in whole numbers, and what `collect` and the peers use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy import GaussianCurve, gaussian_mu

from .base import finite, generator, local_loss, positive, pulled_in, rows, whole, within


@dataclass(frozen=True)
class Gaussian:
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
    def _rounding(self) -> float:
        """How far outside the ball a value may be by rounding alone; the curve covers it."""
        return 1e-12 * (self.sensitivity / 2 + self.dimension * abs(self.centre))

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

    def check(self, values: npt.ArrayLike) -> FloatArray:
        """The values as (users, dimension); none may be outside the ball."""
        radius = self.sensitivity / 2
        return within(rows(values, self.dimension), self.centre, radius + self._rounding, radius, order=2)

    def clip(self, values: npt.ArrayLike) -> FloatArray:
        """Values outside are moved towards the centre, onto the surface of the ball."""
        return pulled_in(rows(values, self.dimension), self.centre, self.sensitivity / 2, order=2)

    def answer(self, values: npt.ArrayLike) -> FloatArray:
        """The mean of the values."""
        return np.asarray(self.check(values).mean(axis=0))

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[Any]:
        """One report per user: the value with noise."""
        data = self.check(values)
        return np.asarray(data + self.sigma * generator(rng).standard_normal(data.shape))

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """The mean of the reports."""
        return np.asarray(rows(reports, self.dimension, "reports").mean(axis=0))

    def squared_error(self, reports: int) -> float:
        """σ²·dimension/n."""
        return self.sigma**2 * self.dimension / whole("reports", reports, least=1)
