"""A privacy statement with all it depends on: about whom, against whom, how sure, assuming what, and for which neighbouring inputs.

Numbers for different relations of neighbours cannot be compared or composed as they stand, so every guarantee in netdp carries
its relation (Dwork, Roth, *The Algorithmic Foundations of Differential Privacy*, 2014, section 2.3; zero-out: Kairouz et al.,
*Practical and Private (Deep) Learning without Sampling or Shuffling*, 2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from netdp.display import shown
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray, frozen, jsonable, sealed
from netdp.numerics.checks import check_losses
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.observers import Found, Observers
from netdp.privacy.wording import readable


class Adjacency(StrEnum):
    """The neighbouring relation of a guarantee.

    >>> Adjacency("replace") is Adjacency.REPLACE
    True
    >>> print(Adjacency.ZERO_OUT.meaning)
    one user's whole data is replaced by a null contribution; who takes part is known
    """

    REPLACE = "replace"
    """The default: user level. One user's *whole* data (every contribution it ever makes) is replaced by any
    other admissible data; the set of users is the same and public. A contribution moves by at most Δ, the
    diameter."""

    ZERO_OUT = "zero-out"
    """One user's whole data is replaced by a null contribution (zero). The set of users stays public. A
    contribution moves by at most its norm bound, half the diameter of the ball: μ is up to twice as small as
    under REPLACE."""

    ADD_REMOVE = "add-remove"
    """One user with all its data joins or leaves. Whether the user takes part is itself protected, so the
    number of users must not be read off the view. Where single records are protected: one record joins or leaves
    a party's data, so the number of records must not be read off the view; the parties are public."""

    @property
    def meaning(self) -> str:
        """One plain clause for reports."""
        return _ADJACENCY_MEANING[self]

    @property
    def meaning_for_records(self) -> str:
        """The same where single records are protected: the clause for reports."""
        return _OF_RECORDS[self]


_ADJACENCY_MEANING = {
    Adjacency.REPLACE: "one user's whole data is replaced by any other data (user level)",
    Adjacency.ZERO_OUT: "one user's whole data is replaced by a null contribution; who takes part is known",
    Adjacency.ADD_REMOVE: "one user with all its data joins or leaves",
}

_OF_RECORDS = {
    Adjacency.REPLACE: "one record of one party is replaced by any other record",
    Adjacency.ZERO_OUT: "one record of one party is replaced by a null contribution",
    Adjacency.ADD_REMOVE: "one record of one party is added or removed; which parties take part is public",
}

E = TypeVar("E", bound=Enum)


class Unit(StrEnum):
    """What is protected."""

    PARTY = "party"
    """All data of one party together."""

    RECORD = "record"
    """One record of a party; who takes part is public."""


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
    def label(self) -> str:
        """How a number with this claim is called beside others: certified is only what bounds the loss.

        >>> Claim.UPPER.label, Claim.ESTIMATE.label
        ('certified (upper)', 'estimate (no guarantee)')
        """
        return f"certified ({self.value})" if self.is_certified else f"{self.value} (no guarantee)"

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
    """What `observers` can learn about every other party.

    curve        one privacy curve per party: entry u is about party u; or per pair: entry [u, v] is what v learns about u
    observers    who sees, colluding: parties and roles such as "curator"; or each party alone, one column per observer
    adjacency    which inputs are neighbours
    unit         what is protected: all data of a party, or one record of it
    claim        how much the numbers may be trusted
    assumptions  what must hold for them to be true
    references   where the method is proved or printed
    errata       known mistakes in a published formula
    factor       multiples of the local-DP loss, shaped like the curve, nan at the observers
    slack        numerical error already added on the safe side, as a share of the local-DP loss
    names        what the parties are called, if they have names
    found        where any so many parties may look: the worst of their coalitions that was found, beside the bound for all
    network      the graph whose nodes the parties are, for pictures and tables; no part of the statement, not written down

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
    privacy loss of 2 parties
      worst: epsilon = 4.89 at delta = 1e-06
      factor of the local-DP loss: worst 1.00, mean 0.625
      against: party 0
      adjacency: replace, one user's whole data is replaced by any other data (user level)
      claim: exact: the true loss, attained in the worst case
    """

    curve: Curve
    observers: Observers = field(default_factory=Observers)
    adjacency: Adjacency = Adjacency.REPLACE
    claim: Claim = Claim.UPPER
    assumptions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    errata: tuple[str, ...] = ()
    factor: FloatArray | None = None
    slack: float = 0.0
    unit: Unit = Unit.PARTY
    names: tuple[str, ...] | None = None
    found: Found | None = None
    network: Graph | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.curve, Curve):
            raise InvalidValue(f"curve must be a privacy curve such as GaussianCurve(mu), got {self.curve!r}")
        fixed: dict[str, object] = {
            "observers": Observers.of(self.observers),
            "unit": _member(Unit, self.unit),
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

    def __getstate__(self) -> dict[str, object]:
        # workers send many losses back: the network, which they do not need, stays behind
        return {name: value for name, value in self.__dict__.items() if name != "network"}

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

    def describe(self, delta: float | None = 1e-6) -> str:
        """A few plain lines: the worst ε at δ, against whom, how sure, why. Without δ, no ε."""
        # δ at ε = 0 is nan exactly where there is no target
        count = int(np.count_nonzero(~np.isnan(self.delta(0.0))))
        noun = ("pair", "pairs") if len(self.curve.shape) > 1 else ("party", "parties")
        about = f"{count:,} {noun[count != 1]}"
        lines = [f"privacy loss of {about}"]
        if delta is not None:
            lines.append(f"  worst: epsilon = {readable(self.worst_epsilon(delta))} at delta = {delta:g}")
        if self.factor is not None:
            lines.append(
                f"  factor of the local-DP loss: worst {readable(self.worst)}, mean {readable(self.mean_factor)}"
            )
        lines.append(f"  against: {self.observers.words}")
        if self.found is not None:
            lines.append(f"  found: {self.found.sentence(delta)}")
        meaning = self.adjacency.meaning_for_records if self.unit is Unit.RECORD else self.adjacency.meaning
        lines.append(f"  adjacency: {self.adjacency.value}, {meaning}")
        lines.append(f"  claim: {self.claim.meaning}")
        if self.slack:
            lines.append(f"  numerical error already added: {self.slack:.1e} of the local-DP loss")
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
            "unit": self.unit.value,
            "names": None if self.names is None else list(self.names),
            "observers": self.observers.to_dict(),
            "assumptions": list(self.assumptions),
            "references": list(self.references),
            "errata": list(self.errata),
            "factor": jsonable(self.factor),
            "slack": self.slack,
            "curve": self.curve.to_dict(),
        }
        if self.found is not None:
            out["found"] = self.found.to_dict(delta)
        if delta is not None:
            out["delta"] = delta
            out["epsilon"] = jsonable(self.epsilon(delta))
        return out

    def plot(self, graph: Graph | None = None, delta: float = 1e-6, kind: str | None = None) -> Any:
        """A picture, a matplotlib figure: the network coloured by the loss, or all pairs, or the losses in order.

        graph   the network that the parties are nodes of, where the loss does not know it itself
        kind    "network", "pairs", "order" or "curve" (ε against δ, of the worst placed party); by default what there is to see
        """
        return shown("Guarantee.plot")(self, graph, delta, kind)

    def to_frame(self, delta: float = 1e-6) -> Any:
        """A pandas table: a row per party (or pair) with ε at δ, its factor of the local-DP loss, its distance."""
        return shown("Guarantee.to_frame")(self, delta)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return str(shown("Guarantee.html")(self))

    def _need_factor(self, name: str) -> FloatArray:
        if self.factor is None:
            raise Unsupported(
                f"{name}: this guarantee states no multiples of the local-DP loss; use worst_epsilon(delta)"
            )
        return self.factor

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return f"Guarantee({self.claim.value}, {self.curve!r}, against {self.observers.words})"


def _over_targets(values: FloatArray, reduce: Any) -> float:
    """Reduce over the entries that have a target."""
    counted = values[~np.isnan(values)]
    return float(reduce(counted)) if counted.size else math.nan
