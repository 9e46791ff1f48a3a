"""What the slides on decentralised federated learning claim: privacy by distance, utility by topology, losses of walks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.families.token.walk import WalkDescent
from netdp.graphs.families import hypercube
from netdp.papers.comparison import Close, Comparison, Falls, Ordered, Power
from netdp.papers.experiment import Experiment, FigureKind, Observation, Panel, Result, ResultTable, Size, curves
from netdp.papers.formulas.amplification import informal_amplification
from netdp.papers.muffliato.common import by_distance, curve, factors, loss_panel, rounds_to_converge
from netdp.papers.muffliato.figure_1 import measure
from netdp.papers.muffliato.tables import (
    checked,
    fits,
    power_of_n,
    slope,
    utilities_by_size,
    utility_panel,
    without_logarithm,
    worst_loss,
)
from netdp.papers.runs import Work
from netdp.privacy.guarantee import Claim
from netdp.protocols.accounting import account
from netdp.protocols.alternatives import local_dp

# Privacy by distance: local DP towards neighbours, stronger privacy towards others, says the empirical illustration.
#
# The graphs are Muffliato's (Figure 1a). Plain gossip does not do what is said; refreshed gossip (ours) does, and
# masked gossip (ours) gives nearly a curator's privacy towards everybody.


def masked(power: int) -> dict[str, Any]:
    """Losses on an exponential graph with masks of strength 100, by distance, in twice the rounds."""
    graph = hypercube(power)
    return by_distance(factors(graph, 2 * rounds_to_converge(graph), 0, masks=100.0), graph.distances([0]))


def run_distance(size: Size, work: Work) -> Result:
    cube, mesh = work.map(measure, ["exponential", "grid"])
    (hidden,) = work.map(masked, [11])

    def panel(title: str, found: dict[str, Any], *more: Any) -> Panel:
        lines = (
            curve(label, found[part], kind, clip=kind is not FigureKind.CENTRAL, spread=False, upto=30)
            for label, part, kind in (
                ("published", "published", FigureKind.PUBLISHED),
                ("true" if found is cube else "true, at least", "true", FigureKind.CERTIFIED),
                ("fresh noise (ours)", "refreshed", FigureKind.CENTRAL),
            )
        )
        return loss_panel(title, (*lines, *more), limits=(5e-5, 2.0))

    worst = max(hidden["high"])
    findings = (
        Observation(
            "exponential graph 2¹¹: loss to neighbours",
            abs(cube["true"]["mean"][0] - 1) < 1e-9,
            printed="local DP",
            formula=min(1.0, cube["published"]["mean"][0]),
            certified=cube["true"]["mean"][0],
            claim=Claim.EXACT,
        ),
        Observation(
            "exponential graph 2¹¹: loss to the farthest",
            cube["published"]["mean"][-1] < 0.01 and cube["true"]["mean"][-1] > 0.99,
            printed="stronger privacy with distance",
            formula=cube["published"]["mean"][-1],
            certified=cube["true"]["mean"][-1],
            claim=Claim.EXACT,
            note=f"with fresh noise {cube['refreshed']['mean'][-1]:.2g}",
        ),
        Observation(
            "grid 45 × 45: loss at distance 30",
            mesh["true"]["mean"][29] > 10 * mesh["published"]["mean"][29],
            printed="stronger privacy with distance",
            formula=mesh["published"]["mean"][29],
            certified=mesh["true"]["mean"][29],
            note=f"at least this; with fresh noise {mesh['refreshed']['mean'][29]:.2g}",
        ),
        Observation(
            "exponential graph 2¹¹, masks κ = 100 (ours): worst loss",
            worst < 0.01,
            certified=worst,
            claim=Claim.EXACT,
            note="neighbours included; a trusted curator has 1/2047 = 0.00049",
        ),
    )

    def falls(what: str, found: dict[str, Any], part: str, by: float, erratum: str = "", note: str = "") -> Comparison:
        return Comparison(
            f"{what}: loss over the distance, from 1 to {len(found[part]['mean'][:30])}",
            "stronger privacy towards others, depending on their distance",
            {"loss": [min(1.0, value) for value in found[part]["mean"][:30]]},
            Falls(by, slack=0.05),
            erratum=erratum,
            note=note,
        )

    comparisons = (
        *(
            Comparison(
                f"exponential graph 2¹¹: loss to neighbours, {part} (1 is local DP's)",
                "local DP towards neighbours",
                {"loss": [min(1.0, cube[part]["mean"][0])]},
                Close(1.0, relative=0.01),
            )
            for part in ("published", "true")
        ),
        falls("exponential graph 2¹¹, the formula", cube, "published", 50.0),
        falls("grid 45 × 45, the formula", mesh, "published", 50.0),
        falls("exponential graph 2¹¹, truly", cube, "true", 50.0, "002-distance"),
        falls("grid 45 × 45, truly (at least)", mesh, "true", 50.0, "002-distance"),
    )
    return Result(
        settings={"σ": 1, "weights": "Metropolis", "T": f"{cube['rounds']}, {mesh['rounds']}"},
        findings=findings,
        comparisons=comparisons,
        panels=(
            panel(
                "Exponential graph, n = 2048",
                cube,
                curve("masks κ = 100 (ours)", hidden, FigureKind.MEASURED, spread=False),
            ),
            panel("Grid 45 × 45", mesh),
        ),
    )


DISTANCE = Experiment(
    id="002-distance",
    place="Empirical illustration, gossip",
    title="privacy by distance",
    shows="Users have local DP towards their neighbours and stronger privacy towards others, depending on their distance.",
    run=run_distance,
    quick="4 s, all of it",
    full="4 s",
    errata=("002-distance", "004-theorem1"),
)


# Utility of private gossip averaging by topology: arbitrary, complete, ring, expander, at a mean loss of at most ε.
#
# As Muffliato's Table 1, Algorithm 1, with the dimension p, which multiplies the squared error of every way to do it
# alike. The slides say that central DP's utility is matched up to d/√λ; logarithms are ignored: the ratio is d·T with T
# = ⌈ln(…)/√λ⌉ rounds.


# what the slides call it: family, the printed formula, its power of n
GRAPHS = {
    "complete": ("complete", "αpΔ²/(nε)", -1.0),
    "ring": ("ring", "αpΔ²/(nε)", -1.0),
    "expander": ("hypercube", "αpΔ²/(n²ε)", -2.0),
}


def run_topologies(size: Size, work: Work) -> Result:
    found = utilities_by_size(size, work, {name: family for name, (family, *_) in GRAPHS.items()})
    (check,) = work.map(checked, [4])
    findings, rows = [], []
    comparisons: list[Comparison] = []
    for name, (_, printed, power) in GRAPHS.items():
        last = found[name][-1]
        fitted = slope(found[name], "utility_1")
        over_central = last["utility_1"] / (last["local"] / last["n"])
        factor = last["degree"] / math.sqrt(last["gap"])
        rows.append((name, printed, power, fitted, int(last["n"]), over_central, factor, over_central / factor))
        comparisons.append(power_of_n(name, found[name], 1, printed, power))
        comparisons.append(
            Comparison(
                f"{name}: utility over central DP's, over d/√λ and the logarithm of T_stop",
                "central DP's utility is matched up to d/√λ (logarithms ignored)",
                {
                    "ratio": [
                        one["utility_1"] / (one["local"] / one["n"]) / without_logarithm(one, 1) for one in found[name]
                    ]
                },
                Close(tuple(one["degree"] / math.sqrt(one["gap"]) for one in found[name]), relative=0.1),
            )
        )
        findings.append(
            Observation(
                f"{name}: power of n, with its logarithms", fits(name, power, fitted), printed=power, formula=fitted
            )
        )
        findings.append(
            Observation(
                f"{name}: utility over central DP's, and d/√λ, n = {last['n']:.0f}",
                1 <= over_central / factor <= 2 * math.log(last["n"]),
                printed="d/√λ",
                formula=factor,
                certified=over_central,
                note=f"the logarithm is a factor of {over_central / factor:.1f}",
            )
        )
    note = "the mean is no guarantee: neighbours have local DP's loss. With masks everybody has nearly the curator's"
    findings.append(worst_loss(check, "with masks κ = 100 (ours)", "mean loss ≤ ε", note))
    comparisons.append(
        Comparison(
            "hypercube 2⁸ at that noise: the theorem's error and the exact one",
            "the utility of the theorem is an upper bound",
            {"theorem": [check["bound"]], "exact": [check["utility"]]},
            Ordered(ratio=2.0),
        )
    )
    sizes = ", ".join(f"{one['n']:.0f}" for one in found["ring"])
    return Result(
        settings={"α": 2, "Δ": 1, "p": 1, "ε (mean)": 1, "n": sizes},
        findings=tuple(findings),
        comparisons=tuple(comparisons),
        panels=(utility_panel("Mean loss ε = 1", "number of users n", found, 1, "central DP"),),
        tables=(
            ResultTable(
                "Utility by topology",
                ("graph", "printed", "its power of n", "fitted", "n", "over central DP", "d/√λ", "the rest"),
                tuple(rows),
            ),
        ),
    )


TOPOLOGIES = Experiment(
    id="002-topologies",
    place="Privacy-utility trade-off of private gossip averaging",
    title="utility by topology",
    shows="Central DP's utility is matched up to d/√λ: a constant for expanders.",
    run=run_topologies,
    quick="2 s; n up to 1,024",
    full="4 s; n up to 4,096",
    errata=("004-table1-gap",),
)


# Walks: "(α, ε)-local RDP becomes (α, ε·ln²n/n)-network DP for T = Ω̃(n²)", an informal theorem without constants; and
# certified.
#
# T = n² steps, noise 40 and clipping 0.4 at every n, so that the local loss, n contributions of each user, grows with
# n. Local: the same contributions with everything seen. The informal factor applied to the local Rényi loss is
# converted to ε at δ = 10⁻⁶.


SIGMA, CLIP, STEP, DELTA = 40.0, 0.4, 0.1, 1e-6


def losses(n: int) -> dict[str, float]:
    """ε at δ: informal, certified, local."""
    walk = WalkDescent(n, n * n, sigma=SIGMA, step=STEP, clip=CLIP)
    ways = {
        "informal": account(walk, [0], method="published", version="lecture"),
        "certified": account(walk.replace(sender="hidden"), [0]),
        "known": account(walk.replace(sender="known"), [0]),  # what a real connection shows
        "local": local_dp(walk),
    }
    return {name: loss.worst_epsilon(DELTA) for name, loss in ways.items()}


def run_walks(size: Size, work: Work) -> Result:
    sizes = [50, 100, 200, 400] + ([1000, 2000] if size is Size.FULL else [])
    found = work.by_key(losses, sizes)
    # ε is proportional to the root of a small Rényi loss
    factor = {n: (one["certified"] / one["local"]) ** 2 for n, one in found.items()}
    first, last = sizes[0], sizes[-1]
    power = float(np.polyfit(np.log(sizes), np.log([factor[n] for n in sizes]), 1)[0])
    comparisons = (
        Comparison(
            "factor on the local Rényi loss: the slide's and the certified one",
            "(α, ε)-local RDP becomes (α, ε·ln²n/n)-network DP",
            {"ln²n/n": [informal_amplification(n) for n in sizes], "certified": list(factor.values())},
            Ordered(ratio=1.5),
            note="constants are left out on the slide",
        ),
        Comparison(
            "the certified factor over n, its logarithms divided out",
            "ln²n/n",
            {"certified": list(factor.values())},
            Power(tuple(map(float, sizes)), -1.0, 0.2),
            note="certified: without a logarithm",
        ),
        Comparison(
            "ε of local DP and certified network DP, T = n²",
            "accounting for the limited view allows to recover the trade-off of central DP (up to a log factor)",
            {
                "√n": [math.sqrt(n) for n in sizes],
                "local over certified": [one["local"] / one["certified"] for one in found.values()],
                "√n/ln n": [math.sqrt(n) / math.log(n) for n in sizes],
            },
            Ordered(ratio=0.8),
            note="a curator's ε is smaller than local DP's by √n",
        ),
    )
    return Result(
        settings={"T": "n²", "σ": SIGMA, "clip": CLIP, "δ": DELTA},
        comparisons=comparisons,
        findings=(
            Observation(
                f"ε at n = {last}",
                all(one["certified"] < one["informal"] for one in found.values()),
                formula=found[last]["informal"],
                certified=found[last]["certified"],
                claim=Claim.UPPER,
                note=f"local DP {found[last]['local']:.3g}; the informal statement, constants left out, is met with room to spare",
            ),
            Observation(
                f"factor on the local Rényi loss, n = {first} and {last}",
                all(value < informal_amplification(n) for n, value in factor.items()),
                printed="ln²n/n",
                formula=f"{informal_amplification(first):.3g} / {informal_amplification(last):.3g}",
                certified=f"{factor[first]:.3g} / {factor[last]:.3g}",
                claim=Claim.UPPER,
                note="the square of the ratio of the two ε",
            ),
            Observation(
                "power of n in the certified factor",
                -1.3 < power < -0.6,
                printed="−1 and logarithms",
                certified=power,
                note="a line through the logarithms of certified upper bounds",
            ),
        ),
        panels=(
            Panel(
                "Walks of T = n² steps",
                "number of users n",
                "ε at δ = 10⁻⁶",
                curves(
                    sizes,
                    found.values(),
                    ("local DP", "local", FigureKind.LOCAL),
                    ("informal, ln²n/n", "informal", FigureKind.PUBLISHED),
                    ("certified, sender hidden", "certified", FigureKind.CERTIFIED),
                    ("certified, sender known", "known", FigureKind.OTHER),
                ),
                log_x=True,
                log_y=True,
            ),
        ),
    )


WALKS = Experiment(
    id="002-walks",
    place="Theorem, random walks",
    title="amplification of walks by ln²n/n",
    shows="A walk on the complete graph is said to lose ln²n/n of what local DP loses.",
    run=run_walks,
    quick="5 s; n up to 400",
    full="1 min; n up to 2,000",
)
