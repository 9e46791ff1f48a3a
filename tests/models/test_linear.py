"""Logistic, multinomial and linear regression against finite differences, and records that do not depend on each other.

Proof: docs/proofs/learning.md#step-expansion.
"""

import math

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.models import Linear, Logistic, Multinomial, built_in, clipped_rows, prepared, whole_sum

MODELS = [Logistic(6), Multinomial(6, classes=2), Multinomial(6, classes=5), Linear(6)]


def data(model, m=40, seed=0):
    rng = np.random.default_rng(seed)
    X = prepared(rng.standard_normal((m, 5)))
    y = rng.uniform(-1, 1, m) if model.classes is None else rng.integers(0, model.classes, m).astype(float)
    return X, y, rng.standard_normal(model.size)


def all_gradients(model, theta, X, y):
    return np.concatenate([np.zeros((0, model.size)), *model.gradients(theta, X, y)])


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_gradients_are_those_of_the_losses(model):
    X, y, theta = data(model)
    numeric = np.empty((len(X), model.size))
    for k in range(model.size):
        move = np.eye(model.size)[k] * 1e-6
        numeric[:, k] = (model.losses(theta + move, X, y) - model.losses(theta - move, X, y)) / 2e-6
    np.testing.assert_allclose(all_gradients(model, theta, X, y), numeric, atol=1e-8)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_record_does_not_depend_on_the_others_to_the_last_bit(model):
    """docs/proofs/learning.md#record-gradients, point 1: company, order and place in memory make no difference."""
    X, y, theta = data(model, m=300)
    alone = np.concatenate([all_gradients(model, theta, X[r : r + 1], y[r : r + 1]) for r in range(300)])
    assert (all_gradients(model, theta, X, y) == alone).all()
    order = np.random.default_rng(1).permutation(300)[:201]
    assert (all_gradients(model, theta, X[order], y[order]) == alone[order]).all()
    shifted = np.empty(len(X) * 6 + 1)[1:].reshape(300, 6)  # rows that start at other addresses
    shifted[:] = X
    assert (all_gradients(model, theta, shifted, y) == alone).all()
    assert (all_gradients(model, theta, np.asfortranarray(X), y) == alone).all()
    assert (model.predict(theta, X) == np.concatenate([model.predict(theta, X[r : r + 1]) for r in range(300)])).all()


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_whole_sums_are_the_sums_of_the_records(model):
    X, y, theta = data(model)
    bound = 0.3 * 2**10 + math.sqrt(model.size) / 2
    total = whole_sum(model, theta, X, y, 0.3, 2.0**-10, bound)
    each = [whole_sum(model, theta, X[r : r + 1], y[r : r + 1], 0.3, 2.0**-10, bound) for r in range(len(X))]
    assert (total == np.sum(each, axis=0)).all()
    near = clipped_rows(model, theta, X, y, 0.3).sum(axis=0) * 2**10
    assert np.abs(total - near).max() <= len(X) / 2 + 1e-6


def test_two_classes_are_logistic_regression():
    X, y, theta = data(Logistic(6))
    two = Multinomial(6, classes=2)
    both = np.concatenate([-theta / 2, theta / 2])
    assert (two.predict(both, X) == Logistic(6).predict(theta, X)).all()
    np.testing.assert_allclose(two.losses(both, X, y), Logistic(6).losses(theta, X, y))
    np.testing.assert_allclose(two.scores(both, X), Logistic(6).scores(theta, X))
    np.testing.assert_allclose(two.scores(both, X).sum(axis=1), 1.0)
    assert (Logistic(6).correct(theta, X, y) == (Logistic(6).predict(theta, X) == y)).all()


def test_far_from_the_data_nothing_overflows():
    X = np.array([[1.0]])
    for theta in (1e300, -1e300):
        for label in (0.0, 1.0):
            assert np.isfinite(all_gradients(Logistic(1), np.array([theta]), X, np.array([label]))).all()
            both = np.array([0.0, theta])
            assert np.isfinite(all_gradients(Multinomial(1, 2), both, X, np.array([label]))).all()


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize(("step", "clip"), [(0.5, 0.1), (0.5, 10.0), (6.0, 0.05), (30.0, 10.0)])
def test_no_step_stretches_further_than_stated(model, step, clip):
    """Against pairs of models: near ones and far ones."""
    X, y, _ = data(model)
    rng = np.random.default_rng(3)
    stated = model.expansion(X, step, clip)
    for size in (1e-3, 0.1, 10.0):
        a = rng.standard_normal(model.size)
        b = a + size * rng.standard_normal(model.size)
        moved = (a - step * clipped_rows(model, a, X, y, clip)) - (b - step * clipped_rows(model, b, X, y, clip))
        assert np.linalg.norm(moved, axis=1).max() <= stated * np.linalg.norm(a - b) * (1 + 1e-9)


def test_the_stated_stretch_is_attained_for_long_steps():
    """From the other side: linear regression along its one row stretches by exactly step·‖x‖² − 1."""
    X, y = np.array([[1.0]]), np.array([0.0])
    a, b = np.array([0.1]), np.array([-0.1])
    moved = (a - 3.0 * clipped_rows(Linear(1), a, X, y, 10.0)[0]) - (
        b - 3.0 * clipped_rows(Linear(1), b, X, y, 10.0)[0]
    )
    assert abs(moved[0]) == pytest.approx(Linear(1).expansion(X, 3.0, 10.0) * 0.2)
    # clipped multinomial steps do stretch, where clipped logistic ones do not: 1 would be wrong
    assert Multinomial(1, 3).expansion(X, 0.5, 0.1) == pytest.approx(1.25)
    assert Multinomial(1, 3).expansion(X, 0.5, 1.5) == 1.0


def test_rows_are_prepared_one_by_one():
    X = np.random.default_rng(0).standard_normal((50, 3)) * 10
    rows = prepared(X)
    assert rows.shape == (50, 4)
    assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12
    assert (rows == np.concatenate([prepared(X[r : r + 1]) for r in range(50)])).all()
    np.testing.assert_allclose(rows[:, :3] / rows[:, 3:], X)
    assert np.isfinite(prepared([[1e200, -1e200]])).all()
    assert (Logistic(4).prepared(X) == rows).all()
    with pytest.raises(InvalidValue, match="row 1, column 0 is nan; every feature must be a finite number"):
        prepared([[0.0], [np.nan]])
    with pytest.raises(InvalidValue, match="must be a table"):
        prepared(np.zeros(3))


def test_by_name():
    assert (built_in("logistic", 4).size, built_in("multinomial", 4, 3).size, built_in("linear", 4).size) == (5, 15, 5)
    assert built_in("logistic", 4, 2).classes == 2
    with pytest.raises(InvalidValue, match="unknown model 'forest'; choose one of logistic, multinomial, linear"):
        built_in("forest", 4)
    with pytest.raises(InvalidValue, match="use multinomial"):
        built_in("logistic", 4, 3)
    with pytest.raises(InvalidValue, match="leave classes out"):
        built_in("linear", 4, 2)
    with pytest.raises(InvalidValue, match="classes must be a whole number ≥ 2, got None"):
        built_in("multinomial", 4)


def test_rows_of_another_width_are_refused_with_the_way_out():
    with pytest.raises(InvalidValue, match=r"takes 4 columns; call prepared\(X\) first"):
        list(Logistic(4).gradients(np.zeros(4), np.zeros((2, 3)), np.zeros(2)))
    with pytest.raises(InvalidValue, match="row 1 holds a number that is not finite"):
        Linear(1).predict(np.zeros(1), np.array([[0.0], [np.inf]]))
