"""What `netdp plan` and `netdp simulate` take for a masked sum."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from netdp.families.masked.plan import plan_masked
from netdp.families.masked.protocol import MaskedSum
from netdp.numerics.arrays import Progress
from netdp.protocols.planning import Plan
from netdp.settings.models import Advised, RecordSettings, _words


class RunMasked(RecordSettings):
    """`netdp simulate` of a masked sum."""

    def made(self) -> MaskedSum:
        """The protocol; the middle of the public interval, if one is stated, is its centre."""
        protocol = super().made()
        assert isinstance(protocol, MaskedSum)
        if self.bounds is None or "centre" in self.model_fields_set:
            return protocol
        return protocol.replace(centre=sum(self.bounds) / 2)


class PlanMasked(Advised):
    """`netdp plan` of a masked sum."""

    epsilon: float
    delta: float = 1e-6
    colluders: int = 1
    sensitivity: float = 1.0
    attempts: int = 1
    absent: Annotated[int, BeforeValidator(_words)] = 0
    grid: float | None = None
    law: str | None = None
    links_for: ClassVar[str] = "flood"

    def planned(self, progress: Progress | None = None) -> Plan:
        """The noise against any so many parties, and both ways of spreading."""
        return plan_masked(
            self.network(), self.epsilon, self.delta, colluders=self.colluders,
            sensitivity=self.sensitivity, attempts=self.attempts, absent=self.absent, grid=self.grid, law=self.law,
        )  # fmt: skip

    def links_options(self) -> dict[str, Any]:
        """The target, against any so many parties, and what the sum must survive."""
        masked = {"attempts": self.attempts, "absent": self.absent, "grid": self.grid, "law": self.law}
        return {
            "epsilon": self.epsilon, "delta": self.delta, "colluders": self.colluders, "sensitivity": self.sensitivity,
            "masked": masked,
        }  # fmt: skip
