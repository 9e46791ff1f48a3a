"""Descents and histograms on graphs: what is certified, against all paths and answers, and in which order it falls.

Proofs: docs/proofs/token.md#graph-walk and #walk-energy.
"""

import itertools
import math

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account import graph_walk
from netdp.protocols import Protocol, WalkDescent, WalkHistogram, WalkSum

DELTA = 1e-5


def test_one_type_for_the_complete_graph_and_for_others():
    everybody = WalkDescent(8, steps=16, sigma=2.0, step=0.1)
    assert everybody.graph is None
    ring = WalkDescent(graphs.ring(8), steps=16, sigma=2.0, step=0.1, tokens=2)
    assert (ring.n, ring.graph, ring.sender, ring.release) == (8, graphs.ring(8), "known", "named")
    old = {"protocol": "walk-descent", "n": 8, "steps": 16, "sigma": 2.0, "step": 0.1}  # as it was written before
    assert Protocol.from_dict(old) == everybody
    assert ring.replace(sigma=3.0).graph == graphs.ring(8)
    for wrong, said in (
        (lambda: WalkDescent(graphs.ring(8), 16, 2.0, 0.1, sender="hidden"), "neighbours see who hands them"),
        (lambda: WalkDescent(8, 16, 2.0, 0.1, closing=True), "closing noise is for walks on a graph"),
        (lambda: WalkDescent(8, 16, 2.0, 0.1, graph=graphs.ring(9)), "n=8 users on"),
        (lambda: WalkDescent(graphs.ring(8), 16, 2.0, 0.1, walk="drunk"), "unknown walk 'drunk'"),
        (lambda: WalkHistogram(graphs.ring(8), 16, 3, 0.5, tokens=0), "tokens must be"),
        (lambda: WalkHistogram(graphs.ring(8), 16, 3, 0.5, graph=graphs.ring(8)), "given twice"),
        (lambda: WalkSum(graphs.ring(8), 16, 2.0), r"GraphWalkSum\(graph"),
        (lambda: WalkDescent(graphs.Graph.from_edges(4, [(0, 1), (2, 3)]), 16, 2.0, 0.1), "connected"),
    ):
        with pytest.raises((InvalidValue, netdp.errors.GraphError), match=said):
            wrong()


def test_descent_in_order():
    p = WalkDescent(graphs.ring(6), steps=48, sigma=6.0, step=0.1)

    def eps(protocol, target=3, observers=(0,)):
        return float(graph_walk.descent_profile(protocol, observers, target, stretches=True).epsilon(DELTA))

    base = eps(p)
    assert eps(p.replace(sigma=7.0)) < base
    assert eps(p.replace(steps=60)) > base
    assert eps(p.replace(clip=1.3)) > base
    assert eps(p.replace(closing=True)) < base
    assert eps(p, target=1) > base
    assert eps(p, observers=(0, 2)) > base
    assert base < eps(p.replace(tokens=2)) < 2 * base
    alone = graph_walk.local_profile(p, 3)
    assert base < float(alone.epsilon(DELTA))
    expanding = float(graph_walk.descent_profile(p.replace(expansion=1.1), (0,), 3, stretches=True).epsilon(DELTA))
    assert expanding == pytest.approx(float(alone.epsilon(DELTA)))
    limited = float(graph_walk.local_profile(p.replace(contributions=1), 3).epsilon(DELTA))
    assert eps(p.replace(contributions=1)) <= limited * (1 + 1e-12)  # the same table, read at other points


def test_what_is_said_of_a_descent():
    p = WalkDescent(graphs.path(4), steps=12, sigma=6.0, step=0.1, tokens=2)
    loss = netdp.account(p, [0])
    said = "\n".join(loss.assumptions)
    for words in (
        "told the whole path",
        "does not increase distances",
        "no earlier token",
        "tokens walk independently",
    ):
        assert words in said
    assert loss.names is None
    assert loss.claim == "upper"
    assert "does not increase" not in "\n".join(netdp.account(p.replace(expansion=1.5), [0]).assumptions)
    half = netdp.account(p, [0], adjacency="zero-out")
    assert half.adjacency == "zero-out"
    assert half.worst_epsilon(DELTA) < loss.worst_epsilon(DELTA)
    with pytest.raises(Unsupported, match="adjacency"):
        netdp.account(p, [0], adjacency="add-or-remove")
    curator, local = netdp.trusted_curator(p), netdp.local_dp(p)
    assert (curator.epsilon(DELTA) <= local.epsilon(DELTA) * (1 + 1e-9)).all()
    assert (curator.epsilon(DELTA)[1:] <= loss.epsilon(DELTA)[1:] * (1 + 1e-6)).all()


@pytest.mark.parametrize("sender", ["hidden", "known"])
def test_tokens_on_the_complete_graph_compose(sender):
    one = WalkDescent(20, steps=40, sigma=5.0, step=0.1, sender=sender)
    losses = [netdp.account(one.replace(tokens=k), [0]).worst_epsilon(DELTA) for k in (1, 2, 4)]
    assert losses[0] < losses[1] < losses[2] < 4 * losses[0]
    # as much as one walk of all the steps, or a little more: that one has fewer ends
    longer = netdp.account(one.replace(steps=160), [0]).worst_epsilon(DELTA)
    assert longer <= losses[2] * (1 + 1e-3)
    assert losses[2] <= 1.3 * longer
    counts = WalkHistogram(40, steps=80, domain=3, gamma=0.6, sender=sender)
    few, many = (netdp.account(counts.replace(tokens=k), [0]).worst_epsilon(DELTA) for k in (1, 2))
    assert few < many < 2.2 * few


def answers(true, gamma, domain):
    law = np.full(domain, gamma / domain)
    law[true] += 1 - gamma
    return law


def heap_law(labels, gamma, domain):
    """The law of the counts of so many responses, over all tuples of counts."""
    law = {(0,) * domain: 1.0}
    for label in labels:
        after = {}
        for counts, chance in law.items():
            for value, p in enumerate(answers(label, gamma, domain)):
                key = tuple(c + (i == value) for i, c in enumerate(counts))
                after[key] = after.get(key, 0.0) + chance * p
        law = after
    return law


def told_delta(path, target, observer, labels, other, gamma, domain, eps):
    """δ of all that is seen of one path, told: the heaps between visits of the observer and up to the release."""
    views = []
    for data in (labels, other):
        pieces, heap = [], []
        for holder in path:
            if holder == observer:
                pieces.append(heap)
                heap = []
            else:
                heap.append(data[holder])
        pieces.append(heap)
        law = {(): 1.0}
        for piece in pieces:
            one = heap_law(piece, gamma, domain)
            law = {(*seen, counts): p * q for seen, p in law.items() for counts, q in one.items()}
        views.append(law)
    P, Q = views
    return sum(max(P[v] - math.exp(eps) * Q[v], 0.0) for v in P)


@pytest.mark.parametrize(("graph", "steps"), [(graphs.path(3), 5), (graphs.star(4), 4)], ids=["path", "star"])
def test_histograms_against_all_paths_and_answers(graph, steps):
    gamma, domain, observer = 0.6, 2, 0
    p = WalkHistogram(graph, steps=steps, domain=domain, gamma=gamma)
    P, n = p.transition.toarray(), graph.n
    for target in range(1, n):
        curve = graph_walk.histogram_profile(p, (observer,), target)
        for eps in (0.0, 0.4, 1.0):
            for rest in (0, 1):
                labels = [rest] * n
                labels[target] = 1
                other = [*labels]
                other[target] = 0
                truth = 0.0
                for path in itertools.product(range(n), repeat=steps):
                    chance = p.stationary[path[0]] * math.prod(P[a, b] for a, b in itertools.pairwise(path))
                    if chance:
                        truth += chance * told_delta(path, target, observer, labels, other, gamma, domain, eps)
                assert float(curve.delta(eps)) >= truth * (1 - 1e-9)


def test_histograms_hide_among_what_follows():
    p = WalkHistogram(graphs.ring(24), steps=48, domain=3, gamma=0.7)
    near, far = (float(graph_walk.histogram_profile(p, (0,), u).epsilon(DELTA)) for u in (1, 12))
    assert far < near
    several = float(graph_walk.histogram_profile(p.replace(tokens=2), (0,), 12).epsilon(DELTA))
    assert far < several < 2 * far
    assert netdp.account(p.replace(gamma=1.0), [0], adjacency="replace").worst_epsilon(DELTA) == 0
    capped = float(graph_walk.histogram_profile(p.replace(contributions=1), (0,), 12).epsilon(DELTA))
    assert capped < far


def test_calibration_on_graphs():
    descent = netdp.calibrate(WalkDescent(graphs.ring(5), steps=15, sigma=1.0, step=0.1), 3.0, DELTA)
    assert (
        2.7
        < netdp.account(descent, [2]).worst_epsilon(DELTA)
        <= netdp.account(descent, colluders=1).worst_epsilon(DELTA)
        <= 3.0
    )
    counts = netdp.calibrate(WalkHistogram(graphs.star(3), steps=6, domain=3, gamma=0.5), 4.0, DELTA, observers=[0])
    assert 3.6 < netdp.account(counts, [0]).worst_epsilon(DELTA) <= 4.0
    with pytest.raises(InvalidValue, match="any users learn alike"):
        netdp.calibrate(WalkDescent(5, steps=20, sigma=1.0, step=0.1), 3.0, DELTA, observers=[0])
    with pytest.raises(InvalidValue, match="not both"):
        netdp.calibrate(descent, 3.0, DELTA, observers=[0], colluders=2)
