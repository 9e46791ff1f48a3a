"""A scikit-learn classifier trained by a token that walks from party to party: no server, every loss certified."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from netdp.accounting import account
from netdp.accounting.calibrate_walk import calibrate_walk
from netdp.errors import InvalidValue, MissingDependency
from netdp.privacy import Guarantee
from netdp.protocols.checks import count
from netdp.protocols.walk import WalkDescent

from .estimator import GossipLogisticRegression, _rows
from .logistic import LogisticParties
from .walk import train_walk

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data
except ImportError:  # pragma: no cover - exercised by an environment without the extra
    raise MissingDependency("scikit-learn", "the estimator", "learn") from None


class WalkLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Binary logistic regression learned by a token that walks at random among parties that trust no server.

    The rows are dealt out to the parties; each party that the token visits takes a clipped, noisy gradient step. The noise is
    the smallest whose certified loss against any `colluders` parties together is at most (epsilon, delta), for a party's
    whole data, the final model included.

    Parameters
    ----------
    parties : number of parties.
    epsilon, delta : the target, user-level, replacing one party's rows.
    steps : length of the walk; None: 50 visits per party on average.
    step, clip : η and L, see `netdp.protocols.WalkDescent`; rows have norm at most 1, so η ≤ 8.
    sender : "hidden": a party does not see from whom it gets the token; "known": it does, as over a direct connection.
    colluders : how many parties may pool what they see.
    contributions : gradient steps per party, after which it adds noise only; None: no limit.
    random_state : int, for dealing out, the path and the (simulated) noise.

    Rows are scaled down to norm at most 1, after a constant feature for the intercept was added; scale your features
    beforehand, with statistics that are public.
    """

    def __init__(
        self,
        parties: int = 16,
        *,
        epsilon: float = 4.0,
        delta: float = 1e-5,
        steps: int | None = None,
        step: float = 0.5,
        clip: float = 1.0,
        sender: str = "hidden",
        colluders: int = 1,
        contributions: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.parties = parties
        self.epsilon = epsilon
        self.delta = delta
        self.steps = steps
        self.step = step
        self.clip = clip
        self.sender = sender
        self.colluders = colluders
        self.contributions = contributions
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Deal the rows out, calibrate the noise, learn."""
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target has {len(self.classes_)} classes."
            )
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        parties, colluders = count("parties", self.parties), count("colluders", self.colluders)
        if parties > len(codes):
            raise InvalidValue(f"{len(codes)} rows cannot be dealt out to {parties} parties; ask for fewer parties")
        if colluders >= parties:
            raise InvalidValue(f"{colluders} of {parties} parties collude: nobody is left to protect; give fewer")
        if self.step > 8.0:
            raise InvalidValue(
                f"step {self.step!r} is too long for rows of norm 1: at most 8, or a local step may expand"
            )
        seeds = np.random.SeedSequence(self.random_state).spawn(2)
        data = LogisticParties.deal(
            _rows(np.asarray(X)), np.where(codes == 1, 1.0, -1.0), parties, np.random.default_rng(seeds[0])
        )
        draft = WalkDescent(
            parties,
            50 * parties if self.steps is None else self.steps,
            sigma=1.0,
            step=self.step,
            clip=self.clip,
            sender=self.sender,
            contributions=self.contributions,
        )
        self.protocol_, self.guarantee_ = _certified(draft, self.epsilon, self.delta, colluders)
        run = train_walk(self.protocol_, data, seeds[1])
        self.coef_, self.intercept_ = run.model[None, :-1], run.model[-1:]
        self.n_iter_ = self.protocol_.steps
        return self

    decision_function = GossipLogisticRegression.decision_function
    predict = GossipLogisticRegression.predict
    predict_proba = GossipLogisticRegression.predict_proba

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Noise for a few dozen rows leaves little to learn: that is what privacy costs, not a fault.
        tags.classifier_tags.poor_score = True
        return tags


@lru_cache(maxsize=64)
def _certified(draft: WalkDescent, epsilon: float, delta: float, colluders: int) -> tuple[WalkDescent, Guarantee]:
    """The calibrated protocol and its loss: they do not depend on the data, so cross-validation computes them once."""
    protocol = calibrate_walk(draft, epsilon, delta, observers=colluders)
    return protocol, account(protocol, list(range(colluders)))
