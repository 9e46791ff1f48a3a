"""The probability that a coalition cuts parties off: rings enumerated, and rings drawn.

Proof: docs/proofs/masked.md#random-masks.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked.account import (
    _logarithms,
    against_any,
    component_curve,
    cut_probability,
    partners_needed,
    rings_cut,
)
from netdp.families.masked.protocol import MaskedSum, random_rings
from netdp.protocols.accounting import account


def rings(n):
    """All rings through n parties, as sets of edges."""
    for order in itertools.permutations(range(1, n)):
        if order[0] < order[-1]:
            path = (0, *order)
            yield frozenset(frozenset(pair) for pair in zip(path, (*order, 0), strict=True))


def connected(n, edges, observers):
    honest = set(range(n)) - set(observers)
    reached, todo = set(), [min(honest)]
    while todo:
        u = todo.pop()
        if u not in reached:
            reached.add(u)
            todo += [v for v in honest if frozenset((u, v)) in edges]
    return reached == honest


@pytest.mark.parametrize(("n", "c"), [(4, 2), (5, 2), (6, 2), (6, 3), (7, 3), (7, 4), (8, 3)])
def test_one_ring_keeps_two_sets_apart_as_often_as_counted(n, c):
    every = list(rings(n))
    assert len(every) == math.factorial(n - 1) // 2
    _, alone, _ = _logarithms(n, c)
    for s in range(1, (n - c) // 2 + 1):
        first, second = range(c, c + s), range(c + s, n)
        apart = sum(not any(frozenset((u, v)) in ring for u in first for v in second) for ring in every)
        assert math.exp(alone[s - 1]) == pytest.approx(apart / len(every), rel=1e-12)


@pytest.mark.parametrize(("n", "c", "count"), [(5, 2, 1), (6, 2, 1), (6, 3, 2), (7, 3, 2), (7, 4, 2), (6, 2, 2)])
def test_the_bound_is_above_the_truth_and_not_far(n, c, count):
    """All unions of one or two rings. Two parties that are left: S and T are single, and the bound is exact."""
    every = list(rings(n))
    cut = sum(
        not connected(n, frozenset().union(*chosen), range(c)) for chosen in itertools.product(every, repeat=count)
    )
    truth = Fraction(cut, len(every) ** count)
    found = rings_cut(n, c, count)
    assert truth <= Fraction(found)
    assert found <= float(truth) * 1.5 + 1e-12


def test_two_parties_left_is_exact():
    n, c = 7, 5
    every = list(rings(n))
    apart = sum(frozenset((5, 6)) not in ring for ring in every) / len(every)
    assert rings_cut(n, c, 3) == pytest.approx(apart**3, rel=1e-8)


@pytest.mark.parametrize(("n", "c", "degree"), [(30, 12, 4), (24, 10, 6)])
def test_graphs_that_are_really_drawn_are_cut_no_more_often(n, c, degree):
    """Monte Carlo over seeds: the bound is refuted if so many cuts would have a probability below 1e-9 under it."""
    draws, cuts = 1500, 0
    honest = list(range(c, n))
    for seed in range(draws):
        cuts += int(random_rings(n, degree // 2, seed).subgraph(honest).components().max() > 0)
    bound = rings_cut(n, c, degree // 2)
    assert 0 < cuts / draws < 1
    assert stats.binom.sf(cuts - 1, draws, bound) > 1e-9
    assert bound < 2 * cuts / draws + 0.05


def test_large_sets_are_bounded_not_summed():
    """Beyond 256 the sum is bounded by its largest term: above the exact count, by less than the number of terms."""
    n, c = 700, 60
    h = n - c
    _, alone, _ = _logarithms(n, c)
    for s in (256, 257, 290, 320):
        t = h - s
        ways = sum(
            math.comb(c, a) * math.comb(s - 1, a - 1) * math.comb(t + c - a - 1, t) for a in range(1, min(s, c - 1) + 1)
        )
        exact = Fraction(ways * math.factorial(c - 1) * math.factorial(s) * math.factorial(t), math.factorial(n - 1))
        log = math.log(exact.numerator) - math.log(exact.denominator)
        assert log - 1e-9 <= alone[s - 1] <= log + (1e-9 if s <= 256 else math.log(60) + 1e-5)


def test_one_party_cuts_no_ring_and_more_partners_help():
    protocol = MaskedSum(graphs.ring(100), sigma=0.5, masks=8)
    assert cut_probability(protocol, 0) == cut_probability(protocol, 1) == 0.0
    chances = [cut_probability(protocol.replace(masks=k), 20) for k in (2, 4, 8, 16)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] == 1.0
    assert chances[-1] == pytest.approx(80 * 0.2**16, rel=0.5)  # somebody's sixteen partners all collude
    chances = [cut_probability(protocol, c) for c in (2, 10, 30, 60)]
    assert chances == sorted(chances)
    assert cut_probability(protocol, 99) == 0.0  # a single honest party is not cut off from anybody
    assert cut_probability(protocol.replace(masks="complete"), 50) == 0.0


def test_partners_needed_are_the_fewest():
    assert partners_needed(200, 40, 1e-8) == 16
    assert rings_cut(200, 40, 8) <= 1e-8 < rings_cut(200, 40, 7)
    assert partners_needed(5, 3, 1e-12) is None


def test_what_is_unproved_is_refused():
    given = MaskedSum(graphs.ring(12), sigma=0.5, masks=graphs.path(12))
    with pytest.raises(Unsupported, match="masks is a given graph, which was not drawn"):
        cut_probability(given, 2)
    with pytest.raises(Unsupported, match="was not drawn"):
        account(given, [0, 1], fixed_before_draw=True)
    with pytest.raises(InvalidValue, match="colluders=12 leaves nobody"):
        cut_probability(MaskedSum(graphs.ring(12), sigma=0.5, masks=4), 12)
    with pytest.raises(InvalidValue, match="fixed_before_draw"):
        account(MaskedSum(graphs.ring(12), sigma=0.5, masks=4), [0], fixed_before_draw="yes")


def test_a_coalition_fixed_before_the_draw_faces_everybody_else():
    protocol = MaskedSum(graphs.ring(60), sigma=0.5, masks=12)
    observers = list(range(12))
    chance = cut_probability(protocol, 12)
    assert 0 < chance < 1e-6
    loss = account(protocol, observers, fixed_before_draw=True)
    together = component_curve(protocol, 48)
    for epsilon in (0.2, 1.0, 2.0):
        assert np.nanmax(loss.delta(epsilon)) == pytest.approx(float(together.delta(epsilon)) + chance, rel=1e-9)
    assert loss.claim.value == "upper"
    assert loss.factor is None
    assert f"a probability of at most {chance:.2g}, which is part of δ" in loss.assumptions[-1]
    assert "fixed before the mask graph was drawn" in loss.assumptions[-1]
    assert math.isinf(loss.worst_epsilon(chance / 2))
    assert float(against_any(protocol, 12).epsilon(1e-6)) == loss.worst_epsilon(1e-6)
    assert any("for this coalition and the mask graph as it is" in line for line in account(protocol, [0]).assumptions)


def test_a_coalition_that_cuts_the_drawn_graph_was_not_fixed_before():
    p = MaskedSum(graphs.ring(60), sigma=1.0, masks=4, mask_seed=3)
    partners = sorted(int(v) for v in p.mask_graph.neighbors(0))
    assert np.nanmax(account(p, partners).factor) == 1
    with pytest.raises(InvalidValue, match="do cut parties off"):
        account(p, partners, fixed_before_draw=True)


def test_ties_of_rings_are_counted():
    """Formula pin: where cuts are less likely than 10⁻⁵⁰, what is left is that two of n keys of 128 bits agree, rings·n²·2⁻¹²⁹."""
    assert rings_cut(60, 2, 25) == pytest.approx(25 * 60**2 * 2.0**-129, rel=1e-9, abs=0.0)
