"""Figures 5 to 7: what the number of updates, of iterations and of users does to the accuracy (housing, ε = 10)."""

from __future__ import annotations

from typing import Any

from ..experiment import Panel, Series, Size
from ..running import Work
from .walk_learning import METHODS, measured, named

PUBLISHED = ("local, published σ", "network, published σ", "central, published σ")
CERTIFIED = ("local, certified", "network, certified, sender hidden", "central, certified")


def sweep(
    size: Size,
    work: Work,
    name: str,
    values: list[int],
    methods: tuple[str, ...] = PUBLISHED + CERTIFIED,
    step: float | None = None,
) -> dict[tuple[str, int], dict[str, Any]]:
    """Every method at every value of `name` ("cap", "steps" or "n"); `step`: of the published ones, instead of a tuned one."""
    trials = 10 if size is Size.FULL else 5
    items = [
        {"table": "housing", "epsilon": 10.0, "method": way, "trials": trials, name: value}
        | ({"step": step} if step is not None and way in PUBLISHED else {})
        for way in methods
        for value in values
    ]
    keys = [(way, value) for way in methods for value in values]
    return dict(zip(keys, work.map(measured, items), strict=True))


def panel(title: str, x: str, found: dict[tuple[str, int], dict[str, Any]], log_x: bool = True) -> Panel:
    """Accuracy over the value, a curve per method."""
    series = []
    for way in dict.fromkeys(way for way, _ in found):
        values = [value for name, value in found if name == way]
        mean = [found[way, value]["accuracy"] for value in values]
        spread = [found[way, value]["spread"] for value in values]
        low = [m - s for m, s in zip(mean, spread, strict=True)]
        high = [m + s for m, s in zip(mean, spread, strict=True)]
        series.append(Series(named(way), values, mean, METHODS[way], low, high))
    return Panel(title, x, "accuracy on the test rows", tuple(series), log_x=log_x, band="± deviation of a run")
