"""Mixing of walks: exact powers, eigenvalue certificates, and the certificate's own honesty.

Proofs: docs/proofs/shuffle.md#report-mixing, docs/proofs/graphs.md#mixing-certificate.
"""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp import graphs
from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.families.shuffle.account.mixing import _Powers, _spectral, failure_words, fewest_rounds, separation
from netdp.graphs.certificate import FAILURE, SpectralBound, cached_bound, normalised, spectral_bound
from netdp.protocols import Shuffle


def true_separation(graph, laziness, t):
    P = Shuffle(graph, rounds=t, epsilon0=1.0, laziness=laziness).transition.toarray()
    pi = graph.degrees / graph.degrees.sum()
    return 1 - (np.linalg.matrix_power(P, t) / pi).min()


def true_lambda(graph, laziness=0.0):
    values = np.linalg.eigvalsh(normalised(graph, laziness).toarray())
    return max(-values[0], values[-2])


GRAPHS = [
    graphs.complete(5),
    graphs.regular(300, 6, 0),
    graphs.erdos_renyi(300, 0.03, 1).largest_component(),
    graphs.dataset("karate"),
    graphs.ring(41),
]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.name)
@pytest.mark.parametrize("laziness", [0.0, 0.3])
def test_the_certificate_holds_and_is_sharp(graph, laziness):
    truth = true_lambda(graph, laziness)
    found = spectral_bound(graph, laziness, dense=0, most=3000)
    assert truth <= found.value <= truth + 0.05 * (1 - truth) + 1e-3
    assert found.failure == FAILURE < 1e-20
    everything = spectral_bound(graph, laziness, dense=2000)
    assert truth * (1 - 1e-13) <= everything.value <= truth + 1e-11
    assert everything.failure == 0


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95, 0.999])
def test_a_guess_too_small_certifies_nothing_false(share):
    graph = graphs.regular(300, 6, 0)
    truth = true_lambda(graph)
    for most in (5, 50, 400):
        assert spectral_bound(graph, dense=0, guess=share * truth, most=most).value >= truth
    assert spectral_bound(graph, dense=0, guess=truth, most=400).value < 1.02 * truth


def test_the_certificate_sees_a_hidden_eigenvalue():
    """Two dense halves and one bridge: a start vector that is blind to the cut would miss λ₂ ≈ 1."""
    half = [(i, j) for i in range(40) for j in range(i)]
    both = half + [(i + 40, j + 40) for i, j in half] + [(0, 40)]
    graph = graphs.Graph.from_edges(80, both)
    truth = true_lambda(graph)
    assert truth > 0.99
    assert spectral_bound(graph, dense=0, guess=0.1).value >= truth
    assert 1 - truth >= spectral_bound(graph, dense=0).gap > 0.9 * (1 - truth)


def test_coins_are_fresh_unless_a_seed_is_given():
    """A graph may be made by an adversary: fixed coins would be known to it. Stopped early, the bound shows its coins."""
    early = {"dense": 0, "most": 40}
    assert spectral_bound(GRAPHS[1], **early).value != spectral_bound(GRAPHS[1], **early).value
    assert spectral_bound(GRAPHS[1], seed=5, **early) == spectral_bound(GRAPHS[1], seed=5, **early)
    assert spectral_bound(GRAPHS[1], seed=5, **early) != spectral_bound(GRAPHS[1], seed=6, **early)
    big = graphs.regular(700, 4, 0)
    assert cached_bound(big, 0.0) is cached_bound(big, 0.0)  # one draw per process


def test_what_is_stated_does_not_vary_with_the_coins():
    truth = true_lambda(GRAPHS[2])
    found = {spectral_bound(GRAPHS[2], dense=0, seed=seed, most=4000).value for seed in (None, None, 1, 2, 3)}
    assert len(found) == 1
    assert truth <= found.pop() <= truth + 0.03 * (1 - truth)


def test_any_seed():
    graph = GRAPHS[2]
    truth = true_lambda(graph)
    assert all(spectral_bound(graph, dense=0, seed=seed, sharpness=0.2).value >= truth for seed in range(20))


@pytest.mark.parametrize("graph", [GRAPHS[0], GRAPHS[3], GRAPHS[4]], ids=lambda g: g.name)
@pytest.mark.parametrize("laziness", [0.0, 0.4])
@pytest.mark.parametrize("t", [1, 2, 7, 64, 300])
def test_separation_is_exact_where_it_says_so(graph, laziness, t):
    truth = true_separation(graph, laziness, t)
    found = separation(Shuffle(graph, rounds=t, epsilon0=1.0, laziness=laziness))
    bound = separation(Shuffle(graph, rounds=t, epsilon0=1.0, laziness=laziness), dense=0)
    assert bound.method == "spectral"
    assert found.value <= bound.value
    assert found.value >= truth - 1e-11
    assert found.value <= truth + 1e-10  # where the spectral bound was taken it is smaller than rounding
    assert bound.value >= truth - 1e-11


@settings(deadline=None, max_examples=25)
@given(st.integers(4, 30), st.integers(0, 10**6), st.floats(0.05, 0.9), st.integers(1, 60))
def test_random_graphs(n, seed, laziness, t):
    graph = graphs.erdos_renyi(n, 0.4, seed).largest_component()
    if graph.n < 2:
        return
    protocol = Shuffle(graph, rounds=t, epsilon0=1.0, laziness=laziness)
    truth = true_separation(graph, laziness, t)
    assert separation(protocol).value >= truth - 1e-11
    assert separation(protocol, dense=0).value >= truth - 1e-11
    later = separation(protocol.replace(rounds=t + 1)).value
    assert later <= separation(protocol).value + 1e-10


@pytest.mark.parametrize("graph", [GRAPHS[0], GRAPHS[3], GRAPHS[4]], ids=lambda g: g.name)
@pytest.mark.parametrize("target", [0.3, 1e-3, 1e-7])
def test_fewest_rounds(graph, target):
    found = fewest_rounds(graph, 0.0, target)
    assert found.value <= target
    assert true_separation(graph, 0.0, found.rounds) <= target + 1e-12
    if found.rounds > 1:
        assert true_separation(graph, 0.0, found.rounds - 1) > target - 1e-10
    far = fewest_rounds(graph, 0.0, target, dense=0)
    assert far.method == "spectral"
    assert far.rounds >= found.rounds
    assert far.value <= target


def test_far_below_rounding_the_spectrum_takes_over():
    found = fewest_rounds(graphs.dataset("karate"), 0.0, 1e-30)
    assert found.method == "spectral"
    assert found.value <= 1e-30
    power = _Powers(graphs.dataset("karate"), 0.0)
    assert 1e-12 < power.separation(power.of(found.rounds), found.rounds) < 1e-9  # its rounding error, added


def test_slow_walks_are_refused():
    slow = graphs.ring(2_001)
    assert spectral_bound(slow, most=30, guess=0.9999).value == 1.0
    from netdp.families.shuffle.account import mixing as module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module, "cached_bound", lambda graph, laziness: spectral_bound(graph, laziness, most=30, guess=0.9999)
        )
        with pytest.raises(Unsupported, match="mixes too slowly"):
            fewest_rounds(slow, 0.0, 1e-3)
        assert separation(Shuffle(slow, rounds=5, epsilon0=1.0)).value == 1.0


def test_refusals():
    with pytest.raises(InvalidValue, match=r"target.*2"):
        fewest_rounds(GRAPHS[0], 0.0, 2.0)
    with pytest.raises(GraphError, match="not connected"):
        spectral_bound(graphs.Graph.from_edges(4, [(0, 1), (2, 3)]))
    with pytest.raises(InvalidValue, match="laziness"):
        spectral_bound(GRAPHS[0], 1.0)
    for seed in ("x", -1, 1.5, True):
        with pytest.raises(InvalidValue, match="seed must be a whole number"):
            spectral_bound(GRAPHS[0], seed=seed)
    assert math.isclose(spectral_bound(graphs.ring(4)).value, 1.0)  # bipartite: eigenvalue −1


def test_the_stated_chance_of_failure_is_never_less_than_the_chance():
    """Several graphs, or components, need several certificates: their chances add up, and are rounded up."""
    for chance, said in ((1.68e-21, "2e-21"), (3 * 1.68e-21, "6e-21"), (1.2e-20, "2e-20"), (2e-30, "2e-30")):
        assert f"probability < {said}" in failure_words(chance)[0]
    assert failure_words(0.0) == ()


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def test_the_rounding_of_the_separation_is_on_top():
    """s ≤ λ^t·(Σd/min d − 1) times 1 + 8u(t + 64); and 2t(n + 16)u on the least entry of an exact power."""
    unit, graph = 2.0**-53, graphs.complete(4)
    for n in (5, 40):  # eigenvalues of the complete graph: 1 and −1/(n − 1)
        assert spectral_bound(graphs.complete(n)).value - 1 / (n - 1) == pytest.approx(16 * n * unit, rel=0.2, abs=0.0)
    with mpmath.workdps(40):
        exact = mpmath.mpf(0.999) ** 4000 * 3
        found = _spectral(graph, SpectralBound(0.999, 0.999, 0, 0.0), 4000)
        assert float(mpmath.mpf(found.value) / exact - 1) == pytest.approx(8 * unit * 4064, rel=0.05, abs=0.0)
        powers = _Powers(graphs.complete(64), 0.0)
        # N^t of the complete graph: (1 + 63·(−1/63)^t)/64 on the diagonal, (1 − (−1/63)^t)/64 elsewhere
        for t in (2, 3):
            least = 1 + min(63 * mpmath.mpf(-1) ** t / 63**t, -(mpmath.mpf(-1) ** t) / 63**t)
            above = mpmath.mpf(powers.separation(powers.of(t), t)) - (1 - least)
            assert float(above) == pytest.approx(2 * t * 80 * unit, rel=0.2, abs=0.0)
