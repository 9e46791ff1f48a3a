"""One party's part of an iteration of training: from its rows and the public model to the numbers that it publishes.

    coins → gradients of the rows that they choose, clipped and in whole numbers → noise → pads → y

All of it is a function of the rows, the model, the iteration and the party's long-term secrets: nothing is drawn twice, and a
process that starts again computes the same bytes.

**Coins and noise** come from `netdp.peers.streams.noise_words`. The coins of an iteration belong to (study, attempt, roster,
iteration) and to a keyed hash of the rows: the same rows have the same coins, other rows independent ones, so for each of two
neighbouring tables they are what the proof asks for: independent, each with the stated probability, exactly (a 32-bit word below
sampling·2³²). The noise belongs to the same and to the very numbers that it is added to. Which rows are held out is decided by
coins of the whole attempt: a row is trained on or counted, never both.

**The pads** of an iteration are bound to study, attempt, roster and iteration, so none serves twice.

**What is added**: unit record: `netdp.models.whole_sum`, which checks in whole numbers that no row moves the sum by more than
`MaskedDescent.distance`. Unit party: the mean of its rows' gradients, clipped as a whole, rounded by the rule of
`netdp.protocols.masked_steps`, and held to half of that distance in whole numbers too.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.models import Linear, Logistic, Multinomial, clipped_sum, whole_sum
from netdp.models.base import square_of
from netdp.models.kernels import hold
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.protocols import MaskedDescent, MaskedSum
from netdp.protocols.masked_descent import COIN
from netdp.protocols.masked_steps import contribution, quantised, quantised_records, to_bytes
from netdp.protocols.model_steps import State, kept

from .streams import Words, context, noise_words, pads_of

if TYPE_CHECKING:
    from .kinds.base import Desk
    from .study.training import Training

_COINS, _HELD = 1, 2
_SHOWN = 256  # own rows whose loss is shown to the owner
_LONG = 2e6  # numbers that are computed in one go: some hundredths of a second


@dataclass(frozen=True)
class Drawn:
    """What is published in an iteration, and what is for the owner's eyes only.

    lost   rows whose gradient was not finite, which count as zero
    loss   the mean loss on own rows of the model that the iteration started from, if it was asked for
    took   seconds that computing this loss took
    """

    numbers: bytes
    lost: int = 0
    loss: float | None = None
    took: float = 0.0


def rows_digest(secret: bytes, rows: FloatArray) -> bytes:
    """A keyed hash of a party's rows: tells whether they are the same, and nobody without the key what they are."""
    shape = np.array(rows.shape, dtype="<i8").tobytes()
    content = hashlib.sha256(np.ascontiguousarray(rows, dtype="<f8").tobytes()).digest()
    return hmac.digest(secret, b"netdp rows 1" + shape + content, "sha256")


def coins(words: Words, count: int, threshold: int) -> BoolArray:
    """So many coins, each true with probability threshold/2³², exactly.

    >>> coins(Words(bytes(32)), 4, COIN).tolist(), coins(Words(bytes(32)), 4, 0).tolist()
    ([True, True, True, True], [False, False, False, False])
    """
    return np.asarray((words(count) >> np.uint64(32)) < np.uint64(threshold))


class Learner:
    """What one party computes in every iteration, from its rows and secrets.

    desk         keys and rows; its study's task says what model they train
    evaluation   the sum that counts how good the model is, if there is one: iteration T + 1
    """

    def __init__(
        self,
        desk: Desk,
        protocol: MaskedDescent,
        evaluation: MaskedSum | None,
        attempt: int,
        roster: tuple[int, ...],
        *,
        chunk: int = 1,
        held_out: float = 0.0,
    ) -> None:
        self._desk, self.protocol, self.evaluation = desk, protocol, evaluation
        self._where = (desk.study.hash, attempt, roster)
        self._secret, self._roster = desk.identity.noise_secret, roster
        task = cast("Training", desk.study.task)
        self.model = task.model(chunk)
        self._data = rows_digest(self._secret, desk.rows)
        X, y = task.parts(desk.rows)
        counted = self._coins(len(y), math.floor(held_out * COIN), 0, _HELD)
        self.training, self.held = (X[~counted], y[~counted]), (X[counted], y[counted])

    @property
    def digest(self) -> bytes:
        """Of the rows."""
        return self._data

    @cached_property
    def is_long(self) -> bool:
        """Whether an iteration takes so long that others must be listened to meanwhile."""
        p = self.protocol
        if not isinstance(self.model, Linear | Logistic | Multinomial):  # nobody knows how long its gradients take
            return True
        rows = len(self.training[1]) * (p.sampling if p.unit == "record" else 1.0)
        return p.dimension * (rows + 20 * p.n) > _LONG

    def drawn(self, t: int, state: State, show: bool = False) -> Drawn:
        """What is published in iteration t = 1 … T, and in T + 1 if there is an evaluation; nothing else depends on rows."""
        lost: list[int] = []
        if t <= self.protocol.iterations:
            one, integers = self.protocol.sum, self._gradient(t, state.theta, lost)
        else:
            assert self.evaluation is not None
            one, integers = self.evaluation, self._counts(kept(self.protocol, state))
        where = context(*self._where, t)
        words = noise_words(self._secret, where, integers.astype("<i8").tobytes())
        noise = DiscreteGaussian(one.share).sample(integers.shape, words)
        desk = self._desk
        others = [v for v in self._roster if v != desk.me]
        pads = pads_of(desk.identity, desk.cards, desk.me, others, where, len(integers), one.q)
        numbers = to_bytes(contribution(one, integers, noise, pads), one.q)
        if not show:
            return Drawn(numbers, sum(lost))
        began = time.perf_counter()
        loss = self._loss(state.theta)
        return Drawn(numbers, sum(lost), loss, time.perf_counter() - began)

    def _coins(self, count: int, threshold: int, t: int, purpose: int) -> BoolArray:
        return coins(noise_words(self._secret, context(*self._where, t, purpose), self._data), count, threshold)

    def _gradient(self, t: int, theta: FloatArray, lost: list[int]) -> IntArray:
        """What is added to the sum of an iteration, in grid steps (d,)."""
        p, (X, y) = self.protocol, self.training
        if p.unit == "record":
            chosen = self._coins(len(y), p.threshold, t, _COINS)
            return whole_sum(self.model, theta, X[chosen], y[chosen], p.clip, p.sum.step, p.distance, lost=lost.append)
        if not len(y) or not self._coins(1, p.threshold, t, _COINS)[0]:
            return np.zeros(p.dimension, dtype=np.int64)
        return party_steps(p, clipped_sum(self.model, theta, X, y, math.inf, lost=lost.append) / len(y))

    def _counts(self, theta: FloatArray) -> IntArray:
        """How many held-out rows the model gets right, or their squared errors, and how many there are, in grid steps (2,)."""
        assert self.evaluation is not None
        X, y = self.held
        if self.model.classes is None:
            with np.errstate(over="ignore", invalid="ignore"):
                right = np.clip((np.asarray(self.model.predict(theta, X), dtype=np.float64) - y) ** 2, 0.0, 1.0)
            right = np.where(np.isnan(right), 1.0, right)
        else:
            right = np.asarray(self.model.correct(theta, X, y), dtype=np.float64)
        values = np.column_stack([right, np.ones(len(right))])
        if self.evaluation.unit == "record":
            return quantised_records(self.evaluation, values)
        return quantised(self.evaluation, values.mean(axis=0) if len(values) else np.zeros(2))

    def _loss(self, theta: FloatArray) -> float | None:
        X, y = (part[:_SHOWN] for part in self.training)
        found = self.model.losses(theta, X, y) if len(y) else np.zeros(0)
        found = found[np.isfinite(found)]
        return float(found.mean()) if len(found) else None


def party_steps(protocol: MaskedDescent, gradient: FloatArray) -> IntArray:
    """A party's gradient in grid steps (d,): clipped as a whole, rounded, and held to half the distance of two in whole numbers.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(3), 5, sigma=2.0, step=0.5, grid=0.25, dimension=2)
    >>> party_steps(p, np.array([3.0, 4.0])).tolist(), party_steps(p, np.array([0.3, 0.0])).tolist()
    ([2, 3], [1, 0])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.linalg.norm(gradient))
    if not math.isfinite(norm):  # longer than doubles go: as good as no direction
        return np.zeros(len(gradient), dtype=np.int64)
    scaled = gradient * (protocol.clip / norm) if norm > protocol.clip else gradient
    steps = quantised(protocol.sum, np.clip(scaled, -protocol.clip, protocol.clip))
    if protocol.dimension > 1:
        limit = square_of(protocol.distance if protocol.replaced else protocol.distance / 2)
        hold(steps, math.isqrt(limit), limit)
    return steps
