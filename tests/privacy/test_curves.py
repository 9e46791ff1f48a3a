"""Gaussian curves, and composition across kinds."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import Curve, GaussianCurve, ProfileCurve, RenyiCurve, compose

quick = settings(deadline=None, max_examples=60)  # machines are shared: no deadline

losses = st.one_of(st.just(0.0), st.floats(-6, 3).map(lambda x: 10.0**x))


@quick
@given(losses, losses, losses)
def test_composition_commutes_and_is_pythagoras(a, b, c):
    one = compose(GaussianCurve(a), GaussianCurve(b), GaussianCurve(c))
    two = compose(GaussianCurve(c), GaussianCurve(a), GaussianCurve(b))
    assert one.mu == pytest.approx(float(two.mu), rel=1e-15)
    assert one.mu == pytest.approx(float(np.sqrt(a * a + b * b + c * c)), rel=1e-14)
    assert one.mu >= max(a, b, c)


@quick
@given(losses, st.integers(1, 10**6))
def test_self_composition(mu, times):
    many = GaussianCurve(mu).self_compose(times)
    assert many.mu == pytest.approx(mu * times**0.5, rel=1e-14)
    assert GaussianCurve(mu).compose(GaussianCurve(0.0)).mu == mu


def test_composition_against_dp_accounting():
    from dp_accounting.pld import privacy_loss_distribution as pld

    ours = compose(GaussianCurve(0.5), GaussianCurve(0.8).self_compose(3))
    one = pld.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3)
    two = pld.from_gaussian_mechanism(1.25, value_discretization_interval=1e-3).self_compose(3)
    for delta in (1e-3, 1e-6):
        theirs = one.compose(two).get_epsilon_for_delta(delta)
        assert ours.epsilon(delta) == pytest.approx(theirs, rel=1e-5)


def test_edges():
    curve = GaussianCurve([[0.0, 1.0], [np.inf, np.nan]])
    assert curve.shape == (2, 2)
    np.testing.assert_array_equal(curve.rdp(2.0), [[0, 1], [np.inf, np.nan]])
    np.testing.assert_array_equal(np.isnan(curve.epsilon(1e-6)), [[False, False], [False, True]])
    np.testing.assert_array_equal(curve.compose(GaussianCurve(np.inf)).mu, [[np.inf, np.inf], [np.inf, np.nan]])
    np.testing.assert_array_equal(curve.self_compose(4).mu[0, 0], 0)
    assert curve.rdp(np.inf)[0, 0] == 0
    assert isinstance(GaussianCurve(1.0).mu, float)
    assert repr(curve) == "GaussianCurve(shape=(2, 2))"
    assert curve.to_dict() == {"kind": "gaussian", "mu": [[0.0, 1.0], ["inf", None]]}


def test_immutable_and_copyable():
    given_mu = np.array([1.0, 2.0])
    curve = GaussianCurve(given_mu)
    given_mu[0] = 99
    assert curve.mu[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        curve.mu[0] = 0
    with pytest.raises(AttributeError, match="immutable"):
        curve._mu = given_mu
    for twin in (copy.copy(curve), copy.deepcopy(curve), pickle.loads(pickle.dumps(curve))):
        np.testing.assert_array_equal(twin.mu, curve.mu)
        assert not twin.mu.flags.writeable


def test_gaussian_by_way_of_a_profile_composes_too():
    eps = np.linspace(0, 12, 1500)
    both = compose(ProfileCurve.of(GaussianCurve(0.6), eps), ProfileCurve.of(GaussianCurve(0.8), eps))
    exact = GaussianCurve(0.6).compose(GaussianCurve(0.8)).epsilon(1e-6)
    assert exact <= both.epsilon(1e-6) <= exact * (1 + 1e-4)


def test_three_kinds_share_one_interface():
    for curve in (GaussianCurve(1.0), RenyiCurve.linear(0.5), ProfileCurve([0.0, 1.0], [0.3, 0.1])):
        assert isinstance(curve, Curve)
        assert compose(curve) is curve
        assert curve.shape == ()
        assert 0 <= curve.delta(0.5) <= 1
        assert curve.epsilon(0.25) >= 0
        assert curve.to_dict()["kind"] == curve.kind
        assert curve.self_compose(2).epsilon(0.25) >= curve.epsilon(0.25)


def test_bad_input():
    with pytest.raises(InvalidValue, match="mu must be"):
        GaussianCurve(-1.0)
    with pytest.raises(InvalidValue, match="order must be > 1"):
        GaussianCurve(1.0).rdp(1.0)
    with pytest.raises(InvalidValue, match="whole number"):
        GaussianCurve(1.0).self_compose(True)
    with pytest.raises(Unsupported, match="renyi"):
        GaussianCurve(1.0).compose(RenyiCurve.linear(1.0))


def test_importing_the_room_stays_light():
    code = "import sys, netdp.privacy; print([m for m in ('dp_accounting', 'scipy.signal') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def test_sums_of_losses_are_rounded_up():
    """√(μ² + ν²), √k·μ, μ²/2 and sums of divergences in fractions: never less, for any of some hundred pairs."""
    rng = np.random.default_rng(5)
    for a, b in rng.uniform(0.1, 3.0, (100, 2)).tolist():
        x, y = Fraction(a), Fraction(b)
        both = float(GaussianCurve(a).compose(GaussianCurve(b)).mu)
        assert x**2 + y**2 <= Fraction(both) ** 2 <= (x**2 + y**2) * (1 + Fraction(8, 2**53))
        for k in (2, 3, 7):
            assert k * x**2 <= Fraction(float(GaussianCurve(a).self_compose(k).mu)) ** 2
        assert x + y <= Fraction(float(RenyiCurve.linear(a).compose(RenyiCurve.linear(b)).rdp(2.0))) / 2
        assert 7 * x <= Fraction(float(RenyiCurve.linear(a).self_compose(7).rdp(2.0))) / 2
        assert x**2 / 2 <= Fraction(float(GaussianCurve(a).to_renyi().rdp(2.0))) / 2
        table = RenyiCurve([2.0, 3.0], [a, a]).compose(RenyiCurve([2.0, 3.0], [b, b]))
        assert x + y <= Fraction(float(table.values[0]))
