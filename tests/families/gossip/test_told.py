"""Observers who are told all first messages: all of them at once (docs/proofs/gossip.md#told-everything)."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import Unsupported
from netdp.families.gossip.account import bounds as told
from netdp.families.gossip.account import descent as everybody
from netdp.families.gossip.account import exact, krylov
from netdp.families.gossip.account import krylov as wide
from netdp.families.gossip.account.bounds import told_everything
from netdp.families.gossip.account.descent import loss_energy, worst_energies
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.search import revealed
from netdp.families.gossip.views import GossipView
from netdp.protocols import GossipDescent

KARATE = graphs.dataset("karate")


def inverse_diagonal(graph, masks, v):
    """[S_v⁻¹]_uu in fractions, by Gauss and Jordan."""
    honest = [u for u in range(graph.n) if u != v]
    place = {u: i for i, u in enumerate(honest)}
    size = len(honest)
    rows = [[Fraction(i == j) for j in range(size)] + [Fraction(i == j) for j in range(size)] for i in range(size)]
    for u, w in graph.edges().tolist():
        if v in (u, w):
            continue
        i, j = place[u], place[w]
        rows[i][i] += masks
        rows[j][j] += masks
        rows[i][j] -= masks
        rows[j][i] -= masks
    for i in range(size):
        pivot = rows[i][i]
        rows[i] = [x / pivot for x in rows[i]]
        for j in range(size):
            if j != i and rows[j][i]:
                times = rows[j][i]
                rows[j] = [x - times * y for x, y in zip(rows[j], rows[i], strict=True)]
    return {u: rows[place[u]][size + place[u]] for u in honest}


@pytest.mark.parametrize("masks", [Fraction(1, 8), Fraction(1), Fraction(100), Fraction(10**5), Fraction(10**12)])
@pytest.mark.parametrize("graph", [graphs.star(6), graphs.path(6), graphs.grid(2, 4), graphs.complete(5)], ids=str)
def test_never_below_the_inverse_in_fractions_and_close_to_it(graph, masks):
    for v, found in enumerate(told_everything(graph, float(masks))):
        assert np.isnan(found[v])
        for u, true in inverse_diagonal(graph, masks, v).items():
            assert Fraction(float(found[u])) >= true, (v, u)
            assert found[u] <= float(true) * (1.0001 if masks <= 100 else 1.05), (v, u)


def test_isolated_parties_and_no_masks():
    """A party without a neighbour has nobody to hide with, and without masks everybody is told everything."""
    apart = graphs.Graph.from_edges(4, [(0, 1), (1, 2)])
    alone = list(told_everything(apart, 5.0))
    assert alone[0][3] == alone[1][3] == 1.0
    laplacian = np.array([[1, -1, 0], [-1, 2, -1], [0, -1, 1]])
    np.testing.assert_allclose(alone[3][:3], np.diag(np.linalg.inv(np.eye(3) + 5 * laplacian)))
    assert (np.delete(next(told_everything(KARATE, 0.0)), 0) == 1.0).all()


def test_too_many_parties_are_refused_before_the_work(monkeypatch):
    monkeypatch.setattr("netdp.families.gossip.account.bounds.MAX_PARTIES", 10)
    with pytest.raises(Unsupported, match="offered up to 10"):
        next(told_everything(KARATE, 1.0))


@pytest.mark.parametrize("part", [3, 8, 1000])
@pytest.mark.parametrize("observers", [(0,), (33,), (2, 33)])
def test_parts_of_a_graph_are_a_bound(observers, part, monkeypatch):
    monkeypatch.setattr(told, "_PART", part)
    protocol = Gossip(KARATE, 40, 1.0, masks=20.0)
    whole = revealed(GossipView.of(protocol, list(observers)))
    others = ~np.isnan(whole)
    found = told.told_in_parts(KARATE, observers, 20.0)
    assert (found[others] >= whole[others] * (1 - 2e-6)).all()
    assert found[others].max() <= 1.0
    if part == 1000:
        connected = whole[others] < 1
        np.testing.assert_allclose(found[others][connected], whole[others][connected], rtol=1e-5)
    assert np.median(found[others]) < {3: 0.5, 8: 0.2, 1000: 0.07}[part]


@pytest.mark.parametrize("settings", [{}, {"masks": 9.0}, {"refresh": 1.0}])
@pytest.mark.parametrize("dense", [0, 4000])
def test_what_would_take_too_long_is_bounded_at_once_and_says_so(settings, dense, monkeypatch):
    monkeypatch.setattr(exact, "_MAX_DENSE", dense)
    protocol = Gossip(KARATE, 3, 1.0, **settings)
    view = GossipView.of(protocol, [33])
    monkeypatch.setattr(exact, "seen_space", None)  # nothing is built
    bound = exact.factors(view, patience=0.0)
    assert bound.claim == "upper"
    assert "following 17 neighbours through 3 rounds exactly takes some 0 minutes" in bound.notes[0]
    assert "fewer rounds" in bound.notes[0]
    assert "patience" in bound.notes[0]
    monkeypatch.undo()
    true = exact.factors(view).values
    assert (bound.values[:33] >= true[:33] - 1e-12).all()  # the exact ones are rounded up, out of reach too
    reached = KARATE.distances([33]) <= 3
    assert (bound.values[~reached] == 0).all()


def test_what_a_tilt_does_to_a_masked_loss_is_measured(monkeypatch):
    """The tilt times the condition of the masks is too much; what it moves is not, and long integers agree."""
    graph = graphs.erdos_renyi(24, 0.25, seed=5)
    view = GossipView.of(Gossip(graph, 5, 1.0, masks=40.0), [0])
    space = krylov.seen_space(view)
    tilted = dataclasses.replace(space, tilt=5e-9)
    measured = exact._masked_as_moved(view, tilted)
    assert measured is not None
    assert measured.slack <= exact.EXACT_BELOW
    sure = exact._masked(view, wide.seen_space_wide(view).basis, krylov.CALM_TILT)
    hidden = view.hidden
    assert (measured.values[hidden] >= sure.computed[hidden] * (1 - 1e-13)).all()
    np.testing.assert_allclose(measured.values[hidden], sure.computed[hidden], atol=measured.slack + 1e-12)
    assert exact._masked_as_moved(GossipView.of(view.protocol.replace(masks=1e12), [0]), tilted) is None


def test_a_moved_basis_is_seen_in_what_is_computed_from_it():
    view = GossipView.of(Gossip(KARATE, 4, 1.0), [5])
    space = krylov.seen_space(view)
    scores = krylov.leverage(space.basis)
    once = krylov.moved(view, space.ranks, lambda other: krylov.leverage(other) - scores)
    assert 0 < once < 1e-12
    assert krylov.moved(view, space.ranks, lambda other: 7 * (krylov.leverage(other) - scores)) == pytest.approx(
        7 * once
    )


# --- learning --------------------------------------------------------------------------------------------------------


def one_by_one(protocol):
    return np.fmax.reduce([loss_energy(protocol, (v,)) for v in range(protocol.n)])


@pytest.mark.parametrize(("iterations", "rounds", "masks"), [(1, 1, 30.0), (1, 2, 30.0), (6, 2, 1.0), (6, 8, 100.0)])
@pytest.mark.parametrize("effort", [0.0, 3e7, 1e15])
def test_the_bound_for_all_observers_is_one_and_effort_tightens_it(iterations, rounds, masks, effort, monkeypatch):
    protocol = GossipDescent(graphs.grid(3, 5), iterations, rounds, sigma=1.0, step=1.0, masks=masks)
    alone = one_by_one(protocol)
    monkeypatch.setattr(everybody, "EFFORT", effort)
    found = worst_energies(protocol)
    assert (found >= alone * (1 - 1e-5)).all()
    assert found.max() <= iterations
    if effort == 1e15:
        np.testing.assert_array_equal(found, alone)
    if iterations > 1:  # what stays hidden adds up, so that being told everything costs no more
        np.testing.assert_allclose(found, alone, rtol=1e-4)


def test_one_round_alone_is_where_effort_pays(monkeypatch):
    """After one round a neighbour knows one masked value; told everything it would know the sum too."""
    protocol = GossipDescent(graphs.ring(12), 1, 1, sigma=1.0, step=1.0, masks=1000.0)
    monkeypatch.setattr(everybody, "EFFORT", 0.0)
    bound = worst_energies(protocol).max()
    monkeypatch.setattr(everybody, "EFFORT", 1e15)
    assert worst_energies(protocol).max() < bound / 10


def test_effort_goes_to_the_worst_observers_first(monkeypatch):
    """A path's second party alone knows its end's secrets: one observer settles the largest loss."""
    protocol = GossipDescent(graphs.path(12), 3, 2, sigma=1.0, step=1.0, masks=50.0)
    asked = []
    monkeypatch.setattr(everybody, "EFFORT", 12 * 12.0**3 * 3 * 5)
    monkeypatch.setattr(everybody, "loss_energy", lambda p, group: asked.append(group) or loss_energy(p, group))
    assert worst_energies(protocol).max() == 3.0
    assert asked in ([(1,)], [(10,)])


def test_without_masks_nothing_is_computed(monkeypatch):
    monkeypatch.setattr(everybody, "loss_energy", None)
    monkeypatch.setattr(everybody, "told_everything", None)
    protocol = GossipDescent(KARATE, 7, 3, sigma=1.0, step=1.0)
    assert (worst_energies(protocol) == 7.0).all()
    monkeypatch.undo()
    np.testing.assert_array_equal(one_by_one(protocol.replace(iterations=2)), 2.0)


def test_changing_graphs_count_each_with_its_masks(monkeypatch):
    rings = (graphs.ring(8), graphs.complete(8), graphs.ring(8))
    protocol = GossipDescent(rings, 3, 2, sigma=1.0, step=1.0, masks=10.0)
    alone, calls = one_by_one(protocol), []
    monkeypatch.setattr(everybody, "EFFORT", 0.0)
    found = worst_energies(protocol, lambda done, total: calls.append((done, total)))
    assert (found >= alone * (1 - 1e-5)).all()
    ring, full = (next(told_everything(graph, 10.0))[1:] for graph in rings[:2])
    np.testing.assert_allclose(found, (2 * ring + full).max())


def test_the_error_of_an_inverse_is_on_top():
    """Formula pin: the largest residual, and 4u(d + 4)(1 + 2κd) of the largest entry; complete graphs have a known inverse."""
    n, kappa = 6, 2.5
    inverse, wrong = told._inverse(graphs.complete(n), kappa)
    exact = (np.eye(n) + kappa) / (1 + kappa * n)  # (I + κL)⁻¹, L = nI − 1
    assert np.abs(inverse - exact).max() < wrong
    printed = 4 * 2.0**-53 * (n - 1 + 4) * (1 + 2 * kappa * (n - 1)) * (1 + kappa) / (1 + kappa * n)
    assert printed <= wrong * (1 + 1e-9)
    assert wrong <= printed + 2e-14


@pytest.mark.parametrize("masks", [0.5, 10.0, 300.0])
def test_noise_that_is_found_by_this_bound_passes_every_account(monkeypatch, masks):
    """Line "`GossipDescent` calibrated to 1.0000000034": accounts have margins of their own, and the bound now has them too."""
    monkeypatch.setattr(everybody, "EFFORT", 1.0)  # nobody is accounted for one by one
    graph = graphs.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3), (0, 2)], name="a triangle and a tail")
    p = GossipDescent(graph, 11, 2, sigma=1.0, step=0.1, masks=masks)
    found = netdp.calibrate(p, 1.0, 1e-6)
    assert max(netdp.account(found, [v]).worst_epsilon(1e-6) for v in range(4)) <= 1.0
    told_now = worst_energies(p)
    condition = 1 + 2 * masks * 3
    for u in range(4):
        bare = max(values[u] for v, values in enumerate(told_everything(graph, masks)) if v != u)
        added = told_now[u] / 11 - min(bare, 1.0)  # formula pin: 2·16·n·u·(1 + 2κ·degree) an iteration
        assert bare >= 1 or added == pytest.approx(2 * 16 * 4 * 2.0**-53 * condition, rel=0.3)
