"""The durable state of a peer: what survives a kill, a full disk, a second process and somebody with an editor."""

import dataclasses
import hashlib
import os
import shutil
import signal
import sqlite3
import stat
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from netdp.errors import InvalidValue, NetdpError, Refused
from netdp.peers.identity import Identity
from netdp.peers.ledger.database import TRIGGERS, StoreFailed, trigger
from netdp.peers.ledger.entries import START, Entry, LedgerBroken, head_message, link
from netdp.peers.ledger.store import Store

sys.path.append(str(Path(__file__).parents[2] / "cli"))  # children of the fork server get this path, too

from started import Started

STUDY = hashlib.sha256(b"waits").digest()


def entry(attempt=1, study=STUDY, **changes):
    fields = {
        "time": "2026-11-16T10:00:00Z", "study": study.hex(), "name": "waits", "attempt": attempt,
        "roster": ("ann", "bob", "cy"), "me": "ann", "unit": "party", "delta": 1e-6,
        "loss": {"kind": "masked-sum", "share": 10**6, "distance": 300, "dimension": 1},
    }  # fmt: skip
    return Entry(**fields | changes)


def spend(store, attempt, body=None, study=STUDY):
    body = f"body {attempt}".encode() if body is None else body
    store.spend(study, attempt, (2, attempt, 0, 0), body, f"secret {attempt}".encode(), entry(attempt, study))


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return {name: Identity.create(tmp_path_factory.mktemp(name) / "home", name) for name in ("ann", "eve")}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "peer.db"


@pytest.fixture
def filled(path, people):
    """A signed ledger of four rows, closed."""
    with Store.open(path, sign=people["ann"].sign) as store:
        for attempt in (1, 2, 3, 4):
            spend(store, attempt)
    return path


# ── what it keeps ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_contribution_and_its_cost_come_back_as_they_were(path, people):
    with Store.open(path, sign=people["ann"].sign) as store:
        assert store.contribution(STUDY, 1) is None
        spend(store, 1, b"\0\xff body")
    with Store.open(path, sign=people["ann"].sign) as store:
        key, body, signature, secret = store.contribution(STUDY, 1)
        assert (key, body, signature, secret) == ((2, 1, 0, 0), b"\0\xff body", b"", b"secret 1")
        assert store.entries() == [entry(1)]
        checked = store.verify(people["ann"].card)
        assert (checked.rows, checked.signed, checked.adopted) == (1, True, 0)


def test_a_second_contribution_to_an_attempt_is_refused_and_changes_nothing(filled, people):
    with Store.open(filled, sign=people["ann"].sign) as store:
        before = store.verify(people["ann"].card)
        for body in (b"body 2", b"another"):
            with pytest.raises(Refused, match="attempt 2 of 'waits' was contributed to already"):
                spend(store, 2, body)
        assert store.verify(people["ann"].card) == before
        assert store.contribution(STUDY, 2).body == b"body 2"
        spend(store, 5)  # and the store goes on
        assert store.verify(people["ann"].card).rows == 5


def test_the_entry_must_be_of_the_same_attempt(path):
    with Store.open(path) as store:
        with pytest.raises(InvalidValue, match="both must be the same"):
            store.spend(STUDY, 2, (2, 2, 0, 0), b"", b"", entry(1))
        with pytest.raises(InvalidValue, match="both must be the same"):
            store.spend(b"\1" * 32, 1, (2, 1, 0, 0), b"", b"", entry(1))
        assert store.entries() == []


def test_entries_of_a_period(path):
    with Store.open(path) as store:
        for attempt, day in enumerate(("2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"), 1):
            store.spend(STUDY, attempt, (2, attempt, 0, 0), b"", b"", entry(attempt, time=day))
        attempts = [[e.attempt for e in store.entries(*when)] for when in (("2026-01-01",), (None, "2026-01-01"), ())]
        assert attempts == [[2, 3], [1], [1, 2, 3]]


def test_entries_of_one_study_are_those_of_it_alone(path):
    other = b"\1" * 32
    with Store.open(path) as store:
        for attempt in (1, 2):
            store.spend(STUDY, attempt, (2, attempt, 0, 0), b"", b"", entry(attempt))
        store.spend(other, 1, (2, 1, 0, 0), b"", b"", entry(1, study=other))
        assert store.entries_of(STUDY) == [one for one in store.entries() if one.study == STUDY.hex()]
        assert [(e.study, e.attempt) for e in store.entries_of(other)] == [(other.hex(), 1)]
        assert store.entries_of(b"\2" * 32) == []
        assert len(store.entries()) == 3


def test_a_vote_is_cast_once(path):
    with Store.open(path) as store:
        store.put_vote(STUDY, 1, b"all", b"signature")
        store.put_vote(STUDY, 1, b"all", b"signature")
        with pytest.raises(Refused, match="voted otherwise in attempt 1"):
            store.put_vote(STUDY, 1, b"some", b"signature")
        store.put_vote(STUDY, 2, b"some", b"other")
    with Store.open(path) as store:
        assert store.votes(STUDY) == {1: (b"all", b"signature"), 2: (b"some", b"other")}
        assert store.votes(b"\0" * 32) == {}


def test_a_signature_is_written_once(path):
    with Store.open(path) as store:
        with pytest.raises(InvalidValue, match="spend first"):
            store.set_signature(STUDY, 1, b"s")
        spend(store, 1)
        store.set_signature(STUDY, 1, b"s")
        store.set_signature(STUDY, 1, b"s")
        with pytest.raises(Refused, match="another signature"):
            store.set_signature(STUDY, 1, b"t")
        assert store.contribution(STUDY, 1).signature == b"s"
        assert store.verify().rows == 1


def test_results(path):
    with Store.open(path) as store:
        assert store.result(STUDY) is None
        store.set_result(STUDY, {"mean": 1.5, "parties": ["ann"]})
    with Store.open(path) as store:
        assert store.result(STUDY) == {"mean": 1.5, "parties": ["ann"]}


def test_what_a_restored_backup_lost_is_adopted_with_its_cost(filled, people, tmp_path):
    """An older copy is consistent (nothing in the file can tell); what neighbours hold is entered, never drawn anew."""
    old = tmp_path / "old.db"
    shutil.copy(filled, old)
    sign, card = people["ann"].sign, people["ann"].card
    with Store.open(filled, sign=sign) as store:
        spend(store, 5)
        lost = store.contribution(STUDY, 5)
    with Store.open(old, sign=sign) as store:
        assert store.verify(card).rows == 4
        for _ in range(2):
            store.adopt(STUDY, 5, lost.key, lost.body, b"its signature", entry(5))
        assert store.entries()[-1].attempt == 5
        assert len(store.entries()) == 5
        assert store.contribution(STUDY, 5) == (lost.key, lost.body, b"its signature", b"")
        assert store.verify(card).adopted == 1
        with pytest.raises(Refused, match="contributed to already"):
            spend(store, 5)
        with pytest.raises(Refused, match="used in two places"):
            store.adopt(STUDY, 5, lost.key, b"something else", b"", entry(5))


def test_a_signed_ledger_is_not_continued_without_its_signer(filled, people):
    with Store.open(filled) as store, pytest.raises(Refused, match="is signed"):
        spend(store, 5)
    with Store.open(filled) as store:
        assert store.verify(people["ann"].card).rows == 4


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_commits_wait_for_the_disk_and_files_are_private(filled):
    with Store.open(filled) as store:
        setting = {name: store._database.execute(f"PRAGMA {name}").fetchone()[0] for name in
                   ("journal_mode", "synchronous", "foreign_keys", "recursive_triggers")}  # fmt: skip
        assert setting == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "recursive_triggers": 1}
        spend_files = [file for file in filled.parent.iterdir() if file.name.startswith("peer.db")]
        assert {stat.S_IMODE(file.stat().st_mode) for file in spend_files} == {0o600}


def test_files_that_are_no_store_are_refused_by_name(path, tmp_path):
    def refused(match, file=path):
        with pytest.raises(StoreFailed, match=match) as found:
            Store.open(file)
        assert str(file) in str(found.value)

    refused("No such file", tmp_path / "nowhere" / "peer.db")
    path.touch(0o600)
    refused("is empty, which no store ever is")
    path.write_bytes(b"this is a letter to my aunt, in which I tell her all about SQLite. " * 20)
    refused("not a database")
    path.unlink()
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE stamps (country)")
    database.commit()
    path.chmod(0o600)
    refused("not of a netdp peer")
    database.execute(f"PRAGMA application_id = {0x6E647031}")
    database.execute("PRAGMA user_version = 7")
    database.commit()
    database.close()
    refused("format 7")
    path.chmod(0o640)
    refused("can be read by others")


def test_a_journal_without_its_file_is_not_replayed_into_a_new_one(filled):
    filled.with_name("peer.db-wal").write_bytes(b"x")
    filled.unlink()
    with pytest.raises(StoreFailed, match=r"its journal peer\.db-wal is there"):
        Store.open(filled)


def test_an_unfinished_creation_is_begun_anew(path):
    path.with_name("peer.db.new").write_bytes(b"half of something")
    with Store.open(path) as store:
        assert store.verify().rows == 0
    assert not path.with_name("peer.db.new").exists()


def test_one_process_at_a_time_and_readers_beside_it(filled, people):
    with Store.open(filled, sign=people["ann"].sign) as store:
        with pytest.raises(StoreFailed, match=f"in use by process {os.getpid()}"):
            Store.open(filled)
        with Store.open(filled, read_only=True) as reader:
            spend(store, 5)
            assert len(reader.entries()) == 5
            with pytest.raises(StoreFailed, match="readonly"):
                reader.set_result(STUDY, {})
    with Store.open(filled) as again:
        assert len(again.entries()) == 5


def test_reading_what_is_not_there_makes_no_file(path):
    with pytest.raises(StoreFailed, match="does not exist"):
        Store.open(path, read_only=True)
    assert list(path.parent.iterdir()) == []


def test_a_closed_store_says_so(path):
    store = Store.open(path)
    store.close()
    store.close()
    with pytest.raises(StoreFailed, match="closed; open it again"):
        store.entries()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger SET entry = 'cheap' WHERE row = 2",
        "DELETE FROM ledger WHERE row = 4",
        "INSERT OR REPLACE INTO ledger SELECT 2, study, 9, entry, contribution, previous, hash FROM ledger WHERE row = 1",
        "INSERT OR REPLACE INTO ledger SELECT 5, study, 1, entry, contribution, previous, hash FROM ledger WHERE row = 1",
        "INSERT INTO ledger SELECT 9, study, 9, entry, contribution, previous, hash FROM ledger WHERE row = 1",
        "UPDATE contributions SET body = x'00'",
        "UPDATE contributions SET secret = x'00'",
        "DELETE FROM contributions",
        "INSERT OR REPLACE INTO contributions SELECT study, attempt, key, x'00', secret, signature, 0 FROM contributions",
        "UPDATE votes SET body = x'00'",
        "DELETE FROM votes",
        "INSERT OR REPLACE INTO votes SELECT study, attempt, x'00', signature FROM votes",
    ],
)
def test_rows_cannot_be_changed_by_ordinary_statements(filled, people, statement):
    with Store.open(filled) as store:
        store.put_vote(STUDY, 1, b"all", b"signature")
    database = sqlite3.connect(filled)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        database.execute(statement)
    database.close()
    with Store.open(filled) as store:
        assert store.verify(people["ann"].card).rows == 4


# ── when the disk fails ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_full_disk_leaves_nothing_half_written(filled, people):
    sign, card = people["ann"].sign, people["ann"].card
    with Store.open(filled, sign=sign) as store:
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StoreFailed, match=r"full.*make room"):
            spend(store, 5, b"x" * 10**6)
        with pytest.raises(StoreFailed, match="open it again before"):
            spend(store, 6)
        with pytest.raises(StoreFailed, match="open it again before"):
            store.contribution(STUDY, 1)
    with Store.open(filled, sign=sign) as store:
        assert store.verify(card).rows == 4
        assert store.contribution(STUDY, 5) is None
        spend(store, 5)
        assert store.verify(card).rows == 5


def test_a_disk_turned_read_only(filled, people):
    with Store.open(filled, sign=people["ann"].sign) as store:
        store._database.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreFailed, match=r"readonly.*right to write"):
            spend(store, 5)
    with Store.open(filled) as store:
        assert store.verify(people["ann"].card).rows == 4


@pytest.mark.parametrize("start", [0, 16, 100, 4096, 8192, 12288, 20480])
def test_a_damaged_file_gives_an_error_of_ours_or_is_whole(filled, people, start):
    content = bytearray(filled.read_bytes())
    content[start : start + 300] = bytes(range(256)) + bytes(44)
    filled.write_bytes(bytes(content))
    with pytest.raises((StoreFailed, LedgerBroken)), Store.open(filled) as store:
        store.verify(people["ann"].card)


def run_child(code, *words):
    """Another process that runs `code` with the names of this file; its output, its errors, and how it ended."""
    child = child_with(code, *words)
    out, err = child.communicate(timeout=120)
    return SimpleNamespace(stdout=out, stderr=err, returncode=child.returncode)


def child_with(code, *words):
    """Another process, started and not waited for."""
    head = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); from test_store import *; words = sys.argv[1:]\n"
    return Started(words, script=head + textwrap.dedent(code))


def test_a_write_that_the_system_cuts_short(filled, people):
    """A limit on the size of files: writing fails in the middle, as on a full disk."""
    code = """
        import resource
        store = Store.open(words[0], sign=Identity.load(Path(words[1])).sign)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        try:
            spend(store, 5, b"x" * 10**6)
        except StoreFailed as error:
            print("refused")
    """
    found = run_child(code, filled, people["ann"].home)
    assert found.stdout == "refused\n", found.stderr
    with Store.open(filled, sign=people["ann"].sign) as store:
        assert store.verify(people["ann"].card).rows == 4
        spend(store, 5)


# ── when the process is killed ────────────────────────────────────────────────────────────────────────────────────────


def test_killed_right_after_spend_returns_both_are_there(filled, people):
    code = """
        store = Store.open(words[0], sign=Identity.load(Path(words[1])).sign)
        spend(store, 5)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    assert run_child(code, filled, people["ann"].home).returncode == -signal.SIGKILL
    with Store.open(filled, sign=people["ann"].sign) as store:
        assert store.contribution(STUDY, 5).body == b"body 5"
        assert store.verify(people["ann"].card).rows == 5
        with pytest.raises(Refused):
            spend(store, 5, b"drawn anew")


@pytest.mark.parametrize("moment", ["before", "within", "at the commit"])
def test_killed_before_spend_is_done_neither_is_there(filled, people, moment):
    """Within: while the head is being signed, in the middle of the transaction. At the commit: all rows are written."""
    code = """
        moment = words[2]
        me = Identity.load(Path(words[1]))

        def die(*_):
            os.kill(os.getpid(), signal.SIGKILL)

        store = Store.open(words[0], sign=die if moment == "within" else me.sign)
        if moment == "before":
            die()
        if moment == "at the commit":
            store._database.set_trace_callback(lambda statement: die() if statement == "COMMIT" else None)
        spend(store, 5)
        print("returned")
    """
    found = run_child(code, filled, people["ann"].home, moment)
    assert (found.returncode, found.stdout) == (-signal.SIGKILL, "")
    with Store.open(filled, sign=people["ann"].sign) as store:
        assert store.contribution(STUDY, 5) is None
        assert store.verify(people["ann"].card).rows == 4
        spend(store, 5)


def test_killed_at_any_moment_everything_that_was_reported_is_there(path, people):
    """The child says when a spend has returned; it is killed in the midst of its work."""
    home = people["ann"].home
    code = """
        store = Store.open(words[0], sign=Identity.load(Path(words[1])).sign)
        attempt = len(store.entries())
        while True:
            attempt += 1
            spend(store, attempt, b"x" * 20_000)
            print(attempt, flush=True)
    """
    reported = 0
    for enough in (1, 7, 20):
        child = child_with(code, path, home)
        lines = [int(child.stdout.readline()) for _ in range(enough)]
        child.kill()
        rest, _ = child.communicate()
        lines += [int(line) for line in rest.splitlines() if line.strip()]
        reported = max(lines)
        with Store.open(path, sign=people["ann"].sign) as store:
            rows = store.verify(people["ann"].card).rows
            assert reported <= rows <= reported + 1
            assert all(store.contribution(STUDY, attempt) is not None for attempt in range(1, reported + 1))
    assert reported >= 28


def test_the_lock_of_another_process_names_it(path):
    code = """
        store = Store.open(words[0])
        print("open", flush=True)
        signal.pause()
    """
    child = child_with(code, path)
    assert child.stdout.readline() == "open\n"
    with pytest.raises(StoreFailed, match=f"in use by process {child.pid}; a peer runs once"):
        Store.open(path)
    child.kill()
    child.communicate()
    Store.open(path).close()


# ── tampering ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def tamper(path, change):
    """Change the file behind its triggers, and put them back as if nothing had been."""
    database = sqlite3.connect(path)
    for name in TRIGGERS:
        database.execute(f"DROP TRIGGER {name}")
    change(database)
    for name in TRIGGERS:
        database.execute(trigger(name))
    database.commit()
    database.close()


def statements(*texts):
    return lambda database: [database.execute(text) for text in texts]


def rewrite(database, keep=lambda rows: rows, forge_head=True):
    """All rows as `keep` leaves them, chained anew without the key: what a careful forger can do."""
    rows = keep(database.execute("SELECT study, attempt, entry, contribution FROM ledger ORDER BY row").fetchall())
    database.execute("DELETE FROM ledger")
    last = START
    for row, (study, attempt, text, digest) in enumerate(rows, 1):
        now = link(last, row, text, digest)
        database.execute(
            "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?)", (row, study, attempt, text, digest, last, now)
        )
        last = now
    if forge_head:
        database.execute("UPDATE head SET rows = ?, hash = ?", (len(rows), last))


def cheaper(rows):
    return [(s, a, text.replace('"distance":300', '"distance":3'), d) for s, a, text, d in rows]


TAMPERED = {
    "a row changed": (statements("UPDATE ledger SET entry = replace(entry, '300', '3') WHERE row = 2"), 2, "hash"),
    "its hash changed": (statements("UPDATE ledger SET hash = zeroblob(32) WHERE row = 2"), 2, "hash"),
    "all rows changed and chained anew": (lambda db: rewrite(db, cheaper, forge_head=False), 4, "head of the ledger"),
    "and the head with them": (lambda db: rewrite(db, cheaper), 4, "not signed by ann"),
    "removed from the middle": (statements("DELETE FROM ledger WHERE row = 2"), 2, "missing"),
    "removed, with its contribution, and renumbered": (
        lambda db: (
            db.execute("DELETE FROM contributions WHERE attempt = 2"),
            rewrite(db, lambda rows: [rows[0], *rows[2:]]),
        ),
        3,
        "not signed",
    ),
    "the tail cut off": (
        statements("DELETE FROM contributions WHERE attempt = 4", "DELETE FROM ledger WHERE row = 4"),
        4,
        "speaks of 4 rows, there are 3",
    ),
    "the tail cut off and the head moved back": (
        statements(
            "DELETE FROM contributions WHERE attempt = 4",
            "DELETE FROM ledger WHERE row = 4",
            "UPDATE head SET rows = 3, hash = (SELECT hash FROM ledger WHERE row = 3)",
        ),
        3,
        "not signed by ann",
    ),
    "the head removed": (statements("DELETE FROM head"), 4, "head"),
    "inserted at the end": (
        lambda db: rewrite(db, lambda rows: [*rows, (rows[0][0], 9, rows[0][2], rows[0][3])], forge_head=False),
        5,
        "otherwise",
    ),
    "inserted in the middle": (
        statements(
            "UPDATE ledger SET row = row + 10 WHERE row > 2",
            "INSERT INTO ledger SELECT 3, study, 9, entry, contribution, previous, hash FROM ledger WHERE row = 2",
            "UPDATE ledger SET row = row - 9 WHERE row > 10",
        ),
        3,
        "does not follow",
    ),
    "reordered": (
        statements(
            "UPDATE ledger SET row = 90 WHERE row = 2",
            "UPDATE ledger SET row = 2 WHERE row = 3",
            "UPDATE ledger SET row = 3 WHERE row = 90",
        ),
        2,
        "does not follow",
    ),
    "reordered and chained anew": (
        lambda db: rewrite(db, lambda rows: [rows[0], rows[2], rows[1], rows[3]]),
        4,
        "not signed",
    ),
    "the signature removed": (statements("UPDATE head SET signature = x''"), 4, "not signed"),
    "another attempt's column": (statements("UPDATE ledger SET attempt = 9 WHERE row = 3"), 3, "otherwise"),
    "values of another kind": (statements("UPDATE ledger SET hash = 'text' WHERE row = 3"), 3, "another kind"),
    "a contribution changed": (
        statements("UPDATE contributions SET body = x'00' WHERE attempt = 2"),
        2,
        "not the one that was written",
    ),
    "a secret changed": (
        statements("UPDATE contributions SET secret = x'00' WHERE attempt = 3"),
        3,
        "not the one that was written",
    ),
    "a contribution removed": (statements("DELETE FROM contributions WHERE attempt = 2"), 2, "its contribution is gone"),
    "a contribution without a debit": (
        statements("INSERT INTO contributions SELECT study, 9, key, body, secret, signature, 0 FROM contributions LIMIT 1"),
        0,
        "attempt 9 .* has no row",
    ),
    "two contributions swapped": (
        statements("UPDATE contributions SET attempt = 11 - attempt WHERE attempt IN (2, 9)", "UPDATE contributions SET "
                   "attempt = 2 WHERE attempt = 3", "UPDATE contributions SET attempt = 3 WHERE attempt = 9"),
        2,
        "not the one that was written",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", TAMPERED)
def test_tampering_is_found_and_the_row_is_named(filled, people, kind):
    change, row, match = TAMPERED[kind]
    with Store.open(filled) as store:
        store.verify(people["ann"].card)
    tamper(filled, change)
    with Store.open(filled) as store, pytest.raises(LedgerBroken, match=match) as found:
        store.verify(people["ann"].card)
    assert found.value.row == row


def test_a_signature_by_somebody_else_or_from_before_is_found(filled, people):
    database = sqlite3.connect(filled)
    (rows, last, good) = database.execute("SELECT rows, hash, signature FROM head").fetchone()
    database.close()
    with Store.open(filled, sign=people["ann"].sign) as store:
        spend(store, 5)
    now = sqlite3.connect(filled)
    newest = now.execute("SELECT rows, hash FROM head").fetchone()
    now.close()
    for swapped in (good, people["eve"].sign(head_message(*newest)), bytes(64)):
        tamper(filled, lambda db, swapped=swapped: db.execute("UPDATE head SET signature = ?", (swapped,)))
        with Store.open(filled) as store, pytest.raises(LedgerBroken, match="not signed by ann"):
            store.verify(people["ann"].card)
    assert rows == 4
    assert last != newest[1]


def test_triggers_that_were_dropped_are_missed(filled, people):
    database = sqlite3.connect(filled)
    database.execute("DROP TRIGGER ledger_kept")
    database.commit()
    database.close()
    with Store.open(filled) as store, pytest.raises(LedgerBroken, match="triggers"):
        store.verify(people["ann"].card)


def test_a_cut_tail_is_not_healed_by_going_on(filled, people):
    tamper(filled, TAMPERED["the tail cut off"][0])
    with Store.open(filled, sign=people["ann"].sign) as store, pytest.raises(LedgerBroken, match="head"):
        spend(store, 5)
    with Store.open(filled) as store, pytest.raises(LedgerBroken):
        store.verify(people["ann"].card)


def test_errors_are_ours():
    assert issubclass(StoreFailed, NetdpError)
    assert issubclass(LedgerBroken, NetdpError)
    assert dataclasses.is_dataclass(Entry)
