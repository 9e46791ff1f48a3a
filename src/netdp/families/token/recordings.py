"""What was recorded of tokens: whether every hop and hand-over is where it should be, which noise each added, and the attack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np

from netdp.audit.samples import SampleLaw, laplace_law, laplace_share_law
from netdp.families.token.ring import RingHistogram, RingSum, ring_steps
from netdp.families.token.simulate import TokenRecord, period_of
from netdp.families.token.steps import is_heap, walk_values
from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkSum
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.peers.descents import OwnSteps
from netdp.peers.messages import ItemKind
from netdp.peers.recordings.attacks import LinearRecording, numbers_of
from netdp.peers.recordings.conformance import named
from netdp.peers.recordings.kinds import RecordedKind, items_of, said
from netdp.peers.recordings.noise import OpenedNoise, everybody
from netdp.peers.recordings.recording import Recording, View


def _ring_conversations(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    protocol = cast("RingSum | RingHistogram", recording.study.protocol_of(roster))
    n, hops = len(roster), len(roster) * protocol.rounds
    seen: set[int] = set()
    for one in said(recording, attempt, ItemKind.TOKEN):
        hop, way = one.item.key.index, (one.sender, one.to)
        seen.add(hop)
        if hop >= hops - 1:
            problems.append(f"{named(recording, one)}: after {protocol.rounds} rounds of {n} the token is released")
        elif way != (roster[hop % n], roster[(hop + 1) % n]):
            problems.append(f"{named(recording, one)} went to {recording.study.everybody[one.to]}, out of order")
        if isinstance(protocol, RingHistogram) and hop < hops - 1:
            elements = hop + 1 + protocol.blanket
            if not is_heap(protocol, np.frombuffer(one.item.body, dtype="<i8"), elements):
                problems.append(f"{named(recording, one)} does not hold the {elements} answers that it should")
    totals = items_of(recording, attempt, ItemKind.TOTAL)
    problems += [
        f"{recording.study.everybody[u]} released a total, which only {recording.study.everybody[roster[-1]]} does"
        for u, index in totals
        if (u, index) != (roster[-1], 0)
    ]
    if isinstance(protocol, RingHistogram) and (roster[-1], 0) in totals:
        elements = hops + protocol.blanket + protocol.closing_blanket
        if not is_heap(protocol, np.frombuffer(totals[roster[-1], 0].body, dtype="<i8"), elements):
            problems.append(f"what was released does not hold the {elements} answers that it should")
    if totals and (missing := sorted(set(range(hops - 1)) - seen)):
        problems.append(f"the token was released in attempt {attempt}, and hop {missing[0]} is nowhere")
    return f"attempt {attempt}: {len(seen):,} of {hops - 1:,} hops, in order"


def _walk_conversations(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    study, how = recording.study, recording.study.settings
    names = study.everybody
    offered = {(one.sender, one.to, one.item.key.index) for one in said(recording, attempt, ItemKind.OFFER)}
    accepted = {(one.to, one.sender, one.item.key.index) for one in said(recording, attempt, ItemKind.ACCEPT)}
    problems += [
        f"{names[v]} accepted token {index} from {names[u]}, who had not offered it"
        for u, v, index in accepted - offered
    ]
    moves: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    for one in said(recording, attempt, ItemKind.TOKEN):
        k, t = divmod(one.item.key.index, how.steps)
        if k >= how.tokens or t == 0:
            problems.append(f"{named(recording, one)}: there are {how.tokens} tokens of {how.steps} steps")
            continue
        if t in moves[k] and moves[k][t] != (one.sender, one.to):
            problems.append(f"{named(recording, one)} was handed on twice at this step")
        if (one.sender, one.to, one.item.key.index) not in accepted:
            problems.append(f"{named(recording, one)} went to {names[one.to]}, who had not accepted it")
        moves[k][t] = (one.sender, one.to)
    released = {index: u for u, index in items_of(recording, attempt, ItemKind.TOTAL)}
    if len(items_of(recording, attempt, ItemKind.TOTAL)) > len(released):
        problems.append(f"a token of attempt {attempt} was released by two parties")
    for k, steps in moves.items():
        holder: int | None = None
        for t in sorted(steps):
            sender, to = steps[t]
            if holder is not None and sender != holder:
                problems.append(f"token {k} was at {names[holder]} and went on from {names[sender]} at step {t}")
            holder = to
        if k in released and holder is not None and released[k] != holder:
            problems.append(f"token {k} was at {names[holder]} and was released by {names[released[k]]}")
    number = sum(map(len, moves.values()))
    return f"attempt {attempt}: {how.tokens} tokens, {number:,} times handed over, each from where it was"


def _ring_noise_opened(recording: Recording) -> Iterator[OpenedNoise]:
    for attempt, roster in recording.rosters.items():
        protocol = cast(RingSum, recording.study.protocol_of(roster))
        n, last = len(roster), len(roster) * protocol.rounds - 1
        tokens = {-1: np.zeros(protocol.dimension, dtype=np.int64)}
        for one in recording.items:
            key = one.item.key
            if key.attempt == attempt and key.kind in (ItemKind.TOKEN, ItemKind.TOTAL):
                tokens[key.index if key.kind == ItemKind.TOKEN else last] = np.frombuffer(one.item.body, dtype="<i8")
        for hop in range(last + 1):
            if hop in tokens and hop - 1 in tokens:
                u = roster[hop % n]
                closing = protocol.closing_variance if hop == last else 0
                variance, law = int(protocol.hop_variances[hop]) + closing, None
                if protocol.law == "laplace" and variance:
                    shares = int(protocol.hop_shares[hop]) + (protocol.closing_shares if hop == last else 0)
                    law = _law_of(protocol.rate, Fraction(protocol.parts, shares))
                    if law is None:
                        continue
                left = tokens[hop] - tokens[hop - 1] - _ring_value(recording, protocol, u, hop)
                if variance:
                    yield OpenedNoise(u, left, variance, 1 + bool(closing), law=law)


@lru_cache(maxsize=16)
def _law_of(rate: Fraction, parts: Fraction) -> SampleLaw | None:
    return laplace_law(rate) if parts == 1 else laplace_share_law(rate, parts)


def _ring_value(recording: Recording, protocol: RingSum, u: int, hop: int) -> IntArray:
    """What a party meant to add at a hop, in whole steps: its value, or that of the round's period."""
    rows = recording.rows[u]
    return ring_steps(protocol, rows[hop // protocol.n if len(rows) > 1 else 0])


def _walk_noise_opened(recording: Recording) -> Iterator[OpenedNoise]:
    """Between the step at which a token comes to a party and the one at which it leaves, the party adds at every step."""
    for attempt, roster in recording.rosters.items():
        protocol = cast("WalkSum | GraphWalkSum", recording.study.protocol_of(roster))
        width = 8 * protocol.dimension
        came = {k: (0, np.zeros(protocol.dimension, dtype=np.int64)) for k in range(protocol.tokens)}
        moved = {}
        for one in recording.items:
            key = one.item.key
            if key.attempt == attempt and key.kind in (ItemKind.TOKEN, ItemKind.TOTAL):
                step = divmod(key.index, protocol.steps) if key.kind == ItemKind.TOKEN else (key.index, protocol.steps)
                moved[step] = (key.author, np.frombuffer(one.item.body[:width], dtype="<i8"))
        for (k, t), (u, numbers) in sorted(moved.items()):
            since, before = came[k]
            visits, closing = t - since, protocol.closing_variance if t == protocol.steps else 0
            given = walk_values(protocol, recording.rows[u])
            left = numbers - before - given[period_of(np.arange(since, t), protocol.steps, len(given))].sum(axis=0)
            yield OpenedNoise(u, left, visits * protocol.variance + closing, visits + bool(closing))
            came[k] = (t, numbers)


def _ring_record(recording: Recording, view: View, protocol: RingSum, values: FloatArray) -> TokenRecord | None:
    """What the simulator would have kept of this run for these observers.

    Of values that change over time the auditor, who knows them, takes off what is beyond the first period's.
    """
    attempt = max(view.rosters, default=1)
    tokens = {index: numbers_of(body) for (_, index), body in view.bodies(ItemKind.TOKEN, attempt).items()}
    released = view.bodies(ItemKind.TOTAL, attempt).get((protocol.n - 1, 0))
    last, d = protocol.n * protocol.rounds - 1, protocol.dimension
    if released is None:
        return None
    tokens |= {-1: np.zeros(d, dtype=np.int64), last: numbers_of(released)}
    if max(len(rows) for rows in recording.rows.values()) > 1:
        more = [
            _ring_value(recording, protocol, u := hop % protocol.n, hop) - _ring_value(recording, protocol, u, u)
            for hop in range(last + 1)
        ]
        beyond = np.concatenate([np.zeros((1, d), dtype=np.int64), np.cumsum(more, axis=0)])
        tokens = {hop: token - beyond[hop + 1] for hop, token in tokens.items()}
    hops = [hop for hop in range(last + 1) if hop % protocol.n in view.observers]
    if any(hop not in tokens or hop - 1 not in tokens for hop in hops):
        return None
    g = protocol.step
    arrivals = np.array([tokens[hop - 1] for hop in hops]) * g
    added = np.array([tokens[hop] - tokens[hop - 1] for hop in hops]) * g
    given = np.array([values[hop % protocol.n] for hop in hops])
    unknown = np.full((1, d), np.nan)
    return TokenRecord(
        observers=view.observers, visits=np.array([(0, hop, hop % protocol.n) for hop in hops], dtype=np.int64),
        arrivals=arrivals, contributions=given, noises=added - given,
        starts=np.zeros((1, d)) if 0 in view.observers else unknown,
        # of one who closes the ring both noises are known by their sum, and both count alike in the release
        closings=np.zeros((1, d)) if protocol.n - 1 in view.observers else unknown,
        release=np.asarray(tokens[last][None] * g, dtype=np.float64),
    )  # fmt: skip


class HeapRingRecording(RecordedKind):
    """Counts that went round a ring."""

    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        return _ring_conversations(self.recording, attempt, roster, problems)


class RingRecording(LinearRecording):
    """Numbers that went round a ring. Laplace noise is opened and tested, and not attacked: the attack is for Gaussian noise."""

    @property
    def is_attacked(self) -> bool:  # type: ignore[override]
        return cast(RingSum, self.study.protocol()).law == "gaussian"

    @property
    def why_not(self) -> str:
        return super().why_not if self.is_attacked else super(LinearRecording, self).why_not

    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        return _ring_conversations(self.recording, attempt, roster, problems)

    def noises(self) -> Iterator[OpenedNoise]:
        return _ring_noise_opened(self.recording)

    def record(self, view: View, values: FloatArray) -> TokenRecord | None:
        return _ring_record(self.recording, view, cast(RingSum, self.study.protocol()), values)

    def in_steps(self, data: FloatArray) -> IntArray:
        return ring_steps(cast(RingSum, self.study.protocol()), data)


class HeapWalkRecording(RecordedKind):
    """Counts that walked from party to party."""

    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        return _walk_conversations(self.recording, attempt, roster, problems)


class WalkDescentRecording(HeapWalkRecording):
    """Models that walked from party to party."""

    def noises(self) -> Iterator[OpenedNoise]:
        """Of every stay of one visit, and of no longer one: in between a party tells nobody where it was."""
        recording, study = self.recording, self.study
        protocol, task = cast(WalkDescent, study.protocol()), cast(Any, study.task)
        attempt = max(recording.rosters, default=1)
        roster, keys = recording.rosters.get(attempt, ()), everybody(recording)
        width = 8 * protocol.dimension
        moved = {}
        for one in recording.items:
            key = one.item.key
            if key.attempt == attempt and key.kind in (ItemKind.TOKEN, ItemKind.TOTAL):
                place = divmod(key.index, protocol.steps) if key.kind == ItemKind.TOKEN else (key.index, protocol.steps)
                moved[place] = (key.author, numbers_of(one.item.body[:width]))
        parts: dict[int, OwnSteps] = {}
        for (k, t), (u, after) in sorted(moved.items()):
            closing = protocol.closing_variance if t == protocol.steps else 0
            if t > 1 and (k, t - 1) not in moved:
                continue
            if u not in parts:
                parts[u] = OwnSteps(
                    protocol,
                    task,
                    recording.rows[u],
                    keys[u].noise_secret,
                    study.hash,
                    attempt,
                    roster,
                    batch=protocol.batch,
                )
            before = np.zeros(protocol.dimension, dtype=np.int64) if t == 1 else moved[k, t - 1][1]
            state = parts[u].start() + before
            left = after - before + parts[u].gradient(state, k, t - 1)
            yield OpenedNoise(u, left, protocol.variance + closing, 1 + bool(closing))


class WalkRecording(HeapWalkRecording):
    """Numbers that walked from party to party."""

    def noises(self) -> Iterator[OpenedNoise]:
        return _walk_noise_opened(self.recording)
