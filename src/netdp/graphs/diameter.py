"""The diameter: how many rounds a flood takes until everybody has heard from everybody.

A breadth-first search from every node would do, and takes a minute on 30,000 of them. Two ideas make it seconds.

**Bounds.** A search from v with the distances d(v, ·) and the eccentricity e = max d(v, ·) says of every node w, by the triangle
inequality, max(d(v, w), e − d(v, w)) ≤ ecc(w) ≤ e + d(v, w). Nodes whose upper bound is at most the largest lower bound
found so far cannot decide; the rest are *open*. Searches start where they tell most: by turns at the open node of largest upper
and of least lower bound (Takes and Kosters 2011). In networks with a core and arms a few searches close every node.

**Bits.** Where all eccentricities are nearly the same (random graphs, rings) nodes stay open. Their searches run 64 at a time,
a bit each: a node's word is the union of its own and its neighbours' words, level by level, until all words are full.

What would take more than `work` steps is left: the diameter is then known to lie between two numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netdp.numerics.arrays import IntArray

from .graph import Graph

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
    found, undecided = 0, np.arange(graph.n)
    for turn in range(graph.n):
        if turn >= _SEARCHES and turn % _SEARCHES == 0:
            top = int(high[undecided].max())
            by_bits = -(-undecided.size // 64) * float(graph.indices.size) * top
            one_by_one = undecided.size * float(graph.indices.size) * _SEARCH
            if min(by_bits, one_by_one) > work:
                return Span(found, top)
            if by_bits <= one_by_one:
                found = max(found, _deepest(graph, undecided))
                return Span(found, found)
        start = int(undecided[high[undecided].argmax() if turn % 2 else low[undecided].argmin()])
        away = graph.distances(int(graph.degrees.argmax()) if turn == 0 else start).astype(np.int64)
        far = int(away.max())
        np.maximum(low, np.maximum(away, far - away), out=low)
        np.minimum(high, far + away, out=high)
        found = int(low.max())
        undecided = np.flatnonzero(high > found)
        if not undecided.size:
            break
    return Span(found, found)


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


__all__ = ["Span", "diameter"]
