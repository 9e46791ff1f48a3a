"""Answers of the accountants and planners as plain values for the page; every number and every word from them, none of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.planning import Plan
from netdp.privacy import Guarantee
from netdp.privacy.readable import readable
from netdp.protocols import Protocol
from netdp.report.accuracy import at_the_same_privacy, error_dict, error_words
from netdp.report.comparison import Comparison
from netdp.report.summary import Summary
from netdp.settings.catalogue import Way
from netdp.utility import ExpectedError

from .controls import settings_of


def of_gossip(summary: Summary) -> dict[str, Any]:
    """Gossip by distance: the formula, plain gossip, as chosen."""
    header, cells = summary.table()
    rows = [
        {
            "hops": int(row.group), "parties": row.parties, "published": row.published.worst_epsilon,
            "plain": row.plain.worst_epsilon, "chosen": row.chosen.worst_epsilon,
        }
        for row in summary.rows
    ]  # fmt: skip
    return {
        **_answer(summary.chosen, summary.delta, summary.protocol, summary.error, summary.question),
        "distances": summary.distances.tolist(),
        "by_distance": _finite(rows),
        "table": {"header": header, "rows": cells},
        "local": _number(summary.local_epsilon),
        "curator": _number(summary.curator_epsilon),
        "published": _number(summary.everyone.published.worst_epsilon),
        "warning": "The published formula is below the exact loss at some distance: it is no bound."
        if summary.published_fails
        else None,
    }


def of_any(comparison: Comparison) -> dict[str, Any]:
    """Any other protocol beside its alternatives; by distance where there is a network."""
    certified, delta, protocol = comparison.certified, comparison.delta, comparison.protocol
    others = {name: one for name, one in comparison.alternatives.items() if isinstance(one, Guarantee)}
    reasons = {name: one for name, one in comparison.alternatives.items() if isinstance(one, str)}
    worst = {name: one.worst_epsilon(delta) for name, one in others.items()}
    distances = _distances(protocol, certified)
    published = next((others[name] for name in others if name.startswith("published")), None)
    rows = [] if distances is None else _by_distance(distances, certified, published, delta)
    names = [certified.claim.label, *comparison.alternatives]
    figures = [
        readable(certified.worst_epsilon(delta)),
        *(readable(worst[n]) if n in worst else "–" for n in names[1:]),
    ]
    table: dict[str, Any] = {
        "header": ["", "worst ε", ""],
        "rows": [[n, figure, reasons.get(n, "")] for n, figure in zip(names, figures, strict=True)],
    }
    if rows:
        shown = [row for row in rows if row["chosen"] is not None]
        names, figures = map(
            list, zip(*((n, f) for n, f in zip(names, figures, strict=True) if n not in reasons), strict=True)
        )
        table = {"header": ["hops away", "parties", *names], "rows": []}
        for row in shown:
            beside = [
                _readable(row["published"]) if name.startswith("published") else figure
                for name, figure in zip(names[1:], figures[1:], strict=True)
            ]
            table["rows"].append([str(row["hops"]), f"{row['parties']:,}", _readable(row["chosen"]), *beside])
        table["rows"].append(["worst", f"{sum(row['parties'] for row in shown):,}", *figures])
    return {
        **_answer(certified, delta, protocol, comparison.error, comparison.question),
        "distances": None if distances is None else distances.tolist(),
        "by_distance": rows,
        "table": table,
        "local": _number(worst.get("local DP", math.nan)),
        "curator": _number(next((worst[n] for n in worst if n.startswith("trusted")), math.nan)),
        "published": None if published is None else _number(published.worst_epsilon(delta)),
        "warning": None,
        "reasons": reasons if rows else {},
    }


def _answer(
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


def _distances(protocol: Protocol, loss: Guarantee) -> np.ndarray[Any, np.dtype[np.int32]] | None:
    network, parties = protocol.network, loss.observers.parties
    return None if network is None or not parties else network.distances(parties)


def _by_distance(
    distances: np.ndarray[Any, np.dtype[np.int32]], certified: Guarantee, published: Guarantee | None, delta: float
) -> list[dict[str, Any]]:
    losses = [(certified, "chosen")] + ([] if published is None else [(published, "published")])
    epsilons = {name: np.asarray(one.epsilon(delta)) for one, name in losses}
    rows = []
    for hops in range(1, int(distances.max(initial=0)) + 1):
        members = distances == hops
        row: dict[str, Any] = {"hops": hops, "parties": int(members.sum()), "published": None, "plain": None}
        row |= {name: _number(_worst(epsilon[members])) for name, epsilon in epsilons.items()}
        rows.append(row)
    return rows


def _worst(values: FloatArray) -> float:
    counted = values[~np.isnan(values)]
    return float(counted.max()) if counted.size else math.nan


def of_plan(plan: Plan | Comparison, way: Way) -> dict[str, Any]:
    """What a planner found: settings for the sliders, and the ways it compared."""
    if isinstance(plan, Comparison):
        return {
            "settings": settings_of(plan.protocol, way), "options": [], "notes": [],
            "holds": f"against {plan.certified.observers.words}",
        }  # fmt: skip
    options = [
        {
            "name": option.name,
            "settings": settings_of(option.protocol, way) if type(option.protocol).__name__ == way.protocol else None,
            "epsilon": readable(plan.worst_epsilon(option)),
            "claim": option.guarantee.claim.value,
            "error": readable(option.rmse),
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


def _readable(value: float | str | None) -> str:
    return "–" if value is None else readable(math.inf if value == "inf" else float(value))


def _finite(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: _number(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
