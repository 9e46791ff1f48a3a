"""Gossip descent and its baselines, run on the parties' losses: what is accounted is what runs.

`Losses` is what the parties hold: it returns their clipped gradients, and states how far a local step can stretch the
distance between two models. The certified loss of `GossipDescent` rests on that number (`protocol.expansion`), so
`train` refuses losses that may stretch more. Masks and rounds of gossip are those of `netdp.simulate.gossip`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, non_negative
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent, MaskedDescent
from netdp.protocols.model_steps import kept
from netdp.utility.learning import AVERAGES, weights
from netdp.views import Transcript

from .gossip import Watch, add_masks, mix
from .masked_descent import check_records, states_along

After = Callable[[int, FloatArray], None]
Descent = GossipDescent | LocalDescent | CentralDescent | MaskedDescent


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


def train(
    protocol: Descent,
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
    >>> steps = CentralDescent(2, 3, sigma=1e-9, step=1.0)
    >>> [train(steps, flat, 0, average=kept).models.round(6).ravel().tolist() for kept in ("last", "weighted")]
    [[3.0, 3.0], [2.0, 2.0]]
    """
    _check(protocol, losses)
    share = _shares(protocol, average, convexity)
    keeps = np.zeros((protocol.n, losses.d))
    rng = np.random.default_rng(seed)
    models = np.tile(first_model(losses), (protocol.n, 1))
    transcript = _transcript(protocol)
    nobody = Watch(transcript, ())
    if isinstance(protocol, MaskedDescent):
        return Trained(_masked(protocol, losses, rng, after, share if average != "last" else None), transcript)
    for t in range(protocol.iterations):
        gradient = checked(losses.gradients(models, protocol.clip), models.shape, protocol.clip)
        if isinstance(protocol, GossipDescent):
            rounds = protocol.rounds_of(t)
            noise = protocol.sigma * rng.standard_normal(models.shape)
            add_masks(rounds.graph, rounds.masks * protocol.sigma**2, noise, rng.standard_normal, ())
            matrices = (rounds.matrix,) * rounds.rounds
            start = models - protocol.step * (gradient + noise)
            models, _ = mix(start, matrices, rounds.chebyshev, 0.0, rng.standard_normal, nobody)
        else:
            # Local: the mean of n noisy gradients; central: the mean, then noise. The same law for the same σ.
            mean = gradient.mean(axis=0) + protocol.sigma / np.sqrt(protocol.n) * rng.standard_normal(losses.d)
            models = models - protocol.step * mean
        if share[t]:
            keeps += share[t] * models
        if after is not None:
            after(t, models)
    return Trained(keeps, transcript)


def _masked(
    protocol: MaskedDescent, losses: Losses, rng: np.random.Generator, after: After | None, share: FloatArray | None
) -> FloatArray:
    """The one model that everybody keeps, once per party (n, d); `share` weighs the models along the way, if given."""
    everybody = (protocol.n, losses.d)

    def gradients(theta: FloatArray) -> FloatArray:
        return checked(losses.gradients(np.tile(theta, (protocol.n, 1)), protocol.clip), everybody, protocol.clip)

    source = check_records(protocol, losses) if protocol.unit == "record" else gradients
    average = np.zeros(losses.d)
    for t, state in enumerate(states_along(protocol, first_model(losses), source, rng)):
        if share is not None and share[t]:
            average += share[t] * state.theta
        if after is not None:
            after(t, np.broadcast_to(state.theta, everybody))
    return np.tile(average if share is not None else kept(protocol, state), (protocol.n, 1))


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


def _shares(protocol: Descent, average: str, convexity: float) -> FloatArray:
    """How much the model after each iteration weighs in what is kept."""
    if average not in AVERAGES:
        raise InvalidValue(f"unknown average {average!r}; choose one of {', '.join(AVERAGES)}")
    if average == "weighted":
        if isinstance(protocol, MaskedDescent) and protocol.average != "last":
            raise InvalidValue(
                f"average='weighted' of a MaskedDescent with average={protocol.average!r}: two averages; leave one out"
            )
        return weights(protocol.step, convexity, protocol.iterations)
    if convexity:
        raise InvalidValue(f"convexity={convexity!r} is used by average='weighted' only; leave it out, or ask for that")
    return np.asarray(np.arange(protocol.iterations) == protocol.iterations - 1, dtype=np.float64)


def _check(protocol: Descent, losses: Losses) -> None:
    if not isinstance(protocol, Descent):
        raise InvalidValue(
            f"train runs GossipDescent, MaskedDescent, LocalDescent and CentralDescent, got {protocol!r}"
        )
    if not isinstance(losses, Losses):
        raise InvalidValue(
            "losses must be LogisticParties, ModelParties(model, Xs, ys), or FromGradients(function, n, d, smoothness) for "
            f"your own, got {losses!r}"
        )
    if losses.n != protocol.n:
        raise InvalidValue(f"the protocol has {protocol.n} parties and the losses {losses.n}; they must agree")
    if isinstance(protocol, GossipDescent):
        needed = losses.expansion(protocol.step, protocol.clip)
        if not needed <= protocol.expansion * (1 + 1e-12):  # nan is no answer either
            raise InvalidValue(
                f"a local step of size {protocol.step:g} may stretch distances by {needed:.4g}, the protocol's "
                "certified loss "
                f"assumes at most {protocol.expansion:g}; shorten the step, or state expansion={needed:.4g} in the "
                "protocol"
            )


def _transcript(protocol: Descent) -> Transcript:
    if isinstance(protocol, GossipDescent):
        return Transcript.varying(graph for graph in protocol.graphs for _ in range(protocol.gossip_rounds))
    if isinstance(protocol, MaskedDescent):
        return Transcript.synchronous(protocol.graph, protocol.iterations * protocol.sum.rounds)
    return Transcript(protocol.n, (), np.empty(0, dtype=np.int64))
