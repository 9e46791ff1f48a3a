"""Checks of numbers: every refusal names the value and reads alike."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from netdp.errors import InvalidValue

from .arrays import BoolArray, FloatArray


def whole(name: str, value: Any, least: int = 0, hint: str = "") -> int:
    """`value` as a whole number ≥ `least`, or a refusal that names it.

    >>> whole("n", 3, 1)
    3
    >>> whole("n", 2.5, 1)
    Traceback (most recent call last):
    netdp.errors.InvalidValue: n must be a whole number ≥ 1, got 2.5
    """
    number = value if type(value) is int else None  # else: an isinstance that is a hundred times as slow
    if number is None and not isinstance(value, bool | np.bool_ | np.ndarray) and isinstance(value, SupportsIndex):
        number = operator.index(value)
    if number is None or number < least:
        raise InvalidValue(f"{name} must be a whole number ≥ {least}, got {value!r}" + (f"; {hint}" if hint else ""))
    return number


def count(name: str, value: Any) -> int:
    """`value` as a whole number ≥ 1, or a refusal."""
    return whole(name, value, 1)


def finite(name: str, value: Any, what: str = "a finite number") -> float:
    """`value` as a finite number, or a refusal; text, nan and numbers beyond every double are none."""
    if not isinstance(value, bool | np.bool_ | np.ndarray) and isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:  # a whole number or a fraction of hundreds of digits
            number = math.inf
        if math.isfinite(number):
            return number
    raise InvalidValue(f"{name} must be {what}, got {value!r}")


def positive(name: str, value: Any) -> float:
    """`value` as a finite number > 0, or a refusal."""
    number = finite(name, value, "a finite number > 0")
    if not number > 0:
        raise InvalidValue(f"{name} must be a finite number > 0, got {value!r}")
    return number


def scale(name: str, value: Any) -> float:
    """`value` as a size (of noise, of values, of a step) from 1e-60 to 1e60: squares of ratios of two sizes stay doubles.

    >>> scale("sigma", 1e200)
    Traceback (most recent call last):
    netdp.errors.InvalidValue: sigma must lie between 1e-60 and 1e60, got 1e+200
    """
    number = positive(name, value)
    if not 1e-60 <= number <= 1e60:
        raise InvalidValue(f"{name} must lie between 1e-60 and 1e60, got {value!r}")
    return number


def non_negative(name: str, value: Any) -> float:
    """`value` as a finite number ≥ 0, or a refusal."""
    number = finite(name, value, "a finite number ≥ 0 (0 switches it off)")
    if not number >= 0:
        raise InvalidValue(f"{name} must be a finite number ≥ 0 (0 switches it off), got {value!r}")
    return number


def between(
    name: str, value: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False
) -> float:
    """`value` as a number in [low, high], without an end that is open; or a refusal.

    >>> between("p", 0.0, 0.0, 1.0, open_low=True)
    Traceback (most recent call last):
    netdp.errors.InvalidValue: p must lie in (0, 1], got 0.0
    """
    interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high or math.isinf(high) else ']'}"
    number = finite(name, value, f"a number in {interval}") if not (math.isinf(high) and value == high) else high
    if (number > low or (number == low and not open_low)) and (number < high or (number == high and not open_high)):
        return number
    raise InvalidValue(f"{name} must lie in {interval}, got {value!r}")


def probability(name: str, value: Any) -> float:
    """`value` strictly between 0 and 1, or a refusal."""
    return between(name, value, 0.0, 1.0, open_low=True, open_high=True)


def finite_variance(name: str, multiple: float, sigma: float) -> None:
    """Refuse a noise of variance `multiple`·σ² that a double cannot hold."""
    if not math.isfinite(multiple * sigma * sigma):
        raise InvalidValue(
            f"{name} = {multiple:g} times sigma² = {sigma:g}² is a variance beyond any double; lower {name} or sigma"
        )


def switch(name: str, value: Any) -> bool:
    """`value` as True or False, or a refusal: "no" would otherwise count as yes."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidValue(f"{name} must be True or False, got {value!r}")
    return bool(value)


def share_or_switch(name: str, value: Any, default: float) -> float:
    """A number ≥ 0; True stands for `default`, False for 0."""
    if isinstance(value, bool | np.bool_):
        return default if value else 0.0
    if isinstance(value, str) or not isinstance(value, numbers.Real):
        raise InvalidValue(f"{name} must be True, False or a number ≥ 0, got {value!r}")
    return non_negative(name, value)


def as_floats(value: ArrayLike, name: str) -> FloatArray:
    """The value as an array of doubles, or a refusal that names it."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InvalidValue(f"{name} must be a real number or an array of them, got {value!r}") from None


def first(array: FloatArray, bad: BoolArray) -> float:
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
    return count("times", times)
