"""Numbers for people. A privacy loss is always rounded up."""

from __future__ import annotations

import math

from netdp.numerics.rounding import rounded_up


def readable(value: float, digits: int = 3) -> str:
    """`value` ≥ 0 rounded *up* to a few digits; "0" only if it is zero.

    >>> [readable(x) for x in (0.0, 1.2341, 0.05440, 1234.5, 2e-7, 2.0101e14, math.inf)]
    ['0', '1.24', '0.0544', '1235', '<0.0001', '2.02e+14', '∞']
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    if value < 1e-4:
        return "<0.0001"
    if value >= 1e6:
        return f"{rounded_up(value, digits):.{digits - 1}e}"
    places = max(0, digits - 1 - math.floor(math.log10(value)))
    # The shave keeps 0.0544 (stored as 0.05440000000000001) from becoming 0.0545; it is far below any margin we add.
    rounded = math.ceil(value * 10**places * (1 - 1e-13)) / 10**places
    return f"{rounded:.{places}f}"
