"""What the report says about ε and δ are theorems: they hold, with equality where they say so, and what is left out would fail."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from netdp.privacy import GaussianCurve
from netdp.report.study.accuracy import (
    PRIORS,
    belief_after,
    chance_words,
    percent_up,
    rare_words,
    right_guesses,
    sentences,
)

LEVELS = [(e, d) for e in (0.0, 0.1, 1.0, 3.0, 10.0) for d in (0.0, 1e-9, 1e-6, 1e-3, 0.1)]


def worst(epsilon, delta):
    """The mechanism that is exactly (ε, δ)-private: it tells the truth with probability δ, and else by randomized response.

    Two rows, the laws in the world without and in the world with: (surely without, says without, says with, surely with).
    """
    lie = (1 - delta) / (1 + math.exp(epsilon))
    return np.array([[delta, 1 - delta - lie, lie, 0.0], [0.0, lie, 1 - delta - lie, delta]])


def events(laws):
    """(P′(S), P(S)) of every set S of outcomes."""
    return [laws[:, list(s)].sum(axis=1) for r in range(5) for s in itertools.combinations(range(4), r)]


@pytest.mark.parametrize(("epsilon", "delta"), LEVELS)
def test_the_worst_mechanism_is_exactly_private(epsilon, delta):
    for p, q in events(worst(epsilon, delta)):
        assert p <= math.exp(epsilon) * q + delta + 1e-12
        assert q <= math.exp(epsilon) * p + delta + 1e-12


@pytest.mark.parametrize(("epsilon", "delta"), LEVELS)
def test_a_guess_is_right_so_often_at_most_and_the_worst_mechanism_attains_it(epsilon, delta):
    best = max((q + 1 - p) / 2 for p, q in events(worst(epsilon, delta)))
    assert best == pytest.approx(right_guesses(epsilon, delta), rel=1e-12)
    assert right_guesses(epsilon, delta) == pytest.approx((math.exp(epsilon) + delta) / (1 + math.exp(epsilon)))


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
def test_no_guess_about_a_gaussian_shift_is_right_more_often(mu):
    """Its best guess is right with probability Φ(μ/2), at every point of its curve."""
    curve = GaussianCurve(np.array([mu]))
    for epsilon in np.linspace(0, 8, 33):
        delta = float(curve.delta(epsilon)[0])
        assert norm.cdf(mu / 2) <= right_guesses(float(epsilon), delta) + 1e-12


@pytest.mark.parametrize(("epsilon", "delta"), [(e, d) for e, d in LEVELS if 0 < d < 0.01])
@pytest.mark.parametrize("before", PRIORS)
def test_a_belief_after_a_finding(epsilon, delta, before):
    for p, q in events(worst(epsilon, delta)):
        for without, within in ((p, q), (q, p)):
            if within >= math.sqrt(delta):
                after = before * within / (before * within + (1 - before) * without)
                assert after <= belief_after(before, epsilon, delta) * (1 + 1e-12)


def test_odds_within_a_factor_would_be_too_much_to_say():
    """Why the page does not say that beliefs stay within e^ε but for a chance of δ: a common finding exceeds that."""
    epsilon, delta = 1.0, 1e-3
    without, within = worst(epsilon, delta)[:, 2:].sum(axis=1)
    assert within > 0.5
    assert within / without > math.exp(epsilon) * (1 + 1e-6)
    # and a finding as rare as δ proves everything
    assert worst(epsilon, delta)[0, 3] == 0.0


@pytest.mark.parametrize("m", [2, 3, 5])
def test_several_records(m):
    """A chain of neighbours: m·ε, and δ·(1 + e^ε + … + e^((m−1)ε)), for the Gaussian sum of m records, μ grows m times."""
    for mu, epsilon in itertools.product((0.05, 0.2, 0.5), (0.1, 0.3, 1.0)):
        delta = float(GaussianCurve(np.array([mu])).delta(epsilon)[0])
        true = float(GaussianCurve(np.array([m * mu])).delta(m * epsilon)[0])
        assert true <= delta * sum(math.exp(i * epsilon) for i in range(m)) + 1e-15


def test_what_is_printed_is_never_too_small():
    for value in np.linspace(0.5, 1.0, 1001):
        assert float(percent_up(value).split()[0]) / 100 >= value - 1e-12
    for delta in (1e-9, 2e-5, 1e-3, 0.3):
        assert float(rare_words(delta)) >= math.sqrt(delta) * (1 - 1e-12)
    assert chance_words(1e-6) == "10⁻⁶ (one in 1,000,000)"


def test_the_sentences_carry_the_numbers():
    text = " ".join(sentences(1.0, 1e-6, "record"))
    assert "at most 2.72 times" in text
    assert percent_up(right_guesses(1.0, 1e-6)) in text
    assert "m records" in text
    assert "m records" not in " ".join(sentences(1.0, 1e-6, "party"))
    assert "not bounded by" in " ".join(sentences(math.inf, 1e-6, "party"))
