"""A server through which every hop passes, certified (docs/guarantees.md#relayed-shuffling).

**Without cover traffic** the server sees the number F_r(i, j) of envelopes from i to j in every round r. In round 1
everybody sends exactly one report, its own: after one hop the server knows where each report is, and who is alone in
a hand, on d-regular graphs with probability (1 − 1/d)^{d−1} > 1/e, is not hidden at all. Later, reports that meet in
one hand are confused with each other. Given all F, every way to connect what comes into a hand with what leaves it is
equally likely, independently for every hand and round (all ways of the reports with the same F have the same
probability Π 1/d): a report at i moves to j with probability F_r(i, j)/Σ_j F_r(i, j), *but two reports in one hand
never use the same envelope*, so given F reports are not independent, and no crowd is proved. Only ε₀ is certified.
The truth, by enumeration (`tests/accounting/shuffle/test_relay.py`), lies in between: three users who all know each
other, ε₀ = ln 3, ε = ½: δ = .296, .263, .239, .203 after 1, 2, 3, 6 hops, against .274, .190, .190, .190 unwatched
and .338 for the report alone. On 1,000 users with 8 links each, the server is sure of 45 % of the reports after 2
hops and of .7 % after 8; after 32 it is left with some 500 equally likely places for each (`RelayedRun.laws`).

Sending the same *total* number at every hop is not enough, if dummies go to other places than reports would: the
server sees links.

**The traffic rule** (`cover` = c ≥ 1). Every user sends exactly c envelopes to each neighbour in every round. The
traffic is then a constant, and the server's view is the hand-over alone. It remains that a report waits if more than
c draw the same link.

*Theorem.* Let δ_direct be the certified loss of the same reports over direct links (`Shuffle`, colluders included)
and

    p = Σ_{r<t} Σ_i d_i·μ_r(i)^{c+1}/(c + 1)!,     μ_r(i) = (1 − ℓ)·N_r(i)/d_i,
    N_0 = 1, N_{r+1} = N_r P: the expected numbers in hand, so μ_r(i) is that on each of the d_i links from i.

Then δ(ε) ≤ δ_direct(ε) + p·(e^ε − 1 + 2δ_ε₀(ε)), and never more than δ_ε₀(ε).

*Proof.* Let the reports over direct links and under the rule use the same draws. Their ways are the same unless in
some round more than c reports draw one link (before the first such event nobody has waited). With direct links the
number X on a link in a round is a sum of independent indicators (reports move independently) of total mean μ, and P(X
≥ k) ≤ E (X choose k) = e_k(means) ≤ μ^k/k!: the sum over k-subsets of products is at most (Σ means)^k/k!. So some
link overflows with probability at most p. The draws do not depend on data: given the draws z, the view under either
of the victim's values is a function of z and of the randomized reports. Write P_z, Q_z for its two laws under the
rule and P*_z, Q*_z with direct links, O for the draws that overflow. For every event E ∫_z P_z(E) − e^εQ_z(E) = ∫
P*_z(E) − e^εQ*_z(E) + ∫_O [P_z(E) − e^εQ_z(E)] + ∫_O [e^εQ*_z(E) − P*_z(E)]. The first is at most δ_direct. Given z
the victim's report alone depends on its value, so the second is at most p·δ_ε₀, and e^εQ(E) − P(E) = e^ε − 1 + P(Eᶜ)
− e^εQ(Eᶜ) ≤ e^ε − 1 + δ_ε₀. ∎

After a while N_r(i)/d_i is near n/2m on every link: hubs are no bottleneck, since they have as many links as
reports.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.accounting.baselines import curator, local, said, single_response
from netdp.accounting.heap.clones import shuffled_profile
from netdp.accounting.table import certified
from netdp.graphs.certificate import cached_bound
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.privacy import Adjacency, Claim, Curve, Guarantee, ProfileCurve, SharedCurve
from netdp.protocols import FaultPattern, FaultyShuffle, RelayedShuffle, Shuffle

from . import bundles
from .outages import shared_curve
from .separation import failure_words
from .shuffling import curator_and

REFERENCES = (
    "netdp, docs/guarantees.md#relayed-shuffling: shuffling through a server that sees all traffic.",
    "S. P. Liew, F. Kato, T. Takahashi, T. Takagi, Y. Cao, M. Yoshikawa. Network Shuffling: Privacy Amplification via Random "
    "Walks. SIGMOD 2022, sections 3.3 and 4.4 (cover traffic is proposed there, not analysed).",
)

_WATCHED = "no traffic analysis"  # the assumption of `Shuffle` that the rule makes unnecessary


@certified.register
def _relayed(protocol: RelayedShuffle, observers: Any, *, progress: Progress | None = None) -> Guarantee:
    if protocol.bundles:
        return _in_bundles(protocol, observers)
    if not protocol.cover:
        return _in_the_open(protocol)
    direct: Guarantee = certified(protocol.direct, observers, progress=progress)
    curve = covered(protocol, direct.curve)
    rule = (
        f"every user sends exactly {protocol.cover} sealed envelopes of one size to each neighbour in every round, at times "
        "that depend on nothing; dummies cannot be told from reports; what does not fit waits",
        "the server sees who sends how many envelopes to whom and when, and is the curator",
    )
    kept = tuple(text for text in direct.assumptions if not text.startswith(_WATCHED))
    return replace(
        direct,
        curve=curve,
        claim=Claim.UPPER,
        assumptions=(*kept, *rule),
        references=(*REFERENCES, *direct.references),
    )


def _in_bundles(protocol: RelayedShuffle, observers: Any) -> Guarantee:
    """Under the rule of bundles: `netdp.accounting.shuffle.bundles`."""
    members = curator_and(protocol.direct, observers)
    who = "no user colludes with the server"
    if members:
        who = (
            f"the server and users {', '.join(map(str, members))} pool all they see; no hiding is claimed under the rule of "
            "bundles then: the loss is the report's own"
        )
        curve = _alone(protocol)
    else:
        curve = shared_curve(protocol, bundles.before(protocol))
        bundles.refuse_if_idle(protocol)
    return Guarantee(
        curve=curve,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"every report comes from an ε₀ = {protocol.epsilon0:g}, δ₀ = {protocol.delta0:g} randomizer, drawn once",
            IDEAL_DRAWS,
            f"every user sends exactly {protocol.bundles} sealed bundles in every round, to neighbours drawn independently of "
            "everything; its reports go into bundles drawn for each of them alone; room is as stated, what does not fit waits",
            "bundles cannot be opened nor told apart but by who sends them to whom; the server sees that, and is the curator",
            "all users follow the protocol to its end; graph, rounds, laziness and randomizer are public",
            who,
            *failure_words(cached_bound(protocol.graph, protocol.laziness).failure),
        ),
        references=REFERENCES,
    )


def _in_the_open(protocol: RelayedShuffle) -> Guarantee:
    """Without cover traffic: the report's own loss."""
    return Guarantee(
        curve=_alone(protocol),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"every report comes from an ε₀ = {protocol.epsilon0:g}, δ₀ = {protocol.delta0:g} randomizer, drawn once",
            IDEAL_DRAWS,
            "without cover traffic no hiding is claimed: the server may see every hop, and anybody may collude",
        ),
        references=REFERENCES,
    )


def covered(protocol: RelayedShuffle, direct: Curve, chance: float | None = None) -> ProfileCurve:
    """δ_direct(ε) + p·(e^ε − 1 + 2δ_ε₀(ε)) at the points where δ_direct is given; between them chords are a bound.

    chance : p, if it is another one than that of the protocol itself (`overflow_given`).
    """
    inner = direct.curves if isinstance(direct, SharedCurve) else direct
    assert isinstance(inner, ProfileCurve)
    alone = _alone(protocol)
    eps = np.unique(np.concatenate([inner.epsilons, [0.0, protocol.epsilon0]]))
    base = np.stack([np.asarray(direct.delta(e)) for e in eps], axis=-1)
    own = np.asarray(alone.delta(eps))
    with np.errstate(over="ignore", invalid="ignore"):
        extra = (overflow(protocol) if chance is None else chance) * (np.expm1(eps) + 2 * own) * (1 + 8 * UNIT)
    deltas = np.minimum(np.minimum(base + np.nan_to_num(extra, nan=1.0, posinf=1.0), own), 1.0)
    return ProfileCurve(eps, np.minimum.accumulate(deltas, axis=-1))


def overflow(protocol: RelayedShuffle) -> float:
    """p: a bound on the probability that in some round more than `cover` reports draw the same link.

    >>> from netdp import graphs
    >>> p = RelayedShuffle(graphs.regular(1000, 8, seed=1), rounds=30, epsilon0=1.0, cover=6)
    >>> [f"{overflow(p.replace(cover=c)):.0e}" for c in (4, 6, 8, 10)]
    ['6e-02', '2e-05', '5e-09', '7e-13']
    """
    return min(1.0, overflows(protocol.direct, max(protocol.cover, 1))[-1])


def overflow_given(faulty: FaultyShuffle, pattern: FaultPattern, cover: int) -> float:
    """p given which links failed: N_{r+1} = N_r P_r with the hops of that pattern; the proof is the same.

    >>> from netdp import graphs
    >>> import numpy as np
    >>> calm = FaultPattern(np.zeros((5, 20), dtype=bool))
    >>> p = overflow_given(FaultyShuffle(graphs.complete(20), rounds=5, epsilon0=1.0), calm, cover=3)
    >>> q = overflow(RelayedShuffle(graphs.complete(20), rounds=5, epsilon0=1.0, cover=3))
    >>> abs(p / q - 1) < 1e-5
    True
    """
    held, total = np.ones(faulty.n), 0.0
    for r in range(faulty.rounds):
        degrees = np.maximum(np.asarray(faulty.graph_of(r).degrees, dtype=np.float64), 1.0)
        on_link = held * (1 - faulty.laziness) / degrees
        total += float((degrees * on_link ** (cover + 1)).sum()) / math.factorial(cover + 1)
        held = faulty.hop(r, pattern).T @ held
    return min(1.0, total * (1 + 1e-6))  # far more than the roundings of 10⁴ rounds


def overflows(direct: Shuffle, most: int) -> list[float]:
    """The bound p for a cover of 1, 2, …, `most`."""
    logs = _log_moments(direct, most)
    return [math.exp(min(logs[c - 1], 0.0)) if logs[c - 1] < 0 else 1.0 for c in range(1, most + 1)]


@lru_cache(maxsize=8)
def _log_moments(direct: Shuffle, most: int) -> tuple[float, ...]:
    """log Σ_r Σ_links μ^{c+1}/(c + 1)! for c = 1 … most, rounded up."""
    degrees = np.asarray(direct.graph.degrees, dtype=np.float64)
    following = direct.transition.T.tocsr()
    held: FloatArray = np.ones(direct.n)
    orders = np.arange(2, most + 2)
    totals = np.full(most, -np.inf)
    for _ in range(direct.rounds):
        on_link = np.log(np.maximum(held * (1 - direct.laziness) / degrees, 1e-300))
        # d_i links of the same mean leave i
        terms = orders[:, None] * on_link[None, :] + np.log(degrees)[None, :]
        top = terms.max(axis=1)
        totals = np.logaddexp(totals, top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))
        held = following @ held
    widest = float(degrees.max())
    slack = 1e-9 + orders * direct.rounds * 8 * (widest + 4) * UNIT
    factorials = np.array([math.lgamma(k + 1.0) for k in orders])
    return tuple((totals - factorials + slack).tolist())


def _alone(protocol: RelayedShuffle) -> ProfileCurve:
    pure, delta0 = single_response(protocol.epsilon0, 2), protocol.delta0
    return ProfileCurve(pure.epsilons, delta0 + (1 - delta0) * pure.deltas)


@local.register
def _local_reports(protocol: RelayedShuffle) -> Guarantee:
    return said(_alone(protocol), "every user publishes its report", more=(IDEAL_DRAWS,))


@curator.register
def _curator_shuffle(protocol: RelayedShuffle) -> Guarantee:
    curve = shuffled_profile(protocol.n - 1, protocol.epsilon0, delta0=protocol.delta0)
    return said(curve, "a trusted shuffler permutes all reports uniformly", more=(IDEAL_DRAWS,))
