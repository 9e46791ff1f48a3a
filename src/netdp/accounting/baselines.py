"""What the two classical alternatives would reveal with the same noise: local DP and a trusted curator."""

from __future__ import annotations

import numpy as np

from netdp.privacy import Adjacency, Claim, GaussianCurve, Guarantee
from netdp.protocols import Gossip

REFERENCES = ("J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",)


def local_dp(protocol: Gossip) -> Guarantee:
    """Everybody publishes x_u + N(0, σ²): the world learns μ = Δ/σ about each. Factor 1.

    >>> from netdp import graphs
    >>> float(local_dp(Gossip(graphs.ring(4), rounds=1, sigma=4.0)).mu)
    0.25
    """
    return _baseline(protocol, 1.0, "every party publishes its own noisy value")


def trusted_curator(protocol: Gossip) -> Guarantee:
    """A curator who sees all values publishes their mean with the noise N(0, σ²/n) that perfect averaging would leave.

    The mean moves by Δ/n, so μ = (Δ/n)/(σ/√n) = Δ/(σ√n). Factor 1/n.
    """
    return _baseline(
        protocol,
        1.0 / protocol.graph.n,
        "a curator that everybody trusts sees all values, and only its answer is seen",
    )


def _baseline(protocol: Gossip, factor: float, assumption: str) -> Guarantee:
    return Guarantee(
        curve=GaussianCurve(np.sqrt(factor) * protocol.local_mu),
        targets=None,
        observers="everybody",
        adjacency=Adjacency.REPLACE,
        claim=Claim.EXACT,
        assumptions=(assumption,),
        references=REFERENCES,
        factor=np.asarray(factor),
    )
