"""Gossip on changing graphs, one public graph per round or graphs drawn at random, and push-sum along one-way links.

The steps are written down in docs/proofs/gossip.md#gossip-steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.families.gossip.protocol import Gossip, NoisyStates
from netdp.graphs.convert import as_graph, is_networkx, node_names
from netdp.graphs.families import erdos_renyi
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import (
    ALIASES,
    MIXINGS,
    GossipMatrix,
    Mixing,
    as_mixing,
    edge_denominators,
    gossip_matrix,
    mixing_matrix,
)
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, finite_variance, non_negative, positive, scale, switch
from netdp.protocols.base import Protocol
from netdp.protocols.grid import grid_step, squared_steps


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


# An Erdős–Rényi graph is drawn again until it is connected, at most this often.
_ATTEMPTS = 1000


@dataclass(frozen=True)
class VaryingGossip(NoisyStates, Protocol):
    """Private averaging on a sequence of public graphs, one per round; plain steps.

    Parameters
    ----------
    graphs : one `Graph` per round, all on the same n parties. A single one need not be connected; all of them laid over
        each other must be, else some party's value can never reach some other. That is necessary for reaching the mean,
        not sufficient: how near the answer comes is what `netdp.expected_error` says.
    sigma : standard deviation of the noise that each party adds to its value.
    sensitivity : Δ, the largest L2 distance between two values of one party.
    mixing : name of the gossip matrix of every round, see `netdp.graphs.mixing`; or a `netdp.graphs.GossipMatrix` per round.
        Matrices of your own may also stand in the place of the graphs: `VaryingGossip([W0, W1], sigma=1.0)`.
    refresh : r ≥ 0; fresh noise of variance r·σ²/rounds is added by everybody before every round but the first.
    grid : None for real numbers; or the step of a grid, a power of two: states are then rounded to it after every step.
    dimension : how many numbers a value has, at most. On a grid every one of them is rounded.

    >>> from netdp.graphs import Graph
    >>> pairs = [Graph.from_edges(4, [(0, 1), (2, 3)]), Graph.from_edges(4, [(0, 2), (1, 3)])]
    >>> VaryingGossip(pairs, sigma=1.0).rounds             # two rounds of matchings average four values perfectly
    2
    """

    kind: ClassVar[str] = "varying-gossip"
    graphs: tuple[Graph, ...]
    sigma: float
    sensitivity: float = 1.0
    mixing: Mixing | tuple[GossipMatrix, ...] = "metropolis"
    refresh: float = 0.0
    grid: float | None = None
    dimension: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.graphs, Graph) or not isinstance(self.graphs, Iterable):
            raise InvalidValue("graphs must be a sequence of netdp Graphs, one per round; for one graph use Gossip")
        given: tuple[Any, ...] = tuple(self.graphs)
        if given and not any(_is_graph(graph) for graph in given):  # matrices: each brings its graph
            if self.mixing != "metropolis":
                raise InvalidValue("the rounds are matrices already; leave mixing= out, or give graphs")
            own = tuple(W if isinstance(W, GossipMatrix) else gossip_matrix(W) for W in given)
            self._set(mixing=own)
            given = tuple(W.graph for W in own)
        self._set(graphs=tuple(as_graph(graph, f"graphs[{t}]") for t, graph in enumerate(given)))
        if not self.graphs:
            raise InvalidValue("graphs is empty; give one graph per round")
        ordered, mixing = in_one_order(self.graphs, mixings(self.mixing, self.graphs))
        self._set(graphs=ordered, mixing=mixing)
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        if self.graphs[0].n < 2:
            raise InvalidValue("gossip needs at least two parties, the graphs have 1")
        self.graph.require_connected("gossip on changing graphs: the union of all rounds")
        self._set(refresh=non_negative("refresh", self.refresh), dimension=count("dimension", self.dimension))
        finite_variance("refresh", self.refresh, self.sigma)
        self._set(grid=grid_step(self.grid))
        if self.grid is None:
            return
        if not isinstance(self.mixing, str):
            raise InvalidValue(
                "weights of your own on a grid: the steps of a wire divide by whole numbers, which only the named mixings do; name "
                "one, such as 'metropolis', or set grid=None for real numbers"
            )
        self._check_room(self.rounds - 1, self.room, "2⁵⁸ steps, Δ too")

    @property
    def fresh_variance(self) -> int:
        """On a grid: the parameter of the fresh noise, r·σ²/T in squared steps, rounded up; 0 without refresh."""
        return squared_steps(Fraction(self.refresh) * Fraction(self.sigma) ** 2 / self.rounds, self.step)

    @property
    def refresh_variance(self) -> float:
        """τ², the variance of the fresh noise before one send."""
        return self.refresh * self.sigma**2 / self.rounds

    def round_of(self, t: int) -> tuple[Graph, IntArray]:
        """Who talks to whom in round t, and the denominators of the weights, aligned with the graph's indices."""
        return self.graphs[t], self._denominators[t]

    @cached_property
    def _denominators(self) -> tuple[IntArray, ...]:
        if not isinstance(self.mixing, str):
            raise InvalidValue("weights of your own are no unit fractions; only named mixings have denominators")
        name, made = self.mixing, dict[str, IntArray]()
        for graph in self.graphs:
            if graph.digest not in made:
                made[graph.digest] = edge_denominators(graph, name)
        return tuple(made[graph.digest] for graph in self.graphs)

    @property
    def rounds(self) -> int:
        """T, how many times every party sends."""
        return len(self.graphs)

    @cached_property
    def graph(self) -> Graph:
        """Every edge that occurs in some round."""
        first = _naming(self.graphs)
        distinct = {graph.digest: graph for graph in self.graphs}.values()
        edges = np.unique(np.vstack([graph.edges() for graph in distinct]), axis=0)
        return Graph.from_edges(first.n, edges, name=f"union of {self.rounds} rounds", labels=first.labels)

    @cached_property
    def matrices(self) -> tuple[sparse.csr_array, ...]:
        """W_0 … W_{T−1}; rounds on the same graph share one matrix."""
        made: dict[Any, Any] = {}
        for key in self.keys:
            if key not in made:
                made[key] = mixing_matrix(*key)
        return tuple(made[key] for key in self.keys)

    @cached_property
    def keys(self) -> tuple[tuple[Graph, Mixing], ...]:
        """Graph and mixing of every round: equal keys have equal matrices."""
        return tuple((graph, self.mixing_of(t)) for t, graph in enumerate(self.graphs))

    def mixing_of(self, round_: int) -> Mixing:
        """The mixing of one round."""
        return self.mixing[round_] if isinstance(self.mixing, tuple) else self.mixing

    @property
    def n(self) -> int:
        """How many parties there are."""
        return self.graphs[0].n

    @property
    def network(self) -> Graph:
        return self.graph

    def prepare(self) -> None:
        self.matrices  # noqa: B018

    def describe(self) -> str:
        return (
            f"{self.n:,} parties; gossip on {self.rounds} public graphs, one per round, "
            f"σ={self.sigma:g} Δ={self.sensitivity:g}"
            + (f" refresh={self.refresh:g}" if self.refresh else "")
            + (f" on a grid of {self.grid:g}" if self.grid is not None else "")
        )


def mixings(value: Any, graphs: tuple[Graph, ...]) -> Mixing | tuple[GossipMatrix, ...]:
    """The mixing of a sequence of graphs, checked: a name, one matrix for equal graphs, or one matrix per graph."""
    if isinstance(value, list | tuple) and len(value) == len(graphs):
        checked = [as_mixing(given, graph) for given, graph in zip(value, graphs, strict=True)]
        if all(isinstance(one, GossipMatrix) for one in checked):
            return tuple(one for one in checked if isinstance(one, GossipMatrix))
    elif isinstance(value, str):
        return as_mixing(value, graphs[0])
    elif isinstance(value, GossipMatrix) and len(set(graphs)) == 1:
        return mixings((value,) * len(graphs), graphs)
    raise InvalidValue(
        f"the mixing of {len(graphs)} graphs is a name such as 'metropolis', or a list of as many GossipMatrix, one per graph"
    )


def in_one_order(
    graphs: tuple[Graph, ...], mixing: Mixing | tuple[GossipMatrix, ...]
) -> tuple[tuple[Graph, ...], Mixing | tuple[GossipMatrix, ...]]:
    """Graphs on the same people, who may be numbered differently in each: numbered alike, and weights of one's own with them."""
    named = _naming(graphs)
    if isinstance(mixing, tuple):
        mixing = tuple(W.in_order_of(named) for W in mixing)
    return tuple(graph.in_order_of(named) for graph in graphs), mixing


def _naming(graphs: tuple[Graph, ...]) -> Graph:
    """The first graph that names the parties, if one does."""
    return next((graph for graph in graphs if graph.labels is not None), graphs[0])


def _is_graph(value: Any) -> bool:
    return isinstance(value, Graph) or is_networkx(value)


def drawn_graphs(n: int, p: Any, mixing: str) -> dict[str, Any]:
    """The fields p and mixing of gossip on Erdős–Rényi graphs of n parties, checked."""
    if n < 2:
        raise InvalidValue(f"gossip needs at least two parties, n is {n}")
    chance, name = positive("p", p), ALIASES.get(mixing, mixing)
    if chance > 1:
        raise InvalidValue(f"p must be a probability, 0 < p ≤ 1, got {chance}")
    if name not in MIXINGS:
        raise InvalidValue(f"unknown mixing {name!r}; choose one of {', '.join(MIXINGS)}")
    return {"p": chance, "mixing": name}


@dataclass(frozen=True)
class ErdosRenyiGossip(Protocol):
    """Gossip on an Erdős–Rényi graph that is drawn anew for every run (Muffliato, section 3.4).

    Parameters
    ----------
    n : number of parties.
    p : probability of every edge. About c·ln(n)/n with c > 1 makes a graph connected with high probability.
    rounds, sigma, sensitivity, mixing, accelerated : as in `Gossip`.
    varying : draw another graph for every round, instead of one for the whole run; plain steps only.

    `draw(seed)` is the protocol that `simulate` with this seed runs. One graph for the whole run is drawn again until it
    is connected: on a disconnected one the answer would be wrong for good, and connectedness does not
    depend on how the parties are numbered, so the law stays the same for all of them. Graphs that vary by round
    are taken as they come, isolated parties included (they wait a round); only their union must be connected.

    >>> protocol = ErdosRenyiGossip(n=30, p=0.2, rounds=5, sigma=1.0)
    >>> protocol.draw(seed=3).graph
    Graph('erdos_renyi(30, 0.2)', n=30, m=74)
    """

    kind: ClassVar[str] = "erdos-renyi-gossip"
    n: int
    p: float
    rounds: int
    sigma: float
    sensitivity: float = 1.0
    mixing: str = "metropolis"
    accelerated: bool = False
    varying: bool = False

    def __post_init__(self) -> None:
        self._set(n=count("n", self.n), rounds=count("rounds", self.rounds))
        self._set(**drawn_graphs(self.n, self.p, self.mixing))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        for name in ("accelerated", "varying"):
            switch(name, getattr(self, name))
        if self.accelerated and self.varying:
            raise InvalidValue("acceleration is for one graph; set accelerated=False or varying=False")

    @property
    def local_mu(self) -> float:
        """μ of local DP, Δ/σ."""
        return self.sensitivity / self.sigma

    def on(self, graphs: Sequence[Graph]) -> Gossip | VaryingGossip:
        """The same on graphs that are drawn: one per round if they vary, else one."""
        common: dict[str, Any] = {"sigma": self.sigma, "sensitivity": self.sensitivity, "mixing": self.mixing}
        if self.varying:
            return VaryingGossip(tuple(graphs), **common)
        return Gossip(graphs[0], rounds=self.rounds, accelerated=self.accelerated, **common)

    def draw(self, seed: int) -> Gossip | VaryingGossip:
        """The protocol of one run, its graphs drawn; from a stream that the noise of the run does not share."""
        rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
        if self.varying:
            return self.on([erdos_renyi(self.n, self.p, rng) for _ in range(self.rounds)])
        for _ in range(_ATTEMPTS):
            graph = erdos_renyi(self.n, self.p, rng)
            if graph.is_connected:
                return self.on([graph])
        raise Unsupported(
            f"{_ATTEMPTS} draws of erdos_renyi({self.n}, {self.p:g}) were all disconnected; "
            f"take p well above ln(n)/n = {np.log(self.n) / self.n:.3g}, or varying=True"
        )

    def describe(self) -> str:
        return (
            f"{self.n:,} parties; {self.rounds} rounds of gossip on a random graph, every edge with probability {self.p:g}"
            f"{', drawn anew in every round' if self.varying else ''}, σ={self.sigma:g} Δ={self.sensitivity:g}"
        )
