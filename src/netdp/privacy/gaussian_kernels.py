"""Means of Gaussian profiles over a public label, Σ w·δ_μ(ε), compiled: walks ask for millions of them.

The formulas are those of `netdp.privacy.gaussian`, with Mills ratios read off piecewise polynomials; 2e-12 is added for
rounding, and terms too small to count are counted as a bound on them. See docs/proofs/privacy.md#gaussian-profile.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numba import njit
from scipy import special

from netdp.numerics.arrays import FloatArray

_PIECES, _DEGREE, _END = 256, 7, 1.1

_NODES_3 = np.polynomial.legendre.leggauss(3)

_NODES_6 = np.polynomial.legendre.leggauss(6)


def mean_delta(mus: FloatArray, weights: FloatArray, epsilons: FloatArray) -> FloatArray:
    """Σ weight·δ_Gauss(μ; ε) at each ε, rounded up by a relative 2e-12; μ ≥ 0, inf allowed.

    >>> from netdp.privacy import gaussian_delta
    >>> found = mean_delta(np.array([0.1, 2.0]), np.array([0.5, 0.25]), np.array([1.0]))
    >>> exact = 0.5 * gaussian_delta(0.1, 1.0) + 0.25 * gaussian_delta(2.0, 1.0)
    >>> 0 <= float(found[0] / exact - 1) < 1e-11
    True
    """
    order = np.argsort(-weights, kind="stable")  # the heaviest first: most of the others then need no second look
    mills, fall = _tables()
    return np.asarray(_sums(mus[order], weights[order], epsilons, mills, fall, *_NODES_3, *_NODES_6))


@functools.cache
def _tables() -> tuple[FloatArray, FloatArray]:
    """Coefficients of R/t and −R′/t² on every piece, the highest power first."""
    edges = np.linspace(0.0, _END, _PIECES + 1)
    nodes = np.cos(np.pi * (2 * np.arange(_DEGREE + 1) + 1) / (2 * _DEGREE + 2))
    centre, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * (edges[1] - edges[0])
    t = centre[:, None] + half * nodes
    x = 4.0 / t - 4.0
    ratio = math.sqrt(math.pi / 2) * special.erfcx(x * math.sqrt(0.5))
    inverse = 1.0 / np.square(x)
    series = np.array([(-1.0) ** k * math.prod(range(1, 2 * k + 2, 2)) for k in range(10, -1, -1)])
    with np.errstate(over="ignore", invalid="ignore"):
        fall = np.where(x > 20, inverse * np.polyval(series, np.minimum(inverse, 1.0)), 1 - x * ratio)
    solve = np.linalg.inv(np.vander(nodes, _DEGREE + 1))
    return np.ascontiguousarray((ratio / t) @ solve.T), np.ascontiguousarray((fall / t**2) @ solve.T)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _read(table: Any, t: float) -> Any:
    """The polynomial at t."""
    place = t * (_PIECES / _END)
    piece = int(place)
    u = 2.0 * (place - piece) - 1.0
    total = table[piece, 0]
    for power in range(1, _DEGREE + 1):
        total = total * u + table[piece, power]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _sums(mus: Any, weights: Any, epsilons: Any, mills: Any, fall: Any, x3: Any, w3: Any, x6: Any, w6: Any) -> Any:
    out = np.zeros(epsilons.size)
    for i in range(epsilons.size):
        epsilon, total = epsilons[i], 0.0
        for j in range(mus.size):
            mu, weight = mus[j], weights[j]
            if mu == 0.0 or weight == 0.0:
                continue
            if mu > 1e70:
                total += weight
                continue
            if mu < 1e-70:
                y = epsilon / mu - 0.5 * mu
            else:  # μ² is kept exactly (Dekker), for the two terms cancel
                square = mu * mu
                scaled = mu * 134217729.0
                high = scaled - (scaled - mu)
                low = mu - high
                error = ((high * high - square) + 2 * high * low) + low * low
                y = ((epsilon - 0.5 * square) - 0.5 * error) / mu
            y = max(y, -0.5 * mu)
            bell = math.exp(-0.5 * y * y)
            if y > 0.0 and 0.5 * weight * bell <= 1e-17 * total:
                total += 0.5 * weight * bell
                continue
            bell *= 0.3989422804014327
            if mu >= 0.5:
                t = 4.0 / (4.0 + y + mu)
                far = t * _read(mills, t)
                t = 4.0 / (4.0 + abs(y))
                near = t * _read(mills, t)
                delta = bell * (near - far) if y > 0.0 else 1.0 - bell * (near + far)
            else:
                centre, half, area = y + 0.5 * mu, 0.5 * mu, 0.0
                if mu < 0.02:
                    for k in range(3):
                        t = 4.0 / (4.0 + centre + half * x3[k])
                        area += w3[k] * t * t * _read(fall, t)
                else:
                    for k in range(6):
                        t = 4.0 / (4.0 + centre + half * x6[k])
                        area += w6[k] * t * t * _read(fall, t)
                delta = bell * half * area
            total += weight * min(delta, 1.0)
        out[i] = total * (1 + 2e-12)
    return out
