"""The status file and what can be said from outside, for every way in which a peer can end."""

import fcntl
import json
import os
import stat

import pytest

from netdp.peers.events import Sentence, Statement
from netdp.peers.ledger.store import Store
from netdp.peers.status import BEAT, LATE, Standing, lines, look


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def standing(tmp_path, clock):
    made = Standing(tmp_path, now=lambda: clock[0])
    made.begin("ash", "Waits", b"\xab" * 32, ["birch", "cedar"])
    return made


def seen(home, clock):
    found = look(home, now=lambda: clock[0])
    return found, "\n".join(lines(found, home))


def test_nothing_is_known_of_a_new_home(tmp_path, clock):
    found, text = seen(tmp_path, clock)
    assert (found.word, found.running) == ("never", False)
    assert "not running, and nothing is known" in text
    assert list(tmp_path.iterdir()) == []  # looking changes nothing


def test_a_running_peer_with_all_it_waits_for(tmp_path, clock, standing):
    with Store.open(tmp_path / "peer.db"):
        standing({"event": "listening"})
        standing({"event": "linked", "peer": "birch"})
        clock[0] = 1030.0
        standing.refresh({"attempt": 1, "links": 1, "votes": 2, "contributions": 0}, ["cedar"], 0)
        standing({"event": "note", "text": Statement("ignored from birch: a second Hello, 17.25", "second-hello")})
        lie = Sentence.UNPROVED(name="birch", kind="step", index=7, attempt=1)
        standing({"event": "note", "peer": "birch", "text": lie})
        clock[0] = 1050.0
        standing.refresh({"attempt": 1, "links": 1, "votes": 2, "contributions": 0}, ["cedar"], 0)
        found, text = seen(tmp_path, clock)
    assert (found.word, found.pid) == ("running", os.getpid())
    assert stat.S_IMODE((tmp_path / "status.json").stat().st_mode) == 0o600
    assert "links       1 of 2" in text
    assert "without   cedar, for 50 s" in text
    assert "waiting     for cedar; nothing new for 20 s" in text
    assert "notes       second-hello ×1, unproved-claim by birch ×1" in text
    assert "17.25" not in (tmp_path / "status.json").read_text()


def test_a_peer_without_a_word_is_called_silent_and_a_killed_one_killed(tmp_path, clock, standing):
    standing(
        {"event": "outcome", "ok": True, "attempt": 2, "roster": ["ash", "birch"], "total": [3.25], "contributed": 1}
    )
    with Store.open(tmp_path / "peer.db"):
        clock[0] += LATE + 1
        assert seen(tmp_path, clock)[0].word == "silent"
    found, text = seen(tmp_path, clock)  # the lock is gone, and nobody said goodbye
    assert found.word == "killed"
    assert "start it again, and it goes on" in text
    assert "the answer is here (attempt 2, 2 parties)" in text
    assert "last known" in text


def test_an_orderly_end_is_told_with_its_status(tmp_path, clock, standing):
    standing.refresh({"attempt": 1, "links": 0, "votes": 1, "contributions": 0}, ["birch", "cedar"], 1)
    standing.end(143, 1)
    clock[0] += 300
    found, text = seen(tmp_path, clock)
    assert found.word == "ended"
    assert "it ended 5 min ago with status 143" in text
    assert "published   once" in text
    assert json.loads(json.dumps(found.to_dict()))["status"] == "ended"


def test_starts_are_counted_per_study(tmp_path, standing):
    again = Standing(tmp_path)
    again.begin("ash", "Waits", b"\xab" * 32, [])
    assert again.starts == 2
    other = Standing(tmp_path)
    other.begin("ash", "Other", b"\xcd" * 32, [])
    assert other.starts == 1


def test_the_file_is_written_when_something_changed_or_after_a_while(tmp_path, clock, standing):
    def written():
        return json.loads((tmp_path / "status.json").read_text())["written"]

    status = {"attempt": 1, "links": 0, "votes": 1, "contributions": 0}
    standing.refresh(status, [], 0)
    first = written()
    clock[0] += 1
    standing.refresh(status, [], 0)
    assert written() == first
    clock[0] += BEAT
    standing.refresh(status, [], 0)
    assert written() == clock[0]
    clock[0] += 0.1
    standing.refresh(status | {"votes": 2}, [], 0)
    assert written() == clock[0]


def test_a_file_that_cannot_be_written_or_read_stops_nobody(tmp_path, clock, standing):
    (tmp_path / "status.json").unlink()
    (tmp_path / "status.json").mkdir()
    standing.end(0, 0)  # says nothing
    assert seen(tmp_path, clock)[0].word == "never"
    (tmp_path / "status.json").rmdir()
    for nonsense in ("", "[1]", '{"pid": "x"}', "{"):
        (tmp_path / "status.json").write_text(nonsense)
        assert seen(tmp_path, clock)[0].word == "never"
        Standing(tmp_path).begin("ash", "Waits", b"\xab" * 32, [])


def test_another_command_that_uses_the_home_is_not_taken_for_the_peer(tmp_path, clock, standing):
    standing.state["pid"] = 1
    standing.write()
    with Store.open(tmp_path / "peer.db"):
        found, text = seen(tmp_path, clock)
    assert found.running
    assert "another command uses the home" in text


def test_looking_does_not_keep_a_peer_from_starting(tmp_path, monkeypatch):
    """While somebody looks, the lock is shared for an instant: who starts then tries again."""
    Store.open(tmp_path / "peer.db").close()
    lock = os.open(tmp_path / "peer.db.lock", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 2:
            os.close(lock)

    monkeypatch.setattr("netdp.peers.ledger.database.time.sleep", sleep)
    Store.open(tmp_path / "peer.db").close()
    assert len(waited) == 2


@pytest.mark.parametrize("phase", ["running", "ended", "leaving"])
def test_a_damaged_file_shows_less_and_ends_nothing(tmp_path, phase):
    """Whatever stands in it, also what a terminal would obey."""
    whole = {
        "pid": 1, "phase": phase, "party": "ash", "study": "waits", "hash": 64 * "a", "progress": 1.0, "starts": 2,
        "linked": ["elm"], "unlinked": {"oak": 1.0}, "written": 5.0, "attempt": 1, "votes": 1, "waiting": ["oak"],
        "waiting_more": 1, "contributed": 1, "refused": {"other": 1}, "reason": "other", "ended": 3.0, "exit": 0,
    }  # fmt: skip
    outcomes = ({}, {"outcome": {"ok": True, "attempt": 1, "parties": 3, "worse": 1}})
    strange = [None, "x", [], {}, [1], {"a": []}, -1, True, "\x1b[31m", {"\x1b[31m": 1}, [["a"]], 10**400]
    for key in (*whole, "outcome"):
        for outcome in outcomes:
            for value in strange:
                (tmp_path / "status.json").write_text(json.dumps(whole | outcome | {key: value}))
                shown = "\n".join(lines(look(tmp_path), tmp_path))
                assert "\x1b" not in shown
            (tmp_path / "status.json").write_text(json.dumps({k: v for k, v in (whole | outcome).items() if k != key}))
            lines(look(tmp_path), tmp_path)
    (tmp_path / "status.json").write_text(json.dumps(whole | outcomes[1]))
    assert "WORSE THAN PROMISED" in "\n".join(lines(look(tmp_path), tmp_path))


def test_a_training_has_published_steps(tmp_path, clock, standing):
    for iteration, wanted in (
        (0, "up to 1 of 161 steps"),
        (37, "up to 38 of 161 steps"),
        (161, "up to 161 of 161 steps"),
    ):
        standing.refresh(
            {"attempt": 1, "links": 2, "votes": 3, "contributions": 3, "iteration": iteration, "of": 161}, [], 1
        )
        clock[0] += 100
        standing.write()
        assert f"published   {wanted}" in seen(tmp_path, clock)[1]
