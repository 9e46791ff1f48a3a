"""Errata of the replication report (seed 001) and of the code that it runs, and of the slides of A. Bellet (seed 002).

What the slides repeat from Muffliato is shown there.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from netdp.learn.tables import table
from netdp.papers.errata.base import Demonstration, erratum
from netdp.papers.errata.muffliato import gossip, powers, ring, share, true_factor
from netdp.papers.formulas import amplification as code
from netdp.papers.formulas.amplification import local_sigma
from netdp.privacy.gaussian import gaussian_epsilon, gaussian_mu

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


SLIDES_PAPER = "002"


@erratum(
    "002-subsampling",
    SLIDES_PAPER,
    "Theorem (subsampled Gaussian mechanism, informal); privacy of DP-SGD",
    printed="On a random fraction q of the data the Gaussian mechanism is (α, q²α/2σ²)-RDP; so T steps of DP-SGD are "
    "(α, αT/2n²σ²)-RDP.",
    true="It is the limit for large σ, and smaller than the truth for every σ. At α = 2 the divergence of (1 − q)N(0, σ²) + "
    "qN(1, σ²) from N(0, σ²) is exactly ln(1 + q²(e^{1/σ²} − 1)). The slide calls the theorem informal; a constant factor is "
    "then needed.",
)
def subsampling() -> Demonstration:
    lines, shown = [], True
    for q, sigma in ((0.1, 4.0), (0.1, 1.0), (0.01, 0.5)):
        exact = math.log1p(q * q * math.expm1(1 / sigma**2))
        printed = q * q * 2 / (2 * sigma**2)
        lines.append((f"q = {q:g}, σ = {sigma:g}, α = 2", f"printed {printed:.3g}, exact {exact:.3g}"))
        shown &= exact > printed
    return Demonstration(tuple(lines), shown)


@erratum(
    "002-distance",
    SLIDES_PAPER,
    "Theorem (private gossip averaging), and the empirical illustration",
    printed="Privacy guarantees improve with the distance of two nodes: local DP towards direct neighbours, stronger privacy "
    "towards others.",
    true="The formula f(u, v) does; the loss does not. The messages of later rounds share the noise of the earlier ones, and on a "
    "ring of nine the observer learns everybody's noisy value exactly, one more on each side in every round: local DP's loss "
    "(factor 1) at every distance. (See 004-theorem1; fresh noise before every send gives what the slide says.)",
)
def distance() -> Demonstration:
    W = powers(gossip(ring(9)), 4)
    messages = [W[t][w] for t in range(4) for w in (1, 8)]
    formula = [sum(share(message, u) for message in messages) for u in (1, 2, 3, 4)]
    exact = [true_factor(messages, u, known={0}) for u in (1, 2, 3, 4)]
    return Demonstration(
        (
            ("ring of 9, four rounds, distance 1, 2, 3, 4: formula", ", ".join(f"{float(f):.3f}" for f in formula)),
            ("the same: exact", ", ".join(map(str, exact))),
        ),
        all(one == 1 for one in exact) and formula[-1] < 1,
    )
