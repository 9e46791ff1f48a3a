"""One SQLite file, opened so that what is committed stays and only one process writes.

The file is made beside its place and moved there whole, so a file that is empty was damaged, and is refused instead of
being taken for a beginning. It belongs to its owner alone (mode 600). A lock file beside it is held for as long as the
process lives; the system gives it back when the process dies, however it dies. In the write-ahead mode with
`synchronous=FULL` a commit returns when the disk has it. What goes wrong becomes one error with a sentence.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netdp.errors import NetdpError

from ..events import Statement

APPLICATION = 0x6E647031
"""Marks the file as a netdp store ("ndp1")."""
FORMAT = 4
"""1: without registers and records; 2: without rising registers; 3: without secrets. An older file is brought up to this format
when it is opened for writing."""
SINCE = {"registers": 2, "records": 2, "rising": 3, "secrets": 4}
"""The formats that brought tables, where it was not the first."""

ERASED = b"erased "
"""With what the register begins that says that a secret was erased."""

_TABLES = """
CREATE TABLE ledger (row INTEGER PRIMARY KEY, study BLOB NOT NULL, attempt INTEGER NOT NULL, entry TEXT NOT NULL,
    contribution BLOB NOT NULL, previous BLOB NOT NULL, hash BLOB NOT NULL, UNIQUE (study, attempt));
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), rows INTEGER NOT NULL, hash BLOB NOT NULL,
    signature BLOB NOT NULL);
CREATE TABLE contributions (study BLOB NOT NULL, attempt INTEGER NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL,
    secret BLOB NOT NULL, signature BLOB NOT NULL, adopted INTEGER NOT NULL, PRIMARY KEY (study, attempt),
    FOREIGN KEY (study, attempt) REFERENCES ledger (study, attempt));
CREATE TABLE votes (study BLOB NOT NULL, attempt INTEGER NOT NULL, body BLOB NOT NULL, signature BLOB NOT NULL,
    PRIMARY KEY (study, attempt));
CREATE TABLE results (study BLOB PRIMARY KEY, result TEXT NOT NULL);
"""
_REGISTERS = """
CREATE TABLE registers (study BLOB NOT NULL, attempt INTEGER NOT NULL, place BLOB NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (study, attempt, place)) WITHOUT ROWID;
CREATE TABLE records (number INTEGER PRIMARY KEY, text TEXT NOT NULL, signature BLOB NOT NULL);
"""
_RISING = """
CREATE TABLE rising (study BLOB NOT NULL, attempt INTEGER NOT NULL, place BLOB NOT NULL, number INTEGER NOT NULL,
    body BLOB NOT NULL, PRIMARY KEY (study, attempt, place, number));
"""
_SECRETS = """
CREATE TABLE secrets (study BLOB NOT NULL, attempt INTEGER NOT NULL, place BLOB NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (study, attempt, place));
"""
_ADDED = {2: _REGISTERS, 3: _RISING, 4: _SECRETS}
# INSERT OR REPLACE deletes without asking delete triggers: hence the triggers before INSERT
TRIGGERS = {
    "ledger_next": "BEFORE INSERT ON ledger WHEN NEW.row IS NOT (SELECT COALESCE(MAX(row), 0) + 1 FROM ledger) "
    "OR EXISTS (SELECT 1 FROM ledger WHERE study = NEW.study AND attempt = NEW.attempt)",
    "ledger_same": "BEFORE UPDATE ON ledger",
    "ledger_kept": "BEFORE DELETE ON ledger",
    "contributions_once": "BEFORE INSERT ON contributions WHEN EXISTS "
    "(SELECT 1 FROM contributions WHERE study = NEW.study AND attempt = NEW.attempt)",
    "contributions_same": "BEFORE UPDATE OF study, attempt, key, body, secret, adopted ON contributions",
    "contributions_kept": "BEFORE DELETE ON contributions",
    "votes_once": "BEFORE INSERT ON votes WHEN EXISTS "
    "(SELECT 1 FROM votes WHERE study = NEW.study AND attempt = NEW.attempt)",
    "votes_same": "BEFORE UPDATE ON votes",
    "votes_kept": "BEFORE DELETE ON votes",
    "registers_once": "BEFORE INSERT ON registers WHEN EXISTS "
    "(SELECT 1 FROM registers WHERE study = NEW.study AND attempt = NEW.attempt AND place = NEW.place)",
    "registers_same": "BEFORE UPDATE ON registers",
    "registers_kept": "BEFORE DELETE ON registers",
    "records_next": "BEFORE INSERT ON records WHEN NEW.number IS NOT "
    "(SELECT COALESCE(MAX(number), 0) + 1 FROM records)",
    "records_same": "BEFORE UPDATE ON records",
    "records_kept": "BEFORE DELETE ON records",
    "rising_next": "BEFORE INSERT ON rising WHEN EXISTS (SELECT 1 FROM rising WHERE study = NEW.study "
    "AND attempt = NEW.attempt AND place = NEW.place AND number >= NEW.number)",
    "rising_same": "BEFORE UPDATE ON rising",
    "rising_kept": "BEFORE DELETE ON rising WHEN (SELECT COUNT(*) FROM rising WHERE study = OLD.study "
    "AND attempt = OLD.attempt AND place = OLD.place AND number > OLD.number) < 2",
    # what was erased is never written anew: the register that says so was written in the same transaction
    "secrets_once": "BEFORE INSERT ON secrets WHEN EXISTS (SELECT 1 FROM secrets WHERE study = NEW.study "
    "AND attempt = NEW.attempt AND place = NEW.place) OR EXISTS (SELECT 1 FROM registers WHERE study = NEW.study "
    f"AND attempt = NEW.attempt AND place = CAST(X'{ERASED.hex()}' || NEW.place AS BLOB))",
    "secrets_same": "BEFORE UPDATE ON secrets",
    "secrets_kept": "BEFORE DELETE ON secrets WHEN NOT EXISTS (SELECT 1 FROM registers WHERE study = OLD.study "
    f"AND attempt = OLD.attempt AND place = CAST(X'{ERASED.hex()}' || OLD.place AS BLOB))",
}


def triggers_of(format: int) -> list[str]:
    """The names of the triggers that a file of some format has."""
    return [name for name in TRIGGERS if SINCE.get(name.split("_")[0], 1) <= format]


def trigger(name: str) -> str:
    """The statement that makes a trigger, as SQLite keeps it."""
    table = name.split("_")[0]
    return f"CREATE TRIGGER {name} {TRIGGERS[name]} BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"


class StoreFailed(NetdpError):
    """The file of a peer cannot be opened, read or written; nothing was half-written."""

    code = "disk"


@contextmanager
def failing(path: Path, what: str) -> Iterator[None]:
    """Turn what SQLite and the system say into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreFailed(
            f"{path} cannot be {what}: {error}; nothing was half-written, {_way_out(str(error))}"
        ) from None
    except OSError as error:
        raise StoreFailed(f"{path} cannot be {what}: {error.strerror or error}; nothing was half-written") from None


def _way_out(problem: str) -> str:
    if "full" in problem:
        return "make room on the disk and start again"
    if "readonly" in problem or "unable to open" in problem:
        return "give this user the right to write the file and its folder"
    if "malformed" in problem or "not a database" in problem:
        return "do not run it; make a new home from the newest backup (netdp peer restore)"
    return "look after the disk and start again"


def locked(path: Path) -> int:
    """Hold the lock beside the file for as long as this process lives; whose it is stands in it."""
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _take(lock)
    except BlockingIOError:
        holder = os.read(lock, 20).decode("ascii", "replace").strip()
        os.close(lock)
        who = f"process {holder}" if holder else "another process"
        said = Statement(f"{path} is in use by {who}; a peer runs once, end that one first", "already-running")
        raise StoreFailed(said) from None
    except BaseException:
        os.close(lock)
        raise
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _take(lock: int) -> None:
    """Take the lock; tried for a moment, because `netdp peer status` may just be looking whether anybody has it."""
    for pause in (0.01, 0.03, 0.1, None):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if pause is None:
                raise
            time.sleep(pause)


def create(path: Path) -> None:
    """Make the file beside its place and move it there whole: an empty file in its place is damage, never a beginning."""
    if Path(f"{path}-wal").exists():
        raise StoreFailed(
            f"{path} is gone but its journal {path.name}-wal is there; make a new home (netdp peer restore)"
        )
    fresh = Path(f"{path}.new")
    for left in (fresh, Path(f"{fresh}-wal"), Path(f"{fresh}-shm"), Path(f"{fresh}-journal")):
        left.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    database = connect(fresh)
    try:
        triggers = "".join(f"{trigger(name)};\n" for name in TRIGGERS)
        database.executescript(
            f"BEGIN; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; {_TABLES} {_REGISTERS} {_RISING} "
            f"{_SECRETS} {triggers} COMMIT;"
        )
    finally:
        database.close()
    os.rename(fresh, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def connect(path: Path) -> sqlite3.Connection:
    """A connection whose commits are durable and whose constraints hold."""
    # one connection, used under our own lock from any thread; transactions are written out
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        for setting in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON", "foreign_keys = ON",
                        "recursive_triggers = ON", "trusted_schema = OFF", "secure_delete = ON"):  # fmt: skip
            database.execute(f"PRAGMA {setting}")
    except BaseException:
        database.close()
        raise
    return database


def look_at(path: Path) -> sqlite3.Connection:
    """A connection that leaves no mark: for watching a home while its peer runs, ends or dies. Close it soon.

    It changes no file and takes no lock that a commit waits for. Beside a running peer (or one that was killed) SQLite reads the
    journal through the index beside it, which is opened for reading only. Of a file that was closed in order there is no index,
    and SQLite would make one; so it is read as one that nobody changes, and who reads it compares `mark_of` before and after.
    (A peer that closes its file in the very instant between the two may leave an empty journal, which means nothing.)
    """
    journal, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    if index.exists():
        mode = "mode=ro&readonly_shm=1"
    elif journal.exists() and journal.stat().st_size:
        raise StoreFailed(f"{path} has a journal without its index: what it holds is known when its peer has run again")
    else:
        mode = "mode=ro&immutable=1"
    address = f"{path.resolve().as_uri()}?{mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=0.05)


def mark_of(path: Path) -> tuple[tuple[int, int, int] | None, ...]:
    """What changes whenever something is written: inode, size and time of the file and of its journal."""
    found: list[tuple[int, int, int] | None] = []
    for one in (path, Path(f"{path}-wal")):
        try:
            its = one.stat()
            found.append((its.st_ino, its.st_size, its.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)


def upgrade(database: sqlite3.Connection) -> None:
    """Bring an older file up to the present format: it lacks some tables, which are empty at first."""
    found = database.execute("PRAGMA user_version").fetchone()[0]
    if found < FORMAT:
        tables = "".join(table for since, table in _ADDED.items() if since > found)
        lacking = [name for name in TRIGGERS if name not in triggers_of(found)]
        triggers = "".join(f"{trigger(name)};\n" for name in lacking)
        database.executescript(f"BEGIN IMMEDIATE; {tables} {triggers} PRAGMA user_version = {FORMAT}; COMMIT;")


def check_private(path: Path) -> None:
    """Refuse a file that others can read, or that is empty."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise StoreFailed(f"{path} can be read by others (mode {mode:o}); it holds secrets: chmod 600 {path}")
    if path.stat().st_size == 0:
        raise StoreFailed(
            f"{path} is empty, which no store ever is: it was damaged; make a new home (netdp peer restore)"
        )


def check_format(path: Path, database: sqlite3.Connection) -> None:
    """Refuse a file of something else, or of another version."""
    mark = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if mark != APPLICATION:
        raise StoreFailed(f"{path} is a database, but not of a netdp peer; name the peer.db of a peer's home")
    if not 1 <= version <= FORMAT:
        raise StoreFailed(
            f"{path} has format {version}, this netdp knows format {FORMAT}; use the version that wrote it"
        )
