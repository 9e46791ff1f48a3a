"""Descent along a walk over a graph, pair by pair, as published twice: Rényi DP (2024) and f-DP (2025). Neither is a guarantee.

`PAIRWISE_ERRATA` and `TRADEOFF_ERRATA` say why not.

**Rényi DP** (Cyffers, Bellet, Upadhyay, ICML 2024), as their code computes it. For a symmetric walk W on n users, T steps,
sensitivity Δ, order α with σ ≥ Δ√(α(α−1)/2), convex smooth losses, step ≤ 2/β:

    ε_{u→v}(α) = (αΔ²T/(σ²n))·( ln T/n − log(I − W + 11ᵀ/n)_{uv} ).

A contribution of u that v sees t steps later costs αΔ²/(2σ²t) by iteration, twice that by weak convexity; averaged over where
the walk is, Σ_t (Wᵗ)_{uv}/t = −log(I − W + 11ᵀ/n)_{uv} + (1/n)Σ_t 1/t; u contributes T/n times on average. If v sees from whom
it gets the token, the largest of the losses to its neighbours counts. (The paper states it with Δ as the unit of σ.)

**f-DP** (Li, Su, Wang, Long, Su, NeurIPS 2025, Theorem 4.1), one step per visit. Let w_t be the probability that v first comes
t steps after u. One sight of v is a mixture over t of Gaussian trade-offs with μ_t = Δ/(σ√(t + 1)), nothing at all if v does
not come within T steps; composed ⌈(1 + ζ)T/n⌉ times, with δ′ = exp(−(1 − λ₂)/(1 + λ₂)·2ζ²T/n²) added, for any ζ. The least
over a few ζ is returned.
"""

from __future__ import annotations

import math

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.walk import WalkDescent
from netdp.numerics.arrays import FloatArray
from netdp.privacy.gaussian import gaussian_delta
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.privacy.renyi import RenyiCurve

PAIRWISE_REFERENCES = (
    "E. Cyffers, A. Bellet, J. Upadhyay. Differentially Private Decentralized Learning with Random Walks. ICML 2024.",
)

PAIRWISE_ERRATA = (
    "u's number of contributions is replaced by its mean T/n; Rényi divergence grows with its tail. Two users who keep the token "
    "with probability 0.99, T = 100, σ² = 10Δ², α = 2: the formula says 3.47, the exact loss of a sum is 6.23.",
    "Contributions are composed as if each were seen by itself. Several of them between two visits of v add up: k in a row "
    "cost k²/m, not k/m.",
    "At long range the logarithm is below −ln T/n for graphs that mix slowly, and the formula is negative: no loss at all.",
    "The walk is taken to be stationary at every contribution, and the release of the final model is not counted.",
    "With known senders the authors' code takes the loss to v's neighbours; a neighbour of u that gets the token from u sees "
    "one contribution with its own noise only, which costs a local loss however large n is.",
)

PAIRWISE_MAX_USERS = 3000  # eigenvalues of a dense matrix


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
    if protocol.n > PAIRWISE_MAX_USERS:
        raise Unsupported(f"the matrix logarithm of {protocol.n} users; it is offered up to {PAIRWISE_MAX_USERS}")
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
        references=PAIRWISE_REFERENCES,
        errata=PAIRWISE_ERRATA,
    )


TRADEOFF_REFERENCES = (
    "X. Li, B. Su, C. Wang, Q. Long, W. Su. Mitigating Privacy–Utility Trade-off in Decentralized Federated Learning via "
    "f-Differential Privacy. NeurIPS 2025.",
)

TRADEOFF_ERRATA = (
    "μ_t = Δ/(σ√(t + 1)) counts one noise too many: who gets the token right from u (t = 1) sees u's step with u's noise alone, "
    "a shift of Δ/σ; the formula says Δ/(σ√2).",
    "Lemma 4.3 states the same μ_t for losses that are not convex. A step that doubles distances keeps the shift as large as the "
    "noise that is added later: after any number of them μ stays above Δ√3/(2σ).",
    "Only one contribution of u is counted for each visit of v. If u holds the token k times before v looks, the shift is k times "
    "as large.",
    "The release of the final model is not counted.",
)

TRADEOFF_MAX_USERS = 1000

_UNLIKELY = (1e-4, 1e-7, 1e-10)


def first_times(W: FloatArray, observer: int, steps: int) -> FloatArray:
    """(steps, n): w_t = P(a walk from u is first at the observer after t steps), t = 1 … steps.

    >>> first_times(np.array([[0.5, 0.5], [0.5, 0.5]]), 1, 3)[:, 0].tolist()
    [0.5, 0.25, 0.125]
    """
    law = np.empty((steps, len(W)))
    here = W[:, observer].copy()
    passing = W.copy()
    passing[:, observer] = 0.0
    for t in range(steps):
        law[t] = here
        here = passing @ here
    return law


def tradeoff_loss(protocol: WalkDescent, observer: int) -> Guarantee:
    """As a statement about every target."""
    if protocol.n > TRADEOFF_MAX_USERS:
        raise Unsupported(
            f"the laws of all hitting times of {protocol.n} users; they are offered up to {TRADEOFF_MAX_USERS}"
        )
    W, n, steps = protocol.transition.toarray(), protocol.n, protocol.steps
    second = float(np.linalg.eigvalsh(W)[-2])
    law = first_times(W, observer, steps)
    mu = protocol.sensitivity / protocol.sigma / np.sqrt(np.arange(1, steps + 1) + 1.0)
    eps = np.concatenate([[0.0], np.geomspace(1e-4 * mu[0], 4 * mu[0] * (mu[0] + 8.0), 300)])
    table = np.asarray(gaussian_delta(mu[None, :], eps[:, None]))
    common = np.concatenate([[0.0], np.geomspace(1e-3, 200.0, 500)])
    found = np.full((n, common.size), np.nan)
    for u in range(n):
        if u == observer:
            continue
        one = ProfileCurve(eps, np.minimum.accumulate(np.minimum(table @ law[:, u], 1.0)))
        best = np.ones(common.size)
        for unlikely in _UNLIKELY:
            zeta = math.sqrt(-math.log(unlikely) * (1 + second) / (1 - second) * n**2 / (2 * steps))
            composed = one.self_compose(math.ceil((1 + zeta) * steps / n))
            best = np.minimum(best, np.asarray(composed.delta(common)) + unlikely)
        found[u] = np.minimum.accumulate(np.minimum(best, 1.0))
    return Guarantee(
        curve=ProfileCurve(common, found),
        adjacency=Adjacency.REPLACE,
        claim=Claim.PUBLISHED,
        assumptions=(
            "convex smooth losses, step ≤ 2/β, one gradient step per visit",
            f"the least over ζ with δ′ in {', '.join(f'{unlikely:g}' for unlikely in _UNLIKELY)}",
        ),
        references=TRADEOFF_REFERENCES,
        errata=TRADEOFF_ERRATA,
    )


VERSIONS = ("2024", "2025")


def on_a_graph(protocol: WalkDescent, observers: tuple[int, ...], version: str | None) -> Guarantee:
    """The formula of 2024, or of 2025, for a `WalkDescent` on a graph."""
    if version not in (None, *VERSIONS):
        raise InvalidValue(f"unknown version {version!r} for descent on a graph; choose one of {', '.join(VERSIONS)}")
    if len(observers) > 1:
        raise Unsupported(
            f"the papers on walks over graphs are about one observer, got {len(observers)}; ask for method='certified'"
        )
    if protocol.walk != "metropolis":
        raise Unsupported("the papers are about walks with a symmetric matrix; take walk='metropolis'")
    if protocol.tokens > 1:
        raise Unsupported(f"the papers analyse one token, got tokens={protocol.tokens}; ask for method='certified'")
    if protocol.expansion > 1:
        raise Unsupported("amplification by iteration needs steps that do not expand; choose step ≤ 2/β")
    return (tradeoff_loss if version == "2025" else pairwise_loss)(protocol, observers[0])
