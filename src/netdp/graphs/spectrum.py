r"""How fast gossip mixes: the spectral gap of a gossip matrix.

λ_W = min over the eigenvalues λ of W, save the simple eigenvalue 1 of the constant vector, of 1 − |λ|
(Muffliato, Definition 2). Synchronous gossip converges like exp(−tλ_W), accelerated gossip like exp(−t√λ_W).
Here a further eigenvalue 1, that is a disconnected graph, gives a gap of 0 (its gossip never converges to the
mean), where the set Sp(W) \ {1} of the paper, which assumes a connected graph, would overlook it.

>>> from netdp.graphs import ring, hypercube
>>> round(spectral_gap(hypercube(3)), 12)
0.5
>>> spectral_gap(ring(1_000_000))  # 4 sin²(π/n)/3, by the closed form
1.3159...e-11
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import csr
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import MIXINGS, GossipMatrix, Mixing, mixing_matrix
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import between

#: Up to this many nodes all eigenvalues are computed (about a second); above, only the extreme one.
DENSE_LIMIT = 2000

#: Restarts of Lanczos, some 20 products with W each, before it counts as not converging.
RESTARTS = 400


def spectral_gap(W_or_graph: Any, kind: Mixing = "metropolis") -> float:
    """The spectral gap λ_W of a gossip matrix, or of the mixing `kind` of a graph.

    The closed form is used where the graph has one and W is an affine function of its Laplacian: for
    maximum-degree mixing always, for Metropolis on regular graphs, paths and stars. Otherwise all eigenvalues
    are computed up to `DENSE_LIMIT` nodes, and above that Lanczos (ARPACK) runs with the constant vector
    deflated; where it does not converge, on long thin graphs, Lanczos runs on the inverse. Such a result is
    accepted only if its residual puts an eigenvalue within 1e-8 of it, and within 1 % of the gap; failing
    that `Unsupported` is raised.
    """
    if isinstance(W_or_graph, Graph):
        graph = W_or_graph
        if isinstance(kind, GossipMatrix):
            return _numerical(kind.matrix)
        if kind not in MIXINGS:
            raise InvalidValue(f"no mixing is called {kind!r}; choose one of {', '.join(MIXINGS)}")
        if graph.n == 1:
            return 1.0
        if not graph.is_connected:
            return 0.0
        closed = _closed_form(graph, kind)
        return closed if closed is not None else _numerical(mixing_matrix(graph, kind))
    return _numerical(_square(W_or_graph))


def chebyshev_gamma(gap: float) -> float:
    """The scale γ = 2(1 − √(λ(1 − λ/4)))/(1 − λ/2)² of the accelerated gossip with spectral gap λ.

    The recursion is x^{t+1} = γ W x^t + (1 − γ) x^{t−1} (Muffliato, Algorithm 1, after Berthier, Bach and
    Gaillard 2020). With ρ = 1 − λ/2 this is 2(1 − √(1 − ρ²))/ρ² = 2/(1 + √(1 − ρ²)); the last form does not
    cancel. It decreases from 2 (gap 0, excluded) to about 1.072 (gap 1). As printed, ρ is 1 − λ/2: a
    little more momentum than the bound 1 − λ on the other eigenvalues of W would ask for.

    >>> round(chebyshev_gamma(1.0), 6)
    1.071797
    >>> 1 <= chebyshev_gamma(1e-12) <= 2
    True
    """
    gap = between("the spectral gap", gap, 0.0, 1.0, open_low=True)
    return 2.0 / (1.0 + math.sqrt(gap * (1.0 - gap / 4.0)))


def _gap_of(x: FloatArray) -> float:
    """The gap from the extreme eigenvalues x = 1 − λ of I − W, the one of the constant vector left out."""
    # 1 − |1 − x| = min(x, 2 − x), without forming 1 − x: a small x keeps all its digits
    return float(np.clip(min(x.min(), 2.0 - x.max()), 0.0, 1.0))


def _closed_form(graph: Graph, kind: str) -> float | None:
    if graph.laplacian_spectrum is None:
        return None
    highest = graph.degrees.max()
    if not kind.endswith("maximum-degree"):
        # The two mixings agree when every edge touches a node of the highest degree: regular, path, star.
        rows = csr.rows_of(graph.indptr)
        if np.any(np.maximum(graph.degrees[rows], graph.degrees[graph.indices]) < highest):
            return None
    step = 1.0 / ((0.0 if kind.endswith("hamilton") else 1.0) + float(highest))
    if kind.startswith("lazy-"):
        step /= 2
    return _gap_of(graph.laplacian_spectrum()[1:] * step)


def _square(W: Any) -> Any:
    from scipy.sparse import csr_array

    shape = np.shape(W) if not hasattr(W, "shape") else W.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise InvalidValue(f"a gossip matrix is square, not of shape {tuple(shape)}")
    W = csr_array(W, dtype=np.float64)
    if not np.isfinite(W.data).all():
        raise InvalidValue("a gossip matrix has finite entries; W has NaN or infinite ones")
    lopsided = abs(W - W.T).max()
    if lopsided > 1e-9:
        raise InvalidValue(f"a gossip matrix is symmetric; W and its transpose differ by {lopsided:g}")
    row = int(np.argmax(np.abs(W.sum(axis=1) - 1)))
    if abs(W.sum(axis=1)[row] - 1) > 1e-9:
        raise InvalidValue(
            f"row {row} of W sums to {W.sum(axis=1)[row]:.12g}, not 1: no gossip matrix; "
            "mixing.check_gossip_matrix(W, graph) tells more"
        )
    return W


def _numerical(W: Any) -> float:
    from scipy.sparse.csgraph import connected_components

    n = W.shape[0]
    if n == 1:
        return 1.0
    support = W.copy()
    support.eliminate_zeros()
    if connected_components(support, directed=False, return_labels=False) > 1:
        return 0.0
    if n <= DENSE_LIMIT:
        from scipy.linalg import eigvalsh

        # The smallest eigenvalue of I − W belongs to the constant vector; the others are above it.
        return _gap_of(eigvalsh(np.eye(n) - W.toarray(), overwrite_a=True)[1:])
    return _iterative(W)


def _iterative(W: Any) -> float:
    """1 − |λ| for the eigenvalue of W − 11ᵀ/n that is largest in absolute value: both ends at once."""
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    n = W.shape[0]
    start = np.random.default_rng(0).standard_normal(n)  # fixed: the same graph gives the same digits
    operator = LinearOperator((n, n), matvec=lambda x: W @ x - x.mean(), dtype=np.float64)
    restarts = min(RESTARTS, max(50, 40_000_000 // n))
    try:
        _, vectors = eigsh(operator, k=1, which="LM", v0=start, ncv=40, maxiter=restarts, tol=1e-10)
        vector = vectors[:, 0]
    except ArpackError as failure:  # not converged, as on long thin graphs
        vector = _inverse(W, start, str(failure))
    vector = vector - vector.mean()
    vector /= np.linalg.norm(vector)
    away = vector - W @ vector
    x = float(vector @ away)
    # For a symmetric matrix some eigenvalue lies within the residual of the Rayleigh quotient.
    residual = float(np.linalg.norm(away - x * vector))
    gap = _gap_of(np.array([x]))
    if not residual <= min(1e-8, 0.01 * gap):
        raise _unconverged(n, f"residual {residual:.2g} at a gap of {gap:.3g}")
    return gap


def _inverse(W: Any, start: FloatArray, failure: str) -> FloatArray:
    """The eigenvector of the second largest eigenvalue of W, by Lanczos on the inverse of I − W.

    Where gossip mixes slowly the graph is long and thin, and there a sparse factorisation hardly fills in.
    One node is grounded: I − W restricted to the others is invertible for a connected graph, and on vectors
    of sum 0 its solution, shifted to sum 0, is the one of the full system.
    """
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu

    n = W.shape[0]
    if n > 20_000 and W.nnz > 7 * n:  # more than three edges per node: the factors might not fit
        raise _unconverged(n, failure)
    grounded = csc_array((eye_array(n, format="csr") - W)[:-1, :-1])
    try:
        factor = splu(
            grounded,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

        def solve(b: Any) -> Any:
            x = np.append(factor.solve((b - b.mean())[:-1]), 0.0)
            return x - x.mean()

        operator = LinearOperator((n, n), matvec=solve, dtype=np.float64)
        values, vectors = eigsh(operator, k=1, which="LM", v0=start, tol=1e-10)
    except (ArpackError, RuntimeError, MemoryError) as second:
        raise _unconverged(n, f"{failure}; factorised: {second}") from None
    # The other end: by Gershgorin every eigenvalue is at least 2·min W_uu − 1, so its 1 − |λ| is no smaller
    # than 2·min W_uu. Only then does the end found here decide.
    if 2.0 * float(W.diagonal().min()) < 1.0 / float(values[0]):
        raise _unconverged(n, f"{failure}; the negative eigenvalues are not bounded away from −1")
    return np.asarray(vectors[:, 0])


def _unconverged(n: int, detail: str) -> Unsupported:
    return Unsupported(
        f"the spectral gap of this {n}-node gossip matrix could not be computed reliably ({detail}); "
        "try a lazy mixing, or give the number of rounds or the gap yourself"
    )


# Eigenvectors of a dense matrix: seconds up to here.
MAX_DENSE = 3000
