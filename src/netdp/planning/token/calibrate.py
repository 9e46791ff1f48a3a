"""The noise of a token protocol for a target (ε, δ): the smallest σ whose certified loss meets it.

The certified ε falls with σ; σ is searched on a logarithmic scale and the result is always on the safe side: it is one whose
certified loss was computed and found to be at most ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from netdp.accounting import account
from netdp.accounting.token.walk import descent_bounds, sum_bounds
from netdp.accounting.token.weights import Chances, worst_chances
from netdp.errors import InvalidValue
from netdp.numerics.checks import count
from netdp.planning.smallest import TOLERANCE, smallest
from netdp.planning.table import calibrations, checked_target
from netdp.privacy import gaussian_mu
from netdp.protocols import WalkDescent, WalkSum

from .watch import Watch

P = TypeVar("P", bound=WalkSum | WalkDescent)


def calibrate_walk(
    protocol: P,
    epsilon: float,
    delta: float,
    colluders: int = 1,
    *,
    adjacency: str = "replace",
    tolerance: float = TOLERANCE,
    rounding: Callable[[float], float] = float,
    watch: Watch | None = None,
) -> P:
    """The same protocol with the smallest σ (within `tolerance`, 0.1 %) whose certified loss is at most ε at δ.

    colluders : how many users collude. On the complete graph any so many learn the same; with weights the heaviest count.
    watch     : is told of every loss that is computed.

    >>> walk = WalkDescent(2000, 20_000, sigma=1.0, step=0.05, clip=0.4, sender="hidden")
    >>> p = calibrate_walk(walk, epsilon=1.0, delta=1e-6)
    >>> round(p.sigma, 2)                     # the papers' calibration: 10.98
    0.59
    """
    if isinstance(protocol, WalkDescent) and protocol.graph is not None:
        raise InvalidValue("calibrate_walk is for the complete graph; netdp.calibrate handles walks on others, too")
    if not (math.isfinite(epsilon) and epsilon > 0 and 0 < delta < 1):
        raise InvalidValue(f"the target needs a finite epsilon > 0 and 0 < delta < 1, got {epsilon!r} and {delta!r}")
    walk: Any = protocol
    seen = Watch() if watch is None else watch
    if walk_grid(protocol):

        def on_the_grid(sigma: float) -> float:
            found = account(walk.replace(sigma=sigma), colluders=colluders, adjacency=adjacency).worst_epsilon(delta)
            seen.one()
            return found

        return walk.replace(sigma=smallest(on_the_grid, epsilon, 1.5 * _guess(walk, epsilon, delta), tolerance))  # type: ignore[no-any-return]
    bounds = sum_bounds if isinstance(protocol, WalkSum) else descent_bounds

    def least_noise(who: int | Chances, guess: float) -> float:
        def loss(which: int) -> Callable[[float], float]:
            def at(sigma: float) -> float:
                found = bounds(walk.replace(sigma=sigma), who, adjacency)
                one = float(found[min(which, len(found) - 1)]().epsilon(delta))
                seen.one()
                return one

            return at

        # The least of several bounds meets the target where one of them does: search with the one that is usually best, then
        # look at the others there. Losses fall with σ, so what misses the target there does so at every smaller σ.
        sigma = rounding(smallest(loss(0), epsilon, guess, tolerance))
        for which in range(1, len(bounds(walk.replace(sigma=sigma), who, adjacency))):
            if loss(which)(sigma) <= epsilon:
                sigma = min(sigma, rounding(smallest(loss(which), epsilon, sigma, tolerance)))
        return sigma

    sigma = 1.5 * _guess(walk, epsilon, delta)
    found: list[float] = []
    for who in reversed(worst_chances(walk, colluders)):  # from the heaviest; the lightest may need no noise at all
        if found:
            at = walk.replace(sigma=max(found))
            if any(float(bound().epsilon(delta)) <= epsilon for bound in bounds(at, who, adjacency)):
                continue
        found.append(sigma := least_noise(who, sigma))
    # a table of all users keeps fewer points of every curve
    room = 1.0 if walk.weights is None else 1 + tolerance
    calibrated: P = walk.replace(sigma=max(found) if room == 1 else rounding(max(found) * room))
    return calibrated


def walk_grid(protocol: WalkSum | WalkDescent) -> bool:
    """Whether tokens hold whole numbers."""
    return isinstance(protocol, WalkSum) and protocol.grid is not None


@calibrations.register
def _walk(
    protocol: WalkSum | WalkDescent,
    epsilon: float,
    delta: float,
    *,
    colluders: int = 1,
    adjacency: str = "replace",
    observers: Any = None,
) -> WalkSum | WalkDescent:
    if isinstance(protocol, WalkDescent) and protocol.graph is not None:
        from .paths import noise_on_graph

        return noise_on_graph(protocol, epsilon, delta, observers, colluders, adjacency=adjacency)
    if observers is not None:
        raise InvalidValue(
            "on the complete graph any users learn alike: leave observers out, or state how many collude"
        )
    return calibrate_walk(protocol, *checked_target(epsilon, delta), count("colluders", colluders), adjacency=adjacency)


def _guess(protocol: WalkSum | WalkDescent, epsilon: float, delta: float) -> float:
    """σ at which a curator's sum, with as much noise in total, would meet the target."""
    steps = protocol.steps * protocol.tokens
    return math.sqrt(steps) / int(protocol.n) * protocol.sensitivity / float(gaussian_mu(epsilon, delta))
