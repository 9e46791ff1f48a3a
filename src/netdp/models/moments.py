"""Mean and spread of features from one noisy sum: what each party adds to it, and what everybody makes of it.

The features z lie in [−1, 1], a public range brought to that row by row. Added up, over parties or over records, is

    unit party    the mean over a party's rows of (z, z² − 1)         two of them are at most √(4f) apart
    unit record   (z, z² − 1, 1) of every record                      at most √(f + 1) long; the last number counts the records

The sums are a `MaskedSum` of 2f (2f + 1) numbers, docs/guarantees.md#private-standardisation; what is made of them is
post-processing.

*A record.* With u = z² in [0, 1], z² + (z² − 1)² = 1 − u(1 − u) ≤ 1 in every feature, and 1 where z is −1, 0 or 1. That is why 1 is
taken off: with z² itself it would be 2, with z² − ½ 1.25.
*A party.* The mean of points (z, z²) lies in {(a, b): a² ≤ b ≤ 1}, the convex hull of the curve z ↦ (z, z²). Two points of a convex
hull are no further apart than two of the curve: at most 2 (`netdp.peers.study.task`, the variance of parties), as −1 and 1 are.

**From a noisy sum to mean m and deviation s.** Every mean comes with noise of known deviation τ. m is drawn towards 0, the middle
of the range, by the factor ¼/(¼ + τ²), which is best if means are about ½ away from it. The variance found may be anything, even
negative, if noise is large; s² is at least τ and at most 1, so nothing is blown up beyond what the noise leaves visible. A feature
without spread stays near 0.

*In floating point.* z is clipped after it is computed, so |z| ≤ 1 exactly; a mean over rows may be off by rounding, so it is put
back into that hull: a to [−1, 1], b to [a², 1]. What is left are a few roundings of 2⁻⁵³; the lengths are made larger by 10⁻¹².
"""

from __future__ import annotations

import math

import numpy as np

from netdp.numerics.arrays import FloatArray

_USUAL_MEAN = 0.25  # squared distance of a feature's mean from the middle of its range
_LEAST_VARIANCE = 1e-4


def moment_count(features: int, unit: str) -> int:
    """How many numbers are added for so many features."""
    return 2 * features + (unit == "record")


def moment_length(features: int, unit: str) -> float:
    """How far, in L2 norm, what is protected moves the sum: a party's mean replaced, or a record added or removed.

    >>> round(moment_length(4, "party") ** 2, 6), round(moment_length(4, "record") ** 2, 6)
    (16.0, 5.0)
    """
    return math.sqrt(features + 1.0 if unit == "record" else 4.0 * features) * (1 + 1e-12)


def moments(z: FloatArray, unit: str) -> FloatArray:
    """What a party adds, from its rows z (rows, f) in [−1, 1]: a vector per record (rows, 2f + 1), or its one vector (1, 2f).

    >>> moments(np.array([[1.0], [0.0]]), "record").tolist(), moments(np.array([[1.0], [0.0]]), "party").tolist()
    ([[1.0, 0.0, 1.0], [0.0, -1.0, 1.0]], [[0.5, -0.5]])
    """
    inside = np.clip(z, -1.0, 1.0)
    squares = inside**2 - 1.0
    if unit == "record":
        return np.hstack([inside, squares, np.ones((len(inside), 1))])
    if not len(inside):  # as if all were in the middle
        return np.hstack([np.zeros((1, z.shape[1])), -np.ones((1, z.shape[1]))])
    mean = np.clip(inside.mean(axis=0), -1.0, 1.0)
    return np.concatenate([mean, np.clip(squares.mean(axis=0), mean**2 - 1.0, 0.0)])[None, :]


def noisy_means(sums: FloatArray, unit: str, parties: int, noise: float) -> tuple[FloatArray, float]:
    """Means of (z, z² − 1) over parties or records, read off their sum, and τ; `noise` is the deviation of one number of the sum.

    Of records the number is noisy too; a mean near ±1 is then off by up to √2 of what is stated.

    >>> noisy_means(np.array([30.0, -10.0, 100.0]), "record", parties=5, noise=2.0)
    (array([ 0.3, -0.1]), 0.02)
    """
    if unit == "record":
        number = max(float(sums[-1]), noise, 1.0)
        return np.asarray(sums[:-1] / number), noise / number
    return np.asarray(sums / parties), noise / parties


def mean_and_deviation(means: FloatArray, noise: float) -> tuple[FloatArray, FloatArray]:
    """m and s of every feature, from noisy means and τ, as above.

    >>> [found.round(3).tolist() for found in mean_and_deviation(np.array([0.6, 0.0, -0.54, -1.0]), 0.0)]
    [[0.6, 0.0], [0.316, 0.01]]
    """
    features = len(means) // 2
    mean = np.clip(means[:features], -1.0, 1.0) * _USUAL_MEAN / (_USUAL_MEAN + noise**2)
    variance = np.clip(means[features:] + 1.0 - mean**2, min(max(noise, _LEAST_VARIANCE), 1.0), 1.0)
    return mean, np.sqrt(variance)
