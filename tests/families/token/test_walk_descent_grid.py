"""Tokens that carry a model in whole numbers: the distance to real numbers by quadrature and as printed, and what is claimed.

Proofs: docs/proofs/token.md#walk-descent-on-a-grid, docs/proofs/learning.md#descents-on-a-grid.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from netdp import WalkDescent, account, calibrate, graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account.descent_grid import walk_distance, with_distance
from netdp.families.token.training import train_walk
from netdp.models import Logistic
from netdp.models.parties import LogisticParties, ModelParties
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.alternatives import local_dp
from netdp.protocols.descents import absorbed, wire_grid

DELTA = 1e-6


def walk(users=20, steps=200, **more):
    plain = {"sigma": 4.0, "step": 1.0, "clip": 0.1, "dimension": 5} | more
    made = WalkDescent(users, steps, **plain)
    return made.replace(grid=wire_grid(made))


def test_the_distance_is_its_printed_expression():
    p = walk(graphs.ring(8), tokens=3, closing=2.0)
    M, d, V, C = 600, 5, p.variance, p.closing_variance
    assert 2 * V <= C <= 2 * V + 1
    nuL = p.step * p.clip / p.grid
    e = math.sqrt(d) / 2 + math.sqrt(d) / 2 + 2.0**-32 * nuL
    printed = math.sqrt((M * e**2 / V + 3 * d / 4 / C) / (2 * math.pi)) + d / 24 * (M / V + 3 / C)
    assert walk_distance(p) == pytest.approx(printed, rel=1e-9)
    assert walk_distance(p) >= printed
    other = p.replace(expansion=1.2)
    assert walk_distance(other) == pytest.approx(d / 24 * (M / V + 3 / C), rel=1e-9)


@pytest.mark.parametrize("strength", [0.0, 0.4])
def test_the_theorem_by_quadrature(strength):
    """A token of one number, two visits that pull towards 1.3: all that it holds, against the rounded ideal, cell by cell."""
    V, reach = 25, 40
    line = np.arange(-reach, reach + 1)

    def pull(theta):
        return strength * np.clip(theta - 1.3, -2, 2)

    def rounded(x):
        return np.floor(np.asarray(x) + 0.5)

    law = np.exp(-(np.arange(-200, 201) ** 2) / (2 * V))
    law /= law.sum()
    edges = np.concatenate([line - 0.5, [line[-1] + 0.5]])
    nodes, weights = np.polynomial.legendre.leggauss(8)
    first, total = -rounded(pull(0.0)), 0.0
    for s in line:
        real = law[int(s - first) + 200] * np.array([law[int(y - (s - rounded(pull(s)))) + 200] for y in line])
        x = s + nodes / 2
        density = np.exp(-((x + pull(0.0)) ** 2) / (2 * V)) / math.sqrt(2 * math.pi * V) * weights / 2
        cells = np.diff(ndtr((edges[None, :] - (x - pull(x))[:, None]) / math.sqrt(V)), axis=1)
        total += np.abs(real - density @ cells).sum() / 2
    bound = absorbed([(2, 1.0, V)], 1)
    assert (bound / 30 if strength else 0) < total < bound


def test_a_tiny_walk_enumerated():
    """Two users, three steps, gradients that always point one way or the other: the exact δ is below the claim."""
    p = WalkDescent(2, 3, sigma=20.0, step=1.0, clip=7.0, grid=1.0, dimension=1)
    loss, k = account(p, [1]), 7
    V, line = p.variance, np.arange(-400, 401)
    assert V == 400

    def law(visits, shift):
        weights = np.exp(-(line.astype(float) ** 2) / (2 * V))
        one = weights / weights.sum()
        out = one
        for _ in range(visits - 1):
            out = np.convolve(out, one, mode="same")
        return np.roll(out, shift * visits)

    for eps in (0.0, 0.5, 1.0):
        exact = 0.0
        for path in itertools.product((0, 1), repeat=3):
            stretches = [len(list(run)) for who, run in itertools.groupby(path) if who == 0]
            if not stretches:
                continue
            P = Q = np.ones(1)
            for visits in stretches:  # the observer sees the model before and after each of them
                P, Q = np.outer(P, law(visits, -k)).ravel(), np.outer(Q, law(visits, k)).ravel()
            exact += np.maximum(P - math.exp(eps) * Q, 0).sum() / 8
        claimed = float(np.nanmax(loss.curve.delta(np.full(2, eps))))
        assert exact <= claimed <= 1
        assert exact > 0.1 * claimed or eps > 0.9


@pytest.mark.parametrize("users", [20, graphs.ring(8)], ids=["complete", "ring"])
@pytest.mark.parametrize("expansion", [1.0, 1.5])
def test_it_costs_next_to_nothing_and_never_less(users, expansion):
    p = walk(users, expansion=expansion)
    real = account(p.in_real_numbers, [0]).epsilon(DELTA)
    grid = account(p, [0]).epsilon(DELTA)
    assert (np.nan_to_num(grid - real) >= -1e-9).all()  # both are read off tables
    np.testing.assert_allclose(grid, real, rtol=1e-3)
    inside = p.in_real_numbers
    assert inside.sigma <= p.sigma * (1 + 2**-40)
    assert inside.clip >= p.clip
    local = local_dp(p).epsilon(DELTA)
    assert (local >= np.nan_to_num(grid) * (1 - 1e-9)).all()
    assert any("whole numbers" in line for line in account(p, [0]).assumptions)
    assert not any("real-valued Gaussian" in line for line in account(p, [0]).assumptions)


def test_the_curve_adds_the_distance():
    ideal = ProfileCurve([0.0, 1.0, 2.0, 3.0], [0.2, 0.05, 0.01, 0.0])
    moved = with_distance(ideal, 1e-3)
    for eps in (0.0, 1.0, 2.0):
        assert float(moved.delta(eps)) == pytest.approx(float(ideal.delta(eps)) + (1 + math.exp(eps)) * 1e-3, rel=1e-6)
    assert float(moved.delta(3.0)) == pytest.approx(moved.deltas.min())
    fine = GaussianCurve(1.0)
    points = np.linspace(0, 8, 300)
    table = with_distance(ProfileCurve(points, np.asarray(fine.delta(points))), 1e-9)
    between = (points[1:] + points[:-1]) / 2
    assert (table.delta(between) >= fine.delta(between)).all()


def test_calibrated_in_whole_numbers():
    p = calibrate(walk(12, 60), 1.0, DELTA)
    assert 0.99 < account(p, [0]).worst_epsilon(DELTA) <= 1.0
    with pytest.raises(Unsupported, match="a study searches for its noise"):
        calibrate(walk(graphs.ring(6), 60), 1.0, DELTA)


def test_a_run_in_whole_numbers_is_one_in_real_numbers_but_for_rounding():
    rng = np.random.default_rng(2)
    X = Logistic(3).prepared(rng.uniform(-1, 1, (60, 2)))
    parties = ModelParties.deal(Logistic(3), X, (X[:, 0] > 0).astype(float), 6)
    for users in (6, graphs.ring(6)):
        real = WalkDescent(users, 60, sigma=1e-8, step=2.0, clip=0.3, tokens=2, dimension=3)
        grid = real.replace(grid=2.0**-50)
        found, wanted = train_walk(grid, parties, 1), train_walk(real, parties, 1)
        np.testing.assert_allclose(found.models, wanted.models, atol=1e-5)
        assert found.contributions.tolist() == wanted.contributions.tolist()
        few = train_walk(grid.replace(batch=2), parties, 1)
        assert not np.allclose(few.models, found.models, atol=1e-3)
    with pytest.raises(InvalidValue, match="ModelParties"):
        train_walk(grid, LogisticParties.deal(X, np.sign(X[:, 0]), 6), 1)


def test_refusals_name_the_value_and_the_way_out():
    plain = {"sigma": 1.0, "step": 1.0, "grid": 2.0**-40}
    for more, words in [
        ({"radius": 3.0}, "radius=3 on a grid"),
        ({"grid": 0.3}, "power of two"),
        ({"grid": 4.0}, "less than one step of the grid"),
        ({"grid": 2.0**-62}, "too fine"),
        ({"batch": 0}, "batch"),
    ]:
        with pytest.raises(InvalidValue, match=words):
            WalkDescent(4, 8, **plain | more)
    with pytest.raises(Unsupported, match="adjacency='zero-out'"):
        account(WalkDescent(4, 8, **plain), [0], adjacency="zero-out")
    with pytest.raises(Unsupported, match="weights on a grid"):
        account(WalkDescent(2, 8, weights=(1.0, 2.0), **plain), [0])
