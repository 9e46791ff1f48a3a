"""Errors beside those of local DP and of a trusted curator at the same (ε, δ)."""

import math

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.families.shuffle.plan import plan_rounds
from netdp.mechanisms import better_response
from netdp.protocols.answers import at_the_same_privacy, predicted
from netdp.protocols.planning import share_baselines

DELTA = 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_as_the_baselines_themselves_once_calibrated(epsilon):
    p = netdp.Gossip(graphs.ring(12), rounds=4, sigma=2.0, sensitivity=3.0)
    found = at_the_same_privacy(p, predicted(p), epsilon, DELTA)
    for name, kind in (("local", netdp.Local), ("curator", netdp.Central)):
        made = netdp.calibrate(kind(12, sigma=1.0, sensitivity=3.0), epsilon, DELTA)
        gaussian = netdp.expected_error(made).rmse
        laplace = math.sqrt(2) * 3.0 / epsilon / (math.sqrt(12) if name == "local" else 12)
        assert found[name] == pytest.approx(min(gaussian, laplace), rel=1e-3)
        assert laplace < gaussian / 2
    assert found["ours"] == netdp.expected_error(p).rmse


def test_ten_numbers_are_compared_with_ten_numbers():
    one, ten, more = (netdp.MaskedSum(graphs.complete(16), sigma=1.0, dimension=d) for d in (1, 10, 40))
    small, large, largest = (at_the_same_privacy(p, predicted(p), 1.0, DELTA) for p in (one, ten, more))
    assert large["ours"] == pytest.approx(math.sqrt(10) * small["ours"], rel=1e-3)
    for name in (
        "local",
        "curator",
    ):  # ten numbers at an L2 distance of 1 may be √10 apart in L1 norm: Gaussian noise is less
        assert small[name] < large[name] < 10 * small[name]
        assert largest[name] == pytest.approx(2 * large[name], rel=1e-9)


def test_vectors_under_laplace_noise_state_their_l1_distance():
    p = netdp.MaskedSum(graphs.complete(16), sigma=1.0, dimension=4, law="laplace")
    found = at_the_same_privacy(p, predicted(p), 1.0, DELTA)
    assert found["curator"] == pytest.approx(math.sqrt(2 * 4) / 16)


def test_shares_as_the_planner_of_shuffles_says():
    plan = plan_rounds(graphs.regular(200, 6, seed=0), 1.0, delta=DELTA)
    reached = plan.guarantee.worst_epsilon(DELTA)
    found = at_the_same_privacy(plan.protocol, predicted(plan.protocol), reached, DELTA)
    assert found["curator"] == pytest.approx(plan.curator_rmse, rel=1e-9)
    assert found["local"] == pytest.approx(plan.local_rmse, rel=1e-9)


def test_a_curators_histogram():
    """Its noise in L cells, less what moves their sum, drawn many times; of two cells one count says it all."""
    n, epsilon, rng = 50, 1.0, np.random.default_rng(0)
    from netdp.privacy import gaussian_mu

    for cells, delta, law in ((4, DELTA, "Laplace"), (4, 0.3, "Gaussian"), (2, DELTA, "Laplace")):
        p = netdp.WalkHistogram(n, steps=500, gamma=0.5, domain=cells)
        found = at_the_same_privacy(p, netdp.expected_error(p), epsilon, delta)
        if law == "Gaussian":
            noise = rng.normal(0, math.sqrt(2) / float(gaussian_mu(epsilon, delta)), (40_000, cells))
        elif cells == 2:
            noise = rng.laplace(scale=1 / epsilon, size=(40_000, 1)) * [1, -1]
        else:
            noise = rng.laplace(scale=2 / epsilon, size=(40_000, cells))
        noise = (noise - noise.mean(axis=1, keepdims=True)) / n
        assert found["curator"] == pytest.approx(math.sqrt((noise**2).sum(axis=1).mean()), rel=0.015)
        local, curator = share_baselines(n, cells, epsilon, delta)
        assert (curator[0], found["local"], found["curator"]) == (law, local[1], curator[1])
        assert local[1] == math.sqrt(better_response(cells, epsilon).squared_error(n))


def test_unknown_errors_have_no_comparison():
    p = netdp.MaskedSum(graphs.complete(8), sigma=1.0)
    assert at_the_same_privacy(p, "not predicted", 1.0, DELTA) is None
    assert at_the_same_privacy(p, predicted(p), math.inf, DELTA) is None
    assert at_the_same_privacy(p, predicted(p), 0.0, DELTA) is None
    # at δ = 0 no Gaussian noise is enough, and Laplace noise is
    assert at_the_same_privacy(p, predicted(p), 1.0, 0.0)["curator"] == pytest.approx(math.sqrt(2) / 8)
