"""Answers of the accountants and planners as plain values for the page; every number and every word from them, none of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.wording import readable
from netdp.protocols.accuracy import ExpectedError
from netdp.protocols.answers import (
    CURATOR,
    LOCAL,
    OWN,
    PUBLISHED,
    SHUFFLER,
    Answer,
    AnswerRow,
    at_the_same_privacy,
    error_dict,
    error_words,
)
from netdp.protocols.base import Protocol
from netdp.protocols.family import Way
from netdp.protocols.planning import Plan
from netdp.report.tables import distance_cells

from .controls import settings_of


def of_answer(answer: Answer) -> dict[str, Any]:
    """What observers learn, beside its alternatives; by distance where there is a network and they have names."""
    loss, delta, protocol = answer.loss, answer.delta, answer.protocol
    plain = answer.plain if answer.plain is None or answer.has_extras else OWN
    rows = [
        {
            "hops": row.hops, "parties": row.parties, "chosen": _number(row.own.epsilon),
            "published": _of(row, PUBLISHED), "plain": _of(row, plain),
        }
        for row in answer.by_distance
    ]  # fmt: skip
    reasons = {name: one for name, one in answer.alternatives.items() if isinstance(one, str)}
    others = {name: answer.other(name) for name in (PUBLISHED, LOCAL)}
    others["curator"] = answer.other(CURATOR, SHUFFLER)
    worst = {name: math.nan if one is None else one.worst_epsilon(delta) for name, one in others.items()}
    header, cells = distance_cells(answer) if answer.plain is not None and rows else _cells(answer, reasons)
    return {
        **_told(loss, delta, protocol, answer.error, answer.question),
        "distances": None if answer.distances is None else answer.distances.tolist(),
        "by_distance": rows,
        "table": {"header": header, "rows": cells},
        "local": _number(worst[LOCAL]),
        "curator": _number(worst["curator"]),
        "published": _number(worst[PUBLISHED]),
        "warning": "The published formula is below the exact loss at some distance: it is no bound."
        if answer.formula_fails
        else None,
        "reasons": reasons if rows else {},
    }


def _of(row: AnswerRow, name: str | None) -> float | str | None:
    return _number(row.losses[name].epsilon) if name in row.losses else None


def _cells(answer: Answer, reasons: dict[str, str]) -> tuple[list[str], list[list[str]]]:
    """By distance, with what is the same at all of them in every row; else one row for each alternative."""
    delta, names = answer.delta, [answer.loss.claim.label, *answer.alternatives]
    others = [answer.other(name) for name in answer.alternatives]
    figures = [
        readable(answer.epsilon),
        *("–" if one is None else readable(one.worst_epsilon(delta)) for one in others),
    ]
    if not answer.by_distance:
        rows = [[name, figure, reasons.get(name, "")] for name, figure in zip(names, figures, strict=True)]
        return ["", "worst ε", ""], rows
    known = [(name, figure) for name, figure in zip(names, figures, strict=True) if name not in reasons]
    shown = [row for row in answer.by_distance if not math.isnan(row.own.epsilon)]
    cells = []
    for row in shown:
        beside = [readable(row.losses[name].epsilon) if name in row.losses else figure for name, figure in known[1:]]
        cells.append([str(row.hops), f"{row.parties:,}", readable(row.own.epsilon), *beside])
    cells.append(["worst", f"{sum(row.parties for row in shown):,}", *(figure for _, figure in known)])
    return ["hops away", "parties", *(name for name, _ in known)], cells


def _told(
    loss: Guarantee, delta: float, protocol: Protocol, error: ExpectedError | str, question: str
) -> dict[str, Any]:
    """What all answers say; ε is written out in full, as `netdp account --json` does."""
    worst = loss.worst_epsilon(delta)
    return {
        "question": question,
        "about": protocol.describe(),
        "observers": list(loss.observers.parties),
        "roles": list(loss.observers.roles),
        "against": loss.observers.words,
        "found": None if loss.found is None else loss.found.sentence(delta),
        "delta": delta,
        "epsilon": [_number(e) for e in np.asarray(loss.epsilon(delta)).tolist()],
        "worst": _number(worst),
        "worst_words": readable(worst),
        "factor": None if loss.factor is None else {"worst": _number(loss.worst), "mean": _number(loss.mean_factor)},
        "claim": loss.claim.value,
        "label": loss.claim.label,
        "certified": loss.is_certified,
        "meaning": loss.claim.meaning,
        "unit": loss.unit.value,
        "adjacency": loss.adjacency.value,
        "assumptions": list(loss.assumptions),
        "references": list(loss.references),
        "error": error_dict(error),
        "error_words": error_words(protocol, error),
        "same_privacy": at_the_same_privacy(protocol, error, worst, delta),
    }


def of_plan(plan: Plan | Answer, way: Way) -> dict[str, Any]:
    """What a planner found: settings for the sliders, and the ways it compared."""
    if isinstance(plan, Answer):
        return {
            "settings": settings_of(plan.protocol, way), "options": [], "notes": [],
            "holds": f"against {plan.loss.observers.words}",
        }  # fmt: skip
    options = [
        {
            "name": option.name,
            "settings": settings_of(option.protocol, way) if type(option.protocol).__name__ == way.protocol else None,
            "epsilon": readable(plan.worst_epsilon(option)),
            "claim": option.guarantee.claim.value,
            "error": option.error.words,
            "curators": readable(option.rmse / plan.curator_rmse) if plan.curator_rmse > 0 else "–",
            "chosen": option is plan.best,
        }
        for option in plan.options
    ]
    usable = [one for one in options if one["settings"] is not None]
    best = next((one for one in usable if one["chosen"]), usable[0] if usable else None)
    if best is None:
        raise InvalidValue("no way that the planner found runs on this graph; choose only the noise")
    return {
        "settings": best["settings"], "options": options, "holds": plan.holds, "notes": list(plan.notes),
        "local": readable(plan.local_rmse), "curator": readable(plan.curator_rmse),
    }  # fmt: skip


def _number(value: float) -> float | str | None:
    """For JSON: nan is nothing, inf a word."""
    if math.isnan(value):
        return None
    return "inf" if math.isinf(value) else value
