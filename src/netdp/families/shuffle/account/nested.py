"""A coalition is stated to learn no less than any part of it (docs/proofs/shuffle.md#curator-and-users).

Bounds for different coalitions rest on different choices of t₁ and of crowds, and no formula orders them: where somebody
colludes some users may have a crowd that is proved to be better. Where it is cheap the largest bound of all parts of a coalition
is stated for it, so that whoever adds a colluder never reads a smaller loss.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from netdp.numerics.arrays import IntArray
from netdp.privacy.curve import Curve
from netdp.privacy.curves import NOBODY, SharedCurve
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.coalitions import LargestCurve

MOST_USERS, MOST_COLLUDERS = 64, 3
"""Up to so many users and colluders all parts of a coalition are looked at: eight accounts, in about a second."""

_GAIN = 0.99  # of δ: what is less than a percent below is not worth a curve for every user


def no_less_than_parts(n: int, members: tuple[int, ...], bound: Callable[[tuple[int, ...]], Curve]) -> Curve:
    """The largest of the bounds of all parts of a coalition, the curator alone among them; its own if that is too much work."""
    if not members or n > MOST_USERS or len(members) > MOST_COLLUDERS:
        return bound(members)
    sizes = range(len(members), -1, -1)
    found = [bound(part) for size in sizes for part in itertools.combinations(members, size)]
    numbers = np.stack([_numbers(curve, n) for curve in found], axis=1)
    outside = np.setdiff1d(np.arange(n), members)
    which = np.full(n, NOBODY)
    kinds, which[outside] = _alike(numbers[outside])
    shared = [curve.curves if isinstance(curve, SharedCurve) else curve for curve in found]
    parts = [SharedCurve(curve, column) for curve, column in zip(shared, kinds.T, strict=True)]
    return SharedCurve(LargestCurve(parts), which)


def least(n: int, known: Curve, other: Curve) -> Curve:
    """The lower of two curves of n users, at every ε; the first one as it is if the other gains next to nothing.

    Both are chords in e^ε between the points of both, so at these points the lower one, and chords between, are below both.
    """
    shared = [curve.curves if isinstance(curve, SharedCurve) else curve for curve in (known, other)]
    assert all(isinstance(curve, ProfileCurve) for curve in shared)
    eps = np.unique(np.concatenate([curve.epsilons for curve in shared]))  # type: ignore[attr-defined]
    kinds, which = _alike(np.stack([_numbers(known, n), _numbers(other, n)], axis=1))
    rows = []
    for curve, column in zip(shared, kinds.T, strict=True):
        table = np.stack([np.atleast_1d(np.asarray(curve.delta(e))) for e in eps], axis=-1)
        rows.append(table[column])
    if (rows[1] >= _GAIN * rows[0]).all():
        return known
    return SharedCurve(ProfileCurve(eps, np.minimum.accumulate(np.minimum(*rows), axis=-1)), which)


def _numbers(curve: Curve, n: int) -> IntArray:
    """Which of the curves each user has."""
    if isinstance(curve, SharedCurve):
        return curve.which
    return np.arange(n) if curve.shape else np.zeros(n, dtype=np.int64)


def _alike(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """The different rows, and which of them each row is."""
    kinds, place = np.unique(numbers, axis=0, return_inverse=True)
    return kinds, place.reshape(-1).astype(np.int64)
