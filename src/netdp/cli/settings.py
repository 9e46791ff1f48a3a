"""Settings from a TOML file, overridden by flags; every key is checked and unknown ones are refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from netdp.errors import FileFormatError, InvalidValue
from netdp.graphs import Graph

_STRICT = ConfigDict(extra="forbid", strict=True)
#: What `netdp account` can account for.
PROTOCOLS = ("gossip", "token", "shuffle")
Settings = TypeVar("Settings", bound=BaseModel)


class AccountSettings(BaseModel):
    """What `netdp account` needs; the keys of the TOML file are the names of the flags."""

    model_config = _STRICT

    graph: str | None = None
    rounds: int | None = None
    sigma: float | None = None
    refresh: float = 0.0
    masks: float = 0.0
    accelerated: bool = False
    sensitivity: float = 1.0
    mixing: str = "metropolis"
    observers: list[int | str] = [0]
    delta: float = 1e-6
    protocol: str = "gossip"
    steps: int | None = None
    sender: str = "hidden"
    noise: str = "single"
    closing: bool = True
    epsilon0: float | None = None
    reporting: str = "all"
    laziness: float = 0.0


class PlanSettings(BaseModel):
    """What `netdp plan` needs."""

    model_config = _STRICT

    graph: str | None = None
    epsilon: float | None = None
    delta: float = 1e-6
    scope: str = "worst"
    policy: str | None = None
    observers: list[int | str] | None = None
    colluding: float | None = None
    seed: int = 0
    draws: int = 20
    sensitivity: float = 1.0
    mixing: str = "metropolis"
    max_rounds: int = 200
    protocol: str = "gossip"
    epsilon0: float | None = None
    laziness: float = 0.0
    reporting: str = "all"
    share: float = 0.01
    visits: int = 100
    colluders: int = 1


def account_settings(path: Path | None, flags: dict[str, Any]) -> AccountSettings:
    """The settings of `netdp account`; refuses if something indispensable is missing."""
    settings = _load(AccountSettings, path, flags)
    if settings.protocol not in PROTOCOLS:
        raise InvalidValue(f"unknown protocol {settings.protocol!r}; choose one of {', '.join(PROTOCOLS)}")
    ring = (settings.graph or "").startswith("ring:")
    needed = {
        "gossip": ("graph", "rounds", "sigma"),
        "token": ("graph", "rounds" if ring else "steps", "sigma"),
        "shuffle": ("graph", "rounds", "epsilon0"),
    }[settings.protocol]
    examples = {"graph": "hypercube:8", "rounds": "20", "sigma": "4.0", "steps": "100000", "epsilon0": "1"}
    for key in needed:
        example = examples[key]
        if getattr(settings, key) is None:
            flag = "GRAPH" if key == "graph" else f"--{key}"
            raise InvalidValue(f"{key} is missing; give {flag} (for example {example}) or set it in a --config file")
    return settings


def plan_settings(path: Path | None, flags: dict[str, Any]) -> PlanSettings:
    """The settings of `netdp plan`; refuses if something indispensable is missing or said twice."""
    settings = _load(PlanSettings, path, flags)
    if settings.graph is None:
        raise InvalidValue("graph is missing; give GRAPH (for example hypercube:8) or set it in a --config file")
    if settings.protocol == "shuffle":
        if (settings.epsilon is None) == (settings.epsilon0 is None):
            raise InvalidValue(
                "shuffling is planned for given reports (--epsilon0 1: how many hops?) or for a target (--epsilon 0.1: "
                "how noisy must reports be?); give one of the two"
            )
        return settings
    if settings.protocol == "token":
        if settings.epsilon is None:
            raise InvalidValue("epsilon is missing; give --epsilon (for example 1)")
        return settings
    if settings.protocol != "gossip":
        raise InvalidValue(f"unknown protocol {settings.protocol!r}; choose one of {', '.join(PROTOCOLS)}")
    if settings.policy is None and settings.epsilon is None:
        raise InvalidValue("epsilon is missing; give --epsilon (for example 1), or --policy with a file of rules")
    if settings.policy is not None and (settings.epsilon is not None or "scope" in settings.model_fields_set):
        raise InvalidValue("a policy states its own epsilons and pairs; leave --epsilon and --scope out")
    return settings


def parties(graph: Graph, named: list[int | str]) -> list[int | str]:
    """Parties as typed, each found in the graph: their names where the graph has names, else their numbers.

    What is typed on a command line is text, so `-o 1` is the party named '1' where parties have names, in whatever
    place it stands; in a settings file the number 1 may be refused as ambiguous, "1" is the name.
    """
    return [graph.label(graph.index(party)) for party in named]


def _load(model: type[Settings], path: Path | None, flags: dict[str, Any]) -> Settings:
    """The settings of the file, if any, with the flags that were given on top."""
    values: dict[str, Any] = {}
    if path is not None:
        values = _read(path)
        for key in ("graph", "policy"):
            file = values.get(key)
            # Files are named relative to the settings that name them.
            if isinstance(file, str) and (path.parent / file).is_file():
                values[key] = str(path.parent / file)
    values.update({key: value for key, value in flags.items() if value not in (None, [])})
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"][:1])
        if first["type"] == "extra_forbidden":
            problem = f"unknown key {key!r}; known: {', '.join(model.model_fields)}"
        else:
            problem = f"{key} = {first['input']!r}: {first['msg']}"
        if path is not None and key in values and flags.get(key) is None:
            raise FileFormatError(path, None, problem) from None
        raise InvalidValue(problem) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(path, None, "is not a UTF-8 text file") from None
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(path, None, f"is not valid TOML: {error}") from None
