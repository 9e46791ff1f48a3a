"""Changing graphs and randomized gossip against exact fractions, written independently of the package; both sides.

Proof: docs/proofs/gossip.md#changing-gossip.
"""

import importlib.util
import math
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account import krylov, sequences
from netdp.families.gossip.account import krylov as wide
from netdp.families.gossip.account import rank as modular
from netdp.families.gossip.account import sequences as chain
from netdp.families.gossip.views import SequenceView
from netdp.privacy import gaussian_delta, gaussian_epsilon
from netdp.protocols import ErdosRenyiGossip, Gossip, RandomizedGossip, Transcript, VaryingGossip
from netdp.protocols.accounting import account

_spec = importlib.util.spec_from_file_location("brute", Path(__file__).with_name("brute.py"))
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)


def exact(n, steps, observers):
    """Leverage of every honest party in the messages; a step is {u: {w: weight}}, exact fractions throughout."""
    state = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    messages = []
    for weights in steps:
        messages += [state[w] for v in observers for w in sorted(weights.get(v, {}))]
        mixed = []
        for u in range(n):
            row = [(1 - sum(weights.get(u, {}).values())) * c for c in state[u]]
            for w, share in weights.get(u, {}).items():
                row = [a + share * b for a, b in zip(row, state[w], strict=True)]
            mixed.append(row)
        state = mixed
    honest = [u for u in range(n) if u not in observers]
    seen = [[row[u] for u in honest] for row in messages]
    covariance = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in seen] for x in seen]
    forms = brute._quadratic_forms(covariance, [[row[i] for row in seen] for i in range(len(honest))])
    return dict(zip(honest, forms, strict=True))


def exchanges(edges):
    half = Fraction(1, 2)
    return [{} if u < 0 else {u: {w: half}, w: {u: half}} for u, w in edges.tolist()]


def metropolis(graph, lazy=1):
    degree = graph.degrees
    return {
        u: {int(w): Fraction(1, lazy * (1 + int(max(degree[u], degree[w])))) for w in graph.neighbors(u)}
        for u in range(graph.n)
    }


def check(loss, true):
    assert loss.claim == "exact"
    for u, factor in true.items():
        assert loss.factor[u] >= float(factor) * (1 - 1e-15), (u, loss.factor[u], factor)
        assert loss.factor[u] <= float(factor) + 1e-9, (u, loss.factor[u], factor)
    assert int(np.isnan(loss.factor).sum()) == len(loss.factor) - len(true)


def some(graph, rng):
    return tuple(sorted(rng.choice(graph.n, int(rng.integers(1, min(4, graph.n))), replace=False).tolist()))


@pytest.mark.parametrize("seed", range(40))
def test_randomized_against_fractions(seed, random_graph):
    rng = np.random.default_rng(seed)
    graph = random_graph(int(rng.integers(3, 10)), seed)
    protocol = RandomizedGossip(graph, steps=int(rng.integers(1, 60)), sigma=1.0)
    edges, observers = protocol.draw(seed), some(graph, rng)
    check(account(protocol, observers, transcript=edges), exact(graph.n, exchanges(edges), observers))


@pytest.mark.parametrize("seed", range(40))
def test_varying_against_fractions(seed, random_graph):
    rng = np.random.default_rng(500 + seed)
    graph = random_graph(int(rng.integers(3, 9)), seed)
    rounds = [graph] + [graphs.erdos_renyi(graph.n, 0.4, rng) for _ in range(int(rng.integers(0, 5)))]
    rng.shuffle(rounds)
    lazy = 1 + seed % 2
    protocol = VaryingGossip(rounds, sigma=1.0, mixing="lazy-metropolis" if lazy == 2 else "metropolis")
    observers = some(graph, rng)
    check(account(protocol, observers), exact(graph.n, [metropolis(g, lazy) for g in rounds], observers))


def test_by_hand():
    """Path 0–1–2: {0,1}, {1,2}, {0,1} gives 0 the noisy value of 2 outright; Corollary 2 says 2/3."""
    protocol = RandomizedGossip(graphs.path(3), steps=3, sigma=2.0, sensitivity=3.0)
    edges = [[0, 1], [2, 1], [0, 1]]
    loss = account(protocol, [0], transcript=edges)
    np.testing.assert_allclose(loss.factor[1:], 1.0, atol=1e-9)
    np.testing.assert_allclose(loss.mu[1:], 1.5, atol=1e-9)
    printed = account(protocol, [0], transcript=edges, method="published")
    assert printed.claim == "published"
    assert printed.factor[2] == pytest.approx(2 / 3)
    assert any("Corollary 2" in text for text in printed.errata)


def test_corollary_2_sums_to_the_number_of_messages():
    protocol = RandomizedGossip(graphs.hypercube(4), steps=300, sigma=1.0)
    edges = protocol.draw(4)
    printed = account(protocol, [3], transcript=edges, method="published")
    received = int((edges == 3).sum())
    assert np.nansum(printed.factor) <= received + 1e-9
    assert np.nansum(printed.factor) > received - 3  # the rest is the observer's own share of each row


def test_the_same_graph_every_round_is_plain_gossip():
    graph = graphs.dataset("karate")
    varying = account(VaryingGossip([graph] * 5, sigma=1.0), [0, 33])
    fixed = account(Gossip(graph, rounds=5, sigma=1.0), [0, 33])
    np.testing.assert_allclose(varying.factor, fixed.factor, atol=1e-9)


def test_out_of_reach_is_exactly_zero():
    protocol = RandomizedGossip(graphs.path(6), steps=3, sigma=1.0)
    loss = account(protocol, [0], transcript=[[4, 5], [1, 2], [0, 1]])
    assert (loss.factor[3:] == 0).all()
    np.testing.assert_allclose(loss.factor[1:3], 0.5, atol=1e-9)
    assert (account(protocol, [0], transcript=[[-1, -1]] * 3).factor[1:] == 0).all()


def zoo(seed):
    """A changing gossip on a random graph of one of five kinds, as a view."""
    rng = np.random.default_rng(seed)
    n, number = int(rng.integers(8, 40)), int(rng.integers(10**6))
    made = [
        lambda: nx.gnp_random_graph(n, 2.5 / n, seed=number),
        lambda: nx.barabasi_albert_graph(n, int(rng.integers(1, 3)), seed=number),
        lambda: nx.random_labeled_tree(n, seed=number),
        lambda: nx.watts_strogatz_graph(n, 4, 0.2, seed=number),
        lambda: nx.star_graph(n),
    ][seed % 5]()
    largest = nx.Graph(made.subgraph(max(nx.connected_components(made), key=len)).edges)
    graph = graphs.from_networkx(nx.convert_node_labels_to_integers(largest))
    observers = tuple(sorted(rng.choice(graph.n, int(rng.integers(1, 3)), replace=False).tolist()))
    if seed % 2:
        protocol = RandomizedGossip(graph, steps=int(graph.n * rng.integers(2, 30)), sigma=1.0)
        return SequenceView(protocol, observers, protocol.draw(seed))
    pool = [graph] + [graphs.erdos_renyi(graph.n, rng.uniform(1, 3) / graph.n, rng) for _ in range(3)]
    drawn = [pool[int(i)] for i in rng.integers(len(pool), size=int(rng.integers(1, 20)))]
    return SequenceView(VaryingGossip([graph, *drawn], sigma=1.0), observers)


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_floating_point_against_long_integers(start):
    """Where floating point has no doubt and the exact rank, its factors are right within its margin."""
    doubtful = 0
    for seed in range(start, start + 20):
        view = zoo(seed)
        fast, slow, rank = chain.seen_space(view), chain.wide_space(view), modular.seen_rank(view)
        assert not slow.doubtful
        assert slow.rank == rank
        if fast.doubtful:
            doubtful += 1
        else:
            assert fast.rank == rank, seed
            scores = krylov.leverage(fast.basis), krylov.leverage(slow.basis)
            np.testing.assert_allclose(*scores, atol=fast.tilt, rtol=0)
    assert doubtful < 10


def fading(pairs):
    """Backwards: 0 learns two combinations of {1, 2, 4} and 3; then 3 rests while {1, 2, 4} average `pairs` times, which
    leaves e₃ in the span up to 4^(−pairs); then 0 hears 3 itself, and so also what was left."""
    graph = graphs.Graph.from_edges(5, [(0, 3), (1, 2), (2, 4), (2, 3)])
    edges = [[0, 3]] + [[2, 4], [1, 2]] * pairs + [[2, 3], [2, 4], [0, 3], [2, 3], [0, 3]]
    return SequenceView(RandomizedGossip(graph, steps=len(edges), sigma=1.0), (0,), np.array(edges))


@pytest.mark.parametrize("pairs", [2, 10, 25, 60])
def test_faint_directions_are_seen(pairs):
    """A direction seen with amplitude 4⁻ᵐ is seen, for its noise is as faint; rounding must not swallow it."""
    view = fading(pairs)
    true = exact(5, exchanges(view.edges), (0,))
    true = np.array([float(true[u]) for u in range(1, 5)])
    assert true.sum() == pytest.approx(3)
    result = chain.factors(view)
    if pairs < 60:
        assert result.claim == "exact"
        np.testing.assert_allclose(result.values[1:], true, atol=1e-9)
    else:  # 2⁻¹²⁰ is too faint for long integers too
        assert result.claim == "upper"
    assert (result.values[1:] >= true - 1e-15).all()


def test_the_exact_rank_is_what_notices():
    """Floating point alone would be sure of two directions where there are three."""
    view = fading(25)
    fast = chain.seen_space(view)
    assert (fast.rank, fast.doubtful) == (2, False)
    assert modular.seen_rank(view) == 3
    assert chain.wide_space(view).rank == 3


def test_undecided_is_bounded(monkeypatch):
    protocol = RandomizedGossip(graphs.dataset("karate"), steps=2000, sigma=1.0)
    edges = protocol.draw(1)
    true = account(protocol, [0], transcript=edges)
    assert any("768-bit" in text for text in true.assumptions)  # else the test shows nothing
    monkeypatch.setattr(wide, "MAX_MULTIPLICATIONS", 0.0)
    bound = account(protocol, [0], transcript=edges)
    assert bound.claim == "upper"
    assert (bound.factor[1:] >= true.factor[1:]).all()
    assert (bound.factor[1:] <= 1).all()


def test_estimate_says_so():
    protocol = RandomizedGossip(graphs.ring(8), steps=40, sigma=1.0)
    loss = account(protocol, [0], samples=30, seed=5)
    assert loss.claim == "estimate"
    assert any("30 sampled" in text for text in loss.assumptions)
    assert any("95 % interval" in text and "bootstrap" in text for text in loss.assumptions)
    assert any("the factor is the mean factor over the sequences" in text for text in loss.assumptions)
    other = account(protocol, [0], samples=400, seed=6)
    # The ring is symmetric, so 1 and 7 have the same mean; 400 samples of a number in [0, 1].
    assert abs(other.factor[1] - other.factor[7]) < 4 * 0.5 * np.sqrt(2 / 400)
    assert abs(loss.factor[1] - other.factor[1]) < 4 * 0.5 * np.sqrt(1 / 30)
    with pytest.raises(InvalidValue, match="samples"):
        account(protocol, [0], samples=1)


def mean_delta(protocol, sequences, target, epsilon, rng):
    """Monte Carlo of the definition, on its own: random edges, messages written out, least squares, Gaussian tails."""
    chances = protocol.edge_probabilities
    pairs = np.vstack([protocol.graph.edges(), [[-1, -1]]])
    total = np.zeros(len(epsilon))
    for _ in range(sequences):
        states, seen = np.eye(protocol.graph.n), []
        for u, w in pairs[rng.choice(len(pairs), protocol.steps, p=np.append(chances, 1 - chances.sum()))].tolist():
            if u < 0:
                continue
            if 0 in (u, w):
                seen.append(states[u + w].copy())
            states[[u, w]] = (states[u] + states[w]) / 2
        rows = np.array(seen).reshape(-1, protocol.graph.n)[:, 1:]  # 0's own noisy value is known to it
        # The row space without rounding: short runs, so that sizes are far from it.
        sizes, directions = np.linalg.svd(rows, full_matrices=False)[1:]
        mu = np.linalg.norm(directions[sizes > 1e-9][:, target - 1]) * protocol.local_mu
        if mu > 1e-12:
            total += norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    return total / sequences


@pytest.mark.parametrize("target", [1, 2, 3])
def test_the_estimate_is_the_mean_of_delta(target):
    protocol = RandomizedGossip(graphs.ring(7), steps=12, sigma=1.0)
    epsilon = np.array([0.0, 0.5, 1.0, 2.0, 3.0])
    loss = account(protocol, [0], samples=3000)
    direct = mean_delta(protocol, 3000, target, epsilon, np.random.default_rng(4))
    curve = np.array([loss.delta(e)[target] for e in epsilon])
    np.testing.assert_allclose(curve, direct, rtol=0.2 if target < 3 else 0.4)  # two samples of 3000 each
    wrong = gaussian_delta(np.sqrt(loss.factor[target]) * protocol.local_mu, epsilon)
    assert (wrong[3:] < 0.7 * direct[3:]).all()  # the curve of the mean factor is another matter


def test_rare_sequences_carry_the_loss():
    """Ring of 32, 64 steps, σ = 2, five hops away: ε(1e-6) is 0.68 over 4 million sequences; the mean factor says 0.05."""
    protocol = RandomizedGossip(graphs.ring(32), steps=64, sigma=2.0)
    loss = account(protocol, [0], seed=1)
    assert 0.5 < loss.epsilon(1e-6)[5] < 0.85
    assert float(gaussian_epsilon(np.sqrt(loss.factor[5]) * protocol.local_mu, 1e-6)) < 0.1
    assert loss.epsilon(1e-6)[1] == pytest.approx(2.1714, rel=0.004)
    assert (loss.epsilon(1e-6)[12:20] == 0).all()


@pytest.mark.parametrize("local_mu", [1e-3, 0.5, 3.0, 50.0])
@pytest.mark.parametrize("factor", [1.0, 0.2])
def test_epsilon_is_read_within_one_percent(local_mu, factor):
    curve = sequences.Mixture(np.full((2, 1), factor), local_mu).curve
    for delta in 10.0 ** np.arange(-12, 0):
        true = float(gaussian_epsilon(np.sqrt(factor) * local_mu, delta))
        assert true <= curve.epsilon(delta)[0] <= true * 1.01 + 1e-6 * local_mu
    assert curve.deltas.size < 1500


def test_a_mixture_is_computed_as_defined():
    rng = np.random.default_rng(3)
    drawn = np.column_stack(
        [np.where(rng.random(500) < 0.9, 0.0, rng.random(500)), rng.random(500), np.full(500, np.nan)]
    )
    mixture = sequences.Mixture(drawn, 1.5)
    for epsilon in (0.0, 0.7, 2.5):
        means = gaussian_delta(np.sqrt(drawn[:, :2]) * 1.5, epsilon).mean(axis=0)
        found = mixture.curve.delta(epsilon)
        assert (found[:2] >= means * (1 - 1e-12)).all()
        np.testing.assert_allclose(found[:2], means, rtol=0.02)
        assert np.isnan(found[2])


def test_the_interval_covers():
    """Skewed samples: nine in ten lose nothing. The 95 % interval misses the truth in few of 80 samples."""
    rng = np.random.default_rng(0)
    factors, chances = np.array([0.0, 0.02, 0.2, 1.0]), np.array([0.9, 0.07, 0.02, 0.01])

    def excess(epsilon):
        return float(chances @ gaussian_delta(np.sqrt(factors), epsilon)) - 1e-6

    true = brentq(excess, 0.1, 10)
    missed = narrow = 0
    for _ in range(80):
        mixture = sequences.Mixture(rng.choice(factors, 400, p=chances)[:, None], 1.0)
        low, high, least, most = mixture.intervals(0, true, 1e-6, rng)
        assert low <= mixture.curve.epsilon(1e-6)[0] <= high * (1 + 1e-9)
        missed += not low <= true <= high
        narrow += not least <= 1e-6 <= most
    assert missed <= 12
    assert narrow <= 12


def test_the_quick_way_agrees_with_the_exact_one():
    clear = 0
    for seed in range(1, 121, 2):
        view = zoo(seed)
        quick = chain.projected(view)
        if quick is not None:
            clear += 1
            np.testing.assert_allclose(quick, chain.factors(view).values, atol=1e-6)
            assert ((quick > 0) | ~view.reached | ~view.hidden).all()
    assert clear > 15


def test_faint_directions_are_not_lost_on_the_quick_way():
    """It says that it cannot tell, or it is right: 4⁻²⁵ is below all rounding, 4⁻² is not."""
    quick = chain.projected(fading(2))
    np.testing.assert_allclose(quick, chain.factors(fading(2)).values, atol=1e-9)
    for pairs in (15, 25, 60, 200):
        assert chain.projected(fading(pairs)) is None


def test_sampling_stops_early_only_where_every_sequence_is_slow(monkeypatch):
    monkeypatch.setattr(sequences, "FEWEST_SAMPLES", 5)
    protocol = RandomizedGossip(graphs.hypercube(3), steps=400, sigma=1.0)
    assert any("over 5 sampled" in text for text in account(protocol, [0]).assumptions)
    assert any("over 8 sampled" in text for text in account(protocol, [0], samples=8).assumptions)


def test_transcripts_are_accepted():
    protocol = RandomizedGossip(graphs.ring(8), steps=40, sigma=1.0)
    edges = protocol.draw(0)
    given = account(protocol, [0], transcript=edges)
    transcript = Transcript.pairwise(8, edges)
    assert np.array_equal(transcript.exchanges(), edges)
    np.testing.assert_array_equal(account(protocol, [0], transcript=transcript).factor, given.factor)


def test_refusals():
    protocol = RandomizedGossip(graphs.ring(8), steps=2, sigma=1.0)
    with pytest.raises(InvalidValue, match=r"shape \(2, 2\)"):
        account(protocol, [0], transcript=[[0, 1]])
    with pytest.raises(InvalidValue, match=r"step 1 wakes \(0, 2\)"):
        account(protocol, [0], transcript=[[0, 1], [2, 0]])
    with pytest.raises(InvalidValue, match=r"step 0 wakes \(-1, 1\)"):
        account(protocol, [0], transcript=[[1, -1], [0, 1]])
    with pytest.raises(InvalidValue, match="two, there and back"):
        account(protocol, [0], transcript=Transcript.synchronous(graphs.ring(8), 2))
    with pytest.raises(Unsupported, match="given edges only"):
        account(protocol, [0], method="published")


def test_erdos_renyi_given_its_draw():
    protocol = ErdosRenyiGossip(n=20, p=0.3, rounds=4, sigma=1.0, accelerated=True)
    drawn = protocol.draw(2)
    direct = account(drawn, [0]).factor
    for graph in (drawn, drawn.graph):
        np.testing.assert_array_equal(account(protocol, [0], transcript=graph).factor, direct)
    varying = protocol.replace(accelerated=False, varying=True)
    drawn = varying.draw(2)
    for graph in (drawn, drawn.graphs, list(drawn.graphs)):
        np.testing.assert_array_equal(account(varying, [0], transcript=graph).factor, account(drawn, [0]).factor)
    assert account(protocol, [0]).claim == "upper"  # before the draw
    with pytest.raises(InvalidValue, match="20 parties and 4 graphs, the protocol 20 parties and 1"):
        account(protocol, [0], transcript=drawn)
    with pytest.raises(InvalidValue, match="10 parties"):
        account(protocol, [0], transcript=graphs.ring(10))


def test_a_secret_graph_is_bounded_by_its_degree():
    protocol = ErdosRenyiGossip(200, 0.05, rounds=4, sigma=3.0)
    loss = account(protocol, [0], degree=9)
    assert loss.claim == "upper"
    assert "no neighbour of an observer" in loss.describe()
    assert any("neighbours lose as under local DP" in text for text in loss.assumptions)
    local = protocol.sensitivity / protocol.sigma
    assert loss.worst_epsilon(1e-6) < float(gaussian_epsilon(local, 1e-6))
    assert loss.worst_epsilon(1e-6) < account(protocol, [0, 1], degree=18).worst_epsilon(1e-6)
    # before the draw one may turn out to be a neighbour: more than of somebody who is known to be none
    assert loss.worst_epsilon(1e-6) < account(protocol, [0]).worst_epsilon(1e-6)
    with pytest.raises(Unsupported, match="varying=False"):
        account(ErdosRenyiGossip(200, 0.05, rounds=4, sigma=3.0, varying=True), [0], degree=9)


def test_factors_of_a_mixture_are_rounded_up():
    """Formula pin: factors in levels of a fixed fineness, the next one above: no δ is less than the mean of the exact ones."""
    drawn = np.array([[0.3, 0.017, np.nan], [0.5, 0.0, np.nan]])
    curve = sequences.Mixture(drawn, 2.0).curve
    for party, factors in ((0, (0.3, 0.5)), (1, (0.017, 0.0))):
        exact = sum(np.asarray(gaussian_delta(math.sqrt(f) * 2.0, curve.epsilons)) for f in factors) / 2
        seen = exact > 1e-12
        assert (curve.deltas[party][seen] > exact[seen]).all()
        assert (curve.deltas[party][seen] < exact[seen] * 1.2).all()
