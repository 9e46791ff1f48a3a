"""Every family in one table."""

import json
import math

import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.plan import plan_gossip
from netdp.families.masked.plan import plan_masked
from netdp.privacy import gaussian_mu
from netdp.protocols.planning import baselines_at

DELTA = 1e-6


def test_the_ways_of_the_families_with_their_own_numbers_best_first():
    graph = graphs.hypercube(4)
    table = netdp.plan(graph, epsilon=1.0, delta=DELTA, colluders=2)
    assert [one.rmse for one in table.options] == sorted(one.rmse for one in table.options)
    assert all(one.guarantee.worst_epsilon(DELTA) <= 1.0 for one in table.options)
    for family, alone in (
        ("gossip", plan_gossip(graph, 1.0, DELTA, colluders=2)),
        ("masked", plan_masked(graph, 1.0, DELTA, colluders=2)),
    ):
        for option in alone.options:
            same = table.option(f"{family}: {option.name}")
            assert same.family == family
            assert same.protocol == option.protocol
            assert same.error == option.error
            assert same.guarantee.worst_epsilon(DELTA) == option.guarantee.worst_epsilon(DELTA)
    assert "against the curator alone" in table.not_offered["shuffle"]
    assert table.best.needs is None
    json.dumps(table.to_dict(), allow_nan=False)
    assert list(table.to_frame()["way"])[-2:] == ["local DP", "trusted curator"]
    assert "not offered: shuffle" in str(table)


def test_one_name_is_that_familys_own_plan():
    graph = graphs.ring(8)
    found = netdp.plan(graph, 1.0, DELTA, "beyond:2", protocols=["gossip"], kinds=("plain",), max_rounds=20)
    own = plan_gossip(graph, 1.0, DELTA, "beyond:2", kinds=("plain",), max_rounds=20)
    assert found.to_dict() == own.to_dict()
    assert found.family == "gossip"
    assert netdp.plan(graph, 1.0, DELTA, protocols="masked", absent=2).protocol.absent == 2


def test_absent_parties_are_planned_for_masked_sums_only():
    table = netdp.plan(graphs.ring(8), epsilon=1.0, delta=DELTA, absent=2)
    assert {one.family for one in table.options} == {"masked"}
    assert set(table.not_offered) == {"gossip", "token", "shuffle"}
    assert all("absent" in why for why in table.not_offered.values())


def test_what_is_slow_is_left_out_and_says_so():
    table = netdp.plan(graphs.ring(12), epsilon=1.0, delta=DELTA, protocols=["masked", "token"], seconds=0.1)
    assert {one.family for one in table.options} == {"masked"}
    assert "not looked at: takes about" in table.not_offered["token"]


def test_options_of_one_family_are_refused_by_name():
    ring = graphs.ring(6)
    with pytest.raises(InvalidValue, match=r"scope belongs to gossip alone: give protocols=\['gossip'\]"):
        netdp.plan(ring, 1.0, DELTA, "mean")
    with pytest.raises(InvalidValue, match="visits belongs to token alone"):
        netdp.plan(ring, 1.0, DELTA, protocols=["token", "gossip"], visits=3)
    with pytest.raises(InvalidValue, match="a plan of masked takes no scope; it belongs to gossip"):
        netdp.plan(ring, 1.0, DELTA, protocols=["masked"], scope="mean")
    with pytest.raises(InvalidValue, match="a plan of gossip takes no absent=1"):
        netdp.plan(ring, 1.0, DELTA, protocols=["gossip"], absent=1)
    with pytest.raises(InvalidValue, match="no plan of 'gosip'"):
        netdp.plan(ring, 1.0, DELTA, protocols=["gosip"])
    with pytest.raises(InvalidValue, match="banana is not known"):
        netdp.plan(ring, 1.0, DELTA, banana=1)
    with pytest.raises(InvalidValue, match="epsilon is missing"):
        netdp.plan(ring, None, DELTA)
    with pytest.raises(Unsupported, match=r"nothing to plan: .*absent"):
        netdp.plan(ring, 1.0, DELTA, protocols=["gossip", "token"], absent=1)


@pytest.mark.parametrize(("dimension", "epsilon"), [(1, 1.0), (2, 1.0), (100, 1.0), (1, 0.01), (40, 0.5)])
def test_the_classical_ways_have_the_law_that_errs_less(dimension, epsilon):
    """Both errors from the deviations of the two laws: Δ/μ, and √2·b with b = Δ√d/ε."""
    n, width = 25, 3.0
    gaussian = math.sqrt(dimension) * width / gaussian_mu(epsilon, DELTA)
    laplace = math.sqrt(dimension) * math.sqrt(2) * (width * math.sqrt(dimension) / epsilon)
    best = min(gaussian, laplace)
    (law, local), (other, curator) = baselines_at(n, epsilon, DELTA, width, dimension)
    assert law == other == ("Gaussian" if gaussian < laplace else "Laplace")
    assert local == pytest.approx(best / 5)
    assert curator == pytest.approx(best / 25)


def test_a_shuffled_mean_is_held_against_the_same_answer():
    """In the table of all a shuffle estimates the mean of numbers, by Laplace noise; it needs a curator and is not chosen."""
    graph = graphs.regular(300, 8, 0)
    table = netdp.plan(graph, 0.5, 1e-4, protocols=["shuffle", "masked"])
    option = table.option("shuffle: shuffled")
    assert option.rmse == pytest.approx(math.sqrt(2 / 300) / option.protocol.epsilon0)
    assert option.guarantee.worst_epsilon(1e-4) <= 0.5
    assert "curator" in option.needs
    assert f"* {option.name} needs {option.needs}" in table.notes
    assert f"needs {option.needs}" in str(table)
    assert table.best.family == "masked"


def test_old_names_of_plans_and_answers_work_with_a_warning():
    import netdp.planning

    import netdp.report

    with pytest.warns(FutureWarning, match=r"GossipPlan is now netdp\.protocols\.planning\.Plan"):
        assert netdp.planning.GossipPlan is netdp.Plan
    with pytest.warns(DeprecationWarning, match=r"netdp\.report\.answer now"):
        assert netdp.report.summarise is netdp.report.answer
    with pytest.raises(AttributeError, match="no attribute 'BananaPlan'"):
        _ = netdp.planning.BananaPlan
