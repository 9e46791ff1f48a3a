"""What a party exchanges with its neighbours: who lacks which item, what is said next, and what is not taken.

**Passing on.** Items that are passed on go to everybody who lacks them: small ones at once, large ones to who asks. Items
for one neighbour are kept and said again on every new link until it has them. All this is about who lacks what; whether an
item is right, and what follows from it, is for `netdp.peers.party`.

Memory is bounded whatever a neighbour says: what it claims to hold or asks for is noted only for keys that an honest
party could make, and it is given each large item once per link. An item that somebody announced and does not send is
asked of another after `waiting` seconds.

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
from collections import defaultdict
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

PUBLISHED = (ItemKind.CONTRIBUTION, ItemKind.STEP)
"""What follows from a party's data and must never be said in two ways."""

OWN_STEP = 1 << 20
"""Bytes: an own step that is no larger is sent without asking. Nobody else can have it, and everybody waits for it."""


@dataclass
class Neighbour:
    """What is known of one neighbour on the present link."""

    greeted: bool = False
    format: int = 0
    """Of the wire, agreed on with the Hello."""
    knows: set[Key] = field(default_factory=set)
    pulled: set[Key] = field(default_factory=set)
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
    ) -> None:
        self.held: dict[Key, Item] = {}
        self.links: dict[int, Neighbour] = {}
        self.addressed: dict[int, dict[Key, Item]] = defaultdict(dict)
        self.sent: set[tuple[int, int, int]] = set()
        """Who got something in which round: (attempt, round, to)."""
        self._is_passed_on, self._waiting = is_passed_on, waiting
        self._keeps_last_token = keeps_last_token
        self._hears, self._me = hears, me  # whether a neighbour is linked to an author too, as far as the study says
        self._out: list[tuple[int, Message]] = []
        self._offers: dict[Key, set[int]] = defaultdict(set)
        self._asked: dict[Key, tuple[int, float]] = {}

    # ── links ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def link(self, peer: int) -> None:
        """A new link, on which nothing is known."""
        self.links[peer] = Neighbour()

    def unlink(self, peer: int, now: float) -> None:
        """The link is gone, with what was to go over it; what was asked of it is asked of others."""
        self.links.pop(peer, None)
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
            for peer, link in self.links.items():
                if link.greeted:
                    self._offer(peer, item)

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
            self.arrived(key)
            for link in self.links.values():
                link.knows.discard(key)
                link.pulled.discard(key)

    def ask_again(self, now: float) -> None:
        """Ask others for what did not come in time."""
        for key in [key for key, (_, since) in self._asked.items() if now >= since + self._waiting]:
            peer, _ = self._asked.pop(key)
            self._offers[key].discard(peer)
            self._ask(key, now)

    @property
    def wake(self) -> float:
        """When `ask_again` has something to do, at the earliest."""
        return min((since for _, since in self._asked.values()), default=float("inf")) + self._waiting

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
        key = Key(ItemKind[str(evidence["kind"]).upper()], int(evidence["attempt"]), author, int(evidence["index"]))
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
