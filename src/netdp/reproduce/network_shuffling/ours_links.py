"""Ours: one random ring laid over the users, two more links each, shortens the walk by orders of magnitude.

Hops after which the certified ε (ε₀ = 1, δ = 10⁻⁶) is within 1 % of a trusted shuffler's. Proved from the spectral gap alone
(`separation`), and with `--full` also from return bounds (`plan_rounds`), which need about half as many.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from netdp.accounting.heap.clones import shuffled_epsilon
from netdp.accounting.shuffle.separation import fewest_rounds
from netdp.accounting.shuffle.shuffling import curator_heap
from netdp.graphs import ring
from netdp.graphs.links import with_links
from netdp.planning.shuffle.plan import plan_rounds
from netdp.privacy import Claim
from netdp.protocols import Shuffle

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, Table
from ..running import Work
from .common import TITLES, graph_of, present

EPSILON0, DELTA, SHARE = 1.0, 1e-6, 0.01
# noted before by the spectral gap for a slightly stricter closeness: without links, with one ring
BEFORE = {"twitch": (155, 70), "facebook-pages": (6966, 493), "deezer": (10_133, 205), "enron": (8791, 206)}

QUICK = ("twitch", "deezer")


@lru_cache(maxsize=8)
def largest_separation(n: int) -> float:
    """The largest separation (to 1 %) at which n users' ε is within SHARE of a trusted shuffler's; the ring has that many users."""
    target = (1 + SHARE) * shuffled_epsilon(n - 1, EPSILON0, DELTA)
    probe = Shuffle(ring(n), 1, EPSILON0, laziness=0.5)
    low, high = -10.0, -4.0  # log₁₀
    for _ in range(11):
        middle = (low + high) / 2
        low, high = (middle, high) if curator_heap(probe, 10**middle).epsilon(DELTA) <= target else (low, middle)
    return float(10**low)


def hops(item: list[Any]) -> dict[str, float]:
    """[data set, rings, whether also by return bounds]."""
    name, rings, careful = item
    graph = with_links(graph_of(name), rings, seed=0)
    most = largest_separation(graph.n)
    out = {"degree": float(graph.degrees.mean()), "gap": float(fewest_rounds(graph, 0.0, most).rounds)}
    if careful:
        out["returns"] = float(plan_rounds(graph, EPSILON0, DELTA, SHARE).protocol.rounds)
    return out


def run(size: Size, work: Work) -> Result:
    full = size is Size.FULL
    names, missing = present(BEFORE if full else QUICK)
    rings = [0, 1, 2, 4]
    items = [[name, k, full] for name in names for k in rings]
    places = [(name, k) for name in names for k in rings]
    found: dict[tuple[str, int], dict[str, float]] = dict(zip(places, work.map(hops, items), strict=True))
    findings = []
    for name in names:
        plain, linked = (found[name, k]["gap"] for k in (0, 1))
        said = BEFORE[name]
        findings.append(
            Finding(
                f"{TITLES[name]}: hops without links, and with one ring",
                bool(np.allclose([plain, linked], said, rtol=0.12)) and linked < 0.5 * plain,
                certified=f"{plain:.0f} → {linked:.0f}",
                claim=Claim.UPPER,
                note=f"{said[0]:,} → {said[1]} noted before, for a stricter closeness; by return bounds "
                + (
                    f"{found[name, 0]['returns']:.0f} → {found[name, 1]['returns']:.0f}"
                    if "returns" in found[name, 0]
                    else "about half as many before"
                ),
            )
        )
    best = max(names, key=lambda name: found[name, 0]["gap"] / found[name, 1]["gap"])
    findings.append(
        Finding(
            f"{TITLES[best]}: hops saved by one ring, as a factor",
            found[best, 0]["gap"] > 2 * found[best, 1]["gap"],
            certified=found[best, 0]["gap"] / found[best, 1]["gap"],
            note="of the two upper bounds; two more links for everybody, public, drawn after the parties are known",
        )
    )
    return Result(
        settings={"ε₀": EPSILON0, "δ": DELTA, "within": SHARE, "rings": rings, "seed": 0},
        findings=tuple(findings),
        panels=(
            Panel(
                "Hops to a trusted shuffler's ε",
                "random rings laid over the users",
                "hops until ε is within 1 %",
                tuple(
                    Series(TITLES[name], rings, [found[name, k]["gap"] for k in rings], Kind.OTHER) for name in names
                ),
                log_y=True,
                limits=(30, 2e4),
            ),
        ),
        tables=(
            Table(
                "Hops",
                ("network", "rings", "mean degree", "by the spectral gap", "by return bounds"),
                tuple(
                    (TITLES[name], k, one["degree"], int(one["gap"]), int(one["returns"]) if "returns" in one else "")
                    for (name, k), one in found.items()
                ),
            ),
        ),
        missing=missing,
    )


EXPERIMENT = Experiment(
    id="ours-links",
    paper="ours",
    place="Random links",
    title="what one random ring buys",
    shows="Slow graphs, not protocols, make decentralization expensive: one random ring over the users mends it.",
    run=run,
    quick="12 s; Twitch and Deezer, by the spectral gap alone",
    full="5 min; four networks; one, two and four rings, and return bounds for all",
)
