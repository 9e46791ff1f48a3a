"""`netdp.simulate` runs descents and shuffles, too, with the bits of the functions that are made for them."""

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.simulate import collect, collect_relayed, collect_with_faults
from netdp.learn import LogisticParties, train, train_ring, train_walk
from netdp.mechanisms import Laplace, RandomizedResponse

N = 6
ROWS = np.random.default_rng(1).normal(size=(30, 3))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
USERS = LogisticParties.deal(ROWS, np.sign(ROWS[:, 0]), N, 0)
RING = graphs.ring(N)
DESCENTS = [
    netdp.GossipDescent(RING, 3, gossip_rounds=2, sigma=0.5, step=0.1, expansion=1.1),
    netdp.LocalDescent(N, 3, sigma=0.5, step=0.1),
    netdp.CentralDescent(N, 3, sigma=0.5, step=0.1),
    netdp.MaskedDescent(RING, 3, sigma=0.5, step=0.1, dimension=3),
]


@pytest.mark.parametrize("protocol", DESCENTS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("average", ["last", "weighted"])
def test_descents_are_trained(protocol, average):
    ours = netdp.simulate(protocol, USERS, seed=7, average=average)
    np.testing.assert_array_equal(ours.models, train(protocol, USERS, 7, average=average).models)
    np.testing.assert_array_equal(ours.model, ours.models[0])
    assert not np.array_equal(ours.models, netdp.simulate(protocol, USERS, seed=8, average=average).models)


def test_descents_of_a_token_are_trained():
    ring, walk = (
        netdp.RingDescent(N, rounds=4, sigma=0.1, step=0.5),
        netdp.WalkDescent(N, steps=40, sigma=0.1, step=0.5),
    )
    for ours, theirs in (
        (netdp.simulate(ring, USERS, seed=3), train_ring(ring, USERS, 3)),
        (netdp.simulate(walk, USERS, seed=3, watch_every=10), train_walk(walk, USERS, 3, watch_every=10)),
    ):
        np.testing.assert_array_equal(ours.model, theirs.model)
        np.testing.assert_array_equal(ours.contributions, theirs.contributions)


def test_a_secret_graph_is_drawn_by_the_seed():
    secret = netdp.ErdosRenyiDescent(N, 0.9, 2, gossip_rounds=1, sigma=0.5, step=0.1)
    ours = netdp.simulate(secret, USERS, seed=5)
    np.testing.assert_array_equal(ours.models, train(secret.draw(5), USERS, 5).models)


def test_shuffles_are_collected():
    graph = graphs.regular(200, 8, 0)
    values = np.random.default_rng(0).uniform(-1, 2, 200)
    laplace, clipped = Laplace.interval(0.0, 1.0, 1.0), np.clip(values, 0, 1)[:, None]
    plain, single = (netdp.Shuffle(graph, rounds=20, epsilon0=1.0, reporting=how) for how in ("all", "single"))
    faulty = netdp.FaultyShuffle(graph, rounds=20, epsilon0=1.0, outages=0.1)
    relayed = netdp.RelayedShuffle(graph, rounds=20, epsilon0=1.0, cover=4)
    for protocol, theirs in (
        (plain, collect(plain, laplace, clipped, 4)),
        (single, collect(single, laplace, clipped, 4, null=[0.5])),
        (faulty, collect_with_faults(faulty, laplace, clipped, 4)),
        (relayed, collect_relayed(relayed, laplace, clipped, 4)),
    ):
        np.testing.assert_array_equal(netdp.simulate(protocol, values, seed=4, bounds=(0, 1)).estimate, theirs.estimate)
    coins, answers = RandomizedResponse(2, 1.0), (values > 0.5).astype(int)
    ours = netdp.simulate(plain, answers, seed=4, mechanism=coins)
    np.testing.assert_array_equal(ours.estimate, collect(plain, coins, answers, 4).estimate)


def test_what_does_not_belong_is_refused_with_the_way_out():
    shuffle = netdp.Shuffle(graphs.regular(20, 4, 0), rounds=5, epsilon0=1.0)
    with pytest.raises(Unsupported, match=r"use bounds=\(lo, hi\).*or mechanism="):
        netdp.simulate(shuffle, np.zeros(20), seed=0)
    with pytest.raises(InvalidValue, match="nothing to record"):
        netdp.simulate(shuffle, np.zeros(20), seed=0, bounds=1.0, record=[0])
    with pytest.raises(InvalidValue, match="leave one of the two out"):
        netdp.simulate(shuffle, np.zeros(20), seed=0, bounds=1.0, mechanism=Laplace.interval(0, 1, 1.0))
    with pytest.raises(InvalidValue, match="LocalDescent trains a model and takes no record"):
        netdp.simulate(DESCENTS[1], USERS, seed=0, record=[0])
    with pytest.raises(InvalidValue, match="training of LocalDescent takes no option 'watch_every'"):
        netdp.simulate(DESCENTS[1], USERS, seed=0, watch_every=3)
    with pytest.raises(InvalidValue, match="takes no option 'average'"):
        netdp.simulate(netdp.Local(3, sigma=1.0), np.zeros(3), seed=0, average="last")
    with pytest.raises(InvalidValue, match="has noise of its own"):
        netdp.simulate(netdp.Local(3, sigma=1.0), np.zeros(3), seed=0, mechanism=Laplace.interval(0, 1, 1.0))
