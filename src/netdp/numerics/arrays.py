"""The types of arrays, the one unit of rounding, arrays that cannot change, numbers for JSON.

Numbers with as many digits as are meant, rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]

IntArray: TypeAlias = NDArray[np.int64]

Int32Array: TypeAlias = NDArray[np.int32]

BoolArray: TypeAlias = NDArray[np.bool_]

Progress: TypeAlias = Callable[[int, int], None]
"""Told (done, total) now and then by work that takes a while."""

UNIT = 2.0**-53
"""Unit roundoff of a double: a rounded sum, product or quotient is wrong by at most this, relatively."""

TINIEST = 5e-324
"""What a positive δ becomes when it is too small for a double: rounded up, never down to zero."""


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


def rounded_up(value: float, digits: int = 4) -> float:
    """`value` > 0 with so many digits, never smaller.

    >>> rounded_up(0.26556804789080657), rounded_up(4.0), rounded_up(123456.7)
    (0.2656, 4.0, 123500.0)
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 4) -> float:
    """`value` > 0 with so many digits, never larger.

    >>> rounded_down(1.4629999)
    1.462
    """
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> float:
    if not (math.isfinite(value) and value > 0):
        return value
    # The shortest decimal that reads back as this double: decimals and doubles are in the same order, so the result is on the
    # safe side, and what has few digits already stays as it is.
    exact = Decimal(repr(float(value)))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding))
