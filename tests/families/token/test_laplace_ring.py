"""Rings with Laplace noise on a grid: laws convolved by themselves, exact shares, margins.

Proof: docs/proofs/token.md#laplace-ring-on-a-grid.
"""

import json
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import netdp
from netdp import RingSum, account, simulate
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.ring import ring_contributions, ring_draw, ring_steps
from netdp.mechanisms.discrete_gaussian import words_from
from netdp.protocols.base import Protocol

EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0])


def ring(n=4, rounds=1, **more):
    given = {"sigma": 6.0, "grid": 1.0, "noise": "distributed", "law": "laplace", "sensitivity": 3.0} | more
    return RingSum(n, rounds, **given)


def noise_law(rate, shares, parts, reach):
    """Σ of so many shares: A − B, A, B ~ NB(shares/parts, e^{−r}), tabulated by SciPy."""
    p, size = 1 - math.exp(-rate), shares / parts
    once = stats.nbinom.pmf(np.arange(reach + 1), size, p)
    return np.convolve(once, once[::-1])


def truth(p, pieces):
    """δ about one who moves independent sums, each with so many shares of noise, by D: all outcomes counted out."""
    reach, D = 400, int(p.distance)
    left, right = np.ones(1), np.ones(1)
    for shares in pieces:
        law = noise_law(float(p.rate), shares, p.parts, reach)
        left = np.outer(left, np.append(law, np.zeros(D))).ravel()
        right = np.outer(right, np.append(np.zeros(D), law)).ravel()
    found = [
        [np.maximum(a - math.exp(eps) * b, 0).sum() for a, b in ((left, right), (right, left))] for eps in EPSILONS
    ]
    return np.max(found, axis=1)


@pytest.mark.parametrize(
    ("p", "observers", "target", "pieces"),
    [
        (ring(), (1,), 3, [5]),                                       # shares of users 2 and 3, and the closing noise
        (ring(closing=False), (1,), 3, [2]),                          # two shares of three
        (ring(), (1, 3), 2, [1]),                                     # both neighbours: its own share
        (ring(rounds=2), (2,), 0, [4, 3]),                            # a whole noise and one share; then n − 1 shares
        (ring(noise="single"), (2,), 0, [3]),
        (ring(5, noise="single", rounds=2), (3,), 1, [4, 4]),
    ],
)  # fmt: skip
def test_the_bound_lies_above_the_truth_and_not_far(p, observers, target, pieces):
    exact = truth(p, pieces)
    found = np.array([account(p, observers).delta(eps)[target] for eps in EPSILONS])
    assert (found >= exact - 1e-9).all()
    capped = truth(p, [min(one, p.parts) for one in pieces])  # more than one noise counts as one
    assert (found <= capped * 1.03 + 2e-4).all()
    assert account(p, observers).claim.value == "upper"


@pytest.mark.parametrize("noise", ["single", "distributed"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_against_any_single_party_the_loss_is_pure(noise, rounds):
    p = ring(6, rounds, noise=noise, sigma=300.0)
    pure = rounds * float(p.rate) * p.distance
    loss = account(p, colluders=1)
    assert loss.worst_epsilon(0.0) == pytest.approx(pure, rel=1e-9)
    assert netdp.pairwise(p).worst_epsilon(0.0) == pytest.approx(pure, rel=1e-9)
    assert netdp.trusted_curator(p).worst_epsilon(0.0) == pytest.approx(pure, rel=1e-9)
    assert "one coordinate and differ by at most 3 in L1 norm" in " ".join(loss.assumptions)
    two = account(p, colluders=2).worst_epsilon(1e-6)
    assert two > pure if noise == "distributed" else math.isinf(two)


def test_the_rate_is_as_printed():
    """b = √(σ²/2g² + 1/12) rounded up to a multiple of 2⁻¹⁶; the variance 1/(2·sinh²(r/2)) is no less than (σ/g)²."""
    for sigma, grid in ((6.0, 1.0), (0.3, 2.0**-9), (1000.0, 0.5)):
        p = ring(sigma=sigma, grid=grid)
        with mpmath.workdps(40):
            b = mpmath.sqrt((mpmath.mpf(sigma) / grid) ** 2 / 2 + mpmath.mpf(1) / 12)
            found = mpmath.mpf(p.rate.denominator) / p.rate.numerator
            assert b <= found <= b + mpmath.mpf(2) ** -15
            variance = 1 / (2 * mpmath.sinh(1 / found / 2) ** 2)
            assert (
                (mpmath.mpf(sigma) / grid) ** 2
                <= variance
                <= (mpmath.mpf(sigma) / grid) ** 2 * (1 + mpmath.mpf(2) ** -14)
            )


def test_vectors_come_so_many_steps_apart_and_no_more():
    p = ring(dimension=3, sensitivity=2.0, grid=0.5, sigma=6.0)
    assert p.distance == 4 + 1 + 2  # Δ = 2 with its 10⁻⁹, rounded up, and one step less than three
    rng, most = np.random.default_rng(0), 0
    for _ in range(4000):
        x, away = rng.uniform(-3, 3, 3), rng.dirichlet(np.full(3, 0.3)) * 2.0 * rng.choice([-1, 1], 3)
        most = max(most, int(np.abs(ring_steps(p, x) - ring_steps(p, x + away)).sum()))
    assert 5 <= most <= p.distance


def test_a_round_adds_one_noise_of_exact_shares():
    p, draw = ring(4, closing=False), ring_draw(ring(4), words_from(np.random.default_rng(1)))
    added = np.array([ring_contributions(p.replace(dimension=40_000), u, np.zeros(40_000), draw)[0] for u in range(4)])
    whole = 0.5 / math.sinh(float(p.rate) / 2) ** 2
    assert added[0].var() == pytest.approx(whole, rel=0.05)
    assert added[1:].sum(axis=0).var() == pytest.approx(whole, rel=0.05)
    assert added[2].var() == pytest.approx(whole / 3, rel=0.08)
    shares = np.bincount(np.abs(added[1:].sum(axis=0)))[:4] / 40_000
    r = float(p.rate)
    law = math.tanh(r / 2) * np.exp(-r * np.arange(4)) * [1, 2, 2, 2]
    np.testing.assert_allclose(shares, law, atol=0.01)


def test_a_run_has_the_predicted_error_and_it_is_written_down():
    p = ring(5, 2, sigma=0.5, grid=2.0**-8, sensitivity=1.0)
    values = np.linspace(0, 1, 5)
    found = [simulate(p, values, seed).estimates[0, 0] - 0.5 for seed in range(800)]
    assert float(np.mean(np.square(found))) == pytest.approx(netdp.expected_error(p, values).total, rel=0.15)
    assert Protocol.from_dict(json.loads(json.dumps(p.to_dict()))) == p


def test_what_is_not_proved_is_refused():
    with pytest.raises(InvalidValue, match="a whole one or none"):
        ring(closing=0.5)
    with pytest.raises(InvalidValue, match="use a coarser grid"):
        ring(grid=2.0**-40)
    with pytest.raises(InvalidValue, match="on a grid noise is discrete Gaussian"):
        netdp.WalkSum(4, 8, sigma=2.0, law="laplace", grid=0.5)
    with pytest.raises(Unsupported, match="no rate"):
        _ = ring(law="gaussian").rate
    bare = account(ring(rounds=2, noise="single", closing=False), [2])  # 3 adds last, and nothing hides it
    assert bare.delta(50.0)[3] == 1.0
    assert "somebody here has no protection" in " ".join(bare.assumptions)
