"""The noise of tokens on known paths, and on walks over any graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from netdp.accounting import account
from netdp.accounting.table import certified
from netdp.accounting.token.known_path import path_energy_blocks
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.checks import count
from netdp.planning.smallest import smallest
from netdp.planning.table import calibrations, checked_target, noise_for
from netdp.privacy import Guarantee, Observers
from netdp.protocols import GraphWalkSum, PathSum, RingSum, WalkDescent
from netdp.views import observer_set

from .watch import Watch

W = TypeVar("W", bound=GraphWalkSum | WalkDescent)

_ATTAINED = 0.02  # of ε, by which one pair may differ from all pairs together, whose tables have other points
_MOST = 64  # observers that are looked at one by one on a graph


@calibrations.register
def _known_path(protocol: RingSum | PathSum, epsilon: float, delta: float) -> RingSum | PathSum:
    """The worst pair of all decides; μ is proportional to 1/σ. With Laplace noise σ is searched for."""
    if protocol.law == "laplace":
        return _laplace(protocol, *checked_target(epsilon, delta))
    worst = math.sqrt(max(float(np.nanmax(rows)) for _, rows in path_energy_blocks(protocol)))
    if not math.isfinite(worst):
        raise Unsupported("without closing noise the last users have no protection at all; set closing=True")
    return protocol.replace(sigma=noise_for(protocol.sigma * worst, epsilon, delta))


def _laplace(protocol: RingSum | PathSum, epsilon: float, delta: float) -> RingSum | PathSum:
    if protocol.n > _MOST:
        raise Unsupported(
            f"law='laplace' with {protocol.n} users: every observer's losses are composed one by one, which is offered up to "
            f"{_MOST} users; take law='gaussian', or state sigma and account(protocol, [v]) for the observers of interest"
        )

    def worst(sigma: float) -> float:
        one = protocol.replace(sigma=sigma)
        return max(account(one, Observers((v,))).worst_epsilon(delta) for v in range(protocol.n))

    if not math.isfinite(worst(protocol.sigma)):
        raise Unsupported("without closing noise the last users have no protection at all; set closing=True")
    return protocol.replace(sigma=smallest(worst, epsilon, protocol.sigma))


@calibrations.register
def _graph_walk(
    protocol: GraphWalkSum,
    epsilon: float,
    delta: float,
    *,
    observers: Iterable[int | str] | int | str | None = None,
    colluders: int = 1,
) -> GraphWalkSum:
    return noise_on_graph(protocol, epsilon, delta, observers, colluders)


def noise_on_graph(
    protocol: W,
    epsilon: float,
    delta: float,
    observers: Iterable[int | str] | int | str | None = None,
    colluders: int = 1,
    **options: Any,
) -> W:
    """The least σ of a walk on a graph against any `colluders` users together, or against each of `observers` alone."""
    epsilon, delta = checked_target(epsilon, delta)
    walk: Any = protocol
    loss = worst_loss(walk, observers, colluders, **options)

    def worst(sigma: float) -> float:
        return loss(walk.replace(sigma=sigma), delta)

    if observers is None and "targets" in certified.options(protocol):
        sigma, done = by_the_worst(walk, epsilon, delta, colluders, options)
        if done is not None:
            return walk.replace(sigma=sigma)  # type: ignore[no-any-return]
    else:
        sigma = first_guess(walk, epsilon, delta)
    calibrated: W = walk.replace(sigma=smallest(worst, epsilon, sigma))
    return calibrated


def first_guess(walk: Any, epsilon: float, delta: float) -> float:
    """σ at which a curator's sum, with as much noise in total, would meet the target."""
    return noise_for(walk.sensitivity * math.sqrt(walk.steps * walk.tokens) / walk.n, epsilon, delta)


def by_the_worst(
    walk: Any,
    epsilon: float,
    delta: float,
    colluders: int,
    options: dict[str, Any],
    rounding: Callable[[float], float] = float,
    watch: Watch | None = None,
) -> tuple[float, Guarantee | None]:
    """σ that the worst coalition found asks for, rounded, and the loss against all if it does for all: then it is the least.

    All pairs are accounted for only to find the worst one and in the end: a search over all of them takes many times longer.
    Where the bound against any coalition is more than what the worst one found learns, the search is for its target alone.
    `watch` is told of every loss.
    """
    told = Watch() if watch is None else watch
    seen: set[tuple[Any, int, bool]] = set()
    sigma = first_guess(walk, epsilon, delta)
    while True:
        loss = account(walk.replace(sigma=sigma), colluders=colluders, progress=told.inside, **options)
        told.one()
        if seen and loss.worst_epsilon(delta) <= epsilon:
            return sigma, loss
        found = loss.found
        if found is None:
            return sigma, None
        target = found.target
        each = np.asarray(loss.epsilon(delta))
        if each.shape:
            target = int(np.nanargmax(each))

        def alone(sigma: float, found: Any = found, target: int = target) -> float:
            one = account(walk.replace(sigma=sigma), found.observers, targets=[target], **options)
            told.one()
            return float(one.epsilon(delta)[target])

        def any_about(sigma: float, target: int = target) -> float:
            one = account(walk.replace(sigma=sigma), colluders=colluders, targets=[target], **options)
            told.one()
            return one.worst_epsilon(delta)

        attained = (
            target == found.target
            and (found.observers, target, True) not in seen
            and alone(sigma) >= (1 - _ATTAINED) * loss.worst_epsilon(delta)
        )
        if (found.observers, target, attained) in seen:  # bounds on a grid need not fall with every last digit of σ
            return sigma, None
        seen.add((found.observers, target, attained))
        sigma = rounding(smallest(alone if attained else any_about, epsilon, sigma))


def worst_loss(
    protocol: Any, observers: Iterable[int | str] | int | str | None, colluders: int, **options: Any
) -> Callable[[Any, float], float]:
    """The largest ε at δ that any of the observers asked for learns about anybody, as a function of the protocol."""
    if observers is None:
        count("colluders", colluders)
        return lambda one, delta: account(one, colluders=colluders, **options).worst_epsilon(delta)
    if colluders != 1:
        raise InvalidValue("give observers=[…], each alone, or colluders=f, not both")
    who = observer_set(protocol.network, observers)
    return lambda one, delta: max(account(one, Observers((v,)), **options).worst_epsilon(delta) for v in who)
