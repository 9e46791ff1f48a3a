"""Network shuffling, certified: what the curator learns from reports that walked through a network.

**Theorem.** After t rounds every report's position has the law P_u(t) = (1 − s)π + sR_u (u its origin, s the
separation). Let a coin of each report decide which part it is in. Tell the curator everything about the reports in R:
whose they are, where, what they say (being told can only add to what it learns; a *heap* below is a set of reports without
names or order; `clones` explains both). The others have positions drawn from π, independent of each other, of the
origins and of what they say: given the shuffled heap of *their contents* the curator could draw the positions itself.
Reports stay whole ("all"), or are picked and dummies added by coins that do not look at contents or origins
("single"): post-processing. So with δ_shuffle of the uniform shuffler (`clones`) and the local δ_{ε₀}(ε),

    δ(ε) ≤ (1 − s)·E δ_shuffle(ε; Binomial(n − 1, 1 − s) others) + s·δ_{ε₀}(ε).

At s = 0 this is the trusted shuffler itself, whatever the degrees are. An (ε₀, δ₀) randomizer adds (1 + e^ε)τ as
proved in `clones`: the reports of all are replaced by pure ones before they walk.

**Users who collude with the curator** read every report that passes through their hands and know from whom it came
and where it goes. Let Q be the walk killed at the colluders, and t₀ ≤ t. If Q^{t₀}(u, i) ≥ a_u ν_i for a fixed law ν
on honest users, then with probability a_u the report of u has met no colluder by time t₀ and sits at a place drawn
from ν, whoever sent it; all that happens to it later is a function of that place and of independent coins. Tell the
coalition everything about the reports in the other part. As above

    δ_u(ε) ≤ a_u·E δ_shuffle(ε; the others in the first part) + (1 − a_u)·δ_{ε₀}(ε).

Any ν and t₀ are valid; ν is the quasi-stationary law of each component that the honest users form, a_u = min_i
Q^{t₀}(u, i)/ν_i, and t₀ is the best seen. Of the others only those with a_w ≥ θ are counted, each kept with
probability θ, the best θ.

What cannot be mended: in the first round a neighbour u of a colluder hands it, with probability (1 − ℓ)/degree, a report
that can only be its own. So δ_u(ε) ≥ δ_{ε₀}(ε)·(1 − ℓ)/degree for any number of rounds, δ_{ε₀} the profile of the report
alone: at a δ well below 1/degree the ε of u stays near ε₀. (Near, not at it: for binary response this says
ε ≥ ln(e^ε₀ − (e^ε₀ + 1)·δ·degree/(1 − ℓ)), and between that and ε₀ there may be something to gain.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.accounting.heap.clones import Heap
from netdp.accounting.published import network_shuffling
from netdp.accounting.table import certified
from netdp.errors import InvalidValue, Unsupported
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.privacy import Adjacency, Claim, Curve, Guarantee, ProfileCurve
from netdp.protocols import Shuffle
from netdp.views import observer_set

from .separation import Separation, failure_words, fewest_rounds, separation

COLLUSION_LIMIT = 1000
"""Collusion is accounted for up to this many users: all pairs of them are followed."""

WORTH = 0.9
"""A guarantee is refused if at δ = 1/n it says more than this share of ε₀ and better mixing would help."""

REFERENCES = (
    "netdp, docs/guarantees.md#network-shuffling: network shuffling by the separation of the walk.",
    "V. Feldman, A. McMillan, K. Talwar. Stronger Privacy Amplification by Shuffling for Rényi and Approximate "
    "Differential Privacy. SODA 2023.",
    "B. Balle, J. Bell, A. Gascón, K. Nissim. The Privacy Blanket of the Shuffle Model. CRYPTO 2019.",
    *network_shuffling.REFERENCES,
)

_COMMON = (
    "every report moves by draws of its own, independent of all others: two reports in one hand do not travel together",
    "contents are encrypted for the curator; relays can neither read nor tell apart nor mark the reports they carry",
    "no traffic analysis: of the way a report came, only who handed it over is seen",
    "all users follow the protocol to its end; graph, rounds, laziness and randomizer are public",
)


@certified.register
def _shuffle(protocol: Shuffle, observers: Any, *, progress: Progress | None = None) -> Guarantee:
    members = curator_and(protocol, observers)
    if members:
        return _against_coalition(protocol, members, progress)
    mixed = separation(protocol)
    heap = curator_heap(protocol, mixed.value)
    _refuse_if_idle(protocol, mixed, heap)
    return curator_statement(protocol, mixed, heap.profile())


def curator_statement(protocol: Shuffle, mixed: Separation, curve: Curve) -> Guarantee:
    """What is said of a curve that holds against the curator when the walk has mixed so far."""
    return Guarantee(
        curve=curve,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(*_statements(protocol), "no user colludes with the curator", *failure_words(mixed.failure)),
        references=REFERENCES,
    )


def curator_and(protocol: Shuffle, observers: Any) -> tuple[int, ...]:
    """The users who collude with the curator: none for "curator", those numbered after it in ("curator", 3, 5).

    `netdp.views.who_looks` finds the parties and the role in what a person typed.

    >>> from netdp import graphs
    >>> curator_and(Shuffle(graphs.complete(6), rounds=3, epsilon0=1.0), ("curator", 5, 3))
    (3, 5)
    """
    if isinstance(observers, str):
        named: list[Any] = [observers]
    elif isinstance(observers, int | np.integer):
        named = [observers]
    else:
        named = list(observers)
    if not named or not isinstance(named[0], str) or named[0] != "curator":
        raise InvalidValue(
            "shuffled reports are read by the curator: observers must be 'curator' or start with it, as in "
            f"('curator', 3, 5) for users 3 and 5 colluding with it; got {observers!r}"
        )
    return observer_set(protocol.graph, named[1:], ids=True) if len(named) > 1 else ()


def curator_heap(protocol: Shuffle, s: float) -> Heap:
    """The heap that bounds what the curator sees at separation s."""
    return Heap.of(protocol.n - 1, protocol.epsilon0, keep=1 - s, told=s, delta0=protocol.delta0)


def uniform_heap(protocol: Shuffle) -> Heap:
    """The same reports through a trusted uniform shuffler."""
    return curator_heap(protocol, 0.0)


def _refuse_if_idle(protocol: Shuffle, mixed: Separation, heap: Heap) -> None:
    """Refuse where walking longer would help and the walk as it is gives next to nothing at δ = 1/n."""
    enough, goal = WORTH * protocol.epsilon0, 1.0 / protocol.n
    if heap.epsilon(goal) <= enough or uniform_heap(protocol).epsilon(goal) > enough:
        return
    try:
        better = fewest_rounds(protocol.graph, protocol.laziness, 0.01 * goal).rounds
        advice = f"rounds={better} would do"
    except Unsupported:
        advice = "its walk mixes too slowly for any number of rounds to be proved enough"
    raise Unsupported(
        f"after {protocol.rounds} rounds a report's position may still tell its origin (separation s ≤ {mixed.value:.3g}): "
        f"at δ = 1/n nothing better than epsilon0 = {protocol.epsilon0:g} can be claimed; {advice}"
    )


def _statements(protocol: Shuffle) -> tuple[str, ...]:
    local = f"every report comes from an ε₀ = {protocol.epsilon0:g}"
    local += f", δ₀ = {protocol.delta0:g} randomizer" if protocol.delta0 else " randomizer"
    return (local + ", drawn once", IDEAL_DRAWS, *_COMMON)


@dataclass(frozen=True)
class Hiding:
    """For every user the probability `chance` of vanishing among `others` who vanish there with probability `keep`."""

    chance: FloatArray
    others: npt.NDArray[np.int64]
    keep: FloatArray
    time: int


def _against_coalition(protocol: Shuffle, members: tuple[int, ...], progress: Progress | None) -> Guarantee:
    if protocol.n > COLLUSION_LIMIT:
        raise Unsupported(
            f"collusion with the curator is accounted for up to {COLLUSION_LIMIT} users, where all pairs can be followed; "
            f"{protocol.graph!r} has {protocol.n}. observers='curator' alone has no such limit"
        )
    hiding = hide(protocol, members, progress)
    curve = coalition_curve(protocol, members, hiding)
    return Guarantee(
        curve=curve,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            *_statements(protocol),
            f"the curator and users {', '.join(map(str, members))} pool all they see; nobody else colludes",
        ),
        references=REFERENCES,
    )


def hide(protocol: Shuffle, members: tuple[int, ...], progress: Progress | None = None) -> Hiding:
    """a_u, and among whom, at the best time; users in different parts of the honest graph do not hide each other."""
    graph = protocol.graph
    honest = np.setdiff1d(np.arange(graph.n), members)
    part = graph.subgraph(honest.tolist()).components()
    Q = protocol.transition[honest][:, honest].tocsr()
    step = 4 * (int(np.diff(protocol.transition.indptr).max()) + 4) * UNIT  # entries ≥ 0: errors stay relative
    laws = np.zeros((int(part.max()) + 1, len(honest)))
    for c in range(len(laws)):
        laws[c, part == c] = _quasi_stationary(Q, part == c)
    following = Q.T.tocsr()
    walk = np.eye(len(honest))  # [i, u]: alive at i, having started at u
    best: Hiding | None = None
    score = 0.0
    for t in range(1, protocol.rounds + 1):
        walk = following @ walk
        hiding = _summary(graph.n, honest, part, walk, laws, t, max(0.0, 1 - t * step))
        found = float((hiding.chance[honest] * np.minimum(hiding.others[honest] * hiding.keep[honest], 1e300)).sum())
        if best is None or found > score:
            best, score = hiding, found
        elif t > 2 * best.time + 8 and found < 0.25 * score:
            break
        if progress is not None:
            progress(t, protocol.rounds)
    assert best is not None
    return best


def _summary(
    n: int,
    honest: npt.NDArray[np.int64],
    part: npt.NDArray[np.int64],
    walk: FloatArray,
    laws: FloatArray,
    t: int,
    safe: float,
) -> Hiding:
    chance, others, keep = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n)
    for c, law in enumerate(laws):
        mine, there = np.flatnonzero(part == c), np.flatnonzero(law > 0)
        if len(mine) < 2 or not there.size:
            continue
        a = np.clip((walk[np.ix_(there, mine)] / law[there, None]).min(axis=0) * safe, 0.0, 1.0)
        ordered = np.sort(a)[::-1]
        counts = np.arange(len(ordered))  # so many others, besides a victim who may be among the best
        chosen = int(np.argmax(counts * ordered))
        chance[honest[mine]] = a
        others[honest[mine]], keep[honest[mine]] = counts[chosen], ordered[chosen]
    return Hiding(chance, others, keep, t)


def _quasi_stationary(Q: Any, mine: npt.NDArray[np.bool_]) -> FloatArray:
    """Where a walk that has not been caught for long is; any law is valid, this one is good."""
    block = Q[mine][:, mine].toarray()
    law = np.full(len(block), 1.0 / len(block))
    for _ in range(200):
        # half a step of laziness keeps bipartite parts from flipping
        law = 0.5 * law + 0.5 * (law @ block)
        law /= law.sum()
    return np.asarray(law / (law.sum() * (1 - 4 * len(law) * UNIT)))


def coalition_curve(protocol: Shuffle, members: tuple[int, ...], hiding: Hiding) -> ProfileCurve:
    """One curve per user, nan at the colluders."""
    n = protocol.n
    honest = np.setdiff1d(np.arange(n), members)
    groups: dict[tuple[int, float], list[int]] = {}
    for u in honest.tolist():
        groups.setdefault((int(hiding.others[u]), float(hiding.keep[u])), []).append(u)
    heaps = {key: Heap.of(key[0], protocol.epsilon0, keep=key[1], delta0=protocol.delta0) for key in groups}
    knots = [np.array([0.0, protocol.epsilon0])]
    for key, heap in heaps.items():
        for a in np.quantile(hiding.chance[groups[key]], [0.0, 0.5, 1.0]):
            knots.append(np.asarray(replace(heap, told=1 - float(a)).profile().epsilons))
    eps = np.unique(np.concatenate(knots))
    deltas = np.full((n, len(eps)), np.nan)
    for key, heap in heaps.items():
        told = 1 - hiding.chance[groups[key]][:, None]
        deltas[groups[key]] = heap.finished(heap.hidden(eps), eps, told)
    return ProfileCurve(eps, np.minimum.accumulate(deltas, axis=1))


def hops_per_user(protocol: Shuffle) -> float:
    """Reports that a user passes on in the whole run, on average: a report moves in a round unless it is lazy.

    >>> from netdp import graphs
    >>> hops_per_user(Shuffle(graphs.ring(5), rounds=10, epsilon0=1.0, laziness=0.5))
    5.0
    """
    return protocol.rounds * (1 - protocol.laziness)


__all__ = ["COLLUSION_LIMIT", "REFERENCES", "curator_heap", "curator_statement", "hops_per_user", "uniform_heap"]
