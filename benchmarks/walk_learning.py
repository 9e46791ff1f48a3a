"""How long one fit by a walking token takes: `python benchmarks/walk_learning.py`.

2,000 users, 20,000 steps, housing. Accuracies beside local and central DP-SGD are figures of the replication report and are
redone by `netdp reproduce 001-fig2` to `001-fig7`.

Needs NETDP_DATA.
"""

from __future__ import annotations

import time

from netdp.protocols.walk import WalkDescent
from netdp.reproduce.replication.walk_learning import CLIP, STEPS, USERS, load
from netdp.simulate.walk_descent import train_walk

REFERENCE_SECONDS = 3.0  # one fit by the authors' code


def main() -> None:
    data, _ = load("housing")
    protocol = WalkDescent(USERS, STEPS, sigma=1.23, step=0.03, clip=CLIP)
    train_walk(protocol, data, 0)
    took = []
    for seed in range(5):
        start = time.perf_counter()
        train_walk(protocol, data, seed)
        took.append(time.perf_counter() - start)
    print(
        f"one fit, housing, {USERS} users, {STEPS} steps: {1000 * min(took):.1f} ms, {REFERENCE_SECONDS / min(took):.0f}× the "
        f"reference's {REFERENCE_SECONDS:g} s"
    )


if __name__ == "__main__":
    main()
