"""The published formula: computed as printed, and refuted."""

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.protocol import Gossip
from netdp.papers.formulas import muffliato
from netdp.protocols.accounting import account, pairwise


def printed(protocol, senders):
    """Theorem 1 / equation (14), dense and literal."""
    W = protocol.matrix.toarray()
    total = np.zeros(len(W))
    for t in range(protocol.rounds):
        power = np.linalg.matrix_power(W, t)
        for w in senders:
            total += power[:, w] ** 2 / (power[w] ** 2).sum()
    return total


GRAPHS = [graphs.ring(11), graphs.grid(3, 5), graphs.dataset("karate"), graphs.erdos_renyi(30, 0.3, seed=3)]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.name)
def test_theorem_1_as_printed(graph):
    protocol = Gossip(graph, rounds=6, sigma=2.0)
    expected = np.column_stack([printed(protocol, graph.neighbors(v)) for v in range(graph.n)])
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(muffliato.theorem1_pairwise(protocol), expected, rtol=1e-12)
    np.testing.assert_allclose(muffliato.theorem1(protocol, 4), expected[:, 4], rtol=1e-12)
    np.testing.assert_allclose(pairwise(protocol, method="published").factor, expected, rtol=1e-12)


def test_theorem_12_counts_colluders_that_talk_to_each_other():
    protocol = Gossip(graphs.grid(4, 4), rounds=4, sigma=1.0)
    colluders = [5, 6, 10]
    senders = {int(w) for v in colluders for w in protocol.graph.neighbors(v)}
    assert {5, 6, 10} <= senders
    expected = printed(protocol, sorted(senders))
    expected[colluders] = np.nan
    np.testing.assert_allclose(muffliato.theorem12(protocol, colluders), expected, rtol=1e-12)


def test_two_round_counterexample():
    """Ring, W = 1/3 on {v−1, v, v+1}, two rounds: the true factor two hops away is 1, Theorem 1 says 1/3.

    Proof. Let v = 0 and write n_u = x_u + η_u. Round 0 brings n_1. Round 1 brings (n_0 + n_1 + n_2)/3 from party 1. v knows
    n_0, its own; so 3·(message) − n_0 − n_1 = n_2 = x_2 + η_2: exactly what local DP would publish of party 2. ∎
    """
    protocol = Gossip(graphs.ring(9), rounds=2, sigma=1.0)
    rng = np.random.default_rng(1)
    noisy = rng.standard_normal(9)
    W = protocol.matrix.toarray()
    first, second = noisy[1], (W @ noisy)[1]
    assert 3 * second - noisy[0] - first == pytest.approx(noisy[2], abs=1e-14)  # the proof, executed

    assert account(protocol, 0).factor[2] == pytest.approx(1.0, abs=1e-11)
    assert account(protocol, 0, method="published").factor[2] == pytest.approx(1 / 3, abs=1e-14)


def test_corollary_1():
    """As printed, and never below Theorem 1, from which it is derived."""
    protocol = Gossip(graphs.dataset("karate"), rounds=5, sigma=1.0)
    W = protocol.matrix.toarray()
    for v in (0, 11, 33):
        powers = [np.linalg.matrix_power(W, t)[:, v] ** 2 for t in range(1, 6)]
        expected = 34 * max(W[v, w] ** -2.0 for w in protocol.graph.neighbors(v)) * sum(powers)
        expected[v] = np.nan
        corollary = muffliato.corollary1(protocol, v)
        np.testing.assert_allclose(corollary, expected, rtol=1e-12)
        others = np.arange(34) != v
        assert (corollary[others] >= muffliato.theorem1(protocol, v)[others]).all()


def test_mean_is_right_up_to_the_observer():
    """The formula's sum over all u, the observer included, is T·deg; the true factors sum to the rank, never more."""
    protocol = Gossip(graphs.hypercube(5), rounds=4, sigma=1.0)
    everyone = printed(protocol, protocol.graph.neighbors(0))
    assert everyone.sum() / 32 == pytest.approx(muffliato.mean_loss(protocol, 0))
    assert np.nansum(account(protocol, 0).factor) <= everyone.sum() + 1e-9


def test_says_that_it_is_not_a_bound():
    loss = account(Gossip(graphs.ring(9), rounds=2, sigma=1.0), 0, method="published")
    assert loss.claim == "published"
    assert not loss.is_certified
    assert "not" in loss.describe()
    assert "bound" in loss.describe()
    assert any("not upper bounds" in text for text in loss.errata)
    with pytest.raises(Unsupported, match="certified"):
        loss.require_certified()
    certified = account(Gossip(graphs.ring(9), rounds=2, sigma=1.0), 0)
    assert certified.is_certified


def test_published_epsilon_uses_the_renyi_conversion():
    """The paper claims Rényi DP only, so its ε(δ) is never below that of the Gaussian curve with the same factor."""
    from netdp.privacy import gaussian_epsilon

    protocol = Gossip(graphs.ring(9), rounds=3, sigma=2.0)
    loss = account(protocol, 0, method="published")
    others = np.arange(9) != 0
    gaussian = gaussian_epsilon(np.sqrt(loss.factor[others]) * protocol.local_mu, 1e-6)
    assert (loss.epsilon(1e-6)[others] >= gaussian).all()


# ── graphs that change, or stay secret ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("observers", [(0,), (1, 4)])
def test_equation_14_is_written_out(observers):
    """Every message's weight vector by multiplying dense matrices forwards."""
    rounds = [graphs.ring(6), graphs.star(6), graphs.path(6), graphs.ring(6)]
    protocol = netdp.VaryingGossip(rounds, sigma=2.0)
    product, total = np.eye(6), np.zeros(6)
    for graph, W in zip(rounds, protocol.matrices, strict=True):
        for w in sorted({int(w) for v in observers for w in graph.neighbors(v)}):
            total += product[w] ** 2 / (product[w] @ product[w])
        product = W.toarray() @ product
    loss = netdp.account(protocol, list(observers), method="published")
    honest = [u for u in range(6) if u not in observers]
    np.testing.assert_allclose(loss.factor[honest], total[honest])
    assert loss.claim == "published"
    assert any("not symmetric" in text for text in loss.errata)


def test_published_formulas_of_secret_graphs_are_not_refused():
    from netdp.papers.formulas import muffliato as collusion

    protocol = netdp.ErdosRenyiGossip(500, 0.02, rounds=5, sigma=4.0)
    loss = netdp.account(protocol, [0], method="published", degree=9)
    most = collusion.largest_order(4.0)
    for alpha in (2.0, 4.0, most):
        assert float(loss.rdp(alpha)[1]) == pytest.approx(collusion.theorem9(alpha, 500, 9, 5, 4.0), rel=2e-3)
    next_door = netdp.account(protocol, [0], method="published", neighbour=True)
    assert float(next_door.rdp(2.0)[1]) == pytest.approx(
        collusion.theorem9(2.0, 500, 9, 5, 4.0, neighbour=True), rel=2e-3
    )
    mean = netdp.account(protocol, [0], method="published")
    assert float(mean.rdp(2.0)[1]) == pytest.approx(collusion.theorem9(2.0, 500, 499 * 0.02, 5, 4.0), rel=2e-3)
    varying = protocol.replace(varying=True)
    with pytest.raises(InvalidValue, match="one graph per run"):
        netdp.account(varying, [0], method="published")
    assert netdp.account(varying, [0], method="published", transcript=varying.draw(1)).claim == "published"
    descent = netdp.ErdosRenyiDescent(500, 0.02, 7, sigma=4.0, step=0.1, clip=0.5, gossip_rounds=3)
    said = netdp.account(descent, [0, 1], method="published")
    q = 1 - 0.98**2
    reached = 498 * q
    expected = 2.0 / 16 * 7 * (q + (1 - q) * 3 * reached / (500 - reached))
    assert float(said.rdp(2.0)[5]) == pytest.approx(expected, rel=2e-3)
    assert len(said.errata) >= 5
