"""What a server learns through which every hop of network shuffling passes (docs/proofs/shuffle.md#relayed-shuffling).

no rule    it may follow every report: only the report's own loss is certified
cover      it sees a constant. δ(ε) ≤ δ_direct(ε) + p·(e^ε − 1 + 2δ_ε₀(ε)), δ_direct that of direct links and p the
           probability that some link has too little room
bundles    it sees a public graph that changes: bound (A) of docs/proofs/shuffle.md#faulty-shuffling with the contraction
           of this rule
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.errors import Unsupported
from netdp.families.shuffle.account.hiding import (
    Hiding,
    by_contraction,
    equal_heap,
    reaches,
    shared_curve,
)
from netdp.families.shuffle.account.mixing import failure_words, fewest
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.account.shuffling import UNWATCHED, WORTH, curator_and
from netdp.families.shuffle.protocol import OVERFLOW, FaultPattern, FaultyShuffle, RelayedShuffle, Shuffle
from netdp.graphs.certificate import cached_bound
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.privacy.clones import Heap
from netdp.privacy.curve import Curve
from netdp.privacy.curves import SharedCurve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.table import certified


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
    degrees = np.asarray(protocol.graph.degrees)
    half = 0.5 * protocol.rounds * (math.log(contraction(protocol)) + 1e-12)
    size = math.exp(min(half, 0.0)) * float(np.sqrt(degrees / degrees.min()).sum()) * (1 + 1e-9)
    return by_contraction(protocol.n - 1, size, moved=OVERFLOW)


def uniform_heap(protocol: RelayedShuffle) -> Heap:
    """The same reports through a trusted uniform shuffler."""
    return equal_heap(protocol.n - 1, 1.0, Randomizer.of(protocol))


def fewest_rounds(protocol: RelayedShuffle, epsilon: float, delta: float) -> int:
    """The fewest rounds for which (ε, δ) is certified."""

    def meets(rounds: int) -> bool:
        trial = protocol.replace(rounds=rounds)
        return reaches(trial, before(trial), epsilon, delta)

    found = fewest(meets, 1 << 20)
    if found is None:
        raise Unsupported(
            f"{protocol.describe()}: no number of hops is proved to reach ε = {epsilon:.3g} at δ = {delta:g}; more bundles, "
            "more links, or laziness if the graph is bipartite or nearly so"
        )
    return found


def refuse_if_idle(protocol: RelayedShuffle) -> None:
    """Refuse where walking longer would help and the walk as it is gives next to nothing at δ = 1/n."""
    enough, goal = WORTH * protocol.epsilon0, 1.0 / protocol.n
    if reaches(protocol, before(protocol), enough, goal) or uniform_heap(protocol).epsilon(goal) > enough:
        return
    raise Unsupported(
        f"after {protocol.rounds} rounds of bundles a report's position may still tell its origin: at δ = 1/n nothing better than "
        f"epsilon0 = {protocol.epsilon0:g} can be claimed; rounds={fewest_rounds(protocol, enough, goal)} would do"
    )


REFERENCES = (
    "netdp, docs/proofs/shuffle.md#relayed-shuffling: shuffling through a server that sees all traffic.",
    "S. P. Liew, F. Kato, T. Takahashi, T. Takagi, Y. Cao, M. Yoshikawa. Network Shuffling: Privacy Amplification via Random "
    "Walks. SIGMOD 2022, sections 3.3 and 4.4 (cover traffic is proposed there, not analysed).",
)


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
    kept = tuple(text for text in direct.assumptions if text != UNWATCHED)  # the rule makes it unnecessary
    return replace(
        direct,
        curve=curve,
        claim=Claim.UPPER,
        assumptions=(*kept, *rule),
        references=(*REFERENCES, *direct.references),
    )


def _in_bundles(protocol: RelayedShuffle, observers: Any) -> Guarantee:
    """Under the rule of bundles."""
    members = curator_and(protocol.graph, observers)
    who = "no user colludes with the server"
    if members:
        who = (
            f"the server and users {', '.join(map(str, members))} pool all they see; no hiding is claimed under the rule of "
            "bundles then: the loss is the report's own"
        )
        curve = Randomizer.of(protocol).alone
    else:
        curve = shared_curve(protocol, before(protocol))
        refuse_if_idle(protocol)
    return Guarantee(
        curve=curve,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            Randomizer.of(protocol).words,
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
        curve=Randomizer.of(protocol).alone,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            Randomizer.of(protocol).words,
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
    alone = Randomizer.of(protocol).alone
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
    return [math.exp(log) if log < 0 else 1.0 for log in _log_moments(direct, most)]


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
