"""Masked gossip, ours: masks that cancel in the sum bring every loss down to a trusted curator's, neighbours included.

Every edge agrees in secret on a mask N(0, κσ²); one end adds it, the other subtracts it. All numbers of the project's page
on the mathematics, section 2: worst and mean factor, collusion, the variance of the answer, a quarter colluding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.graphs import grid, hypercube
from netdp.privacy import Claim
from netdp.protocols import Gossip
from netdp.utility import expected_error

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, Table
from ..running import Work
from .common import agrees

# κ → worst and mean for one observer, worst for a node with two of its neighbours, variance × n/σ²
PRINTED = {
    0.0: ("1", ".2235", "1", "1.000"),
    1.0: (".1436", ".0363", ".1631", "1.000"),
    10.0: (".0204", ".0079", ".0230", "1.000"),
    100.0: (".0056", ".0043", ".0059", "1.001"),
}
ROUNDS = 30


def losses(masks: float) -> list[float]:
    """Worst and mean factor against party 0, worst against 0, 1 and 2 together, variance of the answer × n/σ²."""
    protocol = Gossip(hypercube(8), rounds=ROUNDS, sigma=1.0, masks=masks)
    alone, together = (account(protocol, who).factor for who in ([0], [0, 1, 2]))
    assert alone is not None
    assert together is not None
    variance = expected_error(protocol).total * 256
    return [float(np.nanmax(alone)), float(np.nanmean(alone)), float(np.nanmax(together)), variance]


def quarter(seed: int) -> float:
    """The worst factor when 64 of 256, drawn at random, collude; κ = 100, T = 25."""
    protocol = Gossip(hypercube(8), rounds=25, sigma=1.0, masks=100.0)
    coalition = np.random.default_rng(seed).choice(256, 64, replace=False).tolist()
    factor = account(protocol, coalition).factor
    assert factor is not None
    return float(np.nanmax(factor))


def run(size: Size, work: Work) -> Result:
    rows: list[tuple[Any, ...]] = []
    findings = []
    for masks, printed in PRINTED.items():
        values = losses(masks)
        rows.append((f"{masks:g}", *values))
        findings.append(
            Finding(
                f"κ = {masks:g}: worst, mean; worst of a node and two neighbours; variance",
                all(agrees(value, text) for value, text in zip(values, printed, strict=True)),
                certified=" / ".join(f"{value:.4f}" for value in values),
                claim=Claim.EXACT,
                note=f"maths page: {' / '.join(printed)}",
            )
        )
    limit = losses(1e6)
    findings.append(
        Finding(
            "the curator's limit: one observer, and three",
            agrees(limit[0], ".0039") and agrees(limit[2], ".0040"),
            certified=f"{limit[0]:.4f} / {limit[2]:.4f}",
            claim=Claim.EXACT,
            note="κ = 10⁶; 1/255 and 1/253",
        )
    )
    drawn = work.map(quarter, range(40 if size is Size.QUICK else 400))
    findings.append(
        Finding(
            f"64 of 256 collude, κ = 100, T = 25: least, median, largest of {len(drawn)} draws",
            0.008 < min(drawn) < 0.010 and 0.009 < float(np.median(drawn)) < 0.0125 and max(drawn) < 0.04,
            certified=f"{min(drawn):.4f} / {np.median(drawn):.4f} / {max(drawn):.4f}",
            claim=Claim.EXACT,
            note="maths page: .009 to .017, median .011",
        )
    )
    slow = expected_error(Gossip(grid(16, 16), rounds=30, sigma=1.0, masks=100.0))
    findings.append(
        Finding(
            "grid 16×16, κ = 100, T = 30: variance × n/σ²",
            20 < (slow.noise + slow.masks) * 256 < 21,
            certified=(slow.noise + slow.masks) * 256,
            claim=Claim.EXACT,
            note="maths page: 20; slow mixing is punished",
        )
    )
    strengths = np.geomspace(0.1, 1e4, 11 if size is Size.QUICK else 26)
    swept = work.map(losses, strengths.tolist())
    panels = (
        Panel(
            "Hypercube 2⁸, 30 rounds",
            "strength of the masks κ",
            "loss (1 = local DP)",
            (
                Series("worst party, one observer", strengths, [part[0] for part in swept], Kind.CERTIFIED),
                Series("mean party, one observer", strengths, [part[1] for part in swept], Kind.MEASURED),
                Series("worst, three collude", strengths, [part[2] for part in swept]),
                Series("trusted curator", strengths, np.full(len(strengths), 1 / 255), Kind.CENTRAL),
            ),
            log_x=True,
            log_y=True,
        ),
        Panel(
            "What it costs",
            "strength of the masks κ",
            "variance of the answer × n/σ²",
            (
                Series("masked gossip, 30 rounds", strengths, [part[3] for part in swept], Kind.CERTIFIED),
                Series("trusted curator, same σ", strengths, np.ones(len(strengths)), Kind.CENTRAL),
            ),
            log_x=True,
        ),
    )
    columns = ("κ", "worst", "mean", "worst, node and two neighbours", "variance × n/σ²")
    return Result(
        settings={"graph": "hypercube 2⁸", "T": ROUNDS, "σ": 1, "weights": "Metropolis"},
        findings=tuple(findings),
        panels=panels,
        tables=(Table("Loss as a multiple of local DP's", columns, tuple(rows)),),
    )


EXPERIMENT = Experiment(
    id="ours-masks",
    paper="ours",
    place="Masked gossip",
    title="a trusted curator's privacy against everybody, without one",
    shows="Masks that cancel along the edges: the worst loss falls to the curator's, at no cost in accuracy.",
    run=run,
    quick="2 s; 40 coalitions of a quarter",
    full="15 s; 400 coalitions, 26 strengths",
)
