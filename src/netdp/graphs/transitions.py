"""Random walks on a graph: where a token or a report goes next.

Two walks are named, "metropolis" and "simple". A `Transition` is any other: a row-stochastic matrix, on a directed graph too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from netdp.errors import GraphError, InvalidValue
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.checks import count

WALKS = ("metropolis", "simple")

_LEAST = 1e-200  # how unlikely an arrow may be


def transition_matrix(graph: Graph, walk: str | Transition = "simple") -> Any:
    """The transition matrix of the simple or the Metropolis walk, or of a `Transition`, as a CSR array with sorted indices.

    Simple: P_uw = 1/d_u, in the long run at u with probability d_u/2m. Metropolis: P_uw = min(1/d_u, 1/d_w), the rest stays
    at u; in the long run everywhere alike.

    >>> from netdp import graphs
    >>> transition_matrix(graphs.path(3), "metropolis").toarray().round(3).tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    """
    from scipy.sparse import csr_array, dia_array

    if isinstance(walk, Transition):
        return walk.matrix
    degrees = graph.degrees
    rows = np.repeat(np.arange(graph.n), degrees)
    columns = np.asarray(graph.indices)
    if walk == "simple":
        P = csr_array((1.0 / degrees[rows], columns, graph.indptr), shape=(graph.n, graph.n))
    else:
        weights = 1.0 / np.maximum(degrees[rows], degrees[columns])
        off = csr_array((weights, columns, graph.indptr), shape=(graph.n, graph.n))
        rest = np.maximum(1.0 - np.bincount(rows, weights=weights, minlength=graph.n), 0.0)
        P = csr_array(off + dia_array((rest[None, :], [0]), shape=off.shape))
    P.sort_indices()
    return P


class Transition:
    """Where a token goes from each node, with which probability: any strongly connected walk, directed or not.

    arrows : (m, 2) pairs from, to; a pair u, u means that the token may stay.
    weights : (m,) positive; those of each node are scaled to sum to 1. None: equal.

    `graph` is the undirected graph of who has a link with whom; `matrix` is P, `stationary` where the token is in the long
    run. Immutable, hashable, written as plain data by `to_dict`.

    >>> cycle = Transition(3, [(0, 1), (1, 2), (2, 0), (2, 1)], weights=[1, 1, 3, 1])
    >>> cycle.matrix.toarray().tolist(), cycle.stationary.round(3).tolist()
    ([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.75, 0.25, 0.0]], [0.273, 0.364, 0.364])
    """

    __slots__ = ("_chances", "_ends", "_memo", "graph")
    graph: Graph
    _ends: IntArray
    _chances: FloatArray
    _memo: dict[str, Any]

    def __init__(
        self,
        n: int,
        arrows: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        *,
        labels: Any = None,
        name: str = "directed graph",
    ) -> None:
        n = count("n", n)
        ends = np.asarray(arrows)
        if ends.ndim != 2 or ends.shape[1:] != (2,) or ends.dtype.kind not in "iu" or not len(ends):
            raise GraphError(f"arrows must be a list of pairs (from, to) of whole numbers, got shape {ends.shape}")
        ends = ends.astype(np.int64)
        if ends.min() < 0 or ends.max() >= n:
            wrong = ends[((ends < 0) | (ends >= n)).any(axis=1)][0].tolist()
            raise GraphError(f"the arrow {tuple(wrong)} leaves the nodes 0 to {n - 1}")
        chances = np.ones(len(ends)) if weights is None else np.asarray(weights, dtype=np.float64)
        if chances.shape != (len(ends),) or not (np.isfinite(chances).all() and (chances > 0).all()):
            raise GraphError("weights must be finite numbers > 0, one per arrow; leave out arrows that are never taken")
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        ends, chances = ends[order], chances[order]
        twice = np.flatnonzero((np.diff(ends, axis=0) == 0).all(axis=1))
        if twice.size:
            raise GraphError(f"the arrow {tuple(ends[twice[0]].tolist())} is listed more than once; add the weights up")
        with np.errstate(over="ignore"):
            out = np.bincount(ends[:, 0], weights=chances, minlength=n)
        if (out == 0).any():
            raise GraphError(f"no arrow leaves node {int(np.argmin(out))}: a token that gets there is lost")
        # scaled unless that would change last digits only: what is read back is what was written
        scaled = np.abs(out - 1) > 4 * UNIT * (np.bincount(ends[:, 0], minlength=n) + 1)
        with np.errstate(over="ignore", under="ignore"):
            chances = np.where(scaled[ends[:, 0]], chances / out[ends[:, 0]], chances)
        if not (np.isfinite(out).all() and (chances >= _LEAST).all()):
            raise GraphError(
                f"the weights of the arrows that leave one node may differ by a factor of {1 / _LEAST:g} at most, and their sum "
                "must be a finite number; leave out arrows that are never taken"
            )
        proper = ends[ends[:, 0] != ends[:, 1]]
        keys = np.unique(proper.min(axis=1) * n + proper.max(axis=1))
        self._hold(Graph.from_edges(n, np.column_stack(np.divmod(keys, n)), name=name, labels=labels), ends, chances)
        self._check_strongly_connected()

    def _hold(self, graph: Graph, ends: IntArray, chances: FloatArray) -> None:
        ends.setflags(write=False)
        chances.setflags(write=False)
        for name, value in (("graph", graph), ("_ends", ends), ("_chances", chances), ("_memo", {})):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Transition does not change; make another one instead of setting {name}")

    def _check_strongly_connected(self) -> None:
        from scipy.sparse.csgraph import connected_components

        parts, where = connected_components(self.matrix, directed=True, connection="strong")
        if parts > 1:
            alone = int(np.argmin(np.bincount(where)[where]))
            raise GraphError(
                f"the walk does not come back from everywhere: {parts} strongly connected parts, node "
                f"{alone} in a small one; keep one part, networkx.strongly_connected_components names them"
            )

    @property
    def n(self) -> int:
        """How many nodes there are."""
        return self.graph.n

    @property
    def matrix(self) -> Any:
        """P as a CSR array: P[u, w] is the probability that the token goes from u to w."""
        if "matrix" not in self._memo:
            from scipy.sparse import csr_array

            P = csr_array((self._chances, (self._ends[:, 0], self._ends[:, 1])), shape=(self.n, self.n))
            P.sort_indices()
            self._memo["matrix"] = P
        return self._memo["matrix"]

    @property
    def stationary(self) -> FloatArray:
        """π with πP = π, in floating point; a walk starts from just these numbers, so nothing rests on their last digits."""
        if "stationary" not in self._memo:
            from scipy.sparse import csr_array, eye_array, vstack
            from scipy.sparse.linalg import spsolve

            n = self.n
            if n == 1:
                return np.ones(1)
            system = (eye_array(n) - self.matrix.T).tocsr()[: n - 1]
            system = csr_array(vstack([system, csr_array(np.ones((1, n)))]))
            right = np.zeros(n)
            right[-1] = 1.0
            pi = np.maximum(np.asarray(spsolve(system.tocsc(), right)), 0.0)
            pi /= pi.sum()
            pi.setflags(write=False)
            self._memo["stationary"] = pi
        return np.asarray(self._memo["stationary"])

    @classmethod
    def from_networkx(cls, G: Any, *, weight: str | None = None, name: str | None = None) -> Self:
        """The walk along the arrows of a NetworkX DiGraph, each out-neighbour alike, or by the edge attribute `weight`.

        >>> import networkx as nx
        >>> Transition.from_networkx(nx.DiGraph([("ann", "bob"), ("bob", "cy"), ("cy", "ann")])).graph.labels
        ('ann', 'bob', 'cy')
        """
        from .convert import node_names

        nodes, labels = node_names(G)
        number = {node: i for i, node in enumerate(nodes)}
        collected: dict[tuple[int, int], float] = {}
        for u, w, given in G.edges(data=weight, default=1.0) if weight else ((*edge, 1.0) for edge in G.edges()):
            if isinstance(given, bool) or not isinstance(given, int | float | np.number):
                raise GraphError(f"the edge ({u!r}, {w!r}) has the weight {given!r}; walks need numbers > 0")
            pair = (number[u], number[w])
            collected[pair] = collected.get(pair, 0.0) + float(given)
            if not G.is_directed() and u != w:
                collected[pair[::-1]] = collected.get(pair[::-1], 0.0) + float(given)
        return cls(
            len(nodes),
            np.array(list(collected), dtype=np.int64).reshape(-1, 2),
            list(collected.values()) if weight else None,
            labels=labels,
            name=name or str(getattr(G, "name", "")) or "directed graph",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` reads it back."""
        labels = None if self.graph.labels is None else list(self.graph.labels)
        return {
            "n": self.n,
            "arrows": self._ends.tolist(),
            "weights": self._chances.tolist(),
            "name": self.graph.name,
            "labels": labels,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; anything unknown is refused."""
        known = {"n", "arrows", "weights", "name", "labels"}
        if not isinstance(data, Mapping) or set(data) - known or not {"n", "arrows"} <= set(data):
            raise InvalidValue(f"a walk is written with n, arrows, weights, name, labels; got {data!r:.80}")
        return cls(
            data["n"],
            data["arrows"],
            data.get("weights"),
            labels=data.get("labels"),
            name=data.get("name", "directed graph"),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transition):
            return NotImplemented
        return (
            self.graph == other.graph
            and np.array_equal(self._ends, other._ends)
            and np.array_equal(self._chances, other._chances)
        )

    def __hash__(self) -> int:
        return hash((self.n, self._ends.tobytes(), self._chances.tobytes()))

    def __str__(self) -> str:
        return "along arrows"

    def __repr__(self) -> str:
        return f"Transition({self.graph.name!r}, n={self.n}, arrows={len(self._ends)})"


def transition(G: Any, *, weight: str | None = None) -> Transition:
    """A walk from a NetworkX graph, directed or not: along its arrows, each out-neighbour alike, or by a weight.

    >>> import networkx as nx
    >>> transition(nx.DiGraph([(0, 1), (1, 2), (2, 0), (2, 1)]))
    Transition('directed graph', n=3, arrows=4)
    """
    return Transition.from_networkx(G, weight=weight)
