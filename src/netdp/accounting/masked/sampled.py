"""Noisy sums of whole numbers in which the protected one takes part at times, secretly: what many of them tell together.

A *sampled release* is Σ(k_u + η_u) over some honest parties: `shares` independent discrete Gaussians of parameter
`variance` in each of `dimension` coordinates, around a sum that holds what is protected with probability q, by a coin that
nobody sees, and zero in its place otherwise. V = shares·variance, L = `distance`. Proof: docs/guarantees.md#sampled-descent.

**Theorem.** T such releases, each chosen adaptively, have δ(ε) ≤ e^t·δ′(ε − 2t) with, for every r > 0,

    δ′(ε) ≤ e^a·δ″(ε − a − b) + e^{ε − r²/2},

t, a and b as in `netdp.accounting.masked.releases` for T releases, and δ″ the profile of T sampled Gaussian releases with
noise √V around values of length L (`netdp.privacy.sampled_gaussian`).

*Proof.* What is seen is a function of the data, the coins and the noises; coins and noises are independent of the data and
of each other. t, a and b compare laws of all noises together and nothing else: sums of shares with discrete Gaussians X,
within e^{±t} everywhere; P_X ≤ e^a·P_R everywhere and P_X ≥ e^{−b}·P_R but for an event of P_R-probability e^{−r²/2}, R being
the rounded Gaussian. Given the coins, the event that a view lies in E is an event of the noises; so both comparisons hold
for it, and, averaged over the coins, for views. A shift by whole numbers commutes with rounding: with noise R the view is
post-processing of Gaussian releases, adaptively composed, each dominated by the pair of `sampled_gaussian`. ∎

Without sampling as much is seen and more, so the bound of `releases` holds as well; on coarse grids it is the better one.
"""

from __future__ import annotations

import math

import numpy as np

from netdp.mechanisms.discrete_gaussian import normaliser_excess, sum_distance
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.checks import between, count, switch
from netdp.privacy import ProfileCurve
from netdp.privacy.sampled_gaussian import sampled_gaussian_curve

from .releases import Release, releases_curve

_TAILS = (4.0, 6.0, 8.0, 10.0, 13.0, 18.0, 30.0)  # r above


def sampled_releases_curve(
    variance: int,
    shares: int,
    distance: float,
    dimension: int,
    sampling: float,
    times: int,
    replaced: bool,
) -> ProfileCurve:
    """What so many sampled sums of whole numbers tell together, margins for discreteness included.

    variance, shares    the parameter of one honest party's noise in squared grid steps, and how many of them add theirs
    distance            how long, in grid steps and L2 norm, what is protected is at most
    sampling            the probability with which it takes part; 1: always
    replaced            False: it is there, or not at all (add/remove). True: it is one value or another, both at most
                        `distance` from the zero that stands for its absence; so up to 2·`distance` apart.

    `MaskedDescent` states `distance`, `sampling`, `releases` and `replaced` in this sense (a party that always takes part
    is not `replaced` there: its distance is that of its two values).

    >>> curve = sampled_releases_curve(10**6, 100, 2334.3, 50, 0.064, 300, False)          # noise 4.284 times the distance
    >>> round(float(curve.epsilon(1e-5)), 3)
    1.0
    """
    one = Release(variance, shares, distance, dimension).checked()
    q, times = between("sampling", sampling, 0.0, 1.0), count("times", times)
    both = switch("replaced", replaced)
    if q == 0 or distance == 0:
        return ProfileCurve([0.0], [0.0])
    always = releases_curve([one._replace(distance=2 * one.distance) if both else one] * times)
    if q == 1:
        return always
    apart = times * one.dimension * sum_distance(one.variance, one.shares) * (1 + 1e-12)
    more, less = _rounded(one, times)
    ideal = sampled_gaussian_curve(math.sqrt(one.total) / one.distance * (1 - 4 * UNIT), q, times, replaced=both)
    shifted = [
        ideal.epsilons[::each] + (2 * apart + more + less[tail]) for each, tail in ((8, 6.0), (1, 10.0), (8, 18.0))
    ]
    points = np.unique(np.concatenate([[0.0, 2 * apart], *shifted]))
    best = np.asarray(always.delta(points))
    for tail in _TAILS:
        best = np.minimum(best, _delta(ideal, points - 2 * apart, apart, more, less[tail], tail))
    return ProfileCurve(points, np.minimum.accumulate(best))


def _rounded(one: Release, times: int) -> tuple[float, dict[float, float]]:
    """a, and b for every r: how far the discrete noises of all releases are from rounded Gaussians."""
    per_variance = times * one.dimension / one.total
    length = math.sqrt(per_variance) + math.sqrt(per_variance / one.total) / 2
    excess = times * one.dimension * normaliser_excess(one.total)
    less = {r: ((length + r / math.sqrt(one.total)) ** 2 / 24 + excess) * (1 + 1e-9) for r in _TAILS}
    return per_variance / 24 * (1 + 1e-9), less


def _delta(ideal: ProfileCurve, epsilon: FloatArray, apart: float, more: float, less: float, tail: float) -> FloatArray:
    """e^t·(e^a·δ″(ε − a − b) + e^{ε − r²/2}), at ε that are already less by 2t; where ε − a − b < 0, δ″ ≤ δ″(0) + 1 − e^{ε−a−b}."""
    real = epsilon - (more + less)
    gaussian = np.asarray(ideal.delta(np.maximum(real, 0.0))) - np.expm1(np.minimum(real, 0.0))
    missed = np.exp(np.minimum(epsilon - tail**2 / 2, 0.0))
    found = math.exp(min(apart, 700.0)) * (math.exp(min(more, 700.0)) * gaussian + missed) * (1 + 16 * UNIT)
    return np.asarray(np.minimum(found, 1.0))
