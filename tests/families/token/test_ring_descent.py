"""Descent on a ring against closed loops that are linear, where the loss is exact: docs/proofs/token.md#ring-descent."""

import numpy as np
import pytest

import netdp
from netdp.errors import InvalidValue
from netdp.families.token.account.ring import hops_to_sight, ring_energy
from netdp.protocols import RingDescent


def exact_energy(protocol, observers, decay, u):
    """θ ← decay·θ + η(x_u − Z): what O reads is linear, so M = AᵀC⁻¹A and μ² ≤ Δ²·Σ|M_ij|, attained if M has no signs."""
    n, total = protocol.n, protocol.steps
    rows, own = [], np.isin(np.arange(total) % n, observers)
    for t in [*np.flatnonzero(own).tolist(), total]:
        weights = np.zeros(total)
        for s in range(t):
            weights[s] = decay ** (t - 1 - s)
        rows.append(np.where(own, 0.0, weights))  # what observers added is known to them
    seen = np.array(rows)
    seen = seen[seen.any(axis=1)]
    columns = np.arange(u, total, n)
    M = seen[:, columns].T @ np.linalg.pinv(seen @ seen.T, rcond=1e-12) @ seen[:, columns]
    scale = (protocol.sensitivity / protocol.sigma) ** 2
    signs = np.array(np.meshgrid(*[[-1, 1]] * len(columns))).reshape(len(columns), -1)
    return scale * float(np.einsum("ik,ij,jk->k", signs, M, signs).max())


@pytest.mark.parametrize("decay", [0.0, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("observers", [(0,), (3,), (5,), (1, 4), (2, 3)])
def test_closed_loops_are_covered(decay, observers):
    p = RingDescent(6, rounds=3, sigma=2.0, step=0.5)
    found = ring_energy(p, observers)
    for u in set(range(6)) - set(observers):
        assert exact_energy(p, observers, decay, u) <= found[u] * (1 + 1e-9)


def test_there_is_no_amplification_immediately_after():
    """The seed's contrast: the next user learns what local DP gives away, on a ring of any length, and it is attained."""
    for n in (5, 50):
        p = RingDescent(n, rounds=4, sigma=2.0, step=0.5)
        assert ring_energy(p, (3,))[2] == pytest.approx(p.local_mu**2)
        assert exact_energy(p, (3,), 0.0, 2) == pytest.approx(p.local_mu**2)
        # far ahead of the observer the loss falls with the distance
        assert ring_energy(p, (3,))[4] == pytest.approx(p.local_mu**2 / 4 * (3 / (n - 1) + 1 / (n - 4)))


def test_a_walk_amplifies_where_a_ring_does_not():
    ring = RingDescent(200, rounds=10, sigma=8.0, step=0.5)
    walk = netdp.WalkDescent(200, steps=2000, sigma=8.0, step=0.5, sender="hidden")
    loss = netdp.account(ring, [7])
    assert loss.claim == "upper"
    assert loss.worst == pytest.approx(1.0)
    assert netdp.account(walk, [7]).worst_epsilon(1e-6) < 0.3 * loss.worst_epsilon(1e-6)
    # but for most pairs even the ring loses little
    assert float(np.nanmedian(loss.factor)) < 0.12
    assert np.argsort(-np.nan_to_num(loss.factor))[0] == 6


def test_steps_that_expand_are_seen_one_by_one():
    p = RingDescent(6, rounds=3, sigma=2.0, step=0.5, expansion=1.5)
    assert np.nanmin(ring_energy(p, (2,))) == pytest.approx(p.local_mu**2)
    said = netdp.account(p, [2]).assumptions
    assert not any("does not increase distances" in line for line in said)
    assert any(
        "does not increase distances" in line for line in netdp.account(p.replace(expansion=1.0), [2]).assumptions
    )


def test_hops():
    hops = hops_to_sight(RingDescent(5, rounds=3, sigma=1.0, step=0.1), (1, 4))
    assert hops.tolist() == [[1, 0, 2, 1, 0]] * 3
    # after the last observer's last visit the release is next
    assert hops_to_sight(RingDescent(5, rounds=2, sigma=1.0, step=0.1), (0,)).tolist() == [[0, 4, 3, 2, 1]] * 2


def test_training_and_refusals():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    data = netdp.learn.LogisticParties.deal(rows, np.sign(rows[:, 0]), 6, rng)
    p = RingDescent(6, rounds=200, sigma=0.05, step=2.0, clip=0.5)
    run = netdp.learn.train_ring(p, data, 1, watch_every=300)
    again = netdp.learn.train_ring(p, data, 1)
    np.testing.assert_array_equal(run.model, again.model)
    assert run.objective[-1] < 0.35
    assert run.steps.tolist() == [300, 600, 900, 1200]
    with pytest.raises(InvalidValue, match="too long for these rows"):
        netdp.learn.train_ring(p.replace(step=1000.0), data, 1)
    with pytest.raises(InvalidValue, match="the protocol has 7 users and the data 6"):
        netdp.learn.train_ring(p.replace(n=7), data, 1)
    with pytest.raises(InvalidValue, match="runs a RingDescent"):
        netdp.learn.train_ring("ring", data, 1)
    for wrong in ({"n": 2}, {"rounds": 0}, {"clip": float("inf")}, {"expansion": 0.5}, {"radius": -1.0}):
        with pytest.raises(InvalidValue):
            p.replace(**wrong)
    with pytest.raises(InvalidValue, match="LogisticParties or ModelParties"):
        netdp.simulate(p, np.zeros(6), 0)
    np.testing.assert_array_equal(netdp.simulate(p, data, 1).model, again.model)


def test_the_rounding_of_the_energy_is_on_top():
    """Formula pin: Σ 1/hops times (Δ/σ)²·(1 + 4u(rounds + 16)); the hop before the observer is seen at once, every time."""
    p = RingDescent(3, rounds=4096, sigma=2.0, step=0.1, clip=1.0)
    assert p.sensitivity == 2.0
    found = ring_energy(p, (1,))[0]
    assert found / 4096 - 1 == pytest.approx(4 * 2.0**-53 * (4096 + 16), rel=1e-3, abs=0.0)
