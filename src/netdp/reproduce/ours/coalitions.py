"""What a coalition of growing size learns about the worst off of the others: masked sums, masked and plain gossip, local DP.

All on the hypercube 2⁶. The loss is the factor of μ²: 1 is local DP's, 1/(n − c) that of a curator whose noise c parties
know. *Left:* the coalition is fixed before masks are drawn, at random. *Right:* the worst there is, chosen by somebody who
knows both graphs: who has all neighbours of a party in the mask graph of a protocol has cut it off.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.graphs import hypercube
from netdp.privacy import Claim
from netdp.protocols import Gossip, MaskedSum, Protocol
from netdp.protocols.mask_graphs import random_rings

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, Table, near
from ..running import Work

DIMENSION, RINGS, KAPPA, ROUNDS = 6, 3, 100.0, 25
N = 2**DIMENSION
SIZES = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32)


def protocol(kind: str, seed: int = 0) -> Protocol:
    """σ = 1; `seed` draws the rings along which pads are shared."""
    graph = hypercube(DIMENSION)
    if kind == "complete":
        return MaskedSum(graph, sigma=1.0)
    if kind == "rings":
        return MaskedSum(graph, sigma=1.0, masks=random_rings(N, RINGS, seed))
    return Gossip(graph, rounds=ROUNDS, sigma=1.0, masks=KAPPA if kind == "masked" else 0.0)


KINDS = ("complete", "rings", "masked", "plain")


def drawn(item: Any) -> list[float]:
    """Worst factor and mean factor of a coalition of so many, drawn at random."""
    kind, members, seed = item
    coalition = np.random.default_rng([seed, members]).choice(N, members, replace=False).tolist()
    factor = account(protocol(kind, seed), coalition).factor
    assert factor is not None
    return [float(np.nanmax(factor)), float(np.nanmean(factor))]


def worst(item: Any) -> list[Any]:
    """The worst factor of any coalition of so many, and whether that is exact (else a proved upper bound)."""
    kind, members = item
    if kind == "plain":  # a neighbour reads the first message, and no loss is above local DP's
        return [drawn([kind, 1, 0])[0], True]
    if kind == "rings":  # all partners of somebody: local DP's loss, and none is above that
        pads = random_rings(N, RINGS, 0)
        few = int(pads.degrees.argmin())
        if members >= pads.degrees[few]:
            factor = account(protocol(kind), pads.neighbors(few).tolist()).factor
            assert factor is not None
            return [float(factor[few]), True]
    loss = account(protocol(kind), colluders=members)
    assert loss.factor is not None
    return [float(np.nanmax(loss.factor)), loss.claim is Claim.EXACT]


def run(size: Size, work: Work) -> Result:
    seeds = range(5 if size is Size.QUICK else 100)
    items = [[kind, members, seed] for kind in KINDS for members in SIZES for seed in seeds]
    random = np.array(work.map(drawn, items)).reshape(len(KINDS), len(SIZES), len(seeds), 2)
    bad = [[worst([kind, members]) for members in SIZES] for kind in KINDS]
    ideal = [1 / (N - members) for members in SIZES]
    middle = np.median(random[..., 0], axis=2)
    low, high = random[..., 0].min(axis=2), random[..., 0].max(axis=2)
    quarter, half = SIZES.index(16), SIZES.index(32)
    cut_off = float((random[1, quarter, :, 0] > 0.2).mean())
    cut = {
        kind: next((c for c, (f, _) in zip(SIZES, bad[k], strict=True) if f > 0.99), None)
        for k, kind in enumerate(KINDS)
    }
    findings = (
        Finding(
            "masked sum, pads between all: worst coalition of 1 … 32, over 1/(n − c)",
            bool(np.allclose([f for f, _ in bad[0]], ideal, rtol=1e-9)),
            formula=ideal[half],
            certified=bad[0][half][0],
            claim=Claim.EXACT,
            note="the ideal, whoever colludes; the last, half of all, is shown",
        ),
        Finding(
            "masked gossip, a random quarter: least, median, largest over the curator's",
            bool(1.0 < middle[2, quarter] / ideal[quarter] < 2.5),
            certified=" / ".join(f"{part[2, quarter] / ideal[quarter]:.3g}" for part in (low, middle, high)),
            claim=Claim.EXACT,
            note=f"κ = {KAPPA:g}, {ROUNDS} rounds",
        ),
        Finding(
            "size from which the worst coalition cuts somebody off: masked gossip",
            cut["masked"] == DIMENSION,
            certified=cut["masked"],
            claim=Claim.EXACT,
            note="all six neighbours; five leave a mask",
        ),
        Finding(
            f"the same: pads along {RINGS} random rings, known to the coalition",
            cut["rings"] == int(random_rings(N, RINGS, 0).degrees.min()),
            certified=cut["rings"],
            claim=Claim.EXACT,
            note="all partners of who has fewest; a coalition fixed before the rings were drawn hardly ever does (left)",
        ),
        Finding(
            f"pads along {RINGS} random rings, a quarter fixed before: share of {len(seeds)} draws that cut somebody off",
            cut_off < 0.15 and bool(near(middle[1, quarter], ideal[quarter], 1e-9)),
            certified=cut_off,
            claim=Claim.ESTIMATE,
            note="else the curator's loss exactly",
        ),
        Finding(
            "plain gossip, one party: worst and mean factor",
            bool(high[3, 0] > 0.999 and 0.1 < random[3, 0, :, 1].mean() < 0.6),
            certified=f"{high[3, 0]:.3g} / {random[3, 0, :, 1].mean():.3g}",
            claim=Claim.EXACT,
            note="a neighbour sees all; half the parties together know nearly everything about everybody",
        ),
    )
    names = ("masked sum, all pads", f"masked sum, {RINGS} rings", "masked gossip", "plain gossip, worst")
    marks = (Kind.CERTIFIED, Kind.OTHER, Kind.MEASURED, Kind.PUBLISHED)
    mean = Series("plain gossip, mean", SIZES, random[3, ..., 1].mean(axis=1))
    both = (
        Series("local DP", SIZES, np.ones(len(SIZES)), Kind.LOCAL),
        Series("trusted curator", SIZES, ideal, Kind.CENTRAL),
    )
    panels = (
        Panel(
            "Colluders drawn at random",
            "colluding parties c of 64",
            "loss (1 = local DP)",
            (
                *(Series(names[k], SIZES, middle[k], marks[k], low[k], high[k]) for k in range(4)),
                mean,
                *both,
            ),
            log_x=True,
            log_y=True,
            limits=(0.012, 1.3),
            band="least to largest draw",
        ),
        Panel(
            "The worst colluders, graphs known",
            "colluding parties c of 64",
            "loss (1 = local DP)",
            (*(Series(names[k], SIZES, [f for f, _ in bad[k]], marks[k]) for k in range(4)), *both),
            log_x=True,
            log_y=True,
            limits=(0.012, 1.3),
        ),
    )
    rows = tuple(
        (c, *(float(middle[k, i]) for k in range(4)), *(bad[k][i][0] for k in range(4)), ideal[i])
        for i, c in enumerate(SIZES)
    )
    heads = ("all pads", "rings", "masked gossip", "plain gossip")
    return Result(
        settings={"graph": "hypercube 2⁶", "κ": KAPPA, "rounds": ROUNDS, "rings": RINGS, "draws": len(seeds)},
        findings=findings,
        panels=panels,
        tables=(
            Table(
                "Loss about the worst off (1 = local DP)",
                ("colluders", *(f"{h}, random" for h in heads), *(f"{h}, worst" for h in heads), "curator"),
                rows,
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="ours-coalitions",
    paper="ours",
    place="Coalitions",
    title="what a coalition of growing size learns",
    shows="Pads between all pairs face any coalition with the honest parties' noise; masks between neighbours most.",
    run=run,
    quick="6 s; 5 draws of each size",
    full="2 min; 100 draws",
)
