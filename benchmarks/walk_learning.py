"""How long one fit by a walking token takes: `python benchmarks/walk_learning.py`.

2,000 users, 20,000 steps, housing. Accuracies beside local and central DP-SGD are figures of the replication report and are
redone by `netdp reproduce 001-fig2` to `001-fig7`.

Needs NETDP_DATA.
"""

from __future__ import annotations

import time

from measure import size
from netdp.families.token.training import train_walk
from netdp.families.token.walk import WalkDescent
from netdp.papers.replication import CLIP, STEPS, USERS, load

REFERENCE_SECONDS = 3.0  # one fit by the authors' code


def main() -> None:
    data, _ = load("housing")
    protocol = WalkDescent(USERS, STEPS, sigma=1.23, step=0.03, clip=CLIP)
    train_walk(protocol, data, 0)
    took = []
    for seed in range(size(5, quick=1)):
        start = time.perf_counter()
        train_walk(protocol, data, seed)
        took.append(time.perf_counter() - start)
    print(
        f"one fit, housing, {USERS} users, {STEPS} steps: {1000 * min(took):.1f} ms, {REFERENCE_SECONDS / min(took):.0f}× the "
        f"reference's {REFERENCE_SECONDS:g} s"
    )


if __name__ == "__main__":
    main()
