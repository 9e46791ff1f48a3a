"""Random rings laid over a graph, and diameters: docs/proofs/privacy.md#random-links, docs/proofs/graphs.md#diameter."""

import hashlib
import itertools

import networkx as nx
import numpy as np
import pytest

from netdp import graphs
from netdp.errors import GraphError, InvalidValue
from netdp.graphs.families import random_order, with_links
from netdp.graphs.shape import Span, diameter


def by_hand(graph, rings, seed):
    """The same union, spelled out with Python's own sort and sets."""
    edges = {tuple(edge) for edge in graph.edges().tolist()}
    n = graph.n
    for ring in range(rings):
        stream = hashlib.shake_256(f"netdp links 1: {n} parties, seed {seed}, ring {ring}".encode()).digest(16 * n)
        words = [int.from_bytes(stream[8 * i : 8 * i + 8], "little") for i in range(2 * n)]
        order = sorted(range(n), key=lambda u: (words[2 * u], words[2 * u + 1]))
        edges |= {tuple(sorted(pair)) for pair in zip(order, order[1:] + order[:1], strict=True)}
    return edges


@pytest.mark.parametrize("graph", [graphs.path(5), graphs.star(9), graphs.complete(4), graphs.Graph.from_edges(7, [])])
@pytest.mark.parametrize("rings", [1, 2, 5])
def test_the_union_of_the_graph_and_its_rings(graph, rings):
    linked = with_links(graph, rings, seed=3)
    assert {tuple(edge) for edge in linked.edges().tolist()} == by_hand(graph, rings, 3)
    graphs.Graph(linked.indptr, linked.indices)  # checks order, symmetry, loops and doubles
    assert linked.is_connected
    assert (linked.degrees - graph.degrees).max() <= 2 * rings
    assert with_links(graph, rings, seed=3) == linked


def test_the_same_on_every_machine():
    assert random_order(8, "links", 0, 0).tolist() == [3, 6, 0, 2, 4, 7, 1, 5]
    assert (
        with_links(graphs.path(50), 2, 7).digest == with_links(graphs.path(50), 2, 7).digest != graphs.path(50).digest
    )


def test_rings_of_one_seed_are_nested_and_others_differ():
    one, two = (set(map(tuple, with_links(graphs.path(40), k, 5).edges().tolist())) for k in (1, 2))
    assert one < two
    assert with_links(graphs.path(40), 1, 5) != with_links(graphs.path(40), 1, 6)
    assert with_links(graphs.path(40), 0, 5) is not None
    plain = graphs.path(40)
    assert with_links(plain, 0, 5) is plain


def test_every_order_is_drawn_equally_often():
    """Of the 24 orders of 4 parties; 4800 seeds, χ² with 23 degrees of freedom below its 10⁻⁶ quantile."""
    seen = dict.fromkeys(itertools.permutations(range(4)), 0)
    for seed in range(4800):
        seen[tuple(random_order(4, "links", seed, 0).tolist())] += 1
    assert sum((k - 200) ** 2 / 200 for k in seen.values()) < 75


def test_names_and_places_stay_and_a_closed_spectrum_goes():
    plain = graphs.Graph.from_edges(4, [(0, 1), (1, 2)], labels=["a", "b", "c", "d"], positions=np.eye(4)[:, :2])
    linked = with_links(plain, 1, 0)
    assert linked.labels == plain.labels
    assert np.array_equal(linked.positions, plain.positions)
    assert with_links(graphs.ring(9), 1, 0).laplacian_spectrum is None
    assert linked.name == "graph + 1 random ring (seed 0)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((graphs.ring(5), -1, 0), "-1"),
        ((graphs.ring(5), 1.5, 0), "1.5"),
        ((graphs.ring(5), True, 0), "True"),
        ((graphs.ring(5), 65, 0), "more than 64 random rings buy nothing"),
        ((graphs.ring(5), 1, -1), "the seed of the links"),
        ((graphs.path(2), 1, 0), "at least three parties"),
        ((nx.path_graph(5), 1, 0), "netdp.Graph"),
    ],
)
def test_bad_links_are_refused(arguments, message):
    with pytest.raises(InvalidValue, match=message):
        with_links(*arguments)


def test_as_text():
    assert graphs.parse("karate+rings:2,seed=1") == with_links(graphs.parse("karate"), 2, 1)
    assert graphs.parse("grid:3x4+rings:1") == with_links(graphs.grid(3, 4), 1, 0)
    for wrong in ("karate+rings:x", "karate+rings:", "karate+rings:1,seed=-2", "karate+rings:1,2,3", "karate+rings:²"):
        with pytest.raises(InvalidValue, match="random rings are written like"):
            graphs.parse(wrong)
    with pytest.raises(InvalidValue, match="is no graph"):
        graphs.parse("karatte+rings:1")


def test_a_file_may_be_called_like_links(tmp_path):
    path = tmp_path / "a+rings:2"
    path.write_text("1 2\n2 3\n")
    assert graphs.parse(str(path)).m == 2


# ── diameters ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "graph",
    [
        graphs.path(1), graphs.path(2), graphs.complete(5), graphs.star(70), graphs.ring(131), graphs.hypercube(7),
        graphs.grid(9, 14), graphs.random_tree(200, seed=2), graphs.regular(200, 3, seed=1),
        with_links(graphs.path(300), 1, 0), with_links(graphs.random_tree(150, seed=1), 2, 0), graphs.parse("karate"),
    ],
)  # fmt: skip
def test_diameters(graph):
    truth = max(int(graph.distances(u).max()) for u in range(graph.n))
    assert diameter(graph) == Span(truth, truth)
    rough = diameter(graph, work=0)
    assert rough.low <= truth <= rough.high


def test_a_diameter_needs_a_connected_graph():
    with pytest.raises(GraphError, match="a diameter needs a connected graph"):
        diameter(graphs.Graph.from_edges(3, [(0, 1)]))


def test_distances_never_grow_with_rings():
    rings = [diameter(with_links(graphs.path(400), k, 0)).high for k in range(4)]
    assert rings == sorted(rings, reverse=True)
    assert rings[0] == 399
    assert rings[1] < 20
