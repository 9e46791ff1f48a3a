"""What shuffling on peers promises, to whom, and what it cost if something was lost on the way.

**Who learns what** (docs/proofs/shuffle.md#shuffling-peers). A *participant* is a party or the curator.

    the curator            opens the reports and sees who handed over which: the theorem of network shuffling
    with f parties         also what passed through their hands: the walk killed at them; near ε₀ at a small δ
    k parties without it   the answer, their own reports, and bytes they cannot open: a uniform heap of the others' reports
    anybody, deviating     a report is drawn once and says no more than its randomizer lets it: ε₀

So "any k participants" is the larger of the curator with k − 1 parties and of k parties without it, and `colluders` = f stands
for any f + 1 participants. What is claimed beyond ε₀ is claimed against participants who look, not against those who deviate: a
curator who has relays throw away all reports but one knows whose that is.

**Absences.** With up to a parties missing from a roster, every roster is looked at (of a network in which everybody talks to
everybody, one of each size: they are alike), and the largest loss is promised. Several attempts are composed: each has a
report of its own.

**What is lost** on the way is counted, and the loss computed again for the links that failed (`netdp.protocols.FaultPattern`).

Network shuffling: the curator, to whom reports are handed over, and the server that passes envelopes on.

The curator waits until everybody has handed over, or has been out of reach for half of the study's patience; opens what it
got, estimates, writes the total down and publishes it, signed. A curator that comes back publishes the same.

As a **server** it also collects, in every round, one item from every user, with an envelope for each neighbour, and when all
are there, or given up, hands to everybody the envelopes that are for it, all at once. It can open none, and all have one
size. Who was given up in a round is written down before the round goes on.

Network shuffling with a curator (`netdp.Shuffle`, `netdp.RelayedShuffle`): sealed reports that hop before they are read.

What it promises to whom: `shuffle_losses`. What a party and the curator do: `netdp.families.shuffle.peer_walk` and `curator`.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.families.shuffle.account.mixing import fewest_rounds_for
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.account.relay import covered, overflow_given, overflows
from netdp.families.shuffle.peer_walk import (
    STALLED,
    DirectWalk,
    Listening,
    RelayedWalk,
    ReportWalk,
    Waiting,
    pattern_of,
)
from netdp.families.shuffle.protocol import FaultyShuffle, RelayedShuffle, Shuffle
from netdp.families.shuffle.reports import (
    Cut,
    Reports,
    Total,
    check_laziness,
    count,
    expected_empty,
    longest_cuts,
    one_per_link,
    take_cuts,
    unpacked,
)
from netdp.graphs.graph import Graph
from netdp.mechanisms.base import EXACT_DRAWS, IDEAL_DRAWS
from netdp.numerics.arrays import rounded_down
from netdp.peers.events import Sentence
from netdp.peers.kinds import Kind, Roster, Wish
from netdp.peers.ledger.losses import accounted, profile_loss, together
from netdp.peers.messages import Item, ItemKind, Key, roster_digest
from netdp.peers.promise import stated
from netdp.peers.records import Misfit, Number, Strict, Whole
from netdp.peers.spread import Moment, Moves
from netdp.peers.streams import context, noise_words, seal, unseal
from netdp.privacy.curves import SharedCurve
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.observers import Observers
from netdp.protocols.accounting import account

if TYPE_CHECKING:
    from netdp.peers.desk import Desk
    from netdp.peers.ledger.store import Contribution
    from netdp.peers.spread import Spread
    from netdp.peers.study.study import Study

_FEW = 128  # coalitions that are looked at one by one; of more, the report's own loss is stated

_ROSTERS = 256


class ShuffleLosses(Kind):
    """The losses of a shuffled study; `netdp.families.shuffle.peer` runs it."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._promises: dict[int, Guarantee] = {}

    def protocol(self) -> Shuffle | RelayedShuffle:
        return self.protocol_of(tuple(range(self.study.n)))

    def protocol_of(self, roster: Roster) -> Shuffle | RelayedShuffle:
        how, graph = self.settings, self.graph_of(roster)
        if how.cover:
            return RelayedShuffle(
                graph, how.rounds, how.epsilon0, cover=how.cover, laziness=how.laziness, values=self.randomizer.values
            )
        return Shuffle(
            graph,
            how.rounds,
            how.epsilon0,
            reporting=how.reporting,
            laziness=how.laziness,
            values=self.randomizer.values,
        )

    @property
    def randomizer(self) -> Randomizer:
        """What the study states of the randomizer; studies from before there was a word for it state ε₀ alone."""
        return Randomizer(self.settings.epsilon0, values=self.settings.values or None)

    def graph_of(self, roster: Roster) -> Graph:
        """Who talks to whom among these."""
        graph = self.study.graph
        return graph if len(roster) == graph.n else graph.subgraph(list(roster))

    def promise(self, colluders: int) -> Guarantee:
        """What any `colluders` + 1 participants learn: the curator with so many parties, or one party more without it."""
        once, attempts = self.once(colluders), self.study.privacy.attempts
        if attempts == 1:
            return once
        table = once.curve.curves if isinstance(once.curve, SharedCurve) else once.curve
        return replace(once, curve=SharedCurve(together([table] * attempts), np.zeros(self.study.n, dtype=np.int64)))

    def once(self, colluders: int) -> Guarantee:
        """The same of one attempt, whoever of those that may be missing is missing."""
        if not 0 <= colluders < self.study.n:
            raise InvalidValue(f"colluders must be 0 to {self.study.n - 1}, got {colluders}")
        if colluders not in self._promises:
            found = [
                accounted(self.protocol_of(roster), ("curator", *members)) for roster, members in self.cases(colluders)
            ]
            self._promises[colluders] = self._for_all(colluders, self.study.smallest_roster, found)
        return self._promises[colluders]

    def cases(self, colluders: int) -> list[tuple[Roster, tuple[int, ...]]]:
        """All rosters and, by their places in the roster, all parties who may collude with the curator; none if too many."""
        rosters = self.rosters()
        if sum(math.comb(len(roster), colluders) for roster in rosters) > _FEW + len(rosters):
            return []
        return [(roster, members) for roster in rosters for members in combinations(range(len(roster)), colluders)]

    def _for_all(self, colluders: int, arrived: int, found: list[Guarantee]) -> Guarantee:
        """The largest loss of coalitions with the curator (of none: the report's own), and of those without it."""
        n = self.study.n
        if not found:
            found = [replace(accounted(self.protocol(), ("curator",)), curve=self.randomizer.alone)]
        alone = self.randomizer.heap(self._others(colluders, arrived)).profile()
        losses = [*found, replace(found[0], curve=alone)]
        worst = stated(losses, n, colluders + 1)
        who = "the curator alone, or any single party" if not colluders else (
            f"the curator with any {colluders} of the parties, or any {colluders + 1} parties without it"
        )  # fmt: skip
        return replace(worst, assumptions=self._words(worst.assumptions, who), observers=Observers(roles=(who,)))

    def worst_epsilon(self, colluders: int, delta: float) -> float:
        if self.study.privacy.attempts > 1:
            return self.promise(colluders).require_certified().worst_epsilon(delta)
        cases = self.cases(colluders)
        alone = self.without_curator(colluders, delta)
        if not cases:
            return max(alone, self.randomizer.alone.epsilon(delta).item())
        return max(alone, *(self.with_parties(case, delta) for case in cases))

    def with_parties(self, case: tuple[Roster, tuple[int, ...]], delta: float) -> float:
        """What the curator and these parties of a roster learn in one attempt, at one δ."""
        roster, members = case
        return accounted(self.protocol_of(roster), ("curator", *members)).require_certified().worst_epsilon(delta)

    def without_curator(self, colluders: int, delta: float) -> float:
        """What any `colluders` + 1 parties learn in one attempt without the curator, at one δ."""
        return self.randomizer.heap(self._others(colluders, self.study.smallest_roster)).epsilon(delta)

    def _others(self, colluders: int, arrived: int) -> int:
        """Among how many reports one hides from any `colluders` + 1 parties without the curator, of so many that arrived."""
        known = colluders + 1 if self.settings.reporting == "all" else 2 * (colluders + 1)  # reports, and dummies
        return max(arrived - 1 - known, 0)

    def _words(self, given: tuple[str, ...], who: str) -> tuple[str, ...]:
        """The assumptions as they are met here."""
        ours = {
            IDEAL_DRAWS: EXACT_DRAWS,
            "contents are encrypted": "reports are sealed to the curator's key (HPKE) and all of one length; bytes that somebody "
            "cannot open tell it nothing but which is which",
        }
        out, at_most = [], self.settings.epsilon0 * self.study.privacy.attempts  # each attempt has a report of its own
        for line in given:
            if line.startswith(("no user colludes", "the curator and users")):
                continue
            out.append(next((new for old, new in ours.items() if line.startswith(old)), line))
        return tuple(dict.fromkeys([
            *out,
            f"those who pool what they see: {who}; they look, and do not deviate. Against participants who deviate, or in larger "
            f"coalitions, {at_most:g} is promised",
            "nobody is lost on the way; else those who go on are hidden less: what that cost is computed afterwards and entered, "
            f"at most {at_most:g}",
            "the curator does not look at what comes after its total",
        ]))  # fmt: skip

    def rosters(self) -> list[Roster]:
        """Every roster that the study allows, or of those that are alike one."""
        n, absent = self.study.n, self.study.privacy.absent
        if 2 * self.study.graph.m == n * (n - 1):
            return [tuple(range(n - away)) for away in range(absent + 1)]
        number = sum(math.comb(n, away) for away in range(absent + 1))
        if number > _ROSTERS:
            raise Misfit(
                ("privacy", "absent"),
                f"{absent} of {n} parties can be missing in {number:,} ways, and who hides among whom differs; at most {_ROSTERS} "
                "are looked at. Let everybody talk to everybody, allow fewer absences, or use masked-sum",
            )
        return [roster for away in range(absent + 1) for roster in combinations(range(n), n - away)]

    def realised(self, colluders: int, realised: Mapping[str, Any], roster: Roster | None = None) -> Guarantee:
        """What any so many parties and the curator learnt, given what was lost on the way."""
        how, members = self.settings, tuple(range(self.study.n)) if roster is None else roster
        pattern, protocol = pattern_of(realised, members, how.rounds), self.protocol_of(members)
        lossy = FaultyShuffle(
            self.graph_of(members), how.rounds, how.epsilon0, laziness=how.laziness, values=self.randomizer.values
        )

        def against(who: tuple[Any, ...]) -> Guarantee:
            if not pattern.severed:
                return accounted(protocol, who)
            found = account(lossy, who, transcript=pattern)
            if not isinstance(protocol, RelayedShuffle):
                return found
            chance = overflow_given(lossy, pattern, how.cover)
            return replace(found, curve=covered(protocol, found.curve, chance))

        try:
            few = colluders == 0 or math.comb(len(members), colluders) <= _FEW
            found = [against(("curator", *who)) for who in combinations(range(len(members)), colluders)] if few else []
        except Unsupported:  # too large to follow
            found = []
        return self._for_all(colluders, int(realised["accepted"]), found)


PER_ROUND = 2.0
"""Seconds that a round of the users may take, for a curator that hears nothing of it."""


class Curator(Waiting):
    """Who collects what is handed over."""

    needs_own = False

    def __init__(self, walk: ReportWalk, attempt: int, roster: tuple[int, ...], desk: Desk) -> None:
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
                moves.notes.append(Sentence.NO_REPORT())
                self.wake = float("inf")
                return moves
            self._said = self._desk.once(self.attempt, b"total", total.to_bytes())
            dropped = {reason: number for reason, number in total.dropped.items() if number}
            if dropped:
                counted = ", ".join(f"{number} {reason}" for reason, number in dropped.items())
                moves.notes.append(Sentence.DROPPED(counted=counted))
            if total.hands < self.walk.parties:
                silent = self.walk.parties - total.hands
                moves.notes.append(Sentence.NOTHING_HANDED_OVER(silent=silent, parties=self.walk.parties))
        moves.published.append((Key(ItemKind.TOTAL, self.attempt, self.walk.curator), self._said))
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
            item = held.get(Key(ItemKind.BUNDLE, self.attempt, u, walk.rounds + 1))
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

    def __init__(self, walk: ReportWalk, attempt: int, roster: tuple[int, ...], desk: Desk) -> None:
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
            found = {u: held.get(Key(ItemKind.BUNDLE, self.attempt, u, self._round)) for u in self.roster}
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
            moves.notes.append(Sentence.WITHOUT_PARTY(round=self._round, rounds=walk.rounds, party=self._desk.name(u)))
        nothing = bytes(1 + walk.envelope)
        for v in self.roster:
            parts = []
            for u in self._neighbours[v]:
                at = self._place[u, v] * walk.envelope
                parts.append(nothing if u in self._out else b"\1" + sent[u][at : at + walk.envelope])
            moves.addressed.append(
                (v, Item(Key(ItemKind.BUNDLE, self.attempt, self._me, self._round), b"".join(parts)))
            )
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


_MOST_ROUNDS = 10_000

_MOST_COVER = 64

_CROWD = 0.99  # hops are planned until everybody hides among this share of the others

_LARGEST = 20.0

_DIGITS = 4

_STEPS = 2.0**-19


class ShuffleSettings(Strict):
    """Reports with a local loss of ε₀ that hop through the network, sealed, before the curator gets them."""

    kind: Literal["shuffle"]
    epsilon0: Number
    rounds: Whole
    reporting: Literal["all", "single"] = "all"
    laziness: Number = 0.0
    cover: Whole = 0
    grid: Number = _STEPS
    values: Whole = 0
    """Of how many the reports are randomized response; 0: the promise is that of any randomizer."""

    @model_serializer(mode="wrap")
    def _as_before(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As plain values; a study that does not state the randomizer is what it was before there was a word for it."""
        plain: dict[str, Any] = written(self)
        return plain if self.values else {name: value for name, value in plain.items() if name != "values"}

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 1 <= self.rounds <= _MOST_ROUNDS:
            raise Misfit(("rounds",), f"must be 1 to {_MOST_ROUNDS:,}, got {self.rounds}")
        if not 0 < self.epsilon0 <= _LARGEST:
            raise Misfit(("epsilon0",), f"must be more than 0 and at most {_LARGEST:g}, got {self.epsilon0!r}")
        if not 0 <= self.cover <= _MOST_COVER:
            raise Misfit(("cover",), f"must be 0 (direct links) to {_MOST_COVER}, got {self.cover}")
        if math.frexp(self.grid)[0] != 0.5 or not 2.0**-40 <= self.grid <= 1:
            raise Misfit(("grid",), f"must be a power of two from 2^-40 to 1, got {self.grid!r}")
        try:
            check_laziness(self.laziness)
        except InvalidValue as problem:
            raise Misfit(("laziness",), str(problem)) from None
        return self


class ShuffleRunning(ShuffleLosses):
    """Sealed reports that hop from party to party before the curator opens them."""

    kind = "shuffle"
    Settings = ShuffleSettings
    sends = frozenset({ItemKind.BUNDLE, ItemKind.TOTAL})
    releases_the_answer = True
    options = ("rounds", "reporting", "laziness", "cover")
    comments: ClassVar = {
        "epsilon0": "what one report says at most, to anybody, whatever the others do",
        "rounds": "hops of every report",
        "reporting": '"all": hand over all reports held; "single": one, or a dummy',
        "laziness": "a report stays where it is for a round with this chance",
        "cover": "0: direct links; else through the curator's server, so many places a link",
        "values": "reports are randomized response over so many cells, and the promise rests on that",
    }
    how = (
        "Each party randomizes its value and seals this report so that only the curator can open it. The reports then hop from "
        "party to party, each by draws of its own, and are handed to the curator in the end: it reads them, but sees only who "
        "handed them over, not whose they are. Few parties hide each other little."
    )
    told = (
        "{curator} learns the reports without their origins, and tells everybody the answer: all {n} parties, and whoever "
        "they tell."
    )
    tasks = ("sum", "mean", "histogram", "table", "direction")
    tolerates = True
    least_colluders = 0
    has_curator = True

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._walks: dict[Roster, ReportWalk] = {}

    def check(self) -> None:
        super().check()
        cells = self.reports().values
        if self.settings.values not in (0, cells):
            reports = f"randomized response over {cells} cells" if cells else "numbers with Laplace noise"
            if self.study.task.kind == "direction":
                reports = "vectors by PrivUnit"
            raise Misfit(
                ("protocol", "values"),
                f"the reports of this task are {reports}, got {self.settings.values}; write {cells}"
                + (", or leave it out: then the promise is that of any randomizer" if cells else ", or leave it out"),
            )
        if self.settings.reporting == "single" and self.study.smallest_roster < 4:
            raise Misfit(("protocol", "reporting"), "single reports need four parties or more")
        for roster in self.rosters():
            try:
                self.protocol_of(roster)
            except NetdpError as problem:
                away = sorted(set(range(self.study.n)) - set(roster))
                if not away:
                    raise Misfit(("protocol",), str(problem)) from None
                names = ", ".join(self.study.names[u] for u in away)
                raise Misfit(("privacy", "absent"), f"without {names} the others cannot shuffle: {problem}") from None

    @property
    def noise_words(self) -> str:
        return f"epsilon0 = {self.settings.epsilon0:g}"

    def reports(self) -> Reports:
        """What a report is."""
        return Reports(self.study.task, self.settings.epsilon0, self.settings.grid)

    def noise(self, parties: int) -> float:
        error = math.sqrt(self.reports().mechanism.squared_error(parties) / self.study.task.dimension)
        dummies = expected_empty(self.study.graph, range(self.study.n)) if self.settings.reporting == "single" else 0.0
        return parties * error * self.study.n / (self.study.n - dummies)

    def neighbours(self, u: int) -> tuple[int, ...]:
        n = self.study.n
        if u == n:
            return tuple(range(n))
        return (n,) if self.settings.cover else (*super().neighbours(u), n)

    # ── one participant ───────────────────────────────────────────────────────────────────────────────────────────────

    def walk(self, roster: Roster | None = None) -> ReportWalk:
        """What everybody knows of it, among all parties unless told otherwise."""
        members = tuple(range(self.study.n)) if roster is None else roster
        if members not in self._walks:
            how, patience = self.settings, self.study.timing.patience
            self._walks[members] = ReportWalk(
                self.graph_of(members), members, self.study.n, how.rounds, self.reports(), patience, how.reporting,
                how.laziness, how.cover,
            )  # fmt: skip
        return self._walks[members]

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        where, secret = context(self.study.hash, attempt, roster), desk.identity.noise_secret
        reports, curator = self.reports(), desk.cards[self.study.n]
        own = reports.of(desk.rows[0], noise_words(secret, where, desk.rows.astype("<f8").tobytes()))
        key = noise_words(secret, b"hops" + where, b"")(4).astype("<u8").tobytes()
        dummy = reports.dummy(noise_words(secret, b"dummy" + where, b""))
        sealed = [seal(curator, text, self.study.hash, attempt, roster) for text in (own, dummy)]
        # what is published says nothing about the report: else whoever meets it would know whose it is
        return roster_digest(roster), b"".join([key, *sealed, self._mark(desk, where)])

    def _mark(self, desk: Desk, where: bytes) -> bytes:
        """A mark of the data, kept with what was drawn: sealing gives other bytes every time, and hides them from us too."""
        rows = desk.rows.astype("<f8").tobytes()
        return hmac.digest(desk.identity.noise_secret, b"netdp data 1" + where + rows, "sha256")

    def is_same_data(self, desk: Desk, attempt: int, roster: Roster, held: Contribution) -> bool:
        mark = self._mark(desk, context(self.study.hash, attempt, roster))
        return not held.secret or hmac.compare_digest(held.secret[-len(mark) :], mark)

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        walk = self.walk(roster)
        if desk.me == self.study.n:
            return (Server if self.settings.cover else Curator)(walk, attempt, roster, desk)
        if desk.me not in roster:
            return Listening(walk, attempt, roster, desk)
        return (RelayedWalk if self.settings.cover else DirectWalk)(walk, attempt, roster, desk)

    def longest(self) -> dict[ItemKind, int]:
        study, size = self.study, self.reports().size
        links, widest = study.graph.m, int(np.max(study.graph.degrees))
        bundle = longest_cuts(links) + size * study.n
        if self.settings.cover:
            bundle = max(bundle, widest * (1 + self.walk().envelope))
        return {
            ItemKind.VOTE: 4 * study.n, ItemKind.CONTRIBUTION: 32, ItemKind.FALLBACK: 0, ItemKind.BUNDLE: bundle,
            ItemKind.TOTAL: Total.longest(links, study.task.dimension),
        }  # fmt: skip

    def is_legible(self, item: Item) -> bool:
        n, walk, key = self.study.n, self.walk(), item.key
        if key.kind == ItemKind.TOTAL:
            return key.author == n and Total.from_bytes(item.body, n, walk.rounds, walk.reports.dimension) is not None
        if key.kind != ItemKind.BUNDLE:
            return True
        if walk.cover and key.index <= walk.rounds:
            each = walk.envelope + (key.author == n)
            number, rest = divmod(len(item.body), each)
            most = np.max(walk.graph.degrees) if key.author == n else walk.graph.degrees[key.author]
            return not rest and 1 <= number <= int(most)  # one for every neighbour in the roster
        parsed = take_cuts(item.body, n, walk.rounds)
        reports = None if parsed is None else unpacked(parsed[1], walk.reports.size)
        if reports is None or not 1 <= key.index <= walk.rounds + 1 or key.author == n:
            return False
        return len(reports) == 1 or walk.reporting == "all" or key.index <= walk.rounds

    def most_rounds(self) -> int:
        return int(self.settings.rounds) + 1

    # ── the ledger ────────────────────────────────────────────────────────────────────────────────────────────────────

    def loss(self, roster: Roster, me: int) -> dict[str, Any]:
        return self._entry([self.once(f).curve for f in range(self.study.privacy.colluders + 1)], me)

    def _entry(self, curves: list[Any], me: int) -> dict[str, Any]:
        """Tables against any 1, 2, … participants, and against everybody, deviating or not."""
        tables = [one.curves if isinstance(one, SharedCurve) else one for one in curves]  # one for all parties
        single = {name: tables[0] for u, name in enumerate(self.study.everybody) if u != me}
        sizes = {k + 1: table for k, table in enumerate(tables) if k}
        return profile_loss(single, self.randomizer.alone, sizes)

    def recomputed(self, attempt: int, roster: Roster, me: int, realised: Mapping[str, Any]) -> dict[str, Any] | None:
        """The loss given which links failed and how many reports arrived; None if it is no more than was promised."""
        arrived, terms = int(realised.get("accepted", len(roster))), self.study.privacy
        if realised.get("unheard"):  # who was given up elsewhere, and what the curator has got, nobody has told us
            return self._entry([self.randomizer.alone] * (terms.colluders + 1), me)
        lists = [list(realised.get("cuts", ()))]
        if unsaid := [cut for cut in realised.get("unsaid", ()) if cut not in lists[0]]:
            lists.append([*lists[0], *unsaid])  # the curator may have our hand by now, after its total
        if arrived >= len(roster) and not lists[-1]:
            return None
        sizes = range(terms.colluders + 1)
        promised = [self.once(f) for f in sizes]
        found = [[self.realised(f, {**realised, "cuts": cuts}, roster) for cuts in lists] for f in sizes]
        pairs = [(new, old) for news, old in zip(found, promised, strict=True) for new in news]
        if all(_is_within(new.curve, old.curve) for new, old in pairs):
            return None
        both = [
            stated([*news, old], self.study.n, f + 1) for f, (news, old) in enumerate(zip(found, promised, strict=True))
        ]
        return self._entry([one.curve for one in both], me)

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        """ε₀ = ε, with as many hops as it takes to mix, and laziness where it cannot mix without."""
        given, graph = wish.options, wish.graph
        laziness = given.get("laziness")
        if laziness is None:
            laziness = 0.5 if graph.is_bipartite else 0.0
        reporting, rounds = given.get("reporting"), given.get("rounds")
        settings = {
            "kind": cls.kind, "epsilon0": rounded_down(wish.epsilon, _DIGITS),
            "reporting": "all" if reporting is None else reporting,
            "rounds": fewest_rounds_for(graph, laziness, _CROWD).rounds if rounds is None else rounds,
            "laziness": float(laziness), "cover": 0, "grid": _STEPS,
            "values": 0 if getattr(wish.task, "is_numeric", True) else wish.task.dimension,
        }  # fmt: skip
        if given.get("cover"):
            settings["cover"] = _enough_cover(graph, settings, int(given["cover"]), wish.delta)
        return settings

    def least(self) -> dict[str, Any]:
        """The largest ε₀ of four digits that keeps the promise."""
        terms = self.study.privacy
        settings: dict[str, Any] = self.settings.model_dump(mode="json")
        start = rounded_down(settings["epsilon0"] / terms.attempts, _DIGITS)  # reports alone keep the promise

        def having(epsilon0: float) -> ShuffleRunning:
            made = self.with_settings(settings | {"epsilon0": epsilon0})
            assert isinstance(made, ShuffleRunning)
            return made

        def meets(epsilon0: float) -> bool:
            return having(epsilon0).worst_epsilon(terms.colluders, terms.delta) <= terms.epsilon

        if not meets(start):  # refuses where hops are too few
            raise Unsupported(
                f"epsilon = {terms.epsilon:g} at delta = {terms.delta:g} is met by no report of this study"
            )
        # one case in which most is learnt shows where to look; in the end all of them count
        cases = self.cases(terms.colluders) if terms.attempts == 1 else []
        worst = max(cases, key=lambda case: having(start).with_parties(case, terms.delta), default=None)

        def may_meet(epsilon0: float) -> bool:
            if worst is None:
                return meets(epsilon0)
            made = having(epsilon0)
            alone = made.without_curator(terms.colluders, terms.delta)
            return max(alone, made.with_parties(worst, terms.delta)) <= terms.epsilon

        low, high = start, min(2 * start, _LARGEST)
        while high < _LARGEST and may_meet(high):
            low, high = high, min(2 * high, _LARGEST)
        while (middle := rounded_down((low + high) / 2, _DIGITS)) not in (low, high):
            low, high = (middle, high) if may_meet(middle) else (low, middle)
        while low > start and not meets(low):
            low = max(start, rounded_down(low * (1 - 1e-3), _DIGITS))
        return settings | {"epsilon0": low}


def _is_within(new: Any, old: Any) -> bool:
    """Whether one table is nowhere above another: a ledger adds up whole tables, so one δ does not decide it."""
    tables: list[Any] = [one.curves if isinstance(one, SharedCurve) else one for one in (new, old)]
    points = np.unique(np.concatenate([np.asarray(one.epsilons) for one in tables]))
    a, b = (np.asarray([np.max(one.delta(point)) for point in points]) for one in tables)
    return bool(np.all(a <= b))


def _enough_cover(graph: Graph, settings: Mapping[str, Any], least: int, delta: float) -> int:
    """So many places on a link that reports wait with a chance far below δ, and at least as many as asked for."""
    if not 1 <= least <= _MOST_COVER or settings["rounds"] < 1:
        return least  # the settings refuse it
    direct = Shuffle(graph, settings["rounds"], settings["epsilon0"], laziness=settings["laziness"])
    for cover, chance in enumerate(overflows(direct, _MOST_COVER), start=1):
        if cover >= least and chance <= delta / 100:
            return cover
    raise Unsupported(
        f"{_MOST_COVER} places on a link are too few at delta = {delta:g}: the chance that a report must wait is "
        f"{overflows(direct, _MOST_COVER)[-1]:.1e}; use fewer rounds, or direct links (no cover)"
    )
