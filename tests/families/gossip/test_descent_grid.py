"""Gossip descent in whole numbers: never below the exact loss of closed loops, the distance to real numbers by quadrature, pins.

Proofs: docs/proofs/gossip.md#descent-on-a-grid, docs/proofs/learning.md#descents-on-a-grid.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from netdp import GossipDescent, account, calibrate, expected_error, graphs
from netdp.audit.audits import audit
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account.descent import loss_energy
from netdp.families.gossip.account.descent_grid import _sent, energy, transcript_distance
from netdp.learn import Landscape
from netdp.mechanisms.discrete_gaussian import rounded_delta
from netdp.mechanisms.noisy_sums import Release, releases_curve
from netdp.models import Logistic
from netdp.models.parties import ModelParties
from netdp.privacy.gaussian import gaussian_delta
from netdp.protocols.alternatives import local_dp, trusted_curator
from netdp.protocols.descents import GRADIENT_ERROR, absorbed, own_releases, wire_grid
from netdp.protocols.table import in_real_numbers
from netdp.protocols.training import train

DELTA = 1e-6


def descent(graph, T=3, K=1, **more):
    made = GossipDescent(
        graph,
        T,
        K,
        **{"sigma": 4.0, "step": 1.0, "clip": 0.5, "dimension": 3}
        | {name: more.pop(name) for name in list(more) if name not in ("refresh", "expansion")},
    )
    return made.replace(grid=wire_grid(made), **more)


# ── the loss in real numbers ──────────────────────────────────────────────────────────────────────────────────────────


def closed_loop(p, observers, target, contractions):
    """The largest Σμ² of a linear loop over all shifts |d_t| ≤ 1 of the target's gradients; noise variance 1, then refresh/K.

    Everything that leaves is a row over (shifts, noises); what observers do not send themselves they see from neighbours.
    """
    n, T, K = p.n, p.iterations, p.gossip_rounds
    W = p.rounds_of(0).matrix.toarray()
    noises = [(t, k, u) for t in range(T) for k in range(K) for u in range(n)]
    place = {which: T + i for i, which in enumerate(noises)}
    width = T + len(noises)
    variance = np.array([1.0 if k == 0 else p.refresh / K for _, k, _ in noises])
    state, seen = np.zeros((n, width)), []
    for t in range(T):
        state = np.array(contractions)[:, None] * state
        state[target, t] += 1.0
        for k in range(K):
            for u in range(n):
                state[u, place[t, k, u]] += 1.0
            for u in range(n):
                if u not in observers and any(v in observers for v in p.network.neighbors(u).tolist()):
                    seen.append(state[u].copy())
            state = W @ state
    seen = np.array(seen)
    known = [place[t, k, u] - T for t, k, u in noises if u in observers]
    hidden = [i for i in range(len(noises)) if i not in known]
    A, F = seen[:, :T], seen[:, T:][:, hidden] * np.sqrt(variance[hidden])
    form = A.T @ np.linalg.pinv(F @ F.T, rcond=1e-13) @ A
    return max(np.array(d) @ form @ np.array(d) for d in itertools.product((-1, 1), repeat=T))


@pytest.mark.parametrize("graph", [graphs.path(4), graphs.ring(5), graphs.star(5)], ids=lambda g: g.name)
@pytest.mark.parametrize(("T", "K", "refresh"), [(3, 1, 0.0), (3, 2, 1.0), (2, 3, 0.5)])
def test_never_below_the_exact_loss_of_a_closed_loop_and_not_far_above(graph, T, K, refresh):
    p = descent(graph, T, K, refresh=refresh)
    tight = []
    for observers in [(0,), (1, 3)]:
        bound = energy(p, observers)
        for target in set(range(p.n)) - set(observers):
            exact = max(
                closed_loop(p, observers, target, c)
                for c in ([1.0] * p.n, [0.5] * p.n, [1.0, -1.0, 1.0, -1.0, 1.0][: p.n])
            )
            assert bound[target] >= exact * (1 - 1e-9)
            tight.append(bound[target] / max(exact, 1e-300))
    assert min(tight) < 1.001
    assert np.median(tight) < 2.0


@pytest.mark.parametrize("graph", [graphs.ring(8), graphs.hypercube(4), graphs.grid(3, 4)], ids=lambda g: g.name)
@pytest.mark.parametrize("expansion", [1.0, 1.3])
def test_one_round_is_the_bound_of_real_numbers(graph, expansion):
    """Other code, the same theorem: plain gossip descent with one round per gradient."""
    p = descent(graph, 7, expansion=expansion)
    for observers in [(0,), (2, 5)]:
        np.testing.assert_allclose(energy(p, observers), loss_energy(p.in_real_numbers, observers), rtol=1e-6)


def test_fresh_noise_of_every_send_is_priced():
    """Less fresh noise hides less, and never costs more than local DP."""
    found = [energy(descent(graphs.ring(9), 5, 3, refresh=r), (0,))[4] for r in (0.01, 0.3, 3.0)]
    assert 5.0 >= found[0] > found[1] > found[2] > 0


# ── how far whole numbers are from it ─────────────────────────────────────────────────────────────────────────────────


def test_the_distance_is_its_printed_expression():
    p = descent(graphs.ring(6), 40, 3, refresh=0.7, expansion=1.2)
    n, d, V0, V1 = 6, 3, p.variance, p.fresh_variance
    assert Fraction(p.sigma * p.step) ** 2 / Fraction(p.grid) ** 2 <= V0 < V1 * 10
    nuL = p.step * p.clip / p.grid
    e = 1.2 * math.sqrt(n * d) + math.sqrt(n * d) / 2 + math.sqrt(n) * 2.0**-32 * nuL
    printed = math.sqrt((40 * e**2 / V0 + 80 * n * d / V1) / (2 * math.pi)) + n * d / 24 * (40 / V0 + 80 / V1)
    assert transcript_distance(p) == pytest.approx(printed, rel=1e-9)
    assert transcript_distance(p) >= printed


@pytest.mark.parametrize("step", [0.0, 0.3])
def test_the_theorem_by_quadrature(monkeypatch, step):
    """Two parties, two iterations, coarse steps: all that is sent against the rounded ideal, cell by cell.

    Party u pulls towards 1.3 with strength `step` in real numbers; on the grid the pull is rounded.
    """
    V, reach = 16, 26
    line = np.arange(-reach, reach + 1)

    def pull(theta):
        return step * np.clip(theta - 1.3, -2, 2)

    def rounded(x):
        return np.floor(np.asarray(x) + 0.5)

    discrete = np.exp(-(np.arange(-80, 81) ** 2) / (2 * V))
    discrete /= discrete.sum()

    def grid_law(mean):
        return np.array([discrete[int(y - mean) + 80] if abs(y - mean) <= 80 else 0.0 for y in line])

    def ideal_law(mean):
        edges = ndtr(
            (np.concatenate([line - 0.5, [line[-1] + 0.5]])[None, :] - np.atleast_1d(mean)[:, None]) / math.sqrt(V)
        )
        return np.diff(edges, axis=1)

    nodes, weights = np.polynomial.legendre.leggauss(4)
    nodes, weights = nodes / 2, weights / 2
    first = grid_law(-rounded(pull(0.0))), grid_law(0)
    means = -pull(0.0), 0.0
    total = 0.0
    for i, a in enumerate(line):
        fa = np.exp(-((a + nodes - means[0]) ** 2) / (2 * V)) / math.sqrt(2 * math.pi * V) * weights
        for j, b in enumerate(line):
            mixed = rounded((a + b) / 2)
            here = first[0][i] * first[1][j]
            real = np.outer(grid_law(mixed - rounded(pull(mixed))), grid_law(mixed)) * here
            fb = np.exp(-((b + nodes - means[1]) ** 2) / (2 * V)) / math.sqrt(2 * math.pi * V) * weights
            if here < 1e-12 and fa.sum() * fb.sum() < 1e-12:
                continue
            x = ((a + nodes)[:, None] + (b + nodes)[None, :]).ravel() / 2
            pu, pv = ideal_law(x - pull(x)), ideal_law(x)
            ideal = np.einsum("q,qi,qj->ij", np.outer(fa, fb).ravel(), pu, pv)
            total += np.abs(real - ideal).sum() / 2
    e = math.sqrt(2) + math.sqrt(2) / 2
    bound = absorbed([(2, e, V)], 2)
    assert bound / 30 < total < bound


def test_no_fresh_noise_no_known_steps_no_amplification():
    ring = graphs.ring(8)
    for p in (descent(ring, 5, 2), descent(ring, 5, 1, expansion=math.inf)):
        assert math.isinf(transcript_distance(p))
        loss = account(p, [0])
        local = float(own_releases(p, 5).epsilon(DELTA))
        np.testing.assert_allclose(loss.epsilon(DELTA)[1:], local)
        assert any("only local DP is claimed" in line for line in loss.assumptions)
    with pytest.raises(Unsupported, match="no figure in real numbers"):
        in_real_numbers(p, [0])
    p = descent(ring, 5, 2)
    beside = in_real_numbers(p, [0])
    assert not beside.is_certified
    assert beside.epsilon(DELTA)[4] < 0.9 * local


# ── what is claimed ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_claim_is_the_less_of_two():
    """Next to an observer local DP; further away δ of the ideal and (1 + e^ε) times the distance; nothing out of reach."""
    p = descent(graphs.path(9), 4, 1)
    loss, apart = account(p, [0]), transcript_distance(p)
    own = own_releases(p, 4)
    factor = energy(p, (0,)) / 4
    for eps in (0.1, 0.5, 1.0):
        delta = loss.curve.delta(np.full(9, eps))
        assert delta[1] == pytest.approx(float(own.delta(eps)), rel=1e-9)
        for u in (2, 3):
            below = np.linspace(0, eps, 4001)  # δ never grows with ε: from its least value on, that value
            ideal = np.asarray(gaussian_delta(math.sqrt(factor[u]) * p.local_mu, below))
            printed = (ideal + (1 + np.exp(below)) * apart).min()
            assert delta[u] == pytest.approx(min(printed, float(own.delta(eps))), rel=1e-4)
            assert delta[u] >= ideal[-1]
        assert (delta[5:] == 0).all()  # more than four hops away
    assert loss.epsilon(DELTA)[8] == 0
    assert np.isnan(loss.epsilon(DELTA)[0])


def test_local_dp_counts_rounding():
    """T releases of d numbers, parameter V, two of which are at most 2R steps apart."""
    p = GossipDescent(graphs.ring(3), 6, 1, sigma=4.0, step=1.0, clip=0.5, grid=2.0**-6, dimension=5)
    R = 1.0 * 0.5 * 2**6 * (1 + 2e-9) + math.sqrt(5) / 2
    assert p.reach == pytest.approx(R, rel=1e-12)
    assert p.reach >= R
    assert p.variance == 4**2 * 2**12
    wanted = rounded_delta(6 * p.variance, 6 * 2 * R, 5, np.array([0.5, 1.0]))
    got = np.asarray(own_releases(p, 6).delta(np.array([0.5, 1.0])))
    np.testing.assert_allclose(got, wanted, rtol=1e-3)
    assert float(own_releases(p, 6).epsilon(DELTA)) > 1.01 * float(
        own_releases(p.replace(grid=2.0**-30), 6).epsilon(DELTA)
    )
    alone = p.replace(dimension=1)
    assert alone.reach == math.ceil(32 * (1 + 2e-9)) + 1


def test_no_gradient_is_longer_than_it_may_be():
    p = descent(graphs.ring(3), clip=0.25)
    rng = np.random.default_rng(0)
    limit = Fraction(p.reach) ** 2
    for _ in range(200):
        g = rng.standard_normal(3)
        g *= 0.25 / np.linalg.norm(g)
        steps = p.in_steps(g)
        assert 0 < sum(int(k) ** 2 for k in steps.tolist()) <= limit
        assert np.abs(steps * p.grid - g * p.step).max() <= p.grid * 0.75
        assert sum(int(k) ** 2 for k in p.in_steps(g * rng.uniform(1 + 1e-9, 3)).tolist()) <= limit
    assert p.in_steps(np.array([np.nan, 0, 0])).tolist() == [0, 0, 0]
    assert p.in_steps(np.array([1e300, 1e300, 0])).tolist() == [0, 0, 0]


def test_the_steps_of_real_models_stretch_no_more_than_is_assumed():
    from netdp.peers.descents import known_expansion
    from netdp.peers.study import Training

    task = Training(features=[{"name": "a", "range": [0, 1]}], label="y", classes=["n", "y"], unit="party")
    rng = np.random.default_rng(1)
    for clip, step in [(0.1, 22.0), (0.1, 30.0), (0.7, 8.0), (0.7, 12.0)]:
        known = known_expansion(task, step, clip)
        X = Logistic(2).prepared(rng.uniform(-1, 1, (50, 1)))
        assert Logistic(2).expansion(X, step, clip) <= known
    assert known_expansion(task, 22.0, 0.1) == 1.0
    assert known_expansion(task, 30.0, 0.1) > 1.6


# ── the doors ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_calibrated_on_its_grid():
    p = calibrate(descent(graphs.ring(6), 10), 1.0, DELTA)
    assert 0.998 < account(p, [0]).worst_epsilon(DELTA) <= 1.0
    assert p.grid == wire_grid(p)
    with pytest.raises(Unsupported, match="leave observers and energy out"):
        calibrate(p, 1.0, DELTA, observers=[[0]])


def test_baselines_on_a_grid():
    p = descent(graphs.ring(6), 10)
    local, central = (f(p).epsilon(DELTA)[0] for f in (local_dp, trusted_curator))
    assert local == pytest.approx(account(p, [0]).worst_epsilon(DELTA))
    assert central < local / 2
    assert account(p, colluders=2).worst_epsilon(DELTA) == pytest.approx(local)
    assert account(p, colluders=2).worst_epsilon(DELTA) >= account(p, [0, 3]).worst_epsilon(DELTA) * (1 - 1e-12)


def test_an_attack_stays_below():
    p = descent(graphs.ring(5), 4, 2, refresh=1.0, sigma=2.0)
    found = audit(p, trials=2000, delta=1e-3, seed=1)
    assert found.findings
    assert not any(row.verdict.is_bad for row in found.findings)


def test_a_run_in_whole_numbers_is_one_in_real_numbers_but_for_rounding():
    """With hardly any noise all parties end at nearly the same model as in real numbers."""
    rng = np.random.default_rng(2)
    X = Logistic(3).prepared(rng.uniform(-1, 1, (60, 2)))
    parties = ModelParties.deal(Logistic(3), X, (X[:, 0] > 0).astype(float), 6)
    real = GossipDescent(graphs.ring(6), 30, 2, sigma=1e-7, step=2.0, clip=0.3, dimension=3)
    grid = real.replace(grid=2.0**-50, refresh=0.5)
    np.testing.assert_allclose(train(grid, parties, 1).models, train(real, parties, 1).models, atol=1e-4)
    few = real.replace(batch=2)
    assert not np.allclose(train(few, parties, 1).models, train(real, parties, 1).models, atol=1e-3)
    np.testing.assert_array_equal(train(few, parties, 1).models, train(few, parties, 1).models)


def test_refusals_name_the_value_and_the_way_out():
    ring = graphs.ring(4)
    plain = {"sigma": 1.0, "step": 1.0, "grid": 2.0**-40}
    for more, words in [
        ({"masks": 2.0}, "masks=2.0 on a grid"),
        ({"accelerated": True}, "accelerated=True on a grid"),
        ({"grid": 0.3}, "power of two"),
        ({"grid": 4.0}, "less than one step of the grid"),
        ({"grid": 2.0**-62}, "too fine"),
        ({"grid": None, "refresh": 1.0}, "refresh=1 in real numbers"),
        ({"grid": None, "expansion": math.inf}, "expansion"),
        ({"batch": 0}, "batch"),
    ]:
        with pytest.raises(InvalidValue, match=words):
            GossipDescent(ring, 2, 1, **plain | more)
    with pytest.raises(InvalidValue, match="2 graphs on a grid"):
        GossipDescent((ring, ring), 2, 1, **plain)
    with pytest.raises(Unsupported, match="refresh=1"):
        expected_error(GossipDescent(ring, 2, 2, refresh=1.0, **plain), Landscape(2, 0.25, 1.0))
    assert GRADIENT_ERROR == 2.0**-32


def test_what_fresh_noise_absorbs_is_its_printed_expression():
    """Formula pin: √(Σ times·e²/(2πV)) + Σ times·N/(24V) + 10⁻³⁰⁰, where noise is so small that both terms count."""
    kernels, numbers = [(3, 1.0, 5), (2, 0.5, 7)], 10
    moved = math.sqrt((3 * 1.0 / 5 + 2 * 0.25 / 7) / (2 * math.pi))
    drawn = 10 / 24 * (3 / 5 + 2 / 7)
    assert absorbed(kernels, numbers) == pytest.approx(moved + drawn, rel=1e-11)
    assert absorbed(kernels, numbers) >= moved + drawn
    assert absorbed([(1, 0.0, 2**1020)], 1) >= 1e-300


def test_paying_for_everything_costs_everything():
    """A send whose whole difference costs at most 1.5 times what is shown is paid for as a whole, and nothing is left."""
    near, hidden = np.array([True, True, False, False]), np.ones(4, dtype=bool)
    carried = np.outer([2.0, 0.0, 1.0, 0.5], np.ones(4))
    shown, everything = 4.0 / 0.5, (4.0 + 1.0 + 0.25) / 0.5
    W, zero = np.full((4, 4), 0.25), np.zeros(4)
    paid, left = _sent((zero, carried), 1, np.eye(4), near, W, 0.5, 1.0, hidden, eager=1.5)
    assert (paid == everything).all()
    assert not left.any()
    paid, left = _sent((zero, carried), 1, np.eye(4), near, W, 0.5, 1.0, hidden, eager=0.0)
    assert (paid == shown).all()
    assert (left == (1.0 + 0.5) / 4).all()  # what was shown is not carried on


def test_a_curator_is_moved_as_far_as_a_party():
    p = descent(graphs.ring(5), T=4, sigma=1.0, clip=0.5).replace(grid=0.125)
    release = Release(p.variance, 5, 2 * p.reach, p.dimension)
    assert trusted_curator(p).worst_epsilon(DELTA) == releases_curve([release] * 4).epsilon(DELTA)
    assert releases_curve([release]).epsilon(DELTA) > releases_curve([release._replace(distance=p.reach)]).epsilon(
        DELTA
    )
