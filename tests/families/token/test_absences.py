"""Walks over users some of whom are away (docs/proofs/token.md#walk-absences): all paths of short walks enumerated."""

import functools
import itertools

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.families.token.account.absences import told_profile
from netdp.families.token.walk import WalkHistogram, WalkSum
from netdp.privacy import gaussian_delta
from netdp.protocols.accounting import account

U, O = 0, 1  # noqa: E741  the target and the observer; all others are others
EPS = np.array([0.0, 0.2, 0.5, 1.0, 2.0])


def energy(path):
    """Σ k²/m over the stretches between visits of O, written from the definition."""
    total, k, m = 0.0, 0, 0
    for user in [*path, O]:
        if user == O:
            total += k * k / m if k else 0.0
            k = m = 0
        else:
            k, m = k + (user == U), m + 1
    return total


@functools.cache
def told(value, mu):
    return np.asarray(gaussian_delta(np.sqrt(value) * mu, EPS)) if value else np.zeros(len(EPS))


def mean_delta(n, steps, mu, move):
    """E[δ given the path]; `move(path)` is the law of the next user given the path so far."""
    paths = {(): 1.0}
    for _ in range(steps):
        after = {}
        for path, chance in paths.items():
            for user, share in enumerate(move(path)):
                if share:
                    after[*path, user] = after.get((*path, user), 0.0) + chance * share
        paths = after
    assert sum(paths.values()) == pytest.approx(1.0)
    return sum(chance * told(energy(path), mu) for path, chance in paths.items())


def uniform_without(n, away):
    law = np.array([0.0 if user in away else 1.0 for user in range(n)])
    return law / law.sum()


def skipping(n, policy):
    """The next holder is uniform among those who are not away; the holder itself never is."""

    def move(path):
        away = set(policy(path)) - set(path[-1:])
        return uniform_without(n, away if path else set())  # the first is drawn from the roster

    return move


def policies(n, absent):
    """Who is away, by the path so far: nobody, always the same, whoever makes u or O likelier after certain paths, by chance."""
    others = [user for user in range(n) if user not in (U, O)]
    yield lambda path: ()
    yield lambda path: others[:absent]
    yield lambda path: others[-absent:] if path and path[-1] == U else [U]
    yield lambda path: [user for user in others if user not in path[-1:]][:absent]
    yield lambda path: [O] if len(path) % 2 else others[:absent]
    for seed in range(4):

        def by_chance(path, seed=seed):
            rng = np.random.default_rng([seed, *path, len(path)])
            return rng.choice(n, size=absent, replace=False).tolist()

        yield by_chance


@pytest.mark.parametrize(("n", "absent", "steps"), [(4, 1, 5), (5, 1, 5), (5, 2, 5)])
def test_absences_that_react_to_the_path_lose_no_more_than_fewer_users(n, absent, steps):
    for mu in (0.3, 1.0):
        bound = mean_delta(n - absent, steps, mu, lambda path: uniform_without(n - absent, ()))
        found = [mean_delta(n, steps, mu, skipping(n, policy)) for policy in policies(n, absent)]
        for one in found:
            assert (one <= bound * (1 + 1e-12)).all()
        # attained if the same others are away all the time, from the first step on
        always = mean_delta(n, steps, mu, lambda path: uniform_without(n, range(n - absent, n)))
        np.testing.assert_allclose(always, bound, rtol=1e-9)


def test_absences_that_react_to_being_asked_break_the_bound():
    """If an asked user goes away unless it is u or O, these two are reached more often than 1/(n − a): that is not covered."""
    n, absent, steps, mu = 4, 1, 5, 0.5

    def move(path):
        here = path[-1] if path else None
        law = np.zeros(n)
        for first in range(n):
            if first in (U, O, here) or not path:
                law[first] += 1 / n
            else:  # it goes away, and one of the other three is asked
                law += uniform_without(n, {first}) / n
        return law

    bound = mean_delta(n - absent, steps, mu, lambda path: uniform_without(n - absent, ()))
    assert (mean_delta(n, steps, mu, move) > bound)[:4].all()


@pytest.mark.parametrize(("n", "colluders", "steps", "sigma"), [(3, 1, 7, 2.0), (4, 2, 6, 1.0)])
def test_what_is_certified_lies_above_the_mean_over_all_labels_and_not_far(n, colluders, steps, sigma):
    exact = np.zeros(len(EPS))
    chances = {U: 1 / n, O: colluders / n, 2: (n - 1 - colluders) / n}
    for labels in itertools.product(chances, repeat=steps):
        chance = np.prod([chances[label] for label in labels])
        exact += chance * told(energy(labels), 1 / sigma)
    p = WalkSum(n, steps, sigma=sigma)
    found = np.asarray(told_profile(p, colluders).delta(EPS))
    assert (found >= exact).all()
    energies = {}
    for labels in itertools.product(chances, repeat=steps):
        value = round(energy(labels), 12)
        energies[value] = energies.get(value, 0.0) + np.prod([chances[label] for label in labels])
    for aim, close in ((1e-3, 1.25), (1e-5, 1.25)):
        # the exact mixture over energies: a bisection on the mean of Gaussian profiles
        low, high = 0.0, 50.0
        for _ in range(30):
            middle = (low + high) / 2
            total = sum(w * float(gaussian_delta(np.sqrt(e) / sigma, middle)) for e, w in energies.items() if e)
            low, high = (middle, high) if total > aim else (low, middle)
        assert high <= float(told_profile(p, colluders).epsilon(aim)) * (1 + 1e-9)
        assert float(told_profile(p, colluders).epsilon(aim)) <= close * high


def test_more_absences_and_more_colluders_lose_more():
    for p in (WalkSum(12, 60, sigma=8.0), WalkSum(12, 60, sigma=8.0, grid=2.0**-6, tokens=2),
              WalkHistogram(12, 60, domain=3, gamma=0.7)):  # fmt: skip
        found = [float(told_profile(p, 1, absent).epsilon(1e-5)) for absent in (0, 1, 3)]
        assert found == sorted(found)
        assert found[0] < found[2]
        assert float(told_profile(p, 3).epsilon(1e-5)) >= found[0] * (1 - 1e-9)


def test_fewer_users_told_is_what_is_computed():
    p = WalkSum(12, 60, sigma=8.0)
    assert told_profile(p, 2, 3).epsilon(1e-6) == told_profile(p.replace(n=9), 2).epsilon(1e-6)
    # near to what is certified with the secrecy of the path, for sums
    assert float(told_profile(p, 1).epsilon(1e-6)) < 1.15 * account(p, [0]).worst_epsilon(1e-6)


def test_histograms_against_the_composition_of_what_a_path_shows():
    """n = 3, four steps: u's responses, each among those that follow it, composed and averaged over all paths."""
    from netdp.families.token.account.ring import heap_profile
    from netdp.privacy.profile import composed

    p, n, steps = WalkHistogram(3, 4, domain=2, gamma=0.6), 3, 4
    exact = np.zeros(len(EPS))
    for path in itertools.product(range(n), repeat=steps):
        parts = []
        for t, user in enumerate(path):
            if user == U:
                later = itertools.takewhile(lambda v: v not in (U, O), path[t + 1 :])
                parts.append((heap_profile(len(list(later)), 0, 2, 0.6), 1))
        if parts:
            exact += np.asarray(composed(parts).delta(EPS)) / n**steps
    found = np.asarray(told_profile(p, 1).delta(EPS))
    assert (found >= exact * (1 - 1e-6))[exact > 1e-9].all()


def test_bad_input():
    with pytest.raises(InvalidValue, match="cannot collude"):
        told_profile(WalkSum(4, 8, sigma=1.0), 3, 1)
    with pytest.raises(InvalidValue, match="complete graph"):
        told_profile(WalkSum(4, 8, sigma=1.0, weights=[1, 1, 1, 2]), 1)
