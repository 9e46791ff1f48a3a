"""What a run really gave away, known afterwards from what its parties told.

A promise is made before anything is sent. Where chance or absences had a part, whoever collects the outcomes of all parties
(`netdp up`, where they run on one machine) can say more: which exchanges happened, where tokens went, and what follows from that.
It is never entered in a ledger: it holds only if nobody steered the run after looking, and the promise holds anyway
(docs/proofs/peers.md#steered).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from netdp.protocols.views import Transcript


class Hindsight(ABC):
    """What one run gave away. A family derives its own class from this one (`Kind.looked_back`)."""

    key: ClassVar[str]
    """Under which it stands in the result of `netdp up --json`."""

    holds_if: ClassVar[str]
    """What else must hold, printed wherever such a loss is shown."""

    @property
    @abstractmethod
    def course(self) -> Any:
        """What happened, as `netdp.account(protocol, transcript=…)` takes it."""

    def messages(self, n: int) -> Transcript | None:
        """The same as messages by round among n parties, for pictures and counts; None: as they were sent."""
        return None

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
