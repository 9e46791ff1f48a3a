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
`netdp.families.masked.protocol`, and held to half of that distance in whole numbers too.

What an entry keeps of learning together, and the curve that is computed from it again.

    {"kind": "masked-descent", "share", "distance", "dimension", "sampling", "replaced", "releases", "evaluation"}

`share`, `distance`, `dimension`, `sampling`, `replaced` are those of `netdp.protocols.MaskedDescent`, `releases` the number of
sums that a party adds to, and `evaluation` None or {"share", "distance", "dimension", "apart"} of the sum that counts how
good the model is. Proof: docs/proofs/peers.md#training-on-peers.

**Training and evaluation.** Where a record is protected, a coin of its owner puts it into the training rows or the held-out rows,
never into both ("apart"). Given the coin, one of the two parts of the view has the same law with and without the record. δ(ε) is
jointly convex in the two laws, so it is at most the mean over the coin of the two curves, hence at most the larger one at every
ε. Where a party is protected, it is in both, and they are composed.

**Broken off.** Whoever makes an attempt end early may have looked at all sums before. So the curve of the k sums that were made
does not hold: an observer that waits for a lucky moment among T has T tries (tests/peers/ledger/test_descent_losses.py has one
who gets 4δ out of 16 sums). What was seen is post-processing of all T sums whoever ends it and when, so the whole is what
counts. Only if nothing was sent, nothing was learned: then both worlds look the same, and the entry is taken back.

Flooding: contributions are passed on until everybody holds all of them, and adds.

A grow-only set: in any order, with any repetition, through any loss of links, whoever holds all y of the roster holds
the sum. What a party that has vanished had sent is passed on by the others.

Averaging: contributions go to the neighbours only, then everybody averages until n times the mean is the exact sum.

Everything after the contributions is a function of them, so a party that comes back computes the same states again from
what its neighbours send it once more. If it is stuck, because somebody has vanished, contributions are passed on as in
flooding (`Spread.fall_back`): the answer is the same to the last bit.

A sum under one-time pads between all pairs (`netdp.MaskedSum`): what a study runs unless it says otherwise.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt
from pydantic import SerializerFunctionWrapHandler, model_serializer

from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.families.masked.descent import COIN, MaskedDescent, State, kept
from netdp.families.masked.protocol import (
    MaskedSum,
    averaging_end,
    averaging_row,
    averaging_start,
    averaging_step,
    contribution,
    from_bytes,
    opened,
    quantised,
    quantised_records,
    reduced,
    to_bytes,
    wire_width,
)
from netdp.families.masked.threshold import fair_threshold
from netdp.graphs.families import complete, ring
from netdp.graphs.graph import Graph
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.mechanisms.noisy_sums import Release, releases_curve, sampled_releases_curve
from netdp.models.base import clipped_sum, square_of, whole_sum
from netdp.models.kernels import hold
from netdp.models.linear import Linear, Logistic, Multinomial
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray, rounded_up
from netdp.peers.events import Sentence, Statement
from netdp.peers.kinds import DEVIATIONS, NUMBERS, Kind, Roster, Wish
from netdp.peers.ledger.losses import Loss, SumLoss, check_sum, honest
from netdp.peers.messages import Item, ItemKind, Key, roster_digest
from netdp.peers.noise import DIGITS, least_noise
from netdp.peers.records import Misfit, Number, Strict, Whole
from netdp.peers.recovery.closing import Closing, MaskedNumbers, recovery_sizes
from netdp.peers.spread import Moment, Moves, Spread, SpreadResult
from netdp.peers.streams import Words, context, noise_words, pads_of, rows_digest
from netdp.privacy.curve import Curve
from netdp.privacy.profile import PerCurve, ProfileCurve, composed
from netdp.protocols.calibration import noise_for
from netdp.protocols.coalitions import largest_delta

if TYPE_CHECKING:
    from netdp.peers.desk import Desk
    from netdp.peers.ledger.store import Contribution
    from netdp.peers.study.training import AnyTask, Training

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


KIND = "masked-descent"

_FIELDS = {
    "kind", "share", "distance", "dimension", "sampling", "replaced", "releases", "evaluation",
}  # fmt: skip

_NOTHING = ProfileCurve([0.0], [0.0])


def descent_loss(protocol: MaskedDescent, evaluation: MaskedSum | None) -> dict[str, Any]:
    """What an entry keeps of a whole training, and of the count of how good the model is.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(5), 20, sigma=8.0, step=0.5, unit="record", sampling=0.25, max_records=100)
    >>> loss = descent_loss(p, None)
    >>> loss["releases"], loss["sampling"], loss["evaluation"]
    (20, 0.25, None)
    """
    return {
        "kind": KIND,
        "share": protocol.sum.share,
        "distance": protocol.distance,
        "dimension": protocol.dimension,
        "sampling": protocol.sampling,
        "replaced": protocol.replaced,
        "releases": protocol.iterations,
        "evaluation": None
        if evaluation is None
        else {
            "share": evaluation.share,
            "distance": evaluation.distance,
            "dimension": evaluation.dimension,
            "apart": protocol.unit == "record",
        },
    }


class DescentLoss(Loss):
    """Many sums under pads, in which somebody takes part at times."""

    def check(self, loss: Mapping[str, Any], roster: Sequence[str], me: str) -> None:
        if set(loss) != _FIELDS:
            raise InvalidValue(f"a {KIND} has {', '.join(sorted(_FIELDS))}; got {sorted(loss)}")
        check_sum(loss)
        if type(loss["releases"]) is not int or loss["releases"] < 0:
            raise InvalidValue(f"the releases of a {KIND} are a whole number ≥ 0, got {loss['releases']!r}")
        if (
            type(loss["sampling"]) not in (int, float)
            or not 0 < loss["sampling"] <= 1
            or type(loss["replaced"]) is not bool
        ):
            raise InvalidValue(f"the sampling of a {KIND} is a probability, and replaced true or false; got {loss!r}")
        counted = loss["evaluation"]
        if counted is not None:
            if not isinstance(counted, dict) or set(counted) != {"share", "distance", "dimension", "apart"}:
                raise InvalidValue(
                    f"the evaluation of a {KIND} has share, distance, dimension and apart; got {counted!r}"
                )
            if type(counted["apart"]) is not bool:
                raise InvalidValue(f"whether an evaluation is apart is true or false, got {counted['apart']!r}")
            check_sum(counted)

    def seen(self, loss: Mapping[str, Any], roster: Sequence[str], against: int | str) -> Curve:
        return descent_curve(loss, honest(roster, against))

    def is_covered(self, loss: Mapping[str, Any], by: Mapping[str, Any]) -> bool:
        same = all(loss[name] == by[name] for name in ("share", "distance", "dimension", "sampling", "replaced"))
        return (
            same
            and loss["releases"] <= by["releases"]
            and (loss["evaluation"] is None or loss["evaluation"] == by["evaluation"])
        )

    def broken_off(self, loss: Mapping[str, Any], made: int) -> dict[str, Any] | None:
        """The loss of an attempt that ended after `made` sums, however that moment was chosen; None if it is not less.

        >>> from netdp import graphs
        >>> p = MaskedDescent(graphs.ring(5), 20, sigma=8.0, step=0.5)
        >>> DESCENT.broken_off(descent_loss(p, None), 0)["releases"], DESCENT.broken_off(descent_loss(p, None), 1)
        (0, None)
        """
        return None if made else dict(loss) | {"releases": 0, "evaluation": None}


SUM, DESCENT = SumLoss(shared=True), DescentLoss()
"""How entries of a ledger are read that a masked sum, or a training, has made."""


def sum_loss(protocol: MaskedSum) -> dict[str, Any]:
    """What an entry keeps of a masked sum.

    >>> from netdp import graphs
    >>> sum_loss(MaskedSum(graphs.ring(4), sigma=1.0))
    {'kind': 'masked-sum', 'share': 1048576, 'distance': 1024, 'dimension': 1}
    >>> sum_loss(MaskedSum(graphs.ring(4), sigma=1.0, law="laplace"))
    {'kind': 'masked-sum', 'law': 'laplace', 'rate': [8192, 10273905], 'parts': 3, 'distance': 1024, 'dimension': 1}
    """
    if protocol.mask_graph is not None:
        raise Unsupported(
            "the ledger adds up masked sums with pads between all pairs only: with fewer pads, what k parties learn depends "
            "on which they are; use masks='complete'"
        )
    found: dict[str, Any] = {"kind": "masked-sum"}
    if protocol.law == "laplace":
        rate = protocol.rate
        found |= {"law": protocol.law, "rate": [rate.numerator, rate.denominator], "parts": protocol.parts}
    else:
        found |= {"share": protocol.share}
    found |= {"distance": protocol.distance, "dimension": protocol.dimension}
    if protocol.threshold is not None:
        found |= {"threshold": protocol.threshold, "least": protocol.smallest_roster}
    return found


def stated_loss(parties: int, **settings: Any) -> dict[str, Any]:
    """The same from what a study of so many parties states; neither the modulus nor who talks to whom changes what it costs."""
    return sum_loss(MaskedSum(ring(parties) if parties > 2 else complete(parties), **settings))


def descent_curve(loss: Mapping[str, Any], shares: int) -> ProfileCurve:
    """The curve against a coalition that leaves so many shares of noise.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(5), 20, sigma=8.0, step=0.5, unit="record", sampling=0.25, max_records=100)
    >>> round(float(descent_curve(descent_loss(p, None), 4).epsilon(1e-6)), 2)
    0.28
    """
    return _curve(json.dumps(loss, sort_keys=True), shares)


@lru_cache(maxsize=256)
def _curve(text: str, shares: int) -> ProfileCurve:
    loss = json.loads(text)
    counted, times = loss["evaluation"], loss["releases"]
    sums = (loss["share"], shares, loss["distance"], loss["dimension"])
    training = sampled_releases_curve(*sums, loss["sampling"], times, loss["replaced"]) if times else _NOTHING
    if counted is None:
        return training
    release = Release(counted["share"], shares, counted["distance"], counted["dimension"])
    if not counted["apart"] and loss["sampling"] == 1:
        return releases_curve([Release(*sums)] * times + [release])
    evaluation = releases_curve([release])
    return larger(training, evaluation) if counted["apart"] else composed([(training, 1), (evaluation, 1)])


def larger(one: ProfileCurve, other: ProfileCurve) -> ProfileCurve:
    """A curve that is nowhere below either."""
    points = np.union1d(one.epsilons, other.epsilons)
    formula = partial(largest_delta, (one, other))
    return ProfileCurve(points, np.maximum.accumulate(formula(points)[::-1])[::-1], PerCurve((formula,)))


class Flood(Spread):
    """The sum of a `MaskedSum`, by passing everything on."""

    needs_own = False

    def __init__(self, protocol: MaskedSum, attempt: int, roster: tuple[int, ...], task: AnyTask | None = None) -> None:
        super().__init__(attempt, roster)
        self.passes_on = True
        self.rounds = 0
        self._protocol, self._task, self._digest = protocol, task, roster_digest(roster)

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        found: list[Item] = []
        for u in self.roster:
            item = held.get(Key(ItemKind.CONTRIBUTION, self.attempt, u))
            if item is None or item.body[:32] != self._digest:
                return Moves()
            found.append(item)
        if self.answer is None and self.over is None:
            p = self._protocol
            total = np.zeros(p.dimension, dtype=np.uint64)
            for item in found:
                total += published(p, item)
            self._conclude(reduced(total, p.q))
        return Moves()

    def _conclude(self, total: npt.NDArray[np.uint64]) -> None:
        """End with the answer; or without, if honest parties cannot have come to this sum."""
        found = judged(self._protocol, self._task, self.attempt, self.roster, total)
        if isinstance(found, Statement):
            self.over = found
        else:
            self.answer = found


def published(protocol: MaskedSum, contribution: Item) -> npt.NDArray[np.uint64]:
    """The y in a contribution."""
    return from_bytes(contribution.body[32:], protocol.q, protocol.dimension)


def masked_answer(
    protocol: MaskedSum, attempt: int, roster: tuple[int, ...], total: npt.NDArray[np.uint64]
) -> SpreadResult:
    """The sum of all y, read as what it stands for."""
    steps = opened(total, protocol.q) + len(roster) * protocol.centre_steps
    return SpreadResult(
        attempt, roster, steps.astype(np.float64) * protocol.step, hashlib.sha256(total.tobytes()).digest()
    )


def judged(
    protocol: MaskedSum,
    task: AnyTask | None,
    attempt: int,
    roster: tuple[int, ...],
    total: npt.NDArray[np.uint64],
) -> SpreadResult | Statement:
    """The sum of all y, read as what it stands for; or why the parties cannot have handed it in."""
    times = beyond(protocol, task, len(roster), opened(total, protocol.q))
    if times > 1:
        return Sentence.OUT_OF_REACH(attempt=attempt, times=times, parties=len(roster))
    return masked_answer(protocol, attempt, roster, total)


def beyond(protocol: MaskedSum, task: AnyTask | None, parties: int, steps: npt.NDArray[Any]) -> float:
    """How far outside what so many honest parties can hand in a sum lies, over all that their noise can do; at most 1 if they did.

    steps   the sum from its centre, in grid steps (d,)

    A coordinate of |U| parties lies within |U|·reach, and obeys what the task says of it (`Question.limits`). Noise of standard
    deviation s in a coordinate moves weights·x by at most 40·|weights|·s (`DEVIATIONS`). A lie within that looks like noise.

    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(4), sigma=1.0, grid=1.0, sensitivity=2.0, reach=1.0)
    >>> [beyond(p, None, 4, np.array([k])) for k in (0, 92, -96, 132)]
    [-0.15, 1.0, 1.05, 1.5]
    """
    deviation = math.sqrt(parties * protocol.share_variance)
    found = [float(np.abs(steps).max(initial=0)) - parties * protocol.reach_steps]
    if task is not None:
        x = steps.astype(np.float64) * protocol.step
        if task.is_never_negative:
            found.append(-float(steps.min(initial=0)))
        for limit in task.limits:
            weights = np.array(limit.weights)
            reached, size = float(weights @ x), float(np.linalg.norm(weights)) * protocol.step
            found += [(parties * limit.low - reached) / size, (reached - parties * limit.high) / size]
    far = max(found)
    return far / (DEVIATIONS * deviation) if deviation else math.copysign(math.inf, far) if far else 0.0


class Average(Flood):
    """The sum of a `MaskedSum`, by accelerated averaging with the neighbours in the roster."""

    needs_own = True
    can_fall_back = True

    def __init__(
        self, protocol: MaskedSum, attempt: int, roster: tuple[int, ...], me: int, task: AnyTask | None = None
    ) -> None:
        super().__init__(protocol, attempt, roster, task)
        self.passes_on = False
        self._me = me
        self._weights = protocol.averaging.weights
        self.rounds = len(self._weights)
        places, self._row_weights = averaging_row(protocol.graph, roster.index(me))
        self._row = [
            roster[place] for place in places.tolist()
        ]  # who is averaged, ourselves included, in a fixed order
        self._states: list[FloatArray] = []

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        if self.passes_on:
            return super().advance(held, moment)
        moves = Moves()
        own = held.get(Key(ItemKind.CONTRIBUTION, self.attempt, self._me))
        if own is None or self.answer is not None or self.over is not None:
            return moves
        others = [u for u in self._row if u != self._me]
        if not self._states:
            self._states.append(averaging_start(published(self._protocol, own), self._protocol.q))
            moves.addressed += [(u, own) for u in others]
        while len(self._states) <= len(self._weights):
            t = len(self._states) - 1
            around = [self._states[t] if u == self._me else self._state(held, u, t) for u in self._row]
            if any(state is None for state in around):
                return moves
            a, b = self._weights[t]
            before = self._states[t - 1] if t else self._states[0]
            self._states.append(averaging_step(self._row_weights, np.array(around), a, b, before))
            if t + 1 < len(self._weights):
                item = Item(Key(ItemKind.STATE, self.attempt, self._me, t + 1), self._states[-1].tobytes())
                moves.addressed += [(u, item) for u in others]
        try:
            total = averaging_end(self._states[-1], len(self.roster), self._protocol.q)
        except NetdpError:
            total = None
        if total is None or self._doubtful():  # somebody sent something else than its state
            self.stuck = True
            return moves
        self._conclude(total)
        return moves

    def _doubtful(self) -> bool:
        """Whether n times the mean is further from whole numbers than mixing and rounding can make it: a checksum."""
        sums = len(self.roster) * self._states[-1]
        bound = self._protocol.averaging
        return float(np.abs(sums - np.rint(sums)).max()) > bound.mixing_error + bound.rounding_error

    def _state(self, held: Mapping[Key, Item], u: int, t: int) -> FloatArray | None:
        """What u sent in round t, if it is here."""
        if t == 0:
            item = held.get(Key(ItemKind.CONTRIBUTION, self.attempt, u))
            if item is None or item.body[:32] != self._digest:
                return None
            return averaging_start(published(self._protocol, item), self._protocol.q)
        item = held.get(Key(ItemKind.STATE, self.attempt, u, t))
        if item is None or len(item.body) != 8 * self._protocol.dimension:
            return None
        return np.frombuffer(item.body, dtype="<f8")


class MaskedSettings(Strict):
    """A sum under one-time pads between all pairs (`netdp.MaskedSum`)."""

    kind: Literal["masked-sum"]
    sigma: Number
    grid: Number
    modulus: Whole
    spread: Literal["flood", "average"] = "flood"
    masks: Literal["complete"] = "complete"
    law: Literal["gaussian", "laplace"] = "gaussian"
    threshold: Whole | None = None

    @model_serializer(mode="wrap")
    def _without_what_is_usual(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is not used is left out: a study without it reads, and is hashed, as before there was any of it."""
        fields: dict[str, Any] = handler(self)
        usual = {"law": "gaussian", "threshold": None}
        return {name: value for name, value in fields.items() if name not in usual or value != usual[name]}


class SumNumbers(MaskedNumbers):
    """The numbers of a `MaskedSum` whose members open its sum together."""

    def __init__(self, protocol: MaskedSum, task: AnyTask | None = None) -> None:
        self._protocol, self._task, self.columns, self.modulus = protocol, task, protocol.dimension, protocol.q

    def read(self, body: bytes) -> npt.NDArray[np.uint64]:
        return from_bytes(body[32:], self.modulus, self.columns)

    def answer(self, attempt: int, members: tuple[int, ...], total: npt.NDArray[np.uint64]) -> SpreadResult | Statement:
        return judged(self._protocol, self._task, attempt, members, total)


class MaskedRunning(Kind):
    """Every party publishes once, under pads that cancel in the sum."""

    kind = "masked-sum"
    Settings = MaskedSettings
    sends = frozenset({ItemKind.STATE})
    sends_all_the_same = True
    canaries = "record"
    options = ("spread", "law", "threshold")
    comments: ClassVar = {
        "spread": '"flood" or "average": how everybody gets the sum',
        "masks": "who shares pads",
        "law": "of the noise; every party adds a share of it",
        "threshold": "so many members together open the sum",
    }
    how = (
        "Each party publishes its numbers with noise and under one-time pads that cancel in the sum. What is "
        "published means nothing by itself; all of it together gives the noisy sum, and nothing else."
    )
    tasks = (*NUMBERS, "scaling")
    units = ("party", "record")
    tolerates = True
    depends_on_size_only = True

    def check(self) -> None:
        super().check()
        try:
            protocol = self.protocol()
            if protocol.spread == "average":
                protocol.averaging  # noqa: B018  refuses where it is not exact
            if self.settings.law == "laplace" and self.study.task.kind == "scaling":
                raise Unsupported(
                    "a scaling study adds Gaussian noise, of which the training after it states what it cost"
                )
        except NetdpError as problem:
            raise Misfit(("protocol",), str(problem)) from None

    @property
    def threshold(self) -> int | None:
        found: int | None = self.settings.threshold
        return found

    def protocol(self) -> MaskedSum:
        how, study, task = self.settings, self.study, self.study.task
        return MaskedSum(
            study.graph, sigma=how.sigma, sensitivity=task.sensitivity_under(how.law), dimension=task.dimension, grid=how.grid,
            masks=how.masks, spread=how.spread, modulus=how.modulus, attempts=study.privacy.attempts,
            absent=study.privacy.absent, unit=task.unit, reach=task.reach, law=how.law, threshold=how.threshold,
            honest=self.shares if how.law == "laplace" else None,
        )  # fmt: skip

    @property
    def shares(self) -> int:
        """How many shares of Laplace noise make a whole one: as many honest parties as the study makes sure of."""
        return max(1, self.study.smallest_roster - max(1, self.study.privacy.colluders))

    def protocol_of(self, roster: Roster) -> MaskedSum:
        study = self.study
        graph = study.graph if len(roster) == study.n else study.graph.subgraph(roster)
        if not graph.is_connected:
            # Those outside the roster still pass messages on. Pads and noise, hence the loss, have nothing to do with
            # the talk graph: any connected one stands for it.
            graph = complete(len(roster))
            graph = Graph.from_edges(graph.n, graph.edges(), name="complete", labels=[study.names[u] for u in roster])
        whole = self.protocol()
        absent = 0 if whole.threshold is None else max(0, len(roster) - study.smallest_roster)
        return whole.replace(graph=graph, attempts=1, absent=absent)

    def noise(self, parties: int) -> float:
        protocol = self.protocol()
        return protocol.step * math.sqrt(parties * protocol.share_variance)

    def answer(self, total: Sequence[float] | FloatArray, parties: int) -> dict[str, Any]:
        """With what a training states of the study that its columns were scaled by, where that is what was asked."""
        found, study, how = super().answer(total, parties), self.study, self.settings
        if study.task.kind != "scaling":
            return found
        return found | {
            "scaled": {
                "study": study.hash.hex(), "unit": study.task.unit, "parties": study.n, "sigma": how.sigma, "grid": how.grid,
                "attempts": study.privacy.attempts, "absent": study.privacy.absent,
            }
        }  # fmt: skip

    def beyond(self, total: FloatArray, parties: int) -> float:
        protocol = self.protocol()
        return beyond(protocol, self.study.task, parties, total / protocol.step)

    # ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def loss(self, roster: Roster, me: int) -> dict[str, Any]:
        return sum_loss(self.protocol_of(roster))

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        protocol = self.protocol_of(roster)
        integers = self._integers(protocol, desk)
        if self.threshold is None:
            where, secret = context(self.study.hash, attempt, roster), desk.identity.noise_secret
            others = [v for v in roster if v != desk.me]
            pads = pads_of(desk.identity, desk.cards, desk.me, others, where, len(integers), protocol.q)
        else:  # drawn for this attempt and erased with it: who finds this party's folder later cannot take the noise away
            where, secret = context(self.study.hash, attempt, ()), desk.attempt_secrets(attempt).noise
            pads = desk.masks(attempt, len(integers), protocol.q)
        words = noise_words(secret, where, integers.astype("<i8").tobytes())
        noise = protocol.share_noise.sample(integers.shape, words)
        y = contribution(protocol, integers, noise, pads)
        return roster_digest(roster) + to_bytes(y, protocol.q), b""

    def is_same_data(self, desk: Desk, attempt: int, roster: Roster, held: Contribution) -> bool:
        """Where members open the sum together, nothing but the one sum that they open is ever about any data."""
        return self.threshold is not None or super().is_same_data(desk, attempt, roster, held)

    def _integers(self, protocol: MaskedSum, desk: Desk) -> IntArray:
        if protocol.unit == "record":
            return quantised_records(protocol, desk.rows)
        return quantised(protocol, desk.rows[0])

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        protocol = self.protocol_of(roster)
        if self.threshold is not None:
            fewest, patience = self.study.smallest_roster, self.study.timing.patience
            return Closing(
                desk, attempt, roster, self.threshold, fewest, patience, SumNumbers(protocol, self.study.task)
            )
        if protocol.spread == "average" and desk.me in roster and self._talk(roster):
            try:
                return Average(protocol, attempt, roster, desk.me, self.study.task)
            except Unsupported:  # on what is left of the talk graph it would not be exact: everybody finds the same
                pass
        return Flood(protocol, attempt, roster, self.study.task)

    def _talk(self, roster: Roster) -> bool:
        """Whether the members of the roster are connected among themselves."""
        graph = self.study.graph
        return len(roster) == graph.n or graph.subgraph(list(roster)).is_connected

    def items(self) -> frozenset[ItemKind]:
        more = set() if self.threshold is None else {kind for kind in ItemKind if kind >= ItemKind.KEYS}
        return (super().items() | more) - ({ItemKind.STATE} if self.settings.spread == "flood" else set())

    def settings_for(self, task: AnyTask) -> dict[str, Any]:
        """The study's own modulus, or the least that holds the sum of so many records."""
        given = self.protocol()
        wanted = given.replace(
            sensitivity=task.sensitivity_under(given.law), dimension=task.dimension, unit="record", reach=task.reach,
            modulus=None, spread="average", grid=given.step, threshold=None,
        )  # fmt: skip
        return {"modulus": max(given.q, wanted.q)}

    def longest(self) -> dict[ItemKind, int]:
        more = {} if self.threshold is None else recovery_sizes(self.study.n, self.threshold)
        return (
            super().longest()
            | more
            | {ItemKind.CONTRIBUTION: 32 + wire_width(self.protocol().q) * self.study.task.dimension}
        )

    def is_legible(self, item: Item) -> bool:
        if item.key.kind == ItemKind.CONTRIBUTION:
            try:
                from_bytes(item.body[32:], self.protocol().q, self.study.task.dimension)
            except InvalidValue:
                return False
        return super().is_legible(item)

    def most_rounds(self) -> int:
        # averaging on a smaller roster may take longer than on all together
        return 0 if self.settings.spread == "flood" else 100_000

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        task, spread = wish.task, wish.options.get("spread", "flood")
        law, threshold = wish.options.get("law", "gaussian"), _threshold_for(wish, spread)
        size = task.sensitivity_under(law)
        sigma = rounded_up(noise_for(size, wish.epsilon, wish.delta), DIGITS)
        trial = MaskedSum(
            wish.graph, sigma=sigma, sensitivity=size, dimension=task.dimension, spread=spread,
            unit=task.unit, reach=task.reach, law=law, absent=wish.absent, threshold=threshold,
        )  # fmt: skip
        found = {"kind": cls.kind, "sigma": sigma, "grid": min(trial.step, 1.0), "modulus": trial.q, "spread": spread}
        return found | {"law": law, "threshold": threshold}

    def least(self) -> dict[str, Any]:
        study, terms, protocol = self.study, self.study.privacy, self.protocol()

        def stated(sigma: float) -> dict[str, Any]:
            follows = protocol.replace(sigma=sigma, grid=None, modulus=None)
            follows = follows.replace(grid=min(follows.step, 1.0))
            return dict(self.settings.model_dump(mode="json")) | {
                "sigma": sigma,
                "grid": follows.step,
                "modulus": follows.q,
            }

        def meets(sigma: float) -> bool:
            found = self.with_settings(stated(sigma)).worst_epsilon(terms.colluders, terms.delta)
            return found <= terms.epsilon

        if protocol.law == "laplace":
            guess = protocol.sensitivity * math.sqrt(2) / terms.epsilon * terms.attempts
        else:
            guess = noise_for(protocol.sensitivity, terms.epsilon, terms.delta) * math.sqrt(terms.attempts)
        return stated(least_noise(meets, guess / math.sqrt(study.smallest_roster - terms.colluders)))


MOST_DEALT = 200
"""Among more parties, everybody dealing shares to everybody, a study is planned with attempts unless it states a threshold."""


def _threshold_for(wish: Wish, spread: str) -> int | None:
    """How many members open the sum: as stated (0: none), or as many as is fair, or safe; None where attempts are to do instead."""
    given = wish.options.get("threshold")
    if given is not None:
        return int(given) or None
    if wish.attempts > 1 or spread != "flood" or wish.graph.n > MOST_DEALT:
        return None
    try:
        return fair_threshold(wish.graph.n, wish.colluders, wish.absent).value
    except Unsupported:
        return None
