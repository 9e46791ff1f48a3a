"""Composition of many small events: closed forms, public facts, and Google's accountant."""

import math

import numpy as np
import pytest

from netdp.families.token.account.events import Event, Shift, block, compose_events, gaussian, grid_step, least, mixture
from netdp.privacy import ProfileCurve, gaussian_delta, gaussian_epsilon

EPS = np.array([0.0, 0.1, 0.3, 1.0, 3.0])


@pytest.mark.parametrize(("mu", "times"), [(0.01, 10_000), (0.3, 25), (1.0, 4), (2.0, 1), (1e-4, 100)])
def test_gaussians_compose_to_a_gaussian(mu, times):
    curve = compose_events([Event(gaussian(mu), times)])
    total = mu * math.sqrt(times)
    for delta in (1e-2, 1e-6, 1e-10):
        exact = float(gaussian_epsilon(total, delta))
        assert exact <= float(curve.epsilon(delta)) <= 1.02 * exact + 1e-12
    exact = np.asarray(gaussian_delta(total, EPS))
    assert np.all(np.asarray(curve.delta(EPS)) >= exact * (1 - 1e-12))


def test_different_gaussians_compose():
    curve = compose_events([Event(gaussian(0.5), 4), Event(gaussian(0.05), 300), Event(gaussian(0.2), 0)])
    exact = float(gaussian_epsilon(math.sqrt(4 * 0.25 + 300 * 0.0025), 1e-6))
    assert exact <= float(curve.epsilon(1e-6)) <= 1.01 * exact


def randomized_response(epsilon0, times, eps):
    """δ of `times` binary responses: Σ_j C(k, j) p^j (1−p)^{k−j} (1 − e^{ε − (2j−k)ε₀})₊."""
    p = 1 / (1 + math.exp(-epsilon0))
    total = 0.0
    for j in range(times + 1):
        loss = (2 * j - times) * epsilon0
        if loss > eps:
            total += math.comb(times, j) * p**j * (1 - p) ** (times - j) * -math.expm1(eps - loss)
    return total


@pytest.mark.parametrize(("epsilon0", "times"), [(1.0, 5), (0.1, 50), (2.0, 1)])
def test_randomized_responses_compose(epsilon0, times):
    def profile(eps):
        return np.maximum(math.exp(epsilon0) - np.exp(eps), 0) / (1 + math.exp(epsilon0))

    curve = compose_events([Event(profile, times)])
    for eps in EPS:
        exact = randomized_response(epsilon0, times, eps)
        assert exact - 1e-15 <= float(curve.delta(eps)) <= 1.05 * exact + 1e-4


def test_a_public_fact_is_averaged():
    """Each occurrence tells first whether it is a large one or none at all: the number of large ones is binomial."""
    chance, mu, times = 0.3, 0.8, 12
    curve = compose_events([Event(mixture(np.array([mu]), np.array([chance])), times)])
    k = np.arange(times + 1)
    weights = [math.comb(times, int(i)) * chance**i * (1 - chance) ** (times - i) for i in k]
    for eps in EPS:
        exact = float(np.asarray(gaussian_delta(mu * np.sqrt(k), eps)) @ weights)
        assert exact * (1 - 1e-12) <= float(curve.delta(eps)) <= 1.03 * exact + 1e-12


def test_what_cannot_be_told_is_added():
    plain = compose_events([Event(gaussian(0.5), 3)])
    raised = compose_events([Event(gaussian(0.5), 3)], extra=1e-3)
    assert np.asarray(raised.delta(EPS)) == pytest.approx(np.asarray(plain.delta(EPS)) + 1e-3)
    assert float(raised.epsilon(1e-4)) == math.inf
    nothing = compose_events([], extra=0.25)
    assert float(nothing.delta(0.0)) == 0.25
    assert float(compose_events([Event(gaussian(1.0), 0)]).delta(0.0)) == 0.0


def test_losses_without_bound_count_as_infinite():
    """A profile that stays above a constant keeps it, once per occurrence."""
    curve = compose_events([Event(lambda eps: np.full(np.shape(eps), 0.01), 3)])
    assert float(curve.delta(100.0)) == pytest.approx(1 - 0.99**3, rel=1e-9)


def test_least_takes_the_lower_curve_at_every_point():
    one, two = ProfileCurve([0.0, 1.0], [0.5, 0.0]), ProfileCurve([0.0, 0.5, 2.0], [0.4, 0.3, 0.1])
    both = least([one, two])
    points = both.epsilons
    assert points.tolist() == [0.0, 0.5, 1.0, 2.0]
    assert np.asarray(both.delta(points)) == pytest.approx(np.minimum(one.delta(points), two.delta(points)))
    assert float(both.delta(0.0)) == 0.4
    assert float(both.delta(1.5)) == 0.0


def test_the_least_of_bounds_on_a_profile_is_a_bound_everywhere():
    """Chords between the least values lie below both curves, but never below what both bound."""
    eps = np.linspace(0, 5, 200)
    coarse = [ProfileCurve(e, np.asarray(gaussian_delta(1.0, e))) for e in ([0.0, 1.0, 3.0], [0.0, 0.5, 2.0, 4.0])]
    assert np.all(np.asarray(least(coarse).delta(eps)) >= np.asarray(gaussian_delta(1.0, eps)) * (1 - 1e-9))


def test_a_finer_grid_costs_no_more_than_stated():
    events = [Event(gaussian(0.02), 1000)]
    step = grid_step(events)
    assert events[0].times * events[0].spread(step) <= 0.0101 * events[0].times * events[0].variance
    assert events[0].variance == pytest.approx(0.02**2, rel=0.02)
    assert events[0].repeated(3).times == 3000


@pytest.mark.parametrize(("sigma", "q", "times"), [(3.0, 0.2, 50)])
def test_sampled_gaussians_are_not_below_google_s(sigma, q, times):
    """Poisson sampling, adding or removing u: a case of replacement, in which all others contribute the same."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    curve = compose_events([Event(block(Shift(1 / sigma, 1 / sigma), q, 1), times)])
    low, high = (
        pld.from_gaussian_mechanism(
            sigma, sampling_prob=q, pessimistic_estimate=pessimistic, use_connect_dots=pessimistic
        ).self_compose(times)
        for pessimistic in (False, True)
    )
    for delta in (1e-3, 1e-6):
        ours = float(curve.epsilon(delta))
        assert low.get_epsilon_for_delta(delta) <= ours
        # ours holds for others that contribute anything, and for both directions in every step
        assert ours <= 1.25 * high.get_epsilon_for_delta(delta)
    # both directions at once
    assert float(curve.delta(0.3)) >= low.get_delta_for_epsilon(0.3)
