"""What each party of a randomized gossip really learned about each other one: from the exchanges that happened.

Every party's outcome holds its own log of exchanges. Who collects them all (`netdp up`, where all parties run on one
machine) can compute the certified loss of every pair (docs/proofs/gossip.md#dithered-exchanges). It stands beside the promise,
which is about anybody, and shows what distance is worth. Parties of which there is no log are counted among all observers; what
was learned about themselves is bounded by the promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.gossip.account.grid import before_the_run
from netdp.families.gossip.logs import Deed, ExchangeLogs
from netdp.families.gossip.protocol import RandomizedGossip
from netdp.numerics.arrays import FloatArray
from netdp.peers.hindsight import Hindsight
from netdp.protocols.views import Transcript

if TYPE_CHECKING:
    from netdp.peers.study.study import Study


MOST_WORK = 150_000
"""Messages times observers: ten seconds or so. In larger runs fewer observers are looked at, evenly spaced in the roster."""


@dataclass(frozen=True, eq=False)
class ExchangeLosses(Hindsight):
    """The exchanges of a run, and ε of what each party learned about each other one."""

    key: ClassVar[str] = "learned"
    holds_if: ClassVar[str] = "if who exchanged with whom did not depend on what anybody saw"

    roster: tuple[int, ...]
    logs: ExchangeLogs
    """By place in the roster."""
    epsilons: FloatArray | None
    """(observers, targets) by place in the roster; nan at the observer itself and in the rows of observers that were not looked
    at; the promise for targets that left no log. None if nothing could be computed."""
    distances: FloatArray
    """(observers, targets): links between them."""
    estimates: FloatArray
    """(parties that hold one, d): everybody's estimate of the total."""
    problem: str = ""
    """Why nothing can be computed: logs that contradict each other."""

    @property
    def by_distance(self) -> dict[int, tuple[float, float]]:
        """Links between two parties → (mean, largest) ε of what one learned about the other."""
        if self.epsilons is None:
            return {}
        out = {}
        for hops in np.unique(self.distances[self.distances > 0]).astype(int).tolist():
            found = self.epsilons[(self.distances == hops) & ~np.isnan(self.epsilons)]
            if found.size:
                out[hops] = float(found.mean()), float(found.max())
        return out

    @property
    def looked_at(self) -> int:
        """How many observers were looked at."""
        return 0 if self.epsilons is None else int((~np.isnan(self.epsilons)).any(axis=1).sum())

    @property
    def spread(self) -> float:
        """How far apart the parties' estimates are, at most, in any coordinate."""
        return float(np.ptp(self.estimates, axis=0).max()) if len(self.estimates) else 0.0

    @property
    def transcript(self) -> Transcript:
        """The exchanges in an order in which they can have happened, for pictures.

        Torn and late ones look whole here, those in which nobody averaged are missing: losses are computed from `logs`.
        """
        events, _ = self.logs.course
        pairs = [(e.party, e.hears.sender) for e in events if e.sends is not None and e.hears is not None]
        return Transcript.pairwise(self.logs.n, np.array(pairs, dtype=np.int64).reshape(-1, 2))

    @property
    def course(self) -> ExchangeLogs:
        """The parties' logs: as mere edges, torn and late exchanges would look whole, and the loss too small."""
        return self.logs

    def messages(self, n: int) -> Transcript | None:
        return self.transcript if self.logs.n == n and not self.problem else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "exchanges": self.logs.exchanges,
            "torn": len(self.logs.torn),
            "void": len(self.logs.void),
            "without_log": len(self.logs.missing),
            "problem": self.problem,
            "observers_looked_at": self.looked_at,
            "spread_of_totals": self.spread,
            "holds": self.holds_if,
            "epsilon_by_distance": {str(k): {"mean": m, "largest": w} for k, (m, w) in self.by_distance.items()},
        }


def learned_in(study: Study, outcomes: Mapping[str, Mapping[str, Any]]) -> ExchangeLosses | None:
    """What parties learned, from the outcomes that they told; None if the study is no randomized gossip or gave no answer.

    If logs contradict each other, somebody lies, and nothing but the promise is known: that is said in `problem`.
    """
    held = [told for told in outcomes.values() if told["ok"]]
    if not held or not isinstance(study.protocol(), RandomizedGossip):
        return None
    attempt, names = held[0]["attempt"], held[0]["roster"]
    roster = tuple(study.index(name) for name in names)
    place = {u: i for i, u in enumerate(roster)}
    deeds, totals = {}, []
    for name, told in outcomes.items():
        if not told["ok"] or told["attempt"] != attempt or study.index(name) not in place:
            continue
        deeds[place[study.index(name)]] = tuple(
            Deed(what, place.get(other, -1), number) for what, other, number in told["realised"]["deeds"]
        )
        if told["total"] is not None:  # very long ones stay in the parties' folders
            totals.append(told["total"])
    protocol = study.running.protocol_of(roster)
    assert isinstance(protocol, RandomizedGossip)
    epsilons, problem, logs = None, "", ExchangeLogs(len(roster), {})
    try:
        logs = ExchangeLogs(len(roster), deeds)
        epsilons = _pairs(protocol, logs, study.privacy.delta)
    except InvalidValue as found:
        epsilons, problem, logs = None, str(found), ExchangeLogs(len(roster), {})
    distances = np.array([protocol.graph.distances([v]) for v in range(len(roster))], dtype=np.float64)
    return ExchangeLosses(
        roster, logs, epsilons, distances, np.array(totals, dtype=np.float64).reshape(len(totals), -1), problem
    )


def _pairs(protocol: RandomizedGossip, logs: ExchangeLogs, delta: float) -> FloatArray:
    from netdp.protocols.accounting import account

    epsilons = np.full((logs.n, logs.n), np.nan)
    promised = before_the_run(protocol).epsilon(delta)  # holds as well; the two tables are read off at different points
    apart = max(1, -(-logs.n * len(logs.course[1]) // MOST_WORK))
    for v in range(0, logs.n, apart):
        epsilons[v] = np.minimum(account(protocol, [v], transcript=logs).epsilon(delta), promised)
        epsilons[v, v] = np.nan
    return epsilons
