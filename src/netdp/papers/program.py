"""What the program behind the replication report does, in the three points in which it differs from what is accounted.

The report links its notebook (github.com/Tiny-boot/privacy-amplification-by-decentralization), which runs a copy of the program
of Cyffers and Bellet. Facts of it:

- a step is cut to length L *after* the noise was added, so that no step is longer than ηL, however large σ is;
- η is .0673 for local and .0342 for central and network DP-SGD, for every table, length and number of users;
- local DP: a user whose contributions are used up passes the token on; network DP: it adds noise alone; central DP: no cap;
- a user has 1.25·T/n contributions, though σ is computed for ⌈1.2·T/n⌉;
- the model has an intercept; the curves of the report are of *one* run.

Clipping after the noise protects nothing that the clipping before it would not, but it does change what is learned: noise
cannot accumulate. Nothing here is certified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from netdp.learn.tables import DataTable
from netdp.models.parties import LogisticParties
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.papers.formulas.amplification import central_calibration, local_calibration, network_calibration

CLIP, DELTA, CAP = 0.4, 1e-6, 1.25

STEPS = {"local": 0.06733333, "network": 0.03416667, "central": 0.03416667}

_CHUNK = 8192


def sigma(place: str, epsilon: float, n: int, steps: int) -> float:
    """The noise that the program computes for learning in one place.

    >>> [round(sigma(place, 10.0, 2000, 20_000), 2) for place in STEPS]
    [5.87, 1.23, 0.7]
    """
    if place == "local":
        return local_calibration(epsilon, DELTA, n, steps, CLIP)
    if place == "network":
        return network_calibration(epsilon, DELTA, n, steps, CLIP).sigma
    return central_calibration(epsilon, DELTA, n, steps, CLIP)


@dataclass(frozen=True, eq=False)
class ProgramRun:
    """After every so many steps: accuracy on the test rows and the mean logistic loss over all users' rows."""

    iterations: IntArray
    accuracy: FloatArray
    objective: FloatArray


def run(
    place: str,
    data: LogisticParties,
    test: DataTable,
    steps: int,
    noise: float,
    seed: int,
    *,
    cap: float | None = None,
    every: int | None = None,
) -> ProgramRun:
    """One run of the program from θ = 0; `cap` replaces 1.25·T/n contributions."""
    rows, tests = with_intercept(data.X), with_intercept(test.X)
    most = np.inf if place == "central" else CAP * steps / data.n if cap is None else cap
    rng = np.random.default_rng(seed)
    model, used = np.zeros(rows.shape[2]), np.zeros(data.n)
    marks = np.arange(every or steps, steps + 1, every or steps)
    seen: list[tuple[float, float]] = []
    done = 0
    for mark in marks.tolist():
        while done < mark:
            end = min(done + _CHUNK, mark)
            path = rng.integers(0, data.n, end - done)
            drawn = noise * rng.standard_normal((end - done, len(model)))
            _steps(rows, data.y, data.weight, path, drawn, model, used, most, place == "local", STEPS[place], CLIP)
            done = end
        right = np.where(tests @ model >= 0, 1.0, -1.0) == test.y
        objective = (data.weight * np.logaddexp(0.0, -data.y * (rows @ model))).sum(axis=1).mean()
        seen.append((float(right.mean()), float(objective)))
    accuracy, objectives = np.array(seen).T
    return ProgramRun(marks, accuracy, objectives)


def with_intercept(rows: FloatArray) -> FloatArray:
    """A column of ones behind the others."""
    return np.concatenate([rows, np.ones((*rows.shape[:-1], 1))], axis=-1)


@njit(nogil=True, cache=True)
def _steps(
    X: Any, y: Any, weight: Any, path: Any, noise: Any, model: Any, used: Any, cap: float, passes: bool, step: float,
    clip: float,
) -> None:  # fmt: skip
    """The steps along a path, in place."""
    d = len(model)
    move = np.empty(d)
    for t in range(len(path)):
        u = path[t]
        used[u] += 1
        over = used[u] > cap
        if over and passes:
            continue
        for j in range(d):
            move[j] = noise[t, j]
        if not over:
            for i in range(X.shape[1]):
                margin = 0.0
                for j in range(d):
                    margin += X[u, i, j] * model[j]
                slope = weight[u, i] * y[u, i] / (1.0 + np.exp(y[u, i] * margin))
                for j in range(d):
                    move[j] -= slope * X[u, i, j]
        length = np.sqrt((move**2).sum())
        if length > clip:
            move *= clip / length
        model -= step * move
