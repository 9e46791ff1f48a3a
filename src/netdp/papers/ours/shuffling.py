"""A figure of our own: what shuffled reports reveal if their randomizer is known, on the network of document 003."""

from __future__ import annotations

import math
from typing import Any

from netdp.families.shuffle.account.mixing import mixing
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.account.shuffling import UserCurves
from netdp.families.shuffle.protocol import Shuffle
from netdp.mechanisms.base import Mechanism
from netdp.mechanisms.privunit import PrivUnit
from netdp.mechanisms.responses import RandomizedResponse, UnaryEncoding
from netdp.papers.experiment import Experiment, FigureKind, Observation, Panel, Result, ResultTable, Series, Size
from netdp.papers.network_shuffling.common import TITLES, graph_of, present
from netdp.papers.runs import Work
from netdp.privacy.guarantee import Claim

# Shuffled k-ary response is far more private than the worst ε₀-DP randomizer, for which reports are taken if nothing else is
# known. *Table:* 2,000 reports that have mixed, ε₀ = 1, δ = 10⁻⁶; the error of one share that does not occur, at the ε of any
# randomizer, by how much it falls. *Picture:* Twitch after so many hops, for everybody.

USERS, EPSILON0, DELTA = 2000, 1.0, 1e-6

VALUES = (4, 16, 128)

EXPECTED = {None: 0.1025, 4: 0.081, 16: 0.044, 128: 0.015}
"""ε of the table, as an independent computation by variation ratios had it."""

ROUNDS = (20, 30, 40, 50, 60, 80, 100, 150)

MECHANISMS: dict[str, Mechanism] = {
    "unary encoding, symmetric": UnaryEncoding(16, EPSILON0, "symmetric"),
    "unary encoding, optimised": UnaryEncoding(16, EPSILON0),
    "PrivUnit in 200 dimensions": PrivUnit(200, EPSILON0),
}


def mixed(values: int | None = None, variation: float | None = None) -> float:
    """ε of reports that have mixed."""
    return Randomizer(EPSILON0, values=values, variation=variation).heap(USERS - 1).epsilon(DELTA)


def noise_saved(values: int) -> float:
    """By how much the error of a share that does not occur falls at the ε of any randomizer: ε₀ may be larger then."""
    goal, low, high = mixed(), EPSILON0, 8.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        meets = Randomizer(middle, values=values).heap(USERS - 1).deltas(goal)[0] <= DELTA
        low, high = (middle, high) if meets else (low, middle)
    one, two = (float(RandomizedResponse(values, e).variance(0.0, USERS)) for e in (EPSILON0, low))
    return math.sqrt(one / two)


def walked(item: list[Any]) -> list[float]:
    """[data set, rounds]: ε of the worst placed user, for any randomizer and for each number of values."""
    name, rounds = item
    protocol = Shuffle(graph_of(name), rounds, EPSILON0)
    far = mixing(protocol)
    tables = [UserCurves.of(protocol.replace(values=values), far) for values in (None, *VALUES)]
    return [table.epsilon(table.group_of(1.0), DELTA) for table in tables]


def run_responses(size: Size, work: Work) -> Result:
    names, missing = present(("twitch",))
    rounds = ROUNDS[3::4] if size is Size.QUICK else ROUNDS
    found = work.by_key(walked, {t: [names[0], t] for t in rounds})
    uniform = {values: mixed(values) for values in EXPECTED}
    saved = {values: noise_saved(values) for values in VALUES}
    others = {label: mixed(variation=float(one.curve.delta(0.0))) for label, one in MECHANISMS.items()}
    last, title = found[rounds[-1]], TITLES[names[0]]
    findings = [
        Observation(
            f"ε of {USERS:,} mixed reports, " + ("any randomizer" if values is None else f"{values}-ary response"),
            abs(uniform[values] - expected) < 6e-4,
            formula=expected,
            certified=uniform[values],
            claim=Claim.UPPER,
            note="ε₀ = 1, δ = 10⁻⁶; formula: an independent computation by variation ratios",
        )
        for values, expected in EXPECTED.items()
    ]
    findings.append(
        Observation(
            f"{title}: ε of any randomizer over that of 16-ary response, after {rounds[-1]} hops",
            last[0] > 2 * last[2],
            certified=last[0] / last[2],
            note="of two upper bounds, for the worst placed user",
        )
    )
    labels = ["any randomizer", *(f"{values}-ary response" for values in VALUES)]
    return Result(
        settings={"ε₀": EPSILON0, "δ": DELTA, "users of the table": USERS},
        findings=tuple(findings),
        panels=(
            Panel(
                f"{title}, ε₀ = 1",
                "rounds t",
                "ε at δ = 10⁻⁶, certified",
                tuple(
                    Series(
                        label, rounds, [found[t][k] for t in rounds], FigureKind.OTHER if k else FigureKind.CERTIFIED
                    )
                    for k, label in enumerate(labels)
                ),
                log_y=True,
                limits=(1e-3, 1.2),
            ),
        ),
        tables=(
            ResultTable(
                f"{USERS:,} mixed reports",
                ("randomizer", "ε", "error of a share at the first ε, divided by"),
                (
                    ("any", uniform[None], ""),
                    *((f"{values}-ary response", uniform[values], saved[values]) for values in VALUES),
                    *((label, epsilon, "") for label, epsilon in others.items()),
                ),
            ),
        ),
        missing=missing,
    )


RESPONSES = Experiment(
    id="ours-responses",
    place="Known randomizers",
    title="shuffled reports that know their mechanism",
    shows="Reports of k-ary response through the network are far more private than those of the worst randomizer.",
    run=run_responses,
    quick="20 s; two numbers of hops",
    full="1 min; eight numbers of hops",
)
