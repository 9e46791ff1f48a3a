"""Guarantees against any f parties: never below any coalition, and not far above the worst.

Proof: docs/proofs/coalitions.md#any-coalition.
"""

import itertools
import json

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip import coalitions as gossip_bound
from netdp.privacy.observers import Observers
from netdp.protocols.accounting import account
from netdp.protocols.coalitions import WorstCoalition, dominating, everybody_else, general

DELTAS = (1e-4,)
PAIRS = [graphs.Graph.from_edges(5, [(0, 1), (2, 3)]), graphs.ring(5)]


def worst_of_all(p, f, delta):
    """The largest ε about every party over all coalitions, by the accountant of named parties."""
    worst = np.full(p.n, -np.inf)
    for members in itertools.combinations(range(p.n), f):
        worst = np.fmax(worst, account(p, [*p.roles, *members]).epsilon(delta))
    return worst


SMALL = {
    "gossip, masks": netdp.Gossip(graphs.grid(2, 3), rounds=4, sigma=2.0, masks=3.0),
    "gossip, masks and refresh": netdp.Gossip(graphs.star(5), rounds=3, sigma=2.0, masks=3.0, refresh=0.5),
    "gossip": netdp.Gossip(graphs.path(5), rounds=3, sigma=2.0, refresh=1.0),
    "gossip on a grid": netdp.Gossip(graphs.ring(5), rounds=3, sigma=2.0, refresh=1.0, grid=2.0**-30),
    "descent": netdp.GossipDescent(graphs.grid(2, 3), 2, 2, sigma=2.0, step=0.1, masks=4.0),
    "descent on changing graphs": netdp.GossipDescent(tuple(PAIRS), 2, 2, sigma=2.0, step=0.1, masks=4.0),
    "varying": netdp.VaryingGossip(PAIRS, sigma=2.0),
    "masked sum": netdp.MaskedSum(graphs.ring(6), sigma=1.0, masks=graphs.grid(2, 3)),
    "masked sum, all pads": netdp.MaskedSum(graphs.ring(5), sigma=1.0, attempts=2, absent=1),
    "ring": netdp.RingSum(5, 2, sigma=2.0, noise="distributed"),
    "ring, single noise": netdp.RingSum(5, 3, sigma=2.0),
    "ring on a grid": netdp.RingSum(4, 1, sigma=2.0, noise="distributed", grid=1.0),
    "ring histogram": netdp.RingHistogram(5, 2, domain=3, gamma=0.5),
    "path": netdp.PathSum(4, [[0, 1, 2, 3, 0, 2, 1]], sigma=2.0, closing=True),
    "walk": netdp.WalkSum(5, 8, sigma=2.0),
    "walk histogram": netdp.WalkHistogram(4, 5, domain=3, gamma=0.5),
    "central": netdp.Central(4, sigma=2.0),
    "shuffle": netdp.Shuffle(graphs.complete(4), rounds=5, epsilon0=1.0),
}


@pytest.mark.parametrize("f", [1, 2, 3])
@pytest.mark.parametrize("p", SMALL.values(), ids=SMALL)
def test_it_covers_every_coalition(p, f):
    loss = account(p, colluders=f)
    assert loss.observers == Observers(roles=p.roles, any_of=f)
    assert loss.is_certified
    for delta in DELTAS:
        found = loss.epsilon(delta)
        assert not np.isnan(found).any()
        assert (found >= worst_of_all(p, f, delta) * (1 - 1e-6)).all()  # two margins of rounding differ
    assert any("who colludes is fixed beforehand" in text for text in loss.assumptions)
    assert any("any-coalition" in text for text in loss.references) or p.kind in {"central", "masked-sum"}
    json.dumps(loss.to_dict(delta=1e-6), allow_nan=False)


EXACT = ["gossip, masks", "gossip, masks and refresh", "gossip", "varying", "ring", "ring, single noise", "path"]


@pytest.mark.parametrize("f", [1, 2, 3])
@pytest.mark.parametrize("name", EXACT)
def test_where_it_is_exact_some_coalition_attains_it(name, f):
    p = SMALL[name]
    loss = account(p, colluders=f)
    assert loss.claim.value == "exact"
    np.testing.assert_allclose(loss.epsilon(1e-4), worst_of_all(p, f, 1e-4), rtol=1e-6)
    assert loss.found.attained
    assert len(loss.found.observers.parties) <= f
    assert loss.found.epsilon(1e-4) == pytest.approx(loss.worst_epsilon(1e-4), rel=1e-6)
    named = account(p, loss.found.observers.parties)
    assert named.epsilon(1e-4)[loss.found.target] == pytest.approx(loss.found.epsilon(1e-4), rel=1e-9)


@pytest.mark.parametrize("f", [1, 2, 3])
@pytest.mark.parametrize(
    "graph", [graphs.grid(2, 4), graphs.regular(9, 4, seed=1), graphs.star(7), graphs.hypercube(3)]
)
def test_the_bound_by_currents_is_never_below_and_close_where_rounds_are_many(graph, f, monkeypatch):
    monkeypatch.setattr(gossip_bound, "_TRIED", 0)
    gossip_bound._masked.cache_clear()
    p = netdp.Gossip(graph, rounds=15, sigma=1.0, masks=20.0)
    loss = account(p, colluders=f)
    truth = np.full(graph.n, -np.inf)
    for members in itertools.combinations(range(graph.n), f):
        truth = np.fmax(truth, account(p, members).factor)
    assert (loss.factor >= truth * (1 - 1e-9)).all()
    assert (loss.factor <= truth * 1.25).all()
    assert loss.found.epsilon(1e-6) <= loss.worst_epsilon(1e-6) * (1 + 1e-9)
    gossip_bound._masked.cache_clear()


def test_all_neighbours_undo_the_masks_and_one_fewer_does_not():
    p = netdp.Gossip(graphs.hypercube(5), rounds=20, sigma=1.0, masks=100.0)
    assert account(p, colluders=4).worst < 0.2
    all_five = account(p, colluders=5)
    assert all_five.claim.value == "exact"
    assert all_five.worst == 1.0
    near = set(graphs.hypercube(5).neighbors(all_five.found.target).tolist())
    assert set(all_five.found.observers.parties) == near
    assert "at once" in all_five.found.note


def test_a_dominating_set_is_told():
    loss = account(netdp.Gossip(graphs.star(9), rounds=2, sigma=1.0), colluders=1)
    assert "party 0 is next to everybody else" in loss.found.note
    assert "7 parties would" not in loss.found.note
    ring = account(netdp.Gossip(graphs.ring(9), rounds=2, sigma=1.0), colluders=2)
    assert "3 parties would be next to everybody else" in ring.found.note
    for graph in (graphs.grid(4, 5), graphs.regular(20, 3, seed=2)):
        chosen = set(dominating([graph.neighbors(v) for v in range(graph.n)]))
        assert all(v in chosen or chosen & set(graph.neighbors(v).tolist()) for v in range(graph.n))


def test_two_neighbours_on_a_ring_see_what_all_others_see():
    p = SMALL["ring"]
    two, four = account(p, colluders=2), account(p, colluders=4)
    np.testing.assert_allclose(two.epsilon(1e-6), four.epsilon(1e-6), rtol=1e-12)
    for u in range(5):
        others = [v for v in range(5) if v != u]
        assert account(p, others).epsilon(1e-6)[u] == pytest.approx(two.epsilon(1e-6)[u], rel=1e-12)
    assert np.isinf(account(SMALL["ring, single noise"], colluders=2).worst_epsilon(1e-6))


def test_a_protocol_without_a_bound_of_its_own_is_tried():
    A = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1]])
    view = netdp.LinearGaussianView(4, A, 2 * A, [(1,), (2,), (3,)])
    loss = account(view, colluders=2)
    np.testing.assert_allclose(loss.epsilon(1e-4), worst_of_all(view, 2, 1e-4), rtol=1e-9)


def test_too_many_coalitions_are_bounded_by_everybody_else(monkeypatch):
    from netdp.protocols import coalitions as search

    p = SMALL["path"]
    monkeypatch.setattr(search, "affordable", lambda *_, **__: False)
    loss = general(p, 2, {}, None)
    assert loss.claim.value == "upper"
    everybody = everybody_else(4, search.accountant(p, {}))
    np.testing.assert_allclose(loss.epsilon(1e-6), everybody.epsilon(1e-6))
    assert (loss.epsilon(1e-6) >= worst_of_all(p, 2, 1e-6) * (1 - 1e-9)).all()
    assert loss.found.epsilon(1e-6) <= loss.worst_epsilon(1e-6)
    monkeypatch.setattr(search, "MOST_TRIED", 3)
    with pytest.raises(Unsupported, match="any 2 of 4 parties: PathSum has no bound that holds for all of them"):
        general(p, 2, {}, None)


def test_more_colluders_never_help_privacy():
    for name in ("gossip, masks", "descent", "masked sum", "ring", "walk", "path"):
        p = SMALL[name]
        levels = [account(p, colluders=f).epsilon(1e-4) for f in range(1, 4)]
        for less, more in itertools.pairwise(levels):
            assert (more >= less * (1 - 1e-3)).all()


def test_what_was_found_with_the_curator_is_a_lower_bound():
    p = netdp.Shuffle(graphs.ring(5), rounds=40, epsilon0=1.0)
    loss = account(p, "curator", colluders=1)
    assert loss.observers.words == "the curator and any single party together"
    assert loss.found.attained
    # the first hop goes to the one neighbour with probability 1/2; binary response: (e^ε₀ − e^ε)/(e^ε₀ + 1)
    e = np.exp(1.0)
    assert loss.found.delta(0.5) == pytest.approx(0.5 * (e - np.exp(0.5)) / (e + 1), rel=1e-9)
    assert loss.found.epsilon(1e-6) <= loss.worst_epsilon(1e-6) <= 1.0
    both = account(p, colluders=2)
    assert both.found.delta(0.5) == pytest.approx((e - np.exp(0.5)) / (e + 1), rel=1e-9)
    assert account(p, Observers(roles=("curator",), any_of=2)).worst_epsilon(1e-6) == both.worst_epsilon(1e-6)


def test_names_are_used():
    named = graphs.Graph.from_edges(3, [(0, 1), (1, 2)], labels=["Ann", "Bob", "Cy"])
    loss = account(netdp.Gossip(named, rounds=2, sigma=1.0), colluders=1)
    assert "party Bob learns epsilon" in str(loss) or "party Ann learns epsilon" in str(loss)
    assert loss.to_dict(1e-6)["found"]["name"] in {"Ann", "Bob", "Cy"}
    assert loss.to_dict()["observers"] == {"any_of": 1, "roles": []}


def test_after_a_run():
    p = netdp.RandomizedGossip(graphs.ring(6), steps=4, sigma=2.0)
    edges = p.draw(1)
    loss = account(p, colluders=1, transcript=edges)
    heard = np.isin(np.arange(6), edges)
    assert loss.claim.value == "exact"
    np.testing.assert_array_equal(loss.factor, heard.astype(float))
    worst = np.zeros(6)
    for v in range(6):
        worst = np.fmax(worst, account(p, [v], transcript=edges).factor)
    np.testing.assert_allclose(loss.factor, worst, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"colluders": 0}, "colluders must be a whole number ≥ 1"),
        ({"colluders": 5}, "colluders=5 leaves nobody of 5 parties"),
        ({"colluders": True}, "colluders must be a whole number"),
        ({"colluders": 2, "observers": [0]}, "give observers or colluders, not both"),
        ({"colluders": 2, "banana": 1}, "takes no option 'banana'"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(InvalidValue, match=message):
        account(SMALL["gossip"], **arguments)
    with pytest.raises(Unsupported, match="method='published' knows named observers only"):
        account(SMALL["gossip"], colluders=2, method="published")


def test_observers_of_both_kinds_contradict():
    with pytest.raises(InvalidValue, match="any_of=2 stands for parties that nobody names"):
        Observers((0,), any_of=2)
    with pytest.raises(InvalidValue, match="whole number ≥ 0"):
        Observers(any_of=-1)
    with pytest.raises(InvalidValue, match="no coalition was tried"):
        WorstCoalition(3).guarantee()


@pytest.mark.parametrize("f", [1, 2])
@pytest.mark.parametrize(
    "p",
    [
        netdp.WalkHistogram(3, 5, domain=3, gamma=0.5, weights=(0.2, 0.5, 0.3)),
        netdp.RingSum(5, 2, sigma=2.0, noise="distributed", law="laplace"),
        netdp.SecretRingSum(5, 2, sigma=2.0),
        netdp.RingDescent(5, 2, sigma=2.0, step=0.1),
    ],
    ids=lambda p: p.kind,
)
def test_the_worst_of_uneven_draws_and_other_noises(p, f):
    loss = account(p, colluders=f)
    for delta in DELTAS:
        assert (loss.epsilon(delta) >= worst_of_all(p, f, delta) * (1 - 1e-3)).all()  # two tables of chords
    np.testing.assert_allclose(loss.worst_epsilon(1e-4), worst_of_all(p, f, 1e-4).max(), rtol=0.02)


def test_weights_of_ones_own_break_the_symmetry_of_a_ring():
    """One coalition stands for all only if the weights are as symmetric as the graph."""
    weights = np.zeros((6, 6))
    for u, share in enumerate((0.45, 0.05, 0.3, 0.1, 0.4, 0.02)):
        weights[u, (u + 1) % 6] = weights[(u + 1) % 6, u] = share
    np.fill_diagonal(weights, 1 - weights.sum(axis=1))
    p = netdp.Gossip(graphs.ring(6), rounds=3, sigma=2.0, masks=1.0, refresh=2.0, mixing=weights)
    loss = account(p, colluders=1)
    truth = worst_of_all(p, 1, 1e-4)
    assert truth.max() - truth.min() > 1e-3
    np.testing.assert_allclose(loss.epsilon(1e-4), truth, rtol=1e-9)
