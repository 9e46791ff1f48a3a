"""The steps of tokens in whole numbers, one function each: what a user adds, where it passes the token on, what is read.

They are the same in a simulation and on a wire (`netdp.families.token.peer_tokens`). Chance comes in as words, uniform 64-bit
numbers, from which everything is drawn *exactly*, by rejection and in whole numbers, so that a walk has the law that its accountant
assumes and no nearby one. An answer of a histogram is random for ⌈γ·2⁶⁴⌉ of the 2⁶⁴ words, never for fewer. The next holder:

    complete graph   uniform among all users, oneself included
    "simple"         uniform among the neighbours
    "metropolis"     a uniform neighbour w, taken with probability min(1, d_u/d_w), else the token stays: P_uw = min(1/d_u, 1/d_w)

Why what is certified holds for these draws: docs/proofs/token.md#walk-on-a-grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.families.token.path import TokenGrid
from netdp.families.token.ring import RingHistogram, ring_add
from netdp.families.token.walk import WalkHistogram
from netdp.graphs.graph import Graph
from netdp.mechanisms.coins import ALL, one_of, with_share
from netdp.mechanisms.discrete_gaussian import Words
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import whole

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


def shares(protocol: Histogram, counts: npt.ArrayLike) -> FloatArray:
    """Unbiased shares of every value among all contributions, from the released counts of all tokens together."""
    if isinstance(protocol, RingHistogram):
        contributions, random = protocol.rounds * protocol.n, protocol.blanket + protocol.closing_blanket
    else:
        contributions, random = protocol.steps * protocol.tokens, 0
    refuse_pure_chance(protocol)
    return debiased(protocol, counts, contributions, random) / contributions


def debiased(protocol: Histogram, counts: npt.ArrayLike, contributions: float, random: float) -> FloatArray:
    """Unbiased counts from those of randomized answers and `random` uniformly random elements besides.

    >>> debiased(RingHistogram(80, 1, domain=2, gamma=0.5), [60.0, 40.0], contributions=80, random=20).tolist()
    [60.0, 20.0]
    """
    options = 2 if protocol.response == "unary" else protocol.domain  # that a random answer is drawn from
    heap = np.asarray(counts, dtype=np.float64)
    return np.asarray((heap - (protocol.gamma * contributions + random) / options) / (1 - protocol.gamma))


def refuse_pure_chance(protocol: Histogram) -> None:
    """Refuse to estimate anything from answers that are all random."""
    if protocol.gamma >= 1:
        raise InvalidValue("gamma=1: every answer is random, so there is nothing to estimate; give gamma below 1")


def walk_values(protocol: TokenGrid, values: FloatArray) -> IntArray:
    """Values in grid steps, ⌊x/g + ½⌋; refuses numbers that tokens of so many contributions could not hold.

    >>> from netdp.protocols import WalkSum
    >>> walk_values(WalkSum(4, 8, sigma=1.0, grid=0.5), np.array([0.2, 0.75, -1.0])).tolist()
    [0, 2, -2]
    """
    return protocol.in_steps(values)


def next_among(users: Sequence[int], words: Words) -> int:
    """The next holder on the complete graph: any of these, the present one included.

    >>> next_among([3, 5, 8], lambda size: np.array([4], dtype=np.uint64))
    5
    """
    return users[int(one_of(len(users), 1, words)[0])]


def next_neighbour(graph: Graph, holder: int, walk: str, words: Words) -> int:
    """The next holder on a graph, by the simple walk or Metropolis'; the same if the token stays.

    >>> from netdp import graphs
    >>> numbers = iter([0, 1])
    >>> next_neighbour(graphs.path(3), 0, "metropolis", lambda size: np.array([next(numbers)], dtype=np.uint64))
    0
    """
    around = graph.neighbors(holder)
    chosen = int(around[int(one_of(len(around), 1, words)[0])])
    if walk == "simple":
        return chosen
    if walk != "metropolis":
        raise InvalidValue(f"the next holder is drawn for walks 'metropolis' and 'simple', not {walk!r}")
    moves = int(one_of(int(graph.degrees[chosen]), 1, words)[0]) < int(graph.degrees[holder])
    return chosen if moves else holder


def first_holder(users: Sequence[int], graph: Graph | None, walk: str, words: Words) -> int:
    """Where a token starts: uniform, or for the simple walk in proportion to degrees (a uniform end of a uniform link).

    users : the names of nodes 0, 1, … of the graph, or of all users of the complete graph
    """
    if graph is None or walk == "metropolis":
        return next_among(users, words)
    ends = np.cumsum(graph.degrees)
    return users[int(np.searchsorted(ends, one_of(int(ends[-1]), 1, words)[0], side="right"))]


def visited(token: IntArray, value: IntArray, noise: IntArray) -> IntArray:
    """The token after a visit; refuses what a 64-bit number cannot hold, which no honest run reaches.

    >>> visited(np.array([3]), np.array([-5]), np.array([1])).tolist()
    [-1]
    """
    return ring_add(ring_add(token, value), noise)


def summed_tokens(tokens: Sequence[IntArray]) -> IntArray:
    """The released tokens added up."""
    total = np.zeros_like(np.asarray(tokens[0], dtype=np.int64))
    for token in tokens:
        total = ring_add(total, token)
    return total
