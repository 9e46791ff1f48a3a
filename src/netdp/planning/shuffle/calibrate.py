"""The least noisy reports of network shuffling for a target, the number of hops being given."""

from __future__ import annotations

from netdp.planning.table import calibrations
from netdp.protocols import Shuffle

from .plan import calibrate_epsilon0


@calibrations.register
def _shuffle(protocol: Shuffle, epsilon: float, delta: float) -> Shuffle:
    plan = calibrate_epsilon0(
        protocol.graph, epsilon, delta, rounds=protocol.rounds, laziness=protocol.laziness, reporting=protocol.reporting
    )
    return plan.protocol
