"""Privacy by distance: local DP towards neighbours, stronger privacy towards others, says the empirical illustration.

The graphs are Muffliato's (Figure 1a). Plain gossip does not do what is said; refreshed gossip (ours) does, and masked gossip
(ours) gives nearly a curator's privacy towards everybody.
"""

from __future__ import annotations

from typing import Any

from netdp.accounting import account
from netdp.graphs import hypercube
from netdp.privacy import Claim
from netdp.protocols import Gossip

from ..experiment import Experiment, Finding, Kind, Panel, Result, Size
from ..muffliato.common import by_distance, curve, rounds_to_converge
from ..muffliato.figure_1a import measure
from ..running import Work


def masked(power: int) -> dict[str, Any]:
    """Losses on an exponential graph with masks of strength 100, by distance, in twice the rounds."""
    graph = hypercube(power)
    factor = account(Gossip(graph, rounds=2 * rounds_to_converge(graph), sigma=1.0, masks=100.0), [0]).factor
    assert factor is not None
    return by_distance(factor, graph.distances([0]))


def run(size: Size, work: Work) -> Result:
    cube, mesh = work.map(measure, ["hypercube", "grid"])
    (hidden,) = work.map(masked, [11])

    def panel(title: str, found: dict[str, Any], *more: Any) -> Panel:
        lines = [
            curve("published", found["published"], Kind.PUBLISHED, clip=True, spread=False, upto=30),
            curve(
                "true" if found is cube else "true, at least",
                found["true"],
                Kind.CERTIFIED,
                clip=True,
                spread=False,
                upto=30,
            ),
            curve("fresh noise (ours)", found["refreshed"], Kind.CENTRAL, spread=False, upto=30),
        ]
        return Panel(
            title,
            "shortest path length",
            "loss (1 = local DP)",
            (*lines, *more),
            log_y=True,
            limits=(5e-5, 2.0),
        )

    worst = max(hidden["high"])
    findings = (
        Finding(
            "exponential graph 2¹¹: loss to neighbours",
            abs(cube["true"]["mean"][0] - 1) < 1e-9,
            printed="local DP",
            formula=min(1.0, cube["published"]["mean"][0]),
            certified=cube["true"]["mean"][0],
            claim=Claim.EXACT,
        ),
        Finding(
            "exponential graph 2¹¹: loss to the farthest",
            cube["published"]["mean"][-1] < 0.01 and cube["true"]["mean"][-1] > 0.99,
            printed="stronger privacy with distance",
            formula=cube["published"]["mean"][-1],
            certified=cube["true"]["mean"][-1],
            claim=Claim.EXACT,
            note=f"with fresh noise {cube['refreshed']['mean'][-1]:.2g}",
        ),
        Finding(
            "grid 45 × 45: loss at distance 30",
            mesh["true"]["mean"][29] > 10 * mesh["published"]["mean"][29],
            printed="stronger privacy with distance",
            formula=mesh["published"]["mean"][29],
            certified=mesh["true"]["mean"][29],
            note=f"at least this; with fresh noise {mesh['refreshed']['mean'][29]:.2g}",
        ),
        Finding(
            "exponential graph 2¹¹, masks κ = 100 (ours): worst loss",
            worst < 0.01,
            certified=worst,
            claim=Claim.EXACT,
            note="neighbours included; a trusted curator has 1/2047 = 0.00049",
        ),
    )
    return Result(
        settings={"σ": 1, "weights": "Metropolis", "T": f"{cube['rounds']}, {mesh['rounds']}"},
        findings=findings,
        panels=(
            panel(
                "Exponential graph, n = 2048",
                cube,
                curve("masks κ = 100 (ours)", hidden, Kind.MEASURED, spread=False),
            ),
            panel("Grid 45 × 45", mesh),
        ),
    )


EXPERIMENT = Experiment(
    id="002-distance",
    paper="002",
    place="Empirical illustration, gossip",
    title="privacy by distance",
    shows="Users have local DP towards their neighbours and stronger privacy towards others, depending on their distance.",
    run=run,
    quick="4 s, all of it",
    full="4 s",
    errata=("004-theorem1",),
)
