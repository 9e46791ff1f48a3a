"""Noisy sums of whole numbers: what several of them tell together about one who is in all of them, or in some of them, secretly.

A *release* is Σ(k_u + η_u) over some honest parties: `shares` independent discrete Gaussians of parameter `variance` in each of
`dimension` coordinates, around a sum that the person in question moves by at most `distance` steps (L2 norm). The same shift K
times counts as one release with K times the shares and K times the distance, exactly; of different releases μ² adds up, with
margins t, a and b for discreteness. Releases may be chosen adaptively. Proofs: docs/proofs/masked.md#masked-attempts.
In a *sampled* release what is protected takes part with probability q, by a coin that nobody sees: the same margins around the
profile of `netdp.privacy.sampled_gaussian`. Proof: docs/proofs/masked.md#sampled-descent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from netdp.errors import InvalidValue
from netdp.mechanisms.discrete_gaussian import SUMMED_UP_TO, normaliser_excess, rounded_delta, shift_delta, sum_distance
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.checks import between, count, switch
from netdp.privacy.gaussian import gaussian_delta, shift_points
from netdp.privacy.profile import ProfileCurve
from netdp.privacy.renyi import RenyiCurve
from netdp.privacy.sampled_gaussian import sampled_gaussian_curve

ATOMS = 3000
"""Where the loss takes no more values than this, δ is computed at each of them, and the curve is exact between them too."""

_QUICKLY = (
    2**28
)  # of several releases no more terms are summed than take a few milliseconds; beyond, 1e-6 in ε are lost

_RELEASES_TAILS = (8.0, 10.0, 13.0, 18.0, 30.0)  # r of the proof: from e^−32 to e^−450


class Release(NamedTuple):
    """A noisy sum: how noisy each share is, of how many, and how far one may move it.

    variance    the parameter of one share, a whole number of squared grid steps
    shares      how many honest parties add one
    distance    how far, in grid steps and L2 norm, the person in question moves the sum
    dimension   how many coordinates it has
    """

    variance: int
    shares: int
    distance: float
    dimension: int = 1

    @property
    def total(self) -> int:
        """V, the parameter of all shares together."""
        return self.variance * self.shares

    @property
    def mu(self) -> float:
        """The Gaussian μ that it comes close to."""
        return self.distance / math.sqrt(self.total)

    def checked(self) -> Release:
        """Itself, with whole numbers that are whole and a distance that is a number."""
        if not (isinstance(self.distance, int | float) and math.isfinite(self.distance) and self.distance >= 0):
            raise InvalidValue(f"the distance of a release must be a finite number ≥ 0, got {self.distance!r}")
        if self.dimension == 1 and self.distance != math.floor(self.distance):
            raise InvalidValue(
                f"a single number moves by whole grid steps, got {self.distance!r}; give {math.floor(self.distance)}"
            )
        return Release(
            count("the variance of a release", self.variance),
            count("the shares of a release", self.shares),
            self.distance,
            count("the dimension of a release", self.dimension),
        )


def repeated_delta(release: Release, times: int, epsilon: FloatArray) -> FloatArray:
    """δ at each ε of one release, or of several with the same shift, margins included."""
    together, apart = _as_one(release, times)
    shifted = epsilon - 2 * apart
    allowed = np.maximum(shifted, 0.0)
    if release.dimension == 1 and together.total <= (SUMMED_UP_TO if times == 1 else _QUICKLY):
        ideal = shift_delta(together.total, int(together.distance), allowed)
    else:
        ideal = rounded_delta(together.total, together.distance, release.dimension, allowed)
    return _moved(ideal, shifted, apart)


def repeated_points(release: Release, times: int = 1) -> FloatArray:
    """The ε at which δ is computed: from 0 to where δ is below 10⁻²⁵⁰, closest where it matters."""
    together, apart = _as_one(release, times)
    mu, shift = together.mu, int(together.distance)
    near, far = shift_points(mu)
    atoms = (mu / 2 + 12) * math.sqrt(together.total)
    if release.dimension == 1 and atoms <= ATOMS:
        x = np.arange(shift // 2, shift // 2 - math.ceil(atoms) - 2, -1.0)
        near = (shift * shift - 2 * shift * x) / (2 * together.total) + 2 * apart
    points = np.concatenate([[0.0, 2 * apart], near, far])
    return np.unique(points[points >= 0])


def repeated_curve(release: Release, times: int = 1) -> ProfileCurve:
    """The curve of one release, or of several with the same shift.

    >>> once, thrice = (repeated_curve(Release(400, 9, 60), times) for times in (1, 3))
    >>> round(float(once.epsilon(1e-6)), 3), round(float(thrice.epsilon(1e-6)), 3)         # Gaussian μ = 1, √3
    (4.887, 9.254)
    """
    release, times = release.checked(), count("times", times)
    points = repeated_points(release, times)
    return ProfileCurve(points, np.minimum.accumulate(repeated_delta(release, times, points)))


def releases_curve(releases: Iterable[Sequence[float]]) -> ProfileCurve:
    """What releases (variance of a share, shares, distance in steps, dimension) tell together, in any order, adaptively.

    Exact, apart from 1e-12, for one release of a single number, and for equal ones; μ² adds up, with margins, otherwise.

    >>> one = releases_curve([(400, 9, 60, 1)])
    >>> two = releases_curve([(400, 9, 60, 1), (1000, 20, 70, 3)])
    >>> round(float(one.epsilon(1e-6)), 3), round(float(two.epsilon(1e-6)), 2)
    (4.887, 5.54)
    """
    given = Counter(Release(*release).checked() for release in releases)  # type: ignore[arg-type]
    moving = Counter({release: times for release, times in given.items() if release.distance > 0})
    if not moving:
        return ProfileCurve([0.0], [0.0])
    first = next(iter(moving))
    if len(moving) == 1 and (first.dimension == 1 or moving[first] == 1):
        return repeated_curve(first, moving[first])
    mu = math.sqrt(math.fsum(times * release.mu**2 for release, times in moving.items()))
    apart = 2 * _sums_apart(moving)
    points = np.unique(np.concatenate([[0.0, apart], *shift_points(mu)]))
    return ProfileCurve(points, np.minimum.accumulate(stacked_delta(moving, points)))


def stacked_delta(releases: Counter[Release], epsilon: FloatArray) -> FloatArray:
    """δ at each ε of different releases together: three comparisons of the joint law of their noises."""
    apart = _sums_apart(releases)
    shifted = epsilon - 2 * apart
    allowed = np.maximum(shifted, 0.0)
    items = releases.items()
    mu = math.sqrt(math.fsum(times * release.mu**2 for release, times in items)) * (1 + 16 * UNIT)
    per_variance = math.fsum(times * release.dimension / release.total for release, times in items)
    per_square = math.fsum(times * release.dimension / release.total**2 for release, times in items)
    excess = math.fsum(times * release.dimension * normaliser_excess(release.total) for release, times in items)
    least = min(release.total for release in releases)
    more = per_variance / 24 * (1 + 1e-9)
    best = np.asarray(RenyiCurve.linear(mu**2 / 2 * (1 + 8 * UNIT)).delta(allowed))
    for tail in _RELEASES_TAILS:
        length = math.sqrt(per_variance) + tail / math.sqrt(least) + math.sqrt(per_square) / 2
        less = (length**2 / 24 + excess) * (1 + 1e-9)
        real = allowed - (more + less)
        ideal = np.asarray(gaussian_delta(mu, np.maximum(real, 0.0))) - np.expm1(np.minimum(real, 0.0))
        missed = np.exp(np.minimum(allowed - tail**2 / 2, 0.0))
        best = np.minimum(best, math.exp(min(more, 700.0)) * ideal * (1 + 8 * UNIT) + missed * (1 + 8 * UNIT))
    return _moved(np.minimum(best, 1.0), shifted, apart)


def _as_one(release: Release, times: int) -> tuple[Release, float]:
    """The release that counts as all of them, and t: how far the laws of their noises are from its one."""
    apart = sum_distance(release.variance, release.shares)
    if times > 1:
        apart = times * apart + sum_distance(release.total, times)
    together = release._replace(shares=times * release.shares, distance=times * release.distance)
    return together, release.dimension * apart


def _sums_apart(releases: Counter[Release]) -> float:
    parts = (times * r.dimension * sum_distance(r.variance, r.shares) for r, times in releases.items())
    return math.fsum(parts) * (1 + 1e-12)


def _moved(ideal: FloatArray, shifted: FloatArray, apart: float) -> FloatArray:
    """e^t·δ(ε − 2t), and below zero δ(ε) ≤ δ(0) + 1 − e^ε."""
    delta = math.exp(min(apart, 700.0)) * (ideal - np.expm1(np.minimum(shifted, 0.0)))
    return np.asarray(np.minimum(delta * (1 + 8 * UNIT), 1.0))


_SAMPLED_TAILS = (4.0, 6.0, 8.0, 10.0, 13.0, 18.0, 30.0)  # r of the proof


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
    release = Release(variance, shares, distance, dimension).checked()
    q, times = between("sampling", sampling, 0.0, 1.0), count("times", times)
    both = switch("replaced", replaced)
    if q == 0 or distance == 0:
        return ProfileCurve([0.0], [0.0])
    always = releases_curve([release._replace(distance=2 * release.distance) if both else release] * times)
    if q == 1:
        return always
    apart = times * release.dimension * sum_distance(release.variance, release.shares) * (1 + 1e-12)
    more, less = _rounded(release, times)
    ideal = sampled_gaussian_curve(
        math.sqrt(release.total) / release.distance * (1 - 4 * UNIT), q, times, replaced=both
    )
    shifted = [
        ideal.epsilons[::each] + (2 * apart + more + less[tail]) for each, tail in ((8, 6.0), (1, 10.0), (8, 18.0))
    ]
    points = np.unique(np.concatenate([[0.0, 2 * apart], *shifted]))
    best = np.asarray(always.delta(points))
    for tail in _SAMPLED_TAILS:
        best = np.minimum(best, _delta(ideal, points - 2 * apart, apart, more, less[tail], tail))
    return ProfileCurve(points, np.minimum.accumulate(best))


def _rounded(release: Release, times: int) -> tuple[float, dict[float, float]]:
    """a, and b for every r: how far the discrete noises of all releases are from rounded Gaussians."""
    per_variance = times * release.dimension / release.total
    length = math.sqrt(per_variance) + math.sqrt(per_variance / release.total) / 2
    excess = times * release.dimension * normaliser_excess(release.total)
    less = {r: ((length + r / math.sqrt(release.total)) ** 2 / 24 + excess) * (1 + 1e-9) for r in _SAMPLED_TAILS}
    return per_variance / 24 * (1 + 1e-9), less


def _delta(ideal: ProfileCurve, epsilon: FloatArray, apart: float, more: float, less: float, tail: float) -> FloatArray:
    """e^t·(e^a·δ″(ε − a − b) + e^{ε − r²/2}), at ε that are already less by 2t; where ε − a − b < 0, δ″ ≤ δ″(0) + 1 − e^{ε−a−b}."""
    real = epsilon - (more + less)
    gaussian = np.asarray(ideal.delta(np.maximum(real, 0.0))) - np.expm1(np.minimum(real, 0.0))
    missed = np.exp(np.minimum(epsilon - tail**2 / 2, 0.0))
    delta = math.exp(min(apart, 700.0)) * (math.exp(min(more, 700.0)) * gaussian + missed) * (1 + 16 * UNIT)
    return np.asarray(np.minimum(delta, 1.0))
