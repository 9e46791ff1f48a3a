"""Figures 2 to 4: accuracy over the iterations, three ways of private SGD, published and certified noise.

One function for three figures: they differ in the table and in ε.
"""

from __future__ import annotations

from typing import Any

from netdp.privacy import Claim

from ..experiment import Finding, Panel, Result, Size, Table
from ..running import Work
from .walk_learning import METHODS, STEPS, USERS, curve, measured

CHOSEN = tuple(name for name in METHODS if name != "network, certified, sender known")


def compare(
    size: Size, work: Work, settings: list[tuple[str, float]], expected: dict[tuple[str, float, str], float]
) -> Result:
    """Every method for every (table, ε). `expected`: what the reference gives; ours may be two deviations of a run from it."""
    trials = 10 if size is Size.FULL else 4
    items = [
        {"table": name, "epsilon": epsilon, "method": way, "trials": trials, "watch": STEPS // 40}
        for name, epsilon in settings
        for way in CHOSEN
    ]
    found = dict(zip([(i["table"], i["epsilon"], i["method"]) for i in items], work.map(measured, items), strict=True))
    panels, rows = [], []
    for name, epsilon in settings:
        mine = [item for item in items if (item["table"], item["epsilon"]) == (name, epsilon)]
        panels.append(
            Panel(
                f"{name}, ε = {epsilon:g}",
                "iteration",
                "accuracy on the test rows",
                tuple(curve(item, found[name, epsilon, item["method"]]) for item in mine),
            )
        )
        rows += [(name, epsilon, way, *_numbers(found[name, epsilon, way])) for way in CHOSEN]
    findings = [
        Finding(
            f"{name}, ε = {epsilon:g}, {way}",
            abs(found[name, epsilon, way]["accuracy"] - accuracy) <= 0.015 + 2 * found[name, epsilon, way]["spread"],
            printed=accuracy,
            formula=found[name, epsilon, way]["accuracy"],
            note=f"accuracy with σ = {found[name, epsilon, way]['sigma']:.3g}, the published calibration; one run varies by "
            f"{found[name, epsilon, way]['spread']:.3f}, and the reference's step is not printed",
        )
        for (name, epsilon, way), accuracy in expected.items()
    ]
    for name, epsilon in settings:
        ours, theirs, local = (
            found[name, epsilon, way]
            for way in ("network, certified, sender hidden", "network, published σ", "local, certified")
        )
        findings.append(
            Finding(
                f"{name}, ε = {epsilon:g}: network DP with the noise that its ε needs",
                ours["accuracy"] > local["accuracy"] - 0.02,
                formula=theirs["accuracy"],
                certified=ours["accuracy"],
                claim=Claim.ESTIMATE,
                note=f"σ {theirs['sigma']:.3g} published, {ours['sigma']:.3g} certified (the ε is; the accuracy is a mean of "
                f"{trials} trials); local DP {local['accuracy']:.3f}",
            )
        )
    return Result(
        settings={"users": USERS, "iterations": STEPS, "L": 0.4, "δ": 1e-6, "trials": trials},
        findings=tuple(findings),
        panels=tuple(panels),
        tables=(
            Table(
                "Accuracy after the last iteration", ("table", "ε", "method", "σ", "step", "accuracy", "±"), tuple(rows)
            ),
        ),
    )


def _numbers(found: dict[str, Any]) -> tuple[float, ...]:
    return found["sigma"], found["step"], found["accuracy"], found["spread"]
