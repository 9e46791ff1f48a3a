"""Shares of discrete Laplace noise: their law, the law of their sum, and that every step of the draw is exact.

Proof: docs/proofs/masked.md#laplace-shares.
"""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from netdp.audit.samples import fits, laplace_share_law
from netdp.errors import InvalidValue, NetdpError
from netdp.mechanisms import coins, laplace_shares
from netdp.mechanisms.coins import poisson, poisson_of_one, scaled_exp_floor, scaled_flips
from netdp.mechanisms.discrete_gaussian import words_from
from netdp.mechanisms.laplace import DiscreteLaplace
from netdp.mechanisms.laplace_shares import LaplaceShare, heads_first

CASES = [(Fraction(1, 3), 5), (Fraction(2), 3), (Fraction(1), 1), (Fraction(7, 50), 11), (Fraction(5, 4), 40)]


def words(seed=0):
    return words_from(np.random.default_rng(seed))


def share_mass(rate, parts, reach, shares=1):
    """P(A − B = x) for x = −reach … reach, by adding up products of negative binomial masses: no transform, no recurrence."""
    j = np.arange(2 * reach + 1)
    once = stats.nbinom.pmf(j, shares / parts, -math.expm1(-float(rate)))
    return np.array([(once[: len(once) - abs(x)] * once[abs(x) :]).sum() for x in range(-reach, reach + 1)])


# ── the law ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("rate", "parts"), [case for case in CASES if case[1] <= 11], ids=str)
def test_the_shares_of_all_parts_are_one_discrete_laplace(rate, parts):
    reach = math.ceil(45 / rate)
    one = share_mass(rate, parts, reach)
    total = one
    for _ in range(parts - 1):
        total = np.convolve(total, one)
    middle = len(total) // 2
    x = np.arange(-reach, reach + 1)
    r = float(rate)
    laplace = np.tanh(r / 2) * np.exp(-r * np.abs(x))
    assert np.abs(total[middle - reach : middle + reach + 1] - laplace).max() < 1e-12


@pytest.mark.parametrize(("rate", "parts"), CASES, ids=str)
def test_frequencies_are_those_of_negative_binomial_differences(rate, parts):
    draws = LaplaceShare(rate, parts).sample((60_000,), words(7))
    reach = math.ceil(40 / rate)
    mass = share_mass(rate, parts, reach)
    common = mass * len(draws) > 10
    found = np.array([np.count_nonzero(draws == x) for x in np.arange(-reach, reach + 1)[common]])
    expected = np.append(mass[common], 1 - mass[common].sum()) * len(draws)
    assert stats.chisquare(np.append(found, len(draws) - found.sum()), expected).pvalue > 1e-4


@pytest.mark.parametrize(("rate", "parts"), CASES, ids=str)
def test_sums_of_drawn_shares_are_discrete_laplace(rate, parts):
    draws = LaplaceShare(rate, parts).sample((parts, 30_000), words(3)).sum(axis=0)
    r, x = float(rate), np.arange(-math.ceil(40 / rate), math.ceil(40 / rate) + 1)
    mass = np.tanh(r / 2) * np.exp(-r * np.abs(x))
    common = mass * len(draws) > 10
    found = np.array([np.count_nonzero(draws == k) for k in x[common]])
    expected = np.append(mass[common], 1 - mass[common].sum()) * len(draws)
    assert stats.chisquare(np.append(found, len(draws) - found.sum()), expected).pvalue > 1e-4


def test_fine_grids_look_like_laplace_and_their_last_bits_are_uniform():
    rate = Fraction(1, 3 * 2**34)
    draws = LaplaceShare(rate, 7).sample((7, 20_000), words(1)).sum(axis=0)
    assert stats.kstest(draws * float(rate), "laplace").pvalue > 1e-4
    assert stats.chisquare(np.bincount(draws & 63, minlength=64)).pvalue > 1e-4


@pytest.mark.parametrize(("rate", "parts"), CASES, ids=str)
def test_the_variance_is_a_part_of_the_whole(rate, parts):
    reach = math.ceil(60 / rate)
    x = np.arange(-reach, reach + 1)
    law = LaplaceShare(rate, parts)
    assert law.variance == pytest.approx(float(x**2 @ share_mass(rate, parts, reach)), rel=1e-9)
    assert law.variance * parts == pytest.approx(DiscreteLaplace(rate).variance, rel=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        LaplaceShare(Fraction(1, 30), 12),
        LaplaceShare(Fraction(1, 30), 10),
        LaplaceShare(Fraction(11, 300), 11),
        DiscreteLaplace(Fraction(110554, 1_000_000)),  # each party by itself, with just the variance of a share
    ],
    ids=["one part more", "one part fewer", "a tenth less", "whole noises, scaled"],
)
def test_a_wrong_shape_is_caught(wrong):
    law = laplace_share_law(Fraction(1, 30), 11)
    assert fits(LaplaceShare(Fraction(1, 30), 11).sample((50_000,), words(5)), law).ok
    assert not fits(wrong.sample((50_000,), words(5)), law).ok


# ── the draw ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 1000), Fraction(3), Fraction(1)], ids=str)
def test_every_jump_is_kept_with_just_the_probability_that_its_intensity_needs(rate, monkeypatch):
    """Intensity of a jump of i, per sign: (1/h)·P(i is proposed in its range)·P(kept) = e^{−ri}/(h·i), to the last digit."""
    law, seen = LaplaceShare(rate, 2), {}

    def looked(ratios, exponents, exact, source):
        for i in range(len(ratios)):
            a, b, p, q = exact(i)
            assert ratios[i] == pytest.approx(a / b, rel=1e-12)
            assert exponents[i] == pytest.approx(p / q, rel=1e-12)
            seen[Fraction(p, q) / rate] = (Fraction(a, b), Fraction(p, q))
        return scaled_flips(ratios, exponents, exact, source)

    monkeypatch.setattr(laplace_shares, "scaled_flips", looked)
    law.sample((3000,), words(11))
    top = law.octaves
    assert rate * 2**top >= 1
    assert top == 0 or rate * 2 ** (top - 1) < 1
    assert max(seen) >= 2 ** (top + 1)
    assert min(seen) == 1
    for size, (ratio, exponent) in seen.items():
        i = int(size)
        assert size == i >= 1
        assert exponent == rate * i
        if i < 2**top:  # uniform in its octave
            proposed = Fraction(1, 1 << (i.bit_length() - 1))
        else:  # the (m + 1)-th block of 2^J numbers, chosen with probability 2^−(m + 1)
            proposed = Fraction(1, 1 << (i >> top)) / 2**top
        assert proposed * ratio == Fraction(1, i)
        assert float(ratio) * math.exp(-float(exponent)) < 1  # a probability


def test_proposals_are_spread_evenly(monkeypatch):
    law, sizes, _places = LaplaceShare(Fraction(1, 6), 1), [], []

    def looked(ratios, exponents, exact, source):
        sizes.extend(exact(i)[2] for i in range(len(ratios)))  # size·a, a = 1
        return np.zeros(len(ratios), dtype=bool)

    monkeypatch.setattr(laplace_shares, "scaled_flips", looked)
    drawn = law.sample((500,), words(2))
    assert not drawn.any()
    many = len(sizes)
    assert abs(many - 2 * 500 * 4) < 6 * math.sqrt(4000)  # Poisson, 2·(J + 1) for each share, J = 3
    sizes = np.array(sizes)
    expected = {1: 1 / 4, 2: 1 / 8, 3: 1 / 8, **dict.fromkeys((4, 5, 6, 7), 1 / 16)}
    expected |= dict.fromkeys(range(8, 16), 1 / 4 / 8 / 2) | dict.fromkeys(range(16, 24), 1 / 4 / 8 / 4)
    found = [np.count_nonzero(sizes == i) for i in expected]
    shares = [*expected.values(), 1 - sum(expected.values())]
    assert stats.chisquare([*found, many - sum(found)], np.array(shares) * many).pvalue > 1e-4


def test_fair_coins_in_a_row():
    counts = np.bincount(heads_first(100_000, words(4)), minlength=20)[:12]
    expected = 100_000 * 0.5 ** np.arange(1, 13)
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4
    drawn = iter([np.array([0, 8], dtype=np.uint64), np.array([2], dtype=np.uint64)])
    assert heads_first(2, lambda size: next(drawn)).tolist() == [65, 3]
    with pytest.raises(NetdpError, match="1024 heads in a row"):
        heads_first(1, lambda size: np.zeros(size, dtype=np.uint64))


def test_poisson_tables_are_the_digits_of_the_law():
    decimal.getcontext().prec = 60
    below = decimal.Decimal(0)
    for k, digits in enumerate(coins._poisson_table().tolist()):
        below += decimal.Decimal(-1).exp() / math.factorial(k)
        assert digits == int(below * 2**64)
    assert digits == 2**64 - 1


@pytest.mark.parametrize(("next_word", "value"), [(0, 1), (2**64 - 1, 2)])
def test_a_word_that_does_not_decide_takes_another(next_word, value):
    tie = coins._poisson_table()[1]
    given = iter([np.array([tie, 0], dtype=np.uint64), np.array([next_word], dtype=np.uint64)])
    assert poisson_of_one(2, lambda size: next(given)).tolist() == [value, 0]


@pytest.mark.parametrize("mean", [Fraction(1), Fraction(5, 2), Fraction(1, 11), Fraction(40)], ids=str)
def test_poisson_numbers_have_their_law(mean):
    source = words(6)
    draws = np.array([poisson(mean, source) for _ in range(8000)])
    most = int(stats.poisson.ppf(0.999, float(mean)))
    counts = np.bincount(np.minimum(draws, most + 1), minlength=most + 2)
    shares = np.append(stats.poisson.pmf(np.arange(most + 1), float(mean)), stats.poisson.sf(most, float(mean)))
    assert stats.chisquare(counts, shares * len(draws)).pvalue > 1e-4


def test_scaled_flips_are_decided_in_whole_numbers_where_doubles_cannot():
    digits = scaled_exp_floor(3, 2, 1, 1, 64)

    def exact(i):
        return (3, 2, 1, 1)

    for word, expected in ((digits - 1, True), (digits + 1, False)):
        given = np.array([word], dtype=np.uint64)
        found = scaled_flips(np.array([1.5]), np.array([1.0]), exact, lambda size, given=given: given)
        assert found.tolist() == [expected]
    decimal.getcontext().prec = 80
    assert scaled_exp_floor(3, 2, 1, 7, 200) == int(decimal.Decimal(3) / 2 * (-(decimal.Decimal(1) / 7)).exp() * 2**200)


def test_refusals():
    with pytest.raises(InvalidValue, match="must be a Fraction"):
        LaplaceShare(0.5, 3)
    with pytest.raises(InvalidValue, match="coarser grid"):
        LaplaceShare(Fraction(1, 2**41), 3)
    with pytest.raises(InvalidValue, match="finer grid"):
        LaplaceShare(Fraction(51), 3)
    with pytest.raises(InvalidValue, match="parts"):
        LaplaceShare(Fraction(1), 0)
    with pytest.raises(InvalidValue, match="mean of a Poisson"):
        poisson(Fraction(-1), words())
    assert LaplaceShare(Fraction(1), 3).sample((0, 4), words()).shape == (0, 4)
