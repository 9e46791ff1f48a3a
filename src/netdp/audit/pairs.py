"""Whom to look at: the pair with the largest claimed loss, a random pair, the farthest pair, and a coalition."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from netdp.accounting import account, who_learns_most
from netdp.accounting.table import published
from netdp.graphs import Graph
from netdp.numerics.arrays import IntArray
from netdp.privacy import Observers
from netdp.protocols import Protocol
from netdp.views import who_looks

_TRIED = 12
"""Parties that are tried as the next member of a coalition."""
_LOOKED_AT = 12
"""Observers that are looked at for the worst pair, where there are too many to look at all: those with most links."""
_ALL = 40
NOTHING: Mapping[str, Any] = MappingProxyType({})
"""No options of `account`."""


@dataclass(frozen=True)
class Pair:
    """Who looks at whom, and why this pair was chosen."""

    name: str
    observers: Observers
    target: int


def pairs_of(
    protocol: Protocol, delta: float, colluders: int, seed: int, options: Mapping[str, Any] = NOTHING
) -> list[Pair]:
    """The pairs of a default audit; `colluders` parties pool what they see in the last one (0 or 1: none)."""
    rng = np.random.default_rng(seed)
    n, graph = protocol.n, protocol.network
    if protocol.roles:
        return _of_a_curator(protocol, delta, colluders, rng)
    hub, victim = _worst(protocol, delta, options)
    pairs = [Pair("worst pair", who_looks(protocol, [hub]), victim)]
    v, u = (int(x) for x in rng.choice(n, size=2, replace=False))
    pairs.append(Pair("random pair", who_looks(protocol, [v]), u))
    if graph is not None:
        far = int(np.argmax(hops_from(graph, [hub])))
        pairs.append(Pair("farthest pair", who_looks(protocol, [hub]), far))
    if 1 < colluders < n:
        members = _coalition(protocol, hub, victim, colluders, delta, rng, options)
        pairs.append(Pair(f"{colluders} colluders", who_looks(protocol, members), victim))
    return pairs


def by_distance(
    protocol: Protocol, observer: int, delta: float, options: Mapping[str, Any] = NOTHING, most: int = 8
) -> list[Pair]:
    """For every distance from one observer the party with the largest claimed loss; up to `most` distances.

    None where distance does not matter, as in a masked sum.
    """
    graph = protocol.network
    if graph is None or protocol.roles:
        return []
    who = who_looks(protocol, [observer])
    hops = hops_from(graph, [observer])
    epsilons = np.nan_to_num(np.asarray(account(protocol, [observer], **options).epsilon(delta)), posinf=1e300)
    alike = np.ptp(np.delete(epsilons, observer)) <= 1e-6 * epsilons.max()
    if alike and not published.handles(protocol):  # the same about everybody, and no formula that says otherwise
        return []
    distances = [int(h) for h in np.unique(hops) if h > 0]
    if len(distances) > most:
        distances = [distances[round(i)] for i in np.linspace(0, len(distances) - 1, most)]
    targets = [max(np.flatnonzero(hops == h).tolist(), key=lambda u: epsilons[u]) for h in distances]
    return [Pair(f"{h} hop{'s' if h > 1 else ''} away", who, int(u)) for h, u in zip(distances, targets, strict=True)]


def hops_from(graph: Graph, sources: Any) -> IntArray:
    """(n,) how many links from the nearest of the sources; −1 where none leads there.

    >>> from netdp import graphs
    >>> hops_from(graphs.ring(6), [0]).tolist()
    [0, 1, 2, 3, 2, 1]
    """
    hops = np.full(graph.n, -1, dtype=np.int64)
    hops[list(sources)] = 0
    queue = deque(int(v) for v in sources)
    while queue:
        v = queue.popleft()
        for u in graph.neighbors(v).tolist():
            if hops[u] < 0:
                hops[u] = hops[v] + 1
                queue.append(u)
    return hops


def _worst(protocol: Protocol, delta: float, options: Mapping[str, Any]) -> tuple[int, int]:
    graph, n = protocol.network, protocol.n
    named = None
    if n > _ALL:
        named = list(range(_LOOKED_AT)) if graph is None else np.argsort(-graph.degrees, kind="stable")[:_LOOKED_AT]
        named = [int(v) for v in named]
    exposure = who_learns_most(protocol, delta, named, **options)
    return exposure.hub, exposure.victim


def _coalition(
    protocol: Protocol,
    hub: int,
    victim: int,
    size: int,
    delta: float,
    rng: np.random.Generator,
    options: Mapping[str, Any],
) -> list[int]:
    """The worst observer, joined by those who add most to what is learned about its victim."""
    members, graph = [hub], protocol.network
    near = [] if graph is None else [int(w) for w in graph.neighbors(victim)]
    while len(members) < size:
        free = [w for w in range(protocol.n) if w not in members and w != victim]
        tried = [w for w in near if w in free][:_TRIED]
        others = [w for w in free if w not in tried]
        tried += [int(w) for w in rng.choice(others, size=min(len(others), max(_TRIED - len(tried), 1)), replace=False)]
        learned = [_epsilon(protocol, [*members, w], victim, delta, options) for w in tried]
        members.append(tried[int(np.argmax(learned))])
    return sorted(members)


def _epsilon(protocol: Protocol, members: list[int], victim: int, delta: float, options: Mapping[str, Any]) -> float:
    return float(np.nan_to_num(np.asarray(account(protocol, members, **options).epsilon(delta))[victim], posinf=1e300))


def _of_a_curator(protocol: Protocol, delta: float, colluders: int, rng: np.random.Generator) -> list[Pair]:
    alone = who_looks(protocol, list(protocol.roles))
    epsilons = np.asarray(account(protocol, list(protocol.roles)).epsilon(delta))
    worst, other = int(np.nanargmax(epsilons)), int(rng.integers(protocol.n))
    pairs = [Pair("worst placed user", alone, worst), Pair("random user", alone, other)]
    if colluders > 1:
        free = [w for w in range(protocol.n) if w != worst]
        joined = sorted(int(w) for w in rng.choice(free, size=min(colluders - 1, len(free) - 1), replace=False))
        who = who_looks(protocol, [*protocol.roles, *joined])
        pairs.append(Pair(f"curator and {len(joined)} users", who, worst))
    return pairs
