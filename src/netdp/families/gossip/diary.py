"""A party's diary of randomized gossip: every decision, written down before anybody hears of it, and what follows from them.

The diary is the party. Its state, its fresh noise and every number it ever sends are functions of what was drawn for the
attempt and of the entries so far, so a process that opens the same folder reads itself back and says the same bytes. An
entry:

    woke      offered an exchange to a neighbour (offers are numbered)
    met       the neighbour had taken our offer up, and here is its state: ours is sent, and half of the difference added
    withdrew  it had taken our offer up when we were no longer free: it is told so
    accepted  took up somebody's offer: our state is sent
    declined  was busy
    heard     the state of who had offered has come: half of the difference is added
    voided    it withdrew, or sent what no honest party sends

**Fresh noise** of a send comes from a stream whose key is a function of the secret that was drawn and of all entries up to
this one, what was received included. The same diary gives the same noise; two diaries that differ anywhere (a folder put
back from a backup) give independent noise, so no noise ever stands around two states.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from netdp.errors import NetdpError
from netdp.families.gossip.protocol import LARGEST, difference, fits, summed
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import IntArray
from netdp.peers.messages import Item, ItemKind, Key
from netdp.peers.streams import Words

_HEAD = struct.Struct("<BII")

KEY = 32
"""Bytes of the secret from which all chance of an attempt is drawn."""


class What(IntEnum):
    """Kinds of entries."""

    WOKE = 1
    MET = 2
    WITHDREW = 3
    ACCEPTED = 4
    DECLINED = 5
    HEARD = 6
    VOIDED = 7


_DEEDS = {What.MET: "met", What.ACCEPTED: "accepted", What.HEARD: "heard"}


class Decision(NamedTuple):
    """One decision: what, with whom, which offer of who made it, and the state that had come, if any."""

    what: What
    other: int
    number: int
    state: bytes = b""

    def to_bytes(self) -> bytes:
        """As it is written down."""
        return _HEAD.pack(self.what, self.other, self.number) + self.state

    @classmethod
    def from_bytes(cls, body: bytes) -> Decision:
        """Inverse of `to_bytes`.

        >>> Decision.from_bytes(Decision(What.HEARD, 3, 7, b"12345678").to_bytes())
        Decision(what=<What.HEARD: 6>, other=3, number=7, state=b'12345678')
        """
        try:
            what, other, number = _HEAD.unpack_from(body)
            return cls(What(what), other, number, body[_HEAD.size :])
        except (struct.error, ValueError):
            raise NetdpError(f"an entry of {len(body)} bytes in the diary of an exchange cannot be read") from None


class Chance:
    """All chance of one attempt of one party, from a secret key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def _words(self, label: bytes) -> Words:
        return Words(hmac.digest(self._key, b"netdp exchange 1 " + label, "sha256"))

    def wait(self, number: int) -> float:
        """How long to wait before offer `number`, in units of the mean: exponential, so that clocks are independent."""
        word = int(self._words(b"wait" + struct.pack("<I", number))(1)[0])
        return -math.log((word + 0.5) / 2**64)

    def one_of(self, choices: Sequence[int], number: int) -> int:
        """Whom to turn to with offer `number`."""
        word = int(self._words(b"whom" + struct.pack("<I", number))(1)[0])
        return choices[word % len(choices)]  # uniform up to 2⁻⁵⁰; privacy does not rest on it

    def fresh(self, chain: bytes, variance: int, size: int) -> IntArray:
        """The fresh noise of the send that the diary up to `chain` makes."""
        return FineGaussian(variance).sample((size,), self._words(b"fresh" + chain))


class Diary:
    """Entries, and what follows from them. `written` is what was drawn for the attempt: a key, then the first state."""

    def __init__(self, me: int, attempt: int, written: bytes, fresh_variance: int, largest: int = LARGEST) -> None:
        self.me, self._attempt, self._variance, self._largest = me, attempt, fresh_variance, largest
        self.chance = Chance(written[:KEY])
        self.state: IntArray = np.frombuffer(written[KEY:], dtype="<i8").astype(np.int64)
        self.entries = 0
        self._chain = hashlib.sha256(written).digest()
        self._sends = 0
        self.offers = 0
        """How many offers were made."""
        self.open: dict[int, int] = {}
        """Offers of ours that neither were met nor withdrawn: number → to whom."""
        self.answered: dict[int, int] = {}
        """The last offer of each neighbour that was accepted or declined."""
        self.unheard: dict[int, tuple[int, IntArray]] = {}
        """Exchanges of others that we took up and whose answer has not come: who offered → (number, what we sent)."""
        self.deeds: list[list[str | int]] = []
        """As `netdp.families.gossip.logs.ExchangeLogs` wants them."""

    def would_fit(self, entry: Decision) -> bool:
        """Whether what would be sent, or held, after this entry is of a size that honest parties reach."""
        if entry.what == What.HEARD:
            sent = self.unheard[entry.other][1]
            moved = self.state.astype(object) + difference(self.me, sent, entry.other, self._numbers(entry.state))
            return bool((abs(moved) <= self._largest).all())
        return fits(self._refreshed(self._next(entry)), self._largest)

    def write(self, entry: Decision) -> tuple[int, Item] | None:
        """What follows from one more entry: the item for a neighbour, if there is one."""
        chain = self._next(entry)
        what, other, number, body = entry
        out: Item | None = None
        if what == What.WOKE:
            self.offers, self.open[number] = number + 1, other
            out = self._item(ItemKind.OFFER, number, b"")
        elif what in (What.MET, What.WITHDREW):
            self.open.pop(number, None)
            out = self._item(ItemKind.STATE, number, self._sent(chain) if what == What.MET else b"")
            if what == What.MET:
                self.state = self.state + difference(self.me, self.state, other, self._numbers(body))
        elif what in (What.ACCEPTED, What.DECLINED):
            self.answered[other] = number
            out = self._item(ItemKind.ACCEPT, number, self._sent(chain) if what == What.ACCEPTED else b"")
            if what == What.ACCEPTED:
                self.unheard[other] = (number, self.state)
        else:
            _, sent = self.unheard.pop(other)
            if what == What.HEARD:
                self.state = self.state + difference(self.me, sent, other, self._numbers(body))
        self._chain = chain
        self.entries += 1
        if what in _DEEDS:
            self.deeds.append([_DEEDS[what], other, number])
        return None if out is None else (other, out)

    def _next(self, entry: Decision) -> bytes:
        return hashlib.sha256(self._chain + entry.to_bytes()).digest()

    def _refreshed(self, chain: bytes) -> IntArray:
        if self._sends == 0 or not self._variance:
            return self.state
        return summed(self.state, self.chance.fresh(chain, self._variance, self.state.size))

    def _sent(self, chain: bytes) -> bytes:
        """The own state with fresh noise, as it leaves and as it is from now on."""
        self.state = self._refreshed(chain)
        self._sends += 1
        return self.state.astype("<i8").tobytes()

    def _item(self, kind: ItemKind, number: int, body: bytes) -> Item:
        return Item(Key(kind, self._attempt, self.me, number), body)

    @staticmethod
    def _numbers(body: bytes) -> IntArray:
        return np.frombuffer(body, dtype="<i8").astype(np.int64)
