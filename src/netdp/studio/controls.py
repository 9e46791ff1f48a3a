"""Which sliders, switches and choices a protocol has on the page: its settings, as `netdp.settings` reads them off its fields.

Ranges are those of a slider; the box beside it takes any number, and what a protocol refuses is refused with its own words.
"""

from __future__ import annotations

import shlex
import types
import typing
from typing import Any

import numpy as np

from netdp.graphs.mixing import MIXINGS
from netdp.graphs.transitions import WALKS
from netdp.models.parties import AGGREGATES
from netdp.protocols.base import Protocol
from netdp.protocols.family import Way, spoken
from netdp.protocols.grid import NOISE_LAWS
from netdp.settings.catalogue import CATALOGUE, RENAMED, SWITCHES, WORDS
from netdp.settings.models import protocol_fields

CHOICES: dict[str, tuple[str, ...]] = {
    "mixing": tuple(MIXINGS), "aggregate": tuple(AGGREGATES), "law": tuple(NOISE_LAWS), "walk": tuple(WALKS),
    **{name: tuple(family.named(path)) for family, words in spoken() for name, path in words.choices.items()},
}  # fmt: skip
"""Settings that are one word of a few; "class.setting" where a protocol has other words for it."""

RANGES: dict[str, tuple[float, float]] = {
    "rounds": (1, 1000), "steps": (1, 1_000_000), "iterations": (1, 1000), "gossip_rounds": (1, 100), "sigma": (0.01, 1000),
    "sensitivity": (0.01, 100), "refresh": (0.001, 10), "masks": (0.1, 1e6), "step": (0.001, 10), "clip": (0.01, 10),
    "domain": (2, 1000), "epsilon0": (0.01, 8), "edge_probability": (1e-4, 1), "cover": (1, 1000), "bundles": (1, 100),
    "values": (2, 1000),
}  # fmt: skip
"""Sliders whose steps are factors; where 0 is allowed it is the left end."""

SHARES = ("gamma", "laziness", "outages", "crashes", "lost", "sampling", "momentum", "variation")
"""Settings between 0 and 1."""

FIRST = (
    "rounds", "steps", "iterations", "gossip_rounds", "sigma", "masks", "refresh", "accelerated", "epsilon0", "gamma", "domain",
    "step", "sender", "laziness", "values", "edge_probability", "outages", "cover", "spread",
)  # fmt: skip
"""What is shown at once, in this order; the rest unfolds."""


def controls(way: Way) -> list[dict[str, Any]]:
    """The controls of a protocol, those of `FIRST` first.

    >>> from netdp.settings.catalogue import CATALOGUE
    >>> [one["name"] for one in controls(CATALOGUE["shuffle"].way("ring:5"))]
    ['rounds', 'epsilon0', 'laziness', 'values', 'reporting', 'delta0', 'variation']
    """
    made = [_control(way, name, hint, default) for name, (hint, default) in protocol_fields(way).items()]
    return sorted(made, key=lambda one: FIRST.index(one["field"]) if one["field"] in FIRST else len(FIRST))


def _control(way: Way, field: str, hint: Any, default: Any) -> dict[str, Any]:
    kinds = _kinds(hint)
    made: dict[str, Any] = {
        "name": field.replace("_", "-"), "field": field, "words": WORDS[field], "required": default is ...,
        "default": None if default is ... else default, "first": field in FIRST or default is ...,
    }  # fmt: skip
    if field in SWITCHES and bool in kinds:
        return {**made, "kind": "switch"}
    if kinds <= {str, type(None)} or (field in CHOICES and not kinds & {int, float}):
        choices = CHOICES.get(f"{way.protocol}.{field}", CHOICES.get(field))
        return {**made, "kind": "text"} if choices is None else {**made, "kind": "choice", "choices": list(choices)}
    if not kinds & {int, float} or str in kinds:
        return {**made, "kind": "text"}
    made |= {"kind": "number", "whole": float not in kinds}
    if field in RANGES:
        low, high = RANGES[field]
        return {**made, "slider": "factor", "low": low, "high": high, "zero": default == 0}
    if field in SHARES:
        return {**made, "slider": "even", "low": 0.0, "high": 1.0}
    return made


def _kinds(hint: Any) -> set[Any]:
    """The plain types that a setting may have; several numbers count as text."""
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return {str if typing.get_origin(kind) is tuple else kind for kind in kinds}


def protocols() -> dict[str, Any]:
    """Every protocol of the catalogue: what it does, its controls on each kind of graph, and settings to begin with."""
    return {
        name: {
            "does": entry.does,
            "claims": entry.claims,
            "ways": {
                family: {"first": way.first, "controls": controls(way), "class": way.protocol}
                for family, way in entry.ways.items()
            },
            "example": example(entry.example),
        }
        for name, entry in CATALOGUE.items()
    }


def example(command: str) -> dict[str, Any]:
    """The settings of an example from the catalogue.

    >>> example("netdp account ring:8 -p token --rounds 3 --sigma 2.5 --no-closing")
    {'graph': 'ring:8', 'protocol': 'token', 'rounds': 3, 'sigma': 2.5, 'closing': False}
    """
    words = shlex.split(command)[2:]
    made: dict[str, Any] = {"graph": words.pop(0)}
    said = {flag: (name, flag == both[0]) for name, both in SWITCHES.items() for flag in both}
    while words:
        word = words.pop(0)
        if word in said:
            name, yes = said[word]
            made[name] = yes
            continue
        name = {"-p": "protocol"}.get(word, word.removeprefix("--"))
        made[name] = _number(words.pop(0))
    return made


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def settings_of(protocol: Protocol, way: Way) -> dict[str, Any]:
    """A protocol as settings: what differs from its defaults, by the names of the flags."""
    made: dict[str, Any] = {}
    back = {new: old for old, new in RENAMED.items()}
    for name, (_, default) in protocol_fields(way).items():
        if way.first == "graphs" and name == "rounds":
            continue
        value = getattr(protocol, back.get(name, name))
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, bool | int | float | str) and value != default:
            made[name.replace("_", "-")] = value
    return made
