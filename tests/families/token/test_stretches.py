"""The pieces that a secret walk is cut into, against exact mixtures at small sizes."""

import importlib.util
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from netdp.families.token.account import events as stretches
from netdp.families.token.account.events import Event, Shift, block, compose_events
from netdp.numerics.binomial import most
from netdp.privacy import gaussian_delta

_spec = importlib.util.spec_from_file_location("walk_brute", Path(__file__).with_name("walk_brute.py"))
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)

EPS = np.array([0.0, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0])
ROUNDING = 1e-13  # of the sums of cells


def cases(n, sigma, near=1.0):
    """Stretches with the others at both ends of the interval, u moving by `near` from either end of it, both ways."""
    for ones in range(n - 1):
        others = [1.0] * ones + [0.0] * (n - 2 - ones)
        for own, other in ((0.0, near), (near, 0.0)):
            yield brute.sum_stretch(others, own, other, sigma)


def largest(views):
    return np.max([brute.delta(view, EPS) for view in views], axis=0)


def covers(bound, truth):
    return bool(np.all(truth <= np.asarray(bound) + ROUNDING))


@pytest.mark.parametrize(("n", "size"), [(5, 2), (6, 4), (8, 3)])
@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_block_cut_covers_the_exact_mixture(n, size, sigma):
    w, q = 1 / n, 1 / (n - 1)
    bound = stretches.block_cut(Shift(1 / sigma, 1 / sigma), q, w, size)(EPS)
    truth = largest(
        brute.either(
            [(w * (1 - w) ** r, stretch(r, False, False)) for r in range(size)]
            + [((1 - w) ** size, stretch(size, False, False))]
        )
        for stretch in cases(n, sigma)
    )
    assert covers(bound, truth)
    assert bound[0] < 1.5 * truth[0]


@pytest.mark.parametrize("zeroed", [False, True])
def test_a_range_of_lengths_covers_each_of_them(zeroed):
    """P(k) and η of the longest, noise of the shortest; under zero-out the bound need not grow with η by itself."""
    eps = np.concatenate([[0.0], np.geomspace(1e-4, 10, 60)])
    for q in (0.3, 0.05):
        for far in (0.05, 0.5, 3.0):
            shift = Shift(far / 2 if zeroed else far, far)
            for first, last in ((1, 2), (3, 5), (4, 7)):
                bound = block(shift, q, first, last)(eps)
                for length in range(first, last + 1):
                    assert np.all(block(shift, q, length)(eps) <= bound * (1 + 1e-8) + 1e-18)


@pytest.mark.parametrize(("n", "size"), [(5, 3), (6, 5), (8, 4)])
@pytest.mark.parametrize("sigma", [0.5, 3.0])
@pytest.mark.parametrize("known", [1, 2])
def test_opening_covers_stretches_with_known_ends(n, size, sigma, known):
    """The first known, or both ends; the first alone costs less."""
    w, q, shift = 1 / n, 1 / (n - 1), Shift(1 / sigma, 1 / sigma)
    bound = stretches.opening(shift, q, w, size, known)(EPS)
    truth = largest(
        brute.either(
            [(w * (1 - w) ** j, stretch(j, True, known == 2)) for j in range(size)]
            + [((1 - w) ** size, stretch(size, True, known == 2))]
        )
        for stretch in cases(n, sigma)
    )
    assert covers(bound, truth)
    assert bound[0] < (1.5, 2.5)[known - 1] * truth[0]
    assert np.all(bound <= stretches.opening(shift, q, w, size, 2)(EPS))


@pytest.mark.parametrize("hidden", [True, False])
@pytest.mark.parametrize(("n", "steps"), [(5, 4), (6, 6), (8, 3)])
@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_ending_covers_the_exact_view(n, steps, hidden, sigma):
    w, q = 1 / n, 1 / (n - 1)
    profile, unlikely = stretches.ending(Shift(1 / sigma, 1 / sigma), q, w, steps, steps, hidden=hidden)
    bound = profile(EPS) + unlikely
    truth = largest(
        brute.whole_view(steps, w, stretch, *(() if hidden else ("known", "named")))
        for stretch in list(cases(n, sigma))[::3]
    )
    assert covers(bound, truth)
    wider, more = stretches.ending(Shift(1 / sigma, 1 / sigma), q, w, max(1, steps - 2), steps + 3, hidden=hidden)
    assert np.all(wider(EPS) + more >= truth - ROUNDING)


def test_the_ending_with_two_colluders_of_five():
    """Several visits among the last steps are likely: the sums at ε/(v + 1) matter."""
    steps, sigma = 6, 0.7
    profile, unlikely = stretches.ending(Shift(1 / sigma, 1 / sigma), 1 / 3, 0.4, steps, steps, hidden=True)
    views = (
        brute.whole_view(steps, 0.4, brute.sum_stretch(others, own, 1 - own, sigma))
        for others in ((0.0, 0.0), (0.0, 1.0))
        for own in (0.0, 1.0)
    )
    assert covers(profile(EPS) + unlikely, largest(views))


@pytest.mark.parametrize(("n", "steps", "size"), [(6, 8, 2), (5, 7, 3)])
@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_blocks_and_an_ending_cover_the_whole_walk(n, steps, size, sigma):
    w, q, shift = 1 / n, 1 / (n - 1), Shift(1 / sigma, 1 / sigma)
    last, unlikely = stretches.ending(shift, q, w, size, 2 * size - 1, hidden=True)
    pieces = [stretches.blocks(shift, q, w, steps, size), Event(last, 1)]
    curve = compose_events(pieces, stretches.UNLIKELY + unlikely)
    views = (
        brute.whole_view(steps, w, brute.sum_stretch([x] * (n - 2), own, 1 - own, sigma))
        for x, own in ((0.0, 0.0), (0.0, 1.0), (0.5, 0.0))
    )
    assert covers(curve.delta(EPS), largest(views))


@pytest.mark.parametrize("early", [3, 4])
@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_openings_blocks_and_an_ending_cover_the_whole_walk(early, sigma):
    n, steps, size = 6, 8, 2
    w, q, shift = 1 / n, 1 / (n - 1), Shift(1 / sigma, 1 / sigma)
    last, unlikely = stretches.ending(shift, q, w, size, early + size - 1, hidden=False)
    pieces = [
        stretches.blocks(shift, q, w, steps, size),
        Event(stretches.opening(shift, q, w, early, 2), most(steps, w, stretches.UNLIKELY) + 1),
        Event(last, 1),
    ]
    curve = compose_events(pieces, 2 * stretches.UNLIKELY + unlikely)
    views = (
        brute.whole_view(steps, w, brute.sum_stretch([x] * (n - 2), own, 1 - own, sigma), "known", "named")
        for x, own in ((0.0, 0.0), (0.0, 1.0))
    )
    assert covers(curve.delta(EPS), largest(views))


# ---- the pieces term by term


def visits(length, q):
    k = np.arange(length + 1)
    return zip(k.tolist(), binom.pmf(k, length, q).tolist(), strict=True)


def test_opening_term_by_term():
    """The formula of the proof, written out: known ends stay in the sum, and how often u is hidden beside them is told."""
    q, w, size, mu = 0.2, 0.3, 4, 1.5
    expected = w * (1 - w) * q * gaussian_delta(mu, EPS)
    expected += w * (1 - w) ** 2 * 2 * q * (1 - q) * gaussian_delta(mu / math.sqrt(2), EPS)
    expected += w * (1 - w) ** 2 * q**2 * gaussian_delta(mu * math.sqrt(2), EPS)
    for m, chance in ((3, w * (1 - w) ** 3), (4, (1 - w) ** 4)):
        expected += chance * (1 - q) ** 2 * block(Shift(mu, mu), q, m)(EPS)
        for f, known in ((1, 2 * q * (1 - q)), (2, q**2)):
            for k, among in visits(m, q):
                expected += chance * known * among * gaussian_delta(mu * (f + k) / math.sqrt(m), EPS)
    assert stretches.opening(Shift(mu, mu), q, w, size, 2)(EPS) == pytest.approx(expected, rel=1e-7)


def test_opening_with_the_first_known_term_by_term():
    """It stays in the sum: no noise is set apart for it."""
    q, w, size, mu = 0.2, 0.3, 4, 1.5
    expected = w * (1 - w) * q * gaussian_delta(mu, EPS)
    for m, chance in ((2, w * (1 - w) ** 2), (3, w * (1 - w) ** 3), (4, (1 - w) ** 4)):
        expected += chance * (1 - q) * block(Shift(mu, mu), q, m)(EPS)
        for k, among in visits(m, q):
            expected += chance * q * among * gaussian_delta(mu * (1 + k) / math.sqrt(m), EPS)
    assert stretches.opening(Shift(mu, mu), q, w, size, 1)(EPS) == pytest.approx(expected, rel=1e-7)


def patterns(steps):
    """The lengths of the parts between visits, for every pattern of visits."""
    for pattern in itertools.product("01", repeat=steps):
        yield [len(part) for part in "".join(pattern).split("1")]


def test_hidden_ending_term_by_term():
    """At least the sum over all patterns of visits, by the rules of the proof; ranges of lengths add a little."""
    q, w, steps, mu = 0.05, 0.3, 6, 1.2
    parts = [block(Shift(mu, mu), q, length) for length in range(1, steps + 1)]
    expected = (1 - w) ** steps * parts[steps - 1](EPS)
    for lengths in patterns(steps):
        v = len(lengths) - 1
        if v == 1:
            s, t = sorted(lengths)
            if s == 0:
                expected = expected + w * parts[t - 1](EPS)
            else:
                splits = [parts[s - 1](x * EPS) + parts[t - 1]((1 - x) * EPS) for x in (0.1, 0.3, 0.5, 0.7, 0.9)]
                expected = expected + w * np.min(splits, axis=0)
        for a in lengths if v >= 2 else []:
            if a:
                expected = expected + w**v * parts[a - 1](EPS / (v + 1))
    check_ending(expected, q, w, steps, mu, hidden=True)


def test_told_ending_term_by_term():
    q, w, steps, mu = 0.05, 0.3, 6, 1.2
    quiet = [among * gaussian_delta(k * mu / math.sqrt(steps), EPS) for k, among in visits(steps, q)]
    expected = (1 - w) ** steps * np.sum(quiet, axis=0)
    anywhere = 1 - (1 - q) ** steps
    for lengths in patterns(steps):
        v = len(lengths) - 1
        if v == 1:
            s, t = lengths
            for (k, one), (l, two) in itertools.product(visits(s, q), visits(t, q)):  # noqa: E741
                energy = k**2 / max(s, 1) + l**2 / max(t, 1)
                expected = expected + w * one * two * gaussian_delta(mu * math.sqrt(energy), EPS)
        for a in lengths if v >= 2 else []:
            for k, among in visits(a, q):
                if k:
                    size = k * mu / math.sqrt(a)
                    both = gaussian_delta(size, EPS) + anywhere * gaussian_delta(size, EPS / (v + 1))
                    expected = expected + w**v * among * both
    check_ending(expected, q, w, steps, mu, hidden=False)


def check_ending(expected, q, w, steps, mu, *, hidden):
    profile, unlikely = stretches.ending(Shift(mu, mu), q, w, steps, steps, hidden=hidden)
    found = profile(EPS)
    assert unlikely == 0.0
    assert np.all(found >= np.minimum(expected, 1.0) * (1 - 1e-9))
    assert np.all(found <= 3 * expected)  # lengths 2 and 3, 4 and 5, 6 are taken together
    assert expected[0] < 1  # the comparison says something


# ---- how many pieces there are


def exact_tail(steps, size, w, count):
    """P(`count` blocks cover fewer than `steps` steps), by adding one block after the other."""
    taken = np.zeros(size + 1)
    for r in range(size):
        taken[r + 1] += w * (1 - w) ** r
    taken[size] += (1 - w) ** size
    law = np.zeros(steps + 1)
    law[0] = 1.0
    for _ in range(count):
        after = np.zeros(steps + 1)
        for x in range(1, size + 1):
            after[x:] += taken[x] * law[: steps + 1 - x]
        law = after
    return law[:steps].sum()


@pytest.mark.parametrize(("steps", "size", "w"), [(200, 4, 0.1), (300, 10, 0.02), (60, 3, 0.5)])
def test_most_blocks_is_a_bound_and_not_a_silly_one(steps, size, w):
    count = stretches.most_blocks(steps, size, w)
    assert exact_tail(steps, size, w, count) <= stretches.UNLIKELY
    needed = next(b for b in range(steps // size, steps + 1) if exact_tail(steps, size, w, b) <= stretches.UNLIKELY)
    assert needed <= count <= 1.1 * needed + 2
    assert stretches.most_blocks(steps, 1, w) == steps


def test_most_visits():
    for steps, chance in ((20, 0.05), (1000, 0.01), (10**5, 1e-3)):
        count = most(steps, chance, stretches.UNLIKELY)
        assert binom.sf(count, steps, chance) <= stretches.UNLIKELY < binom.sf(count - 1, steps, chance)
    assert most(5, 0.9, stretches.UNLIKELY) == 5


def test_gaps_are_a_law_and_cover_the_exact_mean():
    for chance in (0.5, 0.05):
        profile = stretches.gap_mixture(2.0, chance)
        lengths = np.arange(1, 3000)
        law = chance * (1 - chance) ** (lengths - 1)
        for eps in (0.0, 0.1, 1.0):
            exact = float(law @ np.asarray(gaussian_delta(2.0 / np.sqrt(lengths), eps)))
            found = float(profile(np.array([eps]))[0])
            assert exact * (1 - 1e-12) <= found <= 1.05 * exact
    told = stretches.gap_profile(
        [(1, lambda eps: np.full(eps.shape, 0.5)), (3, lambda eps: np.full(eps.shape, 0.1))], 0.2
    )
    assert float(told(np.zeros(1))[0]) == pytest.approx(0.5 * (1 - 0.8**2) + 0.1 * 0.8**2)


def test_bins_cover_every_number_once():
    for first, last in ((0, 0), (1, 0), (1, 1), (3, 100), (0, 57)):
        numbers = [x for a, b in stretches.bins(first, last) for x in range(a, b + 1)]
        assert numbers == list(range(first, last + 1))
    assert all(b <= 1.3 * a or a == b for a, b in stretches.bins(1, 1000))


def test_single_steps_are_the_mean_over_visits():
    event = stretches.single_steps(Shift(1.0, 1.0), 0.25, 0.2, 7)
    assert event.times == 7
    assert event.profile(EPS) == pytest.approx(0.8 * block(Shift(1.0, 1.0), 0.25, 1)(EPS))
    assert event.profile(EPS)[0] == pytest.approx(0.8 * 0.25 * math.erf(0.5 / math.sqrt(2)))
