"""A party's ledger: what each study has cost it, so that the next one can be added to all before.

Every attempt of a study in which a party publishes something is one *entry*. An entry does not hold an ε: it holds the few
numbers from which the whole privacy curve can be computed again, and who was there. So entries can be added up later, for
observers and periods that nobody thought of when they were written.

**Against whom.** `netdp.peers.ledger.losses` says what c members of a roster learnt from one attempt. From that

- a *named* party: c = 1 where it is in the roster, and an outsider elsewhere, who sees at most what was published;
- *any k parties together*: that all k sit in every roster is the worst case, so this bounds every coalition of k, whatever
  its members are called. A name is only as good as the study file that it stands in: the same party may appear under two
  names. So limits (`netdp.peers.ledger.policy`) are for numbers of parties, never for names.

**Adding up.** Curves are composed as if everything after had been chosen with knowledge of everything before, which is how
a life goes. The order of entries does not matter.

**Units.** An entry protects all data of the party (unit `party`: any data replaced by any other), or one record (unit
`record`: one record more or less). Two data sets of a party that differ in one record are two data sets of the party, so
an entry of unit party bounds what is learnt about one record, by the same curve (between data with which it would take part
at all). The other way there is no bound: a party has many records. So the total about *one record* adds all entries; the
total about *the party* exists only if all entries are of unit party, and is "no bound" otherwise. A record is one row in
each study: of somebody with several rows in a study more is learnt than the total about one record says.

**The chain.** Row i is hashed as SHA-256(hash of row i − 1 ‖ canonical JSON of {row, entry, contribution}), where
`contribution` is a digest of what was published; the last hash is signed. A row that is changed, removed, inserted or moved
breaks the chain at that row; a tail that is cut off breaks the signature. What this cannot show is in `netdp.peers.ledger.store`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

from netdp.errors import InvalidValue, NetdpError
from netdp.privacy import Curve, Unit

from .losses import NO_BOUND, check_loss, is_covered, seen, together

START = hashlib.sha256(b"netdp ledger 1").digest()
"""The hash before the first row."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_HEX = re.compile(r"[0-9a-f]{64}")


class LedgerBroken(NetdpError):
    """The ledger is not what was written: `row` is the first row (from 1) that does not fit, 0 if it is the whole."""

    def __init__(self, row: int, problem: str) -> None:
        self.row, self.problem = row, problem
        where = f"row {row} of the ledger" if row else "the ledger"
        super().__init__(
            f"{where}: {problem}; do not run this peer; make a new home from the newest backup (netdp peer restore)"
        )


# ── entries ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Entry:
    """What one attempt of one study cost this party.

    time     when it was written, UTC, as 2026-11-16T10:00:00Z
    study    the study's hash, 64 hexadecimal digits
    name     what the study calls itself
    attempt  1, 2, …
    roster   the names of all that took part, `me` among them
    unit     what is protected: "party" or "record"
    delta    the δ that the study speaks of (the curve holds at all)
    loss     from what the curve is computed: {"kind": "masked-sum" | "local", "share", "distance", "dimension"}, or
             {"kind": "profile", "curves": […], "single": {name: which}, "sizes": {k: which}, "any": which or None}

    >>> entry = Entry("2026-11-16T10:00:00Z", 64 * "a", "heights", 1, ("Ann", "Bob", "Cy"), "Ann", "party", 1e-6,
    ...               {"kind": "masked-sum", "share": 10**6, "distance": 1000, "dimension": 1})
    >>> round(float(curve(entry, "Bob").epsilon(1e-6)), 2), round(float(curve(entry, 2).epsilon(1e-6)), 2)
    (3.31, 4.89)
    """

    time: str
    study: str
    name: str
    attempt: int
    roster: tuple[str, ...]
    me: str
    unit: str
    delta: float
    loss: dict[str, Any] = field(hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "roster", tuple(self.roster))
        object.__setattr__(self, "time", utc_text(self.time))
        if not isinstance(self.study, str) or not _HEX.fullmatch(self.study):
            raise InvalidValue(f"the study of an entry is its hash, 64 hexadecimal digits, got {self.study!r}")
        if type(self.attempt) is not int or self.attempt < 1:
            raise InvalidValue(f"an attempt is a whole number from 1 on, got {self.attempt!r}")
        if not all(isinstance(name, str) and name for name in (self.name, self.me, *self.roster)):
            raise InvalidValue(f"names in an entry must be non-empty texts, got {(self.name, self.me, *self.roster)!r}")
        if len(set(self.roster)) != len(self.roster) or self.me not in self.roster:
            raise InvalidValue(f"a roster names everybody once, {self.me!r} included, got {self.roster!r}")
        if self.unit not in set(Unit):
            raise InvalidValue(f"a unit is 'party' or 'record', got {self.unit!r}")
        if not (isinstance(self.delta, float) and 0 < self.delta < 1):
            raise InvalidValue(f"δ must lie between 0 and 1, got {self.delta!r}")
        check_loss(self.loss, self.roster, self.me)
        object.__setattr__(self, "unit", str(self.unit))

    def to_json(self) -> str:
        """Canonical: sorted keys, no spaces, ASCII; the same entry always gives the same bytes."""
        return canonical(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Entry:
        """Back from `to_json`."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidValue(f"this is no entry of a ledger: {error}") from None


def canonical(data: Any) -> str:
    """One text for one value.

    >>> canonical({"b": 0.1, "a": [1, "ö"]})
    '{"a":[1,"\\\\u00f6"],"b":0.1}'
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def utc_text(moment: str | date | None = None) -> str:
    """A moment as the text that entries hold; now by default. A day means its first second.

    >>> utc_text(date(2026, 1, 1)), utc_text("2026-03-01")
    ('2026-01-01T00:00:00Z', '2026-03-01T00:00:00Z')
    """
    if isinstance(moment, str) and _TIME.fullmatch(moment):
        moment = moment[:-1] + "+00:00"
    try:
        if moment is None:
            moment = datetime.now(UTC)
        elif isinstance(moment, str):
            moment = datetime.fromisoformat(moment)
        elif not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    except (ValueError, AttributeError, TypeError):
        raise InvalidValue(f"cannot read {moment!r} as a time; write 2026-11-16 or 2026-11-16T10:00:00Z") from None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def year(number: int) -> tuple[str, str]:
    """From when and until (not included) a calendar year goes, UTC.

    >>> year(2026)
    ('2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z')
    """
    if not 1970 <= number <= 9998:
        raise InvalidValue(f"a year has four digits, such as 2026, got {number}")
    return f"{number}-01-01T00:00:00Z", f"{number + 1}-01-01T00:00:00Z"


def between(entries: Iterable[Entry], since: str | date | None, until: str | date | None) -> list[Entry]:
    """The entries from `since` on and before `until`, and what corrects them, whenever that was found out."""
    start = "" if since is None else utc_text(since)
    end = "~" if until is None else utc_text(until)
    listed = list(entries)
    inside = {(entry.study, entry.attempt) for entry in listed if start <= entry.time < end}
    return [
        entry
        for entry in listed
        if start <= entry.time < end or (entry.attempt > CORRECTS and _corrected(entry) in inside)
    ]


def entry_of(study: Any, attempt: int, roster: Sequence[int], me: int, time: str | date | None = None) -> Entry:
    """The entry to be written before party `me` contributes to an attempt among `roster` (party numbers of the study)."""
    members = tuple(roster)
    names = tuple(study.names[u] for u in members)
    return Entry(
        time=utc_text(time),
        study=study.hash.hex(),
        name=study.name,
        attempt=attempt,
        roster=names,
        me=study.names[me],
        unit=str(study.task.unit),
        delta=float(study.privacy.delta),
        loss=study.running.entered(study.checked_roster(members), me),
    )


def if_broken_off(entry: Entry, loss: dict[str, Any] | None) -> Entry:
    """The entry, with what the attempt costs as long as its end is not known, where that is more."""
    return entry if loss is None else replace(entry, loss=entry.loss | {"broken": loss})


def as_it_stands(entry: Entry, ended: bool) -> Entry:
    """The entry with the one loss that holds: of an attempt whose end is known, or of one that may have broken off."""
    if "broken" not in entry.loss:
        return entry
    loss = {key: value for key, value in entry.loss.items() if key != "broken"}
    return replace(entry, loss=loss if ended else entry.loss["broken"])


CORRECTS = 1_000_000
"""An entry whose attempt is k + CORRECTS says what attempt k really cost, in place of what was entered before it began.

k + 2·CORRECTS, …: a further correction, if later something was found that the one before does not cover."""


def correction_of(entry: Entry, loss: dict[str, Any], time: str | date | None = None, number: int = 1) -> Entry:
    """The entry that takes the place of another one, of an attempt that went otherwise than was promised."""
    return replace(entry, time=utc_text(time), attempt=entry.attempt + number * CORRECTS, loss=loss)


def in_force(entries: Iterable[Entry]) -> list[Entry]:
    """Without those entries that a later one corrects.

    If an attempt was corrected several times, all of them count, but for those that a later one covers.
    """
    listed = list(entries)
    corrections = [entry for entry in listed if entry.attempt > CORRECTS]
    corrected = {_corrected(entry) for entry in corrections}

    def counts(entry: Entry) -> bool:
        if entry.attempt < CORRECTS:
            return _corrected(entry) not in corrected
        later = [one for one in corrections if _corrected(one) == _corrected(entry) and one.attempt > entry.attempt]
        return not any(is_covered(entry.loss, one.loss) for one in later)

    return [entry for entry in listed if counts(entry)]


def _corrected(entry: Entry) -> tuple[str, int]:
    """The attempt that an entry is about."""
    return entry.study, entry.attempt % CORRECTS


# ── what somebody has learnt ──────────────────────────────────────────────────────────────────────────────────────────


def curve(entry: Entry, against: int | str) -> Curve:
    """What `against` learnt from one entry: a party by name, or any so many parties together."""
    return together([seen(entry.loss, entry.roster, entry.me, against)])


def total(entries: Iterable[Entry], against: int | str, unit: Unit | str = Unit.PARTY) -> Curve:
    """What `against` learnt from all entries together, about all data of this party or about one record of it.

    >>> entry = Entry("2026-11-16T10:00:00Z", 64 * "a", "heights", 1, ("Ann", "Bob", "Cy"), "Ann", "record", 1e-6,
    ...               {"kind": "masked-sum", "share": 10**6, "distance": 1000, "dimension": 1})
    >>> [round(float(total([entry] * times, 2, "record").epsilon(1e-6)), 2) for times in (0, 1, 2)]
    [0.0, 4.89, 7.29]
    >>> float(total([entry], 2, "party").epsilon(1e-6))
    inf
    """
    wanted = in_force(entries)
    parts = [seen(entry.loss, entry.roster, entry.me, against) for entry in wanted]
    if Unit(unit) is Unit.PARTY and any(entry.unit != Unit.PARTY for entry in wanted):
        return NO_BOUND
    return together(parts)


def observers(entries: Iterable[Entry]) -> list[str]:
    """Everybody else who ever was in a roster, by name, in order of appearance."""
    known = list(entries)
    own = {entry.me for entry in known}
    named = dict.fromkeys(
        name for entry in known for name in (*entry.roster, *entry.loss.get("single", ()))
    )  # a curator
    return [name for name in named if name not in own]


# ── the chain ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def link(previous: bytes, row: int, entry: str, contribution: bytes) -> bytes:
    """The hash of a row: of the one before, and of all that the row says."""
    said = canonical({"row": row, "entry": entry, "contribution": contribution.hex()})
    return hashlib.sha256(previous + said.encode()).digest()


def head_message(rows: int, last: bytes) -> bytes:
    """What the owner of a ledger signs: how many rows there are, and the hash of the last."""
    return b"netdp ledger head 1\0" + rows.to_bytes(8, "big") + last


def check_chain(rows: Iterable[tuple[int, str, bytes, bytes, bytes]]) -> tuple[int, bytes]:
    """Follow (row, entry, contribution, previous, hash) from the start; how many rows there are, and the last hash.

    >>> one = Entry("2026-11-16T10:00:00Z", 64 * "a", "heights", 1, ("Ann", "Bob"), "Ann", "party", 1e-6,
    ...             {"kind": "local", "share": 100, "distance": 10, "dimension": 1}).to_json()
    >>> check_chain([(1, one, b"y", START, link(START, 1, one, b"y"))])[0]
    1
    >>> check_chain([(1, one, b"z", START, link(START, 1, one, b"y"))])
    Traceback (most recent call last):
      ...
    netdp.peers.ledger.entries.LedgerBroken: row 1 of the ledger: its content does not have the hash that was written with it; ...
    """
    last, count = START, 0
    for row, entry, contribution, previous, found in rows:
        count += 1
        if row != count:
            raise LedgerBroken(count, f"is missing; the next row is number {row}")
        if previous != last:
            raise LedgerBroken(row, "does not follow the row before it: one of them was put there later")
        if link(last, row, entry, contribution) != found:
            raise LedgerBroken(row, "its content does not have the hash that was written with it")
        try:
            Entry.from_json(entry)
        except InvalidValue as error:
            raise LedgerBroken(row, str(error)) from None
        last = found
    return count, last
