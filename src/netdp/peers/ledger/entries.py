"""A party's ledger: what each study has cost it, so that the next one can be added to all before.

Every attempt of a study in which a party publishes something is one *entry*. An entry does not hold an ε: it holds the few
numbers from which the whole privacy curve can be computed again, and who was there. So entries can be added up later, for
observers and periods that nobody thought of when they were written.

**Against whom.** `netdp.peers.ledger.losses` says what c members of a roster learnt from one attempt. From that

- a *named* party: c = 1 where it is in the roster, and an outsider elsewhere, who sees at most what was published;
- *any k parties together*: that all k sit in every roster is the worst case, so this bounds every coalition of k, whatever
  its members are called. A name is only as good as the study file that it stands in: the same party may appear under two
  names. So limits (`netdp.peers.ledger.policy`) are for numbers of parties, never for names.

**Adding up.** People choose the next study, and whether there is one, after they have seen the answers; others can force a further
attempt. So what all entries have cost *whatever was chosen* is read off an odometer (`netdp.privacy.Odometer`), and limits are
filters. The smaller number that composes what happened, `total`, holds *if all had been fixed beforehand*: it is right about all
attempts that one study allows, and about nothing that came to be by looking (docs/proofs/privacy.md#adaptive-composition).

**Units.** An entry protects all data of the party (unit `party`: any data replaced by any other), or one record (unit
`record`: one record more or less). Two data sets of a party that differ in one record are two data sets of the party, so
an entry of unit party bounds what is learnt about one record, by the same curve (between data with which it would take part
at all). The other way there is no bound: a party has many records. So the total about *one record* adds all entries; the
total about *the party* exists only if all entries are of unit party, and is "no bound" otherwise. A record is one row in
each study: of somebody with several rows in a study more is learnt than the total about one record says.

**The chain.** Row i is hashed as SHA-256(hash of row i − 1 ‖ canonical JSON of {row, entry, contribution}), where
`contribution` is a digest of what was published; the last hash is signed. A row that is changed, removed, inserted or moved
breaks the chain at that row; a tail that is cut off breaks the signature. What this cannot show is in `netdp.peers.ledger.store`.

Where a ledger was carried over to new keys, and what its owner has said about that: signed records beside the chain.

`netdp peer restore` puts the rows of a backup under *new* keys (`netdp.peers.backup` says why). Two kinds of records tell of it:

    restored   so many rows, up to this hash, were taken over from a backup of this time, made by the party with this card
    complete   the owner says: whatever was spent between the backup and the restoration is entered now

**What holds a seam together.** The rows before it keep their bytes and their hashes. The record holds the old card and its
signature of the old head, so that anybody can check that these rows are the ones that the old keys signed; the record itself
is signed by the keys that came after it, and the rows after it follow the old hash. So rows before a seam cannot be
changed, removed or added without breaking one of the two signatures. Of the rows before a seam the contributions are not here
(they stayed with the old keys), and `check` says how many rows are excused for that; a row after it without its contribution is
still a broken ledger. Taking the record itself away leaves rows without contributions, which is found too.

**An open seam.** Between the backup and the restoration the party may have spent more. Nothing in the file can tell. So a
restored home takes part in nothing until its owner has entered what it knows (`netdp ledger admit STUDY.toml`) and has said that
this is all (`netdp ledger admit --complete`).

**An admitted row** has an entry and no contribution: its digest is the fixed `ADMITTED`, and is in the chain like any other.
No contribution can ever be written for the same attempt, since its row is taken.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from netdp.errors import InvalidValue, NetdpError
from netdp.peers.identity import Card
from netdp.peers.ledger.losses import NO_BOUND, check_loss, equal_together, is_covered, seen, together
from netdp.privacy.curve import Curve
from netdp.privacy.filters import Odometer
from netdp.privacy.guarantee import Unit
from netdp.privacy.wording import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

START = hashlib.sha256(b"netdp ledger 1").digest()
"""The hash before the first row."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

_HEX = re.compile(r"[0-9a-f]{64}")


class Verifier(Protocol):
    """Whoever can tell a signature of the ledger's owner: its public card."""

    @property
    def name(self) -> str: ...

    def verify(self, message: bytes, signature: bytes) -> bool: ...


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


class SpentEpsilon(NamedTuple):
    """What entries have cost, in ε."""

    epsilon: float
    """Whatever was chosen after looking at answers."""
    fixed: float
    """If all had been fixed beforehand."""


def curve(entry: Entry, against: int | str) -> Curve:
    """What `against` learnt from one entry: a party by name, or any so many parties together."""
    return together([seen(entry.loss, entry.roster, entry.me, against)])


def losses(entries: Iterable[Entry], against: int | str, unit: Unit | str = Unit.PARTY) -> list[tuple[Curve, int]]:
    """What `against` learnt from every single entry in force, equal ones counted together; no bound if units do not fit."""
    wanted = in_force(entries)
    if Unit(unit) is Unit.PARTY and any(entry.unit != Unit.PARTY for entry in wanted):
        return [(NO_BOUND, 1)]
    parts = (seen(entry.loss, entry.roster, entry.me, against) for entry in wanted)
    return equal_together(parts)


def total(entries: Iterable[Entry], against: int | str, unit: Unit | str = Unit.PARTY) -> Curve:
    """What `against` learnt from all entries together if all of them had been fixed beforehand, about all data or one record.

    >>> entry = Entry("2026-11-16T10:00:00Z", 64 * "a", "heights", 1, ("Ann", "Bob", "Cy"), "Ann", "record", 1e-6,
    ...               {"kind": "masked-sum", "share": 10**6, "distance": 1000, "dimension": 1})
    >>> [round(float(total([entry] * times, 2, "record").epsilon(1e-6)), 2) for times in (0, 1, 2)]
    [0.0, 4.89, 7.29]
    >>> float(total([entry], 2, "party").epsilon(1e-6))
    inf
    """
    wanted = in_force(entries)
    if Unit(unit) is Unit.PARTY and any(entry.unit != Unit.PARTY for entry in wanted):
        return NO_BOUND
    return together(seen(entry.loss, entry.roster, entry.me, against) for entry in wanted)


def spent(entries: Iterable[Entry], against: int | str, unit: Unit | str, delta: float) -> SpentEpsilon:
    """ε of all entries together at δ, whatever was chosen after looking, and if all had been fixed beforehand.

    The odometer is the same for every ledger: if its levels were chosen to fit what was spent, they would be chosen after looking.

    >>> entry = Entry("2026-11-16T10:00:00Z", 64 * "a", "heights", 1, ("Ann", "Bob", "Cy"), "Ann", "record", 1e-6,
    ...               {"kind": "masked-sum", "share": 10**6, "distance": 250, "dimension": 1})
    >>> both = spent([entry] * 4, 2, "record", 1e-6)
    >>> round(both.epsilon, 2), round(both.fixed, 2)
    (2.81, 2.25)
    """
    known = list(entries)
    fixed = float(total(known, against, unit).epsilon(delta))
    odometer = Odometer(delta)
    foreseen = not any(entry.attempt > CORRECTS for entry in known)  # what an attempt really cost shows only in the end
    for loss, times in losses(known, against, unit):
        odometer.spend(loss, times, foreseen=foreseen)
    return SpentEpsilon(max(odometer.epsilon, fixed), fixed)


def spent_by_size(entries: Iterable[Entry], sizes: Iterable[int], unit: Unit | str, delta: float) -> dict[str, Any]:
    """What any so many parties learned from a whole ledger, both ways to count, as plain values; infinite: no bound."""
    known = list(entries)
    both = {str(k): spent(known, k, unit, delta) for k in sizes}
    return {
        "entries": len(in_force(known)),
        "delta": delta,
        "unit": str(unit),
        "epsilon": {k: one.epsilon for k, one in both.items()},
        "fixed": {k: one.fixed for k, one in both.items()},
    }


def spent_lines(told: Mapping[str, Any], who: Callable[[int], str], promised: Mapping[str, float]) -> list[str]:
    """What `spent_by_size` found, as a table of at most 80 columns; `promised` by size, where a study states it.

    >>> told = {"epsilon": {"1": 0.5101, "2": math.inf}, "fixed": {"1": 0.476, "2": math.inf}}
    >>> for line in spent_lines(told, lambda k: f"any {k} parties", {"2": 1.0}):
    ...     print(line)
                                  whatever was    if all had been
                                        chosen   fixed beforehand
      any 1 parties                      0.511              0.476
      any 2 parties                   no bound           no bound   promised 1
    """

    def cell(value: float) -> str:
        return readable(value) if math.isfinite(value) else "no bound"

    lines = [f"{'':<28}{'whatever was':>14}{'if all had been':>19}", f"{'':<28}{'chosen':>14}{'fixed beforehand':>19}"]
    for k, epsilon in told["epsilon"].items():
        beside = f"   promised {promised[k]:g}" if k in promised else ""
        lines.append(f"  {who(int(k)):<26}{cell(epsilon):>14}{cell(told['fixed'][k]):>19}{beside}")
    return lines


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


ADMITTED = hashlib.sha256(b"netdp admitted 1").digest()
"""The digest of a row whose contribution is not here: its owner entered its cost by hand."""

_RESTORED = {"kind", "time", "rows", "head", "signature", "taken", "card"}

_COMPLETE = {"kind", "time", "rows", "head"}


@dataclass(frozen=True)
class Seam:
    """The first `rows` rows come from a backup of the time `taken`, made by the party with `card`."""

    rows: int
    head: str
    taken: str
    time: str
    card: Card
    complete: bool
    """Whether the owner has said that nothing is missing."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "rows": self.rows, "head": self.head, "backup": self.taken, "restored": self.time,
            "old_fingerprint": self.card.fingerprint, "complete": self.complete,
        }  # fmt: skip


def signed_text(number: int, text: str) -> bytes:
    """What is signed of a record: its place and its text."""
    return b"netdp ledger record 1\0" + number.to_bytes(8, "big") + hashlib.sha256(text.encode()).digest()


def restored(rows: int, head: bytes, signature: bytes, taken: str, card: Card) -> str:
    """The text of a record about a restoration."""
    return canonical(
        {
            "kind": "restored", "time": utc_text(), "rows": rows, "head": head.hex(), "taken": taken,
            "signature": base64.b64encode(signature).decode(), "card": card.to_dict(),
        }
    )  # fmt: skip


def complete(rows: int, head: bytes) -> str:
    """The text of a record that says that nothing is missing up to this row."""
    return canonical({"kind": "complete", "time": utc_text(), "rows": rows, "head": head.hex()})


def check(
    records: Sequence[tuple[int, str, bytes]], hashes: Sequence[bytes], card: Verifier | None
) -> tuple[list[Seam], int]:
    """The seams of a ledger whose rows have these hashes, and up to which row contributions may be missing.

    records  (number, text, signature), in order
    card     who signs now; None: signatures are not looked at, but for those of the old heads
    """
    read = [_read(number, place, text) for place, (number, text, _) in enumerate(records, start=1)]
    signer: Verifier | None = card
    for (number, text, signature), said in zip(reversed(records), reversed(read), strict=True):
        if signer is not None and not signer.verify(signed_text(number, text), signature):
            raise LedgerBroken(0, f"its record {number} is not signed by {signer.name}")
        if said["kind"] == "restored":
            signer = said["card"]
    seams: list[Seam] = []
    before = 0
    for number, said in enumerate(read, start=1):
        rows = said["rows"]
        if rows > len(hashes) or rows < before or (hashes[rows - 1] if rows else START).hex() != said["head"]:
            raise LedgerBroken(min(rows, len(hashes)), f"is not the one that its record {number} speaks of")
        before = rows
        if said["kind"] == "complete":
            seams = [_closed(seam) for seam in seams]
            continue
        old: Card = said["card"]
        if rows and not old.verify(head_message(rows, bytes.fromhex(said["head"])), said["signature"]):
            raise LedgerBroken(rows, f"was the last of a backup, and is not signed by the {old.name} who made that")
        seams.append(Seam(rows, said["head"], said["taken"], said["time"], old, complete=False))
    return seams, max((seam.rows for seam in seams), default=0)


def _closed(seam: Seam) -> Seam:
    return Seam(seam.rows, seam.head, seam.taken, seam.time, seam.card, complete=True)


def _read(number: object, place: int, text: str) -> Mapping[str, Any]:
    """A record, checked; `card` as a Card and `signature` as bytes."""
    if number != place:
        raise LedgerBroken(0, f"its record {place} is missing; the next one is number {number}")
    try:
        said = json.loads(text)
        wanted = {"restored": _RESTORED, "complete": _COMPLETE}[said["kind"]]
        if set(said) != wanted or canonical(said) != text:
            raise InvalidValue("other fields than were ever written")
        if type(said["rows"]) is not int or said["rows"] < 0 or len(bytes.fromhex(said["head"])) != 32:
            raise InvalidValue("rows and head are a whole number and a hash")
        if said["kind"] == "restored":
            said["card"] = Card.from_dict(said["card"])
            said["signature"] = base64.b64decode(said["signature"], validate=True)
            utc_text(said["taken"])
        utc_text(said["time"])
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error, RecursionError) as error:
        raise LedgerBroken(0, f"its record {number} cannot be read: {error}") from None
    return dict(said)
