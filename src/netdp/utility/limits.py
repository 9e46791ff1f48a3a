"""What no protocol can do in which a party hears only its neighbours: a lower bound on the error of a private mean.

*Proof: docs/guarantees.md#limits.*

**Theorem.** Let n parties hold values in an interval of length Δ and talk only along the edges of a graph; they share
no secrets but those that their messages make. Let the protocol be (ε, δ)-private for every party against any f others
who pool all they see, whatever else it does. Let K_1 … K_r be disjoint sets of parties, each with at most f
neighbours outside. Then every estimate of the mean that somebody outside them makes has, for some values, a mean
squared error of at least

    (Δ/n)²·r·(1 − δ)·e^ε/(1 + e^ε)².

For δ = 0 also at least (Δ/n)²·V(r, ε), V the variance that is left of a sum of r signs ±1/2 after r independent
binary randomized responses to them, for any prior of exchangeable signs; the best of a family of priors is taken.

*Proof.* Choose u_i ∈ K_i, let it hold ±Δ/2, and fix all other values. Tell the estimator everything that happens
outside the sets, and M_i, all messages between K_i and its neighbours. By the rules of the protocol the probability
of all that, τ, is a product g(τ)·f_1(M_1, x_1)⋯f_r(M_r, x_r): K_i answers what comes in by its own value and coins.
The neighbours of K_i, at most f, see M_i, so M_i is (ε, δ)-private for x_i whatever the other values are, and since
f_i(·, +)/f_i(·, −) is a function of M_i, so is τ. (i) With independent fair signs they stay independent given τ, and
an (ε, δ)-private channel of one bit is a function of a response that tells the bit with probability δ and else
answers by binary randomized response (Kairouz, Oh, Viswanath 2015): the mean variance left of x_i is at least (1 −
δ)Δ²e^ε/(1 + e^ε)². The error of the sum is at least the sum of these. (ii) δ = 0: f_i(τ, ·) has a ratio between e^−ε
and e^ε, so f_i(τ, x) = Σ_y RR(y|x)·t_i(τ, y) with t_i ≥ 0. Put T(τ|y) = g(τ)Πt_i(τ, y_i) ≥ 0. Then P(τ|x) = Σ_y
ΠRR(y_i|x_i)·T(τ|y), and Σ_τ T(τ|y) = 1 for all y, because randomized response is invertible: τ is a function of r
independent responses and of coins, *however interactive the protocol was*. The error is at least the variance left
under any prior. ∎

r = 1 is always possible (the estimator's own view is one of those it is private against): the trusted curator's
limit. A party of at most f neighbours is such a set by itself. If the estimator is a member of one of the sets, the
others count.

**What gets round it.** Pads between parties that are no neighbours, by public keys (`MaskedSum`): private only
against those who cannot break the keys, while this theorem is about what messages tell in principle. That is why a
masked sum may lie below this limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.accounting.coalitions.masked import smallest_cut_off
from netdp.errors import InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import between, finite, positive, whole

_SEARCHED = 300  # parties of more neighbours than colluders around whom small sets are looked for
_PRIOR = 33  # points of the prior
_DOWN = 1 - 1e-9  # rounding of sums of some thousand positive terms


@dataclass(frozen=True)
class Limit:
    """No private estimate of the mean has a smaller error: root mean square, for the worst values.

    rmse     the limit
    sets     disjoint sets of parties, each with at most `colluders` neighbours, on which it rests
    counted  how many of them count for anybody's estimate, the estimator's own being left out
    """

    rmse: float
    sets: tuple[tuple[int, ...], ...]
    counted: int
    epsilon: float
    delta: float
    colluders: int

    @property
    def words(self) -> str:
        """For a plan."""
        who = "one party" if self.colluders == 1 else f"any {self.colluders} parties"
        if len(self.sets) < 2:
            return (
                f"no protocol of messages between neighbours, private against {who}, has an error below {self.rmse:.3g}"
            )
        return (
            f"no protocol of messages between neighbours, private against {who}, has an error below {self.rmse:.3g} "
            "on this graph: "
            f"{len(self.sets)} parts of it have at most {self.colluders} neighbours"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "rmse": self.rmse, "sets": [list(one) for one in self.sets], "counted": self.counted,
            "epsilon": self.epsilon, "delta": self.delta, "colluders": self.colluders,
        }  # fmt: skip


def limits(graph: Graph, epsilon: float, delta: float = 0.0, *, colluders: int = 1, sensitivity: float = 1.0) -> Limit:
    """The least root mean squared error of any protocol on this graph that is (ε, δ)-private against any so many parties.

    >>> from netdp import graphs
    >>> star, ring = (limits(g, 1.0, 1e-6).rmse for g in (graphs.star(100), graphs.ring(100)))
    >>> round(star, 4), round(ring, 5), round(limits(graphs.ring(100), 1.0, 1e-6, colluders=2).rmse, 4)
    (0.0439, 0.00443, 0.0441)
    >>> round(limits(graphs.ring(1000), 1.0, colluders=2).rmse, 4)        # binary randomized response of everybody: 0.0303
    0.0298
    """
    graph = as_graph(graph, "limits")
    number = _checked(graph.n, colluders)
    return _limit(graph.n, epsilon, delta, number, sensitivity, separated(graph, number))


def curator_limit(n: int, epsilon: float, delta: float = 0.0, *, colluders: int = 1, sensitivity: float = 1.0) -> Limit:
    """The same where no part of the graph is behind few others (r = 1): nobody, not even a trusted curator, has a smaller error.

    >>> round(curator_limit(100, 1.0, 1e-6).rmse, 5)
    0.00443
    """
    return _limit(n, epsilon, delta, _checked(n, colluders), sensitivity, ())


def _checked(n: int, colluders: int) -> int:
    number = whole("colluders", colluders, 1)
    if number >= n:
        raise InvalidValue(f"colluders={number} leaves nobody of {n} parties whose privacy could be at stake")
    return number


def _limit(
    n: int, epsilon: float, delta: float, number: int, sensitivity: float, sets: tuple[tuple[int, ...], ...]
) -> Limit:
    level = finite("epsilon", epsilon, "a finite number ≥ 0")
    if level < 0:
        raise InvalidValue(f"epsilon must be a finite number ≥ 0, got {epsilon!r}")
    failure = between("delta", delta, 0.0, 1.0, open_high=True)
    width = positive("sensitivity", sensitivity)
    counted = max(1, len(sets) - 1)
    each = (1 - failure) * math.exp(-level) / (1 + math.exp(-level)) ** 2
    left = counted * each
    if failure == 0:
        left = max(left, variance_left(counted, level))
    return Limit(width / n * math.sqrt(left * _DOWN), sets, counted, level, failure, number)


def separated(graph: Graph, colluders: int) -> tuple[tuple[int, ...], ...]:
    """Disjoint sets of parties with at most so many neighbours each: single parties of few neighbours, then small parts.

    >>> from netdp import graphs
    >>> separated(graphs.path(5), 1), len(separated(graphs.path(5), 2)), separated(graphs.hypercube(3), 2)
    (((0,), (4,)), 5, ())
    """
    found: list[tuple[int, ...]] = [(int(u),) for u in np.flatnonzero(graph.degrees <= colluders)]
    taken = {u for one in found for u in one}
    others = [u for u in np.argsort(graph.degrees, kind="stable").tolist() if u not in taken]
    for u in others[:_SEARCHED]:
        if u in taken:
            continue
        cut = smallest_cut_off(graph, u, colluders, 400)
        if cut.coalition is None or cut.size > graph.n // 2:
            continue
        part = _component(graph, u, set(cut.coalition))
        if not part & taken:
            found.append(tuple(sorted(part)))
            taken |= part
    return tuple(found)


def _component(graph: Graph, start: int, without: set[int]) -> set[int]:
    seen, todo = {start}, [start]
    while todo:
        for w in graph.neighbors(todo.pop()).tolist():
            if w not in seen and w not in without:
                seen.add(w)
                todo.append(w)
    return seen


@lru_cache(maxsize=256)
def variance_left(r: int, epsilon: float) -> float:
    """V(r, ε): the largest variance that a prior of exchangeable signs ±1/2 leaves of their sum after r binary responses.

    Given p, the signs are + with probability p, independently; p is ½ − w or ½ + w, or has a prior between them that
    falls towards the ends like
    cos². With k responses + the variance is that of the sum given k and p, and that of its mean over the p that k leaves possible.

    >>> round(variance_left(1, 1.0), 4), round(variance_left(1000, 1.0) / 1000, 2)      # binary response reaches 0.92 each
    (0.1966, 0.89)
    """
    truth, lie = _response(epsilon)
    best = r * truth * lie
    grid = np.linspace(-1, 1, _PRIOR)
    bell = np.cos(np.pi * grid / 2) ** 2 + 1e-3
    for wide in np.geomspace(0.02, 0.4999, 25).tolist():
        best = max(best, _left(r, epsilon, wide * grid, bell / bell.sum()))
        best = max(best, _left(r, epsilon, np.array([-wide, wide]), np.array([0.5, 0.5])))
    return best


def _response(epsilon: float) -> tuple[float, float]:
    """The probabilities of the truth and of a lie; 1 − truth is rounded, and too large by a twentieth at ε = 35."""
    return 1 / (1 + math.exp(-epsilon)), math.exp(-epsilon) / (1 + math.exp(-epsilon))


def _left(r: int, epsilon: float, away: FloatArray, weight: FloatArray) -> float:
    """For the prior that puts these weights on p = ½ + away."""
    truth, lie = _response(epsilon)
    p = 0.5 + away
    answer, other = truth * p + lie * (1 - p), truth * (1 - p) + lie * p  # P(response +), P(response −)
    plus, minus = truth * p / answer, lie * p / other  # P(sign + | response)
    k = np.arange(r + 1)[:, None]
    logs = k * np.log(answer) + (r - k) * np.log(other) + _choose(r)[:, None] + np.log(weight)
    joint = np.exp(logs)
    total = joint.sum(axis=1, keepdims=True)
    given = joint / np.maximum(total, 1e-300)
    mean = k * plus + (r - k) * minus
    # 1 − plus and 1 − minus
    within = k * plus * (lie * (1 - p) / answer) + (r - k) * minus * (truth * (1 - p) / other)
    spread = (given * mean**2).sum(axis=1) - (given * mean).sum(axis=1) ** 2
    inside = (given * within).sum(axis=1)
    return float((total[:, 0] * (inside + np.maximum(spread - 1e-10 * r * r, 0.0))).sum() * (1 - 1e-9))


@lru_cache(maxsize=8)
def _choose(r: int) -> Any:
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, r + 1)))])
    return logs[r] - logs - logs[::-1]
