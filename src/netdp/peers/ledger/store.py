"""One file that outlives a crash: what a party has published, what that cost, how it voted, and the results.

**The order that privacy needs.** Before the first byte of a contribution leaves, the contribution *and* its entry in the
ledger are durable, in one transaction (`spend`). So after a crash at any moment either both are there, and the party
sends the very same bytes again, or neither, and nothing was sent. There is no second way to write a contribution, no way to
write one without its entry, and a second one for the same attempt is refused.

**How.** SQLite in its write-ahead mode; a commit waits until the disk has it (`synchronous=FULL`). One process at a time,
by a lock that the system gives back when the process dies. Triggers refuse to change or delete rows; rows of the ledger are
chained by hashes and the last one is signed (`netdp.peers.ledger.entries`), for those who go around the triggers. If writing fails
(full disk, read-only disk, damaged file), the transaction is undone, and the store does nothing more until it is opened
again: what the disk holds after a failed commit is for a fresh look to say.

**What it cannot see.** An older copy of the whole file, put back in its place, is as consistent as it was then; nothing in
the file can tell. Nor can it if the file is deleted. Two other things protect then: noise is derived from a secret and a
hash of the data (`netdp.peers.streams`), so the same data in the same attempt gives the same bytes again, not a second
sample; and a party asks its neighbours for what they hold in its own name before it sends, and enters what it gets
(`adopt`), with its cost, instead of drawing anew. Entries of studies that nobody remembers are lost with the copy: never
put a copy back. `netdp.peers.backup` makes backups that cannot be run from, only restored under new keys.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, Self

from netdp.errors import InvalidValue, Refused
from netdp.peers.ledger import entries as seams
from netdp.peers.ledger import results

from ..events import Statement
from .database import (
    ERASED,
    StoreFailed,
    check_format,
    check_private,
    connect,
    create,
    failing,
    locked,
    look_at,
    trigger,
    triggers_of,
    upgrade,
)
from .entries import (
    START,
    Entry,
    LedgerBroken,
    Verifier,
    as_it_stands,
    between,
    canonical,
    check_chain,
    head_message,
    link,
)

ENDED = b"netdp ended"
"""The register that says that the end of an attempt is known."""
SHUT = 1 << 62
"""A rising register with this number does not rise any more."""


class Contribution(NamedTuple):
    """What was published in an attempt, and the numbers that later messages are computed from."""

    key: tuple[Any, ...]
    body: bytes
    signature: bytes
    secret: bytes


@dataclass(frozen=True)
class Checked:
    """What `Store.verify` found in order: how many rows, the last hash, whether a signature was checked."""

    rows: int
    head: str
    signed: bool
    adopted: int
    seams: tuple[seams.Seam, ...] = ()
    """Where the ledger was carried over to new keys."""
    admitted: tuple[int, ...] = ()
    """Rows that the owner entered by hand, without a contribution."""


class Store:
    """The durable state of one peer. Use `Store.open(path)`, best in a `with` statement.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store.open(Path(folder.name) / "peer.db") as store:
    ...     print(store.entries(), store.contribution(b"study", 1), store.verify().rows)
    [] None 0
    >>> folder.cleanup()
    """

    def __init__(
        self, path: Path, database: sqlite3.Connection, lock: int | None, sign: Callable[[bytes], bytes] | None
    ) -> None:
        self.path = path
        self._database, self._lock, self._sign = database, lock, sign
        self._one = threading.RLock()
        self._held: list[contextlib.AbstractContextManager[Any]] = []
        self._ended: str | None = None
        self._stained = False  # whether the journal may hold secrets that were erased

    # ── opening and closing ───────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        sign: Callable[[bytes], bytes] | None = None,
        read_only: bool = False,
    ) -> Self:
        """Open the file, or make it. `sign` signs the head of the ledger at every entry.

        `read_only` takes no lock: for looking while a peer runs.
        """
        file = Path(path)
        with failing(file, "opened"):
            lock = None if read_only else locked(file)
            try:
                if not file.exists():
                    if read_only:
                        raise StoreFailed(f"{file} does not exist; a peer makes it when it first runs")
                    create(file)
                check_private(file)
                database = connect(file)
                try:
                    check_format(file, database)
                    if not read_only:
                        upgrade(database)
                        database.execute(
                            "PRAGMA wal_checkpoint(TRUNCATE)"
                        )  # an earlier life may have died after it erased
                    database.execute("PRAGMA query_only = ON" if read_only else "PRAGMA query_only = OFF")
                except BaseException:
                    database.close()
                    raise
            except BaseException:
                if lock is not None:
                    os.close(lock)
                raise
        return cls(file, database, lock, sign)

    @classmethod
    def look(cls, path: str | os.PathLike[str]) -> Self:
        """Open the file to look at it once while a peer may run: nothing is written or locked, not even for a moment.

        Close it soon, and compare `database.mark_of` before and after: what was read while it changed may be wrong.
        """
        file = Path(path)
        with failing(file, "opened"):
            if not file.exists():
                raise StoreFailed(f"{file} does not exist; a peer makes it when it first runs")
            check_private(file)
            database = look_at(file)
            try:
                check_format(file, database)
            except BaseException:
                database.close()
                raise
        return cls(file, database, None, None)

    def hold(self, held: contextlib.AbstractContextManager[Any]) -> None:
        """Give this back when the store is closed."""
        self._held.append(held)

    def close(self) -> None:
        """Fold the journal into the file and let the next process in."""
        with self._one:
            if self._ended != "closed":
                self._ended = "closed"
                for held in self._held:
                    held.__exit__(None, None, None)
                with suppress(sqlite3.Error):
                    self._database.close()
                if self._lock is not None:
                    os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── contributions and what they cost ──────────────────────────────────────────────────────────────────────────────

    def spend(
        self,
        study: bytes,
        attempt: int,
        key: tuple[Any, ...],
        body: bytes,
        secret: bytes,
        entry: Entry,
        signature: bytes = b"",
        erased: Sequence[bytes] = (),
    ) -> None:
        """Write a contribution and its cost, in one transaction. When this returns, `body` may be sent; not before.

        body       the bytes that are published
        secret     numbers that later messages are computed from; may be empty
        signature  of the published item, if it is known already; else `set_signature`
        erased     secrets of the attempt that are not needed any more
        """
        self._append(study, attempt, key, body, secret, entry, signature, adopted=False, erased=erased)
        self._overwritten(erased)

    def adopt(
        self, study: bytes, attempt: int, key: tuple[Any, ...], body: bytes, signature: bytes, entry: Entry
    ) -> None:
        """Enter an own contribution that neighbours hold and this file lost (a backup was put back), with its cost.

        The caller has checked that the signature is its own. Nothing is drawn anew. If it is here already, nothing changes;
        if another one is here, something is very wrong, and it is refused.
        """
        held = self.contribution(study, attempt)
        if held is None:
            self._append(study, attempt, key, body, b"", entry, signature, adopted=True)
        elif held.body != body or held.key != tuple(key):
            raise Refused(Statement(
                f"neighbours hold another contribution of attempt {attempt} in this party's name than {self.path}: its keys are "
                "used in two places; stop, and make a new identity",
                "keys-in-use-elsewhere",
            ))  # fmt: skip

    def contribution(self, study: bytes, attempt: int) -> Contribution | None:
        """What was published in an attempt, if anything."""
        row = self._one_row(
            "SELECT key, body, signature, secret FROM contributions WHERE study = ? AND attempt = ?", study, attempt
        )
        return None if row is None else Contribution(tuple(json.loads(row[0])), *row[1:])

    def set_signature(self, study: bytes, attempt: int, signature: bytes) -> None:
        """Keep the signature of a published item, so that a restart sends the same bytes; it is written once."""
        with self._writing("written") as database:
            row = database.execute(
                "SELECT signature FROM contributions WHERE study = ? AND attempt = ?", (study, attempt)
            ).fetchone()
            if row is None:
                raise InvalidValue(f"there is no contribution of attempt {attempt} to sign; spend first")
            if row[0] not in (b"", signature):
                raise Refused(f"the contribution of attempt {attempt} has another signature already; send that one")
            database.execute(
                "UPDATE contributions SET signature = ? WHERE study = ? AND attempt = ?", (signature, study, attempt)
            )

    def _append(
        self,
        study: bytes,
        attempt: int,
        key: tuple[Any, ...],
        body: bytes,
        secret: bytes,
        entry: Entry,
        signature: bytes,
        *,
        adopted: bool,
        erased: Sequence[bytes] = (),
    ) -> None:
        if entry.study != study.hex() or entry.attempt != attempt:
            raise InvalidValue(
                f"the entry is for attempt {entry.attempt} of {entry.study[:12]}…, the contribution for attempt {attempt} of "
                f"{study.hex()[:12]}…; both must be the same"
            )
        named, text = canonical(list(key)), entry.to_json()
        digest = _digest(named, body, secret)
        with self._writing("written") as database:
            found = database.execute(
                "SELECT 1 FROM ledger WHERE study = ? AND attempt = ?", (study, attempt)
            ).fetchone()
            if found is not None:
                raise Refused(
                    f"attempt {attempt} of {entry.name!r} was contributed to already; send that contribution again, a second "
                    "one is never made"
                )
            count, last = _last(database)
            head = database.execute("SELECT rows, hash, signature FROM head").fetchone()
            if (count, last) != ((0, START) if head is None else (head[0], head[1])):
                raise LedgerBroken(count, "is not the one that the head of the ledger speaks of")
            if head is not None and head[2] and self._sign is None:
                raise Refused(f"the ledger in {self.path} is signed; open it with the identity that signs it")
            row = count + 1
            now = link(last, row, text, digest)
            signed = b"" if self._sign is None else self._sign(head_message(row, now))
            database.execute(
                "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?)", (row, study, attempt, text, digest, last, now)
            )
            database.execute(
                "INSERT INTO contributions VALUES (?, ?, ?, ?, ?, ?, ?)",
                (study, attempt, named, body, secret, signature, int(adopted)),
            )
            database.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)", (row, now, signed))
            _erase(database, study, attempt, erased)

    def entries(self, since: str | date | None = None, until: str | date | None = None) -> list[Entry]:
        """The ledger, oldest first: from `since` on, and before `until`; of attempts that may have broken off the loss of that."""
        return between(self._as_they_stand(self._all_rows("SELECT entry FROM ledger ORDER BY row")), since, until)

    def entries_of(self, study: bytes) -> list[Entry]:
        """The entries of one study, oldest first; the rest of the ledger, which may be long, is not read."""
        return self._as_they_stand(self._all_rows("SELECT entry FROM ledger WHERE study = ? ORDER BY row", study))

    def _as_they_stand(self, rows: list[Any]) -> list[Entry]:
        known = self._attempts_ended() if any('"broken":' in text for (text,) in rows) else set()
        listed = [Entry.from_json(text) for (text,) in rows]
        return [as_it_stands(one, (one.study, one.attempt) in known) for one in listed]

    def set_ended(self, study: bytes, attempt: int) -> None:
        """Note that the end of an attempt is known, and what it cost entered if that was more than promised."""
        self.once(study, attempt, ENDED, b"")

    def _attempts_ended(self) -> set[tuple[str, int]]:
        if self._one_row("PRAGMA user_version")[0] == 1:  # had no registers
            return set()
        rows = self._all_rows("SELECT study, attempt FROM registers WHERE place = ?", ENDED)
        return {(study.hex(), attempt) for study, attempt in rows}

    # ── votes and results ─────────────────────────────────────────────────────────────────────────────────────────────

    def put_vote(
        self, study: bytes, attempt: int, body: bytes, signature: bytes, secrets: Mapping[bytes, bytes] | None = None
    ) -> None:
        """Keep the one vote of an attempt, and secrets that it speaks of; another vote for the same attempt is refused."""
        with self._writing("written") as database:
            for place, secret in (secrets or {}).items():
                _keep(database, study, attempt, place, secret)
            row = database.execute(
                "SELECT body, signature FROM votes WHERE study = ? AND attempt = ?", (study, attempt)
            ).fetchone()
            if row is None:
                database.execute("INSERT INTO votes VALUES (?, ?, ?, ?)", (study, attempt, body, signature))
            elif tuple(row) != (body, signature):
                raise Refused(f"this party voted otherwise in attempt {attempt}; a vote is cast once")

    def votes(self, study: bytes) -> dict[int, tuple[bytes, bytes]]:
        """attempt → (body, signature)."""
        rows = self._all_rows("SELECT attempt, body, signature FROM votes WHERE study = ? ORDER BY attempt", study)
        return {attempt: (body, signature) for attempt, body, signature in rows}

    def once(self, study: bytes, attempt: int, place: bytes, body: bytes) -> bytes:
        """A register that is written once: what it gives is durable, and is what it gives for ever."""
        with self._writing("written") as database:
            row = database.execute(
                "SELECT body FROM registers WHERE study = ? AND attempt = ? AND place = ?", (study, attempt, place)
            ).fetchone()
            if row is not None:
                return bytes(row[0])
            database.execute("INSERT INTO registers VALUES (?, ?, ?, ?)", (study, attempt, place, body))
        return body

    def register(self, study: bytes, attempt: int, place: bytes) -> bytes | None:
        """What stands in a register, if it was written."""
        row = self._one_row(
            "SELECT body FROM registers WHERE study = ? AND attempt = ? AND place = ?", study, attempt, place
        )
        return None if row is None else bytes(row[0])

    def settle(
        self,
        study: bytes,
        attempt: int,
        bodies: Mapping[bytes, bytes],
        *,
        secrets: Mapping[bytes, bytes] | None = None,
        erased: Sequence[bytes] = (),
    ) -> None:
        """Write registers, keep secrets and erase others, in one transaction; a register that says otherwise is refused."""
        with self._writing("written") as database:
            for place, body in bodies.items():
                where = (study, attempt, place)
                row = database.execute(
                    "SELECT body FROM registers WHERE study = ? AND attempt = ? AND place = ?", where
                ).fetchone()
                if row is None:
                    database.execute("INSERT INTO registers VALUES (?, ?, ?, ?)", (*where, body))
                elif bytes(row[0]) != body:
                    raise Refused(f"this party said something else in attempt {attempt}; each thing is said once")
            for place, secret in (secrets or {}).items():
                _keep(database, study, attempt, place, secret)
            _erase(database, study, attempt, erased)
        self._overwritten(erased)

    def registers(self, study: bytes, beginning: bytes) -> list[tuple[int, bytes, bytes]]:
        """(attempt, place, body) of all registers of a study whose places begin so, in order."""
        rows = self._all_rows(
            "SELECT attempt, place, body FROM registers WHERE study = ? AND substr(place, 1, ?) = ? ORDER BY attempt, place",
            study, len(beginning), beginning,
        )  # fmt: skip
        return [(attempt, bytes(place), bytes(body)) for attempt, place, body in rows]

    def secret(self, study: bytes, attempt: int, place: bytes) -> bytes | None:
        """A secret of an attempt, if it was kept and is not erased."""
        row = self._one_row(
            "SELECT body FROM secrets WHERE study = ? AND attempt = ? AND place = ?", study, attempt, place
        )
        return None if row is None else bytes(row[0])

    def _overwritten(self, erased: Sequence[bytes]) -> None:
        """After secrets were erased: the journal, which may still hold them, is folded into the file and emptied.

        SQLite overwrites what it deletes (`secure_delete`). What a disk or a file system keeps of old blocks is beyond it.
        """
        self._stained = self._stained or bool(erased)
        if self._stained:
            with self._one, failing(self.path, "written"):
                self._usable()
                busy, *_ = self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                self._stained = bool(
                    busy
                )  # somebody looks at the file at this very moment: again with what is written next

    def rise(self, study: bytes, attempt: int, number: int, bodies: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Registers that rise together, in one transaction: durable when this returns, and what it gives is what stands there.

        Of every place the first body ever written under a number stays, and after a number none that is lower is ever written:
        it is refused. The last two numbers are kept.
        """
        stand: dict[bytes, bytes] = {}
        with self._writing("written") as database:
            for place, body in bodies.items():
                where = (study, attempt, place)
                rows = database.execute(
                    "SELECT number FROM rising WHERE study = ? AND attempt = ? AND place = ? ORDER BY number DESC",
                    where,
                ).fetchall()
                highest = rows[0][0] if rows else 0
                if (number,) in rows:
                    found = database.execute(
                        "SELECT body FROM rising WHERE study = ? AND attempt = ? AND place = ? AND number = ?",
                        (*where, number),
                    ).fetchone()
                    stand[place] = bytes(found[0])
                    continue
                if number <= highest:
                    said = "was shut for good" if highest == SHUT else f"stands at number {highest}"
                    raise Refused(
                        f"a register of attempt {attempt} {said}; nothing is written there under number {number}"
                    )
                database.execute("INSERT INTO rising VALUES (?, ?, ?, ?, ?)", (*where, number, body))
                for (old,) in rows[1:]:
                    database.execute(
                        "DELETE FROM rising WHERE study = ? AND attempt = ? AND place = ? AND number = ?", (*where, old)
                    )
                stand[place] = body
        return stand

    def risen(self, study: bytes, attempt: int, place: bytes) -> list[tuple[int, bytes]]:
        """What stands in a rising register, the last number first."""
        rows = self._all_rows(
            "SELECT number, body FROM rising WHERE study = ? AND attempt = ? AND place = ? ORDER BY number DESC",
            study, attempt, place,
        )  # fmt: skip
        return [(number, bytes(body)) for number, body in rows]

    def stands(self, study: bytes, attempt: int, place: bytes, number: int) -> bytes | None:
        """What stands in a rising register under one number, if it does still."""
        row = self._one_row(
            "SELECT body FROM rising WHERE study = ? AND attempt = ? AND place = ? AND number = ?",
            study, attempt, place, number,
        )  # fmt: skip
        return None if row is None else bytes(row[0])

    def result(self, study: bytes) -> dict[str, Any] | None:
        """The result of a study, if it is there."""
        row = self._one_row("SELECT result FROM results WHERE study = ?", study)
        return None if row is None else results.read(row[0])

    def set_result(self, study: bytes, result: dict[str, Any]) -> None:
        """Keep the result of a study. It is computed from what was published, and may be written again."""
        with self._writing("written") as database:
            database.execute("INSERT OR REPLACE INTO results VALUES (?, ?)", (study, results.written(result)))

    # ── verification ──────────────────────────────────────────────────────────────────────────────────────────────────

    def verify(self, card: Verifier | None = None) -> Checked:
        """Check the file, the chain, the head's signature, and that contributions and entries belong together one to one.

        Without a card the signature is not looked at. Raises `LedgerBroken`, which names the row.
        """
        with self._reading() as database:
            try:
                damage = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
            except sqlite3.DatabaseError as error:
                damage = str(error)
            if damage != "ok":
                raise LedgerBroken(0, f"the file is damaged: {damage}")
            kept = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall())
            version = database.execute("PRAGMA user_version").fetchone()[0]
            old = version == 1  # looked at before it was opened for writing
            if kept != {name: trigger(name) for name in triggers_of(version)}:
                raise LedgerBroken(0, "the triggers that keep rows from being changed are not as they were made")
            rows = database.execute(
                "SELECT row, entry, contribution, previous, hash, study, attempt FROM ledger ORDER BY row"
            ).fetchall()
            for place, row in enumerate(rows, start=1):
                _check_types(place, row, (int, str, bytes, bytes, bytes, bytes, int))
            count, last = check_chain(row[:5] for row in rows)
            for row, text, *_, study, attempt in rows:
                entry = Entry.from_json(text)
                if (entry.study, entry.attempt) != (study.hex(), attempt):
                    raise LedgerBroken(row, f"stands for attempt {attempt} of {study.hex()[:12]}… and says otherwise")
            head = database.execute("SELECT rows, hash, signature FROM head").fetchone()
            signed = _check_head(count, last, head, card)
            records = [] if old else database.execute("SELECT number, text, signature FROM records ORDER BY number")
            sealed = [tuple(record) for record in records]
            for record in sealed:
                _check_types(0, record, (int, str, bytes))
            found, excused = seams.check(sealed, [row[4] for row in rows], card)
            admitted = [row[0] for row in rows if row[2] == seams.ADMITTED]
            debits = {(row[5], row[6]): (row[0], row[2]) for row in rows}
            adopted = _check_pairs(database, debits, set(admitted) | set(range(1, excused + 1)))
        return Checked(count, last.hex(), signed, adopted, tuple(found), tuple(admitted))

    # ── the database ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _one_row(self, query: str, *values: Any) -> Any:
        with self._reading() as database:
            return database.execute(query, values).fetchone()

    def _all_rows(self, query: str, *values: Any) -> list[Any]:
        with self._reading() as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._one, failing(self.path, "read"):
            self._usable()
            self._database.execute("BEGIN")
            try:
                yield self._database
            finally:
                with suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")

    @contextmanager
    def _writing(self, what: str) -> Iterator[sqlite3.Connection]:
        with self._one, failing(self.path, what):
            self._usable()
            try:
                self._database.execute("BEGIN IMMEDIATE")
                yield self._database
                self._database.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error | OSError):
                    self._ended = f"failed ({error})"
                raise

    def _usable(self) -> None:
        if self._ended is not None:
            raise StoreFailed(f"{self.path} {self._ended}; open it again before anything else is written or sent")


# ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _last(database: sqlite3.Connection) -> tuple[int, bytes]:
    row = database.execute("SELECT row, hash FROM ledger ORDER BY row DESC LIMIT 1").fetchone()
    return (0, START) if row is None else (row[0], row[1])


def _keep(database: sqlite3.Connection, study: bytes, attempt: int, place: bytes, secret: bytes) -> None:
    """A trigger refuses what stands there already or was erased."""
    database.execute("INSERT INTO secrets VALUES (?, ?, ?, ?)", (study, attempt, place, secret))


def _erase(database: sqlite3.Connection, study: bytes, attempt: int, places: Sequence[bytes]) -> None:
    """Whether they are there or not: afterwards they are not, and never will be."""
    for place in places:
        said = (study, attempt, ERASED + place)
        if not database.execute(
            "SELECT 1 FROM registers WHERE study = ? AND attempt = ? AND place = ?", said
        ).fetchone():
            database.execute("INSERT INTO registers VALUES (?, ?, ?, ?)", (*said, b""))
            database.execute(
                "DELETE FROM secrets WHERE study = ? AND attempt = ? AND place = ?", (study, attempt, place)
            )


def _digest(key: str, body: bytes, secret: bytes) -> bytes:
    parts = [hashlib.sha256(part).hexdigest() for part in (key.encode(), body, secret)]
    return hashlib.sha256(canonical(parts).encode()).digest()


def _check_head(count: int, last: bytes, head: tuple[int, bytes, bytes] | None, card: Verifier | None) -> bool:
    """Whether a signature was checked."""
    if head is None:
        if count:
            raise LedgerBroken(count, "is the last, and the head of the ledger that should say so is gone")
        return False
    _check_types(count, head, (int, bytes, bytes))
    rows, named, signature = head
    if rows != count:
        raise LedgerBroken(min(rows, count) + 1, f"the head of the ledger speaks of {rows} rows, there are {count}")
    if named != last:
        raise LedgerBroken(count, "is not the one that the head of the ledger speaks of")
    if card is not None and not (signature and card.verify(head_message(rows, named), signature)):
        raise LedgerBroken(count, f"the head of the ledger is not signed by {card.name}")
    return card is not None


def _check_types(row: int, values: Sequence[object], kinds: Sequence[type]) -> None:
    if [type(value) for value in values] != list(kinds):
        raise LedgerBroken(row, "holds values of another kind than were ever written")


def _check_pairs(
    database: sqlite3.Connection, debits: dict[tuple[bytes, int], tuple[int, bytes]], excused: set[int]
) -> int:
    """Every contribution has its entry and every entry (but in excused rows) its contribution; how many were adopted."""
    adopted, met = 0, set()
    for study, attempt, key, body, secret, taken in database.execute(
        "SELECT study, attempt, key, body, secret, adopted FROM contributions ORDER BY study, attempt"
    ):
        _check_types(0, (study, attempt, key, body, secret, taken), (bytes, int, str, bytes, bytes, int))
        debit = debits.get((study, attempt))
        if debit is None:
            raise LedgerBroken(0, f"the contribution to attempt {attempt} of {study.hex()[:12]}… has no row in it")
        if _digest(key, body, secret) != debit[1]:
            raise LedgerBroken(debit[0], "its contribution is not the one that was written with it")
        met.add((study, attempt))
        adopted += taken
    for place, (row, _) in debits.items():
        if place not in met and row not in excused:
            raise LedgerBroken(row, "its contribution is gone")
    return adopted
