"""Membership inference on masked descent: no more comes out than is certified, nearly all of it does, and planted bugs show."""

import math
from functools import lru_cache

import numpy as np
import pytest

from netdp import graphs
from netdp.audit.attack import SIMULATOR, attacks, collect
from netdp.audit.audits import said, shortened
from netdp.audit.bounds import measure
from netdp.errors import InvalidValue
from netdp.families.masked import attack as membership
from netdp.families.masked.attack import (
    ConstantGradients,
    MembershipAttack,
    as_sampled,
    hidden_with,
    in_a_row,
    ratios,
    ratios_of_sums,
    trained_sums,
)
from netdp.families.masked.descent import MaskedDescent, begun, stepped
from netdp.learn import train
from netdp.models.parties import ModelParties
from netdp.privacy import Observers, ProfileCurve, entry
from netdp.privacy.sampled_gaussian import sampled_gaussian_curve
from netdp.protocols import calibrate
from netdp.protocols.accounting import account

DELTA, TRIALS = 1e-6, 16_000
RING = graphs.ring(8)


@lru_cache
def descent(unit, sampling, epsilon=4.0, iterations=4, **more):
    """With as much noise as ε against one observer asks for."""
    many = {"max_records": 50} if unit == "record" else {}
    draft = MaskedDescent(
        RING, iterations, sigma=1.0, step=0.5, dimension=10, unit=unit, sampling=sampling, **many, **more
    )
    return calibrate(draft, epsilon, DELTA, colluders=1)


@lru_cache
def promised(p, observers=(0,), target=3):
    return entry(account(p, list(observers)).curve, target)


def told_by(p, system=trained_sums, observers=(0,), target=3, trials=TRIALS):
    attack = MembershipAttack(p, observers, target, system)
    scores = collect(attack, trials, seed=1, portable=False)
    return attack, measure(scores.without, scores.within, DELTA)


def run_with(**changes):
    """A system that runs another protocol than the one that was accounted for."""

    def system(p, losses, seed, normal, record):
        return trained_sums(
            p.replace(**{name: change(p) for name, change in changes.items()}), losses, seed, normal, record
        )

    return system


BUGS = {
    "sampled twice as often": run_with(sampling=lambda p: 2 * p.sampling),
    "half of the noise": run_with(sigma=lambda p: p.sigma / 2),
    "gradients twice as long": run_with(clip=lambda p: 2 * p.clip),
}

# unit, sampling: how much of the certified ε 16,000 trials show, at least, if noise is taken to be Gaussian
ATTAINED = [
    ("record", 1.0, 0.88),
    ("record", 0.5, 0.75),
    ("record", 0.1, 0.4),
    ("party", 1.0, 0.88),
    ("party", 0.5, 0.8),
]


@pytest.mark.parametrize(("unit", "sampling", "share"), ATTAINED)
def test_the_attack_attains_most_of_what_is_certified_and_never_more(unit, sampling, share):
    p = descent(unit, sampling)
    attack, told = told_by(p)
    certified = float(promised(p).epsilon(DELTA))
    assert not told.refutes(promised(p))
    assert told.by_counts < certified
    assert share * certified < attack.reading(told) < certified * (1 + 1e-6)


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("sampling", [0.5, 0.25])
def test_a_bug_is_refuted(bug, sampling):
    p = descent("record", sampling)
    assert told_by(p, BUGS[bug])[1].refutes(promised(p))


@pytest.mark.parametrize("bug", ["half of the noise", "gradients twice as long"])
def test_a_bug_is_refuted_where_whole_parties_are_protected(bug):
    p = descent("party", 1.0, epsilon=2.0)
    assert told_by(p, BUGS[bug])[1].refutes(promised(p))


def test_a_party_that_takes_part_twice_as_often_is_found_out():
    p = descent("party", 0.25)
    assert told_by(p, BUGS["sampled twice as often"], trials=8000)[1].refutes(promised(p))


def test_who_is_not_there_is_not_found():
    attack = MembershipAttack(descent("record", 0.5), (0,), 3)
    scores = collect(attack, TRIALS, seed=2)
    told = measure(scores.without[::2], scores.without[1::2], DELTA)
    assert told.mu == attack.reading(told) == 0.0


def test_colluders_groups_mask_graphs_absences_and_attempts_are_those_that_are_accounted_for():
    """Less noise covers the target, or it is seen more often: the attack uses it, and stays below."""
    rings = MaskedDescent(RING, 2, sigma=3.0, step=0.5, masks=graphs.ring(8))
    cases = [
        (rings.replace(masks="complete"), (0, 1, 2), 5, 5),
        (rings.replace(masks="complete", groups=2), (0, 1), 4, 3),
        (rings, (0, 3), 1, 2),
        (rings.replace(masks="complete", absent=2), (0,), 4, 5),
        (rings.replace(masks="complete", attempts=2), (0,), 4, 7),
    ]
    for p, observers, target, honest in cases:
        assert hidden_with(p, observers, target) == honest
        claim = promised(p, observers, target)
        attack, told = told_by(p, observers=observers, target=target)
        assert attack.times == 2 * p.attempts
        assert not told.refutes(claim)
        assert told.as_gaussian > 0.8 * float(claim.epsilon(DELTA)), (p, observers)


def test_somebody_alone_has_local_dp_and_it_is_attained():
    p = MaskedDescent(graphs.path(2), 2, sigma=3.0, step=0.5)
    claim = promised(p, (0,), 1)
    _, told = told_by(p, observers=(0,), target=1)
    assert not told.refutes(claim)
    assert told.as_gaussian > 0.85 * float(claim.epsilon(DELTA))


@pytest.mark.parametrize("unit", ["party", "record"])
@pytest.mark.parametrize("sampling", [1.0, 0.5])
def test_on_a_coarse_grid_nothing_moves_further_than_is_accounted_for(unit, sampling):
    """A clip of one and a half steps: a coordinate that is rounded to the wrong side would show at once."""
    many = {"max_records": 2} if unit == "record" else {}
    p = MaskedDescent(graphs.ring(3), 2, sigma=1.0, step=0.5, clip=0.75, grid=0.5, unit=unit, sampling=sampling, **many)
    claim = promised(p, (0,), 1)
    _, told = told_by(p, observers=(0,), target=1)
    assert not told.refutes(claim)
    assert told.mu > 0


def test_the_sums_under_audit_are_those_that_training_makes_its_steps_with():
    """Read off the models, to the last bit: the same models come out of them."""
    rng = np.random.default_rng(5)
    for unit in ("record", "party"):
        p = descent(unit, 0.5, iterations=20)
        data = ModelParties(ConstantGradients(3), list(rng.standard_normal((8, 4, 3))), list(np.zeros((8, 4))))
        sums = trained_sums(p, data, 7, None, [])
        state = begun(np.zeros(3))
        for t, total in enumerate(sums, 1):
            state = stepped(p, state, t, total)
        assert np.array_equal(state.theta, train(p, data, 7).models[0])


def test_sums_that_hide_behind_momentum_or_groups_are_not_misread():
    data = ModelParties(ConstantGradients(1), [np.ones((1, 1))] * 8, [np.zeros(1)] * 8)
    for change in ({"momentum": 0.5}, {"groups": 2}):
        with pytest.raises(InvalidValue, match="without momentum"):
            trained_sums(descent("party", 1.0).replace(**change), data, 0, None, [])


def test_the_ratio_is_that_of_the_two_laws():
    """Against the densities themselves, summed over the coin."""
    V, q, k = 50.0, 0.3, np.array([4.0, -2.0])
    seen = np.array([[3, 1], [-6, 9], [0, 0]])

    def density(x, mean):
        return math.exp(-float(((x - mean) ** 2).sum()) / (2 * V))

    for x, found, replaced in zip(seen, ratios(seen, k, V, q), ratios(seen, k, V, q, -k), strict=True):
        there, not_there, other = (density(x, mean) for mean in (k, 0 * k, -k))
        with_it = (1 - q) * not_there + q * there
        assert found == pytest.approx(math.log(with_it / not_there))
        assert replaced == pytest.approx(math.log(with_it / ((1 - q) * not_there + q * other)))


def test_known_parts_and_gradients_may_depend_on_the_model_on_the_way():
    """What is left of a sum depends on θ, which depends on the sums before."""
    p = MaskedDescent(graphs.ring(3), 3, sigma=4.0, step=0.5, grid=0.5, momentum=0.5)
    sums, start = [np.array([n]) for n in (40, -25, 13)], np.array([1.0])
    models = []

    def known(t, theta):
        models.append(float(theta[0]))
        return np.array([t + round(theta[0])])

    found = ratios_of_sums(p, start, sums, known, lambda t, theta: np.array([5 - t]), honest=2)
    state = begun(start)
    for t, total in enumerate(sums, 1):
        left = int(total[0]) - t - round(state.theta[0])
        assert models[t - 1] == state.theta[0]
        assert found[t - 1] == pytest.approx((left * (5 - t) - (5 - t) ** 2 / 2) / (2 * p.sum.share))
        state = stepped(p, state, t, total)


def test_trials_in_a_row_leave_out_what_is_left_over():
    assert in_a_row(np.arange(7.0), 2).tolist() == [1.0, 5.0, 9.0]
    assert in_a_row(np.arange(8.0).reshape(4, 2), 2).tolist() == [[2.0, 4.0], [10.0, 12.0]]


def test_the_sampled_reading_is_below_the_truth_in_all_but_few_measurements():
    """200 measurements of exact laws at 90 %: at most the allowed part, and a little, may exceed the true ε."""
    rng, true = np.random.default_rng(3), float(sampled_gaussian_curve(1.0, 0.5, 1).epsilon(1e-5))
    beyond = 0
    for _ in range(200):
        there = rng.standard_normal(800) + (rng.random(800) < 0.5)
        told = measure(rng.standard_normal(800), there, 1e-5, confidence=0.9)
        beyond += told.refutes(sampled_gaussian_curve(1.0, 0.5, 1))
    assert beyond <= 40
    assert as_sampled(told, 0.5, 1) < true


def test_a_long_protocol_is_audited_in_short_with_the_promise_for_so_many_iterations():
    p = descent("record", 0.5, iterations=300)
    short = shortened(p)
    assert (short.iterations, short.sigma, short.sampling) == (16, p.sigma, p.sampling)
    assert float(promised(short).epsilon(DELTA)) < float(promised(p).epsilon(DELTA))
    assert "16 instead of 300 iterations" in said(p, short)
    assert said(short, shortened(short)) == ""
    assert shortened(p.replace(attempts=4)).iterations == 4
    assert shortened(descent("party", 0.5, iterations=300)).iterations == 8


def test_the_table_knows_it_and_takes_another_system():
    p = descent("record", 0.5)
    (attack,) = attacks(p, Observers((0,)), 3, SIMULATOR, 0)
    assert isinstance(attack, MembershipAttack)
    assert attack.system is trained_sums
    bug = BUGS["half of the noise"]
    assert attacks(p, Observers((0,)), 3, bug, 0)[0].system is bug
    with pytest.raises(InvalidValue, match="is an observer"):
        MembershipAttack(p, (0,), 0).batch(True, 0)


def test_far_gradients_are_cut_to_the_clip():
    """The crafted record is longer than allowed: a run that does not cut it shows it."""
    assert membership.FAR > 2
    p = descent("record", 1.0)
    attack = MembershipAttack(p, (0,), 3)
    there = attack.system(attack._wide, attack.losses(True), 3, None, [])
    away = attack.system(attack._wide, attack.losses(False), 3, None, [])
    assert (there - away == attack.reach).all()
    assert isinstance(promised(p), ProfileCurve)
