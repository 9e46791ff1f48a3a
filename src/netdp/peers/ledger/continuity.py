"""Rows that go into a ledger without a contribution: those of a backup under new keys, and those entered by hand.

Both only ever add cost. Rows of a backup are written into an empty store, as they were, with a record that says so, in one
transaction (`carry_over`). A row that is admitted by hand is appended to the chain like any other (`admit`). Neither
brings anything along that could be sent: no contribution, no noise, no vote.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from netdp.errors import InvalidValue, Refused
from netdp.peers.events import Statement
from netdp.peers.identity import Card
from netdp.peers.ledger import entries, results
from netdp.peers.ledger import entries as seams
from netdp.peers.ledger.entries import (
    CORRECTS,
    START,
    Entry,
    LedgerBroken,
    Verifier,
    check_chain,
    curve,
    entry_of,
    head_message,
    link,
    utc_text,
)
from netdp.peers.ledger.losses import SumLoss, kind_of, profile_loss, worst_entry
from netdp.peers.ledger.policy import smallest_roster
from netdp.peers.ledger.store import Store

Row = tuple[int, bytes, int, str, bytes, bytes, bytes]
"""row, study, attempt, entry, contribution, previous, hash: as the table has them."""

Record = tuple[int, str, bytes]

_SIZES = 12
"""Coalitions of more parties are entered as all of them."""


@dataclass(frozen=True)
class Carried:
    """What a ledger holds but for contributions, votes and registers."""

    rows: list[Row]
    head: tuple[int, bytes, bytes] | None
    records: list[Record]
    results: dict[bytes, dict[str, Any]]


def taken_out(store: Store) -> Carried:
    """All of it, as it was at one moment; a peer may run meanwhile."""
    with store._reading() as database:
        old = database.execute("PRAGMA user_version").fetchone()[0] == 1
        rows = database.execute(
            "SELECT row, study, attempt, entry, contribution, previous, hash FROM ledger ORDER BY row"
        ).fetchall()
        head = database.execute("SELECT rows, hash, signature FROM head").fetchone()
        records = (
            [] if old else database.execute("SELECT number, text, signature FROM records ORDER BY number").fetchall()
        )
        found = database.execute("SELECT study, result FROM results ORDER BY study").fetchall()
    return Carried(
        [tuple(row) for row in rows],
        None if head is None else tuple(head),
        [tuple(record) for record in records],
        {study: results.read(result) for study, result in found},
    )


def check(carried: Carried, card: Card) -> list[entries.Seam]:
    """Refuse (LedgerBroken) rows that this party never signed; else the seams among them."""
    count, last = check_chain(
        (row, entry, digest, previous, found) for row, _, _, entry, digest, previous, found in carried.rows
    )
    for row, study, attempt, text, *_ in carried.rows:
        entry = Entry.from_json(text)
        if (entry.study, entry.attempt) != (study.hex(), attempt):
            raise LedgerBroken(row, f"stands for attempt {attempt} of {study.hex()[:12]}… and says otherwise")
    head = carried.head
    if (count, last) != ((0, START) if head is None else head[:2]):
        raise LedgerBroken(count, "is not the one that the head of the ledger speaks of")
    if head is not None and not card.verify(head_message(head[0], head[1]), head[2]):
        raise LedgerBroken(count, f"the head of the ledger is not signed by {card.name}")
    return entries.check(carried.records, [row[6] for row in carried.rows], card)[0]


def carry_over(store: Store, carried: Carried, taken: str, card: Card) -> None:
    """Fill an empty store with the rows that the party with `card` had when the backup was `taken`, signed anew."""
    sign = _signing(store)
    check(carried, card)
    with store._writing("written") as database:
        for table in ("ledger", "contributions", "votes", "registers", "records", "rising"):
            if database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None:
                raise Refused(f"{store.path} is in use already; a backup is restored into a new home only")
        database.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?)", carried.rows)
        count, last, signature = carried.head or (0, START, b"")
        if count:
            database.execute("INSERT INTO head VALUES (1, ?, ?, ?)", (count, last, sign(head_message(count, last))))
        database.executemany("INSERT INTO records VALUES (?, ?, ?)", carried.records)
        number, text = len(carried.records) + 1, entries.restored(count, last, signature, taken, card)
        database.execute(
            "INSERT INTO records VALUES (?, ?, ?)", (number, text, sign(entries.signed_text(number, text)))
        )
        database.executemany(
            "INSERT INTO results VALUES (?, ?)",
            [(study, results.written(result)) for study, result in carried.results.items()],
        )


def admit(store: Store, entries: Iterable[Entry]) -> int:
    """Append entries without contributions, all or none; how many."""
    sign, wanted = _signing(store), list(entries)
    with store._writing("written") as database:
        head = database.execute("SELECT rows, hash FROM head").fetchone()
        count, last = (0, START) if head is None else head
        if count != database.execute("SELECT COUNT(*) FROM ledger").fetchone()[0]:
            raise LedgerBroken(count, "is not the one that the head of the ledger speaks of")
        for entry in wanted:
            text, study = entry.to_json(), bytes.fromhex(entry.study)
            count, previous = count + 1, last
            last = link(previous, count, text, seams.ADMITTED)
            database.execute(
                "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?)",
                (count, study, entry.attempt, text, seams.ADMITTED, previous, last),
            )
        if wanted:
            database.execute(
                "INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)", (count, last, sign(head_message(count, last)))
            )
    return len(wanted)


def promised(study: Any, store: Store, me: int, times: int = 1) -> list[Entry]:
    """Entries for all that a study may cost party `me` and that the ledger does not have (docs/proofs/peers.md#backups).

    If nobody may be missing, the roster of every attempt is known, and so is its entry. Else a masked sum, or local noise, is
    entered once per attempt as among the fewest allowed, against everybody by name as against the worst; and of any other
    protocol the promise of the study, which covers all attempts and absences, for as many parties as it speaks of.
    `times`: if it went worse than promised, which its end then said.
    """
    if times < 1:
        raise InvalidValue(f"a study is entered once or more times, got {times}")
    used = {entry.attempt for entry in store.entries_of(study.hash)}
    left = max(0, times * study.privacy.attempts - sum(attempt < CORRECTS for attempt in used))
    free = [attempt for attempt in range(1, len(used) + left + 1) if attempt not in used][:left]
    everybody = tuple(range(study.n))
    if not left or not study.privacy.absent:
        return [entry_of(study, attempt, everybody, me) for attempt in free]
    small = entry_of(study, 1, smallest_roster(study, me), me)
    if isinstance(kind_of(small.loss), SumLoss):
        loss = _as_against_the_worst(study, small)
    else:
        loss, free = _promise(study, me), free[: -(-left // study.privacy.attempts)]
    return [replace(small, time=utc_text(), attempt=attempt, roster=study.names, loss=loss) for attempt in free]


def _as_against_the_worst(study: Any, small: Entry) -> dict[str, Any]:
    """What any 1, 2, … parties learn from an attempt among the fewest, as tables that hold for all names."""
    curves = [worst_entry([curve(small, size)], 0) for size in range(1, len(small.roster))]
    sizes = dict(enumerate(curves[1:_SIZES], start=2))
    return profile_loss({name: curves[0] for name in study.names if name != small.me}, curves[-1], sizes)


def _promise(study: Any, me: int) -> dict[str, Any]:
    """The promise of a study as tables: against any 1, 2, … as many as it speaks of, and no bound against more."""
    curator = int(study.running.has_curator)  # a promise counts the parties that collude with it
    counts = range(1, study.privacy.colluders + curator + 1)
    curves = {size: worst_entry([study.running.promise(size - curator).curve], me) for size in counts}
    single = {name: curves[1] for name in study.everybody if name != study.names[me]}
    return profile_loss(single, None, {size: one for size, one in curves.items() if size > 1})


def is_admitted(store: Store, study: bytes) -> bool:
    """Whether a study's cost was entered by hand: its numbers are elsewhere, so it cannot go on here."""
    row = store._one_row("SELECT 1 FROM ledger WHERE study = ? AND contribution = ?", study, entries.ADMITTED)
    return row is not None


def seams_of(store: Store, card: Verifier | None) -> list[entries.Seam]:
    """Where the ledger was carried over to new keys."""
    found = taken_out(store)
    return entries.check(found.records, [row[6] for row in found.rows], card)[0]


def say_complete(store: Store) -> bool:
    """Write down that nothing is missing; False if nobody had asked."""
    sign = _signing(store)
    if all(seam.complete for seam in seams_of(store, None)):
        return False
    with store._writing("written") as database:
        head = database.execute("SELECT rows, hash FROM head").fetchone() or (0, START)
        number = database.execute("SELECT COALESCE(MAX(number), 0) + 1 FROM records").fetchone()[0]
        text = entries.complete(*head)
        database.execute(
            "INSERT INTO records VALUES (?, ?, ?)", (number, text, sign(entries.signed_text(number, text)))
        )
    return True


def check_may_run(store: Store, study: Any, card: Verifier, home: object) -> None:
    """Refuse to take part while a seam is open, and in a study whose cost was entered by hand."""
    for seam in seams_of(store, card):
        if not seam.complete:
            raise Refused(Statement(
                f"{home} was restored on {seam.time[:10]} from a backup of {seam.taken}; what was spent after that is not in its "
                f"ledger. Enter each study of that time (netdp ledger admit STUDY.toml --home {home}), then say that this is "
                f"all (netdp ledger admit --complete --home {home})",
                "memory",
            ))  # fmt: skip
    if is_admitted(store, study.hash):
        raise Refused(Statement(
            f"the cost of the study {study.name!r} was entered by hand: what this party published in it is not here, and a "
            "second contribution would uncover data; take part in a new study",
            "memory",
        ))  # fmt: skip


def _signing(store: Store) -> Any:
    if store._sign is None:
        raise InvalidValue("rows without a contribution are signed by their owner; open the store with its identity")
    return store._sign
