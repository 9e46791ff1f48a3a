"""Users who collude with the curator (docs/guarantees.md#curator-and-users).

Colluders read every report that passes through their hands and know from whom it came and where it goes. Let Q be the walk
killed at the colluders, and t₁ ≤ t.

**Theorem.** Take for the label of a report (`crowds`) its place at time t₁ if no colluder has met it by then: all that
happens to it later is a function of that place and of coins of its own. If it was caught before, or is at a place outside a
set G of places, it is told. So with g_u = Σ_{i∈G} Q^{t₁}(u, i) the victim's report is told with probability 1 − g_u, and otherwise
every other report w is in its crowd with probability g_u·min_{i∈G} Q^{t₁}(w, i)/Q^{t₁}(u, i). With any law ν on G, and l_w ν ≤
Q^{t₁}(w, ·) on G, Q^{t₁}(u, ·) ≤ h_u ν there, that is at least g_u l_w/h_u. The older choice, to tell with probability 1 − l_u and
have everybody else in the crowd with probability l_w, holds as well. Every t₁ and G give a bound; the least counts, user by user. ∎

The honest users of one component of the graph without the colluders are treated together; components do not hide each other.

**Small components.** Q^{t₁} is followed for all pairs; entries are ≥ 0, so that errors stay relative. ν is the
quasi-stationary law.

**Large components.** Q = D^−½ M D^½ with M symmetric. Let φ ≥ 0 be a unit vector, ρ = φᵀMφ, r = Mφ − ρφ, and B = (I − φφᵀ)M(I −
φφᵀ). M differs from ρφφᵀ + B by rφᵀ + φrᵀ up to rounding, of norm ‖r‖, and no norm exceeds 1. So for t₁ = 2s

    |M^{t₁}(u, i)/(ρ^{t₁}φ_uφ_i) − 1| ≤ c_uc_i,   c_u² = (‖B^s e_u‖² + t₁‖r‖)/(ρ^{t₁}φ_u²),

‖B^s e_u‖ bounded for all users at once with random vectors, as in `netdp.graphs.returns`. φ comes from a power iteration;
nothing rests on it but sharpness. ν_i ∝ φ_i√d_i, and G are the places with c_i below a cut. ∎

What cannot be mended: in the first round a neighbour u of a colluder hands it, with probability (1 − ℓ)/degree, a report
that can only be its own. So δ_u(ε) ≥ δ_{ε₀}(ε)·(1 − ℓ)/degree for any number of rounds, δ_{ε₀} the profile of the report
alone: at a δ well below 1/degree the ε of u stays near ε₀. (Near, not at it: for binary response this says
ε ≥ ln(e^ε₀ − (e^ε₀ + 1)·δ·degree/(1 − ℓ)), and between that and ε₀ there may be something to gain.) In the same way a report that
is caught before it has mixed is told here: at a δ below the chance of that, about t₁ times the colluders' share of all edges,
the ε of everybody stays near ε₀.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.accounting.heap.clones import Heap
from netdp.graphs.returns import FAILURE
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.privacy import Adjacency, Claim, Guarantee, ProfileCurve, SharedCurve
from netdp.protocols import Shuffle

from .crowds import groups
from .separation import rounded_up

PAIRS = 1000
"""Components of up to this many honest users: all pairs are followed."""

_VECTORS, _WORK = 96, 6e9
_RANKS = (0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.999, 1.0)
_LAWS = 200  # steps towards the quasi-stationary law


@dataclass(frozen=True, eq=False)
class Hiding:
    """One choice of t₁ and G for the honest `users` of a component.

    places   G, as indices into `users`
    seen     g_u: the chance of being at a place of G at time t₁, uncaught
    least    l_u, in units of a law on G
    most     h_u, likewise
    """

    users: npt.NDArray[np.int64]
    time: int
    places: npt.NDArray[np.int64]
    seen: FloatArray
    least: FloatArray
    most: FloatArray
    failure: float = 0.0

    @property
    def worth(self) -> float:
        """How many users find how large a crowd: to choose among times."""
        others = float(self.least.sum())
        return float(np.minimum(self.seen * self.seen * others / np.maximum(self.most, 1e-300), len(self.users)).sum())


def against_coalition(protocol: Shuffle, members: tuple[int, ...], progress: Progress | None = None) -> Guarantee:
    """What the curator and these users learn together about every other user."""
    from .shuffling import REFERENCES, statements

    found = list(hide(protocol, members, progress))
    failure = sum({int(one.users[0]): one.failure for one in found}.values())  # one draw of coins for every component
    sure = "the bounds on the walk's returns rest on the accountant's own coins: wrong with probability < "
    return Guarantee(
        curve=coalition_curve(protocol, members, found),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            *statements(protocol),
            f"the curator and users {', '.join(map(str, members))} pool all they see; nobody else colludes",
            *([sure + rounded_up(2 * failure)] if failure else []),
        ),
        references=REFERENCES,
    )


def hide(protocol: Shuffle, members: tuple[int, ...], progress: Progress | None = None) -> Iterator[Hiding]:
    """A few choices of t₁ and G for every component of honest users."""
    graph = protocol.graph
    honest = np.setdiff1d(np.arange(graph.n), members)
    if not honest.size:
        return
    part = graph.subgraph(honest.tolist()).components()
    for c in range(int(part.max()) + 1):
        users = honest[part == c]
        if len(users) < 2:
            continue
        Q = protocol.transition[users][:, users].tocsr()
        # entries ≥ 0 and sums of at most so many of them: errors stay relative, step by step
        step = 4 * (int(np.diff(protocol.transition.indptr).max()) + 4) * UNIT
        every = _by_pairs if len(users) <= PAIRS else _by_returns
        found = list(every(protocol, users, Q, step, progress))
        best = max((one.worth for one in found), default=0.0)
        good = [one for one in found if one.worth > 0.02 * best]
        # the best, and a spread of the others: early ones tell less, late ones hide better
        good.sort(key=lambda one: one.time)
        keep = {int(i) for i in np.linspace(0, len(good) - 1, min(4, len(good)))}
        keep.add(max(range(len(good)), key=lambda i: good[i].worth, default=0))
        yield from (good[i] for i in sorted(keep) if i < len(good))


def _times(rounds: int, most: int) -> list[int]:
    count = int(6 * math.log2(max(min(rounds, most), 1))) + 1
    grid = {int(2.0 ** (k / 6)) for k in range(count)}
    return sorted({min(rounds, most), *(t for t in grid if t <= rounds)})


def _by_pairs(protocol: Shuffle, users: Any, Q: Any, step: float, progress: Progress | None) -> Iterator[Hiding]:
    law = quasi_stationary(Q)
    places = np.flatnonzero(law > 0)
    following = Q.T.tocsr()
    walk = np.eye(len(users))  # [i, u]: alive at i, having started at u
    wanted, best = set(_times(protocol.rounds, 4096)), 0.0
    for t in range(1, min(protocol.rounds, 4096) + 1):
        walk = following @ walk
        if t in wanted:
            safe = max(0.0, 1 - t * step)
            ratio = walk[places] / law[places, None]
            hiding = Hiding(
                users,
                t,
                places,
                np.clip(walk[places].sum(axis=0) * safe * (1 - 4 * len(users) * UNIT), 0.0, 1.0),
                np.clip(ratio.min(axis=0) * safe, 0.0, 1.0),
                ratio.max(axis=0) * (1 + 2 * t * step),
            )
            yield hiding
            best = max(best, hiding.worth)
            if hiding.worth < 0.02 * best:
                return
        if progress is not None:
            progress(t, protocol.rounds)


def quasi_stationary(Q: Any) -> FloatArray:
    """Where a walk that has not been caught for long is; any law is valid, this one is good."""
    law = np.full(Q.shape[0], 1.0 / Q.shape[0])
    back = Q.T.tocsr()
    for _ in range(_LAWS):
        # half a step of laziness keeps bipartite parts from flipping
        law = 0.5 * law + 0.5 * (back @ law)
        law /= law.sum()
    return np.asarray(law / (law.sum() * (1 - 4 * len(law) * UNIT)))


def _by_returns(protocol: Shuffle, users: Any, Q: Any, step: float, progress: Progress | None) -> Iterator[Hiding]:
    from scipy.sparse import csr_array, diags_array
    from scipy.stats import chi2

    from netdp.numerics.kernels import csr_times_block

    degree = protocol.graph.degrees[users].astype(np.float64)
    root = np.sqrt(degree)
    M = csr_array(diags_array(root) @ Q @ diags_array(1 / root))
    M = csr_array((M + M.T) / 2)  # symmetric but for rounding, which `step` covers
    phi = _slowest(M, root)
    rho = float(phi @ (M @ phi))
    rest = float(np.linalg.norm(M @ phi - rho * phi)) * 1.01 + (len(phi) + int(degree.max()) + 16) * UNIT * 4
    most = max(2, int(_WORK / (M.nnz * _VECTORS)))
    halves = sorted({max(1, t // 2) for t in _times(protocol.rounds, 2 * most) if t >= 2})
    if not halves:
        return
    coins = np.random.default_rng(
        np.random.SeedSequence([int(protocol.graph.digest, 16), *map(int, users[:4]), len(users)])
    )
    squares = np.zeros((len(halves), len(users)))
    for start in range(0, _VECTORS, 32):
        y = coins.standard_normal((len(users), min(32, _VECTORS - start)))
        y -= phi[:, None] * (phi @ y)
        error, looked = 4 * rest * np.linalg.norm(y, axis=0), 0
        for s in range(1, halves[-1] + 1):
            error += (2 * step + 2 * rest) * np.linalg.norm(y, axis=0)
            y = csr_times_block(M.indptr, M.indices, M.data, y)
            if s % 8 == 0:
                error += 2 * rest * np.linalg.norm(y, axis=0)
                y -= phi[:, None] * (phi @ y)
            if looked < len(halves) and s == halves[looked]:
                squares[looked] += ((np.abs(y) + error) ** 2).sum(axis=1)
                looked += 1
            if progress is not None and s % 64 == 0:
                progress(start * halves[-1] + 32 * s, _VECTORS * halves[-1])
    quantile = 0.99 * float(chi2.ppf(FAILURE / (len(users) * len(halves)), _VECTORS))
    for s, square in zip(halves, squares, strict=True):
        t = 2 * s
        with np.errstate(divide="ignore"):
            far = np.sqrt((square / quantile + t * (rest + step)) / rho**t) / phi
        ordered = np.sort(far)
        for cut in dict.fromkeys(float(ordered[int(q * (len(far) - 1))]) for q in (1.0, 0.999, 0.99)):
            if not cut < 1e6:
                continue
            there = far <= cut
            scale = (rho**t * (phi / root)) * float(phi[there] @ root[there])
            off = np.minimum(far, 1e100) * cut * (1 + 1e-12)
            seen = _seen(Q, there, t) * max(0.0, 1 - t * step)
            least = np.clip(scale * (1 - off), 0.0, 1.0) * (1 - 1e-9)
            yield Hiding(users, t, np.flatnonzero(there), seen, least, scale * (1 + off) * (1 + 1e-9), FAILURE)


def _slowest(M: Any, start: FloatArray) -> FloatArray:
    """The vector that a walk among the honest users forgets last, as well as it can be had."""
    from scipy.sparse.linalg import ArpackError, eigsh

    try:
        phi = np.abs(eigsh(M, k=1, which="LA", v0=start, ncv=48, tol=1e-15, maxiter=400)[1][:, 0])
    except ArpackError:
        phi = start
    for _ in range(_LAWS):
        phi = 0.5 * phi + 0.5 * (M @ phi)
        phi /= np.linalg.norm(phi)
    return np.asarray(phi)


def _seen(Q: Any, there: npt.NDArray[np.bool_], t: int) -> FloatArray:
    chance = there.astype(np.float64)
    for _ in range(t):
        chance = Q @ chance
    return np.asarray(chance)


def coalition_curve(protocol: Shuffle, members: tuple[int, ...], found: list[Hiding]) -> SharedCurve:
    """One curve per user, none at the colluders: the least of what every choice gives."""
    n, e0 = protocol.n, protocol.epsilon0
    tables = [_Rows(protocol, one) for one in found]
    eps = np.unique(np.concatenate([[0.0, e0], *(table.knots() for table in tables)]))
    eps = eps[eps <= e0]
    alone = Heap.of(0, e0, delta0=protocol.delta0).deltas(eps)
    rows = [np.minimum.accumulate(alone)]
    which = np.zeros((len(tables), n), dtype=np.int64)  # 0: nothing but ε₀
    for k, table in enumerate(tables):
        number, values = table.deltas(eps)
        which[k, table.hiding.users] = number + len(rows)
        rows.extend(np.minimum.accumulate(np.minimum(values, alone), axis=1))
    stacked = np.stack(rows)
    combos, index = np.unique(which.T, axis=0, return_inverse=True)
    final = np.stack([stacked[list(combo) or [0]].min(axis=0) for combo in combos]) if len(tables) else stacked[:1]
    places = index.reshape(-1).astype(np.int64) if len(tables) else np.zeros(n, dtype=np.int64)
    places[list(members)] = -1
    return SharedCurve(ProfileCurve(eps, final), places)


class _Rows:
    """The curves of one `Hiding`: heaps by how large the crowd is, told shares rounded up."""

    def __init__(self, protocol: Shuffle, hiding: Hiding) -> None:
        self.protocol, self.hiding = protocol, hiding
        self.others = np.sort(hiding.least)[:-1]  # the victim is taken for the best of them
        scale = hiding.seen / np.maximum(hiding.most, 1e-300)  # crowd shares are least·scale
        self.scale_group, self.scales = _ranked(scale, up=False)
        self.seen_group, self.told = _rounded(1 - hiding.seen, 24, up=True)
        self.least_group, self.untold = _ranked(1 - hiding.least, up=True)

    def _heap(self, scale: float) -> Heap:
        shares = np.clip(self.others * scale * (1 - 1e-15), 0.0, 1.0)
        return Heap.of(0, self.protocol.epsilon0, crowd=groups(shares), delta0=self.protocol.delta0)

    def knots(self) -> FloatArray:
        """ε at which the curves bend."""
        e0, out = self.protocol.epsilon0, []
        middle = float(np.median(self.scales))
        for scale in {float(self.scales.max()), middle}:
            shares = groups(np.clip(self.others * scale * (1 - 1e-15), 0.0, 1.0))
            for told in {float(np.quantile(self.told, q)) for q in (0.0, 0.5)}:
                out.append(np.asarray(Heap.of(0, e0, crowd=shares, told=min(1.0, told)).profile().epsilons))
        return np.concatenate(out)

    def deltas(self, eps: FloatArray) -> tuple[npt.NDArray[np.int64], FloatArray]:
        """A number per user, and δ of every number at every ε."""
        heaps = [self._heap(float(scale)) for scale in self.scales]
        hidden = [heap.hidden(eps) for heap in heaps]
        older = self._heap(1.0)
        bare = older.hidden(eps)
        keys = np.stack([self.scale_group, self.seen_group, self.least_group], axis=1)
        kinds, number = np.unique(keys, axis=0, return_inverse=True)
        rows = [
            np.minimum(
                heaps[a].finished(hidden[a], eps, min(1.0, float(self.told[b]))),
                older.finished(bare, eps, min(1.0, float(self.untold[c]))),
            )
            for a, b, c in kinds.tolist()
        ]
        return number.reshape(-1).astype(np.int64), np.stack(rows)


def _rounded(values: FloatArray, most: int, *, up: bool) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Few groups of nearly equal positive values, each stated by its largest (or smallest)."""
    ratio = 1.05
    positive = np.maximum(values, 1e-12)
    while True:
        level = np.floor(np.log(positive) / math.log(ratio)).astype(np.int64)
        found, group = np.unique(level, return_inverse=True)
        if len(found) <= most:
            break
        ratio = ratio**1.3
    return _stated(values, group, up)


def _ranked(values: FloatArray, *, up: bool) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """The same by rank, the better half cut finely: the worst few may be far from all others."""
    ordered = np.sort(values if up else -values)
    cuts = np.unique(ordered[[int(q * (len(values) - 1)) for q in _RANKS]])
    far = np.append(np.diff(cuts) > 0.01 * np.abs(cuts[1:]), True)  # a cut just below the next is none
    cuts = cuts[far]
    return _stated(values, np.searchsorted(cuts, values if up else -values), up)


def _stated(values: FloatArray, group: Any, up: bool) -> tuple[npt.NDArray[np.int64], FloatArray]:
    found, number = np.unique(group, return_inverse=True)
    stated = np.full(len(found), -np.inf if up else np.inf)
    (np.maximum if up else np.minimum).at(stated, number, values)
    return number.astype(np.int64), stated
