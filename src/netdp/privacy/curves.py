"""The three privacy curves, how they compose, and the same few curves for many targets, without copies.

    GaussianCurve   μ                    exact for Gaussian shifts
    RenyiCurve      divergences by order an upper bound for anything with a finite divergence
    ProfileCurve    δ at given ε         an upper bound for anything

`compose` takes like with like, and a Gaussian with a Rényi curve (the Gaussian's divergence is known at every order).
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray, frozen, jsonable, round_up, scalar_or_array
from netdp.numerics.checks import as_floats, check_delta, check_epsilon, check_losses, check_times, first
from netdp.privacy.curve import Curve
from netdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from netdp.privacy.renyi import RenyiCurve


class GaussianCurve(Curve):
    """μ-Gaussian DP: seeing the view is exactly as telling as one sample of N(0, 1) or N(μ, 1).

    (ε, δ) by the exact trade-off, not by way of Rényi divergences; RDP(α) = αμ²/2. Composition is exact:
    μ = √(μ₁² + μ₂²) (Dong, Roth, Su 2022, Corollary 3.3).

    >>> both = GaussianCurve(3.0).compose(GaussianCurve(4.0))
    >>> print(f"{both.mu:.6f} {both.rdp(2.0):.6f}")
    5.000000 25.000000
    >>> one = GaussianCurve(1.0)
    >>> print(f"{one.epsilon(1e-6):.4f}; by way of Rényi only {one.to_renyi().epsilon(1e-6):.4f}")
    4.8866; by way of Rényi only 5.2215
    """

    __slots__ = ("_mu",)
    kind: ClassVar[str] = "gaussian"
    _mu: FloatArray

    def __init__(self, mu: ArrayLike) -> None:
        self._set(_mu=frozen(check_losses(mu, "mu")))

    @property
    def mu(self) -> FloatArray:
        """The separation of the two normals, in standard deviations."""
        return scalar_or_array(self._mu)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._mu.shape

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        return gaussian_delta(self._mu, epsilon)

    def epsilon(self, delta: ArrayLike) -> FloatArray:
        return gaussian_epsilon(self._mu, delta)

    def rdp(self, alpha: ArrayLike) -> FloatArray:
        alphas = as_floats(alpha, "alpha")
        bad = ~(alphas > 1)
        if bad.any():
            raise InvalidValue(f"a Rényi order must be > 1, got {first(alphas, bad)}")
        with np.errstate(invalid="ignore", over="ignore"):
            line = np.asarray(alphas * self._mu * self._mu / 2)
        return scalar_or_array(np.where((self._mu == 0) & np.isposinf(alphas), 0.0, line))

    def to_renyi(self) -> RenyiCurve:
        """The same view by its divergences: still true, but (ε, δ) from it is no longer exact."""
        with np.errstate(over="ignore"):
            return RenyiCurve.linear(round_up(np.asarray(self._mu * self._mu / 2)))

    def compose(self, other: Curve) -> GaussianCurve:
        if not isinstance(other, GaussianCurve):
            raise self._unlike(other)
        mu = np.asarray(np.hypot(self._mu, other._mu))
        # hypot(nan, inf) is inf in C; an entry without a target stays without one
        mu = np.where(np.isnan(self._mu) | np.isnan(other._mu), np.nan, mu)
        return GaussianCurve(np.where((self._mu == 0) | (other._mu == 0), mu, round_up(mu)))

    def self_compose(self, times: int) -> Self:
        k = check_times(times)
        return self if k == 1 else type(self)(round_up(round_up(np.sqrt(k) * self._mu)))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "mu": jsonable(self._mu)}


def compose(*curves: Curve) -> Curve:
    """The curve of seeing every view, each chosen with knowledge of those before; order does not matter.

    Gaussians combine exactly among themselves first; if Rényi curves are there too, the result is a Rényi
    curve.

    >>> type(compose(GaussianCurve(1.0), RenyiCurve.linear(0.1), GaussianCurve(2.0))).__name__
    'RenyiCurve'
    """
    if not curves:
        raise InvalidValue("compose needs at least one curve; no view at all is GaussianCurve(0.0)")
    by_kind: dict[type[Curve], Curve] = {}
    for curve in curves:
        if not isinstance(curve, Curve):
            raise InvalidValue(f"compose takes curves, got {curve!r}; of a Guarantee take its .curve")
        held = by_kind.get(type(curve))
        by_kind[type(curve)] = curve if held is None else held.compose(curve)
    gaussian = by_kind.pop(GaussianCurve, None)
    if gaussian is None or not by_kind:
        (first_curve, *rest) = [*by_kind.values(), *([gaussian] if gaussian is not None else [])]
    else:
        renyi = by_kind.pop(RenyiCurve, None)
        if renyi is None:
            raise gaussian._unlike(next(iter(by_kind.values())))
        assert isinstance(gaussian, GaussianCurve)
        first_curve, rest = renyi.compose(gaussian.to_renyi()), list(by_kind.values())
    if rest:
        raise first_curve._unlike(rest[0])
    return first_curve


NOBODY = -1
"""In `which`: there is no target here (an observer)."""


class SharedCurve(Curve):
    """Entry i has the curve number `which[i]` of `curves`, or none if that is −1.

    A walk treats all users alike: a million of them share one curve of thousands of points.

    >>> from netdp.privacy import ProfileCurve
    >>> one = ProfileCurve([0.0, 1.0], [0.5, 0.0])
    >>> SharedCurve(one, [0, -1, 0]).epsilon(0.0).tolist()
    [1.0, nan, 1.0]
    """

    __slots__ = ("_curves", "_which")
    kind: ClassVar[str] = "shared"
    _curves: Curve
    _which: IntArray

    def __init__(self, curves: Curve, which: ArrayLike) -> None:
        places = np.array(which)
        count = curves.shape[0] if curves.shape else 1
        if places.dtype.kind not in "iu" or places.ndim == 0 or len(curves.shape) > 1:
            raise InvalidValue(f"which must hold a curve number per entry, got {which!r}")
        if places.size and not (places.min() >= NOBODY and places.max() < count):
            raise InvalidValue(f"which names curve {int(places.max())}, there are {count}")
        places = places.astype(np.int64)
        places.flags.writeable = False
        self._set(_curves=curves, _which=places)

    @property
    def curves(self) -> Curve:
        """The curves that are shared."""
        return self._curves

    @property
    def which(self) -> IntArray:
        """The number of the curve of every entry."""
        return self._which

    @property
    def shape(self) -> tuple[int, ...]:
        return self._which.shape

    def _spread(self, ask: Any, asked: FloatArray) -> FloatArray:
        if asked.ndim == 0:
            rows = np.atleast_1d(np.asarray(ask(asked), dtype=np.float64))
            return np.where(self._which < 0, np.nan, rows[np.maximum(self._which, 0)])
        shape = np.broadcast_shapes(asked.shape, self.shape)
        asked, which = np.broadcast_to(asked, shape), np.broadcast_to(self._which, shape)
        out = np.full(shape, np.nan)
        # Every different question is put once: there are few of them, and many entries.
        values, place = np.unique(asked, return_inverse=True)
        table = np.stack([np.atleast_1d(np.asarray(ask(value), dtype=np.float64)) for value in values])
        known = which >= 0
        out[known] = table[place.reshape(shape)[known], which[known]]
        return out

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        return scalar_or_array(self._spread(self._curves.delta, check_epsilon(epsilon)))

    def epsilon(self, delta: ArrayLike) -> FloatArray:
        return scalar_or_array(self._spread(self._curves.epsilon, check_delta(delta)))

    def rdp(self, alpha: ArrayLike) -> FloatArray:
        return scalar_or_array(self._spread(self._curves.rdp, np.asarray(alpha, dtype=np.float64)))

    def compose(self, other: Curve) -> Curve:
        if not isinstance(other, SharedCurve) or not np.array_equal(other._which, self._which):
            raise self._unlike(other)
        return SharedCurve(self._curves.compose(other._curves), self._which)

    def self_compose(self, times: int) -> Self:
        return type(self)(self._curves.self_compose(times), self._which)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "curves": self._curves.to_dict(), "which": jsonable(self._which)}


def everywhere(curve: Curve, shape: tuple[int, ...], nobody: Any = None) -> Curve:
    """One curve for every entry of `shape`, without a target at the index `nobody`."""
    if curve.shape:
        raise InvalidValue(f"only a single curve can be put everywhere, this one has shape {curve.shape}")
    if isinstance(curve, GaussianCurve):
        mu = np.full(shape, float(curve.mu))
        if nobody is not None:
            mu[nobody] = np.nan
        return GaussianCurve(mu)
    which = np.zeros(shape, dtype=np.int64)
    if nobody is not None:
        which[nobody] = NOBODY
    return SharedCurve(curve, which)
