"""A privacy statement with all it depends on: about whom, against whom, how sure, assuming what."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netdp.errors import InvalidValue, Unsupported
from netdp.privacy._numeric import FloatArray, check_losses, frozen, jsonable, sealed
from netdp.privacy.adjacency import Adjacency
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.readable import readable

E = TypeVar("E", bound=Enum)


class Claim(StrEnum):
    """How much a number may be trusted. From strongest to weakest:

    >>> [claim.value for claim in Claim]
    ['exact', 'upper', 'estimate', 'published']
    >>> Claim.PUBLISHED.is_certified
    False
    """

    EXACT = "exact"
    """The true loss, attained by some pair of neighbouring inputs and some test, up to stated rounding."""

    UPPER = "upper"
    """A proved bound: the true loss is never larger."""

    ESTIMATE = "estimate"
    """Monte Carlo or another approximation; may err to either side, by about its interval."""

    PUBLISHED = "published"
    """A formula from a paper, mistakes included, as printed unless it says otherwise. Never offered as a guarantee."""

    @property
    def is_certified(self) -> bool:
        """Whether the number bounds the true loss."""
        return self in (Claim.EXACT, Claim.UPPER)

    @property
    def meaning(self) -> str:
        """One plain sentence for reports."""
        return _MEANING[self]


_MEANING = {
    Claim.EXACT: "exact: the true loss, attained in the worst case",
    Claim.UPPER: "upper: a proved bound; the true loss is never larger",
    Claim.ESTIMATE: "estimate: an approximation that may err to either side; it is NOT a bound",
    Claim.PUBLISHED: "published: a formula from a paper, with its mistakes; it is NOT a bound",
}


def weakest(*claims: Claim | str) -> Claim:
    """What may be claimed of a result made from several: no more than of the weakest of them.

    >>> weakest(Claim.EXACT, Claim.UPPER, Claim.EXACT)
    <Claim.UPPER: 'upper'>
    """
    if not claims:
        raise InvalidValue("weakest needs at least one claim")
    order = list(Claim)
    return max((_member(Claim, claim) for claim in claims), key=order.index)


def _member(kind: type[E], value: object) -> E:
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(repr(member.value) for member in kind)
        raise InvalidValue(f"{value!r} is no {kind.__name__.lower()}; choose one of {names}") from None


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What `observers` can learn about each of `targets`.

    curve        one privacy curve per target, or per pair: entry [u, v] is what v learns about u
    targets      the parties it is about, or None when entry u simply is party u
    observers    the parties who see, colluding; "each": one column per single observer; another word, such as
                 "curator", for a role; None when it does not matter
    adjacency    which inputs are neighbours
    claim        how much the numbers may be trusted
    assumptions  what must hold for them to be true
    references   where the method is proved or printed
    errata       known mistakes in a published formula
    factor       multiples of the local-DP loss, shaped like the curve, nan at the observers
    slack        relative numerical error already added on the safe side

    nan marks entries without a target (the observers themselves). It passes through `epsilon` and `delta` and
    is never counted in worst or mean; +inf, a loss without bound, is counted.

    >>> loss = Guarantee(
    ...     GaussianCurve([np.nan, 1.0, 0.5]), observers=(0,), claim=Claim.EXACT, factor=[np.nan, 1.0, 0.25]
    ... )
    >>> loss.worst, loss.mean_factor, loss.is_certified
    (1.0, 0.625, True)
    >>> print(loss.epsilon(1e-6).round(3))
    [  nan 4.887 2.254]
    >>> print(loss.describe(delta=1e-6))
    privacy loss of 2 parties, as a gaussian curve
      worst: epsilon = 4.89 at delta = 1e-06
      factor of the local-DP loss: worst 1.00, mean 0.625
      against: party 0
      adjacency: replace, one user's whole data is replaced by any other data (user level)
      claim: exact: the true loss, attained in the worst case
    """

    curve: Curve
    targets: NDArray[np.int64] | None = None
    observers: tuple[int, ...] | str | None = None
    adjacency: Adjacency = Adjacency.REPLACE
    claim: Claim = Claim.UPPER
    assumptions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    errata: tuple[str, ...] = ()
    factor: FloatArray | None = None
    slack: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.curve, Curve):
            raise InvalidValue(f"curve must be a privacy curve such as GaussianCurve(mu), got {self.curve!r}")
        fixed: dict[str, object] = {
            "targets": None if self.targets is None else _parties(self.targets, "targets"),
            "observers": _observers(self.observers),
            "adjacency": _member(Adjacency, self.adjacency),
            "claim": _member(Claim, self.claim),
        }
        for name in ("assumptions", "references", "errata"):
            lines = getattr(self, name)
            if isinstance(lines, str):
                raise InvalidValue(f"{name} must be a tuple of sentences, got the single string {lines!r}")
            fixed[name] = tuple(str(line) for line in lines)
        if self.factor is not None:
            factor = check_losses(self.factor, "factor")
            if factor.shape != self.curve.shape:
                raise InvalidValue(
                    f"factor has shape {factor.shape} and the curve {self.curve.shape}; they must be the same"
                )
            fixed["factor"] = frozen(factor)
        if not (isinstance(self.slack, int | float) and math.isfinite(self.slack) and self.slack >= 0):
            raise InvalidValue(f"slack must be a finite number ≥ 0, got {self.slack!r}")
        for name, value in fixed.items():
            object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, object]) -> None:
        # pickling (parallel workers) forgets that arrays are read-only
        for name, value in state.items():
            object.__setattr__(self, name, sealed(value))

    @property
    def mu(self) -> FloatArray:
        """The Gaussian-DP μ of every entry, where the view is a Gaussian shift."""
        if isinstance(self.curve, GaussianCurve):
            return self.curve.mu
        raise Unsupported(
            f"this guarantee is a {self.curve.kind} curve, not a Gaussian shift, so it has no mu; "
            "use epsilon(delta) or delta(epsilon)"
        )

    def epsilon(self, delta: ArrayLike) -> FloatArray:
        """ε at δ, one per entry; nan at the observers."""
        return self.curve.epsilon(delta)

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        """δ at ε, one per entry; nan at the observers."""
        return self.curve.delta(epsilon)

    def rdp(self, alpha: ArrayLike) -> FloatArray:
        """The Rényi divergence of order α, one per entry, where the curve knows it."""
        return self.curve.rdp(alpha)

    @property
    def worst(self) -> float:
        """The largest factor over all targets; nan if there is no target."""
        return _over_targets(self._need_factor("worst"), np.max)

    @property
    def mean_factor(self) -> float:
        """The mean factor over all targets; nan if there is no target."""
        return _over_targets(self._need_factor("mean_factor"), np.mean)

    def worst_epsilon(self, delta: float) -> float:
        """The largest ε over all targets; nan if there is no target."""
        return _over_targets(np.asarray(self.epsilon(delta)), np.max)

    @property
    def is_certified(self) -> bool:
        """Whether the true loss is proved to be no larger (claim exact or upper)."""
        return self.claim.is_certified

    def require_certified(self) -> Guarantee:
        """This guarantee, or a refusal if its number is not a bound."""
        if not self.is_certified:
            raise Unsupported(f"claim {self.claim.value!r}: this number is not a guarantee; ask for method='certified'")
        return self

    def describe(self, delta: float | None = None) -> str:
        """A few plain lines: what, against whom, how sure, why. With δ, also the worst ε."""
        if self.curve.shape:
            # δ at ε = 0 is nan exactly where there is no target
            count = int(np.count_nonzero(~np.isnan(self.delta(0.0))))
            noun = ("pair", "pairs") if len(self.curve.shape) > 1 else ("party", "parties")
            about = f"{count} {noun[count != 1]}"
        else:
            about = "one party"
            if self.targets is not None:
                about = _name_parties(self.targets.tolist())
        lines = [f"privacy loss of {about}, as a {self.curve.kind} curve"]
        if delta is not None:
            lines.append(f"  worst: epsilon = {readable(self.worst_epsilon(delta))} at delta = {delta:g}")
        if self.factor is not None:
            lines.append(
                f"  factor of the local-DP loss: worst {readable(self.worst)}, mean {readable(self.mean_factor)}"
            )
        lines.append(f"  against: {self._against()}")
        lines.append(f"  adjacency: {self.adjacency.value}, {self.adjacency.meaning}")
        lines.append(f"  claim: {self.claim.meaning}")
        if self.slack:
            lines.append(f"  numerical error already added: {self.slack:.1e} (relative)")
        for title, items in (
            ("assumes", self.assumptions),
            ("reference", self.references),
            ("erratum", self.errata),
        ):
            lines.extend(f"  {title}: {item}" for item in items)
        return "\n".join(lines)

    def to_dict(self, delta: float | None = None) -> dict[str, Any]:
        """Plain values for JSON: nan becomes None, inf becomes "inf". With δ, also every ε at it."""
        out: dict[str, Any] = {
            "claim": self.claim.value,
            "certified": self.is_certified,
            "adjacency": self.adjacency.value,
            "targets": jsonable(self.targets),
            "observers": jsonable(self.observers),
            "assumptions": list(self.assumptions),
            "references": list(self.references),
            "errata": list(self.errata),
            "factor": jsonable(self.factor),
            "slack": self.slack,
            "curve": self.curve.to_dict(),
        }
        if delta is not None:
            out["delta"] = delta
            out["epsilon"] = jsonable(self.epsilon(delta))
        return out

    def _need_factor(self, name: str) -> FloatArray:
        if self.factor is None:
            raise Unsupported(
                f"{name}: this guarantee states no multiples of the local-DP loss; use worst_epsilon(delta)"
            )
        return self.factor

    def _against(self) -> str:
        if self.observers is None:
            return "any observer of the view"
        if self.observers == "each":
            return "each single party, one column per observer"
        if isinstance(self.observers, str):
            return f"the {self.observers}"
        names = _name_parties(self.observers)
        return f"{names} together" if len(self.observers) > 1 else names


def _name_parties(parties: Iterable[int]) -> str:
    members = list(parties)
    if not members:
        return "nobody"
    shown = ", ".join(map(str, members[:8])) + (", …" if len(members) > 8 else "")
    return f"party {shown}" if len(members) == 1 else f"{len(members)} parties ({shown})"


def _parties(value: ArrayLike, name: str) -> NDArray[np.int64]:
    array = np.asarray(value)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1 or (array < 0).any():
        raise InvalidValue(f"{name} must be a list of party numbers 0, 1, …, got {value!r}")
    out = np.array(array, dtype=np.int64)
    out.flags.writeable = False
    return out


def _observers(value: Iterable[int] | str | None) -> tuple[int, ...] | str | None:
    if value is None:
        return None
    if isinstance(value, str):
        if not value:
            raise InvalidValue("observers must not be an empty word; use 'each', a role, or party numbers")
        return value
    try:
        members = list(value)
    except TypeError:
        raise InvalidValue(f"observers must be a list of party numbers or a word, got {value!r}") from None
    return tuple(int(i) for i in _parties(np.array(members), "observers"))


def _over_targets(values: FloatArray, reduce: Any) -> float:
    """Reduce over the entries that have a target."""
    counted = values[~np.isnan(values)]
    return float(reduce(counted)) if counted.size else math.nan
