"""A token that goes round a ring whose order is drawn anew in every round.

On a fixed ring the two neighbours of a user see everything about it, and everybody knows who they are. Here a uniformly random
order of all n users is drawn before every round; the token visits each of them once in that order, then the next round
begins. Whoever colludes has to do so before the orders are drawn, and is then where chance puts it.

**Noise** is distributed: every hop adds N(0, σ²/n), so a round adds σ², wherever observers stand. One noise per round, as on
a fixed ring, would not do: a coalition of c cuts a round into c + 1 stretches, of which c have none (even for c = 1 about
every second user would be read off).

What a holder learns of the order:

    sender="known"    from whom it gets the token and to whom it passes it: plain connections. The guarantee then holds even
                      if the orders are public as soon as they are drawn, by a public coin for example.
    sender="hidden"   nothing but that it holds the token now: the network draws the orders and delivers, as a mix network
                      does, and publishes the token after the last hop. Then it also counts that nobody knows who stands where.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from netdp.errors import InvalidValue
from netdp.numerics.checks import count, scale

from .base import Protocol

ORDERS = ("known", "hidden")


@dataclass(frozen=True)
class SecretRingSum(Protocol):
    """The mean of all contributions, by a token that goes round in a fresh random order in every round.

    Parameters
    ----------
    n, rounds : users, and how often the token visits each of them (K).
    sigma : standard deviation of the noise of one round; each of its n hops adds σ/√n.
    sender : "known" (plain connections) or "hidden" (a network that draws the orders and delivers), see above.
    sensitivity : Δ, the largest L2 distance of two values that one contribution can take; with hidden senders all values of
        one round, of *all* users, lie in one public set of this diameter.

    >>> p = SecretRingSum(100, rounds=10, sigma=8.0)
    >>> p.hop_noise, p.local_mu
    (0.8, 3.952847075210474)
    """

    kind: ClassVar[str] = "secret-ring-sum"
    n: int
    rounds: int
    sigma: float
    sender: str = "known"
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        self._set(n=count("n", self.n), rounds=count("rounds", self.rounds))
        if self.n < 3:
            raise InvalidValue(f"a ring needs n ≥ 3 users, got {self.n}")
        self._set(sigma=scale("sigma", self.sigma), sensitivity=scale("sensitivity", self.sensitivity))
        if self.sender not in ORDERS:
            raise InvalidValue(f"unknown sender {self.sender!r}; choose one of {', '.join(ORDERS)}")

    @property
    def hop_noise(self) -> float:
        """The standard deviation of the noise of one hop: σ/√n."""
        return self.sigma / math.sqrt(self.n)

    @property
    def local_mu(self) -> float:
        """μ of local DP: all K contributions published, each with the noise of its own hop."""
        return math.sqrt(self.rounds) * self.sensitivity / self.hop_noise

    def describe(self) -> str:
        return (
            f"ring of {self.n:,} users in a new random order every round; a token goes round {self.rounds} "
            f"time{'s' if self.rounds > 1 else ''}, σ={self.sigma:g} a round, Δ={self.sensitivity:g}, sender {self.sender}"
        )
