"""Push-sum: averaging along one-way links.

    s⁰ = x + σ·η,  w⁰ = 1
    every party j splits (s_j, w_j) into equal shares, one for itself and one for each party it has a link to
    party i adds up what it gets:   sᵗ⁺¹ = A sᵗ,  wᵗ⁺¹ = A wᵗ,   A_ij = 1/(1 + links out of j)
    the estimate of party i is s_i/w_i

(Kempe, Dobra and Gehrke, FOCS 2003.) A has columns of sum 1, so Σs and Σw stay what they are; on a strongly connected graph
both settle to multiples of one vector, and the ratio to the mean. The weights w depend on the links alone, which are public.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from netdp.errors import GraphError, InvalidValue
from netdp.graphs import Graph
from netdp.graphs.convert import is_networkx, node_names
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, scale

from .base import Protocol


@dataclass(frozen=True)
class PushSum(Protocol):
    """Private averaging on a directed graph: shares are pushed along one-way links.

    Parameters
    ----------
    n : number of parties.
    links : pairs (from, to); every party must be able to reach every other along them. `PushSum.on(G, …)` takes a NetworkX graph.
    rounds : T ≥ 1, how many times every party sends.
    sigma : standard deviation of the noise that each party adds to its value.
    sensitivity : Δ, the largest L2 distance between two values of one party.

    >>> p = PushSum(3, [(0, 1), (1, 2), (2, 0)], rounds=4, sigma=1.0)
    >>> p.matrix.toarray().tolist()
    [[0.5, 0.0, 0.5], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """

    kind: ClassVar[str] = "push-sum"
    n: int
    links: tuple[tuple[int, int], ...]
    rounds: int
    sigma: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        self._set(n=count("n", self.n), rounds=count("rounds", self.rounds))
        for name in ("sigma", "sensitivity"):
            self._set(**{name: scale(name, getattr(self, name))})
        if isinstance(self.links, Graph) or is_networkx(self.links) or not isinstance(self.links, Iterable):
            raise InvalidValue(
                "links are pairs (from, to) of party numbers; PushSum.on(G, rounds=…, sigma=…) takes a graph"
            )
        pairs = np.array(sorted({tuple(link) for link in self.links}))
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise InvalidValue("links must be a list of pairs (from, to) of party numbers, such as [(0, 1), (1, 0)]")
        wrong = pairs[((pairs < 0) | (pairs >= self.n)).any(axis=1) | (pairs[:, 0] == pairs[:, 1])]
        if len(wrong):
            raise InvalidValue(
                f"the link {tuple(wrong[0].tolist())} must join two different parties out of 0 to {self.n - 1}"
            )
        self._set(links=tuple((int(a), int(b)) for a, b in pairs))
        parts, label = connected_components(self.matrix, directed=True, connection="strong")
        if parts > 1:
            lone = int(np.flatnonzero(label != label[0])[0])
            raise GraphError(
                f"parties 0 and {lone} cannot both reach each other along the links, so the mean is never reached; push-sum "
                "needs a strongly connected graph"
            )

    @classmethod
    def on(cls, graph: Any, *, rounds: int, sigma: float, sensitivity: float = 1.0) -> PushSum:
        """Push-sum along the arrows of a NetworkX graph (both ways if it is undirected), or along the edges of a `Graph`.

        >>> import networkx as nx
        >>> PushSum.on(nx.DiGraph([(0, 1), (1, 2), (2, 0)]), rounds=2, sigma=1.0).links
        ((0, 1), (1, 2), (2, 0))
        """
        if isinstance(graph, Graph):
            edges = graph.edges()
            return cls(
                graph.n, tuple(map(tuple, np.vstack([edges, edges[:, ::-1]]).tolist())), rounds, sigma, sensitivity
            )
        if not is_networkx(graph):
            raise InvalidValue(f"PushSum.on takes a NetworkX graph or a netdp Graph, got {type(graph).__name__}")
        nodes, _ = node_names(graph)
        number = {node: i for i, node in enumerate(nodes)}
        links = {(number[a], number[b]) for a, b in graph.edges() if a != b}
        if not graph.is_directed():
            links |= {(b, a) for a, b in links}
        return cls(len(nodes), tuple(sorted(links)), rounds, sigma, sensitivity)

    @property
    def local_mu(self) -> float:
        """μ of local DP, Δ/σ: more than any share of a first message says."""
        return self.sensitivity / self.sigma

    @cached_property
    def splits(self) -> IntArray:
        """Into how many shares each party splits what it has: 1 + links out of it."""
        return 1 + np.bincount([a for a, _ in self.links], minlength=self.n)

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """A: columns sum to 1."""
        source, target = np.array(self.links).T
        rows = np.concatenate([target, np.arange(self.n)])
        columns = np.concatenate([source, np.arange(self.n)])
        A = sparse.csr_array((1.0 / self.splits[columns], (rows, columns)), shape=(self.n, self.n))
        A.sort_indices()
        return A

    @cached_property
    def weights(self) -> FloatArray:
        """w after the last round: public, and what the final s is divided by."""
        w = np.ones(self.n)
        for _ in range(self.rounds):
            w = self.matrix @ w
        return np.asarray(w)

    def prepare(self) -> None:
        self.matrix, self.weights  # noqa: B018

    def describe(self) -> str:
        return (
            f"{self.n:,} parties, {len(self.links):,} one-way links; push-sum T={self.rounds} σ={self.sigma:g} "
            f"Δ={self.sensitivity:g}"
        )
