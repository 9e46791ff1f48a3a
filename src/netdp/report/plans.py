"""Plans for people: tables for a terminal, the picture of error against ε, and what random links buy.

`plan.plot()` draws all ways of a plan between local DP and a trusted curator. Links stand before and after, with how many are
proposed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdp.numerics.arrays import Progress
from netdp.privacy.guarantee import Claim
from netdp.privacy.wording import readable
from netdp.protocols.accuracy import ExpectedError
from netdp.protocols.answers import Answer, shares
from netdp.protocols.links import DISTANCES, PUBLIC, LinkAdvice, LinkCost
from netdp.protocols.planning import Option, Plan, TradeOffLine, baselines, trade_off
from netdp.report.charts import below, log_axis
from netdp.report.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    needs_matplotlib,
    page_around,
    picture_path,
    scientific,
    write_picture,
)

if TYPE_CHECKING:
    from netdp.report.figures import Picture

_TITLES = {"shuffle": "shuffling", "gossip": "gossip", "flood": "flood"}

_LOOKS = {"shuffle": (BLUE, "o"), "gossip": (RED, "s"), "flood": (GREEN, "^")}


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
            if not isinstance(cost, LinkCost):
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


ERROR = "error: predicted, the largest over all values from an interval of length Δ; ≤: it is at most this"
"""What stands under a table of errors."""


def _errors_differ(advice: LinkAdvice, name: str) -> bool:
    costs = [row.costs.get(name) for row in advice.rows]
    errors = [cost.error for cost in costs if isinstance(cost, LinkCost) and cost.error is not None]
    return len(errors) > 1 and max(errors) > 1.001 * min(errors)


def figures(planned: Plan | Answer) -> dict[str, float]:
    """The numbers of a plan that links may change, by name."""
    if isinstance(planned, Answer):
        protocol = planned.protocol
        found = {"σ": float(protocol.sigma)} if hasattr(protocol, "sigma") else {}
        found["ε"] = planned.epsilon
        return found | ({"error": planned.error.rmse} if isinstance(planned.error, ExpectedError) else {})
    best = planned.best
    if planned.family in (None, "masked"):
        found = {}
        for option in planned.options:
            if "bytes_per_link" in option.extras:
                found[f"{option.name}: rounds"] = option.rounds
                found[f"{option.name}: bytes that a party sends"] = option.bytes_per_link * _links(option)
        return found | {"error": best.rmse}
    if planned.family == "gossip":
        rounds = {"rounds": float(best.rounds), "bytes that a party sends": best.bytes_per_link * _links(best)}
        times = best.rmse / planned.curator_rmse
        return {**rounds, "σ": best.protocol.sigma, "error": best.rmse, "error, times a curator's": times}
    rounds_of = getattr(best.protocol, "rounds", None)
    found = {} if rounds_of is None else {"hops": float(rounds_of)}
    if "envelopes" in best.extras:
        found["envelopes that a user sends"] = best.envelopes
    return {**found, "ε": planned.promised, "error": best.rmse}


def _links(option: Option) -> float:
    """Links of a party, on average."""
    graph = option.protocol.network
    return float(2 * graph.m / graph.n)


class BeforeAndAfter:
    """A plan on a graph with links beside the same plan without them, or why there is none."""

    def __init__(
        self,
        rings: int,
        seed: int,
        links: float,
        before: Plan | Answer | str,
        after: Plan | Answer,
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
        table = _numbers("what the links buy", "without", "with", "ratio")
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
    return write_picture(path, lambda: _drawn_links(advice), lambda: _page_links(advice))


def _drawn_links(advice: LinkAdvice) -> Picture:
    from matplotlib.ticker import MaxNLocator

    from netdp.report.figures import COLUMN, Picture, paper_style

    with paper_style():
        figure = Picture(figsize=(COLUMN, 2.6))
        axes = figure.subplots()
        for name, proposed in advice.proposed.items():
            points = [
                (row.rings, cost.rounds) for row in advice.rows if isinstance(cost := row.costs.get(name), LinkCost)
            ]
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


def _page_links(advice: LinkAdvice) -> str:
    names = list(advice.proposed)
    header = [
        "random rings",
        "more links",
        *(f"{_TITLES[name]}: {'hops' if name == 'shuffle' else 'rounds'}" for name in names),
    ]
    rows = []
    for row in advice.rows:
        costs = [row.costs.get(name) for name in names]
        cells = [f"{cost.rounds:,}" if isinstance(cost, LinkCost) else "–" for cost in costs]
        rows.append([str(row.rings), f"{row.links:.1f}", *cells])
    words = [f"{advice.graph.name}: {advice.graph.n:,} parties, {advice.graph.m:,} links. What random links buy."]
    return page_around("Random links", _drawn_links(advice), words, (header, rows), [PUBLIC])


def plan_table(plan: Plan) -> RenderableType:
    """A plan of one family as that family is best told, of all families in one table."""
    tables = {"gossip": gossip_table, "masked": masked_table, "token": token_table, "shuffle": shuffle_table}
    if plan.family is None:
        return all_table(plan)
    return tables[plan.family](plan) if plan.family in tables else Text(str(plan))


def all_table(plan: Plan) -> RenderableType:
    """Every way of every family, the best first, beside local DP and a trusted curator."""

    def cells(option: Option) -> tuple[str, ...]:
        name = f"{option.name}{' *' if option.needs else ''}"
        worst = readable(plan.worst_epsilon(option))
        rounds, sent = str(option.extras.get("rounds", "")), f"{option.messages:,.0f}"
        return name, _noise(option), rounds, sent, worst, option.guarantee.claim.value

    laws = f", {plan.local_law} noise", f", {plan.curator_law} noise"
    return Group(
        *_heading(plan),
        _ways(plan, ("way", "noise", "rounds", "sent", "worst ε", "claim"), cells, laws),
        Text(f"\nchosen: {plan.protocol}"),
        Text(f"claim: {plan.guarantee.claim.meaning}"),
        *_beside(plan),
        Text("noise: σ, or ε₀ of a report; sent: messages of a party", style="dim"),
        Text(ERROR, style="dim"),
        *(Text(f"not offered: {family}: {why}") for family, why in plan.not_offered.items()),
        *(Text(note, style="dim") for note in plan.notes),
    )  # fmt: skip


def _numbers(first: str, *titles: str) -> Table:
    """A table of numbers behind a column of names; names wrap, numbers are never cut."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _ways(
    plan: Plan,
    titles: tuple[str, ...],
    cells: Callable[[Option], Sequence[str]],
    laws: tuple[str, str] = ("", ""),
) -> Table:
    """A row for every way, then local DP and a trusted curator: `cells`, the error, and how many times a curator's it is."""

    def errors(rmse: float, cell: str | None = None) -> tuple[str, str]:
        return cell or readable(rmse), f"{rmse / plan.curator_rmse:.2f}"

    table = _numbers(*titles, "error", "×curator")
    for option in plan.options:
        table.add_row(
            *cells(option), *errors(option.rmse, option.error.cell), style="green" if option is plan.best else None
        )
    for (name, rmse), law in zip(_classical(plan), laws, strict=True):
        table.add_row(f"{name}{law}", *[""] * (len(titles) - 1), *errors(rmse))
    return table


def _classical(plan: Plan) -> tuple[tuple[str, float], tuple[str, float]]:
    """The two ways to compare with."""
    return ("local DP", plan.local_rmse), ("trusted curator", plan.curator_rmse)


def _heading(plan: Plan, who: str | None = None) -> tuple[Text, Text]:
    """Among whom, for which target, and against whom it holds."""
    if plan.graph is not None and who is None:
        who = f"{plan.graph.name}: {plan.graph.n:,} parties, {plan.graph.m:,} edges"
    asked = f"target {_asked(plan)} at δ = {plan.delta:g}, Δ = {plan.sensitivity:g}"
    return Text(f"{who}; {asked}"), Text(f"{plan.holds}\n")


def _asked(plan: Plan) -> str:
    return "the policy" if plan.epsilon is None else f"ε ≤ {plan.epsilon:g}"


def _noise(option: Option) -> str:
    noise = getattr(option.protocol, "sigma", None)
    return f"{option.protocol.epsilon0:g}" if noise is None else f"{noise:g}"


def gossip_table(plan: Plan) -> RenderableType:
    """What was chosen, the alternatives, local DP and a trusted curator."""

    def cells(option: Option) -> tuple[str, ...]:
        p, name = option.protocol, f"{option.name}{', accelerated' if option.protocol.accelerated else ''}"
        noise = f"{p.sigma:g}", f"{p.masks:g}", f"{p.refresh:g}"
        return name, str(p.rounds), *noise, f"{8 * p.rounds:,}", readable(plan.worst_epsilon(option))

    return Group(
        *_heading(plan),
        _ways(plan, ("gossip", "rounds", "σ", "κ", "r", "bytes", "max ε"), cells),
        Text(f"\n{_chosen(plan.best)}"),
        *_beside(plan),
        *(Text(note, style="dim") for note in plan.notes),
    )


def advice_table(advice: Any) -> RenderableType:
    """The topologies side by side and the recommendation."""
    table = _numbers("masked gossip on", "degree", "gap", "rounds", "sent", "worst ε", "error", "×curator")
    for candidate in advice.candidates:
        option, graph = candidate.option, candidate.graph
        table.add_row(
            graph.name, f"{2 * graph.m / graph.n:.3g}", f"{candidate.gap:.2g}", str(option.protocol.rounds),
            f"{option.messages:,.0f}", readable(candidate.plan.worst_epsilon(option)), option.error.cell,
            f"{option.rmse / candidate.plan.curator_rmse:.2f}",
            style="green" if candidate is advice.recommended else None,
        )  # fmt: skip
    return Group(table, Text(f"\nrecommended: {advice.sentence}"))


def _chosen(option: Option) -> str:
    p, c = option.protocol, option.certificate
    extras = [f"masks={p.masks!r}"] if p.masks else []
    extras += [f"refresh={p.refresh!r}"] if p.refresh else []
    extras += ["accelerated=True"] if p.accelerated else []
    kind = {"exact": "exact, a matching attack exists", "upper": "upper, a proved bound"}[c.claim.value]
    return (
        f"chosen: Gossip({', '.join(['graph', f'rounds={p.rounds}', f'sigma={p.sigma!r}', *extras])})\n"
        f"claim: {kind}"
        "\nκ: masks, r: refresh, bytes: over a link, each way, for one number"
        f"\n{ERROR}"
    )


def _beside(plan: Plan) -> list[Text]:
    """The coalition that was found beside a bound for all of them, and what no protocol can do."""
    found = plan.guarantee.found
    lines = [] if found is None else [Text(f"found: {found.sentence(plan.delta)}")]
    return lines + ([] if plan.limit is None else [Text(f"limit: {plan.limit.words}", style="dim")])


def shuffle_table(plan: Plan) -> RenderableType:
    """How many hops, what the curator learns then, and the alternatives."""
    p, users = plan.protocol, plan.best.users
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    who = "" if users == 1 else f", for {100 * users:g} % of the users"
    table.add_row(f"certified, against the curator{who}", readable(plan.promised), style="bold green")
    if users < 1:
        table.add_row("the same, for the worst placed user", readable(plan.worst))
    table.add_row("a trusted shuffler", readable(plan.uniform))
    table.add_row("a trusted sampler of √n reports", readable(plan.sampled))
    table.add_row("local DP (no shuffling)", readable(p.epsilon0))
    table.add_row(f"predicted error, of the shares of {shares(p)}", plan.best.error.cell, style="dim")
    table.add_row("the same by a trusted curator at this ε", readable(plan.curator_rmse), style="dim")
    sure = "exact" if plan.mixed.method == "exact" else "proved by a spectral bound"
    lazy = f", laziness={p.laziness:g}" if p.laziness else ""
    stated = f", values={p.values}" if p.values else ""
    crowd = plan.mixed.crowd(users)
    return Group(
        Text(f"{p.graph.name}: {p.graph.n:,} users, {p.graph.m:,} edges; reports with ε₀ = {p.epsilon0:g}"),
        Text(f"What is learned about a user: ε at δ = {plan.delta:g}\n", style="bold"),
        table,
        Text(
            f"\nchosen: Shuffle(graph, rounds={p.rounds}, epsilon0={p.epsilon0!r}{lazy}, reporting={p.reporting!r}{stated})"
        ),
        Text(f"every user passes on {plan.hops:,.0f} reports on average"),
        Text(f"and hides among {100 * crowd:.3g} % of the others ({sure})"),
        Text(f"claim: {plan.guarantee.claim.value}, a proved bound"),
    )


def masked_table(plan: Plan) -> RenderableType:
    """Both ways of spreading at one target, beside local DP and a trusted curator."""

    def cells(option: Option) -> tuple[str, ...]:
        p = option.protocol
        return option.name, str(p.rounds), f"{p.sigma:g}", f"{p.link_bytes:,}", readable(plan.worst_epsilon(option))

    return Group(
        *_heading(plan),
        _ways(plan, ("masked sum", "rounds", "σ", "bytes a link", "worst ε"), cells),
        Text(f"\nchosen: {plan.protocol}"),
        Text(f"claim: {plan.guarantee.claim.value}, a proved bound; computational in the pads"),
        Text(ERROR, style="dim"),
        *(Text(note, style="dim") for note in plan.notes),
    )


def token_table(plan: Plan) -> RenderableType:
    """Ring and walks at one target, beside local DP and a trusted curator."""

    def cells(option: Option) -> tuple[str, ...]:
        return option.name, _noise(option), readable(plan.worst_epsilon(option)), option.guarantee.claim.value

    return Group(
        *_heading(plan, f"{plan.n:,} users"),
        _ways(plan, ("token", "σ", "worst ε", "claim"), cells),
        Text(f"\nchosen: {plan.protocol}"),
        *_beside(plan),
        Text(ERROR, style="dim"),
        *(Text(note, style="dim") for note in plan.notes),
    )


_MARKS = "osD^vPX<>"


def plot_plan(plan: Plan, progress: Progress | None = None) -> Picture:
    """Error against ε: one line for every way, its noise smaller and larger; large marks: what was planned."""
    needs_matplotlib()
    return _drawn_trade_off(plan, trade_off(plan, progress=progress))


def save_plan(plan: Plan, path: str | os.PathLike[str], progress: Progress | None = None) -> Path:
    """Write the picture of a plan: .png, .svg, .pdf or .html."""
    picture_path(path)  # refuse before the work
    lines = trade_off(plan, progress=progress)
    return write_picture(path, lambda: _drawn_trade_off(plan, lines), lambda: _page_trade_off(plan, lines))


def _drawn_trade_off(plan: Plan, lines: tuple[TradeOffLine, ...]) -> Picture:
    from netdp.report.figures import COLUMN, Picture, paper_style

    with paper_style():
        figure = Picture(figsize=(COLUMN * 1.15, 3.2))
        axes = figure.subplots()
        known = [e for line in lines for e in line.epsilon if e > 0] + ([plan.epsilon] if plan.epsilon else [])
        if known:
            grid = np.geomspace(min(known), max(known), 60)
            looks = {"local DP": (RED, (0, (4, 1))), "trusted curator": (GREEN, ":")}
            for name, errors in baselines(plan, grid).items():
                axes.plot(grid, errors, color=looks[name][0], linestyle=looks[name][1], label=name)
        for place, (line, option) in enumerate(zip(lines, plan.options, strict=True)):
            colour, mark = (BLUE, ORANGE, PURPLE, SKY, GREY)[place % 5], _MARKS[place % len(_MARKS)]
            # ways that agree lie on each other, the later ones narrower
            width, label = 1.3 + 0.9 * min(2, len(lines) - 1 - place), f"{option.name} ({option.guarantee.claim.value})"
            axes.plot(line.epsilon, line.rmse, color=colour, label=label, linewidth=width)
            best = option is plan.best
            at = option.promised(plan.delta)
            axes.plot([at], [option.rmse], marker=mark, color=colour, markersize=8 if best else 5, markeredgecolor="black",
                      markeredgewidth=1.0 if best else 0.4, zorder=4)  # fmt: skip
        if plan.epsilon:
            axes.axvline(plan.epsilon, color="#9aa1ab", linewidth=0.8, zorder=0)
        bounds = any(option.error.claim is Claim.UPPER for option in plan.options)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel=f"certified ε at δ = {scientific(plan.delta)}",
            ylabel=f"predicted error{', or a bound on it' if bounds else ''} (rms)",
        )
        log_axis(axes.xaxis)
        log_axis(axes.yaxis)
        axes.grid()
        below(axes, columns=2)
        axes.set_title(fill(f"{_subject(plan)}; chosen: {plan.best.name}", 66), loc="left")
    return figure


def _subject(plan: Plan) -> str:
    graph = plan.protocol.network
    return f"{plan.protocol.n:,} parties" if graph is None else f"{graph.name}: {graph.n:,} parties"


def _page_trade_off(plan: Plan, lines: tuple[TradeOffLine, ...]) -> str:
    header = ["way", "claim", "certified ε", "predicted error", "× curator"]
    rows = [
        [("* " if option is plan.best else "") + option.name, option.guarantee.claim.value, readable(plan.worst_epsilon(option)),
         option.error.cell, f"{option.rmse / plan.curator_rmse:.2f}"]
        for option in plan.options
    ]  # fmt: skip
    met = "" if plan.epsilon is None else readable(plan.epsilon)
    rows += [[name, "", met, readable(rmse), f"{rmse / plan.curator_rmse:.2f}"] for name, rmse in _classical(plan)]
    words = [
        f"Asked: {_asked(plan)} at δ = {plan.delta:g}; {plan.holds}.",
        f"Chosen (*): {plan.protocol.describe()}.",
        "Lines: the same ways with more and with less noise; at another target a plan would choose anew.",
        f"{ERROR[0].upper()}{ERROR[1:]}.",
    ]
    assumed = list(plan.guarantee.assumptions)
    refused = [f"not offered: {name}: {why}" for name, why in plan.not_offered.items()]
    return page_around(
        "A plan: error against ε",
        _drawn_trade_off(plan, lines),
        words,
        (header, rows),
        [*plan.notes, *refused, *assumed],
    )
