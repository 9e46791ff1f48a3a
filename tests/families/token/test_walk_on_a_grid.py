"""Walks that add whole numbers (docs/proofs/token.md#walk-on-a-grid): whole views of short walks on a lattice."""

import importlib.util
import itertools
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account.grid import Margins
from netdp.families.token.account.openings import known_responses
from netdp.families.token.account.walk import sum_profile
from netdp.families.token.path import PathSum
from netdp.families.token.walk import GraphWalkSum, WalkHistogram, WalkSum
from netdp.mechanisms.discrete_gaussian import normaliser, shift_delta
from netdp.privacy import ProfileCurve
from netdp.protocols.accounting import account, pairwise
from netdp.protocols.alternatives import local_dp, trusted_curator

_spec = importlib.util.spec_from_file_location("walk_brute", Path(__file__).with_name("walk_brute.py"))
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)

EPS = np.array([0.0, 0.3, 1.0, 2.0, 4.0])


def lattice_stretch(others, own, other, variance):
    """A stretch that adds whole numbers and discrete Gaussians, as `brute.sum_stretch` does with Gaussians."""
    reach = math.ceil(9 * math.sqrt(variance)) + 2
    noise = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance)) / normaliser(variance)
    q, kept = 1.0 / (len(others) + 1), {}

    def law(length, value, fixed):
        span = length * (reach + max(map(abs, [*others, own, other]))) + 1
        row = np.zeros(2 * span + 1)
        row[span] = 1.0
        for i in range(length):
            options = [fixed[i]] if i in fixed else [*others, value]
            moved = sum(np.roll(row, shift) for shift in options) / len(options)
            row = np.convolve(moved, noise, mode="same")
        return row

    def stretch(length, first, last):
        key = length, first, last
        if key not in kept:
            if not length:
                return np.ones(1), np.ones(1)
            known, parts = brute._places(length, first, last), []
            for named in itertools.product((False, True), repeat=len(known)):
                chance = math.prod(q if u else 1 - q for u in named)
                pair = tuple(
                    law(length, x, {i: x if u else 0 for i, u in zip(known, named, strict=True)}) for x in (own, other)
                )
                parts.append((chance, pair))
            kept[key] = brute.either(parts)
        return kept[key]

    return stretch


@pytest.mark.parametrize("variance", [1, 4, 36])
def test_whole_views_on_a_lattice_lie_below(variance):
    """Three users, four steps, known senders, a named release; all patterns of visits, all paths, all sums."""
    distance = 2
    for others, (own, other) in itertools.product([(0,), (2,)], [(0, 2), (2, 0)]):
        pair = brute.whole_view(4, 1 / 3, lattice_stretch(others, own, other, variance), "known", "named")
        p = WalkSum(3, 4, sigma=math.sqrt(variance) / 4, sensitivity=distance / 4, grid=0.25)
        assert (p.variance, p.distance) == (variance, distance)
        assert (np.asarray(account(p, [0]).delta(EPS[:, None]))[:, 1] >= brute.delta(pair, EPS)).all()


def test_in_real_numbers_it_would_be_too_little():
    """One contribution with noise of parameter 1, moved by 1: 0.3989 is lost at ε = 0 where Gaussians lose 0.3829."""
    path = PathSum(2, [[1]], sigma=1.0, grid=1.0)
    exact = float(shift_delta(1, 1, [0.0])[0])
    assert float(account(path.replace(grid=None), [0]).delta(0.0)[1]) < exact < float(account(path, [0]).delta(0.0)[1])


@pytest.mark.parametrize("variance", [4, 400, 2**18])
def test_one_number_against_its_exact_profile(variance):
    distance = max(1, math.isqrt(variance))
    path = PathSum(2, [[1]], sigma=math.sqrt(variance), sensitivity=float(distance), grid=1.0)
    loss = account(path, [0])
    exact = shift_delta(variance, distance, EPS)
    found = np.array([float(loss.delta(eps)[1]) for eps in EPS])
    assert (found >= exact).all()
    if variance > 10**5:
        assert (found <= 1.02 * exact).all()


def test_fine_grids_cost_next_to_nothing_and_coarse_ones_more():
    walk = WalkSum(8, 40, sigma=4.0)
    real = account(walk, [0]).worst_epsilon(1e-6)
    found = [account(walk.replace(grid=2.0**-k), [0]).worst_epsilon(1e-6) for k in (2, 5, 9)]
    assert found[0] > found[1] > found[2] > real
    assert found[2] < 1.001 * real
    graph = GraphWalkSum(graphs.ring(5), 30, sigma=4.0, tokens=2)
    gridded = account(graph.replace(grid=2.0**-9), [0])
    assert 1 < gridded.worst_epsilon(1e-6) / account(graph, [0]).worst_epsilon(1e-6) < 1.001
    assert gridded.claim.value == "upper"
    assert any("discrete Gaussian of parameter" in line for line in gridded.assumptions)


def test_more_coordinates_cost_more():
    walk = WalkSum(8, 40, sigma=4.0, grid=2.0**-8)
    assert Margins.of(walk.replace(dimension=50)).both > 10 * Margins.of(walk).both
    assert account(walk.replace(dimension=50), [0]).worst_epsilon(1e-6) > account(walk, [0]).worst_epsilon(1e-6)


def test_everything_else_that_is_said_of_a_walk_on_a_grid():
    path = PathSum(4, [[0, 1, 2, 3, 0, 2]], sigma=2.0, closing=True, grid=2.0**-9)
    for protocol in (
        WalkSum(6, 30, sigma=2.0, grid=2.0**-9),
        GraphWalkSum(graphs.ring(5), 30, 2.0, grid=2.0**-9),
        path,
    ):
        for baseline in (local_dp, trusted_curator):
            real = baseline(protocol.replace(grid=None)).worst_epsilon(1e-5)
            assert real < baseline(protocol).worst_epsilon(1e-5) < 1.002 * real
    real, found = pairwise(path.replace(grid=None)).epsilon(1e-5), pairwise(path).epsilon(1e-5)
    np.testing.assert_array_equal(np.isnan(found), np.eye(4, dtype=bool))
    off = ~np.eye(4, dtype=bool)
    assert (found[off] >= real[off]).all()
    assert (found[off] <= 1.01 * real[off]).all()


def test_a_known_first_holder_is_counted():
    """On peers everybody knows who begins; bounds for known senders count the first stretch as one with known ends."""
    walk, eps = WalkSum(4, 5, sigma=1.2), np.array([0.0, 0.5, 1.5])

    def view(stretch):
        parts = []
        for (first, inner, last), chance in brute.visit_patterns(5, 1 / 4).items():
            whole = stretch(first, True, True)
            for length in (*inner, last or 0):
                whole = brute.together(whole, stretch(length, True, True))
            parts.append((chance, whole))
        return brute.either(parts)

    bound = np.asarray(sum_profile(walk, 1).delta(eps))
    for others, own in itertools.product([(0.0, 0.0), (1.0, 0.0)], (0.0, 1.0)):
        pair = view(brute.sum_stretch(others, own, 1 - own, 1.2))
        assert (bound >= brute.delta(pair, eps)).all()
    histogram = WalkHistogram(4, 5, domain=3, gamma=0.4)
    bound = np.asarray(known_responses(histogram, 1 / 3, 1 / 4).delta(eps))
    pair = view(brute.heap_stretch([2, 2], 0, 1, 3, 0.4))
    assert (bound >= brute.delta(pair, eps)).all()


def test_bad_grids_are_refused():
    with pytest.raises(InvalidValue, match="power of two"):
        WalkSum(4, 8, sigma=1.0, grid=0.3)
    with pytest.raises(InvalidValue, match="less than one step"):
        WalkSum(4, 8, sigma=0.1, grid=0.5)
    with pytest.raises(InvalidValue, match="too fine"):
        GraphWalkSum(graphs.ring(4), 8, sigma=1.0, grid=2.0**-20)  # the closing noise has four times the variance
    with pytest.raises(InvalidValue, match="64-bit"):
        WalkSum(4, 2**28, sigma=2.0**10, grid=2.0**-9, sensitivity=2.0**20)
    with pytest.raises(InvalidValue, match="discrete Gaussian"):
        WalkSum(4, 8, sigma=1.0, grid=0.5, law="laplace")
    with pytest.raises(Unsupported, match="'replace'"):
        account(WalkSum(4, 8, sigma=1.0, grid=0.5), [0], adjacency="zero-out")
    with pytest.raises(InvalidValue, match="in real numbers"):
        sum_profile(WalkSum(4, 8, sigma=1.0, grid=0.5))


# ── formula pins: the printed margins, evaluated anew ─────────────────────────────────────────────────────────────────


def printed_margins(p):
    """a + t, a + b + 2t and e^{−r²/2} of the theorem, r = 16, with 40 digits; t counts two noises a visit: its own, a closing."""
    with mpmath.workdps(40):
        v, w = mpmath.mpf(p.variance), mpmath.mpf(min(p.variance, p.closing_variance or p.variance))
        numbers, r = p.visits * p.dimension, 16
        s = mpmath.nsum(lambda k: mpmath.exp(-2 * mpmath.pi**2 * (w / 2) * k**2), [1, 12])
        t = 2 * numbers * mpmath.log((1 + 2 * s) / (1 - 2 * s))
        a = numbers / (24 * v)
        theta = 1 + 2 * mpmath.nsum(lambda k: mpmath.exp(-2 * mpmath.pi**2 * v * k**2), [1, 12])
        b = (mpmath.sqrt(numbers) * (1 + 1 / (2 * mpmath.sqrt(v))) + r) ** 2 / (24 * v) + numbers * mpmath.log(theta)
        return a + t, a + b + 2 * t, mpmath.exp(-(mpmath.mpf(r) ** 2) / 2)


@pytest.mark.parametrize(
    "protocol",
    [
        WalkSum(3, 7, sigma=1.0, grid=1.0),
        WalkSum(5, 40, sigma=1.5, tokens=2, grid=1.0, dimension=3),
        WalkSum(100, 1000, sigma=1.0, grid=2.0**-8),
        GraphWalkSum(graphs.ring(5), 30, sigma=1.0, tokens=2, grid=1.0),
        PathSum(4, [[0, 1, 2, 3, 0, 2]], sigma=1.0, closing=True, grid=1.0),
    ],
    ids=repr,
)
def test_the_margins_are_those_that_are_printed(protocol):
    found, printed = Margins.of(protocol), printed_margins(protocol)
    assert protocol.visits > 0
    for value, exact in zip((found.up, found.both, found.tail), printed, strict=True):
        assert 1 - 1e-15 <= float(value / exact) <= 1 + 3e-8
    coarse = Margins.of(WalkSum(3, 7, sigma=1.0, grid=1.0))
    assert coarse.up - 7 / 24 > 7 * 4 * math.exp(
        -(math.pi**2)
    )  # t is there: sums of the coarsest noises are no such noise


def test_the_margins_are_used_as_printed():
    """A table of three points: e^{a+t}·δ′(ε − a − b − 2t) + e^{ε−r²/2} at each, and δ′(0) + 1 − e^{−…} at ε = 0."""
    given, margins = ProfileCurve([0.0, 1.0, 2.5], [0.2, 0.04, 1e-5]), Margins(0.3, 0.7, 1e-6)
    found = margins.apply(given)
    assert list(found.epsilons) == [0.0, 0.7, 1.7, 3.2]
    grown = math.exp(0.3)
    printed = [grown * (0.2 + 1 - math.exp(-0.7)), grown * 0.2, grown * 0.04, grown * 1e-5]
    printed = [delta + math.exp(eps) * 1e-6 for delta, eps in zip(printed, found.epsilons, strict=True)]
    assert list(found.deltas) == pytest.approx(printed, rel=1e-12, abs=0.0)
    assert all(value >= exact for value, exact in zip(found.deltas, printed, strict=True))


def test_the_certified_loss_of_one_contribution_is_as_printed():
    """One visit, seen: a Gaussian shift in real numbers, and the printed margins on top of it."""
    path = PathSum(2, [[1]], sigma=3.0, sensitivity=2.0, grid=1.0)
    up, both, tail = printed_margins(path)
    mu = mpmath.mpf(2) / 3
    for eps in (1.6, 2.0, 3.5):
        e = eps - both
        ideal = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
        exact = float(mpmath.exp(up) * ideal + mpmath.exp(eps) * tail)
        assert exact * (1 - 1e-12) <= float(account(path, [0]).delta(eps)[1]) <= exact * (1 + 1e-3)


@pytest.mark.parametrize("step", [0.25, 2.0**-7])
def test_noise_on_the_grid_is_rounded_up_and_in_real_numbers_down(step):
    """v = ⌈σ²/g²⌉, closing noise ⌈closing·v⌉, in fractions; its root is never above what is drawn, by four units at most."""
    path = PathSum(4, [[0, 1, 2, 3, 0, 2]], sigma=1.3, closing=True, grid=step)
    exact = Fraction(1.3) ** 2 / Fraction(step) ** 2
    assert exact <= path.variance < exact + 1
    assert Fraction(path.closing) * path.variance <= path.closing_variance < Fraction(path.closing) * path.variance + 1
    below = Fraction(path.in_real_numbers.sigma)
    assert (1 - Fraction(8, 2**53)) ** 2 * path.variance < below**2 < (1 - Fraction(2, 2**53)) ** 2 * path.variance


def test_closing_noise_is_rounded_up():
    """⌈closing·v⌉, also where closing·v is no whole number."""
    p = GraphWalkSum(graphs.ring(5), 30, sigma=1.5, grid=1.0, closing=0.7)
    assert (p.variance, p.closing_variance) == (3, 3)
    assert PathSum(2, [[1]], sigma=1.5, closing=0.4, grid=1.0).closing_variance == 2
