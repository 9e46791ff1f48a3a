"""Network shuffling (Liew, Kato, Takahashi, Takagi, Cao and Yoshikawa, *Network Shuffling*, SIGMOD 2022).

Every user randomizes its value with an ε₀-DP local randomizer and encrypts the report for the curator. In each of t rounds
every report moves from its holder to a uniformly random neighbour, independently of all other reports; with laziness ℓ it
stays where it is with probability ℓ (drawn for each report, not for each user). Then the curator collects:

    reporting="all"      every user hands over all reports it holds, or none (Algorithm 1)
    reporting="single"   every user hands over one of them, chosen uniformly; a dummy if it holds none (Algorithm 2)

The curator sees which user handed over which reports, but not the way they came.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from netdp.errors import GraphError, InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.graphs.transitions import transition_matrix
from netdp.numerics.checks import count, non_negative, positive

from .base import OnGraph

REPORTINGS = ("all", "single")


@dataclass(frozen=True)
class Shuffle(OnGraph):
    """Randomized reports that hop through a network before a curator collects them.

    Parameters
    ----------
    graph : a `Graph` in which everybody has a neighbour; bipartite ones (or components) need laziness, or the walk never mixes.
        Reports stay in their component: users hide among those of theirs.
    rounds : t ≥ 1, hops per report.
    epsilon0 : the local-DP loss of the randomizer.
    reporting : "all" or "single".
    laziness : ℓ in [0, 1).
    delta0 : δ₀ of an (ε₀, δ₀) randomizer such as the Gaussian; 0 for pure ones.

    >>> from netdp import graphs
    >>> Shuffle(graphs.ring(4), rounds=10, epsilon0=1.0)
    Traceback (most recent call last):
      ...
    netdp.errors.GraphError: Graph('ring(4)', n=4, m=4) is bipartite: its two halves never mix; set laziness=0.5
    """

    kind: ClassVar[str] = "shuffle"
    roles: ClassVar[tuple[str, ...]] = ("curator",)
    answer: ClassVar[str] = "what the randomizer estimates, at the curator"
    graph: Graph
    rounds: int
    epsilon0: float
    reporting: str = "all"
    laziness: float = 0.0
    delta0: float = 0.0

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "Shuffle"))
        object.__setattr__(self, "rounds", count("rounds", self.rounds))
        object.__setattr__(self, "epsilon0", positive("epsilon0", self.epsilon0))
        for name in ("laziness", "delta0"):
            value = non_negative(name, getattr(self, name))
            if value >= 1:
                raise InvalidValue(f"{name} must lie in [0, 1), got {value!r}")
            object.__setattr__(self, name, value)
        if self.reporting not in REPORTINGS:
            raise InvalidValue(f"unknown reporting {self.reporting!r}; choose one of {', '.join(REPORTINGS)}")
        if self.graph.n < 2:
            raise GraphError(f"{self.graph!r} has a single user: there is nobody to shuffle with")
        alone = np.flatnonzero(self.graph.degrees == 0)
        if alone.size:
            who = self.graph.label(int(alone[0]))
            raise GraphError(
                f"user {who} of {self.graph!r} has no neighbour ({alone.size} such users): there is nobody to shuffle with; "
                "leave them out: graph.subgraph(nodes)"
            )
        if not self.graph.is_connected and self.reporting == "single":
            raise GraphError(
                f'{self.graph!r} is not connected: reporting="single" drops reports at another rate in every component, and '
                "the estimate would be biased. Collect each component on its own (graph.subgraph), or take reporting='all'"
            )
        if self.laziness == 0:
            self._refuse_bipartite()

    def _refuse_bipartite(self) -> None:
        if self.graph.is_connected:
            if self.graph.is_bipartite:
                raise GraphError(f"{self.graph!r} is bipartite: its two halves never mix; set laziness=0.5")
            return
        label = self.graph.components()
        for c in range(int(label.max()) + 1):
            users = np.flatnonzero(label == c)
            if self.graph.subgraph(users.tolist()).is_bipartite:
                first = int(users[0])
                who = self.graph.label(first)
                raise GraphError(
                    f"the component of user {who} ({len(users)} of the {self.n} users of {self.graph!r}) is bipartite: its "
                    "two halves never mix; set laziness=0.5"
                )

    @cached_property
    def transition(self) -> Any:
        """P[u, w] of one hop, laziness included (CSR)."""
        from scipy.sparse import csr_array, eye_array

        hop = transition_matrix(self.graph, "simple")
        if not self.laziness:
            return hop
        P = csr_array(self.laziness * eye_array(self.n) + (1 - self.laziness) * hop)
        P.sort_indices()
        return P

    @property
    def stationary(self) -> Any:
        """π_u = d_u/2m: where a report is in the long run; m counts the edges of u's component, which it never leaves."""
        part = self.graph.components()
        return self.graph.degrees / np.bincount(part, weights=self.graph.degrees)[part]

    def describe(self) -> str:
        lazy = f" laziness={self.laziness:g}" if self.laziness else ""
        delta0 = f", δ₀={self.delta0:g}" if self.delta0 else ""
        return (
            f"{self.graph.name}: {self.n:,} users, {self.graph.m:,} edges; shuffling with ε₀={self.epsilon0:g}{delta0} "
            f"reports, {self.rounds} hops{lazy}, reporting {self.reporting}"
        )
