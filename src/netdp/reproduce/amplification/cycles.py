"""What one cycle of m steps costs by the authors' rules: sums, histograms, descent (Figures 2b, 2c and 2d).

*Sums.* ε₀/√m: m noises of one size on one sum.

*Histograms.* m reports of an ε₀-LDP randomizer are shuffled; the least of three bounds at slack δ:
Erlingsson et al. (2019), 12ε₀√(ln(1/δ)/m), stated for m ≥ 1000 and ε₀ < 1/2; and the privacy blanket of Balle, Bell,
Gascón and Nissim (2019) with Hoeffding's and with Bennett's inequality, for any randomizer: the blanket's weight is
γ = e^{−ε₀}, a = e^ε − 1, and one report of it counts between b₋ = γe^{−ε₀}(1 − e^{ε+2ε₀}) and b₊ = γe^{ε₀}(1 − e^{ε−2ε₀}),
with second moment at most c = γe^{ε₀}(e^{2ε} + 1) − 2γ²e^{ε−2ε₀}. With B of m reports in the blanket, B binomial,

    Hoeffding   E[(ΣL)₊ | B] ≤ b²/(4a) · e^{−2Ba²/b²},  b = b₊ − b₋
    Bennett     E[(ΣL)₊ | B] ≤ b₊/(a ln(1 + ab₊/c)) · e^{−B(c/b₊²)φ(ab₊/c)},  φ(x) = (1+x)ln(1+x) − x

and δ = E[(ΣL)₊]/(γm), where the mean over B is (1 − γ + γe^{−rate})^m. The last is no more than local: ε ≤ ε₀.

*Descent.* The seed says "amplification by iteration" and no formula; the authors' code is not known to us here. Our reading:
u's step is followed by j others with j uniform below m, each such contribution costs μ²/(j + 1) (Feldman, Mironov, Talwar and
Thakurta, 2018), so on average ε₀√(H_m/m), H_m the harmonic number.

These are the authors' rules, not guarantees; see the errata 000-….
"""

from __future__ import annotations

import math

import numpy as np

from netdp.numerics.arrays import FloatArray

# a bisection that halves [0, ε₀] this often is exact to the last digits printed
_HALVINGS = 45


def sum_cycles(epsilon0: float, steps: int) -> FloatArray:
    """ε of a cycle of m steps at index m, for sums.

    >>> sum_cycles(0.4, 16)[[1, 4, 16]].tolist()
    [0.4, 0.2, 0.1]
    """
    sizes = np.maximum(np.arange(steps + 1), 1)
    out: FloatArray = epsilon0 / np.sqrt(sizes)
    return out


def descent_cycles(epsilon0: float, steps: int) -> FloatArray:
    """ε of a cycle of m steps at index m, for descent, by our reading.

    >>> descent_cycles(0.4, 4)[1:].round(4).tolist()
    [0.4, 0.3464, 0.3127, 0.2887]
    """
    sizes = np.maximum(np.arange(steps + 1), 1)
    harmonic = np.cumsum(1.0 / np.arange(1, steps + 1))
    out: FloatArray = epsilon0 * np.sqrt(np.concatenate([[1.0], harmonic]) / sizes)
    return out


def histogram_cycles(epsilon0: float, steps: int, delta: float) -> FloatArray:
    """ε of a cycle of m steps at index m, for histograms: the least of ε₀ and the three bounds.

    >>> cycles = histogram_cycles(0.4, 40_000, 1e-7)
    >>> cycles[[1, 100, 1000, 40_000]].round(4).tolist()
    [0.4, 0.3379, 0.099, 0.0143]
    """
    sizes = np.arange(steps + 1, dtype=float)
    # above a thousand the bounds fall smoothly: tabulated at 1,000 sizes, read off at the next smaller one (larger ε)
    some = np.unique(np.concatenate([np.arange(1, min(steps, 1000) + 1), np.geomspace(1, steps, 1000).astype(int)]))
    low, high = np.zeros(len(some)), np.full(len(some), epsilon0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = np.minimum(*blanket_deltas(epsilon0, middle, some)) <= delta
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    place = np.searchsorted(some, np.maximum(sizes, 1), side="right") - 1
    blanket: FloatArray = high[place]
    if epsilon0 >= 0.5:
        return blanket
    with np.errstate(divide="ignore"):
        simple = np.where(sizes >= 1000, 12 * epsilon0 * np.sqrt(math.log(1 / delta) / np.maximum(sizes, 1)), np.inf)
    out: FloatArray = np.minimum(blanket, simple)
    return out


def blanket_deltas(epsilon0: float, epsilon: FloatArray, reports: FloatArray) -> tuple[FloatArray, FloatArray]:
    """δ at ε of m shuffled reports: Hoeffding's and Bennett's bound on the privacy blanket, for any ε₀-LDP randomizer."""
    gamma = math.exp(-epsilon0)
    a = np.expm1(epsilon)
    upper = gamma * math.exp(epsilon0) * -np.expm1(epsilon - 2 * epsilon0)
    lower = gamma * math.exp(-epsilon0) * -np.expm1(epsilon + 2 * epsilon0)
    width = upper - lower
    moment = gamma * math.exp(epsilon0) * (np.exp(2 * epsilon) + 1) - 2 * gamma**2 * np.exp(epsilon - 2 * epsilon0)
    with np.errstate(divide="ignore", invalid="ignore"):
        hoeffding = width**2 / (4 * a) * _thinned(2 * a**2 / width**2, gamma, reports)
        u = a * upper / moment
        phi = (1 + u) * np.log1p(u) - u
        bennett = upper / (a * np.log1p(u)) * _thinned(moment / upper**2 * phi, gamma, reports)
    scale = 1 / (gamma * reports)
    return np.nan_to_num(hoeffding * scale, nan=np.inf), np.nan_to_num(bennett * scale, nan=np.inf)


def _thinned(rate: FloatArray, gamma: float, reports: FloatArray) -> FloatArray:
    """E[e^{−rate·B}], B ~ Binomial(reports, gamma)."""
    out: FloatArray = np.exp(reports * np.log1p(gamma * np.expm1(-rate)))
    return out
