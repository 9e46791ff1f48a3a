"""Masked sums with Laplace noise in shares: rate, distance, account, calibration, plan, simulation, and the noise that is drawn.

Proof: docs/proofs/masked.md#laplace-shares.
"""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.audit.noise import noise_checks
from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked.account import against_any, component_curve
from netdp.families.masked.plan import laplace_sigma, plan_masked
from netdp.families.masked.protocol import MaskedSum, held_to, summed_records
from netdp.mechanisms.laplace import DiscreteLaplace
from netdp.mechanisms.laplace_shares import LaplaceShare
from netdp.mechanisms.laplace_sums import LaplaceRelease, laplace_curve
from netdp.privacy.gaussian import gaussian_mu
from netdp.protocols.alternatives import local_dp, trusted_curator
from netdp.protocols.planning import baselines_at


def laplace(n=16, sigma=0.4265, **options):
    return MaskedSum(graphs.complete(n), sigma, law="laplace", **options)


# ── what is stated ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_gaussian_sums_are_written_as_before():
    plain = MaskedSum(graphs.ring(5), 1.0)
    assert not {"law", "honest", "threshold"} & set(plain.to_dict())
    made = laplace(honest=11, absent=2, threshold=11)
    assert {"law": "laplace", "honest": 11, "threshold": 11}.items() <= made.to_dict().items()
    for p in (plain, made):
        assert MaskedSum.from_dict(p.to_dict()) == p


@pytest.mark.parametrize("sigma", [0.001, 0.4265, 3.0, 1e4])
@pytest.mark.parametrize("honest", [1, 11])
def test_the_noise_is_no_smaller_than_stated_and_hardly_larger(sigma, honest):
    p = laplace(sigma=sigma, honest=honest)
    asked = (sigma / p.step) ** 2
    assert asked * (1 - 1e-14) <= p.share_variance <= asked * 1.001 + 1e-3
    assert p.share_noise == LaplaceShare(p.rate, honest)
    scale = Fraction(
        math.isqrt(math.ceil(2**32 * (honest * Fraction(sigma / p.step) ** 2 / 2 + Fraction(1, 12))) - 1) + 1
    )
    assert p.rate == 2**16 / scale  # b² = V/2 + 1/12, b rounded up to a multiple of 2⁻¹⁶


def test_by_default_all_but_one_observer_make_the_noise():
    assert laplace().parts == 15
    assert laplace(absent=3).parts == 12
    assert laplace(honest=9, absent=3).parts == 9


def test_distances():
    assert laplace(sensitivity=1.0, grid=2.0**-4).distance == 16
    assert laplace(sensitivity=1.01, grid=2.0**-4).distance == 17
    # two vectors: each coordinate gains less than a step: ⌈Δ(1 + 2e-9)/g⌉ + d − 1
    assert laplace(sensitivity=1.0, grid=2.0**-4, dimension=3).distance == 17 + 2
    assert laplace(sensitivity=1.0, grid=2.0**-4, dimension=3, unit="record").distance == 16
    assert laplace(sensitivity=0.01, grid=2.0**-4, dimension=3, unit="record", sigma=1.0).distance == 1


def test_two_values_never_lie_further_apart_than_the_distance():
    rng = np.random.default_rng(0)
    p = laplace(sensitivity=1.0, grid=2.0**-4, dimension=3, sigma=1.0)
    largest = 0
    for _ in range(4000):
        start, way = rng.uniform(-1, 1, 3), rng.dirichlet(np.ones(3)) * rng.choice([-1, 1], 3)
        steps = np.floor(np.array([start, start + way]) * 16 + 0.5)
        largest = max(largest, int(np.abs(steps[0] - steps[1]).sum()))
    assert 17 < largest <= p.distance


def test_records_are_held_in_whole_steps():
    p = laplace(sensitivity=1.0, grid=2.0**-4, dimension=4, unit="record", reach=50.0, sigma=1.0)
    rng = np.random.default_rng(1)
    records = rng.dirichlet(np.ones(4), size=3000) * rng.choice([-1, 1], (3000, 4)) * rng.uniform(0.9, 1, (3000, 1))
    each = np.stack([summed_records(p, record[None]) for record in records])
    assert np.abs(each).sum(axis=1).max() == 16
    assert (np.abs(np.rint(records * 16)).sum(axis=1) > 16).any()  # rounding alone does not do
    assert (summed_records(p, records) == each.sum(axis=0)).all()  # each by itself
    assert np.abs(each - records * 16).max() < 1.0
    with pytest.raises(InvalidValue, match="L1 norm"):
        summed_records(p, np.array([[0.7, 0.7, 0.0, 0.0]]))
    assert np.abs(held_to(np.array([[3, -2], [1, 1]]), np.array([[2.6, 1.6], [1.0, 1.0]]), 4)).sum(axis=1).tolist() == [
        4,
        2,
    ]


def test_the_modulus_holds_the_noise_of_all():
    p = laplace(n=5, sigma=1.0, honest=1, grid=2.0**-6)
    assert p.furthest_noise(5) == math.ceil(Fraction(4, 3) * (50 + 5) / p.rate)
    # P(|X| ≥ t) ≤ 2·E e^{λX}·e^{−λt} at λ = 3r/4
    r = float(p.rate)
    log_moment = 5 * math.log((math.cosh(r) - 1) / (math.cosh(r) - math.cosh(3 * r / 4)))
    assert math.log(2) + log_moment - 3 * r / 4 * p.furthest_noise(5) < math.log(4e-22)
    for rate in (1e-4, 0.1, 1.0, 5.0, 30.0):
        assert (math.cosh(rate) - 1) / (math.cosh(rate) - math.cosh(0.75 * rate)) <= 16 / 7 + 1e-6
    with pytest.raises(InvalidValue, match="cannot hold"):
        p.replace(modulus=2**9)


def test_refusals():
    with pytest.raises(InvalidValue, match="unknown law"):
        MaskedSum(graphs.ring(4), 1.0, law="uniform")
    with pytest.raises(InvalidValue, match="law='laplace'"):
        MaskedSum(graphs.ring(4), 1.0, honest=3)
    with pytest.raises(InvalidValue, match="not so many shares"):
        laplace(n=4, honest=5)
    with pytest.raises(InvalidValue, match="less than one step of"):
        laplace(sigma=1e-4, grid=1.0)
    with pytest.raises(InvalidValue, match="too fine"):
        laplace(sigma=1e4, grid=2.0**-40)
    with pytest.raises(Unsupported, match="share_noise"):
        _ = laplace().share
    with pytest.raises(Unsupported, match="has no rate"):
        _ = MaskedSum(graphs.ring(4), 1.0).rate


# ── the account ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("colluders", [1, 3, 5, 6, 9])
def test_a_coalition_faces_the_shares_that_are_left(colluders):
    p = laplace(honest=11)
    release = LaplaceRelease(p.rate, 11, 16 - colluders, p.distance)
    expected = laplace_curve(release)
    found = netdp.account(p, colluders=colluders)
    assert found.worst_epsilon(1e-6) == pytest.approx(float(expected.epsilon(1e-6)), rel=1e-12)
    if colluders <= 5:
        assert found.worst_epsilon(0.0) == release.pure
    else:
        assert found.worst_epsilon(0.0) > 1.15 * release.pure
    assert found.factor is None


def test_local_and_curator_use_the_same_shares():
    p = laplace(honest=11)
    assert local_dp(p).worst_epsilon(1e-6) == float(component_curve(p, 1).epsilon(1e-6))
    assert trusted_curator(p).worst_epsilon(1e-6) == float(component_curve(p, 16).epsilon(1e-6)) < 1


def test_components_of_a_mask_graph():
    p = MaskedSum(graphs.ring(6), 1.0, masks=graphs.path(6), law="laplace", honest=3)
    found = netdp.account(p, [1, 5]).epsilon(1e-6)
    assert np.isnan(found[[1, 5]]).all()
    assert found[0] == pytest.approx(float(component_curve(p, 1).epsilon(1e-6)), rel=1e-6)
    assert found[2:5] == pytest.approx(float(component_curve(p, 3).epsilon(1e-6)), rel=1e-6)


def test_attempts_are_composed():
    p = laplace(honest=13, attempts=3)
    once, thrice = against_any(p.replace(attempts=1), 3), against_any(p, 3)
    assert thrice.worst_epsilon(0.0) == pytest.approx(3 * once.worst_epsilon(0.0), rel=1e-9)
    assert once.worst_epsilon(1e-6) < thrice.worst_epsilon(1e-6) <= 3 * once.worst_epsilon(0.0) * (1 + 1e-9)


def test_the_assumptions_name_the_law():
    said = " ".join(netdp.account(laplace(honest=11, dimension=2, unit="record"), colluders=3).assumptions)
    for words in ("NB(1/11, e^−r)", "L1 norm", "taken back by single steps"):
        assert words in said


# ── noise for a target ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-6, 0.01])
@pytest.mark.parametrize("colluders", [1, 3])
def test_calibrated_noise_is_the_least(delta, colluders):
    p = netdp.calibrate(laplace(absent=2), 1.0, delta, colluders=colluders)
    assert p.honest == 14 - colluders
    assert netdp.account(p, colluders=colluders).worst_epsilon(delta) <= 1.0
    less = p.replace(sigma=p.sigma * (1 - 1e-4))
    assert netdp.account(less, colluders=colluders).worst_epsilon(delta) > 1.0


def test_pure_noise_is_the_closed_form():
    p = netdp.calibrate(laplace(), 0.5, 0.0, colluders=5)
    assert p.rate * p.distance == Fraction(1, 2)
    variance = 0.5 / math.sinh(float(p.rate) / 2) ** 2 / 11
    assert p.sigma == pytest.approx(p.step * math.sqrt(variance), rel=1e-6)
    assert p.sigma == laplace_sigma(p.step, 2 * Fraction(p.distance), 11)


def test_a_coarse_grid_takes_no_less_noise_than_one_step():
    p = netdp.calibrate(laplace(grid=1.0), 20.0, 0.0, colluders=5)
    assert p.sigma * math.sqrt(11) == pytest.approx(1.0)
    assert netdp.account(p, colluders=5).worst_epsilon(0.0) < 20


def test_calibration_with_shares_that_are_stated():
    few = netdp.calibrate(laplace(honest=15), 1.0, 1e-6, colluders=3)
    assert few.honest == 15
    assert netdp.account(few, colluders=3).worst_epsilon(1e-6) <= 1.0
    assert few.sigma > 1.1 * netdp.calibrate(laplace(), 1.0, 1e-6, colluders=3).sigma
    twice = netdp.calibrate(laplace(attempts=2), 1.0, 0.0, colluders=3)
    assert 0.999 < netdp.account(twice, colluders=3).worst_epsilon(0.0) <= 1.0
    with pytest.raises(Unsupported, match="epsilon = 0"):
        netdp.calibrate(laplace(), 0.0, 1e-6)


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.1, 2.57), (1.0, 2.99), (4.0, 3.38)])
def test_where_laplace_noise_is_the_smaller(epsilon, ratio):
    """One Gaussian noise of Δ₂/μ against √2·Δ₁/ε: Laplace wins while Δ₁/Δ₂ is below this."""
    assert epsilon / (math.sqrt(2) * float(gaussian_mu(epsilon, 1e-6))) == pytest.approx(ratio, abs=0.006)


@pytest.mark.parametrize(
    ("n", "colluders", "absent", "error"), [(16, 1, 0, 1.03), (16, 3, 2, 1.21), (50, 10, 5, 1.20), (5, 1, 0, 1.12)]
)
def test_errors_over_the_best_curators(n, colluders, absent, error):
    plan = plan_masked(graphs.complete(n), 1.0, 1e-6, colluders=colluders, absent=absent)
    assert plan.law == "laplace"
    assert plan.best.rmse / plan.curator_rmse == pytest.approx(error, abs=0.006)
    assert plan.times_curator == pytest.approx(math.sqrt(n / (n - colluders - absent)), rel=1e-3)
    assert plan.curator_rmse == baselines_at(n, 1.0, 1e-6)[1][1] == pytest.approx(math.sqrt(2) / n)
    assert plan.guarantee.worst_epsilon(0.0) <= 1.0  # δ was not needed
    assert (plan.threshold is None) == (absent == 0)
    assert plan.protocol.threshold == plan.threshold
    assert plan.honest == n - colluders - absent
    assert plan.errors["gaussian"] > 2.9 * plan.errors["laplace"]


def test_plans_take_the_law_with_the_smaller_error():
    many = plan_masked(graphs.complete(8), 1.0, 1e-6, dimension=20)
    assert many.law == "gaussian"
    assert many.errors["gaussian"] < many.errors["laplace"]
    assert many.curator_law == "Gaussian"
    assert many.times_curator == pytest.approx(math.sqrt(8 / 7), rel=1e-2)
    often = plan_masked(graphs.complete(8), 1.0, 1e-6, attempts=20)
    assert often.law == "gaussian"
    forced = plan_masked(graphs.complete(8), 1.0, 1e-6, law="gaussian")
    assert list(forced.errors) == ["gaussian"]
    assert forced.curator_law == "Laplace"
    none = plan_masked(graphs.complete(8), 1.0, 0.0)
    assert list(none.errors) == ["laplace"]
    with pytest.raises(InvalidValue, match="unknown law"):
        plan_masked(graphs.complete(8), 1.0, 1e-6, law="cauchy")


def test_a_plan_says_where_no_fair_threshold_is():
    unfair = plan_masked(graphs.complete(5), 1.0, 1e-6, colluders=1, absent=1)
    assert unfair.threshold == 4
    assert unfair.fair is False
    assert any("not fair" in note for note in unfair.notes)
    none = plan_masked(graphs.complete(5), 1.0, 1e-6, colluders=3, absent=1)
    assert none.threshold is None
    assert any("no threshold" in note for note in none.notes)
    old = plan_masked(graphs.complete(16), 1.0, 1e-6, colluders=3, absent=2, attempts=2)
    assert old.threshold is None
    assert old.attempts == 2


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("spread", ["flood", "average"])
def test_runs_err_as_predicted(spread):
    p = laplace(n=8, sigma=0.5, honest=7, spread=spread)
    values = np.linspace(0, 1, 8)
    errors = [netdp.simulate(p, values, seed=seed).estimates[0, 0] - values.mean() for seed in range(1500)]
    assert np.mean(np.square(errors)) == pytest.approx(netdp.expected_error(p, values).total, rel=0.15)
    assert netdp.expected_error(p).noise == pytest.approx(p.share_variance * p.step**2 / 8, rel=1e-12)


def test_vectors_are_held_to_their_l1_distance():
    p = laplace(n=4, sigma=0.5, dimension=2)
    netdp.simulate(p, [[0.0, 0.0], [0.5, 0.5], [0.5, 0.5], [0.2, 0.2]], seed=0)
    with pytest.raises(InvalidValue, match="apart"):
        netdp.simulate(p, [[0.0, 0.0], [0.8, 0.8], [0.5, 0.5], [0.2, 0.2]], seed=0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda p: LaplaceShare(p.rate, p.parts + 1),
        lambda p: LaplaceShare(p.rate, p.parts - 1),
        lambda p: DiscreteLaplace(p.rate * Fraction(33, 10)),
        lambda p: LaplaceShare(p.rate * Fraction(21, 20), p.parts),
    ],
    ids=["one more", "one fewer", "a whole noise each", "less noise"],
)
def test_an_audit_of_the_noise_catches_a_wrong_shape(wrong):
    p = laplace(honest=11)
    assert all(check.ok for check in noise_checks(p, 1, draws=100_000))
    spoilt = dataclasses.replace(p)
    spoilt.__dict__["share_noise"] = wrong(p)
    assert not all(check.ok for check in noise_checks(spoilt, 1, draws=100_000))
