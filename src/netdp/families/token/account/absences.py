"""Walks over users some of whom are away: what is certified if holders skip them (docs/proofs/token.md#walk-absences).

The holder of a token draws the next one uniformly from all n users; who does not answer is skipped. If at every step at most a
users are away, whoever they are, then with the path told the observers learn at most what they learn in a walk of as many steps
over n − a users none of whom is away. A token that vanishes shows a part of that, so the same holds for every attempt.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.token.account.events import (
    UNLIKELY,
    Event,
    Profile,
    bins,
    compose_events,
    gap_mixture,
    gap_profile,
    least,
)
from netdp.families.token.account.graph_walk import energy_profile
from netdp.families.token.account.grid import on_the_grid
from netdp.families.token.account.ring import heap_profile
from netdp.families.token.account.walk import contributions_law, each_contribution, local_profile, most_contributions
from netdp.families.token.walk import GraphWalkSum, WalkHistogram, WalkSum
from netdp.graphs.transitions import Transition
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import whole
from netdp.privacy.profile import ProfileCurve

_UNLIKELY = (UNLIKELY, 1e-11, 1e-9, 1e-8, 1e-7, 5e-7)


def told_profile(protocol: WalkSum | WalkHistogram, colluders: int, absent: int = 0) -> ProfileCurve:
    """δ(ε) of one attempt for any user against any `colluders` others, the path told, `absent` users away at every step.

    >>> p = WalkSum(16, steps=160, sigma=20.0)
    >>> nobody, two = (float(told_profile(p, 1, absent).epsilon(1e-6)) for absent in (0, 2))
    >>> 0.31 < nobody < 0.33 < two < 0.37
    True
    """
    if protocol.network is not None or protocol.weights is not None:
        raise InvalidValue("absences are priced on the complete graph, where all users are drawn alike")
    left = protocol.n - whole("absent", absent)
    if not 1 <= whole("colluders", colluders) < left:
        raise InvalidValue(f"{colluders} of {left} users cannot collude against the others; name 1 to {left - 1}")
    if isinstance(protocol, WalkSum):
        if protocol.grid is not None:
            curve = on_the_grid(told_profile(protocol.in_real_numbers, colluders, absent), protocol)
            assert isinstance(curve, ProfileCurve)
            return curve
        return _sum(protocol.replace(n=left), colluders)
    return _histogram(protocol.replace(n=left), colluders)


@functools.lru_cache(maxsize=256)
def _sum(protocol: WalkSum, colluders: int) -> ProfileCurve:
    near, n = protocol.sensitivity / protocol.sigma, protocol.n
    found = [local_profile(protocol, near, 1.0 / n)]
    if protocol.contributions is not None:
        return least([*found, each_contribution(protocol, gap_mixture(near, (colluders + 1) / n), 1.0 / n)])
    labels: Any = _labels(n, colluders)
    walk = GraphWalkSum(
        labels, protocol.steps, protocol.sigma, tokens=protocol.tokens, closing=False,
        sensitivity=protocol.sensitivity,
    )  # fmt: skip
    return least([*found, energy_profile(walk, (0,), 1)])


@functools.lru_cache(maxsize=64)
def _histogram(protocol: WalkHistogram, colluders: int) -> ProfileCurve:
    if protocol.epsilon0 == 0:
        return ProfileCurve([0.0], [0.0])
    own, met = 1.0 / protocol.n, (colluders + 1) / protocol.n
    bare = ProfileCurve([0.0, protocol.epsilon0], [(1 - protocol.gamma) * (1 + 1e-12), 0.0])
    covered: list[tuple[int, Profile]] = []
    for l, _ in bins(1, math.ceil(3 / met), 1.6):  # noqa: E741
        curve = heap_profile(l - 1, 0, protocol.domain, protocol.gamma, protocol.response)
        covered.append((l, functools.partial(_at, curve)))
    each = gap_profile(covered, met)
    found = [_alone(protocol, bare, own)]
    # any bound on the number of visits will do; the smaller δ is, the rarer what is left out must be
    for count, unlikely in sorted({most_contributions(protocol, unlikely, own) for unlikely in _UNLIKELY}):
        found.append(compose_events([Event(each, count)], unlikely))
    return least(found)


def _alone(protocol: WalkHistogram, bare: ProfileCurve, own: float) -> ProfileCurve:
    """All responses by themselves, averaged over how many there are, which is told."""
    k, weights, unlikely = contributions_law(protocol, own)
    parts = [
        (bare.self_compose(int(count)), weight) for count, weight in zip(k.tolist(), weights.tolist(), strict=True)
    ]
    epsilon = np.linspace(0.0, protocol.epsilon0 * max(k), 4 * int(max(k)) + 1)
    total = sum(weight * np.asarray(curve.delta(epsilon)) for curve, weight in parts) * (1 + 1e-12) + unlikely
    return ProfileCurve(epsilon, np.minimum.accumulate(np.minimum(total, 1.0)))


def _at(curve: ProfileCurve, epsilon: FloatArray) -> FloatArray:
    return np.asarray(curve.delta(epsilon))


@functools.lru_cache(maxsize=64)
def _labels(n: int, colluders: int) -> Transition:
    """Independent steps at O (node 0), at u (node 1) or at any of the others (node 2), as a walk."""
    chances = [colluders, 1, n - 1 - colluders][: 2 if n == colluders + 1 else 3]
    nodes = range(len(chances))
    arrows = [(a, b) for a in nodes for b in nodes]
    return Transition(len(chances), arrows, weights=[chances[b] / n for _, b in arrows])
