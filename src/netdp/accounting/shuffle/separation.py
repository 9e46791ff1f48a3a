"""How far a report's position still depends on its origin: the separation s(t) of the (lazy) simple walk.

    s(t) = max_{u,i} (1 − P_u(t)_i/π_i),   so that   P_u(t) = (1 − s)π + s R_u   with a law R_u, for every origin u.

s never grows with t: applying P to the decomposition leaves (1 − s)π.

**Small graphs.** N^t by repeated squaring, N = D^½PD^−½ symmetric: P_u(t)_i/π_i = N^t(u, i)/√(π_uπ_i). All entries
are ≥ 0, so every product has relative errors of at most n·u, entry by entry, whatever the order of summation, and
squaring doubles what is there: N^t is right to t(n + 8)u, relatively, which is added to s.

**All graphs.** With eigenpairs (λ_j, φ_j) of N, φ₁ = √π: P_u(t)_i/π_i − 1 = Σ_{j≥2} λ_j^t φ_j(u)φ_j(i)/√(π_uπ_i), and
Σ_{j≥2} φ_j(u)² = 1 − π_u, so by Cauchy and Schwarz

    s(t) ≤ λ*^t √((1/π_u − 1)(1/π_i − 1)) ≤ λ*^t (1/π_min − 1),   λ* = max_{j≥2} |λ_j|

and `spectral_bound` proves an upper bound on λ*. The smaller of the two counts where both are to be had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.graphs.certificate import SpectralBound, cached_bound, normalised
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.protocols import Shuffle

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

    def separation(self, power: FloatArray, t: int) -> float:
        """s(t) of N^t, its rounding error added."""
        error = 2 * t * (self.n + 16) * UNIT
        least = float((power / self.root[:, None] / self.root[None, :]).min())
        return float(np.clip(1.0 - least * (1 - error), 0.0, 1.0))

    def first(self, target: float, most: int | None) -> Separation | None:
        """The first t with s(t) ≤ target, by doubling and then halving; None if rounding or `most` forbids."""
        limit = 1 << 40 if most is None else most
        top = 0
        while (1 << top) < limit and self.separation(self.square(top), 1 << top) > target:
            if 2 * (1 << top) * (self.n + 16) * UNIT > target:
                return None
            top += 1
        if top == 0:
            return Separation(self.separation(self.square(0), 1), 1, "exact")
        t, power = 1 << (top - 1), self.square(top - 1)
        if self.separation(power, t) <= target:  # `most` cut the doubling short
            return None
        for i in range(top - 2, -1, -1):
            further = power @ self.square(i)
            if self.separation(further, t + (1 << i)) > target:
                t, power = t + (1 << i), further
        t += 1
        value = self.separation(power @ self.square(0), t)
        return Separation(value, t, "exact") if value <= target and t <= limit else None


def failure_words(failure: float) -> tuple[str, ...]:
    """The assumption that goes with a randomized certificate."""
    if not failure:
        return ()
    return (
        f"the bounds on the walk's eigenvalues and returns rest on the accountant's own coins (fresh ones, and a hash of the "
        f"graph): wrong with probability < {rounded_up(failure)}",
    )


def rounded_up(probability: float) -> str:
    """One digit of a positive number, never less than it.

    >>> rounded_up(1.68e-21), rounded_up(9.5e-21)
    ('2e-21', '1e-20')
    """
    size = 10.0 ** math.floor(math.log10(probability))
    return f"{math.ceil(probability / size) * size:.0e}"
