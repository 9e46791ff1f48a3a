"""Roots of increasing functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .arrays import FloatArray

_ITERATIONS = 100


def increasing_root(
    function: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    low: FloatArray,
    high: FloatArray,
    start: FloatArray,
) -> FloatArray:
    """Roots of increasing functions, one per entry: Newton's method, kept inside a bracket by bisection.

    `function(x)` gives value and derivative. Stops when every Newton step is below 1e-8 of the scale:
    convergence is quadratic, so what is left then is at rounding level. The result is a good approximation
    and nothing more; callers that need a safe side check it themselves.

    >>> x = increasing_root(lambda x: (x**2 - 2, 2 * x), np.array([0.0]), np.array([2.0]), np.array([2.0]))
    >>> bool(abs(x[0] - 2**0.5) < 1e-15)
    True
    """
    x = np.clip(start, low, high)
    low, high = low.copy(), high.copy()
    settled = np.zeros(x.shape, dtype=bool)
    for _ in range(_ITERATIONS):
        value, slope = function(x)
        np.copyto(low, x, where=value < 0)
        np.copyto(high, x, where=value >= 0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = value / slope
            guess = x - step
        scale = 1e-8 * (1 + np.abs(x))
        inside = (guess >= low) & (guess <= high)  # False for nan
        guess = np.where(inside, guess, 0.5 * (low + high))
        done = (inside & (np.abs(step) <= scale)) | (high - low <= 1e-15 * (1 + np.abs(x)))
        # an entry that has settled stays: its value must not depend on what else was asked
        x = np.where(settled, x, guess)
        settled |= done
        if settled.all():
            break
    return x
