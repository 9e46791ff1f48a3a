"""Network shuffling at work: `python benchmarks/shuffling.py a b`.

(a) a million users on a random 10-regular graph, 100 rounds: seconds and memory
(b) the same with 10⁴, 10⁵ and 10⁶ users: nanoseconds per hop of a report, and their ratios

What it costs the users (Table 3) and the mean of unit vectors on Twitch (Figure 9): `netdp reproduce 003-table3 003-fig9`.
Each case runs in a process of its own, so that its peak memory is its own. Compilation is not counted: the kernels are
compiled once and cached on disk.
"""

from __future__ import annotations

import time

from measure import peak, run_cases, seconds, size
from netdp import graphs
from netdp.families.shuffle.simulate import run_walks
from netdp.protocols import Shuffle

DEGREE, ROUNDS = 10, size(100, quick=2)


def warm() -> None:
    small = Shuffle(graphs.complete(4), rounds=2, epsilon0=1.0)
    run_walks(small, 0)
    run_walks(small.replace(laziness=0.5), 0)


def million() -> str:
    start = time.perf_counter()
    protocol = Shuffle(graphs.regular(size(1_000_000, quick=100), DEGREE, seed=0), rounds=ROUNDS, epsilon0=1.0)
    built, before = time.perf_counter() - start, peak()
    plain = seconds(lambda: run_walks(protocol, 0))
    lazy = seconds(lambda: run_walks(protocol.replace(laziness=0.2), 0))
    graph = f"(graph: {built:.1f} s, {before:.2f} GB)"
    return f"walks and hand-over {plain:.1f} s, lazy ones {lazy:.1f} s; {peak():.2f} GB {graph}"


def growth() -> str:
    lines, least = [], None
    for n in size((10_000, 100_000, 1_000_000), quick=(100,)):
        protocol = Shuffle(graphs.regular(n, DEGREE, seed=0), rounds=ROUNDS, epsilon0=1.0)
        each = min(seconds(lambda p=protocol: run_walks(p, 0)) for _ in range(2)) / (n * ROUNDS) * 1e9
        least = each if least is None else least
        lines.append(f"n = {n:>9,}: {each:5.1f} ns per hop, ×{each / least:.1f}")
    return "\n    ".join(["", *lines])


CASES = {"a": million, "b": growth}

if __name__ == "__main__":
    run_cases(__file__, __doc__, CASES, warm)
