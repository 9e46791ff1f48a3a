"""Flooding: contributions are passed on until everybody holds all of them, and adds.

A grow-only set: in any order, with any repetition, through any loss of links, whoever holds all y of the roster holds
the sum. What a party that has vanished had sent is passed on by the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from netdp.protocols import MaskedSum
from netdp.protocols.masked_steps import from_bytes, opened, reduced

from ..messages import Item, Key, Kind, roster_digest
from .base import Answer, Moment, Moves, Spread


class Flood(Spread):
    """The sum of a `MaskedSum`, by passing everything on."""

    needs_own = False

    def __init__(self, protocol: MaskedSum, attempt: int, roster: tuple[int, ...]) -> None:
        super().__init__(attempt, roster)
        self.passes_on = True
        self.rounds = 0
        self._protocol, self._digest = protocol, roster_digest(roster)

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        found: list[Item] = []
        for u in self.roster:
            item = held.get(Key(Kind.CONTRIBUTION, self.attempt, u))
            if item is None or item.body[:32] != self._digest:
                return Moves()
            found.append(item)
        if self.answer is None:
            p = self._protocol
            total = np.zeros(p.dimension, dtype=np.uint64)
            for item in found:
                total += published(p, item)
            self.answer = masked_answer(p, self.attempt, self.roster, reduced(total, p.q))
        return Moves()


def published(protocol: MaskedSum, contribution: Item) -> npt.NDArray[np.uint64]:
    """The y in a contribution."""
    return from_bytes(contribution.body[32:], protocol.q, protocol.dimension)


def masked_answer(protocol: MaskedSum, attempt: int, roster: tuple[int, ...], total: npt.NDArray[np.uint64]) -> Answer:
    """The sum of all y, read as what it stands for."""
    steps = opened(total, protocol.q) + len(roster) * protocol.centre_steps
    return Answer(attempt, roster, steps.astype(np.float64) * protocol.step, hashlib.sha256(total.tobytes()).digest())
