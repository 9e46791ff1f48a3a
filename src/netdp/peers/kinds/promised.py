"""What a protocol promises to every party against any coalition of a size, computed in one place.

Of a masked sum all coalitions of one size learn the same. Otherwise every coalition is looked at, and δ(ε) of the promise
is the largest over them: a maximum of convex curves is convex, so chords between computed points bound it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from netdp.errors import Unsupported
from netdp.numerics.checks import whole
from netdp.privacy import GaussianCurve, Guarantee, Observers, ProfileCurve, SharedCurve, weakest
from netdp.protocols import MaskedSum, Protocol

from ..ledger.losses import accounted

_MOST_COALITIONS = 2000
_POINTS = 200


def promise_of(protocol: Protocol, colluders: int) -> Guarantee:
    """What any so many parties learn together about any other, at most: one curve for everybody."""
    whole("colluders", colluders, 1)
    if isinstance(protocol, MaskedSum):
        if protocol.mask_graph is not None:
            raise Unsupported("a study shares pads between all pairs; on another mask graph coalitions differ")
        losses = [accounted(protocol, tuple(range(colluders)))]
    else:
        losses = [accounted(protocol, members) for members in coalitions(protocol.n, colluders)]
    return for_everybody(losses, protocol.n, colluders)


def for_everybody(losses: Sequence[Guarantee], n: int, colluders: int) -> Guarantee:
    """One guarantee about each of n parties that holds wherever one of these does: the largest loss over all of them."""
    who = "single party" if colluders == 1 else f"{colluders} parties together"
    return replace(
        losses[0],
        curve=_largest(losses, n),
        claim=weakest(*(loss.claim for loss in losses)),
        assumptions=tuple(dict.fromkeys(line for loss in losses for line in loss.assumptions)),
        observers=Observers(roles=(f"any {who}",)),
        factor=None,
        slack=max(loss.slack for loss in losses),
    )


def coalitions(n: int, size: int) -> Iterator[tuple[int, ...]]:
    """All sets of so many of n parties; refuses where they are too many to look at each."""
    if (number := math.comb(n, size)) > _MOST_COALITIONS:
        raise Unsupported(
            f"there are {number:,} coalitions of {size} among {n} parties, and what they learn differs; at most "
            f"{_MOST_COALITIONS:,} are looked at. Use masked-sum, where all of one size learn the same, or fewer colluders"
        )
    yield from combinations(range(n), size)


def _largest(losses: Sequence[Guarantee], n: int) -> Any:
    """The largest loss over coalitions and targets, the same for everybody."""
    curve = losses[0].curve
    if len(losses) == 1 and isinstance(curve, SharedCurve):
        return SharedCurve(curve.curves, np.full(n, curve.which[-1]))
    if all(isinstance(loss.curve, GaussianCurve) for loss in losses):
        return GaussianCurve(np.full(n, max(float(np.nanmax(loss.mu)) for loss in losses)))
    asked = 10.0 ** -np.arange(1.0, 16.0)
    ends = [_worst(losses, delta) for delta in asked]
    top = max([end for end in ends if math.isfinite(end)], default=1.0)
    points = np.unique(np.concatenate([np.linspace(0.0, top, _POINTS), [end for end in ends if math.isfinite(end)]]))
    deltas = np.zeros(len(points))
    for loss in losses:
        found = np.stack([np.asarray(loss.delta(point), dtype=np.float64) for point in points])
        deltas = np.maximum(deltas, np.nanmax(found.reshape(len(points), -1), axis=1))
    return SharedCurve(ProfileCurve(points, np.minimum.accumulate(deltas)), np.zeros(n, dtype=np.int64))


def _worst(losses: Sequence[Guarantee], delta: float) -> float:
    return max(loss.worst_epsilon(delta) for loss in losses)


def worst_epsilon(protocol: Protocol, colluders: int, delta: float) -> float:
    """ε of the promise at one δ."""
    return worst_coalition(protocol, colluders, delta)[0]


def worst_coalition(protocol: Protocol, colluders: int, delta: float) -> tuple[float, tuple[int, ...]]:
    """ε of the promise at one δ, and a coalition that may learn as much."""
    if isinstance(protocol, MaskedSum):
        loss = promise_of(protocol, colluders).require_certified()
        return loss.worst_epsilon(delta), tuple(range(colluders))
    return max((alone(protocol, members, delta), members) for members in coalitions(protocol.n, colluders))


def alone(protocol: Protocol, members: tuple[int, ...], delta: float) -> float:
    """ε at one δ of what this one coalition learns."""
    return accounted(protocol, members).require_certified().worst_epsilon(delta)
