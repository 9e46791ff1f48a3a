"""The noise of a descent on a ring: as much as local DP, for the user that comes next sees every gradient."""

from __future__ import annotations

from netdp.planning.table import calibrations, checked_target, noise_for
from netdp.protocols import RingDescent


@calibrations.register
def _ring(protocol: RingDescent, epsilon: float, delta: float) -> RingDescent:
    """Against every single user: the neighbour that follows loses nothing of √K·Δ/σ."""
    return protocol.replace(sigma=noise_for(protocol.local_mu * protocol.sigma, *checked_target(epsilon, delta)))
