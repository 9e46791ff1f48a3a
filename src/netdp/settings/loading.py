"""Settings from flags, from a TOML file, or from the studio's page; what a command and a protocol do not know is refused.

A file (`--config`) uses the very names of the flags; flags win.
"""

from __future__ import annotations

import functools
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError, create_model

from netdp import protocols
from netdp.errors import FileFormatError, InvalidValue
from netdp.protocols.family import Way, protocol_modules
from netdp.settings.catalogue import CATALOGUE
from netdp.settings.models import (
    Accounting,
    Auditing,
    PlanAll,
    Planned,
    PlanNoise,
    Protocolled,
    RecordSettings,
    RunSettings,
    Settings,
    plan_fields,
    protocol_fields,
    text_of,
)

#: For the refusal of settings that lack something.
_EXAMPLES = {
    "graph": "hypercube:8", "rounds": "20", "sigma": "4.0", "steps": "100000", "epsilon0": "1", "epsilon": "1",
    "domain": "4", "gamma": "0.5", "iterations": "10", "gossip-rounds": "4", "step": "0.1", "edge-probability": "0.01",
}  # fmt: skip

#: Settings that name files, relative to the file that names them.
_FILES = ("graph", "policy", "values")


def subject(name: str, graph: Any) -> str:
    """What is spoken of when a setting is refused."""
    return (CATALOGUE[name].subject or name).format(graph=graph)


@functools.cache
def _model(command: str, name: str, way: Way) -> type[Settings]:
    """The settings of a command and a protocol."""
    own = {"plan": CATALOGUE[name].plan, "simulate": CATALOGUE[name].run}.get(command)
    stated: Any = None if own is None else protocol_modules()[way.protocol][0].named(own)
    if stated is not None and not issubclass(stated, Protocolled):
        return stated  # type: ignore[no-any-return]
    bases: dict[str, type[Protocolled]] = {"account": Accounting, "audit": Auditing, "plan": PlanNoise}
    # a curator has nothing to record but what it collects
    base = stated or bases.get(command) or (RunSettings if getattr(protocols, way.protocol).roles else RecordSettings)
    fields: dict[str, Any] = plan_fields(way) if command == "plan" else protocol_fields(way)
    if command == "simulate":  # --values is a file of values there, whatever else a protocol calls so
        fields = {name: field for name, field in fields.items() if name != "values"}
    model: type[Settings] = create_model(f"{command} {name}", __base__=base, **fields)
    model.way = way  # type: ignore[attr-defined]
    return model


def account_settings(path: Path | None, flags: dict[str, Any]) -> Accounting:
    """The settings of `netdp account`."""
    settings = _load("account", path, flags)
    assert isinstance(settings, Accounting)
    if settings.colluders is not None and settings.observer is not None:
        raise InvalidValue(
            f"--colluders {settings.colluders} asks for any so many parties, --observer for named ones; give one of the two"
        )
    if settings.who_learns_most and (settings.colluders or settings.plot or settings.rdp):
        raise InvalidValue("--who-learns-most compares single observers; leave --colluders, --plot and --rdp out")
    return settings


def audit_settings(path: Path | None, flags: dict[str, Any]) -> Auditing:
    """The settings of `netdp audit`."""
    settings = _load("audit", path, flags)
    assert isinstance(settings, Auditing)
    if settings.target is not None and settings.observer is None:
        raise InvalidValue(f"--target {settings.target} needs somebody who looks; give --observer, too")
    if settings.observer is not None and settings.target is None:
        raise InvalidValue("--observer needs a target; give --target, or leave both out for the worst pairs")
    if settings.target is not None and "colluders" in settings.model_fields_set:
        raise InvalidValue(
            f"--colluders {settings.colluders} is for coalitions that are looked for; leave it out, or --target"
        )
    return settings


def simulate_settings(path: Path | None, flags: dict[str, Any]) -> RunSettings:
    """The settings of `netdp simulate`."""
    settings = _load("simulate", path, flags)
    assert isinstance(settings, RunSettings)
    if settings.uniform == (settings.values is not None):
        raise InvalidValue(
            "whose values? give --values FILE (one number per party), or --uniform to draw some for a try; one of the two"
        )
    if settings.column is not None and settings.values is None:
        raise InvalidValue("--column names a column of the file; give --values FILE too")
    return settings


def plan_settings(path: Path | None, flags: dict[str, Any]) -> Planned:
    """The settings of `netdp plan`."""
    settings = _load("plan", path, flags)
    assert isinstance(settings, Planned)
    settings.check()
    settings.check_links()
    return settings


def _named(values: dict[str, Any]) -> str:
    """The name of the protocol."""
    name = values.get("protocol", "gossip")
    if name not in CATALOGUE:
        close = get_close_matches(str(name), CATALOGUE, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise InvalidValue(f"unknown protocol {name!r}{hint}; choose one of {', '.join(CATALOGUE)}")
    return str(name)


def _load(command: str, path: Path | None, flags: dict[str, Any]) -> Settings:
    """The settings of the file, if any, with the flags that were given on top."""
    written = _read(path) if path is not None else {}
    for key in _FILES:
        file = written.get(key)
        if path is not None and isinstance(file, str) and (path.parent / file).is_file():
            written[key] = str(path.parent / file)
    values = {**written, **flags}
    everything = command == "plan" and "protocol" not in values
    name = _named(values)
    if "graph" not in values:
        raise _missing("graph")
    graph = values["graph"]
    model = (
        PlanAll if everything else _model(command, name, CATALOGUE[name].way(graph if isinstance(graph, str) else ""))
    )
    words = f"a plan of {subject(name, graph)}" if command == "plan" else subject(name, graph)
    words = "a plan of every protocol" if everything else words
    known = model.flags()
    for key in values:
        if key in known:
            continue
        if key in flags:
            raise InvalidValue(
                f"--{key} does not belong to {words}{_where(key) if everything else ''}; it takes: "
                f"{', '.join(f'--{k}' for k in known[: -len(Settings.model_fields)])}"
            )
        assert path is not None
        elsewhere = _somewhere(command)
        close = get_close_matches(str(key), known, n=1)
        problem = f"{key!r} does not belong to {words}" if key in elsewhere else f"unknown key {key!r}"
        hint = f" (did you mean {close[0]!r}?)" if close and key not in elsewhere else ""
        raise FileFormatError(path, None, f"{problem}{hint}; {words} takes: {', '.join(known)}")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        if first["type"] == "missing":
            raise _missing(key) from None
        problem = f"{key} = {first['input']!r}: {first['msg'].removeprefix('Value error, ')}"
        if path is not None and key not in flags:
            raise FileFormatError(path, None, problem) from None
        raise InvalidValue(problem) from None


def _where(key: str) -> str:
    """Which plans take a flag that the plan of every protocol does not."""
    owners = [name for name in CATALOGUE if CATALOGUE[name].plan and key in flags_of("plan", name, "")]
    return f" (give -p {' or -p '.join(owners)}, too)" if owners else ""


def flags_of(command: str, name: str, graph: str) -> list[str]:
    """What a command takes for a protocol on a graph, those of the protocol first."""
    return _model(command, name, CATALOGUE[name].way(graph)).flags()


def _somewhere(command: str) -> set[str]:
    """What some protocol takes."""
    ways = [(name, way) for name, entry in CATALOGUE.items() for way in entry.ways.values()]
    every = {*PlanAll.flags()} if command == "plan" else set()
    return every | {flag for name, way in ways for flag in _model(command, name, way).flags()}


def _missing(key: str) -> InvalidValue:
    flag = "GRAPH" if key == "graph" else f"--{key}"
    example = f" (for example {_EXAMPLES[key]})" if key in _EXAMPLES else ""
    return InvalidValue(f"{key} is missing; give {flag}{example} or set it in a --config file")


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(path, None, f"is not valid TOML: {error}") from None
