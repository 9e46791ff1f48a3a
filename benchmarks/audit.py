"""How near attacks come to what is certified, protocol by protocol, and how long the default audit of sixteen parties takes.

    python benchmarks/audit.py [--trials 2000]

*Tightness*: the ε that an attack proves (99.99 % confidence, as a Gaussian loss) over the certified ε, both at δ = 10⁻⁶, for the
worst pair. Exact claims should come near 1; how far below an upper claim stays says how much the bound, or the attack, gives away.
The last lines give seconds and processor seconds of `netdp audit` on a study of sixteen parties (aim: two minutes on two cores).
"""

from __future__ import annotations

import argparse
import os
import time

import netdp
from measure import few, size
from netdp import graphs
from netdp.audit import audit, audit_pair
from netdp.audit.audits import pairs_of
from netdp.errors import NetdpError

DELTA = 1e-6
TRIALS = size(None, quick=200)


def protocols() -> dict[str, netdp.Protocol]:
    """One of every family, calibrated to ε = 2 where that is offered."""
    ring, cube, karate = graphs.ring(16), graphs.hypercube(4), graphs.parse("karate")
    drafts: dict[str, netdp.Protocol] = {
        "gossip, plain, ring 16": netdp.Gossip(ring, rounds=8, sigma=4.0),
        "gossip, refreshed, hypercube 2⁴": netdp.Gossip(cube, rounds=8, sigma=4.0, refresh=0.1),
        "gossip, masked, karate": netdp.Gossip(karate, rounds=12, sigma=4.0, masks=100.0),
        "ring sum, 16": netdp.RingSum(16, rounds=2, sigma=4.0),
        "masked sum, hypercube 2⁴": netdp.MaskedSum(cube, sigma=1.0),
        "masked sum of records": netdp.MaskedSum(cube, sigma=1.0, unit="record", reach=50.0),
        "walk, sender hidden, 16": netdp.WalkSum(16, steps=800, sigma=9.0, sender="hidden"),
        "walk, sender known, 16": netdp.WalkSum(16, steps=800, sigma=9.0, sender="known"),
        "walk on a grid 4×4": netdp.GraphWalkSum(graphs.grid(4, 4), steps=400, sigma=9.0),
        "ring histogram, 16": netdp.RingHistogram(16, rounds=1, domain=2, gamma=0.5),
        "walk histogram, 16": netdp.WalkHistogram(16, steps=64, domain=2, gamma=0.5),
        "shuffle, complete 30": netdp.Shuffle(graphs.complete(30), rounds=6, epsilon0=3.0),
        "gossip descent, hypercube 2⁴": netdp.GossipDescent(cube, iterations=4, gossip_rounds=1, sigma=4.0, step=1.0),
        "gossip descent, masked": netdp.GossipDescent(
            cube, iterations=4, gossip_rounds=6, sigma=4.0, step=1.0, masks=100.0
        ),
        "walk descent, 16": netdp.WalkDescent(16, steps=160, sigma=1.0, step=0.1, clip=0.4),
        "masked descent of parties": netdp.MaskedDescent(cube, 3, sigma=1.0, step=0.1, clip=0.1, dimension=3),
        "masked descent, records, q = ½": netdp.MaskedDescent(
            graphs.complete(4), 2, sigma=1.0, step=0.1, clip=0.1, dimension=3, unit="record", sampling=0.5, max_records=4,
            records=16,
        ),
    }  # fmt: skip
    found = {}
    for name, draft in few(drafts.items(), quick=4):
        try:
            found[name] = netdp.calibrate(draft, epsilon=2.0, delta=DELTA)
        except NetdpError:
            found[name] = draft
    return found


def main() -> None:
    """The table, then the times."""
    print(
        f"{'':36}{'claim':>7}{'certified':>11}{'measured ≥':>12}{'tightness':>11}{'by counts':>11}{'runs':>9}{'s':>7}"
    )
    for name, protocol in protocols().items():
        began = time.perf_counter()
        try:
            pair = pairs_of(protocol, DELTA, 1, seed=0)[0]
            row = audit_pair(protocol, pair, delta=DELTA, trials=TRIALS)
        except NetdpError as problem:
            print(f"{name:36}{str(problem)[:90]}")
            continue
        print(
            f"{name:36}{row.claim.value:>7}{row.claimed:11.3f}{row.epsilon:12.3f}{row.tightness:11.2f}"
            f"{row.measured.by_counts:11.3f}{row.measured.trials:9,}{time.perf_counter() - began:7.1f}", flush=True,
        )  # fmt: skip
    print()
    for name in few(("gossip, plain, ring 16", "masked sum, hypercube 2⁴", "gossip, refreshed, hypercube 2⁴")):
        began, used = time.perf_counter(), sum(os.times()[:4])
        found = audit(protocols()[name], delta=DELTA, trials=TRIALS)
        print(
            f"the whole audit, {name:34} {len(found.findings) + len(found.by_distance):2} rows "
            f"{time.perf_counter() - began:6.1f} s, {sum(os.times()[:4]) - used:6.1f} s of processors, "
            f"{'nothing refuted' if found.ok else 'REFUTED'}", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=TRIALS, help="runs in each world; with 2000 less than a minute")
    TRIALS = parser.parse_args().trials
    main()
