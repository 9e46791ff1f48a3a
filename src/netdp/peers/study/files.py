"""Studies and schemas as files: TOML that people read and edit, with a comment where a number needs one.

What `text` writes of a study, `read` reads back to an equal one: numbers are written with all their digits.

**A schema** says what is in everybody's table; people write it before anybody looks at rows.

    label = "cardio"
    classes = ["0", "1"]              # or: range = [0, 100], to predict a number

    [features]
    age = [29, 65]                    # the public range of a number
    gender = ["f", "m"]               # or the values there are
    weight = {range = [30, 200], centre = 74, scale = 14}     # a number that is scaled otherwise than by its range

`drafted` writes such a file from the *names* of the columns alone, with the ranges left open: a range that is read off the
rows is an answer about them, which nobody has accounted for. `scaled_by` puts in the centres and scales that a study with the task
"scaling" has found, and where they come from (a section [scaled], `netdp.peers.study.scaling.Scaled`).
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netdp.errors import FileFormatError, InvalidValue
from netdp.peers.records import Misfit, line_of, place_text
from netdp.peers.study.rows import csv_columns, is_parquet, parquet_columns
from netdp.peers.study.scaling import Scaled

if TYPE_CHECKING:
    from netdp.peers.study.study import Study
    from netdp.peers.study.training import AnyTask

_TASK_COMMENTS = {
    "unit": 'what is protected: all data of a "party", or any one "record" of it',
    "bounds": "public; numbers outside are clipped",
    "value": "how the rows of a party become its one number",
    "edges": "bins [a, b), the last one closed; numbers outside are clipped",
    "bins": "so many equal ones between the bounds",
    "other": "whether values that are not listed are counted in a cell of their own",
    "missing": 'rows with empty cells: "refuse" or "skip"',
    "max_records": "how many a party may have; public",
    "period": "values that change over time: the column that says of which period a row is",
    "periods": "in their order; a party adds one value in each",
    "model": "what is trained, by all parties together",
    "source": "SHA-256 of the module's file: every party has just this one, and has read it",
    "parameters": "how many numbers the model has",
    "fingerprint": "SHA-256 of all that is public in it, such as the numbers that it starts from",
    "label": "what it predicts",
    "classes": "the values there are",
    "label_range": "public; numbers outside are clipped",
    "min_records": "how many a party must have; public",
    "records": "about how many there are in all; public",
    "scaled": "the study that found centres and scales, as it ran",
    "held_out": "the share of rows that is not trained on, but counted",
}

_PRIVACY_COMMENTS = {
    "epsilon": "at most so much is lost about anybody, ...",
    "delta": "... but for this chance, ...",
    "colluders": "... to any so many parties together, ...",
    "attempts": "... who see a party publish so many times at most,",
    "absent": "and so many parties may be missing from an attempt",
}

_PROTOCOL_COMMENTS = {"sigma": "each party's noise, where values reach from -1 to 1"}


def read(path: str | os.PathLike[str]) -> Study:
    """The study in a file; a mistake is named with its line."""
    from netdp.peers.study.study import Study

    try:
        content = Path(path).read_text("utf-8")
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(path, None, "is not a UTF-8 text file") from None
    try:
        fields = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise FileFormatError(path, int(line[1]) if line else None, f"is not valid TOML: {error}") from None
    except RecursionError:
        raise FileFormatError(path, None, "is nested too deeply to be a study") from None
    try:
        return Study(**fields)
    except Misfit as problem:
        where = f"{place_text(problem.place)}: " if problem.place else ""
        raise FileFormatError(path, line_of(content, problem.place), f"{where}{problem.problem}") from None


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def text(study: Study) -> str:
    """The study as TOML."""
    lines = [
        "# A study of netdp. All parties sign what it says; comments and the order of lines do not count.",
        "# In plain words: netdp study explain FILE",
        f"format = {study.format}",
        f"name = {quoted(study.name)}",
    ]
    if study.nonce:
        lines.append(_entry("nonce", study.nonce, "drawn for this study: two studies are never the same"))
    lines += ["", "[task]", *_task(study.task), "", "[privacy]"]
    comments = dict(_PRIVACY_COMMENTS)
    if study.running.has_curator:
        comments["colluders"] = "... to the curator and any so many parties together, ..."
    lines += [_entry(key, value, comments[key]) for key, value in study.privacy.model_dump().items()]
    lines += ["", "[protocol]", *_protocol(study), "", "[network]"]
    if study.network.graph is not None:
        lines.append(_entry("graph", study.network.graph, "who talks to whom, in the order of the parties"))
    else:
        lines += ["edges = [", *(f"  {value_text(list(edge))}," for edge in study.network.edges or ()), "]"]
    lines += [
        "",
        "[timing]",
        _entry("gather", study.timing.gather, "seconds to wait for everybody at first"),
        _entry("patience", study.timing.patience, "seconds without news before an attempt is given up"),
    ]
    for number, party in enumerate(study.participants):
        fields = [(key, value) for key, value in party.model_dump().items() if value]
        head = "[[party]]" if number < study.n else "[curator]"
        lines += ["", head, *(f"{key} = {value_text(value)}" for key, value in fields)]
    return "\n".join(lines) + "\n"


def _task(task: AnyTask) -> list[str]:
    fields = task.model_dump(mode="json", by_alias=True)
    if task.kind in ("train", "scaling"):
        return _training(fields)
    if task.kind == "histogram" and task.categories is not None:
        fields["categories"] = list(task.categories[0])
    usual = {"value": "single", "other": False, "missing": "refuse"}
    shown = {key: value for key, value in fields.items() if value is not None and value != usual.get(key)}
    return [_entry(key, value, _TASK_COMMENTS.get(key, "")) for key, value in shown.items()]


def _training(fields: dict[str, Any]) -> list[str]:
    """What is trained, or scaled; the columns one a line."""
    out = []
    for key, value in fields.items():
        if key == "features":
            columns = [
                ", ".join(f"{name} = {value_text(one)}" for name, one in each.items() if one is not None)
                for each in value
            ]
            out += [
                "features = [  # public ranges: numbers outside are clipped",
                *(f"  {{{each}}}," for each in columns),
                "]",
            ]
        elif value is not None and value != "":
            out.append(_entry(key, value, _TASK_COMMENTS.get(key, "")))
    return out


def _protocol(study: Study) -> list[str]:
    out = []
    for key, value in study.settings.model_dump(mode="json").items():
        comment = study.running.comments.get(key) or _PROTOCOL_COMMENTS.get(key, "")
        if key in ("grid", "modulus"):
            power = math.log2(value)
            what = "the step that values are rounded to" if key == "grid" else "sums are taken modulo this"
            comment = f"2^{power:.0f}: {what}" if power == round(power) else what
        out.append(_entry(key, value, comment))
    return out


def _entry(key: str, value: Any, comment: str = "") -> str:
    line = f"{key} = {value_text(value)}"
    return f"{line:<32}  # {comment}" if comment else line


def value_text(value: Any) -> str:
    """A value as TOML writes it.

    >>> value_text({"range": (0.0, 1.0), "fine": True})
    '{range = [0.0, 1.0], fine = true}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {value_text(item)}' for key, item in value.items())}}}"
    return f"[{', '.join(value_text(item) for item in value)}]"


def quoted(value: str) -> str:
    """Text as TOML writes it.

    >>> print(quoted('a "b" \\\\'), quoted("tab\\there"))
    "a \\"b\\" \\\\" "tab\\u0009here"
    """
    out = []
    for letter in value:
        if letter in '"\\':
            out.append("\\" + letter)
        elif ord(letter) < 32 or ord(letter) == 127:
            out.append(f"\\u{ord(letter):04x}")
        else:
            out.append(letter)
    return f'"{"".join(out)}"'


_KNOWN = ("label", "classes", "range", "features", "model", "missing", "scaled")

_OF_A_NUMBER = ("range", "centre", "scale")

OPEN = "?"
"""What stands in a draft where people have to write something."""


def columns_of(path: str | os.PathLike[str]) -> list[str]:
    """The names of the columns of a table, CSV or Parquet; no row is read."""
    return parquet_columns(path) if is_parquet(path) else csv_columns(path)


def drafted(columns: Sequence[str], label: str | None = None) -> str:
    """A schema to fill in, from names of columns alone; the last one is taken for the label if none is named.

    >>> print(drafted(["age", "ill"]).splitlines()[-1])
    age = ["?"]
    """
    if len(columns) < 2:
        raise InvalidValue(
            f"a model needs a column to predict and one to predict it from; there are only {list(columns)}"
        )
    if label is not None and label not in columns:
        raise InvalidValue(f"there is no column {label!r}; there are {', '.join(map(repr, columns))}")
    label = columns[-1] if label is None else label
    lines = [
        "# What is in everybody's table. Made from the names of the columns alone: no row was read.",
        f'# Write something in place of every "{OPEN}", from what is publicly known: a range that is read off the rows gives',
        "# something away that nobody accounts for. Numbers outside a range are clipped. Take out the lines of columns that",
        "# are not to be used, and those that name people.",
        f"label = {quoted(label)}",
        f'classes = ["{OPEN}"]  # the values there are, ["no", "yes"]; or, to predict a number:  range = [lowest, highest]',
        "",
        "[features]  # of a number its range, [lowest, highest]; of anything else the values there are",
    ]
    names = [name for name in columns if name != label]
    return "\n".join([*lines, *(f'{_key(name)} = ["{OPEN}"]' for name in names)]) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else quoted(name)


def read_schema(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The fields of a `Training` that a schema states: features, label, classes or label_range, perhaps model, missing, scaled."""
    try:
        fields = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(path, None, "is not a UTF-8 text file") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileFormatError(path, None, f"is not valid TOML: {error}") from None
    for key in fields:
        if key not in _KNOWN:
            raise FileFormatError(path, None, f"{key}: is not known here; known: {', '.join(_KNOWN)}")
    if not isinstance(fields.get("features"), dict) or not fields["features"]:
        raise FileFormatError(path, None, "has no section [features], with a line for every column: age = [0, 100]")
    if not isinstance(fields.get("label"), str):
        raise FileFormatError(path, None, 'does not say which column is predicted: label = "…"')
    out: dict[str, Any] = {key: fields[key] for key in ("label", "model", "missing") if key in fields}
    _check_label(path, fields)
    try:
        if "scaled" in fields:
            if not isinstance(fields["scaled"], dict):
                raise InvalidValue(
                    f"scaled = {fields['scaled']!r}: is a section, which `netdp study schema --scaled-by` writes"
                )
            out["scaled"] = Scaled(**fields["scaled"]).model_dump(mode="json")
        out["features"] = [feature(name, said) for name, said in fields["features"].items()]
        if "classes" in fields:
            out["classes"] = tuple(_values(fields["label"], fields["classes"]))
        if "range" in fields:
            found = feature(fields["label"], fields["range"])
            if "range" not in found:
                raise InvalidValue(f"range = {fields['range']!r}: must be two numbers, [lowest, highest]")
            out["label_range"] = found["range"]
    except InvalidValue as problem:
        raise FileFormatError(path, None, str(problem)) from None
    return out


def _check_label(path: str | os.PathLike[str], fields: Mapping[str, Any]) -> None:
    """One of classes and range, and nothing of the draft left in the classes."""
    label, classes = fields["label"], fields.get("classes")
    if "classes" in fields and "range" in fields:
        raise FileFormatError(
            path, None,
            f"has classes = {classes!r} and range = {fields['range']!r} for the label {label!r}: keep classes to predict one of "
            "several values, or range to predict a number, and take the other line out",
        )  # fmt: skip
    if "classes" not in fields and "range" not in fields:
        raise FileFormatError(
            path,
            None,
            f'does not say what the label {label!r} holds: classes = ["no", "yes"], or range = [0, 100] for a number',
        )
    if isinstance(classes, list) and OPEN in classes and len(classes) > 1:
        raise FileFormatError(
            path, None,
            f'classes = {classes!r} still holds the "{OPEN}" of the draft: write every value that the label {label!r} has in its '
            "place, or take it out",
        )  # fmt: skip


def feature(name: str, said: Any) -> dict[str, Any]:
    """A column from what stands behind its name: two numbers are a range, texts are values; a range may have centre and scale.

    >>> feature("age", [20, 60]), feature("sex", ["f", "m"])
    ({'name': 'age', 'range': (20.0, 60.0)}, {'name': 'sex', 'values': ('f', 'm')})
    >>> feature("age", {"range": [20, 60], "centre": 45, "scale": 8})
    {'name': 'age', 'range': (20.0, 60.0), 'centre': 45.0, 'scale': 8.0}
    """
    if isinstance(said, dict):
        return _scaled_feature(name, said)
    if isinstance(said, list) and len(said) == 2 and all(type(one) in (int, float) for one in said):
        return {"name": name, "range": (float(said[0]), float(said[1]))}
    return {"name": name, "values": tuple(_values(name, said))}


def _scaled_feature(name: str, said: dict[str, Any]) -> dict[str, Any]:
    found = feature(name, said.get("range"))
    numbers = {key: said[key] for key in ("centre", "scale") if key in said}
    if (
        "range" not in found
        or not set(said) <= set(_OF_A_NUMBER)
        or any(type(x) not in (int, float) for x in numbers.values())
    ):
        raise InvalidValue(
            f"the column {name!r} has {said!r}; write {{range = [lowest, highest], centre = NUMBER, scale = NUMBER}}"
        )
    return found | {key: float(x) for key, x in numbers.items()}


def _values(name: str, said: Any) -> list[str]:
    if said == [OPEN]:
        raise InvalidValue(
            f'the column {name!r} is still open: write its range, [lowest, highest], or its values, ["a", "b"]'
        )
    if not isinstance(said, list) or not all(type(one) in (str, int) for one in said):
        raise InvalidValue(
            f'the column {name!r} has {said!r}; write its range, [lowest, highest], or the values there are, ["a", "b"]'
        )
    return [str(one) for one in said]


def typed(flag: str, text: str) -> tuple[str, list[Any]]:
    """A column as it is typed: NAME=LOWEST..HIGHEST, or NAME=a|b|c.

    >>> typed("--feature", "age=20..60"), typed("--feature", "sex=f|m")
    (('age', [20.0, 60.0]), ('sex', ['f', 'm']))
    """
    name, equals, rest = text.partition("=")
    if equals and name.strip():
        if "|" in rest:
            return name.strip(), [part.strip() for part in rest.split("|")]
        low, dots, high = rest.partition("..")
        if dots:
            try:
                return name.strip(), [float(low), float(high)]
            except ValueError:
                pass
    raise InvalidValue(
        f"{flag} is NAME=LOWEST..HIGHEST, such as age=20..60, or NAME=a|b, such as sex=f|m; got {text!r}"
    )


# ── a schema with centres and scales ──────────────────────────────────────────────────────────────────────────────────


def read_answer(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The answer of a scaling study, from what `netdp up --json` or `netdp peer run --json` has printed."""
    try:
        told = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise FileFormatError(path, None, f"is not JSON, as netdp up --json prints it: {error}") from None
    found = next((told[key] for key in ("answer", "result") if isinstance(told, dict) and key in told), told)
    if not isinstance(found, dict):
        raise FileFormatError(path, None, "holds no answer: the study has ended without one")
    if found.get("kind") != "scaling":
        raise FileFormatError(
            path, None, f"is of another task, {found.get('kind')!r}; centres and scales are found by --task scaling"
        )
    return found


def scaled_by(path: str | os.PathLike[str], answer: Mapping[str, Any]) -> str:
    """The schema in a file, with the centres and scales of an answer; refuses an answer about other columns or ranges."""
    fields = read_schema(path)
    if "scaled" in fields or any("centre" in one for one in fields["features"]):
        raise FileFormatError(
            path, None, "has centres and scales already; give the schema that the scaling study was made from"
        )
    try:
        found = [
            (str(one["name"]), (float(one["range"][0]), float(one["range"][1])), one) for one in answer["features"]
        ]
        paid = Scaled(**answer["scaled"]).model_dump(mode="json")
        new = {name: feature(name, {key: one[key] for key in _OF_A_NUMBER}) for name, _, one in found}
    except (KeyError, TypeError, ValueError, IndexError) as problem:
        raise InvalidValue(f"the answer does not state what a scaling study finds: {problem}") from None
    if answer.get("unit") != paid["unit"]:
        raise InvalidValue(f"the answer is for unit {answer.get('unit')!r}, and its study for {paid['unit']!r}")
    asked = [(one["name"], one["range"]) for one in fields["features"] if "range" in one]
    if asked != [(name, span) for name, span, _ in found]:
        mine, theirs = (
            ", ".join(f"{name} {lo:g}..{hi:g}" for name, (lo, hi) in some if (name, (lo, hi)) not in other) or "the same"
            for some, other in (
                (asked, [(name, span) for name, span, _ in found]), ([(name, span) for name, span, _ in found], asked),
            )
        )  # fmt: skip
        raise FileFormatError(
            path, None,
            f"has other columns of numbers, or other ranges, than the study that found the answer: here {mine}, there {theirs}; "
            "the order counts, too",
        )  # fmt: skip
    return _text(fields | {"features": [new.get(one["name"], one) for one in fields["features"]], "scaled": paid})


def _text(fields: Mapping[str, Any]) -> str:
    lines = [
        "# What is in everybody's table. Centres and scales are the answer of the study in [scaled], which has paid for them."
    ]
    names = {"label": "label", "classes": "classes", "label_range": "range", "model": "model", "missing": "missing"}
    lines += [f"{names[key]} = {value_text(fields[key])}" for key in names if key in fields]
    lines += ["", "[features]"]
    for one in fields["features"]:
        said = {key: value for key, value in one.items() if key != "name"}
        plain = said["values"] if "values" in said else said if "centre" in said else said["range"]
        lines.append(f"{_key(one['name'])} = {value_text(plain)}")
    return (
        "\n".join([*lines, "", "[scaled]", *(f"{key} = {value_text(x)}" for key, x in fields["scaled"].items())]) + "\n"
    )
