"""Figure 2c: histograms, the loss of drawn walks by the authors' rule (least of three shuffling bounds); and certified.

The seed leaves the domain open; binary responses are taken, whose ε₀ fixes γ = 2/(e^{ε₀} + 1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from netdp.accounting import account
from netdp.protocols import WalkHistogram

from ..experiment import Experiment, Result, Size
from ..running import Work
from .cycles import histogram_cycles
from .empirical import DELTA, EPSILONS, by_rule, largest_findings, panels, work_items


def cycles(epsilon0: float, steps: int) -> Any:
    return histogram_cycles(epsilon0, steps, DELTA)


def one(item: Any) -> dict[str, float]:
    n, epsilon0, runs = item
    gamma = 2.0 / (math.exp(epsilon0) + 1.0)
    loss = account(WalkHistogram(n, 100 * n, domain=2, gamma=gamma, sender="hidden"), [0])
    return {**by_rule(n, epsilon0, runs, cycles), "certified": float(np.nanmax(loss.epsilon(DELTA)))}


def local(epsilon0: float) -> float:
    """A hundred binary responses seen one by one, exactly: i of them true lose (2i − 100)ε₀, i binomial.

    >>> round(local(0.1), 2)
    5.19
    """
    true = np.arange(101)
    probability = binom.pmf(true, 100, 1.0 / (1.0 + math.exp(-epsilon0)))
    loss = epsilon0 * (2 * true - 100)

    def excess(epsilon: float) -> float:
        return float(np.sum(probability * np.maximum(0.0, -np.expm1(epsilon - loss)))) - DELTA

    return float(brentq(excess, 0.0, 100 * epsilon0))


def run(size: Size, work: Work) -> Result:
    sizes, found = work_items(size, work, one)
    return Result(
        settings={"T": "100 n", "walks": 10 if size is Size.FULL else 3, "δ": DELTA, "domain": 2, "ε₀": list(EPSILONS)},
        findings=largest_findings(sizes, found, local, "responses"),
        panels=panels("Histograms", sizes, found, local, "certified, sender hidden"),
    )


EXPERIMENT = Experiment(
    id="000-fig2c",
    paper="000",
    place="Figure 2c",
    title="Losses of drawn walks, histograms",
    shows="The gains by decentralization are significant for histograms, too.",
    run=run,
    quick="20 s: up to 200 users, three walks",
    full="2 min",
    errata=("000-realised-walk",),
)
