"""Network shuffling where every hop passes through a server (Liew et al. 2022, section 4.4 and Figure 3), with cover traffic.

Users of a messaging service have no direct links: what one sends to another goes through the server, sealed end to end. The
server cannot open an envelope, but it sees who sends how many to whom in every round, and in the end it is the curator to
whom the reports are handed. So it watches each report's first hop: in round 1 everybody holds exactly one.

    cover = 0   nothing is done about it.
    cover = c   **the traffic rule**: in every round every user sends exactly c sealed envelopes of one size to each of its
                neighbours, whatever it holds; dummies fill what is missing. If more than c of its reports draw the same
                neighbour, the surplus, chosen at random, waits and draws again in the next round.

    bundles = k   a rule for graphs with many links: in every round every user draws k of its neighbours, with repetition, and
                sends one sealed bundle to each; every report goes into a bundle drawn for it alone. A bundle's room is a
                function of the traffic so far (`room`): all fit but with probability 10⁻¹² in the run; the surplus waits.

Under `cover` the traffic is the same whatever happens: c·2m envelopes in a round. Under `bundles` it is drawn without a look at the
reports: kn in a round, and what the server learns from it is accounted for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.numerics.checks import whole

from .base import OnGraph
from .shuffle import Shuffle

OVERFLOW = 1e-12
"""Under `bundles`: the probability that in the whole run some bundle has too little room, at most."""


@dataclass(frozen=True)
class RelayedShuffle(OnGraph):
    """Randomized reports that hop from user to user through a server which sees all traffic and collects the reports.

    Parameters
    ----------
    graph, rounds, epsilon0, laziness, delta0 : as of a `Shuffle`; every user hands over all that it holds.
    cover : c ≥ 0, envelopes from each user to each neighbour in every round.
    bundles : k ≥ 0, bundles from each user to random neighbours in every round. One rule at most; without any only ε₀ is certified.

    >>> from netdp import graphs
    >>> p = RelayedShuffle(graphs.regular(200, 6, seed=1), rounds=40, epsilon0=1.0, cover=4)
    >>> p.envelopes                                                   # a user sends, in all; 40 of them carry a report
    960.0
    """

    kind: ClassVar[str] = "relayed-shuffle"
    roles: ClassVar[tuple[str, ...]] = ("curator",)
    answer: ClassVar[str] = "what the randomizer estimates, at the curator"
    graph: Graph
    rounds: int
    epsilon0: float
    cover: int = 0
    laziness: float = 0.0
    delta0: float = 0.0
    bundles: int = 0

    def __post_init__(self) -> None:
        direct = Shuffle(self.graph, self.rounds, self.epsilon0, laziness=self.laziness, delta0=self.delta0)
        for name in ("graph", "rounds", "epsilon0", "laziness", "delta0"):
            object.__setattr__(self, name, getattr(direct, name))
        self._set(cover=whole("cover", self.cover), bundles=whole("bundles", self.bundles))
        if self.cover and self.bundles:
            raise InvalidValue(f"cover={self.cover} and bundles={self.bundles} are two rules; choose one")
        if self.bundles == 1:
            raise InvalidValue("bundles=1 keeps all reports of a user together for ever: two at least are needed")

    @property
    def direct(self) -> Shuffle:
        """The same reports over direct links that nobody watches."""
        return Shuffle(self.graph, self.rounds, self.epsilon0, laziness=self.laziness, delta0=self.delta0)

    @property
    def envelopes(self) -> float:
        """Envelopes that a user sends to other users in the whole run, on average."""
        if self.bundles:
            return float(self.rounds * self.bundles)
        if not self.cover:
            return self.rounds * (1.0 - self.laziness)
        return float(self.rounds * self.cover * 2 * self.graph.m / self.n)

    def room(self, held: float) -> int:
        """How many reports a bundle of a user who holds so many on average, given the traffic so far, has room for.

        The number in a bundle is a sum of independent indicators of mean μ = (1 − ℓ)·held/k, and reaches b + 1 with probability at
        most μ^{b+1}/(b + 1)!; b is the least for which that is at most 10⁻¹²/(tnk).

        >>> from netdp import graphs
        >>> RelayedShuffle(graphs.complete(100), rounds=50, epsilon0=1.0, bundles=4).room(1.0)
        12
        """
        mean = (1.0 - self.laziness) * held / self.bundles
        if mean <= 0:
            return 0
        target = math.log(OVERFLOW) - math.log(self.rounds * self.n * self.bundles)
        b = 0
        while (b + 1) * math.log(mean) - math.lgamma(b + 2.0) > target - 1e-9:
            b += 1
        return b

    def describe(self) -> str:
        lazy = f" laziness={self.laziness:g}" if self.laziness else ""
        delta0 = f", δ₀={self.delta0:g}" if self.delta0 else ""
        rule = f"{self.cover} envelopes to every neighbour in every round" if self.cover else "no cover traffic"
        if self.bundles:
            rule = f"{self.bundles} bundles to random neighbours in every round"
        return (
            f"{self.graph.name}: {self.n:,} users, {self.graph.m:,} edges; shuffling through a server with "
            f"ε₀={self.epsilon0:g}{delta0} reports, {self.rounds} hops{lazy}, {rule}"
        )
