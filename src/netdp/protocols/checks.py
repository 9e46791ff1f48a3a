"""Numbers that protocols take, checked: a refusal names the value."""

from __future__ import annotations

import math
import numbers
from typing import Any

from netdp.errors import InvalidValue


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


def finite_variance(name: str, multiple: float, sigma: float) -> None:
    """Refuse a noise of variance `multiple`·σ² that a double cannot hold."""
    if not math.isfinite(multiple * sigma * sigma):
        raise InvalidValue(
            f"{name} = {multiple:g} times sigma² = {sigma:g}² is a variance beyond any double; lower {name} or sigma"
        )


def switch(name: str, value: Any) -> bool:
    """`value` as True or False, or a refusal: "no" would otherwise count as yes."""
    if not isinstance(value, bool):
        raise InvalidValue(f"{name} must be True or False, got {value!r}")
    return value


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidValue(f"{name} must be a number, got {value!r}")
    return float(value)
