"""What a report says about a run and an audit: what the ledgers hold, and nobody else's."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from netdp.audit import Audit, Check, Verdict
from netdp.errors import FileFormatError, InvalidValue
from netdp.peers.identity import Identity
from netdp.peers.ledger.entries import correction_of, entry_of, spent, total
from netdp.peers.ledger.store import Store
from netdp.peers.recordings.audit import audit_in_simulation
from netdp.peers.setup import settle
from netdp.peers.study import Study, Task
from netdp.peers.study.digest import identity_of
from netdp.privacy.wording import readable
from netdp.report.study.facts import report_facts
from netdp.report.study.page import report_page
from netdp.report.study.record import audit_told, happened, read_audit, study_of_run

MEAN = Task(kind="mean", column="x", bounds=(0, 10))
NAMES = ("ann", "bob", "cy", "dee", "eve")


def draft(**options):
    options = {"graph": "ring:5", "colluders": 2, "attempts": 2, "absent": 1, "epsilon": 2.0} | options
    return Study.plan("five", MEAN, NAMES, delta=1e-6, **options)


def spend(study, folder, name, *rosters, answer=True):
    """Enter contributions of a party in its ledger, and what it holds in the end."""
    me = study.index(name)
    with Store.open(folder / name / "peer.db", sign=Identity.load(folder / name).sign) as store:
        for attempt, roster in enumerate(rosters, start=1):
            store.spend(study.hash, attempt, ("y", attempt), b"y", b"", entry_of(study, attempt, roster, me), b"s" * 64)
        if answer:
            names = [study.names[u] for u in rosters[-1]]
            found = study.answer([2.18972] * study.task.dimension, len(names))
            told = {"ok": True, "attempt": len(rosters), "roster": names, "digest": "ab", "answer": found, "worse": []}
            store.set_result(study.hash, told)


@pytest.fixture
def ran(tmp_path):
    """A study of five in which all published twice, eve once: (draft, its file, the study that ran, its file, the folder)."""
    path, folder = tmp_path / "draft.toml", tmp_path / "homes"
    folder.mkdir(mode=0o700)
    made = draft()
    made.write(path)
    study, where = settle(made, folder)
    for name in NAMES[:4]:
        spend(study, folder, name, (0, 1, 2, 3, 4), (0, 1, 2, 3))
    spend(study, folder, "eve", (0, 1, 2, 3, 4), answer=False)
    return made, path, study, where, folder


def page_of(study, path, **options):
    said = report_facts(study, path, **options)
    return said, report_page(study, said)


def test_what_was_spent_is_what_the_ledgers_hold(ran):
    made, path, study, where, folder = ran
    found, file = study_of_run(made, path, folder)
    assert (found.hash, file) == (study.hash, where)
    said, page = page_of(study, where, run=folder)
    twice = [entry_of(study, 1, (0, 1, 2, 3, 4), 0), entry_of(study, 2, (0, 1, 2, 3), 0)]
    for size in ("1", "2", "3"):
        assert said["happened"]["spent"][size] == float(total(twice, int(size), "party").epsilon(1e-6))
        assert readable(said["happened"]["spent"][size]) in page
    assert said["happened"]["published"] == 2
    assert said["happened"]["roster"] == list(NAMES[:4])
    assert said["happened"]["answered"] == list(NAMES[:4])
    assert "4 of 5 parties took part" in page
    assert "published 2 times at most, and was allowed to 2 times" in page
    assert page.count("in order") == 5
    assert "Signed by all 5" in page


def test_a_report_states_whole_ledgers_whatever_was_chosen_and_if_all_had_been_fixed(ran):
    """With another study in one of the ledgers: it counts in the whole, and not in what this study cost."""
    _, _, study, where, folder = ran
    one = Identity.load(folder / "bob")
    other = replace(entry_of(study, 1, (0, 1, 2, 3, 4), 1), study="ab" * 32)
    with Store.open(folder / "bob" / "peer.db", sign=one.sign) as store:
        store.spend(bytes.fromhex(other.study), 1, ("y", 1), b"y", b"", other, b"s" * 64)
        whole = store.entries()
    said, page = page_of(study, where, run=folder)
    for size in ("1", "2", "3"):
        both = spent(whole, int(size), "party", 1e-6)
        assert said["happened"]["ledgers"][size] == {"epsilon": both.epsilon, "fixed": both.fixed}
        assert both.epsilon > both.fixed > said["happened"]["spent"][size]
        assert readable(both.epsilon) in page
        assert readable(both.fixed) in page
    assert "Whole ledger, whatever was chosen" in page
    assert "Whole ledger, if all had been fixed beforehand" in page


def test_the_answer_is_told_only_if_asked_for(ran):
    _, _, study, where, folder = ran
    answer = study.answer([2.18972], 4)["value"]
    shown = f"{answer:,.4g}"
    assert shown == "7.737"
    said, page = page_of(study, where, run=folder)
    assert shown not in page
    assert str(answer) not in json.dumps(said)
    said, page = page_of(study, where, run=folder, with_answer=True)
    assert shown in page
    assert said["happened"]["answer"]["value"] == answer


def test_one_partys_home_will_do_and_the_others_are_named(ran):
    _, _, study, where, folder = ran
    said, page = page_of(study, where, run=folder / "bob")
    assert list(said["happened"]["parties"]) == ["bob"]
    assert said["happened"]["missing"] == ["ann", "cy", "dee", "eve"]
    assert "No ledger is here of: ann, cy, dee, eve" in page


def test_a_ledger_that_was_changed_is_called_broken_and_not_added_up(ran):
    _, _, study, where, folder = ran
    with sqlite3.connect(folder / "cy" / "peer.db") as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE ledger SET entry = replace(entry, '\"attempt\":2', '\"attempt\":3') WHERE row = 2")
    said, page = page_of(study, where, run=folder)
    assert said["happened"]["parties"]["cy"]["ledger"] == "BROKEN"
    assert ">BROKEN<" in page
    assert said["happened"]["parties"]["bob"]["ledger"] == "in order"
    for other in ("ann", "bob", "dee", "eve"):
        (folder / other / "peer.db").unlink()
    with pytest.raises(InvalidValue, match="did not run there"):
        happened(study, folder, [1])


def test_what_cost_more_than_promised_counts_in_place_of_the_promise(ran):
    _, _, study, where, folder = ran
    fewer = entry_of(study, 1, (0, 1, 2, 3), 0)
    with Store.open(folder / "ann" / "peer.db", sign=Identity.load(folder / "ann").sign) as store:
        worse = correction_of(fewer, fewer.loss)
        store.spend(study.hash, worse.attempt, ("c", 1), b"", b"", worse, b"s" * 64)
    said, page = page_of(study, where, run=folder)
    assert said["happened"]["parties"]["ann"]["corrected"]
    assert "corrected after the run" in page
    both = [fewer, entry_of(study, 2, (0, 1, 2, 3), 0)]
    assert said["happened"]["spent"]["2"] == float(total(both, 2, "party").epsilon(1e-6))
    assert said["happened"]["published"] == 2


def test_keys_of_another_home_are_noticed(ran, tmp_path):
    _, _, study, where, _ = ran
    other = Identity.create(tmp_path / "other", "dee")
    with Store.open(tmp_path / "other" / "peer.db", sign=other.sign) as store:
        store.spend(study.hash, 1, ("y", 1), b"y", b"", entry_of(study, 1, (0, 1, 2, 3, 4), 3), b"s" * 64)
    said, page = page_of(study, where, run=tmp_path / "other")
    assert "not those that the study lists" in said["happened"]["parties"]["dee"]["problem"]
    assert "not those that the study lists" in page


def test_a_run_of_another_study_is_refused(ran, tmp_path):
    made, path, _, _, folder = ran
    foreign = draft(epsilon=1.5)
    with pytest.raises(InvalidValue, match="was made from"):
        study_of_run(foreign, path, folder)
    complete, _ = settle(foreign, folder)
    with pytest.raises(InvalidValue, match="it did not run there"):
        happened(complete, folder, [1])
    with pytest.raises(InvalidValue, match="is no folder"):
        study_of_run(made, path, tmp_path / "nowhere")
    with pytest.raises(InvalidValue, match="holds the ledger of no party"):
        happened(complete, tmp_path, [1])
    with pytest.raises(InvalidValue, match="one party's home"):
        study_of_run(made, path, folder / "ann")


def test_a_draft_that_ran_twice_must_be_named(ran):
    made, path, study, _, folder = ran
    again, where = settle(made, folder)  # eve has no answer of the first, so it is kept
    assert where.name == "study-2.toml"
    with pytest.raises(InvalidValue, match="more than once"):
        study_of_run(made, path, folder)
    assert study_of_run(again, where, folder)[0].hash != study.hash


def test_signatures_are_those_of_verify(ran):
    _, _, study, where, _ = ran
    signed = where.with_suffix(".signatures")
    (signed / "bob.sig").unlink()
    (signed / "cy.sig").write_text((signed / "dee.sig").read_text())
    (signed / "<b>mallory.sig").write_text((signed / "dee.sig").read_text())
    said, page = page_of(study, where)
    assert said["signatures"]["signed"] == ["ann", "dee", "eve"]
    assert "Signed by 3 of 5" in page
    assert "has not signed" in page
    assert "the signature is not its own" in page
    assert "&lt;b&gt;mallory: signed, but is no party" in page
    assert "<b>" not in page
    (signed / "dee.sig").write_text("nonsense")
    said, page = page_of(study, where)
    assert not said["signatures"]["all"]
    assert "is no signature" in page


# ── audits ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def audited():
    return audit_in_simulation(draft(), trials=2_000, distances=False)


def written(tmp_path, content):
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(content))
    return path


def test_an_audit_of_the_draft_holds_for_the_study_made_from_it(audited, ran, tmp_path):
    made, path, study, where, _ = ran
    file = written(tmp_path, audited.to_dict())
    for one, at in ((made, path), (study, where)):
        found = read_audit(file, one)
        assert (found["of"], found["ok"]) == ("simulation", True)
        assert len(found["rows"]) == len(audited.findings)
        _, page = page_of(one, at, audit=found)
        assert "Audited: nothing refuted" in page
        assert audited.findings[0].attack in page
    assert audit_told(audited, made) == read_audit(file, made)


def test_a_foreign_audit_is_refused(audited, tmp_path):
    file = written(tmp_path, audited.to_dict())
    with pytest.raises(InvalidValue, match="another study, five"):
        read_audit(file, draft(epsilon=1.5))
    told = audited.to_dict()
    del told["study"]
    with pytest.raises(InvalidValue, match="does not say which study"):
        read_audit(written(tmp_path, told), draft())
    told["recordings"] = [{"study": "six", "hash": "ab" * 32, "messages": 3}]
    with pytest.raises(InvalidValue, match="six"):
        read_audit(written(tmp_path, told), draft())


def test_recordings_and_test_runs_are_told_apart(tmp_path, audited):
    study = draft()
    base = audited.to_dict() | {"recordings": [{"study": "five", "hash": study.hash.hex(), "messages": 7}]}
    assert read_audit(written(tmp_path, base), study)["of"] == "recording"
    base["recordings"][0]["hash"] = "cd" * 32
    assert read_audit(written(tmp_path, base | {"study": identity_of(study)}), study)["of"] == "test run"


def test_a_refutation_shows_whatever_the_file_says_of_itself(audited, tmp_path):
    study, told = draft(), audited.to_dict()
    told["findings"][0]["verdict"] = Verdict.REFUTED.value
    told["ok"] = True
    found = read_audit(written(tmp_path, told), study)
    assert not found["ok"]
    _, page = page_of(study, Path("study.toml"), audit=found)
    assert "Audited: REFUTED" in page
    assert "do not rely on it" in page
    failed = Audit("t", 1e-6, 0.99, 0, checks=(Check("the <law>", False, "no"),), facts={"study": identity_of(study)})
    _, page = page_of(study, Path("study.toml"), audit=audit_told(failed, study))
    assert "the &lt;law&gt;" in page
    assert "NOT OK" in page


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"title": 1}', b"[" * 100_000, b"\xff"])
def test_files_that_are_no_audit_are_named(content, tmp_path):
    path = tmp_path / "audit.json"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="no output of netdp audit"):
        read_audit(path, draft())
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_audit(tmp_path / "none.json", draft())
