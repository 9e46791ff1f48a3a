"""Figure 4: a random geometric graph, n = 2,000 of radius 0.08: the loss against the Euclidean distance.

The paper: the loss is extremely well correlated with the Euclidean distance. The formula is; the true loss hardly is. The
exact one takes hours at this size, so a lower bound on it is drawn; on a smaller graph of the same kind both are there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from netdp.graphs import Graph, geometric
from netdp.privacy import Claim

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size
from ..running import Work
from .common import REFRESH, at_least, factors, rounds_to_converge


def drawn(n: int, radius: float) -> tuple[Graph, int]:
    """The first connected draw, and the node nearest to the middle of a side."""
    seed = 1
    while not (graph := geometric(n, radius, seed)).is_connected:
        seed += 1
    assert graph.positions is not None
    return graph, int(np.argmin(((graph.positions - [0.0, 0.5]) ** 2).sum(axis=1)))


def measure(item: list[Any]) -> dict[str, Any]:
    """Losses over distances of one graph: [n, radius, whether the exact ones are wanted]."""
    n, radius, exact = item
    graph, observer = drawn(n, radius)
    rounds = rounds_to_converge(graph)
    assert graph.positions is not None
    others = np.arange(n) != observer
    distance = np.linalg.norm(graph.positions - graph.positions[observer], axis=1)[others]
    true = factors(graph, rounds, observer) if exact else at_least(graph, rounds, observer, 600)
    fresh = factors(graph, rounds, observer, refresh=REFRESH) if exact else np.full(n, np.nan)
    return {
        "rounds": rounds,
        "degree": int(graph.degrees[observer]),
        "distance": distance,
        "published": factors(graph, rounds, observer, method="published")[others],
        "true": true[others],
        "refreshed": fresh[others].tolist() if exact else [],
    }


def rank_correlation(x: Any, y: Any) -> float:
    return float(spearmanr(x, y).statistic)


def run(size: Size, work: Work) -> Result:
    small = [200, 0.16, True] if size is Size.QUICK else [400, 0.13, True]
    large, exact = work.map(measure, [[2000, 0.08, False], small])
    far = np.array(large["distance"]) > 0.7
    correlation = {part: rank_correlation(large["distance"], large[part]) for part in ("published", "true")}
    fresh = rank_correlation(exact["distance"], exact["refreshed"])
    share = float(np.mean(np.array(exact["true"]) > 0.9))
    findings = (
        Finding(
            "rank correlation of distance and loss, n = 2000",
            correlation["published"] < -0.95 and correlation["true"] > -0.9,
            printed="extremely well correlated",
            formula=correlation["published"],
            certified=correlation["true"],
            note="a lower bound on the true loss hardly falls with the distance",
        ),
        Finding(
            "largest published and mean true loss beyond a distance of 0.7",
            float(np.array(large["published"])[far].max()) < float(np.array(large["true"])[far].mean()),
            formula=float(np.array(large["published"])[far].max()),
            certified=float(np.array(large["true"])[far].mean()),
            note="at least this",
        ),
        Finding(
            f"share of parties with a loss above 0.9 of local DP's, n = {small[0]}",
            share > 0.7,
            certified=share,
            claim=Claim.EXACT,
            note=f"{exact['rounds']} rounds, {exact['degree']} neighbours: the observer sees nearly everybody's noisy value",
        ),
        Finding(
            f"rank correlation with a tenth of fresh noise, n = {small[0]}",
            fresh < -0.8,
            certified=fresh,
            claim=Claim.EXACT,
            note="refreshed gossip (ours) does what the paper wants: f(u, v) falls with the distance",
        ),
    )

    def panel(title: str, found: dict[str, Any], true: str) -> Panel:
        x = found["distance"]
        series = [
            Series("Theorem 1", x, np.maximum(np.minimum(found["published"], 1), 1e-9), Kind.PUBLISHED, points=True),
            Series(true, x, np.maximum(found["true"], 1e-9), Kind.CERTIFIED, points=True),
        ]
        if found["refreshed"]:
            series.append(Series("with fresh noise (ours)", x, found["refreshed"], Kind.CENTRAL, points=True))
        return Panel(
            title,
            "Euclidean distance",
            "loss (1 = local DP)",
            tuple(series),
            log_y=True,
            limits=(1e-5, 3.0),
        )

    return Result(
        settings={"n": 2000, "radius": 0.08, "T": large["rounds"], "smaller": f"n = {small[0]}, radius {small[1]}"},
        findings=findings,
        panels=(
            panel("n = 2000, radius 0.08", large, "true loss, at least"),
            panel(f"n = {small[0]}, radius {small[1]}", exact, "true loss, exactly"),
        ),
    )


EXPERIMENT = Experiment(
    id="004-fig4",
    paper="004",
    place="Figure 4",
    title="geometric graphs: the loss against the Euclidean distance",
    shows="The Euclidean distance is said to be a very good estimator of the privacy loss.",
    run=run,
    quick="3 s; the smaller graph has 200 nodes",
    full="15 s; the smaller graph has 400 nodes",
    errata=("004-theorem1",),
)
