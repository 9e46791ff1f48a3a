"""What an erratum is, the register of all of them, and the page `docs/papers/errata.md` that is written from it.

The page has every statement with the code that shows it, and what it prints.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from textwrap import dedent
from typing import Any

from netdp.errors import InvalidValue
from netdp.papers.catalogue import PAPERS

# one module per document, in the order of the page
MODULES = ("amplification", "replication", "network_shuffling", "muffliato")

ERRATA: dict[str, Erratum] = {}

_SHOWN: dict[str, Demonstration] = {}


@dataclass(frozen=True)
class Demonstration:
    """What a demonstration computed: `lines` are label and value as text, rounded so that every processor prints the same."""

    lines: tuple[tuple[str, str], ...]
    shown: bool
    """Whether the printed statement is refuted by these numbers."""


@dataclass(frozen=True)
class Erratum:
    """A mistake in a document."""

    id: str
    paper: str
    place: str
    printed: str
    """What it says there, in our words."""
    true: str
    """What is true, and why, in one or two sentences."""
    demonstrate: Callable[[], Demonstration]

    def shown(self) -> Demonstration:
        """What the demonstration computes, once in a process; one that does not show what it says is an error."""
        if self.id not in _SHOWN:
            found = self.demonstrate()
            if not found.shown:
                raise AssertionError(f"{self.id}: the demonstration does not show it: {found.lines}")
            _SHOWN[self.id] = found
        return _SHOWN[self.id]

    def to_dict(self) -> dict[str, Any]:
        """The erratum with its demonstration run, as JSON has it."""
        return {
            "id": self.id,
            "paper": self.paper,
            "place": self.place,
            "printed": self.printed,
            "true": self.true,
            "computed": [{"what": label, "value": value} for label, value in self.shown().lines],
            "demonstration": self.source,
        }

    @property
    def source(self) -> str:
        """The demonstration as code to read."""
        text = dedent(inspect.getsource(self.demonstrate))
        return text[text.index("\ndef ") + 1 :] if "\ndef " in text else text


def erratum(
    id: str, paper: str, place: str, *, printed: str, true: str
) -> Callable[[Callable[[], Demonstration]], Erratum]:
    """Register the decorated demonstration as an erratum."""

    def register(demonstrate: Callable[[], Demonstration]) -> Erratum:
        if id in ERRATA:
            raise ValueError(f"two errata are called {id!r}")
        ERRATA[id] = Erratum(id, paper, place, printed, true, demonstrate)
        return ERRATA[id]

    return register


def load() -> dict[str, Erratum]:
    """All errata, in the order of the documents."""
    for name in MODULES:
        import_module(f"netdp.papers.errata.{name}")
    order = sorted(ERRATA.values(), key=lambda one: one.paper)  # of one document, in the order of its file
    return {one.id: one for one in order}


def find(id: str) -> Erratum:
    """The erratum of that name."""
    if id not in load():
        raise InvalidValue(f"no erratum is called {id!r}; known: {', '.join(ERRATA)}")
    return ERRATA[id]


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
    shown = one.shown()
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
