"""The seen space in 768-bit fixed-point integers: decides what floating point cannot.

When a Lanczos coefficient falls between rounding and clear (see `krylov`), whether the observers see one more direction is
a question about exact arithmetic. The weights are fractions (unit fractions, or binary ones of one's own), so W is known to
768 bits; here the recurrence runs on long integers scaled by 2⁷⁶⁸. A coefficient that is zero in exact arithmetic comes out
below 2⁻³⁰⁰, one that is not above 2⁻¹⁰⁰, or the question is left open (`doubtful`). With that many bits the three-term
recurrence needs no re-orthogonalisation: rounding errors of 2⁻⁷⁶⁸ may grow by a factor 2⁴⁰⁰ before they matter, and the
orthonormality of the result is checked at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.graphs import GossipMatrix, Graph
from netdp.graphs.mixing import Mixing, rational_weights
from netdp.numerics.arrays import Progress
from netdp.views import GossipView

from .krylov import CALM_TILT, SeenSpace, lost_directions

BITS = 768
_ZERO = 1 << (BITS - 300)
_CLEAR = 1 << (BITS - 100)
# Multiplications of long integers, one to ten million a second.
MAX_MULTIPLICATIONS = 6e7

Wide = npt.NDArray[Any]  # object arrays of Python integers, scaled by 2^BITS


def affordable(view: GossipView) -> bool:
    """Whether the wide recurrence takes at most a minute."""
    graph, b = view.protocol.graph, len(view.boundary)
    rank = min(graph.n, b * view.protocol.rounds)
    return rank * (2.0 * graph.m + graph.n * (1 + 10.0 * b)) <= MAX_MULTIPLICATIONS


def seen_space(view: GossipView, progress: Progress | None = None) -> SeenSpace:
    """The seen space of a view, decided in long integers; the basis is returned in floating point."""
    multiply = step(view.protocol.graph, view.protocol.mixing, view.observers)
    n, honest, boundary = len(view.hidden), int(view.hidden.sum()), view.boundary
    newest: Wide = np.zeros((len(boundary), n), dtype=object)  # rows are directions
    newest[np.arange(len(boundary)), boundary] = 1 << BITS
    blocks, ranks, doubtful = [newest], [len(boundary)], False
    while len(ranks) < view.protocol.rounds and ranks[-1] > 0 and sum(ranks) < honest:
        rest = multiply(newest)
        for _ in range(2):
            for earlier in blocks[-2:]:
                rest = rest - _project(rest, earlier)
        newest, unclear = orthonormal(rest)
        doubtful |= unclear
        ranks.append(len(newest))
        if progress is not None:
            progress(sum(ranks), min(honest, len(boundary) * view.protocol.rounds))
        if len(newest):
            blocks.append(newest)
    if ranks[-1] == 0:
        ranks.pop()
    note = ""
    if isinstance(view.protocol.mixing, GossipMatrix) and not doubtful:  # a product of tiny weights is below any limit
        doubtful, note = lost_directions(view, sum(ranks), long=True)
    return replace(rounded(np.vstack(blocks), tuple(ranks), doubtful), note=note)


def rounded(directions: Wide, ranks: tuple[int, ...], doubtful: bool) -> SeenSpace:
    """The space of these orthonormal rows in floating point; rows that are not orthonormal after all make it doubtful."""
    basis = np.asfortranarray((directions / (1 << BITS)).astype(np.float64).T)
    n, k = basis.shape
    if k and np.abs(basis.T @ basis - np.eye(k)).max() > 1e-13 * max(n, 100):
        doubtful = True
    return SeenSpace(basis, ranks, doubtful, CALM_TILT, "768-bit")


def step(graph: Graph, mixing: Mixing, observers: Iterable[int]) -> Callable[[Wide], Wide]:
    """Multiplication of row vectors by W_HH in wide arithmetic."""
    tops, bottoms = rational_weights(graph, mixing)
    weights: Wide = np.array([(top << BITS) // d for top, d in zip(tops, bottoms, strict=True)], dtype=object)
    diagonal: Wide = np.full(graph.n, 1 << BITS, dtype=object)
    starts = graph.indptr[:-1]
    has_neighbours = np.diff(graph.indptr) > 0
    if graph.m:
        diagonal[has_neighbours] -= np.add.reduceat(weights, starts[has_neighbours])
    struck = list(observers)

    def multiply(rows: Wide) -> Wide:
        product = rows * diagonal
        if graph.m:
            product[:, has_neighbours] += np.add.reduceat(
                rows[:, graph.indices] * weights, starts[has_neighbours], axis=1
            )
        product[:, struck] = 0
        return product >> BITS

    return multiply


def _project(rows: Wide, basis: Wide) -> Wide:
    return np.asarray(((rows @ basis.T >> BITS) @ basis) >> BITS)


def orthonormal(rows: Wide) -> tuple[Wide, bool]:
    """Gram–Schmidt with pivoting; the second value says whether some size was neither zero nor clear."""
    kept: list[Wide] = []
    left = list(rows)
    while left:
        squares = [int(row @ row) for row in left]
        largest = max(range(len(left)), key=squares.__getitem__)
        size = math.isqrt(squares[largest])
        if size < _CLEAR:
            return _stack(kept, rows), size > _ZERO
        direction = (left.pop(largest) << BITS) // size
        kept.append(direction)
        left = [row - ((int(row @ direction) >> BITS) * direction >> BITS) for row in left]
    return _stack(kept, rows), False


def _stack(kept: list[Wide], rows: Wide) -> Wide:
    return np.array(kept, dtype=object).reshape(len(kept), rows.shape[1])
