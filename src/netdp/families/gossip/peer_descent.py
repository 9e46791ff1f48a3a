"""Gossip descent on peers: everybody takes a noisy gradient step of its own model, and averages it with its neighbours'.

Every send is written down before it leaves, with the model that it was made from; of both the last two stand. A neighbour is behind
or ahead by one send at most, so a party that was started again says these two again, gets its neighbours' own two, and goes on
where it was: memory is level, however long it takes. There is no second way to the answer: all must be there to the end.

Muffliato-GD and -SGD (`netdp.GossipDescent` on a grid). What is claimed: docs/proofs/gossip.md#descent-on-a-grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from netdp.errors import NetdpError, Refused
from netdp.families.gossip.account.descent_grid import transcript_distance
from netdp.families.gossip.descent import GossipDescent
from netdp.families.gossip.protocol import gossip_step, gossip_weights, summed
from netdp.graphs.spectrum import spectral_gap
from netdp.numerics.arrays import FloatArray, IntArray, rounded_up
from netdp.peers.descents import DescentKind, OwnSteps, known_expansion
from netdp.peers.events import Sentence, Statement
from netdp.peers.kinds import Roster, Wish
from netdp.peers.ledger.losses import accounted
from netdp.peers.messages import Item, ItemKind, Key, roster_digest
from netdp.peers.noise import DIGITS, least_noise
from netdp.peers.records import Misfit, Number, Strict, Whole
from netdp.peers.spread import Moment, Moves, Spread, SpreadResult
from netdp.peers.streams import rows_digest
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.observers import Observers
from netdp.privacy.wording import readable
from netdp.protocols.calibration import noise_for
from netdp.protocols.descents import own_releases, wire_grid
from netdp.protocols.table import in_real_numbers

if TYPE_CHECKING:
    from netdp.peers.desk import Desk

MODEL, SENT = b"gossip model", b"gossip sent"
"""The registers of the state before a send (with the sum of later models), and of what was sent."""

STALLED, SLOWER, LOOK = 4.0, 20.0, 0.25
"""How long a linked neighbour may take, in units of patience and of our own gradient; how often to look again."""


class GossipDescending(Spread):
    """One party of a `GossipDescent` on a grid. `steps()`: what it computes, made when it is first needed."""

    needs_all = False

    def __init__(
        self,
        protocol: GossipDescent,
        average: str,
        attempt: int,
        roster: tuple[int, ...],
        desk: Desk,
        steps: Callable[[], OwnSteps],
        *,
        patience: float,
        name: Callable[[int], str] = str,
    ) -> None:
        super().__init__(attempt, roster)
        self._protocol, self._average, self._desk, self._make = protocol, average, desk, steps
        self._weights = gossip_weights(protocol, desk.me)
        self._patience, self._name = patience, name
        self._steps: OwnSteps | None = None
        self._r = 0  # how many sends are over: their states were mixed
        self._state = np.zeros(0, dtype=np.int64)
        self._later = np.zeros(0)
        self._own: IntArray | None = None  # what was sent and is not mixed yet
        self._gradient: tuple[int, IntArray] | None = None
        self._since = self._began = float("-inf")
        self._took = 0.0

    # ── what happens ──────────────────────────────────────────────────────────────────────────────────────────────────

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves()
        if self.answer is not None:
            return moves
        self._open(moment, moves)
        while True:
            if self._own is None and not self._send(moves, moment):
                moves.waits = True
                return moves
            assert self._own is not None
            found = {v: self._heard(held, v, self._r) for v in self._weights}
            received = {v: state for v, state in found.items() if state is not None}
            self.missing = tuple(sorted(found.keys() - received.keys()))
            if self.missing:
                self._wait(moves, moment)
                return moves
            self._mix(gossip_step(self._weights, self._own, received), moves, moment)
            if self._r == self._protocol.sends:
                self.answer = SpreadResult(self.attempt, self.roster, self._kept(), b"")
                return moves

    def _open(self, moment: Moment, moves: Moves) -> None:
        """The state to go on from; refuses rows that are not those that were paid for."""
        if self._steps is not None:
            return
        steps = self._steps = self._make()
        self._since = moment.now
        if self._desk.written(self.attempt) != steps.digest:
            raise Refused(
                f"the data of {self._name(self._desk.me)} have changed since the training began; what was promised is about the "
                "same rows in all iterations. Put the data back as they were, or take part in a new study"
            )
        self._state = steps.start()
        self._later = np.zeros(len(self._state))
        stood, sent = (self._desk.risen(self.attempt, place) for place in (MODEL, SENT))
        if stood:
            self._r = stood[0][0] - 1
            self._state, self._later = _read(stood[0][1])
            self._own = np.frombuffer(sent[0][1], dtype="<i8").astype(np.int64)
            for number, body in reversed(sent):  # who is a send behind lacks both
                self._address(number - 1, body, moves)
        self._tell()

    def _send(self, moves: Moves, moment: Moment) -> bool:
        """Draw the state of the next send, write it down, and hand it out; False while its gradient is being computed."""
        steps, protocol, r = self._steps, self._protocol, self._r
        assert steps is not None
        t, k = divmod(r, protocol.gossip_rounds)
        mean = self._state
        if k == 0:
            if self._gradient is None or self._gradient[0] != r:
                if steps.is_long:
                    if self.work is None:
                        self._began, state = moment.now, self._state
                        self.work = lambda: (r, steps.gradient(state, t))
                    return False
                self._gradient = (r, steps.gradient(self._state, t))
            mean = summed(mean, -self._gradient[1])
            self._gradient = None
        noise = steps.noise(mean, protocol.variance if k == 0 else protocol.fresh_variance, t, k)
        body = summed(mean, noise).astype("<i8").tobytes()
        stands = self._desk.rise(self.attempt, r + 1, {MODEL: _written(self._state, self._later), SENT: body})[SENT]
        self._own = np.frombuffer(stands, dtype="<i8").astype(np.int64)
        self._address(r, stands, moves)
        self._since = moment.now
        self._tell()
        return True

    def worked(self, result: Any) -> None:
        self._gradient, self.work = result, None

    def _address(self, r: int, body: bytes, moves: Moves) -> None:
        item = Item(Key(ItemKind.STATE, self.attempt, self._desk.me, r), body)
        moves.addressed += [(v, item) for v in self._weights]

    def _heard(self, held: Mapping[Key, Item], v: int, r: int) -> IntArray | None:
        item = held.get(Key(ItemKind.STATE, self.attempt, v, r))
        if item is None or len(item.body) != 8 * len(self._state):
            return None
        return np.frombuffer(item.body, dtype="<i8").astype(np.int64)

    def _mix(self, mixed: IntArray, moves: Moves, moment: Moment) -> None:
        protocol = self._protocol
        if self._began > float("-inf"):
            self._took, self._began = max(self._took, moment.now - self._began), float("-inf")
        self._state, self._own = mixed, None
        self._r += 1
        self._since = moment.now
        if self._r % protocol.gossip_rounds == 0:
            if 2 * (self._r // protocol.gossip_rounds) > protocol.iterations:
                self._later = self._later + protocol.model(mixed)
            self._tell()
        # whoever is a send behind lacks the last two
        over = self._r - 3
        if over >= 0:
            moves.forgotten += [Key(ItemKind.STATE, self.attempt, u, over) for u in (self._desk.me, *self._weights)]

    def _tell(self) -> None:
        """How many gradients were sent, mixed or not: that is what has been revealed."""
        sent = self._r + (self._own is not None)
        self.progress |= {"iteration": -(-sent // self._protocol.gossip_rounds), "of": self._protocol.iterations}

    def _kept(self) -> FloatArray:
        if self._average == "last":
            return self._protocol.model(self._state)
        T = self._protocol.iterations
        return self._later / float(T - T // 2)

    # ── waiting ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _wait(self, moves: Moves, moment: Moment) -> None:
        """Say whether we wait with good reason, and when to look again."""
        self.wake = moment.now + LOOK * self._patience
        allowed = STALLED * self._patience + SLOWER * self._took
        if moment.linked >= set(self.missing) and moment.now < self._since + allowed:
            moves.waits = True

    def why_late(self) -> Statement | None:
        if self._steps is None or self.answer is not None:
            return None
        names = ", ".join(self._name(u) for u in self.missing[:6])
        sends, made = self._protocol.sends, self._r + (self._own is not None)
        return Sentence.STEP_MISSING(
            iteration=self._r // self._protocol.gossip_rounds + 1, iterations=self._protocol.iterations, names=names,
            spent=f"{made} of {sends} states of this party were sent, and no more will be",
        )  # fmt: skip


def _written(state: IntArray, later: FloatArray) -> bytes:
    return state.astype("<i8").tobytes() + later.astype("<f8").tobytes()


def _read(body: bytes) -> tuple[IntArray, FloatArray]:
    half = len(body) // 2
    return (
        np.frombuffer(body[:half], dtype="<i8").astype(np.int64),
        np.frombuffer(body[half:], dtype="<f8").astype(np.float64),
    )


_MOST_ITERATIONS, _MOST_SENDS = 100_000, 1_000_000

_ITERATIONS, _CLIP = 160, 0.1

_WELL_MIXED = 0.3
"""A gap from which one round per gradient is enough."""

_REFRESH = 0.25

_FEW = 40  # parties up to which every pair is looked at for an explanation


class GossipDescentSettings(Strict):
    """Noisy gradient steps, mixed by gossip, in whole numbers (`netdp.GossipDescent` on a grid)."""

    kind: Literal["gossip-descent"]
    iterations: Whole
    gossip_rounds: Whole = 1
    batch: Whole = 0
    clip: Number
    step: Number
    average: Literal["last", "later"] = "later"
    sigma: Number
    grid: Number
    refresh: Number = 0.0
    mixing: str = "metropolis"

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 1 <= self.iterations <= _MOST_ITERATIONS:
            raise Misfit(("iterations",), f"must be 1 to {_MOST_ITERATIONS:,}, got {self.iterations:,}")
        if not 1 <= self.gossip_rounds * self.iterations <= _MOST_SENDS:
            raise Misfit(
                ("gossip_rounds",),
                f"with {self.iterations:,} iterations 1 to {_MOST_SENDS // self.iterations:,}, got {self.gossip_rounds:,}",
            )
        if self.batch < 0:
            raise Misfit(("batch",), f"must be 1 or more rows, or 0 for all, got {self.batch}")
        return self


class GossipDescentRunning(DescentKind):
    """Parties that train, each a model of its own, and average it with their neighbours after every gradient."""

    kind = "gossip-descent"
    Settings = GossipDescentSettings
    sends = frozenset({ItemKind.STATE})
    sends_all_the_same = True
    options = ("iterations", "gossip_rounds", "refresh", "batch", "clip", "step", "average")
    comments: ClassVar = {
        "iterations": "how many gradients everybody computes",
        "gossip_rounds": "how often everybody averages after each of them",
        "batch": "rows drawn anew for a gradient (Muffliato-SGD); 0: all of them (Muffliato-GD)",
        "clip": "the longest that the gradient of a row may be",
        "average": '"later": a party keeps the mean of its models of the later half; "last": the last one',
        "sigma": "noise that every party adds to every number of every gradient",
        "refresh": "variance of the fresh noise between the averagings of one gradient, in that of the gradient's",
    }
    how = (
        "Every party holds a model of its own. In every iteration it moves it by the gradient of its own rows, with noise, and "
        "sends it to its neighbours; all average what they hold. Neighbours see every noisy step of a party; those far away see "
        "what many averages have left of it."
    )
    told = (
        "Each of the {n} parties ends with a model of its own, all nearly alike. One that passes it on counts as colluding with "
        "whoever gets it."
    )
    has_own_answers = True

    # ── the study ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        super().check()
        try:
            self.protocol()
        except NetdpError as problem:
            raise Misfit(("protocol",), str(problem)) from None

    def protocol(self) -> GossipDescent:
        how, study, task = self.settings, self.study, self.task
        known = known_expansion(task, how.step, how.clip)
        return GossipDescent(
            study.graph, how.iterations, how.gossip_rounds, sigma=how.sigma, step=how.step, clip=how.clip,
            expansion=math.inf if known is None else known, mixing=how.mixing, batch=how.batch or None, grid=how.grid,
            refresh=how.refresh, dimension=task.dimension,
        )  # fmt: skip

    def promise(self, colluders: int) -> Guarantee:
        from netdp.protocols.coalitions import against_any

        found = against_any(self.protocol(), colluders, most=0).require_certified()
        who = "single party" if colluders == 1 else f"{colluders} parties together"
        said = (
            "how long a party takes for a gradient is not covered: the promise is about what is sent",
            "who has an answer of its own keeps it: whoever publishes its model counts as one of those who look",
        )
        return replace(
            found, observers=Observers(roles=(f"any {who}",)), assumptions=(*found.assumptions, *said), factor=None
        )

    def worst_epsilon(self, colluders: int, delta: float) -> float:
        protocol = self.protocol()
        return float(own_releases(protocol, protocol.iterations).epsilon(delta))

    def further(self) -> tuple[str, ...]:
        study, protocol = self.study, self.protocol()
        if study.n > _FEW:
            return ()
        delta, each = study.privacy.delta, dict[int, float]()
        amplified = math.isfinite(transcript_distance(protocol))
        if not amplified:
            if math.isinf(protocol.expansion):
                return ()
            found = max(in_real_numbers(protocol, [v]).worst_epsilon(delta) for v in range(study.n))
            most = [in_real_numbers(protocol, [v]).epsilon(delta) for v in range(study.n)]
            mean = float(np.nanmean(np.array(most)))
            return (
                f"{protocol.gossip_rounds} averagings after a gradient, and no fresh noise between them (refresh = 0): everybody "
                f"learns as much as a neighbour, as far as anything is proved. In real arithmetic it would be epsilon "
                f"{readable(found)} at most and {readable(mean)} on average over all pairs: NO promise, for rounding to "
                "a grid can reveal more.",
            )
        for v in range(study.n):
            hops, epsilons = study.graph.distances([v]), accounted(protocol, (v,)).epsilon(delta)
            for u in range(study.n):
                if u != v:
                    each[int(hops[u])] = max(each.get(int(hops[u]), 0.0), float(epsilons[u]))
        told = [f"{hops} links away {readable(each[hops])}" for hops in sorted(each) if hops > 1]
        return (f"A single party that is no neighbour learns less, at most: {', '.join(told)}.",) if told else ()

    # ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        return roster_digest(roster), rows_digest(desk.identity.noise_secret, desk.rows)

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        study, protocol = self.study, self.protocol()

        return GossipDescending(
            protocol, self.settings.average, attempt, roster, desk, self.own_steps(protocol, desk, attempt, roster),
            patience=study.timing.patience,
            name=lambda u: study.names[u],
        )  # fmt: skip

    @cached_property
    def furthest(self) -> float:
        """Gradients, roundings, noise and the start; torch models start anywhere, so much room is left for it."""
        protocol = self.protocol()
        start = 0.0 if not self.task.is_code else 1e6 / protocol.spacing
        return protocol.largest(protocol.iterations, protocol.sends, start)

    def most_rounds(self) -> int:
        return self.protocol().sends - 1

    # ── what to expect of it ──────────────────────────────────────────────────────────────────────────────────────────

    def cost(self, latency: float) -> Any:
        from netdp.families.gossip.learning import expected_cost

        return expected_cost(self.protocol(), latency)

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        """Everybody's noise is its own, so it does not depend on the graph; rounds until most of a difference is gone."""
        task: Any = wish.task
        given = wish.options
        iterations, clip = given.get("iterations", _ITERATIONS), given.get("clip", _CLIP)
        if iterations < 1:
            raise Misfit(("protocol", "iterations"), f"must be 1 or more, got {iterations}")
        if task.is_code and "clip" not in given:
            clip = 1.0
        gap = spectral_gap(wish.graph)
        usual = 1 if gap >= _WELL_MIXED else max(1, math.ceil(math.log(1 / _WELL_MIXED) / -math.log1p(-min(gap, 0.99))))
        rounds = given.get("gossip_rounds", min(usual, 50))
        sigma = rounded_up(noise_for(2.0 * clip * math.sqrt(iterations), wish.epsilon, wish.delta), DIGITS)
        draft = GossipDescent(wish.graph, iterations, rounds, sigma=sigma, step=1.0, clip=clip)
        step = cls.step_of(draft, wish)
        made = draft.replace(step=step)
        return {
            "kind": cls.kind, "iterations": iterations, "gossip_rounds": rounds, "batch": given.get("batch", 0), "clip": clip,
            "step": step, "average": given.get("average", "later"), "sigma": sigma, "grid": wire_grid(made),
            "refresh": given.get("refresh", _REFRESH if rounds > 1 else 0.0),
        }  # fmt: skip

    def least(self) -> dict[str, Any]:
        terms, protocol = self.study.privacy, self.protocol()

        def stated(sigma: float) -> dict[str, Any]:
            made = protocol.replace(sigma=sigma, grid=None, refresh=0.0, expansion=1.0)
            return dict(self.settings.model_dump(mode="json")) | {"sigma": sigma, "grid": wire_grid(made)}

        def meets(sigma: float) -> bool:
            return self.with_settings(stated(sigma)).worst_epsilon(terms.colluders, terms.delta) <= terms.epsilon

        return stated(least_noise(meets, self.settings.sigma))
