"""Edge lists from files: CSV, TSV or spaces, plain or gzip, cleaned and reported.

What is read: one edge per line, two identifiers first; further columns (weights, timestamps) are ignored but
must be there on every line; a third column that holds numbers ≤ 0 is warned about, because as weights they may
mean that there is no edge. Lines starting with `#` or `%` and blank lines are skipped. Separators: comma,
semicolon, otherwise tabs and spaces. An identifier may stand in double quotes, and then contain the separator:
`"Smith, Ann","Bob"`; a quote inside is doubled, blanks around an identifier do not count. Identifiers are all
integers or all text. Directed edges are made
undirected; self-loops and repeated edges are removed and counted.

The first line is a header when it is text and the next is not; when it is text like the rest but says, for
example, `source,target`; or when it is the pair "number of nodes, number of lines" (as in SNAP's email-Enron
and DIMACS-like files): the second number is the number of lines that follow and larger than any identifier,
and the first is no smaller than any identifier nor than the number of nodes. Mark any other header with `#`.
"""

from __future__ import annotations

import csv
import gzip
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain, islice
from os import PathLike
from pathlib import Path

import numpy as np

from netdp.errors import FileFormatError, InvalidValue
from netdp.graphs import csr as _csr
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import IntArray

logger = logging.getLogger("netdp.graphs")

_CHUNK = 1 << 16  # lines held as Python objects at a time
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LEADING_ZERO = re.compile(rb"\s[+-]?0[0-9]")
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
_BLANKS_AFTER = re.compile(rb'("(?:[^"]|"")*") +(?=[,;\t]|$)')
_BETWEEN_BLANKS = re.compile(rb'(?<!\S)(?:"(?:[^"]|"")*"|[^\s"]\S*)(?!\S)')
_HEADER_WORDS = frozenset(
    {"from", "to", "source", "target", "src", "dst", "sender", "receiver", "head", "tail", "u", "v"}
    | {"id_1", "id_2", "id1", "id2", "node_1", "node_2", "node1", "node2", "fromnodeid", "tonodeid"}
)


@dataclass(frozen=True)
class ReadReport:
    """What was found in an edge-list file, and what was removed.

    Attributes:
        lines: lines with an edge, self-loops and repetitions included.
        comments: comment lines skipped.
        header: the header line, if there was one.
        self_loops: lines that join a node to itself.
        duplicates: lines that repeat an earlier edge, in either direction.
        nodes, edges: what the graph has.
        columns_ignored: columns beyond the two identifiers (weights, timestamps).
        weights_not_positive: lines whose third column is a number ≤ 0; their edges are in the graph.
    """

    path: str
    lines: int
    comments: int
    header: str | None
    self_loops: int
    duplicates: int
    nodes: int
    edges: int
    columns_ignored: int = 0
    weights_not_positive: int = 0

    def summary(self) -> str:
        """One sentence.

        >>> ReadReport("a.csv", 5, 0, "from,to", 1, 2, 3, 2).summary()
        "a.csv: 3 nodes, 2 edges; header 'from,to' skipped; removed 1 self-loop and 2 repeated edges"
        """
        text = f"{self.path}: {_count(self.nodes, 'node')}, {_count(self.edges, 'edge')}"
        if self.header is not None:
            text += f"; header {self.header!r} skipped"
        if self.columns_ignored:
            text += f"; {_count(self.columns_ignored, 'further column')} ignored"
        removed = [
            _count(number, what)
            for number, what in ((self.self_loops, "self-loop"), (self.duplicates, "repeated edge"))
            if number
        ]
        return text + (f"; removed {' and '.join(removed)}" if removed else "")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def read(path: str | PathLike[str], *, name: str | None = None) -> Graph:
    """The simple undirected graph in an edge-list file (see the module's text for the format).

    Identifiers are numbered 0 … n−1 in increasing order; unless they were exactly that, `labels` holds the
    original ones. What was removed or ignored is logged at level INFO to the logger "netdp.graphs", weights that
    are not positive at level WARNING; `read_with_report` returns it.

    Raises:
        InvalidValue: `path` is no file name.
        FileFormatError: the file is missing, empty, without an edge, or has a malformed line (named).
    """
    graph, report = read_with_report(path, name=name)
    if report.self_loops or report.duplicates or report.header is not None or report.columns_ignored:
        logger.info("%s", report.summary())
    return graph


def read_with_report(path: str | PathLike[str], *, name: str | None = None) -> tuple[Graph, ReadReport]:
    """Like `read`, and what was found and removed.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "friends.csv")
    ...     _ = file.write_text("from,to\\nann,bob\\nbob,ann\\nbob,cy\\n")
    ...     graph, report = read_with_report(file)
    >>> graph, graph.labels, report.duplicates
    (Graph('friends', n=3, m=2), ('ann', 'bob', 'cy'), 1)
    """
    if not isinstance(path, str | PathLike) or not isinstance(os.fspath(path), str):
        raise InvalidValue(
            f"graphs.read takes the name of an edge-list file, got {path!r}; Graph.from_edges(n, pairs) takes edges, "
            "graphs.from_networkx a NetworkX graph"
        )
    file = Path(path)
    try:
        with _open(file) as stream:
            scan = _Scan(file)
            scan.run(stream)
    except FileNotFoundError:
        raise FileFormatError(file, None, "no such file; check the spelling and the folder") from None
    except IsADirectoryError:
        raise FileFormatError(file, None, "is a folder; name the edge-list file inside it") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileFormatError(file, None, f"is no complete gzip file: {error}") from None
    except OSError as error:
        raise FileFormatError(file, None, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        if isinstance(error, FileFormatError):
            raise
        raise InvalidValue(f"{path!r} is no file name: {error}") from None
    ends, labels = scan.numbered()
    low, high = ends.min(axis=1), ends.max(axis=1)
    proper = low != high
    n = int(ends.max()) + 1
    keys = _csr.distinct(low[proper] * n + high[proper])
    if keys.size == 0:
        raise FileFormatError(file, None, f"has no edge, only {_count(ends.shape[0], 'self-loop')}")
    loops = int(np.count_nonzero(~proper))
    stem = file.name.removesuffix(".gz")
    graph = Graph.from_edges(
        n, np.column_stack(np.divmod(keys, n)), name=name or Path(stem).stem or stem, labels=labels
    )
    if scan.doubt is not None:
        more = f" (and {_count(scan.doubtful - 1, 'more line')} with a weight ≤ 0)" if scan.doubtful > 1 else ""
        logger.warning(
            "%s: line %d: weight %s%s: netdp ignores weights; remove such edges yourself if they mean 'no edge'",
            file,
            *scan.doubt,
            more,
        )
    report = ReadReport(
        path=str(path),
        lines=ends.shape[0],
        comments=scan.comments,
        header=scan.header,
        self_loops=loops,
        duplicates=ends.shape[0] - loops - keys.size,
        nodes=n,
        edges=graph.m,
        columns_ignored=scan.columns - 2,
        weights_not_positive=scan.doubtful,
    )
    return graph, report


def _open(file: Path) -> gzip.GzipFile | BufferedReader:
    stream = file.open("rb")
    with closing(stream):
        packed = stream.read(2) == b"\x1f\x8b"
    return gzip.open(file, "rb") if packed else file.open("rb")


@dataclass
class _Scan:
    """The state of one pass through a file."""

    file: Path
    comments: int = 0
    header: str | None = None
    text: bool = False  # identifiers are text, not integers
    separator: bytes | None = None  # None: any white space
    columns: int = 0
    integers: list[IntArray] = field(default_factory=list)
    names: list[bytes] = field(default_factory=list)
    doubtful: int = 0  # lines with a weight ≤ 0
    doubt: tuple[int, str] | None = None  # the first of them, and its weight

    def fail(self, line: int, problem: str) -> FileFormatError:
        return FileFormatError(self.file, line, problem)

    def run(self, stream: Iterable[bytes]) -> None:
        chunks = self._data(stream)
        first: list[tuple[int, bytes]] = []
        for numbers, lines in chunks:
            first += zip(numbers, lines, strict=True)
            if len(first) >= 2:
                break
        if not first:
            raise FileFormatError(self.file, None, "is empty: no line with an edge")
        skip = self._recognise(first[0], first[1] if len(first) > 1 else None)
        head: tuple[Sequence[int], list[bytes]]
        head = ([number for number, _ in first[skip:]], [line for _, line in first[skip:]])
        for numbers, lines in chain([head], chunks):
            if lines:
                self._take(numbers, lines)
        if not self.integers and not self.names:
            raise FileFormatError(self.file, None, "has a header but no line with an edge")

    def _data(self, stream: Iterable[bytes]) -> Iterator[tuple[Sequence[int], list[bytes]]]:
        """Chunks of (line numbers, stripped lines), without comments and blank lines."""
        source, start = iter(stream), 1
        while raw := list(islice(source, _CHUNK)):
            if start == 1:
                raw[0] = raw[0].removeprefix(b"\xef\xbb\xbf")
            lines = [line.strip() for line in raw]
            numbers: Sequence[int] = range(start, start + len(lines))
            if not {line[:1] for line in lines}.isdisjoint((b"", b"#", b"%")):
                kept = [i for i, line in enumerate(lines) if line and line[0] not in b"#%"]
                self.comments += sum(1 for line in lines if line and line[0] in b"#%")
                numbers, lines = [numbers[i] for i in kept], [lines[i] for i in kept]
            start += len(raw)
            yield numbers, lines

    def _recognise(self, first: tuple[int, bytes], second: tuple[int, bytes] | None) -> int:
        """Find separator, kind of identifier and columns; return 1 if the first line is a header, else 0."""
        # A number in the first line makes it an edge, perhaps a malformed one, but no header.
        if _any_number(_split(first[1], _separator(first[1], text=False))):
            self.separator, model, skip = _separator(first[1], text=False), first, 0
        elif second is not None and self._is_header(first[1], second[1]):
            self.separator, model, skip = _separator(second[1], text=False), second, 1
            self.header = first[1].decode("utf-8", "replace")
        else:
            self.text = True
            self.separator = _separator(first[1], text=True)
            skip = int(_usual_header(first[1]))
            if skip:
                self.header = first[1].decode("utf-8", "replace")
            model = second if skip and second is not None else first
        self.columns = len(_split(model[1], self.separator))
        if self.columns < 2:
            problem = _few(_split(model[1], self.separator))
            raise self.fail(model[0], f"{problem}, found {_shown(model[1])}")
        return skip

    @staticmethod
    def _is_header(first: bytes, second: bytes) -> bool:
        """Whether a line of text stands above integers, or above what should be integers."""
        fields = _split(second, _separator(second, text=False))[:2]
        numbers = sum(_NUMBER.fullmatch(part) is not None for part in fields)
        return numbers == 2 or (numbers == 1 and (len(fields) == 1 or _usual_header(first)))

    def _take(self, numbers: Sequence[int], lines: list[bytes]) -> None:
        rows = [line.split(self.separator) if b'"' not in line else _split(line, self.separator) for line in lines]
        if set(map(len, rows)) != {self.columns}:
            at = next(i for i, row in enumerate(rows) if len(row) != self.columns)
            # an earlier line of this chunk may have the wrong kind of identifier: report the first problem
            self._identifiers(numbers[:at], rows[:at])
            problem = f"has {_count(len(rows[at]), 'field')}, the other lines have {self.columns}"
            if len(rows[at]) < 2:
                problem = _few(rows[at])
            raise self.fail(numbers[at], f"{problem}: {_shown(lines[at])}")
        self._identifiers(numbers, rows)
        if self.columns > 2:
            self._weights(numbers, rows)

    def _weights(self, numbers: Sequence[int], rows: list[list[bytes]]) -> None:
        """Remember the first number ≤ 0 in the third column, and how many there are."""
        for line, row in zip(numbers, rows, strict=True):
            weight = row[2].strip()
            if weight[:1] in (b"-", b"0", b".", b"+") and _NUMBER.fullmatch(weight) and float(weight) <= 0:
                self.doubtful += 1
                self.doubt = self.doubt or (line, weight.decode())

    def _identifiers(self, numbers: Sequence[int], rows: list[list[bytes]]) -> None:
        flat = [identifier for row in rows for identifier in row[:2]]
        if self.text:
            flat = [identifier.strip() for identifier in flat]
            for i, identifier in enumerate(flat):
                if not identifier:
                    raise self.fail(numbers[i // 2], "an identifier is empty")
                if _NUMBER.fullmatch(identifier):
                    raise self.fail(
                        numbers[i // 2],
                        f"{_shown(identifier)} is a number among text identifiers; use one kind only",
                    )
            self.names += flat
            return
        together = b" " + b" ".join(flat)
        if b" 0" in together and _LEADING_ZERO.search(together):
            at, lost = next((i, part) for i, part in enumerate(flat) if _LEADING_ZERO.search(b" " + part))
            raise self.fail(
                numbers[at // 2],
                f"{_shown(lost.strip())} starts with a zero that a number would lose; write it without, or as text such as p007",
            )
        try:
            if b"_" in together:  # int() would take 1_000
                raise ValueError
            values = np.fromiter(map(int, flat), dtype=np.int64, count=len(flat))
        except (ValueError, OverflowError):
            flat = [identifier.strip() for identifier in flat]
            for i, identifier in enumerate(flat):
                if not _INTEGER.fullmatch(identifier):
                    raise self.fail(
                        numbers[i // 2],
                        f"{_shown(identifier)} is not an integer, as the other identifiers are",
                    ) from None
                if not -(2**63) <= int(identifier) < 2**63:
                    raise self.fail(numbers[i // 2], f"{_shown(identifier)} does not fit in 64 bits") from None
            values = np.array([int(identifier) for identifier in flat], dtype=np.int64)
        self.integers.append(values.reshape(-1, 2))

    def numbered(self) -> tuple[IntArray, tuple[str, ...] | None]:
        """Edges on 0 … n−1, and the original identifiers unless they were just that."""
        if self.text:
            try:
                decoded = [name.decode("utf-8") for name in self.names]
            except UnicodeDecodeError as error:
                raise FileFormatError(self.file, None, f"is not UTF-8 text: {error}") from None
            labels = sorted(set(decoded))
            number = {label: i for i, label in enumerate(labels)}
            ends = np.fromiter(map(number.__getitem__, decoded), dtype=np.int64, count=len(decoded))
            return ends.reshape(-1, 2), tuple(labels)
        edges = np.concatenate(self.integers)
        if self.header is None and self._counts_itself(edges):
            self.header = f"{edges[0, 0]} {edges[0, 1]}"
            edges = edges[1:]
        known = _csr.distinct(edges.ravel())
        ends = np.searchsorted(known, edges)
        if known[0] == 0 and known[-1] == known.size - 1:
            return ends, None
        return ends, tuple(map(str, known.tolist()))

    def _counts_itself(self, edges: IntArray) -> bool:
        """Whether the first row is "number of nodes, number of lines" of the rest (see the module's text)."""
        rest = edges[1:]
        nodes, lines = int(edges[0, 0]), int(edges[0, 1])
        if rest.shape[0] == 0 or lines != rest.shape[0]:
            return False
        low, high = int(rest.min()), int(rest.max())
        fits = nodes > high if low == 0 else low >= 1 and nodes >= high
        return fits and lines > high and nodes >= _csr.distinct(rest.ravel()).size


def _separator(line: bytes, *, text: bool) -> bytes | None:
    if b'"' in line:
        line = _QUOTED.sub(b"", line)  # "Smith, Ann";"Bob" is separated by the semicolon
    for candidate in (b",", b";"):
        if candidate in line:
            return candidate
    return b"\t" if text and b"\t" in line else None


def _split(line: bytes, separator: bytes | None) -> list[bytes]:
    """The fields of a line, without quotes; none at all where a quote is not closed.

    >>> _split(b'"Smith, Ann" , "Bob ""the boss"" Roy"', b",")
    [b'Smith, Ann', b'Bob "the boss" Roy']
    >>> _split(b'"Smith, Ann,Bob', b",")
    []
    """
    if b'"' not in line:
        return [part.strip() for part in line.split(separator)]
    if separator is None:
        if _BETWEEN_BLANKS.sub(b"", line).strip():
            return []
        parts = _BETWEEN_BLANKS.findall(line)
        return [part[1:-1].replace(b'""', b'"').strip() if part[:1] == b'"' else part for part in parts]
    # Latin-1 maps every byte to one character and back. Blanks after a closing quote are none of the csv module's.
    text = _BLANKS_AFTER.sub(rb"\1", line).decode("latin-1")
    try:
        (fields,) = csv.reader([text], delimiter=separator.decode(), skipinitialspace=True, strict=True)
    except csv.Error:
        return []
    return [part.encode("latin-1").strip() for part in fields]


def _few(fields: list[bytes]) -> str:
    """What is wrong with a line of fewer than two fields."""
    return "needs two identifiers" if fields else "has a double quote that is not closed before the field ends"


def _usual_header(line: bytes) -> bool:
    fields = _split(line, _separator(line, text=True))[:2]
    words = {field.decode("utf-8", "replace").lower() for field in fields}
    return len(words) == 2 and words <= _HEADER_WORDS


def _any_number(fields: list[bytes]) -> bool:
    return any(_NUMBER.fullmatch(part) for part in fields[:2])


def _shown(part: bytes) -> str:
    text = part.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:39] + "…")
