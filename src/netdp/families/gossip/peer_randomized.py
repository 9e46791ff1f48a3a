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
comes: half of the difference is added to whatever the state is by then (`netdp.families.gossip.protocol`), so that nothing of the
sum is lost. With one neighbour at most one exchange is open on our side: who leaves it open is declined until it answers.
If nothing is heard for half of the study's patience, whoever is missing is given up. A party that comes back takes part
again, as long as the others are there; one that was stopped for a while does not take that for silence of the others.

**Nothing is decided twice**: every decision is written in the diary (`netdp.families.gossip.diary`) before it is acted upon.

Averaging by exchanges between two neighbours at a time, by everybody's own clock (`netdp.RandomizedGossip` on a grid).

**The promise** is local DP of everybody's first noisy value: it holds in any order, after any loss, against any coalition
and against parties that deviate. That is also what the ledger enters. What single parties really learned is less the
further away they were; it is recomputed after a run from the exchanges that really happened
(docs/proofs/gossip.md#dithered-exchanges).

**It is the noise of local privacy.** A neighbour sees a party's first noisy value as it is, so no promise against a single
neighbour has less noise than that: the error is about √n times that of a masked sum with the same promise.

**The predicted error** is an upper bound in closed form *if every offer is taken up*. Busy neighbours decline, the more the
longer a message takes compared with the pace; then the estimates are less mixed than predicted (a complete graph of 16 with
messages of 0.15 s and a pace of 0.25 s: a quarter of the offers is taken up, and the error is twice as large), and a party
says so in the end. With ρ = 1 − rate the factor by which a wake-up shrinks what is
not yet averaged (`RandomizedGossip.rate`), T wake-ups in all and fresh noise of variance τ² at both ends of each,

    mixing ≤ ρᵀ·Δ²/4·2d/(d+1),   noise ≤ dσ²(1 + (n−1)ρᵀ)/n,   refresh ≤ (2dτ²/n)(T/n + (½ − 1/n)/rate):

an impulse of fresh noise is halved by its own exchange, of which 1/n stays for ever and the rest shrinks with every step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from netdp.errors import NetdpError
from netdp.families.gossip.account.grid import before_the_run, wire_grid
from netdp.families.gossip.diary import KEY, Decision, Diary, What
from netdp.families.gossip.peer_exchanges import ExchangeLosses, learned_in
from netdp.families.gossip.protocol import LARGEST, RandomizedGossip, fits, gossip_start, largest_state, waking_alike
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import IntArray, rounded_up
from netdp.peers.events import Sentence
from netdp.peers.kinds import NUMBERS, Kind, Roster, Wish
from netdp.peers.messages import Item, ItemKind, Key, roster_digest
from netdp.peers.noise import DIGITS, least_noise
from netdp.peers.promise import stated
from netdp.peers.records import Misfit, Number, Strict, Whole
from netdp.peers.spread import Moment, Moves, Spread, SpreadResult
from netdp.peers.streams import context, noise_words
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.protocols.accuracy import ExpectedError
from netdp.protocols.calibration import calibrate

if TYPE_CHECKING:
    from netdp.peers.desk import Desk

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
    once, noted   registers that are written once (`netdp.peers.desk.Desk`)
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
        last: dict[tuple[int, ItemKind], Item] = {}
        taken: dict[int, Item] = {}
        while (body := self._noted(_place(diary.entries))) is not None:
            entry = Decision.from_bytes(body)
            said = diary.write(entry)
            if said is not None:
                last[said[0], said[1].key.kind] = said[1]
            if entry.what == What.WOKE:
                self._bond = _Bond(entry.other, entry.number, now, is_ours=True)
            elif entry.what == What.ACCEPTED:
                self._bond = _Bond(entry.other, entry.number, now, is_ours=False)
                taken[entry.other] = last[entry.other, ItemKind.ACCEPT]
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

    def _write(self, entry: Decision, moves: Moves, now: float) -> None:
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
            if key.kind == ItemKind.OFFER and key.author in self._near:
                self._offered[key.author] = max(key.index, self._offered.get(key.author, -1))
            elif key.kind == ItemKind.THROUGH and key.author in self.roster:
                self._through.add(key.author)
                self._news = now

    def _hear(self, held: Mapping[Key, Item], moves: Moves, now: float) -> bool:
        """Answers to what we offered or took up, in time or late; whether there was one."""
        for other, (number, _) in list(self.diary.unheard.items()):
            item = held.get(Key(ItemKind.STATE, self.attempt, other, number))
            if item is not None:
                entry = Decision(What.HEARD, other, number, item.body)
                if not item.body or not self._sensible(entry, moves):
                    entry = Decision(What.VOIDED, other, number)
                self._write(entry, moves, now)
                self._free(other, number)
                return True
        for number, other in list(self.diary.open.items()):
            item = held.get(Key(ItemKind.ACCEPT, self.attempt, other, number))
            if item is None:
                continue
            ours = self._bond is not None and self._bond.is_ours and self._bond.number == number
            if not item.body:  # it was busy
                del self.diary.open[number]
            else:
                entry = Decision(What.MET, other, number, item.body)
                may = (ours or self._bond is None) and self._sensible(entry, moves)
                self._write(entry if may else Decision(What.WITHDREW, other, number), moves, now)
            if ours:
                self._bond = None
            return True
        return False

    def _sensible(self, entry: Decision, moves: Moves) -> bool:
        if self.diary.would_fit(entry):
            return True
        if not self._is_large:
            self._is_large = True
            moves.notes.append(Sentence.TOO_MUCH())
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
            entry = Decision(What.ACCEPTED, other, number)
            free = (self._bond is None or crossed) and other not in self.diary.unheard
            if free and self._sensible(entry, moves):
                self._write(entry, moves, now)
                self._bond = _Bond(other, number, now, is_ours=False)
            else:
                self._write(Decision(What.DECLINED, other, number), moves, now)
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
        self._write(Decision(What.WOKE, other, number), moves, moment.now)
        self._bond = _Bond(other, number, moment.now, is_ours=True)
        self._next = moment.now + self._pace.mean * self.diary.chance.wait(number + 1)

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _conclude(self, moves: Moves, moment: Moment) -> None:
        now, spent = moment.now, self.diary.offers >= self._wakes
        over = now >= self._news + self._pace.quiet
        if self._bond is None and (spent or over) and not self._said_through:
            self._said_through = True
            self._through.add(self._me)
            moves.published.append((Key(ItemKind.THROUGH, self.attempt, self._me), b""))
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
            moves.notes.append(Sentence.NOT_THROUGH(absent=len(self.absent), some=some))
        if self.diary.offers < self._wakes:
            moves.notes.append(Sentence.FEW_OFFERS(offers=self.diary.offers, planned=self._wakes))
        met = sum(deed[0] == "met" for deed in self.diary.deeds)
        if 2 * met < self.diary.offers:
            moves.notes.append(Sentence.FEW_MEETINGS(met=met, offers=self.diary.offers))
        if self.diary.unheard:
            moves.notes.append(Sentence.UNHEARD(exchanges=len(self.diary.unheard)))
        self.realised |= {
            "absent": sorted(self.absent),
            "unheard": len(self.diary.unheard),
            "offers": self.diary.offers,
        }
        total = self.diary.state.astype(np.float64) * (self._protocol.step * len(self.roster))
        self.answer = SpreadResult(self.attempt, self.roster, total, b"")
        self.wake = float("inf")


def _place(number: int) -> bytes:
    return b"exchange %08d" % number


_MOST_WAKES = 10_000

_CLOSE = 1.1
"""Wake-ups are added until the predicted error is so close to what more of them could reach."""

_MOST_ABSENCES = 3000
"""So many ways to be absent are looked at: the others must stay connected in each."""


class RandomizedSettings(Strict):
    """Exchanges between two neighbours at a time, in whole numbers with fresh noise (`netdp.RandomizedGossip` on a grid)."""

    kind: Literal["randomized-gossip"]
    sigma: Number
    grid: Number
    wakes: Whole
    refresh: Number
    pace: Number = 0.25

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 1 <= self.wakes <= _MOST_WAKES:
            raise Misfit(("wakes",), f"must be 1 to {_MOST_WAKES:,}, got {self.wakes}")
        if not 0 < self.pace <= 86_400:
            raise Misfit(("pace",), f"must be more than 0 and at most a day in seconds, got {self.pace!r}")
        return self


class RandomizedRunning(Kind):
    """Pairwise averaging, each party by its own clock."""

    kind = "randomized-gossip"
    Settings = RandomizedSettings
    sends = frozenset({ItemKind.OFFER, ItemKind.ACCEPT, ItemKind.STATE, ItemKind.THROUGH})
    options: ClassVar = ("wakes", "refresh", "pace")
    comments: ClassVar = {
        "wakes": "how many exchanges every party offers",
        "refresh": "variance of all fresh noise, in sigma squared",
        "pace": "seconds between two offers of a party, on average",
    }
    how = (
        "Every party adds noise to its value. By its own clock each turns to one neighbour at a time; the two exchange their "
        "present numbers, with fresh noise, and both go on with the mean. It goes on without who is away. A neighbour sees the "
        "first noisy value of a party, so each adds the noise of local privacy: among n parties the error is about the square "
        "root of n times that of masked-sum with the same promise. It is predicted for links much faster than the pace."
    )
    told = (
        "Each of the {n} parties ends with an estimate of its own. The promise covers everything that is ever sent, to "
        "anybody; a neighbour may learn as much, parties further away mostly learn less, which is computed after the run from "
        "who exchanged with whom. A party that passes its estimate on counts there as colluding with whoever gets it."
    )
    tasks = NUMBERS
    tolerates = True
    goes_on = True
    has_own_answers = True
    depends_on_size_only = True

    # ── the study ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        super().check()
        study, how = self.study, self.settings
        if study.privacy.attempts != 1:
            raise Misfit(
                ("privacy", "attempts"), f"{self.kind} is run once and goes on without who is away; state attempts = 1"
            )
        slowest = 10 * how.pace + 4 * how.pace * math.sqrt(how.wakes)
        if study.timing.patience < slowest:
            raise Misfit(
                ("protocol", "pace"),
                f"with {how.wakes} wake-ups every {how.pace:g} s, parties may be {slowest:.3g} s apart in the end, and the "
                f"patience is {study.timing.patience:g} s; state a shorter pace or more patience",
            )
        self._check_absences()

    def _check_absences(self) -> None:
        """Whoever of the allowed number is missing, the others must be able to average among themselves."""
        graph, absent = self.study.graph, self.study.privacy.absent
        if not absent:
            return
        if math.comb(graph.n, absent) > _MOST_ABSENCES:
            if int(graph.degrees.min()) < graph.n - 1:
                raise Misfit(
                    ("privacy", "absent"),
                    f"there are {math.comb(graph.n, absent):,} ways for {absent} of {graph.n} parties to be missing, too many to "
                    "look whether the others stay connected in each; state fewer, or a complete graph",
                )
            return
        for gone in itertools.combinations(range(graph.n), absent):
            rest = [u for u in range(graph.n) if u not in gone]
            if len(rest) < 2 or not graph.subgraph(rest).is_connected:
                who = ", ".join(self.study.names[u] for u in gone)
                raise Misfit(
                    ("privacy", "absent"), f"without {who} the others are not connected; add links, or state fewer"
                )

    def protocol(self) -> RandomizedGossip:
        return self.protocol_of(tuple(range(self.study.n)))

    def protocol_of(self, roster: Roster) -> RandomizedGossip:
        how, task, graph = self.settings, self.study.task, self.study.graph
        if len(roster) < graph.n:
            graph = graph.subgraph(list(roster))
        return RandomizedGossip(
            graph, steps=how.wakes * len(roster), sigma=how.sigma, sensitivity=task.sensitivity, refresh=how.refresh,
            probabilities=waking_alike(graph), grid=how.grid, dimension=task.dimension,
        )  # fmt: skip

    def looked_back(self, outcomes: Mapping[str, Mapping[str, Any]]) -> ExchangeLosses | None:
        return learned_in(self.study, outcomes)

    def promise(self, colluders: int) -> Guarantee:
        return stated([before_the_run(self.protocol())], self.study.n, colluders)

    def worst_epsilon(self, colluders: int, delta: float) -> float:
        return before_the_run(self.protocol()).worst_epsilon(delta)

    def noise(self, parties: int) -> float:
        return parties * predicted(self.protocol()).rmse / math.sqrt(self.study.task.dimension)

    # ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        """A key for everything that is left to chance later, and the first state: the value with its noise."""
        where = context(self.study.hash, attempt, roster)
        words = noise_words(desk.identity.noise_secret, where, desk.rows.astype("<f8").tobytes())
        key = words(KEY // 8).astype("<u8").tobytes()

        def draw(variance: int, size: int) -> IntArray:
            return FineGaussian(variance).sample((size,), words)

        first = gossip_start(self.protocol_of(roster), desk.rows[0], draw)
        return roster_digest(roster), key + first.astype("<i8").tobytes()

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        patience, members = self.study.timing.patience, set(roster)
        return Exchanging(
            self.protocol_of(roster),
            attempt,
            roster,
            desk.me,
            wakes=self.settings.wakes,
            near=tuple(v for v in self.neighbours(desk.me) if v in members),
            pace=Pace(self.settings.pace, answer=patience / 8, quiet=patience / 2),
            written=lambda: desk.written(attempt),
            once=lambda place, body: desk.once(attempt, place, body),
            noted=lambda place: desk.noted(attempt, place),
            largest=self.largest,
        )

    def longest(self) -> dict[ItemKind, int]:
        numbers = 8 * self.study.task.dimension
        common = {ItemKind.VOTE: 4 * self.study.n, ItemKind.CONTRIBUTION: 32, ItemKind.FALLBACK: 0, ItemKind.THROUGH: 0}
        return common | {ItemKind.OFFER: 0, ItemKind.ACCEPT: numbers, ItemKind.STATE: numbers}

    def is_legible(self, item: Item) -> bool:
        if item.key.kind not in (ItemKind.ACCEPT, ItemKind.STATE) or not item.body:
            return True
        if len(item.body) != 8 * self.study.task.dimension:
            return False
        return fits(np.frombuffer(item.body, dtype="<i8"), self.largest)

    @cached_property
    def largest(self) -> int:
        """No honest state has a larger number, in grid steps: a party that sends more is not believed."""
        protocol = self.protocol()
        noise = protocol.start_variance + 2 * protocol.steps * protocol.fresh_variance
        return largest_state(math.ceil(self.study.task.reach / protocol.step), noise, protocol.steps)

    def most_rounds(self) -> int:
        return int(self.settings.wakes) - 1

    # ── the ledger ────────────────────────────────────────────────────────────────────────────────────────────────────

    def loss(self, roster: Roster, me: int) -> dict[str, Any]:
        protocol = self.protocol_of(roster)
        return {
            "kind": "local",
            "share": protocol.start_variance,
            "distance": protocol.distance,
            "dimension": protocol.dimension,
        }

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        """The noise of local DP, and as many wake-ups as bring the predicted error close to what more of them could reach."""
        graph, task = wish.graph, wish.task
        refresh = float(wish.options.get("refresh", 0.1))
        rough = RandomizedGossip(
            graph, steps=graph.n, sigma=1.0, sensitivity=task.sensitivity, dimension=task.dimension, refresh=refresh,
            probabilities=waking_alike(graph),
        )  # fmt: skip
        rough = rough.replace(sigma=rounded_up(calibrate(rough, wish.epsilon, wish.delta).sigma, DIGITS))
        wakes = wish.options.get("wakes")
        if wakes is None:
            wakes = _wakes(rough)
        elif not 1 <= wakes <= _MOST_WAKES:  # before steps are made of it, which nobody gave
            raise Misfit(("protocol", "wakes"), f"must be 1 to {_MOST_WAKES:,}, got {wakes}")
        rough = rough.replace(steps=int(wakes) * graph.n)
        return {
            "kind": cls.kind, "sigma": rough.sigma, "grid": _grid(rough, wish.delta), "wakes": int(wakes),
            "refresh": refresh, "pace": float(wish.options.get("pace", 0.25)),
        }  # fmt: skip

    def least(self) -> dict[str, Any]:
        terms, protocol = self.study.privacy, self.protocol()

        def stated(sigma: float) -> dict[str, Any]:
            grid = _grid(protocol.replace(sigma=sigma, grid=None), terms.delta)
            return {**self.settings.model_dump(mode="json"), "sigma": sigma, "grid": grid}

        def meets(sigma: float) -> bool:
            found = self.with_settings(stated(sigma)).worst_epsilon(terms.colluders, terms.delta)
            return found <= terms.epsilon

        return stated(least_noise(meets, self.settings.sigma))


@lru_cache(maxsize=64)
def predicted(protocol: RandomizedGossip) -> ExpectedError:
    """An upper bound on the error of everybody's estimate, over all values and edges; see the module."""
    n, d, steps, rate = protocol.n, protocol.dimension, protocol.steps, protocol.rate
    left = math.exp(steps * math.log1p(-min(rate, 1 - 1e-15)))
    tau = protocol.refresh_variance
    return ExpectedError(
        noise=d * protocol.sigma**2 * (1 + (n - 1) * left) / n,
        refresh=2 * d * tau / n * (steps / n + (0.5 - 1 / n) / rate),
        mixing=left * protocol.sensitivity**2 / 4 * 2 * d / (d + 1),
        claim=Claim.UPPER,
    )


def _wakes(protocol: RandomizedGossip) -> int:
    """The fewest wake-ups per party whose predicted error is close to the least that any number of them has."""
    n = protocol.n
    choices = sorted({max(2, round(1.15**k)) for k in range(67)})
    errors = {wakes: predicted(protocol.replace(steps=wakes * n)).rmse for wakes in choices}
    aim = _CLOSE * min(errors.values())
    return min(wakes for wakes, error in errors.items() if error <= aim)


def _grid(protocol: RandomizedGossip, delta: float) -> float:
    return min(wire_grid(protocol, delta), 1.0)
