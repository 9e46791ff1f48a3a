"""Gradients, training, tables."""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import DataNotFound, InvalidValue
from netdp.learn import FromGradients, LogisticParties, accuracy, objective, table, train
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent
from netdp.protocols.training import clipped


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
    step = 2.0 / data.smoothness(clip)  # tight clips allow longer steps
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
        train(protocol, data, seed=0).models
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
            data,
            seed=0,
        )
        for masks in (0.0, 1e6)
    ]
    np.testing.assert_allclose(runs[0].mean, runs[1].mean, atol=1e-9)
    assert np.abs(runs[1].models - runs[1].mean).max() > 1e-5  # they were there


def test_noise_has_the_stated_size():
    protocol = GossipDescent(graphs.complete(4), 1, 1, sigma=2.0, step=0.5, masks=3.0)
    spread = train(protocol, FromGradients(np.zeros_like, 4, 40_000, smoothness=0.0), seed=1).models[0]
    # Perfect mixing: the mean of four noises, times the step.
    assert spread.std() == pytest.approx(0.5 * 2.0 / 2, rel=0.02)


def test_after_and_refusals():
    seen = []
    protocol = LocalDescent(3, iterations=2, sigma=1.0, step=1.0)
    train(protocol, FromGradients(np.zeros_like, 3, 2, 0.0), seed=0, after=lambda t, models: seen.append(t))
    assert seen == [0, 1]
    with pytest.raises(InvalidValue, match=r"shape \(3,\), expected \(3, 2\)"):
        train(protocol, FromGradients(lambda models: np.zeros(3), 3, 2, 0.0), seed=0)
    broken = np.array([[0, 0], [0, np.nan], [0, 0]])
    with pytest.raises(InvalidValue, match="party 1 is not finite"):
        train(protocol, FromGradients(lambda models: broken, 3, 2, 0.0), seed=0)
    with pytest.raises(InvalidValue, match=r"label 0\.0; labels must be −1 or \+1"):
        LogisticParties.of([np.eye(2)], [np.array([0.0, 1.0])])
    assert np.linalg.norm(clipped(np.array([[3.0, 4.0]]), 1.0)) == pytest.approx(1.0)


def stretched():
    """A party with seven rows at margin 0 and two far on the wrong side, and two models that a clipped step may part."""
    turned = np.deg2rad(125.0)
    rows = np.array([[1.0, 0.0]] * 7 + [[np.cos(turned), np.sin(turned)]] * 2)
    data = LogisticParties.of([rows], [np.ones(9)])
    middle = np.array([0.0, -60.0 / np.sin(turned)])
    whole = FromGradients(lambda models: data.gradients(models, np.inf), n=1, d=2, smoothness=0.25)
    clip = 0.999 * np.linalg.norm(whole.gradients(middle[None], np.inf))
    return data, whole, middle, clip


def stretch(losses, middle, clip, step):
    """The largest stretch of a step near `middle`, by its derivative."""

    def moved(model):
        return model - step * losses.gradients(model[None], clip)[0]

    small = 1e-5 * np.eye(2)
    return np.linalg.norm(np.column_stack([(moved(middle + e) - moved(middle - e)) / 2e-5 for e in small]), 2)


def test_clipping_the_whole_gradient_expands_so_train_refuses_expansion_1():
    """ν = 8 is fine for rows clipped one by one; with the party's vector clipped, two models part by more than a quarter."""
    data, whole, middle, clip = stretched()
    assert stretch(whole, middle, clip, 8.0) > 1.27
    assert whole.expansion(8.0, clip) >= stretch(whole, middle, clip, 8.0)
    assert stretch(data, middle, clip, 8.0) <= 1 + 1e-6
    many = FromGradients(lambda models: np.tile(data.gradients(models[:1], np.inf), (4, 1)), 4, 2, smoothness=0.25)
    protocol = GossipDescent(graphs.ring(4), 2, 1, sigma=1.0, step=8.0, clip=clip)
    with pytest.raises(InvalidValue, match=r"may stretch distances by 3, .* at most 1; shorten .* expansion=3"):
        train(protocol, many, seed=0)
    train(protocol.replace(expansion=3.0), many, seed=0)


def test_logistic_steps_that_may_expand_are_refused_and_tight_clips_allow_longer_ones():
    data = LogisticParties.of([np.eye(2)] * 4, [np.array([1.0, -1.0])] * 4)
    draft = GossipDescent(graphs.ring(4), 2, 1, sigma=1.0, step=8.0, clip=1.0)
    train(draft, data, seed=0)
    with pytest.raises(InvalidValue, match=r"may stretch distances by 1\.25"):
        train(draft.replace(step=9.0), data, seed=0)
    train(draft.replace(step=22.0, clip=0.1), data, seed=0)  # 2/(0.1·0.9) = 22.2
    with pytest.raises(InvalidValue, match=r"may stretch distances by 1\.07"):
        train(draft.replace(step=23.0, clip=0.1), data, seed=0)


def test_the_smoothness_of_clipped_rows_is_attained():
    """β = ‖x‖²·q(1 − q): just below the clip a row's gradient has that slope, so no longer step would do."""
    for length in (0.15, 0.5, 1.0, 3.0):
        data = LogisticParties.of([np.array([[length]])], [np.ones(1)])
        for clip in (0.05, 0.1, 0.4, 2.0):
            share = min(0.5, clip / length)
            margin = np.log(1 / share - 1) / length + 1e-6  # where the factor is the share, a little beyond
            low, high = data.gradients(np.array([[margin]]), clip), data.gradients(np.array([[margin + 1e-5]]), clip)
            assert float((high - low)[0, 0]) / 1e-5 == pytest.approx(data.smoothness(clip), rel=1e-3)


class Loud:
    """Losses that do not clip, and cannot say how far a step stretches."""

    n, d, said = 4, 2, 1.0

    def gradients(self, models, clip):
        return np.full((4, 2), 1.0)

    def expansion(self, step, clip):
        return self.said


def test_gradients_longer_than_the_clip_are_refused():
    protocol = GossipDescent(graphs.ring(4), 2, 1, sigma=1.0, step=0.5, clip=1.0)
    with pytest.raises(InvalidValue, match=r"party 0 has norm 1\.41421, more than clip=1"):
        train(protocol, Loud(), seed=0)
    train(protocol.replace(clip=1.5), Loud(), seed=0)
    unknown = Loud()
    unknown.said = np.nan
    with pytest.raises(InvalidValue, match="may stretch distances by nan"):
        train(protocol.replace(clip=1.5), unknown, seed=0)


def test_train_takes_a_whole_seed_sequence():
    """Two seeds that agree in their first 32 bits give different noise."""
    protocol = GossipDescent(graphs.ring(4), 2, 1, sigma=1.0, step=0.5)
    nothing = FromGradients(np.zeros_like, 4, 2, 0.0)
    one, other, again = (
        train(protocol, nothing, np.random.SeedSequence(entropy)).models for entropy in (5, 5 + 2**100, 5)
    )
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(one, again)


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


class OneRowEach:
    """Stochastic gradients: in every iteration one row per party, drawn by it."""

    def __init__(self, data, seed):
        self.data, self.rng = data, np.random.default_rng(seed)
        self.n, self.d, self.expansion = data.n, data.d, data.expansion

    def gradients(self, models, clip):
        return self.data.gradients(models, clip, self.data.draw_batch(1, self.rng))


def test_stochastic_gradients_learn_too():
    """Muffliato-SGD: one row per party and iteration."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(640) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((640, 2)) * 0.3 + y[:, None] * np.array([0.6, 0.2])
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    data = LogisticParties.deal(X, y, 16, seed=0)
    protocol = GossipDescent(graphs.hypercube(4), 60, 4, sigma=0.05, step=1.0, accelerated=True)
    run = train(protocol, OneRowEach(data, 0), seed=0)
    assert min(accuracy(model, X, y) for model in run.models) > 0.9
