"""Speed and memory of walks and of the losses on them: `python benchmarks/walks.py a b c d`.

(a) what every user learns about every other on ten drawn walks, n=400, T=100n, ε₀=0.1: the published experiment (mean .1109,
    best .091, worst .528), whose own code took 350 s and 3.1 GB
(b) the same with n=2000, one walk, and the exact losses of all pairs beside it
(c) steps per second of the walkers: complete graph, random 8-regular graph; a whole run of 10⁷ steps
(d) the certified histogram on a ring of 10,000 users, 10 rounds

Each case runs in a process of its own, so that its peak memory is its own. Compilation is not counted: the kernels are
compiled once and cached on disk.
"""

from __future__ import annotations

import time

import numpy as np

from measure import peak, run_cases, seconds, size
from netdp import graphs
from netdp.papers.amplification.walks import rule_losses, sum_cycles, walk_losses
from netdp.protocols import GraphWalkSum, RingHistogram, WalkSum

N, MIDDLE = size((400, 5000), quick=(10, 10))
REFERENCE = {"seconds": 350.0, "GB": 3.1, "mean": 0.1109, "best": 0.091, "worst": 0.528}


def experiment() -> str:
    walk_losses(10, runs=1)
    start = time.perf_counter()
    found = walk_losses(N, 0.1, runs=size(10, quick=1))
    both = time.perf_counter() - start
    rng = np.random.default_rng(0)
    paths = [rng.integers(N, size=100 * N, dtype=np.int32) for _ in range(10)]
    rule = seconds(lambda: [row[0] for path in paths for row in rule_losses(path, N, sum_cycles(0.1, 100 * N))])
    figures = ", ".join(
        f"{name} {getattr(found, name):.4f} ({getattr(found, name) / REFERENCE[name]:.3f} of the reference)"
        for name in ("mean", "best", "worst")
    )
    return (
        f"the rule alone {rule:.2f} s: {REFERENCE['seconds'] / rule:.0f} times as fast; with the exact losses {both:.2f} s: "
        f"{REFERENCE['seconds'] / both:.0f} times; {peak():.2f} GB: 1/{REFERENCE['GB'] / peak():.0f} of the memory\n"
        f"    by the rule: {figures}\n"
        f"    exactly: mean {found.exact_mean:.4f}, best {found.exact_best:.4f}, worst {found.exact_worst:.4f}"
    )


def large() -> str:
    walk_losses(10, runs=1)
    took = seconds(lambda: walk_losses(size(2000, quick=20), 0.1, runs=1))
    return f"{took:.1f} s, {peak():.2f} GB"


def walkers() -> str:
    from netdp.families.token.simulate import draw_paths
    from netdp.protocols import simulate

    steps = size(10_000_000, quick=10_000)
    complete = WalkSum(1000, steps=steps, sigma=1.0)
    regular = GraphWalkSum(graphs.regular(size(10_000, quick=50), 8, seed=0), steps=steps, sigma=1.0)
    draw_paths(regular.replace(steps=10_000), 0)
    on_complete, on_regular = (seconds(lambda p=p: draw_paths(p, 0)) for p in (complete, regular))
    whole = seconds(lambda: simulate(complete, np.zeros(1000), 0))
    return (
        f"complete graph {steps / on_complete:.1e} steps/s, 8-regular graph {steps / on_regular:.1e} steps/s; "
        f"a whole run of 10⁷ steps {whole:.1f} s; {peak():.2f} GB"
    )


def histogram() -> str:
    from netdp.protocols.table import certified

    protocol = RingHistogram(2 * MIDDLE, rounds=10, domain=5, gamma=0.2)
    start = time.perf_counter()
    loss = certified(protocol, (MIDDLE,))
    took = time.perf_counter() - start
    return f"{took:.1f} s; ε = {loss.worst_epsilon(1e-6):.3f} at δ = 1e-6, one response alone {protocol.epsilon0:.2f}"


CASES = {"a": experiment, "b": large, "c": walkers, "d": histogram}

if __name__ == "__main__":
    run_cases(__file__, __doc__, CASES, lambda: None)
