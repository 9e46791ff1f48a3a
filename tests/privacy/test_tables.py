"""What can be computed is not interpolated: ε and δ that are read off a formula, whatever the points of the table are.

Proof: docs/proofs/privacy.md#tables.
"""

import pickle
from functools import partial

import numpy as np
import pytest

from netdp.privacy import GaussianCurve, ProfileCurve, gaussian_delta, gaussian_epsilon
from netdp.privacy.curves import SharedCurve
from netdp.privacy.observers import entry
from netdp.privacy.profile import PerCurve
from netdp.protocols.accounting import PairsCurve
from netdp.protocols.coalitions import LargestCurve

MUS = (0.3, 1.0, 4.0)
DELTAS = np.array([0.2, 1e-3, 1e-6, 1e-12])


def table(points, mus=MUS):
    """Gaussian shifts, tabulated at a few points, with their formula."""
    points = np.asarray(points, dtype=float)
    deltas = np.stack([np.asarray(gaussian_delta(mu, points)) for mu in mus])
    return ProfileCurve(points, deltas, PerCurve(tuple(partial(gaussian_delta, mu) for mu in mus)))


COARSE = table([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
FINE = table(np.linspace(0.0, 130.0, 4001))


@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_that_of_the_formula_whatever_the_points_are(delta):
    exact = gaussian_epsilon(np.array(MUS), delta)
    for curve in (COARSE, FINE):
        found = curve.epsilon(delta)
        assert (found >= exact * (1 - 1e-11)).all()
        np.testing.assert_allclose(found, exact, rtol=3e-11)
        for mu, one in zip(MUS, found, strict=True):
            assert gaussian_delta(mu, one) <= delta  # what is returned was computed to hold


def test_delta_is_that_of_the_formula_between_the_points():
    asked = np.array([0.0, 0.3, 1.7, 9.0, 40.0])
    for place, mu in enumerate(MUS):
        np.testing.assert_allclose(entry(COARSE, place).delta(asked), gaussian_delta(mu, asked), rtol=1e-14)
    assert float(entry(COARSE, 0).delta(200.0)) == float(
        COARSE.deltas[0, -1]
    )  # beyond the table nothing less is stated


def test_answers_are_broadcast_and_entries_without_a_target_stay_without():
    shaped = ProfileCurve(COARSE.epsilons, np.where([[True], [False], [True]], COARSE.deltas, np.nan), COARSE.formula)
    found = shaped.epsilon(DELTAS[:, None])
    assert found.shape == (4, 3)
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[:, [0, 2]], COARSE.epsilon(DELTAS[:, None])[:, [0, 2]])
    assert np.isnan(shaped.delta(0.7)[1])
    assert COARSE.epsilon(0.0).tolist() == [np.inf] * 3
    assert COARSE.epsilon(1.0).tolist() == [0.0] * 3


def test_steps_jumps_and_growth_are_read_on_the_safe_side():
    """A formula that jumps, and one that grows: every ε that is read was computed to hold, and δ is never above the table."""

    def jump(epsilon):
        return np.where(epsilon < 1.3, 0.5, 1e-9)

    curve = ProfileCurve([0.0, 1.0, 2.0], [0.5, 0.5, 1e-9], PerCurve((jump,)))
    assert 1.3 <= float(curve.epsilon(1e-3)) <= 1.3 * (1 + 1e-10)

    def grows(epsilon):
        return 0.1 * (epsilon - 1.0) ** 2

    curve = ProfileCurve([0.0, 1.0, 2.0], [0.1, 0.0, 0.0], PerCurve((grows,)))
    assert curve.delta([0.5, 1.5]).tolist() == [pytest.approx(0.025), 0.0]
    assert float(grows(curve.epsilon(0.01))) <= 0.01


def test_the_same_curve_pickled_taken_apart_and_shared_is_read_alike():
    shared = SharedCurve(COARSE, [0, -1, 2])
    again = pickle.loads(pickle.dumps(shared))
    for delta in DELTAS:
        np.testing.assert_array_equal(again.epsilon(delta), shared.epsilon(delta))
        assert float(entry(shared, 2).epsilon(delta)) == float(shared.epsilon(delta)[2])


def test_the_largest_and_all_pairs_are_read_off_their_parts():
    """Lines "`found` a little above its bound", "`pairwise` and `account` of gossip on a grid apart by 8.5e-4"."""
    columns = [SharedCurve(COARSE, [-1, 0, 2]), SharedCurve(FINE, [1, -1, 0]), SharedCurve(FINE, [2, 1, -1])]
    pairs, largest = PairsCurve(columns), LargestCurve(columns)
    assert pairs.shape == (3, 3)
    for delta in DELTAS:
        for v, column in enumerate(columns):
            np.testing.assert_array_equal(pairs.epsilon(delta)[:, v], column.epsilon(delta))
        read = largest.epsilon(delta)
        np.testing.assert_array_equal(read, np.nanmax(pairs.epsilon(delta), axis=1))
        assert float(entry(largest, 1).epsilon(delta)) == read[1]  # one entry taken out is not a table either
    np.testing.assert_array_equal(pairs.delta(0.7)[:, 1], columns[1].delta(0.7))
    again = pickle.loads(pickle.dumps(pairs))
    np.testing.assert_array_equal(again.epsilon(1e-6), pairs.epsilon(1e-6))
    assert (pairs.table.epsilon(1e-6) >= pairs.epsilon(1e-6) * (1 - 1e-11))[~np.eye(3, dtype=bool)].all()
    assert pairs.to_dict()["kind"] == "profile"


def test_chords_are_left_for_composition_and_files():
    again = ProfileCurve(FINE.epsilons, FINE.deltas)
    assert again.formula is None
    assert (again.epsilon(1e-6) >= FINE.epsilon(1e-6) * (1 - 1e-11)).all()
    twice = entry(FINE, 1).self_compose(2)
    exact = float(GaussianCurve(1.0).self_compose(2).epsilon(1e-6))
    assert exact <= float(twice.epsilon(1e-6)) <= 1.01 * exact


def test_few_values_are_computed():
    calls = []

    def counted(epsilon):
        calls.append(len(epsilon))
        return gaussian_delta(1.0, epsilon)

    points = np.linspace(0.0, 12.0, 601)
    curve = ProfileCurve(points, gaussian_delta(1.0, points), PerCurve((counted,)))
    curve.epsilon(1e-6)
    assert sum(calls) <= 9
