"""What observers learn about a user from a token on a random walk over any graph, accounted for before it starts.

The bounds tell the path. A contribution of u that is followed by l steps until u or an observer holds the token next costs at
most a Gaussian shift of Δ/(σ√l); these gaps are independent, with a law that one absorbed walk gives (`hitting_law`). Better, in
general, are the exponential moments of the energy of whole paths (`netdp.families.token.account.energy`); the least counts.

Proofs: docs/proofs/token.md#graph-walk and #walk-energy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account import energy
from netdp.families.token.account.energy import Cover, EnergyMoments, laws, loss_profile, profile
from netdp.families.token.account.events import (
    UNLIKELY,
    Event,
    Profile,
    bins,
    compose_events,
    gaussian,
    least,
    mean,
    mixture,
    more_delta,
)
from netdp.families.token.account.grid import WALK_ON_A_GRID_REFERENCES as GRID_REFERENCES
from netdp.families.token.account.grid import on_the_grid, wire_assumptions
from netdp.families.token.account.responses import heap_moments, kind_of, published
from netdp.families.token.account.ring import bare_response, heap_profile
from netdp.families.token.account.walk import FIXED, REFERENCES, SEPARATE
from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkHistogram, stationary
from netdp.graphs.graph import Graph
from netdp.graphs.transitions import Transition, transition_matrix
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.privacy.curve import Curve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import PerCurve, ProfileCurve
from netdp.protocols.coalitions import MARKS
from netdp.protocols.table import certified
from netdp.protocols.views import observer_set

Walk = GraphWalkSum | WalkDescent | WalkHistogram

_WORK = 3 * 10**10  # steps × edges that are worth waiting for: about half a minute

_POINTS = 450

_EXACT = 100  # curves up to which a table has points of its own for each

_STRETCHES = 2 * 10**5  # targets × steps up to which every stretch is looked at: about half a minute

_BEYOND = 1e-11  # how likely a user is visited more often than is counted; added to δ

_LIKELIER = 1e-8  # the same, where it is not averaged over and δ is larger

_HIDING = 4095  # responses that hide another one; more are not looked at

_STARTS = "each walk starts at a user drawn from where it is in the long run, and moves on at random as stated, whatever it carries"


@certified.register
def _graph_walk(
    protocol: GraphWalkSum,
    observers: tuple[int, ...],
    *,
    targets: Iterable[int | str] | None = None,
    progress: Progress | None = None,
) -> Guarantee:
    asked = _targets_of(protocol, observers, targets)
    gridded = protocol.grid is not None
    real = protocol.in_real_numbers if gridded else protocol
    curve: Curve = _curves(real, observers, asked, target_profile, progress)
    noise = ("noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",)
    return Guarantee(
        curve=on_the_grid(curve, protocol) if gridded else curve,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"two values of one contribution differ by at most {protocol.sensitivity:g} in L2 norm",
            "all users follow the protocol; the observers pool all they see, and may be told the whole path afterwards",
            _STARTS,
            "the last holder adds its closing noise before the token is released",
            FIXED,
            *((SEPARATE,) if protocol.tokens > 1 else ()),
            *(wire_assumptions(protocol) if gridded else noise),
        ),
        references=(GRID_REFERENCES[0], *REFERENCES[:2], *GRID_REFERENCES[1:]) if gridded else REFERENCES[:2],
    )


def descent_on_graph(
    protocol: WalkDescent, observers: tuple[int, ...], adjacency: str, progress: Progress | None
) -> Guarantee:
    """What `account` says of a `WalkDescent` on a graph."""
    if adjacency not in (Adjacency.REPLACE, Adjacency.ZERO_OUT):
        raise Unsupported(
            f"walks are accounted for under adjacency 'replace' or 'zero-out', got {adjacency!r}: the set of users is public"
        )
    near = 0.5 if adjacency == Adjacency.ZERO_OUT else 1.0

    def one(walk: Any, who: tuple[int, ...], target: int, stretches: bool) -> ProfileCurve:
        return descent_profile(walk, who, target, stretches, near)

    iteration = protocol.expansion == 1
    reacts = (
        "the step, on the token that its user holds and on how often users were visited, on no earlier token and no other"
        if iteration
        else "everything that its user has seen"
    )
    return Guarantee(
        curve=_curves(protocol, observers, _targets_of(protocol, observers, None), one, progress),
        adjacency=Adjacency(adjacency),
        claim=Claim.UPPER,
        assumptions=(
            f"gradients are clipped to norm {protocol.clip:g} before the noise is added",
            "all users follow the protocol; the observers pool all they see, and may be told the whole path afterwards",
            _STARTS,
            f"a gradient may depend on {reacts}",
            *(
                (
                    "θ ↦ θ − η·g_u(θ), clipping and projection included, does not increase distances, for every user u; "
                    "netdp.learn.train_walk checks it for logistic rows clipped one by one; for anything else it is the "
                    "caller's to see to",
                )
                if iteration
                else ()
            ),
            "the starting models do not depend on anybody's data",
            *(("the last holder adds its closing noise before the model is released",) if protocol.closing else ()),
            *((SEPARATE,) if protocol.tokens > 1 else ()),
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
        ),
        references=(*REFERENCES[:2], REFERENCES[3]),
    )


def histogram_on_graph(protocol: WalkHistogram, observers: tuple[int, ...], progress: Progress | None) -> Guarantee:
    """What `account` says of a `WalkHistogram` on a graph."""
    return Guarantee(
        curve=_curves(protocol, observers, _targets_of(protocol, observers, None), histogram_profile, progress),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"every contribution is bounded: labels in 0 … {protocol.domain - 1}",
            _STARTS,
            "all users follow the protocol; the observers pool all they see, and may be told the whole path afterwards",
            FIXED,
            *((SEPARATE,) if protocol.tokens > 1 else ()),
            "responses are drawn from a perfect random source",
        ),
        references=REFERENCES[:2],
    )


def _targets_of(protocol: Walk, observers: tuple[int, ...], targets: Iterable[int | str] | None) -> list[int]:
    graph = protocol.network
    assert graph is not None
    named = range(graph.n) if targets is None else observer_set(graph, targets)
    asked = [u for u in named if u not in observers]
    if not asked:
        raise InvalidValue(f"targets {targets!r} are all among the observers; name somebody else")
    if len(asked) * _horizon(protocol) * protocol.transition.nnz * 2 > _WORK:
        way = (
            "ask for a few: account(protocol, observers, targets=[...]), or account for the path that was drawn (run.protocol)"
            if isinstance(protocol, GraphWalkSum)
            else "take a smaller graph, or the complete one: n instead of the graph"
        )
        raise Unsupported(f"{len(asked)} targets on a graph of {graph.n} users take too long; {way}")
    return asked


def _curves(
    protocol: Any,
    observers: tuple[int, ...],
    asked: list[int],
    one: Callable[[Any, tuple[int, ...], int, bool], ProfileCurve],
    progress: Progress | None,
) -> ProfileCurve:
    stretches = len(asked) * protocol.steps <= _STRETCHES
    curves = []
    for done, u in enumerate(asked, start=1):
        curves.append(one(protocol, observers, u, stretches))
        if progress is not None:
            progress(done, len(asked))
    return one_table(protocol.n, asked, curves)


def _horizon(protocol: Walk) -> int:
    return min(protocol.steps, 8 * protocol.n)


def one_table(n: int, users: list[int], curves: list[ProfileCurve]) -> ProfileCurve:
    """All users' curves at common ε, nan for those who have none; between these the curves themselves are asked."""
    top = max(float(curve.epsilons[-1]) for curve in curves)
    low = min(min(float(curve.epsilon(1e-3)), top) for curve in curves)
    chosen = [np.array([0.0, top]), np.geomspace(max(low, 1e-6 * top, 1e-12) / 20, top + 1e-12, _POINTS)]
    if len(curves) <= _EXACT:  # exactly what each of them says at the usual δ
        chosen += [np.minimum(np.asarray(curve.epsilon(np.array(MARKS))), top) for curve in curves]
    eps = np.unique(np.concatenate(chosen))
    table = np.full((n, eps.size), np.nan)
    bounds: list[Profile] = [_nobody] * n
    for u, curve in zip(users, curves, strict=True):
        table[u] = np.minimum.accumulate(np.asarray(curve.delta(eps)))
        bounds[u] = curve.delta
    return ProfileCurve(eps, table, PerCurve(tuple(bounds)))


def _nobody(eps: FloatArray) -> FloatArray:
    """δ of those who have no curve."""
    return np.full(len(eps), np.nan)


def visits_profile(protocol: GraphWalkSum | WalkDescent, *, summed: bool) -> ProfileCurve:
    """For every user: all its contributions published, each with its own noise (local DP); or `summed`, the sum of
    everybody's with all the noise of all tokens (a trusted curator). The number of visits is bounded by `most_visits`. Who sees
    only the sum sees less than who is told all stretches: nobody's bound for the curator exceeds that of an empty coalition.
    """
    if protocol.n * _horizon(protocol) * protocol.transition.nnz * 2 > _WORK:
        raise Unsupported(
            f"how often each of {protocol.n} users is visited takes too long to bound; take the path that was drawn: "
            "local_dp(run.protocol), trusted_curator(run.protocol)"
        )
    mu = protocol.sensitivity / protocol.sigma
    stretches = protocol.n * protocol.steps <= _STRETCHES
    curves = []
    for u in range(protocol.n):
        if not summed:
            curves.append(local_profile(protocol, u))
            continue
        if isinstance(protocol, WalkDescent):  # the released models: what nobody in particular sees
            curves.append(descent_profile(protocol, (), u, stretches))
            continue
        count, unlikely = most_visits(protocol, u)
        count *= protocol.tokens
        noises = (protocol.steps + protocol.closing) * protocol.tokens
        together = count * mu / math.sqrt(noises)
        bounds = [compose_events([Event(gaussian(together * (1 + 8 * UNIT)), 1)], unlikely * protocol.tokens)]
        bounds.append(target_profile(protocol, (), u))
        if stretches and (law := _visits_law(_key(protocol), u)) is not None:
            k, weights, outside = law
            alone = Event(mixture(k * mu / math.sqrt(protocol.steps + protocol.closing), weights), protocol.tokens)
            bounds.append(compose_events([alone], outside * protocol.tokens))
        curves.append(least(bounds))
    return one_table(protocol.n, list(range(protocol.n)), curves)


def local_profile(protocol: GraphWalkSum | WalkDescent, target: int, near: float = 1.0) -> ProfileCurve:
    """Local DP: every contribution of u shown with its own noise."""
    mu = near * protocol.sensitivity / protocol.sigma
    count, unlikely = most_visits(protocol, target, _BEYOND)
    shift = math.sqrt(count * protocol.tokens) * mu * (1 + 8 * UNIT)
    return least(
        [
            compose_events([Event(gaussian(shift), 1)], unlikely * protocol.tokens),
            profile(_moments(_key(protocol), (), target, "visits"), mu, protocol.tokens),
        ]
    )


def target_profile(
    protocol: GraphWalkSum, observers: tuple[int, ...], target: int, stretches: bool = False
) -> ProfileCurve:
    """δ(ε) for one target; `stretches`: look at every stretch (`energy.sum_moments`), not only at gaps."""
    mu = protocol.sensitivity / protocol.sigma
    how = "sum" if stretches and observers else "gaps"
    moments = _moments(_key(protocol), observers, target, how)
    return least([gaps_profile(protocol, observers, target, mu), profile(moments, mu, protocol.tokens)])


def energy_profile(protocol: GraphWalkSum, observers: tuple[int, ...], target: int) -> ProfileCurve:
    """δ(ε) for one target from the energy of whole stretches alone: the loss with the path told, up to the price of moments."""
    mu = protocol.sensitivity / protocol.sigma
    return profile(_moments(_key(protocol), observers, target, "sum"), mu, protocol.tokens)


def descent_profile(
    protocol: WalkDescent, observers: tuple[int, ...], target: int, stretches: bool = False, near: float = 1.0
) -> ProfileCurve:
    """The same for descent: by iteration where steps do not expand, and local DP."""
    mu = near * protocol.sensitivity / protocol.sigma
    bounds = [local_profile(protocol, target, near)]
    if protocol.expansion == 1:
        how = "descent" if stretches else "gaps"
        bounds.append(gaps_profile(protocol, observers, target, mu))
        bounds.append(profile(_moments(_key(protocol), observers, target, how), mu, protocol.tokens))
    return least(bounds)


def gaps_profile(
    protocol: GraphWalkSum | WalkDescent,
    observers: tuple[int, ...],
    target: int,
    mu: float,
    gaps: FloatArray | None = None,
) -> ProfileCurve:
    """As many independent gaps as u can have visits; `gaps`: their law, where the observers are not named."""
    law = _gap_law(protocol, observers, target, gaps)
    one = mixture(*_binned(mu / np.sqrt(np.arange(1, len(law) + 1)), law))
    last = Event(gaussian(mu / math.sqrt(1 + protocol.closing)), protocol.tokens)
    count, unlikely = most_visits(protocol, target, _BEYOND)
    return compose_events([Event(one, count * protocol.tokens), last], unlikely * protocol.tokens)


def _gap_law(protocol: Walk, observers: tuple[int, ...], target: int, gaps: FloatArray | None) -> FloatArray:
    """The law of the gap after a visit to u, with what covers its rounding; `gaps`: a law that is given instead."""
    horizon = _horizon(protocol)
    if gaps is None:
        gaps = hitting_law(protocol.transition, target, (target, *observers), horizon)
    # t products of rows of at most d numbers leave a relative error of t(d + 2) units in f; three times that is added
    degree = int(np.diff(protocol.transition.indptr).max())
    return np.asarray(gaps * (1 + 3 * horizon * (degree + 2) * UNIT))


def histogram_profile(
    protocol: WalkHistogram,
    observers: tuple[int, ...],
    target: int,
    stretches: bool = False,
    gaps: FloatArray | None = None,
    moments: Callable[[Cover], EnergyMoments] | None = None,
) -> ProfileCurve:
    """δ(ε) of a histogram for one target: each response among others of its stretch, or those that follow it; and local DP.

    gaps, moments : where the observers are not named: the law of the gaps, and, if they are affordable, the moments of all paths.
    """
    if protocol.epsilon0 == 0:
        return ProfileCurve([0.0], [0.0])
    bounds = [published_profile(protocol, target)]
    if gaps is not None:
        bounds.append(_heaps_after(protocol, observers, target, gaps))
    cover = heap_moments(kind_of(protocol), min(protocol.steps, _HIDING))
    if moments is not None:
        bounds.append(loss_profile(moments(cover), protocol.tokens))
    elif gaps is None:
        how = "sum" if stretches else "gaps"
        bounds.append(loss_profile(_moments(_key(protocol), observers, target, how, cover), protocol.tokens))
    return least(bounds)


def _heaps_after(protocol: WalkHistogram, observers: tuple[int, ...], target: int, gaps: FloatArray) -> ProfileCurve:
    """Each response among those that follow it, the last of each token by itself, as many as there can be."""
    law = _gap_law(protocol, observers, target, gaps)
    parts: list[tuple[float, Profile]] = []
    for first, end in bins(1, len(law), 1.6):
        chance = float(law[first - 1 : end].sum())
        if chance > 0:
            heap = heap_profile(first - 1, 0, protocol.domain, protocol.gamma, protocol.response)
            parts.append((chance, heap.delta))
    count, unlikely = most_visits(protocol, target, _BEYOND)
    events = [Event(mean(parts), count * protocol.tokens), Event(bare_response(protocol).delta, protocol.tokens)]
    return compose_events(events, unlikely * protocol.tokens)


def published_profile(protocol: WalkHistogram, target: int) -> ProfileCurve:
    """Local DP: every response of u under its name, the number of visits averaged over where its law is affordable."""
    law = _visits_law(_key(protocol), target)
    if law is None:
        bare, tokens = bare_response(protocol), protocol.tokens
        tails = {most_visits(protocol, target, unlikely) for unlikely in (UNLIKELY, _BEYOND, _LIKELIER)}
        return least([more_delta(bare.self_compose(count * tokens), unlikely * tokens) for count, unlikely in tails])
    counts, weights, outside = law
    capped = np.minimum(counts, protocol.contributions or math.inf)
    one = np.bincount(capped.astype(np.int64), weights=weights)
    # never: the weights are too large by less than 10⁻⁶ of themselves, and a little more of fewer visits does no harm
    one[0] = max(0.0, 1.0 - float(weights.sum())) + 1e-6 + outside
    every = one
    for _ in range(protocol.tokens - 1):
        every = np.convolve(every, one)
    grown = np.asarray(every * (1 + 4 * protocol.tokens * len(every) * UNIT), dtype=np.float64)
    return published(protocol, np.arange(len(every), dtype=np.float64), grown, outside * protocol.tokens)


def histogram_visits(protocol: WalkHistogram, *, hidden: bool) -> ProfileCurve:
    """For every user: its responses published under its name; or `hidden`, the released histogram and nothing else."""
    if protocol.epsilon0 == 0:
        return ProfileCurve([0.0], [0.0])
    users = list(range(protocol.n))
    stretches = protocol.n * protocol.steps <= _STRETCHES
    if hidden:
        return one_table(protocol.n, users, [histogram_profile(protocol, (), u, stretches) for u in users])
    return one_table(protocol.n, users, [published_profile(protocol, u) for u in users])


# ---- the energy of paths, which does not depend on the noise

Key = tuple[Graph, "str | Transition", int, float]


def _key(protocol: Walk) -> Key:
    graph = protocol.network
    assert graph is not None
    return graph, protocol.walk, protocol.steps, float(getattr(protocol, "closing", 0.0))


@functools.lru_cache(maxsize=4096)
def _moments(key: Key, observers: tuple[int, ...], target: int, how: str, cover: Cover | None = None) -> EnergyMoments:
    graph, walk, steps, closing = key
    P, start = transition_matrix(graph, walk), np.asarray(stationary(graph, walk), dtype=np.float64)
    if how in ("sum", "descent"):
        whole = laws(P, start, target, observers, steps)
        if energy.affordable(whole, steps):
            expected = 2.0 * (steps * float(start[target]) + 1.0)
            if how == "descent":
                return energy.descent_moments(whole, steps, closing, expected)
            if len(observers) == 1:
                expected += 2.0 * (steps * float(start[observers[0]]) + 1.0)
                return energy.single_sum_moments(P, start, target, observers[0], whole, steps, closing, expected, cover)
            return energy.sum_moments(whole, steps, closing, expected, cover)
    short = laws(P, start, target, observers, min(steps, 8 * graph.n))
    if how == "visits":
        return energy.visit_moments(short, steps)
    return energy.gap_moments(short, steps, closing, cover)


@functools.lru_cache(maxsize=1024)
def _visits_law(key: Key, target: int) -> tuple[FloatArray, FloatArray, float] | None:
    """The law of the number of visits to `target`; None if that takes too long."""
    graph, walk, steps, _ = key
    whole = laws(transition_matrix(graph, walk), np.asarray(stationary(graph, walk)), target, (), steps)
    return energy.visits_law(whole, steps) if energy.affordable(whole, steps) else None


def hitting_law(P: Any, start: int, absorbing: Iterable[int], horizon: int) -> FloatArray:
    """P(first hit of `absorbing` at step l) for l = 1 … horizon, starting at `start`; the rest is put on the last.

    >>> from netdp import graphs
    >>> from netdp.graphs.transitions import transition_matrix
    >>> hitting_law(transition_matrix(graphs.ring(4)), 0, [2], 4).tolist()
    [0.0, 0.5, 0.0, 0.5]
    """
    law = first_visit_law(P, start, absorbing, horizon)
    law[-1] += max(0.0, 1.0 - law.sum())
    return law


def first_visit_law(P: Any, start: int, absorbing: Iterable[int], horizon: int) -> FloatArray:
    """The same without the rest."""
    from netdp.numerics.kernels import absorbed

    backwards = P.T.tocsr()
    stop = np.zeros(P.shape[0], dtype=np.bool_)
    stop[list(absorbing)] = True
    return np.asarray(absorbed(backwards.indptr, backwards.indices, backwards.data, start, stop, horizon))


def most_visits(protocol: Walk, target: int, unlikely: float = UNLIKELY) -> tuple[int, float]:
    """How often `target` contributes at most per token, and the probability that it is more often."""
    horizon = _horizon(protocol)
    law = hitting_law(protocol.transition, target, (target,), horizon)
    steps = np.arange(1, horizon + 1)
    rates = np.geomspace(1e-3, 30, 200) / min(horizon, protocol.n)
    each = np.log(np.exp(-np.outer(rates, steps)) @ law)  # log E e^{−sR}: the last step stands for all later ones
    returns = np.min((math.log(unlikely) - rates * protocol.steps) / each)
    most = min(math.ceil(returns) + 1, protocol.steps)
    if protocol.contributions is not None and protocol.contributions <= most:
        return protocol.contributions, 0.0
    return most, unlikely


def _binned(mus: FloatArray, weights: FloatArray, ratio: float = 1.01) -> tuple[FloatArray, FloatArray]:
    """Neighbouring shifts put together, at the largest of them."""
    group = np.floor(np.log(mus[0] / mus) / math.log(ratio)).astype(np.int64)
    first = np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1])
    return mus[first], np.add.reduceat(weights, first)
