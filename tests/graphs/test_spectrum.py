"""The spectral gap: closed form, dense, Lanczos and inverse Lanczos against one another."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph, mixing, spectrum
from netdp.graphs.mixing import MIXINGS, mixing_matrix
from netdp.graphs.spectrum import chebyshev_gamma, spectral_gap


def by_definition(W: np.ndarray) -> float:
    """Muffliato, Definition 2, literally, for a connected graph."""
    values = np.sort(np.linalg.eigvalsh(W))
    assert values[-1] == pytest.approx(1)
    return float(np.min(1 - np.abs(values[:-1])))


FAMILIES = [
    graphs.ring(9),
    graphs.path(8),
    graphs.complete(6),
    graphs.star(7),
    graphs.grid(3, 5),
    graphs.torus(3, 4),
    graphs.hypercube(4),
]


@pytest.mark.parametrize("kind", MIXINGS)
@pytest.mark.parametrize("g", FAMILIES, ids=lambda g: g.name)
def test_closed_form_dense_and_definition_agree(g: Graph, kind: str) -> None:
    W = mixing_matrix(g, kind)
    expected = by_definition(W.toarray())
    assert spectral_gap(g, kind) == pytest.approx(expected, abs=1e-12)
    assert spectral_gap(W) == pytest.approx(expected, abs=1e-12)
    assert spectral_gap(W.toarray()) == pytest.approx(expected, abs=1e-12)


def test_closed_form_is_used_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectrum, "_numerical", lambda W: pytest.fail("computed"))
    for g in FAMILIES:
        spectral_gap(g, "maximum-degree")
        if "grid" not in g.name:
            spectral_gap(g, "lazy-metropolis")
    n = 10**6
    assert spectral_gap(graphs.ring(n)) == pytest.approx(4 * math.sin(math.pi / n) ** 2 / 3, rel=1e-12)
    assert spectral_gap(graphs.hypercube(8)) == pytest.approx(2 / 9)


@settings(deadline=None)
@given(st.integers(2, 15), st.floats(0.1, 1), st.integers(0, 10**6), st.sampled_from(MIXINGS))
def test_dense(n: int, p: float, seed: int, kind: str) -> None:
    g = graphs.erdos_renyi(n, p, seed)
    gap = spectral_gap(g, kind)
    if g.is_connected:
        assert gap == pytest.approx(by_definition(mixing_matrix(g, kind).toarray()), abs=1e-12)
        assert 0 < gap <= 1 or (kind == "hamilton" and g.is_bipartite and gap < 1e-12)
    else:
        assert gap == spectral_gap(mixing_matrix(g, kind)) == 0.0


def test_degenerate() -> None:
    assert spectral_gap(Graph.from_edges(1, [])) == spectral_gap(np.eye(1)) == 1.0
    assert spectral_gap(np.eye(3)) == 0.0
    assert spectral_gap(graphs.complete(5)) == pytest.approx(1.0)
    # bipartite without rest: the eigenvalue −1
    assert spectral_gap(np.array([[0.0, 1.0], [1.0, 0.0]])) == 0.0


@pytest.mark.parametrize("kind", ["metropolis", "lazy-maximum-degree"])
def test_lanczos_agrees_with_dense(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    g = graphs.erdos_renyi(400, 0.03, 0).largest_component()
    dense = spectral_gap(g, kind)
    monkeypatch.setattr(spectrum, "DENSE_LIMIT", 50)
    assert spectral_gap(g, kind) == pytest.approx(dense, rel=1e-9)


def test_lanczos_finds_the_negative_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bipartite graph with little rest: the eigenvalue near −1 decides."""
    A = graphs.regular(60, 5, 0).adjacency().toarray()
    W = np.block([[0.02 * np.eye(60), 0.98 * A / 5], [0.98 * A / 5, 0.02 * np.eye(60)]])
    assert spectral_gap(W) == pytest.approx(0.04)
    monkeypatch.setattr(spectrum, "DENSE_LIMIT", 50)
    assert spectral_gap(W) == pytest.approx(0.04)


def test_above_the_dense_limit() -> None:
    g = graphs.torus(50, 51)
    without = Graph.from_edges(g.n, g.edges())
    assert without.laplacian_spectrum is None
    assert spectral_gap(without) == pytest.approx(spectral_gap(g), rel=1e-7)


@pytest.mark.parametrize("kind", ["metropolis", "lazy-maximum-degree"])
@pytest.mark.parametrize(
    "g",
    [
        graphs.ring(spectrum.DENSE_LIMIT + 1),
        graphs.ring(spectrum.DENSE_LIMIT + 2),
        graphs.torus(41, 49),
        graphs.path(spectrum.DENSE_LIMIT + 1),
        graphs.star(spectrum.DENSE_LIMIT + 1),
        graphs.hypercube(11),
        graphs.complete(spectrum.DENSE_LIMIT + 1),
    ],
    ids=lambda g: g.name,
)
def test_closed_form_and_lanczos_agree_just_above_the_dense_limit(
    g: Graph, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spectrum.DENSE_LIMIT < g.n < 1.1 * spectrum.DENSE_LIMIT
    closed = spectral_gap(g, kind)
    assert spectrum._closed_form(g, kind) == closed
    monkeypatch.setattr("scipy.linalg.eigvalsh", lambda *args, **options: pytest.fail("computed densely"))
    assert spectral_gap(Graph.from_edges(g.n, g.edges()), kind) == pytest.approx(closed, rel=1e-6)


def test_inverse_where_lanczos_does_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    g = graphs.ring(4001)
    without = Graph.from_edges(g.n, g.edges())
    monkeypatch.setattr(spectrum, "RESTARTS", 3)
    calls = []
    inverse = spectrum._inverse
    monkeypatch.setattr(spectrum, "_inverse", lambda *args: calls.append(1) or inverse(*args))
    assert spectral_gap(without) == pytest.approx(spectral_gap(g), rel=1e-6)
    assert calls


def test_refuses_rather_than_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.sparse import linalg

    def never(*args: object, **options: object) -> None:
        raise linalg.ArpackNoConvergence("no luck", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr(linalg, "eigsh", never)
    with pytest.raises(Unsupported, match=r"3000-node .*no luck.*factorised.*lazy"):
        spectral_gap(Graph.from_edges(3000, graphs.ring(3000).edges()))
    monkeypatch.setattr(linalg, "eigsh", lambda operator, **options: (np.ones(1), np.eye(3000)[:, :1]))
    with pytest.raises(Unsupported, match="residual"):
        spectral_gap(Graph.from_edges(3000, graphs.ring(3000).edges()))


def test_inverse_does_not_overlook_the_negative_end() -> None:
    g = graphs.ring(60)
    W = csr_array(0.5 * g.adjacency())  # no rest at all: an eigenvalue −1
    with pytest.raises(Unsupported, match="not bounded away from −1"):
        spectrum._inverse(W, np.random.default_rng(0).standard_normal(60), "ARPACK failed")


def test_refused_matrices() -> None:
    for W, message in [
        (np.ones((2, 3)) / 3, r"square, not of shape \(2, 3\)"),
        (np.ones(3), r"square, not of shape \(3,\)"),
        (np.array([[0.5, 0.5], [0.1, 0.9]]), "symmetric.* 0.4"),
        (np.array([[0.5, 0.4], [0.4, 0.6]]), "row 0 of W sums to 0.9,"),
        (np.full((2, 2), np.nan), "NaN"),
    ]:
        with pytest.raises(InvalidValue, match=message):
            spectral_gap(W)
    with pytest.raises(InvalidValue, match="'best'"):
        spectral_gap(graphs.ring(3), "best")


@settings(deadline=None)
@given(st.floats(1e-300, 1.0))
def test_gamma(gap: float) -> None:
    gamma = chebyshev_gamma(gap)
    assert 1 <= gamma <= 2
    if gap > 1e-6:
        printed = 2 * (1 - math.sqrt(gap * (1 - gap / 4))) / (1 - gap / 2) ** 2
        assert gamma == pytest.approx(printed, rel=1e-9)


def test_gamma_ends() -> None:
    assert chebyshev_gamma(1.0) == pytest.approx(8 * (1 - math.sqrt(3) / 2), rel=1e-14)
    assert chebyshev_gamma(1e-12) == pytest.approx(2 - 2e-6, rel=1e-9)
    for wrong in (0.0, -0.1, 1.0001, math.nan):
        with pytest.raises(InvalidValue, match=rf"spectral gap .*\(0, 1\], got {wrong}"):
            chebyshev_gamma(wrong)


def test_accelerated_gossip_really_is_faster() -> None:
    W = mixing.metropolis(graphs.ring(40))
    gamma = chebyshev_gamma(spectral_gap(W))
    x0 = np.zeros(40)
    x0[0] = 40.0
    plain, before, now = x0, x0, W @ x0
    for _ in range(60):
        plain = W @ plain
        before, now = now, gamma * (W @ now) + (1 - gamma) * before
    assert np.abs(now - 1).max() < 0.1 * np.abs(plain - 1).max()
