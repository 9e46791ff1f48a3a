"""What the scikit-learn classifiers here have in common: binary labels, rows of norm at most 1, a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, MissingDependency
from netdp.numerics.arrays import FloatArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:  # pragma: no cover - exercised by an environment without the extra
    raise MissingDependency("scikit-learn", "the estimator", "learn") from None


LONGEST_STEP = 8.0
"""Rows of norm at most 1: the loss is 1/4-smooth, and a longer local step may expand."""


class BinaryLinear(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier of two classes with `coef_` and `intercept_`."""

    def _labelled(self, X: npt.ArrayLike, y: npt.ArrayLike, step: float) -> tuple[FloatArray, FloatArray]:
        """Rows scaled to norm at most 1 and labels ±1; sets `classes_`."""
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target has {len(self.classes_)} classes."
            )
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        if step > LONGEST_STEP:
            raise InvalidValue(
                f"step {step!r} is too long for rows of norm 1: at most {LONGEST_STEP:g}, or a local step may expand"
            )
        return _rows(np.asarray(X)), np.where(codes == 1, 1.0, -1.0)

    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """The signed margin of every row."""
        check_is_fitted(self)
        rows = _rows(np.asarray(validate_data(self, X, reset=False)))
        margin: FloatArray = rows @ np.append(self.coef_[0], self.intercept_[0])
        return margin

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The likelier class of every row."""
        side = (self.decision_function(X) > 0).astype(int)
        chosen: npt.NDArray[Any] = self.classes_[side]
        return chosen

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """The probability of either class."""
        positive = 1.0 / (1.0 + np.exp(-np.clip(self.decision_function(X), -500, 500)))
        return np.column_stack([1 - positive, positive])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Noise for a few dozen rows leaves little to learn: that is what privacy costs, not a fault.
        tags.classifier_tags.poor_score = True
        return tags


def few_enough(parties: int, rows: int) -> None:
    """Refuse to deal fewer rows than there are parties."""
    if parties > rows:
        raise InvalidValue(f"{rows} rows cannot be dealt out to {parties} parties; ask for fewer parties")


def _rows(X: FloatArray) -> FloatArray:
    """A constant feature added, rows scaled down to norm at most 1: no row's scale depends on another's."""
    rows = np.hstack([X, np.ones((len(X), 1))])
    scaled: FloatArray = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    return scaled
