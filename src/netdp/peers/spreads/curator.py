"""Network shuffling: the curator, to whom reports are handed over, and the server that passes envelopes on.

The curator waits until everybody has handed over, or has been out of reach for half of the study's patience; opens what it
got, estimates, writes the total down and publishes it, signed. A curator that comes back publishes the same.

As a **server** it also collects, in every round, one item from every user, with an envelope for each neighbour, and when all
are there, or given up, hands to everybody the envelopes that are for it, all at once. It can open none, and all have one
size. Who was given up in a round is written down before the round goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from netdp.errors import NetdpError

from ..hops import unpacked
from ..messages import Item, Key, Kind
from ..reports import Cut, Total, count, expected_empty, one_per_link, take_cuts
from ..sealed import unseal
from .base import Moment, Moves
from .shuffle import STALLED, Waiting, Walk

if TYPE_CHECKING:
    from ..kinds.base import Desk

PER_ROUND = 2.0
"""Seconds that a round of the users may take, for a curator that hears nothing of it."""


class Curator(Waiting):
    """Who collects what is handed over."""

    needs_own = False

    def __init__(self, walk: Walk, attempt: int, roster: tuple[int, ...], desk: Desk) -> None:
        super().__init__(walk, attempt, roster, desk)
        self._said = desk.noted(attempt, b"total")

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves()
        if self.answer is not None or self._published(held) is not None:
            return moves
        if self._since == float("inf"):
            self._since = moment.now
        self._look(moment, self.roster)
        if self._said is None:
            if not self._rounds(held, moment, moves):
                self._wait(moves, moment)
                return moves
            hands = self._handed_over(held, moment)
            if hands is None:
                self._wait(moves, moment)
                return moves
            total = self._counted(hands)
            if total is None:
                moves.notes.append("no report arrived that can be read: there is no answer")
                self.wake = float("inf")
                return moves
            self._said = self._desk.once(self.attempt, b"total", total.to_bytes())
            dropped = {reason: number for reason, number in total.dropped.items() if number}
            if dropped:
                moves.notes.append("dropped: " + ", ".join(f"{number} {reason}" for reason, number in dropped.items()))
            if total.hands < self.walk.parties:
                moves.notes.append(
                    f"{self.walk.parties - total.hands} of {self.walk.parties} users handed nothing over"
                )
        moves.published.append((Key(Kind.TOTAL, self.attempt, self.walk.curator), self._said))
        return moves

    def _rounds(self, held: Mapping[Key, Item], moment: Moment, moves: Moves) -> bool:
        """Whether the rounds are over, as far as they are the curator's business."""
        return True

    def _cuts_seen(self) -> frozenset[Cut]:
        """What the curator itself knows to be lost."""
        return frozenset()

    def _handed_over(
        self, held: Mapping[Key, Item], moment: Moment
    ) -> dict[int, tuple[frozenset[Cut], tuple[bytes, ...]]] | None:
        """Everybody's last hand, without those who are given up; None if some are still waited for."""
        walk, hands = self.walk, {}
        longest = 4 * STALLED + PER_ROUND * walk.rounds / walk.patience
        waits = False
        for u in self.roster:
            item = held.get(Key(Kind.BUNDLE, self.attempt, u, walk.rounds + 1))
            parsed = None if item is None else take_cuts(item.body, walk.curator, walk.rounds)
            reports = None if parsed is None else unpacked(parsed[1], walk.reports.size)
            if parsed is not None and reports is not None:
                hands[u] = (parsed[0], reports)
            elif not self._given_up(u, moment, longest):
                waits = True
        return None if waits else hands

    def _counted(self, hands: Mapping[int, tuple[frozenset[Cut], tuple[bytes, ...]]]) -> Total | None:
        walk, desk = self.walk, self._desk
        found = count(
            {u: reports for u, (_, reports) in hands.items()},
            lambda sealed: unseal(desk.identity, sealed, desk.study.hash, self.attempt, self.roster),
            walk.reports,
            walk.parties,
            desk.identity.noise_secret,
        )
        if not found.reports:
            return None
        empty = expected_empty(walk.graph, map(walk.members.index, hands)) if walk.reporting == "single" else 0.0
        total = walk.reports.estimate(found.reports, walk.parties, min(empty, len(found.reports) - 1.0))
        cuts = one_per_link(self._cuts_seen().union(*(cuts for cuts, _ in hands.values())), walk.links)
        return Total(total, len(hands), len(found.reports), found.dropped, cuts)


class Server(Curator):
    """A curator through whom all envelopes go."""

    def __init__(self, walk: Walk, attempt: int, roster: tuple[int, ...], desk: Desk) -> None:
        super().__init__(walk, attempt, roster, desk)
        self._round, self._out = 1, {}  # type: int, dict[int, int]
        self._neighbours = {u: walk.neighbours(u) for u in roster}
        self._place = {(u, v): place for u in roster for place, v in enumerate(self._neighbours[u])}
        self._noted = desk.noted(attempt, walk.place(1))

    def _rounds(self, held: Mapping[Key, Item], moment: Moment, moves: Moves) -> bool:
        while self._round <= self.walk.rounds:
            if not self._pass_on(held, moment, moves):
                return False
            self._round += 1
            self._since = moment.now
            self._noted = self._desk.noted(self.attempt, self.walk.place(self._round))
        return True

    def _pass_on(self, held: Mapping[Key, Item], moment: Moment, moves: Moves) -> bool:
        """Pass a round on once all who are here have sent: as it was written down, if it was passed on before a restart.

        Who was in it then may be gone by now. What it sent has arrived somewhere, so it must not be called lost.
        """
        walk = self.walk
        sizes = {u: walk.envelope * len(self._neighbours[u]) for u in self.roster}
        if self._noted is None:
            found = {u: held.get(Key(Kind.BUNDLE, self.attempt, u, self._round)) for u in self.roster}
            present = {u: item.body for u, item in found.items() if item is not None and len(item.body) == sizes[u]}
            missing = [u for u in self.roster if u not in self._out and u not in present]
            if any(not self._given_up(u, moment) for u in missing):
                return False
            gone = sorted({*missing, *self._out})
            body = b"".join([len(gone).to_bytes(4, "big"), *(u.to_bytes(4, "big") for u in gone)])
            body += b"".join(present[u] for u in self.roster if u not in gone)
            self._noted = self._desk.once(self.attempt, walk.place(self._round), body)
        gone, sent = _round(self._noted, self.roster, sizes)
        for u in sorted(set(gone) - set(self._out)):
            self._out[u] = self._round
            self.absent.add(u)
            moves.notes.append(f"round {self._round} of {walk.rounds} and all later ones go on without party {u}")
        nothing = bytes(1 + walk.envelope)
        for v in self.roster:
            parts = []
            for u in self._neighbours[v]:
                at = self._place[u, v] * walk.envelope
                parts.append(nothing if u in self._out else b"\1" + sent[u][at : at + walk.envelope])
            moves.addressed.append((v, Item(Key(Kind.BUNDLE, self.attempt, self._me, self._round), b"".join(parts))))
        return True

    def _cuts_seen(self) -> frozenset[Cut]:
        return frozenset((u, v, first) for u, first in self._out.items() for v in self._neighbours[u])


def _round(body: bytes, roster: Sequence[int], sizes: Mapping[int, int]) -> tuple[list[int], dict[int, bytes]]:
    """What was written down of a round: who was missing, and what the others had sent."""
    count, at = int.from_bytes(body[:4], "big"), 4
    gone = [int.from_bytes(body[place : place + 4], "big") for place in range(4, 4 + 4 * count, 4)]
    at += 4 * count
    sent: dict[int, bytes] = {}
    for u in roster:
        if u not in gone:
            sent[u], at = body[at : at + sizes[u]], at + sizes[u]
    if at != len(body):
        raise NetdpError("what was written down of a round cannot be read; the folder is damaged")
    return gone, sent
