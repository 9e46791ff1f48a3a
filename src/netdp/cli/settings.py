"""Settings from a TOML file, overridden by flags; every key is checked and unknown ones are refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from netdp.errors import FileFormatError, InvalidValue


class AccountSettings(BaseModel):
    """What `netdp account` needs; the keys of the TOML file are the names of the flags."""

    model_config = ConfigDict(extra="forbid", strict=True)

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


def load(path: Path | None, flags: dict[str, Any]) -> AccountSettings:
    """The settings of the file, if any, with the flags that were given on top."""
    values: dict[str, Any] = {}
    if path is not None:
        values = _read(path)
        file = values.get("graph")
        # A graph file is named relative to the settings that name it.
        if isinstance(file, str) and (path.parent / file).is_file():
            values["graph"] = str(path.parent / file)
    values.update({key: value for key, value in flags.items() if value is not None})
    try:
        settings = AccountSettings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"][:1])
        if first["type"] == "extra_forbidden":
            problem = f"unknown key {key!r}; known: {', '.join(AccountSettings.model_fields)}"
        else:
            problem = f"{key} = {first['input']!r}: {first['msg']}"
        if path is not None and key in values and flags.get(key) is None:
            raise FileFormatError(path, None, problem) from None
        raise InvalidValue(problem) from None
    for key, example in (("graph", "hypercube:8"), ("rounds", "20"), ("sigma", "4.0")):
        if getattr(settings, key) is None:
            flag = "GRAPH" if key == "graph" else f"--{key}"
            raise InvalidValue(f"{key} is missing; give {flag} (for example {example}) or set it in a --config file")
    return settings


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(path, None, "is not a UTF-8 text file") from None
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(path, None, f"is not valid TOML: {error}") from None
