"""Figure 2: the four synthetic graphs, every node coloured by its loss: as published, exactly, and with fresh noise.

What one node (the star) learns about every other. On geometric graphs a lower bound on the true loss is drawn (see Figure 1a).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.graphs import Graph, geometric, grid, hypercube
from netdp.report.layout import placed

from ..experiment import Experiment, Finding, Kind, Result, Size
from ..running import Work
from .common import REFRESH, at_least, connected_erdos_renyi, factors, network, rounds_to_converge

NAMES = ("exponential", "Erdős–Rényi", "geometric", "grid")


def graph_of(name: str, power: int) -> Graph:
    """About 2^power nodes."""
    n = 2**power
    if name == "exponential":
        return hypercube(power)
    if name == "Erdős–Rényi":
        return connected_erdos_renyi(n, 0)
    if name == "grid":
        side = round(n**0.5)
        return grid(side, side)
    radius, seed = 0.07 * (2048 / n) ** 0.5, 1
    while not (graph := geometric(n, radius, seed)).is_connected:
        seed += 1
    return graph


def measure(item: list[Any]) -> dict[str, Any]:
    """Losses that one node of a graph learns: [name, power]."""
    name, power = item
    graph = graph_of(name, power)
    side = round(graph.n**0.5)
    observer = (side + 1) * (side // 2) if name == "grid" else 0
    rounds = rounds_to_converge(graph)
    slow = name == "geometric"
    refreshed = None if slow else factors(graph, rounds, observer, refresh=REFRESH)
    return {
        "observer": observer,
        "rounds": rounds,
        "published": factors(graph, rounds, observer, method="published"),
        "true": at_least(graph, rounds, observer) if slow else factors(graph, rounds, observer),
        "refreshed": refreshed,
    }


def run(size: Size, work: Work) -> Result:
    power = 8 if size is Size.QUICK else 11
    found = dict(zip(NAMES, work.map(measure, [[name, power] for name in NAMES]), strict=True))
    panels, findings = [], []
    drawn = {name: graph_of(name, power) for name in NAMES}
    places = {name: placed(drawn[name]) for name in found}
    for part, title in (("published", "Theorem 1"), ("true", "true")):
        for name, one in found.items():
            said = "true, at least" if part == "true" and name == "geometric" else title
            values = np.array(one[part], dtype=float)
            panels.append(
                network(
                    f"{name}: {said}", drawn[name], places[name], values, one["observer"],
                    kind=Kind.PUBLISHED if part == "published" else Kind.CERTIFIED, least=1e-2,
                )
            )  # fmt: skip
    for name, one in found.items():
        far = drawn[name].distances([one["observer"]])
        last = far >= 0.8 * far.max()
        published, true = (float(np.array(one[part], dtype=float)[last].mean()) for part in ("published", "true"))
        fresh = None if one["refreshed"] is None else float(np.array(one["refreshed"], dtype=float)[last].mean())
        findings.append(
            Finding(
                f"{name}: mean loss of the farthest nodes (from 4/5 of the largest distance on)",
                true > 1.3 * published and (fresh is None or fresh < true / 10),
                printed="small (colour)",
                formula=published,
                certified=true,
                note=("a lower bound" if name == "geometric" else "exact")
                + ("" if fresh is None else f"; with fresh noise {fresh:.2g}"),
            )
        )
    return Result(
        settings={
            "σ": 1,
            "weights": "Metropolis",
            "n": ", ".join(str(drawn[name].n) for name in NAMES),
            "T": ", ".join(str(found[name]["rounds"]) for name in NAMES),
        },
        findings=tuple(findings),
        panels=tuple(panels),
        columns=4,
    )


EXPERIMENT = Experiment(
    id="004-fig2",
    paper="004",
    place="Figure 2",
    title="networks coloured by privacy loss",
    shows="Nodes close to the chosen one lose most, and the loss fades away from it.",
    run=run,
    quick="6 s; about 256 nodes each",
    full="10 s; about 2,048 nodes",
    errata=("004-theorem1",),
)
