"""Where to draw the parties."""

from __future__ import annotations

import numpy as np

from netdp.graphs import Graph
from netdp.numerics.arrays import FloatArray

# A force-directed layout takes seconds up to here; larger graphs are drawn as rings of equal distance.
MAX_SPRING = 600


def positions(graph: Graph, observers: tuple[int, ...]) -> FloatArray:
    """(n, 2) positions in the unit square: the family's own, springs for small graphs, rings by distance for large ones.

    >>> from netdp import graphs
    >>> positions(graphs.ring(4), (0,)).shape
    (4, 2)
    """
    if graph.positions is not None:
        points = np.array(graph.positions, dtype=np.float64)
    elif graph.n <= MAX_SPRING:
        import networkx

        placed = networkx.spring_layout(graph.to_networkx(), seed=7, iterations=120, k=1.6 / np.sqrt(graph.n))
        points = np.array([placed[node] for node in placed])
    else:
        points = _rings(graph, observers)
    low, high = points.min(axis=0), points.max(axis=0)
    centred: FloatArray = (points - (low + high) / 2) / max(float((high - low).max()), 1e-12) + 0.5
    return centred


def _rings(graph: Graph, observers: tuple[int, ...]) -> FloatArray:
    """The observers in the middle; each party on the circle of its distance, near the angle of a parent."""
    distance = graph.distances(list(observers))
    angle = np.zeros(graph.n)
    rows = np.repeat(np.arange(graph.n), np.diff(graph.indptr))
    for d in range(int(distance.max()) + 1):
        ring = np.flatnonzero(distance == d)
        wish = ring.astype(np.float64)
        if d > 1:
            downwards = (distance[rows] == d) & (distance[graph.indices] == d - 1)
            parent = np.zeros(graph.n, dtype=np.int64)
            parent[rows[downwards]] = graph.indices[downwards]
            wish = angle[parent[ring]]
        angle[ring[np.argsort(wish, kind="stable")]] = 2 * np.pi * np.arange(len(ring)) / len(ring)
    radius = distance.astype(np.float64)
    if len(observers) > 1:
        radius += 0.5
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
