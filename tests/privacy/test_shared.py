"""One curve for many entries: the same numbers as copies would give, nan where there is nobody."""

import copy
import json
import pickle

import numpy as np
import pytest

from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import GaussianCurve, Guarantee, ProfileCurve, RenyiCurve, SharedCurve, everywhere

ONE = ProfileCurve([0.0, 0.5, 1.0], [0.5, 0.2, 0.0])
TWO = ProfileCurve([0.0, 0.5, 1.0], [[0.5, 0.2, 0.0], [0.3, 0.3, 0.1]])


def test_every_entry_asks_its_own_curve():
    shared = SharedCurve(TWO, [1, 0, -1, 1])
    assert shared.shape == (4,)
    for ask, at in (("delta", 0.25), ("epsilon", 0.15)):
        rows = getattr(TWO, ask)(at)
        np.testing.assert_array_equal(getattr(shared, ask)(at), [rows[1], rows[0], np.nan, rows[1]])


def test_questions_broadcast_against_the_entries():
    shared = SharedCurve(TWO, [1, 0, -1])
    asked = np.array([[0.0], [0.25], [0.25], [2.0]])
    found = shared.delta(asked)
    assert found.shape == (4, 3)
    for i, epsilon in enumerate(asked[:, 0]):
        np.testing.assert_array_equal(found[i], shared.delta(epsilon))
    np.testing.assert_array_equal(shared.epsilon([0.01, 0.2, 0.3]), [TWO.epsilon(0.01)[1], TWO.epsilon(0.2)[0], np.nan])
    pairs = SharedCurve(ONE, [[-1, 0], [0, -1]])
    np.testing.assert_array_equal(pairs.delta(0.0), [[np.nan, 0.5], [0.5, np.nan]])
    np.testing.assert_array_equal(pairs.delta([0.0, 1.0]), [[np.nan, 0.0], [0.5, np.nan]])


def test_every_different_question_is_put_once():
    asked = []

    class Counting(ProfileCurve):
        __slots__ = ()

        def delta(self, epsilon):
            asked.append(float(epsilon))
            return super().delta(epsilon)

    shared = SharedCurve(Counting([0.0, 1.0], [0.5, 0.0]), np.zeros(1000, dtype=int))
    found = shared.delta(np.tile([0.25, 0.75], 500))
    assert asked == [0.25, 0.75]
    assert found[:2].tolist() == [float(ProfileCurve([0.0, 1.0], [0.5, 0.0]).delta(e)) for e in (0.25, 0.75)]


def test_composition_is_that_of_the_curves():
    shared = SharedCurve(ONE, [0, -1])
    for composed, curve in ((shared.compose(shared), ONE.compose(ONE)), (shared.self_compose(3), ONE.self_compose(3))):
        assert isinstance(composed, SharedCurve)
        np.testing.assert_array_equal(composed.epsilon(0.01), [float(curve.epsilon(0.01)), np.nan])
    for other in (SharedCurve(ONE, [0, 0]), ONE, GaussianCurve([1.0, np.nan])):
        with pytest.raises(Unsupported, match="cannot compose a shared curve"):
            shared.compose(other)


def test_renyi_divergences_are_shared_too():
    shared = SharedCurve(RenyiCurve.linear([0.5, 0.1]), [1, -1, 0])
    np.testing.assert_allclose(shared.rdp(2.0), [0.2, np.nan, 1.0])
    with pytest.raises(Unsupported, match="no Rényi divergence"):
        SharedCurve(ONE, [0]).rdp(2.0)


def test_it_is_a_value_that_survives_copying_and_json():
    shared = SharedCurve(TWO, [1, 0, -1])
    for again in (copy.deepcopy(shared), pickle.loads(pickle.dumps(shared))):
        np.testing.assert_array_equal(again.delta(0.25), shared.delta(0.25))
        with pytest.raises(ValueError, match="read-only"):
            again.which[0] = 0
        with pytest.raises(AttributeError, match="immutable"):
            again._which = None
    assert json.loads(json.dumps(shared.to_dict()))["which"] == [1, 0, -1]
    loss = Guarantee(shared, observers=[2])
    assert pickle.loads(pickle.dumps(loss)).worst_epsilon(0.01) == loss.worst_epsilon(0.01)


@pytest.mark.parametrize(
    ("curves", "which", "message"),
    [
        (ONE, [0, 1], "which names curve 1, there are 1"),
        (TWO, [0, 2], "which names curve 2, there are 2"),
        (ONE, [-2], "which names curve"),
        (ONE, 0, "a curve number per entry, got 0"),
        (ONE, [0.0], "a curve number per entry"),
        (ProfileCurve([0.0], [[[0.1]]]), [0], "a curve number per entry"),
    ],
)
def test_bad_numbers_are_refused(curves, which, message):
    with pytest.raises(InvalidValue, match=message):
        SharedCurve(curves, which)


def test_everywhere_spreads_one_curve_but_nowhere_where_nobody_is():
    for curve in (ONE, GaussianCurve(1.0), RenyiCurve.linear(0.1)):
        spread = everywhere(curve, (3,), [1])
        assert spread.shape == (3,)
        expected = float(curve.epsilon(0.01))
        np.testing.assert_array_equal(spread.epsilon(0.01), [expected, np.nan, expected])
        pairs = everywhere(curve, (2, 2), np.diag_indices(2))
        np.testing.assert_array_equal(np.isnan(pairs.epsilon(0.01)), np.eye(2, dtype=bool))
        assert not np.isnan(everywhere(curve, (2,)).epsilon(0.01)).any()
    assert isinstance(everywhere(GaussianCurve(1.0), (3,)), GaussianCurve)  # keeps its μ
    with pytest.raises(InvalidValue, match=r"only a single curve.*shape \(2,\)"):
        everywhere(TWO, (3,))
