"""The result of an audit, for a report: from the output of `netdp audit --json`, if it is about this very study.

An audit says whose it is: the study's hash, and the digest of its terms, which a draft has, too. One that names another study, or
none, is refused: a report must not borrow somebody else's verdict.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ValidationError

from netdp.audit import Audit, Verdict
from netdp.errors import FileFormatError, InvalidValue
from netdp.peers.study.same import identity_of
from netdp.privacy import Claim

if TYPE_CHECKING:
    from netdp.peers.study import Study

_LARGEST = 20_000_000
"""Bytes that a file is read to."""


def _number(given: Any) -> Any:
    return math.inf if given == "inf" else given


Number = Annotated[float, BeforeValidator(_number)]


class _Looking(BaseModel):
    """Who looks."""

    parties: list[int] = []
    roles: list[str] = []
    names: list[str] | None = None


class _Measured(BaseModel):
    """What an attack proved."""

    trials: int
    by_counts: Number
    epsilon: Number


class _Row(BaseModel):
    """One pair or coalition."""

    name: str
    observers: _Looking
    target: int
    target_name: str | None
    hops: int | None
    claimed: Number
    claim: Claim
    attack: str
    measured: _Measured
    verdict: Verdict


class _Check(BaseModel):
    """Something that is as it should be, or not."""

    name: str
    ok: bool
    words: str


class _Identity(BaseModel):
    """Whose audit it is."""

    name: str
    hash: str
    terms: str


class _Recording(BaseModel):
    """What was recorded."""

    study: str
    hash: str
    messages: int


class _File(BaseModel):
    """What `netdp audit --json` prints, as far as a report shows it."""

    title: str
    ok: bool
    delta: float
    confidence: float
    seed: int
    findings: list[_Row]
    by_distance: list[_Row] = []
    checks: list[_Check]
    notes: list[str]
    study: _Identity | None = None
    recordings: list[_Recording] = []


Of = Literal["simulation", "recording", "test run"]


def read_audit(path: Path, study: Study) -> dict[str, Any]:
    """The audit in this file as plain values, if it is about this study; refuses any other."""
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise FileFormatError(path, None, f"is larger than {_LARGEST:,} bytes: no output of netdp audit --json")
    try:
        found = _File.model_validate(json.loads(content))
    except (ValueError, RecursionError) as problem:
        place = _place(problem) if isinstance(problem, ValidationError) else "no JSON"
        raise FileFormatError(path, None, f"is no output of netdp audit --json ({place})") from None
    return _told(found, study, str(path))


def audit_told(audit: Audit, study: Study) -> dict[str, Any]:
    """An audit that was made just now, as plain values."""
    return _told(_File.model_validate(json.loads(json.dumps(audit.to_dict()))), study, "the audit")


def _told(found: _File, study: Study, where: str) -> dict[str, Any]:
    of = _about(found, study, where)
    bad = [row.name for row in (*found.findings, *found.by_distance) if row.verdict.is_bad]
    wrong = [check.name for check in found.checks if not check.ok]
    return {
        "of": of,
        "title": found.title,
        # from the rows, not from what the file says of itself
        "ok": not bad and not wrong,
        "refuted": bad,
        "failed": wrong,
        "delta": found.delta,
        "confidence": found.confidence,
        "seed": found.seed,
        "rows": [_row(row) for row in found.findings],
        "checks": [check.model_dump() for check in found.checks],
        "notes": found.notes,
        "attacks": sorted({row.attack for row in found.findings}),
        "messages": sum(one.messages for one in found.recordings),
    }


def _about(found: _File, study: Study, where: str) -> Of:
    """Whether an audit is of a simulation, a recording of this study, or a test run made from it; refuses a foreign one."""
    ours = identity_of(study)
    if found.recordings and all(one.hash == ours["hash"] for one in found.recordings):
        return "recording"
    if found.study is None:
        named = ", ".join(sorted({f"{one.study} ({one.hash[:12]}…)" for one in found.recordings}))
        if not named:
            raise InvalidValue(
                f"{where} does not say which study it is about; make it anew: netdp audit STUDY.toml --json > audit.json"
            )
    elif found.study.hash == ours["hash"] or found.study.terms == ours["terms"]:
        return "test run" if found.recordings else "simulation"
    else:
        named = f"{found.study.name} ({found.study.hash[:12]}…)"
    raise InvalidValue(
        f"{where} is an audit of another study, {named}, not of {study.name} ({ours['hash'][:12]}…); make one of this "
        "study: "
        "netdp audit STUDY.toml --json > audit.json"
    )


def _row(row: _Row) -> dict[str, Any]:
    who = [*(f"the {role}" for role in row.observers.roles), *(row.observers.names or map(str, row.observers.parties))]
    return {
        "name": row.name,
        "who": ", ".join(who[:4]) + (f" and {len(who) - 4} more" if len(who) > 4 else ""),
        "about": row.target_name or f"party {row.target}",
        "hops": row.hops,
        "claimed": row.claimed if math.isfinite(row.claimed) else "inf",
        "claim": row.claim.value,
        "measured": row.measured.epsilon if math.isfinite(row.measured.epsilon) else "inf",
        "by_counts": row.measured.by_counts if math.isfinite(row.measured.by_counts) else "inf",
        "trials": row.measured.trials,
        "verdict": row.verdict.value,
        "bad": row.verdict.is_bad,
    }


def _place(problem: ValidationError) -> str:
    first = problem.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
