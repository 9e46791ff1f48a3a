"""The edge-list reader: every format it promises, and the right line number for every complaint."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netdp import graphs
from netdp.errors import FileFormatError, InvalidValue
from netdp.graphs import files

Write = Callable[..., Path]


@pytest.fixture(params=["plain", "gz"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    def put(content: str | bytes, name: str = "edges.txt") -> Path:
        data = content.encode() if isinstance(content, str) else content
        if request.param == "gz":
            path = tmp_path / f"{name}.gz"
            path.write_bytes(gzip.compress(data))
        else:
            path = tmp_path / name
            path.write_bytes(data)
        return path

    return put


@pytest.mark.parametrize(
    ("content", "header"),
    [
        ("0 1\n1 2\n", None),
        ("0\t1\n1\t2", None),
        ("0,1\n1,2\n", None),
        ("0, 1\n1 ,2\n", None),
        ("0;1\n1;2\n", None),
        ("0 \t 1\r\n1 2\r\n", None),
        ("from,to\n0,1\n1,2\n", "from,to"),
        ("id_1,id_2\r\n0,1\r\n1,2\r\n", "id_1,id_2"),
        ("source target weight\n0 1 0.5\n1 2 1e-3\n", "source target weight"),
        ("any words\n0 1\n1 2\n", "any words"),
        ("# comment\n% other\n\n0 1\n\n# more\n1 2\n", None),
        ("# FromNodeId\tToNodeId\n0\t1\n1\t2\n", None),
        ('"0","1"\n"1","2"\n', None),
        ('"0","1"\n1,"2"\n', None),
        ('"0" , "1"\n "1", 2\n', None),
        ('"0" "1"\n1\t"2"\n', None),
        ('"source";"target"\n"0";"1"\n"1";"2"\n', '"source";"target"'),
        ("0 1 1082040961\n1 2 1082155839\n", None),
        ("\ufeff0,1\n1,2\n", None),
        ("3 2\n0 1\n1 2\n", None),  # an edge: 2 is an identifier
        ("3 4\n0 1\n1 2\n2 1\n1 0\n", "3 4"),
        ("0 1\n", None),
        ("from,to\n0,1", "from,to"),
    ],
)
def test_formats(write: Write, content: str, header: str | None) -> None:
    graph, report = graphs.read_with_report(write(content))
    edges = graph.edges().tolist()
    if content.startswith("3 2"):
        assert edges == [[0, 1], [1, 2], [2, 3]]
    elif content in ("0 1\n", "from,to\n0,1"):
        assert edges == [[0, 1]]
    else:
        assert edges == [[0, 1], [1, 2]]
    assert report.header == header
    assert graph.labels is None
    assert graph.name == "edges"


def test_report(write: Write) -> None:
    path = write("# a\na,b\n% b\n7,7\n7,9\n9,7\n\n7,9\n9,30\n")
    graph, report = graphs.read_with_report(path, name="mine")
    assert graph.name == "mine"
    assert graph.labels == ("7", "9", "30")
    assert graph.edges().tolist() == [[0, 1], [1, 2]]
    assert report == graphs.ReadReport(
        path=str(path), lines=5, comments=2, header="a,b", self_loops=1, duplicates=2, nodes=3, edges=2
    )
    assert report.summary() == (
        f"{path}: 3 nodes, 2 edges; header 'a,b' skipped; removed 1 self-loop and 2 repeated edges"
    )
    with pytest.raises(AttributeError):
        report.lines = 3  # type: ignore[misc]


def test_read_logs_only_what_is_worth_it(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="netdp.graphs"):
        graphs.read(write("0 1\n1 2\n"))
        assert not caplog.records
        graphs.read(write("0 1\n1 0\n"))
    assert [(r.name, r.levelname) for r in caplog.records] == [("netdp.graphs", "INFO")]
    assert "removed 1 repeated edge" in caplog.text


def test_further_columns_are_said_to_be_ignored(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    path = write("0 1 0.5 a\n1 2 3 b\n")
    _, report = graphs.read_with_report(path)
    assert (report.columns_ignored, report.weights_not_positive) == (2, 0)
    assert report.summary() == f"{path}: 3 nodes, 2 edges; 2 further columns ignored"
    with caplog.at_level(logging.INFO, logger="netdp.graphs"):
        graphs.read(path)
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "2 further columns ignored" in caplog.text
    _, plain = graphs.read_with_report(write("0 1\n1 2\n"))
    assert plain.columns_ignored == 0
    assert "ignored" not in plain.summary()


@pytest.mark.parametrize(
    ("content", "line", "weight", "count"),
    [
        ("from,to,weight\n0,1,2\n1,2,-1\n2,3,4\n", 3, "-1", 1),
        ("0 1 -0.5\n1 2 0\n2 3 1e-3\n3 4 -1e3\n", 1, "-0.5", 3),
        ("# c\n0;1;.0\n1;2;+5\n", 2, ".0", 1),
        ('"a, b",c,"-2"\nc,d,3\n', 1, "-2", 1),
    ],
)
def test_weights_that_are_not_positive_are_warned_about(
    write: Write, content: str, line: int, weight: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(content)
    graph, report = graphs.read_with_report(path)
    assert report.weights_not_positive == count
    assert graph.m == report.lines  # they are edges all the same
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("netdp.graphs", "WARNING")
    more = f" (and {count - 1} more lines with a weight ≤ 0)" if count > 1 else ""
    assert record.getMessage() == (
        f"{path}: line {line}: weight {weight}{more}: netdp ignores weights; "
        "remove such edges yourself if they mean 'no edge'"
    )


@pytest.mark.parametrize("column", ["1", "0.5", "-", "00:15", "0x10", "-a", "2004-01-01"])
def test_a_third_column_of_something_else_is_no_weight(
    write: Write, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert graphs.read(write(f"0 1 {column}\n1 2 {column}\n")).m == 2
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_weights_are_counted_across_chunks(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_CHUNK", 3)
    content = "".join(f"{i} {i + 1} {-1 if i % 5 == 4 else 1}\n" for i in range(20))
    assert graphs.read_with_report(write(content))[1].weights_not_positive == 4


@pytest.mark.parametrize("path", [[1, 2], None, 3, b"edges.txt", [(0, 1)]], ids=repr)
def test_read_refuses_what_is_no_file_name(path: object) -> None:
    with pytest.raises(
        InvalidValue, match=r"takes the name of an edge-list file, got .*Graph.from_edges\(n, pairs\)"
    ) as caught:
        graphs.read(path)  # type: ignore[arg-type]
    assert repr(path) in str(caught.value)


def test_integers_are_compacted_in_order(write: Write) -> None:
    graph = graphs.read(write("100 -5\n7 100\n"))
    assert graph.labels == ("-5", "7", "100")
    assert graph.edges().tolist() == [[0, 2], [1, 2]]
    assert graph.index("100") == 2


def test_a_node_with_only_a_loop_stays(write: Write) -> None:
    assert graphs.read(write("0 1\n2 2\n")).n == 3


@pytest.mark.parametrize(
    ("content", "labels", "header"),
    [
        ("ann,bob\nbob,cy\n", ("ann", "bob", "cy"), None),
        ("source,target\nann,bob\nbob,cy\n", ("ann", "bob", "cy"), "source,target"),
        ("Zoë Q\tAnn B\nAnn B\tCy C\n", ("Ann B", "Cy C", "Zoë Q"), None),
        ("u1 u2\nu2 u3\n", ("u1", "u2", "u3"), None),
        ("nan inf\ninf Infinity\n", ("Infinity", "inf", "nan"), None),
    ],
)
def test_text_identifiers(write: Write, content: str, labels: tuple[str, ...], header: str | None) -> None:
    graph, report = graphs.read_with_report(write(content))
    assert graph.labels == labels
    assert graph.m == 2
    assert report.header == header


@pytest.mark.parametrize(
    ("content", "labels"),
    [
        ('"Smith, Ann","Bob"\nBob,"Roy, Cy"\n', ("Bob", "Roy, Cy", "Smith, Ann")),
        ('"Smith, Ann";Bob\nBob;"a;b"\n', ("Bob", "Smith, Ann", "a;b")),
        ('"Smith, Ann"\t"Bob B"\nBob B\t"c\td"\n', ("Bob B", "Smith, Ann", "c\td")),
        ('"Smith, Ann" Bob\n"Bob"   "Cy D"\n', ("Bob", "Cy D", "Smith, Ann")),
        ('"Ann ""A"" Smith",Bob\nBob,5" nail\n', ('5" nail', 'Ann "A" Smith', "Bob")),
        ('source,target\n"Zoë, à",Bob\nBob,à\n', ("Bob", "Zoë, à", "à")),
    ],
)
def test_quoted_fields_may_contain_the_separator(write: Write, content: str, labels: tuple[str, ...]) -> None:
    """And another separator, blanks, and quotes written twice; a quote inside an unquoted field is a letter."""
    graph = graphs.read(write(content))
    assert graph.labels == labels
    assert graph.m == 2


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("0 1\n1 2\nx 3\n", 3, "'x' is not an integer"),
        ("from,to\r\n\r\n# note\r\n0,1\r\n1,two\r\n", 5, "'two' is not an integer"),
        ("from,to\n0,x\n1,2\n", 2, "'x' is not an integer"),
        ("0,x\n1,2\n", 1, "'x' is not an integer"),
        ("0 1\n1 2.5\n", 2, "'2.5' is not an integer"),
        ("0.5 1\n1 2\n", 1, "'0.5' is not an integer"),
        ("0 1\n1_0 2\n", 2, "'1_0' is not an integer"),
        ("0 1\n99999999999999999999 2\n", 2, "does not fit in 64 bits"),
        ("0 1\n# c\n2\n", 3, "needs two identifiers: '2'"),
        ("0,1\n1,\n", 2, "'' is not an integer"),
        ("0,1\n1 2\n", 2, "needs two identifiers: '1 2'"),
        ("5\n", 1, "needs two identifiers"),
        ("from,to\n5\n", 2, "needs two identifiers"),
        ("hello\n", 1, "needs two identifiers"),
        ("0 1 3\n1 2\n", 2, "has 2 fields, the other lines have 3"),
        ("0 1\n1 2 3\n", 2, "has 3 fields, the other lines have 2"),
        ("0 1\nx 1\n1 2 3\n", 2, "'x' is not"),
        ("ann,bob\nbob,7\n", 2, "'7' is a number among text"),
        ("from,to\nann,bob\nbob,3.5\n", 3, "'3.5' is a number among text"),
        ("ann,bob\nbob,\n", 2, "identifier is empty"),
        ('ann,bob\n"","cy"\n', 2, "identifier is empty"),
        ('ann,bob\n"Smith, cy,bob\n', 2, "double quote that is not closed"),
        ('ann,bob\n"Smith"ann,bob\n', 2, "double quote that is not closed"),
        ('"Smith, ann,bob\nann,bob\n', 1, "double quote that is not closed"),
        ('0 1\n"1 2\n', 2, "double quote that is not closed"),
        ('ann,bob\nbob,7\n"cy,bob\n', 2, "'7' is a number among text"),
        ('"1,000",2\n', 1, "'1,000' is not an integer"),
        ("%%MatrixMarket matrix\n3 3 2\n1 2\n2 3\n", 3, "has 2 fields, the other lines have 3"),
    ],
)
def test_malformed_line(write: Write, content: str, line: int, problem: str) -> None:
    path = write(content)
    with pytest.raises(FileFormatError, match=problem) as caught:
        graphs.read(path)
    assert caught.value.line == line
    assert caught.value.path == str(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize("bad_line", [1, 9, 10, 11, 12, 35])
def test_line_numbers_across_chunks(write: Write, bad_line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_CHUNK", 5)
    lines = [f"{i} {i + 1}" if i % 3 else "# comment" for i in range(1, 41)]
    lines[bad_line - 1] = "7 oops"
    with pytest.raises(FileFormatError, match="'oops'") as caught:
        graphs.read(write("\n".join(lines)))
    assert caught.value.line == bad_line


def test_chunks_make_no_difference(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("a b\n# c\n" * 1 + "\n".join(f"{i} {i + 1}" for i in range(50)))
    whole = graphs.read_with_report(path)
    monkeypatch.setattr(files, "_CHUNK", 1)
    assert graphs.read_with_report(path) == whole


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is empty"),
        ("# only\n\n% comments\n", "is empty"),
        ("from,to\n", "header but no line"),
        ("1 1\n2 2\n", "has no edge, only 2 self-loops"),
    ],
)
def test_no_edge(write: Write, content: str, problem: str) -> None:
    with pytest.raises(FileFormatError, match=problem) as caught:
        graphs.read(write(content))
    assert caught.value.line is None


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"nowhere.csv: no such file"):
        graphs.read(tmp_path / "nowhere.csv")
    with pytest.raises(FileFormatError, match="is a folder"):
        graphs.read(tmp_path)
    with pytest.raises(FileFormatError, match="cannot be read"):
        graphs.read(tmp_path / ("x" * 300))
    with pytest.raises(InvalidValue, match="is no file name"):
        graphs.read("a\0b")


def test_broken_gzip_and_text(tmp_path: Path) -> None:
    cut = tmp_path / "cut.txt.gz"
    cut.write_bytes(gzip.compress(b"0 1\n1 2\n" * 1000)[:-20])
    with pytest.raises(FileFormatError, match="no complete gzip"):
        graphs.read(cut)
    latin = tmp_path / "latin.txt"
    latin.write_bytes("Zoë Ann\nAnn Cy\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match="not UTF-8"):
        graphs.read(latin)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=40),
    st.sampled_from([",", ";", " ", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_edge_list(tmp_path: Path, pairs: list[tuple[int, int]], separator: str, newline: str) -> None:
    path = tmp_path / "any.txt"
    path.write_bytes(("# c" + newline + newline.join(f"{u}{separator}{v}" for u, v in pairs)).encode())
    simple = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    if not simple:
        with pytest.raises(FileFormatError, match="no edge"):
            graphs.read(path)
        return
    graph, report = graphs.read_with_report(path)
    if report.header is not None:  # the first pair happens to count the rest: that is what the rule says
        return
    names = graph.labels or tuple(map(str, range(graph.n)))
    assert {frozenset((int(names[u]), int(names[v]))) for u, v in graph.edges().tolist()} == simple
    assert set(map(int, names)) == {u for pair in pairs for u in pair}
    assert report.lines == len(pairs)
    assert report.lines - report.self_loops - report.duplicates == graph.m


def test_many_lines(tmp_path: Path) -> None:
    g = graphs.regular(50_000, 4, 0)
    path = tmp_path / "big.txt"
    np.savetxt(path, g.edges()[::-1, ::-1], fmt="%d")
    assert graphs.read(path) == g


@pytest.mark.parametrize("text", ["01 1\n1 2\n", "1,2\n2, 007\n", "0 10\n10 -02\n"])
def test_identifiers_with_leading_zeros_are_refused(tmp_path, text):
    """As numbers 01 and 1 would become one party."""
    path = tmp_path / "edges.txt"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"edges\.txt:[12]: '-?0[0-9]+' starts with a zero"):
        graphs.read(path)
    path.write_text("0 10\n10 100\n100 0\n")
    assert graphs.read(path).labels == ("0", "10", "100")
