"""`netdp account` and `netdp plan` for what walks: tokens and shuffled reports."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Any

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.planning import ShufflePlan, TokenPlan, calibrate_epsilon0, plan_rounds, plan_token
from netdp.protocols import GraphWalkSum, RingSum, Shuffle, WalkSum
from netdp.report.comparison import compare, comparison_table
from netdp.report.curves import save_curves
from netdp.report.files import picture_path

from .progress import progress_bar
from .settings import AccountSettings, PlanSettings, parties


def account_walkers(settings: AccountSettings, plot: Path | None, json: bool) -> None:
    """Account for a token or for shuffling and print the comparison."""
    if plot is not None:
        picture_path(plot, (".png", ".svg"))  # refuse before the work
    protocol, subject = _protocol(settings)
    if isinstance(protocol, Shuffle):
        others = [party for party in settings.observers if party != "curator"]
        named = [] if others == [0] and "observers" not in settings.model_fields_set else others
        observers: Any = ["curator", *parties(protocol.graph, named)]
        who = "the curator" + (f" and {len(named)} colluding user{'s' if len(named) > 1 else ''}" if named else "")
    else:
        graph = getattr(protocol, "graph", None)
        observers = parties(graph, settings.observers) if graph is not None else _numbers(settings.observers)
        who = f"party {observers[0]}" if len(observers) == 1 else f"{len(observers)} colluding parties"
    with progress_bar("accounting") as progress:
        comparison = compare(protocol, observers, settings.delta, progress)
    drawn = save_curves(comparison, subject, plot) if plot is not None else None
    if json:
        print(json_.dumps({**comparison.to_dict(), "plot": str(drawn) if drawn else None}, allow_nan=False))
        return
    from rich.console import Console

    question = f"What {who} can learn about a party: worst ε at δ = {settings.delta:g}"
    console = Console(highlight=False)
    console.print(comparison_table(comparison, subject, question))
    if drawn is not None:
        console.print(f"picture: {drawn}")


def plan_shuffle(graph: Graph, settings: PlanSettings) -> ShufflePlan:
    """How many hops for these reports, or how noisy reports for this target?"""
    options: dict[str, Any] = {
        "share": settings.share, "laziness": settings.laziness, "reporting": settings.reporting,
    }  # fmt: skip
    with progress_bar("planning"):
        if settings.epsilon0 is not None:
            return plan_rounds(graph, settings.epsilon0, settings.delta, **options)
        assert settings.epsilon is not None
        return calibrate_epsilon0(graph, settings.epsilon, settings.delta, **options)


def plan_tokens(settings: PlanSettings) -> TokenPlan:
    """Which way to send a token round has the least error for this target?"""
    kind, _, size = (settings.graph or "").partition(":")
    if kind != "complete":
        raise InvalidValue(
            f"tokens are planned among N users who can all reach each other, got {settings.graph!r}; write complete:1000"
        )
    assert settings.epsilon is not None
    with progress_bar("planning"):
        return plan_token(
            _size(size),
            settings.epsilon,
            settings.delta,
            visits=settings.visits,
            sensitivity=settings.sensitivity,
            colluders=settings.colluders,
        )


def _protocol(settings: AccountSettings) -> tuple[Any, str]:
    name = settings.graph or ""
    common: dict[str, Any] = {"sigma": settings.sigma, "sensitivity": settings.sensitivity}
    if settings.protocol == "shuffle":
        graph = graphs.parse(name)
        shuffle = Shuffle(
            graph,
            rounds=settings.rounds,  # type: ignore[arg-type]
            epsilon0=settings.epsilon0,  # type: ignore[arg-type]
            reporting=settings.reporting,
            laziness=settings.laziness,
        )
        lazy = f" laziness={settings.laziness:g}" if settings.laziness else ""
        return shuffle, (
            f"{graph.name}: {graph.n:,} users, {graph.m:,} edges; shuffling with ε₀={shuffle.epsilon0:g} reports, "
            f"{shuffle.rounds} hops{lazy}, reporting {shuffle.reporting}"
        )
    kind, _, size = name.partition(":")
    if kind == "ring":
        ring = RingSum(
            _size(size),
            rounds=settings.rounds,  # type: ignore[arg-type]
            noise=settings.noise,
            closing=settings.closing,
            **common,
        )
        return ring, f"ring of {ring.n:,} users; a token goes round {ring.rounds} times, σ={ring.sigma:g}"
    if kind == "complete":
        walk = WalkSum(_size(size), steps=settings.steps, sender=settings.sender, **common)  # type: ignore[arg-type]
        return walk, (
            f"{walk.n:,} users; a token walks {walk.steps:,} steps at random, σ={walk.sigma:g}, sender {walk.sender}"
        )
    graph = graphs.parse(name)
    closing = None if settings.closing else 0.0
    token = GraphWalkSum(graph, steps=settings.steps, closing=closing, **common)  # type: ignore[arg-type]
    return token, f"{graph.name}: {graph.n:,} users; a token walks {token.steps:,} steps, σ={token.sigma:g}"


def _size(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidValue(f"how many users? got {text!r}; write for example complete:1000") from None


def _numbers(named: list[int | str]) -> list[int]:
    try:
        return [int(party) for party in named]
    except ValueError:
        raise InvalidValue(f"users have numbers here, got {named!r}") from None
