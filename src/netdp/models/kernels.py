"""Record by record, in one fixed order: gradients of the built-in models, clipping, rounding, and the check in whole numbers.

Every loop over records stands outermost and holds all that is computed for a record, so the compiler keeps the order of every sum
and cannot mix two records in one: no `fastmath` here, and that is the point (`netdp.models.base`). Compiled on first use, cached on
disk, free of the interpreter lock.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _norm(row: Any) -> float:
    """The L2 norm, also of numbers whose squares are beyond doubles; nan or inf if a number is."""
    a = b = c = e = 0.0  # four sums side by side: four times as fast, and still one fixed order
    d = row.shape[0]
    for k in range(0, d - 3, 4):
        a += row[k] * row[k]
        b += row[k + 1] * row[k + 1]
        c += row[k + 2] * row[k + 2]
        e += row[k + 3] * row[k + 3]
    for k in range(d - d % 4, d):
        a += row[k] * row[k]
    square = (a + b) + (c + e)
    if 1e-280 < square < 1e300:
        return math.sqrt(square)
    most = 0.0
    for k in range(d):
        if not math.isfinite(row[k]):
            return math.nan
        most = max(most, abs(row[k]))
    if most == 0.0:
        return 0.0
    if most < 1e-300:  # dividing by these may overflow; such a gradient is as good as zero
        return most
    square = 0.0
    for k in range(d):
        square += (row[k] / most) * (row[k] / most)
    return most * math.sqrt(square)  # inf, if the norm itself is beyond doubles


@njit(nogil=True, cache=True)
def clip_rows(rows: Any, clip: float) -> int:
    """Scale every row down to norm at most `clip`, in place; rows that are not finite become 0. Returns how many those are."""
    gone = 0
    for r in range(rows.shape[0]):
        norm = _norm(rows[r])
        if not math.isfinite(norm):
            gone += 1
            rows[r, :] = 0.0
        elif norm > clip:
            factor = clip / norm
            for k in range(rows.shape[1]):
                rows[r, k] *= factor
    return gone


@njit(nogil=True, cache=True)
def add_clipped(rows: Any, clip: float, total: Any) -> int:
    """Add every row, clipped, to `total`; returns how many rows were not finite and left out."""
    gone = 0
    for r in range(rows.shape[0]):
        norm = _norm(rows[r])
        if not math.isfinite(norm):
            gone += 1
            continue
        factor = clip / norm if norm > clip else 1.0
        for k in range(rows.shape[1]):
            total[k] += rows[r, k] * factor
    return gone


@njit(nogil=True, cache=True)
def _fits(steps: Any, limit: int) -> bool:
    """Whether the sum of squares is at most `limit` < 2⁶¹, for numbers of size below 2³¹: nothing can overflow on the way."""
    d, square = steps.shape[0], 0
    for first in range(0, d, 2):  # by twos: a sum of two squares is below 2⁶³ − 2⁶¹
        square += steps[first] * steps[first]
        if first + 1 < d:
            square += steps[first + 1] * steps[first + 1]
        if square > limit:
            return False
    return True


@njit(nogil=True, cache=True)
def hold(steps: Any, radius: int, limit: int) -> None:
    """Bring a vector of whole numbers within ‖k‖² ≤ limit, in place: k → sign(k)·⌊|k|·radius/s⌋ with s ≥ ‖k‖, checked.

    radius   ⌊√limit⌋; no number of `steps` may be larger
    """
    while not _fits(steps, limit):
        square = 0.0
        for k in range(steps.shape[0]):
            square += float(steps[k]) * float(steps[k])
        length = np.int64(math.floor(math.sqrt(square))) + 1
        for k in range(steps.shape[0]):
            size = abs(steps[k]) * radius // length  # at most 2³⁰·2³⁰
            steps[k] = size if steps[k] >= 0 else -size
        radius -= 1  # only if doubles put `length` below ‖k‖ is there another round; it ends, at 0 at the latest


@njit(nogil=True, cache=True)
def add_whole(rows: Any, clip: float, grid: float, radius: int, limit: int, room: Any, total: Any) -> int:
    """Add every row, clipped and in whole steps of norm² ≤ limit, to `total`; returns how many rows were not finite.

    room   (d,) space to work in
    """
    gone = 0
    for r in range(rows.shape[0]):
        norm = _norm(rows[r])
        if not math.isfinite(norm):
            gone += 1
            continue
        factor = clip / norm if norm > clip else 1.0
        for k in range(rows.shape[1]):
            step = np.rint(rows[r, k] * factor / grid)
            room[k] = np.int64(min(max(step, -float(radius)), float(radius)))
        hold(room, radius, limit)
        for k in range(rows.shape[1]):
            total[k] += room[k]
    return gone


@njit(nogil=True, cache=True)
def prepare(rows: Any, out: Any) -> None:
    """`out` (m, f+1): a constant 1 behind every row (m, f), scaled down to norm at most 1."""
    f = rows.shape[1]
    for r in range(rows.shape[0]):
        for k in range(f):
            out[r, k] = rows[r, k]
        out[r, f] = 1.0
        norm = _norm(out[r])
        for k in range(f + 1):
            out[r, k] /= norm


@njit(nogil=True, cache=True)
def _dot(row: Any, theta: Any) -> float:
    total = 0.0
    for k in range(row.shape[0]):
        total += row[k] * theta[k]
    return total


@njit(nogil=True, cache=True)
def margins(theta: Any, X: Any, out: Any) -> None:
    """`out` (m, classes): the inner products of every row with the numbers of every class."""
    f = X.shape[1]
    for r in range(X.shape[0]):
        for c in range(out.shape[1]):
            out[r, c] = _dot(X[r], theta[c * f : (c + 1) * f])


@njit(nogil=True, cache=True)
def logistic_slopes(theta: Any, X: Any, y: Any, slopes: Any) -> None:
    """The slope of a record's loss in its margin θᵀx: p − y, with p = 1/(1 + exp(−θᵀx)) and y 0 or 1."""
    for r in range(X.shape[0]):
        margin = _dot(X[r], theta)
        if y[r] > 0.5:
            slopes[r] = -1.0 / (1.0 + math.exp(min(margin, 700.0)))
        else:
            slopes[r] = 1.0 / (1.0 + math.exp(min(-margin, 700.0)))


@njit(nogil=True, cache=True)
def linear_slopes(theta: Any, X: Any, y: Any, slopes: Any) -> None:
    """The slope of half the squared error in the prediction: θᵀx − y."""
    for r in range(X.shape[0]):
        slopes[r] = _dot(X[r], theta) - y[r]


@njit(nogil=True, cache=True)
def multinomial_slopes(theta: Any, X: Any, y: Any, slopes: Any) -> None:
    """(m, classes): the slopes of a record's loss in its scores, p_c − [c = y]."""
    f, classes = X.shape[1], slopes.shape[1]
    for r in range(X.shape[0]):
        largest = -math.inf
        for c in range(classes):
            slopes[r, c] = _dot(X[r], theta[c * f : (c + 1) * f])
            largest = max(largest, slopes[r, c])
        mass = 0.0
        for c in range(classes):
            slopes[r, c] = math.exp(slopes[r, c] - largest)
            mass += slopes[r, c]
        for c in range(classes):
            slopes[r, c] /= mass
        slopes[r, int(y[r])] -= 1.0


@njit(nogil=True, cache=True)
def outer_rows(slopes: Any, X: Any, out: Any) -> None:
    """`out` (b, classes·f): the slopes of each record times its row."""
    f = X.shape[1]
    for r in range(X.shape[0]):
        for c in range(slopes.shape[1]):
            for k in range(f):
                out[r, c * f + k] = slopes[r, c] * X[r, k]


@njit(nogil=True, cache=True)
def add_shares(rows: Any, clip: float, owner: Any, share: Any, totals: Any) -> int:
    """Add share·(clipped row) to the row of `totals` that belongs to its owner; returns how many rows were not finite."""
    gone = 0
    for r in range(rows.shape[0]):
        norm = _norm(rows[r])
        if not math.isfinite(norm):
            gone += 1
            continue
        factor = (clip / norm if norm > clip else 1.0) * share[r]
        u = owner[r]
        for k in range(rows.shape[1]):
            totals[u, k] += rows[r, k] * factor
    return gone
