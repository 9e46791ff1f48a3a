"""Whom a few removed parties can cut off from the rest of a graph: the smallest connected set that is left with each party.

Connected sets are grown from a party, each neighbour either joining or cutting; where that takes too many cases, a bound holds
instead, by disjoint paths (Menger) or by resistances. Proof: docs/proofs/coalitions.md#any-coalition.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from netdp.graphs.graph import Graph
from netdp.graphs.resistance import WorstRemoval, all_targets
from netdp.numerics.arrays import IntArray, Progress

_CASES, _CASES_IN_ALL = 20_000, 400_000

_PATHS_UP_TO = 600

_STRONG = 1e9


def smallest_components(graph: Graph, colluders: int, progress: Progress | None = None) -> tuple[IntArray, Cut | None]:
    """For every party: at least so many stay together with it, whoever the colluders are; and the worst that was found.

    >>> from netdp import graphs
    >>> sizes, worst = smallest_components(graphs.path(6), 1)
    >>> sizes.tolist(), worst
    ([1, 2, 3, 3, 2, 1], Cut(size=1, coalition=(1,), target=0))
    """
    n = graph.n
    sizes: IntArray = np.full(n, n - colluders, dtype=np.int64)
    if n <= _PATHS_UP_TO and stays_connected(graph, colluders):
        return sizes, Cut(n - colluders, tuple(range(colluders)), n - 1)
    worst: Cut | None = None
    currents: list[WorstRemoval] | None = None
    for u in range(n):
        cut = smallest_cut_off(graph, u, colluders, min(_CASES, _CASES_IN_ALL // n))
        if cut.coalition is None:
            currents = all_targets(graph, _STRONG, colluders) if currents is None else currents
            cut = Cut(max(cut.size, math.ceil((1 - 1e-9) / currents[u].upper)), None)
        sizes[u] = cut.size
        if cut.coalition is not None and (worst is None or cut.size < worst.size):
            worst = dataclasses.replace(cut, target=u)
        if progress is not None:
            progress(u + 1, n)
    return sizes, worst


@dataclass(frozen=True)
class Cut:
    """At least so many parties stay together with the target; `coalition` leaves exactly that many, if it is known."""

    size: int
    coalition: tuple[int, ...] | None
    target: int = -1


def smallest_cut_off(graph: Graph, target: int, colluders: int, budget: int = _CASES) -> Cut:
    """The smallest connected set with the target that so many parties cut off from the rest, or a bound from below.

    >>> from netdp import graphs
    >>> smallest_cut_off(graphs.ring(9), 0, 2), smallest_cut_off(graphs.complete(5), 0, 3)
    (Cut(size=1, coalition=(1, 8), target=-1), Cut(size=2, coalition=(1, 2, 3), target=-1))
    """
    ceiling = max(1, _reachable(graph, target) - colluders)
    size, spent = 1, 0
    around: dict[int, frozenset[int]] = {}
    while size < ceiling:
        coalition, cases = _cut_of_size(graph, target, colluders, size, budget - spent, around)
        spent += cases
        if coalition is not None:
            return Cut(size, coalition)
        if spent >= budget:
            return Cut(size, None)
        size += 1
    # nobody is cut off: so many fewer are left, whoever they are, as long as they are not in between
    distance = graph.distances(target)
    farthest = sorted((v for v in range(graph.n) if v != target), key=lambda v: (-int(distance[v]), v))
    return Cut(ceiling, tuple(sorted(farthest[:colluders])))


def _reachable(graph: Graph, target: int) -> int:
    part = graph.components()
    return int((part == part[target]).sum())


def _cut_of_size(
    graph: Graph, target: int, colluders: int, size: int, budget: int, around: dict[int, frozenset[int]]
) -> tuple[tuple[int, ...] | None, int]:
    """A coalition that leaves at most `size` parties with the target; how many cases were looked at.

    around  the neighbours of every party that was asked about, to be kept for the next size
    """
    stack = [(frozenset([target]), frozenset[int]())]
    cases = 0
    while stack:
        kept, cutters = stack.pop()
        cases += 1
        if cases > max(budget, 1):
            return None, cases
        for v in kept - around.keys():
            around[v] = frozenset(graph.neighbors(v).tolist())
        border = frozenset().union(*(around[v] for v in kept)) - kept - cutters
        if not border:
            return tuple(sorted(cutters)), cases
        w = min(border)
        if len(kept) < size:
            stack.append((kept | {w}, cutters))
        if len(cutters) < colluders:
            stack.append((kept, cutters | {w}))
    return None, cases


def stays_connected(graph: Graph, removed: int) -> bool:
    """Whether the others stay connected without any so many parties: more disjoint paths than that between any two (Menger).

    It is enough to look at f + 1 parties among themselves and at everybody's paths to them: if O separates somebody, it
    misses one of the f + 1, and all of these that it misses are on one side, or two of them are separated; somebody on
    the other side is then separated from all of them.

    >>> from netdp import graphs
    >>> [stays_connected(graphs.hypercube(3), f) for f in (1, 2, 3)], stays_connected(graphs.complete(6), 4)
    ([True, True, False], True)
    """
    n = graph.n
    if not graph.is_connected or int(graph.degrees.min(initial=n)) <= removed < n - 1:
        return False
    chosen = list(range(removed + 1))
    sources = np.repeat(np.arange(n), graph.degrees)
    # party v is the arc v → v + n of capacity 1, an edge is an arc of many; the last node gathers the chosen
    rows = np.concatenate([np.arange(n), sources + n])
    columns = np.concatenate([np.arange(n) + n, graph.indices])
    room = np.concatenate([np.ones(n), np.full(len(sources), n)]).astype(np.int32)

    def paths(v: int, ends: list[int]) -> int:
        """To one party that is no neighbour; or to different ones of several, each counted once."""
        last = np.asarray(ends) + (n if len(ends) > 1 else 0)
        arcs = (np.append(rows, last), np.append(columns, np.full(len(ends), 2 * n)))
        sizes = np.append(room, np.full(len(ends), n)).astype(np.int32)
        network = sparse.csr_array((sizes, arcs), shape=(2 * n + 1, 2 * n + 1))
        return int(csgraph.maximum_flow(sparse.csr_matrix(network), v + n, 2 * n).flow_value)

    for i, v in enumerate(chosen):
        near = set(graph.neighbors(v).tolist())
        for w in chosen[:i]:
            if w not in near and paths(v, [w]) <= removed:
                return False
    return all(paths(v, chosen) > removed for v in range(removed + 1, n))
