"""The parts of a report that say what happened and what an audit found: from the facts to HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netdp.privacy.readable import readable

from ..audit import at_least
from ..run import answer_lines
from .html import Markup, joined, listed, table, tag
from .wording import Facts, capital, loss, small, when, who


def happening(said: Facts) -> Markup | None:
    """What the ledgers say; None if nobody gave any."""
    found = said["happened"]
    if found is None:
        return None
    out = [tag("p", run_in_short(said)), *_spent(said), *(tag("p", line) for line in _remarks(said))]
    return joined([*out, _ledgers(found), *_not_recorded(found), *_answer(found)])


def run_in_short(said: Facts) -> str:
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
        out += f" Spent: ε = {loss(spent, terms['epsilon'])} {against}; promised {terms['epsilon']:g}."
    return out


def _held(found: Mapping[str, Any]) -> str:
    homes, attempt = len(found["answered"]), f"of attempt {found['attempt']}"
    if homes == 1:
        return f"One home here holds an answer, {attempt}."
    what = (
        "an estimate of its own each"
        if found["own_answers"]
        else "the same answer"
        if found["same"]
        else "different answers"
    )
    return f"{homes} homes here hold {what}, {attempt}."


def _spent(said: Facts) -> list[Markup]:
    """Certified beforehand, and really spent."""
    rows, terms, coarse = [], said["promised"], False
    for row in said["losses"]:
        spent = said["happened"]["spent"].get(str(row["colluders"]))
        if spent is not None:
            limit = terms["epsilon"]
            shown = spent if isinstance(spent, str) else loss(spent, limit)
            rows.append([capital(row["who"]), loss(float(row["epsilon"]), limit), shown])
            coarse = coarse or (
                row["promised"] is None and not isinstance(spent, str) and spent > float(row["epsilon"])
            )
    if not rows:
        return []
    caption = f"Certified and really spent: ε at δ = {small(terms['delta'])}"
    made = table(
        caption,
        ["Who looks", "Certified beforehand", "Spent, the most of all ledgers here"],
        rows,
        numbers=(1, 2),
        narrow=True,
    )
    remarks = (
        ["No bound: the ledgers state nothing for so many together."]
        if any(row[2] == "no bound" for row in rows)
        else []
    )
    if coarse:
        remarks.append(
            "For other groups than the one promised for, a ledger may keep a coarser bound than what was certified: both hold, "
            "unless something is remarked below."
        )
    return [made, *(tag("p", line, class_="soft") for line in remarks)]


def _remarks(said: Facts) -> list[str]:
    found, out = said["happened"], []
    if found["missing"]:
        names = ", ".join(found["missing"])
        out.append(f"No ledger is here of: {names}. What was learned about these is bounded by the promise alone.")
    if found["worse"]:
        names = ", ".join(found["worse"])
        out.append(
            f"WORSE THAN PROMISED, by the ledgers of {names}: what really happened cost more, and the ledgers hold that."
        )
    if found["accused"]:
        out.append(f"Signed two different things under one name, with proof: {', '.join(found['accused'])}.")
    if not found["same"] and not found["own_answers"]:
        out.append("Not all hold the same answer: somebody cheats, or a home is not of this run.")
    return out


def _ledgers(found: Mapping[str, Any]) -> Markup:
    """One row per ledger; columns without anything in them are left out."""
    columns = ["Party", "Ledger", "Signed", "Rows in all", "Published here", "Restarts", "Remark"]
    rows: list[list[str]] = [
        [
            name,
            tag("span", one["ledger"], class_="good" if one["ledger"] == "in order" else "bad"),
            "by its owner" if one["signed"] else "nothing to sign" if not one["rows"] else "no",
            str(one["rows"]),
            str(one["published"]),
            "" if one["starts"] is None else str(one["starts"] - 1),
            one["problem"] or ("corrected after the run" if one.get("corrected") else ""),
        ]
        for name, one in found["parties"].items()
    ]
    kept = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    numbers = [new for new, place in enumerate(kept) if place in (3, 4, 5)]
    shown = [[row[place] for place in kept] for row in rows]
    return table(
        "Ledgers, checked when this report was written", [columns[place] for place in kept], shown, numbers=numbers
    )


def _not_recorded(found: Mapping[str, Any]) -> list[Markup]:
    if any(one["starts"] is not None for one in found["parties"].values()):
        return []
    return [tag("p", "How often a party was started again is not recorded in these homes.", class_="soft")]


def _answer(found: Mapping[str, Any]) -> list[Markup]:
    answer = found["answer"]
    if answer is None:
        return [tag("p", "The answer is not shown in this report.", class_="soft")] if found["answered"] else []
    if answer["kind"] == "train":
        shown = [("model", f"{answer['model']}, {answer['parameters']:,} numbers")]
        shown += [
            (key, f"{value:.4g}" if isinstance(value, int | float) else str(value))
            for key, value in (answer["evaluation"] or {}).items()
        ]
    else:
        shown = answer_lines(answer)
    own = f"The estimate of {found['answer_of']}; each of the others has its own"
    return [table(own if found["own_answers"] else "The answer", ["What", "Value"], shown, numbers=(1,), narrow=True)]


# ── audit ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

_OF = {
    "simulation": "The protocol of this study was run in simulation, many times, with one value of the target and with "
    "another.",
    "recording": "What the real peers of this study sent was recorded, checked and attacked.",
    "test run": "Real processes ran a test study made from this one: the same parties, network, protocol and noise, with data that "
    "are made to be found out in place of the real question. What they sent was recorded, checked and attacked.",
}
_HOW = (
    "An attack got all that the observers hold, knew everything but the target's value, and guessed which of two values it "
    "was. How "
    "often it was right proves a lower bound on ε, which must not exceed what is claimed."
)


def audit(said: Facts) -> Markup | None:
    """What an audit found; None if there is none."""
    found = said["audit"]
    if found is None:
        return None
    out = [tag("p", tag("strong", audit_in_short(found))), tag("p", _OF[found["of"]])]
    if found["rows"]:
        out += [tag("p", _HOW), _findings(found), tag("p", _confidence(found), class_="soft")]
    if found["checks"]:
        rows = [
            [one["name"], _verdict("ok" if one["ok"] else "NOT OK", not one["ok"]), one["words"]]
            for one in found["checks"]
        ]
        out.append(table("Checks", ["What", "Result", "What was looked at"], rows))
    return joined([*out, *([listed(found["notes"])] if found["notes"] else [])])


def audit_in_short(found: Mapping[str, Any]) -> str:
    """The verdict in a sentence."""
    if found["ok"]:
        return "Nothing was refuted."
    parts = [f"refuted: {', '.join(found['refuted'])}"] if found["refuted"] else []
    parts += [f"not as it should be: {', '.join(found['failed'])}"] if found["failed"] else []
    worst = "The system gives away more than is claimed, or is not what it claims to be; do not rely on it."
    return f"{capital('; '.join(parts))}. {worst}"


def _findings(found: Mapping[str, Any]) -> Markup:
    rows = [
        [
            row["name"], row["who"], row["about"], f"{readable(float(row['claimed']))} ({row['claim']})",
            at_least(float(row["measured"])), f"{row['trials']:,}", _verdict(row["verdict"], row["bad"]),
        ]
        for row in found["rows"]
    ]  # fmt: skip
    columns = ["Pair", "Who looks", "At whom", "Claimed ε", "Measured, at least", "Trials", "Verdict"]
    return table(f"Claimed and measured: ε at δ = {small(found['delta'])}", columns, rows, numbers=(3, 4, 5))


def _verdict(words: str, bad: bool) -> Markup:
    return tag("span", words, class_="bad" if bad else "good" if words in ("ok", "holds", "attained") else "soft")


def _confidence(found: Mapping[str, Any]) -> str:
    return (
        f"With {100 * found['confidence']:g} % confidence no row of a sound system is called refuted. Measured numbers are "
        "rounded "
        f"down. Attack: {'; '.join(found['attacks'])}."
    )
