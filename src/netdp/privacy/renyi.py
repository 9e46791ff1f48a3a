"""Rényi differential privacy: divergences by order, and the (ε, δ) they imply.

A view is (α, r)-RDP if the Rényi divergence of order α between its two laws, in both directions, is at most r
(Mironov, *Rényi Differential Privacy*, CSF 2017). Each order α > 1 proves, for every δ,

    ε ≤ r + log((α − 1)/α) − (log δ + log α)/(α − 1),
    δ ≤ exp((α − 1)(r − ε)) · (1 − 1/α)^α / (α − 1),

and r bounds δ(0) as well. Every order gives a valid bound, so an inexact search for the best order costs accuracy, never soundness.
See docs/proofs/privacy.md#renyi-profile.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from netdp.errors import InvalidValue
from netdp.numerics.arrays import TINIEST, UNIT, FloatArray, frozen, jsonable, round_up, scalar_or_array
from netdp.numerics.checks import as_floats, check_delta, check_epsilon, check_losses, check_times, first
from netdp.numerics.roots import increasing_root
from netdp.privacy.curve import Curve

DEFAULT_ORDERS: FloatArray = frozen(1 + np.geomspace(1e-3, 1e5, 256))
"""Orders from 1.001 to 100001, each α − 1 about 7.5 % above the last: the best costs under 1e-3 of ε."""


def _free_delta(divergence: FloatArray) -> FloatArray:
    """min(√(r/2), √(1 − e^{−r})), rounded up: what already holds at ε = 0."""
    squared = np.minimum(0.5 * divergence, -np.expm1(-divergence))
    return np.minimum(np.sqrt(squared) * (1 + 8 * UNIT), 1.0)


def _order_epsilon(
    excess: FloatArray | float, log_excess: FloatArray | float, r: FloatArray, log_delta: FloatArray
) -> FloatArray:
    """ε from one order α = 1 + excess, plus the rounding error it may have."""
    shrink = np.logaddexp(0, -np.asarray(log_excess))  # log(α/(α − 1))
    log_alpha = np.log1p(excess)
    cost = (-log_delta - log_alpha) / excess
    rounding = 8 * UNIT * (np.abs(r) + shrink + (np.abs(log_delta) + log_alpha) / excess)
    out: FloatArray = r - shrink + cost + rounding
    return out


def order_log_delta(
    excess: FloatArray | float, log_excess: FloatArray | float, r: FloatArray, epsilon: FloatArray
) -> FloatArray:
    """log δ from one order α = 1 + excess, plus the rounding error it may have.

    (1 − 1/α)^α / (α − 1) = (α − 1)^(α − 1)/α^α, whose logarithm is −log α − (α − 1) log(α/(α − 1)).
    """
    shrink = np.logaddexp(0, -np.asarray(log_excess))
    log_alpha = np.log1p(excess)
    with np.errstate(over="ignore"):
        rounding = 8 * UNIT * (log_alpha + excess * (r + epsilon + shrink))
        main = excess * (r - epsilon - shrink) - log_alpha
        return np.where(np.isfinite(rounding), main + rounding, np.inf)


class RenyiCurve(Curve):
    """Rényi divergences at given orders, `values[..., i]` at `orders[i]`; or a line r(α) = αρ, by `linear`.

    >>> curve = RenyiCurve([2.0, 8.0, 32.0], [0.01, 0.04, 0.16])
    >>> print(f"{curve.epsilon(1e-6):.4f}")
    0.4621
    >>> print(f"{RenyiCurve.linear(0.005).epsilon(1e-6):.4f}")
    0.4299
    >>> print(f"{curve.self_compose(4).rdp(8.0):.2f}")
    0.16
    """

    __slots__ = ("_orders", "_rho", "_values")
    kind: ClassVar[str] = "renyi"
    _orders: FloatArray
    _values: FloatArray | None
    _rho: FloatArray | None

    def __init__(self, orders: ArrayLike, values: ArrayLike) -> None:
        alphas = np.atleast_1d(as_floats(orders, "orders"))
        divergences = np.atleast_1d(check_losses(values, "values"))
        if alphas.ndim != 1 or alphas.size == 0 or not np.isfinite(alphas).all() or (alphas <= 1).any():
            raise InvalidValue(f"orders must be a list of finite numbers > 1, got {orders!r}")
        if (np.diff(alphas) <= 0).any():
            raise InvalidValue("orders must increase strictly; sort them, and the values with them")
        if divergences.shape[-1] != alphas.size:
            raise InvalidValue(
                f"values must end in an axis of {alphas.size}, one per order, got shape {divergences.shape}"
            )
        self._set(_orders=frozen(alphas), _values=frozen(divergences), _rho=None)

    @classmethod
    def linear(cls, rho: ArrayLike) -> Self:
        """r(α) = αρ for every α > 1 (ρ-zCDP: Bun, Steinke 2016); the best order is searched for.

        A Gaussian shift of μ has ρ = μ²/2.

        >>> RenyiCurve.linear([0.5, 2.0]).rdp(3.0)
        array([1.5, 6. ])
        """
        curve = cls.__new__(cls)
        curve._set(_orders=DEFAULT_ORDERS, _values=None, _rho=frozen(check_losses(rho, "rho")))
        return curve

    @property
    def rho(self) -> FloatArray | None:
        """The slope of the linear form, or None."""
        return self._rho

    @property
    def orders(self) -> FloatArray:
        """The orders at which the divergence is given; for the linear form, a default list."""
        return self._orders

    @property
    def values(self) -> FloatArray:
        """The divergences, the last axis running over `orders`."""
        if self._values is not None:
            return self._values
        assert self._rho is not None
        return frozen(self._rho[..., None] * self._orders)

    @property
    def shape(self) -> tuple[int, ...]:
        if self._rho is not None:
            return self._rho.shape
        assert self._values is not None
        return self._values.shape[:-1]

    def rdp(self, alpha: ArrayLike) -> FloatArray:
        """A bound on the divergence of order α > 1; α broadcasts against `shape`.

        Between two given orders (α − 1) r(α) is interpolated linearly: it is convex in α (van Erven,
        Harremoës 2014, Corollary 2), so the chord lies above. Below the first order its value serves, since
        divergences grow with their order; above the last nothing is known, and the answer is inf.
        """
        alphas = as_floats(alpha, "alpha")
        bad = ~(alphas > 1)
        if bad.any():
            raise InvalidValue(f"a Rényi order must be > 1, got {first(alphas, bad)}")
        if self._rho is not None:
            with np.errstate(invalid="ignore"):
                line = np.asarray(alphas * self._rho)
            return scalar_or_array(np.where((self._rho == 0) & np.isposinf(alphas), 0.0, line))
        assert self._values is not None
        shape = np.broadcast_shapes(self.shape, alphas.shape)
        alphas = np.broadcast_to(alphas, shape)
        values = np.broadcast_to(self._values, (*shape, self._orders.size))
        right = np.searchsorted(self._orders, alphas)
        beyond = right == self._orders.size
        right = np.minimum(right, self._orders.size - 1)
        left = np.maximum(right - 1, 0)
        low, high = self._orders[left], self._orders[right]
        at_low = np.take_along_axis(values, left[..., None], -1)[..., 0]
        at_high = np.take_along_axis(values, right[..., None], -1)[..., 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = (alphas - low) / (high - low)
            chord = ((1 - weight) * (low - 1) * at_low + weight * (high - 1) * at_high) / (alphas - 1)
        # the chord of upper bounds that grow oddly could pass the value at the next order, which also holds
        between = np.fmin(chord * (1 + 8 * UNIT), at_high)
        out = np.where((alphas == high) | (left == right), at_high, between)
        return scalar_or_array(np.where(np.isnan(values[..., 0]), np.nan, np.where(beyond, np.inf, out)))

    def epsilon(self, delta: ArrayLike) -> FloatArray:
        deltas = check_delta(delta)
        with np.errstate(divide="ignore"):
            log_delta = np.log(deltas)
        if self._rho is not None:
            rho, deltas, log_delta = np.broadcast_arrays(self._rho, deltas, log_delta)
            out = np.where(rho == 0, 0.0, rho + np.inf)  # nan stays nan
            usual = (rho > 0) & np.isfinite(rho) & (deltas > 0) & (deltas < 1)
            out[usual] = _linear_epsilon(rho[usual], log_delta[usual])
            out[deltas >= _free_delta(rho)] = 0.0
            return scalar_or_array(out)
        assert self._values is not None
        out = np.full(np.broadcast_shapes(self.shape, deltas.shape), np.inf)
        for i, excess in enumerate(self._orders - 1):  # a loop over orders keeps (n, n) curves out of (n, n, m) memory
            r = self._values[..., i]
            bound = np.maximum(_order_epsilon(excess, np.log(excess), r, log_delta), 0.0)
            out = np.minimum(out, np.where(deltas >= _free_delta(r), 0.0, bound))
        return scalar_or_array(out)

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        epsilons = check_epsilon(epsilon)
        far = np.isposinf(epsilons)
        finite = np.where(far, 0.0, epsilons)
        if self._rho is not None:
            rho, finite, far = np.broadcast_arrays(self._rho, finite, far)
            log_delta = np.zeros(rho.shape)
            usual = (rho > 0) & np.isfinite(rho)
            log_delta[usual] = _linear_log_delta(rho[usual], finite[usual])
            largest = rho
            free = _free_delta(rho)
        else:
            assert self._values is not None
            log_delta = np.zeros(np.broadcast_shapes(self.shape, finite.shape))
            for i, excess in enumerate(self._orders - 1):
                bound = order_log_delta(excess, np.log(excess), self._values[..., i], finite)
                log_delta = np.minimum(log_delta, bound)
            largest = np.min(self._values, axis=-1)
            free = _free_delta(largest)
        with np.errstate(under="ignore"):
            out = np.clip(np.exp(np.minimum(log_delta, 0.0)) * (1 + 8 * UNIT), TINIEST, 1.0)
        out = np.minimum(out, free)
        # at ε = inf only an unbounded divergence leaves anything
        out = np.where(far, np.where(np.isposinf(largest), 1.0, 0.0), out)
        return scalar_or_array(np.where(np.isnan(largest), np.nan, out))

    def compose(self, other: Curve) -> RenyiCurve:
        """Divergences add (Mironov 2017, Proposition 1). Orders must match; a linear curve has them all."""
        if not isinstance(other, RenyiCurve):
            raise self._unlike(other)
        if self._rho is not None and other._rho is not None:
            return RenyiCurve.linear(_add_up(self._rho, other._rho))
        if self._rho is not None:
            return other.compose(self)
        if other._rho is not None:
            return RenyiCurve(self._orders, _add_up(self.values, other._rho[..., None] * self._orders))
        if not np.array_equal(self._orders, other._orders):
            raise InvalidValue(
                f"Rényi curves at different orders ({self._orders.size} and {other._orders.size}) "
                "do not add up; evaluate one at the orders of the other with rdp(alpha)"
            )
        return RenyiCurve(self._orders, _add_up(self.values, other.values))

    def self_compose(self, times: int) -> Self:
        k = check_times(times)
        if k == 1:
            return self
        if self._rho is not None:
            return self.linear(round_up(k * self._rho))
        return type(self)(self._orders, round_up(k * self.values))

    def to_dict(self) -> dict[str, Any]:
        if self._rho is not None:
            return {"kind": self.kind, "rho": jsonable(self._rho)}
        return {"kind": self.kind, "orders": jsonable(self._orders), "values": jsonable(self._values)}


def _add_up(a: FloatArray, b: FloatArray) -> FloatArray:
    """a + b, rounded up where the sum rounds."""
    total = np.asarray(a + b)
    return np.where((a == 0) | (b == 0), total, round_up(total))


def _linear_epsilon(rho: FloatArray, log_delta: FloatArray) -> FloatArray:
    """Least ε over all α for r = αρ.

    With s = α − 1, dε/dα = [ρs² + log(1 + s) + log δ]/s²: one sign change, at the root of an increasing
    function, convex in log s. Both upper ends below make one term alone reach −log δ; the lower ends make
    each reach half.
    """
    budget = -log_delta
    log_rho = np.log(rho)

    def reach(part: FloatArray) -> FloatArray:
        by_log = np.where(part > 30, part, np.log(np.expm1(np.minimum(part, 30))))
        return np.minimum(0.5 * (np.log(part) - log_rho), by_log)

    def slope(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        quadratic = np.exp(2 * t + log_rho)
        return quadratic + np.logaddexp(0, t) - budget, 2 * quadratic + special.expit(t)

    high = reach(budget)
    t = np.clip(increasing_root(slope, reach(0.5 * budget), high, high), -300, 300)
    s = np.exp(t)
    return np.maximum(_order_epsilon(s, t, (1 + s) * rho, log_delta), 0.0)


def _linear_log_delta(rho: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Least log δ over all α for r = αρ.

    With s = α − 1, d(log δ)/ds = (1 + 2s)ρ − ε − log(1 + 1/s), increasing in s.
    """

    def slope(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        s = np.exp(t)
        return (1 + 2 * s) * rho - epsilon - np.logaddexp(0, -t), 2 * s * rho + special.expit(-t)

    # at s = e^{−3ρ} ≤ 1, (1 + 2s)ρ ≤ 3ρ = log(1/s); at s ≥ max(1, (ε + 1)/2ρ) the first term wins
    low = np.maximum(-3 * rho, -700.0)
    high = np.maximum(0.0, np.minimum(np.log(epsilon + 1) - np.log(2 * rho), 300.0))
    t = increasing_root(slope, low, high, high)
    s = np.exp(t)
    return order_log_delta(s, t, (1 + s) * rho, epsilon)
