"""The same few curves for many targets, without copies."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray, jsonable, scalar_or_array
from netdp.numerics.checks import check_delta, check_epsilon
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve

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
