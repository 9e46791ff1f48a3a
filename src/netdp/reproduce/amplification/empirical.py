"""What Figures 2b, 2c and 2d share: the authors' rule on drawn walks for every n and ε₀, beside the certified loss.

Settings from the authors' code: n ∈ {5, 10, 20, 50, 100, 200, 400}, T = 100n, ten walks, δ = 10⁻⁷, ε₀ ∈ {0.1, 0.4}. The
rule's number is for the walk that happened and is no guarantee; the certified one holds for every user over the draw of the
walk, with hidden senders, and is at δ = 10⁻⁷ as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from netdp.accounting.published.amplification.tokens import advanced_composition
from netdp.numerics.arrays import FloatArray
from netdp.privacy import Claim

from ..experiment import Finding, Kind, Panel, Series, Size
from ..running import Work
from .walk_losses import rule_summary

EPSILONS = (0.1, 0.4)
DELTA = 1e-7
SIZES = (5, 10, 20, 50, 100, 200, 400)


def sizes_and_runs(size: Size) -> tuple[tuple[int, ...], int]:
    """All of them, ten walks each; quickly up to 200 users and three walks."""
    return (SIZES, 10) if size is Size.FULL else (SIZES[:-1], 3)


def by_rule(n: int, epsilon0: float, runs: int, cycles: Callable[[float, int], FloatArray]) -> dict[str, float]:
    """The rule's losses for one n and ε₀; the seed belongs to the pair, so any order of work gives the same walks."""
    return rule_summary(n, cycles(epsilon0, 100 * n), runs, seed=round(1000 * epsilon0) * 10_000 + n)


def composed_locally(epsilon0: float) -> float:
    """A hundred contributions by advanced composition: the paper's local DP, several times what is true.

    >>> round(composed_locally(0.1), 1)
    6.7
    """
    return advanced_composition(epsilon0, 100, DELTA)


def panels(
    task: str, sizes: Sequence[int], found: Sequence[dict[str, Any]], local: Callable[[float], float], proved: str
) -> tuple[Panel, ...]:
    """One panel per ε₀. `found` holds, for every ε₀ and n in turn: mean, best, worst, certified."""
    out = []
    for place, epsilon0 in enumerate(EPSILONS):
        mine = found[place * len(sizes) : (place + 1) * len(sizes)]
        series = (
            Series(
                "authors' rule, mean",
                sizes,
                [part["mean"] for part in mine],
                Kind.PUBLISHED,
                [part["best"] for part in mine],
                [part["worst"] for part in mine],
            ),
            Series(proved, sizes, [part["certified"] for part in mine], Kind.CERTIFIED),
            Series(
                "local DP as the paper composes it", sizes, [composed_locally(epsilon0)] * len(sizes), Kind.PUBLISHED
            ),
            Series("local DP, exact", sizes, [local(epsilon0)] * len(sizes), Kind.LOCAL),
        )
        out.append(
            Panel(
                f"{task}, ε₀ = {epsilon0}",
                "number of users n",
                "ε at δ = 10⁻⁷",
                series,
                log_x=True,
                log_y=True,
                band="its best to its worst pair",
            )
        )
    return tuple(out)


def work_items(size: Size, work: Work, function: Callable[[Any], Any]) -> tuple[tuple[int, ...], list[Any]]:
    """`function` of every (n, ε₀, runs)."""
    sizes, runs = sizes_and_runs(size)
    return sizes, work.map(function, [[n, epsilon0, runs] for epsilon0 in EPSILONS for n in sizes])


def largest_findings(
    sizes: Sequence[int], found: Sequence[dict[str, Any]], local: Callable[[float], float], what: str
) -> tuple[Finding, ...]:
    """At the largest n, for every ε₀: the certified loss is below the rule's mean, and that below local DP's exact one."""
    out = []
    for place, epsilon0 in enumerate(EPSILONS):
        last = found[(place + 1) * len(sizes) - 1]
        out.append(
            Finding(
                f"mean ε over all pairs, n = {sizes[-1]}, ε₀ = {epsilon0}",
                last["certified"] < last["mean"] < local(epsilon0),
                printed="a curve without numbers",
                formula=last["mean"],
                certified=last["certified"],
                claim=Claim.UPPER,
                note=f"local DP of 100 {what}: {local(epsilon0):.3g}",
            )
        )
    return tuple(out)
