"""Masked descent in one process against the protocol's own steps: the same whole numbers, noise of the stated law."""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.masked.descent import MaskedDescent, begun, kept, stepped
from netdp.families.masked.simulate import noises, party_steps, run
from netdp.models import Logistic, prepared, whole_sum
from netdp.models.parties import ModelParties


def data(n=6, rows=60, seed=0):
    rng = np.random.default_rng(seed)
    X = prepared(rng.standard_normal((rows, 2)))
    return ModelParties.deal(Logistic(3), X, (X[:, 0] > 0).astype(float), n, seed)


def silent(monkeypatch):
    monkeypatch.setattr(
        "netdp.families.masked.simulate.noises",
        lambda share, n, d, times, rng: iter([np.zeros(d, dtype=np.int64)] * times),
    )


def test_record_sums_are_those_of_the_parties_one_by_one(monkeypatch):
    silent(monkeypatch)
    parties = data()
    p = MaskedDescent(
        graphs.ring(6), 5, sigma=1.0, step=2.0, clip=0.2, dimension=3, unit="record", max_records=10, records=60,
        momentum=0.5, average="later",
    )  # fmt: skip
    state = begun(np.zeros(3))
    for t in range(1, 6):
        each = [
            whole_sum(parties.model, state.theta, X, y, p.clip, p.sum.step, p.distance)
            for X, y in zip(parties.Xs, parties.ys, strict=True)
        ]
        state = stepped(p, state, t, np.sum(each, axis=0))
    np.testing.assert_array_equal(run(p, parties, np.random.SeedSequence(0)), kept(p, state))


def test_a_partys_mean_gradient_is_clipped_as_a_whole():
    parties = data()
    p = MaskedDescent(graphs.ring(6), 5, sigma=0.01, step=2.0, clip=0.05, dimension=3)
    steps = party_steps(p, parties, np.zeros(3))
    for X, y, own in zip(parties.Xs, parties.ys, steps, strict=True):
        mean = ((0.5 - y)[:, None] * X).mean(axis=0)
        mean *= min(1.0, 0.05 / np.linalg.norm(mean))
        np.testing.assert_allclose(own * p.sum.step, mean, atol=p.sum.step)
    apart = np.linalg.norm(steps[:, None] - steps[None], axis=2)
    assert apart.max() <= p.distance


@pytest.mark.parametrize("unit", ["party", "record"])
def test_who_is_sampled(monkeypatch, unit):
    """One iteration with probability ¼, over and over: the mean sum is a quarter of the whole, and not always the same."""
    silent(monkeypatch)
    parties = data()
    more = {"max_records": 10, "records": 60} if unit == "record" else {}
    p = MaskedDescent(graphs.ring(6), 1, sigma=1.0, step=1.0, clip=0.5, dimension=3, unit=unit, sampling=0.25, **more)
    full = run(p.replace(sampling=1.0), parties, np.random.SeedSequence(0))
    runs = np.array([run(p, parties, np.random.SeedSequence(seed)) for seed in range(400)])
    assert len(np.unique(runs, axis=0)) > 20
    np.testing.assert_allclose(runs.mean(axis=0), full, atol=5 * runs.std(axis=0).max() / 20)


@pytest.mark.parametrize(("share", "n", "drawn_at_once"), [(900, 50, True), (1, 50, False), (2**39, 5, True)])
def test_noise_of_a_sum_has_the_variance_of_all_shares(share, n, drawn_at_once):
    draws = noises(share, n, 4000, 3, np.random.default_rng(0))
    drawn = np.concatenate([next(draws) for _ in range(3)])
    assert drawn.std() == pytest.approx(np.sqrt(n * share), rel=0.04)
    assert abs(drawn.mean()) < 0.05 * drawn.std()


def test_the_seed_decides_and_after_is_told():
    parties, p = data(), MaskedDescent(graphs.ring(6), 4, sigma=0.1, step=2.0, clip=0.2, dimension=3)
    seen = []
    one = run(p, parties, np.random.SeedSequence(3), after=lambda t, state: seen.append((t, state.theta)))
    assert [t for t, _ in seen] == [1, 2, 3, 4]
    np.testing.assert_array_equal(seen[-1][1], one)
    np.testing.assert_array_equal(one, run(p, parties, np.random.SeedSequence(3)))
    assert not np.array_equal(one, run(p, parties, np.random.SeedSequence(4)))
    with pytest.raises(InvalidValue, match="they must agree"):
        run(p.replace(dimension=5), parties, np.random.SeedSequence(0))
