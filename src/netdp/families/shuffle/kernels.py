"""Random walks of many reports at once, compiled.

**Chance without state.** The draw for report i in round r is a hash of (key, r·n + i): output number r·n + i of the generator
SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) started at the key. So the walks are the same however the reports are divided
among threads, and a walk of t rounds is the beginning of a longer one with the same key.

One draw decides both whether a report stays and where it goes: given that it is at least ℓ, a uniform number on [0, 1) is
uniform on [ℓ, 1). The numbers are multiples of 2⁻⁵³, so every neighbour's probability is right to about degree·2⁻⁵³.

**Speed.** A hop is two look-ups far apart in memory, the second at a place that the first one names. A block of reports makes
all first look-ups, then all second ones: within a loop none waits for another, which is several times faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from netdp.engines.choice import cores
from netdp.engines.maps import team
from netdp.numerics.arrays import Int32Array, IntArray

# Below this many reports threads cost more than they bring.
_THREADS_FROM = 100_000

_BLOCK = 1024

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)

_MIX_2 = np.uint64(0x94D049BB133111EB)

_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)

_TO_UNIT = 2.0**-53


@njit(nogil=True, cache=True, inline="always")
def _uniform(key: Any, counter: Any) -> Any:
    """Number `counter` of the stream, in [0, 1)."""
    z = key + _GOLDEN * (np.uint64(counter) + np.uint64(1))
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return np.float64((z ^ (z >> _S31)) >> _S11) * _TO_UNIT


@njit(nogil=True, cache=True)
def _hop(
    indptr: Any,
    indices: Any,
    positions: Any,
    first: int,
    last: int,
    offset: int,
    key: Any,
    lazy: float,
    held: Any,
    left: Any,
) -> None:
    """One hop of the reports first … last − 1; `held` counts who holds how many afterwards, `left` who sent how many.

    An empty `left` is not counted into: without laziness users send all they held.
    """
    draws, entries = np.empty(_BLOCK), np.empty(_BLOCK, dtype=np.int64)
    stretch = 1.0 / (1.0 - lazy)
    for block in range(first, last, _BLOCK):
        size = min(_BLOCK, last - block)
        for j in range(size):
            draws[j] = _uniform(key, offset + block + j)
        for j in range(size):
            here = positions[block + j]
            start = indptr[here]
            degree = indptr[here + 1] - start
            choice = min(np.int64((draws[j] - lazy) * stretch * degree), degree - 1)
            entries[j] = start + choice if draws[j] >= lazy else -1
        if len(left):
            for j in range(size):
                if entries[j] >= 0:
                    left[positions[block + j]] += 1
        for j in range(size):
            if entries[j] >= 0:
                positions[block + j] = indices[entries[j]]
        for j in range(size):
            held[positions[block + j]] += 1


@njit(nogil=True, cache=True)
def _gather(counts: Any, total: Any) -> int:
    """The counts of all threads into `total`, which is overwritten; they are set to zero. Returns the largest."""
    largest = 0
    for u in range(len(total)):
        value = 0
        for piece in range(len(counts)):
            value += counts[piece, u]
            counts[piece, u] = 0
        total[u] = value
        largest = max(largest, value)
    return largest


def walk(
    indptr: IntArray,
    indices: Int32Array,
    positions: Int32Array,
    rounds: int,
    laziness: float,
    key: int,
    pieces: int | None = None,
) -> tuple[IntArray, IntArray, IntArray]:
    """Move every report `rounds` times, in place: to a uniform neighbour, or nowhere with probability `laziness`.

    Returns how many reports each user sent in all, and for every round the most that one user sent in it and the most that
    one user held after it.

    >>> from netdp import graphs
    >>> ring, reports = graphs.ring(5), np.arange(5, dtype=np.int32)
    >>> sent, most_sent, most_held = walk(ring.indptr, ring.indices, reports, 3, 0.0, key=1)
    >>> int(sent.sum()), most_sent[0].item()
    (15, 1)
    """
    n, many = len(indptr) - 1, len(positions)
    parts = pieces or (1 if many < _THREADS_FROM else cores())
    cuts = np.linspace(0, many, parts + 1).astype(np.int64).tolist()
    seed = np.uint64(key)
    held = np.zeros((parts, n), dtype=np.int32)
    left = np.zeros((parts, n if laziness else 0), dtype=np.int32)
    now = np.bincount(positions, minlength=n).astype(np.int32)
    sent = np.zeros(n, dtype=np.int64)
    most_sent, most_held = np.zeros(rounds, dtype=np.int64), np.zeros(rounds, dtype=np.int64)
    gone = np.zeros(n, dtype=np.int32)
    with team(parts) as together:
        for r in range(rounds):

            def piece(k: int, offset: int = r * many) -> None:
                _hop(indptr, indices, positions, cuts[k], cuts[k + 1], offset, seed, laziness, held[k], left[k])

            # plain threads: numba's own pool must not be entered from two Python threads at once
            together(piece, parts)
            if laziness:
                most_sent[r] = _gather(left, gone)
                sent += gone
            else:
                most_sent[r] = now.max()
                sent += now
            most_held[r] = _gather(held, now)
    return sent, most_sent, most_held
