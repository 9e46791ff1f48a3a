"""How long reports must walk, and how noisy they must be, for network shuffling to be as good as a trusted shuffler.

Let ε̂ be the ε of the uniform shuffler at δ. The smallest crowd (share of the others, `netdp.accounting.shuffle.crowds`) whose
ε is at most (1 + share)·ε̂ is found, then the fewest rounds that are proved to give a crowd of that size to everybody, or to the
share `users` of all users: those at the tips of pendant trees need several times the hops of the others. Nothing rests on the
search: the ε reported is certified again for the rounds chosen, and rounds are added until it is met. ε₀ is rounded down to
four digits, and what is promised is certified for the rounded value.

Errors are those of the shares of two answers, yes and no: of binary randomized response with ε₀, and with the ε that is
promised (local DP); a trusted curator publishes one share with noise of deviation 1/(nμ(ε, δ)), and the other is its
complement: √2 times that.

Components of a graph that is not connected are planned for one by one, and the largest number of rounds is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netdp.accounting.heap.clones import Heap
from netdp.accounting.shuffle.baselines import trusted_sampler
from netdp.accounting.shuffle.mixing import Mixing, fewest_rounds_for, mixing
from netdp.accounting.shuffle.per_user import Part, Table, components, curves
from netdp.accounting.shuffle.shuffling import WORTH, curator_statement, hops_per_user, uniform_heap
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


@dataclass(frozen=True, eq=False, repr=False)
class ShufflePlan(Plan):
    """One way: reports that hop so often, beside a trusted shuffler and local privacy. `epsilon` is None if hops were asked for.

    uniform      ε of a trusted uniform shuffler with the same reports, at the same δ
    sampled      ε of a trusted server that shows √n of them, drawn in secret
    mixed        how far the walk has mixed, and how it is known
    users        the share of users for whom the ε is promised
    """

    uniform: float
    sampled: float
    mixed: Mixing
    users: float = 1.0

    @property
    def protocol(self) -> Shuffle:
        """With the rounds and the ε₀ chosen."""
        chosen = self.best.protocol
        assert isinstance(chosen, Shuffle)
        return chosen

    @property
    def promised(self) -> float:
        """The certified ε, for the curator, at the plan's δ, of the share `users` of all users."""
        found = np.sort(np.atleast_1d(self.guarantee.epsilon(self.delta)))
        return float(found[_rank(self.users, len(found))])

    @property
    def worst(self) -> float:
        """The certified ε of the worst placed user."""
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
            "sampled_epsilon": self.sampled,
            "users": self.users,
            "promised_epsilon": self.promised,
            "separation": {
                "bound": self.mixed.value,
                "method": self.mixed.method,
                "failure": self.mixed.failure,
            },
            "crowd": self.mixed.crowd(self.users),
        }

    def __str__(self) -> str:
        return (
            f"plan at δ = {self.delta:g}; {self.holds}\n   ε = {readable(self.promised)} "
            f"({self.guarantee.claim.value}); a trusted shuffler: {readable(self.uniform)}; a trusted sampler of √n "
            f"reports: {readable(self.sampled)}; without shuffling: {readable(self.protocol.epsilon0)}\n"
            f"chosen: {self.protocol.describe()}"
        )


def plan_rounds(
    graph: Graph,
    epsilon0: float,
    delta: float,
    share: float = 0.01,
    laziness: float = 0.0,
    reporting: str = "all",
    users: float = 1.0,
) -> ShufflePlan:
    """The fewest rounds for which the ε of all (or of the share `users`) is at most (1 + share) that of a trusted shuffler.

    >>> from netdp import graphs
    >>> found = plan_rounds(graphs.regular(500, 8, 0), epsilon0=1.0, delta=1e-4)
    >>> found.protocol.rounds, found.mixed.method, found.loss < 0.01
    (18, 'exact', True)
    """
    _check(delta, share, users)
    # refuses bipartite graphs, with the way out
    probe = Shuffle(graph, 1, epsilon0, reporting=reporting, laziness=laziness)
    parts = _planned(probe, delta, share, users)
    return _finished(probe.replace(rounds=parts[0].protocol.rounds), delta, parts, users)


def calibrate_epsilon0(
    graph: Graph,
    epsilon: float,
    delta: float,
    rounds: int | None = None,
    share: float = 0.01,
    laziness: float = 0.0,
    reporting: str = "all",
    users: float = 1.0,
) -> ShufflePlan:
    """The largest ε₀ (the least noise) whose certified ε is at most `epsilon`, by default with planned `rounds`.

    >>> from netdp import graphs
    >>> found = calibrate_epsilon0(graphs.regular(500, 8, 0), epsilon=0.25, delta=1e-4)
    >>> print(f"{found.protocol.epsilon0:.2f} {found.promised:.3f} {found.protocol.rounds}")
    1.46 0.250 18
    """
    _check(delta, share, users)
    if isinstance(epsilon, bool) or not (isinstance(epsilon, int | float) and math.isfinite(epsilon) and epsilon > 0):
        raise InvalidValue(f"epsilon must be a finite number > 0, got {epsilon!r}")
    probe = Shuffle(graph, rounds or 1, epsilon, reporting=reporting, laziness=laziness)
    if rounds is None:
        best = _largest_uniform(graph.n, epsilon, delta)
        if best >= _LARGEST or best <= epsilon * 1.001:
            raise Unsupported(
                f"shuffling does not matter for {graph.n} users and the target ε = {epsilon:g}, δ = {delta:g}: a trusted "
                f"shuffler would allow epsilon0 = {best:.3g}; give rounds, or use local DP with ε₀ = ε"
            )
        found = _planned(probe.replace(epsilon0=best), delta, share, users)
        probe = probe.replace(rounds=found[0].protocol.rounds)
    else:
        found = [Part(who, one, mixing(one)) for who, one in components(probe)]
    tables = [Table.of(part.protocol, part.mixed) for part in found]
    least_noise = rounded_down(_largest_epsilon0(tables, users, epsilon, delta))
    while True:
        parts = [Part(part.users, part.protocol.replace(epsilon0=least_noise), part.mixed) for part in found]
        plan = _finished(probe.replace(epsilon0=least_noise), delta, parts, users, float(epsilon))
        if plan.promised <= epsilon:
            return plan
        least_noise *= 1 - 1e-4  # bounds are found by search, and need not fall with ε₀ in their last digits


def _check(delta: float, share: float, users: float) -> None:
    if not (isinstance(delta, int | float) and 0 < delta < 1):
        raise InvalidValue(f"delta must lie in (0, 1), got {delta!r}")
    if not (isinstance(share, int | float) and 0 < share <= 1):
        raise InvalidValue(f"share must lie in (0, 1], the part of ε that imperfect mixing may cost, got {share!r}")
    if isinstance(users, bool) or not (isinstance(users, int | float) and 0 < users <= 1):
        raise InvalidValue(f"users must lie in (0, 1], the share of users that the promise is for, got {users!r}")


def refuse_if_large(uniform: float, epsilon0: float, delta: float) -> None:
    """Refuse a δ at which a trusted shuffler (its ε is `uniform`) gives everything away for nothing."""
    if uniform == 0:
        raise Unsupported(
            f"delta = {delta:g} is so large that shuffled reports of epsilon0 = {epsilon0:g} have ε = 0: there is nothing to plan; "
            "a smaller delta is meant, or a larger epsilon0 is allowed"
        )


def _rank(users: float, n: int) -> int:
    return min(n - 1, max(0, math.ceil(users * n - 1e-9) - 1))


def _planned(probe: Shuffle, delta: float, share: float, users: float) -> list[Part]:
    """The rounds at which every component that can gain has the crowd it needs, found and then certified."""
    found, needs = components(probe), []
    uniforms = [uniform_heap(one).epsilon(delta) for _, one in found]
    refuse_if_large(max(uniforms), probe.epsilon0, delta)
    for (_, one), uniform in zip(found, uniforms, strict=True):
        if uniform <= WORTH * one.epsilon0:
            needs.append((one, _smallest_crowd(one, uniform * (1 + share), delta)))
    if not needs:
        uniform = uniform_heap(probe).epsilon(delta)
        raise Unsupported(
            f"{max(one.n for _, one in found)} users are too few: even a trusted shuffler reveals ε = {uniform:.3g} at delta = "
            f"{delta:g}, of epsilon0 = {probe.epsilon0:g}; a larger delta, a smaller epsilon0 or more users are needed"
        )
    rounds = max(fewest_rounds_for(one.graph, one.laziness, crowd, users=users).rounds for one, crowd in needs)
    able = {id(one) for one, _ in needs}
    while True:
        parts = [Part(who, one.replace(rounds=rounds), mixing(one.replace(rounds=rounds))) for who, one in found]
        if all(
            _promised(part, delta, users) <= (1 + share) * uniform_heap(part.protocol).epsilon(delta) * (1 + 1e-9)
            for part, (_, one) in zip(parts, found, strict=True)
            if id(one) in able
        ):
            return parts
        rounds += max(1, rounds // 200)


def _promised(part: Part, delta: float, users: float) -> float:
    table = Table.of(part.protocol, part.mixed)
    return table.epsilon(table.group_of(users), delta)


def _finished(
    protocol: Shuffle, delta: float, parts: list[Part], users: float, epsilon: float | None = None
) -> ShufflePlan:
    # Between knots the curve is a chord above the truth; with a knot at the ε of this δ nothing is lost there.
    tables = [Table.of(part.protocol, part.mixed) for part in parts]
    knots = {table.epsilon(g, delta) for table in tables for g in {0, table.group_of(users)}}
    knots |= set() if epsilon is None else {epsilon}
    curve = curves(protocol, parts, knots=[knot for knot in sorted(knots) if knot <= protocol.epsilon0])
    if not curve.shape:
        curve = everywhere(curve, (protocol.n,))
    worst = max(parts, key=lambda part: part.mixed.value).mixed
    said = curator_statement(protocol, sum(part.mixed.failure for part in parts), curve)
    promise = replace(said, observers=Observers(roles=("curator",)), names=protocol.graph.labels)
    option = Option("shuffled", protocol, promise, largest_error(protocol), hops_per_user(protocol))
    uniform = max(uniform_heap(part.protocol).epsilon(delta) for part in parts)
    reached = float(np.sort(np.atleast_1d(promise.epsilon(delta)))[_rank(users, protocol.n)])
    holds = "holds for every user, against the curator"
    if users < 1:
        worst_off = readable(promise.worst_epsilon(delta))
        holds = f"holds for {100 * users:g} % of the users, against the curator; the worst: ε = {worst_off}"
    return ShufflePlan(
        (option,),
        epsilon,
        delta,
        holds,
        local_rmse=math.sqrt(RandomizedResponse(2, reached).squared_error(protocol.n)),
        curator_rmse=math.sqrt(2) / (protocol.n * float(gaussian_mu(reached, delta))),
        uniform=uniform,
        sampled=trusted_sampler(protocol).worst_epsilon(delta),
        mixed=worst,
        users=users,
    )


def _smallest_crowd(protocol: Shuffle, epsilon: float, delta: float) -> float:
    """The smallest share of the others, to a few parts in ten thousand, among whom the report has this ε."""
    low, high = 0.0, 1.0
    while high - low > 2e-4 * high:
        middle = (low + high) / 2
        heap = Heap.of(protocol.n - 1, protocol.epsilon0, keep=middle, delta0=protocol.delta0)
        low, high = (low, middle) if heap.deltas(epsilon)[0] <= delta else (middle, high)
    return min(high, 1 - 1e-6)


def _largest_uniform(n: int, epsilon: float, delta: float) -> float:
    return _largest(lambda epsilon0: bool(Heap.of(n - 1, epsilon0).deltas(epsilon)[0] <= delta), epsilon)


def _largest_epsilon0(tables: list[Table], users: float, epsilon: float, delta: float) -> float:
    """The largest ε₀ for which the share `users` has a certified (epsilon, delta); never below epsilon, true without shuffling."""
    asked = [(table, table.group_of(users)) for table in tables]

    def meets(epsilon0: float) -> bool:
        return all(
            replace(table, protocol=table.protocol.replace(epsilon0=epsilon0)).delta(g, epsilon) <= delta
            for table, g in asked
        )

    return _largest(meets, epsilon)


def _largest(meets: Any, epsilon: float) -> float:
    low, high = epsilon, max(2 * epsilon, 1.0)
    while meets(high):
        low, high = high, 2 * high
        if low > _LARGEST:
            return low
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low


__all__ = ["ShufflePlan", "calibrate_epsilon0", "plan_rounds"]
