"""What the two classical alternatives would reveal with the same noise: local DP and a trusted curator."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from netdp.privacy import Adjacency, Claim, GaussianCurve, Guarantee
from netdp.protocols import Central, CentralDescent, Gossip, GossipDescent, Local, LocalDescent

from .registry import certified

REFERENCES = ("J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",)
_LOCAL = "every party publishes its own noisy value"
_CENTRAL = "a curator that everybody trusts sees all values, and only its answers are seen"


class _HasLocalMu(Protocol):
    @property
    def local_mu(self) -> float: ...


def local_dp(protocol: Gossip | GossipDescent) -> Guarantee:
    """Everybody publishes x_u + N(0, σ²) (in learning: every gradient): the world learns μ = Δ/σ about each. Factor 1.

    >>> from netdp import graphs
    >>> float(local_dp(Gossip(graphs.ring(4), rounds=1, sigma=4.0)).mu)
    0.25
    """
    return _statement(protocol, np.asarray(1.0), "everybody", _LOCAL)


def trusted_curator(protocol: Gossip | GossipDescent) -> Guarantee:
    """A curator who sees all values publishes their mean with the noise N(0, σ²/n) that perfect averaging would leave.

    The mean moves by Δ/n, so μ = (Δ/n)/(σ/√n) = Δ/(σ√n). Factor 1/n.
    """
    n = protocol.n if isinstance(protocol, GossipDescent) else protocol.graph.n
    return _statement(protocol, np.asarray(1.0 / n), "everybody", _CENTRAL)


@certified.register(Local)
@certified.register(LocalDescent)
def _local(protocol: Local | LocalDescent, observers: tuple[int, ...], **_: Any) -> Guarantee:
    return _flat(protocol, observers, 1.0, _LOCAL)


@certified.register(Central)
@certified.register(CentralDescent)
def _central(protocol: Central | CentralDescent, observers: tuple[int, ...], **_: Any) -> Guarantee:
    return _flat(protocol, observers, 1.0 / protocol.n, _CENTRAL)


def _flat(
    protocol: Local | Central | LocalDescent | CentralDescent,
    observers: tuple[int, ...],
    factor: float,
    assumption: str,
) -> Guarantee:
    factors = np.full(protocol.n, factor)
    factors[list(observers)] = np.nan
    return _statement(protocol, factors, observers, assumption)


def _statement(protocol: _HasLocalMu, factor: Any, observers: tuple[int, ...] | str, assumption: str) -> Guarantee:
    return Guarantee(
        curve=GaussianCurve(np.sqrt(factor) * protocol.local_mu),
        observers=observers,
        adjacency=Adjacency.REPLACE,
        claim=Claim.EXACT,
        assumptions=(assumption,),
        references=REFERENCES,
        factor=factor,
    )
