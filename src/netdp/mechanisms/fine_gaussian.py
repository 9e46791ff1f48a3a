"""Gaussian noise on very fine grids: exact draws with deviations up to 2⁵⁸ steps, and how far from a rounded real Gaussian.

The law and the rejection are those of `netdp.mechanisms.discrete_gaussian`. There numbers are so small that every coin can be
prepared; here they have 60 bits, and coins are decided in doubles where doubles can, in whole numbers where they cannot
(`coins.flips`). The error in doubles: docs/proofs/mechanisms.md#discrete-gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netdp.errors import InvalidValue, NetdpError
from netdp.numerics.arrays import IntArray
from netdp.numerics.checks import count

from .coins import flips
from .discrete_gaussian import Coin, RejectionSampler, Words, least_scale

FINEST_VARIANCE = 2**116
"""No larger parameter is drawn: deviations up to 2⁵⁸ steps, so that 2⁶³ is 32 of them away."""

_FAR = 16  # multiples of t: beyond, doubles decide nothing
_LONGEST = 2048
_ONCE = Coin(1, 1)


@dataclass(frozen=True)
class FineGaussian(RejectionSampler):
    """The law ∝ e^{−x²/2v} on the whole numbers, v = `variance` a whole number from 1 to 2¹¹⁶.

    >>> from netdp.mechanisms.discrete_gaussian import words_from
    >>> noise = FineGaussian(2**100).sample((2, 5000), words_from(np.random.default_rng(0)))
    >>> noise.shape, noise.dtype, round(float((noise / 2.0**50).var()), 1)
    ((2, 5000), dtype('int64'), 1.0)
    """

    variance: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", count("variance", self.variance))
        if self.variance > FINEST_VARIANCE:
            raise InvalidValue(
                f"variance must be at most 2¹¹⁶ (σ of 2⁵⁸ steps), got {self.variance:.3g}; use a coarser grid"
            )

    def _kept(self, tries: int, words: Words) -> IntArray:
        t, v = least_scale(self.variance), self.variance
        drawn = words(tries)
        start = (drawn & np.uint64(t - 1)).astype(np.int64)
        minus = (drawn >> np.uint64(63)).astype(bool)
        heads = flips(start / float(t), lambda i: (int(start[i]), t), words)
        start, minus = start[heads], minus[heads]
        laps = _ONCE.heads_in_a_row(len(start), words, _LONGEST)
        alive = ~(minus & (start == 0) & (laps == 0))  # zero has one sign only
        start, minus, laps = start[alive], minus[alive], laps[alive]
        exponent = (start + float(t) * laps - v / t) ** 2 / (2.0 * float(v))
        exponent[laps >= _FAR] = np.inf

        def exact(i: int) -> tuple[int, int]:
            return ((int(start[i]) + t * int(laps[i])) * t - v) ** 2, 2 * v * t * t

        heads = flips(exponent, exact, words)
        start, minus, laps = start[heads], minus[heads], laps[heads]
        if t * (int(laps.max(initial=0)) + 1) > 2**63:  # beyond 32 deviations
            raise NetdpError("a draw does not fit into 64 bits: the source of random words is broken")
        size = start + t * laps
        return np.asarray(np.where(minus, -size, size), dtype=np.int64)


def rounding_distance(variance: int) -> float:
    """A bound on the total variation distance between N(0, v), rounded, and the discrete Gaussian of parameter v: 1/(24v).

    >>> rounding_distance(2**80) < 1e-25
    True
    """
    return 1.0 / (24.0 * count("variance", variance)) * (1 + 1e-15)
