"""What an attempt really cost, where that is more than was entered before it: it counts in every sum, whatever comes between."""

import json
import os
import shutil
import sqlite3
import stat
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from netdp.cli import app
from netdp.cli.peer_progress import outcome_lines
from netdp.errors import NetdpError, Refused
from netdp.peers.desk import Desk
from netdp.peers.identity import Identity, mark_used
from netdp.peers.ledger.database import StoreFailed, trigger
from netdp.peers.ledger.entries import (
    CORRECTS,
    LedgerBroken,
    between,
    correction_of,
    curve,
    entry_of,
    if_broken_off,
    in_force,
    losses,
    spent,
    total,
    year,
)
from netdp.peers.ledger.losses import is_covered, profile_loss, seen
from netdp.peers.ledger.policy import OwnerPolicy, costliest
from netdp.peers.ledger.store import Store
from netdp.peers.peer import Peer, _packed, _private, prepare
from netdp.peers.setup import settle
from netdp.peers.spread import SpreadResult
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.privacy import GaussianCurve, Odometer, ProfileCurve

DELTA = 1e-6
NAMES = ["ash", "birch", "cedar"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    task = Task(kind="mean", column="x", bounds=(0, 120))
    return folder, *settle(
        Study.plan("waits", task, NAMES, graph="complete:3", epsilon=2.0, delta=DELTA, threshold=0), folder
    )


def told(mu):
    """A loss of this μ, against whomever."""
    return profile_loss({name: GaussianCurve(mu) for name in NAMES[1:]}, GaussianCurve(mu))


def epsilon(entries, against=1):
    return float(total(entries, against).epsilon(DELTA))


def first(study, time="2026-12-31T23:00:00Z"):
    return entry_of(study, 1, (0, 1, 2), 0, time)


# ── sums ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_found_out_in_january_belongs_to_the_attempt_of_december(world):
    """Else the year in which it was spent would show less than was spent in it."""
    *_, study, _ = world
    entered = first(study)
    really = correction_of(entered, told(2.0), "2027-01-01T00:10:00Z")
    whole = [entered, really]
    assert epsilon(between(whole, *year(2026))) == epsilon([really]) > epsilon([entered])
    assert epsilon(between(whole, *year(2027))) == epsilon([really])
    assert between(whole, *year(2025)) == between(whole, *year(2028)) == []
    strange = replace(really, study=64 * "f")  # of another study: it corrects nothing here
    assert between([entered, strange], *year(2026)) == [entered]


def test_a_further_correction_counts_beside_the_one_before_unless_it_covers_that(world):
    *_, study, _ = world
    entered = first(study)
    one, two = (
        profile_loss({"birch": GaussianCurve(a), "cedar": GaussianCurve(b)}, GaussianCurve(9.0))
        for a, b in ((1, 2), (2, 1))
    )
    found = [correction_of(entered, one), correction_of(entered, two, number=2)]
    assert in_force([entered, *found]) == found
    assert epsilon([entered, *found]) > epsilon([found[0]])
    last = correction_of(entered, told(9.0), number=3)
    assert in_force([entered, *found, last]) == [last]
    twice = [correction_of(entered, one), correction_of(entered, one, number=2)]
    assert in_force([entered, *twice]) == twice[1:]


def test_a_cost_that_shows_only_in_the_end_is_read_off_the_levels(world):
    """The part of δ for a first loss alone is for one whose size was known before anything was seen."""
    *_, study, _ = world
    entered = first(study)
    really = correction_of(entered, told(2.0))
    known, found = (
        spent(entries, 1, "party", DELTA).epsilon for entries in ([replace(entered, loss=told(2.0))], [entered, really])
    )
    (loss,) = [loss for loss, _ in losses([really], 1)]
    promised, odometer = Odometer(DELTA), Odometer(DELTA)
    promised.spend(loss)
    odometer.spend(loss, foreseen=False)
    assert known == promised.epsilon
    assert found == odometer.epsilon > known


def test_one_loss_covers_another_only_if_it_does_so_against_everybody():
    def loss(single, both, everybody):
        curves = {name: GaussianCurve(mu) for name, mu in zip("bcd", single, strict=True)}
        return profile_loss(curves, GaussianCurve(everybody), {2: GaussianCurve(both)})

    large = loss((1, 2, 3), 4, 5)
    assert is_covered(large, large)
    assert is_covered(loss((1, 2, 2), 4, 5), large)
    assert not is_covered(loss((1.1, 0, 0), 0, 0), large)
    assert not is_covered(loss((0, 0, 0), 4.1, 0), large)
    assert not is_covered(loss((0, 0, 0), 0, 5.1), large)
    table = ProfileCurve([0.0, 1.0, 2.0], [0.5, 0.1, 0.0])
    bent = ProfileCurve([0.0, 0.5, 2.0], [0.5, 0.29, 0.0])  # lies above it between 1 and 2 only
    for one, other, expected in ((table, table, True), (bent, table, False), (table, GaussianCurve(1.0), False)):
        assert is_covered(profile_loss({"b": one}, one), profile_loss({"b": other}, other)) is expected


def test_a_pen_enters_every_finding_that_is_worse(world, tmp_path):
    folder, study, _ = world
    me = Identity.load(folder / "ash")
    with Store.open(tmp_path / "peer.db", sign=me.sign) as store:
        desk = Desk(me, study, store, study.task.rows(_data(tmp_path)))
        desk.vote(1, (0, 1, 2))
        desk.contribute(1, (0, 1, 2))
        for mu in (2.0, 2.0, 1.0, 3.0, 2.0, 3.0):
            desk.correct(1, (0, 1, 2), told(mu), {"lost": 1})
        found = store.entries()
        assert [entry.attempt for entry in found] == [1, 1 + CORRECTS, 1 + 2 * CORRECTS]
        assert epsilon(found) == epsilon([correction_of(found[0], told(3.0))])
        assert store.verify(me.card).rows == 3
        assert [item.key.attempt for item in desk.own()] == [1, 1]  # a correction is not sent


def test_a_restart_after_the_answer_still_says_that_it_cost_more(world, tmp_path):
    folder, study, _ = world
    me = Identity.load(folder / "ash")
    with Store.open(tmp_path / "peer.db", sign=me.sign) as store:
        rows = study.task.rows(_data(tmp_path))
        desk = Desk(me, study, store, rows)
        desk.vote(1, (0, 1, 2))
        desk.contribute(1, (0, 1, 2))
        desk.correct(1, (0, 1, 2), told(3.0), {"lost": 1})
        answer = SpreadResult(1, (0, 1, 2), np.array([90.0]), bytes(32))
        store.set_result(study.hash, {"ok": True, "realised": {"lost": 1}, "resume": _packed(answer, [], {})})
        peer = Peer(me, study, store, rows, lambda receiver: None)
        peer._do(lambda: None)
        for said in (peer.outcome, store.result(study.hash)):
            assert (said["worse"], said["realised"]) == ([1], {"lost": 1})
            assert said["spent"]["epsilon"]["1"] == pytest.approx(epsilon([correction_of(first(study), told(3.0))]))


def _data(folder):
    (folder / "x.csv").write_text("x\n37.125\n")
    return folder / "x.csv"


def test_a_curator_is_one_more_than_the_roster_has(world):
    """Everybody else and the curator are as many as the roster: they are not taken for one fewer."""
    mus = {2: 0.5, 3: 1.0}
    curves = {name: GaussianCurve(0.25) for name in ("birch", "cedar", "curator")}
    loss = profile_loss(curves, GaussianCurve(mus[3]), {2: GaussianCurve(mus[2])})
    found = [float(seen(loss, NAMES, "ash", k).mu) for k in (0, 1, 2, 3, 4)]
    assert found == [0.25, 0.25, 0.5, 1.0, 1.0]


# ── what a study may cost ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_policy_counts_the_costliest_of_all_rosters():
    """On a ring what all others learn depends on the place: the first and the last add random elements to their answer."""
    study = Study(
        name="poll", task=Task(kind="histogram", column="x", categories=("a", "b")), network={"graph": "complete:5"},
        privacy={"epsilon": 1.0, "delta": 1e-3, "absent": 1}, protocol={"kind": "ring-histogram", "gamma": 0.8},
        party=[{"name": f"c{u}"} for u in range(5)], timing={"gather": 20.0, "patience": 8.0},
    )  # fmt: skip
    me, attempt = 3, costliest(study, 3)
    allowed = [
        entry_of(study, 1, roster, me) for size in (4, 5) for roster in combinations(range(5), size) if me in roster
    ]
    places = {(len(entry.roster), entry.roster.index("c3")) for entry in allowed}
    assert {(len(roster), roster.index(me)) for roster in study.running.costly_rosters(me)} == places
    for against in (1, 2, 4, "c0"):
        worst = max(float(curve(entry, against).epsilon(1e-3)) for entry in allowed)
        assert float(curve(attempt, against).epsilon(1e-3)) == pytest.approx(worst, rel=1e-6)
    (verdict,) = OwnerPolicy(delta=1e-3, limit=[{"against": 2, "per": "study", "epsilon": 9.0}]).verdicts(study, [], me)
    few = float(curve(entry_of(study, 1, (0, 1, 2, 3), me), 2).epsilon(1e-3))
    assert verdict.together > 1.05 * few  # there it is the last of the ring


def test_a_correction_of_one_attempt_does_not_hide_those_that_are_left(world):
    task = Task(kind="mean", column="x", bounds=(0, 120))
    study = Study.plan("three", task, NAMES, graph="complete:3", epsilon=2.0, delta=DELTA, attempts=3)
    entered = entry_of(study, 1, (0, 1, 2), 0)
    really = correction_of(entered, told(1.0))
    policy = OwnerPolicy(
        delta=DELTA, limit=[{"against": 1, "per": per, "epsilon": 99.0} for per in ("study", "year", "total")]
    )
    expected = epsilon([really, *(entry_of(study, attempt, (0, 1, 2), 0) for attempt in (2, 3))])
    assert expected > epsilon([really])
    for verdict in policy.verdicts(study, [entered, really], 0):
        assert verdict.study == pytest.approx(expected)
        assert expected * (1 - 1e-9) <= verdict.together <= 1.04 * expected


def test_a_walk_of_an_earlier_life_of_which_nobody_tells_is_taken_for_broken_off():
    study = Study(
        name="walk", task=Task(kind="mean", column="x", bounds=(0, 1)), network={"graph": "complete:5"},
        privacy={"epsilon": 90.0, "delta": DELTA}, party=[{"name": f"c{u}"} for u in range(5)],
        protocol={"kind": "walk-sum", "steps": 20, "sigma": 4.0, "grid": 2.0**-8},
        timing={"gather": 20.0, "patience": 8.0},
    )  # fmt: skip
    broken, unheard = (
        study.running.recomputed(1, tuple(range(5)), 0, one) for one in ({"visits": [[0, 1]]}, {"unheard": True})
    )
    assert broken == unheard is not None
    assert study.running.recomputed(1, tuple(range(5)), 0, {"visits": [[0, 1]], "released": True}) is None


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_ledger_that_is_gone_is_not_begun_anew_by_an_admission(world, tmp_path):
    """Else the next start would find a memory, an empty one, and publish a second number where a first one stands."""
    _, _, path = world
    home = tmp_path / "ash"
    Identity.create(home, "ash")
    mark_used(home)
    for words in (["--complete"], [str(path)]):
        found = CliRunner().invoke(app, ["ledger", "admit", "--home", str(home), *words])
        assert isinstance(found.exception, Refused) or "is gone" in found.output
        assert not (home / "peer.db").exists()


def test_a_peer_does_not_begin_with_a_ledger_that_was_changed(world, tmp_path):
    """The limits are held against its sum."""
    folder, study, path = world
    shutil.copytree(folder / "ash", tmp_path / "ash")
    me = Identity.load(tmp_path / "ash")
    with Store.open(tmp_path / "ash" / "peer.db", sign=me.sign) as store:
        for attempt in (1, 2):
            entry = replace(first(study), study=64 * "e", attempt=attempt)
            store.spend(bytes.fromhex(entry.study), attempt, ("x",), b"body", b"", entry)
    prepare(tmp_path / "ash", path, _data(tmp_path)).store.close()
    with sqlite3.connect(tmp_path / "ash" / "peer.db") as database:
        database.execute("DROP TRIGGER ledger_same")
        database.execute("UPDATE ledger SET entry = replace(entry, '\"distance\":', '\"distance\":0') WHERE row = 1")
        database.execute(trigger("ledger_same"))
    database.close()
    with pytest.raises(LedgerBroken, match="row 1"):
        prepare(tmp_path / "ash", path, _data(tmp_path))


def test_a_run_that_cost_more_says_so_first():
    study = Study.plan(
        "waits", Task(kind="mean", column="x", bounds=(0, 120)), NAMES, graph="complete:3", epsilon=2.0, delta=DELTA
    )
    whole = {"entries": 1, "epsilon": {"1": 2.6}, "fixed": {"1": 2.5}}
    spent = {"delta": DELTA, "epsilon": {"1": 2.5}, "contributions": 1, "unit": "party", "ledger": whole}
    said = {"ok": False, "reason": "the token is lost", "party": "ash", "spent": spent}
    assert outcome_lines(study, said | {"worse": [1]}, Path("home"))[0].startswith("WORSE THAN PROMISED: attempt 1 ")
    assert not any("WORSE" in line for line in outcome_lines(study, said | {"worse": []}, Path("home")))


def test_the_ledger_shows_which_rows_are_corrections(world, tmp_path):
    folder, study, _ = world
    shutil.copytree(folder / "ash", tmp_path / "ash")
    me = Identity.load(tmp_path / "ash")
    with Store.open(tmp_path / "ash" / "peer.db", sign=me.sign) as store:
        entry = first(study)
        store.spend(study.hash, 1, ("x",), b"body", b"", entry)
        really = correction_of(entry, told(2.0), "2027-01-01T00:10:00Z")
        store.spend(study.hash, really.attempt, ("correction", 1), b"{}", b"", really)
    shown = CliRunner().invoke(app, ["ledger", "show", "--home", str(tmp_path / "ash"), "--year", "2026"])
    assert " 1*" in shown.output
    assert "2 of 2" in " ".join(shown.output.split())  # lines are broken where they are too long
    assert "1000001" not in shown.output
    more = CliRunner().invoke(app, ["ledger", "show", "--home", str(tmp_path / "ash"), "--year", "2026", "--json"])
    one = json.loads(more.output)["totals"][0]
    assert one["fixed"]["party"] == pytest.approx(epsilon([really]))
    assert one["party"] > one["fixed"]["party"]


def test_frames_are_recorded_for_the_owner_only(tmp_path):
    there = tmp_path / "there"
    there.write_bytes(b"before")
    there.chmod(0o644)
    with _private(there) as file:
        file.write(b"frame")
    assert there.read_bytes() == b"beforeframe"
    assert stat.S_IMODE(there.stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(NetdpError, match="--record"):
            _private(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["peer.db", "peer.db-wal", "keys/used", "policy.toml", "link"])
def test_nothing_is_appended_to_what_a_home_lives_by(world, tmp_path, name):
    folder, _, path = world
    home = tmp_path / "ash"
    shutil.copytree(folder / "ash", home)
    (home / "peer.db").write_bytes(b"as it was")
    (home / "link").symlink_to(home / "peer.db")
    for option in ("--log", "--record"):
        words = [
            "peer",
            "run",
            str(path),
            "--home",
            str(home),
            "--data",
            str(_data(tmp_path)),
            option,
            str(home / name),
        ]
        found = CliRunner().invoke(app, words)
        assert isinstance(found.exception, Refused) or "lives by" in found.output
    assert (home / "peer.db").read_bytes() == b"as it was"


def test_a_register_on_a_full_disk_holds_nothing_or_what_it_gave(world, tmp_path):
    with Store.open(tmp_path / "peer.db") as store:
        assert store.once(b"study", 1, b"first", b"here") == b"here"
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StoreFailed, match=r"full.*make room"):
            store.once(b"study", 1, b"second", b"x" * 10**6)
        with pytest.raises(StoreFailed, match="open it again"):
            store.once(b"study", 1, b"second", b"other")  # nothing is decided until a fresh look
    with Store.open(tmp_path / "peer.db") as store:
        assert store.register(b"study", 1, b"second") is None
        assert store.once(b"study", 1, b"second", b"other") == store.once(b"study", 1, b"second", b"more") == b"other"
        assert store.once(b"study", 1, b"first", b"there") == b"here"


# ── attempts of which no end is known ─────────────────────────────────────────────────────────────────────────────────


def test_an_attempt_counts_as_broken_off_until_its_end_is_known(world, tmp_path):
    """A party that is killed in the middle and never started again must not be left with less than was spent."""
    _, study, _ = world
    entry = replace(first(study), loss=told(0.5))
    with Store.open(tmp_path / "peer.db") as store:
        store.spend(study.hash, 1, ("x",), b"body", b"", if_broken_off(entry, told(2.0)))
        assert epsilon(store.entries()) == pytest.approx(epsilon([replace(entry, loss=told(2.0))]))
        store.verify()
        store.set_ended(study.hash, 1)
        assert epsilon(store.entries()) == pytest.approx(epsilon([entry]))
    with Store.open(tmp_path / "peer.db", read_only=True) as store:
        assert epsilon(store.entries()) == pytest.approx(epsilon([entry]))
    for wrong in ({"kind": "profile"}, 3, told(1.0) | {"broken": told(1.0)}):
        with pytest.raises(NetdpError):
            replace(entry, loss=entry.loss | {"broken": wrong})


def test_a_strict_walk_that_nobody_ends_costs_what_a_told_path_costs(tmp_path):
    names = [f"p{u}" for u in range(6)]
    task = Task(kind="histogram", column="x", categories=("a", "b"))
    draft = Study.plan(
        "walk", task, names, graph="complete:6", epsilon=4.0, delta=1e-3, kind="walk-histogram", steps=12
    )
    study, _ = settle(draft, tmp_path)
    me = Identity.load(tmp_path / "p2")
    everybody = tuple(range(6))
    with Store.open(tmp_path / "p2" / "peer.db", sign=me.sign) as store:
        desk = Desk(me, study, store, study.task.rows([{"x": "a"}]))
        desk.vote(1, everybody)
        desk.contribute(1, everybody)
        unheard = study.running.recomputed(1, everybody, 2, {"unheard": True})
        left, promised = store.entries(), entry_of(study, 1, everybody, 2)
        assert left[0].loss == unheard
        assert float(total(left, 1).epsilon(1e-3)) >= float(total([promised], 1).epsilon(1e-3)) * (1 - 1e-9)
        store.set_ended(study.hash, 1)
        assert store.entries()[0].loss == promised.loss
