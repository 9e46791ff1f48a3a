"""Checks of numbers: every refusal names the value and reads alike."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from netdp.errors import InvalidValue

from .arrays import BoolArray, FloatArray


def count(name: str, value: Any) -> int:
    """`value` as a whole number ≥ 1, or a refusal."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise InvalidValue(f"{name} must be a whole number ≥ 1, got {value!r}")
    return int(value)


def positive(name: str, value: Any) -> float:
    """`value` as a finite number > 0, or a refusal."""
    number = _real(name, value)
    if not (math.isfinite(number) and number > 0):
        raise InvalidValue(f"{name} must be a finite number > 0, got {value!r}")
    return number


def non_negative(name: str, value: Any) -> float:
    """`value` as a finite number ≥ 0, or a refusal."""
    number = _real(name, value)
    if not (math.isfinite(number) and number >= 0):
        raise InvalidValue(f"{name} must be a finite number ≥ 0 (0 switches it off), got {value!r}")
    return number


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


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidValue(f"{name} must be a number, got {value!r}")
    return float(value)


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
    if isinstance(times, bool) or not isinstance(times, int | np.integer) or times < 1:
        raise InvalidValue(f"a curve composes with itself a whole number of times ≥ 1, got {times!r}")
    return int(times)
