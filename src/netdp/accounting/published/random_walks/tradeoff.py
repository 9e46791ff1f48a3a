"""Pairwise network f-DP of descent along a walk (Li, Su, Wang, Long, Su, NeurIPS 2025, Theorem 4.1), one step per visit.

Let w_t be the probability that v first comes t steps after u. One sight of v is a mixture over t of Gaussian trade-offs with
μ_t = Δ/(σ√(t + 1)), nothing at all if v does not come within T steps; composed ⌈(1 + ζ)T/n⌉ times, with
δ′ = exp(−(1 − λ₂)/(1 + λ₂)·2ζ²T/n²) added, for any ζ. The least over a few ζ is returned. **Not a guarantee**, see `ERRATA`.
"""

from __future__ import annotations

import math

import numpy as np

from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.privacy import Adjacency, Claim, Guarantee, ProfileCurve, gaussian_delta
from netdp.protocols.walk import WalkDescent

REFERENCES = (
    "X. Li, B. Su, C. Wang, Q. Long, W. Su. Mitigating Privacy–Utility Trade-off in Decentralized Federated Learning via "
    "f-Differential Privacy. NeurIPS 2025.",
)
ERRATA = (
    "μ_t = Δ/(σ√(t + 1)) counts one noise too many: who gets the token right from u (t = 1) sees u's step with u's noise alone, "
    "a shift of Δ/σ; the formula says Δ/(σ√2).",
    "Lemma 4.3 states the same μ_t for losses that are not convex. A step that doubles distances keeps the shift as large as the "
    "noise that is added later: after any number of them μ stays above Δ√3/(2σ).",
    "Only one contribution of u is counted for each visit of v. If u holds the token k times before v looks, the shift is k times "
    "as large.",
    "The release of the final model is not counted.",
)
MAX_USERS = 1000
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
    if protocol.n > MAX_USERS:
        raise Unsupported(f"the laws of all hitting times of {protocol.n} users; they are offered up to {MAX_USERS}")
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
        references=REFERENCES,
        errata=ERRATA,
    )
