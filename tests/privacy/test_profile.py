"""Profiles: interpolation from above, inverses, and composition that is never below the truth and hardly above.

Proof: docs/proofs/privacy.md#loss-distributions.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import GaussianCurve, ProfileCurve, RenyiCurve, compose
from netdp.privacy.losses import LossGrid

quick = settings(deadline=None, max_examples=60)  # machines are shared: no deadline


def response(epsilon0, k=2):
    """k-ary randomized response as a profile: one event, so a single chord."""
    total = math.exp(epsilon0) + k - 1
    return ProfileCurve([0.0, epsilon0], [math.expm1(epsilon0) / total, 0.0])


def binomial_delta(epsilon0, times, epsilon):
    """Exact δ of randomized response (binary) repeated, in 60 digits."""
    mp = pytest.importorskip("mpmath")
    with mp.workdps(60):
        e0, e = mp.mpf(epsilon0), mp.mpf(float(epsilon))
        p = mp.exp(e0) / (1 + mp.exp(e0))
        return mp.fsum(
            mp.binomial(times, j) * p**j * (1 - p) ** (times - j) * max(0, 1 - mp.exp(e - (2 * j - times) * e0))
            for j in range(times + 1)
        )


@quick
@given(st.floats(0.05, 4), st.integers(2, 60), st.floats(0, 15), st.floats(1e-9, 0.9))
def test_never_below_the_exact_profile(mu, points, epsilon, delta):
    exact = GaussianCurve(mu)
    curve = ProfileCurve.of(exact, np.linspace(0, 10, points))
    assert curve.delta(epsilon) >= exact.delta(epsilon) * (1 - 1e-11)
    assert curve.epsilon(delta) >= exact.epsilon(delta) * (1 - 1e-11) - 1e-12


def test_the_chord_is_exact_where_the_profile_is_one():
    curve = response(1.0)
    p = math.exp(1) / (1 + math.exp(1))
    for epsilon in np.linspace(0, 1, 17):
        assert curve.delta(epsilon) == pytest.approx(p - math.exp(epsilon) * (1 - p), abs=1e-15)
        assert curve.delta(epsilon) >= p - math.exp(epsilon) * (1 - p) - 1e-15


@quick
@given(st.floats(0.2, 3), st.floats(1e-8, 0.9))
def test_round_trip(mu, delta):
    curve = ProfileCurve.of(GaussianCurve(mu), np.linspace(0, 30, 100))
    epsilon = curve.epsilon(delta)
    if np.isfinite(epsilon):
        assert curve.delta(epsilon) <= delta * (1 + 1e-12)
    if 1e-9 < epsilon < np.inf:
        assert curve.delta(epsilon * (1 - 1e-9)) > delta * (1 - 1e-12)


def test_shapes_and_edges():
    deltas = [[0.5, 0.1, 0.0], [0.5, 0.2, 0.1], [np.nan] * 3]
    curve = ProfileCurve([0.0, 1.0, 2.0], deltas)
    assert curve.shape == (3,)
    np.testing.assert_array_equal(curve.epsilon(0.0), [2, np.inf, np.nan])
    np.testing.assert_array_equal(curve.epsilon(0.5), [0, 0, np.nan])
    np.testing.assert_array_equal(curve.epsilon(0.1), [1, 2, np.nan])
    np.testing.assert_array_equal(curve.delta(1.0), [0.1, 0.2, np.nan])
    np.testing.assert_array_equal(curve.delta(np.inf), [0, 0.1, np.nan])
    np.testing.assert_array_equal(curve.delta(99.0), [0, 0.1, np.nan])
    assert curve.delta(np.zeros((2, 3))).shape == (2, 3)
    single = ProfileCurve([0.0], [0.25])
    assert single.epsilon(0.3) == 0
    assert single.epsilon(0.2) == np.inf
    assert single.delta(5.0) == 0.25
    wide = ProfileCurve([0.0, 5000.0], [1.0, 0.0])  # gaps beyond e^709
    assert 0 <= wide.delta(4000.0) <= 1
    assert wide.epsilon(0.5) == pytest.approx(5000 - math.log(2), abs=1e-9)
    assert isinstance(single.delta(5.0), float)


@pytest.mark.parametrize("times", [2, 7, 40])
def test_composed_randomized_response_is_exact(times):
    curve = response(0.3).self_compose(times)
    for j in range(curve.epsilons.size - 1):
        truth = binomial_delta(0.3, times, curve.epsilons[j])
        assert truth <= curve.deltas[j] <= float(truth) * (1 + 1e-9) + 1e-25
    assert curve.epsilon(0.0) == pytest.approx(0.3 * times, rel=1e-11)  # pure DP stays pure
    assert curve.epsilon(0.0) >= 0.3 * times


@pytest.mark.parametrize(("mu", "times"), [(0.1, 30), (0.5, 4)])
def test_composed_gaussian_holds_and_is_tight(mu, times):
    """30 and 4 views: by transforms, tilted; the error that is left comes from the chords of the given points."""
    one = GaussianCurve(mu)
    curve = ProfileCurve.of(one, np.linspace(0, float(one.epsilon(1e-18)), 2500)).self_compose(times)
    exact = one.self_compose(times)
    for delta in (0.1, 1e-3, 1e-6, 1e-9, 1e-12):
        assert exact.epsilon(delta) <= curve.epsilon(delta) <= exact.epsilon(delta) * (1 + 2e-5)
    for epsilon in np.linspace(0, float(exact.epsilon(1e-14)), 40):
        assert curve.delta(epsilon) >= exact.delta(epsilon) * (1 - 2e-12)


def test_two_different_profiles_against_dp_accounting():
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = 1e-3
    rr = pld.from_randomized_response(2 / (1 + math.exp(1.0)), 2, value_discretization_interval=step)
    gauss = pld.from_gaussian_mechanism(2.0, value_discretization_interval=step)
    theirs = rr.compose(gauss)
    profile = ProfileCurve.of(GaussianCurve(0.5), np.arange(5000) * step)
    ours = response(1.0).compose(profile, discretization=step)
    swapped = profile.compose(response(1.0), discretization=step)
    for delta in (1e-2, 1e-4, 1e-6):
        assert ours.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-5)
        assert swapped.epsilon(delta) == pytest.approx(ours.epsilon(delta), rel=1e-10)
    # and never below the exact value: δ(ε) = E over the response of the Gaussian's δ at ε minus its loss
    p = math.exp(1) / (1 + math.exp(1))
    for epsilon in (1.5, 2.0, 3.0):
        exact = p * GaussianCurve(0.5).delta(epsilon - 1) + (1 - p) * GaussianCurve(0.5).delta(epsilon + 1)
        assert exact * (1 - 2e-12) <= ours.delta(epsilon) <= exact * (1 + 1e-4)


@quick
@given(st.data())
def test_composition_bounds_any_mechanism_under_the_points(data):
    """Random pairs of laws on four outcomes, their exact profiles loosened at random points, composed by hand."""

    def pair():
        weights = st.lists(st.integers(1, 20), min_size=4, max_size=4)
        p, q = (np.array(data.draw(weights), dtype=float) for _ in range(2))
        return p / p.sum(), q / q.sum()

    def profile(p, q, epsilon):
        gamma = np.exp(epsilon)
        return max(np.maximum(p - gamma * q, 0).sum(), np.maximum(q - gamma * p, 0).sum())

    curves, laws = [], []
    for _ in range(2):
        p, q = pair()
        eps = np.array([0.0, *sorted(data.draw(st.sets(st.floats(0.05, 3), min_size=1, max_size=5)))])
        loose = [data.draw(st.floats(0, 0.1)) for _ in eps]
        deltas = np.array([min(1.0, profile(p, q, e) + x) for e, x in zip(eps, loose, strict=True)])
        curves.append(ProfileCurve(eps, np.minimum.accumulate(deltas)))
        laws.append((p, q))
    composed = curves[0].compose(curves[1], discretization=0.01)
    (p1, q1), (p2, q2) = laws
    for flip in (False, True):
        other = (q2, p2) if flip else (p2, q2)  # the second view may lean the other way
        p, q = np.outer(p1, other[0]).ravel(), np.outer(q1, other[1]).ravel()
        for epsilon in np.linspace(0, 6, 25):
            assert composed.delta(epsilon) >= profile(p, q, epsilon) - 1e-15
    swapped = curves[1].compose(curves[0], discretization=0.01)
    np.testing.assert_allclose(swapped.delta(composed.epsilons), composed.deltas, rtol=1e-9, atol=1e-12)


def test_composition_of_approximate_dp_is_optimal():
    """(ε, δ)-DP twice: Kairouz, Oh, Viswanath (2015), Theorem 3.3 at k = 2, i = 0 and 1."""
    e, d = 0.7, 1e-3
    composed = ProfileCurve([0.0, e], [d + (1 - d) * math.tanh(e / 2), d]).self_compose(2)
    keep = (1 - d) ** 2
    assert composed.delta(2 * e) == pytest.approx(1 - keep, rel=1e-9)
    middle = (math.exp(2 * e) - 1) / (1 + math.exp(e)) ** 2
    assert composed.delta(0.0) == pytest.approx(1 - keep * (1 - middle), rel=1e-9)


def test_rows_compose_apart():
    rows = ProfileCurve([0.0, 1.0], [[0.4, 0.0], [np.nan, np.nan], [0.3, 0.1]])
    twice = rows.self_compose(2)
    assert twice.shape == (3,)
    assert np.isnan(twice.epsilon(0.3)[1])
    alone = ProfileCurve([0.0, 1.0], [0.4, 0.0]).self_compose(2)
    assert twice.epsilon(0.05)[0] == pytest.approx(alone.epsilon(0.05), rel=1e-9)
    paired = rows.compose(ProfileCurve([0.0, 1.0], [0.4, 0.0]))
    assert paired.epsilon(0.05)[0] == pytest.approx(alone.epsilon(0.05), rel=1e-9)
    assert rows.self_compose(1) is rows


def test_degenerate_profiles_compose():
    nothing, everything = ProfileCurve([0.0], [0.0]), ProfileCurve([0.0], [1.0])
    assert nothing.self_compose(5).delta(0.0) == 0
    assert everything.self_compose(2).delta(9.0) == 1
    assert ProfileCurve([0.0], [0.1]).self_compose(2).delta(3.0) == pytest.approx(0.19)
    assert nothing.compose(response(0.5)).epsilon(0.01) == pytest.approx(response(0.5).epsilon(0.01), rel=1e-9)
    huge = ProfileCurve([0.0, 1.0, 900.0], [0.5, 0.2, 0.0]).self_compose(2)  # the last point is beyond e^600
    assert huge.delta(2.0) == pytest.approx(0.36, rel=1e-9)
    assert huge.epsilon(0.0) == pytest.approx(1800)


def test_tilting_changes_nothing_but_accuracy():
    grid = LossGrid.from_profile(np.array([0.0, 0.5, 1.0]), np.array([0.2, 0.05, 0.0]), 0.01)
    assert grid.masses.sum() + grid.infinite == pytest.approx(1)
    plain, tilted = grid.power(8), grid.tilted(3.0).power(8)
    np.testing.assert_allclose(tilted.deltas(600), plain.deltas(600), rtol=1e-8, atol=1e-25)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ProfileCurve([0.1, 1.0], [0.5, 0.1]), r"start at 0, got 0\.1"),
        (lambda: ProfileCurve([0.0, 0.0], [0.5, 0.1]), "strictly increasing"),
        (lambda: ProfileCurve([0.0, np.inf], [0.5, 0.1]), "finite"),
        (lambda: ProfileCurve([0.0, 1.0], [0.1, 0.5]), "must not increase"),
        (lambda: ProfileCurve([0.0, 1.0], [1.5, 0.5]), r"\[0, 1\], got 1\.5"),
        (lambda: ProfileCurve([0.0, 1.0], [0.5]), "one per epsilon"),
        (lambda: ProfileCurve([0.0, 1.0], [0.5, np.nan]), "nan everywhere"),
        (lambda: response(1.0).self_compose(2, discretization=0.0), "discretization must be"),
        (lambda: response(1.0).self_compose(2, discretization=1e-12), "take at least"),
        (lambda: response(1.0).self_compose(1.5), r"1\.5"),
        (lambda: compose(), "at least one"),
        (lambda: compose(1.0), "takes curves"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(InvalidValue, match=match):
        call()


def test_what_does_not_mix_says_so():
    with pytest.raises(Unsupported, match=r"ProfileCurve\.of"):
        compose(GaussianCurve(1.0), response(1.0))
    with pytest.raises(Unsupported, match=r"ProfileCurve\.of"):
        compose(response(1.0), RenyiCurve.linear(0.1), GaussianCurve(1.0))
    with pytest.raises(Unsupported, match=r"ProfileCurve\.of"):
        response(1.0).compose(GaussianCurve(1.0))
    with pytest.raises(Unsupported, match="epsilon"):
        response(1.0).rdp(2.0)


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def test_chords_are_rounded_up():
    """Between two points δ is a chord in e^ε: both ways, with 40 digits, never less."""
    rng = np.random.default_rng(3)
    for _ in range(150):
        start, end = np.sort(rng.uniform(0.1, 3.0, 2)).tolist()
        low, high = np.sort(rng.uniform(0.01, 0.3, 2)).tolist()
        curve = ProfileCurve([0.0, start, end], [0.9, high, low])
        asked, wanted = rng.uniform(start, end), rng.uniform(low, high)
        with mpmath.workdps(40):
            a, b, x, y = mpmath.exp(start), mpmath.exp(end), mpmath.mpf(low), mpmath.mpf(high)
            exact = (y * (b - mpmath.exp(asked)) + x * (mpmath.exp(asked) - a)) / (b - a)
            assert 1 <= mpmath.mpf(float(curve.delta(asked))) / exact <= 1 + mpmath.mpf(1e-12)
            exact = mpmath.log(a + (y - mpmath.mpf(wanted)) / (y - x) * (b - a))
            assert 1 <= mpmath.mpf(float(curve.epsilon(wanted))) / exact <= 1 + mpmath.mpf(1e-12)


def test_what_a_grid_of_losses_adds_is_as_printed():
    """δ·(1 + relative) + infinite·(1 + 8u) + 1.001·absolute; a composition adds 2u for every product, and 2.5 tails."""
    unit = 2.0**-53
    nothing = LossGrid(0.1, 0, np.array([1.0]), 0.25, 0.0)
    assert nothing.deltas(3).tolist() == [0.25 * (1 + 8 * unit)] * 3
    unsure = LossGrid(0.1, 0, np.array([1.0]), 0.0, 0.0, absolute=1e-5)
    assert unsure.deltas(3) == pytest.approx(1.001e-5, rel=1e-12, abs=0.0)
    one = LossGrid(0.1, 0, np.array([0.5, 0.5]), 0.0, 1e-3)
    assert one.deltas(1)[0] == pytest.approx(0.5 * -math.expm1(-0.1) * (1 + 1e-3), rel=1e-12, abs=0.0)
    light = LossGrid(0.1, -1, np.array([1e-20, 1.0, 1e-20]), 0.1, 1e-10, absolute=1e-29)
    both = light.compose(light)
    assert both.masses.size < 5
    assert both.absolute == pytest.approx(2e-29 + 2.5e-30, rel=1e-12, abs=0.0)
    assert both.relative - 2e-10 == pytest.approx(2 * unit * 3, rel=1e-6, abs=0.0)
    assert both.infinite == pytest.approx(1 - 0.9**2, rel=1e-15, abs=0.0)


def test_composed_points_are_stretched():
    """A loss is a multiple of the step up to rounding: δ is stated at an ε that is larger by a relative 10⁻¹²."""
    curve = ProfileCurve([0.0, 0.5, 1.0], [0.3, 0.1, 0.01])
    both = curve.compose(curve, discretization=2.0**-7)
    for i in (1, 5, 100):
        assert float(both.epsilons[i]) / (i * 2.0**-7) - 1 == pytest.approx(1e-12, rel=1e-3, abs=0.0)
