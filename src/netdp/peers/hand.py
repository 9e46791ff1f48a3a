"""A party's pen: what it signs, and what it draws, once, written down before anybody sees it.

For every attempt a party makes one durable transaction: what it publishes (or what it will add to a token, or to its
states) together with what that costs its owner. All that it sends in that attempt is a function of this row. Another
process that opens the same folder says the same things; it never draws a second time.

The noise comes from a stream cipher whose key is derived from a long-term secret, the study, the attempt, the roster and
a hash of the very numbers that it is added to. So even a folder restored from an old backup gives the same bytes for the
same data, and other noise for other data; pads are bound to study, attempt and roster. Which assumptions of the proofs
are enforced where: docs/guarantees.md#real-peers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from netdp.errors import InvalidValue, NetdpError, Refused, Unsupported
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols import Gossip, MaskedSum, RingSum
from netdp.protocols.masked_steps import contribution, from_bytes, quantised, quantised_records, to_bytes, wire_width
from netdp.protocols.ring import ring_contributions

from .ledger.entries import entry_of
from .messages import Item, Key, Kind, roster_body, roster_digest, roster_of, signed_bytes
from .spreads.average import Average
from .spreads.flood import Flood
from .spreads.gossip import Gossiping, gossip_noises
from .spreads.ring import Ring
from .streams import context, noise_words, pads_of

if TYPE_CHECKING:
    from .identity import Card, Identity
    from .ledger.store import Store
    from .spreads.base import Spread
    from .study import Study
    from .terms import Roster


class Pen:
    """The `Hand` of a party (`netdp.peers.party`) with its keys, its folder and its numbers.

    rows   (records, d): what the task made of the party's data
    """

    def __init__(self, identity: Identity, study: Study, store: Store, rows: FloatArray) -> None:
        self._identity, self._study, self._store, self._rows = identity, study, store, rows
        self.me = study.index(identity.card.name)
        if study.card(self.me) != identity.card:
            raise Refused(
                f"the study lists other keys for {identity.card.name!r} than those in {identity.home}; was the identity made "
                "anew? Have the study written and signed with its present card"
            )

    # ── the Hand ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def own(self) -> list[Item]:
        """Votes and contributions that are written down."""
        study = self._study.hash
        votes = self._store.votes(study)
        items = [Item(Key(Kind.VOTE, attempt, self.me), *said) for attempt, said in votes.items()]
        for attempt in votes:
            if (held := self._store.contribution(study, attempt)) is not None:
                items.append(self._sealed(Key(Kind.CONTRIBUTION, attempt, self.me), held.body))
        return items

    def vote(self, attempt: int, roster: Roster) -> Item:
        """Durable before it is returned; a second, different one for the attempt is refused."""
        item = self._sealed(Key(Kind.VOTE, attempt, self.me), roster_body(roster))
        self._store.put_vote(self._study.hash, attempt, item.body, item.signature)
        return item

    def contribute(self, attempt: int, roster: Roster) -> Item:
        """Draw, write with its cost, and only then hand it out."""
        key = Key(Kind.CONTRIBUTION, attempt, self.me)
        if (held := self._store.contribution(self._study.hash, attempt)) is not None:
            return self._sealed(key, held.body)
        if roster_of(self._store.votes(self._study.hash)[attempt][0]) != roster:
            raise Refused(
                f"this party did not vote for the roster {roster} of attempt {attempt}; it contributes nothing"
            )
        self._check_same_data()
        body, secret = self._drawn(attempt, roster)
        item = self._sealed(key, body)
        entry = entry_of(self._study, attempt, roster, self.me)
        self._store.spend(self._study.hash, attempt, tuple(key), body, secret, entry, item.signature)
        return item

    def adopt(self, item: Item, roster: Roster | None) -> None:
        """Write down an own item that others hold; a contribution with its cost, and so only with the roster it was made to."""
        key, study = item.key, self._study
        if key.kind == Kind.VOTE:
            self._store.put_vote(study.hash, key.attempt, item.body, item.signature)
            return
        if roster is None or item.body[:32] != roster_digest(roster):
            raise NetdpError(
                f"the neighbours hold our contribution to attempt {key.attempt}, but not the roster we voted for; this folder is "
                "older than what was sent from it, and what that cost cannot be entered. Stopped: put the newer folder back"
            )
        entry = entry_of(study, key.attempt, roster, self.me)
        self._store.adopt(study.hash, key.attempt, tuple(key), item.body, item.signature, entry)

    def sign(self, key: Key, body: bytes) -> Item:
        """Sign what follows from what was published: a call for help, or the total of a ring."""
        if key.kind not in (Kind.FALLBACK, Kind.TOTAL):
            raise NetdpError(f"a {key.kind.name.lower()} is not signed here: it must be written down first")
        return self._sealed(key, body)

    def spread(self, attempt: int, roster: Roster) -> Spread:
        """How the contributions of this attempt become the answer, for this party."""
        protocol = self._study.protocol_of(roster)
        if isinstance(protocol, RingSum):
            return Ring(protocol, attempt, roster, self.me, lambda: self._written(attempt, protocol.dimension))
        if isinstance(protocol, Gossip):
            return Gossiping(protocol, attempt, roster, self.me, lambda: self._written(attempt, protocol.dimension))
        if not isinstance(protocol, MaskedSum):
            raise Unsupported(
                f"{type(protocol).__name__} does not run on peers yet; use masked-sum, ring-sum or gossip"
            )
        if protocol.spread == "average" and self.me in roster and self._talk(roster):
            try:
                return Average(protocol, attempt, roster, self.me)
            except Unsupported:  # on what is left of the talk graph it would not be exact: everybody finds the same
                pass
        return Flood(protocol, attempt, roster)

    # ── what is drawn ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _drawn(self, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        """What is published, and what later messages are computed from."""
        protocol = self._study.protocol_of(roster)
        where = context(self._study.hash, attempt, roster)
        if isinstance(protocol, MaskedSum):
            integers = self._integers(protocol)
            noise = DiscreteGaussian(protocol.share).sample(
                integers.shape, noise_words(self._identity.noise_secret, where, integers.astype("<i8").tobytes())
            )
            others = [v for v in roster if v != self.me]
            pads = pads_of(self._identity, self._cards, self.me, others, where, len(integers), protocol.q)
            y = contribution(protocol, integers, noise, pads)
            return roster_digest(roster) + to_bytes(y, protocol.q), b""
        words = noise_words(self._identity.noise_secret, where, self._rows.astype("<f8").tobytes())

        def draw(variance: int, size: int) -> IntArray:
            return DiscreteGaussian(variance).sample((size,), words)

        if isinstance(protocol, RingSum):
            added = ring_contributions(protocol, self.me, self._rows[0], draw)
        else:
            assert isinstance(protocol, Gossip)
            added = gossip_noises(protocol, self._rows[0], words)
        return roster_digest(roster), added.astype("<i8").tobytes()

    def _check_same_data(self) -> None:
        """Refuse if the data changed since an earlier attempt: all attempts are accounted for as about the same values."""
        study = self._study.hash
        for attempt, (vote, _) in self._store.votes(study).items():
            held = self._store.contribution(study, attempt)
            # the same data give the same noise, so the same bytes
            if held is not None and self._drawn(attempt, roster_of(vote))[0] != held.body:
                raise Refused(
                    f"the data of {self._identity.card.name} have changed since attempt {attempt} of this study; what was promised "
                    "is about the same values in every attempt. Put the data back as they were, or take part in a new study"
                )

    def _integers(self, protocol: MaskedSum) -> IntArray:
        if protocol.unit == "record":
            return quantised_records(protocol, self._rows)
        return quantised(protocol, self._rows[0])

    def _written(self, attempt: int, columns: int) -> IntArray:
        """The numbers written down for an attempt, (rounds, d)."""
        held = self._store.contribution(self._study.hash, attempt)
        if held is None or not held.secret:
            raise NetdpError(
                f"the numbers of attempt {attempt} are not in {self._store.path}: the folder was restored from a backup after "
                "they had been drawn; this party cannot go on with this study"
            )
        return np.frombuffer(held.secret, dtype="<i8").astype(np.int64).reshape(-1, columns)

    @cached_property
    def _cards(self) -> dict[int, Card]:
        return dict(enumerate(self._study.cards))

    def _talk(self, roster: Roster) -> bool:
        """Whether the members of the roster are connected among themselves."""
        graph = self._study.graph
        return len(roster) == graph.n or graph.subgraph(list(roster)).is_connected

    def _sealed(self, key: Key, body: bytes) -> Item:
        return Item(key, body, self._identity.sign(signed_bytes(self._study.hash, key, body)))


def longest_bodies(study: Study) -> dict[Kind, int]:
    """How long a body of each kind can be, if its author is honest."""
    protocol = study.protocol()
    width = wire_width(protocol.q) if isinstance(protocol, MaskedSum) else 0
    numbers = study.task.dimension
    return {
        Kind.VOTE: 4 * study.n,
        Kind.CONTRIBUTION: 32 + width * numbers,
        Kind.FALLBACK: 0,
        Kind.TOTAL: 8 * numbers,
        Kind.STATE: 8 * numbers,
        Kind.TOKEN: 8 * numbers,
    }


def legible(study: Study) -> Callable[[Item], bool]:
    """Whether a body can be read: numbers of the right count and size. Everybody judges alike."""
    numbers, protocol = study.task.dimension, study.protocol()

    def fits(item: Item) -> bool:
        if item.key.kind == Kind.CONTRIBUTION and isinstance(protocol, MaskedSum):
            try:
                from_bytes(item.body[32:], protocol.q, numbers)
            except InvalidValue:
                return False
        elif item.key.kind in (Kind.TOTAL, Kind.STATE, Kind.TOKEN):
            return len(item.body) == 8 * numbers
        return True

    return fits


def most_rounds(study: Study) -> int:
    """No state or token of an honest party has a larger index."""
    protocol = study.protocol()
    if isinstance(protocol, RingSum):
        return protocol.n * protocol.rounds
    if isinstance(protocol, MaskedSum) and protocol.spread == "flood":
        return 0
    if isinstance(protocol, MaskedSum):
        return 100_000  # a smaller roster may take longer than all together
    return int(getattr(protocol, "rounds", 0))
