"""Learning by gossip: noisy local gradient steps, mixed by K rounds of gossip (Muffliato, Algorithm 3; masks are ours).

Every party i holds data and a model θ_i ∈ ℝᵈ. In iteration t = 0 … T−1

    m_i = θ_iᵗ − ν·g_i(θ_iᵗ)            g_i: the gradient of i's loss, clipped to norm L
    y_i = m_i + ν·(σ·η_i + masks)        fresh noise and fresh masks in every iteration
    θᵗ⁺¹ = p_K(W_t) y                    K rounds of gossip, plain or accelerated: messages p_k(W_t)y for k < K

Clipping comes before the noise. Replacing one party's data moves its gradient by at most Δ = 2L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from scipy import sparse

from netdp.errors import InvalidValue
from netdp.graphs import GossipMatrix, Graph, as_graph
from netdp.graphs.mixing import Mixing, as_mixing, mixing_matrix
from netdp.graphs.spectrum import chebyshev_gamma, spectral_gap
from netdp.numerics.checks import count, finite_variance, non_negative, positive, scale, switch

from .base import Protocol
from .varying import in_one_order, mixings


@dataclass(frozen=True)
class GossipRounds:
    """The gossip of one iteration: K rounds on one graph, which need not be connected."""

    graph: Graph
    rounds: int
    masks: float
    mixing: Mixing
    chebyshev: float | None
    refresh: float = 0.0  # none: every iteration brings fresh noise anyway

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """The gossip matrix W."""
        return mixing_matrix(self.graph, self.mixing)


@dataclass(frozen=True)
class GossipDescent(Protocol):
    """T noisy gradient steps, each followed by K rounds of gossip.

    Parameters
    ----------
    graph : a connected `Graph`, or a tuple of T graphs on the same parties, one per iteration (these need not be
        connected). All are public.
    iterations, gossip_rounds : T ≥ 1 and K ≥ 1.
    sigma : standard deviation, per coordinate, of the noise a party adds to its gradient.
    step : ν > 0.
    clip : L > 0; gradients are clipped to this norm before the noise, so the sensitivity is 2L.
    masks : κ ≥ 0; in every iteration each edge shares a fresh secret N(0, κσ²) per coordinate.
    accelerated : Chebyshev gossip. `gap` is the spectral gap it assumes; by default the graph's own (the smallest, if
        there are several, which must then be connected).
    expansion : Lipschitz constant of θ ↦ θ − ν·g_i(θ). 1 if g_i is the gradient of a convex β-smooth function and
        ν ≤ 2/β (generalised linear models whose rows are clipped one by one are; a party's gradient clipped as a whole
        is not); 1 + νβ is always right for β-Lipschitz gradients.
    mixing : name of the gossip matrix, see `netdp.graphs.mixing`; or a `netdp.graphs.GossipMatrix` of your own, one per graph.

    >>> from netdp import graphs
    >>> p = GossipDescent(graphs.hypercube(4), iterations=5, gossip_rounds=3, sigma=2.0, step=0.5, clip=1.0)
    >>> p.sensitivity, round(p.local_mu ** 2, 9)          # local DP pays Δ²/σ² in each iteration
    (2.0, 5.0)
    """

    kind: ClassVar[str] = "gossip-descent"
    answer: ClassVar[str] = "a model at every party"
    graph: Graph | tuple[Graph, ...]
    iterations: int
    gossip_rounds: int
    sigma: float
    step: float
    clip: float = 1.0
    masks: float = 0.0
    accelerated: bool = False
    gap: float | None = None
    expansion: float = 1.0
    mixing: Mixing | tuple[GossipMatrix, ...] = "metropolis"

    def __post_init__(self) -> None:
        for name in ("iterations", "gossip_rounds"):
            object.__setattr__(self, name, count(name, getattr(self, name)))
        for name in ("sigma", "step", "clip", "expansion"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        if self.expansion < 1:
            raise InvalidValue(f"expansion must be ≥ 1, got {self.expansion!r}; a contraction is covered by 1")
        object.__setattr__(self, "masks", non_negative("masks", self.masks))
        finite_variance("masks", self.masks, self.sigma)
        if self.gap is not None and not 0 < positive("gap", self.gap) <= 1:
            raise InvalidValue(f"gap must lie in (0, 1], got {self.gap!r}")
        switch("accelerated", self.accelerated)
        if not isinstance(self.graph, list | tuple):
            self._set(graph=as_graph(self.graph, "GossipDescent"))
            self.network.require_connected("gossip descent")
            self._set(mixing=as_mixing(self.mixing, self.network))
            return
        graphs = tuple(as_graph(graph, "GossipDescent") for graph in self.graph)
        if len(graphs) != self.iterations:
            raise InvalidValue(
                f"{len(graphs)} graphs for {self.iterations} iterations; give one graph, or one per iteration"
            )
        if len({g.n for g in graphs}) > 1:
            raise InvalidValue(f"the graphs have {sorted({g.n for g in graphs})} parties; they must join the same ones")
        graphs, mixing = in_one_order(graphs, mixings(self.mixing, graphs))
        self._set(graph=graphs, mixing=mixing)
        if self.accelerated and self.gap is None and not all(g.is_connected for g in graphs):
            raise InvalidValue(
                "some of the graphs are not connected: say which spectral gap acceleration shall assume (gap=…)"
            )

    @property
    def is_static(self) -> bool:
        """Whether the graph is the same in all iterations."""
        return isinstance(self.graph, Graph)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The graph of every iteration."""
        return (self.graph,) * self.iterations if isinstance(self.graph, Graph) else self.graph

    @property
    def n(self) -> int:
        """How many parties there are."""
        return self.graphs[0].n

    @property
    def sensitivity(self) -> float:
        """Δ = 2L: two clipped gradients."""
        return 2.0 * self.clip

    @property
    def local_mu(self) -> float:
        """μ of local DP over all iterations, √T·Δ/σ: everybody sees every noisy gradient."""
        return math.sqrt(self.iterations) * self.sensitivity / self.sigma

    @cached_property
    def chebyshev(self) -> float | None:
        """Chebyshev's γ, or None."""
        if not self.accelerated:
            return None
        if self.gap is not None:
            return chebyshev_gamma(self.gap)
        kinds = {(graph, self.mixing_of(t)) for t, graph in enumerate(self.graphs)}
        return chebyshev_gamma(min(spectral_gap(graph, mixing) for graph, mixing in kinds))

    def mixing_of(self, iteration: int) -> Mixing:
        """The mixing of one iteration."""
        return self.mixing[iteration] if isinstance(self.mixing, tuple) else self.mixing

    def rounds_of(self, iteration: int) -> GossipRounds:
        """The gossip of one iteration."""
        return GossipRounds(
            self.graphs[iteration], self.gossip_rounds, self.masks, self.mixing_of(iteration), self.chebyshev
        )

    @property
    def network(self) -> Graph:
        return self.graphs[0]

    def prepare(self) -> None:
        self.chebyshev  # noqa: B018

    def describe(self) -> str:
        name = self.graph.name if isinstance(self.graph, Graph) else f"{len(self.graph)} graphs"
        masks = f" masks={self.masks:g}" if self.masks else ""
        return (
            f"{name}: {self.n:,} parties; {self.iterations} noisy gradient steps, each mixed by {self.gossip_rounds} rounds "
            f"of {'accelerated ' if self.accelerated else ''}gossip, σ={self.sigma:g} step={self.step:g} "
            f"clip={self.clip:g}{masks}"
        )
