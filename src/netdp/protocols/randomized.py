"""Randomized gossip with noise: one edge wakes at a time and its two ends average (Muffliato, Algorithm 2).

    x⁰ = x + σ·η
    at step t, draw an edge {u, w} with probability p_{uw}, independently of everything else; with the probability that
    is left over, nobody wakes
    u and w exchange xᵗ_u and xᵗ_w; both take the mean (xᵗ_u + xᵗ_w)/2; everybody else keeps its value

The drawn edges are *public* randomness: they are part of the transcript and every observer is taken to know them all.

**Accelerated** (after Even, Berthier, Bach and others, *Continuized accelerations*, NeurIPS 2021, here in steps of equal
length): every party holds x and z, both x⁰ at first. At each step, idle ones included, everybody lets its own two numbers
drift towards each other,

    (x, z) ← ((1−τ)x + τz, (1−τ)z + τx),

and then the two that woke exchange x and take, with d = x_u − x_w,  x_u − d/2,  x_w + d/2,  z_u − ζd,  z_w + ζd. With μ =
λ₂(L_p) and R the largest resistance of an edge under the conductances p, θ = √(μ/2R), τ = (1 − e^{−2θ})/2 and ζ = θ/2μ.
Sums of x and of z stay.

**Refreshed** (ours): a party adds fresh noise before every send but its first, of variance r·σ²·n/(2·steps). There are at most
2·steps sends, so all of it together counts in the mean at most r times as much as the initial noise.

**On a grid** it is what a wire can carry: states are whole numbers of steps, and the mean of two is shared out to the last
unit (`netdp.protocols.exchange`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph, as_graph
from netdp.graphs.mixing import Mixing, as_mixing, mixing_matrix
from netdp.graphs.spectrum import DENSE_LIMIT
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, finite_variance, non_negative, scale, switch

from .base import OnGraph
from .gossip import MOST_STEPS
from .grid import grid_distance, grid_step, power_below, squared_steps

IDLE = -1  # both ends of a step in which nobody wakes


@dataclass(frozen=True)
class RandomizedGossip(OnGraph):
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
        `netdp.accounting.gossip.exchanges.wire_grid` proposes one.
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
            self._check_grid(self.grid)

    def _check_grid(self, step: float) -> None:
        if self.sigma < step:
            raise InvalidValue(
                f"sigma={self.sigma:g} is less than one step of the grid {step:g}; give a grid of at most "
                f"{power_below(self.sigma)!r}"
            )
        noise = self.start_variance + 2 * self.steps * self.fresh_variance
        if 64 * noise > MOST_STEPS**2 or self.sensitivity / step > MOST_STEPS // 4:
            raise InvalidValue(
                f"the grid {step:g} is too fine for sigma={self.sigma:g}, refresh={self.refresh:g} and "
                f"sensitivity={self.sensitivity:g}: all noise together may have a deviation of 2⁵⁷ steps, Δ 2⁵⁸, so that states "
                "are 64-bit numbers; give a coarser grid"
            )

    @property
    def step(self) -> float:
        """The step of the grid; refuses where there is none."""
        if self.grid is None:
            raise InvalidValue("this RandomizedGossip is in real numbers and has no grid; state grid=, a power of two")
        return self.grid

    @property
    def start_variance(self) -> int:
        """On a grid: the parameter of the initial noise, σ² in squared steps, rounded up."""
        return squared_steps(Fraction(self.sigma) ** 2, self.step)

    @property
    def fresh_variance(self) -> int:
        """On a grid: the parameter of the fresh noise before one send, in squared steps, rounded up; 0 without refresh."""
        return squared_steps(Fraction(self.refresh) * Fraction(self.sigma) ** 2 * self.n / (2 * self.steps), self.step)

    @property
    def refresh_variance(self) -> float:
        """The variance of the fresh noise before one send, r·σ²·n/(2·steps)."""
        return self.refresh * self.sigma**2 * self.n / (2 * self.steps)

    @property
    def distance(self) -> float:
        """How far apart, in grid steps and L2 norm, two values of one party can be after rounding."""
        return grid_distance(self.sensitivity, self.step, self.dimension)

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

    @property
    def local_mu(self) -> float:
        """μ of local DP, Δ/σ: what somebody who sees x⁰_u alone learns about u."""
        return self.sensitivity / self.sigma

    @cached_property
    def edge_probabilities(self) -> FloatArray:
        """p_e for every edge of `graph.edges()`."""
        if self.probabilities is not None:
            return np.array(self.probabilities)
        u, w = self.graph.edges().T
        weights = np.asarray(mixing_matrix(self.graph, self.mixing)[u, w], dtype=np.float64).ravel()
        return 2.0 * weights / self.graph.n

    @cached_property
    def rate(self) -> float:
        """λ₂(L_p)/2: E‖xᵗ⁺¹ − x̄‖² ≤ (1 − rate)·E‖xᵗ − x̄‖², with equality along one direction.

        The matrix of a step is a projector, so E‖Wx‖² = xᵀE[W]x = ‖x‖² − xᵀL_p x/2, L_p the Laplacian with weights p.
        Muffliato's Theorems 3 and 8 print λ(p) = λ₂(L_p) in place of λ₂(L_p)/2, which is too fast by a factor of two.
        """
        if self.graph.n > DENSE_LIMIT:
            raise Unsupported(f"the rate needs all eigenvalues of {self.graph.n} parties; offered up to {DENSE_LIMIT}")
        u, w = self.graph.edges().T
        laplacian = np.zeros((self.graph.n, self.graph.n))
        laplacian[u, w] = laplacian[w, u] = -self.edge_probabilities
        np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
        return float(np.linalg.eigvalsh(laplacian)[1]) / 2.0

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
        laplacian = np.zeros((self.graph.n, self.graph.n))
        laplacian[u, w] = laplacian[w, u] = -self.edge_probabilities
        np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
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
