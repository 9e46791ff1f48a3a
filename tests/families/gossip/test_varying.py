"""Changing gossip: its predicted error against its definition, fresh noise and grids; the rate of randomized gossip.

Proofs: docs/proofs/gossip.md#gossip-error, docs/proofs/gossip.md#dithered-changing.
"""

import math

import numpy as np
import pytest

import netdp
from netdp import account, graphs, simulate
from netdp.audit.linear import probed
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip import error as utility_varying
from netdp.families.gossip.account import grid
from netdp.families.gossip.account.grid import factors_of_rounds
from netdp.families.gossip.views import SequenceView, hidden_senders
from netdp.protocols import ErdosRenyiGossip, Gossip, RandomizedGossip, VaryingGossip
from netdp.protocols.accuracy import expected_error
from netdp.protocols.simulation import execute


def exchange(n, u, w):
    W = np.eye(n)
    if u >= 0:
        W[np.ix_([u, w], [u, w])] = 0.5
    return W


def test_varying_is_the_product():
    rng = np.random.default_rng(0)
    rounds = [graphs.ring(7), graphs.erdos_renyi(7, 0.3, rng), graphs.star(7)]
    protocol = VaryingGossip(rounds, sigma=0.5)
    values = rng.random((7, 2))
    product = np.eye(7)
    for W in protocol.matrices:
        product = W.toarray() @ product
    error = expected_error(protocol, values)
    assert error.noise == pytest.approx(0.25 * 2 * (product**2).sum() / 7)
    assert error.mixing == pytest.approx(((product @ values - values.mean(axis=0)) ** 2).sum() / 7)
    same = expected_error(VaryingGossip([graphs.ring(7)] * 4, sigma=1.0), values)
    assert same.total == pytest.approx(expected_error(Gossip(graphs.ring(7), rounds=4, sigma=1.0), values).total)


def test_expectation_over_all_sequences():
    """Three steps on a path of three: nine sequences of two edges and an idle step, added up one by one."""
    protocol = RandomizedGossip(graphs.path(3), steps=3, sigma=1.5, probabilities=(0.5, 0.2))
    choices = [(0.5, (0, 1)), (0.2, (1, 2)), (0.3, (-1, -1))]
    values = np.array([1.0, -2.0, 5.0])
    total = np.zeros(2)
    for p1, a in choices:
        for p2, b in choices:
            for p3, c in choices:
                error = expected_error(protocol, values, transcript=[a, b, c])
                product = exchange(3, *c) @ exchange(3, *b) @ exchange(3, *a)
                assert error.noise == pytest.approx(1.5**2 * (product**2).sum() / 3)
                total += p1 * p2 * p3 * np.array([error.noise, error.mixing])
    error = expected_error(protocol, values)
    np.testing.assert_allclose([error.noise, error.mixing], total)


@pytest.mark.parametrize("graph", [graphs.ring(9), graphs.complete(8), graphs.dataset("karate")], ids=lambda g: g.name)
def test_rate_of_randomized_gossip(graph):
    """E‖x¹ − x̄‖² ≤ (1 − λ₂(L_p)/2)‖x⁰ − x̄‖², attained; and the rate 1 − λ₂(L_p) that the paper prints is too fast."""
    protocol = RandomizedGossip(graph, steps=1, sigma=1e-9)
    n = graph.n
    laplacian = np.zeros((n, n))
    for p, (u, w) in zip(protocol.edge_probabilities, graph.edges(), strict=True):
        laplacian[[u, w], [u, w]] += p
        laplacian[[u, w], [w, u]] -= p
    eigenvalues, vectors = np.linalg.eigh(laplacian)
    assert protocol.rate == pytest.approx(eigenvalues[1] / 2)
    slowest = vectors[:, 1]
    left = expected_error(protocol, slowest).mixing * n
    assert left == pytest.approx(1 - eigenvalues[1] / 2)
    assert left > 1 - eigenvalues[1] + 1e-6
    for steps in (10, 50):
        left = expected_error(protocol.replace(steps=steps), slowest).mixing * n
        assert left <= (1 - eigenvalues[1] / 2) ** steps + 1e-12


def test_the_printed_rate_is_exceeded_on_the_complete_graph():
    """All directions are alike there, so E‖xᵗ − x̄‖² = (1 − λ₂(L_p)/2)ᵗ exactly: Theorem 8's e^(−Tλ) fails for large T."""
    protocol = RandomizedGossip(graphs.complete(10), steps=200, sigma=1e-9)
    values = np.zeros(10)
    values[0] = 1.0
    left = expected_error(protocol, values).mixing
    spread = values.var()
    assert left == pytest.approx(spread * (1 - protocol.rate) ** 200, rel=1e-9)
    assert left / 2 > spread * np.exp(-200 * 2 * protocol.rate)


def test_refusals(monkeypatch):
    protocol = RandomizedGossip(graphs.ring(5), steps=30, sigma=1.0)
    monkeypatch.setattr(utility_varying, "MAX_PRODUCTS", 10.0)
    with pytest.raises(Unsupported, match="ask for the error of one sequence"):
        expected_error(protocol)
    monkeypatch.setattr(utility_varying, "MAX_PARTIES", 3)
    with pytest.raises(Unsupported, match="5 parties"):
        expected_error(protocol, transcript=protocol.draw(0))


def test_redrawn_graphs_before_the_draw():
    """Above the mean over drawn sequences, and not far above."""
    protocol = ErdosRenyiGossip(40, 0.15, rounds=3, sigma=1.0, varying=True)
    values = np.linspace(0, 1, 40)
    drawn = [expected_error(protocol.draw(seed), values) for seed in range(60)]
    stated = expected_error(protocol, values)
    for part in ("noise", "mixing"):
        found = np.array([getattr(error, part) for error in drawn])
        margin = 4 * found.std() / np.sqrt(len(found))
        assert found.mean() - margin <= getattr(stated, part) <= 3 * (found.mean() + margin)
    assert stated.total <= expected_error(protocol).total
    with pytest.raises(Unsupported, match="ask for the error of a draw"):
        expected_error(protocol.replace(varying=False))
    with pytest.raises(Unsupported, match="hardly ever be connected"):
        expected_error(protocol.replace(p=0.001))


# ── fresh noise, and on a grid ────────────────────────────────────────────────────────────────────────────────────────


def changing(**more):
    rounds = [graphs.ring(6), graphs.Graph.from_edges(6, [(0, 3), (1, 4)]), graphs.star(6), graphs.path(6)]
    return VaryingGossip(rounds, **{"sigma": 2.0, "refresh": 1.5, "sensitivity": 1.0} | more)


@pytest.mark.parametrize("observers", [(0,), (5,), (1, 4)])
def test_with_fresh_noise_the_loss_is_that_of_the_run_itself(observers):
    """Against the matrices of a run that is fed unit values and unit noises (`netdp.audit.linear`), solved by least squares."""
    p = changing()
    A, C = probed(execute, p, observers, seed=0)
    loss = account(p, observers)
    for u in set(range(6)) - set(observers):
        root = np.linalg.pinv(C) @ A[:, u]
        assert np.allclose(C @ root, A[:, u], atol=1e-9)
        mu = p.sensitivity * float(np.linalg.norm(root))
        assert np.sqrt(loss.factor[u]) * p.local_mu == pytest.approx(mu, rel=1e-6)
        assert np.sqrt(loss.factor[u]) * p.local_mu >= mu * (1 - 1e-9)
    assert np.isnan(loss.factor[list(observers)]).all()


def test_on_one_graph_it_is_refreshed_gossip():
    one = netdp.Gossip(graphs.ring(7), rounds=4, sigma=2.0, refresh=1.5)
    same = VaryingGossip([graphs.ring(7)] * 4, sigma=2.0, refresh=1.5)
    np.testing.assert_allclose(account(same, [0]).factor, account(one, [0]).factor, rtol=1e-9)
    for part in ("noise", "refresh"):
        assert getattr(expected_error(same), part) == pytest.approx(getattr(expected_error(one), part))
    fine, values = 2.0**-45, np.linspace(0, 1, 7)
    runs = [simulate(p.replace(grid=fine), values, 3).estimates for p in (one, same)]
    np.testing.assert_array_equal(*runs)
    found = [account(p.replace(grid=fine), [0]).epsilon(1e-6)[1:] for p in (same, one)]
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_who_reaches_no_observer_in_time_loses_nothing_and_who_sends_nothing_waits():
    rounds = [graphs.Graph.from_edges(4, [(2, 3)]), graphs.Graph.from_edges(4, [(0, 1), (1, 2)])]
    p = VaryingGossip(rounds, sigma=2.0, refresh=1.0, grid=2.0**-40)
    loss = account(p, [0])
    assert loss.epsilon(1e-6)[2] == loss.epsilon(1e-6)[3] == 0.0 < loss.epsilon(1e-6)[1]
    assert "along any path in time" in " ".join(account(p.replace(refresh=0.0), [0]).assumptions)
    assert loss.epsilon(1e-6)[1] < account(p, [2]).epsilon(1e-6)[3]  # one's first message has fresh noise by then
    run = simulate(p, [0.0, 0.1, 0.2, 0.3], 1, record=[0])
    assert run.transcript.received_by([0]).tolist() == [[1, 1, 0]]


def test_against_any_single_party_it_is_the_noise_of_the_first_value():
    p = changing(grid=2.0**-40)
    loss = account(p, colluders=1)
    assert loss.worst_epsilon(1e-6) == pytest.approx(netdp.local_dp(p).worst_epsilon(1e-6), rel=1e-3)
    assert loss.worst_epsilon(1e-6) >= max(account(p, [v]).worst_epsilon(1e-6) for v in range(6)) * (1 - 1e-9)
    again = netdp.calibrate(p, epsilon=1.0, delta=1e-6)
    assert 0.99 < account(again, colluders=1).worst_epsilon(1e-6) <= 1.0
    plain = p.replace(refresh=0.0)
    assert "only local DP" in " ".join(account(plain, [0]).assumptions)
    with pytest.raises(InvalidValue, match="weights of your own on a grid"):
        VaryingGossip([graphs.gossip_matrix(np.full((2, 2), 0.5))] * 2, sigma=1.0, grid=0.5)


@pytest.mark.parametrize("grid", [None, 0.25])
def test_the_error_with_fresh_noise_is_the_predicted_one(grid):
    p, values = changing(grid=grid, sigma=1.0), np.linspace(0, 1, 6)
    found = [simulate(p, values, seed).estimates - values.mean() for seed in range(1500)]
    predicted = expected_error(p, values)
    assert 0.85 * (predicted.total - predicted.rounding) <= float(np.mean(np.square(found))) <= 1.1 * predicted.total


def test_the_rounding_of_changing_factors_is_stated(monkeypatch):
    """Formula pin: m is in proportion to M + n + T(d + 3), d the largest degree; the first two are those of one graph."""
    p = VaryingGossip([graphs.path(3), graphs.star(3), graphs.path(3)], sigma=1.0, refresh=2.0)
    seen = SequenceView(p, (0,))
    messages = sum(len(hidden_senders(graph, seen.observers)) for graph in p.graphs)

    def margin():
        return math.sqrt(1 + factors_of_rounds(p, seen).slack) / 2 - 0.5  # slack = 4m(1 + m)

    stated, plain = margin(), grid.absorbed
    monkeypatch.setattr(grid, "absorbed", lambda *given, extra: plain(*given))
    assert stated / margin() == pytest.approx((messages + 3 + 3 * (2 + 3)) / (messages + 3), rel=1e-2)
