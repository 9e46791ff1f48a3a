"""Which settings of gossip to look at, and how much noise a target asks of them over all pairs and coalitions in question.

`Search` looks at many settings quickly and promises nothing; among those within `TOLERANCE` of the smallest predicted error it
takes the one with the fewest rounds. With masks the bound of `bounds` holds for every number of rounds, so noise and rounds
separate; plain gossip reads all rounds off one nested Krylov basis; refresh has no shortcut. `certify` finds the noise of what is
chosen: factors do not depend on σ, so one certification serves every σ, and observers are visited in the order of a bound until
nobody left can be the worst (docs/proofs/privacy.md#calibration).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy import linalg

from netdp.engines.maps import map_items
from netdp.errors import Unsupported
from netdp.families.gossip.account.bounds import MAX_PARTIES, told_everything
from netdp.families.gossip.account.exact import factors, strongest_masks
from netdp.families.gossip.account.krylov import seen_space
from netdp.families.gossip.error import SpectralError
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.views import GossipView
from netdp.graphs.graph import Graph
from netdp.graphs.resistance import Network, nearest, worst_removal
from netdp.graphs.shape import vertex_transitive
from netdp.numerics.arrays import FloatArray, Progress
from netdp.privacy.gaussian import gaussian_epsilon
from netdp.privacy.guarantee import Claim, weakest
from netdp.protocols.accounting import account
from netdp.protocols.target import Audience, Target

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
    graph: Graph | None = None  # whose names its parties have, for people

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        label: Any = str if self.graph is None else self.graph.label
        tightest = None
        if self.party >= 0:  # a mean is over all parties
            names = {"party": label(self.party), "observers": [label(v) for v in self.observers]}
            tightest = {"party": self.party, "observers": list(self.observers), "names": names}
        return {
            "claim": self.claim.value,
            "worst_factor": self.worst_factor,
            "tightest": tightest,
            "sets_covered": self.covered,
            "sets_examined": self.examined,
            "slack": self.slack,
        }

    def worst_epsilon(self, protocol: Gossip, delta: float) -> float:
        """ε of the worst pair or coalition at the protocol's σ, also outside the scope."""
        return float(gaussian_epsilon(np.sqrt(self.worst_factor) * protocol.local_mu, delta))


def named(certificate: Certificate, graph: Graph) -> Certificate:
    """The same with the names that the graph gives the parties."""
    return replace(certificate, graph=graph)


def certify(protocol: Gossip, target: Target, who: Audience, progress: Progress | None = None) -> Certificate:
    """The exact demand of `protocol` over everybody in question.

    >>> from netdp import graphs
    >>> from netdp.protocols.target import audience
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
        bounded = [revealed(GossipView(protocol, members)) for members in sets] if n <= _MAX_BOUNDED else []
        if n > _MAX_BOUNDED:  # for all single observers at once
            single = list(told_everything(protocol.graph, protocol.masks))
            bounded = [single[members[0]] for members in sets]
            for factor, members in zip(bounded, sets, strict=True):
                factor[protocol.graph.distances(members[0]) > protocol.rounds] = (
                    0.0  # out of reach, as `revealed` has it
                )
        bounds = np.asarray(
            [target.demand(factor, members).value for factor, members in zip(bounded, sets, strict=True)]
        )
        largest = np.asarray([np.nanmax(factor) for factor in bounded])
    protocol.prepare()
    order = np.argsort(-bounds, kind="stable")
    from_here = np.maximum.accumulate(largest[order][::-1])[::-1]
    examined: list[_Exact] = []
    # What workers computed ahead of the last one that was needed is not looked at: the answer is that of one by one.
    visits = (sets[index] for index in order)
    with closing(map_items(_exact, visits, shared=(protocol, target), progress=progress)) as exact:
        for bound, largest_left in zip(bounds[order], from_here, strict=True):
            if examined and max(e[0] for e in examined) >= bound and max(e[3] for e in examined) >= largest_left:
                break
            examined.append(next(exact))
    demand, party, members, *_ = max(examined, key=lambda entry: entry[0])
    return Certificate(
        demand=demand,
        party=party,
        observers=members,
        worst_factor=max(entry[3] for entry in examined),
        claim=weakest(*(entry[4] for entry in examined)),
        slack=max(entry[5] for entry in examined),
        examined=len(examined),
        covered=len(who.singles) + len(who.coalitions),
    )


_Exact: TypeAlias = tuple[float, int, tuple[int, ...], float, Claim, float]


def _exact(protocol: Gossip, target: Target, members: tuple[int, ...]) -> _Exact:
    """(demand, whose, observers, largest factor, claim, slack) against one set of observers."""
    result = factors(GossipView(protocol, members))
    asked = target.demand(result.values, members)
    return asked.value, asked.party, members, float(np.nanmax(result.values)), result.claim, result.slack


def _any_coalition(protocol: Gossip, target: Target, who: Audience, progress: Progress | None) -> Certificate:
    """Against any so many parties: the bound that holds for every party and all of them (`netdp.protocols.accounting`)."""
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


TOLERANCE = 0.01

MASKS = tuple(float(f"{x:.2g}") for x in np.logspace(0, 5, 21))

REFRESH = (0.03, 0.1, 0.3, 1.0, 3.0)

# Messages of one observer over all rounds, above which refresh is not searched: its covariance over time takes seconds.
MAX_MESSAGES = 400

MAX_OPERATIONS = 1e12

_SINGLES = 8

_COALITIONS = 4

# Up to here every set is looked at in the search for masks, above only the sample.
_ALL_UP_TO = 128


@dataclass(frozen=True)
class FoundSettings:
    """Settings worth certifying and the squared error they seem to reach."""

    protocol: Gossip
    squared_error: float


class Search:
    """One graph, one target, one audience; Δ and mixing are those of `base`."""

    def __init__(self, base: Gossip, target: Target, who: Audience, errors: SpectralError, spread: float) -> None:
        self.base, self.target, self.errors, self.spread = base, target, errors, spread
        self.any_of = who.any_of
        self.sample = _sample(base, target, who) if self.any_of == 1 else []
        self.everyone = who.sets(symmetric=target.symmetric)
        # without masks a neighbour sees the first message, whatever follows: nothing to account for
        seen = (1.0 / target.mu**2, ()) if self.any_of > 1 else target.strictest_neighbour(self.everyone)
        self.first_message = None if seen is None else seen[0]

    def plain(self) -> FoundSettings | None:
        """No refresh, no masks."""
        if self.first_message is None:
            demand = self._nested_demand()
        else:
            demand = np.full(self.errors.rounds + 1, self.first_message)
        return self._fewest_rounds([(0.0, demand)])

    def masked(self) -> FoundSettings | None:
        """Masks, no refresh."""
        demands = self._revealed_demands().tolist()
        rounds = self.errors.rounds + 1
        return self._fewest_rounds([(masks, np.full(rounds, d)) for masks, d in zip(MASKS, demands, strict=True)])

    def refreshed(self) -> FoundSettings | None:
        """Refresh, no masks."""
        settings = []
        for T in self._few_rounds():
            for accelerated in (False, True):
                for refresh in REFRESH:
                    p = self.base.replace(rounds=T, refresh=refresh, accelerated=accelerated)
                    # the first message of a neighbour, whatever the refresh
                    demand = self._sampled_demand(p) if self.first_message is None else self.first_message
                    if demand > 0:
                        settings.append(FoundSettings(p, self._squared_error(p, demand)))
        return _fewest(settings)

    def masked_refreshed(self, masked: Gossip) -> FoundSettings | None:
        """Refresh on top of the masks found best; None when there are too many messages to look."""
        if masked.rounds * self._boundary() > MAX_MESSAGES:
            return None
        settings = []
        for masks in (masked.masks / 10, masked.masks):
            for refresh in (0.1, 1.0):
                p = masked.replace(masks=masks, refresh=refresh)
                settings.append(FoundSettings(p, self._squared_error(p, self._sampled_demand(p))))
        return _fewest(settings)

    def _squared_error(self, p: Gossip, demand: float) -> float:
        traces = self.errors.traces(p.accelerated)
        noise = float(traces.squared_error(p.masks, p.refresh)[p.rounds])
        return p.sensitivity**2 * demand * noise + self.spread * float(traces.mixing[p.rounds])

    def _fewest_rounds(self, asked: list[tuple[float, FloatArray]]) -> FoundSettings | None:
        """Over all T, both kinds of steps and the given κ with their demand by T."""
        rows = []
        for accelerated in (False, True):
            traces = self.errors.traces(accelerated)
            for masks, demand in asked:
                row = self.base.sensitivity**2 * demand * traces.squared_error(masks, 0.0) + self.spread * traces.mixing
                rows.append(np.where(demand > 0, row, np.inf)[1:])
        table = np.asarray(rows)
        if not np.isfinite(table).any():
            return None
        good = table.min(axis=0) <= table.min() * (1 + TOLERANCE) ** 2
        T = int(np.flatnonzero(good)[0])
        best = int(table[:, T].argmin())
        masks = asked[best % len(asked)][0]
        chosen = self.base.replace(rounds=T + 1, masks=masks, accelerated=best >= len(asked))
        return FoundSettings(chosen, float(table[best, T]))

    def _revealed_demands(self) -> FloatArray:
        """For every κ in `MASKS`, what all first messages would demand: one diagonalisation of L′ per set serves all κ."""
        n = self.base.graph.n
        demands = np.zeros(len(MASKS))
        if self.any_of > 1:
            return self._demands_of_any()
        for members in self.everyone if n <= _ALL_UP_TO else self.sample:
            view = GossipView(self.base, members)
            honest = np.flatnonzero(view.hidden)
            unit = np.zeros((n, len(honest)))
            unit[honest, np.arange(len(honest))] = 1.0
            energies, vectors = np.linalg.eigh(view.mask_laplacian(unit)[honest])
            squares = vectors**2
            factor = np.full(n, np.nan)
            for i, masks in enumerate(MASKS):
                factor[honest] = squares @ (1.0 / (1.0 + masks * np.maximum(energies, 0.0)))
                demands[i] = max(demands[i], self.target.demand(factor, members).value)
        return demands

    def _demands_of_any(self) -> FloatArray:
        """The same for any so many parties together, about a few parties of few neighbours."""
        graph = self.base.graph
        order = np.argsort(graph.degrees, kind="stable")
        few = order[:: max(1, len(order) // 4)][:4] if not vertex_transitive(graph) else order[:1]
        demands = np.zeros(len(MASKS))
        for u in few.tolist():
            near = nearest(graph, u, _ALL_UP_TO)
            part, place = graph.subgraph(near.tolist()), near.tolist().index(u)
            for i, masks in enumerate(MASKS):
                factor = worst_removal(Network(part, masks), place, self.any_of, budget=40).upper
                demands[i] = max(demands[i], factor / self.target.mu**2)
        return demands

    def _nested_demand(self) -> FloatArray:
        rounds = self.errors.rounds
        demand = np.zeros(rounds + 1)
        for members in self.sample:
            view = GossipView(self.base.replace(rounds=min(rounds, self.base.graph.n)), members)
            space = seen_space(view)
            scores = np.zeros(len(space.basis))
            ends = np.cumsum(space.ranks)
            for T in range(1, rounds + 1):
                if len(ends) >= T:
                    scores = scores + (space.basis[:, ends[T - 1] - space.ranks[T - 1] : ends[T - 1]] ** 2).sum(axis=1)
                    scores[list(members)] = np.nan
                    latest = self.target.demand(scores, members).value
                demand[T] = max(demand[T], latest)
        return demand

    def _sampled_demand(self, p: Gossip) -> float:
        sets = self.sample if p.rounds * self._boundary() <= 100 else self.sample[:4]
        return max(self.target.demand(factors(GossipView(p, members)).values, members).value for members in sets)

    def _boundary(self) -> int:
        return max(len(GossipView(self.base, members).boundary) for members in self.sample)

    def _few_rounds(self) -> Iterator[int]:
        if self.errors.rounds < 2:  # fresh noise enters before the second send
            return
        if self.first_message is not None:
            yield from sorted({round(T) for T in np.geomspace(2, self.errors.rounds, 40)})
            return
        b, sets = self._boundary(), len(self.everyone)
        longest = min(self.errors.rounds, MAX_MESSAGES // b)
        # QR of the messages of each set, once per round: keep the certification to a minute or so.
        while longest > 2 and 4.0 * sets * longest * (longest * b) ** 3 > MAX_OPERATIONS:
            longest -= 1
        longest = max(2, longest)
        yield from sorted({round(T) for T in np.geomspace(2, longest, 6)})


def _fewest(settings: list[FoundSettings]) -> FoundSettings | None:
    if not settings:
        return None
    best = min(finding.squared_error for finding in settings)
    good = [finding for finding in settings if finding.squared_error <= best * (1 + TOLERANCE) ** 2]
    return min(good, key=lambda finding: (finding.protocol.rounds, finding.squared_error))


def _sample(base: Gossip, target: Target, who: Audience) -> list[tuple[int, ...]]:
    """Likely worst observers (neighbours of the least connected parties, the best connected), some others, some
    coalitions.
    """
    sets = who.sets(symmetric=target.symmetric)
    singles = [members for members in sets if len(members) == 1]
    if len(singles) > _SINGLES:
        degrees = base.graph.degrees
        lonely = int(np.argmin(degrees))
        chosen = {int(base.graph.neighbors(lonely)[0]), int(np.argmax(degrees)), lonely}
        spaced = [singles[i][0] for i in np.linspace(0, len(singles) - 1, _SINGLES).astype(int)]
        allowed = {members[0] for members in singles}
        singles = [(v,) for v in [*(sorted(chosen & allowed)), *spaced]][:_SINGLES]
    coalitions = [members for members in sets if len(members) > 1][:_COALITIONS]
    return [*coalitions, *dict.fromkeys(singles)]
