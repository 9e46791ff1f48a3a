"""What `netdp plan` takes for a token."""

from __future__ import annotations

from typing import Any

from netdp.errors import InvalidValue
from netdp.families.token.plan import plan_token, plan_token_on
from netdp.numerics.arrays import Progress
from netdp.protocols.planning import Plan
from netdp.settings.models import Planned, users


class PlanToken(Planned):
    """`netdp plan` of a token."""

    epsilon: float
    delta: float = 1e-6
    visits: int | None = None
    colluders: int = 1
    sensitivity: float = 1.0

    def planned(self, progress: Progress | None = None) -> Plan:
        """Which way to send a token round has the least error for this target?"""
        options: dict[str, Any] = {"sensitivity": self.sensitivity, "colluders": self.colluders, "progress": progress}
        options |= {} if self.visits is None else {"visits": self.visits}
        if self.graph.startswith("complete:"):  # no graph has to be built
            return plan_token(users(self.graph), self.epsilon, self.delta, **options)
        return plan_token_on(self.network(), self.epsilon, self.delta, **options)

    def check_links(self) -> None:
        """Refuse links where there are all."""
        super().check_links()
        if self.links and self.graph.startswith("complete:"):
            raise InvalidValue(
                f"--links {self.links}: everybody is linked with everybody in {self.graph}; leave it out"
            )
