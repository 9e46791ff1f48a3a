"""Discrete Laplace noise: the sampler against its law, the profile against sums over all outcomes.

Proof: docs/proofs/mechanisms.md#laplace-noise.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from netdp.errors import InvalidValue, NetdpError
from netdp.mechanisms import ExactMechanism, GridLaplace, Laplace, on_a_grid
from netdp.mechanisms.base import held, on_the_grid
from netdp.mechanisms.discrete_gaussian import words_from
from netdp.mechanisms.laplace import DiscreteLaplace

RATES = [Fraction(1, 3), Fraction(1), Fraction(7, 5), Fraction(3), Fraction(355, 11300), Fraction(0.1)]


def words(seed=0):
    return words_from(np.random.default_rng(seed))


def law(rate, reach):
    x = np.arange(-reach, reach + 1)
    r = float(rate)
    return x, np.tanh(r / 2) * np.exp(-r * np.abs(x))


@pytest.mark.parametrize("rate", RATES, ids=float)
def test_frequencies_are_those_of_the_closed_form(rate):
    draws = DiscreteLaplace(rate).sample((60_000,), words(7))
    x, mass = law(rate, math.ceil(40 / rate))
    assert mass.sum() == pytest.approx(1, abs=1e-9)
    common = mass * len(draws) > 10
    found = np.array([np.count_nonzero(draws == k) for k in x[common]])
    expected = np.append(mass[common], 1 - mass[common].sum()) * len(draws)
    assert stats.chisquare(np.append(found, len(draws) - found.sum()), expected).pvalue > 1e-4
    assert DiscreteLaplace(rate).variance == pytest.approx(float(x**2 @ mass), rel=1e-9)


def test_fine_grids_look_like_laplace_and_their_last_bits_are_uniform():
    draws = DiscreteLaplace(Fraction(1, 3 * 2**40)).sample((40_000,), words(1))
    assert stats.kstest(draws / (3.0 * 2**40), "laplace").pvalue > 1e-4
    assert stats.chisquare(np.bincount(draws & 63, minlength=64)).pvalue > 1e-4


def total(first, second, epsilon):
    return np.maximum(first - math.exp(epsilon) * second, 0).sum()


@pytest.mark.parametrize("rate", [Fraction(1, 5), Fraction(1, 2), Fraction(1), Fraction(9, 4)], ids=float)
@pytest.mark.parametrize("shift", [1, 2, 3, 8])
def test_profile_is_the_sum_over_all_outcomes(rate, shift):
    x, mass = law(rate, math.ceil(45 / rate) + shift)
    _, moved = law(rate, math.ceil(45 / rate) + 2 * shift)
    moved = moved[: len(x)]  # the law of noise + shift at x, or of the other direction: symmetric
    most = float(rate * shift)
    for epsilon in np.unique([0.0, 0.1 * most, 0.37 * most, 0.5 * most, 0.77 * most, 0.99 * most]):
        stated = float(DiscreteLaplace(rate).shift_delta(shift, epsilon)[0])
        true = max(total(mass, moved, epsilon), total(moved, mass, epsilon))
        assert true - 1e-13 <= stated <= true + 1e-12
    assert DiscreteLaplace(rate).shift_delta(shift, [most * (1 + 1e-12), 99.0]).tolist() == [0.0, 0.0]
    assert DiscreteLaplace(rate).shift_delta(0, [0.0]).tolist() == [0.0]


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(5, 4)], ids=float)
def test_no_vector_is_easier_to_tell_apart_than_a_number(rate):
    """All pairs at an L1 distance of four steps in two dimensions; along an axis the bound is attained."""
    reach = math.ceil(32 / rate)
    _, mass = law(rate, reach)
    centre = np.outer(mass, mass)
    for epsilon in (0.0, 0.3, 0.9, 1.7):
        stated = float(DiscreteLaplace(rate).shift_delta(4, epsilon)[0])
        for i, j in product(range(5), repeat=2):
            if i + j == 4:
                other = np.outer(np.roll(mass, i), np.roll(mass, j))
                found = total(centre, other, epsilon)
                assert found <= stated + 1e-9
                assert found == pytest.approx(stated, abs=1e-9) or 0 < i < 4


def test_a_report_is_exactly_as_private_as_stated():
    mechanism, ideal = GridLaplace.interval(0.0, 1.0, 1.0), Laplace.interval(0.0, 1.0, 1.0)
    assert mechanism.noise.rate * mechanism.steps == 1  # no rounding at all
    assert float(mechanism.curve.delta(1.0)) == 0
    assert float(mechanism.curve.delta(1 - 1e-9)) > 0
    eps = np.linspace(0, 0.99, 34)
    np.testing.assert_allclose(mechanism.curve.delta(eps), ideal.curve.delta(eps), rtol=1e-9)
    coarse = GridLaplace(1.0, 1.0, steps=2)
    assert float(coarse.curve.delta(0.5)) > float(ideal.curve.delta(0.5)) * 1.1  # a coarse grid is easier to read
    bound = 1 - np.exp((eps - 1) / 2) / math.cosh(0.25)
    assert np.all(coarse.profile(eps) <= np.maximum(bound, 0) + 1e-12)
    odd = GridLaplace(3.3, 0.1, dimension=3, centre=-7.0, steps=10)
    assert odd.noise.rate * 10 == Fraction(0.1)


def test_values_stay_in_the_ball_and_reports_estimate_them():
    mechanism = GridLaplace(2.0, 5.0, dimension=4, steps=64)
    rng = np.random.default_rng(2)
    values = rng.laplace(size=(4000, 4))
    values /= np.abs(values).sum(axis=1, keepdims=True)  # on the rim
    steps = mechanism.quantised(values)
    assert np.abs(steps).sum(axis=1).max() <= 32
    assert np.abs(steps * mechanism.step - values).max() < 2 * mechanism.step
    n = 20_000
    value = np.tile([0.5, -0.25, 0.0, 0.125], (n, 1))
    reports = mechanism.report(value, words(3))
    assert reports.shape == (n, 4)
    assert reports.dtype == np.int64
    assert mechanism.readable(reports).all()
    off = mechanism.estimate(reports) - value[0]
    assert np.all(np.abs(off) < 4.5 * math.sqrt(mechanism.noise.variance / n) * mechanism.step)
    assert np.mean((reports - reports.mean(axis=0)) ** 2) == pytest.approx(mechanism.noise.variance, rel=0.05)
    most = mechanism.furthest
    assert 32 + 64 / mechanism.noise.rate <= most < 34 + 64 / mechanism.noise.rate
    assert mechanism.readable(np.array([[0, -most, 0, most], [0, 0, 0, most + 1], [-(2**63), 0, 0, 0]])).tolist() == [
        True,
        False,
        False,
    ]


def test_the_error_is_that_of_real_numbers_and_half_a_step():
    for ideal in (Laplace.interval(-3.0, 5.0, 0.7), Laplace(1.0, 3.0, dimension=7)):
        grid = on_a_grid(ideal)
        assert isinstance(grid, ExactMechanism)
        assert grid.squared_error(1000) == pytest.approx(ideal.squared_error(1000), rel=1e-5)
    values = [-3.0, 5.0, 0.2]
    assert grid.epsilon0 == 3.0
    assert np.abs(on_a_grid(Laplace.interval(-3.0, 5.0, 0.7)).answer(values) - np.mean(values)).max() < 1e-12


@pytest.mark.parametrize("order", [1, 2])
def test_rows_are_held_inside_in_whole_numbers(order):
    rng = np.random.default_rng(order)
    for radius in (1, 3, 50, 2**29):
        rows = np.rint(rng.uniform(-1, 1, (300, 5)) * radius).astype(np.int64)
        inside = held(rows, radius, order)
        size = [sum(abs(int(k)) ** order for k in row) for row in inside]
        assert max(size) <= radius**order
        before = np.array([sum(abs(int(k)) ** order for k in row) for row in rows], dtype=float)
        np.testing.assert_array_equal(inside[before <= radius**order], rows[before <= radius**order])
        far = before > radius**order
        if radius > 3:  # brought to the rim, not far inside
            assert (np.array(size, dtype=float)[far] >= (1 - 5 * order * 5 / radius) * radius**order).all()
    assert np.abs(on_the_grid(np.array([[7.0]]), 0.0, 1e-3, 5, order)).max() == 5


def test_refusals_and_broken_words():
    for wrong in (0.5, True, "1", None):
        with pytest.raises(InvalidValue, match="rate must be a Fraction"):
            DiscreteLaplace(wrong)
    for wrong, hint in ((Fraction(1, 2**53), "coarser"), (Fraction(51), "finer"), (Fraction(-1), "coarser")):
        with pytest.raises(InvalidValue, match=hint):
            DiscreteLaplace(wrong)
    for wrong in (3, 0, 2**31, 2.5):
        with pytest.raises(InvalidValue, match="steps"):
            GridLaplace(1.0, 1.0, steps=wrong)
    with pytest.raises(InvalidValue, match="fewer steps"):
        GridLaplace(1.0, 1e-12)
    assert on_a_grid(Laplace(1.0, 1e-12)).steps < 2**20
    with pytest.raises(InvalidValue, match="row 1 of values is 2, outside"):
        GridLaplace.interval(0.0, 1.0, 1.0).report([0.5, 2.0], words())
    with pytest.raises(NetdpError, match="broken"):
        DiscreteLaplace(Fraction(1, 100)).sample((4,), lambda size: np.zeros(size, dtype=np.uint64))
