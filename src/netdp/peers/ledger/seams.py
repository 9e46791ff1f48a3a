"""Where a ledger was carried over to new keys, and what its owner has said about that: signed records beside the chain.

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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from netdp.errors import InvalidValue

from ..identity import Card
from .entries import START, LedgerBroken, canonical, head_message, utc_text

if TYPE_CHECKING:
    from collections.abc import Mapping

ADMITTED = hashlib.sha256(b"netdp admitted 1").digest()
"""The digest of a row whose contribution is not here: its owner entered its cost by hand."""

_RESTORED = {"kind", "time", "rows", "head", "signature", "taken", "card"}
_COMPLETE = {"kind", "time", "rows", "head"}


class Verifier(Protocol):
    """Whoever can tell a signature of the ledger's owner: its public card."""

    @property
    def name(self) -> str: ...

    def verify(self, message: bytes, signature: bytes) -> bool: ...


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
