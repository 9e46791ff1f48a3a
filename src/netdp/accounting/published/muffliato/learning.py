"""Muffliato's utility of learning as printed, constants and logarithms hidden: Theorems 5 and 10, T_stop and K.

E[φ(θ̃) − φ(θ*)] = Õ((σ² + ρ̄²)/(nμT) + L‖θ⁰ − θ*‖²e^{−T/2κ}), θ̃ a weighted average of the mean models, after T
iterations of K rounds each; φ is μ-strongly convex, every φ_v L-smooth, κ = L/μ. A bound with all its constants,
proved here: `netdp.utility.learning`.
"""

from __future__ import annotations

import math

from netdp.errors import InvalidValue
from netdp.numerics.checks import count, non_negative, positive

from .theorems import REFERENCES

__all__ = ["ERRATA", "REFERENCES", "descent_bound", "descent_stop", "descent_under_privacy", "rounds_needed"]

ERRATA = (
    "Theorem 5 prints Õ((σ² + ρ̄²)/(μT)), Theorem 10 (σ² + ρ̄²)/(nμT); the latter is meant, and is what the mean of "
    "n noises gives.",
    "The noise has d coordinates: its contribution is dσ², not σ² (the later talk has p in its place). Here σ² is "
    "multiplied by d.",
    "Theorems 6 and 11: with the degree of v in the mean privacy loss, (1/n)Σ_u ε_{u→v} ≤ KTΔ²αd_v/(2nσ²); the proof "
    "prints KTΔ²α/(2σ²). "
    "So the utility at a mean loss ε is αΔ²d_v/(n²με√λ), as in the later talk, not αΔ²d_v/(nμε√λ).",
    "The proof of Theorem 11 takes T = O(κ ln(σ²/n)) for the precision (σ² + ρ̄²)/n: the logarithm is negative where "
    "σ² < n, and it is no "
    "function of the start; κ·ln(Lμ‖θ⁰ − θ*‖²n/(σ² + ρ̄²)) is what Theorem 10 asks for.",
    "K = ln(max(n, ζ̄²/(σ² + ρ̄²)))/√λ leaves 1 − p = 2(1 − √λ)^K ≤ 2/n: for n = 2, and wherever 2ζ̄² ≥ (σ² + "
    "ρ̄²)·max(…), that is no "
    "contraction, and the theorem of Koloskova et al. that is used needs p > 0.",
    "All of it is utility only; the losses of Theorems 6 and 11 that it is weighed against are no bounds "
    "(docs/guarantees.md#hidden-state).",
)


def rounds_needed(gap: float, n: int, heterogeneity: float = 0.0, variance: float = 1.0) -> int:
    """Theorem 5: K = ⌈ln(max(n, ζ̄²/(σ² + ρ̄²)))/√λ⌉ rounds of accelerated gossip per gradient.

    >>> rounds_needed(0.25, 100), rounds_needed(0.25, 100, heterogeneity=500.0, variance=0.5)
    (10, 14)
    """
    if not 0 < gap <= 1:
        raise InvalidValue(f"the spectral gap must lie in (0, 1], got {gap!r}; a gap of 0 never mixes")
    ratio = max(count("n", n), non_negative("heterogeneity", heterogeneity) / positive("variance", variance))
    return max(1, math.ceil(math.log(ratio) / math.sqrt(gap)))


def descent_bound(
    iterations: int,
    n: int,
    sigma: float,
    dimension: int,
    smoothness: float,
    convexity: float,
    distance: float,
    rho: float = 0.0,
) -> float:
    """Theorem 10 with its hidden constants and logarithms taken as 1: (dσ² + ρ̄²)/(nμT) + LD²e^{−T/2κ}. For orders
    of magnitude only.

    >>> round(descent_bound(100, 50, 1.0, 4, 1.0, 0.1, 2.0), 6)
    0.034952
    """
    mu, T = positive("convexity", convexity), count("iterations", iterations)
    variance = dimension * sigma**2 + rho**2
    return variance / (count("n", n) * mu * T) + smoothness * distance**2 * math.exp(-T * mu / (2 * smoothness))


def descent_stop(n: int, sigma: float, dimension: int, smoothness: float, convexity: float, distance: float) -> int:
    """T_stop = Õ(κ): the T at which the two terms of Theorem 10 are equal, 2κ·ln(nμTLD²/(dσ²)), at least 1.

    >>> T = descent_stop(50, 1.0, 4, 1.0, 0.1, 2.0)
    >>> T, round(4 / (50 * 0.1 * T), 4), round(4.0 * math.exp(-T / 20), 4)
    (130, 0.0062, 0.006)
    """
    mu, iterations = positive("convexity", convexity), 1.0
    kappa = smoothness / mu
    for _ in range(200):
        inside = n * mu * iterations * smoothness * distance**2 / (dimension * sigma**2)
        iterations = max(1.0, 2 * kappa * math.log(max(inside, 1.0)))
    return math.ceil(iterations)


def descent_under_privacy(
    epsilon: float,
    alpha: float,
    sensitivity: float,
    degree: float,
    gap: float,
    n: int,
    convexity: float,
    dimension: int = 1,
) -> float:
    """Theorem 6's excess risk at a mean loss ε, with n² (see the errata) and constants 1: dαΔ²d_v/(n²με√λ).

    >>> descent_under_privacy(1.0, 2.0, 1.0, 4, 0.25, 10, 0.5)
    0.32
    """
    return (
        dimension
        * alpha
        * sensitivity**2
        * degree
        / (n**2 * positive("convexity", convexity) * epsilon * math.sqrt(gap))
    )
