"""Figure 1a: loss by distance on four graphs of about 2,048 nodes, as published, as it is, and with fresh noise.

Facts of the authors' code: hypercube 2¹¹; Erdős–Rényi(ln n/n), drawn until connected; geometric of radius 0.07; grid 45 × 45
(2,025 nodes) from its corner; losses clipped at 1. It sums t = 1 … T where Theorem 1 has t = 0 … T−1, so that the first
message, which is local DP's loss to a neighbour, is missing there; both are computed. What the observer 0 learns of all others
is shown; the picture in the paper is of what others learn of node 0, the same on the hypercube and alike elsewhere.

The exact loss of geometric graphs and grids takes hours at this size (nearly everything is seen, in nearly parallel
directions); a lower bound on it is drawn, from 400 directions, and that is enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.graphs import Graph, geometric, grid, hypercube
from netdp.privacy import Claim

from ..experiment import Experiment, Finding, Kind, Panel, Result, Size, Table
from ..running import Work
from .common import REFRESH, at_least, by_distance, connected_erdos_renyi, curve, factors, rounds_to_converge

SEED = 1


def graph_of(name: str) -> Graph:
    """One of the four graphs; `erdos_renyi k` is the k-th draw."""
    if name.startswith("erdos_renyi"):
        return connected_erdos_renyi(2048, int(name.split()[1]))
    made = {"hypercube": lambda: hypercube(11), "grid": lambda: grid(45, 45), "geometric": _geometric}
    return made[name]()


def _geometric() -> Graph:
    seed = SEED
    while not (graph := geometric(2048, 0.07, seed)).is_connected:
        seed += 1
    return graph


def measure(name: str) -> dict[str, Any]:
    """Published, true and refreshed losses of observer 0, by distance."""
    graph = graph_of(name)
    rounds, distance = rounds_to_converge(graph), graph.distances([0])
    slow = name in ("geometric", "grid")
    published = factors(graph, rounds, 0, method="published")
    as_coded = factors(graph, rounds + 1, 0, method="published") - (distance == 1)
    true = at_least(graph, rounds, 0) if slow else factors(graph, rounds, 0)
    return {
        "n": graph.n,
        "rounds": rounds,
        "degree": int(graph.degrees[0]),
        "published": by_distance(published, distance),
        "as_coded": by_distance(as_coded, distance),
        "true": by_distance(true, distance),
        "refreshed": None if name == "geometric" else by_distance(factors(graph, rounds, 0, refresh=REFRESH), distance),
        "mean": [float(np.nanmean(published)), float(np.nanmean(true))],
    }


def averaged(parts: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    """The mean of means, least of least and largest of largest, by distance."""
    most = max(len(part["x"]) for part in parts)
    at = [[part for part in parts if len(part["x"]) > d] for d in range(most)]
    return {
        "x": list(range(1, most + 1)),
        "mean": [float(np.mean([part["mean"][d] for part in at[d]])) for d in range(most)],
        "low": [min(part["low"][d] for part in at[d]) for d in range(most)],
        "high": [max(part["high"][d] for part in at[d]) for d in range(most)],
    }


def run(size: Size, work: Work) -> Result:
    draws = 2 if size is Size.QUICK else 5
    names = ["hypercube", *(f"erdos_renyi {k}" for k in range(draws)), "geometric", "grid"]
    found = dict(zip(names, work.map(measure, names), strict=True))
    random = [found[name] for name in names if name.startswith("erdos")]
    shown = {
        "exponential": found["hypercube"],
        "Erdős–Rényi": {
            **random[0],
            **{part: averaged([one[part] for one in random]) for part in ("published", "true", "refreshed")},
        },
        "grid": found["grid"],
        "geometric": found["geometric"],
    }
    cube, er, mesh, geo = shown.values()

    def panel(title: str, part: str) -> Panel:
        return Panel(
            title,
            "shortest path length",
            "loss (1 = local DP)",
            tuple(
                curve(name, one[part], Kind.OTHER, clip=True, upto=30)
                for name, one in shown.items()
                if one[part] is not None
            ),
            log_y=True,
            limits=(1e-5, 2.0),
            band="least to largest at a distance",
        )

    far = len(cube["true"]["mean"])
    spread = [high / low for low, high in zip(er["published"]["low"], er["published"]["high"], strict=True)]
    last = len(mesh["true"]["mean"]) - 1
    findings = (
        Finding(
            "number of nodes: exponential, Erdős–Rényi, grid, geometric",
            [one["n"] for one in shown.values()] == [2048, 2048, 2025, 2048],
            printed="2048",
            formula=", ".join(str(one["n"]) for one in shown.values()),
            note="45 × 45 is the grid of the authors' code",
        ),
        Finding(
            "exponential graph: mean loss over all u",
            cube["mean"][1] < cube["mean"][0] * 2047 / 2048 < 19 * 11 / 2048,
            printed="αΔ²T_v/(2nσ²)",
            formula=19 * 11 / 2048,
            certified=cube["mean"][1] * 2047 / 2048,
            claim=Claim.EXACT,
            note="T_v/n in units of local DP's; the mean is safe, since every message adds at most one direction",
        ),
        Finding(
            "rounds T: exponential, Erdős–Rényi, grid, geometric",
            cube["rounds"] == 19 and cube["rounds"] < er["rounds"] < geo["rounds"] < mesh["rounds"],
            printed="theoretical number of steps",
            formula=", ".join(str(one["rounds"]) for one in shown.values()),
            note="Theorem 2 with σ = 1; the grid mixes slowest, as the text says",
        ),
        Finding(
            "exponential graph: loss to the farthest node",
            cube["published"]["mean"][-1] < 0.01 and abs(cube["true"]["mean"][-1] - 1) < 1e-9,
            printed="significantly amplified",
            formula=cube["published"]["mean"][-1],
            certified=cube["true"]["mean"][-1],
            claim=Claim.EXACT,
            note=f"distance {far}: local DP. At distance 5 and 6 the loss is least, {cube['true']['mean'][4]:.4f}",
        ),
        Finding(
            "exponential graph: spread of the loss at one distance",
            all(
                high - low < 1e-9
                for part in ("published", "true")
                for low, high in zip(cube[part]["low"], cube[part]["high"], strict=True)
            ),
            printed="no variance",
            formula=0.0,
            certified=0.0,
            claim=Claim.EXACT,
            note="the distance alone determines it (Appendix H.2); this holds for the true loss, too",
        ),
        Finding(
            "exponential graph: distances at which Theorem 1 is below the true loss",
            [
                d + 1
                for d, (p, t) in enumerate(zip(cube["published"]["mean"], cube["true"]["mean"], strict=True))
                if min(p, 1) < t - 1e-9
            ]
            == [7, 8, 9, 10, 11],
            printed="none",
            certified="7 to 11",
            claim=Claim.EXACT,
        ),
        Finding(
            f"Erdős–Rényi: largest over least published loss at one distance, {draws} graphs",
            max(spread[1:4]) > 3,
            printed="significant variance",
            formula=max(spread[1:4]),
            note="in the authors' code the five runs take one graph, and losses do not depend on the run",
        ),
        Finding(
            "geometric graph: mean loss at the farthest distance",
            geo["true"]["mean"][-1] > 10 * geo["published"]["mean"][-1],
            formula=geo["published"]["mean"][-1],
            certified=geo["true"]["mean"][-1],
            note="at least this; already the messages of three of its neighbours give more than Theorem 1 says",
        ),
        Finding(
            "grid: mean loss at the farthest corner",
            mesh["true"]["mean"][last] > 1e3 * mesh["published"]["mean"][last],
            formula=mesh["published"]["mean"][last],
            certified=mesh["true"]["mean"][last],
            note="at least this",
        ),
        Finding(
            "with a tenth of fresh noise: exponential, farthest; Erdős–Rényi, distance 4",
            cube["refreshed"]["mean"][-1] < 1e-3 and er["refreshed"]["mean"][3] < 0.003,
            certified=f"{cube['refreshed']['mean'][-1]:.2g}, {er['refreshed']['mean'][3]:.2g}",
            claim=Claim.EXACT,
            note="what the paper wanted is true of refreshed gossip (ours)",
        ),
        Finding(
            "exponential graph, distance 1: Theorem 1, and as the code sums it",
            cube["published"]["mean"][0] > 1 and abs(cube["true"]["mean"][0] - 1) < 1e-9,
            printed="1 (clipped)",
            formula=f"{cube['published']['mean'][0]:.3f}, {cube['as_coded']['mean'][0]:.3f}",
            certified=cube["true"]["mean"][0],
            claim=Claim.EXACT,
            note="the formula exceeds local DP's loss to neighbours; clipped in the paper and here",
        ),
    )
    rows = tuple(
        (name, one["n"], one["rounds"], d + 1, one["published"]["mean"][d], one["true"]["mean"][d],
         None if one["refreshed"] is None else one["refreshed"]["mean"][d])
        for name, one in shown.items()
        for d in range(min(11, len(one["true"]["mean"])))
    )  # fmt: skip
    return Result(
        settings={"σ": 1, "α": 2, "weights": "Metropolis", "observer": 0, "Erdős–Rényi graphs": draws, "radius": 0.07},
        findings=findings,
        panels=(
            panel("Theorem 1, as in the paper", "published"),
            panel("True (grid, geometric: at least)", "true"),
            panel("With fresh noise (ours), exactly", "refreshed"),
        ),
        tables=(
            Table(
                "Mean loss by distance", ("graph", "n", "T", "distance", "Theorem 1", "true", "with fresh noise"), rows
            ),
        ),
        columns=3,
    )


EXPERIMENT = Experiment(
    id="004-fig1a",
    paper="004",
    place="Figure 1a",
    title="privacy loss by distance on synthetic graphs",
    shows="The loss is said to fall with distance, fastest on exponential and Erdős–Rényi graphs.",
    run=run,
    quick="3 s; 2 random graphs instead of 5",
    full="5 s",
    errata=("004-theorem1", "004-above-local", "004-hamilton"),
)
