"""Gossip on a grid, from both sides: enumerated laws, the theorem on an instance, limits.

Proof: docs/proofs/gossip.md#dithered-gossip.
"""

import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account.exact import factors
from netdp.families.gossip.account.grid import (
    first_value_delta,
    grid_curve,
    in_real_arithmetic,
    transcript_distance,
    wire_grid,
)
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.views import GossipView
from netdp.mechanisms.discrete_gaussian import rounded_delta, shift_delta
from netdp.privacy import gaussian_delta
from netdp.protocols.accounting import account, pairwise

EPSILONS = np.array([0.0, 0.1, 0.3, 1.0])
CHAIN = graphs.path(3)  # 0 watches, 1 is between, 2 is the target; all weights of 1 are 1/3


def law(variance, reach):
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2.0 * variance))
    return weights / weights.sum()


def hears(p, value):
    """P[s¹₁ = · | s⁰₁ ≡ r mod 3] for r = 0, 1, 2, moved so that it does not depend on s⁰₁ otherwise."""
    v0, v1 = p.start_variance, p.fresh_variance
    first, fresh = 12 * math.isqrt(v0) + 12, 12 * math.isqrt(v1) + 12
    rows = []
    for residue in range(3):
        x = np.arange(-first, first + 1) + value + residue
        mixed = (2 * x + 3) // 6  # ⌊x/3 + ½⌋
        low, high = -first, 2 * first
        count = np.bincount(mixed - low, weights=law(v0, first), minlength=high - low)
        rows.append(np.convolve(count, law(v1, fresh)))
    return rows


def residues(p):
    """P[s⁰₁ ≡ r mod 3]."""
    reach = 12 * math.isqrt(p.start_variance) + 12
    return np.bincount(np.arange(-reach, reach + 1) % 3, weights=law(p.start_variance, reach), minlength=3)


def true_delta(p, epsilons):
    """δ about party 2 against party 0 after two rounds, summed over all that can be seen, over the worse direction."""
    zero, moved, share = hears(p, 0), hears(p, int(p.distance)), residues(p)
    return np.array(
        [
            max(
                sum(w * np.maximum(a - math.exp(eps) * b, 0).sum() for w, a, b in zip(share, *pair, strict=True))
                for pair in ((zero, moved), (moved, zero))
            )
            for eps in epsilons
        ]
    )


def chain(sigma, refresh, **more):
    return Gossip(CHAIN, rounds=2, sigma=sigma, refresh=refresh, grid=1.0, **more)


@pytest.mark.parametrize(
    "p",
    [
        chain(2.0, 0.5, sensitivity=2.0),
        chain(8.0, 0.5, sensitivity=8.0),
        chain(100.0, 0.3, sensitivity=50.0),
        chain(1000.0, 1.0, sensitivity=1000.0),
        chain(3000.0, 0.2, sensitivity=1000.0),
    ],
)
def test_the_bound_lies_above_the_truth_by_what_is_stated(p):
    truth = true_delta(p, EPSILONS)
    found = np.array([account(p, [0]).delta(eps)[2] for eps in EPSILONS])
    assert (found >= truth - 1e-12).all()
    ideal = account(p.replace(grid=None), [0])
    real = np.array([ideal.delta(eps)[2] for eps in EPSILONS])
    alone = first_value_delta(p, EPSILONS)
    added = (1 + np.exp(EPSILONS)) * transcript_distance(p)
    assert (found <= np.minimum(real + added, alone) * 1.001 + 1e-6).all()
    # and the truth is no further from real numbers than the theorem says
    assert (np.abs(truth - real) <= added + 1e-12).all()


CHANGING = [CHAIN, graphs.Graph.from_edges(3, [(0, 1)])]  # what is mixed in the last round is not sent


@pytest.mark.parametrize("sigma", [2.0, 8.0, 100.0])
def test_on_changing_graphs_it_lies_above_the_truth_by_what_is_stated(sigma):
    p = netdp.VaryingGossip(CHANGING, sigma=sigma, refresh=0.5, grid=1.0, sensitivity=sigma)
    truth = true_delta(p, EPSILONS)
    found = np.array([account(p, [0]).delta(eps)[2] for eps in EPSILONS])
    assert (found >= truth - 1e-12).all()
    ideal = account(p.replace(grid=None), [0])
    real = np.array([ideal.delta(eps)[2] for eps in EPSILONS])
    added = (1 + np.exp(EPSILONS)) * transcript_distance(p)
    assert (found <= np.minimum(real + added, first_value_delta(p, EPSILONS)) * 1.001 + 1e-6).all()
    assert (np.abs(truth - real) <= added + 1e-12).all()
    same = chain(sigma, 0.5, sensitivity=sigma)
    assert transcript_distance(p) == transcript_distance(same)
    np.testing.assert_allclose(found, [account(same, [0]).delta(eps)[2] for eps in EPSILONS], rtol=1e-6)


def test_real_numbers_are_no_bound_on_a_coarse_grid():
    p = chain(1.0, 2.0, sensitivity=1.0)  # σ and τ are whole numbers of steps: nothing was rounded up
    assert (p.start_variance, p.fresh_variance) == (1, 1)
    truth = true_delta(p, EPSILONS)
    real = np.array([account(p.replace(grid=None), [0]).delta(eps)[2] for eps in EPSILONS])
    assert truth[3] > 1.2 * real[3]
    found = np.array([account(p, [0]).delta(eps)[2] for eps in EPSILONS])
    assert (found >= truth).all()


@pytest.mark.parametrize(("sigma", "refresh"), [(3.0, 2.0), (6.0, 0.5), (10.0, 2.0)])
def test_the_theorem_on_an_instance(sigma, refresh):
    """(s⁰₁, s¹₁) against the rounded ideal (x̃⁰₁, x̃¹₁), whose cells are integrals of a Gaussian: quadrature."""
    p = chain(sigma, refresh)
    v0, v1 = p.start_variance, p.fresh_variance
    reach = int(8 * math.sqrt(v0)) + 2
    first = np.arange(-reach, reach + 1)
    wide = int(8 * math.sqrt(v0 / 9 + v1)) + reach // 3 + 4
    second = np.arange(-wide, wide + 1)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    deviation = math.sqrt(v0 / 9 + v1)
    distance = 0.0
    mass = law(v0, reach)
    heard = hears(p, 0)
    low = -(12 * math.isqrt(v0) + 12) - (12 * math.isqrt(v1) + 12)
    for chance, s in zip(mass, first.tolist(), strict=True):
        x = s + nodes / 2
        density = stats.norm.pdf(x, scale=math.sqrt(v0)) * weights / 2
        edges = stats.norm.cdf((np.append(second - 0.5, second[-1] + 0.5)[:, None] - x / 3) / deviation)
        ideal = (np.diff(edges, axis=0) * density).sum(axis=1)
        row = heard[s % 3]  # of s¹₁ − ⌊s/3⌋
        places = second - s // 3 - low
        inside = (places >= 0) & (places < len(row))
        sent = np.where(inside, row[np.clip(places, 0, len(row) - 1)], 0.0)
        distance += 0.5 * np.abs(chance * sent - ideal).sum()
    assert distance <= transcript_distance(p)
    assert distance > 1e-3 * transcript_distance(p)


@pytest.mark.parametrize("refresh", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("dimension", [1, 3])
def test_fine_grids_come_to_the_real_numbers(refresh, dimension):
    real = Gossip(graphs.hypercube(4), rounds=6, sigma=3.0, refresh=refresh, dimension=dimension)
    p = real.replace(grid=wire_grid(real, 1e-6))
    for observers in ([0], [1, 7]):
        fine, ideal = account(p, observers), account(real, observers)
        np.testing.assert_allclose(fine.epsilon(1e-6), ideal.epsilon(1e-6), rtol=2e-3)
        assert (fine.epsilon(1e-6) >= ideal.epsilon(1e-6) * (1 - 1e-12))[~np.isnan(fine.factor)].all()
        np.testing.assert_array_equal(fine.factor, ideal.factor)
        assert fine.claim == "upper"


def test_a_coarse_grid_leaves_local_dp():
    p = Gossip(graphs.hypercube(4), rounds=6, sigma=3.0, refresh=1.0, grid=1.0)
    assert transcript_distance(p) > 1
    loss = account(p, [0])
    np.testing.assert_allclose(loss.epsilon(1e-6)[1:], netdp.local_dp(p).epsilon(1e-6)[1:], rtol=1e-3)


def test_losses_grow_with_the_grid():
    p = Gossip(graphs.ring(8), rounds=5, sigma=3.0, refresh=1.0)
    worst = [account(p.replace(grid=2.0**-e), [0]).delta(1.0)[3] for e in (45, 30, 20, 16)]
    assert worst[0] < worst[2] < worst[3]
    assert worst == sorted(worst)


def test_plain_gossip_on_a_grid_is_local_dp_and_says_so():
    p = Gossip(graphs.path(7), rounds=3, sigma=2.0, grid=2.0**-12)
    loss = account(p, [0])
    epsilon = loss.epsilon(1e-6)
    alone = netdp.local_dp(p).epsilon(1e-6)[0]
    np.testing.assert_allclose(epsilon[1:4], alone, rtol=1e-6)
    assert (epsilon[4:] == 0).all()  # nothing has come that far
    assert loss.factor[1:].tolist() == [1, 1, 1, 0, 0, 0]
    assert math.isinf(transcript_distance(p))
    assert any("real arithmetic only" in text for text in loss.assumptions)
    assert any("out of reach" in text for text in loss.assumptions)
    ring = Gossip(graphs.hypercube(4), rounds=4, sigma=2.0, grid=2.0**-12)
    assert not any("follow the protocol" in text for text in account(ring, [0]).assumptions)  # nor anybody's good will
    beside = in_real_arithmetic(ring, 0)
    # one number: its law on the grid is summed exactly, and may tell a little less than in real numbers (here 6e-10)
    assert beside.worst_epsilon(1e-6) <= account(ring, [0]).worst_epsilon(1e-6) * (1 + 1e-8)
    assert np.nanmin(beside.epsilon(1e-6)) < 0.9 * np.nanmin(account(ring, [0]).epsilon(1e-6))
    assert not beside.is_certified
    assert "NOT a bound" in beside.errata[0]
    assert beside.observers.parties == (0,)
    assert account(ring.replace(grid=None), [0]).claim == "exact"


def test_one_round_is_the_first_value():
    p = Gossip(graphs.star(5), rounds=1, sigma=2.0, refresh=1.0, grid=2.0**-6)
    loss = account(p, [1])
    np.testing.assert_allclose(loss.epsilon(1e-6)[0], netdp.local_dp(p).epsilon(1e-6)[0], rtol=1e-6)
    assert (loss.epsilon(1e-6)[2:] == 0).all()


def test_what_mixing_cancels_is_not_nothing_on_a_grid():
    p = Gossip(graphs.ring(4), rounds=3, sigma=2.0, refresh=1.0, grid=2.0**-20)
    apart = transcript_distance(p)
    curve = grid_curve(p, np.array([-1.0, 0.0, 0.5]), apart, 4)
    assert (curve.deltas[0] == 0).all()
    assert curve.deltas[1, 0] == pytest.approx(2 * apart)
    assert (curve.deltas[2] >= curve.deltas[1]).all()


def test_what_the_distance_is_made_of():
    p = Gossip(graphs.ring(16), rounds=9, sigma=4.0, refresh=2.0, grid=2.0**-30)
    v0, v1 = p.start_variance, p.fresh_variance
    expected = 8 * math.sqrt(16 / (2 * math.pi * v1)) + 16 / 24 * (1 / v0 + 8 / v1)
    assert transcript_distance(p) == pytest.approx(expected, rel=1e-9)
    assert transcript_distance(p.replace(dimension=4)) == pytest.approx(2 * expected, rel=1e-6)
    assert transcript_distance(p.replace(grid=2.0**-31)) == pytest.approx(expected / 2, rel=1e-6)


def test_all_pairs_are_its_columns_and_names_stay():
    p = Gossip(graphs.path(5), rounds=3, sigma=2.0, refresh=1.0, grid=2.0**-40)
    both, column = pairwise(p), account(p, [1])
    np.testing.assert_allclose(both.epsilon(1e-4)[:, 1], column.epsilon(1e-4), rtol=0.05)
    json.dumps(column.to_dict(delta=1e-6), allow_nan=False)
    assert account(p, [1], transcript=netdp.simulate(p, np.zeros(5), 0).transcript).is_certified
    with pytest.raises(InvalidValue, match="takes no option 'banana'"):
        account(p, [1], banana=1)


def test_classical_ways_on_a_grid():
    p = Gossip(graphs.ring(6), rounds=2, sigma=2.0, grid=2.0**-12, dimension=2)
    for way in (netdp.local_dp, netdp.trusted_curator):
        assert way(p).claim == "upper"
        np.testing.assert_allclose(way(p).epsilon(1e-6), way(p.replace(grid=None)).epsilon(1e-6), rtol=0.01)
        assert way(p.replace(grid=None)).claim == "exact"
    coarse = p.replace(grid=2.0, sensitivity=2.0, dimension=1)
    assert netdp.trusted_curator(coarse).epsilon(1e-6)[0] < netdp.local_dp(coarse).epsilon(1e-6)[0]


def test_a_proposed_grid_adds_little_or_is_the_finest_there_is():
    p = Gossip(graphs.hypercube(5), rounds=10, sigma=2.0, refresh=1.0)
    step = wire_grid(p, 1e-5)
    added = [(1 + math.exp(10)) * transcript_distance(p.replace(grid=g)) for g in (step, 2 * step)]
    assert added[0] <= 1e-8 < added[1]
    assert math.frexp(step)[0] == 0.5
    finest = wire_grid(p, 1e-12)
    with pytest.raises(InvalidValue, match="too fine"):
        p.replace(grid=finest / 2)
    assert transcript_distance(p.replace(grid=finest)) < 1e-14
    assert wire_grid(p.replace(refresh=0.0), 1e-6) == 2.0**-19
    assert wire_grid(p.replace(sensitivity=1e-9), 1e-1) <= 1e-9 / 1024
    with pytest.raises(InvalidValue, match="delta"):
        wire_grid(p, 0.0)


def test_what_speaks_of_real_numbers_refuses_a_grid_by_name():
    for refresh in (0.0, 1.0):
        p = Gossip(graphs.ring(5), rounds=2, sigma=2.0, refresh=refresh, grid=0.5)
        with pytest.raises(Unsupported, match=r"grid of 0\.5.*account\(protocol, observers\)"):
            GossipView.of(p, [0])


@pytest.mark.parametrize(
    ("grid", "refresh", "options"),
    [(0.125, 1.0, {"scope": "beyond:2"}), (2.0**-20, 1.0, {"colluders": 2}), (2.0**-12, 0.0, {"scope": "beyond:2"})],
)
def test_noise_on_a_grid_is_found_on_the_grid(grid, refresh, options):
    """What real numbers ask for would be less than the account on the grid finds to be needed."""
    p = Gossip(graphs.ring(8), rounds=4, sigma=1.0, refresh=refresh, grid=grid)
    who = {"colluders": 2} if "colluders" in options else {"observers": [0]}
    far = np.nan_to_num(p.graph.distances(0)) >= (2 if "scope" in options else 0)

    def reached(protocol):
        return float(np.nanmax(account(protocol, **who).epsilon(1e-6)[far]))

    found = netdp.calibrate(p, 1.0, 1e-6, **options)
    assert 0.999 < reached(found) <= 1.0
    real = netdp.calibrate(p.replace(grid=None), 1.0, 1e-6, **options)
    assert real.sigma <= found.sigma
    if grid == 0.125:
        assert reached(real.replace(grid=grid)) > 1.5


def test_the_statement_names_grid_rule_and_noise():
    p = Gossip(graphs.ring(5), rounds=4, sigma=2.0, refresh=1.0, grid=0.5, dimension=3)
    text = " ".join(account(p, [0]).assumptions)
    for part in (
        "⌊x/g + ½⌋",
        "g = 0.5",
        "at most 3 coordinates",
        "parameter 16 squared",
        "parameter 4 squared",
        "(1 + e^ε)",
    ):
        assert part in text
    assert "real-valued" not in text


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dimension", [1, 6])
@pytest.mark.parametrize("grid", [1.0, 2.0**-30, 2.0**-50])
def test_the_distance_is_as_printed(grid, dimension):
    """TV = (T − 1)·√(nd/2πV₁) + nd/24·(1/V₀ + (T − 1)/V₁) + 4ndT·e^{−2¹²³/V}, with 40 digits."""
    p = Gossip(graphs.ring(5), rounds=4, sigma=4.0, refresh=3.0, grid=grid, dimension=dimension)
    with mpmath.workdps(40):
        v0, v1, numbers = mpmath.mpf(p.start_variance), mpmath.mpf(p.fresh_variance), 5 * dimension
        exact = 3 * mpmath.sqrt(numbers / (2 * mpmath.pi * v1)) + mpmath.mpf(numbers) / 24 * (1 / v0 + 3 / v1)
        exact += 4 * numbers * 4 * mpmath.exp(-(mpmath.mpf(2) ** 123) / (v0 + 3 * v1))
        assert 1 <= float(mpmath.mpf(transcript_distance(p)) / exact) <= 1 + 1e-11


def test_what_the_distance_adds_is_as_printed():
    """δ = δ_G(√factor·(Δ in whole steps)/σ; ε) + (1 + e^ε)·TV, at the points of the table, where local DP is no better."""
    p = Gossip(graphs.path(3), rounds=2, sigma=40.0, refresh=1.0, grid=1.0, sensitivity=29.5)
    curve = grid_curve(p, np.array([0.25]), 1e-4, 3)
    looked = 0
    for eps, found in zip(curve.epsilons.tolist(), curve.deltas[0].tolist(), strict=True):
        mu = mpmath.mpf(30) / 40 / 2
        ideal = mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)
        exact = float(ideal + (1 + mpmath.exp(eps)) * mpmath.mpf(1e-4))
        if eps < 0.8:
            assert 1 - 1e-14 <= found / exact <= 1 + 1e-11
            looked += 1
    assert looked > 20


def test_where_the_bound_would_grow_its_least_value_is_taken():
    """ε* = −μ(Φ⁻¹(TV) + μ/2), found again on a dense grid; beyond it nothing grows, and nothing is below the least."""
    p = Gossip(graphs.path(3), rounds=2, sigma=40.0, refresh=1.0, grid=1.0, sensitivity=29.5)
    curve, mu, apart = grid_curve(p, np.array([0.25]), 1e-4, 3), 30 / 40 / 2, 1e-4
    dense = np.linspace(0.0, 2.0, 200_001)
    bound = gaussian_delta(mu, dense) + (1 + np.exp(dense)) * apart
    least, at = float(bound.min()), float(dense[bound.argmin()])
    assert at == pytest.approx(-mu * (float(mpmath.sqrt(2) * mpmath.erfinv(2 * apart - 1)) + mu / 2), abs=2e-5)
    alone = first_value_delta(p, np.array([at, at + 0.3]))
    assert (alone > least).all()  # local DP is no better there
    np.testing.assert_allclose(curve.delta(np.array([[at], [at + 0.1], [at + 0.3]]))[:, 0], least, rtol=1e-9)
    assert float(curve.delta(at - 0.1)[0]) > least


def test_sums_of_first_values_are_as_printed():
    """e^{dt}·δ′(ε − 2dt), t of the sum of K noises; δ′ is that of one noise of all their variance."""
    for dimension in (1, 3):
        p = Gossip(graphs.path(3), rounds=2, sigma=1.0, refresh=1.0, grid=1.0, sensitivity=2.0, dimension=dimension)
        with mpmath.workdps(40):
            t = mpmath.mpf(0)
            for k in range(1, 3):
                s = mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(k) / (k + 1))
                t += dimension * mpmath.log((1 + 2 * s) / (1 - 2 * s))
        t, epsilons = float(t), np.array([0.5, 1.0, 2.0])
        inner = epsilons - 2 * t
        single = shift_delta(3, 2, inner) if dimension == 1 else rounded_delta(3, p.distance, dimension, inner)
        found = first_value_delta(p, epsilons, 3)
        assert found == pytest.approx(math.exp(t) * single, rel=1e-9, abs=0.0)
        assert (found > single * (1 + t / 2)).all()


def test_the_margins_of_factors_are_on_top():
    """Refreshed gossip on a path, 0 looks: the exact factors by fractions, and (√v(1 + m) + m)² above them."""
    p = Gossip(graphs.path(3), rounds=3, sigma=1.0, refresh=3.0, mixing="metropolis")  # τ² = 1
    W = [[Fraction(x).limit_denominator(6) for x in row] for row in p.matrix.toarray().tolist()]
    hidden = [[W[1][1], W[1][2]], [W[2][1], W[2][2]]]
    powers = [[Fraction(1), Fraction(0)]]  # row of party 1 in the powers of what is hidden
    for _ in range(2):
        a, b = powers[-1]
        powers.append([a * hidden[0][0] + b * hidden[1][0], a * hidden[0][1] + b * hidden[1][1]])
    rows = [
        [*powers[t], *(x for j in (1, 2) for x in (powers[t - j] if j <= t else [Fraction(0)] * 2))] for t in range(3)
    ]
    with mpmath.workdps(40):
        noise = mpmath.matrix([[mpmath.mpf(x.numerator) / x.denominator for x in row] for row in rows])
        covariance = noise * noise.T
        found = factors(GossipView.of(p, [0]))
        m = math.sqrt(1 + found.slack) / 2 - 0.5  # slack = 4m(1 + m)
        assert m >= 32 * 3 * 2.0**-53  # 32·(number of messages)·u, times a condition of at least 1
        for u in (1, 2):
            column = noise[:, u - 1]
            exact = (column.T * mpmath.lu_solve(covariance, column))[0]
            above = float(mpmath.mpf(float(found.values[u])) - exact)
            root = float(mpmath.sqrt(exact))
            assert (
                above == pytest.approx((root * (1 + m) + m) ** 2 - root**2, rel=0.1, abs=0.0) or found.values[u] == 1.0
            )
        assert found.values[2] < 1
