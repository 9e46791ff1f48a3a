"""One strict table from the type of a protocol to the function that handles it.

Accounting, prediction, calibration and simulation each hold such a table. It is strict in two ways. A type is looked up
exactly: a subclass of `Gossip` may do something else than `Gossip`, so it is not handled by what was proved for `Gossip`.
(`register_with_subclasses` is for classes of which everything that is computed comes from what their subclasses state.) And
options are the keywords of the function that is found: any other is refused by name.

A table with a `part` loads that part of a protocol's family before it looks (`netdp.protocols.family`). The tables of
accountants stand at the end of this module.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from netdp.errors import InvalidValue, Unsupported

from .family import load

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class _Entry:
    function: Callable[..., Any]
    options: frozenset[str]
    subclasses: bool


class Table:
    """Which function handles which protocol.

    >>> from netdp.protocols import Central, Local
    >>> halves = Table("half", "cannot be halved")
    >>> @halves.register
    ... def _local(protocol: Local, *, twice: bool = False) -> float:
    ...     return protocol.n / (4 if twice else 2)
    >>> halves(Local(10, sigma=1.0), twice=True)
    2.5
    >>> halves(Local(10, sigma=1.0), thrice=True)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: half of Local takes no option 'thrice'; its options: twice
    >>> halves(Central(10, sigma=1.0))
    Traceback (most recent call last):
      ...
    netdp.errors.Unsupported: Central cannot be halved
    """

    def __init__(self, name: str, refusal: str, part: str | None = None) -> None:
        self.name, self.refusal, self.part = name, refusal, part
        self._entries: dict[type, _Entry] = {}
        self._reasons: dict[type, str] = {}

    def register(self, function: F) -> F:
        """Enter a function, for the type (or the union of types) that its first argument is annotated with."""
        return self._enter(function, subclasses=False)

    def register_with_subclasses(self, function: F) -> F:
        """The same, also for subclasses: everything that is computed must come from what they state."""
        return self._enter(function, subclasses=True)

    def refuse(self, *types: type, why: str) -> None:
        """Say why protocols of these types, and of types derived from them, have no entry."""
        for kind in types:
            self._reasons[kind] = why

    def _enter(self, function: F, *, subclasses: bool) -> F:
        parameters = inspect.signature(function).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            raise InvalidValue(f"{function.__name__} takes any option (**); list the options it knows")
        options = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        for kind in _annotated(function):
            self._entries[kind] = _Entry(function, options, subclasses)
        return function

    def _entry(self, protocol: Any) -> _Entry | None:
        kind = type(protocol)
        if self.part is not None:
            load(kind, self.part)
        if kind in self._entries:
            return self._entries[kind]
        return next((e for base in kind.__mro__[1:] if (e := self._entries.get(base)) and e.subclasses), None)

    def handles(self, protocol: Any) -> bool:
        """Whether there is an entry for this protocol."""
        return self._entry(protocol) is not None

    def ours(self, protocol: Any) -> bool:
        """Whether protocol and function are netdp's own, so that every process that imports netdp has them."""
        entry = self._entry(protocol)
        modules = (type(protocol).__module__, "" if entry is None else entry.function.__module__)
        return all(module.partition(".")[0] == "netdp" for module in modules)

    def options(self, protocol: Any) -> tuple[str, ...]:
        """The options that the function for this protocol knows."""
        entry = self._entry(protocol)
        return () if entry is None else tuple(sorted(entry.options))

    def __call__(self, protocol: Any, *arguments: Any, progress: Any = None, **options: Any) -> Any:
        entry = self._entry(protocol)
        name = type(protocol).__name__
        if entry is None:
            why = next((self._reasons[base] for base in type(protocol).__mro__ if base in self._reasons), None)
            raise Unsupported(f"{name} {self.refusal}" + (f": {why}" if why else ""))
        known = entry.options - {"progress"}
        if unknown := sorted(set(options) - known):
            listed = f"its options: {', '.join(sorted(known))}" if known else "it has none"
            raise InvalidValue(f"{self.name} of {name} takes no option {unknown[0]!r}; {listed}")
        if "progress" in entry.options:
            options["progress"] = progress
        return entry.function(protocol, *arguments, **options)


def _annotated(function: Callable[..., Any]) -> tuple[type, ...]:
    """The type, or the types of the union, that the first parameter is annotated with."""
    hints = typing.get_type_hints(function)
    first = next(iter(inspect.signature(function).parameters))
    if first not in hints:
        raise InvalidValue(f"annotate the first argument of {function.__name__} with the protocol it handles")
    return typing.get_args(hints[first]) or (hints[first],)


certified = Table("the certified loss", "has no certified accountant", part="account")
"""Proved or exact: claims exact, upper, or estimate where it says so.

An accountant takes the protocol and the observers and returns a `Guarantee` with one entry per party (nan at the observers),
or with a single curve that holds for every party outside them. Its keyword arguments are the options that `account` takes
for that protocol; one called `progress` is told how far the work is.
"""

published = Table("the published loss", "has no published formula; ask for method='certified'", part="published")
"""The formula of a paper, as printed."""

certified_pairs = Table("the certified loss of all pairs", "is accounted for observer by observer", part="account")
"""All pairs at once, where that is faster than one observer after the other."""

published_pairs = Table("the published loss of all pairs", "is accounted for observer by observer", part="published")

plainest = Table("a plain form", "has no plain form", part="account")
"""(protocol) → what its plain form is called, and that form: the same without what a family can add to it."""

in_real_numbers = Table("the loss in real numbers", "has no counterpart in real numbers", part="account")
"""(protocol, observers) → the figure of the literature beside a protocol that runs on whole numbers: no promise of a system."""

observer_seconds = Table("the time that an observer takes", "has no predicted time", part="account")
"""(protocol, numbers of neighbours) → seconds that observers with so many neighbours take, by order of magnitude."""

coalitions = Table(
    "the certified loss against any coalition", "is accounted for coalition by coalition", part="account"
)
"""(protocol, f) → a guarantee that holds against every f parties; where there is none, all coalitions are tried."""
