"""Refreshed gossip, ours: a little fresh noise before every send, and the loss falls with distance again, truly.

Every party adds fresh N(0, τ²) to its state before every send after the first. With Tτ² = 0.1σ² the answer's variance grows
by at most a tenth. All numbers of the project's page on the mathematics, section 2.
"""

from __future__ import annotations

from netdp.graphs import grid, hypercube, ring
from netdp.privacy import Claim
from netdp.protocols import Gossip
from netdp.utility import expected_error

from ..experiment import Experiment, Finding, Kind, Panel, Result, Size, Table
from ..running import Work
from .common import agrees, by_distance, curve, factors

GRAPHS = {"hypercube 2⁸": (hypercube(8), 0, 8), "grid 16×16": (grid(16, 16), 120, 12), "ring of 64": (ring(64), 0, 20)}
# distance → published, exact without refresh, with Tτ² = 0.1σ², with Tτ² = σ²
PRINTED = {
    "hypercube 2⁸": {2: ".721 .286 .248 .116", 4: ".102 .114 .019 .0029", 8: ".0018 1 .0005 .0001"},
    "grid 16×16": {
        2: "1.85 .552 .471 .286",
        4: ".218 .305 .073 .0137",
        6: ".0132 .200 .0059 .0008",
        8: ".0004 .148 .0003 <.0001",
    },
    "ring of 64": {
        2: "4.64 1 .958 .713",
        4: "1.09 1 .388 .099",
        6: ".166 1 .104 .018",
        8: ".015 1 .019 .0026",
    },
}


def run(size: Size, work: Work) -> Result:
    panels, findings, rows = [], [], []
    for name, (graph, observer, rounds) in GRAPHS.items():
        distance = graph.distances([observer])
        found = [
            by_distance(factors(graph, rounds, observer, method="published"), distance),
            *(by_distance(factors(graph, rounds, observer, refresh=refresh), distance) for refresh in (0.0, 0.1, 1.0)),
        ]
        kinds = (Kind.PUBLISHED, Kind.CERTIFIED, Kind.CENTRAL, Kind.MEASURED)
        labels = ("Theorem 1", "exact, no refresh", "exact, Tτ² = 0.1σ²", "exact, Tτ² = σ²")
        panels.append(
            Panel(
                f"{name}, {rounds} rounds",
                "distance from the observer",
                "loss (1 = local DP)",
                tuple(
                    curve(label, part, kind, clip=True, spread=False)
                    for label, part, kind in zip(labels, found, kinds, strict=True)
                ),
                log_y=True,
                limits=(1e-5, 2.0),
            )
        )
        for hops, text in PRINTED[name].items():
            values = [part["mean"][hops - 1] for part in found]
            rows.append((name, rounds, hops, *values))
            findings.append(
                Finding(
                    f"{name}, distance {hops}: published, exact with Tτ² = 0, 0.1σ², σ²",
                    all(agrees(value, printed) for value, printed in zip(values, text.split(), strict=True))
                    and values[1] >= values[2] >= values[3],
                    formula=values[0],
                    certified=" / ".join(f"{value:.4g}" for value in values[1:]),
                    claim=Claim.EXACT,
                    note=f"maths page: {text.replace(' ', ' / ')}",
                )
            )
    plain, added = zip(
        *(
            (error.noise * graph.n, error.refresh * graph.n)
            for graph, _, rounds in GRAPHS.values()
            for error in [expected_error(Gossip(graph, rounds=rounds, sigma=1.0, refresh=0.1))]
        ),
        strict=True,
    )
    mean = [0.1 * (rounds - 1) / rounds for _, _, rounds in GRAPHS.values()]
    findings.append(
        Finding(
            "variance × n/σ² that Tτ² = 0.1σ² adds: to the mean of the answers; to one party's answer; beside its own",
            all(part <= 0.1 for part in mean)
            and all(0 < more < 0.6 * own for own, more in zip(plain, added, strict=True)),
            certified="; ".join(
                " / ".join(f"{value:.2f}" for value in part) for part in (mean, list(added), list(plain))
            ),
            claim=Claim.EXACT,
            note="hypercube / grid / ring; after so few rounds nothing is mixed, fresh noise least: the tenth is that of the mean",
        )
    )
    columns = ("graph", "T", "distance", "Theorem 1", "no refresh", "Tτ² = 0.1σ²", "Tτ² = σ²")
    return Result(
        settings={"σ": 1, "weights": "Metropolis", "grid": "observer 120"},
        findings=tuple(findings),
        panels=tuple(panels),
        tables=(Table("Mean loss at a distance, as a multiple of local DP's", columns, tuple(rows)),),
        columns=3,
    )


EXPERIMENT = Experiment(
    id="ours-refresh",
    paper="ours",
    place="Refreshed gossip",
    title="with a little fresh noise the loss falls with distance, truly",
    shows="Plain gossip gives distant parties away; fresh noise of a tenth of the variance hides them.",
    run=run,
    quick="2 s, all of it",
    full="2 s",
)
