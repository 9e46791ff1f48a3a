"""Descents, run on the parties' losses: what is accounted is what runs.

`Losses` is what the parties hold: it returns their clipped gradients, and states how far a local step can stretch the
distance between two models. Families enter how theirs run in `netdp.protocols.simulation.trainers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, non_negative
from netdp.privacy.wording import duration, size
from netdp.protocols.risk import AVERAGES, weights
from netdp.protocols.simulation import trainers
from netdp.protocols.views import Transcript

After = Callable[[int, FloatArray], None]


@runtime_checkable
class Losses(Protocol):
    """What n parties hold, as a model of d numbers sees it."""

    @property
    def n(self) -> int:
        """How many parties."""

    @property
    def d(self) -> int:
        """How many numbers a model has."""

    def gradients(self, models: FloatArray, clip: float) -> FloatArray:
        """(n, d): every party's gradient at its own model (n, d), of norm at most `clip`."""

    def expansion(self, step: float, clip: float) -> float:
        """A Lipschitz constant of θ ↦ θ − step·gradient, gradients clipped to `clip`, for every party."""


@dataclass(frozen=True)
class FromGradients:
    """Losses given by a function that returns every party's gradient (n, d) at its model; the whole gradient is clipped.

    smoothness   β: gradients are β-Lipschitz in the model. That is the caller's word: nothing can check it here. Clipping a
                 vector to a ball is a projection and does not stretch, so a step is (1 + step·β)-Lipschitz; 1 would be
                 wrong even for convex losses (a clipped gradient need not be a gradient).

    >>> far = FromGradients(lambda models: models - 1.0, n=4, d=1, smoothness=1.0)
    >>> far.gradients(np.full((4, 1), 9.0), clip=0.5).ravel().tolist(), far.expansion(0.25, clip=0.5)
    ([0.5, 0.5, 0.5, 0.5], 1.25)
    """

    function: Callable[[FloatArray], FloatArray]
    n: int
    d: int
    smoothness: float

    def __post_init__(self) -> None:
        count("n", self.n)
        count("d", self.d)
        non_negative("smoothness", self.smoothness)

    def gradients(self, models: FloatArray, clip: float) -> FloatArray:
        """Every party's gradient, clipped as a whole."""
        return clipped(checked(self.function(models), (self.n, self.d)), clip)

    def expansion(self, step: float, clip: float) -> float:
        """1 + step·β, whatever the clip."""
        return 1.0 + step * self.smoothness


@dataclass(frozen=True, eq=False)
class Trained:
    """The model that every party keeps (n, d), and who sent to whom.

    `models` are those after the last iteration, or each party's average of its own models where that was asked for: a function of
    what it sees anyway, so that it learns nothing more by it.
    """

    models: FloatArray
    transcript: Transcript

    @property
    def model(self) -> FloatArray:
        """The model of the first party."""
        first: FloatArray = self.models[0]
        return first

    @property
    def mean(self) -> FloatArray:
        """The average model: what perfect gossip would leave with everybody. Nobody sees it in the protocol."""
        average: FloatArray = self.models.mean(axis=0)
        return average

    def __str__(self) -> str:
        n, d = self.models.shape
        apart = float(np.linalg.norm(self.models - self.mean, axis=1).max())
        return (
            f"{n:,} parties, each with a model of {d} numbers, at most {apart:.3g} from their mean; "
            f"{len(self.transcript):,} messages"
        )


@dataclass(frozen=True)
class TrainingCost:
    """What a run takes; bytes and rounds are counted, seconds are estimated.

    iterations      gradient steps
    rounds          rounds of messages in all
    step_bytes      what one party publishes in one iteration
    link_bytes      what crosses one link in one direction in the whole run, at most
    mean_bytes      what a party sends in the whole run, the mean over all
    party_bytes     what the party that sends most sends in the whole run, at most
    memory_bytes    what a party holds at a time: the numbers of all parties of the last iterations, and the model
    seconds         an estimate
    """

    iterations: int
    rounds: int
    step_bytes: int
    link_bytes: int
    mean_bytes: int
    party_bytes: int
    memory_bytes: int
    seconds: float

    @property
    def seconds_per_iteration(self) -> float:
        """An estimate."""
        return self.seconds / self.iterations

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.iterations:,} iterations, {self.rounds:,} rounds of messages; a party publishes {size(self.step_bytes)} in "
            f"each and sends about {size(self.mean_bytes)} in all, none more than {size(self.party_bytes)}, at most "
            f"{size(self.link_bytes)} over one link; "
            f"{size(self.memory_bytes)} of memory; about {duration(self.seconds)} (an estimate)"
        )


def train(
    protocol: Any,
    losses: Losses,
    seed: int | np.random.SeedSequence,
    *,
    after: After | None = None,
    average: str = "last",
    convexity: float = 0.0,
) -> Trained:
    """Run the protocol at every party; `after(t, models)` is called after every iteration.

    losses      `netdp.learn.LogisticParties`, `ModelParties(model, Xs, ys)` for any `netdp.models.Model`, or
                `FromGradients(function, n, d, smoothness)` for your own; θ = 0 at first, or `losses.start()` if there is one
    average     which model a party keeps: "last", or "weighted", the average of its models along the way, in which model t weighs
                (1 − step·convexity)^{−t} (Theorems 5 and 10 of Muffliato): alike for convexity=0. `MaskedDescent` states in
                its own field which model is kept; only "weighted" is asked for here
    convexity   m, if losses are m-strongly convex

    >>> flat = FromGradients(lambda models: 0.0 * models - 1.0, n=2, d=1, smoothness=0.0)
    >>> from netdp import CentralDescent
    >>> steps = CentralDescent(2, 3, sigma=1e-9, step=1.0)
    >>> [train(steps, flat, 0, average=kept).models.round(6).ravel().tolist() for kept in ("last", "weighted")]
    [[3.0, 3.0], [2.0, 2.0]]
    """
    if "average" not in trainers.options(protocol):
        raise InvalidValue(
            f"train runs GossipDescent, MaskedDescent, LocalDescent and CentralDescent, got {protocol!r}"
        )
    found: Trained = trainers(protocol, losses, seed, after=after, average=average, convexity=convexity)
    return found


def descended(
    protocol: Any,
    losses: Losses,
    step: Callable[[int, FloatArray, FloatArray], FloatArray],
    transcript: Transcript,
    *,
    after: After | None,
    average: str,
    convexity: float,
) -> Trained:
    """Every party's descent: step(t, models, gradients) → the models (n, d) after iteration t."""
    share = shares(protocol, average, convexity)
    keeps = np.zeros((protocol.n, losses.d))
    models = np.tile(first_model(losses), (protocol.n, 1))
    for t in range(protocol.iterations):
        models = step(t, models, checked(losses.gradients(models, protocol.clip), models.shape, protocol.clip))
        if share[t]:
            keeps += share[t] * models
        if after is not None:
            after(t, models)
    return Trained(keeps, transcript)


def first_model(losses: Losses) -> FloatArray:
    """The public model that everybody starts from (d,): `losses.start()`, else 0.

    >>> first_model(FromGradients(lambda models: models, n=2, d=3, smoothness=1.0)).tolist()
    [0.0, 0.0, 0.0]
    """
    start = getattr(losses, "start", None)
    return np.zeros(losses.d) if start is None else checked(start(), (losses.d,))


def clipped(gradient: FloatArray, clip: float) -> FloatArray:
    """Every row scaled down to norm at most `clip`; before any noise is added.

    >>> clipped(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).round(9).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    length = np.linalg.norm(gradient, axis=1, keepdims=True)
    scaled: FloatArray = gradient * np.minimum(1.0, clip / np.where(length > 0, length, 1.0))
    return scaled


def checked(gradient: Any, shape: tuple[int, ...], clip: float | None = None) -> FloatArray:
    """The gradients, if they are finite numbers of the right shape, and no longer than `clip`."""
    array = np.asarray(gradient, dtype=np.float64)
    if array.shape != shape:
        raise InvalidValue(f"gradients have shape {array.shape}, expected {shape}: one row per party")
    if not np.isfinite(array).all():
        raise InvalidValue(
            f"the gradient of party {int(np.argwhere(~np.isfinite(array))[0, 0])} is not finite; try a smaller step"
        )
    if clip is not None and len(array):
        length = np.linalg.norm(array, axis=1)
        if length.max() > clip * (1 + 1e-9):
            raise InvalidValue(
                f"the gradient of party {int(np.argmax(length))} has norm {length.max():g}, more than clip={clip:g}; "
                "losses.gradients must clip before it returns"
            )
    return array


def shares(protocol: Any, average: str, convexity: float) -> FloatArray:
    """How much the model after each iteration weighs in what is kept."""
    if average not in AVERAGES:
        raise InvalidValue(f"unknown average {average!r}; choose one of {', '.join(AVERAGES)}")
    if average == "weighted":
        return weights(protocol.step, convexity, protocol.iterations)
    if convexity:
        raise InvalidValue(f"convexity={convexity!r} is used by average='weighted' only; leave it out, or ask for that")
    return np.asarray(np.arange(protocol.iterations) == protocol.iterations - 1, dtype=np.float64)


def check_losses(protocol: Any, losses: Losses) -> None:
    """Refuse what are no losses, or those of other parties."""
    if not isinstance(losses, Losses):
        raise InvalidValue(
            "losses must be LogisticParties, ModelParties(model, Xs, ys), or FromGradients(function, n, d, smoothness) for "
            f"your own, got {losses!r}"
        )
    if losses.n != protocol.n:
        raise InvalidValue(f"the protocol has {protocol.n} parties and the losses {losses.n}; they must agree")
