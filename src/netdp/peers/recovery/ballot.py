"""The ballot of a roster: which contributions make up the sum, or that nothing does. Two phases, a lock, no clock of its own.

The members of a sealed roster say two things, both signed, at most once per *number* 1, 2, …:

    prepare(k, U)   I would seal U. `threshold` equal ones in one number are a *certificate* for U
    commit(k, U)    I hold a certificate for U in k, and am *locked*. `threshold` equal ones of one number *seal* U

U is a `Choice`: some members with the hash of each one's contribution, or nothing (then the attempt is free).

**Safety** rests on `Ballot.may_prepare` and `Ballot.may_commit` alone, and on nothing being said that is not durable. Whatever
the network does and up to `bearable` = 2·threshold − |roster| − 1 members say, at most one choice is ever sealed:
docs/proofs/peers.md#ballot, and tests that search all states of small rosters.

**Liveness** is the rest: what a member wants to say, and when (`Ballot.wants`). In number 1 each prepares what it has. In
every later number one member, its *chair*, in turn, first listens and then prepares; the others follow, and speak for
themselves if it is silent. Without chairs, members that lie could show a held-back certificate to one half of the honest ones
in every number, for ever. Nobody leaves a number before `threshold` members are in it: nobody runs ahead, and a network that
is cut in two uses no numbers up.

**Who is proved to have said two things** counts as having said everything, to everybody. That costs no safety (the proof
assumes it of all who lie), and without it a member could be locked for ever by a certificate that others cannot see, because
they heard the other thing first.

The caller has four duties:

- it writes down what `wants` gives, a commit together with the prepares of its certificate, before it says it; then it
  calls `hear` with it;
- after a restart it gives back all of that before anything else;
- it passes on what it hears; and what makes up the certificate of its own commit, or of its own prepare as chair (`voters`),
  it shows also to those who hold something under that key;
- it makes known to all who said two things, with both (`lied`).
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from netdp.errors import InvalidValue
from netdp.numerics.checks import positive, whole

DIGEST = 32
"""Bytes of a SHA-256."""

_PART = struct.Struct(f"<I{DIGEST}s")

PART_SIZE = _PART.size
"""Bytes of a choice for each member that is in it."""

SPARE_NUMBERS = 64
"""Numbers of a ballot that may be lost before clocks and messages are timely; then 2·|roster| more are enough."""


class Phase(IntEnum):
    """Which of the two things is said."""

    PREPARE = 1
    COMMIT = 2


@dataclass(frozen=True)
class Choice:
    """What may be sealed: members, in increasing order, each with the SHA-256 of its contribution; or nothing.

    >>> choice = Choice.of({4: bytes(32), 2: bytes(32)})
    >>> choice.members, len(choice.to_bytes()), Choice.from_bytes(choice.to_bytes(), (1, 2, 4), 2) == choice
    ((2, 4), 72, True)
    >>> NOTHING.to_bytes(), bool(NOTHING)
    (b'', False)
    """

    parts: tuple[tuple[int, bytes], ...] = ()

    def __post_init__(self) -> None:
        if any(a >= b for a, b in pairwise(self.members)):
            raise InvalidValue(f"a choice names each member once, in increasing order, got {_some(self.members)}")
        for member, digest in self.parts:
            if not 0 <= member < 1 << 32:
                raise InvalidValue(f"a choice names members by numbers from 0 to 2³² − 1, got {member}")
            if len(digest) != DIGEST:
                raise InvalidValue(
                    f"the contribution of member {member} is named by {DIGEST} bytes (SHA-256), got {len(digest)}"
                )

    @classmethod
    def of(cls, digests: Mapping[int, bytes]) -> Choice:
        """The contributions of these members, by their hashes."""
        return cls(tuple(sorted((u, bytes(digest)) for u, digest in digests.items())))

    @cached_property
    def members(self) -> tuple[int, ...]:
        """Whose contributions they are, in increasing order."""
        return tuple(u for u, _ in self.parts)

    @cached_property
    def digests(self) -> Mapping[int, bytes]:
        """The hash of each one's contribution."""
        return dict(self.parts)

    def __bool__(self) -> bool:
        return bool(self.parts)

    def is_within(self, other: Choice) -> bool:
        """Whether all its contributions are in the other one, too."""
        return self.digests.items() <= other.digests.items()

    def check(self, members: Collection[int], fewest: int) -> None:
        """Refuse what no honest member of this roster may say."""
        strange = [u for u in self.members if u not in members]
        if strange:
            raise InvalidValue(f"the choice names {_some(strange)}, who are not in the roster {_some(members)}")
        if self and len(self.parts) < fewest:
            raise InvalidValue(f"a choice of {len(self.parts)} contributions; it has at least {fewest}, or none at all")

    def to_bytes(self) -> bytes:
        """36 bytes per member; nothing is empty."""
        return b"".join(_PART.pack(*part) for part in self.parts)

    @classmethod
    def from_bytes(cls, body: bytes, members: Collection[int], fewest: int) -> Choice:
        """What `to_bytes` of a choice of this roster gave; all else is refused, so equal choices have equal bytes."""
        if len(body) % _PART.size or len(body) > _PART.size * len(members):
            raise InvalidValue(
                f"a choice has {_PART.size} bytes for each of up to {len(members)} members, got {len(body)} bytes"
            )
        choice = cls(tuple(_PART.iter_unpack(body)))
        choice.check(members, fewest)
        return choice


NOTHING = Choice()
"""Nothing is summed: nobody reveals anything, the attempt is free."""


class Lock(NamedTuple):
    """The highest commit of a member."""

    number: int
    choice: Choice


class Seal(NamedTuple):
    """What proves the end of a ballot: the commits of these authors, and for each of these liars two things that it said."""

    number: int
    choice: Choice
    authors: tuple[int, ...]
    liars: tuple[int, ...]


class Ballot:
    """One member's view of a ballot: a function of what it heard, in the order it heard it, and of the times it was asked.

    members     the sealed roster
    me          this party; one that is no member only listens
    threshold   how many equal words make a certificate and a seal: 2·threshold > |roster| + (members that may lie)
    fewest      the smallest choice, other than nothing
    unit        seconds: the length of number 1, at least four times what a message takes from anybody to anybody
    """

    def __init__(self, members: Sequence[int], me: int, threshold: int, fewest: int, unit: float = 1.0) -> None:
        self.members = tuple(members)
        if not self.members or any(a >= b for a, b in pairwise(self.members)):
            raise InvalidValue(f"a roster lists each member once, in increasing order, got {_some(self.members)}")
        self.me, self.size = me, len(self.members)
        self.threshold = whole("threshold", threshold, 1)
        self.fewest = whole("fewest", fewest, 1)
        self.unit = positive("unit", unit)
        self._check_sizes()
        self.bearable = max(0, 2 * self.threshold - self.size - 1)
        """How many members may lie without harm: two thresholds share one more than these."""
        self.most = SPARE_NUMBERS + 2 * self.size
        """The highest number there is."""
        self.number = 1
        """The number this member is in. It may have said nothing in it yet."""
        self.wake = float("inf")
        """When `wants` is to be asked again, even if nothing is heard."""
        self.entered = 0
        """The highest number in which this member said anything."""
        self.lock: Lock | None = None
        """Its highest commit."""
        self.liars: set[int] = set()
        """Who is proved to have said two things."""
        self._said: dict[tuple[Phase, int], dict[int, Choice]] = defaultdict(dict)
        self._voters: dict[tuple[Phase, int], dict[Choice, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._reached: dict[int, int] = dict.fromkeys(self.members, 0)
        self._choices: dict[Choice, Choice] = {}  # each is kept once
        self._certified: dict[int, Choice] = {}
        self._seal: tuple[int, Choice] | None = None
        self._began: float | None = None
        self._full: float | None = None

    def _check_sizes(self) -> None:
        if not self.size < 2 * self.threshold <= 2 * self.size:
            raise InvalidValue(
                f"threshold must be more than half of the {self.size} members and at most all of them, got "
                f"{self.threshold}: two groups of so many must share somebody honest"
            )
        if self.fewest > self.size:
            raise InvalidValue(f"fewest must be at most {self.size}, the number of members, got {self.fewest}")

    # ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────────

    def hear(self, author: int, phase: Phase, number: int, choice: Choice) -> bool:
        """Somebody's word, whose signature is checked, or one's own once it is durable; whether it is new.

        A second, different one of the same author, phase and number shows that it lies (`liars`); the first stands.
        """
        if author not in self._reached:
            raise InvalidValue(f"{author} has no vote; the members are {_some(self.members)}")
        if not 1 <= number <= self.most:
            raise InvalidValue(f"numbers of this ballot go from 1 to {self.most}, got {number} of member {author}")
        if choice not in self._choices:
            choice.check(self._reached.keys(), self.fewest)
        key, choice = (Phase(phase), number), self._choices.setdefault(choice, choice)
        first = self._said[key].get(author)
        if first is not None:
            if first != choice:
                self.lied(author)
            return False
        self._said[key][author] = choice
        self._voters[key][choice].add(author)
        self._reached[author] = max(self._reached[author], number)
        if author == self.me:
            self.entered = max(self.entered, number)
            if phase == Phase.COMMIT and (self.lock is None or number > self.lock.number):
                self.lock = Lock(number, choice)
        self._count(key, choice)
        return True

    def lied(self, author: int) -> None:
        """It is proved, by two signatures, that this member said two things under one key: here, or anywhere else."""
        if author not in self._reached:
            raise InvalidValue(f"{author} has no vote; the members are {_some(self.members)}")
        if author not in self.liars and author != self.me:
            self.liars.add(author)
            for key in sorted(self._voters):
                for choice in list(self._voters[key]):
                    self._count(key, choice)

    def _count(self, key: tuple[Phase, int], choice: Choice) -> None:
        if self.is_void or len(self._voters[key][choice] | self.liars) < self.threshold:
            return
        phase, number = key
        if phase == Phase.PREPARE:
            self._certified.setdefault(number, choice)
        elif self._seal is None:
            self._seal = number, choice

    def certificate(self, number: int) -> Choice | None:
        """The choice that `threshold` members prepared in this number; there are never two, if only `bearable` lie."""
        return self._certified.get(number)

    @property
    def sealed(self) -> Choice | None:
        """The choice that is sealed; `NOTHING` is one, None means that there is none yet."""
        return None if self._seal is None else self._seal[1]

    def seal(self) -> Seal | None:
        """What proves it."""
        if self._seal is None:
            return None
        number, choice = self._seal
        authors = self.voters(Phase.COMMIT, number, choice)
        return Seal(number, choice, authors, tuple(sorted(self.liars.difference(authors))))

    def voters(self, phase: Phase, number: int, choice: Choice) -> tuple[int, ...]:
        """Who said this, as far as it was heard first."""
        return tuple(sorted(self._voters.get((phase, number), {}).get(choice, ())))

    def heard(self, phase: Phase, number: int) -> Collection[int]:
        """Who said anything under this key."""
        return self._said.get((phase, number), {}).keys()

    @property
    def is_void(self) -> bool:
        """Whether more members are proved to lie than the ballot bears: then nothing is said or sealed any more."""
        return len(self.liars) > self.bearable

    # ── safety: docs/proofs/peers.md#ballot ───────────────────────────────────────────────────────────────────────────

    def may_prepare(self, number: int, choice: Choice) -> bool:
        """Whether this member may prepare this, now.

        Only in a number above all in which it said anything. Locked at (k, U), something else than U only on a
        certificate for that from a number above k and below this one.
        """
        if self._is_mute or not self.entered < number <= self.most:
            return False
        return self.lock is None or choice == self.lock.choice or self._is_released(number, choice)

    def _is_released(self, number: int, choice: Choice) -> bool:
        """Whether a certificate for another choice is younger than the lock."""
        assert self.lock is not None
        return any(self._certified.get(k) == choice for k in range(self.lock.number + 1, number))

    def may_commit(self, number: int, choice: Choice) -> bool:
        """Whether this member may commit to this, now: on a certificate of this number, once, and in none below `entered`."""
        if self._is_mute or not max(1, self.entered) <= number <= self.most:
            return False
        return self.me not in self._said[Phase.COMMIT, number] and self.certificate(number) == choice

    @property
    def _is_mute(self) -> bool:
        return self.me not in self._reached or self.is_void

    # ── liveness ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def time_of(self, number: int) -> float:
        """Seconds: the chair speaks after half of it, who heard no chair after all of it.

        It grows, so that whatever messages need, numbers are long enough in the end.
        """
        return self.unit * number

    def chair(self, number: int) -> int | None:
        """Whom the others follow in this number; nobody in the first."""
        return None if number == 1 else self.members[(number - 2) % self.size]

    def wants(self, view: Choice | None, now: float) -> list[tuple[Phase, int, Choice]]:
        """What to say next: one thing at most; once it is written down, said and heard, ask again.

        view    what this member would seal by itself: all contributions; after the deadline those that it holds, or
                nothing; None: it is to wait. Who is known to have handed in two is left out
        now     what the clock shows
        """
        self.wake = float("inf")
        if self._is_mute or self._seal is not None:
            return []
        self._move(now)
        certified = self.certificate(self.number)
        if certified is not None and self.may_commit(self.number, certified):
            return [(Phase.COMMIT, self.number, certified)]
        if self.entered < self.number:
            choice = self._proposal(view, now)
            if choice is not None and self.may_prepare(self.number, choice):
                self.wake = float("inf")
                return [(Phase.PREPARE, self.number, choice)]
        return []

    def _move(self, now: float) -> None:
        """Into the number where an honest member is, or into the next, if this one has had its time."""
        reached = sorted(self._reached.values(), reverse=True)
        self._enter(max(self.number, self.entered, reached[self.bearable]), reached, now)
        until = self._until()
        if now >= until and self.number < self.most:
            self._enter(self.number + 1, reached, now)
            until = self._until()
        self.wake = min(self.wake, until)

    def _enter(self, number: int, reached: Sequence[int], now: float) -> None:
        """Into this number, if it is a new one; note when `threshold` members are in it."""
        if self._began is None or number > self.number:
            self.number, self._began, self._full = number, now, None
        if self._full is None and reached[self.threshold - 1] >= self.number:
            self._full = now

    def _until(self) -> float:
        """When the present number has had its time."""
        if self._full is None or self.number == self.most:
            return float("inf")
        return self._full + (0.0 if self._is_split() else self.time_of(self.number))

    def _is_split(self) -> bool:
        """Whether the first number, in which nobody has a chair to follow, cannot lead to a certificate any more."""
        if self.number != 1 or 1 in self._certified:
            return False
        said = self._said[Phase.PREPARE, 1]
        largest = max((len(voters) for voters in self._voters[Phase.PREPARE, 1].values()), default=0)
        return largest + self.size - len(said) + len(self.liars) < self.threshold

    def _proposal(self, view: Choice | None, now: float) -> Choice | None:
        """What to prepare in the present number."""
        assert self._began is not None
        chair, time = self.chair(self.number), self.time_of(self.number)
        if chair is None:
            return self._own(view)
        if chair != self.me:
            led = self._said[Phase.PREPARE, self.number].get(chair)
            if led is not None and self._supports(led, view) and self.may_prepare(self.number, led):
                return led
        speaks = self._began + (time / 2 if chair == self.me else time)
        if now >= speaks:
            return self._own(view)
        self.wake = min(self.wake, speaks)
        return None

    def _own(self, view: Choice | None) -> Choice | None:
        """The choice of the highest certificate that is known (a lock had one), else what this member has itself."""
        known = {number: choice for number, choice in self._certified.items() if number < self.number}
        if self.lock is not None:
            known.setdefault(*self.lock)
        return known[max(known)] if known else view

    def _supports(self, choice: Choice, view: Choice | None) -> bool:
        """Whether it can come to a good end: an honest member had all these contributions, or this one has."""
        if choice in self._certified.values():
            return True
        return view is not None and (choice == view or (bool(choice) and choice.is_within(view)))


def _some(parties: Collection[int]) -> str:
    shown = ", ".join(map(str, list(parties)[:8]))
    return (shown + (f" and {len(parties) - 8} more" if len(parties) > 8 else "")) or "nobody"
