"""A study in plain words: what is revealed to whom, what that rests on, and who takes part.

Everything said here is computed from the study itself, by the same functions that peers check it with.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from netdp.errors import Unsupported
from netdp.peers.study.progress import cost_lines, cost_of, warnings_of
from netdp.peers.study.training import Training
from netdp.privacy.wording import readable, weak_words

if TYPE_CHECKING:
    from netdp.peers.study.study import Study
    from netdp.privacy.guarantee import Guarantee

_WIDTH = 78

_FEW = 150  # coalitions that are looked at for the sake of an explanation alone

CODE = "CODE THAT RUNS BESIDE YOUR DATA"
"""The heading where a study names a model that is code."""

RESTS = "What this rests on"
"""The heading before the assumptions."""

Losses = tuple[dict[int, "Guarantee"], list[str]]
"""What any so many parties learn, and why nothing is said about some numbers of them."""


def losses_of(study: Study, sizes: Iterable[int] | None = None) -> Losses:
    """What any k parties together learn, for a few k (those that `explain` names, by default)."""
    losses: dict[int, Guarantee] = {}
    notes = []
    for size in _sizes(study) if sizes is None else sizes:
        try:
            losses[size] = study.promise(size)
        except Unsupported as problem:
            notes.append(f"{size} together: {problem}")
    return losses, notes


def facts(study: Study, known: Losses | None = None) -> dict[str, Any]:
    """What the study says and costs, as plain values; `known`: what `losses_of` has found, if somebody asked before."""
    terms = study.privacy
    losses, notes = losses_of(study) if known is None else known
    at = {size: loss.worst_epsilon(terms.delta) for size, loss in losses.items()}
    planned = losses.get(terms.colluders)
    noise = study.noise()
    return {
        "name": study.name,
        "hash": study.hash.hex(),
        "complete": study.is_complete,
        "lacking": list(study.lacking),
        "question": study.task.describe(),
        "protected": study.task.protected,
        "unit": study.task.unit,
        "protocol": study.settings.kind,
        "how": study.running.how_words,
        "told": study.running.told.format(n=study.n, curator="" if study.curator is None else study.curator.name),
        "promised": {"epsilon": terms.epsilon, "delta": terms.delta, "colluders": terms.colluders},
        "weak": weak_words(terms.epsilon),
        "kept": planned is not None and planned.is_certified and at[terms.colluders] <= terms.epsilon,
        "epsilon": {str(size): value if math.isfinite(value) else "inf" for size, value in at.items()},
        "who": {str(size): study.running.who(size + study.running.has_curator) for size in at},
        "claim": planned.claim.value if planned is not None else None,
        "assumptions": list(planned.assumptions) if planned is not None else [],
        "notes": [*notes, *study.running.further()],
        "attempts": terms.attempts,
        "absent": terms.absent,
        "goes_on": study.running.goes_on,
        "smallest_roster": study.smallest_roster,
        "threshold": study.running.threshold,
        "fair": study.running.is_fair,
        "relative_noise": noise,
        "counts": not study.task.is_numeric,
        "each": "each count"
        if not study.task.is_numeric
        else "each of its numbers"
        if study.task.kind == "direction"
        else None,
        "width": _width(study),
        "error": study.task.error(noise, study.n),
        "error_times_records": study.task.error(noise, study.n, records=1),
        "training": _training(study),
        "parties": [
            {
                "name": party.name,
                "address": party.address or None,
                "fingerprint": study.card(u).fingerprint if party.signing else None,
            }
            for u, party in enumerate(study.participants)
        ],
    }


def _training(study: Study) -> dict[str, Any] | None:
    """What is trained on which columns, with which code, at what cost; None where nothing is."""
    from netdp.peers.study.planning import scaled_facts

    task = study.task
    if not isinstance(task, Training):
        return None
    file, _, function = task.named.partition(":")
    code = (
        {"file": f"{file.replace('.', '/')}.py", "function": function, "source": task.source} if task.is_code else None
    )
    return {
        "model": task.named,
        "parameters": task.dimension,
        "columns": [feature.column.words for feature in task.features],
        "held_out": task.held_out,
        "scaled": scaled_facts(study),
        "code": code,
        "cost": cost_of(study),
        "cost_words": cost_lines(study),
        "warnings": list(warnings_of(study)),
    }


def _sizes(study: Study) -> list[int]:
    """One party, those planned for, half of the smallest roster, and all but one of it."""
    fewest = study.smallest_roster
    sizes = {study.running.least_colluders, study.privacy.colluders}
    if study.running.has_curator and study.n <= _FEW:
        sizes.add(1)
    if study.running.depends_on_size_only:
        sizes |= {max(1, fewest // 2), fewest - 1}
    elif math.comb(study.n, 2) <= _FEW:
        sizes.add(2)
    return sorted(size for size in sizes if size < fewest)


def explain(study: Study) -> str:
    """The study in plain words, on 80 columns."""
    return "\n".join(lines(facts(study)))


def lines(said: dict[str, Any]) -> list[str]:
    """`facts` as lines of text."""
    terms, n = said["promised"], len(said["parties"])
    out = [f'Study "{said["name"]}"']
    if said["complete"]:
        out += [f"  {said['hash'][:32]}", f"  {said['hash'][32:]}"]
    else:
        out += _text("A draft, which cannot be signed yet. It lacks: " + "; ".join(said["lacking"]) + ".")
    for title, sentences in sections(said):
        out += ["", title]
        for sentence in sentences:
            out += _text(sentence) if " " in sentence else [f"  {sentence[:32]}", f"  {sentence[32:]}"]  # a hash
    out += ["", f"What others can learn about it, the answer included (delta = {terms['delta']:g})"]
    for size, epsilon in said["epsilon"].items():
        who = said["who"][size]
        mark = f"   promised: at most {terms['epsilon']:g}" if int(size) == terms["colluders"] else ""
        out.append(f"  {who:<28} epsilon {readable(float(epsilon)):>7}{mark}")
    for note in [*said["notes"], *cautions(said)]:
        out += _text(note)
    out += ["", "How often"]
    out += _text(often(said))
    out += ["", RESTS]
    for line in said["assumptions"]:
        out += textwrap.wrap(line, _WIDTH, initial_indent="  - ", subsequent_indent="    ")
    out += ["", f"Who takes part ({n})"]
    return out + _parties(said["parties"])


def sections(said: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """What is asked, how, and what is protected: headings with their sentences."""
    out = [("What is asked", [_capital(said["question"]) + ".", said["told"], *_asked(said)])]
    if (trained := said["training"]) is not None:
        if trained["code"] is not None:
            out.append((CODE, _code(trained["code"])))
        out.append(("What it costs", list(trained["cost_words"])))
    return [*out, ("How", [said["how"]]), ("What is protected", [_capital(said["protected"]) + "."])]


def cautions(said: dict[str, Any]) -> list[str]:
    """Why the promise protects hardly anybody, or is not kept, if so."""
    out = [] if said["weak"] is None else [f"WARNING: {said['weak']}."]
    if not said["kept"]:
        out.append("THE PROMISE IS NOT KEPT: more is lost than the study says. Do not sign it; plan it anew.")
    return out


def _asked(said: dict[str, Any]) -> list[str]:
    """How good the answer will be; of a training what people ask before they sign it."""
    if said["training"] is not None:
        return _trained(said["training"])
    if said["error"] is not None:
        what, units = ("the answer", ", in the data's own units") if said["each"] is None else (said["each"], "")
        return [f"Noise moves {what} by {said['error']:.3g} (root mean square){units}.{_too_wide(said)}"]
    if said["error_times_records"] is not None:
        return [
            f"With N records in all, noise moves the answer by up to about {said['error_times_records']:.3g}/N (root mean "
            "square), in the data's own units."
        ]
    return ["How much the noise moves the answer depends on the data: a quotient or product of noisy totals."]


def _trained(trained: dict[str, Any]) -> list[str]:
    from netdp.peers.study.planning import scaled_words

    out = ["It reads " + ", ".join(trained["columns"]) + "; public ranges, numbers outside are clipped."]
    if trained["scaled"] is not None:
        against = trained["scaled"]["against"]
        out.append(
            f"{scaled_words(trained['scaled'])}, to {against}, as is stated here. Your ledger adds them up if it holds both."
        )
    if trained["held_out"]:
        out.append(
            f"A share of {trained['held_out']:g} of the rows is not trained on: on these it is counted how often the model is "
            "right, with noise."
        )
    else:
        out.append("No rows are held out: nobody will know how good the model is.")
    return out + [_capital(line) + "." for line in trained["warnings"]]


def _code(code: dict[str, Any]) -> list[str]:
    return [
        f"The model is the function {code['function']} of {code['file']}, which runs on every party's machine, beside its "
        "rows and with all rights of whoever starts it. Read that file before you sign: to sign is to agree to run it. It "
        "runs only where its SHA-256 is",
        code["source"],
        "To explain, sign or verify a study runs none of that code, so you can look before you agree; only who drafts it runs "
        "it once, on no data, to count its numbers. The hash is of this one file: what it imports (numpy, torch, netdp) is "
        "each party's own, and not covered.",
    ]


def _too_wide(said: dict[str, Any]) -> str:
    """A warning where the noise is larger than the spread of a guess, uniform over all possible answers: width/√12."""
    if said["width"] is None or said["error"] <= said["width"] / math.sqrt(12):
        return ""
    return (
        f" THAT IS WORSE THAN A GUESS: all possible answers lie within {said['width']:.6g} of each other. Ask more parties, "
        "promise a larger epsilon, or protect single records instead of all data of a party (masked-sum, --unit record)."
    )


def _width(study: Study) -> float | None:
    """How far apart two possible answers are at most, the noise left out; None if that depends on the data."""
    task = study.task
    if task.unit == "record" or isinstance(task, Training):
        return None
    if not task.is_numeric:
        return float(study.n * task.values_each)
    if task.bounds is None or task.kind not in ("mean", "sum"):
        return None
    return (task.bounds[1] - task.bounds[0]) * (study.n * task.values_each if task.kind == "sum" else 1)


def often(said: dict[str, Any]) -> str:
    """How often a party publishes, and what happens if somebody is missing, in words."""
    if (trained := said["training"]) is not None:
        return (
            f"A party publishes once in each of {trained['cost']['rounds']:,} rounds, and every number above counts all of them. "
            "All must be there from beginning to end; who is away for a while comes back and goes on."
        )
    if said["goes_on"]:
        begun = f"Up to {said['absent']} may be missing at first" if said["absent"] else "All must be there at first"
        return f"A party takes part once. {begun}; if somebody vanishes later, the others go on without it."
    if said["threshold"] is not None:
        return _opened_together(said)
    if said["attempts"] == 1 and said["absent"]:
        return (
            f"A party publishes once. Up to {said['absent']} may be missing at the start (never fewer than "
            f"{said['smallest_roster']} take part); every number above holds whoever is missing."
        )
    if said["attempts"] == 1:
        return "A party publishes once. If somebody is missing, there is no answer."
    missing = f", with up to {said['absent']} of them missing" if said["absent"] else ""
    return (
        f"A party publishes up to {said['attempts']} times: if somebody vanishes, those left may try again{missing} (never "
        f"fewer than {said['smallest_roster']}). Every number above counts all {said['attempts']} attempts, whether or not "
        "they are needed."
    )


def _opened_together(said: dict[str, Any]) -> str:
    """One attempt, whose sum some members open together: who is needed, what withholding brings, and what costs nothing."""
    n, t, c, a = len(said["parties"]), said["threshold"], said["promised"]["colluders"], said["absent"]
    away = f"Up to {a} may be missing, at the start or later" if a else "All must hand in their numbers"
    out = [
        f"{'One attempt: a' if said['attempts'] == 1 else 'A'} party publishes {_times(said['attempts'])}. {away}; every number "
        f"above holds whoever is missing, for never fewer than {said['smallest_roster']} are added up.",
        f"Any {t} of the {n} parties open the sum together, of one set of parties, once.",
    ]
    if said["fair"]:
        out.append(
            f"That is fair: the {n - c - a} honest parties that stay are enough. Who withholds its shares cannot keep the answer "
            "from the others; who withholds its numbers gets nothing alone."
        )
    else:
        out.append(
            f"That is NOT fair: the {n - c - a} honest parties that stay need {t - (n - c - a)} of those who may collude, who can "
            f"get the answer alone by withholding their shares (it is fair from {3 * c + 2 * a + 1} parties on)."
        )
    out.append(
        "If the parties agree to open nothing, for too many are missing, nothing is revealed: that costs nothing, the ledger keeps "
        "their signed agreement as proof, and they may try again."
    )
    return " ".join(out)


def _times(count: int) -> str:
    return "once" if count == 1 else f"up to {count} times, each of which counts"


def _parties(parties: list[dict[str, Any]]) -> list[str]:
    if not any(party["fingerprint"] or party["address"] for party in parties):
        return _text(", ".join(party["name"] for party in parties))
    out = []
    for party in parties:
        out.append(f"  {party['name']:<24} {party['address'] or 'no address yet'}")
        mark = party["fingerprint"]
        out += [f"    {mark[:39]}", f"    {mark[40:]}"] if mark else ["    no card yet"]
    return out


def _text(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
