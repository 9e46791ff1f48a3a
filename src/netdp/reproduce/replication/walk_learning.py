"""Learning by a walking token beside local and central DP-SGD: what Figures 2 to 7 share.

2,000 users, 20,000 steps, gradients clipped to L = 0.4, δ = 10⁻⁶, 80/20 split. σ as the papers' code calibrates it, and as
netdp certifies it. The step size is chosen for every method from a small grid by the objective on the *training* rows, with
seeds of its own; the test rows are looked at once, at the end. (The choice is not accounted for, in any row.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.accounting import trusted_curator
from netdp.accounting.published.amplification.descent import (
    central_calibration,
    code_contributions,
    local_calibration,
    network_calibration,
)
from netdp.learn import LogisticParties, accuracy, table
from netdp.learn.tables import Table
from netdp.planning.smallest import smallest
from netdp.planning.token.calibrate import calibrate_walk
from netdp.privacy import gaussian_mu
from netdp.protocols.walk import WalkDescent
from netdp.simulate.walk_descent import loss, train_walks

from ..experiment import Kind, Series

USERS, STEPS, CLIP, DELTA = 2000, 20_000, 0.4, 1e-6
GRID = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
# name → how its curve is drawn
METHODS = {
    "local, published σ": Kind.PUBLISHED,
    "local, certified": Kind.CERTIFIED,
    "network, published σ": Kind.PUBLISHED,
    "network, certified, sender known": Kind.CERTIFIED,
    "network, certified, sender hidden": Kind.CERTIFIED,
    "central, published σ": Kind.PUBLISHED,
    "central, certified": Kind.CERTIFIED,
    "not private": Kind.OTHER,
}


@dataclass(frozen=True)
class Method:
    """A way to learn: the protocol, and what a user does whose contributions are used up."""

    name: str
    protocol: WalkDescent
    after_cap: str = "noise"


@lru_cache(64)
def method(name: str, epsilon: float, n: int = USERS, steps: int = STEPS, cap: int | None = None) -> Method:
    """The method with the noise it needs. `cap` replaces the authors' cap on contributions, not their σ.

    Certified network learning has no cap: with one, the secrecy of the walk would not count.
    """
    K = code_contributions(n, steps)
    args = (epsilon, DELTA, n, steps, CLIP)
    draft = WalkDescent(n, steps, sigma=1.0, step=0.1, clip=CLIP, sender="hidden")
    limit = K if cap is None else cap
    capped = draft.replace(contributions=limit)
    if name == "local, published σ":
        return Method(name, capped.replace(sigma=local_calibration(*args)), "nothing")
    if name == "local, certified":
        # everything published, K contributions of at most 2L each: exactly Gaussian DP
        sigma = math.sqrt(limit) * 2 * CLIP / float(gaussian_mu(epsilon, DELTA)) * (1 + 1e-9)
        return Method(name, capped.replace(sigma=sigma), "nothing")
    if name == "network, published σ":
        return Method(name, capped.replace(sigma=network_calibration(*args).sigma))
    if name == "network, certified, sender known":
        return Method(name, calibrate_walk(draft.replace(sender="known", release="named"), epsilon, DELTA))
    if name == "network, certified, sender hidden":
        return Method(name, calibrate_walk(draft, epsilon, DELTA))
    if name == "central, published σ":
        return Method(name, draft.replace(sigma=central_calibration(*args)))
    if name == "central, certified":
        start = central_calibration(*args)
        needed = smallest(lambda s: trusted_curator(draft.replace(sigma=s)).worst_epsilon(DELTA), epsilon, start)
        return Method(name, draft.replace(sigma=needed))
    if name == "not private":
        return Method(name, draft.replace(sigma=1e-9))
    raise ValueError(f"no method is called {name!r}")


@lru_cache(8)
def load(name: str, n: int = USERS) -> tuple[LogisticParties, Table]:
    """A table split 80/20, its training rows dealt to n users."""
    rows, test = table(name).split(0.2, 0)
    return LogisticParties.deal(rows.X, rows.y, n, 0), test


def tuned(way: Method, data: LogisticParties) -> WalkDescent:
    """The step of the grid with the least mean objective on the training rows, by three seeds of its own."""

    def score(step: float) -> float:
        runs = train_walks(way.protocol.replace(step=step), data, range(1000, 1003), after_cap=way.after_cap)
        return float(np.mean([loss(data, run.model) for run in runs]))

    return way.protocol.replace(step=min(GRID, key=score))


def measured(item: dict[str, Any]) -> dict[str, Any]:
    """One method on one table: σ, step, accuracy over the trials, and over the iterations if `watch` is set."""
    data, test = load(item["table"], item.get("n", USERS))
    way = method(item["method"], item["epsilon"], item.get("n", USERS), item.get("steps", STEPS), item.get("cap"))
    protocol = way.protocol.replace(step=item["step"]) if "step" in item else tuned(way, data)
    every = item.get("watch")
    runs = train_walks(
        protocol,
        data,
        range(item["trials"]),
        after_cap=way.after_cap,
        watch_every=every,
        test=None if every is None else test,
    )
    scores = [accuracy(run.model, test.X, test.y) for run in runs]
    out: dict[str, Any] = {
        "sigma": protocol.sigma,
        "step": protocol.step,
        "accuracy": float(np.mean(scores)),
        "spread": float(np.std(scores)),
        "objective": float(np.mean([loss(data, run.model) for run in runs])),
        "d": data.d,
    }
    if every is not None:
        out["iterations"] = runs[0].steps.tolist()
        out["curve"] = np.mean([run.accuracy for run in runs], axis=0).tolist()
        out["objectives"] = np.mean([run.objective for run in runs], axis=0).tolist()
    return out


def curve(item: dict[str, Any], found: dict[str, Any], what: str = "curve") -> Series:
    """One method's accuracy over the iterations."""
    return Series(named(item["method"]), found["iterations"], found[what], METHODS[item["method"]])


def named(method: str) -> str:
    """A method in a legend: where learning happens, then whose noise; curves of one place share a colour.

    >>> named("network, certified, sender hidden"), named("not private")
    ('network: certified', 'not private')
    """
    return ": ".join(method.removesuffix(", sender hidden").split(", ", 1))
