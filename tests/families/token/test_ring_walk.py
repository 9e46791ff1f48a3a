"""Rings and walks as values: what they refuse, their derived numbers, and that they are read back."""

import json

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import GraphError, InvalidValue
from netdp.protocols import GraphWalkSum, PathSum, RingHistogram, RingSum, WalkDescent, WalkHistogram, WalkSum

CORRECT = {
    RingSum: {"n": 10, "rounds": 3, "sigma": 2.0},
    RingHistogram: {"n": 10, "rounds": 3, "domain": 4, "gamma": 0.5},
    WalkSum: {"n": 10, "steps": 30, "sigma": 2.0},
    WalkHistogram: {"n": 10, "steps": 30, "domain": 4, "gamma": 0.5},
    WalkDescent: {"n": 10, "steps": 30, "sigma": 2.0, "step": 0.1},
    GraphWalkSum: {"graph": graphs.ring(6), "steps": 30, "sigma": 2.0},
}


@pytest.mark.parametrize(
    ("cls", "changes", "message"),
    [
        (RingSum, {"n": 2}, "a ring needs n ≥ 3 users, got 2"),
        (RingSum, {"rounds": 0}, "rounds must be a whole number ≥ 1, got 0"),
        (RingSum, {"sigma": -1.0}, "sigma must be a finite number > 0, got -1.0"),
        (RingSum, {"noise": "loud"}, "unknown noise 'loud'; choose one of single, distributed"),
        (RingHistogram, {"n": 2}, "a ring needs n ≥ 3 users, got 2"),
        (RingHistogram, {"domain": 1}, "domain must be at least 2 values, got 1"),
        (RingHistogram, {"gamma": 0.0}, "gamma must be a finite number > 0, got 0.0"),
        (RingHistogram, {"gamma": 1.5}, r"gamma must lie in \(0, 1\].*got 1.5"),
        (WalkSum, {"n": 1}, "a walk needs at least 2 users, got 1"),
        (WalkSum, {"steps": 9}, "steps=9 is shorter than one visit to each of 10 users; give at least 10"),
        (WalkSum, {"release": "loud"}, "unknown release 'loud'; choose one of named, anonymous"),
        (WalkSum, {"sender": "loud"}, "unknown sender 'loud'; choose one of hidden, receiver-known, known"),
        (WalkSum, {"contributions": 0}, "contributions must be a whole number ≥ 1, got 0"),
        (WalkSum, {"tokens": 0}, "tokens must be a whole number ≥ 1, got 0"),
        (WalkHistogram, {"gamma": 2.0}, r"gamma must lie in \(0, 1\]"),
        (WalkDescent, {"clip": 0.0}, "clip must be a finite number > 0, got 0.0"),
        (WalkDescent, {"expansion": 0.5}, "expansion must be ≥ 1, got 0.5"),
        (WalkDescent, {"radius": -1.0}, "radius must be a finite number > 0, got -1.0"),
        (GraphWalkSum, {"walk": "drunk"}, "unknown walk 'drunk'; choose one of metropolis, simple"),
        (GraphWalkSum, {"steps": 5}, "steps=5 is shorter"),
        (GraphWalkSum, {"closing": -1.0}, "closing must be a finite number ≥ 0"),
    ],
)
def test_refuses_nonsense(cls, changes, message):
    with pytest.raises(InvalidValue, match=message):
        cls(**{**CORRECT[cls], **changes})


@pytest.mark.parametrize("cls", [WalkSum, WalkHistogram, WalkDescent])
def test_a_walk_is_what_plain_connections_give_unless_said_otherwise(cls):
    plain = cls(**CORRECT[cls])
    assert (plain.sender, plain.release) == ("known", "named")
    for sender in ("hidden", "receiver-known"):
        assert cls(**CORRECT[cls], sender=sender).release == "anonymous"
        assert cls(**CORRECT[cls], sender=sender, release="named").release == "named"
    # a release once settled stays what it is
    assert plain.replace(sender="hidden").release == "named"
    assert plain.replace(sender="hidden", release=None).release == "anonymous"


def test_a_walk_needs_a_connected_graph():
    two = graphs.Graph.from_edges(4, np.array([[0, 1], [2, 3]]))
    with pytest.raises(GraphError, match="component"):
        GraphWalkSum(two, steps=10, sigma=1.0)


@pytest.mark.parametrize("cls", CORRECT)
def test_is_a_value_and_round_trips(cls):
    one, same = cls(**CORRECT[cls]), cls(**CORRECT[cls])
    assert one == same
    assert hash(one) == hash(same)
    assert cls.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    with pytest.raises(InvalidValue, match="not"):
        cls.from_dict({**one.to_dict(), "protocol": "gossip"})
    with pytest.raises(InvalidValue, match="unknown fields"):
        cls.from_dict({**one.to_dict(), "colour": 1})
    with pytest.raises(InvalidValue, match="incomplete"):
        cls.from_dict({"protocol": cls.kind})


def test_ring_noise_falls_once_in_n_minus_one_hops():
    p = RingSum(7, rounds=5, sigma=2.0)
    hops = p.hop_noise
    assert hops[0] == 2.0
    assert all(np.count_nonzero(hops[i : i + 6]) == 1 for i in range(len(hops) - 6))
    spread = RingSum(7, rounds=5, sigma=2.0, noise="distributed").hop_noise
    assert spread[0] == 2.0
    assert np.allclose(spread[1:], 2.0 / np.sqrt(7))
    assert RingSum(7, 5, 2.0, closing=False).closing_noise == 0.0


@pytest.mark.parametrize("walk", ["metropolis", "simple"])
def test_the_stated_law_is_stationary(walk):
    p = GraphWalkSum(graphs.dataset("karate"), steps=40, sigma=1.0, walk=walk)
    P, pi = p.transition.toarray(), p.stationary
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(pi @ P, pi, atol=1e-12)


CLOSED = {
    RingSum: ({"n": 5, "rounds": 1, "sigma": 1.0}, 1.0),
    RingHistogram: ({"n": 5, "rounds": 1, "domain": 3, "gamma": 0.5}, 1.0),
    PathSum: ({"n": 3, "paths": [[0, 1]], "sigma": 1.0}, 1.0),
    GraphWalkSum: ({"graph": graphs.ring(6), "steps": 30, "sigma": 2.0}, 6.0),
}


@pytest.mark.parametrize("cls", CLOSED)
def test_closing_means_one_thing(cls):
    """A multiple of the usual noise, or a switch; nothing else counts as yes."""
    fields, usual = CLOSED[cls]
    assert cls(**fields, closing=True).closing == usual
    assert cls(**fields, closing=False).closing == 0.0
    assert cls(**fields, closing=0).closing == 0.0
    assert cls(**fields, closing=2.5).closing == 2.5
    assert cls(**fields, closing=True) == cls(**fields, closing=usual)
    for wrong in ("no", None, -1.0, float("nan")):
        with pytest.raises(InvalidValue, match=f"closing must be .*got {wrong!r}"):
            cls(**fields, closing=wrong)


def test_closing_noise_and_elements_follow_the_number():
    assert RingSum(5, 1, sigma=2.0, closing=4.0).closing_noise == 4.0
    assert RingHistogram(10, 1, domain=3, gamma=0.5, closing=2.0).closing_blanket == 10
