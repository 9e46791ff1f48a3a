"""One protocol beside its alternatives at one δ: the certified loss, the paper's formula, local DP, a trusted curator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdp.accounting import account, local_dp, trusted_curator
from netdp.errors import NetdpError
from netdp.numerics.arrays import Progress, jsonable
from netdp.privacy import Guarantee
from netdp.privacy.readable import readable
from netdp.protocols import Shuffle


@dataclass(frozen=True)
class Comparison:
    """The losses of one protocol; an alternative that does not apply is the reason why."""

    protocol: Any
    delta: float
    certified: Guarantee
    alternatives: dict[str, Guarantee | str]

    def epsilon(self, guarantee: Guarantee) -> float:
        """The worst ε over all parties."""
        return guarantee.worst_epsilon(self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "protocol": self.protocol.to_dict(),
            "delta": self.delta,
            "epsilon": jsonable(np.asarray(self.epsilon(self.certified))),
            "claim": self.certified.claim.value,
            "adjacency": self.certified.adjacency.value,
            "assumptions": list(self.certified.assumptions),
            "references": list(self.certified.references),
            "alternatives": {
                name: {"not_available": other}
                if isinstance(other, str)
                else {"epsilon": jsonable(np.asarray(self.epsilon(other))), "claim": other.claim.value}
                for name, other in self.alternatives.items()
            },
        }


def compare(protocol: Any, observers: Any, delta: float, progress: Progress | None = None) -> Comparison:
    """Account for the protocol, and for what one might do or believe instead."""
    certified = account(protocol, observers, progress=progress)
    others: dict[str, Guarantee | str] = {}
    ways: dict[str, Callable[[], Guarantee]] = {
        "published (not a bound)": lambda: account(protocol, observers, method="published"),
        "local DP": lambda: local_dp(protocol),
        "trusted shuffler" if isinstance(protocol, Shuffle) else "trusted curator": lambda: trusted_curator(protocol),
    }
    for name, make in ways.items():
        try:
            others[name] = make()
        except NetdpError as problem:
            others[name] = str(problem)
    return Comparison(protocol, delta, certified, others)


def comparison_table(comparison: Comparison, subject: str, question: str) -> RenderableType:
    """For a terminal."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    certified = comparison.certified
    table.add_row(
        f"certified ({certified.claim.value})", readable(comparison.epsilon(certified)), "", style="bold green"
    )
    for name, other in comparison.alternatives.items():
        if isinstance(other, str):
            table.add_row(name, "–", other)
        else:
            value = comparison.epsilon(other)
            table.add_row(name, "nothing" if np.isinf(value) else readable(value), "")
    assumed = [Text(f"  {line}", style="dim") for line in certified.assumptions]
    return Group(Text(subject), Text(f"{question}\n", style="bold"), table, Text("\nassumes:"), *assumed)
