"""Muffliato as printed (Cyffers, Even, Bellet, Massoulié, NeurIPS 2022): its losses, which are no bounds, and its utility.

**Losses** are factors: multiples of the local-DP loss αΔ²/(2σ²), so that RDP(α) = factor · αΔ²/(2σ²).

*Theorem 1, Theorem 12, Corollary 1* are not upper bounds. The proof of Theorem 1 adds the divergences of single messages as if
their noises were independent, but all messages carry the same initial noise. On a ring with weights 1/3, after two rounds v
knows the noisy value of a party two hops away exactly (loss factor 1); the formula says 1/3. Tests:
tests/papers/formulas/test_muffliato.py.

*Corollary 2* (randomized gossip, given the edges) is none for the same reason. Path 0–1–2, exchanges {0,1}, {1,2}, {0,1},
observer 0: the last message brings (n₀+n₁)/4 + n₂/2, of which 0 knows n₀ and n₁, so it learns the noisy value n₂ of party 2,
factor 1; the formula says 2/3.

*Equations (6) and (14)* (graphs that change) are none either. The printed (W_{0:t})_{u,w} is a product of different matrices
and not symmetric; the weight of u in the message of w is (W_{0:t})_{w,u}, which is used here.

*Corollaries 3 and 4* (collusion), *Theorems 4/9, Corollary 5, Proposition 1* (secret random graphs). Theorem 4/9 does hold, by
another proof: `netdp.families.gossip.account.secret_graphs` offers it certified and without its condition on σ.

In the table of published losses, for gossip that changes or stays secret:

VaryingGossip       Equation (6), with colluders (14)
ErdosRenyiGossip    Theorem 4/9, with colluders Corollary 5: for a party that is no neighbour, or for one that is
ErdosRenyiDescent   Proposition 1, in the mean over its random β_t and |N_t(V)|

The last three hold, by their own words, only for orders with σ² ≥ Δ²α(α−1)/2: no other order is used.

**Utility** of averaging: Theorems 2/7 (synchronous), 3/8 (randomized), T_stop, Table 1. The paper's utility is
(1/2n) Σ_v E‖x_v − x̄‖²: *half* the mean squared error that `netdp.expected_error` predicts. Of learning, constants and
logarithms hidden: Theorems 5 and 10, T_stop and K,

    E[φ(θ̃) − φ(θ*)] = Õ((σ² + ρ̄²)/(nμT) + L‖θ⁰ − θ*‖²e^{−T/2κ}),

θ̃ a weighted average of the mean models, after T iterations of K rounds each; φ is μ-strongly convex, every φ_v L-smooth,
κ = L/μ. A bound with all its constants, proved here: `netdp.protocols.risk`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from netdp.engines.choice import cores
from netdp.engines.maps import team
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account.secret_graphs import meeting
from netdp.families.gossip.descent import ErdosRenyiDescent, GossipDescent, GossipRounds
from netdp.families.gossip.protocol import Gossip, RandomizedGossip
from netdp.families.gossip.varying import ErdosRenyiGossip, VaryingGossip
from netdp.families.gossip.views import GossipView, exchanged
from netdp.numerics.arrays import FloatArray, Progress
from netdp.numerics.checks import count, positive
from netdp.numerics.kernels import csr_times_block
from netdp.papers.formulas.matrix_factorization import pairwise_loss
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.renyi import DEFAULT_ORDERS, RenyiCurve
from netdp.protocols.table import published, published_pairs
from netdp.protocols.views import observer_set

RANDOMIZED_ERRATA = (
    "Corollary 2 prints (W_{0:t})_{u,w}; a product of different matrices is not symmetric, and the weight of u in the "
    "message of w is (W_{0:t})_{w,u}, which is used here.",
    "Corollary 2 is not an upper bound: path 0-1-2, exchanges {0,1}, {1,2}, {0,1}, observer 0: true "
    "factor of 2 is 1, formula 2/3.",
    "Theorems 3 and 8 need λ(p)/2 in place of λ(p), the second eigenvalue of the Laplacian with weights p: "
    "E‖Wx‖² = ‖x‖² − xᵀL_p x/2. On the complete graph the printed rate is exceeded at every step.",
)


def corollary2(protocol: RandomizedGossip, observers: tuple[int, ...], edges: npt.NDArray[np.int64]) -> FloatArray:
    """Σ_{w~v} Σ_{t: {v,w} wakes at t} (W_{0:t})²_{w,u} / ‖(W_{0:t})_w‖² for all u, as a factor; nan at the observers.

    Colluders as in Theorem 12: the sum runs over all messages to some colluder, those among colluders included.

    >>> from netdp import graphs
    >>> protocol = RandomizedGossip(graphs.path(3), steps=3, sigma=1.0)
    >>> corollary2(protocol, (0,), np.array([[0, 1], [1, 2], [0, 1]])).round(4).tolist()
    [nan, 1.1667, 0.6667]
    """
    watching = set(observers)
    # Rows of W_{0:t} run backwards: a row is started at its message and averaged through all earlier exchanges.
    received = sum((u in watching) + (w in watching) for u, w in edges.tolist())
    rows, open_ = np.zeros((protocol.graph.n, received)), 0
    for u, w in edges[::-1].tolist():
        if u < 0:
            continue
        rows[u, :open_] = rows[w, :open_] = 0.5 * (rows[u, :open_] + rows[w, :open_])
        for sender, receiver in ((u, w), (w, u)):
            if receiver in watching:
                rows[sender, open_] = 1.0
                open_ += 1
    squares = rows**2
    total = np.asarray(squares @ (1.0 / squares.sum(axis=0)))
    total[list(observers)] = np.nan
    return total


REFERENCES = (
    "E. Cyffers, M. Even, A. Bellet, L. Massoulié. Muffliato: Peer-to-Peer Privacy Amplification for Decentralized "
    "Optimization and Averaging. NeurIPS 2022.",
)

THEOREMS_ERRATA = (
    "Theorem 1 and Theorem 12 are not upper bounds: the proof composes the messages as if their noises were independent; "
    "they are the same noise. Ring, weights 1/3, two rounds, two hops: true factor 1, formula 1/3.",
    "The formula exceeds 1 for close pairs, although no view can cost more than local DP.",
    "Equation (14) sums over all parties that talk to a colluder, colluders included; equation (15) counts only the others.",
    "Appendix C.3 prints the mean loss with n² in the denominator; Theorem 1 gives n.",
    "The formula knows neither refresh nor masks; it is computed for plain gossip with the same matrix, rounds and σ.",
)

# Columns of Wᵗ carried at once: a block of this width and 2,000 rows stays in the cache of one core.
_BLOCK = 48


def theorem1(protocol: Gossip, observer: int | str) -> FloatArray:
    """f(u, v) = Σ_{w~v} Σ_{t<T} (Wᵗ)²_{u,w} / ‖(Wᵗ)_w‖², for all u, as a factor; nan at the observer.

    >>> from netdp import graphs
    >>> theorem1(Gossip(graphs.ring(9), rounds=2, sigma=1.0), 0).round(4).tolist()
    [nan, 1.3333, 0.3333, 0.0, 0.0, 0.0, 0.0, 0.3333, 1.3333]
    """
    return theorem12(protocol, [observer])


def theorem12(
    protocol: Gossip | GossipRounds, observers: int | str | Iterable[int | str], *, ids: bool = False
) -> FloatArray:
    """Equation (14): the same sum over all w that talk to some colluder, colluders included, as printed.

    `ids=True`: the observers are node numbers that were looked up already.
    """
    members = observer_set(protocol.graph, observers, ids=ids)
    senders = np.unique(np.concatenate([protocol.graph.neighbors(v) for v in members])).astype(np.int64)
    total = np.zeros(protocol.graph.n)
    for first in range(0, len(senders), _BLOCK):
        chosen = senders[first : first + _BLOCK]
        block = np.zeros((protocol.graph.n, len(chosen)))
        block[chosen, np.arange(len(chosen))] = 1.0
        for t in range(protocol.rounds):
            if t:
                block = _times_matrix(protocol, block)
            squares = block**2
            total += squares @ (1.0 / squares.sum(axis=0))
    total[list(members)] = np.nan
    return total


def theorem1_pairwise(protocol: Gossip) -> FloatArray:
    """Theorem 1 for all ordered pairs: [u, v] is what v is said to learn about u; nan on the diagonal.

    The sum over w ~ v is linear, so the normalised squares are summed over t first (in blocks of columns that stay in
    the cache, Wᵗ applied step by step) and multiplied by the adjacency matrix once.
    """
    graph, W = protocol.graph, protocol.matrix
    n = graph.n
    shares = np.zeros((n, n))
    firsts = range(0, n, _BLOCK)
    result = np.empty((n, n))
    threads = cores()
    rows = np.linspace(0, n, 4 * threads + 1).astype(int).tolist()
    with team(threads) as together:
        together(
            lambda i: _add_shares(
                W.indptr, W.indices, W.data, protocol.rounds, shares, firsts[i], min(firsts[i] + _BLOCK, n)
            ),
            len(firsts),
        )
        together(
            lambda i: _sum_over_neighbours(graph.indptr, graph.indices, shares, result, rows[i], rows[i + 1]),
            len(rows) - 1,
        )
    np.fill_diagonal(result, np.nan)
    return result


def corollary1(protocol: Gossip, observer: int | str) -> FloatArray:
    """n · max_{w~v} W_{v,w}⁻² · Σ_{t=1}^{T} P(Xᵗ = v | X⁰ = u)², X the random walk with transitions W."""
    (v,) = observer_set(protocol.graph, observer)
    weights = np.asarray(protocol.matrix[[v], :].todense()).ravel()[protocol.graph.neighbors(v)]
    walk = np.zeros((protocol.graph.n, 1))
    walk[v] = 1.0
    total = np.zeros(protocol.graph.n)
    for _ in range(protocol.rounds):
        walk = _times_matrix(protocol, walk)  # W is symmetric: column v of Wᵗ holds P(Xᵗ = v | X⁰ = u)
        total += walk[:, 0] ** 2
    total *= protocol.graph.n / weights.min() ** 2
    total[v] = np.nan
    return total


def mean_loss(protocol: Gossip, observer: int | str) -> float:
    """ε̄_v = T_v/n as a factor, T_v = T·deg(v) the messages v receives."""
    (v,) = observer_set(protocol.graph, observer)
    return protocol.rounds * int(protocol.graph.degrees[v]) / protocol.graph.n


def _times_matrix(protocol: Gossip | GossipRounds, block: FloatArray) -> FloatArray:
    W = protocol.matrix
    return csr_times_block(W.indptr, W.indices, W.data, block)


@njit(nogil=True, cache=True, fastmath={"contract"})
def _add_shares(indptr: Any, indices: Any, data: Any, rounds: int, shares: Any, first: int, last: int) -> None:
    """shares[u, w] = Σ_{t<T} (Wᵗ)²_{u,w} / ‖(Wᵗ)_w‖² for the columns w in [first, last)."""
    n, width = len(indptr) - 1, last - first
    current, following = np.zeros((n, width)), np.empty((n, width))
    total = np.zeros((n, width))  # contiguous, so that it stays in the cache; written out once
    for column in range(width):
        current[first + column, column] = 1.0
        total[first + column, column] = 1.0  # t = 0: the own column alone
    squares = np.empty(width)
    for _ in range(1, rounds):
        squares[:] = 0.0
        for row in range(n):
            target = following[row]
            target[:] = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                weight, source = data[entry], current[indices[entry]]
                for column in range(width):
                    target[column] += weight * source[column]
            for column in range(width):
                squares[column] += target[column] * target[column]
        current, following = following, current
        for column in range(width):
            squares[column] = 1.0 / squares[column]
        for row in range(n):
            for column in range(width):
                total[row, column] += current[row, column] * current[row, column] * squares[column]
    shares[:, first:last] = total


@njit(nogil=True, cache=True, fastmath={"contract"})
def _sum_over_neighbours(indptr: Any, indices: Any, shares: Any, result: Any, first: int, last: int) -> None:
    for row in range(first, last):
        for v in range(len(indptr) - 1):
            total = 0.0
            for entry in range(indptr[v], indptr[v + 1]):
                total += shares[row, indices[entry]]
            result[row, v] = total


def published_statement(
    protocol: Gossip | GossipDescent | RandomizedGossip | VaryingGossip,
    factor: FloatArray,
    observers: tuple[int, ...] | str,
    errata: tuple[str, ...] = (),
) -> Guarantee:
    return Guarantee(
        curve=RenyiCurve.linear(factor * protocol.local_mu**2 / 2),
        adjacency=Adjacency.REPLACE,
        claim=Claim.PUBLISHED,
        assumptions=("the formula of the paper, as printed; it is not a bound",),
        references=REFERENCES,
        errata=(*THEOREMS_ERRATA, *errata),
        factor=factor,
    )


@published.register
def _muffliato(protocol: Gossip, observers: tuple[int, ...]) -> Guarantee:
    return published_statement(protocol, theorem12(protocol, observers, ids=True), observers)


@published_pairs.register
def _muffliato_pairs(protocol: Gossip) -> Guarantee:
    return published_statement(protocol, theorem1_pairwise(protocol), "each")


ITERATION_ERRATA = (
    "Theorems 6 and 11 add the iterations up as if later gradients did not react to earlier ones; they do, through states "
    "that the observer does not see, so the sum of the terms of single iterations is not a proof.",
)


@published.register
def _muffliato_sgd(
    protocol: GossipDescent,
    observers: tuple[int, ...],
    *,
    version: str | None = None,
    progress: Progress | None = None,
) -> Guarantee:
    """Theorem 6/11 as printed: the sum over iterations of Theorem 1 for the K rounds of each; or the projector of 2026."""
    if version == "2026":
        return pairwise_loss(protocol, observers)
    if version not in (None, "2022"):
        raise InvalidValue(f"unknown version {version!r} for gossip descent; choose 2022 or 2026")
    iterations = range(1 if protocol.is_static else protocol.iterations)
    factor = np.mean([theorem12(protocol.rounds_of(t), observers, ids=True) for t in iterations], axis=0)
    return published_statement(protocol, factor, observers, ITERATION_ERRATA)


@published.register
def _corollary2(protocol: RandomizedGossip, observers: tuple[int, ...], *, transcript: Any = None) -> Guarantee:
    if transcript is None:
        raise Unsupported(
            "Corollary 2 holds its formula for given edges only; pass transcript=run.transcript, or protocol.draw(seed)"
        )
    if protocol.accelerated:
        raise Unsupported(
            "Corollary 2 is about plain randomized gossip; the paper has no formula for the accelerated one"
        )
    if protocol.refresh > 0 or protocol.grid is not None:
        raise Unsupported("Corollary 2 knows no fresh noise and no grid; ask for it with refresh=0 and grid=None")
    factor = corollary2(protocol, observers, exchanged(protocol, transcript))
    return published_statement(protocol, factor, observers, RANDOMIZED_ERRATA)


COLLUSION_ERRATA = (
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
            f"{most:.4g}. netdp.families.gossip.account.secret_graphs covers all orders"
        )


LEARNING_ERRATA = (
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
    "(docs/proofs/gossip.md#hidden-state).",
)


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


UTILITY_ERRATA = (
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


VARYING_ERRATA = (
    "Equations (6) and (14) print (W_{0:t})_{u,w}; a product of different matrices is not symmetric, and the weight of u in the "
    "message of w is (W_{0:t})_{w,u}, which is used here.",
)


def equation14(protocol: VaryingGossip, observers: tuple[int, ...]) -> FloatArray:
    """Σ_t Σ_w (W_{0:t})²_{w,u} / ‖(W_{0:t})_w‖² over all w that talk to some colluder in round t, as a factor; nan at V.

    For one observer this is Equation (6).

    >>> from netdp import graphs
    >>> same = VaryingGossip([graphs.ring(9)] * 2, sigma=1.0)
    >>> equation14(same, (0,)).round(4).tolist()                        # as Theorem 1 on the fixed ring
    [nan, 1.3333, 0.3333, 0.0, 0.0, 0.0, 0.0, 0.3333, 1.3333]
    """
    n, rows = protocol.n, np.zeros((protocol.n, 0))
    for t in range(protocol.rounds - 1, -1, -1):
        W, graph = protocol.matrices[t], protocol.graphs[t]
        if rows.shape[1]:
            rows = csr_times_block(W.indptr, W.indices, W.data, rows)
        senders = np.unique(np.concatenate([graph.neighbors(v) for v in observers])).astype(np.int64)
        units = np.zeros((n, len(senders)))
        units[senders, np.arange(len(senders))] = 1.0
        rows = np.hstack([rows, units])
    squares = rows**2
    total = np.asarray(squares @ (1.0 / squares.sum(axis=0))) if rows.shape[1] else np.zeros(n)
    total[list(observers)] = np.nan
    return total


@published.register
def _varying(protocol: VaryingGossip, observers: tuple[int, ...]) -> Guarantee:
    return published_statement(protocol, equation14(protocol, observers), observers, VARYING_ERRATA)


@published.register
def _secret_graph(
    protocol: ErdosRenyiGossip,
    observers: tuple[int, ...],
    *,
    degree: int | None = None,
    neighbour: bool = False,
) -> Guarantee:
    """`degree`: how many neighbours the observers have, the mean of it by default; `neighbour`: about one of them."""
    if protocol.varying:
        raise InvalidValue(
            "Theorem 9 is about one graph per run: set varying=False, or take the formula for drawn graphs, "
            "transcript=protocol.draw(seed)"
        )
    reached = (protocol.n - len(observers)) * meeting(protocol.p, len(observers)) if degree is None else degree
    slope = 0.5 if neighbour else protocol.rounds * reached / max(protocol.n - reached, 1e-300)
    return _stated(slope * protocol.local_mu**2, protocol.sigma, protocol.sensitivity)


@published.register
def _proposition1(protocol: ErdosRenyiDescent, observers: tuple[int, ...]) -> Guarantee:
    chance = meeting(protocol.p, len(observers))
    reached = (protocol.n - len(observers)) * chance
    spread = protocol.gossip_rounds * reached / max(protocol.n - reached, 1e-300)
    slope = protocol.iterations * (chance + (1 - chance) * spread)
    return _stated(
        slope * (protocol.sensitivity / protocol.sigma) ** 2,
        protocol.sigma,
        protocol.sensitivity,
        ("the random β_t and |N_t(V)| of Proposition 1 stand at their means",),
    )


def _stated(slope: float, sigma: float, sensitivity: float, more: tuple[str, ...] = ()) -> Guarantee:
    """α·slope at the orders that the theorem admits."""
    most = largest_order(sigma, sensitivity)
    given = np.asarray(DEFAULT_ORDERS, dtype=np.float64)
    orders: FloatArray = np.append(given[given < most * (1 - 1e-12)], most)
    return Guarantee(
        curve=RenyiCurve(orders, orders * slope),
        adjacency=Adjacency.REPLACE,
        claim=Claim.PUBLISHED,
        assumptions=("the formula of the paper, as printed; it is not a bound", *more),
        references=REFERENCES,
        errata=COLLUSION_ERRATA,
    )
