"""scikit-learn estimators for parties that trust no server: logistic regression of any number of classes, linear regression.

By default they learn by masked descent: every iteration is one sum under one-time pads, so it is a curator's noisy descent
without the curator, and all settings are planned from public numbers (`netdp.learn.planning`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, MissingDependency, Unsupported
from netdp.graphs.graph import Graph
from netdp.learn.fitting import Fitted, TrainingRequest, learner, names_of, ready, unweighted
from netdp.learn.planning import learnings
from netdp.learn.tables import numbers, to_fit, to_predict, two_or_more
from netdp.models.base import Model
from netdp.models.linear import Linear, Logistic, Multinomial
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import finite
from netdp.protocols.family import families

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted
except ImportError:  # pragma: no cover - exercised by an environment without the extra
    raise MissingDependency("scikit-learn", "the estimator", "learn") from None

PROTOCOLS = tuple(word for one in families() for word in one.training)

_TWO_CLASSES = ("gossip", "walk")
"""They learn from labels ±1; the estimators of `netdp.learn.classifiers` have all their settings."""


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """What both have in common."""

    def __init__(
        self,
        parties: int | None = None,
        *,
        protocol: str = "masked",
        unit: str = "party",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        colluders: int = 1,
        graph: Graph | str | None = None,
        bounds: Any = None,
        standardise: str | None = None,
        iterations: int | None = None,
        clip: float | None = None,
        step: float | None = None,
        sampling: float | None = None,
        verbose: int = 0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.parties = parties
        self.protocol = protocol
        self.unit = unit
        self.epsilon = epsilon
        self.delta = delta
        self.colluders = colluders
        self.graph = graph
        self.bounds = bounds
        self.standardise = standardise
        self.iterations = iterations
        self.clip = clip
        self.step = step
        self.sampling = sampling
        self.verbose = verbose
        self.random_state = random_state

    def _asked(self) -> TrainingRequest:
        return TrainingRequest(
            self.parties, self.graph, self.unit, self.epsilon, self.delta, self.colluders, self.bounds, self.standardise,
            self.iterations, self.clip, self.step, self.sampling, self.verbose, self.random_state, names_of(self),
        )  # fmt: skip

    def _learn(self, model_for: Callable[[int], Model], X: FloatArray, y: FloatArray) -> Fitted:
        if self.protocol not in PROTOCOLS:
            raise InvalidValue(f"unknown protocol {self.protocol!r}; choose one of {', '.join(PROTOCOLS)}")
        if self.protocol in _TWO_CLASSES:
            raise Unsupported(
                f"protocol={self.protocol!r} learns two classes only, by LogisticRegression; use protocol='masked'"
            )
        return self._kept(learner(self.protocol)(self._asked(), model_for, X, y))

    def _kept(self, found: Fitted) -> Fitted:
        self.protocol_, self.guarantee_, self.scaling_, self.plan_ = (
            found.protocol, found.guarantee, found.scaling, found.plan,
        )  # fmt: skip
        self.n_iter_ = learnings(found.protocol).length(found.protocol)
        return found

    def _margins(self, X: npt.ArrayLike) -> FloatArray:
        """(m, k): inner products with the rows of coef_, intercepts added; on rows scaled as when they were learned from."""
        check_is_fitted(self)
        rows = ready(to_predict(self, X), self.scaling_)
        coefficients, constants = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        return np.asarray(rows @ np.column_stack([coefficients, constants]).T)


class LogisticRegression(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """Logistic regression, two classes or more, learned by parties that trust no server.

    The rows are dealt out to the parties; in every iteration they add up their clipped gradients under one-time pads, with noise
    of which everybody holds a share. A `netdp.learn.NoiseWarning` says so beforehand if noise leaves nothing to learn, a
    `netdp.learn.PreprocessingWarning` if the features seem to have been scaled by looking at everybody's rows, or not at all.

    Parameters
    ----------
    parties : number of parties that the rows are dealt out to; None: as many as `graph` has, or 16.
    protocol : "masked" (masked sums: a curator's accuracy without one); to compare with it "central" (a trusted curator) and
        "local" (everybody adds all the noise that it needs); for two classes "gossip" and "walk", with the settings of
        `GossipLogisticRegression` and `WalkLogisticRegression`.
    unit : what is protected: "party", all rows of one party, or "record", one row more or less ("masked" only).
    epsilon, delta : the target. The least noise is used whose certified loss is at most that.
    colluders : how many parties may pool what they see.
    graph : whom the parties talk to, a `netdp.Graph` or a text such as "regular:20,4"; it has no part in the privacy of
        masked sums.
    bounds : public range of the features: (low, high) for all, a pair for each, or {name: (low, high)}. Features are clipped
        to it and brought to [−1, 1]. State what is known without looking at the rows.
    standardise : "private": mean and variance of every feature, within the bounds, by a masked sum with its share of the
        budget; counted in `guarantee_` ("masked" only). Without bounds, ranges are found by another such sum.
    iterations, clip, step, sampling : None: planned from public numbers, see `netdp.learn.plan_training`.
    verbose : 1: ten lines of progress on stderr, 2: one for every iteration. Only what all parties see is shown.
    random_state : None: dealing and (simulated) noise from fresh entropy of the operating system. A whole number or a numpy
        Generator repeats an experiment: whoever knows it can take the noise off.

    Attributes
    ----------
    coef_, intercept_ : the model, for scaled rows: features within their bounds, a constant added, norm at most 1.
    guarantee_ : what was promised: claim, unit, assumptions; for every party its loss to any `colluders` others.
    protocol_ : the calibrated protocol.
    plan_ : all that was planned (`netdp.learn.TrainingPlan`); None for other protocols than "masked".
    scaling_ : bounds, and the features' private means and deviations; None if rows are taken as they are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 3000)
    >>> X = rng.normal(0.0, 1.0, (3000, 2)) + 4.0 * np.column_stack([y == 1, y == 2])
    >>> model = LogisticRegression(parties=300, bounds=(-10, 10), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.guarantee_.worst_epsilon(1e-6) <= 1.0
    (True, True)
    """

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, **options: Any) -> Self:
        """Deal the rows out, plan, calibrate the noise, learn."""
        unweighted(options)
        rows, y = to_fit(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        number = len(self.classes_)
        two_or_more(self.classes_)
        if self.protocol in _TWO_CLASSES:
            theta = self._of_two(rows, np.where(codes == 1, 1.0, -1.0)).theta[None, :]
        elif number == 2:
            theta = self._learn(Logistic, rows, codes.astype(np.float64)).theta[None, :]
        else:
            found = self._learn(lambda columns: Multinomial(columns, number), rows, codes.astype(np.float64))
            theta = found.theta.reshape(number, -1)
        self.coef_, self.intercept_ = theta[:, :-1].copy(), theta[:, -1].copy()
        return self

    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """The signed margin of every row; of more than two classes, one score for each (m, classes)."""
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The likeliest class of every row."""
        margins = self._margins(X)
        best = (margins[:, 0] > 0).astype(int) if margins.shape[1] == 1 else margins.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """The probability of every class (m, classes)."""
        margins = self._margins(X)
        if margins.shape[1] == 1:
            margins = np.column_stack([np.zeros(len(margins)), margins[:, 0]])
        return np.asarray(np.exp(margins - np.logaddexp.reduce(margins, axis=1, keepdims=True)))

    def _of_two(self, X: FloatArray, labels: FloatArray) -> Fitted:
        """By gossip or a walking token, with the settings that their own estimators have by default."""
        from .scaling import by_bounds

        plain = {"unit": "party", "standardise": None, "sampling": None}
        for name, usual in plain.items():
            if getattr(self, name) != usual:
                raise InvalidValue(
                    f"protocol={self.protocol!r} with {name}={getattr(self, name)!r}: only protocol='masked' does that"
                )
        if len(self.classes_) > 2:
            raise Unsupported(f"protocol={self.protocol!r} learns two classes, got {len(self.classes_)}; use 'masked'")
        scaling = None if self.bounds is None else by_bounds(self.bounds, X.shape[1], names_of(self))
        scaled = X if scaling is None else scaling.applied(X)
        return self._kept(replace(learner(self.protocol)(self._asked(), scaled, labels), scaling=scaling))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Noise for a few dozen rows leaves little to learn: that is what privacy costs, not a fault.
        tags.classifier_tags.poor_score = True
        return tags


class LinearRegression(RegressorMixin, _Estimator):  # type: ignore[misc]
    """Linear regression of a number with public bounds, learned by parties that trust no server.

    y is clipped to `target_bounds` and brought to [−1, 1]; the squared error there is made small by masked descent, as in
    `LogisticRegression`. Predictions lie within the bounds.

    Parameters
    ----------
    target_bounds : public range (low, high) of y; must be given. The narrower, the less noise.
    protocol : "masked", or to compare with it "central" and "local".
    parties, unit, epsilon, delta, colluders, graph, bounds, standardise, iterations, clip, step, sampling, verbose, random_state :
        as of `LogisticRegression`.

    Attributes
    ----------
    coef_, intercept_ : the model of the target in [−1, 1], for scaled rows.
    guarantee_, protocol_, plan_, scaling_ : as of `LogisticRegression`.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (4000, 2))
    >>> model = LinearRegression(parties=400, target_bounds=(0, 30), random_state=0).fit(X, 15 + X @ [5.0, -3.0])
    >>> bool(model.score(X, 15 + X @ [5.0, -3.0]) > 0.8)
    True
    """

    def __init__(
        self,
        parties: int | None = None,
        *,
        target_bounds: tuple[float, float] | None = None,
        protocol: str = "masked",
        unit: str = "party",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        colluders: int = 1,
        graph: Graph | str | None = None,
        bounds: Any = None,
        standardise: str | None = None,
        iterations: int | None = None,
        clip: float | None = None,
        step: float | None = None,
        sampling: float | None = None,
        verbose: int = 0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(
            parties, protocol=protocol, unit=unit, epsilon=epsilon, delta=delta, colluders=colluders, graph=graph, bounds=bounds,
            standardise=standardise, iterations=iterations, clip=clip, step=step, sampling=sampling, verbose=verbose,
            random_state=random_state,
        )  # fmt: skip
        self.target_bounds = target_bounds

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, **options: Any) -> Self:
        """Deal the rows out, plan, calibrate the noise, learn."""
        unweighted(options)
        rows, y = to_fit(self, X, y)
        low, high = self._range()
        goals = np.clip(2.0 * (numbers(y) - low) / (high - low) - 1.0, -1.0, 1.0)
        theta = self._learn(Linear, rows, goals).theta
        self.coef_, self.intercept_ = theta[:-1].copy(), float(theta[-1])
        return self

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """The number predicted for every row, within the bounds."""
        margins = self._margins(X)[:, 0]
        low, high = self._range()
        return np.asarray(low + (np.clip(margins, -1.0, 1.0) + 1.0) / 2.0 * (high - low))

    def _range(self) -> tuple[float, float]:
        if self.target_bounds is None:
            raise InvalidValue(
                "target_bounds=(low, high) is missing: the public range of y, such as (0, 500_000) for a price; what lies outside "
                "is clipped to it"
            )
        try:
            low, high = self.target_bounds
        except (TypeError, ValueError):
            raise InvalidValue(f"target_bounds must be a pair (low, high), got {self.target_bounds!r}") from None
        ends = finite("target_bounds[0]", low), finite("target_bounds[1]", high)
        if not (ends[0] < ends[1] and math.isfinite(ends[1] - ends[0])):
            raise InvalidValue(f"target_bounds must be (low, high) with low below high, got {self.target_bounds!r}")
        return ends

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
