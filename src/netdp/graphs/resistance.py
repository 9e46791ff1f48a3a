"""Which f parties weaken the masks of gossip most: an electrical network, and a search that proves its answer.

With masks κ on the edges, observers O who were told all first messages would learn about u the factor
R_O(u) = [(I + κL(G∖O))⁻¹]_uu, the resistance between u and the ground if every edge of G∖O has conductance κ and every party is
grounded by a conductance of 1. A coalition stops only the current that flows through it: R_O(u) ≤ R(u)/(1 − Σ_{w ∈ O} t_w). That
bound drives a branch and bound, which may stop at any time. Proof, search and rounding: docs/proofs/coalitions.md#any-coalition.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from netdp.graphs.graph import Graph
from netdp.numerics.arrays import UNIT, FloatArray, Progress

MOST_KEPT, MOST_WHOLE = 256, 2048
"""Parties nearest to the target that are kept, and up to how many parties all are."""

_CONDITION = 1e6

_EFFORT, _SHARE = 12_000, 1_000
"""Networks that are solved in all, and for one target."""


@dataclass(frozen=True)
class WorstRemoval:
    """R_O(u) of the worst f parties: at most `upper`, at least `lower`, which `coalition` attains among those kept."""

    upper: float
    lower: float
    coalition: tuple[int, ...]


@dataclass(frozen=True, order=True)
class _Case:
    """−bound first: the largest is looked at first."""

    key: float
    number: int
    inside: tuple[int, ...]
    outside: frozenset[int]


class Network:
    """A graph with masks of strength κ on its edges; `solve` finds the potentials without some of its parties."""

    def __init__(self, graph: Graph, masks: float) -> None:
        self.graph = graph
        self.degrees = graph.degrees.astype(np.float64)
        self.largest_degree = float(self.degrees.max(initial=0.0))
        self.masks = min(masks, (_CONDITION - 1.0) / (2.0 * self.largest_degree)) if self.largest_degree else masks
        self.sources = np.repeat(np.arange(graph.n), graph.degrees)
        self.ends = graph.indices
        matrix = np.zeros((graph.n, graph.n))
        matrix[self.sources, self.ends] = -self.masks
        matrix[np.diag_indices(graph.n)] = 1.0 + self.masks * self.degrees
        factor = linalg.cholesky(matrix, lower=True, check_finite=False, overwrite_a=True)
        half, _ = linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)
        self.inverse: FloatArray = np.tril(half) + np.tril(half, -1).T

    def solve(self, target: int, removed: tuple[int, ...]) -> tuple[float, FloatArray]:
        """R(target) and the currents through all parties (0 at the target and at those removed), upper ends."""
        n = self.graph.n
        gone = np.zeros(n, dtype=bool)
        gone[list(removed)] = True
        cut = gone[self.sources] | gone[self.ends]
        unit = np.zeros(n)
        unit[target] = 1.0
        potential = self._potential(unit, cut)
        residual = unit - self._times(potential, cut)
        potential = potential + self._potential(residual, cut)  # one step of refinement
        potential[gone] = 0.0
        residual = unit - self._times(potential, cut)
        d = self.largest_degree
        rounding = 4 * UNIT * (d + 4) * (1 + 2 * self.masks * d) * float(np.abs(potential).max())
        wrong = float(np.abs(residual).max()) + rounding
        falls = np.where(cut, 0.0, np.maximum(potential[self.ends] - potential[self.sources], 0.0))
        current = np.bincount(self.sources, weights=falls, minlength=n) + 2 * self.degrees * wrong
        current *= self.masks * (1 + 4 * n * UNIT)
        current[gone] = current[target] = 0.0
        return min(float(potential[target]) + wrong, 1.0), current

    def _potential(self, right: FloatArray, cut: Any) -> FloatArray:
        place = int(np.argmax(np.abs(right)))
        start = self.inverse @ right if np.count_nonzero(right) > 1 else self.inverse[:, place] * right[place]
        once = np.flatnonzero(cut & (self.sources < self.ends))
        if not len(once):
            return np.asarray(start)
        x, y = self.sources[once], self.ends[once]
        pushed = self.inverse[:, x] - self.inverse[:, y]  # G B
        small = np.eye(len(once)) / self.masks - (pushed[x] - pushed[y])
        return np.asarray(start + pushed @ np.linalg.lstsq(small, start[x] - start[y], rcond=None)[0])

    def _times(self, potential: FloatArray, cut: Any) -> FloatArray:
        """(I + κL without the edges cut) × potential."""
        falls = np.where(cut, 0.0, potential[self.sources] - potential[self.ends])
        return np.asarray(potential + self.masks * np.bincount(self.sources, weights=falls, minlength=len(potential)))


def nearest(graph: Graph, target: int, most: int) -> Any:
    """The parties closest to the target, in increasing order of their number."""
    if graph.n <= most:
        return np.arange(graph.n)
    seen = {target: None}
    frontier = [target]
    while frontier and len(seen) < most:
        following: list[int] = []
        for v in frontier:
            for w in graph.neighbors(v).tolist():
                if w not in seen and len(seen) < most:
                    seen[w] = None
                    following.append(w)
        frontier = following
    return np.asarray(sorted(seen))


def worst_removal(network: Network, target: int, colluders: int, budget: int = _SHARE) -> WorstRemoval:
    """Bounds on the largest R_O(target) over all O of so many parties; at most `budget` networks are solved, and a few more.

    >>> from netdp import graphs
    >>> found = worst_removal(Network(graphs.hypercube(4), masks=100.0), target=0, colluders=2)
    >>> round(found.upper, 4), round(found.lower, 4), len(found.coalition)
    (0.077, 0.077, 2)
    >>> worst_removal(Network(graphs.ring(9), 100.0), 4, 2)           # both neighbours: nothing is left to hide among
    WorstRemoval(upper=1.0, lower=1.0, coalition=(3, 5))
    """
    neighbours = network.graph.neighbors(target)
    if len(neighbours) <= colluders:
        return WorstRemoval(1.0, 1.0, tuple(sorted(int(w) for w in neighbours)))
    resistance, current = network.solve(target, ())
    coalition, best = _greedy(network, target, current, colluders)
    cases = [_Case(-_bound(resistance, current, (), colluders), 0, (), frozenset())]
    solved: dict[tuple[int, ...], tuple[float, FloatArray]] = {(): (resistance, current)}
    number = 0
    while cases and budget > 0 and -cases[0].key > best * (1 + 1e-9):
        case = heapq.heappop(cases)
        resistance, current = solved[case.inside]
        free = current.copy()
        free[[*case.inside, *case.outside]] = 0.0
        chosen = int(np.argmax(free))
        if free[chosen] == 0.0:  # nobody else is in the way of any current: the case is its own bound
            best, coalition = max((best, coalition), (resistance, case.inside))
            continue
        inside = tuple(sorted((*case.inside, chosen)))
        if inside not in solved:
            solved[inside] = network.solve(target, inside)
            budget -= 1
        again, flow = solved[inside]
        if again > best:
            best, coalition = again, inside
        if len(inside) < colluders:
            number += 1
            bound = _bound(again, flow, (*inside, *case.outside), colluders - len(inside))
            heapq.heappush(cases, _Case(max(case.key, -bound), number, inside, case.outside))
        outside = case.outside | {chosen}
        number += 1
        bound = _bound(resistance, current, (*case.inside, *outside), colluders - len(case.inside))
        heapq.heappush(cases, _Case(max(case.key, -bound), number, case.inside, outside))
    upper = max([best, *(-case.key for case in cases[:1])])
    return WorstRemoval(min(upper, 1.0), min(best, 1.0), coalition)


def _bound(resistance: float, current: FloatArray, fixed: tuple[int, ...], left: int) -> float:
    """R/(1 − the largest `left` currents of parties that are not fixed), never above 1."""
    free = current.copy()
    free[list(fixed)] = 0.0
    stopped = float(np.sort(free)[-left:].sum()) if left else 0.0
    return min(resistance / (1.0 - stopped), 1.0) if stopped < 1.0 else 1.0


def _greedy(network: Network, target: int, current: FloatArray, colluders: int) -> tuple[tuple[int, ...], float]:
    """The largest current, then the largest of what is left, and so on."""
    chosen: tuple[int, ...] = ()
    resistance = 0.0
    while len(chosen) < colluders and current.any():
        chosen = (*chosen, int(np.argmax(current)))
        resistance, current = network.solve(target, chosen)
    return tuple(sorted(chosen)), resistance


def all_targets(
    graph: Graph, masks: float, colluders: int, *, alike: bool = False, progress: Progress | None = None
) -> list[WorstRemoval]:
    """For every target; where all are `alike`, the first stands for all. What is left of the effort goes to the worst of them."""
    count = 1 if alike else graph.n
    whole = Network(graph, masks) if graph.n <= MOST_WHOLE else None

    def search(u: int, budget: int) -> WorstRemoval:
        if whole is not None:
            return worst_removal(whole, u, colluders, budget)
        if len(graph.neighbors(u)) <= colluders:
            return WorstRemoval(1.0, 1.0, tuple(sorted(int(w) for w in graph.neighbors(u))))
        near = nearest(graph, u, MOST_KEPT)
        inside = worst_removal(Network(graph.subgraph(near.tolist()), masks), near.tolist().index(u), colluders, budget)
        return WorstRemoval(inside.upper, inside.lower, tuple(int(near[w]) for w in inside.coalition))

    results = []
    for u in range(count):
        results.append(search(u, min(_EFFORT // (2 * count), _SHARE)))
        if progress is not None:
            progress(u + 1, count)
    effort, closed = _EFFORT, set[int]()
    while effort > 0 and len(closed) < count:
        u = int(np.argmax([0.0 if v in closed else worst.upper for v, worst in enumerate(results)]))
        if results[u].upper <= max(worst.lower for worst in results) * (1 + 1e-6):
            break
        results[u] = _tighter(results[u], search(u, min(effort, _SHARE)))
        effort -= _SHARE
        closed.add(u)
    return results * (graph.n if alike else 1)


def _tighter(one: WorstRemoval, other: WorstRemoval) -> WorstRemoval:
    coalition = one.coalition if one.lower >= other.lower else other.coalition
    return WorstRemoval(min(one.upper, other.upper), max(one.lower, other.lower), coalition)
