"""From factors of the local-DP loss to a guarantee in words: what is claimed, assumed and cited for gossip."""

from __future__ import annotations

import numpy as np

from netdp.families.gossip.protocol import Gossip, RandomizedGossip
from netdp.families.gossip.varying import PushSum, VaryingGossip
from netdp.numerics.arrays import FloatArray
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee

REFERENCES = (
    "netdp, docs/proofs/gossip.md#leverage-scores, #masks and #refresh, docs/proofs/privacy.md#assumptions: exact loss of gossip.",
    "J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",
)


def certified_statement(
    protocol: Gossip | RandomizedGossip | VaryingGossip | PushSum,
    factor: FloatArray,
    claim: Claim,
    slack: float = 0.0,
    notes: tuple[str, ...] = (),
    curve: Curve | None = None,
) -> Guarantee:
    """`curve`: what is lost, where it is not the Gaussian one of the factors."""
    return Guarantee(
        curve=GaussianCurve(np.sqrt(factor) * protocol.local_mu) if curve is None else curve,
        adjacency=Adjacency.REPLACE,
        claim=claim,
        assumptions=(*gossip_assumptions(protocol), *notes),
        references=REFERENCES,
        factor=factor,
        slack=slack,
    )


def gossip_assumptions(protocol: Gossip | RandomizedGossip | VaryingGossip | PushSum) -> tuple[str, ...]:
    """What must hold for the certified number to hold."""
    assumptions = [
        f"two values of one party differ by at most {protocol.sensitivity:g} in L2 norm (clip before the noise is added)",
        "all parties follow the protocol to its end; the observers pool their own data, noise and all they receive",
        "graph, weights, rounds and noise levels are public and chosen without regard to the values; messages are readable "
        "by sender and receiver alone",
        "values are fixed before the first send and do not react to messages",
        "every party keeps its final estimate; if party p publishes it, count p among the observers",
        "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
    ]
    if isinstance(protocol, Gossip) and protocol.masks > 0:
        assumptions.append(
            "the mask of an edge is known to its two ends only; drawn from a shared seed, it is as good as its generator"
        )
    return tuple(assumptions)
