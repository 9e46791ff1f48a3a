"""Settings of `netdp plan` from a TOML file, overridden by flags; every key is checked and unknown ones are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from netdp.errors import FileFormatError, InvalidValue

from .settings import _read


class PlanSettings(BaseModel):
    """What `netdp plan` needs; the keys of the TOML file are the names of the flags."""

    model_config = ConfigDict(extra="forbid", strict=True)

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


def load(path: Path | None, flags: dict[str, Any]) -> PlanSettings:
    """The settings of the file, if any, with the flags that were given on top."""
    values: dict[str, Any] = {}
    if path is not None:
        values = _read(path)
        for key in ("graph", "policy"):
            file = values.get(key)
            # Files are named relative to the settings that name them.
            if isinstance(file, str) and (path.parent / file).is_file():
                values[key] = str(path.parent / file)
    values.update({key: value for key, value in flags.items() if value is not None})
    try:
        settings = PlanSettings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"][:1])
        if first["type"] == "extra_forbidden":
            problem = f"unknown key {key!r}; known: {', '.join(PlanSettings.model_fields)}"
        else:
            problem = f"{key} = {first['input']!r}: {first['msg']}"
        if path is not None and key in values and flags.get(key) is None:
            raise FileFormatError(path, None, problem) from None
        raise InvalidValue(problem) from None
    if settings.graph is None:
        raise InvalidValue("graph is missing; give GRAPH (for example hypercube:8) or set it in a --config file")
    if settings.policy is None and settings.epsilon is None:
        raise InvalidValue("epsilon is missing; give --epsilon (for example 1), or --policy with a file of rules")
    if settings.policy is not None and (settings.epsilon is not None or "scope" in values):
        raise InvalidValue("a policy states its own epsilons and pairs; leave --epsilon and --scope out")
    return settings
