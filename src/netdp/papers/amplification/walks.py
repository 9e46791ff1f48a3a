"""Losses on walks that were really drawn: Figures 2b to 2d of Cyffers and Bellet (2021), and exact numbers beside them.

A walk of T steps on the complete graph starts at user 0; at times 1 … T−1 a uniformly random user holds the token. For every
ordered pair (u, v), what does v learn about u?

**By the paper's rule.** At every visit of v at time i ≥ 1 a *cycle* ends, of size m = i − (time of v's previous visit, 0 if
none). Its base loss e depends on the task (below). If u is known to be in it, as the user that handed the token to v or the
one that v handed it to at its previous visit (user 0 before its first), the loss is e, or 2e if u is both. Otherwise it is
ln(1 + (1 − (1 − 1/n)^m)(e^e − 1)). The cycles of v are composed by Kairouz, Oh and Viswanath (2015, Theorem 3.5) with slack
δ̃ = 10⁻⁷ per cycle. This is an *empirical* figure, not a guarantee: it looks at the path that happened, calls the contributors
secret nevertheless, and knows no release; see the errata 000-….

**Exactly.** The path taken as public, σ given: μ by `netdp.families.token.account.path`, the release included, ε at δ.

All users whom v knows from no cycle share one loss, so a run costs O(T + n²) for the rule; the exact losses
cost O(nT) compiled and are summarised a few observers at a time.

**What a cycle of m steps costs by the rule.**

*Sums.* ε₀/√m: m noises of one size on one sum.

*Histograms.* m reports of an ε₀-LDP randomizer are shuffled; the least of three bounds at slack δ:
Erlingsson et al. (2019), 12ε₀√(ln(1/δ)/m), stated for m ≥ 1000 and ε₀ < 1/2; and the privacy blanket of Balle, Bell,
Gascón and Nissim (2019) with Hoeffding's and with Bennett's inequality, for any randomizer: the blanket's weight is
γ = e^{−ε₀}, a = e^ε − 1, and one report of it counts between b₋ = γe^{−ε₀}(1 − e^{ε+2ε₀}) and b₊ = γe^{ε₀}(1 − e^{ε−2ε₀}),
with second moment at most c = γe^{ε₀}(e^{2ε} + 1) − 2γ²e^{ε−2ε₀}. With B of m reports in the blanket, B binomial,

    Hoeffding   E[(ΣL)₊ | B] ≤ b²/(4a) · e^{−2Ba²/b²},  b = b₊ − b₋
    Bennett     E[(ΣL)₊ | B] ≤ b₊/(a ln(1 + ab₊/c)) · e^{−B(c/b₊²)φ(ab₊/c)},  φ(x) = (1+x)ln(1+x) − x

and δ = E[(ΣL)₊]/(γm), where the mean over B is (1 − γ + γe^{−rate})^m. The last is no more than local: ε ≤ ε₀.

*Descent.* The seed says "amplification by iteration" and no formula; the authors' code is not known to us here. Our reading:
u's step is followed by j others with j uniform below m, each such contribution costs μ²/(j + 1) (Feldman, Mironov, Talwar and
Thakurta, 2018), so on average ε₀√(H_m/m), H_m the harmonic number.

**The figures** (`drawn_walks`) have the rule for every n and ε₀ beside the certified loss. Settings from the authors' code:
n ∈ {5, 10, 20, 50, 100, 200, 400}, T = 100n, ten walks, δ = 10⁻⁷, ε₀ ∈ {0.1, 0.4}. The rule's number is for the walk that
happened and is no guarantee; the certified one holds for every user over the draw of the walk, with hidden senders, and is
at δ = 10⁻⁷ as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from netdp.engines.maps import map_items
from netdp.errors import InvalidValue
from netdp.families.token.account.path import path_energy_blocks
from netdp.families.token.path import PathSum, UserArray
from netdp.numerics.arrays import FloatArray, Progress
from netdp.numerics.checks import count, positive
from netdp.papers.comparison import Comparison, Falls, Ordered
from netdp.papers.experiment import FigureKind, Observation, Panel, Result, Series, Size
from netdp.papers.formulas.amplification import advanced_composition
from netdp.papers.runs import Work
from netdp.privacy.gaussian import gaussian_epsilon
from netdp.privacy.guarantee import Claim

# a bisection that halves [0, ε₀] this often is exact to the last digits printed
_HALVINGS = 45


def sum_cycles(epsilon0: float, steps: int) -> FloatArray:
    """ε of a cycle of m steps at index m, for sums.

    >>> sum_cycles(0.4, 16)[[1, 4, 16]].tolist()
    [0.4, 0.2, 0.1]
    """
    sizes = np.maximum(np.arange(steps + 1), 1)
    out: FloatArray = epsilon0 / np.sqrt(sizes)
    return out


def descent_cycles(epsilon0: float, steps: int) -> FloatArray:
    """ε of a cycle of m steps at index m, for descent, by our reading.

    >>> descent_cycles(0.4, 4)[1:].round(4).tolist()
    [0.4, 0.3464, 0.3127, 0.2887]
    """
    sizes = np.maximum(np.arange(steps + 1), 1)
    harmonic = np.cumsum(1.0 / np.arange(1, steps + 1))
    out: FloatArray = epsilon0 * np.sqrt(np.concatenate([[1.0], harmonic]) / sizes)
    return out


def histogram_cycles(epsilon0: float, steps: int, delta: float) -> FloatArray:
    """ε of a cycle of m steps at index m, for histograms: the least of ε₀ and the three bounds.

    >>> cycles = histogram_cycles(0.4, 40_000, 1e-7)
    >>> cycles[[1, 100, 1000, 40_000]].round(4).tolist()
    [0.4, 0.3379, 0.099, 0.0143]
    """
    sizes = np.arange(steps + 1, dtype=float)
    # above a thousand the bounds fall smoothly: tabulated at 1,000 sizes, read off at the next smaller one (larger ε)
    some = np.unique(np.concatenate([np.arange(1, min(steps, 1000) + 1), np.geomspace(1, steps, 1000).astype(int)]))
    low, high = np.zeros(len(some)), np.full(len(some), epsilon0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = np.minimum(*blanket_deltas(epsilon0, middle, some)) <= delta
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    place = np.searchsorted(some, np.maximum(sizes, 1), side="right") - 1
    blanket: FloatArray = high[place]
    if epsilon0 >= 0.5:
        return blanket
    with np.errstate(divide="ignore"):
        simple = np.where(sizes >= 1000, 12 * epsilon0 * np.sqrt(math.log(1 / delta) / np.maximum(sizes, 1)), np.inf)
    out: FloatArray = np.minimum(blanket, simple)
    return out


def blanket_deltas(epsilon0: float, epsilon: FloatArray, reports: FloatArray) -> tuple[FloatArray, FloatArray]:
    """δ at ε of m shuffled reports: Hoeffding's and Bennett's bound on the privacy blanket, for any ε₀-LDP randomizer."""
    gamma = math.exp(-epsilon0)
    a = np.expm1(epsilon)
    upper = gamma * math.exp(epsilon0) * -np.expm1(epsilon - 2 * epsilon0)
    lower = gamma * math.exp(-epsilon0) * -np.expm1(epsilon + 2 * epsilon0)
    width = upper - lower
    moment = gamma * math.exp(epsilon0) * (np.exp(2 * epsilon) + 1) - 2 * gamma**2 * np.exp(epsilon - 2 * epsilon0)
    with np.errstate(divide="ignore", invalid="ignore"):
        hoeffding = width**2 / (4 * a) * _thinned(2 * a**2 / width**2, gamma, reports)
        u = a * upper / moment
        phi = (1 + u) * np.log1p(u) - u
        bennett = upper / (a * np.log1p(u)) * _thinned(moment / upper**2 * phi, gamma, reports)
    scale = 1 / (gamma * reports)
    return np.nan_to_num(hoeffding * scale, nan=np.inf), np.nan_to_num(bennett * scale, nan=np.inf)


def _thinned(rate: FloatArray, gamma: float, reports: FloatArray) -> FloatArray:
    """E[e^{−rate·B}], B ~ Binomial(reports, gamma)."""
    out: FloatArray = np.exp(reports * np.log1p(gamma * np.expm1(-rate)))
    return out


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
    (ε₀, δ·n/steps): √(2 ln(1.25·steps/(nδ)))/ε₀. Walks are drawn side by side where that pays (`netdp.engines`), each from a
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
    path = _path(seed, users, length)
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


def _path(seed: np.random.SeedSequence, n: int, steps: int) -> UserArray:
    """Who holds the token at times 0, 1, …: user 0 first, then anybody."""
    path = np.random.default_rng(seed).integers(n, size=steps, dtype=np.int32)
    path[0] = 0
    return path


def rule_losses(path: UserArray, n: int, cycle: FloatArray) -> Iterator[FloatArray]:
    """The paper's rule on one path: for every observer v in turn the row of its losses about all u, nan at v.

    `cycle[m]` is the base loss of a cycle of m steps (see the module's text). The row is reused: copy what is to be kept.
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


EPSILONS = (0.1, 0.4)

DELTA = 1e-7

SIZES = (5, 10, 20, 50, 100, 200, 400)


def by_rule(n: int, epsilon0: float, runs: int, cycles: Callable[[float, int], FloatArray]) -> dict[str, float]:
    """Mean, least and most of the rule's losses over all pairs and `runs` walks of 100n steps.

    The seed belongs to n and ε₀, so any order of work gives the same walks.
    """
    found, cycle = _Summary(), cycles(epsilon0, 100 * n)
    for child in np.random.SeedSequence(round(1000 * epsilon0) * 10_000 + n).spawn(runs):
        for row in rule_losses(_path(child, n, 100 * n), n, cycle):
            found.add(row)
    return {"mean": found.total / (runs * n * (n - 1)), "best": found.least, "worst": found.most}


def composed_locally(epsilon0: float) -> float:
    """A hundred contributions by advanced composition: the paper's local DP, several times what is true.

    >>> round(composed_locally(0.1), 1)
    6.7
    """
    return advanced_composition(epsilon0, 100, DELTA)


Losses = dict[tuple[float, int], dict[str, float]]
"""(ε₀, n) → mean, best and worst loss by the rule, and the certified one."""


def drawn_walks(
    task: str,
    size: Size,
    work: Work,
    function: Callable[[Any], dict[str, float]],
    local: Callable[[float], float],
    findings: Callable[[Losses], Iterable[Observation]],
    settings: dict[str, Any] | None = None,
    compared: Callable[[Losses], list[Comparison]] | None = None,
) -> Result:
    """Figure 2b, 2c or 2d: `function` of every [n, ε₀, walks], a panel for each ε₀, `local` DP beside it.

    In full all sizes and ten walks each; quickly up to 200 users and three walks.
    """
    sizes, runs = (SIZES, 10) if size is Size.FULL else (SIZES[:-1], 3)
    found = work.by_key(function, {(epsilon0, n): [n, epsilon0, runs] for epsilon0 in EPSILONS for n in sizes})
    panels = []
    for epsilon0 in EPSILONS:
        parts = {key: [found[epsilon0, n][key] for n in sizes] for key in ("mean", "best", "worst", "certified")}
        composed, exact = ([loss(epsilon0)] * len(sizes) for loss in (composed_locally, local))
        series = (
            Series("authors' rule, mean", sizes, parts["mean"], FigureKind.PUBLISHED, parts["best"], parts["worst"]),
            Series("certified, sender hidden", sizes, parts["certified"], FigureKind.CERTIFIED),
            Series("local DP as the paper composes it", sizes, composed, FigureKind.PUBLISHED),
            Series("local DP, exact", sizes, exact, FigureKind.LOCAL),
        )
        panels.append(
            Panel(
                f"{task}, ε₀ = {epsilon0}",
                "number of users n",
                "ε at δ = 10⁻⁷",
                series,
                log_x=True,
                log_y=True,
                band="its best to its worst pair",
            )
        )
    return Result(
        settings={"T": "100 n", "walks": runs, "δ": DELTA, **(settings or {}), "ε₀": list(EPSILONS)},
        findings=tuple(findings(found)),
        comparisons=(*said_of_all(task, found), *(() if compared is None else compared(found))),
        panels=tuple(panels),
    )


def said_of_all(task: str, found: Losses) -> Iterator[Comparison]:
    """What Section 5.2 says of Figures 2b to 2d, whose curves have no numbers."""
    for epsilon0 in EPSILONS:
        rows = {n: one for (e, n), one in found.items() if e == epsilon0 and n >= 20}
        mean, best, worst = ([one[part] for one in rows.values()] for part in ("mean", "best", "worst"))
        yield Comparison(
            f"{task}, ε₀ = {epsilon0}: local DP and the mean loss by the rule, n from 20 on",
            "the gains are significant even for small n"
            if task == "Sums"
            else "the empirical gains are also significant",
            {"local": [composed_locally(epsilon0)] * len(mean), "rule": mean},
            Ordered(ratio=1.5),
            note="local DP as the paper composes it",
        )
        yield Comparison(
            f"{task}, ε₀ = {epsilon0}: mean loss by the rule over n",
            "the curve falls with n",
            {"rule": mean},
            Falls(2.0),
        )
        yield Comparison(
            f"{task}, ε₀ = {epsilon0}: worst, mean and best pair",
            "error bars give the best and worst cases, all below local DP",
            {"local": [composed_locally(epsilon0)] * len(mean), "worst": worst, "mean": mean, "best": best},
            Ordered(ratio=1.01),
        )


def largest_findings(found: Losses, local: Callable[[float], float], what: str) -> Iterator[Observation]:
    """At the largest n, for every ε₀: the certified loss is below the rule's mean, and that below local DP's exact one."""
    largest = max(n for _, n in found)
    for epsilon0 in EPSILONS:
        last = found[epsilon0, largest]
        yield Observation(
            f"mean ε over all pairs, n = {largest}, ε₀ = {epsilon0}",
            last["certified"] < last["mean"] < local(epsilon0),
            formula=last["mean"],
            certified=last["certified"],
            claim=Claim.UPPER,
            note=f"local DP of 100 {what}: {local(epsilon0):.3g}",
        )
