"""Budgets under adaptive choice (docs/proofs/privacy.md#adaptive-composition): formulas pinned, best analysts never beat them."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from netdp.audit.analysts import best_analyst
from netdp.errors import InvalidValue, NetdpError, Refused
from netdp.mechanisms.noisy_sums import Release, repeated_curve, sampled_releases_curve
from netdp.numerics.arrays import UNIT
from netdp.privacy import Claim, Filter, GaussianCurve, Guarantee, Odometer, ProfileCurve, RenyiCurve, SharedCurve
from netdp.privacy import filters as module
from netdp.privacy.filters import LEVELS, PURE, SLACK, costs
from netdp.privacy.profile import composed

DELTA = 1e-6


def response(epsilon):
    """Binary randomized response."""
    return ProfileCurve([0.0, epsilon], [math.tanh(epsilon / 2), 0.0])


def laplace(epsilon, points=200):
    at = np.linspace(0.0, epsilon, points)
    return ProfileCurve(at, np.maximum(-np.expm1((at - epsilon) / 2), 0.0))


def pair_of(losses, masses):
    """A symmetric pair of laws: mass under P at each positive loss, mirrored, the rest at 0; and its curve."""
    losses, masses = np.asarray(losses), np.asarray(masses)
    p = np.concatenate([masses, masses * np.exp(-losses), [0.0]])
    p[-1] = 1 - p.sum()
    assert p[-1] >= 0
    every = np.concatenate([losses, -losses, [0.0]])
    q = p * np.exp(-every)
    at = np.concatenate([[0.0], np.sort(losses)])
    deltas = [np.maximum(p - math.exp(e) * q, 0.0).sum() for e in at]
    return p, q, ProfileCurve(at, np.minimum.accumulate(deltas))


def random_pair(rng):
    losses = np.sort(rng.uniform(0.05, 3.0, rng.integers(1, 6)))
    masses = rng.dirichlet(np.ones(losses.size + 1))[:-1] * rng.uniform(0.05, 0.5)
    return pair_of(losses, masses)


def tradeoff(p, q, alpha):
    """The least chance to miss Q's alternative P at a false alarm rate alpha, by Neyman and Pearson: likely points first."""
    order = np.argsort(-p / q, kind="stable")
    x, y = np.concatenate([[0.0], np.cumsum(q[order])]), np.concatenate([[1.0], 1 - np.cumsum(p[order])])
    return np.interp(alpha, x, y)


# ── formula pins ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_parts_of_delta_are_the_printed_ones():
    sums = module._Sums(np.array([0.5, 3.0]), np.array([1e-6, 1e-9]))
    for j, (epsilon, delta) in enumerate([(0.5, 1e-6), (3.0, 1e-9)]):
        assert sums.deltas[:, j].tolist() == pytest.approx([delta * 2**-12, *[delta * (1 - 2**-12) / 2] * 2])
        assert sums.deltas[:, j].sum() <= delta * (1 + 1e-15)
        assert sums.slacks[:, j].tolist() == pytest.approx((sums.deltas[:, j] * 2**-12).tolist())
        assert sums.orders[j] == pytest.approx(1 + 2 * math.log(2 / (delta * (1 - 2**-12))) / epsilon, rel=1e-12)
    assert PURE == SLACK == 2**-12


def test_an_odometer_gives_away_no_more_than_its_delta():
    odometer = Odometer(DELTA, 3.0)
    levels, parts = odometer._sums.epsilons, odometer._sums.deltas.sum(axis=0)
    assert (np.diff(levels) > 0).all()
    assert levels[16 + LEVELS - 1] == pytest.approx(1.2 * 3.0)
    assert levels[16] == pytest.approx(1.2 * 3.0 * 1.06 ** -(LEVELS - 1))
    # a quarter for the first loss alone, a tenth for all that is further out
    assert parts[16 : 16 + LEVELS] == pytest.approx(0.65 * DELTA / LEVELS)
    assert parts[:16].sum() + parts[16 + LEVELS :].sum() <= 0.1 * DELTA
    assert parts.sum() + 0.25 * DELTA <= DELTA * (1 + 1e-12)
    assert parts.sum() + 0.25 * DELTA >= 0.98 * DELTA


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomized_response_is_the_gaussian_that_it_touches(epsilon):
    spent, used = costs(response(epsilon), np.array([4.0]), np.full((3, 1), 1e-12))
    assert spent[0, 0] == pytest.approx(epsilon)
    assert used[0, 0] == 0
    assert math.sqrt(spent[1, 0]) == pytest.approx(-2 * stats.norm.ppf(1 / (1 + math.exp(epsilon))), rel=1e-6)
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    exact = math.log(p**4 * (1 - p) ** -3 + (1 - p) ** 4 * p**-3) / 3
    assert exact <= spent[2, 0] <= exact * (1 + 1e-9) + 1e-10


def test_gaussian_curves_are_themselves():
    spent, used = costs(GaussianCurve(0.3), np.array([5.0, 20.0]), np.full((3, 2), 1e-12))
    assert spent[1].tolist() == pytest.approx([0.09, 0.09])
    assert spent[2].tolist() == pytest.approx([5 * 0.045, 20 * 0.045])
    assert used[1:].tolist() == [[0, 0], [0, 0]]
    assert spent[0].tolist() == pytest.approx([float(GaussianCurve(0.3).epsilon(1e-12))] * 2)
    assert used[0].tolist() == [1e-12, 1e-12]


def test_a_table_of_a_gaussian_is_nearly_that_gaussian():
    gaussian = GaussianCurve(0.3)
    table = ProfileCurve.of(gaussian, np.linspace(0.0, float(gaussian.epsilon(1e-30)), 2001))
    spent, _ = costs(table, np.array([5.0]), np.full((3, 1), 1e-12))
    assert 0.3 <= math.sqrt(spent[1, 0]) <= 0.3 * (1 + 1e-5)


@pytest.mark.parametrize("seed", range(60))
def test_a_curve_is_gaussian_but_for_its_slack(seed):
    """f ≥ f_μ − s at every false alarm rate; and not for a μ a little smaller."""
    rng = np.random.default_rng(seed)
    p, q, curve = random_pair(rng)
    s = float(rng.choice([1e-9, 1e-4, 1e-2])) * float(curve.delta(0.0))
    mu = math.sqrt(costs(curve, np.array([3.0]), np.full((3, 1), s))[0][1, 0])
    order = np.argsort(-p / q, kind="stable")
    alpha = np.union1d(np.linspace(0, 1, 2001), np.cumsum(q[order]).clip(0, 1))
    for a, b in ((p, q), (q, p)):
        found = tradeoff(a, b, alpha)
        assert (found >= stats.norm.cdf(-stats.norm.ppf(alpha) - mu) - s - 1e-12).all()
    short = 0.999 * mu
    worst = min(
        (tradeoff(a, b, alpha) - stats.norm.cdf(-stats.norm.ppf(alpha) - short) + s).min() for a, b in ((p, q), (q, p))
    )
    assert worst < 0


@pytest.mark.parametrize("seed", range(60))
def test_a_divergence_is_that_of_a_law_near_by(seed):
    """P with its s largest losses cut off, and put where P is least likely: never above what is charged, and hardly below."""
    rng = np.random.default_rng(seed)
    p, q, curve = random_pair(rng)
    s = float(rng.choice([1e-9, 1e-4, 1e-2])) * float(curve.delta(0.0))
    order = float(rng.uniform(1.5, 12.0))
    near, left = p.copy(), s
    for i in np.argsort(-p / q, kind="stable"):
        cut = min(near[i], left)
        near[i], left = near[i] - cut, left - cut
    left = s
    for i in np.argsort(p / q, kind="stable"):
        put = min(max(q[i] - near[i], 0.0), left)
        near[i], left = near[i] + put, left - put
    assert abs(near.sum() - 1) < 1e-12
    assert left < 1e-15
    assert np.abs(near - p).sum() / 2 <= s + 1e-15
    exact = math.log(np.sum(near**order * q ** (1 - order))) / (order - 1)
    charged = costs(curve, np.array([order]), np.full((3, 1), s))[0][2, 0]
    # as printed: what is left of P at its own losses, and α·s for what was put elsewhere
    printed = math.log(np.sum(np.minimum(near, p) * (p / q) ** (order - 1)) + order * s) / (order - 1)
    assert exact - 1e-12 <= charged
    assert printed - 1e-12 <= charged <= printed + 1e-9


def test_slack_is_charged_for_all_that_is_no_gaussian():
    slacks = np.array([[1e-11], [2e-11], [3e-11]])
    _, used = costs(response(0.4), np.array([5.0]), slacks)
    assert used[:, 0].tolist() == [0.0, 2e-11, 3e-11]
    _, used = costs(GaussianCurve(0.4).self_compose(1), np.array([5.0]), slacks)
    assert used[:, 0].tolist() == [1e-11, 0.0, 0.0]
    table = ProfileCurve.of(GaussianCurve(0.3), np.linspace(0.0, float(GaussianCurve(0.3).epsilon(1e-30)), 500))
    assert costs(table, np.array([5.0]), slacks)[1].tolist() == slacks.tolist()


def test_slack_is_counted_beside_the_losses():
    """So many losses that each fail with the chance that one may use are more than δ, although nothing else is lost."""
    sums = module._Sums(np.array([1.0]), np.array([DELTA]))
    failing = ProfileCurve([0.0, 1.0], [0.999 * sums.slacks[1, 0]] * 2)
    for times, holds in ((4000, True), (4097, False), (9000, False)):
        sums = module._Sums(np.array([1.0]), np.array([DELTA]))
        sums.add(failing, times)
        assert sums.spent[1:].max() == 0
        assert sums.hold()[0] == holds
    assert 9000 * float(failing.delta(1.0)) > DELTA


def test_the_rounding_of_sums_is_on_top(monkeypatch):
    mu, asked = 0.3, []
    monkeypatch.setattr(module, "gaussian_delta", lambda mu, epsilons: asked.append(mu) or np.zeros_like(epsilons))
    one, _ = costs(GaussianCurve(mu), np.array([5.0]), np.full((3, 1), 1e-12))
    assert Fraction(one[1, 0]) >= Fraction(mu) ** 2 * (1 + 2 * Fraction(UNIT))
    assert Fraction(one[2, 0]) >= 5 * Fraction(mu) ** 2 / 2 * (1 + Fraction(UNIT))
    sums = module._Sums(np.array([1.0]), np.array([DELTA]))
    sums.add(response(0.4), 3)
    each, slack = costs(response(0.4), sums.orders, sums.slacks)
    for k in range(3):
        assert Fraction(sums.spent[k, 0]) >= 3 * Fraction(each[k, 0]) * (1 + 2 * Fraction(UNIT))
        assert Fraction(sums.used[k, 0]) >= 3 * Fraction(slack[k, 0]) * (1 + 2 * Fraction(UNIT)) * (k > 0)
    sums.hold()
    assert Fraction(asked[-1][0]) ** 2 >= Fraction(sums.spent[1, 0]) * (1 + 6 * Fraction(UNIT))
    # a conversion that ends six units below the part of δ does not fit: eight are added to it
    sums.spent[0], sums.spent[1] = math.inf, math.inf
    for log_delta in np.linspace(-20.0, -10.0, 41):
        monkeypatch.setattr(module, "order_log_delta", lambda *_, x=log_delta: np.array([x]))
        sums.used[:] = 0.0
        sums.deltas[2] = np.exp(log_delta) * (1 + 6 * UNIT)
        assert not sums.hold()[0]
        sums.deltas[2] = np.exp(log_delta) * (1 + 16 * UNIT)
        assert sums.hold()[0]


@pytest.mark.parametrize("epsilon", [0.01, 0.4, 2.0])
def test_the_margins_of_a_pair_are_as_printed(epsilon):
    curve = response(epsilon)
    pair = module._Pair(curve, 0.0)
    with mpmath.workdps(40):
        top, end = mpmath.mpf(float(curve.deltas[0])), mpmath.mpf(float(pair.losses[1]))
        a = top / mpmath.expm1(end)
        assert pair.p[0] >= (top + a) * (1 + 8 * UNIT)
        assert pair.q[0] <= a * (1 - 8 * UNIT)
        p, q = mpmath.mpf(float(pair.p[0])), mpmath.mpf(float(pair.q[0]))
        mu = mpmath.sqrt(2) * (mpmath.erfinv(2 * p - 1) - mpmath.erfinv(2 * q - 1))
        found = float(pair.mu(np.array([0.0]))[0])
        assert found >= mu * (1 + mpmath.mpf("0.9e-12")) + mpmath.mpf("0.9e-13")
        for order in (1.5, 6.0, 40.0):
            # 1 − P + Pφ − Q(1 − 1/φ) with φ = e^{(α−1)ε}, 10⁻¹³ on what is subtracted from, 10⁻¹² on the logarithm
            grown = mpmath.exp((order - 1) * end)
            log = mpmath.log(1 - p + p + p * (grown - 1) - q * (1 - 1 / grown) + mpmath.mpf("0.9e-13"))
            found = float(pair.divergence(np.array([order]), np.array([0.0]))[0])
            assert found >= (log * (1 + mpmath.mpf("0.9e-12")) + mpmath.mpf("0.95e-12")) / (order - 1)
            assert found <= (log * (1 + mpmath.mpf("1.1e-12")) + mpmath.mpf("1.2e-12")) / (order - 1)


def test_a_renyi_curve_is_charged_at_its_order():
    spent, used = costs(RenyiCurve.linear(0.02), np.array([11.0]), np.full((3, 1), 1e-13))
    assert spent[2, 0] == pytest.approx(0.22)
    assert used[2, 0] == 0
    assert math.sqrt(spent[1, 0]) > math.sqrt(2 * 0.02)  # nothing says that it is a Gaussian of that divergence


def test_a_chance_to_lose_all_needs_its_slack():
    leaky = ProfileCurve([0.0, 1.0], [0.4, 1e-8])
    spent, _ = costs(leaky, np.array([3.0, 3.0]), np.array([[1e-9, 1e-7]] * 3))
    assert np.isinf(spent[:, 0]).all()
    assert np.isfinite(spent[:, 1]).all()


def test_what_the_slack_covers_whole_costs_nothing_else():
    faint = ProfileCurve([0.0], [1e-12])
    spent, used = costs(faint, np.array([3.0]), np.full((3, 1), 1e-11))
    assert spent.tolist() == [[0.0]] * 3
    assert (used <= 1e-11).all()


# ── the counterexamples ───────────────────────────────────────────────────────────────────────────────────────────────


def readings(curve, times, usual):
    odometer = Odometer(DELTA, usual)
    found = [odometer.epsilon]
    for _ in range(times):
        odometer.spend(curve)
        found.append(odometer.epsilon)
    return found


def test_composing_what_happened_is_beaten_by_stopping_at_the_right_moment():
    one = GaussianCurve(0.25)
    stated = [0.0, *(float(one.self_compose(k).epsilon(DELTA)) for k in range(1, 17))]
    assert [round(stated[k], 3) for k in (1, 2, 16)] == [1.061, 1.544, 4.887]
    found = best_analyst([one], lambda counts: stated[counts[0]] if counts[0] <= 16 else None, step=1e-3)
    assert 7.1e-6 < found < 7.4e-6
    twice = best_analyst([one], lambda counts: stated[counts[0]] if counts[0] <= 2 else None, step=1e-3)
    assert 1.8e-6 < twice < 2e-6


@pytest.mark.parametrize("usual", [1.0, 3.0, 6.0])
def test_the_odometer_is_not(usual):
    one = GaussianCurve(0.25)
    stated = readings(one, 16, usual)
    assert best_analyst([one], lambda counts: stated[counts[0]] if counts[0] <= 16 else None) <= DELTA
    fixed = [float(one.self_compose(k).epsilon(DELTA)) for k in range(1, 17)]
    assert all(said >= known for said, known in zip(stated[1:], fixed, strict=True))
    if usual == 6.0:
        assert all(said <= 1.3 * known for said, known in zip(stated[1:], fixed, strict=True))


def test_two_kinds_at_the_limit_are_not_both_admitted():
    first, gaussian, pure = GaussianCurve(0.2), GaussianCurve(0.6161), response(2.1707)
    ways = {(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 0, 1)}
    menu = [first, gaussian, pure]
    # each alone keeps to the limit, and choosing between them by the first answer does not
    for way in ((1, 1, 0), (1, 0, 1)):
        assert (
            best_analyst(
                menu, lambda counts, way=way: 3.0 if counts in {*ways} - {(1, 1, 0), (1, 0, 1)} | {way} else None
            )
            < 1.02e-6
        )
    assert 1.8e-6 < best_analyst(menu, lambda counts: 3.0 if counts in ways else None, step=1e-3) < 2.1e-6
    year = Filter(3.0, DELTA)
    year.spend(first)
    assert not year.admits(gaussian)
    assert not year.admits(pure)


def test_the_largest_of_each_kind_that_is_admitted_can_be_chosen_between():
    first = GaussianCurve(0.2)

    def largest(make, high):
        low = 0.0
        for _ in range(40):
            middle = (low + high) / 2
            year = Filter(3.0, DELTA)
            year.spend(first)
            low, high = (middle, high) if year.admits(make(middle)) else (low, middle)
        return make(low)

    menu = [first, largest(GaussianCurve, 1.0), largest(response, 3.0), largest(laplace, 3.0)]
    ways = {(0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1)}
    found = best_analyst(menu, lambda counts: 3.0 if counts in ways else None, step=1e-3)
    assert 0.2 * DELTA < found <= DELTA


# ── no analyst beats it ───────────────────────────────────────────────────────────────────────────────────────────────


def menu_of(rng):
    kinds = [
        lambda: GaussianCurve(float(rng.uniform(0.1, 0.8))),
        lambda: response(float(rng.uniform(0.05, 1.5))),
        lambda: laplace(float(rng.uniform(0.05, 1.5))),
        lambda: random_pair(rng)[2],
        lambda: repeated_curve(Release(int(rng.integers(50, 400)), 4, int(rng.integers(1, 12)))),
    ]
    return [kinds[int(rng.integers(len(kinds)))]() for _ in range(int(rng.integers(1, 4)))]


def counts_of(menu, most):
    return [counts for counts in itertools.product(range(most + 1), repeat=len(menu)) if sum(counts) <= most]


@pytest.mark.parametrize("seed", range(40))
def test_no_analyst_beats_a_filter(seed):
    """All ways to choose from a menu of up to three kinds, and to stop: thousands of strategies each, the best of them found."""
    rng = np.random.default_rng(seed)
    menu = menu_of(rng)
    epsilon, delta = float(rng.uniform(0.3, 4.0)), float(10 ** rng.uniform(-6, -2))
    admitted = {(0,) * len(menu): Filter(epsilon, delta)}
    for counts in counts_of(menu, 5 if len(menu) > 1 else 12):
        for kind, curve in enumerate(menu):
            before = tuple(c - (k == kind) for k, c in enumerate(counts))
            if counts not in admitted and before in admitted:
                year = Filter(epsilon, delta)
                for k, curve_before in enumerate(menu):
                    for _ in range(before[k]):
                        year.spend(curve_before) if year.admits(curve_before) else None
                if year.studies == sum(before) and year.admits(curve):
                    year.spend(curve)
                    admitted[counts] = year
    found = best_analyst(menu, lambda counts: epsilon if counts in admitted else None, step=0.004)
    assert found <= delta


@pytest.mark.parametrize("seed", range(40))
def test_no_analyst_beats_an_odometer(seed):
    rng = np.random.default_rng(1000 + seed)
    menu = menu_of(rng)
    delta, usual = float(10 ** rng.uniform(-6, -2)), float(rng.uniform(0.5, 5.0))
    stated = {}
    for counts in counts_of(menu, 4 if len(menu) > 1 else 10):
        odometer = Odometer(delta, usual)
        for curve, times in zip(menu, counts, strict=True):
            for _ in range(times):
                odometer.spend(curve)
        stated[counts] = odometer.epsilon
    found = best_analyst(menu, lambda counts: stated.get(counts), step=0.004)
    assert found <= delta


# ── what it costs, and how it behaves ─────────────────────────────────────────────────────────────────────────────────


def needed(curves, delta=DELTA):
    """The smallest limit that admits all of these, but for 0.1 %."""
    low, high = 0.01, 100.0
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        sums = module._Sums(np.array([middle]), np.array([delta]))
        for curve in curves:
            sums.add(curve)
        low, high = (low, middle) if sums.hold()[0] else (middle, high)
        low, high = (low, high) if low < high else (high, low)
    return high


def test_what_adaptivity_costs_if_nobody_uses_it():
    masked = repeated_curve(Release(400, 9, 18))
    training = sampled_releases_curve(10**6, 100, 3500.0, 50, 0.064, 100, False)
    gaussian = GaussianCurve(0.25)
    gaussian_table = ProfileCurve.of(gaussian, np.linspace(0.0, float(gaussian.epsilon(1e-30)), 2001))
    cases = {
        "sixteen masked sums": ([masked] * 16, [(masked, 16)], 1.035),
        "sixty Laplace": ([laplace(0.1)] * 60, [(laplace(0.1), 60)], 1.10),
        "three Laplace": ([laplace(1.0)] * 3, [(laplace(1.0), 3)], 1.005),
        "six trainings": ([training] * 6, [(training, 6)], 1.13),
        "a mixture": (
            [training] * 3 + [gaussian] * 5 + [laplace(0.2)] * 5,
            [(training, 3), (gaussian_table, 5), (laplace(0.2), 5)],
            1.11,
        ),
    }
    for name, (curves, parts, most) in cases.items():
        fixed = float(composed(parts).epsilon(DELTA))
        assert fixed * (1 - 1e-3) <= needed(curves) <= most * fixed, name


def test_the_first_loss_may_use_the_whole_limit():
    exact = GaussianCurve(0.5)
    epsilon = float(exact.epsilon(DELTA))
    year = Filter(epsilon, DELTA)
    assert year.admits(exact)
    year.spend(exact)
    assert not year.admits(GaussianCurve(1e-6))  # it was the last
    assert year.admits(GaussianCurve(0.0)) is False or year.spent > 0
    other = Filter(epsilon, DELTA)
    other.spend(GaussianCurve(0.05))
    assert not other.admits(exact)
    assert not Filter(epsilon * (1 - 1e-9), DELTA).admits(exact)


def test_refusals_count_nothing_and_name_numbers():
    year = Filter(1.0, DELTA)
    year.spend(GaussianCurve(0.1))
    before = year.spent
    with pytest.raises(Refused, match=r"ε = 4\.89 does not fit: of ε = 1 at δ = 1e-06"):
        year.spend(GaussianCurve(1.0))
    assert (year.spent, year.studies) == (before, 1)


def test_every_curve_can_be_spent():
    year = Filter(8.0, DELTA)
    table = ProfileCurve([0.0, 0.5], [0.2, 0.0])
    for curve in (
        GaussianCurve([0.1, np.nan, 0.05]),
        RenyiCurve.linear([0.001, 0.002]),
        RenyiCurve([2.0, 20.0, 200.0], [0.001, 0.01, 0.1]),
        SharedCurve(table, [0, -1, 0]),
        ProfileCurve([0.0, 0.5], [[0.2, 0.0], [0.1, 0.0]]),
        Guarantee(GaussianCurve([0.1, 0.2]), observers=[2], claim=Claim.UPPER),
    ):
        assert year.admits(curve)
        year.spend(curve)
    assert year.studies == 6
    assert 0 < year.spent < 8
    assert "spent" in repr(year)
    with pytest.raises(NetdpError):
        year.spend(Guarantee(GaussianCurve(0.1), observers=[2], claim=Claim.ESTIMATE))
    with pytest.raises(InvalidValue, match="curves and guarantees"):
        year.spend(0.5)


def test_nothing_is_taken_back_and_nobody_is_no_loss():
    odometer = Odometer(DELTA)
    odometer.spend(GaussianCurve(1.0))
    before = odometer.epsilon
    for times in (-1, 0.5, math.nan):
        with pytest.raises(InvalidValue, match="times must be a whole number"):
            odometer.spend(GaussianCurve(1.0), times)
        with pytest.raises(InvalidValue, match="times must be a whole number"):
            module.limit_admits([(GaussianCurve(1.0), 1), (GaussianCurve(1.0), times)], 1.0, DELTA)
    assert odometer.epsilon == before
    for budget in (odometer, Filter(1.0, DELTA)):
        with pytest.raises(InvalidValue, match="nan is none"):
            budget.spend(GaussianCurve(math.nan))
    assert odometer.epsilon == before


def test_a_budget_without_delta_admits_pure_losses_only():
    pure = Filter(1.0, 0.0)
    pure.spend(response(0.4))
    pure.spend(laplace(0.6))
    assert not pure.admits(response(0.01))
    assert not pure.admits(GaussianCurve(0.01))
    assert Filter(1.0, 0.0).admits(response(1.0))


def test_ten_tenths_are_one():
    year = Filter(1.0, 0.0)
    for _ in range(10):
        year.spend(response(0.1))
    assert not year.admits(response(1e-9))


def test_a_budget_of_nothing_admits_nothing():
    nothing = Filter(0.0, DELTA)
    assert not nothing.admits(GaussianCurve(0.1))
    assert nothing.admits(GaussianCurve(0.0))


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-1.0, 1e-6), (math.nan, 1e-6), (1.0, -0.1), (1.0, 1.5), (1.0, math.nan)]
)
def test_nonsense_is_refused(epsilon, delta):
    with pytest.raises(InvalidValue):
        Filter(epsilon, delta)


def test_a_loss_without_bound():
    odometer = Odometer(DELTA)
    odometer.spend(ProfileCurve([0.0], [1.0]))
    assert odometer.epsilon == math.inf
    assert not Filter(1e9, DELTA).admits(ProfileCurve([0.0], [1.0]))


def test_the_order_does_not_matter_much_and_more_never_costs_less():
    rng = np.random.default_rng(5)
    for _ in range(10):
        curves = [curve for _ in range(3) for curve in menu_of(rng)]
        one, other = Odometer(DELTA, 3.0), Odometer(DELTA, 3.0)
        last = 0.0
        for curve, reverse in zip(curves, curves[::-1], strict=True):
            one.spend(curve)
            other.spend(reverse)
            assert one.epsilon >= last
            last = one.epsilon
        assert one.epsilon == other.epsilon


def test_a_first_loss_that_shows_only_in_the_end_is_read_off_the_levels():
    """Two sizes that the run decides between would each use the part of the first loss."""
    one = GaussianCurve(0.25)
    foreseen, corrected = Odometer(DELTA), Odometer(DELTA)
    foreseen.spend(one)
    corrected.spend(one, foreseen=False)
    assert foreseen.epsilon == float(one.epsilon(DELTA / 4))
    assert corrected.epsilon > foreseen.epsilon
    assert corrected.epsilon in corrected._sums.epsilons


@pytest.mark.parametrize("nonsense", [{"step": 0.0}, {"step": math.nan}, {"reach": -1.0}])
def test_an_analyst_needs_a_grid(nonsense):
    with pytest.raises(InvalidValue, match="must be a finite number > 0"):
        best_analyst([GaussianCurve(0.25)], lambda counts: 0.0 if counts == (0,) else None, **nonsense)


@pytest.mark.parametrize("seed", range(4))
def test_no_level_holds_below_the_first_loss_alone(seed):
    """So the levels are not asked before there is a second one."""
    for curve in menu_of(np.random.default_rng(seed)):
        odometer = Odometer(DELTA)
        odometer.spend(curve)
        sums = Odometer(DELTA)._sums
        sums.add(curve)
        held = sums.epsilons[sums.hold()]
        assert odometer.epsilon <= held.min(initial=math.inf)
