"""Error against certified ε on the hypercube 2⁶, for every protocol that answers a mean; see `errors`."""

from __future__ import annotations

from ..experiment import Experiment, Result, Size
from ..running import Work
from .errors import compare


def run(size: Size, work: Work) -> Result:
    return compare("hypercube", size, work)


EXPERIMENT = Experiment(
    id="ours-error-hypercube",
    paper="ours",
    place="Error and privacy",
    title="error against certified ε on the hypercube 2⁶",
    shows="On a graph that mixes well masks give a curator's error; without them the worst pair stays at local DP's.",
    run=run,
    quick="6 s; a token of two noise levels",
    full="1 min; more noise levels",
)
