"""Features brought to one scale without a look at anybody's rows that is not counted: public bounds, or private standardisation.

Rows are scaled to norm at most 1, each by itself, because that is what a bounded gradient takes. A feature that is large by its
unit (an income beside an age) then drowns the others. Scaling with statistics of the rows, as `StandardScaler` does, repairs
that and spends privacy that nobody has counted. What can be had honestly:

    public bounds       every feature x in [low, high] becomes 2(x − low)/(high − low) − 1, clipped to [−1, 1]: a function of the
                        row and of public numbers alone, so it costs nothing
    "private"           within these bounds, the mean m and the mean square of every feature by one masked sum with its share of
                        the budget (`netdp.families.masked.training.scaling_sum`,
                        docs/proofs/learning.md#private-standardisation); then (x − m)/s. What is added up, and how m
                        and s follow from it: `netdp.models.schema`, for real peers too

**What is warned of.** Two looks at the rows that change no model and are no part of any guarantee; they are for whoever holds
the table. Columns with mean 0 and variance 1 (or median 0 and quartiles 1 apart, or from 0 to 1 exactly) to ten digits have been
scaled with statistics of just these rows. And a column that makes up nearly all of the length of most rows drowns the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray

_DROWNED = 0.99

_DIGITS = 1e-9

_ENOUGH_ROWS = 8


class PreprocessingWarning(UserWarning):
    """The rows look as if their scaling had looked at everybody's data, or as if they were not scaled at all."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """How features are brought to one scale: by public bounds, then by mean and deviation if these were found.

    low, high       public bounds (f,)
    mean, deviation of the features within them, brought to [−1, 1] (f,); None: not asked for

    >>> Scaling(np.array([0.0]), np.array([10.0])).applied(np.array([[5.0], [20.0]])).tolist()
    [[0.0], [1.0]]
    """

    low: FloatArray
    high: FloatArray
    mean: FloatArray | None = None
    deviation: FloatArray | None = None

    def applied(self, X: FloatArray) -> FloatArray:
        """The rows, each by itself."""
        within = self.bounded(X)
        if self.mean is None or self.deviation is None:
            return within
        return np.asarray((within - self.mean) / self.deviation)

    def bounded(self, X: FloatArray) -> FloatArray:
        """Every feature clipped to its bounds and brought to [−1, 1]."""
        place = (X - self.low) / (self.high - self.low)
        return np.asarray(np.clip(2.0 * place - 1.0, -1.0, 1.0))


def by_bounds(bounds: Any, features: int, names: Sequence[str] | None = None) -> Scaling:
    """From one pair (low, high) for all features, a pair for each, or pairs by column name.

    >>> by_bounds({"age": (0, 120), "paid": (0, 1)}, 2, ["paid", "age"]).high.tolist()
    [1.0, 120.0]
    """
    if isinstance(bounds, Mapping):
        columns = list(range(features)) if names is None else list(names)
        missing = [column for column in columns if column not in bounds]
        strange = [column for column in bounds if column not in columns]
        if missing or strange:
            raise InvalidValue(
                f"bounds name columns by {'their names' if names is not None else 'number, as X has no column names'}; "
                + (f"missing: {missing[:5]!r}" if missing else f"no column is called {strange[0]!r}")
            )
        bounds = [bounds[column] for column in columns]
    try:
        pairs = np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValue(
            f"bounds must be numbers (low, high), or such a pair for every feature, got {bounds!r}"
        ) from None
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (features, 1))
    if pairs.shape != (features, 2):
        raise InvalidValue(
            f"bounds must be (low, high), or such a pair for each of the {features} features, got shape {pairs.shape}"
        )
    bad = ~(np.isfinite(pairs).all(axis=1) & (pairs[:, 0] < pairs[:, 1]) & np.isfinite(pairs[:, 1] - pairs[:, 0]))
    if bad.any():
        column = int(np.argmax(bad))
        raise InvalidValue(
            f"bounds of feature {column} are {tuple(pairs[column].tolist())}; they must be finite, low below high"
        )
    return Scaling(pairs[:, 0].copy(), pairs[:, 1].copy())


def look_at(X: FloatArray, names: Sequence[str] | None = None, *, scaled: bool = False, stacklevel: int = 3) -> None:
    """The two warnings about scaling; `scaled` says that the rows will be scaled, so that only the first may be due."""
    statistics = scaled_by_own_statistics(X)
    if statistics is not None:
        warnings.warn(
            f"{statistics}: the features were scaled with statistics of these very rows. That step has looked at everybody's "
            "data, and guarantee_ does not count it. Give LogisticRegression or LinearRegression the rows as they are, with "
            'standardise="private" (ranges, means and variances within the budget), best with public bounds=(low, high) per '
            "feature. Statistics that are public are fine: ignore this if they only happen to agree",
            PreprocessingWarning,
            stacklevel=stacklevel + 1,
        )
        return
    column = None if scaled else drowning(X)
    if column is not None:
        name = f"feature {column}" if names is None else f"feature {names[column]!r}"
        warnings.warn(
            f"{name} makes up nearly all of the length of most rows; rows are scaled to norm 1, so the others hardly count. Give "
            "LogisticRegression or LinearRegression public bounds=(low, high) per feature, such as (0, 120) for an age, or "
            'standardise="private", or both',
            PreprocessingWarning,
            stacklevel=stacklevel + 1,
        )


def scaled_by_own_statistics(X: FloatArray) -> str | None:
    """In words, what gives it away; None if nothing does.

    >>> table = np.random.default_rng(0).normal(5.0, 3.0, (50, 3))
    >>> scaled_by_own_statistics(table), scaled_by_own_statistics((table - table.mean(axis=0)) / table.std(axis=0))
    (None, 'all 3 features have mean 0 and variance 1')
    """
    if len(X) < _ENOUGH_ROWS:
        return None
    varied = np.array([len(np.unique(X[: 10 * _ENOUGH_ROWS, j])) > 2 for j in range(X.shape[1])], dtype=bool)
    if not varied.any():
        return None
    Z = X[:, varied]
    with np.errstate(over="ignore", invalid="ignore"):
        own = {
            "mean 0 and variance 1": _near(Z.mean(axis=0), 0) & _near(Z.var(axis=0), 1),
            "median 0 and quartiles 1 apart": _near(np.median(Z, axis=0), 0)
            & _near(np.subtract(*np.quantile(Z, [0.75, 0.25], axis=0)), 1),
            "minimum 0 and maximum 1": (Z.min(axis=0) == 0) & _near(Z.max(axis=0), 1),
        }
    for words, hits in own.items():
        number = int(hits.sum())
        if 2 * number > len(hits):
            whole = number == X.shape[1]
            return f"{'all ' if whole else ''}{number}{'' if whole else f' of {X.shape[1]}'} features have {words}"
    return None


def drowning(X: FloatArray) -> int | None:
    """The column that makes up more than 99 % of the squared length of most rows; None if there is none.

    >>> drowning(np.array([[30.0, 52_000.0], [61.0, 18_000.0], [44.0, 0.0]]))
    1
    """
    if X.shape[1] < 2 or not len(X):
        return None
    largest = np.abs(X).max(axis=1, keepdims=True)
    squares = (X / np.where(largest > 0, largest, 1.0)) ** 2
    shares = squares / np.maximum(squares.sum(axis=1, keepdims=True), 1e-300)
    typical = np.median(shares, axis=0)
    column = int(np.argmax(typical))
    return column if typical[column] > _DROWNED and np.abs(X[:, column]).max() > 1 else None


def _near(numbers: npt.NDArray[Any], wanted: float) -> npt.NDArray[np.bool_]:
    return np.asarray(np.abs(numbers - wanted) < _DIGITS)
