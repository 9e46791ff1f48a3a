"""Among whom a report hides, given all that is seen of its way (docs/proofs/shuffle.md#crowds).

If the place (or whatever else is seen) of u's report has the law p_u, the report of w is in the *crowd* of u with probability
min_i p_w(i)/p_u(i), and what is learned of u is at most what a uniform shuffler of the crowd reveals. A `Hiding` is one such
bound: hidden in a crowd with some probability, revealed with another, else lost. Shares of the crowd are rounded down to few
values, so that the number of others is a sum of binomial ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from netdp.errors import InvalidValue
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy.clones import Heap
from netdp.privacy.profile import ProfileCurve

if TYPE_CHECKING:
    from netdp.families.shuffle.protocol import FaultyShuffle, RelayedShuffle

LEVELS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 3e-4, 1e-4)
"""The x that are tried in bounds that hold for every x."""

_FINE, _GROUPS, _LEAST = 0.002, 32, 1e-9


def crowd_heap(shares: ArrayLike, randomizer: Randomizer) -> Heap:
    """A victim's report among others who are in its crowd with probabilities `shares`, one for each of the others.

    >>> one = Randomizer(1.0)
    >>> alike, half = crowd_heap(np.ones(999), one), crowd_heap(np.full(999, 0.5), one)
    >>> print(f"{alike.epsilon(1e-6):.3f} {half.epsilon(1e-6):.3f} {crowd_heap(np.zeros(999), one).epsilon(1e-6):.3f}")
    0.149 0.216 1.000
    """
    values = np.asarray(shares, dtype=np.float64).ravel()
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise InvalidValue(f"shares must be probabilities, got values from {values.min()} to {values.max()}")
    return randomizer.heap(crowd=groups(values))


def groups(shares: FloatArray) -> tuple[tuple[int, float], ...]:
    """(how many, probability): the shares rounded down to few values, so that little of their sum is lost.

    >>> groups(np.array([1.0, 0.9995, 0.5, 0.0]))
    ((2, 0.9995), (1, 0.5))
    """
    ordered = np.sort(shares[shares > _LEAST])[::-1]
    if not ordered.size:
        return ()
    step = np.log1p(_FINE)
    while True:
        number = np.floor(np.log(ordered[0] / ordered) / step).astype(np.int64)
        cuts = np.flatnonzero(np.diff(number, prepend=-1))
        if len(cuts) <= _GROUPS:
            break
        step *= 1.5
    ends = np.append(cuts[1:], len(ordered))
    return tuple((int(b - a), float(ordered[b - 1])) for a, b in zip(cuts, ends, strict=True))


@dataclass(frozen=True)
class Hiding:
    """One bound: with probability `hidden` a report is among others who are there with `shares`, with `revealed` it is shown.

    The rest is lost, and tells nothing. Labels are as stated but with probability `moved`.
    """

    hidden: float
    revealed: float
    shares: FloatArray
    moved: float = 0.0

    def heap(self, randomizer: Randomizer) -> Heap:
        """The crowd."""
        if self.shares.size and self.shares.min() == self.shares.max():
            return equal_heap(self.shares.size, float(self.shares[0]), randomizer)
        return crowd_heap(self.shares, randomizer)

    def deltas(self, heap: Heap, eps: FloatArray) -> FloatArray:
        """δ at every ε, given `self.heap`."""
        revealed = min(max(self.revealed, 0.0), 1.0)
        among = heap.hidden(eps)
        if revealed < 1:
            among = among * min(1.0, self.hidden / (1 - revealed))
        stated = heap.finished(among * (1 + 8 * UNIT), eps, revealed)
        if not self.moved:
            return stated
        alone = (heap.delta0 + (1 - heap.delta0) * heap.local(eps)) * (1 + 8 * UNIT)
        with np.errstate(over="ignore"):
            return np.minimum(stated + self.moved * (np.expm1(eps) + 2 * alone) * (1 + 8 * UNIT), alone)


def by_contraction(
    others: int, size: float, *, arrives: float = 1.0, moved: float = 0.0, distance: float = math.inf
) -> list[Hiding]:
    """The report alone, and the bounds (A) and (B) of docs/proofs/shuffle.md#faulty-shuffling for every x that says something.

    size       S = κ^{t/2} Σ_i √(π_i/π_min), for (A)
    arrives    the probability that a report is not lost, whosever it is
    moved      in (A), labels are as stated but with this probability
    distance   κ^t Σ_w 1/π_w, for (B); by default (B) does not hold
    """
    at_most = min(1.0, arrives * (1 + 64 * UNIT))
    ways = [Hiding(0.0, at_most, equal(0.0, others))]
    for x in LEVELS:
        extra = size + (size / x) ** 2
        if extra < 1:
            ways.append(Hiding(at_most, at_most * extra, equal((1 - x) * arrives * (1 - 1e-9), others), moved))
        elsewhere = distance / (4 * x) * (1 + 1e-9)
        if elsewhere < 1:
            share = (1 - x) / (1 + x) * arrives * (1 - 1e-9)
            ways.append(Hiding(at_most, 0.0, equal(share, others), elsewhere))
    return ways


def shared_curve(protocol: FaultyShuffle | RelayedShuffle, ways: list[Hiding]) -> ProfileCurve:
    """The least of several bounds that hold for everybody."""
    randomizer = Randomizer.of(protocol)
    heaps = [way.heap(randomizer) for way in ways]
    knots = [np.array([0.0, protocol.epsilon0])]
    knots += [thinned(np.asarray(heap.profile().epsilons), 192) for heap in heaps[-1:] + heaps[1:2]]
    eps = np.unique(np.concatenate(knots))
    deltas = np.min([way.deltas(heap, eps) for way, heap in zip(ways, heaps, strict=True)], axis=0)
    return ProfileCurve(eps, np.minimum.accumulate(deltas))


def reaches(protocol: FaultyShuffle | RelayedShuffle, ways: list[Hiding], epsilon: float, delta: float) -> bool:
    """Whether one of several bounds that hold for everybody certifies (ε, δ), without the ε between."""
    eps = np.array([epsilon])
    randomizer = Randomizer.of(protocol)
    alone = float(np.asarray(randomizer.alone.delta(epsilon)))
    return any(
        (way.revealed + 2 * way.moved) * alone <= delta and float(way.deltas(way.heap(randomizer), eps)[0]) <= delta
        for way in ways
    )


@lru_cache(maxsize=64)
def equal_heap(others: int, share: float, randomizer: Randomizer) -> Heap:
    """A crowd of others who are all there with the same probability."""
    return crowd_heap(equal(share, others), randomizer)


def equal(share: float, others: int) -> FloatArray:
    """The same share for all."""
    return np.full(others, min(max(share, 0.0), 1.0))


def thinned(eps: FloatArray, points: int = 96) -> FloatArray:
    """At most so many points of a curve: between them the chord is a bound."""
    if len(eps) <= points:
        return eps
    return eps[np.unique(np.linspace(0, len(eps) - 1, points).round().astype(np.int64))]
