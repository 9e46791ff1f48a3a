"""Figure 4: the same on two more tables, spambase (4,601 rows) and cardio (70,000 rows), ε = 10."""

from __future__ import annotations

from ..experiment import Experiment, Result, Size
from ..running import Work
from .learning_figures import compare


def run(size: Size, work: Work) -> Result:
    return compare(size, work, [("spambase", 10.0), ("cardio", 10.0)], {})


EXPERIMENT = Experiment(
    id="001-fig4",
    paper="001",
    place="Figure 4",
    title="Private SGD on spambase and cardio",
    shows="With fewer rows network DP falls behind the centralized one; with more it is close to it.",
    run=run,
    quick="15 s: four trials",
    full="1 min: ten trials",
    errata=("001-dimension",),
)
