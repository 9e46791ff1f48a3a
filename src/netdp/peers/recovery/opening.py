"""The opening of an attempt whose sum survives dropouts: fresh keys, verified shares, and then a vote.

    keys → dealing → (complaint → defence) → vote for these members and the hash of all their dealings

Everything a member says here was written down first, once (`Desk.say`). Its own secrets of the attempt are kept until its
contribution is durable; the shares that it was dealt are kept with its vote, until it reveals them or the attempt is over. What is
dealt and how it is checked: `netdp.peers.recovery.dealing`. A share that does not fit is complained of; the dealer then publishes
that one share, which tells the coalition nothing new, since dealer or holder belongs to it. Who does not is left out of the next
attempt. Proof: docs/proofs/peers.md#dealing.

**Who says two things** says one of them to some and the other to others, who need not notice: an item of a key that somebody
holds is not sent to it again. But then what follows does not fit: dealings to other keys, votes that name other dealings. So
who finds that something does not fit asks its neighbours what they hold under these keys (`doubts`). Either two signatures come
to light, which all are shown, or who said what does not fit has lied. Either way one of those who lie is out of the next
attempt, and nobody else: else one of them could make every attempt fail.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from netdp.errors import InvalidValue
from netdp.peers.desk import SECRETS, SHARES
from netdp.peers.exchange import Items
from netdp.peers.messages import Item, ItemKind, Key, roster_body, roster_of
from netdp.peers.recovery import dealing
from netdp.peers.recovery.dealing import AttemptSecrets, Dealing, OtherHolders, SameDealing, Share, check_share

if TYPE_CHECKING:
    from netdp.peers.desk import Desk
    from netdp.peers.terms import Roster

DIGEST = 32
"""Bytes of the hash of all dealings, with which a vote ends."""


class Dealings:
    """The keys and dealings of an attempt among some members, as they arrive; `bad` are those that cannot be right."""

    def __init__(self, study: bytes, attempt: int, members: Roster, threshold: int) -> None:
        self.attempt, self.members, self.threshold = attempt, members, threshold
        self._places = frozenset(members)
        self.context = dealing.context(study, attempt, members, threshold)
        self.keys: dict[int, bytes] = {}
        self.by: dict[int, Dealing] = {}
        self.bad: set[int] = set()
        self.alike: set[int] = set()
        """Those of them whose only fault is that another dealt the same: one of them has copied it, nobody knows who."""
        self.others: set[int] = set()
        """Who dealt to other keys than we know: it lies, or somebody stated two keys."""
        self._compared = False
        self._bodies: dict[int, bytes] = {}
        self._early: list[Item] = []
        self._read = 0
        self._wanted = roster_body(members)

    def take(self, held: Items) -> None:
        """Read what has come since the last time."""
        fresh = held.since(self.attempt, self._read)
        self._read += len(fresh)
        for item in fresh:
            self.hear(item)

    def hear(self, item: Item) -> None:
        """Read an item, if it is a member's key or dealing; a dealing is checked, once, as soon as all keys are here."""
        u, kind = item.key.author, item.key.kind
        if kind == ItemKind.KEYS and u in self._places and u not in self.keys:
            if item.body[dealing.KEY :] != self._wanted:  # it began this attempt with others than we
                return
            try:
                self.keys[u] = dealing.check_keys(item.body[: dealing.KEY])
            except InvalidValue:
                self.bad.add(u)
        elif kind == ItemKind.DEALING and u in self._places:
            self._early.append(item)
        if self.has_keys and self._early:
            early, self._early = self._early, []
            for one in early:
                self._check(one)

    def _check(self, item: Item) -> None:
        u = item.key.author
        if u in self.by or u in self.bad or u in self.others:
            return
        try:
            found = Dealing.read(item.body, u, self.threshold, self.keys)
            found.check(self.context)
        except OtherHolders:  # if somebody stated two keys, its two items prove that, not this dealing
            self.others.add(u)
        except InvalidValue:
            self.bad.add(u)
        else:
            self.by[u], self._bodies[u] = found, item.body

    @property
    def has_keys(self) -> bool:
        """Whether the keys of all members are here."""
        return len(self.keys) == len(self.members)

    @property
    def is_complete(self) -> bool:
        """Whether the dealings of all members are here and fit together."""
        if len(self.by) < len(self.members):
            return False
        if not self._compared:
            self._compared = True
            try:
                dealing.check_together(self.by.values())
            except SameDealing as problem:
                self.alike |= set(problem.dealers)
                self.bad |= self.alike
        return not self.bad

    @cached_property
    def digest(self) -> bytes:
        """Of all dealings, in the order of the members: what a vote names."""
        parts = [hashlib.sha256(self._bodies[u]).digest() for u in self.members]
        return hashlib.sha256(b"netdp dealings 1\0" + b"".join(parts)).digest()


class Opening:
    """What one member does in an attempt before it contributes."""

    def __init__(self, desk: Desk, attempt: int, members: Roster, threshold: int) -> None:
        self.attempt, self.members = attempt, members
        self.dealings = Dealings(desk.study.hash, attempt, members, threshold)
        self._desk, self._shares = desk, dict[int, Share]()
        self._wanted, self._places = roster_body(members), frozenset(members)
        self._read = 0
        self._items: dict[Key, Item] = {}  # of this attempt, read or said
        self._come: dict[ItemKind, set[int]] = defaultdict(set)  # kind → members of whom there is one
        self._apart: set[int] = set()  # members that began this attempt with others than we
        self._votes: dict[bytes, set[int]] = defaultdict(set)  # what is voted for → members
        self._complaints: dict[int, set[int]] = defaultdict(set)  # dealer → members that complain of it
        self._answers: dict[
            tuple[int, int], Share | None
        ] = {}  # dealer, holder → the share that was published, if it fits

    # ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, held: Items) -> None:
        """Read what has come since the last time."""
        fresh = held.since(self.attempt, self._read)
        self._read += len(fresh)
        for item in fresh:
            self._hear(item)

    def _hear(self, item: Item) -> None:
        key = item.key
        if key in self._items:  # our own, read when it was said
            return
        self._items[key] = item
        self.dealings.hear(item)
        if key.author not in self._places:
            return
        self._come[key.kind].add(key.author)
        if key.kind == ItemKind.KEYS and item.body[dealing.KEY :] != self._wanted:
            self._apart.add(key.author)
        elif key.kind == ItemKind.VOTE:
            self._votes[item.body].add(key.author)
        elif key.kind == ItemKind.COMPLAINT and key.index in self._places:
            self._complaints[key.index].add(key.author)

    def _own(self, kind: ItemKind) -> bool:
        return self._desk.me in self._come[kind]

    @property
    def accused(self) -> set[int]:
        """Members whose dealing to somebody did not fit, and who have not defended it."""
        return {u for u in self._complaints if u in self.dealings.by and self._undefended(u)}

    def _undefended(self, u: int) -> set[int]:
        """Who complained of a dealer and got no answer."""
        return {v for v in self._complaints.get(u, ()) if self._defended(u, v) is None}

    def _defended(self, dealer: int, holder: int) -> Share | None:
        """The share that a dealer published after a complaint, if it fits."""
        where, item = (dealer, holder), self._items.get(Key(ItemKind.DEFENCE, self.attempt, dealer, holder))
        if item is None or dealer not in self.dealings.by:
            return None
        if where not in self._answers:
            try:
                share = Share.from_bytes(item.body)
                fits = check_share(self.dealings.context, self.dealings.by[dealer], holder, share)
            except InvalidValue:
                fits = False
            self._answers[where] = share if fits else None
        return self._answers[where]

    def is_dealt(self, held: Items, named: bytes) -> bool:
        """Whether the dealings that the votes name are all here: only then a contribution can be masked."""
        self.take(held)
        return self.dealings.is_complete and self.dealings.digest == named

    # ── what comes next ───────────────────────────────────────────────────────────────────────────────────────────────

    def advance(self, held: Items) -> list[Item]:
        """What this member says next: own items, durable; the vote at last."""
        said: list[Item] = []

        def say(item: Item) -> None:
            said.append(item)
            self._hear(item)

        self.take(held)
        if self._own(ItemKind.VOTE):
            self._defend(say)
            return said
        if not self._own(ItemKind.KEYS):
            secrets = AttemptSecrets.fresh()
            body = dealing.advertised(secrets) + self._wanted
            say(self._desk.say(ItemKind.KEYS, self.attempt, body, secrets={SECRETS: secrets.to_bytes()}))
        d = self.dealings
        if d.has_keys and not self._own(ItemKind.DEALING) and (own := self._secrets()) is not None:
            body = dealing.deal(d.context, self._desk.me, d.threshold, d.keys, own)
            say(self._desk.say(ItemKind.DEALING, self.attempt, body))
        self._defend(say)
        self._open(say)
        if d.is_complete and len(self._shares) == len(self.members) and self._secrets() is not None:
            packed = b"".join(self._shares[u].to_bytes() for u in self.members)
            say(self._desk.vote(self.attempt, self.members, d.digest, {SHARES: packed}))
        return said

    def _secrets(self) -> AttemptSecrets | None:
        kept = self._desk.secret(self.attempt, SECRETS)
        return None if kept is None else AttemptSecrets.from_bytes(kept)

    def _open(self, say: Callable[[Item], None]) -> None:
        """Open the shares that were dealt to this member; complain of what does not fit, and take what was published instead."""
        d, me, secrets = self.dealings, self._desk.me, None
        for u in [u for u in d.by if u not in self._shares]:
            if me in self._complaints.get(u, ()):
                if (share := self._defended(u, me)) is not None:
                    self._shares[u] = share
                continue
            secrets = secrets or self._secrets()
            if secrets is None:
                return
            try:
                self._shares[u] = d.by[u].open_share(d.context, me, secrets.private_key)
            except InvalidValue:
                say(self._desk.say(ItemKind.COMPLAINT, self.attempt, b"", u))

    def _defend(self, say: Callable[[Item], None]) -> None:
        """Publish the shares of ours that somebody complains of."""
        d, me, secrets = self.dealings, self._desk.me, None
        if me not in d.by:
            return
        for v in sorted(self._complaints.get(me, ())):
            if Key(ItemKind.DEFENCE, self.attempt, me, v) in self._items:
                continue
            secrets = secrets or self._secrets()
            if secrets is None:
                return
            share = dealing.defence(d.context, me, d.threshold, d.keys, secrets, v)
            say(self._desk.say(ItemKind.DEFENCE, self.attempt, share.to_bytes(), v))

    # ── who goes on ───────────────────────────────────────────────────────────────────────────────────────────────────

    def there(self, proved: Collection[Key]) -> Roster:
        """The members that have done their part in this attempt, as far as all could, and whom nothing speaks against.

        proved   keys under which somebody signed two things: who did is out, and what others could not do for it is no fault
        """
        if not self._own(ItemKind.KEYS):
            return ()
        d, doubled = self.dealings, {key.kind for key in proved if key.attempt == self.attempt}
        cheats = {key.author for key in proved}
        if (
            ItemKind.KEYS in doubled or not d.has_keys
        ):  # what was dealt means different things to those who hold different keys
            return tuple(sorted(self._begun() - cheats - (d.bad if not doubled else set())))
        if d.is_complete and ItemKind.DEALING not in doubled:
            come = self._voters() | self._waiting()
        else:
            come = self._come[ItemKind.DEALING] - (set() if doubled else d.others)
        return tuple(sorted(come - self.accused - d.bad - cheats))

    def _begun(self) -> set[int]:
        """Who began this attempt, with whomever, without those whom somebody honest would begin it without.

        All who hold the same find the same, whomever they began it with themselves: so members that judged differently whether
        somebody came in time go on together.
        """
        begun = {key.author: item for key, item in self._items.items() if key.kind == ItemKind.KEYS}
        without: Counter[int] = Counter()
        for item in begun.values():
            with suppress(InvalidValue):
                without.update(begun.keys() - set(roster_of(item.body[dealing.KEY :])))
        return {u for u in begun if without[u] <= self._desk.study.privacy.colluders}

    def strangers(self) -> set[int]:
        """Members that began this attempt with others than most of us, if this member is one of the most."""
        alike = len(self._come[ItemKind.KEYS]) - len(self._apart)
        return set(self._apart) if 2 * alike > len(self.members) else set()

    def doubts(self) -> list[Key]:
        """What does not fit: perhaps others hold something else under these keys."""
        d, found = self.dealings, set[Key]()
        suspects = d.bad | self.strangers()
        found |= {Key(ItemKind.KEYS, self.attempt, u) for u in (self.members if d.others else suspects)}
        complained = {u for u, by in self._complaints.items() if by}
        found |= {Key(ItemKind.DEALING, self.attempt, u) for u in d.bad | d.others | complained}
        mine = self._items.get(Key(ItemKind.VOTE, self.attempt, self._desk.me))
        for body, voters in self._votes.items():
            if mine is not None and body != mine.body:
                found |= {Key(ItemKind.VOTE, self.attempt, u) for u in voters}
                if body[:-DIGEST] == mine.body[:-DIGEST]:
                    found |= {Key(ItemKind.DEALING, self.attempt, v) for v in self.members}
        return sorted(key for key in found if key.author != self._desk.me and key in self._items)

    def _voters(self) -> set[int]:
        """Who voted; if most did alike, and this member so too, only they."""
        alike = self._votes.get(self._wanted + self.dealings.digest, set())
        return set(alike) if 2 * len(alike) > len(self.members) else set(self._come[ItemKind.VOTE])

    def _waiting(self) -> set[int]:
        """Who cannot vote, because it complained and got no answer."""
        return {v for u in self.accused for v in self._undefended(u)}

    def missing(self) -> list[int]:
        """Whose part is lacking now."""
        for kind in (ItemKind.KEYS, ItemKind.DEALING, ItemKind.VOTE):
            if len(self._come[kind]) < len(self.members):
                return [u for u in self.members if u not in self._come[kind]]
        return []
