"""Errata of the replication report (seed 001), and of the code that it runs."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from netdp.accounting.published.amplification import descent as code
from netdp.accounting.published.amplification.tokens import local_sigma
from netdp.learn import table
from netdp.privacy import gaussian_epsilon, gaussian_mu

from .base import Demonstration, erratum

PAPER = "001"


@erratum(
    "001-sigma-schedule",
    PAPER,
    "Section 5, noise level",
    printed="For network DP-SGD the noise starts at 1.97 and gradually decreases over time to 1.22, a key feature of network DP.",
    true="The numbers are the trace of the program's search for one σ, which is then used for all steps: the first candidate is "
    "1.97 and the search ends near 1.22. Nothing decreases over time.",
)
def sigma_schedule() -> Demonstration:
    # the search starts with half of ε for each part: the first σ = σ₀·1.15ʲ that its Rényi bound accepts
    epsilon, delta, n, steps, clip = 10.0, 1e-6, 2000, 20_000, 0.4
    K = code.code_contributions(n, steps)
    spotted = math.ceil(code.spotted_contributions(n, K, delta))
    first = max(
        local_sigma(0.5 * epsilon / spotted, delta / K, clip), code._rest_sigma(0.5 * epsilon, delta, n, K, clip)
    )
    found = code.network_calibration(epsilon, delta, n, steps, clip)
    return Demonstration(
        (("first candidate, half of ε each", f"{first:.2f}"), ("σ that the search ends with", f"{found.sigma:.2f}")),
        first > found.sigma and abs(found.sigma - 1.22) < 0.02,
    )


@erratum(
    "001-sensitivity",
    PAPER,
    "Section 5, L = 0.4 (the code)",
    printed="σ for ε = 10 is 1.22, computed from gradients that change by L when a user's data change.",
    true="Two gradients clipped to L differ by up to 2L. By the theorem that σ is computed from, with the sensitivity 2L that it "
    "needs, the user loses more than 10; for local DP the same.",
)
def sensitivity() -> Demonstration:
    delta, clip = 1e-6, 0.4
    sigma = code.network_calibration(10.0, delta, 2000, 20_000, clip).sigma
    order = code.largest_order(sigma, clip)
    by_theorem = code.iteration_epsilon(2000, 12, sigma, clip, delta)
    spotted = float(gaussian_epsilon(2 * clip / sigma, delta))
    return Demonstration(
        (
            ("largest order that σ ≥ L√(2α(α−1)) allows", f"{order:.2f}"),
            ("ε of the contributions that are not spotted, by the theorem", f"{by_theorem:.1f}"),
            ("ε of one spotted contribution, exactly", f"{spotted:.1f}"),
            ("promised for both together", "10"),
        ),
        by_theorem + spotted > 10.5,
    )


@erratum(
    "001-spotted",
    PAPER,
    "Section 5, spotted contributions (the code)",
    printed="At most one of a user's 12 contributions is seen directly, but for a probability that δ covers.",
    true="Two or more are seen with probability 6.6·10⁻⁵, 66 times δ; and a fifth of all users reach the cap of 12.",
)
def spotted() -> Demonstration:
    two = float(stats.binom.sf(1, 12, 2 / 2000))
    capped = float(stats.binom.sf(12, 20_000, 1 / 2000))
    return Demonstration(
        (("two or more spotted", f"{two:.1e}"), ("δ", "1.0e-06"), ("users that reach the cap", f"{capped:.2f}")),
        two > 1e-6,
    )


@erratum(
    "001-label",
    PAPER,
    "Section 5, the target of the housing table",
    printed="The accuracies near .96 are for a target that is positive when it is below its mean (taken for the price).",
    true="With price as the target linear models end near .845 without any privacy; the accuracies are those of the column that "
    "comes first in the file, longitude below its mean.",
)
def label() -> Demonstration:
    shares = []
    for name in ("longitude", "price"):
        rows = table("housing", name)
        model = np.linalg.lstsq(rows.X, rows.y, rcond=None)[0]
        shares.append(float(np.mean(np.sign(rows.X @ model) == rows.y)))
    return Demonstration(
        (("least squares on all rows, longitude: right", f"{shares[0]:.2f}"), ("price: right", f"{shares[1]:.2f}")),
        shares[0] > 0.94 and shares[1] < 0.85,
    )


@erratum(
    "001-central-noise",
    PAPER,
    "Section 6.2, Figure 7",
    printed="Central DP loses much accuracy when users fall from 2,000 to 200, network DP surprisingly little.",
    true="The curator's noise is computed by a formula that grows as 1/n at equal T and is several times what a curator needs, so "
    "that with 200 users it even exceeds local DP's; the exact noise of a curator is never larger than anybody else's.",
)
def central_noise() -> Demonstration:
    lines, worse = [], False
    for n in (2000, 200):
        central = code.central_calibration(10.0, 1e-6, n, 20_000, 0.4)
        # a curator that hides which user contributes needs no more than local DP: K contributions of 2L, exactly
        K = code.code_contributions(n, 20_000)
        local = math.sqrt(K) * 0.8 / float(gaussian_mu(10.0, 1e-6))
        lines.append((f"n = {n}", f"central as computed {central:.2f}, local DP exactly {local:.2f}"))
        worse |= central > local
    return Demonstration(tuple(lines), worse)


@erratum(
    "001-dimension",
    PAPER,
    "Section 6.1",
    printed="With higher-dimensional data (cardio) local DP worsens and network DP does not, a sign of scalability.",
    true="Cardio has more rows, 70,000 against 20,640, not more dimensions: 11 columns; spambase has 57 and 4,601 rows.",
)
def dimension() -> Demonstration:
    sizes = {"housing": (20_640, 8), "spambase": (4601, 57), "cardio": (70_000, 11)}
    return Demonstration(
        tuple((name, f"{rows} rows, {columns} columns") for name, (rows, columns) in sizes.items()), True
    )
