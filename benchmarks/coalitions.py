"""What guarantees against *any* f parties say, beside named coalitions, random draws and what no protocol can do.

python benchmarks/coalitions.py
"""

from __future__ import annotations

import itertools
import time

import numpy as np

import netdp
from measure import few, size
from netdp import graphs
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import expected_error, limits
from netdp.protocols.calibration import calibrate

DELTA = 1e-6


def gossip() -> None:
    print("masked gossip, κ = 100: worst factor of the local-DP loss against any f parties")
    print(f"{'graph':>16} {'f':>2} {'bound':>9} {'found':>9} {'20 draws':>9} {'local DP':>9} {'seconds':>8}")
    rng = np.random.default_rng(0)
    cases = ((graphs.hypercube(6), 20), (graphs.hypercube(8), 30), (graphs.regular(200, 6, seed=1), 25),
             (graphs.torus(8, 8), 60), (graphs.grid(8, 8), 60))  # fmt: skip
    for graph, rounds in size(cases, quick=((graphs.hypercube(3), 5),)):
        p = netdp.Gossip(graph, rounds=rounds, sigma=1.0, masks=100.0)
        for f in few((1, 2, 3, 4, 6)):
            start = time.perf_counter()
            loss = account(p, colluders=f)
            took = time.perf_counter() - start
            drawn = [rng.choice(graph.n, f, replace=False).tolist() for _ in range(20)]
            random = max(account(p, members).worst for members in drawn)
            found = (loss.found.curve.mu / p.local_mu) ** 2
            print(f"{graph.name:>16} {f:>2} {loss.worst:>9.5f} {found:>9.5f} {random:>9.5f} {1:>9} {took:>8.2f}")


def small() -> None:
    print("\nall coalitions tried, n ≤ 9: bound by currents / exact worst over all coalitions, masks κ = 20")
    from netdp.families.gossip import coalitions as ours

    kept, ours._TRIED = ours._TRIED, 0
    for graph in few((graphs.hypercube(3), graphs.grid(3, 3), graphs.regular(9, 4, seed=1))):
        p = netdp.Gossip(graph, rounds=15, sigma=1.0, masks=20.0)
        for f in few((1, 2, 3)):
            bound = account(p, colluders=f).worst
            truth = max(account(p, members).worst for members in itertools.combinations(range(graph.n), f))
            print(f"{graph.name:>16} {f:>2} {bound:.5f} / {truth:.5f}")
    ours._TRIED = kept


def others() -> None:
    print("\nother protocols, ε at δ = 1e-6 against any f (found in brackets)")
    protocols = (
        netdp.RingSum(20, 1, sigma=4.0, noise="distributed"),
        netdp.WalkSum(100, 2_000, sigma=20.0),
        netdp.GraphWalkSum(graphs.hypercube(5), steps=320, sigma=20.0),
        netdp.MaskedSum(graphs.ring(64), sigma=0.5, masks=graphs.hypercube(6)),
        netdp.GossipDescent(graphs.hypercube(6), 6, 8, sigma=4.0, step=0.1, masks=100.0),
        netdp.Shuffle(graphs.regular(100, 8, 1), rounds=60, epsilon0=1.0),
    )
    for p in few(protocols):
        row = []
        for f in few((1, 2, 3)):
            loss = account(p, colluders=f)
            row.append(f"{loss.worst_epsilon(DELTA):.4g} ({loss.found.epsilon(DELTA):.4g})")
        print(f"{p.kind:>16}  " + "   ".join(row))


def limit() -> None:
    print("\nlimits, ε = 1, δ = 1e-6: no protocol of messages between neighbours has a smaller error")
    print(f"{'graph':>16} {'f':>2} {'parts':>6} {'limit':>9} {'masked gossip':>14} {'local DP':>9} {'masked sum':>11}")
    cases = ((graphs.star(100), 1, 40), (graphs.path(100), 1, 0), (graphs.ring(100), 2, 0),
             (graphs.hypercube(6), 3, 20), (graphs.grid(8, 8), 1, 120), (graphs.grid(8, 8), 2, 120))  # fmt: skip
    for graph, f, rounds in size(cases, quick=((graphs.hypercube(3), 1, 6),)):
        least = limits(graph, 1.0, DELTA, colluders=f)
        reached = "slow"
        if rounds:
            p = calibrate(
                netdp.Gossip(graph, rounds=rounds, sigma=1.0, masks=100.0, accelerated=True), 1.0, DELTA, colluders=f
            )
            reached = f"{expected_error(p).rmse:.4g}"
        local = expected_error(calibrate(netdp.Local(graph.n, sigma=1.0), 1.0, DELTA)).rmse
        pads = expected_error(calibrate(netdp.MaskedSum(graph, sigma=1.0), 1.0, DELTA, colluders=f)).rmse
        print(
            f"{graph.name:>16} {f:>2} {len(least.sets):>6} {least.rmse:>9.4g} {reached:>14} {local:>9.4g} {pads:>11.4g}"
        )


if __name__ == "__main__":
    gossip()
    small()
    others()
    limit()
