"""Proof that a party said two things under one key: both signed items, which anybody can check against the study.

An honest party signs one item per key (kind, attempt, party): it writes it down before it says it, and never another.
So two valid signatures under one key show that the party cheats, or that its keys are in use elsewhere; no relay can make
them up. They meet where some honest party hears both; if the network of the honest parties is cut in two by cheats, that
may be nobody. What is proved is *that* it said two things, not which of them it meant. The first that arrived stands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .messages import Item, Key, Kind, signed_digest

if TYPE_CHECKING:
    from .study import Study


LONG = 1 << 16
"""Bytes: of a longer body the SHA-256 is kept, which is what is signed."""


@dataclass(frozen=True)
class Evidence:
    """Two items of one key."""

    first: Item
    second: Item

    def to_dict(self, study: Study) -> dict[str, Any]:
        """Plain values, for an outcome or a letter to the others."""
        key = self.first.key
        said = [_shown(item.body) | {"signature": item.signature.hex()} for item in (self.first, self.second)]
        return {
            "study": study.hash.hex(), "party": study.everybody[key.author], "kind": key.kind.name.lower(),
            "attempt": key.attempt, "index": key.index, "said": said,
        }  # fmt: skip


def proves(study: Study, evidence: Mapping[str, Any]) -> bool:
    """Whether this shows, to anybody who has the study, that a party signed two different items under one key."""
    try:
        author = study.index(str(evidence["party"]))
        key = Key(Kind[str(evidence["kind"]).upper()], int(evidence["attempt"]), author, int(evidence["index"]))
        said = [(_digest(one), bytes.fromhex(one["signature"])) for one in evidence["said"]]
        if evidence["study"] != study.hash.hex() or len(said) != 2 or said[0][0] == said[1][0]:
            return False
        card = study.cards[author]
        return all(card.verify(signed_digest(study.hash, key, digest), signature) for digest, signature in said)
    except (KeyError, TypeError, ValueError, OverflowError):
        return False


def _shown(body: bytes) -> dict[str, str]:
    return {"body": body.hex()} if len(body) <= LONG else {"sha256": hashlib.sha256(body).hexdigest()}


def _digest(said: Mapping[str, str]) -> bytes:
    digest = bytes.fromhex(said["sha256"]) if "sha256" in said else hashlib.sha256(bytes.fromhex(said["body"])).digest()
    if len(digest) != 32:
        raise ValueError("a SHA-256 has 32 bytes")
    return digest
