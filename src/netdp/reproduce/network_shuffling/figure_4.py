"""Figure 4: ε against the number of rounds on three networks of 20,000 to 30,000 users, A_all; ε₀ = 1, δ = 10⁻⁶ (not printed).

The published curve starts at once, with an ε above ε₀: Theorem 5.3 is worse than no shuffling on these graphs. The certified one
is ε₀ until the walk has mixed, and then a trusted shuffler's.
"""

from __future__ import annotations

from typing import Any

from netdp.accounting.heap.clones import shuffled_epsilon
from netdp.accounting.published import network_shuffling as paper
from netdp.privacy import Claim

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size
from ..running import Work
from .common import TITLES, certified, graph_of, present

EPSILON0, DELTA = 1.0, 1e-6
ROUNDS = (10, 30, 100, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 10_000, 12_000, 20_000)


def curves(item: list[Any]) -> dict[str, Any]:
    """[data set, whether by return bounds]."""
    name, careful = item
    graph = graph_of(name)
    published = [paper.epsilon_all(EPSILON0, graph.n, paper.stationary_squares(graph, t), DELTA) for t in ROUNDS]
    proved = [certified(graph, t, [EPSILON0], DELTA, careful=careful)[0] for t in ROUNDS]
    return {
        "published": published,
        "certified": proved,
        "limit": paper.epsilon_all(EPSILON0, graph.n, paper.gamma(graph) / graph.n, DELTA),
        "time": paper.mixing_time(graph),
        "gap": paper.gap(graph),
        "shuffler": shuffled_epsilon(graph.n - 1, EPSILON0, DELTA),
    }


def run(size: Size, work: Work) -> Result:
    wanted = ["facebook-pages", "deezer"] if size is Size.QUICK else ["facebook-pages", "deezer", "enron"]
    names, missing = present(wanted)
    found = dict(zip(names, work.map(curves, [[name, size is Size.FULL] for name in names]), strict=True))
    findings, series = [], []
    for name, one in found.items():
        title = TITLES[name]
        first = next((t for t, e in zip(ROUNDS, one["certified"], strict=True) if e < 1.05 * one["shuffler"]), None)
        findings += [
            Finding(
                f"{title}: α⁻¹ ln n, where ε is said to converge",
                1000 < one["time"] < 5000,
                printed="around 10³, α ≃ 10⁻²",
                formula=one["time"],
                certified=first,
                note=f"α is {one['gap']:.4f}; certified: rounds after which ε is within 5 % of a trusted shuffler's",
            ),
            Finding(
                f"{title}: ε in the end",
                one["limit"] > 1 > 30 * one["certified"][-1] and abs(one["certified"][-1] / one["shuffler"] - 1) < 0.01,
                formula=one["limit"],
                certified=one["certified"][-1],
                claim=Claim.UPPER,
                note="the published ε is above ε₀ = 1: no amplification at all; certified: the trusted shuffler's",
            ),
        ]
        series += [
            Series(f"{title}: published", ROUNDS, one["published"], Kind.PUBLISHED),
            Series(f"{title}: certified", ROUNDS, one["certified"], Kind.CERTIFIED),
        ]
    series.append(Series("ε₀", [ROUNDS[0], ROUNDS[-1]], [EPSILON0, EPSILON0], Kind.LOCAL))
    return Result(
        settings={"ε₀": EPSILON0, "δ": DELTA, "reporting": "all"},
        findings=tuple(findings),
        panels=(
            Panel(
                "All reports (A_all), ε₀ = 1",
                "rounds t",
                "ε at δ = 10⁻⁶",
                tuple(series),
                log_x=True,
                log_y=True,
                limits=(0.01, 3e3),
            ),
        ),
        missing=missing,
    )


EXPERIMENT = Experiment(
    id="003-fig4",
    paper="003",
    place="Figure 4",
    title="privacy against rounds on three networks",
    shows="ε is said to fall with the rounds and to converge after α⁻¹ ln n, about a thousand.",
    run=run,
    quick="10 s; Facebook and Deezer, certified by the spectral gap alone",
    full="90 s; with Enron, certified by return bounds",
    errata=("003-table4", "003-finite-time", "003-equation7"),
)
