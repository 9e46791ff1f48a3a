"""Network shuffling in a network with faults: users who are away, queues that are lost, messages that are lost, new links.

Reports are made, encrypted and passed on as in `Shuffle`. What may go wrong, in every round and independently of what the
reports say and where they go:

    outages   a user is away for the round with this probability, and its *whole queue* waits.
              absent="unreachable": nothing reaches it either; a report that draws it stays where it is.
              absent="silent": what is sent to it arrives all the same (a mailbox), and waits there.
    crashes   a user is away for the round with this probability, and its whole queue is gone for good.
    lost      every single report vanishes with this probability, wherever it is.
    graphs    the graph of round r is the r-th of the graphs given, which are taken in turn.

In the end every user hands over all that it holds, when it is back. Who was away in which round, the `FaultPattern`, is
public; which reports were lost is not.

Laziness is something else: it is drawn for each report, an outage for all reports in one hand at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.errors import GraphError, InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.numerics.checks import count, non_negative, positive

from .base import Protocol

ABSENCES = ("unreachable", "silent")


@dataclass(frozen=True, eq=False)
class FaultPattern:
    """Who was away in which round: public, and drawn without a look at reports or their ways.

    away      (rounds, n) True where a user was away and kept its queue
    crashed   (rounds, n) True where a user was away and lost its queue
    severed   (round, from, to), rounds from 0: what one user sent to the other in that round never came, and is lost
    barred    (round, from, to): one user sent nothing to the other; a report that drew it stayed where it was

    Of links there are no rates: these are known afterwards only, of a run on real peers (`netdp.peers.kinds.shuffle`).

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

    Parameters
    ----------
    graph : a `Graph`, or a tuple of graphs on the same users, taken in turn, one per round. They need not be connected
        one by one; what is certified says what they are worth together.
    rounds : t ≥ 1, hops per report.
    epsilon0, delta0 : the local-DP loss of the randomizer.
    outages, absent, crashes, lost : what fails, see above; rates in [0, 1).
    laziness : ℓ in [0, 1), drawn for each report.

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
            value = non_negative(name, getattr(self, name))
            if value >= 1:
                raise InvalidValue(f"{name} must lie in [0, 1), got {value!r}")
            object.__setattr__(self, name, value)
        if self.outages + self.crashes >= 1:
            raise InvalidValue(
                f"outages + crashes must be less than 1, got {self.outages + self.crashes:g}: somebody must be there"
            )
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
        delta0 = f", δ₀={self.delta0:g}" if self.delta0 else ""
        lazy = f" laziness={self.laziness:g}" if self.laziness else ""
        faults = []
        if self.outages:
            faults.append(f"{self.outages:.4g} of the users away in a round ({self.absent})")
        if self.crashes:
            faults.append(f"{self.crashes:.4g} of the queues lost in a round")
        if self.lost:
            faults.append(f"{self.lost:.4g} of the reports lost in a round")
        return (
            f"{first.name}: {self.n:,} users, {first.m:,} edges{several}; shuffling with ε₀={self.epsilon0:g}{delta0} "
            f"reports, {self.rounds} hops{lazy}, {', '.join(faults) or 'no faults'}"
        )
