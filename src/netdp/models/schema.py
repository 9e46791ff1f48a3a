"""Rows of a table as a model sees them: every column has a public range, and every cell becomes a number of moderate size.

    a number in [lo, hi]      z = (x − (lo + hi)/2)/((hi − lo)/2), clipped to [−1, 1]
      with centre and scale   (x − centre)/scale, x clipped to [lo, hi]
    one of two values         −1 or 1
    one of k > 2 values       k numbers, 1 for the value that it is and 0 for the others

What a row becomes depends on that row and the schema alone, and the schema is public: agreed upon before anybody looks at rows.
Means and deviations of the rows are answers about them: as `centre` and `scale` they may stand here if they are known from
elsewhere, or if they were paid for (a study with the task "scaling"). A cell that does not fit is an error that names its row
and column.

Here is also what each party adds to the noisy sum of (z, z² − 1) that such a study makes, and what mean and spread follow from it:
docs/proofs/learning.md#private-standardisation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray

_LARGEST = 1e60

_LARGEST_SCALED = 1e6

MISSING = ("refuse", "skip")


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, and its public range (lo, hi) or the values that there are.

    centre, scale : of a number: what becomes 0, and how far from it becomes 1; public. By default the middle and half the width
        of the range.

    >>> Column("age", range=(20, 60)).width, Column("sex", values=("f", "m")).width, Column("ward", values=tuple("abc")).width
    (1, 1, 3)
    """

    name: str
    range: tuple[float, float] | None = None
    values: tuple[str, ...] | None = None
    centre: float | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.strip():
            raise InvalidValue(f"a column needs a name without blanks around it, got {self.name!r}")
        if (self.range is None) == (self.values is None):
            raise InvalidValue(
                f"column {self.name!r} needs its public range, [lowest, highest], or the values there are, "
                '["a", "b"]: one of them'
            )
        if self.range is not None:
            lo, hi = map(float, self.range)
            if not lo < hi:
                raise InvalidValue(f"the range of column {self.name!r} must rise, such as 0, 100; got {lo:g}, {hi:g}")
            if max(abs(lo), abs(hi)) > _LARGEST or (hi - lo) / 2 < 1 / _LARGEST:
                wrong = "too wide" if max(abs(lo), abs(hi)) > _LARGEST else "too narrow"
                raise InvalidValue(
                    f"the range of column {self.name!r}, {lo:g} to {hi:g}, is {wrong} to compute with: its ends must lie within "
                    f"±{_LARGEST:g} and {2 / _LARGEST:g} or more apart. Write where its values are known to lie, such as 0, 100; "
                    "what is outside is clipped"
                )
            object.__setattr__(self, "range", (lo + 0.0, hi + 0.0))
        if self.values is not None:
            _check_values(self.name, self.values)
        if self.centre is not None or self.scale is not None:
            self._check_scaling()

    def _check_scaling(self) -> None:
        if self.range is None:
            raise InvalidValue(f"centre and scale are of numbers; column {self.name!r} has values, leave them out")
        if self.centre is None or self.scale is None:
            raise InvalidValue(f"column {self.name!r} needs both centre and scale, or neither")
        (lo, hi), centre, scale = self.range, float(self.centre), float(self.scale)
        if not lo <= centre <= hi:
            raise InvalidValue(
                f"the centre of column {self.name!r} must be a number in its range, {lo:g} to {hi:g}; got {centre:g}"
            )
        if not (hi - lo) / _LARGEST_SCALED <= scale <= _LARGEST:
            raise InvalidValue(
                f"the scale of column {self.name!r} must be larger than 0, and a millionth of its range's width at least; "
                f"got {scale:g}"
            )
        object.__setattr__(self, "centre", centre + 0.0)
        object.__setattr__(self, "scale", scale)

    @property
    def is_centred(self) -> bool:
        """Whether it has a centre and a scale of its own."""
        return self.centre is not None

    @property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return 1 if self.values is None or len(self.values) == 2 else len(self.values)

    @property
    def words(self) -> str:
        """The column in words.

        >>> Column("age", range=(20, 60)).words, Column("sex", values=("f", "m")).words
        ('age (20 to 60)', 'sex (f, m)')
        >>> Column("age", range=(20, 60), centre=45, scale=8).words
        'age (20 to 60, scaled as 45 ± 8)'
        """
        if self.range is not None:
            about = "" if self.centre is None else f", scaled as {self.centre:.15g} ± {self.scale:.6g}"
            return f"{self.name} ({self.range[0]:g} to {self.range[1]:g}{about})"
        shown = (self.values or ())[:6]
        more = f", … {len(self.values or ())} values" if len(shown) < len(self.values or ()) else ""
        return f"{self.name} ({', '.join(shown)}{more})"

    def encoded(self, cells: Sequence[Any], places: Sequence[str]) -> FloatArray:
        """Cells as numbers, (rows, width)."""
        if self.range is not None:
            return self._scaled(cells, places)[:, None]
        which = self.numbers(cells, places)
        if self.width == 1:
            return (2.0 * which - 1.0)[:, None]
        out = np.zeros((len(cells), self.width))
        out[np.arange(len(cells)), which.astype(np.int64)] = 1.0
        return out

    def numbers(self, cells: Sequence[Any], places: Sequence[str]) -> FloatArray:
        """Of every cell the number of its value, 0 … k − 1; or where it lies in the range, −1 to 1 if it has no other scale."""
        if self.range is not None:
            return self._scaled(cells, places)
        numbers = [self._place.get(cell.strip() if isinstance(cell, str) else text_of(cell), -1) for cell in cells]
        for i in [i for i, one in enumerate(numbers) if one < 0]:
            numbers[i] = self._same_number(cells[i])
            if numbers[i] < 0:
                raise InvalidValue(
                    f"{places[i]}: column {self.name!r} holds {text_of(cells[i])!r}, which is none of "
                    f"{_listed(self.values or ())}; correct it, take the row out, or have the schema list it"
                )
        return np.array(numbers, dtype=np.float64)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {value: i for i, value in enumerate(self.values or ())}

    def _same_number(self, cell: Any) -> int:
        """Which value is the same number, written otherwise: 1.0 for 1; −1 if none is."""
        try:
            wanted, known = float(text_of(cell)), [float(value) for value in self.values or ()]
        except ValueError:
            return -1
        return known.index(wanted) if wanted in known else -1

    def _scaled(self, cells: Sequence[Any], places: Sequence[str]) -> FloatArray:
        assert self.range is not None
        lo, hi = self.range
        x = np.array(
            [number(cell, self.name, place) for cell, place in zip(cells, places, strict=True)], dtype=np.float64
        )
        scaled: FloatArray
        if self.centre is not None and self.scale is not None:
            scaled = (np.clip(x, lo, hi) - self.centre) / self.scale
            return scaled
        middle, half = (lo + hi) / 2, (hi - lo) / 2
        scaled = np.clip((np.clip(x, lo, hi) - middle) / half, -1.0, 1.0)
        return scaled

    def original(self, scaled: FloatArray) -> FloatArray:
        """Numbers from −1 to 1 back in the column's own units.

        >>> Column("age", range=(20, 60)).original(np.array([-1.0, 0.0, 1.0])).tolist()
        [20.0, 40.0, 60.0]
        """
        assert self.range is not None
        lo, hi = self.range
        back: FloatArray = (lo + hi) / 2 + (hi - lo) / 2 * scaled
        return back


def _check_values(name: str, values: Sequence[str]) -> None:
    if len(values) < 2 or len(set(values)) < len(values):
        raise InvalidValue(f"column {name!r} needs two or more different values, got {_listed(values)}")
    for value in values:
        if not isinstance(value, str) or not value or value != value.strip():
            raise InvalidValue(f"the values of column {name!r} are texts without blanks around them, got {value!r}")


@dataclass(frozen=True)
class Schema:
    """The columns that a model reads, and the one that it predicts.

    >>> schema = Schema((Column("age", range=(20, 60)), Column("sex", values=("f", "m"))), Column("ill", values=("no", "yes")))
    >>> X, y = schema.encoded([{"age": "50", "sex": "m", "ill": "yes"}, {"age": 20, "sex": "f", "ill": "no"}])
    >>> X.tolist(), y.tolist()
    ([[0.5, 1.0], [-1.0, -1.0]], [1.0, 0.0])
    """

    features: tuple[Column, ...]
    label: Column

    def __post_init__(self) -> None:
        names = [column.name for column in (*self.features, self.label)]
        if not self.features:
            raise InvalidValue("a schema needs at least one column to predict from")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidValue(f"column {twice!r} stands twice in the schema; every column has one part in it")
        if self.label.is_centred:
            raise InvalidValue(
                f"the label {self.label.name!r} has a centre and a scale; what is predicted keeps its range, leave them out"
            )

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of all columns, the label's last."""
        return (*(column.name for column in self.features), self.label.name)

    @property
    def width(self) -> int:
        """How many numbers a model reads of a row."""
        return sum(column.width for column in self.features)

    @property
    def classes(self) -> int | None:
        """How many classes there are; None where the label is a number."""
        return None if self.label.values is None else len(self.label.values)

    @property
    def names(self) -> tuple[str, ...]:
        """What each number of a row stands for.

        >>> Schema((Column("ward", values=tuple("abc")),), Column("ill", values=("no", "yes"))).names
        ('ward=a', 'ward=b', 'ward=c')
        """
        out: list[str] = []
        for column in self.features:
            out += [column.name] if column.width == 1 else [f"{column.name}={value}" for value in column.values or ()]
        return tuple(out)

    def encoded(self, rows: Sequence[Mapping[str, Any]], missing: str = "refuse") -> tuple[FloatArray, FloatArray]:
        """Rows as numbers: X (rows, width), and the label: the number of its class, or a number from −1 to 1.

        missing : "refuse" empty cells, or "skip" their rows.
        """
        kept, places = complete_rows(rows, self.needed, missing)
        y = self.label.numbers([row[self.label.name] for row in kept], places)
        return self._features(kept, places), y

    def features_of(self, rows: Sequence[Mapping[str, Any]]) -> FloatArray:
        """Rows whose label is not known, as numbers (rows, width)."""
        return self._features(*complete_rows(rows, self.needed[:-1], "refuse"))

    def _features(self, rows: Sequence[Mapping[str, Any]], places: Sequence[str]) -> FloatArray:
        parts = [column.encoded([row[column.name] for row in rows], places) for column in self.features]
        return np.ascontiguousarray(np.hstack(parts))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""

        def plain(column: Column) -> dict[str, Any]:
            said = {"range": list(column.range)} if column.range is not None else {"values": list(column.values or ())}
            scaling = {"centre": column.centre, "scale": column.scale} if column.is_centred else {}
            return {"name": column.name, **said, **scaling}

        return {"features": [plain(column) for column in self.features], "label": plain(self.label)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` has written."""

        def column(said: Mapping[str, Any]) -> Column:
            span, values, centre, scale = (said.get(key) for key in ("range", "values", "centre", "scale"))
            return Column(
                str(said["name"]),
                range=None if span is None else (float(span[0]), float(span[1])),
                values=None if values is None else tuple(map(str, values)),
                centre=None if centre is None else float(centre),
                scale=None if scale is None else float(scale),
            )

        return cls(tuple(column(one) for one in fields["features"]), column(fields["label"]))


def complete_rows(
    rows: Iterable[Mapping[str, Any]], needed: Sequence[str], missing: str
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The rows with a cell in every needed column, and where they stand; empty cells are refused, or their rows skipped."""
    if missing not in MISSING:
        raise InvalidValue(f"missing must be one of {', '.join(MISSING)}, got {missing!r}")
    kept: list[Mapping[str, Any]] = []
    places: list[str] = []
    for which, row in enumerate(rows, start=1):
        place = getattr(row, "place", f"row {which}")
        lacking = None
        for name in needed:
            if name not in row:
                raise InvalidValue(f"{place}: there is no column {name!r}; there are {_listed(tuple(row))}")
            if _is_empty(row[name]):
                lacking = name
                break
        if lacking is None:
            kept.append(row)
            places.append(place)
        elif missing == "refuse":
            raise InvalidValue(
                f'{place}: column {lacking!r} is empty; fill it in, take the row out, or have the schema say missing = "skip"'
            )
    return kept, places


def _is_empty(cell: Any) -> bool:
    if isinstance(cell, str):
        return not cell.strip()
    return cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell))


def text_of(cell: Any) -> str:
    """What a cell says, as text: whole numbers without a point, true and false in small letters.

    >>> text_of(3.0), text_of(np.int64(3)), text_of(True), text_of(" f "), text_of(0.5)
    ('3', '3', 'true', 'f', '0.5')
    """
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, float | np.floating):
        return str(int(cell)) if math.isfinite(cell) and cell == int(cell) else repr(float(cell))
    return str(cell).strip()


def number(cell: Any, column: str, place: str) -> float:
    """The number in a cell, or a refusal; "nan", "inf" and "1_000" are none."""
    value = math.nan
    try:
        if isinstance(cell, str):
            value = float(cell) if "_" not in cell else math.nan
        elif isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool):
            value = float(cell)
    except (ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise InvalidValue(
            f"{place}: column {column!r} holds {cell!r}, which is not a finite number; write it like 3.5"
        )
    return value


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, values[:8]))
    return f"{shown} and {len(values) - 8} more" if len(values) > 8 else shown


_USUAL_MEAN = 0.25  # squared distance of a feature's mean from the middle of its range

_LEAST_VARIANCE = 1e-4


def moment_count(features: int, unit: str) -> int:
    """How many numbers are added for so many features."""
    return 2 * features + (unit == "record")


def moment_length(features: int, unit: str) -> float:
    """How far, in L2 norm, what is protected moves the sum: a party's mean replaced, or a record added or removed.

    >>> round(moment_length(4, "party") ** 2, 6), round(moment_length(4, "record") ** 2, 6)
    (16.0, 5.0)
    """
    return math.sqrt(features + 1.0 if unit == "record" else 4.0 * features) * (1 + 1e-12)


def moments(z: FloatArray, unit: str) -> FloatArray:
    """What a party adds, from its rows z (rows, f) in [−1, 1]: a vector per record (rows, 2f + 1), or its one vector (1, 2f).

    >>> moments(np.array([[1.0], [0.0]]), "record").tolist(), moments(np.array([[1.0], [0.0]]), "party").tolist()
    ([[1.0, 0.0, 1.0], [0.0, -1.0, 1.0]], [[0.5, -0.5]])
    """
    inside = np.clip(z, -1.0, 1.0)
    squares = inside**2 - 1.0
    if unit == "record":
        return np.hstack([inside, squares, np.ones((len(inside), 1))])
    if not len(inside):  # as if all were in the middle
        return np.hstack([np.zeros((1, z.shape[1])), -np.ones((1, z.shape[1]))])
    mean = np.clip(inside.mean(axis=0), -1.0, 1.0)
    return np.concatenate([mean, np.clip(squares.mean(axis=0), mean**2 - 1.0, 0.0)])[None, :]


def noisy_means(sums: FloatArray, unit: str, parties: int, noise: float) -> tuple[FloatArray, float]:
    """Means of (z, z² − 1) over parties or records, read off their sum, and τ; `noise` is the deviation of one number of the sum.

    Of records the number is noisy too; a mean near ±1 is then off by up to √2 of what is stated.

    >>> noisy_means(np.array([30.0, -10.0, 100.0]), "record", parties=5, noise=2.0)
    (array([ 0.3, -0.1]), 0.02)
    """
    if unit == "record":
        number = max(float(sums[-1]), noise, 1.0)
        return np.asarray(sums[:-1] / number), noise / number
    return np.asarray(sums / parties), noise / parties


def mean_and_deviation(means: FloatArray, noise: float) -> tuple[FloatArray, FloatArray]:
    """m and s of every feature, from noisy means and τ: docs/proofs/learning.md#private-standardisation.

    >>> [found.round(3).tolist() for found in mean_and_deviation(np.array([0.6, 0.0, -0.54, -1.0]), 0.0)]
    [[0.6, 0.0], [0.316, 0.01]]
    """
    features = len(means) // 2
    mean = np.clip(means[:features], -1.0, 1.0) * _USUAL_MEAN / (_USUAL_MEAN + noise**2)
    variance = np.clip(means[features:] + 1.0 - mean**2, min(max(noise, _LEAST_VARIANCE), 1.0), 1.0)
    return mean, np.sqrt(variance)
