"""The steps of a histogram on a token in whole numbers: randomized answers, drawn exactly, and the counts they add up to.

An answer is random with probability γ. Drawn is the share ⌈γ·2⁶⁴⌉ of 2⁶⁴ words: exactly γ for every double γ ≥ 2⁻¹¹, and
never less. More randomness is post-processing of less (every element of a heap is replaced once more, by a coin of its own),
so what is certified for γ holds for what is drawn. Random values are uniform by rejection.

A token holds one count per value. Every visit adds one answer: with "k-ary" answers the counts of a token that t users have
added to, and b random elements, add up to t + b; with "unary" ones no count is larger than that (`is_heap`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from netdp.errors import InvalidValue
from netdp.mechanisms.coins import ALL, one_of, with_share
from netdp.mechanisms.discrete_gaussian import Words
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import whole

from .ring import RingHistogram
from .walk import WalkHistogram

Histogram = RingHistogram | WalkHistogram


def random_share(gamma: float) -> int:
    """Of how many of the 2⁶⁴ words an answer is random: ⌈γ·2⁶⁴⌉.

    >>> random_share(0.5) == 2**63, Fraction(random_share(0.3), 2**64) == Fraction(0.3)
    (True, True)
    """
    return math.ceil(Fraction(gamma) * ALL)


def answer(protocol: Histogram, label: int, words: Words) -> IntArray:
    """(L,) what one visit of a user with this value adds to the counts.

    >>> ones = lambda size: np.full(size, 2**64 - 2, dtype=np.uint64)              # never random
    >>> answer(RingHistogram(4, 1, domain=3, gamma=0.5), 2, ones).tolist()
    [0, 0, 1]
    """
    size = protocol.domain
    if not 0 <= whole("label", label) < size:
        raise InvalidValue(f"label {label} is outside 0 … {size - 1}")
    share = random_share(protocol.gamma)
    if protocol.response == "unary":
        own = np.arange(size) == label
        random, coin = with_share(share, size, words), with_share(ALL // 2, size, words)
        return np.asarray(np.where(random, coin, own), dtype=np.int64)
    random_one = bool(with_share(share, 1, words)[0])
    # a value is drawn in any case, so that how many words are used tells nothing
    drawn = int(one_of(size, 1, words)[0])
    return np.asarray(np.arange(size) == (drawn if random_one else label), dtype=np.int64)


def random_elements(protocol: Histogram, number: int, words: Words) -> IntArray:
    """(L,) the counts of so many uniformly random elements; with "unary" answers each is L fair coins."""
    size = protocol.domain
    if protocol.response == "unary":
        coins = with_share(ALL // 2, number * size, words).reshape(number, size)
        return np.asarray(coins.sum(axis=0), dtype=np.int64)
    return np.bincount(one_of(size, number, words), minlength=size).astype(np.int64)


def ring_answers(protocol: RingHistogram, u: int, labels: Sequence[int], words: Words) -> IntArray:
    """(rounds, L) what user u adds to the counts in each round; the first and the last user add random elements, too.

    >>> ones = lambda size: np.full(size, 2**64 - 2, dtype=np.uint64)
    >>> ring_answers(RingHistogram(4, 2, domain=2, gamma=0.5), 1, [0, 1], ones).tolist()
    [[1, 0], [0, 1]]
    """
    if not 0 <= u < protocol.n:
        raise InvalidValue(f"the ring has users 0 … {protocol.n - 1}, there is no user {u}")
    if len(labels) != protocol.rounds:
        raise InvalidValue(f"user {u} has {len(labels)} labels for {protocol.rounds} rounds; give one for each")
    added = np.stack([answer(protocol, label, words) for label in labels])
    if u == 0:
        added[0] += random_elements(protocol, protocol.blanket, words)
    if u == protocol.n - 1:
        added[-1] += random_elements(protocol, protocol.closing_blanket, words)
    return added


def is_heap(protocol: Histogram, counts: IntArray, elements: int) -> bool:
    """Whether these can be the counts of so many elements: what anybody can check of a token.

    >>> is_heap(RingHistogram(4, 1, domain=3, gamma=0.5), np.array([2, 0, 1]), 4)
    False
    """
    given = [int(one) for one in counts]
    if min(given) < 0 or len(given) != protocol.domain:
        return False
    return max(given) <= elements if protocol.response == "unary" else sum(given) == elements


def shares(protocol: Histogram, counts: IntArray) -> FloatArray:
    """Unbiased shares of every value among all contributions, from the released counts of all tokens together."""
    if isinstance(protocol, RingHistogram):
        contributions, random = protocol.rounds * protocol.n, protocol.blanket + protocol.closing_blanket
    else:
        contributions, random = protocol.steps * protocol.tokens, 0
    if protocol.gamma >= 1:
        raise InvalidValue("gamma=1: every answer is random, so there is nothing to estimate; give gamma below 1")
    options = 2 if protocol.response == "unary" else protocol.domain
    heap = np.asarray(counts, dtype=np.float64)
    return np.asarray(
        (heap - (protocol.gamma * contributions + random) / options) / (1 - protocol.gamma) / contributions
    )
