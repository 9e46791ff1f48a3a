"""The classical alternatives to network shuffling: local DP, a trusted shuffler."""

from __future__ import annotations

from netdp.accounting.baselines import curator, local, said, single_response
from netdp.accounting.heap.clones import shuffled_profile
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.privacy import Guarantee, ProfileCurve
from netdp.protocols import Shuffle


@local.register
def _local_reports(protocol: Shuffle) -> Guarantee:
    pure, delta0 = single_response(protocol.epsilon0, 2), protocol.delta0
    curve = ProfileCurve(pure.epsilons, delta0 + (1 - delta0) * pure.deltas)
    return said(curve, "every user publishes its report", more=(IDEAL_DRAWS,))


@curator.register
def _curator_shuffle(protocol: Shuffle) -> Guarantee:
    curve = shuffled_profile(protocol.n - 1, protocol.epsilon0, delta0=protocol.delta0)
    return said(curve, "a trusted shuffler permutes all reports uniformly", more=(IDEAL_DRAWS,))
