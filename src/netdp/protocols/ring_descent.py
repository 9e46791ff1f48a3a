"""Noisy SGD by a token that goes round a ring: the contrast to a walk.

Users 0, 1, …, n−1 sit on a directed, public ring. The token carries a model θ round it K times; at hop t = 0 … Kn−1 user
u = t mod n takes one noisy step and passes it on,

    θ ← Π(θ − η(g_u(θ) + Z)),   Z ~ N(0, σ²I).

After the last hop the model is released. The user that comes immediately after u sees u's step with u's own noise and nothing
else around it: no privacy is gained over local DP, however long the ring (Cyffers, Bellet: the loss depends on where one sits).
Users further along the ring see it through the noise of all steps in between. On a random walk (`WalkDescent`) everybody is
far from everybody most of the time: that is what a walk is for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from netdp.errors import InvalidValue
from netdp.numerics.checks import count, positive, scale

from .base import Protocol


@dataclass(frozen=True)
class RingDescent(Protocol):
    """Projected noisy SGD along a ring: every user takes `rounds` gradient steps, always in the same order.

    Parameters
    ----------
    n, rounds : users, and how often the token passes each of them (K).
    sigma : standard deviation, per coordinate, of the noise added to a gradient.
    step : η > 0.
    clip : L > 0: gradients are clipped to this norm *before* the noise, so that two of them differ by at most Δ = 2L.
    radius : Π projects onto the ball of this radius around 0; None: no projection.
    expansion : Lipschitz constant of θ ↦ θ − η·g_u(θ), the clipping included, as for `WalkDescent`. Above 1 everybody is
        accounted for as if it sat next to the observer.

    >>> p = RingDescent(100, rounds=5, sigma=4.0, step=0.1, clip=0.5)
    >>> p.steps, p.sensitivity, round(p.local_mu, 3)
    (500, 1.0, 0.559)
    """

    kind: ClassVar[str] = "ring-descent"
    answer: ClassVar[str] = "a model"
    n: int
    rounds: int
    sigma: float
    step: float
    clip: float = 1.0
    radius: float | None = None
    expansion: float = 1.0

    def __post_init__(self) -> None:
        self._set(n=count("n", self.n), rounds=count("rounds", self.rounds))
        if self.n < 3:
            raise InvalidValue(f"a ring needs n ≥ 3 users, got {self.n}")
        for name in ("sigma", "step", "clip", "expansion"):
            self._set(**{name: scale(name, getattr(self, name))})
        if not self.clip < math.inf:
            raise InvalidValue("gradients without a bound cannot be protected: give a finite clip")
        if self.expansion < 1:
            raise InvalidValue(f"expansion must be ≥ 1, got {self.expansion!r}; a contraction is covered by 1")
        if self.radius is not None:
            self._set(radius=positive("radius", self.radius))

    @property
    def steps(self) -> int:
        """How many gradient steps the model takes: K·n."""
        return self.rounds * self.n

    @property
    def sensitivity(self) -> float:
        """Δ = 2L: two clipped gradients."""
        return 2.0 * self.clip

    @property
    def local_mu(self) -> float:
        """μ of local DP: all K gradients published, each with its own noise."""
        return math.sqrt(self.rounds) * self.sensitivity / self.sigma

    def describe(self) -> str:
        return (
            f"ring of {self.n:,} users; a model goes round {self.rounds} time{'s' if self.rounds > 1 else ''}, a noisy gradient "
            f"step at each user: σ={self.sigma:g} step={self.step:g} clip={self.clip:g}"
        )
