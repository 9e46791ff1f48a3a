"""Gossip on secret Erdős–Rényi graphs, before they are drawn: one graph for the run, or another one for every round.

**Setting.** c observers V, named before any graph is drawn. Every pair is an edge with probability p, in every round anew
(or once). A party is told its own neighbours; that the others' stay secret is not used below: what hides a party is that the
coalition was formed before the draw. Plain or accelerated gossip, noise N(0, σ²) once per party.

**Theorem.** Let q = 1 − (1−p)^c, the probability that a party talks to somebody in V in a given round, μ = Δ/σ, δ_μ(ε) the
Gaussian profile, g(f) = δ_{√f·μ}(ε) and ĝ the least concave function above g on [0, 1]. For every party u outside V

    δ(ε) ≤ q·g(1) + (1−q)·ĝ(min(1, (T−1)q/(1−q))).

*Proof.* Tell the observers all graphs: more information never helps privacy. The graphs do not depend on values, so δ(ε) =
E δ(ε given the graphs) = E g(f_u), f_u ≤ 1 the exact factor of u on the drawn graphs (docs/guarantees.md#changing-gossip;
of one graph #leverage-scores). The factors of all hidden parties sum to the rank of what is seen, at most Σ_t |N_t|, N_t
the hidden parties that talk to V in round t; and each party of N_0 has factor 1, its first message being x + ση. So the
factors of those outside N_0 sum to at most Σ_{t≥1}|N_t|, of mean (T−1)(n−c)q. The law of the graphs does not change when
hidden parties are renumbered, and the weights are a function of the graph alone, so E[f_u; u ∉ N_0] ≤ (T−1)q. P(u ∈ N_0) =
q, and on the rest, by Jensen, E[g(f_u) | u ∉ N_0] ≤ ĝ(E[f_u | u ∉ N_0]). ∎

At every order α also D_α ≤ log(1 + φ(e^{(α−1)a} − 1))/(α−1) with φ = min(1, Tq), a = αμ²/2 (`secret_graph`: the chord, with
the mean over all hidden parties). The smaller of the two counts at every ε. Given how many neighbours the observers have, the
same hull bounds what a party that is none of them loses: ĝ(φ) with the φ of `secret_graph`.

**How far from the truth.** The observers know whom they talk to in round 0, so δ(ε) ≥ q·δ_μ(ε), whatever is kept secret: a
secret graph that is drawn once more for every round cannot do better than that (`floor`). For averaging, redrawing does not
help: the noise is added once, and who is met first tells all. It helps where noise is fresh in every iteration
(`redrawn_descent`).

**Drawn again until it is connected** (one graph for the run), or until the union of all rounds is. Then P(event) is at most
P(event without the condition)/P(connected), for the mean of Σ|N_t| likewise, and the bound grows with both: d/dx of x·g(1)
+ (1−x)·ĝ(y), y = L/(1−x), is g(1) − ĝ(y) + y·ĝ′(y) ≥ 0. P(connected) is bounded from below: a graph that is not connected
has an isolated party, or a component of 2 ≤ k ≤ n/2 parties, which contains one of k^{k−2} trees and has no edge to the
outside. The first has probability at most S₁ − S₂ + S₃ (Bonferroni), S_j = C(n,j)(1−p)^{j(n−1) − j(j−1)/2}.

**Rounding.** ĝ is evaluated from above: on a grid f_0 < f_1 < … the point (f_{i−1}, g(f_i)) stands for the cell between, as
g grows; a concave function above these points that grows lies above g. δ is stated at some hundreds of ε, and the chord in
e^ε between them is a bound because every δ(ε) is convex in e^ε.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.special import gammaln

from netdp.accounting.table import certified
from netdp.errors import Unsupported
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.checks import whole
from netdp.privacy import (
    DEFAULT_ORDERS,
    Adjacency,
    Claim,
    GaussianCurve,
    Guarantee,
    ProfileCurve,
    RenyiCurve,
    gaussian_delta,
)
from netdp.protocols import ErdosRenyiGossip

from .secret_graph import mean_factor, secret_graph_divergence, secret_graph_loss
from .sequences import knots

REFERENCES = (
    "netdp, docs/guarantees.md#redrawn-graphs: proof.",
    "E. Cyffers, M. Even, A. Bellet, L. Massoulié. Muffliato. NeurIPS 2022, sections 3.4 and G.3.",
)
# Cells of the grid on which g is bounded, from one to the next by 2 %.
_RATIO = 1.02
_UP = 1 + 1e-12


def meeting(p: float, observers: int) -> float:
    """q = 1 − (1−p)^c: the probability that a party has one of c observers among its neighbours.

    >>> round(meeting(0.1, 2), 12)
    0.19
    """
    return 1.0 if p >= 1 else -math.expm1(observers * math.log1p(-p))


def connected_chance(n: int, p: float) -> float:
    """A lower bound on the probability that an Erdős–Rényi graph is connected; see the module.

    >>> connected_chance(2000, 2 * math.log(2000) / 2000) > 0.999
    True
    >>> 0.30 < connected_chance(2000, math.log(2000) / 2000) < 0.37                # 1/e in the limit
    True
    """
    if p >= 1 or n == 1:
        return 1.0
    gone = math.log1p(-p)

    def choose(k: FloatArray) -> FloatArray:
        return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))

    j = np.arange(1.0, min(3, n) + 1)
    isolated = np.exp(choose(j) + gone * (j * (n - 1) - j * (j - 1) / 2))
    alone = isolated[0] if len(isolated) < 3 else min(isolated[0], isolated[0] - isolated[1] + isolated[2])
    k = np.arange(2.0, n // 2 + 1)
    larger = np.exp(choose(k) + np.minimum((k - 2) * np.log(k) + (k - 1) * math.log(p), 0.0) + gone * k * (n - k))
    # logarithms of factorials are right to a few roundings of the largest, and the alternating sum to those of its terms
    rounding = 1e-9 + 32 * UNIT * float(gammaln(n + 1.0))
    return float(max(0.0, 1.0 - alone - larger.sum() - rounding * (isolated.sum() + larger.sum())))


def concave_bound(mean: float, mu: float, epsilon: float) -> float:
    """ĝ(mean): the largest E δ_{√f·μ}(ε) over all laws of f in [0, 1] with this mean, rounded up.

    >>> alone = float(gaussian_delta(0.5, 2.0))
    >>> bound = concave_bound(0.1, 0.5, 2.0)                    # far out the worst law is 1 with probability 1/10
    >>> 0.1 * alone <= bound <= 0.1 * alone * 1.03
    True
    """
    if mean >= 1:
        return float(gaussian_delta(mu, epsilon))
    if mean <= 0:
        return 0.0
    cells = math.ceil(math.log(1e4 / mean) / math.log(_RATIO))
    ends = np.append(_RATIO ** np.arange(-float(cells), 0.0), 1.0)
    heights = np.asarray(gaussian_delta(np.sqrt(ends) * mu, epsilon), dtype=np.float64)
    places = np.concatenate([[0.0], ends])  # a cell's height stands at its left end, the last at 1 too
    heights = np.maximum.accumulate(np.append(heights, heights[-1]))
    # the hull at `mean` is the highest chord over it between two of the points
    left = int(np.searchsorted(places, mean, side="right"))
    before, after = places[:left, None], places[None, left:]
    chords = (heights[:left, None] * (after - mean) + heights[None, left:] * (mean - before)) / (after - before)
    return float(max(chords.max(), heights[left - 1])) * _UP


def redrawn_curve(chance: float, later: float, mu: float) -> ProfileCurve | GaussianCurve:
    """The profile of the theorem: everything with probability `chance`, else a factor of mean `later` in all.

    `later` is E[f_u; u ∉ N_0], not divided by the probability of the rest. Where the bound is local DP's, it is exactly that:
    a table would read ε a little too large, and noise that was calibrated for local DP would seem to miss its target.

    >>> curve = redrawn_curve(0.004, 0.02, 0.25)
    >>> float(curve.delta(0.5)) < float(gaussian_delta(0.25, 0.5))
    True
    """
    chance = min(chance, 1.0)
    rest = 1.0 - chance
    mean = 1.0 if rest <= 0 else min(1.0, later / rest)
    if mean == 1:
        return GaussianCurve(np.asarray(mu))
    points = knots(mu)
    whole_loss = np.asarray(gaussian_delta(mu, points), dtype=np.float64)
    spread = np.array([concave_bound(mean, mu, float(epsilon)) for epsilon in points])
    deltas = (chance * whole_loss + rest * spread) * _UP
    orders = np.asarray(DEFAULT_ORDERS, dtype=np.float64)
    chord = RenyiCurve(orders, secret_graph_divergence(orders, min(1.0, chance + later), 1.0, mu))
    deltas = np.minimum(np.minimum(deltas, whole_loss), np.asarray(chord.delta(points)))
    return ProfileCurve(points, np.minimum.accumulate(deltas))


def floor(protocol: ErdosRenyiGossip, observers: int, epsilon: float) -> float:
    """q·δ_μ(ε): no bound on δ(ε) can be smaller, because the observers know whom they talk to in the first round."""
    return meeting(protocol.p, observers) * float(gaussian_delta(protocol.local_mu, epsilon))


@certified.register
def _erdos_renyi(protocol: ErdosRenyiGossip, observers: tuple[int, ...], *, degree: int | None = None) -> Guarantee:
    """Secret graphs, before the draw; `degree`: given how many neighbours the observers have, about those who are none."""
    if degree is not None:
        if protocol.varying:
            raise Unsupported(
                "the bound given the observers' degree is proved for one graph per run (varying=False); without degree= "
                "graphs that vary are accounted before they are drawn"
            )
        loss = secret_graph_loss(
            protocol.n, degree, protocol.rounds, protocol.sigma, protocol.sensitivity, observers=len(observers)
        )
        phi = mean_factor(protocol.n, degree, protocol.rounds, len(observers))
        return dataclasses.replace(loss, curve=redrawn_curve(0.0, phi, protocol.local_mu))
    members = whole("observers", len(observers), 1)
    union = meeting(protocol.p, protocol.rounds) if protocol.varying else protocol.p
    sure = connected_chance(protocol.n, union)
    chance = 1.0 if sure == 0 else min(1.0, meeting(protocol.p, members) / sure)
    how = "drawn anew in every round" if protocol.varying else "drawn once"
    drawn = f"every pair of parties is an edge with probability {protocol.p:g}, {how}, and all again until the graph is connected"
    drawn = drawn.replace("the graph", "the union of the rounds") if protocol.varying else drawn
    return Guarantee(
        curve=redrawn_curve(chance, (protocol.rounds - 1) * chance, protocol.local_mu),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"two values of one party differ by at most {protocol.sensitivity:g} in L2 norm (clip before the noise is added)",
            f"{drawn}, without regard to values and to who observes",
            "a statement before the draw: whoever turns out to talk to an observer in the first round has lost what local DP "
            "loses; account(protocol, observers, transcript=run.transcript) says what a run whose graphs are public has lost",
            "who observes is settled before any graph is drawn (afterwards the graphs may become known); the weights are a "
            "function of the graph alone",
            "all parties follow the protocol to its end; the observers pool their own data, noise and all they receive",
            "values are fixed before the first send and do not react to messages; noise is added once per party",
            "messages are readable by sender and receiver alone, and every party keeps its final estimate",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
        ),
        references=REFERENCES,
    )
