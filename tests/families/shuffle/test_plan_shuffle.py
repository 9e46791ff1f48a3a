"""Planning of network shuffling: the fewest rounds, the least noise."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.families.shuffle.account.mixing import fewest_rounds, separation
from netdp.families.shuffle.error import collection_error, largest_error
from netdp.families.shuffle.plan import calibrate_epsilon0, plan_relayed, plan_rounds, plan_with_faults
from netdp.mechanisms import RandomizedResponse
from netdp.privacy.clones import Heap, shuffled_epsilon
from netdp.protocols import Plan, Shuffle, expected_error
from netdp.protocols.table import certified

DATA = os.environ.get("NETDP_DATA")
GRAPH = graphs.regular(200, 8, 0)


@pytest.mark.parametrize("share", [0.01, 0.2])
def test_fewest_rounds_for_the_share(share):
    plan = plan_rounds(GRAPH, 1.0, 1e-4, share=share)
    rounds = plan.protocol.rounds
    assert plan.uniform == pytest.approx(shuffled_epsilon(199, 1.0, 1e-4))
    assert plan.uniform <= plan.promised <= plan.uniform * (1 + share)
    assert plan.promised == pytest.approx(certified(plan.protocol, "curator").worst_epsilon(1e-4), rel=1e-3)
    assert certified(plan.protocol.replace(rounds=rounds - 2), "curator").worst_epsilon(1e-4) > plan.uniform * (
        1 + share
    )
    # what one law for everybody, and telling the rest, would need: at least half as many rounds more
    aim = 0.01 * share * 1e-4
    assert fewest_rounds(GRAPH, 0.0, aim).rounds > 1.5 * rounds
    s = separation(plan.protocol).value
    assert Heap.of(199, 1.0, keep=1 - s, revealed=s).epsilon(1e-4) > 1.2 * plan.promised


def test_for_most_users_fewer_hops_do():
    clique = [(i, j) for i in range(120) for j in range(i)]
    graph = graphs.Graph.from_edges(124, [*clique, *((119 + k, 120 + k) for k in range(4))])
    every, most = (plan_rounds(graph, 1.0, 1e-3, share=0.1, users=users) for users in (1.0, 0.9))
    assert most.protocol.rounds < every.protocol.rounds
    assert most.promised <= 1.1 * most.uniform < most.worst
    assert every.promised == every.worst <= 1.1 * every.uniform
    assert most.promised == pytest.approx(np.sort(most.guarantee.epsilon(1e-3))[111])
    assert "holds for 90 % of the users" in str(most)
    assert json.loads(json.dumps(most.to_dict()))["options"][0]["users"] == 0.9
    less, more = (calibrate_epsilon0(graph, 0.3, 1e-3, rounds=40, users=users) for users in (1.0, 0.9))
    assert less.protocol.epsilon0 < more.protocol.epsilon0
    assert more.promised <= 0.3 < more.worst


def test_components_are_planned_for_one_by_one():
    one, two = graphs.regular(300, 8, 0), graphs.regular(150, 4, 1)
    both = graphs.Graph.from_edges(450, np.concatenate([one.edges(), two.edges() + 300]))
    plan = plan_rounds(both, 1.0, 1e-3)
    alone = [plan_rounds(part, 1.0, 1e-3) for part in (one, two)]
    assert plan.protocol.rounds == max(part.protocol.rounds for part in alone)
    assert plan.uniform == max(part.uniform for part in alone)
    assert plan.promised == pytest.approx(alone[1].promised, rel=1e-3)


def test_a_tighter_share_takes_more_rounds():
    rounds = [plan_rounds(GRAPH, 1.0, 1e-4, share=share).protocol.rounds for share in (0.5, 0.05, 0.005)]
    assert rounds == sorted(rounds)
    assert rounds[0] < rounds[-1]


def test_large_graphs_by_the_spectrum():
    plan = plan_rounds(graphs.regular(1600, 10, 0), 1.0, 1e-6)
    assert plan.mixed.method == "spectral"
    assert plan.loss < 0.01
    assert plan.hops == plan.protocol.rounds


def test_bipartite_graphs_need_laziness():
    cube = graphs.hypercube(7)
    with pytest.raises(GraphError, match=r"bipartite.*laziness=0.5"):
        plan_rounds(cube, 1.0, 1e-3)
    plan = plan_rounds(cube, 1.0, 1e-3, laziness=0.5, reporting="single")
    assert plan.hops == plan.protocol.rounds / 2
    assert plan.protocol.reporting == "single"
    written = json.loads(json.dumps(plan.to_dict()))
    assert written["options"][0]["protocol"]["rounds"] == plan.protocol.rounds
    assert written["options"][0]["messages_per_party"] == plan.hops


def test_calibrate():
    plan = calibrate_epsilon0(GRAPH, 0.4, 1e-4)
    e0 = plan.protocol.epsilon0
    assert plan.promised <= 0.4
    assert plan.promised == pytest.approx(0.4, rel=1e-3)
    assert float(f"{e0:.4g}") == e0  # rounded down, and certified as printed
    assert certified(plan.protocol.replace(epsilon0=1.002 * e0), "curator").worst_epsilon(1e-4) > 0.4
    assert e0 > 1.0
    fixed = calibrate_epsilon0(GRAPH, 0.4, 1e-4, rounds=plan.protocol.rounds + 20)
    assert e0 <= fixed.protocol.epsilon0 <= 1.01 * e0
    # hardly any walking: hardly more than local privacy
    short = calibrate_epsilon0(GRAPH, 0.4, 1e-4, rounds=2)
    assert 0.4 <= short.protocol.epsilon0 < 0.41


def test_a_shuffle_plan_is_a_plan():
    plan = plan_rounds(GRAPH, 1.0, 1e-4)
    assert isinstance(plan, Plan)
    assert plan.epsilon is None  # hops were asked for, not an ε
    assert calibrate_epsilon0(GRAPH, 0.4, 1e-4).epsilon == 0.4
    loss = plan.guarantee
    assert loss.is_certified
    assert loss.epsilon(1e-4).shape == (200,)
    assert loss.worst_epsilon(1e-4) == plan.promised
    assert loss.observers.roles == ("curator",)
    assert any("encrypted" in line for line in loss.assumptions)
    assert plan.best.rmse == expected_error(plan.protocol).rmse == plan.error.rmse
    assert plan.curator_rmse < plan.best.rmse < plan.local_rmse  # better than local DP at the ε that shuffling gives
    assert str(plan).splitlines()[0] == "plan at δ = 0.0001; holds for every user, against the curator"
    assert "a trusted shuffler" in str(plan)


def test_the_error_of_single_reports_is_the_largest_over_all_answers():
    for graph, laziness in ((graphs.regular(40, 4, 0), 0.0), (graphs.star(30), 0.5)):
        p = Shuffle(graph, 20, 1.0, reporting="single", laziness=laziness)
        n = graph.n
        errors = [
            collection_error(p, RandomizedResponse(2, 1.0), [0] * (n - yes) + [1] * yes, null=0) for yes in range(n + 1)
        ]
        assert max(errors) <= largest_error(p).total * (1 + 1e-12)
        assert largest_error(p).total == pytest.approx(max(errors), rel=1e-3)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: plan_rounds(GRAPH, 1.0, 0.0), InvalidValue, "delta.*0.0"),
        (lambda: plan_rounds(GRAPH, 1.0, 1e-4, share=0.0), InvalidValue, "share"),
        (lambda: plan_rounds(GRAPH, 1.0, 1e-4, users=1.5), InvalidValue, "users.*1.5"),
        (lambda: plan_rounds(graphs.complete(5), 1.0, 1e-9), Unsupported, "5 users are too few"),
        (lambda: plan_rounds(GRAPH, 8.0, 1e-6), Unsupported, "too few"),
        (lambda: calibrate_epsilon0(GRAPH, -1.0, 1e-4), InvalidValue, "epsilon.*-1"),
        (lambda: calibrate_epsilon0(graphs.complete(5), 0.1, 1e-9), Unsupported, "does not matter"),
    ],
)
def test_refusals(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.skipif(
    not DATA or not Path(DATA, "twitch", "edges.csv").is_file(),
    reason="real data sets are not here: set NETDP_DATA to their folder",
)
def test_twitch():
    plan = plan_rounds(graphs.dataset("twitch"), 1.0, 2e-6)
    assert plan.promised == pytest.approx(0.0421, rel=0.02)
    assert 70 < plan.protocol.rounds < 100


@pytest.mark.parametrize("rounds", [None, 200])
def test_single_reports_are_calibrated_to_what_is_certified(rounds):
    """Bounds that are found by search need not fall with ε₀ in their last digits."""
    plan = calibrate_epsilon0(graphs.complete(200), 3.0, 1e-3, rounds=rounds, reporting="single")
    assert 0.99 * 3.0 < plan.promised <= 3.0


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_the_account_of_single_reports_has_no_coarse_chords(delta):
    plan = plan_rounds(GRAPH, 0.3, delta, reporting="single")
    assert certified(plan.protocol, "curator").worst_epsilon(delta) == pytest.approx(plan.promised, rel=4e-3)


def test_a_large_delta_leaves_nothing_to_plan():
    for delta, epsilon0 in ((0.5, 0.5), (0.1, 0.05)):  # shuffled, and even alone, these have ε = 0
        with pytest.raises(Unsupported, match="nothing to plan"):
            plan_rounds(graphs.complete(40), epsilon0, delta)
        for bundles in (0, 4):
            with pytest.raises(Unsupported, match="nothing to plan"):
                plan_relayed(graphs.complete(40), epsilon0, delta, bundles=bundles)
        with pytest.raises(Unsupported, match="nothing to plan"):
            plan_with_faults(graphs.complete(40), epsilon0, delta, outages=0.1)
