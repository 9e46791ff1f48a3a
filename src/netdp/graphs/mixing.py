"""Gossip matrices: how much of each neighbour's value a node takes in one round.

A gossip matrix over a graph (Cyffers, Even, Bellet and Massoulié, *Muffliato*, NeurIPS 2022, Definition 1) is
symmetric and non-negative, its rows sum to 1, and off the diagonal it is zero wherever there is no edge.
All of those made here, but for "hamilton", have a positive diagonal, so on a connected graph their powers converge to the mean.
Weights of one's own are a `GossipMatrix` (`netdp.graphs.matrix`).

>>> from netdp.graphs import ring
>>> metropolis(ring(3)).toarray().round(3)
array([[0.333, 0.333, 0.333],
       [0.333, 0.333, 0.333],
       [0.333, 0.333, 0.333]])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs.graph import Graph
from netdp.graphs.matrix import GossipMatrix, gossip_matrix
from netdp.numerics.arrays import FloatArray, IntArray

from . import _csr

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
    rows = _csr.rows_of(graph.indptr)
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
    for it here. (The authors' code of the figures comes out as Metropolis: netdp.reproduce.muffliato.)
    It sends more than Metropolis, and on regular bipartite graphs (even rings, tori, hypercubes) too much: −1 is an
    eigenvalue there and gossip swings for ever. The lazy one converges everywhere.

    >>> from netdp.graphs import path
    >>> hamilton(path(3)).toarray().tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    """
    degrees = graph.degrees
    rows = _csr.rows_of(graph.indptr)
    return _with_diagonal(graph, 1.0 / np.maximum(degrees[rows], degrees[graph.indices]))


def _with_diagonal(graph: Graph, weights: FloatArray) -> Any:
    from scipy.sparse import csr_array, dia_array

    off = _csr.matrix(graph.indptr, graph.indices, weights)
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

    Aligned with `graph.indices`. `netdp.accounting.gossip.wide` uses it where floating point cannot decide.

    >>> from netdp.graphs import path
    >>> edge_denominators(path(4), "lazy-metropolis").tolist()
    [6, 6, 6, 6, 6, 6]
    """
    if kind not in MIXINGS:
        raise InvalidValue(f"no mixing is called {kind!r}; choose one of {', '.join(MIXINGS)}")
    degrees = graph.degrees.astype(np.int64)
    if not kind.endswith("maximum-degree"):
        larger = np.maximum(degrees[_csr.rows_of(graph.indptr)], degrees[graph.indices])
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
    edges = _csr.rows_of(graph.indptr) * graph.n + graph.indices  # sorted
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
