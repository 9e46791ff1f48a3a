"""How far every report's position is from the stationary law, from below and from above, user by user.

    (1 − low_u)·π_i ≤ P_u(t)_i ≤ (1 + high_u)·π_i   for all places i.

By `crowds` the report of w is then in the crowd of u with probability (1 − low_w)/(1 + high_u). Neither grows with t: one
more hop averages the ratios P_u(t)_i/π_i (the walk is reversible).

**Small graphs.** Powers of N as in `separation`: exact up to rounding, which is added.
**All graphs.** low_u = high_u = c_u(t)·max_i c_i(t) with the return bounds of `netdp.graphs.returns`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.graphs.certificate import cached_bound
from netdp.graphs.returns import Returns, returns
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.protocols import Shuffle

from .separation import DENSE, _Powers

_LONGEST = 1 << 40


@dataclass(frozen=True, eq=False)
class Mixing:
    """low and high after `rounds`: "exact" up to rounding, which is added, or a "spectral" bound.

    `failure` is the probability, over the accountant's own coins, that a bound is wrong.
    """

    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    rounds: int
    method: str
    failure: float = 0.0

    @property
    def value(self) -> float:
        """The separation: the largest `low`."""
        return float(self.low.max())

    def crowd(self, users: float = 1.0) -> float:
        """The expected share of the others in the crowd of a user, at least this for the share `users` of them.

        >>> from netdp import graphs
        >>> found = mixing(Shuffle(graphs.complete(4), rounds=1, epsilon0=1.0, laziness=0.25))
        >>> round(found.crowd(), 9)
        1.0
        """
        rank = min(len(self.high) - 1, max(0, int(np.ceil(users * len(self.high))) - 1))
        return float(np.mean(1 - self.low) / (1 + np.partition(self.high, rank)[rank]))


def mixing(protocol: Shuffle, *, dense: int = DENSE) -> Mixing:
    """`low` and `high` of a protocol's walk on a connected graph: exact up to `dense` users, proved bounds above."""
    graph, laziness, t = protocol.graph, protocol.laziness, protocol.rounds
    if graph.n > dense:
        return _by_returns(returns(graph, laziness), t)
    power = _Powers(graph, laziness)
    return _best(_of_power(power, power.of(t), t), _by_rate(graph, laziness, t))


def fewest_rounds_for(graph: Graph, laziness: float, crowd: float, *, users: float = 1.0, dense: int = DENSE) -> Mixing:
    """The fewest rounds (for large graphs: proved to do) after which the share `users` of all users have such a crowd.

    >>> from netdp import graphs
    >>> found = fewest_rounds_for(graphs.complete(64), 0.0, 0.99)       # positions: 1 ± 63^(1−t) times uniform
    >>> found.rounds, found.method
    (3, 'exact')
    """
    if not 0 < crowd < 1:
        raise InvalidValue(f"crowd must lie in (0, 1), got {crowd!r}")
    if not 0 < users <= 1:
        raise InvalidValue(f"users must lie in (0, 1], the share of users that are meant, got {users!r}")
    if graph.n <= dense:
        power = _Powers(graph, laziness)

        def enough(matrix: FloatArray, t: int) -> bool:
            return _best(_of_power(power, matrix, t), _by_rate(graph, laziness, t)).crowd(users) >= crowd

        found = first_power(power, enough)
        if found is not None:
            return _best(_of_power(power, power.of(found), found), _by_rate(graph, laziness, found))
    else:
        bounds = returns(graph, laziness)
        t = 1
        while t < _LONGEST and _by_returns(bounds, t).crowd(users) < crowd:
            t *= 2
        if t < _LONGEST:
            low = t // 2
            while t - low > 1:
                middle = (low + t) // 2
                low, t = (low, middle) if _by_returns(bounds, middle).crowd(users) >= crowd else (middle, t)
            return _by_returns(bounds, t)
    raise Unsupported(
        f"{graph!r} mixes too slowly: no gap of its walk could be proved, so no number of rounds can be given; "
        "add edges, or laziness if it is bipartite or nearly so"
    )


def first_power(power: _Powers, enough: Callable[[FloatArray, int], bool]) -> int | None:
    """The first t at which `enough` (which never becomes false again), by doubling and then halving."""
    top = 0
    while not enough(power.square(top), 1 << top):
        top += 1
        if top > 40:
            return None
    if top == 0:
        return 1
    t, matrix = 1 << (top - 1), power.square(top - 1)
    for i in range(top - 2, -1, -1):
        further = matrix @ power.square(i)
        if not enough(further, t + (1 << i)):
            t, matrix = t + (1 << i), further
    return t + 1


def _of_power(power: _Powers, matrix: FloatArray, t: int) -> Mixing:
    error = 2 * t * (power.n + 16) * UNIT
    ratio = matrix / power.root[:, None] / power.root[None, :]
    low = np.clip(1 - ratio.min(axis=1) * (1 - error), 0.0, 1.0)
    high = np.maximum(ratio.max(axis=1) * (1 + error) - 1, 0.0)
    return Mixing(low, high, t, "exact")


def _by_returns(bounds: Returns, t: int) -> Mixing:
    c = bounds.at(t)
    far = c * float(c.max()) * (1 + 8 * UNIT)
    return Mixing(np.minimum(far, 1.0), far, t, "spectral", bounds.failure)


def _by_rate(graph: Graph, laziness: float, t: int) -> Mixing:
    """From λ* alone."""
    bound = cached_bound(graph, laziness)
    c = np.sqrt(graph.degrees.sum() / graph.degrees - 1.0) * (1 + 8 * UNIT)
    far = c * c.max()
    if bound.value < 1:
        far = far * np.exp(t * np.log(max(bound.value, 1e-300))) * (1 + 8 * UNIT * (t + 64))
    return Mixing(np.minimum(far, 1.0), far, t, "spectral", bound.failure)


def _best(exact: Mixing, spectral: Mixing) -> Mixing:
    """The exact one, unless rounding hides what the spectrum proves."""
    return exact if exact.crowd() >= spectral.crowd() else spectral
