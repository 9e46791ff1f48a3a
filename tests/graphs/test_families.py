"""Families: numbering, degrees, drawings, and the spectrum each one states against a dense computation.

Proof: docs/proofs/graphs.md#graph-spectra.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.graphs.families import _pairs

WITH_SPECTRUM = [
    graphs.ring(3),
    graphs.ring(10),
    graphs.ring(11),
    graphs.path(1),
    graphs.path(2),
    graphs.path(9),
    graphs.complete(1),
    graphs.complete(2),
    graphs.complete(7),
    graphs.star(2),
    graphs.star(6),
    graphs.grid(1, 5),
    graphs.grid(4, 1),
    graphs.grid(3, 5),
    graphs.torus(3, 3),
    graphs.torus(4, 5),
    graphs.torus(3, 4, 5),
    graphs.torus(3, 3, 4, 3),
    graphs.exponential(2),
    graphs.exponential(3),
    graphs.exponential(16),
    graphs.exponential(21),
    graphs.hypercube(1),
    graphs.hypercube(5),
]


@pytest.mark.parametrize("g", WITH_SPECTRUM, ids=lambda g: g.name)
def test_spectrum_and_drawing(g: Graph) -> None:
    assert g.laplacian_spectrum is not None
    stated = g.laplacian_spectrum()
    np.testing.assert_allclose(stated, np.linalg.eigvalsh(g.laplacian().toarray()), atol=1e-12)
    assert (np.diff(stated) >= 0).all()
    assert stated.dtype == np.float64
    assert g.is_connected
    assert g.positions is not None
    assert len({tuple(point) for point in g.positions.round(9).tolist()}) == g.n, "nodes drawn on one another"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (graphs.ring(7), nx.cycle_graph(7)),
        (graphs.path(7), nx.path_graph(7)),
        (graphs.complete(6), nx.complete_graph(6)),
        (graphs.star(6), nx.star_graph(5)),
        (graphs.grid(3, 4), nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4), ordering="sorted")),
        (
            graphs.torus(3, 4),
            nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4, periodic=True), ordering="sorted"),
        ),
        (
            graphs.torus(3, 4, 5),
            nx.convert_node_labels_to_integers(nx.grid_graph((5, 4, 3), periodic=True), ordering="sorted"),
        ),
        (graphs.exponential(20), nx.circulant_graph(20, [1, 2, 4, 8, 16])),
        (graphs.exponential(16), nx.circulant_graph(16, [1, 2, 4, 8])),
        (graphs.hypercube(4), nx.convert_node_labels_to_integers(nx.hypercube_graph(4), ordering="sorted")),
    ],
    ids=lambda g: getattr(g, "name", ""),
)
def test_numbering_agrees_with_networkx(ours: Graph, theirs: nx.Graph) -> None:
    assert ours == graphs.from_networkx(theirs)


def test_hypercube_distance_is_hamming() -> None:
    g = graphs.hypercube(6)
    assert g.distances([0b101010]).tolist() == [(i ^ 0b101010).bit_count() for i in range(64)]
    assert g.is_bipartite


@pytest.mark.parametrize("d", range(1, 11))
def test_hypercube_nodes_are_drawn_apart(d: int) -> None:
    points = graphs.hypercube(d).positions
    assert points is not None
    assert len({tuple(p) for p in points.round(6).tolist()}) == 2**d


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: graphs.ring(2), r"n must be .* ≥ 3, got 2; .*path\(2\)"),
        (lambda: graphs.ring(5.0), "got 5.0"),
        (lambda: graphs.path(0), "n .* got 0"),
        (lambda: graphs.complete(True), "got True"),
        (lambda: graphs.star(1), "≥ 2, got 1"),
        (lambda: graphs.grid(0, 3), "rows .* got 0"),
        (lambda: graphs.grid(3, -1), "cols .* got -1"),
        (lambda: graphs.torus(2, 5), r"rows .* got 2.*grid\(rows, cols\)"),
        (lambda: graphs.torus(5, 2), "cols .* got 2"),
        (lambda: graphs.torus(5, 5, 2), "side 3 .* got 2"),
        (lambda: graphs.exponential(1), "≥ 2, got 1"),
        (lambda: graphs.hypercube(0), "dimension .* got 0"),
        (lambda: graphs.hypercube(5000), r"hypercube\(5000\) would have about .* edges"),
        (lambda: graphs.complete(10**6), r"complete\(1000000\) would have about 5e\+11 edges"),
        (lambda: graphs.erdos_renyi(0, 0.5, 0), "n .* got 0"),
        (lambda: graphs.erdos_renyi(5, 1.5, 0), r"p must lie in \[0, 1\], got 1.5"),
        (lambda: graphs.erdos_renyi(5, float("nan"), 0), "p .* got nan"),
        (lambda: graphs.erdos_renyi(5, "a", 0), "p .* got 'a'"),
        (lambda: graphs.erdos_renyi(10**6, 0.1, 0), "would have about 5e\\+10 edges"),
        (lambda: graphs.geometric(5, 0.0, 0), r"radius must lie in \(0, inf\), got 0.0"),
        (lambda: graphs.geometric(5, -1, 0), "radius .* got -1"),
        (lambda: graphs.geometric(10**6, 0.5, 0), "would have about"),
        (lambda: graphs.regular(5, 0, 0), "degree .* got 0"),
        (lambda: graphs.regular(5, 5, 0), "degree must be less than n = 5, got 5"),
        (lambda: graphs.regular(5, 3, 0), "must be even .* 5·3 = 15"),
        (lambda: graphs.ring("5"), "n must be a whole number ≥ 3, got '5'"),
        (lambda: graphs.hypercube(2.5), "dimension must be a whole number ≥ 1, got 2.5"),
        (lambda: graphs.path(None), "n must be a whole number ≥ 1, got None"),
        (lambda: graphs.geometric(5, 10**400, 0), "radius must be a number in"),
        (lambda: graphs.regular(10, 3, seed="x"), "seed must be a whole number ≥ 0, .* or None, got 'x'"),
        (lambda: graphs.regular(10, 3, seed=-1), "seed .* got -1"),
        (lambda: graphs.geometric(10, 0.3, seed=1.5), "seed .* got 1.5"),
        (lambda: graphs.geometric(10, 0.3, seed=True), "seed .* got True"),
        (
            lambda: graphs.erdos_renyi(10, 0.5, np.random.RandomState(0)),
            r"seed .* got RandomState.*use numpy.random.default_rng\(seed\)",
        ),
    ],
)
def test_refusals(build: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        build()  # type: ignore[operator]


# ── random ones ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "build",
    [
        lambda seed: graphs.erdos_renyi(60, 0.1, seed),
        lambda seed: graphs.geometric(60, 0.2, seed),
        lambda seed: graphs.regular(60, 5, seed),
    ],
)
def test_the_seed_decides(build: object) -> None:
    assert build(3) == build(3) == build(np.random.default_rng(3))  # type: ignore[operator]
    assert build(3) != build(4)  # type: ignore[operator]


def test_erdos_renyi_extremes() -> None:
    assert graphs.erdos_renyi(20, 0.0, 0).m == 0
    assert graphs.erdos_renyi(20, 1.0, 0) == graphs.complete(20)
    assert graphs.erdos_renyi(1, 0.5, 0).n == 1


def test_erdos_renyi_law() -> None:
    """Every pair is an edge equally often, and pairs are independent (number of edges is binomial)."""
    n, p, runs = 6, 0.3, 4000
    rng = np.random.default_rng(0)
    seen = np.zeros((n, n))
    counts = []
    for _ in range(runs):
        g = graphs.erdos_renyi(n, p, rng)
        u, v = g.edges().T
        seen[u, v] += 1
        counts.append(g.m)
    frequency = seen[np.triu_indices(n, 1)] / runs
    assert np.abs(frequency - p).max() < 5 * np.sqrt(p * (1 - p) / runs)
    assert np.var(counts) == pytest.approx(15 * p * (1 - p), rel=0.15)


def test_erdos_renyi_is_sparse_in_memory() -> None:
    g = graphs.erdos_renyi(300_000, 1e-5, 0)
    assert g.m == pytest.approx(449_998, rel=0.01)


@settings(deadline=None)
@given(st.integers(0, 2**61))
def test_pair_numbers(number: int) -> None:
    u, v = _pairs(np.array([number]))[0].tolist()
    assert 0 <= u < v
    assert v * (v - 1) // 2 + u == number


def test_geometric_joins_exactly_the_near() -> None:
    g = graphs.geometric(80, 0.2, 7)
    assert g.positions is not None
    apart = np.linalg.norm(g.positions[:, None] - g.positions[None], axis=2)
    near = (apart <= 0.2) & ~np.eye(80, dtype=bool)
    np.testing.assert_array_equal(g.adjacency().toarray(), near)
    assert g.positions.min() >= 0
    assert g.positions.max() <= 1
    assert graphs.geometric(10, 2.0, 0) == graphs.complete(10)


def test_regular_in_every_small_case() -> None:
    for n in range(2, 11):
        for degree in range(1, n):
            if n * degree % 2 == 0:
                for seed in range(3):
                    assert set(graphs.regular(n, degree, seed).degrees.tolist()) == {degree}


@pytest.mark.parametrize(("n", "degree"), [(2000, 4), (300, 60), (101, 50), (101, 80), (100_000, 6)])
def test_regular_larger(n: int, degree: int) -> None:
    g = graphs.regular(n, degree, 0)
    assert set(g.degrees.tolist()) == {degree}
    assert g.is_connected


def test_regular_law_is_close_to_uniform() -> None:
    """The 70 labelled 2-regular graphs on 6 nodes: 60 hexagons and 10 pairs of triangles."""
    rng = np.random.default_rng(1)
    runs = 2100
    connected = sum(graphs.regular(6, 2, rng).is_connected for _ in range(runs))
    assert connected / runs == pytest.approx(6 / 7, abs=0.06)
