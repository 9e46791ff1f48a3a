"""A private mean by a token that keeps to the links of a graph: which walk has the least error at a certified (ε, δ)?

    metropolis   every user is visited equally often; on uneven graphs it waits at users with few links
    simple       to a uniformly random neighbour: faster, but users count in proportion to their links, and that is an error
    ring         if the graph is a ring: round it once, as `plan_token` offers it

Against any `colluders` users, whoever they are: `account(protocol, colluders=…)`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from netdp.accounting.front import account
from netdp.errors import NetdpError, Unsupported
from netdp.graphs import Graph
from netdp.numerics.arrays import Progress
from netdp.numerics.checks import count
from netdp.numerics.rounding import rounded_up
from netdp.planning.base import Option
from netdp.planning.smallest import TOLERANCE, smallest
from netdp.planning.table import checked_target
from netdp.privacy import Guarantee, gaussian_mu
from netdp.protocols import GraphWalkSum
from netdp.utility import expected_error

from .paths import by_the_worst
from .plan import TokenPlan, one_round
from .watch import Watch

_NEXT = 4  # values of σ tried one after the other before it is searched for
_WALKS = {"metropolis": "walk, everybody equally often", "simple": "walk, to a random neighbour"}


def plan_token_on(
    graph: Graph,
    epsilon: float,
    delta: float,
    *,
    visits: int = 20,
    sensitivity: float = 1.0,
    colluders: int = 1,
    progress: Progress | None = None,
) -> TokenPlan:
    """Compare walks along the links of a graph (T = visits·n), and a round of the ring if it is one, at a certified (ε, δ).

    σ is rounded up to four digits, and what is promised is certified for the rounded value. `progress(done, total)` is called
    now and then, with hundredths.

    >>> from netdp import graphs
    >>> plan = plan_token_on(graphs.star(3), epsilon=4.0, delta=1e-4, visits=2)
    >>> len(plan.options), plan.guarantee.worst_epsilon(1e-4) <= 4.0
    (2, True)
    """
    count("visits", visits)
    graph.require_connected("a walk")
    epsilon, delta = checked_target(epsilon, delta)
    many = count("colluders", colluders)
    most = float(gaussian_mu(epsilon, delta))
    options: list[Option] = []
    notes: list[str] = []
    even = bool((graph.degrees == graph.degrees[0]).all())
    walks = {walk: name for walk, name in _WALKS.items() if not (even and walk == "simple")}  # the same up to waiting
    watch = Watch(progress, len(walks))
    for walk, name in walks.items():
        draft = GraphWalkSum(graph, visits * graph.n, sigma=1.0, walk=walk, sensitivity=sensitivity)
        try:
            options.append(_option(name, draft, epsilon, delta, many, float(visits), watch))
        except NetdpError as problem:
            notes.append(f"{name}: {problem}")
        watch.next()
    if many == 1 and graph.n >= 3 and even and graph.m == graph.n and _in_order(graph):
        options.append(one_round(graph.n, sensitivity, most, epsilon, delta))
    if not options:
        raise Unsupported(f"no token on {graph.name} meets this: {'; '.join(notes)}")
    options.sort(key=lambda option: option.rmse)
    against = "any single user" if many == 1 else f"any {many} users together"
    return TokenPlan(
        tuple(options),
        epsilon,
        delta,
        f"holds for every user of {graph.name}, against {against}",
        local_rmse=sensitivity / most / math.sqrt(graph.n),
        curator_rmse=sensitivity / most / graph.n,
        n=graph.n,
        sensitivity=sensitivity,
        colluders=many,
        notes=tuple(notes),
    )


def _option(
    name: str,
    draft: GraphWalkSum,
    epsilon: float,
    delta: float,
    colluders: int,
    visits: float,
    watch: Watch | None = None,
) -> Option:
    """With the noise that the worst coalition found asks for, if that does for all; else with what all together ask for.

    All coalitions are accounted for as seldom as possible: that is what takes long.
    """
    options: dict[str, Any] = {"colluders": colluders}
    watch = Watch() if watch is None else watch
    sigma, promise = by_the_worst(draft, epsilon, delta, colluders, {}, rounded_up, watch)

    def everybody(sigma: float) -> Guarantee:
        loss = account(draft.replace(sigma=sigma), **options, progress=watch.inside)
        watch.one()
        return loss

    found = draft.replace(sigma=sigma)
    tries = 0
    while promise is None:
        # bounds computed on a grid need not fall with every last digit of σ: the next ones will do
        if tries == _NEXT:
            found = found.replace(sigma=smallest(lambda s: everybody(s).worst_epsilon(delta), epsilon, sigma))
        found = found.replace(sigma=rounded_up(found.sigma * (1 + TOLERANCE / 2)))
        loss = everybody(found.sigma)
        promise, tries = loss if loss.worst_epsilon(delta) <= epsilon else None, tries + 1
    return Option(name, found, replace(promise, factor=None), expected_error(found), visits)


def _in_order(graph: Graph) -> bool:
    """Whether the links are those of users 0, 1, …, n − 1, 0: the order in which a `RingSum` goes round."""
    n = graph.n
    return {(int(u), int(w)) for u, w in graph.edges()} == {tuple(sorted((u, (u + 1) % n))) for u in range(n)}


__all__ = ["plan_token_on"]
