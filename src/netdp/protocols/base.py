"""What every protocol is: a frozen value that states all that affects privacy, and can be written down and read back.

    kind              a short word for files and tables; no two protocols share one
    n                 how many parties there are
    network           the graph by whose names parties may be called, if there is one
    replace           the same with some fields changed
    to_dict           plain values for JSON; `from_dict` of the class, or of `Protocol` itself, reads them back
    describe          a sentence for people

To bring your own, subclass `Protocol` (docs/howto/extending.md).
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs.graph import Graph

from .family import load_protocols


class Protocol(ABC):
    """The base class of all protocols. Subclasses are frozen dataclasses.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> p = Gossip(graphs.ring(4), rounds=2, sigma=1.0)
    >>> Protocol.from_dict(p.to_dict()) == p, p.kind in Protocol.kinds()
    (True, True)
    """

    kind: ClassVar[str]
    """A short word for files and tables."""

    roles: ClassVar[tuple[str, ...]] = ()
    """Who else looks, besides the parties: ("curator",) if somebody collects the answers."""

    answer: ClassVar[str] = "the mean of the parties' values"
    """What everybody (or the curator) holds in the end."""

    _kinds: ClassVar[dict[str, type[Protocol]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        kind = cls.__dict__.get("kind")
        if kind is None:  # a family's common part, not a protocol
            return
        held = Protocol._kinds.get(kind)
        if held is not None and (held.__module__, held.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InvalidValue(f"the kind {kind!r} belongs to {held.__name__} already; give {cls.__name__} another one")
        Protocol._kinds[kind] = cls

    if TYPE_CHECKING:  # a field of some protocols, a property of others: dataclasses would take it for a default

        @property
        def n(self) -> int:
            """How many parties there are."""

    @property
    def network(self) -> Graph | None:
        """The graph by whose names parties may be called; None where they have numbers only."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """What happens, in a sentence, with the numbers that matter."""

    def prepare(self) -> None:  # noqa: B027  most protocols have nothing to prepare
        """Compute now what several threads would otherwise compute at the same time."""

    def replace(self, **changes: Any) -> Self:
        """The same protocol with some fields changed."""
        known = [f.name for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        if unknown := sorted(set(changes) - set(known)):
            raise InvalidValue(f"{type(self).__name__} has no field {unknown[0]!r}; it has {', '.join(known)}")
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able description; `from_dict` reads it back."""
        if "kind" not in type(self).__dict__:  # it would be read back as its parent
            raise InvalidValue(
                f"{type(self).__name__} has no kind of its own; state one in the class, kind = '…', so that it can be read back"
            )
        fields = {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"protocol": self.kind, **fields}

    def outline(self) -> dict[str, Any]:
        """The same for people and tables: of the network its name, size and digest, not every edge."""
        described = self.to_dict()
        if self.network is not None:
            described["graph"] = described_graph(self.network)
        return described

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Self:
        """Inverse of `to_dict`; refuses unknown fields. `Protocol.from_dict` reads any protocol."""
        if not isinstance(description, dict):
            raise InvalidValue(f"a protocol is described by a dictionary, got {description!r}; to_dict() writes one")
        fields = dict(description)
        given = fields.pop("protocol", cls.__dict__.get("kind"))
        if "kind" not in cls.__dict__:
            load_protocols()
            if given not in Protocol._kinds:
                known = ", ".join(sorted(Protocol._kinds))
                raise InvalidValue(f"no protocol is of the kind {given!r}; the kinds are {known}")
            return Protocol._kinds[given].from_dict(fields)  # type: ignore[return-value]
        if given != cls.kind:
            raise InvalidValue(f"this describes the protocol {given!r}, not {cls.kind!r}; Protocol.from_dict reads any")
        known_fields = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
        if unknown := sorted(set(fields) - known_fields):
            raise InvalidValue(f"unknown fields {unknown} for {cls.kind}; known: {sorted(known_fields)}")
        for name in ("graph", "graphs"):
            if name in fields:
                fields[name] = _graphs(fields[name])
        try:
            return cls(**fields)
        except TypeError as problem:
            raise InvalidValue(f"the description of {cls.kind} is incomplete: {problem}") from None

    @staticmethod
    def kinds() -> dict[str, type[Protocol]]:
        """Every protocol there is, by its kind."""
        load_protocols()
        return dict(Protocol._kinds)

    def __str__(self) -> str:
        return self.describe()

    def _set(self, **values: object) -> None:
        """Set fields while the value is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


class OnGraph(Protocol):
    """A protocol whose parties are the nodes of its field `graph`."""

    if TYPE_CHECKING:

        @property
        def graph(self) -> Graph:
            """The network."""

    @property
    def n(self) -> int:
        """How many parties there are."""
        return self.graph.n

    @property
    def network(self) -> Graph:
        return self.graph


def described_graph(graph: Graph) -> dict[str, Any]:
    """A graph for JSON, without its edges."""
    return {"name": graph.name, "n": graph.n, "m": graph.m, "digest": graph.digest}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):  # a graph, a walk along arrows
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _graphs(value: Any) -> Any:
    if isinstance(value, dict):
        return Graph.from_dict(value)
    if isinstance(value, list | tuple):
        return tuple(_graphs(item) for item in value)
    return value
