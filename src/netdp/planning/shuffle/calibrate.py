"""The least noisy reports of network shuffling for a target, the number of hops being given."""

from __future__ import annotations

from netdp.accounting import account
from netdp.errors import Unsupported
from netdp.planning.table import calibrations
from netdp.protocols import Shuffle

from .plan import calibrate_epsilon0


@calibrations.register
def _shuffle(protocol: Shuffle, epsilon: float, delta: float) -> Shuffle:
    if protocol.delta0:
        raise Unsupported(
            f"delta0={protocol.delta0:g}: reports are calibrated for pure randomizers; set delta0=0, or choose epsilon0 yourself"
        )
    plan = calibrate_epsilon0(
        protocol.graph, epsilon, delta, rounds=protocol.rounds, laziness=protocol.laziness, reporting=protocol.reporting
    )
    found = plan.protocol
    # δ(ε) is kept as a table and read along chords, up to 0.1 % above itself: what is handed out shall pass its own account.
    while account(found, "curator").worst_epsilon(delta) > epsilon:
        found = found.replace(epsilon0=found.epsilon0 * (1 - 1e-4))
    return found
