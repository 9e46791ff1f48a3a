"""What was recorded of gossip: whether every state and exchange is where it should be, which noise each added, and the attack."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, cast

import numpy as np

from netdp.audit.findings import Check, Finding
from netdp.families.gossip.descent import GossipDescent
from netdp.families.gossip.peer import Rounds
from netdp.families.gossip.protocol import InRounds, gossip_step, gossip_steps, gossip_weights
from netdp.families.gossip.views import transcribe
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.peers.descents import OwnSteps
from netdp.peers.ledger.losses import accounted
from netdp.peers.messages import ItemKind
from netdp.peers.recordings.attacks import LinearRecording, finding, local_loss, numbers_of, shifted
from netdp.peers.recordings.conformance import named
from netdp.peers.recordings.kinds import Pair, RecordedKind, ended, said
from netdp.peers.recordings.noise import OpenedNoise, everybody
from netdp.peers.recordings.recording import Recording, View
from netdp.peers.recordings.statistics import Squares
from netdp.privacy.observers import entry
from netdp.protocols.simulation import Record


def _gossip_conversations(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    study, rounds = recording.study, recording.study.running.most_rounds() + 1
    protocol = cast(InRounds, study.protocol())
    sent: set[tuple[int, int, int]] = set()
    for one in said(recording, attempt, ItemKind.STATE):
        if one.item.key.index >= rounds:
            problems.append(f"{named(recording, one)}: everybody sends {rounds} times, from 0 on")
        sent.add((one.sender, one.to, one.item.key.index))
    if ended(recording, attempt):
        wanted = {(u, v, t) for u in roster for t in range(rounds) for v in gossip_weights(protocol, u, t)}
        problems += [
            f"{study.everybody[u]} sent its state of round {t} to {study.everybody[v]}, to which no link carries then"
            for u, v, t in sorted(sent - wanted)
        ]
        problems += [
            f"{study.everybody[u]} did not send its state of round {t} to {study.everybody[v]}"
            for u, v, t in sorted(wanted - sent)
        ]
    return f"attempt {attempt}: {len(sent):,} states in {rounds} rounds"


def _randomized(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    study, wakes = recording.study, recording.study.settings.wakes
    names = study.everybody
    offers = {(one.sender, one.to, one.item.key.index) for one in said(recording, attempt, ItemKind.OFFER)}
    numbers = Counter((u, index) for u, _, index in offers)
    problems += [f"{names[u]} made offer {index}, and wakes {wakes} times" for u, index in numbers if index >= wakes]
    problems += [
        f"{names[u]} made offer {index} to {count} parties" for (u, index), count in numbers.items() if count > 1
    ]
    answers: dict[tuple[int, int, int], bool] = {}
    for one in said(recording, attempt, ItemKind.ACCEPT):
        way = (one.to, one.sender, one.item.key.index)
        answers[way] = bool(one.item.body)
        if way not in offers:
            problems.append(f"{named(recording, one)} answers no offer of {names[one.to]}")
    for one in said(recording, attempt, ItemKind.STATE):
        way = (one.sender, one.to, one.item.key.index)
        if not answers.get(way, False):
            problems.append(f"{named(recording, one)} went to {names[one.to]}, who had not sent its own state")
    taken = sum(answers.values())
    return f"attempt {attempt}: {len(offers):,} offers of {len(roster)} parties, {taken:,} taken up"


def _all_mixed(protocol: Rounds, states: Mapping[tuple[int, int], IntArray], u: int) -> dict[int, IntArray]:
    """By round what party u had after mixing, before it added fresh noise: as far as all that it needs was recorded."""
    found, previous = dict[int, IntArray](), None
    for t in range(1, protocol.rounds):
        weights = gossip_weights(protocol, u, t - 1)
        if not all((v, t - 1) in states for v in (u, *weights)):
            break
        around = {v: states[v, t - 1] for v in weights}
        if t > 1:
            previous = states[u, t - 2] + (states[u, t - 1] - found[t - 1])
        found[t] = gossip_step(weights, states[u, t - 1], around, previous, protocol.chebyshev)
    return found


def _gossip_noise_opened(recording: Recording) -> Iterator[OpenedNoise]:
    protocol = cast(Rounds, recording.study.protocol())
    for attempt in recording.rosters:
        states = {
            (one.item.key.author, one.item.key.index): np.frombuffer(one.item.body, dtype="<i8").astype(np.int64)
            for one in recording.items
            if (one.item.key.kind, one.item.key.attempt) == (ItemKind.STATE, attempt)
        }
        mixed = {u: _all_mixed(protocol, states, u) for u in range(protocol.n)}
        for (u, t), state in states.items():
            if t == 0:
                yield OpenedNoise(u, state - gossip_steps(protocol, recording.rows[u][0]), protocol.start_variance)
            elif t in mixed[u]:
                yield OpenedNoise(u, state - mixed[u][t], protocol.fresh_variance)


def _gossip_record(view: View, protocol: Rounds, values: FloatArray) -> Record | None:
    """What the simulator would have kept of this run for these observers."""
    attempt = max(view.rosters, default=1)
    states = {place: numbers_of(body) for place, body in view.bodies(ItemKind.STATE, attempt).items()}
    own, g = list(view.observers), protocol.step
    messages = transcribe(protocol).received_by(own)
    needed = {(int(u), int(t)) for t, u, _ in messages} | {(u, t) for u in own for t in range(protocol.rounds)}
    if needed - set(states):
        return None
    mixed = {u: _all_mixed(protocol, states, u) for u in own}
    times = range(1, protocol.rounds) if protocol.fresh_variance else ()
    refreshes = [[(states[u, t] - mixed[u][t]) * g for u in own] for t in times]
    d = values.shape[1]
    return Record(
        observers=view.observers, messages=messages, payloads=np.array([states[int(u), int(t)] for t, u, _ in messages]) * g,
        values=values[own], noises=np.array([states[u, 0] for u in own]) * g - values[own], masks=np.empty((0, d)),
        mask_edges=np.empty((0, 2), dtype=np.int64), refreshes=np.array(refreshes).reshape(len(refreshes), len(own), d),
    )  # fmt: skip


class GossipRecording(LinearRecording):
    """States that were averaged round by round."""

    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        return _gossip_conversations(self.recording, attempt, roster, problems)

    def noises(self) -> Iterator[OpenedNoise]:
        return _gossip_noise_opened(self.recording)

    def record(self, view: View, values: FloatArray) -> Record | None:
        return _gossip_record(view, cast(Rounds, self.study.protocol()), values)

    def in_steps(self, data: FloatArray) -> IntArray:
        return gossip_steps(cast(Rounds, self.study.protocol()), data)


class GossipDescentRecording(RecordedKind):
    """Models that were moved by noisy gradients and averaged, round by round."""

    is_attacked = True

    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        return _gossip_conversations(self.recording, attempt, roster, problems)

    @property
    def _protocol(self) -> GossipDescent:
        return cast(GossipDescent, self.study.protocol())

    @cached_property
    def _attempt(self) -> int:
        return max(self.recording.rosters, default=1)

    @cached_property
    def _opened(self) -> list[OpenedNoise]:
        """Every send of every party less what its model, its rows and its neighbours gave, computed a second time."""
        protocol, recording, study = self._protocol, self.recording, self.study
        sent = {
            (one.item.key.author, one.item.key.index): numbers_of(one.item.body)
            for one in recording.items
            if (one.item.key.kind, one.item.key.attempt) == (ItemKind.STATE, self._attempt)
        }
        roster, task = recording.rosters.get(self._attempt, ()), cast(Any, study.task)
        out, keys = [], everybody(recording)
        for u in roster:
            steps = OwnSteps(
                protocol,
                task,
                recording.rows[u],
                keys[u].noise_secret,
                study.hash,
                self._attempt,
                roster,
                batch=protocol.batch,
            )
            weights, state = gossip_weights(protocol, u), steps.start()
            for r in range(protocol.sends):
                t, k = divmod(r, protocol.gossip_rounds)
                if (u, r) not in sent:
                    break
                mean = state if k else state - steps.gradient(state, t)
                if variance := protocol.fresh_variance if k else protocol.variance:
                    out.append(OpenedNoise(u, sent[u, r] - mean, variance))
                if any((v, r) not in sent for v in weights):
                    break
                state = gossip_step(weights, sent[u, r], {v: sent[v, r] for v in weights})
        return out

    def noises(self) -> Iterator[OpenedNoise]:
        return iter(self._opened)

    def pairs(self, observers: tuple[int, ...] | None, target: int | None, delta: float) -> list[Pair]:
        """A neighbour of the target, who sees all its noisy steps, unless somebody says who looks."""
        about = target if target is not None else next(u for u in range(self.study.n) if u not in (observers or ()))
        if observers is not None:
            return [("these observers", observers, about)]
        return [("a neighbour", (self.study.neighbours(about)[0],), about)]

    def attacks(
        self, view: View, target: int, name: str, delta: float, doubt: float
    ) -> tuple[list[Finding], list[Check]]:
        """A neighbour that is told, besides, all that the target heard: two gradients as far apart as they may be, every time."""
        protocol, study = self._protocol, self.study
        if not any(v in view.observers for v in study.neighbours(target)):
            return [], []
        own = [one for one in self._opened if one.party == target and one.variance == protocol.variance]
        if not own:
            return [], []
        spread = Squares.of([(one.numbers, one.variance) for one in own])
        mu = math.sqrt(len(own)) * 2 * protocol.length / (spread.at_most(doubt) * math.sqrt(protocol.variance))
        loss = accounted(protocol, view.observers)
        row = finding(
            study, name, view.observers, target, entry(loss.curve, target), loss.claim, shifted(mu, spread.count, delta, doubt),
            f"opposite gradients in each of {len(own):,} noisy steps, told what the target had heard",
            local_loss(protocol, target, delta),
        )  # fmt: skip
        return [row], []

    @property
    def why_not(self) -> str:
        return f"{self.study.name}: nobody who looks is a neighbour of the target; attack it in simulation (netdp audit STUDY)"


class ExchangeRecording(RecordedKind):
    """States that were exchanged between two parties at a time."""

    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        return _randomized(self.recording, attempt, roster, problems)
