"""Error against certified ε on a random geometric graph, for every protocol that answers a mean; see `errors`."""

from __future__ import annotations

from ..experiment import Experiment, Result, Size
from ..running import Work
from .errors import compare


def run(size: Size, work: Work) -> Result:
    return compare("geometric", size, work)


EXPERIMENT = Experiment(
    id="ours-error-geometric",
    paper="ours",
    place="Error and privacy",
    title="error against certified ε on a random geometric graph",
    shows="Masks between neighbours do on an irregular graph too, if nobody hangs by one link.",
    run=run,
    quick="6 s; a token of two noise levels, seen by one party",
    full="25 min; more noise levels, every observer of the token",
)
