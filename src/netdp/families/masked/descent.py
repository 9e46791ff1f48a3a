"""Learning under one-time pads: in every iteration a masked sum of everybody's clipped gradients, then a step that all take.

    S = Σ_u (k_u + η_u),   k_u: party u's gradient at θ, clipped to norm L, in steps g of a grid;   θ ← θ − ν·g·S/n

Everybody learns S and nothing else, so all hold the same model, to the last bit: noisy gradient descent as a curator would run it,
without the curator. Whatever is computed from the sums is free: averages of models along the way, momentum, another step. How far
a party or a record moves a sum, secret participation and groups: docs/proofs/masked.md#masked-descent and #sampled-descent.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.masked.protocol import UNITS, MaskedSum
from netdp.graphs.convert import as_graph
from netdp.graphs.graph import Graph
from netdp.models.parties import AGGREGATES, aggregated
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.checks import count, finite, scale, whole
from netdp.protocols.base import OnGraph
from netdp.protocols.grid import SLACK, grid_step, power_below

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
                'share pads and nobody is absent; leave masks="complete" and absent=0'
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
        finest = self._on(usual)
        if self.modulus is None and finest.q > 2**32:
            for coarser in (2.0, 4.0):
                tried = self._on(coarser * usual)
                if tried.q <= 2**32 and self._hardly_coarse(tried):
                    return tried
        return finest

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
        single = self.sum
        more = f", at most {self.attempts} attempts" if self.attempts > 1 else ""
        more += f", at most {self.absent} absent" if self.absent else ""
        return f"grid {single.step:g} modulo 2^{single.q.bit_length() - 1}, spread by {self.spread}{more}"


def _sampling(given: float) -> float:
    probability = finite("sampling", given)
    if not 1 / COIN <= probability <= 1:
        raise InvalidValue(f"sampling is a probability of at least 2^−32 and at most 1, got {given!r}")
    return math.floor(probability * COIN) / COIN


def _cliques(n: int, groups: int) -> Graph:
    ends = [np.arange(first, n, groups) for first in range(groups)]
    edges = np.vstack([np.column_stack([own[i] for i in np.triu_indices(len(own), 1)]) for own in ends])
    return Graph.from_edges(n, edges, name=f"{groups} groups of {n}")


_MAGIC = b"netdp model 1\n\0\0"

_HEAD = struct.Struct("<16sqq")


@dataclass(frozen=True, eq=False)
class State:
    """Where a run stands: the model, the velocity, the sum of the models to be averaged and how many they are."""

    theta: FloatArray
    velocity: FloatArray
    total: FloatArray
    count: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and to_bytes(self) == to_bytes(other)

    __hash__ = None  # type: ignore[assignment]


def begun(theta0: FloatArray) -> State:
    """The state before the first iteration: at rest at the public start.

    >>> begun(np.zeros(2)).theta.tolist()
    [0.0, 0.0]
    """
    theta = np.array(theta0, dtype=np.float64)
    if theta.ndim != 1 or not theta.size or not np.isfinite(theta).all():
        raise InvalidValue(f"a model starts from finite numbers in one row, got an array of shape {theta.shape}")
    return State(theta, np.zeros_like(theta), np.zeros_like(theta), 0)


def stepped(protocol: MaskedDescent, state: State, t: int, sum_steps: IntArray) -> State:
    """The state after iteration t = 1 … T, from the opened sum in whole grid steps (d,); with groups, of each group (G, d).

    >>> from netdp.families.masked.descent import MaskedDescent
    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(4), 2, sigma=1.0, step=0.5, grid=0.25, average="later")
    >>> one = stepped(p, begun(np.zeros(1)), 1, np.array([32]))        # 32 steps of 1/4 over 4 parties: a gradient of 2
    >>> two = stepped(p, one, 2, np.array([-16]))
    >>> one.theta.tolist(), two.theta.tolist(), kept(p, two).tolist()
    ([-1.0], [-0.5], [-0.5])
    """
    if not 1 <= whole("t", t) <= protocol.iterations:
        raise InvalidValue(f"iteration t = {t} of {protocol.iterations}: they are numbered from 1")
    gradient = mean_gradient(protocol, sum_steps)
    if gradient.shape != state.theta.shape:
        raise InvalidValue(f"the sum has {gradient.shape} numbers, the model {state.theta.shape}; they must agree")
    velocity = protocol.momentum * state.velocity + gradient if protocol.momentum else gradient
    theta = state.theta - protocol.step * velocity
    if 2 * t <= protocol.iterations:
        return State(theta, velocity, state.total, state.count)
    return State(theta, velocity, state.total + theta, state.count + 1)


def mean_gradient(protocol: MaskedDescent, sum_steps: IntArray) -> FloatArray:
    """g·S/expected: the noisy mean gradient that a sum in grid steps stands for; of groups, as they are combined."""
    sums = np.asarray(sum_steps)
    if sums.dtype != np.int64:
        raise InvalidValue(f"a sum is given in whole grid steps, int64 numbers, got {sums.dtype}")
    scaled = protocol.sum.step * sums.astype(np.float64)
    if protocol.groups == 1:
        return np.asarray(scaled / protocol.expected)
    if sums.ndim != 2 or len(sums) != protocol.groups:
        raise InvalidValue(f"{protocol.groups} groups have a sum each, got an array of shape {sums.shape}")
    sizes = np.bincount(protocol.group, minlength=protocol.groups)
    return protocol.combined(scaled / (sizes / protocol.n * protocol.expected)[:, None])


def kept(protocol: MaskedDescent, state: State) -> FloatArray:
    """The model that everybody keeps: the last one, or the mean of the later ones so far."""
    if protocol.average == "last" or not state.count:
        return state.theta
    return np.asarray(state.total / float(state.count))


def to_bytes(state: State) -> bytes:
    """The state as bytes, little-endian on every machine.

    >>> from_bytes(to_bytes(begun(np.ones(3)))) == begun(np.ones(3))
    True
    """
    parts = [np.ascontiguousarray(part, dtype="<f8").tobytes() for part in (state.theta, state.velocity, state.total)]
    return _HEAD.pack(_MAGIC, state.theta.size, state.count) + b"".join(parts)


def from_bytes(data: bytes) -> State:
    """The state that `to_bytes` wrote; refuses anything else."""
    if len(data) < _HEAD.size:
        raise InvalidValue(f"{len(data)} bytes are no state of a model: too short; it was cut off, or is another file")
    magic, size, count = _HEAD.unpack_from(data)
    if magic != _MAGIC.ljust(16, b"\0") or size < 1 or count < 0 or len(data) != _HEAD.size + 24 * size:
        raise InvalidValue(f"{len(data)} bytes are no state of a model; it was cut off, or is another file")
    numbers = np.frombuffer(data, dtype="<f8", offset=_HEAD.size).astype(np.float64).reshape(3, size)
    if not np.isfinite(numbers).all():
        raise InvalidValue("a state of a model holds numbers that are not finite; the file is damaged")
    return State(numbers[0].copy(), numbers[1].copy(), numbers[2].copy(), count)
