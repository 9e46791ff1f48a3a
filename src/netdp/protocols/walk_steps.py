"""The steps of a walk in whole numbers, one function each: what a user adds, where it passes the token on, what is read.

They are the same in a simulation and on a wire (`netdp.peers.spreads.walk`). Chance comes in as words, uniform 64-bit numbers:
the next holder is drawn from them *exactly*, by rejection and in whole numbers, so that the walk has the law that its accountant
assumes and no nearby one.

    complete graph   uniform among all users, oneself included
    "simple"         uniform among the neighbours
    "metropolis"     a uniform neighbour w, taken with probability min(1, d_u/d_w), else the token stays: P_uw = min(1/d_u, 1/d_w)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.mechanisms.coins import one_of
from netdp.mechanisms.discrete_gaussian import Words
from netdp.numerics.arrays import FloatArray, IntArray

from .grid import nearest
from .ring import ring_add
from .token_grid import TokenGrid


def walk_values(protocol: TokenGrid, values: FloatArray) -> IntArray:
    """Values in grid steps, ⌊x/g + ½⌋; refuses numbers that tokens of so many contributions could not hold.

    >>> from netdp.protocols import WalkSum
    >>> walk_values(WalkSum(4, 8, sigma=1.0, grid=0.5), np.array([0.2, 0.75, -1.0])).tolist()
    [0, 2, -2]
    """
    steps = np.asarray(values, dtype=np.float64) / protocol.step
    wrong = ~(np.abs(steps) <= protocol.most_steps)
    if wrong.any():
        raise InvalidValue(
            f"the value {np.asarray(values)[wrong].flat[0]!r} has more than {protocol.most_steps:.2g} steps of the grid "
            f"{protocol.step:g}: {protocol.visits:,} of them would not fit into a 64-bit token"
        )
    return nearest(steps)


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
