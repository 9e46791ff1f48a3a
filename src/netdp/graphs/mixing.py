"""Gossip matrices: how much of each neighbour's value a node takes in one round.

A gossip matrix over a graph (Cyffers, Even, Bellet and Massoulié, *Muffliato*, NeurIPS 2022, Definition 1) is
symmetric and non-negative, its rows sum to 1, and off the diagonal it is zero wherever there is no edge.
All of those made here, but for "hamilton", have a positive diagonal, so on a connected graph their powers converge to the mean.

A `GossipMatrix` of one's own stands wherever a protocol takes the name of a mixing. It holds one weight per edge, a binary
fraction as floating point holds it; what is left of a row stays on the diagonal, so W is symmetric and its rows sum to 1 in
exact arithmetic. Accountants that decide in exact arithmetic what is seen use these very fractions (`rational_weights`).

>>> from netdp.graphs import path, ring
>>> metropolis(ring(3)).toarray().round(3)
array([[0.333, 0.333, 0.333],
       [0.333, 0.333, 0.333],
       [0.333, 0.333, 0.333]])
>>> W = gossip_matrix([[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]])
>>> W
GossipMatrix(n=3, m=2)
>>> W == GossipMatrix(path(3), [0.25, 0.25])
True
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.graphs import csr
from netdp.graphs.convert import from_networkx, is_networkx, node_names
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray, IntArray

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


#: The kinds that `mixing_matrix` knows.
MIXINGS = (
    "metropolis",
    "maximum-degree",
    "lazy-metropolis",
    "lazy-maximum-degree",
    "hamilton",
    "lazy-hamilton",
)

#: Other words for them.
ALIASES = {"max-degree": "maximum-degree", "lazy-max-degree": "lazy-maximum-degree"}

#: What a protocol takes: a name, or weights of one's own.
Mixing: TypeAlias = str | GossipMatrix


def metropolis(graph: Graph) -> Any:
    """Metropolis weights W_uv = 1/(1 + max(d_u, d_v)) on edges, the rest on the diagonal.

    Each node needs to know only its neighbours' degrees (Xiao, Boyd and Kim, *Distributed average consensus
    with least-mean-square deviation*, 2007). On a d-regular graph, W = I − L/(1 + d).
    """
    degrees = graph.degrees
    rows = csr.rows_of(graph.indptr)
    return _with_diagonal(graph, 1.0 / (1.0 + np.maximum(degrees[rows], degrees[graph.indices])))


def maximum_degree(graph: Graph) -> Any:
    """Maximum-degree weights W = I − L/(1 + d_max): the same weight on every edge.

    >>> from netdp.graphs import path
    >>> maximum_degree(path(3)).diagonal().round(3)
    array([0.667, 0.333, 0.667])
    """
    return _with_diagonal(graph, np.full(graph.indices.size, 1.0 / (1.0 + graph.degrees.max())))


def hamilton(graph: Graph) -> Any:
    """W_uv = 1/max(d_u, d_v) on edges, the rest on the diagonal: the matrix of Muffliato's Table 1.

    The paper's experiments use a "Hamilton scheme" that it does not define; its Table 1 names min(1/d_v, 1/d_w), which is taken
    for it here. (The authors' code of the figures comes out as Metropolis: netdp.papers.muffliato.)
    It sends more than Metropolis, and on regular bipartite graphs (even rings, tori, hypercubes) too much: −1 is an
    eigenvalue there and gossip swings for ever. The lazy one converges everywhere.

    >>> from netdp.graphs import path
    >>> hamilton(path(3)).toarray().tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    """
    degrees = graph.degrees
    rows = csr.rows_of(graph.indptr)
    return _with_diagonal(graph, 1.0 / np.maximum(degrees[rows], degrees[graph.indices]))


def _with_diagonal(graph: Graph, weights: FloatArray) -> Any:
    from scipy.sparse import csr_array, dia_array

    off = csr.matrix(graph.indptr, graph.indices, weights)
    rest = np.maximum(1.0 - off.sum(axis=1), 0.0)  # at least 1/(1 + d), or 0 by Hamilton's: never lost to rounding
    W = csr_array(off + dia_array((rest[None, :], [0]), shape=off.shape))
    W.sort_indices()
    return W


def lazy(W: Any) -> Any:
    """(I + W)/2: half of the time nothing happens, so no eigenvalue is negative.

    >>> from netdp.graphs import complete
    >>> lazy(metropolis(complete(2))).toarray()
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    from scipy.sparse import csr_array, eye_array

    W = csr_array(W)
    return csr_array((W + eye_array(W.shape[0], format="csr")) * 0.5)


def as_mixing(value: Any, graph: Graph) -> Mixing:
    """What stands for a mixing over a graph: a name, a `GossipMatrix`, its dictionary, or a dense or sparse matrix; checked.

    >>> from netdp.graphs import ring
    >>> as_mixing("max-degree", ring(3)), as_mixing(np.full((3, 3), 1 / 3), ring(3))
    ('maximum-degree', GossipMatrix(n=3, m=3))
    """
    if isinstance(value, str):
        name = ALIASES.get(value, value)
        if name not in MIXINGS:
            raise InvalidValue(
                f"unknown mixing {value!r}; choose one of {', '.join(MIXINGS)}, or give a GossipMatrix of your own"
            )
        return name
    if isinstance(value, Mapping):
        value = GossipMatrix.from_dict(value)
    if isinstance(value, GossipMatrix):
        if value.graph.n == graph.n and None not in (value.graph.labels, graph.labels):
            value = value.in_order_of(graph)  # equal graphs may still number their people differently
        if value.graph != graph:
            raise InvalidValue(
                f"this {value!r} is over another graph than {graph!r}; make it with gossip_matrix(W, graph)"
            )
        return value if value.graph.labels == graph.labels else GossipMatrix(graph, value.weights)
    if value is None or isinstance(value, bool | int | float):
        raise InvalidValue(f"unknown mixing {value!r}; choose one of {', '.join(MIXINGS)}, or give a matrix")
    return gossip_matrix(value, graph)


def mixing_matrix(graph: Graph, kind: Mixing = "metropolis") -> Any:
    """The gossip matrix of a kind in `MIXINGS`, or of one's own weights.

    >>> from netdp.graphs import ring
    >>> mixing_matrix(ring(5), "lazy-metropolis").diagonal().round(3)
    array([0.667, 0.667, 0.667, 0.667, 0.667])
    """
    if isinstance(kind, GossipMatrix):
        return kind.matrix
    if kind not in MIXINGS:
        raise InvalidValue(f"no mixing is called {kind!r}; choose one of {', '.join(MIXINGS)}")
    make = {"metropolis": metropolis, "maximum-degree": maximum_degree, "hamilton": hamilton}[
        kind.removeprefix("lazy-")
    ]
    W = make(graph)
    return lazy(W) if kind.startswith("lazy-") else W


def rational_weights(graph: Graph, kind: Mixing = "metropolis") -> tuple[list[int], list[int]]:
    """The weight of every entry of the adjacency matrix as numerator/denominator, exactly; aligned with `graph.indices`.

    >>> from netdp.graphs import path
    >>> rational_weights(path(2)), rational_weights(path(2), GossipMatrix(path(2), [0.375]))
    (([1, 1], [2, 2]), ([3, 3], [8, 8]))
    """
    if isinstance(kind, GossipMatrix):
        ratios = [float(weight).as_integer_ratio() for weight in kind.entries]
        return [top for top, _ in ratios], [bottom for _, bottom in ratios]
    denominators: list[int] = edge_denominators(graph, kind).tolist() if graph.m else []
    return [1] * len(denominators), denominators


def edge_denominators(graph: Graph, kind: str = "metropolis") -> IntArray:
    """The weight of every entry of the adjacency matrix as 1/denominator, exactly: W is rational.

    Aligned with `graph.indices`. `netdp.families.gossip.account.krylov` uses it where floating point cannot decide.

    >>> from netdp.graphs import path
    >>> edge_denominators(path(4), "lazy-metropolis").tolist()
    [6, 6, 6, 6, 6, 6]
    """
    if kind not in MIXINGS:
        raise InvalidValue(f"no mixing is called {kind!r}; choose one of {', '.join(MIXINGS)}")
    degrees = graph.degrees.astype(np.int64)
    if not kind.endswith("maximum-degree"):
        larger = np.maximum(degrees[csr.rows_of(graph.indptr)], degrees[graph.indices])
        denominators = larger + (1 if kind.endswith("metropolis") else 0)
    else:
        denominators = np.full(graph.indices.size, 1 + degrees.max(), dtype=np.int64)
    return denominators * (2 if kind.startswith("lazy-") else 1)


def check_gossip_matrix(W: Any, graph: Graph, *, tolerance: float = 1e-9) -> Any:
    """Return W as a `csr_array` if it is a gossip matrix over the graph (Muffliato, Definition 1).

    Signs and the support are checked exactly; symmetry and row sums up to `tolerance`.

    Raises:
        InvalidValue: names the first entry or row that breaks the definition.

    >>> from netdp.graphs import path
    >>> check_gossip_matrix(np.eye(3)[::-1], path(3))
    Traceback (most recent call last):
    netdp.errors.InvalidValue: W[0, 2] = 1 but {0, 2} is no edge of Graph('path(3)', n=3, m=2); ...
    """
    from scipy.sparse import coo_array, csr_array

    if len(getattr(W, "shape", np.shape(W))) != 2:
        raise InvalidValue(f"a gossip matrix has two axes, not {len(np.shape(W))}")
    W = csr_array(W, dtype=np.float64)
    W.sum_duplicates()
    if W.shape != (graph.n, graph.n):
        raise InvalidValue(f"W has shape {W.shape}; over {graph!r} it must be ({graph.n}, {graph.n})")
    entries = coo_array(W)
    rows, cols, values = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data

    def refuse_first(wrong: Any, problem: str) -> None:
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            u, v = int(rows[i]), int(cols[i])
            text = problem.format(u=u, v=v, other=float(W[v, u]), graph=graph)
            raise InvalidValue(f"W[{u}, {v}] = {values[i]:g} {text}")

    refuse_first(~np.isfinite(values), "is not finite; a gossip matrix has entries in [0, 1]")
    refuse_first(values < 0, "is negative; a gossip matrix has entries in [0, 1]")
    edges = csr.rows_of(graph.indptr) * graph.n + graph.indices  # sorted
    keys = rows * graph.n + cols
    place = np.minimum(np.searchsorted(edges, keys), max(edges.size - 1, 0))
    allowed = (rows == cols) | (edges[place] == keys if edges.size else False)
    refuse_first((values != 0) & ~allowed, "but {{{u}, {v}}} is no edge of {graph!r}; use weights on edges only")
    mirrored = csr_array(W - W.T)
    mirrored.eliminate_zeros()
    off = coo_array(mirrored)
    wrong = np.flatnonzero(np.abs(off.data) > tolerance)
    if wrong.size:
        u, v = int(off.row[wrong[0]]), int(off.col[wrong[0]])
        raise InvalidValue(
            f"W[{u}, {v}] = {W[u, v]:g} but W[{v}, {u}] = {W[v, u]:g}; a gossip matrix is symmetric, "
            "as mixing.metropolis(graph) is"
        )
    sums = np.asarray(W.sum(axis=1))
    far = np.flatnonzero(np.abs(sums - 1) > tolerance)
    if far.size:
        raise InvalidValue(
            f"row {far[0]} of W sums to {sums[far[0]]:.12g}, not 1; put the rest on W[{far[0]}, {far[0]}]"
        )
    return W
