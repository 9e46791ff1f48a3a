"""Families in which parties are not alike: trees, and scale-free graphs with their hubs.

**The spectrum of a balanced tree.** Let b be its branching and h its depth. Laplacian eigenvectors are of two kinds. One kind
depends on the level only: a tridiagonal matrix of h + 1 levels, from the leaves to the root. The other lives below one node:
equal on each level of each of the b subtrees of its children, with factors that add up to 0 over the subtrees, and 0
elsewhere. If these subtrees have k levels, k = 1 … h, that is a tridiagonal matrix of k levels, b^(h−k) nodes stand above such
subtrees, and each has b − 1 independent choices of factors. All are counted: Σ_k k(b−1)b^(h−k) + h + 1 = n.

Scaled by the root of the level sizes, both are symmetric with off-diagonal −√b and diagonal 1 (leaves), b + 1 (inner
levels), b (root). Elimination from the leaves leaves pivots 1, 1, …, 1 (b + 1 − b/1 = 1 again and again), and 0 at the root:
the matrix is B·Bᵀ with B bidiagonal, 1 on the diagonal and −√b below it, the last 1 left out at the root. So eigenvalues are
squares of singular values of B, which keeps the digits of the small ones (about b^−h).

**Scale-free graphs** have no spectrum in closed form; `graphs.spectrum` computes it.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from netdp.graphs._check import affordable, generator
from netdp.graphs.graph import Graph
from netdp.graphs.random_families import Seed
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import whole


def balanced_tree(branching: int, depth: int) -> Graph:
    """Every node but the leaves has `branching` children, and all leaves lie `depth` levels below the root.

    The root is node 0, the children of v are b·v + 1 … b·v + b; drawn level by level. Laplacian spectrum: see above.

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
