"""Frozen records that are read from files: unknown fields are refused, and every refusal names its field.

pydantic reports what does not fit as a list of its own making. `Strict` turns the first of them into one sentence, with
the place in the file ("privacy.epsilon"), the value, and the way out; `Misfit` carries the place, so that a reader of
files can add the line.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from netdp.errors import InvalidValue

# −0.0 equals 0.0 but is written differently: one of them must be the only one, or equal studies had different hashes.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False), AfterValidator(lambda x: x + 0.0)]
"""A finite number; text that looks like one is refused."""

Whole = Annotated[int, Field(strict=True)]
"""A whole number; neither 3.0 nor true."""

Switch = Annotated[bool, Field(strict=True)]
"""true or false."""


class Misfit(InvalidValue):
    """A field does not fit; `place` says which, from the outside in."""

    def __init__(self, place: tuple[str | int, ...], problem: str) -> None:
        self.place, self.problem = place, problem
        super().__init__(f"{place_text(place)}: {problem}" if place else problem)


def place_text(place: tuple[str | int, ...]) -> str:
    """A place as it is written: party[3].address.

    >>> place_text(("party", 3, "address"))
    'party[3].address'
    """
    out = ""
    for part in place:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out


class Strict(BaseModel):
    """A frozen record without unknown fields, whose refusals are `InvalidValue`.

    >>> class Point(Strict):
    ...     x: Number
    >>> Point(x=1).x
    1.0
    >>> Point(x="1")
    Traceback (most recent call last):
    netdp.peers.records.Misfit: x: Input should be a valid number, got '1'
    >>> Point(y=1)
    Traceback (most recent call last):
    netdp.peers.records.Misfit: y: is not known here; known: x
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise _first(error, type(self)) from None


def _first(error: ValidationError, model: type[BaseModel]) -> Misfit:
    # a word that is not known says more than the one that is missing in its place
    found = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    # a tagged union puts its tag after the field's name; no file has such a place
    tags = _tags(model, found["loc"])
    place = (*found["loc"][:1], *(part for part in found["loc"][1:] if part not in tags))
    inner = found.get("ctx", {}).get("error")
    if isinstance(inner, Misfit):
        return Misfit((*place, *inner.place), inner.problem)
    if inner is not None:
        return Misfit(place, str(inner))
    if found["type"] == "missing":
        return Misfit(place, "is missing")
    if found["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in model.model_fields.items()]
        return Misfit(place, f"is not known here; known: {', '.join(known)}")
    if found["type"] == "union_tag_not_found":
        return Misfit((*place, "kind"), f"is missing; give one of {', '.join(tags)}")
    if found["type"] == "union_tag_invalid":
        return Misfit((*place, "kind"), f"must be one of {', '.join(tags)}, got {found['ctx']['tag']!r}")
    return Misfit(place, f"{found['msg']}, got {found['input']!r}")


def _tags(model: type[BaseModel], place: tuple[str | int, ...]) -> tuple[str, ...]:
    """The words that tell the members of a tagged union apart, where the place is in one: the values of their field `kind`."""
    out: list[str] = []
    for name, field in model.model_fields.items():
        if field.discriminator is not None and place[:1] == (field.alias or name,):
            for member in get_args(field.annotation):
                out += get_args(member.model_fields["kind"].annotation)
    return tuple(out)


def line_of(content: str, place: tuple[str | int, ...]) -> int | None:
    """The line at which a place stands in TOML written in sections, as ours is; of its section if it is not there.

    >>> line_of("[privacy]\\ndelta = 1\\n[[party]]\\n[[party]]\\nname = 3", ("party", 1, "name"))
    5
    """
    section: tuple[str | int, ...] = ()
    here: tuple[str | int, ...]
    seen: dict[str, int] = {}
    best: tuple[int, int] | None = None
    for number, line in enumerate(content.splitlines(), start=1):
        if match := re.match(r"\s*\[\[\s*([\w-]+)\s*\]\]", line):
            seen[match[1]] = seen.get(match[1], -1) + 1
            section = (match[1], seen[match[1]])
            here = section
        elif match := re.match(r"\s*\[\s*([\w-]+)\s*\]", line):
            section = here = (match[1],)
        elif match := re.match(r"\s*([\w-]+)\s*=", line):
            here = (*section, match[1])
        else:
            continue
        # an array of tables may be meant as a whole: then its first table will do
        shared = (
            len(here) if place[: len(here)] == here else 1 if place and here[0] == place[0] and len(place) == 1 else 0
        )
        if shared and (best is None or shared > best[0]):
            best = (shared, number)
    return best[1] if best else None
