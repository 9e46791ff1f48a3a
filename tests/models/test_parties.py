"""Every trainer takes any model: against LogisticParties, against each other, and what is refused.

Proof: docs/proofs/learning.md#step-expansion.
"""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.ring import RingDescent
from netdp.families.token.training import train_ring, train_walk, train_walks
from netdp.models import Linear, Logistic, Model, Multinomial, NoFiniteGradient, clipped_sum, prepared
from netdp.models.parties import LogisticParties, ModelParties
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent, MaskedDescent, WalkDescent
from netdp.protocols.training import train


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    Xs = [prepared(rng.standard_normal((m, 3))) for m in (3, 5, 1, 4, 2, 6)]
    ys = [(X[:, 0] + 0.2 * rng.standard_normal(len(X)) > 0).astype(float) for X in Xs]
    return Xs, ys


@pytest.fixture(scope="module")
def both(tables):
    Xs, ys = tables
    return ModelParties(Logistic(4), Xs, ys), LogisticParties.of(Xs, [2 * y - 1 for y in ys])


def test_gradients_are_those_of_logistic_parties(both):
    ours, fast = both
    rng = np.random.default_rng(1)
    apart = rng.standard_normal((6, 4))
    alike = np.tile(apart[0], (6, 1))
    for clip in (0.05, 0.4, 10.0):
        for models in (apart, alike):
            np.testing.assert_allclose(ours.gradients(models, clip), fast.gradients(models, clip), atol=1e-13)
        for step in (0.5, 5.0, 30.0, 300.0):
            assert ours.expansion(step, clip) == pytest.approx(fast.expansion(step, clip), rel=1e-9)
    assert (ours.n, ours.d) == (6, 4)


def test_all_at_once_is_one_by_one(both):
    ours, _ = both
    theta = np.array([0.3, -0.2, 0.1, 0.5])
    together = ours.gradients(np.tile(theta, (6, 1)), 0.3)
    for u in range(6):
        assert (together[u] == ours.gradient(theta, u, 0.3)).all()
        alone = clipped_sum(ours.model, theta, ours.Xs[u], ours.ys[u], 0.3) / len(ours.ys[u])
        np.testing.assert_allclose(together[u], alone, atol=1e-15)


@pytest.mark.parametrize(
    "protocol",
    [
        GossipDescent(graphs.complete(6), 4, gossip_rounds=2, sigma=0.3, step=0.5, clip=0.4, masks=1.0),
        MaskedDescent(graphs.complete(6), iterations=4, sigma=0.3, step=0.5, clip=0.4, dimension=4),
        LocalDescent(6, 4, sigma=0.3, step=0.5, clip=0.4),
        CentralDescent(6, 4, sigma=0.3, step=0.5, clip=0.4),
    ],
    ids=lambda protocol: protocol.kind,
)
def test_trainers_learn_the_same_as_with_logistic_parties(both, protocol):
    """Where a gradient lies next to the middle of two steps of the grid, the two may round apart: one step is allowed."""
    ours, fast = both
    step = protocol.sum.step if isinstance(protocol, MaskedDescent) else 0.0
    difference = train(protocol, ours, 3).models - train(protocol, fast, 3).models
    assert np.abs(difference).max() <= 1e-12 + 4 * step


def test_walks_and_rings_too(both):
    ours, fast = both
    walk = WalkDescent(6, steps=40, sigma=0.1, step=0.5, clip=0.4, contributions=4, radius=0.3)
    for after_cap in ("noise", "nothing"):
        mine = train_walk(walk, ours, 7, after_cap=after_cap, watch_every=20)
        theirs = train_walk(walk, fast, 7, after_cap=after_cap, watch_every=20)
        np.testing.assert_allclose(mine.model, theirs.model, atol=1e-12)
        np.testing.assert_allclose(mine.objective, theirs.objective, atol=1e-12)
        assert (mine.contributions == theirs.contributions).all()
        assert mine.contributions.max() <= 4
    ring = RingDescent(6, rounds=5, sigma=0.1, step=0.5, clip=0.4)
    np.testing.assert_allclose(train_ring(ring, ours, 7).model, train_ring(ring, fast, 7).model, atol=1e-12)


class Rows:
    def __init__(self, X, y):
        self.X, self.y = X, y


def test_many_classes_and_numbers_are_learned_by_every_trainer():
    rng = np.random.default_rng(2)
    centres = 3 * np.eye(3)
    y = rng.integers(0, 3, 120)
    X = prepared(centres[y] + 0.3 * rng.standard_normal((120, 3)))
    many = ModelParties.deal(Multinomial(4, 3), X, y.astype(float), 6)
    central = train(CentralDescent(6, 40, sigma=1e-3, step=2.0), many, 0)
    assert many.model.correct(central.mean, X, y).mean() > 0.95
    masked = MaskedDescent(graphs.complete(6), iterations=40, sigma=1e-3, step=2.0, dimension=12)
    np.testing.assert_allclose(train(masked, many, 0).mean, central.mean, atol=0.02)
    gossip = GossipDescent(graphs.complete(6), 20, gossip_rounds=2, sigma=1e-3, step=2.0, expansion=2.1)
    assert many.model.correct(train(gossip, many, 0).mean, X, y).mean() > 0.95
    walk = WalkDescent(6, steps=60, sigma=1e-3, step=1.0, expansion=1.6)
    runs = train_walks(walk, many, [0, 1], test=Rows(X, y), watch_every=60)
    assert [run.accuracy[-1] > 0.95 for run in runs] == [True, True]
    assert runs[0].objective[-1] == pytest.approx(many.risk(runs[0].model))
    line = ModelParties.deal(Linear(4), X, X @ np.array([0.5, -0.5, 0.2, 0.1]), 6)
    found = train(CentralDescent(6, 400, sigma=1e-4, step=1.5), line, 0).mean
    np.testing.assert_allclose(found, [0.5, -0.5, 0.2, 0.1], atol=0.05)
    with pytest.raises(InvalidValue, match="predicts numbers"):
        train_walk(WalkDescent(6, steps=6, sigma=1.0, step=0.5), line, 0, test=Rows(X, y), watch_every=1)


class Hidden(Model):
    """Half of ‖θ − x‖², from a start that is not 0, by a model that does not know how smooth it is."""

    name, size, classes = "hidden", 2, None

    def start(self):
        return np.array([5.0, 5.0])

    def gradients(self, theta, X, y):
        yield theta - X

    def losses(self, theta, X, y):
        return ((theta - X) ** 2).sum(axis=1) / 2

    def predict(self, theta, X):
        return X[:, 0]


def test_models_that_do_not_know_how_far_a_step_stretches():
    Xs, ys = [np.zeros((1, 2)), np.ones((2, 2))], [np.zeros(1), np.zeros(2)]
    gossip = GossipDescent(graphs.complete(2), 3, gossip_rounds=1, sigma=0.1, step=0.5)
    walk = WalkDescent(2, steps=3, sigma=0.1, step=0.5)
    for run in (lambda parties: train(gossip, parties, 0), lambda parties: train_walk(walk, parties, 0)):
        with pytest.raises(Unsupported, match="state smoothness=… "):
            run(ModelParties(Hidden(), Xs, ys))
        with pytest.raises(InvalidValue, match=r"expansion=1\.5"):
            run(ModelParties(Hidden(), Xs, ys, smoothness=1.0))
    stated = ModelParties(Hidden(), Xs, ys, smoothness=1.0)
    assert stated.expansion(0.5, 1.0) == pytest.approx(1.5)
    train_walk(walk.replace(expansion=1.51), stated, 0)
    # the masked trainer needs no such word, and starts where the model says
    free = ModelParties(Hidden(), Xs, ys)
    first = []
    train(CentralDescent(2, 1, sigma=1e-9, step=0.5), free, 0, after=lambda _, models: first.append(models[0]))
    np.testing.assert_allclose(first[0], 5 - 0.5 / np.sqrt(2), atol=1e-6)
    no_step = train_walk(walk.replace(step=1e-9, expansion=1.51), stated, 0)
    np.testing.assert_allclose(no_step.model, [5.0, 5.0], atol=1e-6)


def test_clipped_as_a_whole(tables):
    Xs, ys = tables
    rows, whole = (ModelParties(Logistic(4), Xs, ys, clipping=how) for how in ("rows", "whole"))
    models = np.random.default_rng(0).standard_normal((6, 4))
    plain = rows.gradients(models, np.inf)
    lengths = np.linalg.norm(plain, axis=1, keepdims=True)
    assert (lengths > 0.1).any()
    np.testing.assert_allclose(whole.gradients(models, 0.1), plain * np.minimum(1, 0.1 / lengths), atol=1e-14)
    np.testing.assert_allclose(whole.gradient(models[1], 1, 0.1), whole.gradients(models, 0.1)[1])
    assert np.abs(rows.gradients(models, 0.1) - whole.gradients(models, 0.1)).max() > 1e-3
    masked = MaskedDescent(graphs.complete(6), iterations=4, sigma=0.3, step=0.5, clip=0.1, dimension=4)
    assert np.isfinite(train(masked, whole, 0).mean).all()
    with pytest.raises(Unsupported, match=r"leave clipping=.rows., or state smoothness="):
        whole.expansion(0.5, 0.1)
    with pytest.raises(InvalidValue, match="unknown clipping 'cells'; choose one of rows, whole"):
        ModelParties(Logistic(4), Xs, ys, clipping="cells")


def test_a_party_without_rows_has_the_gradient_zero():
    parties = ModelParties(Linear(1), [np.zeros((0, 1)), np.ones((1, 1))], [np.zeros(0), np.array([-0.5])])
    assert parties.gradients(np.zeros((2, 1)), 1.0).tolist() == [[0.0], [0.5]]
    assert parties.gradients(np.array([[0.0], [1.0]]), 1.0).tolist() == [[0.0], [1.0]]


def test_rows_without_a_finite_gradient_are_told():
    with pytest.warns(NoFiniteGradient):
        ModelParties(Hidden(), [np.full((1, 2), np.nan)], [np.zeros(1)]).gradients(np.zeros((1, 2)), 1.0)


def test_bad_input_names_the_party():
    good = np.ones((2, 4))
    with pytest.raises(InvalidValue, match="party 1: row 0 has the label 7"):
        ModelParties(Logistic(4), [good, good], [np.zeros(2), np.array([7.0, 0.0])])
    with pytest.raises(InvalidValue, match="party 1: rows have shape"):
        ModelParties(Logistic(4), [good, np.ones((2, 5))], [np.zeros(2), np.zeros(2)])
    with pytest.raises(InvalidValue, match="rows of 2 parties and the labels of 1"):
        ModelParties(Logistic(4), [good, good], [np.zeros(2)])
    with pytest.raises(InvalidValue, match=r"must be a netdp.models.Model"):
        ModelParties("logistic", [good], [np.zeros(2)])
    with pytest.raises(InvalidValue, match="2 rows cannot be dealt out to 3 parties"):
        ModelParties.deal(Logistic(4), good, np.zeros(2), 3)
