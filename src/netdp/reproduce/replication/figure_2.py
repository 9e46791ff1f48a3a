"""Figure 2: three ways of private SGD at ε = 1 and 10 on the housing table; the figure of the original paper."""

from __future__ import annotations

from ..experiment import Experiment, Result, Size
from ..running import Work
from .learning_figures import compare

# the authors' code, ten runs
EXPECTED = {
    ("housing", 10.0, "central, published σ"): 0.959,
    ("housing", 10.0, "network, published σ"): 0.954,
    ("housing", 10.0, "local, published σ"): 0.891,
    ("housing", 1.0, "central, published σ"): 0.874,
    ("housing", 1.0, "network, published σ"): 0.799,
    ("housing", 1.0, "local, published σ"): 0.534,
}


def run(size: Size, work: Work) -> Result:
    return compare(size, work, [("housing", 10.0), ("housing", 1.0)], EXPECTED)


EXPERIMENT = Experiment(
    id="001-fig2",
    paper="001",
    place="Figure 2",
    title="Private SGD at two privacy levels",
    shows="Network DP-SGD nearly matches centralized DP-SGD for ε = 1 and 10; local DP-SGD does not.",
    run=run,
    quick="15 s: four trials",
    full="1 min: ten trials",
    errata=("001-sigma-schedule", "001-label", "001-sensitivity"),
)
