"""Graphs as typed on a command line."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from netdp.errors import InvalidValue
from netdp.graphs import families
from netdp.graphs import families as hubs
from netdp.graphs.families import with_links
from netdp.graphs.files import read
from netdp.graphs.graph import Graph
from netdp.graphs.named import dataset, datasets

#: family: (constructor, parameters in order with their types, an example)
_FAMILIES: dict[str, tuple[Callable[..., Graph], dict[str, type], str]] = {
    "ring": (families.ring, {"n": int}, "ring:64"),
    "path": (families.path, {"n": int}, "path:5"),
    "complete": (families.complete, {"n": int}, "complete:10"),
    "star": (families.star, {"n": int}, "star:5"),
    "grid": (families.grid, {"rows": int, "cols": int}, "grid:16x16"),
    "torus": (families.torus, {"rows": int, "cols": int}, "torus:8x8"),
    "exponential": (families.exponential, {"n": int}, "exponential:64"),
    "hypercube": (families.hypercube, {"dimension": int}, "hypercube:8"),
    "erdos_renyi": (
        families.erdos_renyi,
        {"n": int, "p": float, "seed": int},
        "erdos_renyi:200,0.05,seed=1",
    ),
    "geometric": (
        families.geometric,
        {"n": int, "radius": float, "seed": int},
        "geometric:200,0.12,seed=1",
    ),
    "regular": (families.regular, {"n": int, "degree": int, "seed": int}, "regular:1024,6,seed=0"),
    "balanced_tree": (hubs.balanced_tree, {"branching": int, "depth": int}, "balanced_tree:2,5"),
    "random_tree": (hubs.random_tree, {"n": int, "seed": int}, "random_tree:100,seed=1"),
    "barabasi_albert": (hubs.barabasi_albert, {"n": int, "m": int, "seed": int}, "barabasi_albert:500,2,seed=1"),
}


LINKS = "+rings:"
"""What stands between a graph and the number of random rings that are laid over it."""


def examples() -> dict[str, str]:
    """One example per family, as `parse` reads it.

    >>> examples()["grid"]
    'grid:16x16'
    """
    return {family: example for family, (_, _, example) in _FAMILIES.items()}


def parameters() -> dict[str, dict[str, type]]:
    """What each family is given, in order, with its types.

    >>> parameters()["grid"]
    {'rows': <class 'int'>, 'cols': <class 'int'>}
    """
    return {family: dict(given) for family, (_, given, _) in _FAMILIES.items()}


def parse(spec: str | PathLike[str]) -> Graph:
    """The graph that a short text stands for.

    A family with its parameters (`hypercube:8`, `grid:16x16`, `regular:1024,6,seed=0`; the seed is 0 unless
    given), the name of a data set (`twitch`, `karate`), or the path of an edge-list file. A file that is
    called like a data set is reached as `./karate`. Behind any of them, `+rings:2,seed=1` lays two random rings
    over it (`netdp.graphs.families`).

    >>> parse("grid:3x4")
    Graph('grid(3, 4)', n=12, m=17)
    >>> parse("path:100+rings:1")
    Graph('path(100) + 1 random ring (seed 0)', n=100, m=196)
    >>> parse("ringg:5")
    Traceback (most recent call last):
    netdp.errors.InvalidValue: 'ringg:5' is no graph; did you mean 'ring:64'? ...
    """
    if not isinstance(spec, str | PathLike):
        raise InvalidValue(
            f"a graph is written as text, for example 'ring:64', 'karate' or the path of an edge-list file; got {spec!r}"
        )
    text = str(spec).strip()
    under, plus, links = text.rpartition(LINKS)
    if plus and not Path(text).is_file():
        return with_links(parse(under), *_links(text, links))
    family, colon, rest = text.partition(":")
    key = family.strip().lower().replace("-", "_")
    if key in _FAMILIES and (colon or not Path(text).is_file()):
        return _family(text, key, rest)
    names = [entry.name for entry in datasets()]
    if text in names:
        return dataset(text)
    if text and Path(text).is_file():
        return read(text)
    close = get_close_matches(key if colon else text, [*_FAMILIES, *names], n=1)
    meant = _FAMILIES[close[0]][2] if close and close[0] in _FAMILIES else close[0] if close else ""
    hint = f"did you mean {meant!r}? " if meant else ""
    raise InvalidValue(
        f"{text!r} is no graph; {hint}Give a family ({', '.join(examples().values())}), "
        f"a data set ({', '.join(names)}), or the path of an existing edge-list file"
    )


def linked(spec: str, rings: int, seed: int) -> str:
    """The text for a graph with links.

    >>> linked("karate", 2, 1), linked("karate", 0, 1)
    ('karate+rings:2,seed=1', 'karate')
    """
    return f"{spec}{LINKS}{rings},seed={seed}" if rings else spec


def _links(text: str, rest: str) -> tuple[int, int]:
    """How many rings, and their seed, of "2,seed=1"."""
    first, comma, second = (piece.strip() for piece in rest.partition(","))
    seed = second.removeprefix("seed=").strip() if comma else "0"
    if not (first.isascii() and first.isdigit() and seed.isascii() and seed.isdigit()):
        raise InvalidValue(f"{text!r}: random rings are written like +rings:2 or +rings:2,seed=1, got {LINKS + rest!r}")
    return int(first), int(seed)


def _family(text: str, key: str, rest: str) -> Graph:
    build, parameters, example = _FAMILIES[key]
    usage = f"write it like {example} ({key}:{','.join(parameters)})"
    if "rows" in parameters:
        rest = rest.lower().replace("x", ",").replace("×", ",")
    given: dict[str, Any] = {"seed": 0} if "seed" in parameters else {}
    places = list(parameters)
    named: set[str] = set()
    further: list[int] = []  # of a torus: sides beyond the second
    for part in rest.split(",") if rest.strip() else []:
        left, equals, right = (piece.strip() for piece in part.partition("="))
        free = [name for name in places if name not in named]
        name, value = (left, right) if equals else (free[0] if free else "", left)
        if key == "torus" and not equals and not free and value.isdecimal():
            further.append(int(value))
            continue
        if name not in parameters or name in named:
            what = f"a second {name}" if name in named else f"the parameter {left!r}"
            raise InvalidValue(f"{text!r}: {key} does not take {what}; {usage}")
        try:
            given[name] = parameters[name](value)
        except ValueError:
            kind = "a whole number" if parameters[name] is int else "a number"
            raise InvalidValue(f"{text!r}: {name} must be {kind}, got {value!r}; {usage}") from None
        named.add(name)
    missing = [name for name in parameters if name not in given]
    if missing:
        raise InvalidValue(f"{text!r}: {key} needs {', '.join(missing)}; {usage}")
    return build(*given.values(), *further) if further else build(**given)
