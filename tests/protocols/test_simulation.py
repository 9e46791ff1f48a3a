"""Runs: reproducible, aligned with their transcripts, mean kept, converging as fast as theory says."""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.gossip.views import transcribe
from netdp.graphs.spectrum import spectral_gap
from netdp.protocols import ErdosRenyiGossip, Gossip, RandomizedGossip, Transcript, VaryingGossip, simulate

RING = graphs.ring(12)
PROTOCOLS = {
    "plain": Gossip(RING, rounds=7, sigma=1.0),
    "accelerated": Gossip(RING, rounds=7, sigma=1.0, accelerated=True),
    "refreshed": Gossip(RING, rounds=7, sigma=1.0, refresh=0.5),
    "masked": Gossip(RING, rounds=7, sigma=1.0, masks=4.0),
    "everything": Gossip(graphs.dataset("karate"), rounds=9, sigma=0.5, masks=9.0, refresh=1.0, accelerated=True),
    "randomized": RandomizedGossip(RING, steps=60, sigma=1.0),
    "varying": VaryingGossip([RING, graphs.star(12), graphs.erdos_renyi(12, 0.1, 3)] * 2, sigma=1.0),
    "erdos-renyi": ErdosRenyiGossip(n=12, p=0.4, rounds=5, sigma=1.0, accelerated=True),
    "erdos-renyi varying": ErdosRenyiGossip(n=12, p=0.3, rounds=5, sigma=1.0, varying=True),
}


def zeros(shape):
    return np.zeros(shape)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_same_seed_same_run(name):
    protocol = PROTOCOLS[name]
    values = np.random.default_rng(0).random((protocol.n, 3)) / 2
    first, again, other = (simulate(protocol, values, seed=seed, record=[2]) for seed in (7, 7, 8))
    assert np.array_equal(first.estimates, again.estimates)
    assert first.transcript == again.transcript
    assert np.array_equal(first.record.payloads, again.record.payloads)
    assert not np.array_equal(first.estimates, other.estimates)
    unrecorded = simulate(protocol, values, seed=7)
    assert unrecorded.record is None
    assert np.array_equal(first.estimates, unrecorded.estimates)  # watching changes nothing


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_mean_is_kept_without_noise(name, run_columns):
    protocol = PROTOCOLS[name]
    values = np.random.default_rng(1).random((protocol.n, 4))
    run = run_columns(protocol, values, 3, normal=zeros)
    np.testing.assert_allclose(run.estimates.mean(axis=0), values.mean(axis=0), atol=1e-12, rtol=0)
    assert run.estimates.std() < values.std()


@pytest.mark.parametrize("name", ["masked", "refreshed", "everything"])
def test_noise_adds_to_the_mean_once(name, run_columns):
    """Masks cancel; every impulse of noise and refresh counts once in the mean."""
    protocol = PROTOCOLS[name]
    n = protocol.graph.n
    drawn = []

    def ones(shape):
        drawn.append(shape)
        return np.ones(shape)

    run = run_columns(protocol, np.zeros(n), 0, normal=ones)
    tau = np.sqrt(protocol.refresh_variance)
    expected = protocol.sigma + (protocol.rounds - 1) * tau
    np.testing.assert_allclose(run.estimates.mean(), expected, rtol=1e-12)
    fresh = protocol.rounds - 1 if protocol.refresh > 0 else 0
    assert len(drawn) == 1 + (protocol.masks > 0) + fresh


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("observers", [[0], [11, 3, 4]])
def test_records_are_what_was_sent(name, observers):
    """From the record alone an observer recomputes its own states, and ends at its own estimate."""
    protocol = PROTOCOLS[name]
    values = np.random.default_rng(2).random((protocol.n, 2)) / 2
    run = simulate(protocol, values, seed=5, record=observers)
    kept, real = run.record, run.protocol
    assert kept.observers == tuple(sorted(observers))
    assert np.array_equal(kept.messages, run.transcript.received_by(observers))
    assert kept.payloads.shape == (len(kept.messages), 2)
    np.testing.assert_array_equal(kept.values, values[sorted(observers)])
    for i, v in enumerate(kept.observers):
        state = kept.values[i] + kept.noises[i]
        for (u, w), mask in zip(kept.mask_edges, kept.masks, strict=True):
            state = state + mask * ((u == v) - 1.0 * (w == v))
        remembered = state
        for t in range(run.transcript.rounds):
            chosen = (kept.messages[:, 0] == t) & (kept.messages[:, 2] == v)
            senders, payloads = kept.messages[chosen, 1], kept.payloads[chosen]
            if isinstance(real, RandomizedGossip):
                state = (state + payloads[0]) / 2 if len(payloads) else state
                continue
            if t and len(kept.refreshes):
                state, remembered = state + kept.refreshes[t - 1, i], remembered + kept.refreshes[t - 1, i]
            W = real.matrices[t] if isinstance(real, VaryingGossip) else real.matrix
            row = W[[v], :].toarray()[0]
            mixed = row[v] * state + row[senders] @ payloads
            gamma = getattr(real, "chebyshev", None)
            if gamma is not None and t:
                mixed = gamma * mixed + (1 - gamma) * remembered
            state, remembered = mixed, state
        np.testing.assert_allclose(state, run.estimates[v], atol=1e-12)


def test_transcripts():
    assert simulate(PROTOCOLS["plain"], np.zeros(12), 0).transcript == transcribe(PROTOCOLS["plain"])
    varying = PROTOCOLS["varying"]
    transcript = simulate(varying, np.zeros(12), 0).transcript
    assert len(transcript.patterns) == 3
    assert len(transcript) == 2 * sum(graph.m for graph in varying.graphs)
    randomized = PROTOCOLS["randomized"]
    run = simulate(randomized, np.zeros(12), 4)
    assert np.array_equal(run.transcript.exchanges(), randomized.draw(4))
    assert run.transcript == Transcript.pairwise(12, randomized.draw(4))
    drawn = PROTOCOLS["erdos-renyi"]
    assert simulate(drawn, np.zeros(12), 4).protocol == drawn.draw(4)


def spread_after(run_columns, protocol, rounds):
    values = np.random.default_rng(0).standard_normal(protocol.n)
    run = run_columns(protocol.replace(rounds=rounds, sensitivity=10.0), values, 0, normal=zeros)
    return np.linalg.norm(run.estimates - values.mean())


@pytest.mark.parametrize("graph", [graphs.ring(20), graphs.grid(6, 6), graphs.hypercube(5)], ids=lambda g: g.name)
def test_convergence_rates(graph, run_columns):
    """Plain: 1 − λ a round. Accelerated: every eigenvalue is below the critical 1 − λ/2, so √(γ−1) a round, and that is
    no slower than the paper's e^(−√λ)."""
    gap = spectral_gap(graph)
    plain, fast = Gossip(graph, rounds=1, sigma=1.0), Gossip(graph, rounds=1, sigma=1.0, accelerated=True)
    late = (int(6 / gap), int(12 / gap))
    measured = (spread_after(run_columns, plain, late[1]) / spread_after(run_columns, plain, late[0])) ** (
        1 / (late[1] - late[0])
    )
    assert measured == pytest.approx(1 - gap, rel=1e-3)
    # Accelerated, the spread swings around its decay: compare its peaks in two windows.
    span = int(8 / np.sqrt(gap))
    early, later = (max(spread_after(run_columns, fast, span * k + j) for j in range(span)) for k in (1, 2))
    rate = np.sqrt(fast.chebyshev - 1)
    assert (later / early) ** (1 / span) == pytest.approx(rate, rel=0.06)
    assert rate <= np.exp(-np.sqrt(gap))
    assert later < early


def test_randomized_gossip_converges_at_its_rate(run_columns):
    """From the slowest direction, the mean of many runs after one step and after many."""
    graph = graphs.ring(8)
    angles = 2 * np.pi * np.arange(8) / 8
    values = np.cos(angles)
    for steps in (1, 20):
        protocol = RandomizedGossip(graph, steps=steps, sigma=1.0, sensitivity=2.0)
        left = np.array(
            [(run_columns(protocol, values, seed, normal=zeros).estimates ** 2).sum() for seed in range(3000)]
        ) / (values**2).sum()  # fmt: skip
        error = 4 * left.std() / np.sqrt(len(left))
        bound = (1 - protocol.rate) ** steps
        assert left.mean() <= bound + error
        if steps == 1:
            assert left.mean() >= bound - error
            assert left.mean() > 1 - 2 * protocol.rate + error  # what the paper prints


def test_refusals():
    protocol = PROTOCOLS["plain"]
    with pytest.raises(InvalidValue, match="seed"):
        simulate(protocol, np.zeros(12), seed=-1)
    with pytest.raises(InvalidValue, match="seed"):
        simulate(protocol, np.zeros(12), seed=None)
    with pytest.raises(InvalidValue, match=r"\(12,\) or \(12, d\)"):
        simulate(protocol, np.zeros(11), seed=0)
    with pytest.raises(InvalidValue, match="not finite"):
        simulate(protocol, np.full(12, np.nan), seed=0)
    with pytest.raises(InvalidValue, match="no node 40"):
        simulate(protocol, np.zeros(12), seed=0, record=[40])
    with pytest.raises(InvalidValue, match="no node 40"):
        simulate(PROTOCOLS["erdos-renyi"], np.zeros(12), seed=0, record=[40])
    with pytest.raises(InvalidValue, match=r"first argument must be a protocol such as .*got 'gossip'"):
        simulate("gossip", np.zeros(12), seed=0)
    with pytest.raises(InvalidValue, match="takes no option 'banana'"):
        simulate(protocol, np.zeros(12), seed=0, banana=1)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_values_are_held_to_the_sensitivity(name):
    """Every guarantee rests on it: values further apart are refused, with bounds they are clipped, wide bounds are refused."""
    protocol = PROTOCOLS[name]
    values = np.zeros(protocol.n)
    values[3] = 1.5
    with pytest.raises(InvalidValue, match=r"parties 0 and 3 are 1.5 apart, more than the sensitivity 1 .*bounds="):
        simulate(protocol, values, seed=0)
    clipped = simulate(protocol, values, seed=0, bounds=(0, 1))
    assert np.array_equal(clipped.estimates, simulate(protocol, np.minimum(values, 1.0), seed=0).estimates)
    assert np.array_equal(
        simulate(protocol, values, 0, bounds=0.5).estimates, simulate(protocol, values / 3, 0).estimates
    )
    with pytest.raises(InvalidValue, match=r"\[0, 2\] is 2 across, more than the sensitivity 1"):
        simulate(protocol, values, seed=0, bounds=(0, 2))
