"""Walks whose values change with the step, and walks that draw by weight: exact views of tiny walks, and what breaks.

Proofs: docs/proofs/token.md#values-over-time, #uneven-draws and #token-coalitions.
"""

import importlib.util
import itertools
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

import netdp
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account import walk
from netdp.families.token.account.weights import Chances, by_weight, common_table, weight_classes, worst_chances
from netdp.privacy import ProfileCurve
from netdp.protocols import WalkDescent, WalkHistogram, WalkSum

_spec = importlib.util.spec_from_file_location("walk_brute", Path(__file__).with_name("walk_brute.py"))
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)

EPS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0])
ROUNDING = 1e-13
DELTA = 1e-6
SENDERS = ("hidden", "receiver-known", "known")


def uneven_view(table, weights, watched, sigma, sender, release):
    """The whole view of observers who hold a step with probability `watched`.

    `table[t]` holds, for step t, the values of everybody outside the observers, u's first, as u has them and as its other
    data would have them; `weights` are theirs, all together 1 − watched. Draws are independent, so stretches are.
    """
    steps, inside = len(table), np.array(weights) / (1 - watched)
    after, before, released = brute.known_places(sender, release)
    kept = {}

    def stretch(start, length, first, last):
        key = start, length, first, last
        if key in kept:
            return kept[key]
        known = brute._places(length, first, last)
        parts = []
        for named in itertools.product(range(len(inside)), repeat=len(known)):
            chance = math.prod(inside[v] for v in named)
            pair = []
            for which in (0, 1):
                law = {0.0: 1.0}
                for i in range(length):
                    values = table[start + i][which]
                    options = {named[known.index(i)]: 1.0} if i in known else dict(enumerate(inside))
                    law = _added(law, [(values[v], p) for v, p in options.items()])
                pair.append((np.array(list(law)), np.array(list(law.values()))))
            parts.append((chance, brute.gaussian_pair(*pair, sigma * math.sqrt(length), 60)))
        kept[key] = brute.either(parts)
        return kept[key]

    views = []
    for visits in itertools.product((False, True), repeat=steps):
        chance = math.prod(watched if v else 1 - watched for v in visits)
        edges = [-1, *np.flatnonzero(visits).tolist(), steps]
        view = np.ones(1), np.ones(1)
        for a, b in itertools.pairwise(edges):
            if b - a > 1:
                view = brute.together(
                    view, stretch(a + 1, b - a - 1, after and a >= 0, before if b < steps else released)
                )
        views.append((chance, view))
    return brute.either(views)


def _added(law, options):
    total = Counter()
    for mean, p in law.items():
        for x, chance in options:
            total[round(mean + x, 12)] += p * chance
    return total


def covers(curve, truth):
    return bool(np.all(truth <= np.asarray(curve.delta(EPS)) + ROUNDING))


# ---- values that change with the step


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_values_that_change_with_the_step_are_covered(sender, sigma):
    """Three users, four steps, everybody's values drawn anew for every step from {0, 1}, u's the one and the other end."""
    rng = np.random.default_rng(1)
    p = WalkSum(3, 4, sigma, sender=sender)
    bounds = [bound() for bound in walk.sum_bounds(p)]
    others = [np.array([0, 1, 0, 1]), *(rng.integers(0, 2, size=4) for _ in range(3))]
    for rest, flips in itertools.product(others, ([0, 0, 0, 0], [0, 1, 0, 1])):
        table = [[(float(f), float(r)), (1.0 - f, float(r))] for f, r in zip(flips, rest, strict=True)]
        truth = brute.delta(uneven_view(table, (1 / 3, 1 / 3), 1 / 3, sigma, sender, p.release), EPS)
        assert truth[0] > 0.05
        for curve in bounds:
            assert covers(curve, truth)


def visit_counting(steps, domain, gamma, by_visit, own):
    """{what one of three users sees: probability}: heaps between its visits; user 2's label is by_visit[k] at its k-th."""
    law = defaultdict(float)
    for path in itertools.product(range(3), repeat=steps):
        heaps = {((),): 3.0**-steps}
        seen = 0
        for holder in path:
            after = defaultdict(float)
            if holder == 0:
                for view, p in heaps.items():
                    after[(*view, ())] += p
            else:
                label = own if holder == 1 else by_visit[seen]
                seen += holder == 2
                for answer, chance in enumerate(brute.responses(label, domain, gamma)):
                    for view, p in heaps.items():
                        after[(*view[:-1], tuple(sorted((*view[-1], answer))))] += p * chance
            heaps = after
        where = tuple(t for t, holder in enumerate(path) if holder == 0)
        for view, p in heaps.items():
            law[where, view] += p
    return law


def test_values_by_the_number_of_visits_break_the_bounds_of_hidden_paths():
    """User 2 counts its visits in its labels: its "first" at the second step says that the first was u's."""
    steps, domain, gamma = 3, 5, 0.1
    p = WalkHistogram(3, steps, domain, gamma, sender="hidden")
    eps = np.linspace(0.1, p.epsilon0, 40)
    certified = np.asarray(netdp.account(p, [0]).curve.curves.delta(eps))

    def true(labels):
        P, Q = (visit_counting(steps, domain, gamma, labels, own) for own in (0, 1))
        return np.array([sum(max(P[view] - math.exp(e) * Q[view], 0.0) for view in P) for e in eps])

    assert (true([2, 2, 2]) <= certified + ROUNDING).all()
    assert (true([2, 3, 4]) / certified).max() > 1.25
    assert "not on how often it, or anybody, was visited" in " ".join(netdp.account(p, [0]).assumptions)


def test_what_is_assumed_of_values_over_time():
    """One value for every step is enough; with a cap, and on other walks, too."""
    for p in (WalkSum(5, 20, 3.0), WalkSum(5, 20, 3.0, contributions=2), WalkHistogram(5, 20, 3, 0.5)):
        assert "fixed before the first step, one for every user and step" in " ".join(netdp.account(p, [0]).assumptions)
    said = " ".join(netdp.account(WalkSum(5, 20, 3.0), [0]).assumptions)
    assert "at one step" in said
    assert "how often it, or anybody, was visited" in said
    on_graph = netdp.GraphWalkSum(netdp.graphs.ring(5), 20, 3.0)
    assert "one for every user and step" in " ".join(netdp.account(on_graph, [0]).assumptions)


def test_a_run_over_time():
    """Two halves of a walk with different values: the mean over time, with the error that is predicted."""
    p = WalkSum(4, 400, 0.5, sender="hidden")
    values = np.array([[0.0, 0.1, 0.2, 0.3], [1.0, 0.9, 0.8, 0.5]])[:, :, None]
    error = netdp.expected_error(p, values)
    found = [float(netdp.simulate(p, values, seed).estimates[0, 0]) for seed in range(400)]
    assert np.mean(found) == pytest.approx(values.mean(), abs=5 * error.rmse / 20)
    assert np.mean((np.array(found) - values.mean()) ** 2) == pytest.approx(error.total, rel=0.3)
    assert error.sampling == pytest.approx(np.mean([np.var(v) for v in values]) / 400)
    alone = netdp.simulate(p.replace(sigma=1e-9), values, 3, record=[2])
    steps = alone.record.visits[:, 1]
    np.testing.assert_allclose(alone.record.contributions[:, 0], values[(steps * 2) // 400, 2, 0])


def test_values_over_time_on_a_graph():
    p = netdp.GraphWalkSum(netdp.graphs.complete(5), 2000, 0.1, closing=False)
    values = np.random.default_rng(0).random((4, 5, 1))
    error = netdp.expected_error(p, values)
    found = [float(netdp.simulate(p, values, seed).estimates[0, 0]) for seed in range(200)]
    measured = np.mean((np.array(found) - values.mean()) ** 2)
    assert 0.2 * error.total < measured < 1.3 * error.total
    simple = netdp.GraphWalkSum(netdp.graphs.path(4), 100, 1.0, walk="simple")
    with pytest.raises(Unsupported, match="two halves take turns"):
        netdp.expected_error(simple, np.random.default_rng(0).random((2, 4, 1)))


def test_histograms_over_time():
    labels = np.array([[0, 0, 0, 1], [2, 2, 2, 2]])
    p = WalkHistogram(4, 60_000, domain=3, gamma=0.2, sender="hidden")
    run = netdp.simulate(p, labels, seed=1)
    np.testing.assert_allclose(run.estimates[0], [3 / 8, 1 / 8, 1 / 2], atol=0.02)
    assert netdp.expected_error(p, labels).total < netdp.expected_error(p).total


def test_refusals_over_time():
    p = WalkSum(4, 8, 1.0)
    with pytest.raises(InvalidValue, match="9 periods do not fit into 8 steps"):
        netdp.simulate(p, np.zeros((9, 4, 1)), 0)
    with pytest.raises(InvalidValue, match="periods"):
        netdp.simulate(p, np.zeros((0, 4, 1)), 0)
    with pytest.raises(Unsupported, match="early periods count more"):
        netdp.simulate(p.replace(contributions=1), np.zeros((2, 4, 1)), 0)
    with pytest.raises(Unsupported, match="early periods count more"):
        netdp.simulate(WalkHistogram(4, 8, 2, 0.5, contributions=1), np.zeros((2, 4), dtype=int), 0)
    with pytest.raises(InvalidValue, match="more than the sensitivity"):
        netdp.simulate(p, np.array([[[0.0]] * 4, [[0.0], [0.0], [0.0], [2.0]]]), 0)
    # the public set may move from period to period
    assert np.isfinite(netdp.simulate(p, np.array([[[0.0]] * 4, [[7.0]] * 4]), 0).estimates).all()


# ---- draws by weight


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("weights", [(0.2, 0.5, 0.3), (0.4, 0.1, 0.5), (0.3, 0.3, 0.2, 0.2)])
def test_draws_by_weight_are_covered(sender, weights):
    """Against user 0, for every target, everybody else at either end."""
    p = WalkSum(len(weights), 4, 1.0, sender=sender, weights=weights)
    curve = netdp.account(p, [0]).curve
    for u in range(1, len(weights)):
        inside = [weights[u], *(w for v, w in enumerate(weights) if v not in (0, u))]
        bounds = [bound() for bound in walk.sum_bounds(p, Chances(weights[u], weights[0]))]
        for rest in itertools.combinations_with_replacement((0.0, 1.0), len(inside) - 1):
            table = [[(0.0, *rest), (1.0, *rest)]] * 4
            truth = brute.delta(uneven_view(table, inside, weights[0], 1.0, sender, p.release), EPS)
            for bound in bounds:
                assert covers(bound, truth)
            found = np.array([float(np.asarray(curve.delta(e))[u]) for e in EPS])
            assert (truth <= found + ROUNDING).all()


@pytest.mark.parametrize("sender", SENDERS)
def test_longer_walks_by_weight_are_covered(sender):
    """60 steps, a target of weight 0.15 against observers of weight 0.05: blocks, openings, endings; not far above."""
    steps, own, watched, sigma = 60, 0.15, 0.05, 2.0
    weights = (watched, own, *([0.8 / 10] * 10))
    p = WalkSum(12, steps, sigma, sender=sender, weights=weights)
    stretch = brute.equal_others(0.0, 1.0, 0.0, own / (1 - watched), sigma)
    truth = brute.long_walk_delta(steps, watched, stretch, sender, p.release, EPS)
    for bound in walk.sum_bounds(p, Chances(own, watched)):
        assert covers(bound(), truth)
    found = np.array([float(np.asarray(netdp.account(p, [0]).curve.delta(e))[1]) for e in EPS])
    assert (truth <= found + ROUNDING).all()
    assert found[3] < 2.5 * truth[3]


def kinds(**settings):
    yield WalkSum(6, 60, 2.0, **settings)
    yield WalkDescent(6, 60, 2.0, step=0.1, clip=0.5, **settings)
    yield WalkHistogram(6, 60, 3, 0.6, **settings)


@pytest.mark.parametrize(
    "settings", [{}, {"sender": "hidden"}, {"sender": "receiver-known"}, {"contributions": 3}], ids=str
)
def test_equal_weights_are_no_weights(settings):
    for p in kinds(**settings):
        plain, even = netdp.account(p, [0, 1]), netdp.account(p.replace(weights=[2.5] * 6), [0, 1])
        np.testing.assert_allclose(even.epsilon(1e-3), plain.epsilon(1e-3), rtol=0.03)
        for way in (netdp.local_dp, netdp.trusted_curator):
            np.testing.assert_allclose(way(p.replace(weights=[1] * 6)).epsilon(1e-3), way(p).epsilon(1e-3), rtol=0.03)


def test_heavier_users_lose_more_and_learn_more():
    weights = (1, 2, 2, 2, 16, 32)
    for p in kinds(weights=weights, sender="hidden"):
        against_light, against_heavy = (netdp.account(p, [v]).epsilon(1e-3) for v in (0, 5))
        assert against_light[1] == against_light[3] < against_light[4] < against_light[5]
        assert (against_light[1:5] < against_heavy[1:5]).all()
        for way in (netdp.local_dp, netdp.trusted_curator):
            loss = way(p).epsilon(1e-3)
            assert loss[0] < loss[1] == loss[3] < loss[4] < loss[5]


def test_who_learns_most_is_among_the_heaviest():
    p = WalkDescent(5, 20, 2.0, step=0.1, expansion=2.0, weights=(1, 1, 2, 4, 8), sender="hidden")
    both = netdp.pairwise(p).epsilon(1e-3)
    assert set(np.unravel_index(np.nanargmax(both), both.shape)) == {3, 4}
    some = netdp.account(p, colluders=2).epsilon(1e-3)
    for pair in itertools.combinations(range(5), 2):
        own = netdp.account(p, list(pair)).epsilon(1e-3)
        assert (np.nan_to_num(own) <= some * (1 + 1e-2)).all()


def test_calibrated_for_the_worst_pair():
    weights = (1, 1, 1, 2, 4, 4)
    for p in kinds(weights=weights, sender="hidden"):
        found = netdp.calibrate(p, 1.0, 1e-3)
        worst = max(netdp.account(found, [v]).worst_epsilon(1e-3) for v in (0, 4, 5))
        assert 0.95 < worst <= 1.0
    p = WalkSum(6, 60, 2.0, weights=weights)
    assert len(worst_chances(p, 1)) == 1
    assert [round(pair.own + pair.watched, 9) for pair in worst_chances(p, 2)] == [round(10 / 13, 9)] * 2
    assert worst_chances(p.replace(weights=None), 2) == [2]


def test_many_weights_become_few_and_none_is_rounded_down():
    rng = np.random.default_rng(0)
    for weights in (rng.pareto(1.5, size=400) + 0.01, rng.random(400) + 1.0, np.geomspace(1e-9, 1, 50)):
        few, which = weight_classes(weights)
        assert len(few) <= 10
        assert (few[which] >= weights).all()
        assert few.max() == weights.max()
        heavy = weights > weights.max() / 3
        assert (few[which][heavy] <= 1.31 * weights[heavy]).all()
    p = WalkDescent(60, 120, 5.0, step=0.1, sender="hidden", weights=rng.random(60) + 0.05, expansion=2.0)
    loss = netdp.account(p, [0]).epsilon(1e-3)
    order = np.argsort(p.chances[1:]) + 1
    assert (np.diff(loss[order]) >= -1e-12).all()
    u = int(order[-3])
    single = float(walk.descent_profile(p, Chances(p.chances[u], p.chances[0])).epsilon(1e-3))
    assert single * (1 - 1e-9) <= loss[u] < 1.4 * single


def test_tables_of_several_curves_lie_above_each():
    curves = [
        netdp.privacy.ProfileCurve(np.linspace(0, s, 50), (1 - np.linspace(0, 1, 50)) ** 3 * 0.3) for s in (1.0, 5.0)
    ]
    table = common_table(curves)
    for i, curve in enumerate(curves):
        eps = np.linspace(0, 6, 101)
        assert all(float(np.asarray(table.delta(e))[i]) >= float(curve.delta(e)) - 1e-15 for e in eps)


def test_a_weighted_run_estimates_the_weighted_mean():
    weights = np.array([0.1, 0.2, 0.7])
    values = np.array([0.0, 1.0, 0.5])
    p = WalkSum(3, 500, 0.5, weights=weights)
    error = netdp.expected_error(p, values)
    found = np.array([float(netdp.simulate(p, values, seed).estimates[0, 0]) for seed in range(300)])
    assert found.mean() == pytest.approx(weights @ values, abs=0.01)
    assert np.mean((found - values.mean()) ** 2) == pytest.approx(error.total, rel=0.3)
    assert error.total <= netdp.expected_error(p).total
    # x/(n·w) makes it the plain mean, at a larger sensitivity
    plain = WalkSum(3, 500, 0.5, weights=weights, sensitivity=1 / (3 * weights.min()))
    scaled = values / (3 * weights)
    found = np.array([float(netdp.simulate(plain, scaled, seed).estimates[0, 0]) for seed in range(300)])
    assert found.mean() == pytest.approx(values.mean(), abs=0.02)
    histogram = netdp.simulate(WalkHistogram(3, 40_000, 3, 0.1, weights=weights), [0, 1, 2], 0)
    np.testing.assert_allclose(histogram.estimates[0], weights, atol=0.02)
    capped = netdp.families.token.simulate.expected_contributing(WalkSum(3, 3, 1.0, weights=weights, contributions=1))
    assert capped == pytest.approx(sum(1 - (1 - weights) ** 3))


@pytest.mark.parametrize("own", [1e-6, 1e-9, 1.05e-11, 1e-13])
def test_a_light_user_alone_among_observers(own):
    """What is left beside the observers is u alone: nearly no noise, so δ is the probability that u is drawn at all."""
    steps = 1000
    p = WalkSum(2, steps, 0.02, sender="hidden", weights=[own, 1 - own])
    truth = -np.expm1(steps * np.log1p(-own))
    for kind in (p, WalkDescent(2, steps, 0.02, step=0.1, clip=0.5, sender="hidden", weights=p.weights)):
        assert truth <= float(np.asarray(netdp.account(kind, [1]).delta(1.0))[0]) <= 1.001 * truth + 1e-15
    # 0.9995 for the response, which is random once in a thousand times
    p = WalkHistogram(2, steps, 2, 0.001, sender="hidden", weights=[own, 1 - own])
    assert truth * (0.9995 - np.e * 0.0005) <= float(np.asarray(netdp.account(p, [1]).delta(1.0))[0])
    assert float(np.asarray(netdp.local_dp(p).delta(1.0))[0]) >= truth * 0.99


def test_pairs_that_stand_for_others_leave_room_for_them():
    """Twelve different weights, ten classes: against all others no class may take from users that are not there."""
    p = WalkSum(12, 200, 1.0, sender="hidden", weights=[1.25**-k for k in range(12)])
    for colluders in (9, 10, 11):
        pairs = worst_chances(p, colluders)
        heaviest = p.chances[: colluders + 1]
        for one in heaviest:
            assert any(
                pair.own >= one and pair.watched >= (heaviest.sum() - one) * (1 - 1e-15) and 1 - pair.watched >= one
                for pair in pairs
            )
    found = netdp.calibrate(p, epsilon=1.0, delta=1e-3, colluders=11)
    assert 0.99 < np.max(np.asarray(netdp.account(found, colluders=11).epsilon(1e-3))) <= 1.0


def test_calibrated_although_the_lightest_need_no_noise():
    p = WalkSum(4, 200, 1.0, sender="hidden", weights=[1, 1e-3, 1e-8, 1e-8])
    found = netdp.calibrate(p, epsilon=1.0, delta=1e-3, colluders=3)
    assert 0.99 < np.max(np.asarray(netdp.account(found, colluders=3).epsilon(1e-3))) <= 1.0


def test_weights_are_checked():
    p = WalkSum(3, 9, 1.0)
    for wrong, message in (
        ([1, 2], "2 weights for 3 users"),
        ([1, 2, 0], "must be a finite number > 0, got 0"),
        ([1, 2, -1], "got -1"),
        ("abc", "one number > 0 per user"),
        (3, "one number > 0 per user"),
        ([1e308] * 3, "between 1e-200 and 1e200"),
        ([1, 1, 1e-150], "would be drawn with probability 5e-151"),
    ):
        with pytest.raises(InvalidValue, match=message):
            p.replace(weights=wrong)
    heavy = p.replace(weights=[1, 2, 5])
    assert heavy.weights == (0.125, 0.25, 0.625)
    assert netdp.Protocol.from_dict(heavy.to_dict()) == heavy
    old = {key: value for key, value in p.to_dict().items() if key != "weights"}
    assert netdp.Protocol.from_dict(old) == p
    with pytest.raises(Unsupported, match="draw all users alike"):
        netdp.account(heavy, [0], method="published")
    with pytest.raises(InvalidValue, match="it matters who colludes"):
        walk.sum_profile(heavy, 1)
    assert "by the public weights" in " ".join(netdp.account(heavy, [0]).assumptions)


def test_chances_are_rounded_to_the_safe_side():
    """Formula pin: own and watched chances with eight units on top; what is left outside the observers with two less."""
    seen = []

    def profile(who):
        seen.append(who)
        return ProfileCurve([0.0], [1.0])

    by_weight(WalkSum(4, 10, sigma=1.0, weights=[1, 2, 2, 3]), [0], profile)
    heaviest = max(seen, key=lambda who: who.own)
    up = 1 + 8 * 2.0**-53
    assert heaviest == Chances(0.375 * up, 0.125 * up)
    assert heaviest.inside == 0.375 * up / (1 - 0.125 * up - 2 * 2.0**-53)
    mostly = by_weight(WalkSum(4, 10, sigma=1.0, weights=[5, 1, 1, 1]), [0], profile)
    assert mostly.shape == (4,)
    assert seen[-1].watched == math.nextafter(1 - 0.375 * up, 0.0)
