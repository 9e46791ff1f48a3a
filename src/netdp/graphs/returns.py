"""How much a walk still knows of where it began, user by user: proved bounds on return probabilities.

For a walk of t steps with the stationary law π, and for every user u let

    c_u(t)² = P_u(t)_u/π_u − 1 for even t,  so that  |P_u(t)_i/π_i − 1| ≤ c_u(t)·c_i(t)  for all users u and i.

Proof. N = D^½PD^−½ is symmetric, B = N − √π√πᵀ. P_u(t)_i/π_i − 1 = ⟨e_u, B^t e_i⟩/√(π_uπ_i). For a + b ≤ t, with λ* = ‖B‖,
that is at most λ*^{t−a−b}·‖B^a e_u‖‖B^b e_i‖/√(π_uπ_i) (Cauchy and Schwarz), and ‖B^a e_u‖² = N^{2a}(u, u) − π_u. So

    c_u(t) = min over s ≤ t/2 of λ*^{t/2 − s}·‖B^s e_u‖/√π_u

will do for every t, and s = 0 gives the bound that knows nothing but λ*. ∎ A user in the core forgets soon where it began,
one at the tip of a pendant tree does not; the product of the two is what matters.

**All users at once.** ‖B^s e_u‖² for every u would take n walks. But if x is a vector of independent standard normal numbers,
then (B^s x)_u is *exactly* normal with that variance. With r such vectors, Σ_j (B^s x_j)_u² = ‖B^s e_u‖²·χ²_r, so

    ‖B^s e_u‖² ≤ Σ_j (B^s x_j)_u²/q   for all u and all s looked at,   P(χ²_r ≤ q) = FAILURE/(n·number of s),

but for probability FAILURE, over the coins.

**Coins.** They are drawn from the digest (BLAKE2b) of the graph, so that a graph has the same bounds whenever it is asked
about. Somebody who may choose the graph and tries M of them until one has unlucky coins succeeds with probability at most
M·FAILURE, and FAILURE is 10⁻³⁰.

**Rounding.** One product errs by at most (d + 6)u·N|y| entry by entry, which has norm ≤ (d + 6)u‖y‖ (d the largest degree,
‖N‖ = 1), one projection by (n + 8)u‖y‖; later products do not enlarge norms. What adds up is added to every entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from netdp.numerics.arrays import UNIT, FloatArray, Progress

from . import Graph
from .certificate import cached_bound, normalised

FAILURE = 1e-30
"""The probability, over the coins, that any of the bounds of a graph is wrong."""

_VECTORS, _BLOCK = 96, 32
_WORK = 1.6e10  # multiplications, some fifteen seconds
_PER_OCTAVE = 4
_PROJECT = 16  # steps between projections off √π


@dataclass(frozen=True, eq=False)
class Returns:
    """Bounds on c_u(t) for every user and every t: `at`.

    halves    the s that were looked at; 0 is the first
    roots     (len(halves), n): bounds on ‖B^s e_u‖/√π_u
    rate      λ* ≤ rate
    failure   the probability that one of all these is wrong
    """

    halves: npt.NDArray[np.int64]
    roots: npt.NDArray[np.float32]
    rate: float
    failure: float

    def at(self, rounds: int) -> FloatArray:
        """c_u(rounds), one per user."""
        usable = np.flatnonzero(2 * self.halves <= rounds)
        best: FloatArray | None = None
        with np.errstate(divide="ignore"):
            log = np.log(self.rate) if self.rate < 1 else 0.0
        for k in usable.tolist():
            factor = math.exp(min(0.0, (rounds / 2 - int(self.halves[k])) * float(log))) * (1 + 1e-12)
            found = self.roots[k].astype(np.float64) * factor
            best = found if best is None else np.minimum(best, found)
        assert best is not None
        return best


@lru_cache(maxsize=8)
def returns(graph: Graph, laziness: float = 0.0) -> Returns:
    """Bounds on how well every user's walk has mixed, at all times, remembered for the graphs used last.

    >>> from netdp import graphs
    >>> found = returns(graphs.regular(2000, 8, 0))
    >>> at20 = found.at(20)                     # the truth is 0.32; no user is much worse than another
    >>> bool(0.32 < at20.max() < 1.5)
    True
    """
    return find_returns(graph, laziness)


def find_returns(
    graph: Graph,
    laziness: float = 0.0,
    *,
    vectors: int = _VECTORS,
    work: float = _WORK,
    progress: Progress | None = None,
) -> Returns:
    """As `returns`, with more or less `work` (products) or `vectors` (sharpness)."""
    from scipy.stats import chi2

    from netdp.numerics.kernels import csr_times_block

    bound = cached_bound(graph, laziness)
    share = graph.degrees / graph.degrees.sum()
    first = np.sqrt(1 / share - 1) * (1 + 8 * UNIT)
    N = normalised(graph, laziness)
    root = np.sqrt(share)
    halves = _halves(int(work / (N.nnz * vectors)), bound.value)
    table = np.empty((len(halves) + 1, graph.n), dtype=np.float64)
    table[0] = first
    if not len(halves):
        return _finished(np.zeros(0, np.int64), table, bound.value, bound.failure)
    coins = np.random.default_rng(np.random.SeedSequence([int(graph.digest, 16), 0x72657475726E]))
    table[1:] = 0.0
    step, project = (int(graph.degrees.max()) + 6) * UNIT, (graph.n + 8) * UNIT
    done = 0
    for start in range(0, vectors, _BLOCK):
        y = coins.standard_normal((graph.n, min(_BLOCK, vectors - start)))
        error = np.zeros(y.shape[1])
        looked = 0
        for s in range(int(halves[-1]) + 1):
            if s:
                error += 2 * step * np.linalg.norm(y, axis=0)
                y = csr_times_block(N.indptr, N.indices, N.data, y)
            if s % _PROJECT == 0:
                error += 2 * project * np.linalg.norm(y, axis=0)
                y -= root[:, None] * (root @ y)
            if looked < len(halves) and s == halves[looked]:
                table[looked + 1] += ((np.abs(y) + error) ** 2).sum(axis=1)
                looked += 1
            if progress is not None and s % 64 == 0:
                progress(done + s, int(halves[-1]) * -(-vectors // _BLOCK))
        done += int(halves[-1])
    # 1 % off the quantile covers SciPy's error in it, and the sums'
    quantile = 0.99 * float(chi2.ppf(FAILURE / (graph.n * len(halves)), vectors))
    table[1:] = np.sqrt(table[1:] / quantile) / root
    return _finished(halves, table, bound.value, FAILURE + bound.failure)


def _finished(halves: npt.NDArray[np.int64], table: FloatArray, rate: float, failure: float) -> Returns:
    table[1:] = np.minimum(table[1:], table[0])
    rounded = np.nextafter(table.astype(np.float32), np.float32(np.inf))
    rounded.setflags(write=False)
    return Returns(np.insert(halves, 0, 0), rounded, rate, failure)


def _halves(most: int, rate: float) -> npt.NDArray[np.int64]:
    """The s that are looked at: four per doubling, as long as there is something left to forget."""
    if 0 < rate < 1:
        most = min(most, math.ceil(50.0 / -math.log(rate)))
    elif rate == 0:
        most = min(most, 1)
    if most < 1:
        return np.zeros(0, np.int64)
    count = int(_PER_OCTAVE * math.log2(most)) + 1
    return np.unique(np.append(np.floor(2.0 ** (np.arange(count) / _PER_OCTAVE)), most)).astype(np.int64)
