"""A study that ran on real peers, told to people: what everybody holds, who took part, what it cost them."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from netdp.models.card import counted_words
from netdp.peers.study import Training
from netdp.peers.up import UpResult
from netdp.privacy.readable import readable
from netdp.protocols import Gossip, RandomizedGossip
from netdp.utility.descent_cost import size

LOOPBACK = "real processes with encrypted links, all on this machine; nothing was trusted with everybody's data"
_MOST_LINES = 24
_MOST_OBSERVERS = 64


def run_rows(result: UpResult) -> list[tuple[str, str, str]]:
    """The outcome of a run: what, how much, and what that means."""
    told, study = result.to_dict(), result.study
    guarantee = told["guarantee"]
    out = _no_answer(result, guarantee) if result.answer is None else _answer(result, told)
    if worse := [name for name, one in result.outcomes.items() if one.get("worse")]:
        said = "than promised: what really happened cost more; the true cost is in the ledgers of " + _names(worse)
        out.insert(0, ("WORSE", "", said))
    for k, spent in guarantee["spent_epsilon"].items():
        who, planned = study.running.who(int(k)), guarantee["colluders"] + study.running.has_curator
        promised = f"; promised {readable(study.privacy.epsilon)}" if int(k) == planned else ""
        out.append((f"ε at δ = {guarantee['delta']:g}", readable(float(spent)), f"{who} learned at most{promised}"))
    out += _in_real_numbers(result) + _by_distance(result)
    out += _shuffled(result) + _walked(result)
    if isinstance(study.task, Training):
        out.append(_rounds(result))
    else:
        carried = f"over {study.graph.m:,} links, "
        carried += "two in every exchange" if result.learned else f"in {told['transcript']['rounds']} rounds"
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


def _walked(result: UpResult) -> list[tuple[str, str, str]]:
    """Of tokens that walked: how often they were where, and what this path would have given away."""
    walked = result.walked
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
            f"learned by one about another on average, {most} at most, if they knew the path, which none of them does"
        )
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
    return [("no answer", "", why), ("published", published, what)]


def _answer(result: UpResult, told: dict[str, Any]) -> list[tuple[str, str, str]]:
    study, answer, roster = result.study, result.answer, told["roster"]
    assert answer is not None
    out = []
    whose = "parties" if study.curator is None else "participants"
    held = f"{len(result.answered)} {whose} hold this answer, to the last bit" if result.ok else "not all agree"
    if isinstance(study.protocol(), Gossip | RandomizedGossip):
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
    allowed = f"a party may publish {study.privacy.attempts} times; each counts"
    out.append(("attempts", str(told["attempt"]), allowed if study.privacy.attempts > 1 else ""))
    return out


def _rounds(result: UpResult) -> tuple[str, str, str]:
    """How often all parties of a training published, and what they sent."""
    study = result.study
    sent = f"every party sent up to {size(max(result.bytes.values()))}" if result.bytes else ""
    counted = "the last one counts held-out rows" if study.running.most_steps() > study.settings.iterations else ""
    return ("rounds", f"{study.running.most_steps():,}", "; ".join(part for part in (counted, sent) if part))


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
    if not isinstance(protocol, Gossip) or study.n > _MOST_OBSERVERS:
        return []
    from netdp.accounting.gossip.dithered import in_real_arithmetic

    worst = max(in_real_arithmetic(protocol, [v]).worst_epsilon(study.privacy.delta) for v in range(study.n))
    return [("", readable(worst), "the same in real numbers, which no wire carries: not a guarantee")]


def _by_distance(result: UpResult) -> list[tuple[str, str, str]]:
    """What single parties learned in a randomized gossip, by how far away they were, and how far apart the estimates are."""
    found = result.learned
    if found is None:
        return []
    if found.problem:
        return [
            ("exchanges", "?", f"the parties' logs contradict each other ({found.problem}): only the promise is known")
        ]
    out = []
    for hops, (mean, largest) in found.by_distance.items():
        away = "one link away" if hops == 1 else f"{hops} links away"
        out.append(("", readable(mean), f"a party {away} learned, on average; {readable(largest)} at most"))
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
            lines += [(label, _number(inner)) for label, inner in _flat(value)]
        elif isinstance(value, list):
            named = labels if isinstance(labels, list) and len(labels) == len(value) else range(len(value))
            lines += [(str(label), _number(inner)) for label, inner in zip(named, value, strict=False)]
        elif isinstance(value, bool | str):
            lines.append((key, str(value)))
        else:
            lines.append((str(answer["kind"]) if key == "value" else key, _number(value)))
    return lines


def _flat(table: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for label, value in table.items():
        name = f"{before}{label}"
        out += _flat(value, f"{name} × ") if isinstance(value, dict) else [(name, value)]
    return out


def _number(value: Any) -> str:
    return "unknown" if value is None else f"{value:,.4g}" if isinstance(value, int | float) else str(value)


def _names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


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
