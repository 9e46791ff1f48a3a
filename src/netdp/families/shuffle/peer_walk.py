"""Network shuffling: one user of it, over direct links or through a server.

A user begins with its own sealed report. In every round it moves each report in its hand by a draw of its own
(`netdp.families.shuffle.reports`) and sends one bundle to every neighbour, an empty one too: so everybody knows when a round is
complete, and who sends to whom says nothing. What it holds after a round is written down before anything of the next round
leaves: a process that comes back goes on from there, and sends the same bytes. After the last round it hands over what it holds:
all of it, perhaps nothing ("all"), or one report picked at random, a dummy if there is none ("single").

**Through a server** the bundles of a round lie in sealed envelopes of one size (`netdp.peers.streams`), one for each neighbour,
with `cover` places for reports in each. What does not fit waits. The server sees the same from everybody in every round, and
the same while after it has passed on the envelopes of the last one: the time that a party takes to open, draw and seal, which
depends on how much it holds, is a part of that while.

**Who is away.** A neighbour that cannot be reached for half of the study's patience, or does not send what it should for four
times that, is given up: its bundles count as empty from that round on, and what was in them is lost; later it is sent nothing
but empty bundles, and a report that draws it stays where it is. Such a *cut* is
written down with the hand, and told to the neighbours in every later bundle, and so to the curator: if a report arrives that
went past a cut, the list that names it arrives too. What a list lacks can only be about hands that were never handed over.
"""

from __future__ import annotations

import hashlib
import hmac
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.errors import NetdpError
from netdp.families.shuffle.protocol import FaultPattern
from netdp.families.shuffle.reports import (
    Cut,
    Hop,
    Reports,
    Total,
    cuts_bytes,
    hop,
    one_per_link,
    packed,
    pick,
    take_cuts,
    unpacked,
)
from netdp.peers.events import Sentence
from netdp.peers.messages import Item, ItemKind, Key
from netdp.peers.spread import Moment, Moves, Spread, SpreadResult
from netdp.peers.streams import ENVELOPE, Envelopes

if TYPE_CHECKING:
    from netdp.graphs.graph import Graph
    from netdp.peers.desk import Desk

KEY = 32
"""Bytes of the secret that hops are drawn with."""

AWAY, STALLED = 0.5, 4.0
"""In units of patience: how long somebody may be out of reach, and how long a round may take, before it is given up."""

LOOK = 0.25
"""How often to look again while waiting, in units of patience."""

PAUSE = 0.05
"""Seconds between the moment at which a round is complete and the next envelopes: a server sees when they come."""


@dataclass(frozen=True)
class ReportWalk:
    """What everybody knows of a shuffled study."""

    graph: Graph
    """Of the members, in their order."""
    members: tuple[int, ...]
    curator: int
    rounds: int
    reports: Reports
    patience: float
    reporting: str = "all"
    laziness: float = 0.0
    cover: int = 0
    """Places for reports in an envelope; 0 over direct links."""

    @property
    def parties(self) -> int:
        """How many users there are."""
        return len(self.members)

    @property
    def envelope(self) -> int:
        """Bytes of an envelope."""
        return ENVELOPE + 2 + self.cover * self.reports.size

    def neighbours(self, u: int) -> tuple[int, ...]:
        """Whom a user passes reports on to."""
        return tuple(self.members[int(v)] for v in self.graph.neighbors(self.members.index(u)))

    @cached_property
    def links(self) -> frozenset[tuple[int, int]]:
        """(from, to): over which reports may come."""
        return frozenset((u, v) for u in self.members for v in self.neighbours(u))

    def place(self, round_: int) -> bytes:
        """Where what is held after a round is written down."""
        return b"hand" + round_.to_bytes(4, "big")


class Waiting(Spread):
    """What users and the curator have in common: they wait for others, and after a while give some up."""

    needs_own = True
    needs_all = False

    def __init__(self, walk: ReportWalk, attempt: int, roster: tuple[int, ...], desk: Desk) -> None:
        super().__init__(attempt, roster)
        self.walk, self._desk, self._me = walk, desk, desk.me
        self.passes_on = False
        self._away: dict[int, float] = {}  # who cannot be reached, and since when that is known
        self._since = float("inf")

    def _look(self, moment: Moment, peers: tuple[int, ...]) -> None:
        """Note who can be reached."""
        for peer in peers:
            if peer in moment.linked:
                self._away.pop(peer, None)
            else:
                self._away.setdefault(peer, moment.now)

    def _given_up(self, peer: int, moment: Moment, stalled: float = STALLED) -> bool:
        """Whether somebody has been waited for long enough."""
        patience = self.walk.patience
        away = moment.now - self._away.get(peer, moment.now) >= AWAY * patience
        return away or moment.now - self._since >= stalled * patience

    def _wait(self, moves: Moves, moment: Moment) -> None:
        """Say that we still wait, and when to look again."""
        moves.waits = True
        self.wake = moment.now + LOOK * self.walk.patience

    def _published(self, held: Mapping[Key, Item]) -> Total | None:
        """What the curator has said, if it has."""
        item = held.get(Key(ItemKind.TOTAL, self.attempt, self.walk.curator))
        if item is None:
            return None
        walk = self.walk
        total = Total.from_bytes(item.body, walk.curator, walk.rounds, walk.reports.dimension)
        if total is None:
            raise NetdpError("the curator's total cannot be read")  # is_legible lets none such in
        self.answer = SpreadResult(self.attempt, self.roster, total.total, hashlib.sha256(item.body).digest())
        self.realised = total.realised(walk.parties)
        self.wake = float("inf")
        return total


class Listening(Waiting):
    """A party that is not in the roster: it waits for the curator's word."""

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        self._published(held)
        return Moves()


class Walking(Waiting):
    """One user: `desk.written` holds its secret for hops, its sealed report, and a sealed dummy."""

    def __init__(self, walk: ReportWalk, attempt: int, roster: tuple[int, ...], desk: Desk) -> None:
        super().__init__(walk, attempt, roster, desk)
        self._neighbours = walk.neighbours(desk.me)
        self._key = self._dummy = b""
        self._hand: tuple[bytes, ...] = ()
        self._cuts: frozenset[Cut] = frozenset()
        self._stays: tuple[bytes, ...] = ()
        self._round = 0  # the round whose bundles are out
        self.waited = 0
        """Reports that found their link full."""

    @property
    @abstractmethod
    def _linked_to(self) -> tuple[int, ...]:
        """Whose absence holds us up."""

    @abstractmethod
    def _send(self, made: Hop, moves: Moves) -> None:
        """The bundles of this round."""

    @abstractmethod
    def _gathered(self, held: Mapping[Key, Item], moment: Moment) -> tuple[set[bytes], set[Cut]] | None:
        """What came in this round, and what is cut; None if it is not complete."""

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves()
        if self.answer is not None:
            return moves
        if (total := self._published(held)) is not None:
            unsaid = self._written_cuts() - total.cuts
            if unsaid:  # our hand came too late for the total, or not at all
                self.realised["unsaid"] = [list(cut) for cut in sorted(unsaid)]
            lost = self.walk.parties - total.accepted
            if lost > 0 and self.walk.reporting == "all":
                moves.notes.append(Sentence.REPORTS_LOST(lost=lost, parties=self.walk.parties))
            return moves
        self._look(moment, self._linked_to)
        if not self._round:
            self._begin(moves, moment)
        while self._round <= self.walk.rounds:
            found = self._gathered(held, moment)
            if found is None:
                self._wait(moves, moment)
                return moves
            came, cuts = found
            new = {cut for cut in cuts if cut not in self._cuts}
            hand = self._at_most_all({*self._stays, *came}, moves)
            known = one_per_link({*self._cuts, *cuts}, self.walk.links)
            body = cuts_bytes(known) + packed(hand, self.walk.reports.size)
            self._take_up(self._desk.once(self.attempt, self.walk.place(self._round), body))
            for u, v, first in sorted(new):
                if v == self._me and (u, v, first) in self._cuts:
                    self.absent.add(u)
                    moves.notes.append(
                        Sentence.WITHOUT_PARTY(round=first, rounds=self.walk.rounds, party=self._desk.name(u))
                    )
            self._move_on(moves, moment)
        if not self._given_up(self.walk.curator, moment):
            self._wait(moves, moment)
        else:
            self.wake = float("inf")
        return moves

    def _at_most_all(self, hand: set[bytes], moves: Moves) -> tuple[bytes, ...]:
        """A hand of no more reports than there are parties: if somebody invents more, some are left out, by a secret draw."""
        most = self.walk.parties
        if len(hand) > most:
            moves.notes.append(Sentence.INVENTED(reports=len(hand), most=most))
            hand = set(sorted(hand, key=lambda report: hmac.digest(self._key, b"keep" + report, "sha256"))[:most])
        return tuple(sorted(hand))

    @property
    def _given_up_by_us(self) -> set[int]:
        """Neighbours whose bundles count as empty, and to whom nothing is sent any more."""
        return {u for u, v, _ in self._cuts if v == self._me}

    def _begin(self, moves: Moves, moment: Moment) -> None:
        secret, size = self._desk.written(self.attempt), self.walk.reports.size
        self._key, own, self._dummy = (
            secret[a:b] for a, b in ((0, KEY), (KEY, KEY + size), (KEY + size, KEY + 2 * size))
        )
        self._hand = (own,)
        self.realised = {"unheard": True}  # until the curator says what was lost
        self._move_on(moves, moment)
        while self._round <= self.walk.rounds:  # what an earlier life of this party has written down
            body = self._desk.noted(self.attempt, self.walk.place(self._round))
            if body is None:
                return
            self._take_up(body)
            self._move_on(moves, moment)

    def _written_cuts(self) -> frozenset[Cut]:
        """All cuts that this party, in this life or an earlier one, has written down."""
        cuts = self._cuts
        for round_ in range(max(self._round, 1), self.walk.rounds + 1):
            body = self._desk.noted(self.attempt, self.walk.place(round_))
            parsed = None if body is None else take_cuts(body, self.walk.curator, self.walk.rounds)
            if parsed is None:
                break
            cuts = parsed[0]
        return cuts

    def _take_up(self, body: bytes) -> None:
        """The hand after this round, as it was written down first."""
        parsed = take_cuts(body, self.walk.curator, self.walk.rounds)
        hand = None if parsed is None else unpacked(parsed[1], self.walk.reports.size)
        if parsed is None or hand is None:
            raise NetdpError(f"what was written down of round {self._round} cannot be read; the folder is damaged")
        self._cuts, self._hand = parsed[0], hand

    def _move_on(self, moves: Moves, moment: Moment) -> None:
        """The next round begins, or the hand is handed over."""
        walk = self.walk
        self._round += 1
        self._since = moment.now
        if self._round > walk.rounds:
            reports = self._hand
            if walk.reporting == "single":
                reports = (pick(self._hand, self._key) or self._dummy,)
            body = cuts_bytes(self._cuts) + packed(reports, walk.reports.size)
            moves.addressed.append(
                (walk.curator, Item(Key(ItemKind.BUNDLE, self.attempt, self._me, walk.rounds + 1), body))
            )
            return
        made = hop(
            self._hand,
            self._key,
            self._round,
            self._neighbours,
            walk.laziness,
            walk.cover or None,
            self._given_up_by_us,
        )
        self._stays = made.stays
        self.waited += made.waited
        self._send(made, moves)


class DirectWalk(Walking):
    """A user with a link to every neighbour."""

    @property
    def _linked_to(self) -> tuple[int, ...]:
        return (*self._neighbours, self.walk.curator)

    def _send(self, made: Hop, moves: Moves) -> None:
        key, cuts = Key(ItemKind.BUNDLE, self.attempt, self._me, self._round), cuts_bytes(self._cuts)
        for v in self._neighbours:
            moves.addressed.append((v, Item(key, cuts + packed(made.bundles[v], self.walk.reports.size))))

    def _gathered(self, held: Mapping[Key, Item], moment: Moment) -> tuple[set[bytes], set[Cut]] | None:
        out = self._given_up_by_us
        came: set[bytes] = set()
        cuts: set[Cut] = set()
        missing = []
        for v in self._neighbours:
            if v in out:
                continue
            item = held.get(Key(ItemKind.BUNDLE, self.attempt, v, self._round))
            parsed = None if item is None else take_cuts(item.body, self.walk.curator, self.walk.rounds)
            reports = None if parsed is None else unpacked(parsed[1], self.walk.reports.size)
            if parsed is None or reports is None:
                missing.append(v)
                continue
            came |= set(reports)
            cuts |= {cut for cut in parsed[0] if cut[1] != self._me}  # whom we give up, we decide
        if any(not self._given_up(v, moment) for v in missing):
            return None
        return came, cuts | {(v, self._me, self._round) for v in missing}


class RelayedWalk(Walking):
    """A user with a link to the server alone."""

    def __init__(self, walk: ReportWalk, attempt: int, roster: tuple[int, ...], desk: Desk) -> None:
        super().__init__(walk, attempt, roster, desk)
        where = (desk.study.hash, attempt, roster)
        self._ready: list[tuple[int, Item]] = []
        self._leaves = 0.0
        self._envelopes = {v: Envelopes(desk.identity, desk.me, desk.cards[v], v, *where) for v in self._neighbours}

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = super().advance(held, moment)
        if moves.addressed:  # made at once, sent a while later: how long it took to make says how much there was
            self._ready += moves.addressed
            self._leaves = moment.now + PAUSE
            moves.addressed = []
        if self._ready and self.answer is None:
            if moment.now >= self._leaves:
                moves.addressed, self._ready = self._ready, []
            else:
                moves.waits = True
                self.wake = min(self.wake, self._leaves)
        return moves

    @property
    def _linked_to(self) -> tuple[int, ...]:
        return (self.walk.curator,)

    def _send(self, made: Hop, moves: Moves) -> None:
        size, cover = self.walk.reports.size, self.walk.cover
        body = b"".join(
            self._envelopes[v].enclose(self._round, packed(made.bundles[v], size, cover)) for v in self._neighbours
        )
        moves.addressed.append(
            (self.walk.curator, Item(Key(ItemKind.BUNDLE, self.attempt, self._me, self._round), body))
        )

    def _gathered(self, held: Mapping[Key, Item], moment: Moment) -> tuple[set[bytes], set[Cut]] | None:
        item = held.get(Key(ItemKind.BUNDLE, self.attempt, self.walk.curator, self._round))
        each = 1 + self.walk.envelope
        if item is None or len(item.body) != each * len(self._neighbours):
            return None
        out = self._given_up_by_us
        came: set[bytes] = set()
        cuts: set[Cut] = set()
        for place, v in enumerate(self._neighbours):
            part = item.body[place * each : (place + 1) * each]
            content = self._envelopes[v].disclose(self._round, part[1:]) if part[0] and v not in out else None
            reports = None if content is None else unpacked(content, self.walk.reports.size, self.walk.cover)
            if reports is None:
                if v not in out:
                    cuts.add((v, self._me, self._round))
                continue
            came |= set(reports)
        return came, cuts


def pattern_of(realised: Mapping[str, Any], members: tuple[int, ...], rounds: int) -> FaultPattern:
    """Which links failed in which round: what came over a cut is lost, and nothing goes back over it afterwards.

    >>> found = pattern_of({"cuts": [[2, 0, 3]]}, members=(0, 1, 2), rounds=4)
    >>> found.severed, found.barred
    (((2, 2, 0), (3, 2, 0)), ((3, 0, 2),))
    """
    number = {u: place for place, u in enumerate(members)}
    cuts = [(number[u], number[v], int(first)) for u, v, first in realised.get("cuts", ()) if {u, v} <= number.keys()]
    return FaultPattern(
        np.zeros((rounds, len(members)), dtype=bool),
        severed=tuple((r, u, v) for u, v, first in cuts for r in range(first - 1, rounds)),
        barred=tuple((r, v, u) for u, v, first in cuts for r in range(first, rounds)),
    )
