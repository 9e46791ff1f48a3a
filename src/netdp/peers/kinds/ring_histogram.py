"""Counts that go round the parties in their order (`netdp.RingHistogram`).

The first party starts the token with random elements; everybody adds an answer per round, its own cell or, by a coin, any cell;
the last one adds random elements again and releases the counts. If parties may be missing (absent > 0), the ring closes over
them: then the network needs the links past them, and the promise is the worst over all sizes of the ring.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from netdp.errors import Unsupported
from netdp.numerics.arrays import IntArray
from netdp.privacy import Curve, GaussianCurve, Guarantee, ProfileCurve, SharedCurve
from netdp.protocols import RingHistogram
from netdp.protocols.response_steps import ring_answers

from ..ledger.losses import accounted, highest, profile_loss, together, worst_entry
from ..messages import roster_digest
from ..model import Misfit, Number, Strict, Whole
from ..spreads.ring import Ring
from ..streams import context, noise_words
from .base import COUNTS, Desk, Roster, Running, Wish
from .promised import coalitions, for_everybody
from .walk import least_gamma

if TYPE_CHECKING:
    from ..spreads.base import Spread

_MOST_ROUNDS = 10_000
_FEW = 30  # coalitions that are looked at for the sake of an explanation alone
_Loss = tuple[Guarantee, int, tuple[int, ...]]


class RingHistogramSettings(Strict):
    """A token that goes round the parties in their order and counts (`netdp.RingHistogram`)."""

    kind: Literal["ring-histogram"]
    gamma: Number
    closing: Number = 1.0
    rounds: Whole = 1

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 1 <= self.rounds <= _MOST_ROUNDS:
            raise Misfit(("rounds",), f"must be 1 to {_MOST_ROUNDS:,}, got {self.rounds}")
        return self


class RingHistogramRunning(Running):
    """Counts that everybody adds a randomized answer to, in the order of the list."""

    kind = "ring-histogram"
    Settings = RingHistogramSettings
    options = ("rounds",)
    tasks = COUNTS
    tolerates = True
    depends_on_place = True
    comments: ClassVar = {
        "gamma": "the chance that an answer is random",
        "closing": "random elements before the release, in units of gamma times the parties",
        "rounds": "how often the token goes round",
    }
    how = (
        "Counts go round the parties, in the order of the list; each adds an answer, its own cell or, by a coin, any cell at "
        "random, and sees the counts so far. The first and the last party add random elements. Two neighbours of a party that "
        "collude see its answer by itself."
    )

    def check(self) -> None:
        super().check()
        study, most = self.study, self.study.privacy.absent
        around = self.settings.rounds > 1
        if study.smallest_roster < 3:
            raise Misfit(("privacy", "absent"), f"leaves {study.smallest_roster} parties; a ring needs 3")
        for u in range(study.n):
            for ahead in range(1, 2 + most):
                v = u + ahead
                if v >= study.n and not around:
                    continue
                if v % study.n != u and not study.graph.has_edge(u, v % study.n):
                    a, b = study.names[u], study.names[v % study.n]
                    why = "" if ahead == 1 else f" if {ahead - 1} in between are missing"
                    raise Misfit(
                        ("network",), f"the token goes from {a} to {b}{why}, which are no neighbours; add that edge"
                    )

    def protocol(self) -> RingHistogram:
        return self._among(self.study.n)

    def protocol_of(self, roster: Roster) -> RingHistogram:
        return self._among(len(roster))

    def _among(self, parties: int) -> RingHistogram:
        how = self.settings
        return RingHistogram(
            parties, how.rounds, domain=self.study.task.dimension, gamma=how.gamma, closing=how.closing
        )

    @cached_property
    def _sizes(self) -> list[RingHistogram]:
        """The ring of every size that a roster may have."""
        return [self._among(parties) for parties in range(self.study.smallest_roster, self.study.n + 1)]

    def promise(self, colluders: int) -> Guarantee:
        losses = [loss for loss, _, _ in self._losses(colluders)]
        loss = for_everybody(losses, self.study.n, colluders)
        if (attempts := self.study.privacy.attempts) == 1:
            return replace(loss, curve=self._shared(colluders))
        said = f"a token that vanishes does so whatever it holds; all {attempts} attempts are counted in full"
        return replace(
            loss,
            curve=self._shared(colluders),
            assumptions=(*loss.assumptions, said),
        )

    def _shared(self, colluders: int) -> SharedCurve:
        return SharedCurve(self._all_attempts(colluders), np.zeros(self.study.n, dtype=np.int64))

    def _losses(self, colluders: int, sizes: Sequence[RingHistogram] | None = None) -> list[_Loss]:
        """What the coalitions learn that learn most, of which one always does: on a ring single users 1 and n − 2
        (`netdp.planning.token.histogram`); of more, all are looked at."""
        found: list[_Loss] = []
        rings = self._sizes if sizes is None else sizes
        if (
            colluders not in (1, self.study.privacy.colluders)
            and math.comb(self.study.n, colluders) * len(rings) > _FEW
        ):
            raise Unsupported(
                f"what any {colluders} learn takes minutes to compute and is not what the study plans for"
            )
        for ring in rings:
            who = [(1,), (ring.n - 2,)] if colluders == 1 else coalitions(ring.n, colluders)
            found += [(accounted(ring, members), ring.n, members) for members in who]
        return found

    def _table(self, losses: Sequence[_Loss]) -> GaussianCurve | ProfileCurve:
        """One attempt, as an entry of the ledger keeps it: the worst of these about anybody."""
        return highest([worst_entry([loss.curve], u) for loss, n, who in losses for u in range(n) if u not in who])

    def _all_attempts(self, colluders: int) -> Curve:
        """δ(ε) of all attempts, from tables as the ledger keeps them."""
        return together([self._table(self._losses(colluders))] * self.study.privacy.attempts)

    def worst_epsilon(self, colluders: int, delta: float) -> float:
        return float(self._all_attempts(colluders).epsilon(delta))

    @property
    def noise_words(self) -> str:
        return f"gamma = {self.settings.gamma:g}"

    def noise(self, parties: int) -> float:
        """Of the coins and the random elements, in one cell."""
        how, cells, ring = self.settings, self.study.task.dimension, self._among(parties)
        own, other = 1 - how.gamma + how.gamma / cells, how.gamma / cells
        coins = ring.rounds * parties * (1 - own**2 - (cells - 1) * other**2)
        elements = (ring.blanket + ring.closing_blanket) * (1 - 1 / cells)
        return float(math.sqrt((coins + elements) / cells) / (1 - how.gamma) / ring.rounds)

    # ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        protocol = self.protocol_of(roster)
        where = context(self.study.hash, attempt, roster)
        words = noise_words(desk.identity.noise_secret, where, desk.rows.astype("<f8").tobytes())
        labels = [int(np.argmax(desk.rows[0]))] * protocol.rounds
        added = ring_answers(protocol, roster.index(desk.me), labels, words)
        return roster_digest(roster), added.astype("<i8").tobytes()

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        protocol = self.protocol_of(roster)

        def drawn() -> IntArray:
            return np.frombuffer(desk.written(attempt), dtype="<i8").astype(np.int64).reshape(-1, protocol.domain)

        return Ring(protocol, attempt, roster, desk.me, drawn)

    def most_rounds(self) -> int:
        return int(self.study.n * self.settings.rounds)

    # ── the ledger ────────────────────────────────────────────────────────────────────────────────────────────────────

    def loss(self, roster: Roster, me: int) -> dict[str, Any]:
        """Against each other party alone as against the worst of them."""
        study, ring = self.study, self.protocol_of(roster)
        one, *more = (
            self._table(self._losses(k, [ring])) for k in range(1, min(study.privacy.colluders, ring.n - 1) + 1)
        )
        others = tuple(place for place, u in enumerate(roster) if u != me)
        everybody = worst_entry([accounted(ring, others).curve], roster.index(me))
        single = {study.names[u]: one for u in roster if u != me}
        return profile_loss(single, everybody, dict(enumerate(more, start=2)))

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        return {"kind": cls.kind, "gamma": 0.5, "rounds": wish.options.get("rounds", 1)}

    def least(self) -> dict[str, Any]:
        terms = self.study.privacy

        def stated(gamma: float) -> dict[str, Any]:
            return dict(self.settings.model_dump(mode="json")) | {"gamma": gamma}

        def meets(gamma: float) -> bool:
            found = self.with_settings(stated(gamma)).worst_epsilon(terms.colluders, terms.delta)
            # rosters have different curves, and grids on which several attempts are added up differ a little
            return found <= terms.epsilon * (1.0 if terms.attempts == 1 else 0.998)

        return stated(least_gamma(meets))
