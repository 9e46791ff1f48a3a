"""Unary encoding: its profile by enumeration, its draws, its estimate, on tokens and in shuffles.

Proof: docs/proofs/mechanisms.md#randomized-responses.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

import netdp
from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.shuffle.simulate import collect
from netdp.families.token.account.ring import heap_profile
from netdp.mechanisms import Mechanism, RandomizedResponse, UnaryEncoding, better_response
from netdp.protocols import RingHistogram, Shuffle, WalkHistogram

BOTH = pytest.mark.parametrize("encoding", ["symmetric", "optimised"])


def law(mechanism, value):
    """The probabilities of all 2^k reports."""
    rows = np.array(list(itertools.product((0, 1), repeat=mechanism.domain)))
    ones = np.where(np.arange(mechanism.domain) == value, mechanism.keep, mechanism.other)
    return np.prod(np.where(rows == 1, ones, 1 - ones), axis=1)


@BOTH
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 4.0])
def test_the_profile_is_exact(encoding, epsilon0):
    mechanism = UnaryEncoding(4, epsilon0, encoding)
    P, Q = law(mechanism, 0), law(mechanism, 2)
    assert P.sum() == pytest.approx(1.0)
    assert np.log(P / Q).max() == pytest.approx(epsilon0, rel=1e-9)
    assert np.log(P / Q).max() <= epsilon0 * (1 + 1e-13)
    for eps in (0.0, 0.1 * epsilon0, 0.7 * epsilon0, 0.99 * epsilon0):
        exact = np.maximum(P - math.exp(eps) * Q, 0.0).sum()
        assert exact * (1 - 1e-9) <= float(mechanism.curve.delta(eps)) <= exact * (1 + 1e-6) + 1e-15
    assert float(mechanism.curve.delta(epsilon0)) == 0.0


@BOTH
def test_draws_and_estimates(encoding):
    mechanism = UnaryEncoding(5, 1.5, encoding)
    assert isinstance(mechanism, Mechanism)
    values = np.repeat([0, 1, 4], [3000, 2000, 1000])
    rng = np.random.default_rng(1)
    reports = mechanism.randomize(values, rng)
    assert reports.shape == (6000, 5)
    assert reports[values == 1][:, 1].mean() == pytest.approx(mechanism.keep, abs=0.04)
    assert reports[values == 1][:, 3].mean() == pytest.approx(mechanism.other, abs=0.04)
    truth = mechanism.answer(values)
    runs = np.array([mechanism.estimate(mechanism.randomize(values, rng)) for _ in range(60)])
    error = ((runs - truth) ** 2).sum(axis=1)
    assert np.abs(runs.mean(axis=0) - truth).max() < 0.015
    assert error.mean() == pytest.approx(mechanism.squared_error(6000), rel=0.35)
    assert mechanism.variance(truth, 6000).sum() == pytest.approx(mechanism.squared_error(6000))


def test_which_is_better():
    """k-ary response for small domains, unary encoding for large ones: the change is near 3e^ε₀ + 2."""
    for epsilon0 in (0.5, 1.0, 2.0):
        turn = 3 * math.exp(epsilon0) + 2
        assert isinstance(better_response(int(0.8 * turn), epsilon0), RandomizedResponse)
        assert isinstance(better_response(int(1.3 * turn), epsilon0), UnaryEncoding)
    wide = [option.squared_error(1000) for option in (RandomizedResponse(256, 1.0), UnaryEncoding(256, 1.0))]
    assert wide[1] < 0.05 * wide[0]


def test_refusals():
    for wrong in ({"domain": 1}, {"epsilon0": 0.0}, {"epsilon0": 1e-13}, {"encoding": "thermometer"}):
        with pytest.raises(InvalidValue):
            UnaryEncoding(**{"domain": 3, "epsilon0": 1.0, **wrong})
    mechanism = UnaryEncoding(3, 1.0)
    for reports in ([0, 1, 2], [[0, 1]], [[0, 1, 2]], [[0.5, 0.0, 0.0]]):
        with pytest.raises(InvalidValue, match="bits"):
            mechanism.estimate(reports)
    with pytest.raises(InvalidValue, match="the domain is 0 … 2"):
        mechanism.randomize([3], np.random.default_rng(0))


def test_it_is_collected_through_a_network():
    p = Shuffle(graphs.regular(600, 6, seed=1), rounds=30, epsilon0=2.0)
    done = collect(p, UnaryEncoding(8, 2.0), np.arange(600) % 2, seed=0)
    assert np.abs(done.estimate[:2] - 0.5).max() < 0.15
    with pytest.raises(InvalidValue, match="this UnaryEncoding has δ"):
        collect(p, UnaryEncoding(8, 3.0), np.arange(600) % 2, seed=0)


# ---- on tokens (docs/proofs/token.md#known-path)


@pytest.mark.parametrize(("others", "sure", "gamma"), [(0, 0, 0.4), (3, 0, 0.4), (2, 3, 0.7), (6, 1, 0.2)])
def test_a_heap_of_bits_is_two_heaps(others, sure, gamma):
    """What is seen of u's two values: two counts, u's bit among the others' (held at any values) and fair coins."""
    p, q = 1 - gamma / 2, gamma / 2
    curve = heap_profile(others, sure, 5, gamma, "unary")

    def count(ones, zeros):
        return np.convolve(
            binom.pmf(np.arange(ones + 1), ones, p),
            np.convolve(binom.pmf(np.arange(zeros + 1), zeros, q), binom.pmf(np.arange(sure + 1), sure, 0.5)),
        )

    for first in range(others + 1):  # so many of the others hold u's first value, so many its second
        second = (others - first) // 2
        one = [count(first + a, others - first + 1 - a) for a in (1, 0)]
        two = [count(second + b, others - second + 1 - b) for b in (0, 1)]
        P, Q = np.outer(one[0], two[0]), np.outer(one[1], two[1])
        for eps in (0.0, 0.3, 1.0, 2.0):
            exact = np.maximum(P - math.exp(eps) * Q, 0.0).sum()
            assert exact <= float(curve.delta(eps)) + 1e-12
    if others == 0:
        assert float(curve.delta(0.3)) == pytest.approx(exact_alone(sure, p, q, 0.3), rel=0.01)


def exact_alone(sure, p, q, eps):
    pair = np.array([1 - p, p]), np.array([1 - q, q])
    P, Q = np.outer(pair[0], pair[1]), np.outer(pair[1], pair[0])
    assert sure == 0
    return np.maximum(P - math.exp(eps) * Q, 0.0).sum()


@pytest.mark.parametrize("make", [lambda **k: RingHistogram(12, 40, **k), lambda **k: WalkHistogram(12, 480, **k)])
def test_token_histograms_in_bits(make):
    plain, bits = make(domain=6, gamma=0.5), make(domain=6, gamma=0.5, response="unary")
    assert bits.epsilon0 == pytest.approx(2 * math.log(3))
    assert "unary encoding" in str(bits)
    assert "unary" not in str(plain)
    labels = np.arange(12) % 3
    runs = np.array([netdp.simulate(bits, labels, seed).estimates[0] for seed in range(60)])
    np.testing.assert_allclose(runs.mean(axis=0), np.bincount(labels, minlength=6) / 12, atol=0.05)
    error = ((runs - np.bincount(labels, minlength=6) / 12) ** 2).sum(axis=1).mean()
    assert error == pytest.approx(netdp.expected_error(bits, labels).total, rel=0.4)
    old = plain.to_dict()
    del old["response"]
    assert type(plain).from_dict(old) == plain
    with pytest.raises(InvalidValue, match="unknown response 'morse'"):
        make(domain=6, gamma=0.5, response="morse")


def test_bits_are_recorded_as_they_were_seen():
    p = WalkHistogram(4, 30, domain=3, gamma=0.4, response="unary")
    run = netdp.simulate(p, [0, 1, 2, 0], 5, record=[1])
    kept = run.record
    assert set(np.unique(kept.contributions + kept.noises)) <= {0.0, 1.0}
    assert (np.diff(kept.arrivals, axis=0) >= 0).all()
    assert (kept.release[-1] >= kept.arrivals[-1]).all()


def test_the_loss_of_bits_does_not_depend_on_the_domain():
    """In values every heap hides less the more values there are; in bits only the error grows, like √L."""
    losses, errors = {}, {}
    for response in ("k-ary", "unary"):
        for domain in (8, 512):
            p = RingHistogram(40, 1, domain=domain, gamma=0.6, response=response)
            losses[response, domain] = netdp.account(p, [1]).worst_epsilon(1e-3)
            errors[response, domain] = netdp.expected_error(p).rmse
    assert losses["unary", 8] == pytest.approx(losses["unary", 512])
    assert losses["k-ary", 512] > 1.2 * losses["k-ary", 8]
    assert errors["unary", 512] == pytest.approx(8 * errors["unary", 8])
