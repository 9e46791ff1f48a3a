"""Figure 8: ε against ε₀ for n = 10⁴ and 10⁶, Γ = 1 and 10, both protocols, positions stationary (δ = 10⁻⁶ assumed).

Certified there is one curve for each n: once positions are stationary they are independent of the origins, and Γ is irrelevant.
"""

from __future__ import annotations

import numpy as np

from netdp.accounting.heap.clones import shuffled_epsilon
from netdp.accounting.published import network_shuffling as paper
from netdp.privacy import Claim

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size
from ..running import Work

DELTA = 1e-6
EPSILON0S = np.linspace(0.2, 2.0, 10).round(3).tolist()


def published(n: int, gamma: float, reporting: str) -> list[float]:
    if reporting == "single":
        return [paper.epsilon_single(e, gamma / n, DELTA) for e in EPSILON0S]
    return [paper.epsilon_all(e, n, gamma / n, DELTA) for e in EPSILON0S]


def run(size: Size, work: Work) -> Result:
    panels, findings = [], []
    for n in (10_000, 1_000_000):
        proved = [shuffled_epsilon(n - 1, e, DELTA) for e in EPSILON0S]
        lines = {(g, way): published(n, g, way) for g in (1, 10) for way in ("all", "single")}
        at = EPSILON0S.index(1.0)
        findings += [
            Finding(
                f"n = {n:,}: ε at ε₀ = 1, Γ = 1 and 10, all",
                all(value > proved[at] for value in (line[at] for line in lines.values())),
                formula=f"{lines[1, 'all'][at]:.3g} / {lines[10, 'all'][at]:.3g}",
                certified=proved[at],
                claim=Claim.UPPER,
                note="certified: Γ does not matter",
            ),
            Finding(
                f"n = {n:,}: largest ε₀ at which the published ε of all amplifies, Γ = 10",
                all(p < e for p, e in zip(proved, EPSILON0S, strict=True)),
                formula=max((e for e, p in zip(EPSILON0S, lines[10, "all"], strict=True) if p < e), default=0.0),
                certified="every one",
                claim=Claim.UPPER,
                note="certified, shuffling always amplifies",
            ),
        ]
        panels.append(
            Panel(
                f"n = {n:,}",
                "ε₀",
                "ε at δ = 10⁻⁶",
                (
                    *(Series(f"Γ = {g}, {way}", EPSILON0S, line, Kind.PUBLISHED) for (g, way), line in lines.items()),
                    Series("certified", EPSILON0S, proved, Kind.CERTIFIED),
                    Series("ε₀", EPSILON0S, EPSILON0S, Kind.LOCAL),
                ),
                log_y=True,
            )
        )
    return Result(settings={"δ": DELTA, "positions": "stationary"}, findings=tuple(findings), panels=tuple(panels))


EXPERIMENT = Experiment(
    id="003-fig8",
    paper="003",
    place="Figure 8",
    title="dependence on Γ, n and the protocol",
    shows="Less irregular and larger networks are said to amplify more.",
    run=run,
    quick="1 s, all of it",
    full="1 s",
)
