"""Error against ε: every way of a plan with more and with less noise, certified again, beside local DP and a trusted curator.

A plan answers for one target. Around it the same ways, with the same rounds and masks and other noise, trade privacy for error.
At another target a plan would choose anew.

Of gossip the loss is known at every noise from the loss at one: all its noise is Gaussian and in proportion to σ, so the
Gaussian-DP μ is in proportion to 1/σ. Elsewhere the accountant is asked again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.errors import NetdpError
from netdp.mechanisms import RandomizedResponse
from netdp.numerics.arrays import FloatArray, Progress
from netdp.privacy import GaussianCurve, Guarantee
from netdp.privacy.gaussian import gaussian_mu
from netdp.protocols import GraphWalkSum, Protocol
from netdp.utility import expected_error

from .base import Option, Plan
from .gossip.plan import GossipPlan
from .shuffle.plan import ShufflePlan

FACTORS = (0.4, 0.6, 0.8, 1.0, 1.3, 1.8, 2.5)
"""By how much the noise is changed (of shuffled reports: their ε₀)."""
FEW = (0.6, 1.0, 1.8)


@dataclass(frozen=True)
class Line:
    """One way: certified ε at the plan's δ and predicted error, by rising ε."""

    name: str
    epsilon: tuple[float, ...]
    rmse: tuple[float, ...]


def trade_off(plan: Plan, factors: Sequence[float] | None = None, progress: Progress | None = None) -> tuple[Line, ...]:
    """Every way of the plan at other noises; a noise that no method covers is left out.

    >>> from netdp import graphs, plan
    >>> (line,) = trade_off(plan(graphs.ring(6), 1.0, 1e-6, kinds=["plain"]), factors=[1.0, 2.0])
    >>> line.name, round(line.rmse[0] / line.rmse[1], 2), round(line.epsilon[1], 2)
    ('plain', 2.0, 1.0)
    """
    if factors is None:  # a walk on a graph takes its accountant seconds each time
        factors = FEW if isinstance(plan.protocol, GraphWalkSum) else FACTORS
    lines, done = [], 0
    for option in plan.options:
        points = []
        for factor in factors:
            with suppress(NetdpError):  # too little or too much noise for a method: the line is shorter there
                points.append(_point(plan, option, factor))
            done += 1
            if progress is not None:
                progress(done, len(plan.options) * len(factors))
        known = sorted(point for point in points if math.isfinite(point[0]))
        lines.append(Line(option.name, tuple(e for e, _ in known), tuple(r for _, r in known)))
    return tuple(lines)


def baselines(plan: Plan, epsilons: FloatArray) -> dict[str, FloatArray]:
    """Errors of local DP and of a trusted curator at other ε, from those at the plan's."""
    mu = np.asarray(gaussian_mu(epsilons, plan.delta))
    if plan.protocol.roles:  # shuffled reports: the shares of yes and no
        local = np.sqrt([RandomizedResponse(2, float(e)).squared_error(plan.protocol.n) for e in epsilons])
        return {"local DP": local, "trusted curator": math.sqrt(2) / (plan.protocol.n * mu)}
    asked = plan.worst_epsilon(plan.best) if plan.epsilon is None else plan.epsilon
    at = plan.target.mu if isinstance(plan, GossipPlan) else float(gaussian_mu(asked, plan.delta))
    return {"local DP": plan.local_rmse * at / mu, "trusted curator": plan.curator_rmse * at / mu}


def _point(plan: Plan, option: Option, factor: float) -> tuple[float, float]:
    """Certified ε and predicted error with so much more noise."""
    if factor == 1.0:
        return _level(plan, option), option.rmse
    noisier = _with_noise(option.protocol, factor)
    error = replace(
        option.error,
        **{part: getattr(option.error, part) * factor**2 for part in ("noise", "masks", "refresh")},
    )
    if isinstance(plan, GossipPlan) and isinstance(option.guarantee.curve, GaussianCurve):
        loss: Guarantee = replace(option.guarantee, curve=GaussianCurve(np.asarray(option.guarantee.mu) / factor))
    else:
        loss = account(noisier, **_against(plan, noisier))
        if noisier.roles:
            error = expected_error(noisier)
    return _level(plan, replace(option, protocol=noisier, guarantee=loss)), math.sqrt(error.total)


def _with_noise(protocol: Protocol, factor: float) -> Protocol:
    """The same with `factor` times the noise; of reports, that much of their ε₀."""
    name = "epsilon0" if hasattr(protocol, "epsilon0") else "sigma"
    return protocol.replace(**{name: getattr(protocol, name) * factor})


def _against(plan: Plan, protocol: Protocol) -> dict[str, Any]:
    """Whom the plan is against, as the accountant takes it."""
    if protocol.roles:
        return {"observers": list(protocol.roles)}
    return {"colluders": getattr(plan, "colluders", 1)}


def _level(plan: Plan, option: Option) -> float:
    """The ε that the plan states of an option."""
    if isinstance(plan, ShufflePlan):
        return replace(plan, options=(option,)).promised
    return plan.worst_epsilon(option)
