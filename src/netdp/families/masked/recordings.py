"""The sums under pads in what peers sent: who published what, which noise was added, and whether the pads are what they should be.

Who holds the keys of v computes the pads m_uv; so do these functions, from the identities that they are given, and from no others.
All that is promised of a masked sum rests on its pads (docs/proofs/masked.md#masked-sum); what is looked for:

- **uniform**: every honest author's numbers, as they are and less the known pads, pooled over sums;
- **public**: whether y_u becomes small when pads are taken off that anybody could compute: none at all, or those of a shared secret
  that is zero, or made of the study's hash, its nonce, names or public keys;
- **twice**: whether two published numbers of one author, in two attempts, two iterations or two recordings, differ by something
  small: then the pad in both is the same, and what is left is the difference of two numbers under little noise.

*Small* is what noise explains: known numbers are taken off, and what is left must lie within ten deviations. A check fails only
where uniform numbers would be as small with a probability below 10⁻¹², over all authors and all that was tried; where there are
too few numbers for that, it says so (docs/proofs/audit.md#recordings).
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from netdp.audit.audits import resolution
from netdp.audit.bounds import measure, one_run
from netdp.audit.findings import Check, Finding
from netdp.audit.samples import SampleLaw, laplace_share_law
from netdp.errors import InvalidValue, NetdpError
from netdp.families.masked.attack import as_sampled, ratios
from netdp.families.masked.descent import COIN, MaskedDescent, begun, stepped
from netdp.families.masked.peer import coins, descent_curve, descent_loss, party_steps
from netdp.families.masked.peer_descent import DIGEST
from netdp.families.masked.protocol import (
    MaskedSum,
    averaging_row,
    averaging_start,
    averaging_step,
    from_bytes,
    opened,
    quantised,
    quantised_records,
    reduced,
)
from netdp.models.base import clipped_sum, whole_sum
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.peers.exchange import Items
from netdp.peers.identity import Identity
from netdp.peers.ledger.losses import accounted
from netdp.peers.messages import Item, ItemKind
from netdp.peers.recordings.attacks import finding, local_loss, shifted
from netdp.peers.recordings.canaries import canary_target, coins_of
from netdp.peers.recordings.conformance import named
from netdp.peers.recordings.kinds import Pair, RecordedKind, ended, items_of, said
from netdp.peers.recordings.noise import OpenedNoise, everybody
from netdp.peers.recordings.recording import Recording, Said, View, rosters_of
from netdp.peers.recordings.statistics import DOUBT, FEWEST, Squares, chance_of_small, uneven
from netdp.peers.recovery.closing import opened_secrets, reveals_for, sealed_choice
from netdp.peers.recovery.dealing import Secret, TooFewShares
from netdp.peers.recovery.masks import unmask
from netdp.peers.recovery.opening import Dealings
from netdp.peers.streams import Words as Stream
from netdp.peers.streams import context, noise_words, pad, pads_of, rows_digest
from netdp.peers.study.study import Study
from netdp.privacy.curve import Curve
from netdp.privacy.observers import entry

_COINS, _HELD = 1, 2  # as in netdp.families.masked.peer

_FEWEST_TRIALS = 32
"""Iterations of a training: fewer are no trials."""

_CERTAIN = 10
"""One in so many canaries is guessed alone, the most certain ones, beside all of them."""

_WITH_NUMBERS = 128
"""Of a training so many iterations have everybody's numbers taken off before pads are compared."""

# ── masked sums ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _masked_conversations(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    states = said(recording, attempt, ItemKind.STATE)
    protocol = cast(MaskedSum, recording.study.protocol_of(roster))
    if not states or protocol.spread != "average":
        return f"attempt {attempt}: everything is published once and passed on"
    try:
        weights = protocol.averaging.weights
    except NetdpError as problem:
        problems.append(f"attempt {attempt} cannot be averaged ({problem}), and states were sent")
        return ""
    published = items_of(recording, attempt, ItemKind.CONTRIBUTION)
    if any((u, 0) not in published for u in roster):
        return f"attempt {attempt}: not all contributions were sent, so averages cannot be computed again"
    rows = [averaging_row(protocol.graph, place) for place in range(len(roster))]
    now = [
        averaging_start(from_bytes(published[u, 0].body[32:], protocol.q, protocol.dimension), protocol.q)
        for u in roster
    ]
    before = now
    expected: dict[tuple[int, int], bytes] = {}
    for t, (a, b) in enumerate(weights):
        after = [
            averaging_step(row_weights, np.array([now[v] for v in places.tolist()]), a, b, before[place])
            for place, (places, row_weights) in enumerate(rows)
        ]
        before, now = now, after
        expected |= {(u, t + 1): state.astype("<f8").tobytes() for u, state in zip(roster, now, strict=True)}
    for one in states:
        key = one.item.key
        if not 1 <= key.index < len(weights):
            problems.append(f"{named(recording, one)}: averaging has {len(weights)} rounds")
        elif one.item.body != expected.get((key.author, key.index)):
            problems.append(f"{named(recording, one)} is not what follows from the contributions")
    return (
        f"attempt {attempt}: {len(states):,} averages are what follows from the contributions, in {len(weights)} rounds"
    )


def _descent_conversations(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    most = recording.study.running.most_steps()
    made = items_of(recording, attempt, ItemKind.STEP)
    for u, index in made:
        if not 1 <= index <= most:
            problems.append(f"step {index} of {recording.study.everybody[u]}: the training has {most}")
    if ended(recording, attempt):
        problems += [
            f"step {index} of {recording.study.everybody[u]} is missing"
            for u in roster
            for index in range(1, most + 1)
            if (u, index) not in made
        ]
    return f"attempt {attempt}: {len(made):,} steps of {len(roster)} parties in {most} iterations, evaluation included"


Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Sum:
    """One sum under pads, and what was published in it.

    index       0, or the iteration of a training
    published   y by author, of those that are known
    """

    study: Study
    one: MaskedSum
    attempt: int
    index: int
    roster: tuple[int, ...]
    published: Mapping[int, Words]
    opened: OneAttempt | None = None
    """Of a sum that its members opened together: what they agreed on and revealed."""

    @property
    def members(self) -> tuple[int, ...]:
        """Whose contributions are added up."""
        return self.roster if self.opened is None else self.opened.members

    @property
    def where(self) -> bytes:
        """What its pads and noises belong to."""
        more = (self.index,) if self.index else ()
        return context(self.study.hash, self.attempt, self.roster, *more)

    @property
    def words(self) -> str:
        """Which one it is, for people."""
        return f"iteration {self.index}" if self.index else f"attempt {self.attempt}"

    @property
    def is_complete(self) -> bool:
        """Whether everybody's part is known."""
        if self.one.threshold is not None and self.opened is None:
            return False
        return all(u in self.published for u in self.members)

    def pads(self, identity: Identity, u: int, others: Iterable[int]) -> Words:
        """What u, whose keys these are, adds for the pads that it shares with these."""
        cards = dict(enumerate(self.study.cards))
        return pads_of(identity, cards, u, list(others), self.where, self.one.dimension, self.one.q)

    def uncovered(self, u: int, identities: Mapping[int, Identity]) -> Words:
        """y_u less the pads that u shares with the owners of these identities; with its own, less all of them."""
        others = [v for v in self.roster if v != u]
        y = self.published[u]
        if (
            self.one.threshold is not None
        ):  # pads and masks come from keys of the attempt, which are erased: nobody has them
            return y
        if u in identities:
            return reduced(y - self.pads(identities[u], u, others), self.one.q)
        for v in (v for v in others if v in identities):
            y = y + self.pads(identities[v], v, [u])  # what is added at one end is subtracted at the other
        return reduced(y, self.one.q)

    def total(self) -> IntArray:
        """The opened sum of all that was published, in grid steps; everybody's part must be known."""
        total = np.zeros(self.one.dimension, dtype=np.uint64)
        for u in self.members:
            total += self.published[u]
        if self.opened is not None:
            total = self.opened.unmasked(total, self.one.q)
        return opened(reduced(total, self.one.q), self.one.q)


@dataclass(frozen=True, eq=False)
class OneAttempt:
    """What the members of an attempt agreed on and revealed, as everybody sees it who has heard what they said."""

    members: tuple[int, ...]
    roster: tuple[int, ...]
    b: Mapping[int, int]
    s: Mapping[int, int]
    dealings: Dealings

    @staticmethod
    def of(study: Study, attempt: int, roster: tuple[int, ...], items: Iterable[Said]) -> OneAttempt | None:
        """From what was sent; None where nothing was opened."""
        held = Items()
        for one in items:
            if one.item.key.attempt == attempt:
                held.keep(one.item)
        threshold = study.running.threshold
        assert threshold is not None
        choice = sealed_choice(roster, attempt, threshold, study.smallest_roster, held)
        if not choice:
            return None
        dealings = Dealings(study.hash, attempt, roster, threshold)
        dealings.take(held)
        try:
            found, bad = opened_secrets(dealings, choice, roster, reveals_for(choice, roster, attempt, held))
        except (TooFewShares, KeyError):
            return None
        return None if bad else OneAttempt(choice.members, roster, found[Secret.MASK], found[Secret.PADS], dealings)

    def unmasked(self, total: Words, modulus: int) -> Words:
        """The sum of the members' numbers with their noise, from the sum of what they published."""
        return unmask(
            total, self.members, self.roster, self.b, self.s, self.dealings.by, self.dealings.context, modulus
        )


def sums_in(study: Study, items: Iterable[Said]) -> list[Sum]:
    """All sums under pads that these items are of, in order; empty for other protocols."""
    said = list(items)
    rosters, found = rosters_of(said), []
    if study.settings.kind == "masked-sum":
        for attempt, roster in rosters.items():
            one = cast(MaskedSum, study.protocol_of(roster))
            opened = None if one.threshold is None else OneAttempt.of(study, attempt, roster, said)
            published = _published(said, ItemKind.CONTRIBUTION, attempt, 0, 32, one)
            found.append(Sum(study, one, attempt, 0, roster, published, opened))
    elif study.settings.kind == "masked-descent":
        protocol = cast(MaskedDescent, study.protocol())
        steps: dict[tuple[int, int], list[Said]] = {}
        for each in said:
            if each.item.key.kind == ItemKind.STEP:
                steps.setdefault((each.item.key.attempt, each.item.key.index), []).append(each)
        for (attempt, index), those in sorted(steps.items()):
            counted = study.running.evaluation  # type: ignore[attr-defined]
            one = protocol.sum if index <= protocol.iterations else counted
            if one is None or attempt not in rosters:
                continue
            published = _published(those, ItemKind.STEP, attempt, index, DIGEST, one)
            found.append(Sum(study, one, attempt, index, rosters[attempt], published))
    return found


def _published(
    said: Iterable[Said], kind: ItemKind, attempt: int, index: int, head: int, one: MaskedSum
) -> dict[int, Words]:
    found: dict[int, Words] = {}
    for each in said:
        item: Item = each.item
        if tuple(item.key)[:2] == (kind, attempt) and item.key.index == index and item.key.author not in found:
            found[item.key.author] = from_bytes(item.body[head:], one.q, one.dimension)
    return found


def in_steps(one: MaskedSum, rows: FloatArray) -> IntArray:
    """What a party adds to a sum, in grid steps, from its rows: computed here a second time."""
    return quantised_records(one, rows) if one.unit == "record" else quantised(one, rows[0])


def _masked_noise_opened(recording: Recording) -> Iterator[OpenedNoise]:
    for s in sums_in(recording.study, recording.items):
        if s.one.threshold is not None:
            if s.is_complete:
                yield _noise_of_all(s, recording)
            continue
        keys = everybody(recording)
        for u in s.published:
            left = opened(s.uncovered(u, {u: keys[u]}), s.one.q) - in_steps(s.one, recording.rows[u])
            if s.one.law == "laplace":
                if (law := _share_law(s.one.rate, s.one.parts)) is not None:
                    yield OpenedNoise(u, left, math.ceil(s.one.share_variance), law=law)
            else:
                yield OpenedNoise(u, left, s.one.share)


def _noise_of_all(s: Sum, recording: Recording) -> OpenedNoise:
    """All noise in a sum that its members opened: what each of them added came from keys that are erased."""
    members = s.members
    left = s.total() - sum((in_steps(s.one, recording.rows[u]) for u in members), np.zeros(s.one.dimension, np.int64))
    variance = math.ceil(len(members) * s.one.share_variance)
    law = None
    if s.one.law == "laplace":
        law = laplace_share_law(s.one.rate, Fraction(s.one.parts, len(members)))
    return OpenedNoise(members[0], left, variance, len(members), law=law)


@lru_cache(maxsize=16)
def _share_law(rate: Fraction, parts: int) -> SampleLaw | None:
    return laplace_share_law(rate, parts)


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


def _descent_noise_opened(recording: Recording) -> Iterator[OpenedNoise]:
    sums = sums_in(recording.study, recording.items)
    if not sums:
        return
    people = trainees(recording, sums[0].attempt, sums[0].roster)
    for s, theta in replayed(recording, sums):
        for u, one in people.items():
            left = opened(s.uncovered(u, {u: one.identity}), s.one.q) - one.added(s.index, theta)
            others = ~one.chosen(s.index) if one.protocol.unit == "record" else np.zeros(0, dtype=bool)
            yield OpenedNoise(u, left, s.one.share, against=one.steps(theta, others) if others.any() else None)


# ── sums under pads ───────────────────────────────────────────────────────────────────────────────────────────────────


def opened_sum(view: View) -> tuple[Sum, IntArray] | None:
    """The last sum that the coalition can open, in grid steps: from what was published, or from the answer in its ledger."""
    for s in reversed(sums_in(view.study, view.items)):
        if s.is_complete:
            return s, s.total()
        for answer in view.answers.values():  # averaged: not everybody's y came here, but the sum did
            if answer.get("ok") and answer["attempt"] == s.attempt:
                total = np.frombuffer(base64.b64decode(answer["resume"]["total"]), dtype="<f8")
                return s, np.rint(total / s.one.step).astype(np.int64)
    return None


def own_noise(s: Sum, view: View, rows: Mapping[int, FloatArray]) -> dict[int, IntArray]:
    """The noise of every observer, from its own contribution, its own keys and its own numbers; of erased keys nothing is known."""
    if s.one.threshold is not None:
        return {}
    mine = (u for u in view.observers if u in s.published)
    return {u: opened(s.uncovered(u, view.identities), s.one.q) - in_steps(s.one, rows[u]) for u in mine}


def attack_sum(
    recording: Recording, view: View, target: int, delta: float, doubt: float, coins: BoolArray | None = None
) -> tuple[list[Finding], list[Check]]:
    """What the sum shows; `coins`: which canaries the target holds, if that was left to fair coins."""
    found = opened_sum(view)
    if found is None or target not in found[0].members:
        return [], []
    s, total = found
    rows, study = recording.rows, recording.study
    inside = tuple(s.roster.index(u) for u in view.observers if u in s.roster)
    if not inside:
        return [], []
    loss = accounted(study.protocol_of(s.roster), inside)
    curve, place = entry(loss.curve, s.roster.index(target)), s.roster.index(target)
    noises = own_noise(s, view, rows)
    honest = len(s.members) - len(noises)
    left = total - sum((in_steps(s.one, rows[u]) for u in s.members if u != target), np.zeros_like(total))
    left = left - sum(noises.values(), np.zeros_like(total))
    k = in_steps(s.one, rows[target])
    looks = 1 if coins is None else 3
    if (
        s.one.law == "laplace"
    ):  # how much noise there was proves little of noise with heavy tails: only coins are guessed
        if coins is None:
            return [], []
        made: list[Finding] = []
        scores = left.astype(np.float64) * s.one.step
        return made, _canaries(study, view, target, curve, loss.claim, scores, coins, delta, doubt / looks, made)
    spread = Squares.of([(left - k, honest * s.one.share)])
    deviation = spread.at_most(doubt / looks) * math.sqrt(honest * s.one.share)
    mu = s.one.sensitivity / s.one.step / deviation
    local = local_loss(study.protocol_of(s.roster), place, delta)
    made = [
        finding(
            study, "the sum", view.observers, target, curve, loss.claim, shifted(mu, spread.count, delta, doubt / looks),
            f"the noise that is left of {spread.count:,} coordinates of the sum, less all that the coalition knows", local,
        )
    ]  # fmt: skip
    if coins is None:
        return made, []
    scores = left.astype(np.float64) * s.one.step
    return made, _canaries(study, view, target, curve, loss.claim, scores, coins, delta, doubt / looks, made)


def _canaries(
    study: Study, view: View, target: int, curve: Curve, claim: Any, scores: FloatArray, coins: BoolArray, delta: float,
    doubt: float, made: list[Finding],
) -> list[Check]:  # fmt: skip
    """Guess every coin from its own coordinate."""
    out, within = scores[~coins], scores[coins]
    each = min(len(out), len(within))
    if each >= 16:
        told = measure(out[:each], within[:each], delta, 1 - doubt)
        words = f"one record in each of {len(coins):,} cells, there or not by a coin, guessed from its own coordinate"
        row = finding(study, "canaries", view.observers, target, curve, claim, told, words)
        made.append(replace(row, resolution=resolution(each, delta, doubt)))
    sure = np.argsort(-np.abs(scores - 0.5), kind="stable")[: max(1, len(coins) // _CERTAIN)]
    lower, said = 0.0, []
    # a claim is a curve, and may be held against at any δ; m·δ is in doubt here, so δ must be small beside the doubt
    least = min(delta, doubt / (40 * len(coins)))
    for which in (np.arange(len(coins)), sure):
        right = int(((scores[which] > 0.5) == coins[which]).sum())
        lower = max(lower, one_run(right, len(which), len(coins), least, 1 - doubt / 2))
        said.append(f"{right:,} of {len(which):,}")
    claimed = float(curve.epsilon(least))
    words = (
        f"{' and, of the most certain, '.join(said)} coins guessed right in one run: ε ≥ {lower:.3f} at δ = {least:.1g}, claimed "
        f"{claimed:.3f}"
    )
    return [Check("coins of one run", lower <= claimed, words)]


# ── training ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def attack_training(recording: Recording, view: View, target: int, delta: float, doubt: float) -> Finding | None:
    """Whether the target's most telling record (party: all its data) is there, asked in every iteration; None if they are few."""
    study, protocol = recording.study, cast(MaskedDescent, recording.study.protocol())
    sums = sums_in(study, view.items)
    if len(sums) < _FEWEST_TRIALS:
        return None
    people = trainees(recording, sums[0].attempt, sums[0].roster)
    record = protocol.unit == "record"
    chosen = _most_telling(people[target]) if record else -1
    if record and chosen < 0:
        return None
    honest = study.n - len(view.observers)
    scores: dict[bool, list[float]] = {True: [], False: []}
    for s, theta in replayed(recording, sums):
        left, t = s.total(), s.index
        for u, one in people.items():
            added = one.added(t, theta)
            if u != target:
                left = left - added
            if u in view.identities:
                left = left - (opened(s.uncovered(u, view.identities), s.one.q) - added)
        one = people[target]
        if record:
            coins, alone = one.chosen(t), np.zeros(len(one.rows[1]), dtype=bool)
            alone[chosen] = True
            left, k = left - one.steps(theta, coins & ~alone), one.steps(theta, alone)
            there, other = k * int(coins[chosen]), None
        else:
            there, k = one.added(t, theta), one.whole(theta)
            other = -k
        within = t % 2 == 1
        if not within:
            left = left - there if other is None else left - 2 * there  # as if the data had been the others
        scores[within].append(float(ratios(left, k, honest * s.one.share, protocol.sampling, other)))
    each = min(map(len, scores.values()))
    if each < _FEWEST_TRIALS // 2:
        return None
    told = measure(scores[False][:each], scores[True][:each], delta, 1 - doubt)
    loss = descent_loss(protocol, None) | {"releases": 1}
    what = "its most telling record" if record else "its data"
    found = finding(
        study, "one iteration", view.observers, target, descent_curve(loss, honest), study.promise(len(view.observers)).claim,
        told, f"membership inference in each of {2 * each:,} iterations: whether {what} took part in it",
    )  # fmt: skip
    reading = as_sampled(told, protocol.sampling, 1, replaced=not record)
    return replace(found, reading=reading, resolution=resolution(each, delta, doubt))


def _most_telling(one: Any) -> int:
    """Of the target's rows the one with the longest gradient at the public start; −1 if it has none."""
    start, count = one.model.start(), len(one.rows[1])
    lengths = [float(np.linalg.norm(one.steps(start, np.arange(count) == row))) for row in range(count)]
    return int(np.argmax(lengths)) if lengths else -1


CERTAIN = 1e-12
"""Uniform numbers look small with no larger probability than this where a check says that they are no uniform numbers."""

_DEVIATIONS = 10.0

_SUMS, _GUESSED = 64, 4
"""Of a training so many iterations are compared with each other, and so many are tried without pads that are guessed."""

_NUMBERS = 1 << 16
"""So many numbers of an author are enough."""


@dataclass(frozen=True, eq=False)
class PublishedSum:
    """One sum as a coalition sees it: with the keys it holds, and everybody's numbers (None: not known)."""

    sum: Sum
    identities: Mapping[int, Identity]
    numbers: Mapping[int, IntArray] | None = None
    _uncovered: dict[int, Words] = field(default_factory=dict)

    @property
    def honest(self) -> list[int]:
        """Authors outside of the coalition whose numbers are here."""
        return [u for u in self.sum.roster if u not in self.identities and u in self.sum.published]

    @property
    def is_covered(self) -> bool:
        """Whether two or more are outside of the coalition: else there is no pad that it does not know."""
        return sum(u not in self.identities for u in self.sum.roster) > 1

    def uncovered(self, u: int) -> Words:
        """What u published, less the pads that the coalition knows."""
        if u not in self._uncovered:
            self._uncovered[u] = self.sum.uncovered(u, self.identities)
        return self._uncovered[u]

    def left(self, u: int, known: bool) -> Words:
        """What u published, less its own numbers, and if wanted less the pads that the coalition knows."""
        return self.less(self.uncovered(u) if known else self.sum.published[u], u)

    def less(self, y: Words, u: int) -> Words:
        """Less u's own numbers, where they are known."""
        if self.numbers is None or u not in self.numbers:
            return y
        return reduced(y - self.numbers[u].astype(np.uint64), self.sum.one.q)


def pads_tested(seen: Sequence[PublishedSum], name: Callable[[Sum, int], str]) -> list[Check]:
    """The three checks, over all sums that were seen; `name` says what an author is called."""
    covered = [one for one in seen if one.is_covered]
    if not covered:
        alone = "at most one party is outside of the coalition: all pads are known to it, and its noise is all there is"
        return [Check("published numbers are uniform", True, alone)]
    return [_uniform(covered, name), _secret(covered), _fresh(covered, name)]


# ── uniform ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _uniform(seen: Sequence[PublishedSum], name: Callable[[Sum, int], str]) -> Check:
    title = "published numbers are uniform"
    pools: dict[tuple[int, str, str], list[Words]] = defaultdict(list)
    sizes: dict[tuple[int, str, str], int] = defaultdict(int)
    for one in seen:
        # all of them together with their sum are not independent, all but one are
        for place, u in enumerate(one.honest):
            who = name(one.sum, u)
            for how, y in (
                ("", one.sum.published[u]),
                (" less known pads", one.uncovered(u) if one.identities else None),
            ):
                if y is None:
                    continue
                for pool in (who, *(["all but one"] if place else [])):
                    key = (one.sum.one.q, pool, how)
                    if sizes[key] < _NUMBERS:
                        pools[key].append(y)
                        sizes[key] += len(y)
    enough = {key: np.concatenate(parts)[:_NUMBERS] for key, parts in pools.items() if sizes[key] >= FEWEST}
    if not enough:
        return Check(title, True, f"too few numbers to tell: {max(sizes.values(), default=0)}, and {FEWEST} are needed")
    for (q, who, how), numbers in enough.items():
        if (problem := uneven(numbers, q, DOUBT / len(enough))) is not None:
            return Check(
                title, False, f"{who}{how}: {problem}; they would be even under pads modulo 2^{q.bit_length() - 1}"
            )
    most = max(len(numbers) for numbers in enough.values())
    return Check(
        title,
        True,
        f"bits and remainders of up to {most:,} numbers, in {len(enough)} pools, as even as chance makes them",
    )


# ── small ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _doubt_of_small(small: int, authors: int, bound: float, modulus: int, numbers: int, tries: int) -> float:
    """log of the chance that, of so many authors' uniform numbers, some or others of `small` authors are, in any of the tries.

    The numbers of all honest authors have a small sum whatever happens, so one author less counts than there are.
    """
    counted = min(small, authors - 1)
    ways = math.log(math.comb(authors, small)) + math.log(tries)
    return ways + chance_of_small(bound, modulus, counted * numbers)


# ── public ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _reach(*sums: MaskedSum) -> float:
    """How far a share of noise reaches, or a difference of two, in steps."""
    if any(one.law == "laplace" for one in sums):
        return float(sum(one.furthest_noise(1) for one in sums))
    return _DEVIATIONS * math.sqrt(sum(one.share for one in sums))


def _secret(seen: Sequence[PublishedSum]) -> Check:
    title, certain = "pads are secret", math.log(CERTAIN)
    looked = [one for one in _few(seen) if len(one.honest) > 1]
    told = tried = 0
    for one in looked:
        s, honest = one.sum, one.honest
        bound = _reach(s.one) + (0 if one.numbers is not None else s.one.reach_steps)
        guesses = list(_guesses(s))

        def doubt(
            small: int, s: Sum = s, bound: float = bound, honest: int = len(honest), ways: int = len(guesses)
        ) -> float:
            return _doubt_of_small(small, honest, bound, s.one.q, s.one.dimension, ways * len(looked))

        told += doubt(len(honest)) < certain
        for words, pads in guesses:
            tried += 1
            left = [one.less(reduced(s.published[u] - pads(u), s.one.q), u) for u in honest]
            small = sum(bool((np.abs(opened(y, s.one.q)) <= bound).all()) for y in left)
            if small and doubt(small) < certain:
                who = "every author" if small == len(honest) else f"{small} of {len(honest)} authors"
                return Check(title, False, f"{s.words}: without {words} the numbers of {who} are open to anybody")
    if not told:
        return Check(title, True, "too few numbers to tell")
    return Check(
        title, True, f"{tried:,} guesses at pads that anybody could compute, and no number is small without them"
    )


def _few(seen: Sequence[PublishedSum]) -> list[PublishedSum]:
    """Some sums of every study: what makes one open makes all open."""
    found: dict[bytes, list[PublishedSum]] = defaultdict(list)
    for one in seen:
        found[one.sum.study.hash].append(one)
    return [one for those in found.values() for one in those[:_GUESSED]]


def _guesses(s: Sum) -> Iterator[tuple[str, Callable[[int], Words]]]:
    """Pads that need no key: in words, and what each author would have added."""
    one, study = s.one, s.study
    nothing = np.zeros(one.dimension, dtype=np.uint64)
    yield "any pad", lambda u: nothing

    def hashed(*parts: bytes) -> bytes:
        return hashlib.sha256(b"".join(parts)).digest()

    def card(u: int, key: str) -> bytes:
        return bytes(getattr(study.cards[u], key))

    names = [name.encode() for name in study.everybody]
    nonce = bytes.fromhex(study.nonce)
    secrets: list[tuple[str, Callable[[int, int], bytes]]] = [
        ("an all-zero secret", lambda u, v: bytes(32)),
        ("a secret of all ones", lambda u, v: b"\xff" * 32),
        ("the study's hash", lambda u, v: study.hash),
        ("a hash of the study's hash", lambda u, v: hashed(study.hash)),
        ("the study's nonce", lambda u, v: nonce.ljust(32, b"\0")),
        ("a hash of the study's nonce", lambda u, v: hashed(nonce)),
        ("a hash of both names", lambda u, v: hashed(names[u], names[v])),
        *(
            (f"{words} {key} key", secret)
            for key in ("agreement", "signing")
            for words, secret in (
                ("the first one's", partial(lambda key, u, v: card(u, key), key)),
                ("the second one's", partial(lambda key, u, v: card(v, key), key)),
                ("a hash of each one's", partial(lambda key, u, v: hashed(card(u, key), card(v, key)), key)),
            )
        ),
    ]
    for words, secret in secrets:
        for how, made in (("derived as pads are", _derived), ("as it is", _plain)):
            yield f"pads from {words}, {how}", partial(_guessed, s, secret, made)


def _guessed(
    s: Sum, secret: Callable[[int, int], bytes], made: Callable[[Sum, bytes, int, int], Words], u: int
) -> Words:
    total = np.zeros(s.one.dimension, dtype=np.uint64)
    for v in s.roster:
        if v != u:
            words = made(s, secret(min(u, v), max(u, v)), min(u, v), max(u, v))
            total = total + words if v > u else total - words
    return total


def _derived(s: Sum, secret: bytes, first: int, second: int) -> Words:
    where = s.where
    pair = len(where).to_bytes(8, "big") + where + first.to_bytes(8, "big") + second.to_bytes(8, "big")
    return pad(secret, pair, s.one.dimension, s.one.q)


def _plain(s: Sum, secret: bytes, first: int, second: int) -> Words:
    return reduced(Stream(secret)(s.one.dimension), s.one.q)


# ── twice ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fresh(seen: Sequence[PublishedSum], name: Callable[[Sum, int], str]) -> Check:
    """Two sums, and the authors that published in both; they are known by their keys, so that studies can be compared."""
    title, certain = "no pad serves twice", math.log(CERTAIN)
    pairs = [(a, b, common) for a, b in _pairs(seen) if (common := _common(a, b))]
    if not pairs:
        return Check(title, True, "nobody published twice in what was recorded")
    told = 0
    for a, b, common in pairs:
        p, r = a.sum.one, b.sum.one
        q, d = min(p.q, r.q), min(p.dimension, r.dimension)
        bound = _reach(p, r)
        if a.numbers is None or b.numbers is None:
            bound += p.reach_steps + r.reach_steps
        authors = max(len(common), 2)  # of a single one nothing else is known to be small
        told += _doubt_of_small(len(common), authors, bound, q, d, 2 * len(pairs)) < certain
        for known in (False, True):
            left = [reduced(a.left(u, known)[:d] - b.left(v, known)[:d], q) for u, v in common]
            small = [bool((np.abs(opened(y, q)) <= bound).all()) for y in left]
            if any(small) and _doubt_of_small(sum(small), authors, bound, q, d, 2 * len(pairs)) < certain:
                who = ", ".join(name(a.sum, u) for (u, _), one in zip(common, small, strict=True) if one)
                return Check(
                    title, False, f"what {who} published in {_in(a, b)} and in {_in(b, a)} differs by noise alone"
                )
    if not told:
        return Check(title, True, "too few numbers to tell")
    return Check(
        title, True, f"{told:,} pairs of sums: what one author published in both differs as uniform numbers do"
    )


def _pairs(seen: Sequence[PublishedSum]) -> list[tuple[PublishedSum, PublishedSum]]:
    """All pairs of a few, neighbours of many."""
    return list(itertools.combinations(seen[:_SUMS], 2)) + list(itertools.pairwise(seen[_SUMS - 1 :]))


def _common(a: PublishedSum, b: PublishedSum) -> list[tuple[int, int]]:
    """Honest authors of both sums: their numbers in the one study and in the other."""
    keys = {b.sum.study.card(v).agreement: v for v in b.honest}
    named = ((u, keys.get(a.sum.study.card(u).agreement)) for u in a.honest)
    return [(u, v) for u, v in named if v is not None]


def _in(one: PublishedSum, other: PublishedSum) -> str:
    study = one.sum.study
    return one.sum.words if study.hash == other.sum.study.hash else f"{study.name!r} ({study.hash.hex()[:8]}…)"


# ── what an audit asks ────────────────────────────────────────────────────────────────────────────────────────────────


class _MaskedRecording(RecordedKind):
    """Sums under pads: all coalitions of one size learn the same, and pads are compared over all recordings."""

    is_attacked: ClassVar[bool] = True

    def pairs(self, observers: tuple[int, ...] | None, target: int | None, delta: float) -> list[Pair]:
        """Those who were missing at times see whether pads serve twice."""
        recording, study = self.recording, self.study
        target = canary_target(recording) if target is None else target
        roster = recording.rosters[max(recording.rosters)]
        if observers is None:
            missing = [u for one in recording.rosters.values() for u in range(study.n) if u not in one]
            inside = next(u for u in reversed(roster) if u != target)  # one of them must hold the sum
            free = [u for u in dict.fromkeys([*missing, *reversed(roster)]) if u not in (target, inside)]
            observers = tuple(sorted({inside, *free[: max(study.privacy.colluders - 1, 0)]}))
        if target is None:
            target = next((u for u in roster if u not in observers), None)
            if target is None:
                raise InvalidValue("all who took part are observers; leave one out, to be looked at")
        return [("the sum", observers, target)]

    @staticmethod
    def compared(published: Sequence[PublishedSum]) -> list[Check]:
        return pads_tested(published, lambda s, u: s.study.everybody[u])


class SumRecording(_MaskedRecording):
    """One sum in every attempt."""

    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        return _masked_conversations(self.recording, attempt, roster, problems)

    def noises(self) -> Iterator[OpenedNoise]:
        return _masked_noise_opened(self.recording)

    def attacks(
        self, view: View, target: int, name: str, delta: float, doubt: float
    ) -> tuple[list[Finding], list[Check]]:
        return attack_sum(self.recording, view, target, delta, doubt, coins_of(self.recording, target))

    @property
    def why_not(self) -> str:
        return (
            f"{self.study.name}: the attempt did not come to its end, so there is nothing to attack but what was sent"
        )

    def published(self, view: View) -> list[PublishedSum]:
        """With everybody's numbers: what is left under pads is noise."""
        rows = self.recording.rows
        return [
            PublishedSum(s, view.identities, {u: in_steps(s.one, rows[u]) for u in s.roster})
            for s in sums_in(self.study, view.items)
        ]


class DescentRecording(_MaskedRecording):
    """One sum in every iteration."""

    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        return _descent_conversations(self.recording, attempt, roster, problems)

    def noises(self) -> Iterator[OpenedNoise]:
        return _descent_noise_opened(self.recording)

    def attacks(
        self, view: View, target: int, name: str, delta: float, doubt: float
    ) -> tuple[list[Finding], list[Check]]:
        made = attack_training(self.recording, view, target, delta, doubt)
        return ([] if made is None else [made]), []

    @property
    def why_not(self) -> str:
        return f"{self.study.name}: too few iterations were recorded to be trials"

    def published(self, view: View) -> list[PublishedSum]:
        sums = sums_in(self.study, view.items)
        numbers: dict[int, dict[int, IntArray]] = {}
        if sums:
            people = trainees(self.recording, sums[0].attempt, sums[0].roster)
            for s, theta in replayed(self.recording, sums[:_WITH_NUMBERS]):
                numbers[s.index] = {u: one.added(s.index, theta) for u, one in people.items()}
        return [PublishedSum(s, view.identities, numbers.get(s.index)) for s in sums]
