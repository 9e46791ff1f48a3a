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
from netdp.accounting.shuffle.baselines import trusted_sampler
from netdp.errors import NetdpError
from netdp.numerics.arrays import Progress, jsonable
from netdp.privacy import Claim, Guarantee
from netdp.privacy.readable import readable
from netdp.protocols import Shuffle
from netdp.utility import ExpectedError

from .accuracy import error_dict, error_words, predicted


@dataclass(frozen=True)
class Comparison:
    """The losses of one protocol and the error of its answer; an alternative that does not apply is the reason why."""

    protocol: Any
    delta: float
    certified: Guarantee
    alternatives: dict[str, Guarantee | str]
    error: ExpectedError | str

    def epsilon(self, guarantee: Guarantee) -> float:
        """The worst ε over all parties."""
        return guarantee.worst_epsilon(self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        protocol = self.protocol.to_dict()
        graph = self.protocol.network
        if graph is not None:  # not every edge again
            protocol["graph"] = {"name": graph.name, "n": graph.n, "m": graph.m, "digest": graph.digest}
        return {
            "protocol": protocol,
            "observers": self.certified.observers.to_dict(),
            "delta": self.delta,
            "epsilon": jsonable(np.asarray(self.epsilon(self.certified))),
            "claim": self.certified.claim.value,
            "adjacency": self.certified.adjacency.value,
            "assumptions": list(self.certified.assumptions),
            "references": list(self.certified.references),
            "error": error_dict(self.error),
            "loss": self.certified.to_dict(self.delta),
            "alternatives": {
                name: {"not_available": other}
                if isinstance(other, str)
                else {"epsilon": jsonable(np.asarray(self.epsilon(other))), "claim": other.claim.value}
                for name, other in self.alternatives.items()
            },
        }

    def __str__(self) -> str:
        lines = [self.protocol.describe(), self.question]
        lines.append(f"  {self.certified.claim.label}: {loss_words(self.certified, self.delta)}")
        for name, other in self.alternatives.items():
            lines.append(f"  {name}: {other if isinstance(other, str) else loss_words(other, self.delta)}")
        return "\n".join([*lines, error_words(self.protocol, self.error)])

    @property
    def question(self) -> str:
        """What the numbers answer."""
        return f"What {self.certified.observers.words} can learn about a party: worst ε at δ = {self.delta:g}"


def compare(
    protocol: Any, observers: Any, delta: float, progress: Progress | None = None, *, colluders: int | None = None
) -> Comparison:
    """Account for the protocol, and for what one might do or believe instead; against `observers`, or any `colluders`."""
    against: dict[str, Any] = {} if colluders is None else {"colluders": colluders}
    certified = account(protocol, observers, progress=progress, **against)
    others: dict[str, Guarantee | str] = {}
    named = observers  # published formulas know named colluders only, or their number
    if observers is None:
        named = [*protocol.roles, *range(colluders or 1)]
    ways: dict[str, Callable[[], Guarantee]] = {
        "published (not a bound)": lambda: account(protocol, named, method="published"),
        "local DP": lambda: local_dp(protocol),
        "trusted shuffler" if protocol.roles else "trusted curator": lambda: trusted_curator(protocol),
    }
    if isinstance(protocol, Shuffle):
        ways["trusted sampler of √n reports"] = lambda: trusted_sampler(protocol)
    for name, make in ways.items():
        try:
            others[name] = make()
        except NetdpError as problem:
            others[name] = str(problem)
    return Comparison(protocol, delta, certified, others, predicted(protocol))


def loss_words(loss: Guarantee, delta: float) -> str:
    """The worst ε for a table. Without bound it is not nothing, but everything; or more than an upper bound can tell."""
    epsilon = loss.worst_epsilon(delta)
    if not np.isinf(epsilon):
        return readable(epsilon)
    return "∞ (no protection)" if loss.claim is Claim.EXACT else "∞ (no finite bound at this δ)"


def comparison_table(comparison: Comparison) -> RenderableType:
    """For a terminal."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    certified = comparison.certified
    style = "bold green" if certified.is_certified else "bold yellow"
    table.add_row(certified.claim.label, loss_words(certified, comparison.delta), "", style=style)
    for name, other in comparison.alternatives.items():
        if isinstance(other, str):
            table.add_row(name, "–", other)
        else:
            table.add_row(name, loss_words(other, comparison.delta), "")
    assumed = [Text(f"  {line}", style="dim") for line in certified.assumptions]
    found = certified.found
    worst = [] if found is None else [Text(f"\nworst that was found: {found.sentence(comparison.delta)}")]
    return Group(
        Text(comparison.protocol.describe()),
        Text(f"{comparison.question}\n", style="bold"),
        table,
        *worst,
        Text(f"\n{error_words(comparison.protocol, comparison.error)}"),
        Text("\nassumes:"),
        *assumed,
    )
