"""Learning under one-time pads: in every iteration a masked sum of everybody's clipped gradients.

    S = Σ_u (k_u + η_u),   k_u: party u's gradient at θ, clipped to norm L, in steps g of a grid;   θ ← θ − ν·g·S/n

Everybody learns S and nothing else (`netdp.protocols.masked`), so all hold the same model: it is noisy gradient
descent as a curator would run it, without the curator. Whatever is computed from the sums is free: averages of models
along the way, another step.

**Groups.** With groups = G > 1 the parties are dealt out to G groups (party u to group u mod G), each with pads and a
sum of its own, and everybody combines the G means of gradients: their mean, or coordinate by coordinate their median
("median") or the mean without the lowest and the highest quarter ("trimmed"). A party is then hidden among its group
only, which costs √G in noise. Whoever publishes false numbers spoils one group, and a minority of spoilt groups moves a
median no further than the honest groups lie apart; with the noise that privacy asks for that is not a little
(docs/guarantees.md#influence has numbers).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, scale

from .base import OnGraph
from .masked import MaskedSum

AGGREGATES = ("mean", "median", "trimmed")


@dataclass(frozen=True)
class MaskedDescent(OnGraph):
    """Noisy gradient descent on masked sums: everybody learns the noisy mean gradient of every iteration, and no more.

    Parameters
    ----------
    graph : connected `Graph` to talk along; it has no part in the privacy.
    iterations : T, the number of gradient steps.
    sigma : standard deviation, per coordinate, of the noise that a party adds to its gradient.
    step : ν > 0.
    clip : L > 0; gradients are clipped to this norm before they are rounded, so the sensitivity is 2L.
    dimension : how many numbers a model has, at most; rounding to the grid moves more of them further apart.
    masks, spread, grid, modulus, mask_seed, attempts, absent : as for `MaskedSum`; attempts are those of one iteration.
    groups, aggregate : sums of G groups instead of one, and how they are combined: "mean", "median" or "trimmed", see above.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(100), iterations=50, sigma=2.0, step=0.5, dimension=10)
    >>> p.sensitivity, p.sum.reach, p.sum.step == p.sum.replace(grid=None).step
    (2.0, 1.0, True)
    """

    kind: ClassVar[str] = "masked-descent"
    answer: ClassVar[str] = "a model"
    graph: Graph
    iterations: int
    sigma: float
    step: float
    clip: float = 1.0
    dimension: int = 1
    masks: str | int | Graph = "complete"
    spread: str = "flood"
    grid: float | None = None
    modulus: int | None = None
    mask_seed: int = 0
    attempts: int = 1
    absent: int = 0
    groups: int = 1
    aggregate: str = "mean"

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "MaskedDescent"), iterations=count("iterations", self.iterations))
        for name in ("sigma", "step", "clip"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._set(groups=count("groups", self.groups))
        if self.aggregate not in AGGREGATES:
            raise InvalidValue(f"unknown aggregate {self.aggregate!r}; choose one of {', '.join(AGGREGATES)}")
        if self.groups > 1 and (self.masks != "complete" or self.absent):
            raise InvalidValue(
                f"groups={self.groups} with masks={self.masks!r}, absent={self.absent}: within a group all pairs "
                "share pads and "
                'nobody is absent; leave masks="complete" and absent=0'
            )
        if 2 * self.groups > self.n:
            raise InvalidValue(
                f"groups={self.groups} of {self.n} parties leave somebody alone; give at most {self.n // 2} groups"
            )
        if self.aggregate != "mean" and self.groups < 3:
            raise InvalidValue(
                f"aggregate={self.aggregate!r} of {self.groups} groups is their mean; give at least 3 groups, groups=…"
            )
        self._set(
            **{
                name: getattr(self.sum, name)
                for name in ("attempts", "absent", "dimension", "mask_seed", "grid", "modulus")
            }
        )
        if self.groups == 1:
            self._set(masks=self.sum.masks)

    @cached_property
    def sum(self) -> MaskedSum:
        """The masked sum of one iteration."""
        return MaskedSum(
            self.graph,
            sigma=self.sigma,
            masks=self.masks if self.groups == 1 else _cliques(self.n, self.groups),
            spread=self.spread,
            sensitivity=self.sensitivity,
            dimension=self.dimension,
            grid=self.grid,
            modulus=self.modulus,
            mask_seed=self.mask_seed,
            attempts=self.attempts,
            absent=self.absent,
            reach=self.clip,
        )

    @property
    def sensitivity(self) -> float:
        """Δ = 2L: two clipped gradients."""
        return 2.0 * self.clip

    @property
    def releases(self) -> int:
        """How often a party publishes, at most."""
        return self.iterations * self.attempts

    @cached_property
    def group(self) -> IntArray:
        """In which group every party is (n,)."""
        return np.arange(self.n) % self.groups

    @property
    def smallest_group(self) -> int:
        """How many parties the smallest group has."""
        return self.n // self.groups

    def combined(self, means: FloatArray) -> FloatArray:
        """One gradient from those of the groups (G, d).

        >>> from netdp import graphs
        >>> p = MaskedDescent(graphs.ring(12), 5, sigma=2.0, step=0.5, groups=4, aggregate="median")
        >>> far = np.array([[1.0], [2.0], [3.0], [900.0]])
        >>> p.combined(far).tolist(), p.replace(aggregate="trimmed").combined(far).tolist()
        ([2.5], [2.5])
        """
        return aggregated(means, self.aggregate, np.bincount(self.group, minlength=self.groups))

    def prepare(self) -> None:
        self.sum.prepare()

    def describe(self) -> str:
        groups = f" in {self.groups} groups, combined by their {self.aggregate}," if self.groups > 1 else ""
        return (
            f"{self.graph.name}: {self.n:,} parties; {self.iterations} gradient steps of size {self.step:g}, clipped "
            f"to {self.clip:g}, "
            f"each{groups} by a masked sum of {self.dimension} numbers, σ={self.sigma:g}; {self._pads()}"
        )

    def _pads(self) -> str:
        one = self.sum
        more = f", at most {self.attempts} attempts" if self.attempts > 1 else ""
        more += f", at most {self.absent} absent" if self.absent else ""
        return f"grid {one.step:g} modulo 2^{one.q.bit_length() - 1}, spread by {self.spread}{more}"


def aggregated(rows: FloatArray, how: str, sizes: IntArray | None = None) -> FloatArray:
    """Rows (k, d) as one, coordinate by coordinate: their mean (weighted by `sizes`), median, or mean without the outer quarters.

    >>> aggregated(np.array([[0.0], [1.0], [2.0], [3.0], [100.0]]), "trimmed").tolist()
    [2.0]
    """
    if how == "mean":
        return np.asarray(np.average(rows, axis=0, weights=sizes))
    if how == "median":
        return np.asarray(np.median(rows, axis=0))
    if how != "trimmed":
        raise InvalidValue(f"unknown aggregate {how!r}; choose one of {', '.join(AGGREGATES)}")
    cut = len(rows) // 4
    return np.asarray(np.sort(rows, axis=0)[cut : len(rows) - cut].mean(axis=0))


def _cliques(n: int, groups: int) -> Graph:
    ends = [np.arange(first, n, groups) for first in range(groups)]
    edges = np.vstack([np.column_stack([own[i] for i in np.triu_indices(len(own), 1)]) for own in ends])
    return Graph.from_edges(n, edges, name=f"{groups} groups of {n}")
