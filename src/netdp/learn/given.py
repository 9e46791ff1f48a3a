"""What is handed to `fit` and `predict`, as scikit-learn checks it, with refusals that name the cell and the way out.

scikit-learn decides what is accepted; where its words leave open which cell it means, or advise what costs privacy (to fill in a
mean of the rows), they are replaced. Nothing is looked at beyond what it looks at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, MissingDependency
from netdp.numerics.arrays import FloatArray

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # pragma: no cover - exercised by an environment without the extra
    raise MissingDependency("scikit-learn", "the estimator", "learn") from None


def to_fit(estimator: Any, X: Any, y: Any, **options: Any) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Rows (m, features) as numbers, and labels (m,)."""
    _there(X)
    try:
        rows, labels = validate_data(estimator, X, y, **options)
    except ValueError as problem:
        raise _explained(problem, X) from None
    return np.asarray(rows, dtype=np.float64), np.asarray(labels)


def to_predict(estimator: Any, X: Any) -> FloatArray:
    """Rows (m, features) as numbers, as many features as it was fitted with."""
    _there(X)
    try:
        return np.asarray(validate_data(estimator, X, reset=False), dtype=np.float64)
    except ValueError as problem:
        raise _explained(problem, X) from None


def two_or_more(classes: npt.NDArray[Any]) -> None:
    """Refuse to tell one class from nothing."""
    if len(classes) < 2:
        raise InvalidValue(
            f"Classifier can't train when only one class is present: every label is {classes.tolist()[0]!r}; give rows of "
            "another class too"
        )


def numbers(y: npt.NDArray[Any]) -> FloatArray:
    """The targets of a regression, or a refusal that names the first that is no number."""
    for place, value in enumerate(y.tolist() if y.dtype.kind in "OSU" else ()):
        if not _is_number(value):
            raise InvalidValue(
                f"y[{place}] is {value!r}, and a linear regression predicts numbers; for classes use LogisticRegression"
            )
    return np.asarray(y, dtype=np.float64)


def _there(X: Any) -> None:
    if X is None:
        raise InvalidValue(
            "X is None; give a table of numbers with a row for each sample and a column for each feature"
        )


def _explained(problem: ValueError, X: Any) -> ValueError:
    """The same refusal, with the first cell that it is about, where it is about cells of X."""
    text = str(problem)
    words = any(word in text for word in ("string", "convert"))
    if not words and not text.startswith("Input X contains"):
        return problem
    table = np.asarray(X, dtype=object)
    if table.ndim != 2:
        return problem
    for i, row in enumerate(table.tolist()):
        for j, cell in enumerate(row):
            where = f"row {i}, {_column(X, j)}"
            if words and not _is_number(cell):
                return InvalidValue(
                    f"{where} of X holds {cell!r}, and features are numbers; turn words into numbers first, by a list of them "
                    "that is public, such as OneHotEncoder(categories=[…])"
                )
            if not words and not np.isfinite(float(cell)):
                return InvalidValue(
                    f"{text.splitlines()[0].rstrip('.')}: {where}; leave such rows out, or fill in a number that is public (a mean "
                    "of the rows would spend privacy that is not accounted)"
                )
    return problem


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _column(X: Any, j: int) -> str:
    names = getattr(X, "columns", None)
    return f"column {j}" if names is None else f"column {list(names)[j]!r}"
