"""A sum under one-time pads: values on a grid, as integers modulo q, each hidden by pads that cancel in the sum.

    y_u = k_u + η_u + Σ_{v>u} m_uv − Σ_{v<u} m_uv   (mod q)        k_u its value in grid steps, η_u its share of noise

Every pair of a *mask graph* shares a pad m_uv, uniform on Z_q^d. The *talk graph* only spreads the y: all are passed on (flood), or
everybody averages with its neighbours until n times the mean, rounded, is the exact sum (average). The steps of one party here
are those of the simulator and of real peers. Rounding, records, modulus and exact averaging: docs/proofs/masked.md#masked-sum; mask
graphs of random rings, which anybody can draw again from a public seed: docs/proofs/masked.md#random-masks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.graphs.convert import as_graph
from netdp.graphs.families import random_order as order_of_ring
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import mixing_matrix
from netdp.graphs.shape import diameter
from netdp.graphs.spectrum import spectral_gap
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.mechanisms.laplace_shares import LEAST_RATE, LaplaceShare
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.checks import count, finite, scale, whole
from netdp.protocols.base import OnGraph
from netdp.protocols.grid import NOISE_LAWS, SLACK, grid_step, nearest, norm_order, power_below


def random_rings(n: int, rings: int, seed: int) -> Graph:
    """The union of so many random rings through all n parties.

    >>> graph = random_rings(50, 3, seed=1)
    >>> graph.is_connected, int(graph.degrees.max()), graph == random_rings(50, 3, seed=1)
    (True, 6, True)
    """
    n, rings, seed = count("n", n), count("rings", rings), whole("seed", seed)
    if n < 3:
        raise InvalidValue(f"a ring has at least three parties, got {n}")
    orders = [random_order(n, seed, ring) for ring in range(rings)]
    ends = np.concatenate([np.column_stack([order, np.roll(order, -1)]) for order in orders])
    edges = np.unique(np.sort(ends, axis=1), axis=0)
    return Graph.from_edges(n, edges, name=f"{rings} random rings of {n}, seed {seed}")


def random_order(n: int, seed: int, ring: int) -> IntArray:
    """All parties in the order of one ring."""
    return order_of_ring(n, "mask graph", seed, ring)


_MIXING_LEFT, _ROUNDING_LEFT = 0.125, 0.35


@dataclass(frozen=True)
class Averaging:
    """The weights (a_t, b_t) of every step, and how far n times the mean may be from the sum at the end."""

    weights: tuple[tuple[float, float], ...]
    mixing_error: float
    rounding_error: float

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.weights)


def averaging(graph: Graph, modulus: int) -> Averaging:
    """The fewest steps after which n times the mean of integers modulo q rounds to their sum, for everybody.

    >>> from netdp import graphs
    >>> averaging(graphs.hypercube(8), 2**32).rounds
    45
    """
    n = graph.n
    gap = spectral_gap(graph)
    rho = min(max(1.0 - gap * (1 - 1e-6), 1e-3), 1 - 1e-15)
    theta = math.acosh(1 / rho)
    scale = n * math.sqrt(n) * modulus / 2
    # cosh(Tθ) ≥ e^{Tθ}/2
    rounds = max(1, math.ceil(math.log(2 * scale / _MIXING_LEFT) / theta))
    b = 1 / math.cosh(min(2 * theta, 300))
    kappa = (1 + b) * (2 * int(graph.degrees.max()) + 6) + 8 * b + 3
    left = np.arange(rounds, dtype=np.float64)  # T − s
    fade = np.exp(-left * theta) * (1 + np.exp(-2 * (rounds - left) * theta))  # c_s/c_T, rounded up: c_T ≥ e^{Tθ}/2
    on_mean = fade * np.sinh(np.minimum((left + 1) * theta, 300)) / math.sinh(theta)
    late = (left + 1) * theta > 300
    on_mean[late] = math.exp(theta) / math.sinh(theta)
    amplified = float((on_mean + math.sqrt(n) * fade * (left + 1)).sum())
    rounding = n * (modulus / 2) * UNIT * (kappa * amplified + 4) * 1.01
    if modulus > 2**52 or rounding > _ROUNDING_LEFT:
        raise Unsupported(
            f"averaging on {graph!r} modulo 2^{modulus.bit_length() - 1} takes {rounds} rounds, in which doubles may be wrong by "
            f"{rounding:.2g} in the sum, so it need not be exact; use spread='flood', a coarser grid, or a smaller modulus"
        )
    weights = [(1.0, 0.0)]
    for t in range(1, rounds):
        # c_{t−1}/c_{t+1}, without large numbers
        b = math.exp(-2 * theta) * (1 + math.exp(-2 * (t - 1) * theta)) / (1 + math.exp(-2 * (t + 1) * theta))
        weights.append((1.0 + b, b))
    return Averaging(tuple(weights), 2 * scale * math.exp(-rounds * theta), rounding)


def averaging_row(graph: Graph, u: int) -> tuple[IntArray, FloatArray]:
    """Whose states party u mixes, its own included, in increasing order, and with which weights (Metropolis).

    >>> from netdp import graphs
    >>> members, weights = averaging_row(graphs.path(4), 1)
    >>> members.tolist(), weights.round(3).tolist()
    ([0, 1, 2], [0.333, 0.333, 0.333])
    """
    W = mixing_matrix(graph)
    start, end = int(W.indptr[u]), int(W.indptr[u + 1])
    order = np.argsort(W.indices[start:end], kind="stable")
    return W.indices[start:end][order].astype(np.int64), W.data[start:end][order].astype(np.float64)


def averaging_start(published: npt.NDArray[np.uint64], modulus: int) -> FloatArray:
    """x⁰ = y − q/2, exact in a double: the state that a party begins with.

    >>> averaging_start(np.array([0, 7], dtype=np.uint64), 8).tolist()
    [-4.0, 3.0]
    """
    if modulus > 2**52:
        raise InvalidValue(f"modulus={modulus} is too large to average in doubles, which hold whole numbers up to 2^52")
    return (published.astype(np.int64) - modulus // 2).astype(np.float64)


def averaging_step(weights: FloatArray, states: FloatArray, a: float, b: float, previous: FloatArray) -> FloatArray:
    """One party's next state, (d,): a·Σ weights·states − b·previous.

    weights    (members,) of `averaging_row`
    states     (members, d) the present states of the same members, its own included
    a, b       of this round, from `Averaging.weights`
    previous   (d,) its own state of the round before; in the first round any, for b = 0
    """
    return averaging_update(weights @ states, a, b, previous)


def averaging_update(mixed: FloatArray, a: float, b: float, previous: FloatArray) -> FloatArray:
    """The next state from what was mixed: of one party, or of all in one array."""
    return np.asarray(a * mixed - b * previous)


def averaging_end(state: FloatArray, n: int, modulus: int) -> npt.NDArray[np.uint64]:
    """The sum of all y modulo q from the last state: n·x is within 0.475 of Σ(y − q/2) if everybody kept to the steps.

    Refuses a state that cannot have come about that way: no number, out of range, or too far from whole numbers.

    >>> averaging_end(np.array([-0.51]), 2, 8).tolist()                   # −4 + 3 = −1, so 0 + 7
    [7]
    >>> averaging_end(np.array([0.26]), 2, 8)
    Traceback (most recent call last):
      ...
    netdp.errors.NetdpError: averaging did not become exact: 2 times the mean is 0.48 from a whole number, ...
    """
    sums = n * state
    half = modulus // 2
    if not np.isfinite(sums).all() or (np.abs(sums) > n * half + 1).any():
        raise NetdpError("averaging did not become exact: a state is out of range; somebody did not keep to the steps")
    nearest = np.rint(sums)
    doubt = float(np.abs(sums - nearest).max(initial=0.0))
    if doubt > _MIXING_LEFT + _ROUNDING_LEFT:
        raise NetdpError(
            f"averaging did not become exact: {n} times the mean is {doubt:.2g} from a whole number, more than "
            f"{_MIXING_LEFT + _ROUNDING_LEFT:g}; somebody did not keep to the steps"
        )
    return (nearest.astype(np.int64) + n * half).astype(np.uint64) & np.uint64(modulus - 1)


_ACCEPTED = 1e-9  # the same for the norm of a record; computing the norm errs by far less than the other 1e-9


def quantised(protocol: MaskedSum, values: FloatArray) -> IntArray:
    """Values in grid steps from the centre: ⌊x/g + ½⌋ − ⌊centre/g + ½⌋, exactly.

    >>> from netdp.families.masked.protocol import MaskedSum
    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(3), sigma=8.0, grid=1.0, centre=10.0, sensitivity=4.0)
    >>> quantised(p, np.array([8.5, 10.4, 11.5])).tolist()
    [-1, 0, 2]
    """
    return nearest(values / protocol.step) - protocol.centre_steps


def record_tables(protocol: MaskedSum, values: Any) -> list[FloatArray]:
    """The records of every party as tables of equally many columns, from a sequence of n tables.

    >>> from netdp.families.masked.protocol import MaskedSum
    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(3), sigma=1.0, unit="record")
    >>> [table.shape for table in record_tables(p, [[0.5, 0.2], [], [[1.0]]])]
    [(2, 1), (0, 1), (1, 1)]
    """
    try:
        tables = [np.asarray(table, dtype=np.float64) for table in values]
    except (TypeError, ValueError):
        raise InvalidValue(
            "unit='record' takes a sequence of tables of numbers, one per party, each of shape (records, columns)"
        ) from None
    if len(tables) != protocol.n:
        raise InvalidValue(
            f"there are {protocol.n} parties, got the records of {len(tables)}; give [] for a party without"
        )
    shaped = [table[:, None] if table.ndim == 1 and table.size else table for table in tables]
    columns = {table.shape[1] for table in shaped if table.ndim == 2}
    if len(columns) > 1 or any(table.ndim != 2 and table.size for table in shaped):
        raise InvalidValue(
            f"the records of a party are a table (records, columns), equally many columns for all, got shapes "
            f"{sorted({table.shape for table in tables})}"
        )
    width = columns.pop() if columns else protocol.dimension
    return [table if table.ndim == 2 else np.zeros((0, width)) for table in shaped]


def quantised_records(protocol: MaskedSum, records: npt.ArrayLike) -> IntArray:
    """A party's value in grid steps, (d,): every record (m, d) is rounded by itself, then whole numbers are added.

    So one record more or less moves the sum by that record's own rounded vector, at most `protocol.distance` steps long,
    whatever the other records are; no records give zero. Each coordinate of the sum is then clipped to `protocol.reach`: that
    moves no two sums further apart, and a refusal would tell how many records there are. Refuses a record of a larger norm
    than the sensitivity (L2; under Laplace noise L1): clip records before.

    >>> from netdp.families.masked.protocol import MaskedSum
    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(3), sigma=8.0, grid=1.0, sensitivity=4.0, unit="record", reach=40.0)
    >>> quantised_records(p, [[0.5], [0.5], [-3.7]]).tolist(), quantised_records(p, []).tolist()
    ([-2], [0])
    """
    limit = protocol.reach_steps
    return np.asarray(np.clip(summed_records(protocol, records), -limit, limit))


def summed_records(protocol: MaskedSum, records: npt.ArrayLike) -> IntArray:
    """The sum of the rounded records, as far as it may reach."""
    if protocol.unit != "record":
        raise InvalidValue(f"records are added up where unit='record', got unit={protocol.unit!r}; use quantised")
    data = np.asarray(records, dtype=np.float64)
    if data.ndim == 1 and data.size and protocol.dimension == 1:
        data = data[:, None]
    if data.ndim == 1 and not data.size:
        data = np.zeros((0, protocol.dimension))
    if data.ndim != 2 or data.shape[1] > protocol.dimension:
        raise InvalidValue(
            f"records must be a table of at most {protocol.dimension} columns, the dimension that the protocol states, got "
            f"shape {data.shape}"
        )
    order = norm_order(protocol)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(data, ord=order, axis=1)
    bad = ~(norms <= protocol.sensitivity * (1 + _ACCEPTED))  # nan too
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidValue(
            f"record {row} has the L{order} norm {norms[row]:g}, more than the sensitivity {protocol.sensitivity:g} that the "
            "privacy rests on; clip records before, or state a larger sensitivity (and more noise)"
        )
    most = math.ceil(protocol.distance)
    if len(data) * (most + 1) >= 2**62:
        raise InvalidValue(
            f"{len(data):,} records of {most:,} grid steps each do not fit in 62 bits; give a coarser grid"
        )
    steps = nearest(data / protocol.step)
    if protocol.dimension == 1:  # norms are accepted a relative 1e-9 above Δ: that may be one step more
        steps = np.clip(steps, -most, most)
    elif order == 1:
        steps = held_to(steps, np.abs(data) / protocol.step, most)
    return np.asarray(steps.sum(axis=0))


def held_to(steps: IntArray, sizes: FloatArray, limit: int) -> IntArray:
    """Rounded records, each with an L1 norm of at most `limit`: where rounding gained more, what gained most is rounded down.

    sizes   the sizes of the coordinates before rounding, in steps

    What becomes of a record is a function of that record alone, so the sum moves by at most `limit` steps.

    >>> held_to(np.array([[1, 1], [2, 0]]), np.array([[0.5, 0.5], [1.75, 0.25]]), 2).tolist()
    [[1, 1], [2, 0]]
    >>> held_to(np.array([[1, -3]]), np.array([[0.5, 2.5]]), 3).tolist(), held_to(np.array([[7, 7]]), np.zeros((1, 2)), 3).tolist()
    ([[0, -3]], [[1, 2]])
    """
    held = steps.copy()
    for row in np.flatnonzero(np.abs(steps).sum(axis=1) > limit).tolist():
        while (excess := int(np.abs(held[row]).sum()) - limit) > 0:
            used = np.flatnonzero(held[row])
            gained = np.abs(held[row, used]) - sizes[row, used]
            first = used[np.argsort(-gained, kind="stable")[:excess]]
            held[row, first] -= np.sign(held[row, first])
    return held


def contribution(
    protocol: MaskedSum, integers: IntArray, noise: IntArray, pads: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """What a party publishes: y = k + η + its pads, modulo q.

    integers   its value in grid steps, from `quantised` or `quantised_records`
    noise      its share of the noise, drawn by `protocol.share_noise.sample(shape, words)`
    pads       Σ_{v>u} m_uv − Σ_{v<u} m_uv modulo 2⁶⁴ (which every modulus divides)

    Refuses a value that the modulus was not made for: the sum would be wrong (and as private as any).

    >>> from netdp.families.masked.protocol import MaskedSum
    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(3), sigma=8.0, grid=1.0, sensitivity=4.0)
    >>> minus_five = np.array([2**64 - 5], dtype=np.uint64)
    >>> contribution(p, np.array([3]), np.array([1]), minus_five).tolist() == [2**32 - 1]
    True
    """
    for name, given, kind in (("integers", integers, "i"), ("noise", noise, "i"), ("pads", pads, "u")):
        if given.dtype.kind != kind or given.shape != integers.shape or given.dtype.itemsize != 8:
            raise InvalidValue(
                f"{name} must be {'u' * (kind == 'u')}int64 numbers of shape {integers.shape}, got {given.dtype} {given.shape}"
            )
    far = int(np.abs(integers).max(initial=0))
    if far > protocol.reach_steps:
        raise InvalidValue(
            f"a value lies {far:,} grid steps from the centre {protocol.centre:g}, more than the {protocol.reach_steps:,} for "
            f"which the modulus was made; state reach={_readable(far * protocol.step)} (it costs no privacy)"
        )
    return reduced(integers.astype(np.uint64) + noise.astype(np.uint64) + pads, protocol.q)


def _readable(value: float) -> str:
    return f"{math.ceil(value * 1000) / 1000:g}" if value < 1e3 else f"{math.ceil(value):d}"


def add_pads(state: npt.NDArray[np.uint64], u: int, others: IntArray, pads: npt.NDArray[np.uint64]) -> None:
    """Add the pads that u shares with `others`, in place: plus at the smaller number of a pair, minus at the larger."""
    first = others > u
    state[u] += pads[first].sum(axis=0, dtype=np.uint64)
    state[u] -= pads[~first].sum(axis=0, dtype=np.uint64)
    state[others[first]] -= pads[first]
    state[others[~first]] += pads[~first]


def reduced(state: npt.NDArray[np.uint64], modulus: int) -> npt.NDArray[np.uint64]:
    """Modulo q, a power of two up to 2⁶³."""
    return state & np.uint64(modulus - 1)


def opened(total: npt.NDArray[np.uint64], modulus: int) -> IntArray:
    """The representative between −q/2 and q/2.

    >>> opened(np.array([3, 7], dtype=np.uint64), 8).tolist()
    [3, -1]
    """
    signed = total.astype(np.int64)
    return np.where(signed >= modulus // 2, signed - modulus, signed)


# ── bytes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def wire_width(modulus: int) -> int:
    """How many bytes a number modulo q takes on a wire: 4 or 8.

    >>> wire_width(2**20), wire_width(2**32), wire_width(2**33)
    (4, 4, 8)
    """
    return 4 if modulus <= 2**32 else 8


def to_bytes(published: npt.NDArray[np.uint64], modulus: int) -> bytes:
    """Numbers modulo q as bytes, little-endian, 4 or 8 each.

    >>> to_bytes(np.array([1, 258], dtype=np.uint64), 2**20).hex()
    '0100000002010000'
    """
    numbers = np.asarray(published)
    if numbers.ndim != 1 or numbers.dtype != np.uint64:
        raise InvalidValue(f"a row of uint64 numbers is written, got {numbers.dtype} of shape {numbers.shape}")
    if (numbers >= np.uint64(modulus)).any():
        raise InvalidValue(f"{int(numbers.max())} is not below the modulus {modulus}; reduce it first")
    return numbers.astype("<u4" if wire_width(modulus) == 4 else "<u8").tobytes()


def from_bytes(data: bytes, modulus: int, columns: int) -> npt.NDArray[np.uint64]:
    """Inverse of `to_bytes`; refuses another length, and numbers that are not below q.

    >>> from_bytes(bytes.fromhex("0100000002010000"), 2**20, 2).tolist()
    [1, 258]
    >>> from_bytes(b"abc", 2**20, 1)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: 1 numbers modulo 2^20 take 4 bytes, got 3
    """
    width, columns = wire_width(modulus), count("columns", columns)
    if len(data) != width * columns:
        raise InvalidValue(
            f"{columns} numbers modulo 2^{modulus.bit_length() - 1} take {width * columns} bytes, got {len(data)}"
        )
    numbers = np.frombuffer(data, dtype="<u4" if width == 4 else "<u8").astype(np.uint64)
    if (numbers >= np.uint64(modulus)).any():
        raise InvalidValue(f"{int(numbers.max())} is not below the modulus 2^{modulus.bit_length() - 1}")
    return numbers


SPREADS = ("flood", "average")

UNITS = ("party", "record")

_FINEST = 2**40  # variance of a share in squared steps that the sampler draws

_LARGEST = 2**62

_USUAL = 2**32

_DEVIATIONS = 10


@dataclass(frozen=True)
class MaskedSum(OnGraph):
    """The mean of all values, each published once under one-time pads that cancel in the sum.

    Parameters
    ----------
    graph : connected `Graph` to talk along; it spreads what is published and has no part in the privacy.
    sigma : standard deviation of one party's share of the noise, in units of the values.
    masks : who shares pads: "complete" (everybody with everybody), an even degree k (k/2 random rings through all
        parties, drawn publicly from `mask_seed`), or a `Graph`.
    spread : "flood" or "average".
    sensitivity : Δ, the largest distance between two values of one party: L2, and L1 under Laplace noise.
    dimension : how many numbers a value has, at most; rounding to the grid moves more of them further apart.
    centre : a public number; all coordinates of all values lie within Δ of it. 0 does for values in [0, Δ] or [−Δ, Δ].
    grid : the step of the grid, a power of two. By default the largest that is no coarser than σ/(16√n) and
        Δ/(1024√d): rounding then adds at most a thousandth to Δ and to the error of the mean.
    modulus : q, a power of two that holds the sum with its noise. By default 2³² to flood, the smallest to average; more
        if that is needed.
    mask_seed : of the random mask graph, if `masks` is a degree.
    attempts : how often a party publishes in all, at most, each time with fresh pads and fresh noise. The guarantee covers
        all of them: whoever delays messages can force them.
    absent : how many parties may be missing from the roster of an attempt, at most. Fewer shares of noise hide each value
        then, and the guarantee counts only those.
    unit : what is protected: "party", all data of one party, or "record", one record added to or removed from its data.
        Then a party's value is the sum of its records, Δ bounds the norm of a record, and `centre` is 0.
    reach : how far from `centre` a coordinate of a party's (rounded) value may lie; by default the sensitivity. Only the
        modulus depends on it.
    law : of the noise, "gaussian" or "laplace". For few numbers Laplace noise is the smaller, and it protects at δ = 0. Its shares
        are A − B with A, B ~ NB(1/h, e^{−r}): h of them are one discrete Laplace noise of deviation σ√h.
    honest : h of Laplace noise: how many honest parties hide each value, at least. By default n − absent − 1, against any single
        observer; against more of them fewer shares are left than make one noise, and that protects much less.
    threshold : states that any so many members together open the sum, in its one attempt, and fewer do not: then it survives
        `absent` parties without a second attempt. What any c parties learn is certified if 2·threshold > n + c.

    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(100), sigma=0.5)
    >>> p.step, p.share, p.q == 2**32, p.rounds
    (0.0009765625, 262144, True, 50)
    >>> p.replace(modulus=2**16)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: modulus=65536 cannot hold the sum of 100 values with its noise; give at least 2**19 = 524288, ...
    """

    kind: ClassVar[str] = "masked-sum"
    graph: Graph
    sigma: float
    masks: str | int | Graph = "complete"
    spread: str = "flood"
    sensitivity: float = 1.0
    dimension: int = 1
    centre: float = 0.0
    grid: float | None = None
    modulus: int | None = None
    mask_seed: int = 0
    attempts: int = 1
    absent: int = 0
    unit: str = "party"
    reach: float | None = None
    law: str = "gaussian"
    honest: int | None = None
    threshold: int | None = None

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "MaskedSum"))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._set(dimension=count("dimension", self.dimension), centre=finite("centre", self.centre))
        self._set(mask_seed=whole("mask_seed", self.mask_seed), masks=self._checked_masks())
        if self.spread not in SPREADS:
            raise InvalidValue(f"unknown spread {self.spread!r}; choose one of {', '.join(SPREADS)}")
        if self.graph.n < 2:
            raise InvalidValue("a masked sum needs at least two parties, the graph has 1")
        self.graph.require_connected("spreading what is published")
        self._check_unit()
        self._check_attempts()
        self._check_law()
        self._check_grid()
        self._check_modulus()

    def _check_unit(self) -> None:
        if self.unit not in UNITS:
            raise InvalidValue(f"unknown unit {self.unit!r}; choose one of {', '.join(UNITS)}")
        self._set(unit=str(self.unit))
        if self.unit == "record" and self.centre != 0:
            raise InvalidValue(
                f"centre={self.centre!r} with unit='record': a party without records adds 0, so records are measured from 0; "
                "subtract the public middle from every record, and leave centre out"
            )
        if self.reach is not None:
            self._set(reach=scale("reach", self.reach))

    def _check_attempts(self) -> None:
        self._set(attempts=count("attempts", self.attempts), absent=whole("absent", self.absent))
        if self.absent >= self.n - 1:
            raise InvalidValue(
                f"absent={self.absent} of {self.n} parties leaves nobody beside a single observer; allow at most {self.n - 2}"
            )
        if self.absent and not self._complete_masks:
            raise Unsupported(
                f"absent={self.absent} on a mask graph that is not complete: whose absence cuts the others apart is not searched "
                'for; share pads between all pairs, masks="complete", or allow no absence'
            )

        if self.threshold is not None:
            self._check_threshold(self.threshold)

    def _check_threshold(self, given: int) -> None:
        self._set(threshold=count("threshold", given))
        if given > self.smallest_roster:
            raise InvalidValue(
                f"threshold={given} with absent={self.absent} of {self.n} parties: the {self.smallest_roster} that are left could "
                "never open the sum; give a smaller threshold, or allow fewer to be absent"
            )
        if self.attempts > 1:
            raise InvalidValue(
                f"threshold={given} with attempts={self.attempts}: with a threshold there is one attempt, which survives absent "
                "parties; leave attempts out, or the threshold"
            )
        if self.spread != "flood":
            raise Unsupported(
                f"threshold={given} with spread={self.spread!r}: averaging needs everybody to the end, and with a threshold "
                "parties may go away; use spread='flood'"
            )
        if not self._complete_masks:
            raise Unsupported(
                f"threshold={given} on a mask graph that is not complete: who is left may fall apart; share pads between all "
                'pairs, masks="complete"'
            )

    def _check_law(self) -> None:
        if self.law not in NOISE_LAWS:
            raise InvalidValue(f"unknown law {self.law!r}; choose one of {', '.join(NOISE_LAWS)}")
        self._set(law=str(self.law))
        if self.honest is None:
            return
        if self.law != "laplace":
            raise InvalidValue(
                f"honest={self.honest!r} says how many shares make one Laplace noise; leave it out, or give law='laplace'"
            )
        self._set(honest=count("honest", self.honest))
        if self.honest > self.n:
            raise InvalidValue(f"honest={self.honest} of {self.n} parties: there are not so many shares of noise")

    @property
    def _complete_masks(self) -> bool:
        if isinstance(self.masks, Graph):
            return self.masks.m == self.n * (self.n - 1) // 2
        return isinstance(self.masks, str) or self.masks == self.n - 1

    def _checked_masks(self) -> str | int | Graph:
        given: Any = self.masks
        if isinstance(given, str):
            if given != "complete":
                raise InvalidValue(f'masks must be "complete", a degree or a Graph, got {given!r}')
            return given
        if isinstance(given, dict):
            given = Graph.from_dict(given)
        if isinstance(given, Graph):
            return given.in_order_of(self.graph)
        degree = count('masks ("complete", a degree or a Graph)', given)
        if degree != self.graph.n - 1 and (degree >= self.graph.n or degree % 2):
            raise InvalidValue(
                f"masks={degree} among {self.graph.n} parties: a degree is even and less than n, as random rings give two partners "
                f"each; or {self.graph.n - 1}, which is everybody"
            )
        return degree

    def _check_grid(self) -> None:
        if self.grid is not None:
            self._set(grid=grid_step(self.grid))
        if self.law == "laplace":
            self._check_rate()
            return
        if self.sigma < self.step:
            raise InvalidValue(
                f"sigma={self.sigma:g} is less than one step of the grid {self.step:g}; give a grid of at most "
                f"{power_below(self.sigma)!r}"
            )
        if self.share > _FINEST or self.sensitivity / self.step > 2**40 or abs(self.centre) / self.step > 2**50:
            raise InvalidValue(
                f"the grid {self.step:g} is too fine for sigma={self.sigma:g}, sensitivity={self.sensitivity:g} and "
                f"centre={self.centre:g}: σ may have 2²⁰ steps, Δ 2⁴⁰ and the centre 2⁵⁰; give a coarser grid"
            )

    def _check_rate(self) -> None:
        whole = self.sigma * math.sqrt(self.parts)
        if whole < self.step:
            raise InvalidValue(
                f"sigma={self.sigma:g}: a whole noise, of {self.parts} shares, has the deviation {whole:g}, less than one step of "
                f"the grid {self.step:g}; give a grid of at most {power_below(whole)!r}"
            )
        if self.rate < LEAST_RATE or self.sensitivity / self.step > 2**40 or abs(self.centre) / self.step > 2**50:
            raise InvalidValue(
                f"the grid {self.step:g} is too fine for sigma={self.sigma:g}, sensitivity={self.sensitivity:g} and "
                f"centre={self.centre:g}: the scale of Laplace noise and Δ may have 2⁴⁰ steps, the centre 2⁵⁰; give a coarser grid"
            )

    def _check_modulus(self) -> None:
        least = self._least_modulus()
        if least > _LARGEST:
            raise InvalidValue(
                f"the sum with its noise needs a modulus of {least:g}, more than 2⁶²; give a coarser grid"
            )
        if self.modulus is None:
            return
        given = count("modulus", self.modulus)
        if given & (given - 1) or given > _LARGEST:
            raise InvalidValue(f"modulus must be a power of two up to 2⁶², got {given}")
        if given < least:
            raise InvalidValue(
                f"modulus={given} cannot hold the sum of {self.n} values with its noise; give at least "
                f"2**{least.bit_length() - 1} = {least}, or a coarser grid"
            )
        self._set(modulus=given)

    def _least_modulus(self) -> int:
        values = self.n * self.reach_steps
        return 1 << (2 * (values + self.furthest_noise(self.n))).bit_length()

    def furthest_noise(self, parties: int) -> int:
        """In steps, how far the noise of so many parties together reaches in one coordinate, but for a chance below 4·10⁻²²."""
        if self.law == "laplace":  # docs/proofs/masked.md#laplace-shares
            return math.ceil(Fraction(4, 3) * (50 + Fraction(parties, self.parts)) / self.rate)
        return _DEVIATIONS * (math.isqrt(parties * self.share) + 1)

    @cached_property
    def step(self) -> float:
        """The step of the grid that is used."""
        if self.grid is not None:
            return self.grid
        rounded = math.sqrt(self.dimension)
        if (
            self.law == "laplace"
        ):  # two vectors may come one step further apart in every coordinate; records are held to Δ
            rounded = 1.0 if self.unit == "record" else float(self.dimension)
        return power_below(min(self.sigma / (16 * math.sqrt(self.n)), self.sensitivity / (1024 * rounded)))

    @cached_property
    def share(self) -> int:
        """The variance of one party's Gaussian noise in squared grid steps: σ²/g², rounded up to a whole number."""
        if self.law != "gaussian":
            raise Unsupported(
                f"a share of {self.law} noise has no Gaussian parameter; it is drawn by share_noise, and share_variance says how "
                "much it is"
            )
        return math.ceil(Fraction(self.sigma / self.step) ** 2)

    @property
    def parts(self) -> int:
        """h: how many shares make one Laplace noise."""
        return self.smallest_roster - 1 if self.honest is None else self.honest

    @cached_property
    def rate(self) -> Fraction:
        """r of the discrete Laplace noise that h shares make, per grid step: so small that its variance is at least h·σ²/g².

        With b = 1/r the variance 1/(2·sinh²(r/2)) is at least 2b² − 1/6, so b² ≥ h·σ²/2g² + 1/12 will do; b is rounded up to a
        multiple of 2⁻¹⁶, in whole numbers.
        """
        if self.law != "laplace":
            raise Unsupported(f"{self.law} noise has no rate; its parameter is share")
        square = self.parts * Fraction(self.sigma / self.step) ** 2 / 2 + Fraction(1, 12)
        return Fraction(2**16, math.isqrt(math.ceil(2**32 * square) - 1) + 1)

    @cached_property
    def share_noise(self) -> DiscreteGaussian | LaplaceShare:
        """The law of one party's share of the noise, in grid steps: `sample(shape, words)` draws it exactly.

        >>> from netdp import graphs
        >>> MaskedSum(graphs.ring(5), sigma=2.0, grid=1.0, law="laplace", honest=3).share_noise.parts
        3
        """
        return LaplaceShare(self.rate, self.parts) if self.law == "laplace" else DiscreteGaussian(self.share)

    @property
    def share_variance(self) -> float:
        """The variance of one party's share in squared grid steps; of Gaussian noise a bound that is met but for discreteness."""
        return self.share_noise.variance if self.law == "laplace" else float(self.share)

    @cached_property
    def q(self) -> int:
        """The modulus that is used."""
        if self.modulus is not None:
            return self.modulus
        least = self._least_modulus()
        return least if self.spread == "average" else max(least, _USUAL)

    @property
    def smallest_roster(self) -> int:
        """How many parties take part in an attempt, at least."""
        return self.n - self.absent

    @cached_property
    def reach_steps(self) -> int:
        """How many grid steps from the centre a coordinate of a party's rounded value may lie."""
        furthest = self.sensitivity if self.reach is None else self.reach
        return math.ceil(furthest * (1 + SLACK) / self.step) + 1

    @property
    def centre_steps(self) -> int:
        """The centre in grid steps, rounded as values are."""
        return int(nearest(np.array([self.centre / self.step]))[0])

    @property
    def distance(self) -> float:
        """How far, in grid steps and L2 norm (L1 under Laplace noise), what is protected moves a party's value.

        Two values of it are so far apart at most, or one record is so long.
        """
        steps = Fraction(self.sensitivity) / Fraction(self.step)
        record = self.unit == "record"
        if self.dimension == 1 or (record and self.law == "laplace"):
            return max(1, math.floor(steps + Fraction(1, 2))) if record else math.ceil(steps)
        if self.law == "laplace":  # every coordinate gains less than one step
            return math.ceil(steps * Fraction(1 + SLACK)) + self.dimension - 1
        moved = math.sqrt(self.dimension) / (2 if record else 1)
        return (self.sensitivity * (1 + SLACK) / self.step + moved) * (1 + 4 * UNIT)

    @cached_property
    def mask_graph(self) -> Graph | None:
        """Who shares pads; None if everybody does with everybody."""
        if self._complete_masks:
            return None
        if isinstance(self.masks, Graph):
            return self.masks
        assert isinstance(self.masks, int)
        return random_rings(self.n, self.masks // 2, self.mask_seed)

    @cached_property
    def averaging(self) -> Averaging:
        """The weights with which averaging is exact; refuses where it cannot be."""
        return averaging(self.graph, self.q)

    @cached_property
    def rounds(self) -> int:
        """How many rounds it takes until everybody holds the sum."""
        if self.spread == "average":
            return self.averaging.rounds
        return diameter(self.graph, work=math.inf).high

    @property
    def link_bytes(self) -> int:
        """How many bytes cross a link in one direction, at most: all y once, or one double per round and coordinate."""
        if self.spread == "average":
            return 8 * self.dimension * self.rounds
        return self.n * self.dimension * wire_width(self.q)

    def prepare(self) -> None:
        self.step, self.share_noise, self.q, self.mask_graph  # noqa: B018

    def to_dict(self) -> dict[str, Any]:
        """What was not asked for is left out, as it was before there was any of it."""
        found = super().to_dict()
        usual = {"law": "gaussian", "honest": None, "threshold": None}
        return {name: value for name, value in found.items() if name not in usual or value != usual[name]}

    def describe(self) -> str:
        if isinstance(self.masks, Graph):
            pads = f"pads along {self.masks.name}"
        elif self._complete_masks:
            pads = "pads between all pairs, so that any coalition faces the noise of all others"
        else:
            assert isinstance(self.masks, int)
            pads = f"pads along {self.masks // 2} random rings (seed {self.mask_seed})"
        more = f", at most {self.attempts} attempts" if self.attempts > 1 else ""
        more += f", at most {self.absent} absent" if self.absent else ""
        more += f", any {self.threshold} of which open the sum" if self.threshold is not None else ""
        more += "; protects single records" if self.unit == "record" else ""
        noise = f"Laplace noise, one of deviation {self.sigma * math.sqrt(self.parts):g} from {self.parts} shares; "
        noise = noise if self.law == "laplace" else ""
        return (
            f"{self.graph.name}: {self.n:,} parties, {self.graph.m:,} edges; masked sum σ={self.sigma:g} Δ={self.sensitivity:g}, "
            f"{noise}{pads}; grid {self.step:g} modulo 2^{self.q.bit_length() - 1}, spread by {self.spread}{more}"
        )
