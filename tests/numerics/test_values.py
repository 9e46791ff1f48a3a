"""The parties' values: clipped into the stated set, or refused if no set of the stated diameter can hold them."""

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.numerics import values as room
from netdp.numerics.values import held, party_values


def column(*numbers):
    return np.array(numbers, dtype=np.float64)[:, None]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2], r"shape \(3,\) or \(3, d\), one row per party, got \(2,\)"),
        (np.zeros((3, 2, 2)), r"got \(3, 2, 2\)"),
        (np.zeros((3, 0)), "at least one column"),
        ([[1], [1, 2], [1]], "the rows differ in length"),
        (["a", "b", "c"], "values must be numbers, got 'a'"),
        ([1j, 2, 3], "must be numbers"),
        ([None, 1, 2], "must be numbers, got None"),
        ([0, np.inf, 0], "value of party 1 is not finite"),
        ([0, 0, np.nan], "value of party 2 is not finite"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(given, message):
    with pytest.raises(InvalidValue, match=message):
        party_values(given, 3)


def test_numbers_of_any_kind_become_a_table():
    assert party_values([True, False, True], 3).tolist() == [[1.0], [0.0], [1.0]]
    assert party_values(np.arange(6, dtype=np.int8).reshape(3, 2), 3).shape == (3, 2)


def test_an_interval_clips_every_coordinate():
    data = np.array([[-3.0, 0.2], [0.1, 9.0]])
    assert held(data, 2.0, (0, 1)).tolist() == [[0.0, 0.2], [0.1, 1.0]]
    assert data[0, 0] == -3.0  # the caller's numbers stay


def test_a_radius_shortens_vectors_and_keeps_their_direction():
    data = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(held(data, 2.0, 1.0), [[0.6, 0.8], [0.3, 0.4], [0, 0]])


@pytest.mark.parametrize(
    ("data", "sensitivity", "bounds", "message"),
    [
        (column(0, 1), 1.0, (0, 1.01), r"\[0, 1.01\] is 1.01 across, more than the sensitivity 1"),
        (np.zeros((2, 4)), 1.0, (0, 1), r"\[0, 1\] in each of 4 coordinates is 2 across"),
        (column(0, 1), 1.0, 0.51, "the ball of radius 0.51 is 1.02 across"),
        (column(0, 1), 1.0, (1, 0), r"finite numbers lo < hi, got \(1, 0\)"),
        (column(0, 1), 1.0, (0, np.inf), "finite numbers lo < hi"),
        (column(0, 1), 1.0, 0.0, r"a radius > 0 or a pair \(lo, hi\), got 0.0"),
        (column(0, 1), 1.0, True, "got True"),
        (column(0, 1), 1.0, np.nan, "got nan"),
        (column(0, 1), 1.0, (0, 1, 2), r"got \(0, 1, 2\)"),
        (column(0, 1), 1.0, "wide", "got 'wide'"),
    ],
)
def test_bounds_wider_than_the_sensitivity_and_nonsense_are_refused(data, sensitivity, bounds, message):
    with pytest.raises(InvalidValue, match=message):
        held(data, sensitivity, bounds)


def test_bounds_as_wide_as_the_sensitivity_are_enough():
    assert held(column(-1, 5), 1.0, (0, 1)).ravel().tolist() == [0, 1]
    assert held(np.zeros((2, 4)), 2.0, (0, 1)).shape == (2, 4)
    assert held(column(0.0, 0.1 + 0.2), 0.3, None).shape == (2, 1)  # 0.1 + 0.2 is a value of [0, 0.3]
    assert held(column(-1, 5), 2.0, np.int64(1)).ravel().tolist() == [-1, 1]


def test_numbers_too_far_apart_are_refused_by_name():
    with pytest.raises(InvalidValue, match=r"parties 1 and 3 are 1.5 apart, more than the sensitivity 1 .*bounds="):
        held(column(0.5, -0.5, 0.7, 1.0), 1.0, None)
    assert held(column(0.0, 1.0), 1.0, None).ravel().tolist() == [0.0, 1.0]
    with pytest.raises(InvalidValue, match="parties 0 and 1"):  # three rows of two parties
        held(column(0.0, 0.0, 0.0, 2.0), 1.0, None, parties=2)


def test_vectors_too_far_apart_in_one_coordinate_or_in_all():
    with pytest.raises(InvalidValue, match=r"parties 0 and 2 are 2 apart"):
        held(np.array([[0.0, 0], [1, 0], [2, 0]]), 1.5, None)
    with pytest.raises(InvalidValue, match=r"parties 1 and 2 are 1.41421 apart"):
        held(np.array([[0.0, 0], [1, 0], [0, 1]]), 1.2, None)


def test_a_ball_settles_what_a_box_cannot():
    """On a circle of diameter 1 the box around it is √2 wide: it cannot say, the ball can, without looking at pairs."""
    angles = np.arange(5000) / 5000 * 2 * np.pi
    circle = np.column_stack([np.cos(angles), np.sin(angles)]) / 2
    assert held(circle, 1.0, None) is circle


def test_pairs_settle_what_a_ball_cannot():
    """A triangle of side 1 fits in no ball of diameter 1, and no two of its corners are further apart than 1."""
    triangle = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    assert held(triangle, 1.0, None) is triangle
    with pytest.raises(InvalidValue, match="apart"):
        held(triangle, 0.999, None)


def test_too_many_vectors_are_not_looked_at_pair_by_pair(monkeypatch):
    triangle = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    many = np.tile(triangle, (1334, 1))
    assert len(many) == 4002
    with pytest.raises(InvalidValue, match=r"whether 4002 vectors lie within 1 .*bounds=radius, or bounds=\(lo, hi\)"):
        held(many, 1.0, None)
    assert held(many, 1.35, None) is many  # a ball is enough
    assert len(held(many, 1.0, 0.5)) == 4002  # and bounds always are
    monkeypatch.setattr(room, "_ALL_PAIRS", 5000)
    assert held(many, 1.0, None) is many
