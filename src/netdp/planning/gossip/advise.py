"""Which network to build for a given number of parties: the same target planned on several topologies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from netdp import graphs
from netdp.errors import InvalidValue, NetdpError
from netdp.graphs import Graph
from netdp.graphs.spectrum import spectral_gap
from netdp.numerics.arrays import Progress
from netdp.privacy.readable import readable

from .plan import GossipOption, GossipPlan, plan

# "As good as a curator" for the recommendation: within this factor of its error.
GOOD = 1.5
# The complete graph sends n messages per party and round; above this it is not worth looking at.
_MAX_COMPLETE = 512


@dataclass(frozen=True, eq=False)
class Candidate:
    """One topology with its plan."""

    graph: Graph
    gap: float
    plan: GossipPlan

    @property
    def option(self) -> GossipOption:
        """The best option on it."""
        return self.plan.best

    @property
    def cost(self) -> float:
        """Messages per party, a key agreement with every neighbour counted as one more."""
        return self.option.messages + 2.0 * self.graph.m / self.graph.n

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "graph": self.graph.name,
            "spectral_gap": self.gap,
            "degree": 2.0 * self.graph.m / self.graph.n,
            "over_curator": self.option.rmse / self.plan.curator_rmse,
            **self.option.to_dict(),
            "worst_epsilon": self.plan.worst_epsilon(self.option),
        }


@dataclass(frozen=True, eq=False)
class Advice:
    """Candidates in the order given, the recommended one, and why, in a sentence."""

    candidates: tuple[Candidate, ...]
    recommended: Candidate
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "recommended": self.recommended.graph.name,
            "sentence": self.sentence,
        }

    def __str__(self) -> str:
        lines = [
            f" {'*' if candidate is self.recommended else ' '} {candidate.graph.name}: error {readable(candidate.option.rmse)}, "
            f"{candidate.option.messages:,.0f} messages per party"
            for candidate in self.candidates
        ]
        return "\n".join([*lines, f"recommended: {self.sentence}"])


def topologies(graph: Graph) -> list[Graph]:
    """The given graph and the usual others on as many parties.

    >>> [g.name for g in topologies(graphs.ring(16))]
    ['ring(16)', 'torus(4, 4)', 'hypercube(4)', 'regular(16, 4)', 'regular(16, 8)', 'complete(16)']
    """
    n = graph.n
    found = [graph]
    if n >= 3:
        found.append(graphs.ring(n))
    side = next((s for s in range(math.isqrt(n), 2, -1) if n % s == 0), None)
    if side is not None:
        found.append(graphs.torus(side, n // side))
    if n & (n - 1) == 0 and n >= 4:
        found.append(graphs.hypercube(n.bit_length() - 1))
    for degree in (4, 8):
        if degree < n - 1 and n * degree % 2 == 0:
            found.append(graphs.regular(n, degree, seed=0))
    if n <= _MAX_COMPLETE:
        found.append(graphs.complete(n))
    different: list[Graph] = []
    for candidate in found:
        if candidate.is_connected and candidate not in different:
            different.append(candidate)
    return different


def advise(graph: Graph, epsilon: float, delta: float, *, progress: Progress | None = None, **options: Any) -> Advice:
    """Plan the target with masks on several topologies and recommend the one with the fewest messages among the
    accurate ones.

    Accurate: a predicted error within 1.5 times a trusted curator's; if none is, within 1.5 times the smallest.
    """
    candidates = []
    for candidate in topologies(graph):
        try:
            planned = plan(candidate, epsilon, delta, kinds=("masked",), progress=progress, **options)
        except InvalidValue:
            raise
        except NetdpError:
            continue  # too large for one topology need not be too large for another
        candidates.append(Candidate(candidate, spectral_gap(candidate), planned))
    if not candidates:
        raise InvalidValue(f"no topology on {graph.n} parties could be planned; plan the graph itself to see why")
    smallest = min(candidate.option.rmse for candidate in candidates)
    limit = GOOD * max(smallest, min(candidate.plan.curator_rmse for candidate in candidates))
    good = [candidate for candidate in candidates if candidate.option.rmse <= limit]
    chosen = min(good, key=lambda candidate: (candidate.cost, candidate.option.rmse))
    ratio = chosen.option.rmse / chosen.plan.curator_rmse
    sentence = (
        f"{chosen.graph.name}: {ratio:.2f} times a trusted curator's error at the same privacy, with "
        f"{chosen.option.messages:,.0f} "
        f"messages per party in {chosen.option.protocol.rounds} rounds: the least traffic, key agreements "
        f"included, among the topologies "
        f"{f'within {GOOD} times the curator' if ratio <= GOOD else f'within {GOOD} times the best error'}."
    )
    return Advice(tuple(candidates), chosen, sentence)
