"""Muffliato as printed (Cyffers, Even, Bellet, Massoulié: Muffliato, NeurIPS 2022): Theorem 1, Theorem 12, Corollary 1.

**These are not upper bounds.** The proof of Theorem 1 adds the divergences of single messages as if their noises were
independent, but all messages carry the same initial noise. On a ring with weights 1/3, after two rounds v knows the
noisy value of a party two hops away exactly (loss factor 1); the formula says 1/3. Tests: published/test_muffliato.py.

All functions return factors: multiples of the local-DP loss αΔ²/(2σ²), so that RDP(α) = factor · αΔ²/(2σ²).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import njit

from netdp.engine import cores, team
from netdp.numerics.arrays import FloatArray
from netdp.numerics.kernels import csr_times_block
from netdp.protocols import Gossip, GossipRounds
from netdp.views import observer_set

REFERENCES = (
    "E. Cyffers, M. Even, A. Bellet, L. Massoulié. Muffliato: Peer-to-Peer Privacy Amplification for Decentralized "
    "Optimization and Averaging. NeurIPS 2022.",
)
ERRATA = (
    "Theorem 1 and Theorem 12 are not upper bounds: the proof composes the messages as if their noises were independent; "
    "they are the same noise. Ring, weights 1/3, two rounds, two hops: true factor 1, formula 1/3.",
    "The formula exceeds 1 for close pairs, although no view can cost more than local DP.",
    "Equation (14) sums over all parties that talk to a colluder, colluders included; equation (15) counts only the others.",
    "Appendix C.3 prints the mean loss with n² in the denominator; Theorem 1 gives n.",
    "The formula knows neither refresh nor masks; it is computed for plain gossip with the same matrix, rounds and σ.",
)

# Columns of Wᵗ carried at once: a block of this width and 2,000 rows stays in the cache of one core.
_BLOCK = 48


def theorem1(protocol: Gossip, observer: int | str) -> FloatArray:
    """f(u, v) = Σ_{w~v} Σ_{t<T} (Wᵗ)²_{u,w} / ‖(Wᵗ)_w‖², for all u, as a factor; nan at the observer.

    >>> from netdp import graphs
    >>> theorem1(Gossip(graphs.ring(9), rounds=2, sigma=1.0), 0).round(4).tolist()
    [nan, 1.3333, 0.3333, 0.0, 0.0, 0.0, 0.0, 0.3333, 1.3333]
    """
    return theorem12(protocol, [observer])


def theorem12(
    protocol: Gossip | GossipRounds, observers: int | str | Iterable[int | str], *, ids: bool = False
) -> FloatArray:
    """Equation (14): the same sum over all w that talk to some colluder, colluders included, as printed.

    `ids=True`: the observers are node numbers that were looked up already.
    """
    members = observer_set(protocol.graph, observers, ids=ids)
    senders = np.unique(np.concatenate([protocol.graph.neighbors(v) for v in members])).astype(np.int64)
    total = np.zeros(protocol.graph.n)
    for first in range(0, len(senders), _BLOCK):
        chosen = senders[first : first + _BLOCK]
        block = np.zeros((protocol.graph.n, len(chosen)))
        block[chosen, np.arange(len(chosen))] = 1.0
        for t in range(protocol.rounds):
            if t:
                block = _times_matrix(protocol, block)
            squares = block**2
            total += squares @ (1.0 / squares.sum(axis=0))
    total[list(members)] = np.nan
    return total


def theorem1_pairwise(protocol: Gossip) -> FloatArray:
    """Theorem 1 for all ordered pairs: [u, v] is what v is said to learn about u; nan on the diagonal.

    The sum over w ~ v is linear, so the normalised squares are summed over t first (in blocks of columns that stay in
    the cache, Wᵗ applied step by step) and multiplied by the adjacency matrix once.
    """
    graph, W = protocol.graph, protocol.matrix
    n = graph.n
    shares = np.zeros((n, n))
    firsts = range(0, n, _BLOCK)
    result = np.empty((n, n))
    threads = cores()
    rows = np.linspace(0, n, 4 * threads + 1).astype(int).tolist()
    with team(threads) as together:
        together(
            lambda i: _add_shares(
                W.indptr, W.indices, W.data, protocol.rounds, shares, firsts[i], min(firsts[i] + _BLOCK, n)
            ),
            len(firsts),
        )
        together(
            lambda i: _sum_over_neighbours(graph.indptr, graph.indices, shares, result, rows[i], rows[i + 1]),
            len(rows) - 1,
        )
    np.fill_diagonal(result, np.nan)
    return result


def corollary1(protocol: Gossip, observer: int | str) -> FloatArray:
    """n · max_{w~v} W_{v,w}⁻² · Σ_{t=1}^{T} P(Xᵗ = v | X⁰ = u)², X the random walk with transitions W."""
    (v,) = observer_set(protocol.graph, observer)
    weights = np.asarray(protocol.matrix[[v], :].todense()).ravel()[protocol.graph.neighbors(v)]
    walk = np.zeros((protocol.graph.n, 1))
    walk[v] = 1.0
    total = np.zeros(protocol.graph.n)
    for _ in range(protocol.rounds):
        walk = _times_matrix(protocol, walk)  # W is symmetric: column v of Wᵗ holds P(Xᵗ = v | X⁰ = u)
        total += walk[:, 0] ** 2
    total *= protocol.graph.n / weights.min() ** 2
    total[v] = np.nan
    return total


def mean_loss(protocol: Gossip, observer: int | str) -> float:
    """ε̄_v = T_v/n as a factor, T_v = T·deg(v) the messages v receives."""
    (v,) = observer_set(protocol.graph, observer)
    return protocol.rounds * int(protocol.graph.degrees[v]) / protocol.graph.n


def _times_matrix(protocol: Gossip | GossipRounds, block: FloatArray) -> FloatArray:
    W = protocol.matrix
    return csr_times_block(W.indptr, W.indices, W.data, block)


@njit(nogil=True, cache=True, fastmath={"contract"})
def _add_shares(indptr: Any, indices: Any, data: Any, rounds: int, shares: Any, first: int, last: int) -> None:
    """shares[u, w] = Σ_{t<T} (Wᵗ)²_{u,w} / ‖(Wᵗ)_w‖² for the columns w in [first, last)."""
    n, width = len(indptr) - 1, last - first
    current, following = np.zeros((n, width)), np.empty((n, width))
    total = np.zeros((n, width))  # contiguous, so that it stays in the cache; written out once
    for column in range(width):
        current[first + column, column] = 1.0
        total[first + column, column] = 1.0  # t = 0: the own column alone
    squares = np.empty(width)
    for _ in range(1, rounds):
        squares[:] = 0.0
        for row in range(n):
            target = following[row]
            target[:] = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                weight, source = data[entry], current[indices[entry]]
                for column in range(width):
                    target[column] += weight * source[column]
            for column in range(width):
                squares[column] += target[column] * target[column]
        current, following = following, current
        for column in range(width):
            squares[column] = 1.0 / squares[column]
        for row in range(n):
            for column in range(width):
                total[row, column] += current[row, column] * current[row, column] * squares[column]
    shares[:, first:last] = total


@njit(nogil=True, cache=True, fastmath={"contract"})
def _sum_over_neighbours(indptr: Any, indices: Any, shares: Any, result: Any, first: int, last: int) -> None:
    for row in range(first, last):
        for v in range(len(indptr) - 1):
            total = 0.0
            for entry in range(indptr[v], indptr[v + 1]):
                total += shares[row, indices[entry]]
            result[row, v] = total
