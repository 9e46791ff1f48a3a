"""Known ends hidden in openings: docs/proofs/token.md#known-ends."""

import functools
import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import netdp
from netdp.errors import InvalidValue
from netdp.families.token.account import openings, walk
from netdp.families.token.account.events import Shift, block, compose_events, gaussian, sampled
from netdp.families.token.account.openings import _cover, known_responses
from netdp.protocols import WalkHistogram

_spec = importlib.util.spec_from_file_location("walk_brute", Path(__file__).with_name("walk_brute.py"))
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)

EPS = np.linspace(0.0, 4.0, 17)


def truth(n, steps, domain, gamma, sender, release):
    views = [
        brute.whole_view(steps, 1 / n, brute.heap_stretch(others, own, 1 - own, domain, gamma), sender, release)
        for others in itertools.combinations_with_replacement(range(domain), n - 2)
        for own in (0, 1)
    ]
    return np.max([brute.delta(pair, EPS) for pair in views], axis=0)


@pytest.mark.parametrize(
    ("n", "steps", "size", "sender", "release"),
    [
        (4, 9, 2, "receiver-known", "anonymous"),
        (4, 9, 3, "known", "named"),
        (3, 8, 4, "known", "named"),
        (5, 8, 3, "known", "anonymous"),
    ],
)
@pytest.mark.parametrize("gamma", [0.3, 0.7])
def test_openings_cover_all_walks(n, steps, size, sender, release, gamma):
    """All paths and responses enumerated; short openings, so that steps, openings and the ending all occur."""
    known = 2 if release == "named" or sender == "known" else 1
    p = WalkHistogram(n, steps, domain=2, gamma=gamma, sender=sender, release=release)
    q, w = 1 / (n - 1), 1 / n
    local = netdp.privacy.ProfileCurve([0.0, p.epsilon0], [1 - gamma, 0.0])
    hides = functools.partial(_cover, 2, gamma, "k-ary")
    events, lost = openings.pieces(hides, sampled(local.delta, q), q, w, steps, size, known, known)
    assert len(events) == 4
    curve = compose_events(events, lost)
    assert (np.asarray(curve.delta(EPS)) >= truth(n, steps, 2, gamma, sender, release) - 1e-12).all()


@pytest.mark.parametrize(("sender", "release"), [("known", "named"), ("receiver-known", "anonymous")])
def test_the_protocol_is_covered(sender, release):
    p = WalkHistogram(4, 8, domain=3, gamma=0.5, sender=sender, release=release)
    found = np.asarray(known_responses(p, 1 / 3, 1 / 4).delta(EPS))
    assert (found >= truth(4, 8, 3, 0.5, sender, release) - 1e-12).all()


def test_leaving_out_the_openings_would_be_wrong():
    """Single steps alone, as for hidden senders, are below the truth: the known ends must be paid for."""
    p = WalkHistogram(6, 6, domain=2, gamma=0.3, sender="known")
    hidden = netdp.account(p.replace(sender="hidden", release="anonymous"), [0]).curve.curves
    exact = truth(6, 6, 2, 0.3, "known", "named")
    assert (np.asarray(hidden.delta(EPS)) < exact).any()
    assert (np.asarray(known_responses(p, 1 / 5, 1 / 6).delta(EPS)) >= exact).all()


def test_secrecy_is_worth_much_with_many_users():
    """The issue's example: 8.84 with the path told, 0.83 with hidden senders."""
    p = WalkHistogram(1000, 10_000, domain=2, gamma=0.5)
    q, w = 1 / 999, 1 / 1000
    hidden = walk.sampled_responses(p.replace(sender="hidden"), q, w)
    found = {"hidden": float(hidden.epsilon(1e-6)), "known": float(known_responses(p, q, w).epsilon(1e-6))}
    middle = float(known_responses(p.replace(sender="receiver-known", release="anonymous"), q, w).epsilon(1e-6))
    assert found["hidden"] < middle < found["known"]
    # the path told: 6.1. One response alone loses ln 3: some known end is all alone with probability about 10⁻⁵ · 2
    assert np.log(3) < found["known"] < 2 * np.log(3)


def test_more_users_make_it_smaller_and_more_observers_larger():
    few, many = (WalkHistogram(n, 10 * n, domain=2, gamma=0.6) for n in (101, 404))
    assert netdp.account(many, [0]).worst_epsilon(1e-6) < 0.6 * netdp.account(few, [0]).worst_epsilon(1e-6)
    assert netdp.account(few, [0]).worst_epsilon(1e-6) < netdp.account(few, [0, 1, 2]).worst_epsilon(1e-6)


def test_an_opening_must_hold_its_ends():
    with pytest.raises(InvalidValue, match="an opening of 2 steps does not hold 2 known ends"):
        openings.pieces(lambda j, m: np.exp, np.exp, 0.1, 0.1, 10, 2, 2, 2)


# ---- chains: a stretch that was short is followed by another one for certain


def short_ones(steps, q, w):
    """P(N = k), N the number of stretches of just one step that is u's."""
    laws = []
    for t in range(steps + 1):
        law = np.zeros(steps + 2)
        law[0] = (1 - w) ** t * (1 - q if t == 1 else 1)
        law[1] = (1 - w) ** t * (q if t == 1 else 0)
        for m in range(t):
            rest = w * (1 - w) ** m * laws[t - 1 - m]
            law += rest * (1 - q if m == 1 else 1)
            law[1:] += rest[:-1] * (q if m == 1 else 0)
        laws.append(law)
    return laws[-1]


@pytest.mark.parametrize(("q", "w", "steps"), [(0.9, 0.1, 40), (0.6, 0.1, 20), (0.3, 0.5, 12)])
def test_short_stretches_come_in_chains(q, w, steps):
    """Only stretches of one step reveal something, a binary response each. Where lengths and the number of stretches are
    taken as independent, the first two cases are five to nine times too small."""
    one = netdp.privacy.ProfileCurve([0.0, 1.0], [np.tanh(0.5), 0.0])

    def cover(j, m):
        return one.self_compose(j, 1.0).delta if m <= 1 else np.zeros_like

    eps = np.linspace(0.0, 12.0, 49)
    exact = sum(
        chance * np.array([_responses_delta(k, e) for e in eps])
        for k, chance in enumerate(short_ones(steps, q, w))
        if k
    )
    events, lost = openings.pieces(cover, np.zeros_like, q, w, steps, 2, 1, 1)
    told = exact > 1e-14
    assert told.sum() > 20
    assert (np.asarray(compose_events(events, lost).delta(eps))[told] >= exact[told]).all()


def _responses_delta(k, eps):
    """δ(ε) of k binary responses with ε₀ = 1."""
    ones = np.arange(k + 1)
    return float(np.sum(binom.pmf(ones, k, np.e / (1 + np.e)) * np.maximum(-np.expm1(eps - (2 * ones - k)), 0.0)))


# ---- Gaussian sums: the same cut


@pytest.mark.parametrize(("sender", "release", "known"), [("known", "named", 2), ("receiver-known", "anonymous", 1)])
@pytest.mark.parametrize("sigma", [0.7, 2.0])
def test_openings_cover_sums(sender, release, known, sigma):
    n, steps, size = 4, 7, 3
    views = [
        brute.whole_view(steps, 1 / n, brute.sum_stretch(others, own, 1 - own, sigma), sender, release)
        for others in ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0))
        for own in (0.0, 1.0)
    ]
    exact = np.max([brute.delta(pair, EPS) for pair in views], axis=0)
    shift = Shift(1 / sigma, 1 / sigma)

    def cover(j, m):
        return gaussian(j / (sigma * np.sqrt(m)) if m else np.sqrt(j) / sigma)

    events, lost = openings.pieces(cover, block(shift, 1 / 3, 1), 1 / 3, 1 / 4, steps, size, known, known)
    assert (np.asarray(compose_events(events, lost).delta(EPS)) >= exact - 1e-12).all()


def test_sums_gain_as_well():
    """Plain connections: 0.085 before, 0.058 with hidden senders."""
    first = walk.sum_bounds(netdp.WalkSum(100, 10_000, sigma=61.0))[0]
    assert 0.058 < float(first().epsilon(1e-6)) < 0.072
