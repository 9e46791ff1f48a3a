"""What the two classical alternatives would reveal with the same noise: local DP and a trusted curator."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, Protocol

import numpy as np

from netdp.errors import Unsupported
from netdp.privacy import Adjacency, Claim, GaussianCurve, Guarantee, ProfileCurve
from netdp.privacy.curve import Curve
from netdp.protocols import Central, CentralDescent, Gossip, GossipDescent, Local, LocalDescent

from .table import certified

REFERENCES = ("J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",)
_LOCAL = "every party publishes its own noisy value"
_CENTRAL = "a curator that everybody trusts sees all values, and only its answers are seen"


class _HasLocalMu(Protocol):
    @property
    def local_mu(self) -> float: ...


@singledispatch
def local_dp(protocol: Any) -> Guarantee:
    """Everybody publishes its contributions as they are, with their own noise: what the world learns about each.

    Gossip: x_u + N(0, σ²) (in learning: every gradient), μ = Δ/σ, factor 1. Tokens: all contributions of a user, as often
    as it is visited at most. Shuffling and histograms: the randomizer's own loss.

    >>> from netdp import graphs
    >>> float(local_dp(Gossip(graphs.ring(4), rounds=1, sigma=4.0)).mu)
    0.25
    """
    raise Unsupported(f"local DP is not defined for {type(protocol).__name__}")


@local_dp.register(Gossip)
@local_dp.register(GossipDescent)
def _local_gossip(protocol: Gossip | GossipDescent) -> Guarantee:
    return _statement(protocol, np.asarray(1.0), "everybody", _LOCAL)


@singledispatch
def trusted_curator(protocol: Any) -> Guarantee:
    """A curator whom everybody trusts, with the same noise in its answer: what the world learns about each.

    Gossip: it publishes the mean with the noise N(0, σ²/n) that perfect averaging would leave; the mean moves by Δ/n, so
    μ = Δ/(σ√n), factor 1/n. Ring: the sum of every round with noise N(0, σ²). Walk: the sum of all contributions with all
    their noise. Descent on a walk: noisy SGD that publishes every iterate. Shuffling: a trusted shuffler.
    """
    raise Unsupported(f"no trusted curator is defined for {type(protocol).__name__}")


@trusted_curator.register(Gossip)
@trusted_curator.register(GossipDescent)
def _curator_gossip(protocol: Gossip | GossipDescent) -> Guarantee:
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


def single_response(epsilon0: float, domain: int) -> ProfileCurve:
    """The profile of one L-ary randomized response: (e^ε₀ − e^ε)₊/(e^ε₀ + L − 1)."""
    top = math.expm1(epsilon0) / (math.expm1(epsilon0) + domain)
    return ProfileCurve([0.0, epsilon0], [top * (1 + 1e-12), 0.0])


def said(curve: Curve, assumption: str, claim: Claim = Claim.UPPER) -> Guarantee:
    """What everybody who sees the answer of a baseline learns about each party."""
    return Guarantee(curve=curve, observers="everybody", claim=claim, assumptions=(assumption,), references=REFERENCES)
