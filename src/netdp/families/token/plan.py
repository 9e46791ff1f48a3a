"""A private mean by a token: which way has the least error at a certified (ε, δ)?

`plan_token` is for users who can all reach each other: rings, rings in new orders, and walks over three kinds of channels.
`plan_token_on` keeps to the links of a graph:

    metropolis   every user is visited equally often; on uneven graphs it waits at users with few links
    simple       to a uniformly random neighbour: faster, but users count in proportion to their links, and that is an error
    ring         if the graph is a ring: round it once, as `plan_token` offers it

The errors of all ways, and of local DP and a trusted curator: docs/proofs/token.md#token-error.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from netdp.errors import NetdpError, Unsupported
from netdp.families.token.account.path import path_energy_blocks
from netdp.families.token.calibration import calibrate_walk, noise_for_the_worst
from netdp.families.token.ring import RingSum, SecretRingSum
from netdp.families.token.walk import GraphWalkSum, WalkSum
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import Progress, rounded_up
from netdp.numerics.checks import count
from netdp.privacy.curves import GaussianCurve, SharedCurve, everywhere
from netdp.privacy.gaussian import gaussian_mu
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.privacy.observers import Observers
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import curator_limit, expected_error
from netdp.protocols.calibration import TOLERANCE, SearchProgress, calibrate, checked_target, smallest
from netdp.protocols.planning import Asked, Option, Plan, baselines_at

_ANONYMOUS = (
    "sender hidden, receiver known: only over a channel that hides who sends (hidden: who receives, too), such as a mix "
    "network; over plain connections take another"
)

_WALKS = {
    "hidden": "walk, sender hidden",
    "receiver-known": "walk, receiver known",
    "known": "walk, sender known",
}

_ORDERS = {"known": "ring, new random orders", "hidden": "ring, new secret orders"}

_RING_CHECKED = 2000  # users up to which every pair of the ring is accounted for; beyond, μ ≤ √K·Δ/σ is used


def plan_token(
    n: int,
    epsilon: float,
    delta: float,
    *,
    visits: int = 100,
    sensitivity: float = 1.0,
    colluders: int = 1,
    progress: Progress | None = None,
) -> Plan:
    """Compare a ring and walks (T = visits·n, over each of the three channels of `WalkSum`) at a certified (ε, δ).

    On a fixed ring two colluders leave those between them without protection, so it is offered against single observers only;
    against more a ring in a new random order every round (`SecretRingSum`, as many rounds as a walk has visits).
    σ is rounded up to four digits, and what is promised is certified for the rounded value. `progress(done, total)` is called
    now and then, with hundredths.

    >>> plan = plan_token(20, epsilon=2.0, delta=1e-4, visits=5)
    >>> [option.name for option in plan.options][0], plan.best.name           # the first needs an anonymous channel
    ('walk, sender hidden', 'ring, one round')
    >>> plan.curator_law, plan.curator_rmse < plan.best.rmse < plan.local_rmse
    ('Laplace', True)
    >>> plan.guarantee.worst_epsilon(1e-4) <= 2.0
    True
    """
    count("visits", visits)
    epsilon, delta = checked_target(epsilon, delta)
    options = []
    ring, orders = colluders == 1 and n >= 3, colluders > 1 and n > colluders + 1
    watch = SearchProgress(progress, len(_WALKS) + ring + orders * len(_ORDERS))
    for sender, name in _WALKS.items():
        walk = WalkSum(n, visits * n, sigma=1.0, sender=sender, sensitivity=sensitivity)
        # rounded before all bounds are looked at: what is found then is what is promised, and not computed again
        found = calibrate_walk(walk, epsilon, delta, colluders, tolerance=0.003, rounding=rounded_up, watch=watch)
        promise = _against_anybody(account(found, list(range(colluders))), n, colluders)
        while promise.worst_epsilon(delta) > epsilon:
            # bounds computed on a grid need not fall with every last digit of σ: the next ones will do
            found = found.replace(sigma=rounded_up(found.sigma * (1 + TOLERANCE / 2)))
            promise = _against_anybody(account(found, list(range(colluders))), n, colluders)
        options.append(Option(name, found, promise, expected_error(found), float(visits), needs=channel(found)))
        watch.next()
    if ring:
        options.append(one_round(n, sensitivity, epsilon, delta))
        watch.next()
    for sender in _ORDERS if orders else ():
        options.append(_new_orders(n, visits, sender, sensitivity, epsilon, delta, colluders))
        watch.next()
    limit = curator_limit(n, epsilon, delta, colluders=colluders, sensitivity=sensitivity)
    return _plan(options, epsilon, delta, n, sensitivity, colluders, "", limit=limit, notes=(_ANONYMOUS,))


def _plan(
    options: list[Option],
    epsilon: float,
    delta: float,
    n: int,
    sensitivity: float,
    colluders: int,
    where: str,
    **more: Any,
) -> Plan:
    """The options, best first, beside local DP and a trusted curator."""
    against = "any single user" if colluders == 1 else f"any {colluders} users together"
    (local_law, local_rmse), (curator_law, curator_rmse) = baselines_at(n, epsilon, delta, sensitivity)
    return Plan(
        tuple(sorted(options, key=lambda option: option.rmse)),
        epsilon,
        delta,
        f"holds for every user{where}, against {against}",
        local_rmse=local_rmse,
        curator_rmse=curator_rmse,
        local_law=local_law,
        curator_law=curator_law,
        family="token",
        n=n,
        sensitivity=sensitivity,
        colluders=colluders,
        **more,
    )


def channel(protocol: WalkSum | SecretRingSum) -> str | None:
    """What a token needs beyond plain connections."""
    return None if protocol.sender == "known" else "an anonymous channel"


def _against_anybody(loss: Guarantee, n: int, colluders: int) -> Guarantee:
    """What some users learn about another on the complete graph is what any so many learn about anybody."""
    curve = loss.curve
    one = curve.curves if isinstance(curve, SharedCurve) else GaussianCurve(float(np.nanmax(loss.mu)))
    return replace(loss, curve=everywhere(one, (n,)), factor=None, observers=_worst_placed(colluders))


def one_round(n: int, sensitivity: float, epsilon: float, delta: float) -> Option:
    """A token that goes round a ring once, with the noise that every pair of users asks for."""
    most = float(gaussian_mu(epsilon, delta))
    ring = RingSum(n, 1, sigma=rounded_up(sensitivity / most * (1 + 1e-9)), sensitivity=sensitivity)
    mu, claim = sensitivity / ring.sigma, Claim.UPPER
    if n <= _RING_CHECKED:
        found = calibrate(ring, epsilon, delta)
        ring = found.replace(sigma=rounded_up(found.sigma))
        mu, claim = math.sqrt(max(float(np.nanmax(rows)) for _, rows in path_energy_blocks(ring))), Claim.EXACT
    promise = replace(
        account(ring, [0]), curve=GaussianCurve(np.full(n, mu)), factor=None, claim=claim, observers=_worst_placed(1)
    )
    return Option("ring, one round", ring, promise, expected_error(ring), 1.0)


def _new_orders(
    n: int, rounds: int, sender: str, sensitivity: float, epsilon: float, delta: float, colluders: int
) -> Option:
    found = calibrate(
        SecretRingSum(n, rounds, 1.0, sender=sender, sensitivity=sensitivity), epsilon, delta, colluders=colluders
    )
    found = found.replace(sigma=rounded_up(found.sigma))
    promise = _against_anybody(account(found, list(range(colluders))), n, colluders)
    return Option(_ORDERS[sender], found, promise, expected_error(found), float(rounds), needs=channel(found))


def _worst_placed(colluders: int) -> Observers:
    return Observers(roles=("worst-placed user" if colluders == 1 else f"worst-placed {colluders} users together",))


# Seconds that a plan takes, by order of magnitude: for every pair of users of a graph, for every user where all are linked.
_PER_PAIR, _PER_USER = 10 / 64**2, 0.06

_NEXT = 4  # values of σ tried one after the other before it is searched for

_WALKS_ON_GRAPHS = {"metropolis": "walk, everybody equally often", "simple": "walk, to a random neighbour"}


def plan_token_on(
    graph: Graph,
    epsilon: float,
    delta: float,
    *,
    visits: int = 20,
    sensitivity: float = 1.0,
    colluders: int = 1,
    progress: Progress | None = None,
) -> Plan:
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
    options: list[Option] = []
    notes: list[str] = []
    even = bool((graph.degrees == graph.degrees[0]).all())
    walks = {
        walk: name for walk, name in _WALKS_ON_GRAPHS.items() if not (even and walk == "simple")
    }  # the same up to waiting
    watch = SearchProgress(progress, len(walks))
    for walk, name in walks.items():
        draft = GraphWalkSum(graph, visits * graph.n, sigma=1.0, walk=walk, sensitivity=sensitivity)
        try:
            options.append(_option(name, draft, epsilon, delta, many, float(visits), watch))
        except NetdpError as problem:
            notes.append(f"{name}: {problem}")
        watch.next()
    if many == 1 and graph.n >= 3 and even and graph.m == graph.n and _in_order(graph):
        options.append(one_round(graph.n, sensitivity, epsilon, delta))
    if not options:
        raise Unsupported(f"no token on {graph.name} meets this: {'; '.join(notes)}")
    where = f" of {graph.name}"
    return _plan(options, epsilon, delta, graph.n, sensitivity, many, where, graph=graph, notes=tuple(notes))


def offer(asked: Asked) -> Plan:
    """What a token offers in the table of all families."""
    asked.refuse_absent("token")
    asked.refuse_vectors("token")
    graph, many = asked.graph, asked.colluders
    options: dict[str, Any] = {"colluders": many, "sensitivity": asked.sensitivity, "progress": asked.progress}
    if 2 * graph.m == graph.n * (graph.n - 1):  # everybody is linked with everybody
        asked.refuse_slow(_PER_USER * graph.n)
        return plan_token(graph.n, asked.epsilon, asked.delta, **options)
    uneven = bool((graph.degrees != graph.degrees[0]).any())
    if many == 1:  # against more a bound is used, which is quick
        asked.refuse_slow(_PER_PAIR * graph.n**2 * (2 if uneven else 1))
    return plan_token_on(graph, asked.epsilon, asked.delta, **options)


def _option(
    name: str,
    draft: GraphWalkSum,
    epsilon: float,
    delta: float,
    colluders: int,
    visits: float,
    watch: SearchProgress,
) -> Option:
    """With the noise that the worst coalition found asks for, if that does for all; else with what all together ask for.

    All coalitions are accounted for as seldom as possible: that is what takes long.
    """
    sigma, promise = noise_for_the_worst(draft, epsilon, delta, colluders, {}, rounded_up, watch)

    def everybody(sigma: float) -> Guarantee:
        loss = account(draft.replace(sigma=sigma), colluders=colluders, progress=watch.inside)
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
    slow = "the accountant follows the walk for every observer"
    return Option(name, found, replace(promise, factor=None), expected_error(found), visits, slow=slow)


def _in_order(graph: Graph) -> bool:
    """Whether the links are those of users 0, 1, …, n − 1, 0: the order in which a `RingSum` goes round."""
    n = graph.n
    return {(int(u), int(w)) for u, w in graph.edges()} == {tuple(sorted((u, (u + 1) % n))) for u in range(n)}
