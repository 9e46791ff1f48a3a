"""Learning by records and with secret participation (docs/proofs/masked.md#sampled-descent): what is claimed, and calibration."""

import math

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.families.masked.account_descent import against_any, hidden_among, learned_curve
from netdp.families.masked.descent import MaskedDescent
from netdp.mechanisms.noisy_sums import sampled_releases_curve
from netdp.privacy import Adjacency, Unit, gaussian_epsilon
from netdp.privacy.sampled_gaussian import sampled_gaussian_curve
from netdp.protocols.accounting import account
from netdp.protocols.calibration import calibrate

RECORDS = MaskedDescent(graphs.complete(5), 200, 2.5, 0.5, dimension=20, unit="record", sampling=0.05, max_records=1000)
PARTIES = MaskedDescent(graphs.ring(40), 60, 2.0, 0.5, dimension=20, clip=0.5, sampling=0.25)


def test_records_are_a_curators_sampled_descent_with_the_noise_of_the_honest():
    for colluders in (1, 3):
        loss = account(RECORDS, list(range(colluders)))
        ideal = sampled_gaussian_curve(2.5 * math.sqrt(5 - colluders), RECORDS.sampling, 200)
        for delta in (1e-4, 1e-7):
            real, found = float(ideal.epsilon(delta)), float(loss.epsilon(delta)[-1])
            assert real <= found <= real * 1.005
    assert (loss.unit, loss.adjacency, loss.factor) == (Unit.RECORD, Adjacency.ADD_REMOVE, None)
    told = " ".join(loss.assumptions)
    assert f"{RECORDS.threshold}/2^32" in told
    assert "not on the other records" in told
    assert "not the time it takes to answer" in told
    assert "sampled-descent" in " ".join(loss.references)
    assert "one record of one party is added or removed" in loss.describe()


def test_records_without_sampling_move_the_sum_half_as_far_as_a_party_that_is_replaced():
    always = RECORDS.replace(sampling=1.0, sigma=60.0)
    mu = math.sqrt(200 / 4) / 60.0
    assert float(against_any(always, 1).epsilon(1e-6)) == pytest.approx(float(gaussian_epsilon(mu, 1e-6)), rel=5e-3)
    party = always.replace(unit="party", max_records=None)
    assert float(against_any(party, 1).epsilon(1e-6)) == pytest.approx(float(gaussian_epsilon(2 * mu, 1e-6)), rel=5e-3)
    assert against_any(always, 1).factor is not None


def test_parties_that_take_part_at_times_are_replaced_around_absence():
    loss = account(PARTIES, [0])
    ideal = sampled_gaussian_curve(2.0 * math.sqrt(39) / 0.5, PARTIES.sampling, 60, replaced=True)
    found = float(loss.epsilon(1e-6)[1])
    assert float(ideal.epsilon(1e-6)) <= found <= 1.005 * float(ideal.epsilon(1e-6))
    # adding or removing it would be told less of, always taking part more
    assert float(sampled_gaussian_curve(2.0 * math.sqrt(39) / 0.5, PARTIES.sampling, 60).epsilon(1e-6)) < 0.6 * found
    assert account(PARTIES.replace(sampling=1.0), [0]).worst_epsilon(1e-6) > 2 * found
    assert (loss.unit, loss.adjacency) == (Unit.PARTY, Adjacency.REPLACE)


def test_attempts_groups_and_masks_count_as_without_coins():
    one = PARTIES
    twice = account(one.replace(attempts=2), [0])
    np.testing.assert_allclose(
        twice.epsilon(1e-6)[1:], account(one.replace(iterations=120), [0]).epsilon(1e-6)[1:], rtol=1e-6
    )
    grouped = one.replace(groups=4)
    seen = account(grouped, [0])
    assert float(seen.epsilon(1e-5)[4]) == pytest.approx(float(learned_curve(grouped, 9).epsilon(1e-5)), rel=1e-3)
    assert float(seen.epsilon(1e-5)[1]) == pytest.approx(float(learned_curve(grouped, 10).epsilon(1e-5)), rel=1e-3)
    drawn = one.replace(masks=8)
    missed = hidden_among(drawn, 3)[1]
    assert float(account(drawn, [0, 1, 2], fixed_before_draw=True).delta(0.5)[9]) == pytest.approx(
        float(learned_curve(drawn, 37).delta(0.5)) + missed, rel=1e-6
    )
    bound = account(one, colluders=5)
    assert float(bound.epsilon(1e-5).max()) == pytest.approx(
        float(account(one, [1, 2, 3, 4, 5]).epsilon(1e-5)[0]), rel=1e-3
    )
    assert bound.found.epsilon(1e-5) == pytest.approx(float(bound.epsilon(1e-5).max()), rel=1e-3)


def test_the_baselines():
    alone, trusted = netdp.local_dp(RECORDS), netdp.trusted_curator(RECORDS)
    amount = account(RECORDS, [0]).worst_epsilon(1e-6)
    assert trusted.worst_epsilon(1e-6) < amount < alone.worst_epsilon(1e-6)
    assert alone.unit is trusted.unit is Unit.RECORD
    assert alone.adjacency is Adjacency.ADD_REMOVE
    curve = sampled_releases_curve(RECORDS.sum.share, 5, RECORDS.distance, 20, RECORDS.sampling, 200, False)
    assert trusted.worst_epsilon(1e-6) == pytest.approx(float(curve.epsilon(1e-6)), rel=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"dimension": 1},
        {"attempts": 2},
        {"iterations": 1},
        {"sampling": 1.0},
        {"unit": "party", "max_records": None},
    ],
)
@pytest.mark.parametrize("target", [(1.0, 1e-6), (0.1, 1e-8)])
def test_calibration_meets_the_target_and_not_much_less(change, target):
    found = calibrate(RECORDS.replace(**change), *target, colluders=2)
    reached = float(against_any(found, 2).epsilon(target[1]))
    assert target[0] * 0.999 < reached <= target[0]
    assert found.replace(sigma=2.5) == RECORDS.replace(**change)


def test_calibration_on_a_given_grid_and_of_groups():
    coarse = calibrate(RECORDS.replace(grid=2.0**-6), 1.0, 1e-6)
    assert float(against_any(coarse, 1).epsilon(1e-6)) <= 1.0
    assert coarse.sigma > calibrate(RECORDS, 1.0, 1e-6).sigma
    grouped = calibrate(PARTIES.replace(groups=4), 1.0, 1e-6)
    assert 0.999 < float(against_any(grouped, 1).epsilon(1e-6)) <= 1.0
