"""Shuffling in a network with faults, given what happened or before it is drawn (docs/guarantees.md#faulty-shuffling).

**Given who was away** (`transcript=`). The pattern of outages is public and depends neither on what reports say nor
on where they go. Given it, reports still move independently of each other: the report of u is at i in the end with
probability p_u(i) = (P_1 P_2 ⋯ P_t)(u, i), P_r the hop of round r among those who were there (and 0 from u to v where what
u sent to v never came, or u sent v nothing: which links failed is a part of the pattern). What p_u lacks of 1 is
lost. This is the situation of `crowds`, with the place of the hand-over as label and "lost" as one label more. A lost
report is in no view: under either value of u's data the curator then sees the same. So with A_u = Σ_i p_u(i), and
given that u's report arrives,

    δ_u(ε) ≤ A_u·E δ_heap(ε; others in the crowd with β_w = A_u·min_i p_w(i)/p_u(i)).

Or, with c_i = min_w p_w(i), w over all users who can meet, and C = Σ_i c_i: with probability C a report is at a place
drawn from c/C, whoever sent it, and else it is told:  δ_u(ε) ≤ C·E δ_heap(ε; Binomial(n − 1, C)) + (A_u − C)·δ_ε₀(ε).
The smaller of both counts at every ε. No stationary law is needed, nor does one exist: under absent="silent" those
who were there hold less.

*Colluders*: as in `shuffling`, the walk is killed at the colluders, the label is the place at a time t₁ (the best of
several) of a report that has met none, and what was caught is told. So is what was sent to a colluder over a link that was
severed: it came too late to be used, and is seen all the same.

**Before it is drawn**, for a rate of outages: see `outages`.

**Rounding.** Laws are products of matrices with entries ≥ 0: relative errors of at most 4(d + 8)u a round, put on the
safe side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from netdp.accounting.baselines import curator, local, said
from netdp.accounting.heap.clones import Heap, shuffled_profile
from netdp.accounting.table import certified
from netdp.errors import InvalidValue, Unsupported
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.privacy import Adjacency, Claim, Guarantee, ProfileCurve
from netdp.protocols import FaultPattern, FaultyShuffle
from netdp.views import observer_set

from .hiding import Hiding, equal, report_alone, thinned
from .outages import before, failure, refuse_if_idle, shared_curve
from .separation import failure_words

REFERENCES = (
    "netdp, docs/guarantees.md#faulty-shuffling: shuffling with outages, losses and changing graphs.",
    "S. P. Liew, F. Kato, T. Takahashi, T. Takagi, Y. Cao, M. Yoshikawa. Network Shuffling: Privacy Amplification via Random "
    "Walks. SIGMOD 2022, section 4.5 (faults are proposed there, not analysed).",
)

WORK = 4e10
"""Given a pattern, all origins are followed: refused beyond so many multiplications."""

MOST_USERS = 6000
"""Given a pattern, a table of all origins and places is kept: up to this many users."""

_EXACT = 96  # up to so many users everybody's crowd is computed pair by pair


@certified.register
def _faulty(
    protocol: FaultyShuffle, observers: Any, *, transcript: Any = None, progress: Progress | None = None
) -> Guarantee:
    members = colluders(protocol, observers)
    if transcript is not None:
        pattern = protocol.checked(transcript)
        return _stated(protocol, members, given(protocol, pattern, members, progress), "who was away is public")
    if not (protocol.outages or protocol.crashes) and feasible(protocol):  # nothing is left to chance
        return _stated(protocol, members, given(protocol, None, members, progress), "nobody is away")
    drawn = "users are away independently of each other and of other rounds, at the rate stated; who was away is public"
    if members:
        return _stated(protocol, members, None, drawn)
    ways = before(protocol)
    curve = shared_curve(protocol, ways)
    refuse_if_idle(protocol, ways)
    return _stated(protocol, members, curve, drawn, failure_words(failure(protocol)))


def colluders(protocol: FaultyShuffle, observers: Any) -> tuple[int, ...]:
    """The users who collude with the curator: none for "curator", those numbered after it in ("curator", 3, 5)."""
    named: list[Any] = [observers] if isinstance(observers, str | int | np.integer) else list(observers)
    if not named or named[0] != "curator":
        raise InvalidValue(
            "shuffled reports are read by the curator: observers must be 'curator' or start with it, as in "
            f"('curator', 3, 5) for users 3 and 5 colluding with it; got {observers!r}"
        )
    return observer_set(protocol.network, named[1:], ids=True) if len(named) > 1 else ()


def _stated(
    protocol: FaultyShuffle,
    members: tuple[int, ...],
    curve: ProfileCurve | None,
    pattern: str,
    more: tuple[str, ...] = (),
) -> Guarantee:
    """The guarantee of a curve; None is the report alone."""
    if curve is None:
        curve = report_alone(protocol.epsilon0, protocol.delta0)
        more = (*more, "no hiding is claimed before the draw against users who collude: the loss is the report's own")
    local_ = f"every report comes from an ε₀ = {protocol.epsilon0:g}"
    local_ += f", δ₀ = {protocol.delta0:g} randomizer" if protocol.delta0 else " randomizer"
    who = "no user colludes with the curator"
    if members:
        who = f"the curator and users {', '.join(map(str, members))} pool all they see; nobody else colludes"
    return Guarantee(
        curve=curve,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            local_ + ", drawn once",
            IDEAL_DRAWS,
            "every report moves by draws of its own, independent of all others: two reports in one hand do not travel "
            "together",
            "outages, crashes and losses depend neither on what reports say nor on where they are or go, and which reports "
            "were lost is not seen",
            pattern,
            "contents are encrypted for the curator; relays that do not collude with it can neither read nor tell apart nor mark "
            "reports",
            "no traffic analysis: of the way a report came, only who handed it over and what passed through colluders' hands is "
            "seen",
            "all users follow the protocol when they are there; graphs, rounds, laziness, randomizer and rates are public",
            who,
            *more,
        ),
        references=REFERENCES,
    )


def feasible(protocol: FaultyShuffle) -> bool:
    """Whether all origins can be followed."""
    entries = max(2 * graph.m for graph in protocol.graphs) + protocol.n
    return protocol.n <= MOST_USERS and float(protocol.rounds) * entries * protocol.n <= WORK


def given(
    protocol: FaultyShuffle,
    pattern: FaultPattern | None,
    members: tuple[int, ...] = (),
    progress: Progress | None = None,
) -> ProfileCurve:
    """One curve per user, given who was away (nobody without a pattern); nan at the colluders."""
    if not feasible(protocol):
        raise Unsupported(
            f"given who was away, all {protocol.n} origins are followed for {protocol.rounds} rounds; that is offered up to "
            f"{MOST_USERS} users and {WORK:.0e} multiplications. Without transcript there is no such limit"
        )
    n = protocol.n
    honest = np.setdiff1d(np.arange(n), members)
    parts = _meeting(protocol, honest)
    ways: list[list[Hiding]] = [[] for _ in range(n)]
    if not members:
        walk, caught, error = _followed(protocol, pattern, members, (protocol.rounds,), progress)[0]
        for part in parts:
            _hide(ways, walk, caught, part, error)
    else:
        best, score = None, -1.0
        for found in _followed(protocol, pattern, members, _times(protocol.rounds), progress):
            trial: list[list[Hiding]] = [[] for _ in range(n)]
            for part in parts:
                _hide(trial, *found[:2], part, found[2])
            worth = sum(max((way.hidden * float(way.shares.sum()) for way in each), default=0.0) for each in trial)
            if worth > score:
                best, score = trial, worth
        assert best is not None
        ways = best
    return curves(protocol, ways, members)


def _times(rounds: int) -> tuple[int, ...]:
    """Times at which a coalition's label may be taken: a few per doubling, and the end."""
    found = {rounds, *(int(2 ** (k / 2)) for k in range(2 * rounds.bit_length() + 2))}
    return tuple(sorted(t for t in found if 1 <= t <= rounds))


def _meeting(protocol: FaultyShuffle, honest: Any) -> list[Any]:
    """Sets of honest users whose reports can meet: components of all graphs laid over each other, colluders removed."""
    from scipy.sparse.csgraph import connected_components

    union = sum((graph.adjacency() for graph in protocol.graphs[1:]), protocol.graphs[0].adjacency())
    _, part = connected_components(union[honest][:, honest], directed=False)
    return [honest[part == c] for c in range(int(part.max()) + 1)]


def _followed(
    protocol: FaultyShuffle,
    pattern: FaultPattern | None,
    members: tuple[int, ...],
    times: Sequence[int],
    progress: Progress | None,
) -> list[tuple[FloatArray, FloatArray, float]]:
    """At each time the laws [i, u] of reports that are not lost nor caught, the probabilities of being caught, an error."""
    n = protocol.n
    walk, caught = np.eye(n), np.zeros(n)
    inside = list(members)
    if pattern is not None and inside and pattern.severed:  # what a colluder gave up may still reach it, late
        pattern = replace(pattern, severed=tuple(link for link in pattern.severed if link[2] not in members))
    walk[inside] = 0.0
    found, hops = [], {}
    widest = 0
    for r in range(protocol.rounds):
        key = r % len(protocol.graphs) if pattern is None or pattern.is_calm(r) else None
        if key is None or key not in hops:
            hop = protocol.hop(r, pattern).T.tocsr()
            widest = max(widest, int(np.diff(hop.indptr).max()))
            if key is not None:
                hops[key] = hop
        else:
            hop = hops[key]
        walk = hop @ walk
        if inside:
            caught += walk[inside].sum(axis=0)
            walk[inside] = 0.0
        if r + 1 in times:
            found.append(
                (walk.copy() if r + 1 < protocol.rounds else walk, caught.copy(), (r + 1) * 4 * (widest + 8) * UNIT)
            )
        if progress is not None:
            progress(r + 1, protocol.rounds)
    return found


def _hide(ways: list[list[Hiding]], walk: FloatArray, caught: FloatArray, part: Any, error: float) -> None:
    """The bounds for the users of one part, entered into `ways`."""
    if len(part) < 2:
        u = int(part[0])
        ways[u].append(Hiding(0.0, min(1.0, float(walk[:, u].sum() + caught[u]) * (1 + error)), np.zeros(0)))
        return
    laws = walk[np.ix_(part, part)]
    laws = laws[laws.sum(axis=1) > 0]  # places where nobody can be
    arrives = np.minimum(laws.sum(axis=0) * (1 + error), 1.0)
    told = np.minimum(caught[part] * (1 + error), 1.0)
    if not len(laws):  # every report is lost or caught
        for u, chance in zip(part.tolist(), told.tolist(), strict=True):
            ways[u].append(Hiding(0.0, chance, np.zeros(0)))
        return
    safe = max(0.0, 1 - 3 * error)
    alive = arrives > 0  # the others' reports are lost for certain, and tell nothing
    common = float(laws[:, alive].min(axis=1).sum()) * safe if alive.any() else 0.0
    exact = len(part) <= _EXACT
    middle = laws.mean(axis=1, keepdims=True)
    low, high = (laws / middle).min(axis=0), (laws / middle).max(axis=0)
    order = np.sort(low)[::-1][1:]  # the victim may be the best of them
    # few different crowds: log `high` rounded up, by a quarter at most where it matters
    power = np.ceil(np.log(np.maximum(np.log(np.maximum(high, 1.0)), 2e-4) / 2e-4) / math.log(1.25))
    steps = np.exp(2e-4 * 1.25**power)
    cached: dict[float, FloatArray] = {}
    for k, u in enumerate(part.tolist()):
        if not alive[k]:
            ways[u].append(Hiding(0.0, float(told[k]), np.zeros(0)))
            continue
        if exact:
            mine = laws[:, k]
            there = mine > 0
            shares = np.delete((laws[there] / mine[there, None]).min(axis=0), k)
            shares = np.clip(shares * arrives[k] * safe * safe, 0.0, 1.0)
        else:
            key = float(steps[k])
            if key not in cached:
                cached[key] = np.clip(order / key * float(arrives[alive].min()) * safe * safe * (1 - 1e-12), 0.0, 1.0)
            shares = cached[key]
        ways[u].append(Hiding(float(arrives[k]), float(told[k]), shares))
        rest = max(0.0, float(arrives[k]) - common)
        ways[u].append(Hiding(common, min(1.0, rest + float(told[k])), equal(common, int(alive.sum()) - 1)))


def curves(protocol: FaultyShuffle, ways: list[list[Hiding]], members: tuple[int, ...] = ()) -> ProfileCurve:
    """The least of each user's bounds, at common ε."""
    heaps: dict[bytes, Heap] = {}

    def heap(way: Hiding) -> Heap:
        key = way.shares.tobytes()
        if key not in heaps:
            heaps[key] = way.heap(protocol.epsilon0, protocol.delta0)
        return heaps[key]

    honest = [u for u in range(protocol.n) if u not in members]
    ranked = sorted(honest, key=lambda u: max(way.hidden * float(way.shares.sum()) for way in ways[u]))
    knots = [np.array([0.0, protocol.epsilon0])]
    for u in {ranked[0], ranked[len(ranked) // 2], ranked[-1]}:
        for way in ways[u]:
            knots.append(thinned(np.asarray(heap(way).profile().epsilons)))
    eps = np.unique(np.concatenate(knots))
    hidden: dict[tuple[bytes, float, float], FloatArray] = {}
    deltas = np.full((protocol.n, len(eps)), np.nan)
    for u in honest:
        rows = []
        for way in ways[u]:
            key = (way.shares.tobytes(), way.hidden, way.told)  # nothing is moved given the pattern
            if key not in hidden:
                hidden[key] = way.deltas(heap(way), eps)
            rows.append(hidden[key])
        deltas[u] = np.min(rows, axis=0)
    return ProfileCurve(eps, np.minimum.accumulate(deltas, axis=1))


@local.register
def _local_reports(protocol: FaultyShuffle) -> Guarantee:
    return said(
        report_alone(protocol.epsilon0, protocol.delta0), "every user publishes its report", more=(IDEAL_DRAWS,)
    )


@curator.register
def _curator_shuffle(protocol: FaultyShuffle) -> Guarantee:
    curve = shuffled_profile(protocol.n - 1, protocol.epsilon0, delta0=protocol.delta0)
    return said(curve, "a trusted shuffler permutes all reports uniformly, and none is lost", more=(IDEAL_DRAWS,))
