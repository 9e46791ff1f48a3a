"""What was recorded of gossip: whether every state and exchange is where it should be, which noise each added, and the attack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np

from netdp.families.gossip.peer import Rounds
from netdp.families.gossip.protocol import gossip_step, gossip_steps, gossip_weights
from netdp.families.gossip.views import transcribe
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.peers.messages import ItemKind
from netdp.peers.recordings.attacks import LinearRecording, numbers_of
from netdp.peers.recordings.conformance import named
from netdp.peers.recordings.kinds import RecordedKind, ended, said
from netdp.peers.recordings.noise import OpenedNoise
from netdp.peers.recordings.recording import Recording, View
from netdp.protocols.simulation import Record


def _gossip_conversations(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    study, rounds = recording.study, recording.study.settings.rounds
    protocol = cast(Rounds, study.protocol())
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


class ExchangeRecording(RecordedKind):
    """States that were exchanged between two parties at a time."""

    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        return _randomized(self.recording, attempt, roster, problems)
