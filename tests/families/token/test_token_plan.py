"""Planning a mean by a token: targets are met, and errors are what runs show."""

import math

import numpy as np
import pytest

import netdp
from netdp.errors import InvalidValue
from netdp.families.token.plan import plan_token, plan_token_on
from netdp.protocols import Plan
from netdp.protocols.calibration import SearchProgress


@pytest.fixture(scope="module")
def plan():
    return plan_token(20, epsilon=2.0, delta=1e-5, visits=8)


def test_every_way_meets_the_target(plan):
    walks = {"walk, sender hidden": "hidden", "walk, receiver known": "receiver-known", "walk, sender known": "known"}
    assert {option.name for option in plan.options} == {*walks, "ring, one round"}
    # what is not known is worth noise
    noise = {option.protocol.sender: option.protocol.sigma for option in plan.options if option.name in walks}
    assert noise["hidden"] < noise["receiver-known"] < noise["known"]
    for option in plan.options:
        promised = plan.worst_epsilon(option)
        assert 1.97 < promised <= 2.0
        if isinstance(option.protocol, netdp.RingSum):
            assert netdp.pairwise(option.protocol).worst_epsilon(1e-5) == pytest.approx(promised, rel=1e-9)
            assert option.guarantee.claim.value == "exact"
        else:
            assert option.protocol.sender == walks[option.name]
            assert option.protocol.release == ("named" if option.protocol.sender == "known" else "anonymous")
            assert netdp.account(option.protocol, [3]).worst_epsilon(1e-5) == pytest.approx(promised)
            assert promised > 1.97
    errors = [option.rmse for option in plan.options]
    assert errors == sorted(errors)
    assert plan.curator_law == plan.local_law == "Laplace"
    assert plan.curator_rmse == pytest.approx(math.sqrt(2) / 2 / 20)  # ε = 2, 20 users
    assert plan.curator_rmse < errors[0]
    assert plan.to_dict()["trusted_curator"]["rmse"] == plan.curator_rmse


def test_a_token_plan_is_a_plan_and_promises_for_everybody(plan):
    assert isinstance(plan, Plan)
    for option in plan.options:
        assert not np.isnan(option.guarantee.epsilon(1e-5)).any()
        assert option.guarantee.epsilon(1e-5).shape == (20,)
        assert option.guarantee.observers.words == "the worst-placed user"
        assert option.rmse == netdp.expected_error(option.protocol).rmse
        assert option.messages == (1 if isinstance(option.protocol, netdp.RingSum) else 8)
    assert plan.protocol is plan.best.protocol
    assert "against any single user" in str(plan)


def test_sigma_has_four_digits(plan):
    for option in plan.options:
        assert float(f"{option.protocol.sigma:.4g}") == option.protocol.sigma


def test_predicted_errors_are_those_of_runs(plan):
    values = np.repeat([0.0, 1.0], 10)  # the largest variance that an interval of length 1 allows
    for option in plan.options:
        errors = [float(netdp.simulate(option.protocol, values, seed).estimates[0, 0]) - 0.5 for seed in range(600)]
        # the standard deviation of 600 squared errors over their mean is about √(2/600)
        assert np.mean(np.square(errors)) == pytest.approx(option.rmse**2, rel=5 * math.sqrt(2 / 600))


def test_colluders_and_refusals():
    several = plan_token(16, epsilon=2.0, delta=1e-4, visits=4, colluders=3)
    assert sorted(option.name for option in several.options if "ring" in option.name) == [
        "ring, new random orders",
        "ring, new secret orders",
    ]
    assert len(several.options) == 5
    assert getattr(several.best.protocol, "sender", "known") == "known"
    assert "any 3 users together" in several.holds
    for option in several.options:
        promised = several.worst_epsilon(option)
        assert 1.97 < promised <= 2.0
        # against three, and more than enough against one
        three, one = (netdp.account(option.protocol, list(range(c))).worst_epsilon(1e-4) for c in (3, 1))
        assert one < three == pytest.approx(promised)
    with pytest.raises(InvalidValue, match="visits must be"):
        plan_token(30, 1.0, 1e-6, visits=0)
    with pytest.raises(InvalidValue, match="epsilon must be a finite number ≥ 0, got '1'"):
        plan_token(30, "1", 1e-6)


@pytest.mark.parametrize("start", [1.9996, 1.2])
def test_rounding_up_the_noise_never_breaks_the_target(monkeypatch, start):
    """A bound that is computed on a grid may rise a little with σ: then the noise is raised until the target is met."""
    from netdp.families.token import plan as on_graphs

    class Promise:
        found = None

        def __init__(self, sigma):
            self.epsilon = 1.0002 if 2.0 <= sigma < 2.003 else 0.999 if sigma >= 1.9995 else 1.1

        def worst_epsilon(self, delta):
            return self.epsilon

    tried = []
    monkeypatch.setattr(on_graphs, "noise_for_the_worst", lambda *_: (start, None))
    monkeypatch.setattr(on_graphs, "account", lambda p, **_: tried.append(p.sigma) or Promise(p.sigma))
    monkeypatch.setattr(on_graphs, "replace", lambda promise, **_: promise)
    draft = netdp.GraphWalkSum(netdp.graphs.grid(3, 3), steps=18, sigma=1.0)
    option = on_graphs._option("walk", draft, 1.0, 1e-6, 1, 2.0, SearchProgress())
    assert option.guarantee.worst_epsilon(1e-6) <= 1.0
    assert option.protocol.sigma == tried[-1]


@pytest.mark.parametrize(
    "make",
    [
        lambda **how: plan_token(6, 3.0, 1e-4, visits=2, **how),
        lambda **how: plan_token(6, 3.0, 1e-4, visits=2, colluders=2, **how),
        lambda **how: plan_token_on(netdp.graphs.star(4), 4.0, 1e-4, visits=2, **how),
        lambda **how: plan_token_on(netdp.graphs.ring(5), 4.0, 1e-4, visits=2, **how),
    ],
    ids=["complete", "colluders", "star", "ring"],
)
def test_progress_goes_on_while_noise_is_searched_for_and_ends_at_the_end(make):
    told = []
    plan = make(progress=lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {100}
    shares = [done for done, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert len(set(shares)) > 2 * len(plan.options)  # not only when an option is done
    alone = make()
    assert [option.protocol.sigma for option in plan.options] == [option.protocol.sigma for option in alone.options]


def test_a_long_search_does_not_pass_its_end_and_a_next_one_starts_where_it_was():
    told = []
    watch = SearchProgress(lambda done, total: told.append(done / total), parts=2)
    for _ in range(50):
        watch.inside(1, 3)
        watch.one()
    assert 0.4 < told[-1] < 0.5
    watch.next()
    assert told[-1] == 0.5
    assert told == sorted(told)
