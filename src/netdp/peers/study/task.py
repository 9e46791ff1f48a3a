"""What is asked: rows of a table become numbers that are added, and totals become the answer.

A number x in [lo, hi] becomes z = (x − mid)/half, clipped to [−1, 1], mid = (lo + hi)/2, half = (hi − lo)/2. A party
adds one vector (unit "party": all its data is protected together; who takes part is public), or one vector per record
(unit "record": how many records it has is private too). Neighbouring inputs: a party's vector is *replaced* by any
other; one record is *added or removed*. Δ is the largest L2 distance that this can move the total:

    unit party    sum, mean          (z)                        Δ = 2     |z − z′| ≤ 2
                  direction          x/‖x‖                      Δ = 2     two vectors of norm 1
                  variance           (z, z²)                    Δ = 2     see below
                  histogram, table   one-hot                    Δ = √2    two places change by 1
    unit record   sum                (x/B), B = max(|lo|, |hi|) Δ = 1     |x| ≤ B
                  mean               (z, 1)                     Δ = √2    z² + 1 ≤ 2
                  variance           (z, z², 1)                 Δ = √3    z² + z⁴ + 1 ≤ 3
                  histogram, table   one-hot                    Δ = 1     one place changes by 1
                  mean, `ends`       (t, 1 − t), t = (z + 1)/2  Δ = 1     t² + (1 − t)² ≤ 1

*The variance of parties.* With d = |z − z′| and s = |z + z′|, the squared distance of (z, z²) and (z′, z′²) is
d² + d²s², and d + s = 2·max(|z|, |z′|) ≤ 2. So it is at most f(s) = (2 − s)²(1 + s²) with f′(s) = −2(2 − s)(2s² − 2s + 1)
≤ 0 on [0, 2], since 2s² − 2s + 1 = 2(s − ½)² + ½: the largest is f(0) = 4, attained by z = 1, z′ = −1. ∎

**Under Laplace noise** Δ is the largest L1 distance instead:

    unit party    sum, mean  2        variance  9/4     histogram, table  2      direction of d numbers  2√d
    unit record   sum        1        mean  2, with `ends` 1     variance  3     histogram, table  1

*The variance of parties.* |z − z′| + |z² − z′²| = d(1 + s) ≤ (2 − s)(1 + s) = 9/4 − (s − ½)², attained by z = 1, z′ = −½. ∎

**A mean from both ends.** With `ends` a record adds (x − lo, hi − x), in units of hi − lo: the two are ≥ 0 and add up to 1, so one
record moves the total by exactly 1 in L1 norm, and by at most 1 in L2 norm, whatever x is. From the noisy totals A and B the number
of records is N = A + B and the mean lo + (hi − lo)·A/N. With noise of variance s² in each, the variance of the mean is to first
order (hi − lo)²·s²·((1 − f)² + f²)/N², f = (mean − lo)/(hi − lo), since ∂(A/N) = ((1 − f)∂A − f∂B)/N: at most (hi − lo)²s²/N².
Under Laplace noise s² = 2/ε²: half of what a centred sum and a count take that share ε equally, for every f (theirs is
2·(hi − lo)²·2·((f − ½)² + ¼)·2/(εN)², and (1 − f)² + f² = 2((f − ½)² + ¼)).

*In floating point.* z and x/B are clipped after they are computed, so |z| ≤ 1 exactly and so is the computed z² ≤ 1;
every bound of a record follows as above. Rounding moves z² by at most 2⁻⁵⁴, which the protocols' margin for vectors
(2·10⁻⁹ relative to Δ: `netdp.families.masked.protocol`) covers many times. √3 is rounded up.

**Values that change over time.** With `periods` a party has one such vector per period (unit "party"), all of them replaced
together: Δ is the distance of each. The answer is about all of them, as if every party were as many parties as there are periods.

A mean or a variance of records is a quotient of noisy totals. Where the noisy number of records is less than four
deviations of its own noise (or less than 1), the quotient says nothing, and none is given.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator, SerializerFunctionWrapHandler, model_serializer, model_validator

from netdp.errors import InvalidValue
from netdp.models.schema import number
from netdp.numerics.arrays import FloatArray
from netdp.peers.records import Misfit, Number, Strict, Switch, Whole
from netdp.peers.study.rows import read_rows

_MOST_CELLS = 1_000_000
_MOST_NUMBERS = 200_000_000
_LABELLED = 10_000
_MOST_PERIODS = 10_000
_LEAST_NUMBER = 1e-290
_MOST_RECORDS = 10**9
_CERTAIN = 4.0  # deviations of its noise that a number of records must exceed
OTHER = "other"


def _nested(given: Any) -> Any:
    flat = isinstance(given, list | tuple) and given and all(isinstance(item, str) for item in given)
    return (tuple(given),) if flat else given


class Inequality(NamedTuple):
    """low ≤ weights·x ≤ high, for the numbers x that one party adds."""

    weights: tuple[float, ...]
    low: float = 0.0
    high: float = math.inf


class Question(Strict):
    """What all tasks of a study have in common (`netdp.peers.study.AnyTask`): what is protected, and for which data."""

    if TYPE_CHECKING:  # every task has these among its fields, in the order in which its file states them
        unit: Literal["party", "record"]
        max_records: int | None

        @property
        def sensitivity(self) -> float:
            """Δ, in L2 norm."""

        @property
        def needed(self) -> tuple[str, ...]:
            """The columns whose cells are added or counted."""

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.needed

    @property
    def values_each(self) -> int:
        """How many values a party adds where all its data are protected together."""
        return 1

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The names of the cells that are counted, one list per column; none where numbers are added."""
        return ()

    @property
    def is_numeric(self) -> bool:
        """Whether numbers are added, rather than counts of cells."""
        return True

    @property
    def reach(self) -> float:
        """The largest magnitude that one coordinate of what a party adds can have; of a training, in units of the clip."""
        return 1.0 if self.unit == "party" else float(self.max_records or 1)

    @property
    def is_never_negative(self) -> bool:
        """Whether no coordinate of what a party adds is below zero."""
        return False

    @property
    def limits(self) -> tuple[Inequality, ...]:
        """What else the numbers of every honest party obey, rounding included; whatever breaks it is no sum of theirs."""
        return ()

    @property
    def protected(self) -> str:
        """What is protected, in words."""
        if self.unit == "party":
            return "all data of a party together, against any other data it might have; who takes part is public"
        return "any one record of a party, added or removed; changing what a record says counts as both; who takes part is public"

    def sensitivity_under(self, law: str) -> float:
        """Δ in the norm that noise of this law needs."""
        if law != "gaussian":
            raise InvalidValue(
                f"this task is accounted for with Gaussian noise, not with {law} noise; leave the law out"
            )
        return self.sensitivity

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the promise rests on besides: nothing, as rows become numbers by rules that stand here."""
        return ()

    @property
    def admitted(self) -> str:
        """For which data the promise is made, in words: neighbouring inputs are both of this kind."""
        fits = f"has at most {self.max_records:,} records, and " if self.max_records is not None else ""
        return (
            f"every party {fits}has rows that the study takes; that a party's data do not fit, so that it cannot take part, "
            "is seen by all and not protected"
        )

    def error(self, noise: float, parties: int, records: int | None = None) -> float | None:
        """The RMSE of the answer for noise of this deviation in the total; None if it depends on the data."""
        return None


class Task(Question):
    """What is computed of which columns, and what is protected.

    kind : sum, mean, variance, histogram, table (counts over several columns), or direction (the mean of vectors over several
        columns, each divided by its length).
    unit : "party" protects all data of a party together, "record" one row of it.
    column, columns : whose cells are read; `columns` for a table or a direction.
    bounds : (lo, hi), for numbers; what lies outside is clipped.
    value : unit party: how its rows become one number: "single" (exactly one row), "mean", "sum" or "count" of rows.
    edges : histogram of numbers: bins [e₀, e₁), …, the last one closed; numbers outside are clipped into the end bins.
    bins : instead of edges: so many equal bins from one of the bounds to the other.
    categories : histogram: the values there are; table: a list of them for every column.
    other : whether values that are not listed are counted in a cell of their own; else they are an error.
    missing : "refuse" empty cells, or "skip" their rows (unit record only).
    max_records : unit record: how many a party may have; public.
    ends : unit record: a mean from Σ(x − lo) and Σ(hi − x), which one record moves by hi − lo together.
    period, periods : unit party: values that change over time: the column that says of which period a row is, and the periods, in
        their order. A party adds one value in each.

    >>> task = Task(kind="mean", column="minutes", bounds=(0, 120))
    >>> task.rows([{"minutes": "90"}]), task.sensitivity
    (array([[0.5]]), 2.0)
    >>> task.answer([-4.0], parties=16)["value"]
    45.0
    >>> monthly = Task(kind="sum", column="kwh", bounds=(0, 10), period="month", periods=("jan", "feb"))
    >>> monthly.rows([{"kwh": 10, "month": "feb"}, {"kwh": 0, "month": "jan"}]).tolist()
    [[-1.0], [1.0]]
    """

    kind: Literal["sum", "mean", "variance", "histogram", "table", "direction"]
    unit: Literal["party", "record"] = "party"
    column: str | None = None
    columns: tuple[str, ...] | None = None
    bounds: tuple[Number, Number] | None = None
    value: Literal["single", "mean", "sum", "count"] = "single"
    edges: tuple[Number, ...] | None = None
    bins: Whole | None = None
    categories: Annotated[tuple[tuple[str, ...], ...] | None, BeforeValidator(_nested)] = None
    other: Switch = False
    missing: Literal["refuse", "skip"] = "refuse"
    max_records: Whole | None = None
    ends: Switch = False
    period: str | None = None
    periods: tuple[str, ...] | None = None

    @model_serializer(mode="wrap")
    def _without_what_is_usual(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is newer is left out where it is not asked for: such a study is hashed as before there was any of it."""
        fields: dict[str, Any] = handler(self)
        return {name: value for name, value in fields.items() if name not in ("ends", "period", "periods") or value}

    @model_validator(mode="after")
    def _consistent(self) -> Task:
        for check in (
            self._check_columns, self._check_numbers, self._check_cells, self._check_unit, self._check_periods,
        ):  # fmt: skip
            check()
        if not self.is_numeric and self.dimension > _MOST_CELLS:
            raise Misfit(("categories",), f"make {self.dimension:,} cells; at most {_MOST_CELLS:,} can be added")
        return self

    def _check_columns(self) -> None:
        if self.kind in ("table", "direction"):
            if self.column is not None:
                over = "counts over several" if self.kind == "table" else "has several"
                raise Misfit(("column",), f'a {self.kind} {over}; give columns = ["…", "…"]')
            if self.columns is None or len(self.columns) < 2 or len(set(self.columns)) < len(self.columns):
                raise Misfit(("columns",), f"a {self.kind} needs two or more different columns, got {self.columns!r}")
        elif self.columns is not None:
            raise Misfit(("columns",), f'only a table or a direction has several; give column = "…" for a {self.kind}')
        elif self.value == "count":
            if self.column is not None:
                raise Misfit(("column",), 'value = "count" counts rows, whatever is in them; leave column out')
        elif not self.column:
            raise Misfit(("column",), f'is missing; say which column the {self.kind} is of: column = "…"')

    def _check_numbers(self) -> None:
        if self.is_numeric:
            if self.kind == "direction":
                if self.bounds is not None:
                    raise Misfit(
                        ("bounds",), "belong to sums and means; of a direction only how its numbers compare counts"
                    )
            elif self.bounds is None:
                raise Misfit(("bounds",), "is missing; give the public range of the numbers, bounds = [0, 100]")
            else:
                self._check_bounds(self.bounds)
            for name in ("edges", "categories", "bins"):
                if getattr(self, name) is not None:
                    raise Misfit((name,), f"belongs to a histogram or a table, not to a {self.kind}; leave it out")
        elif self.bins is not None:
            if self.edges is not None:
                raise Misfit(("bins",), "a histogram has bins, edges or categories, one of them")
            if self.kind != "histogram" or self.bounds is None:
                raise Misfit(("bins",), "belongs to a histogram of numbers between bounds = [lo, hi]; give both")
            self._check_bounds(self.bounds)
            if not 2 <= self.bins <= _MOST_CELLS or np.unique(self.bin_edges).size <= self.bins:
                raise Misfit(("bins",), f"must be 2 to {_MOST_CELLS:,} bins of some width, got {self.bins}")
        elif self.bounds is not None:
            raise Misfit(("bounds",), f"a {self.kind} has bins, edges or categories; bounds go with bins only")

    def _check_bounds(self, bounds: tuple[float, float]) -> None:
        lo, hi = bounds
        if not (lo < hi and max(abs(lo), abs(hi)) <= 1e60 and (hi - lo) / 2 >= 1e-60):
            raise Misfit(("bounds",), f"must rise from the smallest to the largest number, got {lo!r}, {hi!r}")

    @property
    def bin_edges(self) -> FloatArray:
        """The ends of the bins, of a histogram of numbers."""
        if self.edges is not None:
            return np.array(self.edges, dtype=np.float64)
        assert self.bins is not None
        assert self.bounds is not None
        lo, hi = self.bounds
        ends: FloatArray = lo + (hi - lo) * (np.arange(self.bins + 1) / self.bins)
        ends[-1] = hi
        return ends

    def _check_cells(self) -> None:
        if self.edges is not None or self.bins is not None:
            if self.categories is not None or self.kind == "table":
                raise Misfit(
                    ("edges",), "a histogram has bins, edges or categories, one of them; a table has categories"
                )
            if self.edges is None:
                return
            if len(self.edges) < 2 or any(b <= a for a, b in zip(self.edges, self.edges[1:], strict=False)):
                raise Misfit(("edges",), f"must be two or more rising numbers, got {list(self.edges)}")
        elif not self.is_numeric:
            wanted = len(self.needed) if self.kind == "table" else 1
            if self.categories is None or len(self.categories) != wanted:
                hint = (
                    'one list for every column, [["f", "m"], ["yes", "no"]]'
                    if wanted > 1
                    else '["a", "b"], or bins or edges'
                )
                raise Misfit(("categories",), f"a {self.kind} needs the values that are counted: {hint}")
            for labels in self.categories:
                cells = [*labels, *([OTHER] if self.other else [])]
                if len(set(cells)) < len(cells) or not all(cell and cell == cell.strip() for cell in cells):
                    raise Misfit(("categories",), f"must be different, without blanks around them; got {cells}")
                if len(cells) < 2:
                    raise Misfit(("categories",), f"needs two or more values, got {list(labels)}")
        if self.other and self.categories is None:
            raise Misfit(("other",), "belongs to categories; numbers outside bounds or edges are clipped")

    def _check_unit(self) -> None:
        if self.ends and (self.kind != "mean" or self.unit != "record"):
            raise Misfit(("ends",), 'belongs to a mean with unit = "record"; leave it out')
        if self.kind == "direction" and (self.unit == "record" or self.value != "single"):
            place = "unit" if self.unit == "record" else "value"
            raise Misfit((place,), 'of a direction every party has one row: unit = "party" and value = "single"')
        if self.unit == "record":
            if self.max_records is None or not 1 <= self.max_records <= _MOST_RECORDS:
                raise Misfit(
                    ("max_records",),
                    "to protect records, say how many a party may have, 1 or more: it is public and sizes the noise's "
                    f"range, not the noise; got {self.max_records!r}",
                )
            if self.value != "single":
                raise Misfit(("value",), f'with unit = "record" every row counts by itself; leave {self.value!r} out')
            return
        if self.max_records is not None:
            raise Misfit(("max_records",), 'belongs to unit = "record"; leave it out')
        if self.missing == "skip":
            raise Misfit(
                ("missing",), 'rows may be skipped with unit = "record" only; a party\'s number needs them all'
            )
        if self.value != "single" and self.categories is not None:
            raise Misfit(("value",), f"categories have no {self.value}; a party has a single row, or use edges")

    def _check_periods(self) -> None:
        if self.period is None and self.periods is None:
            return
        if not self.period or self.periods is None:
            lacking = "periods" if self.period else "period"
            raise Misfit(
                (lacking,), 'is missing; values that change over time need both: period = "month", periods = ["1", "2"]'
            )
        if self.unit == "record":
            raise Misfit(("periods",), 'belong to unit = "party"; records are added up whenever they are from')
        if self.period in self.needed:
            raise Misfit(
                ("period",), f"is the column {self.period!r}, which is what is added; name the column of the dates"
            )
        if not 2 <= len(self.periods) <= _MOST_PERIODS:
            raise Misfit(("periods",), f"must be 2 to {_MOST_PERIODS:,} periods, got {len(self.periods)}")
        if len(set(self.periods)) < len(self.periods) or not all(one and one == one.strip() for one in self.periods):
            raise Misfit(("periods",), f"must be different, without blanks around them; got {list(self.periods)[:20]}")

    # ── what it is ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_numeric(self) -> bool:
        """Whether numbers are added, rather than counts of cells."""
        return self.kind not in ("histogram", "table")

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns whose cells are added or counted."""
        return self.columns or ((self.column,) if self.column else ())

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (*self.needed, self.period) if self.period else self.needed

    @property
    def values_each(self) -> int:
        """How many values a party adds where all its data are protected together: one, or one per period."""
        return len(self.periods or ("",))

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The names of the cells, one list per column; empty for numbers."""
        if self.categories is None and not self.is_numeric:
            ends = [f"{edge:g}" for edge in self.bin_edges.tolist()]
            last = len(ends) - 2
            return (tuple(f"[{ends[i]}, {ends[i + 1]}{']' if i == last else ')'}" for i in range(last + 1)),)
        more = (OTHER,) if self.other else ()
        return tuple((*labels, *more) for labels in self.categories or ())

    @property
    def dimension(self) -> int:
        """How many numbers are added."""
        if self.kind == "direction":
            return len(self.needed)
        if self.is_numeric:
            return {"sum": 1, "mean": 1, "variance": 2}[self.kind] + (self.unit == "record" and self.kind != "sum")
        if self.categories is None:
            return len(self.bin_edges) - 1
        return math.prod(len(labels) for labels in self.labels)

    @property
    def is_never_negative(self) -> bool:
        """Whether no coordinate of what a party adds is below zero: counts, and a mean from both ends."""
        return not self.is_numeric or self.ends

    @property
    def limits(self) -> tuple[Inequality, ...]:
        """What else the numbers of every honest party obey.

        Rounding is monotone and keeps 0 and ±1, so |z| ≤ 1 and 0 ≤ z² ≤ 1 hold of the rounded records too.

        >>> Task(kind="mean", column="minutes", bounds=(0, 120), unit="record", max_records=9).limits[0]
        Inequality(weights=(1.0, 1.0), low=0.0, high=inf)
        """
        if not self.is_numeric:
            return (Inequality((1.0,) * self.dimension, 1.0 if self.unit == "party" else 0.0, self.reach),)
        if self.unit == "party":
            return (Inequality((0.0, 1.0)),) if self.kind == "variance" else ()
        if self.kind == "sum":
            assert self.bounds is not None
            lo, hi = self.bounds
            return (Inequality((1.0,)),) if lo >= 0 else (Inequality((-1.0,)),) if hi <= 0 else ()
        if self.kind == "variance":
            signs = (1.0, -1.0)
            return (
                *(Inequality((s, 0.0, 1.0)) for s in signs),
                Inequality((0.0, 1.0, 0.0)),
                Inequality((0.0, -1.0, 1.0)),
            )
        return () if self.ends else (Inequality((1.0, 1.0)), Inequality((-1.0, 1.0)))

    @property
    def sensitivity(self) -> float:
        """Δ: how far, in L2 norm, what is protected can move the total (proofs above)."""
        if self.unit == "party":
            return 2.0 if self.is_numeric else _root(2)
        return 1.0 if self.ends else _root({"mean": 2, "variance": 3}.get(self.kind, 1))

    def sensitivity_under(self, law: str) -> float:
        """Δ in the norm that noise of this law needs: L2 under Gaussian noise, L1 under Laplace noise (proofs above).

        >>> task = Task(kind="variance", column="minutes", bounds=(0, 120))
        >>> task.sensitivity_under("gaussian"), task.sensitivity_under("laplace")
        (2.0, 2.25)
        """
        if law != "laplace":
            return self.sensitivity
        if self.kind == "direction":
            return _root(4 * self.dimension)
        if self.unit == "party":
            return 2.25 if self.kind == "variance" else 2.0
        return {"mean": 1.0 if self.ends else 2.0, "variance": 3.0}.get(self.kind, 1.0)

    def under(self, law: str) -> Task:
        """The same question as it is best asked under noise of this law: a mean of records from both ends under Laplace noise."""
        ends = law == "laplace" and self.kind == "mean" and self.unit == "record"
        return self if ends == self.ends else self.model_copy(update={"ends": ends})

    def describe(self) -> str:
        """What is asked, in words.

        >>> Task(kind="mean", column="minutes", bounds=(0, 120)).describe()
        "the mean of 'minutes' over the parties, clipped to 0 … 120"
        """
        over = "parties" if self.unit == "party" else "all records"
        if self.periods is not None:
            over = f"parties and {len(self.periods)} periods ({self.period!r})"
        if self.kind == "direction":
            columns = ", ".join(map(repr, self.needed[:5])) + (
                f" and {len(self.needed) - 5} more" if len(self.needed) > 5 else ""
            )
            return f"the mean over the {over} of the vectors {columns}, each divided by its length"
        if self.is_numeric:
            assert self.bounds is not None
            of = f"{self._what()} over {'the ' if self.unit == 'party' else ''}{over}"
            return f"the {self.kind} of {of}, clipped to {self.bounds[0]:g} … {self.bounds[1]:g}"
        cells = " × ".join(str(len(labels)) for labels in self.labels)
        what = " × ".join(repr(name) for name in self.needed) if self.kind == "table" else self._what()
        return (
            f"a {self.kind} of {what}: how many {over if self.unit == 'party' else 'records'} in each of {cells} cells"
        )

    def _what(self) -> str:
        if self.value == "count":
            return "a party's number of rows"
        return repr(self.column) if self.value == "single" else f"a party's {self.value} of {self.column!r}"

    # ── from rows to numbers ──────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, source: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> FloatArray:
        """What a party adds: an array (records, dimension), one row for unit "party", or one per period. From a CSV file, or rows.

        Nothing is left out silently: a row that does not fit is an error that names it.
        """
        given: Sequence[Mapping[str, Any]]
        given = read_rows(source, self.read) if isinstance(source, str | os.PathLike) else list(source)
        kept = [(place, cells) for place, cells in self._cells(given) if cells is not None]
        if self.unit == "record":
            assert self.max_records is not None
            if len(kept) > self.max_records:
                raise InvalidValue(
                    f"this party has {len(kept)} records and the study allows at most max_records = {self.max_records}; "
                    "choose which to use before the study, or ask for a study that allows more"
                )
            return self._encoded([cells for _, cells in kept])
        if self.periods is None:
            return self._encoded([self._one([cells for _, cells in kept])])
        return self._encoded(
            [self._one(cells, f" in the period {one!r}") for one, cells in self._by_period(given, kept)]
        )

    def _by_period(
        self, given: Sequence[Mapping[str, Any]], kept: Sequence[tuple[str, tuple[Any, ...]]]
    ) -> list[tuple[str, list[tuple[Any, ...]]]]:
        """The cells of every period, in the order of the periods; a row of another period is an error that names it."""
        assert self.periods is not None
        assert self.period is not None
        found: dict[str, list[tuple[Any, ...]]] = {one: [] for one in self.periods}
        for row, (place, cells) in zip(given, kept, strict=True):  # with unit = "party" no row is skipped
            if self.period not in row:
                raise InvalidValue(
                    f"{place}: there is no column {self.period!r}; there are {', '.join(map(repr, row))}"
                )
            of = str(row[self.period]).strip()
            if of not in found:
                some = ", ".join(map(repr, self.periods[:5])) + (" …" if len(self.periods) > 5 else "")
                raise InvalidValue(
                    f"{place}: column {self.period!r} holds {of!r}, which is no period of the study ({some}); correct it, or take "
                    "the row out"
                )
            found[of].append(cells)
        return list(found.items())

    def _cells(self, given: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, tuple[Any, ...] | None]]:
        """Of every row where it is and its cells, as numbers or cell numbers; None if it is skipped."""
        for which_row, row in enumerate(given, start=1):
            place = getattr(row, "place", f"row {which_row}")
            cells: list[Any] = []
            for which, column in enumerate(self.needed):
                if column not in row:
                    raise InvalidValue(f"{place}: there is no column {column!r}; there are {', '.join(map(repr, row))}")
                cell = row[column].strip() if isinstance(row[column], str) else row[column]
                if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
                    if self.missing == "skip":
                        break
                    way_out = '; fill it in, or take the row out' if self.unit == "party" else (
                        '; fill it in, or have the study say missing = "skip"'
                    )  # fmt: skip
                    raise InvalidValue(f"{place}: column {column!r} is empty{way_out}")
                cells.append(self._cell(cell, which, column, place))
            yield place, (tuple(cells) if len(cells) == len(self.needed) else None)

    def _cell(self, cell: Any, which: int, column: str, place: str) -> float | int:
        if self.categories is None:
            return number(cell, column, place)
        labels = self.categories[which]
        if str(cell) in labels:
            return labels.index(str(cell))
        if self.other:
            return len(labels)
        raise InvalidValue(
            f"{place}: column {column!r} holds {str(cell)!r}, which is none of {', '.join(map(repr, labels))}; correct it, "
            "or have the study say other = true"
        )

    def _one(self, cells: list[tuple[Any, ...]], when: str = "") -> tuple[Any, ...]:
        if self.value == "count":
            return (float(len(cells)),)
        if self.value == "single" and len(cells) != 1:
            raise InvalidValue(
                f"this party has {len(cells)} rows{when} and the study takes exactly one; give one, or have the study say "
                'value = "mean" (or "sum", "count")'
            )
        if self.value == "single":
            return cells[0]
        try:
            total = math.fsum(row[0] for row in cells)
        except OverflowError:
            raise InvalidValue(f"the numbers of this party{when} are too large to add up; correct them") from None
        if self.value == "sum":
            return (total,)
        if not cells:
            raise InvalidValue(f"this party has no rows{when}, so there is no mean of them; it cannot take part")
        return (total / len(cells),)

    def _encoded(self, cells: list[tuple[Any, ...]]) -> FloatArray:
        if self.kind == "direction":
            vectors = np.array(cells, dtype=np.float64).reshape(len(cells), self.dimension)
            scaled = vectors / np.maximum(np.abs(vectors).max(axis=1, keepdims=True), _LEAST_NUMBER)
            lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
            if not (np.isfinite(scaled).all() and (lengths >= 1 - 1e-9).all()):
                raise InvalidValue(
                    "the numbers of this party are all zero, so they have no direction; it cannot take part"
                )
            return np.asarray(scaled / lengths)
        if self.is_numeric:
            assert self.bounds is not None
            lo, hi = self.bounds
            x = np.clip(np.array([row[0] for row in cells], dtype=np.float64), lo, hi)
            if self.unit == "record" and self.kind == "sum":
                return np.clip(x / max(abs(lo), abs(hi)), -1.0, 1.0)[:, None]
            if self.ends:
                t = np.clip((x - lo) / (hi - lo), 0.0, 1.0)
                return np.column_stack([t, 1.0 - t])
            z = np.clip((x - self._middle) / self._half, -1.0, 1.0)
            parts = [z, z * z][: 2 if self.kind == "variance" else 1]
            return np.column_stack([*parts, *([np.ones_like(z)] if self.unit == "record" else [])])
        if len(cells) * self.dimension > _MOST_NUMBERS:
            raise InvalidValue(
                f"{len(cells):,} records in {self.dimension:,} cells are more than {_MOST_NUMBERS:,} numbers; count over fewer "
                "cells, or over fewer records at a time"
            )
        if self.categories is None:
            x = np.array([row[0] for row in cells], dtype=np.float64)
            found = np.searchsorted(self.bin_edges, x, side="right") - 1
            place = np.clip(found, 0, self.dimension - 1).astype(np.int64)
        else:
            shape = tuple(len(labels) for labels in self.labels)
            parts_of = np.array(cells, dtype=np.int64).reshape(len(cells), len(shape))
            place = parts_of @ np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], dtype=np.int64)
        out = np.zeros((len(cells), self.dimension))
        out[np.arange(len(cells)), place] = 1.0
        return out

    @property
    def _middle(self) -> float:
        assert self.bounds is not None
        return (self.bounds[0] + self.bounds[1]) / 2

    @property
    def _half(self) -> float:
        assert self.bounds is not None
        return (self.bounds[1] - self.bounds[0]) / 2

    # ── from totals to the answer ─────────────────────────────────────────────────────────────────────────────────────

    def answer(self, total: Sequence[float] | FloatArray, parties: int, noise: float = 0.0) -> dict[str, Any]:
        """The answer in the data's own units, from the total over so many parties; plain values for JSON.

        noise : the standard deviation of the noise in one coordinate of the total; a quotient is given only where the
            noisy number of records is certain enough.
        """
        t = np.asarray(total, dtype=np.float64)
        if t.shape != (self.dimension,) or not np.isfinite(t).all():
            raise InvalidValue(f"the total must be {self.dimension} finite numbers, got {total!r}")
        out: dict[str, Any] = {"kind": self.kind, "unit": self.unit, "parties": parties}
        each = self.values_each  # the total is that of an average period, and the answer about all of them
        t, parties, noise = t * each, parties * each, noise * each
        if self.kind == "direction":
            return out | {"direction": dict(zip(self.needed, (t / parties).tolist(), strict=True))}
        if self.is_numeric:
            return out | (self._of_parties(t, parties, noise) if self.unit == "party" else self._of_records(t, noise))
        if self.kind == "table":
            return out | {"columns": list(self.needed), "counts": _by_label(t, self.labels)}
        return out | {"column": self.column, **self._cells_told(), "counts": t.tolist()}

    def _cells_told(self) -> dict[str, Any]:
        """What the cells of a histogram are; of very many only what they follow from."""
        if self.dimension > _LABELLED and self.bins is not None:
            return {"bounds": list(self.bounds or ()), "bins": self.bins}
        edges = {} if self.categories is not None else {"edges": self.bin_edges.tolist()}
        return {"labels": list(self.labels[0]), **edges}

    def _of_parties(self, t: FloatArray, parties: int, noise: float) -> dict[str, Any]:
        mean = self._middle + self._half * float(t[0]) / parties
        if self.kind == "variance":
            return self._spread(float(t[0]) / parties, float(t[1]) / parties, noise / parties)
        return {"value": mean * parties if self.kind == "sum" else mean}

    def _of_records(self, t: FloatArray, noise: float) -> dict[str, Any]:
        if self.kind == "sum":
            assert self.bounds is not None
            return {"value": float(t[0]) * max(map(abs, self.bounds))}
        records = float(t.sum()) if self.ends else float(t[-1])
        least = max(1.0, _CERTAIN * noise * (math.sqrt(2) if self.ends else 1.0))
        if records < least:
            why = f"the noisy number of records, {records:.3g}, is below {least:.3g}: a quotient would say nothing"
            return {"value": None, "records": records, "why": why}
        if self.kind == "variance":
            return self._spread(float(t[0]) / records, float(t[1]) / records, noise / records) | {"records": records}
        if self.ends:
            assert self.bounds is not None
            (lo, hi), share = self.bounds, float(t[0]) / records
            f = min(max(share, 0.0), 1.0)
            error = (hi - lo) * noise * math.sqrt((1 - f) ** 2 + f**2) / records
            return {"value": lo + (hi - lo) * share, "records": records, "standard_error": error}
        return {"value": self._middle + self._half * float(t[0]) / records, "records": records}

    def _spread(self, first: float, second: float, noise: float) -> dict[str, Any]:
        # the square of a noisy mean is too large by the square of its noise, on average
        variance = self._half**2 * (second - first * first + noise * noise)
        return {
            "value": max(variance, 0.0),
            "floored": variance < 0,  # the noise outweighs it
            "mean": self._middle + self._half * first,
        }

    def error(self, noise: float, parties: int, records: int | None = None) -> float | None:
        """The RMSE of the answer (of each cell) for noise of this deviation in the total; None if it depends on the data.

        The error of a mean of `records` many records is (noise in Σz − z̄·noise in their number)/records to first order, so
        at most √2·half·noise/records; from both ends at most 2·half·noise/records. Given only if that number is.
        """
        noise, parties = noise * self.values_each, parties * self.values_each
        if self.kind == "direction":
            return noise / parties
        if not self.is_numeric:
            return noise
        if self.unit == "record":
            assert self.bounds is not None
            if self.ends:
                return None if records is None else 2 * self._half * noise / records
            if self.kind == "mean" and records is not None:
                return math.sqrt(2) * self._half * noise / records
            return noise * max(map(abs, self.bounds)) if self.kind == "sum" else None
        return {"sum": self._half * noise, "mean": self._half * noise / parties}.get(self.kind)


def _root(square: int) -> float:
    """√square, rounded up."""
    root = math.sqrt(square)
    return root if Fraction(root) ** 2 >= square else math.nextafter(root, math.inf)


def _by_label(counts: FloatArray, labels: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for names, value in zip(product(*labels), counts.tolist(), strict=True):
        inner = nested
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
        inner[names[-1]] = value
    return nested
