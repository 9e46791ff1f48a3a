"""How long reports must walk through a server that sees all traffic, and how much cover traffic that takes.

The hops are those of `plan_rounds` for direct links, with half of the share; the cover is the least c whose overflow
probability p costs at most the other half at the ε of the trusted shuffler. The table of c against p is part of the
plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.accounting.shuffle.bundles import fewest_rounds, uniform_heap
from netdp.accounting.shuffle.relay import overflow, overflows
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.mechanisms import RandomizedResponse
from netdp.numerics.rounding import rounded_down
from netdp.planning.base import Option, Plan
from netdp.planning.table import calibrations, checked_target
from netdp.privacy import gaussian_mu
from netdp.privacy.readable import readable
from netdp.protocols import RelayedShuffle
from netdp.protocols.relayed_shuffle import OVERFLOW
from netdp.utility import expected_error

from .plan import plan_rounds, refuse_if_large

MOST_COVER = 64


@dataclass(frozen=True, eq=False, repr=False)
class RelayPlan(Plan):
    """Reports that hop through a server under the traffic rule, beside a trusted shuffler.

    uniform     ε of the trusted shuffler, at the same δ
    overflow    for a cover of 1, 2, …: the probability that some link would have to carry more
    """

    uniform: float
    overflow: tuple[float, ...]

    @property
    def protocol(self) -> RelayedShuffle:
        """With rounds and cover chosen."""
        chosen = self.best.protocol
        assert isinstance(chosen, RelayedShuffle)
        return chosen

    @property
    def promised(self) -> float:
        """The certified ε, for the server, at the plan's δ."""
        return self.worst_epsilon(self.best)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {**super().to_dict(), "uniform_epsilon": self.uniform, "overflow_by_cover": list(self.overflow)}

    def __str__(self) -> str:
        chosen = self.protocol
        return (
            f"plan at δ = {self.delta:g}; {self.holds}\n   ε = {readable(self.promised)} ({self.guarantee.claim.value}); a "
            f"trusted shuffler: {readable(self.uniform)}; without shuffling: {readable(chosen.epsilon0)}\n   "
            f"{chosen.envelopes:,.0f} envelopes per user ({chosen.rounds} hops); some report waits with probability < "
            f"{OVERFLOW if chosen.bundles else overflow(chosen):.0e}\nchosen: {chosen.describe()}"
        )


def plan_relayed(
    graph: Graph, epsilon0: float, delta: float, *, share: float = 0.01, laziness: float = 0.0, bundles: int = 0
) -> RelayPlan:
    """The fewest rounds and then the least cover for which δ at the trusted shuffler's ε is at most (1 + share)·delta.

    With `bundles` = k, the fewest rounds under that rule for which ε at δ is at most (1 + share) times the trusted shuffler's.

    >>> from netdp import graphs
    >>> found = plan_relayed(graphs.regular(500, 8, 0), epsilon0=1.0, delta=1e-4)
    >>> found.protocol.cover, found.promised < 1.01 * found.uniform
    (7, True)
    """
    if not (isinstance(share, int | float) and 0 < share <= 1):
        raise InvalidValue(f"share must lie in (0, 1], the part of delta that imperfection may cost, got {share!r}")
    if bundles:
        return _bundled(RelayedShuffle(graph, 1, epsilon0, laziness=laziness, bundles=bundles), delta, share)
    direct = plan_rounds(graph, epsilon0, delta, share=share / 2, laziness=laziness)
    shuffle = direct.protocol
    table = overflows(shuffle, MOST_COVER)
    at = direct.uniform
    price = math.expm1(at) + 2 * (math.exp(epsilon0) - math.exp(at)) / (math.exp(epsilon0) + 1)
    enough = np.flatnonzero(np.array(table) * price <= share / 2 * delta)
    if not enough.size:
        raise Unsupported(
            f"{graph!r}: even {MOST_COVER} envelopes on every link in every round overflow with probability {table[-1]:.1g}; a "
            "larger delta or share is needed"
        )
    chosen = RelayedShuffle(graph, shuffle.rounds, epsilon0, cover=int(enough[0]) + 1, laziness=laziness)
    return _finished(chosen, delta, direct.uniform, tuple(table[: chosen.cover + 4]))


def _bundled(probe: RelayedShuffle, delta: float, share: float) -> RelayPlan:
    if not (isinstance(delta, int | float) and 0 < delta < 1):
        raise InvalidValue(f"delta must lie in (0, 1), got {delta!r}")
    uniform = uniform_heap(probe).epsilon(delta)
    refuse_if_large(uniform, probe.epsilon0, delta)
    rounds = fewest_rounds(probe, (1 + share) * uniform, delta)
    return _finished(probe.replace(rounds=rounds), delta, uniform, ())


def _finished(chosen: RelayedShuffle, delta: float, uniform: float, table: tuple[float, ...]) -> RelayPlan:
    guarantee = account(chosen, "curator")
    reached = guarantee.worst_epsilon(delta)
    option = Option("relayed", chosen, guarantee, expected_error(chosen), chosen.envelopes)
    return RelayPlan(
        (option,),
        None,
        delta,
        "holds for every user, against the server that relays and collects",
        local_rmse=math.sqrt(RandomizedResponse(2, reached).squared_error(chosen.n)),
        curator_rmse=math.sqrt(2) / (chosen.n * float(gaussian_mu(reached, delta))),
        uniform=uniform,
        overflow=table,
    )


@calibrations.register
def _calibrated(protocol: RelayedShuffle, epsilon: float, delta: float) -> RelayedShuffle:
    level, delta = checked_target(epsilon, delta)
    if level == 0:
        raise InvalidValue(f"epsilon must be > 0 for randomized reports, got {epsilon!r}")
    if protocol.delta0:
        raise Unsupported(
            f"delta0={protocol.delta0:g}: reports are calibrated for pure randomizers; set delta0=0, or choose epsilon0 yourself"
        )
    if not (protocol.cover or protocol.bundles):
        # at δ the report alone allows (e^ε₀ − e^ε)/(e^ε₀ + 1) ≤ δ
        best = math.log((math.exp(level) + delta) / (1 - delta)) if level < 600 else level
        return protocol.replace(epsilon0=rounded_down(best) if rounded_down(best) > level else level)

    def meets(epsilon0: float) -> bool:
        return account(protocol.replace(epsilon0=epsilon0), "curator").worst_epsilon(delta) <= level

    high: float = calibrations(protocol.direct, epsilon, delta).epsilon0  # without overflows
    if meets(high):
        return protocol.replace(epsilon0=high)
    low = level
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return protocol.replace(epsilon0=rounded_down(low) if meets(rounded_down(low)) else low)


__all__ = ["RelayPlan", "plan_relayed"]
