"""The printed utility against the exact error: Theorem 7 holds on these graphs, Theorem 8 as printed does not."""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.gossip.protocol import Gossip
from netdp.graphs.spectrum import spectral_gap
from netdp.papers.formulas import muffliato as printed
from netdp.protocols.accuracy import expected_error

GRAPHS = [
    graphs.hypercube(5), graphs.ring(24), graphs.grid(4, 7), graphs.complete(12), graphs.star(15),
    graphs.regular(40, 3, seed=1),
]  # fmt: skip


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.name)
@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_theorem7_dominates_the_exact_error(graph, sigma):
    gap = spectral_gap(graph)
    values = np.random.default_rng(0).standard_normal(graph.n)
    slow = np.linalg.eigh(Gossip(graph, rounds=1, sigma=1.0).matrix.toarray())[1][:, -2] * graph.n**0.5
    for data in (values, slow):
        spread = float(data.var())
        for rounds in (1, 2, 3, 5, 10, 20, 60):
            exact = expected_error(Gossip(graph, rounds=rounds, sigma=sigma, accelerated=True), data).total / 2
            assert exact <= printed.synchronous_bound(rounds, gap, sigma, graph.n, spread)
        stop = printed.synchronous_stop(gap, sigma, graph.n, spread)
        at_stop = expected_error(Gossip(graph, rounds=max(stop, 1), sigma=sigma, accelerated=True), data).total / 2
        assert at_stop <= 3 * sigma**2 / graph.n
        assert printed.synchronous_bound(stop, gap, sigma, graph.n, spread) <= 3 * sigma**2 / graph.n


def test_theorem8_is_exceeded_and_half_its_rate_is_not():
    # Complete graph, edges drawn uniformly: E W = I − L_p/2 is (1 − 1/(n−1)) on mean-zero vectors, W a projection, so
    # E‖x − x̄‖² contracts by exactly that in each step.
    n, sigma, spread, steps = 20, 1.0, 100.0, 19
    p = 2 / (n * (n - 1))
    laplacian = p * (n * np.eye(n) - np.ones((n, n)))
    gap = float(np.linalg.eigvalsh(laplacian)[1])
    rng = np.random.default_rng(0)
    W = [np.eye(n)] * 40
    for k in range(40):  # each pairwise averaging is a projection: WᵀW = W
        i, j = rng.choice(n, 2, replace=False)
        d = np.eye(n)[i] - np.eye(n)[j]
        W[k] = np.eye(n) - np.outer(d, d) / 2
        np.testing.assert_allclose(W[k].T @ W[k], W[k])
    mean_W = np.eye(n) - laplacian / 2
    assert np.linalg.eigvalsh(mean_W)[-2] == pytest.approx(1 - gap / 2)
    kept = (1 - gap / 2) ** steps
    exact = (spread + sigma**2 * (1 - 1 / n)) * kept / 2 + sigma**2 / n / 2
    assert exact > printed.randomized_bound(steps, gap, sigma, n, spread)
    assert exact <= printed.randomized_bound(steps, gap / 2, sigma, n, spread)
    stop = printed.randomized_stop(gap, sigma, n, 0.0)
    at_stop = sigma**2 * (1 - 1 / n) * (1 - gap / 2) ** stop / 2 + sigma**2 / n / 2
    twice = sigma**2 * (1 - 1 / n) * (1 - gap / 2) ** (2 * stop) / 2 + sigma**2 / n / 2
    assert at_stop > 2 * sigma**2 / n
    assert twice <= 2 * sigma**2 / n


def test_table1():
    assert printed.table1("arbitrary", 1, 100, 0.5, degree=4, gap=0.25) == pytest.approx(2 / 0.5 * 8 / 1e4)
    assert printed.table1("arbitrary", 2, 100, 0.5, gap=0.25) == pytest.approx(2 / 0.5 * 4 / 1e4)
    assert printed.table1("torus", 1, 100, 0.5, dimension=2) == pytest.approx(4 * 2 / 1000)
    assert printed.table1("torus", 2, 100, 0.5, dimension=2) == pytest.approx(4 / 100)
    assert printed.table1("expander", 1, 100, 0.5) == printed.table1("complete", 2, 100, 0.5) == pytest.approx(4e-4)
    # the erratum: a ring is a 1-torus, and the two columns disagree
    assert printed.table1("ring", 2, 100, 0.5) < printed.table1("torus", 2, 100, 0.5, dimension=1)
    assert set(printed.TABLE1) == {"arbitrary", "expander", "torus", "complete", "ring"}
    with pytest.raises(InvalidValue, match="needs its gap"):
        printed.table1("arbitrary", 1, 100, 0.5, gap=0.1)
    with pytest.raises(InvalidValue, match="dimension"):
        printed.table1("torus", 1, 100, 0.5)
    with pytest.raises(InvalidValue, match="not 'tree'"):
        printed.table1("tree", 1, 100, 0.5)
    with pytest.raises(InvalidValue, match=r"\(0, 2\], got 0"):
        printed.synchronous_bound(3, 0.0, 1.0, 10, 0.0)


def test_bipartite_erratum():
    """The printed matrix min(1/d_v, 1/d_w) never converges on an even ring."""
    A = graphs.ring(8).adjacency().toarray()
    assert np.linalg.eigvalsh(A / 2)[0] == pytest.approx(-1.0)
