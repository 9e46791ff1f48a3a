"""What an erratum is, and the register of all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from textwrap import dedent

from netdp.errors import InvalidValue

# one module per document, in the order of the page
MODULES = ("amplification", "replication", "slides", "network_shuffling", "muffliato")
ERRATA: dict[str, Erratum] = {}


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
        import_module(f"netdp.reproduce.errata.{name}")
    order = sorted(ERRATA.values(), key=lambda one: one.paper)  # of one document, in the order of its file
    return {one.id: one for one in order}


def find(id: str) -> Erratum:
    """The erratum of that name."""
    if id not in load():
        raise InvalidValue(f"no erratum is called {id!r}; known: {', '.join(ERRATA)}")
    return ERRATA[id]
