"""A result that anybody can check who has the study: the answer, whose numbers are in it, and who signed it.

    {"format": "netdp result 1", "study": {"name", "hash"}, "attempt", "roster", "total", "answer", "signatures": {party: hex}}

In a study with a threshold every party signs, once it holds the sum of an attempt, the hash of (study, attempt, whose
contributions are in it, the sum): `netdp.peers.recovery.closing.answer_digest`. The answer follows from the sum. So with the study
alone, which has everybody's public key, all of it can be checked (`verify`), years later and by people who took no part.

**What k signatures prove.** Who signs may lie. The study says how many parties may collude, c of them. If more than c have signed,
at least one of them is honest, and an honest party signs only the sum that it has computed itself from what the roster handed in;
all honest parties compute the same one (docs/proofs/masked.md#one-attempt). c signatures or fewer prove nothing. None proves that
what a party handed in was true.
"""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netdp.errors import FileFormatError, InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.peers.messages import Item, ItemKind, Key
from netdp.peers.recovery.closing import answer_digest
from netdp.peers.study.study import Study
from netdp.peers.terms import SPARE, Terms

FORMAT = "netdp result 1"

_CLOSE = 1e-9
"""Answers that are computed on another machine may differ by so much, relatively."""


def check_signs(study: Study) -> None:
    """Refuse a study whose parties sign no answer."""
    if study.running.threshold is None:
        raise InvalidValue(
            f"the parties of the study {study.name!r} sign no answer: they do where members open a sum together, in a masked-sum "
            "with a threshold; the answer is what `netdp peer run` says"
        )
    if not study.is_complete:
        raise InvalidValue(
            f"the study {study.name!r} is a draft, which has no keys to check signatures with; give the one that was signed"
        )


def result_of(study: Study, kept: Mapping[str, Any]) -> dict[str, Any]:
    """The result as plain values, from the outcome that a party's folder keeps."""
    check_signs(study)
    total = kept.get("total")
    if total is None:
        total = np.frombuffer(base64.b64decode(kept["resume"]["total"]), dtype="<f8").tolist()
    order = study.names.index
    return {
        "format": FORMAT,
        "study": {"name": study.name, "hash": study.hash.hex()},
        "attempt": kept["attempt"],
        "roster": list(kept["roster"]),
        "total": total,
        "answer": kept["answer"],
        "signatures": {name: kept["signatures"][name] for name in sorted(kept.get("signatures", {}), key=order)},
    }


def merged(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The results of several parties as one, with all signatures; refuses results that differ."""
    names = list(results)
    first = dict(results[names[0]])
    for name in names[1:]:
        if any(results[name][key] != first[key] for key in ("attempt", "roster", "total")):
            raise InvalidValue(
                f"{names[0]} and {name} hold different results; look at each by itself (--home), and verify it"
            )
        first["signatures"] = {**results[name]["signatures"], **first["signatures"]}
    return first


def write(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result as JSON."""
    path.write_text(json.dumps(result, allow_nan=False) + "\n", "utf-8")


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A result as it stands in a file; what is listed twice is kept in "twice"."""
    twice: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in found]
        twice.extend(sorted({name for name in names if names.count(name) > 1}))
        return dict(found)

    try:
        told = json.loads(Path(path).read_text("utf-8"), object_pairs_hook=pairs)
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise FileFormatError(path, None, "is no JSON; a result is written by netdp study result --out") from None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise FileFormatError(path, None, f'is no result: it does not say "format": "{FORMAT}"')
    return told | ({"twice": twice} if twice else {})


@dataclass(frozen=True)
class ResultCheck:
    """What came of checking a result.

    problems   what is wrong with it, in words; empty if nothing is
    signed     whose signatures fit
    unsigned   members whose numbers are in it and whose signature is not
    answer     computed again from the total; None if that cannot be
    """

    problems: tuple[str, ...]
    signed: tuple[str, ...] = ()
    unsigned: tuple[str, ...] = ()
    answer: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        """Whether all fits, and more have signed than may collude."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "ok": self.ok, "problems": list(self.problems), "signed": list(self.signed), "unsigned": list(self.unsigned),
            "answer": self.answer,
        }  # fmt: skip


def proved_words(study: Study, signed: int) -> str:
    """What so many signatures prove."""
    colluders, least = study.privacy.colluders, signed - study.privacy.colluders
    many = "1 party colludes" if colluders == 1 else f"{colluders} parties collude"
    if least <= 0:
        return (
            f"{signed} signature{' proves' if signed == 1 else 's prove'} nothing, for all may be of colluders: the study says "
            f"that at most {many}. At least {colluders + 1} are needed; ask other parties for theirs."
        )
    who = (
        "one of these signatures is that of an honest party"
        if least == 1
        else f"{least} of these are of honest parties"
    )
    return (
        f"At most {many}, says the study; so at least {who}. Honest parties sign the sum that they have computed themselves, and "
        "all of them the same one. What each party handed in may still be untrue."
    )


def verify(study: Study, result: Mapping[str, Any]) -> ResultCheck:
    """Check a result with the study alone: study, roster, total, answer, and every signature by its party's card."""
    check_signs(study)
    stated = result.get("study")
    if not isinstance(stated, Mapping) or stated.get("hash") != study.hash.hex():
        theirs = str(stated.get("hash"))[:16] if isinstance(stated, Mapping) else "none"
        return ResultCheck(
            (f"it is a result of another study ({theirs}…), not of this one ({study.hash.hex()[:16]}…)",)
        )
    problems = [f"it lists {name} twice" for name in result.get("twice", ())]
    most = study.privacy.attempts + SPARE
    attempt, roster = result.get("attempt"), result.get("roster")
    if type(attempt) is not int or not 1 <= attempt <= most:
        return ResultCheck(
            (*problems, f"there is no attempt {attempt!r} in this study; they are numbered from 1 to {most}")
        )
    members = _members(study, roster, problems)
    total = _total(study, result.get("total"), problems)
    if members is None or total is None:
        return ResultCheck(tuple(problems))
    answer = study.answer(total, len(members))
    if not _same(result.get("answer"), answer):
        problems.append("the answer that it states does not follow from its total")
    if (times := study.running.beyond(total, len(members))) > 1:
        problems.append(
            f"its total is {times:.3g} times as far out as {len(members)} parties and their noise can bring it"
        )
    digest = answer_digest(study.hash, attempt, members, total)
    signed = _signed(study, result.get("signatures"), attempt, digest, problems)
    if len(signed) <= study.privacy.colluders:
        problems.append(proved_words(study, len(signed)).rstrip("."))
    unsigned = tuple(study.names[u] for u in members if study.names[u] not in signed)
    return ResultCheck(tuple(problems), tuple(signed), unsigned, answer)


def _members(study: Study, roster: Any, problems: list[str]) -> tuple[int, ...] | None:
    """The numbers of the roster; None if it is none."""
    if not isinstance(roster, list) or not all(isinstance(name, str) for name in roster):
        problems.append("its roster is no list of names")
        return None
    strangers = [name for name in roster if name not in study.names]
    if strangers:
        problems.append(f"its roster names {strangers[0]!r}, which is no party of the study")
        return None
    members = tuple(study.index(name) for name in roster)
    if list(members) != sorted(set(members)):
        problems.append("its roster names somebody twice, or not in the order of the study")
        return None
    if len(members) < study.smallest_roster:
        problems.append(f"its roster has {len(members)} parties; the study asks for {study.smallest_roster}")
        return None
    return members


def _total(study: Study, total: Any, problems: list[str]) -> FloatArray | None:
    wanted = study.task.dimension
    fits = isinstance(total, list) and len(total) == wanted
    if not fits or not all(type(one) in (int, float) and abs(one) < 1e300 for one in total):
        problems.append(f"its total is no list of {wanted} finite number{'' if wanted == 1 else 's'}")
        return None
    return np.array(total, dtype=np.float64)


def _signed(study: Study, signatures: Any, attempt: int, digest: bytes, problems: list[str]) -> list[str]:
    """Whose signatures fit, in the order of the study."""
    if not isinstance(signatures, Mapping):
        problems.append("it has no list of signatures")
        return []
    found, terms = [], Terms(study, 0)
    for name, text in signatures.items():
        if name not in study.names:
            problems.append(f"{name!r} signed, and is no party of the study")
            continue
        try:
            signature = bytes.fromhex(text)
        except (TypeError, ValueError):
            signature = b""
        if terms.verify(Item(Key(ItemKind.ANSWER, attempt, study.index(name)), digest, signature)):
            found.append(name)
        else:
            problems.append(f"the signature of {name} does not fit: this is not what {name} signed")
    return sorted(found, key=study.index)


def _same(stated: Any, computed: Any) -> bool:
    """Whether two answers are the same, numbers within rounding."""
    if isinstance(computed, dict):
        return isinstance(stated, dict) and stated.keys() == computed.keys() and all(
            _same(stated[key], value) for key, value in computed.items()
        )  # fmt: skip
    if isinstance(computed, list | tuple):
        return isinstance(stated, list) and len(stated) == len(computed) and all(map(_same, stated, computed))
    if type(computed) is float:
        return type(stated) in (int, float) and math.isclose(stated, computed, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return bool(stated == computed)
