"""`docs/errata.md`, written from the errata themselves: every statement with the code that shows it, and what it prints."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..papers import PAPERS
from .base import Erratum, load

_HEAD = """<!-- written by `netdp reproduce errata`; do not edit -->
# Errata

Where the five documents are mistaken, as far as we know: what is printed, what is true, and the smallest computation that shows
it. Every demonstration runs in the tests; `netdp reproduce errata` runs them all and writes this page. We are grateful to the
authors, on whose work this project stands, and glad to be corrected in turn.
"""


def markdown(errata: Iterable[Erratum] | None = None) -> str:
    """The page. Every demonstration runs; one that does not show what it says is an error."""
    found = list(load().values() if errata is None else errata)
    parts = [_HEAD]
    for key, paper in PAPERS.items():
        mine = [one for one in found if one.paper == key]
        if mine:
            parts.append(f"## {paper.short}\n\n{paper.reference}\n")
            parts.extend(entry(one) for one in mine)
    return "\n".join(parts)


def entry(one: Erratum) -> str:
    """One erratum, its demonstration run."""
    shown = one.demonstrate()
    if not shown.shown:
        raise AssertionError(f"{one.id}: the demonstration does not show it: {shown.lines}")
    cells = [[cell.replace("|", "\\|") for cell in line] for line in shown.lines]  # |V| would be three cells
    lines = "\n".join(f"| {label} | {value} |" for label, value in cells)
    return (
        f'<a id="{one.id}"></a>\n### {one.place} (`{one.id}`)\n\n'
        f"**Printed.** {_formulas(one.printed)}\n\n**True.** {_formulas(one.true)}\n\n| computed | |\n|---|---|\n{lines}\n\n"
        f"<details><summary>Demonstration</summary>\n\n```python\n{one.source}```\n\n</details>\n"
    )


def _formulas(text: str) -> str:
    """(W_t)_u as it is meant: an underscore behind a bracket would begin emphasis in Markdown."""
    return re.sub(r"(?<=[)\]}])_", r"\\_", text)
