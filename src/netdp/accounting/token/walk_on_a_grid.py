"""Walks that add whole numbers: what tokens on a wire reveal (proofs: docs/guarantees.md#walk-on-a-grid).

**Theorem.** Let δ′(ε) bound what is learnt from a walk in real numbers by *showing pieces of it*: sums of contributions over
disjoint sets of steps, with Gaussian noise of variance v at every step (and closing noise of at least closing·v), where who
holds a token, how the steps are cut into pieces and what is told of the path may depend on the path and on coins, not on
data. Then the same walk with values in whole numbers, as far apart as in δ′, and discrete Gaussian noise of parameter v has

    δ(ε) ≤ e^{a+t}·δ′(ε − a − b − 2t) + e^{ε−r²/2},

for N steps of all tokens, d coordinates, R = √(Nd)·(1 + 1/(2√v)) + r, any r ≥ 0, and

    a = Nd/24v,   b = R²/24v + Nd·log c,   t = N·d·log((1 + 2S)/(1 − 2S)),

c and S as in `netdp.mechanisms.discrete_gaussian`, S at s² = w/2, w the least parameter of any noise.

**Proof.** Fix path and coins; they have the same law with u's data and with its other data, so it is enough to compare what is
shown given them. A piece of m steps shows whole numbers plus the sum of its m noises (and the closing noise). (1) That sum is
within e^{±t_m} of one discrete Gaussian of parameter V ≥ mv, everywhere (sums of unequal ones: `ring_on_a_grid`), where t_m adds
up at most one term per noise and coordinate, each with s² ≥ w/2. Pieces share no noise, so all together are within e^{±t}. (2) One
discrete Gaussian of parameter V against N(0, V) rounded: at most e^{d/24V} times as likely everywhere, and at least e^{−x²/24V²}/c
times at x in every coordinate. There are at most N pieces and V ≥ v in each: a bounds the sum of the former; Σ x²/24V² ≤ (Σ
x²/V)/24v, and the vector of all x/√V is a standard Gaussian of at most Nd coordinates, rounded to within 1/(2√v) in each: its
norm exceeds R with probability at most e^{−r²/2}. (3) A shift by whole numbers commutes with rounding: what is shown with rounded
noise is the rounding of what is shown in real numbers with noise of variance V, which is noise of variance mv (and closing·v)
and more; so δ′ bounds it. (1) and (2) give P ≤ e^{a+t}P′ and P′ ≤ e^{b+t}P + e^{−r²/2} for each of the two data sets, and
P(E) − e^ε Q(E) ≤ e^{a+t}(P′(E) − e^{ε−a−b−2t}Q′(E)) + e^{ε−r²/2}. Where ε < a + b + 2t, P′ − e^s Q′ ≤ δ′(0) + 1 − e^s. ∎

**Every bound on walks is of this kind** (`walk`, `openings`, `stretches`, `graph_walk`, `known_path`): steps one by one, blocks,
openings, endings, stretches between two visits with the path told, and all of u's contributions by themselves.

**How far apart.** Rounding moves two values at most `distance` grid steps apart; for the secret path all users' values lie in one
public set, and their rounded values in one whose diameter is the same.

**Rounding.** δ′ comes as a table whose chords, in e^ε, lie above it; the map above takes chords to chords.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from netdp.errors import Unsupported
from netdp.mechanisms.discrete_gaussian import normaliser_excess
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy import Curve, GaussianCurve, ProfileCurve, SharedCurve
from netdp.protocols.token_grid import TokenGrid

REFERENCES = (
    "netdp, docs/guarantees.md#walk-on-a-grid: tokens on a walk that add whole numbers.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS, 2020.",
    "P. Kairouz, Z. Liu, T. Steinke. The Distributed Discrete Gaussian Mechanism. ICML, 2021.",
)

_TAIL = 16.0  # r above: e^−128
_POINTS = 1200
_MOST_CURVES = 4096
_SMALLEST = 1e-30  # tables of Gaussian curves end where δ is this


@dataclasses.dataclass(frozen=True)
class Margins:
    """δ(ε) ≤ e^up·δ′(ε − both) + e^ε·tail."""

    up: float
    both: float
    tail: float

    @classmethod
    def of(cls, protocol: TokenGrid) -> Margins:
        """Of a protocol on a grid: a + t, a + b + 2t and e^{−r²/2} above, rounded up.

        >>> from netdp.protocols import WalkSum
        >>> fine, finer = (Margins.of(WalkSum(100, 1000, sigma=1.0, grid=2.0**-k)) for k in (10, 14))
        >>> 2e-4 > fine.both > 100 * finer.both
        True
        """
        v, noises = protocol.variance, protocol.visits
        numbers = noises * protocol.dimension
        least = min(v, protocol.closing_variance or v)
        first = math.exp(-(math.pi**2) * least * (1 - 1e-9))
        rest = first / (1 - first**3)
        # one more noise for every token's closing
        added = 2 * numbers * (math.log1p(2 * rest) - math.log1p(-2 * rest))
        reach = math.sqrt(numbers) * (1 + 0.5 / math.sqrt(v)) + _TAIL
        above = numbers / (24 * v)
        below = reach**2 / (24 * v) + numbers * normaliser_excess(v)
        room = 1 + 1e-9
        return cls((above + added) * room, (above + below + 2 * added) * room, math.exp(-(_TAIL**2) / 2))

    def apply(self, curve: ProfileCurve) -> ProfileCurve:
        """The table of δ from that of δ′."""
        grown = math.exp(min(self.up, 700.0)) * (1 + 8 * UNIT)
        deltas = np.asarray(curve.deltas, dtype=np.float64)
        first = deltas[..., :1] + (-math.expm1(-self.both))  # at ε = 0, on the way to the first point
        epsilons = np.concatenate([[0.0], curve.epsilons + self.both])
        lost = np.exp(np.minimum(epsilons, 700.0)) * self.tail
        found = np.minimum(grown * np.concatenate([first, deltas], axis=-1) + lost, 1.0)
        return ProfileCurve(epsilons, np.minimum.accumulate(found, axis=-1))


def on_the_grid(curve: Curve, protocol: TokenGrid) -> Curve:
    """The loss of a protocol on a grid, from that of `protocol.in_real_numbers`."""
    margins = Margins.of(protocol)
    if isinstance(curve, ProfileCurve):
        return margins.apply(curve)
    if isinstance(curve, SharedCurve) and isinstance(curve.curves, ProfileCurve):
        return SharedCurve(margins.apply(curve.curves), curve.which)
    if isinstance(curve, GaussianCurve):
        return _gaussians(np.asarray(curve.mu, dtype=np.float64), margins)
    raise Unsupported(
        f"a {curve.kind} curve is not carried over to a grid; leave grid=None, or ask for δ(ε) (leave statement out)"
    )


def _gaussians(mu: FloatArray, margins: Margins) -> Curve:
    """A table for every different μ; nan stays without one."""
    kinds, which = np.unique(mu[~np.isnan(mu)], return_inverse=True)
    if len(kinds) > _MOST_CURVES:
        raise Unsupported(
            f"{len(kinds):,} different losses on a grid are more than {_MOST_CURVES:,} tables; ask for the observers of "
            "interest, account(protocol, observers), or leave grid=None"
        )
    finite = kinds[np.isfinite(kinds)]
    wanted = max(48, min(_POINTS, 60_000 // max(len(kinds), 1)))
    points = [np.zeros(1)]
    for one in finite if len(finite) <= 8 else np.quantile(finite, np.linspace(0, 1, 8)):
        points.append(np.linspace(0.0, max(float(GaussianCurve(float(one)).epsilon(_SMALLEST)), 1e-9), wanted))
    epsilon = np.unique(np.concatenate(points))
    deltas = np.ones((len(kinds), len(epsilon)))
    for row, one in enumerate(kinds.tolist()):
        if math.isfinite(one):
            deltas[row] = np.minimum.accumulate(np.asarray(GaussianCurve(one).delta(epsilon)))
    if not mu.shape:
        return margins.apply(ProfileCurve(epsilon, deltas[0]))
    place = np.full(mu.shape, -1, dtype=np.int64)
    place[~np.isnan(mu)] = which
    return SharedCurve(margins.apply(ProfileCurve(epsilon, deltas)), place)


def wire_assumptions(protocol: Any) -> tuple[str, str]:
    """What must hold of values and noise on a grid."""
    coordinates = "one coordinate" if protocol.dimension == 1 else f"at most {protocol.dimension:,} coordinates"
    closing = f", the closing one of {protocol.closing_variance}" if protocol.closing_variance else ""
    return (
        f"a value has {coordinates}, clipped before it is rounded; each coordinate x becomes ⌊x/g + ½⌋, g = {protocol.step!r}, "
        "and by no other rule",
        f"the noise of every visit is a discrete Gaussian of parameter {protocol.variance} squared grid steps{closing}, drawn "
        "exactly, from a cryptographic source; a simulation with NumPy's generators protects nobody",
    )
