"""Gossip matrices of one's own: checked, frozen, written down, and accounted exactly."""

import json
import pickle
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from netdp import graphs, simulate
from netdp.errors import InvalidValue
from netdp.families.gossip.descent import GossipDescent
from netdp.families.gossip.protocol import Gossip, RandomizedGossip
from netdp.families.gossip.varying import VaryingGossip
from netdp.graphs import GossipMatrix, edge_weights, gossip_matrix
from netdp.graphs.mixing import as_mixing, mixing_matrix, rational_weights
from netdp.graphs.shape import vertex_transitive
from netdp.graphs.spectrum import spectral_gap
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import expected_error
from netdp.protocols.calibration import calibrate


def random_matrix(graph, seed, grain=None):
    """Weights that leave something on every diagonal; in multiples of 1/grain, for exact arithmetic by hand."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 1.0, graph.m) / (1 + graph.degrees.max())
    return GossipMatrix(graph, np.floor(weights * grain) / grain if grain else weights)


def exact_factors(matrices, senders, observers):
    """Leverage scores of the seen rows by Gram–Schmidt in fractions: no rounding at all."""
    n = matrices[0].graph.n
    hidden = [u for u in range(n) if u not in observers]
    dense = []
    for one in matrices:
        W = [[Fraction(0)] * n for _ in range(n)]
        for (u, v), weight in zip(one.graph.edges().tolist(), one.weights.tolist(), strict=True):
            W[u][v] = W[v][u] = Fraction(weight)
        for u in range(n):
            W[u][u] = 1 - sum(W[u])
        dense.append(W)
    power = [[Fraction(int(i == j)) for j in hidden] for i in hidden]
    rows = []
    for W, who in zip(dense, senders, strict=True):
        rows += [power[hidden.index(w)] for w in who]
        power = [[sum(W[i][k] * power[hidden.index(k)][j] for k in hidden) for j in range(len(hidden))] for i in hidden]
    basis = []
    for row in rows:
        left = list(row)
        for vector, square in basis:
            share = sum(a * b for a, b in zip(left, vector, strict=True)) / square
            left = [a - share * b for a, b in zip(left, vector, strict=True)]
        square = sum(a * a for a in left)
        if square:
            basis.append((left, square))
    factor = [np.nan] * n
    for place, u in enumerate(hidden):
        factor[u] = float(sum(vector[place] ** 2 / square for vector, square in basis))
    return np.array(factor)


@pytest.mark.parametrize("seed", range(6))
def test_factors_of_own_weights_against_fractions(seed, random_graph):
    rng = np.random.default_rng(seed)
    graph = random_graph(int(rng.integers(3, 9)), seed)
    rounds, observers = int(rng.integers(1, 6)), [int(rng.integers(graph.n))]
    senders = graph.neighbors(observers[0]).tolist()
    W = random_matrix(graph, seed, grain=64)
    true = exact_factors([W] * rounds, [senders] * rounds, observers)
    fixed = account(Gossip(graph, rounds=rounds, sigma=1.0, mixing=W), observers)
    assert fixed.claim == "exact"
    np.testing.assert_allclose(fixed.factor, true, atol=1e-7)
    several = [random_matrix(graph, 10 * seed + t, grain=64) for t in range(rounds)]
    true = exact_factors(several, [senders] * rounds, observers)
    for protocol in (VaryingGossip(several, sigma=1.0), VaryingGossip([graph] * rounds, sigma=1.0, mixing=several)):
        np.testing.assert_allclose(account(protocol, observers).factor, true, atol=1e-7)


def test_the_same_weights_by_name_and_as_a_matrix():
    graph = graphs.dataset("karate")
    for name in ("metropolis", "maximum-degree", "lazy-hamilton"):
        W = gossip_matrix(mixing_matrix(graph, name), graph)
        named, own = (Gossip(graph, rounds=3, sigma=1.0, masks=5.0, mixing=mixing) for mixing in (name, W))
        np.testing.assert_allclose(account(own, [3]).factor, account(named, [3]).factor, atol=1e-6)
        assert expected_error(own).total == pytest.approx(expected_error(named).total)
        assert spectral_gap(graph, W) == pytest.approx(spectral_gap(graph, name))
        run, same = (simulate(p, np.linspace(0, 1, 34), seed=1).estimates for p in (named, own))
        np.testing.assert_allclose(run, same, atol=1e-12)
    assert account(own, [3], method="published").factor[0] > 0


def test_it_is_a_frozen_value():
    graph = graphs.ring(5)
    W = random_matrix(graph, 1)
    again = GossipMatrix.from_dict(json.loads(json.dumps(W.to_dict())))
    assert again == W
    assert hash(again) == hash(W)
    assert again.digest == W.digest
    assert pickle.loads(pickle.dumps(W)) == W
    assert random_matrix(graph, 2) != W
    assert W != "metropolis"
    with pytest.raises(AttributeError):
        W.weights = W.weights
    with pytest.raises(ValueError, match="read-only"):
        W.weights[0] = 1.0
    protocols = (
        Gossip(graph, rounds=2, sigma=1.0, mixing=W),
        VaryingGossip([W, W], sigma=1.0),
        GossipDescent(graph, 2, 1, sigma=1.0, step=0.1, mixing=W),
        GossipDescent((graph, graph), 2, 1, sigma=1.0, step=0.1, mixing=(W, again), accelerated=True),
        RandomizedGossip(graph, steps=3, sigma=1.0, mixing=W),
    )
    for protocol in protocols:
        back = type(protocol).from_dict(json.loads(json.dumps(protocol.to_dict())))
        assert back == protocol
        assert hash(back) == hash(protocol)


def test_dense_sparse_and_checked():
    dense = np.array([[0.7, 0.3, 0.0], [0.3, 0.2, 0.5], [0.0, 0.5, 0.5]])
    W = gossip_matrix(dense)
    assert W == gossip_matrix(sparse.csr_array(dense)) == gossip_matrix(dense.tolist())
    assert W.graph == graphs.path(3)
    np.testing.assert_allclose(W.matrix.toarray(), dense)
    assert gossip_matrix(dense, graphs.complete(3)).weights.tolist() == [0.3, 0.0, 0.5]
    tops, bottoms = rational_weights(W.graph, W)
    assert [a / b for a, b in zip(tops, bottoms, strict=True)] == [0.3, 0.3, 0.5, 0.5]
    assert as_mixing(dense, graphs.path(3)) == W
    for wrong, message in (
        (dense + np.diag([0.1, 0, 0]), "row 0 of W sums to 1.1"),
        (np.array([[0.5, 0.5], [0.4, 0.6]]), "symmetric"),
        (np.array([[1.5, -0.5], [-0.5, 1.5]]), "negative"),
        (np.ones((2, 3)), "square"),
        ("banana", "square array"),
    ):
        with pytest.raises(InvalidValue, match=message):
            gossip_matrix(wrong)
    with pytest.raises(InvalidValue, match="is no edge"):
        gossip_matrix(np.full((3, 3), 1 / 3), graphs.path(3))
    with pytest.raises(InvalidValue, match="over another graph"):
        Gossip(graphs.ring(3), rounds=1, sigma=1.0, mixing=W)
    with pytest.raises(InvalidValue, match="unknown mixing 'banana'"):
        Gossip(graphs.ring(3), rounds=1, sigma=1.0, mixing="banana")
    with pytest.raises(InvalidValue, match="whole numbers"):
        Gossip(W.graph, rounds=1, sigma=1.0, mixing=W, grid=0.25)
    with pytest.raises(InvalidValue, match="must be 0 or between"):
        GossipMatrix(graphs.path(2), [1e-70])
    with pytest.raises(InvalidValue, match="rounds are matrices already"):
        VaryingGossip([W], sigma=1.0, mixing="hamilton")
    with pytest.raises(InvalidValue, match="one per graph"):
        VaryingGossip([W.graph] * 3, sigma=1.0, mixing=(W,))


def test_weights_of_an_imported_graph():
    G = nx.Graph()
    G.add_weighted_edges_from([("ann", "bob", 3.0), ("bob", "cy", 1.0), ("cy", "ann", 2.0)])
    W = edge_weights(G)
    assert W.graph.labels == ("ann", "bob", "cy")
    assert dict(zip(map(tuple, W.graph.edges().tolist()), W.weights, strict=True)) == pytest.approx(
        {(0, 1): 3 / 8, (0, 2): 2 / 8, (1, 2): 1 / 7}
    )
    flat = edge_weights(G, scheme="maximum-degree")
    assert flat.weights == pytest.approx(np.array([3, 2, 1]) / 8)
    karate = graphs.dataset("karate")
    np.testing.assert_allclose(
        edge_weights(karate, np.full(karate.m, 7.0)).matrix.toarray(), mixing_matrix(karate).toarray(), atol=1e-15
    )
    G.add_edge("ann", "di")
    with pytest.raises(InvalidValue, match=r"\('ann', 'di'\) has no attribute 'weight'"):
        edge_weights(G)
    with pytest.raises(InvalidValue, match="must be a finite number > 0"):
        edge_weights(graphs.path(2), [-1.0])


def test_own_weights_break_the_symmetry_of_a_cube():
    """One observer no longer stands for all: a calibration must look at every one of them."""
    graph = graphs.hypercube(4)
    assert vertex_transitive(graph)
    W = GossipMatrix(graph, np.random.default_rng(0).uniform(0.01, 0.2, graph.m))
    assert not vertex_transitive(graph, W)
    protocol = Gossip(graph, rounds=3, sigma=1.0, masks=3.0, mixing=W)
    found = calibrate(protocol, 1.0, 1e-6)
    worst = [account(found, [v]).worst_epsilon(1e-6) for v in range(16)]
    assert 0.999 < max(worst) <= 1.0
    assert max(worst) > worst[0] * 1.001


def test_hamilton():
    W = mixing_matrix(graphs.star(4), "hamilton").toarray()
    assert W[0].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert spectral_gap(graphs.hypercube(3), "hamilton") == 0.0
    assert spectral_gap(graphs.hypercube(3), "lazy-hamilton") == pytest.approx(1 / 3)
    with pytest.raises(InvalidValue, match="spectral gap"):
        _ = Gossip(graphs.hypercube(3), rounds=2, sigma=1.0, mixing="hamilton", accelerated=True).chebyshev
    plain = account(Gossip(graphs.ring(9), rounds=2, sigma=1.0, mixing="hamilton"), [0]).factor
    np.testing.assert_allclose(plain[[1, 2, 3]], [1, 1, 0], atol=1e-9)


def weighted(order, weights):
    G = nx.Graph()
    G.add_nodes_from(order)
    G.add_weighted_edges_from((a, b, w) for (a, b), w in weights.items())
    return G


def test_weights_stay_between_the_same_people():
    """Equal graphs may number their people differently: a path read backwards is the same path."""
    pairs = {("ann", "bob"): 8.0, ("bob", "cy"): 1.0}
    first, second = (
        edge_weights(weighted(["ann", "bob", "cy"], pairs)),
        edge_weights(weighted(["cy", "bob", "ann"], pairs)),
    )
    assert first.graph == second.graph
    assert first != second
    assert first == second.in_order_of(first.graph)
    W = first.matrix.toarray()
    common = {"sigma": 1.0, "step": 1.0}
    for made in (
        Gossip(first.graph, rounds=2, sigma=1.0, mixing=second).matrix,
        *VaryingGossip([first, second], sigma=1.0).matrices,
        *VaryingGossip([first.graph, second.graph], sigma=1.0, mixing=second).matrices,
        GossipDescent(first.graph, 1, 1, mixing=second, **common).rounds_of(0).matrix,
        GossipDescent([first.graph, second.graph], 2, 1, mixing=[first, second], **common).rounds_of(1).matrix,
    ):
        np.testing.assert_array_equal(made.toarray(), W)
    with pytest.raises(InvalidValue, match="same parties"):
        Gossip(
            first.graph, rounds=1, sigma=1.0, mixing=edge_weights(weighted("xyz", {("x", "y"): 1.0, ("y", "z"): 1.0}))
        )


def test_descent_on_graphs_that_number_people_differently():
    star = graphs.Graph.from_edges(4, [(0, 1), (0, 2), (0, 3)], labels=["ann", "bob", "cy", "di"])
    other = graphs.Graph.from_edges(4, [(0, 1), (0, 2), (0, 3)], labels=["di", "bob", "cy", "ann"])  # di in the middle
    loss = account(GossipDescent([star, other], 2, 1, sigma=1.0, step=1.0), ["bob"])
    same = graphs.Graph.from_edges(4, [(3, 0), (3, 1), (3, 2)])
    numbered = account(GossipDescent([star, same], 2, 1, sigma=1.0, step=1.0), [1])
    np.testing.assert_array_equal(loss.factor, numbered.factor)
    assert loss.factor[0] < 0.6 < loss.factor[3]  # bob meets ann first, then di


@pytest.mark.parametrize("weight", [2.0**-60, 2.0**-100, 2.0**-199])
def test_tiny_weights_are_seen(weight):
    """In real numbers w·x is x: floating point must not take a faint direction for rounding."""
    W = GossipMatrix(graphs.path(3), [0.25, weight])
    assert account(Gossip(graphs.path(3), rounds=2, sigma=1.0, mixing=W), [0]).factor[2] == pytest.approx(1.0)
    # with fresh noise of about its size it is seen in part
    fresh = Gossip(graphs.path(3), rounds=2, sigma=1.0, mixing=W, refresh=2 * weight**2)
    assert 0.5 <= account(fresh, [0]).factor[2] <= 1


def test_a_last_bit_breaks_a_symmetry():
    graph = graphs.Graph.from_edges(4, [(0, 1), (1, 2), (1, 3)])
    for third, seen in ((0.25, 0.5), (0.25 * (1 + 2.0**-52), 1.0)):
        W = GossipMatrix(graph, [0.25, 0.25, third])
        factor = account(Gossip(graph, rounds=3, sigma=1.0, mixing=W), [0]).factor
        np.testing.assert_allclose(factor[[2, 3]], seen)


def test_products_of_tiny_weights_are_seen():
    graph = graphs.Graph.from_edges(5, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3)])
    W = GossipMatrix(graph, [0.25, 0.25, 0.25, 2.0**-200, 2.0**-150])  # the second direction has size 2⁻³⁴⁸
    np.testing.assert_allclose(account(Gossip(graph, rounds=2, sigma=1.0, mixing=W), [0]).factor[3:], 1.0)
