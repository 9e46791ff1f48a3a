"""What came of a study that ran on this machine: the outcomes of all parties, and what they have in common.

Every party tells its own outcome. Put together they show whether all hold the same answer, who is gone and why, what was spent,
and who sent to whom.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from netdp.peers.hindsight import Hindsight
from netdp.peers.study.study import Study
from netdp.protocols.views import Transcript

ANSWERED, FAILED, REFUSED, ENDED, IMPLAUSIBLE = 0, 1, 2, 3, 4
"""Exit codes of a party: it holds the answer; a failure (it is started again); it refused; the study ended without answer; the
answer is none that honest parties can have come to, and is withheld."""

FINAL = (ANSWERED, ENDED, IMPLAUSIBLE)
"""After these codes starting again would bring nothing new."""


def status_of(told: Mapping[str, Any]) -> int:
    """The exit code of a party that has come to an outcome.

    >>> status_of({"ok": True}), status_of({"ok": False}), status_of({"ok": False, "withheld": True})
    (0, 3, 4)
    """
    return ANSWERED if told["ok"] else IMPLAUSIBLE if told.get("withheld") else ENDED


@dataclass(frozen=True)
class UpResult:
    """What came of it: every party's outcome, who was started again, and who sent to whom."""

    study: Study
    outcomes: dict[str, dict[str, Any]]
    restarts: dict[str, int]
    gone: dict[str, str]
    """Parties without an outcome, and why."""
    notes: tuple[str, ...]
    seconds: dict[str, float]
    refused: frozenset[str] = frozenset()
    """Those of the parties that are gone who declined."""
    silent: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What parties without an outcome had spent, from their ledgers."""
    files: dict[str, Path] = field(default_factory=dict)
    """Of a training: where the model and its card were written."""
    bytes: dict[str, int] = field(default_factory=dict)
    """Of a training: what each party has sent, when it last told."""

    @property
    def answered(self) -> dict[str, dict[str, Any]]:
        """The outcomes of the parties that hold an answer."""
        return {name: told for name, told in self.outcomes.items() if told["ok"]}

    @property
    def ok(self) -> bool:
        """Whether everybody who is still there holds the answer, and all the same one."""
        agree = len({(told["attempt"], told["digest"]) for told in self.answered.values()}) == 1
        return agree and len(self.answered) == len(self.outcomes)

    @property
    def answer(self) -> dict[str, Any] | None:
        """The answer, as the first party that has one holds it."""
        return next((told["answer"] for told in self.answered.values() if told["answer"] is not None), None)

    @cached_property
    def evidence(self) -> list[dict[str, Any]]:
        """Proofs that somebody signed two different things, each once, whoever found it."""
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        for told in self.outcomes.values():
            for one in told.get("evidence", ()):
                found.setdefault((one["party"], one["kind"], one["attempt"], one["index"]), one)
        return list(found.values())

    @cached_property
    def blamed(self) -> dict[str, str]:
        """Who did what no honest party does, short of saying two things, and what, by those who noticed."""
        return {one["party"]: one["why"] for told in self.outcomes.values() for one in told.get("blamed", ())}

    @cached_property
    def signatures(self) -> dict[str, str]:
        """Who signed the answer, where answers are signed: all signatures that anybody holds."""
        found = {name: signed for told in self.answered.values() for name, signed in told.get("signatures", {}).items()}
        return dict(sorted(found.items(), key=lambda one: self.study.index(one[0])))

    @property
    def transcript(self) -> Any:
        """What happened in the attempt that gave the answer, as `account(protocol, transcript=…)` takes it."""
        if self.looked_back is not None:
            return self.looked_back.course
        return transcript_of(self.study, self._sent(), self._attempt)

    @cached_property
    def looked_back(self) -> Hindsight | None:
        """What the run really gave away, where more is known of that than the promise (`Kind.looked_back`)."""
        return self.study.running.looked_back(self.outcomes)

    @property
    def messages(self) -> Transcript:
        """Who sent to whom in which round, whatever the protocol: for pictures and counts."""
        known = None if self.looked_back is None else self.looked_back.messages(self.study.n)
        return messages_of(len(self.study.everybody), self._sent(), self._attempt) if known is None else known

    @property
    def _attempt(self) -> int:
        """The attempt that gave the answer; 0 if none did."""
        return next((int(told["attempt"]) for told in self.answered.values()), 0)

    def _sent(self) -> dict[int, list[tuple[int, int, int]]]:
        return {self.study.index(name): told["sent"] for name, told in self.outcomes.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: result, guarantee, summary of the transcript."""
        study, first = self.study, next(iter(self.answered.values()), None)
        promised = study.promise()
        delta = study.privacy.delta
        spent = [told["spent"] for name, told in self.outcomes.items() if name in study.names]
        spent += [told for name, told in self.silent.items() if name in study.names]
        sizes = spent[0]["epsilon"] if spent else {}
        transcript = self.messages
        return {
            "study": {"name": study.name, "hash": study.hash.hex(), "parties": study.n, "task": study.task.describe()},
            "ok": self.ok,
            "result": self.answer,
            "attempt": None if first is None else first["attempt"],
            "roster": None if first is None else first["roster"],
            "total": None if first is None else first["total"],
            **({"signatures": self.signatures} if study.running.threshold is not None else {}),
            "evidence": self.evidence,
            "blamed": self.blamed,
            "guarantee": {
                "delta": delta,
                "colluders": study.privacy.colluders,
                "promised_epsilon": _plain(promised.worst_epsilon(delta)),
                "spent_epsilon": {k: _plain(max(one["epsilon"][k] for one in spent)) for k in sizes},
                "ledger_epsilon": {k: _plain(max(one["ledger"]["epsilon"][k] for one in spent)) for k in sizes},
                "ledger_fixed": {k: _plain(max(one["ledger"]["fixed"][k] for one in spent)) for k in sizes},
                "contributions": max((one["contributions"] for one in spent), default=0),
                "unit": str(study.task.unit),
                "claim": promised.claim.value,
                "assumptions": list(promised.assumptions),
            },
            "transcript": {"rounds": transcript.rounds, "messages": len(transcript)},
            **({"bytes_sent": dict(self.bytes)} if self.bytes else {}),
            **({} if self.looked_back is None else {self.looked_back.key: self.looked_back.to_dict()}),
            "parties": {
                name: {
                    "ok": name in self.answered,
                    "contributed": self.outcomes[name]["contributed"] if name in self.outcomes else None,
                    "restarts": self.restarts.get(name, 0),
                    "reason": self.gone.get(name) or self.outcomes.get(name, {}).get("reason"),
                }
                for name in study.everybody
            },
            "notes": list(self.notes),
            "seconds": {name: round(spent, 3) for name, spent in self.seconds.items()},
            **({"files": {name: str(path) for name, path in self.files.items()}} if self.files else {}),
        }


def transcript_of(study: Study, sent: Mapping[int, Iterable[tuple[int, int, int]]], attempt: int) -> Any:
    """The transcript of an attempt, from what each party has sent: (attempt, round, to).

    Of averages, gossip and rings it is the one that a simulation writes. A flood's rounds are the links that contributions
    had crossed before; which way came first is up to the wires.
    """
    return study.running.transcript(messages_of(len(study.everybody), sent, attempt))


def messages_of(n: int, sent: Mapping[int, Iterable[tuple[int, int, int]]], attempt: int) -> Transcript:
    """Who sent to whom in which round of an attempt."""
    rounds: dict[int, list[tuple[int, int]]] = {}
    for sender, messages in sent.items():
        for its_attempt, when, to in messages:
            if its_attempt == attempt:
                rounds.setdefault(when, []).append((sender, to))
    patterns = [np.array(rounds[t], dtype=np.int64) for t in sorted(rounds)]
    return Transcript(n, tuple(patterns), np.arange(len(patterns), dtype=np.int64))


def _plain(value: float) -> float | str:
    return value if np.isfinite(value) else "inf"


def exit_code(result: UpResult) -> int:
    """0: everybody who is there holds the same answer; 2: refused; 3: the study ended without one; 4: it is withheld;
    1: anything else.
    """
    if result.ok:
        return ANSWERED
    if result.outcomes and not result.answered:
        return IMPLAUSIBLE if any(told.get("withheld") for told in result.outcomes.values()) else ENDED
    if result.outcomes:
        return FAILED
    return REFUSED if result.refused else FAILED
