"""Privacy budgets that hold although people choose what comes next after looking at what came before.

    Filter     a limit (ε, δ): it admits losses, whatever their kinds, sizes and number, as long as the limit holds
    Odometer   a number that may be read at any time: an ε for everything so far, at one δ

Composition of what *happened* is neither: whoever goes on or stops depending on the answers breaks it. Here three sums are kept of
all losses, each with its own part of δ, and what is admitted is admitted by one of them: pure ε, squared Gaussian μ, and the Rényi
divergence at one order that is fixed beforehand. Any curve has a place in each sum: what stands out of a Gaussian or a finite
divergence by a small probability s is counted as s of δ. Proofs: docs/proofs/privacy.md#adaptive-composition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy import special

from netdp.errors import InvalidValue, Refused
from netdp.numerics.arrays import UNIT, BoolArray, FloatArray
from netdp.numerics.checks import between, positive, whole
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve, SharedCurve
from netdp.privacy.gaussian import gaussian_delta
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.losses import hull_of
from netdp.privacy.profile import ProfileCurve
from netdp.privacy.renyi import RenyiCurve, order_log_delta
from netdp.privacy.wording import readable

PURE = 2.0**-12
"""The part of δ that the sum of pure losses may use, for losses that are pure but for a little; the others halve the rest."""

SLACK = 2.0**-12
"""The part of a filter's δ that one loss may use to be pure, Gaussian or of a finite divergence."""

LEVELS = 40
"""So many ε of an odometer, each 6 % above the one before, up to a fifth above the one it is made for, have equal parts of δ."""

USUAL = 5.0
"""The ε that an odometer is made for, unless it is told another."""

_RATIO, _ABOVE, _OUTER, _OUTER_RATIO = 1.06, 1.2, 16, 1.25
_FIRST, _FAR = 0.25, 0.1  # parts of an odometer's δ: for the first loss alone, and for all levels further out
_HIGHEST_ORDER = 1e6
# a limit is meant to twelve digits: ten losses of ε = 0.1 are within ε = 1, in spite of binary fractions
_DIGITS = 1e-12
_LIMITS, _TRIED = (1e-6, 1e6), 48
_POINTS = 1025  # of a curve that is given by a formula


class Filter:
    """A limit (ε, δ) for all losses together, chosen adaptively: kinds, sizes, number, and when to stop.

    >>> year = Filter(3.0, 1e-6)
    >>> study = GaussianCurve(0.3)                               # ε = 1.3 at δ = 1e-6
    >>> while year.admits(study):
    ...     year.spend(study)
    >>> year.studies, round(year.spent, 2)
    (4, 3.4)
    >>> round(float(study.self_compose(4).epsilon(1e-6)), 2)    # if all four had been fixed beforehand
    2.76
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        self.epsilon, self.delta = _checked(epsilon, delta)
        self.studies = 0
        """How many losses were spent."""
        self._sums = _Sums(np.array([self.epsilon]), np.array([self.delta]))
        self._odometer = Odometer(self.delta, self.epsilon)
        self._whole = False

    def admits(self, curve: Curve | Guarantee) -> bool:
        """Whether the limit still holds with this loss on top of all that was spent.

        The very first loss is chosen before anything was seen, so it may use the whole limit; if no sum admits it, it is the last.
        """
        loss = _one(curve)
        if self.studies == 0 and float(loss.epsilon(self.delta)) <= self.epsilon:
            return True
        return not self._whole and bool(self._sums.admits(loss)[0])

    def spend(self, curve: Curve | Guarantee) -> None:
        """Count a loss; refuses one that the limit does not admit, and counts nothing then."""
        loss = _one(curve)
        if not self.admits(loss):
            raise Refused(
                f"a loss of ε = {readable(float(loss.epsilon(self.delta)))} does not fit: of ε = {self.epsilon:g} at δ = "
                f"{self.delta:g}, {readable(self.spent)} are spent; take more noise, or raise the limit"
            )
        self._whole = not self._sums.admits(loss)[0]
        self._sums.add(loss)
        self._odometer.spend(loss)
        self.studies += 1

    @property
    def spent(self) -> float:
        """ε of everything so far at this δ, whenever it is read (`Odometer`).

        Near the end it may read more than the limit, which holds all the same: these are two statements, and the second is known
        beforehand, so it has all of δ for itself.
        """
        return self._odometer.epsilon

    def __repr__(self) -> str:
        return f"Filter(epsilon={self.epsilon:g}, delta={self.delta:g}, spent={readable(self.spent)})"


class Odometer:
    """ε of all losses so far at one δ, at any time and whatever was chosen after looking.

    It reads the smallest of some levels whose filters admit everything so far. The levels share δ: most of it lies on LEVELS of
    them around and below `usual`, the ε up to which it will mostly be read, which is fixed before anything is seen; the first loss
    alone has a part of its own.
    """

    def __init__(self, delta: float, usual: float = USUAL) -> None:
        usual, self.delta = _checked(usual, delta)
        inner = (usual or 1.0) * _ABOVE * _RATIO ** -np.arange(LEVELS - 1, -1, -1.0)
        far = _OUTER_RATIO ** np.arange(1.0, _OUTER + 1)
        levels = np.concatenate([(inner[0] / far)[::-1], inner, inner[-1] * far])
        outer = _FAR / 2 * np.arange(1.0, _OUTER + 1) ** -2 * (6 / math.pi**2)
        parts = np.concatenate([outer[::-1], np.full(LEVELS, (1 - _FIRST - _FAR) / LEVELS), outer])
        self._sums = _Sums(levels, self.delta * parts)
        self._losses = 0
        self._alone = 0.0
        self._waiting: list[tuple[Curve, int]] = []  # what the sums do not have yet

    def spend(self, curve: Curve | Guarantee, times: int = 1, *, foreseen: bool = True) -> None:
        """Count a loss, or several that are equal; `foreseen`: its size did not come to be by what happened in it.

        Only a foreseen loss may use the part of δ that belongs to the first one.
        """
        loss = _one(curve)
        self._waiting.append((loss, whole("times", times)))
        if float(loss.delta(0.0)) > 0:
            self._losses += times if foreseen else times + 1
            self._alone = float(loss.epsilon(_FIRST * self.delta)) if self._losses == 1 else math.inf

    @property
    def epsilon(self) -> float:
        """The number; infinite if nothing is proved."""
        if self._losses == 0:
            return 0.0
        if self._losses == 1 and math.isfinite(self._alone):  # no level holds below it: each has a smaller part of δ
            return self._alone
        for loss, times in self._waiting:
            self._sums.add(loss, times)
        self._waiting.clear()
        levels = self._sums.epsilons[self._sums.hold()]
        return min(self._alone, float(levels.min(initial=math.inf)))


class _Sums:
    """Three sums of losses for each of several targets (ε, δ), and for which of them one of the sums is small enough.

    By row: pure ε, μ², Rényi divergence at the target's order; and beside each the slack, the part of δ that was used on the way.
    """

    def __init__(self, epsilons: FloatArray, deltas: FloatArray) -> None:
        self.epsilons = epsilons
        rest = deltas * (1 - PURE) / 2
        self.deltas = np.stack([deltas * PURE, rest, rest])
        self.slacks = self.deltas * SLACK
        with np.errstate(divide="ignore"):
            orders = 1 + 2 * np.log(1 / rest) / epsilons
        self.orders = np.minimum(np.nan_to_num(orders, nan=_HIGHEST_ORDER), _HIGHEST_ORDER)
        self.spent, self.used = np.zeros((3, epsilons.size)), np.zeros((3, epsilons.size))

    def admits(self, loss: Curve) -> BoolArray:
        """For which targets everything so far and this loss fits."""
        spent, used = self._with(loss)
        return self._fits(spent, used)

    def add(self, loss: Curve, times: int = 1) -> None:
        """Count a loss, or several that are equal; nothing is ever taken back."""
        self.spent, self.used = self._with(loss, whole("times", times))

    def hold(self) -> BoolArray:
        """For which targets everything so far fits."""
        return self._fits(self.spent, self.used)

    def _with(self, loss: Curve, times: int = 1) -> tuple[FloatArray, FloatArray]:
        spent, used = costs(loss, self.orders, self.slacks)
        # each sum is rounded up
        return (self.spent + times * spent) * (1 + 4 * UNIT), (self.used + times * used) * (1 + 4 * UNIT)

    def _fits(self, spent: FloatArray, used: FloatArray) -> BoolArray:
        finite = np.where(np.isfinite(spent), spent, 0.0)
        excess = self.orders - 1
        told = np.stack([
            np.where(spent[0] <= self.epsilons * (1 + _DIGITS), 0.0, 1.0),
            np.asarray(gaussian_delta(np.sqrt(finite[1]) * (1 + 4 * UNIT), self.epsilons)),
            np.exp(np.minimum(order_log_delta(excess, np.log(excess), finite[2], self.epsilons), 0.0)) * (1 + 8 * UNIT),
        ])  # fmt: skip
        told = np.where(spent == 0, 0.0, told)
        fits = np.isfinite(spent) & ((told + used) * (1 + 4 * UNIT) <= self.deltas)
        return np.asarray(fits.any(axis=0))


def limit_admits(losses: Iterable[tuple[Curve | Guarantee, int]], epsilon: float, delta: float) -> bool:
    """Whether the filter of a limit admits these losses, each so many times.

    >>> limit_admits([(GaussianCurve(0.25), 5)], 3.0, 1e-6), limit_admits([(GaussianCurve(0.25), 7)], 3.0, 1e-6)
    (True, False)
    """
    limit, share = _checked(epsilon, delta)
    sums = _Sums(np.array([limit]), np.array([share]))
    for loss, times in losses:
        sums.add(_one(loss), times)
    return bool(sums.hold()[0])


def least_limit(losses: Iterable[tuple[Curve | Guarantee, int]], delta: float) -> float:
    """The smallest ε whose filter admits these losses, each so many times, to a tenth of a percent above; infinite if none does.

    A number to be held against a limit that was fixed beforehand; it is not itself a statement about what happened (`Odometer`).

    >>> round(least_limit([(GaussianCurve(0.25), 16)], 1e-6), 2)     # 4.89 if all of them had been fixed beforehand
    5.03
    """
    given = [(_one(loss), times) for loss, times in losses]
    low, high = _LIMITS
    for _ in range(3):  # each turn divides the ratio of the two into _TRIED equal ones
        levels = np.geomspace(low, high, _TRIED + 1)
        sums = _Sums(levels, np.full(levels.size, delta))
        for loss, times in given:
            sums.add(loss, times)
        holding = np.flatnonzero(sums.hold())
        if not holding.size:
            return math.inf
        if not sums.used.any() and not sums.spent.any():
            return 0.0
        low, high = float(levels[max(int(holding[0]) - 1, 0)]), float(levels[holding[0]])
    return high


def costs(loss: Curve, orders: FloatArray, slacks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What one curve adds to the three sums, and the slack that it uses in each, for several targets at once.

    orders   the Rényi order of each target
    slacks   (3, targets) how much of δ each sum may use for this loss
    """
    spent, used = np.zeros(slacks.shape), np.zeros(slacks.shape)
    if float(loss.delta(0.0)) == 0:
        return spent, used
    pure = float(loss.epsilon(0.0))
    spent[0] = pure if math.isfinite(pure) else np.asarray(loss.epsilon(slacks[0]))
    used[0] = 0.0 if math.isfinite(pure) else slacks[0]
    if isinstance(loss, GaussianCurve):
        spent[1], spent[2] = float(loss.mu) ** 2 * (1 + 4 * UNIT), np.asarray(loss.rdp(orders)) * (1 + 4 * UNIT)
        return spent, used
    pair = _Pair(loss, float(np.min(slacks[1:])))
    spent[1], used[1] = pair.mu(slacks[1]) ** 2 * (1 + 4 * UNIT), slacks[1]
    if isinstance(loss, RenyiCurve):
        spent[2] = np.asarray(loss.rdp(orders))
    else:
        spent[2], used[2] = pair.divergence(orders, slacks[2]), slacks[2]
    return spent, used


class _Pair:
    """The pair of laws on a line that dominates a curve, by the probabilities of large losses; P may be off by a slack s.

    Between two points of the curve P(loss ≥ l) and Q(loss ≥ l) are constant: the chord there is P − e^ε·Q.
    """

    def __init__(self, loss: Curve, slack: float) -> None:
        if not isinstance(loss, ProfileCurve):  # beyond the last point the slack pays for the rest
            top = float(loss.epsilon(slack / 2)) if slack > 0 else math.inf
            points = np.linspace(0.0, top, _POINTS) if math.isfinite(top) else [0.0]
            loss = ProfileCurve.of(loss, points)
        self.losses, deltas = hull_of(loss.epsilons, loss.deltas)
        self.variation, self.infinite = float(deltas[0]), float(deltas[-1])
        self.gaps = np.diff(self.losses)
        above = -np.diff(deltas) / np.expm1(self.gaps)
        self.p = np.minimum((deltas[:-1] + above) * (1 + 16 * UNIT), 1.0)
        self.q = above * np.exp(-self.losses[:-1]) * (1 - 16 * UNIT)

    def mu(self, slack: FloatArray) -> FloatArray:
        """The smallest μ of a Gaussian pair whose trade-off is nowhere above this one's plus s: the largest of
        Φ⁻¹(P − s) − Φ⁻¹(Q) and Φ⁻¹(P) − Φ⁻¹(Q + s) over the events {loss ≥ l}."""
        s = slack[:, None]
        p, q = np.append(self.p, self.infinite), np.append(self.q, 0.0)
        with np.errstate(invalid="ignore"):
            less = np.where(p > s, special.ndtri(np.maximum(p - s, 0.0)) - special.ndtri(q), -math.inf)
            more = np.where(p > 0, special.ndtri(p) - special.ndtri(np.minimum(q + s, 1.0)), -math.inf)
        found = np.maximum(np.max(less, axis=1), np.max(more, axis=1))
        found = np.where(np.isnan(found), math.inf, np.maximum(found, 0.0) * (1 + 1e-12) + 1e-13)
        return np.where(slack >= self.variation, 0.0, found)

    def divergence(self, order: FloatArray, slack: FloatArray) -> FloatArray:
        """The Rényi divergence of each order from Q of a law that is s away from P: of P the largest losses are cut off, and
        what is cut off comes back where it raises the moment by at most α·s.

        With φ = e^{(α−1)l}, P_k = P(loss ≥ l_k), Q_k likewise and l_0 = 0, the moment of all is at most
        1 − P_1 + Σ_k (P_k − s)₊(φ_k − φ_{k−1}) + (P_1 − s)₊ − Σ_k Q_k(1/φ_{k−1} − 1/φ_k) + αs.
        """
        s, excess = slack[:, None], (order - 1)[:, None]
        if self.gaps.size == 0:
            return np.where(slack >= self.variation, 0.0, math.inf)
        kept = np.maximum(self.p - s, 0.0)
        grown = excess * self.gaps
        with np.errstate(divide="ignore"):
            # log(φ_k − φ_{k−1}) = (α − 1)l_{k−1} + log(e^{(α−1)(l_k − l_{k−1})} − 1)
            step = excess * self.losses[:-1] + grown + np.log(-np.expm1(-grown))
            above = special.logsumexp(np.log(kept) + step, axis=1)
        below = np.sum(self.q * np.exp(-excess * self.losses[:-1]) * -np.expm1(-grown), axis=1)
        rest = np.maximum(1 - self.p[0] + kept[:, 0] - below, 0.0) + order * slack
        moment = np.logaddexp(above, np.log(rest + 1e-13))
        found = np.maximum(moment * (1 + 1e-12) + 1e-12, 0.0) / (order - 1) * (1 + 4 * UNIT)
        found = np.where(self.infinite > slack, math.inf, found)
        return np.where(slack >= self.variation, 0.0, found)


def _one(curve: Curve | Guarantee) -> Curve:
    """A single curve that lies above all entries of the one that is given."""
    if isinstance(curve, Guarantee):
        return _one(curve.require_certified().curve)
    if not isinstance(curve, Curve):
        raise InvalidValue(f"a budget is spent on curves and guarantees, got {curve!r}; account(protocol, …) gives one")
    if isinstance(curve, SharedCurve):
        return _one(curve.curves)
    if not curve.shape:
        if math.isnan(float(curve.delta(0.0))):
            raise InvalidValue(
                "a budget is spent on losses, and nan is none: an observer's entry of a guarantee, perhaps"
            )
        return curve
    every = tuple(range(len(curve.shape)))
    if isinstance(curve, GaussianCurve):
        return GaussianCurve(float(np.nanmax(curve.mu, initial=0.0)))
    if isinstance(curve, ProfileCurve):
        return ProfileCurve(curve.epsilons, np.nanmax(curve.deltas, axis=every, initial=0.0))
    if isinstance(curve, RenyiCurve):
        if curve.rho is not None:
            return RenyiCurve.linear(float(np.nanmax(curve.rho, initial=0.0)))
        return RenyiCurve(curve.orders, np.nanmax(curve.values, axis=every, initial=0.0))
    raise InvalidValue(f"a budget is not spent on a {curve.kind} curve of several targets; give one target's")


def _checked(epsilon: float, delta: float) -> tuple[float, float]:
    if epsilon != 0:
        positive("epsilon", epsilon)
    return float(epsilon), float(between("delta", delta, 0.0, 1.0))
