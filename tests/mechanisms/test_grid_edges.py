"""Where grids end: steps too small for a double, vectors at the rim, curves beyond their points, narrow caps.

Proofs: docs/proofs/mechanisms.md#finite-precision.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.mechanisms import (
    Gaussian,
    GridGaussian,
    GridLaplace,
    GridPrivUnit,
    Laplace,
    PrivUnit,
    UnaryEncoding,
    on_a_grid,
)
from netdp.mechanisms.laplace import DiscreteLaplace


@pytest.mark.parametrize("make", [lambda x: GridLaplace(x, 1.0), lambda x: GridGaussian(x, x)])
@pytest.mark.parametrize("sensitivity", [5e-324, 1e-318, 1e-305])
def test_a_step_too_small_for_a_double_is_refused(make, sensitivity):
    """Divided by a step of 0, the centre is no number, and came out as −2⁶³: every report told whether it was the value."""
    with pytest.raises(InvalidValue, match="rescale"):
        make(sensitivity)


def test_the_smallest_grids_hold_what_they_state():
    mechanism = GridLaplace(1e-300, 1.0)
    found = mechanism.quantised([0.0, -0.0, 5e-301, -5e-301, 1e-320])
    assert found.ravel().tolist() == [0, 0, 2**19, -(2**19), 0]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dimension", [2, 5, 1000])
def test_no_number_of_a_vector_at_the_rim_is_off_by_more_than_two_steps(order, dimension):
    """With numbers that are all rounded up, the longest used to be pulled in by half a step for every other one."""
    mechanism = GridLaplace(1.0, 1.0, dimension) if order == 1 else GridGaussian(1.0, 1.0, dimension, steps=2**20)
    radius = mechanism.steps // 2
    steps = np.abs(np.random.default_rng(order).normal(size=(200, dimension)))
    steps[0] = 0.51
    steps[0, 0] = 0.0
    steps[1:] *= radius / np.linalg.norm(steps[1:], ord=order, axis=1, keepdims=True)
    rest = steps[0, 1:]
    steps[0, 0] = radius - rest.sum() if order == 1 else math.sqrt(radius**2 - (rest**2).sum())
    found = mechanism.quantised(steps * mechanism.step)
    assert np.abs(found - steps).max() <= 2
    lengths = np.abs(found).sum(axis=1) if order == 1 else (found * found).sum(axis=1)
    assert lengths.max() <= radius**order


def test_a_large_stated_loss_does_not_thin_out_the_curve():
    ideal = Gaussian(6800.0, epsilon0=10.0)
    grid = on_a_grid(ideal)
    for epsilon in (1e-4, 3e-4, 1e-3):
        assert grid.curve.delta(epsilon) <= 1.001 * ideal.curve.delta(epsilon)
        assert grid.delta0_at(epsilon) <= ideal.delta0_at(epsilon)  # read at the point itself, not off a chord


@pytest.mark.parametrize(
    ("ideal", "way_out"),
    [
        (Gaussian(1e30), "less noise"),
        (Gaussian(1e90, 1e-90), "less noise"),
        (Laplace(1.0, 1e-20), "larger ε₀"),
    ],
)
def test_what_no_grid_holds_is_refused_with_a_way_out(ideal, way_out):
    with pytest.raises(InvalidValue, match=way_out):
        on_a_grid(ideal)


def test_a_laplace_profile_near_one_is_rounded_up():
    """There the last subtraction is all that rounds."""
    short = 0
    with localcontext() as context:
        context.prec = 50
        for tenth in range(60, 200, 7):
            rate, epsilon = Fraction(25, 2), tenth / 10
            r, growth = Decimal(rate.numerator) / rate.denominator, Decimal(epsilon).exp()
            below = [1 - (-r * (m + 1)).exp() / (1 + (-r).exp()) for m in range(2)]  # F(0), F(1)
            above = [1 - value for value in below]  # F(−1), F(−2)
            truth = max(below[m] - growth * above[1 - m] for m in range(2))
            found = float(DiscreteLaplace(rate).shift_delta(2, epsilon)[0])
            short += Decimal(found) < truth
    assert short == 0


@pytest.mark.parametrize(("dimension", "epsilon0"), [(3, 16.0), (3, 20.0), (6, 21.0), (15, 26.0)])
def test_narrow_caps_of_long_vectors_cost_no_accuracy(dimension, epsilon0):
    """They cost a quarter of it, or were refused, when the blur was not weighed with how rare such lengths are."""
    ideal, grid = PrivUnit(dimension, epsilon0), GridPrivUnit(dimension, epsilon0)
    assert grid.squared_error(1) <= 1.001 * ideal.squared_error(1)
    assert grid.shares[0] >= (1 - 1e-3) * grid.cap


def test_a_share_that_is_a_small_difference_is_rounded_down_term_by_term():
    """In the plane all is elementary. Here the difference is 4·10⁻⁸ of its terms."""
    mechanism = GridPrivUnit(2, 17.88639455684144, spread=256)
    s, rho, h = 256.0, float(mechanism.shortest), math.sqrt(0.5)
    cap = 2 * math.asin(math.sqrt((1 - mechanism.threshold) / 2)) / math.pi
    longer, about = (math.exp(-((rho + sign * h) ** 2) / (2 * s * s)) for sign in (1, -1))
    blur = h / 2 * min(math.sqrt(math.pi / 2) / s, longer / (rho + h))  # (π/2)·h·E[1/‖G‖]/π
    exact = (cap * longer - blur - math.exp(-50)) / min(1.0, math.exp(2 / (24 * s * s)) * about)
    exact *= math.exp(-((math.sqrt(2) + 10 + h / s) ** 2) / (24 * s * s))
    assert 0 < mechanism.shares[0] < exact * (1 - 1e-3)


def test_rows_of_another_width_are_no_reports():
    for mechanism in (
        GridLaplace(1.0, 1.0, 3),
        GridGaussian(1.0, 1.0, 3),
        GridPrivUnit(3, 1.0),
        UnaryEncoding(3, 1.0),
    ):
        number = 1 if isinstance(mechanism, UnaryEncoding) else 2**20
        assert mechanism.readable(np.full((2, 3), number)).tolist() == [True, True]
        for width in (2, 7):
            assert mechanism.readable(np.full((2, width), number)).tolist() == [False, False]
