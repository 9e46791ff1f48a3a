"""A token goes round: everybody adds what it has drawn beforehand, the last one releases the total.

A party's contributions to all rounds are drawn and written down together before the token first comes. So a token that
is lost with a party comes back from the party before it, and what is added to it is the same once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import numpy as np

from netdp.numerics.arrays import IntArray
from netdp.protocols import RingSum
from netdp.protocols.ring import ring_add, ring_mean

from ..messages import Item, Key, Kind
from .base import Answer, Moves, Spread


class Ring(Spread):
    """The sum of a `RingSum` on a grid. `drawn()` gives the party's contributions, (rounds, d), once they are durable."""

    needs_all = False

    def __init__(
        self, protocol: RingSum, attempt: int, roster: tuple[int, ...], me: int, drawn: Callable[[], IntArray]
    ) -> None:
        super().__init__(attempt, roster)
        self._protocol, self._me, self._drawn = protocol, me, drawn
        self.rounds = protocol.n * protocol.rounds
        self._contributions: IntArray | None = None
        self._last = -1  # the hop that was ours most recently

    def advance(self, held: Mapping[Key, Item]) -> Moves:
        moves = Moves()
        n, d = self._protocol.n, self._protocol.dimension
        released = held.get(Key(Kind.TOTAL, self.attempt, n - 1))
        if released is not None and len(released.body) == 8 * d:
            total = n * ring_mean(self._protocol, np.frombuffer(released.body, dtype="<i8"))
            self.answer = Answer(self.attempt, self.roster, total, hashlib.sha256(released.body).digest())
            return moves
        arrived = self._arrived(held)
        if arrived is None:
            return moves
        hop, token = arrived
        if self._contributions is None:
            self._contributions = self._drawn()
        token = ring_add(token, self._contributions[hop // n])
        self._last = hop
        body = token.astype("<i8", copy=False).tobytes()
        if hop == n * self._protocol.rounds - 1:
            moves.published.append((Key(Kind.TOTAL, self.attempt, self._me), body))
        else:
            moves.addressed.append(((self._me + 1) % n, Item(Key(Kind.TOKEN, self.attempt, self._me, hop), body)))
        return moves

    def _arrived(self, held: Mapping[Key, Item]) -> tuple[int, IntArray] | None:
        """The token that came to us and has not been handled: (our hop, what it holds)."""
        n, d = self._protocol.n, self._protocol.dimension
        before = (self._me - 1) % n
        if self._last < 0:  # we may have been here before and forgotten it: any hop that is ours
            hops = [key.index + 1 for key in held if key[:3] == (Kind.TOKEN, self.attempt, before)]
            hop = max((hop for hop in hops if hop % n == self._me), default=-1)
        else:
            hop = self._last + n
        item = held.get(Key(Kind.TOKEN, self.attempt, before, hop - 1)) if hop >= 0 else None
        if item is not None and len(item.body) == 8 * d:
            return hop, np.frombuffer(item.body, dtype="<i8")
        return (0, np.zeros(d, dtype=np.int64)) if self._me == 0 and self._last < 0 else None
