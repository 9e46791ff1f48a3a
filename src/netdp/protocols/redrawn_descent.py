"""Learning by gossip on graphs that are drawn anew, and secretly, in every iteration (Muffliato, sections F and G.3).

A coalition that happens to surround a party on a fixed graph reads every one of its noisy gradients. If every iteration has a
graph of its own, drawn after the coalition is formed, it reads few of them. The steps are those of `GossipDescent`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs import erdos_renyi
from netdp.graphs.mixing import ALIASES, MIXINGS
from netdp.numerics.checks import count, positive, scale

from .base import Protocol
from .descent import GossipDescent


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
        if self.n < 2:
            raise InvalidValue(f"gossip needs at least two parties, n is {self.n}")
        self._set(p=positive("p", self.p))
        if self.p > 1:
            raise InvalidValue(f"p must be a probability, 0 < p ≤ 1, got {self.p}")
        for name in ("sigma", "step", "clip", "expansion"):
            self._set(**{name: scale(name, getattr(self, name))})
        if self.expansion < 1:
            raise InvalidValue(f"expansion must be ≥ 1, got {self.expansion!r}; a contraction is covered by 1")
        self._set(mixing=ALIASES.get(self.mixing, self.mixing))
        if self.mixing not in MIXINGS:
            raise InvalidValue(f"unknown mixing {self.mixing!r}; choose one of {', '.join(MIXINGS)}")

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
        return GossipDescent(
            tuple(erdos_renyi(self.n, self.p, rng) for _ in range(self.iterations)),
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
