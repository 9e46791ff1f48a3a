"""The bound for secret graphs against brute force: all graphs enumerated, the mixture of Gaussians integrated numerically.

Proof: docs/proofs/gossip.md#secret-graph.
"""

import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from scipy.special import logsumexp

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account.secret_graphs import mean_factor, secret_graph_divergence, secret_graph_loss
from netdp.families.gossip.protocol import Gossip
from netdp.papers.formulas import muffliato as printed
from netdp.privacy import Claim
from netdp.protocols.accounting import pairwise

ORDERS = (1.1, 1.5, 2.0, 3.0, 6.0)


def neighbourhood_graphs(n, q, degree_of_neighbour=None):
    """All connected graphs in which party 0 has the single neighbour 1, with their Erdős–Rényi probabilities."""
    pairs = list(itertools.combinations(range(1, n), 2))
    for present in itertools.product((0, 1), repeat=len(pairs)):
        edges = [(0, 1), *(pair for pair, there in zip(pairs, present, strict=True) if there)]
        g = nx.Graph(edges)
        if g.number_of_nodes() < n or not nx.is_connected(g):
            continue
        if degree_of_neighbour is not None and g.degree(1) != degree_of_neighbour:
            continue
        yield (
            q ** sum(present) * (1 - q) ** (len(pairs) - sum(present)),
            graphs.from_networkx(nx.Graph(g.subgraph(range(n)))),
        )


def mixture_divergence(laws, shift, alpha, sigma):
    """D_α between two mixtures of two-dimensional Gaussians (weights, means A·x, covariance σ²AAᵀ) on a fine grid."""
    span = np.linspace(-9 * sigma, 9 * sigma, 601)
    first, second = np.meshgrid(span, span, indexing="ij")
    points = np.stack([first.ravel(), second.ravel()])
    total = sum(weight for weight, _ in laws)
    logs = []
    for x in (np.zeros_like(shift), shift):
        parts = []
        for weight, A in laws:
            covariance = sigma**2 * A @ A.T
            centred = points - (A @ x)[:, None]
            exponent = np.einsum("ij,ij->j", centred, np.linalg.solve(covariance, centred))
            scale = weight / total / (2 * np.pi * np.sqrt(np.linalg.det(covariance)))
            parts.append(np.log(scale) - exponent / 2)
        logs.append(logsumexp(parts, axis=0))
    p, q = logs
    cell = 2 * np.log(span[1] - span[0])
    assert logsumexp(p) + cell == pytest.approx(0.0, abs=1e-6)
    return [(logsumexp(a * p + (1 - a) * q) + cell) / (a - 1) for a in alpha]


def merged(laws):
    """Graphs that look alike to the observer, put together."""
    weights = Counter()
    for weight, rows in laws:
        weights[rows.round(12).tobytes()] += weight
    return [(weight, np.frombuffer(key).reshape(2, -1)) for key, weight in weights.items()]


@pytest.mark.parametrize(("n", "q", "known_degree"), [(4, 0.5, None), (4, 0.3, 2), (5, 0.5, None), (5, 0.4, 2)])
def test_bound_holds_over_all_graphs(n, q, known_degree):
    sigma, target = 1.5, 2
    laws = []
    for weight, graph in neighbourhood_graphs(n, q, known_degree):
        W = Gossip(graph, rounds=2, sigma=sigma).matrix.toarray()
        # messages of party 1 in two rounds, party 0's own part subtracted: z₁ and Σ_w W₁w z_w
        rows = np.vstack([np.eye(n)[1], W[1]])
        rows[:, 0] = 0.0
        laws.append((weight, rows))
    assert len(laws) > 1
    shift = np.zeros(n)
    shift[target] = 1.0
    true = mixture_divergence(merged(laws), shift, ORDERS, sigma)
    phi = mean_factor(n, degree=1, rounds=2)
    bound = secret_graph_divergence(np.array(ORDERS), phi, sigma)
    assert phi == pytest.approx(1 / (n - 2))
    assert (np.array(true) <= bound * (1 + 1e-6)).all()
    # not vacuous: below local DP, and the printed theorem, where it is admitted, above the truth too
    assert (bound < np.array(ORDERS) / (2 * sigma**2)).all()
    for alpha, divergence in zip(ORDERS, true, strict=True):
        if alpha <= printed.largest_order(sigma):
            assert divergence <= printed.theorem9(alpha, n, 1, 2, sigma)


def test_mean_of_exact_factors_is_at_most_phi():
    rng = np.random.default_rng(5)
    for seed in range(8):
        graph = graphs.erdos_renyi(24, 0.25, seed=seed)
        if not graph.is_connected:
            continue
        rounds = int(rng.integers(1, 5))
        factor = pairwise(Gossip(graph, rounds=rounds, sigma=1.0)).factor
        for v in range(graph.n):
            others = graph.distances(v) > 1
            phi = mean_factor(graph.n, int(graph.degrees[v]), rounds)
            assert factor[others, v].mean() <= phi * (1 + 1e-9) + 1e-11
            assert factor[graph.neighbors(v), v] == pytest.approx(1.0)


def test_shape_of_the_bound():
    alphas = np.geomspace(1.01, 1e4, 50)
    local = alphas / (2 * 3.0**2)
    for phi in (1e-4, 0.1, 1.0):
        bound = secret_graph_divergence(alphas, phi, 3.0)
        assert np.isfinite(bound).all()
        assert (bound <= local * (1 + 1e-12)).all()
        assert (np.diff(bound) > 0).all()
    assert secret_graph_divergence(alphas, 1.0, 3.0) == pytest.approx(local)
    assert (secret_graph_divergence(alphas, 0.0, 3.0) == 0).all()
    # the paper's condition and factor 2 follow from it
    for sigma in (0.7, 2.0, 9.0):
        alpha = printed.largest_order(sigma)
        corrected = secret_graph_divergence(alpha, mean_factor(1000, 6, 5), sigma)
        assert corrected <= printed.theorem9(alpha, 1000, 6, 5, sigma)


def test_loss_is_upper_and_says_what_it_assumes():
    loss = secret_graph_loss(100_000, degree=10, rounds=6, sigma=6.0)
    assert loss.claim is Claim.UPPER
    assert any("permutation" in line for line in loss.assumptions)
    local = secret_graph_loss(12, degree=6, rounds=6, sigma=6.0)
    assert loss.epsilon(1e-5) < local.epsilon(1e-5)
    assert secret_graph_loss(100_000, 30, 6, 6.0, observers=3).epsilon(1e-5) > loss.epsilon(1e-5)
    assert float(secret_graph_loss(100, 5, 1, 1.0).rdp(2.0)) == 0  # one round: only neighbours are seen
    with pytest.raises(InvalidValue, match="leave nobody"):
        secret_graph_loss(10, degree=9, rounds=3, sigma=1.0)
    with pytest.raises(InvalidValue, match="sigma must be a finite number > 0, got 0"):
        secret_graph_loss(10, degree=3, rounds=3, sigma=0.0)


def test_printed_condition_is_checked():
    assert printed.largest_order(1.0) == 2.0
    sigma = 2.0
    most = printed.largest_order(sigma)
    assert most * (most - 1) / 2 == pytest.approx(sigma**2)
    assert printed.theorem9(most, 100, 4, 3, sigma) == pytest.approx(most / 4 * 12 / 96)
    assert printed.theorem9(2.0, 100, 4, 3, sigma, neighbour=True) == 0.25
    with pytest.raises(Unsupported, match=r"alpha = 3.5 with sigma = 2 is out; the largest order is 3.37"):
        printed.theorem9(3.5, 100, 4, 3, sigma)
    with pytest.raises(Unsupported):
        printed.corollary5(3.5, 100, 4, 3, sigma)
    with pytest.raises(Unsupported):
        printed.proposition1(3.5, 100, 3, sigma, 1.0, [4], [False])
    # ε(δ) uses admissible orders only: never below the unrestricted minimum, equal where the optimum is admissible
    epsilon = printed.secret_epsilon(1e-6, 2000, 8, 6, 4.0)
    slope = 6 * 8 / 1992 / 16
    grid = np.linspace(1.001, printed.largest_order(4.0), 20_000)
    assert epsilon == pytest.approx((slope * grid + np.log(1e6) / (grid - 1)).min(), rel=1e-6)


def test_printed_collusion():
    protocol = Gossip(graphs.hypercube(4), rounds=5, sigma=1.0)
    from netdp.papers.formulas.muffliato import corollary1

    np.testing.assert_allclose(printed.corollary3(protocol, [3]), corollary1(protocol, 3))
    pair = printed.corollary3(protocol, [0, 1])
    assert np.isnan(pair[[0, 1]]).all()
    W = protocol.matrix.toarray()
    power, total = np.eye(16), 0.0
    for _ in range(5):
        power = power @ W
        total += power[7, [0, 1]].sum() ** 2
    assert pair[7] == pytest.approx(16 * 25 * total)
    variance, utility = printed.corollary4(protocol, [0, 1], 0.5, 2.0, 0.25)
    assert (variance, utility) == (6 / 2, pytest.approx(2 * 6 / (0.5 * 256 * 0.5)))
    value = printed.proposition1(2.0, 100, 3, 2.0, 1.0, [4, 5], [False, True])
    assert value == pytest.approx(2 / 4 * (12 / 96 + 1))
    assert len(printed.COLLUSION_ERRATA) == 5


def test_the_assumptions_of_the_proof_are_printed():
    """The mixture over graphs has the same weights whatever the values; the shift is Δ; nobody else reads or publishes."""
    said = " | ".join(secret_graph_loss(50, degree=4, rounds=3, sigma=2.0, sensitivity=1.5).assumptions)
    assert "the graph is drawn without regard to the values" in said
    assert "differ by at most 1.5 in L2 norm" in said
    assert "weights are a function of the graph alone" in said
    assert "values are fixed before the first send" in said
    assert "readable by sender and receiver alone" in said
