"""What a party writes down of its own messages while they fly, and the list of studies that run."""

import fcntl
import json
import os
import stat

import pytest

from netdp.peers import runs as under_way
from netdp.peers import trace as traces
from netdp.peers.events import KINDS, LISTED
from netdp.peers.launch import run_study
from netdp.peers.messages import Announce, Done, Hello, Item, ItemKind, Key, Pull, Remark, kind_of
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.peers.trace import FILE, STUDY, Trace

BODY = b"\x17secret numbers\x18"


@pytest.fixture(scope="module")
def study():
    task = Task(kind="mean", column="x", bounds=(0, 120))
    return Study.plan("traced", task, ["ash", "elm", "oak"], graph="ring:3", epsilon=2.0, delta=1e-6)


def lines(home):
    return [json.loads(line) for line in (home / FILE).read_text().splitlines()]


def test_every_kind_of_message_has_its_word():
    others = [Hello(b"", ""), Announce(()), Pull(()), Done(1, b""), Remark(7)]
    words = {kind_of(Item(Key(kind, 1, 0), b"")) for kind in ItemKind} | {kind_of(message) for message in others}
    assert words == KINDS


def test_a_line_has_keys_and_counts_and_nothing_else(tmp_path, study):
    trace = Trace(tmp_path, now=lambda: 0.0)
    trace.begin(study, "ash")
    items = [Item(Key(ItemKind.CONTRIBUTION, 1, 2), BODY, b"signature"), Item(Key(ItemKind.STATE, 1, 0, 7), BODY)]
    trace.moved("sent", "elm", [*items, Done(1, b"digest"), Announce((Key(ItemKind.STEP, 1, 0, 3),))])
    trace.moved("received", "oak", [Hello(study.hash, "1.0")])
    trace({"event": "linked", "peer": "elm", "key": "abc"})
    trace.close()
    about = {"time": "1970-01-01T00:00:00.000Z", "level": "info", "party": "ash", "study": study.hash.hex()[:16]}
    assert lines(tmp_path) == [
        about
        | {
            "event": "sent",
            "peer": "elm",
            "items": [["contribution", 1, 2, 0], ["state", 1, 0, 7]],
            "words": {"done": 1, "announce": 1},
        },
        about | {"event": "received", "peer": "oak", "words": {"hello": 1}},
        about | {"event": "linked", "peer": "elm"},
    ]
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / STUDY).stat().st_mode) == 0o600
    assert Study.read(tmp_path / STUDY).hash == study.hash


def test_a_neighbour_cannot_make_lines_long_nor_files_large(tmp_path, study, monkeypatch):
    monkeypatch.setattr(traces, "SIZE", 20_000)
    trace = Trace(tmp_path)
    trace.begin(study, "ash")
    many = [Item(Key(ItemKind.VOTE, 2**32 - 1, 2**32 - 1, index), b"") for index in range(5000)]
    for _ in range(40):
        trace.moved("received", "elm", many)
    trace.close()
    found = lines(tmp_path)
    assert all(len(line["items"]) == LISTED and line["more"] == 5000 - LISTED for line in found)
    assert len(found) < 40  # the older ones lie beside it, and older ones than these are gone
    files = sorted(path.name for path in tmp_path.glob(f"{FILE}*"))
    assert files == [FILE, f"{FILE}.1"]
    assert all((tmp_path / name).stat().st_size <= 20_000 for name in files)


def test_a_trace_that_cannot_be_written_ends_nobody(tmp_path, study):
    (tmp_path / FILE).mkdir()  # no file can be opened there
    trace = Trace(tmp_path)
    trace.begin(study, "ash")
    trace.moved("sent", "elm", [Done(1, b"")])
    trace({"event": "linked", "peer": "elm"})
    trace.close()


# ── which studies run ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "netdp"


def test_a_study_is_listed_while_it_runs(tmp_path, place, study):
    assert under_way.under_way() == []
    with under_way.listed(tmp_path, "first"), under_way.listed(tmp_path, "second"):
        found = under_way.under_way()
        assert [(one.study, one.pid, one.folder) for one in found] == [
            ("second", os.getpid(), tmp_path),
            ("first", os.getpid(), tmp_path),
        ]
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert under_way.under_way() == []
    assert list(place.iterdir()) == []


def test_what_a_dead_process_left_is_not_believed_and_goes_with_the_next(tmp_path, place):
    place.mkdir(mode=0o700)
    left = place / "12345-1.json"
    left.write_text(json.dumps({"pid": 12345, "folder": str(tmp_path), "study": "left", "since": 0.0}))
    with open(left) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert [one.study for one in under_way.under_way()] == ["left"]
    assert under_way.under_way() == []
    assert left.exists()
    with under_way.listed(tmp_path, "next"):
        assert not left.exists()
        (place / "damaged.json").write_text("{")
        assert [one.study for one in under_way.under_way()] == ["next"]


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, place):
    place.mkdir()
    place.chmod(0o777)
    with under_way.listed(tmp_path, "here"):
        assert list(place.iterdir()) == []
    assert under_way.under_way() == []


def test_up_lists_its_folder_even_if_that_is_gone_afterwards(tmp_path, place, study):
    study.write(tmp_path / "study.toml")
    (tmp_path / "data.csv").write_text("party,x\n" + "".join(f"{name},{50}\n" for name in study.names))
    seen = []
    result = run_study(
        tmp_path / "study.toml", tmp_path / "data.csv", watch=lambda _: seen.extend(under_way.under_way())
    )
    assert result.ok
    assert {one.study for one in seen} == {"traced"}
    assert {one.pid for one in seen} == {os.getpid()}
    (folder,) = {one.folder for one in seen}
    assert not folder.exists()
    assert under_way.under_way() == []
