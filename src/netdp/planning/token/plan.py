"""A private mean by a token: which way has the least error at a certified (ε, δ)?

All ways estimate the mean of n values from an interval of length Δ. Their errors (root mean square, over noise and walk):

    ring, new orders     K rounds, each in a new random order: σ/(n√K), σ the noise of a round
    ring, one round      the token holds the sum with the noises at hops 0 and n−1 and the closing noise: √3·σ/n
    walk of T steps      mean of T contributions of users drawn with replacement: √((σ² + v)/T), v ≤ Δ²/4 the values' variance
    local DP             everybody publishes its value once: σ/√n
    trusted curator      the mean with the noise that it needs: Δ/(nμ), μ the largest that (ε, δ) allows
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netdp.accounting.front import account
from netdp.accounting.token.known_path import path_energy_blocks
from netdp.numerics.arrays import Progress
from netdp.numerics.checks import count
from netdp.numerics.rounding import rounded_up
from netdp.planning.base import Option, Plan
from netdp.planning.calibrate import calibrate
from netdp.planning.smallest import TOLERANCE
from netdp.planning.table import checked_target
from netdp.privacy import Claim, GaussianCurve, Guarantee, Observers, SharedCurve, everywhere, gaussian_mu
from netdp.protocols import RingSum, SecretRingSum, WalkSum
from netdp.utility import expected_error
from netdp.utility.limits import curator_limit

from .calibrate import calibrate_walk
from .watch import Watch

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


@dataclass(frozen=True, eq=False, repr=False)
class TokenPlan(Plan):
    """All ways at one target, the one with the least error first. Chosen is the best of those that plain connections give."""

    n: int
    sensitivity: float
    colluders: int

    @property
    def best(self) -> Option:
        """The option of smallest predicted error that needs no anonymous channel."""
        plain = [option for option in self.options if getattr(option.protocol, "sender", "known") == "known"]
        return min(plain, key=lambda option: option.rmse)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        mine = {"n": self.n, "sensitivity": self.sensitivity, "colluders": self.colluders}
        return {**mine, **super().to_dict()}


def plan_token(
    n: int,
    epsilon: float,
    delta: float,
    *,
    visits: int = 100,
    sensitivity: float = 1.0,
    colluders: int = 1,
    progress: Progress | None = None,
) -> TokenPlan:
    """Compare a ring and walks (T = visits·n, over each of the three channels of `WalkSum`) at a certified (ε, δ).

    On a fixed ring two colluders leave those between them without protection, so it is offered against single observers only;
    against more a ring in a new random order every round (`SecretRingSum`, as many rounds as a walk has visits).
    σ is rounded up to four digits, and what is promised is certified for the rounded value. `progress(done, total)` is called
    now and then, with hundredths.

    >>> plan = plan_token(20, epsilon=2.0, delta=1e-4, visits=5)
    >>> [option.name for option in plan.options][0], plan.best.name           # the first needs an anonymous channel
    ('walk, sender hidden', 'ring, one round')
    >>> plan.best.rmse < 2 * plan.curator_rmse < plan.local_rmse / 2
    True
    >>> plan.guarantee.worst_epsilon(1e-4) <= 2.0
    True
    """
    count("visits", visits)
    epsilon, delta = checked_target(epsilon, delta)
    against = "any single user" if colluders == 1 else f"any {colluders} users together"
    options = []
    ring, orders = colluders == 1 and n >= 3, colluders > 1 and n > colluders + 1
    watch = Watch(progress, len(_WALKS) + ring + orders * len(_ORDERS))
    for sender, name in _WALKS.items():
        walk = WalkSum(n, visits * n, sigma=1.0, sender=sender, sensitivity=sensitivity)
        # rounded before all bounds are looked at: what is found then is what is promised, and not computed again
        found = calibrate_walk(walk, epsilon, delta, colluders, tolerance=0.003, rounding=rounded_up, watch=watch)
        promise = _against_anybody(account(found, list(range(colluders))), n, colluders)
        while promise.worst_epsilon(delta) > epsilon:
            # bounds computed on a grid need not fall with every last digit of σ: the next ones will do
            found = found.replace(sigma=rounded_up(found.sigma * (1 + TOLERANCE / 2)))
            promise = _against_anybody(account(found, list(range(colluders))), n, colluders)
        options.append(Option(name, found, promise, expected_error(found), float(visits)))
        watch.next()
    most = float(gaussian_mu(epsilon, delta))
    if ring:
        options.append(one_round(n, sensitivity, most, epsilon, delta))
        watch.next()
    for sender in _ORDERS if orders else ():
        options.append(_new_orders(n, visits, sender, sensitivity, epsilon, delta, colluders))
        watch.next()
    options.sort(key=lambda option: option.rmse)
    return TokenPlan(
        tuple(options),
        epsilon,
        delta,
        f"holds for every user, against {against}",
        local_rmse=sensitivity / most / math.sqrt(n),
        curator_rmse=sensitivity / most / n,
        n=n,
        sensitivity=sensitivity,
        colluders=colluders,
        limit=curator_limit(n, epsilon, delta, colluders=colluders, sensitivity=sensitivity),
        notes=(_ANONYMOUS,),
    )


def _against_anybody(loss: Guarantee, n: int, colluders: int) -> Guarantee:
    """What some users learn about another on the complete graph is what any so many learn about anybody."""
    curve = loss.curve
    one = curve.curves if isinstance(curve, SharedCurve) else GaussianCurve(float(np.nanmax(loss.mu)))
    return replace(loss, curve=everywhere(one, (n,)), factor=None, observers=_worst_placed(colluders))


def one_round(n: int, sensitivity: float, most: float, epsilon: float, delta: float) -> Option:
    """A token that goes round a ring once, with the noise that every pair of users asks for."""
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
    return Option(_ORDERS[sender], found, promise, expected_error(found), float(rounds))


def _worst_placed(colluders: int) -> Observers:
    return Observers(roles=("worst-placed user" if colluders == 1 else f"worst-placed {colluders} users together",))
