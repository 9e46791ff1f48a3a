"""Reports as bytes, what a curator drops and why, and what hands show of origins: nothing."""

import hashlib
import itertools
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from netdp import graphs
from netdp.families.shuffle.reports import (
    DROPPED,
    Reports,
    Total,
    count,
    cuts_bytes,
    expected_empty,
    hop,
    pick,
    take_cuts,
)
from netdp.families.shuffle.simulate import collect
from netdp.mechanisms import RandomizedResponse
from netdp.peers.streams import SEAL, Words, seal, unseal
from netdp.peers.study import Task
from netdp.protocols import Shuffle

sys.path.append(str(Path(__file__).parent))

import shuffled

STUDY, ROSTER = b"s" * 32, (0, 1, 2, 3)


def words(*text):
    return Words(hashlib.sha256(repr(text).encode()).digest())


# ── bytes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("task", [shuffled.HISTOGRAM, shuffled.MEAN], ids=lambda task: task.kind)
def test_reports_and_dummies_have_one_length_and_can_be_read(task):
    reports = Reports(task, 1.0, 2.0**-19)
    rows = [task.rows([{"x": value}])[0] for value in (["a", "b", "c"] if task.categories else ["0", "3.5", "10"])]
    made = [reports.of(row, words(1, i, j)) for i, row in enumerate(rows) for j in range(50)]
    made += [reports.dummy(words(2, j)) for j in range(50)]
    assert {len(one) for one in made} == {reports.width}
    assert reports.size == reports.width + SEAL
    assert all(reports.read(one) is not None for one in made)
    assert reports.read(made[0][:-1]) is None
    assert reports.read(made[0] + b"\0") is None


def test_what_no_randomizer_makes_is_not_read():
    cells, numbers = Reports(shuffled.HISTOGRAM, 1.0, 1.0), Reports(shuffled.MEAN, 1.0, 2.0**-19)
    for value in (-1, 3, 2**40):
        assert cells.read(struct.pack("<q", value)) is None
    for value in (-(2**63), 2**63 - 1, numbers.furthest + 1, -numbers.furthest - 1):
        assert numbers.read(struct.pack("<q", value)) is None
    assert numbers.read(struct.pack("<q", numbers.furthest)) is not None
    assert numbers.furthest == 2**19 + 40 * 2**20


def test_what_reaches_beyond_is_cut_off():
    numbers = Reports(shuffled.MEAN, 1.0, 2.0**-19)
    assert numbers.read(numbers._bytes(np.array([[2**50]])))[0] == numbers.furthest
    assert numbers.read(numbers._bytes(np.array([[-(2**50)]])))[0] == -numbers.furthest


def test_the_estimate_is_unbiased():
    """Over many draws the estimate of fixed values is their sum; with dummies, after their expected share is taken out."""
    reports = Reports(shuffled.HISTOGRAM, 1.5, 1.0)
    values = [0, 0, 1, 2, 2, 2]
    rows = np.eye(3)[values]
    stream, found = words("many"), []
    for _ in range(300):
        found.append(reports.estimate([reports.read(reports.of(row, stream)) for row in rows], 6))
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - [2, 1, 3]) < 5 * error).all()
    numbers = Reports(shuffled.MEAN, 2.0, 2.0**-10)
    found = [
        numbers.estimate([numbers.read(numbers.of(np.array([z]), stream)) for z in (-1.0, 0.5, 0.75)], 3)[0]
        for _ in range(800)
    ]
    assert abs(np.mean(found) - 0.25) < 5 * np.std(found) / np.sqrt(len(found))
    # two of eight items are dummies, and are expected to be two
    items = [np.array([0])] * 2 + [np.array([1])] * 6
    pure = Reports(shuffled.HISTOGRAM, 20.0, 1.0)
    assert pure.estimate(items, 8, 2.0) == pytest.approx([0, 8, 0], abs=1e-6)


def test_lists_of_cuts():
    cuts = {(2, 0, 3), (1, 4, 1)}
    assert take_cuts(cuts_bytes(cuts) + b"rest", 5, 4) == (frozenset(cuts), b"rest")
    assert take_cuts(cuts_bytes(()), 5, 4) == (frozenset(), b"")
    good = cuts_bytes(cuts)
    for bad in (b"", b"\1", good[:-1], cuts_bytes({(0, 0, 1)}), cuts_bytes({(0, 5, 1)}), cuts_bytes({(0, 1, 5)}),
                cuts_bytes({(0, 1, 0)}), struct.pack("<I", 2) + 2 * struct.pack("<III", 0, 1, 1),
                struct.pack("<I", 2**32 - 1)):  # fmt: skip
        assert take_cuts(bad, 5, 4) is None


def test_the_curators_word():
    said = Total(np.array([1.5, -2.0]), 4, 3, dict(zip(DROPPED, range(4), strict=True)), frozenset({(0, 1, 2)}))
    body = said.to_bytes()
    again = Total.from_bytes(body, 5, 4, 2)
    assert again is not None
    assert again.to_bytes() == body
    assert again.realised(5)["cuts"] == [[0, 1, 2]]
    assert len(body) <= Total.longest(5, 2)
    nan = Total(np.array([np.nan, 0.0]), 4, 3, said.dropped).to_bytes()
    many = Total(np.zeros(2), 6, 3, said.dropped).to_bytes()
    nothing = Total(np.zeros(2), 4, 0, said.dropped).to_bytes()
    for bad in (b"", body[:-1], body + b"\0", nan, many, nothing):
        assert Total.from_bytes(bad, 5, 4, 2) is None


# ── what is dropped ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_that_is_dropped_is_counted_by_its_reason(parties):
    curator = parties[0]
    reports = Reports(shuffled.HISTOGRAM, 1.0, 1.0)

    def sealed(value, study=STUDY, width="<q"):
        return seal(curator.card, struct.pack(width, value), study, 1, ROSTER)

    good = [sealed(value) for value in (0, 1, 2, 2)]
    hands = {
        0: good[:2],
        1: [good[1], good[2]],  # a copy of what somebody else holds
        2: [bytes(56), sealed(0, study=b"t" * 32), good[0][:-1]],  # nonsense, another study's, cut off
        3: [sealed(7), sealed(1, width="<i"), good[3]],  # no cell, too short
    }

    def opens(one):
        return unseal(curator, one, STUDY, 1, ROSTER)

    found = count(hands, opens, reports, 4, b"k" * 32)
    assert sorted(int(one[0]) for one in found.reports) == [0, 1, 2, 2]
    assert found.dropped == {"copies": 1, "sealed": 3, "unreadable": 2, "surplus": 0}
    fewer = count(hands, opens, reports, 3, b"k" * 32)
    assert len(fewer.reports) == 3
    assert fewer.dropped["surplus"] == 1
    # which one is left out depends on the curator's secret, not on the order in which they came
    again = count(dict(reversed(hands.items())), opens, reports, 3, b"k" * 32)
    assert sorted(map(str, again.reports)) == sorted(map(str, fewer.reports))
    left = {
        tuple(sorted(int(one[0]) for one in count(hands, opens, reports, 3, bytes([k]) * 32).reports))
        for k in range(30)
    }
    assert len(left) > 1


# ── origins ───────────────────────────────────────────────────────────────────────────────────────────────────────────

GRAPH, HOPS, LAZY = graphs.path(4), 3, 0.5


def keys(trial):
    return [hashlib.sha256(f"{trial} {u}".encode()).digest() for u in range(4)]


def shuffle(own, secrets, ordered=sorted):
    """Everybody's last hand, as the bytes that are handed over: the machine that peers run, without the wires."""
    hands = [{report} for report in own]
    arrived = [[report] for report in own]
    for r in range(1, HOPS + 1):
        after, order = [set() for _ in range(4)], [[] for _ in range(4)]
        for u in range(4):
            made = hop(hands[u], secrets[u], r, GRAPH.neighbors(u).tolist(), LAZY)
            for v, reports in [(u, made.stays), *made.bundles.items()]:
                after[v] |= set(reports)
                order[v] += [one for one in arrived[u] if one in set(reports)]
        hands, arrived = after, order
    return [b"".join(ordered(arrived[u])) for u in range(4)]


@pytest.fixture(scope="module")
def trials(parties):
    """(own sealed reports, keys): reports of the same value, sealed afresh, so that contents tell nothing."""
    made = [seal(parties[0].card, struct.pack("<q", 1), STUDY, 1, ROSTER) for _ in range(4000)]
    return [(made[4 * trial : 4 * trial + 4], keys(trial)) for trial in range(1000)]


def places(own, handed):
    return tuple(next(v for v in range(4) if report in handed[v]) for report in own)


def test_where_reports_end_has_the_law_of_the_walk_and_no_two_of_them_are_dependent(trials):
    """The joint law of all places is the product of the rows of Pᵗ: what the theorem takes for the curator's view."""
    law = np.linalg.matrix_power(Shuffle(GRAPH, HOPS, 1.0, laziness=LAZY).transition.toarray(), HOPS)
    seen = [places(own, shuffle(own, secrets)) for own, secrets in trials]
    for u, w in itertools.combinations(range(4), 2):
        joint = np.zeros((4, 4))
        for one in seen:
            joint[one[u], one[w]] += 1
        expected = np.outer(law[u], law[w]) * len(seen)
        assert stats.chisquare(joint.ravel(), expected.ravel()).pvalue > 1e-6
        # if both were moved by one draw, it would show
        assert (
            stats.chisquare((np.diag(law[u]) * len(seen)).ravel() + 1e-9, expected.ravel(), sum_check=False).pvalue
            < 1e-6
        )


def distinguisher(trials, ordered=sorted, mark=lambda sealed, u: sealed):
    """How well bytes and their order tell whose of two reports in one hand is that of user 0 and whose that of user 1.

    Both end there with some probability whatever is done; given that, an honest hand shows nothing of who is who. Looked at: which
    comes first, and which has the larger first, last, and summed bytes. Returns the smallest p-value of "as often as not".
    """
    features = {
        "first": lambda a, b, hand: hand.index(a) < hand.index(b),
        "head": lambda a, b, hand: a[0] < b[0],
        "tail": lambda a, b, hand: a[-1] < b[-1],
        "sum": lambda a, b, hand: sum(a) < sum(b),
    }
    wins, games = dict.fromkeys(features, 0), 0
    for own, secrets in trials:
        own = [mark(sealed, u) for u, sealed in enumerate(own)]
        handed = shuffle(own, secrets, ordered)
        where = places(own, handed)
        if where[0] == where[1]:
            games += 1
            for name, feature in features.items():
                wins[name] += feature(own[0], own[1], handed[where[0]])
    assert games > 100
    return min(stats.binomtest(won, games).pvalue for won in wins.values())


def test_a_hand_shows_nothing_of_whose_reports_are_in_it(trials):
    assert distinguisher(trials) > 1e-6


def test_the_same_distinguisher_finds_planted_leaks(trials):
    assert distinguisher(trials, ordered=list) < 1e-9  # in the order of arrival, which begins with the holder's own
    marked = distinguisher(trials, mark=lambda sealed, u: bytes([u]) + sealed[1:])
    assert marked < 1e-9  # one byte that depends on the origin


def test_the_view_is_that_of_a_simulator_who_knows_no_origins(trials):
    """From (places, contents) alone, with reports sealed by anybody, the same law: here of how many each hands over."""

    def shape(own, handed):
        return tuple(len(hand) // len(own[0]) for hand in handed)

    real = [shape(own, shuffle(own, secrets)) for own, secrets in trials]
    permuted = [
        shape(own[::-1], shuffle(own[::-1], secrets)) for own, secrets in trials
    ]  # everybody starts with somebody else's sealed report: bytes do not matter
    kinds = sorted({*real, *permuted})
    table = np.array([[seen.count(kind) for kind in kinds] for seen in (real, permuted)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 10]).pvalue > 1e-6


def test_a_task_that_is_no_number_and_no_cell_is_refused():
    table = Task(kind="table", columns=("x", "y"), categories=(("a", "b"), ("c", "d")))
    assert Reports(table, 1.0, 1.0).mechanism.domain == 4


# ── the simulator ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("reporting", ["all", "single"])
def test_answers_have_the_distribution_of_the_simulators(reporting):
    """The steps of peers, run many times without wires, against `netdp.families.shuffle.simulate` of the same study."""
    values, graph = [0, 0, 0, 1, 2, 2], graphs.complete(6)
    reports = Reports(shuffled.HISTOGRAM, 2.0, 1.0)
    protocol = Shuffle(graph, 4, 2.0, reporting=reporting)
    stream, ours, theirs = words("simulated"), [], []
    for trial in range(300):
        secrets = [hashlib.sha256(f"{reporting} {trial} {u}".encode()).digest() for u in range(6)]
        said = {
            hashlib.sha256(key).digest(): reports.of(np.eye(3)[v], stream)
            for key, v in zip(secrets, values, strict=True)
        }
        hands = [{hashlib.sha256(key).digest()} for key in secrets]
        for r in range(1, 5):
            after = [set() for _ in range(6)]
            for u in range(6):
                made = hop(hands[u], secrets[u], r, graph.neighbors(u).tolist())
                for v, moved in made.bundles.items():
                    after[v] |= set(moved)
            hands = after
        if reporting == "single":
            picked = [pick(hand, key) for hand, key in zip(hands, secrets, strict=True)]
            items = [reports.dummy(stream) if one is None else said[one] for one in picked]
            empty = expected_empty(graph, range(6))
        else:
            items, empty = [said[one] for hand in hands for one in hand], 0.0
        ours.append(reports.estimate([reports.read(item) for item in items], 6, empty))
        null = 0 if reporting == "single" else None
        theirs.append(6 * collect(protocol, RandomizedResponse(3, 2.0), values, seed=trial, null=null).estimate)
    for cell in range(3):
        a, b = np.array(ours)[:, cell], np.array(theirs)[:, cell]
        assert stats.ks_2samp(a.round(9), b.round(9)).pvalue > 1e-5
        if reporting == "all":
            assert abs(a.mean() - values.count(cell)) < 5 * a.std() / np.sqrt(len(a))
    wrong = np.array(ours)[:, 0] + 0.5 * np.std(ours, axis=0)[0]
    assert stats.ks_2samp(wrong, np.array(theirs)[:, 0]).pvalue < 1e-5  # a shift of half a deviation is seen
