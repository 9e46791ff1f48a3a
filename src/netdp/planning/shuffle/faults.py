"""How long reports must walk for a rate of faults, and how noisy they must be.

The trusted shuffler that a plan is held against shuffles the reports that arrive. Longer walks mix better and lose
more: the fewest rounds are taken for which the certified ε is at most (1 + share) times that shuffler's. Nothing
rests on the search: what is promised is certified again for the rounds chosen, before it is known who is away. After
a run, `account(protocol, "curator", transcript=run.pattern)` says what the faults that happened have cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from netdp.accounting import account
from netdp.accounting.shuffle.faults import feasible
from netdp.accounting.shuffle.outages import before, reaches, unharmed
from netdp.accounting.shuffle.shuffling import WORTH
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.mechanisms import RandomizedResponse
from netdp.numerics.rounding import rounded_down
from netdp.planning.base import Option, Plan
from netdp.planning.table import calibrations, checked_target
from netdp.privacy import gaussian_mu
from netdp.privacy.readable import readable
from netdp.protocols import FaultPattern, FaultyShuffle
from netdp.utility import expected_error

from .plan import refuse_if_large

_MOST_ROUNDS = 1 << 22
_FOLLOWED = 1500  # users up to which a plan follows all origins where nobody is away


@dataclass(frozen=True, eq=False, repr=False)
class FaultyPlan(Plan):
    """Reports that hop so often in spite of the faults, beside a trusted shuffler of those that arrive.

    uniform     ε of that shuffler, at the same δ
    faultless   rounds that would do if nobody were away and nothing lost
    """

    uniform: float
    faultless: int

    @property
    def protocol(self) -> FaultyShuffle:
        """With the rounds chosen."""
        chosen = self.best.protocol
        assert isinstance(chosen, FaultyShuffle)
        return chosen

    @property
    def promised(self) -> float:
        """The certified ε, for the curator, at the plan's δ, before it is known who is away."""
        return self.worst_epsilon(self.best)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {**super().to_dict(), "uniform_epsilon": self.uniform, "rounds_without_faults": self.faultless}

    def __str__(self) -> str:
        return (
            f"plan at δ = {self.delta:g}; {self.holds}\n   ε = {readable(self.promised)} ({self.guarantee.claim.value}); a "
            f"trusted shuffler of what arrives: {readable(self.uniform)}; without shuffling: "
            f"{readable(self.protocol.epsilon0)}\n   {self.protocol.rounds} hops; {self.faultless} would do without faults; "
            f"{self.protocol.arrives:.1%} of the reports arrive\nchosen: {self.protocol.describe()}"
        )


def plan_with_faults(
    graph: Graph | tuple[Graph, ...],
    epsilon0: float,
    delta: float,
    *,
    outages: float = 0.0,
    lost: float = 0.0,
    absent: str = "unreachable",
    laziness: float = 0.0,
    share: float = 0.01,
) -> FaultyPlan:
    """The fewest rounds whose certified ε is at most (1 + share) times that of a trusted shuffler of what arrives.

    >>> from netdp import graphs
    >>> found = plan_with_faults(graphs.regular(500, 8, 0), epsilon0=1.0, delta=1e-4, outages=0.2)
    >>> found.protocol.rounds, found.faultless, found.promised <= 1.01 * found.uniform
    (61, 19, True)
    """
    if not (isinstance(delta, int | float) and 0 < delta < 1):
        raise InvalidValue(f"delta must lie in (0, 1), got {delta!r}")
    if not (isinstance(share, int | float) and 0 < share <= 1):
        raise InvalidValue(f"share must lie in (0, 1], what imperfect mixing may cost as a part of ε, got {share!r}")
    probe = FaultyShuffle(graph, 1, epsilon0, outages=outages, lost=lost, absent=absent, laziness=laziness)
    rounds = _fewest(probe, delta, share)
    chosen = probe.replace(rounds=rounds)
    plain = _fewest(probe.replace(outages=0.0, lost=0.0), delta, share) if outages or lost else rounds
    guarantee = account(chosen, "curator")
    reached = guarantee.worst_epsilon(delta)
    option = Option("shuffled", chosen, guarantee, expected_error(chosen), rounds * (1 - laziness) * (1 - outages))
    return FaultyPlan(
        (option,),
        None,
        delta,
        "holds for every user, against the curator, before it is known who is away",
        local_rmse=math.sqrt(RandomizedResponse(2, reached).squared_error(chosen.n)),
        curator_rmse=math.sqrt(2) / (chosen.n * float(gaussian_mu(reached, delta))),
        uniform=unharmed(chosen).epsilon(delta),
        faultless=plain,
    )


def _fewest(probe: FaultyShuffle, delta: float, share: float) -> int:
    """The fewest rounds that meet the share; what is certified by closed form is searched, so that large graphs are quick."""

    def meets(rounds: int) -> bool:
        protocol = probe.replace(rounds=rounds)
        uniform = unharmed(protocol).epsilon(delta)
        refuse_if_large(uniform, protocol.epsilon0, delta)
        if uniform > WORTH * protocol.epsilon0:  # too few arrive for anybody to be hidden
            return False
        target = (1 + share) * uniform
        if not protocol.outages and protocol.n <= _FOLLOWED and feasible(protocol):  # nothing is left to chance
            return account(protocol, "curator").worst_epsilon(delta) <= target
        return reaches(protocol, before(protocol), target, delta)

    high = 1
    while not meets(high):
        high *= 2
        longer = probe.replace(rounds=high)
        if high > _MOST_ROUNDS or unharmed(longer).epsilon(delta) > WORTH * probe.epsilon0:
            raise Unsupported(
                f"{probe.describe()}: no number of hops is proved to come within {share:g} of a trusted shuffler; a larger share, "
                "fewer losses, more users or links, or laziness if the graph is bipartite or nearly so"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def hops_given(
    protocol: FaultyShuffle, pattern: FaultPattern, delta: float, *, epsilon: float | None = None, share: float = 0.01
) -> int:
    """After how many rounds of this pattern users may stop: the loss given the pattern so far meets the target then.

    Who is away is public and depends on no report, so a rule for stopping that looks at nothing else keeps the guarantee given
    the pattern. The target is ε at δ, by default (1 + share) times that of a trusted shuffler of what arrives.

    >>> from netdp import graphs
    >>> p = FaultyShuffle(graphs.regular(300, 8, 0), rounds=80, epsilon0=1.0, outages=0.2)
    >>> hops_given(p, p.pattern(seed=1), 1e-4) < 40 < plan_with_faults(p.graphs[0], 1.0, 1e-4, outages=0.2).protocol.rounds
    True
    """
    whole = protocol.checked(pattern)
    if epsilon is not None:
        epsilon, delta = checked_target(epsilon, delta)

    def meets(rounds: int) -> bool:
        shorter = protocol.replace(rounds=rounds)
        links = (tuple(one for one in which if one[0] < rounds) for which in (whole.severed, whole.barred))
        so_far = FaultPattern(whole.away[:rounds], whole.crashed[:rounds], *links)
        target = (1 + share) * unharmed(shorter).epsilon(delta) if epsilon is None else epsilon
        return account(shorter, "curator", transcript=so_far).worst_epsilon(delta) <= target

    high = 1
    while not meets(high):
        if high == protocol.rounds:
            raise Unsupported(
                f"{protocol.rounds} rounds of this pattern are not enough at δ = {delta:g}; go on, or ask for less"
            )
        high = min(2 * high, protocol.rounds)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


@calibrations.register
def _calibrated(protocol: FaultyShuffle, epsilon: float, delta: float) -> FaultyShuffle:
    level, delta = checked_target(epsilon, delta)
    if protocol.delta0:
        raise Unsupported(
            f"delta0={protocol.delta0:g}: reports are calibrated for pure randomizers; set delta0=0, or choose epsilon0 yourself"
        )
    if level == 0:
        raise InvalidValue(f"epsilon must be > 0 for randomized reports, got {epsilon!r}")
    random = bool(protocol.outages) or not feasible(protocol)
    ways = before(protocol) if random or protocol.crashes else None

    def meets(epsilon0: float) -> bool:
        trial = protocol.replace(epsilon0=epsilon0)
        if ways is not None:
            return level >= epsilon0 or reaches(trial, ways, level, delta)
        return account(trial, "curator").worst_epsilon(delta) <= level

    low, high = level, max(2 * level, 1.0)
    while meets(high):
        low, high = high, 2 * high
        if low > 60:
            break
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    found = protocol.replace(epsilon0=rounded_down(low))
    # δ(ε) is kept as a table and read along chords: what is handed out shall pass its own account
    while account(found, "curator").worst_epsilon(delta) > level:
        found = found.replace(epsilon0=found.epsilon0 * (1 - 1e-3))
        if found.epsilon0 <= level:
            return found.replace(epsilon0=level)
    return found


__all__ = ["FaultyPlan", "hops_given", "plan_with_faults"]
