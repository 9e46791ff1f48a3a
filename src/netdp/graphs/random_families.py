"""Random graph families; the same seed gives the same graph.

None of them promises a connected graph: a protocol that needs one asks for it, and
`graph.largest_component()` is the way out.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs._check import affordable, generator
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import IntArray
from netdp.numerics.checks import between, whole

Seed = int | np.random.Generator | np.random.SeedSequence | None


def erdos_renyi(n: int, p: float, seed: Seed) -> Graph:
    """Each of the n(n−1)/2 pairs is an edge with probability p, independently (Gilbert 1959).

    Sampled exactly in time and memory O(n + m): the number of edges is Binomial(n(n−1)/2, p), and given the
    number every set of that many pairs is equally likely. Connected with high probability when
    p ≥ c ln(n)/n with c > 1 (Erdős and Rényi 1960).

    >>> erdos_renyi(100, 0.1, seed=0)
    Graph('erdos_renyi(100, 0.1)', n=100, m=...)
    """
    n, p = whole("n", n, 1), between("p", p, 0.0, 1.0)
    pairs = n * (n - 1) // 2
    name = f"erdos_renyi({n}, {p:g})"
    affordable(pairs * p, name)
    rng = generator(seed)
    count = int(rng.binomial(pairs, p))
    # numpy draws without replacement by Floyd's algorithm when few of many are wanted: O(count) memory
    chosen = rng.choice(pairs, count, replace=False, shuffle=False) if count else np.empty(0, dtype=np.int64)
    return Graph.from_edges(n, _pairs(chosen.astype(np.int64)), name=name)


def _pairs(numbers: IntArray) -> IntArray:
    """The pair u < v that stands at number v(v−1)/2 + u.

    >>> _pairs(np.arange(4)).tolist()
    [[0, 1], [0, 2], [1, 2], [0, 3]]
    """
    v = ((1 + np.sqrt(1 + 8 * numbers.astype(np.float64))) / 2).astype(np.int64)
    # the square root of a number near 2⁶³ may be off by one in either direction
    v -= v * (v - 1) // 2 > numbers
    v += v * (v + 1) // 2 <= numbers
    return np.column_stack((numbers - v * (v - 1) // 2, v))


def geometric(n: int, radius: float, seed: Seed) -> Graph:
    """n uniform points of the unit square, joined when at most `radius` apart (Gilbert 1961).

    The points are the graph's positions. Connected with high probability when πr² ≥ c ln(n)/n with c > 1
    (Penrose 1997).

    >>> geometric(100, 0.2, seed=0).positions.shape
    (100, 2)
    """
    from scipy.spatial import cKDTree

    n, radius = whole("n", n, 1), between("radius", radius, 0.0, math.inf, open_low=True)
    name = f"geometric({n}, {radius:g})"
    # a guess at the number of edges; the half allows for discs that stick out of the square
    affordable(n * (n - 1) / 2 * min(1.0, math.pi * radius**2) / 2, name)
    points = generator(seed).random((n, 2))
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
    return Graph.from_edges(n, pairs.astype(np.int64), name=name, positions=points)


def regular(n: int, degree: int, seed: Seed) -> Graph:
    """A random graph in which every node has exactly `degree` neighbours.

    Stubs are paired at random (Bollobás 1980); the few self-loops and repeated edges, about (degree²−1)/4
    whatever n, are then repaired by random switches {a, b}, {c, d} → {a, d}, {c, b} that are made only if
    both new edges are new. The result is simple and exactly regular; its law is close to, but not exactly,
    uniform over such graphs (compare McKay and Wormald 1990, whose switchings are exactly uniform). For
    2·degree ≥ n the complement of a sparser one is taken, which keeps the law.
    Connected with high probability when degree ≥ 3.

    >>> set(regular(50, 4, seed=0).degrees.tolist())
    {4}
    """
    n, degree = whole("n", n, 2), whole("degree", degree, 1, "without edges nobody can talk")
    if degree >= n:
        raise InvalidValue(f"degree must be less than n = {n}, got {degree}: a node has only n − 1 others")
    if n * degree % 2:
        raise InvalidValue(
            f"n·degree must be even (each edge has two ends), but {n}·{degree} = {n * degree}; change either by one"
        )
    name = f"regular({n}, {degree})"
    affordable(n * degree / 2, name)
    rng = generator(seed)
    sparse = min(degree, n - 1 - degree)
    keys = _regular_keys(n, sparse, rng) if sparse else np.empty(0, dtype=np.int64)
    if sparse != degree:
        u, v = np.triu_indices(n, 1)
        every = u.astype(np.int64) * n + v
        keys = every[~_member(every, keys)] if keys.size else every
    return Graph.from_edges(n, np.column_stack(np.divmod(keys, n)), name=name)


def _regular_keys(n: int, degree: int, rng: np.random.Generator) -> IntArray:
    """Sorted keys u·n + v, u < v, of a regular graph with degree < n/2."""
    stubs = np.repeat(np.arange(n, dtype=np.int64), degree)
    # Switches favour some small graphs visibly (6 nodes of degree 2: one hexagon 93 % instead of 86 %), and a
    # pairing that happens to be simple is exactly uniform: so small graphs first wait for one.
    for _ in range(200 if stubs.size <= 2000 else 0):
        _, keys, bad = _find_bad(rng.permutation(stubs).reshape(-1, 2), n)
        if bad.size == 0:
            return keys
    for _ in range(200):
        ends = rng.permutation(stubs).reshape(-1, 2)
        idle = 0
        while idle < 50:
            order, keys, bad = _find_bad(ends, n)
            if bad.size == 0:
                return keys
            idle = 0 if _switch(ends, n, keys, order[bad], rng) else idle + 1
        # a small graph may have no switch left: pair the stubs anew
    raise Unsupported(f"no simple {degree}-regular graph on {n} nodes was found; try another seed")


def _keys(a: IntArray, b: IntArray, n: int) -> IntArray:
    return np.minimum(a, b) * n + np.maximum(a, b)


def _member(values: IntArray, ordered: IntArray) -> npt.NDArray[np.bool_]:
    place = np.minimum(np.searchsorted(ordered, values), ordered.size - 1)
    return np.asarray(ordered[place] == values)


def _find_bad(ends: IntArray, n: int) -> tuple[IntArray, IntArray, IntArray]:
    """Edges in the order of their keys, the sorted keys, and the places of loops and second copies."""
    keys = _keys(ends[:, 0], ends[:, 1], n)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    wrong = keys // n == keys % n
    wrong[1:] |= keys[1:] == keys[:-1]
    return order, keys, np.flatnonzero(wrong)


def _switch(ends: IntArray, n: int, present: IntArray, bad: IntArray, rng: np.random.Generator) -> int:
    """Try one random switch for every bad edge, in place; return how many were made.

    Switches made together must not interfere: each takes another partner, none a bad one, and no new edge
    is proposed twice. So every switch removes one bad edge and makes none.
    """
    partner = rng.integers(0, ends.shape[0], size=bad.size)
    turned = rng.integers(0, 2, size=bad.size)
    a, b = ends[bad].T
    c, d = ends[partner, turned], ends[partner, 1 - turned]
    first, second = _keys(a, d, n), _keys(c, b, n)
    good = (a != d) & (c != b) & ~_member(first, present) & ~_member(second, present)
    good &= ~_member(partner, np.sort(bad))
    good &= _first_seen(partner)
    proposals = np.concatenate((first, second))
    proposals[np.tile(~good, 2)] = -1 - np.arange(np.count_nonzero(~good) * 2)  # out of the way, all different
    fresh = _first_seen(proposals)
    good &= fresh[: bad.size] & fresh[bad.size :]
    ends[bad[good]] = np.column_stack((a, d))[good]
    ends[partner[good]] = np.column_stack((c, b))[good]
    return int(np.count_nonzero(good))


def _first_seen(values: IntArray) -> npt.NDArray[np.bool_]:
    """Whether each value has not occurred before."""
    order = np.argsort(values, kind="stable")
    again = np.zeros(values.size, dtype=bool)
    again[order[1:]] = values[order[1:]] == values[order[:-1]]
    return ~again
