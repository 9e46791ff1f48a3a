"""Studies as files: TOML that people read and edit, with a comment where a number needs one.

What `text` writes, `read` reads back to an equal study: numbers are written with all their digits.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netdp.errors import FileFormatError

from ..model import Misfit, line_of, place_text

if TYPE_CHECKING:
    from .scaling import Scaling
    from .study import Study
    from .task import Task
    from .training import Training

_TASK_COMMENTS = {
    "unit": 'what is protected: all data of a "party", or any one "record" of it',
    "bounds": "public; numbers outside are clipped",
    "value": "how the rows of a party become its one number",
    "edges": "bins [a, b), the last one closed; numbers outside are clipped",
    "bins": "so many equal ones between the bounds",
    "other": "whether values that are not listed are counted in a cell of their own",
    "missing": 'rows with empty cells: "refuse" or "skip"',
    "max_records": "how many a party may have; public",
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
    from .study import Study

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


def _task(task: Task | Training | Scaling) -> list[str]:
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
