"""Discrete Gaussians on very fine grids: exact draws, and their distance from rounded real Gaussians.

Proof: docs/proofs/mechanisms.md#discrete-gaussian.
"""

import math

import numpy as np
import pytest
from scipy import stats

from netdp.errors import InvalidValue, NetdpError
from netdp.mechanisms.coins import below_exp, flips
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, exp_floor, words_from
from netdp.mechanisms.fine_gaussian import FINEST_VARIANCE, FineGaussian, rounding_distance


def words(seed=0):
    return words_from(np.random.default_rng(seed))


def law(variance):
    reach = 40 * math.isqrt(variance) + 40
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2.0 * variance))
    return x, weights / weights.sum()


@pytest.mark.parametrize("variance", [1, 2, 9, 10, 100])
def test_frequencies_are_those_of_the_closed_form(variance):
    draws = FineGaussian(variance).sample((100_000,), words(variance))
    x, mass = law(variance)
    common = mass * len(draws) > 10
    found = np.array([np.count_nonzero(draws == k) for k in x[common]])
    expected = np.append(mass[common], mass[~common].sum()) * len(draws)
    chi = stats.chisquare(np.append(found, len(draws) - found.sum()), expected)
    assert chi.pvalue > 1e-4


@pytest.mark.parametrize("bits", [20, 41, 60, 90, 116])
def test_large_parameters_have_the_moments_of_a_gaussian(bits):
    draws = FineGaussian(2**bits).sample((40_000,), words(bits)) / 2.0 ** (bits / 2)
    assert stats.kstest(draws, "norm").pvalue > 1e-4
    assert abs(draws.mean()) < 5 / 200
    assert abs(draws.var() - 1) < 5 * math.sqrt(2) / 200


def test_the_last_bits_are_uniform():
    draws = FineGaussian(3 * 2**90).sample((64_000,), words(5))
    counts = np.bincount((draws & 63).astype(np.int64), minlength=64)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_it_agrees_with_the_sampler_for_small_parameters():
    fine = FineGaussian(2**30).sample((20_000,), words(1))
    other = DiscreteGaussian(2**30).sample((20_000,), words(2))
    assert stats.ks_2samp(fine, other).pvalue > 1e-4


def test_close_comparisons_are_made_in_whole_numbers():
    for p, q in ((1, 1), (1, 7), (3 * 2**70 + 1, 2**71), (40, 1)):
        digits = exp_floor(p, q, 64)
        following = exp_floor(p, q, 128) & (2**64 - 1)
        one = lambda value: lambda size: np.array([value], dtype=np.uint64)  # noqa: E731
        assert below_exp(digits - 1, p, q, None)
        assert not below_exp(digits + 1, p, q, None)
        assert below_exp(digits, p, q, one(following - 1))
        assert not below_exp(digits, p, q, one(following + 1))
    assert below_exp(2**64 - 1, 0, 1, None)


def test_words_at_the_edge_go_through_the_exact_comparison():
    """A word equal to the digits of its probability is decided by the words that follow: heads after 0, tails after the most."""
    digits = exp_floor(1, 1, 64)
    for rest, expected in ((0, True), (2**64 - 1, False)):
        asked = []

        def source(size, asked=asked, rest=rest):
            asked.append(size)
            return np.full(size, digits if len(asked) == 1 else rest, dtype=np.uint64)

        assert flips(np.ones(3), lambda i: (1, 1), source).tolist() == [expected] * 3
        assert asked == [3, 1, 1, 1]


def test_a_broken_source_is_noticed():
    with pytest.raises(NetdpError, match="broken"):
        FineGaussian(2**80).sample((4,), lambda size: np.zeros(size, dtype=np.uint64))


def test_parameters_that_are_refused():
    for wrong in (0, -1, 1.5, True, "1"):
        with pytest.raises(InvalidValue, match="variance"):
            FineGaussian(wrong)
    with pytest.raises(InvalidValue, match="coarser grid"):
        FineGaussian(FINEST_VARIANCE + 1)


@pytest.mark.parametrize("variance", [1, 2, 5, 30, 400])
def test_distance_to_a_rounded_gaussian_is_within_the_bound_and_of_its_order(variance):
    x, mass = law(variance)
    deviation = math.sqrt(variance)
    low, high = stats.norm.cdf((x - 0.5) / deviation), stats.norm.cdf((x + 0.5) / deviation)
    upper = stats.norm.sf((x - 0.5) / deviation) - stats.norm.sf((x + 0.5) / deviation)
    rounded = np.where(x < 0, high - low, upper)
    distance = np.maximum(mass - rounded, 0).sum()
    assert distance <= rounding_distance(variance)
    assert distance > 0.2 * rounding_distance(variance)
