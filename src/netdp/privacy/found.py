"""A coalition that was found: what it learns stands beside a bound that holds for all coalitions of its size.

A guarantee against *any* f parties is a bound over very many coalitions. Beside it stands the worst coalition that was found: if
its own loss is known exactly, or known to be at least some number, then no bound for all of them can lie below that number, and
the two together say how much of the bound is real.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.observers import Observers
from netdp.privacy.profile import ProfileCurve
from netdp.privacy.readable import readable
from netdp.privacy.renyi import RenyiCurve
from netdp.privacy.shared import SharedCurve


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
        return ProfileCurve(curve.epsilons, curve.deltas[index])
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
