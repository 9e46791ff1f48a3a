"""How surprising counts are, as bounds that hold for every number of draws: none is a limit that is trusted far out in a tail.

A check of a sampler must call a sound one wrong with no larger probability than it says, one in 10⁹, say. The textbook's
chi-square has its law only in the limit, and that far out a limit is no bound. So every function here bounds the *chance*
that sound draws look as bad as what was seen:

- `of_counts`    the likelihood ratio n·D of counts in k cells, D the relative entropy of the shares seen from those stated:
                 E exp(λnD) ≤ (1 − λ)^{1−k} for λ < 1 (Agrawal, *Finite-Sample Concentration of the Multinomial in Relative
                 Entropy*, 2020), so P(nD ≥ x) ≤ e^{−x}(ex/(k−1))^{k−1} for x ≥ k − 1. Pearson's chi-square is about 2nD.
- `of_evenness`  the other end: counts *closer* to what is stated than chance leaves them. With so many draws in each cell the
                 multinomial law is, near its middle, at most four times its Gaussian limit (Stirling); the limit is taken over
                 all cubes around the counts in question: k counts with a given sum are whole numbers no point is further than
                 √k/2 from, so the ball is that much larger, in units of √(draws expected).
- `of_each`      single counts, by their own binomial laws: exact.
- `of_sum`       a sum of scores of independent draws: exp(n(log E e^{λa} − λm)) for the best of a few λ; each of them is a bound
                 (Chernoff), and near a Gaussian the best one is sharp up to a factor.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray

_LEAST = 500.0
"""Fewer draws than these in some cell, expected, and evenness is not judged."""
_AROUND = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.3, 1.6, 2.0, 4.0])
_FLOOR = 1e-300


def of_counts(counts: npt.ArrayLike, shares: npt.ArrayLike) -> float:
    """The chance of counts as far from what independent draws with these shares give, or further.

    >>> of_counts([480, 520], [0.5, 0.5]), of_counts([300, 700], [0.5, 0.5]) < 1e-30
    (1.0, True)
    """
    seen, p = _cells(counts, shares)
    if (seen[p == 0] > 0).any():
        return 0.0
    there = seen > 0
    n, k = seen.sum(), int((p > 0).sum())
    x = float((seen[there] * np.log(seen[there] / (n * p[there]))).sum())
    if k < 2 or x <= k - 1:
        return 1.0
    return max(math.exp(max(-x + (k - 1) * (1 + math.log(x / (k - 1))), -690.0)), _FLOOR)


def of_evenness(counts: npt.ArrayLike, shares: npt.ArrayLike) -> float:
    """The chance of counts as close to what is expected, or closer; 1 where too few are expected to say.

    >>> of_evenness([1000] * 50, [0.02] * 50) < 1e-30
    True
    """
    from scipy.special import gammainc

    seen, p = _cells(counts, shares)
    seen, p = seen[p > 0], p[p > 0]
    expected = seen.sum() * p
    if len(p) < 2 or expected.min() < _LEAST:
        return 1.0
    square = float(((seen - expected) ** 2 / expected).sum())
    radius = math.sqrt(square) + math.sqrt(len(p) / (4 * float(expected.min())))
    return min(1.0, 4 * float(gammainc((len(p) - 1) / 2, radius**2 / 2)))


def of_each(counts: npt.ArrayLike, draws: int, shares: npt.ArrayLike) -> FloatArray:
    """For every count by itself: the chance that a binomial number is as far out on its side, times two for the two sides.

    >>> of_each([0, 50], 100, [0.5, 0.5]).round(3).tolist()
    [0.0, 1.0]
    """
    from scipy.special import betainc

    k, p = np.broadcast_arrays(np.asarray(counts, dtype=np.float64), np.asarray(shares, dtype=np.float64))
    p = np.clip(p, 0.0, 1.0)
    above = np.where(k > 0, betainc(np.maximum(k, 1.0), draws - k + 1, p), 1.0)
    below = np.where(k < draws, betainc(np.maximum(draws - k, 1.0), k + 1, 1 - p), 1.0)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(above, below)))


def of_sum(mean: float, draws: int, scores: npt.ArrayLike, shares: npt.ArrayLike) -> float:
    """The chance that the mean score of so many draws is as far from what it should be, on its side or the other.

    scores, shares : what an outcome scores, and how probable it is

    >>> coins = ([-1.0, 1.0], [0.5, 0.5])
    >>> of_sum(0.01, 10_000, *coins), 1e-24 < of_sum(0.1, 10_000, *coins) < 1e-20
    (1.0, True)
    """
    a, p = (np.asarray(one, dtype=np.float64).ravel() for one in (scores, shares))
    a, p = a[p > 0], p[p > 0] / p.sum()
    centre = float(p @ a)
    a, off = a - centre, mean - centre
    if off == 0 or not a.any():
        return 1.0 if off == 0 else 0.0
    if off < 0:
        a, off = -a, -off
    if off > a.max():
        return 0.0
    best = 0.0
    for lam in off / float(p @ (a * a)) * _AROUND:
        top = lam * float(a.max())
        best = min(best, draws * (top + math.log(float(p @ np.exp(lam * a - top))) - lam * off))
    return min(1.0, max(2 * math.exp(max(best, -690.0)), _FLOOR))


def _cells(counts: npt.ArrayLike, shares: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    seen, p = (np.asarray(one, dtype=np.float64).ravel() for one in (counts, shares))
    if seen.shape != p.shape or not seen.sum() > 0 or not (p >= 0).all() or not p.sum() > 0:
        raise InvalidValue(
            f"{seen.size} counts and {p.size} shares: give one share ≥ 0 for every count, and some draws"
        )
    return seen, p / p.sum()
