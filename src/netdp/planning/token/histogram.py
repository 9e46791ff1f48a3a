"""How random the answers of a histogram must be for a target: the smallest γ.

**On a ring the worst observers are users 1 and n−2.** A user u before the observer v has one answer in the heap before v's first
visit, among v − 1 others and the starting blanket, and K − 1 in full heaps; one after v has K − 1 in full heaps and one in the
heap after v's last visit, among n − 2 − v others and the closing blanket. δ falls with the number of others (one more answer in
a heap is post-processing), so v = 1 is worst for the former and v = n − 2 for the latter.
"""

from __future__ import annotations

from typing import TypeVar

from netdp.accounting import account
from netdp.errors import Unsupported
from netdp.numerics.checks import count
from netdp.planning.table import calibrations, checked_target
from netdp.privacy import Observers
from netdp.protocols import RingHistogram, WalkHistogram

_TOLERANCE = 1e-3
H = TypeVar("H", RingHistogram, WalkHistogram)


@calibrations.register
def _ring(protocol: RingHistogram, epsilon: float, delta: float) -> RingHistogram:
    return _smallest_gamma(protocol, epsilon, delta, [Observers((1,)), Observers((protocol.n - 2,))])


@calibrations.register
def _walk(protocol: WalkHistogram, epsilon: float, delta: float, *, colluders: int = 1) -> WalkHistogram:
    return _smallest_gamma(protocol, epsilon, delta, [Observers(tuple(range(count("colluders", colluders))))])


def _smallest_gamma(protocol: H, epsilon: float, delta: float, who: list[Observers]) -> H:
    epsilon, delta = checked_target(epsilon, delta)

    def meets(gamma: float) -> bool:
        one = protocol.replace(gamma=gamma)
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
