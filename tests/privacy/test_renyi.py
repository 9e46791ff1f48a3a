"""Rényi curves: conversions against dp-accounting and against exact Gaussians, composition, edges.

Proof: docs/proofs/privacy.md#renyi-profile.
"""

from __future__ import annotations

import copy
import pickle

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import DEFAULT_ORDERS, GaussianCurve, RenyiCurve, compose
from netdp.privacy.renyi import _free_delta

quick = settings(deadline=None, max_examples=60)  # machines are shared: no deadline

rhos = st.floats(-8, 2).map(lambda x: 10.0**x)
deltas = st.one_of(st.floats(-200, -0.01).map(lambda x: 10.0**x), st.floats(0.01, 0.99))
epsilons = st.one_of(st.just(0.0), st.floats(-6, 2).map(lambda x: 10.0**x))


@pytest.mark.parametrize("rho", [0.001, 0.02, 0.5, 5.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_epsilon_against_dp_accounting(rho, delta):
    from dp_accounting.rdp import compute_epsilon

    orders = 1 + np.geomspace(0.05, 300, 80)
    theirs, _ = compute_epsilon(orders, rho * orders, delta)
    assert RenyiCurve(orders, rho * orders).epsilon(delta) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("rho", [0.001, 0.02, 0.5, 5.0])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 9.0])
def test_delta_against_dp_accounting(rho, epsilon):
    from dp_accounting.rdp.rdp_privacy_accountant import compute_delta

    orders = 1 + np.geomspace(0.05, 300, 80)
    theirs, _ = compute_delta(orders, rho * orders, epsilon)
    ours = RenyiCurve(orders, rho * orders).delta(epsilon)
    # Pinsker's inequality, which dp-accounting does not use, can only help
    assert ours == pytest.approx(min(theirs, np.sqrt(rho * orders[0] / 2)), rel=1e-9)


@quick
@given(rhos, deltas)
def test_linear_finds_the_best_order(rho, delta):
    line = RenyiCurve.linear(rho).epsilon(delta)
    fine = 1 + np.geomspace(1e-4, 1e8, 1500)
    grid = RenyiCurve(fine, rho * fine).epsilon(delta)
    assert line <= grid * (1 + 1e-9) + 1e-13
    assert line >= grid * (1 - 1e-2) - 1e-9 or grid == 0 or delta < 1e-100


@quick
@given(rhos, epsilons)
def test_linear_delta_finds_the_best_order(rho, epsilon):
    line = RenyiCurve.linear(rho).delta(epsilon)
    fine = 1 + np.geomspace(1e-4, 1e8, 1500)
    grid = RenyiCurve(fine, rho * fine).delta(epsilon)
    assert line <= grid * (1 + 1e-8)


@quick
@given(rhos, deltas)
def test_round_trip(rho, delta):
    curve = RenyiCurve.linear(rho)
    epsilon = curve.epsilon(delta)
    assert curve.delta(epsilon) <= delta * (1 + 1e-9)
    if epsilon > 1e-9:
        assert curve.delta(epsilon * (1 - 1e-6)) > delta * (1 - 1e-9)


@quick
@given(st.floats(-6, 1.5).map(lambda x: 10.0**x), deltas, epsilons)
def test_never_below_the_exact_gaussian(mu, delta, epsilon):
    exact, line = GaussianCurve(mu), GaussianCurve(mu).to_renyi()
    grid = RenyiCurve(DEFAULT_ORDERS, exact.rdp(DEFAULT_ORDERS))
    assert line.epsilon(delta) >= exact.epsilon(delta) * (1 - 1e-11)
    assert grid.epsilon(delta) >= line.epsilon(delta) * (1 - 1e-9) - 1e-13
    assert line.delta(epsilon) >= exact.delta(epsilon) * (1 - 1e-11)
    assert grid.delta(epsilon) >= exact.delta(epsilon) * (1 - 1e-11)


@quick
@given(rhos, st.floats(1.01, 3), deltas, epsilons)
def test_monotone(rho, more, delta, epsilon):
    curve, worse = RenyiCurve.linear(rho), RenyiCurve.linear(rho * more)
    assert worse.epsilon(delta) >= curve.epsilon(delta) * (1 - 1e-12)
    assert curve.epsilon(delta / more) >= curve.epsilon(delta) * (1 - 1e-12)
    assert worse.delta(epsilon) >= curve.delta(epsilon) * (1 - 1e-9)
    assert curve.delta(epsilon * more) <= curve.delta(epsilon) * (1 + 1e-9)


def test_rdp_interpolates_from_above():
    orders = np.array([1.5, 2.0, 4.0, 16.0])

    def true(alpha):  # randomized response with ε₀ = 2
        p = np.exp(2.0) / (1 + np.exp(2.0))
        return np.log(p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)) / (alpha - 1)

    curve = RenyiCurve(orders, true(orders))
    for alpha in np.linspace(1.01, 16, 200):
        assert curve.rdp(alpha) >= true(alpha) * (1 - 1e-12)
    np.testing.assert_array_equal(curve.rdp(orders), true(orders))
    assert curve.rdp(17.0) == np.inf
    np.testing.assert_allclose(RenyiCurve(orders, [[0, 1, 2, 3], [np.nan] * 4]).rdp(2.0), [1, np.nan])


def test_compose():
    a, b = RenyiCurve([2.0, 3.0], [[0.1, 0.2], [1.0, 2.0]]), RenyiCurve([2.0, 3.0], [0.5, 0.75])
    np.testing.assert_allclose(a.compose(b).values, [[0.6, 0.95], [1.5, 2.75]])
    np.testing.assert_array_equal(a.compose(b).values, b.compose(a).values)
    np.testing.assert_allclose(a.self_compose(3).values, 3 * a.values)
    assert a.self_compose(1) is a
    line = RenyiCurve.linear(0.1)
    np.testing.assert_allclose(line.compose(b).values, [0.7, 1.05])
    assert line.compose(line).rho == pytest.approx(0.2)
    assert line.self_compose(5).rho == pytest.approx(0.5)
    mixed = compose(GaussianCurve([1.0, 2.0]), b)
    np.testing.assert_allclose(mixed.values, [[1.5, 2.25], [4.5, 6.75]])
    both = compose(line, GaussianCurve(1.0))
    assert isinstance(both, RenyiCurve)
    assert both.rho == pytest.approx(0.6)


def test_edges():
    line = RenyiCurve.linear([0.0, 0.5, np.inf, np.nan])
    np.testing.assert_array_equal(line.epsilon(0.0), [0, np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(line.epsilon(1.0), [0, 0, 0, np.nan])
    np.testing.assert_array_equal(line.delta(np.inf), [0, 0, 1, np.nan])
    np.testing.assert_array_equal(line.delta(1.0)[[0, 2, 3]], [0, 1, np.nan])
    np.testing.assert_array_equal(np.isnan(line.epsilon(1e-6)), [False, False, False, True])
    grid = RenyiCurve([2.0, 4.0], [[0, 0], [1, 2], [np.inf, np.inf], [np.nan, np.nan], [1, np.inf]])
    np.testing.assert_array_equal(grid.epsilon(0.0), [0, np.inf, np.inf, np.nan, np.inf])
    np.testing.assert_array_equal(grid.epsilon(1.0), [0, 0, 0, np.nan, 0])
    assert np.isfinite(grid.epsilon(1e-6)[4])
    np.testing.assert_array_equal(grid.delta(np.inf), [0, 0, 1, np.nan, 0])
    assert grid.delta(1.0)[0] == 0
    assert RenyiCurve.linear(np.full((3, 3), 0.1)).epsilon(1e-6).shape == (3, 3)
    assert RenyiCurve.linear(1e9).epsilon(1e-6) == pytest.approx(1e9, rel=1e-3)
    assert RenyiCurve.linear(1e-300).epsilon(1e-6) == 0
    assert 0 < RenyiCurve.linear(1e-9).delta(50.0) < 1e-300
    assert isinstance(line.values, np.ndarray)


def test_immutable_and_copyable():
    curve = RenyiCurve([2.0, 4.0], [0.1, 0.2])
    with pytest.raises(AttributeError, match="immutable"):
        curve._rho = None
    with pytest.raises(ValueError, match="read-only"):
        curve.values[0] = 0
    for twin in (copy.deepcopy(curve), pickle.loads(pickle.dumps(curve))):
        np.testing.assert_array_equal(twin.values, curve.values)
        assert not twin.values.flags.writeable


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: RenyiCurve([1.0, 2.0], [0, 0]), "orders"),
        (lambda: RenyiCurve([3.0, 2.0], [0, 0]), "increase"),
        (lambda: RenyiCurve([2.0, 3.0], [0.0]), "one per order"),
        (lambda: RenyiCurve([2.0], [-1.0]), "values must be ≥ 0"),
        (lambda: RenyiCurve.linear(-0.1), "rho must be ≥ 0"),
        (lambda: RenyiCurve.linear(0.1).rdp(1.0), "order must be > 1"),
        (lambda: RenyiCurve.linear(0.1).self_compose(0), "≥ 1, got 0"),
        (lambda: RenyiCurve([2.0], [1.0]).compose(RenyiCurve([3.0], [1.0])), "different orders"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(InvalidValue, match=match):
        call()


def test_unlike_curves_need_the_function():
    with pytest.raises(Unsupported, match=r"netdp\.privacy\.compose"):
        RenyiCurve.linear(0.1).compose(GaussianCurve(1.0))


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def test_conversions_from_one_order_are_as_printed():
    """ε = r − log(α/(α−1)) − (log δ + log α)/(α−1), δ by the same, and 8 units of every term on top."""
    unit = 2.0**-53
    for alpha, r, delta in ((2.0, 0.3, 1e-6), (32.0, 1.5, 1e-9), (5.5, 4.0, 1e-3)):
        with mpmath.workdps(40):
            a, log_delta = mpmath.mpf(alpha), mpmath.log(mpmath.mpf(delta))
            shrink, log_alpha = mpmath.log(a / (a - 1)), mpmath.log(a)
            exact = r - shrink - (log_delta + log_alpha) / (a - 1)
            added = 8 * unit * float(r + shrink + (abs(log_delta) + log_alpha) / (a - 1))
            found = mpmath.mpf(float(RenyiCurve([alpha], [r]).epsilon(delta)))
            assert 0.5 * added < float(found - exact) < 1.5 * added
    for alpha, r, epsilon in ((32.0, 3.0, 5.0), (64.0, 1.0, 4.0)):
        with mpmath.workdps(40):
            a = mpmath.mpf(alpha)
            shrink, log_alpha = mpmath.log(a / (a - 1)), mpmath.log(a)
            exact = mpmath.exp((a - 1) * (r - epsilon - shrink) - log_alpha)
            added = 8 * unit * float(1 + log_alpha + (a - 1) * (r + epsilon + shrink))
            found = mpmath.mpf(float(RenyiCurve([alpha], [r]).delta(epsilon)))
            assert 0.7 * added < float(found / exact - 1) < 1.3 * added
    for r in np.geomspace(1e-6, 5.0, 60).tolist():
        with mpmath.workdps(40):
            exact = mpmath.sqrt(min(mpmath.mpf(r) / 2, -mpmath.expm1(-mpmath.mpf(r))))
            assert 4 * unit < float(mpmath.mpf(float(_free_delta(np.array(r)))) / exact - 1) < 12 * unit
