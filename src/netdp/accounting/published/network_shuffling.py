"""Network shuffling as printed (Liew et al., SIGMOD 2022): Theorems 5.3–5.6, Tables 1, 3 and 4.

**These are not guarantees at finite t**, see `ERRATA`; the certified accountant is `netdp.accounting.shuffling`, and
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
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.privacy import Adjacency, Claim, Guarantee, ProfileCurve
from netdp.protocols import Shuffle

from ..registry import published
from ..spectral_bound import cached_bound, normalised

FloatArray = npt.NDArray[np.float64]

REFERENCES = (
    "S. P. Liew, T. Takahashi, S. Takagi, F. Kato, Y. Cao, M. Yoshikawa. Network Shuffling: Privacy Amplification via "
    "Random Walks. SIGMOD 2022.",
)
ERRATA = (
    "Table 4: the printed Γ are not nΣ(k_i/2m)²; they come out to the digit when each edge (and self-loop) is credited to "
    "its smaller-numbered end only. Facebook 5.0064 (true 4.018), Twitch 7.5840 (7.915), Deezer 3.5633 (2.468), Enron 36.866 "
    "(13.266).",
    "Finite t: the proofs need every report to have the same position law; at t = α⁻¹ ln n the laws of different origins "
    "still differ by about 1/√n in total variation, far above δ.",
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
    """α = 1 − max |eigenvalue| but the first, as estimated (not bounded)."""
    return 1.0 - cached_bound(graph, laziness).estimate


def mixing_time(graph: Graph, laziness: float = 0.0) -> int:
    """t = α⁻¹ ln n, rounded.

    >>> from netdp import graphs
    >>> mixing_time(graphs.complete(100))
    5
    """
    return max(1, round(math.log(graph.n) / gap(graph, laziness)))


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
def _network_shuffling(protocol: Shuffle, observers: Any, **_: Any) -> Guarantee:
    from ..shuffling import curator_and

    if members := curator_and(protocol, observers):
        raise Unsupported(
            f"the paper excludes users who collude with the curator, such as {members}; ask for method='certified'"
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
        observers="curator",
        adjacency=Adjacency.REPLACE,
        claim=Claim.PUBLISHED,
        assumptions=("the formula of the paper, as printed; it is not a bound", IDEAL_DRAWS),
        references=REFERENCES,
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
