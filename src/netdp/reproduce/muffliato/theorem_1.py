"""Theorem 1 is called a tight computation of the loss; it is below it: two rounds on a ring, and two larger graphs.

Ring, weights 1/3, two rounds. After round 0 the observer knows its neighbour's noisy value and its own, so the neighbour's
message of round 1, their mean with the noisy value of a party two hops away, gives that value away: factor 1, local DP. The
formula adds 0 (round 0) and 1/3 (round 1). The exact factors are leverage scores (docs/guarantees.md#leverage-scores).
"""

from __future__ import annotations

import numpy as np

from netdp.graphs import hypercube, ring
from netdp.privacy import Claim

from ..experiment import Experiment, Finding, Kind, Panel, Result, Size, Table
from ..running import Work
from .common import agrees, by_distance, curve, factors

# graph, rounds, distance, published, exact: to the digits of the project's page on the mathematics
ROWS = (
    ("ring of 9", 2, 2, "1/3", "1"),
    ("ring of 64", 20, 6, "0.1661", "1"),
    ("ring of 64", 20, 20, "≈0", "1"),
    ("ring of 64", 20, 21, "≈0", "0"),
    ("hypercube 2⁸", 8, 2, "0.7214", "2/7"),
    ("hypercube 2⁸", 8, 4, "0.1019", "4/35"),
    ("hypercube 2⁸", 8, 8, "0.0018", "1"),
)
GRAPHS = {"ring of 9": ring(9), "ring of 64": ring(64), "hypercube 2⁸": hypercube(8)}


def run(size: Size, work: Work) -> Result:
    findings, panels = [], []
    for name, rounds in (("ring of 64", 20), ("hypercube 2⁸", 8)):
        graph = GRAPHS[name]
        distance = graph.distances([0])
        published = by_distance(factors(graph, rounds, 0, method="published"), distance)
        exact = by_distance(factors(graph, rounds, 0), distance)
        panels.append(
            Panel(
                f"{name}, {rounds} rounds",
                "distance from the observer",
                "loss (1 = local DP)",
                (
                    curve("Theorem 1", published, Kind.PUBLISHED, clip=True, spread=False),
                    curve("exact", exact, Kind.CERTIFIED, spread=False),
                ),
                log_y=True,
                limits=(1e-4, 2.0),
            )
        )
    rows = []
    for name, rounds, hops, printed, true in ROWS:
        graph = GRAPHS[name]
        at = graph.distances([0]) == hops
        formula = float(factors(graph, rounds, 0, method="published")[at].mean())
        exact_value = float(factors(graph, rounds, 0)[at].mean())
        rows.append((name, rounds, hops, formula, exact_value, "too small" if formula < exact_value - 1e-9 else ""))
        findings.append(
            Finding(
                f"{name}, T = {rounds}, distance {hops}",
                agrees(formula, printed) and agrees(exact_value, true),
                formula=formula,
                certified=exact_value,
                claim=Claim.EXACT,
                note=f"maths page: {printed} and {true}",
            )
        )
    below = [row for row in rows if row[-1]]
    findings.insert(
        0,
        Finding(
            "a tight computation of the privacy loss between every pair of nodes",
            len(below) >= 5 and bool(np.isclose(below[0][3], 1 / 3)),
            printed="(α, f)-PNDP",
            formula=below[0][3],
            certified=below[0][4],
            claim=Claim.EXACT,
            note="ring of 9, two rounds, two hops: three times too small, and in the other rows by any factor",
        ),
    )
    return Result(
        settings={"σ": 1, "Δ": 1, "weights": "Metropolis, 1/(1 + max degree)"},
        findings=tuple(findings),
        panels=tuple(panels),
        tables=(
            Table(
                "Loss as a multiple of local DP's", ("graph", "T", "distance", "Theorem 1", "exact", ""), tuple(rows)
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="004-theorem1",
    paper="004",
    place="Theorem 1",
    title="the formula is no upper bound",
    shows="Equation (6) is said to give the loss between any two nodes, falling with their distance.",
    run=run,
    quick="2 s, all of it",
    full="2 s",
    errata=("004-theorem1", "004-above-local"),
)
