"""`netdp plan`: which settings meet a privacy target with the smallest error?"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from . import flags

if TYPE_CHECKING:
    from netdp.graphs import Graph
    from netdp.planning import Plan
    from netdp.planning.gossip.plan import GossipPlan
    from netdp.planning.masked.plan import MaskedPlan
    from netdp.report.comparison import Comparison
    from netdp.report.links import BeforeAndAfter
    from netdp.settings.loading import Planning
    from netdp.settings.models import Advised, PlanGossip


PLAN_FLAGS: dict[str, Any] = {
    "epsilon": Annotated[float | None, typer.Option("--epsilon", help="ε that must be met.")],
    "scope": Annotated[
        str | None,
        typer.Option("--scope", help="gossip: worst (every pair), mean, or beyond:2 (pairs 2 or more hops apart)."),
    ],
    "policy": Annotated[
        Path | None,
        typer.Option(
            "--policy", help="gossip: a file of rules 'target, observer, epsilon' instead of --epsilon and --scope."
        ),
    ],
    "observer": Annotated[
        list[str] | None,
        typer.Option(
            "--observer", "-o", help="gossip: only these parties look, each alone; repeat it.", show_default=False
        ),
    ],
    "coalitions": Annotated[
        float | None,
        typer.Option("--coalitions", help="gossip: this share of the parties, drawn at random, pools what it sees."),
    ],
    "seed": Annotated[int | None, typer.Option("--seed", help="Seed of the drawn coalitions; 0 by default.")],
    "draws": Annotated[int | None, typer.Option("--draws", help="How many coalitions are drawn; 20 by default.")],
    "max_rounds": Annotated[
        int | None, typer.Option("--max-rounds", help="gossip: no more rounds than this; 200 by default.")
    ],
    "share": Annotated[
        float | None,
        typer.Option("--share", help="shuffle: the share of ε that imperfect mixing may cost; 0.01 by default."),
    ],
    "users": Annotated[
        float | None,
        typer.Option(
            "--users", help="shuffle: for this share of the users, 0.99; the worst placed are named; all by default."
        ),
    ],
    "visits": Annotated[
        int | None, typer.Option("--visits", help="token: visits per user on average; 100 by default, 20 on a graph.")
    ],
    "advise": Annotated[
        bool | None,
        typer.Option(
            "--advise",
            help="gossip, shuffle, masked: propose random links, with what they buy; gossip: compare topologies, too.",
            show_default=False,
        ),
    ],
    "links": Annotated[
        int | None,
        typer.Option(
            "--links",
            help="Lay so many random rings over the graph, two more links for everybody each; what do they buy?",
        ),
    ],
    "links_seed": Annotated[int | None, typer.Option("--links-seed", help="Seed of the random links; 0 by default.")],
    "plot": Annotated[
        str | None,
        typer.Option(
            "--plot", help="Draw error against ε (--advise: rounds against links): out.png, .svg, .pdf or .html."
        ),
    ],
    "colluders": Annotated[
        int | None, typer.Option("--colluders", help="How many parties pool what they see, any of them; 1 by default.")
    ],
}


#: Settings of protocols that a plan finds itself, or that belong only to protocols with a planner of their own.
_FOUND = (
    "sigma", "gamma", "centre", "cover", "crashes", "delta0", "law", "noise", "reach",
)  # fmt: skip


@flags.takes(
    {
        "graph": flags.Graph,
        "protocol": flags.Protocol,
        **PLAN_FLAGS,
        "delta": flags.Delta,
        **{name: kind for name, kind in flags.PROTOCOL_FLAGS.items() if name not in _FOUND},
        **flags.ENGINE_FLAGS,
        "config": flags.Config,
        "json": flags.Json,
    }
)
def plan(context: typer.Context, **typed: Any) -> None:
    """Choose rounds, noise, masks and refresh: the smallest predicted error whose certified loss meets the target.

    For gossip the table compares plain, refreshed and masked gossip with a masked sum, local DP and a trusted curator at the
    same (ε, δ).
    For tokens it compares a ring and random walks with them. For shuffling: the fewest hops after which
    reports are as good as shuffled by a trusted shuffler (--epsilon0), and the least noisy reports for a target (--epsilon).
    For masked sums: the noise against any --colluders parties, and rounds and bytes of both ways of spreading. For every
    other protocol, stated but for its noise: the least noise.

    Slow graphs make everything slow: --links 2 lays two random rings over the parties and says what that buys, --advise how
    many are worth it.
    """
    from netdp.privacy.weak import weak_words
    from netdp.settings.loading import plan_settings
    from netdp.settings.models import Advised, PlanGossip

    from .progress import working
    from .show import show

    settings = plan_settings(typed["config"], flags.given(typed))
    context.with_resource(settings.running())
    if settings.plot is not None:
        from netdp.report.files import picture_path

        picture_path(settings.plot)  # refuse before the work
    if isinstance(settings, Advised) and settings.advise:
        _advise(settings)
        return
    # gossip has a bar of its own
    with contextlib.nullcontext() if isinstance(settings, PlanGossip) else working("planning"):
        answer = _answer(settings)
    data, lines = answer.data, answer.lines
    if settings.plot is not None:
        drawn = _drawn(answer.planned, settings.plot)
        data, lines = {**data, "plot": str(drawn)}, [*lines, f"picture: {drawn}"]
    if settings.links:
        beside = _without_links(settings, answer)
        data, lines = {**data, "links": beside.to_dict()}, [*lines, beside.table()]
    if (weak := weak_words(getattr(settings, "epsilon", None) or 0.0)) is not None:
        data, lines = {**data, "warning": weak}, [f"WARNING: {weak}.", *lines]
    show(data, lines, settings.as_json)


def _drawn(planned: Plan | Comparison, path: str) -> Path:
    """Error against ε of a plan; of a protocol whose noise was found, what it gives away then."""
    from netdp.planning import Plan
    from netdp.report.picture import save_picture
    from netdp.report.trade_off import save_plan

    from .progress import progress_bar

    with progress_bar("drawing") as progress:
        return (
            save_plan(planned, path, progress) if isinstance(planned, Plan) else save_picture(planned, path, progress)
        )


class Answer(NamedTuple):
    """A plan, as data and as what is printed."""

    planned: Any
    data: dict[str, Any]
    lines: list[Any]


def _answer(settings: Planning) -> Answer:
    from netdp.planning import FaultyPlan, MaskedPlan, RelayPlan, ShufflePlan, TokenPlan
    from netdp.planning.gossip.plan import GossipPlan
    from netdp.report.comparison import comparison_table
    from netdp.report.planning import masked_table, plan_table, shuffle_table, token_table
    from netdp.settings.models import PlanGossip, PlanNoise
    from netdp.settings.plans import planned

    from .progress import progress_bar

    beside = None
    with progress_bar("planning") as progress:
        found = planned(settings, progress)
        if isinstance(found, GossipPlan):
            assert isinstance(settings, PlanGossip)
            beside = _masked_beside(found, settings)
    if isinstance(found, GossipPlan):
        written = {**found.to_dict(), "masked_sum": None if beside is None else beside.to_dict()}
        return Answer(found, written, [plan_table(found, beside)])
    if isinstance(found, FaultyPlan | RelayPlan):
        return Answer(found, found.to_dict(), [str(found)])
    if isinstance(found, TokenPlan):
        return Answer(found, found.to_dict(), [token_table(found)])
    if isinstance(found, ShufflePlan):
        return Answer(found, found.to_dict(), [shuffle_table(found)])
    if isinstance(found, MaskedPlan):
        return Answer(found, found.to_dict(), [masked_table(found)])
    assert isinstance(settings, PlanNoise)
    target = f"target ε ≤ {settings.epsilon:g} at δ = {settings.delta:g}: the least noise that meets it"
    return Answer(found, {"epsilon_asked": settings.epsilon, **found.to_dict()}, [target, comparison_table(found)])


def _without_links(settings: Planning, after: Answer) -> BeforeAndAfter:
    """The same plan on the graph as it is beside the one with links; where that is refused, the reason."""
    from netdp.errors import NetdpError
    from netdp.graphs import parse, with_links
    from netdp.report.links import BeforeAndAfter
    from netdp.settings.models import PlanGossip, PlanNoise, turns_of

    try:
        before: Any = _answer(settings.model_copy(update={"links": 0})).planned
    except NetdpError as refusal:
        before = str(refusal)
    several = isinstance(settings, PlanNoise) and settings.way.first == "graphs"
    plain = parse(turns_of(settings.graph)[0] if several else settings.graph)
    linked = with_links(plain, settings.links, settings.links_seed)
    by_distance = isinstance(settings, PlanGossip) and (
        settings.policy is not None or settings.scope.startswith("beyond")
    )
    return BeforeAndAfter(
        settings.links, settings.links_seed, 2 * (linked.m - plain.m) / plain.n, before, after.planned, by_distance
    )


def _advise(settings: Advised) -> None:
    """How many random links, for every protocol that goes along the links of a graph; for gossip, which topology, too."""
    from netdp.planning.links import PROTOCOLS, advise_links
    from netdp.report.links import links_table, save_links
    from netdp.settings.models import PlanGossip, PlanMasked, PlanShuffle
    from netdp.settings.plans import gossip_options

    from .progress import working
    from .show import show

    network = settings.network()
    data: dict[str, Any] = {}
    lines: list[Any] = []
    options: dict[str, Any] = {"seed": settings.links_seed, "delta": getattr(settings, "delta")}  # noqa: B009
    own = "gossip"
    if isinstance(settings, PlanGossip):
        data, lines = _topologies(settings, network)
        options |= {"epsilon": settings.epsilon, "colluders": settings.colluders, "sensitivity": settings.sensitivity}
        gossip = gossip_options(settings)
        options["gossip"] = {key: gossip[key] for key in gossip if key not in ("colluders", "sensitivity")}
    elif isinstance(settings, PlanMasked):
        own = "flood"
        options |= {"epsilon": settings.epsilon, "colluders": settings.colluders, "sensitivity": settings.sensitivity}
        options["masked"] = {"attempts": settings.attempts, "absent": settings.absent, "grid": settings.grid}
    elif isinstance(settings, PlanShuffle):
        own = "shuffle"
        options |= {"epsilon0": settings.epsilon0} | ({} if settings.epsilon is None else {"epsilon": settings.epsilon})
        keys = ("share", "laziness", "reporting", "users")
        options["shuffle"] = {key: getattr(settings, key) for key in keys}
    with working("trying random links"):
        found = advise_links(network, protocols=sorted(PROTOCOLS, key=lambda name: name != own), **options)
    drawn = save_links(found, settings.plot) if settings.plot is not None else None
    lines += [links_table(found), *([f"picture: {drawn}"] if drawn is not None else [])]
    show({**data, "links": found.to_dict(), "plot": str(drawn) if drawn else None}, lines, settings.as_json)


def _topologies(settings: PlanGossip, network: Graph) -> tuple[dict[str, Any], list[Any]]:
    from netdp.planning.audience import MAX_EVERYBODY
    from netdp.planning.gossip.advise import advise as make_advice
    from netdp.report.planning import advice_table
    from netdp.settings.plans import gossip_options

    from .progress import progress_bar

    if network.n > MAX_EVERYBODY:
        said = f"topologies are compared for up to {MAX_EVERYBODY:,} parties; here are random links only\n"
        return {"candidates": [], "recommended": None}, [said]
    assert settings.epsilon is not None  # --advise refuses policies
    options = gossip_options(settings)
    with progress_bar("planning") as progress:
        advice = make_advice(network, settings.epsilon, settings.delta, progress=progress, **options)
    return advice.to_dict(), [advice_table(advice), ""]


def _masked_beside(planned: GossipPlan, settings: PlanGossip) -> MaskedPlan | None:
    """A masked sum at the same target, against any coalition as large as those planned for; None where there is none to offer."""
    from netdp.errors import InvalidValue, Unsupported
    from netdp.planning import plan_masked
    from netdp.planning.audience import MAX_EVERYBODY

    if (
        settings.epsilon is None or planned.graph.n > MAX_EVERYBODY
    ):  # a policy has many ε; flooding measures all distances
        return None
    colluders = max([planned.audience.any_of or 1, *(len(members) for members in planned.audience.coalitions)])
    try:
        return plan_masked(
            planned.graph, settings.epsilon, settings.delta, colluders=colluders, sensitivity=settings.sensitivity
        )
    except (InvalidValue, Unsupported):
        return None
