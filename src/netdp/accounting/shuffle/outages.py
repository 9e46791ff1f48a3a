"""Shuffling with outages before it is known who is away (docs/guarantees.md#faulty-shuffling).

Users are away independently of each other and of other rounds, with probability 1 − q. Let g_i(u) = p_u(i), a
function of the *origin*: going back in time, g ← P_r g, and as every P_r is stochastic, constants stay. With π ∝
degree, L = I − P (the hop without faults, laziness included), ⟨·,·⟩ with weights π, and g of mean 0,

    silent        E‖P_r g‖² = (1 − q)‖g‖² + q‖Pg‖²                                          ≤ κ‖g‖²,  κ = 1 − q + qλ*²
    unreachable   E‖P_r g‖² ≤ ‖g‖² − 2q²⟨g,Lg⟩ + q³‖Lg‖² + q²(1 − q)b⟨g,Lg⟩                 ≤ κ‖g‖²

b = max over the edges of (1 − ℓ)(1/d_i + 1/d_j), κ the larger of the two ends l = 1 ± λ* of 1 − (2 − (1 − q)b)q²l +
q³l² (convex in l, and the spectrum of L apart from constants lies between them); up to 600 users κ is the largest
eigenvalue of the quadratic form itself, so that trees and bipartite graphs get what they are worth. *Proof.* Silent:
P_r g = g at those who are away, Pg at the others. Unreachable: with indicators a of those who are there, (P_r g)(i) =
g_i − a_i Σ_j w_ij a_j(g_i − g_j), w_ij = (1 − ℓ)/d_i; E a_i(Σ_j w_ij a_j x_j)² = q³(Σ_j w_ij x_j)² + q²(1 − q)Σ_j
w_ij²x_j², and Σ_i π_i Σ_j w_ij²(g_i − g_j)² sums over the edges θ(w_ij + w_ji)(g_i − g_j)² ≤ b·θ(g_i − g_j)², θ = π_i
w_ij = π_j w_ji; Σ_edges θ(g_i − g_j)² = ⟨g,Lg⟩. ∎ A mean square is least about the mean, which may move: E Var(P_r g)
≤ E‖P_r(g − mean g)‖² ≤ κ·Var(g). So with m_i = Σ_u π_u p_u(i), E Σ_u π_u(p_u(i) − m_i)² ≤ κ^t π_i. If graphs change,
the product of their κ counts, and max_i π_i/π′_i for every change of weights from π′ (the later round) to π.

(A) e_i = max_u |p_u(i) − m_i| has E e_i² ≤ κ^tπ_i/π_min. As c_i ≥ m_i − e_i and Σ_i m_i = 1, 1 − C ≤ s := Σ_i e_i,
and by Minkowski (E s²)^½ ≤ S := κ^{t/2} Σ_i √(π_i/π_min). The pattern is public: δ is averaged over it. With P(s > x)
≤ S²/x²,

    δ(ε) ≤ E δ_heap(ε; Binomial(n − 1, 1 − x)) + (S + S²/x²)·δ_ε₀(ε)        for every x.

(B) If absent="unreachable" and all graphs have the same degrees, π stays whoever is away: the hop is symmetric with
weights π. So it works on f = p_w/π as on g, and E χ²_w = E Σ_i (p_w(i) − π_i)²/π_i ≤ κ^t(1/π_w − 1). Given the
pattern, move the least mass of the laws, so that afterwards p_w ≥ (1 − x)π for the others and p_u ≤ (1 + x)π for the
victim; as d − x ≤ d²/4x, that is at most χ²_w/4x of each. Draw the labels before and after together: they are all the
same but with probability p in the mean over the patterns. Labels do not depend on data, so by the argument of
`relay`, for every x,

    δ(ε) ≤ E δ_heap(ε; Binomial(n − 1, (1 − x)/(1 + x))) + p·(e^ε − 1 + 2δ_ε₀(ε)),       p = κ^t Σ_w 1/(4xπ_w).

The least over x and over (A), (B) counts. Losses of single reports multiply everything by (1 − lost)^t, the shares of
the others, too: laws are conditional on arriving. A queue that is lost as a whole (`crashes`) is covered given the
pattern only: before the draw a crash at the start takes one report and not its neighbour's, so the laws do not
approach each other. (c_i, C and p_u are those of `faults`.)
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from netdp.accounting.heap.clones import Heap
from netdp.errors import Unsupported
from netdp.graphs import Graph
from netdp.graphs.certificate import DENSE, cached_bound, normalised
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy import ProfileCurve
from netdp.protocols import FaultyShuffle, RelayedShuffle

from .hiding import Hiding, equal, equal_heap, report_alone, thinned
from .shuffling import WORTH

LEVELS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 3e-4, 1e-4)
"""The x that are tried."""


def contraction(protocol: FaultyShuffle, graph: Graph) -> float:
    """κ: the factor by which one round with random outages brings the laws of two origins closer, in mean square.

    >>> from netdp import graphs
    >>> p = FaultyShuffle(graphs.complete(5), rounds=9, epsilon0=1.0, outages=0.2)
    >>> print(f"{contraction(p, p.graphs[0]):.4f} {contraction(p.replace(absent='silent'), p.graphs[0]):.4f}")
    0.2800 0.2500
    """
    there = 1.0 - protocol.outages
    if protocol.absent == "unreachable" and graph.n <= DENSE:
        return _dense_contraction(graph, protocol.laziness, there)
    slow = cached_bound(graph, protocol.laziness).value
    if protocol.absent == "silent":
        return min(1.0, 1 - there + there * slow**2) * (1 + 8 * UNIT)
    ends = graph.edges()
    b = (1 - protocol.laziness) * float((1 / graph.degrees[ends[:, 0]] + 1 / graph.degrees[ends[:, 1]]).max())
    kappa = max(1 - (2 - (1 - there) * b) * there**2 * rate + there**3 * rate**2 for rate in (1 - slow, 1 + slow))
    return min(1.0, kappa + 16 * UNIT)


@lru_cache(maxsize=64)
def _dense_contraction(graph: Graph, laziness: float, there: float) -> float:
    """κ of unreachable users, the quadratic form's own: its largest eigenvalue beside the constants'."""
    n = graph.n
    L = np.eye(n) - normalised(graph, laziness).toarray()
    ends, degrees = graph.edges(), np.asarray(graph.degrees, dtype=np.float64)
    u, v = ends[:, 0], ends[:, 1]
    weights = (1 - laziness) ** 2 * (1 / degrees[u] + 1 / degrees[v])  # θ(w_ij + w_ji), in units of 1/2m
    B = np.zeros((n, n))
    np.add.at(B, (u, u), weights / degrees[u])
    np.add.at(B, (v, v), weights / degrees[v])
    B[u, v] = B[v, u] = -weights / np.sqrt(degrees[u] * degrees[v])
    form = np.eye(n) - 2 * there**2 * L + there**3 * (L @ L) + there**2 * (1 - there) * B
    root = np.sqrt(degrees / degrees.sum())
    # constants have the eigenvalue 1; they are moved to 0, so that the largest of the others is on top
    top = float(np.linalg.eigvalsh(form - np.outer(root, root))[-1])
    return min(1.0, max(top, 0.0) + 64 * n * UNIT)


def spread(protocol: FaultyShuffle) -> tuple[float, FloatArray]:
    """log of κ^t with all changes of weights, and π_i of the last round over π_min of the first, for every i."""
    for graph in protocol.graphs:
        if not graph.is_connected:
            raise Unsupported(
                f"{graph!r} is not connected: before it is known who is away, every graph must mix by itself; with "
                "outages=0, or given a transcript, graphs count together"
            )
    weights = [np.asarray(graph.degrees / graph.degrees.sum()) for graph in protocol.graphs]
    logs = [math.log(contraction(protocol, graph)) for graph in protocol.graphs]
    many = len(weights)
    change = [0.0] * many
    for k in range(many):
        if many > 1:
            change[k] = math.log(float((weights[k - 1] / weights[k]).max()))  # from round k back to the one before
    total = 0.0
    for k in range(many):
        times = len(range(k, protocol.rounds, many))
        total += times * logs[k] + (times - (k == 0)) * max(change[k], 0.0)
    last = weights[(protocol.rounds - 1) % many]
    return total + 1e-12 * protocol.rounds, last / float(weights[0].min())


def failure(protocol: FaultyShuffle) -> float:
    """The probability, over the accountant's coins, that a bound on an eigenvalue is wrong."""
    return sum(cached_bound(graph, protocol.laziness).failure for graph in set(protocol.graphs))


def before(protocol: FaultyShuffle) -> list[Hiding]:
    """The bounds (A) and (B), for every x; they hold for every user, against the curator alone."""
    if protocol.crashes:
        raise Unsupported(
            f"crashes = {protocol.crashes:g}: which queues are lost decides who is hidden, and no bound is proved before "
            "that is known; give transcript=run.pattern or protocol.pattern(seed), or count losses of single reports (lost)"
        )
    n, arrives = protocol.n, min(1.0, protocol.arrives * (1 + 64 * UNIT))
    log_kappa, ratios = spread(protocol)
    size = math.exp(min(0.5 * log_kappa, 0.0)) * float(np.sqrt(ratios).sum()) * (1 + 1e-9)  # S
    stays = protocol.absent == "unreachable" and len({graph.degrees.tobytes() for graph in protocol.graphs}) == 1
    degrees = protocol.graphs[0].degrees
    inverse = float((degrees.sum() / degrees).sum())  # Σ 1/π
    ways = [Hiding(0.0, arrives, equal(0.0, n - 1))]
    for x in LEVELS:
        extra = size + (size / x) ** 2
        if extra < 1:
            ways.append(Hiding(arrives, arrives * extra, equal((1 - x) * protocol.arrives * (1 - 1e-9), n - 1)))
        if stays:
            moved = math.exp(min(log_kappa, 0.0)) * inverse / (4 * x) * (1 + 1e-9)
            if moved < 1:
                share = (1 - x) / (1 + x) * protocol.arrives * (1 - 1e-9)
                ways.append(Hiding(arrives, 0.0, equal(share, n - 1), moved))
    return ways


def shared_curve(protocol: FaultyShuffle | RelayedShuffle, ways: list[Hiding]) -> ProfileCurve:
    """The least of several bounds that hold for everybody."""
    heaps = [way.heap(protocol.epsilon0, protocol.delta0) for way in ways]
    knots = [np.array([0.0, protocol.epsilon0])]
    knots += [thinned(np.asarray(heap.profile().epsilons), 192) for heap in heaps[-1:] + heaps[1:2]]
    eps = np.unique(np.concatenate(knots))
    deltas = np.min([way.deltas(heap, eps) for way, heap in zip(ways, heaps, strict=True)], axis=0)
    return ProfileCurve(eps, np.minimum.accumulate(deltas))


def reaches(protocol: FaultyShuffle, ways: list[Hiding], epsilon: float, delta: float) -> bool:
    """Whether (ε, δ) is certified, without the ε between."""
    eps = np.array([epsilon])
    alone = float(np.asarray(report_alone(protocol.epsilon0, protocol.delta0).delta(epsilon)))
    return any(
        (way.told + 2 * way.moved) * alone <= delta
        and float(way.deltas(way.heap(protocol.epsilon0, protocol.delta0), eps)[0]) <= delta
        for way in ways
    )


def least_epsilon(protocol: FaultyShuffle, ways: list[Hiding], delta: float) -> float:
    """The least certified ε at δ, to 10⁻⁶ and rounded up."""
    heaps = [way.heap(protocol.epsilon0, protocol.delta0) for way in ways]

    def at(eps: FloatArray) -> FloatArray:
        return np.asarray(np.min([way.deltas(heap, eps) for way, heap in zip(ways, heaps, strict=True)], axis=0))

    low, high = 0.0, protocol.epsilon0
    if at(np.zeros(1))[0] <= delta:
        return 0.0
    if at(np.array([high]))[0] > delta:
        return math.inf
    while high - low > 1e-6 * high:
        points = np.linspace(low, high, 10)[1:-1]
        met = np.flatnonzero(at(points) <= delta)
        i = int(met[0]) if met.size else len(points)
        low, high = (low if i == 0 else float(points[i - 1])), (high if i == len(points) else float(points[i]))
    return high


def unharmed(protocol: FaultyShuffle) -> Heap:
    """A trusted shuffler of the reports that arrive."""
    return equal_heap(protocol.n - 1, protocol.arrives, protocol.epsilon0, protocol.delta0)


def refuse_if_idle(protocol: FaultyShuffle, ways: list[Hiding]) -> None:
    """Refuse where walking longer would help and the walk as it is gives next to nothing at δ = 1/n."""
    enough, goal = WORTH * protocol.epsilon0, 1.0 / protocol.n
    if reaches(protocol, ways, enough, goal) or unharmed(protocol).epsilon(goal) > enough:
        return
    advice = "no number of rounds is proved to be enough; add links, or laziness if the graph is bipartite or nearly so"
    t = protocol.rounds
    while t < 1 << 22:
        t *= 2
        longer = protocol.replace(rounds=t)
        if reaches(longer, before(longer), enough, goal):
            advice = f"rounds={t} would do"
            break
    raise Unsupported(
        f"after {protocol.rounds} rounds with outages a report's position may still tell its origin: at δ = 1/n nothing better "
        f"than epsilon0 = {protocol.epsilon0:g} can be claimed before it is known who is away; {advice}"
    )
