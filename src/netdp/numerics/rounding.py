"""Numbers with as many digits as are meant, rounded to the safe side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


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
