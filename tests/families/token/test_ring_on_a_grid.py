"""A ring that adds whole numbers, from both sides (docs/proofs/token.md#ring-on-a-grid): enumerated laws, fine grids."""

import functools
import itertools
import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import netdp
from netdp.errors import Unsupported
from netdp.families.token.account.grid import mu_squared, seen_delta, segments, sum_of_unequal
from netdp.families.token.account.path import path_energy_blocks
from netdp.families.token.ring import RingSum, hops_of
from netdp.mechanisms.discrete_gaussian import sum_distance
from netdp.protocols.accounting import account, pairwise

EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.0])


def law(variance, reach=90):
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * variance))
    return weights / weights.sum()


def added_up(variances):
    """The law of a sum of discrete Gaussians, by convolution."""
    return functools.reduce(np.convolve, [law(v) for v in variances])


def noises_between_visits(p, observers, u):
    """Hop by hop: the noises in every stretch in which u contributes, written down without the accountant."""
    found, current, mine = [], [], False
    for hop in range(p.rounds * p.n):
        holder = hop % p.n
        if holder in observers:
            if mine:
                found.append(current)
            current, mine = [], False
            continue
        if p.hop_variances[hop]:
            current.append(int(p.hop_variances[hop]))
        mine |= holder == u
    if mine:
        found.append(current + ([p.closing_variance] if p.closing_variance else []))
    return found


def true_delta(p, observers, u, epsilons):
    """δ by the sum over everything that can be seen, moved by `distance` in every stretch, the same way or not."""
    laws = [added_up(v) for v in noises_between_visits(p, observers, u)]
    shift = int(p.distance)
    best = np.zeros(len(epsilons))
    for signs in itertools.product((1, -1), repeat=len(laws)):
        before, after = np.ones(1), np.ones(1)
        for one, sign in zip(laws, signs, strict=True):
            wide = np.pad(one, shift)
            before = np.multiply.outer(before, wide).ravel()
            after = np.multiply.outer(after, np.roll(wide, sign * shift)).ravel()
            keep = (before > 1e-18) | (after > 1e-18)
            before, after = before[keep], after[keep]
        for i, eps in enumerate(epsilons):
            best[i] = max(best[i], np.maximum(before - np.exp(eps) * after, 0).sum())
    return best


CASES = [
    (RingSum(3, 1, sigma=1.0, grid=1.0, sensitivity=1.0), (1,)),
    (RingSum(3, 1, sigma=1.0, grid=1.0, sensitivity=3.0, noise="distributed"), (1,)),
    (RingSum(4, 1, sigma=2.0, grid=1.0, sensitivity=1.5, noise="distributed", closing=0.3), (1,)),
    (RingSum(5, 1, sigma=1.0, grid=0.5, sensitivity=1.0, noise="distributed"), (0, 3)),
    (RingSum(3, 2, sigma=1.0, grid=1.0), (1,)),
    (RingSum(4, 2, sigma=2.0, grid=1.0, noise="distributed"), (2,)),
    (RingSum(4, 3, sigma=2.0, grid=1.0, sensitivity=2.0), (3,)),
    (RingSum(4, 2, sigma=2.0, grid=1.0, noise="distributed"), (0, 2)),
]


@pytest.mark.parametrize(("p", "observers"), CASES, ids=range(len(CASES)))
def test_the_bound_is_the_truth_or_a_little_more(p, observers):
    loss = account(p, observers)
    for u in set(range(p.n)) - set(observers):
        truth = true_delta(p, observers, u, EPSILONS)
        found = np.array([loss.delta(eps)[u] for eps in EPSILONS])
        assert (found >= truth * (1 - 1e-9) - 1e-13).all()
        # segments of one parameter: to the last digits; several are composed on a grid of losses
        assert (found <= truth * 1.03 + 2e-3).all(), (found, truth)


def test_with_one_noise_and_one_segment_it_is_the_truth():
    p = RingSum(3, 1, sigma=1.0, grid=1.0)
    found = seen_delta(p, segments(p, (1,))[0], EPSILONS)
    np.testing.assert_allclose(found, true_delta(p, (1,), 0, EPSILONS), rtol=1e-9)
    real = account(p.replace(grid=None), (1,)).delta(0.0)[0]
    assert found[0] > 1.01 * real  # the real Gaussian's profile is no bound on a coarse grid


@pytest.mark.parametrize("observers", [(3,), (0,), (9,), (2, 6), (1, 3, 8)])
@pytest.mark.parametrize("noise", ["single", "distributed"])
def test_segments_are_those_of_the_path(noise, observers):
    p = RingSum(10, rounds=3, sigma=3.0, noise=noise, closing=0.7, grid=1.0)
    for u, seen in enumerate(segments(p, observers)):
        if u in observers:
            assert seen is None
            continue
        written = sorted(sum(v) for v in noises_between_visits(p, observers, u))
        assert written == sorted(v for (v, _), times in seen for _ in range(times))
        assert len(written) == p.rounds == len(hops_of(p, u))


@pytest.mark.parametrize("noise", ["single", "distributed"])
@pytest.mark.parametrize(("rounds", "dimension"), [(1, 1), (3, 1), (2, 8)])
def test_fine_grids_come_to_the_real_numbers(noise, rounds, dimension):
    p = RingSum(9, rounds, sigma=2.0, noise=noise, grid=2.0**-15, dimension=dimension)
    real = p.replace(grid=None)
    for observers in ((4,), (0, 5), (8,)):
        fine, ideal = (account(one, observers).epsilon(1e-6) for one in (p, real))
        np.testing.assert_allclose(fine, ideal, rtol=1e-3)
        if rounds * dimension > 1:  # a bound with margins, not the exact law
            assert (fine[~np.isnan(fine)] >= ideal[~np.isnan(ideal)] * (1 - 1e-9)).all()
        assert account(p, observers).factor == pytest.approx(account(real, observers).factor, rel=1e-6, nan_ok=True)


def test_coarser_grids_cost_more_in_vectors():
    p = RingSum(6, 2, sigma=2.0, dimension=50, grid=2.0**-12)
    fine, coarse = (account(p.replace(grid=g), [2]).worst_epsilon(1e-6) for g in (2.0**-12, 0.125))
    assert fine < coarse


@pytest.mark.parametrize("observers", [(8,), (2, 4), (7, 9)])
def test_a_value_without_noise_around_it_is_lost_and_that_is_said(observers):
    p = RingSum(10, rounds=3, sigma=2.0, closing=False, grid=2.0**-8)
    loss, real = account(p, observers), account(p.replace(grid=None), observers)
    np.testing.assert_array_equal(np.isinf(loss.epsilon(1e-3)), np.isinf(real.epsilon(1e-3)))
    assert np.isinf(loss.worst_epsilon(1e-3))
    assert np.isinf(loss.factor[~np.isnan(loss.factor)]).any()
    assert any("no protection" in text for text in loss.assumptions)
    json.dumps(loss.to_dict(delta=1e-6), allow_nan=False)
    covered = account(p.replace(closing=True, noise="distributed"), [2])
    assert not any("no protection" in text for text in covered.assumptions)


def test_all_pairs_are_its_columns():
    for noise in ("single", "distributed"):
        p = RingSum(4, 2, sigma=1.0, noise=noise, grid=0.25, sensitivity=0.5)
        both = pairwise(p)
        for v in range(p.n):
            column = account(p, [v])
            np.testing.assert_allclose(both.epsilon(1e-4)[:, v], column.epsilon(1e-4), rtol=0.02)
            np.testing.assert_allclose(both.factor[:, v], column.factor)
        assert np.isnan(np.diag(both.epsilon(1e-4))).all()


def test_sums_of_unequal_parameters_are_as_close_as_stated():
    for variances in ([1, 1], [1, 4], [9, 1, 2], [1, 1, 1, 16], [3, 3, 3]):
        t = sum_of_unequal(np.array(variances))
        total, whole = added_up(variances), law(sum(variances), 90 * len(variances))
        near = whole > 1e-12
        measured = np.abs(np.log(total[near] / whole[near])).max()
        assert measured <= t * (1 + 1e-6) + 1e-9
        assert t <= sum_distance(min(variances), len(variances)) * (1 + 1e-6)
    assert sum_of_unequal(np.array([1, 1])) < 2.1e-4
    assert np.abs(np.log(added_up([1, 1])[180] / law(2, 180)[180])) > 5e-5  # so it is not nothing


def test_the_margin_of_a_sum_counts_for_every_segment_and_coordinate():
    p = RingSum(3, 2, sigma=1.0, noise="distributed", grid=1.0, dimension=3)
    seen = segments(p, (1,))[2]
    assert max(t for (_, t), _ in seen) > 1e-5
    without = tuple(((v, 0.0), k) for (v, _), k in seen)
    assert seen_delta(p, seen, EPSILONS)[1] > seen_delta(p, without, EPSILONS)[1]


def test_classical_ways_on_a_grid():
    p = RingSum(6, 2, sigma=1.0, noise="distributed", grid=0.0625)
    for way in (netdp.local_dp, netdp.trusted_curator):
        assert way(p).claim == "upper"
        assert way(p).epsilon(1e-6)[0] == pytest.approx(way(p.replace(grid=None)).epsilon(1e-6)[0], rel=0.05)
    seen = (((16, 0.0), 2),)
    p = p.replace(grid=0.25)
    assert mu_squared(p, seen) == pytest.approx(2 * 16 / 16)


def test_real_numbers_are_not_changed_by_the_new_fields():
    p = RingSum(5, 2, sigma=2.0)
    assert p.grid is None
    assert account(p, [0]).claim == "exact"
    assert account(p.replace(dimension=4), [0]).mu[1] == account(p, [0]).mu[1]


def test_what_speaks_of_real_numbers_refuses_a_grid_by_name():
    p = RingSum(5, 2, sigma=2.0, grid=0.5)
    with pytest.raises(Unsupported, match=r"grid of 0\.5.*account\(protocol, observers\)"):
        netdp.calibrate(p, 1.0, 1e-6)
    with pytest.raises(Unsupported, match="grid=None"):
        next(path_energy_blocks(p))


def test_the_statement_names_grid_rule_and_noise():
    loss = account(RingSum(5, 2, sigma=2.0, grid=0.5, dimension=3), [0])
    text = " ".join(loss.assumptions)
    for part in ("⌊x/g + ½⌋", "g = 0.5", "at most 3 coordinates", "parameter 16 squared", "cryptographic"):
        assert part in text
    assert "real-valued" not in text


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def printed_t(variances):
    """Σ log((1 + 2S)/(1 − 2S)), largest first, s² = ab/(a + b) of what is there and of what comes."""
    parts, total, t = sorted(variances, reverse=True), 0, mpmath.mpf(0)
    for part in parts:
        if total:
            square = mpmath.mpf(total * part) / (total + part)
            s = mpmath.fsum(mpmath.exp(-2 * mpmath.pi**2 * square * k**2) for k in range(1, 6))
            t += mpmath.log((1 + 2 * s) / (1 - 2 * s))
        total += part
    return t


@pytest.mark.parametrize("variances", [(1, 1), (1, 3, 2), (1, 1, 1, 1, 5), (2, 1)])
def test_sums_of_unequal_noises_are_as_printed(variances):
    with mpmath.workdps(40):
        assert 1 <= float(mpmath.mpf(sum_of_unequal(np.array(variances))) / printed_t(variances)) <= 1 + 2e-7


@pytest.mark.parametrize("dimension", [1, 3])
def test_what_a_ring_on_a_grid_adds_is_as_printed(dimension):
    """μ² = Σ D²/V with 16 units on top; e^{dt}·δ′(ε − 2dt), d coordinates, t of all noises that were added up."""
    p = RingSum(5, rounds=2, sigma=1.0, sensitivity=2.0, grid=1.0, dimension=dimension)
    seen = (((2, 1e-3), 1), ((4, 2e-3), 2))
    squared = Fraction(p.distance) ** 2 * (Fraction(1, 2) + Fraction(2, 4))
    assert float(Fraction(mu_squared(p, seen)) / squared - 1) == pytest.approx(16 * 2.0**-53, rel=0.2, abs=0.0)
    t = dimension * 5e-3
    bare = tuple(((variance, 0.0), times) for (variance, _), times in seen)
    found, ideal = seen_delta(p, seen, EPSILONS[1:]), seen_delta(p, bare, EPSILONS[1:] - 2 * t)
    assert found == pytest.approx(np.minimum(math.exp(t) * ideal, 1.0), rel=1e-12, abs=0.0)
    assert (found > ideal).any()
