"""Network shuffling at work: `python benchmarks/shuffling.py a b c d`.

(a) a million users on a random 10-regular graph, 100 rounds: seconds and memory
(b) the same with 10⁴, 10⁵ and 10⁶ users: nanoseconds per hop of a report, and their ratios
(c) what it costs the users after t = α⁻¹ ln n rounds on random 10-regular graphs, beside the paper's Table 3 (traffic
    O(log n), space O(1))
(d) the mean of unit vectors in 200 dimensions on Twitch by PrivUnit, the setting of the paper's Figure 9: squared errors of
    "all" (the same for a trusted shuffler and for local DP) and "single", with the certified ε where an accountant is there

Each case runs in a process of its own, so that its peak memory is its own. Compilation is not counted: the kernels are
compiled once and cached on disk.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

from measure import peak, run_cases, seconds
from netdp import graphs
from netdp.errors import DataNotFound, NetdpError
from netdp.mechanisms import PrivUnit
from netdp.protocols import Shuffle
from netdp.simulate.collect import collect
from netdp.simulate.shuffle import run_walks
from netdp.utility.shuffle import collection_error, empty_hands

DEGREE, ROUNDS = 10, 100
DIMENSION, DELTA = 200, 2e-6


def warm() -> None:
    small = Shuffle(graphs.complete(4), rounds=2, epsilon0=1.0)
    run_walks(small, 0)
    run_walks(small.replace(laziness=0.5), 0)


def million() -> str:
    start = time.perf_counter()
    protocol = Shuffle(graphs.regular(1_000_000, DEGREE, seed=0), rounds=ROUNDS, epsilon0=1.0)
    built, before = time.perf_counter() - start, peak()
    plain = seconds(lambda: run_walks(protocol, 0))
    lazy = seconds(lambda: run_walks(protocol.replace(laziness=0.2), 0))
    graph = f"(graph: {built:.1f} s, {before:.2f} GB)"
    return f"walks and hand-over {plain:.1f} s, lazy ones {lazy:.1f} s; {peak():.2f} GB {graph}"


def growth() -> str:
    lines, least = [], None
    for n in (10_000, 100_000, 1_000_000):
        protocol = Shuffle(graphs.regular(n, DEGREE, seed=0), rounds=ROUNDS, epsilon0=1.0)
        each = min(seconds(lambda p=protocol: run_walks(p, 0)) for _ in range(2)) / (n * ROUNDS) * 1e9
        least = each if least is None else least
        lines.append(f"n = {n:>9,}: {each:5.1f} ns per hop, ×{each / least:.1f}")
    return "\n    ".join(["", *lines])


def cost() -> str:
    gap = 1 - 2 * math.sqrt(DEGREE - 1) / DEGREE  # of almost all random regular graphs (Friedman 2008)
    lines = ["       n  rounds  sent per user  by the busiest  largest hand"]
    for n in (1_000, 10_000, 100_000, 1_000_000):
        rounds = math.ceil(math.log(n) / gap)
        traffic = run_walks(Shuffle(graphs.regular(n, DEGREE, seed=0), rounds=rounds, epsilon0=1.0), 0)[1]
        lines.append(
            f"{n:>8,}{rounds:>8}{traffic.mean_sent:>15.1f}{traffic.largest_sent:>16}{traffic.largest_hand:>14}"
        )
    return "\n    ".join(["", *lines])


def unit(points: np.ndarray) -> np.ndarray:
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def certified(protocol: Shuffle) -> float:
    """ε at DELTA against the curator, nan where no accountant is there yet."""
    import netdp

    try:
        return netdp.account(protocol, observers="curator").worst_epsilon(DELTA)
    except NetdpError as problem:
        print(f"    (no certified ε: {problem})", file=sys.stderr)
        return math.nan


def figure9() -> str:
    try:
        graph = graphs.dataset("twitch")
    except DataNotFound as problem:
        return f"skipped: {problem}"
    rng, n, repeats = np.random.default_rng(0), graph.n, 2
    values = unit(np.repeat([1.0, 10.0], [n // 2, n - n // 2])[:, None] + rng.standard_normal((n, DIMENSION)))
    null = unit(5.0 + rng.standard_normal(DIMENSION))
    truth = values.mean(axis=0)
    empty = empty_hands(Shuffle(graph, rounds=1, epsilon0=1.0))[0]
    lines = [
        f"Twitch, {n:,} users, {empty:,.0f} empty hands expected; mean of {repeats} runs (expected)",
        "  ε₀    error all         error single      dummies left in   certified ε   local DP at that ε",
    ]
    for epsilon0 in (0.5, 1.0, 2.0, 4.0):
        mechanism = PrivUnit(DIMENSION, epsilon0)
        every = Shuffle(graph, rounds=150, epsilon0=epsilon0)
        single = every.replace(reporting="single")
        errors = np.zeros(3)
        for seed in range(repeats):
            done = (
                collect(every, mechanism, values, seed, floats=True),
                collect(single, mechanism, values, seed, null=null, floats=True),
            )
            found = done[0].estimate, done[1].estimate, mechanism.estimate(done[1].run.view.reports)
            errors += [np.sum((estimate - truth) ** 2) / repeats for estimate in found]
        expected = [collection_error(every, mechanism, values), collection_error(single, mechanism, values, null=null)]
        epsilon = certified(every)
        same = "" if math.isnan(epsilon) else f"{PrivUnit(DIMENSION, epsilon).squared_error(n):.3g}"
        lines.append(
            f"{epsilon0:4.1f}  {errors[0]:7.3f} ({expected[0]:7.3f}) {errors[1]:7.3f} ({expected[1]:7.3f})"
            f"{errors[2]:14.3f}{epsilon:16.4g}{same:>17}"
        )
    return "\n    ".join(["", *lines])


CASES = {"a": million, "b": growth, "c": cost, "d": figure9}

if __name__ == "__main__":
    run_cases(__file__, __doc__, CASES, warm)
