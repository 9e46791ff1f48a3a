"""A sum under one-time pads between all pairs (`netdp.MaskedSum`): what a study runs unless it says otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.graphs import Graph, complete
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.numerics.arrays import IntArray
from netdp.numerics.rounding import rounded_up
from netdp.planning.table import noise_for
from netdp.protocols import MaskedSum
from netdp.protocols.masked_steps import contribution, from_bytes, quantised, quantised_records, to_bytes, wire_width

from ..messages import Item, Kind, roster_digest
from ..model import Misfit, Number, Strict, Whole
from ..spreads.average import Average
from ..spreads.flood import Flood
from ..streams import context, noise_words, pads_of
from .base import NUMBERS, Desk, Roster, Running, Wish
from .noise import DIGITS, least_noise

if TYPE_CHECKING:
    from ..spreads.base import Spread


class MaskedSettings(Strict):
    """A sum under one-time pads between all pairs (`netdp.MaskedSum`)."""

    kind: Literal["masked-sum"]
    sigma: Number
    grid: Number
    modulus: Whole
    spread: Literal["flood", "average"] = "flood"
    masks: Literal["complete"] = "complete"


class MaskedRunning(Running):
    """Every party publishes once, under pads that cancel in the sum."""

    kind = "masked-sum"
    Settings = MaskedSettings
    options = ("spread",)
    comments: ClassVar = {"spread": '"flood" or "average": how everybody gets the sum', "masks": "who shares pads"}
    how = (
        "Each party publishes its numbers with noise and under one-time pads that cancel in the sum. What is "
        "published means nothing by itself; all of it together gives the noisy sum, and nothing else."
    )
    tasks = (*NUMBERS, "scaling")
    units = ("party", "record")
    tolerates = True
    depends_on_size_only = True

    def check(self) -> None:
        super().check()
        try:
            protocol = self.protocol()
            if protocol.spread == "average":
                protocol.averaging  # noqa: B018  refuses where it is not exact
        except NetdpError as problem:
            raise Misfit(("protocol",), str(problem)) from None

    def protocol(self) -> MaskedSum:
        how, study, task = self.settings, self.study, self.study.task
        return MaskedSum(
            study.graph, sigma=how.sigma, sensitivity=task.sensitivity, dimension=task.dimension, grid=how.grid,
            masks=how.masks, spread=how.spread, modulus=how.modulus, attempts=study.privacy.attempts,
            absent=study.privacy.absent, unit=task.unit, reach=task.reach,
        )  # fmt: skip

    def protocol_of(self, roster: Roster) -> MaskedSum:
        study = self.study
        graph = study.graph if len(roster) == study.n else study.graph.subgraph(roster)
        if not graph.is_connected:
            # Those outside the roster still pass messages on. Pads and noise, hence the loss, have nothing to do with
            # the talk graph: any connected one stands for it.
            graph = complete(len(roster))
            graph = Graph.from_edges(graph.n, graph.edges(), name="complete", labels=[study.names[u] for u in roster])
        return self.protocol().replace(graph=graph, attempts=1, absent=0)

    def noise(self, parties: int) -> float:
        protocol = self.protocol()
        return protocol.step * math.sqrt(parties * protocol.share)

    def answer(self, total: Sequence[float], parties: int) -> dict[str, Any]:
        """With what a training states of the study that its columns were scaled by, where that is what was asked."""
        found, study, how = super().answer(total, parties), self.study, self.settings
        if study.task.kind != "scaling":
            return found
        return found | {
            "scaled": {
                "study": study.hash.hex(), "unit": study.task.unit, "parties": study.n, "sigma": how.sigma, "grid": how.grid,
                "attempts": study.privacy.attempts, "absent": study.privacy.absent,
            }
        }  # fmt: skip

    # ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        protocol = self.protocol_of(roster)
        where = context(self.study.hash, attempt, roster)
        integers = self._integers(protocol, desk)
        noise = DiscreteGaussian(protocol.share).sample(
            integers.shape, noise_words(desk.identity.noise_secret, where, integers.astype("<i8").tobytes())
        )
        others = [v for v in roster if v != desk.me]
        pads = pads_of(desk.identity, desk.cards, desk.me, others, where, len(integers), protocol.q)
        y = contribution(protocol, integers, noise, pads)
        return roster_digest(roster) + to_bytes(y, protocol.q), b""

    def _integers(self, protocol: MaskedSum, desk: Desk) -> IntArray:
        if protocol.unit == "record":
            return quantised_records(protocol, desk.rows)
        return quantised(protocol, desk.rows[0])

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        protocol = self.protocol_of(roster)
        if protocol.spread == "average" and desk.me in roster and self._talk(roster):
            try:
                return Average(protocol, attempt, roster, desk.me)
            except Unsupported:  # on what is left of the talk graph it would not be exact: everybody finds the same
                pass
        return Flood(protocol, attempt, roster)

    def _talk(self, roster: Roster) -> bool:
        """Whether the members of the roster are connected among themselves."""
        graph = self.study.graph
        return len(roster) == graph.n or graph.subgraph(list(roster)).is_connected

    def longest(self) -> dict[Kind, int]:
        return super().longest() | {Kind.CONTRIBUTION: 32 + wire_width(self.protocol().q) * self.study.task.dimension}

    def is_legible(self, item: Item) -> bool:
        if item.key.kind == Kind.CONTRIBUTION:
            try:
                from_bytes(item.body[32:], self.protocol().q, self.study.task.dimension)
            except InvalidValue:
                return False
        return super().is_legible(item)

    def most_rounds(self) -> int:
        # averaging on a smaller roster may take longer than on all together
        return 0 if self.settings.spread == "flood" else 100_000

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        task, spread = wish.task, wish.options.get("spread", "flood")
        sigma = rounded_up(noise_for(task.sensitivity, wish.epsilon, wish.delta), DIGITS)
        trial = MaskedSum(
            wish.graph, sigma=sigma, sensitivity=task.sensitivity, dimension=task.dimension, spread=spread,
            unit=task.unit, reach=task.reach,
        )  # fmt: skip
        return {"kind": cls.kind, "sigma": sigma, "grid": min(trial.step, 1.0), "modulus": trial.q, "spread": spread}

    def least(self) -> dict[str, Any]:
        study, terms, protocol = self.study, self.study.privacy, self.protocol()

        def stated(sigma: float) -> dict[str, Any]:
            follows = protocol.replace(sigma=sigma, grid=None, modulus=None)
            follows = follows.replace(grid=min(follows.step, 1.0))
            return dict(self.settings.model_dump(mode="json")) | {
                "sigma": sigma,
                "grid": follows.step,
                "modulus": follows.q,
            }

        def meets(sigma: float) -> bool:
            found = self.with_settings(stated(sigma)).worst_epsilon(terms.colluders, terms.delta)
            return found <= terms.epsilon

        guess = noise_for(study.task.sensitivity, terms.epsilon, terms.delta) * math.sqrt(terms.attempts)
        return stated(least_noise(meets, guess / math.sqrt(study.smallest_roster - terms.colluders)))
