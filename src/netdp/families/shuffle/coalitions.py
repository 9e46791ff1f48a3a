"""What users learn who collude with the curator of network shuffling: named ones, and any f of them.

*Named ones* (docs/proofs/shuffle.md#curator-and-users): a report that no colluder has met by a time t₁ hides among the others
of which that is true, by its place then; what was met before is revealed. Q is the walk killed at the colluders, and the least
over several t₁ counts, user by user: all pairs of users are followed in small components, random vectors bound the returns in
large ones.

*Any f* (docs/proofs/coalitions.md#any-coalition): a neighbour of u may be among them, to whom u hands its own report in the
first round with probability p = P(u, O). So δ_u(ε) ≥ p·δ_{ε₀}(ε) for any number of rounds, the report's own loss is what is
claimed, and the coalition of largest p stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.families.shuffle.account.hiding import groups
from netdp.families.shuffle.account.mixing import one_digit_up
from netdp.families.shuffle.account.nested import MOST_USERS, least, no_less_than_parts
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.account.shuffling import REFERENCES, Part, curves, mixed_components, statements
from netdp.families.shuffle.protocol import FaultyShuffle, RelayedShuffle, Shuffle
from netdp.graphs.certificate import RETURNS_FAILURE
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.privacy.clones import Heap
from netdp.privacy.curve import Curve
from netdp.privacy.curves import SharedCurve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.observers import Found, Observers
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.alternatives import local
from netdp.protocols.table import coalitions

REFERENCE = "netdp, docs/proofs/coalitions.md#any-coalition: every coalition of a size."


@coalitions.register
def _shuffle(protocol: Shuffle, colluders: int) -> Guarantee:
    return own_loss(protocol, first_hop(protocol, colluders))


@coalitions.register
def _relayed(protocol: RelayedShuffle, colluders: int) -> Guarantee:
    return own_loss(protocol, first_hop(protocol.direct, colluders))


@coalitions.register
def _faulty(protocol: FaultyShuffle, colluders: int, *, transcript: Any = None) -> Guarantee:
    """Whoever is away, lost or slow: the report itself bounds what anybody learns, before a run and after it."""
    if transcript is not None:
        protocol.checked(transcript)
    return own_loss(protocol, None)


def own_loss(protocol: Any, found: Found | None) -> Guarantee:
    """The loss of a report by itself, and the coalition to whom somebody is most likely to hand it first."""
    loss = local(protocol)
    assert isinstance(loss, Guarantee)
    return replace(
        loss,
        claim=Claim.UPPER,
        assumptions=(Randomizer.of(protocol).words + "; whatever happens to it afterwards, nobody learns more",),
        references=(*loss.references, REFERENCE),
        found=found,
    )


def first_hop(protocol: Any, colluders: int) -> Found:
    """The user and the f others to whom its first hop leads most often; the report's own profile is attained."""
    P = protocol.transition.tocsr()
    best, target = -1.0, 0
    members: tuple[int, ...] = ()
    for u in range(protocol.n):
        row = P.data[P.indptr[u] : P.indptr[u + 1]]
        to = P.indices[P.indptr[u] : P.indptr[u + 1]]
        away = to != u
        order = np.argsort(-row[away], kind="stable")[:colluders]
        chance = float(row[away][order].sum())
        if chance > best:
            best, target, members = chance, u, tuple(sorted(int(w) for w in to[away][order]))
    e0 = protocol.epsilon0
    randomizer = Randomizer.of(protocol)
    height = best * randomizer.distance * (1 - 64 * UNIT)  # the profile is a chord in e^ε: the curve is read exactly
    curve = ProfileCurve([0.0, e0], [height, 0.0]) if e0 > 0 else ProfileCurve([0.0], [0.0])
    note = f"its first hop leads to them with probability {best:.3g}, for {randomizer.worst}"
    return Found(Observers(members, ("curator",)), target, curve, attained=True, note=note)


PAIRS = 1000
"""Components of up to this many honest users: all pairs are followed."""

_VECTORS, _WORK = 96, 6e9

_RANKS = (0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.999, 1.0)

_LAWS = 200  # steps towards the quasi-stationary law


@dataclass(frozen=True, eq=False)
class CoalitionHiding:
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
    choices = list(hide(protocol, members, progress))
    # one draw of coins for every component
    failure = sum({int(hiding.users[0]): hiding.failure for hiding in choices}.values())

    def bound(part: tuple[int, ...]) -> Curve:
        if not part:
            return curator_curve(protocol, mixed_components(protocol))
        return coalition_curve(protocol, part, choices if part == members else list(hide(protocol, part)))

    sure = "the bounds on the walk's returns rest on the accountant's own coins: wrong with probability < "
    return Guarantee(
        curve=no_less_than_parts(protocol.n, members, bound),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            *statements(protocol),
            f"the curator and users {', '.join(map(str, members))} pool all they see; nobody else colludes",
            *([sure + one_digit_up(2 * failure)] if failure else []),
        ),
        references=REFERENCES,
    )


def curator_curve(protocol: Shuffle, parts: list[Part]) -> Curve:
    """What the curator alone learns: how far reports have mixed says, or, on small graphs, the bound for colluders without any."""
    known = curves(protocol, parts)
    if protocol.n > MOST_USERS:
        return known
    return least(protocol.n, known, coalition_curve(protocol, (), list(hide(protocol, ()))))


def hide(protocol: Shuffle, members: tuple[int, ...], progress: Progress | None = None) -> Iterator[CoalitionHiding]:
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
        choices = list(every(protocol, users, Q, step, progress))
        best = max((hiding.worth for hiding in choices), default=0.0)
        good = [hiding for hiding in choices if hiding.worth > 0.02 * best]
        # the best, and a spread of the others: early ones reveal less, late ones hide better
        good.sort(key=lambda hiding: hiding.time)
        keep = {int(i) for i in np.linspace(0, len(good) - 1, min(4, len(good)))}
        keep.add(max(range(len(good)), key=lambda i: good[i].worth, default=0))
        yield from (good[i] for i in sorted(keep) if i < len(good))


def _times(rounds: int, longest: int) -> list[int]:
    """Times t₁ that are tried: six per doubling, and the last one."""
    count = int(6 * math.log2(max(min(rounds, longest), 1))) + 1
    grid = {int(2.0 ** (k / 6)) for k in range(count)}
    return sorted({min(rounds, longest), *(t for t in grid if t <= rounds)})


def _by_pairs(
    protocol: Shuffle, users: Any, Q: Any, step: float, progress: Progress | None
) -> Iterator[CoalitionHiding]:
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
            hiding = CoalitionHiding(
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


def _by_returns(
    protocol: Shuffle, users: Any, Q: Any, step: float, progress: Progress | None
) -> Iterator[CoalitionHiding]:
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
    longest = max(2, int(_WORK / (M.nnz * _VECTORS)))
    halves = sorted({max(1, t // 2) for t in _times(protocol.rounds, 2 * longest) if t >= 2})
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
    quantile = 0.99 * float(chi2.ppf(RETURNS_FAILURE / (len(users) * len(halves)), _VECTORS))
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
            yield CoalitionHiding(
                users, t, np.flatnonzero(there), seen, least, scale * (1 + off) * (1 + 1e-9), RETURNS_FAILURE
            )


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


def coalition_curve(protocol: Shuffle, members: tuple[int, ...], choices: list[CoalitionHiding]) -> SharedCurve:
    """One curve per user, none at the colluders: the least of what every choice gives."""
    n, e0 = protocol.n, protocol.epsilon0
    tables = [_Rows(protocol, hiding) for hiding in choices]
    eps = np.unique(np.concatenate([[0.0, e0], *(table.knots() for table in tables)]))
    eps = eps[eps <= e0]
    alone = Randomizer.of(protocol).heap().deltas(eps)
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
    """The curves of one `CoalitionHiding`: heaps by how large the crowd is, revealed shares rounded up."""

    def __init__(self, protocol: Shuffle, hiding: CoalitionHiding) -> None:
        self.protocol, self.hiding = protocol, hiding
        self.others = np.sort(hiding.least)[:-1]  # the victim is taken for the best of them
        scale = hiding.seen / np.maximum(hiding.most, 1e-300)  # crowd shares are least·scale
        self.scale_group, self.scales = _ranked(scale, up=False)
        self.seen_group, self.revealed = _rounded(1 - hiding.seen, 24, up=True)
        self.least_group, self.revealed_older = _ranked(1 - hiding.least, up=True)

    def _heap(self, scale: float) -> Heap:
        return Randomizer.of(self.protocol).heap(crowd=self._shares(scale))

    def _shares(self, scale: float) -> tuple[tuple[int, float], ...]:
        return groups(np.clip(self.others * scale * (1 - 1e-15), 0.0, 1.0))

    def knots(self) -> FloatArray:
        """ε at which the curves bend."""
        pure, out = replace(Randomizer.of(self.protocol), delta0=0.0), []
        middle = float(np.median(self.scales))
        for scale in {float(self.scales.max()), middle}:
            shares = self._shares(scale)
            for revealed in {float(np.quantile(self.revealed, q)) for q in (0.0, 0.5)}:
                out.append(np.asarray(pure.heap(crowd=shares, revealed=min(1.0, revealed)).profile().epsilons))
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
                heaps[a].finished(hidden[a], eps, min(1.0, float(self.revealed[b]))),
                older.finished(bare, eps, min(1.0, float(self.revealed_older[c]))),
            )
            for a, b, c in kinds.tolist()
        ]
        return number.reshape(-1).astype(np.int64), np.stack(rows)


def _rounded(values: FloatArray, groups_at_most: int, *, up: bool) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Few groups of nearly equal positive values, each stated by its largest (or smallest)."""
    ratio = 1.05
    positive = np.maximum(values, 1e-12)
    while True:
        level = np.floor(np.log(positive) / math.log(ratio)).astype(np.int64)
        levels, group = np.unique(level, return_inverse=True)
        if len(levels) <= groups_at_most:
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
