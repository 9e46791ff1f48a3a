"""Network shuffling: randomized reports hop from user to user before a curator collects them.

Every user randomizes its value with an ε₀-DP local randomizer and encrypts the report for the curator. In each of t rounds
every report moves from its holder to a uniformly random neighbour, independently of all other reports (Liew, Kato, Takahashi,
Takagi, Cao and Yoshikawa, *Network Shuffling*, SIGMOD 2022). Three protocols:

    Shuffle          over direct links that nobody watches
    FaultyShuffle    users are away, queues and messages get lost, links change
    RelayedShuffle   every hop passes through a server that sees who sends how many to whom

`ShuffledView` is what reaches the curator, `ShuffleTranscript` the truth that nobody in the protocol holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.errors import GraphError, InvalidValue
from netdp.graphs.convert import as_graph
from netdp.graphs.graph import Graph
from netdp.graphs.transitions import transition_matrix
from netdp.numerics.arrays import Int32Array
from netdp.numerics.checks import between, count, positive, whole
from netdp.protocols.base import OnGraph, Protocol

ABSENCES = ("unreachable", "silent")


@dataclass(frozen=True, eq=False)
class FaultPattern:
    """Who was away in which round: public, and drawn without a look at reports or their ways.

    away      (rounds, n) True where a user was away and kept its queue
    crashed   (rounds, n) True where a user was away and lost its queue
    severed   (round, from, to), rounds from 0: what one user sent to the other in that round never came, and is lost
    barred    (round, from, to): one user sent nothing to the other; a report that drew it stayed where it was

    Of links there are no rates: these are known afterwards only, of a run on real peers (`netdp.families.shuffle.peer`).

    >>> FaultPattern(np.array([[True, False], [False, False]])).share
    0.25
    """

    away: npt.NDArray[np.bool_] = field(repr=False)
    crashed: Any = field(default=None, repr=False)
    severed: tuple[tuple[int, int, int], ...] = field(default=(), repr=False)
    barred: tuple[tuple[int, int, int], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name in ("severed", "barred"):
            links = tuple(sorted({(int(r), int(u), int(v)) for r, u, v in getattr(self, name)}))
            object.__setattr__(self, name, links)
        for name in ("away", "crashed"):
            given = getattr(self, name)
            if given is None:
                given = np.zeros(np.shape(self.away), dtype=bool)
            table = np.array(given)
            if table.ndim != 2 or table.dtype != np.bool_ or table.shape != np.shape(self.away):
                raise InvalidValue(
                    f"{name} must be a table (rounds, n) of True and False, got shape {table.shape} of {table.dtype}"
                )
            table.setflags(write=False)
            object.__setattr__(self, name, table)
        for r, u, v in (*self.severed, *self.barred):
            if not (0 <= r < self.rounds and 0 <= u < self.n and 0 <= v < self.n):
                raise InvalidValue(
                    f"a link of round {r} from {u} to {v} is named; there are {self.rounds} rounds and {self.n} users"
                )

    def links(self, round_: int, which: str) -> set[int]:
        """Those severed or barred in a round, as from·n + to."""
        return {u * self.n + v for r, u, v in getattr(self, which) if r == round_}

    def is_calm(self, round_: int) -> bool:
        """Whether nothing failed in a round."""
        return not (self.down[round_].any() or self.links(round_, "severed") or self.links(round_, "barred"))

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        """Away for either reason."""
        return np.asarray(self.away | self.crashed)

    @property
    def rounds(self) -> int:
        """How many rounds it is of."""
        return len(self.away)

    @property
    def n(self) -> int:
        """How many users there are."""
        return int(self.away.shape[1])

    @property
    def share(self) -> float:
        """The share of all users and rounds in which somebody was away."""
        return float(self.down.mean()) if self.down.size else 0.0

    def __repr__(self) -> str:
        return f"FaultPattern(rounds={self.rounds}, n={self.n}, {self.share:.1%} away)"


@dataclass(frozen=True)
class FaultyShuffle(Protocol):
    """Randomized reports that hop through a network in which users and messages fail, before a curator collects them.

    What fails, in every round, does not depend on what the reports say and where they go. In the end every user hands over all
    that it holds, when it is back. Who was away in which round, the `FaultPattern`, is public; which reports were lost is not.

    Parameters
    ----------
    graph : a `Graph`, or a tuple of graphs on the same users, taken in turn, one per round. They need not be connected
        one by one; what is certified says what they are worth together.
    rounds : t ≥ 1, hops per report.
    epsilon0, delta0 : the local-DP loss of the randomizer.
    outages : a user is away for the round with this probability in [0, 1), and its *whole queue* waits.
    absent : "unreachable", nothing reaches a user who is away: a report that draws it stays where it is; or "silent", what is
        sent to it arrives all the same (a mailbox), and waits there.
    crashes : a user is away for the round with this probability, and its whole queue is gone for good.
    lost : every single report vanishes with this probability, wherever it is.
    laziness : ℓ in [0, 1), drawn for each report, where an outage is drawn for all reports in one hand at once.
    values, variation : what is known of the randomizer, as of a `Shuffle`.

    >>> from netdp import graphs
    >>> p = FaultyShuffle(graphs.regular(200, 6, seed=1), rounds=40, epsilon0=1.0, outages=0.1)
    >>> p.describe()
    'regular(200, 6): 200 users, 600 edges; shuffling with ε₀=1 reports, 40 hops, 0.1 of the users away in a round \
(unreachable)'
    >>> p.pattern(seed=3).share < 0.2
    True
    """

    kind: ClassVar[str] = "faulty-shuffle"
    roles: ClassVar[tuple[str, ...]] = ("curator",)
    answer: ClassVar[str] = "what the randomizer estimates from the reports that arrive, at the curator"
    graph: Graph | tuple[Graph, ...]
    rounds: int
    epsilon0: float
    outages: float = 0.0
    absent: str = "unreachable"
    crashes: float = 0.0
    lost: float = 0.0
    laziness: float = 0.0
    delta0: float = 0.0
    values: int | None = None
    variation: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.graph, list | tuple):
            if not self.graph:
                raise InvalidValue("graph must be a graph or a tuple of at least one graph, got an empty one")
            graphs = tuple(as_graph(graph, "FaultyShuffle") for graph in self.graph)
            self._set(graph=graphs[0] if len(graphs) == 1 else graphs)
        else:
            self._set(graph=as_graph(self.graph, "FaultyShuffle"))
        if len(sizes := {graph.n for graph in self.graphs}) > 1:
            raise GraphError(f"the graphs have {sorted(sizes)} users; all must be on the same ones")
        if self.n < 2:
            raise GraphError(f"{self.graphs[0]!r} has a single user: there is nobody to shuffle with")
        self._set(rounds=count("rounds", self.rounds), epsilon0=positive("epsilon0", self.epsilon0))
        for name in ("outages", "crashes", "lost", "laziness", "delta0"):
            object.__setattr__(self, name, between(name, getattr(self, name), 0.0, 1.0, open_high=True))
        if self.outages + self.crashes >= 1:
            raise InvalidValue(
                f"outages + crashes must be less than 1, got {self.outages + self.crashes:g}: somebody must be there"
            )
        _check_randomizer(self)
        if self.absent not in ABSENCES:
            raise InvalidValue(f"unknown absent {self.absent!r}; choose one of {', '.join(ABSENCES)}")

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The graphs, taken in turn."""
        return self.graph if isinstance(self.graph, tuple) else (self.graph,)

    @property
    def n(self) -> int:
        """How many users there are."""
        return self.graphs[0].n

    @property
    def network(self) -> Graph:
        return self.graphs[0]

    @property
    def arrives(self) -> float:
        """The probability that no message loss hits a report on its way, (1 − lost)^t; crashes come on top."""
        return float(np.exp(self.rounds * np.log1p(-self.lost)))

    def graph_of(self, round_: int) -> Graph:
        """The graph of round 0, 1, …"""
        return self.graphs[round_ % len(self.graphs)]

    def pattern(self, seed: int) -> FaultPattern:
        """A draw of who is away when: independent over users and rounds, at the rates stated."""
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InvalidValue(f"seed must be a whole number ≥ 0, got {seed!r}; the same seed gives the same pattern")
        rng = np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=(4,)))
        draws = rng.random((self.rounds, self.n))
        crashed = draws < self.crashes
        return FaultPattern((draws < self.crashes + self.outages) & ~crashed, crashed)

    def checked(self, pattern: Any) -> FaultPattern:
        """A pattern that this protocol may have had, or a refusal."""
        if not isinstance(pattern, FaultPattern):
            raise InvalidValue(
                "transcript must be the FaultPattern of a run (run.pattern, or protocol.pattern(seed)), got "
                f"{type(pattern).__name__}"
            )
        if (pattern.rounds, pattern.n) != (self.rounds, self.n):
            raise InvalidValue(
                f"the transcript is of {pattern.rounds} rounds and {pattern.n} users, the protocol of {self.rounds} and "
                f"{self.n}; take run.pattern of a run of this protocol"
            )
        for name, rate in (("away", self.outages), ("crashed", self.crashes)):
            if getattr(pattern, name).any() and not rate:
                field_ = "outages" if name == "away" else "crashes"
                raise InvalidValue(f"somebody {name} in this transcript, but the protocol states {field_} = 0")
        return pattern

    def hop(self, round_: int, pattern: FaultPattern | None = None) -> Any:
        """P[u, w] of a round given who is away (nobody without a pattern); what a row lacks of 1 is lost (CSR).

        >>> from netdp import graphs
        >>> p = FaultyShuffle(graphs.complete(3), rounds=1, epsilon0=1.0, outages=0.5)
        >>> p.hop(0, FaultPattern(np.array([[True, False, False]]))).toarray().tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]
        """
        from scipy.sparse import csr_array, dia_array

        graph, n = self.graph_of(round_), self.n
        away = np.zeros(n, dtype=bool) if pattern is None else pattern.down[round_]
        crashed = np.zeros(n, dtype=bool) if pattern is None else pattern.crashed[round_]
        degrees = np.asarray(graph.degrees)
        rows, columns = np.repeat(np.arange(n), degrees), np.asarray(graph.indices)
        open_ = ~away[rows]
        if self.absent == "unreachable":
            open_ &= ~away[columns]
        if pattern is not None and pattern.barred:
            open_ &= ~np.isin(rows * n + columns, sorted(pattern.links(round_, "barred")))
        taken = np.bincount(rows[open_], minlength=n)
        moves = (1.0 - self.laziness) / np.maximum(degrees, 1)
        # what stays is counted, not subtracted: every entry is right to a few roundings
        stays = np.where(degrees > 0, self.laziness + (degrees - taken) * moves, 1.0)
        stays[away] = 1.0
        keep = np.where(crashed, 0.0, 1.0 - self.lost)
        if pattern is not None and pattern.severed:
            # after what stays was counted: these did move, and are gone
            open_ &= ~np.isin(rows * n + columns, sorted(pattern.links(round_, "severed")))
        hops = csr_array((moves[rows[open_]], (rows[open_], columns[open_])), shape=(n, n))
        P = csr_array(
            dia_array((keep[None, :], [0]), shape=(n, n)) @ (hops + dia_array((stays[None, :], [0]), shape=(n, n)))
        )
        P.eliminate_zeros()
        P.sort_indices()
        return P

    def describe(self) -> str:
        first = self.graphs[0]
        several = f" and {len(self.graphs) - 1} more graphs in turn" if len(self.graphs) > 1 else ""
        faults = []
        if self.outages:
            faults.append(f"{self.outages:.4g} of the users away in a round ({self.absent})")
        if self.crashes:
            faults.append(f"{self.crashes:.4g} of the queues lost in a round")
        if self.lost:
            faults.append(f"{self.lost:.4g} of the reports lost in a round")
        return (
            f"{first.name}: {self.n:,} users, {first.m:,} edges{several}; shuffling with {_reports_and_hops(self)}, "
            f"{', '.join(faults) or 'no faults'}"
        )


def _check_randomizer(protocol: Shuffle | FaultyShuffle) -> None:
    """Refuse what no randomizer is."""
    if protocol.values is None and protocol.variation is None:
        return
    if protocol.values is not None and protocol.variation is not None:
        raise InvalidValue(
            f"values={protocol.values!r} and variation={protocol.variation!r} both say what the randomizer is; give one of them"
        )
    name = "variation" if protocol.values is None else "values"
    if protocol.delta0:
        raise InvalidValue(
            f"{name}={getattr(protocol, name)!r} is for pure randomizers, got delta0={protocol.delta0:g}; leave one of the two out"
        )
    if protocol.values is not None:
        object.__setattr__(protocol, "values", whole("values", protocol.values, 2))
    else:
        object.__setattr__(protocol, "variation", between("variation", protocol.variation, 0.0, 1.0, open_low=True))


REPORTINGS = ("all", "single")


@dataclass(frozen=True)
class Shuffle(OnGraph):
    """Randomized reports that hop through a network before a curator collects them.

    The curator sees which user handed over which reports, but not the way they came.

    Parameters
    ----------
    graph : a `Graph` in which everybody has a neighbour; bipartite ones (or components) need laziness, or the walk never mixes.
        Reports stay in their component: users hide among those of theirs.
    rounds : t ≥ 1, hops per report.
    epsilon0 : the local-DP loss of the randomizer.
    reporting : "all", every user hands over all reports it holds, or none (the paper's Algorithm 1); or "single", one of them,
        chosen uniformly, or a dummy if it holds none (Algorithm 2).
    laziness : ℓ in [0, 1), the probability that a report stays where it is for the round, drawn for each report.
    delta0 : δ₀ of an (ε₀, δ₀) randomizer such as the Gaussian; 0 for pure ones.
    values : k, if every report is k-ary randomized response over k values: far more private than the worst ε₀-DP randomizer,
        which reports are taken for by default.
    variation : or what the laws of a report under two values differ by at most, in total variation: by less than tanh(ε₀/2) for
        unary encoding, PrivUnit and Laplace noise (`mechanism.curve.delta(0)`). One of the two at most.

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
    values: int | None = None
    variation: float | None = None

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "Shuffle"))
        self._set(rounds=count("rounds", self.rounds), epsilon0=positive("epsilon0", self.epsilon0))
        for name in ("laziness", "delta0"):
            object.__setattr__(self, name, between(name, getattr(self, name), 0.0, 1.0, open_high=True))
        _check_randomizer(self)
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
        return (
            f"{self.graph.name}: {self.n:,} users, {self.graph.m:,} edges; shuffling with {_reports_and_hops(self)}, "
            f"reporting {self.reporting}"
        )


OVERFLOW = 1e-12
"""Under `bundles`: the probability that in the whole run some bundle has too little room, at most."""


@dataclass(frozen=True)
class RelayedShuffle(OnGraph):
    """Randomized reports that hop from user to user through a server which sees all traffic and collects the reports.

    Users of a messaging service have no direct links: what one sends to another goes through the server, sealed end to end
    (Liew et al. 2022, section 4.4 and Figure 3). The server cannot open an envelope, but it sees who sends how many to whom in
    every round, and in the end it is the curator to whom the reports are handed. So it watches each report's first hop: in
    round 1 everybody holds exactly one. Two rules of cover traffic, one at most, hide the rest; without any only ε₀ is certified.

    Parameters
    ----------
    graph, rounds, epsilon0, laziness, delta0, values, variation : as of a `Shuffle`; every user hands over all that it holds.
    cover : c ≥ 0. In every round every user sends exactly c sealed envelopes of one size to each of its neighbours, whatever it
        holds; dummies fill what is missing. If more than c of its reports draw the same neighbour, the surplus, chosen at
        random, waits and draws again in the next round. The traffic is always the same: c·2m envelopes in a round.
    bundles : k ≥ 0, for graphs with many links. In every round every user draws k of its neighbours, with repetition, and sends
        one sealed bundle to each; every report goes into a bundle drawn for it alone. A bundle's room is a function of the
        traffic so far (`room`): all fit but with probability 10⁻¹² in the run; the surplus waits. The traffic, kn bundles in a
        round, is drawn without a look at the reports.

    >>> from netdp import graphs
    >>> p = RelayedShuffle(graphs.regular(200, 6, seed=1), rounds=40, epsilon0=1.0, cover=4)
    >>> p.envelopes                                                   # a user sends, in all; 40 of them carry a report
    960.0
    """

    kind: ClassVar[str] = "relayed-shuffle"
    roles: ClassVar[tuple[str, ...]] = ("curator",)
    answer: ClassVar[str] = "what the randomizer estimates, at the curator"
    graph: Graph
    rounds: int
    epsilon0: float
    cover: int = 0
    laziness: float = 0.0
    delta0: float = 0.0
    bundles: int = 0
    values: int | None = None
    variation: float | None = None

    def __post_init__(self) -> None:
        direct = self.direct
        for name in ("graph", "rounds", "epsilon0", "laziness", "delta0", "values", "variation"):
            object.__setattr__(self, name, getattr(direct, name))
        self._set(cover=whole("cover", self.cover), bundles=whole("bundles", self.bundles))
        if self.cover and self.bundles:
            raise InvalidValue(f"cover={self.cover} and bundles={self.bundles} are two rules; choose one")
        if self.bundles == 1:
            raise InvalidValue("bundles=1 keeps all reports of a user together for ever: two at least are needed")

    @property
    def direct(self) -> Shuffle:
        """The same reports over direct links that nobody watches."""
        return Shuffle(
            self.graph, self.rounds, self.epsilon0, laziness=self.laziness, delta0=self.delta0, values=self.values,
            variation=self.variation,
        )  # fmt: skip

    @property
    def envelopes(self) -> float:
        """Envelopes that a user sends to other users in the whole run, on average."""
        if self.bundles:
            return float(self.rounds * self.bundles)
        if not self.cover:
            return self.rounds * (1.0 - self.laziness)
        return float(self.rounds * self.cover * 2 * self.graph.m / self.n)

    def room(self, held: float) -> int:
        """How many reports a bundle of a user who holds so many on average, given the traffic so far, has room for.

        The number in a bundle is a sum of independent indicators of mean μ = (1 − ℓ)·held/k, and reaches b + 1 with probability at
        most μ^{b+1}/(b + 1)!; b is the least for which that is at most 10⁻¹²/(tnk).

        >>> from netdp import graphs
        >>> RelayedShuffle(graphs.complete(100), rounds=50, epsilon0=1.0, bundles=4).room(1.0)
        12
        """
        mean = (1.0 - self.laziness) * held / self.bundles
        if mean <= 0:
            return 0
        target = math.log(OVERFLOW) - math.log(self.rounds * self.n * self.bundles)
        b = 0
        while (b + 1) * math.log(mean) - math.lgamma(b + 2.0) > target - 1e-9:
            b += 1
        return b

    def describe(self) -> str:
        rule = f"{self.cover} envelopes to every neighbour in every round" if self.cover else "no cover traffic"
        if self.bundles:
            rule = f"{self.bundles} bundles to random neighbours in every round"
        return (
            f"{self.graph.name}: {self.n:,} users, {self.graph.m:,} edges; shuffling through a server with "
            f"{_reports_and_hops(self)}, {rule}"
        )


def _reports_and_hops(protocol: Shuffle | FaultyShuffle | RelayedShuffle) -> str:
    """What all three say of themselves, such as "ε₀=1 reports, 40 hops"."""
    delta0 = f", δ₀={protocol.delta0:g}" if protocol.delta0 else ""
    if protocol.values is not None:
        delta0 += f" {protocol.values}-ary"
    if protocol.variation is not None:
        delta0 += f" (total variation {protocol.variation:g})"
    lazy = f" laziness={protocol.laziness:g}" if protocol.laziness else ""
    return f"ε₀={protocol.epsilon0:g}{delta0} reports, {protocol.rounds} hops{lazy}"


@dataclass(frozen=True, eq=False)
class ShuffledView:
    """What the curator receives. Nothing in it depends on the origins except through where the walks ended.

    The reports of one user lie in random order, and a dummy looks like a report.

    n         how many users there are
    holders   (items,) who handed over each item, in increasing order
    reports   (items, …) the items themselves, decrypted

    >>> view = ShuffledView(3, np.array([0, 0, 2]), np.array([1.5, 0.5, 2.5]))
    >>> view.handed_by(0).tolist(), view.counts.tolist()
    ([1.5, 0.5], [2, 0, 1])
    """

    n: int
    holders: Int32Array = field(repr=False)
    reports: npt.NDArray[Any] = field(repr=False)

    def __post_init__(self) -> None:
        holders = np.array(self.holders, dtype=np.int32)
        if holders.ndim != 1 or (holders.size and (holders.min() < 0 or holders.max() >= self.n)):
            raise InvalidValue(f"holders must be a list of users 0 … {self.n - 1}")
        if (np.diff(holders) < 0).any():
            raise InvalidValue("holders must come in increasing order: the curator knows no other order")
        if len(self.reports) != len(holders):
            raise InvalidValue(f"there are {len(holders)} holders and {len(self.reports)} reports; give one for each")
        holders.setflags(write=False)
        object.__setattr__(self, "holders", holders)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """(n,) how many items each user handed over."""
        return np.bincount(self.holders, minlength=self.n)

    def handed_by(self, user: int) -> npt.NDArray[Any]:
        """The items that one user handed over."""
        first, last = np.searchsorted(self.holders, [user, user + 1])
        return self.reports[first:last]


@dataclass(frozen=True, eq=False)
class ShuffleTranscript:
    """Where every report ended up, and what was made of it: for scoring attacks, in nobody's view.

    positions  (n,) the user who held the report of user u when the walks ended
    holders    (items,) who handed over each item, in increasing order
    origins    (items,) whose report it was; −1 for a dummy

    >>> t = ShuffleTranscript(np.array([0, 0, 2]), holders=np.array([0, 1, 2]), origins=np.array([1, -1, 2]))
    >>> t.dummies.tolist(), t.dropped.tolist()            # user 1 held nothing; user 0 held two and kept back one
    ([1], [0])
    """

    positions: Int32Array = field(repr=False)
    holders: Int32Array = field(repr=False)
    origins: Int32Array = field(repr=False)

    def __post_init__(self) -> None:
        for name in ("positions", "holders", "origins"):
            array = np.array(getattr(self, name), dtype=np.int32)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        real = self.origins >= 0
        if not np.array_equal(self.positions[self.origins[real]], self.holders[real]):
            raise InvalidValue("an item is handed over by somebody who does not hold it")

    @property
    def n(self) -> int:
        """How many users there are."""
        return len(self.positions)

    @property
    def dummies(self) -> Int32Array:
        """The users who held no report and sent a dummy."""
        return self.holders[self.origins < 0]

    @property
    def dropped(self) -> Int32Array:
        """The users whose report was never handed over."""
        missing = np.ones(self.n, dtype=bool)
        missing[self.origins[self.origins >= 0]] = False
        return np.flatnonzero(missing).astype(np.int32)

    def view(self, reports: npt.NDArray[Any], dummies: npt.NDArray[Any] | None = None) -> ShuffledView:
        """The curator's view when user u wrote reports[u] and the user dummies[i] of this transcript sends dummies[i]."""
        if len(reports) != self.n:
            raise InvalidValue(f"there are {self.n} users and {len(reports)} reports; give one for each")
        items = np.asarray(reports)[self.origins]
        places = np.flatnonzero(self.origins < 0)
        if len(places):
            if dummies is None or len(dummies) != len(places):
                given = "none" if dummies is None else len(dummies)
                raise InvalidValue(f"{len(places)} users send a dummy; got {given}")
            items[places] = dummies
        return ShuffledView(self.n, self.holders, items)
