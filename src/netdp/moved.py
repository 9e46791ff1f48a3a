"""Old import paths: they work for one more release, with a warning that names the new one.

Until release 0.1 the package was cut by verb (accounting, utility, planning, simulate, views, reproduce); now it is cut by
family. `moved.tsv` has a line for every old module: where its names are now. What is found there is the same object.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import import_module, resources
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ROOMS = ("accounting", "utility", "planning", "views", "reproduce", "shown")
"""Rooms that are gone, and that no other public name is called like."""


@cache
def _table() -> dict[str, list[str]]:
    """Old module → the new modules that hold its names, or old module:name → new module:name."""
    text = resources.files("netdp").joinpath("moved.tsv").read_text("utf-8")
    return {old: new.split() for old, _, new in (line.partition("\t") for line in text.splitlines())}


class _Moved(ModuleType):
    """An old module: its names are looked up where they are now."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found, where = self._now(name)
        text = f"{self.__name__}.{name} is now {where}; the old path ends with the next release"
        warnings.warn(text, FutureWarning, 2)
        return found

    def _now(self, name: str) -> tuple[Any, str]:
        """What an old name stands for, and its new path."""
        old = self.__name__
        for place in _table().get(f"{old}:{name}", _table()[old]):
            module, _, new = place.partition(":")
            try:
                return getattr(import_module(module), new or name), f"{module}.{new or name}"
            except AttributeError:
                continue
        raise AttributeError(f"module {old!r} had been moved and has no attribute {name!r}")

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """`netdp.simulate(…)` is right as it is: the old room was named like its function, and hides it where it is imported."""
        return self._now(self.__name__.rpartition(".")[2])[0](*arguments, **options)


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith("netdp.") or name not in _table():
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Moved(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run: names are looked up when they are asked for."""


def install() -> None:
    """Look for old paths after all others."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
