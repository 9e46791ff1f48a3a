"""Graph against NetworkX and against its own definition; every refusal names the value."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import re
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp import graphs
from netdp.errors import GraphError, InvalidValue
from netdp.graphs import Graph


@st.composite
def any_graph(draw: st.DrawFn, max_n: int = 12) -> Graph:
    n = draw(st.integers(1, max_n))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Graph.from_edges(n, [pair[:: draw(st.sampled_from((1, -1)))] for pair in chosen])


def test_parts() -> None:
    g = Graph.from_edges(5, [(3, 1), (0, 1), (1, 2)], name="five")
    assert repr(g) == "Graph('five', n=5, m=3)"
    assert g.indptr.dtype == np.int64
    assert g.indices.dtype == np.int32
    assert g.indptr.tolist() == [0, 1, 4, 5, 6, 6]
    assert g.indices.tolist() == [1, 0, 2, 3, 1, 1]
    assert g.edges().tolist() == [[0, 1], [1, 2], [1, 3]]
    assert g.degrees.tolist() == [1, 3, 1, 1, 0]
    assert g.neighbors(4).size == 0
    assert g.has_edge(3, 1)
    assert g.has_edge(1, 3)
    assert not g.has_edge(0, 2)
    assert not g.has_edge(4, 4)


def test_one_node() -> None:
    g = Graph.from_edges(1, [])
    assert (g.n, g.m, g.is_connected, g.is_bipartite) == (1, 0, True, True)
    assert g.distances([0]).tolist() == [0]
    assert g.laplacian().toarray().tolist() == [[0.0]]


@settings(deadline=None)
@given(any_graph())
def test_agrees_with_networkx(g: Graph) -> None:
    G = g.to_networkx()
    assert g.m == G.number_of_edges()
    assert g.is_connected == nx.is_connected(G)
    assert g.is_bipartite == nx.is_bipartite(G)
    assert g.degrees.tolist() == [d for _, d in sorted(G.degree())]
    np.testing.assert_array_equal(g.adjacency().toarray(), nx.to_numpy_array(G, nodelist=range(g.n)))
    np.testing.assert_array_equal(
        g.laplacian().toarray(), np.diag(g.degrees) - nx.to_numpy_array(G, nodelist=range(g.n))
    )
    ours = {frozenset(np.flatnonzero(g.components() == c).tolist()) for c in set(g.components().tolist())}
    assert ours == {frozenset(part) for part in nx.connected_components(G)}
    assert graphs.from_networkx(G) == g


@settings(deadline=None)
@given(any_graph(), st.data())
def test_distances_agree_with_networkx(g: Graph, data: st.DataObject) -> None:
    sources = data.draw(st.lists(st.integers(0, g.n - 1), min_size=1, max_size=4))
    lengths = nx.multi_source_dijkstra_path_length(g.to_networkx(), set(sources))
    assert g.distances(sources).tolist() == [lengths.get(u, -1) for u in range(g.n)]
    assert g.distances(sources).dtype == np.int32


def test_distances_on_a_long_ring() -> None:
    g = graphs.ring(100_001)
    u = np.arange(g.n)
    np.testing.assert_array_equal(g.distances(0), np.minimum(u, g.n - u))


@settings(deadline=None)
@given(any_graph(), st.data())
def test_relabel(g: Graph, data: st.DataObject) -> None:
    permutation = np.array(data.draw(st.permutations(range(g.n))))
    moved = g.relabel(permutation)
    assert sorted(map(sorted, permutation[g.edges()].tolist())) == moved.edges().tolist()
    assert moved.relabel(np.argsort(permutation)) == g
    np.testing.assert_array_equal(moved.degrees[permutation], g.degrees)


def test_relabel_moves_labels_and_positions() -> None:
    g = Graph.from_edges(3, [(0, 1)], labels="abc", positions=[(0, 0), (1, 0), (2, 0)])
    moved = g.relabel([2, 0, 1])
    assert moved.labels == ("b", "c", "a")
    assert moved.positions is not None
    assert moved.positions[:, 0].tolist() == [1, 2, 0]
    assert moved.index("a") == 2
    spectrum = graphs.ring(5).relabel([4, 3, 2, 1, 0]).laplacian_spectrum
    assert spectrum is not None
    for wrong in ([0, 0, 1], "abc", None, [[0], [1, 2]]):
        with pytest.raises(InvalidValue, match=r"each of 0 to 2 once, got .*" + re.escape(repr(wrong))):
            g.relabel(wrong)  # type: ignore[arg-type]


@settings(deadline=None)
@given(any_graph())
def test_dict_pickle_and_digest(g: Graph) -> None:
    again = Graph.from_dict(json.loads(json.dumps(g.to_dict())))
    for other in (again, pickle.loads(pickle.dumps(g)), copy.deepcopy(g)):
        assert other == g
        assert hash(other) == hash(g)
        assert other.digest == g.digest


def test_digest_and_equality_see_structure_only() -> None:
    a = Graph.from_edges(3, [(0, 1)], name="a", labels="xyz")
    assert a == Graph.from_edges(3, [(1, 0)], name="b")
    assert a != Graph.from_edges(4, [(0, 1)])
    assert a != Graph.from_edges(3, [(0, 2)])
    assert a != "a"
    assert len({a.digest, Graph.from_edges(4, [(0, 1)]).digest, Graph.from_edges(3, [(0, 2)]).digest}) == 3
    # pinned: the digest names a graph across machines and versions
    assert Graph.from_edges(2, [(0, 1)]).digest == ("46e0cfb96635ae27415fa638a71ee8f0e368a5d8c1924196564243be7bbf4aa3")


def test_pickled_families_keep_their_spectrum() -> None:
    g = pickle.loads(pickle.dumps(graphs.torus(3, 4)))
    assert g.laplacian_spectrum is not None
    assert g.laplacian_spectrum().size == 12
    assert not g.indices.flags.writeable


def test_immutable() -> None:
    g = graphs.ring(4)
    with pytest.raises(AttributeError, match=r"immutable.*'n'"):
        g.n = 5
    with pytest.raises(AttributeError, match=r"immutable.*'name'"):
        del g.name
    for array in (g.indptr, g.indices, g.degrees, g.positions, g.components(), g.neighbors(0)):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    # what is handed out can be changed without changing the graph
    A = g.adjacency()
    A.data[:] = 9
    A.indices[:] = 0
    assert g.adjacency().data.tolist() == [1.0] * 8
    assert g == graphs.ring(4)


@pytest.mark.parametrize(
    ("n", "edges", "message"),
    [
        (0, [], "at least one node.*got 0"),
        (-3, [], "got -3"),
        (2.5, [], "got 2.5"),
        (True, [], "got True"),
        (2**31, [], "2147483648"),
        (3, [(0, 3)], "edge 0 names the node 3, outside 0 to 2"),
        (3, [(0, 1), (-1, 2)], "edge 1 names the node -1"),
        (3, [(0, 1), (1.5, 2)], "edge 1 names the node 1.5"),
        (3, [(0, float("nan"))], "edge 0 names the node NaN"),
        (3, [(0, float("inf"))], "names the node inf"),
        (3, [("a", "b")], "got 'a'.*labels="),
        (3, [(0, "a")], "got 'a'.*labels="),
        (3, [(0, None)], "got None.*labels="),
        (3, [(True, False)], "got True.*labels="),
        (3, [(0, 2**70)], "got 1180591620717411303424"),
        (3, None, r"pairs \(u, v\) of node ids, got None; an empty list"),
        (3, "01", "got '01'"),
        (3, 7, "got 7"),
        (3, [0, 1], r"shape \(2,\)"),
        (3, [None, (0, 1)], "another length"),
        ("3", [(0, 1)], "n must be a whole number ≥ 1, got '3'"),
        (3, [(0, 1, 2)], r"shape \(1, 3\)"),
        (3, [(0, 1), (1,)], "another length"),
        (3, [(1, 1)], r"self-loop \(1, 1\)"),
        (3, [(0, 2), (2, 0)], r"edge \(0, 2\) is listed more than once"),
        (3, [(0, 2), (0, 2)], r"edge \(0, 2\) is listed more than once"),
    ],
)
def test_refused_edges(n: int, edges: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Graph.from_edges(n, edges)


def test_integral_floats_and_iterators_are_edges() -> None:
    assert Graph.from_edges(3, np.array([[0.0, 1.0]])) == Graph.from_edges(3, iter([(0, 1)]))


@pytest.mark.parametrize(
    ("indptr", "indices", "message"),
    [
        ([0], [], "n \\+ 1 ≥ 2"),
        ([0, 1, 3], [1, 0], "from 0 to 3"),
        ([0, 2, 1, 2], [1, 0], "falls on the way"),
        ([0, 1, 2], [0.5, 1.0], "vector of integers"),
        ([0, 1, 1], [1], "in both rows"),
        ([0, 1, 2], [0, 1], "in both rows"),
        ([0, 2, 3, 4], [2, 1, 0, 0], "each row sorted"),
        ([0, 1, 2], [5, 0], "names the node 5"),
    ],
)
def test_refused_rows(indptr: list[int], indices: list[int], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Graph(indptr, indices)


def test_rows_as_given() -> None:
    g = graphs.hypercube(3)
    assert Graph(g.indptr, g.indices) == g


def test_refused_labels_and_positions() -> None:
    with pytest.raises(GraphError, match="1 labels for 2 nodes"):
        Graph.from_edges(2, [], labels=["a"])
    with pytest.raises(GraphError, match="'a' is given to several"):
        Graph.from_edges(2, [], labels=["a", "a"])
    with pytest.raises(GraphError, match=r"shape \(2, 2\), got \(2, 3\)"):
        Graph.from_edges(2, [], positions=np.zeros((2, 3)))
    with pytest.raises(GraphError, match="finite"):
        Graph.from_edges(1, [], positions=[(0, np.nan)])
    with pytest.raises(GraphError, match="positions must be 1 pairs of numbers, got 'here'"):
        Graph.from_edges(1, [], positions="here")
    with pytest.raises(GraphError, match="labels must be one name per node, got 5"):
        Graph.from_edges(1, [], labels=5)


def test_index() -> None:
    plain, named = graphs.ring(5), Graph.from_edges(2, [(0, 1)], labels=["10", "20"])
    assert plain.index(4) == plain.index("4") == plain.index(np.int64(4)) == 4
    assert named.index("20") == named.index(1) == 1
    for graph, wrong, message in [
        (plain, 5, "no node 5 .* 0 to 4"),
        (plain, -1, "-1.* 0 to 4"),
        (plain, "5", "'5'.* 0 to 4"),
        (plain, "ann", "'ann'.* 0 to 4"),
        (plain, 1.0, "1.0.* 0 to 4"),
        (plain, True, "True"),
        (named, "1", "labelled '1'.*graph.labels.*'10', '20'"),
    ]:
        with pytest.raises(InvalidValue, match=message):
            graph.index(wrong)  # type: ignore[arg-type]


def test_names_win_and_an_ambiguous_number_is_refused() -> None:
    """An edge list that numbers its nodes from 1: does 1 mean the node named '1', or the one at place 1?"""
    g = Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)], labels=["1", "2", "3", "4"], name="from one")
    assert [g.index(name) for name in "1234"] == [0, 1, 2, 3]
    for number in (1, np.int64(1), np.uint8(1)):
        with pytest.raises(InvalidValue, match=r"1 could mean two nodes .*'from one'.*named '1'.*node 1 .*named '2'"):
            g.index(number)  # type: ignore[arg-type]
    assert g.index(0) == 0  # no node is named '0'
    with pytest.raises(InvalidValue, match=r"no node 4 .*0 to 3; if you mean the one named '4', .* as text: '4'"):
        g.index(4)
    with pytest.raises(InvalidValue, match="no node 5 "):
        g.index(5)
    with pytest.raises(InvalidValue, match="True"):
        g.index(True)
    # a number at its own place means one node only, whatever the others are called
    mixed = Graph.from_edges(4, [(0, 1)], labels=["0", "1", "ann", "-7"])
    assert [mixed.index(v) for v in (0, 1, 2, 3)] == [0, 1, 2, 3]
    with pytest.raises(InvalidValue, match="if you mean the one named '-7'"):
        mixed.index(-7)
    assert [g.index(g.label(v)) for v in range(4)] == [0, 1, 2, 3]
    assert [graphs.ring(3).label(v) for v in range(3)] == [0, 1, 2]


def test_computed_ids_are_not_looked_up() -> None:
    g = Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)], labels=["1", "2", "3", "4"])
    assert g.neighbors(1).tolist() == [0, 2]
    assert g.neighbors(np.int32(3)).tolist() == [2]
    assert g.has_edge(1, 2)
    assert not g.has_edge(1, 3)
    assert g.distances(1).tolist() == g.distances(np.int64(1)).tolist() == [1, 0, 1, 2]
    assert g.subgraph([1, 2]).labels == ("2", "3")
    for ask in (g.neighbors, g.label, lambda name: g.has_edge(0, name)):
        with pytest.raises(InvalidValue, match=r"id is a number 0 to 3, got '2'; graph.index\('2'\) finds"):
            ask("2")
        with pytest.raises(InvalidValue, match="no node 4 "):
            ask(4)
    for ask in (g.distances, g.subgraph):
        for wrong in (["2"], "2", None, [None], [[1], [2, 3]], 1.5):
            with pytest.raises(InvalidValue, match="one or more node ids, got"):
                ask(wrong)
        with pytest.raises(InvalidValue, match="no node 4 "):
            ask([4])


def test_components_and_the_largest() -> None:
    g = Graph.from_edges(6, [(0, 5), (1, 2), (2, 3)], name="parts")
    assert g.components().tolist() == [0, 1, 1, 1, 2, 0]
    assert not g.is_connected
    with pytest.raises(GraphError, match=r"gossip needs.*3 components, the largest of 3 .*largest_component\(\)"):
        g.require_connected("gossip")
    big = g.largest_component()
    assert repr(big) == "Graph('parts, largest component', n=3, m=2)"
    assert big.labels == ("1", "2", "3")
    big.require_connected("gossip")
    assert big.largest_component() is big


def test_subgraph() -> None:
    g = graphs.grid(3, 3).subgraph({4, 0, 1, 8})
    assert g.labels == ("0", "1", "4", "8")
    assert g.edges().tolist() == [[0, 1], [1, 2]]
    assert g.positions is not None
    assert g.positions[3].tolist() == [2, -2]
    assert g.subgraph([3, 2]).labels == ("4", "8")
    for nodes, message in [([9], "no node 9"), ([], "one or more"), ([0.5], "0.5")]:
        with pytest.raises(InvalidValue, match=message):
            graphs.grid(3, 3).subgraph(nodes)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="sources: no node 7 "):
        graphs.ring(3).distances([7])


def test_from_dict_refuses_what_it_does_not_know() -> None:
    with pytest.raises(InvalidValue, match="unknown: \\['weights'\\]"):
        Graph.from_dict({"n": 1, "edges": [], "weights": []})
    with pytest.raises(InvalidValue, match="missing: \\['edges'\\]"):
        Graph.from_dict({"n": 1})
    with pytest.raises(InvalidValue, match="as a dictionary with n, edges, name, labels; got 3"):
        Graph.from_dict(3)  # type: ignore[arg-type]


# ── NetworkX ──────────────────────────────────────────────────────────────────────────────────────────────


def test_networkx_numbers_stay_whatever_their_order() -> None:
    G = nx.Graph([(2, 0), (0, 1)])
    g = graphs.from_networkx(G)
    assert g.labels is None
    assert g.edges().tolist() == [[0, 1], [0, 2]]


def test_networkx_names_become_labels() -> None:
    g = graphs.from_networkx(nx.grid_2d_graph(2, 2))
    assert g.labels == ("(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)")
    assert graphs.from_networkx(nx.path_graph([5, 7, 6])).labels == ("5", "7", "6")
    back = graphs.from_networkx(g.to_networkx())
    assert back == g
    assert back.labels == g.labels


def test_networkx_directed_and_multiple() -> None:
    both = nx.MultiDiGraph([(0, 1), (1, 0), (0, 1), (1, 2), (2, 1)])
    assert graphs.from_networkx(both).edges().tolist() == [[0, 1], [1, 2]]
    both.remove_edge(2, 1)
    for take in (graphs.from_networkx, graphs.as_graph):
        with pytest.raises(
            GraphError, match=r"directed: .* from 1 to 2 and none back.*to_undirected\(\).*transition\(G\)"
        ):
            take(both)
    assert graphs.from_networkx(both.to_undirected()).m == 2


def test_networkx_positions_and_name() -> None:
    G = nx.random_geometric_graph(10, 0.4, seed=1)
    g = graphs.from_networkx(G, name="points")
    assert g.name == "points"
    assert g.positions is not None
    assert g.positions[3].tolist() == G.nodes[3]["pos"]
    assert graphs.from_networkx(g.to_networkx()).name == "points"
    G.nodes[3]["pos"] = "somewhere"
    assert graphs.from_networkx(G).positions is None


def test_networkx_refusals() -> None:
    with pytest.raises(GraphError, match="no node"):
        graphs.from_networkx(nx.Graph())
    with pytest.raises(GraphError, match=r"1 self-loop.*at 'b'.*G.remove_edges_from\(nx.selfloop_edges\(G\)\)"):
        graphs.from_networkx(nx.Graph([("a", "b"), ("b", "b")]))
    with pytest.raises(GraphError, match="1 and '1'"):
        graphs.from_networkx(nx.Graph([(1, "1")]))


@pytest.mark.parametrize("value", [np.eye(3), [(0, 1)], None, "ring:5", graphs.ring(3)], ids=lambda v: type(v).__name__)
def test_from_networkx_refuses_what_is_no_networkx_graph(value: object) -> None:
    kind = type(value).__name__
    with pytest.raises(InvalidValue, match=rf"takes a NetworkX graph, got .* of type {kind}; .*Graph.from_edges"):
        graphs.from_networkx(value)


def test_networkx_weights_that_are_not_positive_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    G = nx.Graph()
    G.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", -1), ("c", "d", 0.0), ("d", "e", np.float64(-3))])
    G.add_edge("e", "a", weight="heavy")
    with caplog.at_level(logging.INFO, logger="netdp.graphs"):
        assert graphs.from_networkx(G).m == 5
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("netdp.graphs", "WARNING")
    assert "3 weights are not positive, the first -1 on the edge ('b', 'c')" in record.getMessage()
    assert "remove such edges yourself if they mean 'no edge'" in record.getMessage()
    caplog.clear()
    graphs.from_networkx(nx.MultiGraph([(0, 1, {"weight": 0})]))
    assert "1 weight is not positive, the first 0 on the edge (0, 1)" in caplog.text
    caplog.clear()
    graphs.from_networkx(nx.karate_club_graph())  # all its weights are positive
    graphs.from_networkx(nx.path_graph(3))
    assert not caplog.records


def test_as_graph_takes_graphs_and_networkx_graphs_only() -> None:
    ring = graphs.ring(4)
    assert graphs.as_graph(ring, "the graph") is ring
    assert graphs.as_graph(nx.cycle_graph(4), "the graph") == ring
    assert graphs.as_graph(nx.DiGraph([("a", "b"), ("b", "a")]), "the graph").labels == ("a", "b")
    for value in ("ring:5", None, np.eye(3), [(0, 1)], nx.Graph):
        kind = type(value).__name__
        with pytest.raises(
            InvalidValue,
            match=rf"gossip's graph must be a netdp Graph .* of type {kind}; graphs.parse.*graphs.read.*graphs.from_networkx",
        ):
            graphs.as_graph(value, "gossip's graph")


def test_as_graph_does_not_load_networkx() -> None:
    code = (
        "import sys; from netdp import graphs; graphs.as_graph(graphs.ring(3), 'g')\n"
        "try: graphs.as_graph('ring:3', 'g')\n"
        "except graphs.convert.InvalidValue: print('networkx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_graph_without_names_calls_its_nodes_by_number():
    """Node 1 of a file that counts by first appearance may be the party named 2: names win, and half of them are refused."""
    plain = Graph.from_edges(3, [(0, 1), (1, 2)])
    mixed = Graph.from_edges(3, [(0, 1)], labels=["0", "2", "1"])
    assert mixed.in_order_of(plain).edges().tolist() == [[0, 2]]
    assert Graph.from_edges(3, [(0, 1)]).in_order_of(mixed).edges().tolist() == [[0, 2]]
    from_one = Graph.from_edges(3, [(0, 1)], labels=["1", "2", "3"])
    for graph, other in ((from_one, plain), (plain, from_one)):
        with pytest.raises(InvalidValue, match=r"which has no .*; give both the same labels"):
            graph.in_order_of(other)
    people = Graph.from_edges(3, [(0, 1)], labels=["ann", "bob", "cy"])
    assert people.in_order_of(plain).edges().tolist() == [[0, 1]]
