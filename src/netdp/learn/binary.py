"""What the scikit-learn classifiers here have in common: binary labels, rows of norm at most 1, a linear model."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, MissingDependency
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import positive

from .given import to_fit, to_predict, two_or_more
from .noise import longest_step

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted
except ImportError:  # pragma: no cover - exercised by an environment without the extra
    raise MissingDependency("scikit-learn", "the estimator", "learn") from None


class BinaryLinear(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier of two classes with `coef_` and `intercept_`."""

    def _labelled(self, X: npt.ArrayLike, y: npt.ArrayLike, options: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
        """Rows scaled to norm at most 1 and labels ±1; sets `classes_`."""
        rows, labels = self._validated(X, y, options)
        return unit_rows_with_constant(rows), labels

    def _validated(self, X: npt.ArrayLike, y: npt.ArrayLike, options: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
        """Rows as they are and labels ±1; sets `classes_`."""
        if "sample_weight" in options:
            raise InvalidValue(
                "fit takes no sample_weight: a party's rows count alike, and the noise is calibrated for that; "
                "leave out the rows that shall not count"
            )
        if options:
            raise InvalidValue(f"fit takes X and y alone, not {', '.join(map(repr, sorted(options)))}")
        rows, y = to_fit(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target has {len(self.classes_)} classes; "
                "netdp.learn.LogisticRegression takes as many as you like."
            )
        two_or_more(self.classes_)
        return rows, np.where(codes == 1, 1.0, -1.0)

    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """The signed margin of every row."""
        check_is_fitted(self)
        rows = unit_rows_with_constant(to_predict(self, X))
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


def target(epsilon: Any, delta: Any) -> tuple[float, float]:
    """ε > 0 and 0 < δ < 1, or a refusal that names them."""
    asked = positive("epsilon", epsilon), positive("delta", delta)
    if not asked[1] < 1:
        raise InvalidValue(f"delta must lie between 0 and 1, got {delta!r}; 1e-5 is a usual choice")
    return asked


def checked_step(step: Any, clip: float) -> float:
    """A step that does not stretch the distance of two models, or a refusal."""
    length, longest = positive("step", step), longest_step(clip)
    if length > longest:
        raise InvalidValue(
            f"step {step!r} is too long for rows of norm 1 clipped to {clip:g}: at most {longest:.4g}, or a local step may "
            "expand; step=None chooses one"
        )
    return length


def entropy(random_state: Any) -> np.random.SeedSequence:
    """Where all randomness comes from. None: 128 bits from the operating system, so that nobody can guess the noise.

    A whole number or a Generator repeats a run: for experiments. RandomState is refused: it looks random, but one made from
    a seed holds 32 bits, and its whole state can be computed from what it puts out.

    >>> entropy(7).entropy, entropy(None).entropy.bit_length() > 96
    (7, True)
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence([int(word) for word in random_state.integers(0, 2**32, 8)])
    if isinstance(random_state, np.random.RandomState):
        raise InvalidValue(
            "random_state must be None, a whole number ≥ 0 or a numpy Generator; a RandomState has too little randomness to "
            "hide anything behind: use None, or numpy.random.default_rng(seed) to repeat an experiment"
        )
    if isinstance(random_state, bool) or not isinstance(random_state, numbers.Integral) or random_state < 0:
        raise InvalidValue(
            f"random_state must be None (fresh noise), a whole number ≥ 0 or a numpy Generator, got {random_state!r}"
        )
    return np.random.SeedSequence(int(random_state))


def few_enough(parties: int, rows: int) -> None:
    """Refuse to deal fewer rows than there are parties."""
    if parties > rows:
        words = "one sample, 1 row," if rows == 1 else f"{rows} rows"
        raise InvalidValue(f"{words} cannot be dealt out to {parties} parties; ask for fewer parties")


def unit_rows_with_constant(X: FloatArray) -> FloatArray:
    """A constant feature added, rows scaled down to norm at most 1: no row's scale depends on another's."""
    rows = np.hstack([X, np.ones((len(X), 1))])
    scaled: FloatArray = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    return scaled
