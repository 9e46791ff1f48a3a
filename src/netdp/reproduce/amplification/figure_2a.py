"""Figure 2a: Theorem 3's bound against its analogue for local DP, T = 100n, ε₀ = 0.1; and the certified loss.

The paper prints curves without a table. Its text has one number: the bound "improves upon local DP as soon as n > 100".
Computed as printed they cross at n = 37. δ′ = δ̂ = 10⁻⁶ (the text leaves them out). The noise of the certified curve is what
the paper calls ε₀-LDP at δ₀ = 10⁻⁸: σ = √(2 ln(1.25/δ₀))/ε₀ = 61.06.
"""

from __future__ import annotations

import numpy as np

from netdp.accounting import account
from netdp.accounting.published.amplification import tokens as paper
from netdp.privacy import Claim
from netdp.protocols import WalkSum

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, near
from ..running import Work

EPSILON0, DELTA, DELTA0, VISITS = 0.1, 1e-6, 1e-8, 100


def crossing() -> int:
    """The least n from which on Theorem 3 is below local DP's analogue.

    >>> crossing()
    37
    """
    n = 2
    while paper.theorem3_2021(n, VISITS * n, EPSILON0, DELTA, DELTA) >= paper.local_analogue(
        n, VISITS * n, EPSILON0, DELTA, DELTA
    ):
        n += 1
    return n


def certified(n: int) -> dict[str, float]:
    """ε at δ of the worst user, of a walk whose senders are hidden, and of one whose senders show."""
    sigma = paper.local_sigma(EPSILON0, DELTA0)
    out = {}
    for sender in ("hidden", "known"):
        loss = account(WalkSum(n, VISITS * n, sigma, sender=sender), [0])
        out[sender] = float(np.nanmax(loss.epsilon(DELTA)))
    return out


def run(size: Size, work: Work) -> Result:
    sizes = np.unique(np.geomspace(10, 10_000, 40).astype(int))
    args = [(n, VISITS * n, EPSILON0, DELTA) for n in sizes.tolist()]
    network = [paper.theorem3_2021(*a, DELTA) for a in args]
    local = [paper.local_analogue(*a, DELTA) for a in args]
    network_fixed = [paper.theorem3_2021(*a, None, visits=VISITS) for a in args]
    local_fixed = [paper.local_analogue(*a, None, visits=VISITS) for a in args]
    few = [10, 30, 100, 300, 1000] if size is Size.QUICK else [10, 20, 50, 100, 200, 500, 1000, 2000]
    true = work.map(certified, few)
    cross, at = crossing(), few.index(1000)
    curves = (
        Series("Theorem 3", sizes, network, Kind.PUBLISHED),
        Series("local DP by the same Chernoff bound", sizes, local, Kind.LOCAL),
        Series("Theorem 3, 100 visits each", sizes, network_fixed, Kind.PUBLISHED),
        Series("local DP, 100 visits each", sizes, local_fixed, Kind.LOCAL),
        Series("certified, sender hidden", few, [t["hidden"] for t in true], Kind.CERTIFIED),
        Series("certified, sender known", few, [t["known"] for t in true]),
    )
    return Result(
        settings={"T": "100 n", "ε₀": EPSILON0, "δ′": DELTA, "δ̂": DELTA, "σ": paper.local_sigma(EPSILON0, DELTA0)},
        findings=(
            Finding(
                "n from which Theorem 3 is below local DP",
                cross == 37,
                printed="n > 100",
                formula=cross,
                note="the text's number is not where its curves cross",
            ),
            Finding(
                "ε at n = 1000",
                near(network[int(np.argmin(abs(sizes - 1000)))], 12.4, 0.03) and 0.0165 < true[at]["hidden"] < 0.0169,
                formula=paper.theorem3_2021(1000, 100_000, EPSILON0, DELTA, DELTA),
                certified=true[at]["hidden"],
                claim=Claim.UPPER,
                note="hidden senders; Theorem 3 is some 700 times too large",
            ),
            Finding(
                "ε at n = 1000, senders known",
                true[at]["hidden"] < true[at]["known"] < 0.0185,
                certified=true[at]["known"],
                claim=Claim.UPPER,
                note="what a real connection shows",
            ),
        ),
        panels=(
            Panel(
                "What user v learns, T = 100n",
                "number of users n",
                "ε (certified at δ = 10⁻⁶)",
                curves,
                log_x=True,
                log_y=True,
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="000-fig2a",
    paper="000",
    place="Figure 2a",
    title="Theorem 3 against local DP",
    shows="The bound of Theorem 3 falls with n and is below local DP's from some n on.",
    run=run,
    quick="5 s",
    full="1 min",
    errata=("000-crossing",),
)
