"""What one party does in a masked sum: rounding to the grid, adding noise and pads, reduction, and bytes on a wire.

Simulator and real peers take the same steps from here, so that they cannot drift apart. All of them work on one
party's numbers (d,) or on those of all parties (n, d).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count

from .grid import nearest

if TYPE_CHECKING:
    from .masked import MaskedSum

_ACCEPTED = 1e-9  # the same for the norm of a record; computing the norm errs by far less than the other 1e-9


def quantised(protocol: MaskedSum, values: FloatArray) -> IntArray:
    """Values in grid steps from the centre: ⌊x/g + ½⌋ − ⌊centre/g + ½⌋, exactly.

    >>> from netdp import MaskedSum, graphs
    >>> p = MaskedSum(graphs.ring(3), sigma=8.0, grid=1.0, centre=10.0, sensitivity=4.0)
    >>> quantised(p, np.array([8.5, 10.4, 11.5])).tolist()
    [-1, 0, 2]
    """
    return nearest(values / protocol.step) - protocol.centre_steps


def record_tables(protocol: MaskedSum, values: Any) -> list[FloatArray]:
    """The records of every party as tables of equally many columns, from a sequence of n tables.

    >>> from netdp import MaskedSum, graphs
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
    moves no two sums further apart, and a refusal would tell how many records there are. Refuses a record of a larger L2 norm
    than the sensitivity: clip records before.

    >>> from netdp import MaskedSum, graphs
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
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(data, axis=1)
    bad = ~(norms <= protocol.sensitivity * (1 + _ACCEPTED))  # nan too
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidValue(
            f"record {row} has the L2 norm {norms[row]:g}, more than the sensitivity {protocol.sensitivity:g} that the privacy "
            "rests on; clip records before, or state a larger sensitivity (and more noise)"
        )
    most = math.ceil(protocol.distance)
    if len(data) * (most + 1) >= 2**62:
        raise InvalidValue(
            f"{len(data):,} records of {most:,} grid steps each do not fit in 62 bits; give a coarser grid"
        )
    steps = nearest(data / protocol.step)
    if protocol.dimension == 1:  # norms are accepted a relative 1e-9 above Δ: that may be one step more
        steps = np.clip(steps, -most, most)
    return np.asarray(steps.sum(axis=0))


def contribution(
    protocol: MaskedSum, integers: IntArray, noise: IntArray, pads: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """What a party publishes: y = k + η + its pads, modulo q.

    integers   its value in grid steps, from `quantised` or `quantised_records`
    noise      its share of the noise, drawn by `DiscreteGaussian(protocol.share)`
    pads       Σ_{v>u} m_uv − Σ_{v<u} m_uv modulo 2⁶⁴ (which every modulus divides)

    Refuses a value that the modulus was not made for: the sum would be wrong (and as private as any).

    >>> from netdp import MaskedSum, graphs
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
