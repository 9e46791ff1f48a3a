"""Several noisy sums of whole numbers: what they tell together about one who is in all of them.

A *release* is Σ(k_u + η_u) over some honest parties: `shares` independent discrete Gaussians of parameter `variance` in
each of `dimension` coordinates, around a sum that the person in question moves by at most `distance` steps (L2 norm).
Proofs: docs/guarantees.md#masked-attempts.

**The same shift K times counts as one release with K times the shares and K times the distance.** *Proof.* Let Z_i =
b·D + X_i, i = 1 … K, X_i discrete Gaussian of parameter V in every coordinate, b = 0 or 1. The log-ratio of the two
laws at (z_1, …, z_K) is Σ_i(‖z_i‖² − ‖z_i − D‖²)/2V = (2⟨D, Σz_i⟩ − K‖D‖²)/2V: it depends on Σz_i only, so the sum
tells as much about b as all of them, exactly. It is K·D away from ΣX_i, the sum of K discrete Gaussians. ∎ In Gaussian
terms μ grows by √K. What is lost is what replaces sums of shares by discrete Gaussians: law by law within e^{±t}
(`netdp.mechanisms.discrete_gaussian`), so K·t of h shares each, and the distance of a sum of K.

**Different releases.** Let release i have V_i = shares·variance, L_i its distance, d_i its dimension. Three steps, each
for *any adaptive choice*: what comes later, data and rosters included, may depend on what was seen before. The view is a
function of b and of the noises, and all bounds are on the joint law of the noises.

1. Sums of shares → discrete Gaussians, within e^{±t}, t = Σ d_i·t_i. So δ(ε) ≤ e^t·δ′(ε − 2t).
2. Discrete Gaussians X → rounded Gaussians R. As for one release, P_X ≤ e^a P_R everywhere, a = Σ d_i/24V_i, and P_X ≥
   e^{−b} P_R where Σ‖x_i‖²/24V_i² + Σ d_i log c_i ≤ b. With G_i = √V_i·g_i, ‖R_i‖ ≤ √V_i‖g_i‖ + √d_i/2, so
   √(Σ‖R_i‖²/V_i²) ≤ f(g) + ½√(Σ d_i/V_i²), f(g)² = Σ‖g_i‖²/V_i. f has the Lipschitz constant 1/√min V and E f ≤
   √(Σ d_i/V_i), so it exceeds √(Σ d_i/V_i) + r/√min V with probability at most e^{−r²/2}. Hence with b = (√(Σ d_i/V_i)
   + r/√min V + ½√(Σ d_i/V_i²))²/24 + Σ d_i log c_i

       δ′(ε) ≤ e^a·δ″(ε − a − b) + e^{ε − r²/2}      for every r > 0.

3. δ″: rounding is post-processing of Gaussian shifts of at most L_i/√V_i, whose adaptive composition is one shift by μ,
   μ² = Σ L_i²/V_i (Dong, Roth, Su 2022, Corollary 3.3).

Instead of 2 and 3: each discrete Gaussian is L_i²/2V_i-zCDP, and zCDP adds up under adaptive composition. The smaller
bound counts.

**Equal single numbers.** If V and L agree, d = 1 and the shifts may differ (|D_i| ≤ L), every (X, X + D_i) is dominated,
at every ε and in both directions, by (X, X + L) (`shift_delta`: grows with the shift), and the composition of the former
by the product of the latter (Zhu, Dong, Wang 2022, Theorem 10), which is the same shift K times: exact, as above.
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
from netdp.numerics.checks import count
from netdp.privacy import ProfileCurve, RenyiCurve, gaussian_delta

ATOMS = 3000
"""Where the loss takes no more values than this, δ is computed at each of them, and the curve is exact between them too."""
_QUICKLY = (
    2**28
)  # of several releases no more terms are summed than take a few milliseconds; beyond, 1e-6 in ε are lost
_TAILS = (8.0, 10.0, 13.0, 18.0, 30.0)  # r above: from e^−32 to e^−450


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
    usual, far = mu / 2 + 12, mu / 2 + 36
    atoms = usual * math.sqrt(together.total)
    if release.dimension == 1 and atoms <= ATOMS:
        x = np.arange(shift // 2, shift // 2 - math.ceil(atoms) - 2, -1.0)
        near = (shift * shift - 2 * shift * x) / (2 * together.total) + 2 * apart
    else:
        near = mu * np.linspace(0.0, usual, 2401)
    points = np.concatenate([[0.0, 2 * apart], near, mu * np.linspace(usual, far, 241)])
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
    usual, far = mu / 2 + 12, mu / 2 + 36
    points = np.concatenate([[0.0, apart], mu * np.linspace(0.0, usual, 2401), mu * np.linspace(usual, far, 241)])
    points = np.unique(points)
    return ProfileCurve(points, np.minimum.accumulate(stacked_delta(moving, points)))


def stacked_delta(releases: Counter[Release], epsilon: FloatArray) -> FloatArray:
    """δ at each ε of different releases together: the three steps at the top."""
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
    for tail in _TAILS:
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
    found = math.exp(min(apart, 700.0)) * (ideal - np.expm1(np.minimum(shifted, 0.0)))
    return np.asarray(np.minimum(found * (1 + 8 * UNIT), 1.0))
