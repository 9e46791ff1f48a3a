"""Whether what peers sent went the way that its protocol says: rounds, hops and steps, one function per kind.

    masked-sum          averages are what follows from the published numbers, to the last bit, and end with the last round
    masked-descent      one step per party and iteration, none beyond the last
    ring-sum, ring-*    hop h goes from user h mod n to the next, each once; the last user releases, nobody else
    walk-*              every token is at one place at a time; where it was handed to is where it goes on from
    gossip              every party sends one state per round to every neighbour, as many rounds as stated
    randomized-gossip   no more offers than wake-ups; an answer to an offer; a state for an answer
    shuffle             one bundle a round over every link, and every report moves in every round, as far as bundles show it

In an attempt that broke off, what is missing is not held against anybody; what is too much is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from netdp.audit.findings import Check
from netdp.audit.noise_chances import of_each
from netdp.errors import NetdpError
from netdp.protocols import MaskedSum, RingHistogram, RingSum
from netdp.protocols.masked_averaging import averaging_row, averaging_start, averaging_step
from netdp.protocols.masked_steps import from_bytes
from netdp.protocols.response_steps import is_heap

from ..hops import unpacked
from ..messages import Done, Kind
from ..reports import take_cuts
from .conformance import items_of, named, told
from .odds import DOUBT
from .recorded import Recording, Said

_ROUNDS = "rounds as stated"


def conversations(recording: Recording) -> list[Check]:
    """The checks of this recording's kind of protocol, in every attempt that numbers were sent in."""
    check = _BY_KIND[recording.study.settings.kind]
    problems: list[str] = []
    words: list[str] = []
    for attempt, roster in recording.rosters.items():
        words.append(check(recording, attempt, roster, problems))
    beyond = {one.item.key.attempt for one in recording.items if not one.item.key.kind.is_signed} - set(
        recording.rosters
    )
    problems += [
        f"numbers were sent in attempt {attempt}, which has no roster that all voted for" for attempt in beyond
    ]
    return [told(_ROUNDS, problems, "; ".join(filter(None, words)) or "nothing was sent in any attempt")]


def _ended(recording: Recording, attempt: int) -> bool:
    """Whether all of its roster hold an answer to this attempt: then nothing may be missing."""
    done = {one.sender for one in recording.said if isinstance(one.message, Done) and one.message.attempt == attempt}
    return done.issuperset(recording.rosters[attempt])


def _said(recording: Recording, attempt: int, *kinds: Kind) -> list[Said]:
    return [one for one in recording.items if one.item.key.attempt == attempt and one.item.key.kind in kinds]


# ── masked sums ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _masked(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    states = _said(recording, attempt, Kind.STATE)
    protocol = cast(MaskedSum, recording.study.protocol_of(roster))
    if not states or protocol.spread != "average":
        return f"attempt {attempt}: everything is published once and passed on"
    try:
        weights = protocol.averaging.weights
    except NetdpError as problem:
        problems.append(f"attempt {attempt} cannot be averaged ({problem}), and states were sent")
        return ""
    published = items_of(recording, attempt, Kind.CONTRIBUTION)
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


def _descent(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    most = recording.study.running.most_steps()
    made = items_of(recording, attempt, Kind.STEP)
    for u, index in made:
        if not 1 <= index <= most:
            problems.append(f"step {index} of {recording.study.everybody[u]}: the training has {most}")
    if _ended(recording, attempt):
        problems += [
            f"step {index} of {recording.study.everybody[u]} is missing"
            for u in roster
            for index in range(1, most + 1)
            if (u, index) not in made
        ]
    return f"attempt {attempt}: {len(made):,} steps of {len(roster)} parties in {most} iterations, evaluation included"


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ring(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    protocol = cast("RingSum | RingHistogram", recording.study.protocol_of(roster))
    n, hops = len(roster), len(roster) * protocol.rounds
    seen: set[int] = set()
    for one in _said(recording, attempt, Kind.TOKEN):
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
    totals = items_of(recording, attempt, Kind.TOTAL)
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


def _walk(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    study, how = recording.study, recording.study.settings
    names = study.everybody
    offered = {(one.sender, one.to, one.item.key.index) for one in _said(recording, attempt, Kind.OFFER)}
    accepted = {(one.to, one.sender, one.item.key.index) for one in _said(recording, attempt, Kind.ACCEPT)}
    problems += [
        f"{names[v]} accepted token {index} from {names[u]}, who had not offered it"
        for u, v, index in accepted - offered
    ]
    moves: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    for one in _said(recording, attempt, Kind.TOKEN):
        k, t = divmod(one.item.key.index, how.steps)
        if k >= how.tokens or t == 0:
            problems.append(f"{named(recording, one)}: there are {how.tokens} tokens of {how.steps} steps")
            continue
        if t in moves[k] and moves[k][t] != (one.sender, one.to):
            problems.append(f"{named(recording, one)} was handed on twice at this step")
        if (one.sender, one.to, one.item.key.index) not in accepted:
            problems.append(f"{named(recording, one)} went to {names[one.to]}, who had not accepted it")
        moves[k][t] = (one.sender, one.to)
    released = {index: u for u, index in items_of(recording, attempt, Kind.TOTAL)}
    if len(items_of(recording, attempt, Kind.TOTAL)) > len(released):
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


# ── gossip ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _gossip(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    study, rounds = recording.study, recording.study.settings.rounds
    sent: set[tuple[int, int, int]] = set()
    for one in _said(recording, attempt, Kind.STATE):
        if one.item.key.index >= rounds:
            problems.append(f"{named(recording, one)}: everybody sends {rounds} times, from 0 on")
        sent.add((one.sender, one.to, one.item.key.index))
    if _ended(recording, attempt):
        wanted = {(u, v, t) for u in roster for v in study.neighbours(u) for t in range(rounds)}
        problems += [
            f"{study.everybody[u]} did not send its state of round {t} to {study.everybody[v]}"
            for u, v, t in sorted(wanted - sent)
        ]
    return f"attempt {attempt}: {len(sent):,} states in {rounds} rounds"


def _randomized(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    study, wakes = recording.study, recording.study.settings.wakes
    names = study.everybody
    offers = {(one.sender, one.to, one.item.key.index) for one in _said(recording, attempt, Kind.OFFER)}
    numbers = Counter((u, index) for u, _, index in offers)
    problems += [f"{names[u]} made offer {index}, and wakes {wakes} times" for u, index in numbers if index >= wakes]
    problems += [
        f"{names[u]} made offer {index} to {count} parties" for (u, index), count in numbers.items() if count > 1
    ]
    answers: dict[tuple[int, int, int], bool] = {}
    for one in _said(recording, attempt, Kind.ACCEPT):
        way = (one.to, one.sender, one.item.key.index)
        answers[way] = bool(one.item.body)
        if way not in offers:
            problems.append(f"{named(recording, one)} answers no offer of {names[one.to]}")
    for one in _said(recording, attempt, Kind.STATE):
        way = (one.sender, one.to, one.item.key.index)
        if not answers.get(way, False):
            problems.append(f"{named(recording, one)} went to {names[one.to]}, who had not sent its own state")
    taken = sum(answers.values())
    return f"attempt {attempt}: {len(offers):,} offers of {len(roster)} parties, {taken:,} taken up"


# ── shuffling ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shuffle(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    study, how = recording.study, recording.study.settings
    names, curator, rounds = study.everybody, study.n, how.rounds
    walk: Any = study.running.walk(roster)  # type: ignore[attr-defined]
    bundles = _said(recording, attempt, Kind.BUNDLE)
    sent = {(one.sender, one.to, one.item.key.index) for one in bundles}
    handed = {u for u, v, index in sent if v == curator and index == rounds + 1}
    for one in bundles:
        index, late = one.item.key.index, one.item.key.index == rounds + 1
        if not 1 <= index <= rounds + 1:
            problems.append(f"{named(recording, one)}: there are {rounds} rounds")
        elif one.sender != curator and late and one.to != curator:
            problems.append(f"{named(recording, one)}: after the last round reports go to the curator only")
        elif one.sender != curator and not how.cover and not late and one.to == curator:
            problems.append(f"{named(recording, one)}: reports were handed over before the last round")
    if how.cover:
        links = {(u, curator, r) for u in handed for r in range(1, rounds + 1)}
        sizes = {
            (one.sender == curator, len(one.item.body) // walk.envelope)
            for one in bundles
            if one.item.key.index <= rounds
        }
        what = f"through the server, envelopes of one size in bundles of {len(sizes)} sizes"
    else:
        links = {(u, v, r) for u in handed for v in walk.neighbours(u) if v in handed for r in range(1, rounds + 1)}
        what = _moves(recording, bundles, rounds, how.laziness, walk, problems)
    problems += [
        f"{names[u]} sent no bundle of round {r} to {names[v]} and handed its reports over"
        for u, v, r in sorted(links - sent)
    ]
    return f"attempt {attempt}: {len(sent):,} bundles in {rounds} rounds, {what}"


def _moves(
    recording: Recording, bundles: list[Said], rounds: int, laziness: float, walk: Any, problems: list[str]
) -> str:
    """How often reports moved: in every round, or each with its chance not to."""
    curator, n = recording.study.n, recording.study.n
    moved: dict[bytes, set[int]] = defaultdict(set)
    final: set[bytes] = set()
    cut = False
    once = {(one.sender, one.to, one.item.key.index): one for one in bundles}  # what was lost is sent again
    for one in once.values():
        parsed = take_cuts(one.item.body, n, rounds)
        reports = None if parsed is None else unpacked(parsed[1], walk.reports.size)
        if parsed is None or reports is None:
            problems.append(f"{named(recording, one)} is no bundle")
            continue
        cut |= bool(parsed[0])
        if one.to == curator:
            final |= set(reports)
            continue
        for report in reports:
            if one.item.key.index in moved[report] and laziness == 0 and not cut:
                problems.append(f"a report moved twice in round {one.item.key.index}")
            moved[report].add(one.item.key.index)
    if cut:
        return "some links failed, so how often reports moved is not held against anybody"
    arrived = [report for report in final if report in moved] if walk.reporting == "single" else sorted(final)
    number = sum(len(moved[report]) for report in arrived)
    most = rounds * len(arrived)
    if laziness == 0:
        few = [report for report in arrived if len(moved[report]) < rounds]
        if few:
            problems.append(
                f"{len(few)} of {len(arrived)} reports moved less than {rounds} times before they were handed over"
            )
        return f"{len(arrived)} reports moved {rounds} times each"
    odds = float(of_each(np.array([number]), most, 1 - laziness)[0]) if most else 1.0
    if odds < DOUBT and number < most * (1 - laziness):
        problems.append(
            f"reports moved {number:,} times in {most:,} rounds, and should with a chance of {1 - laziness:g}"
        )
    return f"{len(arrived)} reports moved {number / max(len(arrived), 1):.3g} times each on average, of {rounds} rounds"


_BY_KIND: dict[str, Callable[[Recording, int, tuple[int, ...], list[str]], str]] = {
    "masked-sum": _masked,
    "masked-descent": _descent,
    "ring-sum": _ring,
    "ring-histogram": _ring,
    "walk-sum": _walk,
    "walk-histogram": _walk,
    "gossip": _gossip,
    "randomized-gossip": _randomized,
    "shuffle": _shuffle,
}
