"""Noisy sums of whole numbers: what several of them tell together about one who is in all of them, or in some of them, secretly.

A *release* is Σ(k_u + η_u) over some honest parties: `shares` independent discrete Gaussians of parameter `variance` in each of
`dimension` coordinates, around a sum that the person in question moves by at most `distance` steps (L2 norm). The same shift K
times counts as one release with K times the shares and K times the distance, exactly; of different releases μ² adds up, with
margins t and τ for discreteness. Releases may be chosen adaptively. Proofs: docs/proofs/masked.md#masked-attempts.
In a *sampled* release what is protected takes part with probability q, by a coin that nobody sees: the same margins around the
profile of `netdp.privacy.sampled_gaussian`. Proof: docs/proofs/masked.md#sampled-descent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from netdp.errors import InvalidValue
from netdp.mechanisms.discrete_gaussian import (
    CARES,
    SUMMED_UP_TO,
    drawn_around,
    moved,
    rounded_delta,
    shift_delta,
    sum_distance,
)
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.checks import between, count, switch
from netdp.privacy.gaussian import gaussian_delta, shift_points
from netdp.privacy.profile import PerCurve, ProfileCurve
from netdp.privacy.renyi import RenyiCurve
from netdp.privacy.sampled_gaussian import sampled_gaussian_curve

ATOMS = 3000
"""Where the loss takes no more values than this, δ is computed at each of them, and the curve is exact between them too."""

_QUICKLY = (
    2**28
)  # of several releases no more terms are summed than take a few milliseconds; beyond, 1e-6 in ε are lost


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

    if release.dimension == 1 and together.total <= (SUMMED_UP_TO if times == 1 else _QUICKLY):
        return moved(partial(shift_delta, together.total, int(together.distance)), apart, epsilon)
    return moved(partial(rounded_delta, together.total, together.distance, release.dimension), apart, epsilon)


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
    formula = partial(repeated_delta, release, times)
    return ProfileCurve(points, np.minimum.accumulate(formula(points)), PerCurve((formula,)))


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
    formula = partial(stacked_delta, moving)
    return ProfileCurve(points, np.minimum.accumulate(formula(points)), PerCurve((formula,)))


def stacked_delta(releases: Counter[Release], epsilon: FloatArray) -> FloatArray:
    """δ at each ε of different releases together: three comparisons of the joint law of their noises."""
    items = releases.items()
    apart = _sums_apart(releases)
    rho = math.fsum(times * r.mu**2 for r, times in items) / 2 * (1 + 32 * UNIT)
    best = moved(RenyiCurve.linear(rho).delta, apart, epsilon)
    for care in CARES:
        around = {release: drawn_around(release.total, times * release.dimension, care) for release, times in items}
        further = math.fsum(t for _, t in around.values()) * (1 + 8 * UNIT)
        mu = math.sqrt(math.fsum(times * r.distance**2 / (r.total - around[r][0]) for r, times in items))
        best = np.minimum(best, moved(partial(gaussian_delta, mu * (1 + 16 * UNIT)), apart + further, epsilon))
    return best


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


_CARE = 1e3  # of `drawn_around`, for sampled releases: one choice, for each costs a composition


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
    around, drawn = drawn_around(release.total, times * release.dimension, _CARE)
    apart = times * release.dimension * sum_distance(release.variance, release.shares) * (1 + 1e-12) + drawn
    noise = math.sqrt(release.total - around) / release.distance
    ideal = sampled_gaussian_curve(noise * (1 - 8 * UNIT), q, times, replaced=both)
    points = np.unique(np.concatenate([[0.0], ideal.epsilons + 2 * apart])) if apart < 1 else always.epsilons
    formula = partial(_sampled_delta, ideal, always, apart)
    return ProfileCurve(points, np.minimum.accumulate(formula(points)), PerCurve((formula,)))


def _sampled_delta(ideal: ProfileCurve, always: ProfileCurve, apart: float, epsilon: FloatArray) -> FloatArray:
    """δ at each ε: without the gain of sampling, or e^t·δ″(ε − 2t) with it, the less."""
    sampled = moved(ideal.delta, apart, epsilon)
    return np.minimum(np.asarray(always.delta(epsilon)), sampled)
