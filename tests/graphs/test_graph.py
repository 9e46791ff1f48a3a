"""Graph against NetworkX and against its own definition; every refusal names the value."""

from __future__ import annotations

import copy
import json
import pickle

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
    with pytest.raises(InvalidValue, match=r"each of 0 to 2 once.*\[0, 0, 1\]"):
        g.relabel([0, 0, 1])


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
        (0, [], "at least one node.*not 0"),
        (-3, [], "not -3"),
        (2.5, [], "not 2.5"),
        (True, [], "not True"),
        (2**31, [], "2147483648"),
        (3, [(0, 3)], "edge 0 names the node 3, outside 0 to 2"),
        (3, [(0, 1), (-1, 2)], "edge 1 names the node -1"),
        (3, [(0, 1), (1.5, 2)], "edge 1 names the node 1.5"),
        (3, [(0, float("nan"))], "edge 0 names the node NaN"),
        (3, [(0, float("inf"))], "names the node inf"),
        (3, [("a", "b")], "not 'a'.*labels="),
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
    with pytest.raises(GraphError, match=r"shape \(2, 2\), not \(2, 3\)"):
        Graph.from_edges(2, [], positions=np.zeros((2, 3)))
    with pytest.raises(GraphError, match="finite"):
        Graph.from_edges(1, [], positions=[(0, np.nan)])


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
    assert graphs.from_networkx(nx.MultiDiGraph([(0, 1), (1, 0), (0, 1), (1, 2)])).edges().tolist() == [
        [0, 1],
        [1, 2],
    ]


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
