"""Proved bounds on random walks of a graph: how slowly they mix, and how much of where they began they still know.

`spectral_bound` bounds λ*, the second largest modulus of an eigenvalue, from above: λ* ≤ λ̂·cosh(arccosh(‖T_k(B/λ̂)x‖/a)/k) for
random vectors x, with coins fresh from the operating system (docs/proofs/graphs.md#mixing-certificate). `returns` bounds for every
user the excess c_u(t)² = P_u(t)_u/π_u − 1 of its return probability, which bounds where its walk is:
|P_u(t)_i/π_i − 1| ≤ c_u(t)·c_i(t) (docs/proofs/graphs.md#return-probabilities). Rounding is bounded and added in both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import GraphError, InvalidValue
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import UNIT, FloatArray, Progress

_VECTORS, _OVERLAP = 8, 10**-2.5

FAILURE = (0.8 * _OVERLAP) ** _VECTORS
"""The probability, over the accountant's own coins, that a certificate is wrong."""

DENSE = 600
"""Up to this many nodes all eigenvalues are computed: no coins are needed."""


@dataclass(frozen=True)
class SpectralBound:
    """λ* ≤ `value`, wrong with probability ≤ `failure`; `estimate` is what Lanczos found, `products` the work."""

    value: float
    estimate: float
    products: int
    failure: float

    @property
    def gap(self) -> float:
        """1 − value: at most the true gap."""
        return 1.0 - self.value


def spectral_bound(
    graph: Graph,
    laziness: float = 0.0,
    *,
    seed: int | None = None,
    sharpness: float = 0.02,
    most: int = 4000,
    guess: float | None = None,
    dense: int = DENSE,
    progress: Progress | None = None,
) -> SpectralBound:
    """A proved upper bound on the second largest |eigenvalue| of the (lazy) simple walk.

    Iterates until the bound on the gap is within `sharpness` of the estimated one, or `most` products are made. The coins
    are fresh ones of the operating system; a `seed` repeats a run.

    >>> from netdp import graphs
    >>> found = spectral_bound(graphs.complete(5))              # eigenvalues 1 and −1/4
    >>> round(found.value, 12), found.failure
    (0.25, 0.0)
    """
    if not graph.is_connected:
        raise GraphError(f"{graph!r} is not connected: its walk has the eigenvalue 1 more than once and never mixes")
    if not 0 <= laziness < 1:
        raise InvalidValue(f"laziness must lie in [0, 1), got {laziness!r}")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
        raise InvalidValue(f"seed must be a whole number ≥ 0, or None for fresh coins, got {seed!r}")
    if graph.n == 1:
        return SpectralBound(0.0, 0.0, 0, 0.0)
    if graph.n <= dense:
        return _dense(graph, laziness)
    return _certificate(graph, laziness, seed, sharpness, most, guess, progress)


@lru_cache(maxsize=8)
def cached_bound(graph: Graph, laziness: float) -> SpectralBound:
    """`spectral_bound` with its defaults, remembered for the graphs used last: one draw of coins for each per process."""
    return spectral_bound(graph, laziness)


def normalised(graph: Graph, laziness: float) -> Any:
    """N = ℓI + (1 − ℓ)D^−½AD^−½ (CSR)."""
    from scipy.sparse import csr_array, eye_array

    root = np.sqrt(graph.degrees.astype(np.float64))
    rows = np.repeat(np.arange(graph.n), graph.degrees)
    columns = np.asarray(graph.indices)
    N = csr_array((1.0 / (root[rows] * root[columns]), columns, graph.indptr), shape=(graph.n, graph.n))
    if laziness:
        N = csr_array(laziness * eye_array(graph.n) + (1 - laziness) * N)
        N.sort_indices()
    return N


def _dense(graph: Graph, laziness: float) -> SpectralBound:
    # backward stable: every eigenvalue is within a small multiple of n·u of a true one, in order (Weyl)
    values = np.linalg.eigvalsh(normalised(graph, laziness).toarray())
    value = max(abs(float(values[0])), abs(float(values[-2])))
    return SpectralBound(min(1.0, value + 16 * graph.n * UNIT), value, 0, 0.0)


def _certificate(
    graph: Graph,
    laziness: float,
    seed: int | None,
    sharpness: float,
    most: int,
    guess: float | None,
    progress: Progress | None,
) -> SpectralBound:
    from netdp.numerics.kernels import csr_times_block

    N = normalised(graph, laziness)
    root = np.sqrt(graph.degrees / graph.degrees.sum())
    estimate = _lanczos(N, root) if guess is None else float(guess)
    scale = min(max(estimate, 1e-3), 1.0)
    x = np.random.default_rng(seed).standard_normal((graph.n, _VECTORS))  # None: 128 bits of the operating system

    def times(block: FloatArray) -> FloatArray:
        out = csr_times_block(N.indptr, N.indices, N.data, block)
        out -= root[:, None] * (root @ block)
        return out

    noise = (int(graph.degrees.max()) + 13) * UNIT * 2 / scale
    before, now = x, times(x) / scale
    length = float(np.linalg.norm(before, axis=0).max())
    # Σ ε_j and Σ (k − j)ε_j, ε_j ≤ noise·‖y_j‖ + 2u‖y_{j−1}‖
    errors, weighted = 2 * noise * length, 2 * noise * length
    best, k = 1.0, 1
    aim = sharpness * max(1.0 - scale, 1e-12)
    while k < most:
        size = float(np.linalg.norm(now, axis=0).max()) * (1 + 1e-9)
        left = _OVERLAP - weighted
        if left <= 0 or not math.isfinite(size):
            break
        bound = scale * math.cosh(math.acosh(max(size / left, 1.0)) / k) * (1 + 1e-12)
        best = min(best, bound)
        if best - scale <= aim:
            best = max(best, scale + aim)  # proved as well, and the same for all coins
            break
        if size > 1e100:
            break
        errors += noise * size + 4 * UNIT * length
        weighted += errors
        length = size
        following = times(now)
        following *= 2 / scale
        following -= before
        before, now = now, following
        k += 1
        if progress is not None and k % 50 == 0:
            progress(k, most)
    return SpectralBound(min(best, 1.0), scale, k, FAILURE)


def _lanczos(N: Any, root: FloatArray) -> float:
    """A good guess of λ*, from below; nothing depends on it but sharpness, so its start need not be secret."""
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

    n = len(root)
    B = LinearOperator((n, n), matvec=lambda y: N @ y - root * (root @ y), dtype=np.float64)
    start = np.random.default_rng([0, 1]).standard_normal(n)
    for tolerance in (1e-2, 1e-4):
        try:
            pairs = eigsh(B, k=1, which="LM", v0=start, ncv=24, tol=tolerance, maxiter=60, return_eigenvectors=True)
        except ArpackNoConvergence as problem:
            if len(problem.eigenvalues):
                return float(np.abs(problem.eigenvalues).max())
            break
        except ArpackError:
            break
        value, start = abs(float(pairs[0][0])), pairs[1][:, 0]
        if tolerance * value < 0.02 * (1 - value):  # sharp enough beside the gap
            return value
    else:
        return value
    for _ in range(200):  # plain power iteration
        start = B.matvec(start)
        value = float(np.linalg.norm(start))
        start /= value
    return min(value, 1.0)


RETURNS_FAILURE = 1e-30
"""The probability, over the coins, that any of the bounds of a graph is wrong."""

_RETURNS_VECTORS, _BLOCK = 96, 32

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
            bound = self.roots[k].astype(np.float64) * factor
            best = bound if best is None else np.minimum(best, bound)
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
    vectors: int = _RETURNS_VECTORS,
    work: float = _WORK,
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
    # 1 % off the quantile covers SciPy's error in it, and the sums'
    quantile = 0.99 * float(chi2.ppf(RETURNS_FAILURE / (graph.n * len(halves)), vectors))
    table[1:] = np.sqrt(table[1:] / quantile) / root
    return _finished(halves, table, bound.value, RETURNS_FAILURE + bound.failure)


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
