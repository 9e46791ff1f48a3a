"""Against exact rational arithmetic on small graphs, from both sides: never below, and within the stated margin above.

Proof: docs/proofs/linear.md#linear-gaussian.
"""

from fractions import Fraction

import numpy as np
import pytest

from netdp import graphs
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.views import explicit_view
from netdp.families.linear.account import shift_energy
from netdp.protocols.accounting import account


def check(graph, observers, exact_factors, **settings):
    protocol = Gossip(graph, sigma=1.0, **settings)
    exact = exact_factors(
        graph,
        settings["rounds"],
        observers,
        refresh=Fraction(settings.get("refresh", 0)),
        masks=Fraction(settings.get("masks", 0)),
        gamma=protocol.chebyshev,
    )
    loss = account(protocol, observers)
    for u, factor in exact.items():
        true = float(factor)
        assert loss.factor[u] >= true * (1 - 1e-15), (u, loss.factor[u], true)
        assert loss.factor[u] <= true * (1 + 2 * loss.slack) + 1e-9, (u, loss.factor[u], true)
    assert np.isnan(loss.factor[list(observers)]).all()
    return loss


CASES = {
    "plain": {},
    "accelerated": {"accelerated": True},
    "masked": {"masks": 3.0},
    "masked accelerated": {"masks": 0.5, "accelerated": True},
    "refreshed": {"refresh": 0.5},
    "refreshed accelerated": {"refresh": 0.25, "accelerated": True},
    "both": {"refresh": 0.5, "masks": 10.0},
    "all": {"refresh": 2.0, "masks": 4.0, "accelerated": True},
}


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("case", CASES)
def test_single_observer(case, seed, exact_factors, random_graph):
    rng = np.random.default_rng(1000 + seed)
    graph = random_graph(int(rng.integers(3, 11)), seed)
    rounds = int(rng.integers(1, 5))
    loss = check(graph, (int(rng.integers(graph.n)),), exact_factors, rounds=rounds, **CASES[case])
    assert loss.claim == "exact"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("case", ["plain", "masked", "refreshed", "both"])
def test_colluding_observers(case, seed, exact_factors, random_graph):
    rng = np.random.default_rng(2000 + seed)
    graph = random_graph(int(rng.integers(5, 12)), 50 + seed)
    observers = tuple(sorted(rng.choice(graph.n, int(rng.integers(2, 4)), replace=False).tolist()))
    check(graph, observers, exact_factors, rounds=3, **CASES[case])


def test_twelve_parties_many_rounds(exact_factors, random_graph):
    check(random_graph(12, 7, density=0.1), (0,), exact_factors, rounds=9)


def test_brute_force_itself(exact_factors):
    """Two values known by hand: a path of three, where the end learns its neighbour's noisy value and then the other's."""
    path = graphs.path(3)
    assert exact_factors(path, 1, (0,)) == {1: 1, 2: 0}
    assert exact_factors(path, 2, (0,)) == {1: 1, 2: 1}
    # With a mask between 1 and 2: x1+η1+m and x2+η2−m, so the noise of the sum is 2 and of each alone 1+κ.
    masked = exact_factors(path, 1, (0,), masks=3)
    assert masked == {1: Fraction(1, 4), 2: 0}


@pytest.mark.parametrize("case", CASES)
def test_written_out_view_agrees(case, random_graph):
    """The structured view strikes out the observers' rows of W; the written-out view follows every noise by name."""
    graph = random_graph(9, 3)
    protocol = Gossip(graph, rounds=3, sigma=2.0, sensitivity=3.0, **CASES[case])
    for observers in ([0], [2, 5], [1, 3, 8]):
        loss = account(protocol, observers)
        energy = shift_energy(explicit_view(protocol, observers))
        np.testing.assert_allclose(loss.factor, energy * protocol.sigma**2, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(loss.mu, np.sqrt(energy) * protocol.sensitivity, rtol=1e-6, atol=1e-6)
