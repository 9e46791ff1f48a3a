"""The file that all sign: what it accepts, its hash, what it stands for, and that its promise is kept, from both sides."""

import json
import math
import tomllib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp import graphs
from netdp.errors import FileFormatError, InvalidValue, Refused, Unsupported
from netdp.families.masked.account import component_curve
from netdp.peers.noise import least_noise
from netdp.peers.promise import promise_of
from netdp.peers.study import Study
from netdp.peers.study.files import quoted
from netdp.peers.study.task import Task
from netdp.protocols import MaskedSum, RingSum
from netdp.protocols.accounting import account

MEAN = Task(kind="mean", column="minutes", bounds=(0, 120))
NAMES = [f"c{u}" for u in range(6)]


def fields(**changes):
    """A small study, as a file states it."""
    plain = {
        "name": "waits",
        "nonce": "00112233445566778899aabbccddeeff",
        "task": {"kind": "mean", "column": "minutes", "bounds": [0, 120]},
        "privacy": {"epsilon": 2, "delta": 1e-6},
        "protocol": {"kind": "masked-sum", "sigma": 2.0, "grid": 2.0**-9, "modulus": 2**32},
        "network": {"graph": "ring:6"},
        "party": [{"name": name} for name in NAMES],
    }
    for key, change in changes.items():
        merged = isinstance(change, dict) and key in ("task", "privacy", "protocol")
        plain[key] = {**plain[key], **change} if merged else change
    return plain


@pytest.fixture(scope="module")
def planned():
    """Masked, with attempts and absences."""
    return Study.plan(
        "waits", MEAN, NAMES, graph="ring:6", epsilon=2.0, delta=1e-6, colluders=2, attempts=2, absent=1
    )  # fmt: skip


# ── the hash ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_hash_is_pinned():
    # If this fails, what parties signed in older versions no longer fits: raise `format`, then pin anew.
    found = Study(**fields()).hash.hex()
    assert found == "8caa162a38390ddfe4851e483cae00b4aa8ee970457b63cd8016e843574d0773"


def test_what_is_hashed_is_ascii_json_with_sorted_keys_and_every_default():
    text = Study(**fields(name="Wärme")).canonical
    again = json.loads(text)
    assert text.isascii()
    assert list(again) == sorted(again)
    assert again["network"] == {"edges": [[0, 1], [0, 5], [1, 2], [2, 3], [3, 4], [4, 5]]}
    assert again["timing"] == {"gather": 600.0, "patience": 60.0}
    assert again["format"] == 1


def test_the_same_study_written_differently_has_the_same_hash():
    ring = [[NAMES[(u + 1) % 6], NAMES[u]] for u in range(6)]
    same = Study(**fields(network={"edges": ring}, task={"bounds": [-0.0, 120.0]}, privacy={"epsilon": 2.0}))
    assert same.hash == Study(**fields()).hash


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Waits"}, {"nonce": "f" * 32}, {"task": {"bounds": [0, 121]}}, {"task": {"kind": "sum"}},
        {"privacy": {"delta": 1e-7}}, {"privacy": {"colluders": 2}}, {"protocol": {"sigma": math.nextafter(2.0, 3.0)}},
        {"protocol": {"modulus": 2**33}}, {"network": {"graph": "complete:6"}}, {"timing": {"gather": 1.0, "patience": 60.0}},
        {"party": [{"name": name} for name in reversed(NAMES)]},
        {"party": [{"name": name, "address": f"h:{u + 1}"} for u, name in enumerate(NAMES)]},
    ],
)  # fmt: skip
def test_every_change_changes_the_hash(change):
    changed = fields() | change if "timing" in change else fields(**change)
    assert Study(**changed).hash != Study(**fields()).hash


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

TASKS = [
    {
        "kind": "variance",
        "column": 'a "b"\\',
        "bounds": [0.1, 0.7],
        "unit": "record",
        "max_records": 9,
        "missing": "skip",
    },
    {"kind": "histogram", "column": "x", "edges": [0, 1 / 3, 1e22]},
    {"kind": "histogram", "column": "x", "categories": ["ja", "nö"], "other": True},
    {"kind": "table", "columns": ["a", "b"], "categories": [["x", "y"], ["1", "2", "3"]]},
    {"kind": "sum", "bounds": [0, 5], "value": "count"},
    {"kind": "mean", "column": "x", "bounds": [0, 5], "period": "month", "periods": ["jan", "feb"]},
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["kind"])
def test_what_is_written_is_read_back_equal(tmp_path, task):
    how = {"protocol": RING | {"rounds": 2}} if "periods" in task else {}
    study = Study(**fields() | {"task": task} | how)
    study.write(tmp_path / "s.toml")
    again = Study.read(tmp_path / "s.toml")
    assert again == study
    assert again.hash == study.hash
    assert again.text == study.text


@pytest.mark.parametrize(
    "protocol",
    [
        {"kind": "ring-sum", "sigma": 3.0, "grid": 2.0**-9, "noise": "single", "closing": 0.5},
        {"kind": "gossip", "sigma": 3.0, "grid": 2.0**-40, "rounds": 7, "refresh": 0.3},
        {"kind": "masked-sum", "sigma": 0.1 + 0.2, "grid": 2.0**-11, "modulus": 2**30, "spread": "average"},
    ],
    ids=lambda protocol: protocol["kind"],
)
def test_every_protocol_is_read_back_equal(tmp_path, protocol):
    edges = [[NAMES[u], NAMES[v]] for u in range(6) for v in range(u)]
    study = Study(**fields(network={"edges": edges}) | {"protocol": protocol})
    study.write(tmp_path / "s.toml")
    assert Study.read(tmp_path / "s.toml") == study


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_text_survives_toml(text):
    assert tomllib.loads(f"a = {quoted(text)}") == {"a": text}


@given(st.floats(1e-9, 1e9), st.floats(1e-12, 1e-4))
@settings(max_examples=30)
def test_numbers_are_written_with_all_their_digits(epsilon, delta):
    study = Study(**fields(privacy={"epsilon": epsilon, "delta": delta}))
    again = tomllib.loads(study.text)["privacy"]
    assert (again["epsilon"], again["delta"]) == (epsilon, delta)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("delta = 1e-06", "delta = 0.5", r"s\.toml:\d+: privacy\.delta: is the chance that the promise fails"),
        ("delta = 1e-06", 'delta = "1e-6"', r"privacy\.delta: Input should be a valid number"),
        ("epsilon = 2.0", "epsilom = 2.0", r"privacy\.epsilom: is not known here"),
        ('kind = "mean"', 'kind = "mode"', r"s\.toml:\d+: task\.kind: "),
        ("sigma = 2.0", "sigma = 1e-9", r"protocol: sigma=1e-09 is less than one step"),
        ('kind = "masked-sum"', 'kind = "shouting"', r"protocol\.kind: must be one of masked-sum, ring-sum, "),
        ('name = "c3"', 'name = "c 3"', r"party\[3\]\.name: a party's name"),
        ('name = "c3"', 'name = "C1"', r"party\[3\]\.name: is the same for c1 and C1"),
        ("[timing]", "[timing]\nhurry = 1", r"timing\.hurry: is not known here; known: gather, patience"),
        ("format = 1", "format = 2", r"format: "),
        ("[privacy]", "[privacy", r"is not valid TOML"),
    ],
)
def test_mistakes_in_a_file_are_named_with_their_place(tmp_path, old, new, said):
    text = Study(**fields()).text
    assert old in text
    (tmp_path / "s.toml").write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(FileFormatError, match=said):
        Study.read(tmp_path / "s.toml")


def test_the_line_of_a_mistake_is_the_right_one(tmp_path):
    text = Study(**fields()).text.replace('name = "c4"', 'name = "c4"\naddress = "nowhere"')
    (tmp_path / "s.toml").write_text(text, "utf-8")
    line = text.splitlines().index('address = "nowhere"') + 1
    with pytest.raises(FileFormatError, match=rf"s\.toml:{line}: party\[4\]\.address: must be host:port"):
        Study.read(tmp_path / "s.toml")


# ── what is refused ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "two\nlines"}, "name: must be one line"),
        ({"nonce": "abc"}, "nonce: must be 32 hexadecimal digits"),
        ({"party": [{"name": "a"}]}, "2 to 10,000 parties"),
        ({"network": {"graph": "ring:7"}}, "has 7 nodes, and there are 6 parties"),
        ({"network": {"graph": "complete:999999999"}}, "has 999999999 nodes"),
        ({"network": {"graph": "grid:2x2"}}, "has 4 nodes"),
        ({"network": {"graph": "hypercube:99"}}, "nodes, and there are 6"),
        ({"network": {"graph": "ring:"}}, "network"),
        ({"settings": {"kind": "masked-sum"}}, "settings: is not known here"),
        ({"self": 1}, "self: is not known here"),
        ({"network": {"graph": "regular:6,3"}}, "write any other out as edges"),
        ({"network": {"graph": "karate"}}, "write any other out as edges"),
        ({"network": {}}, "give one of graph"),
        ({"network": {"graph": "ring:6", "edges": []}}, "give one of graph"),
        ({"network": {"edges": [["c0", "c9"]]}}, "names 'c9', which is no party"),
        ({"network": {"edges": [["c0", "c1"], ["c1", "c0"]]}}, "listed more than once"),
        ({"network": {"edges": [["c0", "c1"]]}}, "connected"),
        ({"privacy": {"attempts": 2, "absent": 5}}, "privacy.absent: leaves 1 of 6"),
        ({"privacy": {"colluders": 6}}, "leave nobody to protect; give at most 5"),
        ({"privacy": {"colluders": 5, "absent": 1, "attempts": 2}}, "give at most 4"),
        ({"privacy": {"colluders": 0}}, "colluders: must be 1 or more"),
        ({"privacy": {"epsilon": 0}}, "epsilon: must be larger than 0"),
        ({"task": {"unit": "record", "max_records": 500_000}}, "would allow to publish one record of 3,000,000"),
        ({"protocol": {"grid": 3.0**-5}}, "grid must be a power of two"),
        ({"protocol": {"grid": 2.0, "sigma": 99.0}}, "grid: must be 1 or less"),
        ({"protocol": {"modulus": 64}}, "cannot hold the sum"),
        ({"protocol": {"masks": 4}}, "protocol.masks"),
        ({"timing": {"gather": 0.0, "patience": 1.0}}, "timing.gather: must be more than 0"),
    ],
)
def test_a_study_that_does_not_fit_is_refused(change, said):
    changed = fields() | change if "timing" in change else fields(**change)
    with pytest.raises(InvalidValue, match=said):
        Study(**changed)


RING = {"kind": "ring-sum", "sigma": 3.0, "grid": 2.0**-9}
WALK = {"kind": "walk-sum", "sigma": 3.0, "grid": 2.0**-9, "steps": 20}
METER = {"period": "month", "periods": ["jan", "feb", "mar"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"privacy": {"attempts": 2}}, "attempts: ring-sum is run once"),
        ({"task": {"unit": "record", "max_records": 3}}, "ring-sum protects whole parties"),
        ({"network": {"graph": "star:6"}}, "the token goes from c1 to c2, which are no neighbours"),
        ({"protocol": RING | {"rounds": 0}}, "rounds: must be 1 to 10,000, got 0"),
        ({"protocol": RING | {"rounds": 2}, "network": {"graph": "path:6"}}, "the token goes from c5 to c0"),
        ({"task": METER, "protocol": RING | {"rounds": 2}}, "rounds: is 2 and there are 3 periods"),
        ({"task": METER, "network": {"graph": "complete:6"}, "protocol": WALK}, "steps: 20 are not as many in each of 3"),
        ({"task": METER, "protocol": WALK | {"steps": 21, "walk": "metropolis"}}, "periods: with walk = .*ring-sum"),
        ({"task": METER, "protocol": {"kind": "gossip", "sigma": 3.0, "grid": 2.0**-9, "rounds": 2, "refresh": 0.0}},
         "periods: gossip adds one value of a party; what adds one per period: ring-sum, walk-sum"),
    ],
)  # fmt: skip
def test_a_ring_wants_its_neighbours_and_runs_once(change, said):
    protocol, rest = change.get("protocol", RING), {key: one for key, one in change.items() if key != "protocol"}
    with pytest.raises(InvalidValue, match=said):
        Study(**fields(**rest) | {"protocol": protocol})
    assert Study(**fields(network={"graph": "path:6"}) | {"protocol": RING}).settings.rounds == 1
    periods = Study(**fields(task=METER) | {"protocol": RING | {"rounds": 3}})
    assert "goes round 3 times, and each party adds its value of that period" in periods.running.how_words
    assert Study(**fields() | {"protocol": RING}).settings.noise == "distributed"


def test_keys_and_addresses_must_differ():
    same = [{"name": name, "address": "h:7"} for name in NAMES]
    with pytest.raises(InvalidValue, match="address: is the same for c0 and c1"):
        Study(**fields(party=same))


# ── what it stands for ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_protocol_says_all_that_the_study_says(planned):
    protocol = planned.protocol()
    assert isinstance(protocol, MaskedSum)
    assert (protocol.attempts, protocol.absent, protocol.unit, protocol.reach) == (2, 1, "party", 1.0)
    assert (protocol.sensitivity, protocol.dimension, protocol.centre) == (2.0, 1, 0.0)
    assert protocol.sigma == planned.settings.sigma
    assert planned.neighbours(0) == (1, 5)
    assert planned.smallest_roster == 5
    assert planned.graph.labels == tuple(NAMES)


def test_one_attempt_of_a_roster_counts_once_and_needs_no_connected_roster(planned):
    one = planned.protocol_of((0, 1, 2, 3, 4))
    assert (one.n, one.attempts, one.absent, one.sigma) == (5, 1, 0, planned.settings.sigma)
    assert one.graph.labels == tuple(NAMES[:5])
    star = Study(**fields(network={"graph": "star:6"}, privacy={"attempts": 2, "absent": 1}))
    apart = star.protocol_of((1, 2, 3, 4, 5))  # without the hub nobody is anybody's neighbour
    assert apart.n == 5
    ring = Study(**fields(privacy={"attempts": 2, "absent": 1})).protocol_of((1, 2, 3, 4, 5))
    for c in (1, 2):
        losses = [account(p, range(c)).worst_epsilon(1e-6) for p in (apart, ring)]
        assert losses[0] == losses[1]  # privacy has nothing to do with the talk graph


@pytest.mark.parametrize("roster", [(0, 1, 2, 3), (0, 1, 2, 4, 3), (0, 0, 1, 2, 3, 4), (1, 2, 3, 4, 6)])
def test_rosters_that_the_study_does_not_allow_are_refused(planned, roster):
    with pytest.raises(InvalidValue, match="roster"):
        planned.protocol_of(roster)


def test_the_promise_is_that_of_the_noise_of_the_honest():
    study = Study(**fields(privacy={"colluders": 2}))
    loss = study.promise()
    assert loss.worst_epsilon(1e-6) == pytest.approx(float(component_curve(study.protocol(), 4).epsilon(1e-6)))
    assert loss.epsilon(1e-6).shape == (6,)
    assert np.isfinite(loss.epsilon(1e-6)).all()
    assert "any 2 parties together" in loss.observers.words


def test_attempts_and_absences_cost(planned):
    def loss(**privacy):
        return planned.replace(privacy=privacy).promise().worst_epsilon(1e-6)

    once = loss(attempts=1, absent=0)
    assert once < loss(attempts=2, absent=0) < loss(attempts=2, absent=1)
    assert once < loss(attempts=1, absent=0, colluders=3)


@pytest.mark.parametrize("unit", ["party", "record"])
def test_planned_noise_keeps_the_promise_and_less_would_not(unit, planned):
    task = MEAN if unit == "party" else Task(**MEAN.model_dump() | {"unit": "record", "max_records": 100})
    study = Study.plan(
        "w", task, NAMES, graph="ring:6", epsilon=2.0, delta=1e-6, colluders=2, attempts=2, absent=1
    )  # fmt: skip
    assert study.check_promise() <= 2.0
    less = study.replace(protocol={"sigma": study.settings.sigma * 0.998})
    with pytest.raises(Refused, match=r"promises epsilon = 2 at delta = 1e-06, but its noise .* allows 2\.0"):
        less.check_promise()
    assert len(f"{study.settings.sigma:.10g}".replace(".", "").strip("0")) <= 4


def test_the_promise_of_a_ring_is_that_of_its_worst_coalition():
    study = Study.plan("r", MEAN, NAMES, graph="ring:6", epsilon=2.0, delta=1e-6, kind="ring-sum")
    protocol = study.protocol()
    assert isinstance(protocol, RingSum)
    single = [account(protocol, (v,)).worst_epsilon(1e-6) for v in range(6)]
    assert study.promise().worst_epsilon(1e-6) == pytest.approx(max(single), rel=1e-6)
    assert max(single) <= 2.0
    # two neighbours of a party see its own share of noise only
    around = account(protocol, (2, 4)).worst_epsilon(1e-6)
    together = study.promise(2)
    assert together.worst_epsilon(1e-6) >= around > 1.5 * max(single)
    for delta in (1e-3, 1e-5, 3e-8):  # a bound at every δ
        assert together.worst_epsilon(delta) >= account(protocol, (2, 4)).worst_epsilon(delta)
    less = study.replace(protocol={"sigma": study.settings.sigma * 0.998})
    with pytest.raises(Refused):
        less.check_promise()


def test_gossip_is_planned_with_fresh_noise():
    study = Study.plan("g", MEAN, NAMES, graph="complete:6", epsilon=2.0, delta=1e-6, kind="gossip")
    assert study.check_promise() <= 2.0
    assert study.settings.refresh > 0
    with pytest.raises(Refused):
        study.replace(protocol={"sigma": study.settings.sigma * 0.99}).check_promise()


def test_too_many_coalitions_to_try_are_bounded():
    ring = RingSum(40, rounds=1, sigma=3.0, noise="distributed", grid=2.0**-9)
    promised = promise_of(ring, 10)
    assert promised.is_certified
    assert promised.worst_epsilon(1e-6) == account(ring, colluders=10).worst_epsilon(1e-6) < 40
    assert promised.worst_epsilon(1e-6) >= account(ring, range(10)).worst_epsilon(1e-6)


def test_a_target_that_no_noise_meets_is_refused():
    with pytest.raises(Unsupported, match="no noise meets this target"):
        least_noise(lambda sigma: False, 1.0)


def test_drawn_graphs_are_written_out():
    names = [f"p{u}" for u in range(10)]
    study = Study.plan("r", MEAN, names, graph="regular:10,4,seed=3", epsilon=2.0, delta=1e-6)
    assert study.network.graph is None
    assert study.graph == graphs.regular(10, 4, seed=3)


def test_the_noise_of_the_total_is_that_of_all_shares(planned):
    assert planned.noise() == pytest.approx(planned.settings.sigma * math.sqrt(6), rel=1e-3)
    assert planned.noise(5) == pytest.approx(planned.settings.sigma * math.sqrt(5), rel=1e-3)
    assert planned.answer([0.0])["value"] == 60.0


# ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_draft_becomes_complete_with_cards_and_addresses(parties):
    names = [one.card.name for one in parties[:4]]
    draft = Study.plan("d", MEAN, names, graph="ring:4", epsilon=2.0, delta=1e-6)
    assert not draft.is_complete
    assert any("cards of p0" in what for what in draft.lacking)
    with pytest.raises(InvalidValue, match="draft: p0 has no keys"):
        draft.card(0)
    with pytest.raises(InvalidValue, match="draft: p0 has no address"):
        draft.address(0)
    done = draft.complete([one.card for one in parties[:4]], [f"127.0.0.1:{7000 + u}" for u in range(4)])
    assert done.is_complete
    assert done.lacking == ()
    assert done.card(2) == parties[2].card
    assert done.address(3) == "127.0.0.1:7003"
    assert done.hash != draft.complete(done_cards(parties), [done.address(u) for u in range(4)]).hash  # another nonce
    with pytest.raises(InvalidValue, match="'p4' is no party"):
        draft.complete([parties[4].card])


def done_cards(parties):
    return {one.card.name: one.card for one in parties[:4]}


def test_half_a_card_is_refused():
    party = [{"name": name} for name in NAMES]
    party[2]["signing"] = "A" * 43 + "="
    with pytest.raises(InvalidValue, match=r"party\[2\]\.signing: c2 has some of its keys only"):
        Study(**fields(party=party))


# ── in words ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_explained_in_plain_words_on_eighty_columns(planned):
    text = planned.explain()
    assert max(map(len, text.splitlines())) <= 80
    for said in ("mean of 'minutes'", "any single party", "any 2 parties together", "promised: at most 2", "draft",
                 "up to 2 times", "never", "All data of a party", "fresh pads", "c5"):  # fmt: skip
        assert said in text
    assert "NOT KEPT" not in text
    assert "NOT KEPT" in planned.replace(protocol={"sigma": 1.0}).explain()


def test_the_example_reads_and_keeps_its_promise():
    from pathlib import Path

    from netdp.peers.study.rows import read_rows

    folder = Path(__file__).parents[3] / "examples" / "clinics"
    study = Study.read(folder / "study.toml")
    assert not study.is_complete
    assert study.check_promise() <= study.privacy.epsilon
    rows = read_rows(folder / "waits.csv", ["party", "minutes"])
    assert {row["party"] for row in rows} == set(study.names)
    total = sum(study.task.rows([row for row in rows if row["party"] == name]).sum(axis=0) for name in study.names)
    clipped = [min(120.0, float(row["minutes"])) for row in rows]
    assert study.answer(total)["value"] == pytest.approx(sum(clipped) / len(clipped))


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("randomized-gossip", "wakes"),
        ("ring-histogram", "rounds"),
        ("walk-histogram", "steps"),
        ("walk-sum", "steps"),
        ("walk-sum", "tokens"),
    ],
)
@pytest.mark.parametrize("value", [0, -1])
def test_nothing_and_less_are_no_counts(kind, option, value):
    """They are refused by their name, not taken for "not given"."""
    task = Task(kind="histogram", column="x", categories=("a", "b"))
    names = [f"p{u}" for u in range(5)]
    if kind == "walk-sum":
        task = Task(kind="mean", column="x", bounds=(0, 1))
    with pytest.raises(InvalidValue, match=f"{option}.*{value}"):
        Study.plan("s", task, names, graph="complete:5", epsilon=1.0, delta=1e-3, kind=kind, **{option: value})
