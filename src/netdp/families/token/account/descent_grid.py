"""Tokens that carry a model in whole numbers: the loss in real numbers, and how far what is held is from it.

Every visit brings fresh noise, which absorbs what rounding and floating point have moved
(docs/proofs/token.md#walk-descent-on-a-grid).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from netdp.families.token.walk import WalkDescent
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.descents import absorbed, grid_assumptions, rounding_error

REFERENCES = (
    "netdp, docs/proofs/token.md#walk-descent-on-a-grid: tokens that carry a model in whole numbers.",
    "netdp, docs/proofs/learning.md#descents-on-a-grid: what rounding and floating point cost.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS, 2020.",
)


def walk_distance(protocol: WalkDescent) -> float:
    """How far all that tokens hold is from the rounded ideal in real numbers, in total variation.

    Where steps do not stretch (expansion 1) the ideal has the true gradients; else it has the rounded ones, and only the noise
    differs.

    >>> p = WalkDescent(20, 200, sigma=4.0, step=1.0, clip=0.1, grid=2.0**-42, dimension=10)
    >>> walk_distance(p.replace(expansion=1.5)) < walk_distance(p) < 1e-10
    True
    """
    carried = math.sqrt(protocol.dimension) / 2
    true = protocol.expansion == 1
    visit = rounding_error(protocol, 1, carried) if true else 0.0
    closing = protocol.tokens if protocol.closing_variance else 0
    return absorbed(
        [
            (protocol.visits, visit, protocol.variance),
            (closing, carried * (1 + 1e-12) if true else 0.0, protocol.closing_variance),
        ],
        protocol.dimension,
    )


def with_distance(curve: ProfileCurve, apart: float) -> ProfileCurve:
    """δ(ε) + (1 + e^ε)·d at the points of a table and at those between; its chords lie above, for δ is convex."""
    last = float(curve.epsilons[-1])
    points = np.unique(np.concatenate([curve.epsilons, np.linspace(0.0, last, 512)]))
    if curve.shape:
        deltas = np.stack([_row(curve, u, points) for u in range(curve.shape[0])])
    else:
        deltas = np.asarray(curve.delta(points))
    with np.errstate(over="ignore"):
        added = (1 + np.exp(points)) * apart * (1 + 8 * UNIT)
    return ProfileCurve(points, np.minimum(np.minimum.accumulate(deltas + added, axis=-1), 1.0))


_ANY = 2.0
"""Stands for any expansion but 1: bounds that do not ask for one."""


def _profile(loss: Guarantee) -> ProfileCurve:
    assert isinstance(loss.curve, ProfileCurve)
    return loss.curve


def _least(one: ProfileCurve, other: ProfileCurve) -> ProfileCurve:
    """The less of two bounds, at the points of both."""
    points = np.union1d(one.epsilons, other.epsilons)
    both = [
        np.stack([_row(curve, u, points) for u in range(curve.shape[0])])
        if curve.shape
        else np.asarray(curve.delta(points))
        for curve in (one, other)
    ]
    return ProfileCurve(points, np.minimum.accumulate(np.minimum(*both), axis=-1))


def _row(curve: ProfileCurve, u: int, points: FloatArray) -> FloatArray:
    if np.isnan(curve.deltas[u]).any():
        return np.full(len(points), np.nan)
    return np.asarray(curve.entry(u).delta(points))


def on_its_grid(protocol: WalkDescent, in_reals: Callable[[WalkDescent], Guarantee]) -> Guarantee:
    """What is claimed on the grid: where steps do not stretch, the less of that and of what holds for steps of any kind."""
    apart, real = walk_distance(protocol), protocol.in_real_numbers
    loss = in_reals(real)
    curve = with_distance(_profile(loss), apart)
    if protocol.expansion == 1:
        other = protocol.replace(expansion=_ANY)
        curve = _least(curve, with_distance(_profile(in_reals(real.replace(expansion=_ANY))), walk_distance(other)))
    return dataclasses.replace(
        loss,
        curve=curve,
        claim=Claim.UPPER,
        assumptions=(*(line for line in loss.assumptions if "real-valued" not in line), *_said(protocol, apart)),
        references=(REFERENCES[0], *loss.references, *REFERENCES[1:]),
    )


def _said(protocol: WalkDescent, apart: float) -> tuple[str, ...]:
    if protocol.expansion == 1:
        return grid_assumptions(protocol, apart)
    return (
        *grid_assumptions(protocol, math.inf),
        f"what tokens hold is within {apart:.2g} in total variation of the same walk with real-valued noise: (1 + e^ε) "
        "times that is "
        "in δ",
    )
