"""Families of protocols: what each offers, and how the parts of it are found and loaded.

A family is a folder of `netdp.families`. It holds everything that is particular to its protocols: the protocols themselves,
their accountants, predictions, planners, simulators, attacks and peers. Its `__init__` is light and states one record, FAMILY;
all else is named by path and loaded when somebody asks. Machinery asks the record and never names a protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

FAMILIES = ("masked", "gossip", "token", "shuffle", "baselines", "linear")
"""The folders of `netdp.families`; a new one is entered here."""


@dataclass(frozen=True)
class Way:
    """A protocol of `netdp.protocols`, and how it is made and run.

    first   what GRAPH stands for: the graph, the number of users, one graph per round, or links
    study   the word that a study calls it by, where real peers run it
    only    the families of graphs that have the links it needs, where it takes the number of users; any by default
    links   which links these are
    """

    protocol: str
    first: str = "graph"
    study: str | None = field(default=None, kw_only=True)
    only: tuple[str, ...] = field(default=(), kw_only=True)
    links: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class CatalogueEntry:
    """What `netdp protocols` says of one name, and which settings commands take for it.

    ways      by the family of the graph, "" for any other
    claims    what is known about its certified loss
    example   a command that works as it stands
    subject   what is spoken of when a setting is refused, {graph} where the graph is part of it; the name by default
    plan, run   "module:class" of the settings of `netdp plan` and `netdp simulate`, where fields of the protocol do not do
    """

    name: str
    does: str
    claims: str
    example: str
    ways: Mapping[str, Way] = field(compare=False)
    subject: str | None = field(default=None, kw_only=True)
    plan: str | None = field(default=None, kw_only=True)
    run: str | None = field(default=None, kw_only=True)

    def way(self, graph: str) -> Way:
        """What to do on this graph."""
        family = "" if "+rings:" in graph else graph.partition(":")[0]  # a ring with links over it is any other graph
        return self.ways.get(family, self.ways[""])


@dataclass(frozen=True)
class FamilyWords:
    """What a family says to people: the names of its protocols, what each setting means, and where the words for one are.

    choices   the setting, or "class.setting" where a protocol has words of its own → "module:name" of the words
    """

    entries: tuple[CatalogueEntry, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """What one family offers. Modules are named within the family's folder, or in full ("netdp.papers.…").

    name        the folder
    protocols   module → the classes of protocols that it defines, for `netdp.<class>` and `Protocol.from_dict`
    parts       a part of the work ("account", "error", "plan", "simulate", "attack", "learn", "published") → the modules that enter
                functions for it in the strict tables (`netdp.protocols.table`)
    words       "module:name" of its `FamilyWords`, a module that loads nothing else
    plan        "module:function", the family's own planner with all its options: (graph, epsilon, delta, …) → a plan
    offer       "module:function", what it offers for a private mean in the table of all families: (Asked) → a plan, or a refusal
    links       what random links are advised for → "module:function": (Sought, options) → `netdp.protocols.links.Linking`
    training    the word that an estimator calls a way to learn by → "module:function" (`netdp.learn.fitting.learner`)
    kinds       the word that a study calls a protocol by → "module:class", a `netdp.peers.kinds.Kind`
    recordings  the same word → "module:class", a `netdp.peers.recordings.kinds.RecordedKind`: what an audit asks about a recording
    losses      the word that an entry of a ledger calls a loss by → "module:name", a `netdp.peers.ledger.losses.Loss`
    """

    name: str
    protocols: Mapping[str, tuple[str, ...]]
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    recordings: Mapping[str, str] = field(default_factory=dict)
    words: str | None = None
    plan: str = ""
    offer: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    training: Mapping[str, str] = field(default_factory=dict)
    losses: Mapping[str, str] = field(default_factory=dict)

    def module(self, path: str) -> ModuleType:
        """A module of the family, by its path in the folder."""
        return import_module(path if path.startswith("netdp.") else f"netdp.families.{self.name}.{path}")

    def named(self, path: str) -> Any:
        """What "module:name" stands for."""
        module, _, name = path.partition(":")
        return getattr(self.module(module), name)

    def load(self, part: str) -> None:
        """Import the modules that enter functions for a part of the work."""
        for path in self.parts.get(part, ()):
            self.module(path)


@cache
def family(name: str) -> Family:
    """The record of a family.

    >>> family("masked").protocols["protocol"]
    ('MaskedSum',)
    """
    found: Family = import_module(f"netdp.families.{name}").FAMILY
    return found


def families() -> Iterator[Family]:
    """All records."""
    return map(family, FAMILIES)


@cache
def spoken() -> tuple[tuple[Family, FamilyWords], ...]:
    """The families that have something to say to people, and what they say."""
    return tuple((one, one.named(one.words)) for one in families() if one.words is not None)


def load(kind: type, part: str) -> None:
    """Load a part of the work of every family that a type of protocols, or one it is derived from, belongs to.

    Entries for a type are made in its own family, so all that can hold for the type is in the tables afterwards.
    """
    for base in kind.__mro__:
        if base.__module__.startswith("netdp.families."):
            _loaded(base.__module__.split(".")[2], part)


@cache
def _loaded(name: str, part: str) -> None:
    family(name).load(part)


@cache
def protocol_modules() -> dict[str, tuple[Family, str]]:
    """The class name of every protocol → its family and module."""
    return {name: (one, module) for one in families() for module, names in one.protocols.items() for name in names}


def protocol_named(name: str) -> type:
    """The class of a protocol by its name; KeyError if there is none."""
    one, module = protocol_modules()[name]
    found: type = getattr(one.module(module), name)
    return found


@cache
def family_of_kind(word: str) -> Family:
    """The family of a protocol by the word that a study calls it by; StopIteration if there is none."""
    return next(one for one in families() if word in one.kinds)


@cache
def load_protocols() -> None:
    """Import every protocol, so that files that name one can be read."""
    for name in protocol_modules():
        protocol_named(name)
