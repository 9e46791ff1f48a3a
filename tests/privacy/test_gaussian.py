"""The exact Gaussian trade-off: both sides of the bound, against formulas in high precision and dp-accounting.

Proof: docs/proofs/privacy.md#gaussian-profile.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from netdp.errors import InvalidValue
from netdp.privacy import gaussian_delta, gaussian_epsilon, gaussian_mu, gaussian_tradeoff

quick = settings(deadline=None, max_examples=60)  # machines are shared: no deadline

mus = st.floats(-9, 3).map(lambda x: 10.0**x)
deltas = st.one_of(st.floats(-300, -0.01).map(lambda x: 10.0**x), st.floats(0.01, 0.99))
epsilons = st.one_of(st.just(0.0), st.floats(-9, 2.5).map(lambda x: 10.0**x))


@pytest.fixture(scope="module")
def exact():
    """δ in 400 digits."""
    mp = pytest.importorskip("mpmath")

    def delta(mu, epsilon):
        with mp.workdps(400):
            m, e = mp.mpf(float(mu)), mp.mpf(float(epsilon))
            return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)

    return delta


CASES = [
    (mu, delta)
    for mu in (1e-9, 3e-4, 0.019, 0.021, 0.3, 0.499, 0.501, 1.0, 3.0, 30.0, 1e3, 1e6)
    for delta in (1e-300, 1e-40, 1e-12, 1e-6, 0.01, 0.4, 0.9)
]


@pytest.mark.parametrize(("mu", "delta"), CASES)
def test_epsilon_holds_and_fails_just_below(exact, mu, delta):
    epsilon = float(gaussian_epsilon(mu, delta))
    assert exact(mu, epsilon) <= delta
    assert gaussian_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert exact(mu, epsilon * (1 - 1e-10)) > delta


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-3, 0.3, 1.0, 8.0, 200.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-6, 0.01, 0.6])
def test_mu_holds_and_fails_just_above(exact, epsilon, delta):
    mu = float(gaussian_mu(epsilon, delta))
    assert exact(mu, epsilon) <= delta
    assert gaussian_delta(mu, epsilon) <= delta
    assert exact(mu * (1 + 1e-10), epsilon) > delta


@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.0199, 0.02, 0.45, 0.5, 2.0, 20.0, 500.0])
@pytest.mark.parametrize("share", [0.0, 1e-6, 0.1, 1.0, 5.0, 19.9, 20.1, 36.0])
def test_delta_is_rounded_up_but_hardly(exact, mu, share):
    epsilon = mu * (share + mu / 2) if share else 0.0
    truth = exact(mu, epsilon)
    ratio = float(gaussian_delta(mu, epsilon) / truth)
    assert gaussian_delta(mu, epsilon) == 1.0 or 1.0 <= ratio <= 1 + 2e-12


def test_delta_is_the_hockey_stick_integral():
    mu, epsilon = 1.3, 0.7

    def gap(x):
        return max(0.0, stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x))

    start = epsilon / mu + mu / 2
    integral, _ = integrate.quad(gap, start, 12, epsabs=1e-13)
    assert gaussian_delta(mu, epsilon) == pytest.approx(integral, rel=1e-9)


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 4.0])
def test_against_dp_accounting(mu):
    from dp_accounting import get_epsilon_gaussian
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    loss = GaussianPrivacyLoss(standard_deviation=1 / mu)
    for epsilon in (0.0, 0.1, 1.0, 3.0):
        assert gaussian_delta(mu, epsilon) == pytest.approx(loss.get_delta_for_epsilon(epsilon), rel=1e-7)
    for delta in (1e-9, 1e-6, 1e-3):
        theirs = get_epsilon_gaussian(1 / mu, delta)
        assert gaussian_epsilon(mu, delta) == pytest.approx(theirs, rel=1e-6, abs=1e-9)


def test_calibration_against_dp_accounting():
    from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian

    assert 1 / gaussian_mu(1.0, 1e-6) == pytest.approx(get_sigma_gaussian(1.0, 1e-6), rel=1e-6)
    assert gaussian_epsilon(1 / 3.7, 1e-6) == pytest.approx(get_epsilon_gaussian(3.7, 1e-6), rel=1e-6)


@quick
@given(mus, deltas)
def test_round_trip_epsilon(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    # the δ reached is the δ asked for, unless ε = 0 was enough or so near that a double cannot tell
    if epsilon > 1e-6 * mu:
        assert gaussian_delta(mu, epsilon) >= delta * (1 - 1e-9)


@quick
@given(epsilons, deltas)
def test_round_trip_mu(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_epsilon(mu * (1 - 1e-12), delta) <= epsilon * (1 + 1e-9) + 1e-11 * delta


@quick
@given(mus, st.floats(1.001, 3), deltas, epsilons)
def test_monotone(mu, more, delta, epsilon):
    assert gaussian_epsilon(mu * more, delta) >= gaussian_epsilon(mu, delta)
    assert gaussian_epsilon(mu, delta / more) >= gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu * more, epsilon) >= gaussian_delta(mu, epsilon) * (1 - 1e-11)
    assert gaussian_delta(mu, epsilon * more) <= gaussian_delta(mu, epsilon) * (1 + 1e-11)
    assert gaussian_mu(epsilon * more, delta) >= gaussian_mu(epsilon, delta) * (1 - 1e-11)


@quick
@given(st.floats(0.01, 5), st.floats(1e-6, 0.999), epsilons)
def test_tradeoff_lies_above_every_line_of_the_profile(mu, alpha, epsilon):
    """(ε, δ)-DP means type II error ≥ 1 − δ − e^ε α, for every ε (Wasserman, Zhou 2010)."""
    assert gaussian_tradeoff(mu, alpha) >= 1 - gaussian_delta(mu, epsilon) - math.exp(epsilon) * alpha - 1e-11


def test_tradeoff_values():
    assert gaussian_tradeoff(0.0, 0.3) == pytest.approx(0.7)
    assert gaussian_tradeoff(np.inf, 0.0) == 0
    assert gaussian_tradeoff(1.0, 0.0) == pytest.approx(1)
    assert gaussian_tradeoff(1.0, 1.0) == 0
    assert np.isnan(gaussian_tradeoff(np.nan, 0.5))
    symmetric = gaussian_tradeoff(1.5, gaussian_tradeoff(1.5, 0.2))
    assert symmetric == pytest.approx(0.2, rel=1e-9)


def test_edges():
    np.testing.assert_array_equal(gaussian_epsilon([0, np.inf, np.nan], 1e-6), [0, np.inf, np.nan])
    np.testing.assert_array_equal(gaussian_epsilon([0, 1, np.inf, np.nan], 0.0), [0, np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(gaussian_epsilon([0, 1, np.inf, np.nan], 1.0), [0, 0, 0, np.nan])
    np.testing.assert_array_equal(gaussian_delta([0, np.inf, np.nan], 1.0), [0, 1, np.nan])
    assert gaussian_delta(1.0, np.inf) == 0
    assert gaussian_delta(1.0, 1e5) > 0  # 10^-(2·10^9): too small for a double, still not zero
    assert gaussian_delta(1e-320, 1.0) > 0
    assert gaussian_delta(1e200, 1.0) == 1
    assert gaussian_epsilon(1e200, 1e-6) == np.inf
    assert gaussian_epsilon(1e-320, 1e-6) == 0
    assert gaussian_epsilon(1.0, 5e-324) < 42
    assert gaussian_mu(1.0, 0.0) == 0
    assert gaussian_mu(1.0, 1.0) == np.inf
    assert gaussian_mu(np.inf, 1e-6) == np.inf
    assert gaussian_mu(0.0, 1e-300) == pytest.approx(math.sqrt(2 * math.pi) * 1e-300)


def test_shapes():
    assert isinstance(gaussian_epsilon(1.0, 1e-6), float)
    assert gaussian_epsilon(np.ones((3, 3)), 1e-6).shape == (3, 3)
    assert gaussian_epsilon(np.ones((3, 1)), [1e-6, 1e-3]).shape == (3, 2)
    assert gaussian_epsilon([], 1e-6).shape == (0,)
    assert gaussian_mu([0.5, 1.0, 2.0], 1e-6).shape == (3,)
    many = 10.0 ** np.linspace(-4, 2, 40_000)
    whole = gaussian_epsilon(many, 1e-6)
    assert whole[12_345] == gaussian_epsilon(many[12_345], 1e-6)  # chunks do not matter


def test_fast_enough_for_a_thousand_by_a_thousand():
    mu = np.random.default_rng(0).uniform(0.01, 3, 100_000)
    start = time.perf_counter()
    gaussian_epsilon(mu, 1e-6)
    assert time.perf_counter() - start < 2  # a tenth of a million; 0.12 s when nothing else runs


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: gaussian_delta(-1.0, 1.0), r"mu must be ≥ 0.*-1\.0"),
        (lambda: gaussian_delta(1.0, -1.0), r"epsilon must be ≥ 0, got -1\.0"),
        (lambda: gaussian_delta(1.0, math.nan), "epsilon must be ≥ 0, got nan"),
        (lambda: gaussian_epsilon(1.0, 1.5), r"delta must lie in \[0, 1\], got 1\.5"),
        (lambda: gaussian_epsilon(1.0, math.nan), "delta .* got nan"),
        (lambda: gaussian_epsilon("one", 1e-6), "mu must be a real number"),
        (lambda: gaussian_tradeoff(1.0, 2.0), "alpha"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(InvalidValue, match=match):
        call()


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def test_a_gaussian_delta_is_rounded_up_by_what_is_stated(exact):
    """10⁻¹² up, where the formula itself is right to the last digits; a type II error 10⁻¹² down."""
    import mpmath

    for mu, epsilon in ((1.0, 1.0), (0.3, 0.2), (2.0, 5.0), (0.01, 0.01)):
        ratio = float(gaussian_delta(mu, epsilon) / exact(mu, epsilon) - 1)
        assert ratio == pytest.approx(1e-12, rel=0.1, abs=0.0)
    assert float(gaussian_delta(1e-3, 5.0)) == 5e-324  # too small for a double, and not nothing
    with mpmath.workdps(40):
        truth = mpmath.ncdf(mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(0.25)) - 1)
    assert float(gaussian_tradeoff(1.0, 0.25) / truth - 1) == pytest.approx(-1e-12, rel=0.1, abs=0.0)


def test_inverses_stay_on_the_safe_side_of_delta(exact):
    """ε and μ are found where log δ lies 1.8·10⁻¹² to 3·10⁻¹² below what is asked for: what `gaussian_delta` adds, and more."""
    import mpmath

    for mu, delta in ((1.0, 1e-6), (0.3, 1e-9), (2.0, 1e-3)):
        below = mpmath.log(mpmath.mpf(delta) / exact(mu, gaussian_epsilon(mu, delta)))
        assert 1.7e-12 < float(below) < 3e-12
    for epsilon, delta in ((1.0, 1e-6), (0.2, 1e-3)):
        below = mpmath.log(mpmath.mpf(delta) / exact(gaussian_mu(epsilon, delta), epsilon))
        assert 1.7e-12 < float(below) < 3e-12
