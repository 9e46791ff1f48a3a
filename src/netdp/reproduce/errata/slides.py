"""Errata of the slides of A. Bellet (seed 002); what they repeat from Muffliato is shown there."""

from __future__ import annotations

import math

from .base import Demonstration, erratum
from .muffliato import gossip, powers, ring, share, true_factor

PAPER = "002"


@erratum(
    "002-subsampling",
    PAPER,
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
    PAPER,
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
