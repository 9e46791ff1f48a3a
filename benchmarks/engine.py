"""What it costs to hand work over, and what a second process brings for all pairs.

    python benchmarks/engine.py            n = 2,048, 32 of the observers
    python benchmarks/engine.py 512 512    another n, another number of observers

Overhead: the time of an empty task beyond that of the call itself, and of starting two workers, which happens once. Speed-up:
exact losses of single observers on a random geometric graph, which has no symmetry to use, by one process and by two: the
ratio of their times, and whether the losses are the same bit for bit. A ratio near 2 needs two idle cores; the load is printed
beside it, and the processor's time, which should be the same for both.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

import netdp
from measure import size
from netdp import engines, graphs
from netdp.privacy import Observers


def nothing(i: int) -> int:
    """An empty task."""
    return i


def seen(protocol: netdp.Protocol, v: int) -> tuple[np.ndarray, float]:
    """What v learns about everybody, one column of `netdp.pairwise`; and the processor's time it took."""
    started = time.thread_time()
    loss = np.asarray(netdp.account(protocol, Observers((v,))).mu)
    return loss, time.thread_time() - started


def timed(function, items, **options):
    """(seconds, results)."""
    started = time.perf_counter()
    found = list(engines.map_items(function, items, **options))
    return time.perf_counter() - started, found


def connected(n: int) -> graphs.Graph:
    """A random geometric graph of n parties with about 14 neighbours each, its largest component."""
    return graphs.geometric(n, float(np.sqrt(14 / (np.pi * n))), seed=1).largest_component()


def main(n: int = size(2048, quick=60), observers: int = size(32, quick=4)) -> None:
    """Print both."""
    tasks = range(size(200, quick=4))
    timed(nothing, tasks)
    alone, _ = timed(nothing, tasks)
    for name in ("threads", "processes"):
        with netdp.engine(name, workers=2, from_seconds=0.0):
            first, _ = timed(nothing, range(2))
            again, _ = timed(nothing, tasks)
        print(f"{name:10} start {first:6.2f} s once, then {1e3 * (again - alone) / len(tasks):6.2f} ms per task")
    graph = connected(n)
    protocol = netdp.Gossip(graph, rounds=10, sigma=4.0)
    protocol.prepare()
    timed(seen, [0], shared=(protocol,))  # compiled
    who = range(0, graph.n, max(1, graph.n // observers))
    print(
        f"{graph.n} parties, {graph.m} links, {len(who)} observers, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    found, seconds = {}, {}
    for name, workers in (("serial", None), ("threads", 2), ("processes", 2)):
        with netdp.engine(name, workers=workers, from_seconds=0.0):
            if name == "processes":  # started and their compiled functions loaded, as in a longer run
                timed(seen, [0, 1, 2, 3], shared=(protocol,))
            seconds[name], results = timed(seen, who, shared=(protocol,))
        found[name] = np.array([loss for loss, _ in results]).tobytes()
        words = f"{seconds['serial'] / seconds[name]:5.2f} times as fast as one process" if workers else ""
        busy = sum(spent for _, spent in results)
        print(f"{name:10} {seconds[name]:6.2f} s, of a processor's time {busy:6.2f} s  {words}")
    print("the same bit for bit:", len(set(found.values())) == 1)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
