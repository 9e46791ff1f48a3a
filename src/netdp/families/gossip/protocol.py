"""Gossip, synchronous or randomized: the two protocols as values, and the steps that one party takes.

Noisy values are averaged along the edges of a graph, by all parties in rounds (`Gossip`) or by the two ends of one random
edge at a time (`RandomizedGossip`); in real numbers, or on a grid as a wire carries them. The steps on a grid
(`gossip_start`, `gossip_refresh`, `gossip_step`, `difference`) are the same in a simulation and on a wire. In real numbers
everything is linear: `response` is the recursion for one impulse, which accountants and error predictions run, each on its
own operator. All steps are written down in docs/proofs/gossip.md#gossip-steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from scipy import sparse

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs.convert import as_graph
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import Mixing, as_mixing, edge_denominators, mixing_matrix
from netdp.graphs.spectrum import DENSE_LIMIT, chebyshev_gamma, spectral_gap
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, finite_variance, non_negative, scale, switch
from netdp.protocols.base import OnGraph
from netdp.protocols.grid import Draw, grid_distance, grid_step, nearest, power_below, squared_steps

LARGEST = 2**62
"""No state that is sent is larger, in grid steps; what an honest run holds stays far below."""


def shared(lower: IntArray, upper: IntArray) -> tuple[IntArray, IntArray]:
    """What the party with the smaller number takes, and what the other takes, of what the two sent.

    >>> import numpy as np
    >>> lower, upper = shared(np.array([3, -3, 2**62]), np.array([4, 0, 2**62]))
    >>> lower.tolist(), upper.tolist()
    ([3, -2, 4611686018427387904], [4, -1, 4611686018427387904])
    """
    apart = (lower ^ upper) >> 1
    return (lower & upper) + apart, (lower | upper) - apart


def difference(me: int, sent: IntArray, other: int, heard: IntArray) -> IntArray:
    """What party `me` adds to its state after an exchange with `other`: what it takes minus what it sent.

    >>> import numpy as np
    >>> difference(0, np.array([3]), 5, np.array([8])).tolist(), difference(5, np.array([8]), 0, np.array([3])).tolist()
    ([2], [-2])
    """
    if sent.shape != heard.shape:
        raise InvalidValue(f"party {other} sent {heard.shape} numbers, {sent.shape} are expected")
    if me < other:
        return shared(sent, heard)[0] - sent
    return shared(heard, sent)[1] - sent


def largest_state(reach: int, variance: int, steps: int) -> int:
    """A bound, in grid steps, that honest states exceed with a probability below 2e⁻¹²⁸ each: more is neither sent nor taken.

    reach      no value has more steps
    variance   of all noise together, in squared steps: V₀ + 2·steps·V₁
    steps      how many exchanges there are, at most: each rounds by at most half a step

    A state is a mean of noisy values, or with late answers a combination of weight up to two: values make up at most 2·reach of it,
    and its noise has a deviation of at most 2·√variance, of which 16 are allowed.

    >>> largest_state(100, 400, 10)
    892
    """
    return min(LARGEST, 2 * (reach + steps + 16 * (math.isqrt(variance) + 1)))


def fits(state: IntArray, largest: int = LARGEST) -> bool:
    """Whether all numbers of a state are so small in size, 2⁶² without more, that they may be sent.

    >>> import numpy as np
    >>> fits(np.array([2**62, -(2**62)])), fits(np.array([2**62 + 1]))
    (True, False)
    """
    return bool(((state >= -largest) & (state <= largest)).all())


MOST_STEPS = 2**60
"""A value has at most so many grid steps, and all noise in a state a deviation of at most a quarter of that."""


class NoisyGossip(OnGraph):
    """What synchronous and randomized gossip share: noise that a party adds to its value, in real numbers or on a grid."""

    if TYPE_CHECKING:

        @property
        def sigma(self) -> float:
            """σ, the standard deviation of the initial noise."""

        @property
        def sensitivity(self) -> float:
            """Δ, the largest L2 distance between two values of one party."""

        @property
        def refresh(self) -> float:
            """r, how much fresh noise is added on the way."""

        @property
        def grid(self) -> float | None:
            """The step of the grid; None in real numbers."""

        @property
        def dimension(self) -> int:
            """How many numbers a value has, at most."""

        @property
        def fresh_variance(self) -> int:
            """On a grid: the parameter of the fresh noise before one send, in squared steps; 0 without refresh."""

    @property
    def step(self) -> float:
        """The step of the grid; refuses where there is none."""
        if self.grid is None:
            raise InvalidValue(
                f"this {type(self).__name__} is in real numbers and has no grid; state grid=, a power of two"
            )
        return self.grid

    @property
    def start_variance(self) -> int:
        """On a grid: the parameter of the initial noise, σ² in squared steps, rounded up."""
        return squared_steps(Fraction(self.sigma) ** 2, self.step)

    @property
    def distance(self) -> float:
        """How far apart, in grid steps and L2 norm, two values of one party can be after rounding."""
        return grid_distance(self.sensitivity, self.step, self.dimension)

    @property
    def local_mu(self) -> float:
        """μ of local DP, Δ/σ: what somebody who sees the first state of u alone, without masks, learns about u."""
        return self.sensitivity / self.sigma

    def _check_room(self, sends: int, room: int, deviations: str) -> None:
        """Refuse a grid that is too coarse for the noise, or too fine for states of 64 bits with that many fresh noises."""
        if self.sigma < self.step:
            raise InvalidValue(
                f"sigma={self.sigma:g} is less than one step of the grid {self.step:g}; give a grid of at most "
                f"{power_below(self.sigma)!r}"
            )
        noise = self.start_variance + sends * self.fresh_variance
        if room * noise > MOST_STEPS**2 or self.sensitivity / self.step > MOST_STEPS // 4:
            raise InvalidValue(
                f"the grid {self.step:g} is too fine for sigma={self.sigma:g}, refresh={self.refresh:g} and "
                f"sensitivity={self.sensitivity:g}: all noise together may have a deviation of {deviations}, so that states "
                "are 64-bit numbers; give a coarser grid"
            )


@dataclass(frozen=True)
class Gossip(NoisyGossip):
    """Private averaging by T rounds of gossip on a graph.

    Parameters
    ----------
    graph : connected `Graph`, public.
    rounds : T ≥ 1, how many times every party sends.
    sigma : standard deviation of the noise that each party adds to its value.
    refresh : r ≥ 0; fresh noise of variance r·σ²/rounds is added before every send but the first.
    masks : κ ≥ 0; each edge shares a secret N(0, κσ²), added at one end and subtracted at the other.
    accelerated : Chebyshev acceleration. With refresh, fresh noise is also added to the remembered previous
        state; otherwise each impulse would count 1/(2−γ) times in the mean.
    sensitivity : Δ, the largest L2 distance between two values of one party.
    mixing : name of the gossip matrix, see `netdp.graphs.mixing`; or one of your own, a `netdp.graphs.GossipMatrix` or an array.
    grid : None for real numbers; or the step of a grid, a power of two: states are then rounded to it after every step.
        `netdp.families.gossip.account.grid.wire_grid` proposes one.
    dimension : how many numbers a value has, at most. On a grid every one of them is rounded.

    >>> from netdp import graphs
    >>> p = Gossip(graphs.hypercube(3), rounds=5, sigma=2.0, masks=10.0)
    >>> p.local_mu
    0.5
    >>> p.replace(rounds=0)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: rounds must be a whole number ≥ 1, got 0
    """

    kind: ClassVar[str] = "gossip"
    graph: Graph
    rounds: int
    sigma: float
    refresh: float = 0.0
    masks: float = 0.0
    accelerated: bool = False
    sensitivity: float = 1.0
    mixing: Mixing = "metropolis"
    grid: float | None = None
    dimension: int = 1

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "Gossip"))
        object.__setattr__(self, "rounds", count("rounds", self.rounds))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        for name in ("refresh", "masks"):
            object.__setattr__(self, name, non_negative(name, getattr(self, name)))
            finite_variance(name, getattr(self, name), self.sigma)
        self._set(accelerated=switch("accelerated", self.accelerated))
        if self.graph.n < 2:
            raise InvalidValue("gossip needs at least two parties, the graph has 1")
        self.graph.require_connected("gossip")
        self._set(mixing=as_mixing(self.mixing, self.graph))
        self._set(grid=grid_step(self.grid), dimension=count("dimension", self.dimension))
        if self.grid is not None:
            self._check_grid()

    def _check_grid(self) -> None:
        if self.accelerated:
            raise InvalidValue(
                "accelerated gossip on a grid is not proved: set accelerated=False, or grid=None for real numbers"
            )
        if not isinstance(self.mixing, str):
            raise InvalidValue(
                "weights of your own on a grid: the steps of a wire divide by whole numbers, which only the named mixings do; name "
                "one, such as 'metropolis', or set grid=None for real numbers"
            )
        if self.masks > 0:
            raise InvalidValue(
                f"masks={self.masks:g} on a grid: real-valued masks do not hide whole numbers; MaskedSum has masks that do, "
                "or set grid=None for real numbers"
            )
        self._check_room(self.rounds - 1, 16, "2⁵⁸ steps, Δ too")

    @property
    def fresh_variance(self) -> int:
        """On a grid: the parameter of the fresh noise, r·σ²/T in squared steps, rounded up; 0 without refresh."""
        return squared_steps(Fraction(self.refresh) * Fraction(self.sigma) ** 2 / self.rounds, self.step)

    @property
    def refresh_variance(self) -> float:
        """τ², the variance of the fresh noise before one send."""
        return self.refresh * self.sigma**2 / self.rounds

    @property
    def mask_variance(self) -> float:
        """κσ², the variance of the mask of one edge."""
        return self.masks * self.sigma**2

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """The gossip matrix W."""
        return mixing_matrix(self.graph, self.mixing)

    @cached_property
    def chebyshev(self) -> float | None:
        """Chebyshev's γ, or None when the protocol is not accelerated."""
        return chebyshev_gamma(spectral_gap(self.graph, self.mixing)) if self.accelerated else None

    @cached_property
    def denominators(self) -> IntArray:
        """The weight of every entry of the adjacency matrix as 1/denominator, aligned with `graph.indices`."""
        if not isinstance(self.mixing, str):
            raise InvalidValue("weights of your own are no unit fractions; only named mixings have denominators")
        return edge_denominators(self.graph, self.mixing)

    def prepare(self) -> None:
        self.matrix, self.chebyshev  # noqa: B018

    def describe(self) -> str:
        extras = [f"refresh={self.refresh:g}"] if self.refresh else []
        extras += [f"masks={self.masks:g}"] if self.masks else []
        extras += ["accelerated"] if self.accelerated else []
        extras += [f"on a grid of {self.grid:g}"] if self.grid is not None else []
        settings = " ".join([f"T={self.rounds}", f"σ={self.sigma:g}", f"Δ={self.sensitivity:g}", *extras])
        return f"{self.graph.name}: {self.n:,} parties, {self.graph.m:,} edges; gossip {settings}"


# ── the steps of a party on a grid ────────────────────────────────────────────────────────────────────────────────────


def gossip_steps(protocol: NoisyGossip, values: FloatArray) -> IntArray:
    """Values in grid steps, ⌊x/g + ½⌋; refuses more than 2⁶⁰ of them.

    >>> from netdp import graphs
    >>> gossip_steps(Gossip(graphs.ring(3), rounds=1, sigma=1.0, grid=0.5), np.array([0.2, 0.75])).tolist()
    [0, 2]
    """
    steps = np.asarray(values, dtype=np.float64) / protocol.step
    wrong = ~(np.abs(steps) <= MOST_STEPS)
    if wrong.any():
        raise InvalidValue(
            f"the value {np.asarray(values)[wrong].flat[0]!r} has more than 2⁶⁰ steps of the grid {protocol.step:g}; subtract a "
            "public centre from all values, or give a coarser grid"
        )
    return nearest(steps)


def gossip_start(protocol: NoisyGossip, value: FloatArray, draw: Draw) -> IntArray:
    """The first state of a party, which it sends in round 0: its value (d,) in grid steps and its initial noise."""
    given = np.asarray(value, dtype=np.float64)
    if given.ndim != 1 or not 1 <= given.size <= protocol.dimension:
        raise InvalidValue(
            f"a value has shape (d,) with d ≤ dimension={protocol.dimension}, got {given.shape}; every number is rounded, so "
            "state dimension="
        )
    return summed(gossip_steps(protocol, given), draw(protocol.start_variance, given.size))


def gossip_refresh(protocol: NoisyGossip, state: IntArray, draw: Draw) -> IntArray:
    """A state with fresh noise, as it is sent in rounds 1 … T−1; as it is if the protocol has no refresh."""
    if not protocol.fresh_variance:
        return state
    return summed(state, draw(protocol.fresh_variance, state.size))


class Weighted(Protocol):
    """What is averaged with the fractions of a named gossip matrix."""

    @property
    def network(self) -> Graph:
        """The graph."""

    @property
    def denominators(self) -> IntArray:
        """The weight of every entry of the adjacency matrix as 1/denominator."""


def gossip_weights(protocol: Weighted, u: int) -> dict[int, int]:
    """The whole numbers m by which party u divides: its neighbour v has weight 1/m, u itself the rest.

    >>> from netdp import graphs
    >>> gossip_weights(Gossip(graphs.star(4), rounds=1, sigma=1.0), 2)
    {0: 4}
    """
    graph = protocol.network
    row = slice(int(graph.indptr[u]), int(graph.indptr[u + 1]))
    return dict(zip(graph.indices[row].tolist(), protocol.denominators[row].tolist(), strict=True))


def gossip_step(weights: Mapping[int, int], own: IntArray, received: Mapping[int, IntArray]) -> IntArray:
    """⌊Σ_v W_uv s_v + ½⌋, exactly: the state after mixing, from what u sent itself and what its neighbours sent.

    >>> gossip_step({1: 3, 2: 3}, np.array([4]), {1: np.array([5]), 2: np.array([6])}).tolist()
    [5]
    """
    if received.keys() != weights.keys():
        odd = min(received.keys() ^ weights.keys())
        raise InvalidValue(
            f"a step needs one state from each neighbour, {sorted(weights)}; {odd} is missing or no neighbour"
        )
    common = math.lcm(*weights.values())
    mine = own.astype(object)
    change: Any = 0
    for v in sorted(weights):
        if received[v].shape != own.shape:
            raise InvalidValue(f"party {v} sent {received[v].shape} numbers, {own.shape} are expected")
        change = change + (received[v].astype(object) - mine) * (common // weights[v])
    # between the least and the largest of the states, so it fits into 64 bits
    return np.asarray(mine + (2 * change + common) // (2 * common)).astype(np.int64)


def summed(state: IntArray, noise: IntArray) -> IntArray:
    """The sum; refuses what 64 bits cannot hold, which no honest run reaches (32 deviations of the noise)."""
    with np.errstate(over="ignore"):
        total = state + noise
    if ((state ^ total) & (noise ^ total) < 0).any():
        raise InvalidValue("a state does not fit into 64 bits: somebody sent too much, or the noise is broken")
    return total


def response(
    apply: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    steps: int,
    gamma: float | None,
    *,
    fresh: bool = False,
) -> Iterator[FloatArray]:
    """The states x̃⁰, x̃¹, … (`steps` of them) that an impulse `start` causes under the linear step `apply`.

    `fresh=False`: an impulse at time 0 (value, initial noise, mask): p_t(W)·start, with p₀=1, p₁=X and
    p_{t+1} = γXp_t + (1−γ)p_{t−1} when accelerated.
    `fresh=True`: an impulse of refresh, added to the current and to the remembered state:
    r₀=1, r₁ = γX + (1−γ), r_{t+1} = γXr_t + (1−γ)r_{t−1}. Both are 1 at X=1, so the mean is kept.

    >>> import numpy as np
    >>> W = np.full((2, 2), 0.5)
    >>> [x.tolist() for x in response(lambda x: W @ x, np.array([1.0, 0.0]), 2, None)]
    [[1.0, 0.0], [0.5, 0.5]]
    """
    previous, current = start, start
    yield current
    for t in range(1, steps):
        following = apply(current)
        if gamma is not None and (t > 1 or fresh):
            following = gamma * following + (1.0 - gamma) * previous
        previous, current = current, following
        yield current


IDLE = -1  # both ends of a step in which nobody wakes


@dataclass(frozen=True)
class RandomizedGossip(NoisyGossip):
    """Private averaging by pairwise exchanges along random edges.

    Parameters
    ----------
    graph : connected `Graph`, public.
    steps : how many times an edge is drawn; about n/2 steps do the work of one synchronous round.
    sigma : standard deviation of the noise that each party adds to its value.
    sensitivity : Δ, the largest L2 distance between two values of one party.
    mixing : the gossip matrix W behind the default probabilities p_{uw} = 2W_{uw}/n (they sum to 1 − tr(W)/n).
    probabilities : p_e for every edge, in the order of `graph.edges()`, instead. They sum to at most 1; what is left
        over is the probability that a step passes idle.
    accelerated : with momentum: every party holds a second number, and both drift towards each other at every step; on slow
        graphs far fewer steps do the same work, on fast ones no fewer.
    refresh : r ≥ 0; fresh noise of variance r·σ²·n/(2·steps) is added before every send of a party but its first.
    grid : None for real numbers; or the step of a grid, a power of two: states are then whole numbers of steps.
        `netdp.families.gossip.account.grid.wire_grid` proposes one.
    dimension : how many numbers a value has, at most. On a grid every one of them is rounded.

    >>> from netdp import graphs
    >>> p = RandomizedGossip(graphs.ring(4), steps=6, sigma=1.0)
    >>> p.edge_probabilities.round(4).tolist()                 # 2/3 in all: one step in three is idle
    [0.1667, 0.1667, 0.1667, 0.1667]
    >>> p.draw(seed=1).tolist()
    [[-1, -1], [0, 3], [2, 3], [0, 3], [0, 1], [-1, -1]]
    """

    kind: ClassVar[str] = "randomized-gossip"
    graph: Graph
    steps: int
    sigma: float
    sensitivity: float = 1.0
    mixing: Mixing = "metropolis"
    probabilities: tuple[float, ...] | None = None
    accelerated: bool = False
    refresh: float = 0.0
    grid: float | None = None
    dimension: int = 1

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "RandomizedGossip"))
        object.__setattr__(self, "steps", count("steps", self.steps))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        if self.graph.n < 2:
            raise InvalidValue("gossip needs at least two parties, the graph has 1")
        self.graph.require_connected("gossip")
        self._set(mixing=as_mixing(self.mixing, self.graph), accelerated=switch("accelerated", self.accelerated))
        if self.probabilities is not None:
            object.__setattr__(self, "probabilities", self._checked(self.probabilities))
        self._set(refresh=non_negative("refresh", self.refresh), dimension=count("dimension", self.dimension))
        finite_variance("refresh", self.refresh, self.sigma)
        self._set(grid=grid_step(self.grid))
        if self.accelerated and (self.refresh > 0 or self.grid is not None):
            raise InvalidValue(
                "accelerated randomized gossip with fresh noise or on a grid is not proved: set accelerated=False, or refresh=0 "
                "and grid=None"
            )
        if self.grid is not None:
            self._check_room(2 * self.steps, 64, "2⁵⁷ steps, Δ 2⁵⁸")

    @property
    def fresh_variance(self) -> int:
        """On a grid: the parameter of the fresh noise before one send, in squared steps, rounded up; 0 without refresh."""
        return squared_steps(Fraction(self.refresh) * Fraction(self.sigma) ** 2 * self.n / (2 * self.steps), self.step)

    @property
    def refresh_variance(self) -> float:
        """The variance of the fresh noise before one send, r·σ²·n/(2·steps)."""
        return self.refresh * self.sigma**2 * self.n / (2 * self.steps)

    def _checked(self, given: Any) -> tuple[float, ...]:
        chances = np.asarray(given, dtype=np.float64)
        if chances.shape != (self.graph.m,):
            raise InvalidValue(
                f"probabilities must name one number per edge of graph.edges(), that is {self.graph.m}, got {chances.shape}"
            )
        wrong = np.flatnonzero(~(np.isfinite(chances) & (chances >= 0)))
        if wrong.size:
            u, w = self.graph.edges()[wrong[0]]
            raise InvalidValue(
                f"the probability of edge ({u}, {w}) must be a finite number ≥ 0, got {chances[wrong[0]]}"
            )
        total = math.fsum(chances)
        if total > 1 + 1e-9:
            raise InvalidValue(f"the probabilities sum to {total:.6g}, more than 1; divide them by their sum")
        awake = Graph.from_edges(self.graph.n, self.graph.edges()[chances > 0])
        if not awake.is_connected:
            raise InvalidValue(
                "the edges with a positive probability do not connect all parties, so the mean is never reached; "
                "give every edge of a spanning tree a positive probability"
            )
        return tuple(chances.tolist())

    @cached_property
    def edge_probabilities(self) -> FloatArray:
        """p_e for every edge of `graph.edges()`."""
        if self.probabilities is not None:
            return np.array(self.probabilities)
        u, w = self.graph.edges().T
        weights = np.asarray(mixing_matrix(self.graph, self.mixing)[u, w], dtype=np.float64).ravel()
        return 2.0 * weights / self.graph.n

    def _laplacian(self) -> FloatArray:
        """L_p: the Laplacian in which every edge has its probability for a weight."""
        u, w = self.graph.edges().T
        laplacian = np.zeros((self.graph.n, self.graph.n))
        laplacian[u, w] = laplacian[w, u] = -self.edge_probabilities
        np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
        return laplacian

    @cached_property
    def rate(self) -> float:
        """λ₂(L_p)/2: E‖xᵗ⁺¹ − x̄‖² ≤ (1 − rate)·E‖xᵗ − x̄‖², with equality along one direction.

        Muffliato's Theorems 3 and 8 print λ₂(L_p), which is too fast by a factor of two (docs/proofs/gossip.md#gossip-error).
        """
        if self.graph.n > DENSE_LIMIT:
            raise Unsupported(f"the rate needs all eigenvalues of {self.graph.n} parties; offered up to {DENSE_LIMIT}")
        return float(np.linalg.eigvalsh(self._laplacian())[1]) / 2.0

    @cached_property
    def momentum(self) -> tuple[float, float]:
        """τ and ζ of the accelerated steps; (0, 0) if there are none."""
        if not self.accelerated:
            return 0.0, 0.0
        if self.graph.n > DENSE_LIMIT:
            raise Unsupported(
                f"acceleration needs all resistances among {self.graph.n} parties; it is offered up to {DENSE_LIMIT}"
            )
        u, w = self.graph.edges().T
        laplacian = self._laplacian()
        slowest = float(np.linalg.eigvalsh(laplacian)[1])
        inverse = np.linalg.pinv(laplacian, hermitian=True)
        awake = self.edge_probabilities > 0
        resistance = float((inverse[u, u] + inverse[w, w] - 2 * inverse[u, w])[awake].max())
        theta = math.sqrt(slowest / (2 * resistance))
        return -math.expm1(-2 * theta) / 2, theta / (2 * slowest)

    def draw(self, seed: int) -> IntArray:
        """The edges of one run, (steps, 2), (−1, −1) where nobody wakes: what `simulate` with this seed uses.

        They come from a stream of their own, so that the noise of that run does not depend on them.
        """
        rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
        chosen = np.searchsorted(np.cumsum(self.edge_probabilities), rng.random(self.steps), side="right")
        return np.vstack([self.graph.edges(), [[IDLE, IDLE]]])[chosen]

    def describe(self) -> str:
        return (
            f"{self.graph.name}: {self.n:,} parties, {self.graph.m:,} edges; {'accelerated ' if self.accelerated else ''}"
            f"randomized gossip, {self.steps:,} steps of one edge each, σ={self.sigma:g} Δ={self.sensitivity:g}"
            f"{f' refresh={self.refresh:g}' if self.refresh else ''}"
            f"{f' on a grid of {self.grid:g}' if self.grid is not None else ''}"
        )


def waking_alike(graph: Graph) -> tuple[float, ...]:
    """The probability of every edge if all parties wake equally often and each turns to any of its neighbours alike.

    >>> from netdp import graphs
    >>> waking_alike(graphs.path(3))
    (0.5, 0.5)
    """
    u, w = graph.edges().T
    return tuple(((1.0 / graph.degrees[u] + 1.0 / graph.degrees[w]) / graph.n).tolist())
