"""Walks along arrows: what a Transition is, where its walks are in the long run, and that directions are never dropped.

What they cost: docs/proofs/token.md#graph-walk.
"""

import json

import networkx as nx
import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.families.token.simulate import draw_paths
from netdp.graphs import Transition, transition
from netdp.protocols import GraphWalkSum, Protocol, WalkDescent, WalkHistogram

ARROWS = nx.DiGraph([(0, 1), (1, 2), (2, 0), (2, 1)])


def test_a_walk_from_a_directed_graph():
    walk = transition(ARROWS)
    assert walk.matrix.toarray().tolist() == [[0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]]
    np.testing.assert_allclose(walk.stationary, [0.2, 0.4, 0.4])
    assert walk.graph == graphs.complete(3)
    assert hash(walk) == hash(transition(ARROWS))
    assert walk == Transition.from_dict(json.loads(json.dumps(walk.to_dict())))
    assert walk != Transition(3, [(0, 1), (1, 2), (2, 0)])
    with pytest.raises(AttributeError):
        walk.graph = graphs.ring(3)
    weighted = nx.DiGraph()
    weighted.add_weighted_edges_from([("a", "b", 2.0), ("b", "a", 1.0), ("b", "b", 3.0)])
    named = transition(weighted, weight="weight")
    assert named.graph.labels == ("a", "b")
    assert named.matrix.toarray().tolist() == [[0, 1], [0.25, 0.75]]
    assert transition(nx.path_graph(3)).matrix.toarray().tolist() == [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]]


def test_the_long_run_is_that_of_a_long_product():
    rng = np.random.default_rng(5)
    n = 12
    pairs = [(i, (i + 1) % n) for i in range(n)] + [tuple(rng.integers(0, n, 2)) for _ in range(20)]
    walk = Transition(n, sorted(set(pairs)), rng.random(len(set(pairs))) + 0.1)
    long = np.linalg.matrix_power(walk.matrix.toarray(), 3000)
    np.testing.assert_allclose(long[0], walk.stationary, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((3, [(0, 1), (1, 0), (1, 2)]), "no arrow leaves node 2"),
        ((4, [(0, 1), (1, 0), (1, 2), (2, 3), (3, 2)]), "2 strongly connected parts"),
        ((2, [(0, 1), (1, 5)]), r"arrow \(1, 5\) leaves"),
        ((2, [(0, 1), (1, 0), (0, 1)]), "more than once"),
        ((2, [(0, 1), (1, 0)], [1.0, -1.0]), "weights must be"),
        ((2, [0, 1]), "pairs"),
        ((2, [(0, 0), (0, 1), (1, 0)], [1e308, 1e308, 1.0]), "finite"),
        ((2, [(0, 0), (0, 1), (1, 0)], [1e150, 1e-150, 1.0]), "factor of 1e"),
    ],
)
def test_what_is_no_walk_is_refused(arguments, said):
    with pytest.raises(GraphError, match=said):
        Transition(*arguments)


def test_chances_add_up_and_are_read_back_as_they_are():
    """What is missing from a row would be missing from every certified probability."""
    rng = np.random.default_rng(0)
    arrows = [(u, w) for u in range(9) for w in range(9) if rng.random() < 0.7 or w == (u + 1) % 9]
    for weights in (rng.random(len(arrows)), np.full(len(arrows), 1 / 3)):
        walk = Transition(9, arrows, weights)
        np.testing.assert_allclose(walk.matrix.sum(axis=1), 1.0, rtol=0, atol=1e-14)
        assert Transition.from_dict(walk.to_dict()) == walk
    almost = Transition(2, [(0, 0), (0, 1), (1, 0)], [0.5, 0.5 - 9e-10, 1.0])
    assert abs(almost.matrix.sum(axis=1)[0] - 1) < 1e-15
    with pytest.raises(InvalidValue, match="n must be a whole number"):
        Transition(3.0, [(0, 1), (1, 2), (2, 0)])


@pytest.mark.parametrize(
    "make",
    [
        lambda g: GraphWalkSum(g, steps=12, sigma=3.0),
        lambda g: WalkDescent(g, steps=12, sigma=3.0, step=0.1),
        lambda g: WalkHistogram(g, steps=12, domain=2, gamma=0.5),
    ],
    ids=["sum", "descent", "histogram"],
)
def test_walks_take_directed_graphs_and_keep_their_directions(make):
    p = make(ARROWS)
    assert p == make(transition(ARROWS))
    assert Protocol.from_dict(json.loads(json.dumps(p.to_dict()))) == p
    assert p.replace(steps=15).transition.toarray()[1, 0] == 0
    backwards = make(ARROWS.reverse())
    assert p != backwards
    forth, back = (np.asarray(netdp.account(one, [0]).epsilon(1e-5))[1:] for one in (p, backwards))
    # a heap has no order: what one observer is shown of a histogram it is shown of the walk backwards, as likely
    assert np.allclose(forth, back) == isinstance(p, WalkHistogram)


def test_a_walk_follows_its_arrows():
    p = GraphWalkSum(ARROWS, steps=20_000, sigma=1.0)
    path = draw_paths(p, seed=3).paths[0]
    pairs = set(zip(path[:-1].tolist(), path[1:].tolist(), strict=True))
    assert pairs == {(0, 1), (1, 2), (2, 0), (2, 1)}
    np.testing.assert_allclose(np.bincount(path) / len(path), p.stationary, atol=0.02)
    run = netdp.simulate(p.replace(steps=9), [0.0, 0.5, 1.0], 1)
    assert netdp.account(p.replace(steps=9), [0], transcript=run.transcript).is_certified
    wrong = netdp.simulate(GraphWalkSum(ARROWS.reverse(), steps=9, sigma=1.0), [0.0, 0.5, 1.0], 1)
    with pytest.raises(InvalidValue, match="no edge of"):
        netdp.account(p.replace(steps=9), [0], transcript=wrong.transcript)


def test_everything_else_refuses_directions():
    for make in (
        lambda g: netdp.Gossip(g, rounds=2, sigma=1.0),
        lambda g: netdp.Shuffle(g, rounds=2, epsilon0=1.0),
        lambda g: netdp.MaskedSum(g, sigma=1.0),
        graphs.from_networkx,
    ):
        with pytest.raises(GraphError, match=r"directed: .*none back.*to_undirected\(\)"):
            make(ARROWS)
    both = nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 1)])
    assert graphs.from_networkx(both) == graphs.path(3)
    with pytest.raises(InvalidValue, match="says itself where its tokens go"):
        GraphWalkSum(ARROWS, steps=9, sigma=1.0, walk="simple")
    with pytest.raises(Unsupported, match="not reversible"):
        netdp.expected_error(GraphWalkSum(ARROWS, steps=9, sigma=1.0))
