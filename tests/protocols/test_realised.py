"""A protocol and the transcript of a run together: what really happened, or a refusal that says why not."""

import numpy as np
import pytest

from netdp import graphs, simulate
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.views import transcribe
from netdp.families.token.simulate import draw_paths
from netdp.families.token.views import TokenTranscript
from netdp.protocols import (
    Central,
    ErdosRenyiGossip,
    Gossip,
    GossipDescent,
    GraphWalkSum,
    Local,
    PathSum,
    RandomizedGossip,
    RingHistogram,
    RingSum,
    Shuffle,
    Transcript,
    VaryingGossip,
    WalkDescent,
    WalkHistogram,
    WalkSum,
    realised,
)
from netdp.protocols.accounting import account, pairwise

RING = graphs.ring(6)
FIXED = {
    "gossip": Gossip(RING, rounds=3, sigma=1.0),
    "varying": VaryingGossip([RING, graphs.star(6)], sigma=1.0),
    "ring sum": RingSum(6, 2, sigma=1.0),
    "path sum": PathSum(6, [[0, 1, 2], [3, 4, 5, 0]], sigma=1.0, closing=1.0),
    "local": Local(6, sigma=1.0),
    "central": Central(6, sigma=1.0),
}


@pytest.mark.parametrize("name", FIXED)
def test_where_nothing_is_left_to_chance_the_prescribed_transcript_changes_nothing(name):
    protocol = FIXED[name]
    run = simulate(protocol, np.zeros(6), seed=2)
    assert realised(protocol, run.transcript) is protocol
    plain = account(protocol, [0])
    np.testing.assert_array_equal(account(protocol, [0], transcript=run.transcript).mu, plain.mu)
    np.testing.assert_array_equal(pairwise(protocol, transcript=run.transcript).mu, pairwise(protocol).mu)


@pytest.mark.parametrize(
    ("name", "transcript", "message"),
    [
        ("gossip", Transcript.synchronous(RING, 4), "48 messages in 4 rounds, the protocol prescribes 36 in 3"),
        ("gossip", Transcript.synchronous(graphs.star(6), 3), "lost or added messages is another protocol"),
        ("gossip", TokenTranscript(6, [[0, 1]]), "that of a run of Gossip .*got TokenTranscript"),
        ("varying", Transcript.varying([graphs.star(6), RING]), "not the transcript of VaryingGossip"),
        ("ring sum", TokenTranscript(6, [[0, 1, 2, 3, 4, 5]]), "not the transcript of RingSum"),
        ("ring sum", Transcript.synchronous(RING, 2), "got Transcript"),
        ("path sum", TokenTranscript(6, [[0, 1, 2], [3, 4, 5, 1]]), "not the transcript of PathSum"),
        ("local", Transcript.synchronous(RING, 1), "prescribes 0 in 0"),
        ("central", "yesterday", "got str"),
    ],
)
def test_a_run_with_other_messages_is_another_protocol(name, transcript, message):
    with pytest.raises(InvalidValue, match=message):
        realised(FIXED[name], transcript)


def test_a_histogram_and_learning_have_transcripts_too():
    ring = RingHistogram(6, 2, domain=2, gamma=0.5)
    run = simulate(ring, [0, 1, 0, 1, 0, 1], seed=0)
    assert realised(ring, run.transcript) is ring
    with pytest.raises(InvalidValue, match="not the transcript of RingHistogram"):
        realised(ring.replace(rounds=3), run.transcript)
    descent = GossipDescent((RING, graphs.star(6)), 2, 3, sigma=1.0, step=0.1)
    assert realised(descent, Transcript.varying([RING] * 3 + [graphs.star(6)] * 3)) is descent
    with pytest.raises(InvalidValue, match="not the transcript of GossipDescent"):
        realised(descent, Transcript.varying([RING] * 6))


WALKS = [
    WalkSum(7, steps=40, sigma=2.0, tokens=2),
    WalkSum(7, steps=40, sigma=2.0, contributions=3, sensitivity=0.5),
    GraphWalkSum(graphs.grid(2, 4), steps=40, sigma=2.0, closing=3.0),
    GraphWalkSum(graphs.star(5), steps=30, sigma=2.0, walk="simple", tokens=2),
]


@pytest.mark.parametrize("protocol", WALKS, ids=lambda p: p.describe())
def test_a_walk_that_became_public_is_a_public_path(protocol):
    run = simulate(protocol, np.zeros(protocol.n), seed=4)
    assert realised(protocol, run.transcript) == run.protocol == draw_paths(protocol, 4)
    for transcript in (run.transcript, run.protocol):
        found = account(protocol, [0, 2], transcript=transcript)
        direct = account(run.protocol, [0, 2])
        np.testing.assert_array_equal(found.mu, direct.mu)
        assert found.claim == direct.claim
    np.testing.assert_array_equal(pairwise(protocol, transcript=run.transcript).mu, pairwise(run.protocol).mu)


def test_a_walk_of_another_length_size_or_along_no_edge_is_refused():
    walk = WalkSum(4, steps=4, sigma=1.0)
    for paths in ([[0, 1, 2]], [[0, 1, 2, 3]] * 2):
        with pytest.raises(InvalidValue, match=r"take run\.transcript of a run of this protocol"):
            realised(walk, TokenTranscript(4, paths))
    with pytest.raises(InvalidValue, match="has 5 users"):
        realised(walk, TokenTranscript(5, [[0, 1, 2, 3]]))
    with pytest.raises(InvalidValue, match=r"that of a run of WalkSum \(run.transcript\), got Transcript"):
        realised(walk, Transcript.synchronous(graphs.ring(4), 1))
    on_ring = GraphWalkSum(graphs.ring(4), steps=4, sigma=1.0)
    assert realised(on_ring, TokenTranscript(4, [[0, 1, 1, 2]])).paths[0].tolist() == [0, 1, 1, 2]  # it may stay
    with pytest.raises(InvalidValue, match="step 2 goes from 1 to 3, no edge of"):
        realised(on_ring, TokenTranscript(4, [[0, 1, 3, 2]]))


@pytest.mark.parametrize("varying", [False, True])
def test_a_random_graph_is_read_off_the_transcript(varying):
    protocol = ErdosRenyiGossip(n=9, p=0.4, rounds=3, sigma=1.0, varying=varying)
    drawn = protocol.draw(5)
    run = simulate(protocol, np.zeros(9), seed=5)
    expected = account(drawn, [0])
    graphs_drawn = list(drawn.graphs) if varying else drawn.graph
    for transcript in (run.transcript, run.protocol, drawn, graphs_drawn):
        again = realised(protocol, transcript)
        assert again == drawn
        np.testing.assert_array_equal(account(protocol, [0], transcript=transcript).mu, expected.mu)
    for wrong, message in (
        (Transcript.synchronous(graphs.ring(9), 2), "the transcript has 2 rounds, the protocol 3"),
        (graphs.ring(8), "the draw has 8 parties"),
        ([graphs.ring(9)] * 4, "and 4 graphs"),
        ("yesterday", "got str"),
        (Gossip(graphs.ring(9), rounds=4, sigma=1.0), "4 rounds, the protocol 3|and 1 graphs"),
    ):
        with pytest.raises(InvalidValue, match=message):
            realised(protocol, wrong)


def test_a_transcript_that_no_gossip_could_leave_is_refused():
    protocol = ErdosRenyiGossip(n=4, p=0.9, rounds=2, sigma=1.0)
    one_way = Transcript(4, (np.array([[0, 1], [1, 2], [2, 3]]),), np.array([0, 0]))
    with pytest.raises(InvalidValue, match="one direction only"):
        realised(protocol, one_way)
    two_graphs = Transcript.varying([graphs.ring(4), graphs.star(4)])
    with pytest.raises(InvalidValue, match="on different graphs"):
        realised(protocol, two_graphs)
    assert realised(protocol.replace(varying=True), two_graphs).rounds == 2


def test_random_edges_are_an_option_of_their_own_accountant():
    protocol = RandomizedGossip(RING, steps=12, sigma=1.0)
    run = simulate(protocol, np.zeros(6), seed=1)
    for transcript in (run.transcript, protocol.draw(1)):
        found = account(protocol, [0], transcript=transcript)
        assert found.claim == "exact"
        np.testing.assert_array_equal(found.mu, account(protocol, [0], transcript=run.transcript).mu)
    assert not account(protocol, [0]).is_certified
    with pytest.raises(InvalidValue, match="12, 2"):
        account(protocol, [0], transcript=protocol.replace(steps=11).draw(1))
    with pytest.raises(InvalidValue, match="pairwise exchanges have two"):
        account(protocol, [0], transcript=transcribe(FIXED["gossip"]))


@pytest.mark.parametrize(
    ("protocol", "observers", "why"),
    [
        (Shuffle(graphs.complete(5), 3, epsilon0=1.0), "curator", "nobody's knowledge"),
        (WalkDescent(5, 10, sigma=1.0, step=0.1), [0], "sums only"),
        (WalkHistogram(5, 10, domain=2, gamma=0.5), [0], "sums only"),
    ],
)
def test_where_a_transcript_does_not_help_it_is_refused_with_a_reason(protocol, observers, why):
    with pytest.raises(Unsupported, match=f"leaves no transcript that could be accounted for: .*{why}"):
        account(protocol, observers, transcript=object())
