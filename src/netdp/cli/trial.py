"""What `netdp simulate` does: find the values, run, look back."""

from __future__ import annotations

import csv
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import FileFormatError, InvalidValue
from netdp.learn.tables import LABELS, DataTable, read_table, unit_rows
from netdp.learn.tables import table as named_table
from netdp.numerics.arrays import FloatArray
from netdp.protocols.base import Protocol
from netdp.protocols.simulation import collectors
from netdp.report.outcome import Outcome, TrainingOutcome, learn_and_account, run_and_account, shuffle_and_account
from netdp.settings.models import RecordSettings, RunSettings, found

#: Rows and features of a table that is drawn for a try.
_ROWS, _FEATURES = 20_000, 5


def run_trial(settings: RunSettings) -> Outcome | TrainingOutcome:
    """One run with the settings of the command line."""
    protocol = settings.made()
    seed = secrets.randbits(63) if settings.seed is None else settings.seed
    if seed < 0:
        raise InvalidValue(f"seed must be a whole number ≥ 0, got {seed}; the same seed gives the same run")
    observers = settings.observers(protocol)
    bounds = settings.bounds
    if hasattr(protocol, "clip"):  # it learns a model
        table, source = _table(settings, seed)
        if hasattr(protocol, "dimension") and "dimension" not in settings.model_fields_set:
            protocol = protocol.replace(dimension=table.X.shape[1])
        return learn_and_account(protocol, table, seed, observers, settings.delta, source)
    domain = getattr(protocol, "domain", None)
    if domain is not None:
        values, source = _labels(settings, protocol.n, domain, seed)
        return run_and_account(protocol, values, seed, bounds, None, observers, settings.delta, source)
    if (domain := getattr(protocol, "values", None)) is not None:  # reports of randomized response
        if bounds is not None:
            raise InvalidValue(
                f"--bounds is about numbers; with --domain {domain} values are labels, leave one of the two out"
            )
        values, source = _labels(settings, protocol.n, domain, seed)
        return shuffle_and_account(protocol, values, seed, None, observers, settings.delta, source)
    if collectors.handles(protocol) or settings.uniform:
        bounds = bounds or _usual_bounds(protocol, settings)
    values, source = _values(settings, protocol.n, bounds, seed)
    if collectors.handles(protocol):
        assert bounds is not None
        return shuffle_and_account(protocol, values, seed, bounds, observers, settings.delta, source)
    record = settings.record if isinstance(settings, RecordSettings) else None
    recorded = None if record is None else found(protocol, record)
    return run_and_account(protocol, values, seed, bounds, recorded, observers, settings.delta, source)


def _usual_bounds(protocol: Protocol, settings: RunSettings) -> tuple[float, float]:
    if not settings.uniform:
        raise InvalidValue("reports are randomized for a public interval of values; give --bounds lo,hi")
    return 0.0, float(getattr(protocol, "sensitivity", 1.0))


def _values(settings: RunSettings, n: int, bounds: Any, seed: int) -> tuple[FloatArray, str]:
    if settings.values is not None:
        return read_values(Path(settings.values), settings.column), settings.values
    low, high = bounds
    drawn = np.random.default_rng([seed, 1]).uniform(low, high, n)
    return drawn, f"drawn uniformly from {low:g} to {high:g}"


def _table(settings: RunSettings, seed: int) -> tuple[DataTable, str]:
    """Rows and labels to learn from: a named table, a CSV file whose --column is the label, or rows drawn for a try."""
    for name in ("bounds", "record"):
        if name in settings.model_fields_set:
            raise InvalidValue(
                f"--{name} is about values; {settings.protocol} learns from rows of a table, leave it out"
            )
    if settings.values is None:
        rng = np.random.default_rng([seed, 1])
        X, direction = rng.standard_normal((_ROWS, _FEATURES)), rng.standard_normal(_FEATURES)
        y = np.where(X @ direction + rng.standard_normal(_ROWS) > 0, 1.0, -1.0)
        return DataTable(
            unit_rows(X), y, tuple(f"x{i}" for i in range(_FEATURES))
        ), f"{_ROWS:,} drawn at random, for a try"
    if settings.values in LABELS:
        return named_table(settings.values, settings.column), f"the table {settings.values}"
    if settings.column is None:
        raise InvalidValue("which column is the label? give --column NAME")
    return read_table(Path(settings.values), settings.column), settings.values


def _labels(settings: RunSettings, n: int, domain: int, seed: int) -> tuple[npt.NDArray[Any], str]:
    """Labels 0 … domain − 1 of a histogram."""
    if settings.values is None:
        return np.random.default_rng([seed, 1]).integers(0, domain, n), f"drawn uniformly from 0 to {domain - 1}"
    numbers = read_values(Path(settings.values), settings.column)
    labels = numbers.astype(np.int64)
    if not np.array_equal(labels, numbers):
        wrong = numbers[labels != numbers][0]
        raise InvalidValue(f"a histogram takes labels 0 … {domain - 1}, got {wrong!r} in {settings.values}")
    return labels, settings.values


def read_values(path: Path, column: str | None = None) -> FloatArray:
    """The numbers of one column of a CSV file, or of a file with one number per line; a header is skipped if it is text."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), start=1) if any(map(str.strip, row))]
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise FileFormatError(path, None, "is not a UTF-8 text file with one number per line, or a CSV file") from None
    if not rows:
        raise FileFormatError(path, None, "is empty; one number per party is needed")
    header = [name.strip() for name in rows[0][1]]
    if column is not None:
        if column not in header:
            raise FileFormatError(path, 1, f"no column {column!r}; the columns are {', '.join(map(repr, header))}")
        place, rows = header.index(column), rows[1:]
    elif len(header) > 1:
        raise FileFormatError(path, 1, f"has {len(header)} columns; say which one: --column {header[-1]}")
    else:
        place, rows = 0, rows if _is_number(header[0]) else rows[1:]
    numbers = []
    for line, row in rows:
        if len(row) <= place or not _is_number(row[place]):
            text = row[place] if len(row) > place else ""
            raise FileFormatError(path, line, f"expected a number, got {text!r}")
        numbers.append(float(row[place]))
    return np.array(numbers)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
