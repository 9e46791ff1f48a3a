"""Losses on walks that were really drawn: the experiment of Cyffers and Bellet (2021), figures 2b to 2d, and exact numbers.

A walk of T steps on the complete graph starts at user 0; at times 1 … T−1 a uniformly random user holds the token. For every
ordered pair (u, v), what does v learn about u?

**By the paper's rule.** At every visit of v at time i ≥ 1 a *cycle* ends, of size m = i − (time of v's previous visit, 0 if
none). Its base loss e depends on the task (`cycles.py`); for sums e = ε₀/√m. If u is known to be in it, as the user that
handed the token to v or the one that v handed it to at its previous visit (user 0 before its first), the loss is e, or 2e if
u is both. Otherwise it is ln(1 + (1 − (1 − 1/n)^m)(e^e − 1)). The cycles of v are composed by Kairouz, Oh and Viswanath
(2015, Theorem 3.5) with slack δ̃ = 10⁻⁷ per cycle. This is an *empirical* figure, not a guarantee: it looks at the path that
happened, calls the contributors secret nevertheless, and knows no release.

**Exactly.** The path taken as public, σ given: μ by `netdp.accounting.token.known_path`, the release included, ε at δ.

All users whom v knows from no cycle share one loss, so a run costs O(T + n²) for the rule; the exact losses
cost O(nT) compiled and are summarised a few observers at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit

from netdp.accounting.token.known_path import path_energy_blocks
from netdp.engine import map_items
from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, Progress
from netdp.numerics.checks import count, positive
from netdp.privacy import Claim, gaussian_epsilon
from netdp.protocols.path import PathSum, UserArray

from .cycles import sum_cycles

# δ̃ per cycle, as in the authors' experiment.
SLACK = 1e-7
# ε as a function of μ is read off a table of this many points, rounded up.
_TABLE = 1 << 14


@dataclass(frozen=True)
class WalkLosses:
    """Losses over all ordered pairs u ≠ v and all runs: by the paper's rule, and exactly.

    `mean`, `best` and `worst` are the paper's rule as its authors compute it: claim "published", no guarantee. The others are
    exact for a public path. `exact_mean` is rounded up, by about a part in 1000.
    """

    rule_claim: ClassVar[Claim] = Claim.PUBLISHED
    exact_claim: ClassVar[Claim] = Claim.EXACT

    n: int
    steps: int
    runs: int
    epsilon0: float
    sigma: float
    delta: float
    mean: float
    best: float
    worst: float
    exact_mean: float
    exact_best: float
    exact_worst: float


def walk_losses(
    n: int,
    epsilon0: float = 0.1,
    *,
    steps: int | None = None,
    runs: int = 10,
    seed: int = 0,
    sigma: float | None = None,
    delta: float = 1e-6,
    progress: Progress | None = None,
) -> WalkLosses:
    """Draw `runs` walks of `steps` (100n by default) and summarise what every user learns about every other.

    `sigma` is the noise of one contribution with Δ = 1; by default that of the classical Gaussian mechanism for
    (ε₀, δ·n/steps): √(2 ln(1.25·steps/(nδ)))/ε₀. Walks are drawn side by side where that pays (`netdp.engine`), each from a
    seed of its own.

    >>> w = walk_losses(50, runs=2)
    >>> w.best < w.mean < w.worst, w.exact_best < w.exact_mean < w.exact_worst
    (True, True)
    """
    users, repeats, e0 = count("n", n), count("runs", runs), positive("epsilon0", epsilon0)
    if users < 2:
        raise InvalidValue("a walk needs at least 2 users, got n=1")
    length = 100 * users if steps is None else count("steps", steps)
    if not 0 < delta < 1:
        raise InvalidValue(f"delta must lie in (0, 1), got {delta!r}; use a small probability such as 1e-6")
    if sigma is None:
        sigma = math.sqrt(2 * math.log(1.25 * max(length / users, 1.0) / delta)) / e0
    sigma = positive("sigma", sigma)
    rule, exact = _Summary(), _Summary()
    children = np.random.SeedSequence(seed).spawn(repeats)
    for by_rule, exactly in map_items(_one_walk, children, shared=(users, length, e0, sigma, delta), progress=progress):
        rule.join(by_rule)
        exact.join(exactly)
    pairs = repeats * users * (users - 1)
    return WalkLosses(
        n=users,
        steps=length,
        runs=repeats,
        epsilon0=e0,
        sigma=sigma,
        delta=delta,
        mean=rule.total / pairs,
        best=rule.least,
        worst=rule.most,
        exact_mean=exact.total / pairs,
        exact_best=exact.least,
        exact_worst=exact.most,
    )


def _one_walk(
    users: int, length: int, epsilon0: float, sigma: float, delta: float, seed: np.random.SeedSequence
) -> tuple[_Summary, _Summary]:
    """The losses on one walk, by the rule and exactly."""
    path = np.random.default_rng(seed).integers(users, size=length, dtype=np.int32)
    path[0] = 0
    rule, exact = _Summary(), _Exact(length, sigma, delta)
    for row in rule_losses(path, users, sum_cycles(epsilon0, length)):
        rule.add(row)
    for _, rows in path_energy_blocks(PathSum(users, (path,), sigma)):
        exact.add(rows)
    return rule, exact


class _Summary:
    """Sum, least and most of losses that come row by row; nan is skipped."""

    def __init__(self) -> None:
        self.total, self.least, self.most = 0.0, math.inf, 0.0

    def add(self, losses: FloatArray) -> None:
        self.total += float(np.nansum(losses))
        self.least, self.most = min(self.least, float(np.nanmin(losses))), max(self.most, float(np.nanmax(losses)))

    def join(self, other: _Summary) -> None:
        """Those of another walk, too."""
        self.total += other.total
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)


def rule_summary(n: int, cycle: FloatArray, runs: int, seed: int) -> dict[str, float]:
    """Mean, least and most of the rule's losses over all pairs and `runs` walks of 100n steps."""
    found = _Summary()
    for child in np.random.SeedSequence(seed).spawn(runs):
        path = np.random.default_rng(child).integers(n, size=100 * n, dtype=np.int32)
        path[0] = 0
        for row in rule_losses(path, n, cycle):
            found.add(row)
    return {"mean": found.total / (runs * n * (n - 1)), "best": found.least, "worst": found.most}


def rule_losses(path: UserArray, n: int, cycle: FloatArray) -> Iterator[FloatArray]:
    """The paper's rule on one path: for every observer v in turn the row of its losses about all u, nan at v.

    `cycle[m]` is the base loss of a cycle of m steps (`cycles.py`). The row is reused: copy what is to be kept.
    """
    # the visits of every user at times ≥ 1, in order: times[bounds[v] : bounds[v + 1]]
    times = np.argsort(path[1:], kind="stable") + 1
    bounds = np.searchsorted(path[times], np.arange(n + 1))
    row, changes, touched = np.empty(n), np.zeros((n, 3)), np.empty(n, dtype=np.int64)
    for v in range(n):
        _rule_row(path, times[bounds[v] : bounds[v + 1]], v, n, cycle, SLACK, row, changes, touched)
        yield row


@njit(nogil=True, cache=True)
def _composed(plain: float, drift: float, square: float, slack: float) -> float:
    """Heterogeneous composition: Σε, or Σε·tanh(ε/2) plus a deviation of √(2Σε² ln(…)), whichever is less."""
    inside = min(math.e + math.sqrt(max(square, 0.0)) / slack, 1.0 / slack)
    return min(plain, drift + math.sqrt(2.0 * max(square, 0.0) * math.log(max(inside, 1.0))))


@njit(nogil=True, cache=True)
def _rule_row(
    path: Any, visits: Any, v: int, n: int, cycle: Any, slack: float, row: Any, changes: Any, touched: Any
) -> None:
    """The losses of all u to v. Every cycle counts for all as if they were not known; for known ones it is corrected."""
    plain = drift = square = 0.0
    previous, receiver, known = 0, path[1] if v == 0 and len(path) > 1 else 0, 0
    keep = math.log1p(-1.0 / n)
    for i in visits:
        size = i - previous
        base = cycle[size]
        loss = math.log1p(-math.expm1(size * keep) * math.expm1(base))
        plain, drift, square = plain + loss, drift + loss * math.tanh(loss / 2), square + loss**2
        sender = path[i - 1]
        for which in range(2):
            u = sender if which == 0 else receiver
            if u == v or (which == 1 and receiver == sender):
                continue
            told = 2 * base if receiver == sender else base
            if changes[u, 2] == 0.0:
                touched[known] = u
                known += 1
            changes[u, 0] += told - loss
            changes[u, 1] += told * math.tanh(told / 2) - loss * math.tanh(loss / 2)
            changes[u, 2] += told**2 - loss**2
        previous, receiver = i, path[i + 1] if i + 1 < len(path) else 0
    total = slack * max(len(visits), 1)
    row[:] = _composed(plain, drift, square, total)
    for k in range(known):
        u = touched[k]
        row[u] = _composed(plain + changes[u, 0], drift + changes[u, 1], square + changes[u, 2], total)
        changes[u] = 0.0
    row[v] = np.nan


class _Exact(_Summary):
    """ε from μ². Least and most are computed; the sum is read off a table in which every μ is rounded up.

    On a path of T steps a contribution gives μ² between 1/(Tσ²) and T/σ² or nothing, so the table covers all.
    """

    def __init__(self, steps: int, sigma: float, delta: float) -> None:
        super().__init__()
        self._reach, self._delta, self._sigma = math.log(steps + 1.0) / 2, delta, sigma
        self._table = np.asarray(
            gaussian_epsilon(np.exp(np.linspace(-self._reach, self._reach, _TABLE)) / sigma, delta)
        )
        self._energies = math.inf, 0.0

    def add(self, energies: FloatArray) -> None:
        self._energies = (
            min(self._energies[0], float(np.nanmin(energies))),
            max(self._energies[1], float(np.nanmax(energies))),
        )
        there = energies[energies > 0] * self._sigma**2  # not nan, not 0
        place = np.ceil((np.log(there) / 2 + self._reach) * ((_TABLE - 1) / (2 * self._reach)) + 1e-6)
        self.total += float(self._table[np.clip(place, 0, _TABLE - 1).astype(np.int64)].sum())
        self.least, self.most = (float(gaussian_epsilon(math.sqrt(e), self._delta)) for e in self._energies)
