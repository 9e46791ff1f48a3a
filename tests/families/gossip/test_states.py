"""Recursions with more numbers than parties, or that are not symmetric: accelerated randomized gossip and push-sum.

Proof: docs/proofs/gossip.md#state-views. Against fractions: every coefficient of every message written out, no rounding at all.
"""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from netdp import graphs, simulate
from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.families.gossip.account.sequences import state_factors
from netdp.families.gossip.protocol import RandomizedGossip
from netdp.families.gossip.varying import PushSum
from netdp.families.gossip.views import MomentumView, PushView
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import expected_error
from netdp.protocols.calibration import calibrate


def exact_factors(rows, n, observers):
    """Leverage of every party in the span of rows of fractions, the observers' columns struck out."""
    basis = []
    for row in rows:
        left = [Fraction(0) if u in observers else value for u, value in enumerate(row)]
        for vector, square in basis:
            share = sum(a * b for a, b in zip(left, vector, strict=True)) / square
            left = [a - share * b for a, b in zip(left, vector, strict=True)]
        square = sum(a * a for a in left)
        if square:
            basis.append((left, square))
    factor = [float(sum(vector[u] ** 2 / square for vector, square in basis)) for u in range(n)]
    return np.array([np.nan if u in observers else value for u, value in enumerate(factor)])


def unit(n, u):
    return [Fraction(int(u == v)) for v in range(n)]


def combined(*parts):
    return [sum(weight * row[i] for weight, row in parts) for i in range(len(parts[0][1]))]


def momentum_rows(protocol, edges, observers):
    """All that the observers receive, as the recursion stands in the protocol: nothing struck out, nothing subtracted."""
    n = protocol.n
    tau, zeta = (Fraction(number) for number in protocol.momentum)
    rest = Fraction(1 - protocol.momentum[0])
    x, z, rows = [unit(n, u) for u in range(n)], [unit(n, u) for u in range(n)], []
    for u, w in edges.tolist():
        x, z = (
            [combined((rest, a), (tau, b)) for a, b in zip(x, z, strict=True)],
            [combined((rest, b), (tau, a)) for a, b in zip(x, z, strict=True)],
        )
        if u < 0:
            continue
        rows += [x[w]] * (u in observers) + [x[u]] * (w in observers)
        half, apart = Fraction(1, 2), combined((1, x[u]), (-1, x[w]))
        x[u], x[w] = combined((1, x[u]), (-half, apart)), combined((1, x[w]), (half, apart))
        z[u], z[w] = combined((1, z[u]), (-zeta, apart)), combined((1, z[w]), (zeta, apart))
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_accelerated_gossip_against_fractions(seed, random_graph):
    rng = np.random.default_rng(seed)
    graph = random_graph(int(rng.integers(3, 7)), seed)
    protocol = RandomizedGossip(graph, steps=int(rng.integers(3, 12)), sigma=1.0, accelerated=True)
    edges, observers = (
        protocol.draw(seed),
        tuple(sorted(rng.choice(graph.n, int(rng.integers(1, 3)), replace=False).tolist())),
    )
    loss = account(protocol, list(observers), transcript=edges)
    # what the observers hold themselves is known: its columns are struck out of the rows
    true = exact_factors(momentum_rows(protocol, edges, observers), graph.n, observers)
    np.testing.assert_allclose(loss.factor, true, atol=1e-7)
    assert (loss.factor[~np.isnan(true)] >= true[~np.isnan(true)] - 1e-12).all()
    assert loss.claim == "exact"


@pytest.mark.parametrize("seed", range(6))
def test_push_sum_against_fractions(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    links = {(i, (i + 1) % n) for i in range(n)} | {
        (i, j) for i in range(n) for j in range(n) if i != j and rng.random() < 0.2
    }
    protocol = PushSum(n, sorted(links), rounds=int(rng.integers(1, 6)), sigma=1.0)
    observers = tuple(sorted(rng.choice(n, int(rng.integers(1, 3)), replace=False).tolist()))
    shares = [1 + sum(a == j for a, _ in links) for j in range(n)]
    state, rows = [unit(n, u) for u in range(n)], []
    for _ in range(protocol.rounds):
        rows += [state[a] for a, b in sorted(links) if b in observers]
        split = [[value / shares[j] for value in state[j]] for j in range(n)]
        state = [combined((1, split[i]), *((1, split[a]) for a, b in links if b == i)) for i in range(n)]
    loss = account(protocol, list(observers))
    np.testing.assert_allclose(loss.factor, exact_factors(rows, n, observers), atol=1e-7)
    assert loss.claim == "exact"


def test_push_sum_forgets_who_cannot_reach():
    """On a one-way ring party 3's value needs two hops to reach party 0 of five, party 1's four."""
    ring = PushSum(5, [(i, (i + 1) % 5) for i in range(5)], rounds=2, sigma=2.0)
    loss = account(ring, [0])
    np.testing.assert_allclose(loss.factor, [np.nan, 0, 0, 1, 1], atol=1e-9)
    assert (loss.factor[[1, 2]] == 0).all()
    assert PushView(ring, (0,)).reached().tolist() == [False, False, False, True, True]


def test_push_sum_is_run_and_predicted():
    G = nx.compose(
        nx.gnp_random_graph(12, 0.15, seed=8, directed=True), nx.DiGraph([(i, (i + 1) % 12) for i in range(12)])
    )
    protocol = PushSum.on(G, rounds=8, sigma=0.5)
    values = np.linspace(0, 1, 12)
    runs = np.array([simulate(protocol, values, seed).estimates.ravel() for seed in range(400)])
    predicted = expected_error(protocol, values)
    assert ((runs - values.mean()) ** 2).mean() == pytest.approx(predicted.total, rel=0.1)
    assert predicted.total <= expected_error(protocol).total
    long = protocol.replace(rounds=80, sigma=1e-9)
    np.testing.assert_allclose(simulate(long, values, 0).estimates, values.mean(), atol=1e-6)
    run = simulate(protocol, values, 3, record=[0])
    np.testing.assert_array_equal(run.record.messages, run.transcript.received_by([0]))
    np.testing.assert_array_equal(
        account(protocol, [0], transcript=run.transcript).factor, account(protocol, [0]).factor
    )
    first = {a: i for i, (t, a, _) in enumerate(run.record.messages.tolist()) if t == 0}
    for a, i in first.items():  # a share of the noisy value
        assert abs(run.record.payloads[i, 0] * protocol.splits[a] - values[a]) < 5 * protocol.sigma
    assert account(calibrate(protocol, 1.0, 1e-5), [0]).worst_epsilon(1e-5) <= 1.0


def test_links_are_checked():
    with pytest.raises(GraphError, match="strongly connected"):
        PushSum(3, [(0, 1), (1, 2)], rounds=1, sigma=1.0)
    with pytest.raises(InvalidValue, match=r"the link \(0, 3\)"):
        PushSum(3, [(0, 3)], rounds=1, sigma=1.0)
    with pytest.raises(InvalidValue, match=r"PushSum\.on"):
        PushSum(3, graphs.ring(3), rounds=1, sigma=1.0)
    both = PushSum.on(graphs.path(3), rounds=2, sigma=1.0)
    assert both.links == ((0, 1), (1, 0), (1, 2), (2, 1))
    assert PushSum.on(nx.path_graph(3), rounds=2, sigma=1.0) == both


def test_acceleration_pays_on_slow_graphs():
    """Same edges, same noise: on a long path momentum leaves a fraction of what plain exchanges leave."""
    values = (np.arange(24) < 12).astype(float)
    plain = RandomizedGossip(graphs.path(24), steps=3000, sigma=1.0)
    fast = plain.replace(accelerated=True)
    edges = plain.draw(5)
    left = [expected_error(p, values, transcript=edges).mixing for p in (plain, fast)]
    assert left[1] < 0.3 * left[0]
    run = simulate(fast.replace(sigma=1e-9), values, seed=5)
    assert run.estimates.mean() == pytest.approx(0.5, abs=1e-6)  # the mean is kept
    assert ((run.estimates - 0.5) ** 2).mean() == pytest.approx(left[1], rel=1e-3)
    with pytest.raises(Unsupported, match="known edges only"):
        expected_error(fast)
    with pytest.raises(Unsupported, match="no formula for the accelerated"):
        account(fast, [0], method="published", transcript=edges)


def test_acceleration_before_the_draw_is_an_estimate():
    protocol = RandomizedGossip(graphs.ring(6), steps=12, sigma=2.0, accelerated=True)
    loss = account(protocol, [0], samples=20)
    assert loss.claim == "estimate"
    assert RandomizedGossip.from_dict(protocol.to_dict()) == protocol
    assert "accelerated randomized gossip" in str(protocol)
    old = {key: value for key, value in protocol.to_dict().items() if key != "accelerated"}
    assert RandomizedGossip.from_dict(old) == protocol.replace(accelerated=False)


def test_an_undecided_space_reveals_everybody_who_is_reached(monkeypatch):
    from netdp.families.gossip.account import sequences as states

    protocol = RandomizedGossip(graphs.path(4), steps=4, sigma=1.0, accelerated=True)
    view = MomentumView(protocol, (0,), np.array([[1, 2], [0, 1], [2, 3], [2, 3]]))
    sure = state_factors(view)
    monkeypatch.setattr(states, "_rank", lambda *_: 99)
    found = state_factors(view)
    assert found.claim == "upper"
    assert found.values[1:].tolist() == [1, 1, 0]
    assert (sure.values[1:] <= found.values[1:]).all()
