"""A token that goes round a ring (Cyffers and Bellet, *Privacy Amplification by Decentralization*, section 3).

Users 0, 1, …, n−1 sit on a directed, public ring. The token starts at user 0 and goes round K times; at hop t = 0 … Kn−1 user
t mod n adds a contribution. After the last hop the token is released: everybody reads it.

**Sum** (Algorithm 1). Noise N(0, σ²) at the hops j(n−1), j = 0, 1, …: any n−1 hops in a row contain exactly one of them.
Or distributed (Remark 1): N(0, σ²/n) at every hop, N(0, σ²) at the first.

**Histogram** (Algorithm 2). Contributions are L-ary randomized responses; the token starts with γn random elements.

**Closing.** As printed, the last users' contributions may reach the released token without any cover. By default the last
user therefore adds fresh noise N(0, σ²) (histogram: γn fresh random elements) before the release.

**On a grid** the sum is what a wire can carry: the token holds whole numbers, a value is its number of grid steps,
⌊x/g + ½⌋, and every noise is a discrete Gaussian whose variance, in squared steps, is rounded up to a whole number. The
token only adds, so nothing is ever rounded again. `ring_contributions` and `ring_add` are the steps of a user, the same
in a simulation and on a wire.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.checks import count, positive, scale, share_or_switch

from .base import Protocol
from .grid import grid_distance, grid_step, nearest, power_below, squared_steps
from .noise_law import checked_law, only_gaussian

RING_NOISES = ("single", "distributed")
RESPONSES = ("k-ary", "unary")
"""How a label is answered: as one of L values, or as L bits."""

Draw: TypeAlias = Callable[[int, int], IntArray]
"""Independent discrete Gaussians: (variance in squared steps, how many) → whole numbers."""

_FINEST = 2**40  # variance in squared steps that the exact sampler draws
_ROOM = 2**62  # all contributions together stay below this: the token is a 64-bit number
_LARGEST_NOISE = 2**33  # no draw of the sampler is larger


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
    grid : None for real numbers; or the step of a grid, a power of two: the token then holds whole numbers.
    dimension : how many numbers a value has, at most. On a grid rounding moves more of them further apart.
    law : "gaussian", or "laplace": noises of the same deviations, Δ then being an L1 distance. No grid.

    >>> p = RingSum(10, rounds=3, sigma=2.0)
    >>> np.flatnonzero(p.hop_noise).tolist()              # 0, 9, 18, 27: in turn users 0, 9, 8, 7
    [0, 9, 18, 27]
    >>> p.replace(grid=0.125).hop_variances[:10].tolist()
    [256, 0, 0, 0, 0, 0, 0, 0, 0, 256]
    """

    kind: ClassVar[str] = "ring-sum"
    n: int
    rounds: int
    sigma: float
    noise: str = "single"
    closing: float = True
    sensitivity: float = 1.0
    grid: float | None = None
    dimension: int = 1
    law: str = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _ring_size(self.n))
        object.__setattr__(self, "rounds", count("rounds", self.rounds))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._set(closing=share_or_switch("closing", self.closing, 1.0))
        if self.noise not in RING_NOISES:
            raise InvalidValue(f"unknown noise {self.noise!r}; choose one of {', '.join(RING_NOISES)}")
        self._set(grid=grid_step(self.grid), dimension=count("dimension", self.dimension), law=checked_law(self.law))
        if self.grid is not None and self.law != "gaussian":
            raise InvalidValue(
                f"law={self.law!r} with grid={self.grid!r}: on a grid noise is discrete Gaussian; leave one out"
            )
        if self.grid is not None:
            self._check_grid(self.grid)

    def _check_grid(self, step: float) -> None:
        if self.sigma < step:
            raise InvalidValue(
                f"sigma={self.sigma:g} is less than one step of the grid {step:g}; give a grid of at most "
                f"{power_below(self.sigma)!r}"
            )
        if max(int(self.hop_variances.max()), self.closing_variance) > _FINEST or self.sensitivity / step > 2**40:
            raise InvalidValue(
                f"the grid {step:g} is too fine for sigma={self.sigma:g} and sensitivity={self.sensitivity:g}: a noise may "
                "have a deviation of 2²⁰ steps, Δ 2⁴⁰ steps; give a coarser grid"
            )
        if self.most_steps < 2 * self.sensitivity / step:
            raise InvalidValue(
                f"{self.rounds * self.n:,} contributions of {self.sensitivity / step:.1e} grid steps do not fit into a 64-bit "
                "token; give a coarser grid"
            )

    @property
    def most_steps(self) -> int:
        """The largest number of grid steps that a value may have, so that the token stays a 64-bit number."""
        return _ROOM // (self.rounds * self.n) - 2 * _LARGEST_NOISE

    @property
    def step(self) -> float:
        """The step of the grid; refuses where there is none."""
        if self.grid is None:
            raise InvalidValue("this RingSum is in real numbers and has no grid; state grid=, a power of two")
        return self.grid

    @property
    def distance(self) -> float:
        """How far apart, in grid steps and L2 norm, two values of one contribution can be after rounding."""
        return grid_distance(self.sensitivity, self.step, self.dimension)

    @cached_property
    def hop_variances(self) -> IntArray:
        """On a grid: the variance of every hop's noise in squared steps, rounded up, without the closing noise."""
        hops = np.zeros(self.rounds * self.n, dtype=np.int64)
        square = Fraction(self.sigma) ** 2
        first = min(squared_steps(square, self.step), _FINEST + 1)
        if self.noise == "single":
            hops[:: self.n - 1] = first
        else:
            hops[:] = min(squared_steps(square / self.n, self.step), _FINEST + 1)
            hops[0] = first
        hops.flags.writeable = False
        return hops

    @property
    def closing_variance(self) -> int:
        """On a grid: the variance of the closing noise in squared steps, rounded up; 0 if there is none."""
        return squared_steps(Fraction(self.closing) * Fraction(self.sigma) ** 2, self.step)

    @property
    def hop_noise(self) -> FloatArray:
        """The standard deviation of the noise added at each of the rounds·n hops, without the closing noise."""
        if self.grid is not None:
            return self.grid * np.sqrt(self.hop_variances.astype(np.float64))
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
        if self.grid is not None:
            return self.grid * math.sqrt(self.closing_variance)
        return self.sigma * math.sqrt(self.closing)

    @property
    def local_mu(self) -> float:
        """μ of local DP: all K contributions published, each with noise N(0, σ²)."""
        only_gaussian(self, "μ")
        return math.sqrt(self.rounds) * self.sensitivity / self.sigma

    def describe(self) -> str:
        return (
            f"ring of {self.n:,} users; a token goes round {self.rounds} time{'s' if self.rounds > 1 else ''}, "
            f"σ={self.sigma:g} ({self.noise}{' Laplace' if self.law == 'laplace' else ''} noise) "
            f"Δ={self.sensitivity:g}{'' if self.closing else ', no closing noise'}"
            f"{'' if self.grid is None else f'; whole numbers on a grid of {self.grid:g}'}"
        )


# ── the steps of a user on a grid ─────────────────────────────────────────────────────────────────────────────────────


def hops_of(protocol: RingSum, u: int) -> tuple[int, ...]:
    """The hops at which user u holds the token: u, u + n, u + 2n, …

    >>> hops_of(RingSum(4, rounds=3, sigma=1.0), 2)
    (2, 6, 10)
    """
    if not 0 <= u < protocol.n:
        raise InvalidValue(f"the ring has users 0 … {protocol.n - 1}, there is no user {u}")
    return tuple(range(u, protocol.rounds * protocol.n, protocol.n))


def ring_steps(protocol: RingSum, values: FloatArray) -> IntArray:
    """Values in grid steps, ⌊x/g + ½⌋; refuses numbers that a token of so many contributions could not hold.

    >>> ring_steps(RingSum(4, rounds=1, sigma=1.0, grid=0.5), np.array([0.2, 0.75, -1.0])).tolist()
    [0, 2, -2]
    """
    steps = np.asarray(values, dtype=np.float64) / protocol.step
    wrong = ~(np.abs(steps) <= protocol.most_steps)
    if wrong.any():
        raise InvalidValue(
            f"the value {np.asarray(values)[wrong].flat[0]!r} has more than {protocol.most_steps:.2g} steps of the grid "
            f"{protocol.step:g}: {protocol.rounds * protocol.n:,} of them would not fit into a 64-bit token"
        )
    return nearest(steps)


def ring_noises(protocol: RingSum, u: int, columns: int, draw: Draw) -> tuple[IntArray, IntArray]:
    """All noise of user u, drawn once: (rounds, columns) in the order of its hops, and the closing noise (columns,).

    The closing noise is zero for everybody but the last user. Nothing is drawn where there is no noise.
    """
    noises = np.zeros((protocol.rounds, columns), dtype=np.int64)
    for row, hop in enumerate(hops_of(protocol, u)):
        if variance := int(protocol.hop_variances[hop]):
            noises[row] = draw(variance, columns)
    closing = np.zeros(columns, dtype=np.int64)
    if u == protocol.n - 1 and protocol.closing_variance:
        closing += draw(protocol.closing_variance, columns)
    return noises, closing


def ring_contributions(protocol: RingSum, u: int, value: FloatArray, draw: Draw) -> IntArray:
    """What user u adds to the token at each of its hops, (rounds, d) whole numbers, all noise inside.

    `value` is (d,), the same in every round, or (rounds, d). The last user's last contribution holds the closing noise.

    >>> zeros = lambda variance, size: np.zeros(size, dtype=np.int64)
    >>> ring_contributions(RingSum(4, rounds=2, sigma=1.0, grid=0.5), 1, np.array([1.0]), zeros).tolist()
    [[2], [2]]
    """
    given = np.asarray(value, dtype=np.float64)
    columns = given.shape[-1] if given.ndim else 0
    if given.shape not in ((columns,), (protocol.rounds, columns)) or not 1 <= columns <= protocol.dimension:
        raise InvalidValue(
            f"a value has shape (d,) or ({protocol.rounds}, d) with d ≤ dimension={protocol.dimension}, got {given.shape}; "
            "rounding more columns moves values further apart, so state dimension="
        )
    noises, closing = ring_noises(protocol, u, columns, draw)
    noises += ring_steps(protocol, given)
    noises[-1] += closing
    return noises


def ring_add(token: IntArray, contribution: IntArray) -> IntArray:
    """The token after a hop; refuses what a 64-bit number cannot hold, which no honest run reaches.

    >>> ring_add(np.array([3]), np.array([-5])).tolist()
    [-2]
    """
    before, added = np.asarray(token, dtype=np.int64), np.asarray(contribution, dtype=np.int64)
    if before.shape != added.shape:
        raise InvalidValue(f"the token has {before.shape} numbers, the contribution {added.shape}; they must be alike")
    with np.errstate(over="ignore"):
        after = before + added
    # a sum of two numbers of one sign has another: its bit of the sign differs from both
    signs = before ^ after
    signs &= added ^ after
    if signs.size and signs.min() < 0:
        raise InvalidValue("the token does not fit into 64 bits after this contribution: somebody added too much")
    return after


def ring_mean(protocol: RingSum, token: IntArray) -> FloatArray:
    """The mean of all contributions, read off the released token."""
    mean: FloatArray = np.asarray(token, dtype=np.float64) * (protocol.step / (protocol.rounds * protocol.n))
    return mean


@dataclass(frozen=True)
class RingHistogram(Protocol):
    """A histogram over `domain` values, by a token that goes round a ring `rounds` times.

    Parameters
    ----------
    n, rounds : users, and how often the token passes each of them (K).
    domain : L ≥ 2, the number of values a contribution can take: 0 … L−1.
    gamma : γ in (0, 1]: a contribution is replaced by a uniformly random value with this probability.
    closing : the last user adds ⌈closing·γn⌉ fresh random elements before the token is released; True means 1, False none.
    response : "k-ary", one of L values; or "unary": L bits, 1 at the own value and 0 elsewhere, each replaced by a fair coin with
        probability γ. Better for large domains. Random elements are L fair coins then.

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
    response: str = "k-ary"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _ring_size(self.n))
        object.__setattr__(self, "rounds", count("rounds", self.rounds))
        self._set(closing=share_or_switch("closing", self.closing, 1.0))
        check_response(self)

    @property
    def epsilon0(self) -> float:
        """The local-DP loss of one contribution."""
        return response_epsilon(self.domain, self.gamma, self.response)

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
            f"{'' if self.response == 'k-ary' else f', {self.response} encoding'}"
        )


def check_response(protocol: object) -> None:
    """Check and fix the fields `domain` and `gamma` of a protocol with randomized responses, and check `response`."""
    response = getattr(protocol, "response")  # noqa: B009
    if response not in RESPONSES:
        raise InvalidValue(f"unknown response {response!r}; choose one of {', '.join(RESPONSES)}")
    domain, gamma = getattr(protocol, "domain"), getattr(protocol, "gamma")  # noqa: B009  any protocol
    domain = count("domain", domain)
    if domain < 2:
        raise InvalidValue(f"domain must be at least 2 values, got {domain}")
    gamma = positive("gamma", gamma)
    if gamma > 1:
        raise InvalidValue(f"gamma must lie in (0, 1], the probability of a random answer, got {gamma!r}")
    object.__setattr__(protocol, "domain", domain)
    object.__setattr__(protocol, "gamma", gamma)


def response_epsilon(domain: int, gamma: float, response: str = "k-ary") -> float:
    """ε₀ of L-ary randomized response: a value is kept with probability 1−γ, else drawn uniformly from all L.

    P(report = own value)/P(report = another) = (1 − γ + γ/L)/(γ/L). "unary": two bits, each a binary response. Rounded up:
    three roundings under the logarithm, whose condition is at most 1, and two of its own.
    """
    up = 1 + 6 * UNIT
    if response == "unary":
        return 2 * math.log1p(2 * (1.0 - gamma) / gamma) * up
    return math.log1p(domain * (1.0 - gamma) / gamma) * up
