"""The diameter of a graph, and whether all its parties stand alike.

`diameter` says how many rounds a flood takes until everybody has heard from everybody, by few breadth-first searches; it may stop
between two bounds. On vertex-transitive graphs one observer speaks for all; a name alone proves nothing, so the family that it
claims is built again and compared edge by edge. Both: docs/proofs/graphs.md#diameter.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from netdp import graphs
from netdp.errors import NetdpError
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import IntArray

WORK = 1e10
"""Steps (a word of 64 searches passed along a link) that are spent unless told otherwise: about half a minute."""

_SEARCHES = 48

_SEARCH = 16.0  # a search of its own costs as much as so many steps per link

_BLOCK = 1 << 22  # words gathered at once


class Span(NamedTuple):
    """low ≤ diameter ≤ high."""

    low: int
    high: int

    @property
    def is_exact(self) -> bool:
        """Whether the two agree."""
        return self.low == self.high


def diameter(graph: Graph, *, work: float = WORK) -> Span:
    """The largest distance between two nodes of a connected graph, exactly where `work` suffices.

    >>> from netdp.graphs import grid, ring
    >>> diameter(grid(30, 40)), diameter(ring(101))
    (Span(low=68, high=68), Span(low=50, high=50))
    >>> diameter(ring(101), work=0)
    Span(low=50, high=52)
    """
    graph.require_connected("a diameter")
    if graph.n == 1:
        return Span(0, 0)
    low = np.zeros(graph.n, dtype=np.int64)
    high = np.full(graph.n, graph.n, dtype=np.int64)
    longest, undecided = 0, np.arange(graph.n)
    for turn in range(graph.n):
        if turn >= _SEARCHES and turn % _SEARCHES == 0:
            top = int(high[undecided].max())
            by_bits = -(-undecided.size // 64) * float(graph.indices.size) * top
            one_by_one = undecided.size * float(graph.indices.size) * _SEARCH
            if min(by_bits, one_by_one) > work:
                return Span(longest, top)
            if by_bits <= one_by_one:
                longest = max(longest, _deepest(graph, undecided))
                return Span(longest, longest)
        start = int(undecided[high[undecided].argmax() if turn % 2 else low[undecided].argmin()])
        away = graph.distances(int(graph.degrees.argmax()) if turn == 0 else start).astype(np.int64)
        far = int(away.max())
        np.maximum(low, np.maximum(away, far - away), out=low)
        np.minimum(high, far + away, out=high)
        longest = int(low.max())
        undecided = np.flatnonzero(high > longest)
        if not undecided.size:
            break
    return Span(longest, longest)


def _deepest(graph: Graph, sources: IntArray) -> int:
    """The largest eccentricity of some nodes of a connected graph with at least two."""
    width = max(1, _BLOCK // graph.indices.size)
    deepest = 0
    for start in range(0, sources.size, 64 * width):
        batch = sources[start : start + 64 * width]
        words = np.zeros((graph.n, -(-batch.size // 64)), dtype=np.uint64)
        place = np.arange(batch.size)
        np.bitwise_or.at(words, (batch, place // 64), np.uint64(1) << (place % 64).astype(np.uint64))
        full = np.bitwise_or.reduce(words, axis=0)
        levels = 0
        while not (words == full).all():
            words |= np.bitwise_or.reduceat(words[graph.indices], graph.indptr[:-1], axis=0)
            levels += 1
        deepest = max(deepest, levels)
    return deepest


# Cayley graphs, all of them: translations are automorphisms.
_FAMILIES = {"ring": (1, 1), "complete": (1, 1), "hypercube": (1, 1), "exponential": (1, 1), "torus": (2, 20)}

_NAME = re.compile(r"(\w+)\((\d{1,7}(?:, \d{1,7}){0,19})\)")


def vertex_transitive(graph: Graph, mixing: Any = "metropolis") -> bool:
    """Whether `graph` is, edge by edge, a ring, torus, hypercube, exponential or complete graph. False also when nobody knows.

    Weights of one's own (`mixing` is no name) may break every symmetry: then False.

    >>> vertex_transitive(graphs.torus(4, 5)), vertex_transitive(graphs.grid(4, 5))
    (True, False)
    >>> vertex_transitive(graphs.Graph.from_edges(3, [(0, 1), (1, 2)], name="ring(3)"))
    False
    """
    if not isinstance(mixing, str):
        return False
    match = _NAME.fullmatch(graph.name)
    if match is None or match[1] not in _FAMILIES:
        return False
    numbers = [int(number) for number in match[2].split(", ")]
    fewest, most = _FAMILIES[match[1]]
    if not fewest <= len(numbers) <= most or max(numbers) > graph.n:
        return False
    try:
        return bool(getattr(graphs, match[1])(*numbers) == graph)
    except NetdpError:
        return False
