"""Laplace noise for numbers from an interval, or vectors with an L1 bound: on real numbers, on whole numbers, and on a grid.

Every value lies within Δ/2 of a centre in L1 norm. `Laplace` adds noise of scale Δ/ε₀ to real numbers; its draws are in floating
point, for simulation only. `DiscreteLaplace` is the law ∝ e^{−r|x|} on the whole numbers, drawn exactly. `GridLaplace` is the
randomizer in whole numbers, D steps to Δ and r = ε₀/D: exactly as private as it states, and what `collect` and the peers use.
Profiles and draws: docs/proofs/mechanisms.md#laplace-noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.mechanisms.base import (
    InBall,
    InBallOnGrid,
    Pure,
    even_steps,
    finite,
    generator,
    local_loss,
    plain,
    positive,
    step_of,
    whole,
)
from netdp.mechanisms.coins import flips
from netdp.mechanisms.discrete_gaussian import Coin, RejectionSampler, Words
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.privacy.profile import ProfileCurve


@dataclass(frozen=True)
class Laplace(Pure, InBall):
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

    order: ClassVar[int] = 1
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
        start, end = finite("low", low), finite("high", high)
        if not start < end:
            raise InvalidValue(f"an interval needs low < high, got [{low!r}, {high!r}]")
        return cls(end - start, epsilon0, centre=start + (end - start) / 2)

    @property
    def scale(self) -> float:
        """b = Δ/ε₀."""
        return (self.sensitivity + 2 * self._rounding) / self.epsilon0 * (1 + 8 * UNIT)

    def profile(self, epsilon: npt.ArrayLike) -> FloatArray:
        """The exact δ(ε) = 1 − e^{(ε−ε₀)/2}, without rounding to the safe side."""
        asked = _losses(epsilon)
        gap = np.minimum(asked - self.epsilon0, 0.0)
        return np.asarray(-np.expm1(gap / 2))

    @property
    def _points(self) -> FloatArray:
        """Where a curve states the profile: from 0 to ε₀, closest at ε₀."""
        near = self.epsilon0 * np.geomspace(1e-9, 1.0, 1024)
        gaps = np.unique(np.concatenate([near, np.linspace(0.0, self.epsilon0, 1025)]))
        return np.unique(np.maximum(self.epsilon0 - gaps, 0.0))

    @cached_property
    def curve(self) -> ProfileCurve:
        """The exact profile at some thousand points, chords between them."""
        epsilons = self._points
        deltas = np.minimum(self.profile(epsilons) * (1 + 8 * UNIT) + 4 * UNIT * self.epsilon0, 1.0)
        deltas[-1] = 0.0
        return ProfileCurve(epsilons, deltas)

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[Any]:
        """One report per user: the value with noise."""
        data = self.check(values)
        return np.asarray(data + generator(rng).laplace(scale=self.scale, size=data.shape))

    def squared_error(self, reports: int) -> float:
        """2b²·dimension/n."""
        return 2 * self.scale**2 * self.dimension / whole("reports", reports, least=1)


def _losses(epsilon: npt.ArrayLike) -> npt.NDArray[Any]:
    """The ε at which a profile is asked for, or a refusal."""
    asked = plain(epsilon, "epsilon")
    if asked.dtype.kind not in "fiu" or not (asked >= 0).all():
        raise InvalidValue(f"epsilon must be a number ≥ 0, or a list of them, got {epsilon!r}")
    return asked


LEAST_RATE = Fraction(1, 2**52)
"""No smaller rate is drawn, so that a draw fits into 62 bits unless the words are broken."""

LARGEST_RATE = 50

_LONGEST = 1024  # laps of at least half a unit of the exponent each: more have a chance below e^−512


@dataclass(frozen=True)
class DiscreteLaplace(RejectionSampler):
    """The law ∝ e^{−r|x|} on the whole numbers, r = `rate` a fraction from 2⁻⁵² to 50.

    >>> from netdp.mechanisms.discrete_gaussian import words_from
    >>> noise = DiscreteLaplace(Fraction(1, 3)).sample((2, 50_000), words_from(np.random.default_rng(0)))
    >>> noise.shape, noise.dtype, round(float(noise.var())), round(DiscreteLaplace(Fraction(1, 3)).variance, 2)
    ((2, 50000), dtype('int64'), 18, 17.83)
    """

    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", exact_rate(self.rate))
        if not LEAST_RATE <= self.rate <= LARGEST_RATE:
            raise InvalidValue(
                f"rate must lie between 2⁻⁵² and {LARGEST_RATE}, got {float(self.rate):.3g}; use "
                + ("a coarser grid" if self.rate < LEAST_RATE else "a finer grid, or more noise")
            )

    @property
    def variance(self) -> float:
        """2e^{−r}/(1 − e^{−r})² = 1/(2·sinh²(r/2))."""
        return 0.5 / math.sinh(float(self.rate) / 2) ** 2

    @property
    def lap(self) -> int:
        """t: the largest power of two with t·r ≤ 1, or 1."""
        whole = self.rate.denominator // self.rate.numerator
        return 1 << max(whole.bit_length() - 1, 0)

    def _kept(self, tries: int, words: Words) -> IntArray:
        a, b, t = self.rate.numerator, self.rate.denominator, self.lap
        drawn = words(tries)
        minus = (drawn >> np.uint64(63)).astype(bool)
        start = (drawn & np.uint64(t - 1)).astype(np.int64)
        if t > 1:
            kept = flips(start * np.float64(self.rate), lambda i: (int(start[i]) * a, b), words)
            start, minus = start[kept], minus[kept]
        size = start + t * Coin(t * a, b).heads_in_a_row(len(start), words, _LONGEST)
        alive = ~(minus & (size == 0))  # zero has one sign only
        return np.asarray(np.where(minus, -size, size)[alive], dtype=np.int64)

    def shift_delta(self, shift: int, epsilon: npt.ArrayLike) -> FloatArray:
        """δ(ε) of numbers `shift` steps apart, or of vectors at that L1 distance; exact, rounded up.

        >>> DiscreteLaplace(Fraction(1)).shift_delta(1, [0.0, 0.5, 1.0]).round(4).tolist()      # tanh(1/2), as a coin
        [0.4621, 0.2876, 0.0]
        """
        eps = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        rate = float(self.rate)
        best = np.floor((shift - 1) / 2 - np.minimum(eps, rate * shift) / (2 * rate))
        least = np.full(eps.shape, np.inf)
        for m in (best - 1, best, best + 1, best + 2):
            m = np.clip(m, 0, max(shift - 1, 0))
            left = np.exp(-rate * (m + 1)) + np.exp(np.minimum(eps - rate * (shift - m), 700.0))
            least = np.minimum(least, left)
        # exponents are wrong by a few units of at most ε₀ + 50, which is what the last terms cover
        rounding = 8 * UNIT * (2 + rate * shift)
        delta = np.maximum(1 - least / (1 + math.exp(-rate)) * (1 - rounding), 0.0)
        loss = float(self.rate * shift)
        if Fraction(loss) < self.rate * shift:
            loss = math.nextafter(loss, math.inf)
        above = np.nextafter(delta, 2.0)  # near 1 the subtraction itself is what rounds
        return np.asarray(np.where(eps >= loss, 0.0, np.minimum(above, 1.0)))


def exact_rate(rate: Any) -> Fraction:
    """The rate as a fraction, or a refusal."""
    if isinstance(rate, bool) or not isinstance(rate, Fraction | int):
        raise InvalidValue(f"rate must be a Fraction, such as Fraction(1, 3), got {rate!r}: the draw is exact")
    return Fraction(rate)


STEPS = 2**20


@dataclass(frozen=True)
class GridLaplace(InBallOnGrid, Laplace):
    """Laplace noise of scale Δ/ε₀ on each coordinate, in whole steps of Δ/`steps`; reports are whole numbers.

    >>> from netdp.mechanisms.discrete_gaussian import words_from
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

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """The law of the noise, in steps."""
        return DiscreteLaplace(Fraction(self.epsilon0) / self.steps)

    def profile(self, epsilon: npt.ArrayLike) -> FloatArray:
        """The exact δ(ε), rounded up."""
        asked = _losses(epsilon)
        return self.noise.shift_delta(self.steps, asked).reshape(asked.shape)

    @cached_property
    def curve(self) -> ProfileCurve:
        """The exact profile at some thousand points, chords between them."""
        return ProfileCurve(self._points, np.minimum.accumulate(self.profile(self._points)))

    @cached_property
    def furthest(self) -> int:
        """No honest report holds a number further from zero, in steps, but for one in e⁶⁴: the ball and 64 scales of noise."""
        return self.steps // 2 + math.ceil(64 / self.noise.rate)
