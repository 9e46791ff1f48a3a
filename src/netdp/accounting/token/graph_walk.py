"""A token on a random walk over any graph, accounted for before it starts (docs/guarantees.md#graph-walk).

The path may be secret; the bound tells it. Let u contribute at some step, and let l be the number of steps until u or an
observer holds the token next. In a stretch between two visits of O in which u contributes k times, the sum is shifted by kΔ
in noise of variance jσ² ≥ (l₁ + … + l_k)σ², and k²/(l₁ + … + l_k) ≤ Σ 1/l_i (Cauchy–Schwarz). So, given the path, each
contribution costs at most a Gaussian shift of μ = Δ/(σ√l).

**The gaps are independent.** After every visit to u the walk starts afresh from u (strong Markov property), so the gaps that
follow u's visits are independent with the law f(l) = P_u(first hit of {u} ∪ O is at step l): a public fact once told. One
contribution is bounded by Σ_l f(l)·δ_Gauss(Δ/(σ√l)). f is found by running the walk from u, absorbed at {u} ∪ O, for L
steps; what is left counts as l = L.

**The release** cuts the last gap short. The closing noise c·σ² then still covers that contribution: μ ≤ Δ/(σ√(1+c)), once
per token.

**How many visits.** N + 1 visits in T steps need N returns to u in at most T − 1 steps: Chernoff with the law of the return
time, P ≤ e^{sT}(E e^{−sR})^N ≤ 10⁻¹⁵, added to δ. Or the protocol's own limit.

Known and hidden senders, any start and any number of parallel tokens are covered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from netdp.accounting.table import certified
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.privacy import Adjacency, Claim, Guarantee, ProfileCurve
from netdp.protocols import GraphWalkSum
from netdp.views import observer_set

from .events import Event, compose_events, least
from .sampled import gaussian, mixture
from .stretches import UNLIKELY
from .walk import REFERENCES, SEPARATE

_WORK = 3 * 10**10  # steps × edges that are worth waiting for: about half a minute
_POINTS = 300


@certified.register
def _graph_walk(
    protocol: GraphWalkSum,
    observers: tuple[int, ...],
    *,
    targets: Iterable[int | str] | None = None,
    progress: Progress | None = None,
) -> Guarantee:
    graph = protocol.graph
    asked = [u for u in range(graph.n) if u not in observers] if targets is None else observer_set(graph, targets)
    asked = [u for u in asked if u not in observers]
    if not asked:
        raise InvalidValue(f"targets {targets!r} are all among the observers; name somebody else")
    horizon = min(protocol.steps, 8 * graph.n)
    if len(asked) * horizon * protocol.transition.nnz * 2 > _WORK:
        raise Unsupported(
            f"{len(asked)} targets on a graph of {graph.n} users take too long; ask for a few: "
            "account(protocol, observers, targets=[...]), or account for the path that was drawn (run.protocol)"
        )
    curves = []
    for done, u in enumerate(asked, start=1):
        curves.append(target_profile(protocol, observers, u))
        if progress is not None:
            progress(done, len(asked))
    return Guarantee(
        curve=_one_table(graph.n, asked, curves),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"two values of one contribution differ by at most {protocol.sensitivity:g} in L2 norm",
            "all users follow the protocol; the observers pool all they see, and may be told the whole path afterwards",
            "the last holder adds its closing noise before the token is released",
            "values are fixed before the first step and do not react to the token",
            *((SEPARATE,) if protocol.tokens > 1 else ()),
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
        ),
        references=REFERENCES[:2],
    )


def _one_table(n: int, users: list[int], curves: list[ProfileCurve]) -> ProfileCurve:
    """All users' curves at common ε, nan for those who have none."""
    top = max(float(curve.epsilons[-1]) for curve in curves)
    low = min(min(float(curve.epsilon(1e-3)), top) for curve in curves)
    eps = np.unique(np.concatenate([[0.0, top], np.geomspace(max(low, 1e-6 * top, 1e-12) / 20, top + 1e-12, _POINTS)]))
    table = np.full((n, eps.size), np.nan)
    for u, curve in zip(users, curves, strict=True):
        table[u] = np.minimum.accumulate(np.asarray(curve.delta(eps)))
    return ProfileCurve(eps, table)


def visits_profile(protocol: GraphWalkSum, *, summed: bool) -> ProfileCurve:
    """For every user: all its contributions published, each with its own noise (local DP); or `summed`, the sum of
    everybody's with all the noise of all tokens (a trusted curator). The number of visits is bounded as above. Who sees
    only the sum sees less than who is told all stretches: nobody's bound for the curator exceeds that of an empty coalition.
    """
    horizon = min(protocol.steps, 8 * protocol.n)
    if protocol.n * horizon * protocol.transition.nnz * 2 > _WORK:
        raise Unsupported(
            f"how often each of {protocol.n} users is visited takes too long to bound; take the path that was drawn: "
            "local_dp(run.protocol), trusted_curator(run.protocol)"
        )
    mu = protocol.sensitivity / protocol.sigma
    curves = []
    for u in range(protocol.n):
        count, unlikely = _visits(protocol, u, horizon)
        count *= protocol.tokens
        noises = (protocol.steps + protocol.closing) * protocol.tokens
        together = count * mu / math.sqrt(noises) if summed else math.sqrt(count) * mu
        bounds = [compose_events([Event(gaussian(together * (1 + 8 * UNIT)), 1)], unlikely * protocol.tokens)]
        if summed:
            bounds.append(target_profile(protocol, (), u))
        curves.append(least(bounds))
    return _one_table(protocol.n, list(range(protocol.n)), curves)


def target_profile(protocol: GraphWalkSum, observers: tuple[int, ...], target: int) -> ProfileCurve:
    """δ(ε) for one target."""
    horizon = min(protocol.steps, 8 * protocol.n)
    gaps = hitting_law(protocol.transition, target, (target, *observers), horizon)
    mu = protocol.sensitivity / protocol.sigma
    lengths = np.arange(1, horizon + 1)
    count, unlikely = _visits(protocol, target, horizon)
    # t products of rows of at most d numbers leave a relative error of t(d + 2) units in f; three times that is added
    degree = int(np.diff(protocol.transition.indptr).max())
    binned_mu, weights = _binned(mu / np.sqrt(lengths), gaps * (1 + 3 * horizon * (degree + 2) * UNIT))
    events = [
        Event(mixture(binned_mu, weights), count * protocol.tokens),
        Event(gaussian(mu / math.sqrt(1 + protocol.closing)), protocol.tokens),
    ]
    return compose_events(events, unlikely * protocol.tokens)


def hitting_law(P: Any, start: int, absorbing: Iterable[int], horizon: int) -> FloatArray:
    """P(first hit of `absorbing` at step l) for l = 1 … horizon, starting at `start`; the rest is put on the last.

    >>> from netdp import graphs
    >>> from netdp.graphs.transitions import transition_matrix
    >>> hitting_law(transition_matrix(graphs.ring(4)), 0, [2], 4).tolist()
    [0.0, 0.5, 0.0, 0.5]
    """
    backwards = P.T.tocsr()
    stop = np.zeros(P.shape[0], dtype=np.bool_)
    stop[list(absorbing)] = True
    from netdp.numerics.kernels import absorbed

    law = absorbed(backwards.indptr, backwards.indices, backwards.data, start, stop, horizon)
    law[-1] += max(0.0, 1.0 - law.sum())
    return np.asarray(law)


def _visits(protocol: GraphWalkSum, target: int, horizon: int) -> tuple[int, float]:
    """How often `target` contributes at most per token, and the probability that it is more often."""
    law = hitting_law(protocol.transition, target, (target,), horizon)
    steps = np.arange(1, horizon + 1)
    rates = np.geomspace(1e-3, 30, 200) / min(horizon, protocol.n)
    each = np.log(np.exp(-np.outer(rates, steps)) @ law)  # log E e^{−sR}: the last step stands for all later ones
    returns = np.min((math.log(UNLIKELY) - rates * protocol.steps) / each)
    most = min(math.ceil(returns) + 1, protocol.steps)
    if protocol.contributions is not None and protocol.contributions <= most:
        return protocol.contributions, 0.0
    return most, UNLIKELY


def _binned(mus: FloatArray, weights: FloatArray, ratio: float = 1.01) -> tuple[FloatArray, FloatArray]:
    """Neighbouring shifts put together, at the largest of them."""
    group = np.floor(np.log(mus[0] / mus) / math.log(ratio)).astype(np.int64)
    first = np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1])
    return mus[first], np.add.reduceat(weights, first)
