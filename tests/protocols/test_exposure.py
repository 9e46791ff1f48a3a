"""Who learns most: the worst observer named, for walks on hubs and trees and for any other protocol."""

import json

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.protocols import Gossip, GraphWalkSum, WalkDescent, WalkSum


def test_the_hub_of_a_star_is_named():
    people = graphs.Graph.from_edges(5, [(2, 0), (2, 1), (2, 3), (2, 4)], labels=["ann", "bob", "hub", "cy", "dee"])
    p = WalkDescent(people, steps=20, sigma=5.0, step=0.1)
    found = netdp.who_learns_most(p, 1e-5)
    assert found.hub == 2
    assert found.worst == pytest.approx(netdp.account(p, ["hub"]).worst_epsilon(1e-5))
    assert found.rows(1)[0]["observer"] == "hub"
    assert found.rows(1)[0]["links"] == 4
    assert str(found).startswith("hub learns most: ε = ")
    assert (np.diff([row["epsilon"] for row in found.rows(5)]) <= 0).all()
    assert json.loads(json.dumps(found.to_dict()))["rows"][0]["observer"] == "hub"
    some = netdp.who_learns_most(p, 1e-5, observers=["ann", "bob"])
    assert (some.observers, some.epsilons.shape) == ((0, 1), (2, 5))
    assert np.isnan(some.epsilons[0, 0])


def test_in_a_tree_neighbours_learn_most():
    tree = graphs.balanced_tree(2, 2)
    found = netdp.who_learns_most(GraphWalkSum(tree, steps=35, sigma=5.0), 1e-5, observers=[0, 1, 6])
    assert found.hub == 1  # three links: its leaves have no other
    assert found.victim in tree.neighbors(found.hub)


def test_any_protocol_will_do():
    gossip = Gossip(graphs.star(4), rounds=2, sigma=3.0)
    assert netdp.who_learns_most(gossip, 1e-5).worst == pytest.approx(
        float(np.nanmax(netdp.pairwise(gossip).epsilon(1e-5)))
    )
    alike = netdp.who_learns_most(WalkSum(6, steps=12, sigma=3.0), 1e-5, observers=[2, 3])
    assert alike.degrees == ()
    assert alike.learns[0] == pytest.approx(alike.learns[1])
    with pytest.raises(Unsupported, match="name those of interest"):
        netdp.who_learns_most(WalkSum(1000, steps=2000, sigma=3.0), 1e-5)
    with pytest.raises(InvalidValue):
        netdp.who_learns_most(gossip, 0.0)
