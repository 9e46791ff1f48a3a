"""What every privacy curve can do, whatever it is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray, sealed


class Curve(ABC):
    """How much privacy is lost, at every level of failure: an upper bound on the privacy profile δ(ε).

    δ(ε) is the largest of P(S) − e^ε Q(S) over events S, *both* for P against Q and for Q against P, the laws
    of what is seen under two neighbouring inputs. A curve object is immutable and holds one curve per entry
    of its `shape`: one per target, or one per pair. nan marks an entry without a target (an observer) and
    passes through every method; +inf is a loss without bound.

    Results are on the safe side: ε and δ are rounded up.

    >>> from netdp.privacy import GaussianCurve, RenyiCurve
    >>> isinstance(GaussianCurve(1.0), Curve) and isinstance(RenyiCurve.linear(0.5), Curve)
    True
    """

    __slots__ = ()
    kind: ClassVar[str]
    """A short word for reports: "gaussian", "renyi" or "profile"."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; make a new one instead of setting {name}")

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setstate__(self, state: tuple[object, dict[str, object]]) -> None:
        # copying and pickling would assign attributes, and forget that arrays are read-only
        self._set(**{name: sealed(value) for name, value in state[1].items()})

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """One curve per entry of an array of this shape; () for a single curve."""

    @abstractmethod
    def delta(self, epsilon: ArrayLike) -> FloatArray:
        """δ(ε), elementwise; ε broadcasts against `shape`."""

    @abstractmethod
    def epsilon(self, delta: ArrayLike) -> FloatArray:
        """The smallest ε ≥ 0 that the curve proves at δ, elementwise; δ broadcasts against `shape`."""

    def rdp(self, alpha: ArrayLike) -> FloatArray:
        """The Rényi divergence of order α > 1, where the curve knows it."""
        raise Unsupported(
            f"a {self.kind} curve states no Rényi divergence (asked at alpha={alpha!r}); use epsilon(delta)"
        )

    @abstractmethod
    def compose(self, other: Curve) -> Curve:
        """The curve of seeing both views, the second chosen with knowledge of the first."""

    @abstractmethod
    def self_compose(self, times: int) -> Self:
        """The curve of seeing this many independent views of the same kind."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain JSON-able values."""

    def _unlike(self, other: object) -> Unsupported:
        name = getattr(other, "kind", type(other).__name__)
        return Unsupported(
            f"cannot compose a {self.kind} curve with {name}; "
            "netdp.privacy.compose mixes gaussian and renyi curves, and ProfileCurve.of(curve, epsilons) "
            "turns any curve into a profile"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape})"
