"""A backup of what a party must remember, that cannot be used to send anything twice.

**The danger.** Under the pads of one attempt two different numbers of one party uncover their difference; with one number
and its noise drawn twice the noise averages out. A copy of a home is as consistent as it was then, and nothing in it can
tell that it is old. So a backup that could take part again could publish a second number where a first one stands.

**What a backup is, therefore.** It holds the ledger (rows, hashes, signature), the results, the policy and the public card.
It holds no secret key, no noise, no contribution, no vote and no register. `restore` makes *new* keys under the same name
and puts the rows under them (`netdp.peers.ledger.entries`).

**Why no old noise can be sent from it.** Every study lists its parties' cards; a peer refuses a study that lists another card
than its own (`netdp.peers.desk`), and the others compare certificates byte by byte. A restored home has a card that no study
made before the restoration lists, because its keys were drawn afterwards. So it can take part in none of them. It could
not even compute what was sent: noise comes from a secret that is not there, pads from an agreement key that is not there. In
studies made afterwards everything is bound to their hash, and so to the new card: nothing of before can be replayed in them.

**What is lost with the machine.** What was spent between the backup and the loss is not in the backup. The restored home says so,
and takes part in nothing until its owner has entered these studies and has said that this is all. An entry made in this way
is everything that the study could cost: never less than the truth. (But for a study whose end was reported to be worse than
promised: `netdp ledger admit --times 2` enters it twice, and so on.)

**What an owner must still do.** Never use the old home again: two homes of one owner are two ledgers, and each knows half.

The proofs: docs/proofs/peers.md#backups.

A backup is signed by the keys that made it, so a change is noticed. Who can write the file could replace it by another one,
signed by other keys: `restore` shows the fingerprint of the card that signed, to be compared with the one on record, and
takes it as an argument.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netdp.errors import FileFormatError, InvalidValue, NetdpError, Refused
from netdp.peers.ledger import continuity as carrying

from .identity import Card, Identity
from .ledger.entries import Entry, LedgerBroken, canonical, utc_text
from .ledger.policy import OwnerPolicy
from .ledger.store import Store

FORMAT = 1
LARGEST = 1 << 30
"""Bytes: no backup is larger."""
_FIELDS = {"netdp_backup", "time", "card", "policy", "rows", "head", "records", "results", "signature"}


@dataclass(frozen=True)
class Backup:
    """What was in a home at a moment, and who signed that."""

    time: str
    card: Card
    policy: str | None
    ledger: carrying.Carried

    @property
    def entries(self) -> list[Entry]:
        """The entries of its ledger."""
        return [Entry.from_json(row[3]) for row in self.ledger.rows]


# ── making ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def make(home: Path, to: Path) -> Backup:
    """Write a backup of a home to a new file, readable by its owner only. A peer may run meanwhile."""
    identity = Identity.load(home)
    database = home / "peer.db"
    ledger = carrying.Carried([], None, [], {})
    if database.exists():
        with Store.open(database, read_only=True) as store:
            store.verify(identity.card)  # a ledger that is broken is not worth a copy, and its owner should know
            ledger = carrying.taken_out(store)
    elif Path(f"{database}-wal").exists():
        raise FileFormatError(database, None, "is gone, but its journal is there; put both back first")
    policy = home / "policy.toml"
    made = Backup(utc_text(), identity.card, policy.read_text("utf-8") if policy.exists() else None, ledger)
    content = _content(made)
    content["signature"] = base64.b64encode(identity.sign(_signed(content))).decode()
    _write_new(to, canonical(content).encode() + b"\n")
    return made


def _content(made: Backup) -> dict[str, Any]:
    ledger = made.ledger
    return {
        "netdp_backup": FORMAT,
        "time": made.time,
        "card": made.card.to_dict(),
        "policy": made.policy,
        "rows": [
            [row, study.hex(), attempt, entry, *(part.hex() for part in hashes)]
            for row, study, attempt, entry, *hashes in ledger.rows
        ],
        "head": None if ledger.head is None else [ledger.head[0], ledger.head[1].hex(), ledger.head[2].hex()],
        "records": [[number, text, signature.hex()] for number, text, signature in ledger.records],
        # what a peer served others with stays behind: states and tokens are for single neighbours
        "results": {
            study.hex(): {key: value for key, value in result.items() if key != "resume"}
            for study, result in ledger.results.items()
        },
    }


def _signed(content: dict[str, Any]) -> bytes:
    text = canonical({key: value for key, value in content.items() if key != "signature"})
    return b"netdp backup 1\0" + hashlib.sha256(text.encode()).digest()


def _write_new(path: Path, content: bytes) -> None:
    """A new file, on the disk when this returns; nothing is overwritten, and nothing is left if it cannot be written."""
    try:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")
    except FileExistsError:
        raise Refused(f"{path} is there already; give the backup another name (an older one may be needed)") from None
    except OSError as error:
        raise NetdpError(f"the backup {path} cannot be written: {error.strerror or error}") from None
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        with contextlib.suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise NetdpError(
                f"the backup {path} cannot be written: {error.strerror or error}; nothing is left"
            ) from None
        raise


# ── reading and restoring ─────────────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> Backup:
    """A backup, checked: its signature, its ledger's chain, and that the same party signed both."""
    try:
        if path.stat().st_size > LARGEST:
            raise FileFormatError(path, None, f"has more than {LARGEST:,} bytes, which no backup has")
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict) or "netdp_backup" not in content:
            raise FileFormatError(path, None, "is no backup of a netdp peer")
        if content["netdp_backup"] != FORMAT:
            raise FileFormatError(
                path,
                None,
                f"is a backup of format {content['netdp_backup']!r}, this netdp reads {FORMAT}; use a newer netdp",
            )
        if set(content) != _FIELDS:
            raise FileFormatError(path, None, f"has other parts than a backup: {sorted(set(content) ^ _FIELDS)}")
        card = Card.from_dict(content["card"])
        if not card.verify(_signed(content), base64.b64decode(content["signature"], validate=True)):
            raise FileFormatError(
                path, None, f"was changed after {card.name} signed it, or is damaged; use another backup"
            )
        ledger = carrying.Carried(
            [_row(row) for row in content["rows"]],
            None if content["head"] is None else _hashed(content["head"]),
            [(number, text, bytes.fromhex(signature)) for number, text, signature in content["records"]],
            {bytes.fromhex(study): result for study, result in content["results"].items()},
        )
        carrying.check(ledger, card)
        if content["policy"] is not None:
            OwnerPolicy.from_text(content["policy"], path)
        return Backup(utc_text(content["time"]), card, content["policy"], ledger)
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except FileFormatError:
        raise
    except (LedgerBroken, InvalidValue) as error:
        raise FileFormatError(path, None, f"damaged ({error}); use another backup") from None
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error, RecursionError) as error:
        raise FileFormatError(path, None, f"damaged or no backup ({type(error).__name__}); use another one") from None


def _row(row: list[Any]) -> carrying.Row:
    number, study, attempt, entry, contribution, previous, found = row
    return (
        number, bytes.fromhex(study), attempt, entry, bytes.fromhex(contribution), bytes.fromhex(previous),
        bytes.fromhex(found),
    )  # fmt: skip


def _hashed(head: list[Any]) -> tuple[int, bytes, bytes]:
    rows, last, signature = head
    return rows, bytes.fromhex(last), bytes.fromhex(signature)


def restore(path: Path, home: Path, *, fingerprint: str | None = None) -> tuple[Backup, Identity]:
    """A new home with what a backup remembers, and new keys. Refuses a folder that has anything in it.

    fingerprint  of the card that made the backup, if it is known: spaces do not matter
    """
    found = read(path)
    if fingerprint is not None and _plain(fingerprint) != _plain(found.card.fingerprint):
        raise Refused(
            f"{path} was signed by the card {found.card.fingerprint}, not by the one you gave; is it the right backup?"
        )
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise Refused(
            f"{home} is not empty; a backup is restored into a new folder only, so that nothing newer is ever overwritten"
        )
    home.parent.mkdir(parents=True, exist_ok=True)
    fresh = home.with_name(f"{home.name}.new-{secrets.token_hex(4)}")
    try:
        identity = Identity.create(fresh, found.card.name)
        with Store.open(fresh / "peer.db", sign=identity.sign) as store:
            carrying.carry_over(store, found.ledger, found.time, found.card)
            store.verify(identity.card)
        (fresh / "peer.db.lock").unlink(missing_ok=True)
        _private(fresh / "policy.toml", found.policy or OwnerPolicy.default_text)
        os.rename(fresh, home)  # an empty folder gives way, anything else does not
    except OSError as error:
        raise NetdpError(f"{home} cannot be made: {error.strerror or error}; nothing was restored") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return found, Identity.load(home)


def _plain(fingerprint: str) -> str:
    return "".join(fingerprint.split()).lower()


def _private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


__all__ = ["Backup", "make", "read", "restore"]
