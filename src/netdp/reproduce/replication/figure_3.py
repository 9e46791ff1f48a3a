"""Figure 3: the report's own run of the experiment, ε = 10 on the housing table."""

from __future__ import annotations

from ..experiment import Experiment, Result, Size
from ..running import Work
from .figure_2 import EXPECTED
from .learning_figures import compare


def run(size: Size, work: Work) -> Result:
    return compare(size, work, [("housing", 10.0)], {key: value for key, value in EXPECTED.items() if key[1] == 10.0})


EXPERIMENT = Experiment(
    id="001-fig3",
    paper="001",
    place="Figure 3",
    title="Private SGD on the housing table",
    shows="Network DP-SGD is nearly as accurate as centralized DP-SGD and better than local DP-SGD.",
    run=run,
    quick="5 s: four trials",
    full="30 s: ten trials",
    errata=("001-sigma-schedule", "001-label"),
)
