"""PrivUnit: exact privacy against closed forms and integrals, the best threshold, the sampler's law.

Proof: docs/proofs/mechanisms.md#privunit.
"""

import math
import sys

import numpy as np
import pytest
from scipy import integrate, special, stats

from netdp.errors import InvalidValue
from netdp.mechanisms import Mechanism, PrivUnit

CASES = [(2, 0.5), (3, 1.0), (10, 4.0), (200, 1.0), (200, 8.0)]


def share_and_moment(d, threshold):
    """q and A by integration over angles, t = cos θ: smooth for every d."""
    total = integrate.quad(lambda a: math.sin(a) ** (d - 2), 0, math.pi, epsrel=1e-12, limit=200)[0]
    end = math.acos(threshold)
    q = integrate.quad(lambda a: math.sin(a) ** (d - 2), 0, end, epsrel=1e-12, epsabs=0, limit=200)[0]
    A = math.sin(end) ** (d - 1) / (d - 1)  # ∫ cos·sin^(d−2)
    return q / total, A / total


@pytest.mark.parametrize(("d", "epsilon0"), CASES)
def test_density_ratio_is_the_stated_loss(d, epsilon0):
    mechanism = PrivUnit(d, epsilon0)
    q, A = share_and_moment(d, mechanism.threshold)
    p = mechanism.inside
    inside, outside = p / q, (1 - p) / (1 - q)
    assert math.log(inside / outside) <= epsilon0
    assert math.log(inside / outside) == pytest.approx(epsilon0, abs=1e-8)
    assert mechanism.cap == pytest.approx(q, rel=1e-9)
    assert mechanism.mean_length == pytest.approx(A * (inside - outside), rel=1e-9)
    assert isinstance(mechanism, Mechanism)
    assert mechanism.delta0 == 0


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("epsilon0", [0.3, 2.0])
def test_profile_by_integration(d, epsilon0):
    """All pairs of directions, by the angle between them: δ is largest at opposite ones, and then as stated."""
    mechanism = PrivUnit(d, epsilon0)
    p, q, gamma = mechanism.inside, mechanism.cap, mechanism.threshold
    inside, outside = p / q, (1 - p) / (1 - q)
    rng = np.random.default_rng(0)
    if d == 2:
        angles = 2 * np.pi * (np.arange(400_000) + 0.5) / 400_000
        points = np.column_stack([np.cos(angles), np.sin(angles)])
    else:
        points = rng.standard_normal((400_000, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    tolerance = 1e-4 if d == 2 else 6e-3
    first = points @ np.eye(d)[0] >= gamma
    for epsilon in (0.0, 0.4 * epsilon0, 0.9 * epsilon0, 1.1 * epsilon0):
        stated = float(mechanism.curve.delta(epsilon))
        found = []
        for turn in (0.2, 1.0, 2.0, np.pi):
            other = np.array([np.cos(turn), np.sin(turn), 0.0])[:d]
            P = np.where(first, inside, outside)
            Q = np.where(points @ other >= gamma, inside, outside)
            found.append(np.maximum(P - np.exp(epsilon) * Q, 0).mean())
            assert found[-1] <= stated + tolerance
        assert found[-1] == pytest.approx(stated, abs=tolerance)
        assert found[0] < found[-1] or epsilon > epsilon0
    assert mechanism.curve.epsilon(0.0) == epsilon0


@pytest.mark.parametrize(("d", "epsilon0"), CASES)
def test_no_other_split_is_better(d, epsilon0):
    best = PrivUnit(d, epsilon0).mean_length
    for threshold in np.linspace(-0.9, 0.95, 38):
        q, A = share_and_moment(d, threshold)
        if 1e-200 < q < 1:
            p = special.expit(epsilon0 + math.log(q / (1 - q)))
            assert A * (p / q - (1 - p) / (1 - q)) <= best * (1 + 1e-8)
    assert PrivUnit(d, epsilon0).threshold == pytest.approx(best, rel=1e-6)


def test_in_three_dimensions_everything_is_elementary():
    """⟨V, u⟩ is uniform: γ(1 + E(1−γ)/2) = E(1−γ²)/4, whose root is tanh(ε₀/4)."""
    for epsilon0 in (0.1, 1.0, 6.0):
        assert PrivUnit(3, epsilon0).threshold == pytest.approx(math.tanh(epsilon0 / 4), rel=1e-10)


@pytest.mark.parametrize(("d", "epsilon0"), CASES)
def test_the_sampler(d, epsilon0):
    mechanism, n = PrivUnit(d, epsilon0), 6000 if d > 10 else 20_000
    rng = np.random.default_rng(17)
    u = rng.standard_normal(d)
    u /= np.linalg.norm(u)
    reports = mechanism.randomize(np.tile(u, (n, 1)), rng)
    np.testing.assert_allclose(np.linalg.norm(reports, axis=1), 1 / mechanism.mean_length, rtol=1e-12)
    along = reports @ u * mechanism.mean_length
    on_cap = along >= mechanism.threshold - 1e-12
    p = mechanism.inside
    assert abs(on_cap.mean() - p) < 4.5 * math.sqrt(p * (1 - p) / n)

    # on and off the cap the component along u follows the truncated Beta law
    a, q = (d - 1) / 2, mechanism.cap
    upper = special.betainc(a, a, (1 - along) / 2)  # P(⟨V, u⟩ ≥ what was seen), V uniform
    assert stats.kstest(upper[on_cap] / q, "uniform").pvalue > 1e-3
    assert stats.kstest((upper[~on_cap] - q) / (1 - q), "uniform").pvalue > 1e-3

    # across u the direction is uniform: in any fixed direction orthogonal to u, again a Beta law
    w = rng.standard_normal(d)
    w -= (w @ u) * u
    w /= np.linalg.norm(w)
    side = reports * mechanism.mean_length - along[:, None] * u
    across = side @ w / np.linalg.norm(side, axis=1)
    if d > 2:
        b = (d - 2) / 2
        assert stats.kstest(special.betainc(b, b, (1 + across) / 2), "uniform").pvalue > 1e-3
    else:
        assert abs(np.mean(across > 0) - 0.5) < 4.5 * math.sqrt(0.25 / n)


@pytest.mark.parametrize(("d", "epsilon0"), [(2, 0.5), (10, 2.0), (200, 4.0)])
def test_estimate_is_unbiased_with_the_stated_error(d, epsilon0):
    mechanism, n = PrivUnit(d, epsilon0), 4000
    rng = np.random.default_rng(23)
    values = rng.standard_normal((n, d)) + 1.0
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    repeats = 12
    off = np.array([mechanism.estimate(mechanism.randomize(values, rng)) for _ in range(repeats)])
    off -= mechanism.answer(values)
    expected = (1 / mechanism.mean_length**2 - 1) / n
    assert mechanism.squared_error(n) == pytest.approx(expected, rel=1e-12)
    # ‖mean of the errors‖² has the expectation error/repeats and, with d degrees of freedom, this spread
    spread = 4.5 * math.sqrt(2 / (d - 1))
    assert np.sum(off.mean(axis=0) ** 2) < expected / repeats * (1 + spread + 5 / (d - 1))
    assert np.mean(np.sum(off**2, axis=1)) == pytest.approx(expected, rel=0.2 + spread / math.sqrt(repeats))


def test_narrow_caps_keep_their_digits():
    """d = 2, ε₀ = 50: the cap is 10⁻⁷ wide; reports on it stay on it and differ."""
    mechanism = PrivUnit(2, 50.0)
    reports = mechanism.randomize(np.tile([1.0, 0.0], (1000, 1)), np.random.default_rng(0)) * mechanism.mean_length
    angle = np.arctan2(reports[:, 1], reports[:, 0])
    width = np.pi * mechanism.cap
    assert np.all(np.abs(angle) <= width * (1 + 1e-6))
    assert len(np.unique(angle)) > 990
    assert stats.kstest(np.abs(angle) / width, "uniform").pvalue > 1e-3


def test_float_draws_give_vectors_away_and_the_docstring_says_so():
    """Small first coordinates of V are multiples of 2⁻⁵³ if u is the first unit vector, mostly not if it is the second."""
    mechanism, rng = PrivUnit(200, 1.0), np.random.default_rng(0)
    share = []
    for axis in (0, 1):
        first = mechanism.randomize(np.tile(np.eye(200)[axis], (4000, 1)), rng)[:, 0]
        digits = np.ldexp(first * mechanism.mean_length, 53)  # V, but for two roundings
        small = np.abs(digits) < 0.02 * 2**53
        share.append(np.mean(small & (np.abs(digits - np.rint(digits)) > 0.1)))
    assert share[0] == 0
    assert share[1] > 0.1
    assert "for simulation only" in sys.modules[PrivUnit.__module__].__doc__


def test_pieces_do_not_change_the_answer_shape(monkeypatch):
    monkeypatch.setattr("netdp.mechanisms.privunit._NUMBERS_AT_ONCE", 50)
    mechanism = PrivUnit(10, 2.0)
    reports = mechanism.randomize(np.tile(np.eye(10)[3], (503, 1)), np.random.default_rng(0))
    assert reports.shape == (503, 10)
    assert len(np.unique(reports[:, 0])) == 503
    np.testing.assert_allclose(np.linalg.norm(reports, axis=1), 1 / mechanism.mean_length, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PrivUnit(1, 1.0), "dimension must be a whole number ≥ 2, got 1"),
        (lambda: PrivUnit(3, 0), "epsilon0 must be a finite number > 0, got 0"),
        (lambda: PrivUnit(3, 1e-7), "too small for PrivUnit"),
        (lambda: PrivUnit(2_000_000, 1.0), "more than 1,000,000"),
        (
            lambda: PrivUnit(2, 1.0).check([[1.0, 0.0], [3.0, 4.0]]),
            "row 1 of values has norm 5; .*divide each by its norm",
        ),
        (lambda: PrivUnit(2, 1.0).check([[1.0, 1e-2]]), "row 0 of values has norm 1.00005"),
        (lambda: PrivUnit(2, 1.0).check([[0.0, 0.0]]), "norm 0"),
        (lambda: PrivUnit(2, 1.0).check([[1.0, 0.0, 0.0]]), r"\(2,\) per user, got an array of shape \(1, 3\)"),
        (lambda: PrivUnit(2, 1.0).check([[1.0, np.inf]]), "row 0 of values is not finite: inf"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InvalidValue, match=message):
        make()


def test_single_precision_is_accepted():
    values = np.random.default_rng(0).standard_normal((50, 30)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    assert PrivUnit(30, 1.0).check(values).dtype == np.float64
