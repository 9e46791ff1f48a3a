"""Attacks on network shuffling: the score against brute force, sound claims survive, reports that stay at home do not.

Proof: docs/proofs/shuffle.md#shuffling-attack.
"""

import itertools
import math

import numpy as np
import pytest

from netdp import graphs
from netdp.audit import SIMULATOR, Verdict, attacks, audit, audit_pair, look
from netdp.errors import Unsupported
from netdp.families.shuffle import attack as shuffle_attack
from netdp.families.shuffle.attack import Response, ShuffleAttack, fit, hops_made, stated_law, walked, where_it_ends
from netdp.families.shuffle.protocol import ShuffledView, ShuffleTranscript
from netdp.families.shuffle.simulate import ShuffledReports, shuffle_reports
from netdp.protocols import FaultyShuffle, RelayedShuffle, Shuffle

# a triangle with a tail: degrees 3, 2, 2, 2, 1
KITE = graphs.Graph.from_edges(5, np.array([[0, 1], [0, 2], [1, 2], [0, 3], [3, 4]]))
SHUFFLE = Shuffle(graphs.regular(30, 4, seed=1), rounds=14, epsilon0=3.0)


def here(*arguments, **dummies):
    """The simulator; a function of this file is not sent to other processes, which take longer to start than this takes."""
    return shuffle_reports(*arguments, **dummies)


def one_hop_fewer(protocol, reports, seed, **dummies):
    return shuffle_reports(protocol.replace(rounds=protocol.rounds - 1), reports, seed, **dummies)


def at_home(protocol, reports, seed, **dummies):
    """Nobody passes anything on; the traffic says otherwise."""
    run = shuffle_reports(protocol, reports, seed, **dummies)
    stayed = np.arange(protocol.n)
    transcript = ShuffleTranscript(stayed, stayed, stayed)
    return ShuffledReports(transcript.view(np.asarray(reports)), transcript, run.traffic, seed, protocol)


def handed_over(protocol, holders, reports):
    """A run of which the curator sees this; whose reports they were is nobody's knowledge."""
    view = ShuffledView(protocol.n, np.array(holders), np.array(reports))
    return ShuffledReports(view, None, None, 0, protocol)


def chances(protocol, value):
    """(P(report 0), P(report 1)) of who holds this value."""
    true = 1 / (1 + math.exp(-protocol.epsilon0))
    return (1 - true, true) if value else (true, 1 - true)


def over_all_origins(protocol, target, holders, reports):
    """log P(what the curator sees | target holds 1)/P(… | 0), summed over whose report each item is."""
    laws, n = walked(protocol, np.eye(protocol.n)), protocol.n
    worlds = []
    for held in (0, 1):
        total = 0.0
        for owners in itertools.permutations(range(n)):
            total += np.prod(
                [
                    laws[w, i] * chances(protocol, held * (w == target))[r]
                    for w, i, r in zip(owners, holders, reports, strict=True)
                ]
            )
        worlds.append(total)
    return math.log(worlds[1] / worlds[0])


VIEWS = [([0, 0, 1, 3, 4], [1, 0, 1, 0, 0]), ([0, 1, 2, 2, 2], [0, 0, 0, 1, 1]), ([3, 3, 3, 3, 4], [1, 1, 1, 0, 1])]


@pytest.mark.parametrize(("holders", "reports"), VIEWS)
def test_once_mixed_the_score_is_the_likelihood_ratio_over_all_origins(holders, reports):
    protocol = Shuffle(KITE, rounds=150, epsilon0=1.5)
    score = ShuffleAttack(protocol, (), 1, SIMULATOR).score(handed_over(protocol, holders, reports))
    assert score == pytest.approx(over_all_origins(protocol, 1, holders, reports), abs=1e-6)


@pytest.mark.parametrize(("holders", "reports"), VIEWS)
def test_after_a_few_hops_it_is_near_the_likelihood_ratio(holders, reports):
    protocol = Shuffle(KITE, rounds=4, epsilon0=1.5)
    score = ShuffleAttack(protocol, (), 1, SIMULATOR).score(handed_over(protocol, holders, reports))
    expected = over_all_origins(protocol, 1, holders, reports)
    assert score == pytest.approx(expected, abs=0.2)
    assert abs(expected) > 0.05


def test_with_one_item_per_holder_the_score_is_the_likelihood_ratio():
    protocol = Shuffle(graphs.complete(3), rounds=60, epsilon0=1.5, reporting="single")
    attack = ShuffleAttack(protocol, (), 1, SIMULATOR)
    for reports in itertools.product((0, 1), repeat=3):
        worlds = []
        for held in (0, 1):
            total = 0.0
            for places in itertools.product(range(3), repeat=3):
                hands = [[w for w in range(3) if places[w] == i] or [-1] for i in range(3)]
                for picked in itertools.product(*hands):  # −1: a dummy, made from 0
                    chance = np.prod([1 / len(hand) for hand in hands])
                    total += chance * np.prod(
                        [chances(protocol, held * (w == 1))[r] for w, r in zip(picked, reports, strict=True)]
                    )
            worlds.append(total)
        score = attack.score(handed_over(protocol, [0, 1, 2], reports))
        assert score == pytest.approx(math.log(worlds[1] / worlds[0]), abs=1e-9)


@pytest.mark.parametrize("reporting", ["all", "single"])
@pytest.mark.parametrize("colluders", [(), (2, 9)])
def test_likelihood_ratios_have_mean_one_without_the_target_value(reporting, colluders):
    attack = ShuffleAttack(SHUFFLE.replace(epsilon0=1.0, reporting=reporting), colluders, 5, SIMULATOR)
    ratios = np.exp(np.concatenate([attack.batch(False, seed) for seed in range(10)]))
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))


def test_colluders_know_whose_report_they_are_handed_in_the_first_round():
    beside = int(SHUFFLE.graph.neighbors(5)[0])
    attack = ShuffleAttack(SHUFFLE, (beside,), 5, SIMULATOR)
    caught = 0
    for seed in range(60):
        run, first = attack.runs(True, seed)
        if first[5] == beside:
            caught += 1
            mine = run.view.reports[run.transcript.origins == 5]
            assert attack.score(run, first) == pytest.approx(3.0 if mine[0] == 1 else -3.0)
        else:
            assert abs(attack.score(run, first)) < 3.0
    assert 5 <= caught <= 30  # one in four
    assert stated_law(SHUFFLE.replace(rounds=1), 5, (beside,))[beside] == 0.0


@pytest.mark.parametrize("how", [{"values": 4}, {"variation": 0.5}])
@pytest.mark.parametrize("reporting", ["all", "single"])
def test_so_they_have_of_a_randomizer_that_is_stated(reporting, how):
    """Under the target's 0: the other three laws may be anything as long as they are those of the reports."""
    protocol = SHUFFLE.replace(epsilon0=1.5, reporting=reporting, **how)
    attack = ShuffleAttack(protocol, (), 5, SIMULATOR)
    ratios = np.exp(np.concatenate([attack.batch(False, seed) for seed in range(10)]))
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))
    response, rng = Response(protocol), np.random.default_rng(0)
    for row, value in enumerate((0, 1, response.others)):
        found = np.bincount(response(np.full(40_000, value), rng), minlength=response.laws.shape[1]) / 40_000
        assert found == pytest.approx(response.laws[row], abs=0.012)
    e, zero, one = math.exp(1.5), *response.laws[:2]
    assert (zero / one).max() == pytest.approx(e)
    if "variation" in how:
        assert np.maximum(zero - one, 0).sum() == pytest.approx(0.5)


def test_binary_answers_under_a_claim_of_more_values_are_refuted(monkeypatch):
    """Peers whose answers are yes or no, where 64 values are stated."""
    protocol = SHUFFLE.replace(values=64)
    pair = look(protocol, ["curator"], 5)
    sound = audit_pair(protocol, pair, trials=700, seed=1, system=here)
    assert sound.verdict is not Verdict.REFUTED
    monkeypatch.setattr(shuffle_attack, "Response", lambda protocol: Response(protocol.replace(values=None)))
    planted = audit_pair(protocol, pair, trials=2000, seed=1, system=here)
    assert planted.verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("protocol", "users"),
    [
        (SHUFFLE, []),
        (SHUFFLE.replace(values=8), []),
        (SHUFFLE.replace(values=8, reporting="single"), []),
        (SHUFFLE.replace(variation=0.6), []),
        (SHUFFLE.replace(values=8), [int(w) for w in SHUFFLE.graph.neighbors(5)[:2]]),
        (SHUFFLE.replace(reporting="single"), []),
        (SHUFFLE.replace(laziness=0.3, rounds=24), []),
        (SHUFFLE, [int(w) for w in SHUFFLE.graph.neighbors(5)[:2]]),
    ],
    ids=[
        "all",
        "8 values",
        "8 values, single",
        "variation",
        "8 values, with neighbours",
        "single",
        "lazy",
        "with neighbours",
    ],
)
def test_a_sound_shuffle_is_not_refuted(protocol, users):
    pair = look(protocol, ["curator", *users], 5)
    found = audit_pair(protocol, pair, trials=700, seed=1, system=here)
    assert found.verdict is not Verdict.REFUTED
    assert found.measured.by_counts <= found.claimed


@pytest.mark.parametrize("reporting", ["all", "single"])
def test_reports_that_stay_at_home_are_refuted(reporting):
    protocol = SHUFFLE.replace(reporting=reporting)
    assert audit_pair(protocol, look(protocol, "curator", 5), trials=400, system=at_home).verdict is Verdict.REFUTED


def test_one_hop_fewer_is_counted():
    """Whatever the run says about itself: the stated protocol is what it is held against."""
    for protocol in (SHUFFLE, SHUFFLE.replace(laziness=0.05)):
        wide = protocol.replace(graph=graphs.regular(3000, 4, seed=1))
        reports = np.zeros(wide.n)
        assert hops_made(wide, shuffle_reports(wide, reports, 1)).ok
        assert not hops_made(wide, one_hop_fewer(wide, reports, 1)).ok


def test_where_reports_end_tells_how_many_hops_they_made():
    few = SHUFFLE.replace(rounds=3)
    assert where_it_ends(few, 5, here, runs=500).ok
    assert not where_it_ends(few, 5, one_hop_fewer, runs=500).ok
    assert not where_it_ends(few, 5, at_home, runs=500).ok
    assert where_it_ends(SHUFFLE, 5, here, runs=500).ok


def test_a_goodness_of_fit_puts_small_cells_together_and_misses_nothing_impossible():
    law = np.array([0.5, 0.499, 0.0005, 0.0005])
    counts = np.array([500, 500, 0, 0])
    assert fit(counts, law) > 0.5  # alone, the small cells would be no test
    assert fit(counts, np.array([0.5, 0.0, 0.5, 0.0])) == 0.0
    assert fit(np.array([500, 300, 100, 100]), law) < 1e-9
    rng = np.random.default_rng(0)
    chance = [fit(np.bincount(rng.choice(4, 300, p=law), minlength=4), law) for _ in range(400)]
    assert np.mean(np.array(chance) < 0.1) < 0.15


def test_shuffles_with_more_to_see_are_refused_with_a_reason():
    faulty = FaultyShuffle(graphs.complete(5), rounds=4, epsilon0=1.0, outages=0.2)
    relayed = RelayedShuffle(graphs.complete(5), rounds=4, epsilon0=1.0, cover=2)
    for protocol in (faulty, relayed):
        with pytest.raises(Unsupported, match="audit the Shuffle"):
            attacks(protocol)


def test_the_whole_audit_counts_hops():
    """One hop fewer is told by the audit itself, with its default budget."""

    def one_hop_fewer(protocol, reports, seed, **more):
        return shuffle_reports(protocol.replace(rounds=max(protocol.rounds - 1, 1)), reports, seed, **more)

    protocol = Shuffle(graphs.complete(10), rounds=3, epsilon0=2.0)
    sound = audit(protocol, trials=256, colluders=1)
    assert sound.ok
    assert [check.name for check in sound.checks][:2] == ["hops of the reports", "where reports end"]
    assert not audit(protocol, trials=256, colluders=1, system=one_hop_fewer).ok
