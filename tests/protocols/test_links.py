"""Random links: what is promised of a graph with links, and how many are proposed. Proof: docs/proofs/privacy.md#random-links."""

import itertools
import json
import math
import os

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.gossip.plan import gossip_rounds
from netdp.families.shuffle.plan import plan_rounds
from netdp.graphs import Graph, with_links
from netdp.protocols import Gossip, MaskedSum, Shuffle, account
from netdp.protocols.links import LinkAdvice, LinkCost, Linked, advise_links

E0 = math.log(3)
RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])
EPSILONS = np.array([0.0, 0.1, 0.25, 0.5, 0.8])


# ── the draw as a part of what is seen ────────────────────────────────────────────────────────────────────────────────


def every_ring_over(base):
    """The graph with each of the (n − 1)!/2 rings laid over it, all equally likely."""
    known = set(map(tuple, base.edges().tolist()))
    for rest in itertools.permutations(range(1, base.n)):
        if rest[0] < rest[-1]:
            order = (0, *rest)
            ring = {tuple(sorted(pair)) for pair in zip(order, (*rest, 0), strict=True)}
            yield Graph.from_edges(base.n, sorted(known | ring))


def law(protocol, data):
    """The curator's view: the heap of (place, response), all walks and responses enumerated."""
    places = np.linalg.matrix_power(protocol.transition.toarray(), protocol.rounds)
    found = {(): 1.0}
    for u, value in enumerate(data):
        grown = {}
        for held, mass in found.items():
            for place, said in itertools.product(range(protocol.n), (0, 1)):
                chance = places[u, place] * RESPONSE[value, said]
                key = tuple(sorted((*held, (place, said))))
                grown[key] = grown.get(key, 0.0) + mass * chance
        found = grown
    return found


def deltas(first, second):
    keys = first.keys() | second.keys()
    p, q = (np.array([one.get(key, 0.0) for key in keys]) for one in (first, second))
    grow = np.exp(EPSILONS)[:, None]
    return np.array([np.maximum(p - grow * q, 0).sum(axis=1), np.maximum(q - grow * p, 0).sum(axis=1)])


@pytest.mark.parametrize("rest", [(0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 1, 1)])
def test_the_draw_may_be_seen(rest):
    """What is certified for each graph bounds the loss given that graph, and the largest bounds that of (links, view)."""
    protocols = [Shuffle(one, 2, E0, laziness=0.2) for one in every_ring_over(graphs.path(4))]
    certified = np.array([[float(account(p, "curator").delta(e)[0]) for e in EPSILONS] for p in protocols])
    apart = [deltas(law(p, (0, *rest)), law(p, (1, *rest))) for p in protocols]
    assert (np.array(apart) <= certified[:, None] + 1e-12).all()
    joint = [
        {
            (g, key): mass / len(protocols)
            for g, p in enumerate(protocols)
            for key, mass in law(p, (value, *rest)).items()
        }
        for value in (0, 1)
    ]
    assert deltas(*joint) == pytest.approx(np.mean(apart, axis=0), abs=1e-12)
    assert (deltas(*joint) <= certified.max(axis=0) + 1e-12).all()


def test_links_that_look_at_the_data_give_it_away():
    """One of two graphs, by the first user's value: both certified, and everything is lost."""
    first, second = itertools.islice(every_ring_over(graphs.path(4)), 1, 3)
    seen = [
        {(g, key): mass for key, mass in law(Shuffle(one, 2, E0, laziness=0.2), (g, 0, 0, 0)).items()}
        for g, one in enumerate((first, second))
    ]
    assert deltas(*seen) == pytest.approx(np.ones((2, len(EPSILONS))))
    assert all(float(account(Shuffle(g, 2, E0, laziness=0.2), "curator").delta(0.0)[0]) < 0.4 for g in (first, second))


def test_one_draw_says_nothing_of_another():
    """What party v learns of party 0 is exact on each graph: a stranger under one seed is a neighbour under another."""
    plain = graphs.path(12)
    drawn = [with_links(plain, 1, seed) for seed in range(60)]
    near = next(graph for graph in drawn if graph.has_edge(0, 11))
    far = next(graph for graph in drawn if graph.distances(11)[0] > 2)
    loss, less = (account(Gossip(graph, 2, 2.0), [11]).epsilon(1e-6)[0] for graph in (near, far))
    assert loss > 1 > 1e-9 > less  # two rounds reach two hops


# ── advice ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_advice_is_what_the_planners_say():
    graph = graphs.grid(5, 5)
    quick = {"max_rounds": 25}
    advice = advise_links(graph, 1.0, 1e-2, epsilon0=1.0, most=2, gossip=quick, shuffle={"laziness": 0.1, "share": 0.1})
    assert [row.rings for row in advice.rows] == list(range(len(advice.rows)))
    for row in advice.rows:
        assert row.graph == with_links(graph, row.rings, 0)
        assert row.links == pytest.approx(2 * (row.graph.m - graph.m) / graph.n)
        for name, cost in row.costs.items():
            assert isinstance(cost, LinkCost)
            if name == "shuffle":
                again = plan_rounds(row.graph, 1.0, 1e-2, laziness=0.1, share=0.1)
                assert (cost.rounds, cost.sent) == (again.protocol.rounds, again.hops)
            elif name == "flood":
                assert cost.rounds == MaskedSum(row.graph, sigma=1.0).rounds
                assert cost.sent == 2 * row.graph.m
            else:
                again = netdp.families.gossip.plan.plan_gossip(row.graph, 1.0, 1e-2, kinds=("masked",), **quick).best
                assert (cost.rounds, cost.error) == (again.protocol.rounds, pytest.approx(again.rmse))
    assert json.loads(json.dumps(advice.to_dict(), allow_nan=False))["proposed"] == advice.proposed
    assert "certified for the graph with these very links" in str(advice)


def test_where_it_stops():
    """Proposed is the first number of rings after which another saves less than a quarter; its row is kept."""
    advice = advise_links(graphs.path(600), protocols=["gossip", "flood"])
    for name, rings in advice.proposed.items():
        rounds = [row.costs[name].rounds for row in advice.rows if name in row.costs]
        assert len(rounds) == rings + 2
        assert all(b <= 0.75 * a for a, b in itertools.pairwise(rounds[: rings + 1]))
        assert rounds[rings + 1] > 0.75 * rounds[rings]
    assert advice.cost("flood", 0).rounds == 599
    assert advice.cost("flood", advice.proposed["flood"]).rounds < 12
    assert advice.cost("gossip", 99) is None
    few = advise_links(graphs.path(600), protocols=["flood"], most=1)
    assert few.proposed == {"flood": 1}
    assert [row.rings for row in few.rows] == [0, 1]  # no graph with more rings than `most` is drawn


def test_links_that_buy_nothing_are_not_proposed():
    advice = advise_links(graphs.complete(12), protocols=["flood", "gossip"])
    assert advice.proposed == {"flood": 0, "gossip": 0}
    assert "flood: no links, 1 round: another ring would leave 1 round" in advice.sentences()


def test_links_connect_what_is_apart_and_mix_what_is_bipartite():
    apart = Graph.from_edges(300, [(u, u + 1) for u in range(0, 300, 2)])
    advice = advise_links(apart, protocols=["flood", "gossip", "shuffle"], delta=1e-3, most=1)
    first = advice.rows[0].costs
    assert all(isinstance(cost, str) for cost in first.values())
    assert "needs a connected graph" in first["flood"]
    assert "needs a connected graph" in first["gossip"]
    assert advice.proposed["flood"] >= 1
    assert "without links: " in advice.sentences()[0]
    assert advice.to_dict()["rows"][0]["flood"]["refused"]


def test_a_party_at_the_mercy_of_its_only_neighbour():
    """A leaf can be hidden from its neighbour by nobody; one ring is enough to hide it."""
    advice = advise_links(graphs.parse("karate"), protocols=["gossip"], most=1)
    before, after = advice.cost("gossip", 0), advice.cost("gossip", 1)
    assert after.error < before.error / 5
    assert "an error of" in advice.sentences()[0]


def test_too_few_to_shuffle():
    advice = advise_links(graphs.ring(9), protocols=["shuffle"])
    assert advice.proposed == {"shuffle": None}
    assert "too few" in advice.sentences()[0]


def test_gossip_rounds_of_a_gap():
    for gap in (1e-6, 0.01, 0.3, 0.9):
        rounds = gossip_rounds(gap)
        assert (1 - gap) ** rounds <= 1e-3 * (1 + 1e-6)
        assert (1 - gap) ** (rounds - 1) > 1e-3
    assert gossip_rounds(0.0) == math.inf


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocols": ["shufle"]}, "unknown protocol 'shufle'"),
        ({"protocols": []}, "for which protocols"),
        ({"most": 0}, "most"),
        ({"most": 100}, "more than 64"),
        ({"seed": -1}, "seed of the links"),
        ({"worth": 0.0}, "worth"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"protocols": ["shuffle"], "shuffle": {"laziness": 2.0}}, "laziness"),
    ],
)
def test_bad_questions_are_refused(options, message):
    with pytest.raises(InvalidValue, match=message):
        advise_links(graphs.ring(9), **options)


def test_rows_are_plain_data():
    row = Linked(1, graphs.ring(5), 2.0, {"flood": LinkCost(2, 10.0), "shuffle": "no"})
    said = LinkAdvice((row,), 0, {"flood": 1}).to_dict()
    assert said["rows"][0]["flood"] == {"rounds": 2, "sent_per_party": 10.0, "rmse": None}
    assert said["rows"][0]["shuffle"] == {"refused": "no"}


@pytest.mark.skipif(not os.environ.get("NETDP_DATA"), reason="NETDP_DATA is not set: no data of real networks")
def test_a_real_network_is_cured_by_one_ring():
    """Twitch, maths section 10: certified hops to a trusted shuffler's ε fall to less than half."""
    from netdp.errors import DataNotFound

    try:
        twitch = graphs.dataset("twitch")
    except DataNotFound as absent:
        pytest.skip(str(absent))
    linked = plan_rounds(with_links(twitch, 1, 0), 1.0, 1e-6)
    assert linked.protocol.rounds <= 40  # 86 without
    assert linked.promised <= 1.01 * linked.uniform
