"""Small words that several parts of a report share: who, when, how much."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from netdp.privacy.wording import readable
from netdp.report.style import scientific

Facts = Mapping[str, Any]


def small(value: float) -> str:
    """A small number with a power of ten.

    >>> [small(x) for x in (1e-6, 2.5e-5, 0.001, 0.05)]
    ['10⁻⁶', '2.5·10⁻⁵', '0.001', '0.05']
    """
    return scientific(value, 3)


def loss(value: float, limit: float) -> str:
    """An ε rounded up, with as many digits as it takes not to look larger than a limit that it keeps.

    >>> loss(0.9448385, 0.944839), loss(0.9448385, 1.0), loss(2.0, 1.0), loss(math.inf, 1.0)
    ('0.944839', '0.945', '2.00', '∞')
    """
    digits = 3
    while digits < 12 and value <= limit < _read(readable(value, digits)):
        digits += 1
    return readable(value, digits)


def _read(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # ∞, or less than a ten-thousandth
        return 0.0


def who(said: Facts, size: int) -> str:
    """Any so many of those who take part, in words."""
    return str(said["who"].get(str(size), f"any {size} parties together"))


def guessed(said: Facts) -> str:
    """What somebody guesses who attacks."""
    return "whether a record is there" if said["unit"] == "record" else "which of two sets of data a party has"


def when(moment: str) -> str:
    """A moment for people.

    >>> when("2026-11-18T03:55:36Z")
    '2026-11-18, 03:55 UTC'
    """
    return f"{moment[:10]}, {moment[11:16]} UTC"


def capital(sentence: str) -> str:
    """The same with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


def figure(value: float) -> str:
    """Three digits or so, without powers of ten where there need be none.

    >>> [figure(x) for x in (0.012345, 1.0, 2031.4, 1e9)]
    ['0.0123', '1.00', '2,031', '1e+09']
    """
    if not math.isfinite(value) or value == 0 or not 1e-4 <= abs(value) < 1e7:
        return f"{value:g}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"
