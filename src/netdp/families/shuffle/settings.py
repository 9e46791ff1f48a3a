"""What `netdp plan` takes for shuffling: plain, in spite of faults, and through a server."""

from __future__ import annotations

from typing import Any, ClassVar

from netdp import protocols
from netdp.errors import InvalidValue
from netdp.families.shuffle.plan import calibrate_epsilon0, plan_relayed, plan_rounds, plan_with_faults
from netdp.numerics.arrays import Progress
from netdp.protocols.base import Protocol
from netdp.protocols.planning import Plan
from netdp.settings.models import Advised, Planned, RunSettings, made, protocol_fields


class RunReports(RunSettings):
    """`netdp simulate` of shuffling: --values names a file there, so --domain says how many values randomized response has."""

    domain: int | None = None

    def made(self) -> Protocol:
        """The protocol."""
        fields = set(protocol_fields(self.way)) - {"values"}
        stated = {name: getattr(self, name) for name in fields & self.model_fields_set}
        kind = getattr(protocols, self.way.protocol)
        return made(kind, self.way.first, self.graph, {**stated, "values": self.domain}, self._at_hand)


class PlanShuffle(Advised):
    """`netdp plan` of shuffling: hops for given reports, or reports for a target."""

    epsilon: float | None = None
    epsilon0: float | None = None
    delta: float = 1e-6
    reporting: str = "all"
    laziness: float = 0.0
    share: float = 0.01
    users: float = 1.0
    values: int | None = None
    links_for: ClassVar[str] = "shuffle"

    def planned(self, progress: Progress | None = None) -> Plan:
        """How many hops for these reports, or how noisy reports for this target?"""
        if self.epsilon0 is not None:
            return plan_rounds(self.network(), self.epsilon0, self.delta, **self._options())
        assert self.epsilon is not None
        return calibrate_epsilon0(self.network(), self.epsilon, self.delta, **self._options())

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("share", "laziness", "reporting", "users", "values")}

    def links_options(self) -> dict[str, Any]:
        """The reports, or the target."""
        target = {} if self.epsilon is None else {"epsilon": self.epsilon}
        return {"epsilon0": self.epsilon0, "delta": self.delta, **target, "shuffle": self._options()}

    def check(self) -> None:
        """One question at a time."""
        if (self.epsilon is None) == (self.epsilon0 is None):
            raise InvalidValue(
                "shuffling is planned for given reports (--epsilon0 1: how many hops?) or for a target (--epsilon 0.1: "
                "how noisy must reports be?); give one of the two"
            )


class PlanFaulty(Planned):
    """`netdp plan` of shuffling in spite of faults: how many hops?"""

    epsilon0: float
    delta: float = 1e-6
    outages: float = 0.0
    lost: float = 0.0
    absent: str = "unreachable"
    laziness: float = 0.0
    share: float = 0.01
    values: int | None = None

    def planned(self, progress: Progress | None = None) -> Plan:
        """How many hops, for a rate of faults?"""
        return plan_with_faults(
            self.network(), self.epsilon0, self.delta, outages=self.outages, lost=self.lost, absent=self.absent,
            laziness=self.laziness, share=self.share, values=self.values,
        )  # fmt: skip


class PlanRelayed(Planned):
    """`netdp plan` of shuffling through a server: how many hops, and how much cover?"""

    epsilon0: float
    delta: float = 1e-6
    bundles: int = 0
    laziness: float = 0.0
    share: float = 0.01
    values: int | None = None

    def planned(self, progress: Progress | None = None) -> Plan:
        """How many hops through a server that sees who sends to whom?"""
        return plan_relayed(
            self.network(), self.epsilon0, self.delta, bundles=self.bundles, laziness=self.laziness, share=self.share,
            values=self.values,
        )  # fmt: skip
