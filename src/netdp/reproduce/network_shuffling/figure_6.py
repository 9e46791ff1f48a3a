"""Figure 6: ε against ε₀ of 0.1 to 1.2 for the networks at t = α⁻¹ ln n, A_all; and the numbers for Twitch at δ = 2·10⁻⁶.

δ is not printed; 10⁻⁶ is assumed for the picture. Two certified curves: at the paper's t, where the walk has not quite mixed, and
once it has (the rounds that `plan_rounds` proves sufficient), where it is a trusted shuffler's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.accounting.heap.clones import Heap, shuffled_epsilon
from netdp.accounting.published import network_shuffling as paper
from netdp.planning.shuffle.plan import plan_rounds
from netdp.privacy import Claim

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, Table, near
from ..running import Work
from .common import TITLES, certified, graph_of, present

DELTA, TWITCH_DELTA = 1e-6, 2e-6
EPSILON0S = np.linspace(0.1, 1.2, 12).round(3).tolist()
# ε₀: published with the printed Γ, certified by the clones of 2021, by those of 2023
TWITCH = {0.5: (0.622, 0.0198, 0.0175), 1.0: (4.79, 0.0517, 0.0421), 2.0: (390.0, 0.152, 0.112)}


def curves(item: list[Any]) -> dict[str, Any]:
    """[data set, whether by return bounds]."""
    name, careful = item
    graph = graph_of(name)
    t = paper.mixing_time(graph)
    squares = paper.stationary_squares(graph, t)
    return {
        "time": t,
        "published": [paper.epsilon_all(e, graph.n, squares, DELTA) for e in EPSILON0S],
        "certified": certified(graph, t, EPSILON0S, DELTA, careful=careful),
        "mixed": [shuffled_epsilon(graph.n - 1, e, DELTA) for e in EPSILON0S],
    }


def clones_2021(n: int, epsilon0: float, delta: float) -> float:
    """A trusted shuffler's ε by the numerical bound of Feldman, McMillan and Talwar of 2021: p = 1/(2e^ε₀).

    >>> print(f"{clones_2021(9498, 1.0, 2e-6):.4f}")
    0.0517
    """
    e = math.exp(epsilon0)
    return Heap.of(n - 1, epsilon0, p=1 / (2 * e), q=e / (e + 1)).epsilon(delta)


def twitch(epsilon0: float) -> dict[str, float]:
    """Published, certified and planned at δ = 2·10⁻⁶."""
    graph = graph_of("twitch")
    plan = plan_rounds(graph, epsilon0, TWITCH_DELTA)
    return {
        "published": paper.epsilon_all(epsilon0, graph.n, paper.TABLE4["twitch"] / graph.n, TWITCH_DELTA),
        "certified": certified(graph, 150, [epsilon0], TWITCH_DELTA)[0],
        "2021": clones_2021(graph.n, epsilon0, TWITCH_DELTA),
        "shuffler": plan.uniform,
        "planned": plan.promised,
        "rounds": plan.protocol.rounds,
    }


def run(size: Size, work: Work) -> Result:
    wanted = ["twitch", "facebook-pages"] if size is Size.QUICK else ["facebook-pages", "twitch", "deezer", "enron"]
    names, missing = present([*wanted, "web-google"])
    found = dict(
        zip(names, work.map(curves, [[name, size is Size.FULL or name == "twitch"] for name in names]), strict=True)
    )
    findings, rows = [], []
    if "twitch" in found:
        for epsilon0, one in zip(TWITCH, work.map(twitch, list(TWITCH)), strict=True):
            printed, older, newer = TWITCH[epsilon0]
            findings.append(
                Finding(
                    f"Twitch, ε₀ = {epsilon0:g}, δ = 2·10⁻⁶",
                    near(one["published"], printed, 0.005)
                    and near(one["2021"], older, 0.005)
                    and near(one["certified"], newer, 0.005)
                    and near(one["planned"], one["shuffler"], 0.011),
                    formula=one["published"],
                    certified=one["certified"],
                    claim=Claim.UPPER,
                    note=f"after 150 hops, a trusted shuffler's; {one['2021']:.4f} by the clones of 2021; "
                    f"{one['rounds']:.0f} hops come within 1 %",
                )
            )
            rows.append((epsilon0, *(one[key] for key in ("published", "2021", "certified", "shuffler", "rounds"))))
    at = EPSILON0S.index(1.0)
    for name, one in found.items():
        findings.append(
            Finding(
                f"{TITLES[name]}: ε at ε₀ = 1, t = {one['time']:,}",
                one["published"][at] > one["certified"][at] >= one["mixed"][at] and one["published"][at] > 1,
                formula=one["published"][at],
                certified=one["certified"][at],
                claim=Claim.UPPER,
                note=f"{one['mixed'][at]:.4f} once mixed; the published ε is above ε₀"
                + (
                    "; by the spectral gap alone nothing is proved yet at this t" if one["certified"][at] > 0.99 else ""
                ),
            )
        )
    series: list[Series] = []
    for name, one in found.items():
        series += [
            Series(f"{TITLES[name]}: published", EPSILON0S, one["published"], Kind.PUBLISHED),
            Series(f"{TITLES[name]}: certified, same t", EPSILON0S, one["certified"], Kind.CERTIFIED),
            Series(f"{TITLES[name]}: certified, mixed", EPSILON0S, one["mixed"], Kind.CENTRAL),
        ]
    series.append(Series("ε₀", EPSILON0S, EPSILON0S, Kind.LOCAL))
    return Result(
        settings={"δ": DELTA, "t": ", ".join(f"{one['time']:,} ({TITLES[name]})" for name, one in found.items())},
        findings=tuple(findings),
        panels=(Panel("All reports (A_all), t = α⁻¹ ln n", "ε₀", "ε at δ = 10⁻⁶", tuple(series), log_y=True),),
        tables=(
            Table(
                "Twitch, δ = 2·10⁻⁶",
                (
                    "ε₀",
                    "Theorem 5.3",
                    "clones of 2021",
                    "certified, 150 hops",
                    "trusted shuffler",
                    "hops to within 1 %",
                ),
                tuple(rows),
            ),
        )
        if rows
        else (),
        missing=missing,
    )


EXPERIMENT = Experiment(
    id="003-fig6",
    paper="003",
    place="Figure 6",
    title="amplification on the networks",
    shows="ε against ε₀: the more users, the more amplification.",
    run=run,
    quick="12 s; Twitch, and Facebook by the spectral gap alone",
    full="90 s; four data sets, with web-Google several minutes more",
    errata=("003-table4", "003-finite-time", "003-equation7"),
)
