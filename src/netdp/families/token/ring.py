"""Tokens that go round a public ring of users 0, 1, …, n−1: a sum, a histogram, a model, a sum in a new order every round.

The token starts at user 0 and goes round K times; at hop t = 0 … Kn−1 user t mod n adds to it. After the last hop it is released:
everybody reads it. The sum is Algorithm 1 and the histogram Algorithm 2 of Cyffers and Bellet, *Privacy Amplification by
Decentralization*. As printed, the last users' contributions may reach the released token without any cover; by default the last
user therefore adds fresh noise (or random elements) before the release.

On a grid the sum is what a wire can carry: the token holds whole numbers, and every noise is a discrete Gaussian whose variance,
in squared steps, is rounded up. `ring_contributions` and `ring_add` are the steps of a user, the same in a simulation and on a
wire. With `law="laplace"` every noise on a grid is a discrete Laplace one, or "distributed" a share of which n − 1 make one. What
observers learn: docs/proofs/token.md#known-path, #ring-on-a-grid, #laplace-ring-on-a-grid, #ring-descent and #secret-ring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.path import LARGEST_NOISE, ROOM, TokenGrid
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, Words
from netdp.mechanisms.laplace import DiscreteLaplace
from netdp.mechanisms.laplace_shares import LaplaceShare
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, positive, scale, share_or_switch
from netdp.privacy.clones import response_loss
from netdp.protocols.base import Protocol
from netdp.protocols.grid import NOISE_LAWS, SLACK, Draw, checked_law, grid_distance, only_gaussian, squared_steps

RING_NOISES = ("single", "distributed")

RESPONSES = ("k-ary", "unary")
"""How a label is answered: as one of L values, or as L bits."""


def _ring_size(n: object) -> int:
    size = count("n", n)
    if size < 3:
        raise InvalidValue(f"a ring needs n ≥ 3 users, got {size}")
    return size


@dataclass(frozen=True)
class RingSum(TokenGrid, Protocol):
    """The sum of all contributions, by a token that goes round a ring `rounds` times.

    Parameters
    ----------
    n, rounds : users, and how often the token passes each of them (K).
    sigma : standard deviation of one noise.
    noise : "single" (at the hops 0, n−1, 2(n−1), …: any n−1 hops in a row hold exactly one) or "distributed" (everybody adds
        σ/√n, the very first hop σ).
    closing : the last user adds noise of variance closing·σ² before the token is released; True means 1, False none.
        Without it some users have no protection.
    sensitivity : Δ, the largest L2 distance of two values that one contribution can take.
    grid : None for real numbers; or the step of a grid, a power of two: the token then holds whole numbers.
    dimension : how many numbers a value has, at most. On a grid rounding moves more of them further apart.
    law : "gaussian", or "laplace": noises of the same deviations, Δ then being an L1 distance. On a grid "distributed" shares are
        then parts of one Laplace noise of deviation σ that n − 1 of them make exactly, so a round has σ²·n/(n−1) but for the first.

    >>> p = RingSum(10, rounds=3, sigma=2.0)
    >>> np.flatnonzero(p.hop_noise).tolist()              # 0, 9, 18, 27: in turn users 0, 9, 8, 7
    [0, 9, 18, 27]
    >>> p.replace(grid=0.125).hop_variances[:10].tolist()
    [256, 0, 0, 0, 0, 0, 0, 0, 0, 256]
    """

    kind: ClassVar[str] = "ring-sum"
    grid_laws: ClassVar[tuple[str, ...]] = NOISE_LAWS
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
        self._set(n=_ring_size(self.n), rounds=count("rounds", self.rounds))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._set(closing=share_or_switch("closing", self.closing, 1.0))
        if self.noise not in RING_NOISES:
            raise InvalidValue(f"unknown noise {self.noise!r}; choose one of {', '.join(RING_NOISES)}")
        self._set(law=checked_law(self.law))
        if self.law == "laplace" and self.grid is not None and self.closing not in (0.0, 1.0):
            raise InvalidValue(
                f"closing={self.closing:g} with Laplace noise on a grid: the noise before the release is a whole one or none; give "
                "True or False"
            )
        self._settle_grid()

    @property
    def visits(self) -> int:
        """How many contributions the token collects."""
        return self.rounds * self.n

    @property
    def most_steps(self) -> int:
        """The largest number of grid steps that a value may have, so that the token stays a 64-bit number."""
        return ROOM // self.visits - 2 * LARGEST_NOISE

    @property
    def parts(self) -> int:
        """Of Laplace noise on a grid: how many shares make one noise, as many as there are between two visits of one user."""
        return self.n - 1

    @cached_property
    def rate(self) -> Fraction:
        """Of Laplace noise on a grid: r of the discrete Laplace noise, per step, so small that its variance is at least σ²/g².

        With b = 1/r the variance 1/(2·sinh²(r/2)) is at least 2b² − 1/6; b is rounded up to a multiple of 2⁻¹⁶.
        """
        if self.law != "laplace":
            raise Unsupported(f"{self.law} noise has no rate; its parameters are variances")
        square = Fraction(self.sigma / self.step) ** 2 / 2 + Fraction(1, 12)
        return Fraction(2**16, math.isqrt(math.ceil(2**32 * square) - 1) + 1)

    @cached_property
    def hop_shares(self) -> IntArray:
        """Of Laplace noise on a grid: how many shares every hop adds, without the closing noise."""
        hops = np.zeros(self.rounds * self.n, dtype=np.int64)
        if self.noise == "single":
            hops[:: self.n - 1] = self.parts
        else:
            hops[:] = 1
            hops[0] = self.parts
        hops.flags.writeable = False
        return hops

    @property
    def closing_shares(self) -> int:
        """Of Laplace noise on a grid: how many shares the last user adds before the release."""
        return self.parts if self.closing else 0

    @property
    def distance(self) -> float:
        """How far apart, in grid steps and L2 norm (L1 under Laplace noise), two values of one contribution can be rounded."""
        if self.law == "laplace" and self.dimension > 1:  # every coordinate gains less than one step
            steps = Fraction(self.sensitivity) / Fraction(self.step) * Fraction(1 + SLACK)
            return math.ceil(steps) + self.dimension - 1
        return grid_distance(self.sensitivity, self.step, self.dimension)

    def _share_variances(self, shares: IntArray) -> IntArray:
        found: IntArray = np.ceil(shares * LaplaceShare(self.rate, self.parts).variance).astype(np.int64)
        return found

    @cached_property
    def hop_variances(self) -> IntArray:
        """On a grid: the variance of every hop's noise in squared steps, rounded up, without the closing noise."""
        hops = np.zeros(self.rounds * self.n, dtype=np.int64)
        first = self.variance
        if self.law == "laplace":
            hops = self._share_variances(self.hop_shares)
            hops.flags.writeable = False
            return hops
        if self.noise == "single":
            hops[:: self.n - 1] = first
        else:
            hops[:] = squared_steps(Fraction(self.sigma) ** 2 / self.n, self.step)
            hops[0] = first
        hops.flags.writeable = False
        return hops

    @property
    def closing_variance(self) -> int:
        """On a grid: the variance of the closing noise in squared steps, rounded up; 0 if there is none."""
        if self.law == "laplace":
            return int(self._share_variances(np.array([self.closing_shares]))[0])
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
        """μ of all K contributions published, each with noise N(0, σ²), as much as a round has: what factors are multiples of.

        A hop adds less noise than that, or none: `netdp.local_dp` has what it adds.
        """
        only_gaussian(self, "μ")
        return math.sqrt(self.rounds) * self.sensitivity / self.sigma

    def describe(self) -> str:
        return (
            f"ring of {self.n:,} users; a token goes round {self.rounds} time{'s' if self.rounds > 1 else ''}, "
            f"σ={self.sigma:g} ({self.noise}{' Laplace' if self.law == 'laplace' else ''} noise) "
            f"Δ={self.sensitivity:g}{'' if self.closing else ', no closing noise'}"
            f"{self._gridded()}"
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
    return protocol.in_steps(values)


def ring_noises(protocol: RingSum, u: int, columns: int, draw: Draw) -> tuple[IntArray, IntArray]:
    """All noise of user u, drawn once: (rounds, columns) in the order of its hops, and the closing noise (columns,).

    The closing noise is zero for everybody but the last user. Nothing is drawn where there is no noise.
    """
    noises = np.zeros((protocol.rounds, columns), dtype=np.int64)
    laplace = protocol.law == "laplace"
    hops, last = (
        (protocol.hop_shares, protocol.closing_shares)
        if laplace
        else (protocol.hop_variances, protocol.closing_variance)
    )
    for row, hop in enumerate(hops_of(protocol, u)):
        if amount := int(hops[hop]):
            noises[row] = draw(amount, columns)
    closing = np.zeros(columns, dtype=np.int64)
    if u == protocol.n - 1 and last:
        closing += draw(last, columns)
    return noises, closing


def ring_draw(protocol: RingSum, words: Words) -> Draw:
    """What `ring_noises` draws with: discrete Gaussians of a variance, or of Laplace noise so many shares.

    >>> from netdp.mechanisms.discrete_gaussian import words_from
    >>> p = RingSum(4, rounds=1, sigma=8.0, grid=1.0, noise="distributed", law="laplace")
    >>> draw = ring_draw(p, words_from(np.random.default_rng(0)))
    >>> round(float(draw(3, 40_000).std()), 1), round(float(draw(1, 40_000).var()) / 64, 1)
    (8.0, 0.3)
    """
    if protocol.law == "gaussian":
        return lambda variance, size: DiscreteGaussian(variance).sample((size,), words)
    whole, share = DiscreteLaplace(protocol.rate), LaplaceShare(protocol.rate, protocol.parts)
    return lambda shares, size: (whole if shares == protocol.parts else share).sample((size,), words)


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


class Responses:
    """Fields `domain`, `gamma` and `response` of a protocol whose users give randomized responses."""

    domain: int
    gamma: float
    response: str

    def _settle_responses(self) -> None:
        """Check and fix these fields."""
        if self.response not in RESPONSES:
            raise InvalidValue(f"unknown response {self.response!r}; choose one of {', '.join(RESPONSES)}")
        domain = count("domain", self.domain)
        if domain < 2:
            raise InvalidValue(f"domain must be at least 2 values, got {domain}")
        gamma = positive("gamma", self.gamma)
        if gamma > 1:
            raise InvalidValue(f"gamma must lie in (0, 1], the probability of a random answer, got {gamma!r}")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "gamma", gamma)

    @property
    def epsilon0(self) -> float:
        """The local-DP loss of one contribution."""
        return response_epsilon(self.domain, self.gamma, self.response)


@dataclass(frozen=True)
class RingHistogram(Responses, Protocol):
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
        self._set(n=_ring_size(self.n), rounds=count("rounds", self.rounds))
        self._set(closing=share_or_switch("closing", self.closing, 1.0))
        self._settle_responses()

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


def response_epsilon(domain: int, gamma: float, response: str = "k-ary") -> float:
    """ε₀ of L-ary randomized response: a value is kept with probability 1−γ, else drawn uniformly from all L.

    P(report = own value)/P(report = another) = (1 − γ + γ/L)/(γ/L). "unary": two bits, each a binary response. Rounded up:
    three roundings under the logarithm, whose condition is at most 1, and two of its own.
    """
    if response == "unary":
        return 2 * response_loss(2, gamma)
    return response_loss(domain, gamma)


class GradientSteps:
    """Fields of a protocol whose users take noisy gradient steps: `sigma`, `step`, `clip`, `radius`, `expansion`."""

    sigma: float
    step: float
    clip: float
    radius: float | None
    expansion: float

    def _settle_gradients(self) -> None:
        """Check and fix these fields."""
        for name in ("sigma", "step", "clip", "expansion"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        if not self.clip < math.inf:
            raise InvalidValue("gradients without a bound cannot be protected: give a finite clip")
        if self.expansion < 1:
            raise InvalidValue(f"expansion must be ≥ 1, got {self.expansion!r}; a contraction is covered by 1")
        if self.radius is not None:
            object.__setattr__(self, "radius", positive("radius", self.radius))

    @property
    def sensitivity(self) -> float:
        """Δ = 2L: two clipped gradients."""
        return 2.0 * self.clip


@dataclass(frozen=True)
class RingDescent(GradientSteps, Protocol):
    """Projected noisy SGD along a ring: every user takes `rounds` gradient steps, always in the same order.

    The token carries a model θ; user u takes the step θ ← Π(θ − η(g_u(θ) + Z)), Z ~ N(0, σ²I), and passes it on. Whoever comes
    immediately after u sees that step with u's own noise and nothing else around it: no privacy is gained over local DP, however
    long the ring. That is what a random walk (`WalkDescent`) is for.

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
        self._set(n=_ring_size(self.n), rounds=count("rounds", self.rounds))
        self._settle_gradients()

    @property
    def steps(self) -> int:
        """How many gradient steps the model takes: K·n."""
        return self.rounds * self.n

    @property
    def local_mu(self) -> float:
        """μ of local DP: all K gradients published, each with its own noise."""
        return math.sqrt(self.rounds) * self.sensitivity / self.sigma

    def describe(self) -> str:
        return (
            f"ring of {self.n:,} users; a model goes round {self.rounds} time{'s' if self.rounds > 1 else ''}, a noisy gradient "
            f"step at each user: σ={self.sigma:g} step={self.step:g} clip={self.clip:g}"
        )


ORDERS = ("known", "hidden")


@dataclass(frozen=True)
class SecretRingSum(Protocol):
    """The mean of all contributions, by a token that goes round in a fresh random order in every round.

    On a fixed ring the two neighbours of a user see everything about it, and everybody knows who they are. Here whoever colludes
    has to do so before the orders are drawn, and is then where chance puts it. What a holder learns of the order:

    sender="known"    from whom it gets the token and to whom it passes it: plain connections. The guarantee then holds even if
                      the orders are public as soon as they are drawn, by a public coin for example.
    sender="hidden"   nothing but that it holds the token now: the network draws the orders and delivers, as a mix network does,
                      and publishes the token after the last hop. Then it also counts that nobody knows who stands where.

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
        self._set(n=_ring_size(self.n), rounds=count("rounds", self.rounds))
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
