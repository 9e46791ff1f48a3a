"""From values to the curator's estimate: unbiased where it says so, biased where it says so, refusing what it must.

Proof: docs/proofs/shuffle.md#shuffling-error.
"""

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.shuffle.error import collection_error, empty_hands
from netdp.families.shuffle.simulate import check_mechanism, collect, estimate_single, run_walks, which_draws
from netdp.mechanisms import Gaussian, Laplace, Mechanism, PrivUnit, RandomizedResponse
from netdp.mechanisms.base import EXACT_DRAWS, OWN_DRAWS
from netdp.protocols import Shuffle

N = 20
# complete with laziness 1/n: one hop leads everywhere with the same probability, so positions are stationary at once
MIXED = Shuffle(graphs.complete(N), rounds=1, epsilon0=2.0, laziness=1 / N)


@pytest.mark.parametrize("graph", [graphs.complete(4), graphs.star(5), graphs.path(4)], ids=lambda graph: graph.name)
def test_empty_hands_by_enumeration(graph):
    n = graph.n
    protocol = Shuffle(graph, rounds=1, epsilon0=1.0, laziness=0.5)
    pi = protocol.stationary
    mean = square = 0.0
    for places in product(range(n), repeat=n):
        chance, empty = np.prod(pi[list(places)]), n - len(set(places))
        mean, square = mean + chance * empty, square + chance * empty**2
    found = empty_hands(protocol)
    assert found == pytest.approx((mean, square - mean**2), rel=1e-10)


@pytest.mark.skipif(
    not Path(os.environ.get("NETDP_DATA", ""), "twitch", "edges.csv").is_file(),
    reason="real data sets are not here: set NETDP_DATA to their folder",
)
def test_empty_hands_on_twitch():
    """The paper counts users who expect less than one report; about 5,456 ± 32 really end up with none."""
    protocol = Shuffle(graphs.dataset("twitch"), rounds=150, epsilon0=1.0)
    assert np.count_nonzero(protocol.n * protocol.stationary < 1) == 7080
    mean, variance = empty_hands(protocol)
    held = [np.bincount(run_walks(protocol, seed)[0].positions, minlength=protocol.n) for seed in range(10)]
    seen = np.mean([np.count_nonzero(counts == 0) for counts in held])
    assert abs(seen - mean) < 4.5 * np.sqrt(variance / 10)


def test_all_is_as_good_as_the_randomizer_alone():
    mechanism = RandomizedResponse(3, 2.0)
    protocol = Shuffle(graphs.dataset("karate"), rounds=3, epsilon0=2.0)
    values = np.arange(34) % 3
    off = np.array([collect(protocol, mechanism, values, s).estimate for s in range(600)]) - mechanism.answer(values)
    error = collection_error(protocol, mechanism, values)
    assert error == mechanism.squared_error(34)
    assert np.mean(np.sum(off**2, axis=1)) == pytest.approx(error, rel=0.15)
    assert np.all(np.abs(off.mean(axis=0)) < 4.5 * np.sqrt(mechanism.variance([1 / 3] * 3, 34) / 600))


@pytest.mark.parametrize(
    ("mechanism", "values", "null"),
    [
        (RandomizedResponse(3, 2.0), np.arange(N) % 2, 2),
        (Laplace.interval(0.0, 1.0, 2.0), np.linspace(0, 1, N), 1.0),
        (PrivUnit(3, 2.0), np.eye(3)[np.arange(N) % 2], [0.0, 0.0, -1.0]),
    ],
    ids=["response", "laplace", "privunit"],
)
def test_single_is_unbiased_when_mixed_and_has_the_stated_error(mechanism, values, null):
    protocol, repeats = MIXED.replace(reporting="single"), 1500
    truth, error = mechanism.answer(values), collection_error(protocol, mechanism, values, null=null)
    runs = [collect(protocol, mechanism, values, s, null=null, floats=True) for s in range(repeats)]
    off = np.array([done.estimate for done in runs]) - truth
    assert np.all(np.abs(off.mean(axis=0)) < 4.5 * off.std(axis=0) / np.sqrt(repeats))
    assert np.mean(np.sum(off**2, axis=1)) == pytest.approx(error, rel=0.12)
    assert error > collection_error(MIXED, mechanism, values)  # dummies and dropped reports cost


def test_chance_terms_of_the_error_without_noise():
    """Noise hides them above; with almost none of it, dropped reports and the number of dummies are all there is."""
    mechanism = Laplace.interval(0.0, 1.0, 50.0)
    protocol = MIXED.replace(reporting="single", epsilon0=50.0)
    values = np.linspace(0, 1, N) ** 2
    error = collection_error(protocol, mechanism, values, null=0.9)
    assert error > 5 * collection_error(protocol.replace(reporting="all"), mechanism, values)
    mean = mechanism.answer(values)
    off = np.array(
        [collect(protocol, mechanism, values, s, null=0.9, floats=True).estimate - mean for s in range(1500)]
    )
    assert np.mean(off**2) == pytest.approx(error, rel=0.1)
    assert abs(off.mean()) < 4.5 * off.std() / np.sqrt(1500)


def test_single_is_biased_before_mixing():
    """One hop on a star: the leaves' reports crowd at the hub and one in n−1 survives; the hub's always does."""
    protocol = Shuffle(graphs.star(6), rounds=1, epsilon0=50.0, laziness=0.01, reporting="single")
    mechanism, values = Laplace.interval(0.0, 1.0, 50.0), np.array([1.0, 0, 0, 0, 0, 0])
    early = [collect(protocol, mechanism, values, s, null=0.0).estimate[0] for s in range(300)]
    assert np.mean(early) > 0.25  # about 1/(6 − E₀) = 0.3; the true mean is 1/6
    late = protocol.replace(rounds=60, laziness=0.5)
    settled = np.array([collect(late, mechanism, values, s, null=0.0, floats=True).estimate[0] for s in range(1500)])
    assert abs(settled.mean() - 1 / 6) < 4.5 * settled.std() / np.sqrt(1500)


def test_dummies_left_in_would_bias():
    mechanism, values = Laplace.interval(0.0, 1.0, 2.0), np.zeros(N)
    protocol = MIXED.replace(reporting="single")
    runs = [collect(protocol, mechanism, values, s, null=1.0) for s in range(600)]
    plain = np.array([done.mechanism.estimate(done.run.view.reports)[0] for done in runs])
    assert plain.mean() == pytest.approx(empty_hands(protocol)[0] / N, abs=0.05)
    assert abs(np.mean([done.estimate[0] for done in runs])) < 0.06


def test_the_randomizer_must_keep_what_the_protocol_states():
    check_mechanism(MIXED, RandomizedResponse(2, 2.0))
    check_mechanism(MIXED, RandomizedResponse(2, 1.0))  # more private is fine
    for mechanism in (RandomizedResponse(2, 2.0 + 1e-9), Laplace(1.0, 2.5), PrivUnit(3, 2.1), Gaussian(1.0)):
        with pytest.raises(InvalidValue, match=r"the protocol states ε₀ = 2, δ₀ = 0, but this"):
            collect(MIXED, mechanism, np.zeros(N), 0)
    approximate = MIXED.replace(delta0=1e-5)
    good = Gaussian.calibrated(2.0, 1e-5)
    check_mechanism(approximate, good)
    check_mechanism(approximate, good.replace(epsilon0=1.0))  # stated elsewhere on the same curve
    with pytest.raises(InvalidValue, match="Gaussian has δ = "):
        check_mechanism(approximate, Gaussian(good.sigma * 0.999, epsilon0=2.0))
    with pytest.raises(InvalidValue, match="must be a randomizer"):
        check_mechanism(MIXED, "laplace")


def test_refusals():
    mechanism, single = RandomizedResponse(2, 2.0), MIXED.replace(reporting="single")
    zeros = np.zeros(N, dtype=int)
    for bad, message in [
        (lambda: collect(MIXED, mechanism, zeros[:5], 0), "20 users; give one value for each, got 5"),
        (lambda: collect(MIXED, mechanism, zeros, 0, null=1), "sends no dummies; leave null out, got 1"),
        (lambda: collect(single, mechanism, zeros, 0), "needs null"),
        (lambda: collect(single, mechanism, zeros, 0, null=2), "row 0 of values is 2; the domain is 0 … 1"),
        (lambda: collect(MIXED, mechanism, zeros + 3, 0), "row 0 of values is 3"),
        (lambda: estimate_single(single, mechanism, zeros[:5], 0), "got 5"),
        (lambda: collection_error(MIXED, mechanism, zeros[:5]), "got 5"),
    ]:
        with pytest.raises(InvalidValue, match=message):
            bad()


def test_the_same_seed_gives_the_same_estimate():
    mechanism, values = RandomizedResponse(2, 2.0), np.arange(N) % 2
    one, same, other = (collect(MIXED, mechanism, values, s).estimate for s in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_of_a_randomizer_of_ones_own_no_exact_draws_are_claimed():
    class Alike:
        """Has all that an exact randomizer has, and draws as it likes."""

        def __init__(self):
            inner = RandomizedResponse(2, 1.0)
            for name in (name for name in dir(inner) if not name.startswith("_")):
                setattr(self, name, getattr(inner, name))

    assert which_draws(RandomizedResponse(2, 1.0), floats=False)[1] == EXACT_DRAWS
    assert isinstance(Alike(), Mechanism)
    assert which_draws(Alike(), floats=False)[1] == OWN_DRAWS
