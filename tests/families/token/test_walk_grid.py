"""Walks in whole numbers, simulated: the law that is predicted, the record that observers keep, and the steps of a user."""

import numpy as np
import pytest

from netdp import graphs, simulate
from netdp.errors import InvalidValue
from netdp.families.token.path import PathSum
from netdp.families.token.ring import RingHistogram
from netdp.families.token.steps import (
    answer,
    is_heap,
    random_elements,
    random_share,
    ring_answers,
    shares,
    visited,
    walk_values,
)
from netdp.families.token.walk import GraphWalkSum, WalkHistogram, WalkSum
from netdp.mechanisms.discrete_gaussian import words_from
from netdp.protocols.accuracy import expected_error
from netdp.protocols.calibration import calibrate

STEP = 2.0**-6


def words(seed=0):
    return words_from(np.random.default_rng(seed))


@pytest.mark.parametrize(
    "protocol",
    [
        WalkSum(5, 60, sigma=1.0, grid=STEP, tokens=2),
        GraphWalkSum(graphs.ring(5), 60, sigma=1.0, grid=STEP),
        PathSum(5, [[0, 1, 2, 3, 4, 0, 2]], sigma=1.0, closing=True, grid=STEP),
    ],
    ids=["complete", "graph", "path"],
)
def test_errors_are_those_predicted(protocol):
    values = np.linspace(0, 1, 5)
    errors = [simulate(protocol, values, seed=seed).estimates[0, 0] - values.mean() for seed in range(150)]
    predicted = expected_error(protocol, values)
    assert np.mean(np.square(errors)) == pytest.approx(predicted.rmse**2, rel=0.5)
    assert predicted.rounding > 0 or (values / STEP == np.rint(values / STEP)).all()


def test_the_record_holds_whole_numbers_that_add_up():
    # everybody watches but one who is never drawn: everything is known
    rarely = [1, 1, 1, 1, 1e-12]
    p = WalkSum(5, 50, sigma=1.0, grid=STEP, tokens=2, dimension=2, sensitivity=2.0, weights=rarely)
    values = np.array([[0.1, -0.3], [0.5, 0.5], [-0.4, 0.2], [0.0, 1.0], [0.0, 0.0]])
    run = simulate(p, values, seed=3, record=range(4))
    record = run.record
    for k in range(2):
        mine = record.visits[:, 0] == k
        added = record.contributions[mine] + record.noises[mine]
        np.testing.assert_allclose(np.diff(record.arrivals[mine], axis=0), added[:-1])
        np.testing.assert_allclose(record.arrivals[mine][-1] + added[-1], record.release[k])
    for part in (record.arrivals, record.noises, record.release, record.contributions):
        assert (part / STEP == np.rint(part / STEP)).all()
    np.testing.assert_allclose(run.estimates[0], record.release.sum(axis=0) / 100)
    # the same by the steps of a user
    token = np.zeros(2, dtype=np.int64)
    rows, noises = walk_values(p, values), np.rint(record.noises[record.visits[:, 0] == 0] / STEP).astype(np.int64)
    for user, noise in zip(record.visits[record.visits[:, 0] == 0, 2], noises, strict=True):
        token = visited(token, rows[user], noise)
    np.testing.assert_array_equal(token * STEP, record.release[0])


def test_values_are_held_to_the_grid():
    p = WalkSum(4, 50, sigma=1.0, grid=0.25)
    with pytest.raises(InvalidValue, match="dimension=2"):
        simulate(p, np.zeros((4, 2)), seed=0)
    with pytest.raises(InvalidValue, match="64-bit"):
        walk_values(p, np.array([1e18]))
    with pytest.raises(InvalidValue, match="64 bits"):
        visited(np.array([2**63 - 1]), np.array([1]), np.array([0]))


def test_calibration_on_a_grid_meets_the_target():
    p = calibrate(WalkSum(5, 20, sigma=1.0, grid=STEP), 3.0, 1e-5)
    assert p.sigma == pytest.approx(calibrate(p.replace(grid=None), 3.0, 1e-5).sigma, rel=0.02)


@pytest.mark.parametrize("response", ["k-ary", "unary"])
def test_answers_have_the_stated_law(response):
    p = WalkHistogram(4, 8, domain=3, gamma=0.4, response=response)
    found = sum(answer(p, 1, words(seed)) for seed in range(3000)) / 3000
    other = 0.4 / (2 if response == "unary" else 3)
    np.testing.assert_allclose(found, [other, 0.6 + other, other], atol=0.04)
    elements = random_elements(p, 3000, words())
    np.testing.assert_allclose(elements / 3000, 0.5 if response == "unary" else 1 / 3, atol=0.04)
    assert is_heap(p, elements, 3000)
    assert not is_heap(p, elements, 1000)
    assert random_share(2.0**-11 * 1.3) * 2**-64 == 2.0**-11 * 1.3


def test_a_ring_of_counts_by_its_steps_has_the_simulators_mean():
    p = RingHistogram(6, 2, domain=3, gamma=0.5)
    labels, runs = [0, 0, 1, 2, 0, 1], 300
    rng = np.random.default_rng(5)
    estimates = []
    for _ in range(runs):
        token = sum(ring_answers(p, u, [label] * 2, words_from(rng)).sum(axis=0) for u, label in enumerate(labels))
        assert is_heap(p, token, 12 + p.blanket + p.closing_blanket)
        estimates.append(shares(p, token))
    simulated = [simulate(p, np.array(labels), seed=seed).estimates[0] for seed in range(runs)]
    for found in (estimates, simulated):
        np.testing.assert_allclose(np.mean(found, axis=0), [1 / 2, 1 / 3, 1 / 6], atol=0.1)
    np.testing.assert_allclose(np.var(estimates, axis=0), np.var(simulated, axis=0), rtol=0.4)
    with pytest.raises(InvalidValue, match="2 rounds"):
        ring_answers(p, 0, [1], words())
