"""What a shuffled study states, promises and enters.

Proofs: docs/proofs/shuffle.md#shuffling-peers, #faulty-shuffling, #relayed-shuffling.
"""

import hashlib
import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from netdp import graphs
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.account.relay import overflow_given
from netdp.families.shuffle.peer_walk import pattern_of
from netdp.families.shuffle.reports import cuts_bytes, hop
from netdp.mechanisms.responses import RandomizedResponse
from netdp.peers.ledger.losses import seen
from netdp.peers.messages import Item, ItemKind, Key
from netdp.peers.records import Misfit
from netdp.peers.study import Study
from netdp.peers.study.explanation import explain
from netdp.privacy.clones import Heap
from netdp.protocols import FaultyShuffle, RelayedShuffle, Shuffle
from netdp.protocols.accounting import account

sys.path.append(str(Path(__file__).parent))

import shuffled

NAMES = [f"p{u:02d}" for u in range(24)]


def plan(**options):
    settings = {"graph": "complete:24", "epsilon": 0.8, "delta": 1e-3, "kind": "shuffle", **options}
    return Study.plan("poll", shuffled.HISTOGRAM, NAMES, **settings)


@pytest.fixture(scope="module")
def study():
    return plan()


# ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_plan_finds_hops_and_the_least_noise(study):
    how = study.settings
    assert study.check_promise() <= 0.8 < how.epsilon0
    more = study.running.with_settings(how.model_dump() | {"epsilon0": how.epsilon0 * 1.003})
    assert more.worst_epsilon(0, 1e-3) > 0.8  # four digits, no more to gain
    assert how.rounds == 3
    assert study.curator.name == "curator"
    assert study.privacy.colluders == 0


def test_the_promise_is_that_of_the_theorems(study):
    how, delta = study.settings, 1e-3
    direct = Shuffle(study.graph, how.rounds, how.epsilon0, values=3)
    alone = account(direct, "curator").worst_epsilon(delta)
    cells = Randomizer(how.epsilon0, values=3)
    one_party = cells.heap(22).epsilon(delta)
    assert study.running.promise(0).worst_epsilon(delta) == pytest.approx(max(alone, one_party), rel=2e-3)
    with_one = max(account(direct, ("curator", 3)).worst_epsilon(delta), cells.heap(21).epsilon(delta))
    assert study.running.promise(1).worst_epsilon(delta) == pytest.approx(with_one, rel=2e-3)
    many = study.running.promise(12)  # too many coalitions to look at each: the report's own loss
    assert many.worst_epsilon(0.0) == pytest.approx(how.epsilon0)


def test_few_parties_hide_each_other_little_and_colluders_undo_it():
    tiny = Study.plan(
        "tiny", shuffled.HISTOGRAM, NAMES[:5], graph="complete:5", epsilon=1.0, delta=1e-6, kind="shuffle"
    )
    assert 1.0 <= tiny.settings.epsilon0 < 1.01
    watched = plan(colluders=1)
    assert watched.privacy.colluders == 1
    assert 0.8 <= watched.settings.epsilon0 < 0.85


def test_a_bipartite_network_gets_laziness_and_a_server_gets_cover():
    ring = Study.plan("ring", shuffled.HISTOGRAM, NAMES[:8], graph="ring:8", epsilon=1.0, delta=1e-3, kind="shuffle")
    assert ring.settings.laziness == 0.5
    assert ring.settings.rounds > 20
    served = plan(cover=1)
    assert served.settings.cover > 1
    assert isinstance(served.protocol(), RelayedShuffle)
    assert served.running.neighbours(3) == (24,)
    assert len(served.running.neighbours(24)) == 24
    assert plan(cover=9).settings.cover == 9
    with pytest.raises(Misfit, match="cover: must be 0"):
        plan(cover=65)


def test_a_histogram_is_certified_as_what_its_peers_draw(study):
    """The randomizer of the peers is response over the cells, and the study says so; numbers and old studies say nothing."""
    mechanism = study.running.reports().mechanism
    assert (type(mechanism), mechanism.domain, study.settings.values) == (RandomizedResponse, 3, 3)
    assert study.protocol().values == 3
    older = study.replace(protocol={"values": 0})
    assert older.protocol().values is None
    assert older.running.worst_epsilon(0, 1e-3) > study.running.worst_epsilon(0, 1e-3) * 1.1
    assert any("randomized response over 3 values" in line for line in study.running.promise(0).assumptions)
    assert not any("response" in line for line in older.running.promise(0).assumptions)
    assert "\nvalues = 3 " in study.text
    assert "\nvalues = " not in older.text
    numbers = Study.plan("mean", shuffled.MEAN, NAMES[:8], graph="complete:8", epsilon=1.0, delta=1e-3, kind="shuffle")
    assert numbers.settings.values == 0
    for wrong, words in (({"values": 4}, "over 3 cells, got 4; write 3"), ({"values": -1}, "got -1")):
        with pytest.raises(Misfit, match=words):
            study.replace(protocol=wrong)
    with pytest.raises(Misfit, match="numbers with Laplace noise, got 3"):
        numbers.replace(protocol={"values": 3})
    served = plan(cover=1)
    assert served.protocol().values == 3
    charged, before = (one.running.loss(tuple(range(24)), 5) for one in (study, older))
    for looking in ("curator", "p00", 2):
        ours, theirs = (seen(loss, tuple(NAMES), "p05", looking) for loss in (charged, before))
        assert float(ours.epsilon(1e-3)) < float(theirs.epsilon(1e-3))
        assert float(ours.epsilon(0.0)) == pytest.approx(float(theirs.epsilon(0.0)))


def test_studies_from_before_keep_their_hash_and_their_promise():
    # If this fails, what parties signed in older versions no longer fits.
    old = shuffled_among(8, epsilon0=0.5, rounds=6)
    assert old.hash.hex() == "109739d8b08fff282f9e9939a32eed2da259a0fd87f3a3d883f41302add609da"
    assert "values" not in old.to_dict()["protocol"]
    assert old.running.promise(0).worst_epsilon(1e-3) == pytest.approx(0.47199143133403465, rel=1e-9)
    stated = old.replace(protocol={"values": 3})
    assert stated.hash != old.hash
    assert Study(**stated.to_dict()) == stated


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 0}, "rounds: must be 1 to"),
        ({"epsilon0": 21.0}, "epsilon0: must be more than 0"),
        ({"cover": -1}, "cover: must be 0"),
        ({"grid": 0.3}, "grid: must be a power of two"),
        ({"laziness": 1e-5}, "laziness: laziness must be 0 or lie in"),
        ({"reporting": "some"}, "reporting"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(study, change, words):
    with pytest.raises(Misfit, match=words):
        study.replace(protocol=change)


@pytest.mark.parametrize(
    ("option", "words"),
    [({"rounds": 0}, "rounds: must be 1 to"), ({"reporting": ""}, "reporting"), ({"cover": -1}, "cover: must be 0"),
     ({"curator": ""}, "name")],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused_and_not_replaced(option, words):
    with pytest.raises(Misfit, match=words):
        plan(**option)


def test_of_several_attempts_everybody_learns_so_many_reports():
    twice = shuffled_among(8, epsilon0=0.5, rounds=6).replace(privacy={"attempts": 2, "epsilon": 1.0})
    text = " ".join(explain(twice).split())
    assert "in larger coalitions, 1 is promised" in text
    assert "computed afterwards and entered, at most 1" in text


def test_what_a_study_must_have(study):
    with pytest.raises(Misfit, match="curator: shuffle needs one"):
        study.replace(curator=None)
    with pytest.raises(Misfit, match="bipartite"):
        study.replace(network={"graph": "ring:24"})
    with pytest.raises(Misfit, match="not variance"):
        study.replace(task={"kind": "variance", "column": "x", "bounds": [0, 1], "categories": None})


def test_the_study_in_plain_words(study):
    text = " ".join(explain(study).split())
    assert "the curator, or any one party epsilon 0.8" in text
    assert "promised: at most 0.8" in text
    assert "they look, and do not deviate. Against participants who deviate" in text
    assert "sealed to the curator's key" in text
    assert "float samplers" not in text


def test_absences_and_attempts_are_priced(study):
    """Of 24 who all know each other, two may be missing: 22 are planned for; of two attempts each has less to lose."""
    fewer = plan(absent=2)
    alone = Study.plan(
        "poll", shuffled.HISTOGRAM, NAMES[:22], graph="complete:22", epsilon=0.8, delta=1e-3, kind="shuffle"
    )
    assert fewer.settings.epsilon0 == pytest.approx(alone.settings.epsilon0, rel=2e-3)
    assert fewer.settings.epsilon0 < study.settings.epsilon0
    assert fewer.smallest_roster == 22
    twice = study.replace(privacy={"attempts": 2, "epsilon": 2.0})
    one, both = (twice.running.once(0).worst_epsilon(1e-3), twice.running.promise(0).worst_epsilon(1e-3))
    assert one < both < 2 * study.settings.epsilon0
    assert twice.running.loss(tuple(range(24)), 0) == study.running.loss(tuple(range(24)), 0)  # of one attempt


def test_a_network_that_falls_apart_without_somebody_says_so():
    names = NAMES[:5]
    edges = [[a, b] for a, b in itertools.combinations(names[:3], 2)] + [[names[2], names[3]], [names[3], names[4]]]
    with pytest.raises(Misfit, match=r"privacy\.absent: without p03 the others cannot shuffle"):
        Study(
            name="w", task=shuffled.HISTOGRAM.model_dump(mode="json"), party=[{"name": one} for one in names],
            curator={"name": "curator"}, network={"edges": edges}, privacy={"epsilon": 1.0, "delta": 1e-3, "colluders": 0,
            "absent": 1}, protocol={"kind": "shuffle", "epsilon0": 1.0, "rounds": 9, "laziness": 0.5},
        )  # fmt: skip


# ── what parties learn without the curator ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("n", "k"), [(3, 1), (5, 1), (5, 2), (6, 3)])
def test_parties_without_the_curator_see_a_heap_of_the_others(n, k):
    """Every response of everybody: the answer tells k parties how many of the others' reports say 1."""
    e0 = math.log(3)
    keep = 0.75
    for data in itertools.product((0, 1), repeat=n - 1 - k):
        laws = []
        for value in (0, 1):
            law = np.array([1.0])
            for bit in (*data, value):
                law = np.convolve(law, [1 - keep, keep] if bit else [keep, 1 - keep])
            laws.append(law)
        for epsilon in (0.0, 0.2, 0.5, 0.9):
            truth = max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in (laws, laws[::-1]))
            assert Heap.of(n - 1 - k, e0).deltas(np.array([epsilon]))[0] >= truth * (1 - 1e-9)


def test_of_single_reports_a_party_may_know_two_its_own_and_its_dummy():
    """All places of four reports: of the other items handed over, the coalition {3} knows at most two, and sometimes two."""
    fewest = 9
    for where in itertools.product(range(4), repeat=4):
        held = {v: [u for u in range(4) if where[u] == v] for v in range(4)}
        for picks in itertools.product(*(held[v] or [None] for v in range(4))):
            if 0 not in picks:
                continue  # the victim's report is not handed over
            unknown = sum(pick != 3 if pick is not None else v != 3 for v, pick in enumerate(picks))
            fewest = min(fewest, unknown - 1)
    assert fewest == 4 - 1 - 2


# ── what is entered, and what is entered afterwards ───────────────────────────────────────────────────────────────────


def test_the_entry_holds_the_curator_every_party_and_everybody(study):
    two = study.replace(privacy={"colluders": 1, "epsilon": 2.0})
    loss = two.running.loss(tuple(range(24)), 5)
    assert set(loss["single"]) == {*NAMES, "curator"} - {"p05"}
    assert set(loss["sizes"]) == {"2"}
    roster = tuple(NAMES)
    found = {k: float(seen(loss, roster, "p05", k).epsilon(1e-3)) for k in ("curator", "p00", 0, 1, 2, 3, 23)}
    assert found["curator"] == found["p00"] == found[0] == found[1] < found[2] <= found[3] == found[23]
    assert found[1] == pytest.approx(two.running.promise(0).worst_epsilon(1e-3), rel=1e-6)
    assert found[2] == pytest.approx(two.running.promise(1).worst_epsilon(1e-3), rel=1e-6)
    assert float(seen(loss, roster, "p05", 23).epsilon(0.0)) == pytest.approx(study.settings.epsilon0)


def test_nothing_is_corrected_if_nothing_was_lost(study):
    calm = {"expected": 24, "hands": 24, "accepted": 24, "dropped": {}, "cuts": []}
    assert study.running.recomputed(1, tuple(range(24)), 0, calm) is None


def test_what_was_lost_is_accounted_for_link_by_link(study):
    how, delta = study.settings, 1e-3
    cuts = [[7, v, 2] for v in range(24) if v != 7]
    lost = {"expected": 24, "hands": 23, "accepted": 22, "dropped": {}, "cuts": cuts}
    faulty = FaultyShuffle(study.graph, how.rounds, how.epsilon0, values=3)
    direct = account(faulty, "curator", transcript=pattern_of(lost, tuple(range(24)), how.rounds)).worst_epsilon(delta)
    parties = Randomizer(how.epsilon0, values=3).heap(20).epsilon(delta)
    found = study.running.realised(0, lost).worst_epsilon(delta)
    assert found == pytest.approx(max(direct, parties), rel=2e-3)
    assert found > study.check_promise()
    loss = study.running.recomputed(1, tuple(range(24)), 0, lost)
    assert float(seen(loss, tuple(NAMES), "p00", 1).epsilon(delta)) == pytest.approx(found, rel=1e-6)
    few = study.running.realised(0, lost | {"accepted": 1}).worst_epsilon(delta)  # nobody to hide among
    assert few == pytest.approx(how.epsilon0, rel=3e-3)


def test_a_table_that_is_larger_anywhere_is_entered():
    """At the study's δ no more than was promised, at a smaller one more: a ledger adds up whole tables."""
    small = shuffled_among(8, epsilon0=0.05, rounds=6)
    cuts = [[3, 4, 4], [4, 6, 4], [6, 5, 4], [7, 0, 5]]
    lost = {"expected": 8, "hands": 8, "accepted": 8, "dropped": {}, "cuts": cuts}
    old, new = small.running.once(0), small.running.realised(0, lost)
    assert new.worst_epsilon(1e-3) <= old.worst_epsilon(1e-3)
    assert new.worst_epsilon(1e-4) > old.worst_epsilon(1e-4) * 1.01
    loss = small.running.recomputed(1, tuple(range(8)), 0, lost)
    assert float(seen(loss, tuple(NAMES[:8]), "p00", "curator").epsilon(1e-4)) >= new.worst_epsilon(1e-4) * (1 - 1e-6)


def test_cuts_of_our_own_that_the_total_does_not_name_are_counted_too():
    """Party 0 gave everybody up in round 1: its hand holds its own report or nothing, whenever the curator gets it."""
    lazy = 0.5
    few = shuffled_among(8, epsilon0=1.0, rounds=8, laziness=lazy)
    theirs = [[0, v, 1] for v in range(1, 8)]
    heard = {"expected": 8, "hands": 7, "accepted": 6, "dropped": {}, "cuts": theirs}
    lacking = few.running.recomputed(1, tuple(range(8)), 0, heard)
    loss = few.running.recomputed(1, tuple(range(8)), 0, {**heard, "unsaid": [[v, 0, 1] for v in range(1, 8)]})
    truth = lazy * (math.e - math.exp(0.5)) / (1 + math.e)
    assert float(seen(lacking, tuple(NAMES[:8]), "p00", "curator").delta(0.5)) < truth
    assert float(seen(loss, tuple(NAMES[:8]), "p00", "curator").delta(0.5)) >= truth * (1 - 1e-9)


def shuffled_among(n, **settings):
    return Study(
        name="few", task=shuffled.HISTOGRAM.model_dump(mode="json"), party=[{"name": one} for one in NAMES[:n]],
        curator={"name": "curator"}, network={"graph": f"complete:{n}"}, protocol={"kind": "shuffle", **settings},
        privacy={"epsilon": settings["epsilon0"], "delta": 1e-3, "colluders": 0},
    )  # fmt: skip


def test_links_that_fail_make_reports_wait_more_often_and_that_is_counted():
    """How often some report finds its link full, by running the machine, against the bound given the same cuts."""
    n, rounds, cover = 6, 4, 2
    graph = graphs.complete(n)
    cuts = [[5, v, 1] for v in range(n - 1)]
    pattern = pattern_of({"cuts": cuts}, tuple(range(n)), rounds)
    bound = overflow_given(FaultyShuffle(graph, rounds, 1.0), pattern, cover)
    waited = 0
    for trial in range(400):
        hands = [{bytes([trial % 256, trial // 256, u])} for u in range(n)]
        full = False
        for r in range(1, rounds + 1):
            after = [set() for _ in range(n)]
            for u in range(n):
                key = hashlib.sha256(f"{trial} {u}".encode()).digest()
                closed = (5,) if u != 5 and r > 1 else ()
                made = hop(hands[u], key, r, graph.neighbors(u).tolist(), room=cover, closed=closed)
                full |= made.waited > 0
                after[u] |= set(made.stays)
                for v, reports in made.bundles.items():
                    if u != 5:
                        after[v] |= set(reports)
            hands = after
        waited += full
    assert waited / 400 <= bound + 4 * math.sqrt(bound / 400)
    assert bound < 20 * max(waited, 1) / 400


# ── what is legible ───────────────────────────────────────────────────────────────────────────────────────────────────


def item(kind, author, index, body):
    return Item(Key(kind, 1, author, index), body)


def test_bodies_that_no_honest_participant_sends_are_not_legible(study):
    running, size = study.running, study.running.reports().size
    empty, one = cuts_bytes(()), bytes(size)
    assert running.is_legible(item(ItemKind.BUNDLE, 3, 1, empty))
    assert running.is_legible(item(ItemKind.BUNDLE, 3, 1, empty + one))
    for bad in (b"", empty + one[:-1], empty + one + one, cuts_bytes({(0, 1, 99)}) + one):
        assert not running.is_legible(item(ItemKind.BUNDLE, 3, 1, bad))
    assert not running.is_legible(item(ItemKind.BUNDLE, 3, 0, empty))
    assert not running.is_legible(item(ItemKind.BUNDLE, 24, 1, empty))  # over direct links the curator sends none
    assert not running.is_legible(item(ItemKind.TOTAL, 3, 0, bytes(100)))  # nor does a party tell the total
    single = study.replace(protocol={"reporting": "single"}).running
    assert single.is_legible(item(ItemKind.BUNDLE, 3, 4, empty + one))
    assert not single.is_legible(item(ItemKind.BUNDLE, 3, 4, empty))
    served = study.replace(protocol={"cover": 4}).running
    each = served.walk().envelope
    assert served.is_legible(item(ItemKind.BUNDLE, 3, 1, bytes(23 * each)))
    assert not served.is_legible(item(ItemKind.BUNDLE, 3, 1, bytes(24 * each)))
    assert served.is_legible(item(ItemKind.BUNDLE, 24, 1, bytes(23 * (1 + each))))
    longest = served.longest()
    assert longest[ItemKind.BUNDLE] >= 23 * (1 + each)
    assert ItemKind.STATE not in longest
