"""The graphs of the studio: families and data sets by name, edge lists that were uploaded, the graph of a study.

A page names no files: what it may see of this machine are data sets that netdp knows and what its user uploaded. Sizes are
limited before anything is built, because `complete:30000` is short to type and has 450 million links.
"""

from __future__ import annotations

import base64
import math
import re
import secrets
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from netdp.errors import FileFormatError, InvalidValue
from netdp.graphs.files import read_with_report
from netdp.graphs.graph import Graph
from netdp.graphs.named import datasets
from netdp.graphs.spec import LINKS, examples, parameters, parse
from netdp.report.network import placed
from netdp.settings.models import turns_of

MOST_PARTIES = 40_000
MOST_LINKS = 1_000_000
MOST_BYTES = 24 * 1024 * 1024
"""Of an uploaded file: a million lines with two names of ten letters."""
LONGEST_NAME = 100
"""Letters of a party's name."""
_KEPT = 8  # graphs and uploads that are remembered
_GZIP = b"\x1f\x8b"

SIZES: dict[str, Callable[..., tuple[float, float]]] = {
    "ring": lambda n: (n, n),
    "path": lambda n: (n, n),
    "star": lambda n: (n, n),
    "complete": lambda n: (n, n * n / 2),
    "grid": lambda rows, cols: (rows * cols, 2 * rows * cols),
    "torus": lambda rows, cols: (rows * cols, 2 * rows * cols),
    "exponential": lambda n: (n, n * math.log2(max(n, 2))),
    "hypercube": lambda dimension: (2.0 ** min(dimension, 99), dimension * 2.0 ** min(dimension, 99) / 2),
    "erdos_renyi": lambda n, p, *_: (n, p * n * n / 2),
    "geometric": lambda n, radius, *_: (n, math.pi * radius**2 * n * n / 2),
    "regular": lambda n, degree, *_: (n, n * degree / 2),
    "balanced_tree": lambda branching, depth: (2 * float(max(branching, 1)) ** min(depth, 99),) * 2,
    "random_tree": lambda n, *_: (n, n),
    "barabasi_albert": lambda n, m, *_: (n, n * m),
}
"""About how many parties and links a family has, from its parameters: enough to refuse what is far too large."""


def check_size(spec: str) -> None:
    """Refuse a graph by its name if it would be too large for a page; what else may be wrong with it, `parse` will say.

    >>> check_size("complete:30000")
    Traceback (most recent call last):
    netdp.errors.InvalidValue: 'complete:30000' has about 450,000,000 links; the studio shows up to 1,000,000. ...
    """
    under, _, rings = spec.rpartition(LINKS) if LINKS in spec else (spec, "", "")
    family, _, rest = under.partition(":")
    kind = family.strip().lower().replace("-", "_")
    if kind not in SIZES:
        return
    try:
        given = [float(part.rpartition("=")[2]) for part in re.split("[,x]", rest)]
        laid = float(rings.partition(",")[0] or 0)
        n, m = SIZES[kind](*given)
    except (ValueError, TypeError, OverflowError):
        return
    check_counts(spec, n, m + laid * n)


def check_counts(name: str, n: float, m: float) -> None:
    """Refuse more parties or links than a page can show."""
    for count, most, what in ((n, MOST_PARTIES, "parties"), (m, MOST_LINKS, "links")):
        if count > most:
            words = f"about {count:,.0f}" if count < 1e12 else "far too many"
            raise InvalidValue(
                f"{name!r} has {words} {what}; the studio shows up to {most:,}. `netdp account` on the command line has "
                "no such limit"
            )


class Networks:
    """What graphs the page can show; remembers the last few."""

    def __init__(self) -> None:
        self._named: OrderedDict[str, Graph] = OrderedDict()
        self._uploaded: OrderedDict[str, tuple[str, Graph]] = OrderedDict()
        self._own: dict[str, tuple[str, Graph]] = {}
        self._places: OrderedDict[str, np.ndarray[Any, np.dtype[np.float64]]] = OrderedDict()

    def get(self, name: str) -> tuple[str, Graph]:
        """A graph by what the page calls it, and what a command line calls it."""
        for store in (self._own, self._uploaded):
            if name in store:
                return store[name]
        if name in self._named:
            self._named.move_to_end(name)
            return name, self._named[name]
        self.check(name)
        graph = parse(name)
        check_counts(name, graph.n, graph.m)
        _remember(self._named, name, graph)
        return name, graph

    def called(self, name: str) -> str:
        """What a command line calls a graph; nothing is built."""
        for store in (self._own, self._uploaded):
            if name in store:
                return store[name][0]
        return name

    def check(self, name: str, first: str = "graph") -> None:
        """Refuse a graph that is not known by its name, or too large, before it is built; `first` as in the catalogue."""
        if self.known(name):
            return
        if name.startswith("@"):
            raise InvalidValue("this uploaded graph is not here any more; upload the file again")
        self._check_named(name)
        family, _, size = name.partition(":")
        if first == "users" and family in ("complete", "ring"):
            if size.isdecimal():
                check_counts(name, int(size), 0)
            return
        for part in turns_of(name):
            check_size(part)

    def known(self, name: str) -> bool:
        """Whether this is an upload or the graph of a study: at hand already, and not to be had by its name."""
        return name in self._own or name in self._uploaded

    def keep(self, name: str, called: str, graph: Graph) -> None:
        """A graph that stays, such as that of the study the studio was opened with."""
        check_counts(called, graph.n, graph.m)
        self._own[name] = (called, graph)

    def upload(self, file: str, content: bytes) -> dict[str, Any]:
        """Read an edge list that came from the browser; the name it gets here, and what was found in it."""
        called = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(file).name)[-80:].lstrip(".") or "graph.csv"
        if len(content) > MOST_BYTES:
            raise InvalidValue(f"{called} has {len(content):,} bytes; up to {MOST_BYTES:,} can be uploaded")
        if content.startswith(_GZIP):
            raise InvalidValue(f"{called} is compressed; unpack it first (gunzip), and upload the text")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "graph.csv")
            path.write_bytes(content)
            try:
                graph, report = read_with_report(path, name=called)
            except FileFormatError as problem:
                raise InvalidValue(str(problem).replace(str(path), called)) from None
        check_counts(called, graph.n, graph.m)
        for label in graph.labels or ():
            if len(label) > LONGEST_NAME or not label.isprintable():
                raise InvalidValue(
                    f"{called}: the name {label[:40]!r} is longer than {LONGEST_NAME} letters or cannot be printed; give "
                    "parties plain names"
                )
        name = f"@{secrets.token_hex(8)}"
        _remember(self._uploaded, name, (called, graph))
        return {"graph": name, "called": called, "found": report.summary().replace(str(path), called)}

    def positions(self, graph: Graph) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Where the parties are drawn, the same whoever looks."""
        if graph.digest not in self._places:
            _remember(self._places, graph.digest, placed(graph))
        return self._places[graph.digest]

    @staticmethod
    def _check_named(name: str) -> None:
        """A page may ask for families and data sets, not for files of this machine."""
        under = name.partition(LINKS)[0]
        for part in re.split(r"\+", under):
            family = part.partition(":")[0].strip().lower().replace("-", "_")
            if family not in examples() and part.strip() not in {entry.name for entry in datasets()}:
                raise InvalidValue(
                    f"{part!r} is no graph that the studio knows by name; choose a family such as hypercube:8, a data set, "
                    "or upload a file of edges"
                )


def listing() -> dict[str, Any]:
    """What can be picked: families with their parameters and an example, data sets that are here."""
    return {
        "families": {
            family: {"example": example, "parameters": {k: kind.__name__ for k, kind in parameters()[family].items()}}
            for family, example in examples().items()
        },
        "datasets": [{"name": one.name, "facts": one.facts} for one in datasets() if one.available],
    }


def drawn(networks: Networks, name: str, graph: Graph) -> dict[str, Any]:
    """A graph for the page: places in the unit square, links as pairs of numbers, names if there are any."""
    return {
        "graph": name, "name": graph.name, "n": graph.n, "m": graph.m, "digest": graph.digest,
        "positions": packed(networks.positions(graph).astype("<f4")),
        "edges": packed(graph.edges().astype("<i4")),
        "labels": list(graph.labels) if graph.labels else None,
    }  # fmt: skip


def crowd(n: int) -> dict[str, Any]:
    """Users without links, in a disc: everybody may hand a token to everybody."""
    check_counts(f"complete:{n}", n, 0)
    turn = np.arange(n) * math.pi * (3 - math.sqrt(5))
    radius = 0.5 * np.sqrt((np.arange(n) + 0.5) / n)
    points = 0.5 + np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])
    return {
        "graph": f"complete:{n}", "name": f"{n:,} users", "n": n, "m": 0, "digest": "",
        "positions": packed(points.astype("<f4")), "edges": "", "labels": None,
    }  # fmt: skip


def packed(numbers: np.ndarray[Any, Any]) -> str:
    """Numbers as base64 of their bytes, little-endian: a tenth of the time that lists of numbers take to read."""
    return base64.b64encode(np.ascontiguousarray(numbers).tobytes()).decode("ascii")


def _remember(store: OrderedDict[str, Any], key: str, value: Any) -> None:
    store[key] = value
    while len(store) > _KEPT:
        store.popitem(last=False)
