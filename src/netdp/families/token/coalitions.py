"""What any f parties who pass a token learn, whoever they are (docs/proofs/coalitions.md#any-coalition).

Where few coalitions are possible they are tried. On a ring two neighbours of a user see all that anybody sees of it; on the
complete graph any f users learn alike, or with weights the heaviest f; on other graphs a law of gaps is found that is shorter, in
distribution, than that of every coalition (`gaps_against_any`). Proofs: docs/proofs/token.md#token-coalitions.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from netdp.errors import Unsupported
from netdp.families.token.account import graph_walk
from netdp.families.token.account.energy import moments_against_any, profile
from netdp.families.token.account.events import least
from netdp.families.token.account.path import path_energy_blocks
from netdp.families.token.path import PathSum
from netdp.families.token.ring import RingDescent, RingHistogram, RingSum, SecretRingSum
from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
from netdp.graphs.graph import Graph
from netdp.graphs.shape import vertex_transitive
from netdp.graphs.transitions import Transition, transition_matrix
from netdp.numerics.arrays import UNIT, FloatArray, Progress, frozen
from netdp.privacy.curves import GaussianCurve, SharedCurve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.observers import Found, Observers, entry
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.alternatives import local
from netdp.protocols.coalitions import (
    LargestCurve,
    WorstCoalition,
    accountant,
    affordable,
    coalitions_of,
    found_in,
    general,
    try_all,
)
from netdp.protocols.table import certified, coalitions
from netdp.protocols.views import observer_set

REFERENCE = "netdp, docs/proofs/coalitions.md#any-coalition: every coalition of a size."

_WORK = 2 * 10**10

_PAIRS = 2 * 10**9

_TRIED_UP_TO = 6  # users on a graph whose coalitions are tried one by one

_QUICK = 5_000  # users × steps up to which that is done if there is one coalition to try

_SINGLES = 2 * 10**5  # pairs × steps up to which single observers on a graph are tried one by one: some twenty seconds

_ALIKE_UP_TO = 256  # and of whom one stands for all


def _with_reference(loss: Guarantee, **changes: Any) -> Guarantee:
    return dataclasses.replace(loss, references=(*loss.references, REFERENCE), **changes)


@coalitions.register
def _ring(protocol: RingSum, colluders: int, *, progress: Progress | None = None) -> Guarantee:
    n, account = protocol.n, accountant(protocol, {})
    if colluders == 1:
        if protocol.grid is None and protocol.law == "gaussian":
            return _each_alone(protocol)
        return _with_reference(try_all(n, account, [(v,) for v in range(n)], progress=progress))
    hops = (protocol.hop_noise**2).reshape(protocol.rounds, n).copy()
    hops[-1, -1] += protocol.closing_noise**2
    kinds, which = np.unique(np.sort(hops, axis=0), axis=1, return_inverse=True)
    return _neighbours(protocol, kinds.shape[1], which.reshape(n), progress)


def _each_alone(protocol: RingSum | PathSum) -> Guarantee:
    """Every single observer of a known path, a few at a time."""
    energy, seen_by = np.full(protocol.n, -np.inf), np.zeros(protocol.n, dtype=np.int64)
    for first, rows in path_energy_blocks(protocol):
        for v, row in enumerate(rows, start=first):
            more = np.where(np.isnan(row), -np.inf, row) > energy
            energy[more], seen_by[more] = row[more], v
    target = int(np.argmax(energy))
    members = (int(seen_by[target]),)
    named = certified(protocol, members)
    found = found_in(named, members, target)
    factor = energy / protocol.local_mu**2
    return _with_reference(named, curve=GaussianCurve(np.sqrt(energy)), factor=factor, found=found)


@coalitions.register
def _ring_histogram(protocol: RingHistogram, colluders: int, *, progress: Progress | None = None) -> Guarantee:
    n, account = protocol.n, accountant(protocol, {})
    if colluders == 1:
        return _with_reference(
            try_all(n, account, [(v,) for v in _worst_single_observers(n)], progress=progress, alike=True)
        )
    # the first user hides in the starting blanket, the last one in the closing one; all others are alike
    kinds = np.ones(n, dtype=np.int64)
    kinds[0], kinds[-1] = 0, 2
    return _neighbours(protocol, 3, kinds, progress)


def _worst_single_observers(n: int) -> tuple[int, ...]:
    """Among whom the worst single observer of a histogram on a ring is (docs/proofs/token.md#known-path)."""
    return (1, n - 2) if n > 3 else tuple(range(n))


def _neighbours(protocol: RingSum | RingHistogram, kinds: int, which: Any, progress: Progress | None) -> Guarantee:
    """Both neighbours collude: one account per kind of user."""
    n = protocol.n
    losses = []
    for kind in range(kinds):
        u = int(np.flatnonzero(which == kind)[0])
        around = tuple(sorted({(u - 1) % n, (u + 1) % n}))
        losses.append((u, around, certified(protocol, around)))
        if progress is not None:
            progress(kind + 1, kinds)
    u, around, worst = max(losses, key=lambda one: float(entry(one[2].curve, one[0]).epsilon(1e-6)))
    found = found_in(
        worst, around, u, note="the two neighbours of a user on a ring see each of its contributions alone"
    )
    if all(isinstance(loss.curve, GaussianCurve) for _, _, loss in losses):
        curve: Any = GaussianCurve(np.array([float(loss.mu[v]) for v, _, loss in losses])[which])
    else:
        pile = WorstCoalition(kinds)
        for kind, (v, _, loss) in enumerate(losses):
            others = np.full(kinds, -1, dtype=np.int64)
            others[kind] = 0
            pile.add((), dataclasses.replace(loss, curve=SharedCurve(entry(loss.curve, v), others), factor=None))
        curve = SharedCurve(pile.guarantee().curve, which)
    factor = None
    if all(loss.factor is not None for _, _, loss in losses):
        factor = np.array([float(loss.factor[v]) for v, _, loss in losses])[which]
    return _with_reference(worst, curve=curve, factor=factor, found=found)


@coalitions.register
def _ring_descent(protocol: RingDescent, colluders: int) -> Guarantee:
    """The next user on the ring sees every step right after it was made: local DP, and no coalition sees more."""
    members = tuple(sorted({1, protocol.n - 1}))[:colluders]
    named = certified(protocol, members)
    loss = local(protocol)
    assert isinstance(loss, Guarantee)
    return _with_reference(
        named, curve=loss.curve, factor=loss.factor, claim=Claim.UPPER, found=found_in(named, members, 0)
    )


@coalitions.register
def _secret_ring(protocol: SecretRingSum, colluders: int) -> Guarantee:
    """Any users who were chosen before the orders are drawn learn the same about anybody, if they are as many."""
    members = tuple(range(colluders))
    loss: Guarantee = certified(protocol, members)
    found = Found(Observers(members), protocol.n - 1, loss.curve, False, note="any others learn as much about anybody")
    return dataclasses.replace(loss, found=found)


@coalitions.register
def _path(protocol: PathSum, colluders: int, *, progress: Progress | None = None) -> Guarantee:
    n, account = protocol.n, accountant(protocol, {})
    if colluders == 1 and getattr(protocol, "law", "gaussian") == "gaussian":
        return _each_alone(protocol)
    if affordable(n, colluders):
        return _with_reference(try_all(n, account, coalitions_of(n, colluders), progress=progress))
    loss = local(protocol)
    assert isinstance(loss, Guarantee)
    if not isinstance(loss.curve, GaussianCurve):
        return general(protocol, colluders, {}, progress)
    u = int(np.argmax(loss.mu))
    around = [0] * n
    for path in protocol.paths:
        for before, after in itertools.pairwise(path):
            if before != after:
                around[before if after == u else after] += after == u or before == u
    around[u] = -1
    members = tuple(sorted(np.argsort(-np.asarray(around), kind="stable")[:colluders].tolist()))
    named = certified(protocol, members)
    note = "coalitions are too many to try: bounded by what all other users together learn"
    return _with_reference(
        named,
        curve=loss.curve,
        factor=np.asarray(loss.mu) ** 2 / protocol.local_mu**2,
        claim=Claim.UPPER,
        assumptions=(*named.assumptions, note),
        found=found_in(named, members, u),
    )


@coalitions.register
def _walk(
    protocol: WalkSum | WalkDescent | WalkHistogram,
    colluders: int,
    *,
    adjacency: str = "replace",
    progress: Progress | None = None,
) -> Guarantee:
    n = protocol.n
    if protocol.network is not None and isinstance(protocol, WalkDescent) and protocol.grid is not None:
        return general(protocol, colluders, {"adjacency": adjacency}, progress)
    if protocol.network is not None:
        return _on_graph(protocol, colluders, adjacency, progress)
    members = heaviest(protocol, colluders)
    loss = certified(protocol, members, adjacency=adjacency, progress=progress)
    curve = loss.curve
    if getattr(protocol, "weights", None) is not None:
        return _weighted(protocol, colluders, loss, members, adjacency)
    one = entry(curve, n - 1) if curve.shape else curve
    found = Found(
        Observers(members), n - 1, one, loss.claim is Claim.EXACT, note="any others learn as much about anybody"
    )
    return _with_reference(loss, curve=one, factor=None, found=found)


def heaviest(protocol: Any, colluders: int, but: int = -1) -> tuple[int, ...]:
    """The users that are drawn most often; where all are drawn alike, the first."""
    weights = getattr(protocol, "weights", None)
    if weights is None:
        return tuple(range(colluders))
    order = [v for v in np.argsort(-np.asarray(weights), kind="stable").tolist() if v != but]
    return tuple(sorted(order[:colluders]))


def _weighted(protocol: Any, colluders: int, loss: Guarantee, members: tuple[int, ...], adjacency: str) -> Guarantee:
    """Uneven draws: about everybody the heaviest others. They are the f heaviest of all, or f of the f + 1 heaviest."""
    pile = WorstCoalition(protocol.n)
    inside = set(heaviest(protocol, min(colluders + 1, protocol.n - 1)))
    for who in {members, *(heaviest(protocol, colluders, but=u) for u in inside)}:
        one = loss if who == members else certified(protocol, who, adjacency=adjacency)
        pile.add(who, one)
    return _with_reference(pile.guarantee())


@coalitions.register
def _graph_walk(
    protocol: GraphWalkSum,
    colluders: int,
    *,
    targets: Iterable[int | str] | None = None,
    progress: Progress | None = None,
) -> Guarantee:
    if targets is None:
        return _on_graph(protocol, colluders, "replace", progress)
    asked = observer_set(protocol.graph, targets)
    return _about(protocol, _on_graph(protocol, colluders, "replace", progress, asked), asked)


def _about(protocol: GraphWalkSum, loss: Guarantee, asked: tuple[int, ...]) -> Guarantee:
    """The same about these users alone: the others have no curve, and what was found is about one of these."""
    which, found = np.full(protocol.n, -1, dtype=np.int64), loss.found
    which[list(asked)] = asked if loss.curve.shape else 0
    curve = SharedCurve(loss.curve, which)
    if found is not None and found.target not in asked:
        worst, members = asked[int(np.argmax(curve.epsilon(1e-6)[list(asked)]))], found.observers.parties
        found = None
        if worst not in members:
            found = found_in(certified(protocol, members, targets=[worst]), members, worst)
    return dataclasses.replace(loss, curve=curve, factor=None, found=found)


def _on_graph(
    protocol: Any, colluders: int, adjacency: str, progress: Progress | None, asked: tuple[int, ...] | None = None
) -> Guarantee:
    """`asked`: only about these; others have no curve, or share the worst one where all are alike."""
    graph = protocol.network
    options: dict[str, Any] = {} if isinstance(protocol, GraphWalkSum) else {"adjacency": adjacency}
    # arrows of a directed walk are not symmetric where their graph is
    alike = vertex_transitive(graph) and isinstance(protocol.walk, str)
    few = 20 if graph.n <= _TRIED_UP_TO else 1 if graph.n * protocol.steps <= _QUICK else 0
    if affordable(graph.n, colluders, alike=alike, most=few):
        sets = coalitions_of(graph.n, colluders, alike=alike)
        return _with_reference(try_all(graph.n, accountant(protocol, options), sets, alike=alike, progress=progress))
    if colluders == 1 and alike and graph.n <= _ALIKE_UP_TO:  # one observer stands for all, and so do its targets
        one = certified(protocol, (0,), **options)
        about = int(np.nanargmax(np.asarray(one.epsilon(1e-6))))
        most = LargestCurve([one.curve], whole=True)
        return _with_reference(one, curve=most, factor=None, found=found_in(one, (0,), about))
    if colluders == 1 and graph.n**2 * protocol.steps <= _SINGLES:
        return _with_reference(
            try_all(graph.n, accountant(protocol, options), coalitions_of(graph.n, 1), progress=progress)
        )
    targets = [0] if alike else list(range(graph.n)) if asked is None else list(asked)
    horizon = min(protocol.steps, 8 * graph.n)
    work = len(targets) * horizon * protocol.transition.nnz
    if work > _WORK:
        raise Unsupported(
            f"any {colluders} of {graph.n} users on a walk of {protocol.steps} steps take too long to bound; name the coalitions: "
            "account(protocol, observers)"
        )
    near = 0.5 if adjacency == Adjacency.ZERO_OUT else 1.0
    pairs = work * graph.n <= _PAIRS
    curves, worst, target, members = [], -1.0, 0, (0,)
    for done, u in enumerate(targets, start=1):
        gaps, order = _cached_gaps(graph, protocol.walk, u, colluders, horizon, pairs)
        curves.append(_profile_of_gaps(protocol, u, colluders, gaps, near, energy=pairs))
        if (here := float(curves[-1].epsilon(1e-6))) > worst:
            worst, target, members = here, u, tuple(sorted(order[:colluders].tolist()))
        if progress is not None:
            progress(done, len(targets))
    options |= {"targets": [target]} if isinstance(protocol, GraphWalkSum) else {}
    named = certified(protocol, members, **options)
    found = Found(Observers(members), target, entry(named.curve, target), attained=False)
    curve = curves[0] if alike else graph_walk.one_table(graph.n, targets, curves)
    return _with_reference(named, curve=curve, factor=None, found=found)


def _profile_of_gaps(
    protocol: Any, target: int, colluders: int, gaps: FloatArray, near: float, *, energy: bool
) -> ProfileCurve:
    """δ(ε) for one target, if the gaps after its visits have this law or longer ones; `energy`: by moments, too."""
    if isinstance(protocol, WalkHistogram):
        walk = protocol.network, protocol.walk, protocol.steps, 0.0
        any_of_them = functools.partial(moments_against_any, *walk, target, colluders)  # but for what hides responses
        return graph_walk.histogram_profile(protocol, (), target, gaps=gaps, moments=any_of_them if energy else None)
    mu = near * protocol.sensitivity / protocol.sigma
    bounds = [graph_walk.local_profile(protocol, target, near)]
    if getattr(protocol, "expansion", 1) == 1:
        bounds.append(graph_walk.gaps_profile(protocol, (), target, mu, gaps))
        if energy:
            walk = protocol.network, protocol.walk, protocol.steps, float(protocol.closing)
            bounds.append(profile(moments_against_any(*walk, target, colluders), mu, protocol.tokens))
    return least(bounds)


@functools.lru_cache(maxsize=4096)
def _cached_gaps(
    graph: Graph, walk: str | Transition, start: int, colluders: int, horizon: int, pairs: bool
) -> tuple[FloatArray, Any]:
    """`gaps_against_any`, which does not depend on the noise: a search for σ asks for the same again and again."""
    gaps, order = gaps_against_any(transition_matrix(graph, walk), start, colluders, horizon, pairs=pairs)
    return frozen(gaps), order[:colluders]


def gaps_against_any(P: Any, start: int, colluders: int, horizon: int, *, pairs: bool = True) -> tuple[FloatArray, Any]:
    """A law of gaps l = 1 … horizon that is shorter, in distribution, than that of every coalition; who is hit soonest, in order.

    >>> from netdp import graphs
    >>> from netdp.graphs.transitions import transition_matrix
    >>> walk = transition_matrix(graphs.ring(6))
    >>> [gaps_against_any(walk, 0, 1, 6, pairs=p)[0].round(3).tolist() for p in (True, False)]
    [[0.5, 0.25, 0.0, 0.125, 0.063, 0.062], [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]]
    """
    n = P.shape[0]
    degree = int(np.diff(P.tocsr().indptr).max())
    returned = np.cumsum(graph_walk.first_visit_law(P, start, (start,), horizon))
    hit = np.zeros((n, horizon))
    if pairs:
        for o in range(n):
            if o != start:
                either = np.cumsum(graph_walk.first_visit_law(P, start, (start, o), horizon))
                hit[o] = np.maximum(either - returned, 0.0)
    else:
        hit = _entries(P, start, horizon)
    top = np.sort(hit, axis=0)[n - colluders :].sum(axis=0) if colluders < n else hit.sum(axis=0)
    # sums of positive products: a relative error of (degree + 2) units a step; twice that is added
    safe = 1 + 4 * horizon * (degree + 4) * (colluders + 1) * UNIT
    reached = np.minimum(np.maximum.accumulate((returned + top) * safe), 1.0)
    reached[-1] = 1.0
    soon = hit @ np.arange(1, horizon + 1) ** -1.5  # what a gap costs falls like 1/√l
    soon[start] = -1.0
    return np.diff(reached, prepend=0.0), np.argsort(-soon, kind="stable")


def _entries(P: Any, start: int, horizon: int) -> FloatArray:
    """[o, l]: the mean number of entries into o from elsewhere within l steps, before the walk is back at `start`."""
    n = P.shape[0]
    stay = P.diagonal()
    elsewhere = P.copy().tolil()
    elsewhere.setdiag(0.0)
    forward = elsewhere.T.tocsr()
    here = np.zeros(n)
    here[start] = 1.0
    entries = np.zeros((n, horizon))
    for step in range(horizon):
        into = forward @ here
        here = into + here * stay
        into[start] = here[start] = 0.0
        entries[:, step] = into
    return np.cumsum(entries, axis=1)
