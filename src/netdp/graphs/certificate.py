"""A proved upper bound on how slowly a walk mixes: λ*, the second largest modulus of an eigenvalue.

Lanczos (ARPACK) approaches λ* from below and may stop short of it. A bound needs an argument that no eigenvalue was
missed.

**The certificate.** N = ℓI + (1 − ℓ)D^−½AD^−½ is symmetric and similar to the transition matrix; √π is its
eigenvector of eigenvalue 1, and B = N − √π√πᵀ has the other eigenvalues and 0. Let v be a unit eigenvector of B with
|eigenvalue| λ*, and x₁, …, x_r independent standard normal vectors. ⟨x_j, v⟩ is standard normal, so P(|⟨x_j, v⟩| ≤ a)
≤ 2a/√(2π) < 0.8a, and all r are that small with probability < (0.8a)^r. Otherwise, for every polynomial f at once,
|f(λ*)|·a ≤ max_j ‖f(B)x_j‖. Take f = T_k(·/λ̂), Chebyshev (|T_k| is even, so the sign of the eigenvalue does not
matter), λ̂ a guess:

    λ* ≤ λ̂ · cosh(arccosh(max_j ‖T_k(B/λ̂)x_j‖/a)/k).

If λ̂ ≥ λ* the norms stay near √n and the bound falls to λ̂ like (ln(2√n/a)/k)²/2; if λ̂ is too small the norms grow,
and the bound stays above λ*: a wrong guess costs sharpness, never truth. As the statement holds for all k and λ̂ at
once, both may be chosen by looking. The coins are the accountant's own; with r = 8 and a = 10^−2.5 it fails with
probability < 2·10⁻²¹.

**Fresh coins.** That probability is over coins that do not depend on the graph. With coins that everybody knows beforehand,
somebody could make a graph whose v is nearly orthogonal to all x_j. So they come from the operating system, new in every
call, unless a seed is given (to repeat a run on a graph that nobody built against it). What is stated does not vary with
them: λ̂ does not depend on the coins, and once λ* ≤ λ̂ + `sharpness`·(1 − λ̂) is proved, just this is said. Only where that
is not reached, within `most` products, the last digits depend on the draw.

**Rounding.** Only the component c_k = ⟨v, y_k⟩ of the computed vectors matters: c_{k+1} = 2(λ*/λ̂)c_k − c_{k−1} +
ε_k, where |ε_k| ≤ η‖y_k‖ + 2u‖y_{k−1}‖: row sums of at most d numbers and entries of N rounded to 4u give (d +
12)u·2/λ̂ =: η (N ≥ 0 and ‖N‖ = 1; the error of the projection is along √π ⟂ v up to u). Each ε_j reaches c_k times
U_{k−1−j}(λ*/λ̂) ≤ (k − j)T_k(λ*/λ̂). So T_k(λ*/λ̂)·(a − Σ_j (k − j)ε_j) ≤ ‖y_k‖: a is replaced by that difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.errors import GraphError, InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray, Progress

from . import Graph

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
            found = eigsh(B, k=1, which="LM", v0=start, ncv=24, tol=tolerance, maxiter=60, return_eigenvectors=True)
        except ArpackNoConvergence as problem:
            if len(problem.eigenvalues):
                return float(np.abs(problem.eigenvalues).max())
            break
        except ArpackError:
            break
        value, start = abs(float(found[0][0])), found[1][:, 0]
        if tolerance * value < 0.02 * (1 - value):  # sharp enough beside the gap
            return value
    else:
        return value
    for _ in range(200):  # plain power iteration
        start = B.matvec(start)
        value = float(np.linalg.norm(start))
        start /= value
    return min(value, 1.0)
