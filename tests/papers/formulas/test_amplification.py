"""The papers' formulas for rings, walks and learning on walks: computed as printed, and refuted where they fail."""

import math

import numpy as np
import pytest
from scipy import stats

from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.ring import RingHistogram, RingSum
from netdp.families.token.walk import WalkDescent, WalkHistogram, WalkSum
from netdp.papers.formulas import amplification as walk_descent
from netdp.papers.formulas import amplification as walks
from netdp.privacy import GaussianCurve
from netdp.protocols import table
from netdp.protocols.accounting import account

DELTA = 1e-6
SIGMA = math.sqrt(2 * math.log(1.25e8)) / 0.1  # one contribution is (0.1, 1e-8)-DP by the papers' calibration


def composed(epsilon, k, delta):
    return math.sqrt(2 * k * math.log(1 / delta)) * epsilon + k * epsilon * (math.exp(epsilon) - 1)


def published(protocol, observers=(0,), **options):
    return table.published(protocol, observers, progress=None, **options)


# ---- as printed


def test_the_quoted_values_of_theorem_3_spend_three_times_the_delta():
    quoted = [walks.theorem3_2021(n, 100 * n, 0.1, DELTA, DELTA) for n in (100, 1000)]
    assert quoted == pytest.approx([13.304, 12.357], abs=1e-3)
    spent = 100 * 1e-8 + DELTA + DELTA
    assert spent == pytest.approx(3e-6)
    # the loss that the same noise has under local DP, 100 contributions in the open
    assert float(GaussianCurve(10 / SIGMA).epsilon(DELTA)) == pytest.approx(0.673, abs=1e-3)


def test_theorem_3_term_by_term():
    n, T, eps, dp, dh = 400, 40_000, 0.2, 1e-7, 1e-8
    N = T / n + math.sqrt(1.5 * T * math.log(1 / dh))
    gamma = 1 - (1 - 1 / n) ** (math.sqrt(n) / 2)
    long = math.sqrt(2) * eps / n**0.25
    terms = [
        math.sqrt(2 * N * math.log(1 / dp)) * long,
        2 * math.sqrt(2 * N * gamma * math.log(1 / dp)) * eps,
        N * long * (math.exp(long) - 1),
        4 * N * gamma * eps * (math.exp(eps) - 1),
    ]
    assert walks.theorem3_2021(n, T, eps, dp, dh) == pytest.approx(sum(terms), rel=1e-12)
    # with fixed contributions only N changes
    fixed = walks.theorem3_2021(n, T, eps, dp, None, visits=100)
    rescaled = math.sqrt(100 / N) * (terms[0] + terms[1]) + 100 / N * (terms[2] + terms[3])
    assert fixed == pytest.approx(rescaled, rel=1e-12)


def test_section_5_1_network_against_local():
    """Figure 2(a): the network bound is below its local analogue from n = 100 on, with N_v as with a fixed number."""
    for n in (100, 1000, 10_000):
        args = (n, 100 * n, 0.1, DELTA)
        assert walks.theorem3_2021(*args, DELTA) < walks.local_analogue(*args, DELTA)
        fixed = walks.local_analogue(*args, None, visits=100)
        assert fixed == pytest.approx(composed(0.1, 100, DELTA), rel=1e-12)
        assert walks.theorem3_2021(*args, None, visits=100) < fixed
    assert walks.theorem3_2021(10, 1000, 0.1, DELTA, DELTA) > walks.local_analogue(10, 1000, 0.1, DELTA, DELTA)


def test_theorem_of_2022():
    n, T, eps, dp, dh = 1000, 100_000, 0.3, 1e-7, 1e-8
    N = T / n + math.sqrt(3 * T / n * math.log(1 / dh))
    assert walks.theorem3_2022(n, T, eps, dp, dh) == pytest.approx(
        composed(3 * eps / math.sqrt(n), N + T / n, dp), rel=1e-12
    )
    n = 10_000
    N = T / n + math.sqrt(3 * T / n * math.log(1 / dh))
    one = 21 * math.sqrt(math.log(4e9)) * eps / math.sqrt(n)
    assert walks.histogram_2022(n, T, eps, 1e-9, dp, dh) == pytest.approx(composed(one, N + T / n, dp), rel=1e-12)


# ---- as guarantees


def test_guarantees_have_the_formulas_value():
    third = DELTA / 3
    ring = published(RingSum(10, 3, sigma=8.0, sensitivity=2.0))
    one = math.sqrt(2 * math.log(1.25 * 6 / DELTA)) * 2.0 / 8.0
    assert ring.epsilon(DELTA)[1:] == pytest.approx(composed(one, 3, DELTA / 2), rel=1e-10)

    n, T = 1000, 100_000
    N = 100 + math.sqrt(300 * math.log(1 / third))
    one = math.sqrt(2 * math.log(1.25 * (N + 100) / third)) / SIGMA
    walk = published(WalkSum(n, T, sigma=SIGMA, sender="hidden"))
    assert walk.epsilon(DELTA) == pytest.approx(walks.theorem3_2022(n, T, one, third, third), rel=1e-10)
    assert walk.epsilon(DELTA) == pytest.approx(0.919, abs=1e-3)

    one = math.sqrt(2 * math.log(1.25 * 100 / third)) / SIGMA
    for first in (published(WalkSum(n, T, sigma=SIGMA), version="2021"), published(WalkSum(n, T, SIGMA, "known"))):
        assert first.epsilon(DELTA) == pytest.approx(walks.theorem3_2021(n, T, one, third, third), rel=1e-10)

    histogram = WalkHistogram(20_000, 20_000, domain=4, gamma=0.9, sender="hidden")
    N = 1 + math.sqrt(3 * math.log(1 / third))
    expected = walks.histogram_2022(20_000, 20_000, histogram.epsilon0, third / (N + 1), third, third)
    assert published(histogram).epsilon(DELTA) == pytest.approx(expected, rel=1e-10)

    around = RingHistogram(2000, 2, domain=4, gamma=0.95)
    one = around.epsilon0 * 12 * math.sqrt(math.log(4 / DELTA) / 2000)
    assert published(around).epsilon(DELTA)[1] == pytest.approx(composed(one, 2, DELTA / 2), rel=1e-10)


@pytest.mark.parametrize(
    "protocol",
    [
        RingSum(10, 3, sigma=8.0),
        RingHistogram(2000, 2, domain=4, gamma=0.95),
        WalkSum(100, 1000, sigma=50.0, sender="hidden"),
        WalkHistogram(20_000, 20_000, domain=4, gamma=0.9, sender="hidden"),
        WalkDescent(100, 1000, sigma=5.0, step=0.1, clip=0.4, sender="hidden"),
        WalkDescent(100, 1000, sigma=5.0, step=0.1, clip=0.4, sender="known", contributions=12),
    ],
    ids=lambda p: p.kind,
)
def test_shape_and_claim(protocol):
    loss = published(protocol, (3,))
    values = loss.epsilon(DELTA)
    if protocol.kind.startswith("ring"):
        assert values.shape == (protocol.n,)
        assert np.flatnonzero(np.isnan(values)).tolist() == [3]
        assert len(set(values[~np.isnan(values)].tolist())) == 1
    else:  # by symmetry one curve holds for all
        assert np.shape(values) == ()
    assert loss.claim.value == "published"
    assert not loss.is_certified
    assert len(loss.errata) >= 3
    assert loss.references
    # smaller δ, larger ε, at every entry of the table and between them
    grid = np.geomspace(1e-3, 1e-12, 40)
    curve = [float(np.ravel(loss.epsilon(d))[0]) for d in grid]
    assert np.all(np.diff(curve) > 0)
    assert loss.describe(DELTA)


def test_front_door():
    assert account(WalkSum(100, 1000, sigma=50.0), 0, method="published").claim.value == "published"


def test_colluders_replace_n_by_n_over_c():
    two = published(WalkSum(1000, 100_000, sigma=2 * SIGMA, sender="hidden"), (0, 1))
    half = published(WalkSum(500, 100_000, sigma=2 * SIGMA, sender="hidden"), (0,))
    assert two.epsilon(DELTA) == pytest.approx(half.epsilon(DELTA), rel=1e-12)
    draft = WalkDescent(1000, 10_000, sigma=5.0, step=0.1, clip=0.4, sender="hidden", contributions=12)
    assert published(draft, (0, 1)).epsilon(DELTA) > published(draft).epsilon(DELTA)


def test_small_delta_outside_the_theorem_is_not_stated():
    """ε < 1 holds for large δ₀ only: below, the curve says nothing, that is ε = inf."""
    loss = published(WalkSum(100, 1000, sigma=6.6, sender="hidden"))
    assert math.isfinite(loss.epsilon(1e-3))
    assert loss.epsilon(1e-9) == math.inf


@pytest.mark.parametrize(
    ("protocol", "observers", "options", "message"),
    [
        (WalkSum(100, 1000, sigma=1.0, sender="hidden"), (0,), {}, "stated for ε < 1"),
        (WalkSum(100, 1000, sigma=50.0, sender="hidden", tokens=2), (0,), {}, "one token"),
        (WalkSum(100, 1000, sigma=50.0, sender="known"), (0,), {"version": "2022"}, "does not see from whom"),
        (WalkHistogram(20_000, 20_000, 4, 0.9, sender="known"), (0,), {}, "does not see from whom"),
        (
            WalkSum(100, 1000, 50.0, "receiver-known"),
            (0,),
            {"version": "2022"},
            "nor who gets it next; .*'receiver-known'",
        ),
        (WalkHistogram(20_000, 20_000, 4, 0.9, "hidden"), (0,), {"version": "2021"}, "no theorem for histograms"),
        (WalkHistogram(500, 5000, 4, 0.9, "hidden"), (0,), {}, "needs n ≥ 14²"),
        (WalkHistogram(20_000, 20_000, 4, 1.0, "hidden"), (0,), {}, "no loss to bound"),
        (RingSum(10, 3, sigma=8.0), (0, 1), {}, "one observer, got 2"),
        (RingHistogram(1000, 3, 4, 0.9), (0,), {}, "n > 1000"),
        (RingHistogram(2000, 3, 4, 0.5), (0,), {}, "ε₀ < 1/2"),
        (WalkDescent(100, 1000, sigma=5.0, step=0.1, expansion=1.1), (0,), {}, "do not expand"),
        (WalkDescent(4, 1000, sigma=5.0, step=0.1), (0, 1, 2), {}, "n/c ≥ 2"),
    ],
)
def test_refusals(protocol, observers, options, message):
    with pytest.raises(Unsupported, match=message):
        published(protocol, observers, **options)


def test_wrong_values_are_named():
    with pytest.raises(InvalidValue, match="unknown version '2020'"):
        published(WalkSum(100, 1000, sigma=50.0, sender="hidden"), version="2020")
    with pytest.raises(InvalidValue, match=r"delta0 must lie in \(0, 1\), got 0"):
        walks.local_epsilon(1.0, 0)
    with pytest.raises(InvalidValue, match="give delta_hat"):
        walks.theorem3_2021(100, 1000, 0.1, 1e-6, None)
    with pytest.raises(Unsupported, match="the largest order is 2"):
        walk_descent.iteration_rdp(2.1, 100, 1, 2.0, 1.0)
    with pytest.raises(InvalidValue, match="order must be > 1"):
        walk_descent.iteration_rdp(1.0, 100, 1, 2.0, 1.0)


# ---- errata of the ring


def test_the_last_users_of_a_ring_are_released_without_noise():
    hops = RingSum(10, 3, sigma=1.0, closing=False).hop_noise
    assert np.flatnonzero(hops).tolist()[-1] == 27  # user 7: what user 9 adds after user 8's last visit has no cover
    assert (hops[28:] == 0).all()


@pytest.mark.parametrize(("n", "rounds"), [(10, 3), (5, 1), (4, 9), (7, 6)])
def test_printed_deviations(n, rounds):
    noises = np.count_nonzero(RingSum(n, rounds, sigma=1.0).hop_noise)
    printed = walks.ring_sum_deviation(n, rounds, 1.0) ** 2
    assert noises == math.ceil(rounds * n / (n - 1))
    assert round(printed) == rounds * n // (n - 1) <= noises
    spread = (RingSum(n, rounds, sigma=1.0, noise="distributed").hop_noise ** 2).sum()
    assert spread == pytest.approx(rounds + 1 - 1 / n)
    assert walks.remark1_deviation(n, rounds, 1.0) ** 2 >= spread - 1e-12


def test_printed_gamma_protects_too_little_on_short_rings_and_too_much_on_long_ones():
    for n, less in ((1001, True), (1900, True), (2100, False), (100_000, False)):
        printed, right = (walks.theorem2_gamma(0.1, DELTA, n, 5, corrected=c) for c in (False, True))
        assert (printed < right) is less
    # the corrected γ does what the proof says: ε₀ of the response, through the shuffling bound, is ε
    gamma = walks.theorem2_gamma(0.1, DELTA, 10_000, 5, corrected=True)
    epsilon0 = RingHistogram(10_000, 1, 5, gamma).epsilon0
    assert 12 * epsilon0 * math.sqrt(math.log(1 / DELTA) / 10_000) == pytest.approx(0.1, rel=1e-12)
    assert walks.theorem2_shuffled(epsilon0, DELTA, 10_000, corrected=True) == pytest.approx(0.1, rel=1e-12)
    # read backwards, the printed γ promises less loss for a smaller δ
    backwards = [walks.theorem2_shuffled(epsilon0, d, 10_000) for d in (1e-3, 1e-9)]
    assert backwards[1] < backwards[0]
    # and the printed ε₀ at n = 1001 is about twice what is allowed
    ratio = walks.theorem2_local(0.1, DELTA, 1001) / walks.theorem2_local(0.1, DELTA, 1001, corrected=True)
    assert ratio == pytest.approx(1.99, abs=0.01)


def test_debias_is_unbiased_only_when_corrected():
    n, rounds, gamma, L = 50, 3, 0.4, 4
    true = np.array([10.0, 20.0, 50.0, 70.0])  # 150 values
    # expectation of the token: every value is kept with 1 − γ or replaced, and γn random elements at the start
    token = (1 - gamma) * true + gamma * n * rounds / L + gamma * n / L
    np.testing.assert_allclose(walks.debias(token, n, rounds, gamma, corrected=True), true)
    wrong = walks.debias(token, n, rounds, gamma)
    np.testing.assert_allclose(wrong - true, gamma * (n * (rounds + 1) - 1) / L / (1 - gamma))


# ---- errata of the walk


def test_theorem_3_does_not_fall_with_n():
    values = [walks.theorem3_2021(n, 100 * n, 0.1, DELTA, DELTA) for n in (10**4, 10**8, 10**12)]
    assert values == pytest.approx([12.05, 11.90, 11.90], abs=0.01)
    later = [walks.theorem3_2022(n, 100 * n, 0.1, DELTA, DELTA) for n in (10**4, 10**8)]
    assert later[0] / later[1] > 100


def test_failure_probability_of_the_short_cycles_is_left_out():
    n, T = 1000, 100_000
    mean = walks.visits_2021(n, T, DELTA) * walks.short_cycle_share(n)
    assert math.exp(-mean / 2) == pytest.approx(5.7e-6, abs=1e-7)
    # (6) says P(X ≥ 2·mean) ≤ e^{−mean/2}; not so
    N, share = 100_000, 0.002
    assert stats.binom.sf(2 * 200 - 1, N, share) > 1e6 * math.exp(-100)


def test_groups_lose_more_than_k_delta():
    assert float(GaussianCurve(1 / SIGMA).delta(0.1)) < 1e-8
    assert float(GaussianCurve(2 / SIGMA).delta(0.1)) == pytest.approx(1.1e-5, abs=1e-6)


def cycle_delta(n, m, epsilon, ends_known):
    """δ(ε) of one cycle of m contributions, u's being +Δ/2 or −Δ/2: a lower bound on the true one, by quadrature."""
    scale = SIGMA * math.sqrt(m)
    x = np.linspace(-12, 12, 40_001) * scale
    inner = m - 2 if ends_known else m
    weights = stats.binom.pmf(np.arange(inner + 1), inner, 1 / n)
    total = 0.0
    for ends in range(3 if ends_known else 1):
        chance = stats.binom.pmf(ends, 2, 1 / n) if ends_known else 1.0
        shifts = (np.arange(inner + 1) + ends) / 2
        keep = weights > 1e-18
        P, Q = (
            (weights[keep, None] * stats.norm.pdf(x, sign * shifts[keep, None], scale)).sum(axis=0) for sign in (1, -1)
        )
        total += chance * np.maximum(P - math.exp(epsilon) * Q, 0).sum() * (x[1] - x[0])
    return total


@pytest.mark.parametrize(("n", "m"), [(9, 2), (16, 2), (36, 3), (64, 4)])
def test_long_cycles_with_known_ends_exceed_the_claim(n, m):
    assert m >= math.sqrt(n) / 2  # "long"
    claimed = m / n * 1e-8
    assert cycle_delta(n, m, math.sqrt(2) * 0.1 / n**0.25, ends_known=True) > 2 * claimed


@pytest.mark.parametrize(("n", "m"), [(4, 1), (4, 4), (16, 1), (16, 16), (100, 10), (100, 100)])
def test_one_cycle_of_2022_is_not_refuted(n, m):
    """Hidden ends, length ≤ n: 3ε/√n holds with room; a fifth of it does not for the full cycle, so the test can fail."""
    assert cycle_delta(n, m, 3 * 0.1 / math.sqrt(n), ends_known=False) < 1e-8
    if m == n:
        assert cycle_delta(n, m, 0.3 * 0.1 / math.sqrt(n), ends_known=False) > 1e-8


def test_visits_of_2022_fail_for_few_contributions():
    n = 2000
    assert stats.binom.sf(math.floor(walks.visits_2022(n, n, DELTA)), n, 1 / n) == pytest.approx(1.0e-5, abs=1e-6)
    assert stats.binom.sf(math.floor(walks.visits_2022(n, 100 * n, DELTA)), 100 * n, 1 / n) < DELTA


def test_classical_calibration_outside_its_range():
    real = [float(GaussianCurve(1 / walks.local_sigma(e, DELTA)).epsilon(DELTA)) for e in (1.0, 10.0)]
    assert real == pytest.approx([0.78, 10.25], abs=0.01)
    assert walks.local_epsilon(walks.local_sigma(0.3, DELTA, 2.0), DELTA, 2.0) == pytest.approx(0.3)


# ---- learning


@pytest.mark.parametrize(
    ("epsilon", "central", "network", "local"), [(10.0, 0.697, 1.23, 5.87), (1.0, 6.97, 10.98, 46.9)]
)
def test_calibrations_of_the_authors_code(epsilon, central, network, local):
    args = (epsilon, DELTA, 2000, 20_000, 0.4)
    assert walk_descent.central_calibration(*args) == pytest.approx(central, rel=1e-3)
    found = walk_descent.network_calibration(*args)
    assert found.sigma == pytest.approx(network, rel=3e-3)
    assert found.sigma == max(found.sigma_spotted, found.sigma_rest)
    assert (found.contributions, found.spotted) == (12, 1)
    assert walk_descent.local_calibration(*args) == pytest.approx(local, rel=1e-3)


def test_calibration_with_few_users_and_many_steps():
    """n = 200, T = 100 000: many contributions, the closed formula."""
    found = walk_descent.network_calibration(1.0, DELTA, 200, 100_000, 0.4)
    rest = 4 * 0.4 * math.sqrt(2 * 600 * math.log(200) * math.log(1e6) / 200) / (1 - found.share)
    assert found.sigma_rest == pytest.approx(rest, rel=1e-12)
    assert found.contributions == 600
    with pytest.raises(InvalidValue, match="epsilon must be a finite number > 0, got 0"):
        walk_descent.network_calibration(0, DELTA, 200, 1000, 0.4)


@pytest.mark.parametrize(
    ("n", "K", "sigma", "clip"), [(2000, 12, 1.23, 0.4), (2000, 12, 40.0, 0.4), (100, 300, 9.0, 1.0)]
)
def test_iteration_epsilon_is_the_minimum_over_the_covered_orders(n, K, sigma, clip):
    orders = np.linspace(1, walk_descent.largest_order(sigma, clip), 200_002)[1:]
    by_hand = 4 * K * orders * clip**2 * math.log(n) / (sigma**2 * n) + math.log(1e6) / (orders - 1)
    found = walk_descent.iteration_epsilon(n, K, sigma, clip, DELTA)
    assert found <= by_hand.min() * (1 + 1e-12)
    assert found == pytest.approx(by_hand.min(), rel=1e-6)
    order = orders[by_hand.argmin()]
    rdp = walk_descent.iteration_rdp(order, n, K, sigma, clip)
    assert rdp + math.log(1e6) / (order - 1) == pytest.approx(found, rel=1e-6)


def test_learning_guarantee():
    draft = WalkDescent(2000, 20_000, sigma=3.0, step=0.1, clip=0.4, sender="hidden", contributions=12)
    hidden = published(draft).epsilon(DELTA)
    assert hidden == pytest.approx(walk_descent.iteration_epsilon(2000, 12, 3.0, 0.4, DELTA), rel=1e-10)
    part = DELTA / 4
    one = math.sqrt(2 * math.log(1.25 / part)) * 0.8 / 3.0  # one spotted contribution, sensitivity 2L
    known = published(draft.replace(sender="known")).epsilon(DELTA)
    assert known == pytest.approx(walk_descent.iteration_epsilon(2000, 12, 3.0, 0.4, part) + one, rel=1e-10)
    free = published(draft.replace(contributions=None)).epsilon(DELTA)
    count = walks.visits_2022(2000, 20_000, DELTA / 2)
    assert free == pytest.approx(walk_descent.iteration_epsilon(2000, count, 3.0, 0.4, DELTA / 2), rel=1e-10)


def test_the_authors_network_sigma_does_not_meet_its_own_theorem():
    """σ calibrated for ε = 10 has more by the theorem that it is calibrated from: sensitivity L, half the constant, δ."""
    sigma = walk_descent.network_calibration(10.0, DELTA, 2000, 20_000, 0.4).sigma
    draft = WalkDescent(2000, 20_000, sigma=sigma, step=0.1, clip=0.4, sender="known", contributions=12)
    assert published(draft).epsilon(DELTA) > 12.0


def test_more_contributions_are_spotted_than_the_bound_says():
    assert math.ceil(walk_descent.spotted_contributions(2000, 12, DELTA)) == 1
    assert stats.binom.sf(1, 12, 2 / 2000) == pytest.approx(6.6e-5, abs=1e-6)
    assert stats.binom.sf(12, 20_000, 1 / 2000) == pytest.approx(
        0.208, abs=1e-3
    )  # a fifth of the users reaches the cap


def test_mean_of_one_over_the_distance_to_the_next_look():
    n = 500
    t = np.arange(1, 60 * n)
    law = (1 - 1 / n) ** (t - 1) / n
    endless = (law / t).sum()
    assert endless == pytest.approx(math.log(n) / (n - 1), rel=1e-9)
    assert endless > math.log(n) / n
    # with a release after T = 10n steps: a contribution at a uniformly random step is seen after min(t, rest) steps
    T = 10 * n
    seen = np.cumsum(law / t)  # E[1/t; t ≤ r]
    rest = np.arange(1, T + 1)
    released = (seen[rest - 1] + (1 - 1 / n) ** rest / rest).mean()
    assert released / endless == pytest.approx(1.1, abs=0.02)


def test_the_ring_histogram_says_one_thing_about_what_it_computes():
    loss = published(RingHistogram(1500, 2, 5, 0.96))
    said = [*loss.assumptions, loss.claim.meaning]
    assert not any("as printed" in line for line in said)
    assert sum("with one correction" in line for line in said) == 1
    assert any("as printed" in line for line in published(RingSum(50, 3, 9.0)).assumptions)
    one = 12 * RingHistogram(1500, 2, 5, 0.96).epsilon0 * math.sqrt(math.log(4e6) / 1500)  # δ/2K per round
    assert loss.epsilon(1e-6)[1] == pytest.approx(composed(one, 2, 5e-7), rel=1e-9)


@pytest.mark.parametrize(
    "protocol",
    [
        RingSum(50, 3, 9.0),
        RingHistogram(1500, 2, 5, 0.96),
        WalkSum(100, 1000, 50.0),
        WalkHistogram(10_000, 10_000, 4, 0.97, sender="hidden"),
        WalkDescent(100, 1000, sigma=5.0, step=0.1),
    ],
    ids=lambda p: p.kind,
)
def test_unknown_options_are_refused_by_name(protocol):
    assert math.isfinite(np.nanmax(published(protocol).epsilon(1e-5)))
    with pytest.raises(InvalidValue, match=f"the published loss of {type(protocol).__name__} takes no option 'banana'"):
        published(protocol, banana=1)


def test_the_lectures_statement_is_a_published_formula():
    """ln²(n)/n times the local Rényi loss: informal, never a guarantee, and not one of the certified losses."""
    protocol = WalkDescent(2000, 4_000_000, sigma=40.0, step=0.1, clip=0.4)
    stated = account(protocol, [0], method="published", version="lecture")
    local = 2000 * 0.8**2 / (2 * 40.0**2)
    assert stated.rdp(2.0)[1] == pytest.approx(2 * local * math.log(2000) ** 2 / 2000)
    assert not stated.is_certified
    assert stated.errata
    with pytest.raises(InvalidValue, match="unknown version '2021' for descent"):
        account(protocol, [0], method="published", version="2021")
    with pytest.raises(Unsupported, match="one observer"):
        account(protocol, [0, 1], method="published", version="lecture")


def test_the_authors_calibration_carries_the_errata_of_their_code():
    found = walk_descent.network_calibration(1.0, 1e-6, 2000, 20_000, 0.4)
    assert any("sensitivity L" in erratum for erratum in found.errata)
