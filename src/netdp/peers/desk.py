"""A party's desk: what it signs, and what it draws, once, written down before anybody sees it.

For every attempt a party makes one durable transaction: what it publishes (or what it will add to a token, or to its
states) together with what that costs its owner. All that it sends in that attempt is a function of this row. Another
process that opens the same folder says the same things; it never draws a second time.

The noise comes from a stream cipher whose key is derived from a long-term secret, the study, the attempt, the roster and
a hash of the very numbers that it is added to. So even a folder restored from an old backup gives the same bytes for the
same data, and other noise for other data; pads are bound to study, attempt and roster. Which assumptions of the proofs
are enforced where: docs/proofs/peers.md#real-peers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from netdp.errors import NetdpError, Refused
from netdp.numerics.arrays import FloatArray
from netdp.peers.events import Statement
from netdp.peers.ledger.entries import CORRECTS, Entry, correction_of, entry_of, if_broken_off
from netdp.peers.ledger.losses import is_covered
from netdp.peers.ledger.store import SHUT
from netdp.peers.messages import Item, ItemKind, Key, decode, encode, roster_body, roster_digest, signed_bytes, vote_of

if TYPE_CHECKING:
    from netdp.peers.identity import Card, Identity
    from netdp.peers.ledger.store import Store
    from netdp.peers.recovery.dealing import AttemptSecrets
    from netdp.peers.recovery.opening import Dealings, Opening
    from netdp.peers.spread import Spread
    from netdp.peers.study.study import Study
    from netdp.peers.terms import Roster

STEP = b"step"
"""The rising register of what a party publishes in one iteration after the other."""
SAID = b"said "
"""With what the registers begin that hold what a party signs on the way of a sum that survives dropouts."""
CERTIFICATE = b"certificate "
"""With what the registers begin that hold the prepares under a commit."""
SECRETS, SHARES = b"attempt secrets", b"attempt shares"
"""The party's own secrets of an attempt, until its contribution is durable; the others' shares, until they are revealed."""


class Desk:
    """Where a party signs and draws, with its keys, its folder and its numbers: for `netdp.peers.party` and for its protocol.

    Everything returned is durable: asked again, even by another process, it is the same.

    rows   (records, d): what the task made of the party's data; none for a curator
    """

    def __init__(self, identity: Identity, study: Study, store: Store, rows: FloatArray) -> None:
        self.identity, self.study, self._store, self.rows = identity, study, store, rows
        self.me = study.index(identity.card.name)
        self._openings: dict[int, Opening] = {}
        if study.card(self.me) != identity.card:
            raise Refused(
                f"the study lists other keys for {identity.card.name!r} than those in {identity.home}; was the identity made "
                "anew? Have the study written and signed with its present card"
            )

    # ── for the party ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def own(self) -> list[Item]:
        """Votes and contributions that are written down."""
        study = self.study.hash
        votes = self._store.votes(study)
        items = [Item(Key(ItemKind.VOTE, attempt, self.me), *said) for attempt, said in votes.items()]
        for attempt in votes:
            if (held := self._store.contribution(study, attempt)) is not None:
                items.append(self._sealed(Key(ItemKind.CONTRIBUTION, attempt, self.me), held.body))
                steps = [(number, body) for number, body in self._store.risen(study, attempt, STEP) if number < SHUT]
                items += [self._sealed(Key(ItemKind.STEP, attempt, self.me, number), body) for number, body in steps]
        for attempt, place, body in self._store.registers(study, SAID):
            kind, index = (int(number) for number in place[len(SAID) :].split())
            items.append(self._sealed(Key(ItemKind(kind), attempt, self.me, index), body))
        return items

    def vote(
        self, attempt: int, roster: Roster, dealings: bytes = b"", secrets: Mapping[bytes, bytes] | None = None
    ) -> Item:
        """Durable before it is returned; a second, different one for the attempt is refused.

        dealings, secrets   where a sum survives dropouts: the hash of the dealings, and the shares that were in them
        """
        item = self._sealed(Key(ItemKind.VOTE, attempt, self.me), roster_body(roster) + dealings)
        self._store.put_vote(self.study.hash, attempt, item.body, item.signature, secrets)
        return item

    def say(
        self,
        kind: ItemKind,
        attempt: int,
        body: bytes,
        index: int = 0,
        *,
        more: Mapping[bytes, bytes] | None = None,
        secrets: Mapping[bytes, bytes] | None = None,
        erased: Sequence[bytes] = (),
    ) -> Item:
        """Something that is said once: durable before it is returned, with what is written, kept or erased along with it."""
        place = SAID + b"%d %d" % (kind, index)
        bodies = {place: body} | dict(more or {})
        self._store.settle(self.study.hash, attempt, bodies, secrets=secrets, erased=erased)
        return self._sealed(Key(kind, attempt, self.me, index), body)

    def ballot(self, kind: ItemKind, attempt: int, body: bytes, number: int, certificate: Sequence[Item]) -> Item:
        """A prepare, or a commit with the prepares of its certificate: who is locked can always show by what."""
        more = {CERTIFICATE + b"%d" % number: encode(certificate)} if kind == ItemKind.COMMIT else None
        return self.say(kind, attempt, body, number, more=more)

    def certificates(self, attempt: int) -> list[Item]:
        """The prepares under this party's commits in an attempt."""
        kept = self._store.registers(self.study.hash, CERTIFICATE)
        frames = [decode(body) for which, _, body in kept if which == attempt]
        return [item for frame in frames for item in frame if isinstance(item, Item)]

    def secret(self, attempt: int, place: bytes) -> bytes | None:
        """A secret of an attempt; None if there never was one, or if it is erased."""
        return self._store.secret(self.study.hash, attempt, place)

    def erase(self, attempt: int) -> None:
        """Erase the secrets of an attempt that is over."""
        if any(self.secret(attempt, place) is not None for place in (SECRETS, SHARES)):
            self._store.settle(self.study.hash, attempt, {}, erased=(SECRETS, SHARES))

    def holds_secrets(self, attempt: int) -> bool:
        """Whether the own secrets of an attempt are here still."""
        return self.secret(attempt, SECRETS) is not None

    def contribute(self, attempt: int, roster: Roster) -> Item:
        """Draw, write with its cost, and only then hand it out."""
        key = Key(ItemKind.CONTRIBUTION, attempt, self.me)
        if (held := self._store.contribution(self.study.hash, attempt)) is not None:
            return self._sealed(key, held.body)
        if self._voted(self._store.votes(self.study.hash)[attempt][0]) != roster:
            raise Refused(
                f"this party did not vote for the roster {', '.join(map(self.name, roster))} of attempt {attempt}; it contributes "
                "nothing"
            )
        self._check_same_data()
        body, secret = self.study.running.draw(self, attempt, roster)
        item = self._sealed(key, body)
        entry = self._entry(attempt, roster)
        erased = (SECRETS,) if self.study.running.threshold is not None else ()
        self._store.spend(self.study.hash, attempt, tuple(key), body, secret, entry, item.signature, erased)
        return item

    def _voted(self, vote: bytes) -> Roster:
        return vote_of(vote, self.study.running.threshold is not None)[0]

    def adopt(self, item: Item, roster: Roster | None) -> None:
        """Write down an own item that others hold; a contribution with its cost, and so only with the roster it was made to."""
        key, study = item.key, self.study
        if key.kind == ItemKind.VOTE:
            self._store.put_vote(study.hash, key.attempt, item.body, item.signature)
            return
        if key.kind == ItemKind.STEP:
            self.rise(key.attempt, key.index, {STEP: item.body})
            return
        if roster is None or item.body[:32] != roster_digest(roster):
            raise NetdpError(Statement(
                f"the neighbours hold our contribution to attempt {key.attempt}, but not the roster we voted for; this folder is "
                "older than what was sent from it, and what that cost cannot be entered. Stopped: put the newer folder back",
                "older-folder",
            ))  # fmt: skip
        entry = self._entry(key.attempt, roster)
        self._store.adopt(study.hash, key.attempt, tuple(key), item.body, item.signature, entry)

    def sign(self, key: Key, body: bytes) -> Item:
        """Sign what follows from what was published, or stands in a register: a call for help, a released total, a step."""
        written = (
            key.kind == ItemKind.STEP and self._store.stands(self.study.hash, key.attempt, STEP, key.index) == body
        )
        if key.kind not in (ItemKind.FALLBACK, ItemKind.TOTAL, ItemKind.THROUGH) and not written:
            raise NetdpError(f"a {key.kind.name.lower()} is not signed here: it must be written down first")
        if key.kind == ItemKind.TOTAL:  # released once: after a restart, whatever a neighbour says now, it is the same
            body = self.once(key.attempt, b"total" + key.index.to_bytes(8, "big"), body)
        return self._sealed(key, body)

    def spread(self, attempt: int, roster: Roster) -> Spread:
        """How the contributions of this attempt become the answer, for this party."""
        return self.study.running.spread(self, attempt, roster)

    # ── for its protocol ──────────────────────────────────────────────────────────────────────────────────────────────

    def name(self, u: int) -> str:
        """What a participant is called, for people."""
        return self.study.everybody[u]

    def once(self, attempt: int, place: bytes, body: bytes) -> bytes:
        """A register that is written once: durable before it returns; the first body ever written there is what it gives."""
        return self._store.once(self.study.hash, attempt, place, body)

    def noted(self, attempt: int, place: bytes) -> bytes | None:
        """What stands in such a register, if it was written."""
        return self._store.register(self.study.hash, attempt, place)

    def rise(self, attempt: int, number: int, bodies: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Registers that rise together, durable before it returns: of each number the first body stands, a lower one is refused.

        Only where the attempt is paid for, all its iterations at once.
        """
        if self._store.contribution(self.study.hash, attempt) is None:
            raise NetdpError(Statement(
                f"a step of attempt {attempt} would be written before the attempt is entered in the ledger; this folder is "
                "older than what was sent from it. Stopped: put the newer folder back",
                "older-folder",
            ))  # fmt: skip
        return self._store.rise(self.study.hash, attempt, number, bodies)

    def risen(self, attempt: int, place: bytes) -> list[tuple[int, bytes]]:
        """What stands in a rising register, the last number first: two of them."""
        return self._store.risen(self.study.hash, attempt, place)

    def written(self, attempt: int) -> bytes:
        """The secret half of what was drawn for an attempt."""
        held = self._store.contribution(self.study.hash, attempt)
        if held is None or not held.secret:
            raise NetdpError(
                f"the numbers of attempt {attempt} are not in {self._store.path}: the folder was restored from a backup after "
                "they had been drawn; this party cannot go on with this study"
            )
        return held.secret

    def opening(self, attempt: int, members: Roster) -> Opening:
        """What this party does in an attempt before it contributes, where shares are dealt."""
        from netdp.peers.recovery.opening import Opening

        threshold = self.study.running.threshold
        assert threshold is not None
        opening = self._openings[attempt] = Opening(self, attempt, members, threshold)
        return opening

    def dealings(self, attempt: int, members: Roster) -> Dealings:
        """What these members deal in an attempt: read and checked once, also where this party takes part itself."""
        from netdp.peers.recovery.opening import Dealings

        opening, threshold = self._openings.get(attempt), self.study.running.threshold
        if opening is not None and opening.members == members:
            return opening.dealings
        assert threshold is not None
        return Dealings(self.study.hash, attempt, members, threshold)

    def masks(self, attempt: int, columns: int, modulus: int) -> npt.NDArray[np.uint64]:
        """What hides a contribution to an attempt, where shares are dealt: its own mask, and its pads with all other members."""
        from netdp.peers.recovery.masks import masks

        dealings = self._openings[attempt].dealings
        return masks(self.attempt_secrets(attempt), self.me, dealings.by, dealings.context, columns, modulus)

    def attempt_secrets(self, attempt: int) -> AttemptSecrets:
        """The fresh secrets of an attempt, until its contribution is durable."""
        from netdp.peers.recovery.dealing import AttemptSecrets

        kept = self.secret(attempt, SECRETS)
        if kept is None:
            raise NetdpError(
                f"the secrets of attempt {attempt} are erased, or were never here; it is not contributed to"
            )
        return AttemptSecrets.from_bytes(kept)

    def free(self, attempt: int, roster: Roster, realised: Mapping[str, Any]) -> None:
        """Enter that an attempt cost nothing: its members sealed that nothing of it is opened."""
        self.correct(attempt, roster, {"kind": "nothing", "seal": realised["nothing"]}, realised)
        self._store.set_ended(self.study.hash, attempt)

    def correct(self, attempt: int, roster: Roster, loss: Mapping[str, Any], realised: Mapping[str, Any]) -> None:
        """Enter that an attempt cost something else than was entered before it began: what really happened, and its loss."""
        entered = entry_of(self.study, attempt, roster, self.me)
        before = [
            one.loss
            for one in self._store.entries_of(self.study.hash)
            if one.attempt > CORRECTS and one.attempt % CORRECTS == attempt
        ]
        entry = correction_of(entered, dict(loss), number=len(before) + 1)
        if not any(is_covered(entry.loss, one) for one in before):  # a restart finds the same again, and enters nothing
            body = json.dumps(realised, sort_keys=True).encode()
            self._store.spend(self.study.hash, entry.attempt, ("correction", attempt), body, b"", entry, b"")

    def _entry(self, attempt: int, roster: Roster) -> Entry:
        """What is entered before anything leaves: the promised loss, and that of an attempt of which no end is ever heard."""
        unheard = self.study.running.recomputed(attempt, roster, self.me, {"unheard": True})
        return if_broken_off(entry_of(self.study, attempt, roster, self.me), unheard)

    # ── what is drawn ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_same_data(self) -> None:
        """Refuse if the data changed since an earlier attempt: all attempts are accounted for as about the same values."""
        study = self.study.hash
        for attempt, (vote, _) in self._store.votes(study).items():
            held = self._store.contribution(study, attempt)
            if held is not None and not self.study.running.is_same_data(self, attempt, self._voted(vote), held):
                raise Refused(Statement(
                    f"the data of {self.identity.card.name} have changed since attempt {attempt} of this study; what was promised "
                    "is about the same values in every attempt. Put the data back as they were, or take part in a new study",
                    "data-changed",
                ))  # fmt: skip

    @cached_property
    def cards(self) -> dict[int, Card]:
        """Everybody's public card."""
        return dict(enumerate(self.study.cards))

    def _sealed(self, key: Key, body: bytes) -> Item:
        return Item(key, body, self.identity.sign(signed_bytes(self.study.hash, key, body)))
