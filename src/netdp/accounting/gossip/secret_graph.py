"""A certified bound for gossip on a *secret* random graph: Theorem 4/9 of Muffliato, corrected and without its
condition on σ.

**Setting.** Observers V (one, or several that collude) know who their d neighbours N(V) are, and beyond that nothing that
distinguishes the other m = n − |V| − d parties: given all they know, the law of the graph is invariant under
permutations of those m. An Erdős–Rényi graph whose parties know only their own edges is like that; so it stays given
the degrees of the neighbours, that the graph is connected, its spectral gap. Plain or accelerated gossip, T rounds,
noise N(0, σ²) once per party.

**Theorem.** For a party u that is no neighbour, a = αΔ²/(2σ²) and φ = min(1, (T−1)d/m), for every order α > 1

    D_α(view ‖ view with another x_u)  ≤  log(1 + φ(e^{(α−1)a} − 1)) / (α−1).

*Proof.* Given the graph G the view is Gaussian and D_α = a·f_G(u) with f_G(u) ≤ 1 the exact factor
(docs/guarantees.md#leverage-scores). The view is the mixture of these over G, with the same weights whatever x is.
exp((α−1)D_α) is jointly convex in the two laws, so exp((α−1)D_α) ≤ E_G e^{(α−1)a f_G(u)}, and a convex function on
[0, 1] lies below its chord: ≤ 1 + E f_G(u)·(e^{(α−1)a} − 1). By exchangeability E f_G(u) = E[Σ f_G(w) over the m
non-neighbours]/m. The factors of all hidden parties sum to the rank of what is seen, at most T·d; each of the d
neighbours has factor 1, its first message being x + ση; so the sum over the others is at most (T−1)d. ∎

**What it says of the printed theorem.** The paper starts from its Theorem 1, which is no bound; the exact factors
give the same mean, so the conclusion stands. With c = (α−1)a ≤ 1, i.e. σ² ≥ Δ²α(α−1)/2, (e^c − 1)/c ≤ 1 + c ≤ 2
gives αΔ²/σ² · (T−1)d/(n−1−d) for one observer, and this is at most the printed αΔ²/σ² · Td/(n−d) when T ≤ n − d;
when T > n − d the printed value exceeds local DP's. So Theorem 4/9 holds, given N(v). For coalitions (Corollary 5)
the count must be n − |V| − d, not n − d. Neighbours of V lose as under local DP. Nothing is claimed about masks or
refresh: they are not needed for the proof, and fresh noise only helps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import whole
from netdp.privacy import DEFAULT_ORDERS, Adjacency, Claim, Guarantee, RenyiCurve

REFERENCES = (
    "netdp, docs/guarantees.md#secret-graph: proof.",
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
        references=REFERENCES,
    )
