"""What the record of a study says, for a report: what an audit found, and what the ledgers of its parties hold.

**The audit** is read from the output of `netdp audit --json`, if it is about this very study.

An audit says whose it is: the study's hash, and the digest of its terms, which a draft has, too. One that names another study, or
none, is refused: a report must not borrow somebody else's verdict.

**What really happened** is read from the ledgers of those who took part: who published how often, and what that cost.

The folder is that of `netdp up --folder`, with a home for every party, or one party's own home. Only what a report may show
is read: the ledger, the public card beside the keys, and, if somebody asks for it, the answer. No key is opened.

**What was spent** is added up from the ledger's entries, as `netdp ledger show` does it, and only if the ledger is in order:
chain of hashes, signature of its owner, one contribution for every entry. The largest over all parties whose ledgers are here
is stated, and of whom there is none is said.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ValidationError

from netdp.audit.findings import Audit, Verdict
from netdp.errors import FileFormatError, InvalidValue, NetdpError
from netdp.peers.identity import Card
from netdp.peers.ledger.entries import CORRECTS, LedgerBroken, spent, total
from netdp.peers.ledger.store import Store
from netdp.peers.status import look
from netdp.peers.study.digest import identity_of, terms_of
from netdp.peers.study.study import Study
from netdp.privacy.guarantee import Claim

if TYPE_CHECKING:
    from netdp.peers.ledger.entries import Entry

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


_DATABASE = "peer.db"


def study_of_run(study: Study, path: Path, folder: Path) -> tuple[Study, Path]:
    """The study that ran in this folder, and its file: the one that was given, or the one that was made from that draft."""
    if not folder.is_dir():
        raise InvalidValue(f"{folder} is no folder; give that of `netdp up --folder`, or one party's home")
    if study.is_complete:
        return study, path
    if (folder / _DATABASE).exists():
        raise InvalidValue(
            f"{path} is a draft, and {folder} is one party's home; give the study that was signed, with its keys"
        )
    wanted, found = terms_of(study), []
    for file in sorted(folder.glob("study*.toml")):
        try:
            made = Study.read(file)
        except (NetdpError, OSError):
            continue
        if made.is_complete and terms_of(made) == wanted:
            found.append((made, file))
    if len(found) == 1:
        return found[0]
    if not found:
        raise InvalidValue(
            f"no study in {folder} was made from {path}; give the folder of its run, or the study that ran"
        )
    listed = ", ".join(str(file) for _, file in found)
    raise InvalidValue(f"{path} ran more than once in {folder}; name the study that is meant instead: {listed}")


def happened(study: Study, folder: Path, sizes: Iterable[int], *, with_answer: bool = False) -> dict[str, Any]:
    """What the ledgers in a folder say of this complete study, as plain values.

    sizes        of coalitions, as the study counts them (a curator comes on top)
    with_answer  whether the answer is read and told
    """
    homes = {name: home for name in study.everybody if (home := _home(study, folder, name)) is not None}
    if not homes:
        raise InvalidValue(
            f"{folder} holds the ledger of no party of the study {study.name!r}; give the folder of its run"
        )
    told: dict[str, dict[str, Any]] = {}
    whole: dict[str, list[Entry]] = {}
    read: dict[str, list[Entry]] = {}
    answers: dict[str, dict[str, Any]] = {}
    for name, home in homes.items():
        told[name], entries, result = _party(study, name, home)
        if entries is not None:
            whole[name], read[name] = entries, _of(study, entries)
        if result is not None:
            answers[name] = result
    if not any(read.values()) and not answers:
        raise InvalidValue(
            f"no ledger in {folder} has an entry of the study {study.name!r} ({study.hash.hex()[:12]}…): it did not run "
            "there"
        )
    times = sorted(entry.time for entries in read.values() for entry in entries)
    first = next(iter(answers.values()), None)
    return {
        "folder": str(folder),
        "parties": told,
        "missing": [name for name in study.everybody if name not in homes],
        "began": times[0] if times else None,
        "ended": times[-1] if times else None,
        "spent": _spent(study, read, sizes),
        "ledgers": _ledgers(study, whole, sizes),
        "published": max((one["published"] for one in told.values()), default=0),
        "attempts_allowed": study.privacy.attempts,
        "answered": sorted(answers, key=study.index),
        "attempt": None if first is None else int(first["attempt"]),
        "roster": None if first is None else [str(name) for name in first["roster"]],
        "same": len({result["digest"] for result in answers.values()}) <= 1,
        "own_answers": study.running.has_own_answers,
        "worse": sorted({name for name, result in answers.items() if result.get("worse")}, key=study.index),
        "accused": sorted({str(one["party"]) for result in answers.values() for one in result.get("evidence", ())}),
        "answer": first["answer"] if with_answer and first is not None else None,
        "answer_of": next(iter(answers)) if with_answer and answers else None,
    }


def _home(study: Study, folder: Path, name: str) -> Path | None:
    """A participant's home: a folder of its name, or the folder itself."""
    if os.path.lexists(folder / name / _DATABASE):
        return folder / name
    if os.path.lexists(folder / _DATABASE) and _card(folder).name == name:
        return folder
    return None


def _card(home: Path) -> Card:
    """The public card that lies beside a party's keys."""
    path = home / "keys" / "card.json"
    try:
        return Card.from_dict(json.loads(path.read_text("utf-8")))
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FileFormatError(path, None, f"is no card: {error}") from None


def _party(study: Study, name: str, home: Path) -> tuple[dict[str, Any], list[Entry] | None, dict[str, Any] | None]:
    """What is told of one participant, all its entries if the ledger is in order, and its outcome if it has one."""
    out: dict[str, Any] = {
        "ledger": "in order",
        "problem": None,
        "rows": 0,
        "signed": False,
        "published": 0,
        "starts": None,
    }
    state = look(home).state
    if state.get("hash") == study.hash.hex() and "starts" in state:
        out["starts"] = int(state["starts"])
    try:
        card = _card(home)
        with Store.open(home / _DATABASE, read_only=True) as store:
            checked = store.verify(card)
            whole, result = store.entries(), store.result(study.hash)
    except LedgerBroken as problem:
        return out | {"ledger": "BROKEN", "problem": str(problem)}, None, None
    except (NetdpError, OSError) as problem:
        return out | {"ledger": "cannot be read", "problem": str(problem)}, None, None
    entries = _of(study, whole)
    out |= {
        "rows": checked.rows,
        "signed": checked.signed,
        "published": len({one.attempt % CORRECTS for one in entries}),
    }
    out["corrected"] = any(entry.attempt > CORRECTS for entry in entries)
    if card != study.card(study.index(name)):
        out["problem"] = (
            "its keys are not those that the study lists: a home that was restored from a backup, or another one"
        )
    if any(not seam.complete for seam in checked.seams):
        out["problem"] = "restored from a backup: what was spent in between may be missing"
    return out, whole, result if result is not None and result.get("ok") else None


def _spent(study: Study, read: dict[str, list[Entry]], sizes: Iterable[int]) -> dict[str, float | str]:
    """ε that any so many learned from this study about any party whose ledger was read, had its attempts been fixed beforehand.

    "no bound" where the ledgers state none.
    """
    delta, unit = study.privacy.delta, str(study.task.unit)
    owners = [entries for name, entries in read.items() if name in study.names]  # a curator has no data
    found: dict[str, float | str] = {}
    for size in sizes if owners else ():
        # a curator is one of those who look, in the ledger
        against = size + study.running.has_curator
        worst = max(float(total(entries, against, unit).epsilon(delta)) for entries in owners)
        found[str(size)] = worst if math.isfinite(worst) else "no bound"
    return found


def _ledgers(study: Study, whole: dict[str, list[Entry]], sizes: Iterable[int]) -> dict[str, dict[str, float | str]]:
    """The same of whole ledgers, other studies included, the most of all that were read: whatever was chosen, and if fixed."""
    delta, unit = study.privacy.delta, str(study.task.unit)
    owners = [entries for name, entries in whole.items() if name in study.names]
    found: dict[str, dict[str, float | str]] = {}
    for size in sizes if owners else ():
        both = [spent(entries, size + study.running.has_curator, unit, delta) for entries in owners]
        most = {"epsilon": max(one.epsilon for one in both), "fixed": max(one.fixed for one in both)}
        found[str(size)] = {way: value if math.isfinite(value) else "no bound" for way, value in most.items()}
    return found


def _of(study: Study, entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.study == study.hash.hex()]
