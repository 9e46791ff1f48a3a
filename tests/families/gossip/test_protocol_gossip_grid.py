"""The steps of a party of gossip on a grid (docs/proofs/gossip.md#gossip-steps)."""

import json
from fractions import Fraction

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.gossip.protocol import (
    MOST_STEPS,
    Gossip,
    gossip_refresh,
    gossip_start,
    gossip_step,
    gossip_steps,
    gossip_weights,
    summed,
)
from netdp.graphs.mixing import MIXINGS
from netdp.protocols.base import Protocol

GRAPHS = [graphs.path(5), graphs.star(6), graphs.complete(4), graphs.erdos_renyi(12, 0.5, seed=3)]


def ones(variance, size):
    return np.full(size, variance, dtype=np.int64)


@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_mixing_is_the_matrix_rounded_exactly(graph, mixing):
    p = Gossip(graph, rounds=1, sigma=1.0, mixing=mixing, grid=0.5, dimension=4)
    rng = np.random.default_rng(1)
    states = rng.integers(-(2**62), 2**62, size=(p.n, 4))
    states[:, 0] = rng.integers(-9, 9, size=p.n)  # halves occur
    for u in range(p.n):
        weights = gossip_weights(p, u)
        found = gossip_step(weights, states[u], {v: states[v] for v in weights})
        rest = 1 - sum(Fraction(1, m) for m in weights.values())
        assert rest >= 0
        for column in range(4):
            exact = rest * int(states[u, column])
            exact += sum(Fraction(int(states[v, column]), m) for v, m in weights.items())
            assert found[column] == (exact + Fraction(1, 2)) // 1
        dense = p.matrix.toarray()[u]
        assert dense[u] == pytest.approx(float(rest))
        assert {v: pytest.approx(1 / m) for v, m in weights.items()} == {v: dense[v] for v in weights}


def test_a_step_needs_exactly_the_neighbours():
    p = Gossip(graphs.ring(5), rounds=1, sigma=1.0, grid=0.5)
    weights, one = gossip_weights(p, 0), np.ones(1, dtype=np.int64)
    assert weights == {1: 3, 4: 3}
    with pytest.raises(InvalidValue, match="4 is missing or no neighbour"):
        gossip_step(weights, one, {1: one})
    with pytest.raises(InvalidValue, match="2 is missing or no neighbour"):
        gossip_step(weights, one, {1: one, 2: one, 4: one})
    with pytest.raises(InvalidValue, match="party 4 sent"):
        gossip_step(weights, one, {1: one, 4: np.ones(2, dtype=np.int64)})


def test_noise_is_asked_for_as_the_protocol_states():
    p = Gossip(graphs.ring(5), rounds=4, sigma=1.1, refresh=0.5, grid=0.25, dimension=2)
    assert p.start_variance == -(-(Fraction(1.1) ** 2 * 16) // 1)
    assert p.fresh_variance == -(-(Fraction(1.1) ** 2 * 2) // 1)
    np.testing.assert_array_equal(gossip_start(p, np.array([1.0, -0.5]), ones), [4 + 20, -2 + 20])
    np.testing.assert_array_equal(gossip_refresh(p, np.array([1, 2]), ones), [4, 5])
    plain = p.replace(refresh=0.0)
    np.testing.assert_array_equal(gossip_refresh(plain, np.array([1, 2]), None), [1, 2])
    for wrong in (np.zeros(3), np.zeros((1, 2)), np.zeros(0)):
        with pytest.raises(InvalidValue, match="dimension"):
            gossip_start(p, wrong, ones)


def test_states_are_64_bit_numbers():
    with pytest.raises(InvalidValue, match="64 bits"):
        summed(np.array([2**62]), np.array([2**62]))
    p = Gossip(graphs.ring(5), rounds=4, sigma=1.0, grid=0.5)
    assert gossip_steps(p, np.array([MOST_STEPS / 2])).tolist() == [MOST_STEPS]
    for wrong in (float(MOST_STEPS), np.inf, np.nan):
        with pytest.raises(InvalidValue, match="2⁶⁰ steps"):
            gossip_steps(p, np.array([wrong]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"grid": 0.3}, r"power of two.*take 0\.25"),
        ({"grid": -1.0}, "grid must be"),
        ({"grid": 2.0**-57, "accelerated": True}, "too fine"),
        ({"grid": 0.5, "gap": 0.5}, "belongs to accelerated gossip"),
        ({"grid": 0.5, "accelerated": True, "gap": 1.5}, r"gap must lie in \(0, 1\]"),
        ({"grid": 0.5, "accelerated": True, "gap": 1e-40}, "gap=1e-40 leaves nothing of the mean"),
        ({"grid": 0.5, "accelerated": True, "gap": 1e-20}, "beyond 64 bits"),
        ({"grid": 0.5, "accelerated": True, "gap": 1e-10, "rounds": 2**27}, "beyond 64 bits"),
        ({"grid": 0.5, "masks": 1.0}, "MaskedSum"),
        ({"grid": 2.0}, "less than one step"),
        ({"grid": 2.0**-59}, "too fine"),
        ({"grid": 2.0**-58, "refresh": 1.0}, "too fine"),
        ({"grid": 2.0**-30, "sensitivity": 2.0**29}, "too fine"),
        ({"dimension": 0}, "dimension must be a whole number ≥ 1"),
    ],
)
def test_what_is_not_proved_or_does_not_fit_is_refused_with_a_way_out(fields, message):
    with pytest.raises(InvalidValue, match=message):
        Gossip(graphs.ring(4), **{"rounds": 3, "sigma": 1.0, **fields})


def test_it_is_written_down_and_read_back():
    p = Gossip(graphs.ring(5), rounds=2, sigma=2.0, refresh=1.0, grid=2.0**-40, dimension=3)
    assert Protocol.from_dict(json.loads(json.dumps(p.to_dict()))) == p
    real = p.replace(grid=None, dimension=1)
    old = {k: v for k, v in real.to_dict().items() if k not in ("grid", "dimension")}
    assert Protocol.from_dict(old) == real
    assert "grid" in p.describe()
    assert "grid" not in real.describe()
    with pytest.raises(InvalidValue, match="real numbers and has no grid"):
        real.step  # noqa: B018
