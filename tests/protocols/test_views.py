"""Transcripts, observers, and the written-out view.

Proof: docs/proofs/gossip.md#hidden-recursion.
"""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip import views as gossip_views
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.views import GossipView, explicit_view, transcribe
from netdp.families.shuffle.protocol import Shuffle
from netdp.privacy.observers import Observers
from netdp.protocols import Transcript, observer_set, who_looks


@pytest.mark.parametrize(
    ("observers", "message"),
    [
        ([], "observers is empty"),
        ([1, 1], "observer 1 is named twice"),
        ([6], "6"),
        ([-1], "-1"),
        (["Bob"], "Bob"),
        (range(6), "all 6 parties observe"),
        ([1.5], "1.5"),
    ],
)
def test_observers_are_checked(observers, message):
    with pytest.raises(InvalidValue, match=message):
        observer_set(graphs.ring(6), observers)


def test_observers_by_name():
    families = graphs.dataset("florentine")
    assert observer_set(families, "Medici") == (families.index("Medici"),)
    assert observer_set(graphs.ring(6), np.int64(4)) == (4,)


def test_names_win_and_an_ambiguous_observer_is_refused():
    numbered = graphs.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)], labels=["1", "2", "3", "4"])
    assert observer_set(numbered, ["1", "3"]) == (0, 2)
    with pytest.raises(
        InvalidValue, match=r"1 could mean two nodes.*named '1'.*node 1.*named '2'.*as text, '1' or '2'"
    ):
        observer_set(numbered, [1])
    shuffle = Shuffle(numbered, rounds=3, epsilon0=1.0, laziness=0.5)
    with pytest.raises(InvalidValue, match="3 could mean two nodes"):
        who_looks(shuffle, ["curator", 3])
    assert who_looks(shuffle, ["curator", "3"]) == Observers((2,), ("curator",), names=("3",))
    # computed numbers count from 0 and are not looked up
    assert observer_set(numbered, [3, 1], ids=True) == (1, 3)
    for wrong in ([4], ["1"]):
        with pytest.raises(InvalidValue, match=f"no party {wrong[0]!r}; the parties are 0 to 3"):
            observer_set(numbered, wrong, ids=True)


def test_transcript_of_gossip():
    graph = graphs.grid(3, 3)
    transcript = transcribe(Gossip(graph, rounds=4, sigma=1.0))
    assert transcript.rounds == 4
    assert len(transcript) == 4 * 2 * graph.m
    received = transcript.received_by([4])
    assert sorted(received[received[:, 0] == 2, 1].tolist()) == graph.neighbors(4).tolist()
    assert set(received[:, 2].tolist()) == {4}


def test_transcripts_compare_by_what_happened():
    graph = graphs.ring(5)
    whole = Transcript.synchronous(graph, 2)
    pattern = whole.messages(0)
    assert whole == Transcript(
        5, (pattern[::-1], pattern), np.array([1, 0])
    )  # the order within a round does not matter
    assert whole != Transcript(5, (pattern, pattern[1:]), np.array([0, 1]))
    assert whole != Transcript.synchronous(graph, 3)


def test_transcript_refuses_strangers():
    with pytest.raises(InvalidValue, match="party 5"):
        Transcript(5, (np.array([[0, 5]]),), np.array([0]))
    with pytest.raises(InvalidValue, match="pattern 1"):
        Transcript(5, (np.array([[0, 1]]),), np.array([1]))


def test_written_out_view_names_its_noises():
    protocol = Gossip(graphs.path(4), rounds=3, sigma=2.0, refresh=3.0, masks=4.0)
    view = explicit_view(protocol, 0)
    kinds = [(noise.kind, noise.known_to, noise.round) for noise in view.noises]
    assert ("own", (0,), 0) not in kinds
    assert ("mask", (0, 1), 0) not in kinds
    assert ("mask", (1, 2), 0) in kinds
    assert ("refresh", (3,), 2) in kinds
    assert not any(0 in noise.known_to for noise in view.noises)
    # The first message is x₁ + ση₁ + √κσ·m₁₂ and nothing else.
    first = {kind: value for kind, value in zip(kinds, view.noise[0], strict=True) if value}
    assert first == {("own", (1,), 0): 2.0, ("mask", (1, 2), 0): 4.0}
    assert view.data[0].tolist() == [0, 1, 0, 0]
    # One fresh noise of variance r·σ²/T joins before the second send.
    second = dict(zip(kinds, view.noise[1], strict=True))
    assert second["refresh", (1,), 1] == pytest.approx(np.sqrt(3.0 * 4.0 / 3))
    # A mask is one noise with two places: after one step both ends contribute, with opposite signs.
    assert second["mask", (1, 2), 0] == pytest.approx(4.0 * (protocol.matrix[1, 1] - protocol.matrix[1, 2]))


def test_written_out_view_refuses_large_instances(monkeypatch):
    monkeypatch.setattr(gossip_views, "MAX_COEFFICIENTS", 100)
    with pytest.raises(Unsupported, match=r"netdp\.account"):
        explicit_view(Gossip(graphs.ring(20), rounds=3, sigma=1.0), 0)


def test_structured_view_strikes_out_the_observers():
    protocol = Gossip(graphs.dataset("karate"), rounds=3, sigma=1.0, masks=1.0)
    view = GossipView.of(protocol, [0, 33])
    hidden = view.hidden
    rng = np.random.default_rng(0)
    states = np.where(hidden[:, None], rng.standard_normal((34, 3)), 0.0)
    W = protocol.matrix.toarray()
    np.testing.assert_allclose(view.step(states)[hidden], W[np.ix_(hidden, hidden)] @ states[hidden], atol=1e-15)
    inner = protocol.graph.subgraph(np.flatnonzero(hidden)).laplacian().toarray()
    np.testing.assert_allclose(view.mask_laplacian(states)[hidden], inner @ states[hidden], atol=1e-13)
    assert not view.step(states)[~hidden].any()
    assert not view.mask_laplacian(states)[~hidden].any()
    expected = {int(w) for v in (0, 33) for w in protocol.graph.neighbors(v)} - {0, 33}
    assert set(view.boundary.tolist()) == expected


def test_an_observer_named_twice_is_refused_also_in_structure():
    protocol = Gossip(graphs.ring(5), rounds=1, sigma=1.0)
    with pytest.raises(InvalidValue, match="name a party twice"):
        who_looks(protocol, Observers((1, 1)))
    assert who_looks(protocol, Observers((3, 1))).parties == (1, 3)


def test_a_grid_has_no_linear_view():
    protocol = Gossip(graphs.ring(4), rounds=2, sigma=1.0, refresh=1.0, grid=0.25)
    with pytest.raises(Unsupported, match="speaks of real numbers"):
        explicit_view(protocol, [0])
