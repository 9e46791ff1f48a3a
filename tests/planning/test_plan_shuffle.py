"""Planning of network shuffling: the fewest rounds, the least noise."""

import json
import os
from pathlib import Path

import pytest

from netdp import graphs
from netdp.accounting.heap.clones import Heap, shuffled_epsilon
from netdp.accounting.shuffle.separation import separation
from netdp.accounting.table import certified
from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.mechanisms import RandomizedResponse
from netdp.planning import Plan
from netdp.planning.shuffle.plan import calibrate_epsilon0, plan_rounds
from netdp.protocols import Shuffle
from netdp.utility import expected_error
from netdp.utility.shuffle import collection_error, largest_error

DATA = os.environ.get("NETDP_DATA")
GRAPH = graphs.regular(200, 8, 0)


@pytest.mark.parametrize("share", [0.01, 0.2])
def test_fewest_rounds_for_the_share(share):
    plan = plan_rounds(GRAPH, 1.0, 1e-4, share=share)
    assert plan.uniform == pytest.approx(shuffled_epsilon(199, 1.0, 1e-4))

    def extra(rounds):
        s = separation(Shuffle(GRAPH, rounds, 1.0)).value
        return Heap.of(199, 1.0, keep=1 - s, told=s).deltas(plan.uniform)[0] / 1e-4 - 1

    assert extra(plan.protocol.rounds) <= share * 1.001
    assert extra(plan.protocol.rounds - 2) > share
    assert plan.uniform <= plan.promised <= plan.uniform * (1 + share)
    assert plan.promised == pytest.approx(float(certified(plan.protocol, "curator").epsilon(1e-4)), rel=1e-3)


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
    e0, s = plan.protocol.epsilon0, plan.mixed.value
    assert plan.promised <= 0.4
    assert plan.promised == pytest.approx(0.4, rel=1e-3)
    assert float(f"{e0:.4g}") == e0  # rounded down, and certified as printed
    assert Heap.of(199, e0 * 1.001, keep=1 - s, told=s).epsilon(1e-4) > 0.4
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
    assert 100 < plan.protocol.rounds < 250
