"""Descents and histograms of several tokens on graphs, run: the compiled loop against plain NumPy, streams, estimates.

What is accounted is what runs: docs/proofs/token.md#graph-walk.
"""

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import Unsupported
from netdp.families.token.training import draws
from netdp.learn import LogisticParties, train_walk
from netdp.learn.fitting import edge
from netdp.protocols import WalkDescent, WalkHistogram

GRID = graphs.grid(3, 4)


def users(n=12, rows=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return LogisticParties.deal(X, np.where(X[:, 0] > 0, 1.0, -1.0), n, seed)


@pytest.mark.parametrize(
    "options", [{}, {"walk": "simple", "contributions": 3}, {"closing": 2.0, "radius": 0.5}], ids=str
)
def test_against_plain_numpy(options):
    data = users()
    p = WalkDescent(GRID, 60, sigma=0.3, step=0.4, clip=0.4, tokens=2, **options)
    run = train_walk(p, data, seed=4)
    used = np.zeros(12, dtype=int)
    for token in range(2):
        path, noises = draws(p, 4, token)
        model, mine = np.zeros(3), np.zeros(12, dtype=int)
        for u in path:
            noise = p.sigma * noises.standard_normal(3)
            gradient = np.zeros(3)
            if p.contributions is None or mine[u] < p.contributions:
                gradient = data.gradients(np.tile(model, (12, 1)), p.clip)[u]
                mine[u] += 1
            model = model - p.step * (gradient + noise)
            if p.radius is not None:
                model = model * min(1.0, p.radius / max(np.linalg.norm(model), 1e-300))
        if p.closing:
            model = model + p.step * p.sigma * np.sqrt(p.closing) * noises.standard_normal(3)
        np.testing.assert_allclose(run.models[token], model, rtol=1e-10, atol=1e-12)
        used += mine
    np.testing.assert_array_equal(run.contributions, used)
    np.testing.assert_allclose(run.model, run.models.mean(axis=0))


def test_tokens_are_independent_and_the_first_is_as_before():
    data = users()
    for first in (12, GRID):
        one = WalkDescent(first, 60, sigma=0.3, step=0.4)
        three = train_walk(one.replace(tokens=3), data, seed=9)
        np.testing.assert_array_equal(three.models[0], train_walk(one, data, seed=9).model)
        assert not np.allclose(three.models[1], three.models[2])
        watched = train_walk(one.replace(tokens=3), data, seed=9, watch_every=20)
        np.testing.assert_array_equal(watched.models, three.models)
        assert watched.steps.tolist() == [20, 40, 60]
    walked, _ = draws(WalkDescent(GRID, 60, sigma=0.3, step=0.4), 9)
    assert all(a == b or b in GRID.neighbors(a) for a, b in zip(walked[:-1].tolist(), walked[1:].tolist(), strict=True))


def test_the_mean_of_tokens_has_less_noise():
    p = WalkDescent(GRID, 60, sigma=1.0, step=0.1, clip=0.1)
    assert edge(p.replace(tokens=4), 3) == pytest.approx(2 * edge(p, 3))
    quiet = users()
    spread = [np.var([train_walk(p.replace(tokens=k), quiet, seed=s).model for s in range(60)]) for k in (1, 4)]
    assert 2.0 < spread[0] / spread[1] < 8.0


@pytest.mark.parametrize("tokens", [1, 3])
def test_histograms_are_unbiased(tokens):
    labels = np.arange(12) % 3
    p = WalkHistogram(GRID, 120, domain=3, gamma=0.4, tokens=tokens)
    found = np.array([netdp.simulate(p, labels, seed).estimates[0] for seed in range(150)])
    truth = np.bincount(labels) / 12
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - truth) < 5 * error).all()
    predicted = netdp.expected_error(p, labels)
    assert np.mean(((found - truth) ** 2).sum(axis=1)) < 1.3 * predicted.total
    with pytest.raises(Unsupported, match="no public number"):
        netdp.simulate(p.replace(contributions=2), labels, 0)


def test_what_observers_keep_of_several_tokens():
    labels = np.arange(12) % 3
    p = WalkHistogram(GRID, 24, domain=3, gamma=0.4, tokens=2)
    run = netdp.simulate(p, labels, 1, record=[0, 5])
    assert set(run.record.visits[:, 0].tolist()) <= {0, 1}
    assert run.record.release.shape == (2, 3)
    np.testing.assert_array_equal(run.record.release.sum(axis=1), [24, 24])
    for token, step, holder in run.record.visits.tolist():
        assert run.transcript.paths[token][step] == holder
    rows = run.record.arrivals[run.record.visits[:, 0] == 1]
    np.testing.assert_array_equal(rows.sum(axis=1), run.record.visits[run.record.visits[:, 0] == 1, 1])
