"""A study that ran on real peers, told to people: what everybody holds, who took part, what it cost them.

The picture shows who sent to whom, and what any k parties together have learned from it.

**What any k learned** is computed again from what was really contributed, not from what had been planned. Every party
tells how often it contributed (rows of its ledger); the roster of the attempt that gave the answer is known to all.
Where the roster of another contribution is not known here, the smallest one that the study allows stands for it: fewer
parties share less noise, so the ε shown is never below the ledger's. Attempt 1 is always among everybody. Of a masked
sum all coalitions of one size learn the same; elsewhere only the sizes that the parties' ledgers were asked about are
drawn, and nothing is said about more.

**How far the numbers may have come.** A transcript has no payloads: it tells that u sent v something in round t, not
whose. What v may hold after it are the numbers of those from whom a chain of sends in rising rounds leads to v. The
picture counts them: nobody holds more.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table

from netdp.errors import Unsupported
from netdp.models.card import counted_words
from netdp.numerics.arrays import rounded_up
from netdp.peers.ledger.entries import Entry, entry_of, total
from netdp.peers.outcome import UpResult
from netdp.peers.status import words_of
from netdp.peers.study.progress import cost_of
from netdp.peers.study.study import Study
from netdp.peers.study.training import Training
from netdp.privacy.wording import readable, size
from netdp.protocols.alternatives import local_dp, trusted_curator
from netdp.protocols.table import in_real_numbers
from netdp.protocols.views import Transcript
from netdp.report.charts import below
from netdp.report.network import NAMED, placed, shortened
from netdp.report.pages import rendered
from netdp.report.style import BLUE, GREEN, GREY, INK, RED, scientific, write_picture

if TYPE_CHECKING:
    from netdp.report.figures import Picture

LOOPBACK = "real processes with encrypted links, all on this machine; nothing was trusted with everybody's data"

_MOST_LINES = 24

_MOST_OBSERVERS = 64

_MOST_TROUBLES = 4


def run_rows(result: UpResult) -> list[tuple[str, str, str]]:
    """The outcome of a run: what, how much, and what that means."""
    told, study = result.to_dict(), result.study
    guarantee = told["guarantee"]
    out = _no_answer(result, guarantee) if result.answer is None else _answer(result, told)
    if result.answer is not None:
        out += [("not agreed", "", trouble) for trouble in troubles(result)]
    for one in result.evidence:
        out.append(("PROVED", one["party"], f"signed {words_of(one)}: it cheats, or its keys are in use elsewhere"))
    out += [("noted", name, why) for name, why in result.blamed.items()]
    if worse := [name for name, one in result.outcomes.items() if one.get("worse")]:
        said = "than promised: what really happened cost more; the true cost is in the ledgers of " + _names(worse)
        out.insert(0, ("WORSE", "", said))
    for k, spent in guarantee["ledger_epsilon"].items():
        who, planned = study.running.who(int(k)), guarantee["colluders"] + study.running.has_curator
        promised = f"; promised {readable(study.privacy.epsilon)}" if int(k) == planned else ""
        # how many attempts it takes, and which study comes next, may be decided by somebody who has seen an answer
        words = f"learned, whatever was chosen; {readable(float(guarantee['ledger_fixed'][k]))} if all had been fixed beforehand"
        out.append((f"ε at δ = {guarantee['delta']:g}", readable(float(spent)), f"{who} {words}{promised}"))
    out += _in_real_numbers(result) + _by_distance(result)
    out += [("", "", sentence) for sentence in result.study.running.further()]
    out += _shuffled(result) + _walked(result)
    if isinstance(study.task, Training):
        out.append(_rounds(result))
    else:
        carried = f"over {study.graph.m:,} links, "
        carried += (
            "two in every exchange" if _hindsight(result, "learned") else f"in {told['transcript']['rounds']} rounds"
        )
        out.append(("messages", f"{told['transcript']['messages']:,}", carried))
    if restarts := {name: count for name, count in result.restarts.items() if count}:
        out.append(("restarted", str(sum(restarts.values())), _names(list(restarts))))
    if result.gone:
        name, why = next(iter(result.gone.items()))
        more = f" (and {len(result.gone) - 1} more)" if len(result.gone) > 1 else ""
        out.append(("gone", str(len(result.gone)), f"{name}{more}: {why}"))
    seconds = told["seconds"]
    waited = seconds.get("answered", seconds["all"]) - seconds.get("listening", 0.0)
    out.append(
        ("seconds", f"{waited:.2g}", f"from all listening to the last outcome; {seconds['all']:.2g} with starting")
    )
    return out


def _hindsight(result: UpResult, key: str) -> Any:
    """What is known of this sort of what the run really gave away; None if it is of another sort, or nothing is."""
    return result.looked_back if result.looked_back is not None and result.looked_back.key == key else None


def _walked(result: UpResult) -> list[tuple[str, str, str]]:
    """Of tokens that walked: how often they were where, and what this path would have given away."""
    walked = _hindsight(result, "walked")
    if walked is None:  # somebody who was visited is not there to say so
        skips = next((told.get("realised", {}).get("skips", 0) for told in result.answered.values()), 0)
        return [("skipped", str(skips), "times somebody did not answer, and a token went to another")] if skips else []
    told = walked.to_dict()
    visits, skips = told["visits"], told["skips"]
    away = f"; {skips} times somebody did not answer, and a token went to another" if skips else ""
    out = [("visits", f"{visits['fewest']} to {visits['most']}", f"of tokens to each party{away}")]
    if given := told.get("epsilon_of_this_path"):
        most = readable(given["largest"])
        said = (
            f"learned by one about another on average, {most} at most, if they knew the path, which none of them does; "
        )
        said += walked.holds_if
        out.append(("ε of this path", readable(given["mean"]), said))
    return out


def _shuffled(result: UpResult) -> list[tuple[str, str, str]]:
    """Of reports that hopped: how many the curator has counted, and what became of the others."""
    realised: dict[str, Any] = next((told.get("realised", {}) for told in result.answered.values()), {})
    if "accepted" not in realised:
        return []
    expected, accepted = realised["expected"], realised["accepted"]
    why = [f"{number} dropped ({reason})" for reason, number in realised["dropped"].items() if number]
    if realised["cuts"]:
        why.append(f"{len(realised['cuts'])} links failed on the way")
    if realised["hands"] < expected:
        why.append(f"{expected - realised['hands']} handed nothing over")
    calm = "counted by the curator, none dropped" if accepted == expected else "counted by the curator"
    return [("reports", f"{accepted} of {expected}", "; ".join(why) or calm)]


def _no_answer(result: UpResult, guarantee: dict[str, Any]) -> list[tuple[str, str, str]]:
    why = next((str(one["reason"]) for one in result.outcomes.values()), "no party reported")
    if result.study.running.most_steps():
        steps = max((one["spent"].get("steps", 0) for one in result.outcomes.values()), default=0)
        published, what = f"{steps:,}", "steps, at most, by a party that reported"
    else:
        published, what = str(guarantee["contributions"]), "times, at most, by a party that reported"
    held = any(one.get("withheld") for one in result.outcomes.values())
    return [("WITHHELD" if held else "no answer", "", why), ("published", published, what)]


def _answer(result: UpResult, told: dict[str, Any]) -> list[tuple[str, str, str]]:
    study, answer, roster = result.study, result.answer, told["roster"]
    assert answer is not None
    out = []
    whose = "parties" if study.curator is None else "participants"
    held = f"{len(result.answered)} {whose} hold this answer, to the last bit" if result.ok else "not all agree"
    if study.running.has_own_answers:
        # what a party ends with is for its own eyes: side by side they would tell more than is certified
        held = "one party's estimate; each of the others has its own, and keeps it to itself"
    if answer["kind"] == "train":
        out.append(
            ("model", str(answer["model"]), f"{answer['parameters']:,} numbers; {held.replace('answer', 'model')}")
        )
        out += _evaluated(answer["evaluation"])
    for i, (name, value) in enumerate([] if answer["kind"] == "train" else answer_lines(answer)[:_MOST_LINES]):
        out.append((name, value, held if i == 0 else ""))
    noise, records = study.noise(len(roster)), answer.get("records")
    exact = study.task.error(noise, len(roster))
    error = exact if exact is not None or not records else study.task.error(noise, len(roster), round(records))
    if error is not None:
        up_to = "" if exact is not None else "up to, for that many records; "
        out.append(("error", f"{error:,.3g}", f"predicted: {up_to}root mean square, from the noise"))
    missing = [name for name in study.names if name not in roster]
    out.append(("took part", f"{len(roster)} of {study.n}", f"without {_names(missing)}" if missing else "everybody"))
    if study.running.threshold is not None:
        fair = (
            "fair: nobody gets the answer alone"
            if study.running.is_fair
            else "not fair: colluders may get the answer alone"
        )
        out.append(("opened by", f"any {study.running.threshold} of {study.n}", f"parties together, once; {fair}"))
        signed = len(result.signatures)
        out.append(
            ("signed by", f"{signed} of {study.n}", "this answer; netdp study result checks it with the study alone")
        )
    allowed = f"a party may publish {study.privacy.attempts} times; each counts"
    out.append(("attempts", str(told["attempt"]), allowed if study.privacy.attempts > 1 else ""))
    return out


def _rounds(result: UpResult) -> tuple[str, str, str]:
    """How often all parties of a training published, and what they sent."""
    study = result.study
    sent = f"every party sent up to {size(max(result.bytes.values()))}" if result.bytes else ""
    counted = "the last one counts held-out rows" if getattr(study.task, "held_out", 0) else ""
    return ("rounds", f"{cost_of(study)['rounds']:,}", "; ".join(part for part in (counted, sent) if part))


def _evaluated(found: dict[str, Any] | None) -> list[tuple[str, str, str]]:
    """How good a trained model is on held-out rows, with the noise of that."""
    if found is None:
        return [("accuracy", "unknown", "no rows were held out")]
    what = "accuracy" if "accuracy" in found else "error"
    value = found.get("accuracy", found.get("rmse"))
    if value is None:
        return [(what, "unknown", found["why"])]
    said = f"on about {counted_words(found)}, held out; noise moves it by {found['noise']:.2g}"
    return [(what, f"{value:.3f}" if what == "accuracy" else f"{value:,.4g}", said)]


def _in_real_numbers(result: UpResult) -> list[tuple[str, str, str]]:
    """The figure of the literature beside the certified one, for gossip: no promise of a running system."""
    study = result.study
    protocol = study.protocol()
    if not in_real_numbers.handles(protocol) or study.n > _MOST_OBSERVERS:
        return []
    try:
        worst = max(in_real_numbers(protocol, [v]).worst_epsilon(study.privacy.delta) for v in range(study.n))
    except Unsupported:
        return []
    return [("", readable(worst), "the same in real numbers, which no wire carries: not a guarantee")]


def _by_distance(result: UpResult) -> list[tuple[str, str, str]]:
    """What single parties learned in a randomized gossip, by how far away they were, and how far apart the estimates are."""
    found = _hindsight(result, "learned")
    if found is None:
        return []
    if found.problem:
        return [
            ("exchanges", "?", f"the parties' logs contradict each other ({found.problem}): only the promise is known")
        ]
    out = []
    for hops, (mean, largest) in found.by_distance.items():
        away = "one link away" if hops == 1 else f"{hops} links away"
        out.append(
            ("", readable(mean), f"a party {away} learned, on average; {readable(largest)} at most; {found.holds_if}")
        )
    logs = found.logs
    broken = f"{len(logs.torn)} torn (one end averaged, the other did not), {len(logs.void)} without effect"
    broken += " among those whose logs are here" if logs.missing else ""
    out.append(("exchanges", f"{logs.exchanges:,}", broken))
    apart = found.spread / len(found.roster)
    out.append(
        ("apart", f"{apart:,.3g}", "the largest estimate from the smallest, in the units of sigma; seen only here")
    )
    if 0 < found.looked_at < len(found.roster) - len(logs.missing):
        out.append(("looked at", str(found.looked_at), "parties as those who learn, evenly spaced"))
    if logs.missing:
        names = [result.study.names[found.roster[u]] for u in logs.missing]
        lost = "counted among those who look; what they held is missing from the answer"
        out.append(("without log", str(len(names)), f"{_names(names)}: {lost}"))
    return out


def answer_lines(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """What is known now: a name and a number each; counts by their labels."""
    if answer["kind"] == "scaling":
        return [(one["name"], f"{one['centre']:.6g} ± {one['scale']:.6g}") for one in answer["features"]]
    lines: list[tuple[str, str]] = []
    labels = answer.get("labels")
    for key, value in answer.items():
        if key in ("kind", "unit", "parties", "column", "columns", "labels", "edges"):
            continue
        if isinstance(value, dict):
            lines += [(label, _number(inner)) for label, inner in table_cells(value)]
        elif isinstance(value, list):
            named = labels if isinstance(labels, list) and len(labels) == len(value) else range(len(value))
            lines += [(str(label), _number(inner)) for label, inner in zip(named, value, strict=False)]
        elif isinstance(value, bool | str):
            lines.append((key, str(value)))
        else:
            lines.append((str(answer["kind"]) if key == "value" else key, _number(value)))
    return lines


def table_cells(table: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """A nested table as a list of cells with their labels.

    >>> table_cells({"a": {"x": 1.0, "y": 2.0}})
    [('a × x', 1.0), ('a × y', 2.0)]
    """
    out: list[tuple[str, Any]] = []
    for label, value in table.items():
        name = f"{before}{label}"
        out += table_cells(value, f"{name} × ") if isinstance(value, dict) else [(name, value)]
    return out


def _number(value: Any) -> str:
    return "unknown" if value is None else f"{value:,.4g}" if isinstance(value, int | float) else str(value)


def _names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def troubles(result: UpResult) -> list[str]:
    """Why not everybody holds the same answer, a sentence each: who is gone, who ended without it, and why.

    The same reason is told once, with all whom it concerns; empty if all is well.
    """
    if result.ok:
        return []
    n, out = len(result.study.everybody), []
    ended = {name: str(told["reason"]) for name, told in result.outcomes.items() if not told["ok"]}
    for verb, found in (("ended without the answer", ended), ("left before the end", result.gone)):
        for reason in dict.fromkeys(found.values()):
            whom = [name for name, why in found.items() if why == reason]
            out.append(f"{len(whom)} of {n} {verb} ({_names(whom)}): {reason}")
    if len(digests := {(told["attempt"], told["digest"]) for told in result.answered.values()}) > 1:
        out.append(f"{len(result.answered)} of {n} hold an answer, but {len(digests)} different ones")
    if not out:
        out.append(result.notes[-1] if result.notes else "no party said anything before it ended")
    return out[:_MOST_TROUBLES] + ([f"and {more} more reasons"] if (more := len(out) - _MOST_TROUBLES) > 0 else [])


def run_table(result: UpResult) -> RenderableType:
    """The outcome of `netdp up` in a few lines."""
    study, promised = result.study, result.study.promise()
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column()
    for i, row in enumerate(run_rows(result)):
        table.add_row(*row, style="bold" if i == 0 else None)
    unit = "all data of a party" if study.task.unit == "party" else "one record of a party"
    last = f"claim: {promised.claim.value}, about {unit}; recomputed from what was really sent"
    head = f"{study.name}: {study.task.describe()}; {study.n} parties, {study.graph.name}"
    return Group(head, LOOPBACK, "", table, "", last)


SIZES = 24
"""At most so many sizes of coalitions are drawn."""


@dataclass(frozen=True)
class CoalitionLosses:
    """ε at δ that any k parties together learned about any party that reported, and what to compare it with.

    sizes, epsilon   k and its ε; infinite where nothing bounds it
    local, curator   with the same noise: everybody publishes its own numbers; somebody trusted publishes the total. None
                     where they have no meaning
    note             what the sizes that are not there mean, in words
    """

    delta: float
    sizes: tuple[int, ...]
    epsilon: tuple[float, ...]
    local: float | None
    curator: float | None
    note: str


def save_run_picture(result: UpResult, path: str | os.PathLike[str]) -> Path:
    """Write the picture of a run: .html (with the rounds to play), .png, .svg or .pdf; it appears whole or not at all."""
    return write_picture(path, lambda: draw_run(result), lambda: rendered("run.html", data=page_data(result)))


# ── what was learned ──────────────────────────────────────────────────────────────────────────────────────────────────


def coalition_sizes(most: int, wanted: int = SIZES) -> list[int]:
    """Sizes from 1 to `most`, at most so many: evenly spaced in the number of those that are left, on a log scale.

    What a masked sum reveals changes with how many are left over, and fastest when these are few.

    >>> coalition_sizes(5), coalition_sizes(199, 6)
    ([1, 2, 3, 4, 5], [1, 131, 176, 192, 197, 199])
    """
    if most <= wanted:
        return list(range(1, most + 1))
    left = np.round(np.geomspace(most, 1, wanted)).astype(int)
    return sorted({int(most + 1 - x) for x in left})


def learned(result: UpResult) -> CoalitionLosses:
    """What any k parties together learned, at most, about any party that reported."""
    study = result.study
    delta, told = study.privacy.delta, result.to_dict()
    roster = [study.index(name) for name in told["roster"] or study.names]
    local: float | None
    curator: float | None
    try:
        attempt = study.protocol_of(roster)
        local = local_dp(attempt).worst_epsilon(delta)
        curator = trusted_curator(attempt).worst_epsilon(delta)
    except Unsupported:
        local = curator = None
    gone = " About a party that is gone: no more than the study promises." if result.gone else ""
    if not study.running.depends_on_size_only:
        spent = told["guarantee"]["spent_epsilon"]
        sizes = tuple(sorted(int(k) for k in spent))
        more = "Nobody reported."
        if sizes:
            more = f"More than {sizes[-1]} together: not drawn here; each ledger says (netdp ledger show --against K)."
        return CoalitionLosses(delta, sizes, tuple(float(spent[str(k)]) for k in sizes), local, curator, more + gone)
    cases = {_case(one): one for one in (contributions(result, name) for name in result.outcomes)}
    # up to all others, those outside the answer's roster included: they may have been in an earlier one
    sizes = tuple(sorted({*coalition_sizes(study.n - 1), study.privacy.colluders}))
    worst = tuple(
        max((float(total(entries, k, study.task.unit).epsilon(delta)) for entries in cases.values()), default=0.0)
        for k in sizes
    )
    between = (
        "A size between two of those drawn learned no more than the larger one." if len(sizes) < study.n - 1 else ""
    )
    return CoalitionLosses(delta, sizes, worst, local, curator, between + gone)


def contributions(result: UpResult, name: str) -> list[Entry]:
    """What a party of a masked sum contributed to, as entries that cost it no less than those in its ledger."""
    study, told = result.study, result.outcomes[name]
    me, often = study.index(name), int(told["spent"]["contributions"])
    everybody = tuple(range(study.n))
    rosters: list[tuple[int, ...]] = []
    earlier = study.privacy.attempts  # attempts before the answer, as far as known
    if told["ok"]:
        roster = tuple(sorted(study.index(one) for one in told["roster"]))
        earlier = int(told["attempt"]) - 1
        if me in roster and often:
            rosters.append(roster)
    if earlier and often - len(rosters) >= earlier:
        rosters.append(everybody)  # it was in all of them, and the first is among everybody
    fewest = tuple(sorted([me, *[u for u in everybody if u != me][: study.smallest_roster - 1]]))
    rosters += [fewest] * (often - len(rosters))
    return [entry_of(study, i, roster, me) for i, roster in enumerate(rosters, start=1)]


def _case(entries: list[Entry]) -> tuple[int, ...]:
    """Of a masked sum, what all parties with the same sizes of rosters have in common: the loss."""
    return tuple(sorted(len(entry.roster) for entry in entries))


# ── what travelled ────────────────────────────────────────────────────────────────────────────────────────────────────


def heard(transcript: Transcript) -> list[list[int]]:
    """After each round, from how many parties (itself included) something may have reached each; until nothing changes.

    >>> heard(Transcript(3, (np.array([[0, 1]]), np.array([[1, 2]])), np.array([0, 1])))
    [[1, 2, 1], [1, 2, 3]]
    """
    holds = np.eye(transcript.n, dtype=bool)
    rounds: list[list[int]] = []
    for t in range(transcript.rounds):
        after = holds.copy()
        for u, v in transcript.messages(t).tolist():
            after[v] |= holds[u]
        holds = after
        rounds.append(holds.sum(axis=1).tolist())
    while len(rounds) > 1 and rounds[-1] == rounds[-2]:
        rounds.pop()
    return rounds


def standing(result: UpResult) -> list[str]:
    """Of every party what became of it: "answered", "outside" (it holds the answer, but is not in it), "ended" or "gone"."""
    roster = set(result.to_dict()["roster"] or ())
    out = []
    for name in result.study.names:
        if name not in result.outcomes:
            out.append("gone")
        elif not result.outcomes[name]["ok"]:
            out.append("ended")
        else:
            out.append("answered" if name in roster else "outside")
    return out


def _carries(result: UpResult) -> str:
    """What a round is, in words."""
    how = result.study.settings
    if how.kind == "ring-sum":
        return "the token's hops, one by one"
    if how.kind == "gossip" or getattr(how, "spread", "flood") == "average":
        return "rounds of averaging with the neighbours"
    return "by how many links a contribution had crossed before"


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def page_data(result: UpResult) -> dict[str, Any]:
    """Everything that the page shows, as plain values."""
    study, transcript = result.study, result.messages
    found, promised = learned(result), study.promise()
    unit = "all data of a party" if study.task.unit == "party" else "one record of a party"
    return {
        "title": study.name,
        "question": f"{study.task.describe()}; {study.n} parties, {study.graph.name}",
        "how": LOOPBACK,
        "names": list(study.names),
        "named": study.n <= NAMED,
        "points": placed(study.graph).round(4).tolist(),
        "edges": study.graph.edges().tolist(),
        "patterns": [pattern.tolist() for pattern in transcript.patterns],
        "schedule": transcript.schedule.tolist(),
        "heard": heard(transcript),
        "carries": _carries(result),
        "standing": standing(result),
        "reasons": [result.gone.get(name) or result.outcomes.get(name, {}).get("reason") for name in study.names],
        "restarts": [result.restarts.get(name, 0) for name in study.names],
        "delta": found.delta,
        "unit": unit,
        "sizes": list(found.sizes),
        "epsilon": [_short(value) for value in found.epsilon],
        "local": None if found.local is None else _short(found.local),
        "curator": None if found.curator is None else _short(found.curator),
        "unbounded": not study.running.depends_on_size_only,
        "who": _who(study),
        "promise": [_against(study), study.privacy.epsilon],
        "attempts": study.privacy.attempts,
        "note": found.note.strip(),
        "rows": run_rows(result),
        "claim": promised.claim.value,
        "assumptions": list(promised.assumptions),
    }


def _short(value: float) -> float | None:
    """Five digits, rounded up; JSON has no infinity, which is None here."""
    return rounded_up(value, 5) if math.isfinite(value) else None


# ── the still picture ─────────────────────────────────────────────────────────────────────────────────────────────────


def draw_run(result: UpResult) -> Picture:
    """Who sent to whom and what became of them, and what any k parties together learned."""
    from netdp.report.figures import PAGE, Picture, paper_style

    study = result.study
    answer = [f"{name} {value}" for name, value in answer_lines(result.answer or {})[:3]] or ["no answer"]
    with paper_style():
        figure = Picture(figsize=(PAGE, 3.5))
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
        figure.suptitle(fill(f"{study.name}: {', '.join(answer)}", 115), fontsize=8, x=0.01, ha="left")
        _draw_messages(left, result)
        _draw_learned(right, learned(result), _against(study), study.privacy.epsilon, _who(study))
    return figure


def _draw_messages(axes: Any, result: UpResult) -> None:
    """The links that carried messages, and of every party what became of it."""
    from matplotlib.collections import LineCollection

    study, transcript = result.study, result.messages
    points, edges = placed(study.graph), study.graph.edges()
    used = {tuple(sorted(pair)) for pattern in transcript.patterns for pair in pattern.tolist()}
    colours = [BLUE if tuple(sorted(edge)) in used else "#c8ccd0" for edge in edges.tolist()]
    alpha = float(np.clip(9 / max(study.graph.m, 1) ** 0.45, 0.1, 0.7))
    axes.add_collection(LineCollection(list(points[edges]), colors=colours, linewidths=0.8, alpha=alpha, zorder=1))
    size = float(np.clip(3000 / study.n, 6, 70))
    looks = {
        "answered": ("o", GREEN, "holds the answer"), "outside": ("s", GREY, "holds it, not in it"),
        "ended": ("D", "#c77800", "ended without it"), "gone": ("X", RED, "gone"),
    }  # fmt: skip
    where = np.array(standing(result))
    for kind, (marker, colour, label) in looks.items():
        if (at := points[where == kind]).size:
            axes.scatter(*at.T, marker=marker, c=colour, s=size, zorder=2, label=label)
    again = np.array([result.restarts.get(name, 0) > 0 for name in study.names])
    if again.any():
        axes.scatter(
            *points[again].T, s=size * 2.4, facecolors="none", edgecolors="#c77800", zorder=3, label="restarted"
        )
    if study.n <= NAMED:
        for (x, y), name in zip(points, study.names, strict=True):
            axes.annotate(
                shortened(name), (x, y), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=7, zorder=4
            )
    axes.set_title(f"{len(transcript):,} messages over {study.graph.m:,} links, {transcript.rounds} rounds")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, columnspacing=1.0, handletextpad=0.2)
    axes.margins(0.14)
    axes.set_aspect("equal", adjustable="datalim")
    axes.axis("off")


def _who(study: Study) -> str:
    """Who may put together what they saw, in a word: a curator is no party, and looks all the same."""
    return "participants" if study.running.has_curator else "parties"


def _against(study: Study) -> int:
    """How many of these the promise is against."""
    return study.privacy.colluders + study.running.has_curator


def _draw_learned(axes: Any, found: CoalitionLosses, colluders: int, promised: float, who: str) -> None:
    drawn = [(k, e) for k, e in zip(found.sizes, found.epsilon, strict=True) if math.isfinite(e)]
    if drawn:
        axes.plot(*zip(*drawn, strict=True), "o-", color=BLUE, markersize=4, label=f"any k {who} together learned")
    for value, colour, name in ((found.local, RED, "local DP"), (found.curator, GREEN, "trusted curator")):
        if value is not None and math.isfinite(value):
            axes.axhline(value, color=colour, linestyle="--", linewidth=1, label=f"{name}: {readable(value)}")
    axes.plot([colluders], [promised], "D", color=INK, label=f"promised against any {colluders}: {readable(promised)}")
    axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
    if len(found.sizes) <= 3:  # of so few the usual marks lie between whole numbers
        axes.set_xticks(sorted({*found.sizes, colluders}))
    else:
        axes.xaxis.get_major_locator().set_params(integer=True)
    said = fill(found.note.strip(), 62)
    axes.set_xlabel(f"k: how many {who} put together what they saw\n{said}".strip())
    axes.set_ylabel(f"ε at δ = {scientific(found.delta)}, at most")
    axes.set_title(f"What any k {who} learned about anybody else")
    below(axes, columns=2, inches=0.42 + 0.13 * (said.count("\n") + bool(said)))
