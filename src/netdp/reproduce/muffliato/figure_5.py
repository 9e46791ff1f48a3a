"""Figure 5: the nine other ego graphs, each with the first user who has one friend, as in the authors' code."""

from __future__ import annotations

import numpy as np

from netdp.errors import DataNotFound

from ..experiment import Experiment, Finding, Kind, Result, Size, Table
from ..running import Work
from .common import network
from .ego import EGOS, available, ego_graph, farther, measure, understated

OTHERS = tuple(ego for ego in EGOS if ego != 1912)


def run(size: Size, work: Work) -> Result:
    there = [ego for ego in OTHERS if available(ego)]
    if not there:
        raise DataNotFound(
            "none of the Facebook ego graphs is on this machine; set NETDP_DATA to a folder with facebook-ego/0.edges and "
            "the others, from https://snap.stanford.edu/data/ego-Facebook.html"
        )
    graphs = {ego: ego_graph(ego) for ego in there}
    here = [ego for ego in there if size is Size.FULL or graphs[ego].n < 400]
    found = dict(zip(here, work.map(measure, [[ego, None] for ego in here]), strict=True))
    panels, findings, rows = [], [], []
    for part, said in (("published", "Theorem 1"), ("true", "true, at least")):
        for ego, one in found.items():
            panels.append(
                network(
                    f"ego {ego}: {said}", graphs[ego], np.array(one["places"]), np.array(one[part], dtype=float),
                    one["target"], kind=Kind.PUBLISHED if part == "published" else Kind.CERTIFIED,
                )
            )  # fmt: skip
    for ego, one in found.items():
        formula, true, share = understated(one)
        rows.append((ego, one["n"], one["rounds"], one["degree"], formula, true, share, farther(one, "published")))
        findings.append(
            Finding(
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
        panels=tuple(panels),
        tables=(Table("Loss of one user towards all others", columns, tuple(rows)),),
        missing=tuple(f"ego graph {ego} is not on this machine" for ego in OTHERS if ego not in there),
        columns=len(here),
    )


EXPERIMENT = Experiment(
    id="004-fig5",
    paper="004",
    place="Figure 5",
    title="the other Facebook ego graphs",
    shows="On the other nine ego graphs, too, losses are said to follow the visible communities.",
    run=run,
    quick="4 s; the graphs below 400 nodes",
    full="20 s; all graphs that are here",
    errata=("004-theorem1",),
)
