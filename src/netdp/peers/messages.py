"""What neighbours say to each other, as values, and the bytes they travel as (`wire.proto`).

An *item* is anything that has a key (kind, attempt, author, index). An honest author makes at most one item of a key, so
items can be kept in a set, passed on, sent twice and received twice. Votes, contributions, fallbacks, totals, throughs,
steps, and all that belongs to a sum that survives dropouts (keys, dealings, ballots, reveals, answers) are signed by their
author and passed on by everybody. A proof of equivocation is passed on, too, and proves itself: it holds two signatures of the
party that it is about. All others go to one neighbour only, over a link whose two
ends are known, and need no signature: of these an honest author makes one per key and receiver.

**Formats.** Neighbours may be of different versions. Everything on the wire has a *format*, a whole number. A version of
netdp speaks a range of them, OLDEST to NEWEST, and its `Hello` says which. Both ends use the highest one that both speak;
they find the same one, because they look at the same two ranges. If there is none, each turns the other away with both
ranges and what to do, before anything else is said.

    1   before the range was stated: a Hello with one number
    2   the range is stated; remarks may be made
    3   who says in its Hello that it holds something in the other's name proves it
    4   keys, dealings, ballots, reveals, signed answers and proofs: sums that survive dropouts

**What a newer version may say to an older one:** on a link only what its format has. From format 2 on there is room for more
without a new format: messages and kinds of items numbered REMARKS and above are *remarks*, which who does not know them
ignores and does not pass on. So nothing that matters may ever be a remark. Anything else that is unknown is a fault of
the other end: it is counted, noted, and the whole frame is ignored. In a Hello, which is said before a format is agreed on,
keys of unknown kinds are left out.

Fields that are unknown are ignored at every format, as protobuf does. That is safe here: what is signed, kept and passed on
is made from the known fields, never from the bytes that came.

Why not simply ignore all that is unknown: an item that one party uses and another one drops could make the two find
different answers. Who cannot understand must say so.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from netdp.errors import InvalidValue
from netdp.peers import wire_pb2 as wire
from netdp.peers.events import Sentence, Statement

Range = tuple[int, int]

OLDEST, NEWEST = 3, 4
"""The formats that this version speaks. (No version that speaks 1 or 2 was ever released.)"""

RECOVERS = 4
"""The format from which on sums survive dropouts: a study of one speaks no older format."""

REMARKS = 128
"""Messages and kinds from this number on are remarks."""

_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,20}")


def agreed(ours: Range, theirs: Range) -> int | None:
    """The format to use; None if there is none that both speak.

    >>> agreed((2, 4), (3, 9)), agreed((2, 4), (1, 2)), agreed((2, 2), (3, 4))
    (4, 2, None)
    """
    highest = min(ours[1], theirs[1])
    return highest if max(ours[0], theirs[0]) <= highest else None


def stated(oldest: int, newest: int) -> Range:
    """The range in a Hello; one of format 1 has a single number.

    >>> stated(1, 0), stated(2, 5)
    ((1, 1), (2, 5))
    """
    return (oldest, max(oldest, newest))


def words(formats: Range) -> str:
    """A range in words.

    >>> words((2, 2)), words((2, 5))
    ('format 2', 'formats 2 to 5')
    """
    return f"format {formats[0]}" if formats[0] == formats[1] else f"formats {formats[0]} to {formats[1]}"


def refusal(ours: Range, theirs: Range, version: str = "") -> Statement:
    """Why two versions cannot talk, and what to do.

    >>> refusal((2, 2), (3, 4), "9.1")
    'it speaks formats 3 to 4 (netdp 9.1), we speak format 2: none in common; install a newer netdp here'
    """
    which = f" (netdp {version})" if _VERSION.fullmatch(version) else ""
    where = "here" if theirs[0] > ours[1] else "there"
    return Sentence.OTHER_FORMAT(theirs=f"{words(theirs)}{which}", ours=words(ours), where=where)


def ignores_remarks(format: int) -> bool:
    """Whether who does not know a remark ignores it, on a link of this format."""
    return format >= 2


FORMAT = NEWEST
"""Of everything on the wire, the newest that this version speaks (`netdp.peers.messages`)."""

_FRAME: Any = wire.Frame  # type: ignore[attr-defined]  # made when the module is imported


KEY_SIZE = 32
"""Bytes: with so many, the fresh key of an attempt, the body of KEYS begins; the members that it was made for follow."""


class ItemKind(IntEnum):
    """What an item is."""

    VOTE = 1
    """In this attempt I take part if exactly these parties do."""
    CONTRIBUTION = 2
    """What its author publishes in this attempt."""
    FALLBACK = 3
    """Averaging is stuck: pass on all contributions."""
    TOTAL = 4
    """The token of a ring as it was released."""
    STATE = 5
    """A number on its way to the mean, for the neighbours."""
    TOKEN = 6
    """The token, for who is to add to it next."""
    OFFER = 7
    """Would you take something from me? Without what it is, for one neighbour."""
    ACCEPT = 8
    """The answer to an offer, for who made it."""
    BUNDLE = 9
    """Sealed reports that move on, for one neighbour."""
    THROUGH = 10
    """I have done my part of this attempt."""
    STEP = 11
    """What its author publishes in one iteration; the index says in which."""
    KEYS = 12
    """With whom I would begin this attempt, and the fresh key to which they seal shares for me."""
    DEALING = 13
    """The shares of my fresh secrets, sealed to each member of the attempt, and what shows that they fit together."""
    PREPARE = 14
    """First phase of a ballot: whose contributions I would add up; the index is the number of the ballot."""
    COMMIT = 15
    """Second phase: that enough of us have prepared the same in this ballot, and I am locked on it."""
    REVEAL = 16
    """The shares that open the sum of the sealed set, and nothing else."""
    ANSWER = 17
    """The hash of the answer, by somebody who holds it."""
    PROOF = 18
    """Two different items under one key, signed by the author: it cheats, or its keys are in use elsewhere."""
    COMPLAINT = 19
    """The share that the party named by the index has dealt to me does not fit what it published."""
    DEFENCE = 20
    """The share that I dealt to the party named by the index, in the clear: everybody can see that it fits."""

    @property
    def is_signed(self) -> bool:
        """Whether it may travel further than from its author to a neighbour."""
        return self <= ItemKind.TOTAL or self in (ItemKind.THROUGH, ItemKind.STEP) or self >= ItemKind.KEYS


class Key(NamedTuple):
    """Which item it is."""

    kind: ItemKind
    attempt: int
    author: int
    index: int = 0  # type: ignore[assignment]  # nobody asks a key for the place of an entry


@dataclass(frozen=True)
class Item:
    """A key and what stands under it; `hops` says how many links it has crossed, for the transcript."""

    key: Key
    body: bytes
    signature: bytes = b""
    hops: int = 0

    def passed_on(self) -> Item:
        """The same after one more link."""
        return Item(self.key, self.body, self.signature, self.hops + 1)


@dataclass(frozen=True)
class Held:
    """That there is an item, without its body: its author's signature, and what it covers of the body, prove it."""

    key: Key
    digest: bytes
    """SHA-256 of the body."""
    signature: bytes

    @staticmethod
    def of(item: Item) -> Held:
        """Of an item that is signed."""
        return Held(item.key, hashlib.sha256(item.body).digest(), item.signature)


@dataclass(frozen=True)
class Hello:
    """The first message on a link: which study, which version, what is held already, which formats are spoken.

    Who says that it holds something which the other end has published shows the other end's own signature under it
    (`proofs`): without one it is not believed.
    """

    study: bytes
    version: str
    have: tuple[Key, ...] = ()
    format: int = OLDEST
    """The oldest."""
    newest: int = NEWEST
    proofs: tuple[Held, ...] = ()


@dataclass(frozen=True)
class Announce:
    """I have these; ask for those you want."""

    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Pull:
    """Send me these."""

    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Done:
    """I hold the result of this attempt; its digest."""

    attempt: int
    digest: bytes


@dataclass(frozen=True)
class Remark:
    """Something that a newer version says and this one does not know: it is ignored where the format allows it."""

    number: int


Message = Hello | Item | Announce | Pull | Done | Remark


def signed_bytes(study: bytes, key: Key, body: bytes) -> bytes:
    """What the author of an item signs: the study, the key and the body, none of which can stand for another.

    >>> len(signed_bytes(bytes(32), Key(ItemKind.VOTE, 1, 0), b"any length"))
    93
    """
    return signed_digest(study, key, hashlib.sha256(body).digest())


def signed_digest(study: bytes, key: Key, digest: bytes) -> bytes:
    """The same from the SHA-256 of the body: so much of a long one is enough to check a signature."""
    return b"netdp item 1\0" + study + struct.pack("<4I", *key) + digest


def roster_body(roster: Sequence[int]) -> bytes:
    """A roster as the body of a vote.

    >>> roster_of(roster_body((0, 2, 5)))
    (0, 2, 5)
    """
    return struct.pack(f"<{len(roster)}I", *roster)


@lru_cache(maxsize=64)  # most votes are for the same roster
def roster_of(body: bytes) -> tuple[int, ...]:
    """The roster in the body of a vote; refuses what is not strictly increasing."""
    if len(body) % 4:
        raise InvalidValue(Sentence.NO_ROSTER(size=len(body)))
    roster = struct.unpack(f"<{len(body) // 4}I", body)
    if any(a >= b for a, b in itertools.pairwise(roster)):
        raise InvalidValue(Sentence.UNORDERED_ROSTER(roster=str(roster)))
    return roster


def vote_of(body: bytes, deals: bool) -> tuple[tuple[int, ...], bytes]:
    """The roster in the body of a vote, and where a sum survives dropouts the hash of all dealings that the voter verified.

    >>> vote_of(roster_body((0, 2)) + bytes(32), deals=True) == ((0, 2), bytes(32)), vote_of(roster_body((0, 2)), deals=False)
    (True, ((0, 2), b''))
    """
    if not deals:
        return roster_of(body), b""
    if len(body) < 32:
        raise InvalidValue(Sentence.NO_ROSTER(size=len(body)))
    return roster_of(body[:-32]), body[-32:]


def roster_digest(roster: Sequence[int]) -> bytes:
    """With what a contribution begins, so that it cannot be taken for one to another roster."""
    return hashlib.sha256(roster_body(roster)).digest()


def encode(messages: Iterable[Message]) -> bytes:
    """Messages as one frame.

    >>> decode(encode([Done(1, b"x"), Announce((Key(ItemKind.VOTE, 1, 3),))]))
    [Done(attempt=1, digest=b'x'), Announce(keys=(Key(kind=<ItemKind.VOTE: 1>, attempt=1, author=3, index=0),))]
    """
    frame = _FRAME()
    for message in messages:
        out = frame.messages.add()
        match message:
            case Item(key, body, signature, hops):
                item = out.item
                item.SetInParent()
                _fill(item.key, key)
                item.body, item.signature, item.hops = body, signature, hops
            case Hello(study, version, have, format, newest, proofs):
                out.hello.SetInParent()
                out.hello.format, out.hello.version, out.hello.study = format, version, study
                out.hello.newest = newest
                for key in have:
                    _fill(out.hello.have.add(), key)
                for held in proofs:
                    proof = out.hello.proofs.add()
                    _fill(proof.key, held.key)
                    proof.digest, proof.signature = held.digest, held.signature
            case Announce(keys):
                out.announce.SetInParent()  # an empty one is said, too
                for key in keys:
                    _fill(out.announce.keys.add(), key)
            case Pull(keys):
                out.pull.SetInParent()
                for key in keys:
                    _fill(out.pull.keys.add(), key)
            case Done(attempt, digest):
                out.done.SetInParent()
                out.done.attempt, out.done.digest = attempt, digest
            case _:
                raise TypeError(f"a {type(message).__name__.lower()} is never sent by this version")
    return bytes(frame.SerializeToString())


def decode(frame: bytes) -> list[Message]:
    """The messages of a frame; refuses what is not one."""
    try:
        parsed = _FRAME.FromString(frame)
        return [_message(message) for message in parsed.messages]
    except (DecodeError, ValueError) as problem:
        raise InvalidValue(Sentence.NOT_A_MESSAGE(size=len(frame), problem=str(problem))) from None


def _message(message: Any) -> Message:
    match message.WhichOneof("what"):
        case "item":
            item = message.item
            if item.key.kind >= REMARKS:
                return Remark(item.key.kind)
            return Item(_key(item.key), item.body, item.signature, item.hops)
        case "hello":
            hello = message.hello
            # said before a format is agreed on: kinds that this version does not have are left out
            known = tuple(_key(key) for key in hello.have if key.kind in _KINDS)
            proofs = (held for held in hello.proofs if held.key.kind in _KINDS)
            shown = tuple(Held(_key(held.key), held.digest, held.signature) for held in proofs)
            return Hello(hello.study, hello.version, known, hello.format, hello.newest, shown)
        case "announce":
            return Announce(tuple(_key(key) for key in message.announce.keys))
        case "pull":
            return Pull(tuple(_key(key) for key in message.pull.keys))
        case "done":
            return Done(message.done.attempt, message.done.digest)
        case _:
            numbers = [field.field_number for field in UnknownFieldSet(message)]
            if len(numbers) == 1 and numbers[0] >= REMARKS:
                return Remark(numbers[0])
            raise ValueError("a message of no known kind")


def _fill(out: Any, key: Key) -> None:
    out.kind, out.attempt, out.author, out.index = int(key.kind), key.attempt, key.author, key.index


_KINDS = frozenset(map(int, ItemKind))


def _key(key: Any) -> Key:
    return Key(ItemKind(key.kind), key.attempt, key.author, key.index)


def kind_of(message: Message) -> str:
    """The kind of a message, in one word: that of its item, or its own."""
    if isinstance(message, Item):
        return message.key.kind.name.lower()
    return type(message).__name__.lower()
