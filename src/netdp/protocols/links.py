"""How many random links to lay over a slow graph, and what they buy in shuffling, in gossip and in floods.

`advise_links` lays one random ring after another over the parties and plans again. Every figure is that of the very graph
that was drawn; nothing is said of other draws, nor of averages over them (docs/proofs/privacy.md#random-links).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netdp.errors import InvalidValue, NetdpError
from netdp.graphs.convert import as_graph
from netdp.graphs.families import checked, with_links
from netdp.graphs.graph import Graph
from netdp.numerics.checks import between, count
from netdp.privacy.wording import readable
from netdp.protocols.base import described_graph
from netdp.protocols.family import FAMILIES, families, family

PROTOCOLS = tuple(word for name in reversed(FAMILIES) for word in family(name).links)
"""What links are proposed for: "shuffle", "gossip", "flood"."""

WORTH = 0.25
"""Another ring is worth it if it saves this share of the rounds, or of the error."""

PUBLIC = (
    "the links are public, and drawn after the parties are known, without a look at anybody's data; "
    "what is promised is certified for the graph with these very links"
)
"""What the guarantees of a graph with links rest on, beside what they rest on anyway."""


DISTANCES = "distances are those of the graph with its links: for whom a link makes neighbours, other limits hold"
"""What must be said beside limits that depend on distances."""


@dataclass(frozen=True)
class LinkCost:
    """What one protocol needs on one graph.

    rounds   hops of a report, rounds of gossip or of a flood, that are known to do
    sent     numbers or reports that a party sends, on average
    error    root of the mean squared error of the answer; None where it is not known
    counted  what its rounds are called, one of them
    """

    rounds: int
    sent: float
    error: float | None = None
    counted: str = "round"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {"rounds": self.rounds, "sent_per_party": self.sent, "rmse": self.error}


@dataclass(frozen=True)
class Sought:
    """What links are sought for: the graph without them, and the target, as `advise_links` takes it."""

    graph: Graph
    epsilon: float
    delta: float
    epsilon0: float | None
    colluders: int
    sensitivity: float


@dataclass(frozen=True)
class Linking:
    """How a family tells what its protocol costs on a graph, and what must be said beside it."""

    cost: Callable[[Graph], LinkCost]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Linked:
    """The graph with so many rings, and what each protocol costs on it, or why it cannot be said (a text)."""

    rings: int
    graph: Graph
    links: float
    costs: dict[str, LinkCost | str]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        costs = {name: {"refused": c} if isinstance(c, str) else c.to_dict() for name, c in self.costs.items()}
        return {
            "rings": self.rings,
            "links_per_party": self.links,
            **costs,
            "graph": described_graph(self.graph),
        }


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

    def cost(self, protocol: str, rings: int) -> LinkCost | str | None:
        """What a protocol costs with so many rings; None if that was not looked at."""
        return next((row.costs.get(protocol) for row in self.rows if row.rings == rings), None)

    def sentences(self) -> list[str]:
        """What is proposed for each protocol, and what it buys."""
        return [self._sentence(name, rings) for name, rings in self.proposed.items()]

    def _sentence(self, name: str, rings: int | None) -> str:
        before = self.rows[0].costs[name]
        if rings is None or rings == 0:
            with_one = self.cost(name, 1)
            more = f": another ring would leave {_counted(with_one)}" if isinstance(with_one, LinkCost) else ""
            return f"{name}: no links, {before if isinstance(before, str) else _counted(before) + more}"
        after, further = self.cost(name, rings), self.cost(name, rings + 1)
        assert isinstance(after, LinkCost)
        row = next(row for row in self.rows if row.rings == rings)
        bought = f"{name}: {rings} random ring{'s' if rings > 1 else ''}, {row.links:.1f} more links for everybody: "
        bought += f"{_counted(after)}"
        bought += f" (without links: {before})" if isinstance(before, str) else f" instead of {before.rounds:,}"
        if isinstance(before, LinkCost) and before.error and after.error and after.error < 0.99 * before.error:
            bought += f", and an error of {readable(after.error)} instead of {readable(before.error)}"
        return bought + (f"; one ring more would leave {further.rounds:,}" if isinstance(further, LinkCost) else "")

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
    **options: Mapping[str, Any] | None,
) -> LinkAdvice:
    """How many random rings to lay over a graph for shuffling, gossip and floods, with what they buy.

    Slow graphs, not protocols, are what makes decentralization expensive. Each ring gives everybody at most two more neighbours
    (`netdp.graphs.families`); with every number of rings there is looked at

    shuffle   the certified number of hops to a trusted shuffler's ε (`plan_rounds`)
    gossip    up to 256 parties rounds and error of the best masked gossip at (ε, δ), certified (`plan`); beyond that the rounds
              after which the spectral gap leaves a thousandth of the differences, and no error
    flood     rounds of a masked sum that is flooded: the diameter; its noise, and so its error, do not depend on the graph

    Another ring is *worth it* if it saves a quarter of the rounds or of the error (or makes possible what was not). For each
    protocol the first number of rings after which another one is not worth it is proposed; the row of that other one is kept, so
    that one can see it. Rounds are not all that counts, and the table says so: a flood sends every number once over every link,
    so links make it faster and larger; in gossip, too, everybody sends to all neighbours.

    epsilon, delta : the target of gossip and of the masked sum that is flooded, against any `colluders` parties.
    epsilon0 : the local-DP loss of reports that are shuffled; None: reports as noisy as `epsilon` asks for.
    protocols : some of "shuffle", "gossip", "flood".
    seed : of the links. Fix it after the parties are known.
    most, worth : no more rings than `most`; another one must save the share `worth` of the rounds or of the error.
    options : of the families by name, gossip={…}, shuffle={…}, masked={…}: further options of `plan`, of `plan_rounds` and of
        the masked sum.

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
    linking = [one for one in families() if one.links]
    if strange := sorted(options.keys() - {one.name for one in linking}):
        raise InvalidValue(
            f"there are no links of {strange[0]!r}; options are those of {', '.join(one.name for one in linking)}"
        )
    sought = Sought(graph, epsilon, delta, epsilon0, colluders, sensitivity)
    ways: dict[str, Linking] = {
        word: one.named(path)(sought, options.get(one.name) or {})
        for one in linking
        for word, path in one.links.items()
        if word in protocols
    }
    going = list(dict.fromkeys(protocols))
    proposed: dict[str, int | None] = dict.fromkeys(going)
    rows: list[Linked] = []
    for rings in range(most + 1):
        drawn = with_links(graph, rings, seed)
        row = Linked(
            rings, drawn, 2 * (drawn.m - graph.m) / graph.n, {name: _tried(ways[name].cost, drawn) for name in going}
        )
        rows.append(row)
        for name in list(going) if rings else []:
            before, now = rows[rings - 1].costs[name], row.costs[name]
            if isinstance(now, str) or not _worth(before, now, worth):
                proposed[name] = rings - 1 if isinstance(before, LinkCost) else None
                going.remove(name)
            elif rings == most:
                proposed[name] = rings
        if not going:
            break
    return LinkAdvice(
        tuple(rows), seed, proposed, tuple(note for name in PROTOCOLS if name in proposed for note in ways[name].notes)
    )


def _tried(way: Callable[[Graph], LinkCost], graph: Graph) -> LinkCost | str:
    """The cost, or why there is none. What is wrong with the question itself is raised."""
    try:
        return way(graph)
    except InvalidValue:
        raise
    except NetdpError as refusal:
        return str(refusal)


def _worth(before: LinkCost | str, now: LinkCost, worth: float) -> bool:
    if isinstance(before, str):
        return True
    less_error = before.error and now.error and now.error <= (1 - worth) * before.error
    return bool(now.rounds <= (1 - worth) * before.rounds or less_error)


def _counted(cost: LinkCost) -> str:
    return f"{cost.rounds:,} {cost.counted}{'' if cost.rounds == 1 else 's'}"
