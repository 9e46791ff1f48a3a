"""Everything that the report on a study says, as plain values: the page prints these, and `netdp report --json` does.

What `netdp study explain` says comes from there (`netdp.peers.study.explained`); what is added is what a reader wants who was not
there: who has signed, what each number means, against whom it holds, what really happened, what an audit found, who sees to each
assumption, and what computed it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netdp.errors import FileFormatError
from netdp.peers.study import signatures
from netdp.peers.study.explained import cautions, facts, losses_of, often, sections
from netdp.peers.study.same import terms_of
from netdp.privacy import Unit

from ..run_picture import coalition_sizes
from . import company, meaning
from .accuracy import comparison
from .enforced import enforced
from .happened import happened
from .versions import versions

if TYPE_CHECKING:
    from netdp.peers.study import Study

FORMAT = 1
_DRAWN = 16
"""At most so many sizes of coalitions are computed for the picture."""


def report_facts(
    study: Study,
    path: Path,
    *,
    run: Path | None = None,
    audit: Mapping[str, Any] | None = None,
    with_answer: bool = False,
    now: datetime | None = None,
) -> dict[str, Any]:
    """What the report says of a study in this file.

    run          the folder of a run of it (complete studies only: `happened.study_of_run` finds the one that ran)
    audit        what `audited.read_audit` or `audited.audit_told` has found
    with_answer  whether the answer is told
    """
    losses, notes = losses_of(study)
    said = facts(study, (losses, notes))
    terms, planned = study.privacy, losses.get(study.privacy.colluders)
    rows = [
        {
            "colluders": size,
            "who": said["who"][str(size)],
            "epsilon": said["epsilon"][str(size)],
            "delta": terms.delta,
            "claim": loss.claim.value,
            "certified": loss.is_certified,
            "right_guesses": meaning.right_guesses(float(said["epsilon"][str(size)]), terms.delta),
            "promised": terms.epsilon if size == terms.colluders else None,
            "attempts": terms.attempts,
        }
        for size, loss in losses.items()
    ]
    happening = None if run is None else happened(study, run, list(losses), with_answer=with_answer)
    protected = company.COMPANY[study.settings.kind]
    return {
        "report": FORMAT,
        "written": (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "file": str(path),
        "terms": terms_of(study),
        **said,
        "sections": [{"title": title, "sentences": lines} for title, lines in sections(said)],
        "cautions": cautions(said),
        "often": often(said),
        "n": study.n,
        "has_curator": study.running.has_curator,
        "network": {"name": study.graph.name, "links": study.graph.m},
        "adjacency": None if planned is None else _adjacency(planned),
        "claims": sorted({f"{loss.claim.meaning}" for loss in losses.values()}),
        "losses": rows,
        "meaning": {
            "sentences": meaning.sentences(terms.epsilon, terms.delta, study.task.unit),
            "beliefs": [
                {"before": before, "after": meaning.belief_after(before, terms.epsilon, terms.delta)}
                for before in meaning.PRIORS
            ],
            "proof": list(meaning.PROOF),
        },
        "company": {
            "against": protected.against,
            "curious": company.CURIOUS,
            "malicious": company.MALICIOUS,
            "promised_malicious": protected.malicious,
            "answer": protected.answer,
            "strangers": company.STRANGERS,
        },
        "open": dict(company.OPEN),
        "curve": _curve(study, rows),
        "accuracy": comparison(study),
        "assumed": [
            {"assumption": line, "by": who.by, "how": who.how}
            for line in said["assumptions"]
            for who in [enforced(line)]
        ],
        "references": [] if planned is None else list(planned.references),
        "references_of_meaning": list(meaning.REFERENCES),
        "signatures": _signed(study, path),
        "happened": happening,
        "audit": None if audit is None else dict(audit),
        "versions": versions(),
    }


def _adjacency(loss: Any) -> str:
    words = loss.adjacency.meaning_for_records if loss.unit is Unit.RECORD else loss.adjacency.meaning
    return f"“{loss.adjacency.value}”, {words}"


def _curve(study: Study, rows: list[dict[str, Any]]) -> list[list[Any]]:
    """[k, ε] for the picture: more sizes than the table has, where all coalitions of one size learn the same."""
    known = {row["colluders"]: row["epsilon"] for row in rows}
    if study.running.depends_on_size_only:
        wanted = [size for size in coalition_sizes(study.smallest_roster - 1, _DRAWN) if size not in known]
        found, _ = losses_of(study, wanted)
        at = {size: loss.worst_epsilon(study.privacy.delta) for size, loss in found.items()}
        known |= {size: value if math.isfinite(value) else "inf" for size, value in at.items()}
    return [[size, known[size]] for size in sorted(known)]


def _signed(study: Study, path: Path) -> dict[str, Any]:
    """Who has signed exactly this study, by the files beside it, as `netdp study verify` tells it."""
    if not study.is_complete:
        return {"complete": False, "all": False, "signed": [], "problems": {}}
    try:
        wrong = signatures.problems(study, signatures.read_all(path))
    except FileFormatError as problem:
        return {"complete": True, "all": False, "signed": [], "problems": {"a signature file": str(problem)}}
    signed = [name for name in study.everybody if name not in wrong]
    return {"complete": True, "all": not wrong, "signed": signed, "problems": wrong}
