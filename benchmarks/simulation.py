"""Speed and memory of the simulator: `python benchmarks/simulation.py a b c`.

(a) gossip of 100,000 parties on a random 4-regular graph, 100 rounds, 16 numbers each: seconds and memory
(b) one round of neighbour averaging of 303 parameters among 50 parties, against the 0.11 s that a well-known simulator of
    decentralized learning takes for it in one process
(c) randomized gossip of 100,000 parties, 10⁷ exchanges of 16 numbers

Each case runs in a process of its own, so that its peak memory is its own. Compilation is not counted: the kernels are
compiled once and cached on disk.
"""

from __future__ import annotations

import numpy as np

from measure import peak, run_cases, seconds, size
from netdp import graphs
from netdp.protocols import Gossip, RandomizedGossip, simulate

PARTIES = size(100_000, quick=100)
KNOWN_SIMULATOR = 0.11  # seconds per round, case (b)


def warm() -> None:
    small = graphs.ring(4)
    simulate(Gossip(small, rounds=2, sigma=1.0), np.zeros(4), 0)
    simulate(RandomizedGossip(small, steps=2, sigma=1.0), np.zeros(4), 0)


def large() -> str:
    protocol = Gossip(graphs.regular(PARTIES, 4, seed=0), rounds=size(100, quick=3), sigma=1.0, sensitivity=4.0)
    values = np.random.default_rng(0).random((PARTIES, 16))
    plain = seconds(lambda: simulate(protocol, values, 0, bounds=(0, 1)))
    everything = protocol.replace(accelerated=True, masks=10.0, refresh=1.0)
    gap = seconds(lambda: everything.chebyshev)
    full = seconds(lambda: simulate(everything, values, 0, bounds=(0, 1)))
    masked = f"masked, refreshed and accelerated {full:.1f} s (its spectral gap: {gap:.1f} s)"
    return f"plain {plain:.1f} s; {masked}; {peak():.2f} GB"


def learning_round() -> str:
    protocol = Gossip(graphs.regular(50, 4, seed=0), rounds=size(1000, quick=3), sigma=1.0, sensitivity=18.0)
    values = np.random.default_rng(0).random((50, 303))
    each = seconds(lambda: simulate(protocol, values, 0, bounds=(0, 1))) / protocol.rounds
    single = protocol.replace(rounds=1)
    whole = min(seconds(lambda: simulate(single, values, 0, bounds=(0, 1))) for _ in range(20))
    return (
        f"{each * 1e3:.3f} ms per round, {KNOWN_SIMULATOR / each:.0f} times the speed of {KNOWN_SIMULATOR} s; "
        f"as a run of one round, noise and transcript included, {whole * 1e3:.2f} ms ({KNOWN_SIMULATOR / whole:.0f} times)"
    )


def randomized() -> str:
    protocol = RandomizedGossip(graphs.regular(PARTIES, 4, seed=0), steps=100 * PARTIES, sigma=1.0, sensitivity=4.0)
    values = np.random.default_rng(0).random((PARTIES, 16))
    return f"{seconds(lambda: simulate(protocol, values, 0, bounds=(0, 1))):.1f} s; {peak():.2f} GB"


CASES = {"a": large, "b": learning_round, "c": randomized}

if __name__ == "__main__":
    run_cases(__file__, __doc__, CASES, warm)
