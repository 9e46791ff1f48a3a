"""The report on a study as one HTML file: no script, nothing from outside, for the screen and for paper.

Everything that the page says is in the facts (`netdp.report.study.facts`); here they become the rows of its tables, and the
template `study.html` gives them their form. Whatever comes from a file is escaped, and the page's own content security policy
forbids everything but its one style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from netdp.peers.study.explanation import CODE
from netdp.privacy.wording import readable
from netdp.report.study.accuracy import percent_up, rare_words

from ..audit import at_least
from ..pages import formula, svg, whole_page
from ..run import answer_lines
from .pictures import loss_chart, network_picture, network_words
from .wording import Facts, capital, figure, guessed, loss, small, when, who

if TYPE_CHECKING:
    from netdp.peers.study.study import Study

GENERATOR = "netdp report"
"""By this name a page is known to be one of ours."""
_WORDS = (capital, guessed, percent_up, formula, rare_words, readable, small, when, who)
"""What the template says numbers and names with."""


def report_page(study: Study, said: Facts) -> str:
    """The whole page, from what `report_facts` says of the study."""
    parts = {**_promised(said), **_happened(said), **_audited(said), **_grounds(said)}
    return whole_page(
        "study.html", "study.css", said=said, generator=GENERATOR, code=CODE, chart=svg(loss_chart(said)),
        network=svg(network_picture(study)), network_words=network_words(study),
        **parts, **{one.__name__: one for one in _WORDS},
    )  # fmt: skip


# ── before anything is sent ───────────────────────────────────────────────────────────────────────────────────────────


def _promised(said: Facts) -> dict[str, Any]:
    """Losses by the size of a coalition, beliefs, and the expected error beside local DP and a trusted curator."""
    losses = [
        [
            capital(row["who"]), loss(float(row["epsilon"]), said["promised"]["epsilon"]), small(row["delta"]), row["claim"],
            percent_up(row["right_guesses"]), "" if row["promised"] is None else f"at most {row['promised']:g}",
            str(row["attempts"]),
        ]
        for row in said["losses"]
    ]  # fmt: skip
    return {
        "losses": losses,
        "promised": [i for i, row in enumerate(said["losses"]) if row["promised"] is not None],
        "everybody": _everybody(said),
        "chart_words": _curve_words(said),
        "beliefs": [[percent_up(one["before"]), percent_up(one["after"])] for one in said["meaning"]["beliefs"]],
        "accuracy": _accuracy(said),
    }


def _everybody(said: Facts) -> str:
    """What all others together learn, or that nothing is stated of so many."""
    if not said["curve"] or said["curve"][-1][0] < said["smallest_roster"] - 1:
        return (
            "What larger groups than these can learn together is not stated here; what is left against others who deviate, below "
            "(“Against whom the promise holds”)."
        )
    epsilon = float(said["curve"][-1][1])
    bound = "nothing bounds it" if math.isinf(epsilon) else f"ε = {readable(epsilon)}"
    guess = percent_up(said["losses"][-1]["right_guesses"])
    return (
        f"If everybody else puts together what they have, against a single party: {bound}, and a guess is right in at most "
        f"{guess} of cases. Then only a party's own noise protects it."
    )


def _curve_words(said: Facts) -> str:
    terms = said["promised"]
    out = f"The red mark is what the study promises: ε ≤ {terms['epsilon']:g} to {who(said, terms['colluders'])}."
    unbounded = [k for k, e in said["curve"] if e == "inf"]
    if unbounded:
        out += f" From {unbounded[0]} on nothing bounds it."
    sizes = [k for k, _ in said["curve"]]
    if sizes and len(sizes) < sizes[-1] - sizes[0] + 1:
        out += " Between two points: no more than at the larger one."
    return out


def _accuracy(said: Facts) -> dict[str, Any]:
    """The table of errors; without its column where none is predicted."""
    title = "Error of each count" if said["counts"] else "Error of the answer"
    rows = [
        [row["way"], row["law"], row["error"], figure(row["times"]), row["trust"]] for row in said["accuracy"]["rows"]
    ]
    marked = [i for i, row in enumerate(rows) if row[0] == "this study"]
    return _filled(["Way", "By", title, "Error, in the best curator's", "Who must be trusted"], rows, {2, 3}) | {
        "marked": marked
    }


def _filled(columns: Sequence[str], rows: Sequence[Sequence[Any]], numbers: set[int]) -> dict[str, Any]:
    """A table without the columns that have nothing in them; `numbers` are the columns of numbers."""
    kept = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    return {
        "columns": [columns[place] for place in kept],
        "rows": [[row[place] for place in kept] for row in rows],
        "numbers": [new for new, place in enumerate(kept) if place in numbers],
    }


# ── what happened ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _happened(said: Facts) -> dict[str, Any]:
    """What the ledgers say, if somebody gave any."""
    found, limit = said["happened"], said["promised"]["epsilon"]
    if found is None:
        return {}
    spent, coarse = [], False
    for row in said["losses"]:
        cost = found["spent"].get(str(row["colluders"]))
        if cost is not None:
            shown = cost if isinstance(cost, str) else loss(cost, limit)
            both = found["ledgers"][str(row["colluders"])]
            whole = [one if isinstance(one, str) else readable(one) for one in (both["epsilon"], both["fixed"])]
            spent.append([capital(row["who"]), loss(float(row["epsilon"]), limit), shown, *whole])
            coarse |= row["promised"] is None and not isinstance(cost, str) and cost > float(row["epsilon"])
    ledgers = [
        [
            name,
            (one["ledger"], "good" if one["ledger"] == "in order" else "bad"),
            "by its owner" if one["signed"] else "nothing to sign" if not one["rows"] else "no",
            str(one["rows"]),
            str(one["published"]),
            "" if one["starts"] is None else str(one["starts"] - 1),
            one["problem"] or ("corrected after the run" if one.get("corrected") else ""),
        ]
        for name, one in found["parties"].items()
    ]
    columns = ["Party", "Ledger", "Signed", "Rows in all", "Published here", "Restarts", "Remark"]
    return {
        "run_in_short": _run_in_short(said),
        "spent": spent,
        "coarse": coarse,
        "ledgers": _filled(columns, ledgers, {3, 4, 5}),
        "answer": None if found["answer"] is None else _answer(found["answer"]),
    }


def _run_in_short(said: Facts) -> str:
    """Who took part, when, and what it cost."""
    found, terms = said["happened"], said["promised"]
    began = "" if found["began"] is None else f" on {when(found['began'])}"
    if found["roster"] is None:
        out = f"Begun{began}; no answer is in these homes."
    else:
        out = f"{len(found['roster'])} of {said['n']} parties took part{began}. {_held(found)}"
    if said["training"] is None:
        times, allowed = (
            "once" if number == 1 else f"{number} times" for number in (found["published"], found["attempts_allowed"])
        )
        out += f" A party published {times} at most, and was allowed to {allowed}."
    spent = found["spent"].get(str(terms["colluders"]))
    if spent is not None and not isinstance(spent, str):
        against = f"at δ = {small(terms['delta'])} to {who(said, terms['colluders'])}"
        # how many attempts it takes may be decided by somebody who has seen an answer
        out += f" If all had been fixed beforehand, it cost ε = {loss(spent, terms['epsilon'])} {against}; promised "
        out += f"{terms['epsilon']:g}, whatever was chosen."
    return out


def _held(found: Mapping[str, Any]) -> str:
    homes, attempt = len(found["answered"]), f"of attempt {found['attempt']}"
    if homes == 1:
        return f"One home here holds an answer, {attempt}."
    same = "the same answer" if found["same"] else "different answers"
    return f"{homes} homes here hold {'an estimate of its own each' if found['own_answers'] else same}, {attempt}."


def _answer(answer: dict[str, Any]) -> list[tuple[str, str]]:
    if answer["kind"] != "train":
        return answer_lines(answer)
    return [
        ("model", f"{answer['model']}, {answer['parameters']:,} numbers"),
        *(
            (key, f"{value:.4g}" if isinstance(value, int | float) else str(value))
            for key, value in (answer["evaluation"] or {}).items()
        ),
    ]


# ── an audit ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _audited(said: Facts) -> dict[str, Any]:
    """What an audit found, if there is one."""
    found = said["audit"]
    if found is None:
        return {}
    findings = [
        [
            row["name"], row["who"], row["about"], f"{readable(float(row['claimed']))} ({row['claim']})",
            at_least(float(row["measured"])), f"{row['trials']:,}", _verdict(row["verdict"], row["bad"]),
        ]
        for row in found["rows"]
    ]  # fmt: skip
    checks = [
        [one["name"], _verdict("ok" if one["ok"] else "NOT OK", not one["ok"]), one["words"]] for one in found["checks"]
    ]
    return {"audit_in_short": _audit_in_short(found), "findings": findings, "checks": checks}


def _audit_in_short(found: Mapping[str, Any]) -> str:
    """The verdict in a sentence."""
    if found["ok"]:
        return "Nothing was refuted."
    parts = [f"refuted: {', '.join(found['refuted'])}"] if found["refuted"] else []
    parts += [f"not as it should be: {', '.join(found['failed'])}"] if found["failed"] else []
    worst = "The system gives away more than is claimed, or is not what it claims to be; do not rely on it."
    return f"{capital('; '.join(parts))}. {worst}"


def _verdict(words: str, bad: bool) -> tuple[str, str]:
    return words, "bad" if bad else "good" if words in ("ok", "holds", "attained") else "soft"


# ── what all rests on ─────────────────────────────────────────────────────────────────────────────────────────────────


def _grounds(said: Facts) -> dict[str, Any]:
    """Assumptions with who sees to them; parties with addresses, fingerprints and signatures, as far as they are there."""
    known, signed = said["parties"], said["signatures"]
    parties = [
        [
            one["name"], one["address"] or "none yet", _in_two_lines(one["fingerprint"]),
            str(signed["problems"].get(one["name"], "signed")) if signed["complete"] else "",
        ]
        for one in known
    ]  # fmt: skip
    names = {one["name"] for one in known}
    return {
        "assumed": [[one["assumption"], capital(one["by"]), one["how"]] for one in said["assumed"]],
        "parties": parties if any(one["fingerprint"] or one["address"] for one in known) else [],
        "strange": [f"{name}: {why}" for name, why in signed["problems"].items() if name not in names],
    }


def _in_two_lines(mark: str | None) -> str:
    return "no card yet" if mark is None else f"{mark[:39]}\n{mark[40:]}"
