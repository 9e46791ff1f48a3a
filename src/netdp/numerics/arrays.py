"""The types of arrays, the one unit of rounding, arrays that cannot change, numbers for JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
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
