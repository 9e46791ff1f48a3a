"""One settings model per command and protocol: which flags belong to it, and the protocol they make.

The settings of a protocol are its fields, as its dataclass states them (`protocol_fields`), so none can be forgotten.
Whatever a model does not know is refused by name (`loading`): a flag that does nothing would be believed to do something.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import re
import types
import typing
from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from netdp import graphs, protocols
from netdp.engines.choice import Engine, engine
from netdp.errors import FileFormatError, InvalidValue
from netdp.graphs.graph import Graph
from netdp.graphs.spec import linked
from netdp.numerics.arrays import Progress
from netdp.protocols.answers import Answer, answer
from netdp.protocols.base import Protocol
from netdp.protocols.calibration import calibrate
from netdp.protocols.family import Way
from netdp.protocols.planning import Plan, plan
from netdp.settings.catalogue import LEFT_OUT, RENAMED


def _several(value: Any) -> Any:
    return [value] if isinstance(value, int | str) and not isinstance(value, bool) else value


def _ends(value: Any) -> Any:
    """(lo, hi) from the text "lo,hi", or from a list of two numbers."""
    parts = value.split(",") if isinstance(value, str) else value
    try:
        low, high = (float(part) for part in parts)
    except (TypeError, ValueError):
        raise ValueError("two numbers are needed, lo,hi such as 0,1") from None
    if not (math.isfinite(high - low) and low < high):
        raise ValueError("two finite numbers lo < hi are needed, such as 0,1")
    return low, high


Parties = Annotated[list[int | str], BeforeValidator(_several)]

Bounds = Annotated[tuple[float, float], BeforeValidator(_ends)]


class Settings(BaseModel):
    """What every command needs. A field is called like its flag, with _ for - inside."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=lambda name: name.replace("_", "-"))
    graph: str
    protocol: str = "gossip"
    as_json: bool = Field(False, alias="json")
    engine: str | None = None
    workers: int | None = None
    scheduler: str | None = None
    _at_hand: Graph | None = PrivateAttr(None)

    def on(self, graph: Graph) -> Self:
        """The same with the graph that `graph` names, which was read before and is not read again."""
        self._at_hand = graph
        return self

    def running(self) -> Engine:
        """Where long work is done, for a `with` block."""
        return engine(self.engine, workers=self.workers, scheduler=self.scheduler)

    @classmethod
    def flags(cls) -> list[str]:
        """The names that may be given, those of its own first."""
        own = cls.__annotations__
        order = sorted(cls.model_fields, key=lambda name: (name in Settings.model_fields, name not in own))
        return [cls.model_fields[name].alias or name for name in order]

    def network(self) -> Graph:
        """The graph."""
        return graphs.parse(self.graph) if self._at_hand is None else self._at_hand


class Making(Settings):
    """Settings that make a protocol."""

    @abstractmethod
    def made(self) -> Protocol:
        """The protocol."""


def _words(value: Any) -> Any:
    """ "100" of a flag as the number 100; a word as it is."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


#: Fields whose type on the command line is not that of the protocol.
_TYPES: dict[str, Any] = {"closing": bool | float}

#: Flags that are text for one protocol and a number for another.
_EITHER = ("masks", "absent")


def protocol_fields(way: Way) -> dict[str, tuple[Any, Any]]:
    """The settings of a protocol: the fields of its dataclass but the first, with their types and defaults."""
    kind = getattr(protocols, way.protocol)
    hints = typing.get_type_hints(kind)
    made: dict[str, tuple[Any, Any]] = {"rounds": (int, ...)} if way.first == "graphs" else {}
    for field in dataclasses.fields(kind):
        if field.name in ("n", "graph", "graphs", "links") or field.name in LEFT_OUT:
            continue
        hint = _typed(_TYPES.get(field.name, hints[field.name]))
        if field.name in _EITHER:
            hint = Annotated[hint, BeforeValidator(_words)]
        default = ... if field.default is dataclasses.MISSING else field.default
        made[RENAMED.get(field.name, field.name)] = (hint, default)
    return made


def _typed(hint: Any) -> Any:
    """What of a type can be typed: words, numbers, and several numbers with commas between; no graphs, no matrices."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    several = any(typing.get_origin(kind) is tuple and float in typing.get_args(kind) for kind in kinds)
    plain = [kind for kind in kinds if kind in (int, float, str, bool, type(None))]
    if several:
        return Annotated[functools.reduce(operator.or_, [tuple[float, ...], *plain]), BeforeValidator(_numbers_of)]
    return functools.reduce(operator.or_, plain)


def _numbers_of(value: Any) -> Any:
    """(1, 2, 3) from the text "1,2,3", or from a list."""
    parts = value.split(",") if isinstance(value, str) else value
    try:
        return parts if parts is None else tuple(float(part) for part in parts)
    except (TypeError, ValueError):
        raise ValueError("numbers are needed, with commas between, such as 1,2,2") from None


class Protocolled(Making):
    """Settings whose protocol is made of its fields."""

    way: ClassVar[Way]

    def made(self) -> Protocol:
        """The protocol."""
        kind = getattr(protocols, self.way.protocol)
        back = {new: old for old, new in RENAMED.items()}
        chosen = {back.get(n, n): getattr(self, n) for n in protocol_fields(self.way) if n in self.model_fields_set}
        suits(self.way, self.graph, self._at_hand)
        return made(kind, self.way.first, self.graph, chosen, self._at_hand)


def suits(way: Way, graph: str, at_hand: Graph | None = None) -> None:
    """Refuses a graph without the links that a protocol needs, of which it would keep the number of users and nothing else."""
    if way.only and graph.partition(":")[0] not in way.only:
        n = users(graph) if at_hand is None else at_hand.n
        others = " or ".join(f"{one}:{n}" for one in way.only)
        raise InvalidValue(f"{way.protocol} needs links {way.links}, which {graph} may not have; give {others}")


def one_way(graph: str) -> Any:
    """One-way links from a file with two columns, from and to; or the links of a graph as typed, both ways."""
    import networkx as nx

    path = Path(graph)
    if not path.is_file():
        return nx.DiGraph(graphs.parse(graph).to_networkx())
    links = nx.DiGraph()
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        ends = line.partition("#")[0].replace(",", " ").split()
        if ends and len(ends) != 2:
            raise FileFormatError(path, number, f"expected two names, from and to, got {line.strip()!r}")
        links.add_edges_from([ends] if ends else [])
    return links


def made(kind: Any, first: str, graph: str, chosen: dict[str, Any], at_hand: Graph | None = None) -> Protocol:
    """A protocol on GRAPH as typed: a graph (or the one at hand), a number of users, or graphs that are taken in turns."""
    if first == "users":
        protocol = kind(users(graph) if at_hand is None else at_hand.n, **chosen)
    elif first == "links":
        protocol = kind.on(one_way(graph), **chosen)
    elif first == "graphs":
        turns = [graphs.parse(part) for part in turns_of(graph)]
        rounds = chosen.pop("rounds")
        protocol = kind(tuple(turns[t % len(turns)] for t in range(rounds)), **chosen)
    else:
        protocol = kind(graphs.parse(graph) if at_hand is None else at_hand, **chosen)
    assert isinstance(protocol, Protocol)
    return protocol


def turns_of(graph: str) -> list[str]:
    """The graphs of ring:8+hypercube:3; links that are laid over one of them, +rings:2, belong to it."""
    return re.split(r"\+(?!rings:)", graph)


class Looking(Protocolled):
    """Who looks, and at which δ the loss is stated."""

    observer: Parties | None = None
    delta: float = 1e-6

    def observers(self, protocol: Protocol) -> list[int | str]:
        """The observers as typed, each found in the graph; the first party by default, and always the curator if there is one."""
        network = protocol.network
        if self.observer is None:
            first = 0 if network is None else network.label(0)
            return list(protocol.roles) or [first]
        named = [party for party in self.observer if party not in protocol.roles]
        return [*protocol.roles, *found(protocol, named)]


class Accounting(Looking):
    """`netdp account`."""

    colluders: int | None = None
    rdp: float | None = None
    who_learns_most: bool = False
    plot: str | None = None


class Auditing(Looking):
    """`netdp audit` of a protocol."""

    target: int | str | None = None
    colluders: int = 3
    trials: int | None = None
    confidence: float = 0.9999
    seed: int = 0
    plot: str | None = None


class RunSettings(Looking):
    """`netdp simulate`."""

    values: str | None = None
    column: str | None = None
    uniform: bool = False
    bounds: Bounds | None = None
    seed: int | None = None


class RecordSettings(RunSettings):
    """`netdp simulate` of what parties see."""

    record: Parties | None = None


class Planned(Settings):
    """`netdp plan` of anything: on the graph as it is, or with random rings laid over it."""

    links: int = 0
    links_seed: int = 0
    plot: str | None = None
    bar: ClassVar[bool] = False
    """Whether the planner tells how far it is."""

    @abstractmethod
    def planned(self, progress: Progress | None = None) -> Plan | Answer:
        """What meets the target."""

    @property
    def by_distance(self) -> bool:
        """Whether what is asked for depends on how far apart two parties are."""
        return False

    def check(self) -> None:
        """Refuse what is missing or said twice; every graph will do."""

    def network(self) -> Graph:
        """The graph, with its links."""
        return graphs.with_links(super().network(), self.links, self.links_seed)

    def check_links(self) -> None:
        """Refuse links that would change nothing."""
        if "links_seed" in self.model_fields_set and not (self.links or getattr(self, "advise", False)):
            raise InvalidValue("--links-seed is about random links; give --links (for example 2), or leave it out")


class Advised(Planned):
    """A plan that can also propose links."""

    advise: bool = False
    links_for: ClassVar[str]
    """What links are proposed for in the first place, of `netdp.protocols.links.PROTOCOLS`."""

    @abstractmethod
    def links_options(self) -> dict[str, Any]:
        """What `advise_links` is told besides the seed."""

    def topologies(self, progress: Progress) -> Any:
        """Advice on other graphs, or why there is none (a text); None if there is never any."""
        return None

    def check_links(self) -> None:
        """Refuse what --advise finds itself."""
        super().check_links()
        if self.advise and self.links:
            raise InvalidValue(f"--advise proposes links itself; leave --links {self.links} out")


class PlanAll(Planned):
    """`netdp plan` of every family, in one table."""

    protocol: str = "all"
    epsilon: float
    delta: float = 1e-6
    colluders: int = 1
    absent: Annotated[int, BeforeValidator(_words)] = 0
    sensitivity: float = 1.0
    dimension: int = 1
    seconds: float = 20.0
    bar: ClassVar[bool] = True

    def planned(self, progress: Progress | None = None) -> Plan:
        """All families in one table."""
        return plan(
            self.network(), self.epsilon, self.delta, colluders=self.colluders, absent=self.absent,
            sensitivity=self.sensitivity, dimension=self.dimension, seconds=self.seconds, progress=progress,
        )  # fmt: skip


class PlanNoise(Planned, Protocolled):
    """`netdp plan` of a protocol as stated but for its noise, which is found."""

    epsilon: float
    delta: float = 1e-6
    colluders: int = 1

    def planned(self, progress: Progress | None = None) -> Answer:
        """The least noise, against any so many parties."""
        options: dict[str, Any] = {} if self.colluders == 1 else {"colluders": self.colluders}
        found = calibrate(self.made(), self.epsilon, self.delta, **options)
        if found.roles and self.colluders == 1:
            return answer(found, list(found.roles), self.delta, progress=progress)
        return answer(found, None, self.delta, colluders=self.colluders, progress=progress)

    def made(self) -> Protocol:
        """The protocol with a noise that is only a beginning."""
        kind = getattr(protocols, self.way.protocol)
        back = {new: old for old, new in RENAMED.items()}
        chosen = {back.get(n, n): getattr(self, n) for n in plan_fields(self.way) if n in self.model_fields_set}
        start: dict[str, Any] = {noise_of(kind): 0.5 if noise_of(kind) == "gamma" else 1.0}
        suits(self.way, self.graph, self._at_hand)
        turns = turns_of(self.graph) if self.way.first == "graphs" else [self.graph]
        where = "+".join(linked(part, self.links, self.links_seed) for part in turns)
        at_hand = None if self._at_hand is None else self.network()
        return made(kind, self.way.first, where, {**chosen, **start}, at_hand)

    def check_links(self) -> None:
        """Links are for protocols that talk along the links of a graph."""
        super().check_links()
        if self.links and self.way.first not in ("graph", "graphs"):
            raise InvalidValue(
                f"--links {self.links}: {self.protocol} on {self.graph} does not go along the links of a graph; leave it out"
            )


NOISES = ("sigma", "gamma", "epsilon0")


def noise_of(kind: Any) -> str:
    """Which field of a protocol `calibrate` finds."""
    return next(field.name for field in dataclasses.fields(kind) if field.name in NOISES)


def plan_fields(way: Way) -> dict[str, tuple[Any, Any]]:
    """The settings of a protocol whose noise is to be found."""
    kind = getattr(protocols, way.protocol)
    return {name: field for name, field in protocol_fields(way).items() if name != noise_of(kind)}


def parties(graph: Graph, named: list[int | str]) -> list[int | str]:
    """Parties as typed, each found in the graph: their names where the graph has names, else their numbers.

    What is typed on a command line is text, so `-o 1` is the party named '1' where parties have names, in whatever
    place it stands; in a settings file the number 1 may be refused as ambiguous, "1" is the name.
    """
    return [graph.label(graph.index(party)) for party in named]


def found(protocol: Protocol, named: list[int | str]) -> list[int | str]:
    """Parties of a protocol as typed: by name where its graph has names, else by number."""
    return _numbers(named) if protocol.network is None else parties(protocol.network, named)


def users(graph: str) -> int:
    """How many users there are: N of complete:N or ring:N, where no graph has to be built, else the graph's parties.

    >>> users("complete:1000000"), users("hypercube:3")
    (1000000, 8)
    """
    family, _, size = graph.partition(":")
    if family not in ("complete", "ring"):
        return graphs.parse(graph).n
    try:
        return int(size)
    except ValueError:
        raise InvalidValue(f"how many users? got {size!r}; write for example complete:1000") from None


def _numbers(named: list[int | str]) -> list[int | str]:
    try:
        return [int(party) for party in named]
    except ValueError:
        raise InvalidValue(f"users have numbers here, got {named!r}") from None


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(path, None, "is not a UTF-8 text file") from None
