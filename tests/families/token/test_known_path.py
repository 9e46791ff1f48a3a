"""The exact loss of tokens on known paths, against the written-out view and against itself.

Proof: docs/proofs/token.md#known-path.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp.errors import InvalidValue
from netdp.families.token.account.path import path_energy, path_energy_blocks, path_energy_pairwise
from netdp.families.token.path import PathSum
from netdp.families.token.ring import RingSum
from netdp.families.token.views import TokenView
from netdp.protocols.table import certified

_spec = importlib.util.spec_from_file_location("written_view", Path(__file__).with_name("written_view.py"))
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
written_view = _module.written_view


def reference(protocol, observers):
    """max of dᵀA_uᵀ(BBᵀ)⁺A_u d over |d_k| ≤ Δ, from the written-out view."""
    view = TokenView.of(protocol, observers)
    out = written_view(view)
    left, sizes, _ = np.linalg.svd(out.noise * protocol.sigma, full_matrices=True)
    noisy = int(np.count_nonzero(sizes > 1e-10 * max(1.0, sizes.max(initial=0.0))))
    result = np.full(protocol.n, np.nan)
    for u in np.flatnonzero(view.hidden):
        A = left.T @ out.data[:, out.owners == u]
        scaled = A[:noisy] / sizes[:noisy, None]
        M = scaled.T @ scaled
        assert (M >= -1e-9).all()  # so the maximum is at d = (Δ, …, Δ)
        result[u] = np.inf if np.abs(A[noisy:]).max(initial=0.0) > 1e-8 else protocol.sensitivity**2 * M.sum()
    return result


def check(protocol, observers):
    exact = path_energy(protocol, observers)
    expected = reference(protocol, observers)
    np.testing.assert_allclose(exact, expected, rtol=1e-8)
    assert (exact[np.isfinite(exact)] >= expected[np.isfinite(expected)] * (1 - 1e-11)).all()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_exact_on_random_paths(data):
    n = data.draw(st.integers(2, 6))
    paths = data.draw(st.lists(st.lists(st.integers(0, n - 1), min_size=1, max_size=12), min_size=1, max_size=3))
    observers = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=n - 1)))
    closing = data.draw(st.sampled_from([0.0, 0.5, 4.0]))
    cap = data.draw(st.sampled_from([None, 1, 2]))
    check(PathSum(n, paths, sigma=1.7, closing=closing, contributions=cap, sensitivity=0.6), observers)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_exact_on_rings(data):
    n = data.draw(st.integers(3, 7))
    observers = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=n - 1)))
    check(
        RingSum(
            n,
            rounds=data.draw(st.integers(1, 3)),
            sigma=2.0,
            noise=data.draw(st.sampled_from(["single", "distributed"])),
            closing=data.draw(st.booleans()),
        ),
        observers,
    )


def test_the_unprotected_last_user_is_found():
    """Noise on hops 0, 9, 18, 27 of 30: after user 8's last visit user 9 adds its value, bare, and the token is released."""
    bare = RingSum(10, rounds=3, sigma=2.0, closing=False)
    loss = certified(bare, (8,))
    assert np.flatnonzero(np.isinf(loss.mu)).tolist() == [9]
    assert np.isinf(loss.epsilon(1e-6)[9])
    assert np.isfinite(certified(bare.replace(closing=True), (8,)).mu[[0, 9]]).all()


@pytest.mark.parametrize(("noise", "most"), [("single", lambda n: 1.0), ("distributed", lambda n: n / (n - 1))])
def test_ring_never_exceeds_its_rounds(noise, most):
    for n in (3, 4, 10, 31):
        for rounds in (1, 2, 7):
            p = RingSum(n, rounds, sigma=1.5, noise=noise)
            energy = path_energy_pairwise(p)
            bound = rounds / 1.5**2 * most(n)
            assert np.nanmax(energy) <= bound * (1 + 1e-12)
            assert np.nanmax(energy) >= 0.5 * bound  # and it is not silly


def test_two_neighbours_on_the_ring_take_the_noise_away():
    """Users on both sides of u see its bare value whenever it is not u's turn to add noise."""
    loss = certified(RingSum(10, rounds=2, sigma=1.0), (3, 5))
    assert np.isinf(loss.mu[4])
    assert np.isfinite(loss.mu[7])


def test_statement():
    p = PathSum(4, [[0, 1, 2, 1, 3]], sigma=2.0, closing=1.0)
    loss = certified(p, (2,))
    assert loss.claim == "exact"
    np.testing.assert_allclose(loss.factor * p.local_mu**2, loss.mu**2)
    np.testing.assert_allclose(loss.mu**2, [1 / 8, 1 / 8 + 1 / 12, np.nan, 1 / 12])
    assert any("given this path" in line for line in loss.assumptions)
    assert "closing noise" in certified(p.replace(closing=0.0), (2,)).assumptions[-2]
    # noise at hops 0, 4, 8 and at the close: variances 1 and 2 after the visits of user 0
    assert certified(RingSum(5, 2, 1.0), (0,)).factor[1] == pytest.approx(0.75)
    with pytest.raises(InvalidValue, match="no party 9"):
        path_energy(p, [9])


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_all_pairs_agree_with_one_observer_at_a_time(data):
    n = data.draw(st.integers(2, 6))
    paths = data.draw(st.lists(st.lists(st.integers(0, n - 1), min_size=1, max_size=15), min_size=1, max_size=3))
    p = PathSum(n, paths, sigma=0.7, closing=data.draw(st.sampled_from([0.0, 2.0])), contributions=2)
    matrix = path_energy_pairwise(p)
    for v in range(n):
        np.testing.assert_allclose(matrix[:, v], path_energy(p, [v]), rtol=1e-12)


def test_all_pairs_in_blocks_of_observers():
    path = np.random.default_rng(0).integers(150, size=3000)
    p = PathSum(150, [path], sigma=1.0)
    matrix = path_energy_pairwise(p)
    assert [first for first, _ in path_energy_blocks(p)] == [0, 64, 128]
    for v in (0, 63, 64, 149):
        np.testing.assert_allclose(matrix[:, v], path_energy(p, [v]), rtol=1e-11)


def test_a_bare_ring_in_all_pairs():
    p = RingSum(10, rounds=3, sigma=2.0, closing=False)
    assert path_energy_pairwise(p)[9, 8] == np.inf


@given(st.lists(st.integers(0, 4), min_size=2, max_size=20), st.integers(0, 4), st.integers(0, 4))
def test_more_observers_never_learn_less_and_noise_never_hurts(path, v, w):
    p = PathSum(5, [path], sigma=1.0)
    alone = path_energy(p, [v])
    if v != w:
        together = path_energy(p, [v, w])
        there = ~np.isnan(together)
        assert (together[there] >= alone[there] * (1 - 1e-12)).all()
    closed = path_energy(p.replace(closing=3.0), [v])
    there = ~np.isnan(alone)
    assert (closed[there] <= alone[there]).all()
    capped = path_energy(p.replace(contributions=1), [v])
    assert (capped[there] <= alone[there]).all()
    # every noise N(0, σ²) covers at most what it came with: never more than local DP
    assert (alone[there] <= p.given[there] * (1 + 1e-12)).all()


def test_the_rounding_of_the_energy_is_on_top():
    """Formula pin: Σ c²/V times 1 + 4u(hops + 16); one contribution, seen at once, of a path of 40,000 hops."""
    path = PathSum(2, [[1] + [0] * 39_999], sigma=1.0)
    found = path_energy(path, (0,))[1]
    assert found - 1 == pytest.approx(4 * 2.0**-53 * 40_016, rel=1e-4, abs=0.0)
