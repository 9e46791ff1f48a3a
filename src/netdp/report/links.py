"""Random links on a terminal and in a picture: what they buy, before and after, and how many are proposed."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdp.planning.base import Plan
from netdp.planning.gossip.plan import GossipPlan
from netdp.planning.links import DISTANCES, PUBLIC, Cost, LinkAdvice
from netdp.planning.masked.plan import MaskedPlan
from netdp.planning.shuffle.plan import ShufflePlan
from netdp.planning.shuffle.relay import RelayPlan
from netdp.privacy.readable import readable
from netdp.utility import ExpectedError

from .comparison import Comparison
from .curves import log_axis
from .files import write_picture

if TYPE_CHECKING:
    from .figures import Picture

_TITLES = {"shuffle": "shuffling", "gossip": "gossip", "flood": "flood"}
_LOOKS = {"shuffle": ("#0072B2", "o"), "gossip": ("#D55E00", "s"), "flood": ("#009E73", "^")}


def links_table(advice: LinkAdvice) -> RenderableType:
    """Rows with more and more rings, what each protocol costs on them (proposed: *), and what is proposed in words."""
    graph, names = advice.graph, list(advice.proposed)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("random\nrings", justify="right", no_wrap=True)
    table.add_column("more\nlinks", justify="right", no_wrap=True)
    for name in names:
        table.add_column(f"{name}\n{'hops' if name == 'shuffle' else 'rounds'} ", justify="right", no_wrap=True)
        if name != "shuffle":  # reports: as many as hops
            table.add_column("\nsent", justify="right", no_wrap=True)
        if _errors_differ(advice, name):
            table.add_column("\nerror", justify="right", no_wrap=True)
    for row in advice.rows:
        cells = [str(row.rings), f"{row.links:.1f}"]
        for name in names:
            cost = row.costs.get(name)
            if not isinstance(cost, Cost):
                cells.append("" if cost is None else "–")
                cells += [""] * ((name != "shuffle") + _errors_differ(advice, name))
                continue
            cells.append(f"{cost.rounds:,}{'*' if advice.proposed[name] == row.rings else ' '}")
            cells += [f"{cost.sent:,.0f}"] if name != "shuffle" else []
            cells += [readable(cost.error or math.nan)] if _errors_differ(advice, name) else []
        table.add_row(*cells)
    degree = 2 * graph.m / graph.n
    return Group(
        Text(
            f"{graph.name}: {graph.n:,} parties, {degree:.3g} links each; random rings laid over it (seed {advice.seed})\n"
        ),
        table,
        Text(
            "\nproposed (*): one ring more would save less than a quarter. more links: of a party; sent: numbers, by a party"
        ),
        *(Text(sentence) for sentence in advice.sentences()),
        Text(PUBLIC),
        *(Text(note, style="dim") for note in advice.notes),
    )


def _errors_differ(advice: LinkAdvice, name: str) -> bool:
    costs = [row.costs.get(name) for row in advice.rows]
    errors = [cost.error for cost in costs if isinstance(cost, Cost) and cost.error is not None]
    return len(errors) > 1 and max(errors) > 1.001 * min(errors)


def figures(planned: Plan | Comparison) -> dict[str, float]:
    """The numbers of a plan that links may change, by name."""
    if isinstance(planned, Comparison):
        protocol = planned.protocol
        found = {"σ": float(protocol.sigma)} if hasattr(protocol, "sigma") else {}
        found["ε"] = planned.epsilon(planned.certified)
        return found | ({"error": planned.error.rmse} if isinstance(planned.error, ExpectedError) else {})
    best = planned.best
    if isinstance(planned, MaskedPlan):
        found = {}
        for option in planned.options:
            p = option.protocol
            found[f"{option.name}: rounds"] = p.rounds
            found[f"{option.name}: bytes that a party sends"] = p.link_bytes * 2 * p.graph.m / p.graph.n
        return found | {"error": best.rmse}
    if isinstance(planned, GossipPlan):
        gossip, graph = planned.best.protocol, planned.graph
        rounds = {"rounds": float(gossip.rounds), "bytes that a party sends": 8 * gossip.rounds * 2 * graph.m / graph.n}
        times = best.rmse / planned.curator_rmse
        return {**rounds, "σ": gossip.sigma, "error": best.rmse, "error, times a curator's": times}
    rounds_of = getattr(best.protocol, "rounds", None)
    found = {} if rounds_of is None else {"hops": float(rounds_of)}
    if isinstance(planned, RelayPlan):
        found["envelopes that a user sends"] = planned.protocol.envelopes
    epsilon = planned.promised if isinstance(planned, ShufflePlan) else planned.worst_epsilon(best)
    return {**found, "ε": epsilon, "error": best.rmse}


class BeforeAndAfter:
    """A plan on a graph with links beside the same plan without them, or why there is none."""

    def __init__(
        self,
        rings: int,
        seed: int,
        links: float,
        before: Plan | Comparison | str,
        after: Plan | Comparison,
        by_distance: bool = False,
    ) -> None:
        self.rings, self.seed, self.links = rings, seed, links
        self.said = (PUBLIC, *((DISTANCES,) if by_distance else ()))
        self.before = before if isinstance(before, str) else figures(before)
        self.after = figures(after)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        before = {"refused": self.before} if isinstance(self.before, str) else _finite(self.before)
        return {
            "rings": self.rings, "seed": self.seed, "links_per_party": self.links, "rests_on": list(self.said),
            "before": before, "after": _finite(self.after),
        }  # fmt: skip

    def table(self) -> RenderableType:
        """Both, side by side."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("what the links buy", no_wrap=True)
        for title in ("without", "with", "ratio"):
            table.add_column(title, justify="right", no_wrap=True)
        known = {} if isinstance(self.before, str) else self.before
        for name in dict.fromkeys([*known, *self.after]):
            old, new = known.get(name), self.after.get(name)
            ratio = f"{new / old:.3g}" if old and new is not None and math.isfinite(old) else ""
            table.add_row(name, _cell(old), _cell(new), ratio)
        rings = f"{self.rings} random ring{'s' if self.rings > 1 else ''}"
        why = [Text(f"without links: {self.before}", style="dim")] if isinstance(self.before, str) else []
        return Group(
            Text(f"\n{rings} (seed {self.seed}), {self.links:.1f} more links for everybody\n"),
            table,
            *why,
            *map(Text, self.said),
        )


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() or value >= 1000 else readable(value)


def _finite(found: dict[str, float]) -> dict[str, float | str]:
    return {name: value if math.isfinite(value) else str(value) for name, value in found.items()}


def save_links(advice: LinkAdvice, path: str | os.PathLike[str]) -> Path:
    """Write a picture of rounds against the number of random rings: .png, .svg, .pdf or .html."""
    return write_picture(path, lambda: _drawn(advice), lambda: _page(advice))


def _drawn(advice: LinkAdvice) -> Picture:
    from matplotlib.ticker import MaxNLocator

    from .figures import COLUMN, Picture, paper_style

    with paper_style():
        figure = Picture(figsize=(COLUMN, 2.6))
        axes = figure.subplots()
        for name, proposed in advice.proposed.items():
            points = [(row.rings, cost.rounds) for row in advice.rows if isinstance(cost := row.costs.get(name), Cost)]
            if not points:
                continue
            colour, mark = _LOOKS[name]
            label = f"{_TITLES[name]}: {'hops' if name == 'shuffle' else 'rounds'}"
            axes.plot(*zip(*points, strict=True), marker=mark, color=colour, label=label)
            for chosen in [point for point in points if point[0] == proposed]:
                axes.plot(*chosen, marker="o", markersize=10, fillstyle="none", color=colour)
        axes.set(yscale="log", xlabel="random rings laid over the graph (circled: proposed)", title=advice.graph.name)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        log_axis(axes.yaxis)
        axes.grid()
        axes.legend()
    return figure


def _page(advice: LinkAdvice) -> str:
    from .still import page_around

    names = list(advice.proposed)
    header = [
        "random rings",
        "more links",
        *(f"{_TITLES[name]}: {'hops' if name == 'shuffle' else 'rounds'}" for name in names),
    ]
    rows = []
    for row in advice.rows:
        costs = [row.costs.get(name) for name in names]
        cells = [f"{cost.rounds:,}" if isinstance(cost, Cost) else "–" for cost in costs]
        rows.append([str(row.rings), f"{row.links:.1f}", *cells])
    words = [f"{advice.graph.name}: {advice.graph.n:,} parties, {advice.graph.m:,} links. What random links buy."]
    return page_around("Random links", _drawn(advice), words, (header, rows), [PUBLIC])
