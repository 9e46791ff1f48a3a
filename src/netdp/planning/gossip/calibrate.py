"""The noise that a privacy target asks of gossip.

σ = Δ·√demand, the demand being the largest factor/μ*² over the pairs in question (`target`, `certify`). Factors do not depend
on σ, so this is the smallest σ that works, up to a headroom of 10⁻⁹; nothing is searched.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from netdp.accounting.baselines import local_dp
from netdp.accounting.gossip.exact import factors
from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.numerics.arrays import Progress
from netdp.planning.audience import DRAWS, audience
from netdp.planning.policy import Policy
from netdp.planning.smallest import smallest
from netdp.planning.table import calibrations, checked_target, noise_for
from netdp.planning.target import Target
from netdp.protocols import ErdosRenyiGossip, Gossip, PushSum, RandomizedGossip, VaryingGossip
from netdp.views import GossipView

from .certify import Certificate, certify

# Relative headroom on σ²: above what another order of additions moves a factor, below anything visible.
_HEADROOM = 1e-9


@calibrations.register
def _gossip(
    protocol: Gossip,
    epsilon: float | None,
    delta: float,
    *,
    scope: str | Policy = "worst",
    observers: Iterable[int | str] | int | str | None = None,
    coalitions: float | Sequence[Iterable[int | str]] | None = None,
    colluders: int = 1,
    seed: int = 0,
    draws: int = DRAWS,
    progress: Progress | None = None,
) -> Gossip:
    target = Target(protocol.graph, epsilon, delta, scope)
    who = audience(
        protocol.graph, observers, coalitions, colluders=colluders, seed=seed, draws=draws, mixing=protocol.mixing
    )
    return with_noise(protocol, target, certify(protocol, target, who, progress))


@calibrations.register
def _first_message(
    protocol: VaryingGossip | RandomizedGossip | ErdosRenyiGossip | PushSum, epsilon: float | None, delta: float
) -> VaryingGossip | RandomizedGossip | ErdosRenyiGossip | PushSum:
    """Somebody's first message is x + ση itself, and no view is worth more than all of them: the noise of local DP."""
    if isinstance(protocol, RandomizedGossip) and protocol.grid is not None:
        return _first_message_on_a_grid(protocol, epsilon, delta)
    return protocol.replace(sigma=noise_for(protocol.sensitivity, epsilon, delta))


def _first_message_on_a_grid(protocol: RandomizedGossip, epsilon: float | None, delta: float) -> RandomizedGossip:
    """The same on a grid, where rounding moves values further apart: searched, and accounted for again."""
    aim = checked_target(epsilon, delta)[0]
    guess = noise_for(protocol.distance * protocol.step, epsilon, delta)

    def loss(sigma: float) -> float:
        return float(local_dp(protocol.replace(sigma=max(sigma, protocol.step))).worst_epsilon(delta))

    return protocol.replace(sigma=max(smallest(loss, aim, guess, 1e-5), protocol.step))


def with_noise(protocol: Gossip, target: Target, certificate: Certificate) -> Gossip:
    """`protocol` with the σ that the certificate asks for, accounted again where it is tightest."""
    if certificate.demand == 0:
        raise InvalidValue(
            f"no noise is needed for {target.words}: nobody in question learns anything in {protocol.rounds} rounds; "
            "set sigma yourself, or ask for a wider scope"
        )
    sigma = protocol.sensitivity * math.sqrt(certificate.demand * (1 + _HEADROOM))
    if not math.isfinite(sigma):
        raise Unsupported(
            f"no finite noise level meets this for party {certificate.party} against {certificate.observers[:6]}; "
            "allow a larger epsilon or delta"
        )
    calibrated = protocol.replace(sigma=sigma)
    if certificate.examined == 0:  # known without accounting for single sets
        return calibrated
    again = factors(GossipView(calibrated, certificate.observers)).values
    needed = target.demand(again, certificate.observers).value * calibrated.sensitivity**2
    if not needed <= np.nextafter(sigma**2, 0):  # must not happen; never hand out a σ that fails
        raise NetdpError(f"σ = {sigma!r} came out too small by {needed / sigma**2 - 1:.1e}; please report this")
    return calibrated
