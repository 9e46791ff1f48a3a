"""Reading protocols back from their JSON-able descriptions."""

from __future__ import annotations

import dataclasses
from typing import Any

from netdp.errors import InvalidValue


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
