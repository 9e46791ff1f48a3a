"""The error of the answer where the matrix changes from step to step.

Given the steps, x^T = W_{T−1}⋯W_0 (x + ση), so the expected squared error is ‖W_{0:T}x − x̄1‖²/n + σ²‖W_{0:T}‖²_F/n.

Randomized gossip before its edges are drawn: E‖W_{0:T}y‖² = yᵀG_T y with G_0 = I and G_{t+1} = E[W G_t W] (the steps are
independent and alike, so their order does not matter). With a_e = (e_u − e_w)/√2, W = I − a_e a_eᵀ with probability p_e, and
L_p = 2Σ p_e a_e a_eᵀ the Laplacian with weights p,

    G_{t+1} = G_t − (L_p G_t + G_t L_p)/2 + Σ_e p_e (a_eᵀ G_t a_e) a_e a_eᵀ,

an exact recursion on n × n numbers. The mean is kept by every W, so the error is yᵀG_T y/n for y = x − x̄1, plus σ² tr G_T/n.
Fresh noise of variance τ² enters at u and w before the exchange of step t, if they have sent before, which for u has
probability q_u(t) = 1 − (1 − p_u)^t, p_u the sum of p at u, and does not depend on later steps. Averaged it is (e_u + e_w)/2 times
it, so it adds τ²·Σ_e p_e(q_u(t) + q_w(t))·(e_u + e_w)ᵀG_{T−1−t}(e_u + e_w)/4 to n times the error.

On a grid every value is rounded, and every sharing out moves both ends by at most half a step. What is rounded stays in the
states from then on and is averaged like them, so after s exchanges the answer has moved by at most ρ = (½ + s·√(1/2n))·√d·g
(root mean square over the parties); the error grows by at most 2ρr + ρ², r its root without.

Graphs drawn anew in every round, before the draw: their law does not change when parties are renumbered, so E[W²] = γI +
(1−γ)·11ᵀ/n with γ = (E tr W² − 1)/(n − 1), and E‖W_{0:T}y‖² is ‖y‖² times the T-th power of γ for every y of sum 0.
E(W²)_uu is taken from above, from the law of a party's star (`netdp.accounting.gossip.redrawn_descent.stars`); that the
union is connected divides by the chance of that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from netdp.accounting.gossip.redrawn import connected_chance, meeting
from netdp.accounting.gossip.redrawn_descent import stars
from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.kernels import average_along, csr_times_block, drift_along
from netdp.numerics.values import party_values
from netdp.protocols import ErdosRenyiGossip, PushSum, RandomizedGossip, VaryingGossip
from netdp.views import exchanged

from .error import ExpectedError, predictions
from .gossip import MAX_PARTIES

# Multiplications of the second-moment recursion: about a minute.
MAX_PRODUCTS = 3e10
_BLOCK = 64


@predictions.register
def _varying_error(protocol: VaryingGossip, values: npt.ArrayLike | None = None) -> ExpectedError:
    def final(block: FloatArray) -> FloatArray:
        for W in protocol.matrices:
            block = csr_times_block(W.indptr, W.indices, W.data, block)
        return block

    return _given(protocol, values, final)


@predictions.register
def _push_error(protocol: PushSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    """The estimates are D⁻¹Aᵀx of the noisy values: linear, D the public weights; rows sum to 1, columns need not."""

    def final(block: FloatArray) -> FloatArray:
        for _ in range(protocol.rounds):
            block = np.asarray(protocol.matrix @ block)
        return block / protocol.weights[:, None]

    return _given(protocol, values, final)


@predictions.register
def _redrawn_error(protocol: ErdosRenyiGossip, values: npt.ArrayLike | None = None) -> ExpectedError:
    """Before the graphs are drawn, rounded up; for one graph per run ask for the error of a draw."""
    if not protocol.varying:
        raise Unsupported(
            "ErdosRenyiGossip: its graph is not drawn yet; ask for the error of a draw, expected_error(protocol.draw(seed))"
        )
    n, law = protocol.n, stars(protocol.n, protocol.p, 0, protocol.mixing)
    sure = connected_chance(n, meeting(protocol.p, protocol.rounds))
    if sure == 0:
        raise Unsupported(
            f"ErdosRenyiGossip: with p={protocol.p:g} the union of {protocol.rounds} rounds may hardly ever be connected; "
            "raise p or rounds, or ask for the error of a draw"
        )
    kept = max(n * float(law.chance @ law.spread) - 1.0, 0.0) / (n - 1)
    left = min(kept**protocol.rounds / sure, 1.0)
    data = party_values(values, n) if values is not None else np.zeros((n, 1))
    spread = float(((data - data.mean(axis=0)) ** 2).sum()) / n if values is not None else protocol.sensitivity**2 / 4
    noise = protocol.sigma**2 * (1 + (n - 1) * left) * data.shape[1] / n
    return ExpectedError(noise=noise, mixing=left * spread)


@predictions.register
def _randomized_error(
    protocol: RandomizedGossip, values: npt.ArrayLike | None = None, *, transcript: Any = None
) -> ExpectedError:
    """In expectation over the edges, or given them (an array or a transcript)."""
    if transcript is None and protocol.accelerated:
        raise Unsupported(
            "RandomizedGossip: with acceleration the error is predicted for known edges only; ask "
            "expected_error(protocol, values, transcript=protocol.draw(seed))"
        )
    if transcript is None:
        return _rounded(protocol, _in_expectation(protocol, values), values, protocol.steps)
    known = exchanged(protocol, transcript)

    def final(block: FloatArray) -> FloatArray:
        block = np.array(block, order="C")
        if protocol.accelerated:
            nobody = np.zeros(len(block), dtype=bool)
            drift_along(known, block, block.copy(), *protocol.momentum, nobody, np.empty((0, block.shape[1])))
            return block
        average_along(known, block, np.zeros(len(block), dtype=bool), np.empty((0, block.shape[1])))
        return block

    found = _given(protocol, values, final)
    columns = 1 if values is None else party_values(values, protocol.n).shape[1]
    found = replace(found, refresh=protocol.refresh_variance * _fresh_along(known, protocol.n) * columns / protocol.n)
    return _rounded(protocol, found, values, int((known[:, 0] >= 0).sum()))


def _fresh_along(edges: IntArray, n: int) -> float:
    """tr of the covariance of fresh noises of variance 1 in the final states, given the edges."""
    covariance, began = np.zeros((n, n)), np.zeros(n, dtype=bool)
    for u, w in edges[edges[:, 0] >= 0].tolist():
        for p in (u, w):
            covariance[p, p] += began[p]
            began[p] = True
        covariance[u] = covariance[w] = 0.5 * (covariance[u] + covariance[w])
        covariance[:, u] = covariance[:, w] = 0.5 * (covariance[:, u] + covariance[:, w])
    return float(np.trace(covariance))


def _rounded(
    protocol: RandomizedGossip, real: ExpectedError, values: npt.ArrayLike | None, exchanges: int
) -> ExpectedError:
    """On a grid: noise rounded up to whole variances, and what rounding moves."""
    if protocol.dimension > 1 and values is None:
        d = protocol.dimension
        real = ExpectedError(d * real.noise, refresh=d * real.refresh, mixing=2 * d / (d + 1) * real.mixing)
    if protocol.grid is None:
        return real
    columns = protocol.dimension if values is None else party_values(values, protocol.n).shape[1]
    square = protocol.step**2
    noise = real.noise * (protocol.start_variance * square / protocol.sigma**2)
    fresh = real.refresh * (protocol.fresh_variance * square / protocol.refresh_variance) if real.refresh else 0.0
    moved = (0.5 + exchanges / np.sqrt(2 * protocol.n)) * np.sqrt(columns) * protocol.step
    without = ExpectedError(noise=noise, refresh=fresh, mixing=real.mixing)
    return replace(without, rounding=float(2 * moved * without.rmse + moved**2))


def _given(
    protocol: VaryingGossip | RandomizedGossip | PushSum,
    values: npt.ArrayLike | None,
    final: Callable[[FloatArray], FloatArray],
) -> ExpectedError:
    n = protocol.n
    data = party_values(values, n) if values is not None else np.zeros((n, 1))
    if n > MAX_PARTIES:
        raise Unsupported(f"the exact error runs over all pairs of {n} parties; it is offered up to {MAX_PARTIES}")
    noise = 0.0
    for first in range(0, n, _BLOCK):
        width = min(_BLOCK, n - first)
        unit = np.zeros((n, width))
        unit[first + np.arange(width), np.arange(width)] = 1.0
        noise += float((final(unit) ** 2).sum())
    mixing = float(((final(data) - data.mean(axis=0)) ** 2).sum()) / n
    if values is None:  # the Frobenius norm without the constant vector bounds what is left of any values
        mixing = max(noise - 1.0, 0.0) * protocol.sensitivity**2 / 4
    return ExpectedError(noise=protocol.sigma**2 * noise * data.shape[1] / n, mixing=mixing)


def _in_expectation(protocol: RandomizedGossip, values: npt.ArrayLike | None) -> ExpectedError:
    graph = protocol.graph
    n = graph.n
    data = party_values(values, n) if values is not None else np.zeros((n, 1))
    if 2.0 * (graph.m + n) * n * protocol.steps > MAX_PRODUCTS:
        raise Unsupported(
            f"the error over all edge sequences follows {n}² numbers through {protocol.steps} steps, which takes too long; "
            "ask for the error of one sequence, expected_error(protocol, values, transcript=protocol.draw(seed))"
        )
    u, w = graph.edges().T
    chances = protocol.edge_probabilities
    places = np.concatenate([u, w]), np.concatenate([w, u])
    weights = sparse.csr_array((np.tile(chances, 2), places), shape=(n, n))
    degrees = np.asarray(weights.sum(axis=1)).ravel()
    second = np.eye(n)
    diagonal, fresh = np.arange(n), 0.0
    for after in range(protocol.steps):
        if protocol.refresh > 0:
            sent = 1.0 - (1.0 - np.minimum(degrees, 1.0)) ** (protocol.steps - 1 - after)  # before this step
            both = second[u, u] + second[w, w] + 2.0 * second[u, w]
            fresh += float((chances * (sent[u] + sent[w]) * both).sum()) / 4
        energy = 0.5 * (second[u, u] + second[w, w] - 2.0 * second[u, w])  # aᵀGa for every edge
        half = 0.5 * (
            degrees[:, None] * second - csr_times_block(weights.indptr, weights.indices, weights.data, second)
        )
        second = second - half - half.T
        share = 0.5 * chances * energy
        second[u, w] -= share
        second[w, u] -= share
        second[diagonal, diagonal] += np.bincount(u, share, n) + np.bincount(w, share, n)
    spread = data - data.mean(axis=0)
    mixing = float((spread * (second @ spread)).sum()) / n
    if values is None:  # the largest eigenvalue of G beside the 1 of the constant vector, on ‖y‖² ≤ nΔ²/4
        mixing = max(float(np.linalg.eigvalsh(second - 1.0 / n)[-1]), 0.0) * protocol.sensitivity**2 / 4
    return ExpectedError(
        noise=protocol.sigma**2 * float(np.trace(second)) * data.shape[1] / n,
        refresh=protocol.refresh_variance * fresh * data.shape[1] / n,
        mixing=mixing,
    )
