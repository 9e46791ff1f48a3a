"""Which f parties weaken the masks of gossip most: an electrical network and a search that proves its answer.

*Proof: docs/guarantees.md#any-coalition.*

With masks κ on the edges of a graph, observers O who were told **all** first messages would learn about u the factor

    R_O(u) = [(I + κL(G∖O))⁻¹]_uu,

and no observers learn more (`netdp.planning.gossip.certify`). R_O(u) is the resistance between u and the ground in the network
that has a resistor of conductance κ on every edge of G∖O and one of conductance 1 from every party to the ground. Removing parties
raises it; if all neighbours of u are removed it is 1, local DP.

**Theorem (a coalition stops only the current that flows through it).** Send a unit current into u and let t_w be the current that
flows through w. Then R_O(u) ≤ R(u)/(1 − Σ_{w ∈ O} t_w), as long as the sum is below 1.

*Proof.* Current flows from higher to lower potential, so it decomposes into paths from u to the ground with positive weights of
sum 1, along each of which the potential falls from R(u) to 0. Paths that meet O have total weight p ≤ Σ_O t_w. The others are a
flow F′ of strength 1 − p in the network without O, 0 ≤ F′ ≤ F on every resistor. Its energy is Σ r F′² ≤ Σ r F′·F, and rF is the
fall of the potential: the sum is Σ over the paths kept of weight × R(u) = (1 − p)R(u). Divided by its strength F′ is a unit
flow of energy at most R(u)/(1 − p), and the resistance is the least energy of a unit flow (Thomson). ∎

So the f largest currents bound every coalition of size f. The theorem holds again in what is left after some are removed,
which makes a **branch and bound**: a case is a set A of parties that are in O and a set X that are not; its bound is
R_A(u)/(1 − the f − |A| largest currents outside A ∪ X in G∖A); the largest current is put into A in one case and into X
in the other. It may stop at any time: the largest bound of an open case holds for all coalitions, and the best A seen is
a coalition that was found.

**Large graphs.** Above 2,048 parties only those nearest to u are kept: removing the rest raises R, so the bound stays one.

**Computing.** With G = (I + κL)⁻¹ and B the edges (e_x − e_y) of the parties removed, the potentials without them are
Ge_u + GB(I/κ − BᵀGB)⁻¹BᵀGe_u. Nothing rests on how they were found: the rows of the inverse of I + κL(G∖O) are positive
and sum to 1, so potentials are wrong by at most the largest entry of their residual, itself computed up to 4u(d + 4)(1 +
2κd) times the largest potential; that is added to R, and 2κ·degree times it to every current. Smaller masks lose no less
(`netdp.accounting.gossip.exact`), so κ is lowered until 1 + 2κ·(largest degree) ≤ 10⁶.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from netdp.graphs import Graph
from netdp.numerics.arrays import UNIT, FloatArray, Progress

MOST_KEPT, MOST_WHOLE = 256, 2048
"""Parties nearest to the target that are kept, and up to how many parties all are."""
_CONDITION = 1e6
_EFFORT, _SHARE = 12_000, 1_000
"""Networks that are solved in all, and for one target."""


@dataclass(frozen=True)
class Worst:
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
        self.most = float(self.degrees.max(initial=0.0))
        self.masks = min(masks, (_CONDITION - 1.0) / (2.0 * self.most)) if self.most else masks
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
        rounding = 4 * UNIT * (self.most + 4) * (1 + 2 * self.masks * self.most) * float(np.abs(potential).max())
        wrong = float(np.abs(residual).max()) + rounding
        falls = np.where(cut, 0.0, np.maximum(potential[self.ends] - potential[self.sources], 0.0))
        current = np.bincount(self.sources, weights=falls, minlength=n) + 2 * self.degrees * wrong
        current *= self.masks * (1 + 4 * n * UNIT)
        current[gone] = current[target] = 0.0
        return min(float(potential[target]) + wrong, 1.0), current

    def _potential(self, right: FloatArray, cut: Any) -> FloatArray:
        one = int(np.argmax(np.abs(right)))
        start = self.inverse @ right if np.count_nonzero(right) > 1 else self.inverse[:, one] * right[one]
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


def worst_removal(network: Network, target: int, colluders: int, budget: int = _SHARE) -> Worst:
    """Bounds on the largest R_O(target) over all O of so many parties; at most `budget` networks are solved, and a few more.

    >>> from netdp import graphs
    >>> found = worst_removal(Network(graphs.hypercube(4), masks=100.0), target=0, colluders=2)
    >>> round(found.upper, 4), round(found.lower, 4), len(found.coalition)
    (0.077, 0.077, 2)
    >>> worst_removal(Network(graphs.ring(9), 100.0), 4, 2)           # both neighbours: nothing is left to hide among
    Worst(upper=1.0, lower=1.0, coalition=(3, 5))
    """
    neighbours = network.graph.neighbors(target)
    if len(neighbours) <= colluders:
        return Worst(1.0, 1.0, tuple(sorted(int(w) for w in neighbours)))
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
    return Worst(min(upper, 1.0), min(best, 1.0), coalition)


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
) -> list[Worst]:
    """For every target; where all are `alike`, the first stands for all. What is left of the effort goes to the worst of them."""
    count = 1 if alike else graph.n
    whole = Network(graph, masks) if graph.n <= MOST_WHOLE else None

    def one(u: int, budget: int) -> Worst:
        if whole is not None:
            return worst_removal(whole, u, colluders, budget)
        if len(graph.neighbors(u)) <= colluders:
            return Worst(1.0, 1.0, tuple(sorted(int(w) for w in graph.neighbors(u))))
        near = nearest(graph, u, MOST_KEPT)
        found = worst_removal(Network(graph.subgraph(near.tolist()), masks), near.tolist().index(u), colluders, budget)
        return Worst(found.upper, found.lower, tuple(int(near[w]) for w in found.coalition))

    found = []
    for u in range(count):
        found.append(one(u, min(_EFFORT // (2 * count), _SHARE)))
        if progress is not None:
            progress(u + 1, count)
    effort, closed = _EFFORT, set[int]()
    while effort > 0 and len(closed) < count:
        u = int(np.argmax([0.0 if v in closed else worst.upper for v, worst in enumerate(found)]))
        if found[u].upper <= max(worst.lower for worst in found) * (1 + 1e-6):
            break
        found[u] = _tighter(found[u], one(u, min(effort, _SHARE)))
        effort -= _SHARE
        closed.add(u)
    return found * (graph.n if alike else 1)


def _tighter(one: Worst, other: Worst) -> Worst:
    coalition = one.coalition if one.lower >= other.lower else other.coalition
    return Worst(min(one.upper, other.upper), max(one.lower, other.lower), coalition)
