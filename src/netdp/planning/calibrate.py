"""The noise that a privacy target asks for.

σ = Δ·√demand, the demand being the largest factor/μ*² over the pairs in question (`target`, `certify`). Factors do not depend
on σ, so this is the smallest σ that works, up to a headroom of 10⁻⁹; nothing is searched.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from netdp.accounting.gossip.exact import factors
from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.numerics.arrays import Progress
from netdp.planning.gossip.certify import Certificate, certify
from netdp.planning.token.calibrate import calibrate_walk
from netdp.protocols import Gossip, RingSum, WalkDescent, WalkSum
from netdp.views import GossipView

from .audience import DRAWS, audience
from .policy import Policy
from .target import Target

P = TypeVar("P", bound=Gossip | RingSum | WalkSum | WalkDescent)

# Relative headroom on σ²: above what another order of additions moves a factor, below anything visible.
_HEADROOM = 1e-9


def calibrate(
    protocol: P,
    epsilon: float | None,
    delta: float,
    scope: str | Policy = "worst",
    observers: Iterable[int | str] | int | str | None = None,
    colluders: float | Sequence[Iterable[int | str]] | None = None,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    progress: Progress | None = None,
) -> P:
    """The same protocol with the smallest σ whose certified loss meets ε at δ.

    `RingSum`, `WalkSum` and `WalkDescent` are calibrated against the worst single observer (walks: `colluders=3` for any
    three that collude); `scope` and `observers` belong to gossip.

    scope : "worst" (every ordered pair), "beyond:k" (pairs at least k hops apart), "mean" (the mean factor over the parties,
        for the worst observer: the papers' figure, and *not* a guarantee for any single party), or a `Policy` (then
        epsilon=None).
    observers : the parties that look, each alone; None means everybody. With a list, the target holds for those only.
    colluders : in addition, coalitions, or a fraction such as 0.1 of the parties, drawn `draws` times from `seed`: the target
        then holds for those draws (and all their subsets), not for every coalition of that size.

    >>> from netdp import account, graphs
    >>> p = calibrate(Gossip(graphs.hypercube(6), rounds=20, sigma=1.0, masks=100.0), epsilon=1.0, delta=1e-6)
    >>> round(p.sigma, 4), account(p, [0]).worst_epsilon(1e-6) <= 1.0
    (0.5706, True)
    """
    if isinstance(protocol, RingSum | WalkSum | WalkDescent):
        if scope != "worst" or observers is not None or epsilon is None:
            raise InvalidValue(
                "tokens are calibrated for one ε against the worst observer: leave scope and observers out"
            )
        if colluders is not None and (isinstance(colluders, bool) or not isinstance(colluders, int)):
            raise InvalidValue(f"for tokens, colluders is how many users collude, got {colluders!r}")
        return calibrate_walk(protocol, epsilon, delta, 1 if colluders is None else colluders)
    if not isinstance(protocol, Gossip):
        raise InvalidValue(
            f"calibrate knows Gossip, RingSum, WalkSum and WalkDescent, got {type(protocol).__name__}; gossip descent: "
            "netdp.planning.gossip.descent"
        )
    target = Target(protocol.graph, epsilon, delta, scope)
    who = audience(protocol.graph, observers, colluders, seed=seed, draws=draws)
    return with_noise(protocol, target, certify(protocol, target, who, progress))  # type: ignore[return-value]


def with_noise(protocol: Gossip, target: Target, certificate: Certificate) -> Gossip:
    """`protocol` with the σ that the certificate asks for, accounted again where it is tightest."""
    if certificate.demand == 0:
        raise InvalidValue(
            f"no noise is needed for {target.words}: nobody in question learns anything in {protocol.rounds} rounds; "
            "set sigma yourself, or ask for a wider scope"
        )
    sigma = protocol.sensitivity * math.sqrt(certificate.demand * (1 + _HEADROOM))
    if not math.isfinite(sigma):
        raise Unsupported(
            f"no finite noise level meets this for party {certificate.party} against {certificate.observers[:6]}; "
            "allow a larger epsilon or delta"
        )
    calibrated = protocol.replace(sigma=sigma)
    if certificate.examined == 0:  # known without accounting: the factor of a first message
        return calibrated
    again = factors(GossipView(calibrated, certificate.observers)).values
    needed = target.demand(again, certificate.observers).value * calibrated.sensitivity**2
    if not needed <= np.nextafter(sigma**2, 0):  # must not happen; never hand out a σ that fails
        raise NetdpError(f"σ = {sigma!r} came out too small by {needed / sigma**2 - 1:.1e}; please report this")
    return calibrated
