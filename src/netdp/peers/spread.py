"""What every way from contributions to the answer has in common: given what a party holds and the time, what does it do next?

Whatever it does must follow from what is written down and what was heard, so that another process that starts from the
same folder does the same. A decision that the clock has a part in is first written down (`Desk.once`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from netdp.numerics.arrays import FloatArray
from netdp.peers.events import Statement
from netdp.peers.exchange import Items
from netdp.peers.messages import Item, Key


@dataclass(frozen=True, eq=False)
class SpreadResult:
    """The sum over the roster of what each member contributed, noise included, in the units of the protocol."""

    attempt: int
    roster: tuple[int, ...]
    total: FloatArray
    """(d,)"""
    digest: bytes
    """Of the total, where all parties hold the same one; empty where each has its own estimate."""


@dataclass
class Moves:
    """What to do next: items for single neighbours, bodies to be signed and published, and what the owner should know."""

    addressed: list[tuple[int, Item]] = field(default_factory=list)
    published: list[tuple[Key, bytes]] = field(default_factory=list)
    notes: list[Statement] = field(default_factory=list)
    said: list[Item] = field(default_factory=list)
    """Own items that are signed and durable already, for everybody."""
    wanted: list[Key] = field(default_factory=list)
    """What is missing and is to be asked of all neighbours."""
    doubted: list[Key] = field(default_factory=list)
    """What is held, and does not fit: neighbours are asked a few times whether they hold something else under it."""
    shown: list[Key] = field(default_factory=list)
    """What is held and is to be shown to all neighbours, though they have it: somebody may have another one."""
    forgotten: list[Key] = field(default_factory=list)
    """What nobody needs any more, of one's own and of others: it is dropped, and memory stays level."""
    waits: bool = False
    """Whether this attempt waits for others with good reason: its deadline moves on."""


@dataclass(frozen=True)
class Moment:
    """What the clock shows, in seconds since some moment, which neighbours can be reached, and what they hold in our name."""

    now: float
    linked: frozenset[int] = frozenset()
    asked: bool = True
    """Whether all neighbours have said what they hold in our name."""
    claimed: int = 0
    """The last of our own steps that anybody says to hold."""
    returned: bool = False
    """Whether the folder knew of this study when this life began, or others gave something back: it may be an old copy."""
    ready: bool = True
    """Whether all neighbours have said what they hold in our name, or were waited for long enough."""
    mute: bool = False
    """Whether others hold something of this attempt in our name that this folder does not know: then it says nothing in it."""
    second: Mapping[Key, Sequence[Item]] = field(default_factory=dict)
    """Keys under which somebody is proven to have signed two different items, and those of them that are here besides the first."""


class Spread(ABC):
    """One attempt of one party, from sealed roster to answer. A function of what is held: it may be started again anywhere."""

    needs_own: ClassVar[bool] = True
    """Whether a member can do nothing before it has contributed itself."""
    needs_all: ClassVar[bool] = True
    """Whether contributions are published, so that it shows who has vanished before its own."""
    can_fall_back: ClassVar[bool] = False
    """Whether contributions can be passed on to everybody instead, if this way is stuck."""
    keeps_time: ClassVar[bool] = False
    """Whether it decides by itself how long to wait, and for whom."""
    keeps_last_token: ClassVar[bool] = False
    """Whether a later token of the same author makes all earlier ones superfluous."""

    def __init__(self, attempt: int, roster: tuple[int, ...]) -> None:
        self.attempt, self.roster = attempt, roster
        self.passes_on = False
        """Whether contributions are passed on to everybody."""
        self.rounds: int | None = None
        """The largest index of an honest state or token; None: what the study says."""
        self.stuck = False
        """Whether it cannot get on by itself."""
        self.answer: SpreadResult | None = None
        self.wake = float("inf")
        """When `advance` is to be called again even if nothing is heard."""
        self.lasts = 0.0
        """Seconds that the attempt may take from its sealing on, beyond the study's patience, without a word to this party."""
        self.absent: set[int] = set()
        """Members that were waited for in vain."""
        self.realised: dict[str, Any] = {}
        """What really happened here, as plain values: from this the loss is computed again in the end."""
        self.completed = 0
        """Iterations that are over: steps of earlier ones than the last of these are forgotten."""
        self.missing: tuple[int, ...] = ()
        """Whose part the present iteration still lacks."""
        self.progress: dict[str, Any] = {}
        """How far it is, for people, as plain values."""
        self.blamed: set[int] = set()
        """Members that are proven, to who holds what this party does, to have dealt wrongly."""
        self.over: Statement | None = None
        """Why it can never get on, where that is so: the party ends then."""
        self.free = False
        """Whether all have agreed that nothing of this attempt is opened: it costs nothing, and another may follow."""
        self.work: Callable[[], Any] | None = None
        """Something long to compute, a function of nothing that changes: in another thread, then `worked` with what it gave."""

    @abstractmethod
    def advance(self, held: Items, moment: Moment) -> Moves:
        """What follows from all that is held now; sets `answer` once it is known."""

    def fall_back(self) -> None:
        """Go on by passing contributions on."""
        self.passes_on = True

    def worked(self, result: Any) -> None:  # noqa: B027  most have nothing long to compute
        """What was to be computed is computed."""

    def needs(self, item: Item) -> bool:
        """Whether just this contribution is lacking, of somebody who signed several."""
        return False

    def why_late(self) -> Statement | None:
        """Why the attempt is given up, if its time is over now; None where the party knows by itself."""
        return None

    def leave(self) -> None:  # noqa: B027  most have nothing to say
        """The party ends without an answer, and says nothing more in this attempt, in this life or a later one."""
