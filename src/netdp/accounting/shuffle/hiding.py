"""One way to bound what is learned of a report: hidden in a crowd with some probability, told with another, else lost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from netdp.accounting.baselines import single_response
from netdp.accounting.heap.clones import Heap
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy import ProfileCurve

from .crowds import crowd_heap


@dataclass(frozen=True)
class Hiding:
    """One bound: with probability `hidden` a report is among others who are there with `shares`, with `told` it is told.

    The rest is lost, and tells nothing. Labels are as stated but with probability `moved`.
    """

    hidden: float
    told: float
    shares: FloatArray
    moved: float = 0.0

    def heap(self, epsilon0: float, delta0: float) -> Heap:
        """The crowd."""
        if self.shares.size and self.shares.min() == self.shares.max():
            return equal_heap(self.shares.size, float(self.shares[0]), epsilon0, delta0)
        return crowd_heap(self.shares, epsilon0, delta0=delta0)

    def deltas(self, heap: Heap, eps: FloatArray) -> FloatArray:
        """δ at every ε, given `self.heap`."""
        told = min(max(self.told, 0.0), 1.0)
        among = heap.hidden(eps)
        if told < 1:
            among = among * min(1.0, self.hidden / (1 - told))
        found = heap.finished(among * (1 + 8 * UNIT), eps, told)
        if not self.moved:
            return found
        alone = (heap.delta0 + (1 - heap.delta0) * heap.local(eps)) * (1 + 8 * UNIT)
        with np.errstate(over="ignore"):
            return np.minimum(found + self.moved * (np.expm1(eps) + 2 * alone) * (1 + 8 * UNIT), alone)


@lru_cache(maxsize=64)
def equal_heap(others: int, share: float, epsilon0: float, delta0: float) -> Heap:
    """A crowd of others who are all there with the same probability."""
    return crowd_heap(equal(share, others), epsilon0, delta0=delta0)


def equal(share: float, others: int) -> FloatArray:
    """The same share for all."""
    return np.full(others, min(max(share, 0.0), 1.0))


def report_alone(epsilon0: float, delta0: float) -> ProfileCurve:
    """The loss of the report itself."""
    pure = single_response(epsilon0, 2)
    return ProfileCurve(pure.epsilons, delta0 + (1 - delta0) * pure.deltas)


def thinned(eps: FloatArray, most: int = 96) -> FloatArray:
    """Fewer points of a curve: between them the chord is a bound."""
    if len(eps) <= most:
        return eps
    return eps[np.unique(np.linspace(0, len(eps) - 1, most).round().astype(np.int64))]
