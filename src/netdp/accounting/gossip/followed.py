"""Refreshed gossip with many messages: the loss without refresh, less what fresh noise hides (docs/guarantees.md#refresh).

`exact` reduces all noise of the N messages to a triangle, round after round: T factorisations of up to N columns. Here there is
one, of the fresh noise alone, and all the rest happens in the k dimensions of the seen space.

**Theorem.** Let w_u = Λ⁻¹q_u with QᵀSQ = ΛΛᵀ (Λ lower triangular; S = I + κL′, so that without masks w_u = q_u), the b directions
of the boundary first. Let F be the covariance of the fresh noise in the messages of rounds 1 … T−1 for τ = 1, X their responses
to the seen space, K = F^{−1/2}Xᵀ, and G = KΛ/τ without its first b columns. Then, with w̃_u = w_u without its first b entries,

    factor_u = ‖w_u‖² − w̃_uᵀ (I + GᵀG)⁻¹ w̃_u.

*Proof.* Let ω = Λ⁻¹Qᵀz⁰: standard normal around w_u Δ. The messages of round 0 are the boundary's first values: the first b entries
of Qᵀz⁰, hence of ω, exactly, and nothing else. Given them, the later messages, made white, are Gω̃ plus standard normal noise,
up to what is known. So what is seen is worth (first b entries: all of their ‖w‖²) plus w̃ᵀGᵀ(I + GGᵀ)⁻¹Gw̃ = ‖w̃‖² − w̃ᵀ(I + GᵀG)⁻¹w̃. ∎

‖w_u‖² is the loss without refresh. As the second term is never negative, whatever cannot be resolved costs only that much: there is
no strength of refresh at which the numbers break down, and τ is a factor of G.

Rounding.  With plain steps F ⪰ ¼ (the proof of `#refresh`, with the h_j of j ≥ 1 alone). Let
c be its condition and m_F = 32(N + k)u·c the relative error of its Cholesky factor as a quadratic form, u the unit roundoff;
m_G = 32(N + k)u·√c(1 + ‖G‖) that of [I; G] and its triangle, whose smallest singular value is at least 1; m_S = 16ku·(condition of
S) that of Λ. Then the second term is at least (√v(1 − m_F/2 − 2m_G) − m_S)² for the computed v, and ‖w‖² at most its computed
value times (1 + 16ku)/(1 − m_S). Where m_F/2 + 2m_G is 1 or more the second term counts as 0, and the slack is all that it may be.

*The space* is tilted by rounding, as without refresh (`krylov`), and the smaller of two margins is added to the factor. One
is that of
the loss without refresh, tilt·(1 + condition of S); a doubtful space has none. The other, `displaced`, needs no tilt: with
G over all
hidden coordinates, the first term is [S⁻¹]_uu ≤ 1 whatever the space, and (I + GᵀG)⁻¹ moves by at most ‖Δ‖ if G moves by Δ, as
‖(I + GᵀG)⁻¹Gᵀ‖ ≤ ½. Computed responses Q p_t(QᵀPQ)QᵀCᵀ leave the recursion of the true ones by what a step dropped and its
rounding, d = dropped
+ 16√k·u per block, so by √T·d per step, T√T·d after T steps that do not expand, and η = T²·d for all messages together (accelerated
4T² times that: there |r_t| ≤ t + 1). So ‖Δ‖ ≤ η√(condition of S)/(τ√f), f the least eigenvalue of F, and F itself moves by a share
2η√‖F‖/f, which moves the factor by no more than that share.

*Accelerated*, F ⪰ ((2−γ)/(2γ))²: with z the shift by a round, Σ r_m zᵐ = (1 + (1−γ)z)/(1 − γPz + (γ−1)z²), so Cᵀa is h
under an operator
of norm at most 2γ/(2−γ). The estimate of LAPACK, a tenth of it, counts where it is larger.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.protocols import response
from netdp.views import GossipView

_COLUMNS_AT_ONCE = 16
_ROWS_AT_ONCE = 8_192


class Followed:
    """The fresh noise of refreshed gossip followed through all messages; what they lose at given masks and refresh."""

    def __init__(self, view: GossipView, basis: FloatArray, progress: Progress | None = None) -> None:
        protocol = view.protocol
        T, b, k = protocol.rounds, len(view.boundary), basis.shape[1]
        step = np.empty((k, k))
        for first in range(0, k, _COLUMNS_AT_ONCE):
            columns = slice(first, min(first + _COLUMNS_AT_ONCE, k))
            step[:, columns] = basis.T @ view.step(basis[:, columns])
        start = np.ascontiguousarray(basis[view.boundary].T)
        gamma = protocol.chebyshev
        states = list(response(lambda x: step @ x, start, T, gamma))
        impulses = states if gamma is None else list(response(lambda x: step @ x, start, T - 1, gamma, fresh=True))
        self.view, self.basis, self.count = view, basis, T * b
        if progress is not None:
            progress(1, 4)
        covariance = _covariance(impulses[: T - 1], gamma is None)
        size = float(np.abs(covariance).sum(axis=0).max())
        root = linalg.cholesky(covariance, lower=True, check_finite=False, overwrite_a=True)
        smallest = 0.25
        if gamma is not None:
            reciprocal = linalg.lapack.dpocon(root, size, uplo="L")[0]
            smallest = max(reciprocal * size / 10.0, ((2.0 - gamma) / (2.0 * gamma)) ** 2)
        self.condition = max(size / smallest, 1.0) if smallest > 0 else np.inf
        self._size, self._smallest = size, smallest
        if progress is not None:
            progress(2, 4)
        white = linalg.solve_triangular(root, np.hstack(states[1:]).T, lower=True, check_finite=False)[:, b:]
        if len(white) > k - b > 0:
            white = linalg.qr(white, mode="r", check_finite=False, overwrite_a=True)[0][: k - b]
        self.white = np.asarray(white)
        if progress is not None:
            progress(3, 4)

    def displaced(self, dropped: float, condition: float, refresh: float) -> float:
        """How far a factor may be off because the space is built of rounded vectors, `dropped` the largest size left out."""
        rounds, k = self.view.protocol.rounds, self.basis.shape[1]
        moved = float(rounds) ** 2 * (dropped + 16.0 * np.sqrt(k) * UNIT)
        if self.view.protocol.chebyshev is not None:
            moved *= 4.0 * float(rounds) ** 2
        tau = np.sqrt(refresh / rounds)
        if not (tau > 0 and self._smallest > 0):
            return np.inf
        with np.errstate(over="ignore"):
            responses = np.sqrt(condition / self._smallest) / tau
            return float(moved * (responses + 2.0 * np.sqrt(self._size) / self._smallest))

    def factors(self, root: FloatArray | None, masked: float, refresh: float) -> tuple[FloatArray, FloatArray]:
        """Upper ends of all factors, and the same without their margins; `root` is Λ (None: 1), `masked` its relative error."""
        view, basis, k, b = self.view, self.basis, self.basis.shape[1], len(self.view.boundary)
        tau = np.sqrt(refresh / view.protocol.rounds)
        unit = 32.0 * (self.count + k) * UNIT
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # of refresh next to nothing
            seen = (self.white if root is None else self.white @ root[b:, b:]) / tau
            rows, columns = np.abs(seen).sum(axis=1).max(initial=0.0), np.abs(seen).sum(axis=0).max(initial=0.0)
            lost = unit * self.condition / 2 + 2 * unit * np.sqrt(self.condition) * (1 + np.sqrt(rows * columns))
        triangle = None
        if k > b and lost < 1:
            triangle = linalg.qr(np.vstack([np.eye(k - b), seen]), mode="r", check_finite=False, overwrite_a=True)[0]
            triangle = triangle[: k - b]
        upper, computed = np.empty(len(basis)), np.empty(len(basis))
        for first in range(0, len(basis), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            w = basis[part].T
            if root is not None:
                w = linalg.solve_triangular(root, w, lower=True, check_finite=False)
            whole = np.einsum("ij,ij->j", w, w)
            if triangle is not None:
                left = linalg.solve_triangular(triangle, w[b:], trans="T", check_finite=False)
                hidden = np.einsum("ij,ij->j", left, left)
                sure = np.maximum(np.sqrt(hidden) * (1 - lost) - masked, 0.0) ** 2
            else:  # anything between nothing and all of it
                hidden, sure = np.einsum("ij,ij->j", w[b:], w[b:]), np.zeros(len(whole))
            computed[part] = whole - hidden
            upper[part] = np.where(whole > 0, whole * (1 + 16 * k * UNIT) / (1 - masked) - sure, 0.0)
        return np.maximum(upper, 0.0), computed


def _covariance(impulses: list[FloatArray], plain: bool) -> FloatArray:
    """F: the covariance of the fresh noise in the messages of rounds 1, 2, …, for τ = 1, from the responses r₀, r₁, … to it.

    Its block for the rounds s and t is Σ_{1≤j≤min(s,t)} r_{s−j}ᵀ r_{t−j}: one more term than the block before it on the diagonal.
    """
    count, b = len(impulses), impulses[0].shape[1]
    products: FloatArray
    if plain:  # rᵀ_s r_t depends on s + t alone
        moments = [impulses[i // 2].T @ impulses[i - i // 2] for i in range(2 * count - 1)]
    else:
        together = np.hstack(impulses)
        products = together.T @ together
    covariance = np.empty((count * b, count * b))
    for s in range(count):
        for t in range(s + 1):
            block = moments[s + t] if plain else products[s * b : (s + 1) * b, t * b : (t + 1) * b]
            if t:
                block = block + covariance[(s - 1) * b : s * b, (t - 1) * b : t * b]
            covariance[s * b : (s + 1) * b, t * b : (t + 1) * b] = block
            if s != t:
                covariance[t * b : (t + 1) * b, s * b : (s + 1) * b] = block.T
    return covariance
