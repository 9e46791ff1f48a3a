"""Discrete Gaussian noise: the draw against the exact law, the profile and the law of sums against long arithmetic.

Proof: docs/proofs/mechanisms.md#discrete-gaussian.
"""

import ast
import inspect
import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from netdp.errors import InvalidValue, NetdpError
from netdp.mechanisms import discrete_gaussian
from netdp.mechanisms.discrete_gaussian import (
    Coin,
    DiscreteGaussian,
    _Coins,
    _square,
    drawn_around,
    exp_floor,
    least_scale,
    rounded_delta,
    shift_delta,
    sum_distance,
    words_from,
)
from netdp.privacy import RenyiCurve, gaussian_delta


def masses(variance, reach):
    """Exact probabilities at −reach … reach, in the precision that mpmath is set to."""
    z = 1 + 2 * mp.nsum(lambda x: mp.exp(-(x**2) / (2 * mp.mpf(variance))), [1, mp.inf], method="direct")
    return {x: mp.exp(-mp.mpf(x * x) / (2 * variance)) / z for x in range(-reach, reach + 1)}


@pytest.mark.parametrize("variance", [1, 2, 9, 100, 12_345])
def test_draws_follow_the_law(variance):
    draws = 400_000
    sample = DiscreteGaussian(variance).sample((draws,), words_from(np.random.default_rng(variance)))
    deviation = math.sqrt(variance)
    width = max(1, int(deviation / 8))
    edges = np.arange(-int(4 * deviation) - width, int(4 * deviation) + 2 * width, width)
    x = np.arange(edges[0] - 20 * int(deviation + 1), edges[-1] + 20 * int(deviation + 1))
    law = np.exp(-(x**2) / (2.0 * variance))
    law /= law.sum()
    places = np.searchsorted(edges, x, side="right")
    expected = np.bincount(places, weights=law, minlength=len(edges) + 1) * draws
    observed = np.bincount(np.searchsorted(edges, sample, side="right"), minlength=len(edges) + 1)
    usual = expected > 5
    pooled_expected = np.append(expected[usual], expected[~usual].sum())
    pooled_observed = np.append(observed[usual], observed[~usual].sum())
    assert stats.chisquare(pooled_observed, pooled_expected * draws / pooled_expected.sum()).pvalue > 1e-4


def test_draws_of_the_largest_variance_follow_the_law():
    """All limbs of the squared distance take part here; sums of 2⁴⁰ in them would overflow if one were too long."""
    sample = DiscreteGaussian(2**40).sample((200_000,), words_from(np.random.default_rng(1))) / 2.0**20
    assert stats.kstest(sample, "norm").pvalue > 1e-4
    assert (
        stats.chisquare(np.bincount(np.abs(sample * 2**20).astype(np.int64) % 8)).pvalue > 1e-4
    )  # no favourite residues


def test_the_draw_decides_without_floating_point():
    for part in (
        DiscreteGaussian.sample,
        DiscreteGaussian._kept,
        Coin,
        _Coins,
        _square,
        exp_floor,
        discrete_gaussian._digits.__wrapped__,
    ):
        tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(part)) if inspect.isclass(part) else _dedented(part))
        for node in ast.walk(tree):
            assert not isinstance(node, ast.Div), part
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), part
            assert not (isinstance(node, ast.Attribute) and node.attr in {"exp", "log", "random", "sqrt", "float64"}), (
                part
            )
    seen = []

    def watched(size):
        words = np.random.default_rng(len(seen)).integers(0, 2**64 - 1, size=size, dtype=np.uint64, endpoint=True)
        seen.append(words)
        return words

    assert DiscreteGaussian(50).sample((100,), watched).dtype == np.int64
    assert all(words.dtype == np.uint64 for words in seen)


def _dedented(function):
    import textwrap

    return textwrap.dedent(inspect.getsource(function))


@pytest.mark.parametrize(
    ("p", "q"), [(1, 1), (1, 3), (7, 2), (1, 10**30), (2**70, 2 * 12345 * 2**28), (40, 1), (10**6, 3)]
)
def test_digits_of_a_coin_are_right(p, q):
    with mp.workdps(120):
        for bits in (64, 128, 192):
            assert exp_floor(p, q, bits) == int(mp.floor(mp.exp(-mp.mpf(p) / q) * mp.mpf(2) ** bits))


def test_a_word_that_agrees_is_decided_by_the_next():
    threshold, following = exp_floor(1, 1, 64), exp_floor(1, 1, 128) & (2**64 - 1)

    def flip(*script):
        rest = list(script)
        return bool(Coin(1, 1).flip(1, lambda size: np.array([rest.pop(0) for _ in range(size)], dtype=np.uint64))[0])

    assert flip(threshold - 1)
    assert not flip(threshold + 1)
    assert flip(threshold, following - 1)
    assert not flip(threshold, following + 1)
    assert flip(threshold, following, 0)


def test_a_broken_source_is_noticed():
    with pytest.raises(NetdpError, match="broken"):
        DiscreteGaussian(4).sample((1,), lambda size: np.zeros(size, dtype=np.uint64))


def test_refusals():
    with pytest.raises(InvalidValue, match="2⁴⁰"):
        DiscreteGaussian(2**40 + 1)
    with pytest.raises(InvalidValue, match="variance must be a whole number ≥ 1"):
        DiscreteGaussian(0.5)
    with pytest.raises(InvalidValue, match="too long"):
        shift_delta(2**33, 5, [1.0])


@pytest.mark.parametrize(("variance", "shift"), [(1, 1), (1, 4), (4, 1), (7, 3), (100, 5), (100, 50), (2500, 17)])
def test_the_profile_is_the_sum_over_all_outcomes(variance, shift):
    """Both directions, all outcomes one by one, in 60 digits."""
    with mp.workdps(60):
        law = masses(variance, 45 * math.isqrt(variance) + 2 * shift + 45)
        for epsilon in (0.0, 0.01, 0.3, 1.0, 3.0):
            growth = mp.exp(mp.mpf(epsilon))
            there = mp.fsum(max(p - growth * law.get(x - shift, 0), 0) for x, p in law.items())
            back = mp.fsum(max(law.get(x - shift, 0) - growth * p, 0) for x, p in law.items())
            found = float(shift_delta(variance, shift, [epsilon])[0])
            assert mp.almosteq(there, back, rel_eps=mp.mpf(10) ** -40)
            assert there <= found <= there * (1 + mp.mpf(10) ** -9) + mp.mpf(10) ** -299


def test_smaller_shifts_tell_less():
    eps = np.linspace(0, 3, 40)
    tables = [shift_delta(30, shift, eps) for shift in range(1, 12)]
    assert all((a <= b).all() for a, b in itertools.pairwise(tables))
    assert (shift_delta(30, 0, eps) == 0).all()


def test_real_numbers_would_promise_too_much():
    """The profile of N(0, 1) is no bound for its discrete sister."""
    assert shift_delta(1, 1, [0.0])[0] > gaussian_delta(1.0, 0.0) * 1.04


def convolved(one, two):
    out = {}
    for x, p in one.items():
        for y, r in two.items():
            out[x + y] = out.get(x + y, 0) + p * r
    return out


@pytest.mark.parametrize(("steps", "parties"), [(1, 2), (1, 3), (1, 5), (2, 2), (2, 3), (4, 2), (4, 3)])
def test_sums_are_as_close_as_stated(steps, parties):
    variance = steps**2
    with mp.workdps(200):
        share = masses(variance, 32 * steps)
        total = share
        for _ in range(parties - 1):
            total = convolved(total, share)
        one = masses(variance * parties, 10 * steps)
        worst = max(abs(mp.log(total[x] / one[x])) for x in range(-6 * steps, 6 * steps + 1))
        bound = sum_distance(variance, parties)
        assert worst <= bound
        if parties == 2:  # each further share smooths what the first two left
            assert worst > bound / 4
        printed = 5 * mp.fsum(mp.exp(-2 * mp.pi**2 * variance * mp.mpf(k) / (k + 1)) for k in range(1, parties))
        assert bound <= printed  # Kairouz, Liu, Steinke 2021


def test_one_share_is_itself():
    assert sum_distance(3, 1) == 0.0
    assert 0 < sum_distance(10**6, 100) < 1e-290


@pytest.mark.parametrize("shift", [(1, 0), (3, 4), (5, 12)])
@pytest.mark.parametrize("variance", [4, 50, 400])
def test_the_bound_for_vectors_holds_in_the_plane(variance, shift):
    reach = 14 * math.isqrt(variance) + 30
    x = np.arange(-reach, reach + 1, dtype=float)
    line = np.exp(-(x**2) / (2 * variance))
    line /= line.sum()
    moved = [np.exp(-((x - s) ** 2) / (2 * variance)) / np.exp(-(x**2) / (2 * variance)).sum() for s in shift]
    before, after = np.outer(line, line), np.outer(*moved)
    for epsilon in (0.0, 0.1, 0.5, 2.0):
        truth = np.maximum(after - math.exp(epsilon) * before, 0).sum()
        bound = rounded_delta(variance, math.hypot(*shift), 2, [epsilon])[0]
        assert truth <= bound + 1e-14


def test_on_fine_grids_the_bound_for_vectors_is_sharp():
    eps = np.linspace(0.0, 2.0, 30)
    for variance, shift in ((10**6, 500), (10**8, 4000)):
        exact, bound = shift_delta(variance, shift, eps), rounded_delta(variance, shift, 1, eps)
        assert (bound >= exact).all()
        np.testing.assert_allclose(bound, exact, rtol=3e-3)
    wide = rounded_delta(10**8, 4000.0, 100, eps)
    np.testing.assert_allclose(wide, gaussian_delta(0.4, eps), rtol=1e-6, atol=1e-30)


def test_coarse_grids_cost_vectors_little():
    """A thousand numbers at six steps: nearer to the Gaussian than zCDP, which is what is left without a comparison."""
    eps = np.array([0.0, 0.5, 1.0, 2.0])
    found, ideal = rounded_delta(36, 6.0, 1000, eps), gaussian_delta(1.0, eps)
    assert (ideal < found).all()
    np.testing.assert_allclose(found, ideal, rtol=0.13)
    assert (found < 0.8 * RenyiCurve.linear(0.5).delta(eps)).all()


def test_fractions_say_the_same_of_the_squared_distance():
    """N/M is (|y| − v/t)²/2v, in the limbs that the sampler uses."""
    for variance in (1, 10, 2**40):
        t = least_scale(variance)
        assert t * t > variance >= t * t // 4
        for size in (0, 1, 5 * t + 3, 900 * t, 2048 * t + t - 1):
            gap = abs(size * t - variance)
            parts = [(part[0], place) for part, place in _square(np.array([gap]))]
            assert all(0 <= part < 2**63 for part, _ in parts)
            number = sum(int(part) << place for part, place in parts)
            assert Fraction(number, 2 * variance * t * t) == (size - Fraction(variance, t)) ** 2 / (2 * variance)


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def printed_law(variance, reach):
    """e^{−x²/2v}/Z with 40 digits, from −reach on."""
    weights = [mp.exp(-(mp.mpf(x) ** 2) / (2 * variance)) for x in range(-reach, reach + 1)]
    whole = mp.fsum(weights)
    return [weight / whole for weight in weights]


@pytest.mark.parametrize(("variance", "shift", "eps"), [(9, 2, 0.3), (4, 3, 0.0), (25, 7, 1.1)])
def test_the_margins_of_one_shift_are_as_printed(variance, shift, eps):
    """δ = F(m) − e^ε·F(m − D), either F wrong by a relative 10⁻¹² to the worse side."""
    with mp.workdps(40):
        reach = 40 * math.isqrt(variance) + 40
        below = list(itertools.accumulate(printed_law(variance, reach)))
        grown = mp.exp(mp.mpf(eps))
        seen, other = max(
            ((below[m + reach], grown * below[m - shift + reach]) for m in range(-reach + shift, reach + 1)),
            key=lambda pair: pair[0] - pair[1],
        )
        added = float(mp.mpf(float(shift_delta(variance, shift, [eps])[0])) - (seen - other))
    assert added == pytest.approx(1e-12 * float(seen + other), rel=0.02, abs=0.0)


@pytest.mark.parametrize(
    ("variance", "distance", "dimension", "eps"), [(900, 20.0, 3, 1.0), (900, 25.0, 40, 2.5), (10**6, 700.0, 1, 1.0)]
)
def test_the_bound_for_vectors_is_as_printed(variance, distance, dimension, eps):
    """e^t·δ_G(ε − 2t; L/√(V − τ)), the least over c; zCDP is worse at these ε."""
    with mp.workdps(40):
        best = mp.mpf(1)
        for care in (10**2, 10**4, 10**7):
            tau = min(mp.log(dimension * care * variance) / (2 * mp.pi**2), mp.mpf(variance) / 2)
            s = mp.nsum(lambda k, tau=tau: mp.exp(-2 * mp.pi**2 * tau * k**2), [1, 12])
            t = dimension * mp.log((1 + 2 * s) / (1 - 2 * s))
            mu, e = mp.mpf(distance) / mp.sqrt(variance - tau), eps - 2 * t
            best = min(best, mp.exp(t) * (mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)))
        found = rounded_delta(variance, distance, dimension, [eps])[0]
        assert 1 <= float(mp.mpf(float(found)) / best) <= 1 + 1e-11


@pytest.mark.parametrize(("variance", "numbers", "care"), [(1, 1, 1e2), (2, 3, 1e2), (5, 1, 1e4), (9, 7, 1e7)])
def test_whole_numbers_drawn_around_gaussians_are_as_close_as_stated(variance, numbers, care):
    """The law of Y by quadrature over where it is drawn around, and its distance as printed."""
    tau, t = drawn_around(variance, numbers, care)
    assert tau == pytest.approx(min(math.log(numbers * care * variance) / (2 * math.pi**2), variance / 2))
    s = math.fsum(math.exp(-2 * math.pi**2 * tau * k * k) for k in range(1, 12))
    assert t == pytest.approx(numbers * math.log((1 + 2 * s) / (1 - 2 * s)), rel=1e-6, abs=0.0)
    rest = variance - tau
    g = np.linspace(-14 * math.sqrt(rest), 14 * math.sqrt(rest), 40_001)
    density = np.exp(-(g**2) / (2 * rest))
    density /= density.sum()
    whole = np.arange(-60, 61)
    around = np.exp(-((whole[:, None] - g) ** 2) / (2 * tau))
    around /= around.sum(axis=0)
    drawn = around @ density
    x = np.exp(-(whole**2) / (2.0 * variance))
    near = abs(whole) < 6 * math.sqrt(variance)
    # of the most unlucky vector: the same in every coordinate
    apart = numbers * np.log(drawn[near] / (x[near] / x.sum()))
    assert (abs(apart) <= t * (1 + 1e-6) + 1e-11 * numbers).all()
    if variance == 1:  # t holds for whatever G is; on average over G the truth is nearer to S² than to S
        assert abs(apart).max() > t * s


@pytest.mark.parametrize(("variance", "parties"), [(1, 2), (1, 30), (2, 5), (3, 1000)])
def test_the_distance_of_sums_is_as_printed(variance, parties):
    """t = Σ_{k<K} log((1 + 2S_k)/(1 − 2S_k)), s² = vk/(k + 1)."""
    with mp.workdps(40):
        t = mp.mpf(0)
        for k in range(1, parties):
            square = mp.mpf(variance) * k / (k + 1)
            s = mp.fsum(mp.exp(-2 * mp.pi**2 * square * i**2) for i in range(1, 6))
            t += mp.log((1 + 2 * s) / (1 - 2 * s))
        assert 1 <= float(mp.mpf(sum_distance(variance, parties)) / t) <= 1 + 3e-9


def test_shares_beyond_a_million_are_counted_as_the_millionth():
    k = np.arange(1, 3_000_000, dtype=np.float64)
    s = np.exp(-2 * math.pi**2 * (k / (k + 1)))
    exact = math.fsum(4 * s)  # log((1 + 2S)/(1 − 2S)) is 4S, but for a share of S² below 10⁻¹⁶ (the first: 10⁻⁹)
    assert exact < sum_distance(1, 3_000_000) < exact * (1 + 2e-5)
