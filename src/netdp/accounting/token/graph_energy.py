"""From the energy of a random path to a privacy profile, without counting visits (docs/guarantees.md#walk-energy).

Given the path of a token, what the observers see is at most one Gaussian shift of μ² = E·(Δ/σ)², where the *energy* E is a
number that depends on the path only: 1/l for a contribution that l noises cover, and so on. The path is told, so

    δ(ε) ≤ E[δ_Gauss(√E·Δ/σ; ε)].

**By exponential moments.** For every s ≥ 0 and x ≥ 0: δ_Gauss(√x; ε) ≤ κ(s, ε)·e^{sx} with κ(s, ε) = sup_x δ_Gauss(√x; ε)e^{−sx},
by definition. With x = E·(Δ/σ)², for any event B (told, too)

    δ(ε) ≤ min_s κ(s, ε)·E[e^{sx}; not B] + P(B),

and the tokens being independent the moments multiply. Where E varies little, the best s makes this sharp; no bound on the
number of visits is needed, and none of its tail is paid for. Moments do not depend on σ, so a search for σ takes them once.

**κ on a grid.** Between two grid points x < x′ the supremum is at most δ_Gauss(√x′; ε)e^{−sx}; beyond the last, e^{−sx}. Any grid
is sound: a few, at scales 1.5 apart, serve all users and all noise.

**A renewal equation.** If the walk starts afresh at certain visits, with K_r the moment of what happens between two of them
that are r steps apart, and F_r that of what comes before the first and after the last, r steps in all, the moment of the whole
walk is a coefficient of the power series F(z)/(1 − K(z)), all of whose coefficients are ≥ 0. It is read off M values on a
circle of radius ρ < 1/growth by a Fourier transform. What that adds besides are the coefficients M, 2M, … further on, times
ρ^M, …: all ≥ 0, so the result is too large, never too small. Rounding is bounded by the same series at ρ itself and added.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netdp.numerics.arrays import UNIT, FloatArray, frozen
from netdp.privacy import ProfileCurve
from netdp.privacy._gaussian_means import mean_delta

from .graph_kernels import least_products

_RATIO = 1.015  # of neighbouring x, in κ
_SCALES = 1.5  # of neighbouring grids
_ALONE = np.ones(1)
_AGAIN = 1e-8  # what the coefficients M further on may add
_LARGEST = 250.0  # logarithms of moments beyond this are of no use
_SMALLEST = 1e-300  # stands for 0 under a logarithm


@dataclass(frozen=True, eq=False)
class Moments:
    """E[e^{sE}; not B] at some s, as logarithms, and P(B)."""

    s: FloatArray
    logs: FloatArray
    outside: float = 0.0

    def repeated(self, times: int) -> Moments:
        """So many independent walks."""
        return Moments(self.s, self.logs * times, self.outside * times)


Terms = Sequence[Sequence[FloatArray]]
"""A sum of products of power series."""


def series_coefficient(above: Terms, kernel: Terms, place: int, growth: FloatArray | None = None) -> float:
    """The logarithm of the coefficient `place` of e^{g}·above/(1 − e^{g}·kernel), g the series `growth`; from above.

    All coefficients given must be ≥ 0.

    >>> one = np.array([1.0])
    >>> round(math.exp(series_coefficient([[one]], [[np.array([0.0, 0.5])]], 5)) * 32, 6)      # 1/(1 − z/2): 2⁻⁵
    1.0
    >>> round(math.exp(series_coefficient([[one]], [], 4, np.array([0.0, 1.0]))) * 24, 6)      # e^z: 1/4!
    1.0
    """
    length = 1 << math.ceil(math.log2(4 * (place + 1)))
    grow = np.zeros(1) if growth is None else growth[: place + 1]
    with np.errstate(under="ignore", over="ignore"):
        rate = _rate(kernel, grow, place, 0.05 / length)
        if not math.isfinite(rate):
            return math.inf
        rate -= math.log(_AGAIN) / length
        kernel_at, above_at, grown = (_at(terms, rate, place) for terms in (kernel, above, [[grow]]))
        factor = math.exp(grown) if grown < _LARGEST else math.inf
        gap = 1.0 - factor * kernel_at
        whole = factor * above_at / gap
    if not (gap > 1e-9 and math.isfinite(whole)):
        return math.inf
    ways = np.exp(_on_circle([[grow]], rate, place, length))
    spectrum = ways * _on_circle(above, rate, place, length) / (1.0 - ways * _on_circle(kernel, rate, place, length))
    found = float(np.fft.irfft(spectrum, length)[place])
    wrong = 64 * UNIT * (math.log2(length) + 4 + grown) * whole / gap
    return math.log(max(found + wrong, wrong, _SMALLEST)) + rate * place + 1e-9


def _damped(part: FloatArray, rate: float, place: int) -> FloatArray:
    kept = part[: place + 1]
    return np.asarray(kept * np.exp(-rate * np.arange(len(kept))))


def _at(terms: Terms, rate: float, place: int) -> float:
    """The sum of products at z = e^{−rate}."""
    return math.fsum(math.prod(float(_damped(part, rate, place).sum()) for part in term) for term in terms)


def _on_circle(terms: Terms, rate: float, place: int, length: int) -> npt.NDArray[np.complex128]:
    """The same at the `length` points of the circle of this radius."""
    total = np.zeros(length // 2 + 1, dtype=np.complex128)
    for term in terms:
        total += np.prod([np.fft.rfft(_damped(part, rate, place), length) for part in term], axis=0)
    return total


def _rate(kernel: Terms, grow: FloatArray, place: int, within: float) -> float:
    """The rate r ≥ 0 at which e^{g}·kernel is 1 at z = e^{−r}, or a little more, `within`; 0 if it is below 1 anyway."""

    def over(rate: float) -> bool:
        grown = _at([[grow]], rate, place)
        return grown > _LARGEST or math.exp(grown) * _at(kernel, rate, place) > 1.0

    if not over(0.0):
        return 0.0
    low, high = 0.0, 1.0 / (place + 1)
    while over(high):
        low, high = high, 2.0 * high
        if high > 100.0:
            return math.inf
    while high - low > within:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if over(middle) else (low, middle)
    return high


def moments_of(log_moment: Callable[[float], float], outside: float = 0.0) -> Moments:
    """Moments at some twenty s around the one where E[e^{sE}] = e; any s would be sound."""
    s = 1.0
    for _ in range(60):
        found = log_moment(s)
        if 0.4 < found < 2.5:
            break
        s *= 0.25 if found > 2.5 else 2.5
    points, logs = [], []
    for one in s * np.geomspace(1 / 12, 40, 22):
        found = log_moment(float(one))
        if not found < _LARGEST:
            break
        points.append(float(one))
        logs.append(found)
    return Moments(np.array(points), np.array(logs), outside)


def profile(moments: Moments, mu: float, tokens: int = 1) -> ProfileCurve:
    """δ(ε) from the moments of the energy of one token, μ = Δ/σ."""
    together = moments.repeated(tokens)
    useful = np.isfinite(together.logs) & (together.logs < _LARGEST)
    if not useful.any():
        return ProfileCurve([0.0], [1.0])
    s, logs = together.s[useful] / mu**2, np.maximum(together.logs[useful], 0.0)
    # where the energy lies, about: for a choice of points only
    usual = max(float(np.min(logs / s)), 1e-12)
    eps, x, log_delta = _gaussians(math.ceil(math.log(usual) / math.log(_SCALES)))
    best = least_products(log_delta, np.concatenate([[0.0], x[:-1]]), float(x[-1]), s, logs)
    delta = np.minimum(np.exp(np.minimum(best, 0.0)) * (1 + 1e-9) + together.outside, 1.0)
    return ProfileCurve(eps, np.minimum.accumulate(delta))


@functools.lru_cache(maxsize=32)
def _gaussians(scale: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """ε, x and log δ_Gauss(√x; ε) at all of them, rows for ε, where losses of the size 1.5^scale matter."""
    usual = _SCALES**scale
    top = 4.0 * (usual + math.sqrt(80.0 * usual))
    eps = np.concatenate([[0.0], np.geomspace(top * 1e-4, top, 480)])
    x = np.geomspace(usual * 1e-2, usual * 300.0, math.ceil(math.log(3e4) / math.log(_RATIO)))
    with np.errstate(divide="ignore"):
        log_delta = np.log(np.stack([mean_delta(one, _ALONE, eps) for one in np.sqrt(x)[:, None]], axis=1))
    return frozen(eps), frozen(x), frozen(log_delta)
