"""The least noise, in a few digits, that meets a target: what a study states.

`netdp.calibrate` finds σ within a part in a thousand. A study is read and signed by people, so it states σ in four digits, and
of these the least whose certified loss keeps the promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from netdp.errors import Unsupported
from netdp.numerics.arrays import rounded_up

DIGITS = 4
"""Of σ in a study."""


def least_noise(meets: Callable[[float], bool], guess: float) -> float:
    """The least σ of four digits for which `meets` holds, where it holds from some σ on; sought from a guess.

    >>> least_noise(lambda sigma: sigma >= 1.23456, guess=5.0)
    1.235
    """
    high = rounded_up(guess, DIGITS)
    factor = 1.02
    if meets(high):
        low = _next(high / factor)
        while meets(low):
            high, factor = low, factor**2
            low = _next(low / factor)
    else:
        low = high
        for _ in range(40):
            high = _next(high * factor)
            if meets(high):
                break
            low, factor = high, min(factor**2, 1e3)
        else:
            raise Unsupported("no noise meets this target: somebody sees a value without any; allow fewer colluders")
    while (middle := _next((low + high) / 2)) not in (low, high):
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def least_gamma(meets: Callable[[float], bool]) -> float:
    """The least γ of four decimals, below 1, for which `meets` holds.

    >>> least_gamma(lambda gamma: gamma >= 0.12345)
    0.1235
    """
    low, high = 9, 9999  # in units of 10⁻⁴: below 2⁻¹¹ answers are not drawn with exactly the stated chance
    if not meets(high / 10_000):
        raise Unsupported(
            "no useful histogram meets this target: even answers that are random in 9,999 of 10,000 cases lose more; allow a "
            "larger epsilon, fewer steps, colluders or attempts, or use masked-sum"
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle / 10_000) else (middle, high)
    return high / 10_000


def power_of_two(value: float) -> float:
    """The largest power of two that is no larger.

    >>> power_of_two(0.3), power_of_two(1.0)
    (0.25, 1.0)
    """
    return math.ldexp(0.5, math.frexp(value)[1])


def _next(value: float) -> float:
    return rounded_up(value, DIGITS)
