"""Figure 7: A_all against A_single on Twitch (and Google), at t = α⁻¹ ln n.

Published: single is better at large ε₀, by orders of magnitude. That is the difference of two proofs, of e^{3ε₀} and e^{2ε₀}, not
of two protocols: certified, single gains what dropping reports is worth, and no more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting.published import network_shuffling as paper

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size
from ..running import Work
from .common import TITLES, certified, graph_of, present

DELTA = 1e-6
EPSILON0S = np.linspace(0.1, 2.0, 20).round(3).tolist()
MIXED = 150
"""Hops after which Twitch's walk has mixed; the larger networks take 20 times the paper's t instead."""


def curves(name: str) -> dict[str, Any]:
    graph = graph_of(name)
    t = paper.mixing_time(graph)
    squares = paper.stationary_squares(graph, t)
    longer = MIXED if name == "twitch" else 20 * t
    chosen = EPSILON0S[::2] + EPSILON0S[-1:]
    return {
        "time": t,
        "x": chosen,
        "all": [paper.epsilon_all(e, graph.n, squares, DELTA) for e in EPSILON0S],
        "single": [paper.epsilon_single(e, squares, DELTA) for e in EPSILON0S],
        "certified all": certified(graph, longer, chosen, DELTA),
        "certified single": certified(graph, longer, chosen, DELTA, reporting="single"),
    }


def run(size: Size, work: Work) -> Result:
    names, missing = present(["twitch", "web-google"])
    found = dict(zip(names, work.map(curves, names), strict=True))
    panels, findings = [], []
    for name, one in found.items():
        gain = [b / a for a, b in zip(one["certified all"], one["certified single"], strict=True)]
        findings += [
            Finding(
                f"{TITLES[name]}: ε of single over ε of all, ε₀ = 2",
                one["single"][-1] < 0.1 * one["all"][-1] and 0.2 < gain[-1] < 1,
                printed="larger amplification at large ε₀",
                formula=one["single"][-1] / one["all"][-1],
                certified=gain[-1],
                note="an artefact of two proofs; of the certified bounds: what dropping reports gains",
            ),
            Finding(
                f"{TITLES[name]}: the same ratio at ε₀ = 0.1 and 0.9",
                abs(gain[0] / gain[4] - 1) < 0.1,
                formula=" / ".join(f"{one['single'][at] / one['all'][at]:.3f}" for at in (0, 8)),
                certified=" / ".join(f"{gain[at]:.3f}" for at in (0, 4)),
                note="the gain hardly depends on ε₀",
            ),
        ]
        panels.append(
            Panel(
                f"{TITLES[name]}, n = {graph_of(name).n:,}",
                "ε₀",
                "ε at δ = 10⁻⁶",
                (
                    Series("all: published", EPSILON0S, one["all"], Kind.PUBLISHED),
                    Series("all: certified", one["x"], one["certified all"], Kind.CERTIFIED),
                    Series("single: published", EPSILON0S, one["single"], Kind.PUBLISHED),
                    Series("single: certified", one["x"], one["certified single"], Kind.CERTIFIED),
                    Series("ε₀", EPSILON0S, EPSILON0S, Kind.LOCAL),
                ),
                log_y=True,
            )
        )
    return Result(
        settings={"δ": DELTA, "published at t": "α⁻¹ ln n", "certified at t": MIXED},
        findings=tuple(findings),
        panels=tuple(panels),
        missing=missing,
    )


EXPERIMENT = Experiment(
    id="003-fig7",
    paper="003",
    place="Figure 7",
    title="all reports or a single one each",
    shows="A_single is said to achieve larger amplification at large ε₀.",
    run=run,
    quick="8 s, all of it",
    full="8 s; with web-Google several minutes",
    errata=("003-theorem55",),
)
