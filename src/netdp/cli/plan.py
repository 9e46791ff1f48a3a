"""`netdp plan`: which settings meet a privacy target with the smallest error?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import flags

if TYPE_CHECKING:
    from netdp.planning.gossip.plan import GossipPlan
    from netdp.planning.masked.plan import MaskedPlan

    from .settings import PlanGossip


def plan(
    context: typer.Context,
    graph: flags.Graph = None,
    protocol: Annotated[
        str | None,
        typer.Option("--protocol", "-p", help="gossip (the default), token (on complete:N), shuffle or masked."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="ε that must be met.")] = None,
    delta: flags.Delta = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", help="gossip: worst (every pair), mean, or beyond:2 (pairs 2 or more hops apart)."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy", help="gossip: a file of rules 'target, observer, epsilon' instead of --epsilon and --scope."
        ),
    ] = None,
    observer: Annotated[
        list[str] | None,
        typer.Option(
            "--observer", "-o", help="gossip: only these parties look, each alone; repeat it.", show_default=False
        ),
    ] = None,
    coalitions: Annotated[
        float | None,
        typer.Option("--coalitions", help="gossip: this share of the parties, drawn at random, pools what it sees."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the drawn coalitions; 0 by default.")] = None,
    draws: Annotated[int | None, typer.Option("--draws", help="How many coalitions are drawn; 20 by default.")] = None,
    sensitivity: flags.Sensitivity = None,
    mixing: flags.Mixing = None,
    max_rounds: Annotated[
        int | None, typer.Option("--max-rounds", help="gossip: no more rounds than this; 200 by default.")
    ] = None,
    epsilon0: Annotated[
        float | None,
        typer.Option("--epsilon0", help="shuffle: the local-DP loss of the reports; how many hops do they need?"),
    ] = None,
    laziness: flags.Laziness = None,
    reporting: flags.Reporting = None,
    share: Annotated[
        float | None,
        typer.Option("--share", help="shuffle: the share of δ that imperfect mixing may cost; 0.01 by default."),
    ] = None,
    visits: Annotated[
        int | None, typer.Option("--visits", help="token: visits per user on average; 100 by default.")
    ] = None,
    colluders: Annotated[
        int | None,
        typer.Option("--colluders", help="token, masked: how many parties pool what they see; 1 by default."),
    ] = None,
    attempts: flags.Attempts = None,
    absent: flags.Absent = None,
    grid: flags.Grid = None,
    config: flags.Config = None,
    advise: Annotated[
        bool | None,
        typer.Option(
            "--advise", help="gossip: compare topologies on as many parties and recommend one.", show_default=False
        ),
    ] = None,
    json: flags.Json = None,
) -> None:
    """Choose rounds, noise, masks and refresh: the smallest predicted error whose certified loss meets the target.

    For gossip the table compares plain, refreshed and masked gossip with a masked sum, local DP and a trusted curator at the
    same (ε, δ).
    For tokens on complete:N it compares a ring and random walks with them. For shuffling: the fewest hops after which
    reports are as good as shuffled by a trusted shuffler (--epsilon0), and the least noisy reports for a target (--epsilon).
    For masked sums: the noise against any --colluders parties, and rounds and bytes of both ways of spreading.
    """
    from netdp.report.planning import masked_table, shuffle_table, token_table

    from .settings import PlanMasked, PlanShuffle, PlanToken, plan_settings
    from .show import show
    from .walkers import plan_masked_sum, plan_shuffle, plan_tokens

    settings = plan_settings(config, flags.given(context))
    if isinstance(settings, PlanToken):
        ways = plan_tokens(settings)
        show(ways.to_dict(), [token_table(ways)], settings.as_json)
    elif isinstance(settings, PlanShuffle):
        hops = plan_shuffle(settings)
        show(hops.to_dict(), [shuffle_table(hops)], settings.as_json)
    elif isinstance(settings, PlanMasked):
        spread = plan_masked_sum(settings)
        show(spread.to_dict(), [masked_table(spread)], settings.as_json)
    else:
        _plan_gossip(settings)


def _plan_gossip(settings: PlanGossip) -> None:
    from netdp.planning.gossip.advise import advise as make_advice
    from netdp.planning.gossip.plan import plan as make_plan
    from netdp.planning.policy import Policy
    from netdp.report.planning import advice_table, plan_table

    from .progress import progress_bar
    from .settings import parties
    from .show import show

    network = settings.network()
    options: dict[str, Any] = {
        "scope": Policy.read(settings.policy) if settings.policy else settings.scope,
        "coalitions": settings.coalitions, "seed": settings.seed, "draws": settings.draws,
        "sensitivity": settings.sensitivity, "mixing": settings.mixing, "max_rounds": settings.max_rounds,
    }  # fmt: skip
    if settings.advise:
        with progress_bar("planning") as progress:
            advice = make_advice(network, settings.epsilon, settings.delta, progress=progress, **options)  # type: ignore[arg-type]
        show(advice.to_dict(), [advice_table(advice)], settings.as_json)
        return
    observers = parties(network, settings.observer) if settings.observer else None
    with progress_bar("planning") as progress:
        planned = make_plan(
            network, settings.epsilon, settings.delta, observers=observers, progress=progress, **options
        )
        beside = _masked_beside(planned, settings)
    written = {**planned.to_dict(), "masked_sum": None if beside is None else beside.to_dict()}
    show(written, [plan_table(planned, beside)], settings.as_json)


def _masked_beside(planned: GossipPlan, settings: PlanGossip) -> MaskedPlan | None:
    """A masked sum at the same target, against any coalition as large as those planned for; None where there is none to offer."""
    from netdp.errors import InvalidValue, Unsupported
    from netdp.planning import plan_masked
    from netdp.planning.audience import MAX_EVERYBODY

    if (
        settings.epsilon is None or planned.graph.n > MAX_EVERYBODY
    ):  # a policy has many ε; flooding measures all distances
        return None
    colluders = max((len(members) for members in planned.audience.coalitions), default=1)
    try:
        return plan_masked(
            planned.graph, settings.epsilon, settings.delta, colluders=colluders, sensitivity=settings.sensitivity
        )
    except (InvalidValue, Unsupported):
        return None
