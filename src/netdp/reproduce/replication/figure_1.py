"""Figure 1: network against local DP on real summation, T = 100n, by the AISTATS version's theorem; and certified.

The report copies the figure of the later version: "network DP outperforms LDP when n ≥ 20".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting import account, local_dp, trusted_curator
from netdp.accounting.published.amplification import tokens as paper
from netdp.privacy import Claim
from netdp.protocols import WalkSum

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, near
from ..running import Work

EPSILON0, DELTA, DELTA0 = 0.1, 1e-7, 1e-8
# the authors' code: N_v of the first version for local DP, δ′ = δ̂ = 1e-7 each


def certified(n: int) -> dict[str, Any]:
    walk = WalkSum(n, 100 * n, paper.local_sigma(EPSILON0, DELTA0), sender="hidden")
    ways = {"network": account(walk, [0]), "local": local_dp(walk), "central": trusted_curator(walk)}
    return {name: float(np.nanmax(loss.epsilon(DELTA))) for name, loss in ways.items()}


def network(n: int) -> float:
    return paper.theorem3_2022(n, 100 * n, EPSILON0, DELTA, DELTA)


def local(n: int) -> float:
    visits = paper.visits_2022(n, 100 * n, DELTA)
    return paper.advanced_composition(EPSILON0, visits, DELTA)


def crossing() -> int:
    """From which n on the later theorem is below local DP composed in the same way.

    >>> crossing()
    15
    """
    return next(n for n in range(2, 10_000) if network(n) < local(n))


def run(size: Size, work: Work) -> Result:
    sizes = np.unique(np.geomspace(5, 10_000, 40).astype(int))
    few = [10, 30, 100, 300] + ([1000] if size is Size.FULL else [])
    true = work.map(certified, few)
    cross = crossing()
    at = true[few.index(100)]
    return Result(
        settings={"T": "100 n", "ε of one contribution": EPSILON0, "δ′ = δ̂": DELTA},
        findings=(
            Finding(
                "n from which network DP is below local DP",
                10 < cross <= 20,
                printed="n ≥ 20",
                formula=cross,
                note="as printed, up to the choice of δ′ and δ̂",
            ),
            Finding(
                "ε at n = 100",
                near(network(100), 2.9, 0.15) and at["network"] < 0.07,
                formula=network(100),
                certified=at["network"],
                claim=Claim.UPPER,
                note=f"local DP with the same noise, exactly: {at['local']:.3g}; a trusted curator: {at['central']:.3g}",
            ),
        ),
        panels=(
            Panel(
                "Real summation, T = 100n",
                "number of users n",
                "ε (certified at δ = 10⁻⁷)",
                (
                    Series("network DP, theorem of 2022", sizes, [network(n) for n in sizes.tolist()], Kind.PUBLISHED),
                    Series("local DP as composed there", sizes, [local(n) for n in sizes.tolist()], Kind.PUBLISHED),
                    Series("network DP, certified", few, [t["network"] for t in true], Kind.CERTIFIED),
                    Series("local DP, exact", few, [t["local"] for t in true], Kind.LOCAL),
                    Series("trusted curator", few, [t["central"] for t in true], Kind.CENTRAL),
                ),
                log_x=True,
                log_y=True,
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="001-fig1",
    paper="001",
    place="Figure 1",
    title="Network against local DP, real summation",
    shows="Network DP outperforms local DP from n = 20 on, and its loss falls with n.",
    run=run,
    quick="5 s",
    full="20 s",
    errata=("000-gaussian",),
)
