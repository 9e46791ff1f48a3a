"""Numbers for people: a privacy loss is always rounded up, and one that hardly protects comes with a sentence that says so.

(ε, δ)-privacy says of whatever can be seen that it is at most e^ε times as likely with a record (or a party's data) as without,
plus δ. At ε = 1 that is 2.7 times, at 10 it is 22,000: whoever doubted, one to ten thousand, may then be sure. So above WEAK one is
warned. Nothing is refused: an accountant computes the truth, and what is enough is for people to decide.
"""

from __future__ import annotations

import math
import warnings

from netdp.numerics.arrays import rounded_up


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


WEAK = 10.0
"""An ε above this is warned of."""


class WeakPromise(UserWarning):
    """The ε that was asked for is so large that hardly anything is promised."""


def weak_words(epsilon: float) -> str | None:
    """Why this ε protects hardly anybody; None if it is not so large.

    >>> weak_words(10.0) is None
    True
    >>> print(weak_words(20.0))
    epsilon = 20 is hardly a promise: the odds of a guess about anybody may grow e^20 = 4.9e+08 times. Up to 1 protects well, \
above 10 hardly; more rows or more parties make an answer better at the same epsilon
    """
    if not epsilon > WEAK:
        return None
    grown = f"e^{epsilon:.4g} = {math.exp(epsilon):.1e}" if epsilon < 700 else f"e^{epsilon:.4g}"
    return (
        f"{_BEGINS}{epsilon:.4g} is hardly a promise: the odds of a guess about anybody may grow {grown} times. Up to 1 protects "
        f"well, above {WEAK:g} hardly; more rows or more parties make an answer better at the same epsilon"
    )


_BEGINS = "epsilon = "


def is_weak(text: str) -> bool:
    """Whether a warning is the sentence above.

    >>> is_weak(weak_words(20.0)), is_weak("noise will win")
    (True, False)
    """
    return text.startswith(_BEGINS)


def warn_if_weak(epsilon: float, stacklevel: int = 3) -> None:
    """A `WeakPromise` where there is reason."""
    if (text := weak_words(epsilon)) is not None:
        warnings.warn(text, WeakPromise, stacklevel=stacklevel)


def size(number: float) -> str:
    """Bytes for people.

    >>> [size(x) for x in (12, 1999, 3.2e6, 5e10)]
    ['12 bytes', '2 KB', '3.2 MB', '50 GB']
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if number >= unit:
            return f"{number / unit:.2g} {name}" if number < 99.5 * unit else f"{number / unit:,.0f} {name}"
    return f"{number:.0f} bytes"


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> [duration(x) for x in (0.002, 75, 4000, 3e6)]
    ['0.002 s', '75 s', '67 minutes', '35 days']
    """
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} hours"
    return f"{math.ceil(seconds / 86400 - 0.5):,} days"
