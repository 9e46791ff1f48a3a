"""The noise of a token protocol for a target (ε, δ): the smallest σ, or the smallest γ of a histogram, that meets it.

The certified ε falls with σ and with γ. They are searched for on a logarithmic scale, and the result is always on the safe side:
one whose certified loss was computed and found to be at most ε. Where μ is proportional to 1/σ (public paths, descent on a
ring) a formula does. On a ring of heaps the worst single observers are users 1 and n−2 (docs/proofs/token.md#known-path).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account.path import path_energy_blocks
from netdp.families.token.account.ring import ring_profile
from netdp.families.token.account.walk import descent_bounds, sum_bounds
from netdp.families.token.account.weights import Chances, worst_chances
from netdp.families.token.path import PathSum
from netdp.families.token.ring import RingDescent, RingHistogram, RingSum, SecretRingSum
from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
from netdp.numerics.checks import count
from netdp.privacy.gaussian import gaussian_mu
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.observers import Observers
from netdp.protocols.accounting import account
from netdp.protocols.calibration import TOLERANCE, SearchProgress, calibrations, checked_target, noise_for, smallest
from netdp.protocols.table import certified
from netdp.protocols.views import observer_set

P = TypeVar("P", bound=WalkSum | WalkDescent)


def calibrate_walk(
    protocol: P,
    epsilon: float,
    delta: float,
    colluders: int = 1,
    *,
    adjacency: str = "replace",
    tolerance: float = TOLERANCE,
    rounding: Callable[[float], float] = float,
    watch: SearchProgress | None = None,
) -> P:
    """The same protocol with the smallest σ (within `tolerance`, 0.1 %) whose certified loss is at most ε at δ.

    colluders : how many users collude. On the complete graph any so many learn the same; with weights the heaviest count.
    watch     : is told of every loss that is computed.

    >>> walk = WalkDescent(2000, 20_000, sigma=1.0, step=0.05, clip=0.4, sender="hidden")
    >>> p = calibrate_walk(walk, epsilon=1.0, delta=1e-6)
    >>> round(p.sigma, 2)                     # the papers' calibration: 10.98
    0.59
    """
    if isinstance(protocol, WalkDescent) and protocol.graph is not None:
        raise InvalidValue("calibrate_walk is for the complete graph; netdp.calibrate handles walks on others, too")
    if not (math.isfinite(epsilon) and epsilon > 0 and 0 < delta < 1):
        raise InvalidValue(f"the target needs a finite epsilon > 0 and 0 < delta < 1, got {epsilon!r} and {delta!r}")
    walk: Any = protocol
    seen = SearchProgress() if watch is None else watch
    if in_whole_numbers(protocol):

        def on_the_grid(sigma: float) -> float:
            found = account(walk.replace(sigma=sigma), colluders=colluders, adjacency=adjacency).worst_epsilon(delta)
            seen.one()
            return found

        return walk.replace(sigma=smallest(on_the_grid, epsilon, 1.5 * _guess(walk, epsilon, delta), tolerance))  # type: ignore[no-any-return]
    bounds = sum_bounds if isinstance(protocol, WalkSum) else descent_bounds

    def least_noise(who: int | Chances, guess: float) -> float:
        def loss(which: int) -> Callable[[float], float]:
            def at(sigma: float) -> float:
                found = bounds(walk.replace(sigma=sigma), who, adjacency)
                one = float(found[min(which, len(found) - 1)]().epsilon(delta))
                seen.one()
                return one

            return at

        # The least of several bounds meets the target where one of them does: search with the one that is usually best (one
        # that leaves too much to δ meets it nowhere; then with the next), and look at the others there. Losses fall with σ,
        # so what misses the target there does so at every smaller σ.
        sigma: float | None = None
        refused: Unsupported | None = None
        for which in range(len(bounds(walk.replace(sigma=guess), who, adjacency))):
            if sigma is None:
                try:
                    sigma = rounding(smallest(loss(which), epsilon, guess, tolerance))
                except Unsupported as reason:
                    refused = refused or reason
            elif loss(which)(sigma) <= epsilon:
                sigma = min(sigma, rounding(smallest(loss(which), epsilon, sigma, tolerance)))
        if sigma is None:
            assert refused is not None
            raise refused
        return sigma

    sigma = 1.5 * _guess(walk, epsilon, delta)
    found: list[float] = []
    for who in reversed(worst_chances(walk, colluders)):  # from the heaviest; the lightest may need no noise at all
        if found:
            at = walk.replace(sigma=max(found))
            if any(float(bound().epsilon(delta)) <= epsilon for bound in bounds(at, who, adjacency)):
                continue
        found.append(sigma := least_noise(who, sigma))
    # a table of all users keeps fewer points of every curve
    room = 1.0 if walk.weights is None else 1 + tolerance
    calibrated: P = walk.replace(sigma=max(found) if room == 1 else rounding(max(found) * room))
    return calibrated


def in_whole_numbers(protocol: WalkSum | WalkDescent) -> bool:
    """Whether tokens hold whole numbers."""
    return protocol.grid is not None


@calibrations.register
def _calibrate_walk(
    protocol: WalkSum | WalkDescent,
    epsilon: float,
    delta: float,
    *,
    colluders: int = 1,
    adjacency: str = "replace",
    observers: Any = None,
) -> WalkSum | WalkDescent:
    if isinstance(protocol, WalkDescent) and protocol.grid is not None and protocol.graph is not None:
        raise Unsupported(
            "WalkDescent with a graph and a grid: a study searches for its noise (netdp study new -p walk); leave grid=None here"
        )
    if isinstance(protocol, WalkDescent) and protocol.graph is not None:
        return noise_on_graph(protocol, epsilon, delta, observers, colluders, adjacency=adjacency)
    if observers is not None:
        raise InvalidValue(
            "on the complete graph any users learn alike: leave observers out, or state how many collude"
        )
    return calibrate_walk(protocol, *checked_target(epsilon, delta), count("colluders", colluders), adjacency=adjacency)


def _guess(protocol: WalkSum | WalkDescent, epsilon: float, delta: float) -> float:
    """σ at which a curator's sum, with as much noise in total, would meet the target."""
    steps = protocol.steps * protocol.tokens
    return math.sqrt(steps) / int(protocol.n) * protocol.sensitivity / float(gaussian_mu(epsilon, delta))


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
        sigma, done = noise_for_the_worst(walk, epsilon, delta, colluders, options)
        if done is not None:
            return walk.replace(sigma=sigma)  # type: ignore[no-any-return]
    else:
        sigma = first_guess(walk, epsilon, delta)
    calibrated: W = walk.replace(sigma=smallest(worst, epsilon, sigma))
    return calibrated


def first_guess(walk: Any, epsilon: float, delta: float) -> float:
    """σ at which a curator's sum, with as much noise in total, would meet the target."""
    return noise_for(walk.sensitivity * math.sqrt(walk.steps * walk.tokens) / walk.n, epsilon, delta)


def noise_for_the_worst(
    walk: Any,
    epsilon: float,
    delta: float,
    colluders: int,
    options: dict[str, Any],
    rounding: Callable[[float], float] = float,
    watch: SearchProgress | None = None,
) -> tuple[float, Guarantee | None]:
    """σ that the worst coalition found asks for, rounded, and the loss against all if it does for all: then it is the least.

    All pairs are accounted for only to find the worst one and in the end: a search over all of them takes many times longer.
    Where the bound against any coalition is more than what the worst one found learns, the search is for its target alone.
    `watch` is told of every loss.
    """
    told = SearchProgress() if watch is None else watch
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


_TOLERANCE = 1e-3

H = TypeVar("H", RingHistogram, WalkHistogram)


@calibrations.register
def _ring_histogram(protocol: RingHistogram, epsilon: float, delta: float) -> RingHistogram:
    return _smallest_gamma(protocol, epsilon, delta, [Observers((1,)), Observers((protocol.n - 2,))])


@calibrations.register
def _walk_histogram(
    protocol: WalkHistogram, epsilon: float, delta: float, *, colluders: int = 1, observers: Any = None
) -> WalkHistogram:
    if protocol.graph is not None:
        loss = worst_loss(protocol, observers, colluders)
        return _smallest_gamma(protocol, epsilon, delta, loss)
    if observers is not None:
        raise InvalidValue(
            "on the complete graph any users learn alike: leave observers out, or state how many collude"
        )
    return _smallest_gamma(protocol, epsilon, delta, _worst(protocol, count("colluders", colluders)))


def _worst(protocol: WalkHistogram, colluders: int) -> list[Observers]:
    """Any so many of users who are all alike; by weight, those of the heaviest who leave one of them out."""
    if protocol.weights is None:
        return [Observers(tuple(range(colluders)))]
    heaviest = np.argsort(-protocol.chances, kind="stable")[: colluders + 1].tolist()
    _, first = np.unique(protocol.chances[heaviest], return_index=True)
    return [Observers(tuple(sorted(v for i, v in enumerate(heaviest) if i != left_out))) for left_out in first.tolist()]


def _smallest_gamma(
    protocol: H, epsilon: float, delta: float, who: list[Observers] | Callable[[Any, float], float]
) -> H:
    """Against each of `who`; or by a function that tells the largest ε at δ."""
    epsilon, delta = checked_target(epsilon, delta)

    def meets(gamma: float) -> bool:
        one = protocol.replace(gamma=gamma)
        if not isinstance(who, list):
            return who(one, delta) <= epsilon
        return all(account(one, observers).worst_epsilon(delta) <= epsilon for observers in who)

    low, high = 1e-3, 1.0 - 1e-3
    if not meets(high):
        raise Unsupported(
            f"no useful histogram meets epsilon = {epsilon:g} at delta = {delta:g}: even γ = {high} loses more"
        )
    if meets(low):
        return protocol.replace(gamma=low)
    while high - low > _TOLERANCE * low:
        middle = (low * high) ** 0.5 if high > 2 * low else (low + high) / 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return protocol.replace(gamma=high)


@calibrations.register
def _ring_descent(protocol: RingDescent, epsilon: float, delta: float) -> RingDescent:
    """Against every single user: the neighbour that follows loses nothing of √K·Δ/σ."""
    return protocol.replace(sigma=noise_for(protocol.local_mu * protocol.sigma, *checked_target(epsilon, delta)))


@calibrations.register
def _secret_ring(protocol: SecretRingSum, epsilon: float, delta: float, *, colluders: int = 1) -> SecretRingSum:
    """The smallest σ against any `colluders` users who were chosen before the orders are drawn: all so many learn the same."""
    epsilon, delta = checked_target(epsilon, delta)
    many = count("colluders", colluders)
    if many >= protocol.n:
        raise InvalidValue(
            f"{many} of {protocol.n} users cannot collude against the others; name 1 to {protocol.n - 1}"
        )
    if not (epsilon > 0 and delta > 0):
        raise InvalidValue(f"the target needs epsilon > 0 and delta > 0, got {epsilon!r} and {delta!r}")

    def loss(sigma: float) -> float:
        return float(ring_profile(protocol.replace(sigma=sigma), many).epsilon(delta))

    # a little above the curator's noise: what the stretches cost is found by the search
    guess = noise_for(protocol.sensitivity * (protocol.rounds * (many + 1.0)) ** 0.5, epsilon, delta)
    return protocol.replace(sigma=smallest(loss, epsilon, 1.5 * guess))
