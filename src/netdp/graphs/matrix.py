"""A gossip matrix of one's own: weights on the edges of a graph, checked, and written down exactly.

`GossipMatrix` stands wherever a protocol takes the name of a mixing. It holds one weight per edge; what is left of a row stays on
the diagonal, so W is symmetric and its rows sum to 1 in exact arithmetic, whatever was rounded before. A weight is a binary
fraction as floating point holds it; the accountants that decide in exact arithmetic what is seen use that very fraction
(`rational_weights`).

>>> from netdp.graphs import path
>>> W = gossip_matrix([[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]])
>>> W
GossipMatrix(n=3, m=2)
>>> W == GossipMatrix(path(3), [0.25, 0.25])
True
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.graphs.convert import from_networkx, is_networkx, node_names
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray

# Weights below this (and not 0) have no use, and their fractions would not fit the long integers of the accountants.
SMALLEST = 2.0**-200


class GossipMatrix:
    """Weights W_uv ≥ 0 on the edges of a graph, one per row of `graph.edges()`; each row's rest is on the diagonal.

    Frozen, hashable and JSON-able. A weight may be 0: along that edge things are sent and not used. The rows of the matrix must not
    sum to more than 1 off the diagonal.

    >>> from netdp.graphs import ring
    >>> W = GossipMatrix(ring(4), [0.5, 0.25, 0.25, 0.5])
    >>> W.matrix.toarray()[0].tolist()
    [0.25, 0.5, 0.0, 0.25]
    >>> GossipMatrix(ring(4), [0.5, 0.6, 0.25, 0.5])
    Traceback (most recent call last):
    netdp.errors.InvalidValue: the weights at node 0 sum to 1.1, more than 1; ...
    """

    __slots__ = ("_graph", "_matrix", "_weights")
    _graph: Graph
    _weights: FloatArray

    def __init__(self, graph: Graph, weights: npt.ArrayLike) -> None:
        if not isinstance(graph, Graph):
            raise InvalidValue(f"a GossipMatrix is over a netdp Graph, got {graph!r}; gossip_matrix(W) takes an array")
        given = np.array(weights, dtype=np.float64)
        edges = graph.edges()
        if given.shape != (graph.m,):
            raise InvalidValue(
                f"one weight per edge of graph.edges() is needed, {graph.m} in all, got shape {given.shape}"
            )
        wrong = np.flatnonzero(~(np.isfinite(given) & (given >= 0)) | ((given > 0) & (given < SMALLEST)))
        if wrong.size:
            u, v = edges[wrong[0]].tolist()
            raise InvalidValue(
                f"the weight {given[wrong[0]]!r} of the edge ({u}, {v}) must be 0 or between 2⁻²⁰⁰ and 1; a gossip matrix has no "
                "negative entries"
            )
        sums = np.bincount(edges[:, 0], given, graph.n) + np.bincount(edges[:, 1], given, graph.n)
        heavy = int(np.argmax(sums)) if graph.n else 0
        if sums[heavy] > 1 + 1e-12:
            raise InvalidValue(
                f"the weights at node {heavy} sum to {sums[heavy]:.6g}, more than 1; divide all weights by {sums[heavy]:.6g}, or "
                "take edge_weights(graph, weights), which scales them"
            )
        given.flags.writeable = False
        object.__setattr__(self, "_graph", graph)
        object.__setattr__(self, "_weights", given)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a GossipMatrix does not change; {name!r} cannot be set")

    @property
    def graph(self) -> Graph:
        """The graph along whose edges is sent."""
        return self._graph

    @property
    def weights(self) -> FloatArray:
        """One per edge of `graph.edges()`."""
        return self._weights

    @property
    def entries(self) -> FloatArray:
        """The weight of every entry of the adjacency matrix, aligned with `graph.indices`."""
        return np.asarray(self._symmetric().data)

    def _symmetric(self) -> Any:
        from scipy.sparse import csr_array

        u, v = self._graph.edges().T
        both = np.concatenate([u, v]), np.concatenate([v, u])
        # 1 + place, so that a weight of 0 keeps its entry
        places = csr_array((np.tile(np.arange(1.0, self._graph.m + 1), 2), both), shape=(self._graph.n,) * 2)
        places.sort_indices()
        places.data = self._weights[places.data.astype(np.int64) - 1]
        return places

    @property
    def matrix(self) -> Any:
        """W as a sparse array."""
        from scipy.sparse import csr_array, dia_array

        off = self._symmetric()
        rest = 1.0 - np.asarray(off.sum(axis=1)).ravel()
        W = csr_array(off + dia_array((rest[None, :], [0]), shape=off.shape))
        W.sort_indices()
        return W

    def in_order_of(self, other: Graph) -> GossipMatrix:
        """The same weights between the same people, numbered as those of the same names in `other`.

        >>> from netdp.graphs import Graph
        >>> W = GossipMatrix(Graph.from_edges(3, [(0, 1), (1, 2)], labels=["ann", "bob", "cy"]), [0.5, 0.25])
        >>> W.in_order_of(Graph.from_edges(3, [(0, 1), (1, 2)], labels=["cy", "bob", "ann"])).weights.tolist()
        [0.25, 0.5]
        """
        places = self._graph.places_in(other)
        if places is None:
            return self
        graph, moved = self._graph.relabel(places), np.asarray(places)[self._graph.edges()]
        keys = moved.min(axis=1) * graph.n + moved.max(axis=1)
        edges = graph.edges()
        weights = np.empty_like(self._weights)
        weights[np.argsort(edges[:, 0] * graph.n + edges[:, 1])] = self._weights[np.argsort(keys)]
        return GossipMatrix(graph, weights)

    @property
    def digest(self) -> str:
        """Hexadecimal BLAKE2b of graph and weights."""
        state = hashlib.blake2b(digest_size=32, person=b"netdp gossip W")
        state.update(self._graph.digest.encode())
        state.update(np.ascontiguousarray(self._weights, dtype="<f8").tobytes())
        return state.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GossipMatrix):
            return NotImplemented
        return self._graph == other._graph and np.array_equal(self._weights, other._weights)

    def __hash__(self) -> int:
        return hash((self._graph, self._weights.tobytes()))

    def __repr__(self) -> str:
        return f"GossipMatrix(n={self._graph.n}, m={self._graph.m})"

    def __reduce__(self) -> Any:
        return GossipMatrix, (self._graph, self._weights)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` reads it back."""
        return {"graph": self._graph.to_dict(), "weights": self._weights.tolist()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GossipMatrix:
        """The inverse of `to_dict`."""
        if not isinstance(data, Mapping) or set(data) != {"graph", "weights"}:
            raise InvalidValue(f"a gossip matrix is written with graph and weights, got {data!r}")
        return cls(Graph.from_dict(data["graph"]), data["weights"])


def gossip_matrix(W: Any, graph: Graph | None = None) -> GossipMatrix:
    """A dense or sparse gossip matrix, checked (Muffliato, Definition 1): symmetric, non-negative, rows of sum 1, on the graph.

    Without a graph, its edges are the entries that are not 0. What rounding left unequal in W_uv and W_vu (at most 1e-9) is
    settled by taking the upper one; the diagonal is what is left of a row.
    """
    from .mixing import check_gossip_matrix

    if graph is None:
        from scipy.sparse import coo_array

        try:
            entries = coo_array(np.asarray(W, dtype=np.float64) if not hasattr(W, "tocoo") else W)
        except (TypeError, ValueError):
            raise InvalidValue(f"a gossip matrix is a square array of numbers, got {type(W).__name__}") from None
        if entries.ndim != 2 or entries.shape[0] != entries.shape[1]:
            raise InvalidValue(f"a gossip matrix is square, not of shape {entries.shape}")
        off = (entries.row != entries.col) & (entries.data != 0)
        low, high = np.minimum(entries.row, entries.col)[off], np.maximum(entries.row, entries.col)[off]
        pairs = np.unique(np.column_stack([low, high]).astype(np.int64), axis=0)
        graph = Graph.from_edges(entries.shape[0], pairs, name="own matrix")
    checked = check_gossip_matrix(W, graph)
    u, v = graph.edges().T
    return GossipMatrix(graph, np.asarray(checked[u, v], dtype=np.float64).ravel() if graph.m else [])


def edge_weights(graph: Any, weights: npt.ArrayLike | str = "weight", *, scheme: str = "metropolis") -> GossipMatrix:
    """The gossip matrix of a graph whose edges have weights of their own, scaled so that rows sum to at most 1.

    graph     a `Graph` with `weights` in the order of `graph.edges()`; or a NetworkX graph, and `weights` names the attribute
    scheme    W_uv = w_uv/(w + max(s_u, s_v)) ("metropolis"), or w_uv/(w + max s) ("maximum-degree"), s_u the sum of the weights
              at u and w the largest weight: with equal weights the mixings of these names.

    >>> import networkx as nx
    >>> G = nx.Graph()
    >>> G.add_weighted_edges_from([("ann", "bob", 3.0), ("bob", "cy", 1.0)])
    >>> edge_weights(G).weights.round(4).tolist()                   # 3/(3+4) and 1/(3+4)
    [0.4286, 0.1429]
    """
    if scheme not in ("metropolis", "maximum-degree"):
        raise InvalidValue(f"scheme must be 'metropolis' or 'maximum-degree', got {scheme!r}")
    if is_networkx(graph):
        if not isinstance(weights, str):
            raise InvalidValue("of a NetworkX graph name the attribute that holds the weights, such as 'weight'")
        made = from_networkx(graph)
        nodes, _ = node_names(graph)
        if graph.is_multigraph():
            raise InvalidValue("a multigraph has several weights per edge; sum them into a simple networkx.Graph first")
        found = [graph.edges[nodes[u], nodes[v]].get(weights) for u, v in made.edges().tolist()]
        bare = next((i for i, weight in enumerate(found) if weight is None), None)
        if bare is not None:
            u, v = made.edges()[bare].tolist()
            raise InvalidValue(
                f"the edge ({nodes[u]!r}, {nodes[v]!r}) has no attribute {weights!r}; give every edge one"
            )
        graph, weights = made, found
    if not isinstance(graph, Graph) or isinstance(weights, str):
        raise InvalidValue(
            "give a netdp Graph with one weight per edge of graph.edges(), or a NetworkX graph with weights"
        )
    given = np.asarray(weights, dtype=np.float64)
    edges = graph.edges()
    if given.shape != (graph.m,) or not graph.m:
        raise InvalidValue(f"one weight per edge of graph.edges() is needed, {graph.m} in all, got shape {given.shape}")
    wrong = np.flatnonzero(~(np.isfinite(given) & (given > 0)))
    if wrong.size:
        u, v = edges[wrong[0]].tolist()
        raise InvalidValue(f"the weight {given[wrong[0]]!r} of the edge ({u}, {v}) must be a finite number > 0")
    strength = np.bincount(edges[:, 0], given, graph.n) + np.bincount(edges[:, 1], given, graph.n)
    local = np.maximum(strength[edges[:, 0]], strength[edges[:, 1]]) if scheme == "metropolis" else strength.max()
    return GossipMatrix(graph, given / (given.max() + local))
