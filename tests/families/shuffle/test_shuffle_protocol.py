"""Network shuffling as a value: what it accepts and refuses, its transition matrix, JSON there and back."""

import json

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import GraphError, InvalidValue
from netdp.families.shuffle.protocol import Shuffle

KARATE = graphs.dataset("karate")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number ≥ 1, got 0"),
        ({"rounds": 2.0}, "got 2.0"),
        ({"epsilon0": 0.0}, "epsilon0 must be a finite number > 0, got 0.0"),
        ({"epsilon0": float("inf")}, "got inf"),
        ({"laziness": 1.0}, r"laziness must lie in \[0, 1\), got 1.0"),
        ({"laziness": -0.1}, r"laziness must lie in \[0, 1\), got -0.1"),
        ({"delta0": 1.5}, r"delta0 must lie in \[0, 1\), got 1.5"),
        ({"reporting": "some"}, "unknown reporting 'some'; choose one of all, single"),
    ],
)
def test_refuses_nonsense(changes, message):
    with pytest.raises(InvalidValue, match=message):
        Shuffle(**{"graph": KARATE, "rounds": 3, "epsilon0": 1.0, **changes})


def test_refuses_graphs_that_do_not_mix():
    with pytest.raises(GraphError, match=r"bipartite.*laziness=0.5"):
        Shuffle(graphs.hypercube(3), rounds=3, epsilon0=1.0)
    assert Shuffle(graphs.hypercube(3), rounds=3, epsilon0=1.0, laziness=0.5).n == 8
    two = graphs.Graph.from_edges(6, np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]]))
    assert Shuffle(two, rounds=3, epsilon0=1.0).n == 6  # each part is a heap of its own
    with pytest.raises(GraphError, match="not connected"):
        Shuffle(two, rounds=3, epsilon0=1.0, reporting="single")
    with pytest.raises(GraphError, match="single user"):
        Shuffle(graphs.Graph.from_edges(1, np.empty((0, 2), dtype=int)), rounds=3, epsilon0=1.0, laziness=0.5)


@pytest.mark.parametrize("laziness", [0.0, 0.3])
def test_transition_and_stationary_law(laziness):
    protocol = Shuffle(KARATE, rounds=3, epsilon0=1.0, laziness=laziness)
    P, pi = protocol.transition.toarray(), protocol.stationary
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(np.diag(P), laziness, atol=1e-15)
    for u in range(34):
        others = np.zeros(34)
        others[KARATE.neighbors(u)] = (1 - laziness) / KARATE.degrees[u]
        np.testing.assert_allclose(P[u], others + laziness * np.eye(34)[u], atol=1e-15)
    np.testing.assert_allclose(pi @ P, pi, atol=1e-15)
    assert pi.sum() == pytest.approx(1)


def test_is_a_value_and_round_trips():
    protocol = Shuffle(KARATE, rounds=np.int64(7), epsilon0=1, reporting="single", laziness=0.25, delta0=1e-6)
    assert protocol == Shuffle(KARATE, 7, 1.0, "single", 0.25, 1e-6)
    assert hash(protocol) == hash(Shuffle(KARATE, 7, 1.0, "single", 0.25, 1e-6))
    assert protocol != protocol.replace(laziness=0.0)
    text = json.dumps(protocol.to_dict())
    assert Shuffle.from_dict(json.loads(text)) == protocol
    with pytest.raises(InvalidValue, match="unknown fields \\['speed'\\]"):
        Shuffle.from_dict({**protocol.to_dict(), "speed": 1})
    with pytest.raises(InvalidValue, match="incomplete"):
        Shuffle.from_dict({"protocol": "shuffle", "graph": KARATE.to_dict()})
    with pytest.raises(InvalidValue, match="'gossip'"):
        Shuffle.from_dict({**protocol.to_dict(), "protocol": "gossip"})
    with pytest.raises(AttributeError):
        protocol.rounds = 9
