"""The plan that settings ask for: one planner per family of protocols."""

from __future__ import annotations

from typing import Any

from netdp.numerics.arrays import Progress
from netdp.planning import (
    FaultyPlan,
    MaskedPlan,
    Policy,
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
from netdp.planning.gossip.plan import GossipPlan, plan
from netdp.report.comparison import Comparison, compare

from .loading import Planning
from .models import (
    PlanFaulty,
    PlanGossip,
    PlanMasked,
    PlanNoise,
    PlanRelayed,
    PlanShuffle,
    PlanToken,
    parties,
    users,
)

Planned = GossipPlan | TokenPlan | ShufflePlan | FaultyPlan | RelayPlan | MaskedPlan | Comparison


def planned(settings: Planning, progress: Progress | None = None) -> Planned:
    """What meets the target: of gossip, tokens, shuffles and masked sums more than the noise is found."""
    if isinstance(settings, PlanGossip):
        return plan_gossip(settings, progress)
    if isinstance(settings, PlanToken):
        return _tokens(settings, progress)
    if isinstance(settings, PlanShuffle):
        return _shuffle(settings)
    if isinstance(settings, PlanFaulty | PlanRelayed):
        return _unusual_shuffle(settings)
    if isinstance(settings, PlanMasked):
        return plan_masked(
            settings.network(), settings.epsilon, settings.delta, colluders=settings.colluders,
            sensitivity=settings.sensitivity, attempts=settings.attempts, absent=settings.absent, grid=settings.grid,
        )  # fmt: skip
    return _noise(settings, progress)


def plan_gossip(settings: PlanGossip, progress: Progress | None = None) -> GossipPlan:
    """Rounds, noise, masks and refresh of gossip with the least error."""
    network = settings.network()
    observers = parties(network, settings.observer) if settings.observer else None
    return plan(
        network, settings.epsilon, settings.delta, observers=observers, progress=progress, **gossip_options(settings)
    )


def gossip_options(settings: PlanGossip) -> dict[str, Any]:
    """What a plan of gossip takes besides its target, and advice on topologies and links too."""
    return {
        "scope": Policy.read(settings.policy) if settings.policy else settings.scope,
        "coalitions": settings.coalitions, "seed": settings.seed, "draws": settings.draws, "colluders": settings.colluders,
        "sensitivity": settings.sensitivity, "mixing": settings.mixing, "max_rounds": settings.max_rounds,
    }  # fmt: skip


def _noise(settings: PlanNoise, progress: Progress | None) -> Comparison:
    """The least noise of a protocol that is stated but for it, against any so many parties."""
    protocol = settings.made()
    options: dict[str, Any] = {} if settings.colluders == 1 else {"colluders": settings.colluders}
    found = calibrate(protocol, settings.epsilon, settings.delta, **options)
    if found.roles and settings.colluders == 1:
        return compare(found, list(found.roles), settings.delta, progress)
    return compare(found, None, settings.delta, progress, colluders=settings.colluders)


def _shuffle(settings: PlanShuffle) -> ShufflePlan:
    """How many hops for these reports, or how noisy reports for this target?"""
    options: dict[str, Any] = {
        "share": settings.share, "laziness": settings.laziness, "reporting": settings.reporting, "users": settings.users,
    }  # fmt: skip
    graph = settings.network()
    if settings.epsilon0 is not None:
        return plan_rounds(graph, settings.epsilon0, settings.delta, **options)
    assert settings.epsilon is not None
    return calibrate_epsilon0(graph, settings.epsilon, settings.delta, **options)


def _unusual_shuffle(settings: PlanFaulty | PlanRelayed) -> FaultyPlan | RelayPlan:
    """How many hops in spite of faults, or through a server that sees who sends to whom?"""
    graph = settings.network()
    common: dict[str, Any] = {"laziness": settings.laziness, "share": settings.share}
    if isinstance(settings, PlanRelayed):
        return plan_relayed(graph, settings.epsilon0, settings.delta, bundles=settings.bundles, **common)
    faults: dict[str, Any] = {"outages": settings.outages, "lost": settings.lost, "absent": settings.absent}
    return plan_with_faults(graph, settings.epsilon0, settings.delta, **faults, **common)


def _tokens(settings: PlanToken, progress: Progress | None) -> TokenPlan:
    """Which way to send a token round has the least error for this target?"""
    options: dict[str, Any] = {"sensitivity": settings.sensitivity, "colluders": settings.colluders}
    options |= {"progress": progress} | ({} if settings.visits is None else {"visits": settings.visits})
    if settings.graph.startswith("complete:"):  # no graph has to be built
        return plan_token(users(settings.graph), settings.epsilon, settings.delta, **options)
    return plan_token_on(settings.network(), settings.epsilon, settings.delta, **options)
