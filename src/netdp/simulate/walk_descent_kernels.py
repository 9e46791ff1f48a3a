"""The inner loop of learning by a walking token: compiled on first use, cached on disk, free of the interpreter lock."""

from __future__ import annotations

import math
from typing import Any

from numba import njit


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
