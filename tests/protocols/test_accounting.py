"""The front door: results, baselines, refusals.

Proof: docs/proofs/privacy.md#assumptions.
"""

import threading

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.protocol import Gossip
from netdp.privacy import gaussian_epsilon
from netdp.protocols import accounting as front
from netdp.protocols.accounting import account, pairwise
from netdp.protocols.alternatives import local_dp, trusted_curator


def test_epsilon_is_the_exact_gaussian_one():
    protocol = Gossip(graphs.hypercube(5), rounds=9, sigma=3.0, masks=2.0, sensitivity=2.0)
    loss = account(protocol, [3])
    others = np.arange(32) != 3
    np.testing.assert_allclose(loss.mu[others], np.sqrt(loss.factor[others]) * 2 / 3, rtol=1e-12)
    np.testing.assert_array_equal(loss.epsilon(1e-5)[others], gaussian_epsilon(loss.mu[others], 1e-5))
    assert np.isnan(loss.epsilon(1e-5)[3])
    assert loss.observers == netdp.Observers((3,))
    assert loss.adjacency == "replace"


NUMBERED = graphs.Graph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)], labels="12345")


def test_an_ambiguous_observer_is_refused_and_names_win():
    """On a graph labelled 1 … n, observer 1 used to mean the party labelled 2."""
    protocol = Gossip(NUMBERED, rounds=3, sigma=1.0)
    for method in ("certified", "published"):
        with pytest.raises(InvalidValue, match=r"1 could mean two nodes.*as text, '1' or '2'"):
            account(protocol, observers=[1], method=method)
        # the party named '2' is the node 1, all the way down: nothing is looked up twice
        plain = account(protocol.replace(graph=graphs.Graph.from_edges(5, NUMBERED.edges())), [1], method=method)
        named = account(protocol, observers=["2"], method=method)
        assert named.observers == netdp.Observers((1,), names=("2",))
        assert named.names == ("1", "2", "3", "4", "5")
        np.testing.assert_array_equal(named.factor, plain.factor)
    for v in range(5):
        np.testing.assert_array_equal(account(protocol, [NUMBERED.label(v)]).factor, pairwise(protocol).factor[:, v])


@pytest.mark.parametrize(
    ("method", "build", "names", "numbers"),
    [
        ("certified", lambda graph: netdp.GossipDescent(graph, 2, 3, sigma=1.0, step=0.1), ["3", "5"], [2, 4]),
        ("published", lambda graph: netdp.GossipDescent(graph, 2, 3, sigma=1.0, step=0.1), ["3", "5"], [2, 4]),
        ("certified", lambda graph: netdp.Shuffle(graph, 30, epsilon0=1.0), ["curator", "3"], ["curator", 2]),
        ("certified", lambda graph: netdp.RandomizedGossip(graph, steps=9, sigma=1.0), ["3"], [2]),
        ("certified", lambda graph: netdp.GraphWalkSum(graph, steps=90, sigma=9.0), ["3"], [2]),
    ],
)
def test_names_are_looked_up_once_in_every_family(method, build, names, numbers):
    """Accountants are given node numbers, which must not be taken for names again."""
    unnamed = account(build(graphs.Graph.from_edges(5, NUMBERED.edges())), numbers, method=method)
    named = account(build(NUMBERED), names, method=method)
    np.testing.assert_array_equal(named.epsilon(1e-3), unnamed.epsilon(1e-3))
    parties = tuple(v for v in numbers if v != "curator")
    assert named.observers.parties == unnamed.observers.parties == parties
    assert named.observers.names == tuple(name for name in names if name != "curator")
    assert unnamed.observers.names is None


def test_baselines():
    protocol = Gossip(graphs.hypercube(6), rounds=9, sigma=4.0)
    assert local_dp(protocol).mu.tolist() == [0.25] * 64
    assert trusted_curator(protocol).mu == pytest.approx(np.full(64, 0.25 / 8))
    assert local_dp(protocol).claim == "exact"
    assert local_dp(protocol).observers == netdp.Observers(roles=("everybody",))


def test_headline_no_curator_needed():
    """Masked gossip on a hypercube: within a tenth of the curator's ε, for every pair, and the same error."""
    protocol = Gossip(graphs.hypercube(6), rounds=20, sigma=2.0, masks=100.0)
    worst = pairwise(protocol).worst_epsilon(1e-6)
    assert worst < 1.1 * trusted_curator(protocol).worst_epsilon(1e-6)
    assert worst < local_dp(protocol).worst_epsilon(1e-6) / 8
    assert netdp.expected_error(protocol).rmse == pytest.approx(2.0 / 8, rel=1e-2)


def test_pairwise_reports_progress_and_claims():
    seen = []
    protocol = Gossip(graphs.dataset("karate"), rounds=60, sigma=1.0)
    result = pairwise(protocol, progress=lambda done, total: seen.append((done, total)), workers=1)
    assert seen == [(done, 34) for done in range(2, 35)]  # the first one is accounted for before the pool starts
    assert result.observers == netdp.Observers(each=True)
    assert result.claim == "exact"
    assert np.isnan(np.diag(result.factor)).all()
    assert np.isnan(result.factor).sum() == 34


def test_pairwise_stops_when_progress_fails():
    threads = threading.active_count()

    def fail(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pairwise(Gossip(graphs.grid(12, 12), rounds=10, sigma=1.0), progress=fail)
    assert threading.active_count() <= threads


def test_refusals(monkeypatch):
    protocol = Gossip(graphs.ring(6), rounds=2, sigma=1.0)
    with pytest.raises(InvalidValue, match="unknown method 'magic'; choose one of certified, published"):
        account(protocol, 0, method="magic")
    with pytest.raises(InvalidValue, match="99"):
        account(protocol, [0, 99])
    monkeypatch.setattr(front, "MAX_PAIRWISE", 5)
    with pytest.raises(Unsupported, match=r"account\(protocol, observers=\[v\]\)"):
        pairwise(protocol)


def test_faint_refresh_falls_back_to_a_bound():
    """Where floating point cannot follow the fresh noise, the loss without it is reported, as an upper bound."""
    protocol = Gossip(graphs.ring(64), rounds=20, sigma=1.0, refresh=1e-20)
    loss = account(protocol, 0)
    assert loss.claim == "upper"
    plain = account(protocol.replace(refresh=0.0), 0)
    hidden = np.arange(64) != 0
    assert (loss.factor[hidden] <= plain.factor[hidden]).all()
    assert any("refresh r = 1e-20 too weak to resolve" in text for text in loss.assumptions)


def test_very_strong_masks_say_upper():
    loss = account(Gossip(graphs.hypercube(5), rounds=12, sigma=1.0, masks=1e9), 0)
    assert loss.claim == "upper"
    assert 1 / 31 <= loss.worst < 1.2 / 31


def test_too_many_messages_are_bounded(monkeypatch):
    from netdp.families.gossip.account import exact as gossip

    protocol = Gossip(graphs.hypercube(4), rounds=6, sigma=1.0, refresh=0.5, masks=1.0)
    exact = account(protocol, 0)
    monkeypatch.setattr(gossip, "_MAX_MESSAGES", 10)
    bound = account(protocol, 0)
    assert bound.claim == "upper"
    hidden = np.arange(16) != 0
    assert (bound.factor[hidden] >= exact.factor[hidden]).all()
    np.testing.assert_allclose(bound.factor, account(protocol.replace(refresh=0.0), 0).factor)


def test_memory_is_refused_with_a_reason(monkeypatch):
    from netdp.families.gossip.account import krylov

    def no_memory(*_, **__):
        raise MemoryError

    view = netdp.families.gossip.views.GossipView.of(Gossip(graphs.ring(6), rounds=2, sigma=1.0), 0)
    assert len(view.boundary) == 2  # kept, so that only the basis asks for memory now
    monkeypatch.setattr(krylov.np, "zeros", no_memory)
    with pytest.raises(Unsupported, match="fewer rounds"):
        krylov.seen_space(view)


def test_assumptions_name_the_masks_and_the_bound_on_values():
    plain = account(Gossip(graphs.ring(6), rounds=2, sigma=1.0, sensitivity=0.5), 0)
    assert any("at most 0.5" in text for text in plain.assumptions)
    assert not any("mask" in text for text in plain.assumptions)
    masked = account(Gossip(graphs.ring(6), rounds=2, sigma=1.0, masks=1.0), 0)
    assert any("mask of an edge" in text for text in masked.assumptions)


def test_a_published_estimate_counts_its_publisher():
    """If p publishes its estimate, counting p among the observers bounds the loss: checked on the written-out view."""
    from netdp.families.gossip.views import explicit_view
    from netdp.families.linear.account import shift_energy
    from netdp.protocols import Seen

    protocol = Gossip(graphs.dataset("karate"), rounds=2, sigma=1.0, masks=2.0)
    observer, publisher = 5, 33
    longer = explicit_view(protocol.replace(rounds=3), observer)
    view = explicit_view(protocol, observer)
    # What p publishes is its state after the last round: the message it would send in one round more.
    neighbour = int(protocol.graph.neighbors(publisher)[0])
    told = explicit_view(protocol.replace(rounds=3), neighbour)
    row = np.flatnonzero((told.messages[:, 0] == 2) & (told.messages[:, 1] == publisher))[0]
    names = {noise: i for i, noise in enumerate(told.noises)}
    # Only noises unknown to either are needed; compare on those, so the check is about a smaller view and stays valid.
    common = [i for i, noise in enumerate(view.noises) if noise in names]
    both = Seen(
        (observer, neighbour),
        np.vstack([view.data, told.data[row]]),
        np.vstack([view.noise[:, common], told.noise[row, [names[view.noises[i]] for i in common]]]),
        tuple(view.noises[i] for i in common),
        np.vstack([view.messages, told.messages[row]]),
    )
    energy = shift_energy(both)
    bound = account(protocol, [observer, publisher, neighbour]).factor
    compare = ~np.isnan(energy) & ~np.isnan(bound)
    assert (bound[compare] >= energy[compare] * (1 - 1e-9) - 1e-12).all()
    assert longer.messages.shape[0] > view.messages.shape[0]


def test_what_is_public_may_not_depend_on_the_values():
    said = account(Gossip(graphs.ring(6), rounds=2, sigma=1.0), 0).assumptions
    assert any("public and chosen without regard to the values" in text for text in said)
