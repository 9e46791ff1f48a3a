"""Sums with shares of Laplace noise: their privacy against sums over all outcomes, from both sides, and every margin.

Proof: docs/proofs/masked.md#laplace-shares.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.mechanisms.test_laplace_shares import share_mass

from netdp.errors import InvalidValue
from netdp.mechanisms import laplace_sums
from netdp.mechanisms.laplace import DiscreteLaplace
from netdp.mechanisms.laplace_sums import LaplaceRelease, laplace_curve

EPSILONS = np.array([0.0, 0.2, 0.5, 0.8, 1.0, 1.2, 1.6, 2.0, 2.6])


def mass(rate, parts, shares, reach):
    return dict(zip(range(-reach, reach + 1), share_mass(rate, parts, reach, shares), strict=True))


def true_delta(law, shift, epsilon):
    """Σ (f(x) − e^ε f(x − D))₊ over all x that matter."""
    return math.fsum(max(p - math.exp(epsilon) * law.get(x - shift, 0.0), 0.0) for x, p in law.items())


CASES = [
    (Fraction(1, 3), 5, 3, 4), (Fraction(1, 3), 5, 7, 4), (Fraction(1), 3, 1, 1), (Fraction(1, 4), 4, 8, 5),
    (Fraction(1, 10), 11, 8, 10), (Fraction(1, 10), 11, 10, 10), (Fraction(1, 10), 11, 16, 10), (Fraction(2), 3, 2, 1),
]  # fmt: skip


@pytest.mark.parametrize(("rate", "parts", "shares", "distance"), CASES, ids=str)
def test_the_profile_is_that_of_all_outcomes(rate, parts, shares, distance):
    """Neither below nor more than a part in 10⁸ above."""
    law = mass(rate, parts, shares, math.ceil(50 / rate) + distance)
    curve = laplace_curve(LaplaceRelease(rate, parts, shares, distance))
    for epsilon in EPSILONS[float(curve.epsilon(0.0)) - 1e-6 > EPSILONS]:
        true = true_delta(law, distance, epsilon)
        assert true * (1 - 1e-11) - 1e-13 <= float(curve.delta(epsilon)) <= true * (1 + 1e-8) + 1e-9


@pytest.mark.parametrize(("rate", "parts", "shares", "distance"), CASES, ids=str)
def test_the_largest_loss_is_the_pure_epsilon(rate, parts, shares, distance):
    reach = math.ceil(30 / rate)
    law = mass(rate, parts, shares, reach)
    largest = max(math.log(p / law[x - distance]) for x, p in law.items() if abs(x) < reach // 2)
    pure = float(laplace_curve(LaplaceRelease(rate, parts, shares, distance)).epsilon(0.0))
    assert largest <= pure * (1 + 1e-9)
    if shares < parts:
        assert pure == pytest.approx(largest, rel=1e-8)
    else:
        assert pure == pytest.approx(float(rate * distance), rel=1e-15)  # the limit far out


def test_one_whole_noise_is_discrete_laplace():
    release = LaplaceRelease(Fraction(1, 7), 6, 6, 9, 4)
    curve, whole = laplace_curve(release), DiscreteLaplace(Fraction(1, 7))
    for epsilon in EPSILONS:
        assert float(curve.delta(epsilon)) == pytest.approx(float(whole.shift_delta(9, epsilon)[0]), rel=1e-12)
    assert float(curve.epsilon(0.0)) == laplace_sums.above(Fraction(9, 7))
    assert Fraction(release.pure) >= Fraction(9, 7)


def test_more_shares_protect_more_and_fewer_far_less():
    """The numbers of the plan: 16 of 11 shares 0.953; 10: 1.17; 8: 1.69; and never scaled from a whole noise."""
    at = {
        shares: float(laplace_curve(LaplaceRelease(Fraction(1, 2048), 11, shares, 2048)).epsilon(1e-6))
        for shares in (22, 16, 11, 10, 8)
    }
    assert list(at.values()) == sorted(at.values())
    assert at[11] == pytest.approx(1.0, abs=1e-5)
    assert at[16] == pytest.approx(0.953, abs=5e-4)
    assert at[10] == pytest.approx(1.166, abs=1e-3)
    assert at[8] == pytest.approx(1.685, abs=2e-3)
    finer = [
        [float(laplace_curve(LaplaceRelease(Fraction(1, k), parts, 1, k)).epsilon(0.0)) for k in (64, 256, 1024, 4096)]
        for parts in (2, 4)
    ]
    assert all(after > before + 0.1 for before, after in itertools.pairwise(finer[0]))  # half a noise: as log log k
    assert all(after > before + 0.6 for before, after in itertools.pairwise(finer[1]))  # a quarter: as (log k)/2


@pytest.mark.parametrize("shares", [1, 2, 3, 5, 7])
def test_a_longer_move_tells_more_at_every_epsilon(shares):
    law = mass(Fraction(1, 4), 4, shares, 240)
    for epsilon in EPSILONS:
        deltas = [true_delta(law, shift, epsilon) for shift in range(9)]
        assert all(after >= before - 1e-12 for before, after in itertools.pairwise(deltas))


@pytest.mark.parametrize("shares", [1, 2, 3])
def test_below_a_whole_noise_the_law_is_log_convex_from_zero_on(shares):
    law = mass(Fraction(1, 4), 4, shares, 120)
    logs = np.log([law[x] for x in range(60)])
    assert (np.diff(logs, 2) >= -1e-9).all()
    assert (np.diff(logs) < 0).all()


def two_dimensional_delta(law, first, second, epsilon):
    x = np.array(list(law))
    f = np.array(list(law.values()))
    moved = [np.array([law.get(v - k, 0.0) for v in x.tolist()]) for k in (first, second)]
    return float(np.maximum(np.outer(f, f) - math.exp(epsilon) * np.outer(*moved), 0).sum())


@pytest.mark.parametrize("shares", [2, 3])
def test_vectors_below_a_whole_noise_are_bounded_for_every_split(shares):
    rate, parts, distance = Fraction(1, 2), 4, 4
    law = mass(rate, parts, shares, 70)
    curve = laplace_curve(LaplaceRelease(rate, parts, shares, distance, 2))
    splits = [(k, distance - k) for k in range(distance + 1)] + [(1, 1), (0, 2)]
    for epsilon in EPSILONS:
        worst = max(two_dimensional_delta(law, *split, epsilon) for split in splits)
        assert float(curve.delta(epsilon)) >= worst * (1 - 1e-9)
    pure = max(sum(math.log(law[0] / law[k]) for k in split) for split in splits)
    assert pure == pytest.approx(2 * math.log(law[0] / law[2]), rel=1e-9)  # the even split
    assert pure * (1 - 1e-9) <= float(curve.epsilon(0.0)) <= pure * (1 + 1e-8)


def test_the_bound_of_vectors_is_the_most_even_split():
    rate, parts, shares, distance = Fraction(1, 2), 4, 3, 7
    law = mass(rate, parts, shares, 70)
    for dimension in (3, 20):
        numbers = min(dimension, distance)
        least, more = divmod(distance, numbers)
        pinned = (numbers - more) * math.log(law[0] / law[least]) + more * math.log(law[0] / law[least + 1])
        found = float(laplace_curve(LaplaceRelease(rate, parts, shares, distance, dimension)).epsilon(0.0))
        assert found == pytest.approx(pinned, rel=1e-8)
        assert found >= pinned * (1 - 1e-9)


def test_whole_noises_hide_vectors_as_they_hide_numbers():
    one, many = (LaplaceRelease(Fraction(1, 9), 5, 5, 9, dimension) for dimension in (1, 30))
    assert float(laplace_curve(many).delta(0.3)) == float(laplace_curve(one).delta(0.3))
    more = many._replace(shares=9)  # further shares of a vector are not counted
    assert float(laplace_curve(more).delta(0.3)) == float(laplace_curve(one).delta(0.3))
    assert float(laplace_curve(one._replace(shares=9)).delta(0.3)) < float(laplace_curve(one).delta(0.3))


def test_several_releases_are_composed():
    release = LaplaceRelease(Fraction(1, 6), 4, 4, 3)
    law = mass(Fraction(1, 6), 4, 4, 240)
    thrice = laplace_curve(release, 3)
    assert 1.5 <= float(thrice.epsilon(0.0)) <= 1.5 * (1 + 1e-9)
    x = np.array(list(law.values()))
    moved = np.array([law.get(v - 3, 0.0) for v in law])
    losses, where = np.unique(np.round(np.log(x / np.where(moved > 0, moved, x * 1e-9)), 9), return_inverse=True)
    one = np.bincount(where, weights=x)
    total = {}
    for picks in itertools.product(range(len(losses)), repeat=3):
        loss = round(sum(losses[i] for i in picks), 6)
        total[loss] = total.get(loss, 0.0) + math.prod(one[i] for i in picks)
    for epsilon in (0.2, 0.6, 1.0):
        true = sum(p * max(1 - math.exp(epsilon - loss), 0.0) for loss, p in total.items())
        assert true * (1 - 1e-5) <= float(thrice.delta(epsilon)) <= true * 1.01 + 1e-6


# ── margins ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rate", "parts", "shares"), [(Fraction(1, 8), 3, 2), (Fraction(1, 8), 3, 4), (Fraction(3, 2), 7, 1)]
)
def test_bounds_on_the_law_enclose_it_narrowly(rate, parts, shares):
    steps = math.ceil(30 / rate)
    high, low = laplace_sums._tables(rate, parts, shares, steps)
    law = share_mass(rate, parts, steps + math.ceil(20 / rate), shares)[steps + math.ceil(20 / rate) :][: steps + 1]
    assert (high > low).all()
    assert (high - low).max() < 1e-10
    near = slice(0, steps // 3)
    assert np.abs(np.exp(high[near]) / law[near] - 1).max() < 1e-10
    assert (np.exp(high[near]) >= law[near] * (1 - 1e-12)).all()
    assert (np.exp(low[near]) <= law[near] * (1 + 1e-12)).all()


def test_the_recurrence_is_rounded_apart_by_its_stated_margin():
    """One step, in fractions: θ = (2xc + (x + 1 − s)θ′)/((x − 1 + s) + 2xc + (x + 1 − s)θ′), times 1 ± 32u."""
    assert laplace_sums._STEP_ERROR == 32 * 2.0**-53
    rate, parts, shares = Fraction(1, 8), 3, 2
    high, _low = laplace_sums._tables(rate, parts, shares, 3)
    high_more, _low_more = laplace_sums._tables(rate, parts, shares, 40)
    # whatever the tables begin with, they end with the same numbers
    assert np.abs(np.diff(high) - np.diff(high_more[:4])).max() < 1e-13
    s, c = shares / parts, math.cosh(1 / 8) - 1
    for x in (1, 2, 3):
        later, here = (-np.expm1(np.diff(high_more)[i]) for i in (x, x - 1))
        step = 2 * x * c + (x + 1 - s) * later
        assert here == pytest.approx(step / (x - 1 + s + step), rel=1e-11)


def test_every_step_of_the_recurrence_is_rounded_apart(monkeypatch):
    plain = laplace_sums._tables.__wrapped__(Fraction(1, 8), 3, 2, 3)
    monkeypatch.setattr(laplace_sums, "_STEP_ERROR", 1e-6)
    high, low = laplace_sums._tables.__wrapped__(Fraction(1, 8), 3, 2, 3)
    ratio = np.exp(np.diff(plain[0])[0])
    width = np.diff(high)[0] - np.diff(low)[0]  # of log f(1)/f(0): each bound moves by θ·10⁻⁶/(1 − θ) or more
    assert width > 2e-6 * (1 - ratio) / ratio
    assert (high > plain[0]).all()
    assert (low < plain[1]).all()


def test_profiles_have_their_margins():
    """δ = Σ_S f⁺(x)(1 + 4·10⁻¹¹(1 + ε)) − e^ε Σ_S f⁻(x − D)(1 − 10⁻¹¹) and the tail, S = {loss > ε − 10⁻¹¹(1 + ε)}."""
    rate, parts, shares, distance = Fraction(1, 8), 3, 2, 8
    law = laplace_sums._sum_law(rate, parts, shares, distance)
    high, low = law.log_above, law.log_below
    reach = math.ceil(60 * 8) + distance
    x = np.arange(-reach, distance // 2 + 1)
    for epsilon in (0.0, 0.7, 1.3):
        loss = high[np.abs(x)] - low[np.abs(x - distance)]
        inside = loss > epsilon - 1e-11 * (1 + epsilon)
        p, q = np.exp(high[np.abs(x)])[inside].sum(), np.exp(low[np.abs(x - distance)])[inside].sum()
        margin = 1e-11 * (1 + epsilon)
        pinned = p * (1 + 1e-11) * (1 + 4 * margin) - math.exp(epsilon) * q * (1 - 1e-11) * (1 - 1e-11)
        found = float(law.delta(np.array([epsilon]))[0])
        tail = law.tail if epsilon < law.tail_loss else 0.0
        assert found - tail == pytest.approx(pinned, rel=1e-13)
    ratio = math.exp(-1 / 8)
    assert law.tail == pytest.approx(math.exp(high[reach]) * ratio / (1 - ratio), rel=1e-6)


def test_laws_that_are_too_long_are_not_guessed():
    fine = LaplaceRelease(Fraction(1, 2**30), 4, 4, 2**30)
    assert float(laplace_curve(fine).epsilon(0.0)) == 1.0
    assert float(laplace_curve(fine._replace(shares=6)).epsilon(0.0)) == 1.0  # as with just enough
    assert math.isinf(float(laplace_curve(fine._replace(shares=3)).epsilon(0.5)))  # nothing is proved
    assert float(laplace_curve(fine._replace(distance=0)).epsilon(0.0)) == 0.0


def test_refusals():
    with pytest.raises(InvalidValue, match="Fraction"):
        laplace_curve(LaplaceRelease(0.5, 3, 3, 4))
    with pytest.raises(InvalidValue, match="whole grid steps"):
        laplace_curve(LaplaceRelease(Fraction(1, 2), 3, 3, 4.0))
    with pytest.raises(InvalidValue, match="shares of a release"):
        laplace_curve(LaplaceRelease(Fraction(1, 2), 3, 0, 4))


@pytest.mark.parametrize(("rate", "steps"), [(Fraction(1, 64), 4096), (Fraction(1, 8), 300)])
def test_the_rounding_of_sums_of_logarithms_is_as_printed(monkeypatch, rate, steps):
    """Formula pin: bounds on log f(steps)/f(0) are apart by (1024 + steps/1024 + 16) units of it on each side."""
    monkeypatch.setattr(laplace_sums, "_STEP_ERROR", 0.0)
    above, below = laplace_sums._tables.__wrapped__(rate, 4, 3, steps)
    printed = 2 * (1024 + steps / 1024 + 16) * 2.0**-53 * abs(below[-1] - below[0])
    assert printed <= above[-1] - below[-1] <= 1.1 * printed


def test_the_largest_loss_is_rounded_up_as_printed():
    law = laplace_sums._sum_law(Fraction(1, 8), 3, 2, 5)
    unit = 2.0**-53
    assert law.most == float(law.log_above[0] - law.log_below[5]) * (1 + 8 * unit) + 8 * unit
    assert law.most > law.log_above[0] - law.log_below[5] > law.log_below[0] - law.log_above[5]
    assert law.loss_of(5) == law.most
