"""Measured lower bounds hold as often as they say, whatever the scores are like. docs/proofs/audit.md#measured."""

import numpy as np
import pytest
from scipy.stats import binom

from netdp.audit import clopper_pearson, measure, one_run
from netdp.errors import InvalidValue
from netdp.privacy import GaussianCurve, ProfileCurve, RenyiCurve, gaussian_epsilon


def test_clopper_and_pearson_cover_every_probability():
    """Exactly, by adding up the binomial law: each end fails with the stated probability at most."""
    n, tail = 40, 0.05
    low, high = clopper_pearson(np.arange(n + 1), n, tail)
    for p in np.linspace(0.01, 0.99, 99):
        mass = binom.pmf(np.arange(n + 1), n, p)
        assert mass[low > p].sum() <= tail + 1e-12
        assert mass[high < p].sum() <= tail + 1e-12
    assert low[0] == 0.0
    assert high[-1] == 1.0


def test_a_sound_promise_is_refuted_no_more_often_than_is_said():
    rng, curve, wrong = np.random.default_rng(1), GaussianCurve(0.5), 0
    for _ in range(400):
        no, yes = rng.standard_normal((2, 400))
        wrong += measure(no, yes + 0.5, 1e-6, confidence=0.8).refutes(curve)
    assert wrong <= 0.2 * 400
    assert wrong > 0  # the bound is no idle one: with this little confidence it does fail now and then


def test_a_promise_that_is_too_small_is_refuted():
    no, yes = np.random.default_rng(2).standard_normal((2, 40_000))
    told = measure(no, yes + 0.5, 1e-6)
    assert told.refutes(GaussianCurve(0.4))
    assert not told.refutes(GaussianCurve(0.5))
    assert 0.42 < told.mu < 0.5
    assert told.as_gaussian == pytest.approx(float(gaussian_epsilon(told.mu, 1e-6)))


def test_counts_need_no_law():
    """Randomized response with ε = 2: counts prove it, and refute 1.9."""
    rng, kept = np.random.default_rng(3), np.exp(2.0) / (1 + np.exp(2.0))
    no = (rng.random(100_000) > kept).astype(float)
    yes = (rng.random(100_000) < kept).astype(float)
    told = measure(no, yes, 1e-6)
    assert 1.9 < told.by_counts < 2.0
    assert told.refutes(ProfileCurve([0.0, 1.9], [1.0, 0.0]))
    assert not told.refutes(ProfileCurve([0.0, 2.0], [float((np.exp(2) - 1) / (np.exp(2) + 1)) + 1e-9, 0.0]))


def test_the_direction_does_not_matter():
    """A rare event that happens in one world only is found, whichever world that is: large scores speak for within."""
    rng = np.random.default_rng(4)
    never, rare = np.zeros(20_000), (rng.random(20_000) < 0.02).astype(float)
    assert measure(never, rare, 1e-6).by_counts > 3
    assert measure(-rare, never, 1e-6).by_counts > 3


def test_divergences_are_held_against_accuracy():
    no, yes = np.random.default_rng(5).standard_normal((2, 40_000))
    told = measure(no, yes + 0.5, 1e-6)
    assert told.refutes(RenyiCurve.linear(0.3 * 0.125))
    assert not told.refutes(RenyiCurve.linear(0.125))


def test_one_run_holds_as_often_as_it_says():
    """Canaries behind randomized response of ε = 1: the bound exceeds 1 in a share of runs that is no larger than the doubt."""
    rng, kept, m = np.random.default_rng(6), np.exp(1.0) / (1 + np.exp(1.0)), 400
    bounds = [one_run(int((rng.random(m) < kept).sum()), m, m, 0.0, confidence=0.8) for _ in range(200)]
    assert np.mean(np.array(bounds) > 1.0) <= 0.2 + 0.06
    assert 0.7 < np.median(bounds) < 1.0


def test_one_run_takes_delta_into_account():
    sure = one_run(400, 400, 400, 0.0)
    assert one_run(400, 400, 400, 1e-4) < sure
    assert one_run(400, 400, 400, 1e-2) == 0.0  # four canaries may be shown as they are


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: measure([1.0] * 20, [1.0] * 19, 1e-6), "as many of both"),
        (lambda: measure([1.0] * 20, [np.nan] * 20, 1e-6), "without nan"),
        (lambda: measure([1.0] * 20, [1.0] * 20, 1e-6, confidence=1.0), "between 0 and 1"),
        (lambda: measure([1.0] * 20, [1.0] * 20, -0.1), "delta"),
        (lambda: one_run(5, 4, 10, 0.0), "cannot be"),
        (lambda: measure([0.0] * 20, [1.0] * 20, 0.0).refutes(GaussianCurve([1.0, 2.0])), "one curve"),
    ],
)
def test_nonsense_is_refused(call, said):
    with pytest.raises(InvalidValue, match=said):
        call()
