"""Logistic, multinomial and linear regression: models that see a row only through inner products with it.

    Logistic      θ (f,)            log(1 + exp(∓θᵀx)), y 0 or 1
    Multinomial   θ (classes·f,)    −log softmax(Θx)_y, y 0 … classes−1; class c has the numbers c·f … (c+1)·f−1
    Linear        θ (f,)            ½(θᵀx − y)², y a number, best within −1 … 1

A gradient is slope·x (one slope per class). Rows are taken as they are; `prepared` adds a constant feature, which makes the
intercept, and scales every row down to norm at most 1 by itself. How far a step stretches (`expansion`):
docs/proofs/learning.md#step-expansion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, whole

from .base import AT_ONCE, Model

_UP = 1 + 1e-12  # norms of a few thousand numbers are off by less, relatively


def prepared(X: npt.ArrayLike) -> FloatArray:
    """A constant feature behind every row, and rows scaled down to norm at most 1: no row's scale depends on another's.

    >>> prepared([[0.0], [0.75]]).round(6).tolist()
    [[0.0, 1.0], [0.6, 0.8]]
    """
    from .kernels import prepare

    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2:
        raise InvalidValue(f"rows must be a table (rows, features), got shape {rows.shape}")
    bad = ~np.isfinite(rows)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidValue(f"row {row}, column {column} is {rows[row, column]}; every feature must be a finite number")
    out = np.empty((len(rows), rows.shape[1] + 1))
    prepare(rows, out)
    return out


class _OfRows(Model):
    """What the three have in common: `features` columns, `_columns` slopes per record."""

    exact = True
    assumptions = ()

    def __init__(self, features: int, columns: int) -> None:
        self.features = count("features", features)
        self._columns = columns
        self.size = self.features * columns

    def __repr__(self) -> str:
        more = f", classes={self.classes}" if self._columns > 1 else ""
        return f"{type(self).__name__}({self.features}{more})"

    def start(self) -> FloatArray:
        """θ = 0."""
        return np.zeros(self.size)

    def prepared(self, X: npt.ArrayLike) -> FloatArray:
        """`netdp.models.prepared`: features − 1 raw columns and a constant, scaled."""
        return prepared(X)

    def gradients(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> Iterator[FloatArray]:
        """Slope times row, record by record in one fixed order: bit by bit a function of that record and θ alone."""
        from .kernels import outer_rows

        theta, X, y = self.checked(theta, X, y)
        slopes = np.empty((len(X), self._columns))
        self._slopes(theta, X, y, slopes)
        at_once = max(1, AT_ONCE // self.size)
        for first in range(0, len(X), at_once):
            rows = slice(first, first + at_once)
            block = np.empty((len(X[rows]), self.size))
            outer_rows(slopes[rows], X[rows], block)
            yield block

    def checked_rows(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """As for every model, and X has `features` columns of finite numbers."""
        rows, labels = super().checked_rows(X, y)
        self._checked_columns(rows)
        return rows, labels

    def _checked_columns(self, rows: FloatArray) -> None:
        if rows.ndim != 2 or rows.shape[1] != self.features:
            hint = "; call prepared(X) first" if rows.ndim == 2 and rows.shape[1] == self.features - 1 else ""
            raise InvalidValue(f"rows have shape {rows.shape}; {self!r} takes {self.features} columns{hint}")
        if not np.isfinite(rows).all():
            raise InvalidValue(f"row {int(np.argwhere(~np.isfinite(rows))[0, 0])} holds a number that is not finite")

    def _margins(self, theta: npt.ArrayLike, X: npt.ArrayLike) -> FloatArray:
        """(m, columns): θᵀx, row by row in one order too: whether a row is predicted right may be counted privately."""
        from .kernels import margins

        rows = np.ascontiguousarray(X, dtype=np.float64)
        self._checked_columns(rows)
        found = np.empty((len(rows), self._columns))
        margins(self.checked_theta(theta), rows, found)
        return found

    def _slopes(self, theta: FloatArray, X: FloatArray, y: FloatArray, slopes: FloatArray) -> None:
        raise NotImplementedError


class Logistic(_OfRows):
    """Logistic regression: two classes, 0 and 1.

    >>> model = Logistic(2)
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0])
    >>> [block.tolist() for block in model.gradients(model.start(), X, y)]
    [[[-0.5, -0.0], [0.0, 0.5]]]
    >>> model.predict(np.array([3.0, -3.0]), X).tolist(), model.losses(model.start(), X, y).round(4).tolist()
    ([1, 0], [0.6931, 0.6931])
    """

    name = "logistic"
    classes: int | None = 2

    def __init__(self, features: int) -> None:
        super().__init__(features, 1)

    def losses(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
        """log(1 + exp(−θᵀx)) for class 1, log(1 + exp(θᵀx)) for class 0."""
        _, labels = self.checked_rows(X, y)
        return np.asarray(np.logaddexp(0.0, np.where(labels > 0.5, -1.0, 1.0) * self._margins(theta, X)[:, 0]))

    def predict(self, theta: FloatArray, X: FloatArray) -> npt.NDArray[Any]:
        """1 where θᵀx > 0."""
        return (self._margins(theta, X)[:, 0] > 0).astype(np.int64)

    def scores(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """The probabilities of the two classes (m, 2)."""
        margins = self._margins(theta, X)[:, 0]
        return np.exp(-np.logaddexp(0.0, np.stack([margins, -margins], axis=1)))

    def expansion(self, X: FloatArray, step: float, clip: float) -> float:
        """max(1, step·β − 1): docs/proofs/learning.md#step-expansion."""
        lengths = _lengths(X)
        factor = np.minimum(0.5, clip / np.where(lengths > 0, lengths, 1.0))
        return _convex(step, float((lengths**2 * factor * (1 - factor)).max(initial=0.0)))

    def _slopes(self, theta: FloatArray, X: FloatArray, y: FloatArray, slopes: FloatArray) -> None:
        from .kernels import logistic_slopes

        logistic_slopes(theta, X, y, slopes[:, 0])


class Multinomial(_OfRows):
    """Multinomial (softmax) regression: classes 0 … classes−1, `features` numbers for each.

    >>> model = Multinomial(1, classes=4)
    >>> next(model.gradients(model.start(), np.array([[1.0]]), np.array([2.0]))).tolist()
    [[0.25, 0.25, -0.75, 0.25]]
    """

    name = "multinomial"

    def __init__(self, features: int, classes: int) -> None:
        self.classes = whole("classes", classes, 2)
        super().__init__(features, self.classes)

    def losses(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
        """−log of the probability of the record's own class."""
        rows, labels = self.checked_rows(X, y)
        margins = self._margins(theta, rows)
        own = margins[np.arange(len(labels)), labels.astype(np.int64)]
        return np.asarray(np.logaddexp.reduce(margins, axis=1) - own)

    def predict(self, theta: FloatArray, X: FloatArray) -> npt.NDArray[Any]:
        """The class with the largest score."""
        return np.asarray(self._margins(theta, X).argmax(axis=1))

    def scores(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """The probabilities of the classes (m, classes)."""
        margins = self._margins(theta, X)
        return np.exp(margins - np.logaddexp.reduce(margins, axis=1, keepdims=True))

    def expansion(self, X: FloatArray, step: float, clip: float) -> float:
        """1 + step·β, or max(1, step·β − 1) where the clip is never met: docs/proofs/learning.md#step-expansion."""
        longest = float(_lengths(X).max(initial=0.0))
        beta = longest**2 / 2
        return _convex(step, beta) if clip >= math.sqrt(2) * longest * _UP else (1.0 + step * beta) * _UP

    def _slopes(self, theta: FloatArray, X: FloatArray, y: FloatArray, slopes: FloatArray) -> None:
        from .kernels import multinomial_slopes

        multinomial_slopes(theta, X, y, slopes)


class Linear(_OfRows):
    """Linear regression by half the squared error: y is a number.

    >>> Linear(2).predict(np.array([0.5, -1.0]), np.array([[1.0, 1.0]])).tolist()
    [-0.5]
    """

    name = "linear"
    classes = None

    def __init__(self, features: int) -> None:
        super().__init__(features, 1)

    def losses(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
        """½(θᵀx − y)²."""
        rows, labels = self.checked_rows(X, y)
        return np.asarray((self._margins(theta, rows)[:, 0] - labels) ** 2 / 2)

    def predict(self, theta: FloatArray, X: FloatArray) -> npt.NDArray[Any]:
        """θᵀx."""
        return self._margins(theta, X)[:, 0]

    def scores(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """The numbers predicted (m,)."""
        return np.asarray(self.predict(theta, X))

    def expansion(self, X: FloatArray, step: float, clip: float) -> float:
        """max(1, step·max‖x‖² − 1): the clipped gradient is that of a Huber loss."""
        return _convex(step, float((_lengths(X) ** 2).max(initial=0.0)))

    def _slopes(self, theta: FloatArray, X: FloatArray, y: FloatArray, slopes: FloatArray) -> None:
        from .kernels import linear_slopes

        linear_slopes(theta, X, y, slopes[:, 0])


def built_in(name: str, features: int, classes: int | None = None) -> Model:
    """A built-in model by its name, for raw rows of so many features; a constant is added to them by `model.prepared`.

    >>> built_in("multinomial", features=4, classes=3), built_in("logistic", features=4).size
    (Multinomial(5, classes=3), 5)
    """
    known: dict[str, Callable[[int], Model]] = {
        "logistic": Logistic,
        "multinomial": lambda columns: Multinomial(columns, whole("classes", classes, 2)),
        "linear": Linear,
    }
    if name not in known:
        raise InvalidValue(f"unknown model {name!r}; choose one of {', '.join(known)}")
    if (name == "linear" and classes is not None) or (name == "logistic" and classes not in (None, 2)):
        way = "leave classes out, or use multinomial" if name == "linear" else "use multinomial"
        raise InvalidValue(f"the model {name!r} with classes={classes!r}: {way}")
    return known[name](count("features", features) + 1)


def _lengths(X: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(np.asarray(X, dtype=np.float64), axis=-1)).ravel()


def _convex(step: float, beta: float) -> float:
    """max(1, νβ − 1), β rounded up."""
    return max(1.0, step * beta * _UP - 1.0)
