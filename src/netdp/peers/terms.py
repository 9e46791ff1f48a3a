"""What a party must be told of a study, what it can ask its owner's hand to do, and how it may end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from .messages import Held, Item, Key, Kind
from .spreads.base import Spread
from .versions import NEWEST, OLDEST, Range

SPARE = 8
"""How many attempts may fail before anybody contributes, beyond those that the study allows."""

Roster = tuple[int, ...]


@dataclass(frozen=True)
class Terms:
    """What a party must know of a study to take part in it."""

    study: bytes
    """Its hash."""
    n: int
    """How many parties there are: their numbers come first."""
    neighbours: tuple[int, ...]
    fewest: int
    """The smallest roster allowed."""
    attempts: int
    """How often a party may contribute in all."""
    gather: float
    """Seconds that the first attempt waits for everybody."""
    patience: float
    """Seconds without the end of an attempt after which it is given up."""
    verify: Callable[[Item], bool]
    """Whether an item was signed by its author."""
    proves: Callable[[Held], bool]
    """Whether there is such an item: whether the signature is its author's."""
    longest: Mapping[Kind, int]
    """Bytes: no honest item of a kind has a longer body."""
    rounds: int
    """No honest state or token has a larger index."""
    releases: int = 1
    """How many totals one author may release."""
    fits: Callable[[Item], bool] = lambda item: True
    """Whether a body can be read at all: if not, its author has said nothing."""
    version: str = ""
    formats: Range = (OLDEST, NEWEST)
    """Of the wire, the oldest and the newest that this party speaks."""
    name: Callable[[int], str] = str
    """What a party is called, for people."""
    others: int = 0
    """How many take part besides the parties (a curator): their numbers come after."""
    tolerates: bool = False
    """Whether an attempt in which numbers got lost on their way may be followed by another one."""
    steps: int = 0
    """In how many iterations a party publishes, where there are any: no honest step has a larger index."""
    hears: Callable[[int, int], bool] = lambda peer, author: False
    """Whether a neighbour is linked to an author too."""
    grace: float = 1.0
    """Seconds to wait for the neighbours' word before a first contribution, if some of them cannot be reached."""


class Hand(Protocol):
    """What a party signs and draws. Everything returned is durable: asked again, even by another process, it is the same."""

    def own(self) -> list[Item]:
        """Votes and contributions made so far."""

    def vote(self, attempt: int, roster: Roster) -> Item:
        """Vote for a roster; refuses a second one for the same attempt."""

    def contribute(self, attempt: int, roster: Roster) -> Item:
        """Draw noise, write it down with its cost, and return what is published."""

    def adopt(self, item: Item, roster: Roster | None) -> None:
        """Take an own vote or contribution, which others hold and this machine has forgotten, for what was said."""

    def sign(self, key: Key, body: bytes) -> Item:
        """Sign something that follows from what was published."""

    def spread(self, attempt: int, roster: Roster) -> Spread:
        """How contributions of this attempt become the answer."""


@dataclass(frozen=True)
class Ended:
    """The study ended without an answer: why, and how often this party had contributed."""

    reason: str
    contributed: int
