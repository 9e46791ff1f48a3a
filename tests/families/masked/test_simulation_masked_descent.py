"""Learning under pads, run: coins, records, noise and pads are those that are accounted for."""

import math

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.masked.descent import MaskedDescent, begun, kept, stepped
from netdp.families.masked.simulate import (
    RecordSums,
    noise_of_sums,
    opened_sums,
    party_integers,
    published_sums,
    shares_of_noise,
    takes_part,
)
from netdp.learn import FromGradients, LogisticParties, train
from netdp.models import Logistic, whole_sum
from netdp.models.parties import ModelParties

RING = graphs.ring(6)


def table(rows=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d))
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0).astype(float)


DATA = ModelParties.deal(Logistic(4), *table(), parties=6)
RECORDS = MaskedDescent(
    RING, 8, sigma=0.05, step=2.0, clip=0.3, dimension=4, unit="record", sampling=0.25, max_records=60
)


def test_the_sum_of_all_records_is_that_of_the_parties_under_their_pads():
    """In one go and party by party, each under its pads: the same whole numbers, by group."""
    theta = np.array([0.5, -0.2, 0.1, 0.0])
    for change in ({}, {"groups": 2}):
        p = RECORDS.replace(**change)
        sums = RecordSums(p, DATA).drawn(theta, np.random.default_rng(7))
        # the same coins, in the order in which the rows are held: by group, then by party
        present = takes_part(p, 300, np.random.default_rng(7))
        order = sorted(range(6), key=lambda u: (u % p.groups, u))
        coins, done = {}, 0
        for u in order:
            coins[u] = present[done : done + len(DATA.ys[u])]
            done += len(DATA.ys[u])
        own = [
            whole_sum(DATA.model, theta, DATA.Xs[u][coins[u]], DATA.ys[u][coins[u]], p.clip, p.sum.step, p.distance)
            for u in range(6)
        ]
        noise = next(shares_of_noise(p, 4, np.random.default_rng(3)))
        published = published_sums(p, np.stack(own), noise, pads=11)
        by_group = np.stack([noise[p.group == g].sum(axis=0) for g in range(p.groups)])
        assert np.array_equal(published, opened_sums(p, sums + by_group))
        assert np.abs(sums).max() > 0


def test_training_is_these_steps_one_after_the_other():
    for p in (RECORDS.replace(momentum=0.5, average="later"), RECORDS.replace(groups=2)):
        rng = np.random.default_rng(5)
        noise, records, state = noise_of_sums(p, 4, rng), RecordSums(p, DATA), begun(np.zeros(4))
        for t in range(1, 9):
            sums = opened_sums(p, records.drawn(state.theta, rng) + next(noise))
            state = stepped(p, state, t, sums[0] if p.groups == 1 else sums)
        run = train(p, DATA, 5)
        assert np.array_equal(run.models, np.tile(kept(p, state), (6, 1)))
        assert np.array_equal(train(p, DATA, 5).models, run.models)
        assert not np.array_equal(train(p, DATA, 6).models, run.models)


def test_who_does_not_take_part_adds_zero():
    p = MaskedDescent(RING, 3, sigma=1.0, step=0.5, dimension=4, sampling=0.5)
    gradients = np.full((6, 4), 0.4)
    present = np.array([True, False, True, True, False, False])
    integers = party_integers(p, gradients, present)
    assert (integers[~present] == 0).all()
    assert (integers[present] == round(0.4 / p.sum.step)).all()
    drawn = np.concatenate([takes_part(p.replace(sampling=0.3), 1000, np.random.default_rng(s)) for s in range(20)])
    assert abs(drawn.mean() - 0.3) < 5 * math.sqrt(0.21 / 20_000)
    assert takes_part(p.replace(sampling=1.0), 9, np.random.default_rng(0)).all()


def test_sampling_keeps_the_mean_gradient_and_adds_its_own_spread():
    """E g·S/expected is the mean over all; so many seeds as it takes to see a tenth of it."""
    one = ModelParties(Logistic(1), [np.ones((50, 1))] * 6, [np.ones(50)] * 6)
    whole = MaskedDescent(RING, 1, sigma=1e-3, step=1.0, clip=0.25, unit="record", max_records=50, dimension=1)
    exact = float(train(whole, one, 0).mean[0])
    part = whole.replace(sampling=0.2)
    runs = np.array([train(part, one, seed).mean[0] for seed in range(60)])
    assert exact == pytest.approx(0.25, rel=1e-2)
    assert abs(runs.mean() / exact - 1) < 5 * runs.std() / math.sqrt(60) / exact < 0.1
    assert runs.std() / exact == pytest.approx(math.sqrt(0.8 / (300 * 0.2)), rel=0.4)


def test_noise_of_all_shares_at_once_has_their_variance():
    fine = MaskedDescent(graphs.ring(50), 1000, sigma=2.0, step=0.1, dimension=3)
    coarse = fine.replace(grid=2.0, clip=3.0)  # shares of one step: their sums are no discrete Gaussian
    huge = fine.replace(grid=2.0**-18)  # one share is as wide as can be drawn
    for p in (fine, coarse, huge, fine.replace(groups=3)):
        noise = noise_of_sums(p, 3, np.random.default_rng(1))
        drawn = np.stack([next(noise) for _ in range(400)])
        assert drawn.shape == (400, p.groups, 3)
        sizes = np.bincount(p.group)
        found = drawn.std(axis=(0, 2)) * p.sum.step / np.sqrt(sizes)
        np.testing.assert_allclose(found, math.sqrt(p.sum.share) * p.sum.step, rtol=0.12)
    with pytest.raises(InvalidValue, match="state dimension=4"):
        next(noise_of_sums(fine, 4, np.random.default_rng(0)))


def test_records_are_learned_as_a_curator_would():
    quiet = RECORDS.replace(sigma=1e-4, sampling=1.0, iterations=30, records=300)
    theta = train(quiet, DATA, 0).mean
    right = sum(int(DATA.model.correct(theta, X, y).sum()) for X, y in zip(DATA.Xs, DATA.ys, strict=True))
    assert right / 300 > 0.9
    by_party = train(MaskedDescent(RING, 30, 1e-4, 2.0, clip=0.3, dimension=4), DATA, 0)  # equally many rows each
    np.testing.assert_allclose(theta, by_party.mean, rtol=0.02, atol=5e-3)


def test_what_is_refused():
    rows, labels = table(60)
    old = LogisticParties.deal(rows, 2 * labels - 1, 6)
    with pytest.raises(InvalidValue, match="ModelParties"):
        train(RECORDS, old, 0)
    with pytest.raises(InvalidValue, match="has 50 records, the protocol allows for max_records=49"):
        train(RECORDS.replace(max_records=49), DATA, 0)
    with pytest.raises(InvalidValue, match="two averages"):
        train(RECORDS.replace(average="later"), DATA, 0, average="weighted")
    with pytest.raises(InvalidValue, match="state dimension=4"):
        train(RECORDS.replace(dimension=3), DATA, 0)
    flat = FromGradients(lambda models: 0 * models + 1.0, 6, 1, 0.0)
    party = MaskedDescent(RING, 4, sigma=1e-3, step=1.0)
    assert train(party, flat, 0, average="weighted").mean[0] == pytest.approx(-2.5, rel=1e-2)
    assert train(party.replace(average="later"), flat, 0).mean[0] == pytest.approx(-3.5, rel=1e-2)
    seen = []
    train(party, flat, 0, after=lambda t, models: seen.append((t, models.shape, float(models[3, 0]))))
    assert [(t, shape) for t, shape, _ in seen] == [(t, (6, 1)) for t in range(4)]
    assert netdp.account(party.replace(sampling=0.5), [0]).unit.value == "party"
