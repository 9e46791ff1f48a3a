"""Attacks on gossip descent, on a curator's and on descent by a token: sound systems hold, bugs show, bounds are not far off."""

from functools import lru_cache

import numpy as np
import pytest

from netdp import graphs
from netdp.audit.attack import SIMULATOR, attacks, collect
from netdp.audit.audits import said, shortened
from netdp.audit.bounds import measure
from netdp.audit.linear import DescentAttack
from netdp.errors import InvalidValue, Unsupported
from netdp.families.baselines.attack import published_gradients
from netdp.families.baselines.protocol import CentralDescent, LocalDescent
from netdp.families.gossip.attack import gossiped, gossiped_models
from netdp.families.gossip.descent import GossipDescent
from netdp.families.masked.attack import ConstantGradients
from netdp.families.token import attack_descents as token_descents
from netdp.families.token.attack_descents import (
    Readings,
    TokenAttack,
    known_models,
    known_names,
    log_binomials,
    readings_of,
)
from netdp.families.token.ring import RingDescent
from netdp.families.token.training import draws
from netdp.families.token.walk import WalkDescent
from netdp.learn import train, train_ring, train_walk
from netdp.models.parties import ModelParties
from netdp.privacy import Observers, entry
from netdp.protocols.accounting import account
from netdp.protocols.training import FromGradients

DELTA = 1e-6
CUBE = graphs.hypercube(4)
AT_DISTANCE = (1, 3, 7, 15)
GOSSIP = GossipDescent(CUBE, iterations=6, gossip_rounds=1, sigma=4.0, step=0.5)
MASKED = GOSSIP.replace(gossip_rounds=3, masks=10.0)


@lru_cache
def promised(p, observers, target):
    curve = account(p, list(observers)).curve
    return entry(curve, target) if curve.shape else curve


def measured(attack, trials, seed=1):
    scores = collect(attack, trials, seed, portable=False)
    return measure(scores.without, scores.within, DELTA)


# ── gossip ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("p", "floors"),
    [
        (GOSSIP, (0.95, 0.84, 0.80, 0.79)),
        (GOSSIP.replace(gossip_rounds=3), (0.99, 0.99, 0.99, 0.89)),
        (GOSSIP.replace(masks=10.0), (0.91, 0.89, 0.89, 0.89)),
        (MASKED, (0.94, 0.88, 0.90, 0.71)),
        (GOSSIP.replace(gossip_rounds=4, accelerated=True), (0.9, 0.9, 0.9, 0.7)),
    ],
)
def test_the_bound_for_gossip_descent_is_nearly_attained_at_every_distance(p, floors):
    """μ of the attack over μ of the bound, 1 to 4 hops away: never above 1."""
    for target, floor in zip(AT_DISTANCE, floors, strict=True):
        reached = DescentAttack(p, (0,), target, gossiped).mu / float(promised(p, (0,), target).mu)
        assert floor < reached <= 1 + 1e-9, target


def test_the_scores_are_as_far_apart_as_the_matrices_say():
    for p, observers, target in ((GOSSIP, (0,), 1), (MASKED, (0,), 3), (MASKED, (0, 5, 6), 4)):
        attack = DescentAttack(p, observers, target, gossiped)
        told = measured(attack, 32_000)
        claim = promised(p, observers, target)
        assert not told.refutes(claim)
        assert 0.75 * attack.mu < told.mu < attack.mu * 1.02
        assert told.epsilon <= float(claim.epsilon(DELTA))


def changed(**changes):
    """A system that runs another protocol than the one that was accounted for."""
    return lambda p, *rest: gossiped(p.replace(**{name: change(p) for name, change in changes.items()}), *rest)


def same_noise_again(p, gradients, seed, normal, record):
    """Noise that is drawn once and used in every iteration."""
    kept = {}

    def again(shape):
        return kept.setdefault(shape, normal(shape))

    return gossiped(p, gradients, seed, again, record)


BUGS = {
    "half of the noise": (GOSSIP, 1, changed(sigma=lambda p: p.sigma / 2)),
    "the same noise in every iteration": (GOSSIP, 1, same_noise_again),
    "no masks": (MASKED, 1, changed(masks=lambda p: 0.0)),
    "gradients that are not clipped": (GOSSIP, 3, changed(clip=lambda p: 2 * p.clip)),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_gossip_descent_is_refuted(bug):
    p, target, system = BUGS[bug]
    (attack,) = attacks(p, Observers((0,)), target, system, 0)
    told = measured(attack, 20_000)
    assert told.refutes(promised(p, (0,), target))


def test_the_run_is_that_of_training():
    """The same noises into both: the same models, with masks, acceleration and graphs that change."""
    three = (graphs.ring(6), graphs.complete(6), graphs.path(6))
    cases = [
        GossipDescent(graphs.ring(6), 3, 2, sigma=0.5, step=0.3, masks=4.0),
        GossipDescent(graphs.ring(6), 3, 4, sigma=0.5, step=0.3, accelerated=True),
        GossipDescent(three, 3, 2, sigma=0.5, step=0.3, masks=1.0),
    ]
    raw = np.random.default_rng(4).standard_normal((6, 1)) * 2
    for p in cases:
        flat = FromGradients(lambda models: raw, n=6, d=1, smoothness=0.0)
        expected = train(p, flat, seed=9).models
        found = gossiped_models(p, np.tile(raw, (3, 1, 1)), np.random.default_rng(9).standard_normal)
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_what_is_held_is_received_noise_and_masks_and_nothing_of_others():
    """The ring's observer sees two neighbours in each of T·K rounds, its own noise, and the masks on its two edges."""
    p = GossipDescent(graphs.ring(6), 2, 3, sigma=0.5, step=0.3, masks=4.0)
    held = gossiped(p, np.zeros((2, 6, 5)), 0, np.random.default_rng(0).standard_normal, [2])
    assert held.shape == (2 * 3 * 2 + 2 * 1 + 2 * 2, 5)


def test_gradients_of_another_shape_are_refused():
    with pytest.raises(InvalidValue, match="6 iterations of 16 parties"):
        gossiped(GOSSIP, np.zeros((6, 15, 1)), 0, np.zeros, [0])


def test_a_long_gossip_descent_is_audited_in_short():
    long = GOSSIP.replace(iterations=500, gossip_rounds=3)
    short = shortened(long)
    assert 6 <= short.iterations < 500
    assert f"{short.iterations} instead of 500" in said(long, short)
    assert shortened(GOSSIP) is GOSSIP
    changing = GossipDescent((CUBE, graphs.ring(16)) * 250, 500, 3, sigma=4.0, step=0.5)
    assert len(shortened(changing).graphs) == shortened(changing).iterations < 500


# ── a curator ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_curators_descent_is_attained_and_half_of_its_noise_refuted():
    p = CentralDescent(16, iterations=4, sigma=1.5, step=0.5)
    claim = promised(p, (0,), 3)
    (attack,) = attacks(p, Observers((0,)), 3, SIMULATOR, 0)
    assert attack.mu == pytest.approx(float(claim.mu))
    told = measured(attack, 20_000)
    assert not told.refutes(claim)
    assert told.epsilon > 0.85 * float(claim.epsilon(DELTA))

    def halved(protocol, *rest):
        return published_gradients(protocol.replace(sigma=protocol.sigma / 2), *rest)

    assert measured(DescentAttack(p, (0,), 3, halved), 4_000).refutes(claim)


def test_local_descent_says_why_it_cannot_be_audited():
    with pytest.raises(Unsupported, match="draws the mean"):
        attacks(LocalDescent(16, 4, sigma=4.0, step=0.5), Observers((0,)), 3, SIMULATOR, 0)


# ── a token ───────────────────────────────────────────────────────────────────────────────────────────────────────────

WALK = WalkDescent(16, steps=160, sigma=4.0, step=0.1)


@pytest.mark.parametrize(
    ("p", "target", "floor"),
    [
        (WALK, 3, 0.2),
        (WALK.replace(sender="hidden", release="anonymous"), 3, 0.6),
        (WalkDescent(CUBE, steps=160, sigma=4.0, step=0.1, closing=True), 1, 0.2),
        (WALK.replace(weights=(3.0,) + (1.0,) * 15, tokens=2, steps=64), 3, 0.15),
        (RingDescent(10, rounds=3, sigma=2.0, step=0.1), 1, 0.85),
        (RingDescent(10, rounds=3, sigma=2.0, step=0.1), 8, 0.35),
    ],
)
def test_descent_by_a_token_holds_and_the_attack_is_no_idle_one(p, target, floor):
    """As Gaussian, a share of the certified ε: of walks with known senders and of near users on a ring a small one."""
    told = measured(TokenAttack(p, (0,), target), 6_500)
    claim = promised(p, (0,), target)
    assert not told.refutes(claim)
    assert floor < told.epsilon / float(claim.epsilon(DELTA)) < 1


def changed_walk(**changes):
    return lambda p, *rest: readings_of(p.replace(**{name: change(p) for name, change in changes.items()}), *rest)


def always_the_target(p, gradients, seed, normal, record):
    """A walk that visits party 1 in every second step."""
    paths = token_descents.token_paths(p, gradients.shape[1], seed)
    paths[:, ::2] = 1
    models = token_descents.models_along(p, paths, gradients, normal)
    own = np.isin(paths, record)
    models[~known_models(own)] = np.nan
    return Readings(models, np.where(known_names(p, own), paths, -1))


HIDDEN = WALK.replace(sender="hidden", release="anonymous")
TOKEN_BUGS = {
    "half of the noise": (HIDDEN, changed_walk(sigma=lambda p: p.sigma / 2)),
    "gradients that are not clipped": (HIDDEN, changed_walk(clip=lambda p: 3 * p.clip)),
    "visited much more often": (HIDDEN, always_the_target),
    "half of the noise on a ring": (
        RingDescent(10, rounds=3, sigma=2.0, step=0.1),
        changed_walk(sigma=lambda p: p.sigma / 2),
    ),
}


@pytest.mark.parametrize("bug", TOKEN_BUGS)
def test_a_bug_in_descent_by_a_token_is_refuted(bug):
    p, system = TOKEN_BUGS[bug]
    (attack,) = attacks(p, Observers((0,)), 1, system, 0)
    assert measured(attack, 10_000).refutes(promised(p, (0,), 1))


def constant(rows):
    """Users whose gradient is their row, wherever the model is."""
    return ModelParties(ConstantGradients(1), [np.array([[x]]) for x in rows], [np.zeros(1)] * len(rows))


def test_the_walks_are_those_of_training():
    """Path and noise of `train_walk` put in by hand: the same released model; with a cap, a ball and a closing noise."""
    rows = np.random.default_rng(1).standard_normal(16) * 2
    cases = [
        WALK,
        WALK.replace(contributions=3, radius=0.4, release="anonymous"),
        WalkDescent(CUBE, steps=80, sigma=1.0, step=0.1, closing=True),
    ]
    for p in cases:
        path, noises = draws(p, 5)
        found = token_descents.models_along(
            p, path[None], rows[:, None], lambda shape, g=noises: g.standard_normal(shape)
        )
        expected = train_walk(p, constant(rows), 5)
        assert found[0, -1] == pytest.approx(expected.model[0], rel=1e-9)
    ring = RingDescent(16, rounds=2, sigma=0.5, step=0.1)
    seen = readings_of(ring, rows[:, None], 0, np.random.default_rng(6).standard_normal, [])
    assert seen.models[0, -1] == pytest.approx(train_ring(ring, constant(rows), 6).model[0], rel=1e-9)


def test_observers_read_the_models_and_names_that_the_channel_shows():
    own = np.array([[False, True, False, False, True, True, False, False]])
    steps = np.arange(9)
    assert steps[known_models(own)[0]].tolist() == [0, 1, 2, 4, 5, 6, 8]

    def known(**channel):
        return np.flatnonzero(known_names(WALK.replace(**channel), own)[0]).tolist()

    assert known(sender="hidden", release="anonymous") == [1, 4, 5]
    assert known(sender="receiver-known", release="anonymous") == [1, 2, 4, 5, 6]
    assert known(sender="known", release="anonymous") == [0, 1, 2, 3, 4, 5, 6]
    assert known(sender="hidden", release="named") == [1, 4, 5, 7]
    assert known_names(RingDescent(8, 1, sigma=1.0, step=0.1), own).all()


def test_the_score_is_the_likelihood_ratio_over_the_secret_path():
    """Two hidden stretches by hand: every path is tried, each with its own density."""
    n, steps = 4, 5
    p = WalkDescent(n, steps, sigma=1.5, step=0.5, clip=1.0, sender="receiver-known")
    path, rng = np.array([1, 3, 0, 2, 1]), np.random.default_rng(2)
    own = (path == 0)[None]
    models = np.cumsum(np.append(0.0, rng.standard_normal(steps)))[None].copy()
    models[~known_models(own)] = np.nan
    names = np.where(known_names(p, own), path, -1)
    attack = TokenAttack(p, (0,), 2)
    sums = (-(models[0, 2] - models[0, 0]) / p.step, -(models[0, 5] - models[0, 3]) / p.step)
    likelihood = {}
    for sign in (1.0, -1.0):
        first = sum(
            np.exp(-((sums[0] - sign * ((a == 2) + (b == 2))) ** 2) / (2 * 2 * 1.5**2))
            for a in (1, 2, 3)
            for b in (1, 2, 3)
        )
        # the step after the observer's is known to be the target's; the last one is not known
        second = sum(np.exp(-((sums[1] - sign * (1 + (b == 2))) ** 2) / (2 * 2 * 1.5**2)) for b in (1, 2, 3))
        likelihood[sign] = np.log(first) + np.log(second)
    assert attack.scores(Readings(models, names))[0] == pytest.approx(likelihood[1.0] - likelihood[-1.0])


def test_binomial_tables_are_right_and_end_where_nothing_is_left():
    from scipy.stats import binom

    law = np.exp(log_binomials(300, 0.07))
    for h in (0, 1, 17, 300):
        assert np.allclose(law[h], binom.pmf(np.arange(law.shape[1]), h, 0.07), atol=1e-11)
    assert law.shape[1] < 100


def test_long_walks_are_audited_in_short_and_observers_are_no_targets():
    assert shortened(WALK) is WALK
    assert shortened(WALK.replace(steps=50_000, tokens=2)).steps == 1000
    assert shortened(RingDescent(10, rounds=900, sigma=2.0, step=0.1)).rounds == 200
    with pytest.raises(InvalidValue, match="one of the observers"):
        TokenAttack(WALK, (0, 3), 3)
