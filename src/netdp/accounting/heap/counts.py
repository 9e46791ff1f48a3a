"""How many symbols a heap of reports holds, and what fair coins hide: the numbers behind `clones`.

(A heap is a set of reports without names or order. A symbol is a report for one of the two values in question, a blank one
for neither. The observer is told what the proof hands it for nothing. `clones` has the words and the proofs.)

Their laws are those of `netdp.numerics.binomial`. Numbers of symbols are taken in narrow bins, each with the δ of its lower end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.binomial import Law

_BIN = 2e-4  # relative width of a bin of s: moves ε by at most half of that
_BIN_TOTAL, _BIN_BLANK = 2e-3, 1e-3  # the same, of T and of s, where blanks are counted
_OUTSIDE_BLANK, _LIGHT = 1e-24, 1e-26  # and there windows are narrower, and cells lighter than this are not looked into


@dataclass(frozen=True)
class Coins:
    """Bin(s − 1, ½) for several s: g[k] and its upper tails G[k], one part of the arrays per s."""

    s: IntArray
    start: IntArray  # where the part of s begins …
    first: IntArray  # … and which k that is
    last: IntArray  # the last k held; `beyond` bounds the mass of A ≥ last + 1, 0 if there is none
    beyond: FloatArray
    g: FloatArray
    G: FloatArray
    steps: int

    @classmethod
    def of(cls, sizes: IntArray) -> Coins:
        chances, tails, first, last, beyond, steps = [], [], [], [], [], 0
        for s in sizes.tolist():
            N = s - 1
            centre = (N + 1) // 2
            low = max(0, N // 2 - 4)
            high = min(N, math.ceil(N / 2 + 7.0 * math.sqrt(N)) + 60)
            k = np.arange(low, high)
            g = np.concatenate([[1.0], np.cumprod((N - k) / (k + 1.0))])
            upper = g[centre - low :]
            whole = 2 * upper[::-1].sum() - (upper[0] if N % 2 == 0 else 0.0)  # by symmetry
            g /= whole
            ratio = (N - high) / (high + 1.0)
            chances.append(g)
            tails.append(np.append(np.cumsum(g[::-1])[::-1][1:], 0.0))  # P(coins ≥ k + 1)
            first.append(low)
            last.append(high)
            beyond.append(0.0 if high == N else g[-1] / (1 - ratio))
            steps = max(steps, len(g))
        lengths = np.array([len(g) for g in chances], dtype=np.int64)
        return cls(
            sizes,
            np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
            np.array(first, dtype=np.int64),
            np.array(last, dtype=np.int64),
            np.array(beyond),
            np.concatenate(chances),
            np.concatenate(tails),
            steps,
        )

    def deltas(self, which: IntArray, w: FloatArray, epsilon0: float, eps: FloatArray) -> FloatArray:
        """δ for the sizes s[which], the victim's symbol there with probability w, at every ε < ε₀: (len(which), len(eps))."""
        own = 1.0 / (1.0 + math.exp(-epsilon0))
        tilt = math.tanh(epsilon0 / 2)
        grow = np.expm1(eps)
        s, w = self.s[which][:, None], w[:, None]
        share = (own * grow + tilt)[None, :] + (1 - w) * grow / (2 * w)  # e^ε·own − (1 − own), blanks added
        at = np.ceil(s * share / (tilt * (2 + grow)))
        gain_symbol, cost_blank = w * own * -np.expm1(eps - epsilon0), (1 - w) * grow / 2
        margin = 8 * UNIT * (self.steps + 16)
        best = np.zeros_like(at)
        start, first, last = self.start[which][:, None], self.first[which][:, None], self.last[which][:, None]
        beyond = self.beyond[which][:, None]
        # any event is a lower bound and the best of all is δ; its neighbours are tried because `at` is rounded
        for shift in (-1, 0, 1):
            k = np.minimum(at + shift, 4e18).astype(np.int64) - 1
            inside = np.clip(k, first, last)
            g, G = self.g[start + inside - first], self.G[start + inside - first]
            value = g * (gain_symbol - cost_blank) - grow * G
            value += margin * (g * (gain_symbol + cost_blank) + grow * G)
            np.maximum(best, np.where(k > last, beyond, np.where(k < first, 0.0, value)), out=best)
        return np.minimum(best, w * own * -np.expm1(eps - epsilon0))


class Cells(NamedTuple):
    """Bins of the number s of symbols in a heap, the victim's included; each is taken at its lower end."""

    sizes: IntArray
    """The different lower ends."""
    which: IntArray
    """Bin j has the lower end sizes[which[j]]."""
    weight: FloatArray
    """The probability of bin j; where blanks are told, of bin j and a victim with a symbol."""
    symbol: FloatArray
    """At most this is the probability that the victim has a symbol, given bin j."""
    missing: float
    """The probability outside of all bins: there the local δ counts."""
    relative: float
    """The relative rounding error of the weights."""


NO_CELLS = Cells(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 1.0, 0.0)
"""Nobody else in the heap."""


def symbol_cells(law: Law, symbol: float) -> Cells:
    """Bins of the number of symbols, the victim's included; a victim without one is told."""
    first, _, mass = law.bins(_BIN, 1)
    relative = 16 * UNIT * (law.steps + 64)
    return Cells(first + 1, np.arange(len(first)), mass * symbol, np.ones(len(first)), law.outside, relative)


def blank_cells(others: int, keep: float, p: float, nu: float, sure: int, symbol: float) -> Cells:
    """Bins of the number T of elements in the heap and, within each, of the number s of symbols."""
    total = Law.binomial(others, keep * (2 * p + nu), _OUTSIDE_BLANK)
    T, _, mass = total.bins(_BIN_TOTAL, sure + 1)
    T = T + sure
    rest, missing, steps = 1 - symbol, total.outside, 0
    sizes, weights, chances = [], [], []
    for count, chance in zip(T.tolist(), mass.tolist(), strict=True):
        law = Law.binomial(count, 2 * p / (2 * p + nu), _OUTSIDE_BLANK)
        # s = the others' symbols, plus one if the victim has one
        both = np.append(law.chance, 0.0) * rest + np.insert(law.chance, 0, 0.0) * symbol
        first, last, part = Law(law.low, both, law.outside, law.steps).bins(_BIN_BLANK, 0)
        seen = last > 0
        first, last, part = np.maximum(first[seen], 1), last[seen].astype(np.float64), part[seen]
        sizes.append(first)
        weights.append(part * chance)
        chances.append(symbol * last / (symbol * last + 2 * rest * (p / nu) * np.maximum(count + 1 - last, 0)))
        missing += law.outside * chance
        steps = max(steps, law.steps)
    size, weight, w = np.concatenate(sizes), np.concatenate(weights), np.concatenate(chances)
    heavy = weight > _LIGHT
    missing += float(weight[~heavy].sum())
    every, which = np.unique(size[heavy], return_inverse=True)
    relative = 16 * UNIT * (total.steps + steps + 64)
    return Cells(every, which.astype(np.int64), weight[heavy], w[heavy], missing, relative)
