"""A promise that hardly promises anything: one sentence, said wherever an ε is asked for that is too large to protect.

(ε, δ)-privacy says of whatever can be seen that it is at most e^ε times as likely with a record (or a party's data) as without,
plus δ. At ε = 1 that is 2.7 times, at 10 it is 22,000: whoever doubted, one to ten thousand, may then be sure. So above WEAK one is
warned. Nothing is refused: an accountant computes the truth, and what is enough is for people to decide.
"""

from __future__ import annotations

import math
import warnings

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
