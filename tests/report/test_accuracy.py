"""Errors beside those of local DP and of a trusted curator at the same (ε, δ)."""

import math

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.families.shuffle.plan import plan_rounds
from netdp.protocols.answers import at_the_same_privacy, predicted

DELTA = 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_as_the_baselines_themselves_once_calibrated(epsilon):
    p = netdp.Gossip(graphs.ring(12), rounds=4, sigma=2.0, sensitivity=3.0)
    found = at_the_same_privacy(p, predicted(p), epsilon, DELTA)
    for name, kind in (("local", netdp.Local), ("curator", netdp.Central)):
        made = netdp.calibrate(kind(12, sigma=1.0, sensitivity=3.0), epsilon, DELTA)
        assert found[name] == pytest.approx(netdp.expected_error(made).rmse, rel=1e-3)
    assert found["ours"] == netdp.expected_error(p).rmse


def test_ten_numbers_are_compared_with_ten_numbers():
    one, ten = (netdp.MaskedSum(graphs.complete(16), sigma=1.0, dimension=d) for d in (1, 10))
    small, large = (at_the_same_privacy(p, predicted(p), 1.0, DELTA) for p in (one, ten))
    for name in small:
        assert large[name] == pytest.approx(math.sqrt(10) * small[name], rel=1e-3)


def test_shares_as_the_planner_of_shuffles_says():
    plan = plan_rounds(graphs.regular(200, 6, seed=0), 1.0, delta=DELTA)
    reached = plan.guarantee.worst_epsilon(DELTA)
    found = at_the_same_privacy(plan.protocol, predicted(plan.protocol), reached, DELTA)
    assert found["curator"] == pytest.approx(plan.curator_rmse, rel=1e-9)
    assert found["local"] == pytest.approx(plan.local_rmse, rel=1e-9)


def test_a_curators_histogram():
    """Its noise in L cells, less what moves their sum, drawn many times."""
    n, cells, epsilon = 50, 4, 1.0
    p = netdp.WalkHistogram(n, steps=500, gamma=0.5, domain=cells)
    found = at_the_same_privacy(p, netdp.expected_error(p), epsilon, DELTA)
    from netdp.privacy import gaussian_mu

    noise = np.random.default_rng(0).normal(0, math.sqrt(2) / (n * float(gaussian_mu(epsilon, DELTA))), (40_000, cells))
    noise -= noise.mean(axis=1, keepdims=True)
    assert found["curator"] == pytest.approx(math.sqrt((noise**2).sum(axis=1).mean()), rel=0.01)


def test_unknown_errors_have_no_comparison():
    p = netdp.MaskedSum(graphs.complete(8), sigma=1.0)
    assert at_the_same_privacy(p, "not predicted", 1.0, DELTA) is None
    assert at_the_same_privacy(p, predicted(p), math.inf, DELTA) is None
    assert at_the_same_privacy(p, predicted(p), 0.0, DELTA) is None
    assert at_the_same_privacy(p, predicted(p), 1.0, 0.0) is None  # no Gaussian noise is enough
