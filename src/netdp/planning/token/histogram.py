"""How random the answers of a histogram must be for a target: the smallest γ.

**On a ring the worst observers are users 1 and n−2.** A user u before the observer v has one answer in the heap before v's first
visit, among v − 1 others and the starting blanket, and K − 1 in full heaps; one after v has K − 1 in full heaps and one in the
heap after v's last visit, among n − 2 − v others and the closing blanket. δ falls with the number of others (one more answer in
a heap is post-processing), so v = 1 is worst for the former and v = n − 2 for the latter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from netdp.accounting import account
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.checks import count
from netdp.planning.table import calibrations, checked_target
from netdp.privacy import Observers
from netdp.protocols import RingHistogram, WalkHistogram

from .paths import worst_loss

_TOLERANCE = 1e-3
H = TypeVar("H", RingHistogram, WalkHistogram)


@calibrations.register
def _ring(protocol: RingHistogram, epsilon: float, delta: float) -> RingHistogram:
    return _smallest_gamma(protocol, epsilon, delta, [Observers((1,)), Observers((protocol.n - 2,))])


@calibrations.register
def _walk(
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
