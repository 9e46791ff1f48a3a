"""The protocol as a value: what it accepts, what it refuses, and that its recursion keeps the mean.

The steps: docs/proofs/gossip.md#gossip-steps.
"""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp import graphs
from netdp.errors import GraphError, InvalidValue
from netdp.families.gossip.protocol import Gossip, response

RING = graphs.ring(6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number ≥ 1, got 0"),
        ({"rounds": -3}, "got -3"),
        ({"rounds": 2.5}, "got 2.5"),
        ({"rounds": True}, "got True"),
        ({"sigma": 0.0}, "sigma must be a finite number > 0, got 0.0"),
        ({"sigma": -1.0}, "got -1.0"),
        ({"sigma": float("nan")}, "got nan"),
        ({"sigma": float("inf")}, "got inf"),
        ({"sigma": "much"}, "sigma must be a finite number > 0, got 'much'"),
        ({"sensitivity": 0}, "sensitivity must be a finite number > 0, got 0"),
        ({"refresh": -0.1}, "refresh must be a finite number ≥ 0 .*, got -0.1"),
        ({"masks": float("nan")}, "masks must be a finite number ≥ 0 .*, got nan"),
        ({"accelerated": "yes"}, "accelerated must be True or False, got 'yes'"),
        ({"mixing": "best"}, "unknown mixing 'best'; choose one of metropolis"),
        ({"graph": "ring"}, "Gossip must be a netdp Graph or a NetworkX graph, got 'ring' of type str"),
    ],
)
def test_refuses_nonsense(changes, message):
    with pytest.raises(InvalidValue, match=message):
        Gossip(**{"graph": RING, "rounds": 3, "sigma": 1.0, **changes})


def test_refuses_a_disconnected_graph():
    two = graphs.Graph.from_edges(5, np.array([[0, 1], [2, 3], [3, 4]]))
    with pytest.raises(GraphError, match=r"2 components.*largest_component\(\)"):
        Gossip(two, rounds=1, sigma=1.0)
    assert Gossip(two.largest_component(), rounds=1, sigma=1.0).graph.n == 3


def test_is_a_value():
    one, same = (Gossip(graphs.ring(6), rounds=np.int64(3), sigma=np.float32(2)) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != one.replace(masks=1.0)
    with pytest.raises(AttributeError):
        one.sigma = 1.0


def test_round_trip_through_json():
    protocol = Gossip(graphs.dataset("karate"), rounds=4, sigma=1.5, refresh=0.1, masks=3.0, accelerated=True)
    text = json.dumps(protocol.to_dict())
    assert Gossip.from_dict(json.loads(text)) == protocol
    with pytest.raises(InvalidValue, match="unknown fields \\['speed'\\]"):
        Gossip.from_dict({**protocol.to_dict(), "speed": 1})
    with pytest.raises(InvalidValue, match="'walk'"):
        Gossip.from_dict({**protocol.to_dict(), "protocol": "walk"})


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["ring", "grid", "karate"]), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_the_mean_is_kept(name, accelerated, fresh, seed):
    graph = {"ring": graphs.ring(9), "grid": graphs.grid(3, 4), "karate": graphs.dataset("karate")}[name]
    protocol = Gossip(graph, rounds=12, sigma=1.0, accelerated=accelerated)
    start = np.random.default_rng(seed).standard_normal((graph.n, 2))
    for state in response(lambda x: protocol.matrix @ x, start, 12, protocol.chebyshev, fresh=fresh):
        np.testing.assert_allclose(state.mean(axis=0), start.mean(axis=0), atol=1e-12)


def test_acceleration_is_faster_on_a_ring():
    protocol = Gossip(graphs.ring(40), rounds=1, sigma=1.0, accelerated=True)
    start = np.random.default_rng(0).standard_normal(40)
    last = {}
    for gamma in (None, protocol.chebyshev):
        *_, state = response(lambda x: protocol.matrix @ x, start, 120, gamma)
        last[gamma] = np.abs(state - start.mean()).max()
    assert last[protocol.chebyshev] < last[None] / 20
