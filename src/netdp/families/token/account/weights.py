"""Walks on the complete graph that draw some users more often than others, with public probabilities.

Of a target and its observers only two numbers matter (`Chances`): how likely a step is the target's, and how likely it is one of
the observers'. Both may be rounded up, so many weights become a few. The worst f observers are the f heaviest others.

Proof, and how the numbers are rounded to the safe side: docs/proofs/token.md#uneven-draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.token.account.events import side_by_side
from netdp.families.token.walk import WalkDescent, WalkHistogram, WalkSum
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy.curve import Curve
from netdp.privacy.curves import SharedCurve
from netdp.privacy.profile import ProfileCurve

Walk = WalkSum | WalkDescent | WalkHistogram

_CLASSES = 10  # different weights for which a curve is computed

_FINE = 1.3  # ratio of the heaviest classes, half of all: theirs are the losses that matter

_POINTS = 400

_UP = 1 + 8 * UNIT


class Chances(NamedTuple):
    """How likely a step is the target's, and how likely it is one of the observers'."""

    own: float
    watched: float

    @property
    def inside(self) -> float:
        """q: how likely a step outside the observers is the target's."""
        left = 1.0 - self.watched - 2 * UNIT
        return 1.0 if left <= self.own else self.own / left

    @property
    def met(self) -> float:
        """How likely a step is the target's or an observer's."""
        return min(1.0, self.own + self.watched)


def _rounded_chances(own: float, watched: float, left: float) -> Chances:
    """`Chances` rounded to the safe side; `left` = 1 − watched, added up from the weights of those who do not observe."""
    return Chances(min(own * _UP, 1.0), watched * _UP if watched <= 0.5 else math.nextafter(1.0 - left * _UP, 0.0))


def _shares(protocol: Walk) -> FloatArray:
    """The chances of all users; what is given adds up to 1 up to 10⁻¹² only."""
    return np.asarray(protocol.chances / math.fsum(protocol.chances))


def chances_of(protocol: Walk, who: int | Chances) -> Chances:
    """For so many colluders of users who are all alike; or as given."""
    if isinstance(who, Chances):
        return who
    if protocol.weights is not None:
        raise InvalidValue("with weights it matters who colludes; name the observers: account(protocol, [0, 5])")
    return Chances(1.0 / protocol.n, who / protocol.n)


def by_weight(protocol: Walk, observers: Iterable[int], profile: Callable[[Chances], ProfileCurve]) -> SharedCurve:
    """The curve of every user against these observers: one for each of a few weights, rounded up."""
    members = list(observers)
    weights = _shares(protocol)
    targets = np.setdiff1d(np.arange(protocol.n), members)
    watched, left = math.fsum(weights[members]), math.fsum(weights[targets])
    own, group = weight_classes(weights[targets])
    curves = [profile(_rounded_chances(float(one), watched, left)) for one in own]
    which = np.full(protocol.n, -1)
    which[targets] = group
    return SharedCurve(common_table(curves), which)


def by_own_weight(protocol: Walk, profile: Callable[[float], ProfileCurve]) -> Curve:
    """What depends on how often a user is drawn and on nobody else: one curve if all users are alike."""
    if protocol.weights is None:
        return profile(1.0 / protocol.n)
    return by_weight(protocol, (), lambda who: profile(who.own))


def worst_chances(protocol: Walk, colluders: int) -> list[int | Chances]:
    """The targets and coalitions among which the worst is: one, if all users are alike."""
    if protocol.weights is None:
        return [colluders]
    if not 1 <= colluders < protocol.n:
        raise InvalidValue(f"{colluders} of {protocol.n} users cannot collude; name 1 to {protocol.n - 1}")
    ordered = np.sort(_shares(protocol))[::-1]
    heaviest, others = ordered[: colluders + 1], math.fsum(ordered[colluders + 1 :])
    own, which = weight_classes(heaviest)
    pairs: list[int | Chances] = []
    for group, most in enumerate(own.tolist()):
        alike = np.unique(heaviest[which == group])
        if most - alike[0] <= others:  # the heaviest of them as a target, all but the lightest as observers
            pairs.append(_rounded_chances(most, _sum_but_one(heaviest, alike[0]), others + alike[0]))
        else:
            pairs += [_rounded_chances(one, _sum_but_one(heaviest, one), others + one) for one in alike.tolist()]
    return pairs


def _sum_but_one(weights: FloatArray, one: float) -> float:
    """The sum of all weights but one of this size."""
    place = int(np.flatnonzero(weights == one)[0])
    return math.fsum(np.delete(weights, place))


def weight_classes(weights: FloatArray) -> tuple[FloatArray, Any]:
    """A few weights, and for every user which of them is its own, rounded up.

    >>> few, which = weight_classes(np.array([0.1, 0.3, 0.1]))
    >>> few.tolist(), which.tolist()
    ([0.1, 0.3], [0, 1, 0])
    """
    few, which = np.unique(_classes(weights), return_inverse=True)
    return few, which.ravel()


def _classes(weights: FloatArray) -> FloatArray:
    """The weights as they are if few differ; else the largest of those in the same of a few ranges."""
    if len(np.unique(weights)) <= _CLASSES:
        return weights
    half = _CLASSES // 2
    top, bottom = float(weights.max()), float(weights.min())
    fine = top * _FINE ** -np.arange(1.0, half)
    edges = np.sort(
        np.append(fine, np.geomspace(min(fine[-1], top) / _FINE, max(bottom, 1e-300), _CLASSES - half + 1)[:-1])
    )
    place = np.searchsorted(edges, weights)
    largest = np.zeros(len(edges) + 1)
    np.maximum.at(largest, place, weights)
    return np.asarray(largest[place])


def common_table(curves: list[ProfileCurve]) -> ProfileCurve:
    """Several curves as rows of one table, at points that suit all of them; between these the curves themselves are asked."""
    top = max(float(curve.epsilons[-1]) for curve in curves)
    chosen = [np.array([0.0, top])]
    for curve in curves:
        place = np.linspace(0, len(curve.epsilons) - 1, max(40, _POINTS // len(curves))).round().astype(np.int64)
        small = np.searchsorted(-curve.deltas, -np.geomspace(0.5, 1e-18, max(40, _POINTS // len(curves))))
        chosen += [curve.epsilons[place], curve.epsilons[np.minimum(small, len(curve.epsilons) - 1)]]
    return side_by_side(curves, np.unique(np.concatenate(chosen)))
