"""Synchronous gossip with noise: plain, accelerated, refreshed, masked.

Plain and accelerated gossip are Muffliato's (Algorithm 1); refresh and masks are ours.

Every party u holds x_u and starts from a noisy value; T times, all parties send their state to their
neighbours and replace it by a weighted mean of what they received:

    x̃⁰ = x + σ·η + masks                 η_u ~ N(0, 1), one mask per edge, added at one end and subtracted at the other
    x̃ᵗ = xᵗ + τ·gᵗ   (1 ≤ t < T)         refresh: fresh noise before every send but the first, τ² = r·σ²/T
    send x̃ᵗ to the neighbours            (t = 0 … T−1)
    xᵗ⁺¹ = W x̃ᵗ                          plain
    xᵗ⁺¹ = γ W x̃ᵗ + (1−γ) x̃ᵗ⁻¹           accelerated, from the second step on (the first is W x̃⁰, which keeps the mean)

All of it is linear in the values and the noises. `response` writes the recursion down for one impulse; the accountants and
the error prediction run it, each on its own operator. `netdp.simulate.gossip` runs it on values, where noises enter on
the way, and `netdp.views.linear` on symbols; tests hold the three against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from scipy import sparse

from netdp.errors import InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.graphs.mixing import MIXINGS, mixing_matrix
from netdp.graphs.spectrum import chebyshev_gamma, spectral_gap
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, finite_variance, non_negative, scale, switch

from .base import OnGraph


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
    mixing : name of the gossip matrix, see `netdp.graphs.mixing`.

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
    mixing: str = "metropolis"

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "Gossip"))
        object.__setattr__(self, "rounds", count("rounds", self.rounds))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        for name in ("refresh", "masks"):
            object.__setattr__(self, name, non_negative(name, getattr(self, name)))
            finite_variance(name, getattr(self, name), self.sigma)
        self._set(accelerated=switch("accelerated", self.accelerated))
        if self.mixing not in MIXINGS:
            raise InvalidValue(f"unknown mixing {self.mixing!r}; choose one of {', '.join(MIXINGS)}")
        if self.graph.n < 2:
            raise InvalidValue("gossip needs at least two parties, the graph has 1")
        self.graph.require_connected("gossip")

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

    def prepare(self) -> None:
        self.matrix, self.chebyshev  # noqa: B018

    def describe(self) -> str:
        extras = [f"refresh={self.refresh:g}"] if self.refresh else []
        extras += [f"masks={self.masks:g}"] if self.masks else []
        extras += ["accelerated"] if self.accelerated else []
        settings = " ".join([f"T={self.rounds}", f"σ={self.sigma:g}", f"Δ={self.sensitivity:g}", *extras])
        return f"{self.graph.name}: {self.n:,} parties, {self.graph.m:,} edges; gossip {settings}"


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
