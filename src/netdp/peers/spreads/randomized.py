"""Randomized gossip by clocks of one's own: wake, offer an exchange to a neighbour, average, and wait again.

    u wakes       OFFER k to w, without content; u is now busy with it
    w is free     ACCEPT k to u with w's state; w is now bound to u          w is busy: ACCEPT k without content
    u hears it    STATE k to w with u's state, and averages; free again
    w hears it    averages; free again

Nobody waits for two at once, and an offer is answered at once or never, so there is no circle of parties that wait for each
other. If two offer to each other, the offer of the smaller number stands. A party makes so many offers, then says that it
is through (THROUGH, passed on by everybody) and only answers; when all are through it has its estimate.

**Who is away is passed over.** Offers go to neighbours that can be reached and have not left an offer unanswered since they
were last heard. An answer that does not come in `answer` seconds is not waited for any longer, but it still counts when it
comes: half of the difference is added to whatever the state is by then (`netdp.protocols.exchange`), so that nothing of the
sum is lost. With one neighbour at most one exchange is open on our side: who leaves it open is declined until it answers.
If nothing is heard for half of the study's patience, whoever is missing is given up. A party that comes back takes part
again, as long as the others are there; one that was stopped for a while does not take that for silence of the others.

**Nothing is decided twice**: every decision is written in the diary (`netdp.peers.spreads.diary`) before it is acted upon.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from netdp.errors import NetdpError
from netdp.protocols import RandomizedGossip
from netdp.protocols.exchange import LARGEST

from ..messages import Item, Key, Kind
from .base import Answer, Moment, Moves, Spread
from .diary import Diary, Entry, What

Register = Callable[[bytes, bytes], bytes]
"""Write once: (place, body) → what stands there."""


@dataclass(frozen=True)
class Pace:
    """How fast it goes, in seconds: the mean wait between two offers, how long for an answer, how long without news."""

    mean: float
    answer: float
    quiet: float


@dataclass
class _Bond:
    """Whom we wait for at present: our own offer is out, or our state is and the other's is to come."""

    other: int
    number: int
    since: float
    is_ours: bool


class Exchanging(Spread):
    """One party of a `RandomizedGossip` on a grid; everybody ends with an estimate of its own.

    wakes     how many offers everybody makes
    near      the neighbours in the roster
    written   gives what was drawn for the attempt, once it is durable
    once, noted   registers that are written once (`netdp.peers.kinds.base.Desk`)
    largest   no larger number is sent or taken
    """

    needs_all = False

    def __init__(
        self,
        protocol: RandomizedGossip,
        attempt: int,
        roster: tuple[int, ...],
        me: int,
        *,
        wakes: int,
        near: tuple[int, ...],
        pace: Pace,
        written: Callable[[], bytes],
        once: Register,
        noted: Callable[[bytes], bytes | None],
        largest: int = LARGEST,
    ) -> None:
        super().__init__(attempt, roster)
        self._protocol, self._me, self._wakes, self._near, self._pace = protocol, me, wakes, near, pace
        self._written, self._once, self._noted, self._largest = written, once, noted, largest
        self.rounds = wakes - 1
        self.lasts = 4 * wakes * pace.mean + 2 * pace.quiet
        self._diary: Diary | None = None
        self._bond: _Bond | None = None
        self._offered: dict[int, int] = {}  # the latest offer of each neighbour that is not answered yet
        self._silent: set[int] = set()
        self._through: set[int] = set()
        self._looked = 0
        self._news = self._next = self._all_since = self._seen = float("inf")
        self._nap = pace.quiet / 8  # it looks at the clock at least so often
        self._said_through = self._is_large = False

    @property
    def diary(self) -> Diary:
        """What is written down."""
        assert self._diary is not None
        return self._diary

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves(waits=True)  # it always comes to an end by itself
        if self._me not in self.roster:
            return Moves()  # everybody has an estimate of its own: there is none for who is not part of it
        if self.answer is not None:
            return moves
        if self._diary is None:
            self._open(moves, moment.now)
        self._awake(moment.now)
        self._look(held, moment.now)
        while self._hear(held, moves, moment.now) or self._answer(moves, moment.now) or self._release(moment):
            pass
        self._turn(moves, moment)
        self._conclude(moves, moment)
        return moves

    # ── beginning, also again ─────────────────────────────────────────────────────────────────────────────────────────

    def _open(self, moves: Moves, now: float) -> None:
        """Read the diary from its first entry; say again what somebody may still wait for."""
        diary = self._diary = Diary(
            self._me, self.attempt, self._written(), self._protocol.fresh_variance, self._largest
        )
        self.realised = {"deeds": diary.deeds}
        last: dict[tuple[int, Kind], Item] = {}
        taken: dict[int, Item] = {}
        while (body := self._noted(_place(diary.entries))) is not None:
            entry = Entry.from_bytes(body)
            said = diary.write(entry)
            if said is not None:
                last[said[0], said[1].key.kind] = said[1]
            if entry.what == What.WOKE:
                self._bond = _Bond(entry.other, entry.number, now, is_ours=True)
            elif entry.what == What.ACCEPTED:
                self._bond = _Bond(entry.other, entry.number, now, is_ours=False)
                taken[entry.other] = last[entry.other, Kind.ACCEPT]
            elif self._bond is not None and (entry.other, entry.number) == (self._bond.other, self._bond.number):
                self._bond = None
        # who has not answered may never have got it, though later offers of it were declined since
        moves.addressed += [(other, taken[other]) for other in diary.unheard]
        moves.addressed += [
            (other, item) for (other, _), item in last.items() if other not in taken or item is not taken[other]
        ]
        self._news = self._seen = now
        self._next = now + self._pace.mean * diary.chance.wait(diary.offers)

    def _awake(self, now: float) -> None:
        """Notice that this party itself was away (stopped, or its clock jumped): that is no silence of the others."""
        if now > self._seen + 2 * self._nap:
            self._news = now
            if self._bond is not None:
                self._bond.since = now
        self._seen = now

    def _write(self, entry: Entry, moves: Moves, now: float) -> None:
        """Write an entry down, then act upon it."""
        if self._once(_place(self.diary.entries), entry.to_bytes()) != entry.to_bytes():
            raise NetdpError(
                f"entry {self.diary.entries} of the diary was written by somebody else: two processes use this folder; stopped"
            )
        said = self.diary.write(entry)
        if said is not None:
            moves.addressed.append(said)
        if entry.what != What.WOKE:
            self._news = now

    # ── hearing ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _look(self, held: Mapping[Key, Item], now: float) -> None:
        """Take note of what has come since the last time."""
        if len(held) < self._looked:  # something was forgotten: look at everything again, nothing is done twice
            self._looked = 0
        new = list(itertools.islice(held, self._looked, None))
        self._looked = len(held)
        for key in new:
            if key.attempt != self.attempt or key.author == self._me:
                continue
            self._silent.discard(key.author)
            if key.kind == Kind.OFFER and key.author in self._near:
                self._offered[key.author] = max(key.index, self._offered.get(key.author, -1))
            elif key.kind == Kind.THROUGH and key.author in self.roster:
                self._through.add(key.author)
                self._news = now

    def _hear(self, held: Mapping[Key, Item], moves: Moves, now: float) -> bool:
        """Answers to what we offered or took up, in time or late; whether there was one."""
        for other, (number, _) in list(self.diary.unheard.items()):
            item = held.get(Key(Kind.STATE, self.attempt, other, number))
            if item is not None:
                entry = Entry(What.HEARD, other, number, item.body)
                if not item.body or not self._sensible(entry, moves):
                    entry = Entry(What.VOIDED, other, number)
                self._write(entry, moves, now)
                self._free(other, number)
                return True
        for number, other in list(self.diary.open.items()):
            item = held.get(Key(Kind.ACCEPT, self.attempt, other, number))
            if item is None:
                continue
            ours = self._bond is not None and self._bond.is_ours and self._bond.number == number
            if not item.body:  # it was busy
                del self.diary.open[number]
            else:
                entry = Entry(What.MET, other, number, item.body)
                may = (ours or self._bond is None) and self._sensible(entry, moves)
                self._write(entry if may else Entry(What.WITHDREW, other, number), moves, now)
            if ours:
                self._bond = None
            return True
        return False

    def _sensible(self, entry: Entry, moves: Moves) -> bool:
        if self.diary.would_fit(entry):
            return True
        if not self._is_large:
            self._is_large = True
            moves.notes.append("numbers have grown beyond what honest parties reach: somebody sent too much")
        return False

    def _free(self, other: int, number: int) -> None:
        if (
            self._bond is not None
            and (self._bond.other, self._bond.number) == (other, number)
            and not self._bond.is_ours
        ):
            self._bond = None

    # ── answering, waiting, waking ────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, moves: Moves, now: float) -> bool:
        """Answer the latest offer of a neighbour, if there is one."""
        for other in sorted(self._offered):
            number = self._offered.pop(other)
            if number <= self.diary.answered.get(other, -1):
                continue  # answered before, or older than one that was
            crossed = self._bond is not None and self._bond.is_ours and self._bond.other == other and other < self._me
            entry = Entry(What.ACCEPTED, other, number)
            free = (self._bond is None or crossed) and other not in self.diary.unheard
            if free and self._sensible(entry, moves):
                self._write(entry, moves, now)
                self._bond = _Bond(other, number, now, is_ours=False)
            else:
                self._write(Entry(What.DECLINED, other, number), moves, now)
            return True
        return False

    def _release(self, moment: Moment) -> bool:
        """Stop waiting for who does not answer; what comes later still counts."""
        bond = self._bond
        if bond is None:
            return False
        late = moment.now >= bond.since + self._pace.answer
        if late or (bond.is_ours and bond.other not in moment.linked):
            if late and bond.is_ours:
                self._silent.add(bond.other)
            self._bond = None
            return True
        return False

    def _turn(self, moves: Moves, moment: Moment) -> None:
        """Our own clock: offer an exchange to a neighbour that can be reached."""
        if self._bond is not None or self.diary.offers >= self._wakes or moment.now < self._next:
            return
        number = self.diary.offers
        reached = [v for v in self._near if v in moment.linked and v not in self._silent]
        if not reached:
            self._next = moment.now + self._pace.mean
            return
        other = self.diary.chance.one_of(reached, number)
        self._write(Entry(What.WOKE, other, number), moves, moment.now)
        self._bond = _Bond(other, number, moment.now, is_ours=True)
        self._next = moment.now + self._pace.mean * self.diary.chance.wait(number + 1)

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _conclude(self, moves: Moves, moment: Moment) -> None:
        now, spent = moment.now, self.diary.offers >= self._wakes
        over = now >= self._news + self._pace.quiet
        if self._bond is None and (spent or over) and not self._said_through:
            self._said_through = True
            self._through.add(self._me)
            moves.published.append((Key(Kind.THROUGH, self.attempt, self._me), b""))
        everybody = self._through.issuperset(self.roster)
        if everybody and self._all_since == float("inf"):
            self._all_since = now
        # a state may come a little later than the word that its sender is through
        settled = not self.diary.unheard or now >= self._all_since + self._pace.answer
        if self._bond is None and self._said_through and ((everybody and settled) or over):
            self._finish(moves)
            return
        times = [self._news + self._pace.quiet, now + self._nap]
        times += [self._all_since + self._pace.answer] if everybody else []
        times += [self._bond.since + self._pace.answer] if self._bond is not None else []
        times += [self._next] if not spent and self._bond is None else []
        self.wake = min(time for time in times if time > now)  # what is past waits for the end of a bond

    def _finish(self, moves: Moves) -> None:
        self.absent = set(self.roster) - self._through
        if self.absent:
            some = ", ".join(map(str, sorted(self.absent)[:6]))
            moves.notes.append(
                f"ended without {len(self.absent)} parties (number {some}), which did not say that they were through: what they "
                "held is missing from the answer"
            )
        if self.diary.offers < self._wakes:
            moves.notes.append(
                f"only {self.diary.offers} of {self._wakes} exchanges could be offered, for nobody was there: the estimate may be "
                "far from the mean"
            )
        met = sum(deed[0] == "met" for deed in self.diary.deeds)
        if 2 * met < self.diary.offers:
            moves.notes.append(
                f"only {met} of {self.diary.offers} offers were taken up, for neighbours were busy or away: the estimate may be "
                "further from the mean than predicted; a longer pace helps where links are slow"
            )
        if self.diary.unheard:
            moves.notes.append(f"{len(self.diary.unheard)} exchanges stayed without an answer: they may be torn")
        self.realised |= {
            "absent": sorted(self.absent),
            "unheard": len(self.diary.unheard),
            "offers": self.diary.offers,
        }
        total = self.diary.state.astype(np.float64) * (self._protocol.step * len(self.roster))
        self.answer = Answer(self.attempt, self.roster, total, b"")
        self.wake = float("inf")


def _place(number: int) -> bytes:
    return b"exchange %08d" % number
