"""A token that goes round the parties in their order (`netdp.RingSum` on a grid).

**What a ring promises.** By default its noise is distributed: every party adds a share σ/√n, the first and (before the
release) the last one σ. A single party sees the token once and the answer: a sum over those before it, which holds the
first one's σ, and a sum over those after it, which holds the closing σ. Two neighbours of a party that collude see what
it added, with its own share σ/√n only: to plan for two colluders multiplies the noise by about √n. A masked sum does not
have that weakness.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.numerics.arrays import IntArray
from netdp.numerics.rounding import rounded_up
from netdp.planning.table import noise_for
from netdp.protocols import RingSum
from netdp.protocols.ring import ring_contributions

from ..messages import roster_digest
from ..model import Misfit, Number, Strict, Whole
from ..spreads.ring import Ring
from ..streams import context, noise_words
from .base import DEVIATIONS, Desk, Roster, Running, Wish
from .noise import DIGITS, least_noise, power_of_two
from .promised import alone, worst_coalition

if TYPE_CHECKING:
    from ..spreads.base import Spread
    from ..study import Study
    from ..study.scaling import Scaling
    from ..study.task import Task
    from ..study.training import Training


class RingSettings(Strict):
    """A token that goes round the parties in their order (`netdp.RingSum`)."""

    kind: Literal["ring-sum"]
    sigma: Number
    grid: Number
    noise: Literal["distributed", "single"] = "distributed"
    closing: Number = 1.0
    rounds: Whole = 1


class RingRunning(Running):
    """A running total that everybody adds to, in the order of the list."""

    kind = "ring-sum"
    Settings = RingSettings
    comments: ClassVar = {
        "noise": '"distributed": every party adds a share',
        "closing": "noise before the release, in units of sigma squared",
        "rounds": "how often the token goes round",
    }
    how = (
        "A running total goes round the parties, in the order of the list; each adds its numbers with its "
        "share of noise and sees the total so far. Two neighbours of a party that collude see what it added with its own "
        "share of noise only."
    )

    def check(self) -> None:
        super().check()
        check_ring_edges(self.study)

    def protocol(self) -> RingSum:
        how, task = self.settings, self.study.task
        return RingSum(
            self.study.n, rounds=how.rounds, sigma=how.sigma, noise=how.noise, closing=how.closing, grid=how.grid,
            sensitivity=task.sensitivity, dimension=task.dimension,
        )  # fmt: skip

    def noise(self, parties: int) -> float:
        protocol = self.protocol()
        return math.hypot(*protocol.hop_noise.tolist(), protocol.closing_noise) / protocol.rounds

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        where = context(self.study.hash, attempt, roster)
        words = noise_words(desk.identity.noise_secret, where, desk.rows.astype("<f8").tobytes())

        def draw(variance: int, size: int) -> IntArray:
            return DiscreteGaussian(variance).sample((size,), words)

        added = ring_contributions(self.protocol(), desk.me, desk.rows[0], draw)
        return roster_digest(roster), added.astype("<i8").tobytes()

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        protocol = self.protocol()

        def drawn() -> IntArray:
            return np.frombuffer(desk.written(attempt), dtype="<i8").astype(np.int64).reshape(-1, protocol.dimension)

        return Ring(protocol, attempt, roster, desk.me, drawn)

    @cached_property
    def furthest(self) -> float:
        """n·rounds clipped values, and all noise."""
        protocol = self.protocol()
        noise = math.hypot(*protocol.hop_noise.tolist(), protocol.closing_noise)
        return protocol.n * protocol.rounds * (1 / protocol.step + 1) + DEVIATIONS * noise / protocol.step

    def most_rounds(self) -> int:
        protocol = self.protocol()
        return protocol.n * protocol.rounds

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        sigma = rounded_up(noise_for(wish.task.sensitivity, wish.epsilon, wish.delta), DIGITS)
        return {"kind": cls.kind, "sigma": sigma, "grid": ring_grid(sigma, wish.graph.n, wish.task)}

    def least(self) -> dict[str, Any]:
        study, terms = self.study, self.study.privacy

        def stated(sigma: float) -> dict[str, Any]:
            grid = ring_grid(sigma, study.n, study.task)
            return dict(self.settings.model_dump(mode="json")) | {"sigma": sigma, "grid": grid}

        def with_noise(sigma: float) -> RingSum:
            protocol = self.with_settings(stated(sigma)).protocol()
            assert isinstance(protocol, RingSum)
            return protocol

        guess = noise_for(study.task.sensitivity, terms.epsilon, terms.delta)
        # most coalitions learn less than one of them: the noise that it asks for is where to look
        _, members = worst_coalition(with_noise(guess), terms.colluders, terms.delta)
        guess = least_noise(lambda sigma: alone(with_noise(sigma), members, terms.delta) <= terms.epsilon, guess)

        def meets(sigma: float) -> bool:
            return worst_coalition(with_noise(sigma), terms.colluders, terms.delta)[0] <= terms.epsilon

        return stated(least_noise(meets, guess))


def check_ring_edges(study: Study) -> None:
    """Refuse a network in which a party is not linked to the next of the list."""
    for u in range(study.n - 1):
        if not study.graph.has_edge(u, u + 1):
            a, b = study.names[u], study.names[u + 1]
            raise Misfit(("network",), f"the token goes from {a} to {b}, which are no neighbours; add that edge")


def ring_grid(sigma: float, n: int, task: Task | Training | Scaling) -> float:
    """Fine enough that a share of σ/√n has 16 steps, and rounding adds a thousandth to Δ at most."""
    finest = min(sigma / (16 * math.sqrt(n)), task.sensitivity / (1024 * math.sqrt(task.dimension)))
    return min(power_of_two(finest), 1.0)
