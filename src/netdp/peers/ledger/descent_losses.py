"""What an entry keeps of learning together, and the curve that is computed from it again.

    {"kind": "masked-descent", "share", "distance", "dimension", "sampling", "replaced", "releases", "evaluation"}

`share`, `distance`, `dimension`, `sampling`, `replaced` are those of `netdp.protocols.MaskedDescent`, `releases` the number of
sums that a party adds to, and `evaluation` None or {"share", "distance", "dimension", "apart"} of the sum that counts how
good the model is. Proof: docs/guarantees.md#training-on-peers.

**Training and evaluation.** Where a record is protected, a coin of its owner puts it into the training rows or the held-out rows,
never into both ("apart"). Given the coin, one of the two parts of the view has the same law with and without the record. δ(ε) is
jointly convex in the two laws, so it is at most the mean over the coin of the two curves, hence at most the larger one at every
ε. Where a party is protected, it is in both, and they are composed.

**Broken off.** Whoever makes an attempt end early may have looked at all sums before. So the curve of the k sums that were made
does not hold: an observer that waits for a lucky moment among T has T tries (tests/peers/ledger/test_descent_losses.py has one
who gets 4δ out of 16 sums). What was seen is post-processing of all T sums whoever ends it and when, so the whole is what
counts. Only if nothing was sent, nothing was learned: then both worlds look the same, and the entry is taken back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.accounting.masked.releases import Release, releases_curve
from netdp.accounting.masked.sampled import sampled_releases_curve
from netdp.errors import InvalidValue
from netdp.privacy import ProfileCurve
from netdp.privacy.profile import composed
from netdp.protocols import MaskedDescent, MaskedSum

KIND = "masked-descent"
_FIELDS = {
    "kind", "share", "distance", "dimension", "sampling", "replaced", "releases", "evaluation",
}  # fmt: skip
_NOTHING = ProfileCurve([0.0], [0.0])


def descent_loss(protocol: MaskedDescent, evaluation: MaskedSum | None) -> dict[str, Any]:
    """What an entry keeps of a whole training, and of the count of how good the model is.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(5), 20, sigma=8.0, step=0.5, unit="record", sampling=0.25, max_records=100)
    >>> loss = descent_loss(p, None)
    >>> loss["releases"], loss["sampling"], loss["evaluation"]
    (20, 0.25, None)
    """
    return {
        "kind": KIND,
        "share": protocol.sum.share,
        "distance": protocol.distance,
        "dimension": protocol.dimension,
        "sampling": protocol.sampling,
        "replaced": protocol.replaced,
        "releases": protocol.iterations,
        "evaluation": None
        if evaluation is None
        else {
            "share": evaluation.share,
            "distance": evaluation.distance,
            "dimension": evaluation.dimension,
            "apart": protocol.unit == "record",
        },
    }


def broken_off(loss: Mapping[str, Any], made: int) -> dict[str, Any] | None:
    """The loss of an attempt that ended after `made` sums, however that moment was chosen; None if it is not less.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(5), 20, sigma=8.0, step=0.5)
    >>> broken_off(descent_loss(p, None), 0)["releases"], broken_off(descent_loss(p, None), 1)
    (0, None)
    """
    return None if made else dict(loss) | {"releases": 0, "evaluation": None}


def check_descent(loss: Mapping[str, Any]) -> None:
    """Refuse a loss that this version could not add up."""
    if set(loss) != _FIELDS:
        raise InvalidValue(f"a {KIND} has {', '.join(sorted(_FIELDS))}; got {sorted(loss)}")
    _check_sum(loss)
    if type(loss["releases"]) is not int or loss["releases"] < 0:
        raise InvalidValue(f"the releases of a {KIND} are a whole number ≥ 0, got {loss['releases']!r}")
    if (
        type(loss["sampling"]) not in (int, float)
        or not 0 < loss["sampling"] <= 1
        or type(loss["replaced"]) is not bool
    ):
        raise InvalidValue(f"the sampling of a {KIND} is a probability, and replaced true or false; got {loss!r}")
    counted = loss["evaluation"]
    if counted is not None:
        if not isinstance(counted, dict) or set(counted) != {"share", "distance", "dimension", "apart"}:
            raise InvalidValue(f"the evaluation of a {KIND} has share, distance, dimension and apart; got {counted!r}")
        if type(counted["apart"]) is not bool:
            raise InvalidValue(f"whether an evaluation is apart is true or false, got {counted['apart']!r}")
        _check_sum(counted)


def _check_sum(part: Mapping[str, Any]) -> None:
    if not all(type(part[name]) is int and part[name] >= 1 for name in ("share", "dimension")):
        raise InvalidValue(f"a sum has a share and a dimension, whole numbers from 1 on; got {part!r}")
    distance = part["distance"]
    if type(distance) not in (int, float) or not (math.isfinite(distance) and distance >= 0):
        raise InvalidValue(f"the distance of a sum is a number ≥ 0, got {distance!r}")
    if part["dimension"] == 1 and distance != int(distance):
        raise InvalidValue(f"the distance of single numbers is a whole number of grid steps, got {distance!r}")


def descent_curve(loss: Mapping[str, Any], shares: int) -> ProfileCurve:
    """The curve against a coalition that leaves so many shares of noise.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(5), 20, sigma=8.0, step=0.5, unit="record", sampling=0.25, max_records=100)
    >>> round(float(descent_curve(descent_loss(p, None), 4).epsilon(1e-6)), 2)
    0.28
    """
    return _curve(json.dumps(loss, sort_keys=True), shares)


@lru_cache(maxsize=256)
def _curve(text: str, shares: int) -> ProfileCurve:
    loss = json.loads(text)
    counted, times = loss["evaluation"], loss["releases"]
    sums = (loss["share"], shares, loss["distance"], loss["dimension"])
    training = sampled_releases_curve(*sums, loss["sampling"], times, loss["replaced"]) if times else _NOTHING
    if counted is None:
        return training
    release = Release(counted["share"], shares, counted["distance"], counted["dimension"])
    if not counted["apart"] and loss["sampling"] == 1:
        return releases_curve([Release(*sums)] * times + [release])
    evaluation = releases_curve([release])
    return larger(training, evaluation) if counted["apart"] else composed([(training, 1), (evaluation, 1)])


def larger(one: ProfileCurve, other: ProfileCurve) -> ProfileCurve:
    """A curve that is nowhere below either."""
    points = np.union1d(one.epsilons, other.epsilons)
    largest = np.maximum(np.asarray(one.delta(points)), np.asarray(other.delta(points)))
    return ProfileCurve(points, np.maximum.accumulate(largest[::-1])[::-1])


def is_covered(loss: Mapping[str, Any], by: Mapping[str, Any]) -> bool:
    """Whether one such loss is plainly nowhere above another."""
    same = all(loss[name] == by[name] for name in ("share", "distance", "dimension", "sampling", "replaced"))
    return (
        same
        and loss["releases"] <= by["releases"]
        and (loss["evaluation"] is None or loss["evaluation"] == by["evaluation"])
    )
