"""What was recorded of a shuffle: whether every bundle was sent, and whether reports moved as often as they should."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from netdp.audit.samples import of_each
from netdp.families.shuffle.reports import take_cuts, unpacked
from netdp.peers.messages import ItemKind
from netdp.peers.recordings.conformance import named
from netdp.peers.recordings.kinds import RecordedKind, said
from netdp.peers.recordings.recording import Recording, Said
from netdp.peers.recordings.statistics import DOUBT


def _shuffle(recording: Recording, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
    study, how = recording.study, recording.study.settings
    names, curator, rounds = study.everybody, study.n, how.rounds
    walk: Any = study.running.walk(roster)  # type: ignore[attr-defined]
    bundles = said(recording, attempt, ItemKind.BUNDLE)
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


class ShuffleRecording(RecordedKind):
    """Reports that hopped from party to party."""

    def conversation(self, attempt: int, roster: tuple[int, ...], problems: list[str]) -> str:
        return _shuffle(self.recording, attempt, roster, problems)
