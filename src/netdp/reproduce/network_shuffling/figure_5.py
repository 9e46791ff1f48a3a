"""Figure 5: ε against the number of rounds on k-regular graphs, the walk followed exactly (Theorem 5.4); n = 1,000 assumed.

The paper does not print n, ε₀, δ or which k-regular graphs. The published curve oscillates at first, as the paper says: ρ*, the
ratio of the largest to the smallest non-zero probability, is large while the walk has just reached the last users.
"""

from __future__ import annotations

from typing import Any

from netdp.accounting.heap.clones import shuffled_epsilon
from netdp.privacy import Claim

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size
from ..running import Work
from .curves import figure5

EPSILON0, DELTA = 1.0, 1e-6
ROUNDS = (1, 2, 3, 5, 8, 12, 20, 30, 50)


def curve(item: list[int]) -> dict[str, Any]:
    """[k, n]."""
    k, n = item
    (found,) = figure5((k,), n=n, rounds=ROUNDS, epsilon0=EPSILON0, delta=DELTA)
    return {"published": found.published, "certified": found.certified}


def settled(values: list[float]) -> int:
    """The first of ROUNDS from which on a curve is within 5 % of its end.

    >>> settled([9, 3, 1.04, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    3
    """
    near = [abs(value / values[-1] - 1) < 0.05 for value in values]
    return next(t for at, t in enumerate(ROUNDS) if all(near[at:]))


def run(size: Size, work: Work) -> Result:
    degrees, n = ([4, 8, 16], 1000) if size is Size.QUICK else ([4, 6, 8, 16, 32], 1000)
    found = dict(zip(degrees, work.map(curve, [[k, n] for k in degrees]), strict=True))
    uniform = shuffled_epsilon(n - 1, EPSILON0, DELTA)
    when = {part: [settled(found[k][part]) for k in degrees] for part in ("published", "certified")}
    rise = max(found[16]["published"]) / found[16]["published"][0]
    return Result(
        settings={"n": n, "k": degrees, "ε₀": EPSILON0, "δ": DELTA},
        findings=(
            Finding(
                f"rounds until ε has settled, k = {', '.join(map(str, degrees))}",
                all(times == sorted(times, reverse=True) for times in when.values())
                and when["certified"][0] > when["certified"][-1],
                printed="the larger k, the sooner",
                formula=", ".join(map(str, when["published"])),
                certified=", ".join(map(str, when["certified"])),
                claim=Claim.UPPER,
            ),
            Finding(
                "published curve at its highest over its first value, k = 16",
                rise > 2,
                printed="oscillates at first",
                formula=rise,
                note="certified curves fall monotonically",
            ),
            Finding(
                "ε in the end, k = 16",
                found[16]["published"][-1] > 10 and abs(found[16]["certified"][-1] / uniform - 1) < 0.01,
                formula=found[16]["published"][-1],
                certified=found[16]["certified"][-1],
                claim=Claim.UPPER,
                note="certified: a trusted shuffler's",
            ),
        ),
        panels=(
            Panel(
                f"All reports, random k-regular graphs, n = {n:,}",
                "rounds t",
                "ε at δ = 10⁻⁶",
                (
                    *(
                        Series(f"k = {k}: {part}", ROUNDS, found[k][part], kind)
                        for k in degrees
                        for part, kind in (("published", Kind.PUBLISHED), ("certified", Kind.CERTIFIED))
                    ),
                    Series("ε₀", [1, 50], [EPSILON0, EPSILON0], Kind.LOCAL),
                ),
                log_x=True,
                log_y=True,
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="003-fig5",
    paper="003",
    place="Figure 5",
    title="privacy against rounds on k-regular graphs",
    shows="The larger k is, the faster ε converges; at first it oscillates.",
    run=run,
    quick="5 s; k = 4, 8, 16",
    full="10 s; five values of k",
    errata=("003-symmetric",),
)
