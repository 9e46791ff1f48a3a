"""A relaying server under the rule of bundles: it sees who sends to whom, and that is accounted
(docs/guarantees.md#relayed-shuffling).

In every round every user sends k sealed bundles to neighbours drawn with repetition, whatever it holds, and every
report of its goes into one of them, drawn for it alone. The server sees the draws of neighbours. They depend on no
report, and *given them reports move independently of each other*, from i to j with probability P_r(i, j) = (1 −
ℓ)·(bundles from i to j)/k, and stay with ℓ. That is a graph which changes from round to round, and is public: the
bound (A) of `outages` holds with the contraction of this rule.

**Contraction.** (P_r g)(i) = ℓg_i + (1 − ℓ)·(mean of g at k independent uniform neighbours of i): the variance of
that mean is 1/k of that of one, and Σ_i π_i(variance of g at a random neighbour of i) = ‖g‖² − ‖Hg‖², H the hop
without laziness. So for an eigenvector of H with eigenvalue h

    E‖P_r g‖² = [(ℓ + (1 − ℓ)h)² + (1 − ℓ)²(1 − h²)/k]·‖g‖²,

convex in h, and κ is the larger value at the two ends that λ* leaves to h; without laziness κ = 1/k + (1 − 1/k)λ*².
With one bundle κ = 1: all reports of a user stay together.

**Room.** A bundle has room for b reports, b a function of the traffic so far: given it, every user's expected number
in hand is public (N_{r+1} = N_r P_r; a bundle may carry its share of it, so that nobody needs to see all traffic). By
μ^{b+1}/(b + 1)! as in `relay`, some report waits with probability at most 10⁻¹² in the whole run, whatever the
traffic, which costs 10⁻¹²·(e^ε − 1 + 2δ_ε₀(ε)).
"""

from __future__ import annotations

import math

import numpy as np

from netdp.accounting.heap.clones import Heap
from netdp.errors import Unsupported
from netdp.graphs.certificate import cached_bound
from netdp.numerics.arrays import UNIT
from netdp.protocols import RelayedShuffle
from netdp.protocols.relayed_shuffle import OVERFLOW

from .hiding import Hiding, equal, equal_heap, report_alone
from .outages import LEVELS
from .shuffling import WORTH


def contraction(protocol: RelayedShuffle) -> float:
    """κ: the factor by which one round brings the laws of two origins closer, in mean square.

    >>> from netdp import graphs
    >>> p = RelayedShuffle(graphs.complete(5), rounds=9, epsilon0=1.0, bundles=4)
    >>> round(contraction(p), 6)                                            # 1/4 + 3/4·(1/4)²
    0.296875
    """
    slow, lazy = cached_bound(protocol.graph, protocol.laziness).value, protocol.laziness
    ends = (max(-1.0, (-slow - lazy) / (1 - lazy)), min(1.0, (slow - lazy) / (1 - lazy)))
    values = [(lazy + (1 - lazy) * h) ** 2 + (1 - lazy) ** 2 * (1 - h * h) / protocol.bundles for h in ends]
    return min(1.0, max(values) + 16 * UNIT)


def before(protocol: RelayedShuffle) -> list[Hiding]:
    """The bounds for every x; they hold for every user, against the server alone."""
    n, degrees = protocol.n, np.asarray(protocol.graph.degrees)
    half = 0.5 * protocol.rounds * (math.log(contraction(protocol)) + 1e-12)
    size = math.exp(min(half, 0.0)) * float(np.sqrt(degrees / degrees.min()).sum()) * (1 + 1e-9)
    ways = [Hiding(0.0, 1.0, equal(0.0, n - 1))]
    for x in LEVELS:
        extra = size + (size / x) ** 2
        if extra < 1:
            ways.append(Hiding(1.0, extra, equal((1 - x) * (1 - 1e-9), n - 1), OVERFLOW))
    return ways


def reaches(protocol: RelayedShuffle, epsilon: float, delta: float) -> bool:
    """Whether (ε, δ) is certified."""
    alone = float(np.asarray(report_alone(protocol.epsilon0, protocol.delta0).delta(epsilon)))
    return any(
        way.told * alone <= delta
        and float(way.deltas(way.heap(protocol.epsilon0, protocol.delta0), np.array([epsilon]))[0]) <= delta
        for way in before(protocol)
    )


def uniform_heap(protocol: RelayedShuffle) -> Heap:
    """The same reports through a trusted uniform shuffler."""
    return equal_heap(protocol.n - 1, 1.0, protocol.epsilon0, protocol.delta0)


def fewest_rounds(protocol: RelayedShuffle, epsilon: float, delta: float) -> int:
    """The fewest rounds for which (ε, δ) is certified."""
    high = 1
    while not reaches(protocol.replace(rounds=high), epsilon, delta):
        high *= 2
        if high > 1 << 20:
            raise Unsupported(
                f"{protocol.describe()}: no number of hops is proved to reach ε = {epsilon:.3g} at δ = {delta:g}; more bundles, "
                "more links, or laziness if the graph is bipartite or nearly so"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(protocol.replace(rounds=middle), epsilon, delta) else (middle, high)
    return high


def refuse_if_idle(protocol: RelayedShuffle) -> None:
    """Refuse where walking longer would help and the walk as it is gives next to nothing at δ = 1/n."""
    enough, goal = WORTH * protocol.epsilon0, 1.0 / protocol.n
    if reaches(protocol, enough, goal) or uniform_heap(protocol).epsilon(goal) > enough:
        return
    raise Unsupported(
        f"after {protocol.rounds} rounds of bundles a report's position may still tell its origin: at δ = 1/n nothing better than "
        f"epsilon0 = {protocol.epsilon0:g} can be claimed; rounds={fewest_rounds(protocol, enough, goal)} would do"
    )
