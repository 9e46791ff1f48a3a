"""Shuffling as it runs: the law of the walks, what is handed over, what the curator sees and what it costs."""

import inspect

import numpy as np
import pytest
from scipy import stats

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.kernels import walk
from netdp.families.shuffle.protocol import ShuffledView, ShuffleTranscript
from netdp.families.shuffle.simulate import run_walks, shuffle_reports, stream
from netdp.protocols import Shuffle, simulate

KARATE = graphs.dataset("karate")
# a triangle with a tail: degrees 3, 2, 2, 2, 1
KITE = graphs.Graph.from_edges(5, np.array([[0, 1], [0, 2], [1, 2], [0, 3], [3, 4]]))


def walked(graph, positions, rounds, laziness=0.0, key=12345, **options):
    reports = np.array(positions, dtype=np.int32)
    counts = walk(graph.indptr, graph.indices, reports, rounds, laziness, key, **options)
    return reports, counts


def fits(observed, expected):
    """p-value of Pearson's test; what has probability 0 must not happen."""
    observed, expected = np.ravel(observed), np.ravel(expected)
    possible = expected > 0
    assert not observed[~possible].any()
    if possible.sum() == 1:  # nothing is left to chance
        return 1.0
    return stats.chisquare(observed[possible], expected[possible] * observed.sum()).pvalue


@pytest.mark.parametrize("graph", [KITE, graphs.complete(4), graphs.ring(5)], ids=["kite", "complete", "ring"])
@pytest.mark.parametrize("laziness", [0.0, 0.3])
@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_law_of_one_walk(graph, laziness, rounds):
    law = np.linalg.matrix_power(Shuffle(graph, 1, 1.0, laziness=laziness).transition.toarray(), rounds)
    for start in (0, graph.n - 1):
        ends, _ = walked(graph, np.full(60_000, start), rounds, laziness)
        assert fits(np.bincount(ends, minlength=graph.n), law[start]) > 1e-3


def test_the_law_test_can_fail():
    law = np.linalg.matrix_power(Shuffle(KITE, 1, 1.0, laziness=0.3).transition.toarray(), 2)
    ends, _ = walked(KITE, np.full(60_000, 0), 2, laziness=0.35)
    assert fits(np.bincount(ends, minlength=5), law[0]) < 1e-6


@pytest.mark.parametrize("laziness", [0.0, 0.4])
def test_two_reports_in_one_hand_go_separate_ways(laziness):
    law = np.linalg.matrix_power(Shuffle(KITE, 1, 1.0, laziness=laziness).transition.toarray(), 3)[0]
    ends, _ = walked(KITE, np.zeros(100_000), 3, laziness)
    pairs = ends.reshape(-1, 2)
    assert fits(np.bincount(pairs[:, 0] * 5 + pairs[:, 1], minlength=25), np.outer(law, law)) > 1e-3


def test_one_report_in_successive_rounds_is_a_markov_chain():
    """Rounds must not repeat each other's draws: the joint law of the first two positions."""
    P = Shuffle(KITE, 1, 1.0).transition.toarray()
    first, second = (walked(KITE, np.zeros(60_000), t)[0] for t in (1, 2))
    assert fits(np.bincount(first * 5 + second, minlength=25), P[0][:, None] * P) > 1e-3


@pytest.mark.parametrize("laziness", [0.0, 0.25])
def test_threads_do_not_change_the_walk(laziness):
    one, counts = walked(KARATE, np.arange(34).repeat(50), 6, laziness, pieces=1)
    for pieces in (2, 3, 7):
        same, others = walked(KARATE, np.arange(34).repeat(50), 6, laziness, pieces=pieces)
        assert np.array_equal(one, same)
        assert all(np.array_equal(a, b) for a, b in zip(counts, others, strict=True))
    assert not np.array_equal(one, walked(KARATE, np.arange(34).repeat(50), 6, laziness, key=1)[0])


@pytest.mark.parametrize("laziness", [0.0, 0.35])
def test_traffic_is_counted_right(laziness):
    """A shorter walk with the same key is the beginning of a longer one, so every hop can be recounted."""
    n, rounds = KARATE.n, 9
    path = np.array([walked(KARATE, np.arange(n), t, laziness)[0] for t in range(rounds + 1)])
    _, (sent, most_sent, most_held) = walked(KARATE, np.arange(n), rounds, laziness)
    moved = path[1:] != path[:-1]
    assert bool(moved.all()) == (laziness == 0)
    assert np.array_equal(sent, np.bincount(path[:-1][moved], minlength=n))
    for t in range(rounds):
        assert most_held[t] == np.bincount(path[t + 1]).max()
        assert most_sent[t] == np.bincount(path[t][moved[t]]).max()


def test_traffic_in_words():
    protocol = Shuffle(KARATE, rounds=20, epsilon0=1.0)
    _, traffic = run_walks(protocol, 3)
    assert traffic.total == 34 * 20
    assert traffic.mean_sent == 20
    assert traffic.largest_sent == traffic.sent.max() > 20
    assert traffic.most_held[0] == 1
    assert traffic.largest_hand >= traffic.most_sent.max()
    assert "680 messages: 20.0 per user" in traffic.describe()
    lazy, reports = run_walks(protocol.replace(laziness=0.5, rounds=200), 3)[1], 34 * 200
    assert abs(lazy.total - reports / 2) < 4.5 * np.sqrt(reports / 4)


def test_all_reports_arrive_once_by_their_holders():
    protocol = Shuffle(KARATE, rounds=5, epsilon0=1.0)
    reports = np.random.default_rng(0).random((34, 3))
    run = shuffle_reports(protocol, reports, seed=1)
    view, truth = run.view, run.transcript
    assert sorted(truth.origins.tolist()) == list(range(34))
    assert np.array_equal(view.reports, reports[truth.origins])
    assert np.array_equal(view.holders, truth.positions[truth.origins])
    assert view.counts.sum() == 34
    assert len(truth.dummies) == len(truth.dropped) == 0
    for user in range(34):
        mine = np.flatnonzero(truth.positions == user)
        assert sorted(view.handed_by(user)[:, 0].tolist()) == sorted(reports[mine, 0].tolist())


def test_order_in_a_hand_says_nothing():
    """Given that reports 0 and 1 end in one hand of two, either order is equally likely."""
    protocol = Shuffle(graphs.complete(4), rounds=2, epsilon0=1.0)
    first = []
    for seed in range(3000):
        truth = run_walks(protocol, seed)[0]
        if truth.positions[0] == truth.positions[1]:
            places = {int(o): i for i, o in enumerate(truth.origins)}
            first.append(places[0] < places[1])
    assert len(first) > 400
    assert abs(np.mean(first) - 0.5) < 4.5 * 0.5 / np.sqrt(len(first))


def test_single_hands_over_one_each():
    protocol = Shuffle(KARATE, rounds=5, epsilon0=1.0, reporting="single")
    asked = []
    run = shuffle_reports(protocol, np.arange(34), seed=1, dummies=lambda k: asked.append(k) or np.full(k, -7))
    truth, everything = run.transcript, run_walks(protocol.replace(reporting="all"), 1)[0]
    assert np.array_equal(truth.positions, everything.positions)  # the same walks
    held = np.bincount(truth.positions, minlength=34)
    assert truth.holders.tolist() == run.view.holders.tolist() == list(range(34))
    assert np.array_equal(truth.dummies, np.flatnonzero(held == 0))
    assert asked == [int((held == 0).sum())]
    assert np.array_equal(run.view.reports == -7, held == 0)
    assert len(truth.dropped) == (held == 0).sum()
    real = truth.origins >= 0
    assert np.array_equal(truth.positions[truth.origins[real]], np.flatnonzero(held))
    assert run.traffic.handed == 34


def test_single_chooses_uniformly():
    """Of three reports in one hand each is handed over equally often."""
    protocol = Shuffle(graphs.complete(4), rounds=1, epsilon0=1.0, reporting="single")
    chosen = []
    for seed in range(4000):
        truth = run_walks(protocol, seed)[0]
        if np.all(truth.positions[1:] == 0):
            chosen.append(truth.origins[0])
    counts = np.bincount(chosen, minlength=4)
    assert counts[0] == 0
    assert counts.sum() > 90
    assert stats.chisquare(counts[1:]).pvalue > 1e-3


def test_the_view_is_built_without_origins():
    assert list(inspect.signature(ShuffledView).parameters) == ["n", "holders", "reports"]
    with pytest.raises(InvalidValue, match="increasing order"):
        ShuffledView(3, np.array([1, 0]), np.zeros(2))
    with pytest.raises(InvalidValue, match="users 0 … 2"):
        ShuffledView(3, np.array([3]), np.zeros(1))
    with pytest.raises(InvalidValue, match="2 holders and 3 reports"):
        ShuffledView(3, np.array([0, 1]), np.zeros(3))


def test_a_transcript_must_make_sense():
    with pytest.raises(InvalidValue, match="does not hold it"):
        ShuffleTranscript(np.array([0, 1, 1]), holders=np.array([0, 1, 2]), origins=np.array([1, 2, -1]))
    good = ShuffleTranscript(np.array([0, 1, 1]), holders=np.array([0, 1, 2]), origins=np.array([0, 2, -1]))
    assert good.view(np.array([5, 6, 7]), np.array([9])).reports.tolist() == [5, 7, 9]
    with pytest.raises(InvalidValue, match="1 users send a dummy; got none"):
        good.view(np.array([5, 6, 7]))
    with pytest.raises(InvalidValue, match="3 users and 2 reports"):
        good.view(np.array([5, 6]))


def test_the_same_seed_gives_the_same_run():
    protocol = Shuffle(KARATE, rounds=5, epsilon0=1.0)
    one, same, other = (shuffle_reports(protocol, np.arange(34), seed=s).view.reports for s in (4, 4, 5))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert stream(4, 0).random() != stream(4, 1).random()


def test_refusals():
    protocol = Shuffle(KARATE, rounds=5, epsilon0=1.0)
    with pytest.raises(Unsupported, match=r"randomized before they are shuffled: use .*collect"):
        simulate(protocol, np.zeros(34), seed=0)
    with pytest.raises(InvalidValue, match="34 users; give one report for each, got shape"):
        shuffle_reports(protocol, np.zeros(33), seed=0)
    with pytest.raises(InvalidValue, match="sends no dummies"):
        shuffle_reports(protocol, np.zeros(34), seed=0, dummies=np.zeros)
    with pytest.raises(InvalidValue, match="needs dummies"):
        shuffle_reports(protocol.replace(reporting="single"), np.zeros(34), seed=0)
    with pytest.raises(InvalidValue, match=r"seed must be a whole number ≥ 0, got -1"):
        shuffle_reports(protocol, np.zeros(34), seed=-1)
