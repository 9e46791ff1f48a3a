"""Walks that are absorbed, step by step: compiled on first use, cached on disk, free of the interpreter lock.

Sums of products of numbers ≥ 0 only, so the relative error of every entry after t steps is at most t(d + 2) units of
rounding, d the most entries of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def first_hits(indptr: Any, indices: Any, data: Any, start: Any, mark: Any, classes: int, horizon: int) -> Any:
    """P(the first marked node is of class j and comes after t steps), and P(none within t steps), t = 0 … horizon.

    The arrays are the *transposed* transition matrix. `start` is a law; mark[w] = −1 for nodes that are passed, else a class.
    """
    here = start.copy()
    hits = np.zeros((classes, horizon + 1))
    left = np.zeros(horizon + 1)
    for t in range(horizon + 1):
        for w in range(mark.size):
            if mark[w] >= 0:
                hits[mark[w], t] += here[w]
                here[w] = 0.0
            else:
                left[t] += here[w]
        if t < horizon:
            there = np.zeros(mark.size)
            for w in range(mark.size):
                total = 0.0
                for entry in range(indptr[w], indptr[w + 1]):
                    total += data[entry] * here[indices[entry]]
                there[w] = total
            here = there
    return hits, left


@njit(nogil=True, cache=True)
def times_to(indptr: Any, indices: Any, data: Any, target: int, starts: Any, horizon: int) -> Any:
    """P(a walk from each of `starts` is first at `target` after t steps), t = 0 … horizon; the arrays are P itself."""
    n = indptr.size - 1
    law = np.zeros((starts.size, horizon + 1))
    here = np.zeros(n)
    here[target] = 1.0
    for t in range(horizon + 1):
        for i in range(starts.size):
            law[i, t] = here[starts[i]]
        there = np.zeros(n)
        here_target = here[target] if t == 0 else 0.0
        for x in range(n):
            if x == target:
                continue
            total = 0.0
            for entry in range(indptr[x], indptr[x + 1]):
                y = indices[entry]
                total += data[entry] * (here_target if y == target else here[y])
            there[x] = total
        here = there
    return law


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})  # no nan here: several maxima at a time
def least_products(log_delta: Any, begins: Any, end: float, s: Any, logs: Any) -> Any:
    """min over s of max over x of log δ − s·x, or −s·end where that is more, plus the log of the moment; for every ε, a row."""
    best = np.full(log_delta.shape[0], np.inf)
    for row in range(log_delta.shape[0]):
        for i in range(s.size):
            worst = -s[i] * end
            for j in range(begins.size):
                here = log_delta[row, j] - s[i] * begins[j]
                worst = here if here > worst else worst
            best[row] = min(best[row], worst + logs[i])
    return best
