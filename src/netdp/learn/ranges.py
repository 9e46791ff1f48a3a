"""Where no bounds are known: the range of every feature, by one noisy count of sizes.

A number x has one of 81 *sizes*: zero (|x| < 2⁻¹⁰), or its sign and the power of two just below |x|, from 2⁻¹⁰ to 2²⁹. For every
feature the share of values of each size is found by one masked sum (`netdp.planning.training_before.range_sum`,
docs/guarantees.md#private-standardisation). A size *counts* if its noisy share exceeds five deviations of the noise; the largest
counts always. The range of a feature goes from the lowest to the highest number of a size that counts: [16, 64] for most ages,
[32, 64] for latitudes, [0, 2] for flags. A feature that is nearly always zero gets [−1, 1], so that its rare values count as signs.
Values outside are clipped, row by row.

Five deviations: with 100 features one of 8,100 noises exceeds that with probability 0.0023. If noise hides all but the largest
size, ranges are narrow or wrong, and a warning says so beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from netdp.numerics.arrays import FloatArray, IntArray
from netdp.planning.training_before import LARGEST, SIZES, SMALLEST
from netdp.protocols.masked import MaskedSum, quantised

from .running import noises
from .scaling import Scaling

_DEVIATIONS = 5.0
HIDDEN = 0.07
"""Deviation of a share beyond which a size must have more than a third of all values to be seen."""


def sizes_of(X: FloatArray) -> IntArray:
    """The size of every number: 0 … 80, rising with the number; zero is the one in the middle.

    >>> (sizes_of(np.array([[-1e99, -0.5, 0.0, 1.5, 40.0]])) - SIZES // 2).tolist()
    [[-40, -10, 0, 11, 16]]
    """
    _, exponent = np.frexp(X)  # |x| in [2^(e−1), 2^e)
    power = np.where(np.isfinite(X), np.minimum(exponent - 1, LARGEST), LARGEST)
    size = np.where(np.abs(X) < 2.0**SMALLEST, 0, power - SMALLEST + 1)
    return np.asarray(np.where(X < 0, -size, size) + SIZES // 2)


def ends_of(size: int) -> tuple[float, float]:
    """The numbers that a size stands for.

    >>> ends_of(SIZES // 2), ends_of(SIZES // 2 + 16), ends_of(SIZES // 2 - 10)
    ((0.0, 0.0), (32.0, 64.0), (-1.0, -0.5))
    """
    place = size - SIZES // 2
    if place == 0:
        return 0.0, 0.0
    low = 2.0 ** (abs(place) + SMALLEST - 1)
    return (low, 2 * low) if place > 0 else (-2 * low, -low)


def found_ranges(protocol: MaskedSum, parties: Sequence[FloatArray], seed: Any) -> Scaling:
    """The ranges as bounds, from one table of rows per party."""
    return _from_shares(*noisy_shares(protocol, parties, seed))


def noisy_shares(protocol: MaskedSum, parties: Sequence[FloatArray], seed: Any) -> tuple[FloatArray, float]:
    """(f, sizes): the shares as everybody reads them from the sum, and the deviation of their noise."""
    features = protocol.dimension // SIZES
    noise = next(noises(protocol.share, protocol.n, protocol.dimension, 1, np.random.default_rng(seed)))
    spread = protocol.sigma * math.sqrt(protocol.n)
    record, total = protocol.unit == "record", np.zeros(protocol.dimension, dtype=np.int64)
    for rows in parties:
        counts = _counted(rows)
        # a record adds ones, which are whole numbers of steps (a power of two): rounding their sum is rounding each of them
        total += quantised(protocol, counts if record else counts / max(len(rows), 1))
    sums = protocol.step * (total + noise)
    number = max(float(sums.sum()) / features, spread, 1.0) if record else float(protocol.n)
    return np.asarray(sums.reshape(features, SIZES) / number), spread / number


def _counted(rows: FloatArray) -> FloatArray:
    """(f·sizes,): how many values of each feature have each size."""
    features = rows.shape[1]
    places = sizes_of(rows) + SIZES * np.arange(features)
    return np.bincount(places.ravel(), minlength=SIZES * features).astype(np.float64)


def _from_shares(shares: FloatArray, noise: float) -> Scaling:
    low, high = np.empty(len(shares)), np.empty(len(shares))
    for feature, share in enumerate(shares):
        counting = np.flatnonzero(share > _DEVIATIONS * noise)
        counting = np.append(counting, int(np.argmax(share)))
        low[feature], high[feature] = ends_of(int(counting.min()))[0], ends_of(int(counting.max()))[1]
        if low[feature] == high[feature]:
            low[feature], high[feature] = -1.0, 1.0
    return Scaling(low, high)
