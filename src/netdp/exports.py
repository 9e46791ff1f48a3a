"""Public names of a package, each loaded from its module when it is first asked for."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exports(
    package: str,
    names: Mapping[str, str],
    more: Callable[[], Mapping[str, Callable[[], Any]]] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package; the first also gives its public names, as `__all__`.

    names     module → the names that it gives, separated by blanks
    more      further names, each with what makes it
    renamed   old name → new name, for one release, with a warning

    >>> get, names = exports("netdp.numerics", {"netdp.numerics.checks": "whole positive"})
    >>> get("whole")("n", 3, 1), "positive" in names()
    (3, True)
    >>> get("banana")
    Traceback (most recent call last):
      ...
    AttributeError: module 'netdp.numerics' has no attribute 'banana'
    """
    home = {name: module for module, given in names.items() for name in given.split()}

    def found(name: str) -> Any:
        if name in home:
            value = getattr(import_module(home[name]), name)
        elif renamed and name in renamed:
            new = renamed[name]
            warnings.warn(
                f"{package}.{name} is now {package}.{new}; the old name ends with the next release", FutureWarning, 3
            )
            return found(new)
        elif more is not None and not name.startswith("__") and name in (others := more()):
            value = others[name]()
        elif name == "__all__":
            value = sorted({*home, *(more() if more is not None else ())})
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *(more() if more is not None else ())})

    return found, listed
