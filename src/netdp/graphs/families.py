"""Graph families with a formula: each states its numbering, its drawing and its Laplacian spectrum.

The spectra of D − A are classical: Brouwer and Haemers, *Spectra of Graphs* (Springer 2012), section 1.4; a
Cartesian product (grid, torus, hypercube) has the sums of its factors' eigenvalues. They are written with
4 sin²(x/2) rather than 2 − 2 cos x, which loses the digits of the small eigenvalues of long rings. The random
families, `erdos_renyi`, `geometric` and `regular`, live in `random_families` and are offered here too.

>>> hypercube(3).laplacian_spectrum()
array([0., 2., 2., 2., 4., 4., 4., 6.])
"""

from __future__ import annotations

from functools import partial
from math import comb, prod

import numpy as np

from netdp.graphs._check import affordable
from netdp.graphs.graph import Graph
from netdp.graphs.random_families import erdos_renyi, geometric, regular
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import whole

__all__ = [
    "complete",
    "erdos_renyi",
    "exponential",
    "geometric",
    "grid",
    "hypercube",
    "path",
    "regular",
    "ring",
    "star",
    "torus",
]


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
