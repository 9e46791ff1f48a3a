"""What `netdp account` and `netdp plan` do for each family of protocols; gossip's tables stand with the commands."""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting import account, who_learns_most
from netdp.accounting.table import certified
from netdp.numerics.arrays import jsonable
from netdp.planning import (
    FaultyPlan,
    MaskedPlan,
    RelayPlan,
    ShufflePlan,
    TokenPlan,
    calibrate,
    calibrate_epsilon0,
    plan_masked,
    plan_relayed,
    plan_rounds,
    plan_token,
    plan_token_on,
    plan_with_faults,
)
from netdp.privacy.readable import readable
from netdp.protocols import Protocol
from netdp.report.comparison import Comparison, compare, comparison_table
from netdp.report.curves import save_curves
from netdp.report.files import picture_path

from .progress import progress_bar
from .settings import Accounting, PlanFaulty, PlanMasked, PlanNoise, PlanRelayed, PlanShuffle, PlanToken, users
from .show import show


def account_and_compare(protocol: Protocol, settings: Accounting) -> None:
    """Account for a protocol and print it beside its alternatives."""
    if settings.plot is not None:
        picture_path(settings.plot, (".png", ".svg"))  # refuse before the work
    observers = None if settings.colluders is not None else settings.observers(protocol)
    with progress_bar("accounting") as progress:
        comparison = compare(protocol, observers, settings.delta, progress, colluders=settings.colluders)
    drawn = save_curves(comparison, protocol.describe(), settings.plot) if settings.plot is not None else None
    lines = [comparison_table(comparison), *([f"picture: {drawn}"] if drawn is not None else [])]
    data = {**comparison.to_dict(), "plot": str(drawn) if drawn else None}
    if settings.rdp is not None:
        divergence = _renyi(protocol, observers, settings.rdp, settings.colluders)
        lines.append(
            f"\nRényi divergence of order {settings.rdp:g}, the worst over all parties: {readable(divergence)}"
        )
        data["rdp"] = {"order": settings.rdp, "worst": jsonable(divergence)}
    show(data, lines, settings.as_json)


def _renyi(protocol: Protocol, observers: Any, order: float, colluders: int | None) -> float:
    """The Rényi loss, from the statement that is made for it where there is one."""
    options: dict[str, Any] = {} if colluders is None else {"colluders": colluders}
    if "statement" in certified.options(protocol):
        options["statement"] = "renyi"
    return float(np.nanmax(account(protocol, observers, **options).rdp(order)))


def show_who_learns_most(protocol: Protocol, settings: Accounting) -> None:
    """Every single observer, or those named, beside whom it learns most about."""
    named = None if settings.observer is None else settings.observers(protocol)
    with progress_bar("accounting") as progress:
        exposure = who_learns_most(protocol, settings.delta, named, progress=progress)
    show(exposure.to_dict(), [str(exposure)], settings.as_json)


def plan_noise(settings: PlanNoise) -> Comparison:
    """The least noise of a protocol that is stated but for it, against any so many parties."""
    protocol = settings.made()
    options: dict[str, Any] = {} if settings.colluders == 1 else {"colluders": settings.colluders}
    with progress_bar("planning") as progress:
        found = calibrate(protocol, settings.epsilon, settings.delta, **options)
        if found.roles and settings.colluders == 1:
            return compare(found, list(found.roles), settings.delta, progress)
        return compare(found, None, settings.delta, progress, colluders=settings.colluders)


def plan_shuffle(settings: PlanShuffle) -> ShufflePlan:
    """How many hops for these reports, or how noisy reports for this target?"""
    options: dict[str, Any] = {
        "share": settings.share, "laziness": settings.laziness, "reporting": settings.reporting, "users": settings.users,
    }  # fmt: skip
    graph = settings.network()
    with progress_bar("planning"):
        if settings.epsilon0 is not None:
            return plan_rounds(graph, settings.epsilon0, settings.delta, **options)
        assert settings.epsilon is not None
        return calibrate_epsilon0(graph, settings.epsilon, settings.delta, **options)


def plan_unusual_shuffle(settings: PlanFaulty | PlanRelayed) -> FaultyPlan | RelayPlan:
    """How many hops in spite of faults, or through a server that sees who sends to whom?"""
    graph = settings.network()
    common: dict[str, Any] = {"laziness": settings.laziness, "share": settings.share}
    with progress_bar("planning"):
        if isinstance(settings, PlanRelayed):
            return plan_relayed(graph, settings.epsilon0, settings.delta, bundles=settings.bundles, **common)
        faults: dict[str, Any] = {"outages": settings.outages, "lost": settings.lost, "absent": settings.absent}
        return plan_with_faults(graph, settings.epsilon0, settings.delta, **faults, **common)


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
    options: dict[str, Any] = {"sensitivity": settings.sensitivity, "colluders": settings.colluders}
    if settings.visits is not None:
        options["visits"] = settings.visits
    with progress_bar("planning") as progress:
        options["progress"] = progress
        if settings.graph.startswith("complete:"):  # no graph has to be built
            return plan_token(users(settings.graph), settings.epsilon, settings.delta, **options)
        return plan_token_on(settings.network(), settings.epsilon, settings.delta, **options)
