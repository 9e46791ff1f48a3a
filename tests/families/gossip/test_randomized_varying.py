"""Randomized and changing gossip as values: checks, descriptions, draws."""

import json

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.protocols import ErdosRenyiGossip, RandomizedGossip, VaryingGossip

RING = graphs.ring(6)
MADE = [
    RandomizedGossip(RING, steps=9, sigma=0.5, sensitivity=2.0, mixing="lazy-metropolis"),
    RandomizedGossip(RING, steps=9, sigma=0.5, probabilities=[0.1] * 6),
    VaryingGossip([RING, graphs.star(6)], sigma=2.0, mixing="maximum-degree"),
    ErdosRenyiGossip(n=6, p=0.5, rounds=3, sigma=1.0, varying=True),
]


@pytest.mark.parametrize("protocol", MADE)
def test_descriptions_come_back(protocol):
    text = json.dumps(protocol.to_dict())
    again = type(protocol).from_dict(json.loads(text))
    assert again == protocol
    assert hash(again) == hash(protocol)
    assert protocol.local_mu == protocol.sensitivity / protocol.sigma
    with pytest.raises(InvalidValue, match="unknown fields"):
        type(protocol).from_dict({**protocol.to_dict(), "speed": 3})
    with pytest.raises(InvalidValue, match="describes the protocol 'walk'"):
        type(protocol).from_dict({**protocol.to_dict(), "protocol": "walk"})
    assert protocol.replace(sigma=9.0).sigma == 9.0


def test_default_probabilities():
    """p = 2W/n sums to 1 − tr(W)/n; every party wakes with probability 2(1 − W_vv)/n."""
    protocol = RandomizedGossip(graphs.dataset("karate"), steps=1, sigma=1.0)
    from netdp.graphs.mixing import mixing_matrix

    diagonal = mixing_matrix(protocol.graph).diagonal()
    assert protocol.edge_probabilities.sum() == pytest.approx(1 - diagonal.mean())


def test_edges_follow_their_probabilities():
    chances = (0.05, 0.1, 0.15, 0.2, 0.0, 0.25)
    protocol = RandomizedGossip(RING, steps=100_000, sigma=1.0, probabilities=chances)
    drawn = protocol.draw(0)
    for p, edge in zip(chances, RING.edges(), strict=True):
        share = (drawn == edge).all(axis=1).mean()
        assert abs(share - p) <= 5 * np.sqrt(p * (1 - p) / 1e5)
    assert abs((drawn == -1).all(axis=1).mean() - 0.25) < 0.01


def test_refusals():
    with pytest.raises(InvalidValue, match="steps must be"):
        RandomizedGossip(RING, steps=0, sigma=1.0)
    with pytest.raises(InvalidValue, match="that is 6"):
        RandomizedGossip(RING, steps=1, sigma=1.0, probabilities=[0.1])
    with pytest.raises(InvalidValue, match=r"edge \(0, 5\).*-0.1"):
        RandomizedGossip(RING, steps=1, sigma=1.0, probabilities=[0.1, -0.1, 0.1, 0.1, 0.1, 0.1])
    with pytest.raises(InvalidValue, match=r"sum to 1\.2"):
        RandomizedGossip(RING, steps=1, sigma=1.0, probabilities=[0.2] * 6)
    with pytest.raises(InvalidValue, match="spanning tree"):
        RandomizedGossip(RING, steps=1, sigma=1.0, probabilities=[0.2, 0.2, 0.0, 0.0, 0.2, 0.2])
    with pytest.raises(GraphError, match="connected"):
        RandomizedGossip(Graph.from_edges(3, [(0, 1)]), steps=1, sigma=1.0)
    with pytest.raises(InvalidValue, match="use Gossip"):
        VaryingGossip(RING, sigma=1.0)
    with pytest.raises(InvalidValue, match="empty"):
        VaryingGossip([], sigma=1.0)
    with pytest.raises(InvalidValue, match=r"n=5, m=5\) must have the same parties as"):
        VaryingGossip([RING, graphs.ring(5)], sigma=1.0)
    with pytest.raises(GraphError, match="union"):
        VaryingGossip([Graph.from_edges(4, [(0, 1)]), Graph.from_edges(4, [(2, 3)])], sigma=1.0)
    with pytest.raises(InvalidValue, match=r"0 < p ≤ 1, got 1\.5"):
        ErdosRenyiGossip(n=4, p=1.5, rounds=1, sigma=1.0)
    with pytest.raises(InvalidValue, match="accelerated=False or varying=False"):
        ErdosRenyiGossip(n=4, p=0.5, rounds=1, sigma=1.0, accelerated=True, varying=True)
    with pytest.raises(Unsupported, match="disconnected"):
        ErdosRenyiGossip(n=40, p=0.001, rounds=1, sigma=1.0).draw(0)


def test_draws():
    protocol = ErdosRenyiGossip(n=12, p=0.2, rounds=6, sigma=1.0)
    assert protocol.draw(1) == protocol.draw(1)
    assert protocol.draw(1) != protocol.draw(2)
    assert all(protocol.draw(seed).graph.is_connected for seed in range(20))
    varying = protocol.replace(varying=True).draw(0)
    assert varying.rounds == 6
    assert len({graph.digest for graph in varying.graphs}) == 6
    assert not all(graph.is_connected for graph in varying.graphs)


def test_rounds_are_matched_by_names():
    """Graphs of the same people that number them differently: ann talks to bob, then bob to cy."""
    first = Graph.from_edges(3, [(0, 1)], labels=["ann", "bob", "cy"])
    second = Graph.from_edges(3, [(0, 2)], labels=["cy", "ann", "bob"])
    protocol = VaryingGossip([first, second], sigma=1.0)
    assert protocol.graph.edges().tolist() == [[0, 1], [1, 2]]
    unnamed = VaryingGossip([Graph.from_edges(3, [(0, 1)]), first, second], sigma=1.0)
    assert unnamed.graph.edges().tolist() == [[0, 1], [1, 2]]
    assert unnamed.graph.labels == ("ann", "bob", "cy")
    with pytest.raises(InvalidValue, match="which has no 'dan'"):
        VaryingGossip([first, Graph.from_edges(3, [(0, 1)], labels=["ann", "bob", "dan"])], sigma=1.0)
