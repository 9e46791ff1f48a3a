"""The reference of the Python names, page by page: what each room makes public, with the text that stands in the code."""

import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import plain_docstrings

from netdp.protocols.family import families

# The rooms that have a page, in the order in which they build upon each other.
ROOMS = ("errors", "engines", "graphs", "privacy", "mechanisms", "models", "protocols", "audit", "learn", "report")
OF_EVERY_PROTOCOL = "kind, answer, roles, describe"  # explained once, with Protocol itself


def names(room: str) -> list[str]:
    """The public names of a room: its list, or the classes it defines if it has none."""
    module = import_module(f"netdp.{room}")
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    return [name for name in listed if not name.startswith("_")]


def home(name: str, room: str) -> str:
    """The first room with this very object: two rooms may offer one name, and one of them explains it."""
    thing = getattr(import_module(f"netdp.{room}"), name)
    for earlier in ROOMS[: ROOMS.index(room)]:
        if name in names(earlier) and getattr(import_module(f"netdp.{earlier}"), name) is thing:
            return earlier
    return room


def top_level() -> str:
    """A table of the names in `netdp` itself, each with its first sentence and a link to all of it."""
    import netdp

    rows = ["| name | what it is |", "|---|---|"]
    for name in netdp.__all__:
        thing = getattr(netdp, name)
        if isinstance(thing, ModuleType):
            rows.append(f"| [`netdp.{name}`]({name}.md) | {_summary(thing)} |")
            continue
        room = next(
            room for room in ROOMS if name in names(room) and getattr(import_module(f"netdp.{room}"), name) is thing
        )
        rows.append(f"| {{py:obj}}`netdp.{name} <netdp.{room}.{name}>` | {_summary(thing)} |")
    return "\n".join(rows)


def room_page(room: str) -> str:
    """What a room's module says of itself, then every public name of it."""
    out = ["```{eval-rst}", f".. automodule:: netdp.{room}", "   :no-members:", "", "```", ""]
    for name in names(room):
        thing = getattr(import_module(f"netdp.{room}"), name)
        place = f"netdp.{room}.{name}"
        first = home(name, room)
        if first != room:
            out += [
                f"{{py:obj}}`netdp.{room}.{name} <netdp.{first}.{name}>` is explained in [netdp.{first}]({first}.md).",
                "",
            ]
            continue
        out += ["```{eval-rst}", *_directive(place, thing), "```", ""]
    return "\n".join(out)


def families_page() -> str:
    """For every family: what it says of itself, its protocols, what studies call them, and its planners, told in full."""
    out = ["```{eval-rst}", ".. automodule:: netdp.families", "   :no-members:", "", "```", ""]
    for one in families():
        folder = f"netdp.families.{one.name}"
        out += [f"## netdp.families.{one.name}", "", _summary(import_module(folder)), ""]
        links = [f"{{py:obj}}`{name} <netdp.protocols.{name}>`" for names in one.protocols.values() for name in names]
        out += [f"Protocols: {', '.join(links)}.", ""]
        if one.kinds:
            out += ["Run by real peers as " + ", ".join(f"`{word}`" for word in one.kinds) + ".", ""]
        for path in one.parts.get("plan", ()):
            module = one.module(path)
            for name, thing in vars(module).items():
                if name.startswith("plan_") and thing.__module__ == module.__name__:
                    out += ["```{eval-rst}", *_directive(f"{module.__name__}.{name}", thing), "```", ""]
    return "\n".join(out)


def _directive(place: str, thing: Any) -> list[str]:
    if isinstance(thing, ModuleType):
        return [f".. automodule:: {thing.__name__}", "   :members:", ""]
    if inspect.isclass(thing):
        options = ["   :members:"]
        if all(base is not object and not base.__name__.startswith("_") for base in thing.__bases__):
            options.append("   :show-inheritance:")
        if any(base.__name__ == "Protocol" for base in thing.__mro__[1:]):
            options.append(f"   :exclude-members: {OF_EVERY_PROTOCOL}")
        if hasattr(thing, "set_score_request"):
            options.append("   :exclude-members: set_fit_request, set_score_request")  # scikit-learn's own
        return [f".. autoclass:: {place}", *options, ""]
    if callable(thing) and (inspect.isroutine(thing) or inspect.isfunction(thing)):
        return [f".. autofunction:: {place}", ""]
    words = plain_docstrings.to_rest(_said_of(place, thing))
    module, _, name = place.rpartition(".")
    return [f".. py:data:: {name}", f"   :module: {module}", "", *("   " + line for line in words), ""]


def _said_of(place: str, thing: Any) -> list[str]:
    """The string under a constant, wherever it was made; a constant itself only has the text of its type."""
    from sphinx.pycode import ModuleAnalyzer

    name = place.rpartition(".")[2]
    for module, loaded in sorted(sys.modules.items()):
        if module.startswith("netdp.") and vars(loaded).get(name) is thing:
            found = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name))
            if found:
                return found
    raise ValueError(f"{place} has no text: write a string under it")


def _summary(thing: Any) -> str:
    first = (inspect.getdoc(thing) or "").strip().split("\n\n")[0]
    return " ".join(first.split()).replace("|", "\\|").replace("*", "\\*")
