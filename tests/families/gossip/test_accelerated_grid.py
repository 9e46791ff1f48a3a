"""Accelerated gossip on a grid: its steps, the theorem's inequality on any past, an enumerated view, formula pins.

Proof: docs/proofs/gossip.md#dithered-acceleration.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.gossip.account.exact import factors
from netdp.families.gossip.account.grid import first_value_delta, in_real_arithmetic, transcript_distance, wire_grid
from netdp.families.gossip.protocol import Gossip, gossip_step, gossip_weights
from netdp.families.gossip.views import GossipView
from netdp.graphs.spectrum import chebyshev_gamma
from netdp.privacy import gaussian_delta
from netdp.protocols.accounting import account

GRAPHS = [graphs.path(5), graphs.star(6), graphs.complete(4), graphs.ring(7)]


def accelerated(graph, **more):
    return Gossip(graph, **{"rounds": 5, "sigma": 4.0, "refresh": 3.0, "grid": 1.0, "accelerated": True, **more})


def weighted(p, states, u):
    """(W s)_u, exactly."""
    weights = gossip_weights(p, u)
    rest = 1 - sum(Fraction(1, m) for m in weights.values())
    return rest * states[u] + sum(Fraction(states[v]) / m for v, m in weights.items())


def nearest(x):
    return math.floor(Fraction(x) + Fraction(1, 2))


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_a_step_is_the_recursion_rounded_once(graph):
    p = accelerated(graph)
    rng, gamma = np.random.default_rng(1), Fraction(p.chebyshev)
    states, before = rng.integers(-(2**60), 2**60, size=(2, p.n, 3))
    for u in range(p.n):
        found = gossip_step(
            gossip_weights(p, u), states[u], {v: states[v] for v in gossip_weights(p, u)}, before[u], p.chebyshev
        )
        for column in range(3):
            exact = gamma * weighted(p, [int(one) for one in states[:, column]], u) + (1 - gamma) * int(
                before[u, column]
            )
            assert found[column] == nearest(exact)
    big = np.array([2**63 - 1])
    with pytest.raises(InvalidValue, match="64 bits"):
        gossip_step({1: 2}, big, {1: big}, -big, 1.5)


@pytest.mark.parametrize("gap", [1.0, 0.5, 0.1, 0.01])
def test_no_noise_and_no_rounding_counts_more_than_stated(gap):
    """p_t, r_t and q_t, the responses to the first state, to fresh noise and to a rounding, for all eigenvalues."""
    p, x = accelerated(graphs.ring(7), gap=gap), np.linspace(-1, 1, 2001)
    gamma = p.chebyshev
    first, fresh, rounding = (
        [np.ones_like(x), x],
        [np.ones_like(x), gamma * x + 1 - gamma],
        [np.ones_like(x), gamma * x],
    )
    for seen in (first, fresh, rounding):
        for _ in range(300):
            seen.append(gamma * x * seen[-1] + (1 - gamma) * seen[-2])
    assert np.abs(first).max() <= 1 + 1e-9
    assert 0.9 * p.growth <= np.abs(fresh).max() <= p.growth * (1 + 1e-9)
    assert 0.9 * p.lasting <= np.abs(rounding).max() <= p.lasting * (1 + 1e-9)
    assert p.growth == pytest.approx(gamma / (2 - gamma))
    assert p.lasting == pytest.approx(1 / (2 - gamma))


def constants(gamma, kernels):
    """C_1, C_2, … of the theorem."""
    found = [Fraction(1)]
    while len(found) < kernels:
        found.append((3 * gamma - 1) / 2 + (gamma - 1) * found[-1])
    return found


@pytest.mark.parametrize("gap", [1.0, 0.2])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_the_means_of_the_kernels_are_no_further_apart_than_the_theorem_says(graph, gap):
    """Any past that is real numbers: the ideal's next mean, and that of what rounds all it sends and mixes, in fractions."""
    p, rng, largest = accelerated(graph, gap=gap), np.random.default_rng(2), 0.0
    gamma, bounds = Fraction(p.chebyshev), constants(Fraction(p.chebyshev), 6)
    for trial in range(40):
        # half of the pasts are just above and just below the middles, where rounding moves most
        past = [
            [Fraction(one).limit_denominator(999) if trial % 2 else Fraction(int(one * 9)) + Fraction(499 * (-1) ** (u + t), 1000)
             for u, one in enumerate(rng.uniform(-9, 9, p.n))] for t in range(6)
        ]  # fmt: skip
        whole = [[nearest(one) for one in row] for row in past]
        mean = [weighted(p, past[0], u) for u in range(p.n)]
        rounded = [nearest(weighted(p, whole[0], u)) for u in range(p.n)]
        for t, bound in enumerate(bounds, start=1):
            apart = math.sqrt(sum((a - b) ** 2 for a, b in zip(mean, rounded, strict=True)))
            assert apart <= float(bound) * math.sqrt(p.n) * (1 + 1e-12)
            largest = max(largest, apart / (float(bound) * math.sqrt(p.n)))
            if t == 6:
                break
            # the remembered state holds the fresh noise that was added last: what was sent less what was mixed
            held = [past[t - 1][u] + past[t][u] - mean[u] for u in range(p.n)]
            kept = [whole[t - 1][u] + whole[t][u] - rounded[u] for u in range(p.n)]
            mean = [gamma * weighted(p, past[t], u) + (1 - gamma) * held[u] for u in range(p.n)]
            rounded = [nearest(gamma * weighted(p, whole[t], u) + (1 - gamma) * kept[u]) for u in range(p.n)]
    assert largest > 0.4


def law(variance, reach):
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2.0 * variance))
    return weights / weights.sum()


def seen_law(p, value, known):
    """The law of (s¹₁, s²₁) on a path 0 – 1 – 2 given s⁰₀, s⁰₁ and s¹₀, which 0 knows: summed over the noises of 2 and 1."""
    v0, v1, gamma = p.start_variance, p.fresh_variance, Fraction(p.chebyshev)
    s00, s01, s10 = known
    first, fresh = 8 * math.isqrt(v0) + 8, 8 * math.isqrt(v1) + 8
    noise, chance = np.arange(-fresh, fresh + 1), law(v1, fresh)
    out = {}
    by_means = {}
    for s02, weight in zip(np.arange(-first, first + 1) + value, law(v0, first), strict=True):
        means = nearest(Fraction(int(s00 + s01 + s02), 3)), nearest(Fraction(int(s01 + 2 * s02), 3))
        by_means[means] = by_means.get(means, 0.0) + weight
    for (m1, m2), weight in by_means.items():
        for g1, c1 in zip(noise.tolist(), chance, strict=True):
            s11 = m1 + g1
            # Σ over 2's second state, whose mean with s¹₁ and s¹₀ is mixed by 1
            kept = (1 - gamma) * (s01 + g1)
            thirds = np.array([nearest(gamma * Fraction(s10 + s11 + m2 + g2, 3) + kept) for g2 in noise.tolist()])
            low = int(thirds.min())
            sent = np.convolve(np.bincount(thirds - low, weights=chance), chance)
            key = s11
            start = low - fresh
            row = out.setdefault(key, {})
            for place, one in enumerate(sent):
                row[start + place] = row.get(start + place, 0.0) + weight * c1 * one
    return out


@pytest.mark.parametrize("known", [(0, 0, 0), (1, -1, 2)])
def test_the_bound_lies_above_an_enumerated_view(known):
    """Three rounds on a path of three, acceleration in the last: δ about 2 against 0, and its distance from real numbers."""
    p = accelerated(graphs.path(3), rounds=3, sigma=2.0, refresh=3.0, sensitivity=2.0, gap=0.3)
    zero, moved = seen_law(p, 0, known), seen_law(p, int(p.distance), known)
    places = sorted({(a, b) for found in (zero, moved) for a, row in found.items() for b in row})
    left = np.array([zero.get(a, {}).get(b, 0.0) for a, b in places])
    right = np.array([moved.get(a, {}).get(b, 0.0) for a, b in places])
    assert left.sum() == pytest.approx(1.0, abs=1e-9)
    epsilons = np.array([0.0, 0.1, 0.3, 1.0])
    truth = np.array(
        [max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in ((left, right), (right, left))) for e in epsilons]
    )
    found = np.array([account(p, [0]).delta(eps)[2] for eps in epsilons])
    assert (found >= truth - 1e-12).all()
    ideal = account(p.replace(grid=None), [0])
    real = np.array([ideal.delta(eps)[2] for eps in epsilons])
    assert (np.abs(truth - real) <= (1 + np.exp(epsilons)) * transcript_distance(p) + 1e-9).all()
    assert truth[0] > 0.05


@pytest.mark.parametrize("dimension", [1, 6])
@pytest.mark.parametrize("grid", [1.0, 2.0**-30, 2.0**-48])
def test_the_distance_is_as_printed(grid, dimension):
    """TV = ΣC_t·√(nd/2πV₁) + nd/24·(1/V₀ + (T − 1)/V₁) + 4ndT·e^{−2¹²¹/(V·(γ/(2−γ))²)}, with 40 digits."""
    p = accelerated(graphs.ring(5), rounds=4, grid=grid, dimension=dimension, gap=0.25)
    with mpmath.workdps(40):
        v0, v1, numbers, gamma = (
            mpmath.mpf(p.start_variance),
            mpmath.mpf(p.fresh_variance),
            5 * dimension,
            mpmath.mpf(p.chebyshev),
        )
        assert abs(gamma - 2 / (1 + mpmath.sqrt(mpmath.mpf(15) / 64))) < 1e-15
        second = (3 * gamma - 1) / 2 + (gamma - 1)
        apart = 1 + second + (3 * gamma - 1) / 2 + (gamma - 1) * second
        exact = apart * mpmath.sqrt(numbers / (2 * mpmath.pi * v1)) + mpmath.mpf(numbers) / 24 * (1 / v0 + 3 / v1)
        noise = (v0 + 3 * v1) * (gamma / (2 - gamma)) ** 2
        exact += 4 * numbers * 4 * mpmath.exp(-(mpmath.mpf(2) ** 121) / noise)
        assert 1 <= float(mpmath.mpf(transcript_distance(p)) / exact) <= 1 + 1e-11


def test_the_ideal_has_the_same_gap_and_a_fine_grid_costs_nothing():
    p = accelerated(graphs.hypercube(3), sigma=8.0, refresh=1.0, grid=None)
    fine = p.replace(grid=wire_grid(p, 1e-6))
    assert fine.gap is not None
    assert fine.replace(grid=None).chebyshev == fine.chebyshev == p.chebyshev
    real, found = account(p, [0]).epsilon(1e-6)[1:], account(fine, [0]).epsilon(1e-6)[1:]
    np.testing.assert_allclose(found, real, rtol=2e-3)
    assert (found >= real * (1 - 1e-12)).all()
    other = fine.replace(gap=0.9)
    assert other.chebyshev == chebyshev_gamma(0.9) != fine.chebyshev
    view = factors(GossipView(other.replace(grid=None), (0,)), None)
    np.testing.assert_allclose(account(other, [0]).factor[1:], view.values[1:])


def test_without_fresh_noise_it_claims_local_dp_and_the_figure_of_real_numbers_stands_beside():
    p = accelerated(graphs.ring(8), refresh=0.0, grid=2.0**-20)
    loss, epsilons = account(p, [0]), np.array([0.1, 0.5])
    np.testing.assert_allclose([loss.delta(eps)[4] for eps in epsilons], first_value_delta(p, epsilons), rtol=1e-3)
    assert "only local DP of the first noisy value" in " ".join(loss.assumptions)
    beside = in_real_arithmetic(p, [0])
    assert not beside.is_certified
    assert beside.epsilon(1e-6)[4] < loss.epsilon(1e-6)[4]
    assert gaussian_delta(p.local_mu, 0.1) == pytest.approx(float(first_value_delta(p, np.array([0.1]))[0]), rel=1e-3)
