"""The binomial law: how often something happens in so many independent trials. Everything errs on the safe side.

`Law` holds probabilities along ratio recurrences from the mode, so that all terms are positive and only relative errors of a
few units per step arise; it carries the number of its steps and a bound on the mass outside its window (a geometric series
beyond the ends). `visits` and `most` are what walks need of it.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from netdp.numerics.arrays import FloatArray, IntArray

_LEAST = 1e-32  # of the whole: beyond that a count is not looked at singly
_ROUNDING = 1e-9  # added to probabilities, relatively; SciPy's are right to 10⁻¹⁰ or better


@functools.lru_cache(maxsize=4096)  # the same at every σ of a search
def visits(trials: int, chance: float, first: int = 0) -> tuple[FloatArray, FloatArray]:
    """Counts k = first, first + 1, … and bounds on their probabilities; the last count is ∞ and stands for all others.

    Whoever treats ∞ as the worst there can be leaves nothing out.

    >>> k, weights = visits(3, 0.5)
    >>> k.tolist(), weights.round(6).tolist()
    ([0.0, 1.0, 2.0, 3.0, inf], [0.125, 0.375, 0.375, 0.125, 0.0])
    """
    from scipy.stats import binom

    mean = trials * chance
    far = min(trials, int(mean + 15 * math.sqrt(mean) + 60))
    k = np.arange(first, far + 1)
    tails = np.asarray(binom.sf(k, trials, chance))
    telling = min(int(np.searchsorted(-tails, -_LEAST)) + 1, len(k))
    weights = np.append(binom.pmf(k[:telling], trials, chance), tails[telling - 1] if telling else 1.0) * (
        1 + _ROUNDING
    )
    counts = np.append(k[:telling].astype(np.float64), np.inf)
    counts.flags.writeable = weights.flags.writeable = False
    return counts, weights


@functools.lru_cache(maxsize=1024)
def most(trials: int, chance: float, unlikely: float) -> int:
    """N with P(Binomial(trials, chance) > N) ≤ unlikely."""
    from scipy.stats import binom

    # SciPy finds no quantile of laws that are almost all at 0; there are few counts to try then
    count = int(binom.isf(unlikely * 0.99, trials, chance)) if trials * chance > 1 else 0
    while beyond(count, trials, chance) > unlikely:  # isf works with 1 − p, and rounds
        count += 1
    return min(count, trials)


def beyond(count: int, trials: int, chance: float) -> float:
    """A bound on P(Binomial(trials, chance) > count)."""
    from scipy.stats import binom

    return float(binom.sf(count, trials, chance)) * (1 + _ROUNDING)


@dataclass(frozen=True)
class Law:
    """A law on whole numbers: `chance[i]` at least P(low + i), up to `steps` roundings; the mass elsewhere is ≤ `outside`."""

    low: int
    chance: FloatArray
    outside: float
    steps: int

    @classmethod
    def binomial(cls, trials: int, probability: float, outside: float = 1e-30) -> Law:
        if trials == 0 or probability == 0:
            return cls(0, np.ones(1), 0.0, 0)
        if probability >= 1:
            return cls(trials, np.ones(1), 0.0, 0)
        odds = probability / (1 - probability)
        mode = min(trials, int((trials + 1) * probability))
        reach = math.sqrt(-2 * math.log(outside))  # a first guess; the exact ends decide
        width = math.ceil(reach * math.sqrt(trials * probability * (1 - probability))) + 12
        while True:
            low, high = max(0, mode - width), min(trials, mode + width)
            up = np.arange(mode, high)
            down = np.arange(mode, low, -1)
            above = np.cumprod((trials - up) / (up + 1.0) * odds)
            below = np.cumprod(down / (trials - down + 1.0) / odds)
            chance = np.concatenate([below[::-1], [1.0], above])
            whole = float(np.sort(chance).sum())
            # beyond the ends the ratios keep falling: geometric series
            left = low / (trials - low + 1.0) / odds
            right = (trials - high) / (high + 1.0) * odds
            if max(left, right) < 1:
                missing = chance[0] * left / (1 - left) + chance[-1] * right / (1 - right)
                if missing <= 2 * outside * whole:
                    return cls(low, chance / whole, 2 * missing / whole, len(chance))
            width += width // 2

    def bins(self, relative: float, shift: int) -> tuple[IntArray, IntArray, FloatArray]:
        """First and last number of every bin, and its mass; a bin that starts at x is 1 + relative·(x + shift) wide."""
        high = self.low + len(self.chance) - 1
        if relative * (high + shift) < 1:
            first = np.arange(self.low, high + 1)
            return first, first, self.chance
        edges = [self.low]
        while edges[-1] <= high:
            edges.append(edges[-1] + 1 + int(relative * (edges[-1] + shift)))
        first = np.array(edges[:-1], dtype=np.int64)
        last = np.minimum(np.array(edges[1:], dtype=np.int64) - 1, high)
        return first, last, np.add.reduceat(self.chance, first - self.low)


def sum_of(one: Law, two: Law) -> Law:
    """The law of the sum of two independent numbers."""
    chance = np.convolve(one.chance, two.chance)
    steps = one.steps + two.steps + min(len(one.chance), len(two.chance))
    return Law(one.low + two.low, chance, one.outside + two.outside, steps)
