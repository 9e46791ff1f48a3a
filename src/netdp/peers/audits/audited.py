"""`netdp audit --peers RECORDING`: everything that can be held against what real peers sent.

Four parts, for every recording:

    conformance      every message against the study                        `conformance`, `conversations`
    noise            every party's noise, opened with everybody's keys      `noise_opened`
    pads             published numbers: uniform, secret, never twice        `pads_tested`, over all recordings together
    attacks          what a coalition makes of what it holds                `attacked`

The first three are checks, each wrong about a sound run with a probability of at most 10⁻⁶. The last are findings: a measured lower
bound beside the claimed ε. All findings together call no sound run refuted but for the doubt 1 − confidence.

Which parts there are depends on the kind of protocol. Masked sums, training, rings and gossip have all of them. Walks have
conformance and noise; randomized gossip, shuffling and histograms conformance only: what they claim is attacked in simulation
(`netdp.audit`), where the same steps run (tests/peers/test_same_as_simulated.py).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from netdp.audit.bounds import CONFIDENCE
from netdp.audit.findings import Audit, Check, Finding
from netdp.audit.pairs import pairs_of
from netdp.errors import FileFormatError, InvalidValue
from netdp.numerics.arrays import BoolArray, IntArray
from netdp.numerics.checks import check_delta

from .attacked import attack_linear, attack_sum, attack_training
from .conformance import conformance
from .conversations import conversations
from .masked_sums import Sum, in_steps, sums_in
from .noise_opened import noise_tested, replayed, trainees
from .pads_tested import Seen, pads_tested
from .recorded import Recording, View, read_recordings, view_of

CANARIES = "canaries.json"
"""Beside a recording: whose records were put in or left out by fair coins."""
_MASKED = ("masked-sum", "masked-descent")
_LINEAR = ("ring-sum", "gossip")
_NUMBERS = 128
"""Of a training so many iterations have everybody's numbers taken off before pads are compared."""

_FEW = 64

Who = int | str


def audit_recording(
    folders: Sequence[Path],
    *,
    homes: Path | None = None,
    observers: Sequence[Who] | None = None,
    target: Who | None = None,
    delta: float | None = None,
    confidence: float = CONFIDENCE,
) -> Audit:
    """Hold a recording, or several of the same parties together, against its study.

    homes        where the parties' homes are, if not in the folders themselves
    observers    who looks together, by name or number; by default as many as the study promises for, those who may learn most
    target       about whom; by default the one about whom they may learn most
    delta        at which ε is stated; by default the study's
    confidence   that no finding of a sound run is called refuted, all together
    """
    recordings = [one for folder in folders for one in read_recordings(Path(folder), homes)]
    if not recordings:
        raise InvalidValue("no recording is given; name a folder: netdp audit --peers DIR")
    if not 0 < confidence < 1:
        raise InvalidValue(f"confidence must lie between 0 and 1, got {confidence!r}")
    if delta is not None:
        check_delta(delta)
    one = _Auditor(recordings, observers, target, delta, confidence)
    return one.audit()


class _Auditor:
    """One audit on its way."""

    def __init__(
        self, recordings: list[Recording], observers: Sequence[Who] | None, target: Who | None, delta: float | None,
        confidence: float,
    ) -> None:  # fmt: skip
        self._recordings, self._observers, self._target = recordings, observers, target
        self._delta, self._confidence = delta, confidence
        self._checks: list[Check] = []
        self._findings: list[Finding] = []
        self._notes: list[str] = []
        self._seen: list[Seen] = []

    def audit(self) -> Audit:
        for recording in self._recordings:
            self._one(recording)
        if self._seen:
            self._checks += pads_tested(self._seen, self._author)
        first = self._recordings[0].study
        title = " and ".join(dict.fromkeys(f"{one.study.name} ({one.study.settings.kind})" for one in self._recordings))
        return Audit(
            title=f"what real peers sent: {title}", delta=self._delta or first.privacy.delta, confidence=self._confidence,
            seed=0, findings=tuple(self._findings), checks=tuple(self._checks), notes=tuple(dict.fromkeys(self._notes)),
            trials="from the numbers that one run sent, each of them a trial",
            facts={"recordings": [_facts(one) for one in self._recordings]},
        )  # fmt: skip

    def _author(self, s: Sum, u: int) -> str:
        return s.study.everybody[u]

    def _named(self, recording: Recording, checks: list[Check]) -> list[Check]:
        """Which recording a check is about, where there are several."""
        if len(self._recordings) == 1:
            return checks
        which = f"{recording.study.name} ({recording.study.hash.hex()[:8]}…)"
        return [Check(f"{which}: {one.name}", one.ok, one.words) for one in checks]

    def _labelled(self, recording: Recording, row: Finding) -> Finding:
        if len(self._recordings) == 1:
            return row
        return replace(row, name=f"{row.name} ({recording.study.hash.hex()[:8]}…)")

    def _one(self, recording: Recording) -> None:
        self._notes += recording.notes
        study, kind = recording.study, recording.study.settings.kind
        checks = conformance(recording)
        legible = all(check.ok for check in checks if check.name.startswith("bodies"))
        if not legible:
            self._checks += self._named(recording, checks)
            self._notes.append(f"{study.name}: not all that was sent can be read, so nothing was computed from it")
            return
        checks += conversations(recording)
        checks += noise_tested(recording)
        pairs = self._pairs(recording)
        doubt = (1 - self._confidence) / (len(self._recordings) * max(len(pairs), 1))
        for name, observers, target in pairs:
            view = view_of(study, recording.said, {u: recording.home(u) for u in observers})
            if kind in _MASKED and not any(one.sum.study is study for one in self._seen):
                self._seen += _seen(recording, view)
            found, more = self._attacked(recording, view, target, name, doubt)
            self._findings += [self._labelled(recording, row) for row in found]
            checks += more
            if not found:
                self._notes.append(_why_not(recording))
            elif max(row.measured.trials for row in found) < _FEW:
                self._notes.append(
                    f"{study.name}: {found[0].measured.trials} numbers say little of their noise; netdp audit STUDY --run DIR runs "
                    "the same protocol on thousands"
                )
        if not pairs:
            self._notes.append(_why_not(recording))
        self._checks += self._named(recording, checks)

    def _attacked(
        self, recording: Recording, view: View, target: int, name: str, doubt: float
    ) -> tuple[list[Finding], list[Check]]:
        kind, delta = recording.study.settings.kind, self._delta or recording.study.privacy.delta
        if kind == "masked-sum":
            return attack_sum(recording, view, target, delta, doubt, coins_of(recording, target))
        made = (
            attack_training(recording, view, target, delta, doubt)
            if kind == "masked-descent"
            else attack_linear(recording, view, target, name, delta, doubt)
        )
        return ([] if made is None else [made]), []

    # ── who looks at whom ─────────────────────────────────────────────────────────────────────────────────────────────

    def _pairs(self, recording: Recording) -> list[tuple[str, tuple[int, ...], int]]:
        """(why, observers, target) of every attack."""
        study, kind = recording.study, recording.study.settings.kind
        if kind not in (*_MASKED, *_LINEAR) or not recording.rosters:
            return []
        given = None if self._observers is None else tuple(sorted({_number(study, u) for u in self._observers}))
        target = None if self._target is None else _number(study, self._target)
        if given is not None and (not given or target in given):
            raise InvalidValue(f"the target {self._target!r} looks itself, or nobody does; name others as observers")
        if kind in _MASKED:
            target = _canary_target(recording) if target is None else target
            return [("the sum", *_masked_pair(recording, given, target))]
        if given is not None:
            chosen = target if target is not None else next(u for u in range(study.n) if u not in given)
            return [("these observers", given, chosen)]
        found = pairs_of(study.protocol(), self._delta or study.privacy.delta, study.privacy.colluders, seed=0)
        rows = [(pair.name, pair.observers.parties, pair.target) for pair in found if pair.name != "random pair"]
        return [row for row in rows if target in (None, row[2])] or [
            ("this target", next((v,) for v in study.neighbours(target or 0)), target or 0)
        ]


def _masked_pair(
    recording: Recording, given: tuple[int, ...] | None, target: int | None
) -> tuple[tuple[int, ...], int]:
    """All coalitions of one size learn the same of a sum; those who were missing at times see whether pads serve twice."""
    study, roster = recording.study, recording.rosters[max(recording.rosters)]
    if given is None:
        missing = [u for one in recording.rosters.values() for u in range(study.n) if u not in one]
        inside = next(u for u in reversed(roster) if u != target)  # one of them must hold the sum
        free = [u for u in dict.fromkeys([*missing, *reversed(roster)]) if u not in (target, inside)]
        given = tuple(sorted({inside, *free[: max(study.privacy.colluders - 1, 0)]}))
    if target is None:
        target = next((u for u in roster if u not in given), None)
        if target is None:
            raise InvalidValue("all who took part are observers; leave one out, to be looked at")
    return given, target


def _number(study: Any, who: Who) -> int:
    if isinstance(who, str) and not who.isdigit():
        found = study.index(who)
    else:
        found = int(who)
    if not 0 <= found < study.n:
        raise InvalidValue(
            f"there is no party {who!r}; the study has 0 … {study.n - 1}: {', '.join(study.names[:8])} …"
        )
    return int(found)


# ── what is looked at ─────────────────────────────────────────────────────────────────────────────────────────────────


def _seen(recording: Recording, view: View) -> list[Seen]:
    """The sums that a coalition sees, with everybody's numbers: what is left under pads is noise."""
    sums = sums_in(recording.study, view.items)
    if recording.study.settings.kind == "masked-sum":
        return [Seen(s, view.identities, {u: in_steps(s.one, recording.rows[u]) for u in s.roster}) for s in sums]
    numbers: dict[int, dict[int, IntArray]] = {}
    if sums:
        people = trainees(recording, sums[0].attempt, sums[0].roster)
        for s, theta in replayed(recording, sums[:_NUMBERS]):
            numbers[s.index] = {u: one.added(s.index, theta) for u, one in people.items()}
    return [Seen(s, view.identities, numbers.get(s.index)) for s in sums]


def _canaries(recording: Recording) -> dict[str, Any] | None:
    path = recording.folder / CANARIES
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
        if found["study"] != recording.study.hash.hex() or found["target"] not in recording.study.names:
            return None
    except (ValueError, KeyError, TypeError):
        raise FileFormatError(path, None, "is no list of canaries; make the recording again") from None
    return dict(found)


def _canary_target(recording: Recording) -> int | None:
    found = _canaries(recording)
    return None if found is None else recording.study.index(found["target"])


def coins_of(recording: Recording, target: int) -> BoolArray | None:
    """Which records the target holds, where fair coins decided that; None where they did not."""
    found = _canaries(recording)
    if found is None or not found["coins"] or recording.study.index(found["target"]) != target:
        return None
    return np.asarray(recording.rows[target].sum(axis=0) > 0)


def _why_not(recording: Recording) -> str:
    kind, name = recording.study.settings.kind, recording.study.name
    if kind in _LINEAR or kind == "masked-sum":
        return f"{name}: the attempt did not come to its end, so there is nothing to attack but what was sent"
    if kind == "masked-descent":
        return f"{name}: too few iterations were recorded to be trials"
    return f"{name}: the claim of {kind} is attacked in simulation (netdp audit STUDY); here its messages are checked"


def _facts(recording: Recording) -> dict[str, Any]:
    study = recording.study
    return {
        "folder": str(recording.folder), "study": study.name, "hash": study.hash.hex(), "kind": study.settings.kind,
        "parties": study.n, "messages": len(recording.said),
        "rosters": {str(attempt): [study.names[u] for u in roster] for attempt, roster in recording.rosters.items()},
    }  # fmt: skip
