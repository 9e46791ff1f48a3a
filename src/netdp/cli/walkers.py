"""`netdp account` and `netdp plan` for what walks: tokens and shuffled reports."""

from __future__ import annotations

from typing import Any

from netdp.planning import ShufflePlan, TokenPlan, calibrate_epsilon0, plan_rounds, plan_token
from netdp.protocols import Protocol
from netdp.report.comparison import compare, comparison_table
from netdp.report.curves import save_curves
from netdp.report.files import picture_path

from .progress import progress_bar
from .settings import Accounting, PlanShuffle, PlanToken, users
from .show import show


def account_walkers(protocol: Protocol, settings: Accounting) -> None:
    """Account for a token or for shuffling and print the comparison."""
    if settings.plot is not None:
        picture_path(settings.plot, (".png", ".svg"))  # refuse before the work
    with progress_bar("accounting") as progress:
        comparison = compare(protocol, settings.observers(protocol), settings.delta, progress)
    drawn = save_curves(comparison, protocol.describe(), settings.plot) if settings.plot is not None else None
    lines = [comparison_table(comparison), *([f"picture: {drawn}"] if drawn is not None else [])]
    show({**comparison.to_dict(), "plot": str(drawn) if drawn else None}, lines, settings.as_json)


def plan_shuffle(settings: PlanShuffle) -> ShufflePlan:
    """How many hops for these reports, or how noisy reports for this target?"""
    options: dict[str, Any] = {
        "share": settings.share, "laziness": settings.laziness, "reporting": settings.reporting,
    }  # fmt: skip
    graph = settings.network()
    with progress_bar("planning"):
        if settings.epsilon0 is not None:
            return plan_rounds(graph, settings.epsilon0, settings.delta, **options)
        assert settings.epsilon is not None
        return calibrate_epsilon0(graph, settings.epsilon, settings.delta, **options)


def plan_tokens(settings: PlanToken) -> TokenPlan:
    """Which way to send a token round has the least error for this target?"""
    with progress_bar("planning"):
        return plan_token(
            users(settings.graph),
            settings.epsilon,
            settings.delta,
            visits=settings.visits,
            sensitivity=settings.sensitivity,
            colluders=settings.colluders,
        )
