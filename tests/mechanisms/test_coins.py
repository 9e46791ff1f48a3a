"""Coins and choices in whole numbers, and the responses that are made of them (docs/proofs/mechanisms.md#finite-precision)."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from netdp.errors import InvalidValue, NetdpError
from netdp.mechanisms import ExactMechanism, RandomizedResponse, UnaryEncoding
from netdp.mechanisms.coins import ALL, log_ratio_up, one_of, response_share, with_share
from netdp.mechanisms.discrete_gaussian import words_from


def words(seed=0):
    return words_from(np.random.default_rng(seed))


def scripted(*numbers):
    """A source that gives these words, in order, and no more; read-only, as a stream cipher's are."""
    left = list(numbers)

    def source(size):
        assert size <= len(left), "more words are asked for than expected"
        out = np.array([left.pop(0) for _ in range(size)], dtype=np.uint64)
        out.flags.writeable = False
        return out

    source.left = left
    return source


def exact_log(numerator, denominator):
    """log of a ratio of whole numbers to fifty digits."""
    with localcontext() as context:
        context.prec = 60
        return (Decimal(numerator) / Decimal(denominator)).ln()


def test_a_share_is_met_at_its_very_edge():
    assert with_share(5, 3, scripted(4, 5, 6)).tolist() == [True, False, False]
    assert with_share(ALL, 2, scripted(0, ALL - 1)).all()
    assert not with_share(0, 2, scripted(0, ALL - 1)).any()
    for wrong in (-1, ALL + 1):
        with pytest.raises(InvalidValue, match="between 0 and 2⁶⁴"):
            with_share(wrong, 1, words())


def test_a_choice_is_drawn_anew_beyond_the_last_whole_multiple():
    most = ALL - ALL % 10
    source = scripted(most - 1, most, 13, ALL - 1, 7)
    assert one_of(10, 3, source).tolist() == [9, 7, 3]  # the second twice: first beyond, then beyond again, then 7
    assert source.left == []
    assert one_of(8, 2, scripted(ALL - 1, 8)).tolist() == [7, 0]  # powers of two need no second word
    counts = np.bincount(one_of(7, 70_000, words()), minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-4
    with pytest.raises(NetdpError, match="broken"):
        one_of(10, 1, lambda size: np.full(size, ALL - 1, dtype=np.uint64))
    for wrong in (0, 2**63):
        with pytest.raises(InvalidValue, match="a choice is among"):
            one_of(wrong, 1, words())


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 7.5, 30.0])
@pytest.mark.parametrize("others", [1, 3, 1000])
def test_the_share_is_the_least_that_keeps_the_loss(epsilon, others):
    """log((1−f)m/f) ≤ ε for f = share/2⁶⁴, and with two words fewer no longer: both in sixty digits."""
    share = response_share(epsilon, others)
    assert exact_log((ALL - share) * others, share) <= Decimal(epsilon)
    assert exact_log((ALL - share + 2) * others, share - 2) > Decimal(epsilon)


def test_logarithms_are_rounded_up_but_not_far():
    for a, b in ((3, 2), (2**64 - 1, 2**63), (10**30 + 1, 10**30), (2**70, 3)):
        found = Decimal(log_ratio_up(a, b))
        assert exact_log(a, b) <= found <= exact_log(a, b) * (1 + Decimal(2) ** -48)
    with pytest.raises(InvalidValue, match="below 1"):
        log_ratio_up(1, 2)


@pytest.mark.parametrize(("domain", "epsilon0"), [(2, 1.0), (10, 0.01), (1000, 6.0), (3, 40.0)])
def test_k_ary_response_draws_what_it_states(domain, epsilon0):
    mechanism = RandomizedResponse(domain, epsilon0)
    flips = mechanism.flips
    keep, other = Fraction(ALL - flips, ALL), Fraction(flips, ALL * (domain - 1))
    assert exact_log(keep.numerator * other.denominator, keep.denominator * other.numerator) <= Decimal(epsilon0)
    assert keep >= other
    assert mechanism.drawn_loss <= epsilon0
    if epsilon0 < 20:  # where 2⁻⁶⁴ is small against the probability of another value
        assert mechanism.drawn_loss == pytest.approx(epsilon0, rel=1e-12)
        assert float(mechanism.drawn_gamma) == pytest.approx(mechanism.gamma, rel=1e-12)
    gamma = mechanism.drawn_gamma
    assert 1 - gamma + gamma / domain == keep
    assert isinstance(mechanism, ExactMechanism)
    assert mechanism.width == 1
    # the last word that flips, and the first that does not
    assert mechanism.report([0, 0], scripted(flips - 1, flips, 0)).tolist() == [1, 0]


def test_k_ary_response_frequencies():
    mechanism = RandomizedResponse(5, 1.2)
    reports = mechanism.report([3] * 100_000, words(3))
    expected = np.full(5, mechanism.other)
    expected[3] = mechanism.keep
    assert stats.chisquare(np.bincount(reports, minlength=5), expected / expected.sum() * 100_000).pvalue > 1e-4
    assert mechanism.readable(np.array([-1, 0, 4, 5])).tolist() == [False, True, True, False]
    data = np.arange(50_000) % 5
    found = mechanism.estimate(mechanism.report(data, words(4)))
    assert np.all(np.abs(found - 0.2) < 4.5 * np.sqrt(mechanism.variance([0.2] * 5, 50_000)))


@pytest.mark.parametrize("encoding", ["optimised", "symmetric"])
@pytest.mark.parametrize("epsilon0", [0.01, 1.0, 12.0])
def test_unary_encoding_draws_what_it_states(encoding, epsilon0):
    mechanism = UnaryEncoding(4, epsilon0, encoding)
    lose, gain = mechanism.flips
    assert exact_log((ALL - lose) * (ALL - gain), lose * gain) <= Decimal(epsilon0)
    assert mechanism.drawn_loss <= epsilon0
    assert mechanism.drawn_loss == pytest.approx(epsilon0, rel=1e-9)
    assert mechanism.width == 4
    row = mechanism.report([1], scripted(gain - 1, 0, gain, gain, lose)).tolist()
    assert row == [[1, 1, 0, 0]]
    assert mechanism.report([1], scripted(gain, 0, gain, gain, lose - 1)).tolist() == [[0, 0, 0, 0]]
    assert mechanism.readable(np.array([[0, 1, 1, 0], [0, 2, 0, 0], [-1, 0, 0, 0]])).tolist() == [True, False, False]


def test_unary_encoding_frequencies():
    mechanism, n = UnaryEncoding(3, 1.0), 60_000
    shares = mechanism.report([2] * n, words(5)).mean(axis=0)
    expected = np.array([mechanism.other, mechanism.other, mechanism.keep])
    assert np.all(np.abs(shares - expected) < 4.5 * np.sqrt(expected * (1 - expected) / n))
    assert math.isclose(mechanism.estimate(mechanism.report([2] * n, words(6)))[2], 1.0, abs_tol=0.05)
