"""Many independent small events, each with its own privacy profile, composed numerically.

An `Event` is something that the observers see `times` times; what one occurrence reveals, given everything seen before, is
bounded in both directions by `profile`, δ as a function of ε. By adaptive composition of dominating pairs (proof in
`netdp.privacy._losses`) the whole view is bounded by the composition of all occurrences.

**Public facts.** If an occurrence has a public fact F (seen by the observers, of a law that does not depend on data) and
the profile given F = f is at most δ_f(ε), then E[δ_F(ε)] bounds the occurrence: the hockey-stick divergence of pairs (F, Y)
is the mean of those of Y given F.

**The grid.** Losses are put on a grid of equal steps. That adds at most min(step·|L|, step²/4) to the variance of one loss L;
the step is chosen so that all this is at most one per cent of the total variance (about as much of ε, or less), as long as
the grid stays below 2¹⁸ cells. Whatever the step, the result is a bound.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from netdp.numerics.arrays import FloatArray
from netdp.privacy import ProfileCurve
from netdp.privacy.profile import composed

Profile = Callable[[FloatArray], FloatArray]

_NEGLIGIBLE = 1e-19  # probability of losses beyond the grid, over all occurrences; counted as infinite loss
_SHARE = 0.01  # of the variance that the grid may add
_CELLS = 1 << 18
_KNOTS = 800
_FEW_KNOTS = 100
_PER_E = 200  # points of a profile per factor e of ε


@dataclass(frozen=True)
class Event:
    """`times` occurrences, each bounded by `profile` (nonincreasing, convex in e^ε, given at ε ≥ 0)."""

    profile: Profile
    times: int

    @functools.cached_property
    def reach(self) -> float:
        """An ε beyond which the profile no longer matters."""
        eps = np.geomspace(1e-9, 500.0, 500)
        # the profile falls, so the first such point is found among every 20th and then between two of these
        for stride in (20, 1):
            beyond = np.flatnonzero(np.asarray(self.profile(eps[::stride])) <= _NEGLIGIBLE / self.times)
            end = stride * int(beyond[0]) if beyond.size else len(eps) - 1
            eps = eps[max(0, end - stride) : end + 1]
        return float(eps[-1]) if beyond.size else 500.0

    @functools.cached_property
    def losses(self) -> tuple[FloatArray, FloatArray]:
        """Loss values ≥ 0 and their probabilities, roughly: for choices that do not affect soundness."""
        return self._losses(_KNOTS)

    def _losses(self, knots: int) -> tuple[FloatArray, FloatArray]:
        eps = np.concatenate([[0.0], np.geomspace(self.reach * 1e-7, self.reach, knots)])
        delta = self.profile(eps)
        slopes = np.append(np.diff(delta) / np.diff(np.expm1(eps)), 0.0)
        return eps[1:], np.exp(eps[1:]) * np.maximum(np.diff(slopes), 0.0)

    @property
    def variance(self) -> float:
        """The variance of the loss of one occurrence, about."""
        return _variance(*self.losses)

    @functools.cached_property
    def few_losses(self) -> tuple[FloatArray, FloatArray]:
        """`losses` from few points."""
        return self._losses(_FEW_KNOTS)

    @functools.cached_property
    def weight(self) -> float:
        """About the variance of all occurrences, from few points: good enough to choose between ways to cut a walk."""
        return self.times * _variance(*self.few_losses)

    def spread(self, step: float) -> float:
        """What a grid of this step adds to it, at most."""
        loss, mass = self.losses
        return float(np.sum(mass * (1 + np.exp(-loss)) * np.minimum(step * loss, step**2 / 4)))

    def repeated(self, times: int) -> Event:
        """The same, so many times more often."""
        return self if times == 1 else Event(self.profile, self.times * times)

    def curve(self, step: float) -> ProfileCurve:
        """The profile at points fine against the grid and against their own size; chords in between lie above it."""
        count = max(2, math.ceil(_PER_E * math.log(max(2.0, 2 * self.reach / step))))
        eps = np.concatenate([[0.0], np.geomspace(min(step / 2, self.reach / 2), self.reach, count)])
        delta = np.minimum(np.asarray(self.profile(eps)) * (1 + 1e-12), 1.0)
        return ProfileCurve(eps, np.minimum.accumulate(delta))


def _variance(loss: FloatArray, mass: FloatArray) -> float:
    return float(np.sum(mass * (1 + np.exp(-loss)) * loss**2))


def compose_events(events: Sequence[Event], extra: float = 0.0) -> ProfileCurve:
    """The profile of all occurrences of all events, `extra` added to every δ.

    >>> from netdp.privacy import gaussian_delta, gaussian_epsilon
    >>> small = Event(lambda eps: np.asarray(gaussian_delta(0.01, eps)), times=10_000)
    >>> ratio = float(compose_events([small]).epsilon(1e-6)) / float(gaussian_epsilon(1.0, 1e-6))
    >>> 1.0 <= ratio < 1.01
    True
    """
    events = [event for event in events if event.times > 0]
    if not events:
        return ProfileCurve([0.0], [min(extra, 1.0)])
    step = grid_step(events)
    curve = composed([(event.curve(step), event.times) for event in events], step)
    if not extra:
        return curve
    return ProfileCurve(curve.epsilons, np.minimum(curve.deltas + extra, 1.0))


def grid_step(events: Sequence[Event]) -> float:
    """The step for these events, see the top of this module."""
    aim = _SHARE * sum(event.times * event.variance for event in events)
    longest = max(event.reach for event in events)
    low, high = longest / _CELLS, longest
    if sum(event.times * event.spread(low) for event in events) >= aim:
        return low
    for _ in range(40):
        middle = math.sqrt(low * high)
        fits = sum(event.times * event.spread(middle) for event in events) <= aim
        low, high = (middle, high) if fits else (low, middle)
    return low


def least(curves: Sequence[ProfileCurve]) -> ProfileCurve:
    """Several bounds on the same profile: the least of them at each of their points, which is a bound again."""
    eps = np.unique(np.concatenate([curve.epsilons for curve in curves]))
    table = np.min([np.asarray(curve.delta(eps)) for curve in curves], axis=0)
    return ProfileCurve(eps, np.minimum.accumulate(table))
