"""`netdp plan`: which settings meet a privacy target with the smallest error?"""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Any

import typer


def plan(
    graph: str | None = typer.Argument(
        None, help="hypercube:8, grid:16x16, karate, a file of edges …; see `netdp graphs`."
    ),
    protocol: str | None = typer.Option(
        None, "--protocol", "-p", help="gossip (the default), token (on complete:N) or shuffle."
    ),
    epsilon: float | None = typer.Option(None, "--epsilon", help="ε that must be met."),
    delta: float | None = typer.Option(None, "--delta", help="δ at which it must be met; 1e-6 by default."),
    scope: str | None = typer.Option(
        None, "--scope", help="worst (every pair), mean, or beyond:2 (pairs 2 or more hops apart)."
    ),
    policy: Path | None = typer.Option(
        None, "--policy", help="A file of rules 'target, observer, epsilon' instead of --epsilon and --scope."
    ),
    observer: list[str] | None = typer.Option(
        None, "--observer", "-o", help="Only these parties look, each alone; repeat it."
    ),
    colluding: float | None = typer.Option(
        None, "--colluding", help="This share of the parties, drawn at random, pools what it sees."
    ),
    seed: int | None = typer.Option(None, "--seed", help="Seed of the drawn coalitions; 0 by default."),
    draws: int | None = typer.Option(None, "--draws", help="How many coalitions are drawn; 20 by default."),
    sensitivity: float | None = typer.Option(
        None, "--sensitivity", help="Largest distance between two values of a party."
    ),
    mixing: str | None = typer.Option(
        None, "--mixing", help="metropolis, maximum-degree, lazy-metropolis, lazy-maximum-degree."
    ),
    max_rounds: int | None = typer.Option(None, "--max-rounds", help="No more rounds than this; 200 by default."),
    epsilon0: float | None = typer.Option(
        None, "--epsilon0", help="shuffle: the local-DP loss of the reports; how many hops do they need?"
    ),
    laziness: float | None = typer.Option(None, "--laziness", help="shuffle: probability that a report stays."),
    reporting: str | None = typer.Option(None, "--reporting", help="shuffle: all or single."),
    share: float | None = typer.Option(
        None, "--share", help="shuffle: the share of δ that imperfect mixing may cost; 0.01 by default."
    ),
    visits: int | None = typer.Option(None, "--visits", help="token: visits per user on average; 100 by default."),
    colluders: int | None = typer.Option(None, "--colluders", help="token: how many users pool what they see."),
    config: Path | None = typer.Option(None, "--config", "-c", help="TOML file with the same names as the flags."),
    advise: bool = typer.Option(False, "--advise", help="Compare topologies on as many parties and recommend one."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Choose rounds, noise, masks and refresh: the smallest predicted error whose certified loss meets the target.

    For gossip the table compares plain, refreshed and masked gossip with local DP and a trusted curator at the same (ε, δ).
    For tokens on complete:N it compares a ring and random walks with them. For shuffling: the fewest hops after which
    reports are as good as shuffled by a trusted shuffler (--epsilon0), and the least noisy reports for a target (--epsilon).
    """
    from netdp import graphs
    from netdp.errors import InvalidValue
    from netdp.planning.gossip.plan import plan as make_plan
    from netdp.planning.policy import Policy
    from netdp.report.planning import advice_table, plan_table

    from .progress import progress_bar
    from .settings import parties, plan_settings

    flags = {
        "graph": graph, "epsilon": epsilon, "delta": delta, "scope": scope, "policy": str(policy) if policy else None,
        "observers": observer, "colluding": colluding, "seed": seed, "draws": draws, "sensitivity": sensitivity,
        "mixing": mixing, "max_rounds": max_rounds, "protocol": protocol, "epsilon0": epsilon0, "laziness": laziness,
        "reporting": reporting, "share": share, "visits": visits, "colluders": colluders,
    }  # fmt: skip
    settings = plan_settings(config, flags)
    if settings.protocol == "token":
        from netdp.report.planning import token_table

        from .walkers import plan_tokens

        ways = plan_tokens(settings)
        _show(ways.to_dict(), token_table(ways), json)
        return
    network = graphs.parse(settings.graph or "")
    if settings.protocol == "shuffle":
        from netdp.report.planning import shuffle_table

        from .walkers import plan_shuffle

        hops = plan_shuffle(network, settings)
        _show(hops.to_dict(), shuffle_table(hops), json)
        return
    observers = parties(network, settings.observers) if settings.observers else None
    options: dict[str, Any] = {
        "scope": Policy.read(settings.policy) if settings.policy else settings.scope,
        "colluders": settings.colluding, "seed": settings.seed, "draws": settings.draws,
        "sensitivity": settings.sensitivity, "mixing": settings.mixing, "max_rounds": settings.max_rounds,
    }  # fmt: skip
    if advise:
        if settings.policy or settings.observers:
            raise InvalidValue(
                "--advise compares topologies, so it cannot name parties: leave --policy and --observer out"
            )
        from netdp.planning.gossip.advise import advise as make_advice

        with progress_bar("planning") as progress:
            advice = make_advice(network, settings.epsilon, settings.delta, progress=progress, **options)  # type: ignore[arg-type]
        _show(advice.to_dict(), advice_table(advice), json)
        return
    with progress_bar("planning") as progress:
        planned = make_plan(
            network, settings.epsilon, settings.delta, observers=observers, progress=progress, **options
        )
    _show(planned.to_dict(), plan_table(planned), json)


def _show(data: dict[str, Any], table: Any, json: bool) -> None:
    if json:
        print(json_.dumps(data, allow_nan=False))
        return
    from rich.console import Console

    Console(highlight=False).print(table)
