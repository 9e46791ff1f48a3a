"""What any f parties learn together, whoever they are: the one place where a maximum over coalitions is taken.

`against_any` answers for every protocol; `netdp.account(protocol, colluders=f)` and the promise of a study ask it. A family may
have a bound that holds for all coalitions at once (`netdp.protocols.table.coalitions`); otherwise every coalition is tried, or
everybody else at once. A coalition that contains another learns at least as much about everybody outside both, so "any f" covers
"any f or fewer", and "everybody but u" covers everything about u (docs/proofs/coalitions.md#any-coalition).

**Few coalitions are tried even where the family has a bound**, if both are tables, rest on the same assumptions, and no coalition
that was found attains the bound: a bound for all of them may be more than any of them has, and, read off another table, in its
last digits less than what is stated of one by name.

**The maximum of curves** is read off the curves themselves at every ε and δ (`LargestCurve`), so it is never below what one of
the coalitions learns, and never above the largest.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray, Progress, scalar_or_array
from netdp.numerics.checks import check_delta, check_epsilon
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve, SharedCurve, everywhere
from netdp.privacy.guarantee import Claim, Guarantee, weakest
from netdp.privacy.observers import Found, Observers, entry
from netdp.privacy.profile import ProfileCurve, ReadCurve
from netdp.privacy.renyi import RenyiCurve
from netdp.protocols.base import Protocol
from netdp.protocols.table import certified, coalitions

MOST_TRIED = 2_000
"""Coalitions that are tried one by one."""

FIXED = (
    "who colludes is fixed beforehand: it does not depend on what is drawn or sent in the run; the bound holds for every such "
    "coalition, the worst of them for each party"
)

_DELTA = 1e-6  # at which coalitions are compared, where losses are curves

_TIE = 1e-9  # losses that differ by less, relatively, are ties: the first coalition and the first party are named

_ROUNDED = 1e-12  # losses that differ by less, relatively, differ by rounding

_KNOTS, _EVEN, _NUMBERS = 512, 200, 20_000_000

FEW = 100
"""Losses, of a party against a coalition, that are looked at one by one although the family has a bound for all of them."""

MARKS = tuple(10.0**-k for k in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18))
"""δ at which the table of a maximum is as good as the curves that it is taken from."""

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
    worst = WorstCoalition(n)
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
    worst = WorstCoalition(n)
    for done, u in enumerate(chosen, start=1):
        members = tuple(v for v in range(n) if v != u)
        worst.add(members, account(members))
        if progress is not None:
            progress(done, len(chosen))
    return worst.guarantee()


class WorstCoalition:
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
            curve = _alike(curve, self.n)
            factor = None if factor is None else np.full(self.n, float(np.nanmax(factor)))
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
        largest, found = -1.0, (0, 0)
        for place, curve in enumerate(curves):
            epsilon = np.asarray(curve.epsilon(_DELTA))
            u = _first_largest(epsilon)
            if epsilon[u] > largest + _TIE * abs(largest):
                largest, found = float(epsilon[u]), (place, u)
        place, u = found
        return LargestCurve(curves), u, self._sets[place], entry(curves[place], u)


class LargestCurve(ReadCurve):
    """Entry by entry the largest of several curves of one shape; `whole`: one curve, the largest of all their entries.

    ε and δ are read off these curves, so they are exactly the largest of theirs. For all else (composition, files, one entry
    taken out) the maximum is made a table, once it is asked for: as good at `MARKS`, and by chords above between its points.

    even   the table has evenly spaced ε instead of points of these curves

    >>> one, two = ProfileCurve([0.0, 1.0], [0.5, 0.0]), ProfileCurve([0.0, 2.0], [0.25, 0.0])
    >>> both = LargestCurve([one, two])
    >>> [float(both.epsilon(delta)) == max(float(one.epsilon(delta)), float(two.epsilon(delta))) for delta in (0.3, 0.0123)]
    [True, True]
    >>> both.epsilons.size < 30, float(both.table.epsilon(1e-6)) == float(both.epsilon(1e-6))
    (True, True)
    """

    __slots__ = ("_even", "_parts", "_whole")
    _parts: tuple[Curve, ...]
    _whole: bool
    _even: bool

    def __init__(self, parts: Sequence[Curve], *, whole: bool = False, even: bool = False) -> None:
        self._set(_parts=tuple(parts), _whole=whole, _even=even, _held=None)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(LargestCurve, whole=self._whole, even=self._even), (self._parts,)

    def entry(self, index: int) -> ProfileCurve:
        """The largest of one entry of each of the curves that has a target there."""
        parts = [part for part in self._parts if not isinstance(part, SharedCurve) or part.which[index] >= 0]
        return LargestCurve([entry(part, index) for part in parts], even=self._even)

    def _points(self) -> FloatArray:
        return self._evenly_spaced() if self._even else self._telling()

    def _telling(self) -> FloatArray:
        """Points of the curves, some of them if they are many, and the marks: of every entry, or of the largest."""
        marks = [np.ravel(self.epsilon(delta)) for delta in MARKS]
        if sum(ends.size for ends in marks) > _KNOTS:
            marks = [np.fmax.reduce(ends, keepdims=True) for ends in marks]
        known = np.concatenate(marks)
        points = np.unique(np.concatenate([_points(curve) for curve in self._parts]))
        if len(points) > _KNOTS:
            points = points[np.unique(np.linspace(0, len(points) - 1, _KNOTS).round().astype(np.int64))]
        return np.union1d(points, known[np.isfinite(known)])

    def _evenly_spaced(self) -> FloatArray:
        """Evenly spaced, and where δ is a power of ten."""
        marks = [float(np.fmax.reduce(np.ravel(self.epsilon(delta)))) for delta in 10.0 ** -np.arange(1.0, 16.0)]
        known = [end for end in marks if math.isfinite(end)]
        return np.unique([*np.linspace(0.0, max(known, default=1.0), _EVEN), *known])

    @property
    def anywhere(self) -> LargestCurve:
        """One curve: the largest of all entries."""
        return LargestCurve(self._parts, whole=True, even=self._even)

    @property
    def shape(self) -> tuple[int, ...]:
        return () if self._whole else self._parts[0].shape

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        return self._read(largest_delta, check_epsilon(epsilon))

    def epsilon(self, delta: ArrayLike) -> FloatArray:
        return self._read(largest_epsilon, check_delta(delta))

    def _read(self, largest: Callable[[Sequence[Curve], ArrayLike], FloatArray], asked: FloatArray) -> FloatArray:
        if not self._whole:
            return largest(self._parts, asked)
        each = [_anybody(largest, self._parts, float(one)) for one in asked.ravel()]
        return scalar_or_array(np.array(each, dtype=np.float64).reshape(asked.shape))


def _anybody(
    largest: Callable[[Sequence[Curve], ArrayLike], FloatArray], curves: Sequence[Curve], asked: float
) -> float:
    """The largest over all entries of curves that may differ in shape."""
    return max(float(np.fmax.reduce(np.asarray(largest([curve], asked)), axis=None)) for curve in curves)


def for_everybody(curves: Sequence[Curve], n: int) -> Curve:
    """The largest loss of anybody, as the loss of each of n parties; the curves may be about different numbers of parties."""
    if len(curves) == 1:
        one = curves[0].curves if isinstance(curves[0], SharedCurve) else curves[0]
        if not one.shape:
            return everywhere(one, (n,))
    if all(isinstance(curve, GaussianCurve) for curve in curves):
        return GaussianCurve(np.full(n, max(float(np.nanmax(curve.mu)) for curve in curves)))  # type: ignore[attr-defined]
    return SharedCurve(LargestCurve(curves, whole=True, even=True), np.zeros(n, dtype=np.int64))


def largest_epsilon(curves: Sequence[Curve], delta: ArrayLike) -> FloatArray:
    """The largest ε of these curves at δ, entry by entry; nan only where none has a target."""
    return scalar_or_array(np.fmax.reduce([np.asarray(curve.epsilon(delta), dtype=np.float64) for curve in curves]))


def largest_delta(curves: Sequence[Curve], epsilon: ArrayLike) -> FloatArray:
    """The largest δ of these curves at ε, entry by entry; nan only where none has a target."""
    return scalar_or_array(np.fmax.reduce([np.asarray(curve.delta(epsilon), dtype=np.float64) for curve in curves]))


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


def _alike(curve: Curve, n: int) -> Curve:
    """The worst party's curve for everybody."""
    if isinstance(curve, GaussianCurve):
        return GaussianCurve(np.full(n, float(np.nanmax(curve.mu))))
    assert isinstance(curve, LargestCurve)
    return SharedCurve(curve.anywhere, np.zeros(n, dtype=np.int64))


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


def against_any(
    protocol: Protocol,
    colluders: int,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    *,
    most: int | None = None,
    account: Account | None = None,
) -> Guarantee:
    """What any so many parties (with the roles of the protocol) learn, the worst for every party.

    most      coalitions that are tried one by one where the family's bound for all of them is not attained; by default as many
              as make `FEW` losses
    account   the loss against named parties, where somebody keeps it
    """
    given = dict(options or {})
    if not coalitions.handles(protocol):
        return general(protocol, colluders, given, progress)
    loss: Guarantee = coalitions(protocol, colluders, progress=progress, **given)
    few = FEW // protocol.n if most is None else most
    if given or not affordable(protocol.n, colluders, most=few) or _is_attained(loss):
        return loss
    named = account or accountant(protocol, {})
    if not _rests_on_no_more(named(tuple(range(colluders))), loss):
        return loss
    # without progress, which the family has shown to its end: these are few
    tried = try_all(protocol.n, named, coalitions_of(protocol.n, colluders))
    return dataclasses.replace(loss, curve=tried.curve) if _rests_on_no_more(tried, loss) else loss


def _rests_on_no_more(named: Guarantee, loss: Guarantee) -> bool:
    """Whether a loss that is read off tables has the claim and the assumptions of another one."""
    tables = not isinstance(named.curve, GaussianCurve) and not isinstance(loss.curve, GaussianCurve)
    return tables and named.claim is loss.claim and set(named.assumptions) <= set(loss.assumptions)


def _is_attained(loss: Guarantee) -> bool:
    """Whether a coalition that was found has all of the loss that is claimed against any: exactly, or all coalitions are alike."""
    found = loss.found
    if found is None or not (found.attained or not loss.curve.shape):  # one curve for whoever looks at whomever
        return False
    worst = [(found.epsilon(delta), loss.worst_epsilon(delta)) for delta in MARKS]
    return all(one >= largest * (1 - _ROUNDED) for one, largest in worst if math.isfinite(largest))


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
