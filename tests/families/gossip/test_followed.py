"""Refreshed gossip with many messages, against exact fractions and against the triangle (docs/proofs/gossip.md#refresh)."""

from fractions import Fraction

import numpy as np
import pytest

from netdp import graphs
from netdp.families.gossip.account import exact as gossip
from netdp.families.gossip.account.exact import Followed, _covariance
from netdp.families.gossip.account.krylov import seen_space
from netdp.families.gossip.protocol import Gossip, response
from netdp.families.gossip.views import GossipView
from netdp.protocols.accounting import account

KARATE = graphs.dataset("karate")


@pytest.fixture
def quickly(monkeypatch):
    """However few messages there are, they are followed in the quick way and in no other."""
    monkeypatch.setattr(gossip, "_FEW", -1.0)
    monkeypatch.setattr(gossip, "_MANY", -1.0)


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("masks", [Fraction(0), Fraction(4), Fraction(10**6)])
@pytest.mark.parametrize(
    "refresh", [Fraction(1, 10**13), Fraction(1, 100), Fraction(1, 2), Fraction(3), Fraction(10**20)]
)
def test_never_below_exact_fractions_and_not_far_above(
    refresh, masks, accelerated, quickly, random_graph, exact_factors
):
    for seed in range(2):
        graph = random_graph(6, 500 + seed)
        protocol = Gossip(graph, 4, 1.0, refresh=float(refresh), masks=float(masks), accelerated=accelerated)
        settings = {"masks": masks, "refresh": Fraction(float(refresh))}
        if accelerated:
            settings["gamma"] = Fraction(protocol.chebyshev)
        true = exact_factors(graph, 4, (0,), **settings)
        loss = account(protocol, [0])
        for u, value in true.items():
            assert Fraction(float(loss.factor[u])) >= value * (1 - Fraction(1, 10**15)), (seed, u)
            assert loss.factor[u] <= float(value) + loss.slack + 1e-6, (seed, u)


@pytest.mark.parametrize("settings", [{}, {"masks": 3.0}, {"accelerated": True}, {"masks": 3.0, "accelerated": True}])
def test_the_quick_way_and_the_triangle_agree(settings, monkeypatch):
    protocol = Gossip(KARATE, 9, 1.0, refresh=0.3, **settings)
    view = GossipView.of(protocol, [33, 0])
    slow = gossip.factors(view)
    monkeypatch.setattr(gossip, "_FEW", -1.0)
    monkeypatch.setattr(gossip, "_Messages", None)  # no way back
    quick = gossip.factors(view)
    assert quick.claim == slow.claim == "exact"
    np.testing.assert_allclose(quick.values, slow.values, rtol=0, atol=slow.slack + quick.slack)


def test_no_refresh_is_too_weak_or_too_strong(quickly):
    """What is subtracted is never negative: faint refresh costs nothing but what it hides, strong refresh only scales."""
    protocol = Gossip(KARATE, 10, 1.0)
    others = np.arange(34) != 5
    faint = account(protocol.replace(refresh=1e-20), 5)
    np.testing.assert_allclose(faint.factor[others], account(protocol, 5).factor[others], atol=1e-9)
    strong = account(protocol.replace(refresh=1e30), 5)
    assert strong.claim == "exact"
    np.testing.assert_allclose(strong.factor[others], account(protocol.replace(rounds=1), 5).factor[others], atol=1e-9)


def test_too_strong_masks_are_bounded_by_weaker_ones(quickly):
    protocol = Gossip(KARATE, 10, 1.0, refresh=1.0, masks=1e12)
    loss = account(protocol, 5)
    assert loss.claim == "upper"
    assert any("masks κ = 1e+12 too strong for floating point" in text for text in loss.assumptions)
    others = np.arange(34) != 5
    assert (loss.factor[others] <= account(protocol.replace(masks=1e4), 5).factor[others] + 1e-9).all()


@pytest.mark.parametrize("gamma", [None, 1.4])
def test_the_covariance_of_fresh_noise_is_the_one_written_out(gamma):
    rng = np.random.default_rng(1)
    step, start, rounds = rng.normal(size=(5, 5)), rng.normal(size=(5, 2)), 4
    step = (step + step.T) / 10
    impulses = list(response(lambda x: step @ x, start, rounds, gamma, fresh=True))
    noise = np.zeros((rounds * 2, rounds * 5))  # message of round s+1 × fresh noise of round j+1
    for s in range(rounds):
        for j in range(s + 1):
            noise[2 * s : 2 * s + 2, 5 * j : 5 * j + 5] = impulses[s - j].T
    np.testing.assert_allclose(_covariance(impulses, gamma is None), noise @ noise.T, atol=1e-14)
    if gamma is None:  # the proof's bound: at least a quarter where the step does not expand
        shrinking = step / np.abs(np.linalg.eigvalsh(step)).max()
        unit = list(response(lambda x: shrinking @ x, np.eye(5)[:, :2], rounds, None))
        assert np.linalg.eigvalsh(_covariance(unit, True)).min() >= 0.25


@pytest.mark.parametrize("rounds", [6, 15])
def test_directions_that_are_rounding_leave_nothing_at_the_observers(rounds):
    """Masks multiply what a factorisation leaves there, and the covariance was no longer positive."""
    protocol = Gossip(KARATE, rounds, 1.0, refresh=1.0, masks=1e8)
    assert (seen_space(GossipView.of(protocol, [1])).basis[1] == 0.0).all()
    loss = account(protocol, [1])
    others = np.arange(34) != 1
    assert (loss.factor[others] <= account(protocol.replace(masks=100.0), [1]).factor[others] + 1e-9).all()


def test_progress_is_told():
    told = []
    view = GossipView.of(Gossip(KARATE, 5, 1.0, refresh=1.0), 5)
    Followed(view, seen_space(view).basis, lambda done, total: told.append((done, total)))
    assert told == [(1, 4), (2, 4), (3, 4)]
