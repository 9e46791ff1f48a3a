"""A token goes round: everybody adds what it has drawn beforehand, the last one releases the total.

A party's contributions to all rounds are drawn and written down together before the token first comes. So a token that
is lost with a party comes back from the party before it, and what is added to it is the same once more.

The ring goes round the roster: if somebody is missing from it, the party before passes the token to the one after.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols import RingHistogram, RingSum
from netdp.protocols.response_steps import is_heap, shares
from netdp.protocols.ring import ring_add, ring_mean

from ..messages import Item, Key, Kind
from .base import Answer, Moment, Moves, Spread


class Ring(Spread):
    """The sum of a `RingSum` on a grid, or the counts of a `RingHistogram`, of as many users as the roster has members.

    `drawn()` gives the party's contributions, (rounds, d), once they are durable.
    """

    needs_all = False
    keeps_last_token = True

    def __init__(
        self,
        protocol: RingSum | RingHistogram,
        attempt: int,
        roster: tuple[int, ...],
        me: int,
        drawn: Callable[[], IntArray],
    ) -> None:
        super().__init__(attempt, roster)
        self._protocol, self._me, self._drawn = protocol, me, drawn
        self._place = roster.index(me) if me in roster else -1  # on the ring; a party outside only reads the total
        self._width = protocol.dimension if isinstance(protocol, RingSum) else protocol.domain
        self.rounds = protocol.n * protocol.rounds
        self._contributions: IntArray | None = None
        self._last = -1  # the hop that was ours most recently
        self._refused: set[bytes] = set()

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves()
        n = self._protocol.n
        released = held.get(Key(Kind.TOTAL, self.attempt, self.roster[-1]))
        if released is not None and self._reads(released.body, self.rounds or 0, moves):
            total = self._total(np.frombuffer(released.body, dtype="<i8"))
            self.answer = Answer(self.attempt, self.roster, total, hashlib.sha256(released.body).digest())
            return moves
        arrived = self._arrived(held, moves) if self._place >= 0 else None
        if arrived is None:
            return moves
        hop, token = arrived
        if self._contributions is None:
            self._contributions = self._drawn()
        try:
            token = ring_add(token, self._contributions[hop // n])
        except InvalidValue as problem:
            moves.notes.append(f"refused: the token of hop {hop - 1}: {problem}")
            self._refused.add(token.astype("<i8").tobytes())
            return moves
        self._last = hop
        body = token.astype("<i8", copy=False).tobytes()
        if hop == n * self._protocol.rounds - 1:
            moves.published.append((Key(Kind.TOTAL, self.attempt, self._me), body))
        else:
            after = self.roster[(self._place + 1) % n]
            moves.addressed.append((after, Item(Key(Kind.TOKEN, self.attempt, self._me, hop), body)))
        return moves

    def _total(self, token: IntArray) -> FloatArray:
        """What the released token says of the sum over the roster."""
        protocol = self._protocol
        mean = ring_mean(protocol, token) if isinstance(protocol, RingSum) else shares(protocol, token)
        return np.asarray(protocol.n * mean)

    def _reads(self, body: bytes, hops: int, moves: Moves) -> bool:
        """Whether these can be the numbers of a token after so many hops; says once if they cannot."""
        if len(body) != 8 * self._width or body in self._refused:
            return False
        protocol = self._protocol
        if isinstance(protocol, RingSum):
            return True
        elements = hops + protocol.blanket + (protocol.closing_blanket if hops == self.rounds else 0)
        if is_heap(protocol, np.frombuffer(body, dtype="<i8"), elements):
            return True
        self._refused.add(body)
        moves.notes.append(f"refused: a token after {hops} hops holds {elements} answers, and this one does not")
        return False

    def _arrived(self, held: Mapping[Key, Item], moves: Moves) -> tuple[int, IntArray] | None:
        """The token that came to us and has not been handled: (our hop, what it holds)."""
        n = self._protocol.n
        before = self.roster[(self._place - 1) % n]
        if self._last < 0:  # we may have been here before and forgotten it: any hop that is ours
            hops = [key.index + 1 for key in held if key[:3] == (Kind.TOKEN, self.attempt, before)]
            hop = max((hop for hop in hops if hop % n == self._place), default=-1)
        else:
            hop = self._last + n
        item = held.get(Key(Kind.TOKEN, self.attempt, before, hop - 1)) if hop >= 0 else None
        if item is not None and self._reads(item.body, hop, moves):
            return hop, np.frombuffer(item.body, dtype="<i8")
        return (0, np.zeros(self._width, dtype=np.int64)) if self._place == 0 and self._last < 0 else None
