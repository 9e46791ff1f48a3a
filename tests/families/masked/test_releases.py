"""Several noisy sums together: the laws enumerated, and rosters as an adversary would choose them.

Proof: docs/proofs/masked.md#masked-attempts.
"""

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked.account import against_any, component_curve, fewest_honest
from netdp.families.masked.protocol import MaskedSum
from netdp.mechanisms.discrete_gaussian import rounded_delta
from netdp.mechanisms.noisy_sums import Release, releases_curve, repeated_curve, repeated_delta, stacked_delta
from netdp.privacy import gaussian_delta
from netdp.protocols.accounting import account, pairwise

EPS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)


def noise(variance, shares):
    """The exact law of a sum of shares as an array, its middle at 0; what is cut off is below 1e-17."""
    reach = math.ceil(9 * math.sqrt(variance)) + 1
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2.0 * variance))
    one /= one.sum()
    law = np.ones(1)
    for _ in range(shares):
        law = np.convolve(law, one)
    return law


def shifted(law, by):
    """The law, and the law moved by so many steps, on one range."""
    return np.concatenate([law, np.zeros(by)]), np.concatenate([np.zeros(by), law])


def product(pairs):
    """The joint laws of independent releases, under both inputs."""
    first, second = np.ones(1), np.ones(1)
    for a, b in pairs:
        first, second = np.multiply.outer(first, a).ravel(), np.multiply.outer(second, b).ravel()
    return first, second


def hockey(one, other, epsilon):
    return max(
        float(np.maximum(one - math.exp(epsilon) * other, 0).sum()),
        float(np.maximum(other - math.exp(epsilon) * one, 0).sum()),
    )


# ── the same shift several times ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("variance", "shares", "distance"), [(1, 1, 1), (1, 2, 2), (2, 3, 1), (4, 1, 3), (9, 2, 5)])
@pytest.mark.parametrize("times", [2, 3])
def test_the_same_shift_several_times_counts_as_one_larger_release(variance, shares, distance, times):
    law = noise(variance, shares)
    truth = product([shifted(law, distance)] * times)
    curve = repeated_curve(Release(variance, shares, distance), times)
    for epsilon in EPS:
        exact = hockey(*truth, epsilon)
        found = float(curve.delta(epsilon))
        assert exact <= found + 1e-13
        margin = 5e-2 if variance == 1 else 1e-4  # shares of one step: their sums are not quite discrete Gaussians
        assert found <= exact * (1 + margin) + 1e-10


def test_the_same_shift_of_vectors():
    """Two attempts with two coordinates: the worst of all shifts of at most the stated length, enumerated."""
    variance, longest = 2, 3.0
    law = noise(variance, 1)
    curve = repeated_curve(Release(variance, 1, longest, 2), 2)
    worst = dict.fromkeys(EPS, 0.0)
    for a, b in itertools.product(range(4), repeat=2):
        if 0 < math.hypot(a, b) <= longest:
            # both attempts of one coordinate by their sufficient sum would be what is to be proved: enumerate them
            one, other = product([shifted(law, a), shifted(law, a)]), product([shifted(law, b), shifted(law, b)])
            for epsilon in EPS:
                worst[epsilon] = max(worst[epsilon], _hockey_of_two(one, other, epsilon))
    for epsilon, exact in worst.items():
        assert 0 < exact <= float(curve.delta(epsilon)) + 1e-12


def _hockey_of_two(one, other, epsilon):
    """δ of a pair of independent parts, by the law of each part's likelihood ratio: outcomes of equal ratio are one."""
    parts = []
    for a, b in (one, other):
        ratio = np.round(np.log((b + 1e-300) / (a + 1e-300)), 9)
        kinds, place = np.unique(ratio, return_inverse=True)
        parts.append((np.bincount(place, a, len(kinds)), np.bincount(place, b, len(kinds))))
    return hockey(*product(parts), epsilon)


@pytest.mark.parametrize("dimension", [1, 40])
def test_k_attempts_are_a_gaussian_with_root_k_times_the_shift(dimension):
    protocol = MaskedSum(graphs.ring(50), sigma=0.5, dimension=dimension)
    mu = protocol.distance / math.sqrt(45 * protocol.share)
    for times in (2, 5, 40):
        curve = component_curve(protocol, 45, releases=times)
        eps = np.linspace(0.1, 3.0, 7)
        np.testing.assert_allclose(curve.delta(eps), gaussian_delta(mu * math.sqrt(times), eps), rtol=3e-3)


def test_one_release_is_what_it_was():
    for protocol in (
        MaskedSum(graphs.ring(50), sigma=0.5),
        MaskedSum(graphs.ring(9), sigma=1.0, grid=1.0),
        MaskedSum(graphs.ring(9), sigma=1.0, dimension=5),
    ):
        once = component_curve(protocol, 7)
        listed = releases_curve([(protocol.share, 7, protocol.distance, protocol.dimension)])
        for other in (component_curve(protocol, 7, 1), listed):
            np.testing.assert_array_equal(once.epsilons, other.epsilons)
            np.testing.assert_array_equal(once.deltas, other.deltas)


def test_above_some_size_nothing_is_summed_and_little_lost():
    release = Release(2**24, 15, 20_000)
    eps = np.linspace(0.2, 4.0, 9)
    both = repeated_delta(release, 2, eps)
    mu = math.sqrt(2) * release.mu
    np.testing.assert_allclose(both, gaussian_delta(mu, eps), rtol=1e-4)
    assert (both >= np.asarray(gaussian_delta(mu, eps)) * (1 - 1e-9)).all()


# ── different releases ────────────────────────────────────────────────────────────────────────────────────────────────

MIXTURES = {
    "two numbers": [(4, 1, 2, 1), (9, 2, 5, 1)],
    "three numbers": [(1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 2, 1)],
    "coarse and fine": [(1, 2, 1, 1), (100, 1, 10, 1)],
}


@pytest.mark.parametrize("name", MIXTURES)
def test_different_releases_are_bounded(name):
    truth = product([shifted(noise(v, h), int(distance)) for v, h, distance, _ in MIXTURES[name]])
    curve = releases_curve(MIXTURES[name])
    for epsilon in EPS:
        assert hockey(*truth, epsilon) <= float(curve.delta(epsilon)) + 1e-12


def test_fine_grids_lose_little():
    """Against the enumerated truth where it can be enumerated, and against the Gaussian where it cannot."""
    mixture = [(400, 1, 20, 1), (900, 1, 15, 1)]
    truth = product([shifted(noise(v, h), distance) for v, h, distance, _ in mixture])
    curve = releases_curve(mixture)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        exact = hockey(*truth, epsilon)
        assert exact <= float(curve.delta(epsilon)) <= exact * 1.12
    fine = [(10**6, 20, 3000, 1), (10**7, 9, 4000, 12), (10**6, 20, 3000, 1)]
    mu = math.sqrt(sum(distance**2 / (v * h) for v, h, distance, _ in fine))
    for epsilon in (0.1, 1.0, 3.0):
        target = float(gaussian_delta(mu, epsilon))
        assert target * (1 - 1e-9) <= float(releases_curve(fine).delta(epsilon)) <= target * 1.001


def test_many_releases_share_one_tail():
    """A hundred releases on coarse grids: their margins grow with the number of coordinates, not with its tail."""
    many = [(1000 + i, 10, 10, 1) for i in range(100)]
    mu = math.sqrt(sum(distance**2 / (v * h) for v, h, distance, _ in many))
    epsilon = releases_curve(many).epsilon(1e-6)
    from netdp.privacy import GaussianCurve

    ideal = float(GaussianCurve(mu).epsilon(1e-6))
    assert ideal <= float(epsilon) <= ideal * 1.01 + 0.01


def test_equal_numbers_with_different_shifts_are_covered():
    """Two releases of one size, one moved by 3 steps and the other, after looking, by 1 either way: never worse than 3 and 3."""
    law = noise(4, 1)
    curve = releases_curve([(4, 1, 3, 1)] * 2)
    pad = 3

    def at(by):
        return np.concatenate([np.zeros(pad + by), law, np.zeros(pad - by)])

    first, second = [], []
    for place in range(len(law) + 2 * pad):
        by = 1 if place % 2 else -1  # chosen after the first was seen
        first.append(at(0)[place] * at(0))
        second.append(at(3)[place] * at(by))
    for epsilon in EPS:
        assert hockey(np.concatenate(first), np.concatenate(second), epsilon) <= float(curve.delta(epsilon)) + 1e-13


def test_what_moves_nothing_costs_nothing_and_order_does_not_matter():
    assert float(releases_curve([(4, 2, 0, 1), (9, 1, 0.0, 3)]).epsilon(0.0)) == 0.0
    one, other = [(400, 9, 60, 1), (1000, 20, 70, 3)], [(1000, 20, 70, 3), (9, 9, 0, 2), (400, 9, 60, 1)]
    assert float(releases_curve(one).epsilon(1e-6)) == pytest.approx(float(releases_curve(other).epsilon(1e-6)))
    more = releases_curve([*one, (1000, 20, 70, 3)])
    assert float(more.epsilon(1e-6)) > float(releases_curve(one).epsilon(1e-6))
    assert float(releases_curve([]).epsilon(0.0)) == 0.0


def test_margins_are_all_there():
    """Without sums of shares and rounding, the bound would be the Gaussian's: it must lie above, also for one coordinate each."""
    eps = np.linspace(0.0, 4.0, 9)
    for releases in ({Release(5, 3, 4): 2, Release(7, 1, 2): 1}, {Release(50, 1, 9.0, 3): 2}):
        mu = math.sqrt(sum(times * r.mu**2 for r, times in releases.items()))
        assert (stacked_delta(Counter(releases), eps) >= np.asarray(gaussian_delta(mu, eps))).all()


def printed_delta(releases, eps):
    """Steps 1 to 3 of the proof, with 40 digits: the least over c, and no zCDP."""
    with mpmath.workdps(40):
        pi2, parts = 2 * mpmath.pi**2, list(releases.items())

        def apart(square):
            s = mpmath.nsum(lambda k: mpmath.exp(-pi2 * square * k**2), [1, 12])
            return mpmath.log((1 + 2 * s) / (1 - 2 * s))

        sums = mpmath.mpf(0)
        for r, times in parts:
            for k in range(1, r.shares):
                sums += times * r.dimension * apart(mpmath.mpf(r.variance) * k / (k + 1))
        best = mpmath.mpf(1)
        for care in (10**2, 10**4, 10**7):
            t, square = sums, mpmath.mpf(0)
            for r, times in parts:
                v, numbers = mpmath.mpf(r.variance * r.shares), times * r.dimension
                tau = min(mpmath.log(numbers * care * v) / pi2, v / 2)
                t += numbers * apart(tau)
                square += times * mpmath.mpf(r.distance) ** 2 / (v - tau)
            mu, e = mpmath.sqrt(square), eps - 2 * t
            ideal = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
            best = min(best, mpmath.exp(t) * ideal)
        return float(best)


@pytest.mark.parametrize(
    "releases",
    [
        {Release(20, 1, 9.0, 3): 2, Release(31, 1, 6): 1},
        {Release(1, 40, 8): 1, Release(50, 1, 9.0, 3): 2},
        {Release(2, 9, 3): 3, Release(1, 30, 7): 1},
        {Release(100, 4, 20): 1, Release(100, 5, 20): 1},
    ],
    ids=str,
)
def test_the_bound_is_the_one_that_is_printed(releases):
    """Formula pin: every margin of the three steps, evaluated anew; zCDP is worse at these ε."""
    eps = np.array([1.5, 2.0, 3.0])
    found = stacked_delta(Counter(releases), eps)
    for value, epsilon in zip(found.tolist(), eps.tolist(), strict=True):
        exact = printed_delta(releases, epsilon)
        assert exact * (1 - 1e-13) <= value <= exact * (1 + 2e-8)


def test_vectors_of_coarse_shares_cost_as_printed():
    """Formula pin: e^{dt}·δ′(ε − 2dt), t = K·t_h + t_K of K releases of h shares; δ′ of one noise of all their variance."""
    with mpmath.workdps(40):

        def apart(variance, parts):
            t = mpmath.mpf(0)
            for k in range(1, parts):
                s = mpmath.nsum(lambda i, k=k: mpmath.exp(-2 * mpmath.pi**2 * variance * k / (k + 1) * i**2), [1, 6])
                t += mpmath.log((1 + 2 * s) / (1 - 2 * s))
            return t

        once, thrice = (
            float(4 * apart(mpmath.mpf(1), 5)),
            float(4 * (3 * apart(mpmath.mpf(1), 5) + apart(mpmath.mpf(5), 3))),
        )
    eps = np.array([1.0, 2.0])
    for times, t in ((1, once), (3, thrice)):
        found = repeated_delta(Release(1, 5, 2.0, 4), times, eps)
        single = rounded_delta(5 * times, 2.0 * times, 4, eps - 2 * t)
        assert found == pytest.approx(math.exp(t) * single, rel=1e-8, abs=0.0)
        assert (found > single * (1 + t / 2)).all()


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ((0, 1, 1, 1), "variance of a release must be a whole number ≥ 1"),
        ((4, 0, 1, 1), "shares of a release"),
        ((4, 1, -1, 1), "distance of a release must be a finite number ≥ 0"),
        ((4, 1, math.nan, 2), "distance of a release"),
        ((4, 1, 1.5, 1), "moves by whole grid steps, got 1.5"),
        ((4, 1, 1, 0), "dimension of a release"),
    ],
)
def test_nonsense_is_refused(release, words):
    with pytest.raises(InvalidValue, match=words):
        releases_curve([release])


# ── attempts and absences ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "rosters",
    [
        [(0, 1, 2, 3), (0, 1, 2, 3)],
        [(0, 1, 2, 3), (0, 1, 3)],
        [(0, 1, 3), (0, 2, 3)],
        [(0, 1, 3), (0, 1, 3)],
        [(0, 1, 2, 3)],
    ],
    ids=str,
)
def test_whatever_rosters_the_coalition_forces_two_attempts_are_covered(rosters):
    """Party 3 observes 0, who publishes at most twice, at most one absent: at least two honest shares each time."""
    protocol = MaskedSum(graphs.complete(4), sigma=2.0, sensitivity=3.0, grid=1.0, attempts=2, absent=1)
    loss = account(protocol, [3])
    truth = product([shifted(noise(protocol.share, len(roster) - 1), 3) for roster in rosters])
    for epsilon in EPS:
        exact, found = hockey(*truth, epsilon), float(np.nanmax(loss.delta(epsilon)))
        assert exact <= found + 1e-13
        if rosters == [(0, 1, 3), (0, 1, 3)]:  # the worst that is allowed is attained
            assert found <= exact * (1 + 1e-4) + 1e-10


def test_rosters_that_depend_on_what_was_seen_are_covered():
    """The second roster is the smaller one only if the first sum was high: the joint law, not a product."""
    protocol = MaskedSum(graphs.complete(4), sigma=2.0, sensitivity=3.0, grid=1.0, attempts=2, absent=1)
    curve = against_any(protocol, 1).curve
    first = shifted(noise(4, 3), 3)
    few, all_three = shifted(noise(4, 2), 3), shifted(noise(4, 3), 3)
    seen = [[], []]
    for place in range(len(first[0])):
        second = few if place > len(first[0]) // 2 else all_three
        for b in (0, 1):
            seen[b].append(first[b][place] * second[b])
    one, other = (np.concatenate(part) for part in seen)
    for epsilon in EPS:
        assert hockey(one, other, epsilon) <= float(curve.delta(epsilon)) + 1e-13


def test_the_fewest_honest_shares_are_counted():
    protocol = MaskedSum(graphs.ring(20), sigma=0.5, absent=4)
    assert fewest_honest(protocol, 3) == 13
    for loss in (account(protocol, [0, 1, 2]), against_any(protocol, 3)):
        assert loss.worst_epsilon(1e-6) == pytest.approx(float(component_curve(protocol, 13).epsilon(1e-6)))
    assert np.nanmax(pairwise(protocol).epsilon(1e-6)) == pytest.approx(
        float(component_curve(protocol, 15).epsilon(1e-6))
    )
    assert np.nanmax(account(protocol.replace(attempts=3), [0]).factor) == pytest.approx(3 / 15)
    with pytest.raises(InvalidValue, match="16 observers and absent=4 leave nobody of 20 parties"):
        account(protocol, list(range(16)))
    assert account(protocol, list(range(15))).worst_epsilon(1e-6) == pytest.approx(
        float(component_curve(protocol, 1).epsilon(1e-6))
    )


def test_every_attempt_and_every_absence_costs():
    base = MaskedSum(graphs.ring(12), sigma=0.5)
    losses = [account(base.replace(attempts=k), [0]).worst_epsilon(1e-6) for k in (1, 2, 4)]
    assert losses == sorted(losses)
    assert losses[1] > 1.3 * losses[0]
    losses = [account(base.replace(absent=a), [0]).worst_epsilon(1e-6) for a in (0, 1, 5, 10)]
    assert losses == sorted(losses)
    on_a_path = base.replace(masks=graphs.path(12))
    assert account(on_a_path.replace(attempts=3), [5]).factor[0] == pytest.approx(3 / 5)
    once, thrice = (account(on_a_path.replace(attempts=k), [5]).epsilon(1e-6)[0] for k in (1, 3))
    assert thrice == pytest.approx(float(component_curve(on_a_path, 5, 3).epsilon(1e-6)), rel=1e-5)
    assert once < thrice


def test_assumptions_say_what_the_proof_uses():
    base = MaskedSum(graphs.ring(12), sigma=0.5)
    said = " ".join(account(base.replace(attempts=3, absent=2), [0]).assumptions)
    assert "at most 3 times in all" in said
    assert "a roster of at least 10 parties to which all of them have agreed, each to one roster per attempt" in said
    assert "pads are bound to attempt and roster" in said
    once = " ".join(account(base, [0]).assumptions)
    assert "publishes once" in once
    assert "roster" not in once


def test_absences_on_a_mask_graph_are_refused():
    for masks in (4, graphs.path(12)):
        with pytest.raises(Unsupported, match=r'absent=1 on a mask graph that is not complete.*masks="complete"'):
            MaskedSum(graphs.ring(12), sigma=0.5, masks=masks, absent=1)
    assert MaskedSum(graphs.ring(12), sigma=0.5, masks=graphs.complete(12), absent=1).smallest_roster == 11


# ── single records ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_record_is_protected_against_being_added_or_removed():
    protocol = MaskedSum(graphs.ring(12), sigma=0.5, unit="record", reach=100.0, grid=0.25)
    loss = account(protocol, [0])
    assert (loss.unit.value, loss.adjacency.value) == ("record", "add-remove")
    assert "one record of one party is added or removed; which parties take part is public" in loss.describe()
    assert "a party's value is the sum of its rounded records" in " ".join(loss.assumptions)
    assert protocol.distance == 4
    assert loss.worst_epsilon(1e-6) == pytest.approx(float(releases_curve([(4, 11, 4, 1)]).epsilon(1e-6)))
    party = account(protocol.replace(unit="party"), [0])
    assert (party.unit.value, party.adjacency.value) == ("party", "replace")
    assert "user level" in party.describe()
    assert protocol.replace(reach=7.0).distance == protocol.distance  # the reach has no part in the privacy


def test_baselines_of_records_are_about_records():
    from netdp.protocols.alternatives import local_dp, trusted_curator

    protocol = MaskedSum(graphs.ring(12), sigma=0.5, unit="record", attempts=2)
    for loss in (local_dp(protocol), trusted_curator(protocol)):
        assert (loss.unit.value, loss.adjacency.value) == ("record", "add-remove")
    assert local_dp(protocol).worst_epsilon(1e-6) == pytest.approx(float(component_curve(protocol, 1).epsilon(1e-6)))
