"""Places of parties: in the square, apart, the same every time, and telling who is near whom."""

import numpy as np
import pytest

from netdp import graphs
from netdp.report.network import _mesh, _pushes_of_pairs, placed

TWO_CROWDS = graphs.Graph.from_edges(
    400,
    [
        *graphs.erdos_renyi(200, 0.1, seed=3).edges().tolist(),
        *(graphs.erdos_renyi(200, 0.1, seed=4).edges() + 200).tolist(),
        (0, 200),
    ],
    name="two crowds",
)
APART = graphs.Graph.from_edges(7, [(0, 1), (1, 2), (3, 4), (4, 5)], name="two paths and one alone")
LEAVES = graphs.Graph.from_edges(500, [(0, v) for v in range(1, 500)], name="a star without positions")
EVERY_KIND = [
    graphs.Graph.from_edges(1, [], name="one party"),
    graphs.Graph.from_edges(2, [(0, 1)], name="two"),
    graphs.Graph.from_edges(5, [], name="no links"),
    graphs.ring(9),
    graphs.dataset("karate"),
    graphs.regular(700, 3, seed=1),
    TWO_CROWDS,
    APART,
    LEAVES,
]


@pytest.mark.parametrize("graph", EVERY_KIND, ids=lambda g: g.name)
def test_places_fit_the_square_and_differ(graph):
    points = placed(graph)
    assert points.shape == (graph.n, 2)
    assert points.min() >= -1e-9
    assert points.max() <= 1 + 1e-9
    assert len(np.unique(points.round(6), axis=0)) == graph.n


@pytest.mark.parametrize("graph", [graphs.dataset("karate"), TWO_CROWDS], ids=lambda g: g.name)
def test_the_same_places_every_time(graph):
    assert np.array_equal(placed(graph), placed(graph))


def test_a_family_keeps_its_own_drawing():
    points = placed(graphs.ring(8))
    assert np.hypot(*(points - 0.5).T) == pytest.approx(np.full(8, 0.5))


@pytest.mark.parametrize("graph", [graphs.dataset("les-miserables"), TWO_CROWDS], ids=lambda g: g.name)
def test_neighbours_are_drawn_nearer_than_others(graph):
    points, edges = placed(graph), graph.edges()
    linked = np.hypot(*(points[edges[:, 0]] - points[edges[:, 1]]).T).mean()
    every = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1)).mean()
    assert linked < 0.6 * every


def test_two_crowds_are_drawn_apart():
    points = placed(TWO_CROWDS)
    across = points[200:].mean(axis=0) - points[:200].mean(axis=0)
    side = (points - points.mean(axis=0)) @ across
    assert (side[:200] < 0).mean() > 0.95
    assert (side[200:] > 0).mean() > 0.95


def test_the_mesh_pushes_as_the_pairs_do():
    rng = np.random.default_rng(5)
    points, mass = rng.normal(size=(300, 2)) * 40, rng.uniform(1, 9, 300)
    exact, meshed = _pushes_of_pairs(points, mass), _mesh(64)(points, mass)
    error = np.hypot(*(meshed - exact).T) / np.hypot(*exact.T)
    assert np.median(error) < 0.15
