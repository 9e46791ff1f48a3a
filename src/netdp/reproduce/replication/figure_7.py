"""Figure 7: 200 users instead of 2,000."""

from __future__ import annotations

from netdp.privacy import Claim

from ..experiment import Experiment, Finding, Result, Size
from ..running import Work
from .sweeps import panel, sweep


def run(size: Size, work: Work) -> Result:
    users = [200, 2000] if size is Size.QUICK else [100, 200, 500, 1000, 2000]
    found = sweep(size, work, "n", users)

    def drop(way: str) -> float:
        return float(found[way, 2000]["accuracy"] - found[way, 200]["accuracy"])

    return Result(
        settings={"table": "housing", "ε": 10, "users": users},
        findings=(
            Finding(
                "drop of network DP from 2,000 to 200 users",
                drop("network, published σ") >= -0.01,
                printed="small",
                formula=drop("network, published σ"),
                certified=drop("network, certified, sender hidden"),
                claim=Claim.ESTIMATE,
                note="in accuracy; σ tuned to each",
            ),
            Finding(
                "drop of central DP",
                drop("central, published σ") > 0.02,
                printed="important",
                formula=drop("central, published σ"),
                certified=drop("central, certified"),
                claim=Claim.ESTIMATE,
                note="the published calibration grows with T/n² and is loose; with the noise a curator needs the drop is small",
            ),
            Finding(
                "drop of local DP",
                drop("local, published σ") > 0.02,
                printed="important",
                formula=drop("local, published σ"),
                certified=drop("local, certified"),
                claim=Claim.ESTIMATE,
            ),
        ),
        panels=(panel("Housing, ε = 10", "users", found),),
    )


EXPERIMENT = Experiment(
    id="001-fig7",
    paper="001",
    place="Figure 7",
    title="Fewer users",
    shows="With 200 users network DP loses little accuracy, central and local DP lose much.",
    run=run,
    quick="20 s: five trials",
    full="2 min",
    errata=("001-central-noise",),
)
