"""Coins that fall as they should, exactly: what every sampler in whole numbers is made of.

All of them turn independent uniform 64-bit words into decisions by comparing whole numbers, so each has the law that it states, to
the last digit: a share of 2⁶⁴ (`with_share`), one of m (`one_of`), e^{−p/q} (`flips`, decided in doubles where these are certain),
the same times a fraction (`scaled_flips`); and Poisson numbers (`poisson`).
See docs/proofs/mechanisms.md#finite-precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError
from netdp.numerics.arrays import FloatArray, IntArray

from .discrete_gaussian import Words, exp_floor

ALL = 2**64
"""How many words there are."""
_MARGIN = 2.0**-29
_TOGETHER = 1 << 20  # Poisson numbers that are drawn at once
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


def scaled_flips(
    ratios: FloatArray, exponents: FloatArray, exact: Callable[[int], tuple[int, int, int, int]], words: Words
) -> npt.NDArray[np.bool_]:
    """One coin for every i: heads with probability (a/b)·e^{−p/q} < 1 exactly, (a, b, p, q) = exact(i) and p > 0.

    `ratios` and `exponents` are a/b and p/q and may be rounded, as long as each probability is right to within 2⁻³¹.
    """
    drawn = words(len(exponents))
    place = drawn * 2.0**-64
    chance = ratios * np.exp(-exponents)
    heads = place < chance
    for i in np.flatnonzero(np.abs(place - chance) <= _MARGIN).tolist():
        heads[i] = below_scaled_exp(int(drawn[i]), *exact(i), words)
    return heads


def below_scaled_exp(word: int, a: int, b: int, p: int, q: int, words: Words) -> bool:
    """Whether the number with these first 64 binary digits, and the next ones from `words`, is below (a/b)·e^{−p/q}.

    >>> below_scaled_exp(2**62, 1, 2, 1, 1, None), below_scaled_exp(2**61, 1, 2, 1, 1, None)                 # 1/2e = 0.18
    (False, True)
    """
    bits = 64
    while True:
        digits = scaled_exp_floor(a, b, p, q, bits)
        if word != digits:
            return word < digits
        word, bits = word << 64 | int(words(1)[0]), bits + 64  # the probability is irrational, so this ends


def scaled_exp_floor(a: int, b: int, p: int, q: int, bits: int) -> int:
    """⌊2^bits·(a/b)·e^{−p/q}⌋ for whole numbers a, b, p, q > 0.

    >>> scaled_exp_floor(5, 2, 1, 1, 20), int(2**20 * 2.5 * math.exp(-1))
    (964373, 964373)
    """
    guard = 32 + max(a.bit_length() - b.bit_length(), 0)
    while True:
        below = exp_floor(p, q, bits + guard)
        low, high = below * a // (b << guard), (below + 1) * a // (b << guard)
        if low == high:
            return low
        guard *= 2


def poisson(mean: Fraction, words: Words) -> int:
    """A Poisson number with this mean, exactly: the sum of ⌊mean⌋ with mean 1, and of one with mean 1 that is thinned.

    >>> poisson(Fraction(7, 2), lambda size: np.full(size, 2**62, dtype=np.uint64))
    0
    """
    if mean < 0:
        raise InvalidValue(f"the mean of a Poisson number is at least 0, got {mean}")
    whole, rest = divmod(mean.numerator, mean.denominator)
    total = 0
    while whole:
        many = min(whole, _TOGETHER)
        total += int(poisson_of_one(many, words).sum())
        whole -= many
    if rest:
        points = int(poisson_of_one(1, words)[0])
        total += int(np.count_nonzero(one_of(mean.denominator, points, words) < rest)) if points else 0
    return total


def poisson_of_one(size: int, words: Words) -> IntArray:
    """So many independent Poisson numbers with mean 1, exactly: the least k with a uniform number below e⁻¹·Σ_{i≤k} 1/i!.

    >>> poisson_of_one(3, lambda size: np.array([2**62, 2**63, 2**64 - 2**40], dtype=np.uint64)[:size]).tolist()
    [0, 1, 10]
    """
    table = _poisson_table()
    drawn = words(size)
    found = np.searchsorted(table, drawn, side="left").astype(np.int64)
    for i in np.flatnonzero(table[found] == drawn).tolist():
        found[i] = _poisson_decided(int(drawn[i]), words)
    return found


def _poisson_decided(word: int, words: Words) -> int:
    """The number that belongs to a word whose 64 digits do not decide."""
    bits, k = 64, 0
    while True:
        digits = _poisson_digits(k, bits)
        if word < digits:
            return k
        if word > digits:
            k += 1
        else:
            word, bits = word << 64 | int(words(1)[0]), bits + 64


@lru_cache(maxsize=256)
def _poisson_digits(k: int, bits: int) -> int:
    """⌊2^bits·P(X ≤ k)⌋ for X Poisson with mean 1."""
    below = math.factorial(k)
    return scaled_exp_floor(sum(below // math.factorial(i) for i in range(k + 1)), below, 1, 1, bits)


@lru_cache(maxsize=1)
def _poisson_table() -> npt.NDArray[np.uint64]:
    """The first 64 digits of P(X ≤ k), up to where all of them are ones."""
    digits = [_poisson_digits(0, 64)]
    while digits[-1] < ALL - 1:
        digits.append(_poisson_digits(len(digits), 64))
    return np.array(digits, dtype=np.uint64)


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
