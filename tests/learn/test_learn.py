"""Gradients, training, tables."""

import numpy as np
import pytest
from netdp.learn.descent import clipped

from netdp import graphs
from netdp.errors import DataNotFound, InvalidValue
from netdp.learn import LogisticParties, accuracy, objective, table, train
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent


def some_data(n=6, m=5, d=3, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((n * m, d))
    return LogisticParties.deal(X, np.where(rng.random(n * m) < 0.5, 1.0, -1.0), n, seed)


def test_gradients_are_derivatives():
    data = some_data()
    models = np.random.default_rng(1).standard_normal((data.n, data.d))
    gradients = data.gradients(models, clip=100.0)
    for i in range(data.n):
        used = data.weight[i] > 0
        for k in range(data.d):
            step = 1e-6 * np.eye(data.d)[k]
            up, down = (objective(models[i] + s, data.X[i][used], data.y[i][used]) for s in (step, -step))
            assert gradients[i, k] == pytest.approx((up - down) / 2e-6, abs=1e-7)


@pytest.mark.parametrize("clip", [0.05, 0.3, 5.0])
def test_clipped_gradients_are_short_and_their_steps_do_not_expand(clip):
    """The claim on which `expansion=1` rests: for ν ≤ 2/β, clipped or not, θ ↦ θ − ν·gradient is non-expansive."""
    data = some_data(n=40, m=6, d=4, scale=3.0)
    step = 2.0 / data.smoothness
    rng = np.random.default_rng(2)
    for size in (0.01, 1.0, 10.0):
        a, b = (size * rng.standard_normal((data.n, data.d)) for _ in range(2))
        ga, gb = data.gradients(a, clip), data.gradients(b, clip)
        assert np.linalg.norm(ga, axis=1).max() <= clip * (1 + 1e-12)
        before, after = np.linalg.norm(a - b, axis=1), np.linalg.norm(a - b - step * (ga - gb), axis=1)
        assert (after <= before * (1 + 1e-12)).all()
        too_long = np.linalg.norm(a - b - 40 * step * (ga - gb), axis=1)
        if clip == 5.0 and size == 0.01:
            assert (too_long > before).any()  # the test can tell


def test_batches_come_from_own_rows():
    data = LogisticParties.of([np.eye(3)[:1], np.eye(3)], [np.ones(1), np.ones(3)])
    weights = data.draw_batch(4, np.random.default_rng(0))
    assert weights.sum(axis=1) == pytest.approx(1.0)
    assert weights[0].tolist() == [1.0, 0.0, 0.0]


def test_all_protocols_agree_without_noise():
    """With hardly any noise and perfect mixing, gossip, local and central descent are gradient descent."""
    data = some_data(n=8, m=4)
    shared = {"iterations": 12, "sigma": 1e-12, "step": 0.5, "clip": 2.0}
    runs = [
        train(protocol, lambda models, _: data.gradients(models, 2.0), data.d, seed=0).models
        for protocol in (
            GossipDescent(graphs.complete(8), gossip_rounds=1, **shared),
            LocalDescent(8, **shared),
            CentralDescent(8, **shared),
        )
    ]
    for models in runs:
        np.testing.assert_allclose(models, np.broadcast_to(runs[0][0], models.shape), atol=1e-9)


def test_masks_cancel_in_the_mean():
    data = some_data(n=8, m=4)
    runs = [
        train(
            GossipDescent(graphs.hypercube(3), 1, 3, sigma=1e-6, step=1.0, masks=masks),
            lambda models, _: data.gradients(models, 1.0),
            data.d,
            seed=0,
        )
        for masks in (0.0, 1e6)
    ]
    np.testing.assert_allclose(runs[0].mean, runs[1].mean, atol=1e-9)
    assert np.abs(runs[1].models - runs[1].mean).max() > 1e-5  # they were there


def test_noise_has_the_stated_size():
    protocol = GossipDescent(graphs.complete(4), 1, 1, sigma=2.0, step=0.5, masks=3.0)
    spread = train(protocol, lambda models, _: np.zeros_like(models), 40_000, seed=1).models[0]
    # Perfect mixing: the mean of four noises, times the step.
    assert spread.std() == pytest.approx(0.5 * 2.0 / 2, rel=0.02)


def test_watch_and_refusals():
    seen = []
    protocol = LocalDescent(3, iterations=2, sigma=1.0, step=1.0)
    train(protocol, lambda models, _: np.zeros_like(models), 2, seed=0, watch=lambda t, models: seen.append(t))
    assert seen == [0, 1]
    with pytest.raises(InvalidValue, match=r"shape \(3,\), expected \(3, 2\)"):
        train(protocol, lambda models, _: np.zeros(3), 2, seed=0)
    with pytest.raises(InvalidValue, match="party 1 is not finite"):
        train(protocol, lambda models, _: np.array([[0, 0], [0, np.nan], [0, 0]]), 2, seed=0)
    with pytest.raises(InvalidValue, match=r"label 0\.0; labels must be −1 or \+1"):
        LogisticParties.of([np.eye(2)], [np.array([0.0, 1.0])])
    assert np.linalg.norm(clipped(np.array([[3.0, 4.0]]), 1.0)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "label", "rows", "features"),
    [
        ("housing", "longitude", 20640, 8),
        ("housing", "price", 20640, 8),
        ("spambase", None, 4601, 57),
        ("cardio", None, 70000, 11),
    ],
)
def test_tables(name, label, rows, features):
    try:
        data = table(name, label)
    except DataNotFound as error:
        pytest.skip(str(error))
    assert data.X.shape == (rows, features)
    assert set(np.unique(data.y)) == {-1.0, 1.0}
    assert np.linalg.norm(data.X, axis=1) == pytest.approx(1.0)
    train_, test = data.split(0.2, seed=0)
    assert len(train_.y) + len(test.y) == rows
    fitted = np.linalg.lstsq(train_.X, train_.y, rcond=None)[0]
    least = {"longitude": 0.93, "price": 0.75, None: 0.6}[label]
    assert accuracy(fitted, test.X, test.y) > least


def test_unknown_tables():
    with pytest.raises(InvalidValue, match="no table is called 'iris'"):
        table("iris")
    with pytest.raises(InvalidValue, match="no label 'colour'; choose one of longitude, price"):
        table("housing", "colour")


def test_stochastic_gradients_learn_too():
    """Muffliato-SGD: one row per party and iteration."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(640) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((640, 2)) * 0.3 + y[:, None] * np.array([0.6, 0.2])
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    data = LogisticParties.deal(X, y, 16, seed=0)
    protocol = GossipDescent(graphs.hypercube(4), 60, 4, sigma=0.05, step=1.0, accelerated=True)
    run = train(protocol, lambda m, rng: data.gradients(m, 1.0, data.draw_batch(1, rng)), 2, seed=0)
    assert min(accuracy(model, X, y) for model in run.models) > 0.9
