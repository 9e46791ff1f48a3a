"""Learning by gossip: noisy local gradient steps, each mixed by some rounds of gossip.

The graphs are public, one for all iterations or one for each (`GossipDescent`); or every iteration draws a secret graph of
its own (`ErdosRenyiDescent`), so that a coalition formed before the draws meets a party only now and then. The steps are
written down in docs/proofs/gossip.md#gossip-steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from netdp.errors import InvalidValue
from netdp.families.gossip.varying import drawn_graphs, in_one_order, mixings
from netdp.graphs.convert import as_graph
from netdp.graphs.families import erdos_renyi
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import GossipMatrix, Mixing, as_mixing, edge_denominators, mixing_matrix
from netdp.graphs.spectrum import chebyshev_gamma, spectral_gap
from netdp.numerics.arrays import IntArray
from netdp.numerics.checks import count, finite_variance, non_negative, positive, scale, switch
from netdp.protocols.base import Protocol
from netdp.protocols.descents import WholeSteps
from netdp.protocols.grid import squared_steps


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
class GossipDescent(WholeSteps, Protocol):
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
    batch : so many rows of a party, drawn anew, make a gradient (Muffliato-SGD); None: all of them.
    grid : None for real numbers; or a power of two: models are then whole numbers of steps of it, as on real peers
        (`netdp.protocols.descents.wire_grid` proposes one). One graph, a named mixing, no masks, plain gossip.
    refresh : r ≥ 0, on a grid: every send but the first of an iteration brings fresh noise of variance r·(νσ)²/K. Without it a
        grid with several rounds per gradient has local DP, and nothing more is claimed.
    dimension : how many numbers a model has, at most. On a grid every one of them is rounded.

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
    batch: int | None = None
    grid: float | None = None
    refresh: float = 0.0
    dimension: int = 1

    def __post_init__(self) -> None:
        for name in ("iterations", "gossip_rounds"):
            object.__setattr__(self, name, count(name, getattr(self, name)))
        for name in ("sigma", "step", "clip"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        if self.grid is None or self.expansion != math.inf:  # on a grid nothing need be known of it: local DP is left
            self._set(expansion=scale("expansion", self.expansion))
        if self.batch is not None:
            self._set(batch=count("batch", self.batch))
        self._set(refresh=non_negative("refresh", self.refresh))
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
            self._check_grid()
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
        self._check_grid()

    def _check_grid(self) -> None:
        if self.grid is None:
            if self.refresh > 0:
                raise InvalidValue(
                    f"refresh={self.refresh:g} in real numbers: every iteration brings fresh noise anyway; it is for grid=, or 0"
                )
            self._settle_grid(self.iterations, self.sends)
            return
        for name, usual, why in (
            ("masks", 0.0, "real-valued masks do not hide whole numbers"),
            ("accelerated", False, "accelerated gossip on a grid is not proved"),
            ("gap", None, "it belongs to accelerated gossip"),
        ):
            if getattr(self, name) != usual:
                raise InvalidValue(
                    f"{name}={getattr(self, name)!r} on a grid: {why}; give {usual!r}, or grid=None for real numbers"
                )
        if not self.is_static:
            raise InvalidValue(
                f"{len(self.graphs)} graphs on a grid: gossip descent in whole numbers is proved on one graph; give one, or "
                "grid=None"
            )
        if not isinstance(self.mixing, str):
            raise InvalidValue(
                "weights of your own on a grid: the steps of a wire divide by whole numbers, which only the named mixings do; name "
                "one, such as 'metropolis', or set grid=None for real numbers"
            )
        self._settle_grid(self.iterations, self.sends)

    @property
    def sends(self) -> int:
        """How often every party sends: K times in every iteration."""
        return self.iterations * self.gossip_rounds

    @property
    def fresh_variance(self) -> int:
        """On a grid: the parameter of the fresh noise before every send but the first of an iteration, in squared steps."""
        square = (Fraction(self.step) * Fraction(self.sigma)) ** 2
        return squared_steps(Fraction(self.refresh) * square / self.gossip_rounds, self.spacing)

    @property
    def other_variance(self) -> float:
        return float(self.iterations * (self.gossip_rounds - 1) * self.fresh_variance)

    @cached_property
    def denominators(self) -> IntArray:
        """The weight of every entry of the adjacency matrix as 1/denominator, aligned with `graph.indices`."""
        return edge_denominators(self.network, str(self.mixing))

    def round_of(self, t: int) -> tuple[Graph, IntArray]:
        """Who talks to whom in round t, and the denominators of the weights: the same in every round."""
        return self.network, self.denominators

    @property
    def in_real_numbers(self) -> GossipDescent:
        """The same on no grid, without the fresh noise that is there for the grid's sake."""
        return self.replace(grid=None, refresh=0.0)

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
        masks += f" refresh={self.refresh:g}" if self.refresh else ""
        masks += f", {self.batch} rows each" if self.batch is not None else ""
        masks += f"; whole numbers on a grid of {self.grid:g}" if self.grid is not None else ""
        return (
            f"{name}: {self.n:,} parties; {self.iterations} noisy gradient steps, each mixed by {self.gossip_rounds} rounds "
            f"of {'accelerated ' if self.accelerated else ''}gossip, σ={self.sigma:g} step={self.step:g} "
            f"clip={self.clip:g}{masks}"
        )


@dataclass(frozen=True)
class ErdosRenyiDescent(Protocol):
    """T noisy gradient steps, each mixed by gossip on a secret random graph of its own.

    Parameters
    ----------
    n : number of parties.
    p : probability of every edge, in every iteration anew. ln(n)/n or so connects nearly everybody; who has no neighbour in an
        iteration keeps its model until the next. Denser graphs hide more in one mixing, and let observers meet more
        parties: against a single observer some √n/1.5 neighbours are best, against many colluders few.
    iterations : T ≥ 1.
    sigma : standard deviation, per coordinate, of the noise a party adds to its gradient.
    step : ν > 0.
    clip : L > 0; gradients are clipped to this norm before the noise, so the sensitivity is 2L.
    gossip_rounds : K ≥ 1 rounds of plain gossip on the graph of the iteration; 1 is the most private.
    expansion : Lipschitz constant of a local step, as in `GossipDescent`.
    mixing : name of the gossip matrix of every graph, see `netdp.graphs.mixing`.

    `draw(seed)` is the `GossipDescent` of one run: `netdp.learn.train(protocol.draw(seed), losses, seed)`.

    >>> protocol = ErdosRenyiDescent(50, p=0.15, iterations=3, sigma=2.0, step=0.5)
    >>> protocol.draw(seed=1).graphs[2]
    Graph('erdos_renyi(50, 0.15)', n=50, m=172)
    """

    kind: ClassVar[str] = "erdos-renyi-descent"
    answer: ClassVar[str] = "a model at every party"
    n: int
    p: float
    iterations: int
    sigma: float
    step: float
    clip: float = 1.0
    gossip_rounds: int = 1
    expansion: float = 1.0
    mixing: str = "metropolis"

    def __post_init__(self) -> None:
        for name in ("n", "iterations", "gossip_rounds"):
            self._set(**{name: count(name, getattr(self, name))})
        self._set(**drawn_graphs(self.n, self.p, self.mixing))
        for name in ("sigma", "step", "clip", "expansion"):
            self._set(**{name: scale(name, getattr(self, name))})
        if self.expansion < 1:
            raise InvalidValue(f"expansion must be ≥ 1, got {self.expansion!r}; a contraction is covered by 1")

    @property
    def sensitivity(self) -> float:
        """Δ = 2L: two clipped gradients."""
        return 2.0 * self.clip

    @property
    def local_mu(self) -> float:
        """μ of local DP over all iterations, √T·Δ/σ: everybody sees every noisy gradient."""
        return math.sqrt(self.iterations) * self.sensitivity / self.sigma

    def draw(self, seed: int) -> GossipDescent:
        """The protocol of one run, its graphs drawn; from a stream that the noise of the run does not share."""
        rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
        return self.on([erdos_renyi(self.n, self.p, rng) for _ in range(self.iterations)])

    def on(self, graphs: Sequence[Graph]) -> GossipDescent:
        """The same on graphs that are drawn, one per iteration."""
        return GossipDescent(
            tuple(graphs),
            self.iterations,
            self.gossip_rounds,
            sigma=self.sigma,
            step=self.step,
            clip=self.clip,
            expansion=self.expansion,
            mixing=self.mixing,
        )

    def describe(self) -> str:
        return (
            f"{self.n:,} parties; {self.iterations} noisy gradient steps, each mixed by {self.gossip_rounds} rounds of gossip on "
            f"a secret random graph of its own, every edge with probability {self.p:g}, σ={self.sigma:g} step={self.step:g} "
            f"clip={self.clip:g}"
        )
