"""Shuffles that state their randomizer: what is certified, for whom, and that runs keep to it.

Proofs: docs/proofs/shuffle.md#crowds, #variation, #single-reports. The truth by enumeration: test_crowds, test_single, test_clones.
"""

import math

import numpy as np
import pytest

import netdp
from netdp import FaultyShuffle, RelayedShuffle, Shuffle, graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.plan import calibrate_epsilon0, plan_relayed, plan_rounds, plan_with_faults
from netdp.families.shuffle.simulate import check_mechanism, collect
from netdp.mechanisms import GridLaplace, PrivUnit, RandomizedResponse, UnaryEncoding
from netdp.protocols.base import Protocol

GRAPH = graphs.regular(60, 8, seed=0)
SMALL = graphs.regular(20, 6, seed=0)
DELTA = 1e-4


@pytest.mark.parametrize(("k", "expected"), [(None, 0.1025), (2, 0.1025), (4, 0.081), (16, 0.044), (128, 0.015)])
def test_the_figures_of_mixed_reports(k, expected):
    assert Randomizer(1.0, values=k).heap(1999).epsilon(1e-6) == pytest.approx(expected, abs=6e-4)


WAYS = {
    "all": lambda **how: netdp.account(Shuffle(GRAPH, 12, 1.0, **how), "curator"),
    "single": lambda **how: netdp.account(Shuffle(GRAPH, 12, 1.0, reporting="single", **how), "curator"),
    "colluder": lambda **how: netdp.account(Shuffle(GRAPH, 12, 1.0, **how), ("curator", 3)),
    "given the pattern": lambda **how: netdp.account(
        p := FaultyShuffle(SMALL, 14, 1.0, outages=0.1, lost=0.01, **how), "curator", transcript=p.pattern(seed=1)
    ),
    "a colluder, given the pattern": lambda **how: netdp.account(
        p := FaultyShuffle(SMALL, 14, 1.0, outages=0.1, **how), ("curator", 3), transcript=p.pattern(seed=1)
    ),
    "before the draw": lambda **how: netdp.account(FaultyShuffle(GRAPH, 60, 1.0, outages=0.1, **how), "curator"),
    "cover": lambda **how: netdp.account(RelayedShuffle(GRAPH, 12, 1.0, cover=12, **how), "curator"),
    "bundles": lambda **how: netdp.account(RelayedShuffle(GRAPH, 60, 1.0, bundles=4, **how), "curator"),
    "in the open": lambda **how: netdp.account(RelayedShuffle(GRAPH, 12, 1.0, **how), "curator"),
    "any two": lambda **how: netdp.account(Shuffle(GRAPH, 12, 1.0, **how), colluders=2),
    "trusted": lambda **how: netdp.trusted_curator(Shuffle(GRAPH, 12, 1.0, **how)),
}


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_more_values_are_more_private_and_the_claim_says_so(way):
    losses = [WAYS[way](**how) for how in ({}, {"values": 2}, {"values": 8}, {"values": 64})]
    curves = [
        np.nanmax(np.array([np.atleast_1d(loss.delta(e)) for e in (0.0, 0.05, 0.1, 0.3)]), axis=1) for loss in losses
    ]
    assert curves[0] == pytest.approx(curves[1], rel=1e-12)
    assert (curves[2] < curves[1]).all()
    assert (curves[3] <= curves[2]).all()
    assert curves[3][0] < curves[2][0]
    for loss in losses:  # at δ = 0 a report says ε₀ all the same
        assert loss.worst_epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
    if way != "trusted":
        said = " ".join(losses[2].assumptions)
        assert "randomized response over 8 values with ε₀ = 1" in said
        assert "ε₀ = 1 randomizer" not in said
        assert "ε₀ = 1 randomizer" in " ".join(losses[0].assumptions)
    # nobody is better off than with a trusted shuffler of the same reports
    if way in ("all", "cover", "bundles", "before the draw"):
        floor = Randomizer(1.0, values=8).heap(59).deltas([0.0, 0.05, 0.1, 0.3])
        assert (curves[2] >= floor * (1 - 1e-9)).all()
    if way == "any two":
        for loss in losses:
            assert 0 < loss.found.curve.delta(0.3) <= np.max(loss.delta(0.3))


def test_total_variation_is_between_any_randomizer_and_the_very_mechanism():
    eta = math.expm1(1) / (math.e + 7)
    losses = [
        netdp.account(Shuffle(GRAPH, 12, 1.0, **how), "curator").worst_epsilon(DELTA)
        for how in ({"values": 8}, {"variation": eta}, {}, {"variation": math.tanh(0.5)})
    ]
    assert losses[0] < losses[1] < losses[2] / 1.5
    assert losses[1] < 1.2 * losses[0]
    assert losses[2] == pytest.approx(losses[3], rel=1e-12)
    alone = netdp.local_dp(Shuffle(GRAPH, 12, 1.0, variation=eta))
    assert alone.worst_epsilon(0.0) == pytest.approx(1.0)
    assert float(np.max(alone.delta(0.0))) == pytest.approx(eta, rel=1e-9)
    assert "at most 0.176" in " ".join(netdp.account(Shuffle(GRAPH, 12, 1.0, variation=eta), "curator").assumptions)


@pytest.mark.parametrize(
    "mechanism",
    [UnaryEncoding(9, 1.0), UnaryEncoding(9, 1.0, "symmetric"), PrivUnit(5, 1.0), GridLaplace(1.0, 1.0)],
    ids=lambda one: type(one).__name__,
)
def test_other_randomizers_are_more_private_than_the_worst(mechanism):
    eta = float(mechanism.curve.delta(0.0))
    assert eta < math.tanh(0.5)
    stated, any_ = Randomizer(1.0, variation=eta), Randomizer(1.0)
    assert stated.heap(1999).epsilon(1e-6) < 0.96 * any_.heap(1999).epsilon(1e-6)
    eps = np.linspace(0, 1, 11)
    assert (mechanism.curve.delta(eps) <= stated.alone.delta(eps) * (1 + 1e-9) + 1e-15).all()
    check_mechanism(Shuffle(GRAPH, 12, 1.0, variation=eta), mechanism)
    with pytest.raises(InvalidValue, match="total variation of"):
        check_mechanism(Shuffle(GRAPH, 12, 1.0, variation=eta * 0.99), mechanism)


def test_the_heap_of_k_ary_responses_by_direct_sums():
    """n = 300 and k = 16 by multinomial sums of the counts of both symbols, all others uniform draws or shown; no bins."""
    from scipy.stats import binom

    n, k, e = 300, 16, math.e
    gamma, eps = k / (e + k - 1), np.array([0.03, 0.08, 0.12])
    total = np.zeros(3)
    draws = np.arange(n)
    for drawn, chance in zip(draws, binom.pmf(draws, n - 1, gamma), strict=True):
        if chance < 1e-14:
            continue
        T = drawn + 1
        s = np.arange(T + 1)
        some = binom.pmf(s, T, 2 / k)
        for symbols in s[some > 1e-14]:
            a = np.arange(symbols + 1)
            b, c = symbols - a, T - symbols
            score = (e * a + b + c)[None] - np.exp(eps)[:, None] * (a + e * b + c)[None]
            score *= k / (e + k - 1) / T
            total += chance * some[symbols] * (np.maximum(score, 0) @ binom.pmf(a, symbols, 0.5))
    found = Randomizer(1.0, values=k).heap(n - 1).deltas(eps)
    assert (found >= total * (1 - 1e-9) - 1e-13).all()
    assert found == pytest.approx(total, rel=0.03)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Shuffle(GRAPH, 9, 1.0, values=1), "values must be"),
        (lambda: Shuffle(GRAPH, 9, 1.0, values=2.5), "values must be"),
        (lambda: FaultyShuffle(GRAPH, 9, 1.0, variation=0.0), "variation must"),
        (lambda: RelayedShuffle(GRAPH, 9, 1.0, variation=1.5), "variation must"),
        (lambda: Shuffle(GRAPH, 9, 1.0, values=4, variation=0.1), "give one of them"),
        (lambda: Shuffle(GRAPH, 9, 1.0, values=4, delta0=1e-6), "values=4 is for pure randomizers"),
        (lambda: FaultyShuffle(GRAPH, 9, 1.0, variation=0.2, delta0=1e-6), "leave one of the two out"),
    ],
)
def test_what_no_randomizer_is_is_refused(made, words):
    with pytest.raises(InvalidValue, match=words):
        made()


@pytest.mark.parametrize("how", [{"values": 16}, {"variation": 0.3}])
@pytest.mark.parametrize("kind", [Shuffle, FaultyShuffle, RelayedShuffle])
def test_it_is_written_down_and_read_back(kind, how):
    protocol = kind(GRAPH, 9, 1.0, **how)
    assert Protocol.from_dict(protocol.to_dict()) == protocol
    assert protocol != kind(GRAPH, 9, 1.0)
    assert ("16-ary" if "values" in how else "total variation 0.3") in protocol.describe()
    old = {name: value for name, value in kind(GRAPH, 9, 1.0).to_dict().items() if name not in ("values", "variation")}
    assert Protocol.from_dict(old) == kind(GRAPH, 9, 1.0)
    if kind is RelayedShuffle:
        assert protocol.direct == Shuffle(GRAPH, 9, 1.0, **how)


PROTOCOLS = {
    "shuffle": Shuffle(GRAPH, 9, 1.0, values=4),
    "faulty": FaultyShuffle(GRAPH, 9, 1.0, values=4, outages=0.1),
    "relayed": RelayedShuffle(GRAPH, 9, 1.0, values=4, cover=6),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_run_has_the_mechanism_that_is_stated(name):
    protocol = PROTOCOLS[name]
    labels = np.arange(60) % 4
    done = netdp.simulate(protocol, labels, seed=1)
    assert done.mechanism == RandomizedResponse(4, 1.0)
    assert done.estimate.sum() == pytest.approx(1.0)
    same = netdp.simulate(protocol, labels, seed=1, mechanism=RandomizedResponse(4, 1.0))
    assert same.estimate.tolist() == done.estimate.tolist()
    netdp.simulate(protocol, labels, seed=1, mechanism=RandomizedResponse(4, 0.5))  # more private
    for other in (RandomizedResponse(2, 1.0), RandomizedResponse(5, 1.0), UnaryEncoding(4, 1.0)):
        with pytest.raises(InvalidValue, match=r"over 4 values, got .*take\s+RandomizedResponse\(4, 1\)"):
            netdp.simulate(protocol, labels % 2, seed=1, mechanism=other)
    with pytest.raises(InvalidValue, match="over 4 values, got GridLaplace"):
        netdp.simulate(protocol, labels / 4, seed=1, bounds=(0, 1))
    assert netdp.expected_error(protocol).rmse > netdp.expected_error(protocol.replace(values=None)).rmse


@pytest.mark.parametrize("name", ["faulty", "relayed"])
def test_collect_of_faulty_and_relayed_shuffles_collects(name):
    """It ended in an AttributeError: only a plain shuffle has a reporting."""
    protocol = PROTOCOLS[name].replace(values=None)
    mechanism, values = RandomizedResponse(2, 1.0), np.arange(60) % 2
    done = collect(protocol, mechanism, values, seed=3)
    assert done.estimate.tolist() == netdp.simulate(protocol, values, seed=3, mechanism=mechanism).estimate.tolist()
    with pytest.raises(InvalidValue, match="null"):
        collect(protocol, mechanism, values, seed=3, null=0)


def test_single_reports_of_labels_have_dummies_of_the_first():
    protocol = Shuffle(GRAPH, 9, 1.0, values=4, reporting="single")
    done = netdp.simulate(protocol, np.arange(60) % 4, seed=1)
    assert len(done.run.view.reports) == 60
    error = netdp.expected_error(protocol, np.arange(60) % 4, mechanism=RandomizedResponse(4, 1.0), null=0)
    from netdp.families.shuffle.error import largest_error

    assert error.total <= largest_error(protocol).total


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_error_is_the_largest(seed):
    """Whatever the labels of k values are; and it is attained up to the grid of labels."""
    from netdp.families.shuffle.error import collection_error, largest_error

    k = 2 + seed
    protocol = Shuffle(GRAPH, 9, 1.0, values=k, reporting="single")
    most, rng = largest_error(protocol).total, np.random.default_rng(seed)
    found = []
    for first in range(0, 61, 5):
        for others in ([1], range(1, k)):
            labels = np.concatenate([np.zeros(first, dtype=int), np.resize(list(others), 60 - first)])
            found.append(collection_error(protocol, RandomizedResponse(k, 1.0), labels, null=0))
        found.append(collection_error(protocol, RandomizedResponse(k, 1.0), rng.integers(0, k, 60), null=0))
    assert max(found) <= most * (1 + 1e-12)
    assert max(found) > 0.98 * most


def test_noise_is_calibrated_and_hops_are_planned_for_the_mechanism():
    plain, stated = (calibrate_epsilon0(GRAPH, 0.5, 1e-3, values=values) for values in (None, 16))
    assert stated.protocol.epsilon0 > plain.protocol.epsilon0 * 1.2
    assert stated.protocol.values == 16
    assert netdp.account(stated.protocol, "curator").worst_epsilon(1e-3) <= 0.5
    found = netdp.calibrate(Shuffle(GRAPH, 30, 1.0, values=16), epsilon=0.5, delta=1e-3)
    assert found.values == 16
    assert 0.49 < netdp.account(found, "curator").worst_epsilon(1e-3) <= 0.5
    with pytest.raises(Unsupported, match=r"variation=0\.3 is that of one ε₀"):
        netdp.calibrate(Shuffle(GRAPH, 30, 1.0, variation=0.3), epsilon=0.5, delta=1e-3)
    open_ = netdp.calibrate(RelayedShuffle(GRAPH, 30, 1.0, values=16), epsilon=0.5, delta=1e-2)
    assert 0.45 < netdp.account(open_, "curator").worst_epsilon(1e-2) <= 0.5
    assert open_.epsilon0 > 0.59  # of binary response: 0.515
    for plan in (
        plan_rounds(GRAPH, 1.0, 1e-3, values=16),
        plan_with_faults(GRAPH, 1.0, 1e-3, lost=0.001, values=16),
        plan_relayed(GRAPH, 1.0, 1e-3, values=16),
    ):
        assert plan.protocol.values == 16
        assert plan.promised <= 1.0101 * plan.uniform


def test_the_error_of_a_randomizer_that_is_not_named_is_not_guessed():
    with pytest.raises(Unsupported, match="give mechanism"):
        netdp.expected_error(Shuffle(GRAPH, 9, 1.0, variation=0.3))
    named = netdp.expected_error(Shuffle(GRAPH, 9, 1.0, variation=0.3), mechanism=UnaryEncoding(4, 1.0))
    assert named.rmse > 0
