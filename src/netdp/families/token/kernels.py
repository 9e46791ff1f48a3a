"""Inner loops of walks: when an absorbed walk comes where, where a token goes, and the steps of a model that it carries.

All are compiled on first use, cached on disk, and free of the interpreter lock. `first_hits` and `times_to` add up products of
numbers ≥ 0 only, so the relative error of every entry after t steps is at most t(d + 2) units of rounding, d the most entries of a
row (docs/proofs/token.md#walk-energy).
"""

from __future__ import annotations

import math
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


@njit(nogil=True, cache=True)
def walk_on(indptr: Any, indices: Any, holder: int, metropolis: bool, draws: Any, path: Any) -> int:
    """Write where the token goes from `holder`, one step per draw (uniform on [0, 1)), and return where it ends.

    A draw times the degree: the whole part names the neighbour, the rest, uniform again, decides whether a
    Metropolis move to it is taken (probability min(1, d_u/d_w), so P_uw = min(1/d_u, 1/d_w)) or the token stays.

    >>> import numpy as np
    >>> from netdp import graphs
    >>> g, path = graphs.path(3), np.empty(3, dtype=np.int32)
    >>> walk_on(g.indptr, g.indices, 0, True, np.array([0.4, 0.9, 0.9]), path), path.tolist()
    (2, [1, 2, 2])
    """
    for step in range(len(draws)):
        degree = indptr[holder + 1] - indptr[holder]
        place = draws[step] * degree
        choice = min(int(place), degree - 1)
        other = indices[indptr[holder] + choice]
        if not metropolis or (place - choice) * (indptr[other + 1] - indptr[other]) < degree:
            holder = other
        path[step] = holder
    return holder


@njit(nogil=True, cache=True)
def walk_along(indptr: Any, indices: Any, chances: Any, holder: int, draws: Any, path: Any) -> int:
    """The same for any transition matrix in compressed rows: the draw is held against the sums of a row's probabilities.

    >>> import numpy as np
    >>> path = np.empty(3, dtype=np.int32)
    >>> rows = np.array([0, 1, 3]), np.array([1, 0, 1]), np.array([1.0, 0.25, 0.75])
    >>> walk_along(*rows, 0, np.array([0.9, 0.1, 0.3]), path), path.tolist()
    (1, [1, 0, 1])
    """
    for step in range(len(draws)):
        entry, end = indptr[holder], indptr[holder + 1]
        passed = chances[entry]
        while entry < end - 1 and draws[step] >= passed:
            entry += 1
            passed += chances[entry]
        holder = indices[entry]
        path[step] = holder
    return holder


@njit(nogil=True, cache=True)
def walk_steps(
    signed: Any,
    rows: Any,
    caps: Any,
    path: Any,
    noise: Any,
    model: Any,
    gradient: Any,
    used: Any,
    step: float,
    cap: int,
    forward: bool,
    radius: float,
) -> None:
    """θ ← Π(θ − η(g_u(θ) + Z)) along `path`, in place.

    signed    (n, m, d): y_ij·x_ij, the user's own rows first
    rows      (n,): how many rows a user has
    caps      (n, m): L/‖x_ij‖, the largest factor that keeps a row's gradient within norm L
    path      (t,): who is visited
    noise     (t, d): Z, scaled by σ
    model     (d,): θ, updated
    gradient  (d,): space to work in
    used      (n,): contributions so far, updated
    cap       contributions allowed per user, or −1
    forward   a user that has used them up passes the token on untouched, instead of adding noise only
    radius    of the ball that Π projects onto; 0: no projection
    """
    d = model.shape[0]
    for t in range(path.shape[0]):
        u = path[t]
        if cap >= 0 and used[u] >= cap:
            if forward:
                continue
            for k in range(d):
                gradient[k] = 0.0
        else:
            used[u] += 1
            count = rows[u]
            for k in range(d):
                gradient[k] = 0.0
            for j in range(count):
                margin = 0.0
                for k in range(d):
                    margin += signed[u, j, k] * model[k]
                slope = 1.0 / (1.0 + math.exp(min(margin, 500.0)))
                slope = min(slope, caps[u, j]) / count
                for k in range(d):
                    gradient[k] -= slope * signed[u, j, k]
        length = 0.0
        for k in range(d):
            model[k] -= step * (gradient[k] + noise[t, k])
            length += model[k] * model[k]
        if radius > 0.0 and length > radius * radius:
            shrink = radius / math.sqrt(length)
            for k in range(d):
                model[k] *= shrink
