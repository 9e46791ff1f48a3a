"""Utility of private gossip averaging by topology: arbitrary, complete, ring, expander, at a mean loss of at most ε.

As Muffliato's Table 1, Algorithm 1, with the dimension p, which multiplies the squared error of every way to do it alike. The
slides say that central DP's utility is matched up to d/√λ; logarithms are ignored: the ratio is d·T with T = ⌈ln(…)/√λ⌉ rounds.
"""

from __future__ import annotations

import math

from netdp.privacy import Claim

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, Table
from ..muffliato.table_1 import checked, slope, utilities
from ..running import Work

# what the slides call it: family, the printed formula, its power of n
TOPOLOGIES = {
    "complete": ("complete", "αpΔ²/(nε)", -1.0),
    "ring": ("ring", "αpΔ²/(nε)", -1.0),
    "expander": ("hypercube", "αpΔ²/(n²ε)", -2.0),
}


def run(size: Size, work: Work) -> Result:
    powers = [2, 3, 4, 5] if size is Size.QUICK else [2, 3, 4, 5, 6]
    found = {
        name: work.map(utilities, [[family, power] for power in powers]) for name, (family, *_) in TOPOLOGIES.items()
    }
    (check,) = work.map(checked, [4])
    findings, rows = [], []
    for name, (_, printed, power) in TOPOLOGIES.items():
        last = found[name][-1]
        fitted = slope(found[name], "utility_1")
        over_central = last["utility_1"] / (last["local"] / last["n"])
        factor = last["degree"] / math.sqrt(last["gap"])
        rows.append((name, printed, power, fitted, int(last["n"]), over_central, factor, over_central / factor))
        findings.append(
            Finding(
                f"{name}: power of n",
                power - 0.05 < fitted < power + (0.7 if name == "expander" else 0.3),
                printed=f"{printed}: {power:g}",
                formula=fitted,
                note="logarithms, which the slides ignore, make it flatter",
            )
        )
        findings.append(
            Finding(
                f"{name}: utility over central DP's, and d/√λ, n = {last['n']:.0f}",
                1 <= over_central / factor <= 2 * math.log(last["n"]),
                printed="d/√λ",
                formula=factor,
                certified=over_central,
                note=f"the logarithm is a factor of {over_central / factor:.1f}",
            )
        )
    findings.append(
        Finding(
            "hypercube 2⁸: worst loss as a multiple of local DP's; with masks κ = 100 (ours) at the same σ",
            abs(check["worst"] - 1) < 1e-9 and check["masked_worst"] < 0.02,
            printed="mean loss ≤ ε",
            certified=f"{check['worst']:.3f}; {check['masked_worst']:.4f}",
            claim=Claim.EXACT,
            note="the mean is no guarantee: neighbours have local DP's loss. With masks everybody has nearly the curator's",
        )
    )
    series = [
        Series(name, [one["n"] for one in parts], [one["utility_1"] for one in parts]) for name, parts in found.items()
    ]
    sizes, local = ([one[part] for one in found["ring"]] for part in ("n", "local"))
    series.append(Series("local DP", sizes, local, Kind.LOCAL))
    central = [value / n for value, n in zip(local, sizes, strict=True)]
    series.append(Series("central DP", sizes, central, Kind.CENTRAL))
    return Result(
        settings={"α": 2, "Δ": 1, "p": 1, "ε (mean)": 1, "n": ", ".join(str(4**p) for p in powers)},
        findings=tuple(findings),
        panels=(
            Panel(
                "Mean loss ε = 1",
                "number of users n",
                "utility (half the squared error)",
                tuple(series),
                log_x=True,
                log_y=True,
            ),
        ),
        tables=(
            Table(
                "Utility by topology",
                ("graph", "printed", "its power of n", "fitted", "n", "over central DP", "d/√λ", "the rest"),
                tuple(rows),
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="002-topologies",
    paper="002",
    place="Privacy-utility trade-off of private gossip averaging",
    title="utility by topology",
    shows="Central DP's utility is matched up to d/√λ: a constant for expanders.",
    run=run,
    quick="2 s; n up to 1,024",
    full="4 s; n up to 4,096",
    errata=("004-table1-gap",),
)
