"""Rows of a table: read from CSV or Parquet files, every mistake named with file and line, or row."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from netdp.errors import FileFormatError, MissingDependency
from netdp.models.schema import number

PARQUET = (".parquet", ".pq")
"""How names of Parquet files end."""


class Row(dict[str, Any]):
    """A row of a file that knows its place, "file.csv:12"."""

    place: str


def read_rows(path: str | os.PathLike[str], needed: Iterable[str] = ()) -> list[Row]:
    """The rows of a CSV file (UTF-8, commas, names in the first line) or of a Parquet file. Errors name file and line, or row."""
    if is_parquet(path):
        return _parquet_rows(path, needed)
    rows: list[Row] = []
    blank: int | None = None
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip() for name in next(reader, [])]
            _check_header(path, header, needed)
            for cells in reader:
                line = reader.line_num
                if not cells:
                    blank = blank or line
                    continue
                if blank is not None:  # at the end of a file they mean nothing; here a row may be missing its value
                    raise FileFormatError(path, blank, "is blank, and rows follow; fill it in or take it out")
                if len(cells) != len(header):
                    raise FileFormatError(path, line, f"has {len(cells)} cells, and the first line {len(header)}")
                row = Row(zip(header, cells, strict=True))
                row.place = f"{path}:{line}"
                rows.append(row)
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(path, None, "is not a UTF-8 text file") from None
    except csv.Error as error:
        raise FileFormatError(path, reader.line_num, f"is not valid CSV: {error}") from None
    return rows


def _check_header(path: object, header: list[str], needed: Iterable[str]) -> None:
    if not header:
        raise FileFormatError(path, 1, "is empty; the first line names the columns, separated by commas")
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise FileFormatError(path, 1, f"names the column {twice!r} twice; names must differ")
    for column in needed:
        if column not in header:
            hint = (
                "; columns are separated by commas"
                if len(header) == 1 and (";" in header[0] or "\t" in header[0])
                else ""
            )
            raise FileFormatError(
                path, 1, f"there is no column {column!r}; there are {', '.join(map(repr, header))}{hint}"
            )


def _parquet_rows(path: str | os.PathLike[str], needed: Iterable[str]) -> list[Row]:
    """The rows of a Parquet file: only the columns that are needed are read, and all if none is named."""
    names = parquet_columns(path)
    wanted = list(dict.fromkeys(needed)) or names
    _check_header(path, names, wanted)
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(path, columns=wanted)
    except (ArrowException, OSError) as error:
        raise FileFormatError(path, None, f"cannot be read as Parquet: {_first_line(error)}") from None
    rows: list[Row] = []
    for number_, cells in enumerate(table.to_pylist(), start=1):
        row = Row(cells)
        row.place = f"{path}: row {number_}"
        rows.append(row)
    return rows


def parquet_columns(path: str | os.PathLike[str]) -> list[str]:
    """The names of the columns of a Parquet file; no row is read."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingDependency("pyarrow", f"reading {path}", "parquet") from None
    try:
        return [str(name).strip() for name in parquet.read_schema(path).names]
    except FileNotFoundError:
        raise FileFormatError(path, None, "cannot be read: No such file or directory") from None
    except (ArrowException, OSError) as error:
        raise FileFormatError(path, None, f"cannot be read as Parquet: {_first_line(error)}") from None


def csv_columns(path: str | os.PathLike[str]) -> list[str]:
    """The names of the columns of a CSV file; no line but the first is read."""
    try:
        with Path(path).open("rb") as file:
            first = file.readline().decode("utf-8-sig")
        header = [name.strip() for name in next(csv.reader([first], strict=True), [])]
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(path, None, "is not a UTF-8 text file") from None
    except csv.Error as error:
        raise FileFormatError(path, 1, f"is not valid CSV: {error}") from None
    _check_header(path, header, ())
    return header


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a file is called as Parquet files are."""
    return Path(path).suffix.lower() in PARQUET


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


__all__ = ["Row", "csv_columns", "is_parquet", "number", "parquet_columns", "read_rows"]
