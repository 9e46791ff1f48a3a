"""A study that ran on real peers, told to people: what everybody holds, who took part, what it cost them."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from netdp.peers.up import UpResult
from netdp.privacy.readable import readable

LOOPBACK = "real processes with encrypted links, all on this machine; nothing was trusted with everybody's data"


def answer_lines(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """What is known now: a name and a number each; counts by their labels."""
    lines: list[tuple[str, str]] = []
    for key, value in answer.items():
        if key in ("kind", "unit", "parties"):
            continue
        if isinstance(value, dict):
            lines += [(f"{key} {label}", _number(inner)) for label, inner in _flat(value)]
        elif isinstance(value, bool | str):
            lines.append((key, str(value)))
        else:
            name = str(answer["kind"]) if key == "value" else key
            lines.append((name, _number(value)))
    return lines


def _flat(table: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for label, value in table.items():
        name = f"{before}{label}"
        out += _flat(value, f"{name} × ") if isinstance(value, dict) else [(name, value)]
    return out


def _number(value: Any) -> str:
    return "unknown" if value is None else f"{value:,.4g}" if isinstance(value, int | float) else str(value)


def run_table(result: UpResult) -> RenderableType:
    """The outcome of `netdp up` in a few lines."""
    told = result.to_dict()
    study, guarantee = result.study, told["guarantee"]
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column()
    held = len(result.answered)
    if result.answer is not None:
        for i, (name, value) in enumerate(answer_lines(result.answer)[:24]):
            note = f"{held} parties hold this answer, to the last bit" if i == 0 and result.ok else ""
            table.add_row(name, value, note, style="bold" if i == 0 else None)
        error = study.task.error(study.noise(len(told["roster"])), len(told["roster"]))
        if error is not None:
            table.add_row("error", _number(error), "predicted, root mean square, from the noise")
        missing = [name for name in study.names if name not in told["roster"]]
        table.add_row("took part", f"{len(told['roster'])} of {study.n}", _names("without ", missing))
        table.add_row(
            "attempts", str(told["attempt"]), "" if told["attempt"] == 1 else "each that was published counts"
        )
    else:
        table.add_row("no answer", "", next((str(one["reason"]) for one in result.outcomes.values()), ""))
        table.add_row(
            "published",
            str(guarantee["contributions"]),
            "times by any party: nothing" if not guarantee["contributions"] else "times by a party",
        )
    for k, spent in guarantee["spent_epsilon"].items():
        who = "any single party" if k == "1" else f"any {k} parties together"
        bound = (
            f", promised {readable(float(guarantee['promised_epsilon']))}" if int(k) == guarantee["colluders"] else ""
        )
        table.add_row(f"ε at δ = {guarantee['delta']:g}", readable(float(spent)), f"what {who} learned at most{bound}")
    links = study.graph.m
    table.add_row(
        "messages",
        f"{told['transcript']['messages']:,}",
        f"over {links:,} links, in {told['transcript']['rounds']} rounds",
    )
    restarts = {name: count for name, count in result.restarts.items() if count}
    if restarts:
        table.add_row("restarted", str(sum(restarts.values())), _names("", list(restarts)))
    if result.gone:
        table.add_row(
            "gone", str(len(result.gone)), "; ".join(f"{name}: {why}" for name, why in list(result.gone.items())[:4])
        )
    seconds = told["seconds"]
    waited = seconds.get("answered", seconds["all"]) - seconds.get("listening", 0.0)
    table.add_row(
        "seconds", f"{waited:.2g}", f"from all listening to the last answer; {seconds['all']:.2g} with starting"
    )
    unit = "all data of a party" if guarantee["unit"] == "party" else "one record of a party"
    last = f"claim: {guarantee['claim']}, about {unit}; recomputed from what was really sent"
    return Group(
        f"{study.name}: {study.task.describe()}; {study.n} parties, {study.graph.name}", LOOPBACK, "", table, "", last
    )


def _names(before: str, names: list[str]) -> str:
    if not names:
        return ""
    return before + ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
