"""The smallest noise that meets a target, where the loss falls with the noise and every loss takes long to compute."""

from __future__ import annotations

import math
from collections.abc import Callable

from netdp.errors import Unsupported

TOLERANCE = 1e-3
"""Relative, on σ."""

_FRUITLESS = 40  # steps that all end on one side of the target


def smallest(loss: Callable[[float], float], aim: float, guess: float, tolerance: float = TOLERANCE) -> float:
    """The smallest σ with loss(σ) ≤ aim, within `tolerance`, for a falling loss.

    log(loss) is nearly a straight line in log σ, of slope about −1. The line through the last two points is followed to the
    root; close to it a point just above and, unless the line has proved right, one `tolerance` below that, so that three to
    five losses usually do.
    """
    near = math.log1p(tolerance)
    below, above = -math.inf, math.inf  # log σ that misses the target, and that meets it
    place, slope, down = math.log(guess), -1.0, 0.95 * near
    before: tuple[float, float] | None = None
    safe = math.inf
    for turn in range(200):
        sigma = math.exp(place) if turn else guess
        found = loss(sigma)
        met = found <= aim
        if met:
            above, safe = place, sigma
        else:
            below = place
        if above - below <= near:
            return safe
        bracketed = math.isfinite(above - below)
        if not bracketed and turn == _FRUITLESS:
            break
        gap = math.log(found / aim) if math.isfinite(found) and found > 0 else None
        steady = False
        if gap is not None and before is not None:
            slope = (gap - before[1]) / (place - before[0])
            steady = -4.0 < slope < -0.25 and abs(place - before[0]) < 0.2
            slope = min(max(slope, -4.0), -0.25)
            if met and steady and gap / slope < 0.7 * near:  # the root is so close that another loss would tell nothing
                return safe
        stuck = gap is None or (before is not None and abs(gap) > abs(before[1]) / 2)
        root = place + (math.copysign(0.5, found - aim) if gap is None else min(max(gap / -slope, -1.5), 1.5))
        before = None if gap is None else (place, gap)
        if met and place - root < 2 * near:  # just above the root, or on a plateau
            place, down = place - down, 2 * down
        else:
            place, down = root + near / 3, 0.95 * near
        if bracketed:
            margin = min(0.4 * near, 0.25 * (above - below))
            place = min(max(place, below + margin), above - margin)
            if stuck and above - below > 4 * near:  # where the loss jumps lines lead nowhere
                place = 0.5 * (below + above)
    raise Unsupported(f"no noise level near {guess:g} meets ε = {aim:g}; allow a larger ε or δ")


__all__ = ["TOLERANCE", "smallest"]
