"""Gaussian noise on a grid: the profile of what is drawn, summed over all outcomes, and the error.

Proof: docs/proofs/mechanisms.md#gaussian-noise.
"""

import math

import numpy as np
import pytest
from scipy import stats

from netdp.errors import InvalidValue
from netdp.mechanisms import ExactMechanism, Gaussian, GridGaussian, on_a_grid
from netdp.mechanisms.discrete_gaussian import words_from


def words(seed=0):
    return words_from(np.random.default_rng(seed))


def law(variance, reach):
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-(x**2) / (2.0 * variance))
    return mass / mass.sum()


@pytest.mark.parametrize(("sigma", "steps"), [(1.0, 2), (0.5, 4), (0.3, 12), (2.0, 64)])
def test_profile_is_the_sum_over_all_outcomes(sigma, steps):
    mechanism = GridGaussian(sigma, steps=steps)
    reach = math.ceil(12 * math.sqrt(mechanism.variance)) + 2 * steps
    mass = law(mechanism.variance, reach)
    moved = np.roll(mass, steps)
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        true = np.maximum(mass - math.exp(epsilon) * moved, 0).sum()
        stated = float(mechanism.delta_at(epsilon)[0])
        assert true - 1e-12 <= stated <= true * (1 + 1e-9) + 1e-12
        assert float(mechanism.curve.delta(epsilon)) >= true - 1e-12


def test_profile_of_vectors_is_no_less_than_the_truth():
    """Two dimensions, all pairs on opposite sides of the ball, by summing over the plane."""
    mechanism = GridGaussian(0.8, dimension=2, steps=10)
    reach = math.ceil(9 * math.sqrt(mechanism.variance)) + 10
    mass = law(mechanism.variance, reach)
    centre = np.outer(mass, mass)
    for i, j in ((10, 0), (8, 6), (6, 8), (7, 7), (0, 10)):
        assert i * i + j * j <= 100
        other = np.outer(np.roll(mass, i), np.roll(mass, j))
        for epsilon in (0.0, 0.5, 1.5):
            true = np.maximum(centre - math.exp(epsilon) * other, 0).sum()
            stated = float(mechanism.delta_at(epsilon)[0])
            assert true - 1e-9 <= stated


@pytest.mark.parametrize(("epsilon0", "delta0", "dimension"), [(1.0, 1e-6, 1), (0.1, 1e-9, 20), (8.0, 1e-5, 3)])
def test_calibration_costs_next_to_nothing(epsilon0, delta0, dimension):
    ideal = Gaussian.calibrated(epsilon0, delta0, dimension=dimension)
    found = GridGaussian.calibrated(epsilon0, delta0, dimension=dimension)
    assert found.delta0 <= delta0
    assert found.sigma <= ideal.sigma * (1 + 1e-6)
    assert found.variance >= (found.sigma / found.step) ** 2 * (1 - 1e-15)
    assert GridGaussian(found.sigma * 0.999, dimension=dimension, epsilon0=epsilon0).delta0 > delta0
    grid = on_a_grid(ideal)
    assert isinstance(grid, ExactMechanism)
    for epsilon in (0.0, 0.4 * epsilon0, epsilon0, 1.3 * epsilon0):  # never less private than what it stands for
        assert float(grid.curve.delta(epsilon)) <= float(ideal.curve.delta(epsilon))
    assert grid.squared_error(10**6) == pytest.approx(ideal.squared_error(10**6), rel=1e-5)
    assert grid.replace(epsilon0=2 * epsilon0).delta0 < grid.delta0


def test_reports():
    mechanism, n = GridGaussian(0.7, sensitivity=2.0, dimension=3, centre=4.0, steps=2**10), 20_000
    value = np.tile([4.5, 3.75, 4.0], (n, 1))
    reports = mechanism.report(value, words(1))
    assert reports.dtype == np.int64
    assert mechanism.readable(reports).all()
    assert not mechanism.readable(np.array([[2**40, 0, 0], [-(2**63), 0, 0]])).any()
    noise = (reports * mechanism.step + 4.0 - value) / 0.7
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4
    assert np.abs(mechanism.estimate(reports) - value[0]).max() < 4.5 * 0.7 / math.sqrt(n)
    rng = np.random.default_rng(3)
    rim = rng.standard_normal((2000, 3))
    rim = 4.0 + rim / np.linalg.norm(rim, axis=1, keepdims=True)
    steps = mechanism.quantised(rim)
    assert (steps**2).sum(axis=1).max() <= 512**2
    assert np.abs(steps * mechanism.step + 4.0 - rim).max() < 2 * mechanism.step
    assert mechanism.width == 3


def test_refusals():
    assert GridGaussian(1e-200, steps=2).variance == 1  # rounded up: a step is the least noise
    with pytest.raises(InvalidValue, match="fewer steps"):
        GridGaussian(1e40)
    assert on_a_grid(Gaussian(1e12)).steps >= 2
    with pytest.raises(InvalidValue, match="delta0 must lie in"):
        GridGaussian.calibrated(1.0, 0.0)
    with pytest.raises(InvalidValue, match="outside"):
        GridGaussian(1.0).report([3.0], words())
