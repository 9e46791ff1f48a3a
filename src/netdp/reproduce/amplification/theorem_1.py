"""Theorem 1 as a table: a token that goes K times round a ring, one noise in n − 1 hops; printed, and exact.

The exact loss is of the worst pair, the release included, with the closing noise that the paper lacks: without it some
users have none at all (last column).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.accounting import pairwise
from netdp.accounting.published.amplification import tokens as paper
from netdp.privacy import Claim, gaussian_epsilon
from netdp.protocols import RingSum

from ..experiment import Experiment, Finding, Result, Size, Table, near
from ..running import Work

EPSILON, DELTA = 0.1, 1e-6


def row(item: Any) -> dict[str, float]:
    n, rounds = item
    # the paper's (ε, δ₀) of one noise, Kδ₀ = δ′ = δ/2
    sigma = paper.local_sigma(EPSILON, DELTA / 2 / rounds)
    with_closing = pairwise(RingSum(n, rounds, sigma))
    without = pairwise(RingSum(n, rounds, sigma, closing=False))
    return {
        "sigma": sigma,
        "printed": paper.theorem1(EPSILON, rounds, DELTA / 2),
        "bound": float(gaussian_epsilon(math.sqrt(rounds) / sigma, DELTA)),
        "exact": float(np.nanmax(with_closing.epsilon(DELTA))),
        "bare": float(np.nanmax(without.epsilon(DELTA))),
        "deviation": paper.ring_sum_deviation(n, rounds, sigma) / sigma,
        "true_deviation": math.sqrt(RingSum(n, rounds, sigma, closing=False).hop_noise.astype(bool).sum()),
    }


def run(size: Size, work: Work) -> Result:
    rings = [(10, 1), (10, 3), (10, 10), (100, 3), (100, 10)] + ([(1000, 10)] if size is Size.FULL else [])
    found = work.map(row, [list(ring) for ring in rings])
    at = dict(zip(rings, found, strict=True))
    few = at[10, 3]
    return Result(
        settings={"ε of one noise": EPSILON, "δ": DELTA, "Kδ₀ = δ′": "δ/2"},
        findings=(
            Finding(
                "ε for n = 10, K = 3, closing noise added",
                few["exact"] <= few["bound"] * 1.0001 < few["printed"],
                formula=few["printed"],
                certified=few["exact"],
                claim=Claim.EXACT,
                note="√K·Δ/σ, composed as a Gaussian: a closing noise is needed at the release",
            ),
            Finding(
                "ε for n = 10, K = 3 as printed, the final token released",
                math.isinf(few["bare"]),
                formula=few["printed"],
                certified=few["bare"],
                claim=Claim.EXACT,
                note="a user after the last noise is read exactly",
            ),
            Finding(
                "standard deviation of the answer, in σ, for n = 10, K = 3",
                near(few["deviation"], math.sqrt(3)) and near(few["true_deviation"], 2.0),
                printed=few["deviation"],
                certified=few["true_deviation"],
                claim=Claim.EXACT,
                note="⌈Kn/(n−1)⌉ noises, not ⌊Kn/(n−1)⌋",
            ),
        ),
        tables=(
            Table(
                "A token on a ring",
                (
                    "n",
                    "K",
                    "σ",
                    "ε printed",
                    "ε exact, closing noise",
                    "ε exact, as printed",
                    "noises printed",
                    "noises",
                ),
                tuple(
                    (
                        n,
                        k,
                        f["sigma"],
                        f["printed"],
                        f["exact"],
                        f["bare"],
                        round(f["deviation"] ** 2),
                        round(f["true_deviation"] ** 2),
                    )
                    for (n, k), f in at.items()
                ),
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="000-theorem1",
    paper="000",
    place="Theorem 1",
    title="Sums on a ring",
    shows="K rounds of a token with one noise every n − 1 hops cost each user advanced composition over K visits.",
    run=run,
    quick="3 s",
    full="20 s",
    errata=("000-ring-release", "000-ring-noises"),
)
