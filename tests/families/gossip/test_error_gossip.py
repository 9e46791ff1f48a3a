"""The predicted error (docs/proofs/gossip.md#gossip-error) against the definition, written out, and against simulation."""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip import error as utility
from netdp.families.gossip.protocol import Gossip
from netdp.protocols.accuracy import expected_error


def run_once(protocol, values, rng):
    """One literal run of the protocol; the final states."""
    n, W, gamma = protocol.graph.n, protocol.matrix.toarray(), protocol.chebyshev
    state = values + protocol.sigma * rng.standard_normal(n)
    for u, w in protocol.graph.edges():
        mask = np.sqrt(protocol.mask_variance) * rng.standard_normal()
        state[u] += mask
        state[w] -= mask
    remembered = state
    for t in range(protocol.rounds):
        if t:
            fresh = np.sqrt(protocol.refresh_variance) * rng.standard_normal(n)
            state, remembered = state + fresh, remembered + fresh
        mixed = W @ state
        if gamma is not None and t:
            mixed = gamma * mixed + (1 - gamma) * remembered
        state, remembered = mixed, state
    return state


@pytest.mark.parametrize("accelerated", [False, True])
def test_prediction_meets_simulation(accelerated):
    rng = np.random.default_rng(5)
    graph = graphs.dataset("florentine")
    protocol = Gossip(graph, rounds=6, sigma=0.7, refresh=2.0, masks=1.5, accelerated=accelerated)
    values = rng.random(graph.n)
    squares = [((run_once(protocol, values, rng) - values.mean()) ** 2).mean() for _ in range(4000)]
    predicted = expected_error(protocol, values)
    error = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - predicted.total) < 4 * error
    assert predicted.masks > 0
    assert predicted.refresh > 0
    assert predicted.mixing > 0


def test_perfect_averaging_leaves_the_curators_error():
    error = expected_error(Gossip(graphs.complete(20), rounds=1, sigma=2.0, masks=7.0), np.arange(20.0))
    assert error.noise == pytest.approx(4 / 20)
    assert error.masks == pytest.approx(0, abs=1e-12)
    assert error.mixing == pytest.approx(0, abs=1e-12)


def test_vectors_count_every_coordinate():
    protocol = Gossip(graphs.ring(5), rounds=3, sigma=1.0)
    values = np.random.default_rng(0).random((5, 3))
    apart = [expected_error(protocol, values[:, k]).total for k in range(3)]
    assert expected_error(protocol, values).total == pytest.approx(sum(apart))


def test_refusals(monkeypatch):
    protocol = Gossip(graphs.ring(5), rounds=3, sigma=1.0)
    with pytest.raises(InvalidValue, match=r"\(5,\) or \(5, d\).*\(4,\)"):
        expected_error(protocol, np.zeros(4))
    with pytest.raises(InvalidValue, match="party 2 is not finite"):
        expected_error(protocol, [0, 1, np.nan, 0, 0])
    monkeypatch.setattr(utility, "MAX_PARTIES", 3)
    with pytest.raises(Unsupported, match="5 parties"):
        expected_error(protocol, np.zeros(5))
    assert expected_error(protocol).total > 0  # without values the spectrum is enough, at any size where it is known


def test_without_values_the_worst_of_an_interval_is_attained():
    """Mixing is ρ²Δ²/4 for the worst values: those along the slowest direction come near, no others exceed it."""
    protocol = Gossip(graphs.path(2), rounds=3, sigma=1.0, sensitivity=3.0, mixing="lazy-metropolis")
    worst = expected_error(protocol)
    assert worst.mixing > 0
    assert expected_error(protocol, [0.0, 3.0]).mixing == pytest.approx(worst.mixing)
    rng = np.random.default_rng(0)
    wide = Gossip(graphs.dataset("florentine"), rounds=4, sigma=1.0, sensitivity=2.0)
    most = expected_error(wide)
    for _ in range(50):
        one = expected_error(wide, rng.integers(0, 2, wide.n) * 2.0)
        assert one.mixing <= most.mixing * (1 + 1e-9)
        assert one.noise == pytest.approx(most.noise)
