"""A model card: what a model is, what it was trained on, what was promised to those whose data it is, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netdp.numerics.arrays import rounded_up

_FEW = 12  # columns that are written out in the example


def card_text(said: Mapping[str, Any]) -> str:
    """The card in Markdown. Parts that are not there are left out."""
    model = said["model"]
    out = [f"# {said.get('name', model['name'])}", ""]
    if question := said.get("question"):
        out += [f"{question[0].upper()}{question[1:]}.", ""]
    for part in (_privacy, _evaluation, _data, _training, _assumptions, _versions, _use):
        out += part(said)
    return "\n".join(out).rstrip() + "\n"


def _privacy(said: Mapping[str, Any]) -> list[str]:
    terms = said.get("privacy")
    if not terms:
        return ["## Privacy", "", "Nothing is promised: nobody stated how this model was trained.", ""]
    return [
        "## Privacy",
        "",
        f"**ε = {terms['epsilon']:g} at δ = {terms['delta']:g}**, claim: {terms['claim']} (the certified ε is "
        f"{terms['certified']:.4g}).",
        "",
        f"- Protected: {terms['protected']}.",
        f"- Against: {terms['against']}, who see the model, every message that reaches them, and everything that follows from it.",
        f"- Unit: {terms['unit']}; neighbouring data: {terms['neighbours']}.",
        *_before(terms.get("scaled")),
        "",
    ]


def _before(scaled: Mapping[str, Any] | None) -> list[str]:
    """What was spent before training, on the scale of the columns."""
    if scaled is None:
        return []
    held = (
        "computed as each party's ledger adds them up, and certified as they are"
        if scaled.get("entered")
        else "the party that wrote this took no part in that study, by its ledger: the sum is what the study states"
    )
    return [
        f"- Before it, the study {scaled['study'][:16]}… found centres and scales of the columns, with noise: ε = "
        f"{rounded_up(scaled['epsilon'], 4):g} at δ = {scaled['delta']:g}. **Both together: ε = {rounded_up(scaled['total'], 4):g} "
        f"at δ = {scaled['delta']:g}** ({held}).",
    ]


def _evaluation(said: Mapping[str, Any]) -> list[str]:
    evaluation = said.get("evaluation")
    out = ["## How good it is", ""]
    if not evaluation:
        return [*out, "No rows were held out, so nothing is known about rows that it has not seen.", ""]
    return [*out, *evaluation_words(evaluation), ""]


def evaluation_words(found: Mapping[str, Any]) -> list[str]:
    """What the held-out rows say, in words.

    >>> print(*evaluation_words({"accuracy": 0.7312, "noise": 0.004, "chance": 0.006, "rows": 5312.4}), sep="\\n")
    Accuracy on held-out rows: 0.731 (noise added for privacy moves it by 0.004, the chance of which rows were held out by 0.006).
    It was counted on about 5,312 rows, that number with noise, too.
    """
    what = "accuracy" if "accuracy" in found else "rmse"
    if found[what] is None:
        return [f"Nothing can be said: {found['why']}."]
    moved = f"noise added for privacy moves it by {found['noise']:.2g}"
    if what == "accuracy":
        chance = f", the chance of which rows were held out by {found['chance']:.2g}" if "chance" in found else ""
        first = f"Accuracy on held-out rows: {found['accuracy']:.3f} ({moved}{chance})."
    else:
        first = (
            f"Root mean square error on held-out rows: {found['rmse']:.4g}, in the label's own units, errors beyond half its range "
            f"counted as that ({moved})."
        )
    return [first, f"It was counted on about {counted_words(found)}, that number with noise, too."]


def counted_words(found: Mapping[str, Any]) -> str:
    """On how many rows, or over how many parties' shares, a model was measured.

    >>> counted_words({"rows": 5312.4}), counted_words({"parties": 98.7})
    ('5,312 rows', '99 parties, each by the share of its own rows')
    """
    if "rows" in found:
        return f"{found['rows']:,.0f} rows"
    return f"{found['parties']:,.0f} parties, each by the share of its own rows"


def _data(said: Mapping[str, Any]) -> list[str]:
    schema, data = said["schema"], said.get("data", {})
    out = ["## Data", ""]
    if parties := data.get("parties"):
        out += [f"Rows of {len(parties)} parties ({_some(parties)}), which none of them has shown to anybody.", ""]
    for key, words in (
        ("max_records", "At most {:,} rows of each party."),
        ("min_records", "At least {:,} rows of each party."),
        ("records", "About {:,} rows in all, as stated beforehand."),
        ("held_out", "A share of {:g} of the rows was held out, drawn at random by each party."),
        ("missing", "Rows with empty cells: {}."),
    ):
        if data.get(key):
            out.append(f"- {words.format(data[key])}")
    out += ["", "| column | values | part |", "| --- | --- | --- |"]
    columns = [(column, "feature") for column in schema["features"]] + [(schema["label"], "label")]
    for column, part in columns:
        out.append(f"| {_cell(column['name'])} | {_cell(_range(column))} | {part} |")
    return [*out, "", "Ranges are public and were agreed upon before; numbers outside are clipped.", ""]


def _training(said: Mapping[str, Any]) -> list[str]:
    model, how = said["model"], said.get("training", {})
    digest = said.get("digest", "?")[:32]
    out = ["## Model and training", "", f"- {model['name']}, {model['parameters']:,} numbers, SHA-256 {digest}…"]
    if model.get("source"):
        out.append(f"- code: SHA-256 of its file {model['source']}")
    if study := said.get("study"):
        out.append(f"- study: {study}")
    out += [f"- {key}: {value:g}" if isinstance(value, float) else f"- {key}: {value}" for key, value in how.items()]
    return [*out, ""]


def _assumptions(said: Mapping[str, Any]) -> list[str]:
    listed: Sequence[str] = said.get("privacy", {}).get("assumptions", ())
    return ["## What the promise rests on", "", *(f"- {line}" for line in listed), ""] if listed else []


def _versions(said: Mapping[str, Any]) -> list[str]:
    versions = said.get("versions", {})
    return (
        ["## Versions", "", ", ".join(f"{name} {number}" for name, number in versions.items()), ""] if versions else []
    )


def _use(said: Mapping[str, Any]) -> list[str]:
    features = said["schema"]["features"]
    if len(features) <= _FEW:
        row = ", ".join(f"{one['name']!r}: {(one.get('values') or one['range'])[0]!r}" for one in features)
    else:
        row = 'one["name"]: (one.get("values") or one["range"])[0] for one in model.card["schema"]["features"]'
    code = ', code=["."]' if said["model"].get("source") else ""
    return [
        "## How to use it",
        "",
        f"In the folder of this file{', with that of the module in the place of the dot' if code else ''}:",
        "",
        "```python",
        "from netdp.learn import load_model",
        "",
        f'model = load_model("model.npz"{code})',
        f"row = {{{row}}}  # a value for every column, in the data's own units",
        "print(model.predict([row]))",
        "```",
        "",
        "Whatever is done with the model costs nothing more: the promise holds for everything that is computed from it.",
    ]


def _range(column: Mapping[str, Any]) -> str:
    if column.get("values"):
        return _some([str(value) for value in column["values"]])
    scaled = f", scaled as {column['centre']:.15g} ± {column['scale']:.6g}" if column.get("centre") is not None else ""
    return f"{column['range'][0]:g} to {column['range'][1]:g}{scaled}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
