"""The predicted error of changing gossip against its definition, and the rate of randomized gossip."""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import Unsupported
from netdp.families.gossip import error as utility_varying
from netdp.protocols import ErdosRenyiGossip, Gossip, RandomizedGossip, VaryingGossip
from netdp.protocols.accuracy import expected_error


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
