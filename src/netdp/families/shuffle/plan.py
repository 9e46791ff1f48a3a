"""How long reports must walk, and how noisy they must be, for network shuffling to be as good as a trusted shuffler.

Let ε̂ be the trusted shuffler's ε at δ. The fewest rounds are sought for which the certified ε is at most (1 + share)·ε̂, for
everybody or for the share `users` of all users: those at the tips of pendant trees need several times the hops of the others.
With faults that shuffler shuffles the reports that arrive: longer walks mix better and lose more. Through a server the hops
are those of direct links with half of the share, and the cover is the least c that costs at most the other half. Nothing rests
on the search: what is promised is certified again for the rounds chosen. ε₀ is rounded down to four digits.

Errors are those of the shares of two answers, yes and no: of binary randomized response with ε₀, and with the ε that is
promised (local DP); a trusted curator publishes one share with noise of deviation 1/(nμ(ε, δ)), and the other is its
complement: √2 times that. With `values` = k they are those of k shares: of k-ary response, and √(2(k − 1))/(nμ) of a curator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.account import relay
from netdp.families.shuffle.account.faults import before, feasible, meets_calm, unharmed
from netdp.families.shuffle.account.hiding import reaches
from netdp.families.shuffle.account.mixing import fewest, fewest_rounds_for
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.account.relay import fewest_rounds, overflow, overflows
from netdp.families.shuffle.account.shuffling import (
    WORTH,
    Part,
    UserCurves,
    components,
    curator_statement,
    curves,
    mixed_components,
    trusted_sampler,
    uniform_heap,
)
from netdp.families.shuffle.error import largest_error
from netdp.families.shuffle.protocol import OVERFLOW, FaultPattern, FaultyShuffle, RelayedShuffle, Shuffle
from netdp.graphs.graph import Graph
from netdp.mechanisms.laplace import Laplace
from netdp.numerics.arrays import rounded_down
from netdp.privacy.curves import everywhere
from netdp.privacy.observers import Observers
from netdp.privacy.wording import readable
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import expected_error
from netdp.protocols.calibration import calibrations, checked_target
from netdp.protocols.links import LinkCost, Linking, Sought
from netdp.protocols.planning import Asked, Option, Plan, rank, share_baselines

_CURATOR = "a curator, against whom alone it protects"

_LARGEST = 60.0  # ε₀ above this is not searched


def plan_rounds(
    graph: Graph,
    epsilon0: float,
    delta: float,
    share: float = 0.01,
    laziness: float = 0.0,
    reporting: str = "all",
    users: float = 1.0,
    values: int | None = None,
) -> Plan:
    """The fewest rounds for which the ε of all (or of the share `users`) is at most (1 + share) that of a trusted shuffler.

    `values` as of a `Shuffle`: reports of so many-ary randomized response.

    >>> from netdp import graphs
    >>> found = plan_rounds(graphs.regular(500, 8, 0), epsilon0=1.0, delta=1e-4)
    >>> found.protocol.rounds, found.mixed.method, found.loss < 0.01
    (18, 'exact', True)
    """
    _check(delta, share, users)
    # refuses bipartite graphs, with the way out
    probe = Shuffle(graph, 1, epsilon0, reporting=reporting, laziness=laziness, values=values)
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
    values: int | None = None,
) -> Plan:
    """The largest ε₀ (the least noise) whose certified ε is at most `epsilon`, by default with planned `rounds`.

    >>> from netdp import graphs
    >>> found = calibrate_epsilon0(graphs.regular(500, 8, 0), epsilon=0.25, delta=1e-4)
    >>> print(f"{found.protocol.epsilon0:.2f} {found.promised:.3f} {found.protocol.rounds}")
    1.46 0.250 18
    """
    _check(delta, share, users)
    if isinstance(epsilon, bool) or not (isinstance(epsilon, int | float) and math.isfinite(epsilon) and epsilon > 0):
        raise InvalidValue(f"epsilon must be a finite number > 0, got {epsilon!r}")
    probe = Shuffle(graph, rounds or 1, epsilon, reporting=reporting, laziness=laziness, values=values)
    if rounds is None:

        def trusted(epsilon0: float) -> bool:
            return bool(Randomizer(epsilon0, values=probe.values).heap(graph.n - 1).deltas(epsilon)[0] <= delta)

        best = _largest(trusted, epsilon)
        if best >= _LARGEST or best <= epsilon * 1.001:
            raise Unsupported(
                f"shuffling does not matter for {graph.n} users and the target ε = {epsilon:g}, δ = {delta:g}: a trusted "
                f"shuffler would allow epsilon0 = {best:.3g}; give rounds, or use local DP with ε₀ = ε"
            )
        planned = _planned(probe.replace(epsilon0=best), delta, share, users)
        probe = probe.replace(rounds=planned[0].protocol.rounds)
    else:
        planned = mixed_components(probe)
    least_noise = rounded_down(_largest_epsilon0([part.table for part in planned], users, epsilon, delta))
    while True:
        parts = [Part(part.users, part.protocol.replace(epsilon0=least_noise), part.mixed) for part in planned]
        plan = _finished(probe.replace(epsilon0=least_noise), delta, parts, users, float(epsilon))
        if plan.promised <= epsilon:
            return plan
        least_noise *= 1 - 1e-4  # bounds are found by search, and need not fall with ε₀ in their last digits


def _check(delta: float, share: float, users: float = 1.0, of: str = "ε") -> None:
    if not (isinstance(delta, int | float) and 0 < delta < 1):
        raise InvalidValue(f"delta must lie in (0, 1), got {delta!r}")
    if not (isinstance(share, int | float) and 0 < share <= 1):
        raise InvalidValue(f"share must lie in (0, 1], the part of {of} that imperfect mixing may cost, got {share!r}")
    if isinstance(users, bool) or not (isinstance(users, int | float) and 0 < users <= 1):
        raise InvalidValue(f"users must lie in (0, 1], the share of users that the promise is for, got {users!r}")


def refuse_if_large(uniform: float, epsilon0: float, delta: float) -> None:
    """Refuse a δ at which a trusted shuffler (its ε is `uniform`) gives everything away for nothing."""
    if uniform == 0:
        raise Unsupported(
            f"delta = {delta:g} is so large that shuffled reports of epsilon0 = {epsilon0:g} have ε = 0: there is nothing to plan; "
            "a smaller delta is meant, or a larger epsilon0 is allowed"
        )


def _planned(probe: Shuffle, delta: float, share: float, users: float) -> list[Part]:
    """The rounds at which every component that can gain has the crowd it needs, found and then certified."""
    apart = components(probe)
    uniforms = [uniform_heap(component).epsilon(delta) for _, component in apart]
    refuse_if_large(max(uniforms), probe.epsilon0, delta)
    able = [k for k, uniform in enumerate(uniforms) if uniform <= WORTH * probe.epsilon0]
    if not able:
        uniform, n = uniform_heap(probe).epsilon(delta), max(component.n for _, component in apart)
        raise Unsupported(
            f"{n} users are too few: even a trusted shuffler reveals ε = {uniform:.3g} at delta = "
            f"{delta:g}, of epsilon0 = {probe.epsilon0:g}; a larger delta, a smaller epsilon0 or more users are needed"
        )
    crowds = {k: _smallest_crowd(apart[k][1], uniforms[k] * (1 + share), delta) for k in able}
    rounds = max(fewest_rounds_for(apart[k][1].graph, probe.laziness, crowds[k], users=users).rounds for k in able)
    while True:
        parts = [Part.of(members, component.replace(rounds=rounds)) for members, component in apart]
        promised = {k: parts[k].table.epsilon(parts[k].table.group_of(users), delta) for k in able}
        if all(promised[k] <= (1 + share) * uniforms[k] * (1 + 1e-9) for k in able):
            return parts
        rounds += max(1, rounds // 200)


def _finished(protocol: Shuffle, delta: float, parts: list[Part], users: float, epsilon: float | None = None) -> Plan:
    # Between knots the curve is a chord above the truth; with a knot at the ε of this δ nothing is lost there.
    knots = {part.table.epsilon(g, delta) for part in parts for g in {0, part.table.group_of(users)}}
    knots |= set() if epsilon is None else {epsilon}
    curve = curves(protocol, parts, knots=[knot for knot in sorted(knots) if knot <= protocol.epsilon0])
    if not curve.shape:
        curve = everywhere(curve, (protocol.n,))
    worst = max(parts, key=lambda part: part.mixed.value).mixed
    said = curator_statement(protocol, sum(part.mixed.failure for part in parts), curve)
    promise = replace(said, observers=Observers(roles=("curator",)), names=protocol.graph.labels)
    uniform = max(uniform_heap(part.protocol).epsilon(delta) for part in parts)
    reached = float(np.sort(np.atleast_1d(promise.epsilon(delta)))[rank(users, protocol.n)])
    hops = protocol.rounds * (1 - protocol.laziness)  # per user, on average
    sampled = trusted_sampler(protocol).worst_epsilon(delta)
    words = (
        f"a trusted shuffler: {readable(uniform)}; a trusted sampler of √n reports: {readable(sampled)}; without shuffling: "
        f"{readable(protocol.epsilon0)}",
    )
    extras = {
        "rounds": protocol.rounds, "hops": hops, "uniform": uniform, "sampled": sampled,
        "loss": reached / uniform - 1 if uniform else 0.0, "mixed": worst, "crowd": worst.crowd(users), "words": words,
    }  # fmt: skip
    option = Option("shuffled", protocol, promise, largest_error(protocol), hops, users=users, extras=extras)
    holds = "holds for every user, against the curator"
    if users < 1:
        worst_off = readable(promise.worst_epsilon(delta))
        holds = f"holds for {100 * users:g} % of the users, against the curator; the worst: ε = {worst_off}"
    return _compared(option, epsilon, delta, holds, reached)


def _compared(option: Option, epsilon: float | None, delta: float, holds: str, reached: float) -> Plan:
    """The plan with one option, beside local DP and a trusted curator at the ε that is reached."""
    protocol = option.protocol
    (local_law, local), (curator_law, curator) = share_baselines(protocol.n, protocol.values or 2, reached, delta)
    return Plan(
        (option,),
        epsilon,
        delta,
        holds,
        local_rmse=local,
        curator_rmse=curator,
        local_law=local_law,
        curator_law=curator_law,
        family=protocol.kind,
    )


def offer(asked: Asked) -> Plan:
    """What shuffling offers in the table of all families: reports with Laplace noise, of which the curator takes the mean."""
    asked.refuse_absent("shuffle")
    asked.refuse_vectors("shuffle")
    if asked.colluders > 1:
        raise Unsupported(
            f"shuffle: planned against the curator alone, not against {asked.colluders} parties together; "
            "account(Shuffle(…), colluders=…) says what they learn"
        )
    lazy = 0.5 if asked.graph.is_bipartite else 0.0  # on a bipartite graph reports would only ever be on one side
    found = calibrate_epsilon0(asked.graph, asked.epsilon, asked.delta, laziness=lazy)
    (option,) = found.options
    mechanism = Laplace.interval(0.0, asked.sensitivity, option.protocol.epsilon0)
    error = expected_error(option.protocol, mechanism=mechanism)
    return replace(found, options=(replace(option, error=error, needs=_CURATOR),))


def _smallest_crowd(protocol: Shuffle, epsilon: float, delta: float) -> float:
    """The smallest share of the others, to a few parts in ten thousand, among whom the report has this ε."""
    low, high = 0.0, 1.0
    while high - low > 2e-4 * high:
        middle = (low + high) / 2
        heap = Randomizer.of(protocol).heap(protocol.n - 1, keep=middle)
        low, high = (low, middle) if heap.deltas(epsilon)[0] <= delta else (middle, high)
    return min(high, 1 - 1e-6)


def _largest_epsilon0(tables: list[UserCurves], users: float, epsilon: float, delta: float) -> float:
    """The largest ε₀ for which the share `users` has a certified (epsilon, delta); never below epsilon, true without shuffling."""
    asked = [(table, table.group_of(users)) for table in tables]

    def meets(epsilon0: float) -> bool:
        return all(
            replace(table, protocol=table.protocol.replace(epsilon0=epsilon0)).delta(g, epsilon) <= delta
            for table, g in asked
        )

    return _largest(meets, epsilon)


def _largest(meets: Callable[[float], bool], epsilon: float, tolerance: float = 1e-5) -> float:
    """The largest ε₀ that meets a target of `epsilon`, which ε₀ = ε does; beyond `_LARGEST` it is not searched."""
    low, high = epsilon, max(2 * epsilon, 1.0)
    while meets(high):
        low, high = high, 2 * high
        if low > _LARGEST:
            return low
    return _largest_between(meets, low, high, tolerance)


def _largest_between(meets: Callable[[float], bool], low: float, high: float, tolerance: float) -> float:
    """The largest number that meets, to a relative tolerance; `low` does, `high` does not."""
    while high - low > tolerance * high:
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low


def _checked_target(
    protocol: Shuffle | FaultyShuffle | RelayedShuffle, epsilon: float, delta: float
) -> tuple[float, float]:
    """The target of a calibration, or a refusal."""
    level, delta = checked_target(epsilon, delta)
    if protocol.delta0:
        raise Unsupported(
            f"delta0={protocol.delta0:g}: reports are calibrated for pure randomizers; set delta0=0, or choose epsilon0 yourself"
        )
    if protocol.variation is not None:
        raise Unsupported(
            f"variation={protocol.variation:g} is that of one ε₀, and reports are calibrated by ε₀; choose epsilon0 yourself, or "
            "leave variation out"
        )
    if level == 0:
        raise InvalidValue(f"epsilon must be > 0 for randomized reports, got {epsilon!r}")
    return level, delta


@calibrations.register
def _shuffle(protocol: Shuffle, epsilon: float, delta: float) -> Shuffle:
    epsilon, delta = _checked_target(protocol, epsilon, delta)
    plan = calibrate_epsilon0(
        protocol.graph, epsilon, delta, rounds=protocol.rounds, laziness=protocol.laziness, reporting=protocol.reporting,
        values=protocol.values,
    )  # fmt: skip
    found: Shuffle = plan.protocol
    # δ(ε) is kept as a table and read along chords, up to 0.1 % above itself: what is handed out shall pass its own account.
    while account(found, "curator").worst_epsilon(delta) > epsilon:
        found = found.replace(epsilon0=found.epsilon0 * (1 - 1e-4))
    return found


_MOST_ROUNDS = 1 << 22

_FOLLOWED = 1500  # users up to which a plan follows all origins where nobody is away


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
    values: int | None = None,
) -> Plan:
    """The fewest rounds whose certified ε is at most (1 + share) times that of a trusted shuffler of what arrives.

    >>> from netdp import graphs
    >>> found = plan_with_faults(graphs.regular(500, 8, 0), epsilon0=1.0, delta=1e-4, outages=0.2)
    >>> found.protocol.rounds, found.faultless, found.promised <= 1.01 * found.uniform
    (61, 19, True)
    """
    _check(delta, share)
    probe = FaultyShuffle(
        graph, 1, epsilon0, outages=outages, lost=lost, absent=absent, laziness=laziness, values=values
    )
    rounds = _fewest(probe, delta, share)
    chosen = probe.replace(rounds=rounds)
    plain = _fewest(probe.replace(outages=0.0, lost=0.0), delta, share) if outages or lost else rounds
    guarantee = account(chosen, "curator")
    uniform = unharmed(chosen).epsilon(delta)
    words = (
        f"a trusted shuffler of what arrives: {readable(uniform)}; without shuffling: {readable(chosen.epsilon0)}",
        f"{rounds} hops; {plain} would do without faults; {chosen.arrives:.1%} of the reports arrive",
    )
    extras = {"rounds": rounds, "uniform": uniform, "faultless": plain, "words": words}
    hops = rounds * (1 - laziness) * (1 - outages)
    option = Option("shuffled", chosen, guarantee, expected_error(chosen), hops, extras=extras)
    holds = "holds for every user, against the curator, before it is known who is away"
    return _compared(option, None, delta, holds, guarantee.worst_epsilon(delta))


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
            return meets_calm(protocol, target, delta)
        return reaches(protocol, before(protocol), target, delta)

    found = fewest(meets, _MOST_ROUNDS)
    if found is None:
        raise Unsupported(
            f"{probe.describe()}: no number of hops is proved to come within {share:g} of a trusted shuffler; a larger share, "
            "fewer losses, more users or links, or laziness if the graph is bipartite or nearly so"
        )
    return found


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

    found = fewest(meets, protocol.rounds)
    if found is None:
        raise Unsupported(
            f"{protocol.rounds} rounds of this pattern are not enough at δ = {delta:g}; go on, or ask for less"
        )
    return found


@calibrations.register
def _calibrate_faulty(protocol: FaultyShuffle, epsilon: float, delta: float) -> FaultyShuffle:
    level, delta = _checked_target(protocol, epsilon, delta)
    random = bool(protocol.outages) or not feasible(protocol)
    ways = before(protocol) if random or protocol.crashes else None

    def meets(epsilon0: float) -> bool:
        trial = protocol.replace(epsilon0=epsilon0)
        if ways is not None:
            return level >= epsilon0 or reaches(trial, ways, level, delta)
        return meets_calm(trial, level, delta)

    found = protocol.replace(epsilon0=rounded_down(_largest(meets, level, 1e-4)))
    # δ(ε) is kept as a table and read along chords: what is handed out shall pass its own account
    while account(found, "curator").worst_epsilon(delta) > level:
        found = found.replace(epsilon0=found.epsilon0 * (1 - 1e-3))
        if found.epsilon0 <= level:
            return found.replace(epsilon0=level)
    return found


MOST_COVER = 64


def plan_relayed(
    graph: Graph,
    epsilon0: float,
    delta: float,
    *,
    share: float = 0.01,
    laziness: float = 0.0,
    bundles: int = 0,
    values: int | None = None,
) -> Plan:
    """The fewest rounds and then the least cover for which δ at the trusted shuffler's ε is at most (1 + share)·delta.

    With `bundles` = k, the fewest rounds under that rule for which ε at δ is at most (1 + share) times the trusted shuffler's.

    >>> from netdp import graphs
    >>> found = plan_relayed(graphs.regular(500, 8, 0), epsilon0=1.0, delta=1e-4)
    >>> found.protocol.cover, found.promised < 1.01 * found.uniform
    (7, True)
    """
    _check(delta, share, of="ε" if bundles else "delta")
    if bundles:
        probe = RelayedShuffle(graph, 1, epsilon0, laziness=laziness, bundles=bundles, values=values)
        return _bundled(probe, delta, share)
    direct = plan_rounds(graph, epsilon0, delta, share=share / 2, laziness=laziness, values=values)
    shuffle = direct.protocol
    table = overflows(shuffle, MOST_COVER)
    at = direct.uniform
    price = math.expm1(at) + 2 * float(Randomizer.of(shuffle).alone.delta(at))
    enough = np.flatnonzero(np.array(table) * price <= share / 2 * delta)
    if not enough.size:
        raise Unsupported(
            f"{graph!r}: even {MOST_COVER} envelopes on every link in every round overflow with probability {table[-1]:.1g}; a "
            "larger delta or share is needed"
        )
    chosen = RelayedShuffle(graph, shuffle.rounds, epsilon0, cover=int(enough[0]) + 1, laziness=laziness, values=values)
    return _finished_relayed(chosen, delta, direct.uniform, tuple(table[: chosen.cover + 4]))


def _bundled(probe: RelayedShuffle, delta: float, share: float) -> Plan:
    uniform = relay.uniform_heap(probe).epsilon(delta)
    refuse_if_large(uniform, probe.epsilon0, delta)
    rounds = fewest_rounds(probe, (1 + share) * uniform, delta)
    return _finished_relayed(probe.replace(rounds=rounds), delta, uniform, ())


def _finished_relayed(chosen: RelayedShuffle, delta: float, uniform: float, table: tuple[float, ...]) -> Plan:
    guarantee = account(chosen, "curator")
    late = OVERFLOW if chosen.bundles else overflow(chosen)
    words = (
        f"a trusted shuffler: {readable(uniform)}; without shuffling: {readable(chosen.epsilon0)}",
        f"{chosen.envelopes:,.0f} envelopes per user ({chosen.rounds} hops); some report waits with probability < {late:.0e}",
    )
    extras = {
        "rounds": chosen.rounds, "uniform": uniform, "overflow": table, "envelopes": chosen.envelopes, "words": words,
    }  # fmt: skip
    option = Option("relayed", chosen, guarantee, expected_error(chosen), chosen.envelopes, extras=extras)
    holds = "holds for every user, against the server that relays and collects"
    return _compared(option, None, delta, holds, guarantee.worst_epsilon(delta))


@calibrations.register
def _calibrate_relayed(protocol: RelayedShuffle, epsilon: float, delta: float) -> RelayedShuffle:
    level, delta = _checked_target(protocol, epsilon, delta)
    if not (protocol.cover or protocol.bundles):
        others = (protocol.values or 2) - 1  # (e^ε₀ − e^ε)/(e^ε₀ + k − 1) ≤ δ
        best = math.log((math.exp(level) + others * delta) / (1 - delta)) if level < 600 else level
        return protocol.replace(epsilon0=rounded_down(best) if rounded_down(best) > level else level)

    def meets(epsilon0: float) -> bool:
        return account(protocol.replace(epsilon0=epsilon0), "curator").worst_epsilon(delta) <= level

    high: float = calibrations(protocol.direct, epsilon, delta).epsilon0  # without overflows
    if meets(high):
        return protocol.replace(epsilon0=high)
    low = _largest_between(meets, level, high, 1e-4)
    return protocol.replace(epsilon0=rounded_down(low) if meets(rounded_down(low)) else low)


def shuffled(sought: Sought, options: Mapping[str, Any]) -> Linking:
    """Hops of shuffled reports on a graph with links."""

    def cost(graph: Graph) -> LinkCost:
        if sought.epsilon0 is None:
            planned = calibrate_epsilon0(graph, sought.epsilon, sought.delta, **options)
        else:
            planned = plan_rounds(graph, sought.epsilon0, sought.delta, **options)
        return LinkCost(planned.protocol.rounds, planned.hops, planned.best.rmse, "hop")

    return Linking(cost)
