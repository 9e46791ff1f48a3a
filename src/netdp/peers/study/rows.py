"""Rows of a table: read from CSV files, every mistake named with file and line."""

from __future__ import annotations

import contextlib
import csv
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from netdp.errors import FileFormatError, InvalidValue


class Row(dict[str, str]):
    """A row of a file that knows its place, "file.csv:12"."""

    place: str


def read_rows(path: str | os.PathLike[str], needed: Iterable[str] = ()) -> list[Row]:
    """The rows of a CSV file: UTF-8, commas, names in the first line. Errors name file and line."""
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


def number(cell: Any, column: str, place: str) -> float:
    """The number in a cell, or a refusal; "nan", "inf" and "1_000" are none."""
    found = math.nan
    if isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool):
        with contextlib.suppress(OverflowError):
            found = float(cell)
    elif isinstance(cell, str) and "_" not in cell:
        try:
            found = float(cell)
        except ValueError:
            found = math.nan
    if not math.isfinite(found):
        raise InvalidValue(
            f"{place}: column {column!r} holds {cell!r}, which is not a finite number; write it like 3.5"
        )
    return found
