"""What is asked before training: where the numbers of each column lie, and how far they spread, within the budget.

A model that reads numbers by their public ranges alone sees little of a column that fills a small part of its range: rows are
scaled to norm 1, so what is large by its range drowns the rest. A study with the task "scaling" is a masked sum like any other:
every party adds the vectors of `netdp.models.schema` (z and z² − 1 of every column, z the number brought from its range to
[−1, 1]), so accounting, policy, ledger and crashes are those of masked sums. Its answer is a centre and a scale for every column,
post-processing of the noisy total: public numbers that a schema may hold (`netdp.models.schema`). The training that follows is a
study of its own, and both are added up in every party's ledger: docs/proofs/learning.md#scaling-on-peers.

`Scaled` is what a training says of the study that its centres and scales come from: enough to compute what that has cost.
Centres are given to six digits of half the range's width, wherever it lies, and scales with six digits, so that people can read
them; all parties read the same file, so the same bits.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from netdp.errors import InvalidValue, NetdpError
from netdp.mechanisms.noisy_sums import Release
from netdp.models.schema import (
    Column,
    complete_rows,
    mean_and_deviation,
    moment_count,
    moment_length,
    moments,
    noisy_means,
)
from netdp.numerics.arrays import FloatArray
from netdp.peers.records import Misfit, Number, Strict, Whole
from netdp.privacy.curve import Curve
from netdp.protocols.family import family_of_kind

from ..ledger.losses import seen, together
from .rows import read_rows
from .sections import MOST_ATTEMPTS
from .task import Question

_MOST_RECORDS = 10**9
_MOST_NUMBERS = 200_000_000
_MOST_PARTIES = 10_000
_SHOWN = 12
POOR = 0.2
"""Noise in a mean, where numbers reach from −1 to 1, beyond which little is known of where they lie."""


class Ranged(Strict):
    """A column of numbers, and its public range."""

    name: str
    range: tuple[Number, Number]

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            self.column  # noqa: B018  refuses what makes no sense
        except InvalidValue as problem:
            raise Misfit((), str(problem)) from None
        return self

    @cached_property
    def column(self) -> Column:
        """The same for a schema."""
        return Column(self.name, self.range)


class ScalingTask(Question):
    """Centre and scale of several columns of numbers, for a training that follows.

    features : the columns: {name, range = [lo, hi]}; numbers outside are clipped.
    unit : "record" protects one row of a party, "party" all its data together; as the training will.
    max_records : how many rows a party may have; public. Needed for unit "record".
    missing : "refuse" empty cells, or "skip" their rows.

    >>> task = ScalingTask(features=[{"name": "age", "range": [20, 60]}], max_records=100)
    >>> task.rows([{"age": "50"}, {"age": 20}]).tolist()
    [[0.5, -0.75, 1.0], [-1.0, 0.0, 1.0]]
    >>> task.answer([-250.0, -600.0, 1000.0], parties=5)["features"]
    [{'name': 'age', 'range': [20.0, 60.0], 'centre': 35.0, 'scale': 11.619}]
    """

    kind: Literal["scaling"] = "scaling"
    features: tuple[Ranged, ...]
    unit: Literal["party", "record"] = "record"
    max_records: Whole | None = None
    missing: Literal["refuse", "skip"] = "refuse"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [one.name for one in self.features]
        if not names:
            raise Misfit(("features",), "needs one column of numbers at least: words have no centre")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise Misfit(("features",), f"column {twice!r} stands there twice")
        if self.unit == "record" and self.max_records is None:
            raise Misfit(
                ("max_records",),
                "to protect records, say how many a party may have: it is public and sizes the numbers' range, not the noise",
            )
        if self.max_records is not None and not 1 <= self.max_records <= _MOST_RECORDS:
            raise Misfit(("max_records",), f"must be 1 to {_MOST_RECORDS:,}, got {self.max_records:,}")
        return self

    # ── what it is ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(one.name for one in self.features)

    @property
    def bounds(self) -> None:
        """There is no single range of an answer."""
        return

    @property
    def dimension(self) -> int:
        """How many numbers are added: two a column, and one that counts records."""
        return moment_count(len(self.features), self.unit)

    @property
    def sensitivity(self) -> float:
        """How far what is protected can move the sum (`netdp.models.schema`)."""
        return moment_length(len(self.features), self.unit)

    def describe(self) -> str:
        """What is asked, in words.

        >>> ScalingTask(features=[{"name": "age", "range": [20, 60]}], max_records=9).describe()
        'centre and scale of 1 column, age (20 to 60), over all records, for a training that follows'
        """
        count, over = len(self.features), "all records" if self.unit == "record" else "the parties' means"
        shown = ", ".join(one.column.words for one in self.features[:_SHOWN]) + ", …" * (count > _SHOWN)
        return (
            f"centre and scale of {count} column{'s' * (count > 1)}, {shown}, over {over}, for a training that follows"
        )

    # ── from rows to numbers, and from totals to the answer ───────────────────────────────────────────────────────────

    def rows(self, source: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> FloatArray:
        """What a party adds: (records, 2f + 1), or (1, 2f) for unit party. From a CSV or Parquet file, or from rows."""
        given: Sequence[Mapping[str, Any]]
        given = read_rows(source, self.needed) if isinstance(source, str | os.PathLike) else list(source)
        if len(given) * self.dimension > _MOST_NUMBERS:
            raise InvalidValue(
                f"{len(given):,} rows of {self.dimension:,} numbers are more than {_MOST_NUMBERS:,}; use fewer rows"
            )
        kept, places = complete_rows(given, self.needed, self.missing)
        if self.max_records is not None and len(kept) > self.max_records:
            raise InvalidValue(
                f"this party has {len(kept):,} rows and the study allows at most max_records = {self.max_records:,}; choose which "
                "to use before the study, or ask for a study that allows more"
            )
        if not kept and self.unit == "party":
            raise InvalidValue("this party has no rows, so there is no mean of them; it cannot take part")
        z = np.column_stack(
            [one.column.numbers([row[one.name] for row in kept], places) for one in self.features]
        ).reshape(len(kept), len(self.features))
        return moments(z, self.unit)

    def answer(self, total: Sequence[float] | FloatArray, parties: int, noise: float = 0.0) -> dict[str, Any]:
        """Centre and scale of every column, in its own units, as plain values.

        noise : the standard deviation of the noise in one coordinate of the total.
        """
        t = np.asarray(total, dtype=np.float64)
        if t.shape != (self.dimension,) or not np.isfinite(t).all():
            raise InvalidValue(f"the total must be {self.dimension} finite numbers, got {total!r}")
        means, moved = noisy_means(t, self.unit, parties, noise)
        mean, deviation = mean_and_deviation(means, moved)
        out: dict[str, Any] = {"kind": "scaling", "unit": self.unit, "parties": parties, "noise": moved}
        if self.unit == "record":
            out["records"] = float(t[-1])
        return out | {
            "features": [
                {"name": one.name, "range": list(one.range), **_own_units(one.range, m, s)}
                for one, m, s in zip(self.features, mean.tolist(), deviation.tolist(), strict=True)
            ]
        }


def _own_units(span: tuple[float, float], mean: float, deviation: float) -> dict[str, float]:
    """Mean and deviation of z as centre and scale.

    >>> _own_units((1e9, 1e9 + 100), 0.123456789, 0.25)
    {'centre': 1000000056.1728, 'scale': 12.5}
    """
    lo, hi = span
    middle, half = (lo + hi) / 2, (hi - lo) / 2
    centre = min(max(round(middle + half * mean, 5 - math.floor(math.log10(half))), lo), hi)
    return {"centre": centre, "scale": float(f"{half * deviation:.6g}")}


class Scaled(Strict):
    """Where the centres and scales of a training come from: a study with the task "scaling", and what it ran.

    study : its hash. unit, parties, sigma, grid, attempts, absent : as it states them; what it cost follows from these.

    >>> paid = Scaled(study="0" * 64, unit="record", parties=5, sigma=20.0, grid=0.0009765625)
    >>> round(float(paid.curve(features=3, colluders=1).epsilon(1e-6)), 3)
    0.189
    """

    study: str
    unit: Literal["party", "record"]
    parties: Whole
    sigma: Number
    grid: Number
    attempts: Whole = 1
    absent: Whole = 0

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not re.fullmatch("[0-9a-f]{64}", self.study):
            raise Misfit(("study",), f"must be the hash of a study, 64 hexadecimal digits; got {self.study!r}")
        if not 2 <= self.parties <= _MOST_PARTIES:
            raise Misfit(("parties",), f"a study has 2 to {_MOST_PARTIES:,} parties, got {self.parties}")
        if self.attempts > MOST_ATTEMPTS:
            raise Misfit(("attempts",), f"a study has at most {MOST_ATTEMPTS:,}, got {self.attempts:,}")
        if not 0 <= self.absent <= self.parties - 2 or self.attempts < 1:
            raise Misfit(("absent",), f"absent = {self.absent} and attempts = {self.attempts} are those of no study")
        try:
            self.loss(1)
        except NetdpError as problem:
            raise Misfit(("sigma",), str(problem)) from None
        return self

    def loss(self, features: int) -> dict[str, Any]:
        """What an entry keeps of one attempt of it, for so many columns."""
        stated = family_of_kind("masked-sum").named("peer:stated_loss")
        found: dict[str, Any] = stated(
            self.parties, sigma=self.sigma, grid=self.grid, unit=self.unit, dimension=moment_count(features, self.unit),
            sensitivity=moment_length(features, self.unit),
        )  # fmt: skip
        return found

    def releases(self, features: int, colluders: int) -> list[Release | Curve]:
        """What any so many parties saw of it, at most: every attempt, with as few parties as it allows."""
        names = [str(u) for u in range(self.parties)]
        return [seen(self.loss(features), names[: self.parties - self.absent], names[0], colluders)] * self.attempts

    def curve(self, features: int, colluders: int) -> Curve:
        """The loss of that study to any so many parties together."""
        return together(self.releases(features, colluders))
