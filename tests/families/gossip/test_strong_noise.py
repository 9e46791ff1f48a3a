"""Noise that floating point cannot follow: bounded by weaker noise, never below the truth, and the reason is named.

Proof: docs/proofs/gossip.md#masks and #refresh.
"""

from fractions import Fraction

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.gossip.account import exact as gossip
from netdp.families.gossip.account import krylov
from netdp.families.gossip.account import krylov as wide
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.search import revealed
from netdp.families.gossip.views import GossipView
from netdp.protocols import GossipDescent
from netdp.protocols.accounting import account
from netdp.protocols.calibration import calibrate

KARATE = graphs.dataset("karate")


def reasons(loss):
    return [text for text in loss.assumptions if "floating point" in text or "too many" in text]


def excess(loss, exact):
    """How far every returned factor lies above the exact one, without rounding."""
    return np.array([float(Fraction(float(loss.factor[u])) - true) for u, true in exact.items()])


# --- the margin ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"refresh": 0.01}, {"refresh": 0.5, "masks": 0.25}, {"masks": 0.25}, {}])
@pytest.mark.parametrize("seed", range(5))
def test_slack_is_how_far_a_factor_may_lie_above_the_exact_one(settings, seed, random_graph, exact_factors):
    """Half of it was stated for refreshed gossip: 2m instead of (1 + 2m)² − 1."""
    graph = random_graph(8, seed)
    loss = account(Gossip(graph, rounds=3, sigma=1.0, **settings), [0])
    above = excess(loss, exact_factors(graph, 3, (0,), **{k: Fraction(v) for k, v in settings.items()}))
    assert loss.claim == "exact"
    assert (above >= -1e-16).all()
    assert above.max() <= loss.slack * (1 + 1e-3) + 1e-15  # what was computed is right within a few roundings
    large = loss.factor[1:].max() < 1 and (loss.factor[1:] > 0.5).any()
    if "refresh" in settings and large:
        assert above.max() > 0.5 * loss.slack  # and it is not overstated


def test_half_the_margin_would_be_too_little(exact_factors):
    graph = graphs.path(4)
    loss = account(Gossip(graph, rounds=3, sigma=1.0, refresh=0.01), [0])
    above = excess(loss, exact_factors(graph, 3, (0,), refresh=Fraction(0.01)))
    below_one = np.flatnonzero(loss.factor[1:] < 1)
    assert above[below_one].max() > 0.5 * loss.slack


# --- the reason ------------------------------------------------------------------------------------------------------


def test_weak_refresh_is_blamed_where_it_is_weak():
    loss = account(Gossip(graphs.ring(64), rounds=20, sigma=1.0, refresh=1e-20), 0)
    assert loss.claim == "upper"
    assert reasons(loss) == [
        "refresh r = 1e-20 too weak to resolve in floating point: evaluated as it is or without refresh, whichever is smaller; "
        "the loss only falls with κ and r"
    ]


def test_strong_masks_are_blamed_where_refresh_is_strong_enough():
    loss = account(Gossip(KARATE, rounds=10, sigma=1.0, refresh=1.0, masks=1e12), 5)
    (said,) = reasons(loss)
    assert said.startswith("masks κ = 1e+12 too strong for floating point: evaluated at masks κ = ")
    assert said.endswith("; the loss only falls with κ and r")
    assert "weak" not in said
    assert reasons(account(Gossip(KARATE, rounds=10, sigma=1.0, refresh=1.0), 5)) == []


def test_strong_refresh_is_blamed_where_it_is_too_strong():
    loss = account(Gossip(KARATE, rounds=6, sigma=1.0, refresh=1e30), 5)
    (said,) = reasons(loss)
    assert said.startswith("refresh r = 1e+30 too strong for floating point: evaluated at refresh r = ")
    moderate = account(Gossip(KARATE, rounds=6, sigma=1.0, refresh=1e6), 5)
    others = np.arange(34) != 5
    assert moderate.claim == "exact"
    assert (loss.factor[others] <= moderate.factor[others] + 1e-6).all()
    np.testing.assert_allclose(loss.factor[others], account(Gossip(KARATE, 1, 1.0), 5).factor[others], atol=1e-6)


def test_both_are_blamed_where_both_are_too_strong():
    (said,) = reasons(account(Gossip(KARATE, rounds=6, sigma=1.0, refresh=1e30, masks=1e30), 5))
    assert said.startswith(
        "masks κ = 1e+30 and refresh r = 1e+30 too strong for floating point: evaluated at masks κ = "
    )


def test_messages_are_blamed_where_no_noise_would_help(monkeypatch):
    protocol = Gossip(graphs.ring(8), rounds=4, sigma=1.0, refresh=1.0)
    exact = account(protocol, 0).factor[1:]
    monkeypatch.setattr(gossip, "EXACT_BELOW", 1e-16)
    loss = account(protocol, 0)
    (said,) = reasons(loss)
    assert said.startswith("8 messages are too many to follow the fresh noise through: ")
    assert loss.claim == "upper"
    np.testing.assert_allclose(loss.factor[1:], exact, rtol=1e-12)


# --- strong masks ----------------------------------------------------------------------------------------------------


def test_very_strong_masks_on_the_karate_club_give_the_curators_loss():
    """Observer 5 leaves 33 parties connected: 1/33 = .0303."""
    loss = account(Gossip(KARATE, rounds=40, sigma=1.0, masks=1e12), 5)
    assert loss.claim == "upper"
    assert 1 / 33 <= loss.worst <= 1.001 / 33
    assert any("evaluated at masks κ = " in text for text in loss.assumptions)


def test_weaker_masks_never_count_as_exact():
    """After three rounds hardly anything is left of the loss at κ = 1e12: what weaker masks give is a bound, far above it."""
    loss = account(Gossip(KARATE, rounds=3, sigma=1.0, masks=1e12), 5)
    assert loss.slack < gossip.EXACT_BELOW
    assert loss.worst > 1e-9
    assert loss.claim == "upper"


@pytest.mark.parametrize("masks", [1e12, 1e30, 1e300])
def test_very_strong_masks_on_a_ring(masks):
    loss = account(Gossip(graphs.ring(8), rounds=9, sigma=1.0, masks=masks), 0)
    assert loss.claim == "upper"
    assert (loss.factor[1:] >= 1 / 7).all()
    assert (loss.factor[1:] <= 1.001 / 7).all()


@pytest.mark.parametrize("refresh", [0.0, 1e-13, 1.0, 1e9])
@pytest.mark.parametrize("accelerated", [False, True])
def test_no_strength_of_masks_fails_and_more_never_cost(refresh, accelerated):
    before = np.ones(33)
    for exponent in [0, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 30, 100, 200, 300]:
        protocol = Gossip(KARATE, 8, 1.0, refresh=refresh, masks=10.0**exponent, accelerated=accelerated)
        factor = np.delete(account(protocol, 5).factor, 5)
        assert (factor <= before * (1 + 2e-5) + 2e-6).all(), exponent
        before = factor


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("refresh", [Fraction(0), Fraction(1, 2), Fraction(1, 10**13)])
@pytest.mark.parametrize("masks", [10**6, 10**8, 10**12, 10**40])
def test_never_below_exact_fractions(seed, refresh, masks, random_graph, exact_factors):
    graph = random_graph(7, 300 + seed)
    exact = exact_factors(graph, 4, (0,), masks=masks, refresh=refresh)
    loss = account(Gossip(graph, rounds=4, sigma=1.0, masks=float(masks), refresh=float(refresh)), [0])
    for u, true in exact.items():
        assert loss.factor[u] >= float(true) * (1 - 1e-15), (u, loss.factor[u], float(true))
        if refresh != Fraction(1, 10**13):  # else bounded by the loss without refresh, which may be far
            assert loss.factor[u] <= float(true) * 1.001 + 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_strong_refresh_is_never_below_exact_fractions(seed, random_graph, exact_factors):
    graph = random_graph(7, 400 + seed)
    for masks in (0, 10**20):
        exact = exact_factors(graph, 4, (0,), masks=masks, refresh=10**25)
        loss = account(Gossip(graph, rounds=4, sigma=1.0, masks=float(masks), refresh=1e25), [0])
        above = excess(loss, exact)
        assert loss.claim == "upper"
        assert above.min() >= -1e-16
        assert above.max() < 1e-5


def test_undecided_spaces_under_strong_masks(monkeypatch):
    """What observers of all first messages would learn, at masks that can be computed with."""
    monkeypatch.setattr(wide, "MAX_MULTIPLICATIONS", 0.0)
    monkeypatch.setattr(krylov, "krylov_ranks", lambda _: None)
    for masks in (1e12, 1e300):
        loss = account(Gossip(KARATE, rounds=60, sigma=1.0, masks=masks), 11)
        assert any("could not be decided" in text for text in loss.assumptions)
        assert any("evaluated at masks κ = " in text for text in loss.assumptions)
        assert loss.claim == "upper"
        assert (np.delete(loss.factor, 11) >= 1 / 33).all()
        assert loss.worst < 1.001 / 33


@pytest.mark.parametrize("masks", [1e12, 1e300])
def test_calibration_under_strong_masks(masks):
    protocol = Gossip(graphs.path(6), rounds=7, sigma=1.0, masks=masks)
    bound = revealed(GossipView(protocol, (0,)))[1:]
    assert (bound >= 1 / 5).all()
    assert (bound <= 1.001 / 5).all()
    chosen = calibrate(Gossip(graphs.grid(3, 3), rounds=9, sigma=1.0, masks=masks), 1.0, 1e-6)
    assert account(chosen, 4).worst_epsilon(1e-6) <= 1.0


def test_variances_beyond_any_double_are_refused():
    with pytest.raises(InvalidValue, match=r"masks = 1e\+300 times sigma² = 1e\+10² .* lower masks or sigma"):
        Gossip(graphs.ring(8), rounds=3, sigma=1e10, masks=1e300)
    with pytest.raises(InvalidValue, match=r"refresh = 1e\+300 times sigma² = 1e\+10²"):
        Gossip(graphs.ring(8), rounds=3, sigma=1e10, refresh=1e300)
    with pytest.raises(InvalidValue, match=r"masks = 1e\+300 times sigma² = 1e\+10²"):
        GossipDescent(graphs.ring(8), 3, 3, sigma=1e10, step=1.0, masks=1e300)
    assert Gossip(graphs.ring(8), rounds=3, sigma=1e10).masks == 0
