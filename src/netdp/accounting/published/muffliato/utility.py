"""Muffliato's utility as printed: Theorems 2/7 (synchronous), 3/8 (randomized), T_stop, Table 1.

The papers' utility is (1/2n) Σ_v E‖x_v − x̄‖²: **half** the mean squared error that `netdp.expected_error` predicts.
"""

from __future__ import annotations

import math

from netdp.errors import InvalidValue

from .theorems import REFERENCES

__all__ = [
    "ERRATA",
    "REFERENCES",
    "TABLE1",
    "randomized_bound",
    "randomized_stop",
    "synchronous_bound",
    "synchronous_stop",
    "table1",
]

ERRATA = (
    "Theorems 3 and 8: with λ(p) the second eigenvalue of the Laplacian with weights p, the only reading for "
    "which the stated λ(p) = 2λ_W/n "
    "holds, pairwise averaging contracts the mean square by 1 − λ(p)/2 per step, not 1 − λ(p): E W = I − "
    "L_p/2 and each W is a projection. The "
    "printed bound is exceeded (complete graph of 20, spread 100σ², 19 steps), and T_stop must be twice as long.",
    "Equation (10) at T_stop gives 3σ²/n, Theorem 3 says 2σ²/n (its proof loses no factor 2, so 3σ²/2n is "
    "what it shows once the rate is mended).",
    "The proof of Theorem 7 prints ‖P_t(W)y‖² ≤ 2(1−√λ)²‖y‖², without the t in the exponent.",
    "Algorithm 1 as printed applies its recursion from t = 0 without saying what x^{−1} is; started at 0 the "
    "mean would be multiplied by γ. Definition 3's "
    "P_1(X) = X is meant (and its recursion holds from t ≥ 1).",
    "Table 1's caption gives the trusted aggregator αΔ²/(nε); it is αΔ²/(n²ε).",
    "Table 1's matrix W_vw = min(1/d_v, 1/d_w) has the eigenvalue −1, a gap of 0, on regular bipartite "
    "graphs: even rings, tori, hypercubes.",
    "Table 1, ring, Algorithm 2: λ_W ~ 1/n² in its own general column gives αΔ²/ε, as does its D-torus at D = "
    "1; printed is αΔ²/(nε).",
    "Appendix C.3 prints σ² = αΔ²d_vT/(2σ²n²) and a utility with σ²; what is meant is σ² = αΔ²d_vT/(2nε).",
)


def synchronous_bound(rounds: int, gap: float, sigma: float, n: int, spread: float) -> float:
    """Theorem 7, (9): (spread + σ²)e^{−T√λ} + σ²/n; `spread` is the mean squared distance of the values from their mean.

    >>> round(synchronous_bound(10, 0.25, 1.0, 100, 0.0), 6)                       # e⁻⁵ + 1/100
    0.016738
    """
    _check(gap, sigma, n, spread)
    return (spread + sigma**2) * math.exp(-rounds * math.sqrt(gap)) + sigma**2 / n


def synchronous_stop(gap: float, sigma: float, n: int, spread: float) -> int:
    """Theorem 2: rounds after which the utility is at most 3σ²/n, ln(n·max(1, spread/σ²))/√λ, rounded up.

    >>> synchronous_stop(0.25, 1.0, 100, 0.0)
    10
    """
    _check(gap, sigma, n, spread)
    return math.ceil(math.log(n * max(1.0, spread / sigma**2)) / math.sqrt(gap))


def randomized_bound(steps: int, gap: float, sigma: float, n: int, spread: float) -> float:
    """Theorem 8, (10): (spread + σ²)e^{−Tλ(p)} + σ²/n, as printed. Not a bound; see the errata."""
    _check(gap, sigma, n, spread)
    return (spread + sigma**2) * math.exp(-steps * gap) + sigma**2 / n


def randomized_stop(gap: float, sigma: float, n: int, spread: float) -> int:
    """Theorem 3: steps after which the utility is said to be at most 2σ²/n, ln(n·max(1, spread/σ²))/λ(p), rounded up."""
    _check(gap, sigma, n, spread)
    return math.ceil(math.log(n * max(1.0, spread / sigma**2)) / gap)


# Utility under a mean loss ≤ ε, constants and logarithms hidden, as printed: (Algorithm 1, Algorithm 2).
TABLE1 = {
    "arbitrary": ("αΔ²d/(n²ε√λ)", "αΔ²/(n²ελ)"),
    "expander": ("αΔ²/(n²ε)", "αΔ²/(n²ε)"),
    "torus": ("αΔ²D/(n^(2−1/D)ε)", "αΔ²/(n^(2−2/D)ε)"),
    "complete": ("αΔ²/(nε)", "αΔ²/(n²ε)"),
    "ring": ("αΔ²/(nε)", "αΔ²/(nε)"),
}


def table1(
    topology: str,
    algorithm: int,
    n: int,
    epsilon: float,
    alpha: float = 2.0,
    sensitivity: float = 1.0,
    *,
    degree: float | None = None,
    gap: float | None = None,
    dimension: int | None = None,
) -> float:
    """Table 1's entry as a number, with the hidden constants and logarithms taken as 1: for orders of magnitude only.

    >>> table1("ring", 1, n=100, epsilon=0.5) == table1("complete", 1, n=100, epsilon=0.5) == 2 / 50
    True
    """
    if topology not in TABLE1 or algorithm not in (1, 2):
        raise InvalidValue(f"Table 1 has {', '.join(TABLE1)} for algorithms 1 and 2, not {topology!r}, {algorithm!r}")
    unit = alpha * sensitivity**2 / epsilon
    if topology == "arbitrary":
        if gap is None or (algorithm == 1 and degree is None):
            raise InvalidValue("an arbitrary graph needs its gap, and for algorithm 1 its degree")
        scale = degree / math.sqrt(gap) if algorithm == 1 and degree is not None else 1.0 / gap
        return unit * scale / n**2
    if topology == "torus":
        if dimension is None or dimension < 1:
            raise InvalidValue(f"a torus needs its dimension ≥ 1, got {dimension!r}")
        power = 2.0 - (1.0 if algorithm == 1 else 2.0) / dimension
        return unit * (dimension if algorithm == 1 else 1) / math.pow(n, power)
    if topology == "expander" or (topology == "complete" and algorithm == 2):
        return unit / n**2
    return unit / n


def _check(gap: float, sigma: float, n: int, spread: float) -> None:
    # λ(p) of a few heavy edges may exceed 1 (two parties: 2), λ_W may not; both are positive on connected graphs.
    if not 0 < gap <= 2:
        raise InvalidValue(f"the spectral gap must lie in (0, 2], got {gap!r}; a gap of 0 never converges")
    if not (sigma > 0 and math.isfinite(sigma)):
        raise InvalidValue(f"sigma must be a finite number > 0, got {sigma!r}")
    if n < 1 or not (spread >= 0 and math.isfinite(spread)):
        raise InvalidValue(f"n must be ≥ 1 and spread a finite number ≥ 0, got n={n!r}, spread={spread!r}")
