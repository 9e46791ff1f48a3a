"""A token that goes round a ring (Cyffers and Bellet, *Privacy Amplification by Decentralization*, section 3).

Users 0, 1, …, n−1 sit on a directed, public ring. The token starts at user 0 and goes round K times; at hop t = 0 … Kn−1 user
t mod n adds a contribution. After the last hop the token is released: everybody reads it.

**Sum** (Algorithm 1). Noise N(0, σ²) at the hops j(n−1), j = 0, 1, …: any n−1 hops in a row contain exactly one of them.
Or distributed (Remark 1): N(0, σ²/n) at every hop, N(0, σ²) at the first.

**Histogram** (Algorithm 2). Contributions are L-ary randomized responses; the token starts with γn random elements.

**Closing.** As printed, the last users' contributions may reach the released token without any cover. By default the last
user therefore adds fresh noise N(0, σ²) (histogram: γn fresh random elements) before the release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, positive, scale, share_or_switch

from .base import Protocol

RING_NOISES = ("single", "distributed")


def _ring_size(n: object) -> int:
    size = count("n", n)
    if size < 3:
        raise InvalidValue(f"a ring needs n ≥ 3 users, got {size}")
    return size


@dataclass(frozen=True)
class RingSum(Protocol):
    """The sum of all contributions, by a token that goes round a ring `rounds` times.

    Parameters
    ----------
    n, rounds : users, and how often the token passes each of them (K).
    sigma : standard deviation of one noise.
    noise : "single" (one user in n−1 adds it) or "distributed" (everybody adds σ/√n, the very first hop σ).
    closing : the last user adds noise of variance closing·σ² before the token is released; True means 1, False none.
        Without it some users have no protection.
    sensitivity : Δ, the largest L2 distance of two values that one contribution can take.

    >>> p = RingSum(10, rounds=3, sigma=2.0)
    >>> np.flatnonzero(p.hop_noise).tolist()              # 0, 9, 18, 27: in turn users 0, 9, 8, 7
    [0, 9, 18, 27]
    """

    kind: ClassVar[str] = "ring-sum"
    n: int
    rounds: int
    sigma: float
    noise: str = "single"
    closing: float = True
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _ring_size(self.n))
        object.__setattr__(self, "rounds", count("rounds", self.rounds))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._set(closing=share_or_switch("closing", self.closing, 1.0))
        if self.noise not in RING_NOISES:
            raise InvalidValue(f"unknown noise {self.noise!r}; choose one of {', '.join(RING_NOISES)}")

    @property
    def hop_noise(self) -> FloatArray:
        """The standard deviation of the noise added at each of the rounds·n hops, without the closing noise."""
        hops = np.zeros(self.rounds * self.n)
        if self.noise == "single":
            hops[:: self.n - 1] = self.sigma
        else:
            hops[:] = self.sigma / math.sqrt(self.n)
            hops[0] = self.sigma
        return hops

    @property
    def closing_noise(self) -> float:
        """The standard deviation of the noise that the last user adds before the release."""
        return self.sigma * math.sqrt(self.closing)

    @property
    def local_mu(self) -> float:
        """μ of local DP: all K contributions published, each with noise N(0, σ²)."""
        return math.sqrt(self.rounds) * self.sensitivity / self.sigma

    def describe(self) -> str:
        return (
            f"ring of {self.n:,} users; a token goes round {self.rounds} time{'s' if self.rounds > 1 else ''}, "
            f"σ={self.sigma:g} ({self.noise} noise) Δ={self.sensitivity:g}{'' if self.closing else ', no closing noise'}"
        )


@dataclass(frozen=True)
class RingHistogram(Protocol):
    """A histogram over `domain` values, by a token that goes round a ring `rounds` times.

    Parameters
    ----------
    n, rounds : users, and how often the token passes each of them (K).
    domain : L ≥ 2, the number of values a contribution can take: 0 … L−1.
    gamma : γ in (0, 1]: a contribution is replaced by a uniformly random value with this probability.
    closing : the last user adds ⌈closing·γn⌉ fresh random elements before the token is released; True means 1, False none.

    >>> p = RingHistogram(1000, rounds=1, domain=5, gamma=0.5)
    >>> round(p.epsilon0, 4), p.blanket                   # one contribution alone: ln(1 + L(1−γ)/γ)
    (1.7918, 500)
    """

    kind: ClassVar[str] = "ring-histogram"
    answer: ClassVar[str] = "the share of every value"
    n: int
    rounds: int
    domain: int
    gamma: float
    closing: float = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _ring_size(self.n))
        object.__setattr__(self, "rounds", count("rounds", self.rounds))
        self._set(closing=share_or_switch("closing", self.closing, 1.0))
        check_response(self)

    @property
    def epsilon0(self) -> float:
        """The local-DP loss of one contribution."""
        return response_epsilon(self.domain, self.gamma)

    @property
    def blanket(self) -> int:
        """How many random elements are added at the start: ⌈γn⌉."""
        return math.ceil(self.gamma * self.n)

    @property
    def closing_blanket(self) -> int:
        """How many random elements the last user adds: ⌈closing·γn⌉."""
        return math.ceil(self.closing * self.gamma * self.n)

    def describe(self) -> str:
        return (
            f"ring of {self.n:,} users; a token goes round {self.rounds} time{'s' if self.rounds > 1 else ''} and collects a "
            f"histogram of {self.domain} values, random answers with probability γ={self.gamma:g}"
        )


def check_response(protocol: object) -> None:
    """Check and fix the fields `domain` and `gamma` of a protocol with L-ary randomized response."""
    domain, gamma = getattr(protocol, "domain"), getattr(protocol, "gamma")  # noqa: B009  any protocol
    domain = count("domain", domain)
    if domain < 2:
        raise InvalidValue(f"domain must be at least 2 values, got {domain}")
    gamma = positive("gamma", gamma)
    if gamma > 1:
        raise InvalidValue(f"gamma must lie in (0, 1], the probability of a random answer, got {gamma!r}")
    object.__setattr__(protocol, "domain", domain)
    object.__setattr__(protocol, "gamma", gamma)


def response_epsilon(domain: int, gamma: float) -> float:
    """ε₀ of L-ary randomized response: a value is kept with probability 1−γ, else drawn uniformly from all L.

    P(report = own value)/P(report = another) = (1 − γ + γ/L)/(γ/L).
    """
    return math.log1p(domain * (1.0 - gamma) / gamma)
