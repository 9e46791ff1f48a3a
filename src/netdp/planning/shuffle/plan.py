"""How long reports must walk, and how noisy they must be, for network shuffling to be as good as a trusted shuffler.

At ε̂, the ε of the uniform shuffler at δ, a walk of separation s is worth δ_s(ε̂) ≥ δ_0(ε̂) = δ; both come from
`clones`. The largest s with δ_s(ε̂) − δ_0(ε̂) ≤ share·δ is found, then the fewest rounds that are proved to reach it.
Nothing rests on the search: the ε reported is certified again for the rounds chosen. ε₀ is rounded down to four digits, and
what is promised is certified for the rounded value.

Errors are those of the shares of two answers, yes and no: of binary randomized response with ε₀, and with the ε that is
promised (local DP); a trusted curator publishes one share with noise of deviation 1/(nμ(ε, δ)), and the other is its
complement: √2 times that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netdp.accounting.heap.clones import Heap
from netdp.accounting.shuffle.separation import Separation, fewest_rounds, separation
from netdp.accounting.shuffle.shuffling import WORTH, curator_heap, curator_statement, hops_per_user
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.mechanisms import RandomizedResponse
from netdp.numerics.rounding import rounded_down
from netdp.planning.base import Option, Plan
from netdp.privacy import Observers, everywhere, gaussian_mu
from netdp.privacy.readable import readable
from netdp.protocols import Shuffle
from netdp.utility.shuffle import largest_error

_LARGEST = 60.0  # ε₀ above this is not searched


@dataclass(frozen=True, eq=False)
class ShufflePlan(Plan):
    """One way: reports that hop so often, beside a trusted shuffler and local privacy. `epsilon` is None if hops were asked for.

    uniform      ε of a trusted uniform shuffler with the same reports, at the same δ
    mixed        the separation of the walk, and how it is known
    """

    uniform: float
    mixed: Separation

    @property
    def protocol(self) -> Shuffle:
        """With the rounds and the ε₀ chosen."""
        chosen = self.best.protocol
        assert isinstance(chosen, Shuffle)
        return chosen

    @property
    def promised(self) -> float:
        """The certified ε, for the curator, at the plan's δ."""
        return self.worst_epsilon(self.best)

    @property
    def loss(self) -> float:
        """What walking costs against the trusted shuffler, as a share of its ε."""
        return self.promised / self.uniform - 1 if self.uniform else 0.0

    @property
    def hops(self) -> float:
        """Reports that a user passes on, on average."""
        return self.best.messages

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        graph = self.protocol.graph
        return {
            "graph": {"name": graph.name, "n": graph.n, "m": graph.m, "digest": graph.digest},
            **super().to_dict(),
            "uniform_epsilon": self.uniform,
            "separation": {
                "bound": self.mixed.value,
                "method": self.mixed.method,
                "failure": self.mixed.failure,
            },
        }

    def __str__(self) -> str:
        return (
            f"plan at δ = {self.delta:g}; {self.holds}\n   ε = {readable(self.promised)} "
            f"({self.guarantee.claim.value}); a trusted shuffler: {readable(self.uniform)}; without shuffling: "
            f"{readable(self.protocol.epsilon0)}\nchosen: {self.protocol.describe()}"
        )


def plan_rounds(
    graph: Graph,
    epsilon0: float,
    delta: float,
    share: float = 0.01,
    laziness: float = 0.0,
    reporting: str = "all",
) -> ShufflePlan:
    """The fewest rounds for which δ at the trusted shuffler's ε is at most (1 + share)·delta.

    >>> from netdp import graphs
    >>> found = plan_rounds(graphs.regular(500, 8, 0), epsilon0=1.0, delta=1e-4)
    >>> found.protocol.rounds, found.mixed.method, found.loss < 0.01
    (36, 'exact', True)
    """
    _check(delta, share)
    probe = Shuffle(
        graph, 1, epsilon0, reporting=reporting, laziness=laziness
    )  # refuses bipartite graphs, with the way out
    aim, uniform = _largest_separation(probe, delta, share)
    mixed = fewest_rounds(graph, probe.laziness, aim)
    return _finished(probe.replace(rounds=mixed.rounds), delta, uniform, mixed)


def calibrate_epsilon0(
    graph: Graph,
    epsilon: float,
    delta: float,
    rounds: int | None = None,
    share: float = 0.01,
    laziness: float = 0.0,
    reporting: str = "all",
) -> ShufflePlan:
    """The largest ε₀ (the least noise) whose certified ε is at most `epsilon`, by default with planned `rounds`.

    >>> from netdp import graphs
    >>> found = calibrate_epsilon0(graphs.regular(500, 8, 0), epsilon=0.25, delta=1e-4)
    >>> print(f"{found.protocol.epsilon0:.2f} {found.promised:.3f} {found.protocol.rounds}")
    1.46 0.250 37
    """
    _check(delta, share)
    if isinstance(epsilon, bool) or not (isinstance(epsilon, int | float) and math.isfinite(epsilon) and epsilon > 0):
        raise InvalidValue(f"epsilon must be a finite number > 0, got {epsilon!r}")
    probe = Shuffle(graph, rounds or 1, epsilon, reporting=reporting, laziness=laziness)
    if rounds is None:
        best = _largest_epsilon0(graph.n, 0.0, epsilon, delta)
        if best >= _LARGEST or best <= epsilon * 1.001:
            raise Unsupported(
                f"shuffling does not matter for {graph.n} users and the target ε = {epsilon:g}, δ = {delta:g}: a trusted "
                f"shuffler would allow epsilon0 = {best:.3g}; give rounds, or use local DP with ε₀ = ε"
            )
        aim, _ = _largest_separation(probe.replace(epsilon0=best), delta, share)
        mixed = fewest_rounds(graph, probe.laziness, aim)
    else:
        mixed = separation(probe)
    least_noise = rounded_down(_largest_epsilon0(graph.n, mixed.value, epsilon, delta))
    found = probe.replace(rounds=mixed.rounds, epsilon0=least_noise)
    uniform = curator_heap(found, 0.0).epsilon(delta)
    plan = _finished(found, delta, uniform, mixed, float(epsilon))
    assert plan.promised <= epsilon
    return plan


def _check(delta: float, share: float) -> None:
    if not (isinstance(delta, int | float) and 0 < delta < 1):
        raise InvalidValue(f"delta must lie in (0, 1), got {delta!r}")
    if not (isinstance(share, int | float) and 0 < share <= 1):
        raise InvalidValue(f"share must lie in (0, 1], the part of delta that imperfect mixing may cost, got {share!r}")


def _finished(
    protocol: Shuffle, delta: float, uniform: float, mixed: Separation, epsilon: float | None = None
) -> ShufflePlan:
    heap = curator_heap(protocol, mixed.value)
    reached = heap.epsilon(delta)
    # Between knots the curve is a chord above the truth; with a knot at the ε of this δ nothing is lost there.
    knots = np.append(heap.profile().epsilons, reached)
    curve = everywhere(heap.profile(knots), (protocol.n,))
    promise = replace(
        curator_statement(protocol, mixed, curve), observers=Observers(roles=("curator",)), names=protocol.graph.labels
    )
    option = Option("shuffled", protocol, promise, largest_error(protocol), hops_per_user(protocol))
    return ShufflePlan(
        (option,),
        epsilon,
        delta,
        "holds for every user, against the curator",
        local_rmse=math.sqrt(RandomizedResponse(2, reached).squared_error(protocol.n)),
        curator_rmse=math.sqrt(2) / (protocol.n * float(gaussian_mu(reached, delta))),
        uniform=uniform,
        mixed=mixed,
    )


def _largest_separation(protocol: Shuffle, delta: float, share: float) -> tuple[float, float]:
    """The largest s (to a few per cent) that costs at most share·delta, and the uniform shuffler's ε."""
    heap = curator_heap(protocol, 0.0)
    uniform = heap.epsilon(delta)
    if uniform > WORTH * protocol.epsilon0:
        raise Unsupported(
            f"{protocol.n} users are too few: even a trusted shuffler reveals ε = {uniform:.3g} at delta = {delta:g}, of "
            f"epsilon0 = {protocol.epsilon0:g}; a larger delta, a smaller epsilon0 or more users are needed"
        )
    base = float(heap.deltas(uniform)[0])
    allowed = share * delta
    high = min(0.5, allowed / float(heap.local(np.array([uniform]))[0]))  # being told whose it is costs this much alone
    low = high / 1024
    for _ in range(12):
        middle = math.sqrt(low * high)
        cost = float(curator_heap(protocol, middle).deltas(uniform)[0]) - base
        low, high = (middle, high) if cost <= allowed else (low, middle)
    return low, uniform


def _largest_epsilon0(n: int, s: float, epsilon: float, delta: float) -> float:
    """The largest ε₀ with a certified (epsilon, delta); never below epsilon, which is true without any shuffling."""

    def meets(epsilon0: float) -> bool:
        return bool(Heap.of(n - 1, epsilon0, keep=1 - s, told=s).deltas(epsilon)[0] <= delta)

    low, high = epsilon, max(2 * epsilon, 1.0)
    while meets(high):
        low, high = high, 2 * high
        if low > _LARGEST:
            return low
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low


__all__ = ["ShufflePlan", "calibrate_epsilon0", "plan_rounds"]
