"""`docs/errata.md`, written from the errata themselves: every statement with the code that shows it, and what it prints."""

from __future__ import annotations

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
    lines = "\n".join(f"| {label} | {value} |" for label, value in shown.lines)
    return (
        f'<a id="{one.id}"></a>\n### {one.place} (`{one.id}`)\n\n'
        f"**Printed.** {one.printed}\n\n**True.** {one.true}\n\n| computed | |\n|---|---|\n{lines}\n\n"
        f"<details><summary>Demonstration</summary>\n\n```python\n{one.source}```\n\n</details>\n"
    )
