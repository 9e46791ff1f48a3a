"""Muffliato as printed: collusion (Corollaries 3, 4) and secret random graphs (Theorems 4/9, Corollary 5, Proposition 1).

Not guarantees. Theorem 4/9 does hold, by another proof: `netdp.accounting.gossip.secret_graph` offers it certified and
without its condition on σ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.numerics.kernels import csr_times_block
from netdp.protocols import Gossip
from netdp.views import GossipView, observer_set

from .theorems import REFERENCES

__all__ = [
    "ERRATA",
    "REFERENCES",
    "corollary3",
    "corollary4",
    "corollary5",
    "largest_order",
    "proposition1",
    "secret_epsilon",
    "theorem9",
]


ERRATA = (
    "Corollary 3 rests on Theorem 12, which is not an upper bound. It prints α n/(2σ²) without Δ², and w ~ V "
    "with v from all parties instead of V.",
    "Corollary 4: σ² = d_v/(2αε) does not follow from the mean loss; σ² = αΔ²d_V·T/(2nε) does. Δ² is missing.",
    "Theorems 4 and 9: the proof starts from Theorem 1, which is not a bound; the exact factors have the same "
    "mean, so the conclusion survives, with "
    "(T−1)d_v/(n−1−d_v) in place of T·d_v/(n−d_v), which is no smaller wherever it is below local DP's. The "
    "probabilities belong to the draw of the "
    "graph: the observer knows which case it is in.",
    "Corollary 5: of the n parties, |V| observe and d_V are neighbours; the mean is over the other n − |V| − "
    "d_V, not n − d_V. With many "
    "observers and few neighbours the printed value is below what the proof gives. Δ² is missing.",
    "Proposition 1: P(∃ v ∈ 𝒱) should read v ∈ V; |N_t(V)| is of order c|V|ln n, not c|V|ln(n)/n; it inherits "
    "Corollary 5's count; the gradients of later rounds "
    "react to earlier ones, and Lemma 2 is applied round by round although the rounds are not independent given the data.",
)


def corollary3(protocol: Gossip, observers: int | str | Iterable[int | str]) -> FloatArray:
    """n·max W_vw⁻²·Σ_{t=1}^{T} P(Xᵗ ∈ V | X⁰ = u)² as a factor, the maximum over v ∈ V and its neighbours w ∉ V; nan at V.

    For one observer this is Corollary 1.
    """
    members = observer_set(protocol.graph, observers)
    W, n = protocol.matrix, protocol.graph.n
    outside = set(range(n)) - set(members)
    weights = [float(W[v, w]) for v in members for w in protocol.graph.neighbors(v).tolist() if w in outside]
    walk = np.zeros((n, 1))
    walk[list(members)] = 1.0
    total = np.zeros(n)
    for _ in range(protocol.rounds):
        walk = csr_times_block(W.indptr, W.indices, W.data, walk)
        total += walk[:, 0] ** 2
    total *= n / min(weights) ** 2
    total[list(members)] = np.nan
    return total


def corollary4(
    protocol: Gossip, observers: int | str | Iterable[int | str], epsilon: float, alpha: float, gap: float
) -> tuple[float, float]:
    """(σ², utility) = (d_V/(2αε), α·d_V/(εn²√λ)), as printed, hidden constants and logarithms taken as 1."""
    degree = len(GossipView.of(protocol, observers).boundary)
    return degree / (2 * alpha * epsilon), alpha * degree / (epsilon * protocol.graph.n**2 * math.sqrt(gap))


def largest_order(sigma: float, sensitivity: float = 1.0) -> float:
    """The largest α with σ² ≥ Δ²α(α−1)/2: (1 + √(1 + 8σ²/Δ²))/2.

    >>> largest_order(1.0)
    2.0
    """
    if not (sigma > 0 and sensitivity > 0 and math.isfinite(sigma) and math.isfinite(sensitivity)):
        raise InvalidValue(f"sigma and sensitivity must be finite numbers > 0, got {sigma!r} and {sensitivity!r}")
    return (1 + math.sqrt(1 + 8 * (sigma / sensitivity) ** 2)) / 2


def theorem9(
    alpha: float, n: int, degree: int, rounds: int, sigma: float, sensitivity: float = 1.0, *, neighbour: bool = False
) -> float:
    """Theorems 4/9: αΔ²/(2σ²) for neighbours, αΔ²/σ² · T·d_v/(n − d_v) for others; refuses orders the theorem does not cover.

    >>> theorem9(2.0, n=101, degree=1, rounds=5, sigma=2.0)
    0.025
    >>> theorem9(4.0, n=101, degree=1, rounds=5, sigma=2.0)
    Traceback (most recent call last):
      ...
    netdp.errors.Unsupported: Theorem 9 needs sigma² ≥ Δ²α(α−1)/2: alpha = 4 with sigma = 2 is out; the largest...
    """
    _covered(alpha, sigma, sensitivity)
    if neighbour:
        return alpha * sensitivity**2 / (2 * sigma**2)
    return alpha * sensitivity**2 / sigma**2 * rounds * degree / (n - degree)


def corollary5(alpha: float, n: int, neighbours: int, rounds: int, sigma: float, *, neighbour: bool = False) -> float:
    """Corollary 5, Δ = 1: theorem 9 with d_V, the number of neighbours of the coalition."""
    return theorem9(alpha, n, neighbours, rounds, sigma, neighbour=neighbour)


def secret_epsilon(delta: float, n: int, degree: int, rounds: int, sigma: float, sensitivity: float = 1.0) -> float:
    """ε(δ) of Theorem 9 for a non-neighbour, by ε(α) + ln(1/δ)/(α−1) over the admissible orders only.

    >>> round(secret_epsilon(1e-6, n=2000, degree=8, rounds=6, sigma=4.0), 3)  # few orders are admitted; local DP: 1.07
    2.677
    """
    if not 0 < delta < 1:
        raise InvalidValue(f"delta must lie strictly between 0 and 1, got {delta!r}")
    most = largest_order(sigma, sensitivity)
    slope = sensitivity**2 / sigma**2 * rounds * degree / (n - degree)
    best = min(most, 1 + math.sqrt(math.log(1 / delta) / slope))  # slope·α + ln(1/δ)/(α−1) is convex in α
    return slope * best + math.log(1 / delta) / (best - 1)


def proposition1(
    alpha: float,
    n: int,
    inner: int,
    sigma: float,
    sensitivity: float,
    neighbours: Sequence[int],
    is_neighbour: Sequence[bool],
) -> float:
    """Proposition 1: Δ²α/σ² Σ_t [β_t + (1−β_t)·K|N_t(V)|/(n − |N_t(V)|)], for the drawn graphs' |N_t(V)| and β_t, K
    = `inner`.
    """
    _covered(alpha, sigma, sensitivity)
    if len(neighbours) != len(is_neighbour):
        raise InvalidValue(f"{len(neighbours)} neighbourhood sizes for {len(is_neighbour)} rounds; give one per round")
    terms = [1.0 if beta else inner * size / (n - size) for size, beta in zip(neighbours, is_neighbour, strict=True)]
    return sensitivity**2 * alpha / sigma**2 * sum(terms)


def _covered(alpha: float, sigma: float, sensitivity: float) -> None:
    most = largest_order(sigma, sensitivity)
    if not alpha > 1:
        raise InvalidValue(f"a Rényi order must be > 1, got {alpha!r}")
    if alpha > most * (1 + 1e-12):
        raise Unsupported(
            f"Theorem 9 needs sigma² ≥ Δ²α(α−1)/2: alpha = {alpha:g} with sigma = {sigma:g} is out; the largest order is "
            f"{most:.4g}. netdp.accounting.gossip.secret_graph covers all orders"
        )
