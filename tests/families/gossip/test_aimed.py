"""Weights, refresh and policies chosen to be hard for the accountants (docs/proofs/gossip.md#rank-modulo-primes, #refresh)."""

import math
import random
import warnings

import networkx as nx
import numpy as np
import pytest

from netdp import graphs
from netdp.families.gossip.account import exact
from netdp.families.gossip.account import krylov as wide
from netdp.families.gossip.account import rank as modular
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.search import certify
from netdp.families.gossip.varying import VaryingGossip
from netdp.families.gossip.views import GossipView, SequenceView
from netdp.graphs import GossipMatrix, Graph
from netdp.protocols import Policy
from netdp.protocols.accounting import account
from netdp.protocols.target import Rule, Target, audience

GRAPH = Graph.from_edges(5, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4)])
KNOWN = 2147483629 * 2147483587  # primes that were used for everybody


def aimed_at(product):
    """Weights with which 0 sees all of 3 and 4, by a minor that has this divisor."""
    rng = random.Random(0)
    while True:
        a, b = rng.randrange(2**52, 2**53), rng.randrange(2**52, 2**53)
        if math.gcd(a, b) != 1:
            continue
        d = product * pow(a, -1, b) % b
        c = (a * d - product) // b
        if min(c, d) > 2**52:
            break
    by = {(0, 1): 0.25, (0, 2): 0.25} | dict(
        zip([(1, 3), (1, 4), (2, 3), (2, 4)], (math.ldexp(x, -58) for x in (a, b, c, d)), strict=True)
    )
    return GossipMatrix(GRAPH, [by[tuple(sorted(edge))] for edge in GRAPH.edges().tolist()])


def drawn_at(prime, monkeypatch):
    monkeypatch.setattr(modular, "_primes", lambda view: iter([prime, *modular.islice(modular.drawn_primes(b""), 50)]))


@pytest.mark.parametrize("product", [KNOWN, 1125899906842597])
@pytest.mark.parametrize("kind", ["gossip", "masked", "varying"])
def test_no_weights_hide_a_direction(kind, product, monkeypatch):
    """Even if they were made against the first prime that is drawn."""
    mixing = aimed_at(product)
    if product != KNOWN:
        drawn_at(product, monkeypatch)
        view = GossipView.of(Gossip(GRAPH, 2, 1.0, mixing=mixing), 0)
        assert sum(modular._krylov_ranks(view, product)) == 3  # that prime does not see it
        assert modular.certain_krylov_rank(view) == 4
    if kind == "varying":
        protocol = VaryingGossip((GRAPH, GRAPH), sigma=1.0, mixing=mixing)
        assert modular.certain_seen_rank(SequenceView(protocol, (0,))) == 4
    else:
        protocol = Gossip(GRAPH, 2, 1.0, mixing=mixing, masks=1.0 if kind == "masked" else 0.0)
    true = 7 / 15 if kind == "masked" else 1.0  # all first messages are seen
    np.testing.assert_allclose(account(protocol, [0]).factor[1:], true, rtol=0, atol=1e-9)


def test_what_is_not_certain_is_said_or_counts_as_seen(monkeypatch):
    """Too large for certainty: long integers and three primes, among the assumptions; without the integers a bound."""
    star = GossipMatrix(graphs.star(6), [0.1] * 5)
    protocols = Gossip(star.graph, 4, 1.0, mixing=star), VaryingGossip((star.graph,) * 4, sigma=1.0, mixing=star)
    sure = [account(protocol, [1]).factor for protocol in protocols]
    monkeypatch.setattr(modular, "MAX_PRODUCTS", 0.0)
    for protocol, factor in zip(protocols, sure, strict=True):
        loss = account(protocol, [1])
        assert loss.claim == "exact"
        assert modular.CHANCE in loss.assumptions
        np.testing.assert_allclose(loss.factor, factor, rtol=0, atol=1e-9)
    monkeypatch.setattr(wide, "MAX_MULTIPLICATIONS", 0.0)
    for protocol in protocols:
        loss = account(protocol, [1])
        assert loss.claim == "upper"
        assert np.nanmin(loss.factor) == 1.0


def test_primes_are_prime_different_and_the_same_again():
    for bits in (modular.SHORT_BITS, modular.BITS):
        first = list(modular.islice(modular.drawn_primes(b"a", bits), 5))
        assert first == list(modular.islice(modular.drawn_primes(b"a", bits), 5))
        assert len({*first, *modular.islice(modular.drawn_primes(b"b", bits), 5)}) == 10
        for prime in first:
            assert prime.bit_length() == bits
            assert all(pow(base, prime - 1, prime) == 1 for base in (29, 31, 37))
    assert [n for n in range(2, 60) if modular._is_prime(n)] == [
        n for n in range(2, 60) if all(n % d for d in range(2, n))
    ]


def test_residues_are_multiplied_rightly():
    rng, prime = random.Random(1), 1125899906842597
    for _ in range(2000):
        a, b = (rng.choice([rng.randrange(prime), prime - 1 - rng.randrange(5), rng.randrange(5)]) for _ in "ab")
        row = np.zeros(1, dtype=np.int64)
        modular._add(row, 0, a, np.array([b]), prime, 1.0 / prime)
        assert int(row[0]) == a * b % prime


def test_the_tilt_is_added_under_refresh():
    """Fresh noise of 1e-60 hides nothing that the long integers see."""
    made = nx.random_geometric_graph(145, 1.8 / np.sqrt(145), seed=5824)
    graph = graphs.from_networkx(nx.convert_node_labels_to_integers(nx.Graph(made.edges)))
    protocol = Gossip(graph, rounds=65, sigma=1.0, refresh=1e-60)
    space = wide.seen_space_wide(GossipView.of(protocol, 92))
    others = np.arange(graph.n) != 92
    assert ((space.basis**2).sum(axis=1) - account(protocol, 92).factor)[others].max() <= 1e-12


def test_refresh_that_cannot_be_resolved_is_not_called_exact(monkeypatch):
    monkeypatch.setattr(exact, "_FEW", -1.0)
    monkeypatch.setattr(exact, "_MANY", -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for refresh in (1e-25, 1e-310, 5e-324):
            assert account(Gossip(graphs.ring(60), 25, 1.0, refresh=refresh), 0).claim == "upper"


def test_out_of_reach_is_zero_on_large_graphs_too():
    protocol = Gossip(graphs.path(520), rounds=2, sigma=1.0, masks=1.0)
    target = Target(protocol.graph, None, 0.0, Policy([Rule("*", "distance>=5", 1.0)]))
    assert certify(protocol, target, audience(protocol.graph)).demand == 0.0
