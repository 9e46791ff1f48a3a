"""Learning by gossip on secret graphs that are drawn anew in every iteration: certified before the draw.

**Setting.** `ErdosRenyiDescent`: iteration t has an Erdős–Rényi graph of its own, W_t its gossip matrix, M_t = W_t^K. c
observers V are named before any graph is drawn. Local steps are ℓ-Lipschitz, as in docs/guarantees.md#hidden-state;
distances in units of νΔ.

**Theorem.** For a party u outside V let h_t say whether u has somebody of V within K hops in graph t. If the observers are
told all graphs, the T iterations are μ-Gaussian DP for u with μ² = (Δ/σ)²·E,

    E = Σ_t [ 1 + 2ℓω + ℓ²v  if h_t,  else ℓ²v ],      ω = (M_{t−1})_uu, v = (M_{t−1}²)_uu, both 0 if t = 0 or h_{t−1}.

*Proof.* Let B_t be the hidden parties within K hops of V. All that V sees in iteration t is a function of its own states
and of y_w, w ∈ B_t. Claim: given the same past, the models before iteration t differ by M_{t−1}e_u·ξ with ‖ξ‖ ≤ 1, or not
at all if u ∈ B_{t−1} or t = 0. Then after the local steps the models of w ≠ u differ by at most ℓ(M_{t−1})_wu, and those of
u by a + e, a the difference of the same step from two models, at most ℓω, and e that of two steps from the same model, at
most 1. Tell the observers y_w for every w ≠ u: a Gaussian shift of that size. If u ∈ B_t tell y_u: a shift of at most 1 +
ℓω, and nothing stays different. Otherwise tell y_u in the one run and y_u + e in the other: a shift of at most ℓω, and
given equal values the two y_u differ by e alone, which is the claim for t + 1. (What is told may be defined differently in
the two runs: the views are functions of it, and the divergence of a joint law is no smaller than that of a part.) Summed
over w: ℓ²v, or (1 + ℓω)² + ℓ²(v − ω²). Costs of shifts add up to μ² (composition of Gaussian DP). ∎

**Before the draw.** h_t and M_t of different iterations are independent. The graphs do not depend on data, so at every
order α, with s = α(α−1)Δ²/2σ², (α−1)·D_α ≤ log E[e^{sE}] (joint convexity, as in `secret_graph`), and this is a product of
2 × 2 matrices: with f_t and g_t the parts of E[e^{s·(costs up to t)}] in which u was not, and was, near V in the last
iteration,

    g ← q_K(e^s·g + a₁f),   f ← (1−q₁)(g + a₀f),   a₀ = E e^{sℓ²v},   a₁ = E e^{s(1 + 2ℓω + ℓ²v)},        from g = 1, f = 0,

the means over a graph in which u talks to nobody of V. q₁ = 1 − (1−p)^c; q_K ≤ c·Σ_{k≤K} n^{k−1}p^k counts paths. (If K >
1, not being near V is more than not talking to V: that more is dropped, which only adds.) And never more than local DP,
α·TΔ²/2σ².

**The law of ω and v**, for K = 1: with d neighbours of degrees d_i, ω = 1 − Σa_i and v = ω² + Σa_i², a_i = 1/(1 + max(d,
d_i)). d is binomial, d_i = 1 + B_i + (edges to other neighbours of u), the B_i independent and binomial. If there are e
edges among the neighbours, leaving them out of the d_i makes the a_i larger, by at most 2e/((1+d)(2+d)) in all. So with S =
Σ 1/(1 + max(d, 1 + B_i)): ω ≤ 1 − S + 2e/((1+d)(2+d)) and v ≤ ω² + S/(1+d). S is a sum of independent terms: its law is a
convolution, on a grid. For K > 1, (W^{2K})_uu ≤ (W²)_uu, the spectrum of W² lying in [0, 1], and (W^K)_uu ≤ √((W^{2K})_uu).

**Rounding.** a_i are rounded down to the grid; S is taken at its lower end in ω and at its upper end beside it; ω and v are
rounded up. Tails of d and e below 10⁻³⁰ count as ω = v = 1, which nothing exceeds. All sums are of positive numbers; a part
in 10⁹ is added.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from netdp.accounting.table import certified, coalitions
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.privacy import DEFAULT_ORDERS, Adjacency, Claim, Guarantee, ProfileCurve, RenyiCurve, gaussian_delta
from netdp.protocols import ErdosRenyiDescent

from .redrawn import meeting
from .sequences import knots

REFERENCES = (
    "netdp, docs/guarantees.md#redrawn-descent: proof.",
    "E. Cyffers, M. Even, A. Bellet, L. Massoulié. Muffliato. NeurIPS 2022, Appendix F and Proposition 1.",
)
# Cells of the grid on which the sum of a party's weights is followed, and the tails that count as the worst case.
_CELLS = 512
_OWN, _SPREAD = 128, 1024
_TAIL = 1e-30
_UP = 1e-9
#: The mixings whose weights are 1/(o + max(d_u, d_w)), halved if lazy: (o, share of an edge).
_WEIGHTS = {"metropolis": (1, 1.0), "lazy-metropolis": (1, 0.5), "hamilton": (0, 1.0), "lazy-hamilton": (0, 0.5)}


class Stars(NamedTuple):
    """Upper ends of ω and v with their probabilities, for a party that talks to no observer."""

    chance: FloatArray
    own: FloatArray
    spread: FloatArray


@lru_cache(maxsize=64)
def stars(n: int, p: float, observers: int, mixing: str = "metropolis") -> Stars:
    """The law of (W_uu, (W²)_uu) in a graph in which u talks to none of the observers, rounded up.

    >>> law = stars(2000, 0.004, 1)
    >>> round(float(law.chance.sum()), 6), 0.15 < float(law.chance @ law.spread) < 0.25
    (1.0, True)
    """
    if mixing not in _WEIGHTS:
        raise Unsupported(
            f"with mixing {mixing!r} the weights of a party depend on the whole graph; the law before the draw is worked out for "
            f"{', '.join(_WEIGHTS)}"
        )
    from scipy.stats import binom

    offset, share = _WEIGHTS[mixing]
    chances, owns, spreads = [], [], []
    others = n - 1 - observers
    lost = 0.0
    for d in range(_most(others, p) + 1):
        weight = float(binom.pmf(d, others, p))
        if weight <= _TAIL / (others + 1):
            lost += weight
            continue
        if d == 0:
            chances.append(np.array([weight]))
            owns.append(np.ones(1))
            spreads.append(np.ones(1))
            continue
        largest = share / (offset + d)
        rest = n - 1 - d
        degrees = np.arange(1, _most(rest, p) + 2)
        law = binom.pmf(degrees - 1, rest, p)
        cells = np.floor(share / (offset + np.maximum(d, degrees)) * _CELLS).astype(np.int64)
        sums = _power(np.bincount(cells, law).astype(np.float64), d)
        low_end = np.arange(len(sums)) / _CELLS
        high_end = np.minimum(low_end + d / _CELLS, d * largest)
        for edges, among in _edge_counts(d * (d - 1) // 2, p):
            own = np.minimum(1.0 - low_end + 2 * edges * share / ((offset + d) * (offset + d + 1)), 1.0)
            each = weight * among * sums
            kept = each > _TAIL / len(each)
            lost += float(each[~kept].sum())
            chances.append(each[kept])
            owns.append(own[kept])
            spreads.append(np.minimum(own**2 + high_end * largest, 1.0)[kept])
        lost += weight * 2 * _TAIL * (d + 1)
    chance = np.concatenate([*chances, [lost + 2 * _TAIL]])
    own, spread = np.append(np.concatenate(owns), 1.0), np.append(np.concatenate(spreads), 1.0)
    # few distinct pairs, rounded up: everything that follows is a mean over them, at hundreds of orders
    places = np.ceil(own * _OWN).astype(np.int64) * (_SPREAD + 1) + np.ceil(spread * _SPREAD).astype(np.int64)
    distinct, which = np.unique(places, return_inverse=True)
    first, second = np.divmod(distinct, _SPREAD + 1)
    return Stars(np.bincount(which, chance).astype(np.float64), first / _OWN, second / _SPREAD)


def _edge_counts(pairs: int, p: float) -> list[tuple[int, float]]:
    """How many of the pairs are edges, in steps of half a deviation rounded up, with probabilities."""
    from scipy.stats import binom

    stride = 1 + int(math.sqrt(pairs * p * (1 - p)) / 2)
    chances = binom.pmf(np.arange(_most(pairs, p) + 1), pairs, p)
    firsts = range(0, len(chances), stride)
    return [(min(i + stride, len(chances)) - 1, float(chances[i : i + stride].sum())) for i in firsts]


def _most(trials: int, p: float) -> int:
    """The least number that a binomial variable exceeds with probability at most `_TAIL`."""
    from scipy.stats import binom

    return int(np.argmax(binom.sf(np.arange(trials + 1), trials, p) <= _TAIL))


def _power(law: FloatArray, times: int) -> FloatArray:
    """The law of a sum of independent copies; positive numbers only."""
    result: FloatArray | None = None
    while times:
        if times & 1:
            result = law if result is None else np.convolve(result, law)
        times >>= 1
        if times:
            law = np.convolve(law, law)
    assert result is not None
    return result


def near(n: int, p: float, observers: int, hops: int) -> float:
    """An upper bound on the probability that a party has an observer within so many hops; exact for one.

    >>> round(near(2000, 0.004, 1, 2), 4)
    0.036
    """
    if hops == 1:
        return meeting(p, observers)
    paths = observers * math.fsum(math.exp((k - 1) * math.log(n) + k * math.log(p)) for k in range(1, hops + 1))
    return min(1.0, paths)


def divergence(protocol: ErdosRenyiDescent, observers: int, orders: FloatArray) -> FloatArray:
    """The bound on the Rényi divergence at every order, before the draw; see the module.

    >>> p = ErdosRenyiDescent(2000, math.log(2000) / 2000, iterations=100, sigma=10.0, step=0.5, clip=0.5)
    >>> ours, local = divergence(p, 1, np.array([8.0]))[0], 8.0 * p.local_mu**2 / 2
    >>> round(float(ours / local), 2)
    0.21
    """
    n, p, ell, hops = protocol.n, protocol.p, protocol.expansion, protocol.gossip_rounds
    law = stars(n, p, observers, protocol.mixing)
    own = law.own if hops == 1 else np.sqrt(law.spread)
    step = protocol.sensitivity / protocol.sigma
    s = orders * (orders - 1) * step**2 / 2
    weights = np.log(law.chance + 1e-300)
    log0 = np.array([logsumexp(weights + rate * ell**2 * law.spread) for rate in s])
    log1 = np.array([logsumexp(weights + rate * (1 + 2 * ell * own + ell**2 * law.spread)) for rate in s])
    hit, away = near(n, p, observers, hops), 1.0 - meeting(p, observers)
    with np.errstate(divide="ignore"):
        log_hit, log_away = np.log(hit), np.log(max(away, 0.0))
    g, f = np.zeros_like(s), np.full_like(s, -np.inf)
    for _ in range(protocol.iterations):
        g, f = (
            log_hit + np.logaddexp(s + g, log1 + f),
            log_away + np.logaddexp(g, log0 + f),
        )
    total = np.logaddexp(f, g) + protocol.iterations * _UP
    local = orders * protocol.local_mu**2 / 2
    return np.asarray(np.minimum(total / (orders - 1), local * (1 + 1e-15)))


@certified.register
def _redrawn_descent(protocol: ErdosRenyiDescent, observers: tuple[int, ...]) -> Guarantee:
    """What the observers learn about anybody else, before the graphs are drawn."""
    return redrawn_descent_loss(protocol, len(observers))


@coalitions.register
def _any(protocol: ErdosRenyiDescent, colluders: int) -> Guarantee:
    """All coalitions of a size are alike before the draw."""
    return redrawn_descent_loss(protocol, colluders)


def redrawn_descent_loss(protocol: ErdosRenyiDescent, observers: int) -> Guarantee:
    """One curve for everybody outside a coalition of so many parties that is fixed before the graphs are drawn."""
    if observers >= protocol.n:
        raise InvalidValue(f"{observers} observers among {protocol.n} parties leave nobody to protect")
    orders = np.asarray(DEFAULT_ORDERS, dtype=np.float64)
    points = knots(protocol.local_mu)
    ours = np.asarray(RenyiCurve(orders, divergence(protocol, observers, orders)).delta(points))
    deltas = np.minimum(ours, np.asarray(gaussian_delta(protocol.local_mu, points)))
    return Guarantee(
        curve=ProfileCurve(points, np.minimum.accumulate(deltas)),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"gradients are clipped to norm {protocol.clip:g} before the noise, so two of one party's differ by at most "
            f"{protocol.sensitivity:g}",
            "all models start from one value that does not depend on anybody's data",
            "a party's step θ ↦ θ − ν·gradient depends on its own model and data, and on random choices that look at no data; it "
            f"is {protocol.expansion:g}-Lipschitz (1 holds for generalised linear models whose rows are clipped one by one and "
            "ν ≤ 2/β, not if only the party's whole gradient is clipped)",
            f"in every iteration every pair of parties is an edge with probability {protocol.p:g}, independently of all else, of "
            "data and of who observes, which is settled before (afterwards the graphs may become known); a statement before the "
            "draw, the weights being a function of the graph alone",
            "all parties follow the protocol to its end; the observers pool their own data, noise and all they receive",
            "messages are readable by sender and receiver alone; noise is fresh in every iteration",
            "every party keeps its final model; if party p publishes it, count p among the observers",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
        ),
        references=REFERENCES,
    )
