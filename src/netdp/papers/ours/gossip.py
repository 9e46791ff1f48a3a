"""Gossip of ours: descent with a certified bound, masks that cancel, and fresh noise before every send.

All numbers are held against those of the project's page on the mathematics.

**Descent** (its section 5): a bound on what is learned over all iterations, beside the exact loss of a linear closed loop.
Six iterations of noisy gradient steps on the hypercube 2⁶, K = 1 or 3 rounds of gossip each, in units of Δ²/σ², where local
DP has 6; then masks, on the hypercube 2⁸ with K = 8. The closed loop: local steps θ ↦ c_u·θ with contractions c_u uniform in
[½, 1], so that the whole run is linear and Gaussian and its loss is exact (section 1); the page's contractions are not known,
so digits agree only nearly.

**Masks** (section 2) that cancel in the sum bring every loss down to a trusted curator's, neighbours included. Every edge
agrees in secret on a mask N(0, κσ²); one end adds it, the other subtracts it. Worst and mean factor, collusion, the variance
of the answer, a quarter colluding.

**Fresh noise** (section 2), a little before every send, and the loss falls with distance again, truly. Every party adds
N(0, τ²) to its state before every send after the first; with Tτ² = 0.1σ² the answer's variance grows by at most a tenth.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from netdp.families.gossip.account.descent import loss_energy
from netdp.families.gossip.descent import GossipDescent
from netdp.families.gossip.protocol import Gossip
from netdp.graphs.families import grid, hypercube, ring
from netdp.graphs.mixing import metropolis
from netdp.numerics.arrays import FloatArray
from netdp.papers.experiment import Experiment, FigureKind, Observation, Panel, Result, ResultTable, Series, Size, near
from netdp.papers.muffliato.common import agrees, by_distance, curve, factors, loss_panel
from netdp.papers.runs import Work
from netdp.privacy.guarantee import Claim
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import expected_error

ITERATIONS = 6

BOUND = {1: (6, 0.336, 0.047, 0.009), 3: (6, 2.53, 1.98, 0.287)}

EXACT = (5.62, 0.138, 0.010, 0.001)

MASKED = {0.0: (6, 0.69, 6), 10.0: (0.122, 0.039, 0.110), 100.0: (0.034, 0.026, 0.032)}


def protocol(dimension: int, rounds: int, masks: float = 0.0) -> GossipDescent:
    return GossipDescent(hypercube(dimension), ITERATIONS, rounds, sigma=1.0, step=1.0, clip=0.5, masks=masks)


def bound(item: list[Any]) -> list[float]:
    """The bound at distances 1, 2, … of a hypercube: [dimension, K, κ]."""
    dimension, rounds, masks = item
    energy = loss_energy(protocol(dimension, rounds, masks), (0,))
    return [float(energy[2**hops - 1]) for hops in range(1, dimension + 1)]


def closed_loop(contractions: FloatArray, targets: list[int]) -> list[float]:
    """The exact loss of observer 0 about each target, K = 1: max over signs of dᵀMd, M from what is seen (section 1).

    >>> two = closed_loop(np.ones(2), [1])                                  # two parties: every noisy gradient is seen
    >>> round(two[0], 9)
    6.0
    """
    n = len(contractions)
    W = metropolis(hypercube(n.bit_length() - 1)).toarray()
    near_0 = np.flatnonzero(W[0] > 0)[1:]
    powers = [np.eye(n)]
    for _ in range(ITERATIONS - 1):
        # mixed, then contracted: what the noise of one iteration has become at the next send
        powers.append(np.diag(contractions) @ W @ powers[-1])
    seen = np.zeros((ITERATIONS * len(near_0), ITERATIONS * n))
    for t in range(ITERATIONS):
        for s in range(t + 1):
            rows = slice(t * len(near_0), (t + 1) * len(near_0))
            seen[rows, s * n : (s + 1) * n] = powers[t - s][near_0]
    noise = np.delete(seen, [s * n for s in range(ITERATIONS)], axis=1)  # the observer knows its own noise
    inverse = np.linalg.pinv(noise @ noise.T, rcond=1e-12, hermitian=True)
    found = []
    for u in targets:
        A = seen[:, [s * n + u for s in range(ITERATIONS)]]
        M = A.T @ inverse @ A
        found.append(max(float(np.array(s) @ M @ np.array(s)) for s in product((1, -1), repeat=ITERATIONS)))
    return found


def run_ours_descent(size: Size, work: Work) -> Result:
    hops = [1, 2, 3, 4]
    targets = [2**d - 1 for d in range(1, 7)]
    bounds = work.by_key(bound, {rounds: [6, rounds, 0.0] for rounds in (1, 3)})
    masked = work.by_key(bound, {kappa: [8, 8, kappa] for kappa in MASKED})
    draws = [
        closed_loop(np.random.default_rng(seed).uniform(0.5, 1, 64), targets)
        for seed in range(5 if size is Size.QUICK else 50)
    ]
    exact = np.array(draws)
    worst = closed_loop(np.ones(64), targets)
    printed = account(protocol(6, 1), [0], method="published").factor
    assert printed is not None
    published = [float(printed[u]) * ITERATIONS for u in targets]
    findings = [
        Observation(
            f"bound, hypercube 2⁶, K = {rounds}, distances 1 to 4",
            all(abs(value - text) <= 0.006 for value, text in zip(bounds[rounds], BOUND[rounds], strict=False)),
            certified=" / ".join(f"{value:.3f}" for value in bounds[rounds][:4]),
            claim=Claim.UPPER,
            note="maths page: " + " / ".join(map(str, BOUND[rounds])) + "; local DP 6",
        )
        for rounds in (1, 3)
    ]
    middle = exact.mean(axis=0)
    findings.append(
        Observation(
            "exact closed loop, contractions uniform in [½, 1], K = 1",
            near(middle[0], EXACT[0], 0.05)
            and near(middle[1], EXACT[1], 0.15)
            and near(middle[2], EXACT[2], 0.2, 0.001)
            and near(middle[3], EXACT[3], 0.3, 0.0006)
            and bool((exact <= np.array(bounds[1]) * (1 + 1e-9)).all()),
            certified=" / ".join(f"{value:.3f}" for value in middle[:4]),
            claim=Claim.EXACT,
            note="maths page, one draw of contractions: " + " / ".join(map(str, EXACT)) + "; never above the bound",
        )
    )
    findings.append(
        Observation(
            "Theorem 6, K = 1: distance 3",
            published[2] == 0 and worst[2] > 0.01,
            printed="a bound",
            formula=published[2],
            certified=worst[2],
            claim=Claim.EXACT,
            note="one round per gradient never reaches three hops in one iteration; over iterations it does (no contraction)",
        )
    )
    for kappa, text in MASKED.items():
        values = [masked[kappa][d - 1] for d in (1, 4, 8)]
        findings.append(
            Observation(
                f"bound with masks, hypercube 2⁸, K = 8, κ = {kappa:g}, distances 1, 4, 8",
                all(abs(value - t) <= (0.006 if kappa == 0 else 0.0006) for value, t in zip(values, text, strict=True)),
                certified=" / ".join(f"{value:.3f}" for value in values),
                claim=Claim.UPPER,
                note="maths page: " + " / ".join(map(str, text)) + "; a trusted curator: .024",
            )
        )
    d6, d8 = list(range(1, 7)), list(range(1, 9))
    panels = (
        Panel(
            "Hypercube 2⁶, six iterations",
            "distance from the observer",
            "loss in Δ²/σ²",
            (
                Series("local DP", d6, [6.0] * 6, FigureKind.LOCAL),
                Series("bound, K = 3", d6, bounds[3], FigureKind.MEASURED),
                Series("bound, K = 1", d6, bounds[1], FigureKind.CERTIFIED),
                Series("exact loop, K = 1", d6, middle, FigureKind.CENTRAL, exact.min(axis=0), exact.max(axis=0)),
                Series("Theorem 6 (0 beyond 1)", d6, [v if v > 0 else np.nan for v in published], FigureKind.PUBLISHED),
            ),
            log_y=True,
            limits=(1e-6, 20.0),
            band="least to largest draw",
        ),
        Panel(
            "Hypercube 2⁸, K = 8, with masks",
            "distance from the observer",
            "loss in Δ²/σ²",
            (
                Series("local DP", d8, [6.0] * 8, FigureKind.LOCAL),
                *(Series(f"bound, κ = {kappa:g}", d8, masked[kappa], FigureKind.CERTIFIED) for kappa in MASKED),
                Series("trusted curator", d8, [6 / 255] * 8, FigureKind.CENTRAL),
            ),
            log_y=True,
        ),
    )
    rows = tuple((d, bounds[1][d - 1], middle[d - 1], bounds[3][d - 1], published[d - 1]) for d in hops)
    return Result(
        settings={"iterations": ITERATIONS, "σ": 1, "Δ": 1, "weights": "Metropolis", "contractions": "uniform [½, 1]"},
        findings=tuple(findings),
        panels=panels,
        tables=(
            ResultTable(
                "Hypercube 2⁶, loss in Δ²/σ²",
                ("distance", "bound, K = 1", "exact loop", "bound, K = 3", "Theorem 6"),
                rows,
            ),
        ),
    )


OURS_DESCENT = Experiment(
    id="ours-descent",
    place="Gossip descent",
    title="learning by gossip: certified by hidden-state composition",
    shows="What is learned about a party over all iterations, gradients that react to hidden states included.",
    run=run_ours_descent,
    quick="2 s; 5 draws of contractions",
    full="3 s; 50 draws",
)

# κ → worst and mean for one observer, worst for a node with two of its neighbours, variance × n/σ²
OURS_MASKS_PRINTED = {
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
    return account(protocol, coalition).worst


def run_ours_masks(size: Size, work: Work) -> Result:
    rows: list[tuple[Any, ...]] = []
    findings = []
    for masks, printed in OURS_MASKS_PRINTED.items():
        values = losses(masks)
        rows.append((f"{masks:g}", *values))
        findings.append(
            Observation(
                f"κ = {masks:g}: worst, mean; worst of a node and two neighbours; variance",
                all(agrees(value, text) for value, text in zip(values, printed, strict=True)),
                certified=" / ".join(f"{value:.4f}" for value in values),
                claim=Claim.EXACT,
                note=f"maths page: {' / '.join(printed)}",
            )
        )
    limit = losses(1e6)
    findings.append(
        Observation(
            "the curator's limit: one observer, and three",
            agrees(limit[0], ".0039") and agrees(limit[2], ".0040"),
            certified=f"{limit[0]:.4f} / {limit[2]:.4f}",
            claim=Claim.EXACT,
            note="κ = 10⁶; 1/255 and 1/253",
        )
    )
    drawn = work.map(quarter, range(40 if size is Size.QUICK else 400))
    findings.append(
        Observation(
            f"64 of 256 collude, κ = 100, T = 25: least, median, largest of {len(drawn)} draws",
            0.008 < min(drawn) < 0.010 and 0.009 < float(np.median(drawn)) < 0.0125 and max(drawn) < 0.04,
            certified=f"{min(drawn):.4f} / {np.median(drawn):.4f} / {max(drawn):.4f}",
            claim=Claim.EXACT,
            note="maths page: .009 to .017, median .011",
        )
    )
    slow = expected_error(Gossip(grid(16, 16), rounds=30, sigma=1.0, masks=100.0))
    findings.append(
        Observation(
            "grid 16×16, κ = 100, T = 30: variance × n/σ²",
            20 < (slow.noise + slow.masks) * 256 < 21,
            certified=(slow.noise + slow.masks) * 256,
            claim=Claim.EXACT,
            note="maths page: 20; slow mixing is punished",
        )
    )
    strengths = np.geomspace(0.1, 1e4, 11 if size is Size.QUICK else 26)
    swept = list(zip(*work.map(losses, strengths.tolist()), strict=True))
    panels = (
        Panel(
            "Hypercube 2⁸, 30 rounds",
            "strength of the masks κ",
            "loss (1 = local DP)",
            (
                Series("worst party, one observer", strengths, swept[0], FigureKind.CERTIFIED),
                Series("mean party, one observer", strengths, swept[1], FigureKind.MEASURED),
                Series("worst, three collude", strengths, swept[2]),
                Series("trusted curator", strengths, np.full(len(strengths), 1 / 255), FigureKind.CENTRAL),
            ),
            log_x=True,
            log_y=True,
        ),
        Panel(
            "What it costs",
            "strength of the masks κ",
            "variance of the answer × n/σ²",
            (
                Series("masked gossip, 30 rounds", strengths, swept[3], FigureKind.CERTIFIED),
                Series("trusted curator, same σ", strengths, np.ones(len(strengths)), FigureKind.CENTRAL),
            ),
            log_x=True,
        ),
    )
    columns = ("κ", "worst", "mean", "worst, node and two neighbours", "variance × n/σ²")
    return Result(
        settings={"graph": "hypercube 2⁸", "T": ROUNDS, "σ": 1, "weights": "Metropolis"},
        findings=tuple(findings),
        panels=panels,
        tables=(ResultTable("Loss as a multiple of local DP's", columns, tuple(rows)),),
    )


OURS_MASKS = Experiment(
    id="ours-masks",
    place="Masked gossip",
    title="a trusted curator's privacy against everybody, without one",
    shows="Masks that cancel along the edges: the worst loss falls to the curator's, at no cost in accuracy.",
    run=run_ours_masks,
    quick="2 s; 40 coalitions of a quarter",
    full="15 s; 400 coalitions, 26 strengths",
)

GRAPHS = {"hypercube 2⁸": (hypercube(8), 0, 8), "grid 16×16": (grid(16, 16), 120, 12), "ring of 64": (ring(64), 0, 20)}

# distance → published, exact without refresh, with Tτ² = 0.1σ², with Tτ² = σ²
OURS_REFRESH_PRINTED = {
    "hypercube 2⁸": {2: ".721 .286 .248 .116", 4: ".102 .114 .019 .0029", 8: ".0018 1 .0005 .0001"},
    "grid 16×16": {
        2: "1.85 .552 .471 .286",
        4: ".218 .305 .073 .0137",
        6: ".0132 .200 .0059 .0008",
        8: ".0004 .148 .0003 <.0001",
    },
    "ring of 64": {
        2: "4.64 1 .958 .713",
        4: "1.09 1 .388 .099",
        6: ".166 1 .104 .018",
        8: ".015 1 .019 .0026",
    },
}


def run_ours_refresh(size: Size, work: Work) -> Result:
    panels, findings, rows = [], [], []
    for name, (graph, observer, rounds) in GRAPHS.items():
        distance = graph.distances([observer])
        found = [
            by_distance(factors(graph, rounds, observer, method="published"), distance),
            *(by_distance(factors(graph, rounds, observer, refresh=refresh), distance) for refresh in (0.0, 0.1, 1.0)),
        ]
        kinds = (FigureKind.PUBLISHED, FigureKind.CERTIFIED, FigureKind.CENTRAL, FigureKind.MEASURED)
        labels = ("Theorem 1", "exact, no refresh", "exact, Tτ² = 0.1σ²", "exact, Tτ² = σ²")
        panels.append(
            loss_panel(
                f"{name}, {rounds} rounds",
                (
                    curve(label, part, kind, clip=True, spread=False)
                    for label, part, kind in zip(labels, found, kinds, strict=True)
                ),
                "distance from the observer",
            )
        )
        for hops, text in OURS_REFRESH_PRINTED[name].items():
            values = [part["mean"][hops - 1] for part in found]
            rows.append((name, rounds, hops, *values))
            findings.append(
                Observation(
                    f"{name}, distance {hops}: published, exact with Tτ² = 0, 0.1σ², σ²",
                    all(agrees(value, printed) for value, printed in zip(values, text.split(), strict=True))
                    and values[1] >= values[2] >= values[3],
                    formula=values[0],
                    certified=" / ".join(f"{value:.4g}" for value in values[1:]),
                    claim=Claim.EXACT,
                    note=f"maths page: {text.replace(' ', ' / ')}",
                )
            )
    plain, added = zip(
        *(
            (error.noise * graph.n, error.refresh * graph.n)
            for graph, _, rounds in GRAPHS.values()
            for error in [expected_error(Gossip(graph, rounds=rounds, sigma=1.0, refresh=0.1))]
        ),
        strict=True,
    )
    mean = [0.1 * (rounds - 1) / rounds for _, _, rounds in GRAPHS.values()]
    findings.append(
        Observation(
            "variance × n/σ² that Tτ² = 0.1σ² adds: to the mean of the answers; to one party's answer; beside its own",
            all(part <= 0.1 for part in mean)
            and all(0 < more < 0.6 * own for own, more in zip(plain, added, strict=True)),
            certified="; ".join(
                " / ".join(f"{value:.2f}" for value in part) for part in (mean, list(added), list(plain))
            ),
            claim=Claim.EXACT,
            note="hypercube / grid / ring; after so few rounds nothing is mixed, fresh noise least: the tenth is that of the mean",
        )
    )
    columns = ("graph", "T", "distance", "Theorem 1", "no refresh", "Tτ² = 0.1σ²", "Tτ² = σ²")
    return Result(
        settings={"σ": 1, "weights": "Metropolis", "grid": "observer 120"},
        findings=tuple(findings),
        panels=tuple(panels),
        tables=(ResultTable("Mean loss at a distance, as a multiple of local DP's", columns, tuple(rows)),),
        columns=3,
    )


OURS_REFRESH = Experiment(
    id="ours-refresh",
    place="Refreshed gossip",
    title="with a little fresh noise the loss falls with distance, truly",
    shows="Plain gossip gives distant parties away; fresh noise of a tenth of the variance hides them.",
    run=run_ours_refresh,
    quick="2 s, all of it",
    full="2 s",
)
