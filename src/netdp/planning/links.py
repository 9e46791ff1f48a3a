"""How many random links to lay over a graph, and what they buy in shuffling, in gossip and in floods.

Slow graphs, not protocols, are what makes decentralization expensive. `advise_links` lays one random ring after another over the
parties (`netdp.graphs.links`: each gives everybody at most two more neighbours) and plans again:

    shuffle   the certified number of hops to a trusted shuffler's ε (`plan_rounds`)
    gossip    up to `CERTIFIED` parties rounds and error of the best masked gossip at (ε, δ), certified (`plan`); beyond that
              the rounds after which the spectral gap leaves a thousandth of the differences, and no error
    flood     rounds of a masked sum that is flooded: the diameter; its noise, and so its error, do not depend on the graph

**Where it stops.** Another ring is *worth it* if it saves a quarter of the rounds or of the error (or makes possible what was
not). For each protocol the first number of rings after which another one is not worth it is proposed; the row of that other one
is kept, so that one can see it. Rounds are not all that counts, and the table says so: a flood sends every number once over every
link, so links make it faster and larger; in gossip, too, everybody sends to all neighbours.

**What is claimed.** Every figure is that of the very graph that was drawn. Nothing is said of other draws, and nothing
of averages over them (docs/guarantees.md#random-links).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from netdp.errors import InvalidValue, NetdpError
from netdp.graphs import Graph, as_graph
from netdp.graphs.diameter import diameter
from netdp.graphs.links import checked, with_links
from netdp.graphs.spectrum import spectral_gap
from netdp.numerics.checks import between, count
from netdp.planning.calibrate import calibrate
from netdp.planning.gossip.plan import plan
from netdp.planning.shuffle.plan import calibrate_epsilon0, plan_rounds
from netdp.privacy.readable import readable
from netdp.protocols import MaskedSum
from netdp.utility import expected_error

PROTOCOLS = ("shuffle", "gossip", "flood")
CERTIFIED = 256
"""Up to so many parties gossip is planned and certified for every pair; a few seconds for every graph."""
WORTH = 0.25
"""Another ring is worth it if it saves this share of the rounds, or of the error."""
_LEFT = 1e-3
_COUNTED = {"shuffle": "hop", "gossip": "round", "flood": "round"}

PUBLIC = (
    "the links are public, and drawn after the parties are known, without a look at anybody's data; "
    "what is promised is certified for the graph with these very links"
)
"""What the guarantees of a graph with links rest on, beside what they rest on anyway."""


DISTANCES = "distances are those of the graph with its links: for whom a link makes neighbours, other limits hold"
"""What must be said beside limits that depend on distances."""


@dataclass(frozen=True)
class Cost:
    """What one protocol needs on one graph.

    rounds   hops of a report, rounds of gossip or of a flood, that are known to do
    sent     numbers or reports that a party sends, on average
    error    root of the mean squared error of the answer; None where it is not known
    """

    rounds: int
    sent: float
    error: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {"rounds": self.rounds, "sent_per_party": self.sent, "rmse": self.error}


@dataclass(frozen=True, eq=False)
class Linked:
    """The graph with so many rings, and what each protocol costs on it, or why it cannot be said (a text)."""

    rings: int
    graph: Graph
    links: float
    costs: dict[str, Cost | str]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        graph = self.graph
        said = {name: {"refused": c} if isinstance(c, str) else c.to_dict() for name, c in self.costs.items()}
        return {
            "rings": self.rings, "links_per_party": self.links, **said,
            "graph": {"name": graph.name, "n": graph.n, "m": graph.m, "digest": graph.digest},
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class LinkAdvice:
    """Rows with 0, 1, 2, … rings, and how many are proposed for each protocol (None: they do not help, or it is refused)."""

    rows: tuple[Linked, ...]
    seed: int
    proposed: dict[str, int | None]
    notes: tuple[str, ...] = ()

    @property
    def graph(self) -> Graph:
        """The graph without links."""
        return self.rows[0].graph

    def cost(self, protocol: str, rings: int) -> Cost | str | None:
        """What a protocol costs with so many rings; None if that was not looked at."""
        return next((row.costs.get(protocol) for row in self.rows if row.rings == rings), None)

    def sentences(self) -> list[str]:
        """What is proposed for each protocol, and what it buys."""
        return [self._sentence(name, rings) for name, rings in self.proposed.items()]

    def _sentence(self, name: str, rings: int | None) -> str:
        before = self.rows[0].costs[name]
        if rings is None or rings == 0:
            with_one = self.cost(name, 1)
            more = f": another ring would leave {_counted(name, with_one)}" if isinstance(with_one, Cost) else ""
            return f"{name}: no links, {before if isinstance(before, str) else _counted(name, before) + more}"
        after, further = self.cost(name, rings), self.cost(name, rings + 1)
        assert isinstance(after, Cost)
        row = next(row for row in self.rows if row.rings == rings)
        bought = f"{name}: {rings} random ring{'s' if rings > 1 else ''}, {row.links:.1f} more links for everybody: "
        bought += f"{_counted(name, after)}"
        bought += f" (without links: {before})" if isinstance(before, str) else f" instead of {before.rounds:,}"
        if isinstance(before, Cost) and before.error and after.error and after.error < 0.99 * before.error:
            bought += f", and an error of {readable(after.error)} instead of {readable(before.error)}"
        return bought + (f"; one ring more would leave {further.rounds:,}" if isinstance(further, Cost) else "")

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "seed": self.seed,
            "links": PUBLIC,
            "rows": [row.to_dict() for row in self.rows],
            "proposed": dict(self.proposed),
            "sentences": self.sentences(),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join([f"links for {self.graph!r}, seed {self.seed}:", *self.sentences(), PUBLIC])


def advise_links(
    graph: Graph,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    *,
    epsilon0: float | None = 1.0,
    protocols: Sequence[str] = PROTOCOLS,
    seed: int = 0,
    most: int = 8,
    worth: float = WORTH,
    colluders: int = 1,
    sensitivity: float = 1.0,
    gossip: dict[str, Any] | None = None,
    shuffle: dict[str, Any] | None = None,
    masked: dict[str, Any] | None = None,
) -> LinkAdvice:
    """How many random rings to lay over a graph for shuffling, gossip and floods, with what they buy.

    epsilon, delta : the target of gossip and of the masked sum that is flooded, against any `colluders` parties.
    epsilon0 : the local-DP loss of reports that are shuffled; None: reports as noisy as `epsilon` asks for.
    protocols : some of "shuffle", "gossip", "flood".
    seed : of the links. Fix it after the parties are known.
    most, worth : no more rings than `most`; another one must save the share `worth` of the rounds or of the error.
    gossip, shuffle, masked : further options of `plan`, of `plan_rounds` and of `MaskedSum`.

    >>> from netdp import graphs
    >>> advice = advise_links(graphs.ring(600), protocols=["flood"])
    >>> advice.proposed, [row.costs["flood"].rounds for row in advice.rows]
    ({'flood': 2}, [300, 8, 6, 5])
    """
    graph = as_graph(graph, "links")
    count("most", most)
    checked(most, seed)
    between("worth", worth, 0.0, 1.0, open_low=True, open_high=True)
    if unknown := [name for name in protocols if name not in PROTOCOLS]:
        raise InvalidValue(f"unknown protocol {unknown[0]!r}; links are proposed for {', '.join(PROTOCOLS)}")
    if not protocols:
        raise InvalidValue(f"for which protocols? choose from {', '.join(PROTOCOLS)}")
    against: dict[str, Any] = {"colluders": colluders, "sensitivity": sensitivity}
    floods = _Floods(epsilon, delta, against, masked or {})
    ways: dict[str, Callable[[Graph], Cost]] = {
        "shuffle": lambda one: _shuffled(one, epsilon0, epsilon, delta, shuffle or {}),
        "gossip": lambda one: _gossiped(one, epsilon, delta, {**against, **(gossip or {})}),
        "flood": floods.flooded,
    }
    going = list(dict.fromkeys(protocols))
    proposed: dict[str, int | None] = dict.fromkeys(going)
    rows: list[Linked] = []
    for rings in range(most + 1):
        drawn = with_links(graph, rings, seed)
        row = Linked(
            rings, drawn, 2 * (drawn.m - graph.m) / graph.n, {name: _tried(ways[name], drawn) for name in going}
        )
        rows.append(row)
        for name in list(going) if rings else []:
            before, now = rows[rings - 1].costs[name], row.costs[name]
            if isinstance(now, str) or not _worth(before, now, worth):
                proposed[name] = rings - 1 if isinstance(before, Cost) else None
                going.remove(name)
            elif rings == most:
                proposed[name] = rings
        if not going:
            break
    return LinkAdvice(tuple(rows), seed, proposed, _notes(graph, proposed, gossip or {}))


def gossip_rounds(gap: float) -> float:
    """Rounds of plain gossip until what is left of all differences is a thousandth: (1 − gap)^rounds ≤ 1/1000.

    >>> gossip_rounds(0.5), gossip_rounds(1.0), gossip_rounds(0.0)
    (10, 1, inf)
    """
    if gap <= 0:
        return math.inf
    return 1 if gap >= 1 - _LEFT else math.ceil(math.log(_LEFT) / math.log1p(-gap))


def _tried(way: Callable[[Graph], Cost], graph: Graph) -> Cost | str:
    """The cost, or why there is none. What is wrong with the question itself is raised."""
    try:
        return way(graph)
    except InvalidValue:
        raise
    except NetdpError as refusal:
        return str(refusal)


def _worth(before: Cost | str, now: Cost, worth: float) -> bool:
    if isinstance(before, str):
        return True
    less_error = before.error and now.error and now.error <= (1 - worth) * before.error
    return bool(now.rounds <= (1 - worth) * before.rounds or less_error)


def _shuffled(graph: Graph, epsilon0: float | None, epsilon: float, delta: float, options: dict[str, Any]) -> Cost:
    if epsilon0 is None:
        planned = calibrate_epsilon0(graph, epsilon, delta, **options)
    else:
        planned = plan_rounds(graph, epsilon0, delta, **options)
    return Cost(planned.protocol.rounds, planned.hops, planned.best.rmse)


def _gossiped(graph: Graph, epsilon: float, delta: float, options: dict[str, Any]) -> Cost:
    degree = 2 * graph.m / graph.n
    graph.require_connected("gossip")
    if graph.n <= CERTIFIED:
        best = plan(graph, epsilon, delta, kinds=("masked",), **options).best
        return Cost(best.protocol.rounds, best.protocol.rounds * degree, best.rmse)
    rounds = int(gossip_rounds(spectral_gap(graph, options.get("mixing", "metropolis"))))
    return Cost(rounds, rounds * degree)


class _Floods:
    """Floods: the noise of a masked sum does not depend on who is linked with whom, so it is found once."""

    def __init__(self, epsilon: float, delta: float, against: dict[str, Any], masked: dict[str, Any]) -> None:
        self.epsilon, self.delta, self.against, self.masked = epsilon, delta, against, masked
        self.error: float | None = None

    def flooded(self, graph: Graph) -> Cost:
        """Rounds until everybody holds what all have published: the diameter, or a bound on it on very large graphs."""
        graph.require_connected("a flood")
        rounds = diameter(graph).high
        if self.error is None:
            size = self.against["sensitivity"]
            draft = MaskedSum(graph, sigma=max(size, self.masked.get("grid") or 0.0), sensitivity=size, **self.masked)
            found = calibrate(draft, self.epsilon, self.delta, colluders=self.against["colluders"])
            self.error = expected_error(found).rmse
        return Cost(rounds, 2.0 * graph.m, self.error)


def _counted(name: str, cost: Cost) -> str:
    return f"{cost.rounds:,} {_COUNTED[name]}{'' if cost.rounds == 1 else 's'}"


def _notes(graph: Graph, proposed: dict[str, int | None], gossip: dict[str, Any]) -> tuple[str, ...]:
    notes = []
    if "gossip" in proposed:
        notes.append(
            "gossip: rounds and error of the best masked gossip, certified"
            if graph.n <= CERTIFIED
            else f"gossip: rounds until plain gossip leaves a thousandth of all differences, from the spectral gap (more than "
            f"{CERTIFIED} parties)"
        )
        if str(gossip.get("scope", "worst")).startswith("beyond"):
            notes.append(DISTANCES)
    if "flood" in proposed:
        notes.append("flood: every number crosses every link once, so links make it faster and everybody sends more")
    return tuple(notes)


__all__ = ["LinkAdvice", "Linked", "advise_links", "gossip_rounds"]
