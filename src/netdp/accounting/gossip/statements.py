"""From factors of the local-DP loss to a guarantee in words: what is claimed, assumed and cited for gossip."""

from __future__ import annotations

import numpy as np

from netdp.accounting.published.muffliato import theorems as muffliato
from netdp.numerics.arrays import FloatArray
from netdp.privacy import Adjacency, Claim, Curve, GaussianCurve, Guarantee, RenyiCurve
from netdp.protocols import Gossip, GossipDescent, PushSum, RandomizedGossip, VaryingGossip

REFERENCES = (
    "netdp, docs/guarantees.md#leverage-scores, #masks and #refresh, #assumptions: exact loss of gossip.",
    "J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",
)


def certified_statement(
    protocol: Gossip | RandomizedGossip | VaryingGossip | PushSum,
    factor: FloatArray,
    observers: tuple[int, ...] | str,
    claim: Claim,
    slack: float,
    notes: tuple[str, ...],
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


def published_statement(
    protocol: Gossip | GossipDescent | RandomizedGossip | VaryingGossip,
    factor: FloatArray,
    observers: tuple[int, ...] | str,
    errata: tuple[str, ...] = (),
) -> Guarantee:
    return Guarantee(
        curve=RenyiCurve.linear(factor * protocol.local_mu**2 / 2),
        adjacency=Adjacency.REPLACE,
        claim=Claim.PUBLISHED,
        assumptions=("the formula of the paper, as printed; it is not a bound",),
        references=muffliato.REFERENCES,
        errata=(*muffliato.ERRATA, *errata),
        factor=factor,
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
