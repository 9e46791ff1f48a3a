"""`netdp plan`: which settings meet a privacy target with the smallest error?"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from . import flags

if TYPE_CHECKING:
    from netdp.protocols.answers import Answer
    from netdp.protocols.planning import Plan
    from netdp.report.plans import BeforeAndAfter
    from netdp.settings.models import Advised, Planned


PLAN_FLAGS: dict[str, Any] = {
    "epsilon": flags.option(float, "ε that must be met."),
    "scope": flags.option(str, "gossip: worst (every pair), mean, or beyond:2 (pairs 2 or more hops apart)."),
    "policy": flags.option(
        Path, "gossip: a file of rules 'target, observer, epsilon' instead of --epsilon and --scope."
    ),
    "observer": flags.option(list[str], "gossip: only these parties look, each alone; repeat it.", "--observer", "-o"),
    "coalitions": flags.option(float, "gossip: this share of the parties, drawn at random, pools what it sees."),
    "seed": flags.option(int, "Seed of the drawn coalitions; 0 by default."),
    "draws": flags.option(int, "How many coalitions are drawn; 20 by default."),
    "max_rounds": flags.option(int, "gossip: no more rounds than this; 200 by default."),
    "share": flags.option(float, "shuffle: the share of ε that imperfect mixing may cost; 0.01 by default."),
    "users": flags.option(
        float, "shuffle: for this share of the users, 0.99; the worst placed are named; all by default."
    ),
    "visits": flags.option(int, "token: visits per user on average; 100 by default, 20 on a graph."),
    "advise": flags.option(
        bool,
        "gossip, shuffle, masked: propose random links, with what they buy; gossip: compare topologies, too.",
        "--advise",
    ),
    "links": flags.option(
        int, "Lay so many random rings over the graph, two more links for everybody each; what do they buy?"
    ),
    "links_seed": flags.option(int, "Seed of the random links; 0 by default."),
    "seconds": flags.option(float, "Without -p: a protocol that takes longer to plan is left out; 20 by default."),
    "plot": flags.option(str, "Draw error against ε (--advise: rounds against links): out.png, .svg, .pdf or .html."),
    "colluders": flags.option(int, "How many parties pool what they see, any of them; 1 by default."),
}


#: Settings of protocols that a plan finds itself, or that belong only to protocols with a planner of their own.
_FOUND = (
    "sigma", "gamma", "centre", "cover", "crashes", "delta0", "honest", "noise", "reach", "threshold", "variation",
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
    """Choose protocol, rounds and noise: the smallest predicted error whose certified loss meets the target.

    Without -p all ways to a private mean stand in one table, the best first: masked sums, gossip, tokens, shuffling, local DP and
    a trusted curator, and which of them are not offered and why. With -p one of them is planned, with all its options.
    For gossip the table compares plain, refreshed and masked gossip with local DP and a trusted curator at the same (ε, δ).
    For tokens it compares a ring and random walks with them. For shuffling: the fewest hops after which
    reports are as good as shuffled by a trusted shuffler (--epsilon0), and the least noisy reports for a target (--epsilon).
    For masked sums: the noise against any --colluders parties, and rounds and bytes of both ways of spreading. For every
    other protocol, stated but for its noise: the least noise.

    Slow graphs make everything slow: --links 2 lays two random rings over the parties and says what that buys, --advise how
    many are worth it.
    """
    from netdp.cli.output import show, working
    from netdp.privacy.wording import weak_words
    from netdp.settings.loading import plan_settings
    from netdp.settings.models import Advised

    settings = plan_settings(typed["config"], flags.given(typed))
    context.with_resource(settings.running())
    if settings.plot is not None:
        from netdp.report.style import picture_path

        picture_path(settings.plot)  # refuse before the work
    if isinstance(settings, Advised) and settings.advise:
        _advise(settings)
        return
    # these have a bar of their own
    with contextlib.nullcontext() if settings.bar else working("planning"):
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


def _drawn(planned: Plan | Answer, path: str) -> Path:
    """Error against ε of a plan; of a protocol whose noise was found, what it gives away then."""
    from netdp.cli.output import progress_bar
    from netdp.protocols.planning import Plan
    from netdp.report.picture import save_picture
    from netdp.report.plans import save_plan

    with progress_bar("drawing") as progress:
        return (
            save_plan(planned, path, progress) if isinstance(planned, Plan) else save_picture(planned, path, progress)
        )


class Printed(NamedTuple):
    """A plan, as data and as what is printed."""

    planned: Any
    data: dict[str, Any]
    lines: list[Any]


def _answer(settings: Planned) -> Printed:
    from netdp.cli.output import progress_bar
    from netdp.protocols.planning import Plan
    from netdp.report.plans import plan_table
    from netdp.report.tables import answer_table
    from netdp.settings.models import PlanNoise

    with progress_bar("planning") as progress:
        found = settings.planned(progress)
    if isinstance(found, Plan):
        return Printed(found, found.to_dict(), [plan_table(found)])
    assert isinstance(settings, PlanNoise)
    target = f"target ε ≤ {settings.epsilon:g} at δ = {settings.delta:g}: the least noise that meets it"
    return Printed(found, {"epsilon_asked": settings.epsilon, **found.to_dict()}, [target, answer_table(found)])


def _without_links(settings: Planned, after: Printed) -> BeforeAndAfter:
    """The same plan on the graph as it is beside the one with links; where that is refused, the reason."""
    from netdp.errors import NetdpError
    from netdp.graphs.families import with_links
    from netdp.graphs.spec import parse
    from netdp.report.plans import BeforeAndAfter
    from netdp.settings.models import PlanNoise, turns_of

    try:
        before: Any = _answer(settings.model_copy(update={"links": 0})).planned
    except NetdpError as refusal:
        before = str(refusal)
    several = isinstance(settings, PlanNoise) and settings.way.first == "graphs"
    plain = parse(turns_of(settings.graph)[0] if several else settings.graph)
    linked = with_links(plain, settings.links, settings.links_seed)
    return BeforeAndAfter(
        settings.links, settings.links_seed, 2 * (linked.m - plain.m) / plain.n, before, after.planned, settings.by_distance
    )  # fmt: skip


def _advise(settings: Advised) -> None:
    """How many random links, for every protocol that goes along the links of a graph; for gossip, which topology, too."""
    from netdp.cli.output import progress_bar, show, working
    from netdp.protocols.links import PROTOCOLS, advise_links
    from netdp.report.plans import advice_table, links_table, save_links

    with progress_bar("planning") as progress:
        advice = settings.topologies(progress)
    data: dict[str, Any] = {}
    lines: list[Any] = []
    if isinstance(advice, str):
        data, lines = {"candidates": [], "recommended": None}, [advice]
    elif advice is not None:
        data, lines = advice.to_dict(), [advice_table(advice), ""]
    names = sorted(PROTOCOLS, key=lambda name: name != settings.links_for)
    with working("trying random links"):
        found = advise_links(settings.network(), protocols=names, seed=settings.links_seed, **settings.links_options())
    drawn = save_links(found, settings.plot) if settings.plot is not None else None
    lines += [links_table(found), *([f"picture: {drawn}"] if drawn is not None else [])]
    show({**data, "links": found.to_dict(), "plot": str(drawn) if drawn else None}, lines, settings.as_json)
