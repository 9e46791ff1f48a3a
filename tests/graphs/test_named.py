"""Named graphs: the facts stated about them, and where they are looked for."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from netdp import graphs
from netdp.errors import DataNotFound, InvalidValue

DATA = os.environ.get("NETDP_DATA")
needs_data = pytest.mark.skipif(
    not DATA or not Path(DATA, "twitch", "edges.csv").is_file(),
    reason="real data sets are not here: set NETDP_DATA to their folder",
)
ABSENT = {
    "web-google",
    *(f"facebook-ego-{i}" for i in (686, 698, 3437, 3980)),
}  # not to be had where netdp is developed


def _stated(facts: str, symbol: str) -> int | None:
    found = re.search(rf"\b{symbol}=([\d,]+)", facts)
    return int(found[1].replace(",", "")) if found else None


def _check_facts(entry: graphs.Dataset) -> None:
    g = graphs.dataset(entry.name)
    assert g.n == _stated(entry.facts, "n")
    assert g.m == _stated(entry.facts, "m")
    assert g.is_connected
    assert g.name.startswith(entry.name)
    assert entry.largest_component == ("largest component" in entry.facts)
    assert len(entry.citation) > 20


@pytest.mark.parametrize("name", [d.name for d in graphs.datasets() if d.file is None])
def test_classics(name: str) -> None:
    _check_facts(next(d for d in graphs.datasets() if d.name == name))


@needs_data
@pytest.mark.parametrize("name", [d.name for d in graphs.datasets() if d.file and d.name not in ABSENT])
def test_real_networks(name: str) -> None:
    _check_facts(next(d for d in graphs.datasets() if d.name == name))


@needs_data
@pytest.mark.parametrize(
    ("file", "nodes", "edges", "lines", "header", "self_loops", "duplicates"),
    [
        ("twitch/edges.csv", 9498, 153138, 153138, "from,to", 0, 0),
        ("facebook-pages/edges.csv", 22470, 170823, 171002, "id_1,id_2", 179, 0),
        ("deezer/edges.csv", 28281, 92752, 92752, "node_1,node_2", 0, 0),
        ("enron/email-Enron.txt", 36692, 183831, 367662, "36692 367662", 0, 183831),
        ("facebook-ego/414.edges", 150, 1693, 3386, None, 0, 1693),
    ],
)
def test_what_the_files_hold(
    file: str, nodes: int, edges: int, lines: int, header: str | None, self_loops: int, duplicates: int
) -> None:
    assert DATA is not None
    graph, report = graphs.read_with_report(Path(DATA, file))
    assert (graph.n, graph.m) == (report.nodes, report.edges) == (nodes, edges)
    assert (report.lines, report.header) == (lines, header)
    assert (report.self_loops, report.duplicates) == (self_loops, duplicates)


@needs_data
def test_enron_components() -> None:
    assert DATA is not None
    whole = graphs.read(Path(DATA, "enron", "email-Enron.txt"))
    assert whole.labels is None
    assert int(whole.components().max()) + 1 == 1065
    part = graphs.dataset("enron")
    assert part.name == "enron, largest component"
    assert (part.n, part.m) == (33696, 180811)
    assert part.labels is not None


def test_classics_keep_their_names() -> None:
    assert graphs.dataset("florentine").index("Medici") >= 0
    assert graphs.dataset("karate").labels is None
    assert graphs.dataset("davis").is_bipartite


def test_listing() -> None:
    names = [d.name for d in graphs.datasets()]
    assert len(set(names)) == len(names)
    assert {"twitch", "facebook-pages", "deezer", "enron", "karate", "florentine", "les-miserables"} <= set(names)
    assert {f"facebook-ego-{i}" for i in (0, 107, 348, 414, 686, 698, 1684, 1912, 3437, 3980)} <= set(names)


def _put(folder: Path, content: str, name: str = "twitch/edges.csv") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content)


def test_lookup_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, cache = tmp_path / "data", tmp_path / "cache"
    monkeypatch.setenv("NETDP_DATA", str(data))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    with pytest.raises(DataNotFound, match=r"'twitch'.*twitch/edges.csv.*data or .*netdp; put the file there"):
        graphs.dataset("twitch")
    _put(cache / "netdp", "0,1\n")
    assert graphs.dataset("twitch").m == 1
    _put(data, "0,1\n1,2\n")
    assert graphs.dataset("twitch").m == 2
    monkeypatch.delenv("NETDP_DATA")
    assert graphs.dataset("twitch").m == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(DataNotFound, match=r"home.*\.cache.netdp; set NETDP_DATA .* from https://github"):
        graphs.dataset("twitch")
    _put(tmp_path / "home" / ".cache" / "netdp", "0,1\n1,2\n2,3\n")
    assert graphs.dataset("twitch").m == 3


def test_gzip_beside_the_plain_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """web-Google as SNAP ships it: gzip, comments, tabs, directed, not connected."""
    import gzip

    (tmp_path / "web-google").mkdir()
    text = "# Directed graph\r\n# FromNodeId\tToNodeId\r\n0\t5\r\n5\t0\r\n5\t7\r\n8\t9\r\n"
    (tmp_path / "web-google" / "web-Google.txt.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("NETDP_DATA", str(tmp_path))
    g = graphs.dataset("web-google")
    assert repr(g) == "Graph('web-google, largest component', n=3, m=2)"
    assert g.labels == ("0", "5", "7")


def test_what_is_installed_is_known_without_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETDP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bundled = {d.name for d in graphs.datasets() if d.file is None}
    assert (
        {d.name for d in graphs.datasets() if d.available}
        == bundled
        == {"karate", "florentine", "les-miserables", "davis"}
    )
    _put(tmp_path / "data", "nonsense")
    _put(tmp_path / "cache" / "netdp", "", "deezer/edges.csv.gz")
    assert {d.name for d in graphs.datasets() if d.available} == {*bundled, "twitch", "deezer"}


@pytest.mark.parametrize("name", [3, None, ["karate"]], ids=repr)
def test_a_name_that_is_no_text_is_refused(name: object) -> None:
    with pytest.raises(InvalidValue, match=re.escape(f"no data set is called {name!r};") + ".*there are: twitch"):
        graphs.dataset(name)  # type: ignore[arg-type]


def test_unknown_name() -> None:
    with pytest.raises(InvalidValue, match=r"'twich'; did you mean 'twitch'.*karate"):
        graphs.dataset("twich")
