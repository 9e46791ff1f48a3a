"""What makes no sense to an estimator is refused in words: the cell or the value, and the way out."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from netdp.errors import InvalidValue
from netdp.learn import GossipLogisticRegression, LinearRegression, LogisticRegression, WalkLogisticRegression

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
QUICK = {"epsilon": 9.0, "random_state": 0}
MADE = {
    "logistic": lambda **given: LogisticRegression(8, **{"iterations": 3} | QUICK | given),
    "linear": lambda **given: LinearRegression(8, target_bounds=(0, 1), **{"iterations": 3} | QUICK | given),
    "gossip": lambda **given: GossipLogisticRegression(8, **{"iterations": 3} | QUICK | given),
    "walk": lambda **given: WalkLogisticRegression(8, **{"steps": 40} | QUICK | given),
}
every = pytest.mark.parametrize("kind", MADE)


def worded(values):
    table = values.astype(object)
    table[7, 1] = "tall"
    return table


def holed(values, hole):
    table = values.copy()
    table[7, 1] = hole
    return table


@every
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (None, "X is None; give a table of numbers"),
        (worded(X), "row 7, column 1 of X holds 'tall', and features are numbers; turn words"),
        (np.full((40, 2), "a"), "row 0, column 0 of X holds 'a'"),
        (holed(X, np.nan), "Input X contains NaN: row 7, column 1; leave such rows out"),
        (holed(X, np.inf), "Input X contains infinity .*: row 7, column 1"),
        (X[:, 0], "Expected 2D array, got 1D array"),
        (X[:5], r"inconsistent numbers of samples: \[5, 40\]"),
    ],
)
def test_rows_that_cannot_be_learned_from(kind, rows, message):
    with pytest.raises(ValueError, match=message):
        MADE[kind]().fit(rows, Y)


@every
@pytest.mark.filterwarnings("ignore::netdp.learn.NoiseWarning")
def test_rows_that_nothing_can_be_said_about(kind):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        MADE[kind]().predict(X)
    model = MADE[kind]().fit(X, Y)
    for rows, message in (
        (None, "X is None"),
        (worded(X), "row 7, column 1 of X holds 'tall'"),
        (holed(X, np.nan), "row 7, column 1"),
        (X[:, :2], "X has 2 features, but .* is expecting 3"),
        (X[0], "Expected 2D array"),
        ([{"age": 3}], "Expected 2D array"),
        (np.zeros((0, 3)), "0 sample"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(rows)
    with pytest.raises(TypeError, match=r"Sparse data was passed for X.*toarray"):
        model.predict(scipy.sparse.csr_matrix(X))


@every
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epsilon": -1}, "epsilon must be a finite number > 0, got -1"),
        ({"epsilon": "1"}, "epsilon must be a finite number > 0, got '1'"),
        ({"delta": 2}, "delta must lie between 0 and 1, got 2"),
        ({"clip": -1}, "clip must be a finite number > 0, got -1"),
        ({"random_state": "x"}, "random_state must be None .*, got 'x'"),
        ({"graph": 3}, "graph must be a netdp Graph .* got 3 of type int"),
    ],
)
def test_settings_that_make_no_sense(kind, setting, message):
    with pytest.raises(InvalidValue, match=message):
        MADE[kind](**setting).fit(X, Y)


@every
def test_labels_that_make_no_sense(kind):
    other = "each label" if kind == "linear" else "only one class is present: every label is 5; give rows of another"
    if kind == "linear":
        with pytest.raises(
            InvalidValue, match=r"y\[1\] is 'b', and a linear regression predicts numbers; for classes use"
        ):
            MADE[kind]().fit(X, np.array(["1", "b"] * 20))
    else:
        with pytest.raises(InvalidValue, match=other):
            MADE[kind]().fit(X, np.full(40, 5))
    with pytest.raises(ValueError, match="1d array, got an array of shape"):
        MADE[kind]().fit(X, np.column_stack([Y, Y]))
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        MADE[kind](colour=3)
    with pytest.raises(InvalidValue, match="fit takes X and y alone, not 'colour'"):
        MADE[kind]().fit(X, Y, colour=3)


@every
@pytest.mark.filterwarnings("ignore::netdp.learn.NoiseWarning")
def test_a_cell_of_a_pandas_table_is_named_by_its_column(kind):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.DataFrame(X, columns=["age", "size", "weight"])
    assert len(MADE[kind]().fit(table, pandas.Series(Y)).predict(table)) == 40
    with pytest.raises(InvalidValue, match="row 0, column 'ward' of X holds 'north'"):
        MADE[kind]().fit(table.assign(ward="north"), Y)
