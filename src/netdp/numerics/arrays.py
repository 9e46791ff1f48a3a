"""Numerical tools shared by the room: arrays that cannot change, checks, rounding up, a root finder."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netdp.errors import InvalidValue

FloatArray: TypeAlias = NDArray[np.float64]

UNIT = 2.0**-53
"""Unit roundoff of a double."""

TINIEST = 5e-324
"""What a positive δ becomes when it is too small for a double: rounded up, never down to zero."""


def as_floats(value: ArrayLike, name: str) -> FloatArray:
    """The value as an array of doubles, or a refusal that names it."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InvalidValue(f"{name} must be a real number or an array of them, got {value!r}") from None


def first(array: FloatArray, bad: NDArray[np.bool_]) -> float:
    """The first offending entry, for the error message."""
    return float(array[bad].flat[0])


def check_losses(value: ArrayLike, name: str) -> FloatArray:
    """Numbers ≥ 0; +inf (a loss without bound) and nan (no target here: an observer) are allowed."""
    array = as_floats(value, name)
    bad = array < 0
    if bad.any():
        raise InvalidValue(f"{name} must be ≥ 0 (or nan where there is no target), got {first(array, bad)}")
    return array


def check_epsilon(value: ArrayLike) -> FloatArray:
    """ε ≥ 0, +inf allowed."""
    array = as_floats(value, "epsilon")
    bad = ~(array >= 0)
    if bad.any():
        raise InvalidValue(f"epsilon must be ≥ 0, got {first(array, bad)}")
    return array


def check_delta(value: ArrayLike) -> FloatArray:
    """δ in [0, 1]."""
    array = as_floats(value, "delta")
    bad = ~((array >= 0) & (array <= 1))
    if bad.any():
        raise InvalidValue(f"delta must lie in [0, 1], got {first(array, bad)}; use a small probability such as 1e-6")
    return array


def check_times(times: int) -> int:
    """A number of repetitions ≥ 1."""
    if isinstance(times, bool) or not isinstance(times, int | np.integer) or times < 1:
        raise InvalidValue(f"a curve composes with itself a whole number of times ≥ 1, got {times!r}")
    return int(times)


def frozen(array: FloatArray) -> FloatArray:
    """A private read-only copy."""
    copy = np.array(array, dtype=np.float64)
    copy.flags.writeable = False
    return copy


def sealed(value: object) -> object:
    """The same object; if it is an array, now read-only."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value


def scalar_or_array(array: FloatArray) -> FloatArray:
    """Zero-dimensional results become NumPy scalars, which behave like floats."""
    return array[()]


def round_up(array: FloatArray) -> FloatArray:
    """The next double above, so that one rounding error cannot make a loss smaller; 0, inf and nan stay."""
    return np.where(array == 0, array, np.nextafter(array, np.inf))


def jsonable(value: Any) -> Any:
    """Nested lists of plain numbers for JSON: nan becomes None and infinity becomes "inf".

    >>> jsonable(np.array([0.5, np.nan, np.inf]))
    [0.5, None, 'inf']
    """
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
    return value


def increasing_root(
    function: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    low: FloatArray,
    high: FloatArray,
    start: FloatArray,
    *,
    iterations: int = 100,
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
    for _ in range(iterations):
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
