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
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from netdp.errors import InvalidValue
from netdp.peers.desk import SECRETS, SHARES
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
        self._wanted = roster_body(members)

    def take(self, held: Mapping[Key, Item]) -> None:
        """Read what has come since the last time."""
        for u in self.members:
            item = held.get(Key(ItemKind.KEYS, self.attempt, u)) if u not in self.keys else None
            if item is None or item.body[dealing.KEY :] != self._wanted:  # it began this attempt with others than we
                continue
            try:
                self.keys[u] = dealing.check_keys(item.body[: dealing.KEY])
            except InvalidValue:
                self.bad.add(u)
        if not self.has_keys:
            return
        self.others.clear()
        for u in self.members:
            if u in self.by or u in self.bad:
                continue
            if (item := held.get(Key(ItemKind.DEALING, self.attempt, u))) is not None:
                try:
                    found = Dealing.read(item.body, u, self.threshold, self.keys)
                    found.check(self.context)
                except OtherHolders:  # if somebody stated two keys, its two items prove that, not this dealing
                    self.others.add(u)
                    continue
                except InvalidValue:
                    self.bad.add(u)
                    continue
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
        self._wanted = roster_body(members)
        self.accused: set[int] = set()
        """Members whose dealing to somebody did not fit, and who have not defended it."""

    def advance(self, held: Mapping[Key, Item]) -> list[Item]:
        """What this member says next: own items, durable; the vote at last."""
        said: list[Item] = []
        if self._own(held, ItemKind.VOTE):
            self.dealings.take(held)
            kept = self._desk.secret(self.attempt, SECRETS)
            defended = [] if kept is None else self._defend(held, AttemptSecrets.from_bytes(kept))
            self._judge({**held, **{item.key: item for item in defended}})
            return defended
        if not self._own(held, ItemKind.KEYS):
            secrets = AttemptSecrets.fresh()
            body = dealing.advertised(secrets) + roster_body(self.members)
            said.append(self._desk.say(ItemKind.KEYS, self.attempt, body, secrets={SECRETS: secrets.to_bytes()}))
            held = {**held, said[-1].key: said[-1]}
        self.dealings.take(held)
        kept = self._desk.secret(self.attempt, SECRETS)
        if not self.dealings.has_keys or kept is None:
            return said
        secrets = AttemptSecrets.from_bytes(kept)
        if not self._own(held, ItemKind.DEALING):
            d = self.dealings
            body = dealing.deal(d.context, self._desk.me, d.threshold, d.keys, secrets)
            said.append(self._desk.say(ItemKind.DEALING, self.attempt, body))
            self.dealings.take({said[-1].key: said[-1]})
        said += self._defend(held, secrets)
        said += self._open(held, secrets)
        self._judge({**held, **{item.key: item for item in said}})
        if self.dealings.is_complete and len(self._shares) == len(self.members):
            packed = b"".join(self._shares[u].to_bytes() for u in self.members)
            said.append(self._desk.vote(self.attempt, self.members, self.dealings.digest, {SHARES: packed}))
        return said

    def is_dealt(self, held: Mapping[Key, Item], named: bytes) -> bool:
        """Whether the dealings that the votes name are all here: only then a contribution can be masked."""
        self.dealings.take(held)
        return self.dealings.is_complete and self.dealings.digest == named

    def there(self, held: Mapping[Key, Item], proved: Collection[Key]) -> Roster:
        """The members that have done their part in this attempt, as far as all could, and whom nothing speaks against.

        proved   keys under which somebody signed two things: who did is out, and what others could not do for it is no fault
        """
        if not self._own(held, ItemKind.KEYS):
            return ()
        self.dealings.take(held)
        self._judge(held)
        d, doubled = self.dealings, {key.kind for key in proved if key.attempt == self.attempt}
        cheats = {key.author for key in proved}
        if (
            ItemKind.KEYS in doubled or not d.has_keys
        ):  # what was dealt means different things to those who hold different keys
            return tuple(sorted(self._begun(held) - cheats - (d.bad if not doubled else set())))
        if d.is_complete and ItemKind.DEALING not in doubled:
            come = self._voters(held) | self._waiting(held)
        else:
            come = self._come(held, ItemKind.DEALING) - (set() if doubled else d.others)
        return tuple(sorted(come - self.accused - d.bad - cheats))

    def _begun(self, held: Mapping[Key, Item]) -> set[int]:
        """Who began this attempt, with whomever, without those whom somebody honest would begin it without.

        All who hold the same find the same, whomever they began it with themselves: so members that judged differently whether
        somebody came in time go on together.
        """
        begun = {key.author: item for key, item in held.items() if key[:2] == (ItemKind.KEYS, self.attempt)}
        without: Counter[int] = Counter()
        for item in begun.values():
            with suppress(InvalidValue):
                without.update(begun.keys() - set(roster_of(item.body[dealing.KEY :])))
        return {u for u in begun if without[u] <= self._desk.study.privacy.colluders}

    def strangers(self, held: Mapping[Key, Item]) -> set[int]:
        """Members that began this attempt with others than most of us, if this member is one of the most."""
        come = self._come(held, ItemKind.KEYS)
        others = {u for u in come if held[Key(ItemKind.KEYS, self.attempt, u)].body[dealing.KEY :] != self._wanted}
        return others if 2 * len(come - others) > len(self.members) else set()

    def doubts(self, held: Mapping[Key, Item]) -> list[Key]:
        """What does not fit: perhaps others hold something else under these keys."""
        d, found = self.dealings, set[Key]()
        suspects = d.bad | self.strangers(held)
        found |= {Key(ItemKind.KEYS, self.attempt, u) for u in (self.members if d.others else suspects)}
        found |= {Key(ItemKind.DEALING, self.attempt, u) for u in d.bad | d.others | self._complained_of(held)}
        mine = held.get(Key(ItemKind.VOTE, self.attempt, self._desk.me))
        for u in self.members:
            vote = held.get(Key(ItemKind.VOTE, self.attempt, u))
            if mine is not None and vote is not None and vote.body != mine.body:
                found.add(vote.key)
                if vote.body[:-DIGEST] == mine.body[:-DIGEST]:
                    found |= {Key(ItemKind.DEALING, self.attempt, v) for v in self.members}
        return sorted(key for key in found if key.author != self._desk.me and key in held)

    def _complained_of(self, held: Mapping[Key, Item]) -> set[int]:
        return {u for v in self.members for u in self.members if Key(ItemKind.COMPLAINT, self.attempt, v, u) in held}

    def _come(self, held: Mapping[Key, Item], kind: ItemKind) -> set[int]:
        return {u for u in self.members if Key(kind, self.attempt, u) in held}

    def _voters(self, held: Mapping[Key, Item]) -> set[int]:
        """Who voted; if most did alike, and this member so too, only they."""
        voted = self._come(held, ItemKind.VOTE)
        wanted = self._wanted + self.dealings.digest
        alike = {u for u in voted if held[Key(ItemKind.VOTE, self.attempt, u)].body == wanted}
        return alike if 2 * len(alike) > len(self.members) else voted

    def _waiting(self, held: Mapping[Key, Item]) -> set[int]:
        """Who cannot vote, because it complained and got no answer."""
        return {
            v
            for v in self.members
            for u in self.accused
            if Key(ItemKind.COMPLAINT, self.attempt, v, u) in held and self._defended(held, u, v) is None
        }

    def missing(self, held: Mapping[Key, Item]) -> list[int]:
        """Whose part is lacking now."""
        for kind in (ItemKind.KEYS, ItemKind.DEALING, ItemKind.VOTE):
            lacking = [u for u in self.members if Key(kind, self.attempt, u) not in held]
            if lacking:
                return lacking
        return []

    # ── shares ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self, held: Mapping[Key, Item], secrets: AttemptSecrets) -> list[Item]:
        """Open the shares that were dealt to this member; complain of what does not fit, and take what was published instead."""
        said: list[Item] = []
        d, me = self.dealings, self._desk.me
        for u, dealt in d.by.items():
            if u in self._shares:
                continue
            complaint = Key(ItemKind.COMPLAINT, self.attempt, me, u)
            try:
                if complaint in held:
                    share = self._defended(held, u, me)
                    if share is None:
                        continue
                else:
                    share = dealt.open_share(d.context, me, secrets.private_key)
            except InvalidValue:
                said.append(self._desk.say(ItemKind.COMPLAINT, self.attempt, b"", u))
                continue
            self._shares[u] = share
        return said

    def _defend(self, held: Mapping[Key, Item], secrets: AttemptSecrets) -> list[Item]:
        """Publish the shares of ours that somebody complains of."""
        said: list[Item] = []
        me = self._desk.me
        for v in self.members:
            complained = Key(ItemKind.COMPLAINT, self.attempt, v, me) in held
            if complained and Key(ItemKind.DEFENCE, self.attempt, me, v) not in held and me in self.dealings.by:
                d = self.dealings
                share = dealing.defence(d.context, me, d.threshold, d.keys, secrets, v)
                said.append(self._desk.say(ItemKind.DEFENCE, self.attempt, share.to_bytes(), v))
        return said

    def _defended(self, held: Mapping[Key, Item], dealer: int, holder: int) -> Share | None:
        """The share that a dealer published after a complaint, if it fits."""
        item = held.get(Key(ItemKind.DEFENCE, self.attempt, dealer, holder))
        if item is None or dealer not in self.dealings.by:
            return None
        try:
            share = Share.from_bytes(item.body)
        except InvalidValue:
            return None
        return share if check_share(self.dealings.context, self.dealings.by[dealer], holder, share) else None

    def _judge(self, held: Mapping[Key, Item]) -> None:
        self.accused = {
            u
            for u in self.dealings.by  # what somebody else dealt cannot be judged
            for v in self.members
            if Key(ItemKind.COMPLAINT, self.attempt, v, u) in held and self._defended(held, u, v) is None
        }

    def _own(self, held: Mapping[Key, Item], kind: ItemKind) -> bool:
        return Key(kind, self.attempt, self._desk.me) in held
