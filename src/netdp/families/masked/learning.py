"""Learning by masked descent, for the estimators: features brought to one scale by noisy sums, then training, in one process.

Where no bounds are known the range of every feature comes first. A number has one of 81 *sizes*: zero, or its sign and the
power of two just below it. For every feature the share of values of each size is found by one masked sum (`range_sum`); the
range goes from the lowest to the highest number of a size whose noisy share exceeds five deviations of the noise, and values
outside are clipped, row by row. Means and deviations are read off another masked sum. See
docs/proofs/learning.md#private-standardisation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.masked.account import fewest_honest
from netdp.families.masked.account_descent import learned_curve
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.protocol import MaskedSum, quantised, summed_records
from netdp.families.masked.simulate import noises, run
from netdp.families.masked.training import LARGEST, SIZES, SMALLEST, TrainingPlan, plan_training
from netdp.learn.fitting import (
    Fitted,
    Screen,
    TrainingRequest,
    _scaling,
    _stated,
    _two_digits,
    entropy,
    level,
    party_graph,
    ready,
    target,
)
from netdp.learn.planning import NoiseWarning, talk_graph, warn
from netdp.learn.scaling import Scaling
from netdp.models.base import Model
from netdp.models.parties import ModelParties
from netdp.models.schema import mean_and_deviation, moments
from netdp.models.schema import noisy_means as means_of
from netdp.numerics.arrays import FloatArray, IntArray


def standardised(scaling: Scaling, protocol: MaskedSum, parties: Sequence[FloatArray], seed: Any) -> Scaling:
    """The scaling with mean and deviation of all features, found by the masked sum from one table of rows per party."""
    means, noise = noisy_means(scaling, protocol, parties, seed)
    return Scaling(scaling.low, scaling.high, *mean_and_deviation(means, noise))


def noisy_means(
    scaling: Scaling, protocol: MaskedSum, parties: Sequence[FloatArray], seed: Any
) -> tuple[FloatArray, float]:
    """Means of (x, x² − 1) over parties or records as everybody reads them from the sum, and the deviation of their noise.

    The vector is that of `netdp.models.schema`, as on real peers.
    """
    noise = next(noises(protocol.share, protocol.n, protocol.dimension, 1, np.random.default_rng(seed)))
    tables = [moments(scaling.bounded(rows), protocol.unit) for rows in parties]
    every = np.vstack(tables)
    whole = summed_records(protocol, every) if protocol.unit == "record" else quantised(protocol, every).sum(axis=0)
    sums: FloatArray = np.asarray(protocol.step * (whole + noise), dtype=np.float64)
    return means_of(sums, protocol.unit, protocol.n, protocol.sigma * math.sqrt(protocol.n))


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


def learn_masked(asked: TrainingRequest, model_for: Callable[[int], Model], X: FloatArray, y: FloatArray) -> Fitted:
    """By masked descent, in one process; `model_for` is told how many columns prepared rows have."""
    target(asked.epsilon, asked.delta)
    level(asked.verbose)
    graph = party_graph(asked.graph, asked.parties, len(y), talk_graph)
    if graph.n < 2:
        raise InvalidValue("a masked sum needs at least two parties, got 1; give more, parties=…")
    scaling = _scaling(asked, X)
    dealing, noise, means, sizes = entropy(asked.random_state).spawn(4)
    parts = np.array_split(np.random.default_rng(dealing).permutation(len(y)), graph.n)
    model = model_for(X.shape[1] + 1)
    record = asked.unit == "record"
    plan = plan_training(
        graph.n,
        model.size,
        asked.epsilon,
        asked.delta,
        rows=_two_digits(math.ceil(len(y) / graph.n)),
        unit=asked.unit,
        colluders=asked.colluders,
        graph=graph,
        model=model.name,
        records=_two_digits(len(y)) if record else None,
        features=X.shape[1] if asked.standardise == "private" else None,
        bounded=scaling is not None,
        iterations=asked.iterations,
        clip=asked.clip,
        step=asked.step,
        sampling=asked.sampling,
    )
    warn(plan.warnings, stacklevel=4)
    if plan.scaling is not None:
        tables = [X[part] for part in parts]
        if plan.ranges is not None:
            _warn_if_hidden(plan.ranges, plan.protocol)
            scaling = found_ranges(plan.ranges, tables, sizes)
        assert scaling is not None
        scaling = standardised(scaling, plan.scaling, tables, means)
    rows = ready(X, scaling)
    data = ModelParties(model, [rows[part] for part in parts], [y[part] for part in parts])
    known = plan.protocol.sampling == 1 and plan.scaling is None
    with Screen(asked.verbose, plan.protocol, plan, partial(_spent, plan) if known else None) as screen:
        theta = run(plan.protocol, data, noise, after=lambda t, state: screen.told(t, state.theta))
    return Fitted(theta, plan.protocol, _stated(plan.guarantee, asked, model), scaling, plan, graph.label(0))


def _spent(plan: TrainingPlan, iterations: int) -> float:
    """ε of the first iterations, against the plan's colluders."""
    honest = fewest_honest(plan.protocol.sum, plan.colluders)
    return float(np.max(learned_curve(plan.protocol.replace(iterations=iterations), honest).epsilon(plan.delta)))


def _warn_if_hidden(ranges: MaskedSum, protocol: MaskedDescent) -> None:
    """A warning, from the plan alone, if the noise of the counts hides sizes that a fair part of the values have."""
    noise = ranges.sigma * math.sqrt(ranges.n) / protocol.units
    if noise > HIDDEN:
        warnings.warn(
            f"the ranges of the features are found by counts with noise of {noise:.2g} of the whole: only sizes that most "
            "values have are seen, if any. State public bounds=(low, high) per feature, or allow a larger epsilon",
            NoiseWarning,
            stacklevel=5,
        )
