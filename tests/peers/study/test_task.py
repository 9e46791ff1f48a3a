"""Rows become numbers within the stated norms, and totals become answers in the data's own units."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdp.errors import FileFormatError, InvalidValue
from netdp.peers.study.rows import read_rows
from netdp.peers.study.task import Task, _root

NUMBERS = {"column": "x", "bounds": (0.0, 120.0)}
RECORDS = {"unit": "record", "max_records": 50}


def task(kind, **fields):
    usual = NUMBERS if kind in ("sum", "mean", "variance") else {"column": "x"}
    return Task(**{"kind": kind, **usual, **fields})


def table(**fields):
    return Task(kind="table", columns=("sex", "smoker"), categories=(("f", "m"), ("yes", "no", "?")), **fields)


def norm2(vector):
    """The squared L2 norm of floating-point numbers, exactly."""
    return sum(Fraction(float(x)) ** 2 for x in vector)


# ── norms ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

ALL = [
    task("sum"), task("mean"), task("variance"), task("histogram", edges=(0, 10, 50)),
    task("histogram", categories=("a", "b", "c")), table(),
    task("sum", **RECORDS), task("mean", **RECORDS), task("variance", **RECORDS),
    task("histogram", edges=(0, 10, 50), **RECORDS), table(**RECORDS),
    task("sum", bounds=(-3.0, 0.1), **RECORDS), task("variance", bounds=(0.1, 0.7)),
]  # fmt: skip


def examples(one):
    if one.kind == "table":
        return [{"sex": a, "smoker": b} for a, b in itertools.product(("f", "m"), ("yes", "no", "?"))]
    if one.categories:
        return [{"x": label} for label in one.categories[0]]
    lo, hi = one.bounds or (0.0, 50.0)
    inside = np.linspace(lo, hi, 41).tolist()
    return [
        {"x": x} for x in [*inside, lo - 1e9, hi + 1e9, math.nextafter(hi, -math.inf), math.nextafter(lo, math.inf)]
    ]


@pytest.mark.parametrize("one", ALL, ids=lambda one: f"{one.kind}-{one.unit}-{one.dimension}")
def test_the_sensitivity_bounds_what_moves_and_is_attained(one):
    vectors = [one.rows([row])[0] for row in examples(one)]
    assert all(vector.shape == (one.dimension,) for vector in vectors)
    if one.unit == "party":
        exact = [[Fraction(float(x)) for x in vector] for vector in vectors]
        moves = [sum((a - b) ** 2 for a, b in zip(v, w, strict=True)) for v, w in itertools.combinations(exact, 2)]
    else:
        moves = [norm2(vector) for vector in vectors]
    assert max(moves) <= Fraction(one.sensitivity) ** 2
    assert float(max(moves)) == pytest.approx(one.sensitivity**2, rel=1e-12)  # no larger than needed


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_the_variance_of_parties_moves_by_two_at_most(z, w):
    one = task("variance", bounds=(-1.0, 1.0))
    (a, aa), (b, bb) = one.rows([{"x": z}])[0], one.rows([{"x": w}])[0]
    assert math.hypot(a - b, aa - bb) <= 2.0 * (1 + 1e-15)


@given(
    st.floats(-1e12, 1e12), st.floats(1e-9, 1e12), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["sum", "mean", "variance"]),
)  # fmt: skip
def test_records_keep_their_norm_for_any_bounds_and_values(lo, width, x, kind):
    if not lo < lo + width:
        return
    one = task(kind, bounds=(lo, lo + width), **RECORDS)
    row = one.rows([{"x": x}])[0]
    assert norm2(row) <= Fraction(one.sensitivity) ** 2
    assert np.abs(row).max() <= 1.0


def test_the_root_of_three_is_rounded_up():
    assert Fraction(task("variance", **RECORDS).sensitivity) ** 2 >= 3
    assert Fraction(math.sqrt(3)) ** 2 < 3  # so that it matters


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_numbers_are_normalised_and_clipped():
    assert task("mean").rows([{"x": "90"}]).tolist() == [[0.5]]
    assert task("mean").rows([{"x": -5}]).tolist() == [[-1.0]]
    assert task("variance").rows([{"x": 30}]).tolist() == [[-0.5, 0.25]]
    assert task("sum", **RECORDS).rows([{"x": 60}, {"x": 500}]).tolist() == [[0.5], [1.0]]
    assert task("mean", **RECORDS).rows([{"x": 0}, {"x": 120}]).tolist() == [[-1.0, 1.0], [1.0, 1.0]]


def test_bins_are_open_on_the_right_but_for_the_last_and_outside_goes_to_the_ends():
    one = task("histogram", edges=(0, 10, 20), **RECORDS)
    where = one.rows([{"x": x} for x in (-3, 0, 9.99, 10, 20, 21)]).argmax(axis=1)
    assert where.tolist() == [0, 0, 0, 1, 1, 1]
    assert one.labels == (("[0, 10)", "[10, 20]"),)


def test_a_table_counts_the_cells_of_all_columns_together():
    rows = [("f", "yes"), ("m", "?"), ("m", "?"), ("m", "no")]
    one = table(**RECORDS)
    counts = one.rows([{"sex": a, "smoker": b} for a, b in rows]).sum(axis=0)
    answer = one.answer(counts, parties=4)
    assert answer["counts"] == {"f": {"yes": 1.0, "no": 0.0, "?": 0.0}, "m": {"yes": 0.0, "no": 1.0, "?": 2.0}}


def test_no_records_are_no_rows_and_add_nothing():
    for one in (task("mean", **RECORDS), table(**RECORDS), task("histogram", edges=(0, 1), **RECORDS)):
        assert one.rows([]).shape == (0, one.dimension)


@pytest.mark.parametrize(("value", "encoded"), [("mean", -0.5), ("sum", 0.0), ("count", -0.95)])
def test_a_partys_rows_become_one_number(value, encoded):
    fields = {"column": None} if value == "count" else {}
    rows = [{"x": 20}, {"x": 40}] if value != "count" else [{}, {}, {}]
    assert task("mean", value=value, **fields).rows(rows).item() == pytest.approx(encoded)


def test_unlisted_values_are_refused_by_name_or_counted_as_other():
    one = task("histogram", categories=("a", "b"))
    with pytest.raises(InvalidValue, match=r"row 1: column 'x' holds 'c', which is none of 'a', 'b'; .*other = true"):
        one.rows([{"x": "c"}])
    assert task("histogram", categories=("a", "b"), other=True).rows([{"x": "c"}]).tolist() == [[0.0, 0.0, 1.0]]


def test_too_many_records_are_refused_and_never_cut():
    one = task("mean", unit="record", max_records=2)
    assert len(one.rows([{"x": 1}] * 2)) == 2
    with pytest.raises(InvalidValue, match="3 records and the study allows at most max_records = 2"):
        one.rows([{"x": 1}] * 3)


def test_missing_cells_are_refused_or_skipped_as_stated():
    rows = [{"x": "1"}, {"x": " "}, {"x": None}]
    with pytest.raises(InvalidValue, match="row 2: column 'x' is empty"):
        task("mean", **RECORDS).rows(rows)
    assert len(task("mean", missing="skip", **RECORDS).rows(rows)) == 1


@pytest.mark.parametrize("cell", ["nan", "inf", "1_000", "3,5", "abc", True, math.inf])
def test_what_is_no_number_is_refused(cell):
    with pytest.raises(InvalidValue, match="row 1: column 'x' holds"):
        task("mean").rows([{"x": cell}])


@pytest.mark.parametrize("rows", [[], [{"x": 1}, {"x": 2}]])
def test_a_single_value_is_exactly_one_row(rows):
    with pytest.raises(InvalidValue, match=f"{len(rows)} rows and the study takes exactly one"):
        task("mean").rows(rows)


METER = {"period": "month", "periods": ("jan", "feb", "mar")}


def test_values_that_change_over_time_are_one_per_period_in_their_order():
    rows = [{"x": x, "month": month} for x, month in ((120, "mar"), (0, "jan"), (60, "feb"))]
    assert task("mean", **METER).rows(rows).tolist() == [[-1.0], [0.0], [1.0]]
    assert task("histogram", edges=(0, 50, 120), **METER).rows(rows).tolist() == [[1, 0], [0, 1], [0, 1]]
    sums = task("sum", value="sum", **METER).rows([{"x": 30, "month": "feb"}, {"x": 30, "month": " feb "}])
    assert sums.tolist() == [[-1.0], [0.0], [-1.0]]
    for wrong, said in (
        (rows[:2], "0 rows in the period 'feb' and the study takes exactly one"),
        ([*rows, rows[0]], "2 rows in the period 'mar'"),
        ([*rows, {"x": 1, "month": "apr"}], "row 4: column 'month' holds 'apr', which is no period of the study"),
        ([{"x": 1}], "row 1: there is no column 'month'"),
    ):
        with pytest.raises(InvalidValue, match=said):
            task("mean", **METER).rows(wrong)
    with pytest.raises(InvalidValue, match="no rows in the period 'jan'"):
        task("mean", value="mean", **METER).rows(rows[:1])


@pytest.mark.parametrize("kind", ["sum", "mean", "variance", "histogram"])
def test_without_noise_the_answer_is_about_all_parties_and_periods(kind):
    x = np.random.default_rng(4).uniform(0, 120, (8, 3))
    one = task(kind, **METER, **({"edges": (0, 40, 120)} if kind == "histogram" else {}))
    rows = [one.rows([{"x": float(v), "month": m} for v, m in zip(its, METER["periods"], strict=True)]) for its in x]
    found = one.answer(np.sum(rows, axis=(0, 1)) / 3, parties=8)  # a total is that of an average period
    if kind == "histogram":
        assert found["counts"] == pytest.approx([(x < 40).sum(), (x >= 40).sum()], rel=1e-9)
    else:
        truth = {"sum": x.sum(), "mean": x.mean(), "variance": x.var()}[kind]
        assert found["value"] == pytest.approx(truth, rel=1e-9)
    assert one.error(2.0, 8) == {"sum": 360.0, "mean": 15.0, "variance": None, "histogram": 6.0}[kind]


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("unit", ["party", "record"])
@pytest.mark.parametrize("kind", ["sum", "mean", "variance"])
def test_without_noise_the_answer_is_that_of_numpy(kind, unit):
    x = np.random.default_rng(3).uniform(0, 120, 40)
    one = task(kind, **(RECORDS if unit == "record" else {}))
    total = sum(one.rows([{"x": float(v)}])[0] for v in x)
    truth = {"sum": x.sum(), "mean": x.mean(), "variance": x.var()}[kind]
    assert one.answer(total, parties=40)["value"] == pytest.approx(truth, rel=1e-9)


def test_a_negative_variance_is_floored_and_says_so():
    found = task("variance").answer([0.0, -1.0], parties=4)
    assert (found["value"], found["floored"]) == (0.0, True)
    assert not task("variance").answer([0.0, 1.0], parties=4)["floored"]


def test_no_quotient_where_the_number_of_records_is_lost_in_noise():
    one = task("mean", **RECORDS)
    assert one.answer([3.0, 30.0], parties=4, noise=5.0)["value"] == pytest.approx(66.0)
    lost = one.answer([3.0, 19.0], parties=4, noise=5.0)
    assert lost["value"] is None
    assert "19" in lost["why"]
    assert one.answer([0.1, 0.9], parties=4)["value"] is None


def test_the_predicted_error_is_that_of_noise_in_the_total():
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 2.0, 40_000)
    for one, truth in ((task("mean"), 60.0), (task("sum"), 600.0), (task("sum", **RECORDS), 0.0)):
        found = np.array([one.answer([e], parties=10)["value"] for e in noise[:4000]]) - truth
        assert one.error(2.0, 10) == pytest.approx(float(np.sqrt(np.mean(found**2))), rel=0.05)
    assert task("variance").error(2.0, 10) is None
    one = task("mean", **RECORDS)
    values = [one.answer([1000 + a, 1000 + b], parties=10)["value"] for a, b in noise.reshape(-1, 2)[:4000]]
    assert one.error(2.0, 10, records=1000) == pytest.approx(float(np.std(values)), rel=0.05)


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "mean", "bounds": (0, 1)}, "column: is missing"),
        ({"kind": "mean", "column": "x"}, "bounds: is missing"),
        ({"kind": "mean", "column": "x", "bounds": (1, 1)}, "bounds: must rise"),
        ({"kind": "mean", "column": "x", "bounds": (0, math.inf)}, "bounds"),
        ({"kind": "mean", "column": "x", "bounds": (0, 1), "unit": "record"}, "max_records: to protect records"),
        ({"kind": "mean", "column": "x", "bounds": (0, 1), "max_records": 3}, "max_records: belongs to"),
        ({"kind": "mean", "column": "x", "bounds": (0, 1), "missing": "skip"}, "missing: rows may be skipped"),
        ({"kind": "mean", "column": "x", "bounds": (0, 1), "value": "count"}, "column: .*counts rows"),
        ({"kind": "mean", "column": "x", "bounds": (0, 1), "colour": 1}, "colour: is not known here"),
        ({"kind": "mean", "column": "x", "bounds": (0, 1), "edges": (0, 1)}, "edges: belongs to a histogram"),
        ({"kind": "histogram", "column": "x"}, "categories: a histogram needs"),
        ({"kind": "histogram", "column": "x", "edges": (0, 0)}, "edges: must be two or more rising"),
        ({"kind": "histogram", "column": "x", "edges": (0, 1), "other": True}, "other: belongs to categories"),
        ({"kind": "histogram", "column": "x", "categories": ("a", "a")}, "categories: must be different"),
        ({"kind": "histogram", "column": "x", "categories": ("other", "a"), "other": True}, "must be different"),
        ({"kind": "histogram", "column": "x", "categories": ("a", "b"), "value": "mean"}, "value: categories have no"),
        ({"kind": "table", "columns": ("a",), "categories": (("x", "y"),)}, "columns: a table needs two"),
        ({"kind": "table", "columns": ("a", "b"), "categories": (("x", "y"),)}, "categories: a table needs"),
        ({"kind": "median", "column": "x"}, "kind: "),
        ({"kind": "mean", **NUMBERS, "period": "m"}, "periods: is missing"),
        ({"kind": "mean", **NUMBERS, "periods": ("a", "b")}, "period: is missing"),
        ({"kind": "mean", **NUMBERS, **RECORDS, **METER}, "periods: belong to unit"),
        ({"kind": "mean", **NUMBERS, **METER, "period": "x"}, "period: is the column 'x'"),
        ({"kind": "mean", **NUMBERS, **METER, "periods": ("a",)}, "periods: must be 2 to"),
        ({"kind": "mean", **NUMBERS, **METER, "periods": ("a", "a")}, "periods: must be different"),
    ],
)
def test_a_task_that_does_not_fit_is_refused_by_field(fields, said):
    with pytest.raises(InvalidValue, match=said):
        Task(**fields)


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_read_and_its_mistakes_named_with_line_and_column(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text('\ufeffx,note\n 30 ,"a, b"\n90,\n\n', "utf-8")
    assert task("mean", **RECORDS).rows(path).tolist() == [[-0.5, 1.0], [0.5, 1.0]]
    path.write_text("x\n30\nfast\n", "utf-8")
    with pytest.raises(InvalidValue, match=r"mine\.csv:3: column 'x' holds 'fast', which is not a finite number"):
        task("mean", **RECORDS).rows(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", r"f\.csv:1: is empty"),
        (b"y\n1\n", r"f\.csv:1: there is no column 'x'; there are 'y'"),
        (b"y;x\n1;2\n", "separated by commas"),
        (b"x,x\n1,2\n", "twice"),
        (b"x,y\n1\n", r"f\.csv:2: has 1 cells, and the first line 2"),
        (b"x\n1\n\n2\n", r"f\.csv:3: is blank, and rows follow"),
        (b"x\n\xff\n", "UTF-8"),
        (b'x\n"1\n', "not valid CSV"),
    ],
)
def test_files_that_are_no_tables_are_refused(tmp_path, content, said):
    path = tmp_path / "f.csv"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=said):
        read_rows(path, ["x"])


def test_equal_bins_between_bounds():
    task = Task(kind="histogram", column="x", bounds=(0, 10), bins=5)
    same = Task(kind="histogram", column="x", edges=(0, 2, 4, 6, 8, 10))
    rows = [{"x": text} for text in ("0", "1.99", "2", "9.99", "10", "-3", "11")]
    for row in rows:
        assert task.rows([row]).tolist() == same.rows([row]).tolist()
    assert (task.dimension, task.labels, task.sensitivity) == (same.dimension, same.labels, same.sensitivity)
    assert task.answer([1.0] * 5, 5) == same.answer([1.0] * 5, 5)
    assert Task(kind="histogram", column="x", bounds=(0, 1), bins=10**6).dimension == 10**6


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"bins": 5}, "between bounds"),
        ({"bins": 1, "bounds": (0, 1)}, "2 to 1,000,000"),
        ({"bins": 10**7, "bounds": (0, 1)}, "2 to 1,000,000"),
        ({"bins": 10**6, "bounds": (1e16, 1e16 + 4)}, "of some width"),
        ({"bins": 5, "bounds": (3, 1)}, "must rise"),
        ({"bins": 5, "bounds": (0, 1), "edges": (0, 1)}, "one of them"),
        ({"bounds": (0, 1)}, "bounds go with bins"),
    ],
)
def test_bins_that_make_no_sense(fields, words):
    with pytest.raises(InvalidValue, match=words):
        Task(kind="histogram", column="x", **fields)


def test_too_many_records_for_too_many_cells():
    task = Task(kind="histogram", column="x", bounds=(0, 1), bins=10**6, unit="record", max_records=1000)
    with pytest.raises(InvalidValue, match="201 records in 1,000,000 cells"):
        task.rows([{"x": "0.5"}] * 201)


@pytest.mark.parametrize("value", ["mean", "sum"])
def test_numbers_that_overflow_are_refused(value):
    task = Task(kind="mean", column="x", bounds=(0, 1), value=value)
    with pytest.raises(InvalidValue, match="too large to add up"):
        task.rows([{"x": "1e308"}, {"x": "1e308"}])
    with pytest.raises(InvalidValue, match="not a finite number"):
        task.rows([{"x": 10**400}])


def test_the_variance_is_unbiased_before_it_is_floored():
    """Noise in the mean would make the square too large: it is taken off."""
    task = Task(kind="variance", column="x", bounds=(0, 10))
    rng = np.random.default_rng(0)
    truth = np.array([2.0, -0.5])  # sums of z and z² over 8 parties
    noise = 0.7
    answers = [task.answer(truth + rng.normal(0, noise, 2) + [0, 8], 8, noise)["value"] for _ in range(40_000)]
    exact = 25 * ((truth[1] + 8) / 8 - (truth[0] / 8) ** 2)
    assert abs(np.mean(answers) - exact) < 5 * np.std(answers) / np.sqrt(len(answers))
    plain = np.mean(answers) - 25 * (noise / 8) ** 2
    assert abs(plain - exact) > 5 * np.std(answers) / np.sqrt(len(answers)), "without it the difference would show"


def test_roots_are_rounded_up():
    """Formula pin: √square in fractions, never less, and by one unit of the last place at most."""
    for square in range(1, 300):
        found = Fraction(_root(square))
        assert square <= found**2 <= square * (1 + Fraction(1, 2**51))
