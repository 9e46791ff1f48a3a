"""Figures 2 to 5 of Muffliato: who learns how much about whom by gossip, as published and exactly.

Figure 1 has a module of its own (`figure_1`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from netdp.errors import DataNotFound
from netdp.graphs.families import hypercube
from netdp.graphs.graph import Graph
from netdp.papers.comparison import Comparison, Falls, Ordered, RankCorrelation
from netdp.papers.experiment import Experiment, FigureKind, Observation, Panel, Result, ResultTable, Series, Size
from netdp.papers.muffliato.common import (
    EGOS,
    REFRESH,
    at_least,
    available,
    by_distance,
    community_comparisons,
    connected_geometric,
    curve,
    ego_graph,
    factors,
    farther,
    graph_of,
    loss_panel,
    measure,
    network,
    rounds_to_converge,
    three_losses,
    understated,
)
from netdp.papers.runs import Work
from netdp.privacy.guarantee import Claim
from netdp.report.network import placed

# Figure 2: the four synthetic graphs, every node coloured by its loss: as published, exactly, and with fresh noise.
#
# What one node (the star) learns about every other. On geometric graphs a lower bound on the true loss is drawn (see
# Figure 1a).


NAMES = ("exponential", "Erdős–Rényi", "geometric", "grid")

PARTS = (("published", "Theorem 1", FigureKind.PUBLISHED), ("true", "true", FigureKind.CERTIFIED))
"""What a graph is coloured by: twice, as published and truly."""


def measure_figure_2(item: list[Any]) -> dict[str, Any]:
    """Losses that one node of a graph learns: [name, power]."""
    name, power = item
    graph = graph_of(name, power)
    side = round(graph.n**0.5)
    observer = (side + 1) * (side // 2) if name == "grid" else 0
    rounds = rounds_to_converge(graph)
    slow = name == "geometric"
    return {
        "observer": observer,
        "rounds": rounds,
        **three_losses(graph, rounds, observer, slow=slow, fresh=not slow),
    }


def run_figure_2(size: Size, work: Work) -> Result:
    power = 8 if size is Size.QUICK else 11
    found = work.by_key(measure_figure_2, {name: [name, power] for name in NAMES})
    panels, findings = [], []
    comparisons: list[Comparison] = []
    drawn = {name: graph_of(name, power) for name in NAMES}
    places = {name: placed(drawn[name]) for name in found}
    for part, title, kind in PARTS:
        for name, one in found.items():
            said = "true, at least" if part == "true" and name == "geometric" else title
            panels.append(
                network(f"{name}: {said}", drawn[name], places[name], one[part], one["observer"], kind=kind, least=1e-2)
            )
    for name, one in found.items():
        far = drawn[name].distances([one["observer"]])
        last = far >= 0.8 * far.max()
        published, true = (float(np.array(one[part], dtype=float)[last].mean()) for part in ("published", "true"))
        near = far == 1
        for part, way, erratum in (("published", "by Theorem 1", ""), ("true", "truly", "004-theorem1")):
            values = np.minimum(np.array(one[part], dtype=float), 1.0)
            comparisons.append(
                Comparison(
                    f"{name}: mean loss of neighbours and of the farthest nodes, {way}",
                    "the colour fades with the distance from the fixed node",
                    {"neighbours": [float(values[near].mean())], "farthest": [float(values[last].mean())]},
                    Ordered(ratio=5.0),
                    erratum=erratum,
                    note="at least this" if part == "true" and name == "geometric" else "",
                )
            )
        fresh = None if one["refreshed"] is None else float(np.array(one["refreshed"], dtype=float)[last].mean())
        findings.append(
            Observation(
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
        comparisons=tuple(comparisons),
        panels=tuple(panels),
        columns=4,
    )


FIGURE_2 = Experiment(
    id="004-fig2",
    place="Figure 2",
    title="networks coloured by privacy loss",
    shows="Nodes close to the chosen one lose most, and the loss fades away from it.",
    run=run_figure_2,
    quick="6 s; about 256 nodes each",
    full="10 s; about 2,048 nodes",
    errata=("004-theorem1",),
)


# Figure 3: exponential graphs of 2⁴ to 2¹² nodes: the loss by distance, as published and exactly.
#
# The paper: guarantees improve with n, most for pairs that are not neighbours but close. That is so for distances below
# half of the diameter; beyond, the true loss rises again, to local DP's at the antipode.


POWERS = tuple(range(4, 13))


def measure_figure_3(power: int) -> dict[str, Any]:
    """Published, exact and refreshed losses of one exponential graph by distance."""
    graph = hypercube(power)
    rounds, distance = rounds_to_converge(graph), graph.distances([0])
    losses = three_losses(graph, rounds, 0).items()
    return {"rounds": rounds, **{part: by_distance(loss, distance) for part, loss in losses}}


def run_figure_3(size: Size, work: Work) -> Result:
    found = work.by_key(measure_figure_3, POWERS)
    at = {
        part: {d: [found[p][part]["mean"][d - 1] for p in POWERS[1:]] for d in (2, 3)} for part in ("published", "true")
    }

    def falling(values: list[float]) -> bool:
        return all(a > b for a, b in pairwise(values))

    findings = (
        Observation(
            "loss at distance 2, n = 2⁵ to 2¹²",
            all(falling(at[part][d]) for part in at for d in (2, 3)),
            printed="improves with n",
            formula=f"{at['published'][2][0]:.3f} to {at['published'][2][-1]:.3f}",
            certified=f"{at['true'][2][0]:.3f} to {at['true'][2][-1]:.3f}",
            claim=Claim.EXACT,
            note="and at distance 3; from 2⁴ to 2⁵ the formula rises, 1.05 to 1.18 and 0.52 to 0.60 (5 and 7 rounds)",
        ),
        Observation(
            "loss at the antipode, n = 2¹²",
            all(abs(found[p]["true"]["mean"][-1] - 1) < 1e-9 for p in POWERS),
            printed="improves with n",
            formula=found[12]["published"]["mean"][-1],
            certified=found[12]["true"]["mean"][-1],
            claim=Claim.EXACT,
            note="local DP's for every n",
        ),
        Observation(
            "loss at the antipode with a tenth of fresh noise, n = 2⁴ and 2¹²",
            falling([found[p]["refreshed"]["mean"][-1] for p in POWERS]),
            certified=f"{found[4]['refreshed']['mean'][-1]:.2g}, {found[12]['refreshed']['mean'][-1]:.2g}",
            claim=Claim.EXACT,
            note="ours: falls with n and with distance",
        ),
    )

    rising = {d: [found[p]["published"]["mean"][d - 1] for p in POWERS[:2]] for d in (2, 3)}
    says = "privacy guarantees improve with n, especially for pairs at short distance that are not direct neighbours"
    comparisons = (
        *(
            Comparison(
                f"n = 2⁵ to 2¹²: loss at distance {d}, {way}",
                says,
                {"loss": at[part][d]},
                Falls(1.5),
                note=""
                if part == "true"
                else f"from 2⁴ to 2⁵ the formula rises, {rising[d][0]:.2f} to {rising[d][1]:.2f}: 5 and 7 rounds",
            )
            for part, way in (("published", "by Theorem 1"), ("true", "exactly"))
            for d in (2, 3)
        ),
        *(
            Comparison(
                f"n = 2⁴ to 2¹²: loss of the farthest node, {way}",
                "privacy guarantees improve with n",
                {"loss": [min(1.0, found[p][part]["mean"][-1]) for p in POWERS]},
                Falls(10.0),
                erratum=erratum,
            )
            for part, way, erratum in (("published", "by Theorem 1", ""), ("true", "exactly", "004-theorem1"))
        ),
    )

    def panel(title: str, part: str) -> Panel:
        shown = POWERS[::2] if size is Size.QUICK else POWERS
        lines = (curve(f"n = {2**p}", found[p][part], FigureKind.OTHER, clip=True, spread=False) for p in shown)
        return loss_panel(title, lines, limits=(5e-5, 1.5))

    rows = tuple(
        (2**p, one["rounds"], d + 1, one["published"]["mean"][d], one["true"]["mean"][d], one["refreshed"]["mean"][d])
        for p, one in found.items()
        for d in range(p)
    )
    return Result(
        settings={"σ": 1, "weights": "Metropolis", "T": ", ".join(str(found[p]["rounds"]) for p in POWERS)},
        findings=findings,
        comparisons=comparisons,
        panels=(
            panel("Theorem 1, as in the paper", "published"),
            panel("Exactly", "true"),
            panel("Exactly, with fresh noise (ours)", "refreshed"),
        ),
        tables=(
            ResultTable("Loss by distance", ("n", "T", "distance", "Theorem 1", "exact", "with fresh noise"), rows),
        ),
        columns=3,
    )


FIGURE_3 = Experiment(
    id="004-fig3",
    place="Figure 3",
    title="exponential graphs: the loss by distance and n",
    shows="The privacy guarantees of the exponential graph improve with n.",
    run=run_figure_3,
    quick="2 s; all sizes, every other one drawn",
    full="3 s",
    errata=("004-theorem1",),
)


# Figure 4: a random geometric graph, n = 2,000 of radius 0.08: the loss against the Euclidean distance.
#
# The paper: the loss is extremely well correlated with the Euclidean distance. The formula is; the true loss hardly is.
# The exact one takes hours at this size, so a lower bound on it is drawn; on a smaller graph of the same kind both are
# there.


def drawn(n: int, radius: float) -> tuple[Graph, int]:
    """The first connected draw, and the node nearest to the middle of a side."""
    graph = connected_geometric(n, radius)
    assert graph.positions is not None
    return graph, int(np.argmin(((graph.positions - [0.0, 0.5]) ** 2).sum(axis=1)))


def measure_figure_4(item: list[Any]) -> dict[str, Any]:
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


def run_figure_4(size: Size, work: Work) -> Result:
    small = [200, 0.16, True] if size is Size.QUICK else [400, 0.13, True]
    large, exact = work.map(measure_figure_4, [[2000, 0.08, False], small])
    far = np.array(large["distance"]) > 0.7
    correlation = {part: rank_correlation(large["distance"], large[part]) for part in ("published", "true")}
    fresh = rank_correlation(exact["distance"], exact["refreshed"])
    share = float(np.mean(np.array(exact["true"]) > 0.9))
    findings = (
        Observation(
            "rank correlation of distance and loss, n = 2000",
            correlation["published"] < -0.95 and correlation["true"] > -0.9,
            printed="extremely well correlated",
            formula=correlation["published"],
            certified=correlation["true"],
            note="a lower bound on the true loss hardly falls with the distance",
        ),
        Observation(
            "largest published and mean true loss beyond a distance of 0.7",
            float(np.array(large["published"])[far].max()) < float(np.array(large["true"])[far].mean()),
            formula=float(np.array(large["published"])[far].max()),
            certified=float(np.array(large["true"])[far].mean()),
            note="at least this",
        ),
        Observation(
            f"share of parties with a loss above 0.9 of local DP's, n = {small[0]}",
            share > 0.7,
            certified=share,
            claim=Claim.EXACT,
            note=f"{exact['rounds']} rounds, {exact['degree']} neighbours: the observer sees nearly everybody's noisy value",
        ),
        Observation(
            f"rank correlation with a tenth of fresh noise, n = {small[0]}",
            fresh < -0.8,
            certified=fresh,
            claim=Claim.EXACT,
            note="refreshed gossip (ours) does what the paper wants: f(u, v) falls with the distance",
        ),
    )

    says = "the privacy loss is extremely well correlated to the Euclidean distance"
    comparisons = tuple(
        Comparison(
            f"{name}: rank correlation of the distance and the loss, {way}",
            says,
            {"distance": list(found["distance"]), "loss": list(found[part])},
            RankCorrelation(-1.0, -0.95),
            erratum=erratum,
        )
        for name, found in (("n = 2000", large), (f"n = {small[0]}", exact))
        for part, way, erratum in (
            ("published", "by Theorem 1", ""),
            ("true", "truly (at least)" if found is large else "exactly", "004-theorem1"),
        )
    )

    def panel(title: str, found: dict[str, Any], true: str) -> Panel:
        x = found["distance"]
        series = [
            Series(
                "Theorem 1", x, np.maximum(np.minimum(found["published"], 1), 1e-9), FigureKind.PUBLISHED, points=True
            ),
            Series(true, x, np.maximum(found["true"], 1e-9), FigureKind.CERTIFIED, points=True),
        ]
        if found["refreshed"]:
            series.append(Series("with fresh noise (ours)", x, found["refreshed"], FigureKind.CENTRAL, points=True))
        return loss_panel(title, series, "Euclidean distance", limits=(1e-5, 3.0))

    return Result(
        settings={"n": 2000, "radius": 0.08, "T": large["rounds"], "smaller": f"n = {small[0]}, radius {small[1]}"},
        findings=findings,
        comparisons=comparisons,
        panels=(
            panel("n = 2000, radius 0.08", large, "true loss, at least"),
            panel(f"n = {small[0]}, radius {small[1]}", exact, "true loss, exactly"),
        ),
    )


FIGURE_4 = Experiment(
    id="004-fig4",
    place="Figure 4",
    title="geometric graphs: the loss against the Euclidean distance",
    shows="The Euclidean distance is said to be a very good estimator of the privacy loss.",
    run=run_figure_4,
    quick="3 s; the smaller graph has 200 nodes",
    full="15 s; the smaller graph has 400 nodes",
    errata=("004-theorem1",),
)


# Figure 5: the nine other ego graphs, each with the first user who has one friend, as in the authors' code.


OTHERS = tuple(ego for ego in EGOS if ego != 1912)


def run_figure_5(size: Size, work: Work) -> Result:
    there = [ego for ego in OTHERS if available(ego)]
    if not there:
        raise DataNotFound(
            "none of the Facebook ego graphs is on this machine; set NETDP_DATA to a folder with facebook-ego/0.edges and "
            "the others, from https://snap.stanford.edu/data/ego-Facebook.html"
        )
    graphs = {ego: ego_graph(ego) for ego in there}
    here = [ego for ego in there if size is Size.FULL or graphs[ego].n < 800]
    later = tuple(f"ego graph {ego} is drawn with --full" for ego in there if ego not in here)
    found = work.by_key(measure, {ego: [ego, None] for ego in here})
    panels, findings, rows = [], [], []
    comparisons: list[Comparison] = []
    for part, title, kind in PARTS:
        said = "true, at least" if part == "true" else title
        for ego, one in found.items():
            panels.append(
                network(f"ego {ego}: {said}", graphs[ego], one["places"], one[part], one["target"], kind=kind)
            )
    for ego, one in found.items():
        formula, true, share = understated(one)
        comparisons += [
            *community_comparisons(f"ego {ego}", one["published"], one["distance"]),
            Comparison(
                f"ego {ego}: Theorem 1 and the true loss, where the formula is the smaller one",
                "the formula is the privacy loss",
                {"Theorem 1": [formula], "true, at least": [true]},
                Ordered(ratio=0.9),
                erratum="004-theorem1",
                note=f"at least {share:.0%} of all users",
            ),
        ]
        rows.append((ego, one["n"], one["rounds"], one["degree"], formula, true, share, farther(one, "published")))
        findings.append(
            Observation(
                f"ego {ego}: mean loss towards those for whom the formula is too small",
                true > 1.2 * formula and share > 0.03,
                printed="limited to the community",
                formula=formula,
                certified=true,
                note=f"at least this, and at least {share:.0%} of all users",
            )
        )
    columns = (
        "ego", "n", "T", "friends of the user", "Theorem 1, where too small", "true there (at least)", "share too small",
        "Theorem 1, three hops on",
    )  # fmt: skip
    return Result(
        settings={"σ": 1, "weights": "Metropolis", "user": "the first with the fewest friends"},
        findings=tuple(findings),
        comparisons=tuple(comparisons),
        panels=tuple(panels),
        tables=(ResultTable("Loss of one user towards all others", columns, tuple(rows)),),
        missing=(*(f"ego graph {ego} is not on this machine" for ego in OTHERS if ego not in there), *later),
        columns=len(here),
    )


FIGURE_5 = Experiment(
    id="004-fig5",
    place="Figure 5",
    title="the other Facebook ego graphs",
    shows="On the other nine ego graphs, too, losses are said to follow the visible communities.",
    run=run_figure_5,
    quick="4 s; the graphs below 400 nodes",
    full="20 s; all graphs that are here",
    errata=("004-theorem1",),
)
