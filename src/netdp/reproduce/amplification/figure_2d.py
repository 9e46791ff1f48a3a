"""Figure 2d: gradient descent, the loss of drawn walks by amplification by iteration; and certified.

The seed prints no formula for it; `cycles.descent_cycles` is our reading. Certified: descent along a walk with convex smooth
losses (hidden senders), the same noise per contribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.accounting.published.amplification.tokens import local_sigma
from netdp.protocols import WalkDescent

from ..experiment import Experiment, Result, Size
from ..running import Work
from .cycles import descent_cycles
from .empirical import DELTA, EPSILONS, by_rule, largest_findings, panels, work_items
from .figure_2b import DELTA0, local


def one(item: Any) -> dict[str, float]:
    n, epsilon0, runs = item
    protocol = WalkDescent(n, 100 * n, sigma=local_sigma(epsilon0, DELTA0), step=0.1, clip=0.5, sender="hidden")
    loss = account(protocol, [0])
    return {**by_rule(n, epsilon0, runs, descent_cycles), "certified": float(np.nanmax(loss.epsilon(DELTA)))}


def run(size: Size, work: Work) -> Result:
    sizes, found = work_items(size, work, one)
    return Result(
        settings={"T": "100 n", "walks": 10 if size is Size.FULL else 3, "δ": DELTA, "Δ": 1.0, "ε₀": list(EPSILONS)},
        findings=largest_findings(sizes, found, local, "noisy gradients; the rule is our reading"),
        panels=panels("Descent", sizes, found, local, "certified, sender hidden"),
    )


EXPERIMENT = Experiment(
    id="000-fig2d",
    paper="000",
    place="Figure 2d",
    title="Losses of drawn walks, gradient descent",
    shows="The gains by decentralization are significant for gradient descent, too, by amplification by iteration.",
    run=run,
    quick="10 s: up to 200 users, three walks",
    full="1 min",
    errata=("000-realised-walk",),
)
