"""Learning under one-time pads: in every iteration a masked sum of everybody's clipped gradients.

    S = Σ_u (k_u + η_u),   k_u: party u's gradient at θ, clipped to norm L, in steps g of a grid;   θ ← θ − ν·g·S/n

Everybody learns S and nothing else (`netdp.protocols.masked`), so all hold the same model: it is noisy gradient
descent as a curator would run it, without the curator. Whatever is computed from the sums is free: averages of models
along the way, momentum, another step (`netdp.protocols.model_steps`).

**What is protected.** unit = "party": all data of a party; k_u is its gradient, clipped to norm L, then rounded.
unit = "record": one record of a party; k_u is the sum over its records of their gradients, each clipped to norm L and
rounded by itself, so that a record more or less moves k_u by its own whole numbers and by nothing else.

**Sampling.** With sampling = p < 1 every party (every record) takes part in an iteration with probability p, by a coin
that is tossed where the data is and that nobody else sees; whoever does not take part adds zero. Coins are exact: p is
rounded down to a multiple of 2^−32, and a coin is a 32-bit word that is less than p·2^32. The sum then holds as many
gradients as `expected` on average, by which the step divides: θ ← θ − ν·g·S/expected.

**How far one moves the sum**, in steps g and L2 norm (`distance`). A rounded gradient is at most L/g + √d/2 long. That is
how far a record moves the sum, and how far from zero, where the absent are, a party's value lies. Two values of one party
that always takes part are at most 2L/g + √d apart. A single number in [−L, L] becomes at most ⌊L/g + ½⌋.

**The grid** is that of `MaskedSum` unless it is given: rounding adds a thousandth to the noise. If the sum then does not fit in
32 bits but does on a grid two or four times coarser, and that costs less than 10⁻³ in ε over all iterations, that one is
taken: it halves the bytes.

**Groups.** With groups = G > 1 the parties are dealt out to G groups (party u to group u mod G), each with pads and a
sum of its own, and everybody combines the G means of gradients: their mean, or coordinate by coordinate their median
("median") or the mean without the lowest and the highest quarter ("trimmed"). A party is then hidden among its group
only, which costs √G in noise. Whoever publishes false numbers spoils one group, and a minority of spoilt groups moves a
median no further than the honest groups lie apart; with the noise that privacy asks for that is not a little
(docs/guarantees.md#influence has numbers).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.checks import count, finite, scale

from .base import OnGraph
from .grid import SLACK, grid_step, power_below
from .masked import UNITS, MaskedSum

AGGREGATES = ("mean", "median", "trimmed")
KEPT = ("last", "later")
COIN = 2**32
"""A coin that decides who takes part is a word of 32 bits: probabilities are multiples of 2^−32."""

_HARDLY = 1e-3  # in ε
_WIDEST = 2**20  # standard deviation of a share in steps, at most: what the sampler draws


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
    masks, spread, grid, modulus, mask_seed, attempts, absent : as for `MaskedSum`; attempts are those of one iteration. The
        grid may be somewhat coarser, see above.
    groups, aggregate : sums of G groups instead of one, and how they are combined: "mean", "median" or "trimmed", see above.
    unit : what is protected: "party", all data of one party, or "record", one record added to or removed from its data.
    sampling : p, the secret probability with which a party (unit "record": each record by itself) takes part in an
        iteration; a multiple of 2^−32, rounded down to one.
    max_records : unit "record": how many records a party may have; public. Only the modulus depends on it.
    records : unit "record": about how many records there are in all; public. Only the length of a step depends on it. By
        default n·max_records.
    momentum : how much of the last step goes on in the next one, in [0, 1).
    average : which model is kept: "last", or "later", the mean of the models of the later half of the iterations.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(100), iterations=50, sigma=2.0, step=0.5, dimension=10)
    >>> p.sensitivity, p.sum.reach, p.sum.step == p.sum.replace(grid=None).step
    (2.0, 1.0, True)
    >>> r = p.replace(unit="record", sampling=0.05, max_records=500, records=20_000)
    >>> r.sensitivity, round(r.expected, 3), r.sampling == int(0.05 * 2**32) / 2**32
    (1.0, 1000.0, True)
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
    unit: str = "party"
    sampling: float = 1.0
    max_records: int | None = None
    records: int | None = None
    momentum: float = 0.0
    average: str = "last"

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "MaskedDescent"), iterations=count("iterations", self.iterations))
        for name in ("sigma", "step", "clip"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._check_unit()
        self._check_kept()
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
        self._set(dimension=count("dimension", self.dimension), grid=grid_step(self.grid))
        self._set(
            **{name: getattr(self.sum, name) for name in ("attempts", "absent", "dimension", "mask_seed", "modulus")}
        )
        if self.groups == 1:
            self._set(masks=self.sum.masks)

    def _check_unit(self) -> None:
        if self.unit not in UNITS:
            raise InvalidValue(f"unknown unit {self.unit!r}; choose one of {', '.join(UNITS)}")
        self._set(unit=str(self.unit), sampling=_sampling(self.sampling))
        if self.unit == "party":
            if self.max_records is not None or self.records is not None:
                raise InvalidValue(
                    f"max_records={self.max_records!r} and records={self.records!r} belong to unit='record'; leave them out"
                )
            return
        if self.max_records is None:
            raise InvalidValue(
                "unit='record' needs max_records=…, how many records a party may have: the modulus is made for so many"
            )
        self._set(max_records=count("max_records", self.max_records))
        if self.records is not None:
            self._set(records=count("records", self.records))

    def _check_kept(self) -> None:
        self._set(momentum=finite("momentum", self.momentum))
        if not 0 <= self.momentum < 1:
            raise InvalidValue(f"momentum must be at least 0 and less than 1, got {self.momentum!r}")
        if self.average not in KEPT:
            raise InvalidValue(f"unknown average {self.average!r}; choose one of {', '.join(KEPT)}")
        self._set(average=str(self.average))

    @cached_property
    def sum(self) -> MaskedSum:
        """The masked sum of one iteration."""
        if self.grid is not None:
            return self._on(self.grid)
        usual = self._usual_step()
        found = self._on(usual)
        if self.modulus is None and found.q > 2**32:
            for coarser in (2.0, 4.0):
                tried = self._on(coarser * usual)
                if tried.q <= 2**32 and self._hardly_coarse(tried):
                    return tried
        return found

    def _on(self, step: float) -> MaskedSum:
        """The masked sum on this grid."""
        draft = MaskedSum(
            self.graph,
            sigma=self.sigma,
            masks=self.masks if self.groups == 1 else _cliques(self.n, self.groups),
            spread=self.spread,
            sensitivity=self.sensitivity,
            dimension=self.dimension,
            grid=step,
            mask_seed=self.mask_seed,
            attempts=self.attempts,
            absent=self.absent,
            unit=self.unit,
            reach=self.clip,
        )
        if self.unit == "record":  # so many records, none of which has a coordinate beyond its norm
            assert self.max_records is not None
            return draft.replace(
                reach=self.max_records * max(1, math.floor(draft.distance)) * draft.step, modulus=self.modulus
            )
        return draft if self.modulus is None else draft.replace(modulus=self.modulus)

    def _usual_step(self) -> float:
        """As for a `MaskedSum`, but no finer than noise can be drawn on."""
        usual = min(self.sigma / (16 * math.sqrt(self.n)), self.sensitivity / (1024 * math.sqrt(self.dimension)))
        return max(power_below(usual), 2 * power_below(self.sigma / _WIDEST))

    def _hardly_coarse(self, tried: MaskedSum) -> bool:
        """Whether discreteness costs next to nothing in ε, over all releases, on this grid."""
        return self.releases * self.dimension / (12 * self.n * tried.share) <= _HARDLY

    @property
    def sensitivity(self) -> float:
        """Δ: how far apart two clipped gradients of a party can be, 2L; or how long that of a record, L."""
        return self.clip if self.unit == "record" else 2.0 * self.clip

    @property
    def replaced(self) -> bool:
        """Whether what is protected is one value or another, each secretly absent at times: a party that is sampled."""
        return self.unit == "party" and self.sampling < 1

    @cached_property
    def distance(self) -> float:
        """How far, in grid steps and L2 norm, what is protected moves the sum; if `replaced`, either value from zero."""
        if not self.replaced:
            return self.sum.distance
        step = self.sum.step
        if self.dimension == 1:
            return max(1, math.floor(Fraction(self.clip) / Fraction(step) + Fraction(1, 2)))
        return (self.clip * (1 + SLACK) / step + math.sqrt(self.dimension) / 2) * (1 + 4 * UNIT)

    @property
    def units(self) -> int:
        """About how many there are of what is protected: the parties, or the records as far as is stated."""
        if self.unit == "party":
            return self.n
        assert self.max_records is not None
        return self.n * self.max_records if self.records is None else self.records

    @property
    def expected(self) -> float:
        """How many gradients a sum holds on average."""
        return self.units * self.sampling

    @property
    def threshold(self) -> int:
        """p·2^32: who takes part has drawn a 32-bit word below it."""
        return round(self.sampling * COIN)

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
        what = "record by record " if self.unit == "record" else ""
        return (
            f"{self.graph.name}: {self.n:,} parties; {self.iterations} gradient steps of size {self.step:g}, clipped "
            f"{what}to {self.clip:g}, "
            f"each{groups} by a masked sum of {self.dimension} numbers, σ={self.sigma:g}{self._drawn()}; {self._pads()}"
        )

    def _drawn(self) -> str:
        who = f"each of about {self.units:,} records" if self.unit == "record" else "each party"
        words = f"; {who} takes part with probability {self.sampling:g}" if self.sampling < 1 else ""
        words += f"; momentum {self.momentum:g}" if self.momentum else ""
        return words + ("; the models of the later half are averaged" if self.average == "later" else "")

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


def _sampling(given: float) -> float:
    probability = finite("sampling", given)
    if not 1 / COIN <= probability <= 1:
        raise InvalidValue(f"sampling is a probability of at least 2^−32 and at most 1, got {given!r}")
    return math.floor(probability * COIN) / COIN


def _cliques(n: int, groups: int) -> Graph:
    ends = [np.arange(first, n, groups) for first in range(groups)]
    edges = np.vstack([np.column_stack([own[i] for i in np.triu_indices(len(own), 1)]) for own in ends])
    return Graph.from_edges(n, edges, name=f"{groups} groups of {n}")
