"""Numbers with few digits, never on the unsafe side."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdp.numerics.arrays import rounded_down, rounded_up


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(1, 8))
def test_rounded_to_the_safe_side_and_by_no_more_than_a_digit(value, digits):
    up, down = rounded_up(value, digits), rounded_down(value, digits)
    assert down <= value <= up
    assert up - down <= 1.01 * 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    for found in (up, down):
        assert len(Decimal(repr(found)).normalize().as_tuple().digits) <= digits
        assert rounded_up(found, digits) == rounded_down(found, digits) == found  # once is enough


def test_what_has_few_digits_stays():
    for value in (4.0, 0.25, 1000.0, 1e-7 * 2**20):
        assert rounded_up(value, 16) >= value >= rounded_down(value, 16)
    assert rounded_up(4.0) == rounded_down(4.0) == 4.0
    assert rounded_up(0.25, 2) == 0.25


@pytest.mark.parametrize("value", [0.0, math.inf, -1.5])
def test_what_cannot_be_rounded_passes(value):
    assert rounded_up(value) == value
    assert rounded_down(value) == value


def test_the_smallest_excess_is_rounded_away_from():
    """0.1 as a double is a little more than a tenth, and stays; the next double does not."""
    assert rounded_up(0.1, 1) == rounded_down(0.1, 1) == 0.1
    assert rounded_up(math.nextafter(0.1, 1), 1) == 0.2
    assert rounded_down(math.nextafter(0.3, 0), 1) == 0.2
