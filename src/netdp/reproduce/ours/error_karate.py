"""Error against certified ε on the karate club, for every protocol that answers a mean; see `errors`."""

from __future__ import annotations

from ..experiment import Experiment, Result, Size
from ..running import Work
from .errors import compare


def run(size: Size, work: Work) -> Result:
    return compare("karate", size, work)


EXPERIMENT = Experiment(
    id="ours-error-karate",
    paper="ours",
    place="Error and privacy",
    title="error against certified ε on the karate club",
    shows="Where a party has one neighbour only, gossip of any kind stays at local DP's error; a masked sum does not.",
    run=run,
    quick="6 s; a token of two noise levels, seen by one party",
    full="6 min; more noise levels, every observer of the token",
)
