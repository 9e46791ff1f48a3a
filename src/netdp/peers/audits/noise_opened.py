"""Every noise that was really added, taken out of a recording with everybody's keys and data, and held against its stated law.

No observer can do this: it takes the homes of all parties. Who audits a run of its own has them, and sees each party's noise by
itself, n times as many numbers as are left of a sum. What is sent is linear in what is known, so noise is a difference:

    masked-sum          y_u − pads − k_u                             every party
    masked-descent      the same, k_u the clipped gradients of the rows that the party's coins chose    every party and iteration
    ring-sum            token after a hop − token before − k_u       every hop; the last holds the closing noise
    walk-sum            the same over all steps that the token stayed with a party
    gossip              first state − k_u; later states − what mixing gave     every party and round

All of it is computed here a second time, from the study, the data and the keys. So numbers that are *not* noise (other data,
another sampling rate, other pads) are found as well: they are far too large.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np

from netdp.audit.findings import Check
from netdp.audit.noise_law import fits, gaussian_law
from netdp.audit.noise_reuse import no_reuse
from netdp.models import clipped_sum, whole_sum
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.protocols import Gossip, GraphWalkSum, MaskedDescent, RingSum, WalkSum
from netdp.protocols.gossip import gossip_step, gossip_steps, gossip_weights
from netdp.protocols.masked_descent import COIN
from netdp.protocols.masked_steps import opened
from netdp.protocols.model_steps import begun, stepped
from netdp.protocols.ring import ring_steps
from netdp.protocols.walk_steps import walk_values

from ..identity import Identity
from ..learner import coins, party_steps, rows_digest
from ..messages import Kind
from ..streams import context, noise_words
from .masked_sums import Sum, in_steps, sums_in
from .odds import DOUBT, Squares
from .recorded import Recording

_COINS, _HELD = 1, 2  # as in netdp.peers.learner
_FEWEST, _ROW = 200, 8
_ROWS = 48
"""So many rows of noise are compared with each other."""
_NOT_NOISE = 1e-9
_BEYOND = 7.0


@dataclass(frozen=True, eq=False)
class Noise:
    """What one party added at one place, (d,) grid steps; its variance is that of one discrete Gaussian, or of a sum of some."""

    party: int
    numbers: IntArray
    variance: int
    parts: int = 1
    against: IntArray | None = None
    """What this noise must have nothing to do with: the gradients of the rows that coins left out."""


def noise_tested(recording: Recording) -> list[Check]:
    """Whether the noises of a recording are as large as stated, have the stated law, and come once each."""
    found = list(noises_in(recording))
    if not found:
        return []
    return [_size(found, recording.study.everybody), *_law(found), *_reuse(found), *_left_out(found)]


def _size(found: list[Noise], names: Sequence[str]) -> Check:
    """All of it together, the noises of each party, and those of each size."""
    title, groups = "noise as large as stated", defaultdict(list)
    for one in found:
        for which in ("all parties", names[one.party], f"those of variance {one.variance:,}"):
            groups[which].append((one.numbers, one.variance))
    told = {which: Squares.of(those) for which, those in groups.items()}
    everything = told["all parties"]
    quiet, loud = min(told, key=lambda which: told[which].low), min(told, key=lambda which: told[which].high)
    if told[quiet].low < DOUBT / len(told):
        few = told[quiet]
        return Check(title, False, f"{quiet}: {_ratio(few)}: so little with a probability of {few.low:.1g}")
    if told[loud].high < _NOT_NOISE / len(told):
        few = told[loud]
        return Check(
            title, False,
            f"{loud}: {_ratio(few)}: so much with a probability of {few.high:.1g}. The data or keys beside the recording are not "
            "those of the run, or the parties did something else than the study says",
        )  # fmt: skip
    return Check(title, True, _ratio(everything))


def _ratio(told: Squares) -> str:
    return f"{told.count:,} numbers, {told.ratio:.3f} of the stated deviation"


def _law(found: list[Noise]) -> list[Check]:
    title, groups = "noise has the stated law", defaultdict(list)
    for one in found:
        if one.parts == 1:
            groups[one.variance].append(one.numbers)
    looked = {variance: np.concatenate(rows) for variance, rows in groups.items()}
    looked = {variance: numbers for variance, numbers in looked.items() if numbers.size >= _FEWEST}
    for variance, numbers in looked.items():
        told = fits(numbers, gaussian_law(variance), DOUBT / len(looked), title)
        if not told.ok:
            return [Check(title, False, f"{numbers.size:,} numbers: {told.words}")]
    if not looked:
        return []
    most = max(numbers.size for numbers in looked.values())
    sizes = "one size" if len(looked) == 1 else f"{len(looked)} sizes"
    return [Check(title, True, f"discrete Gaussians of {sizes}, up to {most:,} numbers of each")]


def _reuse(found: list[Noise]) -> list[Check]:
    title, groups = "no noise comes twice", defaultdict(list)
    for one in found:
        if one.parts == 1:
            # of single numbers those of one party, round after round, make a row
            groups[one.variance, one.numbers.size if one.numbers.size >= _ROW else -one.party].append(one.numbers)
    rows: dict[int, list[IntArray]] = defaultdict(list)
    for (variance, which), numbers in groups.items():
        if which > 0:
            rows[variance] += numbers
        elif sum(part.size for part in numbers) >= _ROW:
            rows[variance].append(np.concatenate(numbers))
    looked = 0
    for variance, those in rows.items():
        length = min(row.size for row in those)
        if len(those) < 2:
            continue
        table = np.stack([row[:length] for row in those[:_ROWS]])
        told = no_reuse(table, likeliest=min(0.5, 0.41 / math.sqrt(variance)), doubt=DOUBT / len(rows), name=title)
        if not told.ok:
            return [told]
        looked += len(table)
    return [Check(title, True, f"{looked} rows of noise: nothing in one comes again in another")] if looked else []


def _left_out(found: list[Noise]) -> list[Check]:
    """Rows that took part though their coins left them out show in the noise, however little each of them adds.

    Given the past, ⟨η_t, G_t⟩ has mean 0 and is sub-Gaussian with variance V‖G_t‖²; seven deviations of the sum are beyond chance.
    """
    title, product, square, steps = "only rows that the coins chose", 0.0, 0.0, 0
    for one in found:
        if one.against is not None:
            product += float(one.numbers @ one.against)
            square += one.variance * float(one.against @ one.against)
            steps += 1
    if not steps:
        return []
    far = product / math.sqrt(square) if square else 0.0
    words = f"what was added leans towards the rows that were left out by {far:.1f} deviations, in {steps:,} steps"
    return [Check(title, abs(far) < _BEYOND, words)]


# ── what was added ────────────────────────────────────────────────────────────────────────────────────────────────────


def noises_in(recording: Recording) -> Iterator[Noise]:
    """All noises that can be told apart, kind by kind; nothing where the kind has none of that sort."""
    make = _BY_KIND.get(recording.study.settings.kind)
    return iter(()) if make is None else make(recording)


def everybody(recording: Recording) -> dict[int, Identity]:
    """The keys of all parties."""
    return {u: Identity.load(recording.home(u)) for u in range(recording.study.n)}


def _masked(recording: Recording) -> Iterator[Noise]:
    keys = everybody(recording)
    for s in sums_in(recording.study, recording.items):
        for u in s.published:
            left = opened(s.uncovered(u, {u: keys[u]}), s.one.q) - in_steps(s.one, recording.rows[u])
            yield Noise(u, left, s.one.share)


def _ring(recording: Recording) -> Iterator[Noise]:
    for attempt, roster in recording.rosters.items():
        protocol = cast(RingSum, recording.study.protocol_of(roster))
        n, last = len(roster), len(roster) * protocol.rounds - 1
        tokens = {-1: np.zeros(protocol.dimension, dtype=np.int64)}
        for one in recording.items:
            key = one.item.key
            if key.attempt == attempt and key.kind in (Kind.TOKEN, Kind.TOTAL):
                tokens[key.index if key.kind == Kind.TOKEN else last] = np.frombuffer(one.item.body, dtype="<i8")
        for hop in range(last + 1):
            if hop in tokens and hop - 1 in tokens:
                u = roster[hop % n]
                closing = protocol.closing_variance if hop == last else 0
                variance = int(protocol.hop_variances[hop]) + closing
                left = tokens[hop] - tokens[hop - 1] - ring_steps(protocol, recording.rows[u][0])
                if variance:
                    yield Noise(u, left, variance, 1 + bool(closing))


def _gossip(recording: Recording) -> Iterator[Noise]:
    protocol = cast(Gossip, recording.study.protocol())
    weights = {u: gossip_weights(protocol, u) for u in range(protocol.n)}
    for attempt in recording.rosters:
        states = {
            (one.item.key.author, one.item.key.index): np.frombuffer(one.item.body, dtype="<i8").astype(np.int64)
            for one in recording.items
            if (one.item.key.kind, one.item.key.attempt) == (Kind.STATE, attempt)
        }
        for (u, t), state in states.items():
            if t == 0:
                yield Noise(u, state - gossip_steps(protocol, recording.rows[u][0]), protocol.start_variance)
            elif all((v, t - 1) in states for v in (u, *weights[u])):
                mixed = gossip_step(weights[u], states[u, t - 1], {v: states[v, t - 1] for v in weights[u]})
                yield Noise(u, state - mixed, protocol.fresh_variance)


def _walk(recording: Recording) -> Iterator[Noise]:
    """Between the step at which a token comes to a party and the one at which it leaves, the party adds at every step."""
    for attempt, roster in recording.rosters.items():
        protocol = cast("WalkSum | GraphWalkSum", recording.study.protocol_of(roster))
        width = 8 * protocol.dimension
        came = {k: (0, np.zeros(protocol.dimension, dtype=np.int64)) for k in range(protocol.tokens)}
        moved = {}
        for one in recording.items:
            key = one.item.key
            if key.attempt == attempt and key.kind in (Kind.TOKEN, Kind.TOTAL):
                step = divmod(key.index, protocol.steps) if key.kind == Kind.TOKEN else (key.index, protocol.steps)
                moved[step] = (key.author, np.frombuffer(one.item.body[:width], dtype="<i8"))
        for (k, t), (u, numbers) in sorted(moved.items()):
            since, before = came[k]
            visits, closing = t - since, protocol.closing_variance if t == protocol.steps else 0
            left = numbers - before - visits * walk_values(protocol, recording.rows[u][0])
            yield Noise(u, left, visits * protocol.variance + closing, visits + bool(closing))
            came[k] = (t, numbers)


# ── training ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Trainee:
    """One party of a training, as its keys and rows determine it: what it adds in an iteration, without noise."""

    recording: Recording
    protocol: MaskedDescent
    identity: Identity
    party: int
    attempt: int
    roster: tuple[int, ...]
    _added: dict[int, IntArray] = field(default_factory=dict)

    def _coins(self, count: int, threshold: int, t: int, purpose: int) -> BoolArray:
        where = context(self.recording.study.hash, self.attempt, self.roster, t, purpose)
        rows = self.recording.rows[self.party]
        words = noise_words(self.identity.noise_secret, where, rows_digest(self.identity.noise_secret, rows))
        return coins(words, count, threshold)

    @cached_property
    def model(self) -> Any:
        """What is trained."""
        task: Any = self.recording.study.task
        return task.model(self.recording.study.settings.chunk)

    @cached_property
    def rows(self) -> tuple[FloatArray, FloatArray]:
        """The rows that are trained on."""
        task: Any = self.recording.study.task
        X, y = task.parts(self.recording.rows[self.party])
        held = self._coins(len(y), math.floor(task.held_out * COIN), 0, _HELD)
        return X[~held], y[~held]

    def chosen(self, t: int) -> BoolArray:
        """Which rows take part in an iteration."""
        return self._coins(len(self.rows[1]), self.protocol.threshold, t, _COINS)

    def steps(self, theta: FloatArray, chosen: BoolArray) -> IntArray:
        """The clipped gradients of these rows, added up in grid steps."""
        (X, y), p = self.rows, self.protocol
        return whole_sum(self.model, theta, X[chosen], y[chosen], p.clip, p.sum.step, p.distance)

    def added(self, t: int, theta: FloatArray) -> IntArray:
        """What it adds to the sum of iteration t, which starts at the model θ; of one run, so t says which θ."""
        if t not in self._added:
            if self.protocol.unit == "record":
                self._added[t] = self.steps(theta, self.chosen(t))
            else:
                self._added[t] = self.whole(theta) * int(self._coins(1, self.protocol.threshold, t, _COINS)[0])
        return self._added[t]

    def whole(self, theta: FloatArray) -> IntArray:
        """Where a party is protected: the clipped mean of its gradients, in grid steps."""
        (X, y), p = self.rows, self.protocol
        if not len(y):
            return np.zeros(p.dimension, dtype=np.int64)
        return party_steps(p, clipped_sum(self.model, theta, X, y, math.inf) / len(y))


@lru_cache(maxsize=4)
def trainees(recording: Recording, attempt: int, roster: tuple[int, ...]) -> dict[int, Trainee]:
    """All parties of a training."""
    protocol = cast(MaskedDescent, recording.study.protocol())
    keys = everybody(recording)
    return {u: Trainee(recording, protocol, keys[u], u, attempt, roster) for u in roster}


def replayed(recording: Recording, sums: list[Sum]) -> Iterator[tuple[Sum, FloatArray]]:
    """Every complete iteration from the first on, with the model that it starts from; the evaluation is left out."""
    protocol = cast(MaskedDescent, recording.study.protocol())
    task: Any = recording.study.task
    state = begun(task.model(recording.study.settings.chunk).start())
    for t, s in enumerate((s for s in sums if s.index <= protocol.iterations), 1):
        if s.index != t or not s.is_complete:
            return
        yield s, state.theta
        state = stepped(protocol, state, t, s.total())


def _descent(recording: Recording) -> Iterator[Noise]:
    sums = sums_in(recording.study, recording.items)
    if not sums:
        return
    people = trainees(recording, sums[0].attempt, sums[0].roster)
    for s, theta in replayed(recording, sums):
        for u, one in people.items():
            left = opened(s.uncovered(u, {u: one.identity}), s.one.q) - one.added(s.index, theta)
            others = ~one.chosen(s.index) if one.protocol.unit == "record" else np.zeros(0, dtype=bool)
            yield Noise(u, left, s.one.share, against=one.steps(theta, others) if others.any() else None)


_BY_KIND: dict[str, Callable[[Recording], Iterator[Noise]]] = {
    "masked-sum": _masked,
    "masked-descent": _descent,
    "ring-sum": _ring,
    "walk-sum": _walk,
    "gossip": _gossip,
}
