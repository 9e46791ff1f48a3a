"""What walks on graphs gain: the bound by gaps as it was, by moments, by stretches, beside what is published.

python benchmarks/graph_walks.py            the table
python benchmarks/graph_walks.py hubs       who learns most on hubs and trees
"""

from __future__ import annotations

import sys
import time

import numpy as np

import netdp
from measure import size
from netdp import graphs
from netdp.families.token.account import graph_walk
from netdp.families.token.account.energy import profile
from netdp.families.token.account.events import Event, compose_events, gaussian, mixture
from netdp.protocols import GraphWalkSum, WalkDescent

DELTA = 1e-6
#: graph, visits per user, σ/Δ, pairs (observer, target)
CASES = (
    (graphs.ring(64), 100, 30.0, ((0, 1), (0, 8), (0, 32))),
    (graphs.hypercube(6), 10, 10.0, ((0, 1), (0, 63))),
    (graphs.grid(8, 8), 20, 10.0, ((0, 1), (0, 63), (27, 28))),
    (graphs.star(32), 20, 10.0, ((0, 1), (1, 0), (1, 2))),
    (graphs.balanced_tree(2, 4), 20, 10.0, ((0, 1), (0, 30), (30, 29))),
)


def before(p: GraphWalkSum, observer: int, target: int) -> float:
    """As many gaps as there can be visits but for 10⁻¹⁵: the bound before this table."""
    horizon, mu = min(p.steps, 8 * p.n), 1.0 / p.sigma
    gaps = graph_walk.hitting_law(p.transition, target, (target, observer), horizon)
    count, unlikely = graph_walk.most_visits(p, target)
    mus, weights = graph_walk._binned(mu / np.sqrt(np.arange(1, horizon + 1)), gaps)
    last = Event(gaussian(mu / np.sqrt(1 + p.closing)), 1)
    return float(compose_events([Event(mixture(mus, weights), count), last], unlikely).epsilon(DELTA))


def table() -> None:
    print(f"ε at δ = {DELTA:g}; sums, closing noise n; descent by iteration with the same noise")
    print(
        f"{'graph':22} {'v':>3} {'u':>3} {'before':>8} {'gaps':>8} {'stretch':>8} {'descent':>8} {'2024':>8} {'local':>8}"
    )
    for graph, visits, sigma, pairs in size(CASES, quick=((graphs.ring(6), 5, 10.0, ((0, 1),)),)):
        p = GraphWalkSum(graph, steps=visits * graph.n, sigma=sigma)
        d = WalkDescent(graph, steps=p.steps, sigma=sigma, step=0.1, clip=0.5, closing=True)
        for v, u in pairs:
            began = time.perf_counter()
            key = graph_walk._key(p)
            found = [
                before(p, v, u),
                *(
                    float(profile(graph_walk._moments(key, (v,), u, how), 1 / sigma).epsilon(DELTA))
                    for how in ("gaps", "sum", "descent")
                ),
            ]
            printed = float(np.asarray(netdp.account(d, [v], method="published").epsilon(DELTA))[u])
            local = float(graph_walk.local_profile(p, u).epsilon(DELTA))
            numbers = " ".join(f"{x:8.3f}" for x in (*found, printed, local))
            print(f"{graph.name:22} {v:3} {u:3} {numbers}   {time.perf_counter() - began:.1f} s")


def hubs() -> None:
    for graph in (graphs.star(16), graphs.balanced_tree(2, 3), graphs.barabasi_albert(24, 2, seed=1)):
        for walk in ("metropolis", "simple"):
            p = WalkDescent(graph, steps=10 * graph.n, sigma=10.0, step=0.1, clip=0.5, walk=walk)
            print(f"\n{p}\n{netdp.who_learns_most(p, DELTA)}")


if __name__ == "__main__":
    hubs() if sys.argv[1:] == ["hubs"] else table()
