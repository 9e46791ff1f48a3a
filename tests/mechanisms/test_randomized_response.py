"""k-ary randomized response: its law by enumeration, its privacy from both sides, its estimate.

Proof: docs/proofs/mechanisms.md#randomized-responses.
"""

from fractions import Fraction
from itertools import chain, combinations

import mpmath
import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.families.token.ring import response_epsilon
from netdp.families.token.steps import random_share
from netdp.mechanisms import Mechanism, RandomizedResponse


def law(mechanism, value):
    """The probabilities of all reports, from the definition."""
    weights = np.ones(mechanism.domain)
    weights[value] = np.exp(mechanism.epsilon0)
    return weights / weights.sum()


def largest_gap(p, q, epsilon):
    """max over events of p(S) − e^ε q(S), by trying all of them."""
    k = len(p)
    events = chain.from_iterable(combinations(range(k), size) for size in range(k + 1))
    return max(p[list(s)].sum() - np.exp(epsilon) * q[list(s)].sum() for s in events)


@pytest.mark.parametrize("domain", [2, 3, 5])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0])
def test_profile_by_enumeration(domain, epsilon0):
    mechanism = RandomizedResponse(domain, epsilon0)
    for epsilon in np.linspace(0, 1.2 * epsilon0, 13):
        stated = mechanism.curve.delta(epsilon)
        true = max(
            largest_gap(law(mechanism, x), law(mechanism, y), epsilon)
            for x in range(domain)
            for y in range(domain)
            if x != y
        )
        assert true <= stated + 1e-16
        assert stated == pytest.approx(true, rel=1e-12, abs=1e-15)
    assert mechanism.curve.epsilon(0.0) == epsilon0


@pytest.mark.parametrize("domain", [2, 4])
def test_the_draw_has_the_stated_law(domain):
    mechanism = RandomizedResponse(domain, 1.2)
    n, rng = 200_000, np.random.default_rng(5)
    for value in (0, domain - 1):
        shares = np.bincount(mechanism.randomize(np.full(n, value), rng), minlength=domain) / n
        expected = law(mechanism, value)
        assert np.all(np.abs(shares - expected) < 4.5 * np.sqrt(expected * (1 - expected) / n))
    np.testing.assert_allclose(law(mechanism, 0)[:2], [mechanism.keep, mechanism.other], rtol=1e-14)


@pytest.mark.parametrize("epsilon0", [1e-9, 0.3, 4.0, 30.0, 36.0, 50.0])
def test_rounding_never_makes_it_less_private(epsilon0):
    from mpmath import ceil, exp, log, mp, mpf

    mechanism = RandomizedResponse(7, epsilon0)
    with mp.workdps(60):
        flip = ceil(mpf(mechanism.flip) * 2**53) / 2**53  # what `random() < flip` really does
        assert log((1 - flip) * 6 / flip) <= mpf(epsilon0)
        assert log((1 - flip) * 6 / flip) >= mpf(epsilon0) * 0.98 - 1e-12 or epsilon0 > 36
        assert mpf(mechanism.curve.delta(0.0)) >= (exp(mpf(epsilon0)) - 1) / (exp(mpf(epsilon0)) + 6)


@pytest.mark.parametrize(("domain", "epsilon0"), [(2, 1.5e-14), (7, 5e-14), (10**6, 7.2e-9), (10**15, 7.2), (3, 1.0)])
def test_what_is_drawn_is_epsilon0_dp_in_both_directions(domain, epsilon0):
    """Exactly, given uniform words: also where rounding makes the own value rarer than each other one."""
    from mpmath import ceil, exp, mp, mpf

    flip_ = RandomizedResponse(domain, epsilon0).flip
    with mp.workdps(60):
        flip = ceil(mpf(flip_) * 2**53) / 2**53
        own, other = 1 - flip, flip / (domain - 1)
        assert max(own / other, other / own) <= exp(mpf(epsilon0))


def test_a_loss_below_the_bits_of_the_draw_is_refused():
    """Drawn as before, RandomizedResponse(10⁶, 1e-10) would tell another value e^{7e-10} times as often as the own one."""
    with pytest.raises(InvalidValue, match=r"epsilon0=1e-10 is too small .* 1000000 values .* give at least 7.1e-09"):
        RandomizedResponse(10**6, 1e-10)


def test_gamma_is_the_same_randomizer():
    mechanism = RandomizedResponse.from_gamma(5, 0.3)
    assert mechanism.epsilon0 == pytest.approx(response_epsilon(5, 0.3), rel=1e-15)
    assert mechanism.gamma == pytest.approx(0.3, rel=1e-14)
    assert mechanism.keep == pytest.approx(0.7 + 0.3 / 5, rel=1e-14)
    assert mechanism.delta0 == 0.0
    assert isinstance(mechanism, Mechanism)


def test_estimate_is_unbiased_with_the_stated_variance():
    mechanism, rng = RandomizedResponse(4, 0.8), np.random.default_rng(11)
    values = np.repeat([0, 1, 3], [300, 150, 50])
    truth, repeats = mechanism.answer(values), 4000
    estimates = np.array([mechanism.estimate(mechanism.randomize(values, rng)) for _ in range(repeats)])
    variance = mechanism.variance(truth, len(values))
    assert truth.tolist() == [0.6, 0.3, 0.0, 0.1]
    assert np.all(np.abs(estimates.mean(axis=0) - truth) < 4.5 * np.sqrt(variance / repeats))
    # a sample variance of 4000 draws is off by about 2.2 %
    np.testing.assert_allclose(estimates.var(axis=0), variance, rtol=0.1)
    assert mechanism.squared_error(500) == pytest.approx(variance.sum(), rel=1e-12)
    assert np.mean(np.sum((estimates - truth) ** 2, axis=1)) == pytest.approx(variance.sum(), rel=0.06)


def test_same_generator_same_reports():
    mechanism, values = RandomizedResponse(3, 1.0), np.arange(300) % 3
    one, same = (mechanism.randomize(values, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, mechanism.randomize(values, np.random.default_rng(5)))
    assert values.tolist() == (np.arange(300) % 3).tolist()  # left as it was


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 1.0), "domain must be a whole number ≥ 2, got 1"),
        ((2.5, 1.0), "got 2.5"),
        ((2, 0.0), "epsilon0 must be a finite number > 0, got 0.0"),
        ((2, float("nan")), "epsilon0 must be a finite number > 0, got nan"),
        ((2, "much"), "got 'much'"),
        ((2, 51.0), "epsilon0=51.0 protects nothing"),
    ],
)
def test_refuses_parameters(arguments, message):
    with pytest.raises(InvalidValue, match=message):
        RandomizedResponse(*arguments)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 1, 3], r"row 2 of values is 3; the domain is 0 … 2"),
        ([0, -1], r"row 1 of values is -1"),
        ([0.5], "number the categories first"),
        ([[0, 1]], r"got an array of shape \(1, 2\)"),
        ([], "one value per user"),
    ],
)
def test_refuses_values(values, message):
    with pytest.raises(InvalidValue, match=message):
        RandomizedResponse(3, 1.0).randomize(values, np.random.default_rng(0))


def test_refuses_a_seed_and_useless_gamma():
    with pytest.raises(InvalidValue, match=r"rng must be a numpy Generator .*, got 7"):
        RandomizedResponse(3, 1.0).randomize([0], 7)
    with pytest.raises(InvalidValue, match="reports say nothing"):
        RandomizedResponse.from_gamma(3, 1.0)


def test_the_loss_of_an_answer_is_rounded_up():
    """Formula pin: ε₀ = log(1 + L(1−γ)/γ), or twice that of a bit, with 40 digits: never less, and by ten units at most."""
    for gamma in np.linspace(0.01, 0.99, 99).tolist():
        for domain, response, factor in ((7, "k-ary", 1), (2, "unary", 2)):
            with mpmath.workdps(40):
                exact = factor * mpmath.log(1 + domain * (1 - mpmath.mpf(gamma)) / mpmath.mpf(gamma))
                assert (
                    1 <= mpmath.mpf(response_epsilon(domain, gamma, response)) / exact <= 1 + 12 * mpmath.mpf(2) ** -53
                )


def test_random_answers_are_rounded_up():
    """Formula pin: ⌈γ·2⁶⁴⌉ words are random, also for γ that are no share of 2⁶⁴."""
    for gamma in (2.0**-70, 1e-9, 2.0**-12 * (1 + 2.0**-52), 0.3):
        exact = Fraction(gamma) * 2**64
        assert exact <= random_share(gamma) < exact + 1
