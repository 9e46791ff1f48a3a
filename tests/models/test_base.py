"""Clipping, rounding and the check in whole numbers: docs/proofs/learning.md#record-gradients, and what happens to bad records."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp.errors import InvalidValue, Unsupported
from netdp.models import Linear, Logistic, Model, NoFiniteGradient, clipped_rows, clipped_sum, whole_sum
from netdp.models.base import square_of
from netdp.models.kernels import add_whole, hold


class Given(Model):
    """A model whose gradients are the rows themselves: what floating point may come up with."""

    name, classes = "given", None

    def __init__(self, size, at_once=3):
        self.size, self.at_once = size, at_once

    def start(self):
        return np.zeros(self.size)

    def gradients(self, theta, X, y):
        for first in range(0, len(X), self.at_once):
            yield X[first : first + self.at_once]

    def losses(self, theta, X, y):
        return np.zeros(len(X))

    def predict(self, theta, X):
        return np.zeros(len(X))


def whole(rows, clip, grid, bound, **options):
    rows = np.asarray(rows, dtype=float)
    return whole_sum(
        Given(rows.shape[1]), np.zeros(rows.shape[1]), rows, np.zeros(len(rows)), clip, grid, bound, **options
    )


def test_clipped_to_the_norm_rounded_and_added():
    rows = [[3.0, 4.0], [0.3, 0.4], [-6.0, 0.0]]
    assert whole(rows, clip=1.0, grid=0.1, bound=10.8).tolist() == [6 + 3 - 10, 8 + 4]
    total = clipped_sum(Given(2), np.zeros(2), np.array(rows), np.zeros(3), clip=1.0)
    np.testing.assert_allclose(total, [0.6 + 0.3 - 1.0, 0.8 + 0.4])
    each = clipped_rows(Given(2), np.zeros(2), np.array(rows), np.zeros(3), clip=1.0)
    np.testing.assert_allclose(each, [[0.6, 0.8], [0.3, 0.4], [-1.0, 0.0]])
    assert clipped_sum(Given(2), np.zeros(2), np.array(rows), np.zeros(3), clip=math.inf).tolist() == [-2.7, 4.4]


def test_no_records_give_zero():
    assert whole(np.zeros((0, 3)), 1.0, 0.5, 3.0).tolist() == [0, 0, 0]
    assert clipped_sum(Given(3), np.zeros(3), np.zeros((0, 3)), np.zeros(0), 1.0).tolist() == [0.0, 0.0, 0.0]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.floats(width=64, allow_nan=False, allow_infinity=False), min_size=1, max_size=9),
    st.floats(1e-6, 1e6),
    st.floats(1e-9, 1e3),
    st.floats(0.5, 1e6),
)
def test_whatever_the_gradient_no_record_is_longer_than_the_bound(row, clip, grid, bound):
    """Also where the bound was stated too small for this clip and grid: the check does not trust whoever calls it."""
    with np.errstate(all="ignore"):
        got = whole([row], clip, grid, bound, lost=lambda _: None)
    assert sum(int(k) ** 2 for k in got) <= Fraction(bound) ** 2


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(2**30), 2**30), min_size=1, max_size=40), st.integers(1, 2**60))
def test_held_in_whole_numbers(numbers, limit):
    radius = math.isqrt(limit)
    steps = np.clip(np.array(numbers, dtype=np.int64), -radius, radius)
    before = steps.copy()
    hold(steps, radius, limit)
    assert sum(int(k) ** 2 for k in steps) <= limit
    if sum(int(k) ** 2 for k in before) <= limit:
        assert (steps == before).all()
    else:  # not far below either: one step for the cut and one for the radius, in every number
        length = math.sqrt(sum(int(k) ** 2 for k in before))
        np.testing.assert_array_less(np.abs(steps - before * (radius / length)), 2.0 + 1e-6 * radius)


def test_many_numbers_at_the_rim_do_not_overflow():
    steps = np.full(5000, 2**30, dtype=np.int64)  # their squares sum up to far more than 2⁶³
    hold(steps, 2**30, 2**60)
    assert sum(int(k) ** 2 for k in steps) <= 2**60
    assert steps.min() >= 2**30 / math.sqrt(5000) * (1 - 1e-6)


def test_a_check_that_trusted_doubles_would_fail():
    """(Both sides.) √2 in doubles, squared, is above 2: a bound that is met on paper is not met by its double."""
    assert square_of(math.sqrt(2.0)) == 2
    assert square_of(94906267.0) == 94906267**2 != int(94906267.0**2)  # not rounded to 53 bits
    assert square_of(math.nextafter(math.sqrt(2.0), 0)) == 1
    assert whole([[1.0, 1.0]], clip=2.0, grid=1.0, bound=math.sqrt(2.0)).tolist() == [1, 1]
    assert whole([[1.0, 1.0]], clip=2.0, grid=1.0, bound=math.nextafter(math.sqrt(2.0), 0)).tolist() == [0, 0]


def test_rounding_stays_within_what_the_protocol_states():
    """clip/g + √d/2 steps are enough: nothing is scaled down that paper allows."""
    rng = np.random.default_rng(0)
    for d in (1, 7, 300):
        rows = rng.standard_normal((50, d)) * 5
        clip, grid = 1.0, 2.0**-8
        one_by_one = np.array([whole(row[None], clip, grid, clip / grid + math.sqrt(d) / 2) for row in rows])
        clipped = rows * np.minimum(1, clip / np.linalg.norm(rows, axis=1, keepdims=True))
        assert (np.abs(one_by_one - clipped / grid) <= 0.5 + 1e-9).all()


@pytest.mark.parametrize("size", [1e200, 1e-200, 1e-310, 1e308])
def test_squares_beyond_doubles(size):
    row = np.array([[3.0, 4.0]]) * (size / 4)
    got = clipped_rows(Given(2), np.zeros(2), row, np.zeros(1), clip=1.0)
    expected = row * min(1.0, 1.0 / np.hypot(*row[0])) if size > 1 else row
    np.testing.assert_allclose(got, expected)


def test_records_without_a_finite_gradient_count_as_zero_and_are_told():
    rows = [[np.nan, 1.0], [1.0, 0.0], [np.inf, 0.0], [1.7e308, 1.7e308]]  # the norm of the last is no double
    told = []
    assert whole(rows, 1.0, 0.5, 3.0, lost=told.append).tolist() == [2, 0]
    assert told == [3]
    with pytest.warns(NoFiniteGradient, match="3 records have no finite gradient in 'given' and count as zero"):
        whole(rows, 1.0, 0.5, 3.0)
    with pytest.warns(NoFiniteGradient, match="1 record has no"):
        assert clipped_sum(Given(2), np.zeros(2), np.array(rows[:2]), np.zeros(2), 1.0).tolist() == [1.0, 0.0]
    with pytest.warns(NoFiniteGradient):
        assert clipped_rows(Given(2), np.zeros(2), np.array(rows[:1]), np.zeros(1), 1.0).tolist() == [[0.0, 0.0]]


def test_one_record_moves_the_sum_by_its_own_vector_alone():
    """Adding, taking away, permuting: everybody else's whole numbers stay, whatever the blocks."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((40, 5))
    for at_once in (1, 3, 64):
        model = Given(5, at_once)
        total = whole_sum(model, np.zeros(5), rows, np.zeros(40), 1.0, 2.0**-6, 66.0)
        for r in (0, 17, 39):
            rest = whole_sum(model, np.zeros(5), np.delete(rows, r, axis=0), np.zeros(39), 1.0, 2.0**-6, 66.0)
            assert (total - rest == whole(rows[r : r + 1], 1.0, 2.0**-6, 66.0)).all()


def test_what_does_not_fit_is_refused():
    zeros = np.zeros((1, 2))
    with pytest.raises(InvalidValue, match="more than 2³⁰; give a coarser grid"):
        whole(zeros, 1.0, 1e-12, 1e12)
    with pytest.raises(InvalidValue, match="bound must be"):
        whole(zeros, 1.0, 1.0, math.nan)
    with pytest.raises(InvalidValue, match="clip must"):
        whole(zeros, 0.0, 1.0, 1.0)
    with pytest.raises(InvalidValue, match="grid must"):
        whole(zeros, 1.0, math.inf, 1.0)
    with pytest.raises(InvalidValue, match=r"theta has shape \(3,\)"):
        whole_sum(Given(2), np.zeros(3), zeros, np.zeros(1), 1.0, 1.0, 1.0)
    with pytest.raises(InvalidValue, match="not finite any more"):
        whole_sum(Given(2), np.array([np.nan, 0.0]), zeros, np.zeros(1), 1.0, 1.0, 1.0)
    with pytest.raises(InvalidValue, match="they must be"):
        whole_sum(Given(2), np.zeros(2), np.zeros((2, 2)), np.zeros(1), 1.0, 1.0, 1.0)
    with pytest.raises(InvalidValue, match="predicts numbers, not classes"):
        Linear(1).correct(np.zeros(1), np.ones((1, 1)), np.ones(1))
    with pytest.raises(Unsupported, match=r"MaskedDescent, or state smoothness="):
        Given(2).expansion(zeros, 1.0, 1.0)
    with pytest.raises(Unsupported, match="no scores"):
        Given(2).scores(np.zeros(2), zeros)


def test_a_model_of_ones_own_promises_nothing_unless_it_says_so():
    class Careful(Given):
        exact, assumptions = True, ()

    assert Logistic(2).in_chunks(1).assumptions == ()
    assert Careful(2).in_chunks(1).exact
    assert "whoever wrote the model" in Given(2).in_chunks(2).assumptions[0]
    with pytest.raises(Unsupported, match="as chunk=1 asks; set exact = True in its class if it does"):
        Given(2).in_chunks(1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([np.zeros((1, 3))], r"shape \(1, 3\), with 2 of 2 records left; it must be \(records, 2\)"),
        ([np.zeros((2, 2)), np.ones((1, 2))], r"shape \(1, 2\), with 0 of 2 records left"),
        ([np.ones((3, 2))], "with 2 of 2 records left"),
        ([np.zeros((1, 2))], "end 1 records short of 2"),
        ([np.zeros(2)], r"shape \(2,\)"),
    ],
)
def test_one_gradient_for_every_record(given, said):
    """A model that gave two rows for one record would have it count twice."""

    class Wrong(Given):
        def gradients(self, theta, X, y):
            yield from given

    for take in (
        lambda: whole_sum(Wrong(2), np.zeros(2), np.zeros((2, 2)), np.zeros(2), 1.0, 1.0, 1.0),
        lambda: clipped_sum(Wrong(2), np.zeros(2), np.zeros((2, 2)), np.zeros(2), 1.0),
        lambda: clipped_rows(Wrong(2), np.zeros(2), np.zeros((2, 2)), np.zeros(2), 1.0),
    ):
        with pytest.raises(InvalidValue, match=said):
            take()


def test_labels_are_checked():
    with pytest.raises(InvalidValue, match="row 1 has the label 2; 'logistic' takes a class number from 0 to 1"):
        clipped_sum(Logistic(1), np.zeros(1), np.ones((2, 1)), np.array([0.0, 2.0]), 1.0)
    with pytest.raises(InvalidValue, match=r"label 0.5"):
        clipped_sum(Logistic(1), np.zeros(1), np.ones((1, 1)), np.array([0.5]), 1.0)
    with pytest.raises(InvalidValue, match="a finite number"):
        clipped_sum(Linear(1), np.zeros(1), np.ones((1, 1)), np.array([np.inf]), 1.0)


def test_models_are_told_apart_by_their_fingerprints():
    class Other(Given):
        def start(self):
            return np.ones(self.size)

    prints = {
        Given(2).fingerprint(),
        Given(3).fingerprint(),
        Other(2).fingerprint(),
        Logistic(2).fingerprint(),
        Linear(2).fingerprint(),
    }
    assert len(prints) == 5


def test_the_sum_of_many_is_exact():
    """10⁵ records: whole numbers add up without rounding, in any order."""
    rows = np.random.default_rng(2).standard_normal((100_000, 2))
    total, room = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    add_whole(rows, 1.0, 2.0**-20, 2**21, 2**42, room, total)
    backwards = np.zeros(2, dtype=np.int64)
    add_whole(np.ascontiguousarray(rows[::-1]), 1.0, 2.0**-20, 2**21, 2**42, room, backwards)
    assert (total == backwards).all()
