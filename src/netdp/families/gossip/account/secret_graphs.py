"""Gossip on random graphs that only neighbours know: what is certified given the observers' links, and before the draw.

`secret_graph_loss` is Theorem 4/9 of Muffliato, corrected and without its condition on σ: observers who know their own neighbours
and nothing that tells the other parties apart (docs/proofs/gossip.md#secret-graph). `redrawn_curve` is for observers named before
one graph, or one per round, is drawn (docs/proofs/gossip.md#redrawn-graphs).
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account.sequences import knots
from netdp.families.gossip.varying import ErdosRenyiGossip
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.checks import whole
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.gaussian import gaussian_delta
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import PerCurve, ProfileCurve
from netdp.privacy.renyi import DEFAULT_ORDERS, RenyiCurve
from netdp.protocols.table import certified

SECRET_GRAPH_REFERENCES = (
    "netdp, docs/proofs/gossip.md#secret-graph: proof.",
    "E. Cyffers, M. Even, A. Bellet, L. Massoulié. Muffliato. NeurIPS 2022, Theorem 9 and Corollary 5.",
)


def mean_factor(n: int, degree: int, rounds: int, observers: int = 1) -> float:
    """φ = min(1, (T−1)d/m): the largest possible mean factor of a party that is no neighbour, m = n − |V| − d.

    >>> mean_factor(1000, degree=9, rounds=11)
    0.090...
    """
    for name, value, least in (("n", n, 2), ("degree", degree, 1), ("rounds", rounds, 1), ("observers", observers, 1)):
        whole(name, value, least)
    others = n - observers - degree
    if others < 1:
        raise InvalidValue(
            f"{observers} observers with {degree} neighbours among {n} parties leave nobody who is not seen directly"
        )
    return min(1.0, (rounds - 1) * degree / others)


def secret_graph_divergence(alpha: npt.ArrayLike, phi: float, sigma: float, sensitivity: float = 1.0) -> FloatArray:
    """log(1 + φ(e^{(α−1)a} − 1))/(α−1), a = αΔ²/(2σ²), never above a.

    >>> float(secret_graph_divergence(2.0, 0.1, 1.0).round(4))          # local DP has 1
    0.1586
    """
    orders = np.asarray(alpha, dtype=np.float64)
    if not (np.isfinite(orders).all() and (orders > 1).all()):
        raise InvalidValue(f"a Rényi order must be a finite number > 1, got {alpha!r}")
    for name, value in (("sigma", sigma), ("sensitivity", sensitivity)):
        if not (np.isfinite(value) and value > 0):
            raise InvalidValue(f"{name} must be a finite number > 0, got {value!r}")
    local = np.asarray(orders * sensitivity**2 / (2 * sigma**2))
    if phi == 0:
        return np.zeros(orders.shape)
    c = (orders - 1) * local
    # log(1 + φ(e^c − 1)): log1p where c is moderate, c + log(φ + (1−φ)e^{−c}) where e^c overflows.
    with np.errstate(over="ignore"):
        small = np.log1p(phi * np.expm1(np.minimum(c, 30.0)))
        large = c + np.log(phi + (1 - phi) * np.exp(-c))
    divergence = np.where(c < 30.0, small, large) / (orders - 1)
    return np.asarray(np.minimum(divergence * (1 + 1e-12), local * (1 + 1e-15)))


def secret_graph_loss(
    n: int, degree: int, rounds: int, sigma: float, sensitivity: float = 1.0, observers: int = 1
) -> Guarantee:
    """What `observers` colluding parties with `degree` neighbours in all learn about a party that is no neighbour.

    The graph must be secret: see the assumptions. Claim `upper`, at all orders.

    >>> loss = secret_graph_loss(2000, degree=8, rounds=6, sigma=4.0)
    >>> print(f"{float(loss.epsilon(1e-6)):.2f}", loss.claim.value)       # local DP with this noise: 1.07
    0.91 upper
    """
    phi = mean_factor(n, degree, rounds, observers)
    orders = np.asarray(DEFAULT_ORDERS, dtype=np.float64)
    return Guarantee(
        curve=RenyiCurve(orders, secret_graph_divergence(orders, phi, sigma, sensitivity)),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"two values of one party differ by at most {sensitivity:g} in L2 norm (clip before the noise is added)",
            "the entry of a party holds if it is no neighbour of an observer; neighbours lose as under local DP",
            "the graph is drawn without regard to the values; given all that the observers know, it is equally likely under "
            "every permutation of the parties they do not talk to, and the weights are a function of the graph alone",
            "plain or accelerated gossip on one graph, noise once per party; everyone follows the protocol to its end",
            "values are fixed before the first send and do not react to messages",
            "the observers pool their own data, noise and all they receive; messages are readable by sender and receiver "
            "alone, and every party keeps its final estimate",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
        ),
        references=SECRET_GRAPH_REFERENCES,
    )


REDRAWN_REFERENCES = (
    "netdp, docs/proofs/gossip.md#redrawn-graphs: proof.",
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
    """A lower bound on the probability that an Erdős–Rényi graph is connected (docs/proofs/gossip.md#redrawn-graphs).

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
    orders = np.asarray(DEFAULT_ORDERS, dtype=np.float64)
    chord = RenyiCurve(orders, secret_graph_divergence(orders, min(1.0, chance + later), 1.0, mu))
    formula = partial(_redrawn_delta, chance, mean, mu, chord)
    return ProfileCurve(points, np.minimum.accumulate(formula(points)), PerCurve((formula,)))


def _redrawn_delta(chance: float, mean: float, mu: float, chord: RenyiCurve, epsilon: FloatArray) -> FloatArray:
    """δ at each ε: everything with probability `chance`, else factors of this mean; by divergences; of local DP."""
    whole_loss = np.asarray(gaussian_delta(mu, epsilon), dtype=np.float64)
    spread = np.array([concave_bound(mean, mu, float(one)) for one in epsilon])
    deltas = (chance * whole_loss + (1.0 - chance) * spread) * _UP
    return np.minimum(np.minimum(deltas, whole_loss), np.asarray(chord.delta(epsilon)))


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
        references=REDRAWN_REFERENCES,
    )
