"""What every way from contributions to the answer has in common: given all that a party holds, what can it do next?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from netdp.numerics.arrays import FloatArray

from ..messages import Item, Key


@dataclass(frozen=True, eq=False)
class Answer:
    """The sum over the roster of what each member contributed, noise included, in the units of the protocol."""

    attempt: int
    roster: tuple[int, ...]
    total: FloatArray
    """(d,)"""
    digest: bytes
    """Of the total, where all parties hold the same one; empty where each has its own estimate."""


@dataclass
class Moves:
    """What to do next: items for single neighbours, and bodies to be signed and published."""

    addressed: list[tuple[int, Item]] = field(default_factory=list)
    published: list[tuple[Key, bytes]] = field(default_factory=list)


class Spread(ABC):
    """One attempt of one party, from sealed roster to answer. A function of what is held: it may be started again anywhere."""

    needs_own: ClassVar[bool] = True
    """Whether a member can do nothing before it has contributed itself."""
    needs_all: ClassVar[bool] = True
    """Whether contributions are published, so that it shows who has vanished before its own."""
    can_fall_back: ClassVar[bool] = False
    """Whether contributions can be passed on to everybody instead, if this way is stuck."""

    def __init__(self, attempt: int, roster: tuple[int, ...]) -> None:
        self.attempt, self.roster = attempt, roster
        self.passes_on = False
        """Whether contributions are passed on to everybody."""
        self.rounds: int | None = None
        """The largest index of an honest state or token; None: what the study says."""
        self.stuck = False
        """Whether it cannot get on by itself."""
        self.answer: Answer | None = None

    @abstractmethod
    def advance(self, held: Mapping[Key, Item]) -> Moves:
        """What follows from all that is held now; sets `answer` once it is known."""

    def fall_back(self) -> None:
        """Go on by passing contributions on."""
        self.passes_on = True
