"""Coins that fall as they should, exactly: what every sampler in whole numbers is made of.

All of them turn independent uniform 64-bit words into decisions by comparing whole numbers, so each has the law that it states, to
the last digit: a share of 2⁶⁴ (`with_share`), one of m (`one_of`), e^{−p/q} (`flips`, decided in doubles where these are certain).
See docs/proofs/mechanisms.md#finite-precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError
from netdp.numerics.arrays import FloatArray, IntArray

from .discrete_gaussian import Words, exp_floor

ALL = 2**64
"""How many words there are."""
_MARGIN = 2.0**-29
_MOST_TRIES = 2048  # each fails with a chance of at most ½


def with_share(share: int, size: int, words: Words) -> npt.NDArray[np.bool_]:
    """So many coins, each heads with probability share/2⁶⁴, exactly.

    >>> with_share(0, 2, lambda size: np.zeros(size, dtype=np.uint64)).tolist()
    [False, False]
    """
    if not 0 <= share <= ALL:
        raise InvalidValue(f"a share of 2⁶⁴ lies between 0 and 2⁶⁴, got {share}")
    drawn = words(size)
    return np.ones(size, dtype=bool) if share == ALL else drawn < np.uint64(share)


def one_of(choices: int, size: int, words: Words) -> IntArray:
    """So many independent uniform draws from 0 … choices − 1.

    >>> one_of(3, 2, lambda size: np.array([7, 2**64 - 2], dtype=np.uint64)[:size]).tolist()
    [1, 2]
    """
    if not 1 <= choices < 2**63:
        raise InvalidValue(f"a choice is among 1 to 2⁶³ − 1 things, got {choices}")
    whole_multiples = ALL - ALL % choices  # words from here on are drawn anew
    drawn = words(size)
    if whole_multiples < ALL:
        for _ in range(_MOST_TRIES):
            again = np.flatnonzero(drawn >= np.uint64(whole_multiples))
            if not again.size:
                break
            drawn = drawn.copy()  # words may be read-only
            drawn[again] = words(len(again))
        else:  # not in the lifetime of anything, if the words are random
            raise NetdpError(f"{_MOST_TRIES} refusals in a row: the source of random words is broken")
    return (drawn % np.uint64(choices)).astype(np.int64)


def flips(exponents: FloatArray, exact: Callable[[int], tuple[int, int]], words: Words) -> npt.NDArray[np.bool_]:
    """One coin for every exponent y ≥ 0: heads with probability e^{−y}, y = p/q exactly with (p, q) = exact(i).

    `exponents` may be rounded, as long as each e^{−y} is right to within 2⁻³¹.
    """
    drawn = words(len(exponents))
    place = drawn * 2.0**-64
    chance = np.exp(-exponents)
    heads = place < chance
    for i in np.flatnonzero(np.abs(place - chance) <= _MARGIN).tolist():
        heads[i] = below_exp(int(drawn[i]), *exact(i), words)
    return heads


def below_exp(word: int, p: int, q: int, words: Words) -> bool:
    """Whether the number with these first 64 binary digits, and the next ones from `words`, is below e^{−p/q}.

    >>> below_exp(2**63, 1, 1, lambda size: np.zeros(size, dtype=np.uint64)), below_exp(2**62, 1, 1, None)
    (False, True)
    """
    if p == 0:
        return True
    bits = 64
    while True:
        digits = exp_floor(p, q, bits) & (ALL - 1)
        if word != digits:
            return word < digits
        word, bits = int(words(1)[0]), bits + 64  # e^{−p/q} is irrational, so this ends


def response_share(epsilon: float, others: int) -> int:
    """⌈2⁶⁴·f⌉ for f = m/(e^ε + m), m = `others`: the least share of 2⁶⁴ that is no less than f, or one more.

    In whole numbers, so that every machine finds the same: f = mE/(1 + mE) grows with E = e^{−ε}, which lies between
    exp_floor/2²⁵⁶ and that plus 2⁻²⁵⁶.

    >>> 0 <= response_share(1.0, 3) / ALL - 3 / (math.e + 3) < 1e-15
    True
    """
    p, q = epsilon.as_integer_ratio()
    above = exp_floor(p, q, 256) + 1
    return -(-ALL * others * above // (2**256 + others * above))


def log_ratio_up(numerator: int, denominator: int) -> float:
    """log(numerator/denominator) of whole numbers, rounded up.

    >>> log_ratio_up(1, 1) < 1e-15, 0 <= log_ratio_up(2**80, 2**79) - math.log(2) < 1e-15
    (True, True)
    """
    if numerator < denominator:
        raise InvalidValue(f"the ratio {numerator}/{denominator} is below 1: its logarithm is negative")
    # excess = ratio − 1, rounded correctly by Python; log1p errs by less than two units of its last place
    excess = (numerator - denominator) / denominator
    return math.log1p(excess) * (1 + 2.0**-50) + 5e-324
