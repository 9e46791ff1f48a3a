"""Finite precision: an average of noisy numbers on a grid tells more than the analysis in real numbers allows.

Four hidden parties hold whole numbers of grid steps with discrete Gaussian noise y_i, and somebody sees y₁/5 + y₂/7 + y₃/11 +
y₄/13 once, in exact arithmetic. In real numbers the loss about party 4 is factor 13⁻²/(5⁻² + 7⁻² + 11⁻² + 13⁻²) = .079 of
local DP's. But multiplied by 5005 what is seen is a whole number, and its residue modulo 13 is that of 385·y₄: where the noise
is no wider than 13 steps, y₄ itself shows. The law of what is seen is enumerated here, so δ is exact up to rounding and tails
beyond 9 deviations (10⁻¹⁸). After T rounds of gossip the denominators are T-th powers: no grid is fine enough by itself.

Proof of what helps: docs/guarantees.md#masked-sum (masks modulo q), or fresh noise before every send.
"""

from __future__ import annotations

import math

import numpy as np

from netdp.mechanisms.discrete_gaussian import shift_delta
from netdp.numerics.arrays import FloatArray
from netdp.privacy import Claim, gaussian_delta

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, Table, near
from ..running import Work

PRIMES = (5, 7, 11, 13)
EPSILON = 0.5
FACTOR = (1 / PRIMES[-1]) ** 2 / sum(1 / p**2 for p in PRIMES)
# σ in grid steps → δ on the project's page on the mathematics, and its digits
PRINTED = {2: (0.053, 3), 4: (1.5e-3, 4), 8: (8.64e-6, 8), 16: (8.6231e-6, 10)}


def real_delta() -> float:
    """δ(0.5) in real numbers, values Δ = σ/2 apart.

    >>> f"{real_delta():.4e}"
    '8.6231e-06'
    """
    return float(gaussian_delta(math.sqrt(FACTOR) / 2, EPSILON))


def laws(steps: int) -> tuple[FloatArray, FloatArray, int]:
    """The law of 5005·(y₁/5 + y₂/7 + y₃/11 + y₄/13) for the two values of party 4, σ = `steps`, and where 0 stands."""
    weights = [math.prod(PRIMES) // p for p in PRIMES]
    reach = 9 * steps
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2.0 * steps**2))
    one /= one.sum()
    law = np.ones(1)
    for weight in weights:
        grown = np.zeros(len(law) + 2 * reach * weight)
        for place, p in enumerate(one.tolist()):
            grown[place * weight : place * weight + len(law)] += p * law
        law = grown
    shift = weights[3] * (steps // 2)
    return np.append(np.zeros(shift), law), np.append(law, np.zeros(shift)), len(law) // 2


def delta_of_an_average(steps: int) -> float:
    """δ(0.5) about party 4 from y₁/5 + y₂/7 + y₃/11 + y₄/13 in exact arithmetic, values Δ = σ/2 apart, σ = `steps`.

    >>> f"{delta_of_an_average(2):.3f}"
    '0.053'
    """
    after, before, _ = laws(steps)
    return float(np.maximum(after - math.exp(EPSILON) * before, 0.0).sum())


def told(steps: int, points: int) -> tuple[FloatArray, FloatArray]:
    """What is seen, in units of the values, and its privacy loss, at points drawn from its law by quantiles."""
    after, before, middle = laws(steps)
    places = np.unique(np.searchsorted(np.cumsum(after), np.linspace(0.01, 0.99, points)))
    places = places[(after[places] > 0) & (before[places] > 0)]
    return (places - middle) / math.prod(PRIMES) / steps, np.log(after[places] / before[places])


def run(size: Size, work: Work) -> Result:
    grids = [2, 4, 6, 8, 16] if size is Size.QUICK else [2, 4, 6, 8, 10, 12, 14, 16, 20, 24]
    found = dict(zip(grids, work.map(delta_of_an_average, grids), strict=True))
    real = real_delta()
    local = {steps: float(shift_delta(steps**2, steps // 2, [EPSILON])[0]) for steps in grids}
    findings = [
        Finding(
            f"δ at ε = 0.5 for σ = {steps} grid steps",
            round(found[steps], digits) == printed and found[steps] > real * (1.5 if steps < 8 else 1 - 1e-8),
            formula=real,
            certified=found[steps],
            claim=Claim.EXACT,
            note=f"maths page: {printed:g}"
            + ("; as bad as local DP: the residue modulo 13 is read" if steps == 2 else ""),
        )
        for steps, (printed, digits) in PRINTED.items()
    ]
    findings.append(
        Finding(
            "local DP on the same grid, σ = 2",
            near(found[2], local[2], 0.03),
            certified=local[2],
            claim=Claim.EXACT,
            note="nothing is left of the amplification",
        )
    )
    coarse, fine = told(2, 700), told(16 if size is Size.FULL else 8, 60)
    slope = math.sqrt(FACTOR) / 2  # μ: the loss is a line in what is seen
    ends = np.array([coarse[0].min(), coarse[0].max()])
    spread = math.sqrt(sum(1 / p**2 for p in PRIMES))
    line = slope / spread * (ends - 0.25 / 13)
    panels = (
        Panel(
            "Seen once: y₁/5 + y₂/7 + y₃/11 + y₄/13",
            "noise σ in grid steps",
            "δ at ε = 0.5 about party 4",
            (
                Series("truth on the grid", grids, [found[g] for g in grids], Kind.CERTIFIED),
                Series("analysis in real numbers", grids, [real] * len(grids), Kind.PUBLISHED),
                Series("local DP", grids, [local[g] for g in grids], Kind.LOCAL),
            ),
            log_y=True,
            limits=(3e-6, 0.2),
        ),
        Panel(
            "What one sight tells",
            "what is seen, in σ",
            "privacy loss about party 4",
            (
                Series("σ = 2 grid steps", coarse[0], coarse[1], Kind.CERTIFIED, points=True),
                Series("analysis in real numbers", ends, line, Kind.PUBLISHED),
                Series("σ = 8 grid steps", fine[0], fine[1], Kind.MEASURED, points=True),
            ),
        ),
    )
    return Result(
        settings={"Δ": "σ/2", "ε": EPSILON, "factor in real numbers": FACTOR},
        findings=tuple(findings),
        panels=panels,
        tables=(
            Table(
                "δ at ε = 0.5",
                ("σ in grid steps", "truth", "real numbers", "local DP"),
                tuple((g, found[g], real, local[g]) for g in grids),
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="ours-precision",
    paper="ours",
    place="Finite precision",
    title="averages on a grid tell more than real numbers do",
    shows="On a coarse grid the amplified loss of an average is false: the residues show every number.",
    run=run,
    quick="2 s",
    full="10 s; more and finer grids",
)
