"""What a party asks of its study, and how a study may end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from netdp import __version__
from netdp.peers.events import Statement
from netdp.peers.messages import NEWEST, OLDEST, RECOVERS, Held, Item, ItemKind, Range, signed_digest
from netdp.peers.recovery.ballot import SPARE_NUMBERS

if TYPE_CHECKING:
    from netdp.peers.study.study import Study

SPARE = 8
"""How many attempts may fail before anybody contributes, beyond those that the study allows."""

AHEAD = 2
"""How many iterations beyond those that are over here an honest party can speak of: see `netdp.families.masked.peer_descent`."""
PROOFS = 2 + AHEAD
"""How many things that we published in one attempt an honest neighbour can hold: a contribution, steps of three iterations."""

Roster = tuple[int, ...]


class Terms:
    """A study as one party must know it to take part; all of it is asked of the study, nothing is stated a second time."""

    version = __version__

    def __init__(self, study: Study, me: int) -> None:
        self._study, self._kind, self._me = study, study.running, me
        self.fits = self._kind.is_legible
        """Whether a body can be read at all: if not, its author has said nothing."""

    @cached_property
    def formats(self) -> Range:
        """Of the wire, the oldest and the newest that this party speaks in this study."""
        return (RECOVERS if self.deals else OLDEST, NEWEST)

    @cached_property
    def deals(self) -> bool:
        """Whether shares of fresh secrets are dealt in every attempt, so that its sum survives dropouts."""
        return self._kind.threshold is not None

    @cached_property
    def study(self) -> bytes:
        """Its hash."""
        return self._study.hash

    @cached_property
    def n(self) -> int:
        """How many parties there are: their numbers come first."""
        return self._study.n

    @cached_property
    def others(self) -> int:
        """How many take part besides the parties (a curator): their numbers come after."""
        return len(self._study.everybody) - self.n

    def name(self, u: int) -> str:
        """What a participant is called, for people."""
        return self._study.everybody[u]

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """Whom this party is linked to."""
        return self._study.neighbours(self._me)

    @cached_property
    def _near(self) -> dict[int, frozenset[int]]:
        return {v: frozenset(self._study.neighbours(v)) for v in self.neighbours}

    def hears(self, peer: int, author: int) -> bool:
        """Whether a neighbour is linked to an author too."""
        return author in self._near[peer]

    # ── attempts and time ─────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def fewest(self) -> int:
        """The smallest roster allowed."""
        return self._study.smallest_roster

    @cached_property
    def attempts(self) -> int:
        """How often a party may contribute in all."""
        return self._study.privacy.attempts

    @property
    def tolerates(self) -> bool:
        """Whether an attempt in which numbers got lost on their way may be followed by another one."""
        return self._kind.tolerates

    @property
    def gather(self) -> float:
        """Seconds that the first attempt waits for everybody."""
        return self._study.timing.gather

    @cached_property
    def patience(self) -> float:
        """Seconds without the end of an attempt after which it is given up."""
        return self._study.timing.patience

    @property
    def grace(self) -> float:
        """Seconds to wait for the neighbours' word before a first contribution, if some of them cannot be reached."""
        return self.patience / 2

    # ── what honest parties send ──────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def longest(self) -> Mapping[ItemKind, int]:
        """Bytes: no honest item of a kind has a longer body."""
        return self._kind.longest()

    @cached_property
    def rounds(self) -> int:
        """No honest state or token has a larger index."""
        return self._kind.most_rounds()

    @cached_property
    def releases(self) -> int:
        """How many totals one author may release."""
        return self._kind.most_releases()

    @cached_property
    def steps(self) -> int:
        """In how many iterations a party publishes, where there are any: no honest step has a larger index."""
        return self._kind.most_steps()

    @cached_property
    def ballots(self) -> int:
        """No honest prepare or commit has a larger number."""
        return SPARE_NUMBERS + 2 * self.n if self.deals else 0

    @cached_property
    def proofs(self) -> int:
        """How many things that we published an honest neighbour can hold, in all attempts."""
        return (PROOFS + (4 + 2 * self.n + 2 * self.ballots if self.deals else 0)) * (self.attempts + SPARE)

    def verify(self, item: Item) -> bool:
        """Whether an item was signed by its author."""
        return self.proves(Held.of(item))

    def proves(self, held: Held) -> bool:
        """Whether there is such an item: whether the signature is its author's."""
        message = signed_digest(self.study, held.key, held.digest)
        return self._study.cards[held.key.author].verify(message, held.signature)


@dataclass(frozen=True)
class Ended:
    """The study ended without an answer: why, and how often this party had contributed.

    withheld   the attempt whose answer is here and is not told, because honest parties cannot have come to it; 0: none
    """

    reason: Statement
    contributed: int
    withheld: int = 0
