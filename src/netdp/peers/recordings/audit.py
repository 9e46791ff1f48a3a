"""Audits of a study: everything that can be held against what real peers sent, and attacks on its protocol in simulation.

`netdp audit --peers RECORDING` (`audit_recording`) has four parts, for every recording:

    conformance      every message against the study                        `conformance`, `kinds`
    noise            every party's noise, opened with everybody's keys      `noise`
    pads             published numbers: uniform, secret, never twice        `netdp.families.masked.recordings`, over all recordings
    attacks          what a coalition makes of what it holds                `attacks`

The first three are checks, each wrong about a sound run with a probability of at most 10⁻⁶. The last are findings: a measured lower
bound beside the claimed ε. All findings together call no sound run refuted but for the doubt 1 − confidence.

Which parts there are depends on the kind of protocol. Masked sums, training, rings and gossip have all of them. Walks have
conformance and noise; randomized gossip, shuffling and histograms conformance only: what they claim is attacked in simulation
(`audit_in_simulation`), as `netdp.audit` attacks any protocol. The same steps run there (tests/peers/test_same_as_simulated.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from netdp.audit.audits import audit
from netdp.audit.bounds import CONFIDENCE
from netdp.audit.findings import Audit, Check, Finding
from netdp.errors import InvalidValue
from netdp.numerics.checks import check_delta
from netdp.peers.recordings.conformance import conformance
from netdp.peers.recordings.kinds import Pair, RecordedKind, conversations, recorded
from netdp.peers.recordings.noise import noise_tested
from netdp.peers.recordings.recording import Recording, read_recordings, view_of
from netdp.peers.study.digest import identity_of
from netdp.peers.study.study import Study

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
        self._published: dict[Any, list[Any]] = {}

    def audit(self) -> Audit:
        for recording in self._recordings:
            self._one(recording)
        for compared, published in self._published.items():
            self._checks += compared(published)
        first = self._recordings[0].study
        title = " and ".join(dict.fromkeys(f"{one.study.name} ({one.study.settings.kind})" for one in self._recordings))
        return Audit(
            title=f"what real peers sent: {title}", delta=self._delta or first.privacy.delta, confidence=self._confidence,
            seed=0, findings=tuple(self._findings), checks=tuple(self._checks), notes=tuple(dict.fromkeys(self._notes)),
            trials="from the numbers that one run sent, each of them a trial",
            facts={"recordings": [_facts(one) for one in self._recordings]},
        )  # fmt: skip

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
        study, kind = recording.study, recorded(recording)
        checks = conformance(recording)
        legible = all(check.ok for check in checks if check.name.startswith("bodies"))
        if not legible:
            self._checks += self._named(recording, checks)
            self._notes.append(f"{study.name}: not all that was sent can be read, so nothing was computed from it")
            return
        checks += conversations(recording)
        checks += noise_tested(recording)
        pairs = self._pairs(kind)
        doubt = (1 - self._confidence) / (len(self._recordings) * max(len(pairs), 1))
        for place, (name, observers, target) in enumerate(pairs):
            view = view_of(study, recording.said, {u: recording.home(u) for u in observers})
            if not place and (published := kind.published(view)):
                self._published.setdefault(kind.compared, []).extend(published)
            found, more = kind.attacks(view, target, name, self._delta or study.privacy.delta, doubt)
            self._findings += [self._labelled(recording, row) for row in found]
            checks += more
            if not found:
                self._notes.append(kind.why_not)
            elif max(row.measured.trials for row in found) < _FEW:
                self._notes.append(
                    f"{study.name}: {found[0].measured.trials} numbers say little of their noise; netdp audit STUDY --run DIR runs "
                    "the same protocol on thousands"
                )
        if not pairs:
            self._notes.append(kind.why_not)
        self._checks += self._named(recording, checks)

    # ── who looks at whom ─────────────────────────────────────────────────────────────────────────────────────────────

    def _pairs(self, kind: RecordedKind) -> list[Pair]:
        """(why, observers, target) of every attack."""
        study = kind.study
        if not kind.is_attacked or not kind.recording.rosters:
            return []
        given = None if self._observers is None else tuple(sorted({_number(study, u) for u in self._observers}))
        target = None if self._target is None else _number(study, self._target)
        if given is not None and (not given or target in given):
            raise InvalidValue(f"the target {self._target!r} looks itself, or nobody does; name others as observers")
        return kind.pairs(given, target, self._delta or study.privacy.delta)


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


def _facts(recording: Recording) -> dict[str, Any]:
    study = recording.study
    return {
        "folder": str(recording.folder), "study": study.name, "hash": study.hash.hex(), "kind": study.settings.kind,
        "parties": study.n, "messages": len(recording.said),
        "rosters": {str(attempt): [study.names[u] for u in roster] for attempt, roster in recording.rosters.items()},
    }  # fmt: skip


_USUAL = 3


def audit_in_simulation(
    study: Study, *, delta: float | None = None, colluders: int | None = None, **options: Any
) -> Audit:
    """Attack what a study promises; the audit says whose it is (`facts["study"]`).

    delta      at which ε is stated; by default the study's
    colluders  how many pool what they see in the last row; by default as many as the study plans for, 3 if that is one
    options    as for `netdp.audit.audit`
    """
    found = audit(
        study.protocol(), delta=study.privacy.delta if delta is None else delta,
        colluders=_coalition(study) if colluders is None else colluders,
        title=f"Study “{study.name}”, in simulation", **options,
    )  # fmt: skip
    return replace(found, facts=found.facts | {"study": identity_of(study)})


def _coalition(study: Study) -> int:
    """How many pool what they see by default: those planned for, or the usual two if that is one and no threshold is set."""
    planned = study.privacy.colluders
    return planned if planned > 1 or study.running.threshold is not None else _USUAL
