"""The searches behind docs/proofs/coalitions.md#any-coalition against brute force: currents, cuts, gaps."""

import itertools

import numpy as np
import pytest

from netdp import graphs
from netdp.families.gossip import coalitions as any_gossip
from netdp.families.gossip.protocol import Gossip
from netdp.families.masked.protocol import MaskedSum
from netdp.families.token.account import energy as graph_stretch
from netdp.families.token.account import energy as walk_energy
from netdp.families.token.account.energy import EnergyMoments
from netdp.families.token.account.graph_walk import _moments, hitting_law
from netdp.families.token.coalitions import gaps_against_any
from netdp.families.token.walk import GraphWalkSum
from netdp.graphs import resistance as currents
from netdp.graphs.cuts import smallest_components, smallest_cut_off, stays_connected
from netdp.graphs.resistance import Network, all_targets, worst_removal
from netdp.graphs.transitions import transition_matrix
from netdp.protocols.accounting import account

GRAPHS = [graphs.hypercube(3), graphs.grid(3, 3), graphs.star(6), graphs.regular(9, 4, seed=3), graphs.path(7)]


def adjacency(graph):
    matrix = np.zeros((graph.n, graph.n))
    matrix[np.repeat(np.arange(graph.n), graph.degrees), graph.indices] = 1
    return matrix


def resistance(graph, u, masks, gone):
    keep = [v for v in range(graph.n) if v not in gone]
    edges = adjacency(graph)[np.ix_(keep, keep)]
    matrix = np.eye(len(keep)) + masks * (np.diag(edges.sum(axis=1)) - edges)
    return np.linalg.inv(matrix)[keep.index(u), keep.index(u)]


def component(graph, u, gone):
    seen, todo = {u}, [u]
    while todo:
        for w in graph.neighbors(todo.pop()).tolist():
            if w not in seen and w not in gone:
                seen.add(w)
                todo.append(w)
    return seen


def others(graph, u, f):
    return itertools.combinations([v for v in range(graph.n) if v != u], f)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.name)
@pytest.mark.parametrize("masks", [0.3, 20.0, 1e4])
@pytest.mark.parametrize("f", [1, 2, 3])
def test_currents_prove_what_all_coalitions_do(graph, masks, f):
    network = Network(graph, masks)
    for u in (0, graph.n - 1):
        truth = max(resistance(graph, u, masks, gone) for gone in others(graph, u, f))
        for budget in (0, 3, 1000):
            found = worst_removal(network, u, f, budget)
            assert found.upper >= truth * (1 - 1e-9)
            assert found.lower <= found.upper
            # what was found is a coalition that does this much, up to the margin of rounding
            assert resistance(graph, u, masks, found.coalition) == pytest.approx(found.lower, rel=1e-5)
        assert found.upper == pytest.approx(truth, rel=1e-4)


def test_a_residual_of_one_entry_is_no_unit_current():
    """On small graphs the refinement meets residuals of a single entry, or of none: they must not be taken for 1."""
    graph = graphs.complete(3)
    for masks in np.geomspace(1e-3, 10.0, 100).tolist():
        network = Network(graph, masks)
        for u in range(3):
            found = worst_removal(network, u, 1)
            assert len(found.coalition) == 1
            assert found.upper == pytest.approx(resistance(graph, u, masks, found.coalition), rel=1e-9)


def test_where_only_a_bound_ends_at_one_nothing_is_called_exact(monkeypatch):
    """Blocks of six in a chain: nearly all current flows through each link, so three parties seem to stop more than there is."""
    monkeypatch.setattr(any_gossip, "_TRIED", 0)
    monkeypatch.setattr(currents, "_EFFORT", 0)
    blocks = [(6 * k + i, 6 * k + j) for k in range(8) for i, j in itertools.combinations(range(6), 2)]
    graph = graphs.Graph.from_edges(48, blocks + [(6 * k + 5, 6 * k + 6) for k in range(7)])
    p = Gossip(graph, rounds=1, sigma=1.0, masks=1e4)
    loose = account(p, colluders=3)
    assert (loose.factor == 1).all()
    assert loose.claim.value == "upper"  # five neighbours would be needed to attain it


def test_nobody_stops_more_than_the_current_through_it():
    """The theorem itself, coalition by coalition, on random weights of κ."""
    graph = graphs.regular(10, 4, seed=5)
    network = Network(graph, 7.0)
    whole, current = network.solve(0, ())
    assert 0 < current[graph.neighbors(0)].sum() < 1
    for gone in others(graph, 0, 3):
        stopped = current[list(gone)].sum()
        if stopped < 1:
            assert resistance(graph, 0, 7.0, gone) <= whole / (1 - stopped) * (1 + 1e-12)


def test_large_graphs_keep_the_nearest_only(monkeypatch):
    from netdp.graphs import resistance as currents

    graph = graphs.grid(6, 6)
    whole = all_targets(graph, 5.0, 2)
    monkeypatch.setattr(currents, "MOST_WHOLE", 10)
    monkeypatch.setattr(currents, "MOST_KEPT", 12)
    near = all_targets(graph, 5.0, 2)
    for small, large in zip(near, whole, strict=True):
        assert small.upper >= large.lower * (1 - 1e-9)


@pytest.mark.parametrize("graph", [*GRAPHS, graphs.complete(5), graphs.Graph.from_edges(6, [(0, 1), (1, 2), (3, 4)])])
@pytest.mark.parametrize("f", [1, 2, 3])
def test_cuts_are_found_exactly_and_bounded_when_the_work_runs_out(graph, f):
    sizes, worst = smallest_components(graph, f)
    together = True
    for u in range(graph.n):
        truth = min(len(component(graph, u, set(gone))) for gone in others(graph, u, f))
        assert sizes[u] == truth
        whole = component(graph, u, set())
        together &= truth == graph.n - f
        for most in (1, 4, 20):
            cut = smallest_cut_off(graph, u, f, most)
            assert cut.size <= truth
            if cut.coalition is not None:
                assert len(component(graph, u, set(cut.coalition))) == cut.size == truth
        assert truth <= len(whole)
    assert stays_connected(graph, f) == together
    assert worst is None or len(component(graph, worst.target, set(worst.coalition))) == worst.size


def test_what_a_given_mask_graph_hides():
    p = MaskedSum(graphs.ring(6), sigma=1.0, masks=graphs.path(6))
    loss = account(p, colluders=1)
    np.testing.assert_allclose(loss.factor, 1 / np.array([1, 2, 3, 3, 2, 1]))
    assert loss.found.note == "it is left with 0 others"
    assert (account(p, colluders=2).factor == 1.0).all()


@pytest.mark.parametrize("graph", [graphs.ring(7), graphs.star(6), graphs.regular(8, 3, seed=1)], ids=lambda g: g.name)
@pytest.mark.parametrize("walk", ["metropolis", "simple"])
@pytest.mark.parametrize("f", [1, 2])
def test_gaps_are_shorter_than_those_of_every_coalition(graph, walk, f):
    P, horizon = transition_matrix(graph, walk), 30
    for u in (0, graph.n - 1):
        laws = [np.cumsum(gaps_against_any(P, u, f, horizon, pairs=pairs)[0]) for pairs in (True, False)]
        truth = np.zeros(horizon)
        for gone in others(graph, u, f):
            truth = np.maximum(truth, np.cumsum(hitting_law(P, u, (u, *gone), horizon)))
        for law in laws:
            assert (law >= truth * (1 - 1e-12)).all()
            assert law[-1] == pytest.approx(1.0)
        assert (laws[0] <= laws[1] + 1e-12).all()
        if f == 1:
            np.testing.assert_allclose(laws[0], truth, atol=1e-12)


def test_a_walk_on_a_graph_covers_named_coalitions():
    p = GraphWalkSum(graphs.ring(8), steps=16, sigma=5.0)
    loss = account(p, colluders=2)
    for members in ((1, 7), (1, 2), (3, 6)):
        named = float(account(p, members, targets=[0]).epsilon(1e-4)[0])
        assert float(loss.epsilon(1e-4)[0]) >= named * 0.99  # two tables of chords
    assert loss.found.observers.parties == (1, 7)
    assert loss.found.epsilon(1e-4) <= loss.worst_epsilon(1e-4) * 1.01 < 2 * loss.found.epsilon(1e-4)


@pytest.mark.parametrize("graph", [graphs.ring(6), graphs.star(5), graphs.regular(6, 3, seed=1)], ids=lambda g: g.name)
@pytest.mark.parametrize("f", [1, 2])
@pytest.mark.parametrize("steps", [12, 60])
def test_moments_against_any_are_never_below_those_against_named_users(graph, f, steps, monkeypatch):
    points = np.array([0.05, 0.3, 1.0, 4.0])

    def at_points(log_moment, outside=0.0):
        return EnergyMoments(points, np.array([log_moment(float(s)) for s in points]), outside)

    for module in (walk_energy, graph_stretch):  # both have it from graph_energy
        monkeypatch.setattr(module, "moments_of", at_points)
    key = (graph, "metropolis", steps, 1.0)
    for u in (0, 3):
        ours = walk_energy.moments_against_any.__wrapped__(*key, u, f).logs
        named = [_moments.__wrapped__(key, gone, u, "gaps").logs for gone in others(graph, u, f)]
        worst = np.max(named, axis=0)
        assert (ours >= worst - 1e-7).all()  # both are read off a circle, up to a part in 10⁸ too large
        if f == 1:  # only the largest term of each length may come from another user
            assert (ours <= 1.2 * worst + 1e-6).all()


def test_the_rounding_of_currents_is_on_top():
    """Formula pin: 4u(d + 4)(1 + 2κd) of the largest potential, on every potential, and twice for each neighbour on a current."""
    n, kappa = 6, 2.5
    whole, currents_of = Network(graphs.complete(n), kappa).solve(0, ())
    exact = (1 + kappa) / (1 + kappa * n)  # of (I + κL)⁻¹
    printed = 4 * 2.0**-53 * (n - 1 + 4) * (1 + 2 * kappa * (n - 1)) * exact
    assert 0.9 * printed < whole - exact < 1.1 * printed + 1e-15
    through = kappa / (1 + kappa * n)
    assert ((currents_of[1:] - through) > 0.9 * kappa * 2 * (n - 1) * printed).all()
    assert ((currents_of[1:] - through) < 1.2 * kappa * 2 * (n - 1) * printed + 1e-14).all()
