"""What is added up before training: the ranges, means and variances of the features, each with its share of the budget.

Rows are scaled to norm at most 1, so a feature counts by its size. With public bounds every
feature is brought to [−1, 1] row by row, free of charge; its mean and variance there take one masked sum of two numbers a
feature (`netdp.learn.scaling`). Its share of μ² is what makes the means accurate to 0.05, at least 2 % and at most 20 %.
Where no bounds are known, a masked sum before that counts how many values of each feature are of which size (`netdp.learn.ranges`),
with a share of its own: what makes every count accurate to 0.03 of the whole, within the same limits. All are composed as the
adaptive releases that they are, not added up: docs/guarantees.md#private-standardisation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from netdp.accounting.masked.descent import learned_curve
from netdp.accounting.masked.releases import releases_curve
from netdp.accounting.masked.sums import fewest_honest, release_of
from netdp.graphs import Graph
from netdp.models.moments import moment_count, moment_length
from netdp.privacy import Curve, gaussian_epsilon, gaussian_mu
from netdp.protocols import MaskedDescent, MaskedSum
from netdp.protocols.grid import power_below

from .calibrate import calibrate

SMALLEST, LARGEST = -10, 29
"""Sizes are told apart by powers of two from 2^SMALLEST to 2^(LARGEST + 1), both signs; what is smaller counts as 0."""
SIZES = 2 * (LARGEST - SMALLEST + 1) + 1
_ACCURATE = 0.05
_COUNTED = 0.03
_SHARES = (0.02, 0.2)


def range_sum(graph: Graph, features: int, unit: str, rows: int | None, sigma: float = 1.0) -> MaskedSum:
    """The masked sum of, for every feature, the share of values in each of `SIZES` classes of size (of records: how many).

    A party's shares are ≥ 0 and sum to 1 for every feature, so two parties' are at most √2 apart in each; a record is in one
    class of each feature, so it is √f long.

    >>> from netdp import graphs
    >>> p = range_sum(graphs.complete(10), features=4, unit="party", rows=None)
    >>> p.dimension == 4 * SIZES, round(p.sensitivity**2, 6)
    (True, 8.0)
    """
    record = unit == "record"
    length = math.sqrt((1 if record else 2) * features) * (1 + 1e-12)
    reach = 2.0 * (rows or 1) if record else 1.0
    return MaskedSum(graph, sigma=sigma, sensitivity=length, dimension=SIZES * features, unit=unit, reach=reach)


def scaling_sum(graph: Graph, features: int, unit: str, rows: int | None, sigma: float = 1.0) -> MaskedSum:
    """The masked sum of (x, x² − 1) for every feature x in [−1, 1], and for records a one that counts them.

    Two parties' means of that are at most √(4f) apart, and a record's is at most √(f + 1) long (`netdp.models.moments`).

    >>> from netdp import graphs
    >>> p = scaling_sum(graphs.complete(10), features=4, unit="party", rows=None)
    >>> p.dimension, round(p.sensitivity**2, 6)
    (8, 16.0)
    """
    return MaskedSum(
        graph,
        sigma=sigma,
        sensitivity=moment_length(features, unit),
        dimension=moment_count(features, unit),
        unit=unit,
        reach=1.0 if unit == "party" else 2.0 * (rows or 1),
    )


def scaling_share(features: int, unit: str, units: int, mu: float) -> float:
    """The share of μ² with which the means of so many features are accurate to 0.05, at least 2 % and at most 20 %.

    units : how many parties (or records) there are, about.

    >>> round(scaling_share(10, "record", 1000, mu=0.2), 3), scaling_share(10, "record", 70_000, mu=0.2)
    (0.11, 0.02)
    """
    return _share(moment_length(features, unit) ** 2, _ACCURATE, units, mu)


def range_share(features: int, unit: str, units: int, mu: float) -> float:
    """The share of μ² with which every count of sizes is accurate to 0.03 of the whole, within the same limits.

    >>> round(range_share(10, "record", 2000, mu=0.2), 3)
    0.069
    """
    return _share((1.0 if unit == "record" else 2.0) * features, _COUNTED, units, mu)


def composed(protocol: MaskedDescent, before: Sequence[MaskedSum], colluders: int) -> Curve:
    """What the sums before training and training tell any so many colluders together about one of the others."""
    honest = fewest_honest(protocol.sum, colluders)
    if not before:
        return learned_curve(protocol, honest)
    firsts = [release_of(one, honest) for one in before]
    if protocol.sampling == 1:
        return releases_curve([*firsts, *[release_of(protocol.sum, honest)] * protocol.releases])
    return learned_curve(protocol, honest).compose(releases_curve(firsts))


@lru_cache(maxsize=64)
def calibrated_together(
    draft: MaskedDescent,
    epsilon: float,
    delta: float,
    colluders: int,
    features: int | None,
    shares: tuple[float, ...],
    names: tuple[str, ...] | None,
) -> tuple[MaskedDescent, tuple[MaskedSum, ...]]:
    """Training and the sums before it, all with the least noise that their shares and the rest of the budget leave.

    Nothing here depends on the data, so cross-validation computes it once; `names` because equal graphs may differ in them.
    """
    if features is None:
        return calibrate(draft, epsilon, delta, colluders=colluders), ()
    mu = float(gaussian_mu(epsilon, delta))
    made = (range_sum, scaling_sum)[-len(shares) :]
    before = tuple(
        calibrate(
            _on_a_fit_grid(
                make(draft.graph, features, draft.unit, draft.max_records),
                mu * math.sqrt(share * max(draft.n - colluders, 1)),
            ),
            float(gaussian_epsilon(mu * math.sqrt(share), delta)),
            delta,
            colluders=colluders,
        )
        for make, share in zip(made, shares, strict=True)
    )
    rest = float(gaussian_epsilon(mu * math.sqrt(1 - sum(shares)), delta))
    protocol = calibrate(draft, rest, delta, colluders=colluders)
    more = 1e-4
    while float(np.max(composed(protocol, before, colluders).epsilon(delta))) > epsilon:
        protocol = protocol.replace(sigma=protocol.sigma * (1 + more))
        more *= 2
    return protocol, before


def _share(square: float, off: float, units: int, mu: float) -> float:
    return min(max(square / (units * mu * off) ** 2, _SHARES[0]), _SHARES[1])


def _on_a_fit_grid(protocol: MaskedSum, mu: float) -> MaskedSum:
    """Where much noise is needed, a grid on which it can be drawn: a share of noise of about Δ/μ, at most 2¹⁸ steps."""
    sigma = protocol.sensitivity / mu
    coarse = power_below(sigma / 2**18)
    return protocol.replace(sigma=max(sigma, coarse), grid=coarse) if coarse > protocol.step else protocol
