"""Any f parties: every coalition tried, or everybody else at once, for protocols that have no bound of their own.

A coalition that contains another learns at least as much about everybody outside both, so "any f" covers "any f or fewer", and
"everybody but u" covers everything about u (docs/guarantees.md#any-coalition).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from netdp.accounting.table import certified
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray, Progress
from netdp.privacy import (
    Claim,
    Curve,
    Found,
    GaussianCurve,
    Guarantee,
    Observers,
    ProfileCurve,
    RenyiCurve,
    SharedCurve,
    entry,
    weakest,
)
from netdp.protocols import Protocol

MOST_TRIED = 2_000
"""Coalitions that are tried one by one."""
FIXED = (
    "who colludes is fixed beforehand: it does not depend on what is drawn or sent in the run; the bound holds for every such "
    "coalition, the worst of them for each party"
)
_DELTA = 1e-6  # at which coalitions are compared, where losses are curves
_TIE = 1e-9  # losses that differ by less, relatively, are ties: the first coalition and the first party are named
_KNOTS, _NUMBERS = 512, 20_000_000

Account = Callable[[tuple[int, ...]], Guarantee]


def accountant(protocol: Protocol, options: dict[str, Any]) -> Account:
    """The certified loss against named parties, with the roles that the protocol has."""
    return lambda members: certified(protocol, (*protocol.roles, *members), **options)


def how_many(n: int, colluders: int) -> int:
    """The number of coalitions."""
    return math.comb(n, colluders)


def try_all(
    n: int, account: Account, sets: Sequence[tuple[int, ...]], *, alike: bool = False, progress: Progress | None = None
) -> Guarantee:
    """The worst over the sets, for every party outside; `alike`: the worst over all parties holds for each of them.

    With `alike` the sets need only hold every coalition up to a symmetry of the protocol that takes any party to any other.
    """
    worst = Worst(n)
    for done, members in enumerate(sets, start=1):
        worst.add(members, account(members))
        if progress is not None:
            progress(done, len(sets))
    return worst.guarantee(alike=alike)


def everybody_else(
    n: int, account: Account, targets: Iterable[int] | None = None, progress: Progress | None = None
) -> Guarantee:
    """About each target all others collude: no coalition learns more. The claim is upper for coalitions of fewer."""
    chosen = list(range(n) if targets is None else targets)
    worst = Worst(n)
    for done, u in enumerate(chosen, start=1):
        members = tuple(v for v in range(n) if v != u)
        worst.add(members, account(members))
        if progress is not None:
            progress(done, len(chosen))
    return worst.guarantee()


class Worst:
    """Losses against one set after the other, the largest kept for every party."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._losses: list[Guarantee] = []
        self._sets: list[tuple[int, ...]] = []
        self._mu: FloatArray | None = None
        self._which = np.zeros(n, dtype=np.int64)
        self._held = np.full(n, -np.inf)  # μ of that set
        self._factor: FloatArray | None = np.full(n, -np.inf)

    def add(self, members: tuple[int, ...], loss: Guarantee) -> None:
        """One more set and what it learns, one entry per party or one for all outside."""
        curve, factor = loss.curve, loss.factor
        if not curve.shape:
            which = np.zeros(self.n, dtype=np.int64)
            which[list(members)] = -1
            curve = SharedCurve(curve, which)
            factor = None if factor is None else np.where(which < 0, np.nan, float(factor))
        if self._factor is not None:
            self._factor = None if factor is None else np.fmax(self._factor, factor)
        if isinstance(curve, GaussianCurve):  # only the largest μ matters
            mu = np.asarray(curve.mu)
            before = np.full(self.n, -np.inf) if self._mu is None else self._mu
            mine = np.where(np.isnan(mu), -np.inf, mu)
            clearly = mine > self._held + _TIE * np.abs(np.where(np.isinf(self._held), 0.0, self._held))
            self._which[clearly] = len(self._sets)
            self._held = np.where(clearly, mine, self._held)
            self._mu = np.maximum(mine, before)
            loss = dataclasses.replace(loss, curve=GaussianCurve(0.0), factor=None)
        else:
            loss = dataclasses.replace(loss, curve=curve, factor=None)
        self._losses.append(loss)
        self._sets.append(members)

    def guarantee(self, *, alike: bool = False) -> Guarantee:
        """The worst of all, and the set that attains it."""
        if not self._losses:
            raise InvalidValue("no coalition was tried")
        curve, target, members, one = self._gaussian() if self._mu is not None else self._tables()
        claims = [loss.claim for loss in self._losses]
        claim = weakest(*claims)
        factor = self._factor
        factor = None if factor is None else np.where(factor == -np.inf, np.nan, factor)
        if alike:
            curve, factor = _spread(curve, target, factor, self.n)
        found = Found(Observers(members), target, one, attained=claims[self._sets.index(members)] is Claim.EXACT)
        return dataclasses.replace(
            self._losses[0],
            curve=curve,
            factor=factor,
            claim=claim,
            assumptions=tuple(dict.fromkeys(text for loss in self._losses for text in loss.assumptions)),
            slack=max(loss.slack for loss in self._losses),
            found=found,
        )

    def _gaussian(self) -> tuple[Curve, int, tuple[int, ...], Curve]:
        if any(not isinstance(loss.curve, GaussianCurve) for loss in self._losses):
            raise Unsupported("some coalitions have Gaussian losses and some have not; account for them one by one")
        assert self._mu is not None
        mu = np.where(self._mu == -np.inf, np.nan, self._mu)
        target = _first_largest(mu)
        return GaussianCurve(mu), target, self._sets[self._which[target]], GaussianCurve(float(self._held[target]))

    def _tables(self) -> tuple[Curve, int, tuple[int, ...], Curve]:
        curves = [loss.curve for loss in self._losses]
        points = np.unique(np.concatenate([_points(curve) for curve in curves]))
        if len(points) > _KNOTS:
            points = points[np.unique(np.linspace(0, len(points) - 1, _KNOTS).round().astype(np.int64))]
        deltas = np.full((self.n, len(points)), -1.0)
        largest, found = -1.0, (0, 0)
        for place, curve in enumerate(curves):
            rows = np.stack([np.asarray(curve.delta(point)) for point in points], axis=-1)
            deltas = np.fmax(deltas, rows)
            epsilon = np.asarray(curve.epsilon(_DELTA))
            u = _first_largest(epsilon)
            if epsilon[u] > largest + _TIE * abs(largest):
                largest, found = float(epsilon[u]), (place, u)
        deltas[deltas[:, 0] < 0] = np.nan
        place, u = found
        whole = ProfileCurve(points, np.minimum.accumulate(deltas, axis=-1))
        return whole, u, self._sets[place], entry(curves[place], u)


def _first_largest(values: FloatArray) -> int:
    """The first of those who are largest but for rounding: the same on every processor."""
    top = float(np.nanmax(values))
    near = values >= top - _TIE * abs(top) if np.isfinite(top) else values == top
    return int(np.flatnonzero(near)[0])


def _points(curve: Curve) -> FloatArray:
    inner = curve.curves if isinstance(curve, SharedCurve) else curve
    if isinstance(inner, ProfileCurve):
        return np.asarray(inner.epsilons)
    if isinstance(inner, RenyiCurve):
        top = float(np.nanmax(np.asarray(inner.epsilon(1e-15))))
        return np.linspace(0.0, min(top, 1e3), _KNOTS)
    raise Unsupported(f"the worst of {curve.kind} curves is not taken; account for the coalitions one by one")


def _spread(curve: Curve, target: int, factor: FloatArray | None, n: int) -> tuple[Curve, FloatArray | None]:
    """The worst party's curve for everybody."""
    if isinstance(curve, GaussianCurve):
        whole: Curve = GaussianCurve(np.full(n, float(np.nanmax(curve.mu))))
    else:
        assert isinstance(curve, ProfileCurve)
        whole = SharedCurve(ProfileCurve(curve.epsilons, np.nanmax(curve.deltas, axis=0)), np.zeros(n, dtype=np.int64))
    return whole, None if factor is None else np.full(n, float(np.nanmax(factor)))


def coalitions_of(n: int, colluders: int, *, alike: bool = False) -> list[tuple[int, ...]]:
    """All coalitions of this size; where all parties are alike, only those that party 0 is in.

    >>> coalitions_of(4, 2, alike=True)
    [(0, 1), (0, 2), (0, 3)]
    """
    if alike:
        return [(0, *rest) for rest in itertools.combinations(range(1, n), colluders - 1)]
    return list(itertools.combinations(range(n), colluders))


def affordable(n: int, colluders: int, *, alike: bool = False, most: int = MOST_TRIED) -> bool:
    """Whether there are few enough of them to try each."""
    return (how_many(n - 1, colluders - 1) if alike else how_many(n, colluders)) <= most


def general(protocol: Protocol, colluders: int, options: dict[str, Any], progress: Progress | None) -> Guarantee:
    """For a protocol without a bound of its own: all coalitions, or everybody else at once, or a refusal."""
    n, account = protocol.n, accountant(protocol, options)
    first = account(tuple(range(colluders)))
    numbers = n * (len(_points(first.curve)) if first.curve.shape and not isinstance(first.curve, GaussianCurve) else 1)
    if affordable(n, colluders) and how_many(n, colluders) * numbers <= _NUMBERS:
        return try_all(n, account, coalitions_of(n, colluders), progress=progress)
    if n <= MOST_TRIED and n * numbers <= _NUMBERS:
        loss = everybody_else(n, account, progress=progress)
        note = f"{how_many(n, colluders):.2g} coalitions are too many to try: bounded by what all others together learn"
        claim = loss.claim if colluders == n - 1 else weakest(loss.claim, Claim.UPPER)
        found = _grown(protocol.n, account, colluders, loss)
        return dataclasses.replace(loss, claim=claim, assumptions=(*loss.assumptions, note), found=found)
    raise Unsupported(
        f"any {colluders} of {n:,} parties: {type(protocol).__name__} has no bound that holds for all of them, and they are too "
        "many to try; name the coalitions, account(protocol, [0, 1])"
    )


def _grown(n: int, account: Account, colluders: int, loss: Guarantee) -> Found | None:
    """A coalition against the worst target, grown by one party at a time among a few: only what was found, no bound."""
    assert loss.found is not None
    target, members = loss.found.target, list[int]()
    others = [v for v in range(n) if v != target]
    candidates = [others[i] for i in np.unique(np.linspace(0, len(others) - 1, 32).astype(int))]
    best: Guarantee | None = None
    for _ in range(colluders):
        losses = [(account(tuple(sorted([*members, v]))), v) for v in candidates if v not in members]
        if not losses:
            break
        best, chosen = max(losses, key=lambda pair: float(entry_of(pair[0], target).epsilon(_DELTA)))
        members.append(chosen)
        if not loss.found.curve.epsilon(_DELTA) > entry_of(best, target).epsilon(_DELTA):
            break
    if best is None:
        return None
    return found_in(best, tuple(sorted(members)), target)


def entry_of(loss: Guarantee, target: int) -> Curve:
    """What a loss says of one target."""
    return entry(loss.curve, target) if loss.curve.shape else loss.curve


def found_in(
    loss: Guarantee, members: tuple[int, ...], target: int, roles: tuple[str, ...] = (), note: str = ""
) -> Found:
    """What these parties learn about the target, as their own loss says."""
    return Found(Observers(members, roles), target, entry_of(loss, target), loss.claim is Claim.EXACT, note)


def dominating(neighbours: Sequence[Any]) -> tuple[int, ...]:
    """Parties of which everybody else has one as a neighbour: the best connected first, until nobody is left.

    >>> from netdp import graphs
    >>> star = graphs.star(5)
    >>> dominating([star.neighbors(v) for v in range(5)])
    (0,)
    """
    n = len(neighbours)
    open_, chosen = np.ones(n, dtype=bool), list[int]()
    gain = np.array([1 + len(near) for near in neighbours])
    while open_.any():
        v = int(np.argmax(gain))
        chosen.append(v)
        for w in [v, *(int(w) for w in neighbours[v])]:
            if open_[w]:
                open_[w] = False
                gain[[w, *(int(x) for x in neighbours[w])]] -= 1
    return tuple(sorted(chosen))
