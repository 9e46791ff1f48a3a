"""The certified demand of a protocol: how much noise a target asks for, over all pairs and coalitions in question.

Factors do not depend on σ: masks (κσ²) and refresh (rσ²/T) are proportional to σ², so the whole noise covariance is
σ² times a matrix without σ (docs/guarantees.md#calibration). One certification serves every σ.

**Looking at few observers and yet at all.** A worst case over observers needs the exact loss only of those who can
be the worst. An observer that were told *all* first messages would learn at least what it does learn: with S = I + κL′ that
bound is [S⁻¹]_uu (and 1 without masks, 0 out of reach), one small inverse instead of a Krylov space. Observers are
visited in the order of that bound until the next bound is no larger than the worst exact loss found: nobody skipped
can be worse. (Under a policy the worst demand need not be the worst loss: both must be at least all bounds that are left.)

**Without masks** the worst factor is 1 and needs no computation: a neighbour's first message is x_u + ση_u itself,
refresh or not, and no view is worth more than every party's x + ση, from which all messages follow by adding noise
that does not depend on x.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import linalg

from netdp.accounting import account
from netdp.accounting.gossip.exact import factors, strongest_masks
from netdp.accounting.gossip.told import MAX_PARTIES, told_everything
from netdp.engine import map_items
from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray, Progress
from netdp.planning.audience import Audience
from netdp.planning.target import Target
from netdp.privacy import Claim, gaussian_epsilon
from netdp.privacy.guarantee import weakest
from netdp.protocols import Gossip
from netdp.views import GossipView

# A dense inverse per observer pays only up to here; above, the exact loss is the quicker of the two.
_MAX_BOUNDED = 512
# Added to the bound: far above the rounding of a Cholesky factorisation of this condition (512 parties: 1e-12 times it).
_BOUND_MARGIN, _BOUND_CONDITION = 1e-6, 1e6


@dataclass(frozen=True)
class Certificate:
    """What was certified about a protocol's factors, whatever its σ."""

    demand: float  # (σ/Δ)² at least
    party: int  # who asks for it; -1 for a mean
    observers: tuple[int, ...]  # against whom
    worst_factor: float  # over all pairs and coalitions in question, whatever the scope
    claim: Claim
    slack: float
    examined: int  # sets accounted for exactly
    covered: int  # sets that the result holds for

    def worst_epsilon(self, protocol: Gossip, delta: float) -> float:
        """ε of the worst pair or coalition at the protocol's σ, also outside the scope."""
        return float(gaussian_epsilon(np.sqrt(self.worst_factor) * protocol.local_mu, delta))


def certify(protocol: Gossip, target: Target, who: Audience, progress: Progress | None = None) -> Certificate:
    """The exact demand of `protocol` over everybody in question.

    >>> from netdp import graphs
    >>> from netdp.planning.audience import audience
    >>> p = Gossip(graphs.hypercube(4), rounds=8, sigma=1.0, masks=100.0)
    >>> found = certify(p, Target(p.graph, 1.0, 1e-6), audience(p.graph))
    >>> round(found.worst_factor, 4), found.covered                  # the curator's limit is 1/15 = 0.0667
    (0.0703, 16)
    """
    if who.any_of > 1:
        return _any_coalition(protocol, target, who, progress)
    sets = who.sets(symmetric=target.symmetric)
    if protocol.masks == 0 and (seen := target.strictest_neighbour(sets)) is not None:
        return _first_message_seen(protocol, target, seen[1], len(who.singles) + len(who.coalitions))
    bounds, largest = np.full(len(sets), np.inf), np.full(len(sets), np.inf)  # of the demand, of any factor
    n, alone = protocol.graph.n, all(len(members) == 1 for members in sets)
    if protocol.masks > 0 and len(sets) > 2 and n <= (MAX_PARTIES if alone else _MAX_BOUNDED):
        told = [revealed(GossipView(protocol, members)) for members in sets] if n <= _MAX_BOUNDED else []
        if n > _MAX_BOUNDED:  # for all single observers at once
            single = list(told_everything(protocol.graph, protocol.masks))
            told = [single[members[0]] for members in sets]
            for one, members in zip(told, sets, strict=True):
                one[protocol.graph.distances(members[0]) > protocol.rounds] = 0.0  # out of reach, as `revealed` has it
        bounds = np.asarray([target.demand(one, members).value for one, members in zip(told, sets, strict=True)])
        largest = np.asarray([np.nanmax(one) for one in told])
    protocol.prepare()
    order = np.argsort(-bounds, kind="stable")
    from_here = np.maximum.accumulate(largest[order][::-1])[::-1]
    found: list[_Exact] = []
    # What workers computed ahead of the last one that was needed is not looked at: the answer is that of one by one.
    visits = (sets[index] for index in order)
    with closing(map_items(_exact, visits, shared=(protocol, target), progress=progress)) as exact:
        for bound, largest_left in zip(bounds[order], from_here, strict=True):
            if found and max(e[0] for e in found) >= bound and max(e[3] for e in found) >= largest_left:
                break
            found.append(next(exact))
    demand, party, members, *_ = max(found, key=lambda entry: entry[0])
    return Certificate(
        demand=demand,
        party=party,
        observers=members,
        worst_factor=max(entry[3] for entry in found),
        claim=weakest(*(entry[4] for entry in found)),
        slack=max(entry[5] for entry in found),
        examined=len(found),
        covered=len(who.singles) + len(who.coalitions),
    )


_Exact: TypeAlias = tuple[float, int, tuple[int, ...], float, Claim, float]


def _exact(protocol: Gossip, target: Target, members: tuple[int, ...]) -> _Exact:
    """(demand, whose, observers, largest factor, claim, slack) against one set of observers."""
    result = factors(GossipView(protocol, members))
    asked = target.demand(result.values, members)
    return asked.value, asked.party, members, float(np.nanmax(result.values)), result.claim, result.slack


def _any_coalition(protocol: Gossip, target: Target, who: Audience, progress: Progress | None) -> Certificate:
    """Against any so many parties: the bound that holds for every party and all of them (`netdp.accounting.coalitions`)."""
    if target.hops or target.scope == "mean":
        raise Unsupported(
            f"scope {target.scope!r} needs to know where the observers are, and any {who.any_of} parties may be anywhere; ask for "
            'scope="worst" or a policy, or name the coalitions, coalitions=[[0, 1], …]'
        )
    loss = account(protocol, colluders=who.any_of, progress=progress)
    assert loss.factor is not None
    asked = target.demand(np.asarray(loss.factor), ())
    found = loss.found if target.uniform else None  # the worst of all is not the worst under a policy
    return Certificate(
        demand=asked.value,
        party=asked.party if found is None else found.target,
        observers=() if found is None else found.observers.parties,
        worst_factor=float(np.nanmax(loss.factor)),
        claim=loss.claim,
        slack=loss.slack,
        examined=0,
        covered=math.comb(protocol.n, who.any_of),
    )


def _first_message_seen(protocol: Gossip, target: Target, observers: tuple[int, ...], covered: int) -> Certificate:
    seen = np.zeros(protocol.graph.n)
    seen[GossipView(protocol, observers).boundary] = 1.0
    asked = target.demand(seen, observers)
    return Certificate(asked.value, asked.party, observers, 1.0, Claim.EXACT, 0.0, 0, covered)


def revealed(view: GossipView) -> FloatArray:
    """An upper bound on the factors, without a Krylov space: the observers are told all first messages.

    >>> from netdp import graphs
    >>> p = Gossip(graphs.complete(4), rounds=1, sigma=1.0, masks=10.0)
    >>> float(revealed(GossipView.of(p, 0))[1].round(3))             # (1 + 2/31)/3: 1/3 is the curator's
    0.355
    """
    n = len(view.hidden)
    values = np.ones(n)
    if view.protocol.masks > 0:
        # Smaller masks than there are lose no less (`gossip`): small enough that the factorisation cannot fail.
        masks = strongest_masks(view, view.protocol.masks, _BOUND_CONDITION)
        honest = np.flatnonzero(view.hidden)
        unit = np.zeros((n, len(honest)))
        unit[honest, np.arange(len(honest))] = 1.0
        covariance = np.eye(len(honest)) + masks * view.mask_laplacian(unit)[honest]
        inverse, _ = linalg.lapack.dpotri(linalg.cholesky(covariance, check_finite=False))
        values[honest] = np.minimum(np.diagonal(inverse) * (1 + _BOUND_MARGIN), 1.0)
    values[view.protocol.graph.distances(list(view.observers)) > view.protocol.rounds] = 0.0
    values[list(view.observers)] = np.nan
    return values
