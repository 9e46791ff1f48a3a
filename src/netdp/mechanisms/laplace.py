"""Laplace noise for numbers from an interval, or vectors with an L1 bound.

**Domain.** Two values of a user differ by at most Δ in L1 norm. A ball makes sure of it: every value lies within Δ/2 of a
centre. For a single number the ball is the interval [low, high], Δ = high − low.

**Privacy.** Noise of scale b = Δ/ε₀ in each coordinate. The exact profile is that of two numbers Δ apart,

    δ(ε) = 1 − e^{(ε−ε₀)/2}   for ε ≤ ε₀,  0 beyond.

One coordinate attains it. No pair of vectors exceeds it: move from one to the other in a straight line, at L1 speed b, and
let h(t) be the probability of an event S when the value is where time t ≤ ε₀ found it. Densities at times s and t differ by
a factor of at most e^{|s−t|}, on S and on its complement, so |h′| ≤ min(h, 1−h). Thus h(0) is at most what the solution of
h′ = −min(h, 1−h) gives from the same h(ε₀). A half-line under a shifted scalar Laplace variable is that solution. So every
event is at most as telling as a half-line is about scalars, at any ε.

δ is convex in e^ε; `curve` states it at many points and reads chords between them, which lie above it (by less than 10⁻⁴
of its value, down to δ = 10⁻⁸).

**The draw is for simulation only.** All this is true of noise on real numbers. `randomize` adds doubles: which sums can
come out depends on the value, and whoever sees all digits of a report can tell values apart (see `base`). `GridLaplace` is the
same randomizer in whole numbers, and what `collect` and the peers use.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy import ProfileCurve

from .base import finite, generator, local_loss, plain, positive, pulled_in, rows, whole, within


@dataclass(frozen=True)
class Laplace:
    """Laplace noise of scale Δ/ε₀ on each coordinate.

    Parameters
    ----------
    sensitivity : Δ, the largest L1 distance of two values. Values must lie within Δ/2 of the centre.
    epsilon0 : the local loss.
    dimension : how many numbers a value has.
    centre : the same in every coordinate.

    >>> mechanism = Laplace.interval(0.0, 10.0, epsilon0=2.0)
    >>> mechanism.scale.__round__(9), mechanism.squared_error(100).__round__(9)
    (5.0, 0.5)
    >>> mechanism.check([3.0, 12.0])
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: row 1 of values is 12, outside [0, 10]; clip(values) brings values inside, or state a wider
    range (and more noise)
    """

    sensitivity: float
    epsilon0: float
    dimension: int = 1
    centre: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", positive("sensitivity", self.sensitivity))
        object.__setattr__(self, "epsilon0", local_loss(self.epsilon0))
        object.__setattr__(self, "dimension", whole("dimension", self.dimension, least=1))
        object.__setattr__(self, "centre", finite("centre", self.centre))

    @classmethod
    def interval(cls, low: float, high: float, epsilon0: float) -> Self:
        """For numbers in [low, high]."""
        least, most = finite("low", low), finite("high", high)
        if not least < most:
            raise InvalidValue(f"an interval needs low < high, got [{low!r}, {high!r}]")
        return cls(most - least, epsilon0, centre=least + (most - least) / 2)

    @property
    def delta0(self) -> float:
        """0: the randomizer is pure."""
        return 0.0

    @property
    def _rounding(self) -> float:
        """How far outside the ball a value may be by rounding alone; the noise covers it."""
        return 1e-12 * (self.sensitivity / 2 + self.dimension * abs(self.centre))

    @property
    def scale(self) -> float:
        """b = Δ/ε₀."""
        return (self.sensitivity + 2 * self._rounding) / self.epsilon0 * (1 + 8 * UNIT)

    def profile(self, epsilon: npt.ArrayLike) -> FloatArray:
        """The exact δ(ε) = 1 − e^{(ε−ε₀)/2}, without rounding to the safe side."""
        asked = plain(epsilon, "epsilon")
        if asked.dtype.kind not in "fiu" or not (asked >= 0).all():
            raise InvalidValue(f"epsilon must be a number ≥ 0, or a list of them, got {epsilon!r}")
        gap = np.minimum(asked - self.epsilon0, 0.0)
        return np.asarray(-np.expm1(gap / 2))

    @cached_property
    def curve(self) -> ProfileCurve:
        """The exact profile at some thousand points, chords between them."""
        near = self.epsilon0 * np.geomspace(1e-9, 1.0, 1024)
        gaps = np.unique(np.concatenate([near, np.linspace(0.0, self.epsilon0, 1025)]))
        epsilons = np.unique(np.maximum(self.epsilon0 - gaps, 0.0))
        deltas = np.minimum(self.profile(epsilons) * (1 + 8 * UNIT) + 4 * UNIT * self.epsilon0, 1.0)
        deltas[-1] = 0.0
        return ProfileCurve(epsilons, deltas)

    def check(self, values: npt.ArrayLike) -> FloatArray:
        """The values as (users, dimension); none may be outside the ball."""
        radius = self.sensitivity / 2
        return within(rows(values, self.dimension), self.centre, radius + self._rounding, radius, order=1)

    def clip(self, values: npt.ArrayLike) -> FloatArray:
        """Values outside are moved towards the centre, onto the surface of the ball."""
        return pulled_in(rows(values, self.dimension), self.centre, self.sensitivity / 2, order=1)

    def answer(self, values: npt.ArrayLike) -> FloatArray:
        """The mean of the values."""
        return np.asarray(self.check(values).mean(axis=0))

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[Any]:
        """One report per user: the value with noise."""
        data = self.check(values)
        return np.asarray(data + generator(rng).laplace(scale=self.scale, size=data.shape))

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """The mean of the reports."""
        return np.asarray(rows(reports, self.dimension, "reports").mean(axis=0))

    def squared_error(self, reports: int) -> float:
        """2b²·dimension/n."""
        return 2 * self.scale**2 * self.dimension / whole("reports", reports, least=1)
