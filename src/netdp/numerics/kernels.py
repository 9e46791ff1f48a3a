"""Compiled kernels on CSR matrices: compiled on first use, cached on disk, free of the interpreter lock."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from netdp.engines.choice import cores
from netdp.engines.maps import team
from netdp.numerics.arrays import FloatArray

# Below this many multiplications threads cost more than they bring.
_THREADS_FROM = 4_000_000


@njit(nogil=True, cache=True, fastmath={"contract"})
def _multiply_rows(indptr: Any, indices: Any, data: Any, block: Any, out: Any, first: int, last: int) -> None:
    for row in range(first, last):
        for column in range(block.shape[1]):
            out[row, column] = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            weight, source = data[entry], indices[entry]
            for column in range(block.shape[1]):
                out[row, column] += weight * block[source, column]


def csr_times_block(indptr: Any, indices: Any, data: Any, block: FloatArray) -> FloatArray:
    """A CSR matrix times a dense block of columns (n × b).

    Faster than SciPy's product for narrow blocks, and on all cores where the block is large.

    >>> from netdp import graphs
    >>> A = graphs.ring(4).adjacency()
    >>> csr_times_block(A.indptr, A.indices, A.data, np.arange(4.0)[:, None]).ravel().tolist()
    [4.0, 2.0, 4.0, 2.0]
    """
    rows = np.ascontiguousarray(block)
    n = len(indptr) - 1
    out = np.empty((n, rows.shape[1]))
    if len(indices) * rows.shape[1] < _THREADS_FROM or (threads := cores()) == 1:
        _multiply_rows(indptr, indices, data, rows, out, 0, n)
        return out
    # Plain threads over row ranges: numba's own pool must not be entered from two Python threads at once.
    cuts = np.searchsorted(indptr, np.linspace(0, len(indices), 4 * threads + 1)).clip(0, n)
    cuts[0], cuts[-1] = 0, n
    with team(threads) as together:
        together(
            lambda i: _multiply_rows(indptr, indices, data, rows, out, int(cuts[i]), int(cuts[i + 1])), len(cuts) - 1
        )
    return out


@njit(nogil=True, cache=True)
def average_along(edges: Any, state: Any, watched: Any, seen: Any) -> None:
    """Replace, edge after edge, the states of its two ends by their mean, in place; (−1, −1) does nothing.

    Before each exchange, what a watched party is about to receive is written to the next row of `seen`.

    >>> state, nobody = np.array([[0.0], [4.0], [8.0]]), np.zeros(3, dtype=bool)
    >>> average_along(np.array([[0, 1], [-1, -1], [1, 2]]), state, nobody, np.empty((0, 1)))
    >>> state.ravel().tolist()
    [2.0, 5.0, 5.0]
    """
    row = 0
    for step in range(len(edges)):
        u, w = edges[step, 0], edges[step, 1]
        if u < 0:
            continue
        if watched[u]:  # as in a transcript: by receiver, and the first end is the smaller number
            seen[row] = state[w]
            row += 1
        if watched[w]:
            seen[row] = state[u]
            row += 1
        for column in range(state.shape[1]):
            mean = 0.5 * (state[u, column] + state[w, column])
            state[u, column] = mean
            state[w, column] = mean


@njit(nogil=True, cache=True)
def drift_along(edges: Any, x: Any, z: Any, tau: float, zeta: float, watched: Any, seen: Any) -> None:
    """Accelerated exchanges, in place: at every step all x and z drift towards each other, then the two ends exchange x.

    >>> x, nobody = np.array([[0.0], [4.0]]), np.zeros(2, dtype=bool)
    >>> z = x.copy()
    >>> drift_along(np.array([[0, 1]]), x, z, 0.25, 1.0, nobody, np.empty((0, 1)))
    >>> x.ravel().tolist(), z.ravel().tolist()
    ([2.0, 2.0], [4.0, 0.0])
    """
    row = 0
    for step in range(len(edges)):
        for party in range(x.shape[0]):
            for column in range(x.shape[1]):
                a, b = x[party, column], z[party, column]
                x[party, column] = (1 - tau) * a + tau * b
                z[party, column] = (1 - tau) * b + tau * a
        u, w = edges[step, 0], edges[step, 1]
        if u < 0:
            continue
        if watched[u]:
            seen[row] = x[w]
            row += 1
        if watched[w]:
            seen[row] = x[u]
            row += 1
        for column in range(x.shape[1]):
            apart = x[u, column] - x[w, column]
            x[u, column] -= 0.5 * apart
            x[w, column] += 0.5 * apart
            z[u, column] -= zeta * apart
            z[w, column] += zeta * apart


@njit(nogil=True, cache=True)
def absorbed(indptr: Any, indices: Any, data: Any, start: int, stop: Any, horizon: int) -> Any:
    """P(a walk from `start` is first at one of the nodes marked in `stop` after t steps), t = 1 … horizon.

    The arrays are the *transposed* transition matrix: row w holds the probabilities of stepping to w.
    """
    here = np.zeros(stop.size)
    here[start] = 1.0
    law = np.zeros(horizon)
    for t in range(horizon):
        there = np.zeros(stop.size)
        for w in range(stop.size):
            total = 0.0
            for entry in range(indptr[w], indptr[w + 1]):
                total += data[entry] * here[indices[entry]]
            if stop[w]:
                law[t] += total
            else:
                there[w] = total
        here = there
    return law
