"""How many directions are seen, exactly: the rank of the seen rows modulo large primes.

The rows seen are rational with known small denominators, so they can be written down modulo a prime p. A minor that is
not zero modulo p is not zero, hence rank mod p ≤ rank; it is smaller only if p divides every largest minor, which has no
reason to happen for a prime near 2³¹ and even less for two of them. So rank mod p is a certain lower bound for the rank,
independent of rounding, and in practice the rank. `chain` and `krylov` accept a doubtful-free space only if its dimension
is this rank: then no direction was lost in rounding, however faint.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from netdp.graphs import Graph
from netdp.graphs.mixing import Mixing, rational_weights
from netdp.numerics.arrays import IntArray
from netdp.protocols import VaryingGossip
from netdp.views import GossipView, SequenceView

PRIMES = (2147483629, 2147483587)  # below 2³¹, so that products fit into 63 bits
MAX_PRODUCTS = 3e8  # a few seconds
MAX_RANK_PRODUCTS = 2e9  # half of them are done, for each prime: some ten seconds


def seen_rank(view: SequenceView) -> int:
    """The dimension of what is seen: the largest rank modulo the primes.

    >>> from netdp import graphs
    >>> from netdp.protocols import RandomizedGossip
    >>> edges = np.array([[0, 1], [1, 2], [0, 1], [0, 1]])       # the last exchange repeats what is known
    >>> protocol = RandomizedGossip(graphs.path(3), steps=4, sigma=1.0)
    >>> seen_rank(SequenceView(protocol, (0,), edges))
    2
    """
    return max(_rank(view, prime) for prime in PRIMES)


def _rank(view: SequenceView, prime: int) -> int:
    block = np.zeros((view.n, 0), dtype=np.int64)
    half = (prime + 1) // 2
    protocol = view.protocol
    steps = _Steps(view.observers, prime)
    for pull, seen in view.backward():
        if block.shape[1]:
            if isinstance(pull, tuple):
                u, w = pull
                block[u] = block[w] = (block[u] + block[w]) % prime * half % prime
            elif pull is not None and isinstance(protocol, VaryingGossip):
                block = steps.multiply(*protocol.keys[pull], block)
        if len(seen):
            units = np.zeros((view.n, len(seen)), dtype=np.int64)
            units[seen, np.arange(len(seen))] = 1
            block = np.hstack([block, units])
        if block.shape[1] > 2 * view.n:
            block = independent(block, prime)
    return int(independent(block, prime).shape[1])


def krylov_rank(view: GossipView) -> int | None:
    """The dimension of what is seen of gossip on a fixed graph: the rank of {Pˢe_w}; None if that takes long.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> krylov_rank(GossipView.of(Gossip(graphs.dataset("karate"), rounds=60, sigma=1.0), 11))
    26
    """
    rounds, graph, boundary = view.protocol.rounds, view.protocol.graph, view.boundary
    rows = len(boundary) * min(rounds, graph.n)
    if rows * (float(min(rows, graph.n)) * graph.n + 2.0 * graph.m) > MAX_PRODUCTS:
        return None
    ranks = []
    for prime in PRIMES:
        steps = _Steps(view.observers, prime)
        block = np.zeros((graph.n, len(boundary)), dtype=np.int64)
        block[boundary, np.arange(len(boundary))] = 1
        blocks = [block]
        for _ in range(min(rounds, graph.n) - 1):
            blocks.append(steps.multiply(graph, view.protocol.mixing, blocks[-1]))
        ranks.append(int(independent(np.hstack(blocks), prime).shape[1]))
    return max(ranks)


def krylov_ranks(view: GossipView) -> tuple[int, ...] | None:
    """How many new directions each round of gossip on a fixed graph shows; None if that takes long to find out.

    Only what a round shows anew is multiplied on: the rest would show again what is known. So no more than twice the rank is
    ever reduced, and `krylov_rank`, which reduces all rows at once, is the slower the more of them are dependent.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> krylov_ranks(GossipView.of(Gossip(graphs.dataset("karate"), rounds=4, sigma=1.0), 1))
    (9, 5, 4, 4)
    """
    graph, boundary = view.protocol.graph, view.boundary
    n, honest = graph.n, int(view.hidden.sum())
    most = min(honest, len(boundary) * view.protocol.rounds)
    if float(most) ** 2 * n + 2.0 * most * graph.m > MAX_RANK_PRODUCTS:
        return None
    found = []
    for prime in PRIMES:
        steps = _Steps(view.observers, prime)
        echelon = np.zeros((most, n), dtype=np.int64)
        pivots = np.zeros(most, dtype=np.int64)
        rows = np.zeros((len(boundary), n), dtype=np.int64)
        rows[np.arange(len(boundary)), boundary] = 1
        ranks: list[int] = []
        rank = 0
        while len(ranks) < view.protocol.rounds and rank < most:
            reached = int(_reduce(echelon, pivots, rank, rows, prime))
            if reached == rank:
                break
            ranks.append(reached - rank)
            new = np.ascontiguousarray(echelon[rank:reached].T)
            rows = np.ascontiguousarray(steps.multiply(graph, view.protocol.mixing, new).T)
            rank = reached
        found.append(tuple(ranks))
    return max(found, key=lambda ranks: (sum(ranks), ranks))


class _Steps:
    """Multiplication by W_HH modulo a prime."""

    def __init__(self, observers: tuple[int, ...], prime: int) -> None:
        self._observers, self._prime = list(observers), prime
        self._weights = dict[tuple[Graph, Mixing], tuple[IntArray, IntArray]]()

    def multiply(self, graph: Graph, mixing: Mixing, block: IntArray) -> IntArray:
        prime, key = self._prime, (graph, mixing)
        if key not in self._weights:
            tops, bottoms = rational_weights(graph, mixing)
            inverse = {d: pow(d, -1, prime) for d in set(bottoms)}
            weights = np.array([top * inverse[d] % prime for top, d in zip(tops, bottoms, strict=True)], dtype=np.int64)
            sums = np.concatenate([[0], np.cumsum(weights)])  # at most 2³¹ terms of 2³¹
            rest = (1 - (sums[graph.indptr[1:]] - sums[graph.indptr[:-1]])) % prime
            self._weights[key] = weights, rest
        out = np.empty_like(block)
        _multiply(graph.indptr, graph.indices, *self._weights[key], np.ascontiguousarray(block), out, prime)
        out[self._observers] = 0
        return out


def independent(block: IntArray, prime: int) -> IntArray:
    """A basis of the span of the columns."""
    rows = np.ascontiguousarray(block.T)
    return np.ascontiguousarray(rows[: _eliminate(rows, prime)].T)


@njit(nogil=True, cache=True)
def _multiply(indptr: Any, indices: Any, weights: Any, rest: Any, block: Any, out: Any, prime: int) -> None:
    for row in range(len(indptr) - 1):
        for column in range(block.shape[1]):
            out[row, column] = rest[row] * block[row, column] % prime
        for entry in range(indptr[row], indptr[row + 1]):
            weight, source = weights[entry], indices[entry]
            for column in range(block.shape[1]):
                out[row, column] = (out[row, column] + weight * block[source, column]) % prime


@njit(nogil=True, cache=True)
def _eliminate(rows: Any, prime: int) -> int:
    """Row echelon form in place; returns the rank."""
    height, width = rows.shape
    rank = 0
    for column in range(width):
        if rank == height:
            break
        pivot = rank
        while pivot < height and rows[pivot, column] == 0:
            pivot += 1
        if pivot == height:
            continue
        if pivot != rank:
            for j in range(width):
                rows[pivot, j], rows[rank, j] = rows[rank, j], rows[pivot, j]
        inverse, base, exponent = 1, rows[rank, column], prime - 2  # Fermat
        while exponent:
            if exponent & 1:
                inverse = inverse * base % prime
            base = base * base % prime
            exponent >>= 1
        for i in range(rank + 1, height):
            if rows[i, column]:
                times = prime - rows[i, column] * inverse % prime
                for j in range(column, width):
                    rows[i, j] = (rows[i, j] + times * rows[rank, j]) % prime
        rank += 1
    return rank


@njit(nogil=True, cache=True)
def _reduce(echelon: Any, pivots: Any, rank: int, rows: Any, prime: int) -> int:
    """Add to an echelon form of `rank` rows, each with a 1 at its pivot, what is new in `rows`; returns the new rank."""
    width = rows.shape[1]
    for i in range(len(rows)):
        row = rows[i]
        for j in range(rank):
            factor = row[pivots[j]]
            if factor:
                times = prime - factor
                for column in range(pivots[j], width):
                    row[column] = (row[column] + times * echelon[j, column]) % prime
        pivot = 0
        while pivot < width and row[pivot] == 0:
            pivot += 1
        if pivot == width:
            continue
        inverse, base, exponent = 1, row[pivot], prime - 2  # Fermat
        while exponent:
            if exponent & 1:
                inverse = inverse * base % prime
            base = base * base % prime
            exponent >>= 1
        for column in range(width):
            echelon[rank, column] = row[column] * inverse % prime
        pivots[rank] = pivot
        rank += 1
        if rank == len(echelon):
            break
    return rank
