"""Figure 2d: gradient descent, the loss of drawn walks by amplification by iteration; and certified.

The seed prints no formula for it; `cycles.descent_cycles` is our reading. Certified: descent along a walk with convex smooth
losses (hidden senders), the same noise per contribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.accounting.published.amplification.tokens import local_sigma
from netdp.privacy import Claim
from netdp.protocols import WalkDescent

from ..experiment import Experiment, Finding, Result, Size
from ..running import Work
from .cycles import descent_cycles
from .empirical import DELTA, EPSILONS, by_rule, panels, work_items
from .figure_2b import DELTA0, local


def one(item: Any) -> dict[str, float]:
    n, epsilon0, runs = item
    protocol = WalkDescent(n, 100 * n, sigma=local_sigma(epsilon0, DELTA0), step=0.1, clip=0.5, sender="hidden")
    loss = account(protocol, [0])
    return {**by_rule(n, epsilon0, runs, descent_cycles), "certified": float(np.nanmax(loss.epsilon(DELTA)))}


def run(size: Size, work: Work) -> Result:
    sizes, found = work_items(size, work, one)
    at = {(epsilon0, n): found[i * len(sizes) + j] for i, epsilon0 in enumerate(EPSILONS) for j, n in enumerate(sizes)}
    largest = sizes[-1]
    findings = tuple(
        Finding(
            f"mean ε over all pairs, n = {largest}, ε₀ = {epsilon0}",
            at[epsilon0, largest]["certified"] < at[epsilon0, largest]["mean"] < local(epsilon0),
            printed="a curve without numbers",
            formula=at[epsilon0, largest]["mean"],
            certified=at[epsilon0, largest]["certified"],
            claim=Claim.UPPER,
            note=f"local DP of 100 noisy gradients: {local(epsilon0):.3g}; the rule is our reading",
        )
        for epsilon0 in EPSILONS
    )
    return Result(
        settings={"T": "100 n", "walks": 10 if size is Size.FULL else 3, "δ": DELTA, "Δ": 1.0, "ε₀": list(EPSILONS)},
        findings=findings,
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
