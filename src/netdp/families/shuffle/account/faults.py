"""What the curator of network shuffling learns while users are away and reports get lost.

Given who was away (`transcript=`), the law of every report's place is followed, and the bounds of
`netdp.families.shuffle.account.hiding` hold user by user, also against users who collude with the curator. Before that is
drawn, at a rate of outages, the laws of any two origins approach each other by a factor κ per round in mean square, and the
bounds (A) and (B) that follow hold for all users alike, against the curator alone. Crashes are covered given the pattern only.
Proofs: docs/proofs/shuffle.md#faulty-shuffling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.errors import Unsupported
from netdp.families.shuffle.account.hiding import (
    Hiding,
    by_contraction,
    equal,
    equal_heap,
    reaches,
    shared_curve,
    thinned,
)
from netdp.families.shuffle.account.mixing import failure_words
from netdp.families.shuffle.account.nested import no_less_than_parts
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.account.shuffling import (
    ENCRYPTED,
    INDEPENDENT,
    UNWATCHED,
    WORTH,
    curator_and,
)
from netdp.families.shuffle.protocol import FaultPattern, FaultyShuffle
from netdp.graphs.certificate import DENSE, cached_bound, normalised
from netdp.graphs.graph import Graph
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.privacy.clones import Heap
from netdp.privacy.curve import Curve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.table import certified


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
    many, total = len(weights), 0.0
    for k in range(many):
        times = len(range(k, protocol.rounds, many))
        change = math.log(float((weights[k - 1] / weights[k]).max()))  # from round k back to the one before
        total += times * logs[k] + (times - (k == 0)) * max(change, 0.0)
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
    log_kappa, ratios = spread(protocol)
    size = math.exp(min(0.5 * log_kappa, 0.0)) * float(np.sqrt(ratios).sum()) * (1 + 1e-9)  # S
    distance = math.inf
    if protocol.absent == "unreachable" and len({graph.degrees.tobytes() for graph in protocol.graphs}) == 1:
        degrees = protocol.graphs[0].degrees  # π stays whoever is away
        distance = math.exp(min(log_kappa, 0.0)) * float((degrees.sum() / degrees).sum())
    return by_contraction(protocol.n - 1, size, arrives=protocol.arrives, distance=distance)


def unharmed(protocol: FaultyShuffle) -> Heap:
    """A trusted shuffler of the reports that arrive."""
    return equal_heap(protocol.n - 1, protocol.arrives, Randomizer.of(protocol))


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


REFERENCES = (
    "netdp, docs/proofs/shuffle.md#faulty-shuffling: shuffling with outages, losses and changing graphs.",
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
    members = curator_and(protocol.network, observers)
    if transcript is not None:
        pattern = protocol.checked(transcript)
        return _stated(protocol, members, _nested(protocol, pattern, members, progress), "who was away is public")
    if not (protocol.outages or protocol.crashes) and feasible(protocol):  # nothing is left to chance
        return _stated(protocol, members, _nested(protocol, None, members, progress), "nobody is away")
    drawn = "users are away independently of each other and of other rounds, at the rate stated; who was away is public"
    if members:
        return _stated(protocol, members, None, drawn)
    ways = before(protocol)
    curve = shared_curve(protocol, ways)
    refuse_if_idle(protocol, ways)
    return _stated(protocol, members, curve, drawn, failure_words(failure(protocol)))


def _nested(
    protocol: FaultyShuffle, pattern: FaultPattern | None, members: tuple[int, ...], progress: Progress | None
) -> Curve:
    """What is given, and no less than what a part of the coalition is bounded by."""
    return no_less_than_parts(
        protocol.n, members, lambda part: given(protocol, pattern, part, progress if part == members else None)
    )


def _stated(
    protocol: FaultyShuffle,
    members: tuple[int, ...],
    curve: Curve | None,
    pattern: str,
    more: tuple[str, ...] = (),
) -> Guarantee:
    """The guarantee of a curve; None is the report alone."""
    if curve is None:
        curve = Randomizer.of(protocol).alone
        more = (*more, "no hiding is claimed before the draw against users who collude: the loss is the report's own")
    who = "no user colludes with the curator"
    if members:
        who = f"the curator and users {', '.join(map(str, members))} pool all they see; nobody else colludes"
    return Guarantee(
        curve=curve,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            Randomizer.of(protocol).words,
            IDEAL_DRAWS,
            INDEPENDENT,
            "outages, crashes and losses depend neither on what reports say nor on where they are or go, and which reports "
            "were lost is not seen",
            pattern,
            ENCRYPTED,
            UNWATCHED,
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
    return curves(protocol, _ways(protocol, pattern, members, progress), members)


def meets_calm(protocol: FaultyShuffle, epsilon: float, delta: float) -> bool:
    """Whether (ε, δ) is certified for everybody if nobody is away, without the ε between."""
    eps, randomizer = np.array([epsilon]), Randomizer.of(protocol)
    heaps: dict[bytes, Heap] = {}
    for ways in _ways(protocol, None, (), None):
        best = math.inf
        for way in ways:
            key = way.shares.tobytes()
            if key not in heaps:
                heaps[key] = way.heap(randomizer)
            best = min(best, float(way.deltas(heaps[key], eps)[0]))
        if best > delta:
            return False
    return True


def _ways(
    protocol: FaultyShuffle, pattern: FaultPattern | None, members: tuple[int, ...], progress: Progress | None
) -> list[list[Hiding]]:
    """The bounds of every user; none of a colluder."""
    if not feasible(protocol):
        raise Unsupported(
            f"given who was away, all {protocol.n} origins are followed for {protocol.rounds} rounds; that is offered up to "
            f"{MOST_USERS} users and {WORK:.0e} multiplications. Without transcript there is no such limit"
        )
    n = protocol.n
    honest = np.setdiff1d(np.arange(n), members)
    parts = _meeting(protocol, honest)
    times = _times(protocol.rounds) if members else (protocol.rounds,)
    best: list[list[Hiding]] = []
    score = -1.0
    for walk, caught, error in _followed(protocol, pattern, members, times, progress):
        ways: list[list[Hiding]] = [[] for _ in range(n)]
        for part in parts:
            _hide(ways, walk, caught, part, error)
        worth = sum(max((way.hidden * float(way.shares.sum()) for way in each), default=0.0) for each in ways)
        if worth > score:
            best, score = ways, worth
    return best


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
    revealed = np.minimum(caught[part] * (1 + error), 1.0)
    if not len(laws):  # every report is lost or caught
        for u, chance in zip(part.tolist(), revealed.tolist(), strict=True):
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
            ways[u].append(Hiding(0.0, float(revealed[k]), np.zeros(0)))
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
        ways[u].append(Hiding(float(arrives[k]), float(revealed[k]), shares))
        rest = max(0.0, float(arrives[k]) - common)
        ways[u].append(Hiding(common, min(1.0, rest + float(revealed[k])), equal(common, int(alive.sum()) - 1)))


def curves(protocol: FaultyShuffle, ways: list[list[Hiding]], members: tuple[int, ...] = ()) -> ProfileCurve:
    """The least of each user's bounds, at common ε."""
    heaps: dict[bytes, Heap] = {}
    randomizer = Randomizer.of(protocol)

    def heap(way: Hiding) -> Heap:
        key = way.shares.tobytes()
        if key not in heaps:
            heaps[key] = way.heap(randomizer)
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
            key = (way.shares.tobytes(), way.hidden, way.revealed)  # nothing is moved given the pattern
            if key not in hidden:
                hidden[key] = way.deltas(heap(way), eps)
            rows.append(hidden[key])
        deltas[u] = np.min(rows, axis=0)
    return ProfileCurve(eps, np.minimum.accumulate(deltas, axis=1))
