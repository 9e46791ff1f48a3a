"""Gossip on a grid: everybody sends its state to its neighbours, averages, adds fresh noise, and sends again.

All noise of a party, for all rounds, is drawn and written down together before its first state leaves. So states are
functions of what is written down and of what the neighbours sent; a party that comes back computes them again. There is
no second way to the answer: if somebody stays away, it ends without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from netdp.mechanisms.discrete_gaussian import Words
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols import Gossip
from netdp.protocols.gossip import gossip_refresh, gossip_start, gossip_step, gossip_weights, summed

from ..messages import Item, Key, Kind
from .base import Answer, Moment, Moves, Spread


def gossip_noises(protocol: Gossip, value: FloatArray, words: Words) -> IntArray:
    """All that a party draws, (rounds, d): its first state, then the fresh noise of every later send."""

    def draw(variance: int, size: int) -> IntArray:
        return FineGaussian(variance).sample((size,), words)

    nothing = np.zeros(value.size, dtype=np.int64)
    fresh = [gossip_refresh(protocol, nothing, draw) for _ in range(protocol.rounds - 1)]
    return np.array([gossip_start(protocol, value, draw), *fresh], dtype=np.int64)


class Gossiping(Spread):
    """The mean by a `Gossip` on a grid; everybody ends with an estimate of its own. `drawn()` as in `Ring`."""

    needs_all = False

    def __init__(
        self, protocol: Gossip, attempt: int, roster: tuple[int, ...], me: int, drawn: Callable[[], IntArray]
    ) -> None:
        super().__init__(attempt, roster)
        self._protocol, self._me, self._drawn = protocol, me, drawn
        self._weights = gossip_weights(protocol, me)
        self._noises: IntArray | None = None
        self._sent: list[IntArray] = []

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves()
        if self.answer is not None:
            return moves
        if self._noises is None:
            self._noises = self._drawn()
            self._send(self._noises[0], moves)
        while True:
            t = len(self._sent) - 1
            found = {v: self._state(held, v, t) for v in self._weights}
            received = {v: state for v, state in found.items() if state is not None}
            if len(received) < len(found):
                return moves
            mixed = gossip_step(self._weights, self._sent[t], received)
            if t + 1 == self._protocol.rounds:
                total = mixed.astype(np.float64) * (self._protocol.step * self._protocol.n)
                self.answer = Answer(self.attempt, self.roster, total, b"")
                return moves
            self._send(summed(mixed, self._noises[t + 1]), moves)

    def _send(self, state: IntArray, moves: Moves) -> None:
        item = Item(Key(Kind.STATE, self.attempt, self._me, len(self._sent)), state.astype("<i8").tobytes())
        self._sent.append(state)
        moves.addressed += [(v, item) for v in self._weights]

    def _state(self, held: Mapping[Key, Item], v: int, t: int) -> IntArray | None:
        item = held.get(Key(Kind.STATE, self.attempt, v, t))
        if item is None or len(item.body) != 8 * self._sent[0].size:
            return None
        return np.frombuffer(item.body, dtype="<i8").astype(np.int64)
