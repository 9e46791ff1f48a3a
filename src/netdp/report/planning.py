"""Plans and advice as tables for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdp.planning.base import Plan
from netdp.planning.gossip.advise import Advice
from netdp.planning.gossip.plan import GossipOption, GossipPlan
from netdp.planning.masked.plan import MaskedPlan
from netdp.planning.shuffle.plan import ShufflePlan
from netdp.planning.token.plan import TokenPlan
from netdp.privacy.readable import readable


def plan_table(plan: GossipPlan, beside: MaskedPlan | None = None) -> RenderableType:
    """What was chosen, the alternatives, local DP and a trusted curator; a masked sum at the same target, if it is given."""
    graph, target = plan.graph, plan.target
    asked = f"ε ≤ {target.epsilon:g}" if target.epsilon is not None else "the policy"
    subject = f"{graph.name}: {graph.n:,} parties, {graph.m:,} edges"
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("gossip")
    for title in ("rounds", "σ", "κ", "r", "bytes", "max ε", "error", "×curator"):
        table.add_column(title, justify="right", no_wrap=True)  # names wrap, numbers are never cut
    for option in plan.options:
        p, best = option.protocol, option is plan.best
        table.add_row(
            f"{option.name}{', accelerated' if p.accelerated else ''}",
            str(p.rounds), f"{p.sigma:g}", f"{p.masks:g}", f"{p.refresh:g}", f"{8 * p.rounds:,}",
            readable(plan.worst_epsilon(option)), readable(option.rmse), f"{option.rmse / plan.curator_rmse:.2f}",
            style="green" if best else None,
        )  # fmt: skip
    for way in () if beside is None else beside.options:
        table.add_row(
            f"masked sum, {way.name}", str(way.protocol.rounds), f"{way.protocol.sigma:g}", "", "",
            f"{way.protocol.link_bytes:,}", readable(way.guarantee.worst_epsilon(plan.delta)), readable(way.rmse),
            f"{way.rmse / plan.curator_rmse:.2f}",
        )  # fmt: skip
    for name, rmse in (("local DP", plan.local_rmse), ("trusted curator", plan.curator_rmse)):
        table.add_row(name, *[""] * 6, readable(rmse), f"{rmse / plan.curator_rmse:.2f}")
    return Group(
        Text(f"{subject}; target {asked} at δ = {target.delta:g}, Δ = {plan.protocol.sensitivity:g}"),
        Text(f"{plan.holds}\n"),
        table,
        Text(f"\n{_chosen(plan.best)}"),
        *_beside(plan),
        *([] if beside is None else [Text(_masked_sum(beside))]),
        *(Text(note, style="dim") for note in plan.notes),
    )  # fmt: skip


def advice_table(advice: Advice) -> RenderableType:
    """The topologies side by side and the recommendation."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("masked gossip on", no_wrap=True)
    for title in ("degree", "gap", "rounds", "sent", "worst ε", "error", "×curator"):
        table.add_column(title, justify="right")
    for candidate in advice.candidates:
        option, graph = candidate.option, candidate.graph
        table.add_row(
            graph.name, f"{2 * graph.m / graph.n:.3g}", f"{candidate.gap:.2g}", str(option.protocol.rounds),
            f"{option.messages:,.0f}", readable(candidate.plan.worst_epsilon(option)), readable(option.rmse),
            f"{option.rmse / candidate.plan.curator_rmse:.2f}",
            style="green" if candidate is advice.recommended else None,
        )  # fmt: skip
    return Group(table, Text(f"\nrecommended: {advice.sentence}"))


def _chosen(option: GossipOption) -> str:
    p, c = option.protocol, option.certificate
    extras = [f"masks={p.masks!r}"] if p.masks else []
    extras += [f"refresh={p.refresh!r}"] if p.refresh else []
    extras += ["accelerated=True"] if p.accelerated else []
    kind = {"exact": "exact, a matching attack exists", "upper": "upper, a proved bound"}[c.claim.value]
    return (
        f"chosen: Gossip({', '.join(['graph', f'rounds={p.rounds}', f'sigma={p.sigma!r}', *extras])})\n"
        f"claim: {kind}"
        "\nκ: masks, r: refresh, bytes: over a link, each way, for one number"
        "\nerror: predicted, the largest over all values from an interval of length Δ"
    )


def _beside(plan: Plan) -> list[Text]:
    """The coalition that was found beside a bound for all of them, and what no protocol can do."""
    found = plan.guarantee.found
    lines = [] if found is None else [Text(f"found: {found.sentence(plan.delta)}")]
    return lines + ([] if plan.limit is None else [Text(f"limit: {plan.limit.words}", style="dim")])


def _masked_sum(plan: MaskedPlan) -> str:
    against = "any single party" if plan.colluders == 1 else f"any {plan.colluders} parties together"
    return f"masked sum: -p masked, exact integers; holds against {against}"


def shuffle_table(plan: ShufflePlan) -> RenderableType:
    """How many hops, what the curator learns then, and the alternatives."""
    p = plan.protocol
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    who = "" if plan.users == 1 else f", for {100 * plan.users:g} % of the users"
    table.add_row(f"certified, against the curator{who}", readable(plan.promised), style="bold green")
    if plan.users < 1:
        table.add_row("the same, for the worst placed user", readable(plan.worst))
    table.add_row("a trusted shuffler", readable(plan.uniform))
    table.add_row("a trusted sampler of √n reports", readable(plan.sampled))
    table.add_row("local DP (no shuffling)", readable(p.epsilon0))
    table.add_row("predicted error, of the shares of yes and no", readable(plan.best.rmse), style="dim")
    table.add_row("the same by a trusted curator at this ε", readable(plan.curator_rmse), style="dim")
    sure = "exact" if plan.mixed.method == "exact" else "proved by a spectral bound"
    lazy = f", laziness={p.laziness:g}" if p.laziness else ""
    crowd = plan.mixed.crowd(plan.users)
    return Group(
        Text(f"{p.graph.name}: {p.graph.n:,} users, {p.graph.m:,} edges; reports with ε₀ = {p.epsilon0:g}"),
        Text(f"What is learned about a user: ε at δ = {plan.delta:g}\n", style="bold"),
        table,
        Text(f"\nchosen: Shuffle(graph, rounds={p.rounds}, epsilon0={p.epsilon0!r}{lazy}, reporting={p.reporting!r})"),
        Text(f"every user passes on {plan.hops:,.0f} reports on average"),
        Text(f"and hides among {100 * crowd:.3g} % of the others ({sure})"),
        Text(f"claim: {plan.guarantee.claim.value}, a proved bound"),
    )


def masked_table(plan: MaskedPlan) -> RenderableType:
    """Both ways of spreading at one target, beside local DP and a trusted curator."""
    graph = plan.graph
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("masked sum", no_wrap=True)
    for title in ("rounds", "σ", "bytes a link", "worst ε", "error", "×curator"):
        table.add_column(title, justify="right", no_wrap=True)  # names wrap, numbers are never cut
    for option in plan.options:
        p = option.protocol
        table.add_row(
            option.name, str(p.rounds), f"{p.sigma:g}", f"{p.link_bytes:,}", readable(plan.worst_epsilon(option)),
            readable(option.rmse), f"{option.rmse / plan.curator_rmse:.2f}",
            style="green" if option is plan.best else None,
        )  # fmt: skip
    for name, rmse in (("local DP", plan.local_rmse), ("trusted curator", plan.curator_rmse)):
        table.add_row(name, *[""] * 4, readable(rmse), f"{rmse / plan.curator_rmse:.2f}")
    return Group(
        Text(f"{graph.name}: {graph.n:,} parties, {graph.m:,} edges; target ε ≤ {plan.epsilon:g} at δ = {plan.delta:g}, "
             f"Δ = {plan.sensitivity:g}"),
        Text(f"{plan.holds}\n"),
        table,
        Text(f"\nchosen: {plan.protocol}"),
        Text(f"claim: {plan.guarantee.claim.value}, a proved bound; computational in the pads"),
        Text("error: predicted, the largest over all values from an interval of length Δ", style="dim"),
        *(Text(note, style="dim") for note in plan.notes),
    )  # fmt: skip


def token_table(plan: TokenPlan) -> RenderableType:
    """Ring and walks at one target, beside local DP and a trusted curator."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("token", no_wrap=True)
    for title in ("σ", "worst ε", "claim", "error", "×curator"):
        table.add_column(title, justify="right", no_wrap=True)  # names wrap, numbers are never cut
    for option in plan.options:
        noise = getattr(option.protocol, "sigma")  # noqa: B009  every way of a token has it
        table.add_row(
            option.name, f"{noise:g}", readable(plan.worst_epsilon(option)), option.guarantee.claim.value,
            readable(option.rmse), f"{option.rmse / plan.curator_rmse:.2f}",
            style="green" if option is plan.best else None,
        )  # fmt: skip
    for name, rmse in (("local DP", plan.local_rmse), ("trusted curator", plan.curator_rmse)):
        table.add_row(name, "", "", "", readable(rmse), f"{rmse / plan.curator_rmse:.2f}")
    return Group(
        Text(f"{plan.n:,} users; target ε ≤ {plan.epsilon:g} at δ = {plan.delta:g}, Δ = {plan.sensitivity:g}"),
        Text(f"{plan.holds}\n"),
        table,
        Text(f"\nchosen: {plan.protocol}"),
        *_beside(plan),
        Text("error: predicted, the largest over all values from an interval of length Δ", style="dim"),
        *(Text(note, style="dim") for note in plan.notes),
    )
