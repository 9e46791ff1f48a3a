"""Trees and scale-free graphs: numbering, spectra against dense ones, laws of the draws.

Proof: docs/proofs/graphs.md#graph-spectra.
"""

from __future__ import annotations

import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chisquare

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.graphs.families import _from_code, tree_size

TREES = [(1, 0), (1, 1), (1, 5), (2, 0), (2, 1), (2, 2), (2, 5), (3, 1), (3, 3), (5, 2), (7, 1)]


@pytest.mark.parametrize(("branching", "depth"), TREES)
def test_a_balanced_tree_and_its_spectrum(branching: int, depth: int) -> None:
    g = graphs.balanced_tree(branching, depth)
    assert g == graphs.from_networkx(nx.balanced_tree(branching, depth))
    assert g.n == tree_size(branching, depth)
    stated = g.laplacian_spectrum()
    np.testing.assert_allclose(stated, np.linalg.eigvalsh(g.laplacian().toarray()), atol=1e-12)
    assert stated[0] == 0
    assert (np.diff(stated) >= 0).all()
    assert len({tuple(point) for point in g.positions.round(9).tolist()}) == g.n, "nodes drawn on one another"


def test_stars_and_paths_are_trees() -> None:
    assert graphs.balanced_tree(4, 1) == graphs.star(5)
    assert graphs.balanced_tree(1, 6) == graphs.path(7)


def test_the_small_eigenvalues_of_a_deep_tree_keep_their_digits() -> None:
    """n·λ₂ → a constant; λ₂ of a binary tree by its characteristic equation, solved to 30 digits."""
    from mpmath import mp

    depth = 16
    with mp.workdps(40):
        matrix = mp.zeros(depth)  # below one child of the root, the other taken away from it
        for k in range(depth):
            matrix[k, k] = mp.mpf(1 if k == 0 else 3)
            if k:
                matrix[k, k - 1] = matrix[k - 1, k] = -mp.sqrt(2)
        smallest = min(mp.eigsy(matrix, eigvals_only=True))
    stated = graphs.balanced_tree(2, depth).laplacian_spectrum()[1]
    assert stated == pytest.approx(float(smallest), rel=1e-12)


def test_all_trees_on_five_nodes_are_drawn_alike() -> None:
    codes = itertools.product(range(5), repeat=3)
    every = {tuple(map(tuple, graphs.Graph.from_edges(5, _from_code(5, np.array(code))).edges())) for code in codes}
    assert len(every) == 5**3
    drawn = Counter(tuple(map(tuple, graphs.random_tree(5, seed).edges())) for seed in range(4000))
    assert set(drawn) <= every
    assert chisquare([drawn[tree] for tree in sorted(every)]).pvalue > 1e-4
    for n in (1, 2, 3, 200):
        g = graphs.random_tree(n, 1)
        assert (g.n, g.m, g.is_connected) == (n, n - 1, True)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_scale_free_graphs_are_connected_and_have_hubs(m: int) -> None:
    n = 3000
    g = graphs.barabasi_albert(n, m, seed=3)
    assert g.m == m * (n - m)
    assert g.is_connected
    assert (g.degrees[m + 1 :] >= m).all()
    # the share of nodes of degree m is 2/(m + 2) in the limit (Bollobás, Riordan, Spencer, Tusnády 2001)
    assert np.mean(g.degrees == m) == pytest.approx(2 / (m + 2), abs=0.03)
    assert g.degrees.max() > m * np.sqrt(n) / 4


def test_a_newcomer_joins_in_proportion_to_degrees() -> None:
    """After a star of three (degrees 2, 1, 1) node 3 joins 0 with probability 1/2, 1 and 2 with 1/4 each."""
    joined = Counter(int(graphs.barabasi_albert(4, 1, seed).neighbors(3)[0]) for seed in range(3000))
    # after one edge node 2 joins 0 or 1, so the middle is either; by symmetry count degrees
    assert joined[2] / 3000 == pytest.approx(1 / 4, abs=0.04)
    assert graphs.barabasi_albert(60, 2, 3) == graphs.barabasi_albert(60, 2, np.random.default_rng(3))
    assert graphs.barabasi_albert(60, 2, 3) != graphs.barabasi_albert(60, 2, 4)


def test_smallest_scale_free_graphs() -> None:
    assert graphs.barabasi_albert(4, 3, 0) == graphs.star(4)
    assert graphs.barabasi_albert(2, 1, 0).m == 1


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("balanced_tree:2,5", graphs.balanced_tree(2, 5)),
        ("balanced-tree:depth=2,branching=3", graphs.balanced_tree(3, 2)),
        ("random_tree:20", graphs.random_tree(20, 0)),
        ("barabasi_albert:50,2,seed=4", graphs.barabasi_albert(50, 2, 4)),
    ],
)
def test_they_can_be_typed(spec: str, expected: graphs.Graph) -> None:
    assert graphs.parse(spec) == expected


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: graphs.balanced_tree(0, 3), "branching .* got 0"),
        (lambda: graphs.balanced_tree(2, -1), "depth .* got -1"),
        (lambda: graphs.balanced_tree(2, 40), r"balanced_tree\(2, 40\) would have about .* edges"),
        (lambda: graphs.balanced_tree(10, 10**6), "edges"),
        (lambda: graphs.barabasi_albert(3, 3, 0), "n must be .* ≥ 4, got 3; each newcomer joins 3"),
        (lambda: graphs.barabasi_albert(3, 0, 0), "m .* got 0"),
        (lambda: graphs.barabasi_albert(9, 2, "x"), "seed"),
        (lambda: graphs.random_tree(0, 0), "n .* got 0"),
    ],
)
def test_refusals(build: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        build()  # type: ignore[operator]
