"""What `netdp simulate` does: find the values, run, look back."""

from __future__ import annotations

import csv
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from netdp.errors import FileFormatError, InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.protocols import Protocol, Shuffle
from netdp.report.outcome import Outcome, run_and_account, shuffle_and_account

from .settings import Recording, Running, found


def run_trial(settings: Running) -> Outcome:
    """One run with the settings of the command line."""
    protocol = settings.made()
    seed = secrets.randbits(63) if settings.seed is None else settings.seed
    if seed < 0:
        raise InvalidValue(f"seed must be a whole number ≥ 0, got {seed}; the same seed gives the same run")
    observers = settings.observers(protocol)
    bounds = settings.bounds
    if isinstance(protocol, Shuffle) or settings.uniform:
        bounds = bounds or _usual_bounds(protocol, settings)
    values, source = _values(settings, protocol.n, bounds, seed)
    if isinstance(protocol, Shuffle):
        assert bounds is not None
        return shuffle_and_account(protocol, values, seed, bounds, observers, settings.delta, source)
    record = settings.record if isinstance(settings, Recording) else None
    recorded = None if record is None else found(protocol, record)
    return run_and_account(protocol, values, seed, bounds, recorded, observers, settings.delta, source)


def _usual_bounds(protocol: Protocol, settings: Running) -> tuple[float, float]:
    if not settings.uniform:
        raise InvalidValue("reports are randomized for a public interval of values; give --bounds lo,hi")
    return 0.0, float(getattr(protocol, "sensitivity", 1.0))


def _values(settings: Running, n: int, bounds: Any, seed: int) -> tuple[FloatArray, str]:
    if settings.values is not None:
        return read_values(Path(settings.values), settings.column), settings.values
    low, high = bounds
    drawn = np.random.default_rng([seed, 1]).uniform(low, high, n)
    return drawn, f"drawn uniformly from {low:g} to {high:g}"


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
