"""One law of privacy losses, composed with itself many times, in a transform: every error on the safe side.

Given masses of a loss on a grid of step d under P, at least those of a pair that dominates, what T releases tell has

    δ(ε) ≤ Σ_k w_k·(1 − e^{ε − kd})₊ + T·(mass at infinity),      w the T-th power of the masses under convolution.

`netdp.privacy._losses` squares again and again; here one transform is raised to the T-th power, which is as exact and many
times faster for large T. What it can get wrong is bounded and added:

- *The window.* Indices are taken modulo N. Mass from below the window comes back inside it, which only adds. Mass from above it is
  at most e^{T(K(s+θ) − K(s)) − θ·end} for every θ > 0 (Chernoff), K the log of the generating function.
- *Rounding of transforms.* A transform of length N has a relative error of at most η = 8u·log₂N in 2-norm (Higham 2002, Theorem
  24.2). Values F of the transform are at most 1 in size, so F^T has an error of at most T times that of F, and its powers
  8uT relatively. In all the masses have errors of at most √N·‖masses‖₂·(T(η + 8u) + η) in 1-norm, up to a factor of 1.1 while
  that is small; 1.2 is used.
- *The tail.* These errors are relative to the largest masses, and would drown a small δ. So masses are first tilted, weighted by
  e^{s·loss}, s ≥ 0, for several s such that δ of each of several levels comes to lie where the masses are largest. Tilting commutes
  with convolution; an error of tilted mass counts e^{T·K(s) − sε} at ε, and mass above ε less. Each s gives a bound at every ε, and
  the least holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from netdp.numerics.arrays import UNIT, FloatArray

LEVELS = (1e-2, 1e-5, 1e-9, 1e-15, 1e-28)
"""Of δ: near each of them the composed curve is as exact as the grid."""

_COARSE = 2048  # cells that choose tilts and windows: any choice is sound
_WINDOW = 30.0  # e^−30 of the tilted law may lie above the window
_STRENGTHS = (0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0)  # of θ, over the deviation of the sum
_LONGEST = 1 << 21  # of a transform
_APART = 1.04  # the least ratio of two tilts that are worth a transform each
_TELLING = 1e-30  # δ below which a curve ends


@dataclass(frozen=True, eq=False)
class Masses:
    """Masses of the loss under P at step·(low + i), at least those of a dominating pair; the rest is infinite."""

    step: float
    low: int
    masses: FloatArray
    infinite: float

    @property
    def losses(self) -> FloatArray:
        """Where the masses are."""
        return np.asarray(self.step * np.arange(self.low, self.low + len(self.masses), dtype=np.float64))


class Tilting:
    """K(s) = log Σ mass·e^{s·loss}: roughly on few cells, and on all of them; and the masses, tilted."""

    def __init__(self, one: Masses) -> None:
        with np.errstate(divide="ignore"):
            self._logs = np.log(one.masses)
        self._losses = one.losses
        self._least = (0.1 * one.step) ** 2
        block = -(-len(one.masses) // _COARSE)
        padded = np.zeros(block * -(-len(one.masses) // block))
        padded[: len(one.masses)] = one.masses
        weighted = np.zeros_like(padded)
        weighted[: len(one.masses)] = one.masses * one.losses
        mass = padded.reshape(-1, block).sum(axis=1)
        kept = mass > 0
        self._few_logs = np.log(mass[kept])
        self._few_losses = weighted.reshape(-1, block).sum(axis=1)[kept] / mass[kept]

    def rough(self, s: float) -> tuple[float, float, float]:
        """K, K′, K″, nearly."""
        exponents = self._few_logs + s * self._few_losses
        top = float(np.max(exponents))
        weights = np.exp(exponents - top)
        total = float(np.sum(weights))
        mean = float(np.sum(weights * self._few_losses)) / total
        spread = float(np.sum(weights * (self._few_losses - mean) ** 2)) / total
        return top + math.log(total), mean, spread

    def end(self, times: int, s: float, sign: float) -> tuple[float, float]:
        """Beyond which loss, up or down, e^−30 of the tilted law of so many lies at most, nearly; and Chernoff's θ there."""
        cumulant, _, spread = self.rough(s)
        deviation = math.sqrt(times * max(spread, self._least))
        tried = [strength / deviation for strength in _STRENGTHS]
        ends = [(times * (self.rough(s + sign * theta)[0] - cumulant) + _WINDOW) / theta for theta in tried]
        best = int(np.argmin(ends))
        return sign * ends[best], tried[best]

    def exact(self, s: float) -> float:
        """K, up to rounding."""
        exponents = self._logs + s * self._losses
        top = float(np.max(exponents))
        return top + math.log(float(np.sum(np.exp(exponents - top))))

    def tilted(self, s: float) -> tuple[FloatArray, float, float]:
        """mass·e^{s·loss − κ}, κ close to K(s), and a bound on their relative error."""
        kappa = self.exact(s)
        exponents = self._logs + s * self._losses - kappa
        largest = float(np.max(np.abs(exponents[exponents > -700]))) + abs(kappa)
        largest += abs(s) * float(np.max(np.abs(self._losses)))
        return np.exp(exponents), kappa, 8 * UNIT * (largest + 750)


def _tilts(tilting: Tilting, times: int, levels: tuple[float, ...]) -> list[float]:
    """0, and the tilts under which δ is about each of the levels at the mean (any tilt is sound)."""

    def exponent(s: float) -> float:
        cumulant, mean, _ = tilting.rough(s)
        return times * (s * mean - cumulant)

    tilts, low, high = [0.0], 0.0, 1.0
    for level in levels:
        aim = -math.log(level)
        while exponent(high) < aim:
            low, high = high, 2 * high
            if high > 1e9:  # the loss is bounded: its largest value is likelier than the level
                return tilts
        left, right = low, high
        while right > left * 1.02 + 1e-9:
            middle = 0.5 * (left + right)
            left, right = (middle, right) if exponent(middle) < aim else (left, middle)
        if right > _APART * tilts[-1]:
            tilts.append(right)
        low = left
    return tilts


def power(one: Masses, times: int, levels: tuple[float, ...] = LEVELS) -> FloatArray:
    """δ of so many at 0, step, 2·step, …: upper bounds, down to where they stop to matter or are not known any more.

    >>> half = Masses(1.0, -1, np.array([0.25, 0.0, 0.75]), 0.0)              # randomized response, ε₀ = log 3 read as 1
    >>> power(half, 2)[:3].round(6).tolist()
    [0.486374, 0.355568, 0.0]
    """
    tilting = Tilting(one)
    missed = times * one.infinite * (1 + 1e-9)
    parts = [_window(one, tilting, times, s) for s in _tilts(tilting, times, levels)]
    table = np.ones(max(1, *(first + len(bounds) for first, bounds in parts)))
    for first, bounds in parts:
        inside = bounds[max(-first, 0) :]
        place = slice(max(first, 0), max(first, 0) + len(inside))
        table[place] = np.minimum(table[place], inside)
    highest = times * (one.low + len(one.masses) - 1)
    table[max(highest, 0) :] = 0.0  # no finite loss is larger
    table = np.minimum(np.minimum.accumulate(table) + missed, 1.0)
    telling = int(np.searchsorted(-table, -max(_TELLING, 1.001 * missed))) + 2
    return table[:telling]


def too_long(one: Masses, times: int, levels: tuple[float, ...] = LEVELS) -> float:
    """By how much the grid must be coarser for transforms of a bearable length; at most 1 if it need not be."""
    tilting = Tilting(one)
    return max(_ends(one, tilting, times, s)[1] for s in _tilts(tilting, times, levels)) / _LONGEST


def _ends(one: Masses, tilting: Tilting, times: int, s: float) -> tuple[int, int, float]:
    """Where a window starts that holds nearly all of the tilted law of so many, its length, and Chernoff's θ at its end."""
    lowest, highest = times * one.low, times * (one.low + len(one.masses) - 1)
    top, theta = tilting.end(times, s, 1.0)
    bottom, _ = tilting.end(times, s, -1.0)
    first = max(math.floor(bottom / one.step) - 2, lowest)
    last = min(math.ceil(top / one.step) + 2, highest)
    return first, fft.next_fast_len(max(last - first + 1, 16), real=True), theta


def _window(one: Masses, tilting: Tilting, times: int, s: float) -> tuple[int, FloatArray]:
    """δ at the grid's losses from the first index on, by the law tilted by e^{sl}: bounds, inside one window."""
    first, size, theta = _ends(one, tilting, times, s)
    masses, kappa, relative = tilting.tilted(s)
    above = 0.0
    if first + size <= times * (one.low + len(one.masses) - 1):
        further = tilting.exact(s + theta)
        slack = 1e-11 * (1 + times * (1 + abs(further) + abs(kappa)))
        above = math.exp(min(times * (further - kappa) - theta * one.step * (first + size) + slack, 0.0))
    folded = np.bincount(np.arange(one.low, one.low + len(masses)) % size, weights=masses, minlength=size)
    eta = 8 * UNIT * math.log2(size)
    norm = math.sqrt(float(np.sum(folded * folded)))
    error = 1.2 * math.sqrt(size) * norm * (times * (eta + 8 * UNIT) + eta)
    if not (error < 0.01 and times * math.log(float(np.sum(folded))) < 0.05):  # else 1.1 above would not do
        return 0, np.ones(1)
    if times == 1:
        law, error = folded, 0.0
    else:
        law = np.maximum(fft.irfft(_raised(fft.rfft(folded), times), size), 0.0)
    from scipy.signal import lfilter  # here: it takes a second to load, and a peer that starts needs none of it

    law = np.roll(law, -(first % size))
    # X_k = Σ_{i>k} law_i·e^{−s(i−k)d}·(1 − e^{−(i−k)d}), by two recursions of positive terms
    decay, fall = math.exp(-s * one.step), math.exp(-one.step)
    held = lfilter([1.0], [1.0, -decay], law[::-1])
    tails = lfilter([0.0, -decay * math.expm1(-one.step)], [1.0, -decay * fall], held)[::-1]
    lost = above + error + len(masses) * times * 1e-290  # what underflowed
    exponent = times * kappa - s * one.step * (first + np.arange(size))
    rounding = times * (relative + 8 * UNIT * len(masses) / size) + 16 * UNIT * (
        size + times * abs(kappa) + s * one.step * (np.abs(first) + size)
    )
    bounds = (tails + lost) * np.exp(np.minimum(exponent, 100.0)) * math.exp(min(2 * rounding, 1.0))
    if rounding > 0.1:
        return 0, np.ones(1)
    return first, np.where(exponent > 100.0, 1.0, np.minimum(bounds, 1.0))


def _raised(values: npt.NDArray[np.complex128], times: int) -> npt.NDArray[np.complex128]:
    """The power of every number, by repeated squaring."""
    result = None
    while True:
        if times & 1:
            result = values if result is None else result * values
        times >>= 1
        if not times:
            assert result is not None
            return result
        values = values * values
