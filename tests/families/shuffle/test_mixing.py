"""How far every report has mixed, against all powers of the walk; return bounds by random vectors.

Proofs: docs/proofs/shuffle.md#report-mixing, docs/proofs/graphs.md#return-probabilities.
"""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.account.mixing import fewest_rounds_for, mixing
from netdp.graphs.certificate import RETURNS_FAILURE as FAILURE
from netdp.graphs.certificate import find_returns, normalised, returns
from netdp.protocols import Shuffle

LOLLIPOP = graphs.Graph.from_edges(
    34, [(i, j) for i in range(30) for j in range(i)] + [(29, 30), (30, 31), (31, 32), (32, 33)]
)
GRAPHS = [LOLLIPOP, graphs.dataset("karate"), graphs.erdos_renyi(100, 0.08, 1).largest_component()]


def true_ratio(graph, laziness, t):
    P = Shuffle(graph, rounds=t, epsilon0=1.0, laziness=laziness).transition.toarray()
    return np.linalg.matrix_power(P, t) / (graph.degrees / graph.degrees.sum())


def true_returns(graph, laziness, t):
    N = normalised(graph, laziness).toarray()
    root = np.sqrt(graph.degrees / graph.degrees.sum())
    half = np.linalg.matrix_power(N - np.outer(root, root), t // 2)
    return np.linalg.norm(half, axis=0) / root


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.name)
@pytest.mark.parametrize("laziness", [0.0, 0.4])
def test_low_and_high_hold(graph, laziness):
    for t in (1, 7, 40):
        ratio = true_ratio(graph, laziness, t)
        for found in (mixing(p := Shuffle(graph, t, 1.0, laziness=laziness)), mixing(p, dense=0)):
            assert (found.low >= 1 - ratio.min(axis=1) - 1e-11).all()
            assert (found.high >= ratio.max(axis=1) - 1 - 1e-11).all()
        exact = mixing(p)
        if exact.method == "exact":
            assert exact.low == pytest.approx(np.clip(1 - ratio.min(axis=1), 0, 1), abs=1e-9)
            assert exact.high == pytest.approx(ratio.max(axis=1) - 1, abs=1e-9)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.name)
def test_return_bounds_hold_and_are_within_their_factor(graph):
    found = find_returns(graph, vectors=64)
    assert found.failure >= FAILURE
    for t in (2, 4, 8, 16, 33, 64):
        real, bound = true_returns(graph, 0.0, t), found.at(t)
        assert (bound >= real * (1 - 1e-9)).all()
        if t in (8, 16):
            assert np.median(bound / np.maximum(real, 1e-300)) < 8
    assert (np.diff([found.at(t).max() for t in range(1, 60)]) <= 1e-12).all()


def test_users_at_the_tip_of_a_pendant_path_are_told_apart_from_the_core():
    c = find_returns(LOLLIPOP).at(40)
    assert c[33] > 20 * c[:28].max()
    plan = [fewest_rounds_for(LOLLIPOP, 0.0, 0.6, users=share).rounds for share in (1.0, 0.85)]
    assert plan[1] < plan[0]
    again = fewest_rounds_for(LOLLIPOP, 0.0, 0.6, dense=0).rounds
    assert plan[0] <= again < 3 * plan[0]


def test_a_graph_has_the_same_bounds_whenever_it_is_asked_about():
    graph = graphs.regular(1600, 6, 0)
    one, two = find_returns(graph, work=1e8), find_returns(graph, work=1e8)
    assert (one.roots == two.roots).all()
    assert returns(graph) is returns(graph)
    other = find_returns(graphs.regular(1600, 6, 1), work=1e8)
    assert not np.array_equal(one.roots[-1], other.roots[-1])
    assert len(find_returns(graph, work=0).halves) == 1  # nothing but the eigenvalue


def test_fewest_rounds_for_a_crowd():
    for graph in GRAPHS:
        found = fewest_rounds_for(graph, 0.0, 0.9)
        assert found.crowd() >= 0.9
        if found.rounds > 1:
            assert mixing(Shuffle(graph, found.rounds - 1, 1.0)).crowd() < 0.9
    with pytest.raises(InvalidValue, match=r"crowd.*1\.5"):
        fewest_rounds_for(GRAPHS[0], 0.0, 1.5)
    with pytest.raises(InvalidValue, match=r"users.*0"):
        fewest_rounds_for(GRAPHS[0], 0.0, 0.5, users=0)
    with pytest.raises(Unsupported, match="too slowly"):
        fewest_rounds_for(graphs.ring(6), 0.0, 0.5)
