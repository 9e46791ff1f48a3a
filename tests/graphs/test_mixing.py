"""Gossip matrices meet their definition, and the check refuses what does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.graphs import Graph, mixing
from netdp.graphs.mixing import MIXINGS, check_gossip_matrix, mixing_matrix


@settings(deadline=None)
@given(st.integers(1, 25), st.floats(0, 1), st.integers(0, 10**6), st.sampled_from(MIXINGS))
def test_doubly_stochastic(n: int, p: float, seed: int, kind: str) -> None:
    g = graphs.erdos_renyi(n, p, seed)
    W = mixing_matrix(g, kind)
    assert isinstance(W, csr_array)
    assert W.dtype == np.float64
    dense = check_gossip_matrix(W, g).toarray()
    np.testing.assert_array_equal(dense, dense.T)
    np.testing.assert_allclose(dense.sum(axis=0), 1, rtol=0, atol=1e-14)
    assert (dense.diagonal() >= (0 if kind == "hamilton" else 1 / (2 * n))).all()
    np.testing.assert_array_equal((dense > 0) & ~np.eye(n, dtype=bool), g.adjacency().toarray() > 0)


@settings(deadline=None)
@given(st.integers(2, 12), st.floats(0.2, 1), st.integers(0, 10**6))
def test_entries(n: int, p: float, seed: int) -> None:
    g = graphs.erdos_renyi(n, p, seed)
    d = g.degrees
    W, M = mixing.metropolis(g).toarray(), mixing.maximum_degree(g).toarray()
    for u, v in g.edges().tolist():
        assert W[u, v] == pytest.approx(1 / (1 + max(d[u], d[v])), rel=1e-15)
    np.testing.assert_allclose(M, np.eye(n) - g.laplacian().toarray() / (1 + d.max()), atol=1e-15)
    np.testing.assert_allclose(mixing_matrix(g, "lazy-metropolis").toarray(), (np.eye(n) + W) / 2, atol=1e-16)
    assert np.linalg.eigvalsh(mixing.lazy(M).toarray()).min() > -1e-12


def test_regular_graphs_have_one_mixing() -> None:
    g = graphs.torus(4, 5)
    np.testing.assert_allclose(mixing.metropolis(g).toarray(), mixing.maximum_degree(g).toarray(), rtol=0, atol=1e-15)


def test_unknown_kind() -> None:
    with pytest.raises(InvalidValue, match=r"'uniform'.*metropolis, maximum-degree, lazy-"):
        mixing_matrix(graphs.ring(3), "uniform")


def _changed(*changes: tuple[int, int, float]) -> np.ndarray:
    W: np.ndarray = mixing.metropolis(graphs.path(4)).toarray()
    for u, v, value in changes:
        W[u, v] = value
    return W


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones(4), "two axes, not 1"),
        (np.eye(3), r"shape \(3, 3\).* \(4, 4\)"),
        (_changed((1, 2, np.nan)), r"W\[1, 2\] = nan is not finite"),
        (_changed((0, 1, -0.25)), r"W\[0, 1\] = -0.25 is negative"),
        (_changed((0, 3, 0.125)), r"W\[0, 3\] = 0.125 but \{0, 3\} is no edge of Graph\('path\(4\)'"),
        (_changed((0, 1, 0.5)), r"W\[0, 1\] = 0.5 but W\[1, 0\] = 0.333.*symmetric"),
        (_changed((2, 2, 0.5)), r"row 2 of W sums to 1.16666666667, not 1.*W\[2, 2\]"),
    ],
)
def test_check_refuses(W: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        check_gossip_matrix(W, graphs.path(4))


def test_check_takes_explicit_zeros_and_any_support_within() -> None:
    g = graphs.path(4)
    assert check_gossip_matrix(np.eye(4), g).nnz == 4
    stored = csr_array((np.array([1.0, 0.0, 1.0]), (np.array([0, 0, 1]), np.array([0, 1, 1]))), shape=(2, 2))
    assert check_gossip_matrix(stored, Graph.from_edges(2, [])) is not None
