"""Table 3: memory and traffic of network shuffling: O(1) reports in a hand, O(log n) sent per user. Counted.

On random 10-regular graphs, which mix fast, after t = α⁻¹ ln n rounds; and what α⁻¹ hides on real graphs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.accounting.published import network_shuffling as paper
from netdp.errors import DataNotFound
from netdp.graphs import regular
from netdp.privacy import Claim
from netdp.protocols import Shuffle
from netdp.simulate.shuffle import run_walks

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, Table
from ..running import Work
from .common import TITLES, graph_of, present

DEGREE = 10
GAP = 1 - 2 * math.sqrt(DEGREE - 1) / DEGREE
"""Of almost all random regular graphs (Friedman 2008)."""


def walked(n: int) -> dict[str, float]:
    """Reports sent and held on a random 10-regular graph."""
    return _counted(Shuffle(regular(n, DEGREE, seed=0), rounds=math.ceil(math.log(n) / GAP), epsilon0=1.0))


def on_data(name: str) -> dict[str, float]:
    """The same on a real graph, t = α⁻¹ ln n of its own; walks of more than 1,000 rounds are not run, only their length given."""
    graph = graph_of(name)
    rounds = paper.mixing_time(graph)
    if rounds > 1000:
        return {"n": graph.n, "rounds": rounds, "sent": rounds, "most": math.nan, "hand": math.nan}
    return _counted(Shuffle(graph, rounds=rounds, epsilon0=1.0))


def _counted(protocol: Shuffle) -> dict[str, float]:
    traffic = run_walks(protocol, 0)[1]
    return {
        "n": protocol.n,
        "rounds": protocol.rounds,
        "sent": traffic.mean_sent,
        "most": traffic.largest_sent,
        "hand": traffic.largest_hand,
    }


def run(size: Size, work: Work) -> Result:
    sizes = [1000, 10_000, 100_000] + ([1_000_000] if size is Size.FULL else [])
    found = work.map(walked, sizes)
    wanted = ["twitch", "deezer"] if size is Size.QUICK else ["twitch", "facebook-pages", "deezer", "enron"]
    try:
        names, missing = present([*wanted, "web-google"])
    except DataNotFound as absent:  # only the random graphs, then; the reason is shown
        names, missing = [], (str(absent),)
    real = dict(zip(names, work.map(on_data, names), strict=True))
    logs = [math.log(n) for n in sizes]
    slope = float(np.polyfit(logs, [one["sent"] for one in found], 1)[0])
    findings = [
        Finding(
            "reports sent per user: growth per unit of ln n",
            abs(slope - 1 / GAP) < 0.15 / GAP,
            printed="O(log n)",
            formula=1 / GAP,
            certified=slope,
            claim=Claim.ESTIMATE,
            note="random 10-regular graphs, t = α⁻¹ ln n; the formula is α⁻¹",
        ),
        Finding(
            f"most reports in one hand, n = {sizes[0]:,} and {sizes[-1]:,}",
            3 < found[0]["hand"] < found[-1]["hand"] < 30,
            printed="O(1)",
            certified=f"{found[0]['hand']:.0f}; {found[-1]['hand']:.0f}",
            claim=Claim.ESTIMATE,
            note="one on average; the fullest hand grows, slowly, over all users and rounds",
        ),
    ]
    if "twitch" in real:
        one = real["twitch"]
        share = float(graph_of("twitch").degrees.max() / graph_of("twitch").degrees.sum()) * one["n"]
        findings.append(
            Finding(
                "Twitch: reports in the fullest hand",
                one["hand"] > 0.8 * share > 50,
                printed="O(1)",
                formula=share,
                certified=one["hand"],
                claim=Claim.ESTIMATE,
                note="a hub holds nπ of them, k/2m of all; the formula is that mean",
            )
        )
    if "deezer" in real:
        findings.append(
            Finding(
                "Deezer: t = α⁻¹ ln n",
                real["deezer"]["rounds"] > 300 * math.log(real["deezer"]["n"]),
                printed="O(log n), ln n = 10",
                formula=real["deezer"]["rounds"],
                note="the constant is α⁻¹: slow graphs, not the protocol, are expensive (see ours-links)",
            )
        )
    header = ("graph", "n", "rounds", "sent per user", "by the busiest", "largest hand")
    keys = ("rounds", "sent", "most", "hand")
    return Result(
        settings={"degree": DEGREE, "t": "α⁻¹ ln n"},
        findings=tuple(findings),
        panels=(
            Panel(
                "Random 10-regular graphs",
                "number of users n",
                "reports",
                (
                    Series("α⁻¹ ln n (formula)", sizes, [x / GAP for x in logs], Kind.PUBLISHED),
                    Series("sent per user", sizes, [one["sent"] for one in found], Kind.MEASURED),
                    Series("in the fullest hand", sizes, [one["hand"] for one in found], Kind.OTHER),
                ),
                log_x=True,
                limits=(0, None),
            ),
        ),
        tables=(
            Table(
                "Counted",
                header,
                (
                    *(("random 10-regular", n, *(one[k] for k in keys)) for n, one in zip(sizes, found, strict=True)),
                    *((TITLES[name], int(one["n"]), *(_shown(one[k]) for k in keys)) for name, one in real.items()),
                ),
            ),
            Table(
                "As printed",
                ("", *next(iter(paper.TABLE3.values()))),
                tuple((what, *costs.values()) for what, costs in paper.TABLE3.items()),
            ),
        ),
        missing=missing,
    )


def _shown(value: Any) -> Any:
    return "not run" if isinstance(value, float) and math.isnan(value) else value


EXPERIMENT = Experiment(
    id="003-table3",
    paper="003",
    place="Table 3",
    title="memory and traffic",
    shows="A user of network shuffling is said to hold O(1) reports and to send O(log n).",
    run=run,
    quick="3 s; n up to 100,000, Twitch and Deezer",
    full="30 s; n up to a million and four data sets",
    errata=("003-table3-hand",),
)
