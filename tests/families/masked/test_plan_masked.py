"""Plans of masked sums: the ideal error against any so many colluders, and two ways to spread the same integers."""

import json
import math

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked.plan import plan_masked
from netdp.protocols import Plan


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_the_error_is_a_curators_with_the_honest_parties_noise(share):
    graph = graphs.hypercube(6)
    colluders = round(share * graph.n)
    plan = plan_masked(graph, epsilon=1.0, delta=1e-6, colluders=colluders)
    assert isinstance(plan, Plan)
    ideal = plan.curator_rmse * math.sqrt(graph.n / (graph.n - colluders))
    assert plan.best.rmse == pytest.approx(ideal, rel=0.003)


def test_the_target_holds_against_any_coalition_and_less_noise_would_not_do():
    plan = plan_masked(graphs.ring(20), epsilon=0.7, delta=1e-5, colluders=5)
    for members in ([0, 1, 2, 3, 4], [0, 4, 8, 12, 16]):
        loss = netdp.account(plan.protocol, members)
        assert 0.69 < loss.worst_epsilon(1e-5) <= 0.7
        assert loss.worst_epsilon(1e-5) == pytest.approx(plan.guarantee.worst_epsilon(1e-5))
    less = plan.protocol.replace(sigma=plan.protocol.sigma * 0.99)
    assert netdp.account(less, range(5)).worst_epsilon(1e-5) > 0.7


def test_both_ways_of_spreading_give_the_same_integers():
    plan = plan_masked(graphs.hypercube(5), epsilon=1.0, delta=1e-6)
    flood, average = (plan.option(name).protocol for name in ("flood", "average"))
    values = np.linspace(0, 1, 32)
    one, two = (netdp.simulate(p, values, seed=4).estimates for p in (flood, average))
    np.testing.assert_array_equal(one, two)
    assert plan.best.protocol.link_bytes == min(flood.link_bytes, average.link_bytes)


def test_averaging_that_cannot_be_exact_is_not_offered_and_the_plan_says_why():
    plan = plan_masked(graphs.ring(600), epsilon=1.0, delta=1e-6)
    assert [option.name for option in plan.options] == ["flood"]
    assert any("average: not offered" in note for note in plan.notes)


def test_it_is_written_down_and_nonsense_is_refused():
    data = json.loads(json.dumps(plan_masked(graphs.ring(8), 1.0, 1e-6, colluders=3).to_dict(), allow_nan=False))
    assert data["colluders"] == 3
    assert {option["name"]: option["extras"]["rounds"] for option in data["options"]}["flood"] == 4
    for options, words in (({"colluders": 8}, "leaves nobody"), ({"colluders": 0}, "colluders must be")):
        with pytest.raises(InvalidValue, match=words):
            plan_masked(graphs.ring(8), 1.0, 1e-6, **options)
    with pytest.raises(InvalidValue, match="epsilon must be a finite number"):
        plan_masked(graphs.ring(8), "1", 1e-6)


def test_attempts_and_absences_are_paid_for():
    graph = graphs.ring(20)
    once, more = (
        plan_masked(graph, 1.0, 1e-6, colluders=3, law="gaussian", **options)
        for options in ({}, {"attempts": 4, "absent": 7})
    )
    assert more.best.rmse / once.best.rmse == pytest.approx(math.sqrt(4 * 17 / 10), rel=0.003)
    for observers in ([0, 1, 2], [4, 9, 13]):
        assert 0.99 < netdp.account(more.protocol, observers).worst_epsilon(1e-6) <= 1.0
    assert "in at most 4 attempts, with at most 7 absent" in more.holds
    data = more.to_dict()
    assert (data["options"][0]["extras"]["attempts"], data["absent"]) == (4, 7)
    assert more.protocol.attempts == 4
    with pytest.raises(InvalidValue, match="3 observers and absent=17 leave nobody"):
        plan_masked(graph, 1.0, 1e-6, colluders=3, absent=17)


def test_a_random_mask_graph_costs_its_probability_of_a_cut():
    graph = graphs.ring(60)
    everybody, few = (
        plan_masked(graph, 1.0, 1e-5, colluders=10, masks=masks, mask_seed=7, law="gaussian")
        for masks in ("complete", 10)
    )
    assert everybody.best.rmse < few.best.rmse < 1.05 * everybody.best.rmse
    assert few.guarantee.worst_epsilon(1e-5) <= 1.0
    loss = netdp.account(few.protocol, range(10), fixed_before_draw=True)
    assert 0.99 < loss.worst_epsilon(1e-5) <= 1.0
    assert "fixed before the mask graph was drawn" in few.guarantee.assumptions[-1]
    with pytest.raises(Unsupported, match=r"10 of 60 parties cut somebody off .*; give masks=\d+, or masks="):
        plan_masked(graph, 1.0, 1e-6, colluders=10, masks=4, mask_seed=7)
    with pytest.raises(InvalidValue, match='a plan takes masks="complete" or a degree'):
        plan_masked(graph, 1.0, 1e-6, masks=graph)


def test_a_given_grid_is_kept():
    plan = plan_masked(graphs.ring(12), 1.0, 1e-6, grid=0.125)
    assert plan.protocol.step == 0.125
    assert plan.guarantee.worst_epsilon(1e-6) <= 1.0


def test_random_masks_say_that_coalitions_come_first_and_whose_seed():
    graph = graphs.hypercube(6)
    with pytest.raises(InvalidValue, match="give mask_seed="):
        plan_masked(graph, 1.0, 1e-6, colluders=6, masks=12)
    plan = plan_masked(graph, 1.0, 1e-6, colluders=6, masks=12, mask_seed=12345)
    assert "fixed before the mask graph was drawn" in plan.holds
    assert "fixed before the mask graph was drawn" in plan.guarantee.observers.words
    assert any("(12345)" in line for line in plan.guarantee.assumptions)
