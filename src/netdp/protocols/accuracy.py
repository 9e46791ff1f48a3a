"""How far an answer is from the truth: `expected_error`, predicted without a run, and `limits`, which no protocol beats.

Families enter their predictions in `predictions`. `limits` is a lower bound on the error of a private mean wherever parties
hear only their neighbours: r disjoint sets of parties with at most f neighbours each leave at least (Δ/n)²·r·(1 − δ)e^ε/(1
+ e^ε)². Proof: docs/proofs/coalitions.md#limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.graphs.convert import as_graph
from netdp.graphs.cuts import smallest_cut_off
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import between, finite, positive, whole
from netdp.privacy.guarantee import Claim
from netdp.privacy.wording import readable
from netdp.protocols.base import Protocol
from netdp.protocols.table import Table

predictions = Table("the predicted error", "has no predicted error", part="error")
"""One function per protocol: (protocol, values or None) → `ExpectedError`."""


forecasts = Table("the error of an answer", "has no forecast of its own", part="error")
"""(protocol) → what is said of the error where that is not `expected_error(protocol)`: the largest one, or why it is left out."""


@dataclass(frozen=True)
class ExpectedError:
    """Expected squared error of the answer (`Protocol.answer`), averaged over the parties, by its cause; and what is claimed of it.

    noise     the noise that parties add, or random answers
    masks     what mixing leaves of the masks
    refresh   fresh noise added on the way
    mixing    what mixing leaves of the differences between the parties
    sampling  who happened to be visited how often
    rounding  of values to a grid, and of what is sent
    claim     "exact"; "estimate": within some 5 % of what happens; or "upper": never exceeded, and shown as "at most"
    bound     of an estimate: a mean squared error that is never exceeded; infinite if none is proved

    >>> from netdp.privacy.guarantee import Claim
    >>> for claim in (Claim.EXACT, Claim.UPPER, Claim.ESTIMATE):
    ...     error = ExpectedError(4.0, claim=claim, bound=9.0)
    ...     print(error.words, "|", error.cell)
    2.00 | 2.00
    at most 2.00 | ≤ 2.00
    about 2.00, at most 3.00 | 2.00
    """

    noise: float
    masks: float = 0.0
    refresh: float = 0.0
    mixing: float = 0.0
    sampling: float = 0.0
    rounding: float = 0.0
    claim: Claim = Claim.EXACT
    bound: float = math.inf

    @property
    def parts(self) -> dict[str, float]:
        """The mean squared error by its causes."""
        return {name: value for name, value in vars(self).items() if name not in ("claim", "bound")}

    @property
    def total(self) -> float:
        """The mean squared error."""
        return self.noise + self.masks + self.refresh + self.mixing + self.sampling + self.rounding

    @property
    def rmse(self) -> float:
        """Its square root."""
        return math.sqrt(self.total)

    @property
    def at_most(self) -> float | None:
        """A root mean squared error that is never exceeded; None if none is proved."""
        if self.claim is not Claim.ESTIMATE:
            return self.rmse
        return math.sqrt(self.bound) if math.isfinite(self.bound) else None

    @property
    def words(self) -> str:
        """The root mean squared error, and what is claimed of it."""
        if self.claim is Claim.UPPER:
            return f"at most {readable(self.rmse)}"
        if self.claim is Claim.ESTIMATE:
            return f"about {readable(self.rmse)}" + (f", at most {readable(most)}" if (most := self.at_most) else "")
        return readable(self.rmse)

    @property
    def cell(self) -> str:
        """The same for a table: a bound with a sign before it."""
        return f"≤ {readable(self.rmse)}" if self.claim is Claim.UPPER else readable(self.rmse)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `at_most` is None where no bound is proved."""
        squared = {**self.parts, "total": self.total}
        return {"rmse": self.rmse, "claim": self.claim.value, "at_most": self.at_most, "squared": squared}

    def __str__(self) -> str:
        parts = [f"{name} {value:.3g}" for name, value in self.parts.items() if value]
        return f"root mean squared error {self.words} (squared: {', '.join(parts) or '0'})"


def expected_error(protocol: Protocol, values: npt.ArrayLike | Any | None = None, **options: Any) -> ExpectedError:
    """The expected error of what the parties hold in the end.

    `values` (n,) or (n, d): for these values; with vectors the error is the squared L2 norm, so each coordinate's noise
    counts. None: the largest over all values from an interval of length Δ, the protocol's sensitivity; "at most" where the
    largest is bounded and perhaps not attained. The claim of what is returned says which.
    A protocol that learns takes a `netdp.learn.Landscape`, what is known of the losses, instead; the error is then an `ExcessRisk`.
    Options belong to particular protocols: `transcript` for random edges that are known, `mechanism` for shuffling, `average`
    ("last" or "weighted" model) and `malicious` (parties that lie) for learning.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> error = expected_error(Gossip(graphs.complete(4), rounds=1, sigma=2.0))
    >>> round(error.noise, 9)                                         # one round averages perfectly: σ²/n
    1.0
    """
    if not isinstance(protocol, Protocol):
        raise InvalidValue(f"the first argument must be a protocol such as netdp.Gossip(…), got {protocol!r}")
    error: ExpectedError = predictions(protocol, values, **options)
    return error


_SEARCHED = 300  # parties of more neighbours than colluders around whom small sets are looked for

_PRIOR = 33  # points of the prior

_DOWN = 1 - 1e-9  # rounding of sums of some thousand positive terms


UNSHARED = "parties share no secrets beforehand (no keys, pads or common coins; masked sums do, and may go below)"
"""What a limit assumes that rests on several parts of a graph."""


@dataclass(frozen=True)
class Limit:
    """No private estimate of the mean has a smaller error: root mean square, for the worst values.

    If it rests on several parts of the graph, it holds only for parties that share no secrets beforehand: pads, which two parties
    far from each other agree on by public keys, break it.

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
                f"no protocol of messages between neighbours, private against {who}, has an error below {self.rmse:.3g}, "
                "whatever secrets they share"
            )
        return (
            f"no protocol of messages between neighbours, private against {who}, has an error below {self.rmse:.3g} "
            f"on this graph if {UNSHARED}: {len(self.sets)} parts of it have at most {self.colluders} "
            f"neighbour{'' if self.colluders == 1 else 's'}"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "rmse": self.rmse, "sets": [list(one) for one in self.sets], "counted": self.counted,
            "epsilon": self.epsilon, "delta": self.delta, "colluders": self.colluders,
            "assumes": UNSHARED if len(self.sets) > 1 else None,
        }  # fmt: skip


def limits(graph: Graph, epsilon: float, delta: float = 0.0, *, colluders: int = 1, sensitivity: float = 1.0) -> Limit:
    """The least root mean squared error of any protocol on this graph that is (ε, δ)-private against any so many parties.

    Its parties send messages to neighbours, and share no secrets beforehand (`Limit`).

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
    sets: list[tuple[int, ...]] = [(int(u),) for u in np.flatnonzero(graph.degrees <= colluders)]
    taken = {u for members in sets for u in members}
    others = [u for u in np.argsort(graph.degrees, kind="stable").tolist() if u not in taken]
    for u in others[:_SEARCHED]:
        if u in taken:
            continue
        cut = smallest_cut_off(graph, u, colluders, 400)
        if cut.coalition is None or cut.size > graph.n // 2:
            continue
        part = _component(graph, u, set(cut.coalition))
        if not part & taken:
            sets.append(tuple(sorted(part)))
            taken |= part
    return tuple(sets)


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
