"""A look at a peer's file while it is written, after it was closed and after its process was killed: nothing changes."""

import os
import subprocess
import sys

import pytest

from netdp.peers.ledger.database import StoreFailed, mark_of
from netdp.peers.ledger.entries import Entry
from netdp.peers.ledger.store import Store

STUDY = bytes(32)
LOSS = {"kind": "masked-sum", "share": 10**6, "distance": 1000, "dimension": 1}


def spend(store, attempt):
    entry = Entry("2026-11-16T10:00:00Z", STUDY.hex(), "waits", attempt, ("Ann", "Bob"), "Ann", "party", 1e-6, LOSS)
    store.spend(STUDY, attempt, (2, attempt, 0, 0), b"body", b"", entry)


def marks(folder):
    """Everything that a look could have changed."""
    return {
        path.name: (its.st_ino, its.st_size, its.st_mtime_ns, path.read_bytes())
        for path in sorted(folder.iterdir())
        for its in [path.stat()]
    }


def attempts(path):
    before = marks(path.parent)
    with Store.look(path) as store:
        store.verify()
        found = [entry.attempt for entry in store.entries()]
    assert marks(path.parent) == before
    return found


class Writer:
    """A process of its own that has the file open and enters an attempt for every line that it is told; as a peer would be."""

    def __init__(self, path):
        script = (
            "import sys; sys.path.insert(0, sys.argv[1]); from test_look import *\n"
            "with Store.open(sys.argv[2]) as store:\n"
            "    for line in sys.stdin:\n"
            "        spend(store, int(line)); print('done', flush=True)\n"
        )
        command = [sys.executable, "-c", script, os.path.dirname(__file__), str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def enter(self, attempt):
        self.process.stdin.write(f"{attempt}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate(timeout=300)


def test_beside_a_peer_that_runs(tmp_path):
    path = tmp_path / "peer.db"
    with Writer(path) as writer:
        for attempt in (1, 2, 3):
            writer.enter(attempt)
            assert attempts(path) == list(range(1, attempt + 1))
        with Store.look(path) as look:
            look.entries()
            writer.enter(4)  # nobody waits for somebody who looks
        assert attempts(path) == [1, 2, 3, 4]
    assert writer.process.returncode == 0
    assert attempts(path) == [1, 2, 3, 4]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["peer.db", "peer.db.lock"]


def test_after_a_kill_what_only_the_journal_holds_is_seen(tmp_path):
    path = tmp_path / "peer.db"
    with Writer(path) as writer:
        writer.enter(1)
        writer.enter(2)
        writer.process.kill()
    assert (tmp_path / "peer.db-wal").stat().st_size > 0
    assert attempts(path) == [1, 2]
    (tmp_path / "peer.db-shm").unlink()  # a copy without it: the newest rows could not be seen
    with pytest.raises(StoreFailed, match="journal without its index"):
        Store.look(path)


def test_nothing_is_made_where_nothing_is(tmp_path):
    with pytest.raises(StoreFailed, match="does not exist"):
        Store.look(tmp_path / "peer.db")
    (tmp_path / "peer.db").write_bytes(b"no database, but long enough to look like a file of some kind" * 20)
    (tmp_path / "peer.db").chmod(0o600)
    with pytest.raises(StoreFailed):
        Store.look(tmp_path / "peer.db")
    assert [one.name for one in tmp_path.iterdir()] == ["peer.db"]


def test_a_look_cannot_write(tmp_path):
    path = tmp_path / "peer.db"
    with Store.open(path) as store:
        spend(store, 1)
        with Store.look(path) as look, pytest.raises(StoreFailed, match="readonly"):
            spend(look, 2)
    with Store.look(path) as look, pytest.raises(StoreFailed, match="readonly"):
        spend(look, 2)


def test_the_mark_changes_with_every_row(tmp_path):
    path = tmp_path / "peer.db"
    assert mark_of(path) == (None, None)
    seen = set()
    with Store.open(path) as store:
        for attempt in range(1, 6):
            spend(store, attempt)
            seen.add(mark_of(path))
    assert len(seen) == 5
