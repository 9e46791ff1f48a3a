"""The noise of a token protocol for a target (ε, δ): the smallest σ whose certified loss meets it.

The certified ε falls with σ; σ is searched on a logarithmic scale and the result is always on the safe side: it is one whose
certified loss was computed and found to be at most ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from netdp.accounting.token.walk import descent_bounds, sum_bounds
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.checks import count
from netdp.planning.table import calibrations, checked_target
from netdp.privacy import gaussian_mu
from netdp.protocols import WalkDescent, WalkSum

P = TypeVar("P", bound=WalkSum | WalkDescent)

_TOLERANCE = 1e-3  # relative, on σ


def calibrate_walk(
    protocol: P,
    epsilon: float,
    delta: float,
    observers: int = 1,
    *,
    adjacency: str = "replace",
    tolerance: float = _TOLERANCE,
) -> P:
    """The same protocol with the smallest σ (within `tolerance`, 0.1 %) whose certified loss is at most ε at δ.

    observers : how many users collude. On the complete graph any so many learn the same.

    >>> p = calibrate_walk(WalkDescent(2000, 20_000, sigma=1.0, step=0.05, clip=0.4), epsilon=1.0, delta=1e-6)
    >>> round(p.sigma, 2)                     # the papers' calibration: 10.98
    0.59
    """
    if not (math.isfinite(epsilon) and epsilon > 0 and 0 < delta < 1):
        raise InvalidValue(f"the target needs a finite epsilon > 0 and 0 < delta < 1, got {epsilon!r} and {delta!r}")
    walk: Any = protocol
    bounds = sum_bounds if isinstance(protocol, WalkSum) else descent_bounds

    def loss(which: int) -> Callable[[float], float]:
        def at(sigma: float) -> float:
            found = bounds(walk.replace(sigma=sigma), observers, adjacency)
            return float(found[min(which, len(found) - 1)]().epsilon(delta))

        return at

    # The least of several bounds meets the target where one of them does: search with the best one, then look again.
    guess = 1.5 * _guess(walk, epsilon, delta)
    ways = [loss(which) for which in range(len(bounds(walk.replace(sigma=guess), observers, adjacency)))]
    there = [way(guess) for way in ways]
    best = there.index(min(there))
    sigma = smallest(ways[best], epsilon, guess, tolerance)
    for which, way in enumerate(ways):
        if which != best and way(sigma * (1 - tolerance)) <= epsilon:
            sigma = min(sigma, smallest(way, epsilon, sigma, tolerance))
    calibrated: P = walk.replace(sigma=sigma)
    return calibrated


@calibrations.register
def _walk(
    protocol: WalkSum | WalkDescent, epsilon: float, delta: float, *, colluders: int = 1, adjacency: str = "replace"
) -> WalkSum | WalkDescent:
    return calibrate_walk(protocol, *checked_target(epsilon, delta), count("colluders", colluders), adjacency=adjacency)


def smallest(loss: Callable[[float], float], aim: float, guess: float, tolerance: float = _TOLERANCE) -> float:
    """The smallest σ with loss(σ) ≤ aim, within `tolerance`, for a falling loss."""
    low = high = guess
    reached = loss(guess)
    above = reached <= aim
    at_low = at_high = reached
    for _ in range(60):
        if above:
            high, at_high = low, at_low
            low /= 1.6
            at_low = loss(low)
            if at_low > aim:
                break
        else:
            low, at_low = high, at_high
            high *= 1.6
            at_high = loss(high)
            if at_high <= aim:
                break
    else:
        raise Unsupported(f"no noise level near {guess:g} meets ε = {aim:g}; allow a larger ε or δ")
    while high / low > 1 + tolerance:
        # between log σ and log ε the curve is nearly straight; stay off the ends so that both of them move
        if math.isfinite(at_low) and at_low > 0 and at_high > 0:
            share = math.log(at_low / aim) / math.log(at_low / at_high)
        else:
            share = 0.5
        share = min(max(share + 0.02, 0.05), 0.95)
        middle = low * (high / low) ** share
        found = loss(middle)
        if found <= aim:
            high, at_high = middle, found
            closer = middle * (1 - tolerance / 2)
            if closer > low:  # the answer is often just below
                found = loss(closer)
                low, at_low, high, at_high = (
                    (low, at_low, closer, found) if found <= aim else (closer, found, high, at_high)
                )
        else:
            low, at_low = middle, found
    return high


def _guess(protocol: WalkSum | WalkDescent, epsilon: float, delta: float) -> float:
    """σ at which a curator's sum, with as much noise in total, would meet the target."""
    steps = protocol.steps * (protocol.tokens if isinstance(protocol, WalkSum) else 1)
    return math.sqrt(steps) / protocol.n * protocol.sensitivity / float(gaussian_mu(epsilon, delta))
