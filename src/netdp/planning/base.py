"""What every plan is: ways to do it, what each promises and costs, and which is best.

A plan promises a guarantee, not only a number: `option.guarantee` is the certified loss against the worst of the observers that the
plan covers, with its claim and its assumptions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netdp.numerics.arrays import Progress
from netdp.privacy import Guarantee
from netdp.privacy.readable import readable
from netdp.protocols import Protocol
from netdp.shown import shown
from netdp.utility import ExpectedError
from netdp.utility.limits import Limit


@dataclass(frozen=True, eq=False)
class Option:
    """One way: a protocol with its noise, what it promises, how good its answer is, what it costs.

    name        what distinguishes it from the other options
    protocol    ready to run
    guarantee   the certified loss against the worst observers that the plan covers
    error       of the answer (`protocol.answer`), predicted
    messages    that a party sends, on average
    """

    name: str
    protocol: Protocol
    guarantee: Guarantee
    error: ExpectedError
    messages: float

    @property
    def rmse(self) -> float:
        """Root of the predicted mean squared error."""
        return self.error.rmse

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        described = self.protocol.to_dict()
        network = self.protocol.network
        if network is not None:  # not every edge again in every option
            described["graph"] = {"name": network.name, "n": network.n, "m": network.m, "digest": network.digest}
        return {
            "name": self.name,
            "protocol": described,
            "claim": self.guarantee.claim.value,
            "found": None if self.guarantee.found is None else self.guarantee.found.to_dict(),
            "assumptions": list(self.guarantee.assumptions),
            "rmse": _number(self.rmse),
            "squared_error": {
                **{k: _number(v) for k, v in vars(self.error).items()},
                "total": _number(self.error.total),
            },
            "messages_per_party": self.messages,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The options at one target, beside local DP and a trusted curator at the same (ε, δ).

    epsilon, delta   what was asked for; ε is None where a policy states it per pair
    holds            for whom and against whom, in words
    local_rmse, curator_rmse   errors of the two classical ways at the target
    limit            the error that no protocol of messages between neighbours can go below, where one is proved
    """

    options: tuple[Option, ...]
    epsilon: float | None
    delta: float
    holds: str
    local_rmse: float
    curator_rmse: float
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    limit: Limit | None = field(default=None, kw_only=True)

    @property
    def best(self) -> Option:
        """The option of smallest predicted error."""
        return min(self.options, key=lambda option: option.rmse)

    @property
    def protocol(self) -> Protocol:
        """The protocol chosen."""
        return self.best.protocol

    @property
    def guarantee(self) -> Guarantee:
        """What the protocol chosen promises."""
        return self.best.guarantee

    @property
    def error(self) -> ExpectedError:
        """How good its answer will be."""
        return self.best.error

    def worst_epsilon(self, option: Option) -> float:
        """The ε that an option promises at the plan's δ."""
        return option.guarantee.worst_epsilon(self.delta)

    def option(self, name: str) -> Option | None:
        """The option of this name, if it was planned."""
        return next((option for option in self.options if option.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "holds": self.holds,
            "chosen": self.best.name,
            "options": [
                {**option.to_dict(), "worst_epsilon": _number(self.worst_epsilon(option))} for option in self.options
            ],
            "local_dp": {"rmse": _number(self.local_rmse)},
            "trusted_curator": {"rmse": _number(self.curator_rmse)},
            "limit": None if self.limit is None else self.limit.to_dict(),
            "notes": list(self.notes),
        }

    def plot(self, progress: Progress | None = None) -> Any:
        """A picture, a matplotlib figure: error against ε of every way, its noise smaller and larger, beside the classical two."""
        return shown("Plan.plot")(self, progress)

    def to_frame(self) -> Any:
        """A pandas table: a row per way with its certified ε, claim, predicted error and messages."""
        return shown("Plan.to_frame")(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return str(shown("Plan.html")(self))

    def __repr__(self) -> str:
        asked = "policy" if self.epsilon is None else f"epsilon={self.epsilon:g}"
        names = ", ".join(option.name for option in self.options)
        return f"{type(self).__name__}({asked}, delta={self.delta:g}, chosen {self.best.name!r} of: {names})"

    def __str__(self) -> str:
        asked = "the policy" if self.epsilon is None else f"ε ≤ {self.epsilon:g}"
        lines = [f"plan for {asked} at δ = {self.delta:g}; {self.holds}"]
        for option in self.options:
            mark = "*" if option is self.best else " "
            lines.append(
                f" {mark} {option.name}: ε = {readable(self.worst_epsilon(option))} ({option.guarantee.claim.value}), "
                f"error {readable(option.rmse)}"
            )
        lines.append(f"   local DP: error {readable(self.local_rmse)}; trusted curator: {readable(self.curator_rmse)}")
        if self.limit is not None:
            lines.append(f"   {self.limit.words}")
        lines.append(f"chosen: {self.protocol.describe()}")
        return "\n".join(lines)


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(np.float64(value))
