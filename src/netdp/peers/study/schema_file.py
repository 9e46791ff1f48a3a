"""A schema as a file: what is in everybody's table, written by people, before anybody looks at rows.

    label = "cardio"
    classes = ["0", "1"]              # or: range = [0, 100], to predict a number

    [features]
    age = [29, 65]                    # the public range of a number
    gender = ["f", "m"]               # or the values there are

`drafted` writes such a file from the *names* of the columns alone, with the ranges left open: a range that is read off the
rows is an answer about them, which nobody has accounted for.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netdp.errors import FileFormatError, InvalidValue

from .file import quoted
from .rows import csv_columns, is_parquet, parquet_columns

_KNOWN = ("label", "classes", "range", "features", "model", "missing")
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
    """The fields of a `Training` that a schema states: features, label, classes or label_range, perhaps model and missing."""
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
    try:
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


def feature(name: str, said: Any) -> dict[str, Any]:
    """A column from what stands behind its name: two numbers are a range, texts are values.

    >>> feature("age", [20, 60]), feature("sex", ["f", "m"])
    ({'name': 'age', 'range': (20.0, 60.0)}, {'name': 'sex', 'values': ('f', 'm')})
    """
    if isinstance(said, list) and len(said) == 2 and all(type(one) in (int, float) for one in said):
        return {"name": name, "range": (float(said[0]), float(said[1]))}
    return {"name": name, "values": tuple(_values(name, said))}


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
