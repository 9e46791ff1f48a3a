"""Graphs with a name: real networks from the data folder, and the classics that come with NetworkX.

Files are looked for in the folder named by the environment variable NETDP_DATA, then in the cache folder
(`$XDG_CACHE_HOME/netdp`, by default `~/.cache/netdp`). Both have the same layout, given by `file` in
`datasets()`, for example `twitch/edges.csv`; `.gz` may be appended to any file. Nothing is downloaded and
nothing is kept in memory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from netdp.errors import DataNotFound, InvalidValue
from netdp.graphs.convert import from_networkx
from netdp.graphs.files import read
from netdp.graphs.graph import Graph

_MUSAE = "Rozemberczki, Allen, Sarkar: Multi-scale attributed node embedding. J. Complex Networks 9(2), 2021"
_FEATHER = "Rozemberczki, Sarkar: Characteristic functions on graphs: birds of a feather. CIKM 2020"
_ENRON = (
    "Klimt, Yang: Introducing the Enron corpus. CEAS 2004; Leskovec, Lang, Dasgupta, Mahoney: Community "
    "structure in large networks. Internet Mathematics 6(1), 2009"
)
_GOOGLE = "Leskovec, Lang, Dasgupta, Mahoney: Community structure in large networks. Internet Math. 6(1), 2009"
_EGO = "McAuley, Leskovec: Learning to discover social circles in ego networks. NIPS 2012"
_SNAP = "https://snap.stanford.edu/data/"


@dataclass(frozen=True)
class Dataset:
    """A named graph: what it is, whom to cite, and where its file belongs (None: it needs no file).

    `largest_component` says that the file is not connected and only its largest component is taken.
    """

    name: str
    facts: str
    citation: str
    file: str | None = None
    largest_component: bool = False
    origin: str | None = None

    @property
    def available(self) -> bool:
        """Whether `dataset` finds it on this machine; its file is looked for, not read."""
        return self.file is None or _find(self.file) is not None


def _ego(ego: int, n: int | None = None, m: int | None = None) -> Dataset:
    size = "" if n is None else f", n={n:,}, m={m:,}"
    facts = f"friends of Facebook user {ego} (who is left out): largest component{size}"
    origin = _SNAP + "ego-Facebook.html"
    return Dataset(f"facebook-ego-{ego}", facts, _EGO, f"facebook-ego/{ego}.edges", True, origin)


_ALL = (
    Dataset(
        "twitch",
        "mutual followers among German Twitch streamers: n=9,498, m=153,138",
        _MUSAE,
        "twitch/edges.csv",
        origin="https://github.com/benedekrozemberczki/MUSAE",
    ),
    Dataset(
        "facebook-pages",
        "mutual likes among verified Facebook pages: n=22,470, m=170,823",
        _MUSAE,
        "facebook-pages/edges.csv",
        origin="https://github.com/benedekrozemberczki/MUSAE",
    ),
    Dataset(
        "deezer",
        "friends among European users of Deezer: n=28,281, m=92,752",
        _FEATHER,
        "deezer/edges.csv",
        origin="https://github.com/benedekrozemberczki/FEATHER",
    ),
    Dataset(
        "enron",
        "who wrote e-mail to whom at Enron: largest component, n=33,696, m=180,811",
        _ENRON,
        "enron/email-Enron.txt",
        True,
        _SNAP + "email-Enron.html",
    ),
    Dataset(
        "web-google",
        "links between web pages, directions forgotten: largest component, n=855,802",
        _GOOGLE,
        "web-google/web-Google.txt",
        True,
        _SNAP + "web-Google.html",
    ),
    _ego(0, 324, 2514),
    _ego(107, 1034, 26749),
    _ego(348, 224, 3192),
    _ego(414, 148, 1692),
    _ego(686),
    _ego(698),
    _ego(1684, 775, 14006),
    _ego(1912, 744, 30023),
    _ego(3437),
    _ego(3980),
    Dataset(
        "karate",
        "friends in a karate club: n=34, m=78",
        "Zachary: An information flow model for conflict and fission in small groups. "
        "Journal of Anthropological Research 33, 1977",
    ),
    Dataset(
        "florentine",
        "marriages among Renaissance Florentine families: n=15, m=20",
        "Breiger, Pattison: Cumulated social roles: the duality of persons and their algebras. Social Networks 8, 1986",
    ),
    Dataset(
        "les-miserables",
        "characters of Les Misérables who appear together: n=77, m=254",
        "Knuth: The Stanford GraphBase. ACM Press 1993",
    ),
    Dataset(
        "davis",
        "women and the social events they attended, bipartite: n=32, m=89",
        "Davis, Gardner, Gardner: Deep South. University of Chicago Press 1941",
    ),
)
_BUNDLED = {
    "karate": "karate_club_graph",
    "florentine": "florentine_families_graph",
    "les-miserables": "les_miserables_graph",
    "davis": "davis_southern_women_graph",
}


def datasets() -> tuple[Dataset, ...]:
    """Every named graph with its facts and citation, whether or not its file is on this machine.

    >>> [d.name for d in datasets()][:3]
    ['twitch', 'facebook-pages', 'deezer']
    """
    return _ALL


def dataset(name: str) -> Graph:
    """A graph by its name; `datasets()` lists them.

    Of enron, web-google and the ego networks, which are not connected, the largest component is taken and the
    graph's name says so.

    Raises:
        InvalidValue: there is no data set of that name.
        DataNotFound: its file is not here; says where to put it.

    >>> dataset("karate")
    Graph('karate', n=34, m=78)
    """
    known = {entry.name: entry for entry in _ALL}
    if not isinstance(name, str) or name not in known:
        close = get_close_matches(str(name), known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise InvalidValue(f"no data set is called {name!r}; {hint}there are: {', '.join(known)}")
    entry = known[name]
    if entry.file is None:
        import networkx as nx

        return from_networkx(getattr(nx, _BUNDLED[name])(), name=name)
    graph = read(data_file(entry.file, entry.name, entry.origin), name=name)
    return graph.largest_component() if entry.largest_component else graph


def data_file(file: str, name: str, origin: str | None) -> Path:
    """Where a data file is: in the folder NETDP_DATA, then in the cache folder, plain or gzipped; refuses if nowhere."""
    path = _find(file)
    if path is not None:
        return path
    setting = "" if os.environ.get("NETDP_DATA") else "set NETDP_DATA to the data folder, or "
    raise DataNotFound(
        f"the data set {name!r} is not on this machine: no file {file} (or .gz) in "
        f"{' or '.join(map(str, data_folders()))}; {setting}put the file there, from {origin}"
    )


def data_folders() -> tuple[Path, ...]:
    """Where files are looked for, in this order: the folder NETDP_DATA, if that is set, and the cache folder."""
    given = os.environ.get("NETDP_DATA")
    # an empty XDG variable counts as unset, by that specification
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netdp"
    return (Path(given), cache) if given else (cache,)


def _find(file: str) -> Path | None:
    candidates = (folder / name for folder in data_folders() for name in (file, file + ".gz"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)
