"""Table 1: rates of amplification. Printed for network shuffling: e^{1.5ε₀}/√n; Theorem 5.3, to which it refers, has e^{3ε₀}/√n.

A rate in ε₀ is measured as the growth of ln ε per unit of ε₀, at an n so large that ε is proportional to 1/√n. Certified: once
the walk has mixed A_all is a post-processing of a trusted shuffler's heap, so it has the rate of the best shuffling bounds,
e^{.5ε₀}/√n, whatever the graph.
"""

from __future__ import annotations

import math

from netdp.accounting.heap.clones import shuffled_epsilon
from netdp.accounting.published import network_shuffling as paper
from netdp.accounting.shuffle.baselines import trusted_sampler
from netdp.graphs import regular
from netdp.privacy import Claim
from netdp.protocols import Shuffle

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, Table, near
from ..running import Work

DELTA, LARGE = 1e-6, 10**6
EXPONENTS = {
    "no amplification": 0.0,
    "uniform subsampling": 1.0,
    "uniform shuffling": 3.0,
    "uniform shuffling (clones)": 0.5,
    "network shuffling": 1.5,
}


def theorem(epsilon0: float, n: float = LARGE) -> float:
    """Theorem 5.3 for a regular graph, mixed."""
    return paper.epsilon_all(epsilon0, int(n), 1 / n, DELTA)


def growth(low: float, high: float) -> float:
    """Of Theorem 5.3: ln ε per unit of ε₀, at n = 10²⁴, where its square is nothing."""
    return math.log(theorem(high, 1e24) / theorem(low, 1e24)) / (high - low)


def certified_growth(low: float, high: float) -> float:
    """The same of the certified ε."""
    found = [shuffled_epsilon(LARGE - 1, e, DELTA) for e in (low, high)]
    return math.log(found[1] / found[0]) / (high - low)


def run(size: Size, work: Work) -> Result:
    epsilon0s = [0.25 * k for k in range(1, 21)]
    printed = {name: [paper.table1(e, LARGE)[name] for e in epsilon0s] for name in EXPONENTS}
    proved = [shuffled_epsilon(LARGE - 1, e, DELTA) for e in epsilon0s]
    rise, fall = growth(4.0, 5.0), certified_growth(4.0, 5.0)
    doubled = theorem(1.0, 4e24) / theorem(1.0, 1e24)
    quarter = shuffled_epsilon(4 * LARGE, 1.0, DELTA) / shuffled_epsilon(LARGE, 1.0, DELTA)
    sampled = trusted_sampler(Shuffle(regular(10_000, 3, 0), 3, 1.0)).worst_epsilon(0.0)
    rows = []
    for name, exponent in EXPONENTS.items():
        ours = {"network shuffling": proved[3], "uniform shuffling (clones)": proved[3], "no amplification": 1.0}
        rows.append((name, "ε₀" if not exponent else f"e^{{{exponent:g}ε₀}}/√n", printed[name][3], ours.get(name, "")))
    return Result(
        settings={"n": LARGE, "δ": DELTA, "ε₀": "0.25 … 5"},
        findings=(
            Finding(
                "growth of ln ε per unit of ε₀, from 4 to 5",
                near(rise, 3.0, 0.01) and 0.5 < fall < 0.6,
                printed=EXPONENTS["network shuffling"],
                formula=rise,
                certified=fall,
                note="Theorem 5.3 has (e^{ε₀} − 1)e^{2ε₀}; true: that of the certified upper bound, a trusted shuffler's",
            ),
            Finding(
                "ε at ε₀ = 1, n = 10⁶, walk mixed",
                theorem(1.0) > 50 * proved[3],
                printed=printed["network shuffling"][3],
                formula=theorem(1.0),
                certified=proved[3],
                claim=Claim.UPPER,
                note="the printed rate leaves logarithms and constants out",
            ),
            Finding(
                "ε when n is four times as large",
                near(doubled, 0.5, 0.001) and near(quarter, 0.5, 0.1),
                printed=0.5,
                formula=doubled,
                certified=quarter,
                note="1/√n, as printed; the certified bound falls a little more, since δ is fixed",
            ),
            Finding(
                "a trusted sampler of √n reports, ε₀ = 1, n = 10⁴",
                near(sampled, math.log1p(math.expm1(1.0) / 100), 1e-3),
                printed=paper.table1(1.0, 10_000)["uniform subsampling"],
                certified=sampled,
                claim=Claim.EXACT,
                note="(e^{ε₀} − 1)/√n",
            ),
        ),
        panels=(
            Panel(
                "n = 10⁶, walk mixed",
                "ε₀",
                "ε at δ = 10⁻⁶",
                (
                    Series("ε₀", epsilon0s, epsilon0s, Kind.LOCAL),
                    Series("rate in Table 1", epsilon0s, printed["network shuffling"], Kind.PUBLISHED),
                    Series("Theorem 5.3", epsilon0s, [theorem(e) for e in epsilon0s], Kind.PUBLISHED),
                    Series("certified = trusted shuffler", epsilon0s, proved, Kind.CERTIFIED),
                ),
                log_y=True,
                limits=(1e-4, 1e4),
            ),
        ),
        tables=(
            Table(
                "ε₀ = 1, n = 10⁶", ("mechanism", "printed rate", "its value", "certified ε at δ = 10⁻⁶"), tuple(rows)
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="003-table1",
    paper="003",
    place="Table 1",
    title="rates of amplification",
    shows="Network shuffling is said to amplify like e^{1.5ε₀}/√n, between uniform shuffling and its analysis by clones.",
    run=run,
    quick="1 s, all of it",
    full="1 s",
    errata=("003-table1-rate",),
)
