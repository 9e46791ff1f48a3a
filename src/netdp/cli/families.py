"""`netdp account` and `netdp plan` for everything but gossip: tokens, shuffled reports, masked sums."""

from __future__ import annotations

from typing import Any

from netdp.planning import MaskedPlan, ShufflePlan, TokenPlan, calibrate_epsilon0, plan_masked, plan_rounds, plan_token
from netdp.protocols import Protocol
from netdp.report.comparison import compare, comparison_table
from netdp.report.curves import save_curves
from netdp.report.files import picture_path

from .progress import progress_bar
from .settings import Accounting, PlanMasked, PlanShuffle, PlanToken, users
from .show import show


def account_walkers(protocol: Protocol, settings: Accounting) -> None:
    """Account for a token, for shuffling or for a masked sum and print the comparison."""
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


def plan_masked_sum(settings: PlanMasked) -> MaskedPlan:
    """How much noise against any so many colluders, and how to spread what is published?"""
    with progress_bar("planning"):
        return plan_masked(
            settings.network(),
            settings.epsilon,
            settings.delta,
            colluders=settings.colluders,
            sensitivity=settings.sensitivity,
            attempts=settings.attempts,
            absent=settings.absent,
            grid=settings.grid,
        )


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
