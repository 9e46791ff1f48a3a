"""Powers of masses by one transform against convolutions one by one: windows, wrapping around, the stated errors.

Proof: docs/proofs/privacy.md#loss-distributions.
"""

import math

import numpy as np
import pytest

from netdp.privacy import ProfileCurve, gaussian_delta
from netdp.privacy import losses as _losses
from netdp.privacy.losses import Composition, LossGrid, Moments, convolved


def _one_by_one(parts):
    total, first = np.ones(1), 0
    for masses, start, times in parts:
        for _ in range(times):
            total, first = np.convolve(total, masses), first + start
    return total, first


@pytest.fixture
def parts():
    rng = np.random.default_rng(3)
    return [(rng.dirichlet(np.ones(9)), -3, 11), (rng.dirichlet(np.full(40, 0.1)) * 0.99, -20, 3)]


def test_the_whole_support(parts):
    truth, first = _one_by_one(parts)
    found, wrong = convolved(parts, first, first + truth.size - 1)
    assert np.abs(found - truth).sum() <= wrong < 1e-11


def test_a_narrow_window_only_adds(parts):
    """What lies outside wraps around: nothing inside is too small, and what is missing lies outside."""
    truth, first = _one_by_one(parts)
    found, wrong = convolved(parts, first + 30, first + 60)
    inside = truth[30:61]
    assert (found >= inside - wrong).all()
    assert found.sum() > inside.sum()


@pytest.mark.parametrize("tilt", [0.0, 0.2])
@pytest.mark.parametrize("rare", [1e-3, 1e-9])
def test_a_window_leaves_out_as_little_as_stated(parts, tilt, rare):
    truth, first = _one_by_one(parts)
    places = first + np.arange(truth.size)
    tilted = truth * np.exp(tilt * places)
    log_scale = math.log(tilted.sum())
    low, high = Moments(parts).window(tilt, log_scale, rare)
    tilted /= math.exp(log_scale)
    assert tilted[places < low].sum() <= rare
    assert tilted[places > high].sum() <= rare
    assert high - low < truth.size or rare == 1e-9  # and not everything is kept


def test_moments_from_fewer_points_are_not_below(parts):
    rng = np.random.default_rng(4)
    masses = rng.dirichlet(np.full(5000, 0.05))
    moments, places = Moments([(masses, -2000, 7)]), np.arange(-2000, 3000)
    assert moments.parts[0][0].size < 1000
    for t in (-0.003, 0.0, 0.002):
        exact = 7 * math.log(float(masses @ np.exp(t * places)))
        assert exact <= float(moments.logs(np.array([t]))[0]) + 1e-9 <= exact + 0.05


def test_a_transform_says_what_convolutions_say(monkeypatch):
    """Randomized response, a thousand times: the same δ(ε) down to 1e-19, never below it."""
    curve = ProfileCurve([0.0, 0.05, 0.1], [0.05, 0.02, 0.0])
    grid = LossGrid.from_profile(curve.epsilons, curve.deltas, 0.05)
    direct = Composition((grid, 1000))
    assert len(direct.grids) == 1
    monkeypatch.setattr(_losses, "_DIRECT", 0)
    transformed = Composition((grid, 1000))
    assert len(transformed.grids) == 5
    one, two = direct.deltas(1500), transformed.deltas(1500)
    telling = one > 1e-19  # tails of 1e-29 are dropped, and counted, by the direct way
    assert telling.sum() > 100
    assert (two[telling] >= one[telling] * (1 - 1e-8)).all()
    assert (two[telling] <= one[telling] * (1 + 1e-5)).all()


def test_what_is_lost_for_certain_costs_no_memory():
    """Where hardly any finite mass is left, the window lies in the support and the answer is δ = 1."""
    eps = np.linspace(0.0, 5.0, 100)
    one = ProfileCurve(eps, np.minimum(np.asarray(gaussian_delta(0.5, eps)) + 0.05, 1.0))
    grid = LossGrid.from_profile(eps, np.asarray(one.delta(eps)), 1e-2)
    for times in (600, 640, 680, 1000):
        first, last = Moments([(grid.masses, grid.low, times)]).window(0.0, 0.0, 1e-14)
        assert times * grid.low <= first <= last <= times * (grid.low + grid.masses.size - 1)
    assert float(one.self_compose(1000, 1e-2).delta(1.0)) == 1.0
