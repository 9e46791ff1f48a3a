"""Graph families: those with a formula (numbering, drawing, Laplacian spectrum), trees and hubs, random graphs, and random links.

Spectra of D − A are in closed form where there is one (docs/proofs/graphs.md#graph-spectra); scale-free graphs have none, and
`graphs.spectrum` computes theirs. Random families give the same graph for the same seed and promise no connected one:
`graph.largest_component()` is the way out. `with_links` lays rings in random order over a graph, so that whatever has to spread or
to mix does so soon; the order comes from SHAKE-256 of a public seed, the same on every machine, and what the links must be is in
docs/proofs/privacy.md#random-links.

>>> hypercube(3).laplacian_spectrum()
array([0., 2., 2., 2., 4., 4., 4., 6.])
"""

from __future__ import annotations

import hashlib
import math
from functools import partial
from math import comb, prod

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import csr
from netdp.graphs.checks import affordable, generator
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import between, whole

#: No graph needs more: after a few rings another one changes little.
MOST_RINGS = 64


def with_links(graph: Graph, rings: int, seed: int) -> Graph:
    """The graph with so many random rings laid over it: at most twice as many further neighbours for everybody.

    Links that are there already are not doubled. Labels and positions stay.

    >>> from netdp.graphs import path
    >>> linked = with_links(path(1000), 1, seed=0)
    >>> linked, int(linked.degrees.max())
    (Graph('path(1000) + 1 random ring (seed 0)', n=1000, m=1998), 4)
    >>> int(path(1000).distances(0).max()), int(linked.distances(0).max())
    (999, 8)
    """
    if not isinstance(graph, Graph):
        raise InvalidValue(
            f"links are laid over a netdp.Graph, got {graph!r}; netdp.graphs.as_graph makes one of others"
        )
    rings, seed = checked(rings, seed)
    if rings == 0:
        return graph
    if graph.n < 3:
        raise InvalidValue(f"a ring goes through at least three parties, and {graph!r} has {graph.n}")
    affordable(graph.m + rings * graph.n, f"{graph.name} with {rings} rings")
    known = graph.edges()
    keys = [known[:, 0] * graph.n + known[:, 1]]
    for ring in range(rings):
        order = random_order(graph.n, "links", seed, ring)
        after = np.roll(order, -1)
        keys.append(np.minimum(order, after) * graph.n + np.maximum(order, after))
    edges = np.column_stack(np.divmod(csr.distinct(np.concatenate(keys)), graph.n))
    said = f"{graph.name} + {rings} random ring{'s' if rings > 1 else ''} (seed {seed})"
    indptr, indices = csr.build(graph.n, edges)
    return Graph._trusted(indptr, indices, said, graph.labels, graph.positions, None)


def random_order(n: int, purpose: str, seed: int, ring: int) -> IntArray:
    """All of n parties in the order of one ring; another `purpose` makes another order of the same seed."""
    stream = hashlib.shake_256(f"netdp {purpose} 1: {n} parties, seed {seed}, ring {ring}".encode())
    keys = np.frombuffer(stream.digest(16 * n), dtype="<u8").reshape(n, 2)
    return np.lexsort((keys[:, 1], keys[:, 0])).astype(np.int64)


def checked(rings: object, seed: object) -> tuple[int, int]:
    """A number of rings and a seed, or a refusal."""
    number = whole("links (how many random rings)", rings, 0, "0 to 64; each gives everybody two more neighbours")
    if number > MOST_RINGS:
        raise InvalidValue(
            f"links={number}: more than {MOST_RINGS} random rings buy nothing; each gives everybody two more neighbours, and after "
            "two or three there is little left to gain"
        )
    return number, whole("the seed of the links", seed, 0, "a whole number ≥ 0")


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


def ring(n: int) -> Graph:
    """The cycle 0 − 1 − … − (n−1) − 0, n ≥ 3, drawn on a circle.

    Laplacian spectrum: 4 sin²(πk/n), k = 0 … n−1.

    >>> ring(4).edges().tolist()
    [[0, 1], [0, 3], [1, 2], [2, 3]]
    """
    n = whole("n", n, 3, "a ring has at least three nodes; path(2) is a single edge")
    affordable(n, f"ring({n})")
    return Graph.from_edges(
        n, _cycle(n), name=f"ring({n})", positions=_circle(n), laplacian_spectrum=partial(_ring_spectrum, n)
    )


def path(n: int) -> Graph:
    """The path 0 − 1 − … − (n−1), drawn on a line.

    Laplacian spectrum: 4 sin²(πk/2n), k = 0 … n−1.

    >>> path(3)
    Graph('path(3)', n=3, m=2)
    """
    n = whole("n", n, 1)
    affordable(n, f"path({n})")
    line = np.column_stack((np.arange(n), np.zeros(n)))
    return Graph.from_edges(
        n, _chain(n), name=f"path({n})", positions=line, laplacian_spectrum=partial(_path_spectrum, n)
    )


def complete(n: int) -> Graph:
    """Every pair of the n nodes is an edge; drawn on a circle.

    Laplacian spectrum: 0 once, n with multiplicity n−1.

    >>> complete(4).m
    6
    """
    n = whole("n", n, 1)
    affordable(n * (n - 1) / 2, f"complete({n})")
    return Graph.from_edges(
        n,
        np.column_stack(np.triu_indices(n, 1)),
        name=f"complete({n})",
        positions=_circle(n),
        laplacian_spectrum=partial(_complete_spectrum, n),
    )


def star(n: int) -> Graph:
    """Node 0 in the centre, joined to each of the nodes 1 … n−1; n counts them all.

    Laplacian spectrum: 0, 1 with multiplicity n−2, n.

    >>> star(5).degrees
    array([4, 1, 1, 1, 1])
    """
    n = whole("n", n, 2, "a star has a centre and at least one leaf")
    affordable(n, f"star({n})")
    leaves = np.arange(1, n)
    return Graph.from_edges(
        n,
        np.column_stack((np.zeros(n - 1, dtype=np.int64), leaves)),
        name=f"star({n})",
        positions=np.vstack((np.zeros((1, 2)), _circle(n - 1))),
        laplacian_spectrum=partial(_star_spectrum, n),
    )


def grid(rows: int, cols: int) -> Graph:
    """The rows × cols lattice; node r·cols + c stands in row r, column c. `grid(1, k)` is a path.

    Laplacian spectrum: the sums 4 sin²(πi/2rows) + 4 sin²(πj/2cols).

    >>> grid(2, 3).neighbors(1)
    array([0, 2, 4], dtype=int32)
    """
    rows, cols = whole("rows", rows, 1), whole("cols", cols, 1)
    affordable(2 * rows * cols, f"grid({rows}, {cols})")
    return Graph.from_edges(
        rows * cols,
        _product(rows, cols, _chain(rows), _chain(cols)),
        name=f"grid({rows}, {cols})",
        positions=_lattice(rows, cols),
        laplacian_spectrum=partial(_grid_spectrum, rows, cols),
    )


def torus(rows: int, cols: int, *more: int) -> Graph:
    """The grid with opposite sides joined, in two or more dimensions: 2D-regular for D sides; node r·cols + c in row r, column c.

    With more sides the last one runs fastest, as in `numpy.ravel_multi_index`. All sides are at least 3: with a side of 2 an edge
    would be there twice. `ring(n)` is the torus of one dimension. Drawn as a lattice, further dimensions slanted.
    Laplacian spectrum: the sums 4 sin²(πi/rows) + 4 sin²(πj/cols) + ….

    >>> torus(3, 4).neighbors(0)
    array([1, 3, 4, 8], dtype=int32)
    >>> torus(4, 4, 4)
    Graph('torus(4, 4, 4)', n=64, m=192)
    """
    hint = "a shorter side would double its edges; grid(rows, cols) has no wrapping"
    names = ["rows", "cols", *(f"side {i}" for i in range(3, 3 + len(more)))]
    sides = tuple(whole(name, side, 3, hint) for name, side in zip(names, (rows, cols, *more), strict=True))
    n = prod(sides)
    name = f"torus({', '.join(map(str, sides))})"
    affordable(len(sides) * n, name)
    places = np.stack(np.unravel_index(np.arange(n), sides))
    edges = []
    for axis, side in enumerate(sides):
        following = places.copy()
        following[axis] = (following[axis] + 1) % side
        edges.append(np.column_stack((np.arange(n), np.ravel_multi_index(tuple(following), sides))))
    return Graph.from_edges(
        n,
        np.concatenate(edges),
        name=name,
        positions=_lattice(rows, cols) if len(sides) == 2 else _slanted(places, sides),
        laplacian_spectrum=partial(_torus_spectrum, *sides),
    )


def exponential(n: int) -> Graph:
    """Node i is joined to i ± 1, 2, 4, 8, … (all powers of two below n) modulo n; drawn on a circle.

    About 2·log₂ n neighbours and a diameter of at most log₂ n: the static exponential graph of Ying et al. (NeurIPS 2021), with
    links in both directions. (Muffliato's "exponential graph" is `hypercube`, which its experiments draw.) A circulant graph;
    Laplacian spectrum: Σ over the distances s of 4 sin²(πks/n), half of that for s = n/2.

    >>> exponential(16).neighbors(0)
    array([ 1,  2,  4,  8, 12, 14, 15], dtype=int32)
    """
    n = whole("n", n, 2, "an exponential graph joins at least two nodes")
    steps = _powers(n)
    affordable(n * len(steps), f"exponential({n})")
    nodes = np.arange(n, dtype=np.int64)
    ends = [np.column_stack((nodes, (nodes + s) % n))[: n // 2 if 2 * s == n else n] for s in steps]
    return Graph.from_edges(
        n,
        np.concatenate(ends),
        name=f"exponential({n})",
        positions=_circle(n),
        laplacian_spectrum=partial(_exponential_spectrum, n),
    )


def hypercube(dimension: int) -> Graph:
    """The 2^dimension words of bits, joined when they differ in one; node i is the word of i in binary.

    Laplacian spectrum: 2k with multiplicity C(dimension, k), k = 0 … dimension.

    >>> hypercube(8)
    Graph('hypercube(8)', n=256, m=1024)
    """
    d = whole("dimension", dimension, 1)
    affordable(d * 2.0 ** min(d - 1, 1000), f"hypercube({d})")
    low = np.arange(2**d, dtype=np.int64)
    edges = [np.column_stack((u, u | bit)) for bit in (1 << np.arange(d)) for u in (low[low & bit == 0],)]
    # A projection along d directions spread over a half circle, so that node 0 is at one end and its antipode at the other;
    # lengths that differ by factors of 1.4 keep nodes apart (of the rules tried, nearly the farthest for 3 to 9 dimensions).
    angles, lengths = np.pi * (np.arange(d) + 0.5) / d, 1.4 ** (np.arange(d) % 4)
    arms = lengths[:, None] * np.column_stack((np.cos(angles), np.sin(angles)))
    bits = ((low[:, None] >> np.arange(d)) & 1).astype(np.float64)
    return Graph.from_edges(
        2**d,
        np.concatenate(edges),
        name=f"hypercube({d})",
        positions=bits @ arms,
        laplacian_spectrum=partial(_hypercube_spectrum, d),
    )


# ── edges and drawings ────────────────────────────────────────────────────────────────────────────────────


def _chain(n: int) -> IntArray:
    nodes = np.arange(n, dtype=np.int64)
    return np.column_stack((nodes[:-1], nodes[1:]))


def _cycle(n: int) -> IntArray:
    nodes = np.arange(n, dtype=np.int64)
    return np.column_stack((nodes, (nodes + 1) % n))


def _product(rows: int, cols: int, vertical: IntArray, horizontal: IntArray) -> IntArray:
    """Edges of the Cartesian product, row-major: `vertical` in every column, `horizontal` in every row."""
    down = vertical[:, None, :] * cols + np.arange(cols)[None, :, None]
    across = horizontal[:, None, :] + (np.arange(rows) * cols)[None, :, None]
    return np.concatenate((down.reshape(-1, 2), across.reshape(-1, 2)))


def _circle(n: int) -> FloatArray:
    angles = 2 * np.pi * np.arange(n) / n
    return np.column_stack((np.sin(angles), np.cos(angles)))  # clockwise from the top


def _lattice(rows: int, cols: int) -> FloatArray:
    row, col = np.divmod(np.arange(rows * cols), cols)
    return np.column_stack((col, -row)).astype(np.float64)  # row 0 on top


def _slanted(places: IntArray, sides: tuple[int, ...]) -> FloatArray:
    """Every dimension in its own direction, so that no two nodes fall on one another."""
    drawn = np.zeros((places.shape[1], 2))
    for axis, side in enumerate(sides):
        angle = np.pi * (axis + 0.5) / len(sides)
        length = 1.0 / (1 + 0.37 * axis) / np.sqrt(side + 0.1 * axis)
        drawn += length * np.outer(places[axis], [np.cos(angle), np.sin(angle)])
    return drawn


def _powers(n: int) -> list[int]:
    """The distances 1, 2, 4, … around a circle of n, each once."""
    return sorted({min(s, n - s) for s in (2**k for k in range((n - 1).bit_length())) if s < n})


# ── spectra (module-level, so that a Graph can be pickled) ────────────────────────────────────────────────


def _ring_spectrum(n: int) -> FloatArray:
    return np.sort(4 * np.sin(np.pi * np.arange(n) / n) ** 2)


def _path_spectrum(n: int) -> FloatArray:
    return np.asarray(4 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2)


def _complete_spectrum(n: int) -> FloatArray:
    return np.concatenate(([0.0], np.full(n - 1, float(n))))


def _star_spectrum(n: int) -> FloatArray:
    return np.concatenate(([0.0], np.ones(n - 2), [float(n)]))


def _grid_spectrum(rows: int, cols: int) -> FloatArray:
    return np.sort(np.add.outer(_path_spectrum(rows), _path_spectrum(cols)), axis=None)


def _torus_spectrum(*sides: int) -> FloatArray:
    sums = np.zeros(1)
    for side in sides:
        sums = np.add.outer(sums, _ring_spectrum(side)).ravel()
    return np.sort(sums)


def _exponential_spectrum(n: int) -> FloatArray:
    waves = np.arange(n)
    # k·s is reduced modulo n first: a large multiple of π would lose its digits
    parts = [(0.5 if 2 * s == n else 1.0) * 4 * np.sin(np.pi * (waves * s % n) / n) ** 2 for s in _powers(n)]
    return np.sort(np.sum(parts, axis=0))


def _hypercube_spectrum(d: int) -> FloatArray:
    return np.repeat(2.0 * np.arange(d + 1), [comb(d, k) for k in range(d + 1)])


def balanced_tree(branching: int, depth: int) -> Graph:
    """Every node but the leaves has `branching` children, and all leaves lie `depth` levels below the root.

    The root is node 0, the children of v are b·v + 1 … b·v + b; drawn level by level. Laplacian spectrum:
    docs/proofs/graphs.md#graph-spectra.

    >>> balanced_tree(2, 3)
    Graph('balanced_tree(2, 3)', n=15, m=14)
    >>> balanced_tree(3, 1).laplacian_spectrum().round(12).tolist()      # a star with three leaves
    [0.0, 1.0, 1.0, 4.0]
    """
    b = whole("branching", branching, 1, "a node without children is a leaf")
    h = whole("depth", depth, 0)
    name = f"balanced_tree({b}, {h})"
    affordable(float("inf") if h * np.log2(b) > 60 else tree_size(b, h), name)
    n = tree_size(b, h)
    children = np.arange(1, n, dtype=np.int64)
    return Graph.from_edges(
        n,
        np.column_stack(((children - 1) // b, children)),
        name=name,
        positions=_levels(b, h),
        laplacian_spectrum=partial(_tree_spectrum, b, h),
    )


def tree_size(branching: int, depth: int) -> int:
    """How many nodes `balanced_tree` has: 1 + b + b² + … + b^depth.

    >>> tree_size(2, 3), tree_size(1, 4)
    (15, 5)
    """
    return depth + 1 if branching == 1 else (branching ** (depth + 1) - 1) // (branching - 1)


def _levels(b: int, h: int) -> FloatArray:
    """Leaves side by side, every other node above the middle of its children."""
    widths = b ** np.arange(h, -1, -1, dtype=np.float64)  # of the subtree below a node of each level
    rows = [
        np.column_stack(((np.arange(b**level) + 0.5) * widths[level], np.full(b**level, -level)))
        for level in range(h + 1)
    ]
    return np.vstack(rows).astype(np.float64)


def _tree_spectrum(b: int, h: int) -> FloatArray:
    if b == 1:  # a path
        return np.asarray(4 * np.sin(np.pi * np.arange(h + 1) / (2 * (h + 1))) ** 2)
    parts = [_levels_spectrum(b, h + 1, root=True)]
    parts += [np.repeat(_levels_spectrum(b, k, root=False), (b - 1) * b ** (h - k)) for k in range(1, h + 1)]
    return np.sort(np.concatenate(parts))


def _levels_spectrum(b: int, levels: int, *, root: bool) -> FloatArray:
    """Squares of the singular values of B; with the root one of them is exactly 0."""
    square = np.eye(levels) - np.diag(np.full(levels - 1, np.sqrt(float(b))), -1)
    if not root:
        return np.asarray(np.linalg.svd(square, compute_uv=False) ** 2)
    if levels == 1:
        return np.zeros(1)
    return np.append(np.linalg.svd(square[:, :-1], compute_uv=False) ** 2, 0.0)


def random_tree(n: int, seed: Seed) -> Graph:
    """One of the n^(n−2) trees on n numbered nodes, all equally likely (Prüfer 1918).

    >>> random_tree(10, seed=0).m
    9
    """
    n = whole("n", n, 1)
    name = f"random_tree({n})"
    affordable(n, name)
    code = generator(seed).integers(n, size=max(0, n - 2))
    return Graph.from_edges(n, _from_code(n, code), name=name)


def _from_code(n: int, code: IntArray) -> IntArray:
    """The tree of a Prüfer code: the smallest leaf is joined to the next number of the code, and taken away.

    >>> _from_code(5, np.array([3, 3, 4])).tolist()
    [[0, 3], [1, 3], [2, 4], [3, 4]]
    """
    if n < 2:
        return np.empty((0, 2), dtype=np.int64)
    degree = (np.bincount(code, minlength=n) + 1).tolist()
    place = leaf = degree.index(1)
    edges = []
    for joined in code.tolist():
        edges.append((leaf, joined))
        degree[joined] -= 1
        if degree[joined] == 1 and joined < place:
            leaf = joined
        else:
            place = leaf = degree.index(1, place + 1)
    edges.append((leaf, n - 1))
    return np.sort(np.array(edges, dtype=np.int64), axis=1)


def barabasi_albert(n: int, m: int, seed: Seed) -> Graph:
    """A scale-free graph: nodes come one by one and each joins m others, drawn in proportion to their degrees.

    It starts with a star of m + 1 nodes, 0 in the middle; a newcomer draws until it has m different neighbours (Barabási and
    Albert 1999). Always connected; the share of nodes of degree k falls like k⁻³, and a few old nodes become hubs of degree
    about m√n. m = 1 gives a tree.

    >>> g = barabasi_albert(1000, 2, seed=0)
    >>> g.m, bool(g.degrees.max() > 10 * g.degrees.mean()), g.is_connected
    (1996, True, True)
    """
    m = whole("m", m, 1, "without edges nobody can talk")
    n = whole("n", n, m + 1, f"each newcomer joins {m} others")
    name = f"barabasi_albert({n}, {m})"
    affordable(n * m, name)
    rng = generator(seed)
    ends = np.empty(2 * m * (n - m), dtype=np.int64)  # both ends of every edge: a uniform entry is drawn by degree
    ends[0 : 2 * m : 2], ends[1 : 2 * m : 2] = 0, np.arange(1, m + 1)
    held = 2 * m
    for newcomer in range(m + 1, n):
        chosen: list[int] = []
        while len(chosen) < m:
            drawn = int(ends[rng.integers(held)])
            if drawn not in chosen:
                chosen.append(drawn)
        ends[held : held + 2 * m : 2], ends[held + 1 : held + 2 * m : 2] = chosen, newcomer
        held += 2 * m
    return Graph.from_edges(n, ends.reshape(-1, 2), name=name)
