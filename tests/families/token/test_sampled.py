"""Profiles of contributions that happen in secret."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from netdp.families.token.account.events import Shift, block, gaussian, mixture, sampled
from netdp.numerics.binomial import visits
from netdp.privacy import gaussian_delta

_spec = importlib.util.spec_from_file_location("walk_brute", Path(__file__).with_name("walk_brute.py"))
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)

EPS = np.array([0.0, 0.02, 0.1, 0.3, 1.0, 2.0])


def both_ways(first, second, deviation):
    pair = brute.gaussian_pair(first, second, deviation, 4000)
    return np.maximum(brute.delta(pair, EPS), brute.delta(pair[::-1], EPS))


def sums(length, others, own):
    return brute.means(length, [*others, own])


def test_zero_out_when_every_step_is_the_target():
    """q = 1: all others collude. The share of the near shift is 1, up to rounding, and δ must not fall below 0 by that."""
    eps = np.linspace(0.0, 60.0, 2001)
    found = block(Shift(3.3, 6.6), 1.0, 1)(eps)
    assert (found >= 0).all()
    assert found == pytest.approx(gaussian_delta(3.3, eps), rel=1e-8, abs=1e-14)


def test_zero_out_is_not_one_sided():
    """Others at −x: the sums of both sides are mixtures, and easier to tell apart than the mixture around 0 and N(0, jσ²)."""
    x, sigma = 0.5, 1.0
    exceeded = []
    for n_others, length in ((1, 2), (2, 3), (4, 3)):
        q = 1 / (n_others + 1)
        k = np.arange(length + 1)
        rule = both_ways((k * x, binom.pmf(k, length, q)), (np.zeros(1), np.ones(1)), sigma * math.sqrt(length))
        bound = block(Shift(x / sigma, 2 * x / sigma), q, length)(EPS)
        for others in ([0.0] * n_others, [-x] * n_others, [x] * n_others):
            true = both_ways(sums(length, others, x), sums(length, others, 0.0), sigma * math.sqrt(length))
            assert np.all(true <= bound + 1e-13)
            if others[0] == 0.0:
                assert true == pytest.approx(rule, rel=1e-6, abs=1e-15)
            else:
                exceeded.append(np.any(true > rule * 1.01))
    assert any(exceeded)


@pytest.mark.parametrize("length", [1, 2, 4])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("zeroed", [False, True])
def test_blocks_cover_exact_mixtures(length, sigma, zeroed):
    """Contributions in [−1/2, 1/2]: u's move from one end to the other, or to 0; others anywhere."""
    near = 0.5 if zeroed else 1.0
    for n_others in (1, 3, 6):
        q = 1 / (n_others + 1)
        bound = block(Shift(near / sigma, 1 / sigma), q, length)(EPS)
        truth = np.max(
            [
                both_ways(
                    sums(length, [x] * n_others, 0.5),
                    sums(length, [x] * n_others, 0.5 - near),
                    sigma * math.sqrt(length),
                )
                for x in (-0.5, 0.0, 0.5)
            ],
            axis=0,
        )
        assert np.all(truth <= bound + 1e-13)
        if sigma >= 5 and length == 1:
            assert bound[0] <= truth[0] * (1 + 1e-5)  # one step at ε = 0 loses nothing


def test_a_single_step_is_attained_by_the_others_far_away():
    """Replacement, one step: others where u was not; the profile is then the sampled Gaussian's, up to β."""
    q, mu = 0.1, 0.2
    bound = block(Shift(mu, mu), q, 1)(EPS)
    assert bound == pytest.approx(sampled(gaussian(mu), q)(EPS), rel=1e-6, abs=1e-20)


def test_certain_visits_are_the_plain_gaussian():
    assert block(Shift(0.7, 0.7), 1.0, 1)(EPS) == pytest.approx(np.asarray(gaussian_delta(0.7, EPS)), rel=1e-6)
    assert block(Shift(0.7, 0.7), 1.0, 4)(EPS) == pytest.approx(np.asarray(gaussian_delta(1.4, EPS)), rel=1e-6)


def test_zero_out_lies_between_half_and_the_whole():
    for q in (0.5, 0.02):
        for length in (1, 5):
            whole, half = (block(Shift(s, s), q, length)(EPS) for s in (1.0, 0.5))
            between = block(Shift(0.5, 1.0), q, length)(EPS)
            assert np.all(half <= between)
            assert np.all(between <= whole)
            assert between[0] == pytest.approx(half[0])  # β = 1 at ε = 0


def test_mixture_counts_what_has_no_weight_as_certain():
    profile = mixture(np.array([0.5, 3.0]), np.array([0.25, 1e-30]))
    exact = 0.25 * np.asarray(gaussian_delta(0.5, EPS))
    assert np.all(profile(EPS) >= exact + 1e-30 * (exact < 1e-20))
    assert profile(EPS) == pytest.approx(exact, rel=1e-9, abs=1e-29)
    far = mixture(np.array([0.5]), np.array([1e-29]))(np.array([50.0]))
    assert float(far[0]) >= 1e-29


def test_visits_that_are_left_out_are_counted_as_certain_loss():
    """Counts are looked at one by one up to where next to nothing is left; that rest counts as a loss without bound."""
    for q, length in ((0.5, 200), (0.3, 150), (1e-3, 40)):
        k, weight = visits(length, q, 1)
        assert np.isinf(k[-1])
        assert np.isfinite(k[:-1]).all()
        beyond = float(binom.sf(k[-2], length, q))
        assert beyond <= weight[-1] <= max(beyond * (1 + 1e-6), 1e-300)
        assert weight.sum() == pytest.approx(1 - (1 - q) ** length, rel=1e-7)
    # so much noise that only the visits beyond can lose anything: dropping them would give nothing at all
    short = Shift(1e-12, 1e-12)
    shown = block(short, 1e-3, 40)(np.array([3.0]))
    assert 0 < float(binom.sf(visits(40, 1e-3, 1)[0][-2], 40, 1e-3)) <= shown[0] < 1e-28
    # and one with nearly all visits beyond: the bound must not fall below a Gaussian shift by the least of them
    sure = block(Shift(0.05, 0.05), 1.0, 400)(EPS)
    assert np.all(sure >= np.asarray(gaussian_delta(400 * 0.05 / 20, EPS)))


def test_shift_through_more_noise():
    assert Shift(1.0, 2.0).over(2.0) == Shift(0.5, 1.0)


def test_rare_labels_count_as_infinite_shifts():
    """Formula pin: labels of less than the least weight are in δ with all their weight, at every ε."""
    profile = mixture(np.array([1.0, 0.1, 0.2]), np.array([0.9, 1e-4, 2e-4]), least=1e-3)
    found = profile(np.array([0.5, 30.0]))
    assert found[1] == pytest.approx(3e-4, rel=2e-9, abs=0.0)
    assert found[1] >= 3e-4
    assert found[0] == pytest.approx(0.9 * float(gaussian_delta(1.0, 0.5)) + 3e-4, rel=1e-9, abs=0.0)
