"""Averaging: contributions go to the neighbours only, then everybody averages until n times the mean is the exact sum.

Everything after the contributions is a function of them, so a party that comes back computes the same states again from
what its neighbours send it once more. If it is stuck, because somebody has vanished, contributions are passed on as in
flooding (`Spread.fall_back`): the answer is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from netdp.errors import NetdpError
from netdp.numerics.arrays import FloatArray
from netdp.protocols import MaskedSum
from netdp.protocols.masked_averaging import averaging_end, averaging_row, averaging_start, averaging_step

from ..messages import Item, Key, Kind
from .base import Moment, Moves
from .flood import Flood, masked_answer, published


class Average(Flood):
    """The sum of a `MaskedSum`, by accelerated averaging with the neighbours in the roster."""

    needs_own = True
    can_fall_back = True

    def __init__(self, protocol: MaskedSum, attempt: int, roster: tuple[int, ...], me: int) -> None:
        super().__init__(protocol, attempt, roster)
        self.passes_on = False
        self._me = me
        self._weights = protocol.averaging.weights
        self.rounds = len(self._weights)
        places, self._row_weights = averaging_row(protocol.graph, roster.index(me))
        self._row = [
            roster[place] for place in places.tolist()
        ]  # who is averaged, ourselves included, in a fixed order
        self._states: list[FloatArray] = []

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        if self.passes_on:
            return super().advance(held, moment)
        moves = Moves()
        own = held.get(Key(Kind.CONTRIBUTION, self.attempt, self._me))
        if own is None or self.answer is not None:
            return moves
        others = [u for u in self._row if u != self._me]
        if not self._states:
            self._states.append(averaging_start(published(self._protocol, own), self._protocol.q))
            moves.addressed += [(u, own) for u in others]
        while len(self._states) <= len(self._weights):
            t = len(self._states) - 1
            around = [self._states[t] if u == self._me else self._state(held, u, t) for u in self._row]
            if any(state is None for state in around):
                return moves
            a, b = self._weights[t]
            before = self._states[t - 1] if t else self._states[0]
            self._states.append(averaging_step(self._row_weights, np.array(around), a, b, before))
            if t + 1 < len(self._weights):
                item = Item(Key(Kind.STATE, self.attempt, self._me, t + 1), self._states[-1].tobytes())
                moves.addressed += [(u, item) for u in others]
        try:
            total = averaging_end(self._states[-1], len(self.roster), self._protocol.q)
        except NetdpError:
            total = None
        if total is None or self._doubtful():  # somebody sent something else than its state
            self.stuck = True
            return moves
        self.answer = masked_answer(self._protocol, self.attempt, self.roster, total)
        return moves

    def _doubtful(self) -> bool:
        """Whether n times the mean is further from whole numbers than mixing and rounding can make it: a checksum."""
        sums = len(self.roster) * self._states[-1]
        bound = self._protocol.averaging
        return float(np.abs(sums - np.rint(sums)).max()) > bound.mixing_error + bound.rounding_error

    def _state(self, held: Mapping[Key, Item], u: int, t: int) -> FloatArray | None:
        """What u sent in round t, if it is here."""
        if t == 0:
            item = held.get(Key(Kind.CONTRIBUTION, self.attempt, u))
            if item is None or item.body[:32] != self._digest:
                return None
            return averaging_start(published(self._protocol, item), self._protocol.q)
        item = held.get(Key(Kind.STATE, self.attempt, u, t))
        if item is None or len(item.body) != 8 * self._protocol.dimension:
            return None
        return np.frombuffer(item.body, dtype="<f8")
