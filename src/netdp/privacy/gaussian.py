"""The exact trade-off of a Gaussian shift: μ-Gaussian differential privacy and its (ε, δ).

Telling N(0, 1) from N(μ, 1) is what a μ-GDP observer can do at best. The exact privacy profile is

    δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)

(Balle and Wang 2018, Theorem 8). It is computed without cancellation, by Mills ratios, and returned larger by 1e-12; the inverses
aim 2e-12 below the δ they were given and check that they got there. So `gaussian_delta(mu, gaussian_epsilon(mu, delta)) <= delta`
holds, and the true δ is smaller still. See docs/proofs/privacy.md#gaussian-profile.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from netdp.errors import InvalidValue
from netdp.numerics.arrays import TINIEST, UNIT, FloatArray, scalar_or_array
from netdp.numerics.checks import as_floats, check_delta, check_epsilon, check_losses, first
from netdp.numerics.roots import increasing_root

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_INFLATE = 1e-12  # added to log δ by gaussian_delta: above the error of its formula
_AIM = 2e-12  # how far below log δ the inverses aim,
_PASS = 1.8e-12  # and how far below they must have got: more than _INFLATE plus the error
_CHUNK = 1 << 14  # entries per pass: the temporaries stay in cache
_FAR = 1e8  # |y| is clipped here: δ has long been below the smallest double, or 1

_NODES_3, _WEIGHTS_3 = np.polynomial.legendre.leggauss(3)
_NODES_6, _WEIGHTS_6 = np.polynomial.legendre.leggauss(6)
# −R′(x) = Σ (−1)^k (2k+1)!!/x^(2k+2), divergent but below 3e-16 relative for x ≥ 20 when cut after k = 10
_TAIL = np.array([(-1.0) ** k * math.prod(range(1, 2 * k + 2, 2)) for k in range(10, -1, -1)])


def _mills(x: FloatArray) -> FloatArray:
    """R(x) = Φ(−x)/φ(x)."""
    out: FloatArray = _SQRT_HALF_PI * special.erfcx(x * math.sqrt(0.5))
    return out


def _mills_fall(x: FloatArray) -> FloatArray:
    """−R′(x) = 1 − x R(x), positive and decreasing; by its asymptotic series where the subtraction costs."""
    out: FloatArray = 1 - x * _mills(x)
    far = x > 20
    if far.any():
        inverse = 1 / np.square(x[far])
        out[far] = inverse * np.polyval(_TAIL, inverse)
    return out


def _bracket_small(y: FloatArray, mu: FloatArray, nodes: FloatArray, weights: FloatArray) -> FloatArray:
    """R(y) − R(y + μ) for μ < 1/2, as an integral."""
    centre, half = y + 0.5 * mu, 0.5 * mu
    total = np.zeros_like(y)
    for node, weight in zip(nodes, weights, strict=True):
        total += weight * _mills_fall(centre + half * node)
    return np.maximum(half * total, TINIEST)


def _log_delta(y: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log δ and μφ(y)/δ, for finite μ > 0 and y ≥ −μ/2 (that is, ε ≥ 0)."""
    y = np.clip(y, -_FAR, _FAR)
    log_phi = -0.5 * y * y - _LOG_SQRT_2PI
    out = np.empty_like(y)
    weight = np.empty_like(y)
    # three regimes; each is accurate where it is used
    tiny, small, left = mu < 0.02, (mu >= 0.02) & (mu < 0.5), (mu >= 0.5) & (y <= 0)
    right = (mu >= 0.5) & (y > 0)
    for mask, nodes, weights in ((tiny, _NODES_3, _WEIGHTS_3), (small, _NODES_6, _WEIGHTS_6)):
        if mask.any():
            bracket = _bracket_small(y[mask], mu[mask], nodes, weights)
            out[mask] = log_phi[mask] + np.log(bracket)
            weight[mask] = mu[mask] / bracket
    if right.any():
        bracket = _mills(y[right]) - _mills(y[right] + mu[right])
        out[right] = log_phi[right] + np.log(bracket)
        weight[right] = mu[right] / bracket
    if left.any():  # R(y) would overflow far on the left, Φ(−y) does not
        phi = np.exp(log_phi[left])
        delta = special.ndtr(-y[left]) - phi * _mills(y[left] + mu[left])
        out[left] = np.log(delta)
        weight[left] = mu[left] * phi / delta
    return out, weight


def _offset(mu: FloatArray, epsilon: FloatArray) -> FloatArray:
    """y = ε/μ − μ/2 to nearly full relative accuracy.

    For large μ the two terms cancel, so μ²/2 is kept exactly:
    Dekker's product splits μ² into a double and its error (Dekker 1971).
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        square = mu * mu
        scaled = mu * 134217729.0
        high = scaled - (scaled - mu)
        low = mu - high
        error = ((high * high - square) + 2 * high * low) + low * low
        exact = ((epsilon - 0.5 * square) - 0.5 * error) / mu
        plain = epsilon / mu - 0.5 * mu
        # outside this range the split over- or underflows, and the cancellation does not matter or cannot be
        # undone
        return np.where((mu > 1e-70) & (mu < 1e70), exact, plain)


def _in_chunks(solve: Callable[[FloatArray, FloatArray], FloatArray], a: FloatArray, b: FloatArray) -> FloatArray:
    """Apply to one-dimensional arrays piece by piece."""
    out = np.empty_like(a)
    for i in range(0, a.size, _CHUNK):
        out[i : i + _CHUNK] = solve(a[i : i + _CHUNK], b[i : i + _CHUNK])
    return out


def gaussian_delta(mu: ArrayLike, epsilon: ArrayLike) -> FloatArray:
    """The exact δ of μ-Gaussian DP at ε, rounded up by a relative 1e-12.

    δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), elementwise over broadcast arrays. μ = 0 gives 0, μ = inf gives
    1, nan gives nan. A positive δ too small for a double is returned as the smallest double.

    Reference: Balle, Wang (2018), Theorem 8.

    >>> print(f"{gaussian_delta(1.0, 1.0):.6f}")
    0.126937
    >>> print(f"{gaussian_delta(1e-9, 0.0):.6e}")
    3.989423e-10
    """
    mus, epsilons = np.broadcast_arrays(check_losses(mu, "mu"), check_epsilon(epsilon))
    out = np.full(mus.shape, np.nan)
    out[mus == 0] = 0.0
    out[np.isposinf(mus)] = 1.0
    out[(mus > 0) & np.isfinite(mus) & np.isposinf(epsilons)] = 0.0
    usual = (mus > 0) & np.isfinite(mus) & np.isfinite(epsilons)
    out[usual] = _in_chunks(_delta_piece, mus[usual], epsilons[usual])
    return scalar_or_array(out)


def _delta_piece(mu: FloatArray, epsilon: FloatArray) -> FloatArray:
    y = np.maximum(_offset(mu, epsilon), -0.5 * mu)
    log_delta, _ = _log_delta(y, mu)
    with np.errstate(under="ignore"):
        delta = np.exp(log_delta + _INFLATE)
    # subnormal doubles are coarse: one step up
    delta = np.where(delta < 1e-300, np.nextafter(np.maximum(delta, 0), 1), delta)
    return np.clip(delta, TINIEST, 1.0)


def shift_points(mu: float) -> tuple[FloatArray, FloatArray]:
    """The ε at which a curve close to that of a Gaussian shift is stated: from 0 on, closely, and to where δ is below 10⁻²⁵⁰."""
    usual, far = mu / 2 + 12, mu / 2 + 36
    return mu * np.linspace(0.0, usual, 2401), mu * np.linspace(usual, far, 241)


def gaussian_epsilon(mu: ArrayLike, delta: ArrayLike) -> FloatArray:
    """The smallest ε ≥ 0 with δ_μ(ε) ≤ δ, rounded up.

    μ = 0 gives 0, μ = inf gives inf, nan gives nan (there is no target at an observer). δ = 0 gives inf
    for μ > 0: a Gaussian is never pure DP. δ = 1 gives 0. Relative accuracy is about 1e-12 where ε is well
    conditioned; close to the δ at which ε reaches 0, the absolute error is of the order of 1e-12 δ.

    Reference: Balle, Wang (2018), Algorithm 1; here a Newton iteration on log δ (see the module).

    >>> print(f"{gaussian_epsilon(1.0, 1e-6):.6f}")
    4.886554
    >>> gaussian_epsilon([0.0, float("nan"), float("inf")], 1e-6)
    array([ 0., nan, inf])
    """
    mus, deltas = np.broadcast_arrays(check_losses(mu, "mu"), check_delta(delta))
    out = np.full(mus.shape, np.nan)
    out[(mus > 0) & (deltas < 1)] = np.inf
    out[(mus == 0) | ((mus > 0) & (deltas == 1))] = 0.0
    usual = (mus > 0) & np.isfinite(mus) & (deltas > 0) & (deltas < 1)
    out[usual] = _in_chunks(_epsilon_piece, mus[usual], deltas[usual])
    return scalar_or_array(out)


def _epsilon_piece(mu: FloatArray, delta: FloatArray) -> FloatArray:
    log_delta = np.log(delta)
    aim = log_delta - _AIM
    # δ_μ(0) = erf(μ/√8): if it is small enough already, ε = 0
    free = np.log(np.maximum(special.erf(mu / math.sqrt(8)), TINIEST)) <= aim
    out = np.zeros_like(mu)
    if free.all():
        return out
    mu, log_delta, aim = mu[~free], log_delta[~free], aim[~free]

    # δ ≤ Φ(−y) always, so y = −Φ⁻¹(δ) is an upper bound, and nearly the root when μ is large
    low = -0.5 * mu
    high = np.maximum(-special.ndtri_exp(aim), low) + 1e-9
    # when μ is small, δ ≈ μ φ(x) · (−R′(x)) at x = ε/μ, and −R′(x) is about 1/(1 + x + x²)
    budget = np.log(mu) - aim - _LOG_SQRT_2PI
    x = np.sqrt(np.maximum(2 * budget, 0))
    for _ in range(2):
        x = np.sqrt(np.maximum(2 * (budget - np.log1p(x + x * x)), 0))
    start = np.where(mu < 1, np.minimum(x - 0.5 * mu, high), high)

    def excess(y: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, weight = _log_delta(y, mu)
        return aim - value, weight * _mills(y + mu)

    y = increasing_root(excess, low, high, start)
    # the safe side: step right until the computed δ is small enough; the last step taken is 1e-13 or so
    step = 1e-14 * (1 + np.abs(y))
    failing = np.arange(y.size)
    while failing.size:
        value, _ = _log_delta(y[failing], mu[failing])
        failing = failing[~(value <= log_delta[failing] - _PASS)]
        y[failing] += step[failing]
        step[failing] *= 2
    with np.errstate(over="ignore", under="ignore"):
        # y is exact by definition, so only the roundings of this line can lower ε: cover them
        epsilon = mu * (y + 0.5 * mu) * (1 + 8 * UNIT)
    out[~free] = np.maximum(epsilon, TINIEST)
    return out


def gaussian_mu(epsilon: ArrayLike, delta: ArrayLike) -> FloatArray:
    """The largest μ with δ_μ(ε) ≤ δ, rounded down: how strong a Gaussian signal a budget (ε, δ) allows.

    The noise that a sensitivity Δ then needs is σ = Δ/μ. δ = 0 gives 0, δ = 1 or ε = inf gives inf.

    Reference: Balle, Wang (2018), section 3; ∂δ/∂μ = φ(μ/2 − ε/μ) > 0 makes the inverse well defined.

    >>> print(f"{gaussian_mu(1.0, 1e-6):.6f}")
    0.236704
    >>> float(gaussian_mu(1.0, 0.0))
    0.0
    """
    epsilons, deltas = np.broadcast_arrays(check_epsilon(epsilon), check_delta(delta))
    out = np.zeros(epsilons.shape)
    out[(deltas == 1) | (np.isposinf(epsilons) & (deltas > 0))] = np.inf
    usual = np.isfinite(epsilons) & (deltas > 0) & (deltas < 1)
    out[usual] = _in_chunks(_mu_piece, epsilons[usual], deltas[usual])
    return scalar_or_array(out)


def _mu_piece(epsilon: FloatArray, delta: FloatArray) -> FloatArray:
    log_delta = np.log(delta)
    aim = log_delta - _AIM
    # two lower bounds of the root: δ_μ(ε) ≤ δ_μ(0) = erf(μ/√8), and δ_μ(ε) ≤ Φ(μ/2 − ε/μ)
    z = -special.ndtri_exp(aim)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        root = np.sqrt(z * z + 2 * epsilon)
        by_tail = np.where(z > 0, 2 * epsilon / (z + root), root - z)
        low = np.maximum(math.sqrt(8) * special.erfinv(delta), by_tail) * (1 - 1e-9)
    low = np.maximum(low, 1e-320)

    def log_at(mu: FloatArray, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _log_delta(np.maximum(_offset(mu, eps), -0.5 * mu), mu)

    def excess(log_mu: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, weight = log_at(np.exp(log_mu), epsilon)
        return value - aim, weight

    left = np.log(low)
    right = left.copy()
    jump = np.full_like(left, 0.1)
    growing = np.arange(left.size)
    while growing.size:
        right[growing] += jump[growing]
        jump[growing] *= 2
        value, _ = log_at(np.exp(right[growing]), epsilon[growing])
        growing = growing[value < aim[growing]]
    mu = np.exp(increasing_root(excess, left, right, right))
    step = np.full_like(mu, 1e-14)
    failing = np.arange(mu.size)
    while failing.size:
        value, _ = log_at(mu[failing], epsilon[failing])
        failing = failing[~(value <= log_delta[failing] - _PASS)]
        mu[failing] *= 1 - np.minimum(step[failing], 0.5)
        step[failing] *= 2
        failing = failing[mu[failing] > 0]  # μ = 0 always passes
    return mu


def gaussian_tradeoff(mu: ArrayLike, alpha: ArrayLike) -> FloatArray:
    """The least type II error of any test of level α that tells N(0, 1) from N(μ, 1), rounded down.

    G_μ(α) = Φ(Φ⁻¹(1 − α) − μ). Small values mean little privacy, so the safe side is down by a relative
    1e-12.

    Reference: Dong, Roth, Su (2022), section 2.2.

    >>> print(f"{gaussian_tradeoff(1.0, 0.05):.6f}")
    0.740489
    """
    mus, alphas = np.broadcast_arrays(check_losses(mu, "mu"), as_floats(alpha, "alpha"))
    bad = ~((alphas >= 0) & (alphas <= 1))
    if bad.any():
        raise InvalidValue(f"alpha, the type I error, must lie in [0, 1], got {first(alphas, bad)}")
    finite = np.where(np.isposinf(mus), 0.0, mus)
    error = special.ndtr(-special.ndtri(alphas) - finite) * (1 - _INFLATE)
    return scalar_or_array(np.asarray(np.where(np.isposinf(mus), 0.0, error)))
