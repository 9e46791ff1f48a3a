"""Which settings to certify: a quick look at many, that promises nothing. `plan` certifies what is chosen here.

Masked.  What all first messages would reveal, [ (I + κL′)⁻¹ ]_uu, bounds the loss for every number of rounds. So κ
    and T separate: the noise that κ asks for is known before T, and the error for all T follows from the traces.
Plain.   A neighbour's first message is x + ση: for every pair the demand is local DP's whatever T. Other scopes read
    the factors for all T off one nested Krylov basis.
Refresh. No shortcut: a few observers, a few (T, r), accounted as they are.

Among settings within `TOLERANCE` of the smallest predicted error the one with the fewest rounds is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from netdp.accounting.coalitions.currents import Network, nearest, worst_removal
from netdp.accounting.gossip.exact import factors
from netdp.accounting.gossip.krylov import seen_space
from netdp.graphs.symmetry import vertex_transitive
from netdp.numerics.arrays import FloatArray
from netdp.planning.audience import Audience
from netdp.planning.target import Target
from netdp.protocols import Gossip
from netdp.utility.spectral import SpectralError
from netdp.views import GossipView

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
class Finding:
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

    def plain(self) -> Finding | None:
        """No refresh, no masks."""
        if self.first_message is None:
            demand = self._nested_demand()
        else:
            demand = np.full(self.errors.rounds + 1, self.first_message)
        return self._fewest_rounds([(0.0, demand)])

    def masked(self) -> Finding | None:
        """Masks, no refresh."""
        demands = self._revealed_demands().tolist()
        rounds = self.errors.rounds + 1
        return self._fewest_rounds([(masks, np.full(rounds, d)) for masks, d in zip(MASKS, demands, strict=True)])

    def refreshed(self) -> Finding | None:
        """Refresh, no masks."""
        found = []
        for T in self._few_rounds():
            for accelerated in (False, True):
                for refresh in REFRESH:
                    p = self.base.replace(rounds=T, refresh=refresh, accelerated=accelerated)
                    # the first message of a neighbour, whatever the refresh
                    demand = self._sampled_demand(p) if self.first_message is None else self.first_message
                    if demand > 0:
                        found.append(Finding(p, self._squared_error(p, demand)))
        return _fewest(found)

    def masked_refreshed(self, masked: Gossip) -> Finding | None:
        """Refresh on top of the masks found best; None when there are too many messages to look."""
        if masked.rounds * self._boundary() > MAX_MESSAGES:
            return None
        found = []
        for masks in (masked.masks / 10, masked.masks):
            for refresh in (0.1, 1.0):
                p = masked.replace(masks=masks, refresh=refresh)
                found.append(Finding(p, self._squared_error(p, self._sampled_demand(p))))
        return _fewest(found)

    def _squared_error(self, p: Gossip, demand: float) -> float:
        traces = self.errors.traces(p.accelerated)
        noise = float(traces.squared_error(p.masks, p.refresh)[p.rounds])
        return p.sensitivity**2 * demand * noise + self.spread * float(traces.mixing[p.rounds])

    def _fewest_rounds(self, asked: list[tuple[float, FloatArray]]) -> Finding | None:
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
        return Finding(chosen, float(table[best, T]))

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
        most = min(self.errors.rounds, MAX_MESSAGES // b)
        # QR of the messages of each set, once per round: keep the certification to a minute or so.
        while most > 2 and 4.0 * sets * most * (most * b) ** 3 > MAX_OPERATIONS:
            most -= 1
        most = max(2, most)
        yield from sorted({round(T) for T in np.geomspace(2, most, 6)})


def _fewest(found: list[Finding]) -> Finding | None:
    if not found:
        return None
    best = min(finding.squared_error for finding in found)
    good = [finding for finding in found if finding.squared_error <= best * (1 + TOLERANCE) ** 2]
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
