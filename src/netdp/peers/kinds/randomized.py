"""Averaging by exchanges between two neighbours at a time, by everybody's own clock (`netdp.RandomizedGossip` on a grid).

**The promise** is local DP of everybody's first noisy value: it holds in any order, after any loss, against any coalition
and against parties that deviate. That is also what the ledger enters. What single parties really learned is less the
further away they were; it is recomputed after a run from the exchanges that really happened
(docs/guarantees.md#dithered-exchanges).

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
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from netdp.accounting.gossip.exchanges import before_the_run, wire_grid
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import IntArray
from netdp.numerics.rounding import rounded_up
from netdp.planning.calibrate import calibrate
from netdp.privacy import Guarantee
from netdp.protocols import RandomizedGossip
from netdp.protocols.exchange import fits, largest_state
from netdp.protocols.gossip import gossip_start
from netdp.protocols.randomized import waking_alike
from netdp.utility import ExpectedError

from ..messages import Item, Kind, roster_digest
from ..model import Misfit, Number, Strict, Whole
from ..spreads.diary import KEY
from ..spreads.randomized import Exchanging, Pace
from ..streams import context, noise_words
from . import promised
from .base import NUMBERS, Desk, Roster, Running, Wish
from .noise import DIGITS, least_noise

if TYPE_CHECKING:
    from ..spreads.base import Spread

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


class RandomizedRunning(Running):
    """Pairwise averaging, each party by its own clock."""

    kind = "randomized-gossip"
    Settings = RandomizedSettings
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

    def promise(self, colluders: int) -> Guarantee:
        return promised.for_everybody([before_the_run(self.protocol())], self.study.n, colluders)

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

    def longest(self) -> dict[Kind, int]:
        numbers = 8 * self.study.task.dimension
        common = {Kind.VOTE: 4 * self.study.n, Kind.CONTRIBUTION: 32, Kind.FALLBACK: 0, Kind.THROUGH: 0}
        return common | {Kind.OFFER: 0, Kind.ACCEPT: numbers, Kind.STATE: numbers}

    def is_legible(self, item: Item) -> bool:
        if item.key.kind not in (Kind.ACCEPT, Kind.STATE) or not item.body:
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
