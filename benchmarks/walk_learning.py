"""Learning by a walking token beside local and central DP-SGD: `python benchmarks/walk_learning.py [--sweeps]`.

2000 users, 20 000 steps, gradients clipped to L = 0.4, δ = 1e-6, ε = 1 and 10; housing (label: longitude below its mean),
spambase, cardio; 80/20 split. σ as the papers' code calibrates it, and as netdp certifies it. The step size is chosen for
every method from a small grid by the objective on the *training* rows, with seeds of its own; the test rows are looked at
once, at the end. (The choice is not accounted for, in any row.)

--sweeps   also: updates per user 1 to 50, steps 2000 to 100 000, 200 users (housing, ε = 10)

Needs NETDP_DATA.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

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
from netdp.planning.token.calibrate import calibrate_walk, smallest
from netdp.privacy import gaussian_mu
from netdp.protocols.walk import WalkDescent
from netdp.simulate.walk_descent import loss, train_walk, train_walks

USERS, STEPS, CLIP, DELTA = 2000, 20_000, 0.4, 1e-6
GRID = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
REFERENCE_SECONDS = 3.0  # one fit by the authors' code


@dataclass(frozen=True)
class Method:
    """A row of the table: the protocol, and what a user does whose contributions are used up."""

    name: str
    protocol: WalkDescent
    after_cap: str = "noise"


def methods(epsilon: float, n: int = USERS, steps: int = STEPS, cap: int | None = None) -> list[Method]:
    """All ways to learn, each with the noise it needs. `cap` replaces the authors' cap on contributions, not their σ.

    Certified network learning has no cap: with one, the secrecy of the walk would not count.
    """
    K = code_contributions(n, steps)
    args = (epsilon, DELTA, n, steps, CLIP)
    draft = WalkDescent(n, steps, sigma=1.0, step=0.1, clip=CLIP, sender="hidden")
    # Everything published, K contributions of at most 2L each: exactly Gaussian DP.
    limit = K if cap is None else cap
    local = math.sqrt(limit) * 2 * CLIP / float(gaussian_mu(epsilon, DELTA)) * (1 + 1e-9)
    hidden = calibrate_walk(draft, epsilon, DELTA)
    known = calibrate_walk(draft.replace(sender="known", release="named"), epsilon, DELTA)
    central = smallest(
        lambda sigma: trusted_curator(draft.replace(sigma=sigma)).worst_epsilon(DELTA), epsilon, hidden.sigma
    )
    capped = draft.replace(contributions=limit)
    return [
        Method("local, published σ", capped.replace(sigma=local_calibration(*args)), "nothing"),
        Method("local, certified", capped.replace(sigma=local), "nothing"),
        Method("network, published σ", capped.replace(sigma=network_calibration(*args).sigma)),
        Method("network, certified, sender known", known),
        Method("network, certified, sender hidden", hidden),
        Method("central, published σ", draft.replace(sigma=central_calibration(*args))),
        Method("central, certified", draft.replace(sigma=central)),
        Method("not private", draft.replace(sigma=1e-9)),
    ]


def tuned(method: Method, data: LogisticParties, seeds: range) -> WalkDescent:
    """The step of the grid with the least mean objective on the training rows."""

    def score(step: float) -> float:
        runs = train_walks(method.protocol.replace(step=step), data, seeds, after_cap=method.after_cap)
        return float(np.mean([loss(data, run.model) for run in runs]))

    return method.protocol.replace(step=min(GRID, key=score))


def measure(ways: list[Method], data: LogisticParties, test: Table, trials: int, known: dict[object, str]) -> None:
    """One line per method: σ, step, objective and accuracy over the trials. `known` spares what was measured before."""
    for method in ways:
        key = (method.protocol, method.after_cap)
        if key not in known:
            protocol = tuned(method, data, range(1000, 1003))
            runs = train_walks(protocol, data, range(trials), after_cap=method.after_cap)
            objectives = [loss(data, run.model) for run in runs]
            scores = [accuracy(run.model, test.X, test.y) for run in runs]
            sigma = "0" if protocol.sigma < 1e-6 else f"{protocol.sigma:.3g}"
            known[key] = (
                f"{sigma:>7}{protocol.step:>8g}{np.mean(objectives):>11.4f}   {np.mean(scores):.4f} ± {np.std(scores):.4f}"
            )
        print(f"  {method.name:34}{known[key]}", flush=True)


def load(name: str, n: int = USERS) -> tuple[LogisticParties, Table]:
    rows, test = table(name).split(0.2, 0)
    return LogisticParties.deal(rows.X, rows.y, n, 0), test


def head(title: str) -> None:
    print(f"\n{title}\n  {'':34}{'σ':>7}{'step':>8}{'objective':>11}   accuracy", flush=True)


def rows_each(data: LogisticParties) -> str:
    counts = (data.weight > 0).sum(axis=1)
    return str(counts.max()) if counts.min() == counts.max() else f"{counts.min()} or {counts.max()}"


def tables(trials: int) -> None:
    ways = {epsilon: methods(epsilon) for epsilon in (10.0, 1.0)}
    for name in ("housing", "spambase", "cardio"):
        data, test = load(name)
        known: dict[object, str] = {}
        for epsilon in ways:
            head(
                f"{name}, ε = {epsilon:g}: {USERS} users × {rows_each(data)} rows, {STEPS} steps, d = {data.d}, "
                f"{trials} trials"
            )
            measure(ways[epsilon], data, test, trials, known)


def speed() -> None:
    data, _ = load("housing")
    protocol = WalkDescent(USERS, STEPS, sigma=1.23, step=0.03, clip=CLIP)
    train_walk(protocol, data, 0)
    seconds = min(_timed(lambda seed=seed: train_walk(protocol, data, seed)) for seed in range(5))
    print(
        f"one fit, housing, {USERS} users, {STEPS} steps: {1000 * seconds:.1f} ms, {REFERENCE_SECONDS / seconds:.0f}× the "
        f"reference's {REFERENCE_SECONDS:g} s"
    )


def _timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def sweeps(trials: int) -> None:
    data, test = load("housing")
    for cap in (1, 5, 10, 50):
        head(f"housing, ε = 10, at most {cap} updates per user")
        measure(methods(10.0, cap=cap)[:5], data, test, trials, {})
    for steps in (2000, 5000, 50_000, 100_000):
        head(f"housing, ε = 10, {steps} steps")
        measure(methods(10.0, steps=steps)[:6], data, test, trials, {})
    data, test = load("housing", 200)
    head(f"housing, ε = 10, 200 users × {rows_each(data)} rows")
    measure(methods(10.0, n=200)[:6], data, test, trials, {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--sweeps", action="store_true", help="also vary updates per user, steps and users")
    arguments = parser.parse_args()
    start = time.perf_counter()
    speed()
    tables(arguments.trials)
    if arguments.sweeps:
        sweeps(max(3, arguments.trials // 2))
    print(f"\n{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
