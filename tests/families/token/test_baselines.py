"""Local DP and a trusted curator beside tokens and shuffling: the order that must hold, and known values."""

import math

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.privacy import gaussian_epsilon
from netdp.protocols import GraphWalkSum, PathSum, RingHistogram, RingSum, Shuffle, WalkDescent, WalkHistogram, WalkSum

DELTA = 1e-6
SIGMA = math.sqrt(2 * math.log(1.25e8)) / 0.1


@pytest.mark.parametrize("n", [100, 1000])
def test_a_walking_token_lies_between_the_curator_and_local_dp(n):
    p = WalkSum(n, 100 * n, SIGMA, sender="hidden")
    local, curator = (f(p).worst_epsilon(DELTA) for f in (netdp.local_dp, netdp.trusted_curator))
    walk = netdp.account(p, [0]).worst_epsilon(DELTA)
    assert curator <= walk <= 1.02 * curator
    assert walk < local / 10
    # 100 contributions exactly: 0.673; their number varies, which costs a little
    assert 0.673 < local < 0.70


def test_curator_of_a_sum_is_the_gaussian_of_the_mean_shift_at_least():
    p = WalkSum(500, 50_000, 30.0)
    assert netdp.trusted_curator(p).worst_epsilon(DELTA) >= float(gaussian_epsilon(math.sqrt(50_000) / 500 / 30, DELTA))


def test_a_cap_lowers_local_dp():
    free = WalkDescent(200, 2000, 3.0, step=0.1)
    capped = free.replace(contributions=10)
    assert netdp.local_dp(capped).worst_epsilon(DELTA) < netdp.local_dp(free).worst_epsilon(DELTA)
    # never more than all ten with certainty
    assert netdp.local_dp(capped).worst_epsilon(DELTA) <= float(gaussian_epsilon(math.sqrt(10) * 2 / 3, DELTA)) * 1.001


def test_descent_with_hidden_senders_is_the_curators():
    p = WalkDescent(500, 5000, 1.0, step=0.1, clip=0.5, sender="hidden")
    curator, walk = netdp.trusted_curator(p).worst_epsilon(DELTA), netdp.account(p, [0]).worst_epsilon(DELTA)
    assert walk == pytest.approx(curator, rel=0.01)


def test_ring_and_randomizers():
    ring = RingSum(50, 4, 3.0)
    assert float(netdp.trusted_curator(ring).mu[0]) == pytest.approx(2 / 3)
    assert np.nanmax(netdp.account(ring, [7]).mu) <= 2 / 3 * (1 + 1e-12)
    around = RingHistogram(50, 3, domain=4, gamma=0.5)
    assert netdp.local_dp(around).worst_epsilon(0.0) == pytest.approx(3 * math.log(5))
    walked = WalkHistogram(50, 100, domain=4, gamma=0.5, contributions=2)
    assert netdp.local_dp(walked).worst_epsilon(0.0) == pytest.approx(2 * math.log(5))
    assert netdp.account(walked, [0]).worst_epsilon(DELTA) <= 2 * math.log(5) * (1 + 1e-9)


def test_shuffling_lies_between_the_shuffler_and_local_dp():
    p = Shuffle(graphs.regular(300, 6, 0), rounds=40, epsilon0=1.0)
    local, uniform, certified = (
        g.worst_epsilon(1e-4) for g in (netdp.local_dp(p), netdp.trusted_curator(p), netdp.account(p, "curator"))
    )
    assert uniform <= certified < 1.1 * uniform
    assert certified < 0.4 * local
    assert local == pytest.approx(1.0, abs=1e-3)


def test_a_walk_on_a_graph_lies_between_the_curator_and_local_dp():
    walk = GraphWalkSum(graphs.ring(6), steps=600, sigma=30.0)
    curator, certified, local = (
        loss.epsilon(DELTA)[1:]
        for loss in (netdp.trusted_curator(walk), netdp.account(walk, [0]), netdp.local_dp(walk))
    )
    assert (curator < certified).all()
    assert (certified < local).all()


def test_local_dp_and_curator_of_a_path_count_every_users_own_contributions():
    path = PathSum(4, [[0, 1, 0, 3, 1, 0]], sigma=2.0, closing=3.0)
    assert netdp.local_dp(path).mu ** 2 == pytest.approx([3 / 4, 2 / 4, 0, 1 / 4])
    assert netdp.trusted_curator(path).mu == pytest.approx(np.array([3, 2, 0, 1]) / (2 * 3))


@pytest.mark.parametrize("kw", [{}, {"law": "laplace"}, {"grid": 0.25}, {"closing": False}])
def test_local_dp_of_a_ring_has_the_noise_of_its_own_hops(kw):
    shares = RingSum(6, 2, 8.0, noise="distributed", **kw)
    local = netdp.local_dp(shares).epsilon(DELTA)
    alone = [
        netdp.account(shares.replace(closing=False), [v for v in range(6) if v != u]).epsilon(DELTA)[u]
        for u in range(6)
    ]
    assert local == pytest.approx(alone, rel=1e-9)
    for f in (1, 2, 5):  # whoever colludes learns no more than all that everybody publishes
        assert netdp.account(shares, colluders=f).worst_epsilon(DELTA) <= local.max() * (1 + 1e-9)
    assert (netdp.trusted_curator(shares).epsilon(DELTA) <= local * (1 + 1e-9)).all()
    # one noise a round: a hop without any shows its value
    one = netdp.local_dp(RingSum(6, 1, 8.0, **kw))
    assert np.isinf(one.epsilon(DELTA)).tolist() == [False, True, True, True, True, False]
    assert "no noise would show the value" in one.assumptions[0]
    if not kw:
        hops = [8.0**2 / 8**2, 8.0**2 / 8**2 * 6]  # n = 6: σ²/n
        assert netdp.local_dp(shares).mu[[0, 3]] == pytest.approx(np.sqrt([hops[0] + hops[1], 2 * hops[1]]) / 8.0)
