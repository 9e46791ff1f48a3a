"""How far the place of every report is from the stationary law of its walk, user by user (docs/proofs/shuffle.md#report-mixing).

    (1 − low_u)·π_i ≤ P_u(t)_i ≤ (1 + high_u)·π_i   for all places i;   the largest low_u is the separation s(t).

On small graphs all powers of the walk are computed, exact up to rounding, which is added. On large ones
low_u = high_u = c_u(t)·max_i c_i(t) with the return bounds of `netdp.graphs.certificate`, or λ*^t(1/π_min − 1) for s(t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.protocol import Shuffle
from netdp.graphs.certificate import Returns, SpectralBound, cached_bound, normalised, returns
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import UNIT, FloatArray

DENSE = 1500
"""Up to this many nodes all positions are computed; a product takes about half a second there."""


@dataclass(frozen=True)
class Separation:
    """s(t) ≤ `value` after `rounds`: "exact" up to rounding, which is added, or a "spectral" bound.

    `failure` is the probability, over the accountant's own coins, that the bound is wrong.
    """

    value: float
    rounds: int
    method: str
    failure: float = 0.0


def separation(protocol: Shuffle, *, dense: int = DENSE) -> Separation:
    """s(t) of a protocol's walk: exact up to `dense` nodes, a proved bound above.

    >>> from netdp import graphs
    >>> separation(Shuffle(graphs.complete(4), rounds=1, epsilon0=1.0)).value          # nobody keeps its report
    1.0
    >>> separation(Shuffle(graphs.complete(4), rounds=1, epsilon0=1.0, laziness=0.25)).value < 1e-14
    True
    """
    graph, laziness, t = protocol.graph, protocol.laziness, protocol.rounds
    spectral = _spectral(graph, cached_bound(graph, laziness), t)
    if graph.n > dense:
        return spectral
    power = _Powers(graph, laziness)
    exact = Separation(power.separation(power.of(t), t), t, "exact")
    return exact if exact.value <= spectral.value else spectral


def fewest_rounds(graph: Graph, laziness: float, target: float, *, dense: int = DENSE) -> Separation:
    """The fewest rounds t with a proved s(t) ≤ target, and that s(t).

    >>> from netdp import graphs
    >>> found = fewest_rounds(graphs.complete(64), 0.0, 1e-6)     # s(t) = 63^−t for even t
    >>> found.rounds, found.method
    (4, 'exact')
    """
    if not 0 < target < 1:
        raise InvalidValue(f"target must lie in (0, 1), got {target!r}")
    bound = cached_bound(graph, laziness)
    spectral = None
    if bound.value < 1:
        spread = graph.degrees.sum() / graph.degrees.min() - 1.0
        t = max(1, math.ceil(math.log(target / spread) / math.log(bound.value))) if bound.value > 0 else 1
        while (spectral := _spectral(graph, bound, t)).value > target:
            t += 1
    if graph.n <= dense:
        exact = _Powers(graph, laziness).first(target, None if spectral is None else spectral.rounds)
        if exact is not None:
            return exact
    if spectral is None:
        raise Unsupported(
            f"{graph!r} mixes too slowly: no gap of its walk could be proved, so no number of rounds can be given; "
            "add edges, or laziness if it is bipartite or nearly so"
        )
    return spectral


def _spectral(graph: Graph, bound: SpectralBound, rounds: int) -> Separation:
    spread = graph.degrees.sum() / graph.degrees.min() - 1.0
    value = math.exp(rounds * math.log(bound.value) + math.log(spread)) if 0 < bound.value < 1 else bound.value
    # the exponent is a sum of two rounded products: its error is relative to it, and added
    value *= 1 + 8 * UNIT * (rounds + 64)
    return Separation(min(1.0, value), rounds, "spectral", bound.failure if value < 1 else 0.0)


class _Powers:
    """Powers of N, dense, the squares remembered."""

    def __init__(self, graph: Graph, laziness: float) -> None:
        self.root = np.sqrt(graph.degrees / graph.degrees.sum())
        self.n = graph.n
        self.squares: list[FloatArray] = [normalised(graph, laziness).toarray()]

    def square(self, i: int) -> FloatArray:
        """N to the power 2^i."""
        while len(self.squares) <= i:
            self.squares.append(self.squares[-1] @ self.squares[-1])
        return self.squares[i]

    def of(self, t: int) -> FloatArray:
        """N^t."""
        parts = [i for i in range(t.bit_length()) if t >> i & 1]
        result = self.square(parts[0])
        for i in parts[1:]:
            result = result @ self.square(i)
        return result

    def ratios(self, power: FloatArray) -> FloatArray:
        """P_u(t)_i/π_i of N^t."""
        return np.asarray(power / self.root[:, None] / self.root[None, :])

    def error(self, t: int) -> float:
        """A bound on the relative rounding error of every entry of N^t."""
        return 2 * t * (self.n + 16) * UNIT

    def separation(self, power: FloatArray, t: int) -> float:
        """s(t) of N^t, its rounding error added."""
        least, error = float(self.ratios(power).min()), self.error(t)
        return float(np.clip(1.0 - least * (1 - error), 0.0, 1.0))

    def first(self, target: float, most: int | None) -> Separation | None:
        """The first t with s(t) ≤ target, by doubling and then halving; None if rounding or `most` forbids."""
        limit = 1 << 40 if most is None else most
        top = 0
        while (1 << top) < limit and self.separation(self.square(top), 1 << top) > target:
            if self.error(1 << top) > target:
                return None
            top += 1
        if top == 0:
            return Separation(self.separation(self.square(0), 1), 1, "exact")
        t, before = self.within(top, lambda power, t: self.separation(power, t) <= target)
        value = self.separation(before @ self.square(0), t)
        return Separation(value, t, "exact") if value <= target and t <= limit else None

    def first_enough(self, enough: Callable[[FloatArray, int], bool]) -> int | None:
        """The first t at which N^t is `enough` (which never becomes false again); None if that takes too long."""
        top = 0
        while not enough(self.square(top), 1 << top):
            top += 1
            if top > 40:
                return None
        return self.within(top, enough)[0] if top else 1

    def within(self, top: int, enough: Callable[[FloatArray, int], bool]) -> tuple[int, FloatArray]:
        """The first t above 2^(top − 1), at most 2^top, at which N^t is `enough`, and N^(t − 1), by halving."""
        t, power = 1 << (top - 1), self.square(top - 1)
        for i in range(top - 2, -1, -1):
            further = power @ self.square(i)
            if not enough(further, t + (1 << i)):
                t, power = t + (1 << i), further
        return t + 1, power


def failure_words(failure: float) -> tuple[str, ...]:
    """The assumption that goes with a randomized certificate."""
    if not failure:
        return ()
    return (
        f"the bounds on the walk's eigenvalues and returns rest on the accountant's own coins (fresh ones, and a hash of the "
        f"graph): wrong with probability < {one_digit_up(failure)}",
    )


def one_digit_up(probability: float) -> str:
    """One digit of a positive number, never less than it.

    >>> one_digit_up(1.68e-21), one_digit_up(9.5e-21)
    ('2e-21', '1e-20')
    """
    size = 10.0 ** math.floor(math.log10(probability))
    return f"{math.ceil(probability / size) * size:.0e}"


_LONGEST = 1 << 39


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

    def to_dict(self) -> dict[str, Any]:
        """JSON-able: the separation, how it is known, and the probability that a bound is wrong."""
        return {"bound": self.value, "method": self.method, "failure": self.failure}

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

        found = power.first_enough(enough)
        if found is not None:
            return _best(_of_power(power, power.of(found), found), _by_rate(graph, laziness, found))
    else:
        bounds = returns(graph, laziness)
        found = fewest(lambda t: _by_returns(bounds, t).crowd(users) >= crowd, _LONGEST)
        if found is not None:
            return _by_returns(bounds, found)
    raise Unsupported(
        f"{graph!r} mixes too slowly: no gap of its walk could be proved, so no number of rounds can be given; "
        "add edges, or laziness if it is bipartite or nearly so"
    )


def fewest(enough: Callable[[int], bool], most: int) -> int | None:
    """The fewest rounds that are `enough` (which never becomes false again), by doubling and halving; None if not even `most` are.

    >>> fewest(lambda rounds: rounds >= 11, 20), fewest(lambda rounds: rounds >= 11, 10)
    (11, None)
    """
    high = 1
    while not enough(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _of_power(power: _Powers, matrix: FloatArray, t: int) -> Mixing:
    ratio, error = power.ratios(matrix), power.error(t)
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
