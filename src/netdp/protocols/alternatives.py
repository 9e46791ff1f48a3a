"""What the two classical alternatives would reveal with the same noise: local DP and a trusted curator.

Local DP: everybody publishes its contributions as they are, each with its own noise. Trusted curator: somebody whom everybody
trusts sees all contributions and publishes the answer with all the noise that the protocol puts into it.
"""

from __future__ import annotations

import math

import numpy as np

from netdp.errors import InvalidValue
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve, everywhere
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.observers import Observers
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.base import Protocol
from netdp.protocols.table import Table

REFERENCES = ("J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",)

_LOCAL = "every party publishes its own noisy value"

_CENTRAL = "a curator that everybody trusts sees all values, and only its answers are seen"

local = Table("local DP", "has no counterpart under local DP", part="account")
"""Accountants of local DP: they return a guarantee, or a curve that is the same for all parties."""

curator = Table("a trusted curator", "has no counterpart with a trusted curator", part="account")
"""Accountants of a trusted curator."""

sampler = Table("a trusted sampler", "has no counterpart with a trusted sampler", part="account")
"""Accountants of a trusted server that shows some of the reports, drawn in secret."""


def local_dp(protocol: Protocol) -> Guarantee:
    """Everybody publishes its contributions as they are, with their own noise: what the world learns about each.

    Gossip: x_u + N(0, σ²) (in learning: every gradient), μ = Δ/σ, factor 1. Tokens: all contributions of a user, as often
    as it is visited at most. Shuffling and histograms: the randomizer's own loss.

    >>> from netdp import Gossip, graphs
    >>> float(local_dp(Gossip(graphs.ring(4), rounds=1, sigma=4.0)).mu[0])
    0.25
    """
    return _for_everybody(protocol, local)


def trusted_curator(protocol: Protocol) -> Guarantee:
    """A curator whom everybody trusts, with the same noise in its answer: what the world learns about each.

    Gossip: it publishes the mean with the noise N(0, σ²/n) that perfect averaging would leave; the mean moves by Δ/n, so
    μ = Δ/(σ√n), factor 1/n. Ring: the sum of every round with noise N(0, σ²). Walk: the sum of all contributions with all
    their noise. Descent on a walk: noisy SGD that publishes every iterate. Histograms: all answers without their owners.
    Shuffling: a trusted shuffler.
    """
    return _for_everybody(protocol, curator)


def _for_everybody(protocol: Protocol, table: Table) -> Guarantee:
    if not isinstance(protocol, Protocol):
        raise InvalidValue(f"the argument must be a protocol such as netdp.Gossip(…), got {protocol!r}")
    loss: Guarantee = table(protocol)
    curve, factor = loss.curve, loss.factor
    if not curve.shape:
        curve = everywhere(curve, (protocol.n,))
        factor = None if factor is None else np.full(protocol.n, float(factor))
    names = None if protocol.network is None else protocol.network.labels
    return Guarantee(
        curve=curve,
        observers=Observers(roles=("everybody",)),
        adjacency=loss.adjacency,
        claim=loss.claim,
        assumptions=loss.assumptions,
        references=loss.references,
        factor=factor,
        slack=loss.slack,
        unit=loss.unit,
        names=names,
    )


def gaussian_local(mu: float) -> Guarantee:
    """Every party publishes its own value under Gaussian noise."""
    return said(GaussianCurve(mu), _LOCAL, Claim.EXACT, factor=1.0)


def gaussian_curator(mu: float, n: int) -> Guarantee:
    """A curator publishes the mean of n values with the noise that all of them would have added: `mu` is one value's."""
    return said(GaussianCurve(mu / math.sqrt(n)), _CENTRAL, Claim.EXACT, factor=1.0 / n)


def single_response(epsilon0: float, domain: int) -> ProfileCurve:
    """The profile of one L-ary randomized response: (e^ε₀ − e^ε)₊/(e^ε₀ + L − 1)."""
    top = -math.expm1(-epsilon0) / (1 + (domain - 1) * math.exp(-epsilon0))
    return ProfileCurve([0.0, epsilon0], [min(1.0, top * (1 + 1e-12)), 0.0])


def said(
    curve: Curve,
    assumption: str,
    claim: Claim = Claim.UPPER,
    *,
    factor: float | None = None,
    more: tuple[str, ...] = (),
) -> Guarantee:
    """The loss of a baseline, in words."""
    return Guarantee(
        curve=curve,
        adjacency=Adjacency.REPLACE,
        claim=claim,
        assumptions=(assumption, *more),
        references=REFERENCES,
        factor=None if factor is None else np.asarray(factor),
    )
