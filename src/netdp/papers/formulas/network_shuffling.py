"""Network shuffling as printed (Liew et al., SIGMOD 2022): Theorems 5.3–5.6, Tables 1, 3 and 4.

**These are not guarantees at finite t**, see `ERRATA`; the certified accountant is `netdp.families.shuffle.account`, and
far tighter.

    all, stationary     5.3   ε = A²ε₁²/2 + Aε₁√(2 ln 1/δ) at δ + δ₂,  A = (e^ε₀ − 1)e^{2ε₀},
                              ε₁ = √((1 − 1/n)ΣP²) + √(ln(1/δ₂)/n)
    all, symmetric      5.4   the same with ρ*²ΣP² for ΣP², ρ* the largest over the smallest non-zero P_i
    single, either 5.5, 5.6   ε = B²ΣP²/2 + B√(2 ln(1/δ)ΣP²),  B = e^ε₀(e^ε₀ − 1)

Stationary: ΣP² ≤ Σπ² + (1 − α)^{2t}, α the spectral gap. Symmetric (regular graphs): P is the law of a walk of t
steps. An (ε₀, δ₀) randomizer is replaced by an 8ε₀-DP one within δ₁ (Lemma 5.2), for δ′ = δ + δ₂ + n(e^ε′ + 1)δ₁.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.families.shuffle.account.shuffling import NETWORK_SHUFFLING_REFERENCES
from netdp.families.shuffle.protocol import Shuffle
from netdp.graphs.certificate import DENSE, normalised
from netdp.graphs.graph import Graph
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.numerics.arrays import FloatArray
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.table import published

Product = Callable[[FloatArray], FloatArray]

ERRATA = (
    "Table 4: the printed Γ are not nΣ(k_i/2m)²; they come out to the digit when each edge (and self-loop) is credited to "
    "its smaller-numbered end only. Facebook 5.0064 (true 4.018), Twitch 7.5840 (7.915), Deezer 3.5633 (2.468), Enron 36.866 "
    "(13.266).",
    "Finite t: the proofs take all reports to have one position law and do not cover unequal ones. At t = α⁻¹ ln n the laws "
    "of two origins of a regular graph differ by up to 1/√n in total variation (Twitch, measured: by 7e-5 at worst).",
    "Equation (7) bounds ΣP² − Σπ² by (1 − α)^{2t} with orthonormal eigenvectors, but AB⁻¹ is not symmetric on "
    "irregular graphs: the cross term 2Σπ(P − π) does not vanish and falls like λ^t, not λ^{2t}, and the squares carry a "
    "factor of up to the ratio of the largest to the smallest degree.",
    "Lemma 5.1 loses a term: E ΣL² = (n² − n)ΣP² + n. As printed it is false for δ near 1 (n large, P uniform: above 0.85).",
    "Theorem 5.5 says A_all where A_single is meant, and its δ′ holds a δ₂ that the pure statement does not have.",
    "Theorem 5.5, 'for ε₀ ≤ 1': ε′ = 800ε₀²ΣP² + 40ε₀√(…) does not follow; e^{8ε₀}(e^{8ε₀} − 1) is 8.9 million at ε₀ = 1, "
    "and exceeds 40ε₀ from ε₀ = 0.14 on.",
    "Theorem 6.1 prints √((n − 1)ΣP²) in ε₁ for √((1 − 1/n)ΣP²).",
    "Definition 4.4 calls the L1 distance the total variation; Lemma 5.2 uses half of it.",
)

TABLE3 = {
    "entity space": {"prochlo": "O(n)", "mix-nets": "O(1)", "network shuffling": "O(1)"},
    "user traffic": {"prochlo": "O(1)", "mix-nets": "O(n)", "network shuffling": "O(log n) or O(1)"},
}
"""Table 3: memory of the shuffling entity, and reports sent per user, as printed."""

TABLE4 = {"facebook-pages": 5.0064, "twitch": 7.5840, "deezer": 3.5633, "enron": 36.866, "web-google": 20.642}
"""Table 4: Γ as printed."""


def table1(epsilon0: float, n: int) -> dict[str, float]:
    """Table 1: the rates of amplification, constants and logarithms left out as in the paper.

    >>> {name: round(rate, 4) for name, rate in table1(1.0, 10_000).items()}["network shuffling"]
    0.0448
    """
    root = math.sqrt(n)
    return {
        "no amplification": epsilon0,
        "uniform subsampling": math.exp(epsilon0) / root,
        "uniform shuffling": math.exp(3 * epsilon0) / root,
        "uniform shuffling (clones)": math.exp(0.5 * epsilon0) / root,
        "network shuffling": math.exp(1.5 * epsilon0) / root,
    }


def gamma(graph: Graph) -> float:
    """Γ = nΣπ² with π_i = k_i/2m, as defined."""
    shares = graph.degrees / graph.degrees.sum()
    return float(graph.n * (shares**2).sum())


def printed_gamma(graph: Graph, self_loops: npt.ArrayLike | None = None) -> float:
    """Γ as in Table 4: every edge credited only to its smaller-numbered end. `self_loops` counts them per user, if any.

    >>> from netdp import graphs
    >>> round(printed_gamma(graphs.ring(4)), 4), gamma(graphs.ring(4))
    (1.5, 1.0)
    """
    credit = np.bincount(graph.edges().min(axis=1), minlength=graph.n).astype(np.float64)
    if self_loops is not None:
        credit += np.asarray(self_loops, dtype=np.float64)
    return float(graph.n * (credit**2).sum() / credit.sum() ** 2)


def gap(graph: Graph, laziness: float = 0.0) -> float:
    """α = 1 − max |eigenvalue| but the first, of the (lazy) simple walk: computed, not bounded.

    Rings, paths and the regular families have closed forms. Otherwise all eigenvalues are computed up to `DENSE` users, and
    above that both ends of the spectrum by Lanczos, or by Lanczos on the inverse where the walk is slow. Such a number is
    given only if its residual puts an eigenvalue within a thousandth of it; else it is refused.

    >>> from netdp import graphs
    >>> print(f"{gap(graphs.ring(1001)):.3e}")              # 1 − cos(π/1001)
    4.925e-06
    """
    if not graph.is_connected:
        raise GraphError(
            f"{graph!r} is not connected: its walk never mixes, and α is 0; take each component on its own"
        )
    if not 0 <= laziness < 1:
        raise InvalidValue(f"laziness must lie in [0, 1), got {laziness!r}")
    if graph.n == 1:
        return 1.0
    if not laziness and graph.is_bipartite:
        return 0.0
    # 1 − |ℓ + (1 − ℓ)λ| at the two ends: (1 − ℓ)(1 − λ₂), and 2ℓ + (1 − ℓ)(1 + λ_min)
    above = (1 - laziness) * _upper_end(graph)
    below = 2 * laziness
    if below < above:
        below += (1 - laziness) * _lower_end(graph)
    return min(above, below)


def mixing_time(graph: Graph, laziness: float = 0.0) -> int:
    """t = α⁻¹ ln n, rounded.

    >>> from netdp import graphs
    >>> mixing_time(graphs.complete(100)), mixing_time(graphs.ring(1001))
    (5, 1402809)
    """
    alpha = gap(graph, laziness)
    if alpha == 0:
        raise GraphError(f"{graph!r} is bipartite: its two halves never mix, and α is 0; set laziness=0.5")
    return max(1, round(math.log(graph.n) / alpha))


@lru_cache(maxsize=32)
def _upper_end(graph: Graph) -> float:
    """1 − λ₂ of the simple walk on a connected graph of two users or more."""
    if (shape := _line(graph)) is not None:
        return 2 * math.sin(math.pi / (graph.n if shape == "ring" else 2 * (graph.n - 1))) ** 2
    if (spectrum := _spectrum(graph)) is not None:
        return float(spectrum[1])
    N, root = normalised(graph, 0.0), np.sqrt(graph.degrees / graph.degrees.sum())

    def across(y: FloatArray) -> FloatArray:
        return np.asarray(y - root * (root @ y))

    def inverse() -> Product:
        # One user grounded: I − N on the others is invertible, and solves for every b ⟂ √π up to a multiple of √π.
        solve = _factorised(graph, N, -1.0)
        return lambda b: across(np.append(solve(across(b)[:-1]), 0.0))

    return _least(graph, lambda y: across(y - N @ across(y)), 2.0, root, inverse)


@lru_cache(maxsize=32)
def _lower_end(graph: Graph) -> float:
    """1 + λ_min of the simple walk."""
    if graph.is_bipartite:
        return 0.0
    if _line(graph) is not None:
        return 2 * math.sin(math.pi / (2 * graph.n)) ** 2  # a ring of odd length
    if (spectrum := _spectrum(graph)) is not None:
        return 2 - float(spectrum[-1])
    N = normalised(graph, 0.0)
    return _least(graph, lambda y: np.asarray(y + N @ y), 0.0, np.zeros(graph.n), lambda: _factorised(graph, N, 1.0))


def _line(graph: Graph) -> str | None:
    """ "ring" or "path", if a connected graph is one."""
    if graph.degrees.max() > 2:
        return None
    return "ring" if graph.m == graph.n else "path"


def _spectrum(graph: Graph) -> FloatArray | None:
    """All 1 − λ, increasing: from the Laplacian of regular graphs where its closed form is known, or computed."""
    degree = int(graph.degrees.max())
    if graph.laplacian_spectrum is not None and graph.degrees.min() == degree:
        return np.asarray(graph.laplacian_spectrum() / degree)
    if graph.n <= DENSE:
        return np.asarray(1 - np.linalg.eigvalsh(normalised(graph, 0.0).toarray())[::-1])
    return None


def _least(graph: Graph, product: Product, shift: float, kernel: FloatArray, inverse: Callable[[], Product]) -> float:
    """The least eigenvalue of a symmetric matrix, given its products: by Lanczos, on the inverse if that does not converge.

    The eigenvector `kernel` is left out: the direct search moves it up by `shift`.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    shape, start = (graph.n, graph.n), np.random.default_rng(0).standard_normal(graph.n)
    problem = ""
    for direct in (True, False):
        apply = (lambda y: product(y) + shift * kernel * (kernel @ y)) if direct else inverse()
        operator = LinearOperator(shape, matvec=apply, dtype=np.float64)
        options = {"which": "SA", "ncv": 40, "maxiter": 150, "tol": 1e-8} if direct else {"which": "LA", "tol": 1e-10}
        try:
            vector = eigsh(operator, k=1, v0=start, **options)[1][:, 0]
        except ArpackError as failure:
            problem = str(failure)
            continue
        vector = vector - kernel * (kernel @ vector)
        vector /= np.linalg.norm(vector)
        image = product(vector)
        value = float(vector @ image)
        # some eigenvalue lies within the residual, and its rounding, of the Rayleigh quotient
        residual = float(np.linalg.norm(image - value * vector)) + 16 * 2.0**-53
        if residual <= 1e-3 * value:
            return value
        problem = f"residual {residual:.2g} at {value:.3g}"
    raise _unconverged(graph, problem)


def _factorised(graph: Graph, N: Any, sign: float) -> Product:
    """How to solve with I + N, or with I − N and the last user grounded. Slow walks are on thin graphs: little fills in."""
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    if graph.n > 20_000 and graph.m > 3 * graph.n:  # the factors might not fit
        raise _unconverged(graph, "it is too large to factorise")
    matrix = csc_array(eye_array(graph.n, format="csr") + sign * N)
    try:
        factor = splu(
            csc_array(matrix[:-1, :-1]) if sign < 0 else matrix,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except (RuntimeError, MemoryError) as failure:
        raise _unconverged(graph, str(failure)) from None
    return lambda b: np.asarray(factor.solve(b))


def _unconverged(graph: Graph, detail: str) -> Unsupported:
    return Unsupported(
        f"the spectral gap of the walk on {graph!r} could not be computed reliably ({detail}); add laziness or edges, or use "
        "netdp.graphs.certificate.spectral_bound, which proves a bound instead"
    )


def stationary_squares(graph: Graph, rounds: int, laziness: float = 0.0) -> float:
    """Σπ² + (1 − α)^{2t}: the bound of equation (7) on ΣP²."""
    return gamma(graph) / graph.n + (1.0 - gap(graph, laziness)) ** (2 * rounds)


def positions(graph: Graph, rounds: int, start: int = 0, laziness: float = 0.0) -> FloatArray:
    """P(t): where the report of one user is after t rounds, computed exactly."""
    N = normalised(graph, laziness)
    root = np.sqrt(graph.degrees.astype(np.float64))
    law = np.zeros(graph.n)
    law[start] = 1.0 / root[start]
    for _ in range(rounds):
        law = N @ law
    return np.asarray(law * root)


def rho_star(law: FloatArray) -> float:
    """ρ*: the largest P_i over the smallest that is not zero."""
    return float(law.max() / law[law > 0].min())


def epsilon_all(
    epsilon0: float, n: int, squares: float, delta: float, delta2: float | None = None, rho: float = 1.0
) -> float:
    """Theorem 5.3 (ρ = 1) and 5.4: ε of A_all at δ + δ₂; half each of `delta` unless δ₂ is given.

    >>> print(f"{epsilon_all(1.0, 9498, 7.5840 / 9498, 2e-6):.2f}")       # Twitch, Γ as printed
    4.79
    """
    first, second = (delta / 2, delta / 2) if delta2 is None else (delta, delta2)
    _check_delta(first, second)
    spread = math.sqrt((1 - 1 / n) * rho**2 * squares) + math.sqrt(math.log(1 / second) / n)
    part = _exp(2 * epsilon0) * _expm1(epsilon0) * spread
    return part**2 / 2 + part * math.sqrt(2 * math.log(1 / first))


def epsilon_single(epsilon0: float, squares: float, delta: float) -> float:
    """Theorems 5.5 and 5.6: ε of A_single at δ."""
    _check_delta(delta)
    part = _exp(epsilon0) * _expm1(epsilon0) * math.sqrt(squares)
    return part**2 / 2 + part * math.sqrt(2 * math.log(1 / delta))


def largest_delta0(epsilon0: float, delta1: float) -> float:
    """Lemma 5.2: the δ₀ up to which an (ε₀, δ₀) randomizer is within δ₁ of an 8ε₀-DP one."""
    _check_delta(delta1)
    steps = 2 + math.log(2 / delta1) / -math.log(-math.expm1(-5 * epsilon0))
    return -math.expm1(-epsilon0) * delta1 / (4 * _exp(epsilon0) * steps)


def least_delta1(epsilon0: float, delta0: float) -> float:
    """The least δ₁ that Lemma 5.2 allows for δ₀; inf if there is none below 1."""
    low, high = -745.0, 0.0
    if largest_delta0(epsilon0, math.nextafter(1.0, 0.0)) < delta0:
        return math.inf
    for _ in range(200):  # largest_delta0 grows with δ₁
        middle = (low + high) / 2
        low, high = (
            (middle, high) if largest_delta0(epsilon0, max(math.exp(middle), 5e-324)) < delta0 else (low, middle)
        )
    return math.exp(high)


def approximate(
    epsilon0: float, delta0: float, n: int, squares: float, delta: float, *, single: bool = False, rho: float = 1.0
) -> tuple[float, float]:
    """(ε′, δ′) of an (ε₀, δ₀) randomizer: ε at 8ε₀ and δ, δ′ = that δ + n(e^ε′ + 1)δ₁."""
    wide = 8 * epsilon0
    found = epsilon_single(wide, squares, delta) if single else epsilon_all(wide, n, squares, delta, rho=rho)
    return found, delta + n * (_exp(found) + 1) * least_delta1(epsilon0, delta0)


def squares_of(protocol: Shuffle) -> tuple[float, float]:
    """(ΣP², ρ*) by the theorem that the paper would use: exact for regular graphs, the bound for the others."""
    graph = protocol.graph
    if graph.degrees.min() < graph.degrees.max():
        return stationary_squares(graph, protocol.rounds, protocol.laziness), 1.0
    law = positions(graph, protocol.rounds, 0, protocol.laziness)
    return float((law**2).sum()), rho_star(law)


def epsilon(protocol: Shuffle, delta: float) -> float:
    """ε of a protocol as printed, at δ (all of it: δ + δ₂)."""
    squares, rho = squares_of(protocol)
    if protocol.reporting == "single":
        return epsilon_single(protocol.epsilon0, squares, delta)
    return epsilon_all(protocol.epsilon0, protocol.n, squares, delta, rho=rho)


@published.register
def _network_shuffling(protocol: Shuffle, observers: Any) -> Guarantee:
    from netdp.families.shuffle.account.shuffling import curator_and

    if members := curator_and(protocol.graph, observers):
        who = ", ".join(str(protocol.graph.label(member)) for member in members)
        raise Unsupported(
            f"the paper excludes users who collude with the curator, here {who}; ask for method='certified'"
        )
    squares, rho = squares_of(protocol)
    single = protocol.reporting == "single"
    points: list[tuple[float, float]] = []
    for delta in np.logspace(-0.31, -18, 600).tolist():
        if protocol.delta0:
            point = approximate(protocol.epsilon0, protocol.delta0, protocol.n, squares, delta, single=single, rho=rho)
        elif single:
            point = epsilon_single(protocol.epsilon0, squares, delta), delta
        else:
            point = epsilon_all(protocol.epsilon0, protocol.n, squares, delta, rho=rho), delta
        if math.isfinite(point[0]) and point[1] < 1 and (not points or point[0] > points[-1][0]):
            points.append(point)
    if not points:
        raise Unsupported(
            f"the published formula gives no finite ε with δ < 1 for epsilon0 = {protocol.epsilon0:g} and "
            f"delta0 = {protocol.delta0:g}; ask for method='certified'"
        )
    epsilons, deltas = zip(*points, strict=True)
    return Guarantee(
        curve=ProfileCurve([0.0, *epsilons], np.minimum.accumulate([1.0, *deltas])),
        adjacency=Adjacency.REPLACE,
        claim=Claim.PUBLISHED,
        assumptions=("the formula of the paper, as printed; it is not a bound", IDEAL_DRAWS),
        references=NETWORK_SHUFFLING_REFERENCES,
        errata=ERRATA,
    )


def _check_delta(*deltas: float) -> None:
    for delta in deltas:
        if not 0 < delta < 1:
            raise InvalidValue(f"delta must lie in (0, 1), got {delta!r}: the formula takes its logarithm")


def _exp(x: float) -> float:
    return math.exp(x) if x < 300 else math.inf


def _expm1(x: float) -> float:
    return math.expm1(x) if x < 300 else math.inf
