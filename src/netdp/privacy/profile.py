"""A privacy profile known at finitely many points."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from netdp.errors import InvalidValue
from netdp.numerics.arrays import TINIEST, UNIT, FloatArray, IntArray, frozen, jsonable, scalar_or_array
from netdp.numerics.checks import as_floats, check_delta, check_epsilon, check_times, first
from netdp.privacy.curve import Curve
from netdp.privacy.losses import LARGEST, Composition, LossGrid, default_step

_MOST_CELLS = 1 << 22

_READ = 1e-11  # how far above the least ε that keeps δ an ε that is read off a formula may lie, relatively

Formula: TypeAlias = Callable[[IntArray, FloatArray], FloatArray]
"""Upper bounds on δ at any ε, elementwise: (the number of the curve among all of the flattened shape, ε) → δ, falling with ε."""


class ProfileCurve(Curve):
    """Upper bounds `deltas[..., i]` on δ at `epsilons[i]`, in both directions; `epsilons` starts at 0.

    **Between two points** δ is read off the chord in e^ε. Proof that it lies above the true profile: δ as a
    function of γ = e^ε is sup over events S of P(S) − γQ(S), a supremum of affine functions of γ, hence
    convex; a convex function that is at most δ_i at γ_i and δ_{i+1} at γ_{i+1} is at most their chord in
    between. **Beyond the last point** δ is constant: each P(S) − γQ(S) falls with γ, so the profile never
    grows. No smaller value is proved there, so `epsilon(delta)` is inf for δ below the last one.

    **Where a formula is given**, δ and ε are read off it, and the points only say where to look: so two curves are in the same
    order as their formulas, whatever their points are (docs/proofs/privacy.md#tables). Chords are for all else: for composition,
    and for a curve that was written down.

    Randomized response with ε₀ = 1 is (0, tanh(1/2)) and (1, 0):

    >>> import numpy as np
    >>> curve = ProfileCurve([0.0, 1.0], [np.tanh(0.5), 0.0])
    >>> float(curve.epsilon(0.0))
    1.0
    >>> print(f"{curve.delta(0.5):.6f} {curve.self_compose(10).epsilon(1e-2):.4f}")
    0.287649 9.7395

    Reference: Balle, Barthe, Gaboardi, *Privacy Profiles and Amplification by Subsampling* (2020).
    """

    __slots__ = ("_deltas", "_epsilons", "_formula")
    kind: ClassVar[str] = "profile"
    _epsilons: FloatArray
    _deltas: FloatArray
    _formula: Formula | None

    def __init__(self, epsilons: ArrayLike, deltas: ArrayLike, formula: Formula | None = None) -> None:
        eps = np.atleast_1d(as_floats(epsilons, "epsilons"))
        values = np.atleast_1d(as_floats(deltas, "deltas"))
        if eps.ndim != 1 or eps.size == 0 or not np.isfinite(eps).all() or (np.diff(eps) <= 0).any():
            raise InvalidValue("epsilons must be a strictly increasing list of finite numbers")
        if eps[0] != 0:
            raise InvalidValue(f"epsilons must start at 0, got {eps[0]}; δ = 1 at ε = 0 is always true")
        if values.shape[-1] != eps.size:
            raise InvalidValue(f"deltas must end in an axis of {eps.size}, one per epsilon, got shape {values.shape}")
        bad = (values < 0) | (values > 1)
        if bad.any():
            raise InvalidValue(f"deltas must lie in [0, 1], got {first(values, bad)}")
        missing = np.isnan(values)
        if (missing.any(axis=-1) != missing.all(axis=-1)).any():
            raise InvalidValue("a curve of deltas is nan everywhere (no target) or nowhere")
        if (np.diff(values, axis=-1) > 0).any():
            raise InvalidValue(
                "deltas must not increase with epsilon; a bound holds from its ε on: take running minima"
            )
        self._set(_epsilons=frozen(eps), _deltas=frozen(values), _formula=formula)

    @classmethod
    def of(cls, curve: Curve, epsilons: ArrayLike) -> Self:
        """The profile of another curve at these ε.

        >>> from netdp.privacy import GaussianCurve
        >>> ProfileCurve.of(GaussianCurve([0.5, 1.0]), [0.0, 1.0, 2.0]).deltas.shape
        (2, 3)
        """
        eps = np.atleast_1d(check_epsilon(epsilons))
        columns = [np.asarray(curve.delta(e)) for e in eps]
        return cls(eps, np.minimum.accumulate(np.stack(columns, axis=-1), axis=-1))

    @property
    def epsilons(self) -> FloatArray:
        """Where the profile is given."""
        return self._epsilons

    @property
    def deltas(self) -> FloatArray:
        """The bounds, the last axis running over `epsilons`."""
        return self._deltas

    @property
    def shape(self) -> tuple[int, ...]:
        return self._deltas.shape[:-1]

    @property
    def formula(self) -> Formula | None:
        """What ε and δ are read off, if not chords."""
        return self._formula

    def entry(self, index: int) -> ProfileCurve:
        """The curve of one entry of a list of curves."""
        formula = None if self._formula is None else OneOf(self._formula, index % self.shape[0])
        return ProfileCurve(self._epsilons, self._deltas[index], formula)

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        asked = check_epsilon(epsilon)
        shape = np.broadcast_shapes(self.shape, asked.shape)
        asked = np.broadcast_to(asked, shape)
        last = self._epsilons.size - 1
        left = np.searchsorted(self._epsilons, asked, side="right") - 1
        right = np.minimum(left + 1, last)
        table = np.broadcast_to(self._deltas, (*shape, last + 1))
        high = np.take_along_axis(table, left[..., None], -1)[..., 0]
        low = np.take_along_axis(table, right[..., None], -1)[..., 0]
        knot = (left == last) | (asked == self._epsilons[left])
        if self._formula is not None:
            out = high.copy()
            ask = ~knot & ~np.isnan(high)
            out[ask] = np.minimum(self._formula(self._numbers(shape)[ask], asked[ask]), high[ask])
            return scalar_or_array(out)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # beyond the last knot, not used
            before, after = asked - self._epsilons[left], self._epsilons[right] - asked
            width = np.expm1(self._epsilons[left] - self._epsilons[right])
            # the shares of the chord's two ends, without forming e^ε or subtracting near-equal numbers
            share_high = np.expm1(-after) / width
            share_low = np.exp(-after) * np.expm1(-before) / width
            chord = np.minimum((share_high * high + share_low * low) * (1 + 16 * UNIT), high)
        return scalar_or_array(np.where(knot, high, chord))

    def epsilon(self, delta: ArrayLike) -> FloatArray:
        asked = check_delta(delta)
        shape = np.broadcast_shapes(self.shape, asked.shape)
        asked = np.broadcast_to(asked, shape)
        table = np.broadcast_to(self._deltas, (*shape, self._epsilons.size))
        right = np.count_nonzero(table > asked[..., None], axis=-1)
        never, free = right == self._epsilons.size, right == 0
        right = np.clip(right, 1, max(1, self._epsilons.size - 1))
        left = right - 1
        right = np.minimum(right, self._epsilons.size - 1)
        high = np.take_along_axis(table, left[..., None], -1)[..., 0]
        low = np.take_along_axis(table, right[..., None], -1)[..., 0]
        start, end = self._epsilons[left], self._epsilons[right]
        if self._formula is not None:
            out = np.where(never, np.inf, np.where(free, 0.0, end))
            out[np.isnan(table[..., 0])] = np.nan
            ask = np.isfinite(out) & ~free & (left < right)
            if ask.any():
                numbers = self._numbers(shape)[ask]
                out[ask] = _least(self._formula, numbers, asked[ask], start[ask], end[ask], high[ask], low[ask])
            return scalar_or_array(out)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = (high - asked) / (high - low)
            gap = end - start
            near = start + np.log1p(share * np.expm1(np.minimum(gap, 1.0)))
            far = end + np.log(share + (1 - share) * np.exp(-gap))
            found = np.minimum(np.where(gap <= 1, near, far) * (1 + 16 * UNIT), end)
        out = np.where(never, np.inf, np.where(free, 0.0, found))
        return scalar_or_array(np.where(np.isnan(table[..., 0]), np.nan, out))

    def _numbers(self, shape: tuple[int, ...]) -> IntArray:
        """Which curve every entry of an answer of this shape belongs to."""
        return np.broadcast_to(np.arange(math.prod(self.shape), dtype=np.int64).reshape(self.shape), shape)

    def compose(self, other: Curve, discretization: float | None = None) -> ProfileCurve:
        """The profile of seeing both views, by their dominating loss distributions: always an upper bound.

        `discretization` is the spacing of the grid of losses (and of the ε of the result). By default it is
        one on which a few given points fall exactly, so that randomized response composes without loss, and
        otherwise 1e-4, bounded to between 1024 and 32768 cells. Proof and error bounds:
        netdp.privacy.losses.
        """
        if not isinstance(other, ProfileCurve):
            raise self._unlike(other)
        step = _check_step(discretization, self._epsilons, other._epsilons)
        shape = np.broadcast_shapes(self.shape, other.shape)
        mine = np.broadcast_to(self._deltas, (*shape, self._epsilons.size)).reshape(-1, self._epsilons.size)
        others = np.broadcast_to(other._deltas, (*shape, other._epsilons.size)).reshape(-1, other._epsilons.size)
        grids: list[Composition | None] = []
        for a, b in zip(mine, others, strict=True):
            if np.isnan(a[0]) or np.isnan(b[0]):
                grids.append(None)
                continue
            one = LossGrid.from_profile(self._epsilons, a, step)
            two = LossGrid.from_profile(other._epsilons, b, step)
            grids.append(Composition((one, 1), (two, 1)))
        end = float(self._epsilons[-1] + other._epsilons[-1])
        last = -np.expm1(_log_keep(mine[:, -1]) + _log_keep(others[:, -1]))
        return _collect(grids, step, shape, end, last)

    def self_compose(self, times: int, discretization: float | None = None) -> Self:
        """The profile of this many views, on a grid as in `compose`."""
        k = check_times(times)
        if k == 1:
            return self
        step = _check_step(discretization, self._epsilons)
        rows = self._deltas.reshape(-1, self._epsilons.size)
        grids = [
            None if np.isnan(row[0]) else Composition((LossGrid.from_profile(self._epsilons, row, step), k))
            for row in rows
        ]
        last = -np.expm1(k * _log_keep(rows[:, -1]))
        result = _collect(grids, step, self.shape, k * float(self._epsilons[-1]), last)
        return type(self)(result._epsilons, result._deltas)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "epsilons": jsonable(self._epsilons), "deltas": jsonable(self._deltas)}


@dataclass(frozen=True)
class PerCurve:
    """The formula of curves each of which has its own δ(ε)."""

    functions: tuple[Callable[[FloatArray], FloatArray], ...]

    def __call__(self, numbers: IntArray, epsilon: FloatArray) -> FloatArray:
        out = np.empty(len(epsilon))
        for number in np.unique(numbers).tolist():
            mine = numbers == number
            out[mine] = self.functions[number](epsilon[mine])
        return out


@dataclass(frozen=True)
class OneOf:
    """The formula of one of several curves."""

    formula: Formula
    number: int

    def __call__(self, numbers: IntArray, epsilon: FloatArray) -> FloatArray:
        return self.formula(np.full(len(epsilon), self.number, dtype=np.int64), epsilon)


class ReadCurve(ProfileCurve):
    """A curve that is read off other curves at every ε and δ. A table is made of it once something needs one.

    A subclass says `shape`, `delta` and `epsilon`, and at which ε its table is stated.
    """

    __slots__ = ("_held",)
    _held: ProfileCurve | None

    @abstractmethod
    def _points(self) -> FloatArray:
        """The ε of the table."""

    @property
    def table(self) -> ProfileCurve:
        """The curve at finitely many points, as files keep it."""
        if self._held is None:
            points = self._points()
            deltas = np.stack([np.asarray(self.delta(point)) for point in points], axis=-1)
            self._set(_held=ProfileCurve(points, np.minimum.accumulate(deltas, axis=-1)))
        assert self._held is not None
        return self._held

    @property
    def formula(self) -> Formula | None:
        return None

    @property
    def epsilons(self) -> FloatArray:
        return self.table.epsilons

    @property
    def deltas(self) -> FloatArray:
        return self.table.deltas

    @property
    def _epsilons(self) -> FloatArray:  # type: ignore[override]
        return self.table.epsilons

    @property
    def _deltas(self) -> FloatArray:  # type: ignore[override]
        return self.table.deltas

    def self_compose(self, times: int, discretization: float | None = None) -> Any:
        """The profile of this many views, from the table."""
        return self.table.self_compose(times, discretization)


def _least(
    formula: Formula,
    numbers: IntArray,
    asked: FloatArray,
    low: FloatArray,
    high: FloatArray,
    at_low: FloatArray,
    at_high: FloatArray,
) -> FloatArray:
    """The least ε at which the formula is at most δ, within `_READ` above: it is more at `low` and at most that at `high`.

    Regula falsi in log δ, the height of an end that stays halved (Dowell, Jarratt 1971), and halving where that does not close in.
    A step is held half a tolerance away from both ends, so the far end follows once the near one has arrived.
    """
    log_asked = np.log(np.maximum(asked, TINIEST))

    def height(delta: FloatArray, which: IntArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.log(delta), -800.0) - log_asked[which])

    going = np.arange(len(low))
    ends, heights = np.stack([low, high]), np.stack([height(at_low, going), height(at_high, going)])
    stayed, before = np.full(len(low), -1), np.full(len(low), np.inf)
    for turn in range(_TURNS):
        width = ends[1] - ends[0]
        going = np.flatnonzero(width > _READ * ends[1])
        if not going.size:
            break
        a, b = ends[:, going]
        up, down = heights[:, going]
        wide, margin = width[going], 0.4 * _READ * b
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.nan_to_num(up / (up - down), nan=0.5)
        if turn % 4 == 3:
            share = np.where(wide > before[going] / 2, 0.5, share)
            before = width
        place = np.clip(a + share * wide, a + np.minimum(margin, wide / 2), b - np.minimum(margin, wide / 2))
        found = np.asarray(formula(numbers[going], place))
        moved = (found <= asked[going]).astype(np.int64)
        again = stayed[going] == 1 - moved
        heights[1 - moved[again], going[again]] /= 2
        ends[moved, going], heights[moved, going] = place, height(found, going)
        stayed[going] = 1 - moved
    return np.asarray(ends[1])


_TURNS = 300  # halving alone takes 60


def composed(parts: Sequence[tuple[ProfileCurve, int]], discretization: float | None = None) -> ProfileCurve:
    """The profile of seeing views with these profiles, each as many times as stated, all on one grid of losses.

    >>> one, two = ProfileCurve([0.0, 1.0], [0.5, 0.0]), ProfileCurve([0.0, 0.5], [0.25, 0.0])
    >>> together = composed([(one, 2), (two, 1)], discretization=0.5)
    >>> round(float(together.epsilon(0.0)), 9)
    2.5
    """
    if not parts or any(curve.shape for curve, _ in parts):
        raise InvalidValue("composed takes at least one profile, each of a single target")
    step = _check_step(discretization, *(curve.epsilons for curve, _ in parts))
    times = [check_times(count) for _, count in parts]
    grids = [
        (LossGrid.from_profile(curve.epsilons, curve.deltas, step), count)
        for (curve, _), count in zip(parts, times, strict=True)
    ]
    end = sum(count * float(curve.epsilons[-1]) for (curve, _), count in zip(parts, times, strict=True))
    keep = sum(count * _log_keep(curve.deltas[-1:]) for (curve, _), count in zip(parts, times, strict=True))
    return _collect([Composition(*grids)], step, (), end, -np.expm1(np.asarray(keep)))


def _check_step(given: float | None, *profiles: FloatArray) -> float:
    if given is None:
        return default_step(*profiles)
    step = float(as_floats(given, "discretization"))
    if not (math.isfinite(step) and step > 0):
        raise InvalidValue(f"discretization must be a positive number such as 1e-4, got {given!r}")
    reach = min(max(float(eps[-1]) for eps in profiles), LARGEST)
    if reach / step > _MOST_CELLS:
        raise InvalidValue(
            f"discretization {given!r} makes a grid of {reach / step:.1e} cells up to ε = {reach:g}; "
            f"take at least {reach / _MOST_CELLS:.1e}"
        )
    return step


def _log_keep(delta: FloatArray) -> FloatArray:
    """log(1 − δ)."""
    with np.errstate(divide="ignore"):
        return np.log1p(-delta)


def _collect(
    grids: list[Composition | None], step: float, shape: tuple[int, ...], end: float, last: FloatArray
) -> ProfileCurve:
    """One profile per distribution, at common ε; the last point is basic composition: Σε, 1 − Π(1 − δ)."""
    # a loss is a multiple of the step up to a few roundings: stating δ at a slightly larger ε covers them
    stretch = 1 + 1e-12
    end *= stretch
    count = max([grid.top + 1 for grid in grids if grid is not None], default=1)
    count = min(count, int(LARGEST / step) + 1)
    eps = np.arange(count) * step * stretch
    count = max(1, int(np.searchsorted(eps, end)))  # ε < end only
    table = np.full((len(grids), count), np.nan)
    for row, grid in zip(table, grids, strict=True):
        if grid is not None:
            row[:] = grid.deltas(count)
    # beyond the last δ worth telling from the end's, only the end itself is kept
    floor = np.maximum(1e-30, last * (1 + 1e-9))
    telling = np.flatnonzero((table > floor[:, None]).any(axis=0))
    count = min(count, int(telling[-1]) + 2) if telling.size else 1
    eps, table = eps[:count], table[:, :count]
    if end > eps[-1]:
        eps = np.append(eps, end)
        table = np.column_stack([table, np.minimum(last * (1 + 16 * UNIT), 1.0)])
    # only rounding can break the order of the values; raising the earlier ones mends it on the safe side
    table = np.maximum.accumulate(table[:, ::-1], axis=1)[:, ::-1]
    return ProfileCurve(eps, table.reshape(*shape, eps.size))
