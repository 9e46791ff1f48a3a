"""Single reporting against the truth on four users, and how much of the possible gain is certified.

Proof: docs/proofs/shuffle.md#single-reports.
"""

import itertools
import math

import numpy as np
import pytest

from netdp import graphs
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.account.shuffling import _weights, least_deltas, single_deltas
from netdp.families.shuffle.error import largest_error
from netdp.privacy.clones import Heap
from netdp.protocols import Shuffle, account

E0 = math.log(3)
RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])
EPSILONS = np.array([0.0, 0.1, 0.25, 0.45, 0.7, 0.95, 1.08])
KITE = graphs.Graph.from_edges(4, [(0, 1), (1, 2), (0, 2), (2, 3)])


def laws_of(protocol):
    return np.linalg.matrix_power(protocol.transition.toarray(), protocol.rounds)


def truth(laws, victim, response=RESPONSE):
    """True δ, the worst over the others' values and the null value: every place of every report enumerated."""
    n, k = len(laws), len(response)
    worst = np.zeros(len(EPSILONS))
    for others in itertools.product(range(k), repeat=n - 1):
        for null in range(k):
            sides = []
            for x in (0, 1):
                data = [*others[:victim], x, *others[victim:]]
                out = np.zeros(k**n)
                for places in itertools.product(range(n), repeat=n):
                    chance = math.prod(laws[u, i] for u, i in enumerate(places))
                    if chance == 0:
                        continue
                    part = np.ones(1)
                    for i in range(n):
                        held = [response[data[u]] for u in range(n) if places[u] == i] or [response[null]]
                        part = np.outer(np.mean(held, axis=0), part).ravel()
                    out += chance * part
                sides.append(out)
            grow = np.exp(EPSILONS)[:, None]
            for a, b in (sides, sides[::-1]):
                worst = np.maximum(worst, np.maximum(a - grow * b, 0).sum(axis=1))
    return worst


def before_averaging(laws, victim, held=1, k=2):
    """E_N E (Σ a_i Y_i − (γ − 1))₊ in full, a_i = p_u(i)/(held + N_i), of k-ary response."""
    n, e = len(laws), math.exp(E0)
    p = 1 / (e + k - 1)
    total = np.zeros(len(EPSILONS))
    for places in itertools.product(range(n), repeat=n - 1):
        rows = np.delete(laws, victim, axis=0)
        chance = math.prod(rows[w, i] for w, i in enumerate(places))
        if chance == 0:
            continue
        weights = laws[victim] / (held + np.bincount(places, minlength=n))
        for j, eps in enumerate(EPSILONS):
            gamma = math.exp(eps)
            values, law = [e - gamma, 1 - gamma * e, 0.0, 1 - gamma], [p, p, 1 - k * p, (k - 2) * p]
            for draw in itertools.product(range(3 if k == 2 else 4), repeat=n):
                x = sum(a * (values[k] - 1 + gamma) for a, k in zip(weights, draw, strict=True)) - (gamma - 1)
                if x > 0:
                    total[j] += chance * math.prod(law[k] for k in draw) * x
    return total


@pytest.mark.parametrize(("graph", "rounds"), [(KITE, 1), (KITE, 5)])
def test_never_below_the_truth(graph, rounds):
    laws = laws_of(Shuffle(graph, rounds, E0))
    for victim in (0, 3):
        real = truth(laws, victim)
        assert (real <= before_averaging(laws, victim) + 1e-12).all()
        places = [(1, p, float(np.delete(laws, victim, axis=0)[:, i].sum())) for i, p in enumerate(laws[victim])]
        bound = single_deltas(places, Randomizer(E0), EPSILONS)
        assert (before_averaging(laws, victim)[1:] <= bound[1:] + 1e-12).all()
        assert (real <= bound + 1e-12).all()


def test_of_k_ary_responses():
    """The same of three values on three users, and with the total variation alone."""
    response = (np.full((3, 3), 1.0) + 2 * np.eye(3)) / 5
    laws = laws_of(Shuffle(graphs.complete(3), 3, E0, reporting="single"))
    real, full = truth(laws, 0, response), before_averaging(laws, 0, k=3)
    assert (real <= full + 1e-12).all()
    places = [(1, p, float(laws[1:, i].sum())) for i, p in enumerate(laws[0])]
    bound, apart, any_ = (
        single_deltas(places, randomizer, EPSILONS)
        for randomizer in (Randomizer(E0, values=3), Randomizer(E0, variation=2 / 5), Randomizer(E0))
    )
    assert (full[1:] <= bound[1:] + 1e-12).all()
    for one in (bound, apart, any_):
        assert (real <= one + 1e-12).all()
    large = [
        single_deltas([(1000, 0.001, 0.999)], randomizer, [0.05, 0.08])
        for randomizer in (
            Randomizer(1.0, values=8),
            Randomizer(1.0, variation=math.expm1(1) / (math.e + 7)),
            Randomizer(1.0),
        )
    ]
    assert (large[0] <= large[1]).all()
    assert (large[1] < large[2] / 10).all()
    assert single_deltas(places, Randomizer(E0, values=2), EPSILONS).tolist() == any_.tolist()


def test_a_weight_that_is_too_small_would_be_unsound():
    """Counting the victim's own report once too often in its holder's hand: below the truth."""
    laws = laws_of(Shuffle(KITE, 6, E0))
    assert (truth(laws, 0) > before_averaging(laws, 0, held=2) + 1e-3).any()


def test_the_gain_is_certified_and_not_more_than_there_is():
    protocol = Shuffle(graphs.regular(600, 8, 0), 60, 1.0)
    every, single = (account(protocol.replace(reporting=how), "curator") for how in ("all", "single"))
    assert 0.7 < single.worst_epsilon(1e-5) / every.worst_epsilon(1e-5) < 0.8
    for epsilon in (0.03, 0.06, 0.1):
        low = least_deltas(600, 1 - (1 - 1 / 600) ** 600, 1.0, [epsilon])[0]
        assert low <= single.curve.delta(epsilon).max() <= every.curve.delta(epsilon).max()
    assert any("null value" in line for line in single.assumptions)
    assert not any("null value" in line for line in every.assumptions)


def test_the_lower_bound_is_one():
    laws = np.full((4, 4), 0.25)
    handed = 1 - 0.75**4
    assert (least_deltas(4, handed, E0, EPSILONS) <= truth(laws, 0) + 1e-12).all()
    assert least_deltas(4, 1.0, E0, [0.0])[0] == pytest.approx(0.5, abs=0.3)
    assert (least_deltas(1000, 0.6, 1.0, [0.02]) < least_deltas(1000, 1.0, 1.0, [0.02])).all()


def test_hubs_do_not_spoil_it():
    """A star's hub holds half of all reports and hands over one of them: the leaves' reports still hide among n items."""
    star = Shuffle(graphs.star(400), 120, 1.0, laziness=0.5)
    every, single = (account(star.replace(reporting=how), "curator") for how in ("all", "single"))
    assert single.worst_epsilon(1e-4) < 0.62 * every.worst_epsilon(1e-4)


def test_more_others_or_a_wider_spread_never_hurt():
    eps = np.array([0.05, 0.1, 0.2])
    base = single_deltas([(500, 0.002, 1.0)], Randomizer(1.0), eps)
    assert (single_deltas([(500, 0.002, 2.0)], Randomizer(1.0), eps) < base).all()
    assert (single_deltas([(500, 0.002, 0.0)], Randomizer(1.0), eps) > base).all()
    assert (single_deltas([(1000, 0.001, 1.0)], Randomizer(1.0), eps) < base).all()
    alone = single_deltas([(1, 1.0, 0.0)], Randomizer(1.0), eps)
    assert alone == pytest.approx(Heap.of(0, 1.0).deltas(eps))
    assert single_deltas([(500, 0.002, 1.0)], Randomizer(1.0), [1.0, 2.0]).tolist() == [0.0, 0.0]
    assert np.isfinite(single_deltas([(500, 0.002, 1.0)], Randomizer(300.0), eps)).all()


def test_at_equal_epsilon_all_is_still_better():
    """The end of docs/proofs/shuffle.md#single-reports: what is gained in ε is lost in reports."""
    from netdp.families.shuffle.plan import calibrate_epsilon0

    graph = graphs.regular(150, 8, 0)
    errors = [
        largest_error(calibrate_epsilon0(graph, 0.3, 1e-3, rounds=40, reporting=how).protocol).rmse
        for how in ("all", "single")
    ]
    assert 1.2 < errors[1] / errors[0] < 2.5


def test_how_many_others_are_there_is_rounded_up():
    """Formula pin: probabilities of 0, 1, … others, 10⁻¹¹ of each on top; what lies beyond the window counts at its end."""
    for mean in (0.5, 3.0, 200.0):
        weight, often, start = _weights([(1, 0.2, mean)])
        assert start.tolist() == [0]
        assert weight == pytest.approx(0.2 / np.arange(1, len(weight) + 1), rel=1e-15, abs=0.0)
        assert often.sum() - 1 == pytest.approx(1e-11, rel=0.05, abs=0.0)
