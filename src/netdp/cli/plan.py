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
            "--advise", help="gossip: compare topologies on as many parties and recommend one.", show_default=False
        ),
    ],
    "colluders": Annotated[
        int | None, typer.Option("--colluders", help="How many parties pool what they see, any of them; 1 by default.")
    ],
}


#: Settings of protocols that a plan finds itself, or that belong only to protocols with a planner of their own.
_FOUND = (
    "sigma", "gamma", "centre", "cover", "crashes", "delta0", "law", "noise", "reach", "refresh", "unit",
)  # fmt: skip


@flags.takes(
    {
        "graph": flags.Graph,
        "protocol": flags.Protocol,
        **PLAN_FLAGS,
        "delta": flags.Delta,
        **{name: kind for name, kind in flags.PROTOCOL_FLAGS.items() if name not in _FOUND},
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
    """
    from netdp.report.comparison import comparison_table
    from netdp.report.planning import masked_table, shuffle_table, token_table

    from .families import plan_masked_sum, plan_noise, plan_shuffle, plan_tokens, plan_unusual_shuffle
    from .settings import PlanFaulty, PlanMasked, PlanNoise, PlanRelayed, PlanShuffle, PlanToken, plan_settings
    from .show import show

    settings = plan_settings(typed["config"], flags.given(typed))
    if isinstance(settings, PlanToken):
        ways = plan_tokens(settings)
        show(ways.to_dict(), [token_table(ways)], settings.as_json)
    elif isinstance(settings, PlanShuffle):
        hops = plan_shuffle(settings)
        show(hops.to_dict(), [shuffle_table(hops)], settings.as_json)
    elif isinstance(settings, PlanFaulty | PlanRelayed):
        way = plan_unusual_shuffle(settings)
        show(way.to_dict(), [str(way)], settings.as_json)
    elif isinstance(settings, PlanMasked):
        spread = plan_masked_sum(settings)
        show(spread.to_dict(), [masked_table(spread)], settings.as_json)
    elif isinstance(settings, PlanNoise):
        found = plan_noise(settings)
        target = f"target ε ≤ {settings.epsilon:g} at δ = {settings.delta:g}: the least noise that meets it"
        show(
            {"epsilon_asked": settings.epsilon, **found.to_dict()}, [target, comparison_table(found)], settings.as_json
        )
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
        "coalitions": settings.coalitions, "seed": settings.seed, "draws": settings.draws, "colluders": settings.colluders,
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
    colluders = max([planned.audience.any_of or 1, *(len(members) for members in planned.audience.coalitions)])
    try:
        return plan_masked(
            planned.graph, settings.epsilon, settings.delta, colluders=colluders, sensitivity=settings.sensitivity
        )
    except (InvalidValue, Unsupported):
        return None
