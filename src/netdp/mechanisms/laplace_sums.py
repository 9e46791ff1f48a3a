"""How private a sum with shares of Laplace noise is: K of the h shares that make one discrete Laplace noise hide each value.

The noise is A − B with A, B ~ NB(s, e^{−r}), s = K/h. What protects is moved by at most D whole steps in L1 norm, in any of d
coordinates.

    s ≥ 1     one whole discrete Laplace noise and perhaps more: at most ε = r·D at δ = 0, whatever d is
    s ≠ 1     one number: the profile of this very law, computed, with bounds on all rounding
    s < 1     vectors: at most the loss of D steps spread evenly over all coordinates at δ = 0, or of d numbers each moved by D

Below one whole noise privacy falls off fast, and the finer the grid the faster (the density of the noise grows without bound at
zero as s falls to ½): nothing is scaled from s = 1. Proofs: docs/proofs/masked.md#laplace-shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from netdp.errors import InvalidValue
from netdp.mechanisms.laplace import DiscreteLaplace
from netdp.mechanisms.laplace_shares import LARGEST_RATE, LEAST_RATE
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.checks import count
from netdp.privacy.profile import PerCurve, ProfileCurve

LONGEST = 1 << 20
"""A law of more steps is not tabulated: a sum with more shares than needed then counts as one with just enough, and of one with
fewer nothing is proved."""

_SCALES = 60  # of 1/r steps: what lies further has a mass below e^−58
_BURN_IN = 25  # of 1/r steps: after so many a ratio is known to the last digits, whatever it began with
_STEP_ERROR = 32 * UNIT  # relative, of one step of the recurrence: fewer than 20 roundings
_BLOCK = 1024
_MOST_NUMBERS = 16  # coordinates of a vector whose losses are composed


class LaplaceRelease(NamedTuple):
    """A sum with shares of Laplace noise.

    rate        r of the discrete Laplace noise that `parts` shares make
    parts       h
    shares      K, how many honest parties add one
    distance    D: how far, in whole steps and L1 norm, what is protected moves the sum
    dimension   how many coordinates it has
    """

    rate: Fraction
    parts: int
    shares: int
    distance: int
    dimension: int = 1

    @property
    def pure(self) -> float:
        """r·D, rounded up: ε at δ = 0 where there are shares enough."""
        return above(self.rate * self.distance)

    def checked(self) -> LaplaceRelease:
        """Itself, with whole numbers that are whole and a rate that is drawn."""
        if not isinstance(self.rate, Fraction) or not LEAST_RATE <= self.rate <= LARGEST_RATE:
            raise InvalidValue(f"the rate of a release is a Fraction from 2⁻⁴⁰ to {LARGEST_RATE}, got {self.rate!r}")
        if type(self.distance) is not int or self.distance < 0:
            raise InvalidValue(f"Laplace noise hides moves of whole grid steps, got distance={self.distance!r}")
        for name in ("parts", "shares", "dimension"):
            count(f"{name} of a release", getattr(self, name))
        return self


def above(value: Fraction) -> float:
    """The least double that is no smaller, or the next one."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def laplace_curve(release: LaplaceRelease, times: int = 1) -> ProfileCurve:
    """What a sum with shares of Laplace noise tells about one who is in it; several with the same shift, composed.

    >>> whole = LaplaceRelease(Fraction(1, 1024), parts=11, shares=11, distance=1024)
    >>> float(laplace_curve(whole).epsilon(0.0)), round(float(laplace_curve(whole._replace(shares=16)).epsilon(1e-6)), 3)
    (1.0, 0.953)
    >>> [round(float(laplace_curve(whole._replace(shares=K)).epsilon(1e-6)), 2) for K in (10, 8)]
    [1.17, 1.68]
    """
    release, times = release.checked(), count("times", times)
    return _curve(release).self_compose(times)


@lru_cache(maxsize=256)
def _curve(release: LaplaceRelease) -> ProfileCurve:
    if release.distance == 0:
        return ProfileCurve([0.0], [0.0])
    law = None if release.shares == release.parts else _law(release)
    if release.shares >= release.parts:
        if law is None or release.dimension > 1:
            whole = DiscreteLaplace(release.rate)
            return _tabulated(partial(_whole_delta, whole, release.distance), release.pure)
        return _tabulated(law.delta, release.pure)
    if law is None:
        return ProfileCurve([0.0], [1.0])
    if release.dimension == 1:
        return _tabulated(law.delta, law.most)
    return _of_vectors(release, law)


def _whole_delta(whole: DiscreteLaplace, distance: int, epsilon: FloatArray) -> FloatArray:
    return whole.shift_delta(distance, epsilon)


def _tabulated(formula: Callable[[FloatArray], FloatArray], end: float) -> ProfileCurve:
    """The curve of a formula ε → δ that is 0 from `end` on; closest points where δ is small."""
    gaps = np.unique(np.concatenate([end * np.geomspace(1e-9, 1.0, 512), np.linspace(0.0, end, 513)]))
    points = np.unique(np.maximum(end - gaps, 0.0))
    values = np.minimum.accumulate(formula(points))
    values[-1] = 0.0
    return ProfileCurve(points, values, PerCurve((formula,)))


def _of_vectors(release: LaplaceRelease, law: SumLaw) -> ProfileCurve:
    """Fewer shares than a whole noise, in several coordinates: two bounds, the smaller at every ε.

    δ = 0: log f(0)/f(k) is concave in k, so the loss of k_1 + … + k_d ≤ D steps is largest where they are as equal as can be.
    δ > 0: each coordinate moves by at most D, and a longer move of one number tells more, at every ε.
    """
    numbers = min(release.dimension, release.distance)
    least, more = divmod(release.distance, numbers)
    cap = above(Fraction(numbers - more) * Fraction(law.loss_of(least)) + more * Fraction(law.loss_of(least + 1)))
    if release.dimension > _MOST_NUMBERS:
        return ProfileCurve([0.0, cap], [1.0, 0.0]) if cap > 0 else ProfileCurve([0.0], [0.0])
    single = _tabulated(law.delta, law.most)
    together = single.self_compose(release.dimension)
    points = np.append(together.epsilons[together.epsilons < cap], cap)
    return ProfileCurve(points, np.append(together.deltas[: len(points) - 1], 0.0))


# ── the law of the noise ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class SumLaw:
    """The profile of one number with noise A − B, A, B ~ NB(s, e^{−r}), moved by `distance` steps.

    log_above, log_below   of the probability of 0, 1, 2, … steps, bounds from both sides
    losses                 log(f(x)/f(x − D)), falling; `within` and `without`: Σ f(x) and Σ f(x − D) over the first of these x
    tail, tail_loss        what is left out at the far end: its mass, and the largest loss there
    most                   no loss is larger
    """

    log_above: FloatArray
    log_below: FloatArray
    losses: FloatArray
    within: FloatArray
    without: FloatArray
    tail: float
    tail_loss: float
    most: float

    def loss_of(self, steps: int) -> float:
        """log f(0)/f(steps), rounded up: for fewer shares than a whole noise the largest loss of a move by so many steps."""
        if steps == 0:
            return 0.0
        return float(self.log_above[0] - self.log_below[steps]) * (1 + 8 * UNIT) + 8 * UNIT

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """δ at each ε: all x whose loss is larger count; a few too many are harmless, by less than the margin."""
        eps = np.asarray(epsilon, dtype=np.float64)
        margin = 1e-11 * (1 + eps)
        many = np.searchsorted(-self.losses, -(eps - margin), side="left")
        inside, outside = self.within[many], self.without[many]
        with np.errstate(over="ignore"):
            found = inside * (1 + 4 * margin) - np.exp(np.minimum(eps, 700.0)) * outside * (1 - 1e-11)
        found = np.maximum(found, 0.0) + np.where(eps < self.tail_loss, self.tail, 0.0)
        return np.where(eps >= self.most, 0.0, np.minimum(found, 1.0))


@lru_cache(maxsize=16)
def _tables(rate: Fraction, parts: int, shares: int, steps: int) -> tuple[FloatArray, FloatArray] | None:
    """Bounds from both sides on log f(0), …, log f(steps), for s = shares/parts; None if that takes too long.

    θ_x = 1 − f(x)/f(x − 1) obeys a recurrence all of whose terms are positive, from the three-term recurrence of the coefficients
    of ((1 − pz)(1 − p/z))^{−s}. It contracts from large x to small ones, so both ends of an interval are followed.
    """
    r = float(rate)
    start = steps + math.ceil(_BURN_IN / r) + 16
    if start > LONGEST or shares > 2 * parts:
        return None
    c = 2 * math.sinh(r / 2) ** 2  # cosh(r) − 1
    p = math.exp(-r)
    # more shares than one noise: the ratio falls to p; fewer: it rises to p
    low, high = (0.0, (1 - p) * (1 + 8 * UNIT) + UNIT) if shares > parts else ((1 - p) * (1 - 8 * UNIT) - UNIT, 1.0)
    low = max(low, 0.0)
    lows, highs = np.empty(steps), np.empty(steps)
    down, up = 1 - _STEP_ERROR, 1 + _STEP_ERROR
    for x in range(start, 0, -1):
        before, after = ((x - 1) * parts + shares) / parts, ((x + 1) * parts - shares) / parts
        fixed = 2 * x * c
        low, high = fixed + after * low, fixed + after * high
        low, high = low / (before + low) * down, high / (before + high) * up
        if x <= steps:
            lows[x - 1], highs[x - 1] = low, high
    if highs.max() > 1 - 1e-9:  # a share of less than a billionth of a noise
        return None
    above_, below_ = _running_sum(np.log1p(-lows)), _running_sum(np.log1p(-highs))
    error = (_BLOCK + steps / _BLOCK + 16) * UNIT
    above_ = np.append(0.0, above_ * (1 - error))
    below_ = np.append(0.0, below_ * (1 + error))
    # the sum of all probabilities is 1; beyond the table at most a geometric tail with the last ratio, or with p
    ratio = max(1 - lows[-1] * (1 - 8 * UNIT), p * (1 + 4 * UNIT)) if shares > parts else p * (1 + 4 * UNIT)
    rest = math.exp(above_[-1]) * ratio / (1 - ratio) * (1 + 16 * UNIT)
    most = 1 + 2 * (math.fsum(np.exp(above_[1:])) * (1 + 8 * UNIT) + rest)
    least = 1 + 2 * math.fsum(np.exp(below_[1:])) * (1 - 8 * UNIT)
    slack = 8 * UNIT * (1 + np.abs(above_))
    return above_ - math.log(least) + slack + 16 * UNIT, below_ - math.log(most) - 8 * UNIT * (
        1 + np.abs(below_)
    ) - 16 * UNIT


@lru_cache(maxsize=8)
def _sum_law(rate: Fraction, parts: int, shares: int, distance: int) -> SumLaw | None:
    r = float(rate)
    reach = math.ceil(_SCALES / r) + distance
    tables = _tables(rate, parts, shares, reach + distance)
    if tables is None:
        return None
    high, low = tables
    x = np.arange(-reach, distance // 2 + 1)
    one, other = high[np.abs(x)], low[np.abs(x - distance)]
    losses = one - other
    order = np.argsort(-losses, kind="stable")
    losses = losses[order]
    mass = _running_sum(np.exp(one[order])) * (1 + 1e-11)
    moved = _running_sum(np.exp(other[order])) * (1 - 1e-11)
    p = math.exp(-r) * (1 + 4 * UNIT)
    ratio = max(p, math.exp(high[reach] - low[reach - 1])) if shares > parts else p
    tail = math.exp(high[reach]) * ratio / (1 - ratio) * (1 + 1e-9) + 1e-300
    pure = above(rate * distance)
    if shares >= parts:
        most, tail_loss = pure, pure
    else:
        most = float(high[0] - low[distance]) * (1 + 8 * UNIT) + 8 * UNIT
        tail_loss = float(high[reach] - low[reach + distance])
    return SumLaw(
        high, low, losses, np.append(0.0, mass), np.append(0.0, moved), tail, tail_loss, most
    )  # fmt: skip


def _law(release: LaplaceRelease) -> SumLaw | None:
    return _sum_law(release.rate, release.parts, release.shares, release.distance)


def _running_sum(values: FloatArray) -> FloatArray:
    """Sums from the left in blocks: each is rounded some thousand times, not some million times."""
    padded = np.zeros(-(-len(values) // _BLOCK) * _BLOCK)
    padded[: len(values)] = values
    inner = np.cumsum(padded.reshape(-1, _BLOCK), axis=1)
    before = np.concatenate([[0.0], np.cumsum(inner[:-1, -1])])
    return np.asarray((inner + before[:, None]).ravel()[: len(values)])
