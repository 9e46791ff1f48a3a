"""What an audit asks of one kind of protocol about a recording of it. A family derives a class for each of its kinds.

Whether what peers sent went the way that its protocol says (`conversation`):

    masked-sum          averages are what follows from the published numbers, to the last bit, and end with the last round
    masked-descent      one step per party and iteration, none beyond the last
    ring-sum, ring-*    hop h goes from user h mod n to the next, each once; the last user releases, nobody else
    walk-*              every token is at one place at a time; where it was handed to is where it goes on from
    gossip              every party sends one state per round to every neighbour, as many rounds as stated
    randomized-gossip   no more offers than wake-ups; an answer to an offer; a state for an answer
    shuffle             one bundle a round over every link, and every report moves in every round, as far as bundles show it

In an attempt that broke off, what is missing is not held against anybody; what is too much is. Beside that, which noise was added
(`noises`), who attacks whom, and with which outcome (`pairs`, `attacks`): for kinds that have an attack on recordings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from netdp.audit.findings import Check, Finding
from netdp.peers.messages import Done, Item, ItemKind
from netdp.peers.recordings.conformance import told
from netdp.peers.recordings.recording import Recording, Said, View
from netdp.protocols.family import family_of_kind

if TYPE_CHECKING:
    from netdp.peers.recordings.noise import OpenedNoise

Pair = tuple[str, tuple[int, ...], int]
"""Why, who looks, about whom."""


class RecordedKind(ABC):
    """One recording, to those who know its kind of protocol."""

    is_attacked: ClassVar[bool] = False
    """Whether there is an attack on recordings of this kind."""

    def __init__(self, recording: Recording) -> None:
        self.recording, self.study = recording, recording.study

    @abstractmethod
    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        """What was looked at in an attempt, in words; what is wrong with it is added to `problems`."""

    def noises(self) -> Iterator[OpenedNoise]:
        """All noises that can be told apart; nothing where the kind has none of that sort."""
        return iter(())

    def pairs(self, observers: tuple[int, ...] | None, target: int | None, delta: float) -> list[Pair]:
        """The attacks that are made; observers and target are None unless somebody chose them."""
        return []

    def attacks(
        self, view: View, target: int, name: str, delta: float, doubt: float
    ) -> tuple[list[Finding], list[Check]]:
        """What a coalition makes of what it holds."""
        return [], []

    @property
    def why_not(self) -> str:
        """Why nothing was attacked."""
        name, kind = self.study.name, self.study.settings.kind
        return (
            f"{name}: the claim of {kind} is attacked in simulation (netdp audit STUDY); here its messages are checked"
        )

    def published(self, view: View) -> list[Any]:
        """What a coalition sees that is compared over all recordings of one audit (`compared`)."""
        return []

    @staticmethod
    def compared(published: Sequence[Any]) -> list[Check]:
        """Checks of what was published, over all recordings together."""
        return []


def recorded(recording: Recording) -> RecordedKind:
    """A recording to those who know its kind of protocol: the family says who that is."""
    word = recording.study.settings.kind
    family = family_of_kind(word)
    made: RecordedKind = family.named(family.recordings[word])(recording)
    return made


def conversations(recording: Recording) -> list[Check]:
    """Whether rounds, hops and steps are as stated, in every attempt that numbers were sent in."""
    kind = recorded(recording)
    problems: list[str] = []
    words = [kind.conversation(attempt, roster, problems) for attempt, roster in recording.rosters.items()]
    beyond = {one.item.key.attempt for one in recording.items if not one.item.key.kind.is_signed} - set(
        recording.rosters
    )
    problems += [
        f"numbers were sent in attempt {attempt}, which has no roster that all voted for" for attempt in beyond
    ]
    return [told("rounds as stated", problems, "; ".join(filter(None, words)) or "nothing was sent in any attempt")]


def said(recording: Recording, attempt: int, *kinds: ItemKind) -> list[Said]:
    """What was sent of these kinds in one attempt, in order."""
    return [one for one in recording.items if one.item.key.attempt == attempt and one.item.key.kind in kinds]


def items_of(recording: Recording, attempt: int, kind: ItemKind) -> dict[tuple[int, int], Item]:
    """(author, index) → the item, of one kind in one attempt."""
    return {
        (one.item.key.author, one.item.key.index): one.item
        for one in recording.items
        if (one.item.key.kind, one.item.key.attempt) == (kind, attempt)
    }


def ended(recording: Recording, attempt: int) -> bool:
    """Whether all of its roster hold an answer to this attempt: then nothing may be missing."""
    done = {one.sender for one in recording.said if isinstance(one.message, Done) and one.message.attempt == attempt}
    return done.issuperset(recording.rosters[attempt])
