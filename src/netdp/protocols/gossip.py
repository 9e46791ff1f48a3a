"""Synchronous gossip with noise: plain, accelerated, refreshed, masked.

Plain and accelerated gossip are Muffliato's (Algorithm 1); refresh and masks are ours.

Every party u holds x_u and starts from a noisy value; T times, all parties send their state to their
neighbours and replace it by a weighted mean of what they received:

    x̃⁰ = x + σ·η + masks                 η_u ~ N(0, 1), one mask per edge, added at one end and subtracted at the other
    x̃ᵗ = xᵗ + τ·gᵗ   (1 ≤ t < T)         refresh: fresh noise before every send but the first, τ² = r·σ²/T
    send x̃ᵗ to the neighbours            (t = 0 … T−1)
    xᵗ⁺¹ = W x̃ᵗ                          plain
    xᵗ⁺¹ = γ W x̃ᵗ + (1−γ) x̃ᵗ⁻¹           accelerated, from the second step on (the first is W x̃⁰, which keeps the mean)

**On a grid** it is what a wire can carry: states are whole numbers of steps g, a power of two. With k = ⌊x/g + ½⌋,

    s⁰ = k + η                            η discrete Gaussian of parameter ⌈σ²/g²⌉
    sᵗ = ⌊W sᵗ⁻¹ + ½⌋ + γᵗ   (1 ≤ t < T)  γᵗ discrete Gaussian of parameter ⌈τ²/g²⌉; nothing without refresh

and s is what is sent. The weights of W are 1/m with whole m (`netdp.graphs.mixing.edge_denominators`), so W s is a fraction
and its rounding is exact: every machine computes the same. `gossip_start`, `gossip_refresh` and `gossip_step` are the steps of
a party, the same in a simulation and on a wire. Acceleration and masks are for real numbers only.

In real numbers all of it is linear in the values and the noises. `response` writes the recursion down for one impulse;
the accountants and the error prediction run it, each on its own operator. `netdp.simulate.gossip` runs it on values, where
noises enter on the way, and `netdp.views.linear` on symbols; tests hold the three against each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from netdp.errors import InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.graphs.mixing import Mixing, as_mixing, edge_denominators, mixing_matrix
from netdp.graphs.spectrum import chebyshev_gamma, spectral_gap
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, finite_variance, non_negative, scale, switch

from .base import OnGraph
from .grid import GossipOnAGrid, grid_distance, grid_step, nearest, power_below, squared_steps
from .ring import Draw

MOST_STEPS = 2**60
"""A value has at most so many grid steps, and all noise in a state a deviation of at most a quarter of that."""


@dataclass(frozen=True)
class Gossip(OnGraph):
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
        `netdp.accounting.gossip.dithered.wire_grid` proposes one.
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
            self._check_grid(self.grid)

    def _check_grid(self, step: float) -> None:
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
        if self.sigma < step:
            raise InvalidValue(
                f"sigma={self.sigma:g} is less than one step of the grid {step:g}; give a grid of at most "
                f"{power_below(self.sigma)!r}"
            )
        noise = self.start_variance + (self.rounds - 1) * self.fresh_variance
        if 16 * noise > MOST_STEPS**2 or self.sensitivity / step > MOST_STEPS // 4:
            raise InvalidValue(
                f"the grid {step:g} is too fine for sigma={self.sigma:g}, refresh={self.refresh:g} and "
                f"sensitivity={self.sensitivity:g}: all noise together may have a deviation of 2⁵⁸ steps, Δ too, so that states "
                "are 64-bit numbers; give a coarser grid"
            )

    @property
    def step(self) -> float:
        """The step of the grid; refuses where there is none."""
        if self.grid is None:
            raise InvalidValue("this Gossip is in real numbers and has no grid; state grid=, a power of two")
        return self.grid

    @property
    def start_variance(self) -> int:
        """On a grid: the parameter of the initial noise, σ² in squared steps, rounded up."""
        return squared_steps(Fraction(self.sigma) ** 2, self.step)

    @property
    def fresh_variance(self) -> int:
        """On a grid: the parameter of the fresh noise, r·σ²/T in squared steps, rounded up; 0 without refresh."""
        return squared_steps(Fraction(self.refresh) * Fraction(self.sigma) ** 2 / self.rounds, self.step)

    @property
    def distance(self) -> float:
        """How far apart, in grid steps and L2 norm, two values of one party can be after rounding."""
        return grid_distance(self.sensitivity, self.step, self.dimension)

    @property
    def local_mu(self) -> float:
        """μ of local DP, Δ/σ: what somebody who sees x̃⁰_u alone, without masks, learns about u."""
        return self.sensitivity / self.sigma

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


def gossip_steps(protocol: GossipOnAGrid, values: FloatArray) -> IntArray:
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


def gossip_start(protocol: GossipOnAGrid, value: FloatArray, draw: Draw) -> IntArray:
    """The first state of a party, which it sends in round 0: its value (d,) in grid steps and its initial noise."""
    given = np.asarray(value, dtype=np.float64)
    if given.ndim != 1 or not 1 <= given.size <= protocol.dimension:
        raise InvalidValue(
            f"a value has shape (d,) with d ≤ dimension={protocol.dimension}, got {given.shape}; every number is rounded, so "
            "state dimension="
        )
    return summed(gossip_steps(protocol, given), draw(protocol.start_variance, given.size))


def gossip_refresh(protocol: GossipOnAGrid, state: IntArray, draw: Draw) -> IntArray:
    """A state with fresh noise, as it is sent in rounds 1 … T−1; as it is if the protocol has no refresh."""
    if not protocol.fresh_variance:
        return state
    return summed(state, draw(protocol.fresh_variance, state.size))


def gossip_weights(protocol: Gossip, u: int) -> dict[int, int]:
    """The whole numbers m by which party u divides: its neighbour v has weight 1/m, u itself the rest.

    >>> from netdp import graphs
    >>> gossip_weights(Gossip(graphs.star(4), rounds=1, sigma=1.0), 2)
    {0: 4}
    """
    graph = protocol.graph
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
