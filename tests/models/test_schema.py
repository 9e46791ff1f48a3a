"""Rows as a model sees them: numbers from −1 to 1, each row by itself, and back."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp.errors import InvalidValue
from netdp.models.schema import Column, Schema, text_of

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)
SCHEMA = Schema(
    (Column("x", range=(-3.5, 8)), Column("s", values=("f", "m")), Column("w", values=("a", "b", "c"))),
    Column("y", values=("0", "1")),
)
ROW = st.fixed_dictionaries(
    {"x": NUMBERS, "s": st.sampled_from("fm"), "w": st.sampled_from("abc"), "y": st.sampled_from("01")}
)


@settings(max_examples=50, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=6))
def test_rows_are_bounded_and_each_depends_on_itself_alone(rows):
    X, y = SCHEMA.encoded(rows)
    assert (np.abs(X) <= 1).all()
    for i, row in enumerate(rows):
        alone, label = SCHEMA.encoded([row])
        assert alone.tobytes() == X[i : i + 1].tobytes()
        assert label[0] == y[i] == int(row["y"])
        # as text, as a CSV file holds it
        as_text, _ = SCHEMA.encoded(
            [{name: text_of(cell) if name != "x" else repr(cell) for name, cell in row.items()}]
        )
        assert as_text.tobytes() == alone.tobytes()


@settings(max_examples=50, deadline=None)
@given(st.floats(-3.5, 8))
def test_a_number_comes_back(x):
    column = Column("x", range=(-3.5, 8))
    assert column.original(column.numbers([x], ["row 1"]))[0] == pytest.approx(x, abs=1e-12)


def test_a_schema_is_written_and_read_back():
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    assert SCHEMA.width == len(SCHEMA.names) == 5


@pytest.mark.parametrize("cell", ["", " ", None, math.nan, np.float64("nan")])
def test_empty_cells_are_empty_however_they_are_written(cell):
    row = {"x": 1.0, "s": "f", "w": "a", "y": "1"}
    with pytest.raises(InvalidValue, match="column 'x' is empty"):
        SCHEMA.encoded([row | {"x": cell}])
    X, _ = SCHEMA.encoded([row | {"x": cell}, row], missing="skip")
    assert len(X) == 1


@pytest.mark.parametrize("cell", [True, "true", "1,5", "0x10", b"1", [1], 10**400])
def test_what_is_no_number_is_refused(cell):
    with pytest.raises(InvalidValue, match="which is not a finite number"):
        SCHEMA.features_of([{"x": cell, "s": "f", "w": "a"}])
