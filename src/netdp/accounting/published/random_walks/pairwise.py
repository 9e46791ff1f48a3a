"""Pairwise network Rényi DP of descent along a walk (Cyffers, Bellet, Upadhyay, ICML 2024), as their code computes it.

For a symmetric walk W on n users, T steps, sensitivity Δ, order α with σ ≥ Δ√(α(α−1)/2), convex smooth losses, step ≤ 2/β:

    ε_{u→v}(α) = (αΔ²T/(σ²n))·( ln T/n − log(I − W + 11ᵀ/n)_{uv} ).

A contribution of u that v sees t steps later costs αΔ²/(2σ²t) by iteration, twice that by weak convexity; averaged over where
the walk is, Σ_t (Wᵗ)_{uv}/t = −log(I − W + 11ᵀ/n)_{uv} + (1/n)Σ_t 1/t; u contributes T/n times on average. If v sees from whom
it gets the token, the largest of the losses to its neighbours counts. (The paper states it with Δ as the unit of σ.)

**Not a guarantee**, see `ERRATA`.
"""

from __future__ import annotations

import math

import numpy as np

from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.privacy import Claim, Guarantee, RenyiCurve
from netdp.protocols.walk import WalkDescent

REFERENCES = (
    "E. Cyffers, A. Bellet, J. Upadhyay. Differentially Private Decentralized Learning with Random Walks. ICML 2024.",
)
ERRATA = (
    "u's number of contributions is replaced by its mean T/n; Rényi divergence grows with its tail. Two users who keep the token "
    "with probability 0.99, T = 100, σ² = 10Δ², α = 2: the formula says 3.47, the exact loss of a sum is 6.23.",
    "Contributions are composed as if each were seen by itself. Several of them between two visits of v add up: k in a row "
    "cost k²/m, not k/m.",
    "At long range the logarithm is below −ln T/n for graphs that mix slowly, and the formula is negative: no loss at all.",
    "The walk is taken to be stationary at every contribution, and the release of the final model is not counted.",
    "With known senders the authors' code takes the loss to v's neighbours; a neighbour of u that gets the token from u sees "
    "one contribution with its own noise only, which costs a local loss however large n is.",
)
MAX_USERS = 3000  # eigenvalues of a dense matrix


def log_matrix(W: FloatArray) -> FloatArray:
    """−log(I − W + 11ᵀ/n) for a symmetric W, by eigenvalues.

    >>> log_matrix(np.array([[0.0, 1.0], [1.0, 0.0]])).round(4).tolist()        # ∓ ln 2/2
    [[-0.3466, 0.3466], [0.3466, -0.3466]]
    """
    values, vectors = np.linalg.eigh(W)
    if len(values) > 1 and values[-2] > 1 - 1e-12:
        raise Unsupported("the formula needs a connected graph: 1 is an eigenvalue of the walk more than once")
    logs = np.append(-np.log1p(-values[:-1]), 0.0)
    return np.asarray((vectors * logs) @ vectors.T)


def pairwise_rdp(W: FloatArray, steps: int, sigma: float, sensitivity: float = 1.0) -> FloatArray:
    """ε_{u→v}(α)/α, a matrix [u, v]; hidden senders.

    >>> two = np.array([[0.99, 0.01], [0.01, 0.99]])
    >>> round(2 * float(pairwise_rdp(two, 100, math.sqrt(10.0))[0, 1]), 3)
    3.466
    """
    n = len(W)
    return np.asarray(sensitivity**2 * steps / (sigma**2 * n) * (math.log(steps) / n + log_matrix(W)))


def largest_order(sigma: float, sensitivity: float) -> float:
    """The largest α with σ ≥ Δ√(α(α−1)/2)."""
    return (1.0 + math.sqrt(1.0 + 8.0 * (sigma / sensitivity) ** 2)) / 2.0


def pairwise_loss(protocol: WalkDescent, observer: int) -> Guarantee:
    """As a statement about every target; with known senders the largest over the observer's neighbours."""
    if protocol.n > MAX_USERS:
        raise Unsupported(f"the matrix logarithm of {protocol.n} users; it is offered up to {MAX_USERS}")
    assert protocol.graph is not None
    slopes = pairwise_rdp(protocol.transition.toarray(), protocol.steps, protocol.sigma, protocol.sensitivity)
    neighbours = protocol.graph.neighbors(observer)
    slope = np.maximum(slopes[:, neighbours].max(axis=1), 0.0)
    slope[observer] = np.nan
    top = largest_order(protocol.sigma, protocol.sensitivity)
    orders = 1.0 + np.geomspace(1e-3, max(top - 1.0, 2e-3), 120)
    return Guarantee(
        curve=RenyiCurve(orders, slope[:, None] * orders[None, :]),
        claim=Claim.PUBLISHED,
        assumptions=(
            "convex smooth losses, step ≤ 2/β, gradients clipped before the noise",
            "the sender is known: the largest of the losses to the observer's neighbours; where it is negative, 0",
            f"orders α up to {top:.4g}, as far as σ ≥ Δ√(α(α−1)/2)",
        ),
        references=REFERENCES,
        errata=ERRATA,
    )
