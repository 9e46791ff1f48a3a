"""What shuffling on peers promises, to whom, and what it cost if something was lost on the way.

**Who learns what** (docs/guarantees.md#shuffling-peers). A *participant* is a party or the curator.

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
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.accounting import account
from netdp.accounting.heap.clones import Heap
from netdp.accounting.shuffle.hiding import report_alone
from netdp.accounting.shuffle.relay import covered, overflow_given
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.mechanisms.base import EXACT_DRAWS, IDEAL_DRAWS
from netdp.privacy import Guarantee, Observers, SharedCurve
from netdp.protocols import FaultyShuffle, RelayedShuffle, Shuffle

from ..ledger.losses import accounted, together
from ..model import Misfit
from ..spreads.shuffle import pattern_of
from .base import Roster, Running
from .promised import for_everybody

if TYPE_CHECKING:
    from ..study import Study

_FEW = 128  # coalitions that are looked at one by one; of more, the report's own loss is stated
_ROSTERS = 256


class ShuffleLosses(Running):
    """The losses of a shuffled study; `netdp.peers.kinds.shuffle` runs it."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._promises: dict[int, Guarantee] = {}

    def protocol(self) -> Shuffle | RelayedShuffle:
        return self.protocol_of(tuple(range(self.study.n)))

    def protocol_of(self, roster: Roster) -> Shuffle | RelayedShuffle:
        how, graph = self.settings, self.graph_of(roster)
        if how.cover:
            return RelayedShuffle(graph, how.rounds, how.epsilon0, cover=how.cover, laziness=how.laziness)
        return Shuffle(graph, how.rounds, how.epsilon0, reporting=how.reporting, laziness=how.laziness)

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
        n, e0 = self.study.n, self.settings.epsilon0
        if not found:
            found = [replace(accounted(self.protocol(), ("curator",)), curve=report_alone(e0, 0.0))]
        alone = Heap.of(self._others(colluders, arrived), e0).profile()
        losses = [*found, replace(found[0], curve=alone)]
        worst = for_everybody(losses, n, colluders + 1)
        who = "the curator alone, or any single party" if not colluders else (
            f"the curator with any {colluders} of the parties, or any {colluders + 1} parties without it"
        )  # fmt: skip
        return replace(worst, assumptions=self._words(worst.assumptions, who), observers=Observers(roles=(who,)))

    def worst_epsilon(self, colluders: int, delta: float) -> float:
        if self.study.privacy.attempts > 1:
            return self.promise(colluders).require_certified().worst_epsilon(delta)
        cases, e0 = self.cases(colluders), self.settings.epsilon0
        alone = self.without_curator(colluders, delta)
        if not cases:
            return max(alone, report_alone(e0, 0.0).epsilon(delta).item())
        return max(alone, *(self.with_parties(case, delta) for case in cases))

    def with_parties(self, case: tuple[Roster, tuple[int, ...]], delta: float) -> float:
        """What the curator and these parties of a roster learn in one attempt, at one δ."""
        roster, members = case
        return accounted(self.protocol_of(roster), ("curator", *members)).require_certified().worst_epsilon(delta)

    def without_curator(self, colluders: int, delta: float) -> float:
        """What any `colluders` + 1 parties learn in one attempt without the curator, at one δ."""
        return Heap.of(self._others(colluders, self.study.smallest_roster), self.settings.epsilon0).epsilon(delta)

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
        lossy = FaultyShuffle(self.graph_of(members), how.rounds, how.epsilon0, laziness=how.laziness)

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
