"""Walks on any graph: the law of gaps, the number of visits, and the loss against the mean over all paths.

Proof: docs/proofs/token.md#graph-walk.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import trapezoid

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account import graph_walk, walk
from netdp.families.token.account.path import path_energy
from netdp.graphs.transitions import transition_matrix
from netdp.privacy import gaussian_delta
from netdp.protocols import GraphWalkSum, PathSum, WalkSum

EPS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0])
SMALL = {"path": graphs.path(3), "ring": graphs.ring(3), "star": graphs.star(4)}


def all_walks(P, start, steps):
    """(path, probability) of every walk of so many steps; `start` is a law."""
    n = P.shape[0]
    for path in itertools.product(range(n), repeat=steps):
        chance = start[path[0]] * math.prod(P[a, b] for a, b in itertools.pairwise(path))
        if chance:
            yield path, chance


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("kind", ["metropolis", "simple"])
def test_hitting_law_against_enumeration(name, kind):
    graph, horizon = SMALL[name], 5
    P = transition_matrix(graph, kind)
    for start, absorbing in ((1, [1, 0]), (0, [0]), (2, [0]), (0, [0, 1, 2])):
        law = np.zeros(horizon)
        for path, chance in all_walks(P.toarray(), np.eye(graph.n)[start], horizon + 1):
            hit = next((l for l in range(1, horizon + 1) if path[l] in absorbing), horizon)  # noqa: E741
            law[hit - 1] += chance
        assert graph_walk.hitting_law(P, start, absorbing, horizon) == pytest.approx(law, abs=1e-14)


@pytest.mark.parametrize(
    ("name", "steps", "settings"),
    [
        ("path", 7, {}),
        ("path", 6, {"walk": "simple", "closing": 1.0}),
        ("ring", 7, {"closing": 0.0}),
        ("star", 6, {}),
        ("star", 8, {"walk": "simple"}),
        ("ring", 6, {"contributions": 1}),
        ("path", 6, {"contributions": 2, "closing": 0.5}),
    ],
)
def test_the_mean_over_all_paths_is_covered(name, steps, settings):
    """Given the path the loss is exactly Gaussian: δ(ε) is at least E δ_Gauss(μ_path)(ε) if the path is told."""
    graph = SMALL[name]
    base = GraphWalkSum(graph, steps=steps, sigma=1.0, **settings)
    observer = 0
    energies, chances = [], []
    for path, chance in all_walks(base.transition.toarray(), base.stationary, steps):
        drawn = PathSum(graph.n, [path], 1.0, closing=base.closing, contributions=base.contributions)
        energies.append(path_energy(drawn, [observer]))
        chances.append(chance)
    assert sum(chances) == pytest.approx(1.0)
    mus = np.sqrt(energies)
    for sigma in (0.5, 1.0, 3.0):
        for target in range(1, graph.n):
            curve = graph_walk.target_profile(base.replace(sigma=sigma), (observer,), target)
            truth = [float(np.asarray(gaussian_delta(mus[:, target] / sigma, e)) @ chances) for e in EPS]
            assert np.all(np.asarray(curve.delta(EPS)) >= np.array(truth) * (1 - 1e-9))


def visits_law(P, start, target, steps):
    """P(k visits to `target` in so many steps), exactly."""
    n = P.shape[0]
    state = np.zeros((steps + 1, n))
    state[0] = start
    for t in range(steps):
        here = state[:, target].copy()
        state[:, target] = 0.0
        state[1:, target] += here[:-1]
        if t < steps - 1:
            state = state @ P
    return state.sum(axis=1)


@pytest.mark.parametrize("kind", ["metropolis", "simple"])
@pytest.mark.parametrize("graph", [graphs.path(3), graphs.star(6), graphs.ring(8)], ids=["path", "star", "ring"])
def test_visits_are_bounded(graph, kind):
    p = GraphWalkSum(graph, steps=60, sigma=1.0, walk=kind)
    for target in (0, 1):
        law = visits_law(p.transition.toarray(), p.stationary, target, p.steps)
        assert law.sum() == pytest.approx(1.0)
        count, unlikely = graph_walk.most_visits(p, target)
        tails = np.append(np.cumsum(law[::-1])[::-1][1:], 0.0)  # P(more than k)
        assert tails[count] <= unlikely == 1e-15
        needed = int(np.argmax(tails <= 1e-15))
        assert count <= 1.4 * needed + 3
        assert graph_walk.most_visits(p.replace(contributions=2), target) == (2, 0.0)


def test_visits_in_simulated_walks():
    graph = graphs.erdos_renyi(30, 0.2, 1)
    p = GraphWalkSum(graph, steps=300, sigma=1.0, walk="simple")
    P = np.cumsum(p.transition.toarray(), axis=1)
    rng = np.random.default_rng(0)
    place = rng.choice(graph.n, size=400, p=p.stationary)
    seen = np.zeros((400, graph.n), dtype=np.int64)
    for _ in range(p.steps):
        seen[np.arange(400), place] += 1
        place = np.minimum((P[place] < rng.random(400)[:, None]).sum(axis=1), graph.n - 1)
    for target in (0, int(np.argmax(graph.degrees))):
        count, _ = graph_walk.most_visits(p, target)
        assert seen[:, target].max() <= count <= 10 * seen[:, target].mean()


@pytest.mark.parametrize("n", [10, 40])
def test_on_the_complete_graph_secrecy_is_given_up(n):
    told = graph_walk.target_profile(GraphWalkSum(graphs.complete(n), steps=10 * n, sigma=4.0), (0,), 1)
    secret = walk.sum_profile(WalkSum(n, 10 * n, 4.0, sender="hidden"))
    for delta in (1e-3, 1e-6):
        assert float(told.epsilon(delta)) > float(secret.epsilon(delta))
        # and is near the same bound for uniform steps
        uniform = walk.sum_bounds(WalkSum(n, 10 * n, 4.0, contributions=10**6))[0]()
        assert 0.4 < float(told.epsilon(delta)) / float(uniform.epsilon(delta)) < 1.35


def test_order():
    p = GraphWalkSum(graphs.ring(6), steps=60, sigma=3.0)

    def eps(protocol, target=3, observers=(0,)):
        return float(graph_walk.target_profile(protocol, observers, target).epsilon(1e-6))

    base = eps(p)
    assert eps(p.replace(sigma=3.3)) < base
    assert eps(p.replace(steps=90)) > base
    assert eps(p.replace(tokens=2)) > base
    assert eps(p.replace(closing=0.0)) > base
    assert eps(p.replace(sensitivity=2.0)) == pytest.approx(eps(p.replace(sigma=1.5)), rel=1e-6)
    assert eps(p, target=1) > base
    assert eps(p, observers=(0, 2)) > base
    assert eps(p.replace(contributions=2)) < base


def test_account_states_every_target():
    p = GraphWalkSum(graphs.ring(5), steps=30, sigma=2.0)
    loss = netdp.account(p, [0])
    found = np.asarray(loss.epsilon(1e-6))
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(found[4])
    assert found[1] > found[2]
    one = graph_walk.target_profile(p, (0,), 2, stretches=True)
    # common points for all targets: a little above the curve itself, never below
    for eps in (0.3, 1.0, 2.5):
        assert (
            float(one.delta(eps)) * (1 - 1e-9) <= float(np.asarray(loss.delta(eps))[2]) <= 1.05 * float(one.delta(eps))
        )
    some = np.asarray(netdp.account(p, [0], targets=[2]).epsilon(1e-6))
    assert np.isnan(some[[0, 1, 3, 4]]).all()
    assert some[2] == pytest.approx(found[2], rel=0.02)
    with pytest.raises(InvalidValue, match="among the observers"):
        netdp.account(p, [0], targets=[0])
    large = GraphWalkSum(graphs.ring(5000), steps=100_000, sigma=2.0)
    with pytest.raises(Unsupported, match="targets="):
        netdp.account(large, [0])


def test_the_curator_is_bounded_by_what_observers_learn():
    """The curator's answer is part of what every observer sees: its bound may not be the larger one."""
    protocol = GraphWalkSum(graphs.grid(3, 3), steps=90, sigma=4.0)
    curator = netdp.trusted_curator(protocol).epsilon(1e-6)
    for observer in (0, 4):
        seen = netdp.account(protocol, [observer]).epsilon(1e-6)
        others = np.arange(9) != observer
        assert (curator[others] <= seen[others] * (1 + 1e-9)).all()


def test_the_curators_bound_holds_for_the_law_of_all_walks():
    """Exactly: the answer is a mixture over the number of visits, of shifts by that number in all the noise."""
    protocol = GraphWalkSum(graphs.ring(3), steps=6, sigma=2.0)
    bound = netdp.trusted_curator(protocol)
    P = protocol.transition.toarray()
    visits = np.zeros(7)
    for path in itertools.product(range(3), repeat=6):
        chance = 1 / 3 * math.prod(P[a, b] for a, b in itertools.pairwise(path))
        visits[path.count(1)] += chance
    assert visits.sum() == pytest.approx(1)
    deviation = protocol.sigma * math.sqrt(6 + protocol.closing)
    x = np.linspace(-80, 90, 400_001)
    bell = np.exp(-((x[:, None] - np.arange(7)) ** 2) / (2 * deviation**2)) / (deviation * math.sqrt(2 * math.pi))
    with_u, without = bell @ visits, bell[:, 0]
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        exact = trapezoid(np.maximum(with_u - math.exp(epsilon) * without, 0), x)
        assert exact < np.asarray(bound.delta(epsilon))[1]


def test_several_tokens_are_said_to_walk_independently():
    said = "the tokens walk independently of each other"
    for tokens in (1, 2):
        for protocol in (
            GraphWalkSum(graphs.ring(4), steps=8, sigma=3.0, tokens=tokens),
            WalkSum(8, steps=16, sigma=3.0, tokens=tokens),
            WalkSum(8, steps=16, sigma=3.0, tokens=tokens, contributions=2),
        ):
            text = "\n".join(netdp.account(protocol, [0]).assumptions)
            assert (said in text) == (tokens > 1)


@pytest.mark.parametrize(
    ("graph", "colluders"),
    [(graphs.ring(6), 1), (graphs.ring(6), 3), (graphs.star(5), 2), (graphs.star(12), 2)],
    ids=str,
)
def test_colluders_with_targets_are_about_these_targets(graph, colluders):
    p = GraphWalkSum(graph, steps=10 * graph.n, sigma=10.0)
    everybody = netdp.account(p, colluders=colluders)
    for asked in ([3], [0, 4]):
        some = netdp.account(p, colluders=colluders, targets=asked)
        epsilon = np.asarray(some.epsilon(1e-6))
        assert np.flatnonzero(~np.isnan(epsilon)).tolist() == asked
        assert epsilon[asked] == pytest.approx(np.asarray(everybody.epsilon(1e-6))[asked], rel=1e-3)
        assert some.found is None or (
            some.found.target in asked and some.found.target not in some.found.observers.parties
        )
        assert some.worst_epsilon(1e-6) == epsilon[asked].max()
        assert some.found is None or some.found.epsilon(1e-6) <= some.worst_epsilon(1e-6) * (1 + 1e-9)
        assert some.to_dict(1e-6)["claim"] == everybody.claim


def test_targets_of_any_colluders_are_refused_by_name_elsewhere():
    for p in (
        netdp.RingSum(5, 1, sigma=1.0),
        netdp.WalkSum(5, 9, sigma=1.0),
        netdp.WalkDescent(graphs.ring(5), 9, 1.0, step=0.1),
    ):
        with pytest.raises(InvalidValue, match="takes no option 'targets'"):
            netdp.account(p, colluders=1, targets=[1])
