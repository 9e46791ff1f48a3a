"""scikit-learn classifiers for parties on a network: binary labels, rows of norm at most 1, a linear model, every loss certified.

`GossipLogisticRegression` learns by masked sums by default, with a curator's accuracy, or by gossip with correlated noise; there
`guarantee_` states for every party the worst of all other parties, each alone (docs/proofs/gossip.md#hidden-state). On
vertex-transitive graphs one observer stands for all; on hypercubes and complete graphs also one target per distance, as
automorphisms that keep an observer take any party to any other at the same distance. The holder's own models are part of what it
sees, so their mean is post-processing. `WalkLogisticRegression` is trained by a token that walks from party to party.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted as the_check_is_fitted

from netdp.errors import InvalidValue, MissingDependency
from netdp.graphs.graph import Graph
from netdp.learn.fitting import Fitted, TrainingRequest, learner, names_of, unit_rows_with_constant, unweighted
from netdp.learn.tables import to_fit, to_predict, two_or_more
from netdp.models.linear import Logistic
from netdp.numerics.arrays import FloatArray
from netdp.privacy.curve import Curve
from netdp.privacy.curves import SharedCurve
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.accounting import account

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted
except ImportError:  # pragma: no cover - exercised by an environment without the extra
    raise MissingDependency("scikit-learn", "the estimator", "learn") from None


class BinaryLinear(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier of two classes with `coef_` and `intercept_`."""

    def _validated(self, X: npt.ArrayLike, y: npt.ArrayLike, options: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
        """Rows as they are and labels ±1; sets `classes_`."""
        unweighted(options)
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


_PROTOCOLS = ("masked", "gossip")


class GossipLogisticRegression(BinaryLinear):
    """Binary logistic regression learned by parties on a network that trust no server.

    The rows are dealt out to the parties, who add up clipped gradients under one-time pads, or gossip with noise that cancels.
    The noise is the smallest whose certified loss against every single other party is at most (epsilon, delta), for a party's
    whole data. A `netdp.learn.NoiseWarning` says so beforehand if that much noise leaves nothing to learn.

    Parameters
    ----------
    parties : number of parties; None: as many as `graph` has, or 16.
    graph : a `netdp.Graph`, or a text such as "regular:20,4"; its nodes are the parties. By default a hypercube for powers of
        two; else a complete graph for gossip, and links at powers of two for masked sums.
    protocol : "masked" (`netdp.protocols.MaskedDescent`) or "gossip" (`netdp.protocols.GossipDescent`). None: masked, or gossip
        where `gossip_rounds`, `masks` or `holder` is given, which belong to it.
    epsilon, delta : the target, user-level, replacing one party's rows.
    iterations : None: 160.
    clip : None: planned for masked sums, 0.1 for gossip.
    step : None: as long as the noise allows.
    gossip_rounds : of gossip, per iteration; None: until the graph has mixed, at most 50.
    masks : of gossip, the variance of the noise that cancels, in units of σ²; None: 100.
    holder : of gossip, the party, by number or name, whose models become `coef_`: the mean over the later half of the
        iterations; None: the first. Nobody sees an average over parties. Whoever is given `coef_` learns no more than the
        holder; a party that is given it colludes with the holder (`netdp.account(est.protocol_, [v, holder])`).
    verbose : 1: ten lines of progress on stderr, 2: one for every iteration. Only what parties see is shown.
    random_state : None: dealing and (simulated) noise from fresh entropy of the operating system. A whole number or a numpy
        Generator repeats an experiment: whoever knows it can take the noise off.

    Attributes
    ----------
    guarantee_ : what was promised: for every party, its loss to the single other party that learns most about it.
    holder_guarantee_ : what the holder learns about every other party (computed when asked for).
    protocol_ : the calibrated protocol.

    Rows are scaled down to norm at most 1, after a constant feature for the intercept was added; scale your features
    beforehand, with statistics that are public, or use `netdp.learn.LogisticRegression`, which has public bounds and private
    standardisation, more classes, and the privacy of single records.
    """

    def __init__(
        self,
        parties: int | None = None,
        *,
        graph: Graph | str | None = None,
        protocol: str | None = None,
        epsilon: float = 4.0,
        delta: float = 1e-5,
        iterations: int | None = None,
        gossip_rounds: int | None = None,
        masks: float | None = None,
        step: float | None = None,
        clip: float | None = None,
        holder: int | str | None = None,
        verbose: int = 0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.parties = parties
        self.graph = graph
        self.protocol = protocol
        self.epsilon = epsilon
        self.delta = delta
        self.iterations = iterations
        self.gossip_rounds = gossip_rounds
        self.masks = masks
        self.step = step
        self.clip = clip
        self.holder = holder
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, **options: Any) -> Self:
        """Deal the rows out, calibrate the noise, learn."""
        features, labels = self._validated(X, y, options)
        found = self._learned(features, labels)
        self.coef_, self.intercept_ = found.theta[None, :-1], found.theta[-1:]
        self.protocol_, self.guarantee_ = found.protocol, found.guarantee
        self._holder_name = found.holder
        self._holder_loss: Guarantee | None = None
        self.n_iter_ = self.protocol_.iterations
        return self

    def _chosen(self) -> str:
        own = {"gossip_rounds": self.gossip_rounds, "masks": self.masks, "holder": self.holder}
        given = [name for name, value in own.items() if value is not None]
        if self.protocol is None:
            return "gossip" if given else "masked"
        if self.protocol not in _PROTOCOLS:
            raise InvalidValue(f"unknown protocol {self.protocol!r}; choose one of {', '.join(_PROTOCOLS)}")
        if self.protocol == "masked" and given:
            raise InvalidValue(f"{given[0]} belongs to protocol='gossip'; leave it out, or choose that")
        return self.protocol

    def _learned(self, X: FloatArray, labels: FloatArray) -> Fitted:
        asked = TrainingRequest(
            self.parties, self.graph, "party", self.epsilon, self.delta, 1, None, None,
            self.iterations, self.clip, self.step, None, self.verbose, self.random_state, names_of(self),
        )  # fmt: skip
        if self._chosen() == "masked":
            return learner("masked")(asked, Logistic, X, (labels > 0).astype(np.float64))
        own = {"gossip_rounds": self.gossip_rounds, "masks": self.masks, "holder": self.holder}
        return learner("gossip")(asked, X, labels, **own)

    @property
    def holder_guarantee_(self) -> Guarantee:
        """What the holder, and whoever is given `coef_`, learns about every other party."""
        the_check_is_fitted(self)
        if self._holder_loss is None:
            self._holder_loss = account(self.protocol_, [self._holder_name])
        return self._holder_loss


class WalkLogisticRegression(BinaryLinear):
    """Binary logistic regression learned by a token that walks at random among parties that trust no server.

    The rows are dealt out to the parties; each party that the token visits takes a clipped, noisy gradient step. The noise is
    the smallest whose certified loss against any `colluders` parties together is at most (epsilon, delta), for a party's
    whole data, the final model included. A `netdp.learn.NoiseWarning` says so beforehand if that much noise leaves nothing to
    learn.

    Parameters
    ----------
    parties : number of parties.
    epsilon, delta : the target, user-level, replacing one party's rows.
    steps : length of the walk; None: 50 visits per party on average.
    step, clip : η and L, see `netdp.protocols.WalkDescent`; step=None: as long as the noise allows.
    sender : "known": a party sees from whom it gets the token and to whom it goes, as over direct connections;
        "receiver-known" and "hidden" take anonymous channels (`netdp.protocols.WalkDescent`).
    release : "named" or "anonymous", whether the last holder publishes the model under its name; None: as the channel does.
    colluders : how many parties may pool what they see.
    tokens : walks in parallel, each with a model of its own from the same start; the mean of the released models is kept.
    graph : the links that the token keeps to, a connected `Graph` (or a NetworkX graph) of the parties; None: it goes from any
        party to any other. On a graph sender and release stay as they are by default.
    walk : on a graph "metropolis" or "simple".
    contributions : gradient steps per party, after which it adds noise only; None: no limit.
    random_state : None: dealing, path and (simulated) noise from fresh entropy of the operating system. A whole number or a
        numpy Generator repeats an experiment: whoever knows it can take the noise off.

    Attributes
    ----------
    guarantee_ : what was promised: for every party, its loss to any `colluders` other parties together (all are alike).
    protocol_ : the calibrated protocol.

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
        step: float | None = None,
        clip: float = 0.1,
        sender: str = "known",
        release: str | None = None,
        colluders: int = 1,
        tokens: int = 1,
        graph: Any = None,
        walk: str = "metropolis",
        contributions: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.parties = parties
        self.epsilon = epsilon
        self.delta = delta
        self.steps = steps
        self.step = step
        self.clip = clip
        self.sender = sender
        self.release = release
        self.colluders = colluders
        self.tokens = tokens
        self.graph = graph
        self.walk = walk
        self.contributions = contributions
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, **options: Any) -> Self:
        """Deal the rows out, calibrate the noise, learn."""
        features, labels = self._validated(X, y, options)
        asked = TrainingRequest(
            self.parties, self.graph, "party", self.epsilon, self.delta, self.colluders, None, None,
            self.steps, self.clip, self.step, None, 0, self.random_state,
        )  # fmt: skip
        found = learner("walk")(
            asked, features, labels, sender=self.sender, release=self.release, contributions=self.contributions,
            tokens=self.tokens, walk=self.walk,
        )  # fmt: skip
        self.coef_, self.intercept_ = found.theta[None, :-1], found.theta[-1:]
        self.protocol_, self.guarantee_ = found.protocol, found.guarantee
        self.n_iter_ = self.protocol_.steps
        return self

    def __getstate__(self) -> dict[str, Any]:
        # bounds on walks are functions made on the way, which no file holds: there the table stands for them, a bound as well
        state: dict[str, Any] = dict(super().__getstate__())
        known: Guarantee | None = state.get("guarantee_")
        if known is not None:
            found = None if known.found is None else replace(known.found, curve=_tabulated(known.found.curve))
            state["guarantee_"] = replace(known, curve=_tabulated(known.curve), found=found)
        return state


def _tabulated(curve: Curve) -> Curve:
    """A curve without the functions that it is read off."""
    if isinstance(curve, SharedCurve):
        return SharedCurve(_tabulated(curve.curves), curve.which)
    return ProfileCurve(curve.epsilons, curve.deltas) if isinstance(curve, ProfileCurve) else curve
