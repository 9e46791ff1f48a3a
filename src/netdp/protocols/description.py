"""Protocols as plain values: changing fields, and JSON-able descriptions that can be read back."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

from netdp.errors import InvalidValue
from netdp.graphs import Graph


def fields_of(cls: Any, kind: str, description: dict[str, Any]) -> dict[str, Any]:
    """The fields of a description of a protocol of this kind; refuses another kind and unknown fields."""
    fields = dict(description)
    given = fields.pop("protocol", kind)
    if given != kind:
        raise InvalidValue(f"this describes the protocol {given!r}, not {kind!r}")
    known = {f.name for f in dataclasses.fields(cls)}
    if unknown := sorted(set(fields) - known):
        raise InvalidValue(f"unknown fields {unknown} for {kind}; known: {sorted(known)}")
    return fields


class Described:
    """A frozen dataclass of plain fields and at most one `graph`."""

    kind: ClassVar[str]

    def replace(self, **changes: Any) -> Self:
        """The same protocol with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able description; `from_dict` reads it back."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        if "graph" in fields:
            fields["graph"] = fields["graph"].to_dict()
        return {"protocol": self.kind, **fields}

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Self:
        """Inverse of `to_dict`; refuses unknown fields."""
        fields = fields_of(cls, cls.kind, description)
        if "graph" in fields:
            fields["graph"] = Graph.from_dict(fields["graph"])
        try:
            return cls(**fields)
        except TypeError as problem:
            raise InvalidValue(f"the description of {cls.kind} is incomplete: {problem}") from None
