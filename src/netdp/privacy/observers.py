"""Who looks: parties that pool what they see, roles such as a curator, or every single party in a column of its own.

A guarantee against *any* f parties is a bound over very many coalitions. Beside it stands the worst coalition that was found
(`Found`): if its own loss is known exactly, or known to be at least some number, then no bound for all of them can lie below that
number, and the two together say how much of the bound is real.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve, SharedCurve
from netdp.privacy.profile import ProfileCurve
from netdp.privacy.renyi import RenyiCurve
from netdp.privacy.wording import readable


@dataclass(frozen=True)
class Observers:
    """Who looks, together.

    parties   their numbers, in increasing order
    roles     who else: "curator", or "everybody" for whoever sees what is published
    names     what the parties are called, if they have names
    each      instead: every party alone, one column each
    any_of    instead of named parties: any so many of them, whoever they are; the worst of all such coalitions counts

    >>> Observers((0, 3)).words, Observers((2,), roles=("curator",)).words, Observers(each=True).words
    ('parties 0, 3 together', 'the curator and party 2 together', 'each party alone, one column per observer')
    >>> Observers(any_of=1).words, Observers(any_of=3).words, Observers(roles=("curator",), any_of=3).words
    ('any single party', 'any 3 parties together', 'the curator and any 3 parties together')
    """

    parties: tuple[int, ...] = ()
    roles: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    each: bool = False
    any_of: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.any_of, bool) or not isinstance(self.any_of, int) or self.any_of < 0:
            raise InvalidValue(f"any_of must be how many parties may collude, a whole number ≥ 0, got {self.any_of!r}")
        if self.any_of and (self.parties or self.each):
            raise InvalidValue(f"any_of={self.any_of} stands for parties that nobody names; leave parties and each out")

    @classmethod
    def of(cls, value: Observers | Iterable[int] | str | None) -> Observers:
        """From party numbers, "each", a role, or None for any observer of the view."""
        if isinstance(value, Observers):
            return value
        if value is None:
            return cls()
        if isinstance(value, str):
            if not value:
                raise InvalidValue("observers must not be an empty word; use 'each', a role, or party numbers")
            return cls(each=True) if value == "each" else cls(roles=(value,))
        try:
            members = np.asarray(list(value))
        except TypeError:
            raise InvalidValue(f"observers must be a list of party numbers or a word, got {value!r}") from None
        if members.size and (members.dtype.kind not in "iu" or members.ndim != 1 or members.min() < 0):
            raise InvalidValue(f"observers must be a list of party numbers 0, 1, …, got {value!r}")
        return cls(tuple(int(member) for member in members))

    @property
    def words(self) -> str:
        """For a sentence."""
        if self.each:
            return "each party alone, one column per observer"
        who = [f"the {role}" if role != "everybody" else "everybody who sees the answer" for role in self.roles]
        if self.parties:
            called = [str(name) for name in (self.names or self.parties)]
            shown = ", ".join(called[:8]) + (f" and {len(called) - 8} more" if len(called) > 8 else "")
            who.append(f"{'party' if len(called) == 1 else 'parties'} {shown}")
        if self.any_of:
            who.append("any single party" if self.any_of == 1 else f"any {self.any_of} parties")
        if not who:
            return "any observer of the view"
        return " and ".join(who) + (" together" if len(self.parties) + len(self.roles) + self.any_of > 1 else "")

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        if self.each:
            return {"each": True}
        if self.any_of:
            return {"any_of": self.any_of, "roles": list(self.roles)}
        names = {} if self.names is None else {"names": list(self.names)}
        return {"parties": list(self.parties), "roles": list(self.roles), **names}


@dataclass(frozen=True, eq=False)
class Found:
    """One coalition, whom it learns most about, and how much.

    observers   the coalition
    target      the party it learns most about
    curve       what it learns about the target
    attained    whether the coalition really learns that much (its loss is known exactly, or bounded from below); otherwise
                `curve` is only the bound that is proved for this coalition
    note        what else is known about it, in words
    name        what the target is called, if it has a name

    >>> Found(Observers((0, 3)), 1, GaussianCurve(1.0), attained=True).sentence(1e-6)
    'parties 0, 3 together learn epsilon = 4.89 about party 1'
    """

    observers: Observers
    target: int
    curve: Curve
    attained: bool
    note: str = ""
    name: str | None = None

    def __post_init__(self) -> None:
        if self.curve.shape != ():
            raise InvalidValue(
                f"what was found is one curve about one target, got shape {self.curve.shape}; take entry(curve, target)"
            )

    def epsilon(self, delta: float) -> float:
        """ε at δ about the target."""
        return float(self.curve.epsilon(delta))

    def delta(self, epsilon: float) -> float:
        """δ at ε about the target."""
        return float(self.curve.delta(epsilon))

    def sentence(self, delta: float | None = 1e-6) -> str:
        """In words; without δ, no ε."""
        plural = len(self.observers.parties) + len(self.observers.roles) > 1
        verb = ("learn" if plural else "learns") if self.attained else "may learn up to"
        much = "most" if delta is None else f"epsilon = {readable(self.epsilon(delta))}"
        text = f"{self.observers.words} {verb} {much} about party {self.name or self.target}"
        return f"{text}; {self.note}" if self.note else text

    def to_dict(self, delta: float | None = None) -> dict[str, Any]:
        """JSON-able; with δ, also ε at it."""
        out: dict[str, Any] = {
            "observers": self.observers.to_dict(),
            "target": self.target,
            "name": self.name,
            "attained": self.attained,
            "note": self.note,
            "curve": self.curve.to_dict(),
        }
        if delta is not None:
            epsilon = self.epsilon(delta)
            out["epsilon"] = epsilon if np.isfinite(epsilon) else "inf"
        return out


def entry(curve: Curve, index: int) -> Curve:
    """The curve of one entry.

    >>> float(entry(GaussianCurve([1.0, 2.0]), 1).mu)
    2.0
    """
    if isinstance(curve, GaussianCurve):
        return GaussianCurve(float(np.asarray(curve.mu)[index]))
    if isinstance(curve, ProfileCurve):
        return curve.entry(index)
    if isinstance(curve, SharedCurve):
        place = int(curve.which[index])
        if place < 0:
            raise InvalidValue(f"there is no target at {index}: it is an observer")
        return entry(curve.curves, place) if curve.curves.shape else curve.curves
    if isinstance(curve, RenyiCurve):
        if curve.rho is not None:
            return RenyiCurve.linear(float(np.asarray(curve.rho)[index]))
        return RenyiCurve(curve.orders, curve.values[index])
    raise Unsupported(f"one entry of a {curve.kind} curve cannot be taken")
