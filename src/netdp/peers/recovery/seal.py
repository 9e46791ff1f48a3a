"""The seal of an attempt that opened nothing: the commits that a ledger keeps as proof that the attempt cost nothing.

A seal is `threshold` commits to nothing, of one number of the ballot, signed by as many members of the attempt. Two choices are
never sealed (docs/proofs/peers.md#ballot), and no honest member reveals anything without a seal of some contributions: so who can
show the seal shows that nothing was opened, as long as no more parties collude than the study says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from netdp.errors import InvalidValue
from netdp.peers.ledger.entries import CORRECTS, Entry, LedgerBroken
from netdp.peers.messages import Item, ItemKind, Key
from netdp.peers.recovery.ballot import NOTHING
from netdp.peers.terms import Terms

if TYPE_CHECKING:
    from netdp.peers.study.study import Study


def is_free(entry: Entry) -> bool:
    """Whether an entry says that its attempt cost nothing."""
    return entry.loss.get("kind") == "nothing"


def check_seal(study: Study, entry: Entry) -> int:
    """By how many members the seal of a free entry is signed; refuses one that does not prove that nothing was opened."""
    threshold, attempt = study.running.threshold, entry.attempt % CORRECTS
    if entry.study != study.hash.hex() or threshold is None:
        raise InvalidValue(
            f"the seal of {entry.name!r} ({entry.study[:12]}…) is not one of the study {study.name!r} ({study.hash.hex()[:12]}…); "
            "give the study that the entry names"
        )
    terms, numbers, signed = Terms(study, 0), set(), set()
    for commit in entry.loss["seal"]:
        party, number = commit["party"], commit["number"]
        try:
            body, signature = bytes.fromhex(commit["body"]), bytes.fromhex(commit["signature"])
            known = 0 <= party < study.n and study.names[party] in entry.roster
            item = Item(Key(ItemKind.COMMIT, attempt, party, number), body, signature)
            fits = known and body == NOTHING.to_bytes() and terms.verify(item)
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise InvalidValue(
                f"the seal of attempt {attempt} of {study.name!r} has a commit that is none: not to nothing, or not signed by a "
                "member; the entry does not show that the attempt was free"
            )
        numbers.add(number)
        signed.add(party)
    if len(numbers) != 1 or len(signed) < threshold:
        raise InvalidValue(
            f"the seal of attempt {attempt} of {study.name!r} is signed by {len(signed)} members in {len(numbers)} ballots, and "
            f"{threshold} in one are needed; the entry does not show that the attempt was free"
        )
    return len(signed)


def check_seals(study: Study, entries: Iterable[Entry]) -> None:
    """Refuse a ledger that calls an attempt of this study free without the proof."""
    for row, entry in enumerate(entries, start=1):
        if is_free(entry) and entry.study == study.hash.hex():
            try:
                check_seal(study, entry)
            except InvalidValue as problem:
                raise LedgerBroken(row, str(problem)) from None
