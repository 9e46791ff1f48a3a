"""What a party exchanges with its neighbours: who lacks which item, what is said next, and what is not taken.

**Passing on.** Items that are passed on go to everybody who lacks them: small ones at once, large ones to who asks. Items
for one neighbour are kept and said again on every new link until it has them. All this is about who lacks what; whether an
item is right, and what follows from it, is for `netdp.peers.party`.

Memory is bounded whatever a neighbour says: what it claims to hold or asks for is noted only for keys that an honest
party could make, and it is given each large item once per link. An item that somebody announced and does not send is
asked of another after `waiting` seconds.

**Who hears it from its author.** Where much is said (a sum that survives dropouts), an item that a neighbour gets from its
author over a link of its own is not sent to it at once: only if it has not shown after a while that it holds the item, it is told
that there is one. Where everybody is linked to everybody, all that is said would else cross every link.

**Two things under one key.** An honest party signs one item per key (kind, attempt, party): it writes it down before it says
it, and never another. So two valid signatures under one key, which anybody can check against the study, show that the party
cheats, or that its keys are in use elsewhere; no relay can make them up. They meet where some honest party hears both; if
the network of the honest parties is cut in two by cheats, that may be nobody. What is proved is *that* it said two things,
not which of them it meant. The first that arrived stands.

**What is not taken.** A neighbour with a valid certificate may send anything. What no honest party of the study would send
is noted, counted under a reason of a short, closed list, so that every rejection can be shown and compared, and has no other
effect. A neighbour that goes on and on is not read any more for a while (`netdp.peers.party`), so that nonsense costs a
bounded share of this machine.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from netdp.errors import InvalidValue
from netdp.peers.events import Statement
from netdp.peers.messages import (
    Announce,
    Held,
    Item,
    ItemKind,
    Key,
    Message,
    Pull,
    signed_digest,
)

if TYPE_CHECKING:
    from netdp.peers.study.study import Study

PUSHED = 40_000
"""Bytes: smaller items are sent to everybody at once, larger ones announced and sent to those who ask."""

RECOVERY = (
    ItemKind.KEYS, ItemKind.DEALING, ItemKind.PREPARE, ItemKind.COMMIT, ItemKind.REVEAL, ItemKind.COMPLAINT, ItemKind.DEFENCE,
)  # fmt: skip
"""What a party says once on the way of a sum that survives dropouts."""

PUBLISHED = (ItemKind.CONTRIBUTION, ItemKind.STEP, *RECOVERY)
"""What must never be said in two ways: it follows from a party's data, or others rest their safety on it."""

_READ_ONCE = frozenset((ItemKind.VOTE, ItemKind.CONTRIBUTION, *RECOVERY))
"""What is kept as long as the party lives, and read by what opens a sum."""

_MANY = frozenset((ItemKind.VOTE, ItemKind.ANSWER, *RECOVERY))
"""What all say to all in a sum that survives dropouts; who got it from whom is of no matter."""

OWN_STEP = 1 << 20
"""Bytes: an own step that is no larger is sent without asking. Nobody else can have it, and everybody waits for it."""


class Items(dict[Key, Item]):
    """What a party holds, by key; and what belongs to an attempt also in the order in which it came, to be read as it comes.

    >>> held, vote = Items(), Item(Key(ItemKind.VOTE, 1, 0), b"")
    >>> held.keep(vote)
    >>> held.since(1, 0) == [vote], held.since(1, 1), held.since(2, 0)
    (True, [], [])
    """

    def __init__(self) -> None:
        super().__init__()
        self._came: dict[int, list[Item]] = defaultdict(list)

    def keep(self, item: Item) -> None:
        """Hold an item under its key."""
        self[item.key] = item
        if item.key.kind in _READ_ONCE:
            self._came[item.key.attempt].append(item)

    def since(self, attempt: int, read: int) -> list[Item]:
        """Of an attempt, votes, contributions and all that opens its sum: what came after so many of them."""
        return self._came[attempt][read:] if attempt in self._came else []


@dataclass
class Neighbour:
    """What is known of one neighbour on the present link."""

    greeted: bool = False
    format: int = 0
    """Of the wire, agreed on with the Hello."""
    knows: set[Key] = field(default_factory=set)
    pulled: set[Key] = field(default_factory=set)
    same: set[Key] = field(default_factory=set)
    """Under which keys it has sent what was here already: what is here need not be sent to it."""
    complaints: int = 0


class Exchange:
    """Links to neighbours and what is held; `is_passed_on` says which items everybody should get."""

    def __init__(
        self,
        is_passed_on: Callable[[Key], bool],
        waiting: float,
        keeps_last_token: Callable[[int], bool] = lambda attempt: True,
        hears: Callable[[int, int], bool] = lambda peer, author: False,
        me: int = -1,
        patient: bool = False,
    ) -> None:
        self.held = Items()
        self.links: dict[int, Neighbour] = {}
        self.addressed: dict[int, dict[Key, Item]] = defaultdict(dict)
        self.sent: set[tuple[int, int, int]] = set()
        """Who got something in which round: (attempt, round, to)."""
        self._is_passed_on, self._waiting = is_passed_on, waiting
        self._keeps_last_token = keeps_last_token
        self._patient = patient  # whether what a neighbour gets from its author is not sent to it at once
        self._hears, self._me = hears, me  # whether a neighbour is linked to an author too, as far as the study says
        self._out: list[tuple[int, Message]] = []
        self._offers: dict[Key, set[int]] = defaultdict(set)
        self._asked: dict[Key, tuple[int, float]] = {}
        self._later: dict[int, dict[Key, float]] = defaultdict(dict)
        """For each neighbour what it should have from its author by a certain time."""
        self._wanted: dict[Key, float] = {}
        self._wants: Counter[Key] = Counter()
        self.now = 0.0

    # ── links ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def link(self, peer: int) -> None:
        """A new link, on which nothing is known."""
        self.links[peer] = Neighbour()

    def unlink(self, peer: int, now: float) -> None:
        """The link is gone, with what was to go over it; what was asked of it is asked of others."""
        self.links.pop(peer, None)
        self._later.pop(peer, None)
        self._out = [(to, message) for to, message in self._out if to != peer]
        for offered in self._offers.values():
            offered.discard(peer)
        for key in [key for key, (asked, _) in self._asked.items() if asked == peer]:
            del self._asked[key]
            self._ask(key, now)

    def greet(self, peer: int, knows: set[Key]) -> None:
        """The neighbour has said what it holds: say what it lacks, first what is in its own name."""
        link = self.links[peer]
        link.greeted, link.knows = True, knows
        for item in sorted(self.held.values(), key=lambda item: item.key.author != peer):
            if self._is_passed_on(item.key):
                self._offer(peer, item)
        # a bundle for somebody who holds the total of its attempt would show reports, and change nothing
        over = {key.attempt for key in knows if key.kind == ItemKind.TOTAL}
        for item in self.addressed[peer].values():
            if item.key not in knows and not (item.key.kind == ItemKind.BUNDLE and item.key.attempt in over):
                self.say(peer, item)

    def is_greeted(self, peer: int) -> bool:
        """Whether the neighbour has said hello on the present link."""
        return peer in self.links and self.links[peer].greeted

    def have_for(self, peer: int) -> tuple[Key, ...]:
        """What to claim in a hello: all that is passed on, and what came from this neighbour."""
        return tuple(key for key in self.held if key.kind.is_signed or key.author == peer)

    def proofs_for(self, peer: int) -> tuple[Held, ...]:
        """What this neighbour itself has published and we hold, with its own signature: else it need not believe us."""
        return tuple(Held.of(item) for key, item in self.held.items() if key.author == peer and key.kind in PUBLISHED)

    # ── saying ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def tell(self, peer: int, message: Message) -> None:
        """Say something that is no item."""
        self._out.append((peer, message))

    def tell_all(self, message: Message) -> None:
        """Say it to all who have said hello."""
        for peer, link in self.links.items():
            if link.greeted:
                self._out.append((peer, message))

    def pass_on(self, item: Item) -> None:
        """To everybody who lacks it, if it is for everybody."""
        if self._is_passed_on(item.key):
            author = item.key.author
            patient = self._patient and author != self._me and item.key.kind != ItemKind.PROOF  # nobody says its own
            for peer, link in self.links.items():
                if not link.greeted:
                    continue
                if patient and peer != author and self._hears(peer, author):
                    if item.key not in link.knows:
                        self._later[peer][item.key] = self.now + self._waiting / 4
                else:
                    self._offer(peer, item)

    def is_superfluous(self, peer: int, message: Message) -> bool:
        """Whether a neighbour has sent us just this since it was to be sent to it."""
        if not isinstance(message, Item) or message.key.kind not in _MANY:
            return False
        link, here = self.links.get(peer), self.held.get(message.key)
        return link is not None and message.key in link.same and here is not None and here.body == message.body

    def show(self, key: Key) -> None:
        """To everybody who has said hello, though they may have it."""
        if (item := self.held.get(key)) is not None:
            for peer in [peer for peer, link in self.links.items() if link.greeted]:
                self.say(peer, item)

    def send_to(self, peer: int, item: Item) -> None:
        """To one neighbour, now or as soon as there is a link, again after every new link until it has it."""
        kept = self.addressed[peer]
        if item.key.kind == ItemKind.TOKEN and self._keeps_last_token(item.key.attempt):
            kept.clear()  # a later token makes all earlier ones superfluous
        kept[item.key] = item
        if self.is_greeted(peer) and item.key not in self.links[peer].knows:
            self.say(peer, item)

    def say(self, peer: int, item: Item) -> None:
        """Send an item."""
        self.links[peer].knows.add(item.key)
        self._out.append((peer, item))
        key = item.key
        if key.kind in (ItemKind.CONTRIBUTION, ItemKind.STATE, ItemKind.TOKEN, ItemKind.BUNDLE):
            self.sent.add((key.attempt, item.hops if key.kind.is_signed else key.index, peer))

    def outbox(self) -> list[tuple[int, Message]]:
        """What to send to whom, in this order; forgotten here once it is taken."""
        out, self._out = self._out, []
        return out

    def _offer(self, peer: int, item: Item) -> None:
        knows = self.links[peer].knows
        if item.key in knows:
            return
        if self._is_pushed(peer, item):
            self.say(peer, item)
        else:
            knows.add(item.key)  # that there is such an item
            self._out.append((peer, Announce((item.key,))))

    def _is_pushed(self, peer: int, item: Item) -> bool:
        """Whether an item is sent unasked. Steps come in numbers: who has them from their author is not sent them twice."""
        size, author = len(item.body), item.key.author
        if item.key.kind != ItemKind.STEP:
            return size <= PUSHED
        return size <= OWN_STEP if author == self._me else size <= PUSHED and not self._hears(peer, author)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def announced(self, peer: int, keys: Iterable[Key], now: float) -> None:
        """A neighbour has these."""
        for key in keys:
            self.links[peer].knows.add(key)
            if key not in self.held:
                self._offers[key].add(peer)
                self._ask(key, now)

    def pulled(self, peer: int, keys: Iterable[Key]) -> None:
        """A neighbour wants these. An honest one asks once; one that asks again and again would fill our memory."""
        link = self.links[peer]
        for key in keys:
            item = self.held.get(key)
            if item is not None and key.kind.is_signed and key not in link.pulled:
                link.pulled.add(key)
                self.say(peer, item)

    def arrived(self, key: Key) -> None:
        """It need not be asked for any more."""
        self._asked.pop(key, None)
        self._offers.pop(key, None)

    def forget(self, keys: Iterable[Key]) -> None:
        """Nobody needs these any more, and nobody is asked for them."""
        for key in keys:
            self.held.pop(key, None)
            for items in self.addressed.values():
                items.pop(key, None)
            self.arrived(key)
            for link in self.links.values():
                link.knows.discard(key)
                link.pulled.discard(key)
                link.same.discard(key)
            for waiting in self._later.values():
                waiting.pop(key, None)

    def ask_again(self, now: float) -> None:
        """Ask others for what did not come in time."""
        for key in [key for key, (_, since) in self._asked.items() if now >= since + self._waiting]:
            peer, _ = self._asked.pop(key)
            self._offers[key].discard(peer)
            self._ask(key, now)
        for peer, waiting in self._later.items():
            due = [key for key, when in waiting.items() if now >= when]
            told = [key for key in due if key in self.held and key not in self.links[peer].knows]
            for key in due:
                del waiting[key]
            if told:
                self.links[peer].knows.update(told)
                self._out.append((peer, Announce(tuple(told))))

    @property
    def wake(self) -> float:
        """When `ask_again` has something to do, at the earliest."""
        asked = min((since for _, since in self._asked.values()), default=float("inf")) + self._waiting
        # what was meant for one neighbour first was meant first in time, too
        later = (next(iter(waiting.values())) for waiting in self._later.values() if waiting)
        return min((asked, *later))

    def want(self, keys: Iterable[Key], most: int | None = None) -> None:
        """Ask all neighbours for these, whether they said that they have them or not; at most once in a while, and so often."""
        due = []
        for key in keys:
            if self.now >= self._wanted.get(key, float("-inf")) + self._waiting / 4:
                self._wants[key] += 1
                if most is None or self._wants[key] <= most:
                    self._wanted[key] = self.now
                    due.append(key)
        if due:
            self.tell_all(Pull(tuple(due)))

    def _ask(self, key: Key, now: float) -> None:
        """Ask one of those who offered it, one at a time."""
        if key in self._asked or key in self.held:
            return
        for peer in sorted(self._offers[key]):
            if peer in self.links:
                self._asked[key] = (peer, now)
                self._out.append((peer, Pull((key,))))
                return


LONG = 1 << 16
"""Bytes: of a longer body the SHA-256 is kept, which is what is signed."""


@dataclass(frozen=True)
class Evidence:
    """Two things that the author of a key signed under it: items, or what their signatures cover of them."""

    first: Item | Held
    second: Item | Held

    def to_dict(self, study: Study) -> dict[str, Any]:
        """Plain values, for an outcome or a letter to the others."""
        key = self.first.key
        said = [_shown(one) | {"signature": one.signature.hex()} for one in (self.first, self.second)]
        return {
            "study": study.hash.hex(), "party": study.everybody[key.author], "kind": key.kind.name.lower(),
            "attempt": key.attempt, "index": key.index, "said": said,
        }  # fmt: skip

    def item(self) -> Item:
        """The proof as an item that everybody can check and pass on."""
        key = self.first.key
        both = sorted((one.digest, one.signature) for one in map(_held, (self.first, self.second)))
        body = struct.pack("<2I", key.kind, key.index) + b"".join(digest + signature for digest, signature in both)
        return Item(Key(ItemKind.PROOF, key.attempt, key.author, key.kind), body)

    @staticmethod
    def of(proof: Item) -> Evidence | None:
        """What an item of that kind says; whether its signatures are right is for `Terms.proves`."""
        if len(proof.body) != PROOF_SIZE:
            return None
        number, index = struct.unpack("<2I", proof.body[:8])
        if number != proof.key.index or number not in set(ItemKind):
            return None
        if not ItemKind(number).is_signed or number == ItemKind.PROOF:
            return None
        key = Key(ItemKind(number), proof.key.attempt, proof.key.author, index)
        parts = [proof.body[at : at + 96] for at in (8, 104)]
        first, second = (Held(key, part[:32], part[32:]) for part in parts)
        return None if first.digest == second.digest else Evidence(first, second)


PROOF_SIZE = 8 + 2 * (32 + 64)
"""Bytes of a proof."""


def _held(one: Item | Held) -> Held:
    return Held.of(one) if isinstance(one, Item) else one


def proves(study: Study, evidence: Mapping[str, Any]) -> bool:
    """Whether this shows, to anybody who has the study, that a party signed two different items under one key."""
    try:
        author = study.index(str(evidence["party"]))
        key = Key(ItemKind[str(evidence["kind"]).upper()], int(evidence["attempt"]), author, int(evidence["index"]))
        said = [(_digest(one), bytes.fromhex(one["signature"])) for one in evidence["said"]]
        if evidence["study"] != study.hash.hex() or len(said) != 2 or said[0][0] == said[1][0]:
            return False
        card = study.cards[author]
        return all(card.verify(signed_digest(study.hash, key, digest), signature) for digest, signature in said)
    except (KeyError, TypeError, ValueError, OverflowError):
        return False


def _shown(one: Item | Held) -> dict[str, str]:
    if isinstance(one, Item) and len(one.body) <= LONG:
        return {"body": one.body.hex()}
    return {"sha256": _held(one).digest.hex()}


def _digest(said: Mapping[str, str]) -> bytes:
    digest = bytes.fromhex(said["sha256"]) if "sha256" in said else hashlib.sha256(bytes.fromhex(said["body"])).digest()
    if len(digest) != 32:
        raise ValueError("a SHA-256 has 32 bytes")
    return digest


class Reason(StrEnum):
    """Of a rejection; its value is how metrics name it."""

    FRAME = "frame"
    """The bytes are no frame of messages, or one of them is of no known kind."""
    LINK = "link"
    """It came over a link that was given up, or an item for one neighbour came over another's link."""
    GREETING = "greeting"
    """A second greeting, or anything before the first."""
    STUDY = "study"
    """The neighbour runs another study, or speaks another format."""
    KEY = "key"
    """There is no such attempt, party or step in this study."""
    BODY = "body"
    """Wrong size or shape, no numbers, or numbers that no honest party sends."""
    SIGNATURE = "signature"
    """Not signed by who is said to have said it."""
    ROSTER = "roster"
    """A vote for parties that cannot be a roster."""
    EARLY = "early"
    """A step of an attempt that has not begun here, or beyond its last."""
    SECOND = "second"
    """Something else under a key that is taken: its author says two things, or a relay makes it up."""


class Rejected(InvalidValue):
    """A message that is not taken, and why."""

    def __init__(self, reason: Reason, problem: Statement) -> None:
        self.reason = reason
        super().__init__(problem)
