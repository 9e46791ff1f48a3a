"""Laplace and Gaussian randomizers: profiles against integrals of the densities, estimates, refusals.

Proof: docs/proofs/mechanisms.md#laplace-noise and #gaussian-noise.
"""

import sys
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from netdp.errors import InvalidValue
from netdp.mechanisms import Gaussian, Laplace, Mechanism, RandomizedResponse, UnaryEncoding, base
from netdp.mechanisms.coins import log_ratio_up
from netdp.mechanisms.fine_gaussian import rounding_distance
from netdp.mechanisms.gaussian import GridGaussian
from netdp.mechanisms.laplace import DiscreteLaplace
from netdp.privacy import GaussianCurve


def gap_on_a_line(density, shift, epsilon, breaks, reach):
    """∫ (f(x) − e^ε f(x − shift))₊ dx: the largest P(S) − e^ε Q(S)."""
    points = sorted({0.0, shift, *breaks})
    edges = [-reach, *points, reach]
    return sum(
        integrate.quad(lambda x: max(density(x) - np.exp(epsilon) * density(x - shift), 0.0), a, b, limit=200)[0]
        for a, b in pairwise(edges)
    )


@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 4.0])
def test_laplace_profile_by_integration(epsilon0):
    mechanism = Laplace(2.0, epsilon0)
    density = stats.laplace(scale=2.0 / epsilon0).pdf
    for share in (0.0, 0.3, 0.77, 0.99, 1.0, 1.3):
        epsilon = share * epsilon0
        true = gap_on_a_line(lambda x: float(density(x)), 2.0, epsilon, [1 - share], 60 / epsilon0)
        stated = float(mechanism.curve.delta(epsilon))
        assert stated >= true - 1e-8
        assert stated == pytest.approx(true, rel=1e-4, abs=1e-8)
    assert mechanism.curve.epsilon(0.0) == epsilon0
    assert mechanism.delta0 == 0


@pytest.mark.parametrize("epsilon0", [1e-3, 0.5, 5.0, 50.0])
def test_laplace_curve_is_above_the_formula_and_close(epsilon0):
    mechanism = Laplace(1.0, epsilon0)
    gaps = epsilon0 * np.geomspace(1e-8, 1, 777)
    true, stated = mechanism.profile(epsilon0 - gaps), mechanism.curve.delta(epsilon0 - gaps)
    assert np.all(stated >= true)
    assert np.all((stated <= true * (1 + 1e-4)) | (true < 1e-8))
    assert mechanism.curve.delta(epsilon0) == 0


def test_laplace_vectors_never_exceed_the_scalar_profile():
    """Two coordinates share the budget in any proportion: δ by a grid over the plane."""
    epsilon0, step = 2.0, 0.02
    grid = np.arange(-12, 14, step) + step / 2
    for part in (0.0, 0.1, 0.25, 0.5):
        shift = np.array([1 - part, part])

        def log_density(centre):
            axes = [-epsilon0 * np.abs(grid - c) for c in centre]
            return np.log(epsilon0 / 2) * 2 + axes[0][:, None] + axes[1][None, :]

        p, q = np.exp(log_density([0, 0])), np.exp(log_density(shift))
        for epsilon in (0.0, 0.7, 1.6):
            true = np.maximum(p - np.exp(epsilon) * q, 0).sum() * step**2
            stated = float(Laplace(1.0, epsilon0, dimension=2).curve.delta(epsilon))
            assert true <= stated + 1e-3
            if part == 0:
                assert true == pytest.approx(stated, abs=2e-3)
            elif part >= 0.25:
                assert true < stated - 0.01


@pytest.mark.parametrize(("mu", "epsilon0"), [(0.3, 0.5), (1.0, 1.0), (2.0, 0.1)])
def test_gaussian_profile_by_integration(mu, epsilon0):
    mechanism = Gaussian(sigma=3.0, sensitivity=3.0 * mu, epsilon0=epsilon0)
    crossing = mu / 2 - epsilon0 / mu  # where the densities of N(0,1) and N(μ,1) are e^ε apart
    true = gap_on_a_line(lambda x: float(stats.norm.pdf(x)), mu, epsilon0, [crossing], 30.0)
    assert mechanism.delta0 == pytest.approx(true, rel=1e-7)
    assert isinstance(mechanism.curve, GaussianCurve)


@pytest.mark.parametrize(("epsilon0", "delta0"), [(0.5, 1e-6), (1.0, 1e-3), (8.0, 1e-10)])
def test_gaussian_calibration_is_tight(epsilon0, delta0):
    mechanism = Gaussian.calibrated(epsilon0, delta0, sensitivity=2.0, dimension=3)
    assert mechanism.epsilon0 == epsilon0
    assert mechanism.delta0 <= delta0
    less = Gaussian(mechanism.sigma * (1 - 1e-6), 2.0, 3, epsilon0=epsilon0)
    assert less.delta0 > delta0
    assert mechanism.delta0_at(2 * epsilon0) < mechanism.delta0
    assert mechanism.replace(epsilon0=2 * epsilon0).delta0 == mechanism.delta0_at(2 * epsilon0)


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace.interval(-1.0, 3.0, 1.5),
        Laplace(4.0, 0.7, dimension=3, centre=0.5),
        Gaussian(0.8, 4.0, dimension=3, centre=0.5),
    ],
)
def test_estimate_is_unbiased_with_the_stated_error(mechanism):
    assert isinstance(mechanism, Mechanism)
    rng = np.random.default_rng(3)
    d, n, repeats = mechanism.dimension, 50, 3000
    values = mechanism.clip(rng.normal(1.0, 2.0, size=(n, d)))
    truth = mechanism.answer(values)
    off = np.array([mechanism.estimate(mechanism.randomize(values, rng)) - truth for _ in range(repeats)])
    assert off.shape == (repeats, d)
    each = mechanism.squared_error(n) / d
    assert np.all(np.abs(off.mean(axis=0)) < 4.5 * np.sqrt(each / repeats))
    assert np.mean(np.sum(off**2, axis=1)) == pytest.approx(mechanism.squared_error(n), rel=0.1)


def test_the_draws_have_the_stated_law():
    rng = np.random.default_rng(8)
    for mechanism, law in [
        (Laplace(1.0, 2.0), stats.laplace(scale=0.5)),
        (Gaussian(2.0, 1.0), stats.norm(scale=2.0)),
    ]:
        reports = mechanism.randomize(np.zeros(20_000), rng)[:, 0]
        assert stats.kstest(reports, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("mechanism", [Laplace.interval(0.0, 1.0, 1.0), Gaussian(1.0, 1.0, centre=0.5)])
def test_float_draws_give_values_away_and_the_docstrings_say_so(mechanism):
    """{y·2⁵³ is no whole number} has probability ¼ from the value 0 and 0 from the value 1: infinitely telling."""
    rng = np.random.default_rng(0)
    share = []
    for value in (0.0, 1.0):
        digits = np.ldexp(mechanism.randomize(np.full(4000, value), rng)[:, 0], 53)
        share.append(np.mean(digits != np.rint(digits)))
    assert share[0] > 0.2
    assert share[1] == 0
    assert "for simulation only" in sys.modules[type(mechanism).__module__].__doc__
    assert "from the value 1 never" in base.__doc__


def test_interval_ends_belong_to_it_whatever_the_rounding():
    for low, high in [(0.1, 0.7), (1e6, 1e6 + 0.3), (-1 / 3, 1e-9), (-7.7, 1e5)]:
        mechanism = Laplace.interval(low, high, 1.0)
        assert mechanism.check([low, high]).shape == (2, 1)
        assert mechanism.scale >= high - low
        assert mechanism.scale <= (high - low) * (1 + 1e-4)
        with pytest.raises(InvalidValue, match="row 0"):
            mechanism.check([high + 0.01 * (high - low)])


def test_clip_moves_only_what_is_outside():
    inside = [[0.2, -0.1], [0.0, 0.0]]
    for mechanism, far in [
        (Laplace(1.0, 1.0, dimension=2), [0.25, 0.25]),
        (Gaussian(1.0, dimension=2), [0.5**1.5] * 2),
    ]:
        clipped = mechanism.clip([*inside, [3.0, 3.0]])
        np.testing.assert_allclose(clipped, [*inside, far], rtol=1e-15)
        assert mechanism.check(clipped) is not None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Laplace(0.0, 1.0), "sensitivity must be a finite number > 0, got 0.0"),
        (lambda: Laplace(1.0, -1.0), "epsilon0 must be a finite number > 0, got -1.0"),
        (lambda: Laplace(1.0, 1.0, dimension=0), "dimension must be a whole number ≥ 1, got 0"),
        (lambda: Laplace.interval(2.0, 2.0, 1.0), r"low < high, got \[2.0, 2.0\]"),
        (lambda: Gaussian(float("inf")), "sigma must be a finite number > 0, got inf"),
        (lambda: Gaussian.calibrated(1.0, 0.0), "delta0 must lie in .0, 1., got 0.0; Gaussian noise is never pure DP"),
    ],
)
def test_refuses_parameters(make, message):
    with pytest.raises(InvalidValue, match=message):
        make()


@pytest.mark.parametrize(
    ("mechanism", "values", "message"),
    [
        (Laplace.interval(0, 1, 1.0), [0.5, 1.5], r"row 1 of values is 1.5, outside \[0, 1\]; clip"),
        (Laplace.interval(0, 1, 1.0), [0.5, float("nan")], "row 1 of values is not finite: nan"),
        (Laplace(1.0, 1.0, dimension=2), [[0.3, 0.3]], r"row 0 of values lies 0.6 from 0 in L1 norm, .* Δ/2 = 0.5"),
        (Gaussian(1.0, dimension=2), [[0, 0], [0.4, 0.4]], "row 1 of values lies 0.565685 from 0 in L2 norm"),
        (Gaussian(1.0, dimension=2), [[0.0, 0.0, 0.0]], r"\(2,\) per user, got an array of shape \(1, 3\)"),
        (Gaussian(1.0), ["a"], "values must be numbers"),
        (Gaussian(1.0, dimension=2), [[1.0], [1.0, 2.0]], "rows differ in length"),
        (Gaussian(1.0), [], "empty"),
    ],
)
def test_refuses_values(mechanism, values, message):
    with pytest.raises(InvalidValue, match=message):
        mechanism.randomize(values, np.random.default_rng(0))


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def test_scales_are_rounded_up():
    """Scales, probabilities of other answers and their losses, with 60 digits: never less, and by some units at most."""
    unit = 2.0**-53
    with mpmath.workdps(60):
        for epsilon0 in np.linspace(0.1, 6.0, 60).tolist():
            e = mpmath.mpf(epsilon0)
            flip = 4 / (mpmath.exp(e) + 4)
            assert 1 <= mpmath.mpf(RandomizedResponse(5, epsilon0).flip) / flip <= 1 + 16 * unit
            for encoding, half in (("symmetric", e / 2), ("optimised", e)):
                other = 1 / (mpmath.exp(half) + 1)
                assert 1 + 8 * unit <= mpmath.mpf(UnaryEncoding(5, epsilon0, encoding).other) / other <= 1 + 24 * unit
            # a value may lie outside the ball by 10⁻¹² of its radius and centre, on either side
            scale = (2 + 2 * mpmath.mpf(1e-12) * (1 + 3)) / e
            laplace = Laplace(2.0, epsilon0, centre=3.0)
            assert 1 + 4 * unit <= mpmath.mpf(laplace.scale) / scale <= 1 + 12 * unit
            at, found = laplace.curve.epsilons[:-1], laplace.curve.deltas[:-1]
            for eps, delta in zip(at[::97].tolist(), found[::97].tolist(), strict=True):
                exact = -mpmath.expm1((mpmath.mpf(eps) - e) / 2)
                assert 2 * unit * epsilon0 <= mpmath.mpf(delta) - exact <= 16 * unit * (1 + epsilon0)
        for rate, shift in ((Fraction(1, 3), 5), (Fraction(2, 7), 9), (Fraction(1), 4)):
            r = mpmath.mpf(rate.numerator) / rate.denominator
            for eps in (0.0, 0.2, 0.9):
                lost = min(
                    (mpmath.exp(-r * (m + 1)) + mpmath.exp(eps - r * (shift - m))) / (1 + mpmath.exp(-r))
                    for m in range(shift)
                )
                above = mpmath.mpf(float(DiscreteLaplace(rate).shift_delta(shift, [eps])[0])) - (1 - lost)
                assert 4 * unit * (2 + r * shift) * lost <= above <= 12 * unit * (2 + r * shift) * lost + 4 * unit
        for variance in (1, 7, 10**6):
            assert 1 <= mpmath.mpf(rounding_distance(variance)) * 24 * variance <= 1 + 16 * unit
        for sigma in (0.7, 1.3):
            exact = (Fraction(sigma) * 6 / Fraction(1.1)) ** 2
            assert exact <= GridGaussian(sigma, 1.1, steps=6).variance < exact + 1
        for numerator in range(10**6 + 1, 10**6 + 60):
            exact = mpmath.log(mpmath.mpf(numerator) / 10**6)
            assert 1 + 4 * unit <= mpmath.mpf(log_ratio_up(numerator, 10**6)) / exact <= 1 + 12 * unit
