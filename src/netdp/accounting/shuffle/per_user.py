"""One curve per user against the curator alone, from how far its report has mixed.

For a user u with P_u ≤ (1 + high_u)π, among others with P_w ≥ (1 − low_w)π (`mixing`), δ_u(ε) is at most the least of

    crowds      E δ_heap(ε; K), K successes of probability (1 − low_w)/(1 + high_u)        (`crowds`)
    told        (1 − low_u)·E δ_heap(ε; K′) + low_u·δ_ε₀(ε), K′ successes of probability 1 − low_w   (`shuffling`)
    single      with reporting="single", what one item per holder shows                    (`single`)

Users are put into few groups by high_u, and each group is stated by its worst. Components of a graph that is not connected
do not mix: each is a heap of its own, and nothing of a user depends on the reports of other components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netdp.accounting.heap.clones import Heap
from netdp.numerics.arrays import FloatArray
from netdp.privacy import Curve, ProfileCurve, SharedCurve
from netdp.protocols import Shuffle

from .crowds import groups
from .mixing import Mixing, mixing
from .single import single_deltas

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999, 1.0)
_NEAR = 1.004  # and ε within half of that
_PLACES = 40


@dataclass(frozen=True, eq=False)
class Part:
    """The users of one component, the protocol on it, and how far it has mixed."""

    users: npt.NDArray[np.int64]
    protocol: Shuffle
    mixed: Mixing


def parts(protocol: Shuffle) -> list[Part]:
    """The components, each with its own walk."""
    return [Part(users, one, mixing(one)) for users, one in components(protocol)]


def components(protocol: Shuffle) -> list[tuple[npt.NDArray[np.int64], Shuffle]]:
    """The users of every component, and the protocol among them."""
    if protocol.graph.is_connected:
        return [(np.arange(protocol.n), protocol)]
    label = protocol.graph.components()
    members = [np.flatnonzero(label == c) for c in range(int(label.max()) + 1)]
    return [(users, protocol.replace(graph=protocol.graph.subgraph(users.tolist()))) for users in members]


def curves(protocol: Shuffle, found: list[Part] | None = None, *, knots: npt.ArrayLike = ()) -> Curve:
    """One curve for all if all are alike, else a curve per user; `knots` are ε where no chord shall be in the way."""
    tables = [Table.of(part.protocol, part.mixed) for part in (parts(protocol) if found is None else found)]
    eps = np.unique(np.concatenate([np.asarray(knots, dtype=np.float64), *(table.knots() for table in tables)]))
    which = np.zeros(protocol.n, dtype=np.int64)
    rows: list[FloatArray] = []
    for table, (users, _) in zip(tables, components(protocol), strict=True):
        which[users] = table.group + sum(len(row) for row in rows)
        rows.append(np.minimum.accumulate(table.deltas(eps, sharp=np.asarray(knots, dtype=np.float64)), axis=1))
    curve = ProfileCurve(eps, np.concatenate(rows))
    if len(curve.deltas) == 1:
        return ProfileCurve(eps, curve.deltas[0])
    return SharedCurve(curve, which)


@dataclass(frozen=True, eq=False)
class Table:
    """The users of a connected graph in groups; `high` and `low` are the largest of each group."""

    protocol: Shuffle
    group: npt.NDArray[np.int64]
    high: FloatArray
    low: FloatArray
    others: FloatArray
    """1 − low of all others: the victim is taken for the best of them."""

    @classmethod
    def of(cls, protocol: Shuffle, mixed: Mixing) -> Table:
        group = _grouped(mixed.high)
        count = int(group.max()) + 1
        high, low = np.zeros(count), np.zeros(count)
        np.maximum.at(high, group, mixed.high)
        np.maximum.at(low, group, mixed.low)
        low = np.maximum.accumulate(low)  # so that nobody in a group is worse off than the next
        return cls(protocol, group, high, low, np.sort(1 - mixed.low)[:-1])

    def crowd(self, g: int) -> Heap:
        """The heap of a user of group g among its crowd."""
        p = self.protocol
        shares = self.others / (1 + self.high[g]) * (1 - 1e-15)
        return Heap.of(0, p.epsilon0, crowd=groups(shares), delta0=p.delta0)

    def told(self, share: float = 0.0) -> Heap:
        """The heap of those who are mixed, the victim told with this probability: it differs by group."""
        p = self.protocol
        return Heap.of(0, p.epsilon0, crowd=groups(self.others), delta0=p.delta0, told=share)

    def knots(self) -> FloatArray:
        """ε at which the curves bend."""
        top = self.protocol.epsilon0
        chosen = sorted({0, len(self.high) // 2, len(self.high) - 1})
        found = [np.asarray(self.crowd(g).profile().epsilons) for g in chosen]
        for low in {float(self.low.min()), float(self.low.max())}:
            found.append(np.asarray(self.told(low).profile().epsilons))
        if self.single:
            found.append(self._bends())
        eps = np.unique(np.concatenate([[0.0, top], *found]))
        return np.asarray(eps[eps <= top])

    @property
    def single(self) -> bool:
        """Is the gain of single reporting claimed? It is proved for pure randomizers."""
        return self.protocol.reporting == "single" and not self.protocol.delta0

    def _bends(self) -> FloatArray:
        """Some ε where the curve of single reporting is looked at: along chords it is within 0.3 % for δ from 1e-15 on."""
        scale = self.crowd(0).epsilon(1e-6), self.crowd(len(self.high) - 1).epsilon(1e-6)
        steps = np.append(np.linspace(0.0, 1.4, 71), np.linspace(1.4, 2.4, 21))
        return np.unique(np.concatenate([*(steps * one for one in scale), [self.protocol.epsilon0]]))

    def deltas(self, eps: FloatArray, sharp: FloatArray | None = None) -> FloatArray:
        """δ of every group at every ε; of single reporting along chords, but not at the ε in `sharp`."""
        old = self.told()
        hidden = old.hidden(eps)
        bends = self._bends() if self.single else np.zeros(0)
        if sharp is not None and self.single:
            bends = np.unique(np.append(bends, sharp))
        rows = []
        for g in range(len(self.high)):
            row = np.minimum(self.crowd(g).deltas(eps), old.finished(hidden, eps, float(self.low[g])))
            if self.single:
                found = np.minimum.accumulate(single_deltas(self.places(g), self.protocol.epsilon0, bends))
                row = np.minimum(row, ProfileCurve(bends, found).delta(eps))
            rows.append(row)
        return np.stack(rows)

    def delta(self, g: int, epsilon: float) -> float:
        """δ of group g at one ε."""
        asked = np.array([epsilon])
        heap, told = self.crowd(g), float(self.low[g])
        row = float(heap.deltas(asked)[0])
        if told * float(heap.local(asked)[0]) < row:  # else the older bound is no better
            row = min(row, float(self.told(told).deltas(asked)[0]))
        if self.single and row > 0:
            row = min(row, float(single_deltas(self.places(g), self.protocol.epsilon0, asked)[0]))
        return row

    def epsilon(self, g: int, delta: float) -> float:
        """The least ε at δ of group g, rounded up."""
        heap, told = self.crowd(g), float(self.low[g])
        best = heap.epsilon(delta)
        if best > 0 and told * float(heap.local(np.array([min(best, self.protocol.epsilon0)]))[0]) < delta:
            best = min(best, self.told(told).epsilon(delta))
        if self.single and 0 < best < math.inf:
            best = min(best, _single_epsilon(self.places(g), self.protocol.epsilon0, delta, best))
        return best

    def group_of(self, users: float) -> int:
        """The group of the worst of the best placed share `users` of all users."""
        n = len(self.group)
        return int(np.sort(self.group)[min(n - 1, max(0, math.ceil(users * n - 1e-9) - 1))])

    def places(self, g: int) -> list[tuple[int, float, float]]:
        """Where a report of group g may be: (how many places, p_u at most, others there on average at least)."""
        share = np.sort(self.protocol.graph.degrees / self.protocol.graph.degrees.sum())[::-1]
        top, reports = float(1 + self.high[g]), float(self.others.sum())
        step = math.log(float(share[0] / share[-1]) + 1e-12) / _PLACES
        number = np.floor(np.log(share[0] / share) / max(step, 1e-3)).astype(np.int64)
        cuts = np.flatnonzero(np.diff(number, prepend=-1))
        ends = np.append(cuts[1:], len(share))
        return [
            (int(b - a), min(1.0, top * float(share[a]) * (1 + 1e-14)), reports * float(share[b - 1]) * (1 - 1e-12))
            for a, b in zip(cuts, ends, strict=True)
        ]


def _single_epsilon(places: list[tuple[int, float, float]], epsilon0: float, delta: float, most: float) -> float:
    low, high = 0.0, most
    if single_deltas(places, epsilon0, [most])[0] > delta:
        return most
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if single_deltas(places, epsilon0, [middle])[0] <= delta else (middle, high)
    return high


def _grouped(high: FloatArray) -> npt.NDArray[np.int64]:
    """A number per user, 0 for the best placed: cut at quantiles, unless 1 + high is nearly the same on both sides."""
    n, ordered = len(high), np.sort(high)
    cuts: list[float] = []
    base = 0.0
    for share in _QUANTILES:
        value = float(ordered[min(n - 1, max(0, math.ceil(share * n - 1e-9) - 1))])
        if cuts and 1 + value <= (1 + base) * _NEAR:
            cuts[-1] = value
        else:
            cuts.append(value)
            base = value
    return np.searchsorted(np.array(cuts), high).astype(np.int64)
