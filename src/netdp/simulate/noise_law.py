"""Laplace noise from the one source of noise that a run has: standard normal numbers.

The determinant of a 2 × 2 matrix of independent standard normal numbers, N₁N₂ − N₃N₄, has the Laplace law of scale 1:
N₁N₂ − N₃N₄ has the characteristic function E e^{−t²(N₂² + N₄²)/2} = 1/(1 + t²).
"""

from __future__ import annotations

import math

from netdp.numerics.arrays import FloatArray

from .run import Normal


def unit_noise(law: str, normal: Normal) -> Normal:
    """Noise of mean 0 and variance 1 of the given law."""
    if law == "gaussian":
        return normal

    def laplace(shape: tuple[int, ...]) -> FloatArray:
        a, b, c, d = normal((4, *shape))
        noise: FloatArray = (a * b - c * d) / math.sqrt(2)
        return noise

    return laplace
