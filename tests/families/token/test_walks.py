"""Attacks on walks: the score is the likelihood ratio over all paths, sound claims survive it, and halved noise does not.

Proof: docs/proofs/token.md#token-attacks.
"""

import numpy as np
import pytest

from netdp import graphs
from netdp.audit import SIMULATOR, Verdict, audit_pair, look
from netdp.families.token.attack import UNKNOWN, Bridges, WalkAttack, cut
from netdp.families.token.walk import KNOWN_ENDS, RELEASES
from netdp.protocols import GraphWalkSum, WalkSum

from .all_paths import possible, visits

SHORT = WalkSum(4, steps=6, sigma=0.7)
HIDDEN = WalkSum(8, steps=160, sigma=4.0, sender="hidden")
ON_A_GRAPH = GraphWalkSum(graphs.grid(3, 4), steps=240, sigma=6.0)


def here(*arguments):
    """The simulator; a function of this file is not sent to other processes, which take longer to start than this takes."""
    return SIMULATOR(*arguments)


def halved(protocol, values, seed, normal, record):
    return SIMULATOR(protocol.replace(sigma=protocol.sigma / 2), values, seed, normal, record)


def over_all_paths(protocol, observers, target, run):
    """log Σ P(path, all else the observers see | target's value Δ) / P(… | 0), token by token."""
    found, total = cut(protocol, run), 0.0
    for token, path in enumerate(run.transcript.paths):
        rows = found.token == token
        variance = protocol.sigma**2 * (found.steps + getattr(protocol, "closing", 0.0) * found.closes)[rows]
        change, ratio, weights = found.change[rows, 0], 0.0, 0.0
        for other, weight in possible(protocol, path, observers):
            k = visits(other, observers, target, getattr(protocol, "contributions", None))
            ratio += weight * np.exp(((k * change - k**2 / 2) / variance).sum())
            weights += weight
        total += np.log(ratio / weights)
    return total


def agrees(protocol, observers, target):
    attack = WalkAttack(protocol, observers, target, SIMULATOR)
    for seed in range(3):
        run = attack.run(seed > 0, seed)
        score = attack.scores(cut(protocol, run), 1)[0]
        assert score == pytest.approx(over_all_paths(protocol, observers, target, run), abs=1e-8)


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("sender", KNOWN_ENDS)
def test_the_score_is_the_likelihood_ratio_over_all_paths(sender, release, limit):
    agrees(SHORT.replace(sender=sender, release=release, contributions=limit), (0,), 2)


def test_so_it_is_with_colluders_weights_and_several_tokens():
    agrees(SHORT.replace(tokens=2), (0, 3), 1)
    agrees(SHORT.replace(tokens=2, contributions=1, sender="hidden"), (0,), 1)
    agrees(SHORT.replace(weights=(1, 2, 3, 1)), (0,), 2)


@pytest.mark.parametrize("walk", ["metropolis", "simple"])
@pytest.mark.parametrize(
    "graph", [graphs.path(4), graphs.complete(4), graphs.star(5)], ids=["path", "complete", "star"]
)
def test_on_a_graph_the_score_is_the_likelihood_ratio_over_all_paths(graph, walk):
    for closing in (True, False):
        protocol = GraphWalkSum(graph, steps=6, sigma=0.8, walk=walk, closing=closing)
        agrees(protocol, (0,), 2)
        agrees(protocol, (1,), 3)
        agrees(protocol, (0, 3), 1)


def test_a_long_bridge_visits_the_target_as_often_as_a_simulated_one():
    """From a neighbour of the observer back to it in 40 steps, on a graph without symmetry."""
    P = GraphWalkSum(graphs.star(5), steps=5, sigma=1.0).transition
    law = Bridges(P, np.full(5, 0.2), (1,), 3).law(0, 0, 40)
    rng, kept = np.random.default_rng(1), []
    dense = np.cumsum(P.toarray(), axis=1)
    path = np.zeros((40, 60_000), dtype=np.int64)
    for t in range(1, 40):
        path[t] = (rng.random((60_000, 1)) > dense[path[t - 1]]).sum(axis=1)
    kept = path[:, (path[-1] == 0) & ~(path == 1).any(axis=0)]
    seen = np.bincount((kept == 3).sum(axis=0), minlength=len(law))[: len(law)] / kept.shape[1]
    assert kept.shape[1] > 1_000
    assert np.abs(np.cumsum(seen) - np.cumsum(law)).max() < 2.2 / np.sqrt(kept.shape[1])  # Kolmogorov and Smirnov, 10⁻⁴


def test_observers_learn_no_name_but_those_the_channel_shows():
    run = SIMULATOR(SHORT, *_zeros(SHORT, [0], seed=2))
    for sender in KNOWN_ENDS:
        for release in RELEASES:
            found = cut(SHORT.replace(sender=sender, release=release), run)
            firsts, lasts = found.first[~found.opens], found.last[~found.closes]
            assert (found.first[found.opens] == UNKNOWN).all()
            assert (firsts == UNKNOWN).all() == (sender == "hidden")
            assert (lasts == UNKNOWN).all() == (sender != "known")
            assert (found.last[found.closes] == UNKNOWN).all() == (release == "anonymous")


def _zeros(protocol, observers, seed):
    from netdp.protocols.simulation import Values

    return Values(np.zeros(protocol.n)), seed, np.random.default_rng(0).standard_normal, observers


def test_likelihood_ratios_have_mean_one_without_the_target_value():
    """E[Λ | without] = 1, whatever the walk: a wrong law of visits or a wrong variance would show."""
    attack = WalkAttack(WalkSum(8, steps=24, sigma=2.0), (0,), 3, SIMULATOR)
    ratios = np.exp(np.concatenate([attack.batch(False, seed) for seed in range(12)]))
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))


@pytest.mark.parametrize(
    ("protocol", "observers"),
    [
        (HIDDEN, [0]),
        (HIDDEN.replace(sender="receiver-known", tokens=2), [0]),
        (HIDDEN.replace(sender="known"), [0, 4, 5]),
        (HIDDEN.replace(sender="known", contributions=3, sigma=1.0), [0]),
        (HIDDEN.replace(grid=0.25, sensitivity=1.1, steps=16), [0]),
        (HIDDEN.replace(law="laplace"), [0]),
        (HIDDEN.replace(weights=(1, 4, 1, 1, 1, 1, 1, 1)), [0]),
        (ON_A_GRAPH, [0]),
    ],
    ids=["hidden", "receiver known", "colluders", "limited", "on a grid", "laplace", "weights", "graph"],
)
def test_a_sound_walk_is_not_refuted(protocol, observers):
    found = audit_pair(protocol, look(protocol, observers, 1), trials=256, seed=1, system=here)
    assert found.verdict is not Verdict.REFUTED
    assert found.measured.trials >= 512


@pytest.mark.parametrize("protocol", [HIDDEN, ON_A_GRAPH], ids=["hidden", "graph"])
def test_noise_of_half_the_deviation_is_refuted(protocol):
    assert audit_pair(protocol, look(protocol, [0], 1), trials=1_500, seed=1, system=halved).verdict is Verdict.REFUTED


def test_a_walk_whose_noise_is_forgotten_is_refuted_at_once():
    def silent(protocol, values, seed, normal, record):
        return SIMULATOR(protocol, values, seed, np.zeros, record)

    protocol = HIDDEN.replace(sender="known")
    assert audit_pair(protocol, look(protocol, [0], 1), trials=200, system=silent).verdict is Verdict.REFUTED


def test_on_a_grid_values_are_rounded_as_far_apart_as_the_claim_allows():
    """Δ = 1.1 is 4.4 steps of 0.25: the two values of the target end 5 steps apart."""
    attack = WalkAttack(HIDDEN.replace(grid=0.25, sensitivity=1.1), (0,), 1, SIMULATOR)
    assert attack._shift == 5 * 0.25 == attack.protocol.distance * 0.25
