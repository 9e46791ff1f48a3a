"""Gossip descent: a bound on what is learned over all iterations, beside the exact loss of a linear closed loop.

Six iterations of noisy gradient steps on the hypercube 2⁶, K = 1 or 3 rounds of gossip each, in units of Δ²/σ², where local
DP has 6; then masks, on the hypercube 2⁸ with K = 8. Numbers of the project's page on the mathematics, section 5.
The closed loop: local steps θ ↦ c_u·θ with contractions c_u uniform in [½, 1], so that the whole run is linear and Gaussian
and its loss is exact (section 1); the page's contractions are not known, so digits agree only nearly.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.accounting.gossip.iteration import loss_energy
from netdp.graphs import hypercube
from netdp.graphs.mixing import metropolis
from netdp.numerics.arrays import FloatArray
from netdp.privacy import Claim
from netdp.protocols import GossipDescent

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, Table, near
from ..running import Work

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


def run(size: Size, work: Work) -> Result:
    hops = [1, 2, 3, 4]
    targets = [2**d - 1 for d in range(1, 7)]
    bounds = dict(zip((1, 3), work.map(bound, [[6, 1, 0.0], [6, 3, 0.0]]), strict=True))
    masked = dict(zip(MASKED, work.map(bound, [[8, 8, kappa] for kappa in MASKED]), strict=True))
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
        Finding(
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
        Finding(
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
        Finding(
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
            Finding(
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
                Series("local DP", d6, [6.0] * 6, Kind.LOCAL),
                Series("bound, K = 3", d6, bounds[3], Kind.MEASURED),
                Series("bound, K = 1", d6, bounds[1], Kind.CERTIFIED),
                Series("exact loop, K = 1", d6, middle, Kind.CENTRAL, exact.min(axis=0), exact.max(axis=0)),
                Series("Theorem 6 (0 beyond 1)", d6, [v if v > 0 else np.nan for v in published], Kind.PUBLISHED),
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
                Series("local DP", d8, [6.0] * 8, Kind.LOCAL),
                *(Series(f"bound, κ = {kappa:g}", d8, masked[kappa], Kind.CERTIFIED) for kappa in MASKED),
                Series("trusted curator", d8, [6 / 255] * 8, Kind.CENTRAL),
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
            Table(
                "Hypercube 2⁶, loss in Δ²/σ²",
                ("distance", "bound, K = 1", "exact loop", "bound, K = 3", "Theorem 6"),
                rows,
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="ours-descent",
    paper="ours",
    place="Gossip descent",
    title="learning by gossip: certified by hidden-state composition",
    shows="What is learned about a party over all iterations, gradients that react to hidden states included.",
    run=run,
    quick="2 s; 5 draws of contractions",
    full="3 s; 50 draws",
)
