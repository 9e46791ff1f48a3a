"""Features on one scale: bounds, means and variances by a masked sum, and what is warned of."""

import warnings

import numpy as np
import pytest

from netdp import graphs
from netdp.families.masked.learning import noisy_means, standardised
from netdp.families.masked.training import scaling_sum
from netdp.learn.scaling import PreprocessingWarning, Scaling, by_bounds, drowning, look_at, scaled_by_own_statistics
from netdp.models.schema import moments
from netdp.protocols.calibration import calibrate


def parties(n=40, rows=25, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(30, 4, n * rows), rng.exponential(2.0, n * rows), np.full(n * rows, 7.0)])
    return X, np.split(X, n)


BOUNDS = by_bounds([(0, 100), (0, 20), (0, 10)], 3)


@pytest.mark.parametrize("unit", ["party", "record"])
def test_means_and_deviations_are_those_of_the_rows(unit):
    """With little noise; and with the noise that the sum states, means are off by about as much as is said."""
    X, tables = parties()
    within = BOUNDS.bounded(X)
    exact = np.concatenate([within.mean(axis=0), (within**2).mean(axis=0) - 1.0])
    quiet = scaling_sum(graphs.ring(40), 3, unit, rows=25, sigma=1e-4)
    found = standardised(BOUNDS, quiet, tables, 0)
    np.testing.assert_allclose(found.mean, exact[:3], atol=1e-3)
    np.testing.assert_allclose(found.deviation[:2], within.std(axis=0)[:2], rtol=0.03)
    assert found.deviation[2] == pytest.approx(0.01, abs=0.01)  # no spread: nothing is blown up
    loud = quiet.replace(sigma=2.0)
    off = []
    for seed in range(60):
        means, noise = noisy_means(BOUNDS, loud, tables, seed)
        off.append((means - exact) / noise)
    assert 0.85 < np.std(off) < (1.15 if unit == "party" else 1.45)


def test_noise_leaves_bounds_as_they_are():
    X, tables = parties()
    drowned = standardised(BOUNDS, scaling_sum(graphs.ring(40), 3, "party", None, sigma=1e3), tables, 0)
    assert np.abs(drowned.mean).max() < 0.05
    np.testing.assert_array_equal(drowned.deviation, 1.0)
    assert np.abs(drowned.applied(X)).max() < 1.1


def test_one_record_moves_the_sum_by_no_more_than_is_accounted():
    """docs/proofs/learning.md#private-standardisation, unit record: in whole numbers, whatever the other records are."""
    from netdp.families.masked.protocol import summed_records

    protocol = calibrate(scaling_sum(graphs.ring(5), 3, "record", rows=10), 1.0, 1e-6)
    rng = np.random.default_rng(0)
    z = rng.choice([-1.0, 1.0, 0.0, 0.3], (50, 3))
    values = moments(z, "record")
    every = summed_records(protocol, values)
    for r in range(50):
        without = summed_records(protocol, np.delete(values, r, axis=0))
        assert np.linalg.norm(every - without) <= protocol.distance


def test_bounds():
    assert by_bounds((0, 5), 2).high.tolist() == [5.0, 5.0]
    assert by_bounds({1: (0, 1), 0: (2, 3)}, 2).low.tolist() == [2.0, 0.0]
    twice = Scaling(np.zeros(1), np.ones(1), np.array([0.5]), np.array([0.25]))
    assert twice.applied(np.array([[1.0], [-5.0]])).tolist() == [[2.0], [-6.0]]


def test_a_row_is_scaled_by_itself():
    X, tables = parties()
    found = standardised(BOUNDS, scaling_sum(graphs.ring(40), 3, "party", None), tables, 0)
    np.testing.assert_array_equal(found.applied(X)[10:11], found.applied(X[10:11]))


def test_what_is_warned_of():
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, (100, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        look_at(X)
        look_at(rng.random((50, 2)) < 0.5)  # flags, 0 and 1: nobody has scaled them
        look_at((X - 3.0) / 2.0)  # public statistics
        look_at(X[:3] - X[:3].mean(axis=0))  # too few to tell
    own = (X - X.mean(axis=0)) / X.std(axis=0)
    with pytest.warns(PreprocessingWarning, match="all 4 features have mean 0 and variance 1"):
        look_at(own)
    mixed = np.hstack([own, rng.random((100, 3)) < 0.5])
    assert scaled_by_own_statistics(mixed) == "4 of 7 features have mean 0 and variance 1"
    assert scaled_by_own_statistics(np.hstack([own[:, :1], X])) is None  # one of many: it may just be so
    with pytest.warns(PreprocessingWarning, match="feature 'pay' makes up nearly all"):
        look_at(np.column_stack([X, 1e5 + X[:, 0]]), ["a", "b", "c", "d", "pay"])
    assert drowning(np.full((5, 1), 1e9)) is None
    assert drowning(np.zeros((5, 2))) is None
