"""Network shuffling, certified: what the curator learns from reports that walked through a network.

**Theorem.** After t rounds the report of u is at a place drawn from P_u(t), whatever it says; the curator sees the places and
the contents as a set. With (1 − low_u)π ≤ P_u(t) ≤ (1 + high_u)π (`mixing`) and by the theorem of `crowds`, places being the
labels, every other report w is in the crowd of u with probability (1 − low_w)/(1 + high_u):

    δ_u(ε) ≤ E δ_shuffle(ε; K others),   K successes in independent trials of these probabilities.

So is the older bound with one common law for all: P_u(t) = (1 − s)π + sR_u, s the separation, and whoever is in the second part
is told: δ(ε) ≤ (1 − s)·E δ_shuffle(ε; Binomial(n − 1, 1 − s) others) + s·δ_{ε₀}(ε). The least of both counts, user by user
(`per_user`). At the end of mixing this is the trusted shuffler itself, whatever the degrees are.

Reports stay whole ("all"), or are picked and dummies added by coins that do not look at contents or origins ("single"):
post-processing, and a gain of its own (`single`). An (ε₀, δ₀) randomizer adds (1 + e^ε)τ as proved in `clones`: the
reports of all are replaced by pure ones before they walk.

Users who collude with the curator: `coalition`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting.heap.clones import Heap
from netdp.accounting.published import network_shuffling
from netdp.accounting.table import certified
from netdp.errors import InvalidValue, Unsupported
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.numerics.arrays import Progress
from netdp.privacy import Adjacency, Claim, Curve, Guarantee
from netdp.protocols import Shuffle
from netdp.views import observer_set

from .mixing import fewest_rounds_for
from .per_user import Part, Table, curves, parts
from .separation import failure_words

WORTH = 0.9
"""A guarantee is refused if at δ = 1/n it says more than this share of ε₀ and better mixing would help."""

REFERENCES = (
    "netdp, docs/guarantees.md#network-shuffling and docs/guarantees.md#crowds: network shuffling by the mixing of the walk.",
    "V. Feldman, A. McMillan, K. Talwar. Stronger Privacy Amplification by Shuffling for Rényi and Approximate "
    "Differential Privacy. SODA 2023.",
    "B. Balle, J. Bell, A. Gascón, K. Nissim. The Privacy Blanket of the Shuffle Model. CRYPTO 2019.",
    *network_shuffling.REFERENCES,
)

_COMMON = (
    "every report moves by draws of its own, independent of all others: two reports in one hand do not travel together",
    "contents are encrypted for the curator; relays that do not collude with it can neither read nor tell apart nor mark reports",
    "no traffic analysis: of the way a report came, only who handed it over and what passed through colluders' hands is seen",
    "all users follow the protocol to its end; graph, rounds, laziness and randomizer are public",
)


@certified.register
def _shuffle(protocol: Shuffle, observers: Any, *, progress: Progress | None = None) -> Guarantee:
    members = curator_and(protocol, observers)
    if members:
        from .coalition import against_coalition

        return against_coalition(protocol, members, progress)
    found = parts(protocol)
    _refuse_if_idle(found)
    return curator_statement(protocol, sum(part.mixed.failure for part in found), curves(protocol, found))


def curator_statement(protocol: Shuffle, failure: float, curve: Curve) -> Guarantee:
    """What is said of a curve that holds against the curator but for this probability."""
    return Guarantee(
        curve=curve,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(*statements(protocol), "no user colludes with the curator", *failure_words(failure)),
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


def _refuse_if_idle(found: list[Part]) -> None:
    """Refuse where walking longer would help and the walk as it is gives nobody more than next to nothing at δ = 1/n."""
    advice = []
    for part in found:
        protocol, table = part.protocol, Table.of(part.protocol, part.mixed)
        enough, goal = WORTH * protocol.epsilon0, 1.0 / protocol.n
        if table.epsilon(0, goal) <= enough or uniform_heap(protocol).epsilon(goal) > enough:
            return
        try:
            better = fewest_rounds_for(protocol.graph, protocol.laziness, 0.9).rounds
            advice.append((better, f"rounds={better} would do"))
        except Unsupported:
            advice.append((1 << 62, "its walk mixes too slowly for any number of rounds to be proved enough"))
    first = found[0].protocol
    raise Unsupported(
        f"after {first.rounds} rounds a report's position may still tell its origin (separation s ≤ "
        f"{max(part.mixed.value for part in found):.3g}): at δ = 1/n nothing better than epsilon0 = {first.epsilon0:g} can be "
        f"claimed; {max(advice)[1]}"
    )


def statements(protocol: Shuffle) -> tuple[str, ...]:
    """What every guarantee of a `Shuffle` assumes."""
    local = f"every report comes from an ε₀ = {protocol.epsilon0:g}"
    local += f", δ₀ = {protocol.delta0:g} randomizer" if protocol.delta0 else " randomizer"
    dummies = "who holds nothing hands over a report of a null value fixed beforehand, from the same randomizer"
    return (local + ", drawn once", IDEAL_DRAWS, *_COMMON, *([dummies] if protocol.reporting == "single" else []))


def hops_per_user(protocol: Shuffle) -> float:
    """Reports that a user passes on in the whole run, on average: a report moves in a round unless it is lazy.

    >>> from netdp import graphs
    >>> hops_per_user(Shuffle(graphs.ring(5), rounds=10, epsilon0=1.0, laziness=0.5))
    5.0
    """
    return protocol.rounds * (1 - protocol.laziness)


__all__ = [
    "REFERENCES",
    "curator_and",
    "curator_heap",
    "curator_statement",
    "hops_per_user",
    "statements",
    "uniform_heap",
]
