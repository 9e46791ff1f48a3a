"""Planning a mean by a token: targets are met, and errors are what runs show."""

import math

import numpy as np
import pytest

import netdp
from netdp.errors import InvalidValue
from netdp.planning import plan_token


@pytest.fixture(scope="module")
def plan():
    return plan_token(40, epsilon=2.0, delta=1e-5, visits=20)


def test_every_way_meets_the_target(plan):
    walks = {"walk, sender hidden": "hidden", "walk, receiver known": "receiver-known", "walk, sender known": "known"}
    assert {option.name for option in plan.options} == {*walks, "ring, one round"}
    # what is not known is worth noise
    noise = {option.protocol.sender: option.sigma for option in plan.options if option.name in walks}
    assert noise["hidden"] < noise["receiver-known"] < noise["known"]
    for option in plan.options:
        assert option.epsilon <= 2.0 * (1 + 1e-9)
        if isinstance(option.protocol, netdp.RingSum):
            assert netdp.pairwise(option.protocol).worst_epsilon(1e-5) == pytest.approx(2.0, rel=1e-6)
        else:
            assert option.protocol.sender == walks[option.name]
            assert option.protocol.release == ("named" if option.protocol.sender == "known" else "anonymous")
            assert float(netdp.account(option.protocol, [0]).epsilon(1e-5)) == pytest.approx(option.epsilon)
            assert option.epsilon > 1.97
    errors = [option.rmse for option in plan.options]
    assert errors == sorted(errors)
    assert plan.curator_rmse < errors[0] < errors[-1] < plan.local_rmse
    assert plan.to_dict()["trusted_curator"]["rmse"] == plan.curator_rmse


def test_predicted_errors_are_those_of_runs(plan):
    values = np.repeat([0.0, 1.0], 20)  # the largest variance that an interval of length 1 allows
    for option in plan.options:
        scale = 40 if isinstance(option.protocol, netdp.RingSum) else 1
        errors = [
            float(netdp.simulate(option.protocol, values, seed).estimates[0, 0]) / scale - 0.5 for seed in range(600)
        ]
        # the standard deviation of 600 squared errors over their mean is about √(2/600)
        assert np.mean(np.square(errors)) == pytest.approx(option.rmse**2, rel=5 * math.sqrt(2 / 600))


def test_colluders_and_refusals():
    several = plan_token(30, epsilon=2.0, delta=1e-4, visits=5, colluders=3)
    assert len(several.options) == 3
    for option in several.options:
        assert isinstance(option.protocol, netdp.WalkSum)
        assert 1.97 < option.epsilon <= 2.0
        # against three, and more than enough against one
        three, one = (float(netdp.account(option.protocol, list(range(c))).epsilon(1e-4)) for c in (3, 1))
        assert one < three == pytest.approx(option.epsilon)
    with pytest.raises(InvalidValue, match="visits must be"):
        plan_token(30, 1.0, 1e-6, visits=0)
